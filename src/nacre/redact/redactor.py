"""Finding secrets in text and putting a marker in their place."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from nacre.redact.owner import HOME_PATH, KINDS, OWNER, Find, find_own
from nacre.redact.private import PRIVATE, iter_blocks
from nacre.redact.rules import Rule, compile_rule, load_table
from nacre.redact.scan import Places, Scan
from nacre.redact.values import LOOK_BACK
from nacre.redact.views import decode_base64, view
from nacre.text.passages import is_disguised, is_visible, undisguised, visible

PASSES = 16
"""Most passes over one text. A replacement can bare a neighbour, so passes repeat until one finds nothing."""

BATCH_BYTES = 60_000
"""About how much is looked at in one go where many texts are redacted."""

RETRIES = 8
"""Most further matches of a rule that start inside a match it refused; bounds the work on any text."""

_LOOKS, _LOOKS_BYTES = 40, 600
"""Most looks of a finder within so many bytes: each goes through the words behind a name, and no text that people or
programs write has so many names, but "pass=pass=…" would take ages."""

_SHORT_MARKERS: Mapping[str, bytes] = MappingProxyType({PRIVATE: b"[private]", HOME_PATH: b"~"})
_NOTHING: Mapping[str, int] = MappingProxyType({})
_MARKER = re.compile(rb"\[(?:REDACTED:[a-z0-9-]+|private)\]")


@dataclass(frozen=True, slots=True)
class Redacted:
    """A text without its secrets, and how often each rule found one."""

    text: str
    found: Mapping[str, int]


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
    """Replaces secrets by `[REDACTED:<rule>]`, and what is marked as private by `[private]`.

    Safe to share between threads; redacting twice changes nothing.
    """

    def __init__(
        self, extra_patterns: Sequence[str] = (), allow: Sequence[str] = (), kinds: Sequence[str] = ()
    ) -> None:
        """Take the owner's own patterns (regular expressions), exact strings that are never secrets, and which of
        :data:`KINDS` go, too.

        Raises:
            SettingsInvalid: a pattern is not a regular expression, or matches the empty text.
        """
        self._owner = (
            *((OWNER, find_own(pattern)) for pattern in extra_patterns),
            *(KINDS[kind] for kind in kinds),
        )
        self._allow = frozenset(text.encode("utf-8", "surrogatepass") for text in allow)
        self._table = load_table()

    def redact(self, text: str) -> Redacted:
        """Return the text without secrets and the number of secrets per rule.

        What nobody sees (terminal colours, control characters) is taken out first: it hides where a secret begins.
        Where a secret is found in ordinary letters, without soft hyphens and their like, it is that text.
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
            return Redacted(text, _NOTHING)
        found: Counter[str] = Counter()
        for _ in range(PASSES):
            found.update(spans.iter_names())
            data = spans.replace_in(data)
            spans = self._find_spans(data, Scan(data, self._table))
            if not spans:
                break
        return Redacted(data.decode("utf-8", "surrogatepass"), MappingProxyType(dict(found)))

    def clean_all(self, texts: Sequence[str]) -> list[str]:
        """Return the texts without secrets, as `clean` does with each of them; much faster for many short ones."""
        different = list(dict.fromkeys(texts))
        cleaned = {different[number]: self.clean(different[number]) for number in self._list_suspects(different)}
        return [cleaned.get(text, text) for text in texts]

    def find_suspects(self, pieces: Sequence[bytes]) -> set[int]:
        """The numbers of the pieces of text in which a rule may begin to match; a piece holds no line break.

        In no other piece is a secret, nor would one be if other marks or blanks stood between its words.
        """
        if self._owner:
            return set(range(len(pieces)))
        suspects: set[int] = set()
        for first, batch, ends in _iter_batches(pieces):
            scan = Scan(b"\n".join(batch), self._table, ends)
            if not scan.is_visible:
                suspects.update(first + number for number, piece in enumerate(batch) if not is_visible(piece))
            suspects.update(first + number for number, piece in enumerate(batch) if _is_disguised(piece))
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
        scan = Scan(b"\n".join(pieces), self._table, ends)
        if not scan.is_visible:
            yield from (number for number, piece in enumerate(pieces) if not is_visible(piece))
        yield from (number for number, piece in enumerate(pieces) if _is_disguised(piece))
        for number, places in scan.look().split(ends).items():
            if places.is_private or self._claim_all(places, _Spans()) or self._claim_decoded(places, _Spans()):
                yield number

    def _calls_owner(self, text: str) -> bool:
        """Whether one of the owner's patterns may match in a text; it is looked for between markers only."""
        return any(find(text) for _, find in self._owner) or "[REDACTED:" in text or "[private]" in text

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
        """Claim what says a secret once it is decoded."""
        data = places.data
        for place in places.list_encoded():
            encoded = decode_base64(data, place)
            if encoded is not None:
                start, end, plain = encoded
                inner = self._find_spans(plain, Scan(plain, self._table), decodes=False)
                if inner and self._is_to_go(data, start, end):
                    spans.claim(start, end, next(inner.iter_names()))
        for hint in places.list_views():
            seen = view(data, hint)
            for start, end, name in self._find_spans(seen.text, Scan(seen.text, self._table), decodes=False) or ():
                start, end = seen.span(start, end)
                if self._is_to_go(data, start, end):
                    spans.claim(start, end, name)
        return spans

    def _claim_all(self, places: Places, spans: _Spans) -> _Spans:
        """Claim what the rules take for secrets."""
        data, rules = places.data, self._table.rules
        for (number, _, longer), at in places.list_steps():
            rule = rules[number]
            match = compile_rule(rule).match
            done = retried = tries = 0
            looked: deque[int] = deque(maxlen=_LOOKS)
            for place in at:
                if place < done or (place < retried and tries >= RETRIES):
                    continue
                if longer and data[place : place + len(longer)].lower() != longer:
                    continue
                found = match(data, place)
                if found is None or (rule.find and not _is_rare(looked, place)):
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
    """The names of all rules in the order in which they are tried, from private blocks to what goes where the owner
    wants it."""
    return list(
        dict.fromkeys([PRIVATE, *(rule.name for rule in load_table().rules), *(name for name, _ in KINDS.values())])
    )


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


def _is_rare(looked: deque[int], place: int) -> bool:
    """Note a place where a finder is to look; it does not where it looked so often just before."""
    if len(looked) == _LOOKS and place - looked[0] < _LOOKS_BYTES:
        return False
    looked.append(place)
    return True


def _cuts_marker(data: bytes, position: int) -> bool:
    opening = data.rfind(b"[REDACTED:", max(0, position - LOOK_BACK), position + 10)
    marker = _MARKER.match(data, opening) if opening >= 0 else None
    return marker is not None and marker.start() < position < marker.end()


def _iter_owner_spans(find: Find, data: bytes) -> Iterator[tuple[int, int]]:
    """Yield what goes by the owner's word outside the markers, as places in the bytes."""
    position = 0
    for stop, following in [*(marker.span() for marker in _MARKER.finditer(data)), (len(data), len(data))]:
        text = data[position:stop].decode("utf-8", "surrogatepass")
        character = 0
        for begin, end in find(text):
            start = position + len(text[character:begin].encode("utf-8", "surrogatepass"))
            character, position = end, start + len(text[begin:end].encode("utf-8", "surrogatepass"))
            if end > begin:
                yield start, position
        position = following


def _is_disguised(piece: bytes) -> bool:
    return not piece.isascii() and is_disguised(piece.decode("utf-8", "replace"))
