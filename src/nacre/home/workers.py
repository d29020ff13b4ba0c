"""Read files in several processes, with the same results as in one process.

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
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from types import ModuleType
from typing import Any, Generic, TypeVar

from nacre.base.frozen import frozen
from nacre.home.parsing import Event, FileFailed, Job, read_file
from nacre.redact.redactor import Redactor
from nacre.values.reports import Problem

_GROUP_BYTES = 1_000_000
_GROUP_FILES = 200
_LARGE_FILE_BYTES = 32_000_000
_MAX_TRIES = 2
_HINT = "is there enough memory? nacre config set ingest.workers 1 uses one process"

_GC_THRESHOLD = 50_000
"""Number of new objects before garbage is collected. Reading creates few cycles."""

T = TypeVar("T")
R = TypeVar("R")


def read_in_processes(
    jobs: Sequence[Job],
    redactor: Redactor,
    rules: tuple[Any, ...],
    excluded_tools: frozenset[str],
    count: int,
) -> Iterator[Event]:
    """Read transcripts in ``count`` processes. A file that crashes two of them yields a failure.

    Each process creates its own redactor from ``rules``. If no process can be started, this process
    reads the files with ``redactor``.
    """
    tasks = Tasks(
        partial(_transcript_reader, rules, excluded_tools),
        partial(read_file, redactor=redactor, excluded_tools=excluded_tools),
        lambda job: FileFailed(
            job.path,
            job.size,
            Problem(str(job.path), "the process that read it crashed", _HINT),
        ),
        lambda job: job.unread > _LARGE_FILE_BYTES,
    )
    return in_processes(_groups(jobs), tasks, count)


def _transcript_reader(
    rules: tuple[Any, ...], excluded_tools: frozenset[str]
) -> Callable[[Job], Iterable[Event]]:
    return partial(read_file, redactor=Redactor(*rules), excluded_tools=excluded_tools)


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


@frozen
class Tasks(Generic[T, R]):
    """The functions that :func:`in_processes` needs to read files.

    ``prepare``: called once in each worker process; returns the function that reads a file.
    ``read_here``: reads a file in this process.
    ``fail``: returns the result for a file that crashes workers.
    ``stays_here``: returns True for a file that only this process should read.
    """

    prepare: Callable[[], Callable[[T], Iterable[R]]]
    read_here: Callable[[T], Iterable[R]]
    fail: Callable[[T], R]
    stays_here: Callable[[T], bool] = lambda _: False


def in_processes(groups: Sequence[Sequence[T]], tasks: Tasks[T, R], count: int) -> Iterator[R]:
    """Read groups of files in ``count`` processes, and yield results in file order."""
    pool = _Pool(tasks, count)
    futures = {}
    try:
        for index, group in enumerate(groups):
            for upcoming in range(index, min(index + count + 1, len(groups))):
                if upcoming not in futures:
                    futures[upcoming] = pool.read(groups[upcoming])
            future = futures.pop(index)
            try:
                results = future.result() if future else None
            except BrokenProcessPool:
                futures.clear()
                pool.end()
                for item in group:
                    yield from _read_alone(pool, item)
                continue
            if results is None:
                for item in group:
                    yield from tasks.read_here(item)
            else:
                yield from results
    finally:
        pool.end()


def _read_alone(pool: _Pool[T, R], item: T) -> Iterable[R]:
    for _ in range(_MAX_TRIES):
        future = pool.read([item])
        try:
            return future.result() if future else pool.tasks.read_here(item)
        except BrokenProcessPool:
            pool.end()
    return [pool.tasks.fail(item)]


class _Pool(Generic[T, R]):
    def __init__(self, tasks: Tasks[T, R], count: int) -> None:
        self.tasks = tasks
        self._count = count
        self._executor: ProcessPoolExecutor | None = None
        self._is_possible = True

    def read(self, group: Sequence[T]) -> Future[list[R]] | None:
        if self.tasks.stays_here(group[-1]):
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
                self._count, spawn, initializer=_initialise_process, initargs=(self.tasks.prepare,)
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
    # New processes would otherwise run the main module again.
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


_read: Callable[[Any], Iterable[Any]] = lambda _: ()  # noqa: E731 - set in each process


def _initialise_process(prepare: Callable[[], Callable[[Any], Iterable[Any]]]) -> None:
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
    _read = prepare()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent:
        parent.join()
        os._exit(0)


def _read_group(group: Sequence[Any]) -> list[Any]:
    return [result for item in group for result in _read(item)]
