"""Read code in worker processes: two cores halve the time, and a parser that crashes costs one file."""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen

from nacre.code.worker import Read, read_one, receive_read, send

_PORTION = 40
_FEW = 300
"""Files that one process reads in the time that a second one takes to start."""

MOST_PROCESSES = 4


def count_processes(files: int) -> int:
    """The number of processes for a number of files."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return 1 if files < _FEW else min(cores, MOST_PROCESSES)


def read_all(root: Path, paths: Sequence[str], processes: int) -> Iterator[Read]:
    """Read files, in the order in which they finish. A file that crashes a process has no facts."""
    if getattr(sys, "frozen", False) or not sys.executable:
        yield from (read_one(root, path) for path in paths)
        return
    portions: queue.SimpleQueue[Sequence[str]] = queue.SimpleQueue()
    for start in range(0, len(paths), _PORTION):
        portions.put(paths[start : start + _PORTION])
    done: queue.Queue[Read | None] = queue.Queue(maxsize=200)
    over = threading.Event()
    threads = [
        threading.Thread(target=_feed, args=(root, portions, done, over), name="nacre-code", daemon=True)
        for _ in range(processes)
    ]
    for thread in threads:
        thread.start()
    try:
        running = len(threads)
        while running:
            found = done.get()
            running -= found is None
            if found is not None:
                yield found
    finally:
        over.set()


def _feed(
    root: Path, portions: queue.SimpleQueue[Sequence[str]], done: queue.Queue[Read | None], over: threading.Event
) -> None:  # fmt: skip
    """Give portions of files to a process, and to a new one when it dies."""
    process: Popen[bytes] | None = None
    try:
        while not over.is_set():
            try:
                left = list(portions.get_nowait())
            except queue.Empty:
                break
            while left and not over.is_set():
                process = process or _start(root)
                read = _read_portion(process, left, done, over)
                if read < len(left) and not over.is_set():
                    _hand_over(done, over, Read(left[read], "", None))
                    _end(process)
                    process, read = None, read + 1
                left = left[read:]
    finally:
        if process:
            _end(process)
        _hand_over(done, over, None)


def _read_portion(
    process: Popen[bytes], paths: list[str], done: queue.Queue[Read | None], over: threading.Event
) -> int:
    """The number of files that a process read before it died; all of them if it did not."""
    assert process.stdin is not None  # noqa: S101 - it was started with pipes
    assert process.stdout is not None  # noqa: S101
    try:
        send(process.stdin, paths)
        process.stdin.flush()
        for number in range(len(paths)):
            found = receive_read(process.stdout)
            if found is None or not _hand_over(done, over, found):
                return number
    except OSError:
        return 0
    return len(paths)


def _hand_over(done: queue.Queue[Read | None], over: threading.Event, found: Read | None) -> bool:
    """Put a result into the queue; wait for room unless reading was stopped."""
    while not over.is_set():
        try:
            done.put(found, timeout=0.2)
        except queue.Full:
            continue
        return True
    return False


def _start(root: Path) -> Popen[bytes]:
    script = f"import sys; sys.path[:] = {sys.path!a}; from nacre.code.worker import main; main()"
    # In a group of its own: Ctrl-C is for the process that stores, which then ends this one.
    process = Popen(
        [sys.executable, "-P", "-c", script], stdin=PIPE, stdout=PIPE, stderr=DEVNULL, start_new_session=True,
        creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
    )  # fmt: skip
    assert process.stdin is not None  # noqa: S101 - it was started with pipes
    send(process.stdin, [str(root)])
    return process


def _end(process: Popen[bytes]) -> None:
    process.kill()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
    process.wait()
