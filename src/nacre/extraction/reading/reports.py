"""Reads: what an agent reports, or a plan says: statements under their headings, without what only points into code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from nacre.extraction.reading.sentences import Statement, split

_REMEMBERED = 64
_MARK = "\ue000"  # stands for a quotation mark while a text is split
_MAX_CHARACTERS = 280
_FENCE = re.compile(r"^(```|~~~).*?(?:^\1|\Z)", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(
    r"^\s{0,3}(?:#{1,6}\s+(?P<marked>\S.*?)\s*#*|\*\*(?P<bold>[^*]{2,80}?)\*\*\s*[:：]?|__(?P<under>[^_]{2,80})__)\s*$"
)
_NUMBER = re.compile(r"^(?:\d{1,2}[.)]|[^\w`\"']+)\s*")
_PLACES = re.compile(
    r"""
    \s*[(（](?:(?:at|on|see|in)\ )?(?:`?[\w./-]+\.\w{1,5}`?[:,]?\ ?)?(?:lines?\ |L|:|第\ ?)\d[^()（）]{0,30}[)）]
    | \s*[,，]?\ (?:at|on|in|around|near)\ lines?\ \d+(?:\s?[-–]\s?\d+)?           # on line 30
    | \s*第\s?\d+(?:\s?[-–]\s?\d+)?\s?行
    | (?<=\.go|\.py|\.ts|\.js|\.rs|\.rb|\.kt|\.cc)(?::\d+)(?:\s?[-–:]\s?\d+)*                      # resume.go:336-339
    | (?<=\w\.\w{3}|\.\w{4})(?::\d+)(?:\s?[-–:]\s?\d+)*
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Passage:
    """What stands under one heading; the heading is empty before the first."""

    heading: str
    statements: tuple[Statement, ...]


@lru_cache(maxsize=_REMEMBERED)
def passages(text: str) -> tuple[Passage, ...]:
    """The statements of a text, heading by heading; bold lines of their own are headings, too."""
    return tuple(one for one in _passages(without_fences(text)) if one.heading or one.statements)


def without_fences(text: str) -> str:
    """A text without its blocks of code."""
    return _FENCE.sub("\n", text)


def _passages(text: str) -> Iterator[Passage]:
    heading, lines = "", list[str]()
    for line in text.replace('"', _MARK).split("\n"):
        match = _HEADING.match(line)
        if match is None:
            lines.append(line)
            continue
        yield Passage(heading, _statements(lines))
        heading, lines = _titled(match["marked"] or match["bold"] or match["under"]).replace(_MARK, '"'), []
    yield Passage(heading, _statements(lines))


def _statements(lines: Sequence[str]) -> tuple[Statement, ...]:
    """The statements of some lines; quotation marks in a report are names and values, no pasted text."""
    return tuple(replace(one, text=one.text.replace(_MARK, '"')) for one in split("\n".join(lines)))


def _titled(heading: str) -> str:
    plain = heading.replace("**", "").strip(" :：")
    return _NUMBER.sub("", plain)
