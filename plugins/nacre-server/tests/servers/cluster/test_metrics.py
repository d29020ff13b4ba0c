"""Figures for Prometheus: what was done, how it ended, and no word of what it was about."""

from __future__ import annotations

import re
import socket
import subprocess
from collections.abc import Callable

import httpx2 as httpx

from servers.cluster.conftest import PATIENCE_SECONDS, Api, key_of
from servers.spaces.conftest import Server
from tests.cli.conftest import Nacre, command, environment
from tests.processes import Processes

_FACT = "The ferry timetable is kept in the file tides.csv."


def _figures(address: str) -> str:
    return httpx.get(address, timeout=PATIENCE_SECONDS, trust_env=False, verify=False).text


def test_api_process_counts_operations_by_name_and_outcome(
    team: Server, api: Callable[..., Api]
) -> None:
    one = api("--metrics", "0")
    ben, rita = key_of(team, "ben"), key_of(team, "rita")
    one.post("store", {"content": _FACT, "scope": "personal"}, ben)
    one.post("store", {"content": _FACT}, rita)
    one.post("recall", {"text": "where is the ferry timetable kept?"}, rita)
    told = _figures(one.figures)
    assert 'nacre_requests_total{name="store",outcome="ok"} 1.0' in told
    assert 'nacre_requests_total{name="store",outcome="not_allowed"} 1.0' in told
    assert 'nacre_requests_seconds_count{name="recall"} 1.0' in told
    assert "nacre_requests_running 0.0" in told
    assert "process_resident_memory_bytes" in told
    for word in ("ferry", "ben", "rita"):
        assert word not in told
    assert (
        "nacre_requests"
        not in httpx.get(f"{one.base}/metrics", headers=ben, trust_env=False, verify=False).text
    )


def test_worker_counts_its_jobs(team: Server, process: Nacre, processes: Processes) -> None:
    process("server", "cluster", "migrate")
    team.opened("anna").call("store", content=_FACT)
    worker = processes.start(
        command("server", "cluster", "worker", "--metrics", "0", "--every", "0.2"),
        env=environment(),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert worker.stdout
    lines = iter(worker.stdout.readline, "")
    found = re.search(r"metrics at (http\S+)", next(lines))
    assert found
    next(line for line in lines if "anna: done" in line)
    assert re.search(r'nacre_jobs_total{name="tend",outcome="ok"} [1-9]', _figures(found[1]))
    worker.terminate()
    worker.communicate(timeout=PATIENCE_SECONDS)


def test_occupied_metrics_port_is_reported(team: Server, process: Nacre) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        told = process(
            "server",
            "cluster",
            "api",
            "--http",
            "0",
            "--metrics",
            str(taken.getsockname()[1]),
            code=5,
        )
    assert "cannot listen" in told.err
