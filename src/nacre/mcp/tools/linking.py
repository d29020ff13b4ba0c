"""``memory_graph``: links, followed, listed, drawn and ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nacre.errors import InvalidInput
from nacre.graph.requests import (
    InvalidateRequest,
    LinkRequest,
    LinksRequest,
    NewLink,
    Relation,
    TraverseRequest,
    UnlinkRequest,
)
from nacre.mcp import arguments
from nacre.mcp.answers import Answer, fitting, framed, short_id
from nacre.mcp.desk import Desk
from nacre.mcp.tools.code import ask_code
from nacre.text.passages import count, harmless, one_line, shorten
from nacre.values.codec import plain
from nacre.values.memory import USUAL_STRENGTH

if TYPE_CHECKING:
    from nacre.graph.values import Hop, LinkChange, LinkLine, LinkPage, Node, Traversal

_HINT = "memory_search shows the ids of memories"


def graph(desk: Desk, asked: arguments.Graph) -> Answer:
    """One of six things that can be done with links, or a question about code."""
    actions = {
        "traverse": _traverse, "list": _list, "link": _link, "unlink": _unlink, "invalidate": _invalidate,
        "bulk_link": _bulk_link,
    }  # fmt: skip
    if asked.action not in actions:
        return ask_code(desk, asked)
    with desk.naming(_HINT):
        return actions[asked.action](desk, asked)


def _traverse(desk: Desk, asked: arguments.Graph) -> Answer:
    request = TraverseRequest(
        reference=_required(asked, "id"), depth=asked.depth, direction=asked.direction, relations=asked.relations,
        as_of=asked.as_of, limit=asked.limit,
    )  # fmt: skip
    found: Traversal = desk.call("graph-show", request)
    depths = _depths(found)
    lines = [_hop(found, hop, depths[hop.parent]) for hop in _in_order(found)]
    shown = fitting(lines, asked.budget)
    more = "more: a higher budget or limit, fewer relations or a smaller depth."
    text = framed(
        f"{_node(found.nodes[0])}: {count(len(lines), 'link', 'links')}.",
        "\n".join(lines[:shown]),
        _together(found),
        f"{len(lines) - shown} {more}" if shown < len(lines) else f"There are {more}" if found.more else "",
    )
    records = {
        "memory": found.nodes[0].id, "edges": [_hop_record(found, hop) for hop in found.hops],
        "together": [one.node.id for one in found.together], "more": found.more,
    }  # fmt: skip
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


def _list(desk: Desk, asked: arguments.Graph) -> Answer:
    relations = (asked.relation,) if asked.relation else asked.relations
    request = LinksRequest(
        reference=asked.id, relations=relations, origins=asked.origins, as_of=asked.as_of, limit=asked.limit
    )
    found: LinkPage = desk.call("graph-list", request)
    lines = [_line(one) for one in found.links]
    shown = fitting(lines, asked.budget)
    told = f"{count(found.total, 'link', 'links')} in all."
    return Answer(
        framed("\n".join(lines[:shown]) or "No such link.", told),
        {"links": [_record(one) for one in found.links], "total": found.total},
    )


def _link(desk: Desk, asked: arguments.Graph) -> Answer:
    relation = _required(asked, "relation")
    if relation not in {one.value for one in Relation}:
        raise InvalidInput(f"{relation!r} is no relation", hint=f"one of: {', '.join(one.value for one in Relation)}")
    drawn = NewLink(
        source=_required(asked, "id"), relation=Relation(relation), target=_required(asked, "to"),
        strength=asked.strength, since=asked.valid_from, until=asked.valid_to, reason=asked.reason,
    )  # fmt: skip
    return _done(desk.call("graph-link", LinkRequest(links=(drawn,))), asked)


def _bulk_link(desk: Desk, asked: arguments.Graph) -> Answer:
    if not asked.links:
        raise InvalidInput("bulk_link needs links", hint='links: [{"id": …, "relation": "depends_on", "to": …}]')
    drawn = tuple(
        NewLink(
            source=one.id, relation=one.relation, target=one.to, strength=one.strength, since=one.valid_from,
            until=one.valid_to, reason=one.reason,
        )
        for one in asked.links
    )  # fmt: skip
    return _done(desk.call("graph-link", LinkRequest(links=drawn)), asked)


def _unlink(desk: Desk, asked: arguments.Graph) -> Answer:
    return _done(desk.call("graph-unlink", UnlinkRequest(**_ends(asked))), asked)


def _invalidate(desk: Desk, asked: arguments.Graph) -> Answer:
    return _done(desk.call("graph-invalidate", InvalidateRequest(**_ends(asked), at=asked.at)), asked)


def _ends(asked: arguments.Graph) -> dict[str, Any]:
    return {"source": _required(asked, "id"), "target": _required(asked, "to"), "relation": asked.relation or None}


def _required(asked: arguments.Graph, name: str) -> str:
    value: str | None = getattr(asked, name)
    if not value or not value.strip():
        raise InvalidInput(f"{asked.action} needs {name}", hint="link needs id, relation and to; traverse an id")
    return value.strip()


def _done(done: LinkChange, asked: arguments.Graph) -> Answer:
    told = [
        f"{number:,} {word}"
        for number, word in ((done.made, "new"), (done.changed, "changed"), (done.removed, "removed"))
        if number
    ]
    waiting = (
        f"{count(len(done.waiting), 'memory is', 'memories are')} the person's: what you want of their links waits "
        "for them to review."
    )
    head = f"Links: {', '.join(told)}." if told else "" if done.waiting else "It is so already."
    lines = [_line(one) for one in done.links]
    text = framed(head, waiting if done.waiting else "", "\n".join(lines[: fitting(lines, asked.budget)]))
    records = {
        "made": done.made, "changed": done.changed, "removed": done.removed, "waiting": list(done.waiting),
        "links": [_record(one) for one in done.links],
    }  # fmt: skip
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
    mark = " (UNTRUSTED)" if not node.trusted else f" ({node.state})" if node.state in ("superseded", "retired") else ""
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
        "from": found.nodes[hop.parent].id, "rel": hop.rel, "id": found.nodes[hop.child].id,
        "outgoing": hop.is_outgoing, "origin": hop.origin, "strength": hop.strength, "valid": plain(hop.valid),
        "reason": hop.reason,
    }  # fmt: skip


def _record(one: LinkLine) -> dict[str, Any]:
    return {
        "from": one.source.id, "rel": one.rel, "to": one.target.id, "origin": one.origin, "strength": one.strength,
        "valid": plain(one.valid), "reason": one.reason, "holds": one.holds,
    }  # fmt: skip
