"""One watcher a home: its lock, what it tells of itself in ``watcher.health.json``, and how others ask it to end."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from nacre.errors import Conflict, StoreUnusable
from nacre.platform import json_values, private_files
from nacre.platform.days import shown_minute
from nacre.platform.locks import FileLock

STALE = timedelta(minutes=5)
"""A watcher that said nothing for so long does not work."""

_PATIENCE_SECONDS = 1.0
_MAX_BYTES = 64_000


@dataclass(frozen=True, slots=True)
class Health:
    """What a watcher says of itself. Counts are of this run: ``transcripts`` grew by ``turns``, which taught
    ``memories``. ``vectors_left`` is ``None`` where nobody counted yet."""

    pid: int
    started: datetime
    heartbeat: datetime
    version: str = ""
    mode: str = "events"
    why_polling: str | None = None
    folders: int = 0
    transcripts: int = 0
    turns: int = 0
    memories: int = 0
    vectors_left: int | None = None
    last_read: datetime | None = None
    last_error: str | None = None
    last_error_at: datetime | None = None
    stopped: datetime | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """How it stands with a home's watcher.

    ``state`` is ``starting``, ``running``, ``stale`` (it runs and says nothing), ``died`` (it ended without saying
    so), ``stopped`` or ``never``. ``health`` is what it, or the one before it, said last.
    """

    state: str
    health: Health | None = None

    @property
    def lives(self) -> bool:
        """Whether there is one."""
        return self.state in ("starting", "running", "stale")


def health_file(home: Path) -> Path:
    """Where a watcher says how it is."""
    return home / "watcher.health.json"


def read_health(home: Path) -> Health | None:
    """What the last watcher said; ``None`` where it is not there or cannot be read."""
    try:
        with os.fdopen(private_files.open_file(health_file(home), os.O_RDONLY), "rb") as file:
            health: Health = json_values.decode(file.read(_MAX_BYTES), Health)
            return health
    except (OSError, ValueError):
        return None


def write_health(home: Path, health: Health) -> None:
    """Say how it is, whole or not at all. Raises OSError."""
    private_files.write_file(health_file(home), msgspec.json.format(msgspec.json.encode(health), indent=2))


def standing(home: Path, now: datetime) -> Standing:
    """How it stands with the watcher of a home. Raises StoreUnusable."""
    health = read_health(home)
    if not _lock_path(home).exists():
        return Standing("never", health)
    lock = _lock(home)
    if lock.acquire():
        lock.release()
        return Standing("stopped" if health and health.stopped else "died" if health else "never", health)
    if health is None or health.stopped:
        return Standing("starting", health)
    return Standing("stale" if now - health.heartbeat > STALE else "running", health)


@contextlib.contextmanager
def only_watcher(home: Path) -> Iterator[None]:
    """Be the only watcher of a home while the block runs. The system frees the place of one that died.

    Raises Conflict where another one lives.
    """
    lock = _lock(home)
    if not lock.acquire(_PATIENCE_SECONDS):
        health = read_health(home)
        told = f" (process {health.pid}, since {shown_minute(health.started)})" if health else ""
        raise Conflict(
            f"another watcher follows the sessions of {home}{told}",
            hint="nacre watcher status tells how it is; nacre watcher stop ends it",
        )
    try:
        with contextlib.suppress(FileNotFoundError):
            _request_path(home).unlink()
        yield
    finally:
        lock.release()


def ask_to_end(home: Path) -> None:
    """Ask the home's watcher to finish what it is at, and end. Raises StoreUnusable."""
    try:
        private_files.write_file(_request_path(home), "")
    except OSError as error:
        raise StoreUnusable(
            f"cannot write into {home}: {error.strerror}", hint="end the process by hand: nacre watcher status names it"
        ) from error


def is_asked_to_end(home: Path) -> bool:
    """Whether somebody wants the watcher to end."""
    return _request_path(home).exists()


def _lock(home: Path) -> FileLock:
    return FileLock(_lock_path(home))


def _lock_path(home: Path) -> Path:
    return home / "watcher.lock"


def _request_path(home: Path) -> Path:
    return home / "watcher.stop"
