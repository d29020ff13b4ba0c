"""Locks: between processes on one machine a file, held while open, which the system frees when a process dies; between
threads that share a home, a turn."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Condition, RLock, get_ident

from nacre.base import files
from nacre.errors import StoreBusy, StoreUnusable

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

PATIENCE_SECONDS = 30.0
_TOLD_AFTER_SECONDS = 1.0
_GIVES_WAY_SECONDS = 0.5
"""Who waits asks every few milliseconds, and may itself wait for a core as long as that."""
_PAUSE_SECONDS = 0.005

Observe = Callable[[str, float], None]
"""Is told the name of a lock, and for how many seconds it was held, when it is free again: for measuring."""


class FileLock:
    """An exclusive lock at a path. The holder may enter it again; others wait, then get StoreBusy. What
    cannot be opened is StoreUnusable.

    Who waits goes before who only asks whether it is free: a crowd that asks all the time keeps nobody out.

    For one thread: threads that share a home each need a lock of their own.
    """

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
            raise StoreBusy(
                f"another process has held {self._path} for {self._patience:.0f} seconds",
                hint="nothing was written: wait for it, or end it, then try again",
            )

    def __exit__(self, *_: object) -> None:
        self.release()

    def acquire(self, patience_seconds: float = 0.0) -> bool:
        """Take the lock, waiting so long at most; returns whether it was to be had."""
        if self._depth == 0:
            if not (self._wait(patience_seconds) if patience_seconds else self._ask()):
                return False
            self._since = time.monotonic()
        self._depth += 1
        return True

    def release(self) -> None:
        """Give it back, once for every time it was taken; nothing happens when it was lost meanwhile."""
        self._depth = max(0, self._depth - 1)
        if self._depth == 0 and self._descriptor >= 0:
            self._free()

    def let_others(self) -> None:
        """Give it to whoever waits for it, and take it again: what was read under it may have changed then.

        Nothing happens where it was taken more than once, since somebody further out relies on it. Raises StoreBusy
        when it is not to be had again; it is not held then.
        """
        if self._depth != 1:
            return
        self._free()
        self._depth = 0
        self.give_way()
        self.__enter__()

    def give_way(self) -> None:
        """Before taking the lock again: let those who wait for it take it first. Nothing happens while it is held."""
        until = time.monotonic() + _GIVES_WAY_SECONDS
        while (
            self._depth == 0
            and self.is_wanted()
            and not is_held(self._path)
            and time.monotonic() < until
        ):
            time.sleep(_PAUSE_SECONDS)

    @contextmanager
    def if_free(self, patience_seconds: float = 0.0) -> Iterator[bool]:
        """Hold the lock if it is free, or becomes free in time; yields whether it is held."""
        is_held = self.acquire(patience_seconds)
        try:
            yield is_held
        finally:
            if is_held:
                self.release()

    def remove(self) -> None:
        """Delete its files. Only for a lock of which all know that it is over."""
        for path in (self._path, self._path.with_suffix(".wait")):
            with suppress(OSError):
                path.unlink(missing_ok=True)

    def is_wanted(self) -> bool:
        """Whether somebody waits for it."""
        with _opened(self._path.with_suffix(".wait")) as others:
            return not _try(others)

    def _free(self) -> None:
        os.close(self._descriptor)
        self._descriptor = -1
        if self._observe:
            self._observe(self._path.name, time.monotonic() - self._since)

    def _ask(self) -> bool:
        with _opened(self._path.with_suffix(".wait")) as others:
            return _try(others) and self._try()

    def _wait(self, seconds: float) -> bool:
        if self._try():
            return True
        now = time.monotonic()
        give_up, told = now + seconds, now + _TOLD_AFTER_SECONDS
        with _opened(self._path.with_suffix(".wait")) as queue:
            while not self._try():
                now = time.monotonic()
                if now >= give_up:
                    return False
                if now >= told:
                    told = give_up
                    _tell(f"waiting for another process, which has {self._path}")
                _stand(queue)
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
    """Threads that share a home take turns. Whoever has the turn may take it again.

    One that waits for somebody outside stands :meth:`aside` meanwhile, and has its turn again before it goes on.
    """

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
        """Let other threads go on within; nothing happens where this one has no turn.

        What was read before may have changed afterwards: no lock is held and no transaction open.
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
        """Wait until nobody stands aside any more. Call it with the turn, which others have meanwhile."""
        holder, depth = self._holder, self._depth
        self._holder = self._depth = 0
        self._came_back.wait_for(lambda: not self._aside)
        self._holder, self._depth = holder, depth


def is_held(path: Path) -> bool:
    """Whether anybody holds the lock at a path, also one that can only be read; nothing is made where none was."""
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


def _tell(message: str) -> None:
    """Say it on standard error, unless the program that runs nacre handles log messages in another way."""
    import logging  # noqa: PLC0415 - 8 ms, while somebody waits anyway

    logging.getLogger("nacre").warning(message)


def _open(path: Path) -> int:
    try:
        return files.open_file(path, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise StoreUnusable(
            f"cannot use {path}: {error.strerror}",
            hint="check that the folder is writable, and the file",
        ) from error


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    descriptor = _open(path)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _stand(descriptor: int) -> None:
    """Stand in a queue with others, so that nobody has it alone. Windows has no such locks: nobody goes first there."""
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
