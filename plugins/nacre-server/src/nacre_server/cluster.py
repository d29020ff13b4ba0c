"""A cluster's server: database schema, API process and deletion of spaces."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from nacre import __version__
from nacre.base.frozen import frozen
from nacre.base.ids import utc_now
from nacre.errors import (
    ConflictError,
    InvalidInputError,
    NotAllowedError,
    NotFoundError,
    UnavailableError,
)
from nacre.home.home import Home
from nacre.serve.browsers import Browsers
from nacre.serve.events import Bus, Live
from nacre.serve.homes import Answering, Homes, Site
from nacre.serve.server_web import Door, Web
from nacre.settings import Settings
from nacre_server.connection import connect, migrate, state, translated_errors
from nacre_server.keys import Spaces
from nacre_server.registry import Registry


@frozen
class Migrated:
    """The schema number before and after a migration."""

    before: int
    after: int


def server_of(settings: Settings) -> str:
    """Return the address of the server. Raises InvalidInputError if none is set."""
    if not settings.server:
        raise InvalidInputError(
            "a cluster needs a PostgreSQL server", hint="set NACRE_DB=postgresql://…"
        )
    return settings.server


def migrate_server(settings: Settings) -> Migrated:
    """Upgrade the server's database to the current schema.

    Raises InvalidInputError, SchemaTooNewError, UnusableStoreError, UnavailableError.
    """
    with closing(connect(server_of(settings))) as connection, translated_errors():
        before = state(connection).number
        migrate(connection)
        after = state(connection).number
    return Migrated(before, after)


# ----------------------------------------------------------------------------
# A process that answers programs and agents with keys. It has no state, because its home is a
# temporary folder and the memory is on the server. Any process can answer any request.


FOLD_SECONDS = 30.0
"""Interval for storing usage counts, in seconds. A killed process loses only the latest counts."""

MOST_CLIENTS = 1_000
"""Maximum number of simultaneous clients. Most of them wait."""

END_SECONDS = 30.0
"""Time limit for finishing open requests at the end, in seconds."""


class Api:
    """An HTTP server for clients with keys.

    ``folder``: empty folder, which can be deleted afterwards.
    """

    def __init__(
        self,
        settings: Settings,
        folder: Path,
        door: Door,
        tell: Callable[[str], None],
    ) -> None:
        """Create the server.

        Raises InvalidInputError if no database server is set, or if ``door`` is unsafe.
        """
        server_of(settings)
        own = replace(settings, home=folder, database=folder / "nacre.db", is_temporary=True)
        self._tell = tell
        self._spaces = Spaces(own)
        no_homes = Homes(_refused, folder, own.config)
        self._answering = Answering(no_homes, tell, {}, homes_of=self._spaces.homes)
        self._web = Web(
            Site(
                folder,
                self._answering.run,
                lambda: {"version": __version__},
                Browsers(folder),
                Live(_refused, Bus(utc_now)),
                tell,
                everything=own.text("mcp.tools") == "all",
                bearer=self._spaces.bearer,
                live_of=self._spaces.live,
                is_ready=self._spaces.is_reachable,
            ),
            replace(door, room=MOST_CLIENTS),
        )

    def run(self, stop: threading.Event, linger: float) -> None:
        """Answer until ``stop`` is set, then finish.

        The server reports that it is not ready, but still answers for ``linger`` seconds, so that
        the load balancer finds another process. Then it waits for open requests. Raises Unavailable
        if it cannot listen or requests do not end.
        """
        minding = threading.Thread(
            target=self._answering.mind, args=(stop,), daemon=True, name="minding"
        )
        self._web.start()
        minding.start()
        self._tell(f"serves keys at {self._web.address}, agents at {self._web.address}/mcp")
        while not stop.wait(FOLD_SECONDS):
            self._spaces.fold()
        self._tell("stopping: finishing the requests in progress")
        self._web.leave()
        self._spaces.end_events()
        has_ended = self._web.drain(linger, END_SECONDS)
        self._spaces.fold()
        self._spaces.close()
        if not has_ended:
            raise UnavailableError("some requests did not end", hint="clients may send them again")


def _refused() -> Home:
    raise NotAllowedError(
        "this server has no memory of its own",
        hint="send a space's key (nacre server keys create)",
    )


# ----------------------------------------------------------------------------
# Deletion of a space


_OF_A_SPACE = (
    "delete_keys",
    "delete_members",
    "delete_tended",
    "delete_space",
)


@frozen
class Removed:
    """The number of rows that were deleted, and the number left in all tables afterwards."""

    name: str
    rows: int
    left: int


def remove_space(settings: Settings, name: str) -> Removed:
    """Delete a space with all its rows, members and keys. Its audit log, which has no texts, stays.

    Raises NotFoundError, and ConflictError if rows were written at the same time.
    """
    with closing(Registry(server_of(settings))) as registry:
        with registry.transaction():
            if not registry.all("lock_space", space=name) and not registry.count_rows(name):
                raise NotFoundError(f"there is no space {name}")
            for statement in _OF_A_SPACE:
                registry.run(statement, space=name)
            deleted = registry.delete_rows(name)
        left = registry.count_rows(name)
        if left:
            raise ConflictError(
                f"{left} rows of {name} were written in the meantime",
                hint="stop its writers and try again",
            )
        return Removed(name, deleted, left)
