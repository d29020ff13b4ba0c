"""An open nacre home: stores, locks, clock and models, and the caller's rights in a space."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from nacre.base import files
from nacre.base.ids import Clock, Ids, to_millisecond, utc_now, uuid7_source
from nacre.base.lazy import Lazy, load
from nacre.base.locks import FileLock, Observe, Turn
from nacre.base.named_files import Territory
from nacre.base.times import day_of
from nacre.errors import (
    EmbedderUnavailableError,
    NacreError,
    RerankerUnavailableError,
    UnavailableError,
    UnusableStoreError,
)
from nacre.protocols import Embedder, LanguageModel, RemoteEmbedder, Reranker
from nacre.settings import Settings, load_settings
from nacre.vault.files import LEDGER

if TYPE_CHECKING:
    from nacre.home.change import Change, Run
    from nacre.home.projects import Handoffs
    from nacre.redact.redactor import Redactor
    from nacre.store.journal import Journal, Spending, Tombstones, Traces, VaultIndex
    from nacre.store.maintenance import Erasing
    from nacre.store.memories import CoRecall, Links, Memories, SessionUses, UsageLog
    from nacre.store.review import Candidates, Comparisons, Reviews
    from nacre.store.schema import Database, Engine
    from nacre.store.search import Selection, Vectors, WordSearch
    from nacre.store.sessions import Activity, ArchiveIndex, DeedIndex, ProjectContents, Sessions
    from nacre.store.sqlite import FileDatabase
    from nacre.values.memory import Actor
    from nacre.values.recall import DeepResult
    from nacre.vault.files import Vault
    from nacre.vault.git import Repository

T = TypeVar("T")

SECONDS = 30.0
_MAX_VALUES = 64


class TimedCache(Generic[T]):
    """A cache that keeps values for 30 seconds, measured with ``clock``.

    The key must include everything that the value depends on.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._values: dict[Hashable, tuple[float, T]] = {}

    def get(self, key: Hashable) -> T | None:
        """Return a value, or ``None`` if it is missing or expired."""
        entry = self._values.get(key)
        return entry[1] if entry and self._clock() - entry[0] < SECONDS else None

    def put(self, key: Hashable, value: T) -> None:
        """Store a value, evicting the oldest if the cache is full."""
        self._values.pop(key, None)
        self._values[key] = (self._clock(), value)
        if len(self._values) > _MAX_VALUES:
            del self._values[next(iter(self._values))]


# -- Home ----------------------------------------------------------------------
#
# Stores are imported on first use, because a hook without a daemon has only 150 ms.


BUNDLED = "minilm"
"""Setting value that selects the bundled embedding model."""

EmbedderLoader = Callable[[Settings], Embedder]
RerankerLoader = Callable[[Settings], Reranker | None]
ModelLoader = Callable[[Settings, str], LanguageModel]


class Stores:
    """The stores of a home. Each store is imported when it is first used."""

    repository: Lazy[Repository] = Lazy(
        "nacre.vault.git:Repository",
        lambda kind, home: kind(home.settings.vault, home.settings.environ),
    )
    """The vault's git history."""
    redactor: Lazy[Redactor] = Lazy(
        "nacre.redact.redactor:Redactor", lambda kind, home: kind(*home.settings.redaction)
    )
    """Redactor for all stored text."""
    handoffs: Lazy[Handoffs] = Lazy(
        "nacre.home.projects:Handoffs", lambda kind, home: kind(home.folder)
    )
    """Handoffs between sessions."""
    memories: Lazy[Memories] = Lazy("nacre.store.memories:Memories")
    """Indexed memories."""
    candidates: Lazy[Candidates] = Lazy("nacre.store.review:Candidates")
    """Candidate memories, pending review."""
    links: Lazy[Links] = Lazy("nacre.store.memories:Links")
    """Links between memories."""
    comparisons: Lazy[Comparisons] = Lazy("nacre.store.review:Comparisons")
    """Data for comparing memories."""
    sessions: Lazy[Sessions] = Lazy("nacre.store.sessions:Sessions")
    """Indexed sessions and turns."""
    deeds: Lazy[DeedIndex] = Lazy("nacre.store.sessions:DeedIndex")
    """Agents' operations on files, and failed calls."""
    selection: Lazy[Selection] = Lazy("nacre.store.search:Selection")
    """Selection of memories and turns by filter."""
    usage: Lazy[UsageLog] = Lazy("nacre.store.memories:UsageLog")
    """Log of memory use."""
    session_uses: Lazy[SessionUses] = Lazy("nacre.store.memories:SessionUses")
    """Memories used in each session."""
    co_recall: Lazy[CoRecall] = Lazy("nacre.store.memories:CoRecall")
    """Pairs of memories that were used together."""
    reviews: Lazy[Reviews] = Lazy("nacre.store.review:Reviews")
    """The review queue."""
    tombstones: Lazy[Tombstones] = Lazy("nacre.store.journal:Tombstones")
    """Tombstones of forgotten items."""
    archive: Lazy[ArchiveIndex] = Lazy("nacre.store.sessions:ArchiveIndex")
    """Index of the transcript archive."""
    erasing: Lazy[Erasing] = Lazy("nacre.store.maintenance:Erasing")
    """Deletion of forgotten items."""
    files: Lazy[VaultIndex] = Lazy("nacre.store.journal:VaultIndex")
    """Indexed vault files."""
    project_contents: Lazy[ProjectContents] = Lazy("nacre.store.sessions:ProjectContents")
    """Contents of projects."""
    journal: Lazy[Journal] = Lazy("nacre.store.journal:Journal")
    """Operations and their writes."""
    spending: Lazy[Spending] = Lazy("nacre.store.journal:Spending")
    """Model calls and their costs."""
    activity: Lazy[Activity] = Lazy("nacre.store.sessions:Activity")
    """Counts of sessions, memories and calls by day."""
    traces: Lazy[Traces] = Lazy("nacre.store.journal:Traces")
    """Traces of model calls and questions."""


@dataclass(frozen=True)
class Home(Stores):
    """An open nacre home."""

    settings: Settings
    database: Database
    clock: Clock
    ids: Ids
    load_embedder: EmbedderLoader
    load_reranker: RerankerLoader
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
    """Lock for threads that share the home. Threads release it while they wait for a model."""

    @property
    def database_file(self) -> FileDatabase:
        """The database file. Raises UnavailableError for a database on a server."""
        kind = load("nacre.store.sqlite:FileDatabase")
        if not isinstance(self.database, kind):
            raise UnavailableError(
                "this memory is on a server, which manages its own database", hint="manage it there"
            )
        return cast("FileDatabase", self.database)

    @cached_property
    def vault(self) -> Vault:
        """The vault with the memory files. A server keeps these files in its database."""
        if server := self.database.server:
            return server.vault(self.clock)
        vault: Vault = load("nacre.vault.files:Vault")(self.settings.vault)
        return vault

    @cached_property
    def memory_search(self) -> WordSearch:
        """Full-text search in memories."""
        return self._word_search("memories")

    @cached_property
    def turn_search(self) -> WordSearch:
        """Full-text search in turns."""
        return self._word_search("turns")

    def _word_search(self, kind: str) -> WordSearch:
        if server := self.database.server:
            return server.search(kind)
        search: WordSearch = load("nacre.store.search:word_search")(self.database, kind)
        return search

    @cached_property
    def analyses(self) -> TimedCache[Any]:
        """Cached link analyses."""
        return TimedCache(lambda: self.clock().timestamp())

    @cached_property
    def deep_answers(self) -> TimedCache[DeepResult]:
        """Cached deep recall answers."""
        return TimedCache(lambda: self.clock().timestamp())

    @cached_property
    def folder(self) -> Path:
        """The folder for spools and handoffs.

        A space on a server has its own folder, unless it is selected in the home's config file.
        """
        origin = self.settings.values["storage.tenant"].origin
        if not self.database.server or origin in ("default", str(self.settings.config)):
            return self.settings.home
        folder = self.settings.home / "spaces" / self.settings.text("storage.tenant")
        files.make_folder(folder)
        return folder

    @cached_property
    def vault_lock(self) -> FileLock:
        """Reentrant lock for changing the vault and its index rows."""
        return self._lock("vault")

    @cached_property
    def archive_lock(self) -> FileLock:
        """Reentrant lock for changing the archive."""
        return self._lock("archive")

    @cached_property
    def writer_lock(self) -> FileLock:
        """Lock that keeps two processes from sending the same sessions to a paid model."""
        return self._lock("writer")

    def _lock(self, name: str) -> FileLock:
        """Return a lock shared by all processes that write to the memory."""
        if server := self.database.server:
            return server.lock(name)
        return FileLock(self.settings.home / f"{name}.lock", observe=self.observe)

    def change(
        self, action: str, *, subject: str | None = None, why: str | None = None
    ) -> AbstractContextManager[Change]:
        """Return a context in which the vault can be changed as one operation.

        ``action`` is the operation's name in the history. ``subject`` and ``why`` describe
        the operation and are redacted. The vault lock is held during the change. An
        operation without writes is not recorded. A nested change is a separate operation.
        It must begin before the outer change writes, or while the outer change has an open
        transaction. Raises StoreBusyError.
        """
        operation = load("nacre.home.operations:OpenOperation")(self, action, subject, why)
        context: AbstractContextManager[Change] = load("nacre.home.change:change")(operation)
        return context

    def run(
        self,
        action: str,
        *,
        subject: str | None = None,
        why: str | None = None,
        op: str | None = None,
    ) -> AbstractContextManager[Run]:
        """Start a long operation. Other processes can write between the operation's parts.

        ``op`` is the operation's id. :meth:`change` explains the other arguments. If this
        process crashes, the next process that writes closes the operation.
        """
        operation = load("nacre.home.operations:OpenOperation")(
            self, action, subject, why, op, is_long=True
        )
        context: AbstractContextManager[Run] = load("nacre.home.change:run")(operation)
        return context

    @cached_property
    def vectors(self) -> Vectors:
        """Vectors of passages and memories. Raises EmbedderUnavailableError if numpy is missing."""
        return self._vectors(other=False)

    @cached_property
    def other_vectors(self) -> Vectors:
        """Vectors of another embedding model, before or after the model is changed.

        Raises EmbedderUnavailableError.
        """
        return self._vectors(other=True)

    def _vectors(self, *, other: bool) -> Vectors:
        kind = _load_with_numpy("nacre.store.search:Vectors")
        vectors: Vectors = kind(self.database, other=other)
        return vectors

    def load_once(self, name: str) -> Embedder:
        """Load an embedding model, or return the loaded model. Raises EmbedderUnavailableError.

        The module :mod:`nacre.home.consent` checks consent and budgets.
        """
        if name not in self.embedders:
            self.embedders[name] = self.load_embedder(self.settings.having("embedding.model", name))
        return self.embedders[name]

    def close(self) -> None:
        """Close the database and the embedding models."""
        for embedder in self.embedders.values():
            if isinstance(embedder, RemoteEmbedder):
                embedder.close()
        self.disconnect()

    def disconnect(self) -> None:
        """Close the database, but not the embedding models."""
        self.database.close()

    @cached_property
    def reranker(self) -> Reranker | None:
        """The model that reranks the best hits, or ``None`` if not configured. Raises RerankerUnavailableError."""
        return self.load_reranker(self.settings)

    @property
    def actor(self) -> Actor:
        """The current caller."""
        return self.settings.actor

    def ledger(self, *, whole: bool = False) -> bytes:
        """Return the content of the ledger file, which is empty if the file is missing.

        With ``whole``, the file may have any size.
        """
        try:
            return self.vault.read(LEDGER, whole=whole)
        except FileNotFoundError:
            return b""

    def transaction(self) -> AbstractContextManager[None]:
        """Run the block in a transaction of the database. Nested blocks join the outer transaction."""
        return self.database.transaction()

    def today(self) -> date:
        """Return the current day in local time."""
        return day_of(self.clock())

    def now(self) -> datetime:
        """Return the current time in whole milliseconds."""
        return to_millisecond(self.clock())

    def now_ms(self) -> int:
        """Return the current time in epoch milliseconds."""
        return round(self.now().timestamp() * 1000)


def open_home(
    settings: Settings,
    *,
    clock: Clock = utc_now,
    ids: Ids | None = None,
    load_embedder: EmbedderLoader | None = None,
    load_reranker: RerankerLoader | None = None,
    load_model: ModelLoader | None = None,
    observe: Observe | None = None,
) -> Home:
    """Open a home, creating missing parts.

    An existing home on a full or read-only disk is opened read-only. Writes then raise
    ``database.unwritable``. ``observe`` is called with the time for which each lock was held.
    Raises UnusableStoreError, UnusableVaultError, SchemaTooNewError.
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
        load_reranker=load_reranker or _load_configured_reranker,
        load_model=load_model or load_configured_model,
        observe=observe,
    )


def open_database(
    settings: Settings, observe: Observe | None = None, unwritable: NacreError | None = None
) -> Database:
    """Open a home's database, and create or migrate it.

    If ``unwritable`` is given, a server's database is read-only, and writes raise this error.
    Raises UnusableStoreError, StoreBusyError, SchemaTooNewError, and UnavailableError if the
    server's engine is missing.
    """
    if settings.server:
        engine: Engine = load("nacre.base.plugins:load_engine")(settings.server)
        tenant, account = map(settings.text, ("storage.tenant", "storage.account"))
        return engine(settings.server, tenant, account, unwritable)
    load("nacre.vault.files:Vault")(settings.vault).prepare()
    file: Database = load("nacre.store.sqlite:open_database")(settings.database, observe)
    return file


def open_to_read(settings: Settings, *, patience_ms: int, clock: Clock = utc_now) -> Home:
    """Open a home read-only, without creating, migrating or indexing anything.

    ``patience_ms`` is the longest time to wait for a lock. Raises UnusableStoreError if the
    database is missing, outdated, locked for too long, or writable for other users.
    """
    if settings.server:
        raise UnusableStoreError("this memory is on a server, which cannot be opened read-only")
    if not settings.database.is_file():
        raise UnusableStoreError(f"there is no database at {settings.database}")
    files.refuse_unsafe(settings.home)
    unwritable = UnusableStoreError("this home was opened read-only")
    database_class = load("nacre.store.sqlite:FileDatabase")
    return Home(
        settings,
        database_class(settings.database, unwritable=unwritable, patience_ms=patience_ms),
        clock,
        uuid7_source(clock),
        _load_configured,
        _load_configured_reranker,
        load_configured_model,
    )


def _load_configured(settings: Settings) -> Embedder:
    name = settings.text("embedding.model")
    if name == "none":
        raise EmbedderUnavailableError(
            "the embedding model is off", hint="nacre config set embedding.model minilm"
        )
    if name == BUNDLED:
        return cast("Embedder", _load_with_numpy("nacre.llm.local_model:load_minilm")())
    if name.startswith("onnx:"):
        folder = Path(name.removeprefix("onnx:")).expanduser()
        return cast("Embedder", _load_with_numpy("nacre.llm.local_model:load_folder")(folder))
    # Importing the library takes up to a second.
    open_embedder = _load_with_numpy("nacre.llm.embeddings:open_embedder")
    return cast("Embedder", open_embedder(settings, name))


def _load_with_numpy(target: str) -> Any:
    """Import an object that needs numpy (about 100 ms). Raises EmbedderUnavailableError."""
    try:
        load("numpy:ndarray")  # target modules import numpy on first use
        return load(target)
    except ModuleNotFoundError as error:
        hint = load("nacre.base.environment:NO_VECTORS")
        raise EmbedderUnavailableError(f"{error.name} is not installed", hint=hint) from error


def _load_configured_reranker(settings: Settings) -> Reranker | None:
    if settings.text("recall.reranker") in ("", "none", "model"):
        return None
    try:
        kind = _load_with_numpy("nacre.llm.local_model:OnnxReranker")
    except EmbedderUnavailableError as error:
        raise RerankerUnavailableError(f"no reranker: {error.message}", hint=error.hint) from error
    reranker: Reranker = kind(Path(settings.text("recall.reranker")).expanduser())
    return reranker


def load_configured_model(settings: Settings, name: str) -> LanguageModel:
    """Open a language model as configured. Raises ModelRefusedError."""
    # Importing an SDK takes up to a second.
    model: LanguageModel = load("nacre.llm.providers:open_model")(settings, name)
    return model


# -- Protected paths -----------------------------------------------------------


def territory(settings: Settings) -> Territory:
    """Return the home and other paths used by nacre, where exports must not be written."""
    database = [
        settings.database.with_name(f"{settings.database.name}{suffix}")
        for suffix in ("", "-wal", "-shm")
    ]
    return Territory((settings.home, settings.vault), (settings.config, *database))
