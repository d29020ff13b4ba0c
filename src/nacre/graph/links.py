"""Draw, end and remove links. A link is stored in the front matter of its source.

``supersedes`` and ``contradicts`` say what holds: the first is written on both sides, the second is a doubt that waits
for the owner (``nacre review``). Neither has a strength, an end or an origin of its own.

An agent draws and ends links of what it stored itself. What it wants of the owner's memories waits for review.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date

from nacre.dedup.comparison import CONTRADICTS, SUPERSEDES
from nacre.dedup.supersession import agreed
from nacre.errors import Conflict, InvalidInput, NacreError, NotFound
from nacre.graph.nodes import CODE, holds_on, nodes_of
from nacre.graph.requests import (
    InvalidateRequest,
    LinkRequest,
    NewLink,
    Relation,
    UnlinkOriginRequest,
    UnlinkRequest,
)
from nacre.graph.values import LinkChange, LinkLine
from nacre.home.change import BATCH, Change
from nacre.home.home import Home
from nacre.home.operations import subject_of
from nacre.memories.agent_rights import is_owners, wish
from nacre.memories.scan import catch_up
from nacre.memories.store import get, refuse_broken
from nacre.storage.links import ALIKE, IN_BODY
from nacre.values.memory import USUAL_STRENGTH, Link, Memory, Validity

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
        wanted = [_numbered(home, one, at, len(asked.links)) for at, one in enumerate(asked.links, 1)]
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
        raise InvalidInput(f"links of origin {asked.origin!r} are computed", hint="they would come again")
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
        raise InvalidInput(f"{rel} links symbols of code, not memories", hint="between memories: depends_on, builds_on")
    if asked.origin in COMPUTED:
        raise InvalidInput(f"links of origin {asked.origin!r} are computed", hint="leave out --origin")
    valid = Validity(asked.since, asked.until)
    _refuse_backwards(valid)
    if rel in _DECISIVE:
        return _judged(home, asked, source, target)
    reason = home.redactor.clean(asked.reason) if asked.reason else None
    origin = AGENT if home.actor.is_agent else asked.origin
    return _Drawn(source, Link(rel, target, reason, None if origin == MANUAL else origin, asked.strength, valid))


def _judged(home: Home, asked: NewLink, source: Memory, target: str) -> _Drawn:
    """A link that decides what holds; a contradiction is stored with the later memory."""
    if (asked.strength, asked.since, asked.until) != (None, None, None):
        raise InvalidInput(f"{asked.relation} takes no strength and no end", hint="leave out strength and end")
    other = home.memories.find(target)
    if other is None or not other.is_active or source.superseded_by:
        raise Conflict(
            f"{asked.relation} links two active memories", hint="nacre show shows which one is retired or superseded"
        )
    if asked.relation == CONTRADICTS and other.is_said_after(source):
        source, other = other, source
    reason = home.redactor.clean(asked.reason) if asked.reason else None
    return _Drawn(source, Link(asked.relation.value, other.id, reason))


def _refuse_backwards(valid: Validity) -> None:
    if valid.since and valid.until and valid.until <= valid.since:
        raise InvalidInput(f"a link that begins {valid.since} cannot end {valid.until}", hint="give a later end")


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
        if found := [one for one in holder.links if one.to == to and asked.relation in (None, one.rel)]:
            return holder, [_Drawn(holder, one) for one in found]
    for edge in home.links.of(source.id):
        if target in (edge.source, edge.target) and asked.relation in (None, edge.rel):
            raise _not_here(edge.origin, source)
    raise NotFound(
        f"{source.subject!r} has no such link", hint=f"nacre graph list --of {source.id[-8:]} shows its links"
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
        return Conflict("the text names that memory: [[…]]", hint=f"nacre edit {source.id[-8:]} changes the text")
    if origin == ALIKE:
        return Conflict("that is no link: both are alike", hint="likeness is computed")
    return Conflict("that link leads the other way", hint="give the two memories the other way round")


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
        wish(home, [one.source], f"{what}: {one.link.rel} {nodes[one.link.to].subject or one.link.to}")
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
    if {one.to for one in source.links if one.rel == SUPERSEDES} ^ {one.to for one in links if one.rel == SUPERSEDES}:
        change.put(agreed(change.home, [(source, after)]))


def _shown(home: Home, drawn: Sequence[_Drawn]) -> tuple[LinkLine, ...]:
    nodes = nodes_of(home, {end for one in drawn for end in (one.source.id, one.link.to)})
    today = home.today()
    return tuple(
        LinkLine(
            nodes[one.source.id], one.link.rel, nodes[one.link.to], one.link.origin or MANUAL,
            USUAL_STRENGTH if one.link.strength is None else one.link.strength, one.link.valid, one.link.reason,
            holds_on(one.link.valid, today),
        )
        for one in drawn
    )  # fmt: skip
