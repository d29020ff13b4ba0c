"""The MCP tools that search memories, list memories, and handle links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nacre.base.text import count, harmless, shorten
from nacre.base.times import shown_day
from nacre.errors import InvalidInputError
from nacre.home import views
from nacre.memories.graph import NewLink, Relation
from nacre.serve import mcp_arguments
from nacre.serve.mcp import (
    OUTSIDE,
    Desk,
    count_fitting,
    cut,
    describe_source,
    frame,
    indent,
    next_page_hint,
    origin_of,
    page_of,
    plain_line,
    plugin_tool,
    short_id,
    short_session,
    title_of,
)
from nacre.values.memory import USUAL_STRENGTH
from nacre.values.recall import DeepResult, Filter, MemoryHit, Mode, RecallResult, TurnHit
from nacre.values.session import Trust

if TYPE_CHECKING:
    from nacre.memories.graph import Hop, LinkChange, LinkLine, LinkPage, Node, Traversal
    from nacre.sessions.search import Passage, Passages
    from nacre.values.context import ContextBlock

_ID_HINT = "memory_search shows the ids of memories"


def graph(desk: Desk, arguments: mcp_arguments.Graph) -> str:
    """Show or change links between memories, or answer a question about code."""
    actions = {
        "traverse": _traverse,
        "list": _list,
        "link": _link,
        "unlink": _unlink,
        "invalidate": _unlink,
        "bulk_link": _bulk_link,
    }
    if arguments.action not in actions:
        return plugin_tool(arguments.action)(desk, arguments)
    with desk.naming(_ID_HINT):
        return actions[arguments.action](desk, arguments)


def _traverse(desk: Desk, arguments: mcp_arguments.Graph) -> str:
    tree: Traversal = desk.call(
        "graph-show",
        reference=_required(arguments, "id"),
        depth=arguments.depth,
        direction=arguments.direction,
        relations=arguments.relations,
        as_of=arguments.as_of,
        limit=arguments.limit,
    )
    lines = [_hop(tree, hop) for hop in tree.hops]
    visible = count_fitting(lines, arguments.budget)
    more = "more: a higher budget or limit, fewer relations or a smaller depth."
    return frame(
        f"{_node(tree.nodes[0])}: {count(len(lines), 'link', 'links')}.",
        "\n".join(lines[:visible]),
        f"{len(lines) - visible} {more}"
        if visible < len(lines)
        else f"There are {more}"
        if tree.more
        else "",
    )


def _list(desk: Desk, arguments: mcp_arguments.Graph) -> str:
    relations = (arguments.relation,) if arguments.relation else arguments.relations
    page: LinkPage = desk.call(
        "graph-list",
        reference=arguments.id,
        relations=relations,
        origins=arguments.origins,
        as_of=arguments.as_of,
        limit=arguments.limit,
    )
    lines = [_line(link) for link in page.links]
    visible = count_fitting(lines, arguments.budget)
    total = f"{count(page.total, 'link', 'links')} in all."
    return frame("\n".join(lines[:visible]) or "No such link.", total)


def _link(desk: Desk, arguments: mcp_arguments.Graph) -> str:
    relation = _required(arguments, "relation")
    if relation not in {option.value for option in Relation}:
        raise InvalidInputError(
            f"{relation!r} is not a relation",
            hint=f"one of: {', '.join(option.value for option in Relation)}",
        )
    _required(arguments, "id")
    _required(arguments, "to")
    return _create(desk, arguments, (arguments,))


def _create(desk: Desk, arguments: mcp_arguments.Graph, edges: Sequence[Any]) -> str:
    links = tuple(
        NewLink(
            source=edge.id.strip(),
            relation=Relation(edge.relation.strip()),
            target=edge.to.strip(),
            strength=edge.strength,
            since=edge.valid_from,
            until=edge.valid_to,
            reason=edge.reason,
        )
        for edge in edges
    )
    return _format_change(desk.call("graph-link", links=links), arguments)


def _bulk_link(desk: Desk, arguments: mcp_arguments.Graph) -> str:
    if not arguments.links:
        raise InvalidInputError(
            "bulk_link needs a list of links",
            hint='links: [{"id": …, "relation": "depends_on", "to": …}]',
        )
    return _create(desk, arguments, arguments.links)


def _unlink(desk: Desk, arguments: mcp_arguments.Graph) -> str:
    change = desk.call(
        "graph-unlink",
        source=_required(arguments, "id"),
        target=_required(arguments, "to"),
        relation=arguments.relation or None,
        ends=arguments.action == "invalidate",
        at=arguments.at,
    )
    return _format_change(change, arguments)


def _required(arguments: mcp_arguments.Graph, name: str) -> str:
    value: str | None = getattr(arguments, name)
    if not value or not value.strip():
        raise InvalidInputError(
            f"the action {arguments.action} needs {name}",
            hint="link needs id, relation and to; traverse needs an id",
        )
    return value.strip()


def _format_change(change: LinkChange, arguments: mcp_arguments.Graph) -> str:
    counts = [
        f"{number:,} {word}"
        for number, word in (
            (change.made, "new"),
            (change.changed, "changed"),
            (change.removed, "removed"),
        )
        if number
    ]
    proposed = (
        f"{count(len(change.waiting), 'memory is', 'memories are')} the person's own: your changes to their "
        "links are pending review."
    )
    head = (
        f"Links: {', '.join(counts)}." if counts else "" if change.waiting else "Nothing to change."
    )
    lines = [_line(link) for link in change.links]
    return frame(
        head,
        proposed if change.waiting else "",
        "\n".join(lines[: count_fitting(lines, arguments.budget)]),
    )


def _hop(tree: Traversal, hop: Hop) -> str:
    parent, child = tree.nodes[hop.parent], tree.nodes[hop.child]
    arrow = f"{hop.rel} →" if hop.is_outgoing else f"← {hop.rel}"
    again = " (shown above)" if hop.is_again else ""
    return f"[{short_id(parent.id)}] {plain_line(arrow)} {_node(child)}{_facts(hop)}{again}"


def _line(link: LinkLine) -> str:
    return f"{_node(link.source)} {plain_line(link.rel)} → {_node(link.target)}{_facts(link)}"


def _node(node: Node) -> str:
    name = node.id if node.state == "code" else short_id(node.id)
    mark = (
        " (UNTRUSTED)"
        if not node.trusted
        else f" ({node.state})"
        if node.state in ("superseded", "retired")
        else ""
    )
    return f"[{harmless(name)}] {plain_line(shorten(node.subject or 'unknown', 80))}{mark}"


def _facts(link: Hop | LinkLine) -> str:
    days = (("from", link.valid.since), ("until", link.valid.until))
    parts = [
        f"{link.strength:g}" if link.strength != USUAL_STRENGTH else "",
        link.origin,
        *(f"{word} {day}" for word, day in days if day),
        plain_line(link.reason) if link.reason else "",
    ]
    facts = ", ".join(filter(None, parts))
    return f" ({facts})" if facts else ""


# -- ``memory_search`` and ``memory_list`` ---------------------------------------------------------


_MAX_HITS = 200
_MAX_HIT_TOKENS = 220
"""Maximum number of tokens shown of each memory found."""

_MAX_TURN_TOKENS = 90
_MAX_OVERLAP = 0.6


def search(desk: Desk, arguments: mcp_arguments.Search) -> str:
    """Return memories that answer a question, and related turns of past sessions."""
    if arguments.context == "session-start":
        return _at_start(desk, arguments)
    if arguments.context == "chats":
        return _chats(desk, arguments)
    memory_filter = Filter(
        projects=desk.projects(arguments.project),
        kinds=arguments.kinds,
        tags=arguments.tags,
        since=desk.moment("since", arguments.since),
        until=desk.moment("until", arguments.until),
        tools=(arguments.channel,) if arguments.channel else (),
    )
    if arguments.deep and arguments.query.strip() and not arguments.cursor:
        deep_answer = _deep(desk, arguments, memory_filter)
        if deep_answer:
            return deep_answer
    at = page_of(arguments.cursor)
    browses = arguments.context == "browse" or not arguments.query.strip()
    result: RecallResult = desk.call(
        "recall",
        text=arguments.query,
        filter=memory_filter,
        mode=Mode.BROWSE if browses else Mode.HYBRID,
        limit=min(at + arguments.limit, _MAX_HITS),
        around=desk.moment("around", arguments.around),
        radius_days=arguments.around_days,
        threshold=arguments.threshold,
        ignore_time=arguments.ignore_time,
        turns=0 if browses else arguments.turns,
        update=at == 0,
        session=desk.session,
    )
    return _format_hits(arguments, result, at)


def _at_start(desk: Desk, arguments: mcp_arguments.Search) -> str:
    if arguments.project or arguments.cursor:
        raise InvalidInputError(
            "session-start covers the working folder and has one page",
            hint="leave out project and cursor",
        )
    block: ContextBlock = desk.call(
        "context", prompt=arguments.query, folder=desk.folder, budget_tokens=arguments.budget
    )
    inner = (
        block.text.partition("\n\n")[2].rpartition("\n")[0].strip()
    )  # the frame's heading replaces the block's heading
    return frame(inner or "There is no context for a session here yet.")


def _chats(desk: Desk, arguments: mcp_arguments.Search) -> str:
    if not arguments.query.strip():
        raise InvalidInputError(
            "a search of chats needs a query", hint="ask a question, or give words from a chat"
        )
    passages: Passages = desk.call(
        "search-chats",
        query=arguments.query,
        limit=arguments.limit,
        channel=arguments.channel,
        since=desk.moment("since", arguments.since),
        until=desk.moment("until", arguments.until),
    )
    blocks = [_passage(passage) for passage in passages.passages]
    visible = count_fitting(blocks, arguments.budget)
    return frame(
        "\n".join(blocks[:visible]) or "No passage in a channel matches. Try other words.",
        f"{len(blocks) - visible} more: a higher budget shows them."
        if visible < len(blocks)
        else "",
    )


def _passage(passage: Passage) -> str:
    outside = f" (UNTRUSTED: {OUTSIDE})" if passage.trust is Trust.UNTRUSTED else ""
    where = plain_line(passage.key)
    return f"- {where}, {short_session(passage.session)}{outside}:\n{indent(passage.text)}"


def _format_hits(arguments: mcp_arguments.Search, result: RecallResult, at: int) -> str:
    hits = _without_repetition(result.ranked)[at:]
    blocks = [_turn(hit) if isinstance(hit, TurnHit) else _hit(hit) for hit in hits]
    visible = count_fitting(blocks, arguments.budget)
    last = at + visible
    nothing = 'Nothing matches. Try other words, fewer filters, or project "*".'
    if arguments.channel:
        channel = plain_line(arguments.channel)
        nothing = f"Nothing in {channel} matches. Channels: claude-code, codex, …"
    more = visible < len(hits) or (len(result.hits) >= at + arguments.limit and last < _MAX_HITS)
    return frame(
        "" if hits else nothing,
        "\n".join(blocks[:visible]),
        next_page_hint("memory_search", last) if hits and more else "",
        f"“{result.time_words}” is read as a time: results {result.span} rank higher. ignore_time disables this."
        if result.time_words
        else "",
        _degraded(result),
    )


def _without_repetition(hits: Sequence[MemoryHit | TurnHit]) -> list[MemoryHit | TurnHit]:
    lengths = {
        turn.turn_id: len(hit.memory.content)
        for hit in hits
        if not isinstance(hit, TurnHit)
        for turn in hit.evidence
    }
    kept: list[MemoryHit | TurnHit] = []
    for hit in hits:
        if not isinstance(hit, TurnHit) or (
            lengths.get(hit.turn.id, 0) < _MAX_OVERLAP * len(hit.excerpt)
        ):
            kept.append(hit)
        elif hit.quotes:
            kept.append(replace(hit, excerpt="(states the memory)"))
    return kept


def _hit(hit: MemoryHit) -> str:
    memory = hit.memory
    content = cut(memory.content, _MAX_HIT_TOKENS)
    notice = (
        f"\n  (cut: memory_get {short_id(memory.id)} has the rest)"
        if content != memory.content
        else ""
    )
    doubts = (
        f"\n  may be out of date: see {', '.join(map(short_id, hit.outdated_by))}"
        if hit.outdated_by
        else ""
    )
    if hit.candidate:
        keep = f"the owner can keep it: nacre review keep {short_id(memory.id)}"
        doubts += f"\n  pending candidate, not confirmed by the owner; {keep}"
    doubts += f"\n  may be out of date: {plain_line(hit.doubt)}" if hit.doubt else ""
    title = title_of(memory)
    body = indent(content)
    has_title = title.rstrip("….").lower() in plain_line(content).lower()
    head = f"[{short_id(memory.id)}]" if has_title else f"[{short_id(memory.id)}] {title}"
    space = f"space {hit.space}, " if hit.space else ""
    facts = f"{hit.confidence.value}; {space}{origin_of(memory)}; {describe_source(memory)}"
    return f"{head}\n{body}{notice}{doubts}\n  ({facts})"


def _turn(hit: TurnHit) -> str:
    turn = hit.turn
    day = f"{shown_day(turn.time)} " if turn.time else ""
    outside = ", UNTRUSTED" if turn.trust is Trust.UNTRUSTED else ""
    words = plain_line(cut(hit.excerpt, _MAX_TURN_TOKENS))
    head = f"- {hit.confidence.value}: {day}{turn.speaker.value} in {short_session(hit.session.id)}#{hit.seq}{outside}"
    quotes = "".join(
        f"\n  #{quote.seq} {quote.speaker.value}: {plain_line(cut(quote.excerpt, _MAX_TURN_TOKENS))}"
        for quote in hit.quotes
    )
    doubt = f"\n  may be out of date: {plain_line(hit.doubt)}" if hit.doubt else ""
    return f"{head}: {words}{quotes}{doubt}"


def _degraded(result: RecallResult | DeepResult) -> str:
    lanes = [
        f"{lane.name} {lane.state.value}" + (f" ({lane.note})" if lane.note else "")
        for lane in result.degraded
    ]
    return f"The search is incomplete: {plain_line('; '.join(lanes))}." if lanes else ""


def _deep(desk: Desk, arguments: mcp_arguments.Search, memory_filter: Filter) -> str | None:
    desk.tell("selecting the project and its memories")
    here = desk.place(None).project
    projects = memory_filter.projects if arguments.project else ()
    result: DeepResult = desk.call(
        "deep-recall",
        text=arguments.query,
        filter=replace(memory_filter, projects=projects),
        here=here,
        session=desk.session,
    )
    if not result.context:
        return None
    inner = result.context.partition("\n")[2].rpartition("\n")[0].strip()
    text = cut(inner, arguments.budget)
    ids = ", ".join(short_id(hit.memory.id) for hit in result.hits)
    notice = (
        f"(Cut: a higher budget, or memory_get with {ids}, has the rest.)" if text != inner else ""
    )
    return frame(text, notice, _degraded(result))


def list_memories(desk: Desk, arguments: mcp_arguments.List) -> str:
    """List active memories, newest first."""
    memory_filter = Filter(
        projects=desk.projects(arguments.project),
        kinds=arguments.kinds,
        tags=arguments.tags,
        since=desk.moment("since", arguments.since),
        until=desk.moment("until", arguments.until),
        min_importance=arguments.min_importance,
    )
    at = page_of(arguments.cursor)
    outdated_by: Mapping[str, Sequence[str]] = {}
    if arguments.beliefs:
        project = next(iter(memory_filter.projects), None)
        kinds = {"kinds": arguments.kinds} if arguments.kinds else {}
        beliefs: views.Beliefs = desk.call(
            "beliefs", project=project, limit=arguments.limit, offset=at, **kinds
        )
        total, entries = beliefs.total, [(item.memory, item.quote) for item in beliefs.beliefs]
    else:
        listing: views.Listing = desk.call(
            "list", filter=memory_filter, words=arguments.query, limit=arguments.limit, offset=at
        )
        total, entries = listing.total, [(memory, None) for memory in listing.memories]
        outdated_by = listing.outdated_by
    lines = [
        f"- [{short_id(memory.id)}] {title_of(memory)} ({origin_of(memory)})"
        + (f": “{plain_line(quote.excerpt)}”" if quote else "")
        + "".join(
            f"; may be out of date: see {short_id(newer)}"
            for newer in outdated_by.get(memory.id, ())
        )
        for memory, quote in entries
    ]
    visible = count_fitting(lines, arguments.budget)
    last = at + visible
    return frame(
        f"{count(total, 'memory', 'memories')}, the newest first:"
        if total
        else "No matching memory.",
        "\n".join(lines[:visible]),
        next_page_hint("memory_list", last, total) if last < total else "",
    )
