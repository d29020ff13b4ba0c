"""The graph of active memories and their links, with memories as numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Literal, TypeVar

from msgspec import Meta

from nacre.base.request import Request
from nacre.base.text import count, one_line, shorten
from nacre.errors import Conflict, InvalidInput, NacreError, NotFound
from nacre.home.change import BATCH, Change
from nacre.home.home import Home
from nacre.home.location import projects
from nacre.home.operations import subject_of
from nacre.memories.decision import Offset, Reference, is_owners, wish
from nacre.memories.edit import catch_up
from nacre.memories.judge import CONTRADICTS, SUPERSEDES, agreed
from nacre.memories.store import fold_usage, get, list_active, refuse_broken, today
from nacre.memories.usage import maturity
from nacre.store.memories import ALIKE, IN_BODY, EdgeFilter, LinksEdge, as_edge
from nacre.store.schema import Row
from nacre.values.memory import USUAL_STRENGTH, Kind, Link, Memory, Validity
from nacre.values.recall import Filter
from nacre.values.review import Maturity, Usage
from nacre.values.session import Trust

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


# ----------------------------------------------------------------------------
# Requests about links between memories.


MOST_LINKS = 1000
"""Links that are drawn together, at most."""


class Relation(StrEnum):
    """How the source of a link relates to its target (DESIGN: the seed's eleven, and ``elaborates``).

    ``calls``, ``imports`` and ``inherits`` are between symbols of code. Files may hold other names.
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
Day = Annotated[
    date | None, Meta(description="The links as they were on that day; today where left out.")
]
Project = Annotated[str | None, Meta(description="Only memories of this project.")]
Relations = Annotated[tuple[str, ...], Meta(description="Only these relations.")]
Origin = (
    Annotated[
        str,
        Meta(
            description="What made it: a word to list and remove such links by.",
            pattern="^[a-z][a-z-]{0,39}$",
        ),
    ]
    | None
)
Limit = Annotated[int, Meta(description="Items at most.", ge=1, le=1000)]


class NewLink(Request, frozen=True, kw_only=True):
    """One link to be drawn. One that is there already gets what is given here."""

    source: Reference
    relation: Annotated[Relation, Meta(description="How the source relates to the target.")]
    target: Annotated[
        str, Meta(description="The other memory, or a symbol of code: code:shop/src/cart.py#add.")
    ]
    strength: (
        Annotated[
            float, Meta(description="How close they are, 0 to 1; .5 where left out.", ge=0, le=1)
        ]
        | None
    ) = None
    since: Annotated[date | None, Meta(description="The first day on which it holds.")] = None
    until: Annotated[date | None, Meta(description="The day from which it holds no more.")] = None
    reason: Annotated[str, Meta(description="Why, in a few words.", max_length=500)] | None = None
    origin: Origin = None


class LinkRequest(Request, frozen=True, kw_only=True):
    """Links to be drawn: all of them or, where one cannot be, none."""

    links: Annotated[
        tuple[NewLink, ...], Meta(description="The links.", min_length=1, max_length=MOST_LINKS)
    ]


class UnlinkRequest(Request, frozen=True, kw_only=True):
    """A link to be taken away, or all between two memories."""

    source: Reference
    target: Annotated[str, Meta(description="The memory at its other end.")]
    relation: Annotated[
        str | None,
        Meta(description="Its relation, as nacre graph list shows it; every one where left out."),
    ] = None


class InvalidateRequest(UnlinkRequest, frozen=True, kw_only=True):
    """A link, or all between two memories, that holds no more, and is kept."""

    at: Annotated[
        date | None, Meta(description="The day from which it holds no more; today where left out.")
    ] = None


class UnlinkOriginRequest(Request, frozen=True, kw_only=True):
    """All links of an origin, to be taken away."""

    origin: Annotated[str, Meta(description="What made them: manual, agent, reflect, import, …")]
    project: Annotated[str | None, Meta(description="Only those of memories of this project.")] = (
        None
    )


class LinksRequest(Request, frozen=True, kw_only=True):
    """Links, those of the newest memories first: between memories that hold, or all at one memory."""

    reference: Annotated[str | None, Meta(description="Only links at this memory.")] = None
    relations: Relations = ()
    origins: Annotated[
        tuple[str, ...],
        Meta(description="Only of these origins; auto: likeness, which is left out otherwise."),
    ] = ()
    as_of: Day = None
    ended: Annotated[bool, Meta(description="Also links that hold no more, or not yet.")] = False
    project: Annotated[str | None, Meta(description="Only links with an end in this project.")] = (
        None
    )
    limit: Limit = 50
    offset: Offset = 0


class TraverseRequest(Request, frozen=True, kw_only=True):
    """What a memory is linked with, link by link."""

    reference: Annotated[str, Meta(description="Where to begin: a memory, or a symbol of code.")]
    depth: Annotated[int, Meta(description="How many links away.", ge=1, le=10)] = 2
    direction: Annotated[
        Way, Meta(description="outbound: only along links; inbound: only against them.")
    ] = "both"
    relations: Relations = ()
    as_of: Day = None
    limit: Annotated[
        int, Meta(description="Memories at most; the nearest are kept.", ge=1, le=1000)
    ] = 100


class AnalysisRequest(Request, frozen=True, kw_only=True):
    """What the links of all memories say, or of those of one project."""

    limit: Limit = 10
    project: Project = None


class MapRequest(Request, frozen=True, kw_only=True):
    """Memories and the links between them, to be drawn."""

    project: Project = None
    kinds: Annotated[tuple[Kind, ...], Meta(description="Only memories of these kinds.")] = ()
    relations: Relations = ()
    alike: Annotated[bool, Meta(description="Also likeness, which is computed.")] = False
    as_of: Annotated[
        date | None,
        Meta(
            description="Memories that held on that day, and their links then; today where left out."
        ),
    ] = None
    limit: Annotated[
        int, Meta(description="Memories at most, the most linked first.", ge=1, le=5000)
    ] = 1000


class BriefRequest(Request, frozen=True, kw_only=True):
    """All that is remembered, in about 200 tokens."""

    project: Project = None


# ----------------------------------------------------------------------------
# Values about links and the graph of memories.


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


# ----------------------------------------------------------------------------
# Analyses of the graph of memories: central ones, gaps, connected components.
#
# No model is asked. Links are those that :meth:`nacre.store.memories.Links.count` counts, so that
# likeness is none of
# them: a memory that only resembles others is a gap (the seed leaves such ones out of its ranking,
# seed facts 2.2). The
# same home gives the same answer.


GAP_LINKS = 1
"""Most links of a memory that is a gap (seed facts 2.2)."""

_NAMED = 3
_RANKS = (Maturity.PROVEN, Maturity.ESTABLISHED, Maturity.CANDIDATE)


def central(home: Home, asked: AnalysisRequest) -> Central:
    """The memories with the most links."""
    catch_up(home)
    net = net_of(home, asked.project)
    return Central(central_of(home, net, asked.limit), len(net.ids), len(net.links))


def central_of(home: Home, net: Net, limit: int) -> tuple[CentralMemory, ...]:
    """The most linked memories of a graph."""
    chosen = net.most_linked(net.linked, limit)
    memories = memories_of(home, net, chosen)
    return tuple(CentralMemory(memories[at], net.degrees[at]) for at in chosen if at in memories)


def gaps(home: Home, asked: AnalysisRequest) -> Gaps:
    """Memories with one link at most: the proven first, then those without any, then the most used."""
    catch_up(home)
    fold_usage(home)
    net = net_of(home, asked.project)
    few = [at for at, degree in enumerate(net.degrees) if degree <= GAP_LINKS]
    usage = home.usage.of([net.ids[at] for at in few])

    def used(at: int) -> Usage:
        return usage.get(net.ids[at], Usage())

    few.sort(
        key=lambda at: (
            _RANKS.index(maturity(used(at))),
            net.degrees[at],
            -used(at).access_count,
            at,
        )
    )
    chosen = few[: asked.limit]
    memories = memories_of(home, net, chosen)
    found = [_gap(home, memories[at], net.degrees[at], used(at)) for at in chosen if at in memories]
    return Gaps(tuple(found), len(few), len(net.ids) - len(net.linked))


def _gap(home: Home, memory: Memory, degree: int, usage: Usage) -> Gap:
    last = max(memory.last_said, usage.last_recalled or memory.last_said)
    return Gap(memory, degree, maturity(usage), max(0, (home.now() - last).days))


def components(home: Home, asked: AnalysisRequest) -> Components:
    """The connected components, the largest first, each with its most linked memories."""
    catch_up(home)
    net = net_of(home, asked.project)
    counts = [0] * len(net.ids)
    for source, _ in net.links:
        counts[source] += 1
    found = []
    for members in net.components[: asked.limit]:
        named = net.most_linked(members, _NAMED)
        memories = memories_of(home, net, named)
        most = tuple(memories[at] for at in named if at in memories)
        found.append(Component(len(members), sum(counts[at] for at in members), most))
    return Components(tuple(found), len(net.components), len(net.ids) - len(net.linked))


# ----------------------------------------------------------------------------
# A summary of everything that is remembered, in about 200 tokens.


RECENT = timedelta(days=30)
_RECENT_MEMORIES = 200
_LOOKED_AT = 20
"""Of the most linked memories, those that somebody answers for are named."""

_SUBJECT = 70


def brief(home: Home, asked: BriefRequest) -> Brief:
    """The summary. The daemon caches it until something is written, for at most half a minute."""
    catch_up(home)
    return cached(home, asked, Brief, lambda: _brief(home, asked.project))


def _brief(home: Home, project: str | None) -> Brief:
    net = net_of(home, project)
    within = (project,) if project else ()
    since = home.now() - RECENT
    _, todos = list_active(home, Filter(kinds=(Kind.TODO,), projects=within, strict=True), limit=1)
    decided = Filter(
        kinds=(Kind.DECISION,),
        projects=within,
        strict=True,
        since=since,
        trusted=True,
        settled=True,
    )
    decisions, _ = list_active(home, decided, limit=_NAMED)
    recent, _ = list_active(
        home, Filter(projects=within, strict=True, since=since), limit=_RECENT_MEMORIES
    )
    central = tuple(one for one in central_of(home, net, _LOOKED_AT) if one.memory.is_vouched)[
        :_NAMED
    ]
    found = Brief(
        "",
        len(net.ids),
        len(net.links),
        home.links.count_alike(project),
        1 if project else len(projects(home)),
        len(net.components),
        sum(degree <= GAP_LINKS for degree in net.degrees),
        len(net.ids) - len(net.linked),
        todos,
        len(home.memories.stale().keys() & set(net.ids)),
        central,
        tuple(dict.fromkeys(one.project for one in recent if one.project))[:_NAMED],
        tuple(decisions),
    )
    return replace(found, text=_in_words(found, project))


def _in_words(found: Brief, project: str | None) -> str:
    lines = [
        f"{count(found.memories, 'memory', 'memories')} in {project or count(found.projects, 'project')}, "
        f"{count(found.links, 'link')} between them (and {count(found.alike, 'pair')} alike). "
        f"{count(found.components, 'group')} of linked memories, {found.unlinked:,} without a link, "
        f"{found.gaps:,} with one at most. {count(found.todos, 'open todo')}, {found.stale:,} that may be out of date."
    ]
    if found.central:
        lines.append(
            "Most linked: "
            + "; ".join(f"{_short(one.memory)} ({one.degree})" for one in found.central)
            + "."
        )
    if found.active_projects and not project:
        lines.append(f"Active in the last 30 days: {', '.join(found.active_projects)}.")
    if found.decisions:
        lines.append("Decided lately: " + "; ".join(map(_short, found.decisions)) + ".")
    return "\n".join(lines)


def _short(memory: Memory) -> str:
    return f"{one_line(shorten(memory.subject, _SUBJECT))} [{memory.id[-8:]}]"


# ----------------------------------------------------------------------------
# The nodes at the ends of links, as they are shown.


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


def lines_of(home: Home, edges: Sequence[LinksEdge], day: date) -> tuple[LinkLine, ...]:
    """Links with both nodes, and whether they are valid on a day."""
    nodes = nodes_of(home, {end for one in edges for end in (one.source, one.target)})
    return tuple(
        LinkLine(
            nodes[one.source],
            one.rel,
            nodes[one.target],
            one.origin,
            one.strength,
            one.valid,
            one.reason,
            holds_on(one.valid, day),
        )
        for one in edges
    )


def holds_on(valid: Validity, day: date) -> bool:
    """Whether a link is valid on a day; the day of its end is excluded."""
    return (valid.since is None or valid.since <= day) and (
        valid.until is None or day < valid.until
    )


# ----------------------------------------------------------------------------
# Draw, end and remove links. A link is stored in the front matter of its source.
#
# ``supersedes`` and ``contradicts`` say what holds: the first is written on both sides, the second is
# a doubt that waits
# for the owner (``nacre review``). Neither has a strength, an end or an origin of its own.
#
# An agent draws and ends links of what it stored itself. What it wants of the owner's memories waits
# for review.


MANUAL, AGENT, TOGETHER = "manual", "agent", "co-recall"
COMPUTED = (ALIKE, IN_BODY, TOGETHER)
"""Origins of computed links (from texts and use): nobody draws them, and a removed one comes back."""

_DECISIVE = (SUPERSEDES, CONTRADICTS)
_OF_CODE = (Relation.CALLS, Relation.IMPORTS, Relation.INHERITS)


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A link to be written into the front matter of its source."""

    source: Memory
    link: Link


def link(home: Home, asked: LinkRequest) -> LinkChange:
    """Draw links: all of them or none. Raises NotFound, Conflict, InvalidInput, EditConflict, MemoryInvalid."""
    catch_up(home)
    with home.change("link") as change:
        wanted = [
            _numbered(home, one, at, len(asked.links)) for at, one in enumerate(asked.links, 1)
        ]
        drawn = [one for one in wanted if _may(home, one.source, _present(one) or one.link)]
        change.describe(subject=subject_of([one.source for one in drawn or wanted]))
        with change.transaction():
            made, changed = _draw(change, drawn)
        waiting = _wish(home, [one for one in wanted if one not in drawn], "linked")
        return LinkChange(_shown(home, wanted), made, changed, waiting=waiting)


def unlink(home: Home, asked: UnlinkRequest) -> LinkChange:
    """Remove links. A memory that only such a link superseded is active again. Raises as :func:`link`."""
    catch_up(home)
    with home.change("unlink") as change:
        source, gone = _find(home, asked)
        if not all(_may(home, source, one.link) for one in gone):
            return LinkChange(_shown(home, gone), waiting=_wish(home, gone, "without its link"))
        change.describe(subject=source.subject)
        shown, removed = _shown(home, gone), [one.link for one in gone]
        with change.transaction():
            _write(change, source, [one for one in source.links if one not in removed])
        return LinkChange(shown, removed=len(gone))


def invalidate(home: Home, asked: InvalidateRequest) -> LinkChange:
    """End links and keep them. Raises as :func:`link`."""
    catch_up(home)
    with home.change("invalidate") as change:
        source, found = _find(home, asked)
        ended = [_ended(one, asked.at or home.today()) for one in found]
        if not all(_may(home, source, one.link) for one in found):
            return LinkChange(_shown(home, ended), waiting=_wish(home, ended, "no longer linked"))
        change.describe(subject=source.subject)
        with change.transaction():
            _, changed = _draw(change, ended)
        return LinkChange(_shown(home, ended), changed=changed)


def _ended(drawn: _Drawn, at: date) -> _Drawn:
    if drawn.link.rel in _DECISIVE:
        raise Conflict(f"{drawn.link.rel} has no end", hint=_REMEDY[drawn.link.rel])
    valid = replace(drawn.link.valid, until=at)
    _refuse_backwards(valid)
    return replace(drawn, link=replace(drawn.link, valid=valid))


def unlink_origin(home: Home, asked: UnlinkOriginRequest) -> LinkChange:
    """Remove all links of an origin, except those that decide what holds. Raises InvalidInput, EditConflict."""
    if asked.origin in COMPUTED:
        raise InvalidInput(
            f"links of origin {asked.origin!r} are computed", hint="they would come again"
        )
    catch_up(home)
    removed = 0
    sources = home.links.of_origin(asked.origin, asked.project)
    with home.change("unlink", why=f"all of origin {asked.origin}") as change:
        for start in range(0, len(sources), BATCH):
            with home.database.transaction():
                for memory in home.memories.in_any_state(sources[start : start + BATCH]):
                    kept = [one for one in memory.links if not _is_of(one, asked.origin)]
                    removed += len(memory.links) - len(kept)
                    _write(change, memory, kept)
    return LinkChange(removed=removed)


def _is_of(link: Link, origin: str) -> bool:
    return (link.origin or MANUAL) == origin and link.rel not in _DECISIVE


def _numbered(home: Home, asked: NewLink, at: int, many: int) -> _Drawn:
    """The link to write for one of several requests; an error names which."""
    try:
        return _meant(home, asked)
    except NacreError as error:
        if many > 1:
            error.args = (f"link {at} of {many}: {error.message}; none was drawn",)
        raise


def _meant(home: Home, asked: NewLink) -> _Drawn:
    source = get(home, asked.source)
    target = asked.target if asked.target.startswith(CODE) else get(home, asked.target).id
    rel = asked.relation.value
    if source.id == target:
        raise Conflict("a memory cannot be linked with itself", hint="give two different memories")
    if source.retired:
        raise Conflict(f"{source.subject!r} is retired", hint=f"nacre unretire {source.id[-8:]}")
    if asked.relation in _OF_CODE:
        raise InvalidInput(
            f"{rel} links symbols of code, not memories",
            hint="between memories: depends_on, builds_on",
        )
    if asked.origin in COMPUTED:
        raise InvalidInput(
            f"links of origin {asked.origin!r} are computed", hint="leave out --origin"
        )
    valid = Validity(asked.since, asked.until)
    _refuse_backwards(valid)
    if rel in _DECISIVE:
        return _judged(home, asked, source, target)
    reason = home.redactor.clean(asked.reason) if asked.reason else None
    origin = AGENT if home.actor.is_agent else asked.origin
    return _Drawn(
        source,
        Link(rel, target, reason, None if origin == MANUAL else origin, asked.strength, valid),
    )


def _judged(home: Home, asked: NewLink, source: Memory, target: str) -> _Drawn:
    """A link that decides what holds; a contradiction is stored with the later memory."""
    if (asked.strength, asked.since, asked.until) != (None, None, None):
        raise InvalidInput(
            f"{asked.relation} takes no strength and no end", hint="leave out strength and end"
        )
    other = home.memories.find(target)
    if other is None or not other.is_active or source.superseded_by:
        raise Conflict(
            f"{asked.relation} links two active memories",
            hint="nacre show shows which one is retired or superseded",
        )
    if asked.relation == CONTRADICTS and other.is_said_after(source):
        source, other = other, source
    reason = home.redactor.clean(asked.reason) if asked.reason else None
    return _Drawn(source, Link(asked.relation.value, other.id, reason))


def _refuse_backwards(valid: Validity) -> None:
    if valid.since and valid.until and valid.until <= valid.since:
        raise InvalidInput(
            f"a link that begins {valid.since} cannot end {valid.until}", hint="give a later end"
        )


_REMEDY = {
    SUPERSEDES: "nacre graph unlink takes it away: what it superseded holds again",
    CONTRADICTS: "nacre review resolve settles it",
}


def _find(home: Home, asked: UnlinkRequest) -> tuple[Memory, list[_Drawn]]:
    """The memory that holds the requested links, and these; without a relation, in either direction.

    Raises NotFound, Conflict.
    """
    source = get(home, asked.source)
    target = asked.target if asked.target.startswith(CODE) else _other_end(home, asked.target)
    ends = [(source, target)]
    if asked.relation is None and (other := home.memories.find(target)):
        ends.append((other, source.id))
    for holder, to in ends:
        refuse_broken(home, holder)
        if found := [
            one for one in holder.links if one.to == to and asked.relation in (None, one.rel)
        ]:
            return holder, [_Drawn(holder, one) for one in found]
    for edge in home.links.of(source.id):
        if target in (edge.source, edge.target) and asked.relation in (None, edge.rel):
            raise _not_here(edge.origin, source)
    raise NotFound(
        f"{source.subject!r} has no such link",
        hint=f"nacre graph list --of {source.id[-8:]} shows its links",
    )


def _other_end(home: Home, reference: str) -> str:
    """The id of the memory at the other end; one that is gone is named by its id."""
    try:
        return get(home, reference).id
    except NotFound:
        return reference


def _not_here(origin: str, source: Memory) -> NacreError:
    """Why an existing link cannot be changed from this side."""
    if origin == IN_BODY:
        return Conflict(
            "the text names that memory: [[…]]",
            hint=f"nacre edit {source.id[-8:]} changes the text",
        )
    if origin == ALIKE:
        return Conflict("that is no link: both are alike", hint="likeness is computed")
    return Conflict(
        "that link leads the other way", hint="give the two memories the other way round"
    )


def _present(drawn: _Drawn) -> Link | None:
    """The link that is there already, and would be changed."""
    name = (drawn.link.rel, drawn.link.to)
    return next((one for one in drawn.source.links if (one.rel, one.to) == name), None)


def _may(home: Home, source: Memory, link: Link) -> bool:
    """Whether the actor may draw or change a link: an agent only its own, of memories that it stored."""
    if not home.actor.is_agent:
        return True
    return link.origin == AGENT and not is_owners(source) and link.rel not in _DECISIVE


def _wish(home: Home, wanted: Sequence[_Drawn], what: str) -> tuple[str, ...]:
    """Add the changes that an agent wants to the review queue; returns the ids of the memories."""
    nodes = nodes_of(home, {one.link.to for one in wanted})
    for one in wanted:
        wish(
            home,
            [one.source],
            f"{what}: {one.link.rel} {nodes[one.link.to].subject or one.link.to}",
        )
    return tuple(dict.fromkeys(one.source.id for one in wanted))


def _draw(change: Change, drawn: Iterable[_Drawn]) -> tuple[int, int]:
    """Write links; returns the numbers of new and of changed ones."""
    made = changed = 0
    sources: dict[str, Memory] = {}
    wanted: dict[str, dict[tuple[str, str], Link]] = {}
    for one in drawn:
        sources[one.source.id] = one.source
        wanted.setdefault(one.source.id, {})[one.link.rel, one.link.to] = one.link
    for source in sources.values():
        refuse_broken(change.home, source)
        before = {(one.rel, one.to): one for one in source.links}
        after = {**before, **wanted[source.id]}
        made += len(after) - len(before)
        changed += sum(after[name] != one for name, one in before.items())
        if after != before:
            _write(change, source, list(after.values()))
    return made, changed


def _write(change: Change, source: Memory, links: Sequence[Link]) -> None:
    """Write the links of a memory; if ``supersedes`` links change, update the other side."""
    after = replace(source, links=tuple(links))
    change.set_links(after)
    if {one.to for one in source.links if one.rel == SUPERSEDES} ^ {
        one.to for one in links if one.rel == SUPERSEDES
    }:
        change.put(agreed(change.home, [(source, after)]))


def _shown(home: Home, drawn: Sequence[_Drawn]) -> tuple[LinkLine, ...]:
    nodes = nodes_of(home, {end for one in drawn for end in (one.source.id, one.link.to)})
    today = home.today()
    return tuple(
        LinkLine(
            nodes[one.source.id],
            one.link.rel,
            nodes[one.link.to],
            one.link.origin or MANUAL,
            USUAL_STRENGTH if one.link.strength is None else one.link.strength,
            one.link.valid,
            one.link.reason,
            holds_on(one.link.valid, today),
        )
        for one in drawn
    )


# ----------------------------------------------------------------------------
# List links, and follow them from one memory.


_COMPANIONS = 10


def list_links(home: Home, asked: LinksRequest) -> LinkPage:
    """Links between memories that hold, or all at one memory; those of the newest memories first. Raises NotFound."""
    catch_up(home)
    day = asked.as_of or home.today()
    wanted = EdgeFilter(
        _named(home, asked.reference) if asked.reference else None,
        asked.relations,
        asked.origins,
        None if asked.ended else day,
        asked.project,
    )
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
        raise NotFound(
            f"nothing is known of {walk.names[0]!r}",
            hint="nacre graph ingest-code reads a repository",
        )
    nodes = nodes_of(home, walk.names)
    together = _together(home, walk.names[0])
    return Traversal(
        tuple(nodes[name] for name in walk.names), tuple(walk.hops), walk.more, together
    )


def _together(home: Home, name: str) -> tuple[Companion, ...]:
    edges = home.co_recall.of([name], today(home))[:_COMPANIONS]
    nodes = nodes_of(home, {edge.other for edge in edges})
    return tuple(Companion(nodes[edge.other], edge.weight, edge.sessions) for edge in edges)


def _named(home: Home, reference: str) -> str:
    return reference if reference.startswith(CODE) else get(home, reference).id


def _edges_at(
    home: Home, ids: Collection[str], asked: TraverseRequest, day: date, walk: _Walk
) -> list[LinksEdge]:
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

    def step(self, ring: Sequence[str], edges: Sequence[LinksEdge]) -> list[str]:
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

    def _follow(self, edge: LinksEdge, here: str, there: str, *, is_outgoing: bool) -> None:
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
                self._places[here],
                self._places[there],
                edge.rel,
                is_outgoing,
                edge.origin,
                edge.strength,
                edge.valid,
                edge.reason,
                is_again,
            )
        )


# ----------------------------------------------------------------------------
# The graph as a picture needs it: memories by number, the most linked first, and the links between
# them.


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
        link
        for link in home.links.map_links(day, asked.relations, alike=asked.alike)
        if link[0] in rows and link[2] in rows
    ]
    degrees = Counter(link[0] for link in links)
    degrees.update(link[2] for link in links)
    chosen = sorted(rows.values(), key=lambda row: (-degrees[row[0]], -row[4], row[0]))[
        : asked.limit
    ]
    places = {row[0]: at for at, row in enumerate(chosen)}
    return GraphMap(
        tuple(_node_map(row, degrees[row[0]]) for row in chosen),
        tuple(_edge(link, places) for link in links if link[0] in places and link[2] in places),
        len(rows),
        len(links),
    )


def _node_map(row: Row, degree: int) -> MapNode:
    name, subject, kind, project, importance, is_superseded, is_trusted, began = row
    state = "superseded" if is_superseded else "active"
    return MapNode(
        name,
        subject,
        Kind(kind),
        project,
        importance,
        degree,
        state,
        bool(is_trusted),
        date.fromisoformat(began),
    )


def _edge(link: Row, places: Mapping[str, int]) -> MapEdge:
    found = as_edge(link)
    return MapEdge(
        places[found.source],
        places[found.target],
        found.rel,
        found.strength,
        found.valid,
        found.origin,
    )
