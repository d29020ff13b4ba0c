"""People, a team and their spaces on one server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from typing import Any

import psycopg
import pytest

from nacre.api import MemoryHome, open_memory
from nacre_server.connection import connect

_databases = count(1)

Open = Callable[..., MemoryHome]


@dataclass(frozen=True)
class Server:
    """A separate database.

    ``open_space("anna")`` opens anna's space in her name and ``open_space("anna", "ferry-team")`` the team's.
    ``reads`` are further spaces of a recall.
    """

    url: str
    open_space: Open

    @property
    def admin(self) -> psycopg.Connection[Any]:
        """A connection of the administrator."""
        return connect(self.url)


@pytest.fixture
def server(server_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    name = f"spaces{next(_databases)}"
    with connect(server_url) as first:
        first.execute(f"CREATE DATABASE {name}")
    url = server_url.replace("/postgres?", f"/{name}?")
    monkeypatch.setenv("NACRE_DB", url)
    with ExitStack() as stack:

        def open_space(account: str, space: str = "", reads: tuple[str, ...] = ()) -> MemoryHome:
            monkeypatch.setenv("NACRE_STORAGE_ACCOUNT", account)
            monkeypatch.setenv("NACRE_STORAGE_TENANT", space or account)
            monkeypatch.setenv("NACRE_STORAGE_SPACES", str(list(reads)))
            return stack.enter_context(open_memory())

        yield Server(url, open_space)


@pytest.fixture
def team(server: Server) -> Server:
    """Anna owns ``ferry-team``, where ben is a member, rita a reader and build-bot a service.

    The three people also have spaces of their own.
    """
    with server.open_space("anna") as anna:
        for person in ("anna", "ben", "rita"):
            anna.call("spaces-create", space=person, kind="person")
        anna.call("spaces-create", space="ferry-team")
        for account, role in {"ben": "member", "rita": "reader", "build-bot": "service"}.items():
            anna.call("spaces-add", space="ferry-team", account=account, role=role)
    return server
