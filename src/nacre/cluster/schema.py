"""The schema of a cluster's server."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

from nacre.cluster.queue import prepare_queue
from nacre.errors import InvalidInput
from nacre.settings import Settings
from nacre.storage.postgres.connection import connect, translated_errors
from nacre.storage.postgres.distribution import Distributed, distribute
from nacre.storage.postgres.migrate import migrate, state


@dataclass(frozen=True, slots=True)
class Migrated:
    """The schema's number before and after."""

    before: int
    after: int


def server_of(settings: Settings) -> str:
    """The address of the server. Raises InvalidInput where none is set."""
    if not settings.server:
        raise InvalidInput("a cluster keeps its memory on a PostgreSQL server", hint="set NACRE_DB=postgresql://…")
    return settings.server


def migrate_server(settings: Settings) -> Migrated:
    """Bring the server's database to the present schema, and make the queue of jobs.

    Raises InvalidInput, SchemaTooNew, StoreUnusable, Unavailable.
    """
    url = server_of(settings)
    with closing(connect(url)) as connection, translated_errors():
        before = state(connection).number
        migrate(connection)
        after = state(connection).number
    prepare_queue(url)
    return Migrated(before, after)


def distribute_server(settings: Settings, shards: int) -> Distributed:
    """Spread the rows of a migrated server over the nodes that Citus knows there. Raises InvalidInput, StoreUnusable,
    NotAllowed, StoreBusy."""
    with closing(connect(server_of(settings))) as connection, translated_errors():
        return distribute(connection, shards)
