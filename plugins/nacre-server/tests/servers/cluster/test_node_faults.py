"""Nodes of Citus that end without a word while many write: make test-cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event

import pytest
from nacre_server.queue import MOST_TRIES

from nacre.api import open_memory
from nacre_server.connection import connect
from servers.cluster.conftest import Api, Balancer
from servers.cluster.test_worker import Worker
from tests.cli.conftest import Nacre
from tests.processes import Processes
from tests.storage import cluster
from tests.storage.cluster import Cluster

pytestmark = pytest.mark.skipif(
    not cluster.SERVER, reason="needs Citus: make test-cluster CITUS_SRC=/path"
)

_PEOPLE = tuple("abcdefgh")


@pytest.fixture
def many() -> Iterator[Cluster]:
    """A coordinator and two nodes, of this test alone."""
    with cluster.running() as found:
        yield found


def _keys(many: Cluster, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The key of each person."""
    monkeypatch.setenv("NACRE_DB", many.url)
    found = {}
    for person in _PEOPLE:
        monkeypatch.setenv("NACRE_STORAGE_ACCOUNT", person)
        monkeypatch.setenv("NACRE_STORAGE_TENANT", person)
        with open_memory() as memory:
            memory.call("spaces-create", space=person, kind="person")
            found[person] = memory.call("keys-create", space=person).secret
    return found


def _ports(many: Cluster) -> dict[str, int]:
    """At which node the rows of each person lie."""
    asked = """SELECT s.nodeport FROM citus_shards s
        WHERE s.shardid = get_shard_id_for_distribution_column('nacre_rows.memories', %s)"""
    with connect(many.url) as coordinator:
        return {
            person: coordinator.execute(asked, (person,)).fetchall()[0][0] for person in _PEOPLE
        }


@contextmanager
def _writing(*balancers: Balancer) -> Iterator[None]:
    """While one client of each writes; each has written before the block, and once more after it."""
    stop = Event()
    with ThreadPoolExecutor(len(balancers)) as threads:
        writers = [
            threads.submit(one.store, stop, f"w{number}") for number, one in enumerate(balancers)
        ]
        try:
            _more(*balancers)
            yield
            _more(*balancers)
        finally:
            stop.set()
    for writer in writers:
        writer.result()


def _more(*balancers: Balancer) -> None:
    wanted = [len(one.answered) + 3 for one in balancers]
    while any(len(one.answered) < number for one, number in zip(balancers, wanted, strict=True)):
        assert not any(one.errors for one in balancers), [one.errors for one in balancers]


def _until_told(*balancers: Balancer) -> None:
    before = [len(one.broken) for one in balancers]
    while any(len(one.broken) == number for one, number in zip(balancers, before, strict=True)):
        pass


def test_killed_node_affects_only_its_own_tenants(
    many: Cluster,
    api: Callable[..., Api],
    monkeypatch: pytest.MonkeyPatch,
    processes: Processes,
    nacre: Nacre,
) -> None:
    keys, ports = _keys(many, monkeypatch), _ports(many)
    nacre("server", "cluster", "migrate")
    worker = Worker(processes)
    coordinator, first, second = many.nodes
    here, there = (
        next(one for one in _PEOPLE if ports[one] == node.port) for node in (first, second)
    )
    balancers = {one: Balancer({"Authorization": f"Bearer {keys[one]}"}) for one in (here, there)}
    processes = [api(), api()]
    for one in balancers.values():
        one.processes = processes
    with _writing(*balancers.values()):
        first.kill()
        _until_told(balancers[here])
        for _ in range(MOST_TRIES + 1):
            worker.until(f"{here}: store_away")
        worker.until(f"{there}: done")
        told = len(balancers[there].broken)
        _more(balancers[there])
        assert len(balancers[there].broken) == told, "who lies elsewhere notices nothing"
        first.start()
        _more(*balancers.values())
        worker.until(f"{here}: done")
        coordinator.kill()
        _until_told(*balancers.values())
        worker.until("waits for it")
        coordinator.start()
        worker.until("works")
    assert worker.end() == 0
    for person, balancer in balancers.items():
        listed = (
            processes[0]
            .post("list", {"limit": 10_000}, {"Authorization": f"Bearer {keys[person]}"})
            .json()
        )
        found = Counter(one["content"] for one in listed["memories"])
        assert {text: found[text] for text in balancer.answered} == dict.fromkeys(
            balancer.answered, 1
        )
        assert max(found.values()) == 1
        assert set(found) <= set(balancer.answered)
