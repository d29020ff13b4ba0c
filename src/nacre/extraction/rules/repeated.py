"""Finds, in words: how the owner wants things done, when they had to ask for it again and again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nacre.extraction.reading.cues import language_of
from nacre.extraction.reading.speech import Utterance
from nacre.extraction.rules.classify import PROVEN, Verdict
from nacre.extraction.rules.findings import Finding, to_finding
from nacre.values.memory import Kind

TIMES = 3


def demands(spoken: Sequence[Utterance]) -> Iterator[Finding]:
    """What was asked for in the same way in at least three messages, in the words of the fullest request."""
    asked: dict[tuple[str, str], dict[int, str]] = {}
    for utterance in spoken:
        for statement in utterance.statements:
            found = _demand(statement.text)
            if found:
                verb, manner, text = found
                asked.setdefault((verb, manner), {}).setdefault(utterance.index, text)
    for texts in asked.values():
        if len(texts) >= TIMES:
            text = max(texts.values(), key=_plainness)
            verdict = Verdict(text, Kind.PREFERENCE, PROVEN, PROVEN)
            finding = to_finding(verdict, text, tuple(texts), language_of(text))
            if finding:
                yield finding


def _demand(text: str) -> tuple[str, str, str] | None:
    cues = language_of(text).repeated
    manner = cues.manner.search(text)
    verbs = list(cues.verb.finditer(text, 0, manner.start())) if manner else []
    if not manner or not verbs:
        return None
    verb = verbs[-1]
    return verb.group().lower(), manner.group().lower(), text[verb.start() : manner.end()]


def _plainness(text: str) -> tuple[int, int]:
    """Ordinary words say what holds for all; names and paths only say what it was about that time."""
    return sum(word.isalpha() for word in text.split()), len(text)
