"""What is answered to requests about what waits for a person; :mod:`nacre.serve.catalogue` lists them."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import chain, combinations, takewhile
from typing import TYPE_CHECKING

from nacre.base.ids import at_ms, to_ms
from nacre.base.text import STOP_WORDS, identifiers, is_unspaced, shorten, stem, title_of, words
from nacre.code.ask import note_stale
from nacre.data.undo import look, memories_of, not_undone, undo
from nacre.errors import Conflict, EmbedderUnavailable, InvalidInput, NotFound
from nacre.home.change import Change, known_or_named
from nacre.home.consent import embedder_of
from nacre.home.home import BUNDLED, Home
from nacre.home.location import redacted
from nacre.home.operations import memories_in_entry, subject_of
from nacre.home.spending import fold_notes
from nacre.home.views import Choice, Pair, Pending, PendingKind, PendingPage
from nacre.memories import store
from nacre.memories.decision import StoreRequest, keep
from nacre.memories.edit import catch_up, scan
from nacre.memories.judge import CONTRADICTS, SUPERSEDES, ended, without_doubt
from nacre.memories.placement import await_models, place
from nacre.memories.store import fold_usage, get, new_memory, queue_reviews
from nacre.memories.store import store as store_store
from nacre.memories.usage import KEPT_QUALITY
from nacre.recall.question import asks
from nacre.recall.recall import recall
from nacre.review import claims, contradictions
from nacre.review.claims import Backfill, Estimate
from nacre.review.contradictions import (
    RESOLVE,
    BackfillRequest,
    EstimateClaimsRequest,
    GapRequest,
    GapTodoRequest,
    JudgeReport,
    JudgeWaitingRequest,
    ReflectAnswerRequest,
    ReflectRequest,
    ReviewDropRequest,
    ReviewKeepRequest,
    ReviewRequest,
    ReviewResolveRequest,
    ReviewUndoRequest,
    UnansweredRequest,
    judge_waiting,
    kept_because,
    merge_into,
    pending,
    settle,
    target_of,
)
from nacre.review.contradictions import resolve as contradictions_resolve
from nacre.values.memory import REVIEW, HeldCandidate, Kind, Link, Memory, Operation
from nacre.values.models import NARROWED, NOT_SURE, PROJECTS, Trace
from nacre.values.recall import Filter, RecallQuery
from nacre.values.reports import OnProgress, StoreOutcome
from nacre.values.review import (
    Question,
    QueuedReview,
    Reason,
    Reflected,
    Reflection,
    Relates,
    Unanswered,
    UnansweredQuestion,
    Usage,
)
from nacre.values.session import Speaker, Trust

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def resolve(home: Home, request: ReviewResolveRequest) -> Pair:
    """Settle two memories in conflict, as a person decides. Raises NotFound, Conflict."""
    return contradictions.resolve(
        home, contradictions.find(home, request.reference), request.choice, request.reason
    )


def judge(
    home: Home, request: JudgeWaitingRequest, on_progress: OnProgress | None = None
) -> JudgeReport:
    """Have a model judge the memories that wait, the longest waiting first."""
    seconds = math.inf if request.seconds is None else request.seconds
    return judge_waiting(
        home, background=request.background, seconds=seconds, on_progress=on_progress
    )


def estimate_claims(home: Home, request: EstimateClaimsRequest) -> Estimate:
    """What a backfill of claims would cost. Raises ModelRefused."""
    return claims.estimate(home, request.limit)


def backfill_claims(
    home: Home, request: BackfillRequest, on_progress: OnProgress | None = None
) -> Backfill:
    """Have a model tell what older memories claim. Raises ModelRefused."""
    return claims.backfill(
        home, limit=request.limit, batch_size=request.batch_size, on_progress=on_progress
    )


# ----------------------------------------------------------------------------
# The review queue: what waits for a person, and what they decide about it.


def listed(home: Home, request: ReviewRequest) -> PendingPage:
    """List conflicts, the oldest first, then memories in doubt, the oldest first, then the likeliest candidates.

    A memory that waits because another one contradicts it is listed as their conflict only.
    """
    catch_up(home)
    note_stale(home)
    doubts = _doubts(home)
    pairs = contradictions.waiting(home)
    in_conflict = {pair.older.id for pair in pairs}
    items = [
        *(
            Pending(
                pair.id,
                PendingKind.CONFLICT,
                pair.older,
                Reason.CONTRADICTED.value,
                pair.reason,
                pair.judged.at if pair.judged else pair.newer.created,
                pair.newer,
                pair.judged,
            )
            for pair in pairs
        ),
        *(
            Pending(
                memory.id, PendingKind.DOUBT, memory, entry.reason.value, entry.detail, entry.since
            )
            for memory, entry in _one_each(doubts, in_conflict)
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
    if request.project:
        items = [
            item
            for item in items
            if request.project in (item.memory.project, item.newer and item.newer.project)
        ]
    counts = Counter(item.kind for item in items)
    if request.only:
        items = [item for item in items if item.kind is request.only]
    shown = items[request.offset :][: request.limit or None]
    return PendingPage(
        tuple(shown),
        len(items),
        counts[PendingKind.CONFLICT],
        counts[PendingKind.DOUBT],
        counts[PendingKind.CANDIDATE],
    )


def _doubts(home: Home) -> list[tuple[Memory, QueuedReview]]:
    """The pending entries, the oldest first."""
    fold_usage(home)
    queue_reviews(home)
    entries = home.reviews.pending()
    memories = {
        memory.id: memory
        for memory in home.memories.rows_of([entry.memory for entry in entries]).values()
    }
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
        candidate = contradictions.find_candidates(home, reference)
        if candidate:
            outcome = contradictions.keep(home, candidate, request)
            kept.append(store.get(home, outcome.memory_id))
        elif "+" in reference and request.into is None:
            if request.content is not None:
                raise InvalidInput(
                    "a conflict has no words of its own", hint="edit one of its memories"
                )
            kept.append(
                contradictions.resolve(
                    home, contradictions.find(home, reference), Choice.KEEP_BOTH
                ).older
            )
        else:
            memories.append(
                contradictions.find(home, reference).older.id if "+" in reference else reference
            )
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
        kept = [
            home.memories.find(memory.id) or memory for memory in kept
        ]  # with what it is apart from
        if content is not None:
            kept = [_reworded(change, kept[0], content)]
        keep(change, kept)
        with change.transaction():
            change.append(
                [change.entry(REVIEW, **memories_in_entry([memory.id for memory in kept]))]
            )
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
    )
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
            target = replace(
                target, links=(*target.links, Link(SUPERSEDES, memory.id, "merged in review"))
            )
            merged = merge_into(change, target, without_doubt(memory, target.id), content)
            change.put([ended(without_doubt(memory, target.id), merged)])
    return merged


def drop(home: Home, request: ReviewDropRequest) -> list[Memory]:
    """Drop candidates and retire memories in doubt. Raises NotFound, Conflict."""
    dropped, memories = [], []
    for reference in request.references:
        if "+" in reference:
            raise Conflict(
                f"{reference} is a conflict",
                hint=f"nacre review resolve {reference} keep-new or keep-old",
            )
        candidate = contradictions.find_candidates(home, reference)
        if candidate:
            dropped.append(candidate)
        else:
            memories.append(reference)
    waiting = _waiting(home, memories) if memories else []
    gone = contradictions.drop(home, dropped) if dropped else []
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
    found = {
        memory.id: memory for memory in (store.get(home, reference) for reference in references)
    }
    absent = next((memory for memory in found.values() if memory.id not in waiting), None)
    if absent:
        raise NotFound(
            f"{absent.subject!r} waits for no review", hint="nacre review lists what does"
        )
    return [waiting[memory_id] for memory_id in found]


# ----------------------------------------------------------------------------
# Group questions that ask the same thing in other words.
#
# Each question joins the group whose questions are nearest to it on average, or begins its own.
# Vectors of the bundled
# model are compared where there are any, else the stems of words. ``python -m benchmarks gaps``
# measures the borders.


COSINE = 0.65
JACCARD = 0.35
"""Of stems (seed facts 2.1)."""

Likeness = Callable[[int, int], float]
"""How alike two questions are by their places; from 1 on they ask the same."""


def stems_of(question: str) -> frozenset[str]:
    """The stems of what a question is about: without stop words and words that only ask, if others are left."""
    said = words(question)
    return frozenset(
        stem(word) for word in said if word not in STOP_WORDS and not asks(word)
    ) or frozenset(said)


def group(home: Home, questions: Sequence[str]) -> tuple[list[list[int]], str]:
    """The places of questions in groups, and by what: ``cosine`` or ``words``."""
    vectors = _vectors(home, questions)
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
    """By the Jaccard similarity of stems."""

    def likeness(first: int, second: int) -> float:
        one, other = stems[first], stems[second]
        return len(one & other) / len(one | other) / JACCARD if one | other else 0.0

    return likeness


def gather(count: int, likeness: Likeness) -> list[list[int]]:
    """Put each item into the nearest group by the average likeness, if that is 1 at least; else begin one with it."""
    groups: list[list[int]] = []
    for item in range(count):
        near = [
            (sum(likeness(item, other) for other in members) / len(members), members)
            for members in groups
        ]
        best, members = max(near, key=lambda one: one[0], default=(0.0, []))
        if best >= 1:
            members.append(item)
        else:
            groups.append([item])
    return groups


def _vectors(home: Home, questions: Sequence[str]) -> NDArray[np.float32] | None:
    """By the bundled model, whichever made the vectors of memories: the border is its own, and nothing is sent away."""
    if home.settings.text("embedding.model") == "none":
        return None
    try:
        return embedder_of(home, BUNDLED).embed(questions)
    except EmbedderUnavailable:
        return None


# ----------------------------------------------------------------------------
# Questions to the owner: how memories stand to each other that nothing connects, and which of two
# that contradict
# each other holds. An answer is a link, a memory, or a decision; links that it makes have ``origin:
# reflect``.
#
# No model is asked here; a writer may be asked in dreams (:mod:`nacre.review.relations`).


ORIGIN = "reflect"
"""The origin of the links that answers make."""

_ACTION = "reflect"
_SKIPPED = "reflect.skipped"
_MOST_SKIPPED = 2_000
_SHARED_BY = 4
"""A name that more memories share says little about any two of them."""


def reflect(home: Home, asked: ReflectRequest) -> Reflection:
    """What is most worth asking, each memory once.

    First what contradicts each other, the oldest doubt first. Then what is near in meaning or shares a name without a
    link: what was said and used most first, then the nearest.
    """
    catch_up(home)
    fold_usage(home)
    found = [
        one
        for one in _not_skipped(home, chain(_contradicting(home), _unconnected(home)))
        if asked.project in (None, one.first.project)
    ]
    chosen: list[Question] = []
    used: set[str] = set()
    for one in found:
        if len(chosen) < asked.limit and not {one.first.id, one.second.id} & used:
            chosen.append(one)
            used |= {one.first.id, one.second.id}
    return Reflection(tuple(chosen), len(found))


def unconnected(home: Home) -> list[Question]:
    """All pairs that nothing connects and that the owner did not decline, the one most worth asking about first."""
    return list(_not_skipped(home, _unconnected(home)))


def _not_skipped(home: Home, questions: Iterable[Question]) -> Iterator[Question]:
    skipped = set(_skipped(home))
    return (
        question for question in questions if _key(question.first, question.second) not in skipped
    )


def _contradicting(home: Home) -> Iterator[Question]:
    for pair in pending(home):
        yield Question(
            pair.newer, pair.older, pair.reason or "one of them may be outdated", contradicts=True
        )


def _unconnected(home: Home) -> list[Question]:
    """Pairs of one place that somebody answers for, near in meaning or with a name in common, and without a link."""
    held = [
        memory for memory in home.memories.everything() if memory.is_active and memory.is_vouched
    ]
    memories = {one.id: one for one in held}
    connected = home.links.connected()
    near = {(one.source, one.target): one.strength for one in home.links.alike()}
    shared = _sharing(held)
    usage = home.usage.of(list(memories))
    uses = {
        one.id: len(one.confirmed) + (usage[one.id].access_count if one.id in usage else 0)
        for one in held
    }
    ranked: dict[tuple[str, str], tuple[int, float, float, Question]] = {}
    for pair in chain(near, shared):
        if pair in connected or any(one not in memories for one in pair):
            continue
        first, second = (memories[one] for one in pair)
        if not first.shares_place(second):
            continue
        if second.is_said_after(first):
            first, second = second, first
        key = _key(first, second)
        names = shared.get(pair) or shared.get((pair[1], pair[0])) or ()
        cosine = max(near.get(pair, 0.0), near.get((pair[1], pair[0]), 0.0))
        why = f"both name {', '.join(names[:3])}" if names else "near in meaning"
        at = first.last_said.timestamp()
        ranked[key] = (
            uses[first.id] + uses[second.id],
            cosine,
            at,
            Question(first, second, f"{why}; no link"),
        )
    return [one[3] for one in sorted(ranked.values(), key=lambda one: one[:3], reverse=True)]


def _sharing(memories: Sequence[Memory]) -> dict[tuple[str, str], list[str]]:
    """Pairs of memories with the names that both have, and few others: paths, names of code, error codes."""
    named: dict[tuple[str | None, str], list[str]] = defaultdict(list)
    for memory in memories:
        for name in {name.lower() for name in identifiers(f"{memory.subject} {memory.content}")}:
            named[memory.project, name].append(memory.id)
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for (_, name), ids in sorted(named.items(), key=lambda item: item[0][1]):
        for pair in combinations(ids, 2) if len(ids) <= _SHARED_BY else ():
            found[pair].append(name)
    return found


def answer(home: Home, asked: ReflectAnswerRequest) -> Reflected:
    """Do as the owner answers. Raises NotFound, Conflict, InvalidInput, EditConflict."""
    given = [name for name in ("text", "link", "keep", "skip") if getattr(asked, name)]
    if len(given) != 1:
        raise InvalidInput(
            "an answer is a link, a sentence, what to keep, or to skip",
            hint='nacre reflect answer ID --link depends_on, or "a sentence", or --skip',
        )
    catch_up(home)
    first, second = _meant(home, asked.reference)
    if asked.skip:
        home.usage.set_value(
            _SKIPPED, json.dumps([*_skipped(home), _key(first, second)][-_MOST_SKIPPED:])
        )
        return Reflected("skipped", first, second)
    pair = _conflict(home, first, second)
    if asked.keep:
        if pair is None:
            raise Conflict(
                "these two are in no conflict", hint="--link contradicts says that they are"
            )
        settled = contradictions_resolve(home, pair, asked.keep)
        return _reflected("settled", settled, first)
    with home.change(_ACTION, subject=first.subject) as change, change.transaction():
        if asked.link:
            return _linked(change, first, second, asked.link, pair)
        return _said(change, first, second, asked)


def _meant(home: Home, reference: str) -> tuple[Memory, Memory]:
    ends = [one.strip() for one in reference.split("+")]
    if len(ends) != 2 or not all(ends):
        raise InvalidInput(
            f"{reference!r} names no question", hint="nacre reflect shows ids, as 5f0c2a4d+91d0a4be"
        )
    first, second = (get(home, end) for end in ends)
    if first.id == second.id or not first.shares_place(second):
        raise Conflict(
            "a question is about two memories of one project", hint="nacre reflect shows which"
        )
    gone = next((one for one in (first, second) if not one.is_active), None)
    if gone:
        raise Conflict(
            f"{gone.subject!r} holds no more", hint=f"nacre show {gone.id[-8:]} tells why"
        )
    return first, second


def _conflict(home: Home, first: Memory, second: Memory) -> Pair | None:
    ids = {first.id, second.id}
    return next((pair for pair in pending(home) if {pair.older.id, pair.newer.id} == ids), None)


def _linked(
    change: Change, first: Memory, second: Memory, link: Relates, pair: Pair | None
) -> Reflected:
    """Draw a link. Who connects what was in doubt says that both hold; a new doubt is the later one's."""
    if link == CONTRADICTS:
        if pair:
            raise Conflict("these two are in doubt already", hint="--keep says which one holds")
        first, second = (second, first) if second.is_said_after(first) else (first, second)
    elif pair:
        pair = settle(change, pair, Choice.KEEP_BOTH)
        both = {one.id: one for one in (pair.older, pair.newer)}
        first, second = both[first.id], both[second.id]
    known = [one for one in first.links if (one.rel, one.to) != (link.value, second.id)]
    first = replace(first, links=(*known, Link(link.value, second.id, origin=ORIGIN)))
    change.put([first])
    return Reflected("linked", first, second)


def _said(change: Change, first: Memory, second: Memory, asked: ReflectAnswerRequest) -> Reflected:
    """Store what the owner says of both, where both hold, with a link to each."""
    home = change.home
    kind = Kind.LESSON if asked.lesson else Kind.FACT
    new = StoreRequest(
        content=asked.text or "", kind=kind, project=first.project, speaker=Speaker.OWNER
    )
    links = tuple(Link(Relates.RELATED_TO.value, one.id, origin=ORIGIN) for one in (first, second))
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
    now = [home.memories.find(one.id) or one for one in (first, second)]
    return Reflected("stored", now[0], now[1], stored)


def _reflected(action: str, pair: Pair, first: Memory) -> Reflected:
    is_newer = pair.newer.id == first.id
    return Reflected(action, *((pair.newer, pair.older) if is_newer else (pair.older, pair.newer)))


def _skipped(home: Home) -> list[tuple[str, str]]:
    return [(one, other) for one, other in json.loads(home.usage.value(_SKIPPED) or "[]")]


def _key(first: Memory, second: Memory) -> tuple[str, str]:
    return (min(first.id, second.id), max(first.id, second.id))


# ----------------------------------------------------------------------------
# Take back what was decided in review: what it wrote is undone, and it waits again.


_DECISIONS = frozenset({REVIEW, "retire", RESOLVE})


def reopen(home: Home, request: ReviewUndoRequest) -> Memory:
    """Take back the last decision about a candidate or a memory; returns what waits again.

    A candidate can be brought back for a day. The quality that a kept memory was raised to stays. Raises NotFound,
    Conflict where what was decided was changed since.
    """
    reference = request.reference.strip()
    found = home.candidates.settled(reference)
    if len(found) > 1:
        raise Conflict(f"{reference!r} means several candidates", hint="give more of the id")
    return _reopen_candidate(home, found[0]) if found else _reopen_review(home, reference)


def _reopen_candidate(home: Home, candidate: HeldCandidate) -> Memory:
    why = kept_because(candidate)
    is_undone = _undo_first(home, candidate.found, lambda operation: operation.why == why)
    kept = home.memories.find(candidate.memory.id)
    if not is_undone and kept and kept.is_active:
        raise Conflict(
            "what this decision wrote is not known any more, after a rebuild without git",
            hint=f"nacre retire {kept.id[-8:]} takes the memory out",
        )
    with home.database.transaction():
        home.candidates.unsettle(candidate.memory.id)
    return candidate.memory


def _reopen_review(home: Home, reference: str) -> Memory:
    memories = [get(home, each) for each in reference.split("+")]
    ids = {memory.id for memory in memories}
    settled = home.reviews.settled(memories[0].id)
    if settled is None and len(ids) == 1:
        raise NotFound(
            f"nothing was decided about {memories[0].subject!r} in review",
            hint="nacre undo takes back other changes",
        )
    since, at = settled or (0, 0)
    if len(ids) > 1:
        since = max(since, *(to_ms(memory.created) or 0 for memory in memories))
    is_undone = _undo_first(
        home,
        at_ms(since),
        lambda operation: (
            operation.action in _DECISIONS and bool(ids & set(memories_of(home, operation)))
        ),
    )
    if not is_undone and len(ids) > 1:
        raise NotFound(
            f"nothing was decided about {reference}", hint="nacre undo takes back other changes"
        )
    with home.database.transaction():
        home.reviews.reopen(memories[0].id, at)
    return get(home, memories[0].id)


def _undo_first(home: Home, since: datetime, is_meant: Callable[[Operation], bool]) -> bool:
    """Undo the latest operation that is meant; returns whether there is one: the decision may have written nothing."""
    look(home)
    for operation in not_undone(home):
        if operation.at < since:
            break
        if is_meant(operation):
            undo(home, operation.id)
            return True
    return False


# ----------------------------------------------------------------------------
# Gaps: what nacre was asked and could not answer.
#
# Every answered question leaves a case (:mod:`nacre.recall.ranking`), so there is no other log:
# questions are without
# secrets, kept for ``traces.keep_days``, and reached by ``forget`` and ``scrub``. Prompts that hooks
# look up leave none:
# most need nothing that could be known.


MOST_QUESTIONS = 300
"""Wordings that are grouped, the latest: each is embedded."""

MOST_ASKED_AGAIN = 60
"""Wordings that one listing asks again, to see whether they are answered by now."""

_DISMISSED = "gaps.dismissed"
_MOST_DISMISSED = 2_000
_EVER = timedelta(days=3650)
_REFERENCE = 8
_TODO_CHARACTERS = 300
_KEY_BYTES = 12


@dataclass(frozen=True, slots=True)
class _Wording:
    """One wording of a question, with its cases, the latest first."""

    text: str
    cases: tuple[Trace, ...]

    @property
    def projects(self) -> Counter[str]:
        """The projects that it was asked about, with how often."""
        return Counter(name for case in self.cases for name in _noted(case, PROJECTS))

    @property
    def key(self) -> str:
        """A hash of its stems: what was dismissed is known again, and no word of it is kept."""
        said = " ".join(sorted(stems_of(self.text)))
        return hashlib.blake2b(said.encode("utf-8", "replace"), digest_size=_KEY_BYTES).hexdigest()


def unanswered(home: Home, asked: UnansweredRequest) -> Unanswered:
    """Questions that were asked and not answered, grouped: the one asked most first, then the latest.

    Those that would be answered today are left out: what is to be shown is asked again, without counting as use.
    Raises StoreBusy.
    """
    groups, by = _groups(home, timedelta(days=asked.days), asked.project)
    wanted = [group for group in groups if _gap(group).times >= asked.min_times]
    shown: list[UnansweredQuestion] = []
    closed = 0
    asking = _Asking(home)
    for wordings in wanted:
        if len(shown) == asked.limit:
            break
        left = asking.without_answer(wordings)
        if left and _gap(left).times >= asked.min_times:
            shown.append(_gap(left))
        else:
            closed += 1
    return Unanswered(tuple(sorted(shown, key=_rank)), len(wanted) - closed, closed, by)


def dismiss(home: Home, request: GapRequest) -> UnansweredQuestion:
    """List a gap no more, in any of its wordings. Raises NotFound, Conflict."""
    wordings = _find(home, request.reference)
    with home.database.transaction():
        held = dict.fromkeys([*_dismissed(home), *(wording.key for wording in wordings)])
        home.usage.set_value(_DISMISSED, json.dumps(list(held)[-_MOST_DISMISSED:]))
    return _gap(wordings)


def add_todo(home: Home, request: GapTodoRequest) -> StoreOutcome:
    """Store the owner's todo to write down what a gap asks, in the project it was asked about most.

    From then on the todo answers the question. Raises NotFound, Conflict, and what storing raises.
    """
    wordings = _find(home, request.reference)
    projects = sum((wording.projects for wording in wordings), Counter[str]()).most_common(1)
    question = shorten(_gap(wordings).question, _TODO_CHARACTERS)
    new = StoreRequest(
        content=f"Write down: {question}",
        kind=Kind.TODO,
        importance=request.importance,
        speaker=Speaker.OWNER,
        project=projects[0][0] if projects else None,
    )
    return store_store(home, new)


def _groups(
    home: Home, since: timedelta, project: str | None = None
) -> tuple[list[list[_Wording]], str]:
    """Groups of wordings, but for those that were dismissed: those asked most first."""
    wordings = list(_wordings(home, since, project))[:MOST_QUESTIONS]
    wordings.reverse()  # the oldest first: what comes later joins the groups that are there
    places, by = group(home, [wording.text for wording in wordings]) if wordings else ([], "words")
    gone = set(_dismissed(home))
    groups = [[wordings[place] for place in places_of] for places_of in places]
    kept = [group for group in groups if gone.isdisjoint(wording.key for wording in group)]
    return sorted(kept, key=lambda one: _rank(_gap(one))), by


def _wordings(home: Home, since: timedelta, project: str | None) -> Iterator[_Wording]:
    """Every wording that was asked and not answered, the latest first."""
    fold_notes(home)
    cases: dict[str, list[Trace]] = {}
    for case in home.traces.unanswered(home.now() - since):
        if not _noted(case, NARROWED) and (project is None or project in _noted(case, PROJECTS)):
            cases.setdefault(" ".join(case.subject.lower().split()), []).append(case)
    for same in cases.values():
        yield _Wording(same[0].subject, tuple(same))


def _noted(case: Trace, name: str) -> list[str]:
    """What the first step of a case has under a name."""
    value = case.steps[0].more.get(name) if case.steps else None
    return value.split(",") if isinstance(value, str) else []


class _Asking:
    """Asks questions again, so many at most: what comes after them counts as without an answer."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._left = MOST_ASKED_AGAIN

    def without_answer(self, wordings: Sequence[_Wording]) -> list[_Wording]:
        """A group from the first wording on that has no answer today, those asked most first."""
        ranked = _ranked(wordings)
        answered = takewhile(self._is_answered, ranked)
        return ranked[sum(1 for _ in answered) :]

    def _is_answered(self, wording: _Wording) -> bool:
        """For all the projects it was asked about."""
        if self._left <= 0:
            return False
        self._left -= 1
        turns = min(1, self._home.settings.whole("recall.turns"))
        wanted = Filter(projects=tuple(sorted(wording.projects)))
        query = RecallQuery(
            wording.text,
            filter=wanted,
            limit=1,
            turns=turns,
            confident=True,
            update=False,
            co_recall=False,
        )
        found = recall(self._home, query)
        return bool(found.hits or found.turns)


def _gap(wordings: Sequence[_Wording]) -> UnansweredQuestion:
    """What is told of a group: the wording asked most, of these the latest, stands for it."""
    ranked = _ranked(wordings)
    cases = sorted(
        (case for wording in wordings for case in wording.cases), key=lambda case: case.began
    )
    projects = sum((wording.projects for wording in wordings), Counter[str]())
    return UnansweredQuestion(
        cases[-1].id[-_REFERENCE:],
        ranked[0].text,
        len(cases),
        sum(case.outcome == NOT_SURE for case in cases),
        cases[0].began,
        cases[-1].began,
        tuple(name for name, _ in projects.most_common()),
        tuple(one.text for one in ranked[1:]),
    )


def _ranked(wordings: Sequence[_Wording]) -> list[_Wording]:
    """Those asked most first, then the latest."""
    return sorted(
        wordings, key=lambda wording: (len(wording.cases), wording.cases[0].began), reverse=True
    )


def _rank(gap: UnansweredQuestion) -> tuple[int, float]:
    return (-gap.times, -gap.last.timestamp())


def _find(home: Home, reference: str) -> list[_Wording]:
    """The group of a case. Raises NotFound, Conflict."""
    wanted = reference.strip()
    groups, _ = _groups(home, _EVER)
    found = [
        group
        for group in groups
        if any(_names(wanted, case.id) for wording in group for case in wording.cases)
    ]
    if not found:
        raise NotFound(
            f"no gap is called {reference!r}", hint="nacre gaps lists what was not answered"
        )
    if len(found) > 1:
        raise Conflict(f"{reference!r} means several gaps", hint="give more of the id")
    return found[0]


def _names(reference: str, case: str) -> bool:
    return case == reference or (len(reference) >= _REFERENCE // 2 and case.endswith(reference))


def _dismissed(home: Home) -> list[str]:
    return list(json.loads(home.usage.value(_DISMISSED) or "[]"))
