"""Transactions, locks, values and statements of every engine."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from nacre.errors import UnusableStoreError
from nacre.store.schema import Database
from nacre.store.sessions import Changes
from nacre.store.sqlite import open_database
from tests.storage.conftest import Both, Open
from tests.storage.samples import memory, put


def _write_then_fail(database: Database) -> None:
    with database.transaction():
        database.run("set_embedding_value", key="model", value="one")
        database.run("set_embedding_value", key=None, value=None)


def test_failed_transaction_leaves_no_changes(database: Database) -> None:
    with pytest.raises(UnusableStoreError):
        _write_then_fail(database)
    assert database.one("get_embedding_value", key="model") is None


def test_text_is_stored_unchanged(database: Database) -> None:
    text = "a %s :name ? \\ ' \" \u202e \U0001f41a é"
    database.run("set_embedding_value", key="model", value=text)
    assert database.one("get_embedding_value", key="model") == (text,)


def test_concurrent_write_becomes_visible_after_commit(
    both: Both, tenants: Open, tmp_path: Path
) -> None:
    file, server = both
    with closing(open_database(file.path)) as beside, closing(tenants(server.tenant)) as also:
        for reader, writer in ((file, beside), (server, also)):
            with writer.transaction():
                writer.run("set_embedding_value", key="model", value="one")
                before = reader.edition(), reader.state()
                assert (reader.edition(), reader.state()) == before
                assert reader.one("get_embedding_value", key="model") is None
            assert reader.edition() != before[0]
            assert reader.state() != before[1]
            assert reader.one("get_embedding_value", key="model") == ("one",)


def test_change_tracking_inside_a_read_block_persists(database: Database) -> None:
    changes = Changes(database)
    put(database, memory(1))
    with database.reading():
        assert [item.change for item in changes.memories()] == ["stored"]
    assert changes.memories() == []


def test_late_commit_of_an_older_transaction_changes_the_state(
    tenants: Open,
) -> None:
    reader, writer, other = tenants("under-way"), tenants("under-way"), tenants("elsewhere")
    with writer.transaction():
        writer.run("set_embedding_value", key="model", value="one")
        other.run("set_embedding_value", key="model", value="one")
        before = reader.edition(), reader.state()
    assert reader.edition() != before[0]
    assert reader.state() != before[1]
