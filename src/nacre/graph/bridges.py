"""Memories that hold groups of others together.

Betweenness says how many shortest ways lead over a memory. It counts as a bridge where others fall apart without it:
the two largest groups are told. Where they still hang together, but two of its neighbours are further from each other
than over it, the groups are what is nearer to the one, and to the other. A group has two memories at least.
"""

from __future__ import annotations

from random import Random

from nacre.errors import Unavailable
from nacre.graph.net import Net, memories_of, net_of
from nacre.graph.requests import AnalysisRequest
from nacre.graph.values import Bridge, Bridges, Side
from nacre.home.home import Home
from nacre.memories.scan import catch_up
from nacre.platform.distribution import install_hint
from nacre.platform.fast_dataclass import dataclass
from nacre.platform.lazy import load
from nacre.values.memory import Memory

MOST_EXACT = 2_000
"""Linked memories up to which paths are counted from each of them; beyond, from a sample."""

STARTS = 500
"""Size of the sample (decision 74 has its error)."""

_LEAST = 2
_TRIED = 4
"""Candidates tried for each bridge requested."""


@dataclass(frozen=True, slots=True)
class _Sides:
    first: tuple[int, ...]
    second: tuple[int, ...]
    detour: int | None


def bridges(home: Home, asked: AnalysisRequest) -> Bridges:
    """The memories that hold groups together, by betweenness. Raises Unavailable where numpy is missing."""
    catch_up(home)
    key = ("bridges", asked, home.memories.snapshot(), home.links.state(), home.now().date())
    known = home.analyses.get(key)
    if isinstance(known, Bridges):
        return known
    found = _bridges(home, net_of(home, asked.project), asked.limit)
    home.analyses.put(key, found)
    return found


def _bridges(home: Home, net: Net, limit: int) -> Bridges:
    nodes = net.linked
    starts = _starts(len(nodes))
    ranked = sorted(zip(nodes, _betweenness(net, starts), strict=True), key=lambda one: (-round(one[1], 9), one[0]))
    found: list[tuple[int, float, _Sides]] = []
    for at, share in ranked[: limit * _TRIED]:
        sides = _sides_of(net, at) if share > 0 and len(found) < limit else None
        if sides:
            found.append((at, share, sides))
    named = {at: _named(net, sides) for at, _, sides in found}
    memories = memories_of(home, net, {one for at in named for one in (at, *named[at])})
    built = [_bridge(memories, at, share, sides, named[at]) for at, share, sides in found]
    return Bridges(tuple(built), len(nodes), len(starts) if len(starts) < len(nodes) else None)


def _starts(nodes: int) -> list[int]:
    """The memories from which paths are counted: all or, of many, a fixed sample."""
    if nodes <= MOST_EXACT:
        return list(range(nodes))
    return sorted(Random(nodes).sample(range(nodes), STARTS))  # noqa: S311 - no secret depends on it


def _betweenness(net: Net, starts: list[int]) -> list[float]:
    places = {at: number for number, at in enumerate(net.linked)}
    neighbours = [[places[there] for there in net.neighbours[at]] for at in net.linked]
    try:
        measure = load("nacre.graph.betweenness:betweenness")  # numpy takes 100 ms
    except ModuleNotFoundError as error:
        raise Unavailable(f"{error.name} is not installed", hint=install_hint("full")) from error
    shares: list[float] = measure(neighbours, starts) if starts else []
    return shares


def _bridge(
    memories: dict[int, Memory], at: int, share: float, sides: _Sides, named: tuple[int, int]
) -> Bridge:  # fmt: skip
    first, second = (
        Side(len(group), memories[name]) for group, name in zip((sides.first, sides.second), named, strict=True)
    )
    return Bridge(memories[at], share, (first, second), sides.detour)


def _named(net: Net, sides: _Sides) -> tuple[int, int]:
    return net.most_linked(sides.first)[0], net.most_linked(sides.second)[0]


def _sides_of(net: Net, bridge: int) -> _Sides | None:
    """The groups that a memory connects; ``None`` if there are none, or if another path is as short."""
    groups: list[dict[int, int]] = []
    for at in net.most_linked(net.neighbours[bridge], len(net.ids)):
        if not any(at in group for group in groups):
            groups.append(net.distances([at], without=bridge))
    groups = sorted((one for one in groups if len(one) >= _LEAST), key=len, reverse=True)
    if len(groups) > 1:
        return _Sides(tuple(groups[0]), tuple(groups[1]), None)
    return _around(net, bridge, groups[0]) if groups else None


def _around(net: Net, bridge: int, away: dict[int, int]) -> _Sides | None:
    """The groups that are connected without a memory, too, but by a longer way.

    ``away`` are the distances from the most linked of its neighbours in a group that holds together without it.
    """
    start = next(iter(away))
    among = [at for at in net.neighbours[bridge] if at in away]
    far = max(among, key=lambda at: (away[at], net.degrees[at], -at))
    if away[far] <= 2:
        return None
    back = net.distances([far], without=bridge)
    first = tuple(at for at, distance in away.items() if distance <= back[at])
    second = tuple(at for at, distance in away.items() if distance > back[at])
    return _Sides(first, second, away[far]) if start != far and min(len(first), len(second)) >= _LEAST else None
