"""Events reach every authorised client over real sockets, including clients that reconnect."""

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
from tests.daemon.conftest import PATIENCE_SECONDS
from tests.web_server.conftest import Site

Serve = Callable[..., Site]
PATH = "/api/v1/events"
SOON_SECONDS = 2.0


class Stream:
    """Server-sent events, read from a separate socket."""

    def __init__(self, site: Site, **headers: str) -> None:
        place = urlsplit(site.base)
        self._socket = socket.create_connection((place.hostname, place.port), PATIENCE_SECONDS)
        request_headers = {"Host": place.netloc, **site.token, **headers}
        lines = "".join(
            f"{name.replace('_', '-')}: {value}\r\n" for name, value in request_headers.items()
        )
        self._socket.sendall(f"GET {PATH} HTTP/1.1\r\n{lines}\r\n".encode())
        self._lines = self._socket.makefile("rb")

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield events as they arrive."""
        for line in self._lines:
            name, _, value = line.decode().strip().partition(": ")
            if name == "data":
                yield json.loads(value)

    def until(self, kind: str) -> dict[str, Any]:
        """Return the next event of a kind and skip others."""
        return next(event for event in self.events() if event["kind"] == kind)

    def close(self) -> None:
        self._lines.close()
        self._socket.close()


@pytest.fixture
def stream() -> Iterator[Callable[..., Stream]]:
    """``stream(site)`` opens a stream that has received ``hello``."""
    streams: list[Stream] = []

    def begin(site: Site, **headers: str) -> Stream:
        streams.append(Stream(site, **headers))
        streams[-1].until("hello")
        return streams[-1]

    yield begin
    for item in streams:
        item.close()


Listen = Callable[..., Stream]


def store_memory(process: Nacre, content: str) -> str:
    line: str = process("store", content, "--json").json["memory_id"]
    return line


def test_change_by_another_process_is_reported_within_two_seconds(
    site: Serve, process: Nacre, stream: Listen
) -> None:
    events = stream(site())
    memory = store_memory(process, "The mill stands on the left bank of the river")
    event = events.until("memory")
    assert (event["change"], event["ids"]) == ("stored", [memory])
    began = at_ms(int(memory.replace("-", "")[:12], 16))
    assert (datetime.fromisoformat(event["at"]) - began).total_seconds() < SOON_SECONDS


def test_returning_clients_receive_only_new_events(
    site: Serve, process: Nacre, stream: Listen
) -> None:
    here = site()
    before = stream(here)
    store_memory(process, "The mill stands on the left bank of the river")
    before.until("memory")
    process("serve", "stop")
    assert list(before.events()) == []  # the stream ends with the daemon
    back = stream(site())
    memory = store_memory(process, "The ferry leaves at nine")
    assert back.until("memory")["ids"] == [memory]


def test_fifty_listeners_receive_the_same_events(
    site: Serve, process: Nacre, stream: Listen
) -> None:
    here = site()
    listeners = [stream(here) for _ in range(50)]
    memory = store_memory(process, "The mill stands on the left bank of the river")
    events = [listener.until("memory") for listener in listeners]
    assert [item["ids"] for item in events] == [[memory]] * 50
    assert len({item["seq"] for item in events}) == 1
    assert here.get("/api/v1/me", **here.token).status_code == 200


def test_listener_over_the_limit_is_refused_temporarily(site: Serve) -> None:
    here = site()
    with ExitStack() as stack:
        for _ in range(MOST_LISTENERS):
            events = stack.enter_context(closing(Stream(here)))
            events.until("hello")
        response = here.get(PATH, **here.token)
        assert (response.status_code, response.json()["code"]) == (503, "unavailable")
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
    events = stream(here, Authorization="", Cookie=here.browser()["Cookie"])
    process("open", "--forget")
    store_memory(process, "The mill stands on the left bank of the river")
    assert list(events.events()) == []


def test_daemon_progress_is_reported_to_its_end(
    site: Serve,
    learned: dict[str, Any],  # noqa: F811
    stream: Listen,
) -> None:
    here = site()
    listener = stream(here)
    assert here.ask("doctor-deep", **here.token).status_code == 200
    events = [listener.until("progress")]
    while not events[-1]["ended"]:
        events.append(listener.until("progress"))
    assert {item["task"] for item in events} == {"doctor-deep"}
    assert (events[-1]["stage"], events[-1]["done"], events[-1]["total"]) == ("proving", 1, 1)


def test_rebuilt_database_is_reported_and_followed(
    site: Serve, process: Nacre, stream: Listen
) -> None:
    events = stream(site())
    store_memory(process, "The mill stands on the left bank of the river")
    events.until("memory")
    process("admin", "db", "rebuild", "--yes")
    assert events.until("missed")
    memory = store_memory(process, "The ferry leaves at nine")
    assert events.until("memory")["ids"] == [memory]


def test_daemon_stops_in_time_despite_listeners(
    site: Serve, process: Nacre, stream: Listen
) -> None:
    here = site()
    events = stream(here)
    began = time.monotonic()
    process("serve", "stop")
    assert time.monotonic() - began < 2 * SOON_SECONDS
    assert list(events.events()) == []
