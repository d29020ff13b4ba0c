"""The server over streamable HTTP: stateless, so that any replica can answer any request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mcp.server.transport_security import TransportSecuritySettings
from starlette.middleware import Middleware

from nacre.errors import InvalidInput
from nacre.mcp.face import Face
from nacre.mcp.server import make_server
from nacre.serving.guard import LOOPBACK, NO_TOKEN, Guard, Names, shows_token

if TYPE_CHECKING:
    from starlette.applications import Starlette

PATH = "/mcp"
MOST_BYTES = 4_000_000
"""Of one request."""


def app(face: Face, *, token: str | None = None, hosts: Sequence[str] = (), path: str = PATH) -> Starlette:
    """An ASGI app that answers at ``path``; its lifespan has to run, also where it is mounted in another app.

    ``token`` is what clients send as ``Authorization: Bearer …``; without one only loopback is served. ``hosts`` are
    further names (``name`` or ``name:port``) by which clients may call it: requests for another name, or from a page of
    another origin than the one that they are for, are refused, as a page could otherwise reach a server on its reader's
    machine.
    Raises InvalidInput for further hosts without a token.
    """
    if hosts and not token:
        raise InvalidInput("a server that others can reach needs a token", hint="leave hosts out, or set a token")
    guarded = unguarded(face, path)
    names, lacks = Names.of(LOOPBACK, hosts), NO_TOKEN if token else None
    guard = Middleware(Guard, names=names, shows=shows_token(token), lacks=lambda _: lacks)
    guarded.user_middleware.insert(0, guard)
    return guarded


def unguarded(face: Face, path: str = PATH) -> Starlette:
    """The same for an app that has a guard already."""
    return make_server(face).streamable_http_app(
        streamable_http_path=path, stateless_http=True, max_request_body_size=MOST_BYTES,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # the guard is stricter
    )  # fmt: skip
