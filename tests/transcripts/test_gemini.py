"""The Gemini CLI adapter drops withdrawn events and keeps turns from before a compression."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import pytest

from nacre.errors import UnreadableTranscriptError
from nacre.readers.adapter import read_head
from nacre.readers.gemini_cli import ADAPTER
from nacre.readers.trust import INTERRUPTION
from nacre.values.session import Flag, SessionKind, Speaker, Trust

HEADER = {
    "sessionId": "6e111111-0000-4000-8000-000000000000",
    "projectHash": sha256(b"/code/mill").hexdigest(),
    "startTime": "2026-11-18T09:00:00.000Z",
    "lastUpdated": "2026-11-18T09:00:00.000Z",
    "kind": "main",
}
NAME = "mill/chats/session-2026-11-18T09-00-6e111111"


def user(own: str, text: Any, **more: Any) -> dict[str, Any]:
    return {
        "id": own,
        "timestamp": "2026-11-18T09:00:01.000Z",
        "type": "user",
        "content": text,
        **more,
    }


def gemini(own: str, text: str, *calls: dict[str, Any]) -> dict[str, Any]:
    common = {
        "id": own,
        "timestamp": "2026-11-18T09:00:02.000Z",
        "type": "gemini",
        "model": "gemini-3-flash",
    }
    return {
        **common,
        "content": text,
        "thoughts": [{"subject": "Hm", "description": "hidden"}],
        "toolCalls": list(calls),
    }


def call(name: str, args: dict[str, Any], output: str, status: str = "success") -> dict[str, Any]:
    answer = {"functionResponse": {"id": f"{name}-1", "name": name, "response": {"output": output}}}
    return {"id": f"{name}-1", "name": name, "args": args, "result": [answer], "status": status}


def speakers_and_texts(turns: Any) -> list[tuple[str, str]]:
    return [(turn.speaker.value, turn.text) for turn in turns]


def test_repeated_and_withdrawn_log_events_are_applied(read: Any, write: Any) -> None:
    path = write(
        f"{NAME}.jsonl",
        HEADER,
        user("m1", [{"text": "Grind the rye."}]),
        gemini("m2", "I gr"),
        {"$set": {"lastUpdated": "2026-11-18T09:01:00.000Z"}},
        gemini("m2", "I grind it."),
        user("m3", [{"text": "And the wheat."}]),
        gemini("m4", "Done."),
        {"$rewindTo": "m3"},
        user("m5", [{"text": "Not the wheat."}]),
        {"$set": {"summary": "Rye"}},
        {"id": "m5", "$patch": {"content": "Not the oats."}},
    )
    sessions, turns, source = read(ADAPTER, path)
    assert speakers_and_texts(turns) == [
        ("owner", "Grind the rye."),
        ("agent", "I grind it."),
        ("owner", "Not the oats."),
    ]
    assert sessions[-1].title == "Rye"
    assert sessions[-1].native_id == HEADER["sessionId"]
    assert (dict(source.tally.unknown), source.tally.corrupt) == ({}, 0)


def test_resumed_session_keeps_a_prompt_with_hook_prefix(read: Any, write: Any) -> None:
    path = write(
        f"{NAME}.jsonl",
        HEADER,
        user("m1", [{"text": "<hook_context>A note.</hook_context>\n\nGrind the rye."}]),
        gemini("m2", "I grind it."),
        HEADER,
        {"$set": {"messages": [gemini("m2", "I grind it.")]}},
        user("m3", "Now the wheat."),
    )
    assert [turn.text for turn in read(ADAPTER, path)[1]] == [
        "Grind the rye.",
        "I grind it.",
        "Now the wheat.",
    ]


def test_new_messages_replace_earlier_messages(read: Any, write: Any) -> None:
    path = write(
        f"{NAME}.jsonl",
        HEADER,
        user("m1", "Grind the rye."),
        gemini("m2", "Done."),
        {"$set": {"messages": [user("m9", "Grind the wheat.")]}},
    )
    assert speakers_and_texts(read(ADAPTER, path)[1]) == [("owner", "Grind the wheat.")]


def test_turns_before_a_context_compression_are_kept(read: Any, write: Any) -> None:
    snapshot = "<state_snapshot>The rye is ground.</state_snapshot>"
    path = write(
        f"{NAME}.jsonl",
        HEADER,
        user("m1", "Grind the rye."),
        gemini("m2", "Done."),
        {"$set": {"messages": [user("x1", [{"text": snapshot}]), user("x2", "Grind the rye.")]}},
        user("m3", "Now the wheat."),
    )
    _, turns, _ = read(ADAPTER, path)
    assert [turn.text for turn in turns] == [
        "Grind the rye.",
        "Done.",
        "The rye is ground.",
        "Now the wheat.",
    ]
    assert (turns[2].speaker, turns[2].flags) == (Speaker.SYSTEM, Flag.SUMMARY)


def test_only_typed_text_is_the_owners(read: Any, write: Any) -> None:
    files = "--- Content from referenced files ---\nAlways sieve at noon.\n--- End of content ---"
    path = write(
        f"{NAME}.jsonl",
        HEADER,
        user("m0", "<session_context>Today is Friday.</session_context>"),
        user(
            "m1",
            [{"text": "Explain @mill.py"}, {"text": files}],
            displayContent=[{"text": "Explain @mill.py"}],
        ),
        user(
            "m2",
            [
                {"text": f"Compare @mill.py {files}"},
                {"inlineData": {"mimeType": "image/png", "data": "AA"}},
            ],
        ),
        user("m3", "System: Please continue."),
        user("m4", "/memory show"),
        user(
            "m5", [{"functionResponse": {"id": "c9", "response": {"output": "Never grind wet."}}}]
        ),
        {"id": "m6", "type": "info", "content": "Update available"},
        {"id": "m7", "type": "oracle", "content": "Hm"},
    )
    _, turns, source = read(ADAPTER, path)
    assert [(turn.speaker, turn.text, turn.flags) for turn in turns] == [
        (Speaker.OWNER, "Explain @mill.py", Flag.NONE),
        (Speaker.OWNER, "Compare @mill.py", Flag.NONE),
        (Speaker.SYSTEM, "System: Please continue.", Flag.META),
        (Speaker.OWNER, "/memory show", Flag.COMMAND),
    ]
    assert dict(source.tally.unknown) == {"message oracle": 1}


def test_calls_keep_their_outcomes(read: Any, write: Any) -> None:
    shell = call(
        "run_shell_command",
        {"command": "make"},
        "Command: make\nError: (none)\nExit Code: 2\nSignal: 0",
    )
    page = call(
        "web_fetch", {"url": "https://mill.example"}, "Every miller must pay a toll of nine sacks."
    )
    path = write(
        f"{NAME}.json",
        json.dumps(
            {
                **HEADER,
                "messages": [
                    user("m1", "Build it."),
                    gemini("m2", "", shell, call("edit", {"file_path": "a.py"}, "no", "cancelled")),
                    gemini("m3", "", page),
                    gemini("m4", "Every miller must pay a toll of nine sacks."),
                ],
            },
            indent=1,
        ),
    )
    _, turns, _ = read(ADAPTER, path)
    calls = [(item.name, item.input, item.outcome) for turn in turns for item in turn.tool_calls]
    assert calls == [
        ("run_shell_command", "make", "exit 2"),
        ("edit", "a.py", "rejected"),
        ("web_fetch", "https://mill.example", "ok"),
    ]
    assert turns[-1].trust is Trust.UNTRUSTED


def test_failing_command_keeps_its_output_without_commentary(read: Any, write: Any) -> None:
    output = (
        "Command: make mill\nDirectory: (root)\nOutput: mill.c:3: the stone is missing\nError: (none)\nExit Code: 2\n"
        "Signal: 0\nBackground PIDs: (none)\nProcess Group PGID: 12"
    )
    answer = gemini("m2", "", call("run_shell_command", {"command": "make mill"}, output))
    _, turns, _ = read(ADAPTER, write(f"{NAME}.jsonl", HEADER, user("m1", "Make it."), answer))
    (tool_call,) = turns[1].tool_calls
    assert (tool_call.outcome, tool_call.error) == ("exit 2", "mill.c:3: the stone is missing")


def test_folder_is_read_from_files_next_to_the_chats(read: Any, write: Any, tmp_path: Any) -> None:
    folder = tmp_path / ".gemini" / "tmp"
    path = write(f".gemini/tmp/{NAME}.jsonl", HEADER, user("m1", "Hello"))
    (tmp_path / ".gemini" / "projects.json").write_text(
        '{"projects": {"/code/mill": "mill"}}', encoding="utf-8"
    )
    assert read(ADAPTER, path)[0][-1].cwd == "/code/mill"
    (folder / "mill" / ".project_root").write_text("/code/old-mill\n", encoding="utf-8")
    assert read(ADAPTER, path)[0][-1].cwd == "/code/old-mill"
    transcript = write(
        f"{NAME}.jsonl", {**HEADER, "directories": ["/code/new-mill"]}, user("m1", "Hello")
    )
    assert read(ADAPTER, transcript)[0][-1].cwd == "/code/new-mill"


def test_sub_agent_prompts_are_the_agents(read: Any, write: Any) -> None:
    header = {**HEADER, "sessionId": "abc123", "kind": "subagent"}
    path = write("mill/chats/6e111111-0000/abc123.jsonl", header, user("m1", "Look for flour."))
    sessions, turns, _ = read(ADAPTER, path)
    assert (sessions[-1].kind, sessions[-1].parent) == (SessionKind.SUBAGENT, "6e111111-0000")
    assert turns[0].speaker is Speaker.AGENT


def test_sub_agent_session_is_not_the_owners(read: Any, write: Any) -> None:
    path = write(
        "mill/chats/abc123.jsonl",
        {**HEADER, "kind": "subagent"},
        user("m1", "Always look for flour."),
    )
    sessions, turns, _ = read(ADAPTER, path)
    assert (sessions[-1].kind, sessions[-1].parent) == (SessionKind.SUBAGENT, None)
    assert turns[0].speaker is Speaker.AGENT


def test_document_being_written_is_not_treated_as_empty(read: Any, write: Any) -> None:
    text = json.dumps({**HEADER, "messages": [user("m1", "Grind the rye.")]}, indent=1)
    path = write(f"{NAME}.json", text.encode()[:-20])
    assert ADAPTER.sniff(read_head(path))
    for data in (text.encode()[:-20], b""):
        path.write_bytes(data)
        with pytest.raises(UnreadableTranscriptError, match="incomplete JSON document"):
            read(ADAPTER, path)


def test_torn_last_event_waits(read: Any, write: Any) -> None:
    path = write(f"{NAME}.jsonl", HEADER, user("m1", "Grind the rye."), b'{"id":"m2","type":"gem')
    _, turns, source = read(ADAPTER, path)
    assert (speakers_and_texts(turns), source.tally.corrupt) == ([("owner", "Grind the rye.")], 0)


def test_interrupted_answer_records_its_reason(read: Any, write: Any) -> None:
    notices = [
        {"id": f"n{number}", "timestamp": "2026-11-18T09:00:03.000Z", "type": kind, "content": text}
        for number, (kind, text) in enumerate(
            (
                ("info", "An update is there."),
                ("info", "Request cancelled."),
                ("error", "quota is used up"),
            )
        )
    ]
    _, turns, _ = read(
        ADAPTER,
        write(f"{NAME}.jsonl", HEADER, user("m1", "Grind."), gemini("m2", "I gr"), *notices),
    )
    assert [(turn.speaker.value, turn.text, turn.flags) for turn in turns[2:]] == [
        ("system", INTERRUPTION, Flag.META | Flag.INTERRUPTED),
        ("system", "quota is used up", Flag.META),
    ]


def test_sessions_with_only_notices_are_ignored(read: Any, write: Any) -> None:
    path = write(
        f"{NAME}.jsonl", HEADER, {"id": "m1", "type": "warning", "content": "A hook failed"}
    )
    assert read(ADAPTER, path)[:2] == ([], [])
    for kind, text in (("error", "quota is used up"), ("info", "Request cancelled.")):
        path = write(f"{NAME}.jsonl", HEADER, {"id": "m1", "type": kind, "content": text})
        assert read(ADAPTER, path)[:2] == ([], [])
