"""A server accepts every statement that is not specific to files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import nacre.store
from nacre.base.sql import statements
from nacre.errors import UnusableStoreError
from nacre.store.schema import Database
from nacre_server.connection import statement, translated
from tests.storage.conftest import Open

_QUERIES = Path(nacre.store.__file__).parent / "sql" / "queries"
_HEADING = re.compile(r"^-- (\w+) --\s*$", re.MULTILINE)
_PARAMETER = re.compile(r"%\((\w+)\)s")

ON_A_FILE = ("carrying", "gateway")
"""State that moves between files, and a gateway's state on its own machine."""

OF_FULL_TEXT = """
    index_memories index_memory_parts index_turns index_turn_parts
    insert_failures turns_size memories_size
    merge_turns_fts merge_failures_fts merge_turns_parts merge_memories_fts merge_memories_parts
    list_text_without_rows find_turns_at
"""
"""FTS5 statements; a server has its own in ``postgres_queries/words.sql``."""

OF_THE_FILE = "list_plain_tables list_tables count_pages count_strays"
"""SQLite statements about its file."""

MADE = ("create_known_memories", "create_memory_states")
"""Statements that create tables, which a server cannot explain."""


@pytest.fixture
def server(tenants: Open) -> Database:
    """A tenant's rows, with the temporary tables that statements create."""
    database = tenants("statements")
    for name in MADE:
        database.run(name)
    return database


def _is_understood(database: Database, name: str) -> bool:
    sql = statement(name)
    try:
        database.rows(f"EXPLAIN {sql}", dict.fromkeys(_PARAMETER.findall(translated(sql))))
    except UnusableStoreError:
        return False
    return True


def _in_file(name: str) -> set[str]:
    return set(_HEADING.findall((_QUERIES / f"{name}.sql").read_text("utf-8")))


def test_server_accepts_all_statements_except_file_specific_statements(server: Database) -> None:
    names = {
        *statements("nacre.store", "sql/queries"),
        *statements("nacre_server", "sql/queries"),
    }
    every = names.difference(MADE)
    misunderstood = {name for name in every if not _is_understood(server, name)}
    expected = {*OF_FULL_TEXT.split(), *OF_THE_FILE.split()}.union(*map(_in_file, ON_A_FILE))
    assert misunderstood - expected == set(), (
        "rewrite it for servers, or in sql/queries of nacre_server"
    )
    assert expected - misunderstood == set(), "these are not specific to files"
