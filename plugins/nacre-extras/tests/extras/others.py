"""Small invented samples of other memory systems' files and exports, in their documented formats."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import apsw

CLAUDE_MEM = """
CREATE TABLE sdk_sessions (
    id INTEGER PRIMARY KEY AUTOINCREMENT, content_session_id TEXT NOT NULL, memory_session_id TEXT UNIQUE,
    project TEXT NOT NULL, platform_source TEXT NOT NULL DEFAULT 'claude', user_prompt TEXT, started_at TEXT NOT NULL,
    started_at_epoch INTEGER NOT NULL, completed_at TEXT, completed_at_epoch INTEGER, status TEXT DEFAULT 'active'
);
CREATE TABLE observations (
    id INTEGER PRIMARY KEY AUTOINCREMENT, memory_session_id TEXT NOT NULL, project TEXT NOT NULL, text TEXT,
    type TEXT NOT NULL, title TEXT, subtitle TEXT, facts TEXT, narrative TEXT, concepts TEXT, files_read TEXT,
    files_modified TEXT, prompt_number INTEGER, discovery_tokens INTEGER DEFAULT 0, created_at TEXT NOT NULL,
    created_at_epoch INTEGER NOT NULL, content_hash TEXT, merged_into_project TEXT, agent_type TEXT, metadata TEXT
);
CREATE TABLE session_summaries (
    id INTEGER PRIMARY KEY AUTOINCREMENT, memory_session_id TEXT NOT NULL, project TEXT NOT NULL, request TEXT,
    investigated TEXT, learned TEXT, completed TEXT, next_steps TEXT, files_read TEXT, files_edited TEXT, notes TEXT,
    prompt_number INTEGER, created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL, merged_into_project TEXT
);
CREATE TABLE user_prompts (
    id INTEGER PRIMARY KEY AUTOINCREMENT, content_session_id TEXT NOT NULL, prompt_number INTEGER NOT NULL,
    prompt_text TEXT NOT NULL, created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL
);
CREATE VIRTUAL TABLE observations_fts USING fts5(
    title, subtitle, narrative, text, facts, concepts, content='observations', content_rowid='id'
);
"""

OBSERVATIONS: list[dict[str, Any]] = [
    {
        "memory_session_id": "m-1",
        "project": "harbour/quay-fix",
        "type": "decision",
        "title": "Berths are numbered",
        "narrative": "Berths are numbered from the lighthouse, because pilots count them so.",
        "facts": '["Number one is nearest to the lighthouse."]',
        "concepts": '["why-it-exists"]',
        "files_modified": '["src/berths.py"]',
        "created_at": "2026-03-01T10:00:00.000Z",
        "created_at_epoch": 1772359200000,
    },
    {
        "memory_session_id": "m-1",
        "project": "harbour",
        "type": "bugfix",
        "title": "The tide table was off by one",
        "narrative": "The tide table read local time as UTC; it reads the zone of the gauge now.",
        "facts": None,
        "concepts": '["gotcha"]',
        "files_modified": "[]",
        "created_at": "2026-03-02T10:00:00.000Z",
        "created_at_epoch": 1772445600000,
    },
    {
        "memory_session_id": "m-1",
        "project": "harbour",
        "type": "feature",
        "title": "Pilots can book a berth",
        "narrative": "A form for pilots was added to the page of a berth.",
        "facts": "[]",
        "concepts": "[]",
        "files_modified": "[]",
        "created_at": "2026-03-02T11:00:00.000Z",
        "created_at_epoch": 1772449200000,
    },
    {
        "memory_session_id": "m-1",
        "project": "harbour",
        "type": "discovery",
        "title": "Nothing to see",
        "facts": "[]",
        "narrative": None,
        "concepts": "[]",
        "files_modified": "[]",
        "created_at": "2026-03-02T12:00:00.000Z",
        "created_at_epoch": 1772452800000,
    },
]
SUMMARIES: list[dict[str, Any]] = [
    {
        "memory_session_id": "m-1",
        "project": "harbour",
        "request": "Mend the tide table",
        "learned": "The gauge reports in its own zone.",
        "completed": "The table is right in winter and in summer.",
        "next_steps": None,
        "notes": None,
        "created_at": "2026-03-02T13:00:00.000Z",
        "created_at_epoch": 1772456400000,
    },
]
PROMPTS: list[dict[str, Any]] = [
    {
        "content_session_id": "c-1",
        "prompt_number": number,
        "prompt_text": "Why is the tide table wrong?",
        "created_at": "2026-03-02T09:00:00.000Z",
        "created_at_epoch": 1772442000000 + number,
    }
    for number in (1, 2)
]

MEMORY_SERVICE = """
CREATE TABLE metadata (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE memories (
    id INTEGER PRIMARY KEY AUTOINCREMENT, content_hash TEXT UNIQUE NOT NULL, content TEXT NOT NULL, tags TEXT,
    memory_type TEXT, metadata TEXT, created_at REAL, updated_at REAL, created_at_iso TEXT, updated_at_iso TEXT,
    deleted_at REAL DEFAULT NULL, parent_id TEXT, version INTEGER DEFAULT 1, confidence REAL DEFAULT 1.0,
    last_accessed INTEGER, superseded_by TEXT
);
CREATE TABLE memory_graph (
    source_hash TEXT NOT NULL, target_hash TEXT NOT NULL, similarity REAL NOT NULL, connection_types TEXT NOT NULL,
    metadata TEXT, created_at REAL NOT NULL, relationship_type TEXT DEFAULT 'related',
    PRIMARY KEY (source_hash, target_hash)
);
PRAGMA writable_schema = ON;
INSERT INTO sqlite_schema (type, name, tbl_name, rootpage, sql) VALUES (
    'table', 'memory_embeddings', 'memory_embeddings', 0,
    'CREATE VIRTUAL TABLE memory_embeddings USING vec0(content_embedding FLOAT[384] distance_metric=cosine)'
);
PRAGMA writable_schema = OFF;
"""

MEMORIES: list[dict[str, Any]] = [
    {
        "content_hash": "aa11",
        "content": "We keep the logbook in PostgreSQL.",
        "memory_type": "decision",
        "tags": "proj:harbour,topic:storage,q:high",
        "metadata": '{"hostname": "pilot-boat"}',
        "created_at": 1772359200.5,
        "updated_at": 1772445600.0,
    },
    {
        "content_hash": "bb22",
        "content": "The logbook was kept in a spreadsheet of the harbour master.",
        "memory_type": "note",
        "tags": "untagged",
        "metadata": "{}",
        "created_at": 1772359100.0,
        "superseded_by": "aa11",
    },
    {
        "content_hash": "cc33",
        "content": "Exports of the logbook fail when a ship's name has a comma.",
        "memory_type": "bug",
        "tags": "logbook",
        "metadata": '{"project": "harbour"}',
        "created_at": 1772359300.0,
    },
    {
        "content_hash": "dd44",
        "content": "The old jetty is closed on Sundays.",
        "memory_type": "note",
        "tags": "",
        "metadata": "{}",
        "created_at": 1772359400.0,
        "deleted_at": 1772359500.0,
    },
    {
        "content_hash": "assoc_aa11_cc33",
        "content": "Association between memories aa11 and cc33: semantic",
        "memory_type": "observation",
        "tags": "association,discovered,semantic",
        "metadata": "{}",
        "created_at": 1772359600.0,
    },
]
EDGES: list[dict[str, Any]] = [
    {
        "source_hash": "cc33",
        "target_hash": "aa11",
        "similarity": 0.5,
        "connection_types": "[]",
        "created_at": 1.0,
        "relationship_type": "causes",
    },
    {
        "source_hash": "aa11",
        "target_hash": "bb22",
        "similarity": 0.4,
        "connection_types": "[]",
        "created_at": 1.0,
        "relationship_type": "related",
    },
]

MEM0: dict[str, Any] = {
    "count": 2,
    "next": None,
    "previous": None,
    "results": [
        {
            "id": "f4cbdb08-7062-4f3e-8eb2-9f5c80dfe64c",
            "memory": "Prefers tabs over spaces in Makefiles",
            "hash": "0af1",
            "user_id": "lena",
            "categories": ["user_preferences"],
            "expiration_date": None,
            "metadata": {"project": "harbour", "branch": "main"},
            "created_at": "2026-03-01T12:00:00-07:00",
            "updated_at": "2026-03-04T12:00:00-07:00",
        },
        {
            "id": "a2b8c3d4-5e6f-4a8b-9c0d-1e2f3a4b5c6d",
            "memory": "Is on leave in the first week of May",
            "user_id": "lena",
            "categories": None,
            "metadata": None,
            "expiration_date": "2035-05-08",
            "created_at": "2026-03-02T12:00:00Z",
            "updated_at": "2026-03-02T12:00:00Z",
        },
    ],
}
OPENMEMORY: dict[str, Any] = {
    "user": {"id": "u-1", "user_id": "lena", "name": "Lena"},
    "apps": [{"id": "a-1", "name": "cursor"}],
    "categories": [{"id": "k-1", "name": "decisions"}],
    "memories": [
        {
            "id": "11111111-2222-4333-8444-555555555555",
            "user_id": "u-1",
            "app_id": "a-1",
            "state": "active",
            "content": "Decided to ship the pilot app as one binary",
            "metadata": {},
            "category_ids": ["k-1"],
            "created_at": "2026-03-01T12:00:00+00:00",
            "updated_at": None,
            "archived_at": None,
            "deleted_at": None,
        },
        {
            "id": "21111111-2222-4333-8444-555555555555",
            "user_id": "u-1",
            "app_id": None,
            "state": "archived",
            "content": "The pilot app used to be a web page",
            "metadata": {},
            "category_ids": [],
            "created_at": "2026-02-01T12:00:00+00:00",
            "updated_at": "2026-02-02T12:00:00+00:00",
            "deleted_at": None,
        },
        {
            "id": "31111111-2222-4333-8444-555555555555",
            "user_id": "u-1",
            "app_id": None,
            "state": "deleted",
            "content": "The pilot app needs a login",
            "metadata": {},
            "category_ids": [],
            "created_at": "2026-02-01T12:00:00+00:00",
            "updated_at": None,
            "deleted_at": "2026-02-02T12:00:00+00:00",
        },
    ],
    "memory_categories": [
        {"memory_id": "11111111-2222-4333-8444-555555555555", "category_id": "k-1"}
    ],
    "export_meta": {"version": "1"},
}
AGENT_FILE: dict[str, Any] = {
    "agents": [
        {
            "name": "quartermaster",
            "tool_ids": ["tool-0"],
            "block_ids": ["block-0", "block-1"],
            "system": "You keep the stores.",
            "agent_type": "letta_v1_agent",
            "id": "agent-0",
            "messages": [
                {
                    "type": "message",
                    "role": "user",
                    "content": [{"type": "text", "text": "What is left of the rope?"}],
                },
                {
                    "type": "message",
                    "role": "assistant",
                    "content": [{"type": "text", "text": "Two coils."}],
                },
            ],
            "tool_exec_environment_variables": {},
        }
    ],
    "groups": [],
    "blocks": [
        {
            "id": "block-0",
            "label": "persona",
            "value": "I am the quartermaster, and I count everything.",
        },
        {
            "id": "block-1",
            "label": "human",
            "limit": 5000,
            "value": "# Preferences\n- Wants orders confirmed in writing before noon\n\n# People\n"
            "- Marta runs the second store on the north pier\n- ok",
        },
    ],
    "files": [],
    "sources": [],
    "tools": [{"id": "tool-0", "name": "send_message"}],
    "mcp_servers": [],
    "metadata": {"revision_id": "1"},
    "created_at": "2026-03-01T00:00:00Z",
}
PASSAGES: list[dict[str, Any]] = [
    {
        "id": "passage-1",
        "text": "The rope of the second store is older than the first.",
        "archive_id": "archive-1",
        "tags": ["rope"],
        "created_at": "2026-03-03T08:00:00Z",
        "is_deleted": False,
        "file_id": None,
    },
    {
        "id": "passage-2",
        "text": "Chapter one of a manual.",
        "archive_id": None,
        "file_id": "file-1",
        "tags": None,
    },
]

NOTES = {
    "design/Tide Gauge.md": """---
title: Tide Gauge
type: note
permalink: design/tide-gauge
tags: [gauge, hardware]
created: 2026-02-01
modified: 2026-02-03T09:30:00Z
status: in use
trust: trusted
---

# Tide Gauge

The gauge hangs at the end of the north pier. It was built with the [[Pilot App]] in mind.

## Observations
- [decision] The gauge reports in centimetres, never in feet #units (agreed with the pilots)
- [preference] Readings go out every five minutes #timing
- [maker] Seba
- [ ] Order a spare sensor

## Relations
- depends_on [[Harbour Network]]
- "reports to" [[Pilot App|the app]]
- inspired_by [[A note that was never written]]
""",
    "design/Pilot App.md": """---
title: Pilot App
type: note
permalink: design/pilot-app
---
- [rule] The app must work without a network for a whole day
""",
    "Harbour Network.md": "---\ntitle: Harbour Network\npermalink: harbour-network\n---\nTwo masts cover the basin.\n",
    "schema/Person.md": "---\ntitle: Person\ntype: schema\npermalink: schema/person\n---\nHow people look.\n",
}


def database(path: Path, schema: str, rows: Mapping[str, list[dict[str, Any]]]) -> Path:
    """Create a SQLite file with a schema and rows, in write-ahead mode as both programs use it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA journal_mode = wal").fetchall()
    connection.execute(schema)
    for table, table_rows in rows.items():
        for row in table_rows:
            names, places = ", ".join(row), ", ".join("?" * len(row))
            connection.execute(f"INSERT INTO {table} ({names}) VALUES ({places})", [*row.values()])  # noqa: S608
    connection.close()
    return path


def claude_mem(folder: Path) -> Path:
    """Create ``~/.claude-mem`` with its database."""
    rows = {"observations": OBSERVATIONS, "session_summaries": SUMMARIES, "user_prompts": PROMPTS}
    return database(folder / ".claude-mem/claude-mem.db", CLAUDE_MEM, rows)


def claude_mem_export(folder: Path) -> Path:
    """Write the output of claude-mem's export script."""
    export = {
        "exportedAt": "2026-03-05T00:00:00.000Z",
        "exportedAtEpoch": 1772668800000,
        "query": "",
        "totalObservations": len(OBSERVATIONS),
        "totalSessions": 0,
        "totalSummaries": 1,
        "totalPrompts": 2,
        "observations": OBSERVATIONS,
        "sessions": [],
        "summaries": SUMMARIES,
        "prompts": PROMPTS,
    }
    return write_file(folder / "memories-of-harbour.json", export)


def memory_service(folder: Path) -> Path:
    """Create mcp-memory-service's database, whose vector table requires its own extension."""
    return database(
        folder / "sqlite_vec.db", MEMORY_SERVICE, {"memories": MEMORIES, "memory_graph": EDGES}
    )


def memory_service_export(folder: Path) -> Path:
    """Write mcp-memory-service's JSON export, where tags are lists and deleted memories are
    absent."""
    rows = [
        {
            "content": row["content"],
            "content_hash": row["content_hash"],
            "tags": row["tags"].split(","),
            "created_at": row["created_at"],
            "updated_at": row.get("updated_at"),
            "memory_type": row["memory_type"],
            "metadata": json.loads(row["metadata"]),
            "export_source": "pilot-boat",
        }
        for row in MEMORIES
        if not row.get("deleted_at")
    ]
    return write_file(
        folder / "export.json", {"export_metadata": {"total_memories": len(rows)}, "memories": rows}
    )


def write_file(path: Path, value: object) -> Path:
    """Write a text, or a value as JSON, to a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        value if isinstance(value, str) else json.dumps(value, indent=2), encoding="utf-8"
    )
    return path


def basic_memory(folder: Path) -> Path:
    for name, text in NOTES.items():
        write_file(folder / "notes" / name, text)
    return folder / "notes"


EVERYTHING = {
    "claude-mem": claude_mem,
    "claude-mem export": claude_mem_export,
    "mcp-memory-service": memory_service,
    "mcp-memory-service export": memory_service_export,
    "mem0": lambda folder: write_file(folder / "mem0.json", MEM0),
    "mem0 openmemory": lambda folder: write_file(folder / "memories.json", OPENMEMORY),
    "letta": lambda folder: write_file(folder / "quartermaster.af", AGENT_FILE),
    "letta archive": lambda folder: write_file(folder / "archival.json", PASSAGES),
    "basic-memory": basic_memory,
}
"""Samples by name; each name starts with its source."""
