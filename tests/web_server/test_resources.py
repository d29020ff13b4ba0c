"""Resources: memories and the rest as programs expect them, with entity tags, pages and lists by the line."""

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


def stored(count: int) -> list[str]:
    with open_memory() as memory:
        texts = [
            f"The crane {chr(97 + number)} lifts {number + 2} tonnes" for number in range(count)
        ]
        return [memory.store(text, force=True).memory_id for text in texts]


@pytest.fixture
def program(site: Serve) -> Callable[..., Any]:
    """``program("GET", "/memories")`` asks with the token."""
    stored(5)
    served = site()

    def ask(method: str, path: str, body: Any = None, **headers: str) -> Any:
        named = {name.replace("_", "-"): value for name, value in headers.items()} | served.token
        return served.client.request(
            method, f"{served.base}/api/v1{path}", json=body, headers=named
        )

    return ask


def test_memories_are_listed_read_changed_and_retired(program: Callable[..., Any]) -> None:
    listed = program("GET", "/memories").json()
    assert listed["total"] == 5
    one = listed["memories"][0]["id"]
    made = program("POST", "/memories", {"content": "Gulls sleep on the pier", "tags": ["birds"]})
    assert made.status_code == 201
    assert made.json()["action"] == "stored"
    assert made.json()["proposed"]
    place = made.headers["location"].removeprefix("/api/v1")
    assert program("GET", place).json()["memory"]["content"] == "Gulls sleep on the pier"
    again = program("POST", "/memories", {"content": "Gulls sleep on the pier"})
    assert (again.status_code, again.json()["action"]) == (200, "known")
    assert (
        program("PATCH", place, {"subject": "Sleeping gulls"}).json()["subject"] == "Sleeping gulls"
    )
    assert program("DELETE", f"{place}?reason=wrong").json()[0]["retired"]["reason"] == "wrong"
    assert one in [memory["id"] for memory in program("GET", "/memories").json()["memories"]]
    assert program("GET", "/memories/retired").json()[0]["subject"] == "Sleeping gulls"
    assert program("GET", "/memories/nothing-of-that").status_code == 404


def test_edit_of_a_changed_memory_overwrites_nothing(program: Callable[..., Any]) -> None:
    place = program("POST", "/memories", {"content": "Gulls sleep on the pier"}).headers[
        "location"
    ][7:]
    read = program("GET", place).headers["etag"]
    assert program("GET", place, if_none_match=read).status_code == 304
    assert program("PATCH", place, {"subject": "Gulls"}, if_match=read).status_code == 200
    late = program("PATCH", place, {"subject": "Terns"}, if_match=read)
    assert late.status_code == 412
    assert late.json()["code"] == "edit_conflict"
    assert late.json()["hint"]
    assert program("GET", place, if_none_match=read).json()["memory"]["subject"] == "Gulls"
    now = program("GET", place).headers["etag"]
    assert program("PATCH", place, {"subject": "Terns"}, if_match=now).json()["subject"] == "Terns"
    refused = program("DELETE", place, if_match=now)
    assert (refused.status_code, refused.json()["code"]) == (400, "invalid_input")


def test_links_lead_through_all_pages_of_a_list(program: Callable[..., Any]) -> None:
    refused = program("GET", "/memories?nothing=1")
    assert refused.status_code == 400
    assert refused.headers["content-type"] == "application/problem+json"
    seen: list[str] = []
    path = "/memories?limit=2&kind=fact"
    while path:
        page = program("GET", path)
        seen += [memory["id"] for memory in page.json()["memories"]]
        path = page.links.get("next", {}).get("url", "").removeprefix("/api/v1")
    assert len(seen) == len(set(seen)) == 5


def test_query_parameters_are_request_and_filter_fields(
    program: Callable[..., Any],
) -> None:
    program(
        "POST", "/memories", {"content": "Toll is paid at noon", "kind": "todo", "tags": ["toll"]}
    )
    assert program("GET", "/memories?kind=todo").json()["total"] == 1
    assert program("GET", "/memories?kinds=todo&kinds=fact").json()["total"] == 6
    assert program("GET", "/memories?tag=toll&limit=1").json()["total"] == 1
    assert program("GET", "/memories?since=2030-01-01").json()["total"] == 0
    assert program("GET", "/memories?until=2030-01-01T00:00:00Z").json()["total"] == 6
    found = program("GET", "/search?q=crane&limit=2").json()
    assert found["query"] == "crane"
    assert len(found["hits"]) == 2
    for path in (
        "/memories?limit=-1",
        "/memories?limit=x",
        "/memories?limit=1&limit=2",
        "/search",
        "/memories?kind=x",
    ):
        refused = program("GET", path)
        assert refused.status_code == 400, path
        assert refused.json()["code"] == "invalid_input"
        assert refused.json()["hint"]


def test_reading_does_not_count_as_usage(program: Callable[..., Any]) -> None:
    one = program("GET", "/search?q=crane&limit=1").json()["hits"][0]["memory"]["id"]

    def used() -> int:
        with open_memory() as memory:  # takes in what was noted beside
            memory.store("The quay is wet")
        return int(program("GET", f"/memories/{one}").json()["usage"]["access_count"])

    assert used() == 0
    program("GET", f"/memories/{one}?update=true")
    assert used() == 1


def test_owner_page_is_writable_by_the_owner_without_overwriting(
    site: Serve,
) -> None:
    served = site()
    page = f"{served.base}/api/v1/pages/profile"
    assert (
        served.client.put(page, json={"text": "Likes tea"}, headers=served.token).status_code == 403
    )
    browser = served.browser()
    first = served.client.put(page, json={"text": "Likes tea"}, headers=browser)
    assert first.json()["text"].strip() == "Likes tea"
    read = served.client.get(page, headers=browser).headers["etag"]
    assert read.partition(".")[0] == first.headers["etag"].partition(".")[0]
    assert (
        served.client.put(
            page, json={"text": "Likes milk"}, headers=browser | {"If-Match": read}
        ).status_code
        == 200
    )
    late = served.client.put(page, json={"text": "Likes rum"}, headers=browser | {"If-Match": read})
    assert late.status_code == 412
    assert served.client.get(page, headers=browser).json()["text"].strip() == "Likes milk"


def test_wrong_method_lists_the_allowed_methods(program: Callable[..., Any]) -> None:
    refused = program("PUT", "/memories")
    assert refused.status_code == 405
    assert {one.strip() for one in refused.headers["allow"].split(",")} == {"GET", "HEAD", "POST"}
    assert program("HEAD", "/memories").status_code == 200


def test_chats_are_listed_read_and_ended_and_senders_admitted(site: Serve) -> None:
    at, home = utc_now(), Path(os.environ["NACRE_HOME"])
    stored(1)
    with closing(GatewayStore.open(home)) as store:
        session = talk(
            store, home, Chat("telegram", "4711"), "Otto", [("owner", "Is the lock shut?")], at
        )
        store.ask_pairing(Pairing("telegram", "77", "Ines", "K7QM-2XDP", at))
    served = site()
    owner = served.browser()

    def ask(method: str, path: str, body: Any = None, **named: str) -> httpx.Response:
        return served.client.request(
            method, f"{served.base}/api/v1/chats{path}", json=body, headers=named or owner
        )

    assert [one["id"] for one in ask("GET", "").json()] == [session]
    assert ask("GET", "?channel=discord").json() == []
    assert [one["text"] for one in ask("GET", "/telegram:4711").json()["messages"]] == [
        "Is the lock shut?"
    ]
    assert [one["code"] for one in ask("GET", "/status").json()["waiting"]] == ["K7QM-2XDP"]
    assert ask("POST", f"/{session}/end", {}, **served.token).status_code == 403
    assert ask("POST", f"/{session}/end", {}).json()["closed"]
    assert ask("GET", "").json() == []
    assert ask("GET", "/pairings", **served.token).status_code == 403
    assert ask("POST", "/pairings", {"who": "k7qm 2xdp"}).json()["pairing"]["approved"]
    assert [one["sender"] for one in ask("GET", "/pairings").json()] == ["77"]
    assert ask("DELETE", "/pairings/telegram:77").status_code == 200
    assert ask("GET", "/pairings").json() == []
    assert ask("GET", "/nobody").status_code == 404
