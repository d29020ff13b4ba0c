"""Parse and redact transcripts in processes of their own, in the order and with the outcome of reading them here.

Files are handed out in loads, and what they hold is given back in the order of the files, so that how many processes
there are shows in nothing but the time. A large file is read here, as what it holds comes back from a process at once.
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
from dataclasses import dataclass, replace
from functools import partial
from types import ModuleType

from nacre.home.parsing import Event, FileFailed, Job, Portion, clean_file, read_file
from nacre.redact.redactor import Redactor
from nacre.store.packs import Cleaner
from nacre.values.reports import Problem

_LOAD_BYTES = 1_000_000
_LOAD_FILES = 200
_LARGE_BYTES = 32_000_000
_TRIES = 2
_HINT = "is there enough memory? nacre config set ingest.workers 1 reads in one process"

_ALLOCATIONS = 50_000
"""Between two looks for garbage that refers to itself. Hardly any does; records and turns come by the thousand."""

_Read = Callable[[Job], Iterable[Event | Portion]]


@dataclass(frozen=True, slots=True)
class Setup:
    """What a process must know before it reads: the owner's patterns, what is no secret, what else
    goes, excluded tools.

    With ``cleans`` it takes secrets out of files for the archive, and understands nothing of them.
    """

    patterns: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    excluded_tools: tuple[str, ...] = ()
    cleans: bool = False


def read_in_processes(
    jobs: Sequence[Job], redactor: Redactor, setup: Setup, count: int
) -> Iterator[Event]:
    """Read files in so many processes. A file that a process dies of, twice, is an event as any other failure.

    ``setup`` has what makes the ``redactor``, which reads where no process can be started.
    """
    for event in _work(jobs, setup, count, _reading(redactor, setup)):
        if not isinstance(event, Portion):
            yield event


def clean_in_processes(
    jobs: Sequence[Job], redactor: Redactor, setup: Setup, count: int
) -> Generator[Portion, None, None]:
    """What is kept of files, in order; nothing of one that a process dies of, twice."""
    setup = replace(setup, cleans=True)
    for event in _work(jobs, setup, count, _reading(redactor, setup)):
        if isinstance(event, Portion):
            yield event


def _reading(redactor: Redactor, setup: Setup) -> _Read:
    if setup.cleans:
        return partial(clean_file, cleaner=Cleaner(redactor.clean_all, redactor.find_suspects))
    return partial(read_file, redactor=redactor, excluded_tools=frozenset(setup.excluded_tools))


def _work(jobs: Sequence[Job], setup: Setup, count: int, here: _Read) -> Iterator[Event | Portion]:
    loads = _loads(jobs)
    pool = _Pool(setup, count)
    given: dict[int, Future[list[Event | Portion]] | None] = {}
    try:
        for number, load in enumerate(loads):
            for ahead in range(number, min(number + count + 1, len(loads))):
                if ahead not in given:
                    given[ahead] = pool.read(loads[ahead])
            future = given.pop(number)
            try:
                found = (
                    future.result() if future else (event for job in load for event in here(job))
                )
            except BrokenProcessPool:
                given.clear()
                found = (event for job in load for event in _read_alone(pool, job, here))
            yield from found
    finally:
        pool.end()


def _read_alone(pool: _Pool, job: Job, here: _Read) -> Iterable[Event | Portion]:
    """Read a file, of which a process may have died, while none reads another."""
    for _ in range(_TRIES):
        pool.end()
        future = pool.read([job])
        try:
            return future.result() if future else here(job)
        except BrokenProcessPool:
            continue
    return [
        FileFailed(
            job.path, job.size, Problem(str(job.path), "the process that read it died", _HINT)
        )
    ]


class _Pool:
    """Processes that are started when they are needed, also after one died."""

    def __init__(self, setup: Setup, count: int) -> None:
        self._setup = setup
        self._count = count
        self._executor: ProcessPoolExecutor | None = None
        self._is_possible = True

    def read(self, load: Sequence[Job]) -> Future[list[Event | Portion]] | None:
        """What files hold, to come; ``None`` where they are to be read here."""
        if load[-1].unread > _LARGE_BYTES:
            return None
        for _ in range(_TRIES):
            executor = self._started()
            try:
                with _without_main():
                    return executor.submit(_read_load, load) if executor else None
            except BrokenProcessPool:
                self.end()
        return None

    def end(self) -> None:
        """End all of them, whatever they do."""
        executor, self._executor = self._executor, None
        if executor:
            for process in list((executor._processes or {}).values()):
                process.kill()
            executor.shutdown(cancel_futures=True)

    def _started(self) -> ProcessPoolExecutor | None:
        if self._executor or not self._is_possible:
            return self._executor
        try:
            spawn = multiprocessing.get_context("spawn")
            executor = ProcessPoolExecutor(
                self._count, spawn, initializer=_begin, initargs=(self._setup,)
            )
            with _without_main():
                executor.submit(int).result()
        except (
            OSError,
            NotImplementedError,
            BrokenProcessPool,
        ):  # a sandbox may forbid what it needs
            self._is_possible = False
            return None
        self._executor = executor
        return executor


@contextmanager
def _without_main() -> Iterator[None]:
    """A new process would run the main module once more, and that may be anybody's script."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


_read: _Read = lambda _: ()  # noqa: E731 - set in each process


def _begin(setup: Setup) -> None:
    """Prepare a process: it is quiet, leaves Ctrl-C to the one that stores, and ends when that one does."""
    global _read
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform != "win32":
        os.setsid()  # Linux shares a busy machine out by session
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)  # what somebody's adapter prints
    os.dup2(nowhere, 2)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS)
    _read = _reading(Redactor(setup.patterns, setup.allow, setup.kinds), setup)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent:
        parent.join()
        os._exit(0)


def _read_load(load: Sequence[Job]) -> list[Event | Portion]:
    return [event for job in load for event in _read(job)]


def _loads(jobs: Sequence[Job]) -> list[list[Job]]:
    """Files in order, so many together that they are worth handing out; a large one alone."""
    loads: list[list[Job]] = []
    size = _LOAD_BYTES
    for job in jobs:
        is_large = job.unread > _LARGE_BYTES
        if is_large or size >= _LOAD_BYTES or len(loads[-1]) == _LOAD_FILES:
            loads.append([])
            size = 0
        loads[-1].append(job)
        size += job.size
    return loads
