"""The review queue, for a person: what waits, keep it, retire it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nacre.app import remembering
from nacre.app.conflicts import Choice, Pair, resolve, settle
from nacre.app.context import Context
from nacre.app.operating import operating
from nacre.app.scanning import catch_up
from nacre.app.using import fold_usage, queue_reviews
from nacre.app.writing import subject_of
from nacre.errors import Conflict, NotFound
from nacre.model.memory import Memory
from nacre.recall.quality import KEPT_QUALITY
from nacre.storage.reviews import QueuedReview
from nacre.storage.times import to_ms
from nacre.storage.usage import Usage


@dataclass(frozen=True, slots=True)
class Review:
    """A memory that waits for a person, why, and how it was used."""

    memory: Memory
    entry: QueuedReview
    usage: Usage


def pending(context: Context) -> list[Review]:
    """What waits, the oldest first."""
    catch_up(context)
    fold_usage(context)
    queue_reviews(context)
    entries = context.reviews.pending()
    ids = [entry.memory for entry in entries]
    memories = {memory.id: memory for memory in context.memories.rows_of(ids).values()}
    usage = context.usage.of(ids)
    return [Review(memories[item.memory], item, usage.get(item.memory, Usage())) for item in entries]


def dismiss(context: Context, references: Sequence[str]) -> list[Memory]:
    """Keep memories that wait for review; their quality is .3 at least.

    What seemed to say otherwise holds beside them. Raises NotFound, Conflict.
    """
    kept = [review.memory for review in _waiting(context, references)]
    usage = context.usage.of([memory.id for memory in kept])
    pairs = [Pair(memory, newer, None) for memory in kept for newer in _newer(context, memory)]
    with context.vault_lock, operating(context, "review", subject=subject_of(kept), why="they hold beside each other"):
        for pair in pairs:
            settle(context, pair, Choice.KEEP_BOTH)
    with context.database.transaction():
        for memory in kept:
            context.reviews.dismiss(memory.id, to_ms(context.now()) or 0)
            if usage.get(memory.id, Usage()).quality < KEPT_QUALITY:
                context.usage.set_quality(memory.id, KEPT_QUALITY)
    return kept


def retire(context: Context, references: Sequence[str], reason: str | None = None) -> list[Memory]:
    """Retire memories that wait for review; the reason is that of the queue unless given. Raises NotFound, Conflict."""
    found = _waiting(context, references)
    return [
        remembering.retire(context, [review.memory.id], reason or f"review: {review.entry.detail}")[0]
        for review in found
    ]


def replace_outdated(context: Context, references: Sequence[str]) -> list[Memory]:
    """Let the newest memory that says otherwise take the place of each; as they are now. Raises NotFound, Conflict."""
    replaced = []
    for review in _waiting(context, references):
        old = review.memory
        newer = next(reversed(_newer(context, old)), None)
        if newer is None:
            raise Conflict(f"no newer memory says otherwise than {old.subject!r}", hint="nacre review retire ID")
        replaced.append(resolve(context, Pair(old, newer, None), Choice.KEEP_NEW).older)
    return replaced


def _newer(context: Context, memory: Memory) -> list[Memory]:
    """The memories that make it likely that this one is outdated, the oldest first."""
    found = [context.memories.find(doubt.newer) for doubt in context.reviews.doubts([memory.id])]
    return [one for one in found if one]


def _waiting(context: Context, references: Sequence[str]) -> list[Review]:
    """The first pending entry of each memory meant."""
    waiting: dict[str, Review] = {}
    for review in pending(context):
        waiting.setdefault(review.memory.id, review)
    found = {memory.id: memory for memory in (remembering.get(context, reference) for reference in references)}
    absent = next((memory for memory in found.values() if memory.id not in waiting), None)
    if absent:
        raise NotFound(f"{absent.subject!r} waits for no review", hint="nacre review lists what does")
    return [waiting[memory_id] for memory_id in found]
