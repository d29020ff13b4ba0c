"""What can be said of how useful memory is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Aspect(StrEnum):
    """What is measured of a session; of each, less is better."""

    MESSAGES = "messages"
    """Messages of the owner's, a session: how many turns it took."""
    CORRECTIONS = "corrections"
    """Of the owner's messages after the first: those that say that it is not so, or that declined a call."""
    REPEATED = "repeated"
    """Of the owner's messages: those that the owner sent in nearly these words in an earlier session there."""
    FAILED_CALLS = "failed-calls"
    """Of the agent's commands, reads and edits: those that failed."""


class Finding(StrEnum):
    """What an interval allows to say."""

    TOO_FEW = "too few"
    """Sessions, or those in which it happened, to say anything."""
    UNCLEAR = "unclear"
    """Both more and less are possible."""
    LESS_WITH_MEMORY = "less with memory"
    MORE_WITH_MEMORY = "more with memory"


@dataclass(frozen=True, slots=True)
class Comparison:
    """One aspect, of the sessions that have it: ``held_out`` less ``told`` is the ``difference``, and it lies between
    ``low`` and ``high`` with 95 % confidence. Where they are too few, nothing is said but how many."""

    aspect: Aspect
    finding: Finding
    sessions_told: int
    sessions_held_out: int
    told: float | None = None
    held_out: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Usefulness:
    """What the hold-out shows. ``share`` is held out now (0: none), ``compared`` the share that was in force when the
    sessions began that are compared, ``since`` when it came into force first.

    ``left_out`` sessions since then are not compared: they go on, nobody said anything in them, or the share changed
    meanwhile. ``needed`` is how many have to be compared at that share before anything is said.
    """

    share: float
    compared: float = 0.0
    since: datetime | None = None
    sessions_told: int = 0
    sessions_held_out: int = 0
    left_out: int = 0
    needed: int = 0
    comparisons: tuple[Comparison, ...] = ()
