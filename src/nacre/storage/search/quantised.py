"""Vectors in a byte a dimension, and in a bit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float32]
_PORTION = 16_384
_ROWS_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class Kept:
    """What searches keep in memory of the passages of one database: the model that made them, their bits, which nobody
    changes in place, and the row that comes next."""

    held: tuple[str | None, str | None]
    bits: NDArray[np.uint64]
    next: int


def distances(bits: NDArray[np.uint64], wanted: NDArray[np.uint64]) -> NDArray[np.uint16]:
    """In how many bits each passage differs; ``bits`` has a row for each 64 of them."""
    count = bits.shape[1]
    found = np.zeros(count, np.uint16)
    differs, ones = np.empty(_PORTION, np.uint64), np.empty(_PORTION, np.uint8)
    for start in range(0, count, _PORTION):
        part = found[start : start + _PORTION]
        for own, other in zip(bits[:, start : start + _PORTION], wanted, strict=True):
            np.bitwise_xor(own, other, out=differs[: len(part)])
            np.bitwise_count(differs[: len(part)], out=ones[: len(part)])
            np.add(part, ones[: len(part)], out=part)
    return found


def to_int8(vectors: Matrix) -> NDArray[np.int8]:
    """Vectors with the largest value of each as 127."""
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    packed: NDArray[np.int8] = np.rint(vectors * (127.0 / np.maximum(largest, 1e-9))).astype(np.int8)
    return packed


def from_int8(blobs: Sequence[bytes]) -> Matrix:
    """Vectors of length 1 from their bytes."""
    vectors = np.frombuffer(b"".join(blobs), np.int8).reshape(len(blobs), -1).astype(np.float32)
    unit: Matrix = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    return unit


def cosines(query: Matrix, blobs: Sequence[bytes]) -> Matrix:
    """The cosine of a query to each of some stored vectors."""
    cosines: Matrix = from_int8(blobs) @ query
    return cosines


def near_pairs(
    owners: NDArray[np.int64], first_pieces: NDArray[np.int64], pieces: Matrix, wanted: Sequence[int], least: float
) -> list[tuple[int, int, float]]:
    """Pairs of ``wanted`` owners whose best pieces are at least so near, the nearest first; some rows at a time.

    ``first_pieces`` says where the pieces of each owner begin.
    """
    owner = np.repeat(owners, np.diff(np.append(first_pieces, len(pieces))))
    chosen = np.isin(owner, np.array(wanted, np.int64))
    owner, mine = owner[chosen], pieces[chosen]
    best: dict[tuple[int, int], float] = {}
    for start in range(0, len(mine), _ROWS_AT_ONCE):
        found = mine[start : start + _ROWS_AT_ONCE] @ mine[start:].T
        for one, other in np.argwhere(found >= least).tolist():
            first, second = int(owner[start + one]), int(owner[start + other])
            if first < second:
                best[first, second] = max(best.get((first, second), -1.0), float(found[one, other]))
    return sorted(((*pair, cosine) for pair, cosine in best.items()), key=lambda one: (-one[2], one[:2]))


def to_bits(vectors: NDArray[np.int8]) -> NDArray[np.uint64]:
    """The signs of vectors, 64 to a word."""
    packed = np.packbits(vectors > 0, axis=1)
    words = -(-packed.shape[1] // 8)  # whole words, whatever the size of the vectors
    return np.pad(packed, ((0, 0), (0, words * 8 - packed.shape[1]))).view(np.uint64)


class Walk(Protocol):
    """Passages from the nearest to the farthest."""

    def next(self, count: int) -> list[int]:
        """About so many rows more, where there are any."""


class Outward:
    """Walks through passages from the nearest to the farthest, in rings of equal distance."""

    def __init__(self, distances: NDArray[np.uint16]) -> None:
        self.distances = distances
        self._within = np.cumsum(np.bincount(distances))
        self._next = 0

    def next(self, count: int) -> list[int]:
        """At least so many passages more, where there are any: all of the same distance come together."""
        if self._next >= len(self._within):
            return []
        before = int(self._within[self._next - 1]) if self._next else 0
        last = int(np.searchsorted(self._within, before + count))
        ring = (self.distances >= self._next) & (self.distances <= last)
        self._next = last + 1
        rows: list[int] = (np.flatnonzero(ring) + 1).tolist()
        return rows
