"""Locks between processes, and turns between threads.

A lock is a file. The system releases the lock when the process that holds it exits.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Condition, RLock, get_ident

from nacre.base import files
from nacre.errors import StoreBusyError, UnusableStoreError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

PATIENCE_SECONDS = 30.0
_WARN_AFTER_SECONDS = 1.0
_MAX_GIVE_WAY_SECONDS = 0.5
"""Maximum wait in seconds.

A waiting process polls every few milliseconds, but a busy machine can delay it.
"""
_PAUSE_SECONDS = 0.005

Observe = Callable[[str, float], None]
"""Callback for a released lock, given its name and how many seconds it was held."""


class FileLock:
    """An exclusive, reentrant lock on a file. Each thread needs its own object.

    Entering it raises StoreBusyError after ``patience_seconds``, or UnusableStoreError if the file
    cannot be opened.
    """

    check: Callable[[], None] | None = None
    """Called whenever the lock is acquired. If it raises an error, the lock is released again."""

    def __init__(
        self, path: Path, patience_seconds: float = PATIENCE_SECONDS, observe: Observe | None = None
    ) -> None:
        self._path = path
        self._patience = patience_seconds
        self._observe = observe
        self._since = 0.0
        self._descriptor = -1
        self._depth = 0

    def __enter__(self) -> None:
        if not self.acquire(self._patience):
            raise StoreBusyError(
                f"another process has held {self._path} for {self._patience:.0f} seconds",
                hint="nothing was written: wait for it, or end it, then try again",
            )

    def __exit__(self, *_: object) -> None:
        self.release()

    def acquire(self, patience_seconds: float = 0.0) -> bool:
        """Try to acquire the lock within ``patience_seconds``. Return True on success."""
        if self._depth == 0:
            if not self._take(patience_seconds):
                return False
            self._since = time.monotonic()
        self._depth += 1
        try:
            if self._depth == 1 and self.check:
                self.check()
        except BaseException:
            self.release()
            raise
        return True

    def release(self) -> None:
        """Undo one acquisition. Undoing the last one releases the lock."""
        is_last = self._depth == 1
        self._depth = max(0, self._depth - 1)
        if is_last:
            self._free()

    def let_others(self) -> None:
        """Let waiting processes have the lock, then acquire it again, unless an outer block holds
        it.

        Data read earlier can then be outdated. Raises StoreBusyError.
        """
        if self._depth == 1:
            self.release()
            self.give_way()
            self.__enter__()

    def give_way(self) -> None:
        """Let waiting processes acquire the lock first. Call this before acquiring it."""
        until = time.monotonic() + _MAX_GIVE_WAY_SECONDS
        while (
            self._depth == 0
            and self.is_wanted()
            and not is_held(self._path)
            and time.monotonic() < until
        ):
            time.sleep(_PAUSE_SECONDS)

    @contextmanager
    def if_free(self, patience_seconds: float = 0.0) -> Iterator[bool]:
        """Try to acquire the lock for the block, and yield True on success."""
        is_held = self.acquire(patience_seconds)
        try:
            yield is_held
        finally:
            if is_held:
                self.release()

    def remove(self) -> None:
        """Delete the lock's files. No process may be using them."""
        for path in (self._path, self._path.with_suffix(".wait")):
            with suppress(OSError):
                path.unlink(missing_ok=True)

    def is_wanted(self) -> bool:
        """Return True if another process is waiting for the lock."""
        with _open_descriptor(self._path.with_suffix(".wait")) as queue:
            return not _try(queue)

    def _take(self, patience_seconds: float) -> bool:
        return self._wait(patience_seconds) if patience_seconds else self._try_unqueued()

    def _free(self) -> None:
        os.close(self._descriptor)
        self._descriptor = -1
        if self._observe:
            self._observe(self._path.name, time.monotonic() - self._since)

    def _try_unqueued(self) -> bool:
        with _open_descriptor(self._path.with_suffix(".wait")) as queue:
            return _try(queue) and self._try()

    def _wait(self, seconds: float) -> bool:
        if self._try():
            return True
        now = time.monotonic()
        give_up, warn_at = now + seconds, now + _WARN_AFTER_SECONDS
        with _open_descriptor(self._path.with_suffix(".wait")) as queue:
            while not self._try():
                now = time.monotonic()
                if now >= give_up:
                    return False
                if now >= warn_at:
                    import logging  # noqa: PLC0415 - 8 ms, only while waiting

                    warn_at = give_up
                    logging.getLogger("nacre").warning(
                        f"waiting for another process, which has {self._path}"
                    )
                _join_queue(queue)
                time.sleep(_PAUSE_SECONDS)
        return True

    def _try(self) -> bool:
        descriptor = _open(self._path)
        if _try(descriptor):
            self._descriptor = descriptor
            return True
        os.close(descriptor)
        return False


class Turn:
    """A reentrant lock for threads that share a home. :meth:`aside` releases it for slow waits."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._came_back = Condition(self._lock)
        self._holder = 0
        self._depth = 0
        self._aside = 0

    def __enter__(self) -> None:
        self._lock.acquire()
        self._holder = get_ident()
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        self._holder = self._holder if self._depth else 0
        self._lock.release()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Release the lock during the block, if this thread holds it.

        The caller must have no other lock and no open transaction. Data read earlier can then be
        outdated.
        """
        if self._holder != get_ident():
            yield
            return
        depth = self._depth
        self._aside += 1
        for _ in range(depth):
            self.__exit__()
        try:
            yield
        finally:
            for _ in range(depth):
                self.__enter__()
            self._aside -= 1
            self._came_back.notify_all()

    def wait_for_all(self) -> None:
        """Wait until no thread is in :meth:`aside`.

        The caller must hold the lock; other threads can acquire it meanwhile.
        """
        holder, depth = self._holder, self._depth
        self._holder = self._depth = 0
        self._came_back.wait_for(lambda: not self._aside)
        self._holder, self._depth = holder, depth


def is_held(path: Path) -> bool:
    """Return True if any process holds the lock on a file."""
    for flags in (os.O_RDWR, os.O_RDONLY):
        with suppress(OSError):
            descriptor = files.open_file(path, flags)
            break
    else:
        return False
    try:
        return not _try(descriptor)
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    try:
        return files.open_file(path, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise UnusableStoreError(
            f"cannot use {path}: {error.strerror}",
            hint="check that the folder is writable, and the file",
        ) from error


@contextmanager
def _open_descriptor(path: Path) -> Iterator[int]:
    descriptor = _open(path)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _join_queue(descriptor: int) -> None:
    if sys.platform != "win32":
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)


def _try(descriptor: int) -> bool:
    try:
        if sys.platform == "win32":
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
