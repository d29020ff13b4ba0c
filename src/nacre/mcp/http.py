"""The server over streamable HTTP: stateless, so that any replica can answer any request."""

from __future__ import annotations

import hmac
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mcp.server.transport_security import TransportSecuritySettings
from starlette.middleware import Middleware

from nacre.errors import InvalidInput
from nacre.mcp.face import Face
from nacre.mcp.server import make_server

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.types import ASGIApp, Receive, Scope, Send

PATH = "/mcp"
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
MOST_BYTES = 4_000_000
"""Of one request."""


def app(face: Face, *, token: str | None = None, hosts: Sequence[str] = (), path: str = PATH) -> Starlette:
    """An ASGI app that answers at ``path``; its lifespan has to run, also where it is mounted in another app.

    ``token`` is what clients send as ``Authorization: Bearer …``; without one only loopback is served. ``hosts`` are
    further names (``name`` or ``name:port``) by which clients may call it: requests for another name, or from a page of
    another origin, are refused, as a page could otherwise reach a server on its reader's machine.
    Raises InvalidInput for further hosts without a token.
    """
    if hosts and not token:
        raise InvalidInput("a server that others can reach needs a token", hint="leave hosts out, or set a token")
    names = [name for host in (*LOOPBACK, *hosts) for name in _forms(host)]
    guarded = make_server(face).streamable_http_app(
        streamable_http_path=path, stateless_http=True, max_request_body_size=MOST_BYTES,
        transport_security=TransportSecuritySettings(
            enable_dns_rebinding_protection=True, allowed_hosts=names,
            allowed_origins=[f"{scheme}://{name}" for scheme in ("http", "https") for name in names],
        ),
    )  # fmt: skip
    if token:
        guarded.user_middleware.insert(0, Middleware(_Bearer, token=token))
    return guarded


def _forms(host: str) -> tuple[str, ...]:
    """A host as it may be called: with its port, or with any."""
    has_port = ":" in host.rpartition("]")[2]
    return (host,) if has_port else (host, f"{host}:*")


class _Bearer:
    """Lets in who knows the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
        scheme, _, credentials = given.partition(b" ")
        if hmac.compare_digest(credentials.strip(), self._expected) and scheme.lower() == b"bearer":
            await self._app(scope, receive, send)
            return
        hint = "send Authorization: Bearer and the token that nacre serve made"
        error = {"code": "unauthorized", "message": "a token is needed", "hint": hint}
        body = json.dumps({"error": error}).encode()
        headers = [(b"content-type", b"application/json"), (b"www-authenticate", b"Bearer")]
        await send({"type": "http.response.start", "status": 401, "headers": headers})
        await send({"type": "http.response.body", "body": body})
