"""agent-knowledge's routes (seed facts 2.8), as its clients ask them.

An entry is a memory; its path ends in eight characters of its id. What is written goes through ``store``: secrets are
taken out, what is known is not stored twice, what it replaces is superseded, and the answer says so.
"""

from __future__ import annotations

import time
from functools import cache
from typing import Any

from starlette.routing import Route

from nacre import __version__
from nacre.errors import MemoryInvalid, NotFound
from nacre.portability.sources.agent_knowledge import CATEGORIES, without_title
from nacre.portability.sources.shape import project_of, tags_of, text_of
from nacre.redact.redactor import Redactor
from nacre.text.passages import one_line, shorten
from nacre.vault import front_matter
from nacre.web.compatibility import agent_knowledge_sessions as sessions
from nacre.web.compatibility.calls import Call, Incomplete, route
from nacre.web.compatibility.entries import category_of, entry_of, file_of, likeness, path_of, reference_of

_ALL = 100_000
_MOST_LINKS = 3
_SAYS = ("message", "text", "title")
_MOST_BYTES, _NOTICE_CHARACTERS = 20_000, 300
_STARTED = time.monotonic()

PATHS = ("/health", "/api/index-status", "/api/knowledge", "/api/sessions", "/api/events")
"""How its routes begin."""

HEAVY = frozenset({
    "/api/knowledge/search", "/api/knowledge/consolidate", "/api/knowledge/reflect", "/api/knowledge/god-nodes",
    "/api/knowledge/gaps", "/api/knowledge/brief", "/api/sessions/search",
    "/api/sessions/recall",
})  # fmt: skip
"""What may be asked 20 times a minute; the rest 100 times."""


def agent_knowledge_routes() -> list[Route]:
    """All of them, the more exact paths first."""
    return [
        route("GET", "/health", health),
        route("GET", "/api/index-status", index_status),
        route("GET", "/api/knowledge", entries),
        route("POST", "/api/knowledge", write, 201),
        route("GET", "/api/knowledge/search", search),
        route("GET", "/api/knowledge/consolidate", consolidate),
        route("GET", "/api/knowledge/reflect", reflect),
        route("GET", "/api/knowledge/god-nodes", god_nodes),
        route("GET", "/api/knowledge/gaps", gaps),
        route("GET", "/api/knowledge/brief", brief),
        route("GET", "/api/knowledge/graph-data", graph_data),
        route("GET", "/api/knowledge/{path:path}/links", links),
        route("GET", "/api/knowledge/{path:path}", entry),
        route("POST", "/api/events", notify, 202),
        *sessions.session_routes(),
    ]


async def health(call: Call) -> Any:
    """``GET /health``: how many entries there are, whoever may ask is told."""
    seconds = round(time.monotonic() - _STARTED, 1)
    found: dict[str, Any] = {"status": "ok", "version": __version__, "uptime": seconds}
    return found | ({"knowledge_entries": _active(await call.ask("db-stats"))} if call.is_known else {})


async def index_status(call: Call) -> Any:
    """``GET /api/index-status``."""
    stats = await call.ask("db-stats")
    turns = sum(one["turns"] for one in stats["tools"])
    return {
        "totalEntries": _active(stats) + stats["passages"], "knowledgeEntries": _active(stats),
        "sessionEntries": stats["passages"], "uniqueSessions": sum(one["sessions"] for one in stats["tools"]),
        "turns": turns, "dbSizeMB": round(stats["database_bytes"] / 1_000_000, 2),
        "provider": stats["model"], "vectorsMissing": stats["vectors_missing"],
    }  # fmt: skip


def _active(stats: Any) -> int:
    return sum(number for kind, number in stats["memories"].items() if kind not in ("superseded", "retired"))


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
        "entry": found, "content": file_of(found), "maturity": view["maturity"],
        "access_count": view["usage"]["access_count"], "last_accessed": view["usage"]["last_recalled"],
    }  # fmt: skip


async def links(call: Call) -> Any:
    """``GET /api/knowledge/{path}/links``."""
    found = await call.ask("graph-list", reference=_reference(call), limit=1000)
    return [_edge(one) for one in found["links"]]


def _edge(link: Any) -> dict[str, Any]:
    return {
        "source": path_of(link["source"]), "target": path_of(link["target"]), "rel_type": link["rel"],
        "strength": link["strength"], "origin": link["origin"], "valid_from": link["valid"]["since"],
        "valid_to": link["valid"]["until"],
    }  # fmt: skip


def _reference(call: Call) -> str:
    """The memory that the path names. Raises NotFound."""
    reference = reference_of(call.path["path"])
    if not reference:
        raise NotFound("no entry has that path", hint="GET /api/knowledge lists them")
    return reference


async def search(call: Call) -> Any:
    """``GET /api/knowledge/search``."""
    category, most = call.text("category"), call.number("max_results", 10, 500)
    text = call.text("q")
    if not text:
        return []
    found = await call.ask("recall", text=text, limit=most * (5 if category else 1), update=False)
    hits = [one for one in found["hits"] if category in ("", category_of(one["memory"]))]
    return [
        {"entry": entry_of(one["memory"], whole=True), "score": one["score"], "excerpt": one["memory"]["content"][:300]}
        for one in hits[:most]
    ]


async def consolidate(call: Call) -> Any:
    """``GET /api/knowledge/consolidate``: groups of entries that are near in meaning."""
    found = await call.ask("alike", limit=50)
    groups = [[entry_of(one) for one in group] for group in found["groups"]]
    category = call.text("category")
    kept = [one for one in groups if not category or all(entry["category"] == category for entry in one)]
    return {"clusters": [{"entries": one} for one in kept], "total": found["total"]}


async def reflect(call: Call) -> Any:
    """``GET /api/knowledge/reflect``: questions on how entries stand to each other, and a prompt that asks them."""
    found = await call.ask("reflect", limit=call.number("max_entries", 20, 100))
    questions = [
        {"first": entry_of(one["first"]), "second": entry_of(one["second"]), "why": one["why"]}
        for one in found["questions"]
    ]
    lines = [f"- {one['first']['path']} and {one['second']['path']}: {one['why']}" for one in questions]
    return {"questions": questions, "total": found["total"], "prompt": "\n".join(lines)}


async def god_nodes(call: Call) -> Any:
    """``GET /api/knowledge/god-nodes``: the entries with the most links."""
    found = await call.ask("graph-central", limit=call.number("top_n", 10, 1000))
    return [entry_of(one["memory"]) | {"degree": one["degree"]} for one in found["found"]]


async def gaps(call: Call) -> Any:
    """``GET /api/knowledge/gaps``: the entries with one link at most."""
    found = await call.ask("graph-gaps", limit=call.number("max_entries", 30, 1000))
    return [
        entry_of(one["memory"]) | {
            "degree": one["degree"], "maturity": one["maturity"], "daysSinceAccess": one["idle_days"]
        }
        for one in found["found"]
    ]  # fmt: skip


async def brief(call: Call) -> Any:
    """``GET /api/knowledge/brief``."""
    found = await call.ask("graph-brief")
    return {
        "total_entries": found["memories"], "total_edges": found["links"],
        "core_concepts": [one["memory"]["subject"] for one in found["central"]],
        "active_projects": found["active_projects"],
        "recent_decisions": [one["subject"] for one in found["decisions"]], "stale_count": found["stale"],
        "gap_count": found["gaps"], "text": found["text"],
    }  # fmt: skip


async def graph_data(call: Call) -> Any:
    """``GET /api/knowledge/graph-data``: nodes and edges for a picture."""
    found = await call.ask("graph-map", limit=5000)
    nodes = [
        {"id": path_of(one), "label": one["subject"], "group": category_of(one), "degree": one["degree"]}
        for one in found["nodes"]
    ]
    edges = [
        {
            "from": nodes[one["source"]]["id"], "to": nodes[one["target"]]["id"], "rel_type": one["rel"],
            "strength": one["strength"], "origin": one["origin"],
        }
        for one in found["edges"]
    ]  # fmt: skip
    return {"nodes": nodes, "edges": edges}


async def notify(call: Call) -> Any:
    """``POST /api/events``: shows a line to whoever follows the home's events, as ``notice``. Raises Incomplete."""
    body = await call.body()
    text = next((body[name] for name in _SAYS if isinstance(body.get(name), str) and body[name].strip()), None)
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
    category, filename, content = (_word(body, name) for name in ("category", "filename", "content"))
    if category not in CATEGORIES:
        raise Incomplete(f"there is no category {category!r}", hint=f"one of {', '.join(CATEGORIES)}")
    if "/" in filename or "\\" in filename or ".." in filename:
        raise Incomplete("a filename holds no path", hint="name the file alone, and its folder as the category")
    outcome = await call.ask("store", **_memory(category, filename.removesuffix(".md"), content))
    view = await call.ask("look", reference=outcome["memory_id"], update=False)
    memory = view["memory"]
    return {
        "path": path_of(memory), "git": {"pushed": False, "message": "the vault is committed within minutes"},
        "autoLinks": [await _auto_link(call, one) for one in _automatic(view)],
        "duplicateWarnings": _duplicates(outcome, memory, content), "id": memory["id"], "action": outcome["action"],
        "reason": outcome["reason"], "proposed": outcome["proposed"],
        "supersedes": [path_of(one["memory"]) for one in outcome["supersedes"]],
    }  # fmt: skip


def _word(body: dict[str, Any], name: str) -> str:
    found = body.get(name)
    if not isinstance(found, str) or not found.strip():
        raise Incomplete(f"{name} is missing", hint="required: category, filename, content, each a text")
    return found.strip()


def _memory(category: str, name: str, content: str) -> dict[str, Any]:
    """The request that stores an entry as an import would."""
    try:
        head, body = front_matter.split(content)
        front = front_matter.load(head) if head else {}
    except MemoryInvalid as error:
        raise Incomplete(error.message, hint=error.hint) from error
    title = text_of(front, "title") or one_line(name.replace("-", " ").replace("_", " ")).capitalize()
    in_project = category == "projects"
    return {
        "content": without_title(body.strip(), title) or title, "subject": title, "kind": CATEGORIES[category],
        "tags": tags_of(front.get("tags"), *([] if in_project else [category])),
        "project": project_of(name if in_project else text_of(front, "project")),
    }  # fmt: skip


def _automatic(view: Any) -> list[Any]:
    return [one for one in view["links"] if one["origin"] == "auto"][:_MOST_LINKS]


async def _auto_link(call: Call, link: Any) -> dict[str, Any]:
    target = await call.ask("get", reference=link["other"], update=False)
    return {"target": path_of(target), "similarity": round(link["strength"], 2)}


def _duplicates(outcome: Any, memory: Any, content: str) -> list[dict[str, Any]]:
    """What says the same, or may: with the share of words that both have."""
    known = [memory] if outcome["action"] == "known" else []
    return [
        {"path": path_of(one), "title": one["subject"], "similarity": likeness(content, one["content"])}
        for one in (*known, *outcome["similar"])
    ]
