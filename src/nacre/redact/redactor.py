"""Finding secrets in text and putting a marker in their place."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import AnyStr

from nacre.errors import SettingsInvalid
from nacre.redact.private import PRIVATE, iter_blocks
from nacre.redact.rules import (
    HEAD,
    HINT,
    PRIVATE_HINT,
    RUN_BYTES,
    Rule,
    RuleTable,
    compile_any,
    compile_rule,
    load_table,
)
from nacre.redact.values import LOOK_BACK
from nacre.text import is_visible, visible

RUN = 18
"""Bytes in the shortest run of word characters, dashes and dots that a case-heeding rule is looked for in."""

PASSES = 16
"""Most passes over one text. A replacement can bare a neighbour, so passes repeat until one finds nothing."""

INNER = 8
"""Bytes after a dash or dot inside a run that are compared with the beginnings of literals."""

RETRIES = 8
"""Most further matches of a rule that start inside a match it refused; bounds the work on any text."""

OWNER = "owner"
"""The rule name under which the owner's patterns are reported."""

_NOTHING: Mapping[str, int] = MappingProxyType({})
_MARKER = re.compile(rb"\[(?:REDACTED:[a-z0-9-]+|private)\]")
_RUN_TABLE = bytes(97 if byte in RUN_BYTES else 32 for byte in range(256))
_INNER = re.compile(rb"[-_.](?=([A-Za-z0-9].{%d}))" % (INNER - 1))
_ASCII = bytes(range(128))
_LONG_RUN = b"a" * RUN
_COLOUR = re.compile(rb"\\{1,4}(?:u001b|x1b|033)\[[0-9;]{0,12}m")


@dataclass(frozen=True, slots=True)
class Redacted:
    """A text without its secrets, and how often each rule found one."""

    text: str
    found: Mapping[str, int]


class _Scan:
    """One text under redaction: where the literals of the rules lie in it."""

    def __init__(self, data: bytes, table: RuleTable) -> None:
        self.data = data
        self._table = table
        # Latin-1 keeps every place where it is, and `in` is ten times faster on short str than on bytes.
        self._lower = data.lower().decode("latin-1")
        # Colours that are written out, as in raw JSON, hide where a token begins; as blanks they keep every place.
        if b"\\" in data and _COLOUR.search(data):
            self.data = data = _COLOUR.sub(lambda match: b" " * len(match[0]), data)
            self._lower = data.lower().decode("latin-1")
        self._everywhere: dict[str, list[int]] = {}
        self._in_runs: dict[bytes, list[int]] = {}
        self.suspects: set[int] = set()
        self.is_private = False
        self._look_everywhere()
        self._look_at_runs()

    def list_places(self, literal: bytes, *, ignore_case: bool) -> Sequence[int]:
        """Return where a rule's literal lies."""
        return self._list_everywhere(literal.decode("latin-1")) if ignore_case else self._in_runs.get(literal, ())

    def _list_everywhere(self, literal: str) -> list[int]:
        places = self._everywhere.get(literal)
        if places is None:
            gate = self._table.gates.get(literal)
            found = self._list_everywhere(gate) if gate else ()
            places = self._everywhere[literal] = [at for at in found if self._lower.startswith(literal, at)]
        return places

    def _look_everywhere(self) -> None:
        lower, table, places = self._lower, self._table, self._everywhere
        reached: dict[str, int] = {}
        for hint in HINT.finditer(lower):
            if hint[0] == PRIVATE_HINT:
                self.is_private = True
            for literal, offset in table.by_hint[hint[0]]:
                place = hint.start() - offset
                if not lower.startswith(literal, place):
                    continue
                if place >= reached.get(literal, 0):  # else it lies in what matched: looking at it each time takes ages
                    match = compile_any(literal).match(self.data, place)
                    if match is None:
                        continue
                    reached[literal] = match.end()
                places.setdefault(literal, []).append(place)
        if not lower.isascii():
            rest = self.data.translate(None, _ASCII).decode("latin-1")
            for literal in [literal for literal in table.foreign if literal in rest]:
                places[literal] = list(_iter_places(lower, literal))
        for literal in places:
            self.suspects |= table.by_literal[literal]

    def _look_at_runs(self) -> None:
        data, by_head = self.data, self._table.by_head
        spans = _list_runs(data.translate(_RUN_TABLE))
        if not spans:
            return
        for start in [start for start, _ in spans if data[start : start + HEAD] in by_head]:
            for literal in by_head[data[start : start + HEAD]]:
                if data.startswith(literal, start):
                    self._add_places(literal, [start])
                elif data.startswith(literal, start + 1):
                    self._add_places(literal, [start + 1])
        runs = b"\n".join({data[start:end] for start, end in spans})
        inside: set[bytes] = set()
        for inner in [inner for inner in set(_INNER.findall(runs)) if inner[:HEAD] in by_head]:
            inside.update(literal for literal in by_head[inner[:HEAD]] if inner.startswith(literal[:INNER]))
        for literal in inside:
            if len(literal) >= HEAD:
                self._in_runs[literal] = []
                self._add_places(literal, _iter_places(data, literal))

    def _add_places(self, literal: bytes, places: Iterable[int]) -> None:
        self._in_runs.setdefault(literal, []).extend(places)
        self.suspects |= self._table.by_run_literal[literal]


def _list_runs(classes: bytes) -> list[tuple[int, int]]:
    """Where the long runs lie, in a text whose run bytes are "a" and all others blanks."""
    spans = []
    start = classes.find(_LONG_RUN)
    while start >= 0:
        end = classes.find(b" ", start + RUN)
        spans.append((start, end if end >= 0 else len(classes)))
        start = classes.find(_LONG_RUN, end) if end >= 0 else -1
    return spans


def _iter_places(data: AnyStr, literal: AnyStr) -> Iterator[int]:
    position = data.find(literal)
    while position >= 0:
        yield position
        position = data.find(literal, position + 1)


class _Spans:
    """Stretches to replace, none of which overlap; the first to claim a byte keeps it."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._spans: list[tuple[int, int, str]] = []

    def claim(self, start: int, end: int, name: str) -> None:
        index = bisect_left(self._starts, start)
        if index < len(self._spans) and self._spans[index][0] < end:
            return
        if index and self._spans[index - 1][1] > start:
            return
        self._starts.insert(index, start)
        self._spans.insert(index, (start, end, name))

    def __len__(self) -> int:
        return len(self._spans)

    def iter_names(self) -> Iterator[str]:
        return (name for _, _, name in self._spans)

    def replace_in(self, data: bytes) -> bytes:
        pieces: list[bytes] = []
        position = 0
        for start, end, name in self._spans:
            marker = b"[private]" if name == PRIVATE else b"[REDACTED:%s]" % name.encode()
            pieces += (data[position:start], marker)
            position = end
        return b"".join((*pieces, data[position:]))


class Redactor:
    """Replaces secrets by `[REDACTED:<rule>]`, and what is marked as private by `[private]`.

    Safe to share between threads; redacting twice changes nothing.
    """

    def __init__(self, extra_patterns: Sequence[str] = (), allow: Sequence[str] = ()) -> None:
        """Take the owner's own patterns (regular expressions) and exact strings that are never secrets.

        Raises:
            SettingsInvalid: a pattern is not a regular expression, or matches the empty text.
        """
        self._owner = tuple(_compile_owner(pattern) for pattern in extra_patterns)
        self._allow = frozenset(text.encode("utf-8", "surrogatepass") for text in allow)
        self._table = load_table()

    def redact(self, text: str) -> Redacted:
        """Return the text without secrets and the number of secrets per rule.

        What nobody sees (terminal colours, control characters) is taken out first: it hides where a secret begins.
        """
        data = text.encode("utf-8", "surrogatepass")
        if not is_visible(data):
            text = visible(text)
            data = text.encode("utf-8", "surrogatepass")
        spans = self._find_spans(data)
        if not spans:
            return Redacted(text, _NOTHING)
        found: Counter[str] = Counter()
        for _ in range(PASSES):
            found.update(spans.iter_names())
            data = spans.replace_in(data)
            spans = self._find_spans(data)
            if not spans:
                break
        return Redacted(data.decode("utf-8", "surrogatepass"), MappingProxyType(dict(found)))

    def clean(self, text: str) -> str:
        """Return the text without secrets; the very same object when there are none."""
        return self.redact(text).text

    def _find_spans(self, data: bytes) -> _Spans:
        spans = _Spans()
        scan = _Scan(data, self._table)
        if scan.is_private:
            for start, end in iter_blocks(data):
                spans.claim(start, end, PRIVATE)
        for number in sorted(scan.suspects):
            self._claim_matches(self._table.rules[number], scan, spans)
        for pattern in self._owner:
            for start, end in _iter_owner_spans(pattern, data):
                if data[start:end] not in self._allow:
                    spans.claim(start, end, OWNER)
        return spans

    def _claim_matches(self, rule: Rule, scan: _Scan, spans: _Spans) -> None:
        regex = compile_rule(rule)
        for literal in rule.literals:
            done = retried = tries = 0
            for place in scan.list_places(literal, ignore_case=rule.ignore_case):
                if place < done or (place < retried and tries >= RETRIES):
                    continue
                match = regex.match(scan.data, place)
                if match is None:
                    continue
                for start, end in rule.iter_secrets(match):
                    if self._is_to_go(scan.data, start, end):
                        spans.claim(start, end, rule.name)
                        done = match.end()
                tries = tries + 1 if place < retried else 0
                retried = max(retried, match.end())

    def _is_to_go(self, data: bytes, start: int, end: int) -> bool:
        """Whether a secret is neither allowed nor made of markers, and cuts none."""
        if data[start:end] in self._allow or not _MARKER.sub(b"", data[start:end]):
            return False
        return not (_cuts_marker(data, start) or _cuts_marker(data, end))


def rule_names() -> list[str]:
    """The names of all rules, in the order in which they are tried; that of private blocks comes first."""
    return list(dict.fromkeys([PRIVATE, *(rule.name for rule in load_table().rules)]))


def _cuts_marker(data: bytes, position: int) -> bool:
    opening = data.rfind(b"[REDACTED:", max(0, position - LOOK_BACK), position + 10)
    marker = _MARKER.match(data, opening) if opening >= 0 else None
    return marker is not None and marker.start() < position < marker.end()


def _iter_owner_spans(pattern: re.Pattern[str], data: bytes) -> Iterator[tuple[int, int]]:
    """Yield where an owner's pattern matches outside the markers, as places in the bytes."""
    position = 0
    for stop, following in [*(marker.span() for marker in _MARKER.finditer(data)), (len(data), len(data))]:
        text = data[position:stop].decode("utf-8", "surrogatepass")
        character = 0
        for match in pattern.finditer(text):
            start = position + len(text[character : match.start()].encode("utf-8", "surrogatepass"))
            character, position = match.end(), start + len(match[0].encode("utf-8", "surrogatepass"))
            if match[0]:
                yield start, position
        position = following


def _compile_owner(pattern: str) -> re.Pattern[str]:
    hint = "redact patterns are Python regular expressions; correct or remove this one"
    try:
        compiled = re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise SettingsInvalid(
            f"redaction pattern {pattern!r} is not a regular expression: {error}", hint=hint
        ) from error
    if compiled.fullmatch(""):
        raise SettingsInvalid(f"redaction pattern {pattern!r} matches the empty text", hint=hint)
    return compiled
