"""Weighs: what a statement means, as far as an embedding model can tell: how near it is to what is worth keeping.

Extraction works without it; then the cue tables alone decide.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from nacre.extraction.reading.cues import Language, language_of
from nacre.extraction.reading.sentences import Statement
from nacre.extraction.reading.speech import Utterance
from nacre.values.memory import Kind

MOST_STATEMENTS = 200
"""A session with more is judged by its cue words from there on: meaning costs about 3 ms a statement."""

PLAIN = (Kind.FACT, Kind.DECISION, Kind.PREFERENCE)
"""The kinds that need no more evidence than the statement itself."""

_LESSON = 0.35
_LESSON_TAKEN = 0.2
_TROUBLE = 0.33
_SOME_TROUBLE = 0.1

_FEWEST_WORDS, _MOST_WORDS = 3, 60
_FEWEST_WIDE, _MOST_WIDE = 6, 120
_ENOUGH_WORDS = 8
_TYPED = 12
_PASSED_OVER = ("question", "errand", "hypothetical", "meta", "identifier", "boilerplate")


@dataclass(frozen=True, slots=True)
class Affinity:
    """``worth`` is the share of what is worth keeping, 0 to 1, in what a statement is like; ``kind`` the likeliest of
    the kinds, with a share of ``certainty``, 0 to 1, among them; ``plain`` the likeliest of those that need no more
    evidence: fact, decision, preference.

    ``lesson`` and ``trouble`` are the shares of what one learns from trouble and of what tells of it.

    A statement that no cue speaks for is kept from a worth of about ``alone`` on; ``weight`` says how much the worth
    counts beside a cue. Both depend on how well the model knows the language.
    """

    worth: float
    kind: Kind
    certainty: float
    plain: Kind
    weight: float
    alone: float
    lesson: float = 0.0
    trouble: float = 0.0


class Meaning(Protocol):
    """Judges statements by what they mean."""

    def affinities(self, texts: Sequence[str], language: str) -> Sequence[Affinity] | None:
        """One a text; ``None`` where the language is not known."""


class Judge:
    """Asks for what statements mean: all of a session's at once, single ones later.

    Without a model it knows nothing.
    """

    def __init__(self, meaning: Meaning | None, spoken: Sequence[Utterance] = ()) -> None:
        self._meaning = meaning
        self._known: dict[str, Affinity] = {}
        self._matters = self._ask_all(_that_could_matter(spoken)) if meaning else frozenset()
        told = self._ask_all(_that_tells(spoken)) if meaning else frozenset()
        troubles = frozenset(text for text in told if self._tells_trouble(text))
        self.spoken = [replace(one, troubles=troubles & _told(one)) for one in spoken]
        """The messages, with what in them sounds like trouble."""

    def _ask_all(self, said: Iterator[tuple[str, Language]]) -> frozenset[str]:
        """Asks for texts, as many of a language as are judged, and returns those that are known then."""
        texts: dict[str, dict[str, None]] = {}
        for text, language in said:
            texts.setdefault(language.language, {}).setdefault(text)
        wanted = {name: list(one)[:MOST_STATEMENTS] for name, one in texts.items()}
        for name, some in wanted.items():
            self._ask([text for text in some if text not in self._known], name)
        return frozenset(text for some in wanted.values() for text in some if text in self._known)

    def _tells_trouble(self, text: str) -> bool:
        """Told by itself, trouble sounds much like what is learned from it."""
        affinity = self._known[text]
        said = affinity.trouble + affinity.lesson >= _TROUBLE and affinity.trouble >= _SOME_TROUBLE
        language = language_of(text)
        return said and not (language.lean.start.match(text) or language.lesson.other.search(text))

    def explains(self, text: str, language: Language, *, sure: bool = False) -> bool:
        """Whether a text sounds like what is learned from trouble; ``sure`` says that somebody took it for that."""
        affinity = self.of(text, language)
        return affinity is not None and affinity.lesson >= (_LESSON_TAKEN if sure else _LESSON)

    def said(self, text: str) -> Affinity | None:
        """What a statement of the owner means, by its trimmed text."""
        return self._known[text] if text in self._matters else None

    def of(self, text: str, language: Language) -> Affinity | None:
        """What any text means."""
        if text not in self._known:
            self._ask([text], language.language)
        return self._known.get(text)

    def _ask(self, texts: Sequence[str], language: str) -> None:
        found = self._meaning.affinities(texts, language) if self._meaning else None
        self._known.update(zip(texts, found or (), strict=False))


def _that_could_matter(spoken: Sequence[Utterance]) -> Iterator[tuple[str, Language]]:
    for statement in _typed(spoken):
        language = language_of(statement.text)
        text = language.trim(statement.text)
        if _has_a_say(text, language) and not _is_out(text, language):
            yield text, language


def _that_tells(spoken: Sequence[Utterance]) -> Iterator[tuple[str, Language]]:
    """What could be an account of trouble."""
    for statement in _typed(spoken):
        language = language_of(statement.text)
        text = language.told(statement.text)
        if _has_a_say(text, language) and not any(language.reject[one].search(text) for one in ("question", "errand")):
            yield text, language


def _typed(spoken: Sequence[Utterance]) -> Iterator[Statement]:
    """The statements of messages that somebody typed: nobody types that much at once, what is pasted has only cues."""
    return (one for utterance in spoken if len(utterance.statements) <= _TYPED for one in utterance.statements)


def _told(utterance: Utterance) -> frozenset[str]:
    return frozenset(language_of(one.text).told(one.text) for one in utterance.statements)


def _is_out(text: str, language: Language) -> bool:
    """Whether a statement is nothing to keep, whatever it means."""
    return bool(language.alone.refuse.search(text)) or any(language.reject[one].search(text) for one in _PASSED_OVER)


def _has_a_say(text: str, language: Language) -> bool:
    """Whether a text is of a length to judge, and in the language at all: its small words say so."""
    if not language.joiner:
        return _FEWEST_WIDE <= len(text) <= _MOST_WIDE
    words = text.lower().split()
    small = language.subject.stop | language.subject.links
    known = len(words) < _ENOUGH_WORDS or sum(word in small for word in words) * _ENOUGH_WORDS >= len(words)
    return _FEWEST_WORDS <= len(words) <= _MOST_WORDS and known
