"""Removal of secrets from text before it is stored, embedded, logged or committed."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from nacre.base.frozen import frozen
from nacre.base.lazy import Module
from nacre.base.text import is_disguised, is_visible, undisguised, visible
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
    Rule,
    RuleTable,
    Step,
    compile_any,
    compile_rule,
    decode_base64,
    load_table,
    view,
)
from nacre.redact.secrets import LOOK_BACK, PRIVATE, iter_blocks, may_begin

if TYPE_CHECKING:
    import regex
else:
    regex = Module("regex")

OWNER = "owner"
"""Rule name of the user's patterns."""

HOME_PATH = "home-path"
"""Name of the rule that replaces users' home folders by ``~``."""

SECONDS_A_TEXT = 2.0
"""Time limit in seconds for searching one text with one of the user's patterns."""

Find = Callable[[str], list[tuple[int, int]]]
"""A function that yields the span of each match in a text."""


def find_by(pattern: re.Pattern[str]) -> Find:
    """Return a function that finds the matches of a pattern. Its search time is limited."""
    return lambda text: [match.span() for match in pattern.finditer(text)]


_CARD = re.compile(
    r"(?<![\w.+-])[2-6][0-9]{2,3}(?P<gap>[ -]?)[0-9]{4,6}(?:(?P=gap)[0-9]{2,5}){1,3}(?![\w-]|\.[0-9])"
)
_ISSUERS = re.compile(
    r"4(?:[0-9]{12}|[0-9]{15}|[0-9]{18})|(?:5[1-5]|222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720)[0-9]{12,14}"
    r"|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|35(?:2[89]|[3-8][0-9])[0-9]{12}"
    r"|(?:6011|64[4-9][0-9]|65[0-9]{2}|62[0-9]{2})[0-9]{12,15}"
)
"""First digits and lengths of card numbers: Visa, Mastercard, American Express, Diners, JCB, Discover and UnionPay."""


def _find_cards(text: str) -> list[tuple[int, int]]:
    return [
        match.span() for match in _CARD.finditer(text) if _is_card(re.sub("[ -]", "", match[0]))
    ]


def _is_card(digits: str) -> bool:
    doubled = (sum(divmod(int(digit) * 2, 10)) for digit in digits[-2::-2])
    luhn = sum(doubled) + sum(int(digit) for digit in digits[::-2])
    return luhn % 10 == 0 and len(set(digits)) > 1 and _ISSUERS.fullmatch(digits) is not None


KINDS: Mapping[str, tuple[str, Find]] = MappingProxyType(
    {
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
)
"""Optional kinds of text to redact. Each setting name maps to a rule name and a search function."""


def find_own(pattern: str, seconds: float = SECONDS_A_TEXT) -> Find:
    """Return a function that finds all matches of the user's regular expression.

    If a search takes longer than ``seconds``, the function treats the whole text as a match. Raises
    InvalidSettingsError if ``pattern`` is not a regular expression or matches the empty text.
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
            return [match.span() for match in compiled.finditer(text, timeout=seconds)]
        except TimeoutError:
            return [(0, len(text))]

    return find


# -- Scanning: find where a rule might match or decoding might reveal more -------------------------


RUN = 18
"""Minimum length in bytes of a run of word characters, dashes and dots.

Case-sensitive rules are only tried in such runs.
"""

INNER = 8
"""Number of bytes by which literals after a dash or dot in a run are recognised."""

_INVISIBLE_CLASS = b"!"
_RUN_CLASS = 97
_CLASSES = bytes(
    _RUN_CLASS if byte in RUN_BYTES else 32 if byte > 127 or is_visible(bytes([byte])) else 33
    for byte in range(256)
)
_INNER = re.compile(rb"[-_.](?=([A-Za-z0-9].{%d}))" % (INNER - 1))
_ASCII = bytes(range(128))
_KEYED_RUN = re.compile(
    rb"\n(\+?)([a-z][a-z0-9]{0,9}+[-_](?<!toolu_)(?<!msg_)(?<!call_)(?<!req_)(?:(?=[\w-]{40})(?=[a-z0-9_-]*[A-Z])"
    rb"|(?:[a-z0-9]{1,8}[-_]){0,2}(?:[0-9a-f]{8}-[0-9a-f]{4}-|(?=[A-Za-z]{0,19}[0-9])[A-Za-z0-9]{20}))[^\n]*)"
)
"""Matches a run that might be a key because of its short prefix, even after the "+" of a diff."""
_LONG_RUN = bytes([_RUN_CLASS]) * RUN
_COLOURED = re.compile(rb"\\(?:u001b|x1b|033)\[")  # a leading literal makes the search fast
_COLOUR = re.compile(rb"\\{1,4}(?:u001b|x1b|033)\[[0-9;]{0,12}m")


class Places:
    """The offsets in a text at which a rule or a private block might match."""

    __slots__ = ("_at", "_table", "data")

    def __init__(self, data: bytes, table: RuleTable) -> None:
        self.data = data
        self._table = table
        self._at: dict[bytes, list[int]] = {}

    def __bool__(self) -> bool:
        return bool(self._at)

    @property
    def is_private(self) -> bool:
        """True if the text might contain a private block."""
        return PRIVATE_HINT in self._at

    def list_views(self) -> list[bytes]:
        """Return the byte strings in the text which suggest that decoding might reveal more."""
        return [hint for hint in self._at if hint in VIEW_HINTS]

    def list_encoded(self) -> Sequence[int]:
        """Return the offsets at which base64 text might start."""
        return self._at.get(RUN_LITERAL, ())

    def add(self, literal: bytes, place: int) -> None:
        """Add an offset. The offsets of a literal must be added in order."""
        self._at.setdefault(literal, []).append(place)

    def add_all(self, literal: bytes, data: bytes) -> None:
        """Store all offsets at which ``data`` contains a literal. Replace earlier offsets."""
        self._at.pop(literal, None)
        place = data.find(literal)
        while place >= 0:
            self.add(literal, place)
            place = data.find(literal, place + 1)

    def list_steps(self) -> list[tuple[Step, Sequence[int]]]:
        """Return the rules to try, in order, each with the offsets at which it might match."""
        by_literal = self._table.by_literal
        return sorted(
            (step, places)
            for literal, places in self._at.items()
            for step in by_literal.get(literal, ())
        )

    def split(self, ends: Sequence[int]) -> dict[int, Places]:
        """Return the offsets in each piece, keyed by the piece's index.

        ``ends`` are the end offsets of the pieces. Pieces without offsets are omitted.
        """
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
    """A scan of one text, or of several texts joined by line breaks.

    No literal contains a line break, and a regex treats a line break like the start of a text.
    """

    __slots__ = ("_classes", "_data", "_ends", "_rest", "_table")

    def __init__(self, data: bytes, table: RuleTable, ends: Sequence[int] = ()) -> None:
        """Prepare a scan. If the text consists of several pieces, ``ends`` are their end offsets."""
        self._data = data
        self._table = table
        self._ends = ends or (len(data),)
        self._classes = data.translate(_CLASSES)
        self._rest = b"" if data.isascii() else data.translate(None, _ASCII)

    @property
    def is_visible(self) -> bool:
        """True if the text contains no invisible characters."""
        return _INVISIBLE_CLASS not in self._classes and (not self._rest or is_visible(self._rest))

    def look(self) -> Places:
        """Return the offsets of literals at which a rule might match."""
        data = self._data
        # Escaped colours, as in raw JSON, hide the start of a token. They are replaced by blanks,
        # which keeps all offsets.
        if _COLOURED.search(data):
            data = _COLOUR.sub(lambda match: b" " * len(match[0]), data)
            self._classes = data.translate(_CLASSES)
        places = Places(data, self._table)
        self._look_everywhere(places)
        for literal, foreign in self._table.foreign.items() if self._rest else ():
            if foreign in self._rest:
                places.add_all(literal, data.lower())
        self._look_at_runs(places)
        return places

    def _look_everywhere(self, places: Places) -> None:
        data, ends, anywhere = places.data, self._ends, self._table.anywhere
        reached: dict[bytes, int] = {}
        for literal, place in self._table.hints.find(data):
            if literal in VIEW_HINTS or (literal == PRIVATE_HINT and may_begin(data, place)):
                places.add(literal, place)
            elif literal in anywhere:
                # Offsets inside the last match are not tried, because trying each offset is too
                # slow.
                if place >= reached.get(literal, 0):
                    match = compile_any(literal).match(data, place, ends[bisect_right(ends, place)])
                    if match is None:
                        continue
                    reached[literal] = match.end()
                places.add(literal, place)

    def _look_at_runs(self, places: Places) -> None:
        data, find, by_head, shaped = (
            places.data,
            (self._classes + b" ").find,
            self._table.by_head,
            SHAPED,
        )
        long_run, least, begin = _LONG_RUN, RUN, HEAD
        runs: set[bytes] = set()
        start = find(long_run)
        while start >= 0:
            end = find(b" ", start + least)
            run = data[start:end]
            runs.add(run)
            if (
                run[0] in shaped
                and run[4] in shaped
                and run[8] in shaped
                and SHAPED_RUN.match(data, start)
            ):
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
                inside.update(
                    literal
                    for literal in by_head[inner[:HEAD]]
                    if inner.startswith(literal[:INNER])
                )
        for literal in inside:
            if len(literal) >= HEAD:
                places.add_all(literal, places.data)


def _iter_keyed(data: bytes, joined: bytes) -> Iterator[int]:
    """Yield the offsets at which keys might start.

    The letter of an escaped line break before a key is skipped.
    """
    for sign, run in _KEYED_RUN.findall(joined):
        start = data.find(sign + run)
        while start >= 0:
            yield start + len(sign) + (run[0] in b"nrt" and data[start - 1 : start] == b"\\")
            start = data.find(sign + run, start + len(run))


# -- Replacing secrets with markers --------------------------------------------


PASSES = 16
"""Maximum number of passes over a text.

They repeat until no secret is found, because a replacement can expose a new secret.
"""

BATCH_BYTES = 60_000
"""Approximate size in bytes of a batch of texts that are scanned together."""

RETRIES = 8
"""Maximum number of matches that are tried inside a rejected match of the same rule. It limits the search time."""

_MAX_FINDER_CALLS, _FINDER_WINDOW_BYTES = 40, 600
"""Maximum number of searches by one rule within a number of bytes.

The limit saves time for text such as "pass=pass=…".
"""

_SHORT_MARKERS: Mapping[str, bytes] = MappingProxyType({PRIVATE: b"[private]", HOME_PATH: b"~"})
_NO_COUNTS: Mapping[str, int] = MappingProxyType({})
_MARKER = re.compile(rb"\[(?:REDACTED:[a-z0-9-]+|private)\]")


@frozen
class Redacted:
    """Text without its secrets, and how many secrets each rule found."""

    text: str
    found: Mapping[str, int]


class _Spans:
    """Spans to replace, which do not overlap. A byte belongs to the first span that includes it."""

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

    def __iter__(self) -> Iterator[tuple[int, int, str]]:
        return iter(self._spans)

    def iter_names(self) -> Iterator[str]:
        return (name for _, _, name in self._spans)

    def replace_in(self, data: bytes) -> bytes:
        pieces: list[bytes] = []
        position = 0
        for start, end, name in self._spans:
            marker = _SHORT_MARKERS.get(name) or b"[REDACTED:%s]" % name.encode()
            pieces += (data[position:start], marker)
            position = end
        return b"".join((*pieces, data[position:]))


class Redactor:
    """Replaces secrets with `[REDACTED:<rule>]` and private blocks with `[private]`.

    Threads can share it. Redacting a text again changes nothing.
    """

    def __init__(
        self,
        extra_patterns: Sequence[str] = (),
        allow: Sequence[str] = (),
        kinds: Sequence[str] = (),
    ) -> None:
        """Prepare the rules.

        ``extra_patterns`` are the user's regular expressions. ``allow`` contains strings that are
        never secrets. ``kinds`` names the optional :data:`KINDS` to redact. Raises
        InvalidSettingsError if a pattern is not a regular expression, or matches the empty text.
        """
        self._owner = (
            *((OWNER, find_own(pattern)) for pattern in extra_patterns),
            *(KINDS[kind] for kind in kinds),
        )
        self._allow = frozenset(text.encode("utf-8", "surrogatepass") for text in allow)
        self._table = load_table()

    def redact(self, text: str) -> Redacted:
        """Return the text without secrets, and the number of secrets for each rule.

        Invisible text (terminal colours, control characters) is removed first, because it can hide
        the start of a secret. If a secret is only found after normalising disguised letters and
        removing soft hyphens, the normalised text is returned.
        """
        plain = self._redacted(text)
        if not is_disguised(text) and (plain.text is text or not is_disguised(plain.text)):
            return plain
        bare = self._redacted(undisguised(visible(text)))
        return bare if bare.found else plain

    def _redacted(self, text: str) -> Redacted:
        data = text.encode("utf-8", "surrogatepass")
        scan = Scan(data, self._table)
        if not scan.is_visible:
            text = visible(text)
            data = text.encode("utf-8", "surrogatepass")
            scan = Scan(data, self._table)
        spans = self._find_spans(data, scan)
        if not spans:
            return Redacted(text, _NO_COUNTS)
        counts: Counter[str] = Counter()
        for _ in range(PASSES):
            counts.update(spans.iter_names())
            data = spans.replace_in(data)
            spans = self._find_spans(data, Scan(data, self._table))
            if not spans:
                break
        return Redacted(data.decode("utf-8", "surrogatepass"), MappingProxyType(dict(counts)))

    def clean_all(self, texts: Sequence[str]) -> list[str]:
        """Clean each text like :meth:`clean`, but much faster for many short texts."""
        unique = list(dict.fromkeys(texts))
        # The user's patterns are searched separately in the text between markers.
        suspects = {
            number
            for number, text in enumerate(unique)
            if self._owner
            and (
                "[REDACTED:" in text
                or "[private]" in text
                or any(find(text) for _, find in self._owner)
            )
        }
        for first, batch, ends in _iter_batches(
            text.encode("utf-8", "surrogatepass") for text in unique
        ):
            suspects.update(first + piece for piece in self._iter_suspect_pieces(batch, ends))
        cleaned = {unique[number]: self.clean(unique[number]) for number in suspects}
        return [cleaned.get(text, text) for text in texts]

    def clean(self, text: str) -> str:
        """Return the text without secrets. The same object is returned if there are no secrets."""
        return self.redact(text).text

    def _iter_suspect_pieces(self, pieces: Sequence[bytes], ends: Sequence[int]) -> Iterator[int]:
        scan = Scan(b"\n".join(pieces), self._table, ends)
        yield from _iter_hidden(scan, pieces)
        for number, places in scan.look().split(ends).items():
            if (
                places.is_private
                or self._claim_all(places, _Spans())
                or self._claim_decoded(places, _Spans())
            ):
                yield number

    def _find_spans(self, data: bytes, scan: Scan, *, decodes: bool = True) -> _Spans | None:
        places = scan.look()
        if not places and not self._owner:
            return None
        spans = _Spans()
        if places.is_private:
            for start, end in iter_blocks(data):
                spans.claim(start, end, PRIVATE)
        self._claim_all(places, spans)
        for name, find in self._owner:
            for start, end in _iter_owner_spans(find, data):
                if data[start:end] not in self._allow:
                    spans.claim(start, end, name)
        return self._claim_decoded(places, spans) if decodes else spans

    def _claim_decoded(self, places: Places, spans: _Spans) -> _Spans:
        data = places.data
        for place in places.list_encoded():
            encoded = decode_base64(data, place)
            if encoded is not None:
                start, end, plain = encoded
                inner = self._find_spans(plain, Scan(plain, self._table), decodes=False)
                if inner and self._must_redact(data, start, end):
                    spans.claim(start, end, next(inner.iter_names()))
        for hint in places.list_views():
            decoded = view(data, hint)
            for start, end, name in (
                self._find_spans(decoded.text, Scan(decoded.text, self._table), decodes=False) or ()
            ):
                start, end = decoded.span(start, end)
                if self._must_redact(data, start, end):
                    spans.claim(start, end, name)
        return spans

    def _claim_all(self, places: Places, spans: _Spans) -> _Spans:
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
                if self._claim(rule, result, spans):
                    done = result.end()
                tries = tries + 1 if place < retried else 0
                retried = max(retried, result.end())
        return spans

    def _claim(self, rule: Rule, match: re.Match[bytes], spans: _Spans) -> bool:
        """Mark the secrets in a rule's match for replacement. Return True if there are any."""
        is_any = False
        for start, end in rule.iter_secrets(match):
            if self._must_redact(match.string, start, end):
                spans.claim(start, end, rule.name)
                is_any = True
        return is_any

    def _must_redact(self, data: bytes, start: int, end: int) -> bool:
        """Return True if a possible secret must be redacted.

        Allowed strings, redaction markers, and text that starts or ends within a marker are kept.
        """
        if data[start:end] in self._allow or not _MARKER.sub(b"", data[start:end]):
            return False
        return not (_cuts_marker(data, start) or _cuts_marker(data, end))


def rule_names() -> list[str]:
    """Return the names of all rules in the order in which the rules are applied."""
    rules, kinds = load_table().rules, KINDS.values()
    return list(
        dict.fromkeys([PRIVATE, *(rule.name for rule in rules), *(name for name, _ in kinds)])
    )


def _iter_batches(pieces: Iterable[bytes]) -> Iterator[tuple[int, list[bytes], list[int]]]:
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
    """Yield the byte spans that the user's patterns match outside redaction markers."""
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


def _iter_hidden(scan: Scan, pieces: Sequence[bytes]) -> Iterator[int]:
    """Yield the indexes of pieces that contain invisible characters or disguised letters."""
    is_all_visible = scan.is_visible
    for number, piece in enumerate(pieces):
        if not (is_all_visible or is_visible(piece)) or (
            not piece.isascii() and is_disguised(piece.decode("utf-8", "replace"))
        ):
            yield number
