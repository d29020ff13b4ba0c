"""A capacity model of a cluster, from a few measurements and assumptions on use.

It has only sums, products and roots. ``docs/cluster.md`` gives the sources of the numbers, and compares the model with
independent measurements.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

_DAY = 86_400
_HOUR = 3_600
_GB = 1 << 30


@dataclass(frozen=True, slots=True)
class Measured:
    """Milliseconds of one core, and bytes; ``docs/cluster.md`` describes the measurement.

    A request costs ``api_ms`` in nacre, and in PostgreSQL ``server_ms`` plus ``root_ms`` times the square root of the
    number of turns in its space. If the space is not among the last 32 used by a process, it costs ``opening_ms`` more.
    A turn costs ``turn_ms`` to store and embed. On disk a turn takes ``turn_bytes`` with its vectors and indexes, and
    the words of a space ``word_bytes`` times the square root of its turns (Heaps 1978).
    """

    api_ms: float = 25.0
    server_ms: float = 36.7
    root_ms: float = 0.2635
    opening_ms: float = 13.0
    turn_ms: float = 8.0
    turn_bytes: float = 1_955.0
    word_bytes: float = 55_600.0

    def alone_ms(self, turns: float, at: tuple[float, float] = (1_000, 50.0)) -> float:
        """Return the duration of one recall on an idle machine, from a measurement ``at`` (turns, milliseconds)."""
        return at[1] + self.root_ms * (math.sqrt(turns) - math.sqrt(at[0]))

    def request_ms(self, turns: float) -> float:
        """Return the cost of a request on an open space."""
        return self.api_ms + self.server_ms + self.root_ms * math.sqrt(turns)

    def disk(self, turns: float) -> float:
        """Return the bytes of a space."""
        return self.turn_bytes * turns + self.word_bytes * math.sqrt(turns)


@dataclass(frozen=True, slots=True)
class Use:
    """One person's use: ``turns`` and ``requests`` on a workday, and workdays (``days``) a year. ``busiest`` is the
    share of a day's requests in its busiest hour. Turns are searchable for ``hot`` years and stored for ``years``."""

    turns: float = 300
    requests: float = 60
    days: float = 230
    busiest: float = 0.15
    hot: float = 1
    years: float = 5


@dataclass(frozen=True, slots=True)
class Prices:
    """US dollars a month: for a core with 4 GB, a GB of fast disk, and a GB of object storage."""

    core: float = 25.0
    disk_gb: float = 0.10
    object_gb: float = 0.02


@dataclass(frozen=True, slots=True)
class Needs:
    """Resources including copies. ``per_second`` are requests in the busiest hour; ``usd`` is per month."""

    people: int
    per_second: float
    api_cores: int
    server_cores: int
    worker_cores: int
    nodes: int
    memory_gb: float
    disk_gb: float
    objects_gb: float
    usd: float


LOADED = 0.5
"""Maximum load of the cores in the busiest hour, so that a node may fail and no queue builds up."""

COPIES = 2
"""Copies of PostgreSQL's data: a node and its replica."""

IN_MEMORY = 0.1
"""Share of the rows that must be in memory: indexes of active users. Assumed, not measured."""

NODE_CORES, NODE_MEMORY_GB, NODE_DISK_GB = 32, 256, 4_096


def needs(people: int, measured: Measured, use: Use, prices: Prices) -> Needs:
    """Return the resources for this number of people after ``use.years``."""
    hot = use.turns * use.days * use.hot
    kept = use.turns * use.days * use.years
    per_second = people * use.requests * use.busiest / _HOUR
    api = per_second * measured.api_ms / 1000 / LOADED
    server = (
        per_second
        * (measured.request_ms(hot) - measured.api_ms + measured.opening_ms)
        / 1000
        / LOADED
    )
    worker = people * use.turns * measured.turn_ms / 1000 / _DAY / LOADED
    disk = people * measured.disk(hot) / _GB
    objects = people * measured.turn_bytes * (kept - hot) / _GB
    memory = IN_MEMORY * disk
    nodes = max(
        1, math.ceil(max(server / NODE_CORES, memory / NODE_MEMORY_GB, disk / NODE_DISK_GB))
    )
    cores = api + worker + COPIES * max(server, memory / 4)
    return Needs(
        people=people,
        per_second=per_second,
        api_cores=math.ceil(api),
        server_cores=math.ceil(COPIES * server),
        worker_cores=math.ceil(worker),
        nodes=COPIES * nodes,
        memory_gb=COPIES * memory,
        disk_gb=COPIES * disk,
        objects_gb=objects,
        usd=prices.core * cores + prices.disk_gb * COPIES * disk + prices.object_gb * objects,
    )
