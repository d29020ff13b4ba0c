"""Which memories a new one may be at odds with, or may finish: those that a model is asked about."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain
from typing import NamedTuple

from nacre.base.text import STOP_WORDS, stem, title_of, words
from nacre.errors import EmbedderUnavailable
from nacre.home.home import Home
from nacre.learn.sentences import utterances
from nacre.llm.local_model import calibration_of
from nacre.memories.compare import are_one_attribute
from nacre.memories.judge import (
    APART,
    CONTRADICTS,
    SUPERSEDES,
    Relation,
    compare,
    judge,
    last_said,
    vouches,
)
from nacre.memories.placement import rarity_of
from nacre.recall.recall import search_sessions
from nacre.values.memory import Kind, Memory
from nacre.values.recall import Filter, Mode, RecallQuery
from nacre.values.session import Trust, Turn

MOST = 5
"""So many are judged (seed facts 1.3)."""

_LOOKED_AT = 60
_TODOS = 200


def rivals(home: Home, memory: Memory, beside: Sequence[Memory] = ()) -> list[Memory]:
    """Memories of the same project that one may be at odds with, five at most.

    First those that the rules doubt, then those with a claim of the same key, then of the same entity and nearly the
    same attribute, then of the same attribute of another entity, then the nearest by their vectors. Events stay true,
    only a todo moves a todo, and what is not trusted is at odds with nothing that is. The claims of memories ``beside``
    it are not in the index yet.
    """
    told = {other.id: other for other in beside}
    found: dict[str, Memory] = {}
    judged = home.claims.judged()
    for row in chain(
        _doubted(home, memory), _by_claim(home, memory, beside), _by_meaning(home, memory)
    ):
        for other in home.memories.by_rows([row]).values():
            if may_be_at_odds(memory, other, judged):
                found.setdefault(other.id, told.get(other.id, other))
        if len(found) == MOST:
            break
    return list(found.values())


def may_be_at_odds(memory: Memory, other: Memory, judged: Container[tuple[str, str]]) -> bool:
    """Whether a model is to judge two memories: both hold, and nobody has said how they stand to each other."""
    if other.id == memory.id or not other.shares_place(memory) or not other.is_active:
        return False
    if other.kind is Kind.EVENT or (other.kind is Kind.TODO) != (memory.kind is Kind.TODO):
        return False
    if vouches(other, memory) or (vouches(memory, other) and last_said(other) > last_said(memory)):
        return False
    return not is_settled(memory, other, judged)


def is_settled(one: Memory, other: Memory, judged: Container[tuple[str, str]]) -> bool:
    """Whether a link says how two memories stand to each other; a doubt that no model ``judged`` says it not yet."""
    return _links(one, other.id, judged) or _links(other, one.id, judged)


def _links(memory: Memory, to: str, judged: Container[tuple[str, str]]) -> bool:
    rels = {link.rel for link in memory.links if link.to == to}
    return bool(rels & {APART, SUPERSEDES}) or (CONTRADICTS in rels and (to, memory.id) in judged)


def _doubted(home: Home, memory: Memory) -> Iterator[int]:
    """Those that the words alone cannot tell whether they still hold."""
    for link in memory.links:
        row = home.comparisons.row_of(link.to) if link.rel == CONTRADICTS else None
        if row is not None:
            yield row


def _by_claim(home: Home, memory: Memory, beside: Sequence[Memory]) -> Iterator[int]:
    claim = memory.claim
    if claim is None:
        return
    told = [
        (row, one.claim)
        for one in beside
        if one.claim and (row := home.comparisons.row_of(one.id)) is not None
    ]
    known = [(row, other.attribute) for row, other in told if other.entity == claim.entity]
    known += home.claims.of_entity(claim.entity, memory.project, limit=_LOOKED_AT)
    yield from (row for row, attribute in known if attribute == claim.attribute)
    yield from (row for row, attribute in known if are_one_attribute(attribute, claim.attribute))
    yield from (row for row, other in told if other.attribute == claim.attribute)
    yield from home.claims.of_attribute(
        claim.attribute, claim.entity, memory.project, limit=_LOOKED_AT
    )


def _by_meaning(home: Home, memory: Memory) -> Iterator[int]:
    """The nearest by their vectors, from where a link is worth making; in a home without vectors those that share rare
    words, not only the project's name."""
    near = _near(home, memory)
    if near is None:
        said, rows = _telling(memory), home.comparisons.alike(memory, limit=_LOOKED_AT)
        found = home.memories.by_rows(rows)
        yield from [row for row in rows if row in found and said & _telling(found[row])][:MOST]
        return
    yield from near


def _near(home: Home, memory: Memory) -> dict[int, float] | None:
    """Row → cosine of the nearest memories; ``None`` where this one has no vector."""
    row = home.comparisons.row_of(memory.id)
    if home.settings.text("embedding.model") == "none" or row is None:
        return None
    try:
        found = home.vectors.near_memory(row, limit=_LOOKED_AT)
        limit = calibration_of(home.vectors.model()).link
    except EmbedderUnavailable:
        return None
    return {one.row: one.cosine for one in found if one.cosine >= limit} if found else None


def open_todos(home: Home, memory: Memory) -> list[Memory]:
    """The open todos of its project that an event, fact or decision may show to be done: those nearest to it, five at
    most, which share a word with it, not only the project's name, or are near by their vectors."""
    if memory.kind not in (Kind.EVENT, Kind.FACT, Kind.DECISION):
        return []
    wanted = Filter(
        kinds=(Kind.TODO,), projects=(memory.project,) if memory.project else (), strict=True
    )
    rows, _ = home.selection.list_memories(wanted, limit=_TODOS, offset=0)
    near = _near(home, memory) or {}
    said = _said(memory)
    ranked = []
    for row, todo in home.memories.by_rows(rows).items():
        if (
            todo.shares_place(memory)
            and not vouches(todo, memory)
            and not is_settled(memory, todo, ())
        ):
            asked = _said(todo)
            shared = len(said & asked) / max(1, len(asked)) + near.get(row, 0.0)
            is_near = row in near or bool(_telling(memory) & _telling(todo))
            ranked += [(shared, todo.created, todo)] if shared and is_near else []
    ranked.sort(key=lambda one: one[:2], reverse=True)
    return [todo for _, _, todo in ranked[:MOST]]


def _said(memory: Memory) -> set[str]:
    return {word for word in words(f"{memory.subject} {memory.content}") if word not in STOP_WORDS}


def _telling(memory: Memory) -> set[str]:
    """The stems of its words, but for those that say nothing within its project."""
    said = _stems(words(f"{memory.subject} {memory.content}"))
    return said - _stems(words(memory.project or ""))


def _stems(said: Iterable[str]) -> set[str]:
    return {stem(word) for word in said if word not in STOP_WORDS}


# ----------------------------------------------------------------------------
# Find what was said after a candidate and departs from it: it says that the thing is gone, or gives
# another value.


_ALIKE = 12
_HITS = 60
_CHANGES = (Relation.SUPERSEDES, Relation.DOUBTS)


class Departure(NamedTuple):
    """A later statement, and when it was made."""

    text: str
    at: datetime


def find_departure(home: Home, memory: Memory) -> Departure | None:
    """Return the latest statement that departs from a memory, in memories and in the sessions of its project."""
    others = home.memories.by_rows(home.comparisons.alike(memory, limit=_ALIKE)).values()
    found = [
        Departure(one.other.content, one.other.last_said)
        for one in compare(memory, [other for other in others if other.is_active])
        if one.is_replaced or one.is_doubted
    ]
    for row in _sessions(home, memory):
        found += _in_turns(home, memory, [item.turn for item in home.sessions.turns_of(row)])
    return max(found, key=lambda one: one.at, default=None)


def _sessions(home: Home, memory: Memory) -> set[int]:
    """Return the rows of the memory's own session, and of later ones of its project that share words with it."""
    rows = {
        one.row for one in home.sessions.find(memory.source.session or "") if memory.source.session
    }
    if memory.project is None:
        return rows
    wanted = Filter(projects=(memory.project,), strict=True, since=memory.last_said)
    query = RecallQuery(
        memory.content[:1_000], filter=wanted, mode=Mode.LEXICAL, limit=_HITS, update=False
    )
    ids = {hit.session.id for hit in search_sessions(home, query).turns}
    return rows | {one.row for name in ids for one in home.sessions.find(name)}


def _in_turns(home: Home, memory: Memory, turns: Sequence[Turn]) -> Iterator[Departure]:
    rarity = rarity_of(home)
    for utterance in utterances(turns):
        turn = turns[utterance.index]
        if turn.trust is not Trust.TRUSTED or turn.time is None or turn.time <= memory.last_said:
            continue
        for text in (statement.text for statement in utterance.statements):
            said = replace(
                memory,
                id="",
                subject=title_of(text),
                content=text,
                created=turn.time,
                canonical_key=None,
                claim=None,
            )
            if judge(memory, said, None, calibration_of(None), rarity).relation in _CHANGES:
                yield Departure(text, turn.time)
