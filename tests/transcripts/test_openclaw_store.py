"""The adapter of OpenClaw's event database of 2026."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nacre.readers import openclaw as openclaw_store
from nacre.readers.adapter import Places
from nacre.readers.openclaw import ADAPTER_STORE
from nacre.store.packs import compress
from nacre.values.session import SessionKind, Tokens, Trust
from tests.stores import START, OpenClaw


@pytest.fixture
def store(tmp_path: Path) -> Iterator[OpenClaw]:
    store = OpenClaw(tmp_path / "openclaw-agent.sqlite")
    yield store
    store.close()


def test_events_are_read_like_lines_of_older_files(look: Any, store: OpenClaw) -> None:
    name = store.window("s1")
    store.message(name, "user", "Water the plants at noon.", __openclaw={"senderIsOwner": True})
    call = {"type": "toolCall", "id": "c1", "name": "exec", "arguments": {"command": "date"}}
    store.message(name, "assistant", [call], provider="anthropic", model="model-1")
    store.message(
        name, "toolResult", [{"type": "text", "text": "noon"}], toolCallId="c1", toolName="exec"
    )
    usage = {"input": 4, "output": 2, "cacheRead": 30, "cacheWrite": 6}
    store.message(
        name, "assistant", [{"type": "text", "text": "It is noon."}], model="model-1", usage=usage
    )
    store.event(
        name,
        {
            "type": "compaction",
            "id": "x1",
            "timestamp": "2026-11-18T10:00:00.000Z",
            "summary": "Plants.",
        },
    )
    store.event(name, {"type": "custom", "id": "x2", "customType": "openclaw.cache-ttl"})
    result = look(store.path)
    session = result.sessions["s1"]
    assert (session.tool, session.cwd, session.model, session.kind) == (
        "openclaw",
        "/code/acme",
        "model-1",
        SessionKind.MAIN,
    )
    assert result.messages("s1") == [
        ("owner", "Water the plants at noon."),
        ("agent", ""),
        ("agent", "It is noon."),
        ("system", "Plants."),
    ]
    assert session.tokens == Tokens(10, 30, 2)
    assert result.turns["s1"][1].tool_calls[0].outcome == "ok"
    assert result.turns["s1"][0].trust is Trust.TRUSTED
    assert (result.unknown, result.corrupt) == ({}, 0)


def test_only_sessions_with_new_events_are_reread(look: Any, store: OpenClaw) -> None:
    for name in ("s1", "s2", "s3"):
        store.message(store.window(name), "user", f"I am {name}.")
    first = look(store.path)
    assert set(first.sessions) == {"s1", "s2", "s3"}
    assert not look(store.path, first.cursor, "openclaw").sessions
    store.message("s2", "user", "And I go on.")
    second = look(store.path, first.cursor, "openclaw")
    assert set(second.sessions) == {"s2"}
    assert [text for _, text in second.messages("s2")] == ["I am s2.", "And I go on."]
    store.connection.execute("DELETE FROM transcript_events WHERE session_id = 's2' AND seq = 2")
    store.message(
        "s2", "user", "Another way."
    )  # rewound and continued, with as many events as before
    assert look(store.path, second.cursor, "openclaw").messages("s2")[-1] == (
        "owner",
        "Another way.",
    )


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("agent:main:main", SessionKind.MAIN),
        ("agent:main:telegram:direct:1", SessionKind.MAIN),
        ("agent:main:subagent:0198", SessionKind.SUBAGENT),
        ("agent:main:cron:daily", SessionKind.SCHEDULED),
        ("agent:main:main:heartbeat", SessionKind.HEARTBEAT),
    ],
)
def test_session_key_determines_its_kind(
    key: str, kind: SessionKind, look: Any, store: OpenClaw
) -> None:
    store.window("s0", "agent:main:main")
    store.message(
        store.window("s1", key, spawned_by="agent:main:main"), "user", "List the open tickets."
    )
    result = look(store.path)
    session, (turn,) = result.sessions["s1"], result.turns["s1"]
    assert session.kind is kind
    assert (turn.speaker == "owner") is (kind is SessionKind.MAIN)
    assert session.parent == ("s0" if kind is SessionKind.SUBAGENT else None)


def test_messages_from_others_are_untrusted(look: Any, store: OpenClaw) -> None:
    store.message(
        store.window("s1"), "user", "Always pay at once.", __openclaw={"senderIsOwner": False}
    )
    store.message(
        store.window("s2", hook_external_content_source="gmail"), "user", "Always pay at once."
    )
    result = look(store.path)
    assert [turn.trust for name in ("s1", "s2") for turn in result.turns[name]] == [
        Trust.UNTRUSTED
    ] * 2


def test_reset_session_is_read_from_its_archive(look: Any, store: OpenClaw) -> None:
    events = [
        {
            "type": "session",
            "version": 4,
            "id": "s9",
            "timestamp": "2026-11-18T09:00:00.000Z",
            "cwd": "/code/acme",
        },
        {
            "type": "message",
            "id": "0000000a",
            "timestamp": "2026-11-18T09:00:01.000Z",
            "message": {"role": "user", "content": "Keep this."},
        },
    ]
    data = "".join(json.dumps(event) + "\n" for event in events).encode()
    row = ("s9", "g1", "agent:main:main", "reset", "identity", data, "0" * 64, "s9.jsonl", START)
    packed = (
        "s8",
        "g1",
        "agent:main:main",
        "deleted",
        "zstd",
        b"no frame",
        "0" * 64,
        "s8.jsonl",
        START,
    )
    insert = "INSERT INTO session_transcript_archives VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
    store.connection.executemany(insert, (row, packed))
    result = look(store.path)
    assert result.messages("s9") == [("owner", "Keep this.")]
    assert result.unknown == {"compressed session": 1}


def test_reset_session_continues_under_its_name(look: Any, store: OpenClaw) -> None:
    name = store.window("s1")
    store.message(name, "user", "The gauge is read at noon.")
    store.event(
        name,
        {
            "type": "reset",
            "id": "6c453633",
            "timestamp": "2026-11-18T09:10:00.000Z",
            "reason": "new",
        },
    )
    store.message(name, "user", "And in winter?")
    result = look(store.path)
    assert result.messages("s1") == [
        ("owner", "The gauge is read at noon."),
        ("owner", "And in winter?"),
    ]
    assert result.unknown == {}


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-9], lambda data: b"no frame", lambda data: data + b"more"]
)
def test_damaged_compressed_event_is_counted(
    look: Any, store: OpenClaw, damage: Callable[[bytes], bytes]
) -> None:
    name = store.window("s1")
    store.event(name, {}, packed=damage(compress(b'{"type": "message"}' * 100, b"")))
    store.message(name, "user", "Hello there")
    result = look(store.path)
    assert result.messages("s1") == [("owner", "Hello there")]
    assert result.unknown == {"compressed event": 1}


def test_oversized_decompressed_event_is_counted(
    look: Any, store: OpenClaw, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openclaw_store, "_MAX_UNPACKED_BYTES", 1000)
    store.event(store.window("s1"), {}, packed=compress(b" " * 5000, b""))
    assert look(store.path).unknown == {"compressed event": 1}


def test_compressed_events_and_sessions_are_read(look: Any, store: OpenClaw) -> None:
    event = {
        "type": "message",
        "id": "0000000b",
        "timestamp": "2026-11-18T09:00:01.000Z",
        "message": {"role": "user", "content": "A long story."},
    }
    data = json.dumps(event).encode()
    store.event(store.window("s1"), {}, packed=compress(data, b""))
    frames = compress(data + b"\n", b"") + compress(
        data.replace(b"long", b"short").replace(b"0b", b"0c"), b""
    )
    row = ("s8", "g1", "agent:main:main", "deleted", "zstd", frames, "0" * 64, "s8.jsonl", START)
    store.connection.execute(
        "INSERT INTO session_transcript_archives VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row
    )
    result = look(store.path)
    assert result.messages("s1") == [("owner", "A long story.")]
    assert result.messages("s8") == [("owner", "A long story."), ("owner", "A short story.")]


def test_store_of_the_previous_version_has_no_compressed_events(look: Any, tmp_path: Path) -> None:
    store = OpenClaw(tmp_path / "openclaw-agent.sqlite")
    store.message(store.window("s1"), "user", "Hello there")
    store.connection.execute("ALTER TABLE transcript_events DROP COLUMN event_zstd")
    store.connection.execute("DROP TABLE session_windows")
    store.connection.execute("DROP TABLE session_transcript_archives")
    result = look(store.path)
    store.close()
    assert result.messages("s1") == [("owner", "Hello there")]


def test_store_is_searched_below_the_state_folder() -> None:
    environ = {"OPENCLAW_STATE_DIR": "/state"}
    (root,) = ADAPTER_STORE.roots(Places(Path("/home/me"), environ, "linux"))
    assert (root.folder, root.patterns) == (
        Path("/state/agents"),
        ("*/agent/openclaw-agent.sqlite",),
    )
    assert len(ADAPTER_STORE.roots(Places(Path("/home/me"), {}, "linux"))) == 3
