"""Follow transcripts: watch folders, schedule reads, and learn in a separate process.

New text is searchable within two seconds. Learning follows later.
"""

from __future__ import annotations

import contextlib
import math
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Any

import msgspec
import watchfiles

from nacre.base import json
from nacre.base.environment import of_the_owner
from nacre.base.frozen import frozen
from nacre.base.ids import Clock, to_ms
from nacre.base.link import environment_of, program
from nacre.base.text import count
from nacre.errors import NacreError
from nacre.home.home import Home
from nacre.home.parsing import Job
from nacre.learn import discovery
from nacre.learn.ingest import jobs_for, read_changed
from nacre.learn.learn import is_due
from nacre.readers.adapter import SUFFIXES as DATABASES
from nacre.readers.adapter import Root
from nacre.settings import Settings
from nacre.values.reports import Following, IngestReport

_LOGS = ("-wal", "-journal")
"""Suffixes of a database's side files. A change to one counts as a change to the database."""

_IGNORED = ("-shm", ".lock", ".tmp")


@frozen
class Territory:
    """The folders to watch: the tools' own folders, and those that contain only transcripts."""

    roots: tuple[Root, ...]
    folders: tuple[Path, ...] = ()
    scattered: tuple[Path, ...] = ()
    """Folders of tools that split transcripts into several files. Any change can mean new text."""

    def deep(self) -> list[Path]:
        """Return the existing folders to watch with their subfolders. None contains another."""
        outermost: list[Path] = []
        for folder in sorted({folder for folder, is_deep in self._candidates() if is_deep}):
            is_nested = outermost and folder.is_relative_to(outermost[-1])
            if not is_nested and folder.is_dir():
                outermost.append(folder)
        return outermost

    def flat(self) -> list[Path]:
        """Return the existing folders to watch without their subfolders."""
        deep = self.deep()
        flat = dict.fromkeys(folder for folder, is_deep in self._candidates() if not is_deep)
        return [
            folder
            for folder in flat
            if folder.is_dir() and not any(folder.is_relative_to(above) for above in deep)
        ]

    def missing(self) -> list[Path]:
        """Return the folders to watch that do not exist yet."""
        folders = dict.fromkeys(folder for folder, _ in self._candidates())
        return [folder for folder in folders if not folder.is_dir()]

    def _candidates(self) -> Iterator[tuple[Path, bool]]:
        # Caches and logs change constantly, so not all folders are watched with their subfolders.
        for root in self.roots:
            for pattern in root.patterns:
                *above, _ = pattern.split("/")
                fixed = list(takewhile(lambda part: "*" not in part, above))
                yield root.folder.joinpath(*fixed), len(fixed) < len(above)
        yield from ((folder, True) for folder in self.folders)

    def transcript(self, path: Path) -> Path | None:
        """Return the transcript to which a changed file belongs, or ``None``."""
        for log in _LOGS:
            if path.name.endswith(log):
                path = path.with_name(path.name.removesuffix(log))
        if any(discovery.fits(root, path) for root in self.roots):
            return path
        if discovery.may_be_transcript(path) and any(
            path.is_relative_to(folder) for folder in self.folders
        ):
            return path
        return None

    def is_hint(self, path: Path) -> bool:
        """Return True if a change of this path might mean new transcripts."""
        if path.name.endswith(_IGNORED):
            return False
        return path.is_dir() or any(path.is_relative_to(folder) for folder in self.scattered)


def territory_of(home: Home) -> Territory:
    """Return the folders that must be watched for a home's transcripts."""
    roots = list(discovery.tool_roots(home, discovery.projects_of(home), []))
    scattered = tuple(root.folder for adapter, root in roots if adapter.beside)
    folders = tuple(Path(folder).expanduser() for folder in home.settings.texts("ingest.roots"))
    return Territory(tuple(root for _, root in roots), folders, scattered=scattered)


# -- Notices of changed files ----------------------------------------------------------------------
# Threads gather the system's notices, which can be late, repeated or missing, and are only hints.


GATHER_MS = 500
"""Maximum time in milliseconds to gather changes before reporting them."""

_STEP_MS = 150

Tell = Callable[[frozenset[Path]], None]


class Notices:
    """A watcher that reports changed paths in the tools' folders.

    Call ``listen`` again to include new folders.
    """

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._failed: queue.Queue[str] = queue.Queue()
        self._watched: list[tuple[Path, int]] = []
        self.why_not: str | None = None

    def listen(self, territory: Territory) -> None:
        """Watch all existing folders of a territory."""
        while not self._failed.empty():
            self.why_not = self._failed.get()
        folders = (territory.deep(), territory.flat())
        current = [(path, _inode(path)) for paths in folders for path in paths]
        if self.why_not or (
            current == self._watched and all(thread.is_alive() for thread in self._threads)
        ):
            return
        self.close()
        self._stop = threading.Event()
        self._watched = current
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
            pass  # a folder was deleted: the next listen() watches the remaining folders
        except (OSError, RuntimeError) as error:
            self._failed.put(f"the system cannot report changes: {error}")
        if not stop.is_set():
            self._tell(frozenset())


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0


# -- Pace ------------------------------------------------------------------------------------------


POLLED_SECONDS = 1.0
MOST_POLLED_SECONDS = 10.0
FORGIVE_SECONDS = 3_600.0
RETRY_SECONDS = 5.0
MOST_RETRY_SECONDS = 300.0

SHARE = 100
"""Pause after a full scan, as a multiple of its duration. Scans use at most 1 % of a core."""

HINTED_SHARE = 20
"""Multiple for a shorter pause, after a hint of new transcripts or while polling."""

QUIET_SECONDS = 3.0
"""Seconds without new turns after which learning starts."""

PATIENCE_SECONDS = 15.0
"""Maximum wait in seconds before learning starts, even if turns keep arriving."""

PAUSE_SECONDS = 10.0
"""Minimum number of seconds between rounds, or twice the last round's duration if that is longer."""

_IDLE_SHARE = 30


class Pace:
    """The schedule of scans, learning rounds and retries, in seconds of a monotonic clock.

    ``interval``: usual time between two full scans.
    """

    def __init__(self, started: float, interval: float = 120.0) -> None:
        self.interval = interval
        self.last_used = 0.0
        self._due = {"look": started, "retry": 0.0}
        self._unlearned_since = self._last_read = started
        self._rounds_from = self._round_began = self._look_cost = 0.0
        self._looked = -math.inf
        self._retry_seconds = RETRY_SECONDS

    def is_time(self, task: str, now: float) -> bool:
        """Return True if the task (``look`` or ``retry``) is due."""
        return now >= self._due[task]

    def looked(self, began: float, now: float, *, polling: bool) -> None:
        """Schedule the next full scan after one that has just ended."""
        self._look_cost, self._looked = now - began, now
        usual, share = self.interval, SHARE
        if polling:  # every second while agents work, less often when idle
            idle = (now - self._last_read) / _IDLE_SHARE
            usual, share = min(MOST_POLLED_SECONDS, max(POLLED_SECONDS, idle)), HINTED_SHARE
        self._due["look"] = now + max(usual, share * self._look_cost)

    def look_soon(self, now: float) -> None:
        """Bring the next scan forward, because there are probably new transcripts."""
        earliest = max(now + 0.1, self._looked + max(1.0, HINTED_SHARE * self._look_cost))
        self._due["look"] = min(self._due["look"], earliest)

    def has_read(self, now: float) -> None:
        self._last_read = now
        self._unlearned_since = min(self._unlearned_since, now)

    def learn_soon(self, now: float) -> None:
        """Request a learning round although no new turns were read."""
        self._unlearned_since = min(self._unlearned_since, now - PATIENCE_SECONDS)

    def is_time_to_learn(self, now: float) -> bool:
        """Return True if the next round of learning is due."""
        if now < self._rounds_from or self._unlearned_since == math.inf:
            return False
        return (
            now - self._last_read >= QUIET_SECONDS
            or now - self._unlearned_since >= PATIENCE_SECONDS
        )

    def begin_round(self, now: float) -> None:
        self._round_began = now
        self._unlearned_since = math.inf

    def learned(self, now: float, *, more: bool) -> None:
        """Record a successful learning round. If ``more`` is set, request another."""
        self._rounds_from = now + max(PAUSE_SECONDS, 2 * (now - self._round_began))
        self._retry_seconds = RETRY_SECONDS
        if more:
            self.learn_soon(now)

    def went_well(self) -> None:
        """Record that reading succeeded, which resets the delay before a retry."""
        self._retry_seconds = RETRY_SECONDS

    def failed(self, now: float) -> None:
        """Record a failure. Reading and learning pause, longer after each failure."""
        self._due["retry"] = self._rounds_from = now + self._retry_seconds
        self._unlearned_since = min(self._unlearned_since, now)
        self._retry_seconds = min(2 * self._retry_seconds, MOST_RETRY_SECONDS)


# -- Rounds in a separate process ------------------------------------------------------------------
# Large reads, learning and embedding need much memory, which is freed when the process ends.


GRACE_SECONDS = 60.0
"""Maximum number of seconds for a process to finish after it is asked to end."""


@frozen
class RoundOutcome:
    """The result of a learning round. ``error`` is set if the round failed."""

    files: int = 0
    turns: int = 0
    memories: tuple[str, ...] = ()
    vectors_made: int = 0
    vectors_left: int = 0
    error: Mapping[str, Any] | None = None


class Round:
    """A learning round in a low-priority process. A thread passes its result to ``report``."""

    def __init__(
        self, settings: Settings, report: Callable[[RoundOutcome], None], *, reads: bool
    ) -> None:
        # Without reads, the round learns only from turns already read.
        self._report = report
        options = () if reads else ("--no-read",)
        self._process = subprocess.Popen(
            [*program(), "ingest", "--json", "--background", *options],
            env=of_the_owner(environment_of(settings.home, settings.environ)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            creationflags=getattr(subprocess, "BELOW_NORMAL_PRIORITY_CLASS", 0),
        )
        self._thread = threading.Thread(target=self._wait, name="nacre-round", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Ask the round to end, and wait. If it does not end, kill its process, which is safe."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        self._thread.join(GRACE_SECONDS)
        if self._thread.is_alive():
            self._process.kill()
            self._thread.join()

    def _wait(self) -> None:
        output, _ = self._process.communicate()
        try:
            outcome = json.decode(output, RoundOutcome)
        except msgspec.MsgspecError:
            message = f"a learning run ended with exit code {self._process.returncode}"
            outcome = RoundOutcome(error={"message": message})
        self._report(outcome)


# -- Following transcripts -------------------------------------------------------------------------
# Notices are hints: a file is read only if its size, time and cursor show a change, so repeated notices cost nothing.
# Periodic full scans make up for missing notices.


MUCH_BYTES = 4_000_000
"""Maximum number of bytes read in this process, to save memory. Larger reads use a separate process."""

_WAIT_SECONDS = 0.5
_IDLE_SECONDS = 20.0

Stamp = tuple[int, int]
"""Size of a file in bytes, and its modification time in nanoseconds."""


class Follower:
    """The loop that follows a home's transcripts. An instance runs only once, in one thread."""

    def __init__(
        self,
        settings: Settings,
        open_home: Callable[[], Home],
        tell: Callable[[str], None],
        clock: Clock,
    ) -> None:
        self._settings = settings
        self._open_home = open_home
        self._tell = tell
        self._clock = clock
        now = clock()
        self.state = Following(now, now)
        self._home: Home | None = None
        self._config: Stamp | None = None
        self._has_new_settings = False
        self._run = ""
        started = time.monotonic()
        self._pace = Pace(started)
        self._forgives_at = started + FORGIVE_SECONDS
        self._messages: queue.Queue[frozenset[Path] | RoundOutcome] = queue.Queue()
        self._notices = Notices(self._messages.put)
        self._territory = Territory(())
        self._missing: list[Path] = []
        self._round: Round | None = None
        self._due: set[Path] = set()
        self._futile: dict[Path, Stamp] = {}
        self._followed: set[Path] = set()
        self._reported_problems: set[str] = set()
        self._has_much = False
        self._is_ending = False

    def run(self, stop: threading.Event) -> None:
        """Follow the transcripts until ``stop`` is set. Report failures and retry."""
        try:
            self._try(self._listen_to_all)
            why = self._notices.why_not
            how = f"by polling: {why}" if why else "as they are written"
            folders = count(self.state.folders, "folder")
            self._tell(f"following the sessions in {folders} {how}")
            while not stop.is_set():
                self._step()
        finally:
            self._end()

    def reads(self, path: Path) -> bool:
        """If the path is a followed transcript, schedule reading and return True. Thread-safe."""
        if self._territory.transcript(path) is None:
            return False
        self._messages.put(frozenset({path}))
        return True

    def _end(self) -> None:
        self._is_ending = True
        self._notices.close()
        self._receive(0.0)
        if self._due:
            self._try(self._read_due)
        if self._round:
            self._round.end()
            self._receive(0.0)
        self._close()
        learned = count(self.state.memories, "memory", "memories")
        self._tell(f"following stopped after {count(self.state.turns, 'turn')} and {learned}")

    def _step(self) -> None:
        self._receive(_WAIT_SECONDS)
        now = time.monotonic()
        self.state = replace(self.state, heartbeat=self._clock())
        has_new_folder = any(folder.is_dir() for folder in self._missing)
        if has_new_folder or _stamp(self._settings.config) != self._config:
            self._pace.look_soon(now)
        if self._due and self._pace.is_time("retry", now):
            self._try(self._read_due)
        if self._pace.is_time("look", now) and not (self._round and self._has_much):
            self._try(self._find_all)
            is_polling = bool(self._notices.why_not)
            self._pace.looked(now, time.monotonic(), polling=is_polling)
        if self._round is None and self._pace.is_time_to_learn(now):
            self._start_round()
        if now >= self._forgives_at:
            self._forgives_at = now + FORGIVE_SECONDS
            self._futile.clear()
            self._reported_problems.clear()
        if self._home and now - self._pace.last_used > _IDLE_SECONDS:
            self._close()

    def _receive(self, seconds: float) -> None:
        with contextlib.suppress(queue.Empty):
            self._take(self._messages.get(timeout=seconds))
            while True:
                self._take(self._messages.get_nowait())

    def _take(self, message: frozenset[Path] | RoundOutcome) -> None:
        if isinstance(message, RoundOutcome):
            self._end_round(message)
            return
        if not message:  # a listening thread ended: find the failure
            self._listen(self._territory)
        for path in message:
            transcript = self._territory.transcript(path)
            if transcript is not None:
                self._due.add(transcript)
            elif self._territory.is_hint(path):
                self._pace.look_soon(time.monotonic())

    def _read_due(self) -> None:
        due, self._due = self._due, set()
        try:
            with self._opened_home() as home:
                self._read_news(home, discovery.look(home, due))
        except BaseException:
            self._due |= due
            raise

    def _find_all(self) -> None:
        with self._opened_home() as home:
            self._listen(territory_of(home))
            findings = discovery.find(home, (), with_discovery=True)
            self._read_news(home, discovery.without_put_off(home, findings))
            if self._has_new_settings:  # they might unblock the writer
                home.sessions.ask_again()
                self._has_new_settings = False
            if is_due(home):
                self._pace.learn_soon(time.monotonic())

    def _read_news(self, home: Home, findings: discovery.Findings) -> None:
        for problem in findings.problems:
            self._complain(problem.message, problem.hint, problem.path)
        # A file that was unreadable or not a transcript is read again when it changes.
        jobs = jobs_for(
            home,
            [
                file
                for file in findings.files
                if self._futile.get(file.path) != (file.size, file.mtime_ns)
            ],
        )
        # Only new rows are read from a database that was read before.
        to_read = (
            0 if job.cursor and job.path.name.endswith(DATABASES) else job.unread for job in jobs
        )
        if sum(to_read) > MUCH_BYTES:
            self._has_much = True
            self._pace.learn_soon(time.monotonic())
        elif jobs:
            self._account(home, findings.files, jobs, read_changed(home, jobs))

    def _account(
        self,
        home: Home,
        files: Sequence[discovery.FoundFile],
        jobs: Sequence[Job],
        report: IngestReport,
    ) -> None:
        requested = {job.path for job in jobs}
        remaining = {
            job.path: (job.size, job.mtime_ns)
            for job in jobs_for(home, [f for f in files if f.path in requested])
        }
        # These files are ignored until they change.
        self._futile |= {path: stamp for path, stamp in remaining.items() if stamp == _stamp(path)}
        for problem in report.problems:
            self._complain(problem.message, problem.hint, problem.path)
        if not report.turns:
            return
        self._followed |= requested - remaining.keys()
        self.state = replace(
            self.state, transcripts=len(self._followed), turns=self.state.turns + report.turns
        )
        self._run = self._run or home.ids()
        home.sessions.save_ingest(
            self._run,
            to_ms(self.state.started) or 0,
            to_ms(self._clock()) or 0,
            files=len(self._followed),
            sessions=len(self._followed),
            turns=self.state.turns,
            memories=self.state.memories,
            skipped=0,
        )
        self._pace.has_read(time.monotonic())
        self._tell(f"read {count(report.turns, 'turn')} of {', '.join(report.tools)}")

    def _start_round(self) -> None:
        self._pace.begin_round(time.monotonic())
        try:
            self._round = Round(self._settings, self._messages.put, reads=self._has_much)
        except OSError as error:
            problem = f"cannot start a process for learning: {error.strerror}"
            self._complain(problem, "check for free memory")
            self._pace.failed(time.monotonic())

    def _end_round(self, outcome: RoundOutcome) -> None:
        self._round = None
        self._has_much = False
        now = time.monotonic()
        if outcome.error and self._is_ending:
            return  # the process was asked to end
        if outcome.error:
            self._complain(outcome.error["message"], "see nacre ingest")
            self._pace.failed(now)
            return
        is_going_on = outcome.vectors_left > 0 and outcome.vectors_made > 0
        self._pace.learned(now, more=is_going_on)
        learned = len(outcome.memories)
        self.state = replace(
            self.state,
            turns=self.state.turns + outcome.turns,
            memories=self.state.memories + learned,
            transcripts=max(self.state.transcripts, outcome.files),
        )
        if outcome.turns:
            files = count(outcome.files, "transcript")
            self._tell(f"read {count(outcome.turns, 'turn')} of {files}")
        parts = [f"learned {count(learned, 'memory', 'memories')}"] if learned else []
        if outcome.vectors_made:
            pending = f", {outcome.vectors_left:,} texts pending" if outcome.vectors_left else ""
            parts.append(f"made {count(outcome.vectors_made, 'vector')}{pending}")
        if parts:
            self._tell("; ".join(parts))

    def _listen_to_all(self) -> None:
        with self._opened_home() as home:
            self._listen(territory_of(home))

    def _listen(self, territory: Territory) -> None:
        was_polling = self._notices.why_not
        self._territory = territory
        self._missing = territory.missing()
        self._notices.listen(territory)
        folders = len(territory.deep()) + len(territory.flat())
        why = self._notices.why_not
        self.state = replace(self.state, folders=folders, why_polling=why)
        if why and not was_polling:
            self._pace.look_soon(time.monotonic())
            self._tell(f"switched to polling: {why}")

    def _try(self, work: Callable[[], None]) -> None:
        try:
            work()
            self._pace.went_well()
        except NacreError as error:
            self._complain(error.message, error.hint)
            self._pace.failed(time.monotonic())
        except OSError as error:
            self._complain(
                f"{error.strerror}: {error.filename}" if error.filename else str(error), None
            )
            self._pace.failed(time.monotonic())

    def _complain(self, message: str, hint: str | None, path: str | None = None) -> None:
        text = f"{path}: {message}" if path else message
        self.state = replace(self.state, last_error=text, last_error_at=self._clock())
        if text not in self._reported_problems:
            self._reported_problems.add(text)
            self._tell(f"problem: {text}" + (f" ({hint})" if hint else ""))

    @contextlib.contextmanager
    def _opened_home(self) -> Iterator[Home]:
        # The home is reopened if its database was rebuilt or its config file changed.
        if self._home and not (
            self._home.database.is_in_place() and self._config == _stamp(self._settings.config)
        ):
            self._close()
        if self._home is None:
            self._home = self._open_home()
            last_known, self._config = self._config, _stamp(self._settings.config)
            self._has_new_settings |= last_known is not None and last_known != self._config
        try:
            yield self._home
        finally:
            self._pace.last_used = time.monotonic()

    def _close(self) -> None:
        if self._home:
            self._home.database.close()
            self._home = None


def _stamp(path: Path) -> Stamp | None:
    try:
        return discovery.footprint(path)
    except OSError:
        return None
