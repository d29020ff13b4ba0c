"""The adapters of rarely used agents read speakers, calls, session facts and adjacent files."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import md5
from pathlib import Path
from typing import Any

import pytest

from nacre.home.parsing import open_transcript
from nacre.readers.adapter import Adapter, Places, read_head
from nacre.readers.registry import find_adapter
from nacre.testing.conformance import Agent, Owner, Tool, check_adapter
from nacre.values.session import Flag, Session, SessionKind, Speaker, Tokens, Turn
from nacre_extras import databases, logs
from tests.app import agent_shapes, shapes

InTwoGoes = Callable[[Adapter, Path], None]

TALK = (
    Owner("Where do the herons nest?"),
    Tool("Read", "/code/marsh/map.md", "by the weir"),
    Agent("They nest by the weir."),
    Owner("Count them on Friday."),
)
PLACES = {
    "droid": (logs.ADAPTER_DROID, ".factory/sessions/-code-acme/d401.jsonl"),
    "gptme": (logs.ADAPTER_GPTME, ".local/share/gptme/logs/2026-11-18-boats/conversation.jsonl"),
    "grok": (logs.ADAPTER_GROK, ".grok/sessions/%2Fcode%2Facme/0190a000/updates.jsonl"),
    "grok/history": (
        logs.ADAPTER_GROK,
        ".grok/sessions/%2Fcode%2Facme/0190a001/chat_history.jsonl",
    ),
    "hermes-files": (
        databases.ADAPTER_HERMES_FILES,
        ".hermes/sessions/20261118_090000_5a3e2ff1.jsonl",
    ),
    "iflow": (logs.ADAPTER_IFLOW, ".iflow/projects/-code-acme/session-1f10a000.jsonl"),
    "kimi": (logs.ADAPTER_KIMI, ".kimi/sessions/0a1b/c0ffee01/wire.jsonl"),
    "kimi/context": (logs.ADAPTER_KIMI, ".kimi/sessions/0a1b/c0ffee02/context.jsonl"),
    "kimi/code": (
        logs.ADAPTER_KIMI,
        ".kimi-code/sessions/wd_acme/session_c0ffee/agents/main/wire.jsonl",
    ),
}


def speakers_and_texts(turns: list[Turn]) -> list[tuple[str, str]]:
    return [(turn.speaker.value, turn.text) for turn in turns]


def calls(turns: list[Turn]) -> list[tuple[str, str, str | None]]:
    return [(call.name, call.input, call.outcome) for turn in turns for call in turn.tool_calls]


def message(role: str, *blocks: Any, **facts: Any) -> dict[str, Any]:
    return {"role": role, "content": list(blocks), **facts}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


@pytest.mark.parametrize("shape", PLACES)
def test_sessions_in_each_agents_folder_are_found_and_read(shape: str, write: Any) -> None:
    expected, name = PLACES[shape]
    path = write(name, *shapes.SHAPES[shape][1](TALK))
    home = path.parents[len(Path(name).parts) - 1]
    adapter = find_adapter(read_head(path))
    assert adapter is expected
    roots = adapter.roots(Places(home, {}, "linux"))
    files = [file for root in roots for glob in root.patterns for file in root.folder.glob(glob)]
    assert files == [path]
    with open_transcript(path) as (_, source):
        turns = [item for item in adapter.parse(source) if isinstance(item, Turn)]
    assert [words for words in speakers_and_texts(turns) if words[1]] == [
        ("owner", "Where do the herons nest?"),
        ("agent", "They nest by the weir."),
        ("owner", "Count them on Friday."),
    ]
    assert calls(turns) == [("Read", "/code/marsh/map.md", "ok")]


@pytest.mark.parametrize("shape", [shape for shape in PLACES if "/" in shape])
def test_other_formats_of_an_agent_satisfy_the_conformance_suite(
    shape: str, tmp_path: Path
) -> None:
    check_adapter(
        PLACES[shape][0],
        shapes.write(tmp_path / "sample", shape, TALK),
        write=lambda folder, steps: shapes.write(folder, shape, steps),
    )


# Factory droid


def droid_line(number: int, inner: dict[str, Any], **facts: Any) -> dict[str, Any]:
    stamp = f"2026-11-18T10:00:{number:02d}.000Z"
    return {"type": "message", "id": f"m{number}", "timestamp": stamp, "message": inner, **facts}


def test_droid_hides_context_and_reads_settings(
    read: Any, write: Any, in_two_goes: InTwoGoes
) -> None:
    call = {"type": "tool_use", "id": "t1", "name": "Execute", "input": {"command": "make weir"}}
    failed = {
        "type": "tool_result",
        "tool_use_id": "t1",
        "is_error": True,
        "content": "Command failed (exit code: 2)\nno weir",
    }
    path = write(
        "s/d4.jsonl",
        {"type": "session_start", "id": "d4-1", "title": "Weir", "cwd": "/code/marsh"},
        droid_line(1, message("user", text("Tool catalogue"), visibility="llm_only")),
        droid_line(2, message("user", text("Host rules")), visibility="llm_only"),
        droid_line(3, message("user", text("<system-reminder>x</system-reminder>"), text("Go."))),
        droid_line(4, message("assistant", {"type": "thinking", "thinking": "hm"}, call)),
        droid_line(5, message("user", failed, text("The host adds this."))),
        droid_line(6, message("assistant", text("It broke."))),
        {"type": "compaction_state", "id": "c1", "summaryText": "The weir broke."},
        {"type": "todo_state", "todos": []},
    )
    usage = {"inputTokens": 7, "cacheCreationTokens": 2, "cacheReadTokens": 5, "outputTokens": 3}
    write("s/d4.settings.json", json.dumps({"model": "heron-1", "tokenUsage": usage}))
    sessions, turns, source = read(logs.ADAPTER_DROID, path)
    assert speakers_and_texts(turns) == [
        ("owner", "Go."),
        ("agent", ""),
        ("system", "The host adds this."),
        ("agent", "It broke."),
        ("system", "The weir broke."),
    ]
    assert turns[-1].flags & Flag.SUMMARY
    assert calls(turns) == [("Execute", "make weir", "exit 2")]
    session = sessions[-1]
    assert (session.native_id, session.title, session.cwd) == ("d4-1", "Weir", "/code/marsh")
    assert (session.model, session.tokens) == ("heron-1", Tokens(9, 5, 3))
    assert not source.tally.unknown
    in_two_goes(logs.ADAPTER_DROID, path)


@pytest.mark.parametrize(
    "facts", [{"callingSessionId": "d4-1"}, {"title": "# Task Tool Invocation\nCount herons"}]
)
def test_droid_marks_sub_agents(facts: dict[str, Any], read: Any, write: Any) -> None:
    start = {"type": "session_start", "id": "d4-2", **facts}
    path = write("s/d5.jsonl", start, droid_line(1, message("user", text("Count herons."))))
    sessions, turns, _ = read(logs.ADAPTER_DROID, path)
    assert sessions[-1].kind is SessionKind.SUBAGENT
    assert sessions[-1].parent == facts.get("callingSessionId")
    assert speakers_and_texts(turns) == [("agent", "Count herons.")]


# Kimi


def wire(kind: str, second: float, **payload: Any) -> dict[str, Any]:
    return {"timestamp": 1_794_992_400 + second, "message": {"type": kind, "payload": payload}}


def test_kimi_events_have_folder_title_and_outcomes(
    read: Any, write: Any, in_two_goes: InTwoGoes
) -> None:
    digest = md5(b"/code/marsh", usedforsecurity=False).hexdigest()
    folder = f".kimi/sessions/{digest}/c0ffee07"
    function = {"name": "Shell", "arguments": json.dumps({"command": "make weir"})}
    rejection = {
        "is_error": True,
        "output": "",
        "message": "The tool call is rejected by the user.",
    }
    failure = {
        "is_error": True,
        "output": "no weir",
        "message": "Command failed with exit code: 2.",
    }
    path = write(
        f"{folder}/wire.jsonl",
        {"type": "metadata", "protocol_version": "1.2"},
        wire("TurnBegin", 1, user_input="Build the weir."),
        wire("StepBegin", 2, n=1),
        wire("ContentPart", 3, type="think", think="hm"),
        wire("ContentPart", 4, type="text", text="I build it."),
        wire("ToolCall", 5, type="function", id="c1", function=function),
        wire("ToolCall", 5, type="function", id="c2", function=function),
        wire("StatusUpdate", 6, token_usage={"input_other": 4, "input_cache_read": 3, "output": 2}),
        wire("ToolResult", 7, tool_call_id="c1", return_value=failure),
        wire("ToolResult", 8, tool_call_id="c2", return_value=rejection),
        wire("SteerInput", 9, user_input=[text("Use stone.")]),
        wire("StepInterrupted", 10),
        wire("SubagentEvent", 11, event={"type": "ContentPart", "payload": text("Inner.")}),
        wire("Levitation", 12),
    )
    write(f"{folder}/state.json", json.dumps({"custom_title": "Weir"}))
    write(f"{folder}/context.jsonl", {"role": "_checkpoint", "id": 0}, message("user", text("x")))
    write(".kimi/kimi.json", json.dumps({"work_dirs": [{"path": "/x"}, {"path": "/code/marsh"}]}))
    sessions, turns, source = read(logs.ADAPTER_KIMI, path)
    assert speakers_and_texts(turns)[:3] == [
        ("owner", "Build the weir."),
        ("agent", "I build it."),
        ("owner", "Use stone."),
    ]
    assert turns[3].flags & Flag.INTERRUPTED
    assert [call.outcome for call in turns[1].tool_calls] == ["exit 2", "rejected"]
    session = sessions[-1]
    assert (session.native_id, session.title, session.cwd) == ("c0ffee07", "Weir", "/code/marsh")
    assert session.tokens == Tokens(4, 3, 2)
    assert turns[0].time
    assert turns[0].time.isoformat() == "2026-11-18T09:00:01+00:00"
    assert dict(source.tally.unknown) == {"Levitation": 1}
    in_two_goes(logs.ADAPTER_KIMI, path)
    assert read(logs.ADAPTER_KIMI, path.with_name("context.jsonl"))[1] == []


def test_kimi_context_omits_host_text(read: Any, write: Any) -> None:
    function = {"name": "ReadFile", "arguments": '{"path": "map.md"}'}
    path = write(
        ".kimi/sessions/0a/c0ffee08/context.jsonl",
        {"role": "_system_prompt", "content": "You are Kimi."},
        {"role": "user", "content": [text("<system>CHECKPOINT 0</system>")]},
        {"role": "user", "content": "Read the map."},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "function": function}]},
        {
            "role": "tool",
            "tool_call_id": "c1",
            "content": [text("<system>ERROR: no such file</system>")],
        },
        {"role": "_usage", "token_count": 9},
    )
    _, turns, source = read(logs.ADAPTER_KIMI, path)
    assert speakers_and_texts(turns) == [("owner", "Read the map."), ("agent", "")]
    assert [call.failed for turn in turns for call in turn.tool_calls] == [True]
    assert not source.tally.unknown


def test_kimi_code_names_agents_models_and_origins(read: Any, write: Any) -> None:
    folder = ".kimi-code/sessions/wd_marsh/session_7"
    lines = (
        {"type": "metadata", "protocol_version": "1.5"},
        {"type": "profile.bind", "modelAlias": "heron-2", "systemPrompt": "x", "time": 1},
        {
            "type": "context.append_message",
            "time": 1_794_992_400_000,
            "message": message("user", text("Skill text"), origin={"kind": "skill_activation"}),
        },
        {
            "type": "context.append_message",
            "time": 1_794_992_401_000,
            "message": message("user", text("Count."), origin={"kind": "user"}),
        },
    )
    path = write(f"{folder}/agents/main/wire.jsonl", *lines)
    write(f"{folder}/state.json", json.dumps({"title": "Herons", "workDir": "/code/marsh"}))
    sessions, turns, source = read(logs.ADAPTER_KIMI, path)
    assert speakers_and_texts(turns) == [("system", "Skill text"), ("owner", "Count.")]
    session = sessions[-1]
    assert (session.native_id, session.title, session.cwd, session.model) == (
        "session_7",
        "Herons",
        "/code/marsh",
        "heron-2",
    )
    assert not source.tally.unknown
    sessions, turns, _ = read(
        logs.ADAPTER_KIMI, write(f"{folder}/agents/agent-0/wire.jsonl", *lines)
    )
    assert (sessions[-1].kind, sessions[-1].parent) == (SessionKind.SUBAGENT, "session_7")
    assert speakers_and_texts(turns)[-1] == ("agent", "Count.")


# Grok Build


def update(second: int, name: str, **facts: Any) -> dict[str, Any]:
    params = {"sessionId": "s", "update": {"sessionUpdate": name, **facts}}
    return {"timestamp": 1_794_992_400 + second, "method": "session/update", "params": params}


def test_grok_joins_chunks_and_reads_calls_by_kind(
    read: Any, write: Any, in_two_goes: InTwoGoes
) -> None:
    folder = ".grok/sessions/%2Fcode%2Fmarsh/0190b000"
    tool = {"x.ai/tool": {"name": "read_file", "input": {"path": "map.md"}}}
    output = [{"type": "content", "content": text("no weir")}]
    path = write(
        f"{folder}/updates.jsonl",
        update(1, "user_message_chunk", content=text("Host note"), _meta={"hostTurn": True}),
        update(2, "user_message_chunk", content=text("Build "), _meta={"promptIndex": 1}),
        update(2, "user_message_chunk", content=text("it."), _meta={"promptIndex": 1}),
        update(3, "agent_thought_chunk", content=text("hm")),
        update(4, "agent_message_chunk", content=text("I bu")),
        update(4, "agent_message_chunk", content=text("ild it.")),
        update(5, "tool_call", toolCallId="c1", title="make weir", kind="execute"),
        update(5, "tool_call", toolCallId="c2", title="Read", kind="read"),
        update(6, "tool_call_update", toolCallId="c1", status="failed", content=output),
        update(6, "plan", entries=[]),
        update(7, "tool_call_update", toolCallId="c2", _meta=tool),
        update(7, "tool_call_update", toolCallId="c2", status="completed", rawOutput={"a": 1}),
        update(8, "agent_message_chunk", content=text("It broke.")),
        update(9, "turn_completed", usage={"inputTokens": 9, "outputTokens": 2}),
    )
    summary = {
        "info": {"id": "0190b000", "cwd": "/code/marsh"},
        "generated_title": "Weir",
        "current_model_id": "grok-9",
        "head_branch": "reeds",
        "session_kind": "subagent_fork",
        "parent_session_id": "0190a999",
    }
    write(f"{folder}/summary.json", json.dumps({**summary, "session_kind": None}))
    sessions, turns, _ = read(logs.ADAPTER_GROK, path)
    assert speakers_and_texts(turns) == [
        ("system", "Host note"),
        ("owner", "Build it."),
        ("agent", "I build it."),
        ("agent", "It broke."),
    ]
    assert calls(turns) == [
        ("execute", "make weir", "error: no weir"),
        ("read_file", "map.md", "ok"),
    ]
    session = sessions[-1]
    assert (session.title, session.cwd, session.branch) == ("Weir", "/code/marsh", "reeds")
    assert (session.model, session.tokens) == ("grok-9", Tokens(9, 0, 2))
    assert turns[1].time
    in_two_goes(logs.ADAPTER_GROK, path)
    write(f"{folder}/summary.json", json.dumps(summary))
    sessions, turns, _ = read(logs.ADAPTER_GROK, path)
    assert (sessions[-1].kind, sessions[-1].parent) == (SessionKind.SUBAGENT, "0190a999")
    assert Speaker.OWNER not in {turn.speaker for turn in turns}
    history = write(f"{folder}/chat_history.jsonl", {"type": "user", "content": "Build it."})
    assert read(logs.ADAPTER_GROK, history)[1] == []


def test_grok_history_keeps_typed_text(read: Any, write: Any) -> None:
    path = write(
        ".grok/sessions/a/0190b001/chat_history.jsonl",
        {"type": "system", "content": "You are Grok."},
        {"type": "user", "content": [text("Rules")], "synthetic_reason": "project_instructions"},
        {"type": "user", "content": [text("<user_info>x</user_info><user_query>Go</user_query>")]},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "backend_tool_call", "kind": {"tool_type": "web_search", "id": "w1"}},
        {"type": "assistant", "content": "It says so.", "model_id": "grok-9"},
        {"type": "user", "content": "And on.", "synthetic_reason": "interjection"},
    )
    sessions, turns, source = read(logs.ADAPTER_GROK, path)
    assert speakers_and_texts(turns) == [
        ("owner", "Go"),
        ("agent", "It says so."),
        ("owner", "And on."),
    ]
    assert turns[1].trust.value == "untrusted"
    assert sessions[-1].model == "grok-9"
    assert not source.tally.unknown


# Hermes


def read_store(path: Path, *identities: str) -> tuple[list[Session], list[Turn]]:
    with open_transcript(path, identities=identities) as (adapter, source):
        assert adapter is databases.ADAPTER_HERMES
        items = list(adapter.parse(source))
    sessions = [item for item in items if isinstance(item, Session)]
    return sessions, [item for item in items if isinstance(item, Turn)]


def test_hermes_database_has_facts_and_no_hidden_rows(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    function = {"name": "terminal", "arguments": '{"command": "make weir"}'}
    failed = json.dumps({"output": "no weir", "exit_code": 2, "error": None})
    records = [
        {"role": "user", "content": "Undone.", "active": 0},
        {"role": "user", "content": "Woken.", "display_kind": "hidden"},
        {"role": "user", "content": "\0json:" + json.dumps([text("Build it.")]), "active": 0}
        | {"compacted": 1},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "function": function}]},
        {"role": "tool", "tool_call_id": "c1", "content": failed},
        {"role": "assistant", "content": "It broke."},
    ]
    agent_shapes.write_hermes(
        path,
        records,
        title="Weir",
        cwd="/code/marsh",
        git_branch="reeds",
        model="heron-3",
        input_tokens=5,
        cache_read_tokens=4,
        cache_write_tokens=1,
        output_tokens=2,
    )
    sessions, turns = read_store(path)
    assert speakers_and_texts(turns) == [
        ("system", "Woken."),
        ("owner", "Build it."),
        ("agent", ""),
        ("agent", "It broke."),
    ]
    assert calls(turns) == [("terminal", "make weir", "exit 2")]
    session = sessions[-1]
    assert (session.title, session.cwd, session.branch) == ("Weir", "/code/marsh", "reeds")
    assert (session.model, session.tokens) == ("heron-3", Tokens(6, 4, 2))
    assert turns[1].time


@pytest.mark.parametrize(
    ("facts", "kind"),
    [
        ({"source": "cron"}, SessionKind.SCHEDULED),
        ({"model_config": '{"_delegate_from": "a"}', "parent_session_id": "a"}, "subagent"),
        ({}, SessionKind.MAIN),
    ],
)
def test_hermes_marks_kinds_of_sessions(facts: dict[str, Any], kind: str, tmp_path: Path) -> None:
    agent_shapes.write_hermes(tmp_path / "state.db", agent_shapes.messages(TALK), **facts)
    sessions, _ = read_store(tmp_path / "state.db")
    assert sessions[-1].kind == kind


def test_hermes_chats_are_the_owners_with_known_identity(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    records = agent_shapes.messages((Owner("Feed the herons."),))
    agent_shapes.write_hermes(path, records, source="telegram", user_id="4711")
    assert [turn.speaker for turn in read_store(path)[1]] == [Speaker.SYSTEM]
    assert [turn.speaker for turn in read_store(path, "telegram:4711")[1]] == [Speaker.OWNER]


def test_hermes_files_and_database_give_the_same_ids(read: Any, write: Any, tmp_path: Path) -> None:
    agent_shapes.write_hermes(tmp_path / "state.db", agent_shapes.messages(TALK))
    sessions, turns = read_store(tmp_path / "state.db")
    name = sessions[-1].native_id
    lines = write(f"sessions/{name}.jsonl", *agent_shapes.hermes_files(TALK))
    document = {
        "session_id": name,
        "platform": "cli",
        "session_start": "2026-11-18T09:00:00.5",
        "messages": agent_shapes.messages(TALK),
    }
    snapshot = write(f"sessions/session_{name}.json", json.dumps(document, indent=2))
    for path in (lines, snapshot):
        assert find_adapter(read_head(path)) is databases.ADAPTER_HERMES_FILES
        session, again, _ = read(databases.ADAPTER_HERMES_FILES, path)
        assert session[-1].native_id == name
        assert [turn.id for turn in again] == [turn.id for turn in turns]
        assert all(turn.time for turn in again)


# iFlow and gptme


def iflow_line(number: int, kind: str, content: Any, **facts: Any) -> dict[str, Any]:
    return {
        "uuid": f"1f10a000-0000-4000-9000-{number:012d}",
        "sessionId": "session-1f10",
        "timestamp": f"2026-11-18T09:00:{number:02d}.000Z",
        "type": kind,
        "isSidechain": False,
        "message": {"role": kind, "content": content, "model": "heron-4"},
        "cwd": "/code/marsh",
        "gitBranch": None,
        "version": "1.0.0",
        **facts,
    }


def test_iflow_repeated_calls_are_merged(read: Any, write: Any, in_two_goes: InTwoGoes) -> None:
    first, second, third = (
        {
            "type": "tool_use",
            "id": f"c{n}",
            "name": "read_file",
            "input": {"absolute_path": f"/{n}"},
        }
        for n in (1, 2, 3)
    )

    def result(call: str, **rejection: Any) -> list[dict[str, Any]]:
        content = {"responseParts": {"functionResponse": {"response": rejection}}}
        return [{"type": "tool_result", "tool_use_id": call, "content": content}]

    path = write(
        "p/session-1f10.jsonl",
        iflow_line(1, "user", "Read them."),
        iflow_line(2, "assistant", [text("I read."), first]),
        iflow_line(3, "assistant", [first, second]),
        iflow_line(4, "assistant", [second]),
        iflow_line(5, "user", result("c1", output="one"), toolUseResult={"status": "success"}),
        iflow_line(6, "user", result("c2", error="no file"), toolUseResult={"status": "error"}),
        iflow_line(7, "assistant", [second, text("Once more."), third]),
        iflow_line(8, "user", result("c3", output="three")),
        iflow_line(9, "assistant", [text("All read.")]),
    )
    sessions, turns, source = read(logs.ADAPTER_IFLOW, path)
    assert speakers_and_texts(turns) == [
        ("owner", "Read them."),
        ("agent", "I read."),
        ("agent", "Once more."),
        ("agent", "All read."),
    ]
    assert calls(turns) == [
        ("read_file", "/1", "ok"),
        ("read_file", "/2", "error: no file"),
        ("read_file", "/3", "ok"),
    ]
    session = sessions[-1]
    assert (session.native_id, session.cwd, session.model) == (
        "session-1f10",
        "/code/marsh",
        "heron-4",
    )
    assert (session.tool_version, session.branch) == ("1.0.0", None)
    assert not source.tally.unknown
    in_two_goes(logs.ADAPTER_IFLOW, path)


def test_gptme_blocks_and_lines_are_calls(read: Any, write: Any, in_two_goes: InTwoGoes) -> None:
    blocks = "I build.\n\n```shell\nmake weir\n```\n\n```save weir.py\nprint(1)\n```\n"
    usage = {"input_tokens": 4, "output_tokens": 2, "cache_read_tokens": 3}
    path = write(
        "logs/2026-11-18-weir/conversation.jsonl",
        {"role": "system", "content": "You are gptme.", "timestamp": "2026-11-18T09:00:00Z"},
        {"role": "user", "content": "Build it.", "timestamp": "2026-11-18T09:00:01Z"},
        {"role": "assistant", "content": blocks, "timestamp": "2026-11-18T09:00:02Z"}
        | {"metadata": {"model": "heron-5", "usage": usage}},
        {"role": "system", "content": "Ran command\n\nReturn code: 2", "timestamp": "2026-11-18"},
        {"role": "system", "content": "Saved to weir.py", "timestamp": "2026-11-18T09:00:04Z"},
        {"role": "assistant", "content": 'Now:\n@read(call-1): {"path": "a.py"}'}
        | {"timestamp": "2026-11-18T09:00:05Z"},
        {"role": "system", "content": "print(1)", "call_id": "call-1", "timestamp": "2026-11-18"},
    )
    write(
        "logs/2026-11-18-weir/config.toml",
        '[chat]\nname = "Weir"\nworkspace = "/code/marsh"\nmodel = "heron-0"\n',
    )
    sessions, turns, source = read(logs.ADAPTER_GPTME, path)
    assert speakers_and_texts(turns) == [
        ("owner", "Build it."),
        ("agent", blocks.strip()),
        ("agent", "Now:"),
    ]
    assert calls(turns) == [
        ("shell", "make weir", "exit 2"),
        ("save", "weir.py", "ok"),
        ("read", "a.py", "ok"),
    ]
    session = sessions[-1]
    assert (session.native_id, session.title, session.cwd) == (
        "2026-11-18-weir",
        "Weir",
        "/code/marsh",
    )
    assert (session.model, session.tokens) == ("heron-5", Tokens(4, 3, 2))
    assert not source.tally.unknown
    in_two_goes(logs.ADAPTER_GPTME, path)
