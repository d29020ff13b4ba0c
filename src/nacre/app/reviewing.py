"""The review queue, for a person: what waits, keep it, retire it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nacre.app import remembering
from nacre.app.context import Context
from nacre.app.scanning import scan
from nacre.app.using import fold_usage, queue_reviews
from nacre.errors import NotFound
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
    scan(context)
    fold_usage(context)
    queue_reviews(context)
    entries = context.reviews.pending()
    ids = [entry.memory for entry in entries]
    memories = {memory.id: memory for memory in context.memories.rows_of(ids).values()}
    usage = context.usage.of(ids)
    return [Review(memories[item.memory], item, usage.get(item.memory, Usage())) for item in entries]


def dismiss(context: Context, references: Sequence[str]) -> list[Memory]:
    """Keep memories that wait for review; their quality is .3 at least. Raises NotFound, Conflict."""
    kept = [review.memory for review in _waiting(context, references)]
    usage = context.usage.of([memory.id for memory in kept])
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
