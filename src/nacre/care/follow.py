"""What is watched: the folders in which tools keep transcripts, and which transcript a changed file belongs to."""

from __future__ import annotations

import contextlib
import math
import os
import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import takewhile
from pathlib import Path

import msgspec
import watchfiles

from nacre.base import files, json
from nacre.base.locks import FileLock
from nacre.base.times import shown_minute
from nacre.errors import Conflict, NotFound, StoreUnusable
from nacre.home.home import Home
from nacre.learn import discovery
from nacre.readers.adapter import Root, log_of

_LOGS = ("-wal", "-journal")
"""What a database writes beside itself; a change there is a change of the database."""

_UNTOLD = ("-shm", ".lock", ".tmp")


@dataclass(frozen=True, slots=True)
class Territory:
    """Roots of tools, folders whose every transcript counts, and single files."""

    roots: tuple[Root, ...]
    folders: tuple[Path, ...] = ()
    files: tuple[Path, ...] = ()
    scattered: tuple[Path, ...] = ()
    """Folders of tools whose transcripts lie in several files each: any change there may be one of a transcript."""

    def deep(self) -> list[Path]:
        """The folders that exist and are watched with all that is below them; none lies within another."""
        return _outermost(
            folder for folder, is_deep in self._wanted() if is_deep and folder.is_dir()
        )

    def flat(self) -> list[Path]:
        """The folders that exist and of which only the files in them count."""
        deep = self.deep()
        there = dict.fromkeys(
            folder for folder, is_deep in self._wanted() if not is_deep and folder.is_dir()
        )
        return [
            folder for folder in there if not any(folder.is_relative_to(above) for above in deep)
        ]

    def missing(self) -> list[Path]:
        """The folders that would be watched if they were there."""
        return list(dict.fromkeys(folder for folder, _ in self._wanted() if not folder.is_dir()))

    def _wanted(self) -> Iterator[tuple[Path, bool]]:
        """Folders, and whether what lies deeper counts. Of a tool's folder only those parts in which patterns look:
        beside its transcripts lie caches and logs that change all the time."""
        for root in self.roots:
            for pattern in root.patterns:
                *above, _ = pattern.split("/")
                fixed = list(takewhile(lambda part: "*" not in part, above))
                yield root.folder.joinpath(*fixed), len(fixed) < len(above)
        yield from ((folder, True) for folder in self.folders)
        yield from ((file.parent, False) for file in self.files)

    def transcript(self, path: Path) -> Path | None:
        """The transcript that a path is, or that a side file belongs to; ``None`` for everything else."""
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
        """Whether a change of what is no transcript is a reason to look at all of them: a folder may hold new ones."""
        if path.name.endswith(_UNTOLD):
            return False
        return path.is_dir() or any(path.is_relative_to(folder) for folder in self.scattered)


def territory_of(home: Home, paths: Sequence[Path]) -> Territory:
    """What to watch: the folders and files named, or where tools keep transcripts. Raises NotFound."""
    if not paths:
        found = list(discovery.tool_roots(home, discovery.projects_of(home), []))
        scattered = tuple(
            root.folder for adapter, root in found if adapter.beside not in (None, log_of)
        )
        folders = tuple(Path(folder).expanduser() for folder in home.settings.texts("ingest.roots"))
        return Territory(tuple(root for _, root in found), folders, scattered=scattered)
    named = [path.expanduser().absolute() for path in paths]
    for path in named:
        if not path.exists():
            raise NotFound(f"there is nothing at {path}", hint="check the path")
    return Territory(
        (),
        tuple(path for path in named if path.is_dir()),
        tuple(path for path in named if not path.is_dir()),
    )


def _outermost(folders: Iterable[Path]) -> list[Path]:
    def found() -> Iterator[Path]:
        last: Path | None = None
        for folder in sorted(set(folders)):
            if last is None or not folder.is_relative_to(last):
                last = folder
                yield folder

    return list(found())


# ----------------------------------------------------------------------------
# What the system tells of changed files, gathered in threads. It may tell late, twice or nothing: it
# only hints.


GATHER_MS = 500
"""So long, at most, changes are gathered before they are told."""

_STEP_MS = 150

Tell = Callable[[frozenset[Path]], None]


class Notices:
    """Listens for changes in a territory's folders, and tells of paths. Use ``listen`` again when folders appear."""

    def __init__(self, tell: Tell, *, polling: bool) -> None:
        self._tell = tell
        self._polling = polling
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._failed: queue.Queue[str] = queue.Queue()
        self._heard: list[tuple[Path, int]] = []
        self.why_not: str | None = "watch.polling is on" if polling else None

    @property
    def mode(self) -> str:
        """``events``, or ``polling`` where the system tells nothing; then ``why_not`` says why."""
        return "polling" if self.why_not else "events"

    def listen(self, territory: Territory) -> None:
        """Listen to the folders that are there now; nothing happens where they are the same as before."""
        while not self._failed.empty():
            self.why_not = self._failed.get()
        folders = (territory.deep(), territory.flat())
        there = [(path, _inode(path)) for paths in folders for path in paths]
        if self.why_not or (
            there == self._heard and all(thread.is_alive() for thread in self._threads)
        ):
            return
        self.close()
        self._stop = threading.Event()
        self._heard = there
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
        """Listen no more."""
        self._stop.set()
        for thread in self._threads:
            thread.join(timeout=5)
        self._threads = []

    def _gather(self, paths: Sequence[Path], deep: bool, stop: threading.Event) -> None:
        try:
            for found in _changes(paths, deep, stop):
                self._tell(found)
        except ImportError:
            self._failed.put("the library watchfiles is not installed")
        except FileNotFoundError:
            pass  # a folder went away just now: who listens next hears of those that are left
        except (OSError, RuntimeError) as error:
            self._failed.put(f"the system cannot tell of changes: {error}")
        if not stop.is_set():
            self._tell(frozenset())


def _inode(path: Path) -> int:
    """Which folder it is: one that is made anew under its name is another one."""
    try:
        return path.stat().st_ino
    except OSError:
        return 0


def _changes(paths: Sequence[Path], deep: bool, stop: threading.Event) -> Iterator[frozenset[Path]]:
    """Raises ImportError without the library; OSError or RuntimeError where the system's limits are reached."""

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
        yield frozenset(Path(path) for _, path in changes)


# ----------------------------------------------------------------------------
# When the watcher does what: soon after a change, seldom otherwise, and never more than it is worth.


HOT_SECONDS = 2.0
POLLED_SECONDS = 1.0
MOST_POLLED_SECONDS = 10.0
BEAT_SECONDS = 60.0
SOON_SECONDS = 3.0
FORGIVE_SECONDS = 3_600.0
RETRY_SECONDS = 5.0
MOST_RETRY_SECONDS = 300.0

SHARE = 100
"""A look at everything is followed by a pause so many times as long: it takes 1 % of a core at most."""

HINTED_SHARE = 20
"""The same where a change hints that there is something new."""

QUIET_SECONDS = 3.0
"""A round of learning waits until so long nothing was written, …"""

PATIENCE_SECONDS = 15.0
"""… but not longer than this."""

PAUSE_SECONDS = 10.0
"""Between two rounds there is so much time, at least, and twice what the last one took."""

_IDLE_SHARE = 30
_JUMP_SECONDS = 10.0
_EVERY = {"hot": HOT_SECONDS, "beat": BEAT_SECONDS, "forgive": FORGIVE_SECONDS}


@dataclass
class Pace:
    """Times of a clock that never jumps, in seconds; ``started`` is the present, ``interval`` the usual time between
    two looks at everything."""

    started: float
    interval: float = 120.0
    last_used: float = 0.0
    _due: dict[str, float] = field(default_factory=dict)
    _unlearned_since: float = math.inf
    _last_read: float = 0.0
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

    def is_time(self, what: str, now: float) -> bool:
        """Whether it is time for ``look``, ``hot``, ``beat``, ``forgive`` or ``retry``."""
        return now >= self._due[what]

    def next_due(self, now: float) -> float:
        """Seconds until something is due; never quite none."""
        soonest = min(self._due[name] for name in ("look", "hot", "beat"))
        return max(0.01, soonest - now)

    def again(self, what: str, now: float, *, polling: bool = False) -> None:
        """It was done."""
        self._beaten = now if what == "beat" else self._beaten
        self._due[what] = now + (POLLED_SECONDS if polling and what == "hot" else _EVERY[what])

    def beat_soon(self) -> None:
        """There is something new to say, which may wait for a moment."""
        self._due["beat"] = min(self._due["beat"], self._beaten + SOON_SECONDS)

    def looked(self, began: float, now: float, *, polling: bool) -> None:
        """Everything was looked at."""
        self._look_cost, self._looked = now - began, now
        usual = self._polled(now) if polling else self.interval
        share = HINTED_SHARE if polling else SHARE
        self._due["look"] = now + max(usual, share * self._look_cost)

    def _polled(self, now: float) -> float:
        """Every second while agents are at work, ever more seldom when nothing comes."""
        return min(MOST_POLLED_SECONDS, max(POLLED_SECONDS, (now - self._last_read) / _IDLE_SHARE))

    def look_soon(self, now: float) -> None:
        """A hint says that there is something new."""
        earliest = max(now + 0.1, self._looked + max(1.0, HINTED_SHARE * self._look_cost))
        self._due["look"] = min(self._due["look"], earliest)

    def look_later(self, now: float) -> None:
        """There is no use in a look now."""
        self._due["look"] = now + PAUSE_SECONDS

    def notice_jump(self, offset: float, now: float) -> None:
        """``offset`` is how far the wall clock is from this one: where that changes, the machine slept, or somebody
        set the clock. What happened meanwhile nobody told."""
        if self._offset is not None and abs(offset - self._offset) > _JUMP_SECONDS:
            self._due["look"] = now
        self._offset = offset

    def has_read(self, now: float) -> None:
        """Turns were read, which may teach something."""
        self._last_read = now
        self._unlearned_since = min(self._unlearned_since, now)

    def learn_soon(self, now: float) -> None:
        """Something else waits for a round."""
        self._unlearned_since = min(self._unlearned_since, now - PATIENCE_SECONDS)

    def is_time_to_learn(self, now: float) -> bool:
        """Whether a round should begin."""
        if now < self._rounds_from or self._unlearned_since == math.inf:
            return False
        return (
            now - self._last_read >= QUIET_SECONDS
            or now - self._unlearned_since >= PATIENCE_SECONDS
        )

    def begin_round(self, now: float) -> None:
        """A round begins."""
        self._round_began = now
        self._unlearned_since = math.inf

    def learned(self, now: float, *, more: bool) -> None:
        """A round ended well; ``more`` waits for the next one."""
        self._rounds_from = now + max(PAUSE_SECONDS, 2 * (now - self._round_began))
        self._retry_seconds = RETRY_SECONDS
        if more:
            self.learn_soon(now)

    def went_well(self) -> None:
        """Reading went well."""
        self._retry_seconds = RETRY_SECONDS

    def failed(self, now: float) -> None:
        """Something failed: reading and rounds wait, longer each time."""
        self._due["retry"] = self._rounds_from = now + self._retry_seconds
        self._unlearned_since = min(self._unlearned_since, now)
        self._retry_seconds = min(2 * self._retry_seconds, MOST_RETRY_SECONDS)


# ----------------------------------------------------------------------------
# One watcher a home: its lock, what it tells of itself in ``watcher.health.json``, and how others ask
# it to end.


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
        with os.fdopen(files.open_file(health_file(home), os.O_RDONLY), "rb") as file:
            health: Health = json.decode(file.read(_MAX_BYTES), Health)
            return health
    except (OSError, ValueError):
        return None


def write_health(home: Path, health: Health) -> None:
    """Say how it is, whole or not at all. Raises OSError."""
    files.write_file(health_file(home), msgspec.json.format(msgspec.json.encode(health), indent=2))


def standing(home: Path, now: datetime) -> Standing:
    """How it stands with the watcher of a home. Raises StoreUnusable."""
    health = read_health(home)
    if not _lock_path(home).exists():
        return Standing("never", health)
    lock = _lock(home)
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
        files.write_file(_request_path(home), "")
    except OSError as error:
        raise StoreUnusable(
            f"cannot write into {home}: {error.strerror}",
            hint="end the process by hand: nacre watcher status names it",
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
