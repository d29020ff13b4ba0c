"""What every operation works with, composed once: stores, vault, redactor, clock, ids, embedder.

Each store is loaded with its module when it is first asked for: a hook that looks by itself has 150 ms, and needs few.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from nacre.errors import EmbedderUnavailable, RerankerUnavailable, StoreUnusable, Unavailable
from nacre.platform import private_files
from nacre.platform.days import day_of
from nacre.platform.ids import Clock, Ids, to_millisecond, utc_now, uuid7_source
from nacre.platform.lazy import Lazy, load
from nacre.platform.locks import FileLock, Observe, Turn
from nacre.protocols import Embedder, LanguageModel, RemoteEmbedder, Reranker
from nacre.settings import Settings, load_settings

if TYPE_CHECKING:
    from nacre.git.repository import Repository
    from nacre.home.answer_cache import Kept
    from nacre.home.change import Change, Run
    from nacre.home.further_spaces import FurtherSpaces
    from nacre.home.handoffs import Handoffs
    from nacre.redact.redactor import Redactor
    from nacre.storage.activity import Activity
    from nacre.storage.archive import ArchiveIndex
    from nacre.storage.candidates import Candidates
    from nacre.storage.claims import Claims
    from nacre.storage.co_recall import CoRecall
    from nacre.storage.code.graph import CodeGraph
    from nacre.storage.code.mentions import CodeMentions
    from nacre.storage.comparisons import Comparisons
    from nacre.storage.database import Database
    from nacre.storage.file_history import DeedIndex
    from nacre.storage.journal import Journal
    from nacre.storage.links import Links
    from nacre.storage.maintenance.erasure import Erasing
    from nacre.storage.memories import Memories
    from nacre.storage.projects import ProjectContents
    from nacre.storage.reviews import Reviews
    from nacre.storage.search.full_text import WordSearch
    from nacre.storage.search.selection import Selection
    from nacre.storage.search.turns import TurnSearch
    from nacre.storage.search.vectors import Vectors
    from nacre.storage.sessions import Sessions
    from nacre.storage.spending import Spending
    from nacre.storage.sqlite.database import FileDatabase
    from nacre.storage.tombstones import Tombstones
    from nacre.storage.traces import Traces
    from nacre.storage.usage import SessionUses, UsageLog
    from nacre.storage.vault_index import VaultIndex
    from nacre.values.actor import Actor
    from nacre.values.deep_recall import DeepResult
    from nacre.vault.files import Vault

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
        "nacre.git.repository:Repository", lambda kind, home: kind(home.settings.vault, home.settings.environ)
    )
    """The vault's history in git."""
    redactor: Lazy[Redactor] = Lazy(
        "nacre.redact.redactor:Redactor",
        lambda kind, home: kind(*home.settings.redaction),
    )
    """Takes secrets out of whatever is stored."""
    handoffs: Lazy[Handoffs] = Lazy("nacre.home.handoffs:Handoffs", lambda kind, home: kind(home.folder))
    """What sessions hand over."""
    memories: Lazy[Memories] = Lazy("nacre.storage.memories:Memories")
    """Memories in the index."""
    candidates: Lazy[Candidates] = Lazy("nacre.storage.candidates:Candidates")
    """What may be worth remembering, and waits."""
    links: Lazy[Links] = Lazy("nacre.storage.links:Links")
    """How memories are linked."""
    comparisons: Lazy[Comparisons] = Lazy("nacre.storage.comparisons:Comparisons")
    """What comparing memories needs."""
    claims: Lazy[Claims] = Lazy("nacre.storage.claims:Claims")
    """What memories claim, and which of them wait for a model."""
    sessions: Lazy[Sessions] = Lazy("nacre.storage.sessions:Sessions")
    """Sessions and turns in the index."""
    deeds: Lazy[DeedIndex] = Lazy("nacre.storage.file_history:DeedIndex")
    """What agents did."""
    turn_search: Lazy[TurnSearch] = Lazy("nacre.home.home:turn_search_of", lambda make, home: make(home))
    """Full text over turns."""
    memory_search: Lazy[WordSearch] = Lazy("nacre.home.home:memory_search_of", lambda make, home: make(home))
    """Full text over memories."""
    selection: Lazy[Selection] = Lazy("nacre.storage.search.selection:Selection")
    """Memories and turns that a filter lets through."""
    usage: Lazy[UsageLog] = Lazy("nacre.storage.usage:UsageLog")
    """How memories are used."""
    session_uses: Lazy[SessionUses] = Lazy("nacre.storage.usage:SessionUses")
    """Which memories were used in which session."""
    co_recall: Lazy[CoRecall] = Lazy("nacre.storage.co_recall:CoRecall")
    """Memories that are used together."""
    code: Lazy[CodeGraph] = Lazy("nacre.storage.code.graph:CodeGraph")
    """Symbols of repositories, and who calls, imports and inherits what."""
    code_mentions: Lazy[CodeMentions] = Lazy("nacre.storage.code.mentions:CodeMentions")
    """Files and symbols that memories name."""
    reviews: Lazy[Reviews] = Lazy("nacre.storage.reviews:Reviews")
    """Memories that a person should look at."""
    tombstones: Lazy[Tombstones] = Lazy("nacre.storage.tombstones:Tombstones")
    """What must not come back."""
    archive: Lazy[ArchiveIndex] = Lazy("nacre.storage.archive:ArchiveIndex")
    """What is kept of transcripts."""
    erasing: Lazy[Erasing] = Lazy("nacre.storage.maintenance.erasure:Erasing")
    """Deletes what was forgotten."""
    files: Lazy[VaultIndex] = Lazy("nacre.storage.vault_index:VaultIndex")
    """What the index knows of the vault's files."""
    project_contents: Lazy[ProjectContents] = Lazy("nacre.storage.projects:ProjectContents")
    """What belongs to projects."""
    journal: Lazy[Journal] = Lazy("nacre.storage.journal:Journal")
    """Operations, and what they wrote."""
    spending: Lazy[Spending] = Lazy("nacre.storage.spending:Spending")
    """What models were asked, and what that cost."""
    activity: Lazy[Activity] = Lazy("nacre.storage.activity:Activity")
    """What happened when."""
    traces: Lazy[Traces] = Lazy("nacre.storage.traces:Traces")
    """What runs went through."""
    further_spaces: Lazy[FurtherSpaces] = Lazy("nacre.home.further_spaces:FurtherSpaces", lambda kind, home: kind(home))
    """Spaces of the server that recall reads beside this one."""
    analyses: Lazy[Kept[Any]] = Lazy(
        "nacre.home.answer_cache:Kept", lambda kind, home: kind(lambda: home.clock().timestamp())
    )
    """What was found out about all links just now."""
    deep_answers: Lazy[Kept[DeepResult]] = Lazy(
        "nacre.home.answer_cache:Kept", lambda kind, home: kind(lambda: home.clock().timestamp())
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
        kind = load("nacre.storage.sqlite.database:FileDatabase")
        if not isinstance(self.database, kind):
            raise Unavailable("this memory is on a server, which keeps its database itself", hint="see to it there")
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
        private_files.make_folder(folder)
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
            lock: FileLock = load("nacre.storage.postgres.lock:ServerLock")(self.database, name)
            return lock
        return FileLock(self.settings.home / f"{name}.lock", observe=self.observe)

    def change(
        self, action: str, *, subject: str | None = None, why: str | None = None
    ) -> AbstractContextManager[Change]:  # fmt: skip
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
        self, action: str, *, subject: str | None = None, why: str | None = None, op: str | None = None
    ) -> AbstractContextManager[Run]:  # fmt: skip
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
        kind = _load_with_numpy("nacre.storage.search.vectors:Vectors")
        days = self.settings.whole("embedding.turns_newer_than")
        made: Vectors = kind(self.database, self.now() - timedelta(days=days) if days else None, other=other)
        return made

    def loaded_embedder(self, name: str) -> Embedder:
        """The embedding model of a name, loaded once and without the owner's limits on what may be sent to it.

        Texts are embedded by :mod:`nacre.spending.embedders`, which keeps those limits. Raises EmbedderUnavailable.
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
        if load("nacre.home.swap:finish")(settings.home):  # its settings were not there to be read
            settings = replace(settings, values=load_settings(settings.home, settings.environ).values)
        private_files.make_folder(settings.home)
        private_files.refuse_unsafe(settings.home)
        private_files.make_folder(settings.database.parent)
    except OSError as error:
        raise StoreUnusable(
            f"cannot create {settings.home}: {error.strerror}", hint="set NACRE_HOME to a folder you can write to"
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
        server: Database = load("nacre.storage.postgres.database:PostgresDatabase")(
            settings.server, settings.text("storage.tenant"), settings.text("storage.account")
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
        search = load("nacre.storage.search.turns:TurnSearch")(home.database_file)
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
    private_files.refuse_unsafe(settings.home)
    only_read = StoreUnusable("this home was opened to be read")
    opened = load("nacre.storage.sqlite.database:FileDatabase")
    return Home(
        settings, opened(settings.database, unwritable=only_read, patience_ms=patience_ms), clock, uuid7_source(clock),
        _load_configured, _load_configured_reranker, load_configured_model,
    )  # fmt: skip


def _load_configured(settings: Settings) -> Embedder:
    name = settings.text("embedding.model")
    threads = settings.whole("embedding.threads") or None
    if name == "none":
        raise EmbedderUnavailable("the embedding model is off", hint="nacre config set embedding.model minilm")
    if name == BUNDLED:
        return cast("Embedder", _load_with_numpy("nacre.embed.onnx:load_minilm")(threads))
    if name.startswith("onnx:"):
        folder = Path(name.removeprefix("onnx:")).expanduser()
        return cast("Embedder", _load_with_numpy("nacre.embed.folder:load_folder")(folder, threads))
    made = _load_with_numpy("nacre.llm.embeddings:open_embedder")  # its library takes up to a second
    return cast("Embedder", made(settings, name))


def _load_with_numpy(target: str) -> Any:
    """What a target names, in 100 ms. Raises EmbedderUnavailable where numpy is not installed."""
    try:
        return load(target)
    except ModuleNotFoundError as error:
        hint = load("nacre.platform.distribution:NO_VECTORS")
        raise EmbedderUnavailable(f"{error.name} is not installed", hint=hint) from error


def _load_configured_reranker(settings: Settings) -> Reranker | None:
    if settings.text("recall.reranker") in ("", "none", "model"):
        return None
    try:
        kind = _load_with_numpy("nacre.embed.cross_encoder:OnnxReranker")
    except EmbedderUnavailable as error:
        raise RerankerUnavailable(f"no reranker: {error.message}", hint=error.hint) from error
    reranker: Reranker = kind(Path(settings.text("recall.reranker")).expanduser())
    return reranker


def load_configured_model(settings: Settings, name: str) -> LanguageModel:
    """The language model of a name, with what the settings say of it. Raises ModelRefused."""
    model: LanguageModel = load("nacre.llm.registry:open_model")(settings, name)  # an SDK takes up to a second
    return model
