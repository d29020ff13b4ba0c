"""Measure hooks as complete processes, in every state of the daemon and the home."""

from __future__ import annotations

import json
import os
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path

import apsw

import nacre
from benchmarks.figures import percentile
from nacre.base.environment import environment
from nacre.base.frozen import frozen
from nacre.base.link import CHORES_LOCK, DaemonAwayError, ask, socket_path
from nacre.base.locks import FileLock
from nacre.errors import UnusableStoreError
from nacre.values.reports import OnProgress, Progress

EVENTS = ("SessionStart", "UserPromptSubmit", "PreToolUse", "SessionEnd")
_START_SECONDS = 60.0
_WARMING = 5

State = Callable[[Path, Mapping[str, str]], AbstractContextManager[object]]


@frozen
class HookFigures:
    """The runs for one event in one state.

    Durations are in milliseconds, from the start to the end of the process as its parent sees it.
    ``told`` counts runs with output.
    """

    state: str
    event: str
    runs: int
    p50: float
    p99: float
    longest: float
    cpu_p50: float
    told: int
    failed: int


def measure_hooks(
    folder: Path,
    *,
    runs: int,
    memories: int,
    only: Sequence[str] = (),
    notify: OnProgress = lambda _: None,
) -> list[HookFigures]:
    """Run hooks in Claude Code's format on a new home in ``folder``."""
    home = folder / "home"
    states = {name: state for name, state in STATES.items() if not only or name in only}
    total = len(states) * len(EVENTS)
    notify(Progress("hooks", 0, total, f"making a home of {memories:,} memories"))
    make_home(home, memories)
    (home / "config.toml").write_text("[daemon]\nenabled = false\n")
    figures: list[HookFigures] = []
    for name, state in states.items():
        environ = {**environment(), "NACRE_HOME": str(home)}
        environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed program has its bytecode
        for event in EVENTS:
            notify(Progress("hooks", len(figures), total, f"{name}, {event}"))
            place = folder / "gone" if name == "home missing" else home
            with (
                state(home, environ),
                FileLock(home / CHORES_LOCK),
            ):  # no chores during the measurement
                figures.append(_measured(name, event, place, environ, runs))
            for chore in (home / "run" / "chores").glob("*.json"):
                chore.unlink()
    return figures


def make_home(home: Path, memories: int) -> None:
    """Create a home with memory files in its vault."""
    home.mkdir(parents=True, mode=0o700)
    write_notes(home, memories)
    with nacre.open_memory(home) as memory:
        memory.recall(statement(0))


def _measured(
    state: str, event: str, home: Path, environ: Mapping[str, str], runs: int
) -> HookFigures:
    taken, cpu, with_output, failed = [], [], 0, 0
    for number in range(-_WARMING, runs):
        event_data = {
            "session_id": f"bench-{state}-{event}-{number}",
            "cwd": str(home.parent),
            "hook_event_name": event,
            "prompt": f"on which port does {subject(abs(number))} listen?",
            "source": "startup",
            "tool_name": "Bash",
            "tool_input": {"command": "cd app && npm run build && git commit -m done"},
        }
        data = json.dumps(event_data).encode()
        seconds, worked, out, code = _run(event, home, environ, data, is_full=state == "disk full")
        if number >= 0:
            taken.append(1000 * seconds)
            cpu.append(1000 * worked)
            with_output += bool(out)
            failed += code != 0
    return HookFigures(
        state,
        event,
        runs,
        percentile(taken, 0.5),
        percentile(taken, 0.99),
        max(taken),
        percentile(cpu, 0.5),
        with_output,
        failed,
    )


def _run(
    event: str, home: Path, environ: Mapping[str, str], data: bytes, *, is_full: bool
) -> tuple[float, float, bytes, int]:
    """Run a hook. Return its duration and CPU time in seconds, its output and exit code."""
    quick = Path(sys.executable).with_name("nacre-hook.sh")
    is_quick = event in ("UserPromptSubmit", "PreToolUse") and quick.exists()
    program = [str(quick)] if is_quick else [sys.executable, "-m", "nacre.serve.hook_process"]
    command = [*program, "--home", str(home), "claude-code", event]
    before = _worked()
    began = time.perf_counter()
    ran = subprocess.run(
        command,
        input=data,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
        preexec_fn=_fill_disk if is_full else None,
    )
    seconds = time.perf_counter() - began
    return seconds, _worked() - before, ran.stdout, ran.returncode


def _worked() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _fill_disk() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


@contextmanager
def _daemon(home: Path, environ: Mapping[str, str]) -> Iterator[None]:
    process = subprocess.Popen(
        [sys.executable, "-m", "nacre", "serve", "--no-watch"],
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + _START_SECONDS
        while True:
            with suppress(DaemonAwayError):
                ask(
                    str(home),
                    "context",
                    {"moment": "prompt", "prompt": statement(1)},
                    seconds=_START_SECONDS,
                )
                break
            if time.monotonic() > until:
                raise UnusableStoreError(
                    "the daemon does not start", hint="run nacre serve to see the reason"
                )
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        process.wait()


@contextmanager
def _busy(home: Path, environ: Mapping[str, str]) -> Iterator[None]:
    with _daemon(home, environ), ExitStack() as loops:
        for _ in range(4 * (os.cpu_count() or 1)):
            loop = loops.enter_context(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
            loops.callback(loop.kill)
        yield


def _listening(data: bytes | None) -> State:
    """Return a state in which the daemon's socket answers ``data`` or, for ``None``, never answers."""

    @contextmanager
    def listening(home: Path, _: Mapping[str, str]) -> Iterator[None]:
        path = Path(socket_path(str(home)))
        path.parent.mkdir(mode=0o700, exist_ok=True)
        path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(str(path))
        listener.listen(64)
        taken: list[socket.socket] = []

        def take() -> None:
            with suppress(OSError):
                while True:
                    link, _ = listener.accept()
                    taken.append(link)
                    if data is not None:
                        link.sendall(data)
                        link.close()

        thread = threading.Thread(target=take, daemon=True)
        thread.start()
        try:
            yield
        finally:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
            thread.join(1)
            for link in taken:
                link.close()
            path.unlink(missing_ok=True)

    return listening


@contextmanager
def _locked(home: Path, _: Mapping[str, str]) -> Iterator[None]:
    writer = apsw.Connection(str(home / "nacre.db"))
    writer.pragma("locking_mode", "EXCLUSIVE")
    writer.execute("BEGIN EXCLUSIVE")
    try:
        yield
    finally:
        writer.execute("ROLLBACK")
        writer.close()


def _unchanged(_: Path, __: Mapping[str, str]) -> AbstractContextManager[object]:
    return nullcontext()


_OTHER_VERSION = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"

STATES: Mapping[str, State] = {
    "daemon up": _daemon,
    "machine busy": _busy,
    "daemon away": _unchanged,
    "daemon hung": _listening(None),
    "mid-upgrade": _listening(_OTHER_VERSION),
    "database locked": _locked,
    "disk full": _unchanged,
    "home missing": _unchanged,
}
"""States of the daemon and the home while a hook runs."""

LIMIT_MS = 150.0
START_LIMIT_MS = 1_500.0
"""Maximum duration of a hook in general, and at the start of a session."""


_PLACES = tuple(
    "harbour quarry orchard foundry granary chapel mill observatory brewery tannery".split()
)
_THINGS = tuple(
    "ledger gateway scheduler archive importer dashboard mailer indexer proxy cache".split()
)


def write_notes(home: Path, memories: int) -> None:
    """Write facts into the vault of ``home``. The next scan imports them."""
    kept = home / "vault" / "global" / "fact"
    kept.mkdir(parents=True, exist_ok=True, mode=0o700)
    for number in range(memories):
        (kept / f"note-{number}.md").write_text(f"# {subject(number)}\n\n{statement(number)}\n")


def subject(number: int) -> str:
    """Return the subject of a note."""
    return f"The {_PLACES[number % 10]} {_THINGS[number // 10 % 10]} {number // 100}"


def statement(number: int) -> str:
    """Return the content of a note."""
    return f"{subject(number)} listens on port {20_000 + number} and is restarted by team {number % 7}."
