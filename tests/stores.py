"""Databases as the tools write them, field by field, made by the tests."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

START = 1_795_000_000_000
"""November 2026, in milliseconds."""

JSON = dict[str, Any]


def connect(path: Path, *statements: str, journal: str = "delete") -> sqlite3.Connection:
    """An open database; the caller closes it, or leaves it open as a tool that runs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"PRAGMA journal_mode = {journal}")
    for statement in statements:
        connection.execute(statement)
    return connection


# Editors

EDITOR_TABLES = (
    "CREATE TABLE IF NOT EXISTS ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)",
    "CREATE TABLE IF NOT EXISTS cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)",
)
TOKEN = "cursorAuth/accessToken"


def put_values(connection: sqlite3.Connection, table: str, values: Mapping[str, Any]) -> None:
    """Write values as the editor does: JSON as text in a BLOB column; bytes and ``None`` go in as they are."""
    for key, value in values.items():
        kept = value if isinstance(value, bytes | None) else json.dumps(value, ensure_ascii=False)
        connection.execute(f"INSERT INTO {table} VALUES (?, ?)", (key, kept))  # noqa: S608


def write_state(
    path: Path,
    items: Mapping[str, Any],
    values: Mapping[str, Any] | None = None,
    *,
    folder: str | None = None,
) -> Path:
    """A ``state.vscdb``; with values it has Cursor's table, too. ``folder`` is that of its workspace."""
    tables = EDITOR_TABLES if values is not None else EDITOR_TABLES[:1]
    with closing(connect(path, *tables)) as connection:
        put_values(connection, "ItemTable", {"telemetry.currentSessionDate": "x", **items})
        put_values(connection, "cursorDiskKV", values or {})
    if folder:
        path.with_name("workspace.json").write_text(
            json.dumps({"folder": folder}), encoding="utf-8"
        )
    return path


def bubble(kind: int, text: str = "", **more: Any) -> JSON:
    """A bubble of the third generation: kind 1 is the owner's, 2 the agent's."""
    digest = hashlib.sha256(f"{kind}{text}{more}".encode()).hexdigest()[:12]
    identity = more.pop("bubbleId", f"00000000-0000-4000-8000-{digest}")
    return {"_v": 3, "type": kind, "bubbleId": identity, "text": text, "codeBlocks": [], **more}


def tool_bubble(name: str, arguments: Any, result: Any, **more: Any) -> JSON:
    """A tool call of the third generation, with what came of it."""
    called = {
        "tool": 15,
        "name": name,
        "toolCallId": f"call_{name}_{len(str(result))}",
        "status": "completed",
        "rawArgs": json.dumps(arguments),
        "params": json.dumps(arguments),
        "result": result if isinstance(result, str) else json.dumps(result),
        **more,
    }
    return bubble(2, "", capabilityType=15, toolFormerData=called)


def conversation(composer: str, bubbles: Sequence[JSON], **facts: Any) -> dict[str, Any]:
    """A conversation of the third generation: a key with the order of its bubbles, and a key a bubble."""
    headers = [{"bubbleId": item["bubbleId"], "type": item["type"]} for item in bubbles]
    data = {
        "_v": 3,
        "composerId": composer,
        "name": "A talk",
        "createdAt": START,
        "lastUpdatedAt": START + 1,
        "status": "completed",
        "unifiedMode": "agent",
        "fullConversationHeadersOnly": headers,
        "conversationMap": {},
        "richText": "",
        "text": "",
        "context": {},
        **facts,
    }
    # bubbles first and backwards: their order is that of the headers alone
    values = {f"bubbleId:{composer}:{item['bubbleId']}": item for item in reversed(bubbles)}
    return {**values, f"composerData:{composer}": data}


# Cursor's command line agent


def field(number: int, data: bytes) -> bytes:
    """A Protocol Buffers field that has a length."""
    return bytes([number << 3 | 2]) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def write_store(
    path: Path, messages: Iterable[JSON | bytes], *, listed: bool = True, **facts: Any
) -> Path:
    """A ``store.db``: blobs named after their content, the newest root with the order, facts in hexadecimal digits."""
    tables = (
        "CREATE TABLE IF NOT EXISTS blobs (id TEXT PRIMARY KEY, data BLOB)",
        "CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT)",
    )
    with closing(connect(path, *tables)) as connection:
        ids = []
        for message in messages:
            data = (
                message
                if isinstance(message, bytes)
                else json.dumps(message, ensure_ascii=False).encode()
            )
            ids.append(hashlib.sha256(data).digest())
            connection.execute("INSERT OR IGNORE INTO blobs VALUES (?, ?)", (ids[-1].hex(), data))
        root = b"".join(field(1, item) for item in ids) + field(9, b"file:///code/acme%20billing")
        root_id = hashlib.sha256(root).hexdigest()
        if listed:
            connection.execute("INSERT OR IGNORE INTO blobs VALUES (?, ?)", (root_id, root))
        known = {
            "agentId": "a6e17000-0000-4000-8000-000000000001",
            "latestRootBlobId": root_id,
            "name": "Fix the build",
            "mode": "default",
            "createdAt": START,
            "lastUsedModel": "model-1",
            **facts,
        }
        connection.execute(
            "INSERT OR REPLACE INTO meta VALUES ('0', ?)", (json.dumps(known).encode().hex(),)
        )
    return path


# OpenCode

OPENCODE_TABLES = (
    "CREATE TABLE project (id TEXT PRIMARY KEY, worktree TEXT NOT NULL, vcs TEXT, name TEXT, time_created INTEGER,"
    " time_updated INTEGER)",
    "CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT NOT NULL, parent_id TEXT, slug TEXT, directory TEXT NOT"
    " NULL, title TEXT NOT NULL, version TEXT NOT NULL, share_url TEXT, summary_additions INTEGER, revert TEXT,"
    " permission TEXT, time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL, time_compacting INTEGER,"
    " time_archived INTEGER)",
    "CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, time_created INTEGER NOT NULL, time_updated"
    " INTEGER NOT NULL, data TEXT NOT NULL)",
    "CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT NOT NULL, session_id TEXT NOT NULL, time_created INTEGER"
    " NOT NULL, time_updated INTEGER NOT NULL, data TEXT NOT NULL)",
    "CREATE INDEX message_session_idx ON message (session_id)",
    "CREATE INDEX part_message_idx ON part (message_id)",
    "CREATE INDEX part_session_idx ON part (session_id)",
    "CREATE TABLE account (id TEXT PRIMARY KEY, access_token TEXT)",
    "CREATE TABLE credential (id TEXT PRIMARY KEY, value TEXT)",
    "CREATE TABLE event (id TEXT PRIMARY KEY, aggregate_id TEXT, seq INTEGER, type TEXT, data TEXT)",
)


class OpenCode:
    """Writes sessions into ``opencode.db``, as OpenCode 1.16 to 1.18 does. Stays open, as the tool does."""

    def __init__(self, path: Path, journal: str = "wal") -> None:
        self.connection = connect(path, *OPENCODE_TABLES, journal=journal)
        self.path = path
        self.now = START
        self.count = 0

    def close(self) -> None:
        self.connection.close()

    def session(self, name: str, **more: Any) -> str:
        row = {
            "id": name,
            "project_id": "p1",
            "parent_id": None,
            "slug": "quiet-otter",
            "directory": "/code/acme",
            "title": "Fix the build",
            "version": "1.17.2",
            "time_created": self.now,
            "time_updated": self.now,
            **more,
        }
        self._insert("session", row)
        return name

    def message(self, session: str, role: str, *parts: JSON, **more: Any) -> str:
        """A message with its parts; text parts may be given as ``{"text": …}``."""
        self.now += 1000
        self.count += 1
        name = more.pop("id", f"msg_{self.count:05d}")
        data: JSON = {"role": role, "time": {"created": self.now}, "agent": "build", **more}
        if role == "assistant" and "time" not in more:
            data = {
                **data,
                "parentID": "msg_0",
                "mode": "build",
                "path": {"cwd": "/code/acme", "root": "/code/acme"},
                "modelID": "model-1",
                "providerID": "anthropic",
                "cost": 0,
                "finish": "stop",
                "time": {"created": self.now, "completed": self.now + 500},
                **more,
            }
        self._insert(
            "message",
            {
                "id": name,
                "session_id": session,
                "time_created": self.now,
                "time_updated": self.now,
                "data": json.dumps(data),
            },
        )
        for part in parts:
            self.part(session, name, part)
        self.connection.execute(
            "UPDATE session SET time_updated = ? WHERE id = ?", (self.now, session)
        )
        return name

    def part(self, session: str, message: str, part: JSON) -> str:
        self.count += 1
        name = f"prt_{self.count:05d}"
        self._insert(
            "part",
            {
                "id": name,
                "message_id": message,
                "session_id": session,
                "time_created": self.now,
                "time_updated": self.now,
                "data": json.dumps({"type": "text", **part}),
            },
        )
        return name

    def _insert(self, table: str, row: JSON) -> None:
        names = ", ".join(row)
        marks = ", ".join("?" * len(row))
        self.connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", [*row.values()])  # noqa: S608


OPENCODE_2_TABLES = (
    "CREATE TABLE session_v2 (id TEXT PRIMARY KEY, project_id TEXT NOT NULL, parent_id TEXT, fork_session_id TEXT,"
    " fork_boundary TEXT, slug TEXT NOT NULL, directory TEXT NOT NULL, title TEXT, version TEXT NOT NULL, model TEXT,"
    " time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL)",
    "CREATE TABLE session_message (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, type TEXT NOT NULL, seq INTEGER NOT"
    " NULL, time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL, data TEXT NOT NULL)",
    "CREATE UNIQUE INDEX session_message_session_seq_idx ON session_message (session_id, seq)",
)


class OpenCode2(OpenCode):
    """Writes sessions as OpenCode 2.0 does, next to the tables of an earlier version, if there are any."""

    def __init__(self, path: Path, *older: str) -> None:
        self.connection = connect(path, *older, *OPENCODE_2_TABLES)
        self.path = path
        self.now, self.count = START, 0

    def session(self, name: str, **more: Any) -> str:
        row = {
            "id": name,
            "project_id": "p1",
            "slug": "quiet-otter",
            "directory": "/code/acme",
            "title": "Fix the build",
            "version": "2.0.3",
            "time_created": self.now,
            "time_updated": self.now,
            **more,
        }
        self._insert("session_v2", row)
        return name

    def row(self, session: str, kind: str, data: JSON, **more: Any) -> str:
        """A message, at the next position."""
        self.now += 1000
        self.count += 1
        row = {
            "id": f"msg_{self.count:05d}",
            "session_id": session,
            "type": kind,
            "seq": self.count,
            "time_created": self.now,
            "time_updated": self.now,
            "data": json.dumps({"time": {"created": self.now}, **data}),
            **more,
        }
        self._insert("session_message", row)
        return str(row["id"])

    def answer(self, session: str, *content: JSON, **more: Any) -> str:
        facts = {
            "agent": "build",
            "model": {"id": "model-1", "providerID": "anthropic"},
            "finish": "stop",
        }
        return self.row(session, "assistant", {**facts, "content": content, **more})


def opencode_2_tool(name: str, arguments: JSON, output: str, **more: Any) -> JSON:
    """A tool call in an answer of OpenCode 2."""
    content = [{"type": "text", "text": output}]
    state = {"status": "completed", "input": arguments, "content": content, **more}
    return {"type": "tool", "id": f"call_{name}_{len(output)}", "name": name, "state": state}


def opencode_tool(
    name: str, arguments: JSON, output: str, status: str = "completed", **more: Any
) -> JSON:
    """A tool part with what came of it."""
    said = {"error": output} if status == "error" else {"output": output, "title": name}
    state = {
        "status": status,
        "input": arguments,
        **said,
        "metadata": {},
        "time": {"start": START, "end": START},
        **more,
    }
    return {"type": "tool", "tool": name, "callID": f"call_{name}_{len(output)}", "state": state}


# OpenClaw

OPENCLAW_TABLES = (
    "CREATE TABLE session_windows (session_id TEXT NOT NULL PRIMARY KEY, session_key TEXT NOT NULL, previous_session_id"
    " TEXT, reason TEXT, session_scope TEXT NOT NULL DEFAULT 'conversation', created_at INTEGER NOT NULL, updated_at"
    " INTEGER NOT NULL, hook_external_content_source TEXT, chat_type TEXT, channel TEXT, model TEXT, parent_session_key"
    " TEXT, spawned_by TEXT, display_name TEXT) STRICT",
    "CREATE TABLE transcript_events (session_id TEXT NOT NULL, seq INTEGER NOT NULL, event_json TEXT, created_at"
    " INTEGER NOT NULL, event_zstd BLOB, event_utf8_bytes INTEGER, navigation_json TEXT, PRIMARY KEY (session_id,"
    " seq)) STRICT",
    "CREATE TABLE session_transcript_archives (session_id TEXT NOT NULL, generation TEXT NOT NULL, session_key TEXT"
    " NOT NULL, reason TEXT NOT NULL, encoding TEXT NOT NULL, archive_blob BLOB NOT NULL, archive_sha256 TEXT NOT NULL,"
    " archive_name TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, PRIMARY KEY (session_id, generation)) STRICT",
    "CREATE TABLE auth_profile_store (store_key TEXT NOT NULL PRIMARY KEY, store_json TEXT NOT NULL, updated_at INTEGER"
    " NOT NULL) STRICT",
)


class OpenClaw:
    """Writes events into ``openclaw-agent.sqlite``, as OpenClaw 2026.9 does. Stays open, as the gateway does."""

    def __init__(self, path: Path, journal: str = "wal") -> None:
        self.connection = connect(path, *OPENCLAW_TABLES, journal=journal)
        self.path = path
        self.count = 0
        self.now = START

    def close(self) -> None:
        self.connection.close()

    def window(self, session: str, key: str = "agent:main:main", **more: Any) -> str:
        row = {
            "session_id": session,
            "session_key": key,
            "created_at": START,
            "updated_at": START,
            **more,
        }
        names, marks = ", ".join(row), ", ".join("?" * len(row))
        self.connection.execute(
            f"INSERT INTO session_windows ({names}) VALUES ({marks})",  # noqa: S608
            [*row.values()],
        )
        self.event(
            session,
            {
                "type": "session",
                "version": 4,
                "id": session,
                "timestamp": "2026-11-18T09:00:00.000Z",
                "cwd": "/code/acme",
            },
        )
        return session

    def event(self, session: str, event: JSON, packed: bytes | None = None) -> None:
        row = self.connection.execute(
            "SELECT coalesce(max(seq) + 1, 0) FROM transcript_events WHERE session_id = ?",
            (session,),
        )
        (seq,) = row.fetchone()
        kept = None if packed else json.dumps(event, ensure_ascii=False)
        self.now += 1
        self.connection.execute(
            "INSERT INTO transcript_events VALUES (?, ?, ?, ?, ?, NULL, NULL)",
            (session, seq, kept, self.now, packed),
        )

    def message(self, session: str, role: str, content: Any, **more: Any) -> None:
        self.count += 1
        message = {"role": role, "content": content, "timestamp": START + self.count, **more}
        self.event(
            session,
            {
                "type": "message",
                "id": f"{self.count:08x}",
                "parentId": None,
                "timestamp": f"2026-11-18T09:{self.count // 60:02d}:{self.count % 60:02d}.500Z",
                "message": message,
            },
        )
