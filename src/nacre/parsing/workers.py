"""Parse and redact transcripts in processes of their own, in the order and with the outcome of reading them here.

Files are handed out in loads, a new one to whichever process is idle; what they hold is given back in the order of the
files, so that how many processes there are shows in nothing but the time. What was read ahead waits, up to some
megabytes.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from subprocess import DEVNULL, PIPE, Popen
from typing import IO

from nacre.packs.lines import Cleaner
from nacre.parsing import wire
from nacre.parsing.parse import Event, FileFailed, Job, read_file
from nacre.parsing.redaction import Portion, clean_file
from nacre.redact.redactor import Redactor
from nacre.values.reports import Problem

_LOAD_BYTES = 2_000_000
_LOAD_FILES = 200
_WAITING_BYTES = 4_000_000
_TRIES = 2
_HINT = "is there enough memory? nacre config set ingest.workers 1 reads in one process"

_Next = Callable[["_Process"], Sequence[Job] | None]
_Here = Callable[[Job], Iterable[Event | Portion]]
"""Reads a file without any process."""


def read_in_processes(jobs: Sequence[Job], redactor: Redactor, setup: wire.Setup, count: int) -> Iterator[Event]:
    """Read files in so many processes. A file that a process dies of, twice, is an event as any other failure.

    ``setup`` has what makes the ``redactor``, which reads where no process can be started.
    """
    excluded = frozenset(setup.excluded_tools)
    for event in _work(jobs, setup, count, lambda job: read_file(job, redactor, excluded)):
        if not isinstance(event, Portion):
            yield event


def clean_in_processes(
    jobs: Sequence[Job], redactor: Redactor, setup: wire.Setup, count: int
) -> Generator[Portion, None, None]:
    """What is kept of files, in order; nothing of one that a process dies of, twice."""
    cleaner = Cleaner(redactor.clean_all, redactor.find_suspects)
    for event in _work(jobs, replace(setup, cleans=True), count, lambda job: clean_file(job, cleaner)):
        if isinstance(event, Portion):
            yield event


def _work(jobs: Sequence[Job], setup: wire.Setup, count: int, here: _Here) -> Iterator[Event | Portion]:
    pool = _Pool(_loads(jobs), setup, count)
    try:
        for number, load in enumerate(pool.loads):
            yield from _read_load(pool, number, load, here)
    finally:
        pool.end()


def _read_load(pool: _Pool, number: int, load: Sequence[Job], here: _Here) -> Iterator[Event | Portion]:
    process = pool.reader_of(number)
    done = deaths = 0
    while done < len(load):
        job = load[done]
        if process is None:
            yield from here(job)
            done += 1
            continue
        frame = process.frames.get()
        if frame is not None:
            yield wire.unpack(frame, job)
            if frame.kind not in wire.PARTS:
                done, deaths = done + 1, 0
            continue
        deaths += 1
        if process.is_ready and deaths == _TRIES:
            yield FileFailed(job.path, job.size, Problem(str(job.path), "the process that read it died", _HINT))
            done, deaths = done + 1, 0
        process = pool.replace(process, load[done:])


class _Pool:
    """The processes, and which load is with which of them."""

    def __init__(self, loads: Sequence[Sequence[Job]], setup: wire.Setup, count: int) -> None:
        self.loads = loads
        self._setup = setup
        self._changed = threading.Condition()
        self._handed_out = 0
        self._readers: dict[int, _Process] = {}
        self._started: list[_Process] = []
        self._alive = 0
        for _ in range(min(count, len(loads))):
            self._start(())

    def reader_of(self, number: int) -> _Process | None:
        """The process that reads a load; ``None`` when none is left to do it. Waits until that is known."""
        with self._changed:
            while number not in self._readers and self._alive:
                self._changed.wait()
            process = self._readers.pop(number, None)
            if process is None:
                self._handed_out = number + 1
            return process

    def replace(self, process: _Process, rest: Sequence[Job]) -> _Process | None:
        """Another process for one that died, and for what it had yet to read; ``None`` where none can be had."""
        process.end()
        self._started.remove(process)
        return self._start(rest) if process.is_ready else None

    def end(self) -> None:
        """End all of them."""
        for process in self._started:
            process.end()

    def _start(self, first: Sequence[Job]) -> _Process | None:
        with self._changed:
            self._alive += 1
        try:
            process = _Process(self._setup, first, self._next, self._gone)
        except OSError:
            self._gone()
            return None
        self._started.append(process)
        return process

    def _next(self, process: _Process) -> Sequence[Job] | None:
        with self._changed:
            number = self._handed_out
            if number == len(self.loads):
                return None
            self._handed_out += 1
            self._readers[number] = process
            self._changed.notify_all()
            return self.loads[number]

    def _gone(self) -> None:
        with self._changed:
            self._alive -= 1
            self._changed.notify_all()


class _Process:
    """A reading process, and the thread that hands it loads and takes what it says; its last frame is ``None``."""

    def __init__(self, setup: wire.Setup, first: Sequence[Job], next_load: _Next, gone: Callable[[], None]) -> None:
        """Start it, to read ``first`` before it is handed loads. Raises OSError."""
        self.frames = _Frames()
        self.is_ready = False
        self._setup, self._first, self._next, self._gone = setup, first, next_load, gone
        script = f"import sys; sys.path[:] = {sys.path!a}; from nacre.parsing.worker import main; main()"
        # In a group of its own: Ctrl-C is for the process that stores, which then ends this one.
        self._process = Popen(
            [sys.executable, "-P", "-c", script], stdin=PIPE, stdout=PIPE, stderr=DEVNULL, start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )  # fmt: skip
        self._thread = threading.Thread(target=self._serve, name="nacre-reader", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """End it, whatever it does."""
        self._process.kill()
        self.frames.close()
        self._thread.join()
        self._process.wait()

    def _serve(self) -> None:
        told, said = self._process.stdin, self._process.stdout
        try:
            with told, said:  # type: ignore[union-attr]
                self._converse(told, said)  # type: ignore[arg-type]
        except OSError:
            pass  # it is gone
        finally:
            self._gone()
            self.frames.put(None)

    def _converse(self, told: IO[bytes], said: IO[bytes]) -> None:
        wire.write(told, wire.pack_setup(self._setup))
        told.flush()
        self.is_ready = wire.read(said) is not None
        load = self._first or self._next(self) if self.is_ready else None
        while load:
            wire.write(told, wire.pack_jobs(list(load)))
            told.flush()
            files = len(load)
            while files:
                frame = wire.read(said)
                if frame is None:
                    return
                self.frames.put(frame)
                files -= frame.kind not in wire.PARTS
            load = self._next(self)


class _Frames:
    """What a process said and nobody took yet, in order: as many bytes of it as a process may be ahead.

    Counted in bytes, for a file of two lines says as much as a file of a thousand turns does in two of its frames.
    """

    def __init__(self) -> None:
        self._waiting: deque[wire.Frame | None] = deque()
        self._bytes = 0
        self._is_closed = False
        self._changed = threading.Condition()

    def put(self, frame: wire.Frame | None) -> None:
        """Add a frame, or ``None`` for the end, as soon as there is room."""
        with self._changed:
            while self._bytes >= _WAITING_BYTES and not self._is_closed:
                self._changed.wait()
            self._waiting.append(frame)
            self._bytes += len(frame.body) if frame else 0
            self._changed.notify_all()

    def get(self) -> wire.Frame | None:
        """The next frame; waits for it."""
        with self._changed:
            while not self._waiting:
                self._changed.wait()
            frame = self._waiting.popleft()
            self._bytes -= len(frame.body) if frame else 0
            self._changed.notify_all()
            return frame

    def close(self) -> None:
        """Nobody takes frames any more: whoever puts them does not wait."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()


def _loads(jobs: Sequence[Job]) -> list[list[Job]]:
    """Files in order, so many together that they are worth handing out."""
    loads: list[list[Job]] = [[]]
    size = 0
    for job in jobs:
        if len(loads[-1]) == _LOAD_FILES or size >= _LOAD_BYTES:
            loads.append([])
            size = 0
        loads[-1].append(job)
        size += job.size
    return loads
