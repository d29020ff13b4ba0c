"""Values about links and the graph of memories."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from nacre.values.memory import Kind, Memory, Validity
from nacre.values.review import Maturity


@dataclass(frozen=True, slots=True)
class Node:
    """A node at an end of a link. ``state``: ``active``, ``superseded``, ``retired``, ``code`` or ``unknown``.

    ``subject`` is ``None`` if it is unknown.
    """

    id: str
    subject: str | None = None
    kind: Kind | None = None
    project: str | None = None
    state: str = "active"
    trusted: bool = True


@dataclass(frozen=True, slots=True)
class LinkLine:
    """A link with both of its ends. ``holds`` says that it does on the day that was asked about."""

    source: Node
    rel: str
    target: Node
    origin: str
    strength: float
    valid: Validity
    reason: str | None = None
    holds: bool = True


@dataclass(frozen=True, slots=True)
class LinkPage:
    """Some links, of ``total``."""

    links: tuple[LinkLine, ...]
    total: int


@dataclass(frozen=True, slots=True)
class LinkChange:
    """The result of changing links: the numbers of new, changed and removed ones; ``links`` as they are now.

    ``waiting`` are the memories of the owner whose links an agent wants changed: that waits for review.
    """

    links: tuple[LinkLine, ...] = ()
    made: int = 0
    changed: int = 0
    removed: int = 0
    waiting: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Hop:
    """A link on the way from a memory: from the node at ``parent`` (its place among the nodes) to the one at ``child``.

    ``is_again`` says that the child was reached before, by as short a way.
    """

    parent: int
    child: int
    rel: str
    is_outgoing: bool
    origin: str
    strength: float
    valid: Validity
    reason: str | None = None
    is_again: bool = False


@dataclass(frozen=True, slots=True)
class Companion:
    """A memory that was used together with another: how strongly (0 to 1), in how many sessions. It is no link."""

    node: Node
    weight: float
    sessions: int


@dataclass(frozen=True, slots=True)
class Traversal:
    """What a memory, the first of the ``nodes``, is linked with. ``more``: nodes beyond the limit were left out.

    ``together`` are the memories that it was used together with, the closest first.
    """

    nodes: tuple[Node, ...]
    hops: tuple[Hop, ...]
    more: bool = False
    together: tuple[Companion, ...] = ()


@dataclass(frozen=True, slots=True)
class CentralMemory:
    """A memory and how many links it has (``degree``)."""

    memory: Memory
    degree: int


@dataclass(frozen=True, slots=True)
class Central:
    """The memories with the most links, of ``memories`` and ``links`` in all."""

    found: tuple[CentralMemory, ...]
    memories: int
    links: int


@dataclass(frozen=True, slots=True)
class Gap:
    """A memory with one link at most. ``idle_days``: since it was last recalled, or stored."""

    memory: Memory
    degree: int
    maturity: Maturity
    idle_days: int


@dataclass(frozen=True, slots=True)
class Gaps:
    """Memories with one link at most, the proven first, of ``total``; ``unlinked`` of them have none."""

    found: tuple[Gap, ...]
    total: int
    unlinked: int


@dataclass(frozen=True, slots=True)
class Component:
    """A connected component: the numbers of memories and links, and its most linked memories."""

    size: int
    links: int
    central: tuple[Memory, ...]


@dataclass(frozen=True, slots=True)
class Components:
    """The largest components, of ``total``; ``alone`` memories have no link."""

    found: tuple[Component, ...]
    total: int
    alone: int


@dataclass(frozen=True, slots=True)
class MapNode:
    """A memory to be drawn: how many links it has among all that were meant (``degree``), and since when it holds."""

    id: str
    subject: str
    kind: Kind
    project: str | None
    importance: int
    degree: int
    state: str
    trusted: bool
    valid_from: date


@dataclass(frozen=True, slots=True)
class MapEdge:
    """A link between the nodes at two places; ``origin`` is ``auto`` for likeness."""

    source: int
    target: int
    rel: str
    strength: float
    valid: Validity
    origin: str


@dataclass(frozen=True, slots=True)
class GraphMap:
    """The most linked memories, and the links between them, of ``memories`` and ``links`` in all."""

    nodes: tuple[MapNode, ...]
    edges: tuple[MapEdge, ...]
    memories: int
    links: int


@dataclass(frozen=True, slots=True)
class Brief:
    """A summary: counts, the most linked memories, active projects, the latest decisions; ``text`` has it in words.

    ``gaps`` have one link at most, ``unlinked`` none; ``stale`` may be out of date, as was found last.
    """

    text: str
    memories: int
    links: int
    alike: int
    projects: int
    components: int
    gaps: int
    unlinked: int
    todos: int
    stale: int
    central: tuple[CentralMemory, ...] = ()
    active_projects: tuple[str, ...] = ()
    decisions: tuple[Memory, ...] = ()
