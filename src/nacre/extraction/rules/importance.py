"""Finishes: how much a memory weighs and how long it is meant to hold (agenr's calibration)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nacre.values.candidate import Candidate
from nacre.values.memory import Kind

AGENT_CAP = 6
STRONG = 8
MAX_STRONG = 2
ACTION_ITEM = 8
_MEETINGS = frozenset({"plaud"})
"""Tools whose sessions are recorded talk."""


def weighed(tool: str, found: Sequence[Candidate]) -> list[Candidate]:
    """What is left to do after a meeting weighs eight, however many there are: nothing else tells of it (seed facts
    1.5)."""
    if tool not in _MEETINGS:
        return list(found)
    return [
        replace(one, importance=max(one.importance, ACTION_ITEM)) if one.kind is Kind.TODO else one for one in found
    ]
