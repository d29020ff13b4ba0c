"""REST routes of agent-knowledge."""

from __future__ import annotations

import time
from typing import Any

from nacre import __version__
from nacre.base.text import one_line, shorten
from nacre.data.importers import project_of, tags_of, text_of
from nacre.errors import InvalidMemoryError, NotFoundError
from nacre.redact.redactor import Redactor
from nacre.vault import documents
from nacre_extras.compatibility import (
    Call,
    IncompleteError,
    Record,
    Routes,
    category_of,
    entry_of,
    file_of,
    likeness,
    path_of,
    reference_of,
)
from nacre_extras.imports_systems import CATEGORIES, without_title

_route = Routes()
_NO_LIMIT = 100_000
_ROLES = {"owner": "user", "agent": "assistant", "tool": "tool_result", "system": "system"}
_ROLE_FILTERS = {"user": "owner", "assistant": "agent"}
_MAX_TOPIC_CHARACTERS = 300


@_route("GET", "/api/sessions")
async def listed(call: Call) -> Any:
    """List sessions. With ``limit`` or ``offset``, return a page and the total."""
    result = await call.ask(
        "sessions", limit=_NO_LIMIT, filter={"project": call.text("project") or None}
    )
    lines = [
        {
            "project": line.session.project,
            "sessionId": _id(line.session.session),
            **_meta(line.session, line.opening),
        }
        for line in result.lines
    ]
    if not (call.text("limit") or call.text("offset")):
        return lines
    return {"sessions": call.page(lines, 500), "total": len(lines)}


def _id(session: Any) -> str:
    return f"{session.tool}:{session.native_id}"


def _meta(stored: Any, opening: str | None) -> Record:
    session = stored.session
    return {
        "startTime": session.started or "unknown",
        "endTime": stored.ended or session.started or "unknown",
        "cwd": session.cwd or "",
        "branch": session.branch or "",
        "messageCount": stored.turns,
        "preview": session.title or opening or "",
    }


@_route("GET", "/api/sessions/search")
async def search(call: Call) -> Any:
    """Search the turns of sessions, by relevance or, with ``ranked=false``, by regular expression."""
    role = _ROLE_FILTERS.get(call.text("role"), "all")
    if not call.flag("ranked", default=True):
        return await _turns(call, "match-sessions", "expression", role=role)
    mode = "hybrid" if call.flag("semantic", default=True) else "lexical"
    return await _turns(call, "search-sessions", "text", mode=mode, role=role, update=False)


@_route("GET", "/api/sessions/recall")
async def recall(call: Call) -> Any:
    """Search turns about errors, plans, configs, tools, files or decisions."""
    aspect = call.text("scope", "all")
    return await _turns(call, "search-sessions", "text", aspect=aspect, update=False)


async def _turns(call: Call, operation: str, field: str, **options: Any) -> Any:
    text, project = call.text("q"), call.text("project")
    if not text:
        return []
    options |= {field: text, "limit": call.number("max_results", 20, 500)}
    where = {"projects": [project], "strict": True} if project else {}
    result = await call.ask(operation, filter=where, **options)
    return [_hit(hit) for hit in result.turns]


def _hit(hit: Any) -> Record:
    turn, session = hit.turn, hit.session
    return {
        "source": "session",
        "id": _id(session),
        "project": hit.project,
        "role": _ROLES[turn.speaker],
        "timestamp": turn.time,
        "excerpt": hit.excerpt,
        "score": hit.score,
        "metadata": {
            "sessionDate": session.started,
            "turnId": turn.id,
            "trust": turn.trust,
        },
    }


@_route("GET", "/api/sessions/{session:path}/summary")
async def summary(call: Call) -> Any:
    """Return a session's summary."""
    report = await call.ask("session-summary", reference=call.path["session"])
    view, facts = report.view, report.summary
    topics = [
        {"timestamp": None, "content": item.text[:_MAX_TOPIC_CHARACTERS]} for item in facts.topics
    ]
    return {
        "meta": _meta(view.session, view.opening),
        "topicCount": len(topics),
        "topics": topics,
        "toolsUsed": [],
        "filesModified": sorted(item.path for item in facts.files if item.edits),
        "gitCommits": facts.commits,
        "errorPatterns": [item.text for item in facts.errors],
        "urlsAccessed": [],
        "packagesChanged": [],
    }


@_route("GET", "/api/sessions/{session:path}")
async def detail(call: Call) -> Any:
    """Return the messages of a session, or only the last ``tail`` messages."""
    tail = call.number("tail", 0, _NO_LIMIT, least=0)
    view = await call.ask(
        "session", reference=call.path["session"], limit=tail or None, at_end=bool(tail)
    )
    with_tools = call.flag("include_tools", default=False)
    messages = [
        message for turn in view.turns for message in _messages(turn.turn, with_tools=with_tools)
    ]
    return {"meta": _meta(view.session, view.opening), "messages": messages}


def _messages(turn: Any, *, with_tools: bool) -> list[Record]:
    role = _ROLES[turn.speaker]
    messages = []
    if turn.text and (with_tools or role in ("user", "assistant")):
        messages.append({"role": role, "content": turn.text, "timestamp": turn.time})
    if with_tools:
        messages += [
            {
                "role": "tool_use",
                "content": f"{tool_call.name} {tool_call.input}".strip(),
                "timestamp": turn.time,
                "outcome": tool_call.outcome,
            }
            for tool_call in turn.tool_calls
        ]
    return messages


_MAX_AUTO_LINKS = 3
_TEXT_FIELDS = ("message", "text", "title")
_MAX_NOTICE_INPUT, _NOTICE_CHARACTERS = 20_000, 300
_STARTED = time.monotonic()


@_route("GET", "/health")
async def health(call: Call) -> Any:
    """Return the server's status. Callers with access also get the number of entries."""
    seconds = round(time.monotonic() - _STARTED, 1)
    status: Record = {"status": "ok", "version": __version__, "uptime": seconds}
    return status | (
        {"knowledge_entries": _active(await call.ask("db-stats"))} if call.is_known else {}
    )


@_route("GET", "/api/index-status")
async def index_status(call: Call) -> Any:
    """Count the indexed entries."""
    stats = await call.ask("db-stats")
    turns = sum(tool.turns for tool in stats.tools)
    return {
        "totalEntries": _active(stats) + stats.passages,
        "knowledgeEntries": _active(stats),
        "sessionEntries": stats.passages,
        "uniqueSessions": sum(tool.sessions for tool in stats.tools),
        "turns": turns,
        "dbSizeMB": round(stats.database_bytes / 1_000_000, 2),
        "provider": stats.model,
        "vectorsMissing": stats.vectors_missing,
    }


def _active(stats: Any) -> int:
    return sum(
        number for kind, number in stats.memories.items() if kind not in ("superseded", "retired")
    )


@_route("GET", "/api/knowledge")
async def entries(call: Call) -> Any:
    """List entries, optionally of a category or with a tag."""
    tag = call.text("tag")
    result = await call.ask("list", limit=_NO_LIMIT, filter={"tags": [tag]} if tag else {})
    category = call.text("category")
    return [entry_of(memory) for memory in result.memories if category in ("", category_of(memory))]


@_route("GET", "/api/knowledge/search")
async def search_agent_knowledge(call: Call) -> Any:
    """Search entries."""
    category, limit = call.text("category"), call.number("max_results", 10, 500)
    text = call.text("q")
    if not text:
        return []
    result = await call.ask("recall", text=text, limit=limit * (5 if category else 1), update=False)
    hits = [hit for hit in result.hits if category in ("", category_of(hit.memory))]
    return [
        {
            "entry": entry_of(hit.memory, with_content=True),
            "score": hit.score,
            "excerpt": hit.memory.content[:300],
        }
        for hit in hits[:limit]
    ]


@_route("GET", "/api/knowledge/consolidate")
async def consolidate(call: Call) -> Any:
    """Return groups of similar entries."""
    result = await call.ask("alike", limit=50)
    groups = [[entry_of(memory) for memory in group] for group in result.groups]
    category = call.text("category")
    matching = [
        group
        for group in groups
        if not category or all(entry["category"] == category for entry in group)
    ]
    return {"clusters": [{"entries": group} for group in matching], "total": result.total}


@_route("GET", "/api/knowledge/god-nodes")
async def god_nodes(call: Call) -> Any:
    """Return the entries with the most links."""
    result = await call.ask("graph-central", limit=call.number("top_n", 10, 1000))
    return [entry_of(item.memory) | {"degree": item.degree} for item in result.found]


@_route("GET", "/api/knowledge/gaps")
async def gaps(call: Call) -> Any:
    """Return the entries with at most one link."""
    result = await call.ask("graph-gaps", limit=call.number("max_entries", 30, 1000))
    return [
        entry_of(item.memory)
        | {
            "degree": item.degree,
            "maturity": item.maturity,
            "daysSinceAccess": item.idle_days,
        }
        for item in result.found
    ]


@_route("GET", "/api/knowledge/brief")
async def brief(call: Call) -> Any:
    """Return a summary of the graph."""
    report = await call.ask("graph-brief")
    return {
        "total_entries": report.memories,
        "total_edges": report.links,
        "core_concepts": [item.memory.subject for item in report.central],
        "active_projects": report.active_projects,
        "recent_decisions": [item.subject for item in report.decisions],
        "stale_count": report.stale,
        "gap_count": report.gaps,
        "text": report.text,
    }


@_route("GET", "/api/knowledge/graph-data")
async def graph_data(call: Call) -> Any:
    """Return the nodes and edges of the graph."""
    graph = await call.ask("graph-map", limit=5000)
    nodes = [
        {
            "id": path_of(item),
            "label": item.subject,
            "group": category_of(item),
            "degree": item.degree,
        }
        for item in graph.nodes
    ]
    edges = [
        {
            "from": nodes[item.source]["id"],
            "to": nodes[item.target]["id"],
            "rel_type": item.rel,
        }
        for item in graph.edges
    ]
    return {"nodes": nodes, "edges": edges}


@_route("GET", "/api/knowledge/{path:path}/links")
async def links(call: Call) -> Any:
    """Return the links of an entry."""
    result = await call.ask("graph-list", reference=_reference(call), limit=1000)
    return [
        {
            "source": path_of(link.source),
            "target": path_of(link.target),
            "rel_type": link.rel,
            "strength": link.strength,
            "origin": link.origin,
            "valid_from": link.valid.since,
            "valid_to": link.valid.until,
        }
        for link in result.links
    ]


@_route("GET", "/api/knowledge/{path:path}")
async def entry(call: Call) -> Any:
    """Return an entry with its content and usage."""
    view = await call.ask("look", reference=_reference(call), update=False)
    result = entry_of(view.memory, with_content=True)
    return {
        "entry": result,
        "content": file_of(result),
        "maturity": view.maturity,
        "access_count": view.usage.access_count,
        "last_accessed": view.usage.last_recalled,
    }


def _reference(call: Call) -> str:
    reference = reference_of(call.path["path"])
    if not reference:
        raise NotFoundError("no entry has that path", hint="GET /api/knowledge lists them")
    return reference


@_route("POST", "/api/events", 202)
async def notify(call: Call) -> Any:
    """Publish a line of text as a ``notice`` event. Raises IncompleteError without text."""
    text = text_of(await call.body(), *_TEXT_FIELDS)
    if text is None:
        raise IncompleteError(
            "the event has no text", hint=f"set one of these fields: {', '.join(_TEXT_FIELDS)}"
        )
    notice = shorten(one_line(Redactor().clean(text[:_MAX_NOTICE_INPUT])), _NOTICE_CHARACTERS)
    call.publish("notice", text=notice)
    return {"ok": True, "text": notice}


@_route("POST", "/api/knowledge", 201)
async def write(call: Call) -> Any:
    """Store an entry. Raises IncompleteError if a field is missing or invalid."""
    body = await call.body()
    category, filename, content = (
        _word(body, name) for name in ("category", "filename", "content")
    )
    if category not in CATEGORIES:
        raise IncompleteError(
            f"there is no category {category!r}", hint=f"use one of {', '.join(CATEGORIES)}"
        )
    if "/" in filename or "\\" in filename or ".." in filename:
        raise IncompleteError(
            "a filename must not contain a path",
            hint=("give the name of the file only, and its folder as the category"),
        )
    outcome = await call.ask("store", **_memory(category, filename.removesuffix(".md"), content))
    view = await call.ask("look", reference=outcome.memory_id, update=False)
    memory = view.memory
    automatic = [link for link in view.links if link.origin == "auto"]
    same = [memory] if outcome.action == "known" else []
    return {
        "path": path_of(memory),
        "git": {"pushed": False, "message": "the vault is committed within minutes"},
        "autoLinks": [await _auto_link(call, link) for link in automatic[:_MAX_AUTO_LINKS]],
        "duplicateWarnings": [
            {
                "path": path_of(candidate),
                "title": candidate.subject,
                "similarity": likeness(content, candidate.content),
            }
            for candidate in (*same, *outcome.similar)
        ],
        "id": memory.id,
        "action": outcome.action,
        "reason": outcome.reason,
        "proposed": outcome.proposed,
        "supersedes": [path_of(item.memory) for item in outcome.supersedes],
    }


def _word(body: Record, name: str) -> str:
    value = text_of(body, name)
    if value is None:
        raise IncompleteError(
            f"{name} is missing", hint="required: category, filename and content, each a string"
        )
    return value


def _memory(category: str, name: str, content: str) -> Record:
    try:
        head, body = documents.split(content)
        front = documents.load(head) if head else {}
    except InvalidMemoryError as error:
        raise IncompleteError(error.message, hint=error.hint) from error
    title = (
        text_of(front, "title") or one_line(name.replace("-", " ").replace("_", " ")).capitalize()
    )
    in_project = category == "projects"
    return {
        "content": without_title(body.strip(), title) or title,
        "subject": title,
        "kind": CATEGORIES[category],
        "tags": tags_of(front.get("tags"), *([] if in_project else [category])),
        "project": project_of(name if in_project else text_of(front, "project")),
    }


async def _auto_link(call: Call, link: Any) -> Record:
    target = await call.ask("get", reference=link.other, update=False)
    return {"target": path_of(target), "similarity": round(link.strength, 2)}


SERVICE = _route
