"""Cells of rows that SQL writes: of an INSERT's values and a dump's COPY, below the column that names a secret.

Blanks may be escaped, as in JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_COLUMNS, _TABLE, _ROWS = 2_000, 120, 20_000
_BLANK = rb"(?:\s|\\{1,4}[nrt])"
_INTO = re.compile(rb"\b(?:into|copy)%b{1,8}[\w.`\"\[\]\\]{1,80}%b{0,8}$" % (_BLANK, _BLANK), re.IGNORECASE)
_VALUES = re.compile(rb"%b{0,8}values%b{0,16}" % (_BLANK, _BLANK), re.IGNORECASE)
_STDIN = re.compile(rb"%b{1,8}from%b{1,8}stdin;?(?:\r?\n|\\{1,4}n)" % (_BLANK, _BLANK), re.IGNORECASE)
_VALUE = re.compile(
    rb"""%b{0,16}(?:[NE]?'((?:[^'\\]|''|\\.){0,400}+)'|"((?:[^"\\]|\\.){0,400}+)"|([^,()'"]{0,100}(?:\([^()]{0,100}\))?))
    %b{0,16}(?=[,)])"""
    % (_BLANK, _BLANK),
    re.VERBOSE,
)
_NEXT_ROW = re.compile(rb"\)%b{0,8},%b{0,16}(?=\()" % (_BLANK, _BLANK))
_BREAK = re.compile(rb"\r?\n|\\{1,4}r?\\{0,4}n")
_TAB = re.compile(rb"\t|\\{1,4}t")


def inserted_cells(data: bytes, place: int) -> Iterator[tuple[int, int]]:
    """What rows hold in the column whose name lies at a place; nothing where that is no column of an INSERT or COPY."""
    opened = data.rfind(b"(", max(0, place - _COLUMNS), place)
    closed = data.find(b")", place, place + _COLUMNS)
    if opened < 0 or closed < 0 or not _INTO.search(data, max(0, opened - _TABLE), opened):
        return
    number = data.count(b",", opened, place)
    values = _VALUES.match(data, closed + 1)
    if values:
        yield from _iter_tuples(data, values.end(), number)
    copied = _STDIN.match(data, closed + 1)
    if copied:
        yield from _iter_lines(data, copied.end(), number)


def _iter_tuples(data: bytes, place: int, number: int) -> Iterator[tuple[int, int]]:
    stop = place + _ROWS
    while place < stop and data[place : place + 1] == b"(":
        at = 0
        while value := _VALUE.match(data, place + 1):
            if at == number:
                yield value.span(value.lastindex or 0)
            at, place = at + 1, value.end()
            if data[place : place + 1] == b")":
                break
        following = _NEXT_ROW.match(data, place)
        if following is None:
            return
        place = following.end()


def _iter_lines(data: bytes, place: int, number: int) -> Iterator[tuple[int, int]]:
    for line in iter_parts(_BREAK, data, place, min(len(data), place + _ROWS)):
        cells = list(iter_parts(_TAB, data, *line))
        if len(cells) <= number:
            return
        yield cells[number]


def iter_parts(mark: re.Pattern[bytes], data: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Where the parts of a stretch lie that a mark separates."""
    for found in mark.finditer(data, start, end):
        yield start, found.start()
        start = found.end()
    yield start, end
