"""Choice of the language model for each task, its costs and budgets, and traces of its calls."""

from __future__ import annotations

import contextlib
import contextvars
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from threading import Lock, local
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

import msgspec
from msgspec import Meta

from nacre.base import json as json_text
from nacre.base.environment import is_on_battery
from nacre.base.lazy import Module, load
from nacre.base.locks import Turn
from nacre.base.request import Request
from nacre.base.spool import Spool, lines
from nacre.base.text import shorten
from nacre.base.times import day_interval, day_of, shown_minute
from nacre.errors import (
    BudgetSpentError,
    InvalidSettingsError,
    ModelRefusedError,
    ModelUnavailableError,
    NacreError,
    PromptTooLongError,
    UnavailableError,
    UnusableAnswerError,
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
    """Return the model configured for a task as ``provider:model`` with aliases resolved, or ``none``."""
    return full_name(set_for(home, task))


def set_for(home: Home, task: Task) -> str:
    """Return the model configured for a task as written in the settings.

    Dreams use the writer's model unless they have their own.
    """
    settings = home.settings
    name = "" if task is Task.TEST else settings[f"models.{task.value}"]
    name = name or (settings[f"models.{Task.EXTRACTION.value}"] if task is Task.DREAM else "")
    return name or settings.text("models.default") or NONE


def has_writer(settings: Settings) -> bool:
    """Return True if a model is configured to write in the background."""
    name = settings[f"models.{Task.EXTRACTION.value}"] or settings.text("models.default") or NONE
    return settings.flag("models.background") and name != NONE


def waits_for_models(home: Home) -> bool:
    """Return True if a model examines new memories in the background."""
    return bool(home.settings.flag("models.background")) and may_judge(home)


def may_judge(home: Home) -> bool:
    """Return True if a model is configured for claims, contradictions or todos."""
    return any(
        name_for(home, task) != NONE for task in (Task.CLAIMS, Task.CONTRADICTION, Task.TODOS)
    )


def model_for(home: Home, task: Task, *, background: bool) -> LanguageModel | None:
    """Return the model for a task, or ``None`` if none is configured or background work is off.

    Work that the user did not explicitly request (learning from sessions, judging a new memory) is
    ``background`` work. It needs ``models.background`` and is limited by the budgets. Every call is
    counted and traced, and recent answers are reused. Raises ModelRefusedError if the configured model
    cannot be opened.
    """
    name = name_for(home, task)
    if name == NONE or (background and not home.settings.flag("models.background")):
        return None
    model: LanguageModel = load("nacre.home.spending:wrapped")(
        home, home.load_model(home.settings, name), background=background
    )
    return model


# -- Permission for background work --------------------------------------------
#
# Checked before every call, because a run may take hours.


_WRITER_TASKS = (Task.EXTRACTION, Task.DREAM)


def is_set(home: Home) -> bool:
    """Return True if a model is configured to write in the background."""
    return home.settings.flag("models.background") and name_for(home, Task.EXTRACTION) != NONE


def rests(settings: Settings) -> bool:
    """Return True if the writer is paused or waits for mains power."""
    return settings.flag("writer.paused") or is_on_battery()


class Permission:
    """The owner's current permission for background work, even if the settings changed since it began."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._settings = home.settings
        self._seen: tuple[int, ...] | None = None

    @property
    def settings(self) -> Settings:
        """The current settings. If their file can no longer be read, the writer is paused."""
        version = _config_version(self._settings)
        if version != self._seen:
            try:
                self._settings = self._settings.read_again()
            except InvalidSettingsError:
                return self._settings.having("writer.paused", value=True)
            self._seen = version
        return self._settings

    def obstacle(self, task: str) -> str | None:
        """Return why a task may not run now, or ``None`` if it may."""
        settings = self.settings
        if task != Task.CHAT and not settings.flag("models.background"):
            return "models do no work in the background any more"
        if task not in _WRITER_TASKS:
            return None
        if name_for(replace(self._home, settings=settings), Task(task)) != name_for(
            self._home, Task(task)
        ):
            return "it is not the writer any more"
        return "it is paused, or waits for the mains" if rests(settings) else None


def _config_version(settings: Settings) -> tuple[int, ...]:
    """Return a value that changes with the config file. Empty if there is none."""
    with suppress(OSError):
        stat = settings.config.stat()
        return stat.st_ino, stat.st_size, stat.st_mtime_ns
    return ()


# -- Spool of traces, calls and answers ----------------------------------------
#
# Inserting a line again has no effect; see nacre.base.spool.


SPOOL = "notes"
MOST_TRACES = 2_000
CALLS_KEPT = timedelta(days=400)
_MAX_SPOOL_BYTES = 20_000_000
"""Spool size in bytes beyond which traces and answers are dropped."""


def note_trace(home: Home, trace: Trace) -> None:
    """Spool a trace, whose texts must already be redacted."""
    if home.settings.whole("traces.keep_days"):
        _append(home, b'{"trace":' + _as_json(trace) + b"}", at_most=_MAX_SPOOL_BYTES)


def note_call(home: Home, call: Call) -> None:
    """Spool a call of a model outside background work."""
    _append(home, b'{"call":' + _as_json(call) + b"}")


def note_answer(home: Home, key: str, model: str, answer: str) -> None:
    """Spool a model's answer so that the same prompt can reuse it."""
    answer_record = {"key": key, "at": home.clock(), "model": model, "answer": answer}
    _append(home, b'{"answer":' + _as_json(answer_record) + b"}", at_most=_MAX_SPOOL_BYTES)


def noted_calls(home: Home) -> Iterator[Call]:
    """Yield spooled calls that are not in the database yet, without folding them."""
    notes = Spool(home.folder, SPOOL)
    for path in (*notes.left(), notes.path):
        with contextlib.suppress(OSError):
            for line in lines(path):
                with contextlib.suppress(msgspec.ValidationError):
                    if "call" in line:
                        yield json_text.convert(line["call"], Call)


def fold_notes(home: Home) -> None:
    """Move the spool into the database and delete expired records. Raises StoreBusyError."""
    if home.database.unwritable:
        return
    spools = list(Spool(home.folder, SPOOL).take(home.ids))
    if not spools:
        return
    now = home.now()
    traces_since = now - timedelta(days=home.settings.whole("traces.keep_days"))
    answers_since = now - timedelta(days=home.settings.whole("models.cache_days"))
    with home.database.transaction():
        for path in spools:
            with contextlib.suppress(FileNotFoundError):  # another process folded it
                for line in lines(path):
                    _fold(home, line)
        home.traces.prune(traces_since, MOST_TRACES)
        home.spending.prune(day_of(now - CALLS_KEPT), answers_since)
    for path in spools:
        path.unlink(missing_ok=True)


class _Answer(msgspec.Struct):
    key: str
    at: datetime
    model: str
    answer: str


class _Note(msgspec.Struct):
    """A line of the spool, which has one of these."""

    trace: Trace | None = None
    call: Call | None = None
    answer: _Answer | None = None


def _fold(home: Home, line: dict[str, Any]) -> None:
    with contextlib.suppress(msgspec.ValidationError):
        note = json_text.convert(line, _Note)
        if note.trace:
            home.traces.add(note.trace)
        if note.call:
            home.spending.add(note.call)
            if note.call.outcome == "done":
                home.spending.recover(note.call.model)
        if note.answer:
            home.spending.keep_answer(**msgspec.structs.asdict(note.answer))


def _as_json(value: object) -> bytes:
    """Return a value as JSON. Unpaired surrogates become question marks."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value), ensure_ascii=False).encode("utf-8", "replace")


def _append(home: Home, line: bytes, at_most: int | None = None) -> None:
    if not home.database.unwritable:
        Spool(home.folder, SPOOL).append(line, at_most)


# -- Traces of runs ------------------------------------------------------------


MOST_STEPS = 500
"""Maximum steps stored per run. Further steps are only counted."""

MOST_REFS = 100
"""Maximum references per step. The vault and the operation have the complete list."""

_MAX_LINE_CHARACTERS = 400


@dataclass
class Run:
    """A run in progress: its steps so far and its outcome. Threads may share it."""

    trace: Trace
    steps: list[Step] = field(default_factory=list)
    outcome: str = ""

    def add(self, step: Step) -> None:
        """Add a step."""
        self.steps.append(step)


_RUN: ContextVar[Run | None] = ContextVar("run", default=None)


def current() -> Run | None:
    """Return the run in progress in this context, if any."""
    return _RUN.get()


@contextmanager
def tracing(home: Home, kind: TraceKind, subject: str) -> Iterator[Run]:
    """Trace model calls inside as steps of this run, or of the enclosing run.

    The redacted trace is stored at the end, also after a failure. Call it without an open
    transaction.
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
    """Trace a run whose steps the caller adds. Model calls inside have traces of their own.

    The trace is stored as by :func:`tracing`.
    """
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
    """Spool the redacted trace of a finished run."""

    clean = home.redactor
    steps = [cleaned(clean, step) for step in run.steps[:MOST_STEPS]]
    if len(run.steps) > MOST_STEPS:
        steps.append(Step("goes on", output=f"{len(run.steps) - MOST_STEPS:,} more steps"))
    trace = replace(
        run.trace,
        subject=_line(clean, run.trace.subject),
        outcome=_line(clean, run.outcome),
        ended=run.trace.began + timedelta(seconds=seconds),
        steps=tuple(steps),
    )
    note_trace(home, trace)


def counted(counts: Mapping[str, int]) -> str:
    """Return non-zero counts as text: ``files: 3, turns: 1,204``."""
    return ", ".join(f"{name}: {count:,}" for name, count in counts.items() if count)


def cleaned(redactor: Redactor, step: Step) -> Step:
    """Return a step without secrets, with input and output shortened to one line each."""
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
    return shorten(redactor.clean(text), _MAX_LINE_CHARACTERS)


# -- Budgets -------------------------------------------------------------------
#
# A background call reserves its maximum cost before it starts and records the actual cost
# afterwards, each in a transaction on a separate connection, so that concurrent calls of several
# processes respect the budget together. A failed call costs the tokens sent, unless the provider
# rejected it. A call whose process ends keeps its reservation. Other calls go to the spool and are
# not limited.


DAILY = "models.daily_budget_usd"
TASKS = "models.task_budgets"
TOKENS, CHAT_TOKENS = "writer.tokens_per_day", "gateway.tokens_per_day"
CALLS = "writer.calls_per_day"


_EXPECTED_ANSWER_TOKENS = 2_000
"""Output tokens assumed for an answer until it arrives."""

_MAX_ERROR_CHARACTERS = 300


def resets_at(home: Home) -> datetime:
    """Return the next local midnight, when the daily budgets reset."""
    return day_interval(home.today())[1]


def budget(home: Home, task: str | None = None) -> int | None:
    """Return the daily background budget in millionths of a US dollar, or a task's share.

    ``None`` means no limit.
    """
    return _limit(home.settings, task)


def _limit(settings: Settings, task: str | None) -> int | None:
    amount = settings[TASKS].get(task) if task else settings[DAILY]
    return None if amount is None else int(Decimal(str(amount)) * DOLLAR)


class OwnConnection:
    """The ledger of calls on a separate connection, usable from any thread and opened on first use."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._lock = Lock()
        self._database: Database | None = None

    @contextlib.contextmanager
    def writing(self) -> Iterator[Spending]:
        """Yield the ledger in a short transaction. Raises StoreBusyError, UnusableStoreError."""
        with self._lock:
            database = self._open()
            with database.transaction():
                yield Spending(database)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Spending]:
        """Yield the ledger for reading. Raises StoreBusyError, UnusableStoreError."""
        with self._lock:
            yield Spending(self._open())

    def close(self) -> None:
        """Close the connection. The next use opens it again."""
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
    """Counts the calls of a home's models; implements :class:`nacre.llm.providers.Books`."""

    def __init__(self, home: Home, connection: OwnConnection, *, background: bool) -> None:
        self._home = home
        self._connection = connection
        self._background = background
        self._permission = Permission(home)

    def begin(self, model: str, prompt: Prompt, most: int | None) -> Call:
        """Record a call that may cost at most ``most``.

        Raises BudgetSpentError, UnavailableError if it is not allowed.
        """
        run = current()
        problem = self._permission.obstacle(prompt.task) if self._background else None
        if problem:
            raise BudgetSpentError(f"{model} is not asked now: {problem}", hint="nacre writer")
        call = Call(
            self._home.ids(),
            self._home.clock(),
            self._home.today(),
            prompt.task.value,
            model,
            self._background,
            tokens=self._expected_tokens(model, prompt),
            cost=most,
            trace=run.trace.id if run else None,
        )
        if self._background:
            self._reserve(call)
        return call

    def end(self, call: Call, tokens: Tokens, cost: int | None, seconds: float) -> None:
        """Record a completed call.

        If that fails, its reservation stays and the answer is still returned.
        """
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
        """Record a failed call with its estimated cost, and whether the next call is likely to fail too.

        A prompt that is too long is not a sign of that.
        """
        failed = replace(call, tokens=tokens, cost=cost, seconds=seconds, outcome="failed")
        if not self._background:
            note_call(self._home, failed)
            return
        with contextlib.suppress(NacreError), self._connection.writing() as spending:
            spending.finish(failed)
            if isinstance(error, ModelUnavailableError) or type(error) is ModelRefusedError:
                message = (
                    f"{error.message}; {error.hint}"
                    if error.hint and type(error) is ModelRefusedError
                    else error.message
                )
                message = shorten(self._home.redactor.clean(message), _MAX_ERROR_CHARACTERS)
                spending.fail(Health(call.model, self._home.clock(), message))

    def leave(self, call: Call, tokens: Tokens, cost: int | None, seconds: float) -> None:
        """Record a cancelled call.

        A background call keeps its reservation, because the provider may continue.
        """
        if not self._background:
            self.fail(call, tokens, cost, seconds, None)

    def close(self) -> None:
        """Close the connection."""
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
            raise BudgetSpentError(
                f"no call of {call.model} can be noted, so no budget can hold it: {error.message}",
                hint=error.hint,
            ) from error
        if refused:
            raise refused[1]

    def _obstacle(self, spending: Spending, call: Call) -> tuple[str, UnavailableError] | None:
        """Return why a background call is not allowed, as a word and as an error."""
        total, task_total = spending.in_background(
            call.day, call.task, partial(is_priced, self._home.settings)
        )
        budgets = [("budget", None, total), ("task budget", call.task, task_total)]
        if self._is_by_subscription(call.model):
            if refused := self._token_obstacle(spending, call):
                return refused
            # A subscription's stated cost counts only within the task's own budget.
            budgets = budgets[1:]
        elif call.cost is None:
            return "no price", unpriced(call.model)
        cost = call.cost or 0
        for reason, task, spent in budgets:
            limit = _limit(self._permission.settings, task)
            if limit is not None and (limit <= 0 or spent + cost > limit):
                return reason, self._over_budget(task, spent, limit, cost)
        return None

    def _expected_tokens(self, model: str, prompt: Prompt) -> Tokens:
        """Return the tokens to reserve for a call, which only subscriptions need."""
        if not (self._background and self._is_by_subscription(model)):
            return Tokens()
        return reserved(self._home.settings, model, prompt)

    def _is_by_subscription(self, model: str) -> bool:
        return is_by_subscription(self._home.settings, model)

    def _token_obstacle(
        self, spending: Spending, call: Call
    ) -> tuple[str, UnavailableError] | None:
        is_chat = call.task == Task.CHAT
        key = CHAT_TOKENS if is_chat else TOKENS
        limit = self._permission.settings.whole(key)
        used, calls_made = spending.tokens_in_background(call.day, call.model, is_chat=is_chat)
        requested = call.tokens.input + call.tokens.output
        if limit <= 0:
            writer = "nacre writer set says which writer may take how many tokens a day"
            hint = f"{key} is 0: nacre config set {key} …" if is_chat else writer
            return "no tokens", BudgetSpentError(
                f"{call.model} may take no tokens by itself", hint=hint
            )
        calls = 0 if is_chat else self._permission.settings.whole(CALLS)
        if calls and calls_made >= calls:
            message = f"{call.model} may make {calls:,} calls a day, and has made them"
            return "calls", BudgetSpentError(
                message, hint=self._retry_hint(False, f"nacre config set {CALLS} …")
            )
        if used + requested <= limit:
            return None
        message = f"{call.model} may take {limit:,} tokens a day, {used:,} are taken, and a call may take {requested:,}"
        return "tokens", BudgetSpentError(
            message, hint=self._retry_hint(requested > limit, f"nacre config set {key} …")
        )

    def _over_budget(self, task: str | None, spent: int, limit: int, cost: int) -> BudgetSpentError:
        key = TASKS if task else DAILY
        command = (
            f"nacre config set {key} '{{{task} = …}}'" if task else f"nacre config set {key} …"
        )
        scope = f"{task} in the background" if task else "models in the background"
        if limit <= 0:
            return BudgetSpentError(f"{scope} may cost nothing: {key} is 0", hint=command)
        return BudgetSpentError(
            f"{scope} may cost {dollars(limit)} a day, {dollars(spent)} are used, and a call may take {dollars(cost)}",
            hint=self._retry_hint(cost > limit, command),
        )

    def _retry_hint(self, is_too_small: bool, command: str) -> str:
        """Return the hint when the call becomes possible: the next day, or a larger budget."""
        if is_too_small:
            return f"a day that holds such a call: {command}"
        return f"it goes on at {shown_minute(resets_at(self._home))}; for more: {command}"


class HomeAnswers:
    """Stores answers in a home, except those that seem to contain a secret; implements
    :class:`nacre.llm.failures.Answers`.
    """

    def __init__(self, home: Home, connection: OwnConnection, *, background: bool) -> None:
        self._home = home
        self._connection = connection
        self._background = background
        self._days = timedelta(days=home.settings.whole("models.cache_days"))

    def find(self, key: str) -> str | None:
        """Return the stored answer, if any."""
        with contextlib.suppress(NacreError), self._connection.reading() as spending:
            return spending.answer(key, self._home.now() - self._days)
        return None

    def keep(self, key: str, model: str, answer: str) -> None:
        """Store an answer."""
        if self._home.redactor.clean(answer) != answer or not _is_whole(answer):
            return
        if not self._background:
            note_answer(self._home, key, model, answer)
            return
        with contextlib.suppress(NacreError), self._connection.writing() as spending:
            spending.keep_answer(key, self._home.clock(), model, answer)

    def drop(self, key: str) -> None:
        """Delete an answer."""
        with contextlib.suppress(NacreError), self._connection.writing() as spending:
            spending.drop_answer(key)


def reserved(settings: Settings, model: str, prompt: Prompt) -> Tokens:
    """Return the tokens to reserve for a subscription's call."""
    overhead = provider_of(settings, model.partition(":")[0]).beside
    return Tokens(
        input=tokens_of(prompt) + overhead,
        output=min(prompt.output_tokens, _EXPECTED_ANSWER_TOKENS),
    )


def costs(home: Home, days: int = 30) -> CostReport:
    """Return the costs of the last days, including today, and the rest of today's budgets.

    Calls by subscription are free here, even if their command reports a cost.
    """
    fold_notes(home)
    day = home.today()
    since = day - timedelta(days=days - 1)
    spending = home.spending
    limits = {None: budget(home), **{task: budget(home, task) for task in home.settings[TASKS]}}
    budgets = [
        Budget(
            task,
            amount or 0,
            spending.in_background(day, task or "", partial(is_priced, home.settings))[
                1 if task else 0
            ],
        )
        for task, amount in limits.items()
    ]
    return CostReport(
        since,
        day,
        resets_at(home),
        [_without_unpriced_cost(home.settings, spent) for spent in spending.since(since)],
        spending.refusals(since),
        budgets,
        home.settings.flag("models.background"),
    )


def _without_unpriced_cost(settings: Settings, spent: Spent) -> Spent:
    return (
        spent
        if is_priced(settings, spent.model)
        else replace(spent, cost=0, unpriced=0, estimated=0)
    )


def left_today(home: Home, task: str) -> int:
    """Return the rest of a task's background budget for today, in millionths of a US dollar."""
    day = home.today()
    total, task_total = home.spending.in_background(day, task, partial(is_priced, home.settings))
    remaining = (budget(home) or 0) - total
    task_budget = budget(home, task)
    return max(0, remaining if task_budget is None else min(remaining, task_budget - task_total))


def tokens_left(home: Home, model: str) -> int | None:
    """Return a subscription's remaining background tokens for today, or ``None`` for a priced model."""
    if not is_by_subscription(home.settings, model):
        return None
    used, _ = home.spending.tokens_in_background(home.today(), model)
    return max(0, home.settings.whole(TOKENS) - used)


def calls_left(home: Home, model: str) -> int | None:
    """Return a subscription's remaining background calls for today, or ``None`` if unlimited or priced."""
    limit = home.settings.whole(CALLS)
    if not (limit and is_by_subscription(home.settings, model)):
        return None
    _, calls_made = home.spending.tokens_in_background(home.today(), model)
    return max(0, limit - calls_made)


def is_by_subscription(settings: Settings, model: str) -> bool:
    """Return True if calls are paid by a subscription and not by an API key, so that tokens are counted."""
    with contextlib.suppress(ModelRefusedError):
        provider = provider_of(settings, model.partition(":")[0])
        return provider.subscription and not key_of_billing(settings, provider)
    return False


def is_priced(settings: Settings, model: str) -> bool:
    """Return True if a model's costs count towards the daily budget."""
    return not is_by_subscription(settings, model)


def _is_whole(text: str) -> bool:
    """Return True if a text has no unpaired surrogates, which the database rejects."""
    return text.isascii() or text == text.encode("utf-8", "replace").decode()


def unpriced(model: str) -> BudgetSpentError:
    """Return the error for a background model with an unknown price."""
    price = f'{{"{model}" = {{price = {{input = …, output = …}}}}}}'
    return BudgetSpentError(
        f"nobody knows what {model} costs, so no budget can hold it",
        hint=f"say it in US dollars for a million tokens, 0 where it is free: "
        f"nacre config set models.capabilities '{price}'",
    )


@dataclass(frozen=True, slots=True)
class Sum:
    """Totals of calls with the same task, model or day.

    ``background`` counts background calls. See :class:`Spent`.
    """

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
    """Return totals by ``task``, ``model`` or ``day``: most expensive first, days in order."""
    groups: dict[str, list[Spent]] = {}
    for item in spent:
        groups.setdefault(str(getattr(item, by)), []).append(item)
    totals = [summed(name, group) for name, group in groups.items()]
    return sorted(
        totals,
        key=lambda total: total.name if by == "day" else (-total.cost, -total.calls, total.name),
    )


def summed(name: str, group: Sequence[Spent]) -> Sum:
    """Return the total of some calls."""
    return Sum(
        name,
        sum(item.calls for item in group),
        sum(item.calls for item in group if item.is_background),
        sum(item.failed for item in group),
        sum((item.tokens for item in group), Tokens()),
        sum(item.cost for item in group),
        sum(item.unpriced for item in group),
        sum(item.seconds for item in group),
        sum(item.estimated for item in group),
    )


# -- Concurrent questions ------------------------------------------------------
#
# A question is a function that asks a model and returns its answer. It does not use the home:
# callers read its input before and write results afterwards, in the order of the questions.


if TYPE_CHECKING:
    from concurrent import futures
else:
    futures = Module("concurrent.futures")

A = TypeVar("A")

_FINAL = (ModelUnavailableError, ModelRefusedError, BudgetSpentError)


@dataclass(frozen=True, slots=True)
class Answered(Generic[A]):
    """A successful answer, as opposed to an error or ``None``."""

    value: A


def ask_all(
    home: Home, questions: Sequence[Callable[[], A]], at_once: int, seconds: float | None = None
) -> list[Answered[A] | NacreError | None]:
    """Ask up to ``at_once`` questions concurrently and return the results in order.

    A failed question yields its error. ``None`` means not asked, or not answered within
    ``seconds``: once a model is unavailable, refuses or exceeds its budget, the remaining questions
    are skipped. Other threads of the home continue meanwhile. An interrupt closes the models, which
    ends running calls.
    """

    if not questions:
        return []
    is_stopped = threading.Event()

    def ask(question: Callable[[], A]) -> Answered[A] | NacreError | None:
        if is_stopped.is_set():
            return None
        try:
            return Answered(question())
        except (
            UnusableAnswerError,
            ModelUnavailableError,
            ModelRefusedError,
            BudgetSpentError,
        ) as error:
            if is_final(error):
                is_stopped.set()
            return error

    pool = futures.ThreadPoolExecutor(at_once, "nacre-asking")
    try:
        running = [
            pool.submit(contextvars.copy_context().run, ask, question) for question in questions
        ]
        with home.turn.aside():
            futures.wait(running, seconds)
    finally:
        is_stopped.set()
        pool.shutdown(wait=False, cancel_futures=True)
    return [
        future.result() if future.done() and not future.cancelled() else None for future in running
    ]


def is_final(answer: object) -> bool:
    """Return True for an error of the model itself, after which no more questions should be sent to it."""
    return isinstance(answer, _FINAL) and not isinstance(answer, PromptTooLongError)


# -- Requests ------------------------------------------------------------------


class CostRequest(Request, frozen=True, kw_only=True):
    """Show costs of the last days, including today."""

    days: Annotated[int, Meta(description="Days, including today.", ge=1, le=3650)] = 30


# -- Wrapped models ------------------------------------------------------------


_MAX_QUESTION_CHARACTERS = 160


_MAX_ANSWER_CHARACTERS = 300


def wrapped(home: Home, model: LanguageModel, *, background: bool) -> LanguageModel:
    """Return a model with ledger, answer cache, trace and the owner's limits."""
    connection = OwnConnection(home)
    books = HomeBooks(home, connection, background=background)
    call_trace = CallTrace(model.name, model.capabilities)
    model = Metered(model, books)
    if home.settings.whole("models.cache_days"):
        model = Cached(model, HomeAnswers(home, connection, background=background))
    return TurnTaking(model, home.turn, call_trace, home.settings.number("models.timeout_seconds"))


class CallTrace(local):
    """Adds each attempt of a call to the current run, if any. State is per thread."""

    def __init__(self, name: str, capabilities: Capabilities) -> None:
        self._name = name
        self._capabilities = capabilities
        self._began = 0.0

    def begin(self) -> None:
        """Start timing an attempt."""
        self._began = time.perf_counter()

    def answered(self, prompt: Prompt, completion: Completion) -> None:
        """Add a successful attempt."""
        step = Step(
            _title(prompt, completion),
            _brief_prompt(prompt),
            shorten(completion.text, _MAX_ANSWER_CHARACTERS)
            + (" (cut off)" if completion.is_cut else ""),
            seconds=self._restart_timer(),
            model=self._name,
            tokens=completion.tokens,
            cost=cost_of(completion, self._capabilities),
        )
        self._add(step)

    def failed(self, prompt: Prompt, error: NacreError) -> None:
        """Add a failed attempt with its estimated usage."""
        tokens, cost = of_failed(prompt, error, self._capabilities)
        step = Step(
            _title(prompt),
            _brief_prompt(prompt),
            shorten(error.message, _MAX_ANSWER_CHARACTERS),
            "failed",
            seconds=self._restart_timer(),
            model=self._name,
            tokens=tokens,
            cost=cost,
        )
        self._add(step)

    def _restart_timer(self) -> float:
        """Return the seconds since the last call and restart the timer."""
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


def _brief_prompt(prompt: Prompt) -> str:
    return (
        f"{prompt.version or prompt.task.value}: {shorten(prompt.text, _MAX_QUESTION_CHARACTERS)}"
    )


class TurnTaking:
    """A model whose calls are traced and let other threads of the home run; implements LanguageModel.

    ``seconds`` limits all prompts except conversations.
    """

    def __init__(
        self, model: LanguageModel, turn: Turn, call_trace: CallTrace, seconds: float
    ) -> None:
        self.name = model.name
        self.capabilities: Capabilities = model.capabilities
        self._model = model
        self._turn = turn
        self._call_trace = call_trace
        self._seconds = seconds

    def complete(self, prompt: Prompt) -> Completion:
        """Answer a prompt. Raises the model's errors."""
        if prompt.task is not Task.CHAT:  # limited by gateway.answer_seconds
            is_default = prompt.timeout_seconds == TIMEOUT_SECONDS
            seconds = self._seconds if is_default else min(prompt.timeout_seconds, self._seconds)
            prompt = replace(prompt, timeout_seconds=seconds)
        with self._turn.aside():
            return self._complete_traced(prompt)

    def _complete_traced(self, prompt: Prompt) -> Completion:
        if current() is None:
            return self._model.complete(prompt)
        self._call_trace.begin()
        try:
            completion = self._model.complete(prompt)
        except NacreError as error:
            self._call_trace.failed(prompt, error)
            raise
        self._call_trace.answered(prompt, completion)
        return completion

    def close(self) -> None:
        """Close the model."""
        self._model.close()


# -- Operations ----------------------------------------------------------------


def show_costs(home: Home, request: CostRequest) -> CostReport:
    """Show the costs of models and the rest of today's budgets."""
    return costs(home, max(1, request.days))
