"""Links between memories: requests, changes, traversal, analyses, a map and a summary."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, timedelta
from enum import StrEnum
from itertools import pairwise
from typing import Annotated, Literal

from nacre.base.bounds import bounds
from nacre.base.frozen import frozen
from nacre.base.request import Request
from nacre.base.text import count, one_line, shorten
from nacre.errors import ConflictError, InvalidInputError, NacreError, NotFoundError
from nacre.home import location, operations
from nacre.home.change import Change
from nacre.home.home import Home
from nacre.memories import edit, store
from nacre.memories import usage as memories_usage
from nacre.memories.judge import CONTRADICTS, SUPERSEDES, reconcile
from nacre.memories.requests import wish
from nacre.memories.usage import fold_usage
from nacre.operations import operation
from nacre.store import schema
from nacre.store.memories import ALIKE, IN_BODY, EdgeFilter, StoredLink
from nacre.values.fields import Offset, OnlyProject, Reference
from nacre.values.memory import USUAL_STRENGTH, Kind, Link, Memory, Validity, by_id
from nacre.values.recall import Filter
from nacre.values.review import Maturity
from nacre.values.session import Trust

# -- Requests ------------------------------------------------------------------


MOST_LINKS = 1000
"""Maximum number of links in one request."""


class Relation(StrEnum):
    """The relation of a link's source to its target. Memory files may contain other relations."""

    RELATED_TO = "related_to"
    SUPERSEDES = "supersedes"
    DEPENDS_ON = "depends_on"
    CONTRADICTS = "contradicts"
    SPECIALIZES = "specializes"
    PART_OF = "part_of"
    ALTERNATIVE_TO = "alternative_to"
    BUILDS_ON = "builds_on"
    ELABORATES = "elaborates"


Way = Literal["both", "outbound", "inbound"]
Day = Annotated[date | None, bounds("The day for which to show links; default: today.")]
Relations = Annotated[tuple[str, ...], bounds("Only these relations.")]
Origin = (
    Annotated[
        str,
        bounds(
            "A word by which you can later list or remove these links.",
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
    since: Annotated[date | None, bounds("The first day on which the link is valid.")] = None
    until: Annotated[date | None, bounds("The day from which the link is no longer valid.")] = None
    reason: Annotated[str, bounds("The reason, in a few words.", max_length=500)] | None = None
    origin: Origin = None


AnyRelation = Annotated[
    str | None,
    bounds("The relation, as shown by nacre graph list; default: all relations."),
]
Target = Annotated[str, bounds("The memory at the other end of the link.")]


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


# -- Results -------------------------------------------------------------------


@frozen
class Node:
    """A memory or code symbol at one end of a link.

    ``state`` is ``active``, ``superseded``, ``retired``, ``code``, or ``unknown`` if the id does
    not exist.
    """

    id: str
    subject: str | None = None
    kind: Kind | None = None
    project: str | None = None
    state: str = "active"
    trusted: bool = True


@frozen
class LinkLine:
    """A link with both of its nodes. ``holds`` is True if it is valid on the requested day."""

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
    """One page of a list of links, with the total number of matches."""

    links: tuple[LinkLine, ...]
    total: int


@frozen
class LinkChange:
    """The result of creating, changing or removing links.

    ``waiting`` contains the ids of the owner's memories whose links an agent asked to change.
    """

    links: tuple[LinkLine, ...] = ()
    made: int = 0
    changed: int = 0
    removed: int = 0
    waiting: tuple[str, ...] = ()

    @property
    def counts(self) -> str:
        """The counts of changes as text, such as ``2 new, 1 removed``."""
        counts = ((self.made, "new"), (self.changed, "changed"), (self.removed, "removed"))
        return ", ".join(f"{number:,} {word}" for number, word in counts if number)


@frozen
class Hop:
    """A link on the way from the starting point to a node.

    ``parent`` and ``child`` are indexes of nodes. ``is_again`` is True if an earlier hop reached
    the child.
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
class Traversal:
    """The nodes and links that can be reached from a memory, which is the first node.

    ``more`` is True if the limit left out some nodes.
    """

    nodes: tuple[Node, ...]
    hops: tuple[Hop, ...]
    more: bool = False


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

    ``idle_days`` is the number of days since the memory was last recalled or stated.
    """

    memory: Memory
    degree: int
    maturity: Maturity
    idle_days: int


@frozen
class Gaps:
    """Memories with at most one link, starting with the most used.

    ``unlinked`` counts those without any.
    """

    found: tuple[Gap, ...]
    total: int
    unlinked: int


@frozen
class MapNode:
    """A memory on the map. ``degree`` counts only edges that the map shows."""

    id: str
    subject: str
    kind: Kind
    project: str | None
    importance: int
    degree: int
    trusted: bool


@frozen
class MapEdge:
    """An edge between two nodes, which are identified by index.

    ``rel`` is the relation of a link, or ``session``, ``file`` or ``tag`` if the nodes share one.
    """

    source: int
    target: int
    rel: str


@frozen
class GraphMap:
    """The most connected memories and the edges between them.

    ``memories`` and ``links`` are totals that include the ones omitted from the map.
    """

    nodes: tuple[MapNode, ...]
    edges: tuple[MapEdge, ...]
    memories: int
    links: int


@frozen
class Brief:
    """A summary of all memories, as counts and as text.

    ``gaps`` counts memories with at most one link, and ``stale`` those that might be outdated.
    """

    text: str
    memories: int
    links: int
    alike: int
    projects: int
    gaps: int
    unlinked: int
    todos: int
    stale: int
    central: tuple[CentralMemory, ...] = ()
    active_projects: tuple[str, ...] = ()
    decisions: tuple[Memory, ...] = ()


# -- Analyses ------------------------------------------------------------------
#
# The analyses use no model. Similarity is not a link, so a memory that is only similar to other
# memories is a gap.


GAP_LINKS = 1
"""Maximum number of links of a memory that counts as a gap."""

_SHORTLIST = 3
_RANKS = (Maturity.PROVEN, Maturity.ESTABLISHED, Maturity.CANDIDATE)


@operation("graph-central", by_key=True)
def central(home: Home, limit: Limit = 10, project: OnlyProject = None) -> Central:
    """Return the memories with the most links."""
    edit.catch_up(home)
    degrees = _degrees(home, project)
    return Central(_most_linked(home, degrees, limit), len(degrees), sum(degrees.values()) // 2)


def _degrees(home: Home, project: str | None) -> dict[str, int]:
    degrees = dict.fromkeys(home.links.nodes(project), 0)
    for source, target, _ in home.links.between(home.today(), project):
        degrees[source] += 1
        degrees[target] += 1
    return degrees


def _most_linked(home: Home, degrees: Mapping[str, int], limit: int) -> tuple[CentralMemory, ...]:
    ids = sorted(filter(degrees.__getitem__, degrees), key=lambda name: -degrees[name])[:limit]
    memories = by_id(home.memories.in_any_state(ids))
    return tuple(CentralMemory(memories[name], degrees[name]) for name in ids if name in memories)


@operation("graph-gaps", by_key=True)
def gaps(home: Home, limit: Limit = 10, project: OnlyProject = None) -> Gaps:
    """Return memories with at most one link.

    The memories are sorted by maturity, by number of links, and by use.
    """
    edit.catch_up(home)
    fold_usage(home)
    degrees = _degrees(home, project)
    ids = [name for name, degree in degrees.items() if degree <= GAP_LINKS]
    usage = home.usage.of(ids)
    maturities = {name: memories_usage.maturity(usage[name]) for name in ids}
    ids.sort(
        key=lambda name: (
            _RANKS.index(maturities[name]),
            degrees[name],
            -usage[name].access_count,
        )
    )
    memories = by_id(home.memories.in_any_state(ids[:limit]))
    items = []
    for name in ids[:limit]:
        if memory := memories.get(name):
            last = max(memory.last_said, usage[name].last_recalled or memory.last_said)
            idle_days = max(0, (home.now() - last).days)
            items.append(Gap(memory, degrees[name], maturities[name], idle_days))
    return Gaps(tuple(items), len(ids), _unlinked(degrees))


def _unlinked(degrees: Mapping[str, int]) -> int:
    return list(degrees.values()).count(0)


# -- Brief ---------------------------------------------------------------------


RECENT = timedelta(days=30)
_RECENT_MEMORIES = 200
_CENTRAL_CANDIDATES = 20
"""Number of memories with the most links that the summary considers."""

_SUBJECT_CHARACTERS = 70


@operation("graph-brief", by_key=True)
def brief(home: Home, project: OnlyProject = None) -> Brief:
    """Return a summary of all memories in about 200 tokens."""
    edit.catch_up(home)
    degrees = _degrees(home, project)
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
        item for item in _most_linked(home, degrees, _CENTRAL_CANDIDATES) if item.memory.is_vouched
    )[:_SHORTLIST]
    summary = Brief(
        "",
        len(degrees),
        sum(degrees.values()) // 2,
        home.links.count_alike(project),
        1 if project else len(location.projects(home)),
        sum(degree <= GAP_LINKS for degree in degrees.values()),
        _unlinked(degrees),
        todos,
        len(home.memories.stale().keys() & degrees.keys()),
        central,
        tuple(dict.fromkeys(item.project for item in recent if item.project))[:_SHORTLIST],
        tuple(decisions),
    )
    return replace(summary, text=_in_words(summary, project))


def _in_words(brief: Brief, project: str | None) -> str:
    lines = [
        f"{count(brief.memories, 'memory', 'memories')} in {project or count(brief.projects, 'project')}, "
        f"{count(brief.links, 'link')} between them ({count(brief.alike, 'pair')} of similar memories). "
        f"{brief.unlinked:,} memories without a link, "
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
    """Return nodes by id. Ids that do not exist get the state ``unknown`` or ``code``."""
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
    """Return links with their two nodes, and whether each link is valid on ``day``."""
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
"""Origins of links computed from the text and use of memories.

Such links cannot be created manually, and they reappear after removal.
"""

_DECISIVE = (SUPERSEDES, CONTRADICTS)


_Stored = tuple[Memory, Link]


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
        pending: list[_Stored] = []
        for source, new in requested:
            present = (link for link in source.links if (link.rel, link.to) == (new.rel, new.to))
            may_change = _is_allowed(home, source, next(present, new))
            (allowed if may_change else pending).append((source, new))
        change.describe(subject=operations.subject_of([source for source, _ in allowed or pending]))
        with change.transaction():
            added, changed = _write_links(change, allowed)
        reviewed_ids = _request_review(home, pending, "linked")
        return LinkChange(_as_lines(home, requested), added, changed, waiting=reviewed_ids)


@operation("graph-unlink", writes=True, by_key=True)
def unlink(
    home: Home,
    source: Reference,
    target: Target,
    relation: AnyRelation = None,
    ends: Annotated[bool, bounds("End the links instead of removing them from the file.")] = False,
    at: Annotated[date | None, bounds("The day on which the link ends; default: today.")] = None,
) -> LinkChange:
    """Remove links, or end them. A memory that was superseded only by a removed link is active again.

    Raises the same errors as :func:`link`.
    """
    edit.catch_up(home)
    with home.change("invalidate" if ends else "unlink") as change:
        holder, links = _find(home, source, target, relation)
        affected = [(holder, _ended(link, at or home.today()) if ends else link) for link in links]
        lines = _as_lines(home, affected)
        if not all(_is_allowed(home, holder, link) for link in links):
            return LinkChange(lines, waiting=_request_review(home, affected, "removed the link"))
        change.describe(subject=holder.subject)
        with change.transaction():
            if ends:
                return LinkChange(lines, changed=_write_links(change, affected)[1])
            _write(change, holder, [item for item in holder.links if item not in links])
        return LinkChange(lines, removed=len(links))


def _ended(link: Link, day: date) -> Link:
    if link.rel in _DECISIVE:
        raise ConflictError(f"{link.rel} links cannot have an end", hint=_REMEDY[link.rel])
    valid = replace(link.valid, until=day)
    _refuse_backwards(valid)
    return replace(link, valid=valid)


def _resolve_numbered(home: Home, request: NewLink, number: int, total: int) -> _Stored:
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
        if request.origin in COMPUTED:
            raise InvalidInputError(
                f"links of origin {request.origin!r} are computed automatically",
                hint="leave out --origin",
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
            "the memories are only similar, not linked",
            hint="similarity is computed automatically",
        )
    return ConflictError("that link has the opposite direction", hint="swap the two memories")


def _is_allowed(home: Home, source: Memory, link: Link) -> bool:
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
    ended: Annotated[bool, bounds("Include links that have ended or not yet begun.")] = False,
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
    start = _node_id(home, request.reference)
    places, ring = {start: 0}, [start]
    hops: list[Hop] = []
    reported_links: set[tuple[str, str, str]] = set()
    followed_nodes: set[str] = set()
    more = False
    for _ in range(request.depth):
        members, known = set(ring), list(places)
        # After the limit is reached, only links between known nodes are followed.
        edges = home.links.at(ring, day, followed_nodes, known if more else None)
        for edge in sorted(
            edges, key=lambda edge: (-edge.strength, edge.rel, edge.source, edge.target)
        ):
            name = (edge.source, edge.rel, edge.target)
            if name in reported_links or (request.relations and edge.rel not in request.relations):
                continue
            is_outgoing = request.direction != "inbound" and edge.source in members
            if not is_outgoing and (request.direction == "outbound" or edge.target not in members):
                continue
            parent, child = (
                (edge.source, edge.target) if is_outgoing else (edge.target, edge.source)
            )
            is_again = child in places
            if not is_again and len(places) > request.limit:
                more = True
                continue
            reported_links.add(name)
            hops.append(
                Hop(
                    places[parent],
                    places.setdefault(child, len(places)),
                    edge.rel,
                    is_outgoing,
                    edge.origin,
                    edge.strength,
                    edge.valid,
                    edge.reason,
                    is_again,
                )
            )
        if request.direction == "both":
            followed_nodes |= members
        ring = list(places)[len(known) :]
        if not ring:
            break
    if start.startswith(CODE) and not hops:
        raise NotFoundError(
            f"nothing is linked to {start!r}",
            hint="nacre graph ingest-code reads a repository",
        )
    nodes = nodes_of(home, list(places))
    return Traversal(tuple(nodes[name] for name in places), tuple(hops), more)


def _node_id(home: Home, reference: str) -> str:
    return reference if reference.startswith(CODE) else store.get(home, reference).id


# -- Map -----------------------------------------------------------------------


_FILE = re.compile(r"[\w-][\w.-]*\.[A-Za-z]\w{0,7}\b")


@operation("graph-map", by_key=True)
def graph_map(
    home: Home,
    project: OnlyProject = None,
    limit: Annotated[
        int,
        bounds("Maximum number of memories, the most connected first.", ge=1, le=5000),
    ] = 1000,
) -> GraphMap:
    """Return the memories with the most connections, and the connections between them.

    Memories are connected by links, and by a common session, file or tag. Ties go to the more
    important memory.
    """
    edit.catch_up(home)
    rows = {row[0]: row for row in home.links.map_nodes(project)}
    edges = [
        (source, target, rel)
        for source, target, rel in (*home.links.map_links(home.today()), *_shared(home, rows))
        if source in rows and target in rows
    ]
    degrees = Counter(end for edge in edges for end in edge[:2])
    chosen = sorted(rows.values(), key=lambda row: (-degrees[row[0]], -row[4], row[0]))[:limit]
    places = {row[0]: at for at, row in enumerate(chosen)}
    nodes = tuple(
        MapNode(name, subject, Kind(kind), project, importance, degrees[name], bool(is_trusted))
        for name, subject, kind, project, importance, is_trusted, *_ in chosen
    )
    drawn = tuple(
        MapEdge(places[source], places[target], rel)
        for source, target, rel in edges
        if source in places and target in places
    )
    return GraphMap(nodes, drawn, len(rows), len(edges))


def _shared(home: Home, rows: Mapping[str, schema.Row]) -> Iterator[tuple[str, str, str]]:
    named = {name: set(_FILE.findall(row[6])) for name, row in rows.items()}
    files = set(home.links.known_files(set().union(*named.values())))
    groups: dict[tuple[str, str], list[str]] = {}
    for rel, value, member in (
        *home.links.map_groups(),
        *(("file", file, name) for name in rows for file in named[name] & files),
    ):
        if member in rows:
            groups.setdefault((rel, value), []).append(member)
    for (rel, _), members in groups.items():
        for source, target in pairwise(members):
            yield source, target, rel
