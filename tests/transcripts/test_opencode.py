"""The OpenCode adapters read its database, its older files and its exports."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from nacre.readers.adapter import Places
from nacre.readers.opencode import ADAPTER
from nacre.readers.trust import INTERRUPTION
from nacre.values.session import Flag, SessionKind, Tokens
from tests.stores import (
    OPENCODE_TABLES,
    START,
    OpenCode,
    OpenCode2,
    connect,
    opencode_2_tool,
    opencode_tool,
)

DATA = Path(__file__).parents[3] / "shared" / "data" / "transcripts" / "opencode"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[OpenCode]:
    store = OpenCode(tmp_path / "opencode.db")
    yield store
    store.close()


def test_session_has_ordered_messages_with_tool_outcomes(look: Any, store: OpenCode) -> None:
    store.session("ses_1", title="Nightly export")
    store.message(
        "ses_1",
        "user",
        {"text": "Add an export."},
        {"type": "file", "filename": "a.png", "mime": "image/png"},
    )
    store.message(
        "ses_1",
        "assistant",
        {"type": "step-start"},
        {"type": "reasoning", "text": "hm"},
        {"text": "I look first."},
        opencode_tool(
            "bash",
            {"command": "make test", "description": "Run tests"},
            "1 failed",
            metadata={"exit": 2},
        ),
        opencode_tool("edit", {"filePath": "/code/acme/a.py"}, "no such file", status="error"),
        opencode_tool(
            "bash",
            {"command": "rm -r /"},
            "The user rejected permission to use this tool",
            status="error",
        ),
        {"type": "patch", "hash": "1", "files": []},
        {"text": "Done."},
        {"type": "step-finish"},
    )
    result = look(store.path)
    session, turns = result.sessions["ses_1"], result.turns["ses_1"]
    assert (session.tool, session.title, session.cwd, session.tool_version, session.model) == (
        "opencode",
        "Nightly export",
        "/code/acme",
        "1.17.2",
        "model-1",
    )
    assert session.started == datetime.fromtimestamp(START / 1000, UTC)
    assert result.messages("ses_1") == [
        ("owner", "Add an export."),
        ("agent", "I look first.\n\nDone."),
    ]
    assert [(call.name, call.input, call.outcome) for call in turns[1].tool_calls] == [
        ("bash", "make test", "exit 2"),
        ("edit", "/code/acme/a.py", "error: no such file"),
        ("bash", "rm -r /", "rejected"),
    ]
    assert turns[0].time == datetime.fromtimestamp(START / 1000 + 1, UTC)
    assert (result.unknown, result.corrupt) == ({}, 0)


@pytest.mark.parametrize(
    ("provider", "named"),
    [
        *(
            (text, f"{text}/acme-tuned")
            for text in ("ollama", "lmstudio", "llama.cpp", "vllm", "mlx", "jan", "local")
        ),
        *(
            (text, f"local:{text}/acme-tuned")
            for text in ("homelab", "LM Studio", "litellm", "openai-compatible")
        ),
        *(
            (text, "acme-tuned")
            for text in ("anthropic", "github-copilot", "Google Vertex", "zai_coding_plan")
        ),
    ],
)
def test_unknown_provider_model_is_named_with_its_provider(
    look: Any, store: OpenCode, provider: str, named: str
) -> None:
    store.session("ses_1")
    store.message("ses_1", "user", {"text": "Add an export."})
    store.message(
        "ses_1", "assistant", {"text": "Done."}, providerID=provider, modelID="acme-tuned"
    )
    assert look(store.path).sessions["ses_1"].model == named


def test_tokens_of_each_answer_are_counted(look: Any, store: OpenCode) -> None:
    store.session("ses_1")
    store.message("ses_1", "user", {"text": "Add an export."})
    for read in (5, 7):
        tokens = {"input": read, "output": 3, "reasoning": 2, "cache": {"read": 40, "write": 1}}
        store.message("ses_1", "assistant", {"text": f"Step {read}."}, tokens=tokens)
    assert look(store.path).sessions["ses_1"].tokens == Tokens(14, 80, 10)


def test_interrupted_answer_records_its_reason(look: Any, store: OpenCode) -> None:
    store.session("ses_1")
    store.message("ses_1", "user", {"text": "Add an export."})
    store.message(
        "ses_1", "assistant", {"text": "I l"}, error={"name": "MessageAbortedError", "data": {}}
    )
    store.message(
        "ses_1", "assistant", error={"name": "APIError", "data": {"message": "overloaded"}}
    )
    result = look(store.path)
    assert result.messages("ses_1")[1:] == [
        ("agent", "I l"),
        ("system", INTERRUPTION),
        ("system", "overloaded"),
    ]
    assert [turn.flags for turn in result.turns["ses_1"][2:]] == [
        Flag.META | Flag.INTERRUPTED,
        Flag.META,
    ]


def test_text_added_by_opencode_is_not_the_owners(look: Any, store: OpenCode) -> None:
    store.session("ses_1")
    entry = {"text": "Called the Read tool with the following input: a.py", "synthetic": True}
    store.message(
        "ses_1", "user", entry, {"text": "Explain @a.py"}, {"text": "old", "ignored": True}
    )
    store.message(
        "ses_1", "user", {"text": "<nacre-context>- decision: x</nacre-context>", "synthetic": True}
    )
    assert look(store.path).messages("ses_1") == [("owner", "Explain @a.py")]


def test_quotes_added_by_the_command_line_are_removed(look: Any, store: OpenCode) -> None:
    store.session("ses_1")
    for text in ('"Always rebase, \\"never\\" merge."', '"Yes" or "no"?', '"ok"'):
        store.message("ses_1", "user", {"text": text})
    assert look(store.path).messages("ses_1") == [
        ("owner", 'Always rebase, "never" merge.'),
        ("owner", '"Yes" or "no"?'),
        ("owner", "ok"),
    ]


def test_summary_is_marked_and_sub_agent_is_not_the_owner(look: Any, store: OpenCode) -> None:
    store.session("ses_1")
    store.message("ses_1", "user", {"type": "compaction", "auto": True})
    store.message("ses_1", "assistant", {"text": "We added an export."}, summary=True)
    store.session("ses_2", parent_id="ses_1", title="Child session - 2026-11-18T09:00:00.000Z")
    store.message("ses_2", "user", {"text": "Find all tests."})
    result = look(store.path)
    (turn,) = result.turns["ses_1"]
    assert (turn.speaker, turn.flags) == ("system", Flag.SUMMARY)
    inner = result.sessions["ses_2"]
    assert (inner.kind, inner.parent, inner.title) == (SessionKind.SUBAGENT, "ses_1", None)
    assert result.messages("ses_2") == [("agent", "Find all tests.")]


def test_unfinished_answer_grows_in_place(look: Any, store: OpenCode) -> None:
    store.session("ses_1")
    store.message("ses_1", "user", {"text": "How long?"})
    running = {
        **opencode_tool("bash", {"command": "make"}, ""),
        "state": {"status": "running", "input": {"command": "make"}},
    }
    answer = store.message(
        "ses_1", "assistant", {"text": "Abou"}, running, time={"created": store.now}
    )
    first = look(store.path)
    assert first.turns["ses_1"][1].tool_calls[0].outcome is None
    store.connection.execute(
        "UPDATE part SET data = ? WHERE message_id = ? AND data LIKE '%Abou%'",
        (json.dumps({"type": "text", "text": "About an hour."}), answer),
    )  # neither a new part nor a new session time: only incomplete messages are read again
    second = look(store.path, first.cursor, "opencode")
    assert second.messages("ses_1")[1] == ("agent", "About an hour.")
    assert second.turns["ses_1"][1].id == first.turns["ses_1"][1].id


def test_database_with_other_columns_is_read_partially(look: Any, tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    tables = (
        "CREATE TABLE session (id TEXT, time_created INTEGER, time_updated INTEGER, title TEXT, colour TEXT)",
        *OPENCODE_TABLES[2:4],
    )
    with closing(connect(path, *tables)) as connection:
        connection.execute("INSERT INTO session VALUES ('ses_1', 1, 1, 'Odd', 'red')")
        connection.execute(
            "INSERT INTO message VALUES ('msg_1', 'ses_1', 1, 1, ?)", ('{"role":"user"}',)
        )
        connection.execute("INSERT INTO message VALUES ('msg_2', 'ses_1', 2, 2, '{torn')")
        connection.execute(
            "INSERT INTO message VALUES ('msg_3', 'ses_1', 3, 3, ?)", ('{"role":"oracle"}',)
        )
        part = '{"type":"text","text":"Hello there"}'
        connection.execute("INSERT INTO part VALUES ('prt_1', 'msg_1', 'ses_1', 1, 1, ?)", (part,))
        connection.execute(
            "INSERT INTO part VALUES ('prt_2', 'msg_1', 'ses_1', 1, 1, '{\"type\":\"hologram\"}')"
        )
    result = look(path)
    assert (result.sessions["ses_1"].title, result.sessions["ses_1"].cwd) == ("Odd", None)
    assert result.messages("ses_1") == [("owner", "Hello there")]
    assert (result.corrupt, result.unknown) == (1, {"role oracle": 1, "part hologram": 1})


def test_secret_tables_are_never_queried(look: Any, store: OpenCode, tmp_path: Path) -> None:
    store.session("ses_1")
    store.message("ses_1", "user", {"text": "Hello there"})
    for table in ("account", "credential", "event"):  # reading these tables fails
        store.connection.execute(f"DROP TABLE {table}")
        store.connection.execute(
            f"CREATE VIEW {table} AS SELECT json('no') AS id, abs(-9223372036854775808) AS value"
        )
    assert look(store.path).messages("ses_1") == [("owner", "Hello there")]


@pytest.fixture
def files(tmp_path: Path) -> Callable[..., Path]:
    """Write a session of two messages as files.

    ``flat`` uses one folder of parts; ``old`` puts everything below ``session``.
    """

    def write(*, flat: bool = False, old: bool = False) -> Path:
        storage = tmp_path / "storage"
        info = {
            "id": "ses_1",
            "version": "0.15.0",
            "projectID": "p1",
            "directory": "/code/acme",
            "title": "Export",
            "time": {"created": START, "updated": START},
        }
        top = storage / "session" if old else storage
        session = top / "info" / "ses_1.json" if old else top / "session" / "p1" / "ses_1.json"
        infos = {session: info}
        for number, (role, text) in enumerate((("user", "Add an export."), ("assistant", "Done."))):
            message = {
                "id": f"msg_{number}",
                "sessionID": "ses_1",
                "role": role,
                "time": {"created": START + number},
            }
            part = {
                "id": f"prt_{number}",
                "messageID": f"msg_{number}",
                "type": "text",
                "text": text,
            }
            infos[top / "message" / "ses_1" / f"msg_{number}.json"] = message
            folder = (
                top / "part"
                if flat
                else top / "part" / "ses_1" / f"msg_{number}"
                if old
                else top / "part" / f"msg_{number}"
            )
            infos[folder / f"prt_{number}.json"] = part
        for path, values in infos.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(values, indent=2), encoding="utf-8")
        return session

    return write


@pytest.mark.parametrize("layout", [{}, {"flat": True}, {"old": True}])
def test_session_in_files_of_any_version_is_read(
    layout: dict[str, bool], look: Any, files: Callable[..., Path]
) -> None:
    result = look(files(**layout))
    assert (result.sessions["ses_1"].title, result.sessions["ses_1"].cwd) == (
        "Export",
        "/code/acme",
    )
    assert result.messages("ses_1") == [("owner", "Add an export."), ("agent", "Done.")]
    assert {turn.id for turn in result.turns["ses_1"]} == {"msg_0", "msg_1"}


def test_files_and_database_yield_the_same_turns(
    look: Any, files: Callable[..., Path], store: OpenCode
) -> None:
    store.session("ses_1", title="Export", version="0.15.0")
    store.now = START - 1000
    store.message("ses_1", "user", {"text": "Add an export."}, id="msg_0", time={"created": START})
    store.message("ses_1", "assistant", {"text": "Done."}, id="msg_1", time={"created": START + 1})
    assert look(store.path).turns == look(files()).turns


def test_torn_file_is_counted_and_others_are_read(look: Any, files: Callable[..., Path]) -> None:
    session = files()
    (session.parents[2] / "message" / "ses_1" / "msg_1.json").write_text(
        '{"id": "msg_1", "ro', encoding="utf-8"
    )
    result = look(session)
    assert (result.messages("ses_1"), result.corrupt) == ([("owner", "Add an export.")], 1)


def test_id_cannot_escape_the_storage_folder(
    look: Any, files: Callable[..., Path], tmp_path: Path
) -> None:
    session = files()
    secret = tmp_path / "secret" / "x.json"
    secret.parent.mkdir()
    secret.write_text(
        '{"id": "x", "role": "user", "type": "text", "text": "not to be read"}', encoding="utf-8"
    )
    info = {**json.loads(session.read_text(encoding="utf-8")), "id": "../../secret"}
    session.write_text(json.dumps(info), encoding="utf-8")
    assert not look(session).turns


def test_an_export_is_read(look: Any, tmp_path: Path) -> None:
    info = {
        "id": "ses_1",
        "title": "Export",
        "directory": "/code/acme",
        "version": "1.17.2",
        "time": {"created": START},
    }
    message = {"id": "msg_0", "sessionID": "ses_1", "role": "user", "time": {"created": START}}
    part = {
        "id": "prt_0",
        "sessionID": "ses_1",
        "messageID": "msg_0",
        "type": "text",
        "text": "Hello there",
    }
    answer = {**message, "id": "msg_1", "role": "assistant", "tokens": {"input": 5, "output": 2}}
    answer_part = {**part, "id": "prt_1", "messageID": "msg_1", "text": "Hello"}
    path = tmp_path / "export.json"
    messages = [{"info": message, "parts": [part]}, {"info": answer, "parts": [answer_part]}]
    path.write_text(json.dumps({"info": info, "messages": messages}), encoding="utf-8")
    result = look(path)
    assert (result.tool, result.messages("ses_1")) == (
        "opencode",
        [("owner", "Hello there"), ("agent", "Hello")],
    )
    assert result.sessions["ses_1"].tokens == Tokens(5, 0, 2)


@pytest.mark.parametrize(
    ("platform", "environ", "folder"),
    [
        ("linux", {}, "/home/me/.local/share/opencode"),
        ("linux", {"XDG_DATA_HOME": "/data"}, "/data/opencode"),
        ("darwin", {}, "/home/me/.local/share/opencode"),
        ("win32", {}, "/home/me/.local/share/opencode"),
        ("linux", {"OPENCODE_DB": "/elsewhere/mine.db"}, "/elsewhere"),
    ],
)
def test_opencode_data_is_searched_in_its_platform_folders(
    platform: str, environ: dict[str, str], folder: str
) -> None:
    assert Path(folder) in [
        root.folder for root in ADAPTER.roots(Places(Path("/home/me"), environ, platform))
    ]


FILES = sorted(DATA.glob("*/storage*/session/*/*.json"))


@pytest.mark.skipif(not FILES, reason="no real transcripts next to this checkout")
def test_real_sessions_in_files_are_read_completely(look: Any) -> None:
    results = {path.stem: look(path) for path in FILES}
    assert {item.tool for item in results.values()} == {"opencode"}
    assert sum(item.corrupt + len(item.unknown) for item in results.values()) == 0
    large = next(item for name, item in results.items() if name.endswith("large"))
    (turns,) = large.turns.values()
    assert [turn.speaker.value for turn in turns] == ["owner", "agent", "system", "owner", "agent"]
    assert turns[1].tool_calls[0].outcome == "exit 1"


def test_message_table_without_an_index_is_read(look: Any, tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    with closing(connect(path, *OPENCODE_TABLES[:4])) as connection:
        connection.execute(
            "INSERT INTO session (id, project_id, directory, title, version, time_created, time_updated)"
            " VALUES ('ses_1', 'p', '/', 't', '1', 1, 1)"
        )
        assert isinstance(connection, sqlite3.Connection)
    assert not look(path).turns


# Version 2: the tables session_v2 and session_message


@pytest.fixture
def newer(tmp_path: Path) -> Iterator[OpenCode2]:
    store = OpenCode2(tmp_path / "opencode.db", *OPENCODE_TABLES)
    yield store
    store.close()


def test_rows_of_version_2_are_read_by_speaker(look: Any, newer: OpenCode2) -> None:
    newer.session("ses_1")
    newer.row("ses_1", "model-switched", {"model": {"id": "model-1"}})
    newer.row("ses_1", "user", {"text": "Add an export.", "files": []})
    newer.answer(
        "ses_1",
        {"type": "reasoning", "text": "hm"},
        opencode_2_tool("shell", {"command": "make"}, "1 failed", metadata={"exit": 2}),
        opencode_2_tool(
            "edit", {"filePath": "a.py"}, "", status="error", error={"message": "gone"}
        ),
        {"type": "text", "text": "Done."},
        tokens={"input": 10, "output": 5, "cache": {"read": 3}},
    )
    newer.row("ses_1", "synthetic", {"text": "Continue with the next step."})
    newer.row("ses_1", "shell", {"command": "ls", "exit": 0, "output": {"output": "a.py"}})
    newer.row("ses_1", "compaction", {"status": "completed", "summary": "An export was added."})
    newer.answer("ses_1", error={"type": "aborted", "message": "Aborted"})
    newer.row("ses_1", "idle", {"outcome": "interrupted"})
    newer.row("ses_1", "rainbow", {})
    result = look(newer.path)
    session = result.sessions["ses_1"]
    assert result.messages("ses_1") == [
        ("owner", "Add an export."),
        ("agent", "Done."),
        ("agent", ""),
        ("system", "An export was added."),
        ("system", INTERRUPTION),
    ]
    assert [
        (call.name, call.input, call.outcome)
        for turn in result.turns["ses_1"]
        for call in turn.tool_calls
    ] == [("shell", "make", "exit 2"), ("edit", "a.py", "error: gone"), ("shell", "ls", "ok")]
    assert (session.model, session.tokens, session.title) == (
        "model-1",
        Tokens(10, 3, 5),
        "Fix the build",
    )
    assert result.unknown == {"role rainbow": 1}


@pytest.mark.parametrize(
    "boundary",
    [
        "msg_00002",
        json.dumps({"type": "through", "messageID": "msg_00002"}),
        json.dumps({"type": "before", "messageID": "msg_00003"}),
        None,
    ],
)
def test_fork_has_only_its_own_turns(boundary: str | None, look: Any, newer: OpenCode2) -> None:
    newer.session("ses_1")
    newer.row("ses_1", "user", {"text": "Add an export."})
    newer.answer("ses_1", {"type": "text", "text": "Done."})
    newer.row("ses_1", "user", {"text": "Now in blue."})
    copied = newer.connection.execute(
        "SELECT type, seq, time_created, data FROM session_message WHERE seq < 3"
    ).fetchall()
    newer.session("ses_2", fork_session_id="ses_1", fork_boundary=boundary, parent_id=None)
    for kind, seq, created, data in copied:
        more = {"id": f"copy_{seq}", "seq": seq, "time_created": created}
        newer.row("ses_2", kind, json.loads(data), **more)
    newer.row("ses_2", "user", {"text": "Now in red."}, seq=3)
    result = look(newer.path)
    assert result.messages("ses_2") == [("owner", "Now in red.")]
    assert len(result.messages("ses_1")) == 3
    assert result.sessions["ses_2"].kind is SessionKind.MAIN
    newer.connection.execute("DELETE FROM session_message WHERE session_id = 'ses_1'")
    assert len(look(newer.path).messages("ses_2")) == 3


def test_migrated_session_is_read_from_the_new_tables(look: Any, tmp_path: Path) -> None:
    older = OpenCode(tmp_path / "opencode.db")
    for name in ("ses_1", "ses_2"):
        older.session(name)
        older.message(name, "user", {"text": "Add an export."}, id=f"msg_{name}")
    older.close()
    first = look(older.path)
    newer = OpenCode2(older.path)
    newer.session("ses_1")
    newer.row("ses_1", "user", {"text": "Add an export."}, id="msg_ses_1")
    newer.row("ses_1", "user", {"text": "Now in blue."})
    second = look(older.path, first.cursor, "opencode")
    assert second.messages("ses_1") == [("owner", "Add an export."), ("owner", "Now in blue.")]
    assert second.turns["ses_1"][0].id == first.turns["ses_1"][0].id
    assert "ses_2" not in second.turns
    newer.connection.execute(
        "UPDATE session_message SET data = ?, time_updated = time_updated + 1 WHERE seq = 1",
        (json.dumps({"text": "Add two exports."}),),
    )
    third = look(older.path, second.cursor, "opencode")
    assert third.messages("ses_1")[0] == ("owner", "Add two exports.")
    assert look(older.path, third.cursor, "opencode").sessions == {}
    newer.close()


@pytest.mark.parametrize("place", ["share/kilo/kilo.db", "share/kilo/main.db", "copies/kilo-2.db"])
def test_kilo_code_is_recognised_by_its_place(place: str, look: Any, tmp_path: Path) -> None:
    path = tmp_path / place
    path.parent.mkdir(parents=True)
    store = OpenCode(path)
    store.session("ses_1")
    store.message("ses_1", "user", {"text": "Add an export."})
    assert look(path).sessions["ses_1"].id == "kilo-code:ses_1"
    store.close()
