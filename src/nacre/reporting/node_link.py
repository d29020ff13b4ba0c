"""The graph as a picture: memories as discs, links as lines, laid out by forces, the same each time.

After T. Fruchterman and E. Reingold, "Graph drawing by force-directed placement", 1991, with a pull to the middle that
keeps parts together which nothing connects.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from nacre.graph.values import GraphMap, MapNode
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

Point = tuple[float, float]


def node_link(title: str, found: GraphMap, kinds: Sequence[str]) -> str:
    """The memories that have links; the most linked ones with their subjects, where there is room."""
    nodes = [one for one in found.nodes if one.degree]
    places = _spread(layout(len(nodes), [(one.source, one.target) for one in found.edges]))
    lines = [
        svg.line(*places[one.source], *places[one.target], "alike" if one.origin == "auto" else "link")
        for one in found.edges
    ]  # fmt: skip
    discs = [
        svg.circle(*places[at], _radius(one), colour(kinds.index(one.kind)), f"{one.subject}: {one.kind}, {one.degree}")
        for at, one in enumerate(nodes)
    ]
    return svg.drawing(title, WIDTH, _HEIGHT, *lines, *discs, *_names(nodes, places))


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
    """The subjects of the most linked memories, where no other one stands."""
    taken: list[tuple[float, float, float]] = []
    drawn = []
    for node, (x, y) in list(zip(nodes, places, strict=True))[:_NAMED]:
        name = shorten(node.subject, _NAME_CHARACTERS)
        wide = _CHARACTER * sum(1 if one.isascii() else 2 for one in name)
        is_left = x + _radius(node) + wide > WIDTH
        start = x - _radius(node) - 4 - wide if is_left else x + _radius(node) + 4
        if any(abs(y - other) < 14 and start < end and left < start + wide for left, other, end in taken):
            continue
        taken.append((start, y, start + wide))
        drawn.append(svg.label(start, y + 4, name, "name"))
    return drawn
