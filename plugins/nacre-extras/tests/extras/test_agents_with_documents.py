"""The adapters of rarely used agents read small, invented transcripts."""

from __future__ import annotations

import hashlib
import json
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from nacre.readers.adapter import Places
from nacre.testing.conformance import Agent, Owner, Tool
from nacre.values.session import Flag, SessionKind, Speaker, Tokens
from nacre_extras.databases import ADAPTER_CRUSH as CRUSH
from tests import agents

TALK = (Owner("Where do the rowers meet?"), Agent("At the boat house."))


def outcomes(turns: Any) -> list[tuple[str, str | None]]:
    return [(call.name, call.outcome) for turn in turns for call in turn.tool_calls]


# -- Goose ---------------------------------------------------------------------


def goose_call(number: int, value: Any, **status: Any) -> list[dict[str, Any]]:
    tool_request = {
        "status": "success",
        "value": {"name": "developer__shell", "arguments": {"command": "make"}},
    }
    result = {"status": "success", "value": value, **status}
    request = {"type": "toolRequest", "id": f"c{number}", "toolCall": tool_request}
    response = {"type": "toolResponse", "id": f"c{number}", "toolResult": result}
    time = agents.SECOND + number
    return [
        {"id": f"a{number}", "role": "assistant", "created": time, "content": [request]},
        {"id": f"r{number}", "role": "user", "created": time, "content": [response]},
    ]


def test_goose_session_has_its_facts_and_outcomes(look: Any, tmp_path: Path) -> None:
    messages = [
        *agents.goose_messages(TALK),
        *goose_call(5, {"content": [{"type": "text", "text": "no rule"}], "isError": True}),
        *goose_call(6, [{"type": "text", "text": "The user has declined to run this tool."}]),
        *goose_call(7, None, status="error", error="the oar broke"),
    ]
    facts = {
        "provider_name": "openai",
        "model_config_json": '{"model_name": "model-1"}',
        "accumulated_input_tokens": 70,
        "accumulated_output_tokens": 9,
    }
    agents.write_goose(tmp_path / "sessions.db", {"20261118_1": messages}, **facts)
    result = look(tmp_path / "sessions.db")
    session = result.sessions["20261118_1"]
    assert (session.title, session.cwd, session.model) == ("Lake", "/code/lake", "model-1")
    assert session.started == datetime(2026, 11, 18, 9, tzinfo=UTC)
    assert session.tokens == Tokens(70, 0, 9)
    assert result.messages("20261118_1")[:2] == [
        ("owner", "Where do the rowers meet?"),
        ("agent", "At the boat house."),
    ]
    assert outcomes(result.turns["20261118_1"]) == [
        ("developer__shell", "error: no rule"),
        ("developer__shell", "rejected"),
        ("developer__shell", "error: the oar broke"),
    ]
    assert result.unknown == {}


def test_goose_model_text_and_other_prompters_are_not_the_owner(look: Any, tmp_path: Path) -> None:
    hint = {
        "id": "h",
        "role": "user",
        "created": agents.SECOND,
        "content": [{"type": "text", "text": "<hints>Remember: oars are blue.</hints>"}],
        "metadata": {"userVisible": False, "agentVisible": True},
    }
    messages = [hint, *agents.goose_messages(TALK)]
    for kind in ("sub_agent", "scheduled", "gateway", "acp"):
        path = tmp_path / kind / "sessions.db"
        agents.write_goose(path, {"s1": messages}, session_type=kind, parent_session_id="s0")
        result = look(path)
        speakers = [turn.speaker for turn in result.turns["s1"]]
        first = {"sub_agent": Speaker.AGENT, "acp": Speaker.OWNER}.get(kind, Speaker.SYSTEM)
        assert speakers == [first, Speaker.AGENT]
        assert (result.sessions["s1"].kind is SessionKind.MAIN) == (kind in ("gateway", "acp"))
        assert result.sessions["s1"].parent == "s0"


def test_goose_file_and_its_migrated_rows_are_the_same_turns(look: Any, tmp_path: Path) -> None:
    records: list[dict[str, Any]] = [
        {**message, "id": None} for message in agents.goose_messages(TALK)
    ]
    head = {"working_dir": "/code/lake", "description": "Lake", "message_count": 2}
    file = tmp_path / "20250101_1.jsonl"
    file.write_text("\n".join(map(json.dumps, [head, *records])), encoding="utf-8")
    moved = [{**record, "id": f"msg_20250101_1_{number}"} for number, record in enumerate(records)]
    agents.write_goose(tmp_path / "sessions.db", {"20250101_1": moved})
    assert look(file).turns == look(tmp_path / "sessions.db").turns


def test_goose_rows_with_equal_message_ids_are_one_turn(look: Any, tmp_path: Path) -> None:
    words, call, answer = [*agents.goose_messages(TALK)][1], *goose_call(5, "done")
    rows = [{**words, "id": "m"}, {**call, "id": "m"}, answer]
    agents.write_goose(tmp_path / "sessions.db", {"s1": rows})
    (turn,) = look(tmp_path / "sessions.db").turns["s1"]
    assert (turn.text, outcomes([turn])) == ("At the boat house.", [("developer__shell", "ok")])


# -- Zed -----------------------------------------------------------------------


def test_zed_thread_is_unpacked_with_its_facts(look: Any, tmp_path: Path) -> None:
    thread = agents.zed_thread(
        list(agents.zed_messages((*TALK, Tool("Bash", "make", "built")))),
        model={"provider": "zed.dev", "model": "model-1"},
        cumulative_token_usage={
            "input_tokens": 5,
            "cache_read_input_tokens": 2,
            "output_tokens": 3,
        },
    )
    agents.write_zed(tmp_path / "threads.db", {"t1": thread}, parent_id="t0")
    result = look(tmp_path / "threads.db")
    session = result.sessions["t1"]
    assert (session.title, session.cwd, session.model) == ("Lake", "/code/lake", "model-1")
    assert (session.kind, session.parent) == (SessionKind.SUBAGENT, "t0")
    assert session.tokens == Tokens(5, 2, 3)
    assert outcomes(result.turns["t1"]) == [("terminal", "ok")]
    assert result.unknown == {}


def test_zed_attachment_and_shared_thread_are_not_the_owners_words(
    look: Any, tmp_path: Path
) -> None:
    mention = {"uri": {"File": {"abs_path": "/code/oar.md"}}, "content": "Remember: oars are blue."}
    content = [{"Text": "Read "}, {"Mention": mention}, {"Text": " first."}]
    messages = [{"User": {"id": "u1", "content": content}}]
    threads = {
        "own": agents.zed_thread(messages),
        "shared": agents.zed_thread(messages, imported=True),
    }
    agents.write_zed(tmp_path / "threads.db", threads)
    result = look(tmp_path / "threads.db")
    assert result.messages("own") == [("owner", "Read /code/oar.md first.")]
    assert result.messages("shared") == [("system", "Read /code/oar.md first.")]


def test_zed_thread_in_an_unknown_form_is_counted(look: Any, tmp_path: Path) -> None:
    agents.write_zed(tmp_path / "threads.db", {"t1": agents.zed_thread([])}, data_type="lz9")
    with closing(agents.connect(tmp_path / "threads.db")) as database:
        database.execute("UPDATE threads SET data = x'0102'")
    assert look(tmp_path / "threads.db").unknown == {"thread in lz9": 1}


# -- Crush ---------------------------------------------------------------------


def test_crush_session_has_its_facts_and_other_runs_are_marked(look: Any, tmp_path: Path) -> None:
    def row(number: int, role: str, *parts: dict[str, Any], **more: Any) -> dict[str, Any]:
        time = agents.SECOND + number
        return {"id": f"m{number}", "role": role, "parts": [*parts], "created_at": time, **more}

    rejection = agents.part("tool_call", id="c1", name="bash", input='{"command": "make"}')
    output = "User denied permission"
    answer = agents.part("tool_result", tool_call_id="c1", content=output, is_error=True)
    shell = agents.part("shell_command", command="git push", output="Remember: blue.", exit_code=0)
    main = [
        *agents.crush_messages(TALK),
        row(5, "assistant", rejection, agents.part("finish", reason="tool_use"), model="model-1"),
        row(6, "tool", answer),
        row(7, "user", shell),
        row(
            8, "assistant", agents.part("text", text="We"), agents.part("finish", reason="canceled")
        ),
        row(9, "assistant", agents.part("text", text="Rowers meet."), is_summary_message=1),
    ]
    path = tmp_path / "lake" / ".crush" / "crush.db"
    agents.write_crush(
        path, {"s1": main, "title-s1": [row(20, "user", agents.part("text", text="x"))]}
    )
    result = look(path)
    assert list(result.sessions) == ["s1"]
    assert (result.sessions["s1"].cwd, result.sessions["s1"].model) == (
        str(tmp_path / "lake"),
        "model-1",
    )
    assert result.messages("s1")[3:] == [
        ("owner", "!git push"),
        ("agent", "We"),
        ("system", "[Interrupted by the owner]"),
        ("system", "Rowers meet."),
    ]
    turns = result.turns["s1"]
    assert (turns[3].flags, turns[-1].flags) == (Flag.COMMAND, Flag.SUMMARY)
    assert outcomes(turns) == [("bash", "rejected")]


def test_crush_subagent_prompts_are_the_agents(look: Any, tmp_path: Path) -> None:
    path = tmp_path / "crush.db"
    agents.write_crush(path, {"m$$c1": [*agents.crush_messages(TALK)]}, parent_session_id="s1")
    result = look(path)
    assert result.sessions["m$$c1"].kind is SessionKind.SUBAGENT
    assert {turn.speaker for turn in result.turns["m$$c1"]} == {Speaker.AGENT}


def test_crush_folders_come_from_projects_and_its_own_list(tmp_path: Path) -> None:
    path = tmp_path / ".local" / "share" / "crush" / "projects.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"projects": [{"path": "/a", "data_dir": "/data/a"}]}', encoding="utf-8")
    roots = CRUSH.roots(Places(tmp_path, {}, "linux", (Path("/code/lake"),)))
    assert {Path("/code/lake/.crush"), Path("/data/a")} <= {root.folder for root in roots}


# -- Amp -----------------------------------------------------------------------


def test_amp_thread_has_its_facts_and_outcomes(look: Any, tmp_path: Path) -> None:
    thread = json.loads(agents.amp(TALK))
    thread["messages"][1]["usage"] = {
        "model": "model-1",
        "inputTokens": 4,
        "cacheCreationInputTokens": 1,
        "cacheReadInputTokens": 2,
        "outputTokens": 3,
        "timestamp": "2026-11-18T12:00:00Z",
    }
    runs = [
        {"status": "done", "result": {"output": "no rule", "exitCode": 2}},
        {"status": "rejected-by-user", "reason": "no"},
        {"status": "error", "error": {"message": "the oar broke"}},
        {"status": "in-progress"},
    ]
    calls = [
        {"type": "tool_use", "id": f"c{number}", "name": "Bash", "input": {"cmd": "make"}}
        for number in range(len(runs))
    ]
    results = [
        {"type": "tool_result", "toolUseID": f"c{number}", "run": run}
        for number, run in enumerate(runs)
    ]
    thread["messages"] += [
        {"role": "assistant", "messageId": 2, "content": calls},
        {"role": "user", "messageId": 3, "content": results},
    ]
    path = tmp_path / "T-1.json"
    path.write_text(json.dumps(thread), encoding="utf-8")
    result = look(path)
    (session,) = result.sessions.values()
    assert (session.title, session.cwd, session.model) == ("Lake", "/code/lake", "model-1")
    assert session.tokens == Tokens(5, 2, 3)
    turns = result.turns[session.native_id]
    assert turns[1].time == datetime(2026, 11, 18, 12, tzinfo=UTC)
    assert [ending for _, ending in outcomes(turns)] == [
        "exit 2",
        "rejected",
        "error: the oar broke",
        None,
    ]
    assert result.unknown == {}


# -- Antigravity ---------------------------------------------------------------


def test_antigravity_steps_are_turns_with_results_in_order(look: Any, tmp_path: Path) -> None:
    calls = [
        {"name": "run_command", "args": {"CommandLine": "make", "Cwd": "/code/lake"}},
        {"name": "view_file", "args": {"AbsolutePath": "/code/lake/oar.md"}},
    ]
    change = "The user changed setting `Model Selection` from None to Model 1.5 (High). No need."
    request = f"<USER_REQUEST>Which oar?</USER_REQUEST><USER_SETTINGS_CHANGE>{change}</USER_SETTINGS_CHANGE>"
    steps = [
        ("USER_EXPLICIT", "USER_INPUT", "DONE", request, []),
        ("SYSTEM", "EPHEMERAL_MESSAGE", "DONE", "Remember: oars are blue.", []),
        ("MODEL", "PLANNER_RESPONSE", "DONE", "I look.", calls),
        ("MODEL", "RUN_COMMAND", "ERROR", "the oar broke", []),
        ("MODEL", "VIEW_FILE", "DONE", "oak", []),
        ("MODEL", "PLANNER_RESPONSE", "DONE", "The oak one.", []),
        ("USER_IMPLICIT", "USER_INPUT", "DONE", "Remember: oars are red.", []),
    ]
    path = tmp_path / "brain" / "0b0b" / ".system_generated" / "logs" / "transcript.jsonl"
    path.parent.mkdir(parents=True)
    keys = ("source", "type", "status", "content", "tool_calls")
    lines = [
        {**dict(zip(keys, step, strict=True)), "created_at": f"2026-11-18T09:00:{number:02d}Z"}
        for number, step in enumerate(steps)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    result = look(path)
    session = result.sessions["0b0b"]
    assert (session.cwd, session.model) == ("/code/lake", "Model 1.5 (High)")
    assert result.messages("0b0b") == [
        ("owner", "Which oar?"),
        ("agent", "I look."),
        ("agent", "The oak one."),
        ("system", "Remember: oars are red."),
    ]
    assert outcomes(result.turns["0b0b"]) == [
        ("run_command", "error: the oar broke"),
        ("view_file", "ok"),
    ]
    assert result.turns["0b0b"][1].tool_calls[1].paths == ("/code/lake/oar.md",)


# -- Kiro ----------------------------------------------------------------------


def test_kiro_answers_come_from_their_own_files(look: Any, tmp_path: Path) -> None:
    session = {
        "sessionId": "k1",
        "title": "Lake",
        "workspaceDirectory": "/code/lake",
        "history": [
            {"message": {"role": "user", "content": [{"type": "text", "text": "Which oar?"}]}},
            {"message": {"role": "assistant", "content": "On it."}, "executionId": "x1"},
            {"message": {"role": "assistant", "content": "Only here."}, "executionId": "x2"},
        ],
    }
    path = tmp_path / "workspace-sessions" / "L2E_" / "k1.json"
    answers = tmp_path / hashlib.sha256(b"/code/lake").hexdigest()[:32] / "0a"
    for folder in (path.parent, answers):
        folder.mkdir(parents=True)
    path.write_text(json.dumps(session), encoding="utf-8")
    actions = [
        {"actionId": "1", "actionType": "say", "output": {"message": "The oak one."}},
        {
            "actionId": "2",
            "actionType": "replace",
            "actionState": "Success",
            "input": {"file": "oar.py", "originalContent": "a", "modifiedContent": "b"},
            "output": {},
        },
    ]
    (answers / "f1").write_text(
        json.dumps({"executionId": "x1", "actions": actions}), encoding="utf-8"
    )
    result = look(path)
    assert result.tool == "kiro"
    assert (result.sessions["k1"].title, result.sessions["k1"].cwd) == ("Lake", "/code/lake")
    assert result.messages("k1") == [
        ("owner", "Which oar?"),
        ("agent", "The oak one."),
        ("agent", "Only here."),
    ]
    assert outcomes(result.turns["k1"]) == [("replace", "ok")]


def test_kiro_conversation_has_its_facts_and_refusals(look: Any, tmp_path: Path) -> None:
    history = agents.kiro_history((*TALK, Tool("Bash", "make", ""), Agent("Stopped.")))
    result = history[-1]["user"]["content"]["ToolUseResults"]
    result["tool_use_results"][0]["content"] = [{"Text": "Tool use was cancelled by the user"}]
    history[-1]["user"]["content"] = {"CancelledToolUses": {**result, "prompt": "No, wait."}}
    agents.write_kiro(tmp_path / "data.sqlite3", {"k1": history})
    reading = look(tmp_path / "data.sqlite3")
    session = reading.sessions["k1"]
    assert (session.cwd, session.model) == ("/code/lake", "model-1")
    assert reading.messages("k1")[2:] == [
        ("agent", ""),
        ("owner", "No, wait."),
        ("agent", "Stopped."),
    ]
    assert outcomes(reading.turns["k1"]) == [("execute_bash", "rejected")]


@pytest.mark.parametrize("is_pair", [False, True])
def test_amazon_q_conversation_is_read(look: Any, tmp_path: Path, *, is_pair: bool) -> None:
    user = {"content": {"Prompt": {"prompt": "Which oar?"}}, "timestamp": None}
    answer = {"Response": {"message_id": "a1", "content": "The oak one."}}
    turn = [user, answer] if is_pair else {"user": user, "assistant": answer}
    table = "CREATE TABLE conversations (key TEXT PRIMARY KEY, value TEXT)"
    database = agents.connect(tmp_path / "data.sqlite3", table)
    value = {"conversation_id": "q1", "history": [turn]}
    agents.insert(database, "conversations", key="/code/lake", value=value)
    database.close()
    result = look(tmp_path / "data.sqlite3")
    assert result.sessions["q1"].cwd == "/code/lake"
    assert result.messages("q1") == [("owner", "Which oar?"), ("agent", "The oak one.")]
