"""Following transcripts: watched folders, change notices, the pace of the watcher, and its health."""

from __future__ import annotations

import contextlib
import math
import os
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import takewhile
from pathlib import Path

import msgspec
import watchfiles

from nacre.base import files, json
from nacre.base.locks import FileLock
from nacre.base.times import shown_minute
from nacre.errors import ConflictError, NotFoundError, UnusableStoreError
from nacre.home.home import Home
from nacre.learn import discovery
from nacre.readers.adapter import Root, log_of

_LOGS = ("-wal", "-journal")
"""Suffixes of files that a database writes next to itself; their changes are the database's."""

_IGNORED = ("-shm", ".lock", ".tmp")


@dataclass(frozen=True, slots=True)
class Territory:
    """Roots of tools, folders with only transcripts, and single files."""

    roots: tuple[Root, ...]
    folders: tuple[Path, ...] = ()
    files: tuple[Path, ...] = ()
    scattered: tuple[Path, ...] = ()
    """Folders of tools whose transcripts consist of several files: any change may belong to one."""

    def deep(self) -> list[Path]:
        """Return the existing folders that are watched recursively, without nested ones."""
        outermost: list[Path] = []
        for folder in sorted({folder for folder, is_deep in self._candidates() if is_deep}):
            is_nested = outermost and folder.is_relative_to(outermost[-1])
            if not is_nested and folder.is_dir():
                outermost.append(folder)
        return outermost

    def flat(self) -> list[Path]:
        """Return the existing folders that are watched without subfolders."""
        deep = self.deep()
        flat = dict.fromkeys(folder for folder, is_deep in self._candidates() if not is_deep)
        return [
            folder
            for folder in flat
            if folder.is_dir() and not any(folder.is_relative_to(above) for above in deep)
        ]

    def missing(self) -> list[Path]:
        """Return the folders that would be watched if they existed."""
        folders = dict.fromkeys(folder for folder, _ in self._candidates())
        return [folder for folder in folders if not folder.is_dir()]

    def _candidates(self) -> Iterator[tuple[Path, bool]]:
        """Yield folders, and True if they are watched recursively.

        In a tool's folder, only the parts that patterns match are watched: caches and logs elsewhere change constantly.
        """
        for root in self.roots:
            for pattern in root.patterns:
                *above, _ = pattern.split("/")
                fixed = list(takewhile(lambda part: "*" not in part, above))
                yield root.folder.joinpath(*fixed), len(fixed) < len(above)
        yield from ((folder, True) for folder in self.folders)
        yield from ((file.parent, False) for file in self.files)

    def transcript(self, path: Path) -> Path | None:
        """Return the transcript at a path or of a side file, or ``None``."""
        for log in _LOGS:
            if path.name.endswith(log):
                path = path.with_name(path.name.removesuffix(log))
        if path in self.files or any(discovery.fits(root, path) for root in self.roots):
            return path
        if discovery.may_be_transcript(path) and any(
            path.is_relative_to(folder) for folder in self.folders
        ):
            return path
        return None

    def is_hint(self, path: Path) -> bool:
        """Return True if the change of another path may mean new transcripts, as of a folder."""
        if path.name.endswith(_IGNORED):
            return False
        return path.is_dir() or any(path.is_relative_to(folder) for folder in self.scattered)


def territory_of(home: Home, paths: Sequence[Path]) -> Territory:
    """Return the given folders and files to watch, or else the tools' folders. Raises NotFoundError."""
    if not paths:
        roots = list(discovery.tool_roots(home, discovery.projects_of(home), []))
        scattered = tuple(
            root.folder for adapter, root in roots if adapter.beside not in (None, log_of)
        )
        folders = tuple(Path(folder).expanduser() for folder in home.settings.texts("ingest.roots"))
        return Territory(tuple(root for _, root in roots), folders, scattered=scattered)
    named = [path.expanduser().absolute() for path in paths]
    for path in named:
        if not path.exists():
            raise NotFoundError(f"{path} does not exist", hint="check the path")
    return Territory(
        (),
        tuple(path for path in named if path.is_dir()),
        tuple(path for path in named if not path.is_dir()),
    )


# -- Notices of changed files ----------------------------------------------------------------------
# The system's notices, gathered in threads. They may be late, repeated or missing, and are only hints.


GATHER_MS = 500
"""The maximum time for gathering changes before a notice, in milliseconds."""

_STEP_MS = 150

Tell = Callable[[frozenset[Path]], None]


class Notices:
    """Watches a territory's folders and reports changed paths. Call ``listen`` again when folders appear."""

    def __init__(self, tell: Tell, *, polling: bool) -> None:
        self._tell = tell
        self._polling = polling
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._failed: queue.Queue[str] = queue.Queue()
        self._heard: list[tuple[Path, int]] = []
        self.why_not: str | None = "--polling is on" if polling else None

    @property
    def mode(self) -> str:
        """Return ``events``, or ``polling`` if notices are unavailable; ``why_not`` is the reason."""
        return "polling" if self.why_not else "events"

    def listen(self, territory: Territory) -> None:
        """Watch the folders that exist now, if they changed since the last call."""
        while not self._failed.empty():
            self.why_not = self._failed.get()
        folders = (territory.deep(), territory.flat())
        current = [(path, _inode(path)) for paths in folders for path in paths]
        if self.why_not or (
            current == self._heard and all(thread.is_alive() for thread in self._threads)
        ):
            return
        self.close()
        self._stop = threading.Event()
        self._heard = current
        for paths, deep in zip(folders, (True, False), strict=True):
            if paths:
                thread = threading.Thread(
                    target=self._gather,
                    args=(paths, deep, self._stop),
                    name="nacre-notices",
                    daemon=True,
                )
                thread.start()
                self._threads.append(thread)

    def close(self) -> None:
        """Stop watching."""
        self._stop.set()
        for thread in self._threads:
            thread.join(timeout=5)
        self._threads = []

    def _gather(self, paths: Sequence[Path], deep: bool, stop: threading.Event) -> None:
        try:
            for changes in watchfiles.watch(
                *paths,
                watch_filter=None,
                debounce=GATHER_MS,
                step=_STEP_MS,
                stop_event=stop,
                recursive=deep,
                ignore_permission_denied=True,
                raise_interrupt=False,
                force_polling=False,
            ):
                self._tell(frozenset(Path(path) for _, path in changes))
        except FileNotFoundError:
            pass  # a folder was deleted: the next listen() watches the others
        except (OSError, RuntimeError) as error:
            self._failed.put(f"the system cannot report changes: {error}")
        if not stop.is_set():
            self._tell(frozenset())


def _inode(path: Path) -> int:
    """Return a folder's inode, which differs if it was created again."""
    try:
        return path.stat().st_ino
    except OSError:
        return 0


# -- The watcher's pace ----------------------------------------------------------------------------


HOT_SECONDS = 2.0
POLLED_SECONDS = 1.0
MOST_POLLED_SECONDS = 10.0
BEAT_SECONDS = 60.0
SOON_SECONDS = 3.0
FORGIVE_SECONDS = 3_600.0
RETRY_SECONDS = 5.0
MOST_RETRY_SECONDS = 300.0

SHARE = 100
"""A look at everything is followed by a pause of this many times its duration: at most 1 % of a core."""

HINTED_SHARE = 20
"""The same after a hint of something new."""

QUIET_SECONDS = 3.0
"""Learning starts after this time without new turns, …"""

PATIENCE_SECONDS = 15.0
"""… or at the latest after this time."""

PAUSE_SECONDS = 10.0
"""The minimum time between two rounds, and at least twice the duration of the last."""

_IDLE_SHARE = 30
_JUMP_SECONDS = 10.0
_INTERVALS = {"hot": HOT_SECONDS, "beat": BEAT_SECONDS, "forgive": FORGIVE_SECONDS}


@dataclass
class Pace:
    """Times of a monotonic clock, in seconds; ``interval`` is the usual time between two looks at everything."""

    started: float
    interval: float = 120.0
    last_used: float = 0.0
    _due: dict[str, float] = field(init=False)
    _unlearned_since: float = field(init=False)
    _last_read: float = field(init=False)
    _rounds_from: float = 0.0
    _round_began: float = 0.0
    _look_cost: float = 0.0
    _looked: float = -math.inf
    _retry_seconds: float = RETRY_SECONDS
    _beaten: float = -math.inf
    _offset: float | None = None

    def __post_init__(self) -> None:
        self._due = {
            "look": self.started,
            "hot": self.started,
            "beat": self.started + BEAT_SECONDS,
            "retry": 0.0,
            "forgive": self.started + FORGIVE_SECONDS,
        }
        self._unlearned_since = self._last_read = self.started

    def is_time(self, task: str, now: float) -> bool:
        """Return True if ``look``, ``hot``, ``beat``, ``forgive`` or ``retry`` is due."""
        return now >= self._due[task]

    def next_due(self, now: float) -> float:
        """Return the seconds until a task is due, at least 0.01."""
        soonest = min(self._due[name] for name in ("look", "hot", "beat"))
        return max(0.01, soonest - now)

    def again(self, task: str, now: float, *, polling: bool = False) -> None:
        """Schedule a task after it was done."""
        self._beaten = now if task == "beat" else self._beaten
        self._due[task] = now + (POLLED_SECONDS if polling and task == "hot" else _INTERVALS[task])

    def beat_soon(self) -> None:
        """Advance the next heartbeat because of news."""
        self._due["beat"] = min(self._due["beat"], self._beaten + SOON_SECONDS)

    def looked(self, began: float, now: float, *, polling: bool) -> None:
        """Schedule the next look at everything."""
        self._look_cost, self._looked = now - began, now
        usual, share = self.interval, SHARE
        if polling:  # a second while agents work, longer while nothing arrives
            idle = (now - self._last_read) / _IDLE_SHARE
            usual, share = min(MOST_POLLED_SECONDS, max(POLLED_SECONDS, idle)), HINTED_SHARE
        self._due["look"] = now + max(usual, share * self._look_cost)

    def look_soon(self, now: float) -> None:
        """Advance the next look because of a hint."""
        earliest = max(now + 0.1, self._looked + max(1.0, HINTED_SHARE * self._look_cost))
        self._due["look"] = min(self._due["look"], earliest)

    def look_later(self, now: float) -> None:
        """Postpone the next look."""
        self._due["look"] = now + PAUSE_SECONDS

    def notice_jump(self, offset: float, now: float) -> None:
        """Look now if ``offset``, the distance of the wall clock, changed: the machine slept or the clock was set.

        Changes during that time were not reported.
        """
        if self._offset is not None and abs(offset - self._offset) > _JUMP_SECONDS:
            self._due["look"] = now
        self._offset = offset

    def has_read(self, now: float) -> None:
        """Record that turns were read."""
        self._last_read = now
        self._unlearned_since = min(self._unlearned_since, now)

    def learn_soon(self, now: float) -> None:
        """Request a round for another reason."""
        self._unlearned_since = min(self._unlearned_since, now - PATIENCE_SECONDS)

    def is_time_to_learn(self, now: float) -> bool:
        """Return True if a round should begin."""
        if now < self._rounds_from or self._unlearned_since == math.inf:
            return False
        return (
            now - self._last_read >= QUIET_SECONDS
            or now - self._unlearned_since >= PATIENCE_SECONDS
        )

    def begin_round(self, now: float) -> None:
        """Record the beginning of a round."""
        self._round_began = now
        self._unlearned_since = math.inf

    def learned(self, now: float, *, more: bool) -> None:
        """Record the success of a round; ``more``: another round is needed."""
        self._rounds_from = now + max(PAUSE_SECONDS, 2 * (now - self._round_began))
        self._retry_seconds = RETRY_SECONDS
        if more:
            self.learn_soon(now)

    def went_well(self) -> None:
        """Record that reading succeeded."""
        self._retry_seconds = RETRY_SECONDS

    def failed(self, now: float) -> None:
        """Record a failure: reading and rounds are delayed, longer each time."""
        self._due["retry"] = self._rounds_from = now + self._retry_seconds
        self._unlearned_since = min(self._unlearned_since, now)
        self._retry_seconds = min(2 * self._retry_seconds, MOST_RETRY_SECONDS)


# -- The watcher's lock, health and end ------------------------------------------------------------
# There is one watcher per home. Its state is in ``watcher.health.json``.


STALE = timedelta(minutes=5)
"""A watcher without a heartbeat for this time does not work."""

_LOCK_WAIT_SECONDS = 1.0
_MAX_BYTES = 64_000


@dataclass(frozen=True, slots=True)
class Health:
    """A watcher's report. Counts are of this run: ``transcripts`` grew by ``turns``, which led to ``memories``.

    ``vectors_left`` is ``None`` if unknown.
    """

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
    """The state of a home's watcher.

    ``state`` is ``starting``, ``running``, ``stale`` (no heartbeat), ``died`` (without a final report), ``stopped`` or
    ``never``. ``health`` is the last report of this watcher or the previous one.
    """

    state: str
    health: Health | None = None

    @property
    def lives(self) -> bool:
        """Return True if a watcher is running."""
        return self.state in ("starting", "running", "stale")


def health_file(home: Path) -> Path:
    """Return the path of the watcher's report."""
    return home / "watcher.health.json"


def read_health(home: Path) -> Health | None:
    """Return the last report, or ``None`` if it is missing or unreadable."""
    try:
        with os.fdopen(files.open_file(health_file(home), os.O_RDONLY), "rb") as file:
            health: Health = json.decode(file.read(_MAX_BYTES), Health)
            return health
    except (OSError, ValueError):
        return None


def write_health(home: Path, health: Health) -> None:
    """Write a report atomically. Raises OSError."""
    files.write_file(health_file(home), msgspec.json.format(msgspec.json.encode(health), indent=2))


def standing(home: Path, now: datetime) -> Standing:
    """Return the state of a home's watcher. Raises UnusableStoreError."""
    health = read_health(home)
    if not _lock_path(home).exists():
        return Standing("never", health)
    lock = FileLock(_lock_path(home))
    if lock.acquire():
        lock.release()
        return Standing(
            "stopped" if health and health.stopped else "died" if health else "never", health
        )
    if health is None or health.stopped:
        return Standing("starting", health)
    return Standing("stale" if now - health.heartbeat > STALE else "running", health)


@contextlib.contextmanager
def only_watcher(home: Path) -> Iterator[None]:
    """Hold the watcher's lock of a home during the block. The system releases it if the process dies.

    Raises ConflictError if another watcher is running.
    """
    lock = FileLock(_lock_path(home))
    if not lock.acquire(_LOCK_WAIT_SECONDS):
        health = read_health(home)
        owner = f" (process {health.pid}, since {shown_minute(health.started)})" if health else ""
        raise ConflictError(
            f"another watcher already follows the sessions of {home}{owner}",
            hint="nacre admin watcher status shows its state; nacre admin watcher stop ends it",
        )
    try:
        _request_path(home).unlink(missing_ok=True)
        yield
    finally:
        lock.release()


def ask_to_end(home: Path) -> None:
    """Request the home's watcher to finish and end. Raises UnusableStoreError."""
    try:
        files.write_file(_request_path(home), "")
    except OSError as error:
        raise UnusableStoreError(
            f"cannot write to {home}: {error.strerror}",
            hint="stop the process by hand; nacre admin watcher status shows its id",
        ) from error


def is_asked_to_end(home: Path) -> bool:
    """Return True if the watcher is requested to end."""
    return _request_path(home).exists()


def _lock_path(home: Path) -> Path:
    return home / "watcher.lock"


def _request_path(home: Path) -> Path:
    return home / "watcher.stop"
