"""What a person sees first: is nacre wired, what happened today, what was learned last, what waits, what it cost.

It is shown at once: the database is read as it is, no lock is waited for, and nothing is made, caught up or asked.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, time

from nacre.errors import StoreUnusable
from nacre.extraction.coverage import awaiting
from nacre.home.home import Home, open_home, open_to_read
from nacre.sessions.opening import opening_of
from nacre.settings import Settings
from nacre.spending.budget import TOKENS, budget, is_by_subscription, today
from nacre.spending.models import NONE, name_for
from nacre.spending.spool import noted_calls
from nacre.values.filters import SessionFilter
from nacre.values.memory import Memory
from nacre.values.model_calls import Task
from nacre.values.recall import Filter
from nacre.views import SessionLine
from nacre.wiring.record import load
from nacre.wiring.ways import found_hosts

_PATIENCE_MS = 100
_MOST_SESSIONS = 1000
_SESSIONS = 5
_MEMORIES = 5


@dataclass(frozen=True, slots=True)
class WriterAtWork:
    """Who writes (``none``), and how it fares as far as the database tells: ``nacre writer`` tells more.

    ``state`` is ``off``, ``ready``, ``paused`` or ``failing``. ``limit`` is tokens a day where a subscription pays.
    """

    writer: str = NONE
    state: str = "off"
    tokens_today: int = 0
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class HomePage:
    """The hosts that are wired, and those that are here and are not; how much is remembered; today's sessions and when
    transcripts were read last; the memories that were learned last; how much waits; what today cost (millionths of a US
    dollar) and may cost in the background.

    ``to_write`` are the sessions that a writer is to be shown. An empty home has no memories and no sessions.
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
    reviews: int = 0
    conflicts: int = 0
    to_write: int = 0
    writer: WriterAtWork = WriterAtWork()
    cost: int = 0
    budget: int = 0


def home_page(settings: Settings) -> HomePage:
    """What a person sees first; where there is no home yet, none is made. Raises StoreUnusable and its kin."""
    wired = dict.fromkeys(wish.host for wish in load(settings.home).wishes)
    not_wired = tuple(one.host.name for one in found_hosts(settings) if one.host.name not in wired)
    if not (settings.server or settings.database.is_file()):
        return HomePage(tuple(wired), not_wired)
    with closing(_opened(settings)) as home:
        return _page(home, tuple(wired), not_wired)


def _opened(settings: Settings) -> Home:
    """The home as it is; one of an older nacre is brought to the present schema. Raises StoreUnusable and its kin."""
    try:
        return open_to_read(settings, patience_ms=_PATIENCE_MS)
    except StoreUnusable:
        return open_home(settings)


def _page(home: Home, wired: tuple[str, ...], not_wired: tuple[str, ...]) -> HomePage:
    now, day = home.now(), today(home)
    counts = home.memories.counts()
    since = datetime.combine(day, time()).astimezone()
    lately = home.sessions.newest(SessionFilter(since=since), limit=_MOST_SESSIONS)
    active = home.sessions.active([one.row for one in lately[:_SESSIONS]])
    candidates, reviews = home.reviews.waiting()
    writer = _writer(home)
    spent = sum(one.cost for one in home.spending.since(day))
    noted = sum(one.cost or 0 for one in noted_calls(home) if one.day == day)
    return HomePage(
        wired, not_wired,
        memories=sum(counts.values()) - counts["superseded"] - counts["retired"],
        sessions=sum(row[1] for row in home.sessions.counts()),
        today=tuple(SessionLine(one, opening_of(home, one), active.get(one.row)) for one in lately[:_SESSIONS]),
        sessions_today=len(lately), read=home.sessions.last_ingest(), learned=_learned(home, now),
        candidates=candidates, reviews=reviews, conflicts=len(home.reviews.doubts()),
        to_write=awaiting(home) if writer.state != "off" else 0, writer=writer,
        cost=spent + noted, budget=budget(home) or 0,
    )  # fmt: skip


def _learned(home: Home, now: datetime) -> tuple[Memory, ...]:
    rows, _ = home.selection.list_memories(Filter(), limit=_MEMORIES, offset=0, today=now.date())
    found = home.memories.by_rows(rows)
    return tuple(found[row] for row in rows if row in found)


def _writer(home: Home) -> WriterAtWork:
    settings, name = home.settings, name_for(home, Task.EXTRACTION)
    if name == NONE or not settings.flag("models.background"):
        return WriterAtWork(name)
    state = "paused" if settings.flag("writer.paused") else "failing" if home.spending.health(name) else "ready"
    tokens, _ = home.spending.tokens_in_background(today(home), name)
    return WriterAtWork(name, state, tokens, settings.whole(TOKENS) if is_by_subscription(settings, name) else None)
