"""How HTTP is listened to: anybody on the machine can open connections, with a token or without, and must not be able
to take all files that the process may open, nor the room of those who have the token."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from nacre.serving.guard import ADMIT, TOO_MANY

if TYPE_CHECKING:
    from starlette.types import ASGIApp

_GRACE_SECONDS = 1
_MOST_MESSAGE = 65_536
_BACKLOG = 32
"""So many connections are also taken in one go, before the first of them is looked at."""


_MOST_LEAVING = 32
_LEAVE_SECONDS = 1.0
_GO = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\n%b\r\n%b" % (
    b"".join(b"%b: %b\r\n" % header for header in TOO_MANY.headers),
    TOO_MANY.body,
)


class Bounded(H11Protocol):
    """A connection that makes room for others, and that is ended where its request does not arrive whole in time.

    Whoever has shown no token and whose request is not there yet, is a stranger. Of too many strangers the one that has
    been there longest is turned away with ``503``, never the one that just came: it may be about to show the token.
    """

    most_strangers = 64
    """So many are open at once; with those that are answered it stays below the 256 files of some systems."""

    most_strangers_of_peer = 48
    """Of them, from one address."""

    most_served = 64
    """So many with the token, or with a request that is there whole, are open at once."""

    patience_seconds = 10.0
    """So long, and at most twice as long, a request may take to arrive, and its answer to be taken."""

    _timer: asyncio.TimerHandle | None = None
    _is_known = False
    _is_leaving = False
    _since = 0.0

    def connection_made(self, transport: Any) -> None:
        """See asyncio.Protocol."""
        super().connection_made(transport)
        self._since = time.monotonic()
        self.app_state = {**self.app_state, ADMIT: self._admit}
        self._look_later()
        self._make_room()

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        if not self._is_leaving:
            super().data_received(data)

    def handle_websocket_upgrade(self, event: Any) -> None:
        """See uvicorn: another protocol has the connection from now on."""
        if self._timer:
            self._timer.cancel()
        super().handle_websocket_upgrade(event)

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.Protocol."""
        if self._timer:
            self._timer.cancel()
        super().connection_lost(exc)

    @property
    def _is_held_up(self) -> bool:
        """Whether it waits for the other side: for the rest of a request, or to be rid of an answer."""
        cycle = self.cycle
        return cycle is None or cycle.response_complete or cycle.more_body or self.flow.write_paused

    @property
    def _is_stranger(self) -> bool:
        return self._is_held_up and not self._is_known and not self._is_leaving

    @property
    def _peer(self) -> str:
        return self.client[0] if self.client else ""

    def _open(self) -> list[Bounded]:
        """All that are open, this one too."""
        return [one for one in self.connections if isinstance(one, Bounded) and not one.transport.is_closing()]

    def _make_room(self) -> None:
        strangers = sorted((one for one in self._open() if one._is_stranger), key=lambda one: one._since)
        held = Counter(one._peer for one in strangers)
        if held[self._peer] > self.most_strangers_of_peer:
            peer = self._peer
        elif len(strangers) > self.most_strangers:
            peer = held.most_common(1)[0][0]
        else:
            return
        next(one for one in strangers if one._peer == peer)._turn_away()

    def _turn_away(self) -> None:
        """Say that there is no room, where no answer is under way, and end it once that was heard."""
        self._is_leaving = True
        if self.flow.write_paused or sum(one._is_leaving for one in self._open()) > _MOST_LEAVING:
            self.transport.abort()
            return
        if self.cycle is None or (self.cycle.more_body and not self.cycle.response_started):
            self.transport.write(_GO)
        if not self.transport.can_write_eof():  # as over TLS
            self.transport.close()
            return
        self.transport.write_eof()  # closing now would reset it, if more of its request is on the way
        if self._timer:
            self._timer.cancel()
        self._timer = self.loop.call_later(_LEAVE_SECONDS, self.transport.abort)

    def _admit(self, has_token: bool) -> bool:
        """Whether there is room to answer its request; who is let in with the token stays so. Where there is none, the
        request whose body is awaited longest makes room: one that has the token may be slow on purpose."""
        served = [one for one in self._open() if one is not self and not one._is_stranger and not one._is_leaving]
        if len(served) >= self.most_served and not self._is_known:
            slow = [one for one in served if one.cycle is not None and one.cycle.more_body]
            if not slow:
                return False
            min(slow, key=lambda one: one._since)._turn_away()
        self._is_known = has_token
        return True

    def _look_later(self) -> None:
        self._timer = self.loop.call_later(self.patience_seconds, self._look, self.cycle)

    def _look(self, before: object) -> None:
        """End it if it is held up by the same request as when it was looked at last."""
        if self._is_held_up and self.cycle is before:
            self.transport.abort()
        else:
            self._look_later()


def listening_config(
    app: ASGIApp, cert: str = "", key: str = "", *, most_message: int = _MOST_MESSAGE, room: int = 0
) -> uvicorn.Config:
    """How uvicorn serves an app of nacre's; encrypted, where a certificate is named.

    ``most_message``: the largest message over a WebSocket that is taken, in bytes. ``room``: so many clients are served
    at once, if not as many as usual: where a balancer stands before it, all come from its address.
    """
    return uvicorn.Config(
        app, http=_roomy(room) if room else Bounded, ws="websockets-sansio", ws_max_size=most_message,
        log_level="critical", access_log=False, log_config=None, timeout_graceful_shutdown=_GRACE_SECONDS,
        backlog=max(_BACKLOG, room), server_header=False, proxy_headers=False, ssl_certfile=cert or None,
        ssl_keyfile=key or None,
    )  # fmt: skip


def _roomy(room: int) -> type[Bounded]:
    return type("Roomy", (Bounded,), dict.fromkeys(("most_served", "most_strangers", "most_strangers_of_peer"), room))
