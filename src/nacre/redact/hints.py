"""Where a text holds one of many words: the first look at every text, so it is made to be fast."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain

_ALIKE: Mapping[str, str] = {"w": "k", "j": "k", "v": "k", "z": "k", "u": "b", "%": ":", "\\": ":", "&": ":", "!": ":"}
_SIGHT = bytes(ord(_ALIKE.get(chr(byte).lower(), chr(byte).lower())) if byte < 128 else byte for byte in range(256))
"""Makes of a text what is searched: lower case, with rare letters and signs made alike, as every byte that words are
searched by costs a pass over the text."""

_ANCHORS = tuple(b"~ : - k b p h c".split())
"""The bytes that words are searched by, in the order of preference."""

_SHORT = 2000
"""Bytes of a text up to which all words are searched in one pass."""

_FOLLOWED: Mapping[bytes, bytes] = {
    b"%": rb"(?=2[25]|3[ad]|7b|c[3-5]|d[01])",
    b"\\": rb"(?=b(?!00[01])[0-9a-f]{4})",
    b"&": rb"(?=(?:qbot|amp|lt|gt|apos|#x?[0-9a-f]{1,6});)",
    b"pw": rb"(?![a-ce-z])",
    b"ww": rb"(?=[ :])",
    b" -p": rb"(?!ass|k)",
    **{b" -" + flag: rb"(?=[ ='\"])" for flag in (b"a", b"b", b"c", b"k", b"u", b"w", b"x")},
}
"""What follows some words wherever they matter, in the bytes that are searched; without it they are everywhere."""


class Hints:
    """Finds words in texts, whatever their case."""

    __slots__ = ("_search", "_searches", "_words", "blind")

    def __init__(self, words: Collection[bytes]) -> None:
        """Take the words in lower case. Those in ``blind`` cannot be searched in this way."""
        tails = {word: tail for word in words if (tail := _cut_tail(word.translate(_SIGHT)))}
        self.blind = frozenset(words) - tails.keys()
        regexes = {
            anchor: _join(anchor, [(tail, word) for word, tail in tails.items() if tail.startswith(anchor)])
            for anchor in _ANCHORS
        }
        self._searches = tuple((anchor, re.compile(regex)) for anchor, regex in regexes.items())
        self._search = re.compile(b"|".join(regexes.values()))
        self._words = {
            tail: tuple((word, len(word) - len(other)) for word, other in tails.items() if tail.startswith(other))
            for tail in tails.values()
        }

    def find(self, data: bytes) -> Iterator[tuple[bytes, int]]:
        """Yield the words in a text and where they are; those of one word come in order."""
        for found in self._iter_found(data.translate(_SIGHT)):
            for word, before in self._words[found[0] + found[found.lastindex or 0]]:
                place = found.start() - before
                if data[place : place + len(word)].lower() == word:
                    yield word, place

    def _iter_found(self, seen: bytes) -> Iterator[re.Match[bytes]]:
        if len(seen) < _SHORT:
            return self._search.finditer(seen)
        return chain.from_iterable(regex.finditer(seen) for anchor, regex in self._searches if anchor in seen)


def _cut_tail(seen: bytes) -> bytes:
    """A word from the byte on that it is searched by, which is not its last if there is another one."""
    return next(
        (seen[seen.index(anchor) :] for part in (seen[:-1], seen) for anchor in _ANCHORS if anchor in part), b""
    )


def _join(anchor: bytes, words: Sequence[tuple[bytes, bytes]]) -> bytes:
    """A regex for words that are searched by the same byte, of which it takes no more: no word hides another one.

    The longest come first, and those whose second byte is the same stand together: after a look at that byte, most
    places are left.
    """
    regexes: dict[bytes, list[bytes]] = defaultdict(list)
    for tail, word in sorted(words, key=lambda pair: -len(pair[0])):
        seen = word.translate(_SIGHT)
        behind = b"" if tail == seen else b"(?<=%s)" % re.escape(seen)
        regexes[tail[1:2]].append(re.escape(tail[2:]) + behind + _FOLLOWED.get(word, b""))
    branches = b"|".join(re.escape(second) + b"(?:%s)" % b"|".join(those) for second, those in regexes.items())
    return re.escape(anchor) + b"(?=(%s))" % branches
