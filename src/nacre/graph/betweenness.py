"""Betweenness, with numpy: Brandes' algorithm (2001), level by level.

From a sample of starts it is Brandes and Pich's estimate (2007). Decision 74 tells why no library of graphs does it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]


def betweenness(neighbours: Sequence[Sequence[int]], starts: Sequence[int]) -> list[float]:
    """For each node, the share of the shortest paths between two others that pass through it, from ``starts``.

    Starts are all nodes, or some of them.
    """
    nodes = len(neighbours)
    lengths = np.array([len(one) for one in neighbours], dtype=np.int64)
    first = np.concatenate(([0], np.cumsum(lengths)))
    ends = np.array([there for one in neighbours for there in one], dtype=np.int64)
    total = np.zeros(nodes)
    for start in starts:
        total += _from(start, first, lengths, ends)
    pairs = max(1, (nodes - 1) * (nodes - 2)) * len(starts) / max(1, nodes)
    return [float(one) for one in total / pairs]


def _from(start: int, first: Numbers, lengths: Numbers, ends: Numbers) -> Floats:
    """The dependency of one start on each node: breadth-first outwards, then shares summed inwards."""
    nodes = len(lengths)
    distance = np.full(nodes, -1)
    ways = np.zeros(nodes)
    distance[start], ways[start] = 0, 1
    ring = np.array([start])
    levels: list[tuple[Numbers, Numbers]] = []
    while ring.size:
        here, there = _edges_of(ring, first, lengths, ends)
        onward = distance[there] < 0
        here, there = here[onward], there[onward]
        distance[there] = len(levels) + 1
        ways += np.bincount(there, weights=ways[here], minlength=nodes)
        levels.append((here, there))
        ring = np.flatnonzero(distance == len(levels))
    passed = np.zeros(nodes)
    for here, there in reversed(levels):
        shares = ways[here] / ways[there] * (1 + passed[there])
        passed += np.bincount(here, weights=shares, minlength=nodes)
    passed[start] = 0
    return passed


def _edges_of(ring: Numbers, first: Numbers, lengths: Numbers, ends: Numbers) -> tuple[Numbers, Numbers]:
    """The edges that begin at some nodes, as arrays of sources and targets."""
    sizes = lengths[ring]
    offsets = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    places = np.repeat(first[ring] - offsets, sizes) + np.arange(sizes.sum())
    return np.repeat(ring, sizes), ends[places]
