"""The Python API."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import date, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Unpack

from nacre.base.ids import Clock, Ids, utc_now
from nacre.context import build, handoff, hooks
from nacre.data import forget as forgetting
from nacre.data import history as committing
from nacre.data import undo
from nacre.data.forget import Deletion, ForgetRequest
from nacre.data.history import Committed
from nacre.data.sync import Synced
from nacre.data.undo import Undoing
from nacre.errors import InvalidInputError, InvalidMemoryError, InvalidQueryError
from nacre.home.home import EmbedderLoader, Home, ModelLoader, open_home
from nacre.home.location import project_of_folder
from nacre.home.views import Listed, Pending, PendingPage, Step
from nacre.learn import ingest, learn
from nacre.learn.learn import Proposal
from nacre.learn.requests import ProposalRequest
from nacre.memories import retire as answers
from nacre.memories import store as remembering
from nacre.memories.decision import EditRequest, GetRequest, RetireRequest, StoreRequest
from nacre.memories.edit import scan
from nacre.memories.usage import history_of, read_memory
from nacre.python_calls import one_at_a_time, operation_of
from nacre.python_values import (
    Changes,
    changes_given,
    checked_importance,
    choose,
    in_utc,
    tags_of,
    utc,
)
from nacre.recall import deep as deep_recalling
from nacre.recall import recall
from nacre.recall.requests import DeepQuery
from nacre.settings import load_settings
from nacre.setup import chores as flushing
from nacre.values.context import ContextBlock, ContextRequest, Moment, Occasion, Part
from nacre.values.memory import Expiry, ForgetReport, Forgotten, Kind, Memory, Scope
from nacre.values.recall import (
    DEFAULT_LIMIT,
    DEFAULT_RADIUS_DAYS,
    DEFAULT_TURNS,
    DeepResult,
    Filter,
    Mode,
    RecallQuery,
    RecallResult,
    Said,
)
from nacre.values.reports import IngestReport, OnProgress, StoreOutcome
from nacre.values.review import FeedbackReport
from nacre.values.session import FlushReport, HandoffView, Speaker


@one_at_a_time
class MemoryHome:
    """An open home: reads transcripts, and stores, recalls and searches memories.

    Use it as a context manager. Threads can share an instance. Calls run one at a time, but do not
    block others while they wait for a language model. Separate instances work in parallel.
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
        """Wait for pending model calls and close the database. Further calls have no effect."""
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
        on_progress: Callable[[Any], object] | None = None,
        **fields: Any,
    ) -> Any:
        """Run an operation from :mod:`nacre.serve.catalogue` with the fields of its request.

        Raises InvalidInputError if a field is unknown or out of bounds. Raises ConflictError if the
        operation cannot run while the home is open. In this case, use the function :func:`call`.
        Also raises the operation's errors.
        """
        target = operation_of(operation)
        return target.run_in(self._home, target.make(fields), on_progress)

    def ingest(
        self,
        *paths: str | Path,
        extract: bool = True,
        vectors: bool = True,
        on_progress: OnProgress | None = None,
    ) -> IngestReport:
        """Read the given transcript files and folders, or all transcripts that discovery finds.

        ``extract``: learn memories from transcripts. ``vectors``: compute embeddings. The report's
        ``problems`` list unreadable files. Raises NotFoundError for a missing path, and
        OwnerOnlyError if an agent names files, since their text would count as the owner's.
        """
        named = [Path(path) for path in paths]
        report: IngestReport = self.call(
            "ingest", on_progress=on_progress, paths=named, extract=extract, vectors=vectors
        )
        return report

    def extract(
        self,
        path: str | Path | None = None,
        *,
        session: str | None = None,
        model: str | None = None,
    ) -> list[Proposal]:
        """Return the memories that nacre would learn from a session, without storing them.

        ``path`` is a transcript. ``session`` is a session that nacre has already read. If both are
        given, ``session`` selects a session in the transcript. ``model`` is ``provider:model``, or
        ``none`` to use only rules. The default is the configured extraction model. Raises
        InvalidQueryError, NotFoundError, ConflictError, UnreadableTranscriptError,
        ModelRefusedError.
        """
        if path is None and not session:
            raise InvalidQueryError(
                "nothing to extract from", hint="name a transcript, or a session that was read"
            )
        request = ProposalRequest(
            path=None if path is None else Path(path),
            session=session,
            model=model,
        )
        return learn.propose(self._home, request)

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
        """Store a memory durably, waiting for other writers.

        ``importance`` is 1 to 10. From the day ``expires_on``, recall and context omit the memory.
        Secrets are redacted. Unless ``force`` is set, duplicates in the project are not stored
        again, and contradicted memories are superseded. A language model decides unclear cases if
        background models are permitted or ``online_dedup`` is set. ``dedup_threshold`` (a cosine
        similarity) sets the minimum similarity of memories in such cases. A memory from an agent is
        a proposal, unless the content repeats a ``quote`` that the owner typed. Raises
        InvalidMemoryError. Raises StoreBusyError after 30 seconds.
        """
        return ingest.store(
            self._home,
            StoreRequest(
                content=content,
                subject=subject,
                kind=choose(Kind, kind, InvalidMemoryError),
                importance=checked_importance(importance),
                expiry=choose(Expiry, expiry, InvalidMemoryError),
                scope=choose(Scope, scope, InvalidMemoryError),
                project=project,
                tags=tags_of(tags),
                canonical_key=canonical_key,
                expires_on=expires_on,
                force=force,
                online_dedup=online_dedup,
                dedup_threshold=dedup_threshold,
                quote=quote,
            ),
        )

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
        expand: bool = False,
        rerank: bool = False,
        ignore_time: bool = False,
    ) -> RecallResult:
        """Return the memories, pending candidates and turns that best match a question.

        ``turns`` is the maximum number of turns. Times without a zone are local. A time in the
        question affects the ranking unless ``ignore_time`` is set. Results count as used unless
        ``update`` is off. Memories used in the same ``session`` (the host's id) become related.
        With ``expand``, a language model rephrases the question. With ``rerank``, a language model
        grades the best hits. Raises InvalidQueryError.
        """
        return recall.recall(
            self._home,
            RecallQuery(
                text=text,
                filter=in_utc(filter),
                mode=choose(Mode, mode, InvalidQueryError),
                limit=limit,
                around=utc(around),
                radius_days=radius_days,
                budget_tokens=budget_tokens,
                boost=boost,
                update=update,
                turns=turns,
                session=session,
                expand=expand,
                rerank=rerank,
                ignore_time=ignore_time,
            ),
        )

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
        """Return up to five memories from one project that an agent needs for its answer, as text.

        The model in ``models.recall`` selects them within a minute. If it is not set or fails,
        rules select them. ``recent``: earlier messages as (``owner`` or ``agent``, text), latest
        last. ``folder`` is the agent's folder. Only trusted memories are included. Raises
        InvalidQueryError.
        """
        messages = tuple(
            Said(choose(Speaker, speaker, InvalidQueryError), words) for speaker, words in recent
        )
        here = project_of_folder(self._home, Path(folder)) if folder else None
        query = DeepQuery(
            text=text,
            filter=in_utc(filter),
            recent=messages,
            here=here,
            update=update,
            session=session,
        )
        return deep_recalling.deep_recall(self._home, query)

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
    ) -> ContextBlock:
        """Return an agent's context for a ``prompt`` or for the start of a session.

        If the session starts with a prompt, set ``moment`` to ``start``. ``folder`` is the agent's
        folder. Items that the ``session`` (``<tool>:<id>``) has already received are omitted. Call
        :meth:`context_told` after delivery. ``text`` is empty if nothing is relevant. Raises
        InvalidInputError.
        """
        when = (
            choose(Moment, moment, InvalidInputError)
            if moment
            else Moment.PROMPT
            if prompt.strip()
            else Moment.START
        )
        request = ContextRequest(
            when,
            choose(Occasion, occasion, InvalidInputError),
            prompt,
            str(Path(folder).absolute()) if folder else None,
            session,
            budget_tokens,
            tuple(choose(Part, part, InvalidInputError) for part in parts),
            lexical,
        )
        return build.context_for(self._home, request)

    def context_told(self, session: str, block: ContextBlock) -> None:
        """Record that an agent received ``block`` as context in a session."""
        hooks.write_state(self._home.settings.home, session, block.state)

    def signals(self, session: str, *, folder: str | Path | None = None) -> ContextBlock:
        """Return relevant memories that other sessions have stored since this session's first call.

        ``session`` is ``<tool>:<id>``. Call :meth:`context_told` after delivery.
        """
        return self.context(
            moment=Moment.PROMPT, folder=folder, session=session, parts=(Part.SIGNALS,)
        )

    def handoff(self, folder: str | Path = ".") -> HandoffView:
        """Return the latest handoff in a folder's project.

        ``waits`` is True until the handoff is delivered.
        """
        return handoff.handoff(self._home, folder=str(Path(folder).absolute()))

    def hand_over(
        self, words: str | None = None, *, session: str | None = None, folder: str | Path = "."
    ) -> HandoffView:
        """Store a handoff for a session. The default is the last session in the folder's project.

        ``session`` is ``<tool>:<id>``. ``words`` is the handoff's text. By default, the text is a
        model's summary. If no model is configured, the text is the owner's last messages. Raises
        NotFoundError if the session has no turns.
        """
        return handoff.handoff(
            self._home,
            folder=str(Path(folder).absolute()),
            store=True,
            session=session,
            words=words,
        )

    def flush(
        self,
        session: str | None = None,
        *,
        transcript: str | Path | None = None,
        seconds: float = 60.0,
    ) -> FlushReport:
        """Read and learn from the latest turns, and finish work queued by hooks.

        If ``session`` is given, only this session is read. ``transcript`` is needed if nacre does
        not know the session yet. ``seconds`` limits the time for queued work.
        """
        file = str(Path(transcript).absolute()) if transcript else None
        return flushing.flush(self._home, session=session, transcript=file, seconds=seconds)

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
        query = RecallQuery(
            text=text,
            filter=in_utc(filter),
            mode=choose(Mode, mode, InvalidQueryError),
            limit=limit,
            around=utc(around),
        )
        return recall.search_sessions(self._home, query)

    def get(self, reference: str, *, update: bool = True, session: str | None = None) -> Memory:
        """Return an active or retired memory by id, id prefix or subject.

        Unless ``update`` is off, the call counts as a use of the memory. ``session`` is the host's
        id of the session that uses the memory. Raises NotFoundError, ConflictError.
        """
        return read_memory(
            self._home, GetRequest(reference=reference, update=update, session=session)
        )

    def feedback(
        self, reply: str, *references: str, session: str | None = None, stored: Sequence[str] = ()
    ) -> FeedbackReport:
        """Update the quality of memories, depending on whether an agent's reply used them.

        ``references`` are the memories to update. The default is all memories used in ``session``
        since the last feedback. ``stored`` are memories that the agent has stored since then. The
        reply is not stored. Raises InvalidQueryError, NotFoundError, ConflictError.
        """
        return recall.feedback(self._home, reply, references, session=session, stored=tuple(stored))

    def judge(self, *references: str, good: bool) -> FeedbackReport:
        """Rate memories as good or bad. Bad memories are queued for review. Raises NotFoundError, ConflictError."""
        return recall.judge(self._home, references, good=good)

    def reviews(self) -> Sequence[Pending]:
        """Return the items in the review queue: conflicts, doubts and candidates."""
        page: PendingPage = self.call("review", limit=0)
        return page.items

    def keep(
        self, *references: str, content: str | None = None, into: str | None = None
    ) -> list[Memory]:
        """Confirm pending review items, and return the memories.

        Raises NotFoundError, ConflictError.
        """
        kept: list[Memory] = self.call(
            "review-keep", references=references, content=content, into=into
        )
        return kept

    def edit(
        self, reference: str, *, expected: str | None = None, **changes: Unpack[Changes]
    ) -> Memory:
        """Change fields of a memory and return it.

        Fields are subject, content, kind, importance, expiry, scope, project (``None``: global) and
        tags. ``add_tags`` adds to the current tags, even under concurrent edits. ``expected`` is
        the etag from ``call("look", reference=…)``. Raises EditConflictError if the file has
        changed since then, NotFoundError, and InvalidMemoryError.
        """
        return answers.edit(
            self._home,
            EditRequest(reference=reference, expected=expected, **changes_given(changes)),
        )

    def history(self, reference: str) -> list[Step]:
        """Return a memory with its predecessors and successors, oldest first. Raises NotFoundError."""
        return history_of(self._home, reference)

    def retire(
        self,
        *references: str,
        contains: Sequence[str] = (),
        reason: str | None = None,
        persist: bool = False,
    ) -> list[Memory]:
        """Retire memories (soft delete). Their files move to ``retired/``.

        ``references``: ids, subjects, or patterns with ``*``. ``contains``: parts of subjects. With
        ``persist``, memories stored later under these subjects are retired, too.
        Raises NotFoundError, ConflictError.
        """
        return answers.retire_memories(
            self._home,
            RetireRequest(
                references=references, contains=tuple(contains), reason=reason, persist=persist
            ),
        )

    def unretire(self, *references: str) -> answers.BroughtBack:
        """Restore retired or superseded memories. A superseding memory stays active.

        A reference can also be the id of a retirement rule. The rule then no longer applies. Raises
        NotFoundError, ConflictError.
        """
        back: answers.BroughtBack = self.call("unretire", references=references)
        return back

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
            before=utc(before),
        )
        return forgetting.prepare(self._home, request)

    def forget(self, deletion: Deletion) -> ForgetReport:
        """Permanently delete the planned content. The report lists copies that nacre cannot delete."""
        return forgetting.forget(self._home, deletion)

    def forgotten(self) -> Sequence[Forgotten]:
        """Return past deletions, latest first."""
        return forgetting.forgotten(self._home)

    def allow_again(self, reference: str) -> Forgotten:
        """Allow nacre to read forgotten content again.

        ``reference`` is the id of a deletion, session or memory. Raises NotFoundError,
        ConflictError.
        """
        allowed: Forgotten = self.call("forget-allow-again", reference=reference)
        return allowed

    def log(
        self, reference: str | None = None, *, project: str | None = None, limit: int = 50
    ) -> Sequence[Listed]:
        """Return operations on all memories, a memory, or a project, newest first.

        Raises NotFoundError, ConflictError.
        """
        return undo.log(
            self._home,
            reference=reference,
            project=project,
            limit=max(0, limit),
        )

    def undo(self, operation: str | None = None, *, force: bool = False) -> Undoing:
        """Undo an operation. The default is the last operation that was not undone.

        Raises NotFoundError. Raises ConflictError if the same content was changed later. With
        ``force``, the later version stays, and the earlier version becomes a linked memory.
        """
        undone: Undoing = self.call("undo", operation=operation, force=force)
        return undone

    def commit(self) -> Committed:
        """Commit operations to the vault's git history.

        Raises GitUnavailableError, UnusableRepositoryError, StoreBusyError.
        """
        scan(self._home)
        return committing.commit_operations(self._home)

    def sync(
        self, remote: str | None = None, *, dry_run: bool = False, timeout_seconds: float = 60.0
    ) -> Synced:
        """Synchronise the vault with a git remote, whose address is needed only the first time.

        Raises RemoteUnreachableError, RemoteRefusedError, HistoryRewrittenError, SecretFoundError,
        EditConflictError, UnusableRepositoryError.
        """
        synced: Synced = self.call(
            "sync", remote=remote, dry_run=dry_run, timeout_seconds=timeout_seconds
        )
        return synced

    def list(
        self,
        *,
        filter: Filter | None = None,  # noqa: A002
        limit: int = 50,
        offset: int = 0,
    ) -> list[Memory]:
        """Return active memories, newest first."""
        memories, _ = remembering.list_active(
            self._home, in_utc(filter), limit=max(0, limit), offset=max(0, offset)
        )
        return memories


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
    ``load_embedder`` replaces the bundled embedding model. ``load_model`` opens a language model by
    name. Raises InvalidSettingsError, UnusableStoreError, UnusableVaultError, SchemaTooNewError.
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
    target = operation_of(operation)
    request, settings = target.make(fields), load_settings(home)
    if not target.needs_home:
        return target.run(settings, request, on_progress)
    with closing(open_home(settings)) as opened:
        return target.run(opened, request, on_progress)
