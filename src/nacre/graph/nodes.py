"""Ends of links, as they are shown."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date

from nacre.graph.values import LinkLine, Node
from nacre.home.home import Home
from nacre.storage.links import Edge
from nacre.storage.sqlite.database import Row
from nacre.values.memory import Kind, Validity
from nacre.values.session import Trust

CODE = "code:"
"""What the name of a symbol of code begins with."""


def nodes_of(home: Home, ids: Collection[str]) -> Mapping[str, Node]:
    """The nodes of some ids."""
    known = {row[0]: _node(row) for row in home.links.ends(ids)}
    return {one: known.get(one) or _unknown(one) for one in ids}


def _node(row: Row) -> Node:
    name, subject, kind, project, is_superseded, is_retired, trust = row
    state = "retired" if is_retired else "superseded" if is_superseded else "active"
    return Node(name, subject, Kind(kind), project, state, trust == Trust.TRUSTED)


def _unknown(name: str) -> Node:
    return Node(name, state="code" if name.startswith(CODE) else "unknown")


def lines_of(home: Home, edges: Sequence[Edge], day: date) -> tuple[LinkLine, ...]:
    """Links with both of their ends, and whether they hold on a day."""
    nodes = nodes_of(home, {end for one in edges for end in (one.source, one.target)})
    return tuple(
        LinkLine(
            nodes[one.source], one.rel, nodes[one.target], one.origin, one.strength, one.valid, one.reason,
            holds_on(one.valid, day),
        )
        for one in edges
    )  # fmt: skip


def holds_on(valid: Validity, day: date) -> bool:
    """Whether a link holds on a day: on that of its end it holds no more."""
    return (valid.since is None or valid.since <= day) and (valid.until is None or day < valid.until)
