"""What looking back finds."""

from __future__ import annotations

from datetime import date

from nacre.platform.fast_dataclass import dataclass
from nacre.values.candidate import HeldCandidate
from nacre.values.memory import Memory
from nacre.values.operation import Operation
from nacre.values.reports import Check
from nacre.views import Pair, Review, SessionLine


@dataclass(frozen=True, slots=True)
class Source:
    """Memories by who said them, and with which tool; no tool: by hand, from documents, or imported."""

    speaker: str
    tool: str | None
    memories: int


@dataclass(frozen=True, slots=True)
class Count:
    """How often something occurred."""

    name: str
    count: int


@dataclass(frozen=True, slots=True)
class ToolSessions:
    """Sessions that began, and turns, with one tool."""

    tool: str
    sessions: int
    turns: int


@dataclass(frozen=True, slots=True)
class TaskCost:
    """What models took for a task, today and this month; costs are millionths of a US dollar."""

    task: str
    today: int
    month: int
    tokens_today: int
    tokens_month: int


@dataclass(frozen=True, slots=True)
class Decisions:
    """What waits for a decision of the owner's: how much of each, and the first few.

    ``reviews`` of memories are by their reason: ``proposed`` by an agent, a ``wish`` of one, ``stale`` and others.
    """

    candidates: int
    conflicts: int
    reviews: tuple[Count, ...]
    first_candidates: tuple[HeldCandidate, ...] = ()
    first_conflicts: tuple[Pair, ...] = ()
    first_reviews: tuple[Review, ...] = ()


@dataclass(frozen=True, slots=True)
class Today:
    """What was learned, done and talked about from the first day to the last (both are meant), and what waits now.

    ``learned`` are the latest memories, of ``learned_total``; ``operations`` the latest of all that ``changes`` counts;
    ``sessions`` the latest of those that ``tools`` counts. ``problems`` is what health finds amiss; ``costs`` are those
    of the whole home.
    """

    since: date
    until: date
    project: str | None
    learned: tuple[Memory, ...]
    learned_total: int
    sources: tuple[Source, ...]
    changes: tuple[Count, ...]
    operations: tuple[Operation, ...]
    tools: tuple[ToolSessions, ...]
    sessions: tuple[SessionLine, ...]
    waiting: Decisions
    costs: tuple[TaskCost, ...]
    problems: tuple[Check, ...]


@dataclass(frozen=True, slots=True)
class Series:
    """One number for each step of an :class:`Activity`."""

    name: str
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CalendarDay:
    """A day with sessions: how many began, and turns."""

    day: date
    sessions: int
    turns: int


@dataclass(frozen=True, slots=True)
class Age:
    """Memories that were said last so many days ago: from ``least`` days to less than ``most`` (``None``: no end).

    ``stale`` of them may be out of date, as was found last.
    """

    least: int
    most: int | None
    memories: int
    stale: int


@dataclass(frozen=True, slots=True)
class Activity:
    """Numbers for pictures, from the first day to the last, both of them meant.

    ``step`` is ``day``, ``week`` (from Monday) or ``month``, ``steps`` their first days. By tool: ``sessions`` that
    began, ``turns``. By kind: memories ``stored``, and how many there were at the end of each step (``held``).
    ``recalls`` counts the last hundred of each memory, ``questions`` what recall was asked: ``answered`` and
    ``unanswered``, as far as traces are kept. By task: ``tokens`` and ``cost`` in millionths of a US dollar, of the
    whole home; with a project there are no questions and no cost. ``calendar`` has the days with sessions. As it is
    now: ``ages`` of memories, and how many were recalled ``never``, ``seldom`` (up to five times) and ``often``.
    """

    since: date
    until: date
    project: str | None
    step: str
    steps: tuple[date, ...]
    sessions: tuple[Series, ...]
    turns: tuple[Series, ...]
    stored: tuple[Series, ...]
    held: tuple[Series, ...]
    recalls: tuple[int, ...]
    questions: tuple[Series, ...]
    tokens: tuple[Series, ...]
    cost: tuple[Series, ...]
    calendar: tuple[CalendarDay, ...]
    ages: tuple[Age, ...]
    never: int
    seldom: int
    often: int


@dataclass(frozen=True, slots=True)
class Report:
    """A page of pictures: the numbers behind them, and one file that needs nothing else and runs nothing."""

    activity: Activity
    html: str
