"""How often each word is in a turn, in a few bytes: what a search result is weighed by without reading its text.

The words of a turn (3 bytes, least first), then 3 bytes of a checksum for each distinct stem, then a byte for each: how
often it was said (the upper half, at most 15) and how often it stands in what was done (the lower half). Two stems
share a checksum once in 16 million; a turn of 70 stems is taken to hold a word that it lacks once in 240,000.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from zlib import crc32

from nacre.storage.search.full_text import Match

_HEAD = 3
_WIDTH = 3
_MOST = 15
_DID = 0.5
"""What was done counts so much beside what was said."""

_COUNTS = tuple((count >> 4) + _DID * (count & 15) for count in range(256))
"""What each byte of counts comes to."""


def pack(said: Sequence[str], did: Sequence[str]) -> bytes:
    """The stems of a turn, counted."""
    spoken, done = Counter(said), Counter(did)
    stems = spoken.keys() | done.keys()
    counts = bytes(min(spoken[stem], _MOST) << 4 | min(done[stem], _MOST) for stem in stems)
    return (len(said) + len(did)).to_bytes(_HEAD, "little") + b"".join(map(key_of, stems)) + counts


def key_of(stem: str) -> bytes:
    """The checksum that stands for a stem."""
    return (crc32(stem.encode("utf-8", "replace")) & 0xFFFFFF).to_bytes(_WIDTH, "little")


def unpack(packed: bytes, keys: Sequence[bytes], row: int, session: int, seq: int) -> Match:
    """What a turn holds of some stems, by their checksums."""
    end = _HEAD + (len(packed) - _HEAD) // (_WIDTH + 1) * _WIDTH
    sums = packed[_HEAD:end]
    find, held = sums.find, {}
    for number, key in enumerate(keys):
        at = find(key)
        while at > 0 and at % _WIDTH:
            at = find(key, at + 1)
        if at >= 0:
            held[number] = _COUNTS[packed[end + at // _WIDTH]]
    return Match(row, session, seq, held, int.from_bytes(packed[:_HEAD], "little"))
