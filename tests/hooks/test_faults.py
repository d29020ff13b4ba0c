"""In any state of the daemon, the home or the host a hook ends in time, with status 0 and valid output."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path

import apsw
import pytest

from tests.hooks.conftest import (
    DECIDED,
    Hooked,
    hang,
    is_root,
    listening,
    locked_against_readers,
    respond,
    say,
    serving,
)
from tests.processes import Processes

EVENTS = ("SessionStart", "UserPromptSubmit", "PreToolUse", "Stop", "PreCompact", "SessionEnd")
ANSWERING_EVENTS = ("SessionStart", "UserPromptSubmit")
IN_TIME_SECONDS = 10.0
"""A limit for a machine that is busy with other tests; ``python -m benchmarks hooks`` measures the duration."""


@contextmanager
def locked(home: Path) -> Iterator[None]:
    """Hold a write lock in another process."""
    writer = apsw.Connection(str(home / "nacre.db"))
    writer.execute("BEGIN IMMEDIATE; UPDATE memories SET importance = 1")
    try:
        yield
    finally:
        writer.execute("ROLLBACK")
        writer.close()


@contextmanager
def of_schema(home: Path, step: int) -> Iterator[None]:
    database = apsw.Connection(str(home / "nacre.db"))
    version = database.pragma("user_version")
    database.pragma("user_version", version + step)
    database.close()
    yield


@contextmanager
def damaged(home: Path) -> Iterator[None]:
    path = home / "nacre.db"
    size = path.stat().st_size
    for companion in home.glob("nacre.db-*"):
        companion.unlink()
    with path.open("r+b") as file:
        file.seek(100)
        file.write(os.urandom(size - 100))
    yield


@contextmanager
def not_a_database(home: Path) -> Iterator[None]:
    for path in home.glob("nacre.db*"):
        path.unlink()
    (home / "nacre.db").write_text("these are only words\n" * 1000)
    yield


@contextmanager
def without_home(home: Path) -> Iterator[None]:
    shutil.rmtree(home)
    yield
    assert not home.exists()


@contextmanager
def home_is_a_file(home: Path) -> Iterator[None]:
    shutil.rmtree(home)
    home.write_text("")
    yield


@contextmanager
def broken_settings(home: Path) -> Iterator[None]:
    (home / "config.toml").write_text("[context\nbudget_tokens = many")
    yield


@contextmanager
def open_to_others(home: Path) -> Iterator[None]:
    home.chmod(0o777)
    yield


@contextmanager
def of_another_user(home: Path) -> Iterator[None]:
    if not is_root():
        pytest.skip("only root can give a folder away")
    os.chown(home, 12345, 12345)
    yield
    os.chown(home, 0, 0)


@contextmanager
def without_room_for_notes(home: Path) -> Iterator[None]:
    """Put files in place of the folders that hooks write to, like a read-only disk."""
    (home / "run").write_text("")
    (home / "logs").write_text("")
    yield


@contextmanager
def stale_socket(home: Path) -> Iterator[None]:
    """Leave the socket of a killed daemon."""
    with serving(home) as server:
        os.link(server.path, f"{server.path}.kept")
    os.replace(f"{server.path}.kept", server.path)
    yield


def daemon(answer: Callable[..., None]) -> Callable[[Path], AbstractContextManager[None]]:
    return lambda home: listening(home, answer)


GARBAGE = (
    b"\x00\xff not HTTP\n",
    b"{}\n",
    b"HTTP/1.1 200",
    b"HTTP/1.1 x OK\r\n\r\n",
    b"9" * 99_999,
    b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{",
)

STATES: dict[str, Callable[[Path], AbstractContextManager[object]]] = {
    "daemon up": serving,
    "daemon away": lambda _: nullcontext(),
    "daemon hung": daemon(hang),
    "daemon of another version": daemon(respond("", 404)),
    "daemon refuses": daemon(respond("", 503)),
    "daemon hangs up": daemon(say(b"")),
    **{
        f"daemon answers garbage {number}": daemon(say(data)) for number, data in enumerate(GARBAGE)
    },
    "daemon was killed": stale_socket,
    "database locked by a writer": locked,
    "database locked against readers": locked_against_readers,
    "schema newer": lambda home: of_schema(home, 1),
    "schema older": lambda home: of_schema(home, -1),
    "database damaged": damaged,
    "no database": not_a_database,
    "home missing": without_home,
    "home is a file": home_is_a_file,
    "home open to others": open_to_others,
    "home of another user": of_another_user,
    "settings broken": broken_settings,
    "no room for notes": without_room_for_notes,
}
ANSWERING_STATES = frozenset(
    {
        "daemon up",
        "daemon away",
        "daemon hung",
        "daemon of another version",
        "daemon refuses",
        "daemon was killed",
        "daemon hangs up",
        "database locked by a writer",
        "no room for notes",
        *(f"daemon answers garbage {number}" for number in range(len(GARBAGE))),
    }
)
"""States in which hooks still return memories."""


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("state", STATES)
def test_hook_ends_in_time_with_status_0_and_valid_output(
    hooked: Hooked, state: str, event: str
) -> None:
    with STATES[state](hooked.home):
        ran = hooked.run(event, within=None)
    assert (ran.code, ran.err) == (0, "")
    assert ran.seconds < IN_TIME_SECONDS
    if ran.out:
        assert event in ANSWERING_EVENTS
        assert DECIDED in ran.context


@pytest.mark.parametrize("event", ANSWERING_EVENTS)
@pytest.mark.parametrize("state", STATES)
def test_memories_are_given_in_every_readable_state(hooked: Hooked, state: str, event: str) -> None:
    with STATES[state](hooked.home):
        ran = hooked.run(event)
    assert (ran.code, ran.err) == (0, "")
    is_waited_for = (
        state == "daemon hung" and event != "SessionStart"
    )  # the remaining time is random
    if is_waited_for:
        assert DECIDED in ran.context or not ran.out
    else:
        assert (DECIDED in ran.context) == (state in ANSWERING_STATES)


def test_daemon_in_a_world_writable_folder_is_not_trusted(hooked: Hooked) -> None:
    with listening(hooked.home, respond("Obey.")):
        assert "Obey" in hooked.run("UserPromptSubmit").out
        hooked.home.chmod(0o777)
        assert hooked.run("UserPromptSubmit").out == ""


def full(_: Hooked) -> dict[str, object]:
    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a full disk fails a write, without a signal
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    return {"preexec_fn": limit}


@pytest.mark.parametrize("event", EVENTS)
def test_full_disk_prevents_logging_but_stops_no_hook(hooked: Hooked, event: str) -> None:
    ran = hooked.run(event, **full(hooked))
    assert (ran.code, ran.err) == (0, "")
    assert event in ANSWERING_EVENTS or ran.out == ""
    assert ran.context == "" or DECIDED in ran.context
    assert hooked.log() == []


STDIN = {
    "empty": b"",
    "garbage": b"\x00\xff\xfe{]",
    "half": b'{"session_id": "a", "prompt": "on which',
    "text": b'"prompt"',
    "list": b"[1]",
    "deep": b"[" * 200_000,
    "huge": b'{"prompt": "' + b"a" * 5_000_000 + b'"}',
    "odd": b'{"session_id": 7, "cwd": ["x"], "prompt": {"a": 1}, "source": null, "transcript_path": false}',
    "zeros": b'{"session_id": "a\\u0000/../b", "cwd": "/x\\u0000y", "prompt": "\\ud800 \\u0000 which ledger?"}',
}


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("name", STDIN)
def test_hook_always_exits_with_0_and_valid_output(hooked: Hooked, name: str, event: str) -> None:
    ran = hooked.run(event, stdin=STDIN[name], within=None)
    assert (ran.code, ran.err) == (0, "")
    assert ran.seconds < IN_TIME_SECONDS
    assert event in ANSWERING_EVENTS or ran.out == ""
    assert ran.context == "" or "<nacre-context>" in ran.context
    assert not (hooked.home / "run" / "b.json").exists()


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("host", ["claude-code", "gemini-cli"])
@pytest.mark.parametrize("data", [b"", b'{"session_id": "a", '])
def test_host_that_keeps_its_input_open_is_not_awaited(
    hooked: Hooked, processes: Processes, event: str, host: str, data: bytes
) -> None:
    process = processes.start(
        hooked.command(event, host, None),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin
    assert process.stdout
    assert process.stderr
    process.stdin.write(data)
    process.stdin.flush()
    with process:
        assert process.wait(IN_TIME_SECONDS) == 0
        assert process.stdout.read() in (b"", b"{}")
        assert process.stderr.read() == b""


def test_complete_object_is_answered_while_input_stays_open(
    hooked: Hooked, processes: Processes
) -> None:
    process = processes.start(
        hooked.command("UserPromptSubmit"), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin
    assert process.stdout
    with process:
        process.stdin.write(
            b'{"session_id": "a", "prompt": "on which database does the lighthouse ledger run?"}\n'
        )
        process.stdin.flush()
        assert DECIDED in process.stdout.read().decode()
        assert process.wait(30) == 0


@pytest.mark.parametrize("event", EVENTS)
def test_host_with_a_closed_output_causes_no_error(hooked: Hooked, event: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    ran = hooked.run(event, within=None, stdout=writing)
    os.close(writing)
    assert (ran.code, ran.err) == (0, "")
    closed = hooked.run(event, within=None, stdout=None, preexec_fn=lambda: os.close(1))
    assert (closed.code, closed.err) == (0, "")


@pytest.mark.parametrize("event", ANSWERING_EVENTS)
def test_host_that_does_not_read_is_not_awaited(hooked: Hooked, event: str) -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with suppress(BlockingIOError):
        while True:
            os.write(writing, b" " * 4096)
    os.set_blocking(writing, True)
    ran = hooked.run(event, within=None, stdout=writing)
    os.close(writing)
    os.close(reading)
    assert (ran.code, ran.err) == (0, "")
    assert ran.seconds < IN_TIME_SECONDS


def test_undelivered_memory_is_given_again(hooked: Hooked) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    hooked.run("UserPromptSubmit", stdout=writing)
    os.close(writing)
    assert DECIDED in hooked.run("UserPromptSubmit").context


@pytest.mark.parametrize(
    "arguments", [[], ["claude-code"], ["no-such-host", "Stop"], ["--home"], ["--within", "x", "a"]]
)
def test_hook_with_wrong_arguments_is_silent(hooked: Hooked, arguments: list[str]) -> None:
    command = [*hooked.command("Stop")[:3], *arguments]
    ran = subprocess.run(command, input=b"{}", capture_output=True, timeout=30, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")
