"""What a person sees first: is nacre wired, what happened today, what was learned last, what waits, what it cost.

It is shown at once: the database is read as it is, no lock is waited for, and nothing is made, caught up or asked.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from datetime import datetime

from nacre.errors import StoreUnusable
from nacre.home.home import Home, open_home, open_to_read
from nacre.platform.days import day_interval
from nacre.sessions.opening import opening_of
from nacre.settings import Settings
from nacre.setup.writer import WriterStatus, status_as_it_is
from nacre.spending.budget import budget, is_priced
from nacre.spending.spool import noted_calls
from nacre.values.filters import SessionFilter
from nacre.values.memory import Memory
from nacre.values.recall import Filter
from nacre.views import SessionLine
from nacre.wiring.record import load
from nacre.wiring.ways import found_hosts

_PATIENCE_MS = 100
_MOST_SESSIONS = 1000
_SESSIONS = 5
_MEMORIES = 5


@dataclass(frozen=True, slots=True)
class Status:
    """The hosts that are wired, and those that are here and are not; how much is remembered; today's sessions and when
    transcripts were read last; the memories that were learned last; how much waits; who writes, and how it fares; what
    today cost (millionths of a US dollar) and may cost in the background, without what a subscription pays.

    An empty home has no memories and no sessions.
    """

    wired: tuple[str, ...] = ()
    not_wired: tuple[str, ...] = ()
    memories: int = 0
    sessions: int = 0
    today: tuple[SessionLine, ...] = ()
    sessions_today: int = 0
    read: datetime | None = None
    learned: tuple[Memory, ...] = ()
    candidates: int = 0
    doubts: int = 0
    conflicts: int = 0
    writer: WriterStatus = WriterStatus()
    cost: int = 0
    budget: int = 0


def status(settings: Settings) -> Status:
    """What a person sees first; where there is no home yet, none is made. Raises StoreUnusable and its kin."""
    wired = dict.fromkeys(wish.host for wish in load(settings.home).wishes)
    not_wired = tuple(one.host.name for one in found_hosts(settings) if one.host.name not in wired)
    if not (settings.server or settings.database.is_file()):
        return Status(tuple(wired), not_wired)
    with closing(_opened(settings)) as home:
        return _page(home, tuple(wired), not_wired)


def _opened(settings: Settings) -> Home:
    """The home as it is; one of an older nacre is brought to the present schema. Raises StoreUnusable and its kin."""
    try:
        return open_to_read(settings, patience_ms=_PATIENCE_MS)
    except StoreUnusable:
        return open_home(settings)


def _page(home: Home, wired: tuple[str, ...], not_wired: tuple[str, ...]) -> Status:
    day = home.today()
    counts = home.memories.counts()
    lately = home.sessions.newest(SessionFilter(since=day_interval(day)[0]), limit=_MOST_SESSIONS)
    active = home.sessions.active([one.row for one in lately[:_SESSIONS]])
    candidates, doubts, conflicts = home.reviews.waiting()
    spent = sum(one.cost for one in home.spending.since(day) if is_priced(home.settings, one.model))
    noted = sum(
        one.cost or 0 for one in noted_calls(home) if one.day == day and is_priced(home.settings, one.model)
    )  # fmt: skip
    return Status(
        wired, not_wired,
        memories=sum(counts.values()) - counts["superseded"] - counts["retired"],
        sessions=sum(row[1] for row in home.sessions.counts()),
        today=tuple(SessionLine(one, opening_of(home, one), active.get(one.row)) for one in lately[:_SESSIONS]),
        sessions_today=len(lately), read=home.sessions.last_ingest(), learned=_learned(home),
        candidates=candidates, doubts=doubts, conflicts=conflicts,
        writer=status_as_it_is(home), cost=spent + noted, budget=budget(home) or 0,
    )  # fmt: skip


def _learned(home: Home) -> tuple[Memory, ...]:
    rows, _ = home.selection.list_memories(Filter(), limit=_MEMORIES, offset=0, today=home.today())
    found = home.memories.by_rows(rows)
    return tuple(found[row] for row in rows if row in found)
