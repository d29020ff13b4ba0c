"""What a writer would take, foreseen from the sessions of the owner's own last week."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from nacre.extraction.by_model import later
from nacre.extraction.coverage import is_covered
from nacre.extraction.estimate import capabilities_of, of_session
from nacre.extraction.substance import is_worth_asking
from nacre.home.home import Home
from nacre.home.projects import likely_project
from nacre.ingestion.plan import sessions_in
from nacre.platform.days import day_of, shown_day
from nacre.settings import Settings
from nacre.setup import found_writers
from nacre.setup.examples import is_one
from nacre.setup.writer import TOKENS_A_DAY
from nacre.text.passages import count_tokens
from nacre.values.filters import SessionFilter
from nacre.values.model_calls import Capabilities
from nacre.values.session import Session, SessionKind, StoredSession, Turn

_WEEK = timedelta(days=7)
_SAMPLE = 60
_LOOKED_AT = 50


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What a writer would take: sessions a day, and tokens a day, by the owner's own last week.

    ``until`` is the end of the week that tells it, where the last seven days had no session. ``tools`` and ``projects``
    are those of that week's sessions.
    """

    sessions: float
    tokens: int
    until: datetime | None = None
    tools: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()

    @property
    def most(self) -> int:
        """Tokens a day that are proposed as a bound."""
        return max(TOKENS_A_DAY, int(round(self.tokens * 1.5, -4)))

    @property
    def in_words(self) -> str:
        """As a clause: how much that is, and by which week; empty where no session tells."""
        if not self.tokens:
            return ""
        week = f"the week to {shown_day(self.until)}" if self.until else "your last week"
        days, span = (1, "day") if self.sessions >= 1 else (_WEEK.days, "week")
        often = f"{self.sessions * days:.0f} sessions" if self.sessions * days >= 1.5 else "one session"
        return f"about {often} and {round(self.tokens * days, -2):,} tokens a {span}, by {week}"


def foreseen(home: Home, writer: str = "") -> Foreseen:
    """What a writer, by its name or the one that would be proposed, would take a day, going by the sessions of the last
    seven days that it would be shown.

    Where these had none, by the seven days to the end of the last session.
    """
    writer = writer or _best(home)
    until, sessions = None, _week(home, writer, home.now())
    if not sessions and (last := _own(home, SessionFilter(kind=SessionKind.MAIN), most=_LOOKED_AT)):
        until = last[0].ended
        sessions = _week(home, writer, until) if until else []
    able = _able(home, writer)
    taken = [_taken(home.settings, one.session, home.sessions.whole(one.row), able) for one in sessions[:_SAMPLE]]
    return _foreseen(sessions, taken, len(sessions), until)


def _own(home: Home, wanted: SessionFilter, most: int) -> list[StoredSession]:
    """The owner's own sessions, the newest first."""
    return [one for one in home.sessions.newest(wanted, limit=most) if not is_one(home, one)]


def foreseen_of(home: Home, paths: Sequence[Path], writer: str = "") -> Foreseen:
    """The same by transcripts that are not read yet, the newest first: a sample of them is parsed."""
    writer = writer or _best(home)
    found, able = [], _able(home, writer)
    for session, turns in sessions_in(home, paths[:_SAMPLE]):
        ended = max((turn.time for turn in turns if turn.time), default=session.started)
        stored = StoredSession(0, session, likely_project(home, session), ended, None, len(turns))
        if ended and session.kind is SessionKind.MAIN and is_covered(home.settings, stored, writer):
            found.append((ended, stored, _taken(home.settings, session, turns, able)))
    last = max((ended for ended, _, _ in found), default=home.now())
    until = last if home.now() - last > _WEEK else None
    week = [(stored, tokens) for ended, stored, tokens in found if ended > (until or home.now()) - _WEEK]
    is_more = len(week) == len(found)  # the sample is too small to hold all of the week
    number = len(week) * (len(paths) / max(1, min(len(paths), _SAMPLE)) if is_more else 1)
    return _foreseen([stored for stored, _ in week], [tokens for _, tokens in week], number, until)


def _foreseen(
    sessions: Sequence[StoredSession], tokens: Sequence[int], number: float, until: datetime | None
) -> Foreseen:  # fmt: skip
    """By some sessions of a week, the tokens that a sample of them takes, and how many the week had."""
    shown = [one for one in tokens if one]
    a_day = number / _WEEK.days * len(shown) / max(1, len(tokens))
    days = len({day_of(one.ended) for one in sessions if one.ended}) / _WEEK.days
    tools = dict.fromkeys(one.session.tool for one in sessions)
    projects = dict.fromkeys(one.project for one in sessions if one.project)
    taken = sum(shown) / max(1, len(shown)) * a_day + (later.TOKENS_A_DAY * days if shown else 0)
    return Foreseen(a_day, int(taken), until, tuple(tools), tuple(projects))


def _week(home: Home, writer: str, until: datetime) -> list[StoredSession]:
    """The sessions of the seven days before a time that may be shown to a writer, the newest first."""
    wanted = SessionFilter(since=until - _WEEK, kind=SessionKind.MAIN)
    return [one for one in _own(home, wanted, most=1000) if is_covered(home.settings, one, writer)]


def _best(home: Home) -> str:
    """The writer that would be proposed; empty where there is none."""
    best = found_writers.best_writer(found_writers.found_writers(home.settings))
    return best.name if best else ""


def _able(home: Home, writer: str) -> Capabilities:
    """What a writer can do."""
    return capabilities_of(home, writer) if writer else Capabilities()


def _taken(settings: Settings, session: Session, turns: Sequence[Turn], able: Capabilities) -> int:
    """Tokens that a writer takes for a session; 0 where it is not asked."""
    if not is_worth_asking(session, turns, settings):
        return 0
    return of_session(sum(count_tokens(turn.text) for turn in turns), able)
