"""Words that stand for each other: a prompt names what it is about otherwise than the memory does.

In other words ("PR", "pull request"), by a tool of the same kind ("SQLAlchemy", where the memory says "no ORM"), or in
another language. The table is ``synonyms.toml``. A prompt in a language that the model does not read well is read as
English, word by word.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from nacre.text.passages import STOP_WORDS, is_unspaced, words
from nacre.text.stems import stem

SAME_SHARE, KIND_SHARE = 0.8, 0.6
"""What a word that means the same counts of the very one, and what names another thing of its kind."""

_ROOT = 5
_ENDING = 3
"""A word of another language is known by its first letters, however it is inflected: at least so many, and all but so
many of the last."""

_KEY = 3
_LEAST_FILLERS = 2
_RUN = re.compile(r"[^\W_]+")

SynonymShares = Mapping[str, Mapping[str, float]]
"""For words of a prompt what stands for them, words or phrases, each with its share."""


class Synonyms(NamedTuple):
    """What stands for the words of a prompt; for the words that are part of a longer term ("pull request") what else
    that is called; and the pairs of characters that say no more than the one before, as they are of one word."""

    forms: SynonymShares
    terms: Mapping[str, Sequence[str]]
    within: frozenset[str]


class Reading(NamedTuple):
    """A prompt in another language: its words that carry no meaning, what it says, word by word, in English, and which
    word says what."""

    fillers: frozenset[str]
    english: str
    english_of: Mapping[str, str]


class _Line(NamedTuple):
    """A meaning: its forms in English, with their stems, in other languages that write words, and in Chinese."""

    english: tuple[str, ...]
    stems: tuple[tuple[str, ...], ...]
    latin: tuple[str, ...]
    chinese: tuple[str, ...]
    share: float


class _Table(NamedTuple):
    """The rows as they are written, those of the same meaning first; their places by how a word in them begins; the
    words without meaning by language."""

    rows: Sequence[str]
    same: int
    places: Mapping[str, Sequence[int]]
    fillers: Mapping[str, frozenset[str]]


def reading(text: str) -> Reading | None:
    """How a prompt in another language is read; ``None`` for English, and where nothing of it is known."""
    if is_unspaced(text):
        glosses = [_line(at).english[0] for _, at in _unspaced_in(text)]
        return Reading(frozenset(), " ".join(dict.fromkeys(glosses)), {}) if glosses else None
    said = words(text)
    fillers = max(_table().fillers.values(), key=lambda known: sum(word in known for word in said))
    count = sum(word in fillers for word in said)
    if count < _LEAST_FILLERS or count <= sum(word in STOP_WORDS for word in said):
        return None
    english_of = {word: _line(found[0]).english[0] for at, word in enumerate(said) if (found := _foreign(said[at:]))}
    written = (("".join(words(word)), word) for word in _RUN.findall(text))
    told = dict.fromkeys(english_of.get(plain, word) for plain, word in written if plain not in fillers)
    return Reading(fillers, " ".join(told), english_of)


def synonyms_of(text: str, *, foreign: bool = False) -> Synonyms:
    """What stands for the words of a prompt; ``foreign`` looks them up in other languages, too."""
    said = words(text)
    stems = tuple(map(stem, said))
    found: dict[str, dict[str, float]] = {}
    terms: dict[str, Sequence[str]] = {}
    for at, word in enumerate(said):
        for place, length in _beginning(stems[at:]):
            _add(found, word, place, without=stems[at : at + length])
            terms |= dict.fromkeys(said[at : at + length] if length > 1 else (), _line(place).english)
        for place in _foreign(said[at:]) if foreign else ():
            _add(found, word, place)
    within: set[str] = set()
    for form, place in _unspaced_in(text):
        first, *others = words(form)
        _add(found, first, place)
        within.update(others)
    return Synonyms(found, terms, frozenset(within))


def _add(found: dict[str, dict[str, float]], word: str, place: int, without: tuple[str, ...] = ()) -> None:
    """Add what stands for a word by a line: what means the same, and what is of the same kind as that."""
    forms = found.setdefault(word, {})
    line = _line(place)
    others = (form for form, stems in zip(line.english, line.stems, strict=True) if stems != without)
    for form in (*others, *line.latin, *line.chinese):
        forms[form] = max(forms.get(form, 0.0), line.share)
    if line.share == SAME_SHARE:
        for kind, length in _beginning(line.stems[0]):
            if _line(kind).share == KIND_SHARE and length == len(line.stems[0]):
                _add(found, word, kind, line.stems[0])


def _beginning(stems: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    """The lines that have an English form with which some stems begin, and of how many words it is."""
    for place in _table().places.get(stems[0][:_KEY], ()):
        for form in _line(place).stems:
            if stems[: len(form)] == form:
                yield place, len(form)


def _foreign(said: Sequence[str]) -> list[int]:
    """The meanings of the first of some words of another language, or of a term that it begins, the likeliest first."""
    near = []
    for place in _table().places.get(said[0][:_KEY], ()):
        for form in _line(place).latin:
            parts = form.split()
            if len(parts) > 1:
                if list(said[: len(parts)]) == parts:
                    near.append((-len(parts), place))
            elif _shared(form, said[0]) >= max(min(len(form), _ROOT), max(len(form), len(said[0])) - _ENDING):
                near.append((abs(len(form) - len(said[0])), place))
    return [place for _, place in sorted(near)]


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
def _unspaced() -> Mapping[str, int]:
    table = _table()
    return {form: at for at in range(table.same) for form in table.rows[at].rpartition("|")[2].split()}


@cache
def _line(place: int) -> _Line:
    """A line, taken apart only once a prompt has a word of it: a hook has no time for all of them."""
    table = _table()
    english, *others = table.rows[place].split("|")
    forms = _forms(english)
    latin, chinese = (" ".join(others[:-1]), others[-1]) if others else ("", "")
    share = SAME_SHARE if place < table.same else KIND_SHARE
    return _Line(forms, tuple(tuple(map(stem, form.split())) for form in forms), _forms(latin), _forms(chinese), share)


def _forms(column: str) -> tuple[str, ...]:
    return tuple([form.replace("_", " ") for form in column.split()])


@cache
def _table() -> _Table:
    written = tomllib.loads(Path(__file__).with_name("synonyms.toml").read_text(encoding="utf-8"))
    same, kinds = written["same"].strip().splitlines(), written["kinds"].strip().splitlines()
    rows = [*same, *kinds]
    places: dict[str, list[int]] = {}
    for place, row in enumerate(rows):
        for key in {form.partition("_")[0][:_KEY] for form in row.split()}:
            places.setdefault(key, []).append(place)
    fillers = {language: frozenset(known.split()) for language, known in written["fillers"].items()}
    return _Table(rows, len(same), places, fillers)
