"""A served home, as in the tests of the web server, and small transcripts, as in those of the adapters."""

from __future__ import annotations

from tests.transcripts.conftest import in_two_goes, read, write
from tests.web_server.conftest import learned, nacre, process, serving, site, stopped, transcript

__all__ = [
    "in_two_goes",
    "learned",
    "nacre",
    "process",
    "read",
    "serving",
    "site",
    "stopped",
    "transcript",
    "write",
]
