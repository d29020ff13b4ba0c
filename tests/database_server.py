"""Fixtures for a PostgreSQL server: one in each worker, for all tests that need it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

_tenants = count(1)


@pytest.fixture(scope="session")
def server_url() -> Iterator[str]:
    """The address of a server."""
    from tests.storage.server import running

    with running() as server:
        yield server.get_uri()


@pytest.fixture
def tenant() -> str:
    """A tenant without rows."""
    return f"tenant-{next(_tenants)}"
