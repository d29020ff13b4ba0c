"""Databases as older versions of nacre left them: what came later is taken out, so that an upgrade makes it again."""

from __future__ import annotations

from pathlib import Path

import apsw

_LATER = """
ALTER TABLE review_queue DROP COLUMN shown_by;
DROP INDEX sessions_labels; ALTER TABLE sessions DROP COLUMN label;
DROP VIEW last_uses; DROP INDEX sessions_latest; DROP TABLE unreadable_files;
DROP VIEW other_names; DROP TABLE project_dependencies; ALTER TABLE sessions DROP COLUMN met_as;
DROP TABLE code_edges; DROP TABLE code_outside; DROP TABLE code_mentions; DROP TABLE code_mentions_read;
DROP TABLE code_symbols; DROP TABLE code_files; DROP TABLE code_projects; DROP TABLE stale_memories;
"""
"""Since schema 30."""


def make_older(home: Path, schema: int, *statements: str) -> None:
    """Give a home's database an older schema, of 30 or before; ``statements`` take out what came until 30."""
    database = apsw.Connection(str(home / "nacre.db"))
    for statement in (_LATER, *statements, f"PRAGMA user_version = {schema}"):
        database.execute(statement)
    database.close()
