"""Handing sessions over, flushing them, and the chores that do it: what is asked and what is answered."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

HANDED_FOR = timedelta(days=7)
"""So long a handoff is kept, and given to sessions that begin."""

BY_RULES = "rules"
"""Who wrote a handoff that needed nobody."""


@dataclass(frozen=True, slots=True)
class Handoff:
    """What a session leaves for the next one of its project.

    ``by`` says who wrote it: rules, a model (its name), the agent or the owner. ``said`` is when the last words were
    said that it knows of, ``until`` their turn, ``asked`` the turn in which the owner asked for something last.
    ``given`` is the session that was given it; empty: it waits.
    """

    id: str
    project: str
    session: str
    content: str
    by: str
    written: datetime
    said: datetime
    until: str = ""
    asked: str = ""
    given: str = ""


@dataclass(frozen=True, slots=True)
class HandoffView:
    """The latest handoff of a project, whether it still waits for a session, and whether it was stored just now.

    ``note`` says why no model wrote it, where one was asked, or why nothing was stored, where that was wanted.
    """

    project: str | None
    handoff: Handoff | None = None
    waits: bool = False
    is_new: bool = False
    note: str | None = None


@dataclass(frozen=True, slots=True)
class ChoresReport:
    """Chores that were done, that failed and are tried again, that were given up, and that are left."""

    done: int = 0
    failed: int = 0
    given_up: int = 0
    left: int = 0


@dataclass(frozen=True, slots=True)
class FlushReport:
    """The ids of new memories, how many candidates were known already, sessions with turns that were not learned from
    before, what became of the chores that waited, and why a model did not help, where one was to."""

    memories: tuple[str, ...] = ()
    duplicates: int = 0
    sessions: int = 0
    chores: ChoresReport = ChoresReport()
    notes: tuple[str, ...] = ()
