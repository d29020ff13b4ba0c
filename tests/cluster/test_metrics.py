"""Figures for Prometheus: what was done, how it ended, and no word of what it was about."""

from __future__ import annotations

import re
import socket
import subprocess
from collections.abc import Callable

import httpx2 as httpx
import psycopg

from nacre.store.postgres_connection import connect
from tests.cli.conftest import Nacre, command, environment
from tests.cluster.conftest import PATIENCE_SECONDS, Api, key_of
from tests.processes import Processes
from tests.spaces.conftest import Server

_FACT = "The ferry timetable is kept in the file tides.csv."


def _figures(address: str) -> str:
    return httpx.get(address, timeout=PATIENCE_SECONDS, trust_env=False).text


def test_a_process_that_answers_counts_operations_by_name_and_outcome(
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
        "nacre_requests" not in httpx.get(f"{one.base}/metrics", headers=ben, trust_env=False).text
    )


def test_a_worker_counts_its_jobs(team: Server, process: Nacre, processes: Processes) -> None:
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
    found = re.search(r"figures at (http\S+)", next(lines))
    assert found
    next(line for line in lines if "anna: done" in line)
    assert re.search(r'nacre_jobs_total{name="tend",outcome="ok"} [1-9]', _figures(found[1]))
    worker.terminate()
    worker.communicate(timeout=PATIENCE_SECONDS)


def test_metrics_page_shows_activity_and_server_health(
    team: Server, api: Callable[..., Api], process: Nacre
) -> None:
    process("server", "cluster", "migrate")
    one = api("--metrics", "0")
    place, ben, rita = (
        one.figures.removesuffix("metrics"),
        key_of(team, "ben"),
        key_of(team, "rita"),
    )
    assert "Nothing yet" in _figures(place)
    one.post("store", {"content": _FACT, "scope": "personal"}, ben)
    one.post("store", {"content": _FACT}, rita)
    answer = httpx.get(place, timeout=PATIENCE_SECONDS, trust_env=False)
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    rows = [
        re.sub(r"<[^>]*>", " ", row).split() for row in re.findall(r"<tr>(.*?)</tr>", answer.text)
    ]
    assert ["spaces", "4"] in rows
    assert ["keys", "that", "hold", "2"] in rows
    assert ["jobs", "that", "wait", "0"] in rows
    assert [row[:4] for row in rows if row[0] == "store"] == [["store", "2", "1", "not_allowed"]]
    for word in ("ferry", "ben", "rita"):
        assert word not in answer.text
    assert httpx.get(f"{place}jobs", trust_env=False).status_code == 404


def test_the_page_says_when_the_server_is_away(
    team: Server, api: Callable[..., Api], server_url: str
) -> None:
    one = api("--metrics", "0")
    name = psycopg.conninfo.conninfo_to_dict(team.url)["dbname"]
    with connect(server_url) as admin:
        admin.execute(f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS false")
        told = _figures(one.figures.removesuffix("metrics"))
        admin.execute(f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS true")
    assert "It does not answer" in told


def test_a_port_that_is_taken_is_told(team: Server, process: Nacre) -> None:
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
