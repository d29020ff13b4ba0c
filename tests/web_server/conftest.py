"""Fixtures: a home served over HTTP, and its clients."""

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
    """A served address and its clients."""

    base: str
    process: Nacre
    daemon: Any = None
    client: httpx.Client = field(
        default_factory=lambda: httpx.Client(trust_env=False, timeout=60, verify=False)
    )

    @property
    def token(self) -> dict[str, str]:
        """Return the headers of a program with a token."""
        return {"Authorization": f"Bearer {(home() / 'http.token').read_text().strip()}"}

    def invited(self) -> str:
        """Return the address printed by ``nacre open``."""
        return str(self.process("open", "--print", "--json").json["address"])

    def browser(self) -> dict[str, str]:
        """Return the headers of a browser that is signed in with ``nacre open``."""
        answer = self.client.get(self.invited())
        assert answer.status_code == 303
        cookie = answer.headers["set-cookie"].partition(";")[0]
        self.client.cookies.clear()
        return {
            "Cookie": cookie,
            "X-Nacre": urlsplit(answer.headers["location"]).fragment.removeprefix("key="),
        }

    def ask(self, operation: str, request: Any = None, **headers: str) -> httpx.Response:
        sent_headers = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.post(
            f"{self.base}/api/v1/{operation}", json=request or {}, headers=sent_headers
        )

    def get(self, path: str, **headers: str) -> httpx.Response:
        sent_headers = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.get(self.base + path, headers=sent_headers)


def free_port() -> int:
    """Return a free port; other tests may use the default port."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


class Inside:
    """A daemon in a thread of this process, with the options of ``nacre serve``."""

    def __init__(self, *options: str) -> None:
        settings = options_settings = load_settings()
        options_given = serve.make_context("serve", list(options), resilient_parsing=True).params
        for name, key in _DOOR.items():
            if options_given.get(name) not in (None, False):
                options_settings = options_settings.having(key, options_given[name])
        door = Door.of(
            options_settings,
            options_settings.text("daemon.http"),
            asks_token=not options_given["no_token"],
        )
        self.lines: list[str] = []
        self._stop, self._serves = threading.Event(), threading.Event()
        daemon = Daemon(
            settings,
            lambda: open_home(replace(load_settings(settings.home), face=Face.DAEMON)),
            DaemonOptions(watches=False, http=door),
            self._tell,
        )
        self._thread = threading.Thread(target=daemon.run, args=(self._stop,), name="daemon")
        self._thread.start()
        assert self._serves.wait(60), self.lines

    def _tell(self, line: str) -> None:
        self.lines.append(line)
        if line.startswith("serves"):
            self._serves.set()

    def end(self) -> None:
        self._stop.set()
        self._thread.join(60)


@pytest.fixture
def site(process: Nacre) -> Iterator[Callable[..., Site]]:  # noqa: F811 - the fixture
    """``site("--http", "0")`` starts a daemon in this process."""
    yield from _sites(process, Inside)


@pytest.fixture
def site_apart(process: Nacre, serving: Callable[..., Serving]) -> Iterator[Callable[..., Site]]:  # noqa: F811
    """``site_apart("--http", "0")`` starts a separate daemon process, as users do."""
    yield from _sites(process, lambda *options: serving("--no-watch", *options))


def _sites(process: Nacre, start: Callable[..., Any]) -> Iterator[Callable[..., Site]]:  # noqa: F811
    sites: list[Site] = []

    def start_site(*options: str) -> Site:
        daemon = start(*(options or ("--http", "0")))
        match = re.search(r"over HTTP at (\S+),", daemon.lines[-1])
        assert match, daemon.lines
        sites.append(Site(match[1], process, daemon))
        return sites[-1]

    yield start_site
    for item in sites:
        item.client.close()
        item.daemon.end()
