"""MCP at ``/mcp``, beside the rest: its libraries take 35 MB and most of a second, and load with the first request."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from nacre.platform.distribution import install_hint
from nacre.platform.installed import is_installed
from nacre.web.problems import problem_response

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.types import Receive, Scope, Send


class Agents:
    """An ASGI app that is made when it is first asked; it answers while :meth:`running`."""

    def __init__(self, make: Callable[[], Starlette]) -> None:
        self._make = make
        self._app: Starlette | None = None
        self._wanted, self._ready = anyio.Event(), anyio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """For as long as there may be requests."""
        self._wanted, self._ready = anyio.Event(), anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._live)
            yield
            tasks.cancel_scope.cancel()

    async def _live(self) -> None:
        await self._wanted.wait()
        self._app = await anyio.to_thread.run_sync(self._make)
        async with self._app.router.lifespan_context(self._app):
            self._ready.set()
            await anyio.sleep_forever()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if not is_installed("mcp"):
            missing = problem_response(503, "unavailable", "a library is missing: mcp", install_hint("http"))
            await missing(scope, receive, send)
            return
        self._wanted.set()
        await self._ready.wait()
        if self._app:
            await self._app(scope, receive, send)
