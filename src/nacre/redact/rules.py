"""The table of redaction rules, and the searches that choose which rules to try on a text."""

from __future__ import annotations

import binascii
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import entities
from typing import Any
from urllib.parse import unquote_to_bytes

from nacre.base.frozen import frozen
from nacre.base.text import read_table
from nacre.redact.secrets import (
    CHECKS,
    LOOK_BACK,
    Candidate,
    measure_entropy,
    near_password,
    said_key,
    said_password,
    said_phrase,
)

_ANCHORS = tuple(bytes([byte]) for byte in (*rb"~%\&!:-wjvzkubphc", *range(0xFF, 0xBF, -1)))
"""Bytes at which the search for a word starts, the rare ones first.

A word without a suitable ASCII character is found by another character's first byte.
"""

_LOOKAHEADS: Mapping[bytes, bytes] = {
    b"%": rb"(?=2[25]|3[ad]|7b|c[3-5]|d[01])",
    b"\\": rb"(?=u(?!00[01])[0-9a-f]{4})",
    b"&": rb"(?=(?:quot|amp|lt|gt|apos|#x?[0-9a-f]{1,6});)",
    b"pw": rb"(?![a-ce-z])",
    b"ww": rb"(?=[ :])",
    b" -p": rb"(?!ass|[jkvwz])",
    **{b" -" + flag: rb"(?=[ ='\"])" for flag in (b"a", b"b", b"c", b"k", b"u", b"w", b"x")},
}
"""For words that would match too often, a regex for the text that must follow them."""


class Hints:
    """A fast, case-insensitive search for many words at once."""

    __slots__ = ("_by_tail", "_search")

    def __init__(self, words: Collection[bytes]) -> None:
        """Prepare a search for lower-case words, which also finds overlapping ones."""
        tails = {word: _cut_tail(word) for word in sorted(words, key=len, reverse=True)}
        by_anchor: dict[bytes, list[bytes]] = defaultdict(list)
        for word, tail in tails.items():
            behind = b"(?<=%s)" % re.escape(word) if tail != word else b""
            by_anchor[tail[:1]].append(re.escape(tail[1:]) + behind + _LOOKAHEADS.get(word, b""))
        self._search = re.compile(
            b"|".join(
                re.escape(anchor) + b"(?=(%s))" % b"|".join(branches)
                for anchor, branches in by_anchor.items()
            )
        )
        self._by_tail = {
            tail: [
                (word, len(word) - len(other))
                for word, other in tails.items()
                if tail.startswith(other)
            ]
            for tail in tails.values()
        }

    def find(self, data: bytes) -> Iterator[tuple[bytes, int]]:
        """Yield each word that occurs in a text, with its offset."""
        lower = data.lower()
        for match in self._search.finditer(lower):
            for word, before in self._by_tail[match[0] + match[match.lastindex or 0]]:
                if lower.startswith(word, match.start() - before):
                    yield word, match.start() - before


def _cut_tail(word: bytes) -> bytes:
    return next(
        word[word.index(anchor) :]
        for part in (word[:-1], word)
        for anchor in _ANCHORS
        if anchor in part
    )


# -- Decoded views of a text ---------------------------------------------------
# Text is also searched percent-decoded, HTML-decoded and JSON-unescaped. Matches are replaced in
# the original text.


_ENTITY = re.compile(rb"&(?:#(?:[0-9]{1,7}|[xX][0-9A-Fa-f]{1,6})|[A-Za-z][A-Za-z0-9]{1,30});")
_PERCENT = re.compile(rb"(?:%(?:25){0,3}[0-9A-Fa-f]{2})+")
_UNICODE = re.compile(rb"(?:\\{1,4}u[0-9A-Fa-f]{4})+")
_UNIT = re.compile(rb"u([0-9A-Fa-f]{4})")
_BASE64 = re.compile(rb"(?:[A-Za-z0-9+/]{4}){6,}(?:[A-Za-z0-9+/]{2,3})?={0,2}")
_IN_BASE64 = re.compile(rb"[A-Za-z0-9+/]")
_MIN_BASE64_BYTES, _MAX_BASE64_BYTES = 48, 40_000
BASE64_TEXT = rb"(?:[CDI-Za-f][A-Za-z0-9+/]{3}){6}"
"""Matches base64 whose first bytes suggest that it contains readable text."""

_TEXT = re.compile(rb"[\t\n\r\x20-\x7e\x80-\xff]+")
_MAX_CODE_POINT = 0x10FFFF


class View:
    """A text whose escapes are decoded, and whose positions can be converted back."""

    __slots__ = ("_escapes", "_starts", "text")

    def __init__(self, data: bytes, hint: bytes) -> None:
        """Decode the escapes in a text that begin with ``hint``, one of :data:`VIEW_HINTS`."""
        pattern, decode = _DECODERS[hint]
        pieces: list[bytes] = []
        self._escapes: list[tuple[int, int, int]] = []
        self._starts: list[int] = []
        position = length = 0
        for match in pattern.finditer(data):
            before, plain = data[position : match.start()], decode(match[0])
            pieces += (before, plain)
            length += len(before)
            self._starts.append(length)
            length += len(plain)
            self._escapes.append((length, match.start(), match.end()))
            position = match.end()
        self.text = b"".join((*pieces, data[position:]))

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Convert a span of the decoded text to the original text. Escapes are never split."""
        return self._place(start)[0], self._place(end - 1)[1]

    def _place(self, at: int) -> tuple[int, int]:
        number = bisect_right(self._starts, at) - 1
        if number < 0:
            return at, at + 1
        stop, start, end = self._escapes[number]
        return (start, end) if at < stop else (end + at - stop, end + at - stop + 1)


def _from_entity(escape: bytes) -> bytes:
    name = escape[1:-1].decode()
    if name[0] == "#":
        code = int(name[2:], 16) if name[1] in "xX" else int(name[1:])
    else:
        code = 0x27 if name == "apos" else entities.name2codepoint.get(name, 0)
    return chr(code).encode("utf-8", "surrogatepass") if 0 < code <= _MAX_CODE_POINT else escape


def _from_percent(escape: bytes) -> bytes:
    while b"%25" in escape:  # encoded more than once
        escape = escape.replace(b"%25", b"%")
    return unquote_to_bytes(escape)


def _from_unicode(escape: bytes) -> bytes:
    units = b"".join(int(unit, 16).to_bytes(2, "big") for unit in _UNIT.findall(escape))
    return units.decode("utf-16-be", "surrogatepass").encode("utf-8", "surrogatepass")


_DECODERS: Mapping[bytes, tuple[re.Pattern[bytes], Callable[[bytes], bytes]]] = {
    b"&": (_ENTITY, _from_entity),
    b"%": (_PERCENT, _from_percent),
    b"\\": (_UNICODE, _from_unicode),
}

VIEW_HINTS = tuple(_DECODERS)
"""Byte strings that suggest encoded text."""


def decode_base64(data: bytes, place: int) -> tuple[int, int, bytes] | None:
    """Return the start, end and content of base64 text at an offset, or None if it is not text."""
    if place and _IN_BASE64.match(data, place - 1):
        return None
    # Checking the start first cheaply excludes images and other binary data.
    if _find_plain(data, place, _MIN_BASE64_BYTES) is None:
        return None
    result = _find_plain(data, place, _MAX_BASE64_BYTES)
    try:
        return (place, *result) if result and result[1].decode() else None
    except UnicodeDecodeError:
        return None


def _find_plain(data: bytes, place: int, max_bytes: int) -> tuple[int, bytes] | None:
    match = _BASE64.match(data, place, place + max_bytes)
    body = match[0].rstrip(b"=") if match else b""
    length = len(body) - (len(body) % 4 == 1)
    plain = binascii.a2b_base64(body[:length] + b"=" * (-length % 4))
    return (match.end(), plain) if match and _TEXT.fullmatch(plain) else None


# -- Cells in SQL rows: the column of a secret in INSERT and COPY ----------------------------------
# Blanks can be escaped, as in JSON.


_MAX_COLUMNS_BYTES, _MAX_TABLE_BYTES, _MAX_ROWS_BYTES = 2_000, 120, 20_000
_BLANK = rb"(?:\s|\\{1,4}[nrt])"
_INTO = re.compile(
    rb"\b(?:into|copy)%b{1,8}[\w.`\"\[\]\\]{1,80}%b{0,8}$" % (_BLANK, _BLANK), re.IGNORECASE
)
_VALUES = re.compile(rb"%b{0,8}values%b{0,16}" % (_BLANK, _BLANK), re.IGNORECASE)
_STDIN = re.compile(
    rb"%b{1,8}from%b{1,8}stdin;?(?:\r?\n|\\{1,4}n)" % (_BLANK, _BLANK), re.IGNORECASE
)
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
    """Yield the spans of the values of the column named at an offset in an INSERT or COPY
    statement.
    """
    opened = data.rfind(b"(", max(0, place - _MAX_COLUMNS_BYTES), place)
    closed = data.find(b")", place, place + _MAX_COLUMNS_BYTES)
    if (
        opened < 0
        or closed < 0
        or not _INTO.search(data, max(0, opened - _MAX_TABLE_BYTES), opened)
    ):
        return
    number = data.count(b",", opened, place)
    values = _VALUES.match(data, closed + 1)
    if values:
        yield from _iter_tuples(data, values.end(), number)
    copied = _STDIN.match(data, closed + 1)
    if copied:
        yield from _iter_lines(data, copied.end(), number)


def _iter_tuples(data: bytes, place: int, number: int) -> Iterator[tuple[int, int]]:
    stop = place + _MAX_ROWS_BYTES
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
    for line in iter_parts(_BREAK, data, place, min(len(data), place + _MAX_ROWS_BYTES)):
        cells = list(iter_parts(_TAB, data, *line))
        if len(cells) <= number:
            return
        yield cells[number]


def iter_parts(
    mark: re.Pattern[bytes], data: bytes, start: int, end: int
) -> Iterator[tuple[int, int]]:
    """Yield the spans between matches of ``mark``."""
    for match in mark.finditer(data, start, end):
        yield start, match.start()
        start = match.end()
    yield start, end


# -- Finders: secrets in the lines around a match, or in a column of a table ---


Finder = Callable[[bytes, "re.Match[bytes]"], Iterator[tuple[int, int]]]

_KEY_BYTES = 20_000
_KEY_LINE_BYTES = 200
_LINE_BYTES = 2_000
_TABLE_BYTES = 20_000
_KEY_LINE = re.compile(
    rb"""(?:[^\r\n]{0,80}[^A-Za-z0-9+/=])?(=?[A-Za-z0-9+/]{4,100}={0,2})[ \t"',+\\]{0,8}$"""
)
_MIN_WHOLE_LINE_BYTES = 40
_RULER = re.compile(rb"[ \t>+|:=-]*-[ \t|:=-]*$")
_RULED = re.compile(rb"\n[|: \t]{0,3}-")
_CELL = re.compile(rb"[^|\\]*(?:\\.[^|\\]*)*")
_HTML_CELL = re.compile(
    rb"\s{0,20}<td[^<>]{0,80}>(?:<\w{1,6}>)?[ \t]{0,4}((?:[^\s<]|<(?!/)){6,200}?)[ \t]{0,4}</",
    re.IGNORECASE,
)
_WRAPPED = rb" \t`*_\"'" b"\r"
_COLUMN_MARKS = (
    re.compile(rb"\t"),
    re.compile(rb";"),
    re.compile(rb",[ ]?"),
    re.compile(rb"[ ]{2,}"),
)
_HEADING = re.compile(rb"""[ "']{0,2}[A-Za-z\x80-\xff][\w .()\x80-\xff-]{0,40}["']?[ ]?""")


def key_lines(data: bytes, match: re.Match[bytes]) -> Iterator[tuple[int, int]]:
    """Yield the span of a private key and of the start or end marker that matched.

    Each line can have a prefix, as in a log.
    """
    if b"END" in match[0][:10].upper():
        first, stop, is_last = match.start(), _last_break(data, match.start()), True
        while stop and match.start() - stop[0] < _KEY_BYTES:
            before = _last_break(data, stop[0])
            start = before[1] if before else max(0, stop[0] - _KEY_LINE_BYTES)
            span = _key_span(data, start, stop[0], is_last=is_last)
            if span is None:
                break
            first, stop, is_last = span[0], before, False
        if first < match.start():
            yield first, match.end()
        return
    begin, last, may_be_last = _BREAK.match(data, match.end()), match.end(), True
    for line in iter_parts(_BREAK, data, begin.end(), last + _KEY_BYTES) if begin else ():
        span = _key_span(data, *line, is_last=may_be_last)
        if span is None:
            break
        last, may_be_last = span[1], span[1] - span[0] >= _MIN_WHOLE_LINE_BYTES
    if last > match.end():
        yield match.start(), last


def _last_break(data: bytes, place: int) -> tuple[int, int] | None:
    breaks_before = [
        match.span() for match in _BREAK.finditer(data, max(0, place - _KEY_LINE_BYTES), place)
    ]
    return breaks_before[-1] if breaks_before else None


def _key_span(data: bytes, start: int, end: int, *, is_last: bool) -> tuple[int, int] | None:
    match = _KEY_LINE.match(data[start:end])
    if match is None or (not is_last and len(match[1]) < _MIN_WHOLE_LINE_BYTES):
        return None
    return start + match.start(1), start + match.end(1)


def table_cells(data: bytes, match: re.Match[bytes]) -> Iterator[tuple[int, int]]:
    """Yield the spans of the cells below or to the right of a cell that names a secret."""
    if not match[0].endswith((b"|", b">")):
        yield from inserted_cells(data, match.start())
        if not _RULED.match(data, match.end()):
            yield from _iter_marked_column(data, match.start())
            return
    if match[0].endswith(b">"):
        neighbour = _HTML_CELL.match(data, match.end())
        if neighbour:
            yield neighbour.span(1)
        return
    place = match.start()
    start = data.rfind(b"\n", max(0, place - _LINE_BYTES), place) + 1
    if place - start > _LINE_BYTES:
        return
    end = _line_end(data, place)
    cells = list(_iter_cells(data, start, end))
    number = next(
        (number for number, (first, last) in enumerate(cells) if first <= place < last), None
    )
    if number is None or b"{{" in data[start:end]:
        return
    row = end + 1
    ruler = data[row : _line_end(data, row)]
    if _RULER.match(ruler) and (b"|" in ruler or b"+" in ruler):
        yield from _iter_column(data, _line_end(data, row) + 1, number)
    elif number + 1 < len(cells) and data[start : start + 40].lstrip(b"> \t").startswith(b"|"):
        yield _bare(data, *cells[number + 1])


def _iter_marked_column(data: bytes, place: int) -> Iterator[tuple[int, int]]:
    start = data.rfind(b"\n", max(0, place - _LINE_BYTES), place) + 1
    end = _line_end(data, place)
    head = data[start:end].rstrip(b"\r")
    mark = next((mark for mark in _COLUMN_MARKS if len(mark.split(head)) > 1), None)
    if (
        mark is None
        or place - start > _LINE_BYTES
        or not all(_HEADING.fullmatch(cell) for cell in mark.split(head))
    ):
        return
    number, count = len(mark.split(head[: place - start])) - 1, len(mark.split(head))
    for line in _iter_rows(data, end + 1):
        cells = list(iter_parts(mark, data, *line))
        if len(cells) != count:
            return
        yield _bare(data, *cells[number])


def _iter_column(data: bytes, start: int, number: int) -> Iterator[tuple[int, int]]:
    for line in _iter_rows(data, start):
        cells = list(_iter_cells(data, *line))
        if len(cells) <= number or len(cells) == 1 or _RULER.match(data, *line):
            return
        yield _bare(data, *cells[number])


def _iter_rows(data: bytes, start: int) -> Iterator[tuple[int, int]]:
    stop = min(start + _TABLE_BYTES, len(data))
    while start < stop:
        end = _line_end(data, start)
        yield start, end
        start = end + 1


def _line_end(data: bytes, place: int) -> int:
    end = data.find(b"\n", place, place + _LINE_BYTES)
    return min(len(data), place + _LINE_BYTES) if end < 0 else end


def _iter_cells(data: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    while start <= end:
        match = _CELL.match(data, start, end)
        stop = match.end() if match else start
        yield start, stop
        start = stop + 1


def _bare(data: bytes, start: int, end: int) -> tuple[int, int]:
    cell = data[start:end]
    return start + len(cell) - len(cell.lstrip(_WRAPPED)), max(
        start, end - len(cell) + len(cell.rstrip(_WRAPPED))
    )


FINDERS: Mapping[str, Finder] = {
    "key-lines": key_lines,
    "table-cells": table_cells,
    "said-password": said_password,
    "said-key": said_key,
    "near-password": near_password,
    "said-phrase": said_phrase,
}
"""Functions that find secrets near a match, by their names in the rule table.

Each takes a text and a match, and yields the spans of possible secrets.
"""


# -- The rule table, with indexes of the rules to try --------------------------


RUN_BYTES = b"+-.0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
"""Bytes that form a run. Case-sensitive rules are tried only in runs."""

HEAD = 3
"""Number of bytes at the start of a run that select the rules to try."""

RUN_LITERAL = b"\0run"
"""Index entry for the rules that match a run by its shape."""

KEYED_LITERAL = b"\0keyed"
"""Index entry for the rules that match a run whose short prefix suggests a key."""

SHAPED_RUN = re.compile(BASE64_TEXT + rb"|[0-9a-f]{32}-[0-9a-f]{8}-|[0-9]{6}-[0-9]{6}-[0-9]{6}-")
"""Matches the start of a run whose shape suggests a secret, or of possible base64 text."""

SHAPED = frozenset(b"CDIJKLMNOPQRSTUVWXYZabcdef0123456789")
"""Bytes that can be first, fifth or ninth in a ``SHAPED_RUN``. They allow a fast check."""

PRIVATE_HINT = b"private"
"""Word that suggests a private block. The table has no rule for such blocks."""

_MAX_STRETCH_BYTES = 4000
_FILLERS = tuple(bytes([byte]) for byte in RUN_BYTES)
_BOUNDARY = rb"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """A rule for finding secrets. ``rules.toml`` explains its fields."""

    name: str
    literals: tuple[bytes, ...]
    regex: bytes
    before: bytes = b""
    entropy: float = 0.0
    value: str = "any"
    ignore_case: bool = False
    glued: bool = False
    each: bytes = b""
    stop: bytes = b""
    reach: int = LOOK_BACK
    find: str = ""
    whole: bool = False

    def iter_secrets(self, match: re.Match[bytes]) -> Iterator[tuple[int, int]]:
        data, before = match.string, self._precedes(match)
        if before is None:
            return
        spans: Iterable[tuple[int, int]]
        if self.find:
            spans = FINDERS[self.find](data, match)
        elif self.each:
            spans = self._iter_each(data, match)
        elif _compile_part(self.before).groups:
            spans = (before,)
        else:
            start, end = secret_span(match)
            spans = ((before[0] if self.whole else start, end),)
        for start, end in spans:
            secret = Candidate.of(data, start, end)
            if CHECKS[self.value](secret) and (
                not self.entropy or measure_entropy(secret) >= self.entropy
            ):
                yield start, end

    def _precedes(self, match: re.Match[bytes]) -> tuple[int, int] | None:
        if not self.before:
            return match.span()
        data, start = match.string, match.start()
        floor = max(0, start - self.reach)
        if self.reach > LOOK_BACK:
            # A long reach is limited to one line.
            floor = max(floor, data.rfind(b"\n", floor, start) + 1)
        part = _compile_part(self.before).search(data[floor:start])
        group = (part and part.lastindex) or 0
        return (floor + part.start(group), floor + part.end(group)) if part else None

    def _iter_each(self, data: bytes, match: re.Match[bytes]) -> Iterator[tuple[int, int]]:
        start, end = max(0, match.start() - self.reach), match.end() + _MAX_STRETCH_BYTES
        for stop in _compile_part(self.stop).finditer(data, start, end):
            if stop.end() <= match.start():
                start = stop.end()
            elif stop.start() >= match.end():
                end = stop.start()
                break
        if self.reach == LOOK_BACK:
            start = match.end()
        for match_in_stretch in _compile_part(self.each).finditer(data, start, end):
            yield match_in_stretch.span(1)


def secret_span(match: re.Match[bytes]) -> tuple[int, int]:
    """Return the span of the secret in a match, without splitting its last character."""
    start, end = match.span(match.lastindex or 0)
    while end < len(match.string) and match.string[end] & 0xC0 == 0x80:
        end += 1
    return start, end


Step = tuple[int, int, bytes]
"""A rule's number, the index of its literal, and a longer literal that must occur too."""


@frozen
class RuleTable:
    """All rules in order, with indexes for choosing those to try on a text.

    ``by_literal``: the rules for each literal. ``anywhere``: the literals of case-insensitive
    rules, which ``hints`` finds. ``by_head``: the literals of case-sensitive rules by their first
    bytes.
    """

    rules: tuple[Rule, ...]
    by_literal: Mapping[bytes, tuple[Step, ...]]
    anywhere: frozenset[bytes]
    hints: Hints
    by_head: Mapping[bytes, tuple[bytes, ...]]


@cache
def load_table() -> RuleTable:
    """Load the rules from ``rules.toml``."""
    content = read_table(__file__, "rules.toml")
    parts = {name: text.encode() for name, text in content["parts"].items()}
    names = {f"@{name}": tuple(words) for name, words in content["names"].items()}
    names |= {"@run": ("\0run",), "@keyed": ("\0keyed",)}
    tokens = _list_token_rows(content["tokens"])
    rows = [*content["block"], *tokens, *content["rule"], *_list_command_rows(content["command"])]
    rules = tuple(_parse_rule(row, parts, names) for row in rows)
    anywhere = _list_steps(rules, ignore_case=True)
    # A literal that starts with a different literal is only looked for where that one occurs:
    # "key=" at "key".
    for literal in sorted(anywhere, key=len, reverse=True):
        gate = next(
            (other for other in anywhere if other != literal and literal.startswith(other)), None
        )
        if gate is not None:
            anywhere[gate] += tuple(
                (number, index, literal) for number, index, _ in anywhere.pop(literal)
            )
    in_runs = _list_steps(rules, ignore_case=False)
    by_head: dict[bytes, tuple[bytes, ...]] = {}
    for literal in in_runs:
        for head in _list_heads(literal):
            by_head[head] = (*by_head.get(head, ()), literal)
    hints = Hints((*anywhere, PRIVATE_HINT, *VIEW_HINTS))
    return RuleTable(rules, in_runs | anywhere, frozenset(anywhere), hints, by_head)


def _list_steps(rules: Sequence[Rule], *, ignore_case: bool) -> dict[bytes, tuple[Step, ...]]:
    steps: dict[bytes, tuple[Step, ...]] = {}
    for number, rule in enumerate(rules):
        if rule.ignore_case == ignore_case:
            for index, literal in enumerate(rule.literals):
                steps[literal] = (*steps.get(literal, ()), (number, index, b""))
    return steps


def _list_heads(literal: bytes) -> list[bytes]:
    # The "n" of an escaped line break in raw JSON, or the "+" of a diff line, can precede a
    # literal.
    heads = [literal[:HEAD], *(letter + literal[: HEAD - 1] for letter in (b"n", b"r", b"t", b"+"))]
    while any(len(head) < HEAD for head in heads):
        heads = [
            head + filler for head in heads for filler in (_FILLERS if len(head) < HEAD else (b"",))
        ]
    return heads


_PREFIX = re.compile(r"(?:[A-Za-z0-9_-]|\\[.+])+(?![?*+{])")


def _list_token_rows(tokens: Mapping[str, str | Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for name, token in tokens.items():
        row = {"regex": token} if isinstance(token, str) else token
        prefix = _PREFIX.match(row["regex"])
        yield {"name": name, "literals": [prefix[0].replace("\\", "")] if prefix else [], **row}


_COMMAND_FORMS = {
    "attached": ("attached-password", r"""(?:<argument>)""", "account"),
    "apart": ("option-password", r"""[ \t=]{1,4}<argument>""", "argument"),
    "sure": ("option-password", r"""[ \t=]{1,4}<argument>""", "account"),
    "account": (
        "account-password",
        r"""(?:[ \t]{1,4}|=)?(?:<quote>)?[^\s:%"'`]{0,80}[:%,]([^\s"'`\\]{3,200})""",
        "account",
    ),
}


def _list_command_rows(commands: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    tools: dict[tuple[str, str], list[str]] = {}
    for command in commands:
        for flag in command["flags"]:
            tools.setdefault((command["form"], flag), []).append(command["tool"])
    for (form, flag), names in tools.items():
        name, regex, value = _COMMAND_FORMS[form]
        literal = flag if flag.startswith(("/", "-user")) else f" {flag}"
        yield {
            "name": name,
            "literals": [literal],
            "value": value,
            "reach": 260,
            "regex": rf"""{re.escape(literal)}(?:(?<=["'].{{{len(literal)}}})([^"'\r\n]{{4,100}})(?=["'])|{regex})""",
            "before": rf"(?i:(?<![\w-])(?:{'|'.join(names)})\b[^\n|;]{{0,250}})$",
            "ignore_case": True,
        }


def _parse_rule(
    row: Mapping[str, Any], parts: Mapping[str, bytes], names: Mapping[str, Sequence[str]]
) -> Rule:
    literals = [word for literal in row["literals"] for word in names.get(literal, (literal,))]
    expanded = {
        name: _expand(row.get(name, "").encode(), parts)
        for name in ("regex", "before", "each", "stop")
    }
    return Rule(
        **{
            **row,
            **expanded,
            "literals": tuple(word.encode() for word in literals),
        }
    )


def _expand(regex: bytes, parts: Mapping[str, bytes]) -> bytes:
    previous = b""
    while previous != regex:
        previous = regex
        for name, part in parts.items():
            regex = regex.replace(b"<%s>" % name.encode(), part)
    return regex


@cache
def compile_rule(rule: Rule) -> re.Pattern[bytes]:
    """Return a rule's regex, which is compiled on first use."""
    bounded = rule.regex if rule.glued or rule.ignore_case else _BOUNDARY + rule.regex
    return re.compile(bounded, re.IGNORECASE if rule.ignore_case else re.NOFLAG)


@cache
def compile_any(literal: bytes) -> re.Pattern[bytes]:
    """Return a regex that matches wherever any rule with this literal matches."""
    table = load_table()
    numbers = sorted({number for number, _, _ in table.by_literal[literal]})
    return re.compile(
        b"|".join(b"(?:" + table.rules[number].regex + b")" for number in numbers), re.IGNORECASE
    )


@cache
def _compile_part(regex: bytes) -> re.Pattern[bytes]:
    return re.compile(regex, re.IGNORECASE)
