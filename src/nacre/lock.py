"""A lock between processes on one machine: a file, held while open. The system frees it when a process dies."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from nacre import private
from nacre.errors import StoreBusy, StoreUnusable

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

PATIENCE_SECONDS = 20.0
_PAUSE_SECONDS = 0.005


class FileLock:
    """An exclusive lock at a path. The holder may enter it again; others wait, then get StoreBusy. What
    cannot be opened is StoreUnusable.

    For one thread: threads that share a home each need a lock of their own.
    """

    def __init__(self, path: Path, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._path = path
        self._patience = patience_seconds
        self._descriptor = -1
        self._depth = 0

    def __enter__(self) -> None:
        if self._depth == 0:
            try:
                self._descriptor = private.open_file(self._path, os.O_RDWR | os.O_CREAT)
            except OSError as error:
                raise StoreUnusable(
                    f"cannot use {self._path}: {error.strerror}", hint="check that the folder is writable, and the file"
                ) from error
            self._wait()
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if self._depth == 0:
            os.close(self._descriptor)

    def _wait(self) -> None:
        give_up = time.monotonic() + self._patience
        while not _try(self._descriptor):
            if time.monotonic() > give_up:
                os.close(self._descriptor)
                raise StoreBusy(
                    f"another process has held {self._path} for {self._patience:.0f} seconds",
                    hint="wait for it, or end it, then try again",
                )
            time.sleep(_PAUSE_SECONDS)


def _try(descriptor: int) -> bool:
    try:
        if sys.platform == "win32":
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
