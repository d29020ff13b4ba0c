"""An open nacre home: stores, locks, clock and models, and the caller's rights in a space."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from nacre.base import environment, files, plugins
from nacre.base.ids import Clock, Ids, to_millisecond, utc_now, uuid7_source
from nacre.base.lazy import Lazy, load
from nacre.base.locks import FileLock, Observe, Turn
from nacre.base.times import day_of
from nacre.errors import (
    EmbedderUnavailableError,
    InvalidSettingsError,
    NacreError,
    StoreBusyError,
    UnavailableError,
    UnusableStoreError,
)
from nacre.llm import providers
from nacre.protocols import Embedder, LanguageModel, RemoteEmbedder
from nacre.settings import Settings, load_settings
from nacre.store import search, sqlite
from nacre.vault.files import LEDGER, Vault

if TYPE_CHECKING:
    from nacre.home.change import Change, Run
    from nacre.home.projects import Handoffs
    from nacre.redact.redactor import Redactor
    from nacre.store.journal import Journal, Questions, Spending, Tombstones, VaultIndex
    from nacre.store.maintenance import Erasing
    from nacre.store.memories import CoRecall, Links, Memories, SessionUses, UsageLog
    from nacre.store.review import Candidates, Comparisons, Reviews
    from nacre.store.schema import Database
    from nacre.store.search import Selection, Vectors, WordSearch
    from nacre.store.sessions import Activity, ArchiveIndex, DeedIndex, ProjectContents, Sessions
    from nacre.store.sqlite import FileDatabase
    from nacre.values.memory import Actor
    from nacre.vault.git import Repository

T = TypeVar("T")

# -- Home ----------------------------------------------------------------------
#
# Stores and modules load on first use, because a hook without a daemon has only 150 ms.


BUNDLED = "minilm"
"""Setting value that selects the bundled embedding model."""

EmbedderLoader = Callable[[Settings], Embedder]
ModelLoader = Callable[[Settings, str], LanguageModel]


class Stores:
    """The stores of a home, each imported when it is first used."""

    repository: Lazy[Repository] = Lazy(
        "nacre.vault.git:Repository",
        lambda kind, home: kind(home.settings.vault, home.settings.environ),
    )
    redactor: Lazy[Redactor] = Lazy(
        "nacre.redact.redactor:Redactor", lambda kind, home: kind(*home.settings.redaction)
    )
    handoffs: Lazy[Handoffs] = Lazy(
        "nacre.home.projects:Handoffs", lambda kind, home: kind(home.folder)
    )
    memories: Lazy[Memories] = Lazy("nacre.store.memories:Memories")
    candidates: Lazy[Candidates] = Lazy("nacre.store.review:Candidates")
    links: Lazy[Links] = Lazy("nacre.store.memories:Links")
    comparisons: Lazy[Comparisons] = Lazy("nacre.store.review:Comparisons")
    sessions: Lazy[Sessions] = Lazy("nacre.store.sessions:Sessions")
    deeds: Lazy[DeedIndex] = Lazy("nacre.store.sessions:DeedIndex")
    selection: Lazy[Selection] = Lazy("nacre.store.search:Selection")
    usage: Lazy[UsageLog] = Lazy("nacre.store.memories:UsageLog")
    session_uses: Lazy[SessionUses] = Lazy("nacre.store.memories:SessionUses")
    co_recall: Lazy[CoRecall] = Lazy("nacre.store.memories:CoRecall")
    reviews: Lazy[Reviews] = Lazy("nacre.store.review:Reviews")
    tombstones: Lazy[Tombstones] = Lazy("nacre.store.journal:Tombstones")
    archive: Lazy[ArchiveIndex] = Lazy("nacre.store.sessions:ArchiveIndex")
    erasing: Lazy[Erasing] = Lazy("nacre.store.maintenance:Erasing")
    files: Lazy[VaultIndex] = Lazy("nacre.store.journal:VaultIndex")
    project_contents: Lazy[ProjectContents] = Lazy("nacre.store.sessions:ProjectContents")
    journal: Lazy[Journal] = Lazy("nacre.store.journal:Journal")
    spending: Lazy[Spending] = Lazy("nacre.store.journal:Spending")
    activity: Lazy[Activity] = Lazy("nacre.store.sessions:Activity")
    questions: Lazy[Questions] = Lazy("nacre.store.journal:Questions")


@dataclass(frozen=True)
class Home(Stores):
    """An open nacre home, which gives access to the vault, the database and the settings."""

    settings: Settings
    database: Database
    clock: Clock
    ids: Ids
    load_embedder: EmbedderLoader
    load_model: ModelLoader
    """Function that opens the language model with a given name."""
    problems: list[str] = field(default_factory=list)
    """Problems that did not prevent an operation, shown with its answer. Scans of the vault clear them."""
    earlier: Vectors | None = None
    """During a rebuild, the vectors in the database that is being replaced."""
    embedders: dict[str, Embedder] = field(default_factory=dict)
    """Loaded embedding models. The keys are values of the setting ``embedding.model``."""
    observe: Observe | None = None
    turn: Turn = field(default_factory=Turn)
    """Lock for threads that share the home, released while a thread waits for a model."""

    @property
    def database_file(self) -> FileDatabase:
        """The local database file. Raises UnavailableError for a database on a server."""
        if not isinstance(self.database, sqlite.FileDatabase):
            raise UnavailableError(
                "this memory is on a server, which manages its own database",
                hint="manage the database on the server",
            )
        return self.database

    @cached_property
    def vault(self) -> Vault:
        """The vault with the memories, stored as files or as rows on a server."""
        server = self.database.server
        return server.vault(self.clock) if server else Vault(self.settings.vault)

    @cached_property
    def memory_search(self) -> WordSearch:
        """Full-text search of memories."""
        return self._word_search("memories")

    @cached_property
    def turn_search(self) -> WordSearch:
        """Full-text search of conversation turns."""
        return self._word_search("turns")

    def _word_search(self, kind: str) -> WordSearch:
        server = self.database.server
        return server.search(kind) if server else search.Search(self.database_file, kind)

    @cached_property
    def folder(self) -> Path:
        """The folder for spools and handoffs.

        Each space on a server has its own folder, unless the home's config file selects the space.
        """
        origin = self.settings.values["storage.tenant"].origin
        if not self.database.server or origin in ("default", str(self.settings.config)):
            return self.settings.home
        folder = self.settings.home / "spaces" / self.settings.text("storage.tenant")
        files.make_folder(folder)
        return folder

    @cached_property
    def vault_lock(self) -> FileLock:
        """A reentrant lock that must be held to change the vault and its index."""
        return self._lock("vault")

    @cached_property
    def archive_lock(self) -> FileLock:
        """A reentrant lock that must be held to change the archive."""
        return self._lock("archive")

    @cached_property
    def writer_lock(self) -> FileLock:
        """A lock that keeps two processes from sending the same sessions to a paid model."""
        return self._lock("writer")

    def _lock(self, name: str) -> FileLock:
        server = self.database.server
        lock = (
            server.lock(name)
            if server
            else FileLock(self.settings.home / f"{name}.lock", observe=self.observe)
        )
        lock.check = self.check_place
        return lock

    def check_place(self) -> None:
        """Raise StoreBusyError if the memory was moved since it was opened."""
        with suppress(InvalidSettingsError):
            if self.settings.read_again().server == self.settings.server:
                return
            raise StoreBusyError(
                "this memory was just moved to another place",
                hint="nothing was written: repeat the command",
            )

    def change(
        self, action: str, *, subject: str | None = None, why: str | None = None
    ) -> AbstractContextManager[Change]:
        """Return a context that holds the vault lock and records its changes as one operation.

        ``action`` names the operation in the history, where ``subject`` and ``why`` describe it.
        Nothing is recorded unless the block writes. A nested change is a separate operation, which
        must begin before the outer change writes or within its open transaction. Raises
        StoreBusyError.
        """
        context: AbstractContextManager[Change] = load("nacre.home.change:change")(
            self, action, subject, why
        )
        return context

    def run(
        self,
        action: str,
        *,
        subject: str | None = None,
        why: str | None = None,
        op: str | None = None,
    ) -> AbstractContextManager[Run]:
        """Return a context for a long operation that lets other processes write between its steps.

        ``op`` is the operation's id; the other arguments are those of :meth:`change`.
        """
        context: AbstractContextManager[Run] = load("nacre.home.change:run")(
            self, action, subject, why, op
        )
        return context

    @cached_property
    def vectors(self) -> Vectors:
        """The vectors of memories and passages. Raises EmbedderUnavailableError if numpy is
        missing.
        """
        vectors: Vectors = _load_with_numpy("nacre.store.search:Vectors")(self.database)
        return vectors

    def close(self) -> None:
        """Close the database and the embedding models."""
        for embedder in self.embedders.values():
            if isinstance(embedder, RemoteEmbedder):
                embedder.close()
        self.disconnect()

    def disconnect(self) -> None:
        """Close the database, but keep the embedding models loaded."""
        self.database.close()

    @property
    def actor(self) -> Actor:
        """The person or program on whose behalf this home is used."""
        return self.settings.actor

    def ledger(self, *, whole: bool = False) -> bytes:
        """Return the content of the ledger file, or empty bytes if it is missing.

        A file above the size limit is read only if ``whole`` is True.
        """
        try:
            return self.vault.read(LEDGER, any_size=whole)
        except FileNotFoundError:
            return b""

    def transaction(self) -> AbstractContextManager[None]:
        """Run the block in a database transaction. Nested blocks join the outer transaction."""
        return self.database.transaction()

    def today(self) -> date:
        """Return the current date in local time."""
        return day_of(self.clock())

    def now(self) -> datetime:
        """Return the current time, rounded to milliseconds."""
        return to_millisecond(self.clock())

    def now_ms(self) -> int:
        """Return the current time in milliseconds since the epoch."""
        return round(self.now().timestamp() * 1000)


def open_home(
    settings: Settings,
    *,
    clock: Clock = utc_now,
    ids: Ids | None = None,
    load_embedder: EmbedderLoader | None = None,
    load_model: ModelLoader | None = None,
    observe: Observe | None = None,
) -> Home:
    """Open a home, and create missing files and folders.

    On a full or read-only disk, an existing home opens read-only, and writes raise an error.
    ``observe`` is called with the time each lock was held. Raises UnusableStoreError,
    UnusableVaultError, or SchemaTooNewError if a newer nacre wrote the home.
    """
    try:
        if load("nacre.home.change:finish")(settings.home):  # the config file did not exist before
            settings = replace(
                settings, values=load_settings(settings.home, settings.environ).values
            )
        files.make_folder(settings.home)
        files.refuse_unsafe(settings.home)
        files.make_folder(settings.database.parent)
    except OSError as error:
        raise UnusableStoreError(
            f"cannot create {settings.home}: {error.strerror}",
            hint="set NACRE_HOME to a folder you can write to",
        ) from error
    if settings.server:  # a server stores every version itself
        settings = settings.having("git.enabled", False)
    database = open_database(settings, observe)
    return Home(
        settings=settings,
        database=database,
        clock=clock,
        ids=ids or uuid7_source(clock),
        load_embedder=load_embedder or _load_configured,
        load_model=load_model or _open_model,
        observe=observe,
    )


def open_database(
    settings: Settings, observe: Observe | None = None, unwritable: NacreError | None = None
) -> Database:
    """Open a home's database, and create or migrate it if needed.

    If ``unwritable`` is given, writes to a server's database raise it. Raises UnusableStoreError,
    StoreBusyError, SchemaTooNewError, or UnavailableError if the server's engine is missing.
    """
    if settings.server:
        engine = plugins.load_engine(settings.server)
        tenant, account = map(settings.text, ("storage.tenant", "storage.account"))
        return engine(settings.server, tenant, account, unwritable)
    Vault(settings.vault).prepare()
    return sqlite.open_database(settings.database, observe)


def open_to_read(settings: Settings, *, patience_ms: int, clock: Clock = utc_now) -> Home:
    """Open a home read-only, without creating, migrating or indexing anything.

    ``patience_ms`` limits the wait for a lock. Raises UnusableStoreError if the database is
    missing, outdated, locked for too long, or writable by other users.
    """
    if settings.server:
        raise UnusableStoreError("this memory is on a server, which cannot be opened read-only")
    if not settings.database.is_file():
        raise UnusableStoreError(f"there is no database at {settings.database}")
    files.refuse_unsafe(settings.home)
    unwritable = UnusableStoreError("this home was opened read-only")
    return Home(
        settings,
        sqlite.FileDatabase(settings.database, unwritable=unwritable, patience_ms=patience_ms),
        clock,
        uuid7_source(clock),
        _load_configured,
        _open_model,
    )


def _load_configured(settings: Settings) -> Embedder:
    name = settings.text("embedding.model")
    if name == "none":
        raise EmbedderUnavailableError(
            "the embedding model is off", hint="nacre config set embedding.model minilm"
        )
    if name == BUNDLED:
        return cast("Embedder", _load_with_numpy("nacre.llm.local_model:load_minilm")())
    open_embedder = _load_with_numpy("nacre.llm.embeddings:open_embedder")
    return cast("Embedder", open_embedder(settings, name))


def _open_model(settings: Settings, name: str) -> LanguageModel:
    return providers.open_model(settings, name)  # on first use, because importing it is slow


def _load_with_numpy(target: str) -> Any:
    # Importing numpy takes about 100 ms.
    try:
        load("numpy:ndarray")  # target modules import numpy on first use
        return load(target)
    except ModuleNotFoundError as error:
        raise EmbedderUnavailableError(
            f"{error.name} is not installed", hint=environment.NO_VECTORS
        ) from error


# -- Protected paths -----------------------------------------------------------


def territory(settings: Settings) -> files.KeptOut:
    """Return the paths that nacre uses itself, so that exports can avoid them."""
    database = [
        settings.database.with_name(f"{settings.database.name}{suffix}")
        for suffix in ("", "-wal", "-shm")
    ]
    return settings.home, settings.vault, settings.config, *database
