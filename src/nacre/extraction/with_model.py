"""Ask a model what a session teaches, with the memories that are stored about it beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cached_property, partial

from nacre.errors import AnswerUnusable, NacreError
from nacre.extraction.by_model.answer import Outdateds
from nacre.extraction.by_model.calls import Caller
from nacre.extraction.by_model.later import Doubt, Held, doubts
from nacre.extraction.by_model.pipeline import Extraction, Wanted, extract_with
from nacre.extraction.by_model.prompts import for_later
from nacre.extraction.by_model.together import Shown, extract_together, fitting, size_of
from nacre.extraction.coverage import is_agreed, is_covered
from nacre.extraction.known import related, touched
from nacre.extraction.later import days_to_look, due, note, touched_by
from nacre.extraction.substance import is_worth_asking
from nacre.home.home import Home
from nacre.protocols import LanguageModel
from nacre.spending.models import model_for, name_for
from nacre.spending.permission import Permission, is_set
from nacre.spending.spool import fold_notes
from nacre.spending.tracing import tracing
from nacre.text.passages import count, shorten
from nacre.values.model_calls import Task
from nacre.values.reports import ModelExtraction
from nacre.values.session import Session, StoredSession, Turn
from nacre.values.spending import Health
from nacre.values.trace import Step, TraceKind

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

    def read_ahead(self, project: str | None, sessions: Sequence[Shown], notify: Callable[[str], None]) -> None:
        """Show the model several small sessions of a project in one call, if they are worth it: what it finds in each
        is what :meth:`extract` returns for it then.
        """
        home, model = self._home, self._model
        if model is None or self.is_spent:
            return
        worth = [
            one for one in sessions
            if one.session.id not in self._alone
            and is_worth_asking(one.session, one.turns, home.settings, begin=one.begin)
        ]  # fmt: skip
        together = worth[: fitting([size_of(one) for one in worth], model.capabilities)]
        if len(together) < 2:
            return
        notify(f"{model.name}: {len(together)} sessions")
        wanted = Wanted(
            related=related(home, together, project, self._writer), near=partial(touched, home, project, self._writer),
            timeout_seconds=home.settings.number("models.timeout_seconds"),
        )  # fmt: skip
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
        self, session: Session, project: str | None, turns: Sequence[Turn], *, begin: int,
        notify: Callable[[str], None],
    ) -> Extraction | None:  # fmt: skip
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
            self._home, model, session, turns,
            Wanted(
                begin=begin, related=related(self._home, [Shown(session, turns, begin)], project, self._writer),
                near=partial(touched, self._home, project, self._writer), notify=tell,
                timeout_seconds=self._home.settings.number("models.timeout_seconds"),
            ),
        )  # fmt: skip
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
            more = ask_about_later(home, caller, touched_by(home, held, found, self._writer)) if found else ()
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
        return self.is_elsewhere or self._is_left_alone or self._permission.obstacle(Task.EXTRACTION) is not None

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


def ask_about(home: Home, model: LanguageModel, session: Session, turns: Sequence[Turn], wanted: Wanted) -> Extraction:
    """Ask a model about a session, and leave a trace of it. No lock is held meanwhile, no transaction open."""
    with tracing(home, TraceKind.EXTRACTION, session.id) as run:
        with home.turn.aside():  # it asks from threads of its own
            found = extract_with(model, session, turns, wanted)
        run.add(_step(found, session.id))
        run.outcome = count(len(found.memories), "memory", "memories")
        return found


def ask_about_all(home: Home, caller: Caller, sessions: Sequence[Shown], wanted: Wanted) -> Sequence[Extraction] | None:
    """Ask a model about several sessions in one call, and leave a trace of it."""
    with tracing(home, TraceKind.EXTRACTION, f"{sessions[0].session.id} and {len(sessions) - 1} more") as run:
        with home.turn.aside():
            found = extract_together(caller, sessions, wanted)
        for shown, one in zip(sessions, found or (), strict=False):
            run.add(_step(one, shown.session.id))
        run.outcome = f"{sum(len(one.memories) for one in found)} memories" if found else "no answer"
        return found


def ask_about_later(home: Home, caller: Caller, held: Sequence[Held]) -> Sequence[Doubt] | None:
    """Ask which memories no longer hold by what was said later, and leave a trace of it; ``None`` without an answer."""
    asked = [one for one in held if one.sayings]
    if not asked:
        return ()
    seconds = home.settings.number("models.timeout_seconds")
    with tracing(home, TraceKind.EXTRACTION, f"{len(asked)} memories beside what was said later") as run:
        with home.turn.aside():
            answer = caller.ask(for_later(asked, caller.capabilities, seconds), Outdateds)
        found, dropped = (None, {}) if answer is None else doubts(asked, answer.memories)
        run.outcome = "no answer" if found is None else f"{len(found)} may be out of date{_not_taken(dropped)}"
        said = dict.fromkeys(saying.session for one in asked for saying in one.sayings)
        run.add(Step("was shown excerpts", f"of {count(len(said), 'session')}", run.outcome, refs=tuple(said)))
        return found


def _not_taken(dropped: Mapping[str, int]) -> str:
    """What is told of what a model proposed in vain, by why."""
    told = ", ".join(f"{reason} {count}" for reason, count in sorted(dropped.items()))
    return f"; not taken: {told}" if told else ""


def _step(found: Extraction, session: str) -> Step:
    told = f"{len(found.memories)} taken{_not_taken(found.dropped)}"
    held = ", ".join(dict.fromkeys(one.detail for one in found.candidates if one.held))
    told += f"; held back: {held}" if held else ""
    told += f"; {found.by_rules} of {found.parts} parts by rules: {found.problem}" if found.by_rules else ""
    return Step(
        "looks at the answers", f"{found.proposed} memories proposed of {found.parts} parts", told,
        refs=(session, *dict.fromkeys(turn for one in found.candidates for turn in one.turns)),
        more={**found.dropped, "by_rules": found.by_rules},
    )  # fmt: skip


@dataclass
class _Tally:
    report: ModelExtraction = ModelExtraction()
    is_over: bool = False

    def add(self, found: Extraction) -> None:
        so_far = self.report
        self.report = replace(
            so_far, sessions=so_far.sessions + (found.by_rules < found.parts), found=so_far.found + len(found.memories),
            held=so_far.held + len(found.candidates) - len(found.memories),
            repeated=so_far.repeated + found.repeated, calls=so_far.calls + found.calls,
            tokens=so_far.tokens + found.tokens, parts=so_far.parts + found.parts,
            by_rules=so_far.by_rules + found.by_rules, dropped=Counter(so_far.dropped) + Counter(found.dropped),
        )  # fmt: skip
        if found.by_rules or found.is_uncompared:
            self.fail(found.problem, found.hint)
        self.is_over = found.is_over

    def add_calls(self, caller: Caller) -> None:
        """Count calls that were about no session, or about several."""
        so_far = self.report
        self.report = replace(so_far, calls=so_far.calls + caller.calls, tokens=so_far.tokens + caller.tokens)
        self.is_over = self.is_over or caller.is_over

    def fail(self, problem: str | None, hint: str | None) -> None:
        self.report = replace(self.report, problem=problem, hint=hint)
