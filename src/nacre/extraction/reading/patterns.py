"""Regular expressions that know what a text must hold for them to be found in it.

A statement is held against more than a hundred expressions, hardly any of which is in it. Each is taken apart once: in
whatever way it matches, it needs one of a few runs of letters. Those of a text are collected once, and an expression
none of whose runs is among them is not looked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib import import_module
from itertools import pairwise
from typing import Any

GRAM = 3
"""Letters in a run, at most."""

_LONGEST = 300
"""Of longer texts the runs are not collected: they are held against few expressions, and hold many runs."""

_MOST = 200
_REMEMBERED = 256
_COMMON = " etaoinshrdlcumwfgypbvkjxqz"
_ALSO = str.maketrans({"\u0130": "i", "\u0131": "i", "\u017f": "s"})
"""What expressions that ignore case take for a letter of ASCII, though it is not one in lower case."""


class Pattern:
    """A regular expression that ignores case, as :class:`re.Pattern` has them. Compiled when it is first used."""

    __slots__ = ("_needs", "_search", "findall", "finditer", "fullmatch", "match", "pattern", "split", "sub")

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern

    def __getattr__(self, name: str) -> Any:
        """What is not there yet. Raises re.error where it is no expression."""
        if name not in self.__slots__:
            raise AttributeError(name)
        expression = re.compile(self.pattern, re.IGNORECASE)
        for method in ("findall", "finditer", "fullmatch", "match", "split", "sub"):
            setattr(self, method, getattr(expression, method))
        self._search = expression.search
        self._needs = needs_of(self.pattern)
        return getattr(self, name)

    def search(self, text: str) -> re.Match[str] | None:
        """The first place in a text where it matches."""
        if self._needs and len(text) <= _LONGEST and self._needs.isdisjoint(_grams(text)):
            return None
        found: re.Match[str] | None = self._search(text)
        return found


def needs_of(pattern: str) -> frozenset[str]:
    """Runs of letters, one of which is in every text that an expression matches; empty where that cannot be told."""
    try:
        tree = import_module("re._parser").parse(pattern, re.IGNORECASE)
    except ImportError:  # how Python takes expressions apart is its own affair
        return frozenset()
    needed = _needed(tree)
    return frozenset(map(_rarest, needed)) if needed else frozenset()


@lru_cache(maxsize=_REMEMBERED)
def _grams(text: str) -> frozenset[str]:
    if not text.isascii():
        text = text.translate(_ALSO)
    text = text.lower()
    pairs = map("".join, pairwise(text))
    threes = map("".join, zip(text, text[1:], text[2:], strict=False))
    return frozenset(text).union(pairs, threes)


def _rarest(run: str) -> str:
    grams = [run[at : at + GRAM] for at in range(max(1, len(run) - GRAM + 1))]
    return max(grams, key=lambda gram: sum(_COMMON.find(letter) % len(_COMMON) for letter in gram))


def _needed(tree: Iterable[Any]) -> frozenset[str]:
    """The best set of runs of which any match of a sequence holds one; empty where there is none."""
    best: frozenset[str] = frozenset()
    runs = frozenset({""})
    for operator, argument in tree:
        spelled = _spelled(str(operator), argument)
        grown = frozenset(head + tail for head in runs for tail in spelled) if spelled else frozenset()
        if grown and len(grown) <= _MOST:
            runs = grown
            continue
        best = max(best, runs, frozenset(_inside(str(operator), argument)), key=_worth)
        runs = spelled if spelled and len(spelled) <= _MOST else frozenset({""})
    best = max(best, runs, key=_worth)
    return best if all(best) else frozenset()


def _worth(runs: frozenset[str]) -> tuple[int, int]:
    """Long runs say more than short ones, few more than many; sets with an empty one say nothing."""
    shortest = min(map(len, runs), default=0)
    return (min(shortest, GRAM), -len(runs)) if shortest else (0, 0)


def _inside(operator: str, argument: Any) -> Iterator[str]:
    """The runs that a part needs whose words cannot all be spelled out."""
    match operator:
        case "SUBPATTERN":
            yield from _needed(argument[3])
        case "ATOMIC_GROUP":
            yield from _needed(argument)
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT" if argument[0] > 0:
            yield from _needed(argument[2])
        case "BRANCH":
            branches = [_needed(branch) for branch in argument[1]]
            yield from frozenset().union(*branches) if all(branches) else ()


def _spelled(operator: str, argument: Any) -> frozenset[str]:
    """All that a part can match, in lower case, where that is a few words; empty where it is not."""
    match operator:
        case "AT" | "ASSERT" | "ASSERT_NOT":
            return frozenset({""})
        case "LITERAL":
            return _letter(argument)
        case "IN" if all(str(kind) == "LITERAL" for kind, _ in argument):
            letters = [_letter(code) for _, code in argument]
            return frozenset().union(*letters) if all(letters) else frozenset()
        case "SUBPATTERN":
            return _spelled_out(argument[3])
        case "BRANCH":
            branches = [_spelled_out(branch) for branch in argument[1]]
            return frozenset().union(*branches) if all(branches) else frozenset()
        case "MAX_REPEAT" | "MIN_REPEAT" if argument[:2] == (0, 1):
            spelled = _spelled_out(argument[2])
            return spelled | {""} if spelled else frozenset()
    return frozenset()


def _spelled_out(tree: Iterable[Any]) -> frozenset[str]:
    words = frozenset({""})
    for operator, argument in tree:
        words = frozenset(head + tail for head in words for tail in _spelled(str(operator), argument))
        if not words or len(words) > _MOST:
            return frozenset()
    return words


def _letter(code: int) -> frozenset[str]:
    """A letter in lower case; outside ASCII only where there are no cases to ignore."""
    letter = chr(code)
    if letter.isascii():
        return frozenset({letter.lower()})
    return frozenset({letter}) if letter.lower() == letter.upper() else frozenset()
