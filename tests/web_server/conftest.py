"""A home that is served over HTTP, and those who ask there."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx2 as httpx
import pytest

from tests.cli.conftest import Nacre, learned, nacre, process, transcript  # noqa: F401 - fixtures
from tests.daemon.conftest import Serving, home, serving, stopped  # noqa: F401 - fixtures


@dataclass
class Site:
    """What is served at an address."""

    base: str
    process: Nacre
    daemon: Serving | None = None
    client: httpx.Client = field(default_factory=lambda: httpx.Client(trust_env=False, timeout=60, verify=False))

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
        return {"Cookie": cookie, "X-Nacre": urlsplit(answer.headers["location"]).fragment.removeprefix("key=")}

    def ask(self, operation: str, request: Any = None, **headers: str) -> httpx.Response:
        """``POST /api/v1/<operation>``."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.post(f"{self.base}/api/v1/{operation}", json=request or {}, headers=named)

    def get(self, path: str, **headers: str) -> httpx.Response:
        """``GET``."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.get(self.base + path, headers=named)


STORED = ("stored", "accepted")
"""What becomes of a new memory: it is durable, and placed at once unless a chore of the daemon writes just then."""


def placed(ask: Callable[[], httpx.Response]) -> httpx.Response:
    """The answer to a store of what is there already, asked again while a chore of the daemon writes."""
    until = time.monotonic() + 60
    while (answer := ask()).json()["action"] == "accepted" and time.monotonic() < until:
        pass
    return answer


def free_port() -> int:
    """A port at which nothing listens now: other tests may take the one that is set by default."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


@pytest.fixture
def site(serving: Callable[..., Serving], process: Nacre) -> Iterator[Callable[..., Site]]:  # noqa: F811 - fixtures
    """``site("--http", "0")`` is served by a daemon of its own."""
    sites: list[Site] = []

    def serve(*options: str) -> Site:
        daemon = serving("--no-watch", *(options or ("--http", "0")))
        found = re.search(r"over HTTP at (\S+),", daemon.said[-1])
        assert found, daemon.said
        sites.append(Site(found[1], process, daemon))
        return sites[-1]

    yield serve
    for one in sites:
        one.client.close()
