"""Parse and redact transcripts in several processes, with the same results as in one process.

Processes receive groups of files, and results are returned in file order. The main process reads
large files itself, because other processes return a file's results only at its end.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from types import ModuleType

from nacre.base.frozen import frozen
from nacre.home.parsing import Event, FileFailed, Job, Portion, clean_file, read_file
from nacre.redact.redactor import Redactor
from nacre.store.packs import Cleaner
from nacre.values.reports import Problem

_GROUP_BYTES = 1_000_000
_GROUP_FILES = 200
_LARGE_FILE_BYTES = 32_000_000
_MAX_TRIES = 2
_HINT = "is there enough memory? nacre config set ingest.workers 1 uses one process"

_GC_THRESHOLD = 50_000
"""Number of allocations between garbage collections, because reading creates few cycles."""

_Read = Callable[[Job], Iterable[Event | Portion]]


@frozen
class Setup:
    """The settings for a worker process.

    ``patterns``, ``allow`` and ``kinds`` are redaction rules. If ``cleans`` is True, the process
    redacts files for the archive and does not parse them.
    """

    patterns: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    excluded_tools: tuple[str, ...] = ()
    cleans: bool = False


def read_in_processes(
    jobs: Sequence[Job], redactor: Redactor, setup: Setup, count: int
) -> Iterator[Event]:
    """Read files in ``count`` processes. Yield a failure for a file that crashes two processes.

    If no process can be started, this process reads the files with ``redactor``.
    """
    for event in _work(jobs, setup, count, _read_function(redactor, setup)):
        if not isinstance(event, Portion):
            yield event


def clean_in_processes(
    jobs: Sequence[Job], redactor: Redactor, setup: Setup, count: int
) -> Generator[Portion, None, None]:
    """Yield redacted portions of files in order, without files that crash a process twice."""
    setup = replace(setup, cleans=True)
    for event in _work(jobs, setup, count, _read_function(redactor, setup)):
        if isinstance(event, Portion):
            yield event


def _read_function(redactor: Redactor, setup: Setup) -> _Read:
    if setup.cleans:
        return partial(clean_file, cleaner=Cleaner(redactor.clean_all))
    return partial(read_file, redactor=redactor, excluded_tools=frozenset(setup.excluded_tools))


def _work(
    jobs: Sequence[Job], setup: Setup, count: int, read_here: _Read
) -> Iterator[Event | Portion]:
    groups = _groups(jobs)
    pool = _Pool(setup, count)
    futures: dict[int, Future[list[Event | Portion]] | None] = {}
    try:
        for index, group in enumerate(groups):
            for upcoming in range(index, min(index + count + 1, len(groups))):
                if upcoming not in futures:
                    futures[upcoming] = pool.read(groups[upcoming])
            future = futures.pop(index)
            try:
                events = (
                    future.result()
                    if future
                    else (event for job in group for event in read_here(job))
                )
            except BrokenProcessPool:
                futures.clear()
                events = (event for job in group for event in _read_alone(pool, job, read_here))
            yield from events
    finally:
        pool.end()


def _read_alone(pool: _Pool, job: Job, read_here: _Read) -> Iterable[Event | Portion]:
    """Read a file in a separate process, because the file might have crashed a process."""
    for _ in range(_MAX_TRIES):
        pool.end()
        future = pool.read([job])
        try:
            return future.result() if future else read_here(job)
        except BrokenProcessPool:
            continue
    return [
        FileFailed(
            job.path,
            job.size,
            Problem(str(job.path), "the process that read it crashed", _HINT),
        )
    ]


class _Pool:
    """A process pool that is started on demand and restarted after a crash."""

    def __init__(self, setup: Setup, count: int) -> None:
        self._setup = setup
        self._count = count
        self._executor: ProcessPoolExecutor | None = None
        self._is_possible = True

    def read(self, group: Sequence[Job]) -> Future[list[Event | Portion]] | None:
        """Start reading some files, or return ``None`` if they must be read in this process."""
        if group[-1].unread > _LARGE_FILE_BYTES:
            return None
        for _ in range(_MAX_TRIES):
            executor = self._running_executor()
            try:
                with _without_main():
                    return executor.submit(_read_group, group) if executor else None
            except BrokenProcessPool:
                self.end()
        return None

    def end(self) -> None:
        """Kill all processes."""
        executor, self._executor = self._executor, None
        if executor:
            for process in list((executor._processes or {}).values()):
                process.kill()
            executor.shutdown(cancel_futures=True)

    def _running_executor(self) -> ProcessPoolExecutor | None:
        if self._executor or not self._is_possible:
            return self._executor
        try:
            spawn = multiprocessing.get_context("spawn")
            executor = ProcessPoolExecutor(
                self._count, spawn, initializer=_initialise_process, initargs=(self._setup,)
            )
            with _without_main():
                executor.submit(int).result()
        except (OSError, NotImplementedError, BrokenProcessPool):
            # A sandbox can forbid subprocesses.
            self._is_possible = False
            return None
        self._executor = executor
        return executor


@contextmanager
def _without_main() -> Iterator[None]:
    """Replace the main module, because each new process would run the main module again."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


_read: _Read = lambda _: ()  # noqa: E731 - set in each process


def _initialise_process(setup: Setup) -> None:
    """Prepare a worker process that prints nothing, ignores Ctrl-C, and ends when its parent ends."""
    global _read
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform != "win32":
        os.setsid()  # Linux schedules fairly between sessions
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)  # output of third-party adapters
    os.dup2(nowhere, 2)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    gc.freeze()
    gc.set_threshold(_GC_THRESHOLD)
    _read = _read_function(Redactor(setup.patterns, setup.allow, setup.kinds), setup)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent:
        parent.join()
        os._exit(0)


def _read_group(group: Sequence[Job]) -> list[Event | Portion]:
    return [event for job in group for event in _read(job)]


def _groups(jobs: Sequence[Job]) -> list[list[Job]]:
    groups: list[list[Job]] = []
    size = _GROUP_BYTES
    for job in jobs:
        is_large = job.unread > _LARGE_FILE_BYTES
        if is_large or size >= _GROUP_BYTES or len(groups[-1]) == _GROUP_FILES:
            groups.append([])
            size = 0
        groups[-1].append(job)
        size += job.size
    return groups
