"""While a tool is at work: others are answered, progress is told, cancelling is prompt, a client's model helps."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client.client import Client
from mcp_types import CreateMessageRequestParams, CreateMessageResult, TextContent

from nacre.home.views import Extracted
from nacre.serve.mcp import Face, HomeCalls
from tests.mcp.conftest import SESSION, by_session, told
from tests.mcp.reference import make_server

pytestmark = pytest.mark.anyio
MODES = pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
SERVERS = pytest.mark.parametrize("served", [by_session, make_server], ids=["streams", "http"])


class SlowCall:
    """Calls that end when they are let go."""

    def __init__(self) -> None:
        self.begun, self.released = threading.Event(), threading.Event()

    def __call__(self, operation: str, **_: Any) -> Any:
        assert operation == "extract"
        self.begun.set()
        assert self.released.wait(30)
        return Extracted()


async def begun(call: SlowCall) -> None:
    assert await anyio.to_thread.run_sync(call.begun.wait, 30)


@MODES
@SERVERS
async def test_running_tool_does_not_block_other_requests(mode: str, served: Any) -> None:
    call = SlowCall()
    answers = []
    async with Client(served(Face(call, everything=True)), mode=mode) as client:

        async def extract() -> None:
            answers.append(
                told(
                    await client.call_tool(
                        "memory_extract", {"text": "We decided to paint it red."}
                    )
                )
            )

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(extract)
            await begun(call)
            with anyio.fail_after(10):
                await client.list_tools()
                await client.get_prompt("reflect", {})
            assert not answers
            call.released.set()
    assert "It would yield no memories" in answers[0].text


@MODES
@SERVERS
async def test_progress_is_reported_to_subscribed_callers(mode: str, served: Any) -> None:
    call = SlowCall()
    heard: list[tuple[float, str | None]] = []

    async def listen(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, message))
        if len(heard) == 2:
            call.released.set()

    async with Client(served(Face(call, everything=True)), mode=mode) as client:
        await client.call_tool(
            "memory_extract", {"text": "We decided to paint it red."}, progress_callback=listen
        )
    assert [message for _, message in heard[:2]] == ["reading", "reading"]
    assert heard[0][0] < heard[1][0]


@SERVERS
async def test_cancelled_call_returns_without_waiting(served: Any) -> None:
    call = SlowCall()
    async with Client(served(Face(call, everything=True)), mode="legacy") as client:
        with anyio.fail_after(20), anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(
                    client.call_tool, "memory_extract", {"text": "We decided to paint it red."}
                )
                await begun(call)
                scope.cancel()
        with anyio.fail_after(10):
            await client.list_tools()
        call.released.set()


@SERVERS
async def test_configured_sampling_model_of_the_client_extracts(
    home: Path, monkeypatch: pytest.MonkeyPatch, served: Any
) -> None:
    monkeypatch.setenv("NACRE_MODELS_EXTRACTION", "mcp-sampling:client")
    asked: list[str] = []

    async def sample(_: Any, params: CreateMessageRequestParams) -> CreateMessageResult:
        asked.append(params.messages[0].content.text)
        return CreateMessageResult(
            role="assistant",
            model="the-clients",
            content=TextContent(type="text", text='{"memories": []}'),
        )

    face = Face(HomeCalls(home), everything=True)
    async with Client(served(face), mode="legacy", sampling_callback=sample) as client:
        answer = told(
            await client.call_tool("memory_extract", {"session": f"claude-code:{SESSION}"})
        )
    assert not answer.failed, answer.text
    assert any("PostgreSQL" in text for text in asked)


@SERVERS
async def test_client_without_sampling_gets_a_hint(
    home: Path, monkeypatch: pytest.MonkeyPatch, served: Any
) -> None:
    monkeypatch.setenv("NACRE_MODELS_EXTRACTION", "mcp-sampling:client")
    async with Client(served(Face(HomeCalls(home), everything=True)), mode="legacy") as client:
        answer = told(
            await client.call_tool("memory_extract", {"session": f"claude-code:{SESSION}"})
        )
    assert answer.error["code"] == "model_refused"
    assert "offers sampling" in answer.error["hint"]
