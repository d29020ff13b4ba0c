"""The language model for each task, and the costs, budgets and records of model calls."""

from __future__ import annotations

import contextlib
import contextvars
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from nacre.base import json as json_text
from nacre.base.lazy import Module
from nacre.base.spool import Spool, lines
from nacre.base.text import shorten, to_bytes, to_text
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
from nacre.llm.failures import REPAIR, key_of_billing
from nacre.llm.providers import (
    as_counted,
    cost_of,
    failed_usage,
    full_name,
    key_of,
    max_cost,
    tokens_of,
)
from nacre.operations import operation
from nacre.protocols import LanguageModel
from nacre.settings import Settings
from nacre.store.journal import TRACE_CHARACTERS, Spending
from nacre.store.schema import Database
from nacre.values.models import (
    DOLLAR,
    TIMEOUT_SECONDS,
    AskedQuestion,
    Call,
    Completion,
    Health,
    Prompt,
    Tokens,
    dollars,
)
from nacre.values.session import Task

NONE = "none"


def name_for(home: Home, task: Task) -> str:
    """Return the model for a task as ``provider:model`` with aliases resolved, or ``none``."""
    return full_name(set_for(home.settings, task))


def set_for(settings: Settings, task: Task) -> str:
    """Return the model that the settings specify for a task.

    Dreams and conversations use the writer's model by default.
    """
    name = "" if task is Task.TEST else settings[f"models.{task.value}"]
    if task in (Task.DREAM, Task.CHAT):
        name = name or settings[f"models.{Task.EXTRACTION.value}"]
    return name or settings.text("models.default") or NONE


def has_writer(settings: Settings) -> bool:
    """Return True if the settings allow a model to write memories in the background."""
    return settings.flag("models.background") and set_for(settings, Task.EXTRACTION) != NONE


def model_for(home: Home, task: Task, *, background: bool) -> LanguageModel | None:
    """Return the model for a task, or ``None`` if no model may do it.

    ``background`` marks work that the user did not request, such as learning from sessions. It
    needs ``models.background`` and is limited by budgets. Raises ModelRefusedError.
    """
    name = name_for(home, task)
    if name == NONE or (background and not home.settings.flag("models.background")):
        return None
    return CountedModel(home, home.load_model(home.settings, name), background=background)


# -- Permission for background work --------------------------------------------
#
# Permission is checked before every call, because a run can take hours.


_WRITER_TASKS = (Task.EXTRACTION, Task.DREAM)


def current_settings(home: Home) -> Settings:
    """Return the settings, including later changes to the config file.

    If that file cannot be read, the writer is paused.
    """
    try:
        return home.settings.read_again()
    except InvalidSettingsError:
        return home.settings.having("writer.paused", value=True)


def obstacle(home: Home, task: Task) -> str | None:
    """Return why a background task must not run now, or ``None`` if it may run."""
    settings = current_settings(home)
    if task is not Task.CHAT and not settings.flag("models.background"):
        return "background work of models is off"
    if task not in _WRITER_TASKS:
        return None
    if full_name(set_for(settings, task)) != name_for(home, task):
        return "another writer is set"
    return "the writer is paused" if settings.flag("writer.paused") else None


# -- Spool of questions and requested calls ------------------------------------
#
# Inserting a line twice has no effect; see nacre.base.spool.


SPOOL = "notes"
MOST_TRACES, MOST_QUESTIONS = 500, 2_000
REUSE_PERIOD = timedelta(days=7)
"""Maximum age at which a model's answer is reused."""
_CALL_PERIOD = timedelta(days=400)
_MAX_SPOOL_BYTES = 20_000_000
"""Maximum spool size in bytes. Further questions are dropped."""


def note(home: Home, question: AskedQuestion) -> None:
    """Spool a question that someone asked the memory. It must already be redacted."""
    if home.settings.whole("traces.keep_days"):
        _append(home, {"question": question}, at_most=_MAX_SPOOL_BYTES)


def note_call(home: Home, call: Call) -> None:
    """Spool a model call that was not background work."""
    _append(home, {"call": call})


def _append(home: Home, record: dict[str, object], at_most: int | None = None) -> None:
    if not home.database.unwritable:
        line = json.dumps(msgspec.to_builtins(record), ensure_ascii=False)
        Spool(home.folder, SPOOL).append(to_bytes(line), at_most)


def noted_calls(home: Home) -> Iterator[Call]:
    """Yield the spooled calls that are not in the database yet, without removing them."""
    notes = Spool(home.folder, SPOOL)
    for path in (*notes.leftovers(), notes.path):
        with suppress(OSError):
            for line in lines(path):
                with suppress(msgspec.ValidationError):
                    if "call" in line:
                        yield json_text.convert(line["call"], Call)


def fold_notes(home: Home) -> None:
    """Move the spool into the database, and delete expired records. Raises StoreBusyError."""
    if home.database.unwritable:
        return
    spools = list(Spool(home.folder, SPOOL).take(home.ids))
    if not spools:
        return
    with home.transaction():
        for path in spools:
            with suppress(FileNotFoundError):  # another process has moved the spool
                for line in lines(path):
                    _fold(home, line)
        now = home.now()
        traces_since = now - timedelta(days=home.settings.whole("traces.keep_days"))
        home.questions.prune(traces_since, MOST_QUESTIONS)
        home.spending.prune(
            day_of(now - _CALL_PERIOD), traces_since, now - REUSE_PERIOD, MOST_TRACES
        )
    for path in spools:
        path.unlink(missing_ok=True)


def _fold(home: Home, line: dict[str, Any]) -> None:
    with suppress(msgspec.ValidationError):
        if "question" in line:
            home.questions.add(json_text.convert(line["question"], AskedQuestion))
        if "call" in line:
            call = json_text.convert(line["call"], Call)
            home.spending.add(call)
            if call.outcome == "done":
                home.spending.recover(call.model)


# -- Budgets -------------------------------------------------------------------
#
# A background call reserves its maximum cost before it starts and records the actual cost
# afterwards, so that concurrent calls from several processes respect the budget together. A failed
# call is counted with the tokens sent, unless the provider rejected it. If a process ends during a
# call, the reservation stays. Other calls are not limited.


DAILY = "models.daily_budget_usd"
TOKENS, CHAT_TOKENS = "writer.tokens_per_day", "gateway.tokens_per_day"


_EXPECTED_ANSWER_TOKENS = 2_000
"""Estimated number of output tokens of an answer, used until it arrives."""

_MAX_ERROR_CHARACTERS = 300
_MAX_REUSED_CHARACTERS = 40_000
"""Maximum length of an answer that is stored to be reused."""


def resets_at(home: Home) -> datetime:
    """Return the next local midnight, when the daily limits start again."""
    return day_interval(home.today())[1]


def daily_budget(home: Home, spending: Spending | None = None) -> Budget:
    """Return today's limit for background work and the amount already spent."""
    most = int(Decimal(str(current_settings(home)[DAILY])) * DOLLAR)
    return Budget(most, (spending or home.spending).background_cost(home.today()))


def over_budget(
    limit: Budget,
    cost: int,
    scope: str = "models",
    key: str = DAILY,
    form: Callable[[int], str] = dollars,
) -> BudgetSpentError | None:
    """Return an error if a background call would exceed a daily limit, or else ``None``.

    ``key`` is the setting that contains the limit.
    """
    command = f"nacre config set {key} …"
    if limit.most <= 0:
        return BudgetSpentError(f"{scope} has no background budget: {key} is 0", hint=command)
    if limit.spent + cost <= limit.most:
        return None
    when = "to allow the call" if cost > limit.most else "it continues tomorrow; to raise the limit"
    return BudgetSpentError(
        f"{scope} can spend {form(limit.most)} a day in the background, of which "
        f"{form(limit.spent)} is already spent, and this call could cost {form(cost)}",
        hint=f"{when}: {command}",
    )


def unpriced(model: str) -> BudgetSpentError:
    """Return the error for a background call of a model whose price is unknown."""
    price = f'{{"{model}" = {{price = {{input = …, output = …}}}}}}'
    return BudgetSpentError(
        f"the price of {model} is unknown, so no budget can limit it",
        hint=f"give it in US dollars per million tokens, or 0: "
        f"nacre config set models.capabilities '{price}'",
    )


def is_by_subscription(settings: Settings, model: str) -> bool:
    """Return True if a subscription pays for a model. Tokens are then limited, not costs."""
    with suppress(ModelRefusedError):
        provider = provider_of(settings, model.partition(":")[0])
        return provider.subscription and not key_of_billing(settings, provider)
    return False


def tokens_left(home: Home, model: str) -> int | None:
    """Return how many tokens background work may still use today under a model's subscription.

    Return ``None`` if the model has no subscription.
    """
    if not is_by_subscription(home.settings, model):
        return None
    used, _ = home.spending.tokens_in_background(home.today(), model)
    return max(0, home.settings.whole(TOKENS) - used)


# -- Counted models ------------------------------------------------------------


class Ledger:
    """A home's record of model calls, which can be used from any thread."""

    def __init__(self, home: Home, *, background: bool) -> None:
        self._home = home
        self._background = background
        self._lock = threading.Lock()
        self._database: Database | None = None

    def reserve(self, call: Call, refusal: Callable[[Spending], NacreError | None]) -> None:
        """Record a background call with its maximum cost before it starts.

        Raises the error that ``refusal`` returns, or BudgetSpentError if recording fails.
        """
        if not self._background:
            return
        try:
            with self._writing() as spending:
                error = refusal(spending)
                if error is None:
                    spending.add(call)
        except NacreError as problem:
            raise BudgetSpentError(
                f"calls to {call.model} cannot be recorded, so no budget can limit them: {problem.message}",
                hint=problem.hint,
            ) from problem
        if error:
            raise error

    def end(self, call: Call, error: BaseException | None = None) -> None:
        """Record the end of a call. The reserved cost of an ``open`` call stays recorded."""
        if not self._background:
            note_call(self._home, call)
            return
        with suppress(NacreError), self._writing() as spending:
            spending.finish(call)
            if call.outcome == "done":
                spending.recover(call.model)
            elif call.outcome == "failed" and (
                isinstance(error, ModelUnavailableError) or type(error) is ModelRefusedError
            ):
                text = f"{error.message}; {error.hint}" if error.hint else error.message
                text = shorten(self._home.redactor.clean(text), _MAX_ERROR_CHARACTERS)
                spending.fail(Health(call.model, self._home.clock(), text))

    def answer(self, key: str) -> str | None:
        """Return a recent answer to the same prompt, identified by ``key``, or ``None``."""
        with suppress(NacreError), self._lock:
            return Spending(self._open()).answer(key, self._home.now() - REUSE_PERIOD)
        return None

    def drop_answer(self, key: str) -> None:
        """Delete the stored answer to a prompt, so that it is not used again."""
        with suppress(NacreError), self._writing() as spending:
            spending.drop_answer(key)

    def close(self) -> None:
        """Close the database connection. The next call opens it again."""
        with self._lock:
            if self._database:
                self._database.close()
            self._database = None

    @contextlib.contextmanager
    def _writing(self) -> Iterator[Spending]:
        with self._lock:
            database = self._open()
            with database.transaction():
                yield Spending(database)

    def _open(self) -> Database:
        if self._home.database.unwritable:
            raise self._home.database.unwritable
        if self._database is None:
            self._database = open_database(self._home.settings)
        return self._database


class CountedModel:
    """A language model that limits and records its calls, and reuses answers to equal prompts.

    Model tests, conversations and unusable answers are never reused. Retries within a library count
    as one call.
    """

    def __init__(self, home: Home, model: LanguageModel, *, background: bool) -> None:
        self.name = model.name
        self.capabilities = model.capabilities
        self._home = home
        self._model = model
        self._background = background
        self._ledger = Ledger(home, background=background)
        self._is_free = is_by_subscription(home.settings, model.name)
        self._is_closed = False

    def complete(self, prompt: Prompt) -> Completion:
        """Return the answer to a prompt. Raises BudgetSpentError and the model's errors."""
        if prompt.task is not Task.CHAT:  # the gateway limits conversations
            limit = self._home.settings.number("models.timeout_seconds")
            is_default = prompt.timeout_seconds == TIMEOUT_SECONDS
            seconds = limit if is_default else min(prompt.timeout_seconds, limit)
            prompt = replace(prompt, timeout_seconds=seconds)
        with self._home.turn.aside():
            key = self._reusable_key(prompt)
            answer = self._ledger.answer(key) if key else None
            if answer is not None:
                return Completion(answer, Tokens(), self.name, is_repeated=True)
            return self._call(prompt, key)

    def close(self) -> None:
        """Cancel running calls. Their maximum costs stay recorded."""
        self._is_closed = True
        self._model.close()
        self._ledger.close()

    def _reusable_key(self, prompt: Prompt) -> str | None:
        if prompt.task in (Task.TEST, Task.CHAT):
            return None
        unusable, repair, _ = prompt.text.rpartition(REPAIR)
        if repair:
            self._ledger.drop_answer(self._key_of(replace(prompt, text=unusable)))
            return None
        return self._key_of(prompt)

    def _key_of(self, prompt: Prompt) -> str:
        return f"{self.name} {prompt.version} {key_of(prompt)}"

    def _call(self, prompt: Prompt, key: str | None) -> Completion:
        call = self._reserved(prompt)
        began = time.perf_counter()
        try:
            completion = self._model.complete(prompt)
        except BaseException as error:
            is_over = isinstance(error, NacreError) and not self._is_closed
            if is_over or not self._background:
                tokens, cost = failed_usage(prompt, error, self.capabilities)
                call = self._ended(call, tokens, cost, "failed")
            seconds, text = time.perf_counter() - began, str(error) or type(error).__name__
            self._ledger.end(replace(call, seconds=seconds, error=self._text(text)), error)
            raise
        text = completion.text
        is_reused = key and not completion.is_cut and len(text) <= _MAX_REUSED_CHARACTERS
        if not (is_reused and call.prompt and self._clean(text) == text):
            key, text = None, self._text("\n".join([*completion.more.get("steps", ()), text]))
        cost = cost_of(completion, self.capabilities)
        call = self._ended(call, completion.tokens, cost, "done")
        seconds = time.perf_counter() - began
        self._ledger.end(replace(call, seconds=seconds, answer=text, key=key))
        return completion

    def _reserved(self, prompt: Prompt) -> Call:
        call = Call(
            self._home.ids(),
            self._home.clock(),
            self._home.today(),
            prompt.task.value,
            self.name,
            self._background,
            self._expected_tokens(prompt) if self._is_free else Tokens(),
            0 if self._is_free else max_cost(prompt, self.capabilities),
            prompt=self._text("\n\n".join(filter(None, (prompt.shared, prompt.text)))),
        )
        problem = obstacle(self._home, prompt.task) if self._background else None
        if problem:
            raise BudgetSpentError(
                f"{self.name} cannot be called now: {problem}", hint="nacre writer"
            )
        self._ledger.reserve(
            replace(call, prompt=""), lambda spending: self._refusal(spending, call)
        )
        return call

    def _expected_tokens(self, prompt: Prompt) -> Tokens:
        overhead = provider_of(self._home.settings, self.name.partition(":")[0]).beside
        output = min(prompt.output_tokens, _EXPECTED_ANSWER_TOKENS)
        return Tokens(input=tokens_of(prompt) + overhead, output=output)

    def _refusal(self, spending: Spending, call: Call) -> BudgetSpentError | None:
        if call.cost is None:
            return unpriced(call.model)
        if not self._is_free:
            return over_budget(daily_budget(self._home, spending), call.cost)
        is_chat = call.task == Task.CHAT
        key = CHAT_TOKENS if is_chat else TOKENS
        used, _ = spending.tokens_in_background(call.day, call.model, is_chat=is_chat)
        limit = Budget(current_settings(self._home).whole(key), used)
        requested = call.tokens.input + call.tokens.output
        return over_budget(limit, requested, call.model, key, "{:,} tokens".format)

    def _ended(self, call: Call, tokens: Tokens, cost: Decimal | None, outcome: str) -> Call:
        micros = 0 if self._is_free else as_counted(cost)
        return replace(call, tokens=tokens, cost=micros, outcome=outcome)

    def _text(self, text: str) -> str:
        return self._clean(text)[:TRACE_CHARACTERS]

    def _clean(self, text: str) -> str:
        # Unpaired surrogates are removed, too, because the database would reject them.
        is_kept = self._home.settings.whole("traces.keep_days")
        return to_text(to_bytes(self._home.redactor.clean(text))) if is_kept else ""


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


def ask_all(
    home: Home, questions: Sequence[Callable[[], A]], at_once: int, seconds: float | None = None
) -> list[A | NacreError | None]:
    """Call up to ``at_once`` functions at the same time, and return their results in order.

    A result is an answer, an error, or ``None`` for a question that was not asked or that took more
    than ``seconds``. An error that would affect every question prevents further questions.
    """
    if not questions:
        return []
    is_stopped = threading.Event()

    def ask(question: Callable[[], A]) -> A | NacreError | None:
        if is_stopped.is_set():
            return None
        try:
            return question()
        except (UnusableAnswerError, *_FINAL) as error:
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
    """Return True if an answer is an error that all other questions would get as well."""
    return isinstance(answer, _FINAL) and not isinstance(answer, PromptTooLongError)


# -- Operations ----------------------------------------------------------------


@operation("cost")
def show_costs(home: Home) -> CostReport:
    """Show the costs of models today and this month, and what is left of the daily budget."""
    fold_notes(home)
    today = home.today()
    return CostReport(
        today,
        daily_budget(home),
        tuple(home.spending.by_task(today.replace(day=1), today)),
        home.settings.flag("models.background"),
    )
