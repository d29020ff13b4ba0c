"""Another worker completes a killed worker's job exactly once."""

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
_LOCK_QUERY = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1"


class Worker:
    """A ``nacre server cluster worker`` process."""

    def __init__(self, processes: Processes, *options: str) -> None:
        self.process = processes.start(
            command("server", "cluster", "worker", "--every", "0.3", *options),
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def until(self, words: str) -> str:
        """Return the next line that contains the words."""
        timer = threading.Timer(PATIENCE_SECONDS, self.process.kill)
        timer.start()
        lines = []
        assert self.process.stdout
        for line in self.process.stdout:
            lines.append(line)
            if words in line:
                timer.cancel()
                assert not [item for item in lines if item.startswith("Traceback")], lines
                return line
        raise AssertionError(f"it ended before {words!r}: {lines}")

    def end(self, with_signal: int = signal.SIGTERM) -> int:
        """Stop the process and return its exit code."""
        self.process.send_signal(with_signal)
        self.process.communicate(timeout=PATIENCE_SECONDS)
        return self.process.returncode


@pytest.fixture
def worker(processes: Processes, team: Server, nacre: Nacre) -> Callable[..., Worker]:
    """``worker()`` starts a worker of the team's server."""
    nacre("server", "cluster", "migrate")
    team.open_space("anna", "ferry-team").call("store", content=FACT)
    return lambda *options: Worker(processes, *options)


def test_worker_tends_active_spaces_and_stops_on_sigterm(
    worker: Callable[..., Worker], team: Server
) -> None:
    running_worker = worker()
    running_worker.until("ferry-team: done")
    assert running_worker.end() == 0
    with team.admin as admin:
        query = """SELECT t.number >= max(a.number) FROM nacre_spaces.tended t
            JOIN nacre_spaces.audit_log a USING (space) WHERE space = 'ferry-team' GROUP BY t.number"""
        assert admin.execute(query).fetchone() == (1,)


def test_job_of_a_killed_worker_is_finished_by_another(
    worker: Callable[..., Worker], team: Server
) -> None:
    with team.admin as admin:
        with admin.transaction():  # the job stops here, halfway through
            admin.execute("LOCK TABLE nacre_spaces.tended IN ACCESS EXCLUSIVE MODE")
            admin.execute(
                "INSERT INTO nacre_spaces.tended VALUES ('anna', 10000), ('ben', 10000), ('rita', 10000)"
            )
            admin.execute("SELECT set_config('lock_timeout', '0', true)")
        with admin.transaction():
            admin.execute(
                "LOCK TABLE nacre_spaces.tended IN SHARE MODE"
            )  # other clients read and do not write
            first = worker()
            wait(lambda: admin.execute(_LOCK_QUERY).fetchone())
            assert first.process.poll() is None
            assert first.end(signal.SIGKILL) == -signal.SIGKILL
    second = worker()
    second.until("ferry-team: done")
    assert second.end() == 0
    memories = team.open_space("anna", "ferry-team").call("list").memories
    assert [item.content for item in memories] == [FACT]


def test_failed_job_is_repeated_later(worker: Callable[..., Worker], team: Server) -> None:
    with team.admin as admin:
        admin.execute(
            "INSERT INTO nacre_spaces.tended VALUES ('anna', 10000), ('ben', 10000), ('rita', 10000)"
        )
        admin.execute("ALTER TABLE nacre_spaces.members RENAME TO gone")
    running_worker = worker()
    assert "done" not in running_worker.until("ferry-team: ")
    with team.admin as admin:
        admin.execute("ALTER TABLE nacre_spaces.gone RENAME TO members")
    running_worker.until("ferry-team: done")
    assert running_worker.end() == 0
