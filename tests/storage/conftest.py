"""The same stores on both engines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from nacre.store.schema import Database
from nacre.store.sqlite import FileDatabase, open_database
from nacre_server.postgres import PostgresDatabase

Both = tuple[FileDatabase, PostgresDatabase]
Open = Callable[[str], Database]


@pytest.fixture(params=["file", "server"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """An empty memory, once in a file and once on a server."""
    opened: Database
    if request.param == "file":
        opened = open_database(tmp_path / "nacre.db")
    else:
        opened = PostgresDatabase(
            request.getfixturevalue("server_url"), request.getfixturevalue("tenant")
        )
    yield opened
    opened.close()


@pytest.fixture
def both(tmp_path: Path, server_url: str, tenant: str) -> Iterator[Both]:
    """Two empty memories, one in a file and one on a server."""
    with (
        closing(open_database(tmp_path / "both.db")) as file,
        closing(PostgresDatabase(server_url, tenant)) as server,
    ):
        yield file, server


@pytest.fixture
def tenants(server_url: str) -> Iterator[Open]:
    """``tenants("a")`` opens the rows of a tenant."""
    with ExitStack() as stack:

        def opened(name: str) -> PostgresDatabase:
            database = PostgresDatabase(server_url, name)
            stack.callback(database.close)
            return database

        yield opened
