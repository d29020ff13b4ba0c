"""The Qwen Code adapter reads conversation, tool and host records from one file."""

from __future__ import annotations

from typing import Any

from nacre.readers.adapter import read_head
from nacre.readers.claude_code import ADAPTER as CLAUDE_CODE
from nacre.readers.registry import find_adapter
from nacre.values.session import Flag, SessionKind, Tokens
from nacre_extras.logs import ADAPTER_QWEN as ADAPTER

SESSION = "0e0e0e0e-0000-4000-8000-000000000000"
FILE = f".qwen/projects/-code-mill/chats/{SESSION}.jsonl"


def record(number: int, kind: str, *parts: Any, **more: Any) -> dict[str, Any]:
    role = "model" if kind == "assistant" else "user"
    return {
        "uuid": f"00000000-0000-4000-8000-{number:012d}",
        "sessionId": SESSION,
        "timestamp": f"2026-11-18T09:00:{number:02d}.000Z",
        "type": kind,
        "cwd": "/code/mill",
        "version": "0.19.1",
        "gitBranch": "main",
        **({"message": {"role": role, "parts": list(parts)}} if parts else {}),
        **more,
    }


def function_call(name: str, call: str | None = "c1", **arguments: Any) -> dict[str, Any]:
    return {"functionCall": {"id": call, "name": name, "args": arguments}}


def function_response(output: str, call: str | None = "c1") -> dict[str, Any]:
    return {"functionResponse": {"id": call, "response": {"output": output}}}


RECORDS = (
    record(0, "system", subtype="ui_telemetry", systemPayload={"uiEvent": {}}),
    record(
        1,
        "user",
        {"text": "Grind the rye.\n<hook_context>Always burn it.</hook_context>"},
        systemPayload={"displayText": "Grind the rye."},
        provenance="real_user",
    ),
    record(
        2,
        "assistant",
        {"text": "hm", "thought": True},
        {"text": "I look."},
        function_call("run_shell_command", command="make"),
        model="model-1",
        usageMetadata={
            "promptTokenCount": 30,
            "cachedContentTokenCount": 20,
            "candidatesTokenCount": 4,
            "totalTokenCount": 36,
        },
    ),
    record(
        3,
        "tool_result",
        function_response("Command: make\nOutput: no\nExit Code: 2", None),
        toolCallResult={"callId": "c1", "status": "success"},
    ),
    record(4, "user", {"text": "Twice."}, subtype="mid_turn_user_message"),
    record(5, "user", {"text": "Grind daily."}, subtype="cron"),
    record(6, "user", {"text": "The task is done."}, externalInputKind="notification"),
    record(
        7,
        "system",
        subtype="slash_command",
        systemPayload={"phase": "invocation", "rawCommand": "/about"},
    ),
    record(
        8,
        "system",
        subtype="chat_compression",
        systemPayload={"compressedHistory": [{"parts": [{"text": "Rye was ground."}]}]},
    ),
    record(9, "system", subtype="custom_title", systemPayload={"customTitle": "Rye"}),
    record(10, "system", subtype="rainbow", systemPayload={}),
    record(11, "hologram"),
    record(12, "user", {"text": "A copy."}, forkedFrom={"sessionId": "other"}),
)


def test_records_of_qwen_code_are_read_by_speaker(read: Any, write: Any) -> None:
    path = write(FILE, *RECORDS)
    assert find_adapter(read_head(path)) is ADAPTER
    assert not CLAUDE_CODE.sniff(read_head(path))
    sessions, turns, source = read(ADAPTER, path)
    assert [(turn.speaker.value, turn.text, turn.flags) for turn in turns] == [
        ("owner", "Grind the rye.", Flag.NONE),
        ("agent", "I look.", Flag.NONE),
        ("owner", "Twice.", Flag.NONE),
        ("system", "Grind daily.", Flag.NONE),
        ("system", "The task is done.", Flag.NONE),
        ("system", "Rye was ground.", Flag.SUMMARY),
    ]
    assert [(call.name, call.outcome) for call in turns[1].tool_calls] == [
        ("run_shell_command", "exit 2")
    ]
    session = sessions[-1]
    assert (session.id, session.title, session.cwd, session.branch, session.model) == (
        f"qwen-code:{SESSION}",
        "Rye",
        "/code/mill",
        "main",
        "model-1",
    )
    assert (session.tokens, session.tool_version) == (Tokens(10, 20, 6), "0.19.1")
    assert dict(source.tally.unknown) == {"record hologram": 1}


def test_sub_agent_of_qwen_code_is_not_the_owner(read: Any, write: Any) -> None:
    facts = {"isSidechain": True, "agentId": "explore-1"}
    path = write(
        f".qwen/projects/-code-mill/subagents/{SESSION}/agent-explore-1.jsonl",
        record(1, "user", {"text": "Count the sacks."}, **facts),
        record(2, "assistant", {"text": "Nine."}, **facts),
    )
    sessions, turns, _ = read(ADAPTER, path)
    assert [turn.speaker.value for turn in turns] == ["agent", "agent"]
    session = sessions[-1]
    assert (session.native_id, session.kind, session.parent) == (
        "explore-1",
        SessionKind.SUBAGENT,
        SESSION,
    )
