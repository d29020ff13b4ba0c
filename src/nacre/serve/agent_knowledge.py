"""agent-knowledge's routes on sessions (seed facts 2.8). A session is named as nacre names it: ``<tool>:<its id>``."""

from __future__ import annotations

import time
from functools import cache
from typing import Any

from starlette.routing import Route

from nacre import __version__
from nacre.base.text import one_line, shorten
from nacre.data.importers import project_of, tags_of, text_of
from nacre.data.imports_systems import CATEGORIES, without_title
from nacre.errors import MemoryInvalid, NotFound
from nacre.redact.redactor import Redactor
from nacre.serve.compatibility import (
    Call,
    Incomplete,
    category_of,
    entry_of,
    file_of,
    likeness,
    path_of,
    reference_of,
    route,
)
from nacre.vault import documents

_ALL = 100_000
_ROLES = {"owner": "user", "agent": "assistant", "tool": "tool_result", "system": "system"}
_ASKED = {"user": "owner", "assistant": "agent"}
_MOST_TOPICS = 300
"""Characters of a topic."""


def session_routes() -> list[Route]:
    """All of them, the more exact paths first."""
    return [
        route("GET", "/api/sessions", listed),
        route("GET", "/api/sessions/search", search),
        route("GET", "/api/sessions/recall", recall),
        route("GET", "/api/sessions/{session:path}/summary", summary),
        route("GET", "/api/sessions/{session:path}", detail),
    ]


async def listed(call: Call) -> Any:
    """``GET /api/sessions``: all, or with ``limit`` or ``offset`` some and how many there are."""
    found = await call.ask("sessions", limit=_ALL, filter={"project": call.text("project") or None})
    lines = [_line(one) for one in found["lines"]]
    if not (call.has("limit") or call.has("offset")):
        return lines
    offset = call.number("offset", 0, _ALL, least=0)
    return {"sessions": lines[offset : offset + call.number("limit", 20, 500)], "total": len(lines)}


def _line(line: Any) -> dict[str, Any]:
    stored = line["session"]
    return {
        "project": stored["project"],
        "sessionId": _id(stored["session"]),
        **_meta(stored, line["opening"]),
    }


def _id(session: Any) -> str:
    return f"{session['tool']}:{session['native_id']}"


def _meta(stored: Any, opening: str | None) -> dict[str, Any]:
    session = stored["session"]
    return {
        "startTime": session["started"] or "unknown",
        "endTime": stored["ended"] or session["started"] or "unknown",
        "cwd": session["cwd"] or "",
        "branch": session["branch"] or "",
        "messageCount": stored["turns"],
        "preview": session["title"] or opening or "",
    }


async def search(call: Call) -> Any:
    """``GET /api/sessions/search``: by rank, or, with ``ranked=false``, by a regular expression."""
    if not call.flag("ranked", default=True):
        return await _matches(call)
    mode = "hybrid" if call.flag("semantic", default=True) else "lexical"
    return await _found(call, mode=mode, role=_ASKED.get(call.text("role"), "all"))


async def recall(call: Call) -> Any:
    """``GET /api/sessions/recall``: turns about errors, plans, configs, tools, files or decisions."""
    return await _found(call, aspect=call.text("scope", "all"))


async def _found(call: Call, **how: str) -> Any:
    text = call.text("q")
    if not text:
        return []
    found = await call.ask(
        "search-sessions",
        text=text,
        limit=call.number("max_results", 20, 500),
        update=False,
        filter=_where(call),
        **how,
    )
    return [_hit(one) for one in found["turns"]]


async def _matches(call: Call) -> Any:
    text = call.text("q")
    if not text:
        return []
    role, most = _ASKED.get(call.text("role"), "all"), call.number("max_results", 20, 500)
    found = await call.ask(
        "match-sessions", expression=text, limit=most, role=role, filter=_where(call)
    )
    return [_hit(one) for one in found["turns"]]


def _where(call: Call) -> dict[str, Any]:
    project = call.text("project")
    return {"projects": [project], "strict": True} if project else {}


def _hit(hit: Any) -> dict[str, Any]:
    turn, session = hit["turn"], hit["session"]
    return {
        "source": "session",
        "id": _id(session),
        "project": hit["project"],
        "role": _ROLES[turn["speaker"]],
        "timestamp": turn["time"],
        "excerpt": hit["excerpt"],
        "score": hit["score"],
        "metadata": {
            "sessionDate": session["started"],
            "turnId": turn["id"],
            "trust": turn["trust"],
        },
    }


async def detail(call: Call) -> Any:
    """``GET /api/sessions/{id}``: its messages, with ``tail`` the last, with ``include_tools`` the tool calls, too."""
    tail = call.number("tail", 0, _ALL, least=0)
    view = await call.ask(
        "session", reference=call.path["session"], limit=tail or None, at_end=bool(tail)
    )
    with_tools = call.flag("include_tools", default=False)
    messages = [
        message
        for one in view["turns"]
        for message in _messages(one["turn"], with_tools=with_tools)
    ]
    return {"meta": _meta(view["session"], view["opening"]), "messages": messages}


def _messages(turn: Any, *, with_tools: bool) -> list[dict[str, Any]]:
    role = _ROLES[turn["speaker"]]
    found = []
    if turn["text"] and (with_tools or role in ("user", "assistant")):
        found.append({"role": role, "content": turn["text"], "timestamp": turn["time"]})
    if with_tools:
        found += [
            {
                "role": "tool_use",
                "content": f"{one['name']} {one['input']}".strip(),
                "timestamp": turn["time"],
                "outcome": one["outcome"],
            }
            for one in turn["tool_calls"]
        ]
    return found


async def summary(call: Call) -> Any:
    """``GET /api/sessions/{id}/summary``."""
    found = await call.ask("session-summary", reference=call.path["session"])
    view, told = found["view"], found["summary"]
    topics = [{"timestamp": None, "content": one["text"][:_MOST_TOPICS]} for one in told["topics"]]
    return {
        "meta": _meta(view["session"], view["opening"]),
        "topicCount": len(topics),
        "topics": topics,
        "toolsUsed": sorted({one["name"] for one in told["tools"]}),
        "filesModified": sorted(one["path"] for one in told["files"] if one["edits"]),
        "gitCommits": told["commits"],
        "errorPatterns": [one["text"] for one in told["errors"]],
        "urlsAccessed": told["urls"],
        "packagesChanged": told["packages"],
    }


# ----------------------------------------------------------------------------
# agent-knowledge's routes (seed facts 2.8), as its clients ask them.
#
# An entry is a memory; its path ends in eight characters of its id. What is written goes through
# ``store``: secrets are
# taken out, what is known is not stored twice, what it replaces is superseded, and the answer says
# so.


_MOST_LINKS = 3
_SAYS = ("message", "text", "title")
_MOST_BYTES, _NOTICE_CHARACTERS = 20_000, 300
_STARTED = time.monotonic()

PATHS = ("/health", "/api/index-status", "/api/knowledge", "/api/sessions", "/api/events")
"""How its routes begin."""

HEAVY = frozenset(
    {
        "/api/knowledge/search",
        "/api/knowledge/consolidate",
        "/api/knowledge/reflect",
        "/api/knowledge/god-nodes",
        "/api/knowledge/gaps",
        "/api/knowledge/brief",
        "/api/sessions/search",
        "/api/sessions/recall",
    }
)
"""What may be asked 20 times a minute; the rest 100 times."""


def agent_knowledge_routes() -> list[Route]:
    """All of them, the more exact paths first."""
    return [
        route("GET", "/health", health),
        route("GET", "/api/index-status", index_status),
        route("GET", "/api/knowledge", entries),
        route("POST", "/api/knowledge", write, 201),
        route("GET", "/api/knowledge/search", search_agent_knowledge),
        route("GET", "/api/knowledge/consolidate", consolidate),
        route("GET", "/api/knowledge/reflect", reflect),
        route("GET", "/api/knowledge/god-nodes", god_nodes),
        route("GET", "/api/knowledge/gaps", gaps),
        route("GET", "/api/knowledge/brief", brief),
        route("GET", "/api/knowledge/graph-data", graph_data),
        route("GET", "/api/knowledge/{path:path}/links", links),
        route("GET", "/api/knowledge/{path:path}", entry),
        route("POST", "/api/events", notify, 202),
        *session_routes(),
    ]


async def health(call: Call) -> Any:
    """``GET /health``: how many entries there are, whoever may ask is told."""
    seconds = round(time.monotonic() - _STARTED, 1)
    found: dict[str, Any] = {"status": "ok", "version": __version__, "uptime": seconds}
    return found | (
        {"knowledge_entries": _active(await call.ask("db-stats"))} if call.is_known else {}
    )


async def index_status(call: Call) -> Any:
    """``GET /api/index-status``."""
    stats = await call.ask("db-stats")
    turns = sum(one["turns"] for one in stats["tools"])
    return {
        "totalEntries": _active(stats) + stats["passages"],
        "knowledgeEntries": _active(stats),
        "sessionEntries": stats["passages"],
        "uniqueSessions": sum(one["sessions"] for one in stats["tools"]),
        "turns": turns,
        "dbSizeMB": round(stats["database_bytes"] / 1_000_000, 2),
        "provider": stats["model"],
        "vectorsMissing": stats["vectors_missing"],
    }


def _active(stats: Any) -> int:
    return sum(
        number
        for kind, number in stats["memories"].items()
        if kind not in ("superseded", "retired")
    )


async def entries(call: Call) -> Any:
    """``GET /api/knowledge``: all of them, or those of a category or with a tag."""
    tag = call.text("tag")
    found = await call.ask("list", limit=_ALL, filter={"tags": [tag]} if tag else {})
    category = call.text("category")
    return [entry_of(one) for one in found["memories"] if category in ("", category_of(one))]


async def entry(call: Call) -> Any:
    """``GET /api/knowledge/{path}``: an entry with its content and how it was used."""
    view = await call.ask("look", reference=_reference(call), update=False)
    found = entry_of(view["memory"], whole=True)
    return {
        "entry": found,
        "content": file_of(found),
        "maturity": view["maturity"],
        "access_count": view["usage"]["access_count"],
        "last_accessed": view["usage"]["last_recalled"],
    }


async def links(call: Call) -> Any:
    """``GET /api/knowledge/{path}/links``."""
    found = await call.ask("graph-list", reference=_reference(call), limit=1000)
    return [_edge(one) for one in found["links"]]


def _edge(link: Any) -> dict[str, Any]:
    return {
        "source": path_of(link["source"]),
        "target": path_of(link["target"]),
        "rel_type": link["rel"],
        "strength": link["strength"],
        "origin": link["origin"],
        "valid_from": link["valid"]["since"],
        "valid_to": link["valid"]["until"],
    }


def _reference(call: Call) -> str:
    """The memory that the path names. Raises NotFound."""
    reference = reference_of(call.path["path"])
    if not reference:
        raise NotFound("no entry has that path", hint="GET /api/knowledge lists them")
    return reference


async def search_agent_knowledge(call: Call) -> Any:
    """``GET /api/knowledge/search``."""
    category, most = call.text("category"), call.number("max_results", 10, 500)
    text = call.text("q")
    if not text:
        return []
    found = await call.ask("recall", text=text, limit=most * (5 if category else 1), update=False)
    hits = [one for one in found["hits"] if category in ("", category_of(one["memory"]))]
    return [
        {
            "entry": entry_of(one["memory"], whole=True),
            "score": one["score"],
            "excerpt": one["memory"]["content"][:300],
        }
        for one in hits[:most]
    ]


async def consolidate(call: Call) -> Any:
    """``GET /api/knowledge/consolidate``: groups of entries that are near in meaning."""
    found = await call.ask("alike", limit=50)
    groups = [[entry_of(one) for one in group] for group in found["groups"]]
    category = call.text("category")
    kept = [
        one for one in groups if not category or all(entry["category"] == category for entry in one)
    ]
    return {"clusters": [{"entries": one} for one in kept], "total": found["total"]}


async def reflect(call: Call) -> Any:
    """``GET /api/knowledge/reflect``: questions on how entries stand to each other, and a prompt that asks them."""
    found = await call.ask("reflect", limit=call.number("max_entries", 20, 100))
    questions = [
        {"first": entry_of(one["first"]), "second": entry_of(one["second"]), "why": one["why"]}
        for one in found["questions"]
    ]
    lines = [
        f"- {one['first']['path']} and {one['second']['path']}: {one['why']}" for one in questions
    ]
    return {"questions": questions, "total": found["total"], "prompt": "\n".join(lines)}


async def god_nodes(call: Call) -> Any:
    """``GET /api/knowledge/god-nodes``: the entries with the most links."""
    found = await call.ask("graph-central", limit=call.number("top_n", 10, 1000))
    return [entry_of(one["memory"]) | {"degree": one["degree"]} for one in found["found"]]


async def gaps(call: Call) -> Any:
    """``GET /api/knowledge/gaps``: the entries with one link at most."""
    found = await call.ask("graph-gaps", limit=call.number("max_entries", 30, 1000))
    return [
        entry_of(one["memory"])
        | {
            "degree": one["degree"],
            "maturity": one["maturity"],
            "daysSinceAccess": one["idle_days"],
        }
        for one in found["found"]
    ]


async def brief(call: Call) -> Any:
    """``GET /api/knowledge/brief``."""
    found = await call.ask("graph-brief")
    return {
        "total_entries": found["memories"],
        "total_edges": found["links"],
        "core_concepts": [one["memory"]["subject"] for one in found["central"]],
        "active_projects": found["active_projects"],
        "recent_decisions": [one["subject"] for one in found["decisions"]],
        "stale_count": found["stale"],
        "gap_count": found["gaps"],
        "text": found["text"],
    }


async def graph_data(call: Call) -> Any:
    """``GET /api/knowledge/graph-data``: nodes and edges for a picture."""
    found = await call.ask("graph-map", limit=5000)
    nodes = [
        {
            "id": path_of(one),
            "label": one["subject"],
            "group": category_of(one),
            "degree": one["degree"],
        }
        for one in found["nodes"]
    ]
    edges = [
        {
            "from": nodes[one["source"]]["id"],
            "to": nodes[one["target"]]["id"],
            "rel_type": one["rel"],
            "strength": one["strength"],
            "origin": one["origin"],
        }
        for one in found["edges"]
    ]
    return {"nodes": nodes, "edges": edges}


async def notify(call: Call) -> Any:
    """``POST /api/events``: shows a line to whoever follows the home's events, as ``notice``. Raises Incomplete."""
    body = await call.body()
    text = next(
        (body[name] for name in _SAYS if isinstance(body.get(name), str) and body[name].strip()),
        None,
    )
    if text is None:
        raise Incomplete("there is nothing to show", hint=f"one of {', '.join(_SAYS)}, a text")
    shown = shorten(one_line(_redactor().clean(text[:_MOST_BYTES])), _NOTICE_CHARACTERS)
    call.publish("notice", text=shown)
    return {"ok": True, "text": shown}


@cache
def _redactor() -> Redactor:
    return Redactor()


async def write(call: Call) -> Any:
    """``POST /api/knowledge``: store an entry; answers what became of it.

    Raises Incomplete for a field that is missing or cannot be.
    """
    body = await call.body()
    category, filename, content = (
        _word(body, name) for name in ("category", "filename", "content")
    )
    if category not in CATEGORIES:
        raise Incomplete(
            f"there is no category {category!r}", hint=f"one of {', '.join(CATEGORIES)}"
        )
    if "/" in filename or "\\" in filename or ".." in filename:
        raise Incomplete(
            "a filename holds no path", hint="name the file alone, and its folder as the category"
        )
    outcome = await call.ask("store", **_memory(category, filename.removesuffix(".md"), content))
    view = await call.ask("look", reference=outcome["memory_id"], update=False)
    memory = view["memory"]
    return {
        "path": path_of(memory),
        "git": {"pushed": False, "message": "the vault is committed within minutes"},
        "autoLinks": [await _auto_link(call, one) for one in _automatic(view)],
        "duplicateWarnings": _duplicates(outcome, memory, content),
        "id": memory["id"],
        "action": outcome["action"],
        "reason": outcome["reason"],
        "proposed": outcome["proposed"],
        "supersedes": [path_of(one["memory"]) for one in outcome["supersedes"]],
    }


def _word(body: dict[str, Any], name: str) -> str:
    found = body.get(name)
    if not isinstance(found, str) or not found.strip():
        raise Incomplete(
            f"{name} is missing", hint="required: category, filename, content, each a text"
        )
    return found.strip()


def _memory(category: str, name: str, content: str) -> dict[str, Any]:
    """The request that stores an entry as an import would."""
    try:
        head, body = documents.split(content)
        front = documents.load(head) if head else {}
    except MemoryInvalid as error:
        raise Incomplete(error.message, hint=error.hint) from error
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


def _automatic(view: Any) -> list[Any]:
    return [one for one in view["links"] if one["origin"] == "auto"][:_MOST_LINKS]


async def _auto_link(call: Call, link: Any) -> dict[str, Any]:
    target = await call.ask("get", reference=link["other"], update=False)
    return {"target": path_of(target), "similarity": round(link["strength"], 2)}


def _duplicates(outcome: Any, memory: Any, content: str) -> list[dict[str, Any]]:
    """What says the same, or may: with the share of words that both have."""
    known = [memory] if outcome["action"] == "known" else []
    return [
        {
            "path": path_of(one),
            "title": one["subject"],
            "similarity": likeness(content, one["content"]),
        }
        for one in (*known, *outcome["similar"])
    ]
