"""Secrets that no regex finds: those that lie in lines around what a rule matched, or in a column of a table."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from nacre.redact.near import near_password, said_phrase
from nacre.redact.said import said_key, said_password
from nacre.redact.sql import inserted_cells, iter_parts

Finder = Callable[[bytes, "re.Match[bytes]"], Iterator[tuple[int, int]]]

_KEY_BYTES = 20_000
_KEY_LINE_BYTES = 200
_LINE_BYTES = 2_000
_TABLE_BYTES = 20_000
_BREAK = re.compile(rb"\r?\n|\\{1,4}r?\\{0,4}n")
_KEY_LINE = re.compile(rb"""(?:[^\r\n]{0,80}[^A-Za-z0-9+/=])?(=?[A-Za-z0-9+/]{4,100}={0,2})[ \t"',+\\]{0,8}$""")
_WHOLE_LINE = 40
_RULER = re.compile(rb"[ \t>+|:=-]*-[ \t|:=-]*$")
_RULED = re.compile(rb"\n[|: \t]{0,3}-")
_CELL = re.compile(rb"[^|\\]*(?:\\.[^|\\]*)*")
_HTML_CELL = re.compile(
    rb"\s{0,20}<td[^<>]{0,80}>(?:<\w{1,6}>)?[ \t]{0,4}((?:[^\s<]|<(?!/)){6,200}?)[ \t]{0,4}</", re.IGNORECASE
)
_WRAPPED = rb" \t`*_\"'" b"\r"
_MARKS = (re.compile(rb"\t"), re.compile(rb";"), re.compile(rb",[ ]?"), re.compile(rb"[ ]{2,}"))
_HEADING = re.compile(rb"""[ "']{0,2}[A-Za-z\x80-\xff][\w .()\x80-\xff-]{0,40}["']?[ ]?""")


def key_lines(data: bytes, match: re.Match[bytes]) -> Iterator[tuple[int, int]]:
    """The lines of a private key before its end, or after its beginning where it has no end; each with what precedes
    it, as ``grep -n`` or a log writes."""
    if b"END" in match[0][:10].upper():
        first = min((start for start, _ in _lines_before(data, match.start())), default=match.start())
        if first < match.start():
            yield first, match.end()
        return
    last = max((end for _, end in _lines_after(data, match.end())), default=match.end())
    if last > match.end():
        yield match.start(), last


def _lines_before(data: bytes, place: int) -> Iterator[tuple[int, int]]:
    stop = _last_break(data, place)
    is_last = True
    while stop is not None and place - stop[0] < _KEY_BYTES:
        before = _last_break(data, stop[0])
        span = _key_span(data, before[1] if before else max(0, stop[0] - _KEY_LINE_BYTES), stop[0], is_last=is_last)
        if span is None:
            return
        yield span
        stop, is_last = before, False


def _last_break(data: bytes, place: int) -> tuple[int, int] | None:
    breaks = [found.span() for found in _BREAK.finditer(data, max(0, place - _KEY_LINE_BYTES), place)]
    return breaks[-1] if breaks else None


def _lines_after(data: bytes, place: int) -> Iterator[tuple[int, int]]:
    begin = _BREAK.match(data, place)
    was_whole = True
    while begin is not None and begin.end() - place < _KEY_BYTES:
        following = _BREAK.search(data, begin.end(), begin.end() + _KEY_LINE_BYTES)
        end = following.start() if following else min(len(data), begin.end() + _KEY_LINE_BYTES)
        span = _key_span(data, begin.end(), end, is_last=was_whole)
        if span is None:
            return
        yield span
        begin, was_whole = following, span[1] - span[0] >= _WHOLE_LINE


def _key_span(data: bytes, start: int, end: int, *, is_last: bool) -> tuple[int, int] | None:
    found = _KEY_LINE.match(data[start:end])
    if found is None or (not is_last and len(found[1]) < _WHOLE_LINE):
        return None
    return start + found.start(1), start + found.end(1)


def table_cells(data: bytes, match: re.Match[bytes]) -> Iterator[tuple[int, int]]:
    """The cells below a cell that names a secret, where it heads a column; else the one to the right of it."""
    if not match[0].endswith((b"|", b">")):
        yield from inserted_cells(data, match.start())
    if not match[0].endswith((b"|", b">")) and not _RULED.match(data, match.end()):
        yield from _iter_marked_column(data, match.start())
        return
    if match[0].endswith(b">"):
        beside = _HTML_CELL.match(data, match.end())
        if beside:
            yield beside.span(1)
        return
    place = match.start()
    start = data.rfind(b"\n", max(0, place - _LINE_BYTES), place) + 1
    if place - start > _LINE_BYTES:
        return
    cells = list(_iter_cells(data, start, _line_end(data, place)))
    number = next((number for number, (first, end) in enumerate(cells) if first <= place < end), None)
    if number is None:
        return
    if b"{{" in data[start : _line_end(data, place)]:
        return
    row = _line_end(data, place) + 1
    ruler = data[row : _line_end(data, row)]
    if _RULER.match(ruler) and (b"|" in ruler or b"+" in ruler):
        yield from _iter_column(data, _line_end(data, row) + 1, number)
    elif number + 1 < len(cells) and data[start : start + 40].lstrip(b"> \t").startswith(b"|"):
        yield _bare(data, *cells[number + 1])


def _iter_marked_column(data: bytes, place: int) -> Iterator[tuple[int, int]]:
    """The cells below a cell, where commas, semicolons, tabs or blanks separate columns."""
    start = data.rfind(b"\n", max(0, place - _LINE_BYTES), place) + 1
    head = data[start : _line_end(data, place)].rstrip(b"\r")
    mark = next((mark for mark in _MARKS if len(mark.split(head)) > 1), None)
    if mark is None or place - start > _LINE_BYTES or not all(_HEADING.fullmatch(cell) for cell in mark.split(head)):
        return
    number, count = len(mark.split(head[: place - start])) - 1, len(mark.split(head))
    start += len(data[start : _line_end(data, place)]) + 1
    stop = start + _TABLE_BYTES
    while start < min(stop, len(data)):
        end = _line_end(data, start)
        cells = list(iter_parts(mark, data, start, end))
        if len(cells) != count:
            return
        yield _bare(data, *cells[number])
        start = end + 1


def _iter_column(data: bytes, start: int, number: int) -> Iterator[tuple[int, int]]:
    stop = start + _TABLE_BYTES
    while start < min(stop, len(data)):
        end = _line_end(data, start)
        cells = list(_iter_cells(data, start, end))
        if len(cells) <= number or len(cells) == 1 or _RULER.match(data, start, end):
            return
        yield _bare(data, *cells[number])
        start = end + 1


def _line_end(data: bytes, place: int) -> int:
    end = data.find(b"\n", place, place + _LINE_BYTES)
    return min(len(data), place + _LINE_BYTES) if end < 0 else end


def _iter_cells(data: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    while start <= end:
        found = _CELL.match(data, start, end)
        stop = found.end() if found else start
        yield start, stop
        start = stop + 1


def _bare(data: bytes, start: int, end: int) -> tuple[int, int]:
    cell = data[start:end]
    return start + len(cell) - len(cell.lstrip(_WRAPPED)), max(start, end - len(cell) + len(cell.rstrip(_WRAPPED)))


FINDERS: Mapping[str, Finder] = {
    "key-lines": key_lines,
    "table-cells": table_cells,
    "said-password": said_password,
    "said-key": said_key,
    "near-password": near_password,
    "said-phrase": said_phrase,
}
"""Finders by the name the rule table gives them: of the text and what the rule matched, where secrets may lie."""
