"""A write that is sent again with its key is not done again."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2 as httpx

from nacre import open_memory
from tests.cli.conftest import Nacre
from tests.daemon.conftest import Serving, home
from tests.web_server.conftest import Site

Serve = Callable[..., Site]
WORDS = {"content": "Gulls sleep on the pier", "force": True}


def post(site: Site, key: str, body: Any = WORDS, path: str = "/memories", **headers: str) -> httpx.Response:
    named = {"Idempotency-Key": key, **site.token, **headers}
    return site.client.post(f"{site.base}/api/v1{path}", json=body, headers=named)


def count() -> int:
    with open_memory() as memory:
        return len(memory.list())


def test_the_same_key_and_body_are_answered_again_and_nothing_is_done(site: Serve) -> None:
    here = site()
    first, again = post(here, "one"), post(here, "one")
    assert first.status_code == again.status_code == 201
    assert first.content == again.content
    assert first.headers["location"] == again.headers["location"]
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    assert count() == 1
    assert post(here, "two").json()["memory_id"] != first.json()["memory_id"]
    assert count() == 2
    assert post(here, "one", path="/store").status_code == 200  # another address, another write
    assert count() == 3


def test_a_key_that_was_used_for_another_request_is_refused(site: Serve) -> None:
    here = site()
    post(here, "one")
    refused = post(here, "one", {"content": "Terns sleep on the pier"})
    assert refused.status_code == 422
    assert refused.json()["code"] == "key_reused"
    assert refused.json()["hint"]
    for key in ("", "x" * 256):
        assert post(here, key).status_code == 400
    assert count() == 1


def test_of_two_that_come_at_once_one_is_done(site: Serve) -> None:
    here = site()
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: post(here, "one").json()["memory_id"], range(8)))
    assert len(set(found)) == 1
    assert count() == 1


def test_who_may_not_ask_leaves_no_answer_behind(site: Serve) -> None:
    here = site()
    body = {"name": "profile", "text": "Likes tea"}
    assert post(here, "one", body, "/page-write").status_code == 403
    assert post(here, "one", body, "/page-write", **here.browser()).status_code == 200
    stranger = here.client.post(f"{here.base}/api/v1/store", json=WORDS, headers={"Idempotency-Key": "two"})
    assert stranger.status_code == 401
    assert post(here, "two", path="/store").status_code == 200


def test_after_the_daemon_ended_a_write_is_not_done_again(serving: Callable[..., Serving], process: Nacre) -> None:
    told = []
    for _ in range(2):
        daemon = serving("--no-watch", "--http", "0")
        address = re.search(r"over HTTP at (\S+),", daemon.said[-1])
        assert address
        here = Site(address[1], process)
        with here.client:
            told.append(post(here, "one"))
            refused = post(here, "two", {"content": ""})
            assert refused.status_code == 400  # what was not done may be done later
            assert post(here, "one", {"content": "Terns sleep on the pier"}).json()["code"] == "key_reused"
        assert daemon.end() == 0
    assert [one.status_code for one in told] == [201, 409]
    assert told[1].json()["code"] == "already_done"
    assert told[0].headers["location"] == told[1].headers["location"]
    assert count() == 1
    assert "Gulls" not in (home() / "used-keys.jsonl").read_text(encoding="utf-8")
