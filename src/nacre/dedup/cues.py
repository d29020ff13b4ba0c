"""How people say that something changed, per language. Data in ``cues/*.toml``."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from nacre.platform import json_values

Pattern = re.Pattern[str]

_OPEN_END = {"GONE": r"(?P<gone>\S(?:[^.;!?]|\.(?=\w))*)", "COME": r"(?P<come>\S(?:[^.;!?]|\.(?=\w))*)"}
_INSIDE = {"GONE": r"(?P<gone>\S(?:[^.;!?]|\.(?=\w))*?)", "COME": r"(?P<come>\S(?:[^.;!?]|\.(?=\w))*?)"}
_FALLBACK = "en"
_THINGS = "things.toml"
_LISTS = ("capital", "common")


@dataclass(frozen=True, slots=True)
class Mood:
    """Words that make a statement something else than a claim about the present.

    ``ahead`` tells what will be or may be from what is, and ``firm`` what has no other case from what may have one;
    ``every`` says that all cases are meant.
    """

    asks: Pattern
    supposes: Pattern
    recounts: Pattern
    adds: Pattern
    narrows: Pattern
    chats: Pattern
    done: Pattern
    undone: Pattern
    ahead: Pattern
    firm: Pattern
    every: Pattern


@dataclass(frozen=True, slots=True)
class ChangeCues:
    """Words of change.

    ``pair`` names what is gone and perhaps what came, ``before`` follows what is gone; ``now``, ``moved`` and
    ``retracts`` say only that there was a change. A ``lead`` comes before what is said. What no longer does a verb of
    ``trouble`` is what it was.
    """

    pair: tuple[Pattern, ...]
    before: tuple[Pattern, ...]
    now: Pattern
    moved: Pattern
    retracts: Pattern
    lead: Pattern
    trouble: Pattern


@dataclass(frozen=True, slots=True)
class Words:
    """Kinds of words.

    A phrase ends at a ``border``, and a ``case`` begins with words like "for"; ``stop`` and ``light`` words carry no
    topic, a ``sort`` tells one sort of thing from another, ``attribute`` words name a property and not a thing, a
    ``part`` is part of a whole, and with a ``role`` verb a person is what is said, not what it is said of.
    ``numbers`` are number words. An ``operator`` is a small word that changes what is said of the same things.
    """

    border: frozenset[str]
    case: frozenset[str]
    stop: frozenset[str]
    sort: frozenset[str]
    operator: frozenset[str]
    light: frozenset[str]
    attribute: frozenset[str]
    part: frozenset[str]
    role: frozenset[str]
    numbers: dict[str, int]


@dataclass(frozen=True, slots=True)
class ChangeLanguage:
    """All that is known of one language: ``scope`` is class → words, ``alike`` word → the word it stands for.

    Words of ``opposites`` tell two things apart, those of ``states`` are told of one thing at different times.

    ``plain`` are ways to give an order, or to tell a preference, each with a plain one that says as much.
    """

    language: str
    detect: Pattern
    mood: Mood
    change: ChangeCues
    words: Words
    scope: dict[str, frozenset[str]]
    opposites: tuple[tuple[str, str], ...]
    states: tuple[tuple[str, str], ...]
    alike: dict[str, str]
    plain: tuple[tuple[Pattern, str], ...]


@cache
def with_capital() -> frozenset[str]:
    """Names of things that are ordinary words without a capital."""
    return frozenset(_things()["capital"].split())


@cache
def no_names() -> frozenset[str]:
    """Things that are told by ordinary words."""
    return frozenset(_things()["common"].split())


@cache
def kinds_of_things() -> dict[str, frozenset[str]]:
    """Name → the kinds of thing it may be."""
    found: dict[str, set[str]] = {}
    for kind, names in _things().items():
        for name in names.split() if kind not in _LISTS else ():
            found.setdefault(name, set()).add(kind)
    return {name: frozenset(kinds) for name, kinds in found.items()}


def names_of_kind(kind: str) -> list[str]:
    """The names of one kind of thing."""
    return _things()[kind].split()


@cache
def _things() -> dict[str, str]:
    return tomllib.loads((files(__package__) / "cues" / _THINGS).read_text(encoding="utf-8"))


@cache
def languages() -> tuple[ChangeLanguage, ...]:
    """All languages with a table; the one that any text falls back to comes last."""
    entries = (files(__package__) / "cues").iterdir()
    tables = [one for one in entries if one.name.endswith(".toml") and one.name != _THINGS]
    found = [_load(tomllib.loads(one.read_text(encoding="utf-8"))) for one in tables]
    return tuple(sorted(found, key=lambda one: (one.language == _FALLBACK, one.language)))


def language_of(text: str) -> ChangeLanguage:
    """The table for a text: the first whose script it is written in, the last for a text of no script."""
    return next((one for one in languages() if one.detect.search(text)), languages()[-1])


def _load(table: dict[str, Any]) -> ChangeLanguage:
    words = table["words"]
    for name in ("border", "case", "stop", "sort", "operator", "light", "attribute", "part", "role"):
        words[name] = words[name].split()
    for name in ("opposites", "states"):
        table[name] = [pair.split() for pair in table[name]["pairs"]]
    groups = [group.split() for group in table["alike"]["groups"]]
    table["plain"] = table["plain"]["ways"]
    table["alike"] = {word: group[0] for group in groups for word in group}
    return json_values.convert(table, ChangeLanguage, dec_hook=_pattern)


def _pattern(wanted: type, value: Any) -> Any:
    if wanted == Pattern:
        for name in _INSIDE:
            if value.endswith(name):
                value = value.removesuffix(name) + _OPEN_END[name]
            value = value.replace(name, _INSIDE[name])
        return re.compile(value, re.IGNORECASE)
    raise NotImplementedError(wanted)
