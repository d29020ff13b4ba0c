"""Ask a model what a session teaches, with the memories that are stored about it beside it."""

from __future__ import annotations

import contextlib
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from functools import cached_property, partial
from pathlib import Path

from nacre.base.ids import to_millisecond
from nacre.base.text import count, shorten
from nacre.base.times import day_of
from nacre.errors import AnswerUnusable, InvalidInput, NacreError, NotFound, TranscriptUnreadable
from nacre.home.change import Change, Run, part_of
from nacre.home.home import Home
from nacre.home.location import find_session, redacted
from nacre.home.parsing import batches, opened
from nacre.home.spending import (
    NONE,
    Permission,
    fold_notes,
    is_set,
    model_for,
    name_for,
    rests,
    tracing,
)
from nacre.home.views import Extracted
from nacre.learn.checks import Caller
from nacre.learn.explicit import is_refused
from nacre.learn.extract import (
    Amendments,
    ExtractRequest,
    ProposalRequest,
    WaitingCandidates,
    accounted_for,
    begun,
    each_of,
    extract,
    is_agreed,
    is_covered,
    is_quiet,
    is_worth_asking,
    last_of_owner,
    latest_first,
    passed_over,
    placed,
)
from nacre.learn.prompts import Doubt, Held, Outdateds, doubts, for_later
from nacre.learn.reading import in_time
from nacre.learn.sentences import utterances
from nacre.learn.writer import (
    Extraction,
    Shown,
    Wanted,
    days_to_look,
    due,
    extract_together,
    extract_with,
    fitting,
    note,
    related,
    size_of,
    touched,
    touched_by,
)
from nacre.memories.decision import Asking, Decisions, count_by_action, decisions, may_ask
from nacre.memories.judge import Decision
from nacre.memories.placement import place, write_touched
from nacre.memories.store import learned_together
from nacre.memories.tombstones import Gate
from nacre.memories.vectors import embed_memories
from nacre.protocols import LanguageModel
from nacre.readers.trust import shared
from nacre.settings import Value
from nacre.values.memory import BESIDE_PASTE, NODDED, Candidate, Kind, Memory, Source
from nacre.values.models import Health, Step, TraceKind
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

_TOLD_CHARACTERS = 300

ASKED_AGAIN_AFTER = timedelta(hours=23)
"""So long a writer is left alone whose answers nobody can use: they cost several calls each time."""


class ModelExtractor:
    """Asks the model that is set for extraction, in the background, about one session after another.

    After a refusal, or when what it may cost is used up, it asks no more; nor when it was out of reach in one session.
    ``is_elsewhere`` says that another process asks it meanwhile: then this one does not.
    """

    def __init__(self, home: Home, *, is_elsewhere: bool = False) -> None:
        self._home = home
        self._permission = Permission(home)
        self.is_elsewhere = is_elsewhere
        self._tally = _Tally()
        self._ahead: dict[str, Extraction] = {}
        self._alone: set[str] = set()

    def read_ahead(
        self, project: str | None, sessions: Sequence[Shown], notify: Callable[[str], None]
    ) -> None:
        """Show the model several small sessions of a project in one call, if they are worth it: what it finds in each
        is what :meth:`extract` returns for it then.
        """
        home, model = self._home, self._model
        if model is None or self.is_spent:
            return
        worth = [
            one
            for one in sessions
            if one.session.id not in self._alone
            and is_worth_asking(one.session, one.turns, home.settings, begin=one.begin)
        ]
        together = worth[: fitting([size_of(one) for one in worth], model.capabilities)]
        if len(together) < 2:
            return
        notify(f"{model.name}: {len(together)} sessions")
        wanted = Wanted(
            related=related(home, together, project, self._writer),
            near=partial(touched, home, project, self._writer),
            timeout_seconds=home.settings.number("models.timeout_seconds"),
        )
        caller = Caller(model)
        answers = ask_about_all(home, caller, together, wanted)
        self._alone |= set() if answers else {one.session.id for one in together}
        for one, found in zip(together, answers or (), strict=False):
            self._tally.add(found)
            self._ahead[one.session.id] = found
        self._tally.add_calls(caller)

    def is_read(self, session: Session) -> bool:
        """Whether a session was read together with others."""
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
        """What the model finds in a session's turns from ``begin`` on; ``None`` where it is not to be asked."""
        if self.is_read(session):
            return self._ahead.pop(session.id)
        model = self._model
        if model is None or self.is_spent or begin >= len(turns):
            return None
        if not is_worth_asking(session, turns, self._home.settings, begin=begin):
            self._tally.report = replace(self._tally.report, trivial=self._tally.report.trivial + 1)
            return None

        def tell(done: int, total: int) -> None:
            notify(f"{model.name}: part {done} of {total}")

        notify(model.name)
        found = ask_about(
            self._home,
            model,
            session,
            turns,
            Wanted(
                begin=begin,
                related=related(self._home, [Shown(session, turns, begin)], project, self._writer),
                near=partial(touched, self._home, project, self._writer),
                notify=tell,
                timeout_seconds=self._home.settings.number("models.timeout_seconds"),
            ),
        )
        self._tally.add(found)
        if found.is_useless:
            self._tell_useless(found)
        return found

    def look_later(self, days: Collection[date]) -> int:
        """Hold known memories against what was said later, some for each of some days with sessions; returns how many
        are doubted since.
        """
        model, home, count = self._model, self._home, 0
        for day in days_to_look(home, days):
            if model is None or self.is_spent or self.rests:
                break
            caller = Caller(model)
            held = due(home, self._writer, caller.capabilities)
            found = ask_about_later(home, caller, held)
            more = (
                ask_about_later(home, caller, touched_by(home, held, found, self._writer))
                if found
                else ()
            )
            self._tally.add_calls(caller)
            if found is None and isinstance(caller.problem, AnswerUnusable):
                note(home, day, (), ())  # it would cost as much again: another day
            if not held or found is None:
                break
            count += note(home, day, held, [*found, *(more or ())])
        return count

    def serves(self, stored: StoredSession, *, older: bool = False) -> bool:
        """Whether a writer is to be shown a session, once it is over, by what the owner agreed to: of ``older`` ones,
        too.
        """
        may_show = is_covered if older else is_agreed
        return is_set(self._home) and may_show(self._permission.settings, stored, self._writer)

    @property
    def rests(self) -> bool:
        """Whether the writer is shown nothing for now."""
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
        """Whether the model is out of reach, or what it may cost is used up: what is left is asked another time."""
        return self._tally.is_over or self._model is None

    @property
    def is_at_rest(self) -> bool:
        """Whether it is asked nothing more for now, for whatever reason, and all that it answered was taken."""
        return not self._ahead and (self.rests or self.is_spent)

    def leave(self) -> None:
        """Count a session that another process has read."""
        self._tally.report = replace(self._tally.report, elsewhere=self._tally.report.elsewhere + 1)

    def report(self) -> ModelExtraction | None:
        """What the model was asked and found, ``None`` where none is to be asked."""
        model, found = self.__dict__.get("_model"), self._tally.report
        is_told = model or found.problem or found.elsewhere
        return replace(found, model=model.name if model else "") if is_told else None

    def close(self) -> None:
        """Let go of the model."""
        model = self.__dict__.get("_model")
        if model:
            model.close()

    def _tell_useless(self, found: Extraction) -> None:
        """Have it told wherever a writer's state is, and leave it alone for a day."""
        home = self._home
        told = home.redactor.clean(found.problem or "it does not answer in the shape asked for")
        fold_notes(home)  # its calls were answered, and say that it is well
        with home.database.transaction():
            until = home.now() + ASKED_AGAIN_AFTER
            home.spending.fail(Health(found.model, until, shorten(told, _TOLD_CHARACTERS)))

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
    """Whether its answers were of no use, less than a day ago."""
    health = home.spending.health(name_for(home, Task.EXTRACTION))
    return health is not None and health.until > home.now()


def ask_about(
    home: Home, model: LanguageModel, session: Session, turns: Sequence[Turn], wanted: Wanted
) -> Extraction:
    """Ask a model about a session, and leave a trace of it. No lock is held meanwhile, no transaction open."""
    with tracing(home, TraceKind.EXTRACTION, session.id) as run:
        with home.turn.aside():  # it asks from threads of its own
            found = extract_with(model, session, turns, wanted)
        run.add(_step(found, session.id))
        run.outcome = count(len(found.memories), "memory", "memories")
        return found


def ask_about_all(
    home: Home, caller: Caller, sessions: Sequence[Shown], wanted: Wanted
) -> Sequence[Extraction] | None:
    """Ask a model about several sessions in one call, and leave a trace of it."""
    with tracing(
        home, TraceKind.EXTRACTION, f"{sessions[0].session.id} and {len(sessions) - 1} more"
    ) as run:
        with home.turn.aside():
            found = extract_together(caller, sessions, wanted)
        for shown, one in zip(sessions, found or (), strict=False):
            run.add(_step(one, shown.session.id))
        run.outcome = (
            f"{sum(len(one.memories) for one in found)} memories" if found else "no answer"
        )
        return found


def ask_about_later(home: Home, caller: Caller, held: Sequence[Held]) -> Sequence[Doubt] | None:
    """Ask which memories no longer hold by what was said later, and leave a trace of it; ``None`` without an answer."""
    asked = [one for one in held if one.sayings]
    if not asked:
        return ()
    seconds = home.settings.number("models.timeout_seconds")
    with tracing(
        home, TraceKind.EXTRACTION, f"{len(asked)} memories beside what was said later"
    ) as run:
        with home.turn.aside():
            answer = caller.ask(for_later(asked, caller.capabilities, seconds), Outdateds)
        found, dropped = (None, {}) if answer is None else doubts(asked, answer.memories)
        run.outcome = (
            "no answer"
            if found is None
            else f"{len(found)} may be out of date{_not_taken(dropped)}"
        )
        said = dict.fromkeys(saying.session for one in asked for saying in one.sayings)
        run.add(
            Step(
                "was shown excerpts",
                f"of {count(len(said), 'session')}",
                run.outcome,
                refs=tuple(said),
            )
        )
        return found


def _not_taken(dropped: Mapping[str, int]) -> str:
    """What is told of what a model proposed in vain, by why."""
    told = ", ".join(f"{reason} {count}" for reason, count in sorted(dropped.items()))
    return f"; not taken: {told}" if told else ""


def _step(found: Extraction, session: str) -> Step:
    told = f"{len(found.memories)} taken{_not_taken(found.dropped)}"
    held = ", ".join(dict.fromkeys(one.detail for one in found.candidates if one.held))
    told += f"; held back: {held}" if held else ""
    told += (
        f"; {found.by_rules} of {found.parts} parts by rules: {found.problem}"
        if found.by_rules
        else ""
    )
    return Step(
        "looks at the answers",
        f"{found.proposed} memories proposed of {found.parts} parts",
        told,
        refs=(session, *dict.fromkeys(turn for one in found.candidates for turn in one.turns)),
        more={**found.dropped, "by_rules": found.by_rules},
    )


@dataclass
class _Tally:
    report: ModelExtraction = ModelExtraction()
    is_over: bool = False

    def add(self, found: Extraction) -> None:
        so_far = self.report
        self.report = replace(
            so_far,
            sessions=so_far.sessions + (found.by_rules < found.parts),
            found=so_far.found + len(found.memories),
            held=so_far.held + len(found.candidates) - len(found.memories),
            repeated=so_far.repeated + found.repeated,
            calls=so_far.calls + found.calls,
            tokens=so_far.tokens + found.tokens,
            parts=so_far.parts + found.parts,
            by_rules=so_far.by_rules + found.by_rules,
            dropped=Counter(so_far.dropped) + Counter(found.dropped),
        )
        if found.by_rules or found.is_uncompared:
            self.fail(found.problem, found.hint)
        self.is_over = found.is_over

    def add_calls(self, caller: Caller) -> None:
        """Count calls that were about no session, or about several."""
        so_far = self.report
        self.report = replace(
            so_far, calls=so_far.calls + caller.calls, tokens=so_far.tokens + caller.tokens
        )
        self.is_over = self.is_over or caller.is_over

    def fail(self, problem: str | None, hint: str | None) -> None:
        self.report = replace(self.report, problem=problem, hint=hint)


# ----------------------------------------------------------------------------
# What extraction would make of transcripts: shown, and not stored.


@dataclass(frozen=True, slots=True)
class Proposal:
    """What extraction makes of one session; ``asked`` tells how, where a language model did it."""

    session: Session
    candidates: tuple[Candidate, ...]
    asked: Extraction | None = None

    @property
    def memories(self) -> tuple[Candidate, ...]:
        """Those that would be memories at once; the others would wait."""
        return tuple(one for one in self.candidates if not one.held)


def propose(
    home: Home, wanted: ProposalRequest, notify: OnProgress = lambda _: None
) -> list[Proposal]:
    """Extract, and store nothing but the trace of what a model was asked.

    Raises NotFound, Conflict, TranscriptUnreadable; ModelRefused for a model that cannot be opened.
    """
    talks = (
        _of_file(home, wanted.path, wanted.session)
        if wanted.path
        else _of_home(home, wanted.session or "")
    )
    model = _model(home, wanted.model)
    try:
        found = []
        for done, (session, project, turns) in enumerate(talks):
            notify(Progress("learning", done, len(talks), model.name if model else ""))
            found.append(_proposed(home, wanted, model, session, project, turns))
        return found
    finally:
        if model:
            model.close()


def _model(home: Home, name: str | None) -> LanguageModel | None:
    if name:
        values = {**home.settings.values, f"models.{Task.EXTRACTION}": Value(name, "--model")}
        home = replace(home, settings=replace(home.settings, values=values))
    return None if name == NONE else model_for(home, Task.EXTRACTION, background=False)


def _proposed(
    home: Home,
    wanted: ProposalRequest,
    model: LanguageModel | None,
    session: Session,
    project: str | None,
    turns: Sequence[Turn],
) -> Proposal:
    if model is None:
        shown = [turn for turn in turns if not wanted.owner_only or turn.speaker is Speaker.OWNER]
        return Proposal(session, tuple(extract(session, shown)))
    asked = ask_about(
        home,
        model,
        session,
        turns,
        Wanted(
            way=wanted.way,
            owner_only=wanted.owner_only,
            related=related(home, [Shown(session, turns)], project, model.name)
            if wanted.related
            else (),
            near=partial(touched, home, project, model.name),
            timeout_seconds=home.settings.number("models.timeout_seconds"),
        ),
    )
    return Proposal(session, asked.candidates, asked)


_Talk = tuple[Session, str | None, Sequence[Turn]]


def _of_file(home: Home, path: Path, reference: str | None) -> list[_Talk]:
    """The sessions of a transcript with their turns, redacted, as ingest would read them."""
    found: dict[str, tuple[Session, list[Turn]]] = {}
    try:
        with opened(path, identities=tuple(home.settings.texts("owner.identities"))) as (
            adapter,
            source,
        ):
            if adapter is None:
                raise TranscriptUnreadable(
                    f"{path} is not a transcript nacre knows",
                    hint="docs/agents.md lists what can be read",
                )
            for batch in batches(path, adapter, source, home.redactor):
                turns = found[batch.session.id][1] if batch.session.id in found else list[Turn]()
                turns += batch.turns
                found[batch.session.id] = (batch.session, turns)
    except OSError as error:
        raise TranscriptUnreadable(
            f"{path} cannot be read: {error.strerror}", hint="check its permissions"
        ) from error
    chosen: list[_Talk] = [
        (session, None, turns) for session, turns in found.values() if _is_meant(session, reference)
    ]
    if not chosen:
        raise NotFound(
            f"{path} holds no session {reference!r}" if reference else f"{path} holds no session",
            hint=f"it holds {', '.join(list(found)[:5])}" if found else None,
        )
    return chosen


def _is_meant(session: Session, reference: str | None) -> bool:
    return not reference or reference == session.id or session.native_id.startswith(reference)


def _of_home(home: Home, reference: str) -> list[_Talk]:
    stored = find_session(home, reference)
    turns = in_time([item.turn for item in home.sessions.turns_of(stored.row)])
    return [(stored.session, stored.project, turns)]


# ----------------------------------------------------------------------------
# What is answered to requests for extraction; :mod:`nacre.serve.catalogue` lists them.


def preview(home: Home, request: ExtractRequest) -> Extracted:
    """What extraction makes of a text or a session; nothing is stored.

    Raises InvalidInput, NotFound, Conflict, TranscriptUnreadable.
    """
    if bool(request.text.strip()) == bool(request.session):
        raise InvalidInput("give a text or a session", hint="one of them, not both")
    model = None if request.by_model else "none"
    if request.session:
        found = propose(home, ProposalRequest(session=request.session, model=model))
    else:
        with tempfile.TemporaryDirectory(prefix="nacre-extract-") as folder:
            file = Path(folder) / "text.md"
            file.write_text(request.text, encoding="utf-8")
            found = propose(home, ProposalRequest(path=file, model=model))
    problem = next((one.asked.problem for one in found if one.asked and one.asked.problem), None)
    return Extracted(tuple(candidate for one in found for candidate in one.candidates), problem)


# ----------------------------------------------------------------------------
# When a session is over, and when a writer is asked about it again.


ASKED_AGAIN = timedelta(hours=1)
"""So long after it could not be asked a writer is asked again, by itself."""

NOT_YET = datetime.fromtimestamp(0, UTC)
"""When a writer was asked about a session that is over, and of which it rested: it is asked as soon as it may."""


def is_over(home: Home, one: Unlearned, stored: StoredSession) -> bool:
    """Whether nobody will answer what was said last in a session: it is quiet, or was over when its end was read."""
    return is_quiet(home, stored) or (one.asked is not None and one.begin >= one.end)


def is_due(home: Home) -> bool:
    """Whether a session is over by now that extraction has not seen to its end, or that a writer may be shown."""
    if not home.settings.flag("extraction.enabled"):
        return False
    now, is_asking = home.now(), is_set(home) and not (rests(home.settings) or is_left_alone(home))
    writer = name_for(home, Task.EXTRACTION)
    for one in home.sessions.to_extract():
        is_left = is_asking and (one.asked is None or now - one.asked >= ASKED_AGAIN)
        if one.begin >= one.end and not is_left:
            continue
        with contextlib.suppress(KeyError):  # forgotten since it was listed
            stored = home.sessions.get(one.row)
            is_its = one.begin < one.end or is_agreed(home.settings, stored, writer)
            if is_its and is_over(home, one, stored):
                return True
    return False


# ----------------------------------------------------------------------------
# Sessions → memories: extraction over what is new, without saying twice what is known.


BATCH_MEMORIES = 500

BULK_FROM = 100
"""Of so many new memories and more at once, no model is asked what they are to those that are known."""

_ALIKE = 12
_IN_BULK = f"{BULK_FROM} new memories and more at once: no model was asked about them"
_MOSTLY = 0.5
_QUOTED = 120
_NEARLY_ALL = 0.9

_OF_THE_OWNER = frozenset({Kind.PREFERENCE, Kind.RELATIONSHIP})
"""The kinds that hold everywhere when they were said in no project: how the owner works, and with whom. Any other
statement is about something that has a project, though nobody knows which."""

WAITS = timedelta(days=30)
"""So long a session waits for a writer that cannot be asked."""


@dataclass(frozen=True, slots=True)
class Lessons:
    """The ids of new memories, how many of them were known already, how many ``candidates`` wait since, and how many
    known ones were ``changed`` or ``ended`` by what sessions show, or are ``doubted`` since.

    ``decided`` counts what a language model decided (``ADD``, ``UPDATE``, ``SKIP``, ``SUPERSEDE``, ``AMEND``);
    ``notes`` say why it did not decide on others. ``by_model`` is what one did for extraction.
    """

    memories: tuple[str, ...]
    duplicates: int
    decided: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    by_model: ModelExtraction | None = None
    candidates: int = 0
    changed: int = 0
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
    """Extract memories from every session with turns that extraction has not seen, or from ``only`` the one of a row.

    ``is_over`` says that nobody will answer what was said last in it. A language model does it where one is set and may
    work in the background; what is for it is left alone while another process has it read. What it found in a session
    is stored before the next one is asked about. ``older`` sessions that no writer has read follow, as far as it may
    take more. What is written belongs to the ``run``, or is a change of its own.
    """
    if not is_set(home):
        return _learn(
            home, notify, only, _Learner(home, ModelExtractor(home), run, all_over=is_over)
        )
    home = begun(home)
    with home.writer_lock.if_free() as is_ours:
        learner = _Learner(
            home, ModelExtractor(home, is_elsewhere=not is_ours), run, all_over=is_over
        )
        return _learn(home, notify, only, learner, older=older)


def _learn(
    home: Home, notify: OnProgress, only: int | None, learner: _Learner, *, older: bool = False
) -> Lessons:
    waiting = [one for one in home.sessions.to_extract() if only in (None, one.row)]
    try:
        _read(home, notify, learner, latest_first(waiting) if is_set(home) else [waiting])
        if older:  # those that were read just now, too
            _read(home, notify, learner, latest_first(learner.before_writer()))
        doubted = learner.extractor.look_later(learner.days)
    finally:
        learner.extractor.close()
    return Lessons(
        tuple(learner.stored),
        learner.duplicates,
        dict(learner.decided),
        tuple(learner.notes),
        learner.extractor.report(),
        learner.waiting.count,
        learner.amendments.changed,
        learner.amendments.ended,
        learner.amendments.doubted + doubted,
    )


def _read(
    home: Home, notify: OnProgress, learner: _Learner, in_turn: Sequence[Sequence[Unlearned]]
) -> None:
    """Learn from some sessions, one after another; of older ones, from as many as the writer may take."""
    total = sum(map(len, in_turn))
    for done, (one, next_ones) in enumerate(each_of(in_turn)):
        if one.is_older and learner.extractor.is_at_rest:
            break

        def tell(note: str, done: int = done) -> None:
            notify(Progress("learning", done, total, note))

        learner.read_ahead([one, *next_ones], tell)
        was_asked = learner.session(one, tell)
        if was_asked or len(learner.pending) >= BATCH_MEMORIES:
            learner.flush()
        if was_asked:
            embed_memories(home, begins=True)  # the next session is shown them as known
        tell(learner.note(), done + 1)
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
        self.days: set[date] = set()
        self.stored: list[str] = []
        self.duplicates = 0
        self.sessions = 0
        self.decided: Counter[str] = Counter()
        self.notes: dict[str, None] = {}

    def read_ahead(self, waiting: Sequence[Unlearned], tell: Callable[[str], None]) -> None:
        """Have the writer read the next session together with others of its project that wait, where all are small."""
        project, sessions = None, list[Shown]()
        for at, one in enumerate(waiting):
            stored = self.stored_session(one)
            if (
                stored is None
                or not self.is_asked_about(one, stored)
                or self.extractor.is_read(stored.session)
            ):
                if not at:
                    return
            elif not at or stored.project == project:
                project = stored.project
                turns = self.home.sessions.turns_of(one.row)
                place = placed(one, turns)
                said = [item.turn for item in turns[: place.end]]
                sessions.append(Shown(stored.session, _to_be_shown(said, place.first), place.first))
        self.extractor.read_ahead(project, sessions, tell)

    def stored_session(self, one: Unlearned) -> StoredSession | None:
        """A session that waits; ``None`` where it was forgotten since it was listed."""
        try:
            return self.home.sessions.get(one.row)
        except KeyError:
            return None

    def before_writer(self) -> list[Unlearned]:
        """Sessions that no writer was shown to their end, and that none is shown by itself."""
        listed = ((one, self.stored_session(one)) for one in self.home.sessions.not_shown())
        return [
            one
            for one, stored in listed
            if stored and (one.unwritten is None or self.is_rest(one, stored))
        ]

    def is_rest(self, one: Unlearned, stored: StoredSession) -> bool:
        """Whether what is left of a session is shown only where the owner asks for older ones."""
        is_left = one.unwritten is not None and one.begin >= one.end
        return (
            is_left
            and self.extractor.serves(stored, older=True)
            and not self.extractor.serves(stored)
        )

    def is_asked_about(self, one: Unlearned, stored: StoredSession) -> bool:
        """Whether the writer is to be shown a session now."""
        is_its = self.extractor.serves(stored, older=one.is_older) and self.is_over(one, stored)
        return is_its and (self.extractor.is_read(stored.session) or not self.extractor.rests)

    def session(self, one: Unlearned, tell: Callable[[str], None]) -> bool:
        """Find what is new in a session; returns whether a model was asked."""
        stored = self.stored_session(one)
        if stored is None:
            return False
        if not one.is_older and self.is_rest(one, stored):
            return False
        is_for_writer = self.extractor.serves(stored, older=one.is_older)
        is_asked = self.is_asked_about(one, stored)
        if is_for_writer and self.extractor.is_elsewhere and self.is_over(one, stored):
            self.extractor.leave()
            return False
        waits = not one.is_older and (
            stored.ended is None or self.home.now() - stored.ended < WAITS
        )
        if one.begin >= one.end and not is_asked and (one.is_older or (is_for_writer and waits)):
            return False
        turns = self.home.sessions.turns_of(one.row)
        said, at = [item.turn for item in turns], placed(one, turns)
        until = at.end if self.is_over(one, stored) else max(at.begin, last_of_owner(said) + 1)
        found = self.write(stored, said[:until], at.first, tell) if is_asked else None
        is_left = is_for_writer and (not is_asked or self.is_unanswered(found))
        self.days |= (
            {day_of(stored.ended)} if found and stored.ended and not one.is_older else set()
        )
        if found and not is_left:
            self.waiting.was_read(stored.session.id)
            written = [*found.memories, *(one.statement for one in found.overtaken)]
            plain = passed_over(extract(stored.session, said), written)
            self.note_new([*plain, *found.candidates], stored, turns, at.first, until)
            self.amendments.note(found.overtaken, found.model)
            self.amendments.doubt(found.doubted)
        elif at.begin < until:
            self.note_new(extract(stored.session, said), stored, turns, at.begin, until)
        seq = turns[until].seq if until < len(turns) else one.end
        shown_later = [item.seq for item in turns if found and item.turn.id in found.left]
        left = one.first if is_left else min(shown_later, default=None)
        is_shown = is_asked and (
            waits or left is None
        )  # else it is one of the older ones that no writer has read
        is_kept = waits or (one.is_older and left)
        rested = NOT_YET if is_left and not is_asked and self.is_over(one, stored) else None
        self.seen.append(
            (one, seq, left if is_kept else None, self.home.now() if is_shown else rested)
        )
        return found is not None

    def note_new(
        self,
        candidates: Sequence[Candidate],
        stored: StoredSession,
        turns: Sequence[StoredTurn],
        begin: int,
        until: int,
    ) -> None:
        """Take what turns from ``begin`` on bear out, and none of those from ``until`` on do, and note what they take
        back.
        """
        said = [item.turn for item in turns]
        waiting = {turn.id for turn in said[until:]}
        settled = [one for one in candidates if not waiting & set(one.turns)]
        made = [(one, self.to_memory(one, stored, turns)) for one in settled]
        fresh = {turn.id for turn in said[begin:]}
        self.stated[stored.session.id] += [memory for one, memory in made if not one.held]
        for one, memory in made:
            if fresh & set(memory.source.turns):
                self.take(one, memory)
        if begin:
            self.withdraw(stored, said, begin)

    def write(
        self, stored: StoredSession, turns: Sequence[Turn], begin: int, tell: Callable[[str], None]
    ) -> Extraction | None:
        """Have the writer read a session that is over; ``None`` where it is not asked."""
        shown = _to_be_shown(turns, begin)
        return self.extractor.extract(
            stored.session, stored.project, shown, begin=begin, notify=tell
        )

    def is_unanswered(self, found: Extraction | None) -> bool:
        """Whether a session is left for another day: its writer is out of reach, or has used up what it may. A session
        of several parts is not: what was paid for is taken, and the other parts are left.
        """
        is_nothing = (
            found is None
            or found.by_rules == found.parts
            or (found.is_uncompared and found.parts == 1)
        )
        return self.extractor.is_spent and is_nothing

    def take(self, candidate: Candidate, memory: Memory) -> None:
        """Have a memory placed, or a candidate wait; what waited and is said again is placed, too."""
        if candidate.held:
            self.pending += self.waiting.hold(candidate, memory)
        else:
            self.pending += [*self.waiting.say(memory), memory]

    def note(self) -> str:
        """What was found so far, and what a model has read and written for it."""
        told = f"{len(self.stored) + len(self.pending)} memories"
        report = self.extractor.report()
        if report and report.calls:
            read = report.tokens.input + report.tokens.cached + report.tokens.written
            told += f", {report.calls} calls, {read:,} + {report.tokens.output:,} tokens"
        return told

    def is_over(self, one: Unlearned, stored: StoredSession) -> bool:
        """Whether nobody will answer what was said last in a session."""
        return self.all_over or is_over(self.home, one, stored)

    def withdraw(self, stored: StoredSession, said: Sequence[Turn], begin: int) -> None:
        """Note memories of a session that the message after them takes back; what another session bears out stays."""
        spoken = utterances(said)
        answered = {
            said[one.index].id: at
            for at, one in enumerate(spoken[:-1])
            if spoken[at + 1].index >= begin
        }
        for memory_id in {known.id for known in self.home.memories.known_of(stored.session.id)}:
            memory = self.home.memories.find(memory_id)
            if memory is None or not memory.is_active or memory.confirmed:
                continue
            if not memory.is_learned or memory.source.session != stored.session.id:
                continue
            places = [answered[turn] for turn in memory.source.turns if turn in answered]
            if places and is_refused(spoken, places[-1]):
                taking = spoken[places[-1] + 1].text[:_QUOTED]
                self.amendments.end(memory_id, f"taken back in its session: {taking}")

    def to_memory(
        self, candidate: Candidate, stored: StoredSession, turns: Sequence[StoredTurn]
    ) -> Memory:
        times = [
            item.turn.time for item in turns if item.turn.time and item.turn.id in candidate.turns
        ]
        said = to_millisecond(max(times, default=stored.ended or self.home.now()))
        memory = Memory(
            id=self.home.ids(),
            kind=candidate.kind,
            subject=candidate.subject,
            content=candidate.content,
            created=said,
            updated=said,
            importance=candidate.importance,
            expiry=candidate.expiry,
            project=stored.project,
            inbox=stored.project is None and candidate.kind not in _OF_THE_OWNER,
            tags=candidate.tags,
            speaker=candidate.speaker,
            trust=candidate.trust,
            confidence=candidate.confidence,
            confidence_score=candidate.confidence_score,
            canonical_key=candidate.canonical_key,
            extra=_doubts(candidate),
            source=Source(stored.session.id, candidate.turns, stored.file),
        )
        if _is_echo(candidate, turns):
            self.echoes.add(memory.id)
        return redacted(self.home.redactor, memory)

    def is_known_evidence(self, memory: Memory) -> bool:
        """Whether this statement of its turns was learned already, also when the memory was edited or retired since."""
        session = memory.source.session or ""
        stated = [one for one in self.stated[session] if not self.gate.bars(one)]
        return memory.id in accounted_for(stated, self.home.memories.known_of(session))

    def is_told_by_nacre(self, memory: Memory) -> bool:
        """Whether an agent's words are mostly those of a memory, or the owner's nearly all, wherever that belongs."""
        enough = _MOSTLY if memory.speaker is Speaker.AGENT else _NEARLY_ALL
        anywhere = (memory, replace(memory, project=None)) if memory.project else (memory,)
        rows = {row for one in anywhere for row in self.home.comparisons.alike(one, limit=_ALIKE)}
        known = [one.content for one in self.home.memories.by_rows(sorted(rows)).values()]
        if memory.speaker is Speaker.AGENT:
            known += self.handed_over(memory)
        return any(shared(memory.content, other) >= enough for other in known)

    def handed_over(self, memory: Memory) -> list[str]:
        """What other sessions handed over in the project lately: an agent repeats it, and says nothing new by that."""
        found = self.home.handoffs.of_project(memory.project) if memory.project else []
        return [one.content for one in found if one.session != memory.source.session]

    def flush(self) -> None:
        """Place what was found, in the order in which it was said; how far extraction got comes last.

        What was placed before a crash is known by its evidence when its session is read again.
        """
        home = self.home
        decided = self.decide()
        with part_of(home, self.run, "ingest") as change, change.transaction():
            self.gate.refresh()  # what was forgotten since it was read is not learned
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
            self.waiting.write()
            for one in self.seen:
                home.sessions.mark_learned(*one)
                change.yield_locks()
            change.explain(self.why())
        self.pending, self.seen, self.echoes = [], [], set()
        self.stated.clear()

    def why(self) -> str:
        """Where what was learned so far comes from."""
        self.sessions += len(self.seen)
        return f"learned from {count(self.sessions, 'session')}"

    def decide(self) -> Decisions:
        """What a language model decides about what is about to be placed: asked before any lock is taken.

        Of many at once it is asked about none (seed facts 1.3).
        """
        if len(self.pending) >= BULK_FROM:
            if may_ask(self.home, Asking()):
                self.notes |= {_IN_BULK: None}
            return Decisions()
        fresh = (
            memory
            for memory in self.in_order()
            if not (self.gate.bars(memory) or self.is_known(memory))
        )
        decided = decisions(self.home, fresh, Asking())
        self.decided.update(count_by_action(decided.made.values()))
        self.notes |= {decided.note: None} if decided.note else {}
        return decided

    def in_order(self) -> list[Memory]:
        """What waits, in the order in which it was said."""
        return sorted(self.pending, key=lambda one: one.created)

    def is_known(self, memory: Memory) -> bool:
        """Whether a memory was learned already, or nacre itself told it."""
        return self.is_known_evidence(memory) or (
            memory.id in self.echoes and self.is_told_by_nacre(memory)
        )

    def place(
        self, change: Change, memory: Memory, touched: set[str], decision: Decision | None
    ) -> None:
        self.gate.refresh()  # what was forgotten since it was read is not learned
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
    """The front-matter keys that say why a candidate may not be in the owner's own words."""
    return {
        key: True
        for key, holds in ((NODDED, candidate.nodded), (BESIDE_PASTE, candidate.mixed))
        if holds
    }


def _is_echo(candidate: Candidate, turns: Sequence[StoredTurn]) -> bool:
    """Whether a candidate may come from nacre: an agent's words, or the owner's after nacre gave context."""
    last = max((at for at, item in enumerate(turns) if item.turn.id in candidate.turns), default=-1)
    said = [item.turn for item in turns[: last + 1]]
    by_agent = any(turn.speaker is Speaker.AGENT and turn.id in candidate.turns for turn in said)
    return by_agent or any(turn.flags & Flag.INJECTED for turn in said)


def _to_be_shown(turns: Sequence[Turn], begin: int) -> Sequence[Turn]:
    """The turns of a session as a writer reads them: by their times, unless some were shown before."""
    return turns if begin else in_time(turns)
