"""The Python API."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, TypedDict, TypeVar, Unpack

from nacre.base import times
from nacre.base.ids import Clock, Ids, utc_now
from nacre.context import build, handoff
from nacre.data import forget as forgetting
from nacre.data import sync as syncing
from nacre.data import undo as undoing
from nacre.data.forget import Deletion, ForgetRequest
from nacre.data.undo import Undoing
from nacre.errors import InvalidInputError
from nacre.home.home import EmbedderLoader, Home, ModelLoader, open_home
from nacre.home.location import project_of_folder
from nacre.home.views import Listed, Pending, Step
from nacre.learn import ingest
from nacre.memories import retire as retiring
from nacre.memories.edit import catch_up
from nacre.memories.history import history_of, read_memory
from nacre.operations import Operation, operation_of
from nacre.recall import deep, recall
from nacre.review import queue
from nacre.serve.catalogue import CATALOGUE
from nacre.settings import load_settings
from nacre.setup import chores
from nacre.values.context import ContextBlock, Moment, Occasion, Part
from nacre.values.memory import Expiry, ForgetReport, Kind, Memory, Scope, Validity
from nacre.values.recall import (
    DEFAULT_LIMIT,
    DEFAULT_RADIUS_DAYS,
    DEFAULT_TURNS,
    DeepResult,
    Filter,
    Mode,
    RecallResult,
)
from nacre.values.reports import IngestReport, OnProgress, StoreOutcome
from nacre.values.review import FeedbackReport
from nacre.values.session import FlushReport, HandoffView, Speaker

Result = TypeVar("Result")

_CONTEXT_PATIENCE_SECONDS = 0.2
"""Time that a context waits for another process before it ignores manual edits of the vault."""


class Changes(TypedDict, total=False):
    """The editable fields of a memory."""

    subject: str
    content: str
    kind: Kind | str
    importance: int
    expiry: Expiry | str
    expires_on: date | None
    scope: Scope | str
    project: str | None
    tags: Sequence[str]
    add_tags: Sequence[str]
    triggers: Sequence[str]
    trigger_times: int
    valid: Validity
    evergreen: bool
    suppressed_contexts: Sequence[str]


def _find_operation(name: str) -> Operation:
    if name in CATALOGUE:
        return CATALOGUE[name]
    raise InvalidInputError(
        f"there is no operation {name!r}", hint=f"one of {', '.join(CATALOGUE)}"
    )


def _in_utc(value: Any) -> Any:
    if isinstance(value, Filter):
        return replace(value, since=_in_utc(value.since), until=_in_utc(value.until))
    return times.in_utc(value) if isinstance(value, datetime) else value


class MemoryHome:
    """An open home that reads transcripts, and stores, recalls and searches memories.

    Use it as a context manager. Threads can share an instance: its calls run one at a time, except
    while they wait for a language model. Separate instances work in parallel.
    """

    def __init__(self, home: Home) -> None:
        self._home = home

    def __enter__(self) -> MemoryHome:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Wait for pending model calls and close the database. Closing twice has no effect."""
        with self._home.turn:
            self._home.turn.wait_for_all()
            self._home.close()

    @property
    def path(self) -> Path:
        """The home's folder."""
        return self._home.settings.home

    def call(
        self,
        operation: str,
        /,
        *,
        on_progress: OnProgress = lambda _: None,
        **fields: Any,
    ) -> Any:
        """Run an operation from :mod:`nacre.serve.catalogue` with the given request fields.

        Raises InvalidInputError for unknown or out-of-bounds fields, ConflictError if the operation
        needs a closed home (use the function :func:`call`), and the operation's own errors.
        """
        function = _find_operation(operation).function
        return self._perform(function, fields, on_progress=on_progress)

    def _perform(
        self,
        function: Callable[..., Result],
        parameters: Mapping[str, object],
        *,
        on_progress: OnProgress = lambda _: None,
        **more: object,
    ) -> Result:
        """Run an operation with a method's parameters as the fields of its request."""
        fields = {name: _in_utc(value) for name, value in {**parameters, **more}.items()}
        fields.pop("self", None)
        if fields.get("filter", True) is None:
            del fields["filter"]
        operation = operation_of(function)
        with self._home.turn:
            result: Result = operation.run_in(self._home, operation.make(fields), on_progress)
            syncing.embed_new_memories(self._home)
            return result

    def ingest(
        self,
        *paths: str | Path,
        extract: bool = True,
        vectors: bool = True,
        on_progress: OnProgress = lambda _: None,
    ) -> IngestReport:
        """Read the given transcript files and folders, or all transcripts found on this machine.

        ``extract`` also learns memories from them, and ``vectors`` computes embeddings. The
        report's ``problems`` list unreadable files. Raises NotFoundError for a missing path, and
        OwnerOnlyError if an agent passes paths, because their text would count as the owner's.
        """
        fields = {"paths": paths, "extract": extract, "vectors": vectors}
        return self._perform(ingest.ingest, fields, on_progress=on_progress)

    def store(
        self,
        content: str,
        *,
        subject: str | None = None,
        kind: Kind | str = Kind.FACT,
        importance: int = 7,
        expiry: Expiry | str = Expiry.PERMANENT,
        scope: Scope | str = Scope.PRIVATE,
        project: str | None = None,
        tags: Sequence[str] = (),
        canonical_key: str | None = None,
        expires_on: date | None = None,
        force: bool = False,
        online_dedup: bool | None = None,
        dedup_threshold: float | None = None,
        quote: str | None = None,
    ) -> StoreOutcome:
        """Store a memory, waiting up to 30 seconds for other writers.

        ``importance`` is 1 to 10. From the day ``expires_on``, recall and context omit the memory.
        Secrets are redacted. Unless ``force`` is set, a duplicate in the project is not stored
        again, and contradicted memories are superseded; a language model decides unclear cases
        (cosine similarity of at least ``dedup_threshold``) if background models are permitted or
        ``online_dedup`` is set. A memory from an agent is only a proposal, unless it repeats a
        ``quote`` that the owner typed. Raises InvalidMemoryError, StoreBusyError.
        """
        return self._perform(ingest.store, locals())

    def recall(
        self,
        text: str,
        *,
        filter: Filter | None = None,  # noqa: A002
        limit: int = DEFAULT_LIMIT,
        mode: Mode | str = Mode.HYBRID,
        around: datetime | None = None,
        radius_days: float = DEFAULT_RADIUS_DAYS,
        budget_tokens: int | None = None,
        boost: bool = True,
        update: bool = True,
        turns: int = DEFAULT_TURNS,
        session: str | None = None,
        ignore_time: bool = False,
    ) -> RecallResult:
        """Return the memories, review candidates and turns that best match a question.

        At most ``turns`` turns are returned. Times without a zone are local. A time in the question
        affects the ranking unless ``ignore_time`` is set. Results count as used unless ``update``
        is off. Memories used in the same ``session`` (the host's id) become related. Raises
        InvalidQueryError.
        """
        return self._perform(recall.recall, locals())

    def deep_recall(
        self,
        text: str,
        *,
        filter: Filter | None = None,  # noqa: A002
        recent: Sequence[tuple[Speaker | str, str]] = (),
        folder: str | Path | None = None,
        update: bool = True,
        session: str | None = None,
    ) -> DeepResult:
        """Return, as text, up to five memories from one project that an agent needs for its answer.

        The model in ``models.recall`` selects them within a minute; without a model, or if it
        fails, rules do. ``recent`` are earlier messages as (``owner`` or ``agent``, text), latest
        last. ``folder`` is the agent's working folder. Untrusted memories are left out. Raises
        InvalidQueryError.
        """
        with self._home.turn:
            here = project_of_folder(self._home, folder)
        return self._perform(
            deep.deep_recall,
            {},
            text=text,
            filter=filter,
            recent=[{"speaker": speaker, "text": words} for speaker, words in recent],
            here=here,
            update=update,
            session=session,
        )

    def context(
        self,
        prompt: str = "",
        *,
        moment: Moment | str | None = None,
        folder: str | Path | None = None,
        session: str | None = None,
        occasion: Occasion | str = Occasion.STARTUP,
        budget_tokens: int | None = None,
        parts: Sequence[Part | str] = (),
        lexical: bool = False,
        project: str | None = None,
    ) -> ContextBlock:
        """Return the context to give an agent for a ``prompt`` or at the start of a session.

        If a session starts with a prompt, set ``moment`` to ``start``. ``folder`` is the agent's
        working folder. Memories that the ``session`` (``<tool>:<id>``) has already received are
        left out. After delivery, call :meth:`context_told`. ``text`` is empty if nothing is
        relevant. Raises InvalidInputError.
        """
        if not lexical:
            with self._home.turn:
                catch_up(self._home, _CONTEXT_PATIENCE_SECONDS)
        return self._perform(
            build.build,
            {},
            moment=moment or (Moment.PROMPT if prompt.strip() else Moment.START),
            occasion=occasion,
            prompt=prompt,
            folder=str(Path(folder).absolute()) if folder else None,
            session=session,
            budget_tokens=budget_tokens,
            parts=parts,
            alone=lexical,
            project=project,
        )

    def context_told(self, session: str, block: ContextBlock) -> None:
        """Record that a session's agent received ``block`` as context."""
        self._perform(build.note_given, {}, session=session, state=block.state)

    def handoff(
        self,
        folder: str | Path = ".",
        *,
        store: bool = False,
        session: str | None = None,
        words: str | None = None,
    ) -> HandoffView:
        """Return the latest handoff for a folder's project, or ``store`` one for a session.

        ``session`` is ``<tool>:<id>``, by default the project's last session. ``words`` is the
        handoff's text, by default a model's summary or, without a model, the owner's last messages.
        The result's ``waits`` is True until the handoff is delivered. Raises NotFoundError if the
        session has no turns.
        """
        return self._perform(handoff.handoff, locals() | {"folder": str(Path(folder).absolute())})

    def flush(
        self,
        session: str | None = None,
        *,
        transcript: str | Path | None = None,
        seconds: float = 60.0,
    ) -> FlushReport:
        """Read and learn from the latest turns, and do work queued by hooks, within ``seconds``.

        With ``session``, only that session is read; if nacre does not know it yet, pass its
        ``transcript``.
        """
        transcript = str(Path(transcript).absolute()) if transcript else None
        return self._perform(chores.flush, locals())

    def search_sessions(
        self,
        text: str,
        *,
        filter: Filter | None = None,  # noqa: A002
        limit: int = DEFAULT_LIMIT,
        mode: Mode | str = Mode.HYBRID,
        around: datetime | None = None,
    ) -> RecallResult:
        """Return the turns that best match a question, best first. Raises InvalidQueryError."""
        return self._perform(recall.search_sessions_answers, locals())

    def get(self, reference: str, *, update: bool = True, session: str | None = None) -> Memory:
        """Return an active or retired memory by its id, id prefix or subject.

        Unless ``update`` is off, this counts as a use of the memory by ``session`` (the host's id).
        Raises NotFoundError, or ConflictError if several memories match.
        """
        return self._perform(read_memory, locals())

    def feedback(
        self, reply: str, *references: str, session: str | None = None, stored: Sequence[str] = ()
    ) -> FeedbackReport:
        """Adjust the quality of memories according to whether an agent's reply used them.

        ``references`` are the memories, by default all that ``session`` used since the last
        feedback. ``stored`` are memories that the agent has stored since then. The reply itself is
        not stored. Raises InvalidQueryError, NotFoundError, ConflictError.
        """
        return self._perform(recall.feedback, locals())

    def judge(self, *references: str, good: bool) -> FeedbackReport:
        """Rate memories as good or bad, and queue bad ones for review.

        Raises NotFoundError, ConflictError.
        """
        return self._perform(recall.judge, locals())

    def reviews(self) -> Sequence[Pending]:
        """Return all pending review items: conflicts, doubtful memories and candidates."""
        return self._perform(queue.list_items, {"limit": 0}).items

    def keep(
        self, *references: str, content: str | None = None, into: str | None = None
    ) -> list[Memory]:
        """Confirm pending review items and return their memories.

        Raises NotFoundError, ConflictError.
        """
        return self._perform(queue.keep_items, locals())

    def edit(
        self, reference: str, *, expected: str | None = None, **changes: Unpack[Changes]
    ) -> Memory:
        """Change fields of a memory and return it.

        A ``project`` of ``None`` makes the memory global. ``add_tags`` adds to the current tags,
        even under concurrent edits. ``expected`` is the etag from ``call("look", reference=…)``; if
        the file has changed since then, EditConflictError is raised. Also raises NotFoundError and
        InvalidMemoryError.
        """
        return self._perform(retiring.edit, changes, reference=reference, expected=expected)

    def history(self, reference: str) -> list[Step]:
        """Return a memory with its predecessors and successors, oldest first. Raises NotFoundError."""
        return self._perform(history_of, locals())

    def retire(
        self,
        *references: str,
        contains: Sequence[str] = (),
        reason: str | None = None,
        persist: bool = False,
    ) -> list[Memory]:
        """Retire memories (soft delete), which moves their files to ``retired/``.

        ``references`` are ids, subjects, or patterns with ``*``, and ``contains`` are substrings of
        subjects. With ``persist``, memories stored later under these subjects are retired, too.
        Raises NotFoundError, ConflictError.
        """
        return self._perform(retiring.retire_memories, locals())

    def unretire(self, *references: str) -> retiring.BroughtBack:
        """Restore retired or superseded memories, or end the retirement rules with these ids.

        A memory that superseded another one stays active. Raises NotFoundError, ConflictError.
        """
        return self._perform(retiring.unretire, locals())

    def plan_forgetting(
        self,
        *,
        sessions: Sequence[str] = (),
        memories: Sequence[str] = (),
        project: str | None = None,
        match: str | None = None,
        regex: bool = False,
        before: datetime | None = None,
    ) -> Deletion:
        """Return the content that :meth:`forget` would delete for sessions, memories, a project or text.

        ``before`` selects only earlier content. Raises InvalidQueryError, NotFoundError,
        ConflictError.
        """
        request = ForgetRequest(
            sessions=tuple(sessions),
            memories=tuple(memories),
            project=project,
            match=match,
            regex=regex,
            before=_in_utc(before),
        )
        with self._home.turn, operation_of(forgetting.plan).allowed(self._home):
            return forgetting.prepare(self._home, request)

    def forget(self, deletion: Deletion) -> ForgetReport:
        """Permanently delete the content of a plan, and report copies that nacre cannot delete."""
        with self._home.turn, operation_of(forgetting.forget_answers).allowed(self._home):
            return forgetting.forget(self._home, deletion)

    def log(
        self, reference: str | None = None, *, project: str | None = None, limit: int = 50
    ) -> Sequence[Listed]:
        """Return the operations on one memory, one project or all memories, newest first.

        Raises NotFoundError, ConflictError.
        """
        return self._perform(undoing.log, locals())

    def undo(self, operation: str | None = None) -> Undoing:
        """Undo an operation, by default the last one that is not undone yet.

        Raises NotFoundError, and ConflictError if the same content was changed later.
        """
        return self._perform(undoing.undo, locals())

    def list(
        self,
        *,
        filter: Filter | None = None,  # noqa: A002
        limit: int = 50,
        offset: int = 0,
    ) -> list[Memory]:
        """Return active memories, newest first."""
        page = self._perform(retiring.list_memories, locals())
        return [*page.memories]


def open_memory(
    home: str | Path | None = None,
    *,
    clock: Clock = utc_now,
    ids: Ids | None = None,
    load_embedder: EmbedderLoader | None = None,
    load_model: ModelLoader | None = None,
) -> MemoryHome:
    """Open a home, creating it if missing.

    ``home`` defaults to ``$NACRE_HOME``, then ``~/.nacre``. ``clock`` and ``ids`` are for tests.
    ``load_embedder`` replaces the bundled embedding model, and ``load_model`` opens a language
    model by name. Raises InvalidSettingsError, UnusableStoreError, UnusableVaultError,
    SchemaTooNewError.
    """
    return MemoryHome(
        open_home(
            load_settings(home),
            clock=clock,
            ids=ids,
            load_embedder=load_embedder,
            load_model=load_model,
        )
    )


def call(
    operation: str,
    /,
    *,
    home: str | Path | None = None,
    on_progress: Callable[[Any], object] | None = None,
    **fields: Any,
) -> Any:
    """Run an operation from :mod:`nacre.serve.catalogue`, opening the home if needed.

    ``fields`` are the fields of the operation's request. Raises the same errors as
    :meth:`MemoryHome.call`.
    """
    target = _find_operation(operation)
    request, settings = target.make(fields), load_settings(home)
    if not target.needs_home:
        return target.run(settings, request, on_progress)
    with closing(open_home(settings)) as opened:
        return target.run(opened, request, on_progress)
