"""The routes that a program expects of a server: each is an operation by another name, and the table says which."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

PREFIX = "/api/v1"
_REFERENCE = "/{reference:path}"


@dataclass(frozen=True, slots=True)
class Resource:
    """One route: a method and a path below ``PREFIX``, and the operation that it runs.

    Parameters of the path and of the query are fields of the request, or of the filter in it. ``names`` says which
    where they are called otherwise, ``given`` holds fields that have another default here: whoever reads by GET uses
    nothing up. ``rows`` is the field of the result that holds a list, and empty where the result is one; ``offset`` is
    the field of the request that skips items of it.
    """

    method: str
    path: str
    operation: str
    names: Mapping[str, str] = field(default_factory=dict)
    given: Mapping[str, object] = field(default_factory=dict)
    rows: str | None = None
    offset: str = "offset"
    creates: bool = False

    @property
    def reads(self) -> bool:
        """Whether it changes nothing."""
        return self.method == "GET"


def _get(path: str, operation: str, rows: str | None = None, **names: str) -> Resource:
    return Resource("GET", path, operation, names, rows=rows)


_UNUSED = {"update": False}
_OF_PROJECT = {"name": "project"}
_MEMORIES = "/memories"
_MEMORY = _MEMORIES + _REFERENCE

RESOURCES = (
    _get(_MEMORIES, "list", "memories"),
    Resource("POST", _MEMORIES, "store", creates=True),
    _get(f"{_MEMORIES}/retired", "retired", ""),
    _get(f"{_MEMORY}/history", "history", ""),
    _get(f"{_MEMORY}/links", "graph-list", "links"),
    _get(f"{_MEMORY}/graph", "graph-show"),
    Resource("GET", _MEMORY, "look", given=_UNUSED),
    Resource("PATCH", _MEMORY, "edit"),
    Resource("DELETE", _MEMORY, "retire", {"reference": "references"}),
    Resource("GET", "/search", "recall", {"q": "text"}, _UNUSED, "hits"),
    Resource("GET", "/sessions/search", "search-sessions", {"q": "text"}, _UNUSED, "turns"),
    _get("/sessions/match", "match-sessions", "turns", q="expression"),
    _get("/chats/search", "search-chats", "passages", q="query"),
    _get("/sessions", "sessions", "lines"),
    _get(f"/sessions{_REFERENCE}/summary", "session-summary"),
    Resource("GET", f"/sessions{_REFERENCE}", "session", rows="turns", offset="first"),
    _get("/chats/status", "gateway-status"),
    _get("/chats/pairings", "gateway-pairings", ""),
    Resource("POST", "/chats/pairings", "gateway-pair"),
    Resource("DELETE", "/chats/pairings/{who:path}", "gateway-unpair"),
    _get("/chats", "gateway-sessions", ""),
    Resource("POST", f"/chats{_REFERENCE}/end", "gateway-end"),
    _get(f"/chats{_REFERENCE}", "gateway-session"),
    _get("/files/history", "did", "changes"),
    _get("/fixes", "fix", "troubles", q="error"),
    _get("/projects", "project-list", ""),
    Resource("GET", "/projects/{project}/page", "page-own", given=_OF_PROJECT),
    Resource("PUT", "/projects/{project}/page", "page-write", given=_OF_PROJECT),
    _get("/projects/{project}", "project-show"),
    _get("/pages/{name}", "page-own"),
    Resource("PUT", "/pages/{name}", "page-write"),
    _get("/graph", "graph-list", "links"),
    _get("/graph/map", "graph-map"),
    _get("/graph/central", "graph-central", "found"),
    _get("/graph/gaps", "graph-gaps", "found"),
    _get("/graph/components", "graph-components", "found"),
    _get("/graph/brief", "graph-brief"),
    _get("/graph/stale", "graph-stale", "memories"),
    _get("/review", "review", "items"),
    _get("/unanswered", "unanswered", "questions"),
    _get("/log", "log", ""),
    _get(f"/log{_REFERENCE}", "diff"),
    _get("/traces", "traces", ""),
    _get(f"/traces{_REFERENCE}", "trace"),
    _get("/today", "today"),
    _get("/activity", "activity"),
    _get("/cost", "cost"),
    _get("/overview", "overview"),
    _get("/context", "context"),
    _get("/settings", "config", ""),
    _get("/settings/{key}", "config-get"),
    Resource("PUT", "/settings/{key}", "config-set"),
    _get("/forgotten", "forgotten", ""),
    _get("/archive", "archive-status"),
    _get("/watcher", "watcher"),
)
"""In the order in which they are tried: what is more exact comes first."""
