"""Find what was said after a candidate and departs from it: it says that the thing is gone, or gives another value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from nacre.dedup.comparison import compare
from nacre.dedup.judge import Relation, judge
from nacre.dedup.placement import rarity_of
from nacre.embed.calibration import calibration_of
from nacre.extraction.reading.speech import utterances
from nacre.home.home import Home
from nacre.retrieval.recall import search_sessions
from nacre.text.passages import title_of
from nacre.values.memory import Memory
from nacre.values.recall import Filter, Mode, RecallQuery
from nacre.values.session import Trust, Turn

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
    rows = {one.row for one in home.sessions.find(memory.source.session or "") if memory.source.session}
    if memory.project is None:
        return rows
    wanted = Filter(projects=(memory.project,), strict=True, since=memory.last_said)
    query = RecallQuery(memory.content[:1_000], filter=wanted, mode=Mode.LEXICAL, limit=_HITS, update=False)
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
                memory, id="", subject=title_of(text), content=text, created=turn.time, canonical_key=None, claim=None
            )
            if judge(memory, said, None, calibration_of(None), rarity).relation in _CHANGES:
                yield Departure(text, turn.time)
