"""The data: the cue tables: what words tell a decision from a preference, per language. Data in ``cues/*.toml``."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from nacre.extraction.reading.cue_sets import (
    AcceptedCues,
    Answers,
    ConcludedCues,
    Cue,
    ExpiryCues,
    ImportanceCues,
    Lean,
    LessonCues,
    Mark,
    Remember,
    ReversalCues,
    Score,
    SubjectWords,
    SummaryCues,
)
from nacre.extraction.reading.patterns import Pattern
from nacre.platform import json_values

_SHARED = "shared.toml"
_FALLBACK = "en"
_LOOKBEHIND = re.compile(r"(\(\?<[!=][^)]*\))")
_SPACED_WORD = re.compile(r"[^\W\d_\u2e80-\uffff]+")
_APOSTROPHE = re.compile(r"(?<=[a-z]n)'(?=t\b)|(?<=\blet)'(?=s\b)|(?<=hat)'(?=s\b)|(?<=here)'(?=s\b)")


@dataclass(frozen=True, slots=True)
class Language:
    """Everything nacre knows about how people say durable things in one language. ``topical`` is any topic's name."""

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
    lesson: LessonCues
    concluded: ConcludedCues
    reversal: ReversalCues
    expiry: ExpiryCues
    importance: ImportanceCues
    summary: SummaryCues
    reject: dict[str, Pattern]
    subject: SubjectWords
    score: Score
    cue: tuple[Cue, ...]
    mark: tuple[Mark, ...]
    topics: dict[str, Pattern]
    topical: Pattern
    names: Pattern
    things: dict[str, Pattern] = field(default_factory=dict)

    def trim(self, text: str) -> str:
        """The text without conversational beginning and end."""
        lead = self.lead.match(text)
        bare: str = self.tail.sub("", text[lead.end() :] if lead else text)
        return bare.strip(" \t,;:—–-")

    def mark_named(self, name: str) -> Pattern:
        """The words of a mark."""
        return next(one.pattern for one in self.mark if one.name == name)

    def told(self, text: str) -> str:
        """The text without conversational beginning and end, nor a request that goes with what it tells."""
        trimmed = self.trim(text)
        return self.lesson.tail.sub("", trimmed).strip(" \t,;:—–-") or trimmed


def _pattern(wanted: type, value: Any) -> Any:
    if wanted == Pattern:
        return Pattern(_typed(value if isinstance(value, str) else "|".join(value)))
    raise NotImplementedError(wanted)


def _typed(pattern: str) -> str:
    """A pattern that also takes "dont", "lets" and curved apostrophes; lookbehinds stay as they are."""
    parts = _LOOKBEHIND.split(pattern)
    return "".join(part if at % 2 else _APOSTROPHE.sub("['’]?", part) for at, part in enumerate(parts))


def _words(words: list[str]) -> str:
    """One pattern for a list of names; only names in a script with spaces end at a word boundary.

    Names with the same first letter stand together: a word is compared with the letters first, not with all names.
    """
    by_letter: dict[str, list[str]] = {}
    for word in words:
        if word.isascii():
            by_letter.setdefault(word[:1].lower(), []).append(re.escape(word[1:]))
    spaced = "|".join(f"{re.escape(letter)}(?:{'|'.join(rest)})" for letter, rest in by_letter.items())
    parts = [rf"(?<![\w.-])(?:{spaced})(?![\w-])"] if spaced else []
    return "|".join([*parts, *(re.escape(word) for word in words if not word.isascii())])


def _table(name: str) -> dict[str, Any]:
    return tomllib.loads((files(__package__) / "cues" / name).read_text(encoding="utf-8"))


def _load(name: str, shared: dict[str, Any]) -> Language:
    table = _table(name)
    for section in ("topics", "things"):
        own, common = table.get(section, {}), shared.get(section, {})
        topics = {topic: own.get(topic, []) + common.get(topic, []) for topic in (*own, *common)}
        if section == "topics":
            table["topical"] = _words([word for words in topics.values() for word in words])
        table[section] = {topic: _words(words) for topic, words in topics.items()}
    named = {word for words in shared["topics"].values() for word in words}
    table["names"] = _words(sorted(named - set(shared["plain"])))
    return json_values.convert(table, Language, dec_hook=_pattern)


@cache
def languages() -> tuple[Language, ...]:
    """All languages that have a cue table; the one that any text falls back to comes last."""
    shared = _table(_SHARED)
    names = sorted(entry.name for entry in (files(__package__) / "cues").iterdir())
    found = [_load(name, shared) for name in names if name.endswith(".toml") and name != _SHARED]
    return tuple(sorted(found, key=lambda language: language.language == _FALLBACK))


@cache
def _fallback() -> Language:
    return languages()[-1]


@cache
def language_named(name: str) -> Language:
    """The cue table of a language, by what the table calls itself."""
    return next(one for one in languages() if one.language == name)


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
