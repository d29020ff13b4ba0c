"""Fixtures for moves."""

from tests.cli.conftest import nacre  # noqa: F401
from tests.daemon.conftest import serving  # noqa: F401
