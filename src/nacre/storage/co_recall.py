"""Memories that are used together: edges that grow with use and fade by the day (seed facts 1.2.4)."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from nacre.storage.database import Database, in_transaction

STEP = 0.1
FADE = 0.95
"""What is left of a weight on the next day (UTC)."""

LEAST = 0.05
"""An edge that fades below this is forgotten."""


@dataclass(frozen=True, slots=True)
class Edge:
    """Two memories that were used together: the weight now, 0 to 1, and in how many sessions."""

    memory: str
    other: str
    weight: float
    sessions: int


class CoRecall:
    """Reads and writes the edges. Days count from 1970, UTC."""

    def __init__(self, database: Database) -> None:
        self._db = database

    @in_transaction
    def join(self, newcomers: Sequence[str], others: Sequence[str], day: int) -> list[str]:
        """Pair newcomers with each other and with the others; returns the newcomers that are active.

        Each pair gets a step, up to 1.
        """
        active = self._active([*newcomers, *others])
        fresh = [memory for memory in newcomers if memory in active]
        known = [memory for memory in others if memory in active and memory not in newcomers]
        pairs = {_ordered(*pair) for pair in combinations(fresh, 2)}
        pairs |= {_ordered(one, other) for one in fresh for other in known}
        before = self._among([*fresh, *known])
        rows: list[dict[str, object]] = []
        for a, b in sorted(pairs):
            weight, since, sessions = before.get((a, b), (0.0, day, 0))
            weight = min(1.0, faded(weight, day - since) + STEP)
            since = max(since, day)
            until = since + _days_left(weight)
            rows.append({"a": a, "b": b, "weight": weight, "day": since, "until": until, "sessions": sessions + 1})
        self._db.run_many("upsert_edge", rows)
        return fresh

    def forget_faded(self, day: int) -> None:
        """Take out the edges that have faded by a day."""
        self._db.run("delete_faded_edges", day=day)

    def of(self, memory_ids: Sequence[str], day: int) -> list[Edge]:
        """The edges at some memories, from their side, to active ones; the strongest first."""
        found = self._db.all("list_edges_of", ids=json.dumps(list(memory_ids)), day=day)
        return _sorted([Edge(a, b, faded(weight, day - since), times) for a, b, weight, since, times in found])

    def strongest(self, day: int, limit: int) -> list[Edge]:
        """The strongest edges of all."""
        found = self._db.all("list_all_edges", day=day)
        return _sorted([Edge(a, b, faded(weight, day - since), times) for a, b, weight, since, times in found])[:limit]

    def _active(self, memory_ids: Sequence[str]) -> set[str]:
        return {memory for (memory,) in self._db.all("list_active_ids", ids=json.dumps(list(memory_ids)))}

    def _among(self, memory_ids: Sequence[str]) -> dict[tuple[str, str], tuple[float, int, int]]:
        found = self._db.all("list_edges_among", ids=json.dumps(list(memory_ids)))
        return {(a, b): (weight, day, sessions) for a, b, weight, day, sessions in found}


def faded(weight: float, days: int) -> float:
    """A weight after so many days."""
    return weight * FADE ** max(0, days)


def _days_left(weight: float) -> int:
    """The days after which a weight has fallen below the least."""
    return math.floor(math.log(weight / LEAST) / -math.log(FADE)) + 1


def _ordered(one: str, other: str) -> tuple[str, str]:
    return (one, other) if one < other else (other, one)


def _sorted(edges: list[Edge]) -> list[Edge]:
    return sorted(edges, key=lambda edge: (-edge.weight, edge.memory, edge.other))
