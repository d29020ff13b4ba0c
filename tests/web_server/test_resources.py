"""REST resources such as memories support entity tags, pagination and JSON Lines."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from nacre.api import open_memory
from nacre.base.ids import utc_now
from nacre.store.gateway import GatewayStore
from nacre.values.gateway import Chat, Pairing
from tests.web.story import talk
from tests.web_server.conftest import Site

Serve = Callable[..., Site]


def store_memories(count: int) -> list[str]:
    with open_memory() as memory:
        texts = [
            f"The crane {chr(97 + number)} lifts {number + 2} tonnes" for number in range(count)
        ]
        return [memory.store(text, force=True).memory_id for text in texts]


@pytest.fixture
def program(site: Serve) -> Callable[..., Any]:
    """``program("GET", "/memories")`` sends a request with the token."""
    store_memories(5)
    served = site()

    def ask(method: str, path: str, body: Any = None, **headers: str) -> Any:
        sent_headers = {
            name.replace("_", "-"): value for name, value in headers.items()
        } | served.token
        return served.client.request(
            method, f"{served.base}/api/v1{path}", json=body, headers=sent_headers
        )

    return ask


def test_memories_are_listed_read_changed_and_retired(program: Callable[..., Any]) -> None:
    page = program("GET", "/memories").json()
    assert page["total"] == 5
    memory_id = page["memories"][0]["id"]
    created = program("POST", "/store", {"content": "Gulls sleep on the pier", "tags": ["birds"]})
    assert (created.status_code, created.json()["action"]) == (200, "stored")
    assert created.json()["proposed"]
    gulls = created.json()["memory_id"]
    response = program("GET", f"/memories/{gulls}")
    assert response.json()["memory"]["content"] == "Gulls sleep on the pier"
    again = program("POST", "/store", {"content": "Gulls sleep on the pier"})
    assert (again.status_code, again.json()["action"]) == (200, "known")
    edited = program("POST", "/edit", {"reference": gulls, "subject": "Sleeping gulls"})
    assert edited.json()["subject"] == "Sleeping gulls"
    retired = program("POST", "/retire", {"references": [gulls], "reason": "wrong"})
    assert retired.json()[0]["retired"]["reason"] == "wrong"
    assert memory_id in [memory["id"] for memory in program("GET", "/memories").json()["memories"]]
    assert program("GET", "/memories/retired").json()[0]["subject"] == "Sleeping gulls"
    assert program("GET", "/memories/nothing-of-that").status_code == 404


def test_edit_of_a_changed_memory_overwrites_nothing(program: Callable[..., Any]) -> None:
    store_memories = program("POST", "/store", {"content": "Gulls sleep on the pier"}).json()
    place = f"/memories/{store_memories['memory_id']}"
    response = program("GET", place)
    assert program("GET", place, if_none_match=response.headers["etag"]).status_code == 304

    def edit(subject: str, etag: str) -> Any:
        fields = {"reference": store_memories["memory_id"], "subject": subject, "expected": etag}
        return program("POST", "/edit", fields)

    assert edit("Gulls", response.json()["etag"]).status_code == 200
    late = edit("Terns", response.json()["etag"])
    assert late.status_code == 409
    assert late.json()["code"] == "edit_conflict"
    assert late.json()["hint"]
    now = program("GET", place, if_none_match=response.headers["etag"]).json()
    assert now["memory"]["subject"] == "Gulls"
    assert edit("Terns", now["etag"]).json()["subject"] == "Terns"


def test_links_lead_through_all_pages_of_a_list(program: Callable[..., Any]) -> None:
    response = program("GET", "/memories?nothing=1")
    assert response.status_code == 400
    assert response.headers["content-type"] == "application/problem+json"
    ids: list[str] = []
    path = "/memories?limit=2&kind=fact"
    while path:
        page = program("GET", path)
        ids += [memory["id"] for memory in page.json()["memories"]]
        path = page.links.get("next", {}).get("url", "").removeprefix("/api/v1")
    assert len(ids) == len(set(ids)) == 5


def test_query_parameters_are_request_and_filter_fields(
    program: Callable[..., Any],
) -> None:
    program("POST", "/store", {"content": "Toll is paid at noon", "kind": "todo", "tags": ["toll"]})
    assert program("GET", "/memories?kind=todo").json()["total"] == 1
    assert program("GET", "/memories?kinds=todo&kinds=fact").json()["total"] == 6
    assert program("GET", "/memories?tag=toll&limit=1").json()["total"] == 1
    assert program("GET", "/memories?since=2030-01-01").json()["total"] == 0
    assert program("GET", "/memories?until=2030-01-01T00:00:00Z").json()["total"] == 6
    page = program("GET", "/search?q=crane&limit=2").json()
    assert page["query"] == "crane"
    assert len(page["hits"]) == 2
    for path in (
        "/memories?limit=-1",
        "/memories?limit=x",
        "/memories?limit=1&limit=2",
        "/search",
        "/memories?kind=x",
    ):
        response = program("GET", path)
        assert response.status_code == 400, path
        assert response.json()["code"] == "invalid_input"
        assert response.json()["hint"]


def test_reading_does_not_count_as_usage(program: Callable[..., Any]) -> None:
    memory_id = program("GET", "/search?q=crane&limit=1").json()["hits"][0]["memory"]["id"]

    def used() -> int:
        with open_memory() as memory:  # imports concurrently recorded changes
            memory.store("The quay is wet")
        return int(program("GET", f"/memories/{memory_id}").json()["usage"]["access_count"])

    assert used() == 0
    program("GET", f"/memories/{memory_id}?update=true")
    assert used() == 1


def test_owner_page_is_writable_by_the_owner_without_overwriting(
    site: Serve,
) -> None:
    served = site()
    write = f"{served.base}/api/v1/page-write"
    text = {"name": "profile", "text": "Likes tea"}
    assert served.client.post(write, json=text, headers=served.token).status_code == 403
    browser = served.browser()
    first = served.client.post(write, json=text, headers=browser).json()
    assert first["text"].strip() == "Likes tea"
    page = f"{served.base}/api/v1/pages/profile"
    response = served.client.get(page, headers=browser).json()
    assert response["etag"] == first["etag"]
    milk = {"name": "profile", "text": "Likes milk", "expected": response["etag"]}
    assert served.client.post(write, json=milk, headers=browser).status_code == 200
    late = served.client.post(write, json=milk | {"text": "Likes rum"}, headers=browser)
    assert late.status_code == 409
    assert served.client.get(page, headers=browser).json()["text"].strip() == "Likes milk"


def test_wrong_method_lists_the_allowed_methods(program: Callable[..., Any]) -> None:
    response = program("PUT", "/memories")
    assert response.status_code == 405
    assert {part.strip() for part in response.headers["allow"].split(",")} == {"GET", "HEAD"}
    assert program("HEAD", "/memories").status_code == 200


def test_chats_are_listed_read_and_ended_and_senders_admitted(site: Serve) -> None:
    at, home = utc_now(), Path(os.environ["NACRE_HOME"])
    store_memories(1)
    with closing(GatewayStore.open(home)) as store:
        session = talk(
            store, home, Chat("telegram", "4711"), "Otto", [("owner", "Is the lock shut?")], at
        )
        store.ask_pairing(Pairing("telegram", "77", "Ines", "K7QM-2XDP", at))
    served = site()
    owner = served.browser()

    def ask(path: str, **named: str) -> httpx.Response:
        return served.client.get(f"{served.base}/api/v1/chats{path}", headers=named or owner)

    def run(operation: str, fields: Any, **named: str) -> httpx.Response:
        return served.client.post(
            f"{served.base}/api/v1/{operation}", json=fields, headers=named or owner
        )

    assert [item["id"] for item in ask("").json()] == [session]
    assert ask("?channel=discord").json() == []
    assert [message["text"] for message in ask("/telegram:4711").json()["messages"]] == [
        "Is the lock shut?"
    ]
    assert [item["code"] for item in ask("/status").json()["waiting"]] == ["K7QM-2XDP"]
    assert run("gateway-end", {"reference": session}, **served.token).status_code == 403
    assert run("gateway-end", {"reference": session}).json()["closed"]
    assert ask("").json() == []
    assert ask("/pairings", **served.token).status_code == 403
    assert run("gateway-pair", {"who": "k7qm 2xdp"}).json()["pairing"]["approved"]
    assert [item["sender"] for item in ask("/pairings").json()] == ["77"]
    assert run("gateway-unpair", {"who": "telegram:77"}).status_code == 200
    assert ask("/pairings").json() == []
    assert ask("/nobody").status_code == 404
