"""Which language model does what, with all that is wrapped around it."""

from __future__ import annotations

import contextlib
import contextvars
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from threading import Lock, local
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

import msgspec
from msgspec import Meta

from nacre.base import files
from nacre.base import json as json_text
from nacre.base.environment import is_on_battery
from nacre.base.lazy import Module, load
from nacre.base.locks import FileLock, Turn
from nacre.base.request import Request
from nacre.base.text import shorten
from nacre.base.times import day_interval, day_of, shown_minute
from nacre.errors import (
    AnswerUnusable,
    BudgetSpent,
    ModelRefused,
    ModelUnavailable,
    NacreError,
    PromptTooLong,
    SettingsInvalid,
    StoreBusy,
    Unavailable,
)
from nacre.home.home import Home, open_database
from nacre.home.views import Budget, CostReport
from nacre.llm.credentials import provider_of
from nacre.llm.failures import REPAIR, Cached, key_of_billing
from nacre.llm.providers import Metered, cost_of, full_name, of_failed, tokens_of
from nacre.protocols import LanguageModel
from nacre.redact.redactor import Redactor
from nacre.settings import Settings
from nacre.store.journal import Spending
from nacre.store.schema import Database
from nacre.values.models import (
    DOLLAR,
    TIMEOUT_SECONDS,
    Call,
    Capabilities,
    Completion,
    Health,
    Prompt,
    Spent,
    Step,
    Tokens,
    Trace,
    TraceKind,
    dollars,
)
from nacre.values.session import Task

NONE = "none"


def name_for(home: Home, task: Task) -> str:
    """The model that is set for a task, as ``provider:model``; ``none`` where there is none. An alias is resolved."""
    return full_name(set_for(home, task))


def set_for(home: Home, task: Task) -> str:
    """The same as it is written in the settings.

    Dreams are the writer's, unless they have a model of their own.
    """
    settings = home.settings
    own = "" if task is Task.TEST else settings[f"models.{task.value}"]
    own = own or (settings[f"models.{Task.EXTRACTION.value}"] if task is Task.DREAM else "")
    return own or settings.text("models.default") or NONE


def has_writer(settings: Settings) -> bool:
    """Whether a model is to write in the background."""
    name = settings[f"models.{Task.EXTRACTION.value}"] or settings.text("models.default") or NONE
    return settings.flag("models.background") and name != NONE


def waits_for_models(home: Home) -> bool:
    """Whether a model looks at new memories by and by: one is set for that, and models may work in the background."""
    return bool(home.settings.flag("models.background")) and may_judge(home)


def may_judge(home: Home) -> bool:
    """Whether a model is set that looks at memories once they are stored."""
    return any(
        name_for(home, task) != NONE for task in (Task.CLAIMS, Task.CONTRADICTION, Task.TODOS)
    )


def model_for(home: Home, task: Task, *, background: bool) -> LanguageModel | None:
    """The model that does a task; ``None`` where none is set, or where it is for the ``background`` only.

    Work that nobody asked for in so many words (what is learned while sessions are read, judging a new memory) is
    background work: no model does it until ``models.background`` is on, and the budgets hold it. Every call is counted
    and is a step of the run that goes on; what was asked lately is answered from what was kept. Raises ModelRefused
    where the model that is set cannot be opened.
    """
    name = name_for(home, task)
    if name == NONE or (background and not home.settings.flag("models.background")):
        return None
    model: LanguageModel = load("nacre.home.spending:wrapped")(
        home, home.load_model(home.settings, name), background=background
    )
    return model


# ----------------------------------------------------------------------------
# Whether the writer may work by now: asked again before every call, as a run may take hours.


_OF_THE_WRITER = (Task.EXTRACTION, Task.DREAM)


def is_set(home: Home) -> bool:
    """Whether a model is to write in the background."""
    return home.settings.flag("models.background") and name_for(home, Task.EXTRACTION) != NONE


def rests(settings: Settings) -> bool:
    """Whether the writer is paused, or waits for the mains."""
    return settings.flag("writer.paused") or (
        not settings.flag("writer.on_battery") and is_on_battery()
    )


class Permission:
    """What the owner allows background work by now, whatever the settings were when it began."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._settings = home.settings
        self._seen: tuple[int, ...] | None = None

    @property
    def settings(self) -> Settings:
        """The settings by now. Where their file cannot be read any more, the writer rests."""
        seen = _written(self._settings)
        if seen != self._seen:
            try:
                self._settings = self._settings.read_again()
            except SettingsInvalid:
                return self._settings.having("writer.paused", value=True)
            self._seen = seen
        return self._settings

    def obstacle(self, task: str) -> str | None:
        """Why a task is not to be done for now; ``None`` where nothing stands against it."""
        settings = self.settings
        if task != Task.CHAT and not settings.flag("models.background"):
            return "models do no work in the background any more"
        if task not in _OF_THE_WRITER:
            return None
        if name_for(replace(self._home, settings=settings), Task(task)) != name_for(
            self._home, Task(task)
        ):
            return "it is not the writer any more"
        return "it is paused, or waits for the mains" if rests(settings) else None


def _written(settings: Settings) -> tuple[int, ...]:
    """What tells one writing of the config file from the next; empty where there is none."""
    with suppress(OSError):
        found = settings.config.stat()
        return found.st_ino, found.st_size, found.st_mtime_ns
    return ()


# ----------------------------------------------------------------------------
# What is noted on the way and counted later: traces, and calls of models that somebody waits for.
#
# Whoever notes something appends a line to a spool and waits for no database. Folding takes the spool
# away under another
# name and brings its lines into the database in one transaction; a line that is there already is the
# same line, so that
# a crash between loses none and doubles none.


SPOOL = "notes.jsonl"
MOST_TRACES = 2_000
CALLS_KEPT = timedelta(days=400)
_PATIENCE_SECONDS = 0.25
_MOST_BYTES = 20_000_000
"""Of a spool that nobody folds in: beyond it no traces are noted."""


def note_trace(home: Home, trace: Trace) -> None:
    """Note what a run went through; its texts are without secrets already."""
    if home.settings.whole("traces.keep_days"):
        _append(home, b'{"trace":' + _encoded(trace) + b"}", at_most=_MOST_BYTES)


def note_call(home: Home, call: Call) -> None:
    """Note a call of a model that nobody keeps waiting for a database."""
    _append(home, b'{"call":' + _encoded(call) + b"}")


def note_answer(home: Home, key: str, model: str, answer: str) -> None:
    """Note what a model answered, for the next time it is asked the same."""
    kept = {"key": key, "at": home.clock(), "model": model, "answer": answer}
    _append(home, b'{"answer":' + _encoded(kept) + b"}", at_most=_MOST_BYTES)


def noted_calls(home: Home) -> Iterator[Call]:
    """Calls that were noted and are not in the database yet, for who only reads."""
    for spool in (*_left(home), home.folder / SPOOL):
        with contextlib.suppress(OSError):
            for line in _lines(spool):
                with contextlib.suppress(msgspec.ValidationError):
                    if "call" in line:
                        yield json_text.convert(line["call"], Call)


def fold_notes(home: Home) -> None:
    """Bring what was noted into the database, and drop what is too old to be kept. Raises StoreBusy."""
    if home.database.unwritable:
        return
    taken = [*_left(home), *_take(home)]
    if not taken:
        return
    with home.database.transaction():
        for spool in taken:
            with contextlib.suppress(FileNotFoundError):  # whoever folded it meanwhile took it away
                _fold(home, spool)
        _prune(home)
    for spool in taken:
        spool.unlink(missing_ok=True)


def _fold(home: Home, spool: Path) -> None:
    for line in _lines(spool):
        for name, value in line.items():
            if name in _FOLDS:
                _FOLDS[name](home, value)


def _prune(home: Home) -> None:
    now = home.now()
    home.traces.prune(now - timedelta(days=home.settings.whole("traces.keep_days")), MOST_TRACES)
    answers_since = now - timedelta(days=home.settings.whole("models.cache_days"))
    home.spending.prune(day_of(now - CALLS_KEPT), answers_since)


def _encoded(value: object) -> bytes:
    """As JSON; half a character becomes a question mark."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value), ensure_ascii=False).encode("utf-8", "replace")


def _append(home: Home, line: bytes, at_most: int | None = None) -> None:
    """Nothing fails for what is only noted: on a full disk, or where another process holds the spool, it is dropped."""
    if home.database.unwritable:
        return
    with contextlib.suppress(StoreBusy, OSError), _lock(home):
        descriptor = files.open_file(home.folder / SPOOL, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        with os.fdopen(descriptor, "ab") as file:
            if at_most is None or file.tell() < at_most:
                file.write(
                    b"\n" + line
                )  # the line end comes first: a torn line spoils no other one


def _lines(spool: Path) -> Iterator[dict[str, Any]]:
    for line in spool.read_text(encoding="utf-8", errors="replace").split("\n"):
        with contextlib.suppress(ValueError):
            value = json_text.parse(line)
            if isinstance(value, dict):
                yield value


def _fold_trace(home: Home, value: object) -> None:
    with contextlib.suppress(msgspec.ValidationError):
        home.traces.add(json_text.convert(value, Trace))


def _fold_call(home: Home, value: object) -> None:
    with contextlib.suppress(msgspec.ValidationError):
        call = json_text.convert(value, Call)
        home.spending.add(call)
        if call.outcome == "done":
            home.spending.recover(call.model)


class _Answer(msgspec.Struct):
    key: str
    at: datetime
    model: str
    answer: str


def _fold_answer(home: Home, value: object) -> None:
    with contextlib.suppress(msgspec.ValidationError):
        kept = json_text.convert(value, _Answer)
        home.spending.keep_answer(kept.key, kept.at, kept.model, kept.answer)


_FOLDS: dict[str, Callable[[Home, object], None]] = {
    "trace": _fold_trace,
    "call": _fold_call,
    "answer": _fold_answer,
}


def _left(home: Home) -> list[Path]:
    """Spools that were taken away and not deleted, the oldest first: what a crash leaves."""
    return sorted(path for path in home.folder.glob("notes.*.taken") if os.access(path, os.R_OK))


def _take(home: Home) -> list[Path]:
    spool = home.folder / SPOOL
    taken = spool.with_name(f"notes.{home.ids()}.taken")
    if not os.access(spool, os.R_OK):
        return []
    try:
        with _lock(home):
            spool.rename(taken)
    except (FileNotFoundError, StoreBusy):
        return []
    return [taken]


def _lock(home: Home) -> FileLock:
    return FileLock(home.folder / "notes.lock", _PATIENCE_SECONDS)


# ----------------------------------------------------------------------------
# Note what a run goes through, step by step, and keep it when it ends.


MOST_STEPS = 500
"""Of a run that are kept; what comes after is counted."""

MOST_REFS = 100
"""Of a step: what a big run stored is in the vault, and in its operation."""

_LINE_CHARACTERS = 400


@dataclass
class Run:
    """A run that goes on: its steps so far, and how it ended. Several threads may add to it."""

    trace: Trace
    steps: list[Step] = field(default_factory=list)
    outcome: str = ""

    def add(self, step: Step) -> None:
        """Note a step."""
        self.steps.append(step)


_RUN: ContextVar[Run | None] = ContextVar("run", default=None)


def current() -> Run | None:
    """The run that goes on in this thread, if one does."""
    return _RUN.get()


@contextmanager
def tracing(home: Home, kind: TraceKind, subject: str) -> Iterator[Run]:
    """Whatever is asked of models within is a step of this run; within another run, of that one.

    What is noted is redacted and kept when it ends, also when it fails. Call it without an open transaction.
    """
    outer = _RUN.get()
    if outer is not None:
        yield outer
        return
    with noting(home, kind, subject) as run:
        token = _RUN.set(run)
        try:
            yield run
        finally:
            _RUN.reset(token)


@contextmanager
def noting(home: Home, kind: TraceKind, subject: str) -> Iterator[Run]:
    """A run whose steps whoever holds it adds: what models are asked within has traces of its own. Kept as above."""
    run = Run(Trace(home.ids(), kind, subject, home.clock()))
    began = time.perf_counter()
    try:
        yield run
    except BaseException as error:
        run.outcome = run.outcome or f"failed: {error or type(error).__name__}"
        raise
    finally:
        if run.steps:
            _keep(home, run, time.perf_counter() - began)


def _keep(home: Home, run: Run, seconds: float) -> None:
    """Note a run that has ended, without secrets."""

    clean = home.redactor
    kept = [cleaned(clean, step) for step in run.steps[:MOST_STEPS]]
    if len(run.steps) > MOST_STEPS:
        kept.append(Step("goes on", output=f"{len(run.steps) - MOST_STEPS:,} more steps"))
    trace = replace(
        run.trace,
        subject=_line(clean, run.trace.subject),
        outcome=_line(clean, run.outcome),
        ended=run.trace.began + timedelta(seconds=seconds),
        steps=tuple(kept),
    )
    note_trace(home, trace)


def counted(counts: Mapping[str, int]) -> str:
    """Counts in words: ``files: 3, turns: 1,204``; those that are zero are left out."""
    return ", ".join(f"{name}: {count:,}" for name, count in counts.items() if count)


def cleaned(redactor: Redactor, step: Step) -> Step:
    """A step without secrets, what went in and came out in a line each."""
    return replace(
        step,
        title=_line(redactor, step.title),
        input=_line(redactor, step.input),
        output=_line(redactor, step.output),
        refs=tuple(redactor.clean(ref) for ref in step.refs),
        more={
            redactor.clean(name): redactor.clean(value) if isinstance(value, str) else value
            for name, value in step.more.items()
        },
    )


def _line(redactor: Redactor, text: str) -> str:
    return shorten(redactor.clean(text), _LINE_CHARACTERS)


# ----------------------------------------------------------------------------
# What models may cost: each call is noted, and one in the background is asked for first.
#
# A background call is written down at what it may cost at most before it is made, in a transaction of
# its own over a
# connection of its own, and at what it cost afterwards: calls side by side, of several processes,
# keep within the budget
# together. One that failed counts what was sent, unless the provider said no. One whose process ends
# on the way stays at what it may have cost. Calls that somebody waits for are noted in a spool, and
# held by no budget.


DAILY = "models.daily_budget_usd"
TASKS = "models.task_budgets"
TOKENS, CHAT_TOKENS = "writer.tokens_per_day", "gateway.tokens_per_day"
CALLS = "writer.calls_per_day"


_ANSWER_TOKENS = 2_000
"""Of an answer, while it is not there yet."""

_TOLD_CHARACTERS = 300


def resets_at(home: Home) -> datetime:
    """The next midnight of the owner's clock, when budgets begin anew."""
    return day_interval(home.today())[1]


def budget(home: Home, task: str | None = None) -> int | None:
    """What a day, or a task a day, may cost in the background, in millionths of a US dollar; ``None`` sets no bound."""
    return _bound(home.settings, task)


def _bound(settings: Settings, task: str | None) -> int | None:
    amount = settings[TASKS].get(task) if task else settings[DAILY]
    return None if amount is None else int(Decimal(str(amount)) * DOLLAR)


class OwnConnection:
    """The ledger of calls over a connection of its own, for whatever thread asks; opened when it is first needed."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._lock = Lock()
        self._database: Database | None = None

    @contextlib.contextmanager
    def writing(self) -> Iterator[Spending]:
        """A short transaction. Raises StoreBusy, StoreUnusable."""
        with self._lock:
            database = self._open()
            with database.transaction():
                yield Spending(database)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Spending]:
        """To look something up. Raises StoreBusy, StoreUnusable."""
        with self._lock:
            yield Spending(self._open())

    def close(self) -> None:
        """Close the connection; it is opened again where it is needed again."""
        with self._lock:
            if self._database:
                self._database.close()
            self._database = None

    def _open(self) -> Database:
        if self._home.database.unwritable:
            raise self._home.database.unwritable
        if self._database is None:
            self._database = open_database(self._home.settings)
        return self._database


class HomeBooks:
    """Counts the calls of a home's models (see :class:`nacre.llm.providers.Books`)."""

    def __init__(self, home: Home, connection: OwnConnection, *, background: bool) -> None:
        self._home = home
        self._connection = connection
        self._background = background
        self._permission = Permission(home)

    def begin(self, model: str, prompt: Prompt, most: int | None) -> Call:
        """A call that may cost so much at most. Raises BudgetSpent, Unavailable, where it is not to be made."""
        run = current()
        problem = self._permission.obstacle(prompt.task) if self._background else None
        if problem:
            raise BudgetSpent(f"{model} is not asked now: {problem}", hint="nacre writer")
        call = Call(
            self._home.ids(),
            self._home.clock(),
            self._home.today(),
            prompt.task.value,
            model,
            self._background,
            tokens=self._expected(model, prompt),
            cost=most,
            trace=run.trace.id if run else None,
        )
        if self._background:
            self._reserve(call)
        return call

    def end(self, call: Call, tokens: Tokens, cost: int | None, seconds: float) -> None:
        """It was answered. That it cannot be noted costs nobody the answer: then it stays at what it may cost."""
        done = replace(call, tokens=tokens, cost=cost, seconds=seconds, outcome="done")
        if not self._background:
            note_call(self._home, done)
            return
        with contextlib.suppress(NacreError), self._connection.writing() as spending:
            spending.finish(done)
            spending.recover(call.model)

    def fail(
        self, call: Call, tokens: Tokens, cost: int | None, seconds: float, error: NacreError | None
    ) -> None:
        """It was not answered; what it may have taken is an estimate. That the next call is likely to fail, too, is
        kept: a prompt that is too long does not say so."""
        failed = replace(call, tokens=tokens, cost=cost, seconds=seconds, outcome="failed")
        if not self._background:
            note_call(self._home, failed)
            return
        with contextlib.suppress(NacreError), self._connection.writing() as spending:
            spending.finish(failed)
            if isinstance(error, ModelUnavailable) or type(error) is ModelRefused:
                told = (
                    f"{error.message}; {error.hint}"
                    if error.hint and type(error) is ModelRefused
                    else error.message
                )
                told = shorten(self._home.redactor.clean(told), _TOLD_CHARACTERS)
                spending.fail(Health(call.model, self._home.clock(), told))

    def leave(self, call: Call, tokens: Tokens, cost: int | None, seconds: float) -> None:
        """It was broken off. In the background it stays at what it may cost at most: the provider may go on."""
        if not self._background:
            self.fail(call, tokens, cost, seconds, None)

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()

    def _reserve(self, call: Call) -> None:
        try:
            with self._connection.writing() as spending:
                refused = self._obstacle(spending, call)
                if refused:
                    spending.refuse(call.day, call.task, call.model, refused[0])
                else:
                    spending.add(call)
        except NacreError as error:
            raise BudgetSpent(
                f"no call of {call.model} can be noted, so no budget can hold it: {error.message}",
                hint=error.hint,
            ) from error
        if refused:
            raise refused[1]

    def _obstacle(self, spending: Spending, call: Call) -> tuple[str, Unavailable] | None:
        """Why a background call is not made, in a word and in full."""
        in_all, of_task = spending.in_background(
            call.day, call.task, partial(is_priced, self._home.settings)
        )
        budgets = [("budget", None, in_all), ("task budget", call.task, of_task)]
        if self._is_by_subscription(call.model):
            if refused := self._beyond_tokens(spending, call):
                return refused
            budgets = budgets[
                1:
            ]  # what the command says it would cost counts only within a bound of the task's own
        elif call.cost is None:
            return "no price", unpriced(call.model)
        wanted = call.cost or 0
        for reason, task, spent in budgets:
            most = _bound(self._permission.settings, task)
            if most is not None and (most <= 0 or spent + wanted > most):
                return reason, self._spent(task, spent, most, wanted)
        return None

    def _expected(self, model: str, prompt: Prompt) -> Tokens:
        """The tokens that a call is held for while it runs: only those of a subscription are counted so."""
        if not (self._background and self._is_by_subscription(model)):
            return Tokens()
        return reserved(self._home.settings, model, prompt)

    def _is_by_subscription(self, model: str) -> bool:
        return is_by_subscription(self._home.settings, model)

    def _beyond_tokens(self, spending: Spending, call: Call) -> tuple[str, Unavailable] | None:
        is_chat = call.task == Task.CHAT
        key = CHAT_TOKENS if is_chat else TOKENS
        most = self._permission.settings.whole(key)
        taken, made = spending.tokens_in_background(call.day, call.model, is_chat=is_chat)
        wanted = call.tokens.input + call.tokens.output
        if most <= 0:
            writer = "nacre writer set says which writer may take how many tokens a day"
            hint = f"{key} is 0: nacre config set {key} …" if is_chat else writer
            return "no tokens", BudgetSpent(f"{call.model} may take no tokens by itself", hint=hint)
        calls = 0 if is_chat else self._permission.settings.whole(CALLS)
        if calls and made >= calls:
            told = f"{call.model} may make {calls:,} calls a day, and has made them"
            return "calls", BudgetSpent(
                told, hint=self._until(False, f"nacre config set {CALLS} …")
            )
        if taken + wanted <= most:
            return None
        told = f"{call.model} may take {most:,} tokens a day, {taken:,} are taken, and a call may take {wanted:,}"
        return "tokens", BudgetSpent(
            told, hint=self._until(wanted > most, f"nacre config set {key} …")
        )

    def _spent(self, task: str | None, spent: int, most: int, wanted: int) -> BudgetSpent:
        key = TASKS if task else DAILY
        more = f"nacre config set {key} '{{{task} = …}}'" if task else f"nacre config set {key} …"
        whose = f"{task} in the background" if task else "models in the background"
        if most <= 0:
            return BudgetSpent(f"{whose} may cost nothing: {key} is 0", hint=more)
        return BudgetSpent(
            f"{whose} may cost {dollars(most)} a day, {dollars(spent)} are used, and a call may take {dollars(wanted)}",
            hint=self._until(wanted > most, more),
        )

    def _until(self, is_too_small: bool, more: str) -> str:
        """What has a call made after all: the next day, unless no day holds it."""
        if is_too_small:
            return f"a day that holds such a call: {more}"
        return f"it goes on at {shown_minute(resets_at(self._home))}; for more: {more}"


class HomeAnswers:
    """Keeps answers in a home (see :class:`nacre.llm.failures.Answers`); none that holds what looks like a secret."""

    def __init__(self, home: Home, connection: OwnConnection, *, background: bool) -> None:
        self._home = home
        self._connection = connection
        self._background = background
        self._days = timedelta(days=home.settings.whole("models.cache_days"))

    def find(self, key: str) -> str | None:
        """The answer that is kept, if one is."""
        with contextlib.suppress(NacreError), self._connection.reading() as spending:
            return spending.answer(key, self._home.now() - self._days)
        return None

    def keep(self, key: str, model: str, answer: str) -> None:
        """Keep an answer."""
        if self._home.redactor.clean(answer) != answer or not _is_whole(answer):
            return
        if not self._background:
            note_answer(self._home, key, model, answer)
            return
        with contextlib.suppress(NacreError), self._connection.writing() as spending:
            spending.keep_answer(key, self._home.clock(), model, answer)

    def drop(self, key: str) -> None:
        """Keep it no longer."""
        with contextlib.suppress(NacreError), self._connection.writing() as spending:
            spending.drop_answer(key)


def reserved(settings: Settings, model: str, prompt: Prompt) -> Tokens:
    """What a call of a subscription is held for until its answer is there."""
    beside = provider_of(settings, model.partition(":")[0]).beside
    return Tokens(
        input=tokens_of(prompt) + beside, output=min(prompt.output_tokens, _ANSWER_TOKENS)
    )


def costs(home: Home, days: int = 30) -> CostReport:
    """What models cost in the last days, today counted, and what is left of today's budget. What a subscription pays
    has no cost here, whatever its command says that it would be.
    """
    fold_notes(home)
    day = home.today()
    since = day - timedelta(days=days - 1)
    spending = home.spending
    most = {None: budget(home), **{task: budget(home, task) for task in home.settings[TASKS]}}
    budgets = [
        Budget(
            task,
            amount or 0,
            spending.in_background(day, task or "", partial(is_priced, home.settings))[
                1 if task else 0
            ],
        )
        for task, amount in most.items()
    ]
    return CostReport(
        since,
        day,
        resets_at(home),
        [_paid(home.settings, one) for one in spending.since(since)],
        spending.refusals(since),
        budgets,
        home.settings.flag("models.background"),
    )


def _paid(settings: Settings, one: Spent) -> Spent:
    return one if is_priced(settings, one.model) else replace(one, cost=0, unpriced=0, estimated=0)


def left_today(home: Home, task: str) -> int:
    """What is left of today's budget for a task in the background, in millionths of a US dollar."""
    day = home.today()
    in_all, of_task = home.spending.in_background(day, task, partial(is_priced, home.settings))
    rest = (budget(home) or 0) - in_all
    own = budget(home, task)
    return max(0, rest if own is None else min(rest, own - of_task))


def tokens_left(home: Home, model: str) -> int | None:
    """What a model by subscription may still take today in the background; ``None`` where its calls have a price."""
    if not is_by_subscription(home.settings, model):
        return None
    taken, _ = home.spending.tokens_in_background(home.today(), model)
    return max(0, home.settings.whole(TOKENS) - taken)


def calls_left(home: Home, model: str) -> int | None:
    """How many calls a model by subscription may still make today in the background; ``None`` where they are not
    bounded, or have a price.
    """
    most = home.settings.whole(CALLS)
    if not (most and is_by_subscription(home.settings, model)):
        return None
    _, made = home.spending.tokens_in_background(home.today(), model)
    return max(0, most - made)


def is_by_subscription(settings: Settings, model: str) -> bool:
    """Whether calls of a model have no price of their own, so that tokens are counted: not where an API key pays."""
    with contextlib.suppress(ModelRefused):
        provider = provider_of(settings, model.partition(":")[0])
        return provider.subscription and not key_of_billing(settings, provider)
    return False


def is_priced(settings: Settings, model: str) -> bool:
    """Whether what calls of a model cost counts within a day's budget."""
    return not is_by_subscription(settings, model)


def _is_whole(text: str) -> bool:
    """Whether a text has no half characters, which a database cannot hold."""
    return text.isascii() or text == text.encode("utf-8", "replace").decode()


def unpriced(model: str) -> BudgetSpent:
    """Why a model is not asked in the background whose price nobody knows, with what changes that."""
    price = f'{{"{model}" = {{price = {{input = …, output = …}}}}}}'
    return BudgetSpent(
        f"nobody knows what {model} costs, so no budget can hold it",
        hint=f"say it in US dollars for a million tokens, 0 where it is free: "
        f"nacre config set models.capabilities '{price}'",
    )


@dataclass(frozen=True, slots=True)
class Sum:
    """Calls that are alike in something; ``background`` of them were background work. See :class:`Spent`."""

    name: str
    calls: int
    background: int
    failed: int
    tokens: Tokens
    cost: int
    unpriced: int
    seconds: float
    estimated: int


def added_up(spent: Sequence[Spent], by: str) -> list[Sum]:
    """Calls by ``task``, ``model`` or ``day``: the dearest first, days in their order."""
    groups: dict[str, list[Spent]] = {}
    for one in spent:
        groups.setdefault(str(getattr(one, by)), []).append(one)
    sums = [summed(name, group) for name, group in groups.items()]
    return sorted(
        sums, key=lambda one: one.name if by == "day" else (-one.cost, -one.calls, one.name)
    )


def summed(name: str, group: Sequence[Spent]) -> Sum:
    """Calls as one line."""
    return Sum(
        name,
        sum(one.calls for one in group),
        sum(one.calls for one in group if one.is_background),
        sum(one.failed for one in group),
        sum((one.tokens for one in group), Tokens()),
        sum(one.cost for one in group),
        sum(one.unpriced for one in group),
        sum(one.seconds for one in group),
        sum(one.estimated for one in group),
    )


# ----------------------------------------------------------------------------
# Questions to language models, asked side by side: what all of them have in common, whatever they are
# about.
#
# Each is a function that asks and returns the answer. None of them touches the home: what they need
# is read before, and
# what they found is written afterwards, in the order of the questions.


if TYPE_CHECKING:
    from concurrent import futures
else:
    futures = Module("concurrent.futures")

A = TypeVar("A")

_FINAL = (ModelUnavailable, ModelRefused, BudgetSpent)


@dataclass(frozen=True, slots=True)
class Answered(Generic[A]):
    """An answer, beside the errors and what was not answered."""

    value: A


def ask_all(
    home: Home, questions: Sequence[Callable[[], A]], at_once: int, seconds: float | None = None
) -> list[Answered[A] | NacreError | None]:
    """The answers, in the order of the questions, so many of which are asked at once.

    One that failed is the error; ``None`` stands where nobody was asked, or not answered in so many seconds: once a
    model is not to be had, refuses, or may cost no more, what is left is not asked. Other threads of the home go on
    meanwhile. Whoever interrupts it closes the models, which ends the calls that still run.
    """

    if not questions:
        return []
    is_over = threading.Event()

    def put(question: Callable[[], A]) -> Answered[A] | NacreError | None:
        if is_over.is_set():
            return None
        try:
            return Answered(question())
        except (AnswerUnusable, ModelUnavailable, ModelRefused, BudgetSpent) as error:
            if is_final(error):
                is_over.set()
            return error

    pool = futures.ThreadPoolExecutor(at_once, "nacre-asking")
    try:
        running = [
            pool.submit(contextvars.copy_context().run, put, question) for question in questions
        ]
        with home.turn.aside():
            futures.wait(running, seconds)
    finally:
        is_over.set()
        pool.shutdown(wait=False, cancel_futures=True)
    return [
        future.result() if future.done() and not future.cancelled() else None for future in running
    ]


def is_final(answer: object) -> bool:
    """Whether it is an error after which a model is to be asked no more: one of it, and not of the question."""
    return isinstance(answer, _FINAL) and not isinstance(answer, PromptTooLong)


# ----------------------------------------------------------------------------
# Requests about what models cost.


class CostRequest(Request, frozen=True, kw_only=True):
    """What models cost in the last days, including today."""

    days: Annotated[int, Meta(description="Days, including today.", ge=1, le=3650)] = 30


# ----------------------------------------------------------------------------
# What is wrapped around a language model: its ledger, kept answers and a trace.


_ASKED_CHARACTERS = 160


_ANSWERED_CHARACTERS = 300


def wrapped(home: Home, model: LanguageModel, *, background: bool) -> LanguageModel:
    """A model with its ledger, its trace and what keeps it within the owner's limits."""
    connection = OwnConnection(home)
    books = HomeBooks(home, connection, background=background)
    told = CallTrace(model.name, model.capabilities)
    model = Metered(model, books)
    if home.settings.whole("models.cache_days"):
        model = Cached(model, HomeAnswers(home, connection, background=background))
    return TurnTaking(model, home.turn, told, home.settings.number("models.timeout_seconds"))


class CallTrace(local):
    """Tells the run that goes on, if one does, of each try of a call; each thread has its own."""

    def __init__(self, name: str, able: Capabilities) -> None:
        self._name = name
        self._able = able
        self._began = 0.0

    def begin(self) -> None:
        """A try begins."""
        self._began = time.perf_counter()

    def answered(self, prompt: Prompt, completion: Completion) -> None:
        """It was answered."""
        step = Step(
            _title(prompt, completion),
            _asked(prompt),
            shorten(completion.text, _ANSWERED_CHARACTERS)
            + (" (cut off)" if completion.is_cut else ""),
            seconds=self._took(),
            model=self._name,
            tokens=completion.tokens,
            cost=cost_of(completion, self._able),
        )
        self._add(step)

    def failed(self, prompt: Prompt, error: NacreError) -> None:
        """It was not; what it took is an estimate."""
        tokens, cost = of_failed(prompt, error, self._able)
        step = Step(
            _title(prompt),
            _asked(prompt),
            shorten(error.message, _ANSWERED_CHARACTERS),
            "failed",
            seconds=self._took(),
            model=self._name,
            tokens=tokens,
            cost=cost,
        )
        self._add(step)

    def _took(self) -> float:
        """Seconds of this try; what comes next is another one."""
        before, self._began = self._began, time.perf_counter()
        return self._began - before

    def _add(self, step: Step) -> None:
        run = current()
        if run:
            run.add(step)


def _title(prompt: Prompt, completion: Completion | None = None) -> str:
    if completion and completion.is_repeated:
        return "takes an answer that was kept"
    return "has an answer mended" if REPAIR in prompt.text else "asks the model"


def _asked(prompt: Prompt) -> str:
    return f"{prompt.version or prompt.task.value}: {shorten(prompt.text, _ASKED_CHARACTERS)}"


class TurnTaking:
    """Another model, each call of which is a step of the run that goes on, and holds up no other thread of the home;
    implements LanguageModel. ``seconds`` bounds all prompts but conversations."""

    def __init__(self, model: LanguageModel, turn: Turn, told: CallTrace, seconds: float) -> None:
        self.name = model.name
        self.capabilities: Capabilities = model.capabilities
        self._model = model
        self._turn = turn
        self._told = told
        self._seconds = seconds

    def complete(self, prompt: Prompt) -> Completion:
        """Answer a prompt. Raises what the model raises."""
        if prompt.task is not Task.CHAT:  # whose time is gateway.answer_seconds
            is_default = prompt.timeout_seconds == TIMEOUT_SECONDS
            seconds = self._seconds if is_default else min(prompt.timeout_seconds, self._seconds)
            prompt = replace(prompt, timeout_seconds=seconds)
        with self._turn.aside():
            return self._asked(prompt)

    def _asked(self, prompt: Prompt) -> Completion:
        if current() is None:
            return self._model.complete(prompt)
        self._told.begin()
        try:
            completion = self._model.complete(prompt)
        except NacreError as error:
            self._told.failed(prompt, error)
            raise
        self._told.answered(prompt, completion)
        return completion

    def close(self) -> None:
        """Close the model."""
        self._model.close()


# ----------------------------------------------------------------------------
# What is answered to requests about costs; :mod:`nacre.serve.catalogue` lists them.


def show_costs(home: Home, request: CostRequest) -> CostReport:
    """What models cost, and what is left of today's budgets."""
    return costs(home, max(1, request.days))
