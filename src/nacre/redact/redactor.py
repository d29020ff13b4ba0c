"""Removal of secrets from text before it is stored, embedded, logged or committed."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from nacre.base.frozen import frozen
from nacre.base.lazy import Module
from nacre.base.text import is_disguised, undisguised, visible
from nacre.errors import InvalidSettingsError
from nacre.redact.rules import (
    HEAD,
    KEYED_LITERAL,
    PRIVATE_HINT,
    RUN_BYTES,
    RUN_LITERAL,
    SHAPED,
    SHAPED_RUN,
    VIEW_HINTS,
    RuleTable,
    Step,
    View,
    compile_any,
    compile_rule,
    decode_base64,
    load_table,
)
from nacre.redact.secrets import LOOK_BACK, PRIVATE, iter_blocks, may_begin

if TYPE_CHECKING:
    import regex
else:
    regex = Module("regex")

OWNER = "owner"
"""Name of the rule for the user's own patterns."""

HOME_PATH = "home-path"
"""Name of the rule that replaces the paths of home folders with ``~``."""

SECONDS_A_TEXT = 2.0
"""Time limit in seconds for a search with one of the user's patterns in one text."""

Find = Callable[[str], list[tuple[int, int]]]
"""A function that returns the spans of all matches in a text."""


def find_by(pattern: re.Pattern[str]) -> Find:
    """Return a search function for a built-in pattern, without a time limit."""
    return lambda text: [match.span() for match in pattern.finditer(text)]


_CARD = re.compile(
    r"(?<![\w.+-])[2-6][0-9]{2,3}(?P<gap>[ -]?)[0-9]{4,6}(?:(?P=gap)[0-9]{2,5}){1,3}(?![\w-]|\.[0-9])"
)
_ISSUERS = re.compile(
    r"4(?:[0-9]{12}|[0-9]{15}|[0-9]{18})|(?:5[1-5]|222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720)[0-9]{12,14}"
    r"|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|35(?:2[89]|[3-8][0-9])[0-9]{12}"
    r"|(?:6011|64[4-9][0-9]|65[0-9]{2}|62[0-9]{2})[0-9]{12,15}"
)
"""First digits and lengths of card numbers of Visa, Mastercard, American Express, Diners, JCB,
Discover and UnionPay.
"""


def _find_cards(text: str) -> list[tuple[int, int]]:
    return [
        match.span() for match in _CARD.finditer(text) if _is_card(re.sub("[ -]", "", match[0]))
    ]


def _is_card(digits: str) -> bool:
    doubled = (sum(divmod(int(digit) * 2, 10)) for digit in digits[-2::-2])
    luhn = sum(doubled) + sum(int(digit) for digit in digits[::-2])
    return luhn % 10 == 0 and len(set(digits)) > 1 and _ISSUERS.fullmatch(digits) is not None


KINDS: Mapping[str, tuple[str, Find]] = {
    "emails": (
        "email",
        find_by(
            re.compile(
                r"(?<![\w.+%-])[^\W_][\w.+%-]{0,63}@(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,8}[^\W\d_]{2,24}(?![\w-]|:[\w.~/-]*/)"
            )
        ),
    ),
    "home_paths": (
        HOME_PATH,
        find_by(
            re.compile(
                r"(?:(?<![\w.~-])/(?:home|Users)/|(?<!\w)[A-Za-z]:(?:\\{1,4}|/)Users(?:\\{1,4}|/))"
                r"[^\s/\\\"'`<>:|*?;,()\[\]{}$]{1,64}"
            )
        ),
    ),
    "payment_cards": ("payment-card", _find_cards),
}
"""Optional kinds of redaction by setting, each with the name of its rule and a search function."""


def find_own(pattern: str) -> Find:
    """Return a search function for one of the user's regular expressions.

    If a search takes longer than ``SECONDS_A_TEXT``, the whole text counts as a match. Raises
    InvalidSettingsError if the pattern is invalid or matches the empty string.
    """
    hint = "redact patterns are Python regular expressions; correct or remove this one"
    try:
        is_empty = re.compile(pattern).fullmatch("")
        compiled = regex.compile(pattern)
    except (re.error, regex.error, OverflowError, RecursionError) as error:
        raise InvalidSettingsError(
            f"redaction pattern {pattern!r} is not a regular expression: {error}", hint=hint
        ) from error
    if is_empty:
        raise InvalidSettingsError(
            f"redaction pattern {pattern!r} matches the empty text", hint=hint
        )

    def find(text: str) -> list[tuple[int, int]]:
        try:
            return [match.span() for match in compiled.finditer(text, timeout=SECONDS_A_TEXT)]
        except TimeoutError:
            return [(0, len(text))]

    return find


# -- Scanning: find where a rule might match or decoding might reveal more -------------------------


RUN = 18
"""Minimum length in bytes of a run, a sequence of word characters, dashes and dots.

Case-sensitive rules are tried only in runs.
"""

INNER = 8
"""Maximum number of bytes that are compared with a literal inside a run."""

_RUN_CLASS = 97
_CLASSES = bytes(_RUN_CLASS if byte in RUN_BYTES else 32 for byte in range(256))
_INNER = re.compile(rb"[-_.](?=([A-Za-z0-9].{%d}))" % (INNER - 1))
_KEYED_RUN = re.compile(
    rb"\n(\+?)([a-z][a-z0-9]{0,9}+[-_](?<!toolu_)(?<!msg_)(?<!call_)(?<!req_)(?:(?=[\w-]{40})(?=[a-z0-9_-]*[A-Z])"
    rb"|(?:[a-z0-9]{1,8}[-_]){0,2}(?:[0-9a-f]{8}-[0-9a-f]{4}-|(?=[A-Za-z]{0,19}[0-9])[A-Za-z0-9]{20}))[^\n]*)"
)
"""Matches a run whose short prefix suggests a key, even after a diff's "+"."""
_LONG_RUN = bytes([_RUN_CLASS]) * RUN
_COLOURED = re.compile(rb"\\(?:u001b|x1b|033)\[")  # a leading literal makes the search fast
_COLOUR = re.compile(rb"\\{1,4}(?:u001b|x1b|033)\[[0-9;]{0,12}m")


class Places:
    """The offsets in a text at which rules or private blocks might match."""

    __slots__ = ("_at", "_table", "data")

    def __init__(self, data: bytes, table: RuleTable) -> None:
        if _COLOURED.search(data):
            data = _COLOUR.sub(lambda match: b" " * len(match[0]), data)
        self.data = data
        self._table = table
        self._at: dict[bytes, list[int]] = {}
        self._look_everywhere()
        self._look_at_runs()

    def __bool__(self) -> bool:
        return bool(self._at)

    def of(self, literal: bytes) -> Sequence[int]:
        """Return the offsets at which a literal or a hint occurs."""
        return self._at.get(literal, ())

    def list_steps(self) -> list[tuple[Step, Sequence[int]]]:
        """Return the rules to try, in order, with the offsets at which each might match."""
        by_literal = self._table.by_literal
        return sorted(
            (step, places)
            for literal, places in self._at.items()
            for step in by_literal.get(literal, ())
        )

    def _add(self, literal: bytes, place: int) -> None:
        self._at.setdefault(literal, []).append(place)

    def _look_everywhere(self) -> None:
        data, anywhere = self.data, self._table.anywhere
        reached: dict[bytes, int] = {}
        for literal, place in self._table.hints.find(data):
            if literal in VIEW_HINTS or (literal == PRIVATE_HINT and may_begin(data, place)):
                self._add(literal, place)
            elif literal in anywhere:
                # Offsets inside the last match are skipped, because trying them all is too slow.
                if place >= reached.get(literal, 0):
                    match = compile_any(literal).match(data, place)
                    if match is None:
                        continue
                    reached[literal] = match.end()
                self._add(literal, place)

    def _look_at_runs(self) -> None:
        data, by_head, shaped = self.data, self._table.by_head, SHAPED
        find = (data.translate(_CLASSES) + b" ").find
        runs = set()
        start = find(_LONG_RUN)
        while start >= 0:
            end = find(b" ", start + RUN)
            run = data[start:end]
            runs.add(run)
            if (
                run[0] in shaped
                and run[4] in shaped
                and run[8] in shaped
                and SHAPED_RUN.match(data, start)
            ):
                self._add(RUN_LITERAL, start)
            for literal in by_head.get(run[:HEAD], ()):
                if run.startswith(literal):
                    self._add(literal, start)
                elif run.startswith(literal, 1):
                    self._add(literal, start + 1)
            start = find(_LONG_RUN, end)
        if runs:
            joined = b"\n" + b"\n".join(runs)
            self._look_inside(joined)
            for place in sorted(_iter_keyed(data, joined)):
                self._add(KEYED_LITERAL, place)

    def _look_inside(self, runs: bytes) -> None:
        inside = {
            literal
            for inner in _INNER.findall(runs)
            for literal in self._table.by_head.get(inner[:HEAD], ())
            if inner.startswith(literal[:INNER]) and len(literal) >= HEAD
        }
        for literal in inside:
            self._at[literal] = [
                match.start() for match in re.finditer(re.escape(literal), self.data)
            ]


def _iter_keyed(data: bytes, joined: bytes) -> Iterator[int]:
    for sign, run in _KEYED_RUN.findall(joined):
        start = data.find(sign + run)
        while start >= 0:
            yield start + len(sign) + (run[0] in b"nrt" and data[start - 1 : start] == b"\\")
            start = data.find(sign + run, start + len(run))


# -- Replacing secrets with markers --------------------------------------------


PASSES = 16
"""Maximum number of passes over a text, because a replacement can expose another secret."""

RETRIES = 8
"""Maximum number of further matches that are tried inside a rule's rejected match."""

_MAX_FINDER_CALLS, _FINDER_WINDOW_BYTES = 40, 600
"""Maximum number of searches by one rule within this many bytes.

This saves time on text such as "pass=pass=…".
"""

_SHORT_MARKERS: Mapping[str, bytes] = {PRIVATE: b"[private]", HOME_PATH: b"~"}
_MARKER = re.compile(rb"\[(?:REDACTED:[a-z0-9-]+|private)\]")


@frozen
class Redacted:
    """A redacted text, and the number of secrets that each rule found in it."""

    text: str
    counts: Mapping[str, int]


_Spans = list[tuple[int, int, str]]
"""The spans to replace and their rules' names, in order and without overlaps."""


def _add_span(spans: _Spans, start: int, end: int, name: str) -> None:
    index = bisect_left(spans, (start,))
    if index < len(spans) and spans[index][0] < end:
        return
    if index and spans[index - 1][1] > start:
        return
    spans.insert(index, (start, end, name))


def _replace(data: bytes, spans: _Spans) -> bytes:
    pieces: list[bytes] = []
    position = 0
    for start, end, name in spans:
        marker = _SHORT_MARKERS.get(name) or b"[REDACTED:%s]" % name.encode()
        pieces += (data[position:start], marker)
        position = end
    return b"".join((*pieces, data[position:]))


class Redactor:
    """Replaces secrets with ``[REDACTED:<rule>]`` and private blocks with ``[private]``. It is
    thread-safe, and redacting a text twice changes nothing.
    """

    def __init__(
        self,
        extra_patterns: Sequence[str] = (),
        allow: Sequence[str] = (),
        kinds: Sequence[str] = (),
    ) -> None:
        """Add the user's regular expressions and the optional :data:`KINDS` to the built-in rules.

        Strings in ``allow`` are never redacted. Raises InvalidSettingsError if a pattern is invalid
        or matches the empty string.
        """
        self._owner = (
            *((OWNER, find_own(pattern)) for pattern in extra_patterns),
            *(KINDS[kind] for kind in kinds),
        )
        self._allow = frozenset(text.encode("utf-8", "surrogatepass") for text in allow)
        self._table = load_table()

    def redact(self, text: str) -> Redacted:
        """Return the redacted text, and the number of secrets that each rule found.

        Terminal colours and control characters, which can hide a secret, are removed. If a secret
        is found only once soft hyphens and disguised letters are normalised, they stay normalised
        in the result.
        """
        plain = self._redacted(text)
        if not is_disguised(text) and (plain.text is text or not is_disguised(plain.text)):
            return plain
        bare = self._redacted(undisguised(visible(text)))
        return bare if bare.counts else plain

    def _redacted(self, text: str) -> Redacted:
        text = visible(text)
        data = text.encode("utf-8", "surrogatepass")
        spans = self._find_spans(data)
        if not spans:
            return Redacted(text, {})
        counts: Counter[str] = Counter()
        for _ in range(PASSES):
            counts.update(name for _, _, name in spans)
            data = _replace(data, spans)
            spans = self._find_spans(data)
            if not spans:
                break
        return Redacted(data.decode("utf-8", "surrogatepass"), dict(counts))

    def clean_all(self, texts: Sequence[str]) -> list[str]:
        """Return the redacted texts in the same order. Repeated texts are searched only once."""
        cleaned = {text: self.clean(text) for text in dict.fromkeys(texts)}
        return [cleaned[text] for text in texts]

    def clean(self, text: str) -> str:
        """Return the redacted text, or the same object if nothing had to be changed."""
        return self.redact(text).text

    def _find_spans(self, data: bytes, *, decodes: bool = True) -> _Spans:
        places = Places(data, self._table)
        if not places and not self._owner:
            return []
        spans: _Spans = []
        if places.of(PRIVATE_HINT):
            for start, end in iter_blocks(data):
                _add_span(spans, start, end, PRIVATE)
        self._claim_all(places, spans)
        for name, find in self._owner:
            for start, end in _iter_owner_spans(find, data):
                if data[start:end] not in self._allow:
                    _add_span(spans, start, end, name)
        if decodes:
            self._claim_decoded(places, spans)
        return spans

    def _claim_decoded(self, places: Places, spans: _Spans) -> None:
        data = places.data
        for place in places.of(RUN_LITERAL):
            encoded = decode_base64(data, place)
            if encoded is not None:
                start, end, plain = encoded
                inner = self._find_spans(plain, decodes=False)
                if inner and self._must_redact(data, start, end):
                    _add_span(spans, start, end, inner[0][2])
        for hint in filter(places.of, VIEW_HINTS):
            decoded = View(data, hint)
            for start, end, name in self._find_spans(decoded.text, decodes=False):
                start, end = decoded.span(start, end)
                if self._must_redact(data, start, end):
                    _add_span(spans, start, end, name)

    def _claim_all(self, places: Places, spans: _Spans) -> None:
        data, rules = places.data, self._table.rules
        for (number, _, longer), at in places.list_steps():
            rule = rules[number]
            match = compile_rule(rule).match
            done = retried = tries = 0
            recent_calls: deque[int] = deque(maxlen=_MAX_FINDER_CALLS)
            for place in at:
                if place < done or (place < retried and tries >= RETRIES):
                    continue
                if longer and data[place : place + len(longer)].lower() != longer:
                    continue
                result = match(data, place)
                if result is None or (rule.find and not _may_call_finder(recent_calls, place)):
                    continue
                for start, end in rule.iter_secrets(result):
                    if self._must_redact(data, start, end):
                        _add_span(spans, start, end, rule.name)
                        done = result.end()
                tries = tries + 1 if place < retried else 0
                retried = max(retried, result.end())

    def _must_redact(self, data: bytes, start: int, end: int) -> bool:
        if data[start:end] in self._allow or not _MARKER.sub(b"", data[start:end]):
            return False
        return not (_cuts_marker(data, start) or _cuts_marker(data, end))


def rule_names() -> list[str]:
    """Return the names of all rules, in the order in which they are applied."""
    rules, kinds = load_table().rules, KINDS.values()
    return list(
        dict.fromkeys([PRIVATE, *(rule.name for rule in rules), *(name for name, _ in kinds)])
    )


def _may_call_finder(recent_calls: deque[int], place: int) -> bool:
    if len(recent_calls) == _MAX_FINDER_CALLS and place - recent_calls[0] < _FINDER_WINDOW_BYTES:
        return False
    recent_calls.append(place)
    return True


def _cuts_marker(data: bytes, position: int) -> bool:
    opening = data.rfind(b"[REDACTED:", max(0, position - LOOK_BACK), position + 10)
    marker = _MARKER.match(data, opening) if opening >= 0 else None
    return marker is not None and marker.start() < position < marker.end()


def _iter_owner_spans(find: Find, data: bytes) -> Iterator[tuple[int, int]]:
    position = 0
    for stop, following in [
        *(marker.span() for marker in _MARKER.finditer(data)),
        (len(data), len(data)),
    ]:
        text = data[position:stop].decode("utf-8", "surrogatepass")
        character = 0
        for begin, end in find(text):
            start = position + len(text[character:begin].encode("utf-8", "surrogatepass"))
            character, position = end, start + len(text[begin:end].encode("utf-8", "surrogatepass"))
            if end > begin:
                yield start, position
        position = following
