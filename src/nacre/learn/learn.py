"""Learning from sessions: calls of the language model, and storage of the extracted memories."""

from __future__ import annotations

import contextlib
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path

from nacre.base.frozen import frozen
from nacre.base.ids import to_millisecond
from nacre.base.text import count, shorten
from nacre.errors import (
    InvalidInputError,
    NacreError,
    NotFoundError,
    UnreadableTranscriptError,
)
from nacre.home.change import Change, Run, part_of
from nacre.home.home import Home
from nacre.home.location import find_session, redact
from nacre.home.parsing import batches, open_transcript
from nacre.home.spending import NONE, Permission, fold_notes, is_set, model_for, name_for, rests
from nacre.home.views import Extracted
from nacre.learn import requests as learn_requests
from nacre.learn.checks import Caller
from nacre.learn.explicit import is_refused
from nacre.learn.extract import (
    Amendments,
    WaitingCandidates,
    as_positions,
    each_of,
    extract,
    find_covered,
    find_missed,
    is_agreed,
    is_covered,
    is_quiet,
    is_worth_asking,
    last_of_owner,
    latest_first,
    record_start,
)
from nacre.learn.later import Gone, doubt_memories_of, find_gone
from nacre.learn.reading import sort_by_time
from nacre.learn.sentences import utterances
from nacre.learn.writer import (
    Extraction,
    ExtractionOptions,
    FinishedSession,
    count_fitting,
    extract_together,
    extract_with,
    find_related,
    size_of,
)
from nacre.memories import requests
from nacre.memories.decision import Asking
from nacre.memories.judge import Decision
from nacre.memories.placement import place, write_touched
from nacre.memories.store import learned_together
from nacre.memories.tombstones import Gate
from nacre.memories.vectors import embed_memories
from nacre.operations import operation
from nacre.protocols import LanguageModel
from nacre.readers.trust import shared
from nacre.settings import Value
from nacre.values.memory import BESIDE_PASTE, NODDED, Candidate, Kind, Memory, Source
from nacre.values.models import Health
from nacre.values.reports import ModelExtraction, OnProgress, Progress
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
"""Pause after unusable answers of a model. Each such failure costs several calls."""


class ModelExtractor:
    """Background extractor that asks the configured model about sessions.

    It stops if a call is refused, the connection fails or the budget is used up.
    ``is_elsewhere``: whether another process is already asking the model.
    """

    def __init__(self, home: Home, *, is_elsewhere: bool = False) -> None:
        self._home = home
        self._permission = Permission(home)
        self.is_elsewhere = is_elsewhere
        self._tally = _Tally()
        self._ahead: dict[str, Extraction] = {}
        self._alone: set[str] = set()

    def read_ahead(
        self,
        project: str | None,
        sessions: Sequence[FinishedSession],
        notify: Callable[[str], None],
    ) -> None:
        """Ask the model about several small sessions of a project at once.

        :meth:`extract` later returns the results.
        """
        home, model = self._home, self._model
        if model is None or self.is_spent:
            return
        eligible = [
            shown
            for shown in sessions
            if shown.session.id not in self._alone
            and is_worth_asking(shown.session, shown.turns, begin=shown.begin)
        ]
        together = eligible[
            : count_fitting([size_of(shown) for shown in eligible], model.capabilities)
        ]
        if len(together) < 2:
            return
        notify(f"{model.name}: {len(together)} sessions")
        options = ExtractionOptions(
            related=find_related(home, together, project, self._writer),
            timeout_seconds=home.settings.number("models.timeout_seconds"),
        )
        caller = Caller(model)
        with home.turn.aside():
            answers = extract_together(caller, together, options)
        self._alone |= set() if answers else {shown.session.id for shown in together}
        for shown, extraction in zip(together, answers or (), strict=False):
            self._tally.add(extraction)
            self._ahead[shown.session.id] = extraction
        self._tally.add_calls(caller)

    def is_read(self, session: Session) -> bool:
        """Return True if the model has already read a session together with others."""
        return session.id in self._ahead

    def extract(
        self,
        session: Session,
        project: str | None,
        turns: Sequence[Turn],
        *,
        begin: int,
        notify: Callable[[str], None],
    ) -> Extraction | None:
        """Ask a model about the turns from index ``begin``. Return ``None`` if no call is made."""
        if self.is_read(session):
            return self._ahead.pop(session.id)
        model = self._model
        if model is None or self.is_spent or begin >= len(turns):
            return None
        if not is_worth_asking(session, turns, begin=begin):
            self._tally.report = replace(self._tally.report, trivial=self._tally.report.trivial + 1)
            return None

        def report_part(done: int, total: int) -> None:
            notify(f"{model.name}: part {done} of {total}")

        notify(model.name)
        extraction = ask_about(
            self._home,
            model,
            session,
            turns,
            ExtractionOptions(
                begin=begin,
                related=find_related(
                    self._home, [FinishedSession(session, turns, begin)], project, self._writer
                ),
                notify=report_part,
                timeout_seconds=self._home.settings.number("models.timeout_seconds"),
            ),
        )
        self._tally.add(extraction)
        if extraction.is_useless:
            home = self._home
            problem = home.redactor.clean(
                extraction.problem or "its answers do not match the schema"
            )
            fold_notes(
                home
            )  # first, because answered calls among the notes would mark the model as healthy
            with home.transaction():
                until = home.now() + ASKED_AGAIN_AFTER
                home.spending.fail(
                    Health(extraction.model, until, shorten(problem, _PROBLEM_CHARACTERS))
                )
        return extraction

    def serves(self, stored: StoredSession, *, older: bool = False) -> bool:
        """Return True if the writer may read a finished session.

        If ``older`` is True, include sessions that are only read on request.
        """
        may_show = is_covered if older else is_agreed
        return is_set(self._home) and may_show(self._permission.settings, stored, self._writer)

    @property
    def rests(self) -> bool:
        """True while no calls to the writer are allowed."""
        return (
            self.is_elsewhere
            or self._is_left_alone
            or self._permission.obstacle(Task.EXTRACTION) is not None
        )

    @cached_property
    def _is_left_alone(self) -> bool:
        return is_left_alone(self._home)

    @property
    def is_spent(self) -> bool:
        """True if the model is unreachable or its budget is used up."""
        return self._tally.is_over or self._model is None

    @property
    def is_at_rest(self) -> bool:
        """True if no model can be called at present and no answer is waiting."""
        return not self._ahead and (self.rests or self.is_spent)

    def leave(self) -> None:
        """Count a session that another process has read."""
        self._tally.report = replace(self._tally.report, elsewhere=self._tally.report.elsewhere + 1)

    def report(self) -> ModelExtraction | None:
        """Return a report about the model calls so far, or ``None`` if no model is available."""
        model, report = self.__dict__.get("_model"), self._tally.report
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
            self._tally.fail(error.message, error.hint)
            return None


def is_left_alone(home: Home) -> bool:
    """Return True if the model gave unusable answers less than a day ago."""
    health = home.spending.health(name_for(home, Task.EXTRACTION))
    return health is not None and health.until > home.now()


def ask_about(
    home: Home,
    model: LanguageModel,
    session: Session,
    turns: Sequence[Turn],
    options: ExtractionOptions,
) -> Extraction:
    """Ask a model about a session, without holding a lock or transaction."""
    with home.turn.aside():
        return extract_with(model, session, turns, options)


@dataclass
class _Tally:
    report: ModelExtraction = ModelExtraction()
    is_over: bool = False

    def add(self, extraction: Extraction) -> None:
        before = self.report
        self.report = replace(
            before,
            sessions=before.sessions + (extraction.by_rules < extraction.parts),
            found=before.found + len(extraction.memories),
            held=before.held + len(extraction.candidates) - len(extraction.memories),
            repeated=before.repeated + extraction.repeated,
            calls=before.calls + extraction.calls,
            tokens=before.tokens + extraction.tokens,
            parts=before.parts + extraction.parts,
            by_rules=before.by_rules + extraction.by_rules,
            dropped=Counter(before.dropped) + Counter(extraction.dropped),
        )
        if extraction.by_rules or extraction.is_uncompared:
            self.fail(extraction.problem, extraction.hint)
        self.is_over = extraction.is_over

    def add_calls(self, caller: Caller) -> None:
        """Include the caller's calls and tokens in the report."""
        before = self.report
        self.report = replace(
            before, calls=before.calls + caller.calls, tokens=before.tokens + caller.tokens
        )
        self.is_over = self.is_over or caller.is_over

    def fail(self, problem: str | None, hint: str | None) -> None:
        self.report = replace(self.report, problem=problem, hint=hint)


# -- Previews of extraction (nothing is stored) ----------------------------------------------------


@frozen
class Proposal:
    """The candidates found in one session.

    ``asked``: result of the model calls, or ``None`` if no model was called.
    """

    session: Session
    candidates: tuple[Candidate, ...]
    asked: Extraction | None = None

    @property
    def memories(self) -> tuple[Candidate, ...]:
        """The candidates that need no confirmation by other sessions."""
        return tuple(candidate for candidate in self.candidates if not candidate.held)


@operation("extract-propose", takes_long=True)
def propose(
    home: Home, request: learn_requests.ProposalRequest, on_progress: OnProgress = lambda _: None
) -> list[Proposal]:
    """Return the memories that sessions would yield, but do not store the memories.

    Raises NotFoundError, ConflictError and UnreadableTranscriptError. Raises ModelRefusedError if
    the model cannot be opened.
    """
    talks = (
        _sessions_in_file(home, request.path, request.session)
        if request.path
        else _session_in_home(home, request.session or "")
    )
    model = _model(home, request.model)
    try:
        proposals = []
        for done, (session, project, turns) in enumerate(talks):
            on_progress(Progress("learning", done, len(talks), model.name if model else ""))
            proposals.append(_proposal(home, model, session, project, turns))
        return proposals
    finally:
        if model:
            model.close()


def _model(home: Home, name: str | None) -> LanguageModel | None:
    if name:
        values = {**home.settings.values, f"models.{Task.EXTRACTION}": Value(name, "--model")}
        home = replace(home, settings=replace(home.settings, values=values))
    return None if name == NONE else model_for(home, Task.EXTRACTION, background=False)


def _proposal(
    home: Home,
    model: LanguageModel | None,
    session: Session,
    project: str | None,
    turns: Sequence[Turn],
) -> Proposal:
    if model is None:
        return Proposal(session, tuple(extract(session, turns)))
    extraction = ask_about(
        home,
        model,
        session,
        turns,
        ExtractionOptions(
            related=find_related(home, [FinishedSession(session, turns)], project, model.name),
            timeout_seconds=home.settings.number("models.timeout_seconds"),
        ),
    )
    return Proposal(session, extraction.candidates, extraction)


_Conversation = tuple[Session, str | None, Sequence[Turn]]


def _sessions_in_file(home: Home, path: Path, reference: str | None) -> list[_Conversation]:
    """Return the sessions and turns of a transcript, redacted as in an ingest."""
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
                turns = (
                    sessions[batch.session.id][1] if batch.session.id in sessions else list[Turn]()
                )
                turns += batch.turns
                sessions[batch.session.id] = (batch.session, turns)
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
            hint=f"it holds {', '.join(list(sessions)[:5])}" if sessions else None,
        )
    return chosen


def _session_in_home(home: Home, reference: str) -> list[_Conversation]:
    stored = find_session(home, reference)
    turns = sort_by_time([item.turn for item in home.sessions.turns_of(stored.row)])
    return [(stored.session, stored.project, turns)]


# -- Operations -----------------------------------------------------------------------------------


@operation("extract", takes_long=True)
def preview(home: Home, request: learn_requests.ExtractRequest) -> Extracted:
    """Extract memories of a text or a session without storing them.

    Raises InvalidInputError, NotFoundError, ConflictError, UnreadableTranscriptError.
    """
    if bool(request.text.strip()) == bool(request.session):
        raise InvalidInputError("give a text or a session", hint="give only one of them")
    model = None if request.by_model else "none"
    if request.session:
        proposals = propose(
            home, learn_requests.ProposalRequest(session=request.session, model=model)
        )
    else:
        with tempfile.TemporaryDirectory(prefix="nacre-extract-") as folder:
            file = Path(folder) / "text.md"
            file.write_text(request.text, encoding="utf-8")
            proposals = propose(home, learn_requests.ProposalRequest(path=file, model=model))
    problem = next(
        (
            proposal.asked.problem
            for proposal in proposals
            if proposal.asked and proposal.asked.problem
        ),
        None,
    )
    return Extracted(
        tuple(candidate for proposal in proposals for candidate in proposal.candidates), problem
    )


# -- Due sessions ----------------------------------------------------------------------------------


ASKED_AGAIN = timedelta(hours=1)
"""Interval between attempts to ask an unavailable model."""

NOT_YET = datetime.fromtimestamp(0, UTC)
"""Stored instead of a time if a finished session must wait for a model."""


def is_over(home: Home, item: Unlearned, stored: StoredSession) -> bool:
    """Return True if a session is finished."""
    return is_quiet(home, stored) or (item.asked is not None and item.begin >= item.end)


def is_due(home: Home) -> bool:
    """Return True if the rules or the writer must still read a finished session."""
    if not home.settings.flag("extraction.enabled"):
        return False
    now, is_asking = home.now(), is_set(home) and not (rests(home.settings) or is_left_alone(home))
    writer = name_for(home, Task.EXTRACTION)
    for item in home.sessions.to_extract():
        is_waiting = is_asking and (item.asked is None or now - item.asked >= ASKED_AGAIN)
        if item.begin >= item.end and not is_waiting:
            continue
        with contextlib.suppress(KeyError):  # the session was forgotten after listing
            stored = home.sessions.get(item.row)
            is_relevant = item.begin < item.end or is_agreed(home.settings, stored, writer)
            if is_relevant and is_over(home, item, stored):
                return True
    return False


# -- Storing of extracted memories -----------------------------------------------------------------


BATCH_MEMORIES = 500

BULK_FROM = 100
"""With this many new memories or more, no model compares them with known memories."""

_MAX_SIMILAR = 12
_BULK_NOTE = f"{BULK_FROM} or more new memories at once: no model was asked about them"
_AGENT_ECHO_SHARE = 0.5
_QUOTE_CHARACTERS = 120
_OWNER_ECHO_SHARE = 0.9

_PERSONAL_KINDS = frozenset({Kind.PREFERENCE, Kind.RELATIONSHIP})
"""Kinds of memories that apply everywhere if stated outside a project. Other kinds always concern a project."""

WAITS = timedelta(days=30)
"""Maximum time for which a session stays pending while the writer is unavailable."""


@frozen
class Lessons:
    """The results of learning.

    ``memories``: ids of the new memories. ``duplicates``, ``candidates``, ``ended`` and
    ``doubted``: numbers of memories. ``decided``: number of memories for each decision of a
    language model (``ADD``, ``UPDATE``, ``SKIP``, ``SUPERSEDE``, ``AMEND``). ``notes``: reasons why
    the model decided nothing. ``by_model``: report about the model calls.
    """

    memories: tuple[str, ...]
    duplicates: int
    decided: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    by_model: ModelExtraction | None = None
    candidates: int = 0
    ended: int = 0
    doubted: int = 0


def learn(
    home: Home,
    notify: OnProgress,
    *,
    only: int | None = None,
    is_over: bool = False,
    run: Run | None = None,
    older: bool = False,
) -> Lessons:
    """Extract memories from new turns, and store them session by session.

    If ``only`` is given, read only the session with this row number. ``is_over``: whether this
    session is finished. ``older``: whether to include old sessions that no writer has read.
    ``run``: the operation to which the changes belong. A model is only called if the owner
    allows background calls and no other process is calling it.
    """
    if not is_set(home):
        return _learn(
            home, notify, only, _Learner(home, ModelExtractor(home), run, all_over=is_over)
        )
    home = record_start(home)
    with home.writer_lock.if_free() as is_ours:
        learner = _Learner(
            home, ModelExtractor(home, is_elsewhere=not is_ours), run, all_over=is_over
        )
        return _learn(home, notify, only, learner, older=older)


def _learn(
    home: Home, notify: OnProgress, only: int | None, learner: _Learner, *, older: bool = False
) -> Lessons:
    pending = [item for item in home.sessions.to_extract() if only in (None, item.row)]
    try:
        _read(home, notify, learner, latest_first(pending) if is_set(home) else [pending])
        if older:  # may include sessions that were just read
            listed = (
                (item, learner.stored_session(item)) for item in learner.home.sessions.not_shown()
            )
            _read(
                home,
                notify,
                learner,
                latest_first(
                    [
                        item
                        for item, stored in listed
                        if stored and (item.unwritten is None or learner.is_rest(item, stored))
                    ]
                ),
            )
    finally:
        learner.extractor.close()
    return Lessons(
        tuple(learner.stored),
        learner.duplicates,
        dict(learner.decided),
        tuple(learner.notes),
        learner.extractor.report(),
        learner.waiting.count,
        learner.amendments.ended,
        learner.amendments.doubted,
    )


def _read(
    home: Home, notify: OnProgress, learner: _Learner, in_turn: Sequence[Sequence[Unlearned]]
) -> None:
    """Learn from one session after another. Skip the older sessions if no more model calls are possible."""
    total = sum(map(len, in_turn))
    for done, (item, following) in enumerate(each_of(in_turn)):
        if item.is_older and learner.extractor.is_at_rest:
            break

        def report(note: str, done: int = done) -> None:
            notify(Progress("learning", done, total, note))

        learner.read_ahead([item, *following], report)
        was_asked = learner.session(item, report)
        if was_asked or len(learner.pending) >= BATCH_MEMORIES:
            learner.flush()
        if was_asked:
            # so that the next call shows the new memories as known
            embed_memories(home, begins=True)
        report(learner.note(), done + 1)
    learner.flush()


class _Learner:
    def __init__(
        self, home: Home, extractor: ModelExtractor, run: Run | None, *, all_over: bool = False
    ) -> None:
        self.home = home
        self.run = run
        self.extractor = extractor
        self.all_over = all_over
        self.waiting = WaitingCandidates(home)
        self.gate = Gate(home)
        self.pending: list[Memory] = []
        self.stated: defaultdict[str, list[Memory]] = defaultdict(list)
        self.echoes: set[str] = set()
        self.seen: list[tuple[Unlearned, int, int | None, datetime | None]] = []
        self.amendments = Amendments()
        self.gone: list[tuple[StoredSession, Sequence[Gone]]] = []
        self.stored: list[str] = []
        self.duplicates = 0
        self.sessions = 0
        self.decided: Counter[str] = Counter()
        self.notes: dict[str, None] = {}

    def read_ahead(self, pending: Sequence[Unlearned], notify: Callable[[str], None]) -> None:
        """Read the next session together with other small pending sessions of the same project."""
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
                place = as_positions(unlearned, turns)
                spoken = [row.turn for row in turns[: place.end]]
                sessions.append(
                    FinishedSession(stored.session, _as_shown(spoken, place.first), place.first)
                )
        self.extractor.read_ahead(project, sessions, notify)

    def stored_session(self, unlearned: Unlearned) -> StoredSession | None:
        """Return the stored session, or ``None`` if nacre has forgotten it."""
        try:
            return self.home.sessions.get(unlearned.row)
        except KeyError:
            return None

    def is_rest(self, unlearned: Unlearned, stored: StoredSession) -> bool:
        """Return True if the writer may read the rest of a session only at the owner's request."""
        has_rest = unlearned.unwritten is not None and unlearned.begin >= unlearned.end
        return (
            has_rest
            and self.extractor.serves(stored, older=True)
            and not self.extractor.serves(stored)
        )

    def is_asked_about(self, unlearned: Unlearned, stored: StoredSession) -> bool:
        """Return True if the writer should read a session now."""
        is_served = self.extractor.serves(stored, older=unlearned.is_older) and self.is_over(
            unlearned, stored
        )
        return is_served and (self.extractor.is_read(stored.session) or not self.extractor.rests)

    def session(self, unlearned: Unlearned, notify: Callable[[str], None]) -> bool:
        """Extract the new memories of a session. Return True if a model was called."""
        stored = self.stored_session(unlearned)
        if stored is None:
            return False
        if not unlearned.is_older and self.is_rest(unlearned, stored):
            return False
        is_for_writer = self.extractor.serves(stored, older=unlearned.is_older)
        is_asked = self.is_asked_about(unlearned, stored)
        if is_for_writer and self.extractor.is_elsewhere and self.is_over(unlearned, stored):
            self.extractor.leave()
            return False
        may_wait = not unlearned.is_older and (
            stored.ended is None or self.home.now() - stored.ended < WAITS
        )
        if (
            unlearned.begin >= unlearned.end
            and not is_asked
            and (unlearned.is_older or (is_for_writer and may_wait))
        ):
            return False
        turns = self.home.sessions.turns_of(unlearned.row)
        spoken, position = [row.turn for row in turns], as_positions(unlearned, turns)
        until = (
            position.end
            if self.is_over(unlearned, stored)
            else max(position.begin, last_of_owner(spoken) + 1)
        )
        extraction = (
            self.write(stored, spoken[:until], position.first, notify) if is_asked else None
        )
        is_left = is_for_writer and (not is_asked or self.is_unanswered(extraction))
        if extraction and not is_left:
            self.waiting.was_read(stored.session.id)
            written = [*extraction.memories, *(change.statement for change in extraction.overtaken)]
            plain = find_missed(extract(stored.session, spoken), written)
            self.note_new([*plain, *extraction.candidates], stored, turns, position.first, until)
            self.amendments.note(extraction.overtaken)
            self.amendments.doubt(extraction.doubted)
        elif position.begin < until:
            self.note_new(extract(stored.session, spoken), stored, turns, position.begin, until)
        if stored.project and (gone := find_gone(spoken[position.begin :])):
            self.gone.append((stored, gone))
        seq = turns[until].seq if until < len(turns) else unlearned.end
        shown_later = [row.seq for row in turns if extraction and row.turn.id in extraction.left]
        unread_from = unlearned.first if is_left else min(shown_later, default=None)
        # Otherwise the session counts as an older session that no writer has read.
        is_shown = is_asked and (may_wait or unread_from is None)
        is_kept = may_wait or (unlearned.is_older and unread_from)
        rested = NOT_YET if is_left and not is_asked and self.is_over(unlearned, stored) else None
        self.seen.append(
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
        """Add the candidates of the new turns, ``turns[begin:until]``.

        End memories that the owner revokes in these turns. Ignore candidates of later
        turns.
        """
        spoken = [item.turn for item in turns]
        unfinished = {turn.id for turn in spoken[until:]}
        finished = [candidate for candidate in candidates if not unfinished & set(candidate.turns)]
        memories = [(candidate, self.to_memory(candidate, stored, turns)) for candidate in finished]
        fresh = {turn.id for turn in spoken[begin:]}
        self.stated[stored.session.id] += [
            memory for candidate, memory in memories if not candidate.held
        ]
        for candidate, memory in memories:
            if fresh & set(memory.source.turns):
                self.take(candidate, memory)
        if begin:
            self.withdraw(stored, spoken, begin)

    def write(
        self,
        stored: StoredSession,
        turns: Sequence[Turn],
        begin: int,
        notify: Callable[[str], None],
    ) -> Extraction | None:
        """Ask the writer about a finished session. Return ``None`` if no call is made."""
        visible = _as_shown(turns, begin)
        return self.extractor.extract(
            stored.session, stored.project, visible, begin=begin, notify=notify
        )

    def is_unanswered(self, extraction: Extraction | None) -> bool:
        """Return True if the model was unavailable for a session, so that nacre retries later.

        If the model answered some parts, only the other parts are retried.
        """
        is_nothing = (
            extraction is None
            or extraction.by_rules == extraction.parts
            or (extraction.is_uncompared and extraction.parts == 1)
        )
        return self.extractor.is_spent and is_nothing

    def take(self, candidate: Candidate, memory: Memory) -> None:
        """Queue a memory for storage. A held candidate must first be found in other sessions."""
        if candidate.held:
            self.pending += self.waiting.hold(candidate, memory)
        else:
            self.pending += [*self.waiting.say(memory), memory]

    def note(self) -> str:
        """Return the progress as text: memories found, calls and tokens."""
        text = f"{len(self.stored) + len(self.pending)} memories"
        report = self.extractor.report()
        if report and report.calls:
            read = report.tokens.input + report.tokens.cached + report.tokens.written
            text += f", {report.calls} calls, {read:,} + {report.tokens.output:,} tokens"
        return text

    def is_over(self, unlearned: Unlearned, stored: StoredSession) -> bool:
        """Return True if the session's last turn will get no reply."""
        return self.all_over or is_over(self.home, unlearned, stored)

    def withdraw(self, stored: StoredSession, spoken: Sequence[Turn], begin: int) -> None:
        """Retire memories that the owner's next message revokes, unless a different session confirmed them."""
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
            if not memory.is_learned or memory.source.session != stored.session.id:
                continue
            places = [
                places_by_turn[turn] for turn in memory.source.turns if turn in places_by_turn
            ]
            if places and is_refused(messages, places[-1]):
                revocation = messages[places[-1] + 1].text[:_QUOTE_CHARACTERS]
                self.amendments.end(memory_id, f"taken back in its session: {revocation}")

    def to_memory(
        self, candidate: Candidate, stored: StoredSession, turns: Sequence[StoredTurn]
    ) -> Memory:
        times = [
            item.turn.time for item in turns if item.turn.time and item.turn.id in candidate.turns
        ]
        stated = to_millisecond(max(times, default=stored.ended or self.home.now()))
        memory = Memory(
            id=self.home.ids(),
            kind=candidate.kind,
            subject=candidate.subject,
            content=candidate.content,
            created=stated,
            updated=stated,
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
            extra=_doubts(candidate),
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
        """Return True if a memory only repeats text that nacre had given to the agent.

        The check is stricter for memories of the agent.
        """
        threshold = _AGENT_ECHO_SHARE if memory.speaker is Speaker.AGENT else _OWNER_ECHO_SHARE
        anywhere = (memory, replace(memory, project=None)) if memory.project else (memory,)
        rows = {
            row
            for variant in anywhere
            for row in self.home.comparisons.alike(variant, limit=_MAX_SIMILAR)
        }
        texts = [similar.content for similar in self.home.memories.by_rows(sorted(rows)).values()]
        if memory.speaker is Speaker.AGENT:
            texts += self.handed_over(memory)
        return any(shared(memory.content, text) >= threshold for text in texts)

    def handed_over(self, memory: Memory) -> list[str]:
        """Return recent handoffs from other sessions of the memory's project."""
        handoffs = self.home.handoffs.of_project(memory.project) if memory.project else []
        return [handoff.content for handoff in handoffs if handoff.session != memory.source.session]

    def flush(self) -> None:
        """Store the pending memories in order, and record which turns were processed.

        After a crash, the next attempt recognises stored memories by their evidence.
        """
        home = self.home
        decided = self.decide()
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
            for stored, gone in self.gone:
                self.amendments.doubted += doubt_memories_of(
                    home, stored.project or "", stored.session.id, gone
                )
            self.waiting.write()
            for item in self.seen:
                home.sessions.mark_learned(*item)
                change.yield_locks()
            change.explain(self.why())
        self.pending, self.seen, self.echoes, self.gone = [], [], set(), []
        self.stated.clear()

    def why(self) -> str:
        self.sessions += len(self.seen)
        return f"learned from {count(self.sessions, 'session')}"

    def decide(self) -> requests.Decisions:
        """Ask a language model what to do with the new memories. Call this function without a lock.

        If there are too many new memories, the model is not asked.
        """
        if len(self.pending) >= BULK_FROM:
            if requests.may_ask(self.home, Asking()):
                self.notes |= {_BULK_NOTE: None}
            return requests.Decisions()
        fresh = (
            memory
            for memory in self.in_order()
            if not (self.gate.bars(memory) or self.is_known(memory))
        )
        decided = requests.decisions(self.home, fresh, Asking())
        self.decided.update(requests.count_by_action(decided.by_memory.values()))
        self.notes |= {decided.note: None} if decided.note else {}
        return decided

    def in_order(self) -> list[Memory]:
        """Return the pending memories in conversation order."""
        return sorted(self.pending, key=lambda memory: memory.created)

    def is_known(self, memory: Memory) -> bool:
        """Return True if a memory is stored, or repeats text that nacre had given to the agent."""
        session = memory.source.session or ""
        current = [stated for stated in self.stated[session] if not self.gate.bars(stated)]
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


def _doubts(candidate: Candidate) -> dict[str, bool]:
    """Return front matter with the reasons why the words might not be the owner's."""
    return {
        key: True
        for key, holds in ((NODDED, candidate.nodded), (BESIDE_PASTE, candidate.mixed))
        if holds
    }


def _as_shown(turns: Sequence[Turn], begin: int) -> Sequence[Turn]:
    return turns if begin else sort_by_time(turns)
