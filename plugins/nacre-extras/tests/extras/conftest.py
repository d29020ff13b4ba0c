"""Fixtures of the tests of the web server, the adapters and the importers."""

from __future__ import annotations

from tests.imports.conftest import agenr_database, put
from tests.transcripts.conftest import in_two_goes, look, read, write
from tests.web_server.conftest import learned, nacre, process, serving, site, stopped, transcript

__all__ = [
    "agenr_database",
    "in_two_goes",
    "learned",
    "look",
    "nacre",
    "process",
    "put",
    "read",
    "serving",
    "site",
    "stopped",
    "transcript",
    "write",
]
