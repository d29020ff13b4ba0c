"""The nodes at the ends of links, as they are shown."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date

from nacre.graph.values import LinkLine, Node
from nacre.home.home import Home
from nacre.storage.database import Row
from nacre.storage.links import Edge
from nacre.values.memory import Kind, Validity
from nacre.values.session import Trust

CODE = "code:"
"""Prefix of the id of a symbol of code."""


def nodes_of(home: Home, ids: Collection[str]) -> Mapping[str, Node]:
    """The nodes by id; unknown ids get a node of their own."""
    known = {row[0]: _node(row) for row in home.links.ends(ids)}
    return {one: known.get(one) or _unknown(one) for one in ids}


def _node(row: Row) -> Node:
    name, subject, kind, project, is_superseded, is_retired, trust = row
    state = "retired" if is_retired else "superseded" if is_superseded else "active"
    return Node(name, subject, Kind(kind), project, state, trust == Trust.TRUSTED)


def _unknown(name: str) -> Node:
    return Node(name, state="code" if name.startswith(CODE) else "unknown")


def lines_of(home: Home, edges: Sequence[Edge], day: date) -> tuple[LinkLine, ...]:
    """Links with both nodes, and whether they are valid on a day."""
    nodes = nodes_of(home, {end for one in edges for end in (one.source, one.target)})
    return tuple(
        LinkLine(
            nodes[one.source], one.rel, nodes[one.target], one.origin, one.strength, one.valid, one.reason,
            holds_on(one.valid, day),
        )
        for one in edges
    )  # fmt: skip


def holds_on(valid: Validity, day: date) -> bool:
    """Whether a link is valid on a day; the day of its end is excluded."""
    return (valid.since is None or valid.since <= day) and (valid.until is None or day < valid.until)
