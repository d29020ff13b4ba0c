"""``memory_graph``: links, followed, listed, drawn and ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nacre.base.text import count, count_tokens, harmless, one_line, shorten
from nacre.base.times import shown_day
from nacre.errors import InvalidInput
from nacre.home import views
from nacre.memories.decision import ListRequest
from nacre.memories.graph import (
    InvalidateRequest,
    LinkRequest,
    LinksRequest,
    NewLink,
    Relation,
    TraverseRequest,
    UnlinkRequest,
)
from nacre.recall.ranking import DeepQuery
from nacre.serve import mcp_arguments
from nacre.serve.mcp import (
    OUTSIDE,
    Answer,
    Desk,
    cut,
    fitting,
    framed,
    going_on,
    indented,
    origin_of,
    page_of,
    record_of,
    said_in,
    short_id,
    short_session,
    title_of,
)
from nacre.serve.mcp_tools import ask_code
from nacre.sessions.find import ChatSearchRequest
from nacre.values import context as contexts
from nacre.values.codec import plain, stamp
from nacre.values.memory import USUAL_STRENGTH, Memory
from nacre.values.recall import (
    DeepResult,
    Filter,
    MemoryHit,
    Mode,
    RecallQuery,
    RecallResult,
    TurnHit,
)
from nacre.values.session import Trust

if TYPE_CHECKING:
    from nacre.memories.graph import Hop, LinkChange, LinkLine, LinkPage, Node, Traversal
    from nacre.sessions.search import Passage, Passages
    from nacre.values.context import ContextBlock

_HINT = "memory_search shows the ids of memories"


def graph(desk: Desk, asked: mcp_arguments.Graph) -> Answer:
    """One of six things that can be done with links, or a question about code."""
    actions = {
        "traverse": _traverse,
        "list": _list,
        "link": _link,
        "unlink": _unlink,
        "invalidate": _invalidate,
        "bulk_link": _bulk_link,
    }
    if asked.action not in actions:
        return ask_code(desk, asked)
    with desk.naming(_HINT):
        return actions[asked.action](desk, asked)


def _traverse(desk: Desk, asked: mcp_arguments.Graph) -> Answer:
    request = TraverseRequest(
        reference=_required(asked, "id"),
        depth=asked.depth,
        direction=asked.direction,
        relations=asked.relations,
        as_of=asked.as_of,
        limit=asked.limit,
    )
    found: Traversal = desk.call("graph-show", request)
    depths = _depths(found)
    lines = [_hop(found, hop, depths[hop.parent]) for hop in _in_order(found)]
    shown = fitting(lines, asked.budget)
    more = "more: a higher budget or limit, fewer relations or a smaller depth."
    text = framed(
        f"{_node(found.nodes[0])}: {count(len(lines), 'link', 'links')}.",
        "\n".join(lines[:shown]),
        _together(found),
        f"{len(lines) - shown} {more}"
        if shown < len(lines)
        else f"There are {more}"
        if found.more
        else "",
    )
    records = {
        "memory": found.nodes[0].id,
        "edges": [_hop_record(found, hop) for hop in found.hops],
        "together": [one.node.id for one in found.together],
        "more": found.more,
    }
    return Answer(text, records)


def _together(found: Traversal) -> str:
    lines = [f"  {_node(one.node)}" for one in found.together]
    return "\n".join(["Used together with:", *lines]) if lines else ""


def _depths(found: Traversal) -> list[int]:
    depths = [0] * len(found.nodes)
    for hop in found.hops:
        if not hop.is_again:
            depths[hop.child] = depths[hop.parent] + 1
    return depths


def _in_order(found: Traversal) -> list[Hop]:
    """Links as a tree is read: below each memory those that follow from it."""
    below: dict[int, list[Hop]] = {}
    for hop in found.hops:
        below.setdefault(hop.parent, []).append(hop)
    told: list[Hop] = []
    waiting = below.get(0, [])[::-1]
    while waiting:
        hop = waiting.pop()
        told.append(hop)
        waiting += [] if hop.is_again else below.get(hop.child, [])[::-1]
    return told


def _list(desk: Desk, asked: mcp_arguments.Graph) -> Answer:
    relations = (asked.relation,) if asked.relation else asked.relations
    request = LinksRequest(
        reference=asked.id,
        relations=relations,
        origins=asked.origins,
        as_of=asked.as_of,
        limit=asked.limit,
    )
    found: LinkPage = desk.call("graph-list", request)
    lines = [_line(one) for one in found.links]
    shown = fitting(lines, asked.budget)
    told = f"{count(found.total, 'link', 'links')} in all."
    return Answer(
        framed("\n".join(lines[:shown]) or "No such link.", told),
        {"links": [_record(one) for one in found.links], "total": found.total},
    )


def _link(desk: Desk, asked: mcp_arguments.Graph) -> Answer:
    relation = _required(asked, "relation")
    if relation not in {one.value for one in Relation}:
        raise InvalidInput(
            f"{relation!r} is no relation",
            hint=f"one of: {', '.join(one.value for one in Relation)}",
        )
    drawn = NewLink(
        source=_required(asked, "id"),
        relation=Relation(relation),
        target=_required(asked, "to"),
        strength=asked.strength,
        since=asked.valid_from,
        until=asked.valid_to,
        reason=asked.reason,
    )
    return _done(desk.call("graph-link", LinkRequest(links=(drawn,))), asked)


def _bulk_link(desk: Desk, asked: mcp_arguments.Graph) -> Answer:
    if not asked.links:
        raise InvalidInput(
            "bulk_link needs links", hint='links: [{"id": …, "relation": "depends_on", "to": …}]'
        )
    drawn = tuple(
        NewLink(
            source=one.id,
            relation=one.relation,
            target=one.to,
            strength=one.strength,
            since=one.valid_from,
            until=one.valid_to,
            reason=one.reason,
        )
        for one in asked.links
    )
    return _done(desk.call("graph-link", LinkRequest(links=drawn)), asked)


def _unlink(desk: Desk, asked: mcp_arguments.Graph) -> Answer:
    return _done(desk.call("graph-unlink", UnlinkRequest(**_ends(asked))), asked)


def _invalidate(desk: Desk, asked: mcp_arguments.Graph) -> Answer:
    return _done(
        desk.call("graph-invalidate", InvalidateRequest(**_ends(asked), at=asked.at)), asked
    )


def _ends(asked: mcp_arguments.Graph) -> dict[str, Any]:
    return {
        "source": _required(asked, "id"),
        "target": _required(asked, "to"),
        "relation": asked.relation or None,
    }


def _required(asked: mcp_arguments.Graph, name: str) -> str:
    value: str | None = getattr(asked, name)
    if not value or not value.strip():
        raise InvalidInput(
            f"{asked.action} needs {name}", hint="link needs id, relation and to; traverse an id"
        )
    return value.strip()


def _done(done: LinkChange, asked: mcp_arguments.Graph) -> Answer:
    told = [
        f"{number:,} {word}"
        for number, word in (
            (done.made, "new"),
            (done.changed, "changed"),
            (done.removed, "removed"),
        )
        if number
    ]
    waiting = (
        f"{count(len(done.waiting), 'memory is', 'memories are')} the person's: what you want of their links waits "
        "for them to review."
    )
    head = f"Links: {', '.join(told)}." if told else "" if done.waiting else "It is so already."
    lines = [_line(one) for one in done.links]
    text = framed(
        head, waiting if done.waiting else "", "\n".join(lines[: fitting(lines, asked.budget)])
    )
    records = {
        "made": done.made,
        "changed": done.changed,
        "removed": done.removed,
        "waiting": list(done.waiting),
        "links": [_record(one) for one in done.links],
    }
    return Answer(text, records)


def _hop(found: Traversal, hop: Hop, depth: int) -> str:
    parent, child = found.nodes[hop.parent], found.nodes[hop.child]
    arrow = f"{hop.rel} →" if hop.is_outgoing else f"← {hop.rel}"
    again = " (told above)" if hop.is_again else ""
    return f"{'  ' * depth}[{short_id(parent.id)}] {one_line(harmless(arrow))} {_node(child)}{_facts(hop)}{again}"


def _line(one: LinkLine) -> str:
    return f"{_node(one.source)} {one_line(harmless(one.rel))} → {_node(one.target)}{_facts(one)}"


def _node(node: Node) -> str:
    name = node.id if node.state == "code" else short_id(node.id)
    mark = (
        " (UNTRUSTED)"
        if not node.trusted
        else f" ({node.state})"
        if node.state in ("superseded", "retired")
        else ""
    )
    return f"[{harmless(name)}] {one_line(harmless(shorten(node.subject or 'unknown', 80)))}{mark}"


def _facts(one: Hop | LinkLine) -> str:
    """What is not usual about a link."""
    days = (("from", one.valid.since), ("until", one.valid.until))
    told = [
        f"{one.strength:g}" if one.strength != USUAL_STRENGTH else "",
        one.origin,
        *(f"{word} {day}" for word, day in days if day),
        one_line(harmless(one.reason)) if one.reason else "",
    ]
    facts = ", ".join(filter(None, told))
    return f" ({facts})" if facts else ""


def _hop_record(found: Traversal, hop: Hop) -> dict[str, Any]:
    return {
        "from": found.nodes[hop.parent].id,
        "rel": hop.rel,
        "id": found.nodes[hop.child].id,
        "outgoing": hop.is_outgoing,
        "origin": hop.origin,
        "strength": hop.strength,
        "valid": plain(hop.valid),
        "reason": hop.reason,
    }


def _record(one: LinkLine) -> dict[str, Any]:
    return {
        "from": one.source.id,
        "rel": one.rel,
        "to": one.target.id,
        "origin": one.origin,
        "strength": one.strength,
        "valid": plain(one.valid),
        "reason": one.reason,
        "holds": one.holds,
    }


# ----------------------------------------------------------------------------
# ``memory_search`` and ``memory_list``.


_MOST = 200
_HIT_TOKENS = 220
"""Of one memory's content in an answer with several; the rest is had by memory_get."""

_TURN_TOKENS = 90
_MOST_OF = 0.6


def search(desk: Desk, asked: mcp_arguments.Search) -> Answer:
    """Memories that answer a question, with what was said beside them."""
    if asked.context == "session-start":
        return _at_start(desk, asked)
    if asked.context == "chats":
        return _chats(desk, asked)
    wanted = Filter(
        projects=desk.projects(asked.project),
        kinds=asked.kinds,
        tags=asked.tags,
        since=desk.moment("since", asked.since),
        until=desk.moment("until", asked.until),
        tools=(asked.channel,) if asked.channel else (),
    )
    if asked.deep and asked.query.strip() and not asked.cursor:
        found_deep = _deep(desk, asked, wanted)
        if found_deep:
            return found_deep
    at = page_of(asked.cursor)
    browses = asked.context == "browse" or not asked.query.strip()
    query = RecallQuery(
        asked.query,
        wanted,
        Mode.BROWSE if browses else Mode.HYBRID,
        min(at + asked.limit, _MOST),
        around=desk.moment("around", asked.around),
        radius_days=asked.around_days,
        threshold=asked.threshold,
        ignore_time=asked.ignore_time,
        turns=0 if at or browses else asked.turns,
        update=at == 0,
        session=desk.session,
    )
    found: RecallResult = desk.call("recall", query)
    return _told(asked, found, at)


def _at_start(desk: Desk, asked: mcp_arguments.Search) -> Answer:
    """What a session in the working folder begins with: for hosts whose hooks do not tell it."""
    if asked.project or asked.cursor:
        raise InvalidInput(
            "session-start is about the working folder, on one page",
            hint="leave project and cursor out",
        )
    request = contexts.ContextRequest(
        prompt=asked.query, folder=desk.folder, budget_tokens=asked.budget
    )
    block: ContextBlock = desk.call("context", request)
    inner = (
        block.text.partition("\n\n")[2].rpartition("\n")[0].strip()
    )  # our own head goes before it
    return Answer(
        framed(inner or "Nothing is known yet that a session here should begin with."),
        {
            "items": [
                {"part": item.part.value, "ref": item.ref, "text": item.text}
                for item in block.items
            ]
        },
    )


def _chats(desk: Desk, asked: mcp_arguments.Search) -> Answer:
    """What was said in channels: passages of question and answer."""
    if not asked.query.strip():
        raise InvalidInput("chats needs a query", hint="a question, or words that were said")
    request = ChatSearchRequest(
        query=asked.query,
        limit=asked.limit,
        channel=asked.channel,
        since=desk.moment("since", asked.since),
        until=desk.moment("until", asked.until),
    )
    found: Passages = desk.call("search-chats", request)
    blocks = [_passage(one) for one in found.passages]
    shown = fitting(blocks, asked.budget)
    records = [
        {
            "session": one.session,
            "key": one.key,
            "channel": one.channel,
            "score": one.score,
            "trust": one.trust.value,
            "time": one.time.isoformat() if one.time else None,
            "text": one.text,
        }
        for one in found.passages[:shown]
    ]
    return Answer(
        framed(
            "\n".join(blocks[:shown])
            or "Nothing that was said in a channel comes near. Other words may find it.",
            f"{len(blocks) - shown} more: a higher budget shows them."
            if shown < len(blocks)
            else "",
        ),
        {"passages": records},
    )


def _passage(passage: Passage) -> str:
    outside = f" (UNTRUSTED: {OUTSIDE})" if passage.trust is Trust.UNTRUSTED else ""
    where = harmless(one_line(passage.key))
    return f"- {where}, {short_session(passage.session)}{outside}:\n{indented(passage.text)}"


def _told(asked: mcp_arguments.Search, found: RecallResult, at: int) -> Answer:
    hits = found.hits[at:]
    blocks = [_hit(hit) for hit in hits]
    shown = fitting(blocks, asked.budget)
    beside = _not_told(found.turns, hits[:shown])
    turns = [_turn(hit) for hit in beside]
    room = asked.budget - sum(map(count_tokens, blocks[:shown]))
    told_turns = fitting(turns, room) if turns and room > _TURN_TOKENS else 0
    last = at + shown
    more = last < len(found.hits) or (len(hits) == asked.limit and last < _MOST)
    text = framed(
        "" if hits or told_turns else _nothing(asked.channel),
        "\n".join((*blocks[:shown], *turns[:told_turns])),
        going_on("memory_search", last) if hits and more else "",
        f"“{found.time_words}”: what is {found.span} counts more. ignore_time leaves this out."
        if found.time_words
        else "",
        _degraded(found),
    )
    records = {
        "memories": [
            record_of(hit.memory)
            | {
                "score": round(hit.score, 4),
                "confidence": hit.confidence.value,
                "candidate": hit.candidate,
                "doubt": hit.doubt,
                "space": hit.space,
            }
            for hit in hits[:shown]
        ],
        "turns": [_turn_record(hit) for hit in beside[:told_turns]],
        "cursor": str(last) if hits and more else None,
        "since": found.since and stamp(found.since),
        "until": found.until and stamp(found.until),
        "time_words": found.time_words,
    }
    return Answer(text, records)


def _not_told(turns: Sequence[TurnHit], hits: Sequence[MemoryHit]) -> list[TurnHit]:
    """The turns without those of which a memory that is shown says most."""
    told = {one.turn_id: len(hit.memory.content) for hit in hits for one in hit.evidence}
    return [hit for hit in turns if told.get(hit.turn.id, 0) < _MOST_OF * len(hit.excerpt)]


def _nothing(channel: str | None) -> str:
    if channel:
        return f"Nothing in {harmless(one_line(channel))} matches. Channels: claude-code, codex, …"
    return 'Nothing matches. Other words, fewer filters, or project "*" may find it.'


def _hit(hit: MemoryHit) -> str:
    memory = hit.memory
    content = cut(memory.content, _HIT_TOKENS)
    rest = (
        f"\n  (cut: memory_get {short_id(memory.id)} has the rest)"
        if content != memory.content
        else ""
    )
    doubts = (
        f"\n  may be outdated by {', '.join(map(short_id, hit.outdated_by))}"
        if hit.outdated_by
        else ""
    )
    if hit.candidate:
        keep = f"the owner can keep it: nacre review keep {short_id(memory.id)}"
        doubts += f"\n  pending candidate, not confirmed by the owner; {keep}"
    doubts += f"\n  may be out of date: {one_line(harmless(hit.doubt))}" if hit.doubt else ""
    title = title_of(memory)
    body = indented(content)
    head = (
        f"[{short_id(memory.id)}] {title}"
        if not _says(content, title)
        else f"[{short_id(memory.id)}]"
    )
    space = f"space {hit.space}, " if hit.space else ""
    return f"{head}\n{body}{rest}{doubts}\n  ({hit.confidence.value}; {space}{origin_of(memory)}; {said_in(memory)})"


def _says(content: str, title: str) -> bool:
    return title.rstrip("….").lower() in one_line(harmless(content)).lower()


def _turn(hit: TurnHit) -> str:
    turn = hit.turn
    day = f"{shown_day(turn.time)} " if turn.time else ""
    outside = ", UNTRUSTED" if turn.trust is Trust.UNTRUSTED else ""
    words = one_line(harmless(cut(hit.excerpt, _TURN_TOKENS)))
    return f"- {hit.confidence.value}: {day}{turn.speaker.value} in {short_session(hit.session.id)}{outside}: {words}"


def _turn_record(hit: TurnHit) -> dict[str, Any]:
    turn = hit.turn
    return {
        "session": hit.session.id,
        "turn": turn.id,
        "confidence": hit.confidence.value,
        "speaker": turn.speaker.value,
        "trust": turn.trust.value,
        "time": turn.time.isoformat() if turn.time else None,
        "excerpt": hit.excerpt,
    }


def _degraded(found: RecallResult | DeepResult) -> str:
    lanes = [
        f"{lane.name} {lane.state.value}" + (f" ({lane.note})" if lane.note else "")
        for lane in found.degraded
    ]
    return (
        f"Not all of memory was looked through: {one_line(harmless('; '.join(lanes)))}."
        if lanes
        else ""
    )


def _deep(desk: Desk, asked: mcp_arguments.Search, wanted: Filter) -> Answer | None:
    """What deep recall has to tell; ``None`` where it is silent, and single memories may still be known."""
    desk.tell("choosing the project and its memories")
    here = desk.place(None).project
    projects = wanted.projects if asked.project else ()
    query = DeepQuery(
        text=asked.query, filter=replace(wanted, projects=projects), here=here, session=desk.session
    )
    found: DeepResult = desk.call("deep-recall", query)
    records = {
        "memories": [record_of(hit.memory) for hit in found.hits],
        "project": found.project,
        "clarify": list(found.clarify),
    }
    if not found.context:
        return None
    inner = found.context.partition("\n")[2].rpartition("\n")[0].strip()
    told = cut(inner, asked.budget)
    ids = ", ".join(short_id(hit.memory.id) for hit in found.hits)
    rest = (
        f"(Cut: a higher budget, or memory_get with {ids}, has the rest.)" if told != inner else ""
    )
    return Answer(framed(told, rest, _degraded(found)), records)


def list_memories(desk: Desk, asked: mcp_arguments.List) -> Answer:
    """Active memories, the newest first."""
    wanted = Filter(
        projects=desk.projects(asked.project),
        kinds=asked.kinds,
        tags=asked.tags,
        since=desk.moment("since", asked.since),
        until=desk.moment("until", asked.until),
        min_importance=asked.min_importance,
    )
    at = page_of(asked.cursor)
    request = ListRequest(filter=wanted, words=asked.query, limit=asked.limit, offset=at)
    found: views.Listing = desk.call("list", request)
    lines = [_line_searching(memory) for memory in found.memories]
    shown = fitting(lines, asked.budget)
    last = at + shown
    text = framed(
        f"{count(found.total, 'memory', 'memories')}, the newest first:"
        if found.total
        else "No memory fits.",
        "\n".join(lines[:shown]),
        going_on("memory_list", last, found.total) if last < found.total else "",
    )
    records = {
        "memories": [record_of(memory) for memory in found.memories[:shown]],
        "total": found.total,
        "cursor": str(last) if last < found.total else None,
    }
    return Answer(text, records)


def _line_searching(memory: Memory) -> str:
    return f"- [{short_id(memory.id)}] {title_of(memory)} ({origin_of(memory)})"
