"""The same server on the official SDK: protocol by the SDK, everything else by :mod:`nacre.serve.mcp`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError

from nacre.serve.mcp import INSTRUCTIONS, Face
from nacre.serve.mcp_protocol import ABOUT

_TICK_SECONDS = 1.0
_AT_ONCE = 8

Context = ServerRequestContext[Any, Any]
T = TypeVar("T")


@dataclass
class _Progress:
    """The progress of a call; the event loop reads it while a thread works."""

    words: str = ""

    def tell(self, words: str) -> None:
        self.words = words


def make_server(face: Face) -> Server[Any]:
    """A server for any number of connections with old and new protocol revisions."""
    hands = _Handlers(face)
    return Server(
        ABOUT["name"],
        version=ABOUT["version"],
        title=ABOUT["title"],
        instructions=INSTRUCTIONS,
        get_tool_input_schema=hands.schema,
        on_list_tools=hands.list_tools,
        on_call_tool=hands.call_tool,
    )


class _Handlers:
    """The SDK's handlers. Calls run in threads, so that the server answers pings meanwhile."""

    def __init__(self, face: Face) -> None:
        self._face = face
        self._tools = types.ListToolsResult.model_validate({"tools": face.tools})
        self._limiter: anyio.CapacityLimiter | None = None

    def schema(self, name: str) -> Mapping[str, Any] | None:
        """Return the schema of a tool's arguments."""
        return next(
            (tool["inputSchema"] for tool in self._face.tools if tool["name"] == name), None
        )

    async def list_tools(
        self, _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return self._tools

    async def call_tool(
        self, home: Context, request: types.CallToolRequestParams
    ) -> types.CallToolResult:
        offer = self._face.named.get(request.name)
        if offer is None:
            names = ", ".join(self._face.named)
            raise MCPError(
                types.INVALID_PARAMS, f"there is no tool {request.name[:80]!r}; there are {names}"
            )
        telling = _Progress()
        work = partial(self._face.answer, offer, request.arguments or {}, telling.tell)
        return types.CallToolResult.model_validate(await self._working(home, telling, work))

    async def _working(self, home: Context, telling: _Progress, work: Callable[[], T]) -> T:
        """Work in a thread and report progress. A cancelled caller does not wait for the thread."""
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(_AT_ONCE)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_report, home, telling)
            result = await anyio.to_thread.run_sync(
                work, abandon_on_cancel=True, limiter=self._limiter
            )
            tasks.cancel_scope.cancel()
        return result


async def _report(home: Context, telling: _Progress) -> None:
    """Report progress once a second to clients that requested it."""
    passed = 0.0
    while True:
        await anyio.sleep(_TICK_SECONDS)
        passed += _TICK_SECONDS
        await home.session.report_progress(passed, message=telling.words or "working")
