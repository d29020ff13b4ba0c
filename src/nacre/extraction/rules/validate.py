"""Refuses: why a statement is not worth keeping, if so."""

from __future__ import annotations

import unicodedata

from nacre.extraction.reading.cues import Language
from nacre.extraction.rules.classify import Verdict
from nacre.values.memory import Kind

MIN_WIDTH = 20
MAX_CHARACTERS = 700

# What each reason does not apply to: "never skip the tests" holds no matter how much it looks like an errand.
_SPARED: dict[str, frozenset[Kind]] = {
    "transient": frozenset({Kind.PREFERENCE, Kind.LESSON, Kind.EVENT, Kind.TODO}),
    "version": frozenset({Kind.PREFERENCE, Kind.DECISION, Kind.LESSON, Kind.TODO, Kind.EVENT}),
    "errand": frozenset({Kind.PREFERENCE, Kind.TODO, Kind.LESSON}),
    "hypothetical": frozenset({Kind.PREFERENCE}),
}


def refusal(verdict: Verdict, language: Language) -> str | None:
    """The name of the reason to drop a statement, or ``None``."""
    for reason, pattern in language.reject.items():
        if _spared(reason, verdict) or not pattern.search(verdict.text):
            continue
        return reason
    return size_refusal(verdict.text)


def _spared(reason: str, verdict: Verdict) -> bool:
    if reason in verdict.despite:
        return True
    if not (verdict.cue or verdict.remembered or verdict.strong):
        return reason == "transient" and verdict.kind is Kind.PREFERENCE  # only its meaning speaks for it
    if reason in ("transient", "errand", "hypothetical") and verdict.remembered:
        return True
    return verdict.kind in _SPARED.get(reason, ())


def size_refusal(content: str, most: int = MAX_CHARACTERS) -> str | None:
    """``short`` or ``long``; a wide character says as much as three narrow ones. ``most``: characters."""
    width = sum(3 if unicodedata.east_asian_width(character) in "WF" else 1 for character in content)
    if width < MIN_WIDTH:
        return "short"
    return "long" if len(content) > most else None


def is_generic(subject: str, language: Language) -> bool:
    """Whether a subject could belong to any memory at all."""
    return subject.strip().lower() in language.subject.generic
