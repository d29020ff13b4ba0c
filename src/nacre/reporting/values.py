"""What looking back finds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from nacre.values.memory import Memory
from nacre.values.operation import Operation
from nacre.values.reports import Check
from nacre.views import SessionLine


@dataclass(frozen=True, slots=True)
class Source:
    """Memories by who said them, and with which tool; no tool: by hand, from documents, or imported."""

    speaker: str
    tool: str | None
    memories: int


@dataclass(frozen=True, slots=True)
class ToolSessions:
    """Sessions that began, and turns, with one tool."""

    tool: str
    sessions: int
    turns: int


@dataclass(frozen=True, slots=True)
class Today:
    """What was learned, done and talked about from the first day to the last (both are meant), and what waits now.

    ``learned`` are the latest memories, of ``learned_total``; ``operations`` are the latest ones; ``sessions`` are the
    latest of those that ``tools`` counts; ``conflicts``, ``doubts`` and ``candidates`` wait. ``cost`` is that of models
    today, ``cost_month`` this month, of the whole home, in millionths of a US dollar. ``problems`` are found by checks.
    """

    since: date
    until: date
    project: str | None
    learned: tuple[Memory, ...]
    learned_total: int
    sources: tuple[Source, ...]
    operations: tuple[Operation, ...]
    tools: tuple[ToolSessions, ...]
    sessions: tuple[SessionLine, ...]
    conflicts: int
    doubts: int
    candidates: int
    cost: int
    cost_month: int
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
