"""Fixtures that read repositories with the command line, as users do."""

from __future__ import annotations

from tests.cli.conftest import nacre, process
from tests.storage.conftest import database

__all__ = ["database", "nacre", "process"]
