"""The graph as a picture needs it: memories by number, the most linked first, and the links between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import date

from nacre.graph.net import cached
from nacre.graph.requests import MapRequest
from nacre.graph.values import GraphMap, MapEdge, MapNode
from nacre.home.home import Home
from nacre.memories.scan import catch_up
from nacre.storage.database import Row
from nacre.storage.links import as_edge
from nacre.values.memory import Kind


def graph_map(home: Home, asked: MapRequest) -> GraphMap:
    """The memories with the most links, and the links between them; of even ones, first the more important.

    With ``as_of``, what was true on that day by what is known now, as recall has it.
    """
    catch_up(home)
    return cached(home, asked, GraphMap, lambda: _drawn(home, asked))


def _drawn(home: Home, asked: MapRequest) -> GraphMap:
    rows = {row[0]: row for row in home.links.map_nodes(asked.project, asked.kinds, asked.as_of)}
    day = asked.as_of or home.today()
    links = [
        link for link in home.links.map_links(day, asked.relations, alike=asked.alike)
        if link[0] in rows and link[2] in rows
    ]  # fmt: skip
    degrees = Counter(link[0] for link in links)
    degrees.update(link[2] for link in links)
    chosen = sorted(rows.values(), key=lambda row: (-degrees[row[0]], -row[4], row[0]))[: asked.limit]
    places = {row[0]: at for at, row in enumerate(chosen)}
    return GraphMap(
        tuple(_node(row, degrees[row[0]]) for row in chosen),
        tuple(_edge(link, places) for link in links if link[0] in places and link[2] in places),
        len(rows), len(links),
    )  # fmt: skip


def _node(row: Row, degree: int) -> MapNode:
    name, subject, kind, project, importance, is_superseded, is_trusted, began = row
    state = "superseded" if is_superseded else "active"
    return MapNode(
        name, subject, Kind(kind), project, importance, degree, state, bool(is_trusted), date.fromisoformat(began)
    )


def _edge(link: Row, places: Mapping[str, int]) -> MapEdge:
    found = as_edge(link)
    return MapEdge(
        places[found.source], places[found.target], found.rel, found.strength, found.valid, found.origin
    )  # fmt: skip
