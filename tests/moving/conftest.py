"""Fixtures for moves."""

from tests.cli.conftest import nacre  # noqa: F401
from tests.daemon.conftest import serving  # noqa: F401
from tests.storage.conftest import server_url, tenant  # noqa: F401
