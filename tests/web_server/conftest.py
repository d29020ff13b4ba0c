"""A home that is served over HTTP, and those who ask there."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

import httpx2 as httpx
import pytest

from nacre import __version__
from nacre.cli.daemon import _DOOR, serve
from nacre.home.home import open_home
from nacre.serve.server import Daemon, DaemonOptions
from nacre.serve.server_web import Door
from nacre.settings import load_settings
from nacre.values.memory import Face
from tests.cli.conftest import Nacre, learned, nacre, process, transcript  # noqa: F401 - fixtures
from tests.daemon.conftest import Serving, home, serving, stopped  # noqa: F401 - fixtures


@dataclass
class Site:
    """What is served at an address."""

    base: str
    process: Nacre
    daemon: Any = None
    client: httpx.Client = field(
        default_factory=lambda: httpx.Client(trust_env=False, timeout=60, verify=False)
    )

    @property
    def token(self) -> dict[str, str]:
        """What a program sends."""
        return {"Authorization": f"Bearer {(home() / 'http.token').read_text().strip()}"}

    def invited(self) -> str:
        """The address that ``nacre open`` tells."""
        return str(self.process("open", "--print", "--json").json["address"])

    def browser(self) -> dict[str, str]:
        """What the dashboard sends in a browser for which nacre open was run."""
        answer = self.client.get(self.invited())
        assert answer.status_code == 303
        cookie = answer.headers["set-cookie"].partition(";")[0]
        self.client.cookies.clear()
        return {
            "Cookie": cookie,
            "X-Nacre": urlsplit(answer.headers["location"]).fragment.removeprefix("key="),
        }

    def ask(self, operation: str, request: Any = None, **headers: str) -> httpx.Response:
        """``POST /api/v1/<operation>``."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.post(
            f"{self.base}/api/v1/{operation}", json=request or {}, headers=named
        )

    def get(self, path: str, **headers: str) -> httpx.Response:
        """``GET``."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.get(self.base + path, headers=named)


def free_port() -> int:
    """A port at which nothing listens now: other tests may take the one that is set by default."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


class Inside:
    """A daemon in a thread of this process, with the options of ``nacre serve``."""

    def __init__(self, *options: str) -> None:
        settings = said = load_settings()
        given = serve.make_context("serve", list(options), resilient_parsing=True).params
        for name, key in _DOOR.items():
            said = said if given.get(name) in (None, False) else said.having(key, given[name])
        door = Door.of(said, said.text("daemon.http"), asks_token=not given["no_token"])
        self.said: list[str] = []
        self._stop, self._serves = threading.Event(), threading.Event()
        daemon = Daemon(
            settings,
            lambda: open_home(replace(load_settings(settings.home), face=Face.DAEMON)),
            DaemonOptions(watches=False, http=door, version=__version__),
            self._tell,
        )
        self._thread = threading.Thread(target=daemon.run, args=(self._stop,), name="daemon")
        self._thread.start()
        assert self._serves.wait(60), self.said

    def _tell(self, line: str) -> None:
        self.said.append(line)
        if line.startswith("serves"):
            self._serves.set()

    def end(self) -> None:
        """End it and wait."""
        self._stop.set()
        self._thread.join(60)


@pytest.fixture
def site(process: Nacre) -> Iterator[Callable[..., Site]]:  # noqa: F811 - the fixture
    """``site("--http", "0")`` is served by a daemon in this process."""
    yield from _sites(process, Inside)


@pytest.fixture
def site_apart(process: Nacre, serving: Callable[..., Serving]) -> Iterator[Callable[..., Site]]:  # noqa: F811
    """``site_apart("--http", "0")`` is served by a daemon of its own, as people run it."""
    yield from _sites(process, lambda *options: serving("--no-watch", *options))


def _sites(process: Nacre, start: Callable[..., Any]) -> Iterator[Callable[..., Site]]:  # noqa: F811
    sites: list[Site] = []

    def start_site(*options: str) -> Site:
        daemon = start(*(options or ("--http", "0")))
        found = re.search(r"over HTTP at (\S+),", daemon.said[-1])
        assert found, daemon.said
        sites.append(Site(found[1], process, daemon))
        return sites[-1]

    yield start_site
    for one in sites:
        one.client.close()
        one.daemon.end()
