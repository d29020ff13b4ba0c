"""Decisions about conflicts and candidates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, NamedTuple

from nacre.base.bounds import bounds
from nacre.base.ids import to_ms
from nacre.base.text import count, normalise, shorten, title_of
from nacre.errors import (
    ConflictError,
    DepartedError,
    InvalidInputError,
    NotFoundError,
)
from nacre.home.change import Change
from nacre.home.home import Home
from nacre.home.location import redact
from nacre.home.views import Choice, Pair
from nacre.learn import explicit, sentences
from nacre.learn.sentences import utterances
from nacre.llm.calibration import calibration_of
from nacre.memories.edit import catch_up
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
from nacre.memories.store import get, refuse_broken
from nacre.recall.recall import search_sessions
from nacre.values.memory import (
    DROP,
    Confirmation,
    HeldCandidate,
    Link,
    Memory,
    Retirement,
    by_id,
)
from nacre.values.recall import Filter, Mode, RecallQuery
from nacre.values.reports import StoreOutcome
from nacre.values.review import Reason
from nacre.values.session import Trust, Turn

Item = Annotated[
    str,
    bounds(
        "The id of a candidate or memory, or of a conflict: both memories' ids joined by +, or one if unambiguous."
    ),
]


Items = Annotated[tuple[Item, ...], bounds("Ids of the items.", min_length=1)]


GapReference = Annotated[str, bounds("The gap, by its id or the id of any of its cases.")]


# -- Merging into a second memory ---------------------------------------------


_BY = "you"
_REASON = "in review"


def target_of(home: Home, reference: str, memory: Memory) -> Memory:
    """Return the memory to merge into. Raises NotFoundError, ConflictError, InvalidMemoryError."""
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
    """Return the joined text of two memories, or the target's text if it contains the other text."""
    if normalise(memory.content) in normalise(target.content):
        return target.content
    between = "\n\n" if "\n" in target.content + memory.content else " "
    return f"{target.content.rstrip()}{between}{memory.content.strip()}"


def merge_into(change: Change, target: Memory, memory: Memory, content: str | None) -> Memory:
    """Write the target with the given content, and mark the target as trusted.

    If ``content`` is None, join both texts. The target keeps its subject, kind and speaker. Tags
    and evidence are combined. Raises InvalidInputError, EditConflictError.
    """
    home = change.home
    words = (words_of_both(target, memory) if content is None else content).strip()
    if not words:
        raise InvalidInputError(
            "the memory has no content", hint="leave out the content to join both texts"
        )
    merged = unite(
        home, target, memory, Decision(Action.UPDATE, _BY, _REASON, target.id, merged=words)
    )
    merged = replace(merged.as_worded(), trust=Trust.TRUSTED, proposed=False, updated=home.now())
    change.put([merged])
    home.usage.confirm(target.id)
    home.comparisons.wait(merged.id)
    return merged


# -- Conflicts ----------------------------------------------------------------
# A pending pair is a ``contradicts`` link that rules or a dream added to the newer memory's front
# matter. The link survives a rebuild and a sync. Decisions are stored in both files and the ledger,
# and can be undone.


RESOLVE = "resolve"
"""Operation name of conflict decisions in the ledger."""

_MIN_REFERENCE_CHARACTERS = 4


def list_pending(home: Home) -> list[Pair]:
    """Import manual edits, and return the pairs in conflict, oldest first."""
    catch_up(home)
    return list_waiting(home)


def list_waiting(home: Home) -> list[Pair]:
    """Return the pairs in conflict without reading manual edits."""
    doubts = home.reviews.doubts()
    ids = sorted({memory for doubt in doubts for memory in (doubt.older, doubt.newer)})
    memories = by_id(home.memories.in_any_state(ids))
    return [Pair(memories[doubt.older], memories[doubt.newer], doubt.reason) for doubt in doubts]


def find(home: Home, reference: str) -> Pair:
    """Return the pair named by two ids joined with ``+``, or by an id that occurs in only one pair.

    Raises NotFoundError, ConflictError.
    """
    ends = [end.strip().lower() for end in reference.split("+")]
    pairs = []
    if len(ends) <= 2 and all(len(end) >= _MIN_REFERENCE_CHARACTERS for end in ends):
        pairs = [pair for pair in list_pending(home) if all(_is_in(pair, end) for end in ends)]
    if not pairs:
        raise NotFoundError(
            f"there is no conflict {reference!r}", hint="nacre review shows pending items"
        )
    if len(pairs) > 1:
        names = ", ".join(pair.id for pair in pairs)
        raise ConflictError(
            f"{reference!r} matches several conflicts: {names}", hint="give the id of one of them"
        )
    return pairs[0]


def _is_in(pair: Pair, reference: str) -> bool:
    return any(
        memory.id.endswith(reference) or memory.id.startswith(reference)
        for memory in (pair.older, pair.newer)
    )


def resolve(home: Home, pair: Pair, choice: Choice, reason: str | None = None) -> Pair:
    """Settle a pair as a person decided, and return both memories.

    With ``keep-new``, the newer memory supersedes the older memory. With ``keep-old``, the newer
    memory is retired. With ``keep-both``, both memories stay and no longer count as a conflict.
    Raises ConflictError if the pair is already settled.
    """
    home.actor.require_owner("nacre review resolve")
    clean = home.redactor.clean(reason) if reason else None
    why = f"{choice.value}: {clean}" if clean else choice.value
    with home.change(RESOLVE, subject=pair.older.subject, why=why) as change:
        catch_up(home)
        return settle(change, pair, choice, clean)


def settle(change: Change, pair: Pair, choice: Choice, reason: str | None = None) -> Pair:
    """Settle a conflict between two memories as part of ``change``.

    The caller must import manual edits first. ``reason`` must be redacted.
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
    others: list[Memory] = []
    why = next((link.reason for link in newer.links if link.to == older.id), None)
    older, newer = without_doubt(older, newer.id), without_doubt(newer, older.id)
    if choice is Choice.KEEP_NEW:
        newer = replace(newer, links=(*newer.links, Link(SUPERSEDES, older.id, why)))
        older = mark_ended(older, newer)
    elif choice is Choice.KEEP_OLD:
        cause = reason or pair.reason
        text = f"{older.id[-8:]} holds instead" + (f": {cause}" if cause else "")
        newer = replace(newer, retired=Retirement(home.now(), text))
        others = [memory for memory in release(home, [newer]) if memory.id != older.id]
    else:
        older = replace(older, links=(*older.links, Link(APART, newer.id)))
    note = change.entry(RESOLVE, memory=older.id, by=newer.id, choice=choice.value, reason=reason)
    change.put([older, newer, *others], [note])
    if not home.reviews.doubts([older.id]):
        with home.transaction():
            home.reviews.settle(older.id, Reason.CONTRADICTED, to_ms(change.at) or 0)
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

    Memories and the project's sessions are searched.
    """
    others = home.memories.by_rows(home.comparisons.alike(memory, limit=_MAX_SIMILAR)).values()
    departures = [
        Departure(comparison.other.content, comparison.other.last_said)
        for comparison in compare(memory, [other for other in others if other.is_active])
        if comparison.is_replaced or comparison.is_doubted
    ]
    rarity = rarity_of(home)
    for row in home.sessions.find(memory.source.session or ""):
        turns = [item.turn for item in home.sessions.turns_of(row.row)]
        departures += _in_turns(memory, turns, rarity)
    for turn in _later_turns(home, memory):
        departures += _in_turns(memory, [turn], rarity)
    return max(departures, key=lambda departure: departure.at, default=None)


def _later_turns(home: Home, memory: Memory) -> list[Turn]:
    """Return later turns of the memory's project that contain words of the memory."""
    if memory.project is None:
        return []
    criteria = Filter(projects=(memory.project,), strict=True, since=memory.last_said)
    query = RecallQuery(
        memory.content[:1_000], filter=criteria, mode=Mode.LEXICAL, limit=_MAX_HITS, update=False
    )
    return [hit.turn for hit in search_sessions(home, query).turns]


def _in_turns(memory: Memory, turns: Sequence[Turn], rarity: Rarity) -> Iterator[Departure]:
    for utterance in utterances(turns):
        turn = turns[utterance.index]
        if turn.trust is not Trust.TRUSTED or turn.time is None or turn.time <= memory.last_said:
            continue
        for text in (statement.text for statement in utterance.statements):
            stated = replace(
                memory,
                id="",
                subject=title_of(text),
                content=text,
                created=turn.time,
                canonical_key=None,
            )
            verdict = judge(memory, stated, None, calibration_of(None), rarity)
            if verdict.relation in _CHANGES:
                yield Departure(text, turn.time)


# -- Candidates ---------------------------------------------------------------


_SUBJECT_CHARACTERS = 60
_LATER_CHARACTERS = 300


def keep_reason(candidate: HeldCandidate) -> str:
    """Return the reason that is recorded when a candidate is kept."""
    return f"candidate {candidate.memory.id[-8:]} kept in review"


def keep(
    home: Home,
    candidate: HeldCandidate,
    *,
    content: str | None = None,
    into: str | None = None,
    anyway: bool = False,
) -> StoreOutcome:
    """Turn a candidate into a memory, optionally with new text, or merge the candidate into a memory.

    The result is trusted. Raises NotFoundError, ConflictError, DepartedError unless ``anyway`` is set, and
    InvalidInputError for empty content or content that depends on missing context.
    """
    if into is not None:
        return _merge(home, candidate, into, content)
    memory = redact(home.redactor, _with_content(candidate.memory, content))
    if content is None and explicit.leans(memory.content, sentences.language_of(memory.content)):
        raise InvalidInputError(
            f"“{memory.content}” refers to something that it does not name",
            hint="name it: nacre review keep ID --content WORDS",
        )
    kept = replace(memory.as_worded(), trust=Trust.TRUSTED, proposed=False)
    if anyway:
        kept = replace(kept, confirmed=(*kept.confirmed, Confirmation(home.now())))
    elif later := find_departure(home, kept):
        raise DepartedError(
            f"on {later.at.astimezone():%Y-%m-%d}, after the candidate, you said: "
            f"“{shorten(later.text, _LATER_CHARACTERS)}”",
            hint="drop the candidate, or keep it with --anyway",
        )
    with (
        home.change("keep", subject=kept.subject, why=keep_reason(candidate)) as change,
        change.transaction(),
    ):
        outcome = place(change, kept, by_hand=True)
        _settle(change, candidate.memory)
    return outcome


def _merge(home: Home, candidate: HeldCandidate, into: str, content: str | None) -> StoreOutcome:
    with home.change("merge", why=keep_reason(candidate)) as change:
        catch_up(home)
        target = target_of(home, into, candidate.memory)
        change.describe(subject=target.subject)
        with change.transaction():
            merge_into(change, target, redact(home.redactor, candidate.memory), content)
            _settle(change, candidate.memory)
    return StoreOutcome("updated", target.id)


def _settle(change: Change, memory: Memory) -> None:
    now = to_ms(change.at) or 0
    change.home.candidates.settle(memory.id, now)
    change.home.candidates.blank(now)


def drop(home: Home, candidates: Sequence[HeldCandidate]) -> list[Memory]:
    """Drop candidates for good. The journal and history keep none of the text."""
    memories = [candidate.memory for candidate in candidates]
    with (
        home.change(DROP, subject=count(len(memories), "candidate")) as change,
        change.transaction(),
    ):
        change.note(DROP, candidates=sorted(memory.id for memory in memories))
        for memory in memories:
            _settle(change, memory)
    return memories


def find_candidates(home: Home, reference: str) -> HeldCandidate | None:
    """Return the candidate whose id starts or ends with ``reference``. Raises ConflictError."""
    return single(home.candidates.find(reference.strip()), reference)


def single(candidates: Sequence[HeldCandidate], reference: str) -> HeldCandidate | None:
    """Return the only candidate, if any. Raises ConflictError if there are several."""
    if len(candidates) > 1:
        raise ConflictError(
            f"{reference!r} matches several candidates", hint="give more characters of the id"
        )
    return next(iter(candidates), None)


def _with_content(memory: Memory, content: str | None) -> Memory:
    if content is None:
        return memory
    if not content.strip():
        raise InvalidInputError(
            "the memory has no content", hint="nacre review drop removes a candidate"
        )
    subject = shorten(content.strip().rstrip(".。"), _SUBJECT_CHARACTERS)
    return replace(memory, content=content.strip(), subject=subject)
