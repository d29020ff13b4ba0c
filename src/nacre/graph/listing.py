"""List links, and follow them from one memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import date

from nacre.errors import NotFound
from nacre.graph.nodes import CODE, lines_of, nodes_of
from nacre.graph.requests import LinksRequest, TraverseRequest
from nacre.graph.values import Companion, Hop, LinkPage, Traversal
from nacre.home.home import Home
from nacre.memories.scan import catch_up
from nacre.memories.store import get
from nacre.memories.usage import today
from nacre.storage.links import Edge, EdgeFilter

_COMPANIONS = 10


def list_links(home: Home, asked: LinksRequest) -> LinkPage:
    """Links between memories that hold, or all at one memory; those of the newest memories first. Raises NotFound."""
    catch_up(home)
    day = asked.as_of or home.today()
    wanted = EdgeFilter(
        _named(home, asked.reference) if asked.reference else None, asked.relations, asked.origins,
        None if asked.ended else day, asked.project,
    )  # fmt: skip
    edges, total = home.links.page(wanted, limit=asked.limit, offset=asked.offset)
    return LinkPage(lines_of(home, edges, day), total)


def traverse(home: Home, asked: TraverseRequest) -> Traversal:
    """What a memory is linked with: each link once, each memory where it is reached first.

    Raises NotFound, Conflict.
    """
    catch_up(home)
    day = asked.as_of or home.today()
    walk = _Walk(_named(home, asked.reference), asked)
    ring: list[str] = [walk.names[0]]
    for _ in range(asked.depth):
        ring = walk.step(ring, _edges_at(home, ring, asked, day, walk))
        if not ring:
            break
    if len(walk.names) == 1 and walk.names[0].startswith(CODE) and not walk.hops:
        raise NotFound(f"nothing is known of {walk.names[0]!r}", hint="nacre graph ingest-code reads a repository")
    nodes = nodes_of(home, walk.names)
    together = _together(home, walk.names[0])
    return Traversal(tuple(nodes[name] for name in walk.names), tuple(walk.hops), walk.more, together)


def _together(home: Home, name: str) -> tuple[Companion, ...]:
    edges = home.co_recall.of([name], today(home))[:_COMPANIONS]
    nodes = nodes_of(home, {edge.other for edge in edges})
    return tuple(Companion(nodes[edge.other], edge.weight, edge.sessions) for edge in edges)


def _named(home: Home, reference: str) -> str:
    return reference if reference.startswith(CODE) else get(home, reference).id


def _edges_at(home: Home, ids: Collection[str], asked: TraverseRequest, day: date, walk: _Walk) -> list[Edge]:
    """The links at some nodes to follow, the strongest first; those between known nodes where no more may come."""
    among = walk.names if walk.more else None
    found = home.links.at(ids, day, walk.followed, among)
    wanted = [one for one in found if not asked.relations or one.rel in asked.relations]
    return sorted(wanted, key=lambda one: (-one.strength, one.rel, one.source, one.target))


class _Walk:
    """A breadth-first walk: the nodes reached, by distance, and the links between them."""

    def __init__(self, start: str, asked: TraverseRequest) -> None:
        self._asked = asked
        self._places = {start: 0}
        self._seen: set[tuple[str, str, str]] = set()
        self.names = [start]
        self.followed: set[str] = set()
        """Nodes whose links were all followed, whichever way they lead."""

        self.hops: list[Hop] = []
        self.more = False

    def step(self, ring: Sequence[str], edges: Sequence[Edge]) -> list[str]:
        """Follow links from a ring of nodes; returns the next ring."""
        first_new = len(self.names)
        members = set(ring)
        for edge in edges:
            if (edge.source, edge.rel, edge.target) in self._seen:
                continue
            if self._asked.direction != "inbound" and edge.source in members:
                self._follow(edge, edge.source, edge.target, is_outgoing=True)
            elif self._asked.direction != "outbound" and edge.target in members:
                self._follow(edge, edge.target, edge.source, is_outgoing=False)
        if self._asked.direction == "both":
            self.followed |= members
        return self.names[first_new:]

    def _follow(self, edge: Edge, here: str, there: str, *, is_outgoing: bool) -> None:
        is_again = there in self._places
        if not is_again and len(self.names) > self._asked.limit:
            self.more = True
            return
        self._seen.add((edge.source, edge.rel, edge.target))
        if not is_again:
            self._places[there] = len(self.names)
            self.names.append(there)
        self.hops.append(
            Hop(
                self._places[here], self._places[there], edge.rel, is_outgoing, edge.origin, edge.strength, edge.valid,
                edge.reason, is_again,
            )
        )  # fmt: skip
