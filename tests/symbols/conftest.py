"""Repositories are read as people have them read: by the command line."""

from __future__ import annotations

from tests.cli.conftest import nacre, process

__all__ = ["nacre", "process"]
