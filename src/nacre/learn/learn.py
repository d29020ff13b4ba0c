"""Learning from sessions: model calls, and storage of the extracted memories."""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path

from msgspec import structs

from nacre.base.frozen import frozen
from nacre.base.ids import to_millisecond
from nacre.base.text import count, shorten
from nacre.errors import (
    InvalidQueryError,
    NacreError,
    NotFoundError,
    UnreadableTranscriptError,
)
from nacre.home.change import Change, Run, part_of
from nacre.home.home import Home
from nacre.home.location import find_session, redact
from nacre.home.parsing import batches, open_transcript
from nacre.home.spending import (
    NONE,
    current_settings,
    fold_notes,
    has_writer,
    model_for,
    name_for,
    obstacle,
)
from nacre.learn.checks import Caller
from nacre.learn.explicit import SURE, limit_score
from nacre.learn.extract import (
    Amendments,
    Removal,
    WaitingCandidates,
    as_positions,
    doubt_memories_of,
    extract,
    find_covered,
    find_missed,
    find_removals,
    is_agreed,
    is_covered,
    is_quiet,
    is_worth_asking,
    last_of_owner,
    latest_first,
    pending_sessions,
    record_start,
)
from nacre.learn.reading import sort_by_time
from nacre.learn.requests import ExtractRequest
from nacre.learn.sentences import utterances
from nacre.learn.writer import (
    Extraction,
    FinishedSession,
    count_fitting,
    extract_together,
    extract_with,
    find_related,
)
from nacre.memories import decisions
from nacre.memories.judge import Decision
from nacre.memories.placement import place, write_touched
from nacre.memories.requests import Asking
from nacre.memories.tombstones import Gate
from nacre.memories.usage import learned_together
from nacre.memories.vectors import embed_memories
from nacre.operations import operation
from nacre.protocols import LanguageModel
from nacre.readers.trust import shared
from nacre.settings import Value
from nacre.values.memory import BESIDE_PASTE, NODDED, Candidate, Kind, Memory, Source
from nacre.values.models import Health
from nacre.values.reports import IngestReport, ModelExtraction, OnProgress, Problem, Progress
from nacre.values.session import (
    Flag,
    Session,
    Speaker,
    StoredSession,
    StoredTurn,
    Task,
    Turn,
    Unlearned,
)

_PROBLEM_CHARACTERS = 300

ASKED_AGAIN_AFTER = timedelta(hours=23)
"""Waiting time after a model's unusable answers, because each costs several calls."""


class ModelExtractor:
    """An extractor that calls the configured model until it stops responding or the budget is spent.

    ``is_elsewhere``: whether another process is already calling the model.
    """

    def __init__(self, home: Home, *, is_elsewhere: bool = False) -> None:
        self._home = home
        self.is_elsewhere = is_elsewhere
        self._report = ModelExtraction()
        self._is_over = False
        self._ahead: dict[str, Extraction] = {}
        self._alone: set[str] = set()

    def read_ahead(
        self,
        project: str | None,
        sessions: Sequence[FinishedSession],
        notify: Callable[[str], None],
    ) -> None:
        """Ask the model about several small sessions of a project in one call.

        :meth:`extract` returns the results.
        """
        home, model = self._home, self._model
        if model is None or self.is_spent:
            return
        eligible = [
            session
            for session in sessions
            if session.session.id not in self._alone
            and is_worth_asking(session.session, session.turns, begin=session.begin)
        ]
        together = eligible[: count_fitting(eligible, model.capabilities)]
        if len(together) < 2:
            return
        notify(f"{model.name}: {len(together)} sessions")
        related = find_related(home, together, project, self._writer)
        caller = Caller(model)
        with home.turn.aside():
            answers = extract_together(caller, together, related)
        self._alone |= set() if answers else {session.session.id for session in together}
        for session, extraction in zip(together, answers or (), strict=False):
            self._count(extraction)
            self._ahead[session.session.id] = extraction
        self._report = replace(
            self._report,
            calls=self._report.calls + caller.calls,
            tokens=self._report.tokens + caller.tokens,
        )
        self._is_over = self._is_over or caller.is_over

    def is_read(self, session: Session) -> bool:
        return session.id in self._ahead

    def extract(
        self, finished: FinishedSession, project: str | None, notify: Callable[[str], None]
    ) -> Extraction | None:
        """Ask the model about a session's new turns. Return ``None`` if no call is made."""
        session, turns, begin = finished.session, finished.turns, finished.begin
        if self.is_read(session):
            return self._ahead.pop(session.id)
        model = self._model
        if model is None or self.is_spent or begin >= len(turns):
            return None
        if not is_worth_asking(session, turns, begin=begin):
            return None

        def report_part(done: int, total: int) -> None:
            notify(f"{model.name}: part {done} of {total}")

        notify(model.name)
        extraction = _ask_about(self._home, model, finished, project, self._writer, report_part)
        self._count(extraction)
        if extraction.is_useless:
            home = self._home
            problem = home.redactor.clean(
                extraction.problem or "its answers do not match the schema"
            )
            # First, because answered calls among the notes would mark the model as healthy.
            fold_notes(home)
            with home.transaction():
                until = home.now() + ASKED_AGAIN_AFTER
                home.spending.fail(
                    Health(extraction.model, until, shorten(problem, _PROBLEM_CHARACTERS))
                )
        return extraction

    def serves(self, stored: StoredSession, *, older: bool = False) -> bool:
        """Return True if the writer may read a finished session.

        ``older`` includes sessions that it may read only at the owner's request.
        """
        may_show = is_covered if older else is_agreed
        return has_writer(self._home.settings) and may_show(
            current_settings(self._home), stored, self._writer
        )

    @property
    def rests(self) -> bool:
        """True if the writer may not be called at the moment."""
        return (
            self.is_elsewhere
            or is_pausing(self._home)
            or obstacle(self._home, Task.EXTRACTION) is not None
        )

    @property
    def is_spent(self) -> bool:
        """True if the model is unreachable or its budget is spent."""
        return self._is_over or self._model is None

    @property
    def is_at_rest(self) -> bool:
        """True if no call is possible and no results of :meth:`read_ahead` are left."""
        return not self._ahead and (self.rests or self.is_spent)

    def leave(self) -> None:
        """Count a session that another process will read."""
        self._report = replace(self._report, elsewhere=self._report.elsewhere + 1)

    def report(self) -> ModelExtraction | None:
        """Return the counts of model calls so far, or ``None`` if there is no model."""
        model, report = self.__dict__.get("_model"), self._report
        is_reported = model or report.problem or report.elsewhere
        return replace(report, model=model.name if model else "") if is_reported else None

    def close(self) -> None:
        model = self.__dict__.get("_model")
        if model:
            model.close()

    @property
    def _writer(self) -> str:
        return name_for(self._home, Task.EXTRACTION)

    @cached_property
    def _model(self) -> LanguageModel | None:
        try:
            return model_for(self._home, Task.EXTRACTION, background=True)
        except NacreError as error:
            self._report = replace(self._report, problem=error.message, hint=error.hint)
            return None

    def _count(self, extraction: Extraction) -> None:
        before = self._report
        self._report = replace(
            before,
            sessions=before.sessions + (extraction.by_rules < extraction.parts),
            held=before.held + len(extraction.candidates) - len(extraction.memories),
            calls=before.calls + extraction.calls,
            tokens=before.tokens + extraction.tokens,
            parts=before.parts + extraction.parts,
            by_rules=before.by_rules + extraction.by_rules,
            dropped=Counter(before.dropped) + Counter(extraction.dropped),
        )
        if extraction.by_rules or extraction.is_uncompared:
            self._report = replace(self._report, problem=extraction.problem, hint=extraction.hint)
        self._is_over = extraction.is_over


def is_pausing(home: Home) -> bool:
    """Return True if the model gave unusable answers less than a day ago."""
    health = home.spending.health(name_for(home, Task.EXTRACTION))
    return health is not None and health.until > home.now()


def _ask_about(
    home: Home,
    model: LanguageModel,
    finished: FinishedSession,
    project: str | None,
    writer: str,
    notify: Callable[[int, int], None] = lambda _done, _total: None,
) -> Extraction:
    related = find_related(home, [finished], project, writer)
    with home.turn.aside():
        return extract_with(Caller(model), finished, related, notify)


# -- Previews of extraction (nothing is stored) ----------------------------------------------------


@frozen
class Proposal:
    """The candidates found in one session.

    ``asked`` is the model's extraction, or ``None`` if only rules read the session.
    """

    session: Session
    candidates: tuple[Candidate, ...]
    asked: Extraction | None = None

    @property
    def memories(self) -> tuple[Candidate, ...]:
        """The candidates that become memories immediately."""
        return tuple(candidate for candidate in self.candidates if not candidate.held)


@operation("extract", takes_long=True)
def propose(
    home: Home, request: ExtractRequest, on_progress: OnProgress = lambda _: None
) -> list[Proposal]:
    """Return the memories that a text or sessions would yield, but do not store the memories.

    Raises NotFoundError, ConflictError and UnreadableTranscriptError. Raises ModelRefusedError if
    the model cannot be opened.
    """
    if request.text.strip():
        with tempfile.TemporaryDirectory(prefix="nacre-extract-") as folder:
            file = Path(folder) / "text.md"
            file.write_text(request.text, encoding="utf-8")
            return propose(home, structs.replace(request, text="", path=file), on_progress)
    if not (request.path or request.session):
        raise InvalidQueryError(
            "no transcript or session is given",
            hint="name a transcript file, or a session that nacre has read",
        )
    if request.path:
        conversations = _sessions_in_file(home, request.path, request.session)
    else:
        stored = find_session(home, request.session or "")
        turns = sort_by_time(home.sessions.read_turns(stored.row))
        conversations = [(stored.session, stored.project, turns)]
    model = _model(home, request.model)
    try:
        proposals = []
        for done, (session, project, turns) in enumerate(conversations):
            on_progress(Progress("learning", done, len(conversations), model.name if model else ""))
            if model is None:
                proposals.append(Proposal(session, tuple(extract(session, turns))))
                continue
            finished = FinishedSession(session, turns)
            extraction = _ask_about(home, model, finished, project, model.name)
            proposals.append(Proposal(session, extraction.candidates, extraction))
        return proposals
    finally:
        if model:
            model.close()


def _model(home: Home, name: str | None) -> LanguageModel | None:
    if name:
        values = {**home.settings.values, f"models.{Task.EXTRACTION}": Value(name, "--model")}
        home = replace(home, settings=replace(home.settings, values=values))
    return None if name == NONE else model_for(home, Task.EXTRACTION, background=False)


_Conversation = tuple[Session, str | None, list[Turn]]
"""A session, its project and its turns."""


def _sessions_in_file(home: Home, path: Path, reference: str | None) -> list[_Conversation]:
    sessions: dict[str, tuple[Session, list[Turn]]] = {}
    try:
        with open_transcript(path, identities=tuple(home.settings.texts("owner.identities"))) as (
            adapter,
            source,
        ):
            if adapter is None:
                raise UnreadableTranscriptError(
                    f"{path} is not a known transcript",
                    hint="docs/agents.md lists the readable files",
                )
            for batch in batches(path, adapter, source, home.redactor):
                _, turns = sessions.setdefault(batch.session.id, (batch.session, []))
                turns += batch.turns
    except OSError as error:
        raise UnreadableTranscriptError(
            f"{path} cannot be read: {error.strerror}", hint="check its permissions"
        ) from error
    chosen: list[_Conversation] = [
        (session, None, turns)
        for session, turns in sessions.values()
        if not reference or reference == session.id or session.native_id.startswith(reference)
    ]
    if not chosen:
        raise NotFoundError(
            f"{path} contains no session {reference!r}"
            if reference
            else f"{path} contains no session",
            hint=f"it contains {', '.join(list(sessions)[:5])}" if sessions else None,
        )
    return chosen


# -- Due sessions ----------------------------------------------------------------------------------


ASKED_AGAIN = timedelta(hours=1)
"""Time before an unavailable model is called again."""

NOT_YET = datetime.fromtimestamp(0, UTC)
"""Time recorded as the last attempt for a finished session that still waits for a model."""


def is_over(home: Home, item: Unlearned, stored: StoredSession) -> bool:
    """Return True if a session is finished."""
    return is_quiet(home, stored) or (item.asked is not None and item.begin >= item.end)


def is_due(home: Home) -> bool:
    """Return True if a finished session still waits for the rules or the writer."""
    if not home.settings.flag("extraction.enabled"):
        return False
    now, writer = home.now(), name_for(home, Task.EXTRACTION)
    is_asking = has_writer(home.settings) and not (
        home.settings.flag("writer.paused") or is_pausing(home)
    )
    for item, stored in pending_sessions(home):
        is_waiting = is_asking and (item.asked is None or now - item.asked >= ASKED_AGAIN)
        is_relevant = item.begin < item.end or (
            is_waiting and is_agreed(home.settings, stored, writer)
        )
        if is_relevant and is_over(home, item, stored):
            return True
    return False


# -- Storing of extracted memories -----------------------------------------------------------------


BATCH_MEMORIES = 500

BULK_FROM = 100
"""Number of new memories above which no model is asked about duplicates."""

_MAX_SIMILAR = 12
_BULK_NOTE = f"{BULK_FROM} or more new memories at once: no model was asked about them"
_AGENT_ECHO_SHARE = 0.5
_QUOTE_CHARACTERS = 120
_OWNER_ECHO_SHARE = 0.9

_PERSONAL_KINDS = frozenset({Kind.PREFERENCE, Kind.RELATIONSHIP})
"""Kinds of memories that apply to all projects if they are stated outside a project."""

MAX_PENDING_TIME = timedelta(days=30)
"""Maximum time for which a session waits for an unavailable writer."""


def learn(
    home: Home,
    notify: OnProgress,
    *,
    only: int | None = None,
    is_over: bool = False,
    run: Run | None = None,
    older: bool = False,
) -> IngestReport:
    """Extract memories from the new turns of all sessions, and store them.

    ``only``: the row of the only session to read. ``is_over``: whether all sessions count as
    finished. ``older``: whether to read old sessions that no writer has read.
    """
    home = record_start(home)
    with home.writer_lock.if_free() as is_ours:
        extractor = ModelExtractor(home, is_elsewhere=not is_ours)
        learner = _Learner(home, extractor, run, all_over=is_over)
        try:
            pending = [item for item in home.sessions.to_extract() if only in (None, item.row)]
            _read(
                home,
                notify,
                learner,
                latest_first(pending) if has_writer(home.settings) else [pending],
            )
            if older:  # may include sessions that were just read
                unread = [
                    item
                    for item in home.sessions.not_shown()
                    if (stored := learner.stored_session(item))
                    and (item.unwritten is None or learner.is_rest(item, stored))
                ]
                _read(home, notify, learner, latest_first(unread))
        finally:
            extractor.close()
    return IngestReport(
        memories=tuple(learner.stored),
        duplicates=learner.duplicates,
        decided=dict(learner.decided),
        extraction=extractor.report(),
        candidates=learner.candidates.count,
        ended=learner.amendments.ended,
        doubted=learner.amendments.doubted,
        problems=tuple(Problem("dedup", f"{note}; rules decided") for note in learner.notes),
    )


def _read(
    home: Home, notify: OnProgress, learner: _Learner, blocks: Sequence[Sequence[Unlearned]]
) -> None:
    queue = [(item, block[at + 1 :]) for block in blocks for at, item in enumerate(block)]
    for done, (item, following) in enumerate(queue):
        if item.is_older and learner.extractor.is_at_rest:
            break

        def report(note: str, done: int = done) -> None:
            notify(Progress("learning", done, len(queue), note))

        learner.read_ahead([item, *following], report)
        was_asked = learner.session(item, report)
        if was_asked or len(learner.pending) >= BATCH_MEMORIES:
            learner.flush()
        if was_asked:
            # so that the next call shows the new memories as known
            embed_memories(home)
        report(learner.note(), done + 1)
    learner.flush()


def _as_finished(
    stored: StoredSession, turns: Sequence[StoredTurn], position: Unlearned
) -> FinishedSession:
    spoken = [item.turn for item in turns[: position.end]]
    visible = spoken if position.first else sort_by_time(spoken)
    return FinishedSession(stored.session, visible, position.first)


class _Learner:
    def __init__(
        self, home: Home, extractor: ModelExtractor, run: Run | None, *, all_over: bool = False
    ) -> None:
        self.home = home
        self.run = run
        self.extractor = extractor
        self.all_over = all_over
        self.candidates = WaitingCandidates(home)
        self.gate = Gate(home)
        self.pending: list[Memory] = []
        self.statements: defaultdict[str, list[Memory]] = defaultdict(list)
        self.echoes: set[str] = set()
        self.progress: list[tuple[Unlearned, int, int | None, datetime | None]] = []
        self.amendments = Amendments()
        self.removals: list[tuple[StoredSession, Sequence[Removal]]] = []
        self.stored: list[str] = []
        self.duplicates = 0
        self.sessions = 0
        self.decided: Counter[str] = Counter()
        self.notes: dict[str, None] = {}

    def read_ahead(self, pending: Sequence[Unlearned], notify: Callable[[str], None]) -> None:
        project, sessions = None, list[FinishedSession]()
        for at, unlearned in enumerate(pending):
            stored = self.stored_session(unlearned)
            if (
                stored is None
                or not self.is_asked_about(unlearned, stored)
                or self.extractor.is_read(stored.session)
            ):
                if not at:
                    return
            elif not at or stored.project == project:
                project = stored.project
                turns = self.home.sessions.turns_of(unlearned.row)
                sessions.append(_as_finished(stored, turns, as_positions(unlearned, turns)))
        self.extractor.read_ahead(project, sessions, notify)

    def stored_session(self, unlearned: Unlearned) -> StoredSession | None:
        try:
            return self.home.sessions.get(unlearned.row)
        except KeyError:
            return None

    def is_rest(self, unlearned: Unlearned, stored: StoredSession) -> bool:
        has_rest = unlearned.unwritten is not None and unlearned.begin >= unlearned.end
        return (
            has_rest
            and self.extractor.serves(stored, older=True)
            and not self.extractor.serves(stored)
        )

    def is_asked_about(self, unlearned: Unlearned, stored: StoredSession) -> bool:
        is_served = self.extractor.serves(stored, older=unlearned.is_older) and self.is_over(
            unlearned, stored
        )
        return is_served and (self.extractor.is_read(stored.session) or not self.extractor.rests)

    def session(self, unlearned: Unlearned, notify: Callable[[str], None]) -> bool:
        """Learn from a session's new turns, and return True if a model was called."""
        stored = self.stored_session(unlearned)
        if stored is None:
            return False
        if not unlearned.is_older and self.is_rest(unlearned, stored):
            return False
        is_for_writer = self.extractor.serves(stored, older=unlearned.is_older)
        is_asked = self.is_asked_about(unlearned, stored)
        is_over = self.is_over(unlearned, stored)
        if is_for_writer and self.extractor.is_elsewhere and is_over:
            self.extractor.leave()
            return False
        may_wait = not unlearned.is_older and (
            stored.ended is None or self.home.now() - stored.ended < MAX_PENDING_TIME
        )
        if (
            unlearned.begin >= unlearned.end
            and not is_asked
            and (unlearned.is_older or (is_for_writer and may_wait))
        ):
            return False
        turns = self.home.sessions.turns_of(unlearned.row)
        spoken, position = [row.turn for row in turns], as_positions(unlearned, turns)
        until = position.end if is_over else max(position.begin, last_of_owner(spoken) + 1)
        extraction = None
        if is_asked:
            finished = _as_finished(stored, turns, position)
            extraction = self.extractor.extract(finished, stored.project, notify)
        # If the model answered some parts, only the other parts are retried.
        is_unanswered = self.extractor.is_spent and (
            extraction is None
            or extraction.by_rules == extraction.parts
            or (extraction.is_uncompared and extraction.parts == 1)
        )
        is_left = is_for_writer and (not is_asked or is_unanswered)
        if extraction and not is_left:
            self.candidates.was_read(stored.session.id)
            written = [*extraction.memories, *(change.statement for change in extraction.overtaken)]
            plain = find_missed(extract(stored.session, spoken), written)
            self.note_new([*plain, *extraction.candidates], stored, turns, position.first, until)
            self.amendments.note(extraction.overtaken)
            self.amendments.doubt(extraction.doubted)
        elif position.begin < until:
            self.note_new(extract(stored.session, spoken), stored, turns, position.begin, until)
        if stored.project and (removals := find_removals(spoken[position.begin :])):
            self.removals.append((stored, removals))
        seq = turns[until].seq if until < len(turns) else unlearned.end
        shown_later = [row.seq for row in turns if extraction and row.turn.id in extraction.left]
        unread_from = unlearned.first if is_left else min(shown_later, default=None)
        # Otherwise the session counts as an older session that no writer has read.
        is_shown = is_asked and (may_wait or unread_from is None)
        is_kept = may_wait or (unlearned.is_older and unread_from)
        rested = NOT_YET if is_left and not is_asked and is_over else None
        self.progress.append(
            (
                unlearned,
                seq,
                unread_from if is_kept else None,
                self.home.now() if is_shown else rested,
            )
        )
        return extraction is not None

    def note_new(
        self,
        candidates: Sequence[Candidate],
        stored: StoredSession,
        turns: Sequence[StoredTurn],
        begin: int,
        until: int,
    ) -> None:
        spoken = [item.turn for item in turns]
        unfinished = {turn.id for turn in spoken[until:]}
        finished = [candidate for candidate in candidates if not unfinished & set(candidate.turns)]
        memories = [(candidate, self.to_memory(candidate, stored, turns)) for candidate in finished]
        fresh = {turn.id for turn in spoken[begin:]}
        self.statements[stored.session.id] += [
            memory for candidate, memory in memories if not candidate.held
        ]
        for candidate, memory in memories:
            if not fresh & set(memory.source.turns):
                continue
            if candidate.held:
                self.pending += self.candidates.hold(candidate, memory)
            else:
                self.pending += [*self.candidates.say(memory), memory]
        if begin:
            self.withdraw(stored, spoken, begin)

    def note(self) -> str:
        text = f"{len(self.stored) + len(self.pending)} memories"
        report = self.extractor.report()
        if report and report.calls:
            read = report.tokens.sent
            text += f", {report.calls} calls, {read:,} + {report.tokens.output:,} tokens"
        return text

    def is_over(self, unlearned: Unlearned, stored: StoredSession) -> bool:
        return self.all_over or is_over(self.home, unlearned, stored)

    def withdraw(self, stored: StoredSession, spoken: Sequence[Turn], begin: int) -> None:
        messages = utterances(spoken)
        places_by_turn = {
            spoken[message.index].id: at
            for at, message in enumerate(messages[:-1])
            if messages[at + 1].index >= begin
        }
        for memory_id in {item.id for item in self.home.memories.known_of(stored.session.id)}:
            memory = self.home.memories.find(memory_id)
            if memory is None or not memory.is_active or memory.confirmed:
                continue
            if memory.source.session != stored.session.id:
                continue
            places = [
                places_by_turn[turn] for turn in memory.source.turns if turn in places_by_turn
            ]
            if not places:
                continue
            at = places[-1]
            texts = [statement.text for statement in messages[at].statements]
            place = max(range(len(texts)), key=lambda at: shared(memory.content, texts[at]))
            limit = limit_score(messages, at, place)
            why = f"revoked in its session: {messages[at + 1].text[:_QUOTE_CHARACTERS]}"
            if not limit:
                self.amendments.end(memory_id, why)
            elif limit < SURE:
                self.amendments.doubts.append((memory, f"perhaps {why}", stored.session.id))

    def to_memory(
        self, candidate: Candidate, stored: StoredSession, turns: Sequence[StoredTurn]
    ) -> Memory:
        times = [
            item.turn.time for item in turns if item.turn.time and item.turn.id in candidate.turns
        ]
        time = to_millisecond(max(times, default=stored.ended or self.home.now()))
        memory = Memory(
            id=self.home.ids(),
            kind=candidate.kind,
            subject=candidate.subject,
            content=candidate.content,
            created=time,
            updated=time,
            importance=candidate.importance,
            expiry=candidate.expiry,
            project=stored.project,
            inbox=stored.project is None and candidate.kind not in _PERSONAL_KINDS,
            tags=candidate.tags,
            speaker=candidate.speaker,
            trust=candidate.trust,
            confidence=candidate.confidence,
            confidence_score=candidate.confidence_score,
            canonical_key=candidate.canonical_key,
            extra={  # reasons why the words might not be the owner's
                key: True
                for key, applies in ((NODDED, candidate.nodded), (BESIDE_PASTE, candidate.mixed))
                if applies
            },
            source=Source(stored.session.id, candidate.turns, stored.file),
        )
        last = max(
            (at for at, item in enumerate(turns) if item.turn.id in candidate.turns), default=-1
        )
        spoken = [item.turn for item in turns[: last + 1]]
        by_agent = any(
            turn.speaker is Speaker.AGENT and turn.id in candidate.turns for turn in spoken
        )
        if by_agent or any(turn.flags & Flag.INJECTED for turn in spoken):
            self.echoes.add(memory.id)
        return redact(self.home.redactor, memory)

    def is_told_by_nacre(self, memory: Memory) -> bool:
        threshold = _AGENT_ECHO_SHARE if memory.speaker is Speaker.AGENT else _OWNER_ECHO_SHARE
        anywhere = (memory, replace(memory, project=None)) if memory.project else (memory,)
        rows = {
            row
            for variant in anywhere
            for row in self.home.comparisons.alike(variant, limit=_MAX_SIMILAR)
        }
        texts = [similar.content for similar in self.home.memories.by_rows(sorted(rows)).values()]
        if memory.speaker is Speaker.AGENT and memory.project:
            texts += (
                handoff.content
                for handoff in self.home.handoffs.of_project(memory.project)
                if handoff.session != memory.source.session
            )
        return any(shared(memory.content, text) >= threshold for text in texts)

    def flush(self) -> None:
        home = self.home
        decided = self.decide()
        # After a crash, the next run recognises stored memories by their evidence.
        with part_of(home, self.run, "ingest") as change, change.transaction():
            self.gate.refresh()  # another process might have forgotten content
            self.pending = [memory for memory in self.pending if not self.gate.bars(memory)]
            touched: set[str] = set()
            before = len(self.stored)
            for memory in self.in_order():
                self.place(change, memory, touched, decided.of(memory))
                change.yield_locks(lambda: write_touched(change, touched))
            write_touched(change, touched)
            fresh = set(self.stored[before:])
            learned_together(home, [memory for memory in self.pending if memory.id in fresh])
            self.amendments.write(change)
            for stored, removals in self.removals:
                self.amendments.doubted += doubt_memories_of(
                    home, stored.project or "", stored.session.id, removals
                )
            self.candidates.write()
            for item in self.progress:
                home.sessions.mark_learned(*item)
                change.yield_locks()
            self.sessions += len(self.progress)
            change.explain(f"learned from {count(self.sessions, 'session')}")
        self.pending, self.progress, self.echoes, self.removals = [], [], set(), []
        self.statements.clear()

    def decide(self) -> decisions.Decisions:
        """Ask a model how to store the memories. The caller must not hold a lock."""
        if len(self.pending) >= BULK_FROM:
            if decisions.may_ask(self.home, Asking()):
                self.notes |= {_BULK_NOTE: None}
            return decisions.Decisions()
        fresh = (
            memory
            for memory in self.in_order()
            if not (self.gate.bars(memory) or self.is_known(memory))
        )
        decided = decisions.ask_model(self.home, fresh, Asking())
        self.decided.update(decisions.count_by_action(decided.by_memory.values()))
        self.notes |= {decided.note: None} if decided.note else {}
        return decided

    def in_order(self) -> list[Memory]:
        return sorted(self.pending, key=lambda memory: memory.created)

    def is_known(self, memory: Memory) -> bool:
        session = memory.source.session or ""
        current = [memory for memory in self.statements[session] if not self.gate.bars(memory)]
        return (memory.id in find_covered(current, self.home.memories.known_of(session))) or (
            memory.id in self.echoes and self.is_told_by_nacre(memory)
        )

    def place(
        self, change: Change, memory: Memory, touched: set[str], decision: Decision | None
    ) -> None:
        self.gate.refresh()  # another process might have forgotten content
        if self.gate.bars(memory):
            return
        if self.is_known(memory):
            self.duplicates += 1
            return
        outcome = place(
            change,
            memory,
            touched=touched,
            is_echo=memory.id in self.echoes and memory.speaker is Speaker.AGENT,
            decision=decision,
        )
        if outcome.action == "stored":
            self.stored.append(outcome.memory_id)
        else:
            self.duplicates += 1
