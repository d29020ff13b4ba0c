"""Answers of nacre's tools are never learned from the host's transcript."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import cycle, product
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client.client import Client

from nacre.home.home import Home
from nacre.memories.requests import StoreRequest
from nacre.memories.store import store
from nacre.readers.trust import is_own
from nacre.serve.mcp import Face, HomeCalls, offered_tools
from nacre.values.memory import Kind
from tests.app.conftest import World, world
from tests.app.shapes import SHAPES, WITHOUT_OUTPUT, Agent, Owner, Tool, write
from tests.app.test_loops import OTHER, RULE, unchanged
from tests.mcp.reference import make_server

__all__ = ["world"]

NAMES = {
    "Claude Code": "mcp__nacre__{}",
    "Claude Code, from a plugin": "mcp__plugin_nacre_nacre__{}",
    "Codex and OpenCode": "nacre_{}",
    "Codex, in a namespace": "{}",
    "OpenClaw": "nacre__{}",
    "Gemini CLI": "mcp_nacre_{}",
    "another name of the server": "mcp__memory__{}",
}
CALLS: dict[str, dict[str, Any]] = {
    "memory_search": {
        "query": "when is the billing service deployed, and whom to tell of staging keys"
    },
    "memory_list": {},
    "memory_store": {
        "entries": [{"content": RULE, "kind": "decision"}, {"content": OTHER, "kind": "preference"}]
    },
}
QUOTES = (
    f"As you decided before: {RULE}",
    f"From memory:\n\n1. {RULE}\n2. **{OTHER}**",
    f"{RULE} I keep to that.",
)


@pytest.fixture
def home(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    context = world.context()
    for text, kind in ((RULE, Kind.DECISION), (OTHER, Kind.PREFERENCE)):
        store(context, StoreRequest(content=text, kind=kind))
    yield context
    context.database.close()


def answer(home: Home, tool: str, *, structured: bool) -> str:
    """Return a tool's answer as a host's transcript has it: records if any, else the text."""

    async def ask() -> Any:
        calls = HomeCalls(home.settings.home)
        server = make_server(Face(calls, everything=True, structured=structured))
        try:
            async with Client(server, mode="legacy") as client:
                return await client.call_tool(tool, CALLS[tool])
        finally:
            calls.close()

    result = anyio.run(ask)
    assert not result.is_error
    return json.dumps(result.structured_content) if structured else str(result.content[0].text)


@pytest.mark.parametrize("name", NAMES)
def test_own_tools_are_recognised_under_any_host_name(name: str) -> None:
    for offer in offered_tools(everything=True):
        assert is_own(NAMES[name].format(offer.name), "")


FORMATS = [name for name in SHAPES if name not in WITHOUT_OUTPUT]
CASES = [
    (*case, host)
    for case, host in zip(product(FORMATS, CALLS, (False, True)), cycle(NAMES), strict=False)
]
"""Transcript formats, tools, with or without records, and a host's name for the tool."""


@pytest.mark.parametrize(("shape", "tool", "structured", "host"), CASES)
def test_tool_answers_teach_nothing(
    shape: str, tool: str, structured: bool, host: str, home: Home, tmp_path: Path
) -> None:
    text = answer(home, tool, structured=structured)
    assert tool != "memory_search" or "Thursdays" in text
    steps = [Owner("When do we deploy?"), Tool(NAMES[host].format(tool), "deploy", text)]
    for quote in QUOTES if tool == "memory_search" else ():
        steps += [Agent(quote), Owner("ok, good")]
    assert unchanged(home, write(tmp_path, shape, [*steps, Agent("Done."), Owner("Go on.")])) == []
