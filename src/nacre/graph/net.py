"""The graph of active memories and their links, with memories as numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TypeVar

from nacre.home.home import Home
from nacre.values.memory import Memory

T = TypeVar("T")


class Net:
    """Memories by number, in a stable order, and the links between them.

    ``links`` lead from one number to another, one for each link that there is; ``neighbours`` are each other memory
    once, in whichever direction.
    """

    def __init__(self, ids: Sequence[str], links: Sequence[tuple[int, int]]) -> None:
        self.ids = ids
        self.links = links

    @cached_property
    def degrees(self) -> list[int]:
        """The number of links of each memory."""
        found = [0] * len(self.ids)
        for source, target in self.links:
            found[source] += 1
            found[target] += 1
        return found

    @cached_property
    def neighbours(self) -> list[list[int]]:
        """The memories that each one is linked with."""
        found: list[set[int]] = [set() for _ in self.ids]
        for source, target in self.links:
            found[source].add(target)
            found[target].add(source)
        return [sorted(one) for one in found]

    @cached_property
    def linked(self) -> list[int]:
        """The memories with any link."""
        return [at for at, degree in enumerate(self.degrees) if degree]

    @cached_property
    def components(self) -> list[list[int]]:
        """The connected components, the largest first; memories without a link are in none."""
        left = set(self.linked)
        found = []
        for at in self.linked:
            if at in left:
                reached, waiting = {at}, [at]
                while waiting:
                    new = set(self.neighbours[waiting.pop()]) - reached
                    reached |= new
                    waiting += new
                left -= reached
                found.append(sorted(reached))
        return sorted(found, key=lambda one: (-len(one), one))

    def most_linked(self, among: Iterable[int], limit: int) -> list[int]:
        """Those of some memories with the most links; of even ones, the older."""
        return sorted(among, key=lambda at: (-self.degrees[at], at))[:limit]


def cached(home: Home, asked: object, kind: type[T], analyse: Callable[[], T]) -> T:
    """An analysis of a kind, as it was kept if nothing was written since, today; else made anew and kept."""
    key = (kind, asked, home.memories.snapshot(), home.links.state(), home.today())
    known = home.analyses.get(key)
    if isinstance(known, kind):
        return known
    found = analyse()
    home.analyses.put(key, found)
    return found


def net_of(home: Home, project: str | None) -> Net:
    """The graph of all active memories, or of those of one project, with the links that hold today."""
    ids = home.links.nodes(project)
    places = {name: at for at, name in enumerate(ids)}
    found = home.links.between(home.today(), project)
    return Net(ids, [(places[source], places[target]) for source, target, _ in found])


def memories_of(home: Home, net: Net, places: Iterable[int]) -> dict[int, Memory]:
    """The memories of some nodes, by number."""
    wanted = {net.ids[at]: at for at in places}
    return {wanted[one.id]: one for one in home.memories.in_any_state(list(wanted))}
