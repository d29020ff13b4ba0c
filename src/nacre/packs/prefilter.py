"""Tell from the bytes of lines of JSON which of them nothing has to be taken out of: nearly all, and at little cost.

Strings are found by one regular expression, each with its name. What was looked at once is not looked at again, and
only a line with a string that changes is taken apart, by :mod:`nacre.packs.lines`, which alone says what is kept.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import msgspec

from nacre.packs.texts import (
    ENCODED_CHARACTERS,
    CleanAll,
    FindSuspects,
    changes,
    decoded,
    holds_encoded,
    is_telling_name,
    texts_in,
)

_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_NUMBER = rb"-?[0-9][0-9.eE+-]*+"
_STRINGS = rb"\[\s*+%b(?:\s*+,\s*+%b)*+\s*+\]" % (_STRING, _STRING)
_TOKENS = re.compile(rb"%b(?:\s*+:\s*+(?:%b|%b|%b|\[)?)?" % (_STRING, _STRING, _NUMBER, _STRINGS), re.DOTALL)
"""A name with its string, number or strings, or with whatever else it names; or a string in a list of other things."""

_VALID = msgspec.json.Decoder(msgspec.Raw)
_WHOLE = re.compile(rb":\s*-?[0-9]{1,18}\Z")
"""A number that is written in one way only."""

_PLAIN_BYTES = 400
_SHORT_BYTES = 200
_MOST_KNOWN = 100_000
"""About 15 MB."""


@dataclass(frozen=True, slots=True)
class Sifted:
    """What sifting some lines told.

    ``suspects`` are the numbers of lines that are to be taken apart, ``sure`` those in which something changes;
    ``asked`` are texts that were looked at, and ``changed`` those of them that become others.
    """

    suspects: list[int]
    sure: set[int]
    asked: dict[str, None]
    changed: dict[str, str]


class Sieve:
    """Sifts lines; remembers, within bounds, short strings in which nothing changes."""

    def __init__(self, clean_all: CleanAll, find_suspects: FindSuspects | None = None) -> None:
        self._clean_all = clean_all
        self._find_suspects = find_suspects
        self._known: set[bytes] = set()

    def sift(self, lines: Sequence[bytes]) -> Sifted:
        """Which of some lines may change. Lines that are no JSON are among them."""
        fresh: dict[bytes, list[int]] = {}
        suspects: set[int] = set()
        for number, line in enumerate(lines):
            if _is_json(line):
                for token in set(_TOKENS.findall(line)) - self._known:
                    fresh.setdefault(token, []).append(number)
            elif line and not line.isspace():
                suspects.add(number)
        texts = {token: _texts_of(token) for token in self._to_ask(fresh)}
        asked = {text: None for found in texts.values() if found for text in found}
        changed = changes(asked, self._clean_all)
        dirty = {token for token, found in texts.items() if found and not changed.keys().isdisjoint(found)}
        odd = dirty.union(token for token, found in texts.items() if found is None)
        suspects.update(number for token in odd for number in fresh[token])
        self._remember(fresh.keys() - odd)
        sure = {number for token in dirty for number in fresh[token]}
        return Sifted(sorted(suspects), sure, asked, changed)

    def _to_ask(self, fresh: Collection[bytes]) -> Iterable[bytes]:
        """All but the tokens that say by their bytes that nothing in them is a secret, under whichever mark."""
        if self._find_suspects is None:
            return fresh
        plain = [token for token in fresh if _is_plain(token)]
        if not _is_text(plain):
            return fresh
        suspects = self._find_suspects(plain)
        spared = {token for number, token in enumerate(plain) if number not in suspects}
        return [token for token in fresh if token not in spared]

    def _remember(self, tokens: set[bytes]) -> None:
        if len(self._known) > _MOST_KNOWN:
            self._known.clear()
        self._known.update(token for token in tokens if len(token) <= _SHORT_BYTES)


def _is_json(line: bytes) -> bool:
    """Whether a line is one value of JSON, if all of its strings are."""
    if line[:1] not in (b"{", b"["):
        return False
    try:
        _VALID.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _is_plain(token: bytes) -> bool:
    """Whether what is looked at in a token stands there as it is, but for the marks between."""
    if len(token) > _PLAIN_BYTES or b"\\" in token:
        return False
    last = token[-1:]
    if last == b'"':
        return token.find(b'"', 1) != len(token) - 1
    return last == b"]" or _WHOLE.search(token) is not None


def _is_text(tokens: Sequence[bytes]) -> bool:
    try:
        b"\n".join(tokens).decode()
    except UnicodeDecodeError:
        return False
    return True


def _texts_of(token: bytes) -> list[str] | None:
    """What is to be looked at in a token; ``None`` where the line must be taken apart to know."""
    last = token.rstrip()[-1:]
    if last in b":[":
        name = decoded(b"[" + token[: token.rindex(b":")] + b"]")
        return None if name is None or (last == b"[" and is_telling_name(name[0])) else list(name)
    value = decoded(b"{" + token + b"}")
    if value is None or (len(token) > ENCODED_CHARACTERS and holds_encoded(value)):
        return None
    return texts_in(value)
