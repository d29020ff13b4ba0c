"""VS Code Copilot Chat documents, exports and change logs yield the same session."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nacre.errors import UnreadableTranscriptError
from nacre.readers.adapter import read_head
from nacre.readers.copilot import ADAPTER
from nacre.readers.registry import find_adapter
from nacre.values.session import Flag, Speaker, Trust

SESSION = "a1b2c3d4-0000-4000-8000-000000000000"
REQUEST = "request_00000000-0000-4000-8000-000000000001"
RESPONSE = "response_00000000-0000-4000-8000-000000000001"
HEAD = {
    "version": 3,
    "sessionId": SESSION,
    "creationDate": 1795000000000,
    "customTitle": "Flour",
    "initialLocation": "panel",
    "responderUsername": "GitHub Copilot",
    "inputState": {"inputText": "A draft that was never sent"},
}


def invocation(tool: str, call: str, **more: Any) -> dict[str, Any]:
    common = {
        "kind": "toolInvocationSerialized",
        "toolId": tool,
        "toolCallId": call,
        "isComplete": True,
    }
    return {
        **common,
        "isConfirmed": {"type": 1},
        "pastTenseMessage": {"value": f"Used {tool}"},
        **more,
    }


def request(*response: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "requestId": REQUEST,
        "timestamp": 1795000001000,
        "modelId": "copilot/gpt-5-mini",
        "message": {"text": "How fine is the flour?", "parts": []},
        "responseId": RESPONSE,
        "response": list(response),
        "agent": {"id": "github.copilot.editsAgent", "extensionVersion": "0.38.2"},
        "modelState": {"value": 1, "completedAt": 1795000009000},
        **more,
    }


CHAT = request(
    {"value": "I look at "},
    {"kind": "inlineReference", "inlineReference": {"fsPath": "/code/mill/src/mill.py"}},
    {"value": "."},
    {"kind": "thinking", "value": "secretly", "id": "x" * 900},
    {"kind": "prepareToolInvocation"},
    invocation("copilot_readFile", "c1"),
    invocation(
        "run_in_terminal",
        "c2",
        toolSpecificData={
            "kind": "terminal",
            "commandLine": {"original": "make sieve"},
            "terminalCommandState": {"exitCode": 2},
        },
    ),
    invocation("copilot_fetchWebPage", "c3"),
    invocation("run_in_terminal", "c4", isConfirmed={"type": 0}),
    {"value": "Every miller must pay "},
    {"value": "a toll of nine sacks."},
    {"kind": "undoStop"},
    {
        "kind": "textEditGroup",
        "uri": {"path": "/code/mill/a.py"},
        "edits": [[{"text": "much code"}]],
    },
    result={
        "metadata": {
            "renderedUserMessage": [{"type": 1, "text": "Never mind the prompt"}],
            "toolCallRounds": [
                {
                    "id": "r1",
                    "response": "",
                    "toolCalls": [
                        {
                            "id": "c1",
                            "name": "read_file",
                            "arguments": '{"filePath": "src/mill.py"}',
                        },
                        {
                            "id": "c3",
                            "name": "fetch_webpage",
                            "arguments": '{"url": "https://mill.example"}',
                        },
                    ],
                }
            ],
            "toolCallResults": {
                "c3": {
                    "content": [
                        {
                            "value": {
                                "node": {
                                    "children": [
                                        {"text": "Every miller must pay a toll of nine sacks."}
                                    ]
                                }
                            }
                        }
                    ]
                }
            },
        }
    },
)


def log(*lines: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    return ({"kind": 0, "v": {**HEAD, "customTitle": None, "requests": []}}, *lines)


def test_answer_is_split_around_its_calls(read: Any, write: Any) -> None:
    path = write("0a1b/chatSessions/s.json", json.dumps({**HEAD, "requests": [CHAT]}))
    path.parents[1].joinpath("workspace.json").write_text(
        '{"folder": "file:///code/the%20mill"}', encoding="utf-8"
    )
    sessions, turns, source = read(ADAPTER, path)
    assert [(turn.speaker.value, turn.text) for turn in turns] == [
        ("owner", "How fine is the flour?"),
        ("agent", "I look at `mill.py`."),
        ("agent", "Every miller must pay a toll of nine sacks."),
    ]
    assert [(call.name, call.input, call.outcome) for call in turns[1].tool_calls] == [
        ("copilot_readFile", "src/mill.py", "ok"),
        ("run_in_terminal", "make sieve", "exit 2"),
        ("copilot_fetchWebPage", "https://mill.example", "ok"),
        ("run_in_terminal", "Used run_in_terminal", "rejected"),
    ]
    assert [turn.trust for turn in turns] == [Trust.TRUSTED, Trust.TRUSTED, Trust.UNTRUSTED]
    assert [turn.id for turn in turns] == [REQUEST, RESPONSE, f"{RESPONSE}-1"]
    session = sessions[-1]
    assert (session.native_id, session.title, session.cwd) == (SESSION, "Flour", "/code/the mill")
    assert (session.model, session.tool_version) == ("gpt-5-mini", "0.38.2")
    assert session.started
    assert [turn.time.isoformat() if turn.time else None for turn in turns][:2] == [
        "2026-11-18T11:06:41+00:00",
        "2026-11-18T11:06:49+00:00",
    ]
    assert (dict(source.tally.unknown), source.tally.corrupt) == ({}, 0)


@pytest.mark.parametrize(
    ("own", "named"),
    [
        ("ollama/my-own", "ollama/my-own"),
        ("customoai/my-own", "local:customoai/my-own"),
        ("openrouter/anthropic/claude-haiku-4.5", "gpt-5-mini"),
        ("github.copilot-chat/gpt-4.1", "gpt-5-mini"),
    ],
)
def test_local_model_is_kept_despite_later_models(
    read: Any, write: Any, own: str, named: str
) -> None:
    requests = [request({"value": "Yes."}, modelId=item) for item in (own, "copilot/gpt-5-mini")]
    sessions, _, _ = read(
        ADAPTER, write("0a1b/chatSessions/s.json", json.dumps({**HEAD, "requests": requests}))
    )
    assert sessions[-1].model == named


def test_change_log_is_replayed(read: Any, write: Any) -> None:
    path = write(
        "s.jsonl",
        *log(
            {"kind": 1, "k": ["customTitle"], "v": "Flour"},
            {
                "kind": 2,
                "k": ["requests"],
                "v": [request(), request(requestId="request_2", response=[{"value": "Old"}])],
            },
            {"kind": 2, "k": ["requests", 0, "response"], "v": [{"value": "Gri"}]},
            {
                "kind": 2,
                "k": ["requests", 0, "response"],
                "i": 0,
                "v": [{"value": "Grind it "}, {"value": "twice."}],
            },
            {"kind": 1, "k": ["requests", 1, "message", "text"], "v": "And the wheat?"},
            {"kind": 3, "k": ["requests", 1, "responseId"]},
            {"kind": 2, "k": ["requests", 1, "response"], "i": 0},
            {"kind": 2, "k": ["requests", 1, "response"], "v": [{"value": "Once."}]},
        ),
        b'{"kind":1,"k":["customTitle"],"v":"Tor',
    )
    sessions, turns, source = read(ADAPTER, path)
    assert [turn.text for turn in turns] == [
        "How fine is the flour?",
        "Grind it twice.",
        "And the wheat?",
        "Once.",
    ]
    assert sessions[-1].title == "Flour"
    assert source.tally.corrupt == 0


@pytest.mark.parametrize("number", [0, 1, 7])
def test_change_log_without_its_first_line_is_replayed(number: int, read: Any, write: Any) -> None:
    removal = [{"kind": 2, "k": ["requests", number - 1, "response"], "v": [{"value": "Yes."}]}]
    path = write(
        "0a1b/chatSessions/5e55.jsonl",
        *(json.dumps(entry) for entry in (removal if number > 1 else [])),
        json.dumps({"kind": 1, "k": ["inputState", "inputText"], "v": "draft"}),
        json.dumps({"kind": 2, "k": ["requests"], "v": [request(response=[])]}),
        json.dumps(
            {"kind": 2, "k": ["requests", number, "response"], "v": [{"value": "Grind it."}]}
        ),
        json.dumps({"kind": 2, "k": ["requests", number, "response", 2, "x"], "v": [{}]}),
        json.dumps({"kind": 1, "k": ["requests", number + 2], "v": request(requestId="r2")}),
        json.dumps({"kind": 1, "k": ["requests", 10**9, "message"], "v": {}}),
    )
    assert find_adapter(read_head(path)) is ADAPTER
    sessions, turns, source = read(ADAPTER, path)
    questions = ["How fine is the flour?", "Grind it.", "How fine is the flour?"]
    assert [turn.text for turn in turns] == [*(["Yes."] if number > 1 else []), *questions]
    assert (sessions[-1].native_id, source.tally.corrupt) == ("5e55", 1)
    assert sessions[-1].started


def test_later_line_with_whole_requests_is_read(read: Any, write: Any) -> None:
    whole = {"kind": 1, "k": ["requests"], "v": [request(), request(requestId="request_2")]}
    draft = {"kind": 1, "k": ["inputState", "inputText"], "v": "draft"}
    path = write("chatSessions/5e55.jsonl", json.dumps(draft), json.dumps(whole))
    assert find_adapter(read_head(path)) is ADAPTER
    assert [turn.text for turn in read(ADAPTER, path)[1]] == ["How fine is the flour?"] * 2


def test_invalid_changes_are_counted(read: Any, write: Any) -> None:
    path = write(
        "s.jsonl",
        *log(
            {"kind": 1, "k": ["requests", 7, "message"], "v": {}},
            {"kind": 2, "k": [], "v": [1]},
            {"kind": 3, "k": ["nothing"]},
            {"kind": 9, "k": ["a"]},
            {"kind": 1, "k": ["requests", -1], "v": 1},
            {"kind": 2, "k": ["version"], "v": ["pushed to a number"]},
            {"kind": 2, "k": ["requests"], "v": "no array"},
            {"kind": 2, "k": ["sessionId"], "v": ["pushed to a text"]},
            {"kind": 2, "k": ["requests"], "v": [request({"kind": "hologram"})]},
            "{broken",
        ),
    )
    _, turns, source = read(ADAPTER, path)
    assert [turn.text for turn in turns] == ["How fine is the flour?"]
    assert dict(source.tally.unknown) == {"change of kind 9": 1, "response hologram": 1}
    assert source.tally.corrupt == 8


def test_export_has_the_turns_of_the_original(read: Any, write: Any) -> None:
    original = write("0a1b/chatSessions/s.json", json.dumps({**HEAD, "requests": [CHAT]}))
    plain = {key: HEAD[key] for key in ("initialLocation", "responderUsername")}
    export = write("chat.json", json.dumps({**plain, "requests": [CHAT]}, indent=2))
    assert ADAPTER.sniff(read_head(export))
    _, first, _ = read(ADAPTER, original)
    sessions, copied, _ = read(ADAPTER, export)
    assert [turn.id for turn in copied] == [turn.id for turn in first]
    assert all(turn.unique for turn in copied)
    assert sessions[-1].native_id


def test_message_sent_by_the_editor_is_not_typed(read: Any, write: Any) -> None:
    confirmed = request(
        {"value": "Going on."}, confirmation="Continue", message='@agent Continue: "Keep going?"'
    )
    _, turns, _ = read(ADAPTER, write("s.json", json.dumps({**HEAD, "requests": [confirmed]})))
    assert (turns[0].speaker, turns[0].flags) == (Speaker.SYSTEM, Flag.META)


def test_sessions_without_messages_are_ignored(read: Any, write: Any) -> None:
    assert read(ADAPTER, write("s.jsonl", *log()))[:2] == ([], [])


def test_torn_document_is_an_error(read: Any, write: Any) -> None:
    path = write("s.json", json.dumps({**HEAD, "requests": [CHAT]}).encode()[:-9])
    assert ADAPTER.sniff(read_head(path))
    with pytest.raises(UnreadableTranscriptError):
        read(ADAPTER, path)


def test_request_longer_than_the_head_is_recognised(read: Any, write: Any) -> None:
    long = request({"value": "y" * 200_000})
    path = write("s.jsonl", {"kind": 0, "v": {**HEAD, "requests": [long]}})
    assert ADAPTER.sniff(read_head(path))
