"""Migration of a server, its API process, its worker, and the deletion of spaces."""

from __future__ import annotations

import threading
import time
import traceback
from collections import defaultdict
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

from nacre import __version__
from nacre.base.frozen import frozen
from nacre.base.ids import utc_now
from nacre.errors import (
    ConflictError,
    InvalidInputError,
    MissingStoreError,
    NacreError,
    NotAllowedError,
    NotFoundError,
    UnavailableError,
)
from nacre.home.home import Home
from nacre.home.spending import fold_notes
from nacre.memories.edit import catch_up
from nacre.memories.vectors import embed_memories, embed_pending
from nacre.review.dream import dream_if_due
from nacre.serve.browsers import Browsers
from nacre.serve.events import Bus, Live
from nacre.serve.homes import Answering, Homes, Site
from nacre.serve.server_web import Door, Web
from nacre.settings import Settings
from nacre.setup.chores import learn_now
from nacre_server.connection import Registry, connect, migrate, state, translated_errors
from nacre_server.keys import Spaces


@frozen
class Migrated:
    """The numbers of the database schema before and after a migration."""

    before: int
    after: int


def server_of(settings: Settings) -> str:
    """Return the PostgreSQL server's address. Raises InvalidInputError if none is set."""
    if not settings.server:
        raise InvalidInputError(
            "a cluster needs a PostgreSQL server", hint="set NACRE_DB=postgresql://…"
        )
    return settings.server


def migrate_server(settings: Settings) -> Migrated:
    """Migrate the server's database to this version's schema.

    Raises InvalidInputError if no server is set, SchemaTooNewError if this nacre is too old, and
    the errors of :func:`connect`.
    """
    with closing(connect(server_of(settings))) as connection, translated_errors():
        before = state(connection).number
        migrate(connection)
        after = state(connection).number
    return Migrated(before, after)


# ----------------------------------------------------------------------------
# The API process. It is stateless: its home is a temporary folder, and the memories are on the server.


FOLD_SECONDS = 30.0
"""Seconds between writes of usage counts."""

MOST_CLIENTS = 1_000
"""Maximum number of simultaneous clients. Most of them are idle."""

END_SECONDS = 30.0
"""Time limit for finishing open requests at shutdown, in seconds."""


def serve_api(
    settings: Settings,
    folder: Path,
    door: Door,
    tell: Callable[[str], None],
    stop: threading.Event,
    linger: float,
) -> None:
    """Answer clients with keys until ``stop`` is set, then finish open requests.

    For ``linger`` seconds after ``stop``, it answers but reports that it is not ready, so that a
    load balancer can switch to another process. ``folder`` is an empty temporary folder. Raises
    InvalidInputError if no database server is set or ``door`` is unsafe, and UnavailableError if it
    cannot listen or requests do not end.
    """
    server_of(settings)
    own = replace(settings, home=folder, database=folder / "nacre.db", is_temporary=True)
    spaces = Spaces(own)
    answering = Answering(Homes(_refused, folder, own.config), tell, {}, spaces=spaces)
    web = Web(
        Site(
            folder,
            answering.run,
            lambda: {"version": __version__},
            Browsers(folder),
            Live(_refused, Bus(utc_now)),
            tell,
            everything=own.text("mcp.tools") == "all",
            spaces=spaces,
        ),
        replace(door, room=MOST_CLIENTS),
    )
    minding = threading.Thread(target=answering.mind, args=(stop,), daemon=True, name="minding")
    web.start()
    minding.start()
    tell(f"serves keys at {web.address}, agents at {web.address}/mcp")
    while not stop.wait(FOLD_SECONDS):
        spaces.fold()
    tell("stopping: finishing the requests in progress")
    web.leave()
    spaces.end_events()
    has_ended = web.drain(linger, END_SECONDS)
    spaces.fold()
    spaces.close()
    if not has_ended:
        raise UnavailableError("some requests did not end", hint="clients may send them again")


def _refused() -> Home:
    raise NotAllowedError(
        "this server has no memory of its own",
        hint="send a space's key (nacre server keys create)",
    )


# ----------------------------------------------------------------------------
# The worker, which learns, computes vectors and consolidates for all spaces. It finds changed spaces by
# comparing the audit log with the table ``tended``, and locks a space while it works on it. If a worker
# is killed, the server releases the lock, and another worker repeats the work.


_MAX_FAILURES = 4
_BACKOFF = 4
"""Pause in seconds after a failure.

Repeated failures raise it to the second, third and fourth power.
"""


class Worker:
    """A background worker for all spaces of a server. ``folder`` is an empty temporary folder."""

    def __init__(self, settings: Settings, folder: Path, tell: Callable[[str], None]) -> None:
        """Create the worker. Raises InvalidInputError if no server is set."""
        self._url = server_of(settings)
        self._spaces = Spaces(
            replace(settings, home=folder, database=folder / "nacre.db", is_temporary=True)
        )
        self._tell = tell
        self._failures: dict[str, tuple[int, float]] = defaultdict(lambda: (0, 0.0))

    def run(self, stop: threading.Event, interval_seconds: float) -> None:
        """Process changed spaces until ``stop`` is set, checking every ``interval_seconds``.

        It waits while the server is unavailable, but raises an error if the first connection fails.
        """
        self._untended()
        self._tell("worker started")
        is_away = False
        while not stop.is_set():
            try:
                spaces = self._untended()
                if is_away:
                    self._tell("the server answers again")
                is_away = False
                for space in spaces:
                    if self._failures[space][1] <= time.monotonic() and not stop.is_set():
                        self._tend(space)
            except (MissingStoreError, UnavailableError):
                if not is_away:
                    self._tell("the server does not answer; waiting")
                is_away = True
            except NacreError as error:
                self._tell(f"cannot find changed spaces: {error}")
            stop.wait(interval_seconds)
        self._spaces.close()

    def _untended(self) -> list[str]:
        with closing(Registry(self._url)) as registry:
            return [name for (name,) in registry.all("list_untended")]

    def _tend(self, space: str) -> None:
        try:
            with closing(Registry(self._url)) as registry:
                [(is_ours,)] = registry.all("hold_space", space=space)
                if not is_ours:
                    return
                [(number,)] = registry.all("read_last_note", space=space)
                with self._spaces.homes(self._spaces.owner_of(space)).lent() as home:
                    catch_up(home)
                    learn_now(home, None)
                    embed_memories(home)
                    embed_pending(home, lambda _: None)
                    dream_if_due(home)
                    with suppress(OSError):
                        fold_notes(home)
                registry.run("set_tended", space=space, number=number)
        except Exception as error:  # noqa: BLE001 - the worker continues with other spaces
            failures = min(self._failures[space][0] + 1, _MAX_FAILURES)
            self._failures[space] = failures, time.monotonic() + _BACKOFF**failures
            where = "".join(traceback.format_tb(error.__traceback__))
            # The message of an unexpected error can contain a memory.
            unexpected = f"{type(error).__name__}\n{where}"
            self._tell(f"{space}: {error.code if isinstance(error, NacreError) else unexpected}")
            return
        self._failures.pop(space, None)
        self._tell(f"{space}: done")


# ----------------------------------------------------------------------------
# Deletion of a space.


_OF_A_SPACE = ("delete_keys", "delete_members", "delete_tended", "delete_space")


@frozen
class Removed:
    """The numbers of rows that were deleted and that are left."""

    name: str
    rows: int
    left: int


def remove_space(settings: Settings, name: str) -> Removed:
    """Delete a space with all rows, members and keys, but not its audit log, which contains no
    text.

    Raises NotFoundError, or ConflictError if rows were written meanwhile.
    """
    with closing(Registry(server_of(settings))) as registry:
        with registry.transaction():
            if not registry.all("lock_space", space=name) and not registry.count_rows(name):
                raise NotFoundError(f"there is no space {name}")
            for statement in _OF_A_SPACE:
                registry.run(statement, space=name)
            deleted = registry.delete_rows(name)
        if left := registry.count_rows(name):
            raise ConflictError(
                f"{left} rows of {name} were written in the meantime",
                hint="stop its writers and try again",
            )
        return Removed(name, deleted, left)
