"""The review queue: conflicts, candidates, doubtful memories, and unanswered questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Annotated, NamedTuple

from nacre.base.bounds import bounds
from nacre.base.frozen import frozen
from nacre.base.ids import at_ms, to_ms
from nacre.base.text import (
    STOP_WORDS,
    count,
    is_unspaced,
    normalise,
    shorten,
    stem,
    title_of,
    words,
)
from nacre.data import undo as data_undo
from nacre.errors import (
    ConflictError,
    DepartedError,
    EmbedderUnavailableError,
    InvalidInputError,
    NotFoundError,
    refuse_several,
)
from nacre.home.change import Change
from nacre.home.home import BUNDLED, Home
from nacre.home.location import redact
from nacre.home.operations import memories_in_entry, subject_of
from nacre.home.spending import embedder_of, fold_notes
from nacre.home.views import Choice, Pair, Pending, PendingKind, PendingPage
from nacre.learn.explicit import leans
from nacre.learn.sentences import language_of, utterances
from nacre.llm.calibration import calibration_of
from nacre.memories.edit import catch_up, scan
from nacre.memories.judge import (
    APART,
    SUPERSEDES,
    Action,
    Decision,
    Rarity,
    Relation,
    compare,
    judge,
    mark_ended,
    release,
    without_doubt,
)
from nacre.memories.placement import place, rarity_of, unite
from nacre.memories.requests import Expected, keep
from nacre.memories.store import get, refuse_broken, refuse_changed, retire
from nacre.memories.usage import KEPT_QUALITY, fold_usage, note_stale, queue_reviews
from nacre.operations import operation
from nacre.recall import recall as recall_recall
from nacre.recall.question import is_question_word
from nacre.values.fields import Offset, OnlyProject
from nacre.values.memory import (
    DROP,
    REVIEW,
    Confirmation,
    HeldCandidate,
    Link,
    Memory,
    Operation,
    Retirement,
    by_id,
)
from nacre.values.models import NOT_SURE, AskedQuestion
from nacre.values.recall import Filter, Mode, RecallQuery
from nacre.values.review import QueuedReview, Reason, Unanswered, UnansweredQuestion
from nacre.values.session import Trust, Turn

Item = Annotated[
    str,
    bounds(
        "The id of a candidate or memory, or of a conflict: both memories' ids joined by +, or one if unambiguous."
    ),
]


Items = Annotated[tuple[Item, ...], bounds("Ids of the items.", min_length=1)]


# -- Merging into a second memory ---------------------------------------------


def target_of(home: Home, reference: str, memory: Memory) -> Memory:
    """Return the memory named by ``reference``, into which ``memory`` can be merged.

    Raises NotFoundError for an unknown reference, ConflictError for an inactive memory or
    ``memory`` itself, and InvalidMemoryError for a malformed file.
    """
    target = get(home, reference)
    if target.id == memory.id or not target.is_active:
        why = "the same memory" if target.id == memory.id else "superseded or retired"
        raise ConflictError(
            f"{target.subject!r} is {why}",
            hint="merge it into another memory; nacre list shows ids",
        )
    refuse_broken(home, target)
    return target


def words_of_both(target: Memory, memory: Memory) -> str:
    """Return the joined texts of two memories, or the target's text if it contains the other."""
    if normalise(memory.content) in normalise(target.content):
        return target.content
    between = "\n\n" if "\n" in target.content + memory.content else " "
    return f"{target.content.rstrip()}{between}{memory.content.strip()}"


def merge_into(
    home: Home, reference: str, memory: Memory, content: str | None, candidate: HeldCandidate | None
) -> Memory:
    """Merge a memory or a candidate into the memory named by ``reference``, which becomes trusted.

    Its subject, kind and speaker stay. By default, the texts are joined. Raises the errors of
    :func:`target_of`, and EditConflictError if the file was edited meanwhile.
    """
    why = keep_reason(candidate) if candidate else "merged in review"
    with home.change("merge" if candidate else REVIEW, why=why) as change:
        catch_up(home)
        target = target_of(home, reference, memory)
        change.describe(subject=target.subject)
        words = content or words_of_both(target, memory)
        with change.transaction():
            decision = Decision(Action.UPDATE, "you", "in review", target.id, merged=words)
            merged = unite(home, without_doubt(target, memory.id), memory, decision).as_worded()
            if not candidate:
                links = (*merged.links, Link(SUPERSEDES, memory.id, why))
                merged = replace(merged, links=links)
            merged = replace(merged, trust=Trust.TRUSTED, proposed=False, updated=home.now())
            change.put([merged])
            home.usage.confirm(target.id)
            home.comparisons.wait(merged.id)
            if candidate:
                _settle_candidate(change, memory)
            else:
                change.put([mark_ended(without_doubt(memory, target.id), merged)])
    return merged


# -- Conflicts ----------------------------------------------------------------
# A conflict is a ``contradicts`` link in the newer memory's front matter, which survives a rebuild and
# a sync. Decisions are stored in both files and the ledger, and can be undone.


RESOLVE = "resolve"
"""Name in the ledger for decisions about conflicts."""

_MIN_REFERENCE_CHARACTERS = 4


def list_conflicts(home: Home) -> list[Pair]:
    """Return pairs of conflicting memories, oldest first, after importing manual edits."""
    catch_up(home)
    doubts = home.reviews.doubts()
    ids = sorted({memory for doubt in doubts for memory in (doubt.older, doubt.newer)})
    memories = by_id(home.memories.in_any_state(ids))
    return [Pair(memories[doubt.older], memories[doubt.newer], doubt.reason) for doubt in doubts]


def find_pair(home: Home, reference: str) -> Pair:
    """Return the pair named by two ids joined with ``+``, or by an id that occurs in only one pair.

    Raises NotFoundError, or ConflictError if several pairs match.
    """
    ends = [end.strip().lower() for end in reference.split("+")]
    pairs = []
    if len(ends) <= 2 and all(len(end) >= _MIN_REFERENCE_CHARACTERS for end in ends):
        pairs = [pair for pair in list_conflicts(home) if all(_is_in(pair, end) for end in ends)]
    if not pairs:
        raise NotFoundError(
            f"there is no conflict {reference!r}", hint="nacre review shows pending items"
        )
    refuse_several((pair.id for pair in pairs), reference, "conflicts")
    return pairs[0]


def _is_in(pair: Pair, reference: str) -> bool:
    return any(
        memory.id.endswith(reference) or memory.id.startswith(reference)
        for memory in (pair.older, pair.newer)
    )


def settle(change: Change, pair: Pair, choice: Choice, reason: str | None = None) -> Pair:
    """Settle a conflict as part of ``change``.

    The caller must have imported manual edits and redacted ``reason``.
    """
    home = change.home
    older, newer = (home.memories.find(memory.id) for memory in (pair.older, pair.newer))
    if (
        older is None
        or newer is None
        or not (older.is_active and newer.is_active)
        or without_doubt(newer, older.id) == newer
    ):
        raise ConflictError(f"conflict {pair.id} is already settled", hint="nacre log shows how")
    released = []
    why = next((link.reason for link in newer.links if link.to == older.id), None)
    older, newer = without_doubt(older, newer.id), without_doubt(newer, older.id)
    if choice is Choice.KEEP_NEW:
        newer = replace(newer, links=(*newer.links, Link(SUPERSEDES, older.id, why)))
        older = mark_ended(older, newer)
    elif choice is Choice.KEEP_OLD:
        cause = reason or pair.reason
        text = f"{older.id[-8:]} holds instead" + (f": {cause}" if cause else "")
        newer = replace(newer, retired=Retirement(home.now(), text))
        released = [memory for memory in release(home, [newer]) if memory.id != older.id]
    else:
        older = replace(older, links=(*older.links, Link(APART, newer.id)))
    note = change.entry(RESOLVE, memory=older.id, by=newer.id, choice=choice, reason=reason)
    change.put([older, newer, *released], [note])
    if not home.reviews.doubts([older.id]):
        with home.transaction():
            home.reviews.settle(older.id, Reason.CONTRADICTED, to_ms(change.operation.at) or 0)
    return replace(pair, older=older, newer=newer)


# -- Later statements that replace or contradict a candidate -------------------


_MAX_SIMILAR = 12
_MAX_HITS = 60
_CHANGES = (Relation.SUPERSEDES, Relation.DOUBTS)


class Departure(NamedTuple):
    """A statement that replaces or contradicts a memory, and its time."""

    text: str
    at: datetime


def find_departure(home: Home, memory: Memory) -> Departure | None:
    """Return the latest statement that replaces or contradicts a memory.

    This searches similar memories and the project's sessions.
    """
    neighbours = home.memories.by_rows(home.comparisons.alike(memory, limit=_MAX_SIMILAR)).values()
    departures = [
        Departure(comparison.other.content, comparison.other.last_said)
        for comparison in compare(memory, [other for other in neighbours if other.is_active])
        if comparison.is_replaced or comparison.is_doubted
    ]
    rarity = rarity_of(home)
    for row in home.sessions.find(memory.source.session or ""):
        turns = home.sessions.read_turns(row.row)
        departures += _in_turns(memory, turns, rarity)
    for turn in _later_turns(home, memory):
        departures += _in_turns(memory, [turn], rarity)
    return max(departures, key=lambda departure: departure.at, default=None)


def _later_turns(home: Home, memory: Memory) -> list[Turn]:
    if memory.project is None:
        return []
    criteria = Filter(projects=(memory.project,), strict=True, since=memory.last_said)
    query = RecallQuery(
        memory.content[:1_000], filter=criteria, mode=Mode.LEXICAL, limit=_MAX_HITS, update=False
    )
    return [hit.turn for hit in recall_recall.search_sessions(home, query).turns]


def _in_turns(memory: Memory, turns: Sequence[Turn], rarity: Rarity) -> Iterator[Departure]:
    for utterance in utterances(turns):
        turn = turns[utterance.index]
        if turn.trust is not Trust.TRUSTED or turn.time is None or turn.time <= memory.last_said:
            continue
        for text in (statement.text for statement in utterance.statements):
            claim = replace(
                memory,
                id="",
                subject=title_of(text),
                content=text,
                created=turn.time,
                canonical_key=None,
            )
            verdict = judge(memory, claim, None, calibration_of(None), rarity)
            if verdict.relation in _CHANGES:
                yield Departure(text, turn.time)


# -- Candidates ---------------------------------------------------------------


_LATER_CHARACTERS = 300


def keep_reason(candidate: HeldCandidate) -> str:
    """Return the reason for keeping a candidate, as recorded in the history."""
    return f"candidate {candidate.memory.id[-8:]} kept in review"


def keep_candidate(
    home: Home,
    candidate: HeldCandidate,
    *,
    content: str | None,
    into: str | None,
    anyway: bool,
) -> Memory:
    """Turn a candidate into a trusted memory, or merge it into the memory ``into``.

    Raises InvalidInputError if the text depends on missing context. Raises DepartedError if a later
    statement contradicts it, unless ``anyway`` is set.
    """
    if into is not None:
        return merge_into(home, into, redact(home.redactor, candidate.memory), content, candidate)
    memory = candidate.memory
    if content:
        memory = replace(memory, content=content, subject=title_of(content))
    memory = redact(home.redactor, memory)
    if not content and leans(memory.content, language_of(memory.content)):
        raise InvalidInputError(
            f"“{memory.content}” refers to something that it does not name",
            hint="name it: nacre review keep ID --content WORDS",
        )
    memory = replace(memory.as_worded(), trust=Trust.TRUSTED, proposed=False)
    if anyway:
        memory = replace(memory, confirmed=(*memory.confirmed, Confirmation(home.now())))
    elif later := find_departure(home, memory):
        raise DepartedError(
            f"on {later.at.astimezone():%Y-%m-%d}, after the candidate, you said: "
            f"“{shorten(later.text, _LATER_CHARACTERS)}”",
            hint="drop the candidate, or keep it with --anyway",
        )
    with (
        home.change("keep", subject=memory.subject, why=keep_reason(candidate)) as change,
        change.transaction(),
    ):
        outcome = place(change, memory, by_hand=True)
        _settle_candidate(change, candidate.memory)
    return get(home, outcome.memory_id)


def _settle_candidate(change: Change, memory: Memory) -> None:
    now = to_ms(change.operation.at) or 0
    change.home.candidates.settle(memory.id, now)
    change.home.candidates.blank(now)


def find_candidate(home: Home, reference: str) -> HeldCandidate | None:
    """Return the candidate whose id starts or ends with ``reference``.

    Raises ConflictError if several match.
    """
    return single_candidate(home.candidates.find(reference.strip()), reference)


def single_candidate(candidates: Sequence[HeldCandidate], reference: str) -> HeldCandidate | None:
    """Return the only candidate, or ``None``. Raises ConflictError if there are several."""
    refuse_several((item.memory.id for item in candidates), reference, "candidates")
    return next(iter(candidates), None)


@operation("review-resolve", writes=True, owners=True)
def resolve(
    home: Home,
    reference: Item,
    choice: Annotated[Choice, bounds("The memory that is true.")],
    reason: Annotated[str | None, bounds("The reason, kept in the ledger.")] = None,
) -> Pair:
    """Settle a conflict between two memories. Raises NotFoundError, ConflictError."""
    home.actor.require_owner("nacre review resolve")
    pair = find_pair(home, reference)
    clean = home.redactor.clean(reason) if reason else None
    why = f"{choice.value}: {clean}" if clean else choice
    with home.change(RESOLVE, subject=pair.older.subject, why=why) as change:
        catch_up(home)
        return settle(change, pair, choice, clean)


_MAX_COMPARED, _LISTED_CHARACTERS = 20, 200

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
    memory that is doubtful because of a conflict is not listed separately.
    """
    pairs = list_conflicts(home)
    note_stale(home)
    first_entries: dict[str, tuple[Memory, QueuedReview]] = {}
    for memory, entry in _doubts(home):
        if entry.reason is not Reason.CONTRADICTED:
            first_entries.setdefault(memory.id, (memory, entry))
    items = [
        *(
            Pending(
                pair.id,
                PendingKind.CONFLICT,
                pair.older,
                Reason.CONTRADICTED,
                pair.reason,
                pair.newer.created,
                pair.newer,
            )
            for pair in pairs
        ),
        *(
            Pending(memory.id, PendingKind.DOUBT, memory, entry.reason, entry.detail, entry.since)
            for memory, entry in first_entries.values()
        ),
        *(
            Pending(
                candidate.memory.id,
                PendingKind.CANDIDATE,
                candidate.memory,
                candidate.why,
                candidate.detail,
                candidate.found,
            )
            for candidate in home.candidates.pending()
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
    page = items[offset:][: limit or None]
    for at, item in enumerate(page[:_MAX_COMPARED]):
        later = None if item.newer else find_departure(home, item.memory)
        if later:
            page[at] = replace(item, later=shorten(later.text, _LISTED_CHARACTERS))
    return PendingPage(
        tuple(page),
        len(items),
        counts[PendingKind.CONFLICT],
        counts[PendingKind.DOUBT],
        counts[PendingKind.CANDIDATE],
    )


def _doubts(home: Home) -> list[tuple[Memory, QueuedReview]]:
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
    if content is not None:
        content = content.strip()
        if not content:
            raise InvalidInputError(
                "the memory has no content", hint="nacre review drop removes an item"
            )
    if len(references) > 1 and (into is not None or content is not None):
        raise InvalidInputError(
            "only a single item can be reworded or merged", hint="name a single item"
        )
    memories, doubtful = [], []
    for reference in references:
        if candidate := find_candidate(home, reference):
            memories.append(
                keep_candidate(home, candidate, content=content, into=into, anyway=anyway)
            )
        elif "+" in reference and into is None:
            if content is not None:
                raise InvalidInputError(
                    "a conflict has no text of its own", hint="edit one of its memories"
                )
            memories.append(resolve(home, reference, Choice.KEEP_BOTH).older)
        elif "+" in reference:
            doubtful.append(find_pair(home, reference).older.id)
        else:
            doubtful.append(reference)
    return memories + (_keep_doubted(home, doubtful, content, into, expected) if doubtful else [])


def _keep_doubted(
    home: Home,
    references: Sequence[str],
    content: str | None,
    into: str | None,
    expected: str | None,
) -> list[Memory]:
    memories = [memory for memory, _ in _find_pending(home, references)]
    if into is not None:
        return [merge_into(home, into, memories[0], content, None)]
    usage = home.usage.of([memory.id for memory in memories])
    pairs = [
        Pair(memory, newer, None)
        for memory in memories
        for doubt in home.reviews.doubts([memory.id])
        if (newer := home.memories.find(doubt.newer))
    ]
    why = "both hold" if pairs else "kept in review"
    with home.change(REVIEW, subject=subject_of(memories), why=why) as change:
        if expected is not None:
            scan(home)
            refuse_changed(home, memories[0].id, expected)
        for pair in pairs:
            settle(change, pair, Choice.KEEP_BOTH)
        # Reload the memories, because settling added links.
        memories = [home.memories.find(memory.id) or memory for memory in memories]
        if content is not None:
            memories = [_reword(change, memories[0], content)]
        keep(change, memories)
        with change.transaction():
            change.note(REVIEW, **memories_in_entry([memory.id for memory in memories]))
            for memory in memories:
                home.reviews.dismiss(memory.id, to_ms(change.operation.at) or 0)
                if usage[memory.id].quality < KEPT_QUALITY:
                    home.usage.set_quality(memory.id, KEPT_QUALITY)
    return memories


def _reword(change: Change, memory: Memory, content: str) -> Memory:
    home = change.home
    subject = title_of(content) if memory.subject == title_of(memory.content) else memory.subject
    changed = replace(
        memory, content=content, subject=subject, trust=Trust.TRUSTED, updated=home.now()
    )
    changed = redact(home.redactor, changed)
    change.put([changed])
    return changed


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
    dropped: list[Memory] = []
    memories = []
    for reference in references:
        if "+" in reference:
            raise ConflictError(
                f"{reference} is a conflict",
                hint=f"nacre review resolve {reference} keep-new or keep-old",
            )
        candidate = find_candidate(home, reference)
        if candidate:
            dropped.append(candidate.memory)
        else:
            memories.append(reference)
    pending = _find_pending(home, memories) if memories else []
    if dropped:  # their text is not kept in the history
        with (
            home.change(DROP, subject=count(len(dropped), "candidate")) as change,
            change.transaction(),
        ):
            change.note(DROP, candidates=sorted(memory.id for memory in dropped))
            for memory in dropped:
                _settle_candidate(change, memory)
    for memory, entry in pending:
        dropped += retire(home, [memory.id], reason or f"review: {entry.detail}")
    return dropped


def _find_pending(home: Home, references: Sequence[str]) -> list[tuple[Memory, QueuedReview]]:
    catch_up(home)
    pending = {memory.id: (memory, entry) for memory, entry in reversed(_doubts(home))}
    referenced = by_id(get(home, reference) for reference in references)
    absent = next((memory for memory in referenced.values() if memory.id not in pending), None)
    if absent:
        raise NotFoundError(
            f"{absent.subject!r} has no pending review", hint="nacre review lists pending items"
        )
    return [pending[memory_id] for memory_id in referenced]


# -- Grouping questions -------------------------------------------------------
# A question joins the group with the highest mean similarity, or starts a group. Vectors of the
# bundled model are used if available, else word stems.


COSINE = 0.65
JACCARD = 0.35
"""Minimum similarity of questions in a group, for vectors and for stems."""


def stems_of(question: str) -> frozenset[str]:
    """Return the stems of a question's content words, or of all words if there are none."""
    all_words = words(question)
    return frozenset(
        stem(word) for word in all_words if word not in STOP_WORDS and not is_question_word(word)
    ) or frozenset(all_words)


def group(home: Home, questions: Sequence[str]) -> tuple[list[list[int]], str]:
    """Return groups of similar questions, as indexes, and the measure used (``cosine`` or ``words``)."""
    vectors = None
    if home.settings.embeds:
        # The bundled model works offline and has a known threshold.
        with suppress(EmbedderUnavailableError):
            vectors = embedder_of(home, BUNDLED).embed(questions)
    stems = [stems_of(question) for question in questions]
    by_words = [vectors is None or is_unspaced(question) for question in questions]

    # Questions with a likeness of at least 1 belong together.
    def likeness(first: int, second: int) -> float:
        if vectors is None or by_words[first] or by_words[second]:
            left, right = stems[first], stems[second]
            return len(left & right) / len(left | right) / JACCARD if left | right else 0.0
        return float(vectors[first] @ vectors[second]) / COSINE

    groups: list[list[int]] = []
    for item in range(len(questions)):
        near = [
            (sum(likeness(item, member) for member in members) / len(members), members)
            for members in groups
        ]
        best, members = max(near, key=lambda scored: scored[0], default=(0.0, []))
        if best >= 1:
            members.append(item)
        else:
            groups.append([item])
    return groups, "words" if vectors is None else "cosine"


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
    candidate = single_candidate(home.candidates.settled(reference), reference)
    return _reopen_candidate(home, candidate) if candidate else _reopen_review(home, reference)


def _reopen_candidate(home: Home, candidate: HeldCandidate) -> Memory:
    why = keep_reason(candidate)
    is_undone = _undo_latest(home, candidate.found, lambda operation: operation.why == why)
    memory = home.memories.find(candidate.memory.id)
    if not is_undone and memory and memory.is_active:
        raise ConflictError(
            "the changes of this decision are unknown after a rebuild without git",
            hint=f"nacre retire {memory.id[-8:]} retires the memory",
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
# Recall keeps a redacted record of every question for ``traces.keep_days``, unless ``forget`` or
# ``scrub`` removes it. Searches for prompts are not recorded, as most prompts need no memory.


MOST_QUESTIONS = 300
"""Maximum number of question wordings that are grouped. The latest are chosen."""

MOST_ASKED_AGAIN = 60
"""Maximum number of wordings that are searched for. The others count as unanswered."""

_REFERENCE_CHARACTERS = 8


@frozen
class _Wording:
    text: str
    cases: tuple[AskedQuestion, ...]  # latest first

    @property
    def projects(self) -> Counter[str]:
        return Counter(name for case in self.cases for name in case.projects)


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
    frequent = [wordings for wordings in groups if _count_cases(wordings) >= min_times]
    gaps: list[UnansweredQuestion] = []
    closed = searches = 0
    for wordings in frequent:
        if len(gaps) == limit:
            break
        while wordings and searches < MOST_ASKED_AGAIN:
            searches += 1
            if not _has_answer(home, wordings[0]):
                break
            del wordings[0]
        if wordings and _count_cases(wordings) >= min_times:
            gaps.append(_describe_gap(wordings))
        else:
            closed += 1
    gaps.sort(key=lambda gap: (-gap.times, -gap.last.timestamp()))
    return Unanswered(tuple(gaps), len(frequent) - closed, closed, by)


def _groups(home: Home, since: timedelta, project: str | None) -> tuple[list[list[_Wording]], str]:
    fold_notes(home)
    cases: dict[str, list[AskedQuestion]] = {}
    for case in home.questions.unanswered(home.now() - since):
        if not case.is_narrowed and (project is None or project in case.projects):
            cases.setdefault(" ".join(case.text.lower().split()), []).append(case)
    wordings = [_Wording(same[0].text, tuple(same)) for same in cases.values()][:MOST_QUESTIONS]
    wordings.reverse()  # later wordings join existing groups
    places, by = group(home, [wording.text for wording in wordings]) if wordings else ([], "words")
    groups = [
        sorted(
            (wordings[place] for place in places_of),
            key=lambda wording: (len(wording.cases), wording.cases[0].at),
            reverse=True,
        )
        for places_of in places
    ]
    groups.sort(
        key=lambda members: (
            _count_cases(members),
            max(wording.cases[0].at for wording in members),
        ),
        reverse=True,
    )
    return groups, by


def _count_cases(wordings: Sequence[_Wording]) -> int:
    return sum(len(wording.cases) for wording in wordings)


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
    cases = sorted(
        (case for wording in wordings for case in wording.cases), key=lambda case: case.at
    )
    projects = sum((wording.projects for wording in wordings), Counter[str]())
    return UnansweredQuestion(
        cases[-1].id[-_REFERENCE_CHARACTERS:],
        wordings[0].text,
        len(cases),
        sum(case.outcome == NOT_SURE for case in cases),
        cases[0].at,
        cases[-1].at,
        tuple(name for name, _ in projects.most_common()),
        tuple(wording.text for wording in wordings[1:]),
    )
