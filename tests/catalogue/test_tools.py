"""Each agent tool calls the catalogue's operations within their bounds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from nacre.base import json
from nacre.base.bounds import bounds_of
from nacre.memories.requests import RetireRequest, StoreRequest
from nacre.serve import mcp_arguments
from nacre.serve.catalogue import CATALOGUE
from nacre.serve.mcp import Face as Tools
from nacre.serve.mcp import HomeCalls, offered_tools
from tests.catalogue.samples import CALLS
from tests.mcp.conftest import FOLDER, Server

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class RecordedCalls:
    """Perform operations as usual and record their names."""

    def __init__(self, home: Path) -> None:
        self.calls = HomeCalls(home)
        self.names: set[str] = set()

    def __call__(self, operation: str, /, **fields: Any) -> Any:
        self.names.add(operation)
        return self.calls(operation, **fields)

    def close(self) -> None:
        self.calls.close()

    def is_set_to(self, provider: str) -> bool:
        return self.calls.is_set_to(provider)


def test_every_tool_is_called() -> None:
    assert CALLS.keys() == {offer.name for offer in offered_tools(everything=True)}


@pytest.mark.parametrize("tool", CALLS)
async def test_tool_calls_existing_operations(
    tool: str, home: Path, resolve: Callable[[Any], Any]
) -> None:
    server, recorder = Server(home, folder=FOLDER), RecordedCalls(home)
    async with server.client(Tools(recorder, everything=True, folder=FOLDER)) as client:
        for arguments in CALLS[tool]:
            answer = await client.call_tool(tool, resolve(arguments))
            assert not answer.is_error, answer
    recorder.close()
    assert recorder.names <= CATALOGUE.keys()


@pytest.mark.parametrize(
    ("tool", "request_", "names"),
    [
        (mcp_arguments.NewEntry, StoreRequest, ("kind", "importance", "expiry", "scope")),
        (mcp_arguments.Retire, RetireRequest, ("reason", "persist")),
    ],
)
def test_fields_shared_by_tool_and_request_have_equal_defaults(
    tool: Any, request_: Any, names: tuple[str, ...]
) -> None:
    for name in names:
        assert default(tool, name) == default(request_, name), name


def default(kind: Any, name: str) -> Any:
    return next(field.default for field in msgspec.structs.fields(kind) if field.name == name)


def test_tool_bounds_match_request_bounds() -> None:
    importance = bounds_of(StoreRequest, "importance")
    schema = msgspec.json.schema(mcp_arguments.NewEntry, schema_hook=json.schema_hook)
    field = schema["$defs"]["NewEntry"]["properties"]["importance"]
    assert (field["minimum"], field["maximum"]) == (importance.ge, importance.le) == (1, 10)
