"""An API and a worker, with their reports, run in the process of the test."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import httpx2 as httpx

from nacre.settings import load_settings
from nacre_server.cluster import Worker
from servers.cluster.conftest import key_of, serving_here
from servers.spaces.conftest import Server
from tests.cli.conftest import Nacre

_FACT = "The ferry timetable is kept in the file tides.csv."


def test_worker_tends_a_changed_space_until_stopped(
    team: Server, nacre: Nacre, tmp_path: Path
) -> None:
    assert "already" in nacre("server", "cluster", "migrate").out
    team.open_space("anna", "ferry-team").call("store", content=_FACT)
    logged: list[str] = []
    stop = Event()

    def tell(line: str) -> None:
        logged.append(line)
        if len(logged) == 5:
            stop.set()

    Worker(load_settings(), tmp_path, tell).run(stop, 0.1)
    assert logged[0] == "worker started"
    assert sorted(logged[1:]) == [f"{name}: done" for name in ("anna", "ben", "ferry-team", "rita")]


def test_api_answers_keys_until_stopped(team: Server, tmp_path: Path) -> None:
    ben, rita = key_of(team, "ben"), key_of(team, "rita")
    with (
        serving_here(tmp_path) as (address, logged),
        httpx.Client(base_url=address, trust_env=False, verify=False) as client,
    ):
        store = {"content": _FACT, "scope": "personal"}
        assert client.post("/api/v1/store", json=store, headers=ben).status_code == 200
        assert client.post("/api/v1/store", json=store).status_code == 401
        assert client.post("/api/v1/store", json={"content": _FACT}, headers=rita).is_client_error
        response = client.post("/api/v1/recall", json={"text": "ferry timetable?"}, headers=ben)
        assert _FACT in response.text
        assert client.get("/health/ready").status_code == 200
    assert logged[1:] == ["stopping: finishing the requests in progress"]
