"""Operations of the review queue, questions to the owner, and unanswered questions."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import chain, combinations
from typing import TYPE_CHECKING, Annotated

from nacre.base.bounds import bounds
from nacre.base.frozen import frozen
from nacre.base.ids import at_ms, to_ms
from nacre.base.text import STOP_WORDS, identifiers, is_unspaced, shorten, stem, title_of, words
from nacre.data import undo as data_undo
from nacre.errors import ConflictError, EmbedderUnavailableError, InvalidInputError, NotFoundError
from nacre.home.change import Change, known_or_named
from nacre.home.consent import embedder_of
from nacre.home.home import BUNDLED, Home
from nacre.home.location import redact
from nacre.home.operations import memories_in_entry, subject_of
from nacre.home.spending import fold_notes
from nacre.home.views import Choice, Pair, Pending, PendingKind, PendingPage
from nacre.memories import store
from nacre.memories.decision import Expected, StoreRequest, keep
from nacre.memories.edit import catch_up, scan
from nacre.memories.judge import CONTRADICTS, SUPERSEDES, mark_ended, without_doubt
from nacre.memories.placement import place
from nacre.memories.store import fold_usage, get, new_memory, queue_reviews
from nacre.memories.usage import KEPT_QUALITY, note_stale
from nacre.operations import operation
from nacre.recall import question as recall_question
from nacre.recall import recall as recall_recall
from nacre.review import contradictions
from nacre.review.contradictions import (
    RESOLVE,
    GapReference,
    Item,
    Items,
    keep_reason,
    list_pending,
    merge_into,
    settle,
    target_of,
)
from nacre.values.fields import Offset, OnlyProject
from nacre.values.memory import REVIEW, HeldCandidate, Kind, Link, Memory, Operation, by_id
from nacre.values.models import NOT_SURE, AskedQuestion
from nacre.values.recall import Filter, RecallQuery
from nacre.values.reports import StoreOutcome
from nacre.values.review import (
    Question,
    QueuedReview,
    Reason,
    Reflected,
    Reflection,
    Relates,
    Unanswered,
    UnansweredQuestion,
)
from nacre.values.session import Speaker, Trust

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@operation("review-resolve", writes=True, owners=True)
def resolve(
    home: Home,
    reference: Item,
    choice: Annotated[Choice, bounds("The memory that is true.")],
    reason: Annotated[str | None, bounds("The reason, kept in the ledger.")] = None,
) -> Pair:
    """Settle a conflict between two memories. Raises NotFoundError, ConflictError."""
    return contradictions.resolve(home, contradictions.find(home, reference), choice, reason)


_MAX_COMPARED, _LATER_CHARACTERS = 20, 200

# -- The review queue ---------------------------------------------------------


@operation("review", by_key=True)
def list_items(
    home: Home,
    *,
    project: OnlyProject = None,
    only: Annotated[PendingKind | None, bounds("Only items of this kind.")] = None,
    limit: Annotated[int, bounds("Maximum number of items; 0 for all.", ge=0)] = 50,
    offset: Offset = 0,
) -> PendingPage:
    """List conflicts, doubtful memories and candidates.

    Conflicts and doubtful memories come first, oldest first. Candidates follow, likeliest first. A
    memory in doubt because of a conflict is not listed separately.
    """
    catch_up(home)
    note_stale(home)
    pairs = contradictions.list_waiting(home)
    in_conflict = {pair.older.id for pair in pairs}
    first_entries: dict[str, tuple[Memory, QueuedReview]] = {}
    for memory, entry in _doubts(home):
        if entry.reason is not Reason.CONTRADICTED or memory.id not in in_conflict:
            first_entries.setdefault(memory.id, (memory, entry))
    items = [
        *(
            Pending(
                pair.id,
                PendingKind.CONFLICT,
                pair.older,
                Reason.CONTRADICTED.value,
                pair.reason,
                pair.newer.created,
                pair.newer,
            )
            for pair in pairs
        ),
        *(
            Pending(
                memory.id, PendingKind.DOUBT, memory, entry.reason.value, entry.detail, entry.since
            )
            for memory, entry in first_entries.values()
        ),
        *(
            Pending(
                candidate.memory.id,
                PendingKind.CANDIDATE,
                candidate.memory,
                candidate.why.value,
                candidate.detail,
                candidate.found,
            )
            for candidate in home.candidates.waiting()
        ),
    ]
    if project:
        items = [
            item
            for item in items
            if project in (item.memory.project, item.newer and item.newer.project)
        ]
    counts = Counter(item.kind for item in items)
    if only:
        items = [item for item in items if item.kind is only]
    shown = items[offset:][: limit or None]
    return PendingPage(
        (*(_with_departure(home, item) for item in shown[:_MAX_COMPARED]), *shown[_MAX_COMPARED:]),
        len(items),
        counts[PendingKind.CONFLICT],
        counts[PendingKind.DOUBT],
        counts[PendingKind.CANDIDATE],
    )


def _with_departure(home: Home, item: Pending) -> Pending:
    """Add the later statement that contradicts a candidate, if any, to the candidate's detail."""
    if item.kind is not PendingKind.CANDIDATE:
        return item
    later = contradictions.find_departure(home, item.memory)
    words = f"later you said: “{shorten(later.text, _LATER_CHARACTERS)}”" if later else None
    return replace(item, detail="; ".join(filter(None, [item.detail, words])) or None)


def _doubts(home: Home) -> list[tuple[Memory, QueuedReview]]:
    """Return the doubtful memories, oldest first, each with its review entry."""
    fold_usage(home)
    queue_reviews(home)
    entries = home.reviews.pending()
    rows = home.memories.rows_of([entry.memory for entry in entries])
    memories = by_id(rows.values())
    return [(memories[entry.memory], entry) for entry in entries]


@operation("review-keep", writes=True, owners=True)
def keep_items(
    home: Home,
    references: Items,
    *,
    content: Annotated[str | None, bounds("Keep the single item with this text.")] = None,
    into: Annotated[
        str | None, bounds("Merge the single item into this memory (id or subject).")
    ] = None,
    expected: Expected = None,
    anyway: Annotated[
        bool, bounds("Keep the candidate even if a later statement departs from it.")
    ] = False,
) -> list[Memory]:
    """Keep pending items and return the kept memories. For a conflict, return the older memory.

    Raises NotFoundError, ConflictError, EditConflictError, InvalidInputError, DepartedError.
    """
    if len(references) > 1 and (into is not None or content is not None):
        raise InvalidInputError(
            "only one item can be kept with another text", hint="name a single item"
        )
    kept: list[Memory] = []
    memories: list[str] = []
    for reference in references:
        candidate = contradictions.find_candidates(home, reference)
        if candidate:
            outcome = contradictions.keep(
                home, candidate, content=content, into=into, anyway=anyway
            )
            kept.append(store.get(home, outcome.memory_id))
        elif "+" in reference and into is None:
            if content is not None:
                raise InvalidInputError(
                    "a conflict has no text of its own", hint="edit one of its memories"
                )
            pair = contradictions.find(home, reference)
            kept.append(contradictions.resolve(home, pair, Choice.KEEP_BOTH).older)
        elif "+" in reference:
            memories.append(contradictions.find(home, reference).older.id)
        else:
            memories.append(reference)
    return kept + (_keep_doubted(home, memories, content, into, expected) if memories else [])


def _keep_doubted(
    home: Home,
    references: Sequence[str],
    content: str | None,
    into: str | None,
    expected: str | None,
) -> list[Memory]:
    """Keep doubtful memories and the memories that conflict with them.

    Proposals become trusted. A single memory can be reworded, or merged into a target memory. After
    a merge, the target is returned.
    """
    kept = [memory for memory, _ in _waiting(home, references)]
    if content is not None and not content.strip():
        raise InvalidInputError(
            "the memory has no content", hint="nacre review drop retires a memory"
        )
    if into is not None:
        return [_merge(home, kept[0], into, content)]
    usage = home.usage.of([memory.id for memory in kept])
    pairs = [
        Pair(memory, newer, None)
        for memory in kept
        for doubt in home.reviews.doubts([memory.id])
        if (newer := home.memories.find(doubt.newer))
    ]
    why = "both hold" if pairs else "kept in review"
    with home.change(REVIEW, subject=subject_of(kept), why=why) as change:
        if expected is not None:
            scan(home)
            store.refuse_changed(home, kept[0].id, expected)
        for pair in pairs:
            settle(change, pair, Choice.KEEP_BOTH)
        # Reload the memories, because settling added links.
        kept = [home.memories.find(memory.id) or memory for memory in kept]
        if content is not None:
            kept = [_reword(change, kept[0], content)]
        keep(change, kept)
        with change.transaction():
            change.note(REVIEW, **memories_in_entry([memory.id for memory in kept]))
            for memory in kept:
                home.reviews.dismiss(memory.id, to_ms(change.at) or 0)
                if usage[memory.id].quality < KEPT_QUALITY:
                    home.usage.set_quality(memory.id, KEPT_QUALITY)
    return kept


def _reword(change: Change, memory: Memory, content: str) -> Memory:
    home, words = change.home, content.strip()
    subject = title_of(words) if memory.subject == title_of(memory.content) else memory.subject
    changed = replace(
        memory, content=words, subject=subject, trust=Trust.TRUSTED, updated=home.now()
    )
    changed = redact(home.redactor, changed)
    change.put([changed])
    return changed


def _merge(home: Home, memory: Memory, into: str, content: str | None) -> Memory:
    """Merge a memory in review into a target memory, which then supersedes the merged memory."""
    with home.change(REVIEW, why="merged in review") as change:
        target = target_of(home, into, memory)
        change.describe(subject=target.subject)
        with change.transaction():
            target = without_doubt(target, memory.id)
            target = replace(
                target, links=(*target.links, Link(SUPERSEDES, memory.id, "merged in review"))
            )
            merged = merge_into(change, target, without_doubt(memory, target.id), content)
            change.put([mark_ended(without_doubt(memory, target.id), merged)])
    return merged


@operation("review-drop", writes=True, owners=True)
def drop(
    home: Home,
    references: Items,
    reason: Annotated[
        str | None,
        bounds("Why the memories are retired; default: the reason of the review."),
    ] = None,
) -> list[Memory]:
    """Drop candidates and retire doubtful memories. Raises NotFoundError, ConflictError."""
    dropped, memories = [], []
    for reference in references:
        if "+" in reference:
            raise ConflictError(
                f"{reference} is a conflict",
                hint=f"nacre review resolve {reference} keep-new or keep-old",
            )
        candidate = contradictions.find_candidates(home, reference)
        if candidate:
            dropped.append(candidate)
        else:
            memories.append(reference)
    waiting = _waiting(home, memories) if memories else []
    dropped_memories = contradictions.drop(home, dropped) if dropped else []
    for memory, entry in waiting:
        dropped_memories += store.retire(home, [memory.id], reason or f"review: {entry.detail}")
    return dropped_memories


def _waiting(home: Home, references: Sequence[str]) -> list[tuple[Memory, QueuedReview]]:
    """Return the memories named by ``references``, each with its oldest pending review entry."""
    catch_up(home)
    waiting = {memory.id: (memory, entry) for memory, entry in reversed(_doubts(home))}
    referenced = by_id(store.get(home, reference) for reference in references)
    absent = next((memory for memory in referenced.values() if memory.id not in waiting), None)
    if absent:
        raise NotFoundError(
            f"{absent.subject!r} is not waiting for review", hint="nacre review lists pending items"
        )
    return [waiting[memory_id] for memory_id in referenced]


# -- Grouping questions -------------------------------------------------------
# A question joins the group with the highest mean similarity, or starts a group. Vectors of the
# bundled model are used if available, else word stems. ``python -m benchmarks gaps`` measures the
# thresholds.


COSINE = 0.65
JACCARD = 0.35
"""Similarity thresholds for vectors and stems."""

Likeness = Callable[[int, int], float]
"""Function that compares the questions at two positions. Questions with at least 1 are the same."""


def stems_of(question: str) -> frozenset[str]:
    """Return the stems of a question's content words, or of all words if there are none."""
    all_words = words(question)
    return frozenset(
        stem(word)
        for word in all_words
        if word not in STOP_WORDS and not recall_question.asks(word)
    ) or frozenset(all_words)


def group(home: Home, questions: Sequence[str]) -> tuple[list[list[int]], str]:
    """Return the positions of similar questions in groups, and the name of the measure."""
    vectors: NDArray[np.float32] | None = None
    if home.settings.text("embedding.model") != "none":
        # The bundled model works offline and has a known threshold.
        with suppress(EmbedderUnavailableError):
            vectors = embedder_of(home, BUNDLED).embed(questions)
    by_words = words_likeness([stems_of(question) for question in questions])
    if vectors is None:
        return gather(len(questions), by_words), "words"
    foreign = [is_unspaced(question) for question in questions]
    cosines = vectors @ vectors.T

    def likeness(first: int, second: int) -> float:
        if foreign[first] or foreign[second]:
            return by_words(first, second)
        return float(cosines[first, second]) / COSINE

    return gather(len(questions), likeness), "cosine"


def words_likeness(stems: Sequence[frozenset[str]]) -> Likeness:
    """Return a function that measures the Jaccard similarity between stems."""

    def likeness(first: int, second: int) -> float:
        left, right = stems[first], stems[second]
        return len(left & right) / len(left | right) / JACCARD if left | right else 0.0

    return likeness


def gather(count: int, likeness: Likeness) -> list[list[int]]:
    """Group items. Each item joins the group to which it is most similar on average.

    If no average reaches 1, the item starts a new group.
    """
    groups: list[list[int]] = []
    for item in range(count):
        near = [
            (sum(likeness(item, other) for other in members) / len(members), members)
            for members in groups
        ]
        best, members = max(near, key=lambda scored: scored[0], default=(0.0, []))
        if best >= 1:
            members.append(item)
        else:
            groups.append([item])
    return groups


# -- Questions to the owner ---------------------------------------------------
# The owner says how unlinked memories relate, and settles contradictions. An answer becomes a link,
# memory or decision. Only dreams ask models (:mod:`nacre.review.relations`).


ORIGIN = "reflect"
"""Origin of links that the owner's answers add."""

_ACTION = "reflect"
_SKIPPED = "reflect.skipped"
_MAX_SKIPPED = 2_000
_MAX_SHARED_BY = 4
"""Maximum number of memories with a shared name. More common names do not relate memories."""


@operation("reflect", by_key=True)
def reflect(
    home: Home,
    *,
    limit: Annotated[int, bounds("Maximum number of questions.", ge=1, le=100)] = 5,
    project: OnlyProject = None,
) -> Reflection:
    """Return the most useful questions about pairs of memories, at most one for each memory.

    Conflicts come first, oldest first. Unlinked pairs that are similar or share a name follow.
    """
    catch_up(home)
    fold_usage(home)
    contradicting = (
        Question(
            pair.newer,
            pair.older,
            pair.reason or "one of them might be outdated",
            contradicts=True,
        )
        for pair in list_pending(home)
    )
    skipped = set(_skipped(home))
    questions = [
        question
        for question in (*contradicting, *_unconnected(home))
        if _key(question.first, question.second) not in skipped
        and project in (None, question.first.project)
    ]
    chosen: list[Question] = []
    used: set[str] = set()
    for question in questions:
        if len(chosen) < limit and not {question.first.id, question.second.id} & used:
            chosen.append(question)
            used |= {question.first.id, question.second.id}
    return Reflection(tuple(chosen), len(questions))


def _unconnected(home: Home) -> list[Question]:
    """Return questions about pairs of trusted memories that are not linked yet.

    The memories of a pair are in the same place, and are similar or share a name.
    """
    active = [
        memory for memory in home.memories.everything() if memory.is_active and memory.is_vouched
    ]
    memories = by_id(active)
    connected = home.links.connected()
    near = {(link.source, link.target): link.strength for link in home.links.alike()}
    shared = _sharing(active)
    usage = home.usage.of(list(memories))
    uses = {memory.id: len(memory.confirmed) + usage[memory.id].access_count for memory in active}
    ranked: dict[tuple[str, str], tuple[int, float, float, Question]] = {}
    for pair in chain(near, shared):
        if pair in connected or any(memory_id not in memories for memory_id in pair):
            continue
        first, second = (memories[memory_id] for memory_id in pair)
        if not first.shares_place(second):
            continue
        if second.is_said_after(first):
            first, second = second, first
        key = _key(first, second)
        names = shared.get(pair) or shared.get((pair[1], pair[0])) or ()
        cosine = max(near.get(pair, 0.0), near.get((pair[1], pair[0]), 0.0))
        why = f"both name {', '.join(names[:3])}" if names else "similar in meaning"
        at = first.last_said.timestamp()
        ranked[key] = (
            uses[first.id] + uses[second.id],
            cosine,
            at,
            Question(first, second, f"{why}; not linked"),
        )
    best_first = sorted(ranked.values(), key=lambda entry: entry[:3], reverse=True)
    return [question for _, _, _, question in best_first]


def _sharing(memories: Sequence[Memory]) -> dict[tuple[str, str], list[str]]:
    """Return the rare names that pairs of memories share, such as paths and error codes."""
    named: dict[tuple[str | None, str], list[str]] = defaultdict(list)
    for memory in memories:
        for name in {name.lower() for name in identifiers(f"{memory.subject} {memory.content}")}:
            named[memory.project, name].append(memory.id)
    shared: dict[tuple[str, str], list[str]] = defaultdict(list)
    for (_, name), ids in sorted(named.items(), key=lambda item: item[0][1]):
        for pair in combinations(ids, 2) if len(ids) <= _MAX_SHARED_BY else ():
            shared[pair].append(name)
    return shared


@operation("reflect-answer", writes=True, owners=True, command="review reflect")
def answer(
    home: Home,
    reference: Annotated[
        str,
        bounds("Two memories: their ids joined by +. The link leads from the first to the second."),
    ],
    *,
    text: Annotated[
        str | None, bounds("The connection, in a sentence. It becomes a memory.")
    ] = None,
    link: Annotated[
        Relates | None, bounds("The relation of the first memory to the second.")
    ] = None,
    keep: Annotated[
        Choice | None, bounds("The memory that is true, if the two contradict each other.")
    ] = None,
    skip: Annotated[bool, bounds("Do not ask about this pair again.")] = False,
    lesson: Annotated[bool, bounds("Store the sentence as a lesson; default: as a fact.")] = False,
) -> Reflected:
    """Apply the owner's answer. Raises NotFoundError, ConflictError, InvalidInputError, EditConflictError."""
    if len([item for item in (text, link, keep, skip) if item]) != 1:
        raise InvalidInputError(
            "give one answer: link the memories, write a sentence, choose one to keep, or skip",
            hint='nacre review reflect ID --link depends_on, or "a sentence", or --skip',
        )
    catch_up(home)
    first, second = _find_pair(home, reference)
    if skip:
        home.usage.set_value(
            _SKIPPED, json.dumps([*_skipped(home), _key(first, second)][-_MAX_SKIPPED:])
        )
        return Reflected("skipped", first, second)
    ends = {first.id, second.id}
    pair = next(
        (pair for pair in list_pending(home) if {pair.older.id, pair.newer.id} == ends), None
    )
    if keep:
        if pair is None:
            raise ConflictError(
                "these two memories are not in conflict", hint="--link contradicts creates one"
            )
        pair = contradictions.resolve(home, pair, keep)
        memories = by_id((pair.older, pair.newer))
        return Reflected("settled", memories[first.id], memories[second.id])
    with home.change(_ACTION, subject=first.subject) as change, change.transaction():
        if link:
            return _add_link(change, first, second, link, pair)
        return _store_sentence(
            change, first, second, text or "", Kind.LESSON if lesson else Kind.FACT
        )


def _find_pair(home: Home, reference: str) -> tuple[Memory, Memory]:
    ends = [end.strip() for end in reference.split("+")]
    if len(ends) != 2 or not all(ends):
        raise InvalidInputError(
            f"there is no question {reference!r}",
            hint="nacre review reflect shows ids such as 5f0c2a4d+91d0a4be",
        )
    first, second = (get(home, end) for end in ends)
    if first.id == second.id or not first.shares_place(second):
        raise ConflictError(
            "the two memories of a question must belong to one project",
            hint="nacre review reflect shows the questions",
        )
    inactive = next((end for end in (first, second) if not end.is_active), None)
    if inactive:
        raise ConflictError(
            f"{inactive.subject!r} no longer holds", hint=f"nacre show {inactive.id[-8:]} shows why"
        )
    return first, second


def _add_link(
    change: Change, first: Memory, second: Memory, link: Relates, pair: Pair | None
) -> Reflected:
    """Link two memories. If they conflict, both are kept.

    A new contradiction is a link from the later memory.
    """
    if link == CONTRADICTS:
        if pair:
            raise ConflictError(
                "these two memories are already in doubt", hint="choose the valid one with --keep"
            )
        first, second = (second, first) if second.is_said_after(first) else (first, second)
    elif pair:
        pair = settle(change, pair, Choice.KEEP_BOTH)
        memories = by_id((pair.older, pair.newer))
        first, second = memories[first.id], memories[second.id]
    others = [old for old in first.links if (old.rel, old.to) != (link.value, second.id)]
    first = replace(first, links=(*others, Link(link.value, second.id, origin=ORIGIN)))
    change.put([first])
    return Reflected("linked", first, second)


def _store_sentence(
    change: Change, first: Memory, second: Memory, text: str, kind: Kind
) -> Reflected:
    home = change.home
    new = StoreRequest(content=text, kind=kind, project=first.project, speaker=Speaker.OWNER)
    links = tuple(Link(Relates.RELATED_TO.value, end.id, origin=ORIGIN) for end in (first, second))
    memory = replace(
        new_memory(home, new, known_or_named, None),
        project=first.project,
        inbox=first.inbox,
        links=links,
    )
    outcome = place(change, memory, by_hand=True)
    stored = home.memories.find(outcome.memory_id) or memory
    if outcome.action != "stored":
        has = {link.to for link in stored.links} | {stored.id}
        stored = replace(
            stored, links=(*stored.links, *(link for link in links if link.to not in has))
        )
        change.put([stored])
    change.explain(outcome.in_words())
    now = [home.memories.find(end.id) or end for end in (first, second)]
    return Reflected("stored", now[0], now[1], stored)


def _skipped(home: Home) -> list[tuple[str, str]]:
    return [(first, second) for first, second in json.loads(home.usage.value(_SKIPPED) or "[]")]


def _key(first: Memory, second: Memory) -> tuple[str, str]:
    return (min(first.id, second.id), max(first.id, second.id))


# -- Undoing review decisions -------------------------------------------------


_DECISIONS = frozenset({REVIEW, "retire", RESOLVE})


@operation("review-undo", writes=True, owners=True, command="undo")
def reopen(home: Home, reference: Item) -> Memory:
    """Undo the last decision about a candidate or memory.

    The item is pending again and is returned. Candidates can be restored for a day. A quality that
    the decision raised is not lowered. Raises NotFoundError, and ConflictError if the result has
    changed since.
    """
    reference = reference.strip()
    candidate = contradictions.single(home.candidates.settled(reference), reference)
    return _reopen_candidate(home, candidate) if candidate else _reopen_review(home, reference)


def _reopen_candidate(home: Home, candidate: HeldCandidate) -> Memory:
    why = keep_reason(candidate)
    is_undone = _undo_latest(home, candidate.found, lambda operation: operation.why == why)
    kept = home.memories.find(candidate.memory.id)
    if not is_undone and kept and kept.is_active:
        raise ConflictError(
            "the changes of this decision are unknown after a rebuild without git",
            hint=f"nacre retire {kept.id[-8:]} retires the memory",
        )
    with home.transaction():
        home.candidates.unsettle(candidate.memory.id)
    return candidate.memory


def _reopen_review(home: Home, reference: str) -> Memory:
    memories = [get(home, each) for each in reference.split("+")]
    ids = {memory.id for memory in memories}
    settled = home.reviews.settled(memories[0].id)
    if settled is None and len(ids) == 1:
        raise NotFoundError(
            f"there is no review decision about {memories[0].subject!r}",
            hint="nacre undo reverts other changes",
        )
    since, at = settled or (0, 0)
    if len(ids) > 1:
        since = max(since, *(to_ms(memory.created) or 0 for memory in memories))
    is_undone = _undo_latest(
        home,
        at_ms(since),
        lambda operation: (
            operation.action in _DECISIONS
            and bool(ids & set(data_undo.memories_of(home, operation)))
        ),
    )
    if not is_undone and len(ids) > 1:
        raise NotFoundError(
            f"there is no review decision about {reference}",
            hint="nacre undo reverts other changes",
        )
    with home.transaction():
        home.reviews.reopen(memories[0].id, at)
    return get(home, memories[0].id)


def _undo_latest(home: Home, since: datetime, matches: Callable[[Operation], bool]) -> bool:
    data_undo.look(home)
    for undoable in data_undo.not_undone(home):
        if undoable.at < since:
            break
        if matches(undoable):
            data_undo.undo(home, undoable.id)
            return True
    return False


# -- Unanswered questions -----------------------------------------------------
# Recall records a redacted case for every question (:mod:`nacre.recall.ranking`). Cases are kept
# for ``traces.keep_days``, unless removed by ``forget`` or ``scrub``. Hooks search for prompts without
# recording cases, since most prompts need no memory.


MOST_QUESTIONS = 300
"""Maximum number of wordings that are grouped and embedded. The latest are chosen."""

MOST_ASKED_AGAIN = 60
"""Maximum number of wordings for which answers are searched. Others count as unanswered."""

_DISMISSED = "gaps.dismissed"
_MAX_DISMISSED = 2_000
_ALL_TIME = timedelta(days=3650)
_REFERENCE_CHARACTERS = 8
_TODO_CHARACTERS = 300
_KEY_BYTES = 12


@frozen
class _Wording:
    """One wording of an unanswered question.

    ``cases``: the times when the question was asked in this wording, latest first.
    """

    text: str
    cases: tuple[AskedQuestion, ...]

    @property
    def projects(self) -> Counter[str]:
        """How often the question was asked in each project."""
        return Counter(name for case in self.cases for name in case.projects)

    @property
    def key(self) -> str:
        """A hash of the question's stems. It is stored when the question is dismissed."""
        stems = " ".join(sorted(stems_of(self.text)))
        return hashlib.blake2b(stems.encode("utf-8", "replace"), digest_size=_KEY_BYTES).hexdigest()


@operation("unanswered", by_key=True)
def list_unanswered(
    home: Home,
    *,
    days: Annotated[int, bounds("Only questions from this many last days.", ge=1, le=3650)] = 30,
    project: OnlyProject = None,
    min_times: Annotated[int, bounds("Asked at least this many times.", ge=1)] = 1,
    limit: Annotated[int, bounds("Maximum number of gaps.", ge=1, le=100)] = 10,
) -> Unanswered:
    """Return groups of unanswered questions, the most frequent first.

    Questions that nacre can now answer are left out. Checking the answers does not count as recall.
    Raises StoreBusyError.
    """
    groups, by = _groups(home, timedelta(days=days), project)
    frequent = [group for group in groups if _describe_gap(group).times >= min_times]
    shown: list[UnansweredQuestion] = []
    closed = searches = 0
    for wordings in frequent:
        if len(shown) == limit:
            break
        unresolved = _ranked(wordings)
        while unresolved and searches < MOST_ASKED_AGAIN:
            searches += 1
            if not _has_answer(home, unresolved[0]):
                break
            del unresolved[0]
        if unresolved and _describe_gap(unresolved).times >= min_times:
            shown.append(_describe_gap(unresolved))
        else:
            closed += 1
    return Unanswered(tuple(sorted(shown, key=_rank)), len(frequent) - closed, closed, by)


@operation("unanswered-dismiss", writes=True, owners=True, command="review gaps --dismiss")
def dismiss(home: Home, reference: GapReference) -> UnansweredQuestion:
    """Hide an unanswered question in all its wordings. Raises NotFoundError, ConflictError."""
    wordings = _find_group(home, reference)
    with home.transaction():
        dismissed = dict.fromkeys([*_dismissed(home), *(wording.key for wording in wordings)])
        home.usage.set_value(_DISMISSED, json.dumps(list(dismissed)[-_MAX_DISMISSED:]))
    return _describe_gap(wordings)


@operation("unanswered-todo", writes=True, owners=True, command="review gaps --todo")
def add_todo(home: Home, reference: GapReference) -> StoreOutcome:
    """Store a todo that reminds the owner to write down the answer to a question.

    The todo is stored in the project that the question concerned most often. The question then
    counts as answered. Raises NotFoundError, ConflictError, and errors from storing the todo.
    """
    wordings = _find_group(home, reference)
    gap = _describe_gap(wordings)
    question = shorten(gap.question, _TODO_CHARACTERS)
    new = StoreRequest(
        content=f"Write down: {question}",
        kind=Kind.TODO,
        importance=6,
        speaker=Speaker.OWNER,
        project=next(iter(gap.projects), None),
    )
    return store.store(home, new)


def _groups(
    home: Home, since: timedelta, project: str | None = None
) -> tuple[list[list[_Wording]], str]:
    """Return groups of questions, most frequent first, and the measure of similarity.

    Dismissed questions are left out.
    """
    fold_notes(home)
    cases: dict[str, list[AskedQuestion]] = {}
    for case in home.traces.unanswered(home.now() - since):
        if not case.is_narrowed and (project is None or project in case.projects):
            cases.setdefault(" ".join(case.text.lower().split()), []).append(case)
    wordings = [_Wording(same[0].text, tuple(same)) for same in cases.values()][:MOST_QUESTIONS]
    wordings.reverse()  # later wordings join existing groups
    places, by = group(home, [wording.text for wording in wordings]) if wordings else ([], "words")
    dismissed = set(_dismissed(home))
    groups = [[wordings[place] for place in places_of] for places_of in places]
    kept = [group for group in groups if dismissed.isdisjoint(wording.key for wording in group)]
    return sorted(kept, key=lambda members: _rank(_describe_gap(members))), by


def _has_answer(home: Home, wording: _Wording) -> bool:
    query = RecallQuery(
        wording.text,
        filter=Filter(projects=tuple(sorted(wording.projects))),
        limit=1,
        turns=min(1, home.settings.whole("recall.turns")),
        confident=True,
        update=False,
        co_recall=False,
    )
    result = recall_recall.recall(home, query)
    return bool(result.hits or result.turns)


def _describe_gap(wordings: Sequence[_Wording]) -> UnansweredQuestion:
    """Describe a group by its most frequent wording. If several are as frequent, use the latest."""
    ranked = _ranked(wordings)
    cases = sorted(
        (case for wording in wordings for case in wording.cases), key=lambda case: case.at
    )
    projects = sum((wording.projects for wording in wordings), Counter[str]())
    return UnansweredQuestion(
        cases[-1].id[-_REFERENCE_CHARACTERS:],
        ranked[0].text,
        len(cases),
        sum(case.outcome == NOT_SURE for case in cases),
        cases[0].at,
        cases[-1].at,
        tuple(name for name, _ in projects.most_common()),
        tuple(wording.text for wording in ranked[1:]),
    )


def _ranked(wordings: Sequence[_Wording]) -> list[_Wording]:
    return sorted(
        wordings, key=lambda wording: (len(wording.cases), wording.cases[0].at), reverse=True
    )


def _rank(gap: UnansweredQuestion) -> tuple[int, float]:
    return (-gap.times, -gap.last.timestamp())


def _find_group(home: Home, reference: str) -> list[_Wording]:
    """Return the group that contains a question. Raises NotFoundError, ConflictError."""
    case_id = reference.strip()
    is_end = len(case_id) >= _REFERENCE_CHARACTERS // 2
    groups, _ = _groups(home, _ALL_TIME)
    matching = [
        group
        for group in groups
        if any(
            case.id == case_id or (is_end and case.id.endswith(case_id))
            for wording in group
            for case in wording.cases
        )
    ]
    if not matching:
        raise NotFoundError(
            f"there is no gap {reference!r}",
            hint="nacre review gaps lists the unanswered questions",
        )
    if len(matching) > 1:
        raise ConflictError(
            f"{reference!r} matches several gaps", hint="give more characters of the id"
        )
    return matching[0]


def _dismissed(home: Home) -> list[str]:
    return list(json.loads(home.usage.value(_DISMISSED) or "[]"))
