"""The Python API: one open home."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import date, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Unpack

from nacre.base.ids import Clock, Ids, utc_now
from nacre.context import build, handoff, hooks
from nacre.context.build import HandoffRequest
from nacre.data import forget as forgetting
from nacre.data import history as committing
from nacre.data import undo
from nacre.data.forget import ForgetRequest
from nacre.data.history import Committed
from nacre.data.sync import Synced
from nacre.data.undo import Undoing
from nacre.errors import InvalidInput, MemoryInvalid, QueryInvalid
from nacre.home.home import EmbedderLoader, Home, ModelLoader, open_home
from nacre.home.location import project_of_folder
from nacre.home.views import Listed, Pending, PendingPage, Step
from nacre.learn import ingest, learn
from nacre.learn.extract import ProposalRequest, Way
from nacre.learn.learn import Proposal
from nacre.memories import retire as answers
from nacre.memories import store as remembering
from nacre.memories.decision import EditRequest, StoreRequest
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
from nacre.recall.ranking import DeepQuery
from nacre.serve.operation import Needs
from nacre.settings import load_settings
from nacre.setup import chores as flushing
from nacre.setup.chores import FlushRequest
from nacre.values.context import ContextBlock, ContextRequest, Moment, Occasion, Part
from nacre.values.memory import Expiry, ForgetPlan, ForgetReport, Forgotten, Kind, Memory, Scope
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
    """A home that is open: read transcripts, store, recall, search.

    Use as a context manager. Threads may share one: their calls take turns, and others go on while one waits for a
    language model. To work side by side, each opens its own.
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
        """Close the database, once no thread waits for a model any more; a second call does nothing."""
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
        """Run any operation of :mod:`nacre.serve.catalogue` by its name; ``fields`` are those of its request.

        Raises InvalidInput for a field that is unknown or out of bounds, Conflict for an operation that needs the home
        closed (:func:`call` runs it), and what the operation raises.
        """
        found = operation_of(operation)
        return found.run_in(self._home, found.make(fields), on_progress)

    def ingest(
        self,
        *paths: str | Path,
        extract: bool = True,
        vectors: bool = True,
        on_progress: OnProgress | None = None,
    ) -> IngestReport:
        """Read transcripts: the files and folders named, or all that discovery finds.

        ``extract`` learns memories from them, ``vectors`` makes what the vector lane needs. Unreadable files are in
        the report's ``problems``. Raises NotFound for a path that does not exist, OwnerOnly where an agent names files:
        what they say that somebody typed would be the owner's word.
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
        way: Way | str = Way.FITTING,
        owner_only: bool = False,
        related: bool = True,
    ) -> list[Proposal]:
        """What would be learned from a transcript, or from a ``session`` that was read already; nothing is stored.

        With both, ``session`` names one of the transcript. The language model that is set for extraction does it, or
        ``model`` (``provider:model``; ``none`` for the rules); what it fails at the rules do, and ``asked`` of each
        proposal tells. ``way`` is ``fitting`` (whole where the model has room), ``whole`` or ``chunks``; ``owner_only``
        shows it the owner's turns alone, ``related`` what is known of the topic. Raises QueryInvalid, NotFound,
        Conflict, TranscriptUnreadable, ModelRefused.
        """
        if path is None and not session:
            raise QueryInvalid(
                "nothing to extract from", hint="name a transcript, or a session that was read"
            )
        wanted = ProposalRequest(
            path=None if path is None else Path(path),
            session=session,
            model=model,
            way=choose(Way, way, QueryInvalid),
            owner_only=owner_only,
            related=related,
        )
        return learn.propose(self._home, wanted)

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
        aggressive: bool | None = None,
        dedup_threshold: float | None = None,
        quote: str | None = None,
    ) -> StoreOutcome:
        """Store one memory; durable when it returns.

        While others write, it waits for its turn.

        ``importance`` is 1 to 10. From the day ``expires_on`` recall and context leave it out. What says the same as a
        memory of the same project is not stored twice, and what says otherwise takes its place, unless ``force``.
        Secrets are redacted. Where the rules cannot tell, a language model is asked if one may work in the background,
        or with ``online_dedup``; ``aggressive`` and ``dedup_threshold`` (a cosine) say from which likeness on. What
        an agent's process stores is its proposal unless the owner typed the ``quote``. Raises MemoryInvalid, and
        StoreBusy after 30 seconds.
        """
        return ingest.store(
            self._home,
            StoreRequest(
                content=content,
                subject=subject,
                kind=choose(Kind, kind, MemoryInvalid),
                importance=checked_importance(importance),
                expiry=choose(Expiry, expiry, MemoryInvalid),
                scope=choose(Scope, scope, MemoryInvalid),
                project=project,
                tags=tags_of(tags),
                canonical_key=canonical_key,
                expires_on=expires_on,
                force=force,
                online_dedup=online_dedup,
                aggressive=aggressive,
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
        """Return the best memories, pending candidates and turns (at most ``turns``) for a question, with confidences.

        Times without a zone are local. A time that the question names weighs; ``ignore_time`` leaves it out. What is
        recalled counts as used unless ``update`` is off; what is used in one ``session`` (the host's own id for it) is
        used together. With ``expand`` a language model also asks in other words, with ``rerank`` it grades the best
        hits. Raises QueryInvalid.
        """
        return recall.recall(
            self._home,
            RecallQuery(
                text=text,
                filter=in_utc(filter),
                mode=choose(Mode, mode, QueryInvalid),
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
        """What an agent should know before it answers: at most five memories of one project, as a block of text.

        A language model decides where one is set (``models.recall``), within ``recall.deep_seconds``; rules do where
        none is, or where it fails. ``recent`` are the messages before, as (``owner`` or ``agent``, text), the latest
        last; ``folder`` is where the question is asked. Only what is trusted is told. Raises QueryInvalid.
        """
        said = tuple(
            Said(choose(Speaker, speaker, QueryInvalid), words) for speaker, words in recent
        )
        here = project_of_folder(self._home, Path(folder)) if folder else None
        query = DeepQuery(
            text=text, filter=in_utc(filter), recent=said, here=here, update=update, session=session
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
        """What an agent should know: with a ``prompt`` what fits it, without one what a session starts with.

        ``moment`` says which of the two it is, where a session starts with a prompt. ``folder`` is where the agent
        works. What the host's ``session`` (``<tool>:<id>``) was given is not given again: call :meth:`context_told`
        once the agent has the text. ``text`` is empty where nothing is worth telling. Raises InvalidInput.
        """
        when = (
            choose(Moment, moment, InvalidInput)
            if moment
            else Moment.PROMPT
            if prompt.strip()
            else Moment.START
        )
        request = ContextRequest(
            when,
            choose(Occasion, occasion, InvalidInput),
            prompt,
            str(Path(folder).absolute()) if folder else None,
            session,
            budget_tokens,
            tuple(choose(Part, part, InvalidInput) for part in parts),
            lexical,
        )
        return build.context_for(self._home, request)

    def context_told(self, session: str, block: ContextBlock) -> None:
        """Keep what a host's session was given, once its agent has it."""
        hooks.write_state(self._home.settings.home, session, block.state)

    def signals(self, session: str, *, folder: str | Path | None = None) -> ContextBlock:
        """What other sessions stored just now that one which runs (``<tool>:<id>``) should hear of.

        It listens from the first time it asks on. Call :meth:`context_told` with every answer, once it has the text.
        """
        return self.context(
            moment=Moment.PROMPT, folder=folder, session=session, parts=(Part.SIGNALS,)
        )

    def handoff(self, folder: str | Path = ".") -> HandoffView:
        """The latest handoff in the project of a folder, and whether it waits for a session."""
        return handoff.handoff(self._home, HandoffRequest(folder=str(Path(folder).absolute())))

    def hand_over(
        self, words: str | None = None, *, session: str | None = None, folder: str | Path = "."
    ) -> HandoffView:
        """Hand a session (``<tool>:<id>``) over now, or the last one of the folder's project.

        In ``words``, else in what the owner said last, or as a model sums it up where one is set for that. Raises
        NotFound for a session of which nothing was read.
        """
        asked = HandoffRequest(
            folder=str(Path(folder).absolute()), store=True, session=session, words=words
        )
        return handoff.handoff(self._home, asked)

    def flush(
        self,
        session: str | None = None,
        *,
        transcript: str | Path | None = None,
        seconds: float = 60.0,
    ) -> FlushReport:
        """Read and learn from what agents wrote until now, in one session or in all, and do what hooks left to be done.

        ``transcript`` is the file of the session, where nacre has not met it; ``seconds`` bounds what was left.
        """
        file = str(Path(transcript).absolute()) if transcript else None
        return flushing.flush(
            self._home, FlushRequest(session=session, transcript=file, seconds=seconds)
        )

    def search_sessions(
        self,
        text: str,
        *,
        filter: Filter | None = None,  # noqa: A002
        limit: int = DEFAULT_LIMIT,
        mode: Mode | str = Mode.HYBRID,
        around: datetime | None = None,
    ) -> RecallResult:
        """The turns of all sessions that answer a question, the best first. Raises QueryInvalid."""
        query = RecallQuery(
            text=text,
            filter=in_utc(filter),
            mode=choose(Mode, mode, QueryInvalid),
            limit=limit,
            around=utc(around),
        )
        return recall.search_sessions(self._home, query)

    def get(self, reference: str, *, update: bool = True, session: str | None = None) -> Memory:
        """One memory, also a retired one, by id, the beginning of its id, or its subject.

        It counts as used unless ``update`` is off, in the host's ``session`` if there is one. Raises NotFound,
        Conflict.
        """
        return read_memory(self._home, reference, update=update, session=session)

    def feedback(
        self, reply: str, *references: str, session: str | None = None, stored: Sequence[str] = ()
    ) -> FeedbackReport:
        """Let memories learn from an agent's reply: which of them it used, and which had to be said anew.

        They are those named, else those used in ``session`` since the last feedback on it; ``stored`` names what the
        agent stored meanwhile. The reply is compared, never kept. Raises QueryInvalid, NotFound, Conflict.
        """
        return recall.feedback(self._home, reply, references, session=session, stored=stored)

    def judge(self, *references: str, good: bool) -> FeedbackReport:
        """Tell that memories are good, or bad: those wait for review, too. Raises NotFound, Conflict."""
        return recall.judge(self._home, references, good=good)

    def reviews(self) -> Sequence[Pending]:
        """What waits for review: conflicts, memories in doubt and candidates."""
        found: PendingPage = self.call("review", limit=0)
        return found.items

    def keep(
        self, *references: str, content: str | None = None, into: str | None = None
    ) -> list[Memory]:
        """Keep what waits for review. Raises NotFound, Conflict."""
        kept: list[Memory] = self.call(
            "review-keep", references=references, content=content, into=into
        )
        return kept

    def edit(
        self, reference: str, *, expected: str | None = None, **changes: Unpack[Changes]
    ) -> Memory:
        """Change fields of a memory; returns it as it is now.

        Fields are subject, content, kind, importance, expiry, scope, project (``None``: it holds everywhere) and tags;
        ``add_tags`` adds to those that are there, whoever else is adding some at the same time. With ``expected``, the
        etag that ``call("look", reference=…)`` tells, nothing is written over a file that changed meanwhile.
        Raises NotFound, EditConflict, MemoryInvalid.
        """
        return answers.edit(
            self._home,
            EditRequest(reference=reference, expected=expected, **changes_given(changes)),
        )

    def history(self, reference: str) -> list[Step]:
        """A memory with all that it superseded and all that superseded it, the oldest first. Raises NotFound."""
        return history_of(self._home, reference)

    def retire(
        self,
        *references: str,
        contains: Sequence[str] = (),
        reason: str | None = None,
        persist: bool = False,
    ) -> list[Memory]:
        """Soft-delete memories; their files move to ``retired/``.

        They are named by id, subject, or a pattern with ``*``; ``contains`` are parts of subjects. With ``persist``,
        what is stored later under such a subject is retired at once. Raises NotFound, Conflict.
        """
        chosen = answers.choose(self._home, references, contains, persist=persist)
        return answers.retire_chosen(self._home, chosen, reason, persist=persist)[0]

    def unretire(self, *references: str) -> answers.BroughtBack:
        """Bring back memories that were retired or superseded; what superseded one holds beside it.

        Ids of standing retirements end those. Raises NotFound, Conflict.
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
    ) -> ForgetPlan:
        """What forgetting would take: one of these, or what a project said ``before`` a time. Nothing is changed.

        Raises QueryInvalid, NotFound, Conflict.
        """
        wanted = ForgetRequest(
            sessions=tuple(sessions),
            memories=tuple(memories),
            project=project,
            match=match,
            regex=regex,
            before=utc(before),
        )
        return forgetting.plan(self._home, wanted)

    def forget(self, plan: ForgetPlan) -> ForgetReport:
        """Delete for good what was planned. The report says what could not be reached."""
        return forgetting.forget(self._home, plan)

    def forgotten(self) -> Sequence[Forgotten]:
        """What was forgotten so far, the latest first."""
        return forgetting.forgotten(self._home)

    def allow_again(self, reference: str) -> Forgotten:
        """Let what was forgotten be read again: the id of a run, a session or a memory. Raises NotFound, Conflict."""
        allowed: Forgotten = self.call("forget-allow-again", reference=reference)
        return allowed

    def log(
        self, reference: str | None = None, *, project: str | None = None, limit: int = 50
    ) -> Sequence[Listed]:
        """What was done, the newest first: to all memories, to one, or in one project. Raises NotFound, Conflict."""
        return undo.log(self._home, reference=reference, project=project, limit=max(0, limit))

    def undo(self, operation: str | None = None, *, force: bool = False) -> Undoing:
        """Bring back what an operation changed, by default the last one that is not undone.

        ``force`` keeps both versions of what was changed since.

        Raises NotFound, Conflict.
        """
        undone: Undoing = self.call("undo", operation=operation, force=force)
        return undone

    def commit(self) -> Committed:
        """Put what was done into the vault's git history. Raises GitUnavailable, RepositoryUnusable, StoreBusy."""
        scan(self._home)
        return committing.commit_operations(self._home)

    def sync(
        self, remote: str | None = None, *, dry_run: bool = False, timeout_seconds: float = 60.0
    ) -> Synced:
        """Keep the vault in step with a remote: an address the first time, none later.

        Raises RemoteUnreachable, RemoteRefused, HistoryRewritten, SecretFound, EditConflict, RepositoryUnusable.
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
        """Active memories, the newest first."""
        found, _ = remembering.list_active(
            self._home, in_utc(filter), limit=max(0, limit), offset=max(0, offset)
        )
        return found


def open_memory(
    home: str | Path | None = None,
    *,
    clock: Clock = utc_now,
    ids: Ids | None = None,
    load_embedder: EmbedderLoader | None = None,
    load_model: ModelLoader | None = None,
) -> MemoryHome:
    """Open a home, creating it where it is missing.

    ``home`` defaults to ``$NACRE_HOME``, then ``~/.nacre``. ``clock`` and ``ids`` are for tests; ``load_embedder``
    replaces the bundled model, ``load_model`` what opens language models by name. Raises SettingsInvalid,
    StoreUnusable, VaultUnusable, SchemaTooNew.
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
    """Run an operation of :mod:`nacre.serve.catalogue` on a home that is opened for it, if it needs to be open at all.

    ``home`` is as for :func:`open_memory`, ``fields`` are those of the operation's request. Raises as
    :meth:`MemoryHome.call`.
    """
    found = operation_of(operation)
    request, settings = found.make(fields), load_settings(home)
    if found.needs is not Needs.HOME:
        return found.run(settings, request, on_progress)
    with closing(open_home(settings)) as opened:
        return found.run(opened, request, on_progress)
