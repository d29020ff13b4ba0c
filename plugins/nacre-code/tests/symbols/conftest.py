"""Repositories are read as people have them read: by the command line."""

from __future__ import annotations

from tests.cli.conftest import nacre, process
from tests.storage.conftest import database

__all__ = ["database", "nacre", "process"]
