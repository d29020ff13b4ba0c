"""What every operation works with, composed once: stores, vault, redactor, clock, ids, embedder.

Each store is loaded with its module when it is first asked for: a hook that looks by itself has 150 ms, and needs few.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from nacre.errors import EmbedderUnavailable, StoreUnusable
from nacre.platform import private_files
from nacre.platform.ids import Clock, Ids, to_millisecond, utc_now, uuid7_source
from nacre.platform.locks import FileLock, Observe, Turn
from nacre.protocols import Embedder, LanguageModel, RemoteEmbedder, Reranker
from nacre.settings import Settings, load_settings
from nacre.values.operation import Operation

if TYPE_CHECKING:
    from nacre.git.repository import Repository
    from nacre.home.answer_cache import Kept
    from nacre.redact.redactor import Redactor
    from nacre.storage.archive import ArchiveIndex
    from nacre.storage.claims import Claims
    from nacre.storage.co_recall import CoRecall
    from nacre.storage.comparisons import Comparisons
    from nacre.storage.erasure import Erasing
    from nacre.storage.file_history import DeedIndex
    from nacre.storage.journal import Journal
    from nacre.storage.memories import Memories
    from nacre.storage.outcomes import Outcomes
    from nacre.storage.reviews import Reviews
    from nacre.storage.search.shard_set import ShardSet
    from nacre.storage.search.turns import TurnSearch
    from nacre.storage.search.vectors import Vectors
    from nacre.storage.sessions import Sessions
    from nacre.storage.spending import Spending
    from nacre.storage.sqlite.database import Database
    from nacre.storage.tombstones import Tombstones
    from nacre.storage.traces import Traces
    from nacre.storage.usage import SessionUses, UsageLog
    from nacre.storage.vault_index import VaultIndex
    from nacre.values.deep_recall import DeepResult
    from nacre.vault.files import Vault

BUNDLED = "minilm"
"""The bundled embedding model, as the settings name it."""

EmbedderLoader = Callable[[Settings], Embedder]
RerankerLoader = Callable[[Settings], Reranker | None]
ModelLoader = Callable[[Settings, str], LanguageModel]


@dataclass(frozen=True)
class Home:
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
    operations: list[Operation] = field(default_factory=list)
    """The operation that is going on, if one is; see :mod:`nacre.home.operations`."""
    runs: list[Operation] = field(default_factory=list)
    """The run that is going on, if one is: an operation in parts."""
    going_on: dict[str, FileLock] = field(default_factory=dict)
    """Held while an operation goes on without the vault lock, by its id."""
    earlier: Vectors | None = None
    """The vectors of the database that this one is to replace, while it is made anew."""
    embedders: dict[str, Embedder] = field(default_factory=dict)
    """Those that were loaded, by their names in the settings."""
    observe: Observe | None = None
    turn: Turn = field(default_factory=Turn)
    """Threads that share the home work with it one at a time; one that waits for a model stands aside."""

    @cached_property
    def vault_lock(self) -> FileLock:
        """Held by whoever changes the vault or the rows of its files; may be entered again."""
        return FileLock(self.settings.home / "vault.lock", observe=self.observe)

    @cached_property
    def vault(self) -> Vault:
        """The folder of memories."""
        from nacre.vault.files import Vault

        return Vault(self.settings.vault)

    @cached_property
    def memories(self) -> Memories:
        """Memories in the index."""
        from nacre.storage.memories import Memories

        return Memories(self.database)

    @cached_property
    def comparisons(self) -> Comparisons:
        """What comparing memories needs."""
        from nacre.storage.comparisons import Comparisons

        return Comparisons(self.database)

    @cached_property
    def claims(self) -> Claims:
        """What memories claim, and which of them wait for a model."""
        from nacre.storage.claims import Claims

        return Claims(self.database)

    @cached_property
    def sessions(self) -> Sessions:
        """Sessions and turns in the index."""
        from nacre.storage.sessions import Sessions

        return Sessions(self.database)

    @cached_property
    def deeds(self) -> DeedIndex:
        """What agents did."""
        from nacre.storage.file_history import DeedIndex

        return DeedIndex(self.database)

    @cached_property
    def shards(self) -> ShardSet:
        """The full text of turns that left the database."""
        from nacre.storage.search.shard_set import ShardSet

        return ShardSet(self.database, self.settings.index)

    @cached_property
    def turn_search(self) -> TurnSearch:
        """Full text over turns, wherever it lies."""
        from nacre.storage.search.turns import TurnSearch

        return TurnSearch(self.database, self.shards)

    @cached_property
    def usage(self) -> UsageLog:
        """How memories are used."""
        from nacre.storage.usage import UsageLog

        return UsageLog(self.database)

    @cached_property
    def session_uses(self) -> SessionUses:
        """Which memories were used in which session."""
        from nacre.storage.usage import SessionUses

        return SessionUses(self.database)

    @cached_property
    def co_recall(self) -> CoRecall:
        """Memories that are used together."""
        from nacre.storage.co_recall import CoRecall

        return CoRecall(self.database)

    @cached_property
    def reviews(self) -> Reviews:
        """Memories that a person should look at."""
        from nacre.storage.reviews import Reviews

        return Reviews(self.database)

    @cached_property
    def tombstones(self) -> Tombstones:
        """What must not come back."""
        from nacre.storage.tombstones import Tombstones

        return Tombstones(self.database)

    @cached_property
    def archive(self) -> ArchiveIndex:
        """What is kept of transcripts."""
        from nacre.storage.archive import ArchiveIndex

        return ArchiveIndex(self.database)

    @cached_property
    def archive_lock(self) -> FileLock:
        """Held by whoever changes the archive; may be entered again."""
        return FileLock(self.settings.home / "archive.lock", observe=self.observe)

    @cached_property
    def erasing(self) -> Erasing:
        """Deletes what was forgotten."""
        from nacre.storage.erasure import Erasing

        return Erasing(self.database)

    @cached_property
    def files(self) -> VaultIndex:
        """What the index knows of the vault's files."""
        from nacre.storage.vault_index import VaultIndex

        return VaultIndex(self.database)

    @cached_property
    def journal(self) -> Journal:
        """Operations, and what they wrote."""
        from nacre.storage.journal import Journal

        return Journal(self.database)

    @cached_property
    def repository(self) -> Repository:
        """The vault's history in git."""
        from nacre.git.repository import Repository  # subprocess takes 8 ms, which few commands need

        return Repository(self.settings.vault, self.settings.environ)

    @cached_property
    def outcomes(self) -> Outcomes:
        """What became of memories that were accepted first."""
        from nacre.storage.outcomes import Outcomes

        return Outcomes(self.database)

    @cached_property
    def spending(self) -> Spending:
        """What models were asked, and what that cost."""
        from nacre.storage.spending import Spending

        return Spending(self.database)

    @cached_property
    def traces(self) -> Traces:
        """What runs went through."""
        from nacre.storage.traces import Traces

        return Traces(self.database)

    @cached_property
    def vectors(self) -> Vectors:
        """Vectors of passages and memories. Raises EmbedderUnavailable where numpy is missing."""
        return self._vectors(other=False)

    @cached_property
    def other_vectors(self) -> Vectors:
        """Those of another model: in the making, or kept to go back to. Raises EmbedderUnavailable as above."""
        return self._vectors(other=True)

    def _vectors(self, *, other: bool) -> Vectors:
        try:
            from nacre.storage.search.vectors import Vectors  # numpy takes 100 ms, which the lexical lanes do not need
        except ImportError as error:
            raise EmbedderUnavailable("numpy is not installed", hint="pip install numpy") from error
        days = self.settings["embedding.turns_newer_than"]
        return Vectors(self.database, self.now() - timedelta(days=days) if days else None, other=other)

    @cached_property
    def redactor(self) -> Redactor:
        """Takes secrets out of whatever is stored."""
        from nacre.redact.redactor import Redactor

        return Redactor(self.settings["redaction.patterns"], self.settings["redaction.allow"])

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
        self.database.close()

    @cached_property
    def reranker(self) -> Reranker | None:
        """The model that looks at the best hits once more, if one is configured. Raises RerankerUnavailable."""
        return self.load_reranker(self.settings)

    @cached_property
    def deep_answers(self) -> Kept[DeepResult]:
        """What deep recall answered just now."""
        from nacre.home.answer_cache import Kept  # only deep recall keeps answers

        return Kept(lambda: self.clock().timestamp())

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
    from nacre.home.swap import finish

    try:
        if finish(settings.home):  # its settings were not there to be read
            settings = replace(settings, values=load_settings(settings.home, settings.environ).values)
        private_files.make_folder(settings.home)
        private_files.refuse_unsafe(settings.home)
        private_files.make_folder(settings.database.parent)
    except OSError as error:
        raise StoreUnusable(
            f"cannot create {settings.home}: {error.strerror}", hint="set NACRE_HOME to a folder you can write to"
        ) from error
    from nacre.storage.sqlite.open import open_database
    from nacre.vault.files import Vault

    Vault(settings.vault).prepare()
    database = open_database(settings.database, observe)
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


def open_to_read(settings: Settings, *, patience_ms: int, clock: Clock = utc_now) -> Home:
    """Open a home as it is: nothing is made, migrated, caught up or written, and no lock is waited for longer.

    Raises StoreUnusable where there is no database of the present schema, it cannot be read by then, or another user
    could have put something into it.
    """
    from nacre.storage.sqlite.database import Database

    if not settings.database.is_file():
        raise StoreUnusable(f"there is no database at {settings.database}")
    private_files.refuse_unsafe(settings.home)
    only_read = StoreUnusable("this home was opened to be read")
    return Home(
        settings, Database(settings.database, unwritable=only_read, patience_ms=patience_ms), clock,
        uuid7_source(clock), _load_configured, _load_configured_reranker, load_configured_model,
    )  # fmt: skip


def _load_configured(settings: Settings) -> Embedder:
    name = settings["embedding.model"]
    threads = settings["embedding.threads"] or None
    if name == "none":
        raise EmbedderUnavailable("the embedding model is off", hint="nacre config set embedding.model minilm")
    if name == BUNDLED:
        from nacre.embed.onnx import load_minilm  # only where a vector is wanted

        return load_minilm(threads)
    if name.startswith("onnx:"):
        from nacre.embed.folder import load_folder

        return load_folder(Path(name.removeprefix("onnx:")).expanduser(), threads)
    from nacre.llm.embeddings import open_embedder  # the providers' library takes up to a second

    return open_embedder(settings, name)


def _load_configured_reranker(settings: Settings) -> Reranker | None:
    if settings["recall.reranker"] in ("", "none", "model"):
        return None
    from nacre.embed.cross_encoder import OnnxReranker  # only where somebody has a model for it

    return OnnxReranker(Path(settings["recall.reranker"]).expanduser())


def load_configured_model(settings: Settings, name: str) -> LanguageModel:
    """The language model of a name, with what the settings say of it. Raises ModelRefused."""
    from nacre.llm.registry import open_model  # the providers' SDKs take up to a second

    return open_model(settings, name)
