"""The language model for each task, and the costs, budgets and traces of model calls."""

from __future__ import annotations

import contextlib
import contextvars
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from nacre.base import json as json_text
from nacre.base.environment import is_on_battery
from nacre.base.frozen import frozen
from nacre.base.lazy import Module, load
from nacre.base.locks import Turn
from nacre.base.spool import Spool, lines
from nacre.base.text import shorten, to_bytes
from nacre.base.times import day_interval, day_of
from nacre.errors import (
    BudgetSpentError,
    InvalidSettingsError,
    ModelRefusedError,
    ModelUnavailableError,
    NacreError,
    PromptTooLongError,
    UnusableAnswerError,
)
from nacre.home.home import Home, open_database
from nacre.home.views import Budget, CostReport
from nacre.llm.credentials import provider_of
from nacre.llm.failures import Cached, key_of_billing
from nacre.llm.providers import Metered, full_name, tokens_of
from nacre.operations import operation
from nacre.protocols import LanguageModel
from nacre.settings import Settings
from nacre.store.journal import Spending
from nacre.store.schema import Database
from nacre.values.models import (
    DOLLAR,
    TIMEOUT_SECONDS,
    AskedQuestion,
    Call,
    Capabilities,
    Completion,
    Health,
    Prompt,
    Tokens,
    Trace,
    dollars,
)
from nacre.values.session import Task

NONE = "none"


def name_for(home: Home, task: Task) -> str:
    """Return a task's model as ``provider:model``, with aliases resolved, or ``none``."""
    return full_name(set_for(home.settings, task))


def set_for(settings: Settings, task: Task) -> str:
    """Return a task's model as written in the settings.

    Dreams use the writer's model unless another model is set for them.
    """
    name = "" if task is Task.TEST else settings[f"models.{task.value}"]
    name = name or (settings[f"models.{Task.EXTRACTION.value}"] if task is Task.DREAM else "")
    return name or settings.text("models.default") or NONE


def has_writer(settings: Settings) -> bool:
    """Return True if a model is configured for background writing."""
    name = settings[f"models.{Task.EXTRACTION.value}"] or settings.text("models.default") or NONE
    return settings.flag("models.background") and name != NONE


def model_for(home: Home, task: Task, *, background: bool) -> LanguageModel | None:
    """Return the model for a task, or ``None`` if none is configured or background work is off.

    ``background``: work that the user did not explicitly request, such as learning from sessions.
    It needs ``models.background`` and is limited by budgets. All calls are counted and traced, and
    recent answers are reused. Raises ModelRefusedError if the model cannot be opened.
    """
    name = name_for(home, task)
    if name == NONE or (background and not home.settings.flag("models.background")):
        return None
    model: LanguageModel = load("nacre.home.spending:wrap")(
        home, home.load_model(home.settings, name), background=background
    )
    return model


# -- Permission for background work --------------------------------------------
#
# Permission is checked before every call, because a run can take hours.


_WRITER_TASKS = (Task.EXTRACTION, Task.DREAM)


def is_set(home: Home) -> bool:
    """Return True if a model is configured for background writing."""
    return home.settings.flag("models.background") and name_for(home, Task.EXTRACTION) != NONE


def rests(settings: Settings) -> bool:
    """Return True if the writer is paused or the machine runs on battery."""
    return settings.flag("writer.paused") or is_on_battery()


class Permission:
    """The current permission for background work, which follows changes of the settings."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._settings = home.settings
        self._seen: tuple[int, ...] | None = None

    @property
    def settings(self) -> Settings:
        """The current settings. If the config file cannot be read, the writer is paused."""
        version = _config_version(self._settings)
        if version != self._seen:
            try:
                self._settings = self._settings.read_again()
            except InvalidSettingsError:
                return self._settings.having("writer.paused", value=True)
            self._seen = version
        return self._settings

    def obstacle(self, task: str) -> str | None:
        """Return the reason why a task must not run now, or ``None``."""
        settings = self.settings
        if task != Task.CHAT and not settings.flag("models.background"):
            return "background work of models is off"
        if task not in _WRITER_TASKS:
            return None
        if name_for(replace(self._home, settings=settings), Task(task)) != name_for(
            self._home, Task(task)
        ):
            return "another writer is set"
        return "the writer is paused, or waits for mains power" if rests(settings) else None


def _config_version(settings: Settings) -> tuple[int, ...]:
    """Return a value that identifies the config file's version. It is empty without a file."""
    with suppress(OSError):
        stat = settings.config.stat()
        return stat.st_ino, stat.st_size, stat.st_mtime_ns
    return ()


# -- Spool of traces, calls and answers ----------------------------------------
#
# Inserting a line twice has no effect; see nacre.base.spool.


SPOOL = "notes"
MOST_TRACES, MOST_QUESTIONS = 500, 2_000
ANSWERS_KEPT = timedelta(days=7)
"""Maximum age at which a model's answer is reused."""
CALLS_KEPT = timedelta(days=400)
_MAX_SPOOL_BYTES = 20_000_000
"""Maximum spool size in bytes. Further traces and answers are dropped."""


def note(home: Home, record: Trace | AskedQuestion) -> None:
    """Spool a trace or a question, which must already be redacted."""
    if home.settings.whole("traces.keep_days"):
        name = b"trace" if isinstance(record, Trace) else b"question"
        _append(home, b'{"%b":%b}' % (name, _as_json(record)), at_most=_MAX_SPOOL_BYTES)


def note_call(home: Home, call: Call) -> None:
    """Spool a model call made outside background work."""
    _append(home, b'{"call":' + _as_json(call) + b"}")


def note_answer(home: Home, key: str, model: str, answer: str) -> None:
    """Spool a model's answer so that the same prompt can reuse it."""
    answer_record = {"key": key, "at": home.clock(), "model": model, "answer": answer}
    _append(home, b'{"answer":' + _as_json(answer_record) + b"}", at_most=_MAX_SPOOL_BYTES)


def noted_calls(home: Home) -> Iterator[Call]:
    """Yield spooled calls that are not in the database yet, and keep them in the spool."""
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
    with home.transaction():
        for path in spools:
            with contextlib.suppress(FileNotFoundError):  # another process has moved the spool
                for line in lines(path):
                    _fold(home, line)
        home.traces.prune(traces_since, MOST_TRACES, MOST_QUESTIONS)
        home.spending.prune(day_of(now - CALLS_KEPT), now - ANSWERS_KEPT)
    for path in spools:
        path.unlink(missing_ok=True)


class _Answer(msgspec.Struct):
    key: str
    at: datetime
    model: str
    answer: str


class _Note(msgspec.Struct):
    """A line of the spool, with one trace, question, call or answer."""

    trace: Trace | None = None
    question: AskedQuestion | None = None
    call: Call | None = None
    answer: _Answer | None = None


def _fold(home: Home, line: dict[str, Any]) -> None:
    with contextlib.suppress(msgspec.ValidationError):
        note = json_text.convert(line, _Note)
        if note.trace:
            home.traces.add(note.trace)
        if note.question:
            home.traces.add_question(note.question)
        if note.call:
            home.spending.add(note.call)
            if note.call.outcome == "done":
                home.spending.recover(note.call.model)
        if note.answer:
            home.spending.keep_answer(**msgspec.structs.asdict(note.answer))


def _as_json(value: object) -> bytes:
    """Encode a value as JSON, with question marks for unpaired surrogates."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return to_bytes(json.dumps(msgspec.to_builtins(value), ensure_ascii=False))


def _append(home: Home, line: bytes, at_most: int | None = None) -> None:
    if not home.database.unwritable:
        Spool(home.folder, SPOOL).append(line, at_most)


# -- Budgets -------------------------------------------------------------------
#
# A background call reserves its maximum cost before it starts and records the actual cost
# afterwards. Both happen in transactions on a separate connection, so that concurrent calls from
# several processes respect the budget together. A failed call is counted with the tokens sent,
# unless the provider rejected it. If a process ends during a call, the reservation stays. Other
# calls are recorded in the spool and not limited.


DAILY, MONTHLY = "models.daily_budget_usd", "models.monthly_budget_usd"
TOKENS, CHAT_TOKENS = "writer.tokens_per_day", "gateway.tokens_per_day"
_CAPS = {"day": DAILY, "month": MONTHLY}


_EXPECTED_ANSWER_TOKENS = 2_000
"""Estimated number of output tokens of an answer, used until it arrives."""

_MAX_ERROR_CHARACTERS = 300
_MAX_TEXT_CHARACTERS = 400
"""Maximum length of a prompt or answer in a trace."""


def resets_at(home: Home) -> datetime:
    """Return the next local midnight, when the daily limits are reset."""
    return day_interval(home.today())[1]


def budgets(settings: Settings, spending: Spending, today: date) -> tuple[Budget, Budget]:
    """Return the daily and monthly caps for background work, with the amounts spent."""
    first_days = {"day": today, "month": today.replace(day=1)}
    daily, monthly = (
        Budget(
            period,
            int(Decimal(str(settings[_CAPS[period]])) * DOLLAR),
            spending.background_cost(since),
        )
        for period, since in first_days.items()
    )
    return daily, monthly


def over_budget(
    limits: Iterable[Budget], cost: int, scope: str = "models"
) -> BudgetSpentError | None:
    """Return an error if a background call would exceed a cap, or ``None``."""
    for limit in limits:
        key, period = _CAPS[limit.period], limit.period
        if limit.most <= 0:
            return BudgetSpentError(
                f"{scope} has no background budget: {key} is 0", hint=f"nacre config set {key} …"
            )
        if limit.spent + cost > limit.most:
            resumes = "it continues tomorrow" if period == "day" else "it continues next month"
            when = "to allow the call" if cost > limit.most else f"{resumes}; to raise the limit"
            return BudgetSpentError(
                f"{scope} can spend {dollars(limit.most)} a {period} in the background, of which "
                f"{dollars(limit.spent)} is already spent, and this call could cost {dollars(cost)}",
                hint=f"{when}: nacre config set {key} …",
            )
    return None


class OwnConnection:
    """A separate connection to the ledger of calls, opened on first use. Any thread can use it."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._lock = Lock()
        self._database: Database | None = None

    @contextlib.contextmanager
    def writing(self) -> Iterator[Spending]:
        """Yield the ledger in a short write transaction. Raises StoreBusyError, UnusableStoreError."""
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
    """The record of a home's model calls and their costs.

    Implements :class:`nacre.llm.providers.Books`.
    """

    def __init__(self, home: Home, connection: OwnConnection, *, background: bool) -> None:
        self._home = home
        self._connection = connection
        self._background = background
        self._permission = Permission(home)

    def begin(self, model: str, prompt: Prompt, most: int | None) -> Call:
        """Record the start of a call. ``most`` is the highest possible cost of the call.

        Raises BudgetSpentError, or UnavailableError if the call is not allowed.
        """
        problem = self._permission.obstacle(prompt.task) if self._background else None
        if problem:
            raise BudgetSpentError(f"{model} cannot be called now: {problem}", hint="nacre writer")
        is_free = is_by_subscription(self._home.settings, model)
        call = Call(
            self._home.ids(),
            self._home.clock(),
            self._home.today(),
            prompt.task.value,
            model,
            self._background,
            tokens=reserve_for(self._home.settings, model, prompt) if is_free else Tokens(),
            cost=0 if is_free else most,
        )
        if self._background:
            self._reserve(call)
        return call

    def end(self, call: Call, error: NacreError | None = None) -> None:
        """Record the end of a call, with its actual or estimated cost.

        An abandoned call in the background stays ``open``, because the provider might continue. The
        call's cost stays reserved. A call that a subscription covers is free, even if the command
        reports a cost.
        """
        if is_by_subscription(self._home.settings, call.model):
            call = replace(call, cost=0)
        if not self._background:
            is_open = call.outcome == "open"
            note_call(self._home, replace(call, outcome="failed") if is_open else call)
        elif call.outcome != "open":
            with contextlib.suppress(NacreError), self._connection.writing() as spending:
                spending.finish(call)
                if error is None:
                    spending.recover(call.model)
                elif isinstance(error, ModelUnavailableError) or type(error) is ModelRefusedError:
                    text = f"{error.message}; {error.hint}" if error.hint else error.message
                    text = shorten(self._home.redactor.clean(text), _MAX_ERROR_CHARACTERS)
                    spending.fail(Health(call.model, self._home.clock(), text))

    def trace(self, call: Call, prompt: Prompt, answer: str, error: str) -> None:
        """Store the prompt and answer of a call, without secrets."""
        prompt_text, answer, error = (
            self._home.redactor.clean(text)[:_MAX_TEXT_CHARACTERS]
            for text in ("\n\n".join(filter(None, (prompt.shared, prompt.text))), answer, error)
        )
        trace = Trace(
            call.id,
            prompt.task,
            call.at,
            call.model,
            prompt_text,
            answer,
            error,
            call.tokens,
            call.cost,
            call.seconds,
        )
        note(self._home, trace)

    def close(self) -> None:
        self._connection.close()

    def _reserve(self, call: Call) -> None:
        try:
            with self._connection.writing() as spending:
                refused = self._obstacle(spending, call)
                if refused is None:
                    spending.add(call)
        except NacreError as error:
            raise BudgetSpentError(
                f"calls to {call.model} cannot be recorded, so no budget can limit them: {error.message}",
                hint=error.hint,
            ) from error
        if refused:
            raise refused

    def _obstacle(self, spending: Spending, call: Call) -> BudgetSpentError | None:
        settings = self._permission.settings
        if is_by_subscription(self._home.settings, call.model):
            return self._token_obstacle(spending, call)
        if call.cost is None:
            return unpriced(call.model)
        return over_budget(budgets(settings, spending, call.day), call.cost)

    def _token_obstacle(self, spending: Spending, call: Call) -> BudgetSpentError | None:
        is_chat = call.task == Task.CHAT
        key = CHAT_TOKENS if is_chat else TOKENS
        limit = self._permission.settings.whole(key)
        used, _ = spending.tokens_in_background(call.day, call.model, is_chat=is_chat)
        requested = call.tokens.input + call.tokens.output
        command = f"nacre config set {key} …"
        if limit <= 0:
            writer = "nacre writer set sets a writer's daily tokens"
            return BudgetSpentError(
                f"{call.model} has no tokens for background work",
                hint=f"{key} is 0: {command}" if is_chat else writer,
            )
        if used + requested <= limit:
            return None
        when = (
            "to allow the call"
            if requested > limit
            else "it continues tomorrow; to raise the limit"
        )
        return BudgetSpentError(
            f"{call.model} can use {limit:,} tokens a day, {used:,} are used, and this call can use {requested:,}",
            hint=f"{when}: {command}",
        )


class HomeAnswers:
    """Storage for a home's model answers. Implements :class:`nacre.llm.failures.Answers`.

    Answers that seem to contain a secret are not stored.
    """

    def __init__(self, home: Home, connection: OwnConnection, *, background: bool) -> None:
        self._home = home
        self._connection = connection
        self._background = background

    def find(self, key: str) -> str | None:
        """Return the stored answer, if any."""
        with contextlib.suppress(NacreError), self._connection.reading() as spending:
            return spending.answer(key, self._home.now() - ANSWERS_KEPT)
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


def reserve_for(settings: Settings, model: str, prompt: Prompt) -> Tokens:
    """Return the number of tokens to reserve for a call that a subscription covers."""
    overhead = provider_of(settings, model.partition(":")[0]).beside
    return Tokens(
        input=tokens_of(prompt) + overhead,
        output=min(prompt.output_tokens, _EXPECTED_ANSWER_TOKENS),
    )


def tighter_budget(home: Home) -> Budget:
    """Return the daily or monthly budget, whichever has less left."""
    return min(budgets(home.settings, home.spending, home.today()), key=lambda cap: cap.left)


def tokens_left(home: Home, model: str) -> int | None:
    """Return the tokens of a subscription that background work can still use today.

    The result is ``None`` for a model without a subscription.
    """
    if not is_by_subscription(home.settings, model):
        return None
    used, _ = home.spending.tokens_in_background(home.today(), model)
    return max(0, home.settings.whole(TOKENS) - used)


def is_by_subscription(settings: Settings, model: str) -> bool:
    """Return True if a subscription covers a model's calls.

    Tokens are then limited instead of costs.
    """
    with contextlib.suppress(ModelRefusedError):
        provider = provider_of(settings, model.partition(":")[0])
        return provider.subscription and not key_of_billing(settings, provider)
    return False


def _is_whole(text: str) -> bool:
    """Return True if a text has no unpaired surrogates, which the database would reject."""
    return text.isascii() or text == to_bytes(text).decode()


def unpriced(model: str) -> BudgetSpentError:
    """Return the error for a background model with an unknown price."""
    price = f'{{"{model}" = {{price = {{input = …, output = …}}}}}}'
    return BudgetSpentError(
        f"the price of {model} is unknown, so no budget can limit it",
        hint=f"give it in US dollars per million tokens, or 0: "
        f"nacre config set models.capabilities '{price}'",
    )


# -- Concurrent questions ------------------------------------------------------
#
# A question is a function that asks a model and returns its answer, without using the home. Callers
# read the input before and write the results afterwards, in the order of the questions.


if TYPE_CHECKING:
    from concurrent import futures
else:
    futures = Module("concurrent.futures")

A = TypeVar("A")

_FINAL = (ModelUnavailableError, ModelRefusedError, BudgetSpentError)


@frozen
class Answer(Generic[A]):
    """The answer to a question that succeeded."""

    value: A


def ask_all(
    home: Home, questions: Sequence[Callable[[], A]], at_once: int, seconds: float | None = None
) -> list[Answer[A] | NacreError | None]:
    """Ask up to ``at_once`` questions at the same time, and return the results in order.

    A result is an answer, an error, or ``None`` if the question was not asked or took longer
    than ``seconds``. No more questions are asked if a model is unavailable, refuses or exceeds
    its budget. Other threads can use the home meanwhile. An interrupt ends running calls.
    """

    if not questions:
        return []
    is_stopped = threading.Event()

    def ask(question: Callable[[], A]) -> Answer[A] | NacreError | None:
        if is_stopped.is_set():
            return None
        try:
            return Answer(question())
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
    """Return True if an answer is an error that other questions to the model would also get."""
    return isinstance(answer, _FINAL) and not isinstance(answer, PromptTooLongError)


# -- Wrapped models ------------------------------------------------------------


def wrap(home: Home, model: LanguageModel, *, background: bool) -> LanguageModel:
    """Return a model that limits, caches and records the calls of the given model."""
    connection = OwnConnection(home)
    model = Metered(model, HomeBooks(home, connection, background=background))
    model = Cached(model, HomeAnswers(home, connection, background=background))
    return TurnTaking(model, home.turn, home.settings.number("models.timeout_seconds"))


class TurnTaking:
    """A model that lets other threads use the home during calls. Implements LanguageModel.

    ``seconds`` limits the time for each prompt, except in conversations.
    """

    def __init__(self, model: LanguageModel, turn: Turn, seconds: float) -> None:
        self.name = model.name
        self.capabilities: Capabilities = model.capabilities
        self._model = model
        self._turn = turn
        self._seconds = seconds

    def complete(self, prompt: Prompt) -> Completion:
        """Answer a prompt. Raises the model's errors."""
        if prompt.task is not Task.CHAT:  # the gateway limits conversations
            is_default = prompt.timeout_seconds == TIMEOUT_SECONDS
            seconds = self._seconds if is_default else min(prompt.timeout_seconds, self._seconds)
            prompt = replace(prompt, timeout_seconds=seconds)
        with self._turn.aside():
            return self._model.complete(prompt)

    def close(self) -> None:
        self._model.close()


# -- Operations ----------------------------------------------------------------


@operation("cost")
def show_costs(home: Home) -> CostReport:
    """Show the costs of models today and this month, and what is left of the budgets."""
    fold_notes(home)
    today = home.today()
    return CostReport(
        today,
        budgets(home.settings, home.spending, today),
        tuple(home.spending.by_task(today.replace(day=1), today)),
        home.settings.flag("models.background"),
    )
