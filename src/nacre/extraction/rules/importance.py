"""Finishes: how much a memory weighs and how long it is meant to hold (agenr's calibration)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nacre.extraction.reading.cues import Language
from nacre.extraction.rules.classify import Verdict
from nacre.values.candidate import Candidate
from nacre.values.memory import Expiry, Kind

AGENT_CAP = 6
STRONG = 8
MAX_STRONG = 2
ACTION_ITEM = 8
_MEETINGS = frozenset({"plaud"})
"""Tools whose sessions are recorded talk."""


def importance_of(verdict: Verdict, language: Language) -> int:
    """By kind; raised by "remember" and by rules without exception, lowered by what will pass."""
    if verdict.remembered:
        return language.importance.remember
    if verdict.strong and verdict.kind is Kind.PREFERENCE:
        return STRONG
    base = language.importance.by_kind[verdict.kind]
    return base - 1 if base > 5 and expiry_of(verdict, language) is Expiry.TEMPORARY else base


def weighed(tool: str, found: Sequence[Candidate]) -> list[Candidate]:
    """What is left to do after a meeting weighs eight, however many there are: nothing else tells of it (seed facts
    1.5)."""
    if tool not in _MEETINGS:
        return list(found)
    return [
        replace(one, importance=max(one.importance, ACTION_ITEM)) if one.kind is Kind.TODO else one for one in found
    ]


def expiry_of(verdict: Verdict, language: Language) -> Expiry:
    """``temporary`` for todos and for what names its own end."""
    passing = language.expiry.temporary.search(verdict.text) and verdict.kind is not Kind.EVENT
    return Expiry.TEMPORARY if passing or verdict.kind is Kind.TODO else Expiry.PERMANENT
