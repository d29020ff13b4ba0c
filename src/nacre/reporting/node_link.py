"""The graph as a picture: memories as discs, links as lines, laid out by forces, the same each time.

After T. Fruchterman and E. Reingold, "Graph drawing by force-directed placement", 1991, with a pull to the middle that
keeps parts together which nothing connects.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from nacre.graph.values import GraphMap, MapEdge, MapNode
from nacre.reporting import svg
from nacre.reporting.charts import WIDTH, colour
from nacre.text.passages import shorten

_HEIGHT = 620
_MARGIN = 44
_ROUNDS = 90
_WARM = 0.12
_PULL = 0.6
_GOLDEN = math.pi * (3 - math.sqrt(5))
_NAMED = 40
_NAME_CHARACTERS = 30
_CHARACTER = 6.2
_LINE = 14.0

Point = tuple[float, float]


def node_link(title: str, nodes: Sequence[MapNode], edges: Sequence[MapEdge], kinds: Sequence[str]) -> str:
    """Memories and their links; the most linked ones, which come first, with their subjects where there is room."""
    places = _spread(layout(len(nodes), [(one.source, one.target) for one in edges]))
    lines = [
        svg.line(*places[one.source], *places[one.target], "alike" if one.origin == "auto" else "link")
        for one in edges
    ]  # fmt: skip
    discs = [
        svg.circle(*places[at], _radius(one), colour(kinds.index(one.kind)), f"{one.subject}: {one.kind}, {one.degree}")
        for at, one in enumerate(nodes)
    ]
    return svg.drawing(title, WIDTH, _HEIGHT, *lines, *discs, *_names(nodes, places))


def linked_part(found: GraphMap, most: int) -> tuple[list[MapNode], list[MapEdge]]:
    """So many memories that have links among each other: from the most linked one on, what has most links to them.

    The most linked ones alone may have none: hubs are seldom linked with hubs.
    """
    neighbours: dict[int, list[int]] = {}
    for one in found.edges:
        neighbours.setdefault(one.source, []).append(one.target)
        neighbours.setdefault(one.target, []).append(one.source)
    chosen: dict[int, int] = {}
    bonds: Counter[int] = Counter()
    while len(chosen) < min(most, len(neighbours)):
        best = min(bonds, key=lambda at: (-bonds[at], at)) if bonds else min(neighbours.keys() - chosen.keys())
        bonds.pop(best, None)
        chosen[best] = 0
        bonds.update(at for at in neighbours[best] if at not in chosen)
    order = sorted(chosen)
    places = {at: place for place, at in enumerate(order)}
    edges = [one for one in found.edges if one.source in places and one.target in places]
    return [found.nodes[at] for at in order], [
        replace(one, source=places[one.source], target=places[one.target]) for one in edges
    ]


def layout(nodes: int, links: Sequence[tuple[int, int]]) -> list[Point]:
    """Where nodes lie in a plane, around 0: linked ones near each other, all apart. The same each time."""
    near = 1 / math.sqrt(max(1, nodes))
    turns = [(math.sqrt(at + 0.5) * near, at * _GOLDEN) for at in range(nodes)]
    places = [(away * math.cos(turn), away * math.sin(turn)) for away, turn in turns]
    for step in range(_ROUNDS):
        forces = _apart(places, near)
        _together(forces, places, links, near)
        warm = _WARM * (1 - step / _ROUNDS)
        places = [_moved(place, force, warm) for place, force in zip(places, forces, strict=True)]
    return places


def _apart(places: Sequence[Point], near: float) -> list[list[float]]:
    """Each pair pushes itself apart, the nearer the more; all are pulled to the middle."""
    forces = [[-_PULL * x, -_PULL * y] for x, y in places]
    for at, (x, y) in enumerate(places):
        force_x = force_y = 0.0
        for other in range(at + 1, len(places)):
            dx, dy = x - places[other][0], y - places[other][1]
            push = near * near / (dx * dx + dy * dy + 1e-9)
            dx, dy = dx * push, dy * push
            force_x += dx
            force_y += dy
            forces[other][0] -= dx
            forces[other][1] -= dy
        forces[at][0] += force_x
        forces[at][1] += force_y
    return forces


def _together(
    forces: list[list[float]], places: Sequence[Point], links: Sequence[tuple[int, int]], near: float
) -> None:
    """Each link pulls its ends together, the longer the more."""
    for source, target in links:
        dx, dy = places[source][0] - places[target][0], places[source][1] - places[target][1]
        pull = math.hypot(dx, dy) / near
        forces[source][0] -= dx * pull
        forces[source][1] -= dy * pull
        forces[target][0] += dx * pull
        forces[target][1] += dy * pull


def _moved(place: Point, force: Sequence[float], warm: float) -> Point:
    length = math.hypot(*force) or 1.0
    share = min(length, warm) / length
    return place[0] + force[0] * share, place[1] + force[1] * share


def _spread(places: Sequence[Point]) -> list[Point]:
    """Over the whole picture."""
    spans = []
    for axis, room in ((0, WIDTH), (1, _HEIGHT)):
        values = [place[axis] for place in places] or [0.0]
        least, wide = min(values), (max(values) - min(values)) or 1.0
        spans.append((least, (room - 2 * _MARGIN) / wide))
    (left, wide), (top, high) = spans
    return [(_MARGIN + (x - left) * wide, _MARGIN + (y - top) * high) for x, y in places]


def _radius(node: MapNode) -> float:
    return min(16.0, 4 + 1.6 * math.sqrt(node.degree))


def _names(nodes: Sequence[MapNode], places: Sequence[Point]) -> list[str]:
    """The subjects of the most linked memories, where nothing else stands."""
    taken = [
        (x - _radius(one), y, x + _radius(one)) for one, (x, y) in zip(nodes, places, strict=True)
    ]  # fmt: skip
    drawn = []
    for at, (node, (x, y)) in enumerate(list(zip(nodes, places, strict=True))[:_NAMED]):
        name = shorten(node.subject, _NAME_CHARACTERS)
        wide = _CHARACTER * sum(1 if one.isascii() else 2 for one in name)
        away, others = _radius(node) + 4, taken[:at] + taken[at + 1 :]
        beside = ((x + away, y), (x - away - wide, y), (x - wide / 2, y - away - 5), (x - wide / 2, y + away + 5))
        for left, middle in beside:
            if left >= 0 and left + wide <= WIDTH and not _is_taken(others, left, middle, left + wide):
                taken.append((left, middle, left + wide))
                drawn.append(svg.label(left, middle + 4, name, "name"))
                break
    return drawn


def _is_taken(taken: Sequence[tuple[float, float, float]], start: float, y: float, end: float) -> bool:
    return any(abs(y - other) < _LINE and start < right and left < end for left, other, right in taken)
