"""Workers: what they are killed at is done by another one, once."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import threading
from collections.abc import Callable
from typing import Any

import pytest

from nacre.errors import MissingStoreError
from nacre_server.queue import MOST_TRIES, deferred, queue_of
from servers.spaces.conftest import Server
from tests.cli.conftest import Nacre, command, environment
from tests.processes import Processes, wait

FACT = "The ferry timetable is kept in the file tides.csv."
PATIENCE_SECONDS = 60


class Worker:
    """``nacre server cluster worker`` as a process."""

    def __init__(self, processes: Processes, *options: str) -> None:
        self.process = processes.start(
            command("server", "cluster", "worker", "--every", "0.3", "--lease", "2", *options),
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


def _jobs(nacre: Nacre) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = nacre("server", "cluster", "jobs", "--json").json["jobs"]
    return found


def test_worker_tends_active_spaces_and_stops_on_sigterm(
    worker: Callable[..., Worker], team: Server, nacre: Nacre
) -> None:
    one = worker()
    one.until("ferry-team: done")
    assert one.end() == 0
    assert not [job for job in _jobs(nacre) if job["space"] == "ferry-team"]
    with team.admin as admin:
        asked = """SELECT t.number >= max(a.number) FROM nacre_spaces.tended t
            JOIN nacre_spaces.audit_log a USING (space) WHERE space = 'ferry-team' GROUP BY t.number"""
        assert admin.execute(asked).fetchone() == (1,)


def test_job_of_a_killed_worker_is_finished_by_another(
    worker: Callable[..., Worker], team: Server, nacre: Nacre
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
            wait(lambda: [job for job in _jobs(nacre) if job["state"] == "doing"])
            assert first.process.poll() is None
            assert first.end(signal.SIGKILL) == -signal.SIGKILL
        assert [job["state"] for job in _jobs(nacre)] == ["doing"]
    second = worker()
    second.until("repeats: ferry-team")
    second.until("ferry-team: done")
    assert second.end() == 0
    assert _jobs(nacre) == []
    found = team.opened("anna", "ferry-team").call("list").memories
    assert [one.content for one in found] == [FACT]


def test_repeatedly_failing_job_is_given_up_until_released(
    worker: Callable[..., Worker], team: Server, nacre: Nacre
) -> None:
    with team.admin as admin:
        admin.execute(
            "INSERT INTO nacre_spaces.tended VALUES ('anna', 10000), ('ben', 10000), ('rita', 10000)"
        )
        admin.execute("ALTER TABLE nacre_spaces.members RENAME TO gone")
    one = worker("--backoff", "0")
    for _ in range(5):
        one.until("ferry-team: ")
    while [job["state"] for job in _jobs(nacre)] != ["failed"]:
        assert one.process.poll() is None
    assert "given up" in nacre("server", "cluster", "jobs").out
    with team.admin as admin:
        admin.execute("ALTER TABLE nacre_spaces.gone RENAME TO members")
    nacre("server", "cluster", "jobs", "--retry", str(_jobs(nacre)[0]["id"]))
    one.until("ferry-team: done")
    assert one.end() == 0
    assert _jobs(nacre) == []


def test_jobs_retry_all_releases_all_given_up_jobs(
    worker: Callable[..., Worker], team: Server, nacre: Nacre
) -> None:
    with team.admin as admin:
        admin.execute("ALTER TABLE nacre_spaces.members RENAME TO gone")
    one = worker("--backoff", "0")
    while [job["state"] for job in _jobs(nacre)] != ["failed"] * 4:
        assert one.process.poll() is None
    with team.admin as admin:
        admin.execute("ALTER TABLE nacre_spaces.gone RENAME TO members")
    assert "the number of a job" in nacre("server", "cluster", "jobs", "--retry", "x", code=2).err
    assert (
        nacre("server", "cluster", "jobs", "--retry", "all").out.strip() == "Queued again: 4 jobs."
    )
    for _ in range(4):
        one.until(": done")
    assert one.end() == 0
    assert _jobs(nacre) == []


def test_outages_do_not_count_as_job_failures(
    worker: Callable[..., Worker], server: Server
) -> None:
    begun: list[str] = []

    def tend(space: str) -> None:
        begun.append(space)
        if len(begun) < 2 * MOST_TRIES:
            raise MissingStoreError("the node is away")

    async def work() -> int:
        app = queue_of(server.url, tend, backoff=0)
        async with app.open_async():
            await deferred(app)("ferry-team")
            await app.run_worker_async(
                wait=False, install_signal_handlers=False, delete_jobs="successful"
            )
            return len(list(await app.job_manager.list_jobs_async()))

    assert asyncio.run(work()) == 0
    assert begun == ["ferry-team"] * 2 * MOST_TRIES
