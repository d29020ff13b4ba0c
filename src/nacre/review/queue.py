"""The review queue: what waits for a person, and what they decide about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from nacre.code.staleness import note_stale
from nacre.dedup.comparison import SUPERSEDES
from nacre.dedup.placement import await_models
from nacre.dedup.supersession import ended, without_doubt
from nacre.errors import Conflict, InvalidInput, NotFound
from nacre.home.change import Change
from nacre.home.home import Home
from nacre.home.operations import memories_in_entry, subject_of
from nacre.home.redaction import redacted
from nacre.memories import store
from nacre.memories.agent_rights import keep
from nacre.memories.quality import KEPT_QUALITY
from nacre.memories.scan import catch_up, scan
from nacre.memories.usage import fold_usage, queue_reviews
from nacre.platform.ids import to_ms
from nacre.review import candidates, conflicts
from nacre.review.conflicts import settle
from nacre.review.merge import merge_into, target_of
from nacre.review.requests import ReviewDropRequest, ReviewKeepRequest, ReviewRequest
from nacre.text.passages import title_of
from nacre.values.memory import Link, Memory
from nacre.values.operation import REVIEW
from nacre.values.review import QueuedReview, Reason, Usage
from nacre.values.session import Trust
from nacre.views import Choice, Pair, Pending, PendingKind, PendingPage


def listed(home: Home, request: ReviewRequest) -> PendingPage:
    """List conflicts, the oldest first, then memories in doubt, the oldest first, then the likeliest candidates.

    A memory that waits because another one contradicts it is listed as their conflict only.
    """
    catch_up(home)
    note_stale(home)
    doubts = _doubts(home)
    pairs = conflicts.waiting(home)
    in_conflict = {pair.older.id for pair in pairs}
    items = [
        *(
            Pending(
                pair.id, PendingKind.CONFLICT, pair.older, Reason.CONTRADICTED.value, pair.reason,
                pair.judged.at if pair.judged else pair.newer.created, pair.newer, pair.judged,
            )
            for pair in pairs
        ),
        *(
            Pending(memory.id, PendingKind.DOUBT, memory, entry.reason.value, entry.detail, entry.since)
            for memory, entry in _one_each(doubts, in_conflict)
        ),
        *(
            Pending(one.memory.id, PendingKind.CANDIDATE, one.memory, one.why.value, one.detail, one.found)
            for one in home.candidates.waiting()
        ),
    ]  # fmt: skip
    if request.project:
        items = [item for item in items if request.project in (item.memory.project, item.newer and item.newer.project)]
    counts = Counter(item.kind for item in items)
    if request.only:
        items = [item for item in items if item.kind is request.only]
    shown = items[request.offset :][: request.limit or None]
    return PendingPage(
        tuple(shown), len(items), counts[PendingKind.CONFLICT], counts[PendingKind.DOUBT],
        counts[PendingKind.CANDIDATE],
    )  # fmt: skip


def _doubts(home: Home) -> list[tuple[Memory, QueuedReview]]:
    """The pending entries, the oldest first."""
    fold_usage(home)
    queue_reviews(home)
    entries = home.reviews.pending()
    memories = {memory.id: memory for memory in home.memories.rows_of([entry.memory for entry in entries]).values()}
    return [(memories[entry.memory], entry) for entry in entries]


def _one_each(
    doubts: Sequence[tuple[Memory, QueuedReview]], in_conflict: set[str]
) -> list[tuple[Memory, QueuedReview]]:
    """The first entry of each memory, without those that their conflict tells."""
    found: dict[str, tuple[Memory, QueuedReview]] = {}
    for memory, entry in doubts:
        if entry.reason is not Reason.CONTRADICTED or memory.id not in in_conflict:
            found.setdefault(memory.id, (memory, entry))
    return list(found.values())


def keep_items(home: Home, request: ReviewKeepRequest) -> list[Memory]:
    """Keep items; returns the memories as they are now, of a conflict the older one.

    Raises NotFound, Conflict, EditConflict, InvalidInput, DepartedError.
    """
    if len(request.references) > 1 and (request.into is not None or request.content is not None):
        raise InvalidInput("other words are for one item", hint="name one item")
    kept: list[Memory] = []
    memories: list[str] = []
    for reference in request.references:
        candidate = candidates.find(home, reference)
        if candidate:
            outcome = candidates.keep(home, candidate, request)
            kept.append(store.get(home, outcome.memory_id))
        elif "+" in reference and request.into is None:
            if request.content is not None:
                raise InvalidInput("a conflict has no words of its own", hint="edit one of its memories")
            kept.append(conflicts.resolve(home, conflicts.find(home, reference), Choice.KEEP_BOTH).older)
        else:
            memories.append(conflicts.find(home, reference).older.id if "+" in reference else reference)
    return kept + (_dismiss(home, memories, request) if memories else [])


def _dismiss(home: Home, references: Sequence[str], request: ReviewKeepRequest) -> list[Memory]:
    """Keep memories in doubt; their quality is .3 at least. What an agent proposed is told from then on.

    What seemed to say otherwise holds beside them. One may be kept in other words, or as a part of another memory: then
    that is what is returned.
    """
    content = request.content
    kept = [memory for memory, _ in _waiting(home, references)]
    if content is not None and not content.strip():
        raise InvalidInput("a memory needs content", hint="nacre review drop retires a memory")
    if request.into is not None:
        return [_merge(home, kept[0], request.into, content)]
    usage = home.usage.of([memory.id for memory in kept])
    pairs = [Pair(memory, newer, None) for memory in kept for newer in _newer(home, memory)]
    why = "they hold beside each other" if pairs else "kept in review"
    with home.change(REVIEW, subject=subject_of(kept), why=why) as change:
        if request.expected is not None:
            scan(home)
            store.refuse_changed(home, kept[0].id, request.expected)
        for pair in pairs:
            settle(change, pair, Choice.KEEP_BOTH)
        kept = [home.memories.find(memory.id) or memory for memory in kept]  # with what it is apart from
        if content is not None:
            kept = [_reworded(change, kept[0], content)]
        keep(change, kept)
        with change.transaction():
            change.append([change.entry(REVIEW, **memories_in_entry([memory.id for memory in kept]))])
            for memory in kept:
                home.reviews.dismiss(memory.id, to_ms(change.at) or 0)
                if usage.get(memory.id, Usage()).quality < KEPT_QUALITY:
                    home.usage.set_quality(memory.id, KEPT_QUALITY)
    return kept


def _reworded(change: Change, memory: Memory, content: str) -> Memory:
    """Write a memory in the owner's words."""
    home, words = change.home, content.strip()
    subject = title_of(words) if memory.subject == title_of(memory.content) else memory.subject
    changed = replace(
        memory, content=words, subject=subject, claim=None, trust=Trust.TRUSTED, updated=home.now()
    )  # fmt: skip
    changed = redacted(home.redactor, changed)
    change.put([changed])
    await_models(home, changed, memory)
    return changed


def _merge(home: Home, memory: Memory, into: str, content: str | None) -> Memory:
    """Make a memory that waits a part of another one, which takes its place."""
    with home.change(REVIEW, why="merged in review") as change:
        target = target_of(home, into, memory)
        change.describe(subject=target.subject)
        with change.transaction():
            target = without_doubt(target, memory.id)
            target = replace(target, links=(*target.links, Link(SUPERSEDES, memory.id, "merged in review")))
            merged = merge_into(change, target, without_doubt(memory, target.id), content)
            change.put([ended(without_doubt(memory, target.id), merged)])
    return merged


def drop(home: Home, request: ReviewDropRequest) -> list[Memory]:
    """Drop candidates and retire memories in doubt. Raises NotFound, Conflict."""
    dropped, memories = [], []
    for reference in request.references:
        if "+" in reference:
            raise Conflict(f"{reference} is a conflict", hint=f"nacre review resolve {reference} keep-new or keep-old")
        candidate = candidates.find(home, reference)
        if candidate:
            dropped.append(candidate)
        else:
            memories.append(reference)
    waiting = _waiting(home, memories) if memories else []
    gone = candidates.drop(home, dropped) if dropped else []
    for memory, entry in waiting:
        gone += store.retire(home, [memory.id], request.reason or f"review: {entry.detail}")
    return gone


def _newer(home: Home, memory: Memory) -> list[Memory]:
    """The memories that make it likely that this one is outdated, the oldest first."""
    found = [home.memories.find(doubt.newer) for doubt in home.reviews.doubts([memory.id])]
    return [one for one in found if one]


def _waiting(home: Home, references: Sequence[str]) -> list[tuple[Memory, QueuedReview]]:
    """The first pending entry of each memory meant."""
    catch_up(home)
    waiting = {memory.id: (memory, entry) for memory, entry in reversed(_doubts(home))}
    found = {memory.id: memory for memory in (store.get(home, reference) for reference in references)}
    absent = next((memory for memory in found.values() if memory.id not in waiting), None)
    if absent:
        raise NotFound(f"{absent.subject!r} waits for no review", hint="nacre review lists what does")
    return [waiting[memory_id] for memory_id in found]
