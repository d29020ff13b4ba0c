"""GET resources for the gateway's operations."""

from __future__ import annotations

from nacre.serve.rest import Resource

RESOURCES = (
    Resource("/chats/status", "gateway-status"),
    Resource("/chats/pairings", "gateway-pairings", rows=""),
    Resource("/chats", "gateway-sessions", rows=""),
    Resource("/chats/{reference:path}", "gateway-session"),
)
