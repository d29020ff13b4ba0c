"""MinHash: how much of their characters two texts share, from 512 bytes each (seed facts 1.3).

The text is lower case without white space or signs, cut into overlapping runs of five characters. 128 hash functions
``a·x + b mod 2³²`` each keep the least value; the share of equal ones estimates the Jaccard index of the runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from nacre.text.passages import normalise

HASHES = 128
SHINGLE = 5
NEAR_DUPLICATE = 0.65
"""The estimated Jaccard index from which two texts are compared as likely repetitions (seed facts 1.3)."""

Signatures = NDArray[np.uint32]

_RANDOM = np.random.default_rng(20_26)
_FACTORS = _RANDOM.integers(1, 2**32, HASHES, dtype=np.uint32) | np.uint32(1)
_OFFSETS = _RANDOM.integers(0, 2**32, HASHES, dtype=np.uint32)


def signature(text: str) -> Signatures:
    """The signature of a text: 128 numbers. An empty text has the largest numbers, and is like no other."""
    bare = normalise(text).replace(" ", "").encode("utf-8", "replace")
    count = max(1, len(bare) - SHINGLE + 1)
    runs = np.fromiter((crc32(bare[at : at + SHINGLE]) for at in range(count)), np.uint32, count)
    least: Signatures = (runs[:, None] * _FACTORS + _OFFSETS).min(axis=0)
    return least


def stack(packed: Sequence[bytes]) -> Signatures:
    """Stored signatures as the rows of one array."""
    return np.frombuffer(b"".join(packed), np.uint32).reshape(-1, HASHES)


def with_row(rows: Signatures, row: Signatures) -> Signatures:
    """The rows and one more."""
    return np.vstack([rows, row])


def near(wanted: Signatures, among: Signatures) -> list[int]:
    """Which rows are likely repetitions, the likeliest first."""
    if not len(among):
        return []
    shares = (among == wanted).mean(axis=1)
    return [int(at) for at in np.argsort(-shares, kind="stable") if shares[at] >= NEAR_DUPLICATE]
