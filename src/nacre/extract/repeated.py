"""How the owner wants things done, when they had to ask for it again and again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nacre.extract.cues import language_of
from nacre.extract.speech import Utterance

TIMES = 3


@dataclass(frozen=True, slots=True)
class Demand:
    """One request of many for the same: its words up to how it is to be done; the turns that ask for it."""

    text: str
    turns: tuple[int, ...]


def demands(utterances: Sequence[Utterance]) -> list[Demand]:
    """What was asked for in the same way in at least three messages, in the words of the fullest request."""
    asked: dict[tuple[str, str], dict[int, str]] = {}
    for utterance in utterances:
        for statement in utterance.statements:
            found = _demand(statement.text)
            if found:
                verb, manner, text = found
                asked.setdefault((verb, manner), {}).setdefault(utterance.index, text)
    return [
        Demand(max(texts.values(), key=_plainness), tuple(texts)) for texts in asked.values() if len(texts) >= TIMES
    ]


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
