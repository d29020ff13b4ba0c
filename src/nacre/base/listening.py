"""Connection limits."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    from starlette.types import ASGIApp
from nacre.base.serving import ADMIT, TOO_MANY

# -- Connection limits -----------------------------------------------------------------------------
# Any process on the machine can open connections. These must not use up the file descriptors or
# block callers that have the token.


_GRACE_SECONDS = 1
_BACKLOG = 32
"""Number of connections accepted in one batch, before the first is handled."""


_MAX_LEAVING = 32
_LEAVE_SECONDS = 1.0
_LIMITS = ("most_served", "most_strangers", "most_strangers_of_peer")
_BUSY_RESPONSE = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\n%b\r\n%b" % (
    b"".join(b"%b: %b\r\n" % header for header in TOO_MANY.headers),
    TOO_MANY.body,
)


class Bounded(H11Protocol):
    """A connection with a time limit. If too many connections are open, some are closed.

    A connection is a stranger until it has sent a valid token or a complete request. If there are
    too many strangers, the oldest stranger receives ``503``. A new connection is kept, because it
    might be about to send its token.
    """

    most_strangers = 64
    """Maximum number of strangers. It keeps the total below 256, the limit for open files on some systems."""

    most_strangers_of_peer = 48
    """Maximum number of strangers from one address."""

    most_served = 64
    """Maximum number of open connections with the token or a complete request."""

    patience_seconds = 10.0
    """Time limit in seconds for receiving a request and for sending its answer. Enforcement can take twice as long."""

    _timer: asyncio.TimerHandle | None = None
    _is_known = False
    _is_leaving = False
    _since = 0.0

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._since = time.monotonic()
        self.app_state = {**self.app_state, ADMIT: self._admit}
        self._check_later()
        self._make_room()

    def data_received(self, data: bytes) -> None:
        if not self._is_leaving:
            super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer:
            self._timer.cancel()
        super().connection_lost(exc)

    @property
    def _is_held_up(self) -> bool:
        """True while waiting for the client to send a request or receive an answer."""
        cycle = self.cycle
        return cycle is None or cycle.response_complete or cycle.more_body or self.flow.write_paused

    @property
    def _is_stranger(self) -> bool:
        return self._is_held_up and not self._is_known and not self._is_leaving

    @property
    def _peer(self) -> str:
        return self.client[0] if self.client else ""

    def _open(self) -> list[Bounded]:
        return [
            connection
            for connection in self.connections
            if isinstance(connection, Bounded) and not connection.transport.is_closing()
        ]

    def _make_room(self) -> None:
        strangers = sorted(
            (connection for connection in self._open() if connection._is_stranger),
            key=lambda connection: connection._since,
        )
        per_peer = Counter(connection._peer for connection in strangers)
        if per_peer[self._peer] > self.most_strangers_of_peer:
            peer = self._peer
        elif len(strangers) > self.most_strangers:
            peer = per_peer.most_common(1)[0][0]
        else:
            return
        next(connection for connection in strangers if connection._peer == peer)._turn_away()

    def _turn_away(self) -> None:
        """Send ``503``, unless an answer has started. Then close the connection."""
        self._is_leaving = True
        if (
            self.flow.write_paused
            or sum(connection._is_leaving for connection in self._open()) > _MAX_LEAVING
        ):
            self.transport.abort()
            return
        if self.cycle is None or (self.cycle.more_body and not self.cycle.response_started):
            self.transport.write(_BUSY_RESPONSE)
        if not self.transport.can_write_eof():  # for example over TLS
            self.transport.close()
            return
        self.transport.write_eof()  # close() would reset the connection if more of the request arrives
        if self._timer:
            self._timer.cancel()
        self._timer = self.loop.call_later(_LEAVE_SECONDS, self.transport.abort)

    def _admit(self, has_token: bool) -> bool:
        """Return True if the server can accept this request.

        If too many requests are open, the connection that has been sending its body for the longest
        time is closed to make room.
        """
        served = [
            connection
            for connection in self._open()
            if connection is not self and not connection._is_stranger and not connection._is_leaving
        ]
        if len(served) >= self.most_served and not self._is_known:
            slow = [
                connection
                for connection in served
                if connection.cycle is not None and connection.cycle.more_body
            ]
            if not slow:
                return False
            min(slow, key=lambda connection: connection._since)._turn_away()
        self._is_known = has_token
        return True

    def _check_later(self) -> None:
        self._timer = self.loop.call_later(self.patience_seconds, self._check, self.cycle)

    def _check(self, before: object) -> None:
        """Close the connection if the same request has been blocked since the last check."""
        if self._is_held_up and self.cycle is before:
            self.transport.abort()
        else:
            self._check_later()


def listening_config(
    app: ASGIApp,
    cert: str = "",
    key: str = "",
    *,
    room: int = 0,
) -> uvicorn.Config:
    """Return uvicorn's configuration for an app. Use TLS if ``cert`` is given.

    ``room`` replaces the connection limits per address. Behind a load balancer, all connections have
    the same address.
    """
    return uvicorn.Config(
        app,
        http=type("Roomy", (Bounded,), dict.fromkeys(_LIMITS, room)) if room else Bounded,
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
