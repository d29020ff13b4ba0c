"""What other memories leave behind, in small: written as their own programs write it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.cli.conftest import learned, nacre, process, terminal, transcript

__all__ = ["agenr_database", "learned", "nacre", "process", "put", "terminal", "transcript"]

ENTRIES = """
CREATE TABLE entries (
    id TEXT PRIMARY KEY, type TEXT NOT NULL, subject TEXT NOT NULL, canonical_key TEXT, content TEXT NOT NULL,
    importance INTEGER NOT NULL, expiry TEXT NOT NULL, scope TEXT NOT NULL DEFAULT 'private', platform TEXT,
    project TEXT, source_file TEXT, source_context TEXT, embedding F32_BLOB(1024), created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL, last_recalled_at TEXT, recall_count INTEGER DEFAULT 0, recall_intervals TEXT,
    confirmations INTEGER DEFAULT 0, contradictions INTEGER DEFAULT 0, quality_score REAL DEFAULT 0.5,
    superseded_by TEXT REFERENCES entries(id), content_hash TEXT, retired INTEGER DEFAULT 0, retired_at TEXT,
    retired_reason TEXT, suppressed_contexts TEXT, subject_entity TEXT, subject_attribute TEXT, subject_key TEXT,
    claim_predicate TEXT, claim_object TEXT, claim_confidence REAL
);
CREATE TABLE tags (entry_id TEXT NOT NULL, tag TEXT NOT NULL, PRIMARY KEY (entry_id, tag));
CREATE TABLE relations (
    id TEXT PRIMARY KEY, source_id TEXT, target_id TEXT, relation_type TEXT, created_at TEXT
);
CREATE TABLE _meta (key TEXT PRIMARY KEY, value TEXT, updated_at TEXT);
CREATE INDEX idx_entries_embedding ON entries (libsql_vector_idx(embedding, 'metric=cosine'));
"""


@pytest.fixture
def agenr_database(tmp_path: Path) -> Callable[..., Path]:
    """A libSQL file as agenr makes it, its vector index included; ``journal="wal"`` leaves a write-ahead log."""
    opened: list[apsw.Connection] = []

    def write(
        entries: list[dict[str, Any]], *, links: Any = (), tags: Any = (), journal: str = "delete"
    ) -> Path:
        path = tmp_path / "agenr" / "knowledge.db"
        path.parent.mkdir(exist_ok=True)
        connection = apsw.Connection(str(path))
        connection.create_scalar_function("libsql_vector_idx", lambda *_: None, deterministic=True)
        connection.execute(
            f"PRAGMA journal_mode = {journal}; PRAGMA wal_autocheckpoint = 0"
        ).fetchall()
        connection.execute(ENTRIES)
        for entry in entries:
            row = {
                "importance": 7,
                "expiry": "permanent",
                "created_at": "2026-03-01T10:00:00.000Z",
                "updated_at": "2026-03-02T10:00:00.000Z",
                **entry,
            }
            names = ", ".join(row)
            connection.execute(
                f"INSERT INTO entries ({names}) VALUES ({', '.join('?' * len(row))})",  # noqa: S608
                [*row.values()],
            )
        connection.executemany("INSERT INTO tags VALUES (?, ?)", tags)
        connection.executemany("INSERT INTO relations VALUES (?, ?, ?, ?, '2026-03-02')", links)
        if journal == "wal":
            opened.append(connection)  # closing would fold the log in
        else:
            connection.close()
        return path

    yield write
    for connection in opened:
        connection.close()


@pytest.fixture
def put(tmp_path: Path) -> Callable[..., Path]:
    """``put("folder", {"a.md": "text"})`` writes files below a folder and returns it."""

    def write(folder: str, files: dict[str, str]) -> Path:
        for name, text in files.items():
            path = tmp_path / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return tmp_path / folder

    return write
