"""Any API process answers any request by key, and none stores state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import httpx2 as httpx
import psycopg
import pytest

from nacre_server.connection import connect
from servers.cluster.conftest import PATIENCE_SECONDS, Api, Balancer, key_of
from servers.spaces.conftest import Server
from tests.processes import wait

_FACT = "The ferry timetable is kept in the file tides.csv."
_QUESTION = {"text": "where is the ferry timetable kept?"}
_WRITERS = 3


def _contents(answer: httpx.Response) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [hit["memory"]["content"] for hit in answer.json()["hits"]]


def test_stored_memory_is_recalled_by_another_process(
    team: Server, api: Callable[..., Api]
) -> None:
    key, first, second = key_of(team, "ben"), api(), api()
    assert first.post("store", {"content": _FACT, "scope": "personal"}, key).status_code == 200
    assert _contents(second.post("recall", _QUESTION, key)) == [_FACT]


def test_memory_sent_to_several_processes_is_stored_once(
    team: Server, api: Callable[..., Api]
) -> None:
    key, processes = key_of(team, "ben"), [api(), api()]

    def post(process: Api) -> str:
        answer = process.post("store", {"content": _FACT, "scope": "personal"}, key)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["action"])

    with ThreadPoolExecutor(8) as threads:
        actions = Counter(threads.map(post, processes * 4))
    assert actions == {"stored": 1, "known": 7}
    assert [
        memory.content for memory in team.open_space("anna", "ferry-team").call("list").memories
    ] == [_FACT]


def test_unavailable_server_is_not_reported_as_a_wrong_key(
    team: Server, api: Callable[..., Api], server_url: str
) -> None:
    key, process = key_of(team, "ben"), api()
    assert process.post("list", {}, key).status_code == 200
    name = psycopg.conninfo.conninfo_to_dict(team.url)["dbname"]
    with connect(server_url) as admin:
        admin.execute(f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS false")
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,)
        )
        unavailable = process.post("list", {}, key)
        admin.execute(f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS true")
    assert unavailable.status_code == 503
    assert unavailable.headers["retry-after"]
    assert process.post("list", {}, key).status_code == 200


def test_api_requires_a_key_and_has_no_memory(team: Server, api: Callable[..., Api]) -> None:
    process = api()
    assert process.post("recall", _QUESTION, {}).status_code == 401
    assert process.get("/api/v1/events").status_code == 401
    assert (
        httpx.post(f"{process.base}/mcp", json={}, trust_env=False, verify=False).status_code == 401
    )
    response = process.post("keys-revoke", {"id": "12345678"}, key_of(team, "anna", role="owner"))
    assert response.status_code == 403


def test_agent_tools_work_in_the_space_of_their_key(team: Server, api: Callable[..., Api]) -> None:
    process, ben, rita = api(), key_of(team, "ben"), key_of(team, "rita")
    assert not process.tool("memory_store", {"entries": [{"content": _FACT}]}, ben).get("isError")
    assert "tides.csv" in str(process.tool("memory_search", {"query": _QUESTION["text"]}, rita))
    assert process.tool("memory_store", {"entries": [{"content": "Dogs travel free."}]}, rita)[
        "isError"
    ]
    assert "tides.csv" in str(team.open_space("anna", "ferry-team").call("list"))


@pytest.mark.parametrize("account", ["ben", "rita"])
def test_space_events_reach_clients_of_another_process(
    team: Server, api: Callable[..., Api], account: str
) -> None:
    first, second, writer = api(), api(), key_of(team, "ben")
    with httpx.stream(
        "GET",
        f"{second.base}/api/v1/events",
        headers=key_of(team, account),
        timeout=PATIENCE_SECONDS,
        trust_env=False,
        verify=False,
    ) as stream:
        lines = _lines(stream)
        assert "hello" in next(line for line in lines if line.startswith("data:"))
        outcome = first.post("store", {"content": _FACT}, writer).json()
        assert outcome["action"] == "stored", outcome
        assert "memory" in next(
            line for line in lines if line.startswith("data:") and "stored" in line
        )


def _lines(stream: httpx.Response) -> Iterator[str]:
    assert stream.status_code == 200, stream.read()
    yield from stream.iter_lines()


def test_stopping_process_finishes_requests_and_leaves_no_file(
    team: Server, api: Callable[..., Api], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    key, process = key_of(team, "ben"), api("--linger", "2")
    assert process.get("/health/live").status_code == 200
    assert process.get("/health/ready").json() == {"status": "ok"}
    process.process.terminate()
    while (answer := process.get("/health/ready")).status_code == 200:
        pass
    assert answer.json() == {"status": "leaving"}
    assert answer.headers["connection"] == "close"
    assert process.post("store", {"content": _FACT}, key).status_code == 200
    assert process.end() == 0
    assert list(tmp_path.glob("nacre-api-*")) == []


def test_blocked_write_does_not_delay_other_spaces(team: Server, api: Callable[..., Api]) -> None:
    process, key = api(), key_of(team, "ben")
    own = {
        "Authorization": f"Bearer {team.open_space('rita').call('keys-create', space='rita').secret}"
    }
    with team.admin as admin, ThreadPoolExecutor(50) as threads:
        with admin.transaction():
            admin.execute("SELECT pg_advisory_xact_lock(hashtextextended('ferry-team', 0))")
            waiting = [
                threads.submit(
                    process.post,
                    "store",
                    {"content": f"Berth {number} is {number * 7} metres long."},
                    key,
                )
                for number in range(50)
            ]
            wait(lambda: admin.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchone())
            assert (
                process.post("store", {"content": _FACT, "scope": "personal"}, own).status_code
                == 200
            )
            assert _contents(process.post("recall", _QUESTION, own)) == [_FACT]
            assert not any(answer.done() for answer in waiting)
        assert {answer.result().status_code for answer in waiting} == {200}


def test_rolling_restart_neither_loses_nor_duplicates_requests(
    team: Server, api: Callable[..., Api]
) -> None:
    balancer, stop = Balancer(key_of(team, "ben")), Event()
    balancer.processes = [api("--linger", "1"), api("--linger", "1")]
    with ThreadPoolExecutor(_WRITERS) as threads:
        for name in "abc"[:_WRITERS]:
            threads.submit(balancer.store, stop, name)
        for place in range(2):
            fresh, old = api("--linger", "1"), balancer.processes[place]
            balancer.processes[place] = fresh
            assert old.end() == 0
        stop.set()
    assert balancer.errors == []
    assert len(balancer.answered) > _WRITERS
    contents = Counter(
        memory.content
        for memory in team.open_space("anna", "ferry-team").call("list", limit=10_000).memories
    )
    assert contents == Counter(balancer.answered)
