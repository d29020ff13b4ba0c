"""A home that is served over HTTP, as in the tests of the web server."""

from __future__ import annotations

from tests.web_server.conftest import learned, nacre, process, serving, site, stopped, transcript

__all__ = ["learned", "nacre", "process", "serving", "site", "stopped", "transcript"]
