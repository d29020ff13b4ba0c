"""What a cluster for many people takes: a model of a few numbers that were measured, and of what people do.

All is sums, products and roots that can be checked on paper. ``docs/cluster.md`` says where the numbers come
from, and holds the model against measurements that it was not made from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

_DAY = 86_400
_HOUR = 3_600
_GB = 1 << 30


@dataclass(frozen=True, slots=True)
class Measured:
    """Milliseconds of one core, and bytes; ``docs/cluster.md`` has the measurement.

    A request costs ``api_ms`` of nacre, and of PostgreSQL ``server_ms``, and ``root_ms`` times the root of the number
    of turns that its space holds; ``opening_ms`` more, of both together, where the space was not among the last 32 that
    a process was asked for. A turn costs ``turn_ms`` to store and embed. On disk a turn takes ``turn_bytes`` with its
    vectors and indexes, and the words of a space ``word_bytes`` times the root of its turns (they repeat: Heaps 1978).
    """

    api_ms: float = 25.0
    server_ms: float = 36.7
    root_ms: float = 0.2635
    opening_ms: float = 13.0
    turn_ms: float = 8.0
    turn_bytes: float = 1_955.0
    word_bytes: float = 55_600.0

    def alone_ms(self, turns: float, at: tuple[float, float] = (1_000, 50.0)) -> float:
        """How long one recall takes on a quiet machine: as long as ``at`` so many turns, and what the root adds."""
        return at[1] + self.root_ms * (math.sqrt(turns) - math.sqrt(at[0]))

    def request_ms(self, turns: float) -> float:
        """A request of one space that is open and holds so many turns."""
        return self.api_ms + self.server_ms + self.root_ms * math.sqrt(turns)

    def disk(self, turns: float) -> float:
        """Bytes of a space with so many turns."""
        return self.turn_bytes * turns + self.word_bytes * math.sqrt(turns)


@dataclass(frozen=True, slots=True)
class Use:
    """What one person does: ``turns`` and ``requests`` on a day of work, of which a year has ``days``. ``busiest`` is
    the part of a day's requests that comes in its busiest hour. Turns are searched for ``hot`` years and kept for
    ``years``."""

    turns: float = 300
    requests: float = 60
    days: float = 230
    busiest: float = 0.15
    hot: float = 1
    years: float = 5


@dataclass(frozen=True, slots=True)
class Prices:
    """US dollars a month: for a core with 4 GB, for a GB of disk that answers at once, for one of objects."""

    core: float = 25.0
    disk_gb: float = 0.10
    object_gb: float = 0.02


@dataclass(frozen=True, slots=True)
class Needs:
    """What so many people take, copies counted. ``per_second`` are requests in the busiest hour; ``usd`` a month."""

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
"""The part of the cores that the busiest hour takes: a node may fail, and nobody waits in a queue."""

COPIES = 2
"""Of what PostgreSQL holds: a node, and its replica that takes its place."""

IN_MEMORY = 0.1
"""The part of the rows that has to be in memory: indexes of those who are at work. Assumed, not measured."""

NODE_CORES, NODE_MEMORY_GB, NODE_DISK_GB = 32, 256, 4_096


def needs(people: int, measured: Measured, use: Use, prices: Prices) -> Needs:
    """What so many people take who have done so for ``use.years``."""
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
