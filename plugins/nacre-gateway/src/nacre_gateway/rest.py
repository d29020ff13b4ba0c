"""REST resources for the gateway's operations."""

from __future__ import annotations

from nacre.serve.rest import Resource

RESOURCES = (
    Resource("GET", "/chats/status", "gateway-status"),
    Resource("GET", "/chats/pairings", "gateway-pairings", rows=""),
    Resource("POST", "/chats/pairings", "gateway-pair"),
    Resource("DELETE", "/chats/pairings/{who:path}", "gateway-unpair"),
    Resource("GET", "/chats", "gateway-sessions", rows=""),
    Resource("POST", "/chats/{reference:path}/end", "gateway-end"),
    Resource("GET", "/chats/{reference:path}", "gateway-session"),
)
