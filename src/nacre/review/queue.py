"""The review queue, for a person: what waits, keep it, retire it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

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
from nacre.review.conflicts import resolve, settle
from nacre.review.merge import merge_into, target_of
from nacre.text.passages import title_of
from nacre.values.memory import Link, Memory
from nacre.values.operation import REVIEW
from nacre.values.review import Usage
from nacre.values.session import Trust
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


def dismiss(
    home: Home, references: Sequence[str], content: str | None = None, into: str | None = None,
    expected: str | None = None,
) -> list[Memory]:  # fmt: skip
    """Keep memories that wait for review; their quality is .3 at least. What an agent proposed is told from then on.

    What seemed to say otherwise holds beside them. One may be kept in other words, or as a part of another memory: then
    that is what is returned. With ``expected``, its file is the one that was read under that etag. Raises NotFound,
    Conflict, EditConflict, InvalidInput.
    """
    kept = [review.memory for review in _waiting(home, references)]
    if len(kept) > 1 and (into is not None or content is not None):
        raise InvalidInput("other words are for one memory", hint="name one memory that waits")
    if content is not None and not content.strip():
        raise InvalidInput("a memory needs content", hint="nacre review retire does away with a memory")
    if into is not None:
        return [_merge(home, kept[0], into, content)]
    usage = home.usage.of([memory.id for memory in kept])
    pairs = [Pair(memory, newer, None) for memory in kept for newer in _newer(home, memory)]
    why = "they hold beside each other" if pairs else "kept in review"
    with home.change(REVIEW, subject=subject_of(kept), why=why) as change:
        if expected is not None:
            scan(home)
            store.refuse_changed(home, kept[0].id, expected)
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
