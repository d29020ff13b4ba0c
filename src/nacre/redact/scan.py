"""A first look at texts: where a rule may begin to match, and what may say more once it is decoded."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from nacre.redact.private import may_begin
from nacre.redact.rules import (
    HEAD,
    KEYED_LITERAL,
    PRIVATE_HINT,
    RUN_BYTES,
    RUN_LITERAL,
    SHAPED,
    SHAPED_RUN,
    RuleTable,
    Step,
    compile_any,
)
from nacre.redact.views import VIEW_HINTS
from nacre.text.passages import is_visible

RUN = 18
"""Bytes in the shortest run of word characters, dashes and dots that a case-heeding rule is looked for in."""

INNER = 8
"""Bytes after a dash or dot inside a run that are compared with the beginnings of literals."""

_ODD = b"!"
_RUN_CLASS = 97
_CLASSES = bytes(
    _RUN_CLASS if byte in RUN_BYTES else 32 if byte > 127 or is_visible(bytes([byte])) else 33 for byte in range(256)
)
_INNER = re.compile(rb"[-_.](?=([A-Za-z0-9].{%d}))" % (INNER - 1))
_ASCII = bytes(range(128))
_KEYED_RUN = re.compile(
    rb"\n(\+?)([a-z][a-z0-9]{0,9}+[-_](?<!toolu_)(?<!msg_)(?<!call_)(?<!req_)(?:(?=[\w-]{40})(?=[a-z0-9_-]*[A-Z])"
    rb"|(?:[a-z0-9]{1,8}[-_]){0,2}(?:[0-9a-f]{8}-[0-9a-f]{4}-|(?=[A-Za-z]{0,19}[0-9])[A-Za-z0-9]{20}))[^\n]*)"
)
"""A run that begins with a short prefix and may be a key, behind the sign of a line of a diff."""
_LONG_RUN = bytes([_RUN_CLASS]) * RUN
_COLOURED = re.compile(rb"\\(?:u001b|x1b|033)\[")  # one backslash first: then a search is fast
_COLOUR = re.compile(rb"\\{1,4}(?:u001b|x1b|033)\[[0-9;]{0,12}m")


class Places:
    """Where in a text the literals of rules lie, and what may be a block of private words."""

    __slots__ = ("_at", "_table", "data")

    def __init__(self, data: bytes, table: RuleTable) -> None:
        self.data = data
        self._table = table
        self._at: dict[bytes, list[int]] = {}

    def __bool__(self) -> bool:
        return bool(self._at)

    @property
    def is_private(self) -> bool:
        """Whether some of the text may be marked as private."""
        return PRIVATE_HINT in self._at

    def list_views(self) -> list[bytes]:
        """The hints that the text may say more once it is decoded."""
        return [hint for hint in self._at if hint in VIEW_HINTS]

    def list_encoded(self) -> Sequence[int]:
        """Where text in base64 may begin."""
        return self._at.get(RUN_LITERAL, ())

    def add(self, literal: bytes, place: int) -> None:
        """Note a place. Those of one literal come in order."""
        self._at.setdefault(literal, []).append(place)

    def add_all(self, literal: bytes, data: bytes) -> None:
        """Note every place where a literal is in the text, or in what was made of it."""
        self._at.pop(literal, None)
        place = data.find(literal)
        while place >= 0:
            self.add(literal, place)
            place = data.find(literal, place + 1)

    def list_steps(self) -> list[tuple[Step, Sequence[int]]]:
        """What to try, in the order of the rules, and where."""
        by_literal = self._table.by_literal
        steps: list[tuple[Step, Sequence[int]]]
        steps = [(step, places) for literal, places in self._at.items() for step in by_literal.get(literal, ())]
        steps.sort()
        return steps

    def split(self, ends: Sequence[int]) -> dict[int, Places]:
        """The places in each piece of the text that has any, by its number; a character follows every piece."""
        pieces: dict[int, Places] = {}
        for literal, places in self._at.items():
            for place in places:
                number = bisect_right(ends, place)
                start = ends[number - 1] + 1 if number else 0
                if number not in pieces:
                    pieces[number] = Places(self.data[start : ends[number]], self._table)
                pieces[number].add(literal, place - start)
        return pieces


class Scan:
    """A first look at one text, or at several in a row with a line break between them.

    No literal holds a line break, and before one a regex sees what it sees at the beginning of a text.
    """

    __slots__ = ("_classes", "_data", "_ends", "_rest", "_table")

    def __init__(self, data: bytes, table: RuleTable, ends: Sequence[int] = ()) -> None:
        """Take a text, and where its pieces end, if it has several."""
        self._data = data
        self._table = table
        self._ends = ends or (len(data),)
        self._classes = data.translate(_CLASSES)
        self._rest = b"" if data.isascii() else data.translate(None, _ASCII)

    @property
    def is_visible(self) -> bool:
        """Whether nothing in the text has to be taken out before it is looked at."""
        return _ODD not in self._classes and (not self._rest or is_visible(self._rest))

    def look(self, *, closely: bool = True) -> Places:
        """Find the literals of rules that may match there; unless it looks ``closely``, all of them."""
        data = self._data
        # Colours that are written out, as in raw JSON, hide where a token begins; as blanks they keep every place.
        if _COLOURED.search(data):
            data = _COLOUR.sub(lambda match: b" " * len(match[0]), data)
            self._classes = data.translate(_CLASSES)
        places = Places(data, self._table)
        self._look_everywhere(places, closely=closely)
        for literal, foreign in self._table.foreign.items() if self._rest else ():
            if foreign in self._rest:
                places.add_all(literal, data.lower())
        self._look_at_runs(places)
        return places

    def _look_everywhere(self, places: Places, *, closely: bool) -> None:
        data, ends, anywhere = places.data, self._ends, self._table.anywhere
        reached: dict[bytes, int] = {}
        for literal, place in self._table.hints.find(data):
            if literal in VIEW_HINTS or (literal == PRIVATE_HINT and may_begin(data, place)):
                places.add(literal, place)
            elif literal in anywhere:
                if closely and place >= reached.get(
                    literal, 0
                ):  # else it lies in what matched: looking at it each time takes ages
                    match = compile_any(literal).match(data, place, ends[bisect_right(ends, place)])
                    if match is None:
                        continue
                    reached[literal] = match.end()
                places.add(literal, place)

    def _look_at_runs(self, places: Places) -> None:
        data, find, by_head, shaped = places.data, (self._classes + b" ").find, self._table.by_head, SHAPED
        long_run, least, begin = _LONG_RUN, RUN, HEAD
        runs: set[bytes] = set()
        start = find(long_run)
        while start >= 0:
            end = find(b" ", start + least)
            run = data[start:end]
            runs.add(run)
            if run[0] in shaped and run[4] in shaped and run[8] in shaped and SHAPED_RUN.match(data, start):
                places.add(RUN_LITERAL, start)
            if (head := run[:begin]) in by_head:
                for literal in by_head[head]:
                    if run.startswith(literal):
                        places.add(literal, start)
                    elif run.startswith(literal, 1):
                        places.add(literal, start + 1)
            start = find(long_run, end)
        if runs:
            joined = b"\n" + b"\n".join(runs)
            self._look_inside(joined, places)
            for place in sorted(_iter_keyed(data, joined)):
                places.add(KEYED_LITERAL, place)

    def _look_inside(self, runs: bytes, places: Places) -> None:
        by_head = self._table.by_head
        inside: set[bytes] = set()
        for inner in _INNER.findall(runs):
            if inner[:HEAD] in by_head:
                inside.update(literal for literal in by_head[inner[:HEAD]] if inner.startswith(literal[:INNER]))
        for literal in inside:
            if len(literal) >= HEAD:
                places.add_all(literal, places.data)


def _iter_keyed(data: bytes, joined: bytes) -> Iterator[int]:
    """Yield where runs that may be keys begin, behind the letter of an escaped line break that is glued to them."""
    for sign, run in _KEYED_RUN.findall(joined):
        start = data.find(sign + run)
        while start >= 0:
            yield start + len(sign) + (run[0] in b"nrt" and data[start - 1 : start] == b"\\")
            start = data.find(sign + run, start + len(run))
