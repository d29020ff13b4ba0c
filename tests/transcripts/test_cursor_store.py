"""The adapter of the Cursor command line agent's databases."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from nacre.readers.adapter import Places
from nacre.readers.cursor import ADAPTER_STORE, read_fields
from tests.stores import START, field, write_store

NAME = "a6e17000-0000-4000-8000-000000000001"
DATA = Path(__file__).parents[3] / "shared" / "data" / "transcripts" / "cursor"
ASKED = "<user_info>\nWorkspace Path: /code/other\n</user_info>\n<user_query>\nWhy is it slow?\n</user_query>"


def messages() -> list[Any]:
    call = {
        "type": "tool-call",
        "toolCallId": "t1",
        "toolName": "Shell",
        "args": {"command": "make bench"},
    }
    result = {"type": "tool-result", "toolCallId": "t1", "toolName": "Shell", "result": "3 seconds"}
    return [
        {"role": "system", "content": "You are an agent."},
        {"role": "user", "content": "<user_info>OS: linux</user_info>"},
        {"role": "user", "content": [{"type": "text", "text": ASKED}]},
        {
            "role": "assistant",
            "content": [
                {"type": "reasoning", "text": "hm"},
                {"type": "text", "text": "I measure."},
                call,
            ],
        },
        {"role": "tool", "content": [result]},
        {"role": "assistant", "content": "The index is missing."},
        {
            "role": "user",
            "content": [{"type": "text", "text": "<user_query>Why is it slow?</user_query>"}],
        },
    ]


def test_messages_follow_the_order_of_the_newest_root(look: Any, tmp_path: Path) -> None:
    result = look(write_store(tmp_path / NAME / "store.db", messages()))
    session = result.sessions[NAME]
    assert (session.tool, session.title, session.cwd, session.model) == (
        "cursor",
        "Fix the build",
        "/code/acme billing",
        "model-1",
    )
    assert session.started == datetime.fromtimestamp(START / 1000, UTC)
    assert result.messages(NAME) == [
        ("owner", "Why is it slow?"),
        ("agent", "I measure."),
        ("agent", "The index is missing."),
        ("owner", "Why is it slow?"),
    ]
    (call,) = result.turns[NAME][1].tool_calls
    assert (call.name, call.input, call.outcome) == ("Shell", "make bench", "ok")
    assert len({turn.id for turn in result.turns[NAME]}) == 4
    assert (result.unknown, result.corrupt) == ({}, 0)


def test_store_with_a_new_root_is_reread(look: Any, tmp_path: Path) -> None:
    path = write_store(tmp_path / NAME / "store.db", messages()[:3])
    first = look(path)
    assert not look(path, first.cursor, "cursor").sessions
    write_store(path, messages())
    second = look(path, first.cursor, "cursor")
    assert [turn.id for turn in second.turns[NAME]][:1] == [turn.id for turn in first.turns[NAME]]
    assert len(second.turns[NAME]) == 4


def test_default_session_name_is_not_a_title(look: Any, tmp_path: Path) -> None:
    path = write_store(
        tmp_path / NAME / "store.db", messages(), name="New Agent", lastUsedModel="default"
    )
    session = look(path).sessions[NAME]
    assert (session.title, session.model) == (None, None)


def test_older_message_formats_are_read_partially(look: Any, tmp_path: Path) -> None:
    prompt = (
        field(1, b"Rename the module")
        + field(2, b"0198f3c2-7d1a-7c3e-9b1e-5f0c2a4d6e81")
        + field(3, b"")
    )
    reply = field(1, field(1, b"I renamed it.")) + field(3, b"")
    tree = field(1, bytes(range(32))) + field(1, bytes(32))
    path = write_store(
        tmp_path / NAME / "store.db", [prompt, reply, tree], listed=False, latestRootBlobId="gone"
    )
    result = look(path)
    assert result.messages(NAME) == [("owner", "Rename the module"), ("agent", "I renamed it.")]
    assert result.unknown == {"blob": 1}


def test_missing_and_invalid_blobs_are_counted(look: Any, tmp_path: Path) -> None:
    path = write_store(tmp_path / NAME / "store.db", [*messages(), {"todos": []}, b"\x07\x08"])
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        deleted = json.dumps({"role": "assistant", "content": "The index is missing."}).encode()
        connection.execute("DELETE FROM blobs WHERE data = ?", (deleted,))
    result = look(path)
    assert len(result.turns[NAME]) == 3
    assert result.unknown == {"message without its blob": 1, "blob": 2}


def test_invalid_hexadecimal_metadata_is_counted(look: Any, tmp_path: Path) -> None:
    path = write_store(tmp_path / NAME / "store.db", messages())
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE meta SET value = 'something else'")
    result = look(path)
    assert result.corrupt == 1
    assert ("agent", "I measure.") in result.messages(NAME)


def test_invalid_protobuf_bytes_have_no_fields() -> None:
    assert read_fields(b"\x0a\x05ab") is None
    assert read_fields(b"\x80" * 11) is None
    assert read_fields(b"\x0b") is None
    assert read_fields(b"") == []
    assert [
        number for number, _ in read_fields(b"\x08\x96\x01" + field(2, b"x") + b"\x1d1234") or ()
    ] == [1, 2, 3]


def test_agent_chats_are_searched_in_their_folders() -> None:
    folders = [
        root.folder
        for root in ADAPTER_STORE.roots(
            Places(Path("/home/me"), {"CURSOR_DATA_DIR": "/data"}, "linux")
        )
    ]
    assert folders == [
        Path("/home/me/.cursor/chats"),
        Path("/data/chats"),
        Path("/home/me/.config/cursor/chats"),
    ]


@pytest.mark.skipif(not DATA.is_dir(), reason="no real transcripts next to this checkout")
def test_real_store_without_messages_is_recognised(look: Any) -> None:
    (path,) = DATA.glob("*store.db")
    result = look(path)
    assert (result.tool, result.sessions, result.corrupt, result.unknown) == ("cursor", {}, 0, {})
