"""The review queue, for a person: what waits, keep it, retire it."""

from __future__ import annotations

from collections.abc import Sequence

from nacre.errors import Conflict, NotFound
from nacre.home.home import Home
from nacre.home.operations import subject_of
from nacre.memories import store
from nacre.memories.agent_rights import keep
from nacre.memories.quality import KEPT_QUALITY
from nacre.memories.scan import catch_up
from nacre.memories.usage import fold_usage, queue_reviews
from nacre.platform.ids import to_ms
from nacre.review.conflicts import resolve, settle
from nacre.values.memory import Memory
from nacre.values.review import Usage
from nacre.views import Choice, Pair, Review


def pending(home: Home) -> list[Review]:
    """What waits, the oldest first."""
    catch_up(home)
    return waiting(home)


def waiting(home: Home) -> list[Review]:
    """:func:`pending`, where edits by hand have been read."""
    fold_usage(home)
    queue_reviews(home)
    entries = home.reviews.pending()
    ids = [entry.memory for entry in entries]
    memories = {memory.id: memory for memory in home.memories.rows_of(ids).values()}
    usage = home.usage.of(ids)
    return [Review(memories[item.memory], item, usage.get(item.memory, Usage())) for item in entries]


def dismiss(home: Home, references: Sequence[str]) -> list[Memory]:
    """Keep memories that wait for review; their quality is .3 at least. What an agent proposed is told from then on.

    What seemed to say otherwise holds beside them. Raises NotFound, Conflict.
    """
    kept = [review.memory for review in _waiting(home, references)]
    usage = home.usage.of([memory.id for memory in kept])
    pairs = [Pair(memory, newer, None) for memory in kept for newer in _newer(home, memory)]
    with home.change("review", subject=subject_of(kept), why="they hold beside each other") as change:
        for pair in pairs:
            settle(change, pair, Choice.KEEP_BOTH)
        keep(change, kept)
    with home.database.transaction():
        for memory in kept:
            home.reviews.dismiss(memory.id, to_ms(home.now()) or 0)
            if usage.get(memory.id, Usage()).quality < KEPT_QUALITY:
                home.usage.set_quality(memory.id, KEPT_QUALITY)
    return kept


def retire(home: Home, references: Sequence[str], reason: str | None = None) -> list[Memory]:
    """Retire memories that wait for review; the reason is that of the queue unless given. Raises NotFound, Conflict."""
    found = _waiting(home, references)
    return [store.retire(home, [review.memory.id], reason or f"review: {review.entry.detail}")[0] for review in found]


def replace_outdated(home: Home, references: Sequence[str]) -> list[Memory]:
    """Let the newest memory that says otherwise take the place of each; as they are now. Raises NotFound, Conflict."""
    replaced = []
    for review in _waiting(home, references):
        old = review.memory
        newer = next(reversed(_newer(home, old)), None)
        if newer is None:
            raise Conflict(f"no newer memory says otherwise than {old.subject!r}", hint="nacre review retire ID")
        replaced.append(resolve(home, Pair(old, newer, None), Choice.KEEP_NEW).older)
    return replaced


def _newer(home: Home, memory: Memory) -> list[Memory]:
    """The memories that make it likely that this one is outdated, the oldest first."""
    found = [home.memories.find(doubt.newer) for doubt in home.reviews.doubts([memory.id])]
    return [one for one in found if one]


def _waiting(home: Home, references: Sequence[str]) -> list[Review]:
    """The first pending entry of each memory meant."""
    waiting: dict[str, Review] = {}
    for review in pending(home):
        waiting.setdefault(review.memory.id, review)
    found = {memory.id: memory for memory in (store.get(home, reference) for reference in references)}
    absent = next((memory for memory in found.values() if memory.id not in waiting), None)
    if absent:
        raise NotFound(f"{absent.subject!r} waits for no review", hint="nacre review lists what does")
    return [waiting[memory_id] for memory_id in found]
