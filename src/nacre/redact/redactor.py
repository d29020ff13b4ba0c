"""Finding secrets in text and putting a marker in their place."""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from nacre.errors import SettingsInvalid
from nacre.redact.private import PRIVATE, iter_blocks, may_begin
from nacre.redact.rules import (
    HEAD,
    HINT,
    HINTS_BY_LETTER,
    PRIVATE_HINT,
    RUN_BYTES,
    Rule,
    RuleTable,
    Step,
    compile_any,
    compile_rule,
    load_table,
)
from nacre.redact.values import LOOK_BACK
from nacre.text.passages import is_visible, visible

RUN = 18
"""Bytes in the shortest run of word characters, dashes and dots that a case-heeding rule is looked for in."""

PASSES = 16
"""Most passes over one text. A replacement can bare a neighbour, so passes repeat until one finds nothing."""

INNER = 8
"""Bytes after a dash or dot inside a run that are compared with the beginnings of literals."""

BATCH_BYTES = 60_000
"""About how much is looked at in one go where many texts are redacted."""

RETRIES = 8
"""Most further matches of a rule that start inside a match it refused; bounds the work on any text."""

OWNER = "owner"
"""The rule name under which the owner's patterns are reported."""

_LONG_TEXT = 2000
"""Bytes of a text from which on its hints are looked for letter by letter."""

_NOTHING: Mapping[str, int] = MappingProxyType({})
_MARKER = re.compile(rb"\[(?:REDACTED:[a-z0-9-]+|private)\]")
_ODD = b"!"
_CLASSES = bytes(
    97 if byte in RUN_BYTES else 32 if byte > 127 or is_visible(bytes([byte])) else 33 for byte in range(256)
)
_INNER = re.compile(rb"[-_.](?=([A-Za-z0-9].{%d}))" % (INNER - 1))
_ASCII = bytes(range(128))
_LONG_RUN = b"a" * RUN
_COLOURED = re.compile(rb"\\(?:u001b|x1b|033)\[")  # one backslash first: then a search is fast
_COLOUR = re.compile(rb"\\{1,4}(?:u001b|x1b|033)\[[0-9;]{0,12}m")


@dataclass(frozen=True, slots=True)
class Redacted:
    """A text without its secrets, and how often each rule found one."""

    text: str
    found: Mapping[str, int]


class _Places:
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

    def add(self, literal: bytes, place: int) -> None:
        """Note a place. Those of one literal come in order."""
        self._at.setdefault(literal, []).append(place)

    def add_all(self, literal: bytes) -> None:
        """Note every place where a literal is."""
        self._at.pop(literal, None)
        place = self.data.find(literal)
        while place >= 0:
            self.add(literal, place)
            place = self.data.find(literal, place + 1)

    def list_steps(self) -> list[tuple[Step, Sequence[int]]]:
        """What to try, in the order of the rules, and where."""
        by_literal = self._table.by_literal
        steps: list[tuple[Step, Sequence[int]]]
        steps = [(step, places) for literal, places in self._at.items() for step in by_literal.get(literal, ())]
        steps.sort()
        return steps

    def split(self, ends: Sequence[int]) -> dict[int, _Places]:
        """The places in each piece of the text that has any, by its number; a character follows every piece."""
        pieces: dict[int, _Places] = {}
        for literal, places in self._at.items():
            for place in places:
                number = bisect_right(ends, place)
                start = ends[number - 1] + 1 if number else 0
                if number not in pieces:
                    pieces[number] = _Places(self.data[start : ends[number]], self._table)
                pieces[number].add(literal, place - start)
        return pieces


class _Scan:
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

    def look(self, *, closely: bool = True) -> _Places:
        """Find the literals of rules that may match there; unless it looks ``closely``, all of them."""
        data = self._data
        lower = data.lower()
        # Colours that are written out, as in raw JSON, hide where a token begins; as blanks they keep every place.
        if _COLOURED.search(data):
            data = _COLOUR.sub(lambda match: b" " * len(match[0]), data)
            lower = data.lower()
            self._classes = data.translate(_CLASSES)
        places = _Places(data, self._table)
        self._look_everywhere(lower, places, closely=closely)
        for literal in self._table.foreign if self._rest else ():
            if literal in self._rest:
                places.add_all(literal)
        self._look_at_runs(places)
        return places

    def _look_everywhere(self, lower: bytes, places: _Places, *, closely: bool) -> None:
        data, ends, by_hint = places.data, self._ends, self._table.by_hint
        reached: dict[bytes, int] = {}
        for hint in _iter_hints(lower):
            if hint[0] == PRIVATE_HINT and may_begin(lower, hint.start()):
                places.add(PRIVATE_HINT, hint.start())
            for literal, offset in by_hint[hint[0]]:
                place = hint.start() - offset
                if not lower.startswith(literal, place):
                    continue
                if closely and place >= reached.get(
                    literal, 0
                ):  # else it lies in what matched: looking at it each time takes ages
                    match = compile_any(literal).match(data, place, ends[bisect_right(ends, place)])
                    if match is None:
                        continue
                    reached[literal] = match.end()
                places.add(literal, place)

    def _look_at_runs(self, places: _Places) -> None:
        data, classes, by_head = places.data, self._classes + b" ", self._table.by_head
        runs: set[bytes] = set()
        start = classes.find(_LONG_RUN)
        while start >= 0:
            end = classes.find(b" ", start + RUN)
            run = data[start:end]
            runs.add(run)
            if (head := run[:HEAD]) in by_head:
                for literal in by_head[head]:
                    if run.startswith(literal):
                        places.add(literal, start)
                    elif run.startswith(literal, 1):
                        places.add(literal, start + 1)
            start = classes.find(_LONG_RUN, end)
        if runs:
            self._look_inside(b"\n".join(runs), places)

    def _look_inside(self, runs: bytes, places: _Places) -> None:
        by_head = self._table.by_head
        inside: set[bytes] = set()
        for inner in _INNER.findall(runs):
            if inner[:HEAD] in by_head:
                inside.update(literal for literal in by_head[inner[:HEAD]] if inner.startswith(literal[:INNER]))
        for literal in inside:
            if len(literal) >= HEAD:
                places.add_all(literal)


def _iter_hints(lower: bytes) -> Iterator[re.Match[bytes]]:
    if len(lower) < _LONG_TEXT:
        return HINT.finditer(lower)
    return itertools.chain.from_iterable(hint.finditer(lower) for letter, hint in HINTS_BY_LETTER if letter in lower)


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
        scan = _Scan(data, self._table)
        if not scan.is_visible:
            text = visible(text)
            data = text.encode("utf-8", "surrogatepass")
            scan = _Scan(data, self._table)
        spans = self._find_spans(data, scan)
        if not spans:
            return Redacted(text, _NOTHING)
        found: Counter[str] = Counter()
        for _ in range(PASSES):
            found.update(spans.iter_names())
            data = spans.replace_in(data)
            spans = self._find_spans(data, _Scan(data, self._table))
            if not spans:
                break
        return Redacted(data.decode("utf-8", "surrogatepass"), MappingProxyType(dict(found)))

    def redact_all(self, texts: Sequence[str]) -> list[Redacted]:
        """Redact many texts, each for itself, but look for what calls for a closer look in all of them at once."""
        suspects = self._list_suspects(texts)
        return [
            self.redact(text) if number in suspects else Redacted(text, _NOTHING) for number, text in enumerate(texts)
        ]

    def clean_all(self, texts: Sequence[str]) -> list[str]:
        """Return the texts without secrets, as `clean` does with each of them; much faster for many short ones."""
        suspects = self._list_suspects(texts)
        return [self.clean(text) if number in suspects else text for number, text in enumerate(texts)]

    def find_suspects(self, pieces: Sequence[bytes]) -> set[int]:
        """The numbers of the pieces of text in which a rule may begin to match; a piece holds no line break.

        In no other piece is a secret, nor would one be if other marks or blanks stood between its words.
        """
        if self._owner:
            return set(range(len(pieces)))
        suspects: set[int] = set()
        for first, batch, ends in _iter_batches(pieces):
            scan = _Scan(b"\n".join(batch), self._table, ends)
            if not scan.is_visible:
                suspects.update(first + number for number, piece in enumerate(batch) if not is_visible(piece))
            suspects.update(first + number for number in scan.look(closely=False).split(ends))
        return suspects

    def clean(self, text: str) -> str:
        """Return the text without secrets; the very same object when there are none."""
        return self.redact(text).text

    def _list_suspects(self, texts: Sequence[str]) -> set[int]:
        """The numbers of the texts that have to be looked at alone: in all others is nothing to redact."""
        suspects = {number for number, text in enumerate(texts) if self._owner and self._calls_owner(text)}
        for first, batch, ends in _iter_batches(text.encode("utf-8", "surrogatepass") for text in texts):
            suspects.update(first + piece for piece in self._iter_suspect_pieces(batch, ends))
        return suspects

    def _iter_suspect_pieces(self, pieces: Sequence[bytes], ends: Sequence[int]) -> Iterator[int]:
        scan = _Scan(b"\n".join(pieces), self._table, ends)
        if not scan.is_visible:
            yield from (number for number, piece in enumerate(pieces) if not is_visible(piece))
        for number, places in scan.look().split(ends).items():
            if places.is_private or self._claim_all(places, _Spans()):
                yield number

    def _calls_owner(self, text: str) -> bool:
        """Whether one of the owner's patterns may match in a text; it is looked for between markers only."""
        return any(pattern.search(text) for pattern in self._owner) or "[REDACTED:" in text or "[private]" in text

    def _find_spans(self, data: bytes, scan: _Scan) -> _Spans | None:
        places = scan.look()
        if not places and not self._owner:
            return None
        spans = _Spans()
        if places.is_private:
            for start, end in iter_blocks(data):
                spans.claim(start, end, PRIVATE)
        self._claim_all(places, spans)
        for pattern in self._owner:
            for start, end in _iter_owner_spans(pattern, data):
                if data[start:end] not in self._allow:
                    spans.claim(start, end, OWNER)
        return spans

    def _claim_all(self, places: _Places, spans: _Spans) -> _Spans:
        """Claim what the rules take for secrets."""
        data, rules = places.data, self._table.rules
        for (number, _, longer), at in places.list_steps():
            rule = rules[number]
            match = compile_rule(rule).match
            done = retried = tries = 0
            for place in at:
                if place < done or (place < retried and tries >= RETRIES):
                    continue
                if longer and data[place : place + len(longer)].lower() != longer:
                    continue
                found = match(data, place)
                if found is None:
                    continue
                if self._claim(rule, found, spans):
                    done = found.end()
                tries = tries + 1 if place < retried else 0
                retried = max(retried, found.end())
        return spans

    def _claim(self, rule: Rule, match: re.Match[bytes], spans: _Spans) -> bool:
        """Claim the secrets in what a rule matched. Tell whether there are any."""
        is_any = False
        for start, end in rule.iter_secrets(match):
            if self._is_to_go(match.string, start, end):
                spans.claim(start, end, rule.name)
                is_any = True
        return is_any

    def _is_to_go(self, data: bytes, start: int, end: int) -> bool:
        """Whether a secret is neither allowed nor made of markers, and cuts none."""
        if data[start:end] in self._allow or not _MARKER.sub(b"", data[start:end]):
            return False
        return not (_cuts_marker(data, start) or _cuts_marker(data, end))


def rule_names() -> list[str]:
    """The names of all rules, in the order in which they are tried; that of private blocks comes first."""
    return list(dict.fromkeys([PRIVATE, *(rule.name for rule in load_table().rules)]))


def _iter_batches(pieces: Iterable[bytes]) -> Iterator[tuple[int, list[bytes], list[int]]]:
    """Pieces to look at in one go: the number of the first, they themselves, and where each ends among them."""
    first, at = 0, -1
    batch: list[bytes] = []
    ends: list[int] = []
    for piece in pieces:
        at += len(piece) + 1
        batch.append(piece)
        ends.append(at)
        if at >= BATCH_BYTES:
            yield first, batch, ends
            first, at, batch, ends = first + len(batch), -1, [], []
    if batch:
        yield first, batch, ends


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
