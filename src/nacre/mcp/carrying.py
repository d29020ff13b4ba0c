"""Carry lines between a wire and the SDK: those that waited for it first."""

from __future__ import annotations

import json
import queue
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.shared._context_streams import create_context_streams
from mcp.shared.message import SessionMessage

if TYPE_CHECKING:
    from anyio.abc import TaskGroup
    from mcp.server.lowlevel.server import Server

    from nacre.mcp.stdio import Wire

PATIENCE_SECONDS = 5.0
"""At the end of input, so long what was asked before is still answered."""

_LOOK_SECONDS = 0.02


def _read(line: bytes) -> types.JSONRPCMessage | dict[str, Any]:
    """A message, or the error that answers a line which is none."""
    try:
        message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        return _read_otherwise(line)
    is_notice = isinstance(message, types.JSONRPCNotification)
    if is_notice and b'"id"' in line and json.loads(line).get("id") is not None:  # the SDK would not answer it
        return _error(None, types.INVALID_REQUEST, "an id is a text or a whole number")
    return message


def _read_otherwise(line: bytes) -> types.JSONRPCMessage | dict[str, Any]:
    """A message in which halves of characters become question marks, or what is wrong with it."""
    try:
        told = json.loads(line)
    except (ValueError, RecursionError):
        return _error(None, types.PARSE_ERROR, "this is no JSON")
    try:
        whole = json.dumps(told, ensure_ascii=False).encode("utf-8", "replace")
        return types.jsonrpc_message_adapter.validate_json(whole, by_name=False)
    except (ValueError, RecursionError):
        number = told.get("id") if isinstance(told, dict) else None
        return _error(number, types.INVALID_REQUEST, "this is no message of JSON-RPC 2.0")


def _error(number: Any, code: int, message: str) -> dict[str, Any]:
    known = number if isinstance(number, int | str) and not isinstance(number, bool) else None
    return {"jsonrpc": "2.0", "id": known, "error": {"code": code, "message": message}}


@dataclass
class Carrier:
    """One connection. ``waiting`` are lines that came before the SDK was loaded, the handshake first.

    ``given`` is the number of the handshake where it was answered already: the SDK's own answer is dropped then.
    ``lines`` are those to come, ``None`` being the end of them.
    """

    server: Server[Any]
    wire: Wire
    waiting: Sequence[bytes]
    lines: queue.SimpleQueue[Any]
    given: int | str | None = None
    _open: set[int | str] = field(default_factory=set)

    async def run(self) -> None:
        """Serve until the input ends and what was asked is answered, or nobody reads any more."""
        to_server, from_client = create_context_streams[SessionMessage | Exception](0)
        to_client, from_server = create_context_streams[SessionMessage](0)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._bring, to_server, tasks)
            tasks.start_soon(self._take, from_server, tasks)
            await self.server.run(from_client, to_client, self.server.create_initialization_options())
            tasks.cancel_scope.cancel()

    async def _bring(self, to_server: Any, tasks: TaskGroup) -> None:
        for line in self.waiting:
            await self._bring_one(line, to_server)
        while (line := await anyio.to_thread.run_sync(self.lines.get, abandon_on_cancel=True)) is not None:
            await self._bring_one(line, to_server)
        with anyio.move_on_after(PATIENCE_SECONDS):
            while self._open:
                await anyio.sleep(_LOOK_SECONDS)
        tasks.cancel_scope.cancel()

    async def _bring_one(self, line: bytes, to_server: Any) -> None:
        message = _read(line)
        if isinstance(message, dict):  # the SDK would say nothing, and its client wait for ever
            await anyio.to_thread.run_sync(self.wire.send, json.dumps(message))
            return
        if isinstance(message, types.JSONRPCRequest) and message.id != self.given:
            self._open.add(message.id)
        if isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
            number = (message.params or {}).get("requestId")
            self._open = {one for one in self._open if one != number}
        await to_server.send(SessionMessage(message))

    async def _take(self, from_server: Any, tasks: TaskGroup) -> None:
        async with from_server:
            async for carried in from_server:
                message = carried.message
                number = getattr(message, "id", None)
                is_answer = not isinstance(message, types.JSONRPCRequest | types.JSONRPCNotification)
                if is_answer and self.given is not None and number == self.given:
                    self.given = None
                    continue
                text = message.model_dump_json(by_alias=True, exclude_unset=True)
                try:
                    await anyio.to_thread.run_sync(self.wire.send, text)
                except OSError:  # nobody reads any more
                    tasks.cancel_scope.cancel()
                    return
                if is_answer:
                    self._open.discard(number)
