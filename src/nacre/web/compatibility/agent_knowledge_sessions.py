"""agent-knowledge's routes on sessions (seed facts 2.8). A session is named as nacre names it: ``<tool>:<its id>``."""

from __future__ import annotations

from typing import Any

from starlette.routing import Route

from nacre.web.compatibility.calls import Call, route

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
    return {"project": stored["project"], "sessionId": _id(stored["session"]), **_meta(stored, line["opening"])}


def _id(session: Any) -> str:
    return f"{session['tool']}:{session['native_id']}"


def _meta(stored: Any, opening: str | None) -> dict[str, Any]:
    session = stored["session"]
    return {
        "startTime": session["started"] or "unknown", "endTime": stored["ended"] or session["started"] or "unknown",
        "cwd": session["cwd"] or "", "branch": session["branch"] or "", "messageCount": stored["turns"],
        "preview": session["title"] or opening or "",
    }  # fmt: skip


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
    found = await call.ask("match-sessions", expression=text, limit=most, role=role, filter=_where(call))
    return [_hit(one) for one in found["turns"]]


def _where(call: Call) -> dict[str, Any]:
    project = call.text("project")
    return {"projects": [project], "strict": True} if project else {}


def _hit(hit: Any) -> dict[str, Any]:
    turn, session = hit["turn"], hit["session"]
    return {
        "source": "session", "id": _id(session), "project": hit["project"], "role": _ROLES[turn["speaker"]],
        "timestamp": turn["time"], "excerpt": hit["excerpt"], "score": hit["score"],
        "metadata": {"sessionDate": session["started"], "turnId": turn["id"], "trust": turn["trust"]},
    }  # fmt: skip


async def detail(call: Call) -> Any:
    """``GET /api/sessions/{id}``: its messages, with ``tail`` the last, with ``include_tools`` the tool calls, too."""
    tail = call.number("tail", 0, _ALL, least=0)
    view = await call.ask("session", reference=call.path["session"], limit=tail or None, at_end=bool(tail))
    with_tools = call.flag("include_tools", default=False)
    messages = [message for one in view["turns"] for message in _messages(one["turn"], with_tools=with_tools)]
    return {"meta": _meta(view["session"], view["opening"]), "messages": messages}


def _messages(turn: Any, *, with_tools: bool) -> list[dict[str, Any]]:
    role = _ROLES[turn["speaker"]]
    found = []
    if turn["text"] and (with_tools or role in ("user", "assistant")):
        found.append({"role": role, "content": turn["text"], "timestamp": turn["time"]})
    if with_tools:
        found += [
            {
                "role": "tool_use", "content": f"{one['name']} {one['input']}".strip(), "timestamp": turn["time"],
                "outcome": one["outcome"],
            }
            for one in turn["tool_calls"]
        ]  # fmt: skip
    return found


async def summary(call: Call) -> Any:
    """``GET /api/sessions/{id}/summary``."""
    found = await call.ask("session-summary", reference=call.path["session"])
    view, told = found["view"], found["summary"]
    topics = [{"timestamp": None, "content": one["text"][:_MOST_TOPICS]} for one in told["topics"]]
    return {
        "meta": _meta(view["session"], view["opening"]), "topicCount": len(topics), "topics": topics,
        "toolsUsed": sorted({one["name"] for one in told["tools"]}),
        "filesModified": sorted(one["path"] for one in told["files"] if one["edits"]),
        "gitCommits": told["commits"], "errorPatterns": [one["text"] for one in told["errors"]],
        "urlsAccessed": told["urls"], "packagesChanged": told["packages"],
    }  # fmt: skip
