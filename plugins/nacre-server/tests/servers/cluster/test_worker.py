"""Workers: what they are killed at is done by another one, once."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Callable

import pytest

from servers.spaces.conftest import Server
from tests.cli.conftest import Nacre, command, environment
from tests.processes import Processes, wait

FACT = "The ferry timetable is kept in the file tides.csv."
PATIENCE_SECONDS = 60
_HELD = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1"


class Worker:
    """``nacre server cluster worker`` as a process."""

    def __init__(self, processes: Processes, *options: str) -> None:
        self.process = processes.start(
            command("server", "cluster", "worker", "--every", "0.3", *options),
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def until(self, words: str) -> str:
        """The next line with these words."""
        timer = threading.Timer(PATIENCE_SECONDS, self.process.kill)
        timer.start()
        said = []
        assert self.process.stdout
        for line in self.process.stdout:
            said.append(line)
            if words in line:
                timer.cancel()
                assert not [one for one in said if one.startswith("Traceback")], said
                return line
        raise AssertionError(f"it ended before {words!r}: {said}")

    def end(self, with_signal: int = signal.SIGTERM) -> int:
        """End it; returns its exit code."""
        self.process.send_signal(with_signal)
        self.process.communicate(timeout=PATIENCE_SECONDS)
        return self.process.returncode


@pytest.fixture
def worker(processes: Processes, team: Server, nacre: Nacre) -> Callable[..., Worker]:
    """``worker()`` is a worker of the team's server."""
    nacre("server", "cluster", "migrate")
    team.opened("anna", "ferry-team").call("store", content=FACT)
    return lambda *options: Worker(processes, *options)


def test_worker_tends_active_spaces_and_stops_on_sigterm(
    worker: Callable[..., Worker], team: Server
) -> None:
    one = worker()
    one.until("ferry-team: done")
    assert one.end() == 0
    with team.admin as admin:
        asked = """SELECT t.number >= max(a.number) FROM nacre_spaces.tended t
            JOIN nacre_spaces.audit_log a USING (space) WHERE space = 'ferry-team' GROUP BY t.number"""
        assert admin.execute(asked).fetchone() == (1,)


def test_job_of_a_killed_worker_is_finished_by_another(
    worker: Callable[..., Worker], team: Server
) -> None:
    with team.admin as admin:
        with admin.transaction():  # the job waits here, in its middle
            admin.execute("LOCK TABLE nacre_spaces.tended IN ACCESS EXCLUSIVE MODE")
            admin.execute(
                "INSERT INTO nacre_spaces.tended VALUES ('anna', 10000), ('ben', 10000), ('rita', 10000)"
            )
            admin.execute("SELECT set_config('lock_timeout', '0', true)")
        with admin.transaction():
            admin.execute(
                "LOCK TABLE nacre_spaces.tended IN SHARE MODE"
            )  # others read, and do not write
            first = worker()
            wait(lambda: admin.execute(_HELD).fetchone())
            assert first.process.poll() is None
            assert first.end(signal.SIGKILL) == -signal.SIGKILL
    second = worker()
    second.until("ferry-team: done")
    assert second.end() == 0
    found = team.opened("anna", "ferry-team").call("list").memories
    assert [one.content for one in found] == [FACT]


def test_failed_job_is_repeated_later(worker: Callable[..., Worker], team: Server) -> None:
    with team.admin as admin:
        admin.execute(
            "INSERT INTO nacre_spaces.tended VALUES ('anna', 10000), ('ben', 10000), ('rita', 10000)"
        )
        admin.execute("ALTER TABLE nacre_spaces.members RENAME TO gone")
    one = worker()
    assert "done" not in one.until("ferry-team: ")
    with team.admin as admin:
        admin.execute("ALTER TABLE nacre_spaces.gone RENAME TO members")
    one.until("ferry-team: done")
    assert one.end() == 0
