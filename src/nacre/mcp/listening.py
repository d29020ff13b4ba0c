"""How HTTP is listened to: anybody on the machine can open connections, with a token or without, and must not be able
to take all files that the process may open."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    from starlette.types import ASGIApp

_GRACE_SECONDS = 1
_BACKLOG = 32
"""So many connections are also taken in one go, before the first of them is looked at."""


class Bounded(H11Protocol):
    """A connection that is ended where there are too many, and where its request does not arrive whole in time."""

    most = 100
    """So many are open at once; some systems let a process open 256 files all in all."""

    patience_seconds = 10.0
    """So long, and at most twice as long, a request may take to arrive."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """See asyncio.Protocol."""
        super().connection_made(transport)
        if len(self.connections) > self.most:
            transport.abort()
        else:
            self._look_later()

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.Protocol."""
        if self._timer:
            self._timer.cancel()
        super().connection_lost(exc)

    def _look_later(self) -> None:
        self._timer = self.loop.call_later(self.patience_seconds, self._look, self.cycle)

    def _look(self, before: object) -> None:
        """End it if it waits for the rest of the same request as when it was looked at last."""
        cycle = self.cycle
        is_waiting = cycle is None or cycle.response_complete or cycle.more_body
        if is_waiting and cycle is before:
            self.transport.abort()
        else:
            self._look_later()


def listening_config(app: ASGIApp) -> uvicorn.Config:
    """How uvicorn serves an app of nacre's."""
    return uvicorn.Config(
        app, http=Bounded, ws="none", log_level="critical", access_log=False, log_config=None,
        timeout_graceful_shutdown=_GRACE_SECONDS, backlog=_BACKLOG,
    )  # fmt: skip
