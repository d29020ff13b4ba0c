"""The watcher: its log, following transcripts, and rounds of learning in a separate process."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from nacre.base import files
from nacre.base.ids import to_ms
from nacre.base.link import environment_of, program
from nacre.base.request import Request
from nacre.care import follow
from nacre.care.follow import Notices, Pace, Territory, territory_of
from nacre.code.ask import note_stale
from nacre.errors import NacreError
from nacre.home.home import Home
from nacre.home.parsing import Job
from nacre.learn import discovery
from nacre.learn.discovery import FoundFile
from nacre.learn.ingest import IngestOptions, ingest, read_changed, unread
from nacre.learn.learn import is_due
from nacre.readers.adapter import SUFFIXES as DATABASES
from nacre.settings import Settings
from nacre.values.reports import IngestReport, OnProgress, Problem

MOST_BYTES = 1_000_000


class Log:
    """The log ``logs/watcher.log`` of a home, or of ``name``. A full log replaces ``watcher.log.1``."""

    def __init__(self, home: Path, name: str = "watcher") -> None:
        self.path = log_file(home, name)
        files.make_folder(self.path.parent)

    def write(self, line: str) -> None:
        """Append a line. The file is opened each time, so that it may be moved or deleted."""
        descriptor = files.open_file(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        with os.fdopen(descriptor, "a", encoding="utf-8", errors="replace") as file:
            file.write(f"{line}\n")
            is_full = file.tell() > MOST_BYTES
        if is_full:
            self.path.replace(self.path.with_suffix(".log.1"))


def log_file(home: Path, name: str = "watcher") -> Path:
    """Return the path of the log of the watcher or the daemon."""
    return home / "logs" / f"{name}.log"


def last_lines(home: Path, count: int, name: str = "watcher") -> list[str]:
    """Return the last lines of the log, the oldest first."""
    path = log_file(home, name)
    tail: deque[str] = deque(maxlen=count)
    for file in (path.with_suffix(".log.1"), path):
        try:
            with file.open(encoding="utf-8", errors="replace") as lines:
                tail.extend(line.rstrip("\n") for line in lines)
        except OSError:
            continue
    return list(tail)


# -- Requests --------------------------------------------------------------------------------------


class SurveyRequest(Request, frozen=True, kw_only=True):
    """What the watcher would follow."""

    paths: Annotated[
        tuple[Path, ...],
        Meta(description="Files and folders; default: all that discovery finds."),
    ] = ()


class RoundRequest(SurveyRequest, frozen=True, kw_only=True):
    """One round of the watcher: read what is new, learn from it, make vectors."""

    reads: Annotated[
        bool, Meta(description="False: learn only from turns that were read before.")
    ] = True
    seconds: Annotated[
        float | None, Meta(description="Maximum time for vectors; none: until all are made.")
    ] = None
    learns: Annotated[bool, Meta(description="Learn and make vectors at all.")] = True


# -- Rounds in a separate process ------------------------------------------------------------------
# Learning and vectors, which need the embedding model, and large reads take memory, which ends with the process.


VECTOR_SECONDS = 20.0
"""Time limit for vectors in a round; the next one makes the others."""

GRACE_SECONDS = 60.0
"""Time for a process to finish after the request to end."""

_INTERVAL_SECONDS = 120
"""Pause between two checks of all transcripts."""

_BELOW_NORMAL = getattr(subprocess, "BELOW_NORMAL_PRIORITY_CLASS", 0)


@dataclass(frozen=True, slots=True)
class RoundOutcome:
    """The result of a round; ``error`` if it failed."""

    files: int = 0
    sessions: int = 0
    turns: int = 0
    memories: int = 0
    vectors_made: int = 0
    vectors_left: int = 0
    error: str | None = None


def go_round(
    home: Home, request: RoundRequest, on_progress: OnProgress | None = None
) -> IngestReport:
    """Read new turns, learn, and make vectors. Raises NotFoundError."""
    options = IngestOptions(
        paths=request.paths,
        extract=request.learns,
        vectors=request.learns,
        reads=request.reads,
        vector_seconds=request.seconds,
        puts_off=not request.paths,
    )
    report = ingest(home, options, on_progress)
    if request.learns and report.turns:
        note_stale(home)
    return report


class Round:
    """A round in a process of low priority. ``done`` receives the result, in a thread."""

    def __init__(
        self,
        settings: Settings,
        request: RoundRequest,
        report: Callable[[RoundOutcome], None],
        context: Path | None,
    ) -> None:
        """Start the round; ``context`` is a file to keep up to date. Raises OSError."""
        self._done = report
        self._process = subprocess.Popen(
            [*program(), "admin", "watch", "--once", "--json", *_arguments(request, context)],
            env=environment_of(str(settings.home), settings.environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            creationflags=_BELOW_NORMAL,
        )
        self._thread = threading.Thread(target=self._wait, name="nacre-round", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Request the end of the round and wait. A process that does not end is killed, which is as safe as a crash."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        self._thread.join(GRACE_SECONDS)
        if self._thread.is_alive():
            self._process.kill()
            self._thread.join()

    def _wait(self) -> None:
        output, _ = self._process.communicate()
        self._done(_outcome(output, self._process.returncode))


def _arguments(request: RoundRequest, context: Path | None) -> list[str]:
    return [
        "--background",
        *([] if request.reads else ["--no-read"]),
        *([] if request.learns else ["--no-learn"]),
        *(["--context", str(context)] if context else []),
        *([] if request.seconds is None else ["--seconds", f"{request.seconds:.0f}"]),
        "--",
        *map(str, request.paths),
    ]


def _outcome(output: bytes, code: int) -> RoundOutcome:
    try:
        answer = msgspec.json.decode(output)
        if "error" in answer:
            return RoundOutcome(error=str(answer["error"]["message"]))
        return RoundOutcome(
            answer["files"],
            answer["sessions"],
            answer["turns"],
            len(answer["memories"]),
            answer["vectors_made"],
            answer["vectors_left"],
        )
    except (ValueError, KeyError, TypeError):
        return RoundOutcome(error=f"a learning run ended with exit code {code}")


# -- Survey of watched files -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Watched:
    """A watched folder or file, its tool (``None``: named by the user), and True if it exists."""

    path: Path
    tool: str | None
    is_there: bool


@dataclass(frozen=True, slots=True)
class Survey:
    """The watched paths, the number of transcripts, and the files and bytes to be read."""

    watched: tuple[Watched, ...]
    files: int
    unread_files: int
    unread_bytes: int
    problems: tuple[Problem, ...]


def survey(home: Home, paths: Sequence[Path]) -> Survey:
    """Survey everything once without changes. Raises NotFoundError."""
    territory = territory_of(home, paths)
    findings = discovery.find(home, paths, with_discovery=not paths)
    jobs = unread(home, (findings if paths else discovery.without_put_off(home, findings)).files)
    roots = () if paths else discovery.tool_roots(home, (), [])
    of_tools = dict.fromkeys((root.folder, adapter.label) for adapter, root in roots)
    watched = [Watched(folder, tool, folder.is_dir()) for folder, tool in of_tools]
    watched += [
        Watched(path, None, path.exists()) for path in (*territory.folders, *territory.files)
    ]
    unread_bytes = sum(job.unread for job in jobs)
    return Survey(
        tuple(watched), len(findings.files), len(jobs), unread_bytes, tuple(findings.problems)
    )


# -- Following transcripts -------------------------------------------------------------------------
# New text is searchable within two seconds, and learned from afterwards. Notices are hints: a file is read if its
# size, time and cursor show a change. So a repeated notice costs nothing, and periodic looks at everything replace a
# missing one.


MUCH_BYTES = 4_000_000
"""More is read in a separate process, to keep this one small."""

HOT_FILES = 64
HOT_SECONDS = 86_400
_WAIT_SECONDS = 0.5
_IDLE_SECONDS = 20.0

Stamp = tuple[int, int]
"""The size of a file, and its time in nanoseconds."""


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """An event: ``started``, ``read``, ``learned``, ``mode``, ``problem`` or ``stopped``.

    ``note`` is the reason for a ``mode``, or the description of a ``problem``.
    """

    kind: str
    time: datetime
    files: int = 0
    turns: int = 0
    memories: int = 0
    vectors_made: int = 0
    vectors_left: int = 0
    tools: Mapping[str, int] = field(default_factory=dict)
    folders: int = 0
    mode: str | None = None
    path: str | None = None
    note: str | None = None
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """The paths to follow (none: all that discovery finds), and the interval between looks at everything.

    ``interval_seconds``, ``polling`` and ``context`` default to the settings. Without ``learns`` sessions only become
    searchable.
    """

    paths: tuple[Path, ...] = ()
    interval_seconds: float | None = None
    polling: bool = False
    learns: bool = True
    context: Path | None = None


class Watcher:
    """Follows the transcripts of a home, from ``run`` until ``stop``. Runs in one thread, and only once."""

    def __init__(
        self,
        open_home: Callable[[], Home],
        options: WatchOptions,
        tell: Callable[[WatchEvent], None],
        version: str = "",
    ) -> None:
        self._open_home = open_home
        self._home: Home | None = None
        self._config: Stamp | None = None
        self._has_new_settings = False
        self._options = options
        self._tell_of = tell
        self._pace = Pace(time.monotonic())
        with self._opened_home() as home:
            self._settings = home.settings
            self._clock = home.clock
            self._run = home.ids()
        now = self._clock()
        self.health = follow.Health(os.getpid(), now, now, version)
        self._pace.interval = options.interval_seconds or _INTERVAL_SECONDS
        self._messages: queue.Queue[frozenset[Path] | RoundOutcome] = queue.Queue()
        self._notices = Notices(self._messages.put, polling=options.polling)
        self._territory = Territory(())
        self._missing: list[Path] = []
        self._round: Round | None = None
        self._due: set[Path] = set()
        self._hot: dict[Path, Stamp] = {}
        self._futile: dict[Path, Stamp] = {}
        self._followed: set[Path] = set()
        self._reported_problems: set[str] = set()
        self._has_much = False
        self._unnoted = options.paths
        self._is_ending = False

    def run(self, stop: threading.Event) -> follow.Health:
        """Follow until ``stop`` is set or ``nacre admin watcher stop`` is called, and return the final report.

        Raises ConflictError if another watcher follows this home, NotFoundError for a missing path.
        """
        home = self._settings.home
        with follow.only_watcher(home):
            self._begin()
            try:
                while not stop.is_set() and not follow.is_asked_to_end(home):
                    self._step()
            finally:
                self._end()
        return self.health

    def reads(self, path: Path) -> bool:
        """Return True if it follows a transcript, and schedule reading it. Works in any thread."""
        if self._territory.transcript(path) is None:
            return False
        self._messages.put(frozenset({path}))
        return True

    def _begin(self) -> None:
        try:
            with self._opened_home() as home:
                self._listen(territory_of(home, self._options.paths))
        except BaseException:
            self._close()
            raise
        self._beat()
        self._tell(
            "started",
            folders=self.health.folders,
            mode=self._notices.mode,
            note=self._notices.why_not,
        )

    def _end(self) -> None:
        """Read reported changes, and end a round after its current step."""
        self._is_ending = True
        self._notices.close()
        self._receive(0.0)
        if self._due:
            self._try(self._read_due)
        if self._round:
            self._round.end()
            self._receive(0.0)
        self.health = replace(self.health, stopped=self._clock())
        self._beat()
        self._close()
        self._tell("stopped", turns=self.health.turns, memories=self.health.memories)

    def _step(self) -> None:
        self._receive(min(_WAIT_SECONDS, self._pace.next_due(time.monotonic())))
        now = time.monotonic()
        self._pace.notice_jump(self._clock().timestamp() - now, now)
        if self._pace.is_time("hot", now):
            self._look_at_hot(now)
        if self._due and self._pace.is_time("retry", now):
            self._try(self._read_due)
        if self._pace.is_time("look", now):
            self._look_at_all(now)
        if self._round is None and self._pace.is_time_to_learn(now):
            self._start_round()
        if self._pace.is_time("beat", now):
            self._beat()
        if self._home and now - self._pace.last_used > _IDLE_SECONDS:
            self._close()

    def _receive(self, seconds: float) -> None:
        """Wait for a message, then process all pending ones."""
        with contextlib.suppress(queue.Empty):
            self._take(
                self._messages.get(timeout=seconds) if seconds else self._messages.get_nowait()
            )
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

    def _look_at_hot(self, now: float) -> None:
        """Check recently changed files, which are likely to change again; a few checks cost nothing."""
        self._pace.again("hot", now, polling=self._notices.mode == "polling")
        for path, stamp in self._hot.items():
            if _stamp(path) not in (stamp, None):
                self._due.add(path)
        is_set_anew = _stamp(self._settings.config) != self._config
        if is_set_anew or any(folder.is_dir() for folder in self._missing):
            self._pace.look_soon(now)

    def _look_at_all(self, now: float) -> None:
        if self._round and self._has_much:
            self._pace.look_later(now)
            return
        self._try(self._find_all)
        self._pace.looked(now, time.monotonic(), polling=self._notices.mode == "polling")

    def _find_all(self) -> None:
        with self._opened_home() as home:
            self._listen(territory_of(home, self._options.paths))
            findings = discovery.find(
                home, self._options.paths, with_discovery=not self._options.paths
            )
            self._read_news(
                home, findings if self._options.paths else discovery.without_put_off(home, findings)
            )
            if self._has_new_settings:  # they may allow asking the writer again
                home.sessions.ask_again()
                self._has_new_settings = False
            if self._options.learns and is_due(home):
                self._pace.learn_soon(time.monotonic())

    def _read_news(self, home: Home, findings: discovery.Findings) -> None:
        for problem in findings.problems:
            self._complain(problem.message, problem.hint, problem.path)
        self._warm(findings.files)
        # A file that was no transcript, or was unreadable, is read again when it changes.
        jobs = unread(
            home,
            [
                file
                for file in findings.files
                if self._futile.get(file.path) != (file.size, file.mtime_ns)
            ],
        )
        # For a database read before only new rows are read.
        to_read = (
            0 if job.cursor and job.path.name.endswith(DATABASES) else job.unread for job in jobs
        )
        if sum(to_read) > MUCH_BYTES:
            self._has_much = True
            self._pace.learn_soon(time.monotonic())
        elif jobs:
            report = read_changed(home, jobs, self._unnoted)
            self._unnoted = () if report.files else self._unnoted
            self._account(home, findings.files, jobs, report)

    def _account(
        self, home: Home, files: Sequence[FoundFile], jobs: Sequence[Job], report: IngestReport
    ) -> None:
        requested = {job.path for job in jobs}
        remaining = {
            job.path: (job.size, job.mtime_ns)
            for job in unread(home, [f for f in files if f.path in requested])
        }
        # They are ignored until they change.
        self._futile |= {path: stamp for path, stamp in remaining.items() if stamp == _stamp(path)}
        for problem in report.problems:
            self._complain(problem.message, problem.hint, problem.path)
        if not report.turns:
            return
        self._followed |= requested - remaining.keys()
        now = self._clock()
        self.health = replace(
            self.health,
            transcripts=len(self._followed),
            turns=self.health.turns + report.turns,
            last_read=now,
        )
        home.sessions.save_ingest(
            self._run,
            to_ms(self.health.started) or 0,
            to_ms(now) or 0,
            files=len(self._followed),
            sessions=len(self._followed),
            turns=self.health.turns,
            memories=self.health.memories,
            skipped=0,
        )
        self._pace.has_read(time.monotonic())
        self._tell("read", files=report.files, turns=report.turns, tools=report.tools)

    def _warm(self, files: Iterable[FoundFile]) -> None:
        for file in files:
            if self._clock().timestamp() - file.mtime_ns / 1e9 < HOT_SECONDS:
                self._hot[file.path] = _stamp(file.path) or (file.size, file.mtime_ns)
        latest = sorted(self._hot, key=lambda path: self._hot[path][1], reverse=True)[:HOT_FILES]
        self._hot = {path: self._hot[path] for path in latest}

    def _start_round(self) -> None:
        reads = self._has_much
        self._pace.begin_round(time.monotonic())
        if not reads and not self._options.learns:
            return
        paths = self._options.paths if reads else ()
        request = RoundRequest(
            paths=paths, reads=reads, seconds=VECTOR_SECONDS, learns=self._options.learns
        )
        try:
            self._round = Round(self._settings, request, self._messages.put, self._options.context)
        except OSError as error:
            self._complain(
                f"cannot start a process for learning: {error.strerror}",
                "check for free memory",
            )
            self._pace.failed(time.monotonic())

    def _end_round(self, outcome: RoundOutcome) -> None:
        self._round = None
        self._has_much = False
        now = time.monotonic()
        if outcome.error and self._is_ending:
            return  # it was requested to end
        if outcome.error:
            self._complain(outcome.error, "see nacre ingest")
            self._pace.failed(now)
            return
        is_going_on = outcome.vectors_left > 0 and outcome.vectors_made > 0
        self._pace.learned(now, more=is_going_on)
        self.health = replace(
            self.health,
            turns=self.health.turns + outcome.turns,
            memories=self.health.memories + outcome.memories,
            transcripts=max(self.health.transcripts, outcome.sessions),
            vectors_left=outcome.vectors_left,
        )
        if outcome.turns:
            self.health = replace(self.health, last_read=self._clock())
            self._tell("read", files=outcome.files, turns=outcome.turns)
        if outcome.memories or outcome.vectors_made:
            self._tell(
                "learned",
                memories=outcome.memories,
                vectors_made=outcome.vectors_made,
                vectors_left=outcome.vectors_left,
            )

    def _listen(self, territory: Territory) -> None:
        before = self._notices.mode
        self._territory = territory
        self._missing = territory.missing()
        self._notices.listen(territory)
        folders = len(territory.deep()) + len(territory.flat())
        self.health = replace(
            self.health, folders=folders, mode=self._notices.mode, why_polling=self._notices.why_not
        )
        if self._notices.mode != before:
            self._pace.look_soon(time.monotonic())
            self._tell("mode", mode=self._notices.mode, note=self._notices.why_not)

    def _beat(self) -> None:
        now = time.monotonic()
        self._pace.again("beat", now)
        if self._pace.is_time("forgive", now):
            self._pace.again("forgive", now)
            self._futile.clear()
            self._reported_problems.clear()
        self.health = replace(self.health, heartbeat=self._clock())
        # No report is possible; nacre admin watcher status detects that.
        with contextlib.suppress(OSError):
            follow.write_health(self._settings.home, self.health)

    def _try(self, work: Callable[[], None]) -> None:
        """Do work, report a failure once, and retry later: a disk may be full, a database busy, a folder missing."""
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
        self.health = replace(self.health, last_error=text, last_error_at=self._clock())
        if text not in self._reported_problems:
            self._reported_problems.add(text)
            self._tell("problem", path=path, note=message, hint=hint)

    def _tell(self, kind: str, **fields: object) -> None:
        self._pace.beat_soon()
        self._tell_of(WatchEvent(kind, self._clock(), **fields))  # type: ignore[arg-type]

    @contextlib.contextmanager
    def _opened_home(self) -> Iterator[Home]:
        """Open the home again if its database was rebuilt, or its settings may have changed."""
        if self._home and not (
            self._home.database.is_in_place() and self._config == _stamp(self._home.settings.config)
        ):
            self._close()
        if self._home is None:
            self._home = self._open_home()
            last_known, self._config = self._config, _stamp(self._home.settings.config)
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
    """Return the size and time of a transcript, or ``None`` if it was deleted."""
    try:
        return discovery.footprint(path)
    except OSError:
        return None
