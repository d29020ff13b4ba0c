"""What a cluster for many people takes: a model of few numbers that were measured, and of what people do.

Everything is a sum or a product that can be checked on paper; ``docs/cluster-growth.md`` says where the numbers come
from, and holds the model against a measurement that it was not made from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

DAY = 86_400
YEAR = 365
GB = 1 << 30


@dataclass(frozen=True, slots=True)
class Measured:
    """One core of the machine that was measured, in milliseconds; ``docs/cluster-growth.md`` has the measurement.

    A request costs ``api_ms`` of a process of nacre, and of PostgreSQL ``server_ms`` and ``server_ms_per_turn`` more
    for each turn that its space holds; where the space was not among the last 32 of that process ``opening_ms`` more,
    of both together. A turn costs ``turn_ms`` to store and embed, and takes ``turn_bytes`` with words, vectors and
    indexes; a space takes ``space_bytes`` before anything is in it.
    """

    api_ms: float
    server_ms: float
    server_ms_per_turn: float
    opening_ms: float
    turn_ms: float
    turn_bytes: float
    space_bytes: float

    def request_ms(self, turns: float) -> float:
        """A request of one space that is open and holds so many turns, in cores' milliseconds."""
        return self.api_ms + self.server_ms + self.server_ms_per_turn * turns

    def disk(self, spaces: float, turns: float) -> float:
        """Bytes of so many spaces with so many turns in all."""
        return spaces * self.space_bytes + turns * self.turn_bytes


@dataclass(frozen=True, slots=True)
class Use:
    """What one person does: ``turns`` and ``requests`` on a day of work, of which a year has ``days``. In the busiest
    hour a ``busiest`` part of a day's requests comes. Turns are kept ``years``, and searched of the last ``hot``."""

    turns: float
    requests: float
    days: float = 230
    busiest: float = 0.15
    years: float = 5
    hot: float = 1


@dataclass(frozen=True, slots=True)
class Prices:
    """US dollars a month, for a core with 4 GB, a GB of disk that answers at once, and one of objects."""

    core: float = 25.0
    disk_gb: float = 0.10
    object_gb: float = 0.02


@dataclass(frozen=True, slots=True)
class Row:
    """What so many people take. Sizes in GB, ``per_second`` are requests in the busiest hour; ``usd`` a month."""

    people: int
    per_second: float
    turns_per_second: float
    api_cores: int
    server_cores: int
    worker_cores: int
    nodes: int
    memory_gb: float
    disk_gb: float
    cold_gb: float
    usd: float


LOADED = 0.5
"""Cores are bought so that the busiest hour takes half of them: a node may fail, and p99 stays near p50."""

NODE_CORES = 32
NODE_DISK_GB = 4_096
COPIES = 2
"""Of what is on disk: the node and its replica."""

IN_MEMORY = 0.1
"""Of what is hot on disk: indexes of those who are at work."""


def sheet(people: int, measured: Measured, use: Use, prices: Prices) -> Row:
    """What so many people take whose memories are as old as ``use`` keeps turns."""
    hot_turns = use.turns * use.days * use.hot
    kept_turns = use.turns * use.days * use.years
    per_second = people * use.requests * use.busiest / 3600
    turns_per_second = people * use.turns * use.busiest / 3600
    api = per_second * (measured.api_ms + measured.opening_ms / 2) / 1000 / LOADED
    server = per_second * (measured.server_ms + measured.server_ms_per_turn * hot_turns + measured.opening_ms / 2)
    server = server / 1000 / LOADED
    worker = people * use.turns * measured.turn_ms / 1000 / DAY / LOADED
    disk = COPIES * measured.disk(people, people * hot_turns) / GB
    cold = measured.disk(0, people * (kept_turns - hot_turns)) / GB
    nodes = max(COPIES, COPIES * math.ceil(max(server / NODE_CORES, disk / COPIES / NODE_DISK_GB)))
    memory = IN_MEMORY * disk / COPIES
    cores = math.ceil(api) + max(COPIES * math.ceil(server), COPIES * memory / 4) + math.ceil(worker)
    usd = prices.core * cores
    usd += prices.disk_gb * disk + prices.object_gb * cold
    return Row(
        people, per_second, turns_per_second, math.ceil(api), math.ceil(server), math.ceil(worker), nodes, memory, disk,
        cold, usd,
    )  # fmt: skip
