"""Finishes: how much a memory weighs and how long it is meant to hold (agenr's calibration)."""

from __future__ import annotations

from nacre.extraction.reading.cues import Language
from nacre.extraction.rules.classify import Verdict
from nacre.values.memory import Expiry, Kind

AGENT_CAP = 6
STRONG = 8
MAX_STRONG = 2


def importance_of(verdict: Verdict, language: Language) -> int:
    """By kind; raised by "remember" and by rules without exception, lowered by what will pass."""
    if verdict.remembered:
        return language.importance.remember
    if verdict.strong and verdict.kind is Kind.PREFERENCE:
        return STRONG
    base = language.importance.by_kind[verdict.kind]
    return base - 1 if base > 5 and expiry_of(verdict, language) is Expiry.TEMPORARY else base


def expiry_of(verdict: Verdict, language: Language) -> Expiry:
    """``temporary`` for todos and for what names its own end."""
    passing = language.expiry.temporary.search(verdict.text) and verdict.kind is not Kind.EVENT
    return Expiry.TEMPORARY if passing or verdict.kind is Kind.TODO else Expiry.PERMANENT
