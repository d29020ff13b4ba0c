"""What a home consists of where its memory is a file, and where it is on a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nacre.platform.lazy import load
from nacre.platform.locks import FileLock, Observe
from nacre.settings import Settings
from nacre.storage.database import Database

if TYPE_CHECKING:
    from nacre.home.home import Home
    from nacre.storage.postgres.lock import ServerLock
    from nacre.storage.search.full_text import WordSearch
    from nacre.storage.search.turns import TurnSearch
    from nacre.vault.files import Vault


def fitting(settings: Settings) -> Settings:
    """Settings, as far as they fit to where the memory is: a server keeps every version itself, and needs no git."""
    return settings.having("git.enabled", False) if settings.server else settings


def open_database(settings: Settings, observe: Observe | None) -> Database:
    """The database of a home, made and migrated where it has to be. Raises StoreUnusable, StoreBusy, SchemaTooNew."""
    if settings.server:
        server: Database = load("nacre.storage.postgres.database:PostgresDatabase")(
            settings.server, settings.text("storage.tenant")
        )
        return server
    load("nacre.vault.files:Vault")(settings.vault).prepare()
    file: Database = load("nacre.storage.sqlite.open:open_database")(settings.database, observe)
    return file


def vault_of(home: Home) -> Vault:
    """The folder of memories, or their rows."""
    vault: Vault
    if home.database.is_server:
        documents = load("nacre.storage.postgres.documents:Documents")(home.database, home.clock)
        vault = load("nacre.home.server_vault:ServerVault")(documents)
    else:
        vault = load("nacre.vault.files:Vault")(home.settings.vault)
    return vault


def memory_search_of(home: Home) -> WordSearch:
    """Full text over memories."""
    search: WordSearch
    if home.database.is_server:
        search = load("nacre.storage.postgres.search:memory_search")(home.database)
    else:
        search = load("nacre.storage.search.full_text:memory_search")(home.database_file)
    return search


def turn_search_of(home: Home) -> TurnSearch:
    """Full text over turns."""
    search: TurnSearch
    if home.database.is_server:
        search = load("nacre.storage.postgres.search:ServerTurnSearch")(home.database)
    else:
        search = load("nacre.storage.search.turns:TurnSearch")(home.database_file, home.shards)
    return search


def lock_of(home: Home, name: str, *, observe: Observe | None = None) -> FileLock | ServerLock:
    """A lock of the memory, between all processes that may write to it."""
    if home.database.is_server:
        lock: ServerLock = load("nacre.storage.postgres.lock:ServerLock")(home.database, name)
        return lock
    return FileLock(home.settings.home / f"{name}.lock", observe=observe)
