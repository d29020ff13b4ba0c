"""A running tool blocks no other call, reports progress and is cancelled promptly, and a client's model helps."""

from __future__ import annotations

import threading
from typing import Any

import anyio
import pytest
from mcp.client.client import Client

from nacre.serve.mcp import Face
from tests.mcp.conftest import by_session, tool_answer
from tests.mcp.reference import make_server

pytestmark = pytest.mark.anyio
MODES = pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
SERVERS = pytest.mark.parametrize("served", [by_session, make_server], ids=["streams", "http"])


class SlowCall:
    """Calls that block until they are released."""

    def __init__(self) -> None:
        self.begun, self.released = threading.Event(), threading.Event()

    def __call__(self, operation: str, **_: Any) -> Any:
        assert operation == "extract"
        self.begun.set()
        assert self.released.wait(30)
        return []


async def wait_for_start(call: SlowCall) -> None:
    assert await anyio.to_thread.run_sync(call.begun.wait, 30)


@MODES
@SERVERS
async def test_running_tool_does_not_block_other_requests(mode: str, served: Any) -> None:
    call = SlowCall()
    answers = []
    async with Client(served(Face(call, everything=True)), mode=mode) as client:

        async def extract() -> None:
            answers.append(
                tool_answer(
                    await client.call_tool(
                        "memory_extract", {"text": "We decided to paint it red."}
                    )
                )
            )

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(extract)
            await wait_for_start(call)
            with anyio.fail_after(10):
                await client.list_tools()
            assert not answers
            call.released.set()
    assert "It would yield no memories" in answers[0].text


@MODES
@SERVERS
async def test_progress_is_reported_to_subscribed_callers(mode: str, served: Any) -> None:
    call = SlowCall()
    updates: list[tuple[float, str | None]] = []

    async def listen(progress: float, total: float | None, message: str | None) -> None:
        updates.append((progress, message))
        if len(updates) == 2:
            call.released.set()

    async with Client(served(Face(call, everything=True)), mode=mode) as client:
        await client.call_tool(
            "memory_extract", {"text": "We decided to paint it red."}, progress_callback=listen
        )
    assert [message for _, message in updates[:2]] == ["reading", "reading"]
    assert updates[0][0] < updates[1][0]


@SERVERS
async def test_cancelled_call_returns_without_waiting(served: Any) -> None:
    call = SlowCall()
    async with Client(served(Face(call, everything=True)), mode="legacy") as client:
        with anyio.fail_after(20), anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(
                    client.call_tool, "memory_extract", {"text": "We decided to paint it red."}
                )
                await wait_for_start(call)
                scope.cancel()
        with anyio.fail_after(10):
            await client.list_tools()
        call.released.set()
