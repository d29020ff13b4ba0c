"""What every engine promises: transactions, locks, values, statements."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from nacre.errors import UnusableStoreError
from nacre.store.schema import Database
from nacre.store.sessions import Changes
from nacre.store.sqlite import open_database
from tests.storage.conftest import Both, Open
from tests.storage.made import memory, put


def _write_then_fail(database: Database) -> None:
    with database.transaction():
        database.run("set_embedding_value", key="model", value="one")
        database.run("set_embedding_value", key=None, value=None)


def test_what_is_written_in_a_block_that_fails_is_not_there(database: Database) -> None:
    with pytest.raises(UnusableStoreError):
        _write_then_fail(database)
    assert database.one("get_embedding_value", key="model") is None


def test_a_text_comes_back_as_it_was(database: Database) -> None:
    told = "a %s :name ? \\ ' \" \u202e \U0001f41a é"
    database.run("set_embedding_value", key="model", value=told)
    assert database.one("get_embedding_value", key="model") == (told,)


def test_what_was_under_way_shows_once_it_is_committed(
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


def test_what_a_connection_keeps_for_itself_while_it_reads_stays(database: Database) -> None:
    changes = Changes(database)
    put(database, memory(1))
    with database.reading():
        assert [one.change for one in changes.memories()] == ["stored"]
    assert changes.memories() == []


def test_what_was_under_way_shows_although_others_began_later_and_ended_sooner(
    tenants: Open,
) -> None:
    reader, writer, other = tenants("under-way"), tenants("under-way"), tenants("elsewhere")
    with writer.transaction():
        writer.run("set_embedding_value", key="model", value="one")
        other.run("set_embedding_value", key="model", value="one")
        before = reader.edition(), reader.state()
    assert reader.edition() != before[0]
    assert reader.state() != before[1]
