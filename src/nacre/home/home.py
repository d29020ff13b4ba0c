"""Answers of the last half minute: an agent often asks the same twice in one exchange."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from nacre.base import files
from nacre.base.files import Territory
from nacre.base.ids import Clock, Ids, to_millisecond, utc_now, uuid7_source
from nacre.base.lazy import Lazy, load
from nacre.base.locks import FileLock, Observe, Turn
from nacre.base.times import day_of
from nacre.errors import (
    EmbedderUnavailable,
    NacreError,
    NotAllowed,
    RerankerUnavailable,
    SpaceFull,
    StoreUnusable,
    Unavailable,
)
from nacre.protocols import Embedder, LanguageModel, RemoteEmbedder, Reranker
from nacre.settings import Settings, load_settings
from nacre.values.memory import Role

if TYPE_CHECKING:
    from nacre.home.change import Change, Run
    from nacre.home.projects import FurtherSpaces, Handoffs
    from nacre.redact.redactor import Redactor
    from nacre.store.code import CodeGraph, CodeMentions
    from nacre.store.journal import Journal, Spending, Tombstones, Traces, VaultIndex
    from nacre.store.maintenance import Erasing
    from nacre.store.memories import CoRecall, Links, Memories, SessionUses, UsageLog
    from nacre.store.review import Candidates, Claims, Comparisons, Reviews
    from nacre.store.schema import Database
    from nacre.store.search import Selection, TurnSearch, Vectors, WordSearch
    from nacre.store.sessions import Activity, ArchiveIndex, DeedIndex, ProjectContents, Sessions
    from nacre.store.sqlite import FileDatabase
    from nacre.values.memory import Actor
    from nacre.values.recall import DeepResult
    from nacre.vault.files import Vault
    from nacre.vault.git import Repository

T = TypeVar("T")

SECONDS = 30.0
_MOST = 64


class Kept(Generic[T]):
    """Values by key, each for 30 seconds; ``clock`` counts them. The key says all that the value depends on."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._values: dict[Hashable, tuple[float, T]] = {}

    def get(self, key: Hashable) -> T | None:
        """The value, if it is there and young enough."""
        found = self._values.get(key)
        return found[1] if found and self._clock() - found[0] < SECONDS else None

    def put(self, key: Hashable, value: T) -> None:
        """Keep a value; the oldest one goes where there are too many."""
        self._values.pop(key, None)
        self._values[key] = (self._clock(), value)
        if len(self._values) > _MOST:
            del self._values[next(iter(self._values))]


# ----------------------------------------------------------------------------
# What every operation works with, composed once: stores, vault, redactor, clock, ids, embedder.
#
# Each store is loaded with its module when it is first asked for: a hook that looks by itself has 150
# ms, and needs few.


BUNDLED = "minilm"
"""The bundled embedding model, as the settings name it."""

EmbedderLoader = Callable[[Settings], Embedder]
RerankerLoader = Callable[[Settings], Reranker | None]
ModelLoader = Callable[[Settings, str], LanguageModel]


class Stores:
    """What a home consists of, each loaded with its module when it is first used."""

    vault: Lazy[Vault] = Lazy("nacre.home.home:vault_of", lambda make, home: make(home))
    """The folder of memories."""
    repository: Lazy[Repository] = Lazy(
        "nacre.vault.git:Repository",
        lambda kind, home: kind(home.settings.vault, home.settings.environ),
    )
    """The vault's history in git."""
    redactor: Lazy[Redactor] = Lazy(
        "nacre.redact.redactor:Redactor",
        lambda kind, home: kind(*home.settings.redaction),
    )
    """Takes secrets out of whatever is stored."""
    handoffs: Lazy[Handoffs] = Lazy(
        "nacre.home.projects:Handoffs", lambda kind, home: kind(home.folder)
    )
    """What sessions hand over."""
    memories: Lazy[Memories] = Lazy("nacre.store.memories:Memories")
    """Memories in the index."""
    candidates: Lazy[Candidates] = Lazy("nacre.store.review:Candidates")
    """What may be worth remembering, and waits."""
    links: Lazy[Links] = Lazy("nacre.store.memories:Links")
    """How memories are linked."""
    comparisons: Lazy[Comparisons] = Lazy("nacre.store.review:Comparisons")
    """What comparing memories needs."""
    claims: Lazy[Claims] = Lazy("nacre.store.review:Claims")
    """What memories claim, and which of them wait for a model."""
    sessions: Lazy[Sessions] = Lazy("nacre.store.sessions:Sessions")
    """Sessions and turns in the index."""
    deeds: Lazy[DeedIndex] = Lazy("nacre.store.sessions:DeedIndex")
    """What agents did."""
    turn_search: Lazy[TurnSearch] = Lazy(
        "nacre.home.home:turn_search_of", lambda make, home: make(home)
    )
    """Full text over turns."""
    memory_search: Lazy[WordSearch] = Lazy(
        "nacre.home.home:memory_search_of", lambda make, home: make(home)
    )
    """Full text over memories."""
    selection: Lazy[Selection] = Lazy("nacre.store.search:Selection")
    """Memories and turns that a filter lets through."""
    usage: Lazy[UsageLog] = Lazy("nacre.store.memories:UsageLog")
    """How memories are used."""
    session_uses: Lazy[SessionUses] = Lazy("nacre.store.memories:SessionUses")
    """Which memories were used in which session."""
    co_recall: Lazy[CoRecall] = Lazy("nacre.store.memories:CoRecall")
    """Memories that are used together."""
    code: Lazy[CodeGraph] = Lazy("nacre.store.code:CodeGraph")
    """Symbols of repositories, and who calls, imports and inherits what."""
    code_mentions: Lazy[CodeMentions] = Lazy("nacre.store.code:CodeMentions")
    """Files and symbols that memories name."""
    reviews: Lazy[Reviews] = Lazy("nacre.store.review:Reviews")
    """Memories that a person should look at."""
    tombstones: Lazy[Tombstones] = Lazy("nacre.store.journal:Tombstones")
    """What must not come back."""
    archive: Lazy[ArchiveIndex] = Lazy("nacre.store.sessions:ArchiveIndex")
    """What is kept of transcripts."""
    erasing: Lazy[Erasing] = Lazy("nacre.store.maintenance:Erasing")
    """Deletes what was forgotten."""
    files: Lazy[VaultIndex] = Lazy("nacre.store.journal:VaultIndex")
    """What the index knows of the vault's files."""
    project_contents: Lazy[ProjectContents] = Lazy("nacre.store.sessions:ProjectContents")
    """What belongs to projects."""
    journal: Lazy[Journal] = Lazy("nacre.store.journal:Journal")
    """Operations, and what they wrote."""
    spending: Lazy[Spending] = Lazy("nacre.store.journal:Spending")
    """What models were asked, and what that cost."""
    activity: Lazy[Activity] = Lazy("nacre.store.sessions:Activity")
    """What happened when."""
    traces: Lazy[Traces] = Lazy("nacre.store.journal:Traces")
    """What runs went through."""
    further_spaces: Lazy[FurtherSpaces] = Lazy(
        "nacre.home.projects:FurtherSpaces", lambda kind, home: kind(home)
    )
    """Spaces of the server that recall reads beside this one."""
    analyses: Lazy[Kept[Any]] = Lazy(
        "nacre.home.home:Kept", lambda kind, home: kind(lambda: home.clock().timestamp())
    )
    """What was found out about all links just now."""
    deep_answers: Lazy[Kept[DeepResult]] = Lazy(
        "nacre.home.home:Kept", lambda kind, home: kind(lambda: home.clock().timestamp())
    )
    """What deep recall answered just now."""


@dataclass(frozen=True)
class Home(Stores):
    """One open home. ``now()`` has whole milliseconds, as the vault writes them."""

    settings: Settings
    database: Database
    clock: Clock
    ids: Ids
    load_embedder: EmbedderLoader
    load_reranker: RerankerLoader
    load_model: ModelLoader
    """Opens the language model of a name."""
    problems: list[str] = field(default_factory=list)
    """What went wrong and ended nothing, in words: shown with the answer. A scan of the vault begins it anew."""
    earlier: Vectors | None = None
    """The vectors of the database that this one is to replace, while it is made anew."""
    embedders: dict[str, Embedder] = field(default_factory=dict)
    """Those that were loaded, by their names in the settings."""
    observe: Observe | None = None
    turn: Turn = field(default_factory=Turn)
    """Threads that share the home work with it one at a time; one that waits for a model stands aside."""

    @property
    def database_file(self) -> FileDatabase:
        """The database, where it is a file. Raises Unavailable where it is on a server."""
        kind = load("nacre.store.sqlite:FileDatabase")
        if not isinstance(self.database, kind):
            raise Unavailable(
                "this memory is on a server, which keeps its database itself",
                hint="see to it there",
            )
        return cast("FileDatabase", self.database)

    @cached_property
    def folder(self) -> Path:
        """Where files wait until they are taken over, and where lies what sessions hand over.

        A space on a server that the home's config does not name, but somebody did for this time, has one of its own:
        what waits for one must not be taken over by another.
        """
        named = self.settings.values["storage.tenant"].origin
        if not self.database.is_server or named in ("default", str(self.settings.config)):
            return self.settings.home
        folder = self.settings.home / "spaces" / self.settings.text("storage.tenant")
        files.make_folder(folder)
        return folder

    @cached_property
    def vault_lock(self) -> FileLock:
        """Held by whoever changes the vault or the rows of its files; may be entered again."""
        return self._lock("vault")

    @cached_property
    def archive_lock(self) -> FileLock:
        """Held by whoever changes the archive; may be entered again."""
        return self._lock("archive")

    @cached_property
    def writer_lock(self) -> FileLock:
        """Held while sessions are shown to the writer, so that no two processes pay for the same."""
        return self._lock("writer")

    def _lock(self, name: str) -> FileLock:
        """A lock of the memory, between all processes that may write to it."""
        if self.database.is_server:
            lock: FileLock = load("nacre.store.postgres:ServerLock")(self.database, name)
            return lock
        return FileLock(self.settings.home / f"{name}.lock", observe=self.observe)

    def change(
        self, action: str, *, subject: str | None = None, why: str | None = None
    ) -> AbstractContextManager[Change]:
        """Change the vault: holds its lock, is one operation, and writes what it intends to the files as it ends.

        ``action`` is what ledger and history call it; ``subject`` says in words what it is about, ``why`` for what
        reason; secrets are taken out of both. Nothing is recorded until something is written. A change within a change
        is an operation of its own: begin it before the outer one writes, or in its transaction. Raises StoreBusy.
        """
        changing: AbstractContextManager[Change] = load("nacre.home.change:change")(
            self, action, subject=subject, why=why
        )
        return changing

    def run(
        self,
        action: str,
        *,
        subject: str | None = None,
        why: str | None = None,
        op: str | None = None,
    ) -> AbstractContextManager[Run]:
        """A long operation in parts, between which others write; arguments as for :meth:`change`, ``op`` is its id.

        What a crash leaves of it is closed by whoever writes next.
        """
        running: AbstractContextManager[Run] = load("nacre.home.change:run")(
            self, action, subject=subject, why=why, op=op
        )
        return running

    @cached_property
    def vectors(self) -> Vectors:
        """Vectors of passages and memories. Raises EmbedderUnavailable where numpy is missing."""
        return self._vectors(other=False)

    @cached_property
    def other_vectors(self) -> Vectors:
        """Those of another model: in the making, or kept to go back to. Raises EmbedderUnavailable as above."""
        return self._vectors(other=True)

    def _vectors(self, *, other: bool) -> Vectors:
        kind = _load_with_numpy("nacre.store.search:Vectors")
        days = self.settings.whole("embedding.turns_newer_than")
        made: Vectors = kind(
            self.database, self.now() - timedelta(days=days) if days else None, other=other
        )
        return made

    def loaded_embedder(self, name: str) -> Embedder:
        """The embedding model of a name, loaded once and without the owner's limits on what may be sent to it.

        Texts are embedded by :mod:`nacre.home.consent`, which keeps those limits. Raises EmbedderUnavailable.
        """
        if name not in self.embedders:
            self.embedders[name] = self.load_embedder(self.settings.having("embedding.model", name))
        return self.embedders[name]

    def close(self) -> None:
        """Close the database and what embedding models hold."""
        for embedder in self.embedders.values():
            if isinstance(embedder, RemoteEmbedder):
                embedder.close()
        self.disconnect()

    def disconnect(self) -> None:
        """Close the database, and those of further spaces; what embedding models hold stays."""
        if "further_spaces" in self.__dict__:
            self.further_spaces.close()
        self.database.close()

    @cached_property
    def reranker(self) -> Reranker | None:
        """The model that looks at the best hits once more, if one is configured. Raises RerankerUnavailable."""
        return self.load_reranker(self.settings)

    @property
    def actor(self) -> Actor:
        """Who asks just now."""
        return self.settings.actor

    def today(self) -> date:
        """Return the present day, as the owner's clock has it."""
        return day_of(self.clock())

    def now(self) -> datetime:
        """The present, to the millisecond."""
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
    """Open a home, creating what is missing. Raises StoreUnusable, VaultUnusable, SchemaTooNew.

    One that is there and cannot be written to now, as its disk is full or read-only, is opened to be read:
    ``database.unwritable`` tells why, and every write raises it.
    ``observe`` is told how long its locks were held, for measuring.
    """
    try:
        if load("nacre.home.change:finish")(
            settings.home
        ):  # its settings were not there to be read
            settings = replace(
                settings, values=load_settings(settings.home, settings.environ).values
            )
        files.make_folder(settings.home)
        files.refuse_unsafe(settings.home)
        files.make_folder(settings.database.parent)
    except OSError as error:
        raise StoreUnusable(
            f"cannot create {settings.home}: {error.strerror}",
            hint="set NACRE_HOME to a folder you can write to",
        ) from error
    settings = _fitting(settings)
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


def _fitting(settings: Settings) -> Settings:
    """Settings, as far as they fit to where the memory is: a server keeps every version itself, and needs no git."""
    return settings.having("git.enabled", False) if settings.server else settings


def open_database(settings: Settings, observe: Observe | None = None) -> Database:
    """The database of a home, made and migrated where it has to be. Raises StoreUnusable, StoreBusy, SchemaTooNew."""
    if settings.server:
        server: Database = load("nacre.store.postgres:PostgresDatabase")(
            settings.server, settings.text("storage.tenant"), settings.text("storage.account")
        )
        return server
    load("nacre.vault.files:Vault")(settings.vault).prepare()
    file: Database = load("nacre.store.sqlite:open_database")(settings.database, observe)
    return file


def vault_of(home: Home) -> Vault:
    """The folder of memories, or their rows."""
    vault: Vault
    if home.database.is_server:
        documents = load("nacre.store.postgres:Documents")(home.database, home.clock)
        vault = load("nacre.home.projects:ServerVault")(documents)
    else:
        vault = load("nacre.vault.files:Vault")(home.settings.vault)
    return vault


def memory_search_of(home: Home) -> WordSearch:
    """Full text over memories."""
    search: WordSearch
    if home.database.is_server:
        search = load("nacre.store.postgres_schema:memory_search")(home.database)
    else:
        search = load("nacre.store.search:memory_search")(home.database_file)
    return search


def turn_search_of(home: Home) -> TurnSearch:
    """Full text over turns."""
    search: TurnSearch
    if home.database.is_server:
        search = load("nacre.store.postgres_schema:ServerTurnSearch")(home.database)
    else:
        search = load("nacre.store.search:TurnSearch")(home.database_file)
    return search


def open_to_read(settings: Settings, *, patience_ms: int, clock: Clock = utc_now) -> Home:
    """Open a home as it is: nothing is made, migrated, caught up or written, and no lock is waited for longer.

    Raises StoreUnusable where there is no database of the present schema, it cannot be read by then, or another user
    could have put something into it.
    """
    if settings.server:
        raise StoreUnusable("this memory is on a server, and is opened as a whole")
    if not settings.database.is_file():
        raise StoreUnusable(f"there is no database at {settings.database}")
    files.refuse_unsafe(settings.home)
    only_read = StoreUnusable("this home was opened to be read")
    opened = load("nacre.store.sqlite:FileDatabase")
    return Home(
        settings,
        opened(settings.database, unwritable=only_read, patience_ms=patience_ms),
        clock,
        uuid7_source(clock),
        _load_configured,
        _load_configured_reranker,
        load_configured_model,
    )


def _load_configured(settings: Settings) -> Embedder:
    name = settings.text("embedding.model")
    threads = settings.whole("embedding.threads") or None
    if name == "none":
        raise EmbedderUnavailable(
            "the embedding model is off", hint="nacre config set embedding.model minilm"
        )
    if name == BUNDLED:
        return cast("Embedder", _load_with_numpy("nacre.llm.local_model:load_minilm")(threads))
    if name.startswith("onnx:"):
        folder = Path(name.removeprefix("onnx:")).expanduser()
        return cast(
            "Embedder", _load_with_numpy("nacre.llm.local_model:load_folder")(folder, threads)
        )
    made = _load_with_numpy(
        "nacre.llm.embeddings:open_embedder"
    )  # its library takes up to a second
    return cast("Embedder", made(settings, name))


def _load_with_numpy(target: str) -> Any:
    """What a target names, in 100 ms. Raises EmbedderUnavailable where numpy is not installed."""
    try:
        return load(target)
    except ModuleNotFoundError as error:
        hint = load("nacre.base.environment:NO_VECTORS")
        raise EmbedderUnavailable(f"{error.name} is not installed", hint=hint) from error


def _load_configured_reranker(settings: Settings) -> Reranker | None:
    if settings.text("recall.reranker") in ("", "none", "model"):
        return None
    try:
        kind = _load_with_numpy("nacre.llm.local_model:OnnxReranker")
    except EmbedderUnavailable as error:
        raise RerankerUnavailable(f"no reranker: {error.message}", hint=error.hint) from error
    reranker: Reranker = kind(Path(settings.text("recall.reranker")).expanduser())
    return reranker


def load_configured_model(settings: Settings, name: str) -> LanguageModel:
    """The language model of a name, with what the settings say of it. Raises ModelRefused."""
    model: LanguageModel = load("nacre.llm.providers:open_model")(
        settings, name
    )  # an SDK takes up to a second
    return model


# ----------------------------------------------------------------------------
# What whoever asks may do in the space on a server that is open, and the log of what they did.


DONE = "done"
_NOTE_THEMSELVES = ("spaces-", "keys-", "share")
"""They note what they were about, in the spaces that they concern."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Who asks, and in which role. ``kind`` and ``raising`` are the space's; ``None`` where the tenant is none."""

    account: str
    space: str
    role: Role
    kind: str | None
    raising: str | None


def standing(home: Home) -> Standing:
    """How whoever asks stands to the space that is open, as the server has it now.

    Raises Unavailable where the memory is in a file, NotAllowed where they do not belong to it (any more).
    """
    require_server(home)
    space = home.settings.text("storage.tenant")
    account = home.settings.text("storage.account") or space
    found = home.database.one("read_standing", account=account)
    if found is None:
        raise NotAllowed(
            f"{account} does not belong to the space {space}", hint="an owner lets you in"
        )
    role, kind, raising = found
    return Standing(account, space, Role(role).at_most(home.actor.most), kind, raising)


def require_server(home: Home) -> None:
    """Raises Unavailable where the memory is in a file."""
    if not home.database.is_server:
        raise Unavailable(
            "this memory is in a file, and one person's",
            hint="spaces, roles and keys are for a memory on a server: docs/server.md",
        )


@contextmanager
def allowed(home: Home, operation: str, *, writes: bool, owners: bool) -> Iterator[None]:
    """Do an operation in the block. Raises NotAllowed for what the role does not allow.

    What writes, and what is refused, is in the space's audit log.
    """
    who = standing(home)
    if refusal := _refusal(who, operation, writes=writes, owners=owners):
        note(home, who, operation, outcome=refusal.code)
        raise refusal
    try:
        yield
    except NacreError as error:
        if writes:
            note(home, who, operation, outcome=error.code)
        raise
    if writes and not operation.startswith(_NOTE_THEMSELVES):
        note(home, who, operation)


def note(home: Home, who: Standing, action: str, subject: str = "", outcome: str = DONE) -> None:
    """A line of the audit log: ids and names, no texts."""
    home.database.one(
        "note_in_audit_log", account=who.account, action=action, subject=subject, outcome=outcome
    )


def _refusal(who: Standing, operation: str, *, writes: bool, owners: bool) -> NotAllowed | None:
    hint = (
        f"an owner of {who.space} gives roles: nacre spaces add {who.space} {who.account} --role …"
    )
    if who.role is Role.READER and (writes or owners):
        return NotAllowed(
            f"{operation} writes, and {who.account} may only read {who.space}", hint=hint
        )
    if owners and who.role is not Role.OWNER:
        return NotAllowed(
            f"{operation} is for owners of {who.space}, and {who.account} is a {who.role} of it",
            hint=hint,
        )
    return None


# ----------------------------------------------------------------------------
# Where nothing is written that the owner names, such as an export.


def territory(settings: Settings) -> Territory:
    """All that nacre keeps itself: the home, and what lies elsewhere by configuration."""
    database = [
        settings.database.with_name(f"{settings.database.name}{suffix}")
        for suffix in ("", "-wal", "-shm")
    ]
    return Territory((settings.home, settings.vault), (settings.config, *database))


# ----------------------------------------------------------------------------
# How much a memory may hold.


def require_room(home: Home) -> None:
    """After turns were added, in the same transaction. Raises SpaceFull where they are more than ``storage.most_turns``
    lets."""
    most = home.settings.whole("storage.most_turns")
    if 0 < most < sum(turns for _, _, turns, *_ in home.sessions.counts()):
        raise SpaceFull(
            f"this memory may hold {most:,} turn{'s' * (most != 1)}, and there is no room for more",
            hint="forget old sessions (nacre forget), or have storage.most_turns raised",
        )
