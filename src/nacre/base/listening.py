"""Limits on connections to an HTTP server."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    from starlette.types import ASGIApp

# Any process on the machine can open connections. These must not use up the file descriptors.


_GRACE_SECONDS = 1
_BACKLOG = 32
"""Maximum number of new connections that are accepted at the same time."""


class Bounded(H11Protocol):
    """A connection with a time limit. It is closed early if too many others are open."""

    most = 128
    """Maximum number of connections. Some systems allow a process only 256 open files."""

    patience_seconds = 10.0
    """Time limit for receiving a request or sending its answer. Waits can be twice as long."""

    _timer: asyncio.TimerHandle | None = None
    _since = 0.0

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._since = time.monotonic()
        self._check_later()
        open_connections = [
            connection
            for connection in self.connections
            if isinstance(connection, Bounded) and not connection.transport.is_closing()
        ]
        if len(open_connections) > self.most:
            blocked = [connection for connection in open_connections if connection._is_held_up]
            min(blocked, key=lambda connection: connection._since).transport.abort()

    def on_response_complete(self) -> None:
        self._since = time.monotonic()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer:
            self._timer.cancel()
        super().connection_lost(exc)

    @property
    def _is_held_up(self) -> bool:
        """True while the server waits for the client to send its request or receive the answer."""
        cycle = self.cycle
        return cycle is None or cycle.response_complete or cycle.more_body or self.flow.write_paused

    def _check_later(self) -> None:
        self._timer = self.loop.call_later(self.patience_seconds, self._check, self.cycle)

    def _check(self, before: object) -> None:
        if self._is_held_up and self.cycle is before:
            self.transport.abort()
        else:
            self._check_later()


def listening_config(app: ASGIApp, cert: str, key: str, room: int) -> uvicorn.Config:
    """Return uvicorn's configuration for an app, with TLS if ``cert`` is given.

    ``room`` overrides the maximum number of connections.
    """
    return uvicorn.Config(
        app,
        http=type("Roomy", (Bounded,), {"most": room}) if room else Bounded,
        ws="none",
        log_level="critical",
        access_log=False,
        log_config=None,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        backlog=max(_BACKLOG, room),
        server_header=False,
        proxy_headers=False,
        ssl_certfile=cert or None,
        ssl_keyfile=key or None,
    )
