"""The same server on the official SDK: protocol by the SDK, everything else by :mod:`nacre.serve.mcp`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread
import mcp_types as types
from anyio.lowlevel import current_token
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError

from nacre.errors import InvalidInputError
from nacre.serve import mcp_pages
from nacre.serve.mcp import INSTRUCTIONS, Call, Face, Offer, refusal
from nacre.serve.mcp_protocol import ABOUT, Asker, sampled

_TICK_SECONDS = 1.0
_AT_ONCE = 8
_LONGEST_ANSWER_SECONDS = 600.0

Context = ServerRequestContext[Any, Any]
T = TypeVar("T")


@dataclass
class _Telling:
    """What a call says of how far it is; read by the event loop while a thread works."""

    words: str = ""

    def tell(self, words: str) -> None:
        self.words = words


def make_server(face: Face) -> Server[Any]:
    """A server for any number of connections, of either era."""
    hands = _Hands(face)
    return Server(
        ABOUT["name"],
        version=ABOUT["version"],
        title=ABOUT["title"],
        instructions=INSTRUCTIONS,
        get_tool_input_schema=hands.schema,
        on_list_tools=hands.list_tools,
        on_call_tool=hands.call_tool,
        on_list_prompts=hands.list_prompts,
        on_get_prompt=hands.get_prompt,
    )


class _Hands:
    """What the SDK calls. Work is done in threads, so that pings are answered meanwhile."""

    def __init__(self, face: Face) -> None:
        self._face = face
        self._tools = types.ListToolsResult.model_validate({"tools": face.tools})
        self._limiter: anyio.CapacityLimiter | None = None

    def schema(self, name: str) -> Mapping[str, Any] | None:
        """The schema of a tool's arguments."""
        return next(
            (tool["inputSchema"] for tool in self._face.tools if tool["name"] == name), None
        )

    async def list_tools(
        self, _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return self._tools

    async def call_tool(
        self, home: Context, asked: types.CallToolRequestParams
    ) -> types.CallToolResult:
        offer = self._face.named.get(asked.name)
        if offer is None:
            names = ", ".join(self._face.named)
            raise MCPError(
                types.INVALID_PARAMS, f"there is no tool {asked.name[:80]!r}; there are {names}"
            )
        telling = _Telling()
        call = sampled(self._face.call, _asker(home))
        work = partial(self._answer, offer, asked.arguments or {}, telling, call)
        return types.CallToolResult.model_validate(await self._working(home, telling, work))

    def _answer(
        self, offer: Offer, given: Mapping[str, Any], telling: _Telling, call: Call
    ) -> dict[str, Any]:
        return self._face.answer(offer, given, self._face.desk(telling.tell, call))

    async def list_prompts(
        self, _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        return types.ListPromptsResult.model_validate({"prompts": mcp_pages.PROMPTS})

    async def get_prompt(
        self, _: Context, asked: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        try:
            description, text = mcp_pages.prompt_text(asked.name, asked.arguments or {})
        except InvalidInputError as error:
            raise MCPError(types.INVALID_PARAMS, error.message, refusal(error)) from None
        message = {"role": "user", "content": {"type": "text", "text": text}}
        return types.GetPromptResult.model_validate(
            {"description": description, "messages": [message]}
        )

    async def _working(self, home: Context, telling: _Telling, work: Callable[[], T]) -> T:
        """Do work in a thread and tell how far it is. Whoever cancels is not kept waiting for the thread."""
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(_AT_ONCE)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_report, home, telling)
            done = await anyio.to_thread.run_sync(
                work, abandon_on_cancel=True, limiter=self._limiter
            )
            tasks.cancel_scope.cancel()
        return done


async def _report(home: Context, telling: _Telling) -> None:
    """Once a second, say that work goes on; clients that did not ask for it hear nothing."""
    passed = 0.0
    while True:
        await anyio.sleep(_TICK_SECONDS)
        passed += _TICK_SECONDS
        await home.session.report_progress(passed, message=telling.words or "working")


def _asker(home: Context) -> Asker | None:
    """A way to the client's own model, where it offers one: only in the eras and transports that can ask back."""
    able = home.session.client_capabilities
    if able is None or able.sampling is None or not home.session.can_send_request:
        return None
    loop = current_token()

    async def ask(system: str, text: str, most_tokens: int) -> tuple[str, str]:
        message = types.SamplingMessage(
            role="user", content=types.TextContent(type="text", text=text)
        )
        params = types.CreateMessageRequestParams(
            messages=[message], system_prompt=system, max_tokens=most_tokens
        )
        answer = await home.session.send_request(
            types.CreateMessageRequest(params=params),
            types.CreateMessageResult,
            _LONGEST_ANSWER_SECONDS,
        )
        return (
            answer.content.text if isinstance(answer.content, types.TextContent) else ""
        ), answer.model

    return lambda system, text, most: anyio.from_thread.run(ask, system, text, most, token=loop)
