"""Events over real sockets: from any process, to many, to those that come back, and to nobody who may not hear them."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import pytest

from nacre.base.ids import at_ms
from nacre.serve.web import MOST_LISTENERS
from tests.cli.conftest import Nacre, learned, transcript  # noqa: F401 - fixtures
from tests.daemon.conftest import PATIENCE_SECONDS, Serving
from tests.web_server.conftest import Site

Serve = Callable[..., Site]
PATH = "/api/v1/events"
SOON_SECONDS = 2.0


class Stream:
    """Server-sent events, read from a socket of its own."""

    def __init__(self, site: Site, **headers: str) -> None:
        place = urlsplit(site.base)
        self._socket = socket.create_connection((place.hostname, place.port), PATIENCE_SECONDS)
        sent = {"Host": place.netloc, **site.token, **headers}
        lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in sent.items())
        self._socket.sendall(f"GET {PATH} HTTP/1.1\r\n{lines}\r\n".encode())
        self._lines = self._socket.makefile("rb")
        self.id = ""

    def events(self) -> Iterator[dict[str, Any]]:
        """Each as it comes; ``id`` is that of the last one."""
        for line in self._lines:
            name, _, value = line.decode().strip().partition(": ")
            if name == "id":
                self.id = value
            if name == "data":
                yield json.loads(value)

    def until(self, kind: str) -> dict[str, Any]:
        """The next event of a kind; what is between is passed over."""
        return next(one for one in self.events() if one["kind"] == kind)

    def close(self) -> None:
        self._lines.close()
        self._socket.close()


@pytest.fixture
def stream() -> Iterator[Callable[..., Stream]]:
    """``stream(site)`` listens, and has heard ``hello``."""
    begun: list[Stream] = []

    def begin(site: Site, **headers: str) -> Stream:
        begun.append(Stream(site, **headers))
        begun[-1].until("hello")
        return begun[-1]

    yield begin
    for one in begun:
        one.close()


Listen = Callable[..., Stream]


def stored(process: Nacre, content: str) -> str:
    found: str = process("store", content, "--json").json["memory_id"]
    return found


def test_change_by_another_process_is_reported_within_two_seconds(
    site: Serve, process: Nacre, stream: Listen
) -> None:
    heard = stream(site())
    memory = stored(process, "The mill stands on the left bank of the river")
    told = heard.until("memory")
    assert (told["change"], told["ids"]) == ("stored", [memory])
    began = at_ms(int(memory.replace("-", "")[:12], 16))
    assert (datetime.fromisoformat(told["at"]) - began).total_seconds() < SOON_SECONDS


def test_returning_listener_receives_exactly_the_missed_events(
    site: Serve, process: Nacre, stream: Listen
) -> None:
    here = site()
    away = stream(here)
    first = stored(process, "The mill stands on the left bank of the river")
    assert away.until("memory")["ids"] == [first]
    away.close()
    others = [
        stored(process, text) for text in ("The ferry leaves at nine", "Billing uses PostgreSQL 16")
    ]
    back = Stream(here, Last_Event_ID=away.id)
    found: list[dict[str, Any]] = []
    for one in back.events():
        found.append(one)
        if sum(event["kind"] == "memory" for event in found) == len(others):
            break
    back.close()
    assert found[0]["kind"] == "hello"
    assert [one["seq"] for one in found] == list(
        range(found[0]["seq"], found[0]["seq"] + len(found))
    )
    assert f"{found[0]['epoch']}-{found[0]['seq']}" == away.id
    assert [one["ids"] for one in found if one["kind"] == "memory"] == [[other] for other in others]


def test_returning_clients_restart_after_a_daemon_restart(
    site: Serve, serving: Callable[..., Serving], process: Nacre, stream: Listen
) -> None:
    here = site()
    before = stream(here)
    stored(process, "The mill stands on the left bank of the river")
    before.until("memory")
    process("serve", "stop")
    assert list(before.events()) == []  # the stream ends with the daemon
    again = site()
    back = Stream(again, Last_Event_ID=before.id)
    kinds = [next(back.events()) for _ in range(2)]
    assert [one["kind"] for one in kinds] == ["hello", "missed"]
    assert not before.id.startswith(kinds[0]["epoch"])
    memory = stored(process, "The ferry leaves at nine")
    assert back.until("memory")["ids"] == [memory]
    back.close()


def test_fifty_listeners_receive_the_same_events(
    site: Serve, process: Nacre, stream: Listen
) -> None:
    here = site()
    listeners = [stream(here) for _ in range(50)]
    memory = stored(process, "The mill stands on the left bank of the river")
    heard = [one.until("memory") for one in listeners]
    assert [one["ids"] for one in heard] == [[memory]] * 50
    assert len({one["seq"] for one in heard}) == 1
    assert here.get("/api/v1/me", **here.token).status_code == 200


def test_listener_over_the_limit_is_refused_temporarily(site: Serve) -> None:
    here = site()
    with ExitStack() as held:
        for _ in range(MOST_LISTENERS):
            heard = held.enter_context(closing(Stream(here)))
            heard.until("hello")
        refused = here.get(PATH, **here.token)
        assert (refused.status_code, refused.json()["code"]) == (503, "unavailable")
    with closing(Stream(here)) as again:
        assert again.until("hello")


def test_only_authorised_clients_receive_events(
    site: Serve, process: Nacre, stream: Listen
) -> None:
    here = site()
    assert here.get(PATH).status_code == 401
    assert here.get(PATH, **here.token, Origin="http://pages.example").status_code == 403
    cookie = here.browser()["Cookie"]
    stream(here, Authorization="", Cookie=cookie, Sec_Fetch_Site="same-origin")
    assert here.get(PATH, Cookie=cookie, Origin="http://pages.example").status_code == 403
    assert here.get(PATH, Cookie=cookie, Sec_Fetch_Site="cross-site").status_code in {401, 403}


def test_forgotten_browser_receives_no_events(site: Serve, process: Nacre, stream: Listen) -> None:
    here = site()
    heard = stream(here, Authorization="", Cookie=here.browser()["Cookie"])
    process("open", "--forget")
    stored(process, "The mill stands on the left bank of the river")
    assert list(heard.events()) == []


def test_daemon_progress_is_reported_to_its_end(
    site: Serve,
    learned: dict[str, Any],  # noqa: F811
    stream: Listen,
) -> None:
    here = site()
    heard = stream(here)
    assert here.ask("doctor-deep", **here.token).status_code == 200
    told = [heard.until("progress")]
    while not told[-1]["ended"]:
        told.append(heard.until("progress"))
    assert {one["task"] for one in told} == {"doctor-deep"}
    assert (told[-1]["stage"], told[-1]["done"], told[-1]["total"]) == ("proving", 1, 1)


def test_rebuilt_database_is_reported_and_followed(
    site: Serve, process: Nacre, stream: Listen
) -> None:
    heard = stream(site())
    stored(process, "The mill stands on the left bank of the river")
    heard.until("memory")
    process("admin", "db", "rebuild", "--yes")
    assert heard.until("missed")
    memory = stored(process, "The ferry leaves at nine")
    assert heard.until("memory")["ids"] == [memory]


def test_daemon_stops_in_time_despite_listeners(
    site: Serve, process: Nacre, stream: Listen
) -> None:
    here = site()
    heard = stream(here)
    began = time.monotonic()
    process("serve", "stop")
    assert time.monotonic() - began < 2 * SOON_SECONDS
    assert list(heard.events()) == []
