"""Words that stand for each other: a prompt names what it is about otherwise than the memory does.

In other words ("PR", "pull request"), by a tool of the same kind ("SQLAlchemy", where the memory says "no ORM"), or in
another language. The table is ``kindred.toml``. A prompt in a language that the model does not read well is read as
English, word by word.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from nacre.stemming import stem
from nacre.text import STOP_WORDS, is_unspaced, words

SAME_SHARE, KIND_SHARE = 0.8, 0.6
"""What a word that means the same counts of the very one, and what names another thing of its kind."""

_ROOT = 5
_ENDING = 3
"""A word of another language is known by its first letters, however it is inflected: at least so many, and all but so
many of the last."""

_LEAST_FILLERS = 2
_RUN = re.compile(r"[^\W_]+")


Kin = Mapping[str, Mapping[str, float]]
"""For words of a prompt what stands for them, words or phrases, each with its share."""


@dataclass(frozen=True, slots=True)
class Kindred:
    """What stands for the words of a prompt, and the words that are part of a term of several ("pull request")."""

    forms: Kin
    terms: frozenset[str]


@dataclass(frozen=True, slots=True)
class Reading:
    """A prompt in another language: its words that carry no meaning, what it says, word by word, in English, and which
    word says what."""

    fillers: frozenset[str]
    english: str
    english_of: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Line:
    """A meaning: its forms in English, in other languages that write words, and in Chinese."""

    english: tuple[str, ...]
    latin: tuple[str, ...] = ()
    chinese: tuple[str, ...] = ()
    share: float = SAME_SHARE


@dataclass(frozen=True, slots=True)
class _Table:
    """All lines; their places by the stem that an English form begins with; the words without meaning by language."""

    lines: tuple[_Line, ...]
    english: Mapping[str, tuple[tuple[tuple[str, ...], int], ...]]
    fillers: Mapping[str, frozenset[str]]


def reading(text: str) -> Reading | None:
    """How a prompt in another language is read; ``None`` for English, and where nothing of it is known."""
    if is_unspaced(text):
        glosses = [_table().lines[line].english[0] for _, line in _unspaced_in(text)]
        return Reading(frozenset(), " ".join(dict.fromkeys(glosses)), {}) if glosses else None
    said = words(text)
    fillers = max(_table().fillers.values(), key=lambda known: sum(word in known for word in said))
    count = sum(word in fillers for word in said)
    if count < _LEAST_FILLERS or count <= sum(word in STOP_WORDS for word in said):
        return None
    english_of = {word: _table().lines[found[0]].english[0] for word in said if (found := _lines_of(word))}
    written = (("".join(words(word)), word) for word in _RUN.findall(text))
    told = dict.fromkeys(english_of.get(plain, word) for plain, word in written if plain not in fillers)
    return Reading(fillers, " ".join(told), english_of)


def kin_of(text: str, *, foreign: bool = False) -> Kindred:
    """What stands for the words of a prompt; ``foreign`` looks them up in other languages, too."""
    table = _table()
    said = words(text)
    stems = [stem(word) for word in said]
    found: dict[str, dict[str, float]] = {}
    terms: set[str] = set()
    for at, one in enumerate(stems):
        for form, line in table.english.get(one, ()):
            if tuple(stems[at : at + len(form)]) == form:
                _add(found, said[at], table.lines[line], without=form)
                terms.update(said[at : at + len(form)] if len(form) > 1 else ())
        for line in _lines_of(said[at]) if foreign else ():
            _add(found, said[at], table.lines[line])
    for name, line in _unspaced_in(text):
        _add(found, words(name)[0], table.lines[line])
    return Kindred(found, frozenset(terms))


def _add(found: dict[str, dict[str, float]], word: str, line: _Line, without: tuple[str, ...] = ()) -> None:
    forms = found.setdefault(word, {})
    for form in (*line.english, *line.latin, *line.chinese):
        if tuple(map(stem, form.split())) != without:
            forms[form] = max(forms.get(form, 0.0), line.share)


def _lines_of(word: str) -> list[int]:
    """The meanings of a word of another language, the likeliest first."""
    near = [
        (abs(len(form) - len(word)), line)
        for form, line in _roots().get(word[:_ROOT], ())
        if _shared(form, word) >= max(min(len(form), _ROOT), max(len(form), len(word)) - _ENDING)
    ]
    return [line for _, line in sorted(near)]


def _shared(one: str, other: str) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _unspaced_in(text: str) -> list[tuple[str, int]]:
    """What is known of a text without spaces, in its order; a longer form before those within it."""
    if text.isascii():
        return []
    known = _unspaced()
    found, rest = [], text
    for form in sorted((form for form in known if form in text), key=len, reverse=True):
        if form in rest:
            found.append((text.index(form), form))
            rest = rest.replace(form, " ")
    return [(form, known[form]) for _, form in sorted(found)]


@cache
def _roots() -> Mapping[str, Sequence[tuple[str, int]]]:
    """The words of other languages by how they begin, each with its line."""
    found: dict[str, list[tuple[str, int]]] = {}
    for at, line in enumerate(_table().lines):
        for form in line.latin:
            found.setdefault(form[:_ROOT], []).append((form, at))
    return found


@cache
def _unspaced() -> Mapping[str, int]:
    return {form: at for at, line in enumerate(_table().lines) for form in line.chinese}


@cache
def _table() -> _Table:
    written = tomllib.loads(Path(__file__).with_name("kindred.toml").read_text(encoding="utf-8"))
    lines = []
    for row in written["same"].strip().splitlines():
        english, *latin, chinese = row.split("|")
        lines.append(_Line(_forms(english), _forms(" ".join(latin)), _forms(chinese)))
    lines += [_Line(_forms(row), share=KIND_SHARE) for row in written["kinds"].strip().splitlines()]
    by_stem: dict[str, list[tuple[tuple[str, ...], int]]] = {}
    for at, line in enumerate(lines):
        for form in line.english:
            parts = tuple(map(stem, form.split()))
            by_stem.setdefault(parts[0], []).append((parts, at))
    fillers = {language: frozenset(known.split()) for language, known in written["fillers"].items()}
    return _Table(tuple(lines), {one: tuple(found) for one, found in by_stem.items()}, fillers)


def _forms(column: str) -> tuple[str, ...]:
    return tuple([form.replace("_", " ") if "_" in form else form for form in column.split()])
