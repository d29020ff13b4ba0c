"""The data: the cue tables: what words tell a decision from a preference, per language. Data in ``cues/*.toml``."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from nacre.extraction.reading.cue_sets import (
    AcceptedCues,
    Answers,
    ConcludedCues,
    Lean,
    Mark,
    Remember,
    ReversalCues,
    SubjectWords,
    SummaryCues,
)
from nacre.extraction.reading.patterns import Pattern
from nacre.platform import json_values

_FALLBACK = "en"
_LOOKBEHIND = re.compile(r"(\(\?<[!=][^)]*\))")
_SPACED_WORD = re.compile(r"[^\W\d_\u2e80-\uffff]+")
_APOSTROPHE = re.compile(r"(?<=[a-z]n)'(?=t\b)|(?<=\blet)'(?=s\b)|(?<=hat)'(?=s\b)|(?<=here)'(?=s\b)")


@dataclass(frozen=True, slots=True)
class Language:
    """Everything nacre knows about how people say durable things in one language."""

    language: str
    detect: Pattern
    joiner: str
    lead: Pattern
    tail: Pattern
    correction: Pattern
    remember: Remember
    lean: Lean
    answers: Answers
    accepted: AcceptedCues
    concluded: ConcludedCues
    reversal: ReversalCues
    summary: SummaryCues
    reject: dict[str, Pattern]
    subject: SubjectWords
    mark: tuple[Mark, ...]

    def trim(self, text: str) -> str:
        """The text without conversational beginning and end."""
        lead = self.lead.match(text)
        bare: str = self.tail.sub("", text[lead.end() :] if lead else text)
        return bare.strip(" \t,;:—–-")

    def mark_named(self, name: str) -> Pattern:
        """The words of a mark."""
        return next(one.pattern for one in self.mark if one.name == name)


def _pattern(wanted: type, value: Any) -> Any:
    if wanted == Pattern:
        return Pattern(_typed(value if isinstance(value, str) else "|".join(value)))
    raise NotImplementedError(wanted)


def _typed(pattern: str) -> str:
    """A pattern that also takes "dont", "lets" and curved apostrophes; lookbehinds stay as they are."""
    parts = _LOOKBEHIND.split(pattern)
    return "".join(part if at % 2 else _APOSTROPHE.sub("['’]?", part) for at, part in enumerate(parts))


def _table(name: str) -> dict[str, Any]:
    return tomllib.loads((files(__package__) / "cues" / name).read_text(encoding="utf-8"))


@cache
def languages() -> tuple[Language, ...]:
    """All languages that have a cue table; the one that any text falls back to comes last."""
    names = sorted(entry.name for entry in (files(__package__) / "cues").iterdir() if entry.name.endswith(".toml"))
    found = [json_values.convert(_table(name), Language, dec_hook=_pattern) for name in names]
    return tuple(sorted(found, key=lambda language: language.language == _FALLBACK))


@cache
def _fallback() -> Language:
    return languages()[-1]


def language_of(text: str) -> Language:
    """The cue table for a text: the first whose script it is written in."""
    if text.isascii():
        return _fallback()
    flat = text.replace("\n", " ")
    return next((one for one in languages() if one.detect.search(flat) and _is_mostly(one, flat)), _fallback())


def _is_mostly(language: Language, text: str) -> bool:
    """Whether a text is in a language's script and does not only quote it: each sign of it counts as half a word."""
    if language.joiner:
        return True
    words = _SPACED_WORD.findall(text)
    signs = sum(character.isalpha() for character in _SPACED_WORD.sub("", text))
    return 2 * len(words) <= 3 * signs
