"""Start, exclusivity and end of the daemon; after any end, the next one serves."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Thread, Timer
from typing import Any

import pytest

import nacre as package
from nacre.base.link import LOCK, run_folder, socket_path
from nacre.base.locks import FileLock, is_held
from tests.cli.conftest import Nacre, Outcome, command, environment
from tests.daemon.conftest import PATIENCE_SECONDS, Serving, call_daemon, call_raw, home, request_of
from tests.processes import Processes, wait

Serve = Callable[..., Serving]


def is_served() -> bool:
    try:
        return bool(call_daemon("hello"))
    except Exception:  # noqa: BLE001 - it does not, for whatever reason
        return False


def test_daemon_reports_its_identity_and_stops_on_request(serving: Serve, process: Nacre) -> None:
    daemon = serving()
    hello = call_daemon("hello")
    assert (hello["pid"], hello["protocol"], hello["on_demand"]) == (daemon.process.pid, 1, False)
    status = process("serve", "status", "--json").json
    assert (status["state"], status["pid"], status["version"]) == (
        "running",
        hello["pid"],
        hello["version"],
    )
    assert process("serve", "stop", "--json").json == {"ended": True}
    assert daemon.end() == 0
    assert not Path(socket_path(str(home()))).exists()
    assert process("serve", "status", "--json", code=1).json["state"] == "none"
    assert process("serve", "stop", "--json").json == {"ended": False}


def test_socket_is_accessible_only_to_the_user(serving: Serve) -> None:
    serving()
    path = Path(socket_path(str(home())))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_home_with_a_too_long_socket_path_is_served(
    serving: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NACRE_HOME", str(tmp_path / ("long" * 30)))
    serving()
    path = Path(socket_path(str(home())))
    assert path.parent == Path(run_folder())
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert call_daemon("hello")


def test_a_second_daemon_is_refused(serving: Serve, process: Nacre) -> None:
    daemon = serving()
    error = process("serve", "--json", code=4).error
    assert error["code"] == "conflict"
    assert str(daemon.process.pid) in error["message"]
    assert "did not start" in process("serve", "logs").out


def test_daemon_waits_briefly_for_the_lock(serving: Serve) -> None:
    home().mkdir(exist_ok=True)
    lock = FileLock(home() / LOCK)
    assert lock.acquire()
    Timer(2.5, lock.release).start()  # after its first attempt
    serving()
    assert is_served()


@pytest.mark.parametrize("with_signal", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signal_stops_the_daemon_cleanly(serving: Serve, with_signal: int) -> None:
    daemon = serving()
    assert daemon.end(with_signal) == 0
    assert "ends: on request" in daemon.lines[-1]
    assert not is_held(home() / LOCK)


def test_daemon_stops_within_two_seconds_despite_hanging_callers(serving: Serve) -> None:
    daemon = serving()
    hanging = [socket.socket(socket.AF_UNIX) for _ in range(3)]
    for link in hanging:
        link.connect(socket_path(str(home())))
        link.sendall(b"POST /call/")
    wait(lambda: call_daemon("hello")["at_work"] == 3)
    began = time.monotonic()
    assert daemon.end() == 0
    assert (
        time.monotonic() - began < 3
    )  # two seconds, plus the end of the process on a busy machine
    for link in hanging:
        link.close()


def test_daemon_stops_within_two_seconds_despite_running_operations(
    serving: Serve, learned: Any
) -> None:
    daemon = serving("--no-watch")
    memory = call_daemon("list")["memories"][0]["id"]
    with FileLock(home() / "vault.lock"), socket.socket(socket.AF_UNIX) as link:
        link.connect(socket_path(str(home())))
        question = {"protocol": 1, "request": {"references": [memory]}}
        link.sendall(request_of("retire", json.dumps(question).encode()))
        wait(lambda: call_daemon("hello")["at_work"] == 1)
        began = time.monotonic()
        assert daemon.end() == 0
        assert (
            time.monotonic() - began < 3
        )  # two seconds, plus the end of the process on a busy machine
    serving("--no-watch")
    assert call_daemon("get", {"reference": memory})["retired"] is None


def test_daemon_restarted_after_a_kill_loses_nothing(serving: Serve, learned: Any) -> None:
    daemon = serving()
    answer = call_daemon("store", {"content": "The mill stands on the left bank of the river"})
    daemon.end(signal.SIGKILL)
    assert Path(socket_path(str(home()))).exists()
    serving()
    assert call_daemon("get", {"reference": answer["memory_id"]})["content"].startswith(
        "The mill stands"
    )


def test_on_demand_daemon_starts_once_in_the_background(
    process: Nacre, processes: Processes, stopped: None
) -> None:
    begun = [
        processes.start(
            command("serve", "--on-demand"), env=environment(), stdout=subprocess.DEVNULL
        )
        for _ in range(4)
    ]
    assert [item.wait(PATIENCE_SECONDS) for item in begun] == [0] * 4
    wait(is_served)
    hello = call_daemon("hello")
    process("serve", "--on-demand")
    assert call_daemon("hello")["pid"] == hello["pid"]
    assert hello["on_demand"] is True
    served = partial(_served_lines, process)
    wait(served)  # the line is printed after the first answer
    assert len(served()) == 1


def _served_lines(process: Nacre) -> list[str]:
    lines = process("serve", "logs", "--json").json["lines"]
    return [line for line in lines if "serves" in line]


def test_on_demand_daemon_stops_when_idle(
    process: Nacre, stopped: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NACRE_DAEMON_IDLE_MINUTES", "0.02")
    process("serve", "--on-demand")
    wait(is_served)
    wait(lambda: not is_held(home() / LOCK))
    assert any("ends: idle" in line for line in process("serve", "logs", "--json").json["lines"])


def test_quickstart_on_a_terminal_starts_a_daemon_that_ends_when_idle(
    dialog_process: Callable[..., Outcome],
    process: Nacre,
    stopped: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NACRE_DAEMON_IDLE_MINUTES", "0.02")
    output = " ".join(dialog_process("quickstart", answers=[]).out.split())
    assert "The daemon now runs (fast answers)" in output
    assert "it ends after 0.02 minutes without use" in output
    wait(lambda: not is_held(home() / LOCK))
    assert any("ends: idle" in line for line in process("serve", "logs", "--json").json["lines"])


def test_on_demand_daemon_yields_to_a_permanent_daemon(
    serving: Serve, process: Nacre, stopped: None
) -> None:
    process("serve", "--on-demand")
    wait(is_served)
    before = call_daemon("hello")["pid"]
    daemon = serving()
    assert call_daemon("hello")["pid"] == daemon.process.pid != before


def test_daemon_restarts_after_an_update(
    serving: Serve, process: Nacre, processes: Processes, tmp_path: Path, stopped: None
) -> None:
    installed = tmp_path / "site" / "nacre"
    installed.mkdir(parents=True)
    original = Path(package.__file__).parent
    for part in original.iterdir():
        if part.name not in ("__init__.py", "__pycache__"):
            (installed / part.name).symlink_to(part)
    shutil.copy(original / "__init__.py", installed)
    there = {"PYTHONPATH": str(installed.parent)}
    daemon = Serving(processes, environ=there)
    try:
        daemon.until("serves")
        os.utime(installed / "__init__.py", ns=(1, 1))
        daemon.until("nacre was updated")
        daemon.until("serves")
        assert call_daemon("hello")["pid"] == daemon.process.pid
    finally:
        daemon.end()
    process("serve", "--on-demand", environ=there)
    wait(is_served)
    os.utime(installed / "__init__.py", ns=(2, 2))
    wait(lambda: not is_held(home() / LOCK))


def test_daemon_stops_when_its_home_is_deleted(serving: Serve) -> None:
    daemon = serving("--no-watch")
    wait(lambda: call_daemon("hello")["is_warm"])
    shutil.rmtree(home())
    daemon.until("the home was moved or deleted")
    assert daemon.end() == 1
    assert not home().exists()


def test_daemon_stops_if_another_version_changed_the_database(
    serving: Serve, tmp_path: Path
) -> None:
    import apsw

    daemon = serving("--no-watch")
    call_daemon("list")
    connection = apsw.Connection(str(home() / "nacre.db"))
    connection.pragma("user_version", 9_999)
    connection.close()
    refusals = (
        "ending",
        "store_unusable",
        "schema_too_new",
    )  # depending on which version the request meets first
    assert call_raw("list", b'{"protocol": 1}')["error"]["code"] in refusals
    daemon.until("another version of nacre changed the database")
    assert daemon.end() == 1


def test_doctor_reports_the_daemon(serving: Serve, process: Nacre) -> None:
    daemon = serving()

    def daemon_check() -> dict[str, Any]:
        checks = process("admin", "doctor", "--json", code=None).json["checks"]
        return next(check for check in checks if check["name"] == "daemon")

    assert f"process {daemon.process.pid}" in daemon_check()["detail"]
    daemon.end()
    assert daemon_check()["state"] == "ok"


def test_last_host_uninstall_stops_the_daemon_started_for_hosts(
    nacre: Nacre, serving: Serve
) -> None:
    served = serving("--idle")
    nacre("init", "--host", "roo,windsurf", "--yes")
    assert nacre("init", "--host", "roo", "--uninstall", "--yes", "--json").json["daemon"] is None
    assert is_served()
    output = nacre("init", "--uninstall", "--yes").out
    assert "The daemon was stopped" in output
    assert "memories stay" in output
    assert served.end() == 0
    serving("--no-watch")
    assert nacre("init", "--uninstall", "--yes", "--json").json["daemon"]["state"] == "runs"
    assert is_served()


@pytest.mark.usefixtures("stopped")
def test_init_starts_the_daemon_before_the_first_session(process: Nacre) -> None:
    assert process("init", "--host", "roo", "--yes", "--json").json["daemon"]["state"] == "started"
    wait(is_served)
    assert process("init", "--host", "roo", "--yes", "--json").json["daemon"] is None
    assert process("init", "--uninstall", "--yes", "--json").json["daemon"]["state"] == "ended"


def test_daemon_of_another_nacre_version_is_reported_and_stopped(
    nacre: Nacre, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NACRE_DAEMON_ENABLED", "false")
    home().mkdir(exist_ok=True)
    hello = {"pid": 1, "version": "0.0.9", "protocol": 1, "seconds": 1.0, "on_demand": True}
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(socket_path(str(home())))
        door.listen()

        def answer() -> None:
            with suppress(OSError):
                while True:
                    link, _ = door.accept()
                    with link:
                        requests.append(link.recv(9_000).split()[1].decode())
                        body = json.dumps({"result": hello})
                        link.sendall(
                            f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
                        )

        requests: list[str] = []
        Thread(target=answer, daemon=True).start()
        checks = nacre("admin", "doctor", "hosts", "--json").json["checks"]
        init_answer = nacre("init", "--host", "roo", "--yes", "--json").json
    assert checks[0]["detail"].startswith("nacre 0.0.9 serves this home")
    assert (init_answer["daemon"]["version"], init_answer["daemon"]["state"]) == ("0.0.9", "ended")
    assert requests == ["/call/hello", "/call/hello", "/call/stop"]
