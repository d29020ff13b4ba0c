"""The adapter of Cursor's ``state.vscdb`` reads every generation of its format."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from nacre.readers.adapter import Places, statement
from nacre.readers.cursor import ADAPTER_STATE, CHAT, COMPOSERS, HEADERS
from nacre.store.foreign import open_foreign
from nacre.values.session import SessionKind, Tokens, Trust
from tests.stores import START, TOKEN, bubble, conversation, put_values, tool_bubble, write_state

DATA = Path(__file__).parents[3] / "shared" / "data" / "transcripts" / "cursor"


def at(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def tab(name: str, *texts: str, sent: int = START, title: str = "A question") -> dict[str, Any]:
    """A tab of the chat pane whose turns alternate between question and answer."""
    bubbles = [
        {
            "type": "user",
            "id": f"{name}-{number}",
            "messageType": 2,
            "text": text,
            "richText": "{}",
            "useWeb": False,
        }
        if number % 2 == 0
        else {
            "type": "ai",
            "id": f"{name}-{number}",
            "messageType": 3,
            "rawText": text,
            "text": text,
            "modelType": "model-1",
        }
        for number, text in enumerate(texts)
    ]
    return {
        "tabId": name,
        "chatTitle": title,
        "tabState": "chat",
        "lastSendTime": sent,
        "bubbles": bubbles,
    }


def composer(identity: str, *texts: str, created: int = START, **more: Any) -> dict[str, Any]:
    """A composer in the format of 2024, which contains its bubbles."""
    bubbles = [
        {"type": 1 + n % 2, "bubbleId": f"{identity}-{n}", "text": text}
        for n, text in enumerate(texts)
    ]
    return {
        "composerId": identity,
        "createdAt": created,
        "status": "completed",
        "conversation": bubbles,
        **more,
    }


def test_chat_tab_is_a_session(look: Any, tmp_path: Path) -> None:
    stored_tab = tab(
        "t1",
        "Why does the build fail?",
        "The lock file is old.",
        "Renew it.",
        "Done.",
        sent=START + 90_000,
    )
    items = {CHAT: {"tabs": [stored_tab], "selectedTabId": "t1"}}
    path = write_state(
        tmp_path / "abc" / "state.vscdb", items, folder="file:///code/acme%20billing"
    )
    result = look(path)
    session = result.sessions["t1"]
    assert (session.tool, session.title, session.cwd) == (
        "cursor",
        "A question",
        "/code/acme billing",
    )
    assert (session.model, session.started) == ("model-1", at(START + 90_000))
    assert result.messages("t1") == [
        ("owner", "Why does the build fail?"),
        ("agent", "The lock file is old."),
        ("owner", "Renew it."),
        ("agent", "Done."),
    ]
    assert {turn.time for turn in result.turns["t1"]} == {at(START + 90_000)}


@pytest.mark.parametrize(
    ("uri", "folder"),
    [
        ("file:///c%3A/Users/me/acme", "c:/Users/me/acme"),
        ("vscode-remote://ssh-remote%2Bbox/home/me/acme", "/home/me/acme"),
        ("file:///code/acme/", "/code/acme"),
    ],
)
def test_workspace_folder_uri_becomes_a_path(
    uri: str, folder: str, look: Any, tmp_path: Path
) -> None:
    path = write_state(
        tmp_path / "w" / "state.vscdb", {CHAT: {"tabs": [tab("t1", "Hello there")]}}, folder=uri
    )
    assert look(path).sessions["t1"].cwd == folder


def test_composer_opened_from_a_chat_repeats_nothing(look: Any, tmp_path: Path) -> None:
    follow_up = ("Add a page for files.", "I will add it.")
    stored_tab = tab("t1", "Which framework?", "Ionic.", *follow_up, sent=START + 90_000)
    composers = [
        composer("c1", *follow_up, created=START + 60_000),
        composer(
            "c2", *follow_up, "Make it a list.", "It is one.", created=START + 70_000, name="Files"
        ),
        composer("c3", "Something else", "Well.", created=START + 80_000),
    ]
    path = write_state(
        tmp_path / "state.vscdb",
        {CHAT: {"tabs": [stored_tab]}, COMPOSERS: {"allComposers": composers}},
    )
    result = look(path)
    assert set(result.sessions) == {"t1", "c2", "c3"}
    assert result.messages("c2") == [("owner", "Make it a list."), ("agent", "It is one.")]


def test_tab_copied_from_another_repeats_nothing(look: Any, tmp_path: Path) -> None:
    first = tab("t1", "What is it?", "A bug.", "Fix it.", "Fixed.", sent=START)
    two = tab("t2", "What is it?", "A bug.", "", sent=START + 9)
    three = tab("t3", "What is it?", "A bug.", "Explain it.", "It is a loop.", sent=START + 10)
    result = look(write_state(tmp_path / "state.vscdb", {CHAT: {"tabs": [three, two, first]}}))
    assert set(result.sessions) == {"t1", "t3"}
    assert result.messages("t3") == [("owner", "Explain it."), ("agent", "It is a loop.")]


def test_bubbles_follow_header_order_with_tools_in_their_turn(look: Any, tmp_path: Path) -> None:
    bubbles = [
        bubble(
            1,
            "Fix the login",
            createdAt="2026-11-18T09:00:00.000Z",
            modelInfo={"modelName": "model-2"},
        ),
        bubble(2, "", thinking={"text": "hm"}, isThought=True, capabilityType=30),
        bubble(2, "I look at the tests.", createdAt="2026-11-18T09:00:05.000Z"),
        tool_bubble(
            "run_terminal_cmd", {"command": "make test"}, {"output": "1 failed", "exitCode": 2}
        ),
        tool_bubble(
            "edit_file", {"target_file": "login.py"}, "", status="error", error="no such file"
        ),
        tool_bubble("delete_file", {"path": "a"}, "", status="cancelled"),
        bubble(
            2,
            "Fixed.",
            toolFormerData={"additionalData": {"status": "error"}},
            modelInfo={"modelName": "model-2"},
        ),
        bubble(
            1, "Thanks", timingInfo={"clientStartTime": 812.5, "clientRpcSendTime": START + 60_000}
        ),
    ]
    values = conversation("c1", bubbles, name="Login", createdOnBranch="fix/login")
    values[f"bubbleId:c1:{bubbles[1]['bubbleId']}"] = None  # pruned
    result = look(write_state(tmp_path / "globalStorage" / "state.vscdb", {}, values))
    session, turns = result.sessions["c1"], result.turns["c1"]
    assert (session.title, session.branch, session.model, session.started) == (
        "Login",
        "fix/login",
        "model-2",
        at(START),
    )
    assert [turn.text for turn in turns] == [
        "Fix the login",
        "I look at the tests.",
        "Fixed.",
        "Thanks",
    ]
    calls = [(call.name, call.outcome) for call in turns[1].tool_calls]
    assert calls == [
        ("run_terminal_cmd", "exit 2"),
        ("edit_file", "error: no such file"),
        ("delete_file", "rejected"),
    ]
    assert turns[1].tool_calls[0].input == "make test"
    assert not turns[2].tool_calls
    assert turns[3].time == at(START + 60_000)
    assert turns[2].time == datetime(2026, 11, 18, 9, 0, 5, tzinfo=UTC)
    assert (result.unknown, result.corrupt) == ({}, 0)


def test_answer_costs_are_counted_if_recorded(look: Any, tmp_path: Path) -> None:
    bubbles = [
        bubble(1, "Count the trees.", tokenCount={"inputTokens": 9, "outputTokens": 0}),
        bubble(2, "I will.", tokenCount={"inputTokens": 0, "outputTokens": 0}),
        bubble(2, "There are twelve.", tokenCount={"inputTokens": 300, "outputTokens": 40}),
        bubble(2, "In two rows.", tokenCount="many"),
    ]
    result = look(write_state(tmp_path / "state.vscdb", {}, conversation("c1", bubbles)))
    assert result.sessions["c1"].tokens == Tokens(300, 0, 40)


def test_rich_text_only_words_are_read(look: Any, tmp_path: Path) -> None:
    paragraph = {
        "type": "paragraph",
        "children": [{"type": "text", "text": "Use "}, {"type": "mention", "text": "@tabs"}],
    }
    rich = json.dumps(
        {"root": {"type": "root", "children": [paragraph, {"type": "paragraph", "children": []}]}}
    )
    result = look(
        write_state(
            tmp_path / "state.vscdb", {}, conversation("c1", [bubble(1, "", richText=rich)])
        )
    )
    assert result.messages("c1") == [("owner", "Use @tabs")]


def test_empty_composer_is_not_a_session(look: Any, tmp_path: Path) -> None:
    result = look(
        write_state(
            tmp_path / "state.vscdb", {}, {**conversation("c1", []), "composerData:c2": None}
        )
    )
    assert not result.sessions


def test_unfinished_answer_waits_for_completion(look: Any, tmp_path: Path) -> None:
    path = tmp_path / "state.vscdb"
    question, half = bubble(1, "How long?"), bubble(2, "Abou")
    write_state(path, {}, conversation("c1", [question, half], status="generating"))
    first = look(path)
    assert first.messages("c1") == [("owner", "How long?")]
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        whole = {**half, "text": "About an hour."}
        put_values(connection, "cursorDiskKV", conversation("c1", [question, whole]))
    assert look(path, first.cursor, "cursor").messages("c1")[-1] == ("agent", "About an hour.")


def test_only_changed_conversations_are_reread(look: Any, tmp_path: Path) -> None:
    path = tmp_path / "state.vscdb"
    first_bubbles, second_bubbles = [bubble(1, "One")], [bubble(1, "Two"), bubble(2, "Well")]
    write_state(
        path,
        {},
        {
            **conversation("c1", first_bubbles),
            **conversation("c2", second_bubbles),
            **conversation("c3", [bubble(1, "3")]),
        },
    )
    first = look(path)
    assert set(first.sessions) == {"c1", "c2", "c3"}
    second = look(path, first.cursor, "cursor")
    assert not second.sessions
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        put_values(
            connection,
            "cursorDiskKV",
            {
                f"bubbleId:c2:{second_bubbles[1]['bubbleId']}": {
                    **second_bubbles[1],
                    "text": "Well, no.",
                }
            },
        )
        put_values(
            connection, "cursorDiskKV", conversation("c3", [bubble(1, "3"), bubble(2, "four")])
        )
        put_values(connection, "cursorDiskKV", {"checkpointId:c1": {"a": 1}})
    reading = look(path, second.cursor, "cursor")
    assert set(reading.sessions) == {"c2", "c3"}
    assert reading.messages("c2")[-1] == ("agent", "Well, no.")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DELETE FROM cursorDiskKV WHERE key LIKE 'composerData:c1'")
        connection.execute("VACUUM")
    assert set(look(path, reading.cursor, "cursor").sessions) <= {"c2", "c3"}


def test_renumbered_rows_are_reread(look: Any, tmp_path: Path) -> None:
    path = tmp_path / "state.vscdb"
    write_state(
        path,
        {},
        {**{f"checkpointId:{n}": {} for n in range(9)}, **conversation("c1", [bubble(1, "One")])},
    )
    first = look(path)
    path.unlink()
    write_state(path, {}, conversation("c1", [bubble(1, "One"), bubble(2, "Two")]))
    assert look(path, first.cursor, "cursor").messages("c1")[-1] == ("agent", "Two")


def test_sub_agent_messages_are_not_the_owners(look: Any, tmp_path: Path) -> None:
    inner = conversation(
        "c2",
        [bubble(1, "Look for tests"), bubble(2, "Two")],
        subagentInfo={"parentComposerId": "c1"},
    )
    result = look(
        write_state(
            tmp_path / "state.vscdb", {}, {**conversation("c1", [bubble(1, "Hi")]), **inner}
        )
    )
    assert (result.sessions["c2"].kind, result.sessions["c2"].parent) == (
        SessionKind.SUBAGENT,
        "c1",
    )
    assert result.messages("c2") == [("agent", "Look for tests"), ("agent", "Two")]


def test_conversation_folder_is_found_in_three_places(look: Any, tmp_path: Path) -> None:
    user = tmp_path / "User"
    headers = {
        "allComposers": [
            {"composerId": "c2", "workspaceIdentifier": {"id": "x", "uri": {"fsPath": "/code/two"}}}
        ]
    }
    values = {
        **conversation("c1", [bubble(1, "One", workspaceUris=["file:///code/one"])]),
        **conversation("c2", [bubble(1, "Two")]),
        **conversation("c3", [bubble(1, "Three")]),
        **conversation("c4", [bubble(1, "Four")]),
    }
    path = write_state(user / "globalStorage" / "state.vscdb", {HEADERS: headers}, values)
    index = {
        COMPOSERS: {"allComposers": [{"composerId": "c3", "name": "Three", "createdAt": START}]}
    }
    write_state(
        user / "workspaceStorage" / "w1" / "state.vscdb", index, folder="file:///code/three"
    )
    (user / "workspaceStorage" / "w2").mkdir()
    (user / "workspaceStorage" / "w2" / "state.vscdb").write_bytes(b"")
    result = look(path)
    folders = {name: session.cwd for name, session in result.sessions.items()}
    assert folders == {"c1": "/code/one", "c2": "/code/two", "c3": "/code/three", "c4": None}
    assert not look(user / "workspaceStorage" / "w1" / "state.vscdb").sessions


def test_unrecorded_page_attachments_make_the_agent_untrusted(look: Any, tmp_path: Path) -> None:
    bubbles = [
        bubble(
            1, "What does it say?", context={"externalLinks": [{"url": "https://page.example"}]}
        ),
        bubble(2, "Always deploy on Fridays."),
        bubble(1, "And the tests?"),
        bubble(2, "They pass."),
    ]
    result = look(write_state(tmp_path / "state.vscdb", {}, conversation("c1", bubbles)))
    assert [turn.trust for turn in result.turns["c1"]] == [
        Trust.TRUSTED,
        Trust.UNTRUSTED,
        Trust.TRUSTED,
        Trust.TRUSTED,
    ]


def test_unreadable_values_are_counted_and_others_are_read(look: Any, tmp_path: Path) -> None:
    values = {
        **conversation("c1", [bubble(1, "One"), bubble(2, "Two"), bubble(7, "Seven")]),
        "composerData:c9": b"{torn",
        "composerData:c8": [1, 2],
    }
    path = write_state(
        tmp_path / "state.vscdb",
        {CHAT: b"\xff\xfe{", COMPOSERS: {"allComposers": [3, "x"]}},
        values,
    )
    result = look(path)
    assert result.messages("c1") == [("owner", "One"), ("agent", "Two")]
    assert result.unknown == {"bubble 7": 1}
    assert result.corrupt >= 3


def test_only_session_keys_can_be_queried(tmp_path: Path) -> None:
    path = write_state(tmp_path / "state.vscdb", {TOKEN: "secret", COMPOSERS: []}, {})
    with open_foreign(path) as database:
        assert database.all(statement("editor_item"), key=TOKEN) == []
        assert database.all(statement("editor_item"), key=COMPOSERS) != []


@pytest.mark.parametrize(
    ("platform", "environ", "folder"),
    [
        ("linux", {}, "/home/me/.config/Cursor/User"),
        ("linux", {"XDG_CONFIG_HOME": "/conf"}, "/conf/Cursor/User"),
        ("darwin", {}, "/home/me/Library/Application Support/Cursor/User"),
        ("win32", {"APPDATA": "/home/me/AppData/Roaming"}, "/home/me/AppData/Roaming/Cursor/User"),
    ],
)
def test_cursor_state_is_searched_in_its_platform_folders(
    platform: str, environ: dict[str, str], folder: str
) -> None:
    roots = ADAPTER_STATE.roots(Places(Path("/home/me"), environ, platform))
    assert Path(folder) in [root.folder for root in roots]
    assert all("globalStorage/state.vscdb" in root.patterns for root in roots)


@pytest.mark.skipif(not DATA.is_dir(), reason="no real transcripts next to this checkout")
def test_real_database_of_2024_is_read_without_duplicates(look: Any) -> None:
    (path,) = DATA.glob("*.vscdb")
    result = look(path)
    turns = [turn for turns in result.turns.values() for turn in turns]
    assert (result.tool, result.corrupt, result.unknown) == ("cursor", 0, {})
    assert (len(result.sessions), len(turns)) == (12, 74)
    prompts = [turn.text for turn in turns if turn.speaker == "owner"]
    assert len(prompts) == 37
    assert (
        len({(turn.text, other.text) for turn, other in zip(turns[::2], turns[1::2], strict=True)})
        == 37
    )


def test_conversation_in_database_and_transcript_has_equal_ids(look: Any, tmp_path: Path) -> None:
    bubbles = [
        bubble(1, "Fix the login"),
        bubble(2, "I look at the tests."),
        tool_bubble(
            "run_terminal_cmd", {"command": "make test"}, {"output": "1 failed", "exitCode": 2}
        ),
        bubble(2, "Fixed."),
        bubble(1, "Fix the login"),
    ]
    name = "c0de0000-0000-4000-8000-000000000001"
    state = look(write_state(tmp_path / "state.vscdb", {}, conversation(name, bubbles)))
    call = {"type": "tool_use", "name": "run_terminal_cmd", "input": {"command": "make test"}}
    messages = [
        ("user", "<user_query>\nFix the login\n</user_query>"),
        ("assistant", "I look at the tests."),
        ("assistant", "Fixed."),
        ("user", "<user_query>\nFix the login\n</user_query>"),
    ]
    lines = [
        {"role": role, "message": {"content": [{"type": "text", "text": text}]}}
        for role, text in messages
    ]
    lines[1]["message"]["content"].append(call)  # type: ignore[index]
    path = tmp_path / "agent-transcripts" / name / f"{name}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    lined = look(path)
    assert [turn.id for turn in lined.turns[name]] == [turn.id for turn in state.turns[name]]
