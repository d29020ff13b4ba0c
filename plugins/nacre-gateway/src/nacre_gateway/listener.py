"""The HTTP server of the gateway, with the endpoints that platforms call."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import cast

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from nacre.base import listening, serving
from nacre_gateway.channels import ServesHttp


class Listener:
    """Serves the routes of channels. It listens only on this machine, unless the place names another host.

    Channels check signatures to decide who can call. There is no TLS, so put a tunnel or proxy in
    front.
    """

    def __init__(
        self,
        place: str,
        channels: Mapping[str, ServesHttp],
        log: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Prepare to listen at ``place`` (``[host:]port``). Raises InvalidInputError.

        The default host is loopback.
        """
        self._host, self._port = serving.split_place(place)
        self._tell = log
        routes = [route for channel in channels.values() for route in channel.routes()]
        app = Starlette(
            routes=routes,
            exception_handlers={HTTPException: _empty_response, Exception: self._failed},
        )
        app.router.redirect_slashes = False
        self._config = listening.listening_config(app)
        self._listening: socket.socket | None = None

    def open(self) -> str:
        """Listen and return the address.

        Requests wait until :meth:`run`. Raises UnavailableError if the port is taken.
        """
        if self._listening is None:
            self._listening = serving.listen_at(
                self._host, self._port, "set gateway.listen to another port"
            )
            if serving.names_of(self._host):
                self._tell(
                    f"other machines can reach the webhooks at {self._host} without encryption"
                )
        shown = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{shown}:{self._listening.getsockname()[1]}"

    async def run(self) -> None:
        """Serve until cancelled. Responses in progress have a second to finish. Raises UnavailableError."""
        self.open()
        server = _Server(self._config)
        serving = asyncio.create_task(server.serve(sockets=[cast(socket.socket, self._listening)]))
        try:
            await asyncio.shield(serving)
        finally:
            server.should_exit = True
            await asyncio.wait({serving})
            self._listening = None

    async def _failed(self, _: Request, error: Exception) -> Response:
        self._tell(f"a webhook failed: {type(error).__name__}")
        return Response(status_code=500)


class _Server(uvicorn.Server):
    """A server that leaves signals to the gateway."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do nothing, because the gateway handles signals."""
        yield


async def _empty_response(_: Request, error: Exception) -> Response:
    status = cast(HTTPException, error).status_code
    return Response(status_code=404 if status == 405 else status)
