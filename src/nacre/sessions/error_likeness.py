"""How like two errors are: what changes from one time to the next does not count."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from nacre.values.session import ToolCall

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_CHANGING = (
    re.compile(r"\d{4}-\d\d-\d\d[t ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:z|[+-]\d\d:?\d\d)?"),
    re.compile(r"\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b"),
    re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"),
    re.compile(r"\b0x[0-9a-f]+\b"),
    re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{7,64}\b"),
)
_FOLDERS = re.compile(r"(?:[a-z]:)?(?:[\w.@~+-]*/)+(?=[\w.-])|(?:[a-z]:)?(?:[\w.@~+-]*\\)+(?=[\w.-])")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?\b")
_PLACE = re.compile(r":(?:\d+)(?::\d+)?\b")
_WORD = re.compile(r"[^\W_]+(?:[_.'-][^\W_]+)*|[぀-ヿ一-鿿]{2}")
_NAME = re.compile(r"[a-z]+(?:error|exception|warning)\b|[a-z0-9]+(?:[_.-][a-z0-9]+)+|e[a-z]{4,}\b")
_NAME_WEIGHT = 3.0
_TRIVIAL = frozenset(
    "a an the is was are be to of in on at for from by with and or not it its this that line file error errors failed "
    "failure exception traceback most recent call last warning fatal at exit code status".split()
)
_TRIVIAL_WEIGHT = 0.25
_SEPARATORS = re.compile(r"[\s\"'`=,;()\[\]{}<>|&]+")
_QUOTED = re.compile(r"[\"'`]([\w.@-]{3,})[\"'`]")
_PART = re.compile(r"[^\W_]{2,}")
_ENDING = re.compile(r"\.[a-z]{1,4}(?::\d+)*$|(?::\d+)+$")
_GENERIC = frozenset("test tests spec index main src lib cd run exec bin usr tmp home no nor found cannot".split())
"""Parts of names that do not tell what a call is about."""
_ASKED_SHARE = 0.65
"""An error that is told with much around it is still the same: what was asked about weighs more than what was kept."""


def gist(line: str) -> str:
    """A line of an error without what is new each time: times, ids, numbers, places, folders."""
    text = _COLOURS.sub("", line).lower()
    for changing in _CHANGING:
        text = changing.sub(" ", text)
    text = _FOLDERS.sub("", _PLACE.sub(" ", text))
    return " ".join(_NUMBER.sub(" ", text).split())


def terms_of(line: str) -> frozenset[str]:
    """The words of a line's gist."""
    return frozenset(_WORD.findall(gist(line)))


def likeness(asked: Iterable[frozenset[str]], kept: Iterable[frozenset[str]]) -> float:
    """How like an error is to one that was asked about, 0 to 1: that of their two lines that are most alike.

    Names (``ModuleNotFoundError``, ``pg_config``, ``ECONNREFUSED``) count three times as much as words, words that any
    error has a quarter.
    """
    others = list(kept)
    return max((_overlap(one, other) for one in asked for other in others if one and other), default=0.0)


def searched(lines: Sequence[str], most: int = 40) -> list[str]:
    """The words to look for, those that tell most first."""
    terms = {term for line in lines for term in terms_of(line)}
    return sorted(terms, key=lambda term: (-_weight(term), term))[:most]


def concerns(step: ToolCall, failed: ToolCall) -> bool:
    """Whether a step shares a file, a program or an identifier with a call that failed, or with its error."""
    done = _things(step.input, *step.paths)
    error = failed.error or failed.outcome or ""
    named = {name.lower() for name in _QUOTED.findall(error)}
    return not done.isdisjoint(_things(failed.input, *failed.paths, error)) or any(
        name in thing for name in named for thing in done
    )


def _things(*texts: str) -> frozenset[str]:
    """The names in commands, paths and errors, without folders, endings of files and options."""
    tokens = (token for text in texts for token in _SEPARATORS.split(text.lower()) if not token.startswith("-"))
    names = (re.split(r"[/\\]", token.strip(".:"))[-1] for token in tokens)
    parts = {part for name in names for part in _PART.findall(_ENDING.sub("", name))}
    return frozenset(parts - _TRIVIAL - _GENERIC)


def _overlap(asked: frozenset[str], kept: frozenset[str]) -> float:
    common = sum(map(_weight, asked & kept))
    if not common:
        return 0.0
    return _ASKED_SHARE * common / sum(map(_weight, asked)) + (1 - _ASKED_SHARE) * common / sum(map(_weight, kept))


def _weight(term: str) -> float:
    if term in _TRIVIAL:
        return _TRIVIAL_WEIGHT
    return _NAME_WEIGHT if _NAME.fullmatch(term) else 1.0
