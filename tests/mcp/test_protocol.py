"""nacre answers over standard streams like the official SDK."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from nacre.serve.mcp import Face, HomeCalls
from nacre.serve.mcp_protocol import ENVELOPES, HANDSHAKES, Session
from tests.mcp.conftest import FOLDER
from tests.mcp.reference import make_server

Message = dict[str, Any]

ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "a-client", "version": "2"},
}
VERSION, CAPABILITIES, CLIENT = ENVELOPE
QUESTION = {"name": "memory_search", "arguments": {"query": "which database?", "project": "*"}}


def greeting(revision: Any = "2025-11-25", **more: Any) -> Message:
    about = {"name": "a-client", "version": "2"}
    params = {
        "protocolVersion": revision,
        "capabilities": {"sampling": {}},
        "clientInfo": about,
        **more,
    }
    return request_for("initialize", **params)


def request_for(method: str, **params: Any) -> Message:
    return {"method": method, **({"params": params} if params else {})}


def bare(method: str, meta: Any = None, **params: Any) -> Message:
    """A request of a revision without a handshake."""
    return request_for(method, **params, _meta=ENVELOPE if meta is None else meta)


def numbered(messages: list[Message]) -> list[Message]:
    return [{"jsonrpc": "2.0", "id": number, **message} for number, message in enumerate(messages)]


def by_the_sdk(messages: list[Message], face: Face) -> list[Message]:
    """Return the SDK's answers; each request waits for the previous answer."""
    answers = []

    async def talk() -> None:
        to_server, from_client = anyio.create_memory_object_stream[SessionMessage | Exception](9)
        to_client, from_server = anyio.create_memory_object_stream[SessionMessage](9)
        server = make_server(face)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(
                server.run, from_client, to_client, server.create_initialization_options()
            )
            for message in messages:
                await to_server.send(
                    SessionMessage(jsonrpc_message_adapter.validate_python(message))
                )
                answer = (await from_server.receive()).message
                answers.append(answer.model_dump(mode="json", by_alias=True, exclude_unset=True))
            await to_server.aclose()
        await from_server.aclose()

    anyio.run(talk)
    return untimed(answers)


def by_nacre(messages: list[Message], face: Face) -> list[Message]:
    answers: list[Message] = []
    session = Session(face, answers.append)
    for message in messages:
        session.take(json.dumps(message).encode())
        session.finish()
    return untimed(answers)


def untimed(answers: list[Message]) -> list[Message]:
    """Set the duration of recalls to zero."""
    text = re.sub(r'"took_ms": [\d.]+', '"took_ms": 0', json.dumps(answers))
    return json.loads(text)  # type: ignore[no-any-return]


WRONG = (
    request_for("tools/call"),
    request_for("tools/call", name=5),
    request_for("tools/call", name="memory_search", arguments=7),
    request_for("tools/call", name="no_such"),
    request_for("tools/call", name="memory_store", arguments={}),
    request_for("tools/call", name="memory_get", arguments={"ids": ["nowhere"]}),
    request_for("resources/list"),
    request_for("prompts/list"),
    request_for("tools/list", cursor=7),
    request_for("no/such"),
    request_for("logging/setLevel", level="debug"),
)
RIGHT = (
    request_for("tools/call", **QUESTION),
    request_for("tools/list", cursor="x"),
    request_for("tools/list"),
)


@pytest.mark.parametrize("structured", [False, True])
@pytest.mark.parametrize("revision", [*HANDSHAKES, "2026-07-28", "1999-01-01"])
def test_client_with_a_handshake_is_answered_like_the_sdk(
    home: Path, revision: str, structured: bool
) -> None:
    face = Face(HomeCalls(home), everything=structured, structured=structured, folder=FOLDER)
    messages = numbered(
        [
            greeting(revision),
            *RIGHT,
            request_for("ping"),
            request_for("ping", x=1),
            *WRONG,
            bare("tools/list"),
        ]
    )
    assert by_nacre(messages, face) == by_the_sdk(messages, face)


@pytest.mark.parametrize("structured", [False, True])
def test_client_without_a_handshake_is_answered_like_the_sdk(home: Path, structured: bool) -> None:
    face = Face(HomeCalls(home), everything=structured, structured=structured, folder=FOLDER)
    more = [bare(item["method"], **item.get("params", {})) for item in (*RIGHT, *WRONG)]
    messages = numbered(
        [bare("server/discover"), *more, bare("ping"), greeting(), request_for("tools/list")]
    )
    assert by_nacre(messages, face) == by_the_sdk(messages, face)


@pytest.mark.parametrize(
    "first",
    [
        request_for("tools/list"),
        request_for("ping"),
        request_for("no/such"),
        request_for("server/discover"),
        request_for("tools/call", **QUESTION),
        greeting(7),
        greeting(clientInfo={"name": 1}),
        greeting(capabilities=None),
        bare("tools/list", {**ENVELOPE, VERSION: "2027-01-01"}),
        bare("tools/list", {**ENVELOPE, VERSION: 7}),
        bare("tools/list", {VERSION: "2026-07-28"}),
        bare("tools/list", {**ENVELOPE, CLIENT: 7}),
        bare("tools/list", {**ENVELOPE, CAPABILITIES: 7}),
        bare("tools/list", {"progressToken": 3}),
        bare("tools/list", {VERSION: "2026-07-28", CAPABILITIES: {}}),
        {**greeting(), "params": {}},
    ],
    ids=lambda first: json.dumps(first)[:60],
)
def test_arbitrary_first_message_is_answered_like_the_sdk(home: Path, first: Message) -> None:
    face = Face(HomeCalls(home))
    messages = numbered(
        [first, greeting(), request_for("tools/list"), greeting("2024-11-05"), bare("tools/list")]
    )
    assert by_nacre(messages, face) == by_the_sdk(messages, face)


def test_protocol_revisions_match_the_sdk() -> None:
    assert HANDSHAKES == HANDSHAKE_PROTOCOL_VERSIONS
    assert ENVELOPES == MODERN_PROTOCOL_VERSIONS
