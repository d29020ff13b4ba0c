"""What every engine promises: transactions, locks, values, statements."""

from __future__ import annotations

import pytest

from nacre.errors import StoreUnusable
from nacre.storage.database import Database


def _write_then_fail(database: Database) -> None:
    with database.transaction():
        database.run("set_embedding_value", key="model", value="one")
        database.run("set_embedding_value", key=None, value=None)


def test_what_is_written_in_a_block_that_fails_is_not_there(database: Database) -> None:
    with pytest.raises(StoreUnusable):
        _write_then_fail(database)
    assert database.one("get_embedding_value", key="model") is None


def test_a_text_comes_back_as_it_was(database: Database) -> None:
    told = "a %s :name ? \\ ' \" \u202e \U0001f41a é"
    database.run("set_embedding_value", key="model", value=told)
    assert database.one("get_embedding_value", key="model") == (told,)
