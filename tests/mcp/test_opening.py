"""What is answered before the SDK is loaded is what the SDK itself would have answered."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from nacre.mcp.face import Face
from nacre.mcp.opening import HANDSHAKES, Opening
from nacre.mcp.server import make_server

ABOUT = {"name": "a-client", "version": "2"}


def greeting(revision: str, number: int | str = 1) -> dict[str, Any]:
    params = {"protocolVersion": revision, "capabilities": {"sampling": {}}, "clientInfo": ABOUT}
    return {"jsonrpc": "2.0", "id": number, "method": "initialize", "params": params}


def asked(method: str, number: int | str = 2, **more: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, **more}


def face(**more: Any) -> Face:
    return Face(lambda *_: None, **more)


def by_the_sdk(messages: list[dict[str, Any]], wanted: Face) -> list[dict[str, Any]]:
    """What the SDK answers to messages, each after the answer to the one before."""
    answers = []

    async def talk() -> None:
        to_server, from_client = anyio.create_memory_object_stream[SessionMessage | Exception](9)
        to_client, from_server = anyio.create_memory_object_stream[SessionMessage](9)
        server = make_server(wanted)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.run, from_client, to_client, server.create_initialization_options())
            for message in messages:
                await to_server.send(SessionMessage(jsonrpc_message_adapter.validate_python(message)))
                if "id" in message:
                    answer = (await from_server.receive()).message
                    answers.append(answer.model_dump(mode="json", by_alias=True, exclude_unset=True))
            await to_server.aclose()
        await from_server.aclose()

    anyio.run(talk)
    return answers


@pytest.mark.parametrize("everything", [False, True])
@pytest.mark.parametrize("structured", [False, True])
@pytest.mark.parametrize("revision", [*HANDSHAKES, "2026-07-28", "1999-01-01"])
def test_the_opening_answers_as_the_sdk_does(revision: str, everything: bool, structured: bool) -> None:
    wanted = face(everything=everything, structured=structured)
    messages = [
        greeting(revision, "a"), asked("ping", 2), asked("tools/list", 3), asked("resources/list", 4),
        asked("resources/templates/list", 5), asked("prompts/list", "six"), asked("tools/list", 7, params={}),
    ]  # fmt: skip
    opening = Opening(wanted)
    started = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert [opening.reply(message) for message in messages] == by_the_sdk([messages[0], started, *messages[1:]], wanted)


def test_the_revisions_with_a_handshake_are_those_of_the_sdk() -> None:
    assert HANDSHAKES == HANDSHAKE_PROTOCOL_VERSIONS


@pytest.mark.parametrize(
    "message",
    [
        None, [], [greeting("2025-11-25")], 7, {}, {"jsonrpc": "2.0"}, {"jsonrpc": "1.0", "id": 1, "method": "ping"},
        asked("tools/list"), asked("ping"), asked("server/discover"), asked("initialize"),
        asked("initialize", params={"protocolVersion": 7}),
        asked("initialize", params={"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": 1}}),
        {"jsonrpc": "2.0", "id": True, "method": "ping"}, {"jsonrpc": "2.0", "method": "ping"},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
    ],
)  # fmt: skip
def test_what_the_opening_does_not_know_for_certain_is_left_to_the_sdk(message: Any) -> None:
    assert Opening(face()).reply(message) is None


def test_a_second_handshake_is_left_to_the_sdk() -> None:
    opening = Opening(face())
    assert opening.reply(greeting("2025-11-25"))
    assert opening.reply(greeting("2025-11-25", 2)) is None
    assert opening.reply(asked("tools/list", params={"cursor": "x"})) is None
    assert opening.reply(asked("tools/call", params={"name": "memory_list"})) is None
