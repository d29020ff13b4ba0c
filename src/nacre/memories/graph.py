"""Links between memories: requests, changes, traversal, analyses, the map and the brief.

Analyses use a graph of active memories in which each memory is a number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, timedelta
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Literal, TypeVar

from nacre.base.bounds import bounds
from nacre.base.frozen import frozen
from nacre.base.request import Request
from nacre.base.text import count, one_line, shorten
from nacre.errors import ConflictError, InvalidInputError, NacreError, NotFoundError
from nacre.home import location, operations
from nacre.home.change import BATCH, Change
from nacre.home.home import Home
from nacre.memories import edit, store
from nacre.memories import usage as memories_usage
from nacre.memories.decision import wish
from nacre.memories.judge import CONTRADICTS, SUPERSEDES, reconcile
from nacre.operations import operation
from nacre.store import schema
from nacre.store.memories import ALIKE, IN_BODY, EdgeFilter, StoredLink, as_edge
from nacre.values.fields import Offset, OnlyProject, Reference
from nacre.values.memory import USUAL_STRENGTH, Kind, Link, Memory, Validity
from nacre.values.recall import Filter
from nacre.values.review import Maturity
from nacre.values.session import Trust

T = TypeVar("T")


class Net:
    """A graph of memories, numbered in a stable order.

    ``links``: one (source, target) pair per link. ``neighbours``: memories linked in either
    direction, each listed once.
    """

    def __init__(self, ids: Sequence[str], links: Sequence[tuple[int, int]]) -> None:
        self.ids = ids
        self.links = links

    @cached_property
    def degrees(self) -> list[int]:
        """The number of links of each memory."""
        degrees = [0] * len(self.ids)
        for source, target in self.links:
            degrees[source] += 1
            degrees[target] += 1
        return degrees

    @cached_property
    def neighbours(self) -> list[list[int]]:
        """The memories linked with each memory, in ascending order."""
        neighbours: list[set[int]] = [set() for _ in self.ids]
        for source, target in self.links:
            neighbours[source].add(target)
            neighbours[target].add(source)
        return [sorted(others) for others in neighbours]

    @cached_property
    def linked(self) -> list[int]:
        """The memories with at least one link."""
        return [at for at, degree in enumerate(self.degrees) if degree]

    @cached_property
    def components(self) -> list[list[int]]:
        """The connected components, largest first. Memories without links are omitted."""
        unvisited = set(self.linked)
        components = []
        for start in self.linked:
            if start in unvisited:
                members, stack = {start}, [start]
                while stack:
                    new = set(self.neighbours[stack.pop()]) - members
                    members |= new
                    stack += new
                unvisited -= members
                components.append(sorted(members))
        return sorted(components, key=lambda members: (-len(members), members))


def cached(home: Home, request: object, kind: type[T], analyse: Callable[[], T]) -> T:
    """Return the analysis for a request from today's cache, or compute and cache it.

    A write to memories or links invalidates the cache.
    """
    key = (kind, request, home.memories.snapshot(), home.links.state(), home.today())
    hit = home.analyses.get(key)
    if isinstance(hit, kind):
        return hit
    result = analyse()
    home.analyses.put(key, result)
    return result


def net_of(home: Home, project: str | None) -> Net:
    """Return the graph of active memories, optionally of one project, with links valid today."""
    ids = home.links.nodes(project)
    places = {name: at for at, name in enumerate(ids)}
    edges = home.links.between(home.today(), project)
    return Net(ids, [(places[source], places[target]) for source, target, _ in edges])


def memories_of(home: Home, net: Net, places: Iterable[int]) -> dict[int, Memory]:
    """Return the memories with these numbers in the graph, keyed by number."""
    numbers = {net.ids[at]: at for at in places}
    return {numbers[memory.id]: memory for memory in home.memories.in_any_state(list(numbers))}


# -- Requests ------------------------------------------------------------------


MOST_LINKS = 1000
"""Maximum number of links in one request."""


class Relation(StrEnum):
    """How the source of a link relates to the target.

    ``calls``, ``imports`` and ``inherits`` connect symbols of code. Memory files may contain other
    relations.
    """

    RELATED_TO = "related_to"
    SUPERSEDES = "supersedes"
    DEPENDS_ON = "depends_on"
    CONTRADICTS = "contradicts"
    SPECIALIZES = "specializes"
    PART_OF = "part_of"
    ALTERNATIVE_TO = "alternative_to"
    BUILDS_ON = "builds_on"
    ELABORATES = "elaborates"
    CALLS = "calls"
    IMPORTS = "imports"
    INHERITS = "inherits"


Way = Literal["both", "outbound", "inbound"]
Day = Annotated[date | None, bounds("The links as they were on that day; default: today.")]
Relations = Annotated[tuple[str, ...], bounds("Only these relations.")]
Origin = (
    Annotated[
        str,
        bounds(
            "The origin: a word by which such links can be listed and removed.",
            pattern="^[a-z][a-z-]{0,39}$",
        ),
    ]
    | None
)
Limit = Annotated[int, bounds("Maximum number of items.", ge=1, le=1000)]


class NewLink(Request):
    """A link to create. An existing link with the same ends and relation is updated."""

    source: Reference
    relation: Annotated[Relation, bounds("How the source relates to the target.")]
    target: Annotated[
        str, bounds("The other memory, or a symbol of code: code:shop/src/cart.py#add.")
    ]
    strength: (
        Annotated[float, bounds("How strong the relation is, 0 to 1; default: .5.", ge=0, le=1)]
        | None
    ) = None
    since: Annotated[date | None, bounds("The first day on which the link holds.")] = None
    until: Annotated[date | None, bounds("The day from which the link no longer holds.")] = None
    reason: Annotated[str, bounds("The reason, in a few words.", max_length=500)] | None = None
    origin: Origin = None


AnyRelation = Annotated[
    str | None,
    bounds("The relation, as shown by nacre graph list; default: all relations."),
]
Target = Annotated[str, bounds("The memory at its other end.")]


class TraverseRequest(Request):
    """Follow the links of a memory."""

    reference: Annotated[str, bounds("The starting point: a memory, or a symbol of code.")]
    depth: Annotated[
        int, bounds("Maximum number of links from the starting point.", ge=1, le=10)
    ] = 2
    direction: Annotated[
        Way, bounds("outbound: follow links forwards only; inbound: backwards only.")
    ] = "both"
    relations: Relations = ()
    as_of: Day = None
    limit: Annotated[
        int, bounds("Maximum number of memories; the nearest are kept.", ge=1, le=1000)
    ] = 100


class MapRequest(Request):
    """Return memories and links for a map."""

    project: OnlyProject = None
    kinds: Annotated[tuple[Kind, ...], bounds("Only memories of these kinds.")] = ()
    relations: Relations = ()
    alike: Annotated[bool, bounds("Also similarity, which is computed.")] = False
    as_of: Annotated[
        date | None,
        bounds("Memories that held on that day, and their links then; default: today."),
    ] = None
    limit: Annotated[
        int,
        bounds("Maximum number of memories, those with most links first.", ge=1, le=5000),
    ] = 1000


# -- Results -------------------------------------------------------------------


@frozen
class Node:
    """A node at either end of a link.

    ``state`` is ``active``, ``superseded``, ``retired``, ``code`` or ``unknown``. ``subject`` is
    ``None`` if the node is unknown.
    """

    id: str
    subject: str | None = None
    kind: Kind | None = None
    project: str | None = None
    state: str = "active"
    trusted: bool = True


@frozen
class LinkLine:
    """A link with both of its nodes. ``holds``: True if the link is valid on the requested day."""

    source: Node
    rel: str
    target: Node
    origin: str
    strength: float
    valid: Validity
    reason: str | None = None
    holds: bool = True


@frozen
class LinkPage:
    """One page of links. ``total`` counts all matches."""

    links: tuple[LinkLine, ...]
    total: int


@frozen
class LinkChange:
    """The result of changing links: counts of new, changed and removed links, and the current ``links``.

    ``waiting`` contains the ids of the owner's memories for which an agent's changes are pending
    review.
    """

    links: tuple[LinkLine, ...] = ()
    made: int = 0
    changed: int = 0
    removed: int = 0
    waiting: tuple[str, ...] = ()


@frozen
class Hop:
    """A link that a traversal follows.

    ``parent``: index of the node from which the link is followed. ``child``: index of the node that
    the link reaches. ``is_again``: True if a path of the same length already reached the child.
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


@frozen
class Companion:
    """A memory that is often used with a given memory, without a link between them.

    ``weight`` is 0 to 1. ``sessions`` counts the sessions in which both were used.
    """

    node: Node
    weight: float
    sessions: int


@frozen
class Traversal:
    """The nodes and links that can be reached from a memory.

    ``nodes``: the memory itself, followed by the other nodes. ``more``: True if the limit excluded
    nodes. ``together``: memories that are used together with the memory.
    """

    nodes: tuple[Node, ...]
    hops: tuple[Hop, ...]
    more: bool = False
    together: tuple[Companion, ...] = ()


@frozen
class CentralMemory:
    """A memory and its number of links (``degree``)."""

    memory: Memory
    degree: int


@frozen
class Central:
    """The memories with the most links, and the total numbers of memories and links."""

    found: tuple[CentralMemory, ...]
    memories: int
    links: int


@frozen
class Gap:
    """A memory with at most one link.

    ``degree``: number of links. ``idle_days``: number of days since the last recall, or since the
    memory was stated.
    """

    memory: Memory
    degree: int
    maturity: Maturity
    idle_days: int


@frozen
class Gaps:
    """Memories with at most one link, proven memories first. ``unlinked`` counts memories without links."""

    found: tuple[Gap, ...]
    total: int
    unlinked: int


@frozen
class Component:
    """A connected component of the graph: its size and its most linked memories."""

    size: int
    links: int
    central: tuple[Memory, ...]


@frozen
class Components:
    """The largest components. ``total`` counts all components. ``alone`` counts memories without links."""

    found: tuple[Component, ...]
    total: int
    alone: int


@frozen
class MapNode:
    """A memory on the map. ``degree`` counts its links within the selection."""

    id: str
    subject: str
    kind: Kind
    project: str | None
    importance: int
    degree: int
    state: str
    trusted: bool
    valid_from: date


@frozen
class MapEdge:
    """A link between two nodes, given by index. ``origin`` is ``auto`` for computed similarity."""

    source: int
    target: int
    rel: str
    strength: float
    valid: Validity
    origin: str


@frozen
class GraphMap:
    """The most linked memories and the links between them.

    ``memories``, ``links``: total numbers, including what the map omits.
    """

    nodes: tuple[MapNode, ...]
    edges: tuple[MapEdge, ...]
    memories: int
    links: int


@frozen
class Brief:
    """A summary of all memories in numbers and in words.

    ``gaps``: number of memories with at most one link. ``unlinked``: number of memories without
    links. ``stale``: number of memories that the latest check marked as possibly outdated.
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


# -- Analyses ------------------------------------------------------------------
#
# No model is used, and results are deterministic. Only links that
# :meth:`nacre.store.memories.Links.count` counts are considered. Similarity is not a link, so a
# memory that is only similar to other memories is a gap.
#


GAP_LINKS = 1
"""Maximum number of links of a memory that counts as a gap."""

_SHORTLIST = 3
_RANKS = (Maturity.PROVEN, Maturity.ESTABLISHED, Maturity.CANDIDATE)


@operation("graph-central", by_key=True)
def central(home: Home, limit: Limit = 10, project: OnlyProject = None) -> Central:
    """Return the memories with the most links."""
    edit.catch_up(home)
    net = net_of(home, project)
    found = central_of(home, net, net.linked, limit)
    return Central(found, len(net.ids), len(net.links))


def central_of(home: Home, net: Net, among: Iterable[int], limit: int) -> tuple[CentralMemory, ...]:
    """Return the memories with the most links. Ties go to the older memory."""
    chosen = sorted(among, key=lambda at: (-net.degrees[at], at))[:limit]
    memories = memories_of(home, net, chosen)
    return tuple(CentralMemory(memories[at], net.degrees[at]) for at in chosen if at in memories)


@operation("graph-gaps", by_key=True)
def gaps(home: Home, limit: Limit = 10, project: OnlyProject = None) -> Gaps:
    """Return memories with at most one link.

    The memories are sorted by maturity, by number of links, and by use.
    """
    edit.catch_up(home)
    store.fold_usage(home)
    net = net_of(home, project)
    numbers = [at for at, degree in enumerate(net.degrees) if degree <= GAP_LINKS]
    known = home.usage.of([net.ids[at] for at in numbers])
    usage = {at: known[net.ids[at]] for at in numbers}
    rank = {at: memories_usage.maturity(used) for at, used in usage.items()}
    numbers.sort(
        key=lambda at: (_RANKS.index(rank[at]), net.degrees[at], -usage[at].access_count, at)
    )
    chosen = numbers[:limit]
    memories = memories_of(home, net, chosen)
    found = []
    for at in chosen:
        if memory := memories.get(at):
            last = max(memory.last_said, usage[at].last_recalled or memory.last_said)
            idle_days = max(0, (home.now() - last).days)
            found.append(Gap(memory, net.degrees[at], rank[at], idle_days))
    return Gaps(tuple(found), len(numbers), len(net.ids) - len(net.linked))


@operation("graph-components", by_key=True)
def components(home: Home, limit: Limit = 10, project: OnlyProject = None) -> Components:
    """Return the connected components, largest first, each with its most linked memories."""
    edit.catch_up(home)
    net = net_of(home, project)
    largest = tuple(
        Component(
            len(members),
            sum(net.degrees[at] for at in members) // 2,
            tuple(item.memory for item in central_of(home, net, members, _SHORTLIST)),
        )
        for members in net.components[:limit]
    )
    return Components(largest, len(net.components), len(net.ids) - len(net.linked))


# -- Brief ---------------------------------------------------------------------


RECENT = timedelta(days=30)
_RECENT_MEMORIES = 200
_CENTRAL_CANDIDATES = 20
"""Number of memories with the most links that the summary considers."""

_SUBJECT_CHARACTERS = 70


@operation("graph-brief", by_key=True)
def brief(home: Home, project: OnlyProject = None) -> Brief:
    """Return a summary of all memories in about 200 tokens.

    The daemon caches it until the next write, for at most 30 seconds.
    """
    edit.catch_up(home)
    return cached(home, project, Brief, lambda: _brief(home, project))


def _brief(home: Home, project: str | None) -> Brief:
    net = net_of(home, project)
    in_project = (project,) if project else ()
    since = home.now() - RECENT
    _, todos = store.list_active(
        home, Filter(kinds=(Kind.TODO,), projects=in_project, strict=True), limit=1
    )
    recent_decisions = Filter(
        kinds=(Kind.DECISION,),
        projects=in_project,
        strict=True,
        since=since,
        trusted=True,
        settled=True,
    )
    decisions, _ = store.list_active(home, recent_decisions, limit=_SHORTLIST)
    recent, _ = store.list_active(
        home, Filter(projects=in_project, strict=True, since=since), limit=_RECENT_MEMORIES
    )
    central = tuple(
        item
        for item in central_of(home, net, net.linked, _CENTRAL_CANDIDATES)
        if item.memory.is_vouched
    )[:_SHORTLIST]
    summary = Brief(
        "",
        len(net.ids),
        len(net.links),
        home.links.count_alike(project),
        1 if project else len(location.projects(home)),
        len(net.components),
        sum(degree <= GAP_LINKS for degree in net.degrees),
        len(net.ids) - len(net.linked),
        todos,
        len(home.memories.stale().keys() & set(net.ids)),
        central,
        tuple(dict.fromkeys(item.project for item in recent if item.project))[:_SHORTLIST],
        tuple(decisions),
    )
    return replace(summary, text=_in_words(summary, project))


def _in_words(brief: Brief, project: str | None) -> str:
    lines = [
        f"{count(brief.memories, 'memory', 'memories')} in {project or count(brief.projects, 'project')}, "
        f"{count(brief.links, 'link')} between them ({count(brief.alike, 'pair')} of similar memories). "
        f"{count(brief.components, 'group')} of linked memories, {brief.unlinked:,} memories without a link, "
        f"{brief.gaps:,} with at most one. {count(brief.todos, 'open todo')}, {brief.stale:,} possibly out of date."
    ]
    if brief.central:
        lines.append(
            "Most linked: "
            + "; ".join(f"{_short(item.memory)} ({item.degree})" for item in brief.central)
            + "."
        )
    if brief.active_projects and not project:
        lines.append(f"Active in the last 30 days: {', '.join(brief.active_projects)}.")
    if brief.decisions:
        lines.append("Recent decisions: " + "; ".join(map(_short, brief.decisions)) + ".")
    return "\n".join(lines)


def _short(memory: Memory) -> str:
    return f"{one_line(shorten(memory.subject, _SUBJECT_CHARACTERS))} [{memory.id[-8:]}]"


# -- Nodes ---------------------------------------------------------------------


CODE = "code:"
"""Id prefix of code symbols."""


def nodes_of(home: Home, ids: Collection[str]) -> Mapping[str, Node]:
    """Return the nodes by id. Unknown ids get a node with state ``unknown`` or ``code``."""
    nodes = {row[0]: _node(row) for row in home.links.ends(ids)}
    return {
        node_id: nodes.get(node_id)
        or Node(node_id, state="code" if node_id.startswith(CODE) else "unknown")
        for node_id in ids
    }


def _node(row: schema.Row) -> Node:
    name, subject, kind, project, is_superseded, is_retired, trust = row
    state = "retired" if is_retired else "superseded" if is_superseded else "active"
    return Node(name, subject, Kind(kind), project, state, trust == Trust.TRUSTED)


def lines_of(home: Home, edges: Sequence[StoredLink], day: date) -> tuple[LinkLine, ...]:
    """Return links with both nodes, and whether each link is valid on ``day``."""
    nodes = nodes_of(home, {end for edge in edges for end in (edge.source, edge.target)})
    return tuple(
        LinkLine(
            nodes[edge.source],
            edge.rel,
            nodes[edge.target],
            edge.origin,
            edge.strength,
            edge.valid,
            edge.reason,
            (edge.valid.since or day) <= day < (edge.valid.until or date.max),
        )
        for edge in edges
    )


# -- Changing links ------------------------------------------------------------
#
# A link is stored in the front matter of its source. ``supersedes`` is written on both sides.
# ``contradicts`` is a doubt that the owner settles in ``nacre review``. Links with these relations
# have no strength, end or origin.
#
# An agent can change links of memories that it stored. Its changes to the owner's memories are
# pending until reviewed.


MANUAL, AGENT, TOGETHER = "manual", "agent", "co-recall"
COMPUTED = (ALIKE, IN_BODY, TOGETHER)
"""Origins of links computed from texts and use.

Such links cannot be created manually, and they return after removal.
"""

_DECISIVE = (SUPERSEDES, CONTRADICTS)
_OF_CODE = (Relation.CALLS, Relation.IMPORTS, Relation.INHERITS)


_Stored = tuple[Memory, Link]
"""A memory, and a link in its front matter."""


@operation("graph-link", writes=True, by_key=True)
def link(
    home: Home,
    links: Annotated[
        tuple[NewLink, ...], bounds("The links.", min_length=1, max_length=MOST_LINKS)
    ],
) -> LinkChange:
    """Create links: all of them or none.

    Raises NotFoundError, ConflictError, InvalidInputError, EditConflictError, InvalidMemoryError.
    """
    edit.catch_up(home)
    with home.change("link") as change:
        requested = [
            _resolve_numbered(home, item, number, len(links))
            for number, item in enumerate(links, 1)
        ]
        allowed: list[_Stored] = []
        others: list[_Stored] = []
        for source, new in requested:
            present = (link for link in source.links if (link.rel, link.to) == (new.rel, new.to))
            may_change = _is_allowed(home, source, next(present, new))
            (allowed if may_change else others).append((source, new))
        change.describe(subject=operations.subject_of([source for source, _ in allowed or others]))
        with change.transaction():
            added, changed = _write_links(change, allowed)
        pending = _request_review(home, others, "linked")
        return LinkChange(_as_lines(home, requested), added, changed, waiting=pending)


@operation("graph-unlink", writes=True, by_key=True)
def unlink(
    home: Home,
    source: Reference,
    target: Target,
    relation: AnyRelation = None,
) -> LinkChange:
    """Remove links. A memory that was superseded only by a removed link is active again.

    Raises the same errors as :func:`link`.
    """
    edit.catch_up(home)
    with home.change("unlink") as change:
        holder, links = _find(home, source, target, relation)
        removed = [(holder, link) for link in links]
        if not all(_is_allowed(home, holder, link) for link in links):
            return LinkChange(
                _as_lines(home, removed), waiting=_request_review(home, removed, "removed the link")
            )
        change.describe(subject=holder.subject)
        shown = _as_lines(home, removed)
        with change.transaction():
            _write(change, holder, [item for item in holder.links if item not in links])
        return LinkChange(shown, removed=len(removed))


@operation("graph-invalidate", writes=True, by_key=True)
def invalidate(
    home: Home,
    source: Reference,
    target: Target,
    relation: AnyRelation = None,
    at: Annotated[date | None, bounds("The day on which the link ends; default: today.")] = None,
) -> LinkChange:
    """End links but keep them in the file. Raises the same errors as :func:`link`."""
    edit.catch_up(home)
    with home.change("invalidate") as change:
        holder, links = _find(home, source, target, relation)
        ended = []
        for link in links:
            if link.rel in _DECISIVE:
                raise ConflictError(f"{link.rel} links cannot have an end", hint=_REMEDY[link.rel])
            valid = replace(link.valid, until=at or home.today())
            _refuse_backwards(valid)
            ended.append((holder, replace(link, valid=valid)))
        if not all(_is_allowed(home, holder, link) for link in links):
            return LinkChange(
                _as_lines(home, ended), waiting=_request_review(home, ended, "removed the link")
            )
        change.describe(subject=holder.subject)
        with change.transaction():
            _, changed = _write_links(change, ended)
        return LinkChange(_as_lines(home, ended), changed=changed)


@operation("graph-unlink-origin", writes=True, owners=True, command="graph unlink --origin")
def unlink_origin(
    home: Home,
    origin: Annotated[str, bounds("The origin: manual, agent, reflect, import, …")],
    project: Annotated[str | None, bounds("Only those of memories of this project.")] = None,
) -> LinkChange:
    """Remove all links of an origin, except ``supersedes`` and ``contradicts``.

    Raises InvalidInputError, EditConflictError.
    """
    if origin in COMPUTED:
        raise InvalidInputError(
            f"links of origin {origin!r} are computed", hint="they would be created again"
        )
    edit.catch_up(home)
    removed = 0
    sources = home.links.of_origin(origin, project)
    with home.change("unlink", why=f"all of origin {origin}") as change:
        for start in range(0, len(sources), BATCH):
            with home.transaction():
                for memory in home.memories.in_any_state(sources[start : start + BATCH]):
                    remaining = [
                        link
                        for link in memory.links
                        if (link.origin or MANUAL) != origin or link.rel in _DECISIVE
                    ]
                    removed += len(memory.links) - len(remaining)
                    _write(change, memory, remaining)
    return LinkChange(removed=removed)


def _resolve_numbered(home: Home, request: NewLink, number: int, total: int) -> _Stored:
    """Return the link to write for a request. Errors contain the request's number."""
    try:
        source = store.get(home, request.source)
        target = _node_id(home, request.target)
        rel = request.relation.value
        if source.id == target:
            raise ConflictError(
                "a memory cannot be linked with itself", hint="give two different memories"
            )
        if source.retired:
            raise ConflictError(
                f"{source.subject!r} is retired", hint=f"nacre retire --restore {source.id[-8:]}"
            )
        if request.relation in _OF_CODE:
            raise InvalidInputError(
                f"{rel} links code symbols, not memories",
                hint="use depends_on or builds_on between memories",
            )
        if request.origin in COMPUTED:
            raise InvalidInputError(
                f"links of origin {request.origin!r} are computed", hint="leave out --origin"
            )
        valid = Validity(request.since, request.until)
        _refuse_backwards(valid)
        if rel in _DECISIVE:
            return _resolve_decisive(home, request, source, target)
        reason = home.redactor.clean(request.reason) if request.reason else None
        origin = AGENT if home.actor.is_agent else request.origin
        origin = None if origin == MANUAL else origin
        return source, Link(rel, target, reason, origin, request.strength, valid)
    except NacreError as error:
        if total > 1:
            error.args = (f"link {number} of {total}: {error.message}; no links were created",)
        raise


def _resolve_decisive(home: Home, request: NewLink, source: Memory, target: str) -> _Stored:
    """Return the ``supersedes`` or ``contradicts`` link for a request.

    The later of two contradicting memories stores the link.
    """
    if (request.strength, request.since, request.until) != (None, None, None):
        raise InvalidInputError(
            f"{request.relation} links have no strength and no end",
            hint="leave out strength and end",
        )
    other = home.memories.find(target)
    if other is None or not other.is_active or source.superseded_by:
        raise ConflictError(
            f"{request.relation} links need two active memories",
            hint="nacre show shows which one is retired or superseded",
        )
    if request.relation == CONTRADICTS and other.is_said_after(source):
        source, other = other, source
    reason = home.redactor.clean(request.reason) if request.reason else None
    return source, Link(request.relation.value, other.id, reason)


def _refuse_backwards(valid: Validity) -> None:
    if valid.since and valid.until and valid.until <= valid.since:
        raise InvalidInputError(
            f"a link that begins {valid.since} cannot end {valid.until}", hint="give a later end"
        )


_REMEDY = {
    SUPERSEDES: "nacre graph unlink removes it and restores the superseded memory",
    CONTRADICTS: "nacre review resolve settles it",
}


def _find(home: Home, start: str, target: str, relation: str | None) -> tuple[Memory, list[Link]]:
    """Return the links between two memories, and the memory that stores these links.

    If ``relation`` is ``None``, any relation and either direction match. Raises NotFoundError,
    ConflictError.
    """
    source = store.get(home, start)
    with suppress(NotFoundError):
        target = _node_id(home, target)
    ends = [(source, target)]
    if relation is None and (other := home.memories.find(target)):
        ends.append((other, source.id))
    for holder, to in ends:
        store.refuse_broken(home, holder)
        if matching := [
            link for link in holder.links if link.to == to and relation in (None, link.rel)
        ]:
            return holder, matching
    for edge in home.links.of(source.id):
        if target in (edge.source, edge.target) and relation in (None, edge.rel):
            raise _unchangeable(edge.origin, source)
    raise NotFoundError(
        f"{source.subject!r} does not have this link",
        hint=f"nacre graph list --of {source.id[-8:]} shows its links",
    )


def _unchangeable(origin: str, source: Memory) -> NacreError:
    if origin == IN_BODY:
        return ConflictError(
            "the memory's text contains that link: [[…]]",
            hint=f"nacre edit {source.id[-8:]} changes the text",
        )
    if origin == ALIKE:
        return ConflictError(
            "the memories are only similar, not linked", hint="similarity is computed"
        )
    return ConflictError("that link has the opposite direction", hint="swap the two memories")


def _is_allowed(home: Home, source: Memory, link: Link) -> bool:
    """Return True if the caller may change a link.

    Agents may change only links that an agent added to an agent's memory.
    """
    if not home.actor.is_agent:
        return True
    return link.origin == AGENT and not source.is_owners and link.rel not in _DECISIVE


def _request_review(home: Home, items: Sequence[_Stored], action: str) -> tuple[str, ...]:
    nodes = nodes_of(home, {link.to for _, link in items})
    for source, link in items:
        wish(home, [source], f"{action}: {link.rel} {nodes[link.to].subject or link.to}")
    return tuple(dict.fromkeys(source.id for source, _ in items))


def _write_links(change: Change, items: Sequence[_Stored]) -> tuple[int, int]:
    added = changed = 0
    for source in {source.id: source for source, _ in items}.values():
        store.refuse_broken(change.home, source)
        before = {(link.rel, link.to): link for link in source.links}
        new = (link for owner, link in items if owner.id == source.id)
        after = before | {(link.rel, link.to): link for link in new}
        added += len(after) - len(before)
        changed += sum(after[name] != link for name, link in before.items())
        if after != before:
            _write(change, source, list(after.values()))
    return added, changed


def _write(change: Change, source: Memory, links: Sequence[Link]) -> None:
    """Write the links of a memory, and update memories affected by ``supersedes`` links."""
    after = replace(source, links=tuple(links))
    change.set_links(after)
    if {link.to for link in source.links if link.rel == SUPERSEDES} ^ {
        link.to for link in links if link.rel == SUPERSEDES
    }:
        change.put(reconcile(change.home, [(source, after)]))


def _as_lines(home: Home, items: Sequence[_Stored]) -> tuple[LinkLine, ...]:
    edges = [
        StoredLink(
            source.id,
            link.rel,
            link.to,
            link.origin or MANUAL,
            link.reason,
            USUAL_STRENGTH if link.strength is None else link.strength,
            link.valid,
        )
        for source, link in items
    ]
    return lines_of(home, edges, home.today())


# -- Listing and traversal -----------------------------------------------------


_MAX_COMPANIONS = 10


@operation("graph-list", by_key=True)
def list_links(  # noqa: PLR0913 - one parameter per field
    home: Home,
    reference: Annotated[str | None, bounds("Only links of this memory.")] = None,
    relations: Relations = (),
    origins: Annotated[
        tuple[str, ...],
        bounds("Only links of these origins; auto: similarity, which is left out by default."),
    ] = (),
    as_of: Day = None,
    ended: Annotated[bool, bounds("Also links that no longer hold or do not hold yet.")] = False,
    project: OnlyProject = None,
    limit: Limit = 50,
    offset: Offset = 0,
) -> LinkPage:
    """List links between active memories, or all links of one memory, newest memories first.

    Raises NotFoundError.
    """
    edit.catch_up(home)
    day = as_of or home.today()
    filters = EdgeFilter(
        _node_id(home, reference) if reference else None,
        relations,
        origins,
        None if ended else day,
        project,
    )
    edges, total = home.links.page(filters, limit=limit, offset=offset)
    return LinkPage(lines_of(home, edges, day), total)


@operation("graph-show", by_key=True)
def traverse(home: Home, request: TraverseRequest) -> Traversal:
    """Follow links from a memory. Each link and each memory is reported once.

    Raises NotFoundError, ConflictError.
    """
    edit.catch_up(home)
    day = request.as_of or home.today()
    walk = _Walk(_node_id(home, request.reference), request)
    ring: list[str] = [walk.names[0]]
    for _ in range(request.depth):
        ring = walk.step(home, ring, day)
        if not ring:
            break
    if len(walk.names) == 1 and walk.names[0].startswith(CODE) and not walk.hops:
        raise NotFoundError(
            f"nothing is linked to {walk.names[0]!r}",
            hint="nacre graph ingest-code reads a repository",
        )
    together = home.co_recall.of(walk.names[:1], store.today(home))[:_MAX_COMPANIONS]
    nodes = nodes_of(home, {*walk.names, *(edge.other for edge in together)})
    return Traversal(
        tuple(nodes[name] for name in walk.names),
        tuple(walk.hops),
        walk.more,
        tuple(Companion(nodes[edge.other], edge.weight, edge.sessions) for edge in together),
    )


def _node_id(home: Home, reference: str) -> str:
    return reference if reference.startswith(CODE) else store.get(home, reference).id


class _Walk:
    def __init__(self, start: str, request: TraverseRequest) -> None:
        self._request = request
        self._places = {start: 0}
        self._seen: set[tuple[str, str, str]] = set()
        self._followed: set[str] = set()
        self.names = [start]
        self.hops: list[Hop] = []
        self.more = False

    def step(self, home: Home, ring: Sequence[str], day: date) -> list[str]:
        """Follow the links of the nodes in ``ring``, strongest first, and return the new nodes.

        After the limit is reached, follow only links between known nodes.
        """
        first_new = len(self.names)
        members, relations = set(ring), self._request.relations
        edges = home.links.at(ring, day, self._followed, self.names if self.more else None)
        edges.sort(key=lambda edge: (-edge.strength, edge.rel, edge.source, edge.target))
        for edge in edges:
            is_seen = (edge.source, edge.rel, edge.target) in self._seen
            if is_seen or (relations and edge.rel not in relations):
                continue
            if self._request.direction != "inbound" and edge.source in members:
                self._follow(edge, edge.source, edge.target, is_outgoing=True)
            elif self._request.direction != "outbound" and edge.target in members:
                self._follow(edge, edge.target, edge.source, is_outgoing=False)
        if self._request.direction == "both":
            self._followed |= members
        return self.names[first_new:]

    def _follow(self, edge: StoredLink, start: str, end: str, *, is_outgoing: bool) -> None:
        is_again = end in self._places
        if not is_again and len(self.names) > self._request.limit:
            self.more = True
            return
        self._seen.add((edge.source, edge.rel, edge.target))
        if not is_again:
            self._places[end] = len(self.names)
            self.names.append(end)
        self.hops.append(
            Hop(
                self._places[start],
                self._places[end],
                edge.rel,
                is_outgoing,
                edge.origin,
                edge.strength,
                edge.valid,
                edge.reason,
                is_again,
            )
        )


# -- Map -----------------------------------------------------------------------


@operation("graph-map", by_key=True)
def graph_map(home: Home, request: MapRequest) -> GraphMap:
    """Return the memories with the most links, and the links between them.

    Ties go to the more important memory.

    With ``as_of``, use only memories and links that were valid on that day, as far as is known
    today.
    """
    edit.catch_up(home)
    return cached(home, request, GraphMap, lambda: _graph_map(home, request))


def _graph_map(home: Home, request: MapRequest) -> GraphMap:
    rows = {
        row[0]: row for row in home.links.map_nodes(request.project, request.kinds, request.as_of)
    }
    day = request.as_of or home.today()
    links = [
        link
        for link in map(as_edge, home.links.map_links(day, request.relations, alike=request.alike))
        if link.source in rows and link.target in rows
    ]
    degrees = Counter(end for link in links for end in (link.source, link.target))
    chosen = sorted(rows.values(), key=lambda row: (-degrees[row[0]], -row[4], row[0]))[
        : request.limit
    ]
    places = {row[0]: at for at, row in enumerate(chosen)}
    nodes = tuple(
        MapNode(
            name,
            subject,
            Kind(kind),
            project,
            importance,
            degrees[name],
            "superseded" if is_superseded else "active",
            bool(is_trusted),
            date.fromisoformat(began),
        )
        for name, subject, kind, project, importance, is_superseded, is_trusted, began in chosen
    )
    edges = tuple(
        MapEdge(
            places[link.source],
            places[link.target],
            link.rel,
            link.strength,
            link.valid,
            link.origin,
        )
        for link in links
        if link.source in places and link.target in places
    )
    return GraphMap(nodes, edges, len(rows), len(links))
