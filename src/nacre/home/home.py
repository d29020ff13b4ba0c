"""The open home: its stores, locks, clock and models, and the caller's rights in a space."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from nacre.base import files
from nacre.base.frozen import frozen
from nacre.base.ids import Clock, Ids, to_millisecond, utc_now, uuid7_source
from nacre.base.lazy import Lazy, load
from nacre.base.locks import FileLock, Observe, Turn
from nacre.base.named_files import Territory
from nacre.base.times import day_of
from nacre.errors import (
    EmbedderUnavailableError,
    NacreError,
    NotAllowedError,
    RerankerUnavailableError,
    SpaceFullError,
    UnavailableError,
    UnusableStoreError,
)
from nacre.protocols import Embedder, LanguageModel, RemoteEmbedder, Reranker
from nacre.settings import Settings, load_settings
from nacre.values.memory import Role
from nacre.vault.files import LEDGER

if TYPE_CHECKING:
    from nacre.home.change import Change, Run
    from nacre.home.projects import FurtherSpaces, Handoffs
    from nacre.redact.redactor import Redactor
    from nacre.store.journal import Journal, Spending, Tombstones, Traces, VaultIndex
    from nacre.store.maintenance import Erasing
    from nacre.store.memories import CoRecall, Links, Memories, SessionUses, UsageLog
    from nacre.store.review import Candidates, Claims, Comparisons, Reviews
    from nacre.store.schema import Database
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


class Kept(Generic[T]):
    """A cache that keeps values for 30 seconds by ``clock``.

    The key must include everything the value depends on.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._values: dict[Hashable, tuple[float, T]] = {}

    def get(self, key: Hashable) -> T | None:
        """Return a value unless it is missing or expired."""
        entry = self._values.get(key)
        return entry[1] if entry and self._clock() - entry[0] < SECONDS else None

    def put(self, key: Hashable, value: T) -> None:
        """Store a value, evicting the oldest if there are too many."""
        self._values.pop(key, None)
        self._values[key] = (self._clock(), value)
        if len(self._values) > _MAX_VALUES:
            del self._values[next(iter(self._values))]


# -- Home ----------------------------------------------------------------------
#
# Each store's module is imported on first use: a hook without the daemon has 150 ms and needs few.


BUNDLED = "minilm"
"""Name of the bundled embedding model in the settings."""

EmbedderLoader = Callable[[Settings], Embedder]
RerankerLoader = Callable[[Settings], Reranker | None]
ModelLoader = Callable[[Settings, str], LanguageModel]


class Stores:
    """The parts of a home, each imported on first use."""

    repository: Lazy[Repository] = Lazy(
        "nacre.vault.git:Repository",
        lambda kind, home: kind(home.settings.vault, home.settings.environ),
    )
    """The git history of the vault."""
    redactor: Lazy[Redactor] = Lazy(
        "nacre.redact.redactor:Redactor",
        lambda kind, home: kind(*home.settings.redaction),
    )
    """Removes secrets from everything stored."""
    handoffs: Lazy[Handoffs] = Lazy(
        "nacre.home.projects:Handoffs", lambda kind, home: kind(home.folder)
    )
    """Handoffs between sessions."""
    memories: Lazy[Memories] = Lazy("nacre.store.memories:Memories")
    """Indexed memories."""
    candidates: Lazy[Candidates] = Lazy("nacre.store.review:Candidates")
    """Candidates for memories, pending review."""
    links: Lazy[Links] = Lazy("nacre.store.memories:Links")
    """Links between memories."""
    comparisons: Lazy[Comparisons] = Lazy("nacre.store.review:Comparisons")
    """Data for comparing memories."""
    claims: Lazy[Claims] = Lazy("nacre.store.review:Claims")
    """Claims of memories, and those waiting for a model."""
    sessions: Lazy[Sessions] = Lazy("nacre.store.sessions:Sessions")
    """Indexed sessions and turns."""
    deeds: Lazy[DeedIndex] = Lazy("nacre.store.sessions:DeedIndex")
    """File changes and commands of agents."""
    selection: Lazy[Selection] = Lazy("nacre.store.search:Selection")
    """Selection of memories and turns by filter."""
    usage: Lazy[UsageLog] = Lazy("nacre.store.memories:UsageLog")
    """Use of memories."""
    session_uses: Lazy[SessionUses] = Lazy("nacre.store.memories:SessionUses")
    """Memories used per session."""
    co_recall: Lazy[CoRecall] = Lazy("nacre.store.memories:CoRecall")
    """Memories used together."""
    reviews: Lazy[Reviews] = Lazy("nacre.store.review:Reviews")
    """Memories in review."""
    tombstones: Lazy[Tombstones] = Lazy("nacre.store.journal:Tombstones")
    """Tombstones of forgotten items."""
    archive: Lazy[ArchiveIndex] = Lazy("nacre.store.sessions:ArchiveIndex")
    """Index of the transcript archive."""
    erasing: Lazy[Erasing] = Lazy("nacre.store.maintenance:Erasing")
    """Deletion of forgotten items."""
    files: Lazy[VaultIndex] = Lazy("nacre.store.journal:VaultIndex")
    """Indexed files of the vault."""
    project_contents: Lazy[ProjectContents] = Lazy("nacre.store.sessions:ProjectContents")
    """Items per project."""
    journal: Lazy[Journal] = Lazy("nacre.store.journal:Journal")
    """Operations and their writes."""
    spending: Lazy[Spending] = Lazy("nacre.store.journal:Spending")
    """Calls of models and their costs."""
    activity: Lazy[Activity] = Lazy("nacre.store.sessions:Activity")
    """Times of events."""
    traces: Lazy[Traces] = Lazy("nacre.store.journal:Traces")
    """Traces of runs."""
    further_spaces: Lazy[FurtherSpaces] = Lazy(
        "nacre.home.projects:FurtherSpaces", lambda kind, home: kind(home)
    )
    """Other spaces of the server that recall reads."""


@dataclass(frozen=True)
class Home(Stores):
    """An open home. ``now()`` has whole milliseconds, as in the vault."""

    settings: Settings
    database: Database
    clock: Clock
    ids: Ids
    load_embedder: EmbedderLoader
    load_reranker: RerankerLoader
    load_model: ModelLoader
    """Opens a language model by name."""
    problems: list[str] = field(default_factory=list)
    """Non-fatal problems, shown with the answer. A scan of the vault clears them."""
    earlier: Vectors | None = None
    """Vectors of the database that a rebuild replaces."""
    embedders: dict[str, Embedder] = field(default_factory=dict)
    """Loaded embedding models by name in the settings."""
    observe: Observe | None = None
    turn: Turn = field(default_factory=Turn)
    """Threads sharing the home use it one at a time, and step aside while waiting for a model."""

    @property
    def database_file(self) -> FileDatabase:
        """The database if it is a file. Raises UnavailableError for a server."""
        kind = load("nacre.store.sqlite:FileDatabase")
        if not isinstance(self.database, kind):
            raise UnavailableError(
                "this memory is on a server, which keeps its database itself",
                hint="see to it there",
            )
        return cast("FileDatabase", self.database)

    @cached_property
    def vault(self) -> Vault:
        """The vault, in files or in rows of a server."""
        vault: Vault
        if self.database.is_server:
            documents = load("nacre.store.postgres:Documents")(self.database, self.clock)
            vault = load("nacre.home.projects:ServerVault")(documents)
        else:
            vault = load("nacre.vault.files:Vault")(self.settings.vault)
        return vault

    @cached_property
    def memory_search(self) -> WordSearch:
        """Full-text search in memories."""
        return self._word_search("memory_search")

    @cached_property
    def turn_search(self) -> WordSearch:
        """Full-text search in turns."""
        return self._word_search("turn_search")

    def _word_search(self, name: str) -> WordSearch:
        module = "postgres_schema" if self.database.is_server else "search"
        search: WordSearch = load(f"nacre.store.{module}:{name}")(self.database)
        return search

    @cached_property
    def analyses(self) -> Kept[Any]:
        """Cached analyses of links."""
        return Kept(lambda: self.clock().timestamp())

    @cached_property
    def deep_answers(self) -> Kept[DeepResult]:
        """Cached answers of deep recall."""
        return Kept(lambda: self.clock().timestamp())

    @cached_property
    def folder(self) -> Path:
        """The folder of spools and handoffs.

        A space on a server selected other than by the home's config has its own folder, so that
        spools of different spaces are not mixed.
        """
        origin = self.settings.values["storage.tenant"].origin
        if not self.database.is_server or origin in ("default", str(self.settings.config)):
            return self.settings.home
        folder = self.settings.home / "spaces" / self.settings.text("storage.tenant")
        files.make_folder(folder)
        return folder

    @cached_property
    def vault_lock(self) -> FileLock:
        """Reentrant lock for changes of the vault and its index rows."""
        return self._lock("vault")

    @cached_property
    def archive_lock(self) -> FileLock:
        """Reentrant lock for changes of the archive."""
        return self._lock("archive")

    @cached_property
    def writer_lock(self) -> FileLock:
        """Lock of the writer, so that no two processes pay for the same sessions."""
        return self._lock("writer")

    def _lock(self, name: str) -> FileLock:
        """Return a lock between all processes that may write to the memory."""
        if self.database.is_server:
            lock: FileLock = load("nacre.store.postgres:ServerLock")(self.database, name)
            return lock
        return FileLock(self.settings.home / f"{name}.lock", observe=self.observe)

    def change(
        self, action: str, *, subject: str | None = None, why: str | None = None
    ) -> AbstractContextManager[Change]:
        """Change the vault as one operation: hold its lock, and write the intents to the files at the end.

        ``action`` is its name in ledger and history. ``subject`` and ``why`` describe it and are
        redacted. Nothing is recorded until something is written. A nested change is a separate
        operation, which must begin before the outer one writes, or in its transaction. Raises
        StoreBusyError.
        """
        context: AbstractContextManager[Change] = load("nacre.home.change:change")(
            self, action, subject=subject, why=why
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
        """Start a long operation in parts, between which others write.

        Arguments as for :meth:`change`; ``op`` is its id.

        After a crash, the next writer closes it.
        """
        context: AbstractContextManager[Run] = load("nacre.home.change:run")(
            self, action, subject=subject, why=why, op=op
        )
        return context

    @cached_property
    def vectors(self) -> Vectors:
        """Vectors of passages and memories. Raises EmbedderUnavailableError without numpy."""
        return self._vectors(other=False)

    @cached_property
    def other_vectors(self) -> Vectors:
        """Vectors of another model, incomplete or kept to switch back. Raises EmbedderUnavailableError."""
        return self._vectors(other=True)

    def _vectors(self, *, other: bool) -> Vectors:
        kind = _load_with_numpy("nacre.store.search:Vectors")
        vectors: Vectors = kind(self.database, other=other)
        return vectors

    def loaded_embedder(self, name: str) -> Embedder:
        """Return an embedding model, loaded once, without the owner's limits on texts sent to it.

        :mod:`nacre.home.consent` applies those limits. Raises EmbedderUnavailableError.
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
        """Close the databases of the home and of further spaces, but not the embedding models."""
        if "further_spaces" in self.__dict__:
            self.further_spaces.close()
        self.database.close()

    @cached_property
    def reranker(self) -> Reranker | None:
        """The model that reranks the best hits, if configured. Raises RerankerUnavailableError."""
        return self.load_reranker(self.settings)

    @property
    def actor(self) -> Actor:
        """The current caller."""
        return self.settings.actor

    @contextmanager
    def allowed(self, operation: str, *, writes: bool, owners: bool) -> Iterator[None]:
        """Run an operation in the block. Raises NotAllowedError if the role does not allow it.

        Writes and refusals are recorded in the space's audit log.
        """
        caller = standing(self)
        if refusal := _refusal(caller, operation, writes=writes, owners=owners):
            note(self, caller, operation, outcome=refusal.code)
            raise refusal
        try:
            yield
        except NacreError as error:
            if writes:
                note(self, caller, operation, outcome=error.code)
            raise
        if writes and not operation.startswith(_SELF_LOGGED):
            note(self, caller, operation)

    def ledger(self, *, whole: bool = False) -> bytes:
        """Return the ledger, also if it is very long with ``whole``; empty if there is none."""
        try:
            return self.vault.read(LEDGER, whole=whole)
        except FileNotFoundError:
            return b""

    def today(self) -> date:
        """Return the current day by the owner's clock."""
        return day_of(self.clock())

    def now(self) -> datetime:
        """Return the current time in whole milliseconds."""
        return to_millisecond(self.clock())


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
    """Open a home, creating missing parts. Raises UnusableStoreError, UnusableVaultError, SchemaTooNewError.

    An existing home on a full or read-only disk is opened read-only: every write raises
    ``database.unwritable``. ``observe`` receives how long locks were held.
    """
    try:
        if load("nacre.home.change:finish")(settings.home):  # its settings were missing before
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


def open_database(settings: Settings, observe: Observe | None = None) -> Database:
    """Open the database of a home, creating or migrating it.

    Raises UnusableStoreError, StoreBusyError, SchemaTooNewError.
    """
    if settings.server:
        server: Database = load("nacre.store.postgres:PostgresDatabase")(
            settings.server, settings.text("storage.tenant"), settings.text("storage.account")
        )
        return server
    load("nacre.vault.files:Vault")(settings.vault).prepare()
    file: Database = load("nacre.store.sqlite:open_database")(settings.database, observe)
    return file


def open_to_read(settings: Settings, *, patience_ms: int, clock: Clock = utc_now) -> Home:
    """Open a home read-only, without creating, migrating or indexing anything.

    Wait for locks for at most ``patience_ms``. Raises UnusableStoreError if there is no database of the
    current schema, it cannot be read in time, or another user could have modified it.
    """
    if settings.server:
        raise UnusableStoreError("this memory is on a server, and is opened as a whole")
    if not settings.database.is_file():
        raise UnusableStoreError(f"there is no database at {settings.database}")
    files.refuse_unsafe(settings.home)
    unwritable = UnusableStoreError("this home was opened to be read")
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
    # Importing its library takes up to a second.
    open_embedder = _load_with_numpy("nacre.llm.embeddings:open_embedder")
    return cast("Embedder", open_embedder(settings, name))


def _load_with_numpy(target: str) -> Any:
    """Load a target, which takes about 100 ms. Raises EmbedderUnavailableError without numpy."""
    try:
        load("numpy:ndarray")  # its modules import it on first use
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
    """Open a language model with its settings. Raises ModelRefusedError."""
    # Importing an SDK takes up to a second.
    model: LanguageModel = load("nacre.llm.providers:open_model")(settings, name)
    return model


# -- Rights in a space ---------------------------------------------------------


DONE = "done"
_SELF_LOGGED = ("spaces-", "keys-", "share")
"""Operations that write detailed entries to the audit logs of the spaces concerned."""


@frozen
class Standing:
    """The caller and their role.

    ``kind`` and ``raising`` belong to the space, and are ``None`` if the tenant is not a space.
    """

    account: str
    space: str
    role: Role
    kind: str | None
    raising: str | None


def standing(home: Home) -> Standing:
    """Return the caller's current role in the open space.

    Raises UnavailableError if the memory is in a file, NotAllowedError if the caller is not a member (any
    more).
    """
    require_server(home)
    space = home.settings.text("storage.tenant")
    account = home.settings.text("storage.account") or space
    row = home.database.one("read_standing", account=account)
    if row is None:
        raise NotAllowedError(
            f"{account} does not belong to the space {space}", hint="an owner lets you in"
        )
    role, kind, raising = row
    return Standing(account, space, Role(role).at_most(home.actor.most), kind, raising)


def require_server(home: Home) -> None:
    """Raise UnavailableError if the memory is in a file."""
    if not home.database.is_server:
        raise UnavailableError(
            "this memory is in a file, and one person's",
            hint="spaces, roles and keys are for a memory on a server: docs/server.md",
        )


def note(home: Home, who: Standing, action: str, subject: str = "", outcome: str = DONE) -> None:
    """Append a line with ids and names, without texts, to the audit log."""
    home.database.one(
        "note_in_audit_log", account=who.account, action=action, subject=subject, outcome=outcome
    )


def _refusal(
    caller: Standing, operation: str, *, writes: bool, owners: bool
) -> NotAllowedError | None:
    command = f"nacre server spaces members {caller.space} --add {caller.account} --role …"
    hint = f"an owner of {caller.space} gives roles: {command}"
    if caller.role is Role.READER and (writes or owners):
        return NotAllowedError(
            f"{operation} writes, and {caller.account} may only read {caller.space}", hint=hint
        )
    if owners and caller.role is not Role.OWNER:
        return NotAllowedError(
            f"{operation} is for owners of {caller.space}, and {caller.account} is a {caller.role} of it",
            hint=hint,
        )
    return None


# -- Protected paths -----------------------------------------------------------


def territory(settings: Settings) -> Territory:
    """Return nacre's own paths, where exports must not be written: the home and everything configured elsewhere."""
    database = [
        settings.database.with_name(f"{settings.database.name}{suffix}")
        for suffix in ("", "-wal", "-shm")
    ]
    return Territory((settings.home, settings.vault), (settings.config, *database))


# -- Size limit ----------------------------------------------------------------


def require_room(home: Home) -> None:
    """Raise SpaceFullError if there are more turns than ``storage.most_turns``.

    Call it in the transaction that adds turns.
    """
    limit = home.settings.whole("storage.most_turns")
    if 0 < limit < sum(turns for _, _, turns, *_ in home.sessions.counts()):
        raise SpaceFullError(
            f"this memory may hold {limit:,} turn{'s' * (limit != 1)}, and there is no room for more",
            hint="forget old sessions (nacre forget), or have storage.most_turns raised",
        )
