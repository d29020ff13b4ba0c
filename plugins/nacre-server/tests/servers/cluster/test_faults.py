"""Killed processes and servers lose and duplicate nothing while many clients write."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from typing import Any

import httpx2 as httpx
import pytest

from servers.cluster.conftest import PATIENCE_SECONDS, Api, Balancer, key_of
from servers.cluster.test_worker import Worker
from servers.spaces.conftest import Server
from tests.cli.conftest import Nacre
from tests.processes import Processes, wait
from tests.storage.server import kill, running, start

_WRITERS = 4
_CLIENTS = 300
_FACT = "The ferry timetable is kept in the file tides.csv."


@pytest.fixture
def own_server() -> Iterator[Any]:
    """A PostgreSQL server that a test may kill."""
    with running() as server:
        yield server


@pytest.fixture
def server_url(own_server: Any) -> str:
    return str(own_server.get_uri())


@contextmanager
def _writing(balancer: Balancer) -> Iterator[None]:
    """Run the block while clients write, with writes before the block and after it."""
    stop = Event()
    with ThreadPoolExecutor(_WRITERS) as threads:
        writers = [threads.submit(balancer.store, stop, name) for name in "abcdefgh"[:_WRITERS]]
        try:
            _more(balancer)
            yield
            _more(balancer)
        finally:
            stop.set()
    for writer in writers:
        writer.result()


def _more(balancer: Balancer) -> None:
    target = len(balancer.answered) + 2 * _WRITERS
    wait(lambda: balancer.errors or len(balancer.answered) >= target)
    assert not balancer.errors, balancer.errors


def _assert_exactly_once(team: Server, balancer: Balancer) -> None:
    contents = Counter(
        memory.content
        for memory in team.open_space("anna", "ferry-team").call("list", limit=10_000).memories
    )
    assert balancer.errors == []
    assert {text: contents[text] for text in balancer.answered} == dict.fromkeys(
        balancer.answered, 1
    )
    assert max(contents.values()) == 1
    assert set(contents) <= set(balancer.answered), "a text that no client sent"


def test_killed_process_under_load_neither_loses_nor_duplicates_writes(
    team: Server, api: Callable[..., Api]
) -> None:
    balancer = Balancer(key_of(team, "ben"))
    balancer.processes = [api(), api()]
    with _writing(balancer):
        for place in range(2):
            balancer.processes[place].process.send_signal(signal.SIGKILL)
            _more(balancer)
            balancer.processes[place] = api()
    _assert_exactly_once(team, balancer)


def test_server_killed_under_load_neither_loses_nor_duplicates_writes(
    own_server: Any, team: Server, api: Callable[..., Api]
) -> None:
    balancer = Balancer(key_of(team, "ben"))
    balancer.processes = [api(), api()]
    with _writing(balancer):
        for _ in range(2):
            kill(own_server)
            before = len(balancer.broken)
            wait(lambda: len(balancer.broken) >= before + _WRITERS)  # noqa: B023
            assert [process.get("/health/ready").status_code for process in balancer.processes] == [
                503,
                503,
            ]
            assert [process.get("/health/live").status_code for process in balancer.processes] == [
                200,
                200,
            ]
            start(own_server)
            _more(balancer)
    assert {process.get("/health/ready").status_code for process in balancer.processes} == {200}
    _assert_exactly_once(team, balancer)


def test_hundreds_of_simultaneous_clients_are_answered(
    team: Server, api: Callable[..., Api]
) -> None:
    process, key = api(), key_of(team, "ben")
    assert process.post("store", {"content": _FACT, "scope": "personal"}, key).status_code == 200

    async def come(client: httpx.AsyncClient) -> int:
        answer = await client.post(f"{process.base}/api/v1/list", json={}, headers=key)
        return answer.status_code

    async def all_at_once() -> list[int]:
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(
            timeout=2 * PATIENCE_SECONDS, limits=limits, trust_env=False, verify=False
        ) as client:
            return await asyncio.gather(*(come(client) for _ in range(_CLIENTS)))

    assert Counter(asyncio.run(all_at_once())) == {200: _CLIENTS}
    assert process.post("list", {}, key).status_code == 200


def test_worker_waits_for_a_killed_server_and_continues(
    own_server: Any, team: Server, processes: Processes, nacre: Nacre
) -> None:
    nacre("server", "cluster", "migrate")
    team.open_space("anna", "ferry-team").call("store", content=_FACT)
    worker_a, worker_b = Worker(processes), Worker(processes)
    for worker in (worker_a, worker_b):
        worker.until("worker started")
    kill(own_server)
    for worker in (worker_a, worker_b):
        worker.until("the server does not answer; waiting")
    assert worker_b.end() == 0
    start(own_server)
    worker_a.until("the server answers again")
    team.open_space("anna", "ferry-team").call(
        "store", content="The sand bank has moved to the west."
    )
    worker_a.until("ferry-team: done")
    assert worker_a.end() == 0
