"""Selection of memories to compare with a new memory, and of later statements that contradict a candidate."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain
from typing import NamedTuple

from nacre.base.text import STOP_WORDS, stem, title_of, words
from nacre.errors import EmbedderUnavailableError
from nacre.home.home import Home
from nacre.learn.sentences import utterances
from nacre.llm.calibration import calibration_of
from nacre.memories.compare import are_one_attribute
from nacre.memories.judge import (
    APART,
    CONTRADICTS,
    SUPERSEDES,
    Rarity,
    Relation,
    compare,
    judge,
    vouches,
)
from nacre.memories.placement import rarity_of
from nacre.recall.recall import search_sessions
from nacre.values.memory import Kind, Memory, by_id
from nacre.values.recall import Filter, Mode, RecallQuery
from nacre.values.session import Trust, Turn

MOST = 5
"""Maximum number of memories to compare with a new memory."""

_MAX_CANDIDATES = 60
_MAX_TODOS = 200


def rivals(home: Home, memory: Memory, beside: Sequence[Memory] = ()) -> list[Memory]:
    """Return at most ``MOST`` memories of the project that might contradict a memory.

    Memories that rules have doubted come first, then memories with similar claims, then memories
    with similar vectors. Events are left out. Todos are compared only with todos. An untrusted
    memory cannot contradict a trusted memory. ``beside`` contains memories whose claims are not
    indexed yet.
    """
    beside_by_id = by_id(beside)
    found: dict[str, Memory] = {}
    judged = home.claims.judged()
    for row in chain(
        _doubted(home, memory), _by_claim(home, memory, beside), _by_meaning(home, memory)
    ):
        for other in home.memories.by_rows([row]).values():
            if may_be_at_odds(memory, other, judged):
                found.setdefault(other.id, beside_by_id.get(other.id, other))
        if len(found) == MOST:
            break
    return list(found.values())


def may_be_at_odds(memory: Memory, other: Memory, judged: Container[tuple[str, str]]) -> bool:
    """Return True if a model should judge whether two memories contradict each other."""
    if other.id == memory.id or not other.shares_place(memory) or not other.is_active:
        return False
    if other.kind is Kind.EVENT or (other.kind is Kind.TODO) != (memory.kind is Kind.TODO):
        return False
    if vouches(other, memory) or (vouches(memory, other) and other.last_said > memory.last_said):
        return False
    return not is_settled(memory, other, judged)


def is_settled(first: Memory, second: Memory, judged: Container[tuple[str, str]]) -> bool:
    """Return True if a link already relates two memories.

    A link that expresses a doubt counts only if the pair is in ``judged``.
    """
    return _links(first, second.id, judged) or _links(second, first.id, judged)


def _links(memory: Memory, to: str, judged: Container[tuple[str, str]]) -> bool:
    rels = {link.rel for link in memory.links if link.to == to}
    return bool(rels & {APART, SUPERSEDES}) or (CONTRADICTS in rels and (to, memory.id) in judged)


def _doubted(home: Home, memory: Memory) -> Iterator[int]:
    """Yield the rows of memories that contradict a memory according to its links."""
    for link in memory.links:
        row = home.comparisons.row_of(link.to) if link.rel == CONTRADICTS else None
        if row is not None:
            yield row


def _by_claim(home: Home, memory: Memory, beside: Sequence[Memory]) -> Iterator[int]:
    claim = memory.claim
    if claim is None:
        return
    claims = [
        (row, other_memory.claim)
        for other_memory in beside
        if other_memory.claim and (row := home.comparisons.row_of(other_memory.id)) is not None
    ]
    candidates = [(row, other.attribute) for row, other in claims if other.entity == claim.entity]
    candidates += home.claims.of_entity(claim.entity, memory.project, limit=_MAX_CANDIDATES)
    yield from (row for row, attribute in candidates if attribute == claim.attribute)
    yield from (
        row for row, attribute in candidates if are_one_attribute(attribute, claim.attribute)
    )
    yield from (row for row, other in claims if other.attribute == claim.attribute)
    yield from home.claims.of_attribute(
        claim.attribute, claim.entity, memory.project, limit=_MAX_CANDIDATES
    )


def _by_meaning(home: Home, memory: Memory) -> Iterator[int]:
    """Yield the rows of the memories that are most similar to a memory.

    If there are no vectors, compare rare words.
    """
    near = _near(home, memory)
    if near is not None:
        yield from near
        return
    stems = _distinctive_stems(memory)
    rows = home.comparisons.alike(memory, limit=_MAX_CANDIDATES)
    by_row = home.memories.by_rows(rows)
    like = [row for row in rows if row in by_row and stems & _distinctive_stems(by_row[row])]
    yield from like[:MOST]


def _near(home: Home, memory: Memory) -> dict[int, float] | None:
    """Return the cosine similarity of each similar memory, keyed by row.

    Return ``None`` if there are no vectors.
    """
    row = home.comparisons.row_of(memory.id)
    if home.settings.text("embedding.model") == "none" or row is None:
        return None
    try:
        neighbours = home.vectors.near_memory(row, limit=_MAX_CANDIDATES)
        limit = calibration_of(home.vectors.model()).link
    except EmbedderUnavailableError:
        return None
    if not neighbours:
        return None
    return {item.row: item.cosine for item in neighbours if item.cosine >= limit}


def open_todos(home: Home, memory: Memory) -> list[Memory]:
    """Return at most ``MOST`` open todos that an event, fact or decision might complete.

    The words or vectors of these todos are similar to those of the memory.
    """
    if memory.kind not in (Kind.EVENT, Kind.FACT, Kind.DECISION):
        return []
    criteria = Filter(
        kinds=(Kind.TODO,), projects=(memory.project,) if memory.project else (), strict=True
    )
    rows, _ = home.selection.list_memories(criteria, limit=_MAX_TODOS, offset=0)
    near = _near(home, memory) or {}
    memory_words = _content_words(memory)
    ranked = []
    for row, todo in home.memories.by_rows(rows).items():
        is_free = todo.shares_place(memory) and not is_settled(memory, todo, ())
        if is_free and not vouches(todo, memory):
            todo_words = _content_words(todo)
            shared = len(memory_words & todo_words) / max(1, len(todo_words)) + near.get(row, 0.0)
            is_near = row in near or bool(_distinctive_stems(memory) & _distinctive_stems(todo))
            ranked += [(shared, todo.created, todo)] if shared and is_near else []
    ranked.sort(key=lambda entry: entry[:2], reverse=True)
    return [todo for _, _, todo in ranked[:MOST]]


def _content_words(memory: Memory) -> set[str]:
    return {word for word in words(f"{memory.subject} {memory.content}") if word not in STOP_WORDS}


def _distinctive_stems(memory: Memory) -> set[str]:
    """Return the stems of a memory's words, except the project's name."""
    stems = _stems(words(f"{memory.subject} {memory.content}"))
    return stems - _stems(words(memory.project or ""))


def _stems(all_words: Iterable[str]) -> set[str]:
    return {stem(word) for word in all_words if word not in STOP_WORDS}


# -- Departures from a candidate ----------------------------------------------
# A departure is a later statement that revokes a candidate or gives a different value.


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
                claim=None,
            )
            verdict = judge(memory, stated, None, calibration_of(None), rarity)
            if verdict.relation in _CHANGES:
                yield Departure(text, turn.time)
