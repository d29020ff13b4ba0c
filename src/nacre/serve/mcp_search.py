"""The MCP tools that search, list and read memories and sessions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from nacre.base.text import count, count_tokens, harmless, one_line, shorten
from nacre.base.times import shown_day, shown_minute
from nacre.errors import InvalidInputError, NacreError
from nacre.home import views
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
    short_id,
    short_session,
    shorten_lines,
    title_of,
)
from nacre.values.memory import SessionFilter
from nacre.values.recall import DeepResult, Filter, MemoryHit, Mode, RecallResult, TurnHit
from nacre.values.session import ToolCall, Trust, Turn

if TYPE_CHECKING:
    from nacre.home.views import (
        LinkView,
        MemoryView,
        SessionLine,
        SessionPage,
        SessionReport,
        SessionView,
    )
    from nacre.serve.mcp_arguments import Get, List, Search, Sessions
    from nacre.sessions.find import Matches
    from nacre.sessions.search import Passage, Passages
    from nacre.values.context import ContextBlock


# -- ``memory_search`` and ``memory_list`` ---------------------------------------------------------


_MAX_HITS = 200
_MAX_HIT_TOKENS = 220
"""Maximum number of tokens shown of each memory found."""

_MAX_TURN_TOKENS = 90
_MAX_OVERLAP = 0.6


def search(desk: Desk, arguments: Search) -> str:
    """Return memories that answer a question, and related turns of past sessions."""
    if arguments.context == "session-start":
        return _at_start(desk, arguments)
    if arguments.context == "chats":
        return _chats(desk, arguments)
    memory_filter = desk.filter(arguments)
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


def _at_start(desk: Desk, arguments: Search) -> str:
    if arguments.project or arguments.cursor:
        raise InvalidInputError(
            "session-start covers the working folder and has one page",
            hint="leave out project and cursor",
        )
    block: ContextBlock = desk.call(
        "context", prompt=arguments.query, folder=desk.folder, budget_tokens=arguments.budget
    )
    # The frame's heading replaces the block's heading.
    inner = block.text.partition("\n\n")[2].rpartition("\n")[0].strip()
    return frame(inner or "There is no context for a session here yet.")


def _chats(desk: Desk, arguments: Search) -> str:
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


def _format_hits(arguments: Search, result: RecallResult, at: int) -> str:
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
    kept = []
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
    rest = f"\n  (cut: memory_get {short_id(memory.id)} has the rest)"
    notice = "" if content == memory.content else rest
    newer = ", ".join(map(short_id, hit.outdated_by))
    doubts = f"\n  may be out of date: see {newer}" if newer else ""
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


def _deep(desk: Desk, arguments: Search, memory_filter: Filter) -> str | None:
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


def list_memories(desk: Desk, arguments: List) -> str:
    """List active memories, newest first."""
    memory_filter = desk.filter(arguments)
    at = page_of(arguments.cursor)
    outdated_by = {}
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
        f"{count(total, 'memory')}, the newest first:" if total else "No matching memory.",
        "\n".join(lines[:visible]),
        next_page_hint("memory_list", last, total) if last < total else "",
    )


# -- ``memory_sessions`` ----------------------------------------------------------------------------


_MAX_CALL_CHARACTERS = 400
_REGEX_SECONDS = 3.0
"""Time limit of a regular expression search in seconds. Other callers wait meanwhile."""

_SESSION_HINT = "memory_sessions with action list shows ids"


def sessions(desk: Desk, arguments: Sessions) -> str:
    """List, read, summarize or search sessions."""
    return {"list": _list, "read": _read, "summary": _summary, "search": _search}[arguments.action](
        desk, arguments
    )


def _reference(arguments: Sessions) -> str:
    if not arguments.session:
        raise InvalidInputError(
            f"the action {arguments.action} needs a session", hint=_SESSION_HINT
        )
    return arguments.session


def _list(desk: Desk, arguments: Sessions) -> str:
    projects = desk.projects(arguments.project)
    session_filter = SessionFilter(
        tool=arguments.channel,
        project=projects[0] if projects else None,
        since=desk.moment("since", arguments.since),
        until=desk.moment("until", arguments.until),
        words=arguments.query or None,
    )
    at = page_of(arguments.cursor)
    page: SessionPage = desk.call(
        "sessions", filter=session_filter, limit=arguments.limit, offset=at
    )
    lines = [_line(line) for line in page.lines]
    visible = count_fitting(lines, arguments.budget)
    more = page.more or visible < len(lines)
    return frame(
        "\n".join(lines[:visible]) or "No matching session.",
        next_page_hint("memory_sessions", at + visible) if more else "",
    )


def _line(line: SessionLine) -> str:
    stored = line.session
    day = shown_day(stored.session.started) if stored.session.started else "no date"
    title = shorten(stored.session.title or line.opening or "untitled", 100)
    facts = f"{stored.session.id}, {day}, {stored.project or 'no project'}, {count(stored.turns, 'turn')}"
    return f"- {plain_line(facts)}: {plain_line(title)}"


def _read(desk: Desk, arguments: Sessions) -> str:
    reference = _reference(arguments)
    first = page_of(arguments.cursor) if arguments.cursor else arguments.from_turn
    with desk.naming(_SESSION_HINT):
        view: SessionView = desk.call(
            "session",
            reference=reference,
            first=first or 0,
            limit=arguments.limit,
            at_end=first is None,
        )
    with_tools = arguments.include_tools
    blocks = [_whole_turn(item.seq, item.turn, with_tools=with_tools) for item in view.turns]
    if first is None:
        visible = count_fitting(blocks[::-1], arguments.budget)
        turns, chosen = view.turns[len(blocks) - visible :], blocks[len(blocks) - visible :]
    else:
        visible = count_fitting(blocks, arguments.budget)
        turns, chosen = view.turns[:visible], blocks[:visible]
    last = turns[-1].seq + 1 if turns else 0
    before = (
        f"Turns 0 to {turns[0].seq - 1} come before: from_turn reads there."
        if turns and turns[0].seq
        else ""
    )
    stored = view.session
    more = last < stored.turns
    head = f"{harmless(stored.session.id)}, {stored.project or 'no project'}, {count(stored.turns, 'turn')}"
    return frame(
        head,
        before,
        "\n".join(chosen) or "No turns after that.",
        next_page_hint("memory_sessions", last, stored.turns) if more else "",
    )


def _whole_turn(number: int, turn: Turn, *, with_tools: bool = False) -> str:
    day = f" {shown_minute(turn.time)}" if turn.time else ""
    outside = f" (UNTRUSTED: {OUTSIDE})" if turn.trust is Trust.UNTRUSTED else ""
    words = indent(shorten_lines(turn.text, 1_200)) if turn.text.strip() else "  (no words)"
    lines = [f"{number}. {turn.speaker.value}{day}{outside}:", words]
    if with_tools:
        lines += map(_call, turn.tool_calls)
    elif turn.tool_calls:
        calls = ", ".join(dict.fromkeys(call.name for call in turn.tool_calls))
        lines.append(f"  [{harmless(calls)}]")
    return "\n".join(lines)


def _call(call: ToolCall) -> str:
    outcome = f" -> {call.outcome}" if call.outcome else ""
    lines = [plain_line(shorten(f"[{call.name}] {call.input}{outcome}", _MAX_CALL_CHARACTERS))]
    if call.made:
        lines.append(plain_line(f"made {', '.join(call.made)}"))
    if call.error:
        lines.append(f"output (UNTRUSTED): {plain_line(shorten(call.error, _MAX_CALL_CHARACTERS))}")
    return "\n".join(f"  {line}" for line in lines)


def _summary(desk: Desk, arguments: Sessions) -> str:
    with desk.naming(_SESSION_HINT):
        report: SessionReport = desk.call("session-summary", reference=_reference(arguments))
    summary, stored = report.summary, report.view.session
    outcome = summary.outcome
    parts = [
        f"{harmless(stored.session.id)}, {stored.project or 'no project'}, {count(stored.turns, 'turn')}",
        _section("Asked for", [topic.text for topic in summary.topics]),
        f"Ended: {outcome.ending.value}; {plain_line(f'{outcome.reason}. {outcome.words}')}",
        _section("Left open", [f"{end.kind.value}: {end.text}" for end in summary.open_ends[:6]]),
        _section("Changed", [file.path for file in summary.modified[:12]]),
        _section("Learned", [memory.subject for memory in report.view.memories[:12]]),
    ]
    return frame(*parts)


def _section(title: str, lines: list[str]) -> str:
    return (
        f"{title}:\n" + "\n".join(f"- {plain_line(shorten(line, 300))}" for line in lines)
        if lines
        else ""
    )


def _search(desk: Desk, arguments: Sessions) -> str:
    if not (arguments.query or "").strip():
        raise InvalidInputError("a search needs a query", hint="give words from the session")
    turn_filter = desk.filter(arguments)
    at = page_of(arguments.cursor)
    hits, has_more, remark = (_match_regex if arguments.match == "regex" else _match_words)(
        desk, arguments, turn_filter, at
    )
    lines = [
        (f"- {shown_day(hit.turn.time)} " if hit.turn.time else "- ")
        + f"{hit.turn.speaker.value} in "
        f"{short_session(hit.session.id)}#{hit.seq}{', UNTRUSTED' * (hit.turn.trust is Trust.UNTRUSTED)}: "
        f"{plain_line(hit.excerpt)}"
        for hit in hits
    ]
    visible = count_fitting(lines, arguments.budget)
    more = has_more or visible < len(lines)
    return frame(
        "\n".join(lines[:visible]) or "No turn matches.",
        remark,
        next_page_hint("memory_sessions", at + visible) if more else "",
    )


_MODES = {"all": Mode.HYBRID, "words": Mode.LEXICAL, "meaning": Mode.VECTOR}


def _match_words(
    desk: Desk, arguments: Sessions, turn_filter: Filter, at: int
) -> tuple[Sequence[TurnHit], bool, str]:
    result: RecallResult = desk.call(
        "search-sessions",
        text=arguments.query or "",
        filter=turn_filter,
        mode=_MODES[arguments.match],
        limit=at + arguments.limit,
        update=False,
        session=desk.session,
        aspect=arguments.scope,
        role=arguments.role,
    )
    return result.turns[at:], result.truncated, ""


def _match_regex(
    desk: Desk, arguments: Sessions, turn_filter: Filter, at: int
) -> tuple[Sequence[TurnHit], bool, str]:
    desk.tell("searching all turns")
    matches: Matches = desk.call(
        "match-sessions",
        expression=arguments.query or "",
        filter=turn_filter,
        limit=arguments.limit,
        offset=at,
        aspect=arguments.scope,
        role=arguments.role,
        seconds=_REGEX_SECONDS,
    )
    unread = "The search stopped after three seconds: narrow it with since, project or scope."
    return matches.turns, matches.more, unread if matches.unread or matches.given_up else ""


# -- ``memory_get`` --------------------------------------------------------------------------------


_MIN_TOKENS = 80


def get(desk: Desk, arguments: Get) -> str:
    """Return memories with their sources and links, or turns by a reference such as
    ``7f3a1c2d#40``.
    """
    room = max(_MIN_TOKENS, (arguments.budget - 60) // len(arguments.ids))
    blocks, errors = [], []
    for reference in arguments.ids:
        try:
            if "#" in reference:
                blocks.append(_turns_from(desk, reference, room))
            else:
                with desk.naming("memory_search shows the ids of memories"):
                    view: MemoryView = desk.call(
                        "look", reference=reference, update=True, session=desk.session
                    )
                blocks.append(_block(view, arguments.line, room))
        except NacreError as error:
            errors.append(error)
            blocks.append(f"{harmless(shorten(reference, 40))}: {plain_line(error.message)}")
    if len(errors) == len(arguments.ids):
        raise errors[0]
    return frame("\n\n".join(blocks))


def _turns_from(desk: Desk, reference: str, room: int) -> str:
    view: SessionView = desk.call("session", reference=reference, limit=10)
    blocks = [_whole_turn(item.seq, item.turn) for item in view.turns]
    visible = count_fitting(blocks, room)
    session = harmless(view.session.session.id)
    following = view.turns[visible - 1].seq + 1 if visible else view.session.turns
    more = following < view.session.turns
    next_page = [f"(memory_get {session}#{following} goes on)"] if more else []
    return "\n".join([session, *blocks[:visible], *next_page])


def _block(view: MemoryView, line: int, room: int) -> str:
    memory = view.memory
    lines = memory.content.strip().splitlines()
    content = "\n".join(lines[line - 1 :])
    facts = [
        f"[{memory.id}] {title_of(memory)}",
        f"  ({origin_of(memory)}; {memory.expiry.value}; {describe_source(memory)})",
        f"  may be out of date: {plain_line(view.doubt)}" if view.doubt else "",
        f"  tags: {harmless(', '.join(memory.tags))}" if memory.tags else "",
        *(_evidence(view) if line == 1 else ()),
        *(_link(link) for link in view.links[:8] if line == 1),
    ]
    parts = [fact for fact in facts if fact]
    remaining = max(_MIN_TOKENS, room - count_tokens("\n".join(parts)))
    part = cut(content, remaining)
    if part != content:
        at = line + max(1, part.count("\n"))
        long_line = " and a higher budget" if at >= len(lines) else ""
        parts.append(
            f"  (cut: memory_get {short_id(memory.id)} with line {min(at, len(lines))}{long_line} goes on)"
        )
    return "\n".join([parts[0], indent(part) or "(nothing after that line)", *parts[1:]])


def _evidence(view: MemoryView) -> Sequence[str]:
    return [
        f"  {turn.speaker.value} in {short_session(turn.session_id)}#{turn.seq}: "
        f"{harmless(shorten(turn.excerpt, 160))}"
        for turn in view.evidence[:2]
        if one_line(turn.excerpt) != one_line(view.memory.content)
    ]


def _link(link: LinkView) -> str:
    arrow = f"{link.rel} →" if link.is_outgoing else f"← {link.rel}"
    why = ", ".join(filter(None, (link.origin, link.reason)))
    subject = shorten(link.subject or "unknown", 80)
    return f"  {plain_line(f'{arrow} [{short_id(link.other)}] {subject} ({why})')}"
