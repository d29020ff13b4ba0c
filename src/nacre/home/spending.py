"""The models of a home, the consent to send text to them, and the cost and records of their calls.

Text to embed is sent only to hosts in ``embedding.sends_to``, which the owner approves with ``nacre
embedding`` or ``nacre writer embedding --resume``.
"""

from __future__ import annotations

import contextlib
import contextvars
import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from nacre.base import json as json_text
from nacre.base.frozen import frozen
from nacre.base.lazy import Module
from nacre.base.spool import Spool, lines
from nacre.base.text import shorten, to_bytes, to_text
from nacre.base.times import day_interval, day_of
from nacre.errors import (
    BudgetSpentError,
    EmbedderHeldError,
    EmbedderUnavailableError,
    InvalidSettingsError,
    ModelRefusedError,
    ModelUnavailableError,
    NacreError,
    PromptTooLongError,
    UnusableAnswerError,
)
from nacre.home.home import Home, open_database
from nacre.home.views import Budget, CostReport
from nacre.known_settings import VECTORS
from nacre.llm import embeddings
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
from nacre.protocols import CountedEmbedder, Embedder, LanguageModel
from nacre.settings import Settings, write_setting
from nacre.store.journal import TRACE_CHARACTERS, Spending
from nacre.store.schema import Database
from nacre.values.models import (
    DOLLAR,
    TIMEOUT_SECONDS,
    AskedQuestion,
    Call,
    Completion,
    Health,
    Place,
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


@frozen
class _Note:
    """A line of the spool."""

    question: AskedQuestion | None = None
    call: Call | None = None


def note(home: Home, record: AskedQuestion | Call) -> None:
    """Add a question, or a call that was not background work, to the spool.

    Its texts must already be redacted.
    """
    is_call = isinstance(record, Call)
    is_kept = is_call or home.settings.whole("traces.keep_days")
    if is_kept and not home.database.unwritable:
        values = {"call" if is_call else "question": msgspec.to_builtins(record)}
        line = json.dumps(values, ensure_ascii=False)
        Spool(home.folder, SPOOL).append(to_bytes(line))


def noted_calls(home: Home) -> Iterator[Call]:
    """Yield the spooled calls that are not in the database yet, but keep them."""
    notes = Spool(home.folder, SPOOL)
    with suppress(OSError):
        paths = [*notes.leftovers(), notes.path]
        yield from (item.call for item in _read(paths) if item.call)


def _read(paths: Iterable[Path]) -> Iterator[_Note]:
    for path in paths:
        with suppress(FileNotFoundError):  # another process has moved the spool
            for line in lines(path):
                with suppress(msgspec.ValidationError):
                    yield json_text.convert(line, _Note)


def fold_notes(home: Home) -> None:
    """Move the spool into the database, and delete expired records. Raises StoreBusyError."""
    if home.database.unwritable:
        return
    spools = list(Spool(home.folder, SPOOL).take(home.ids))
    if not spools:
        return
    with home.transaction():
        for item in _read(spools):
            if item.question:
                home.questions.add(item.question)
            if item.call:
                home.spending.add(item.call)
                if item.call.outcome == "done":
                    home.spending.recover(item.call.model)
        now = home.now()
        traces_since = now - timedelta(days=home.settings.whole("traces.keep_days"))
        home.questions.prune(traces_since, MOST_QUESTIONS)
        home.spending.prune(
            day_of(now - _CALL_PERIOD), traces_since, now - REUSE_PERIOD, MOST_TRACES
        )
    for path in spools:
        path.unlink(missing_ok=True)


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


def resets_at(home: Home) -> datetime:
    """Return the next local midnight, when the daily limits are reset."""
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
    """Return an error if a background call would exceed a daily limit, else ``None``.

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
            note(self._home, call)
            return
        with suppress(NacreError), self._writing() as spending:
            spending.finish(call)
            if call.outcome == "done":
                spending.recover(call.model)
            elif call.outcome == "failed" and (
                isinstance(error, ModelUnavailableError) or type(error) is ModelRefusedError
            ):
                text = f"{error.message}; {error.hint}" if error.hint else error.message
                text = shorten(self._home.redactor.clean(text), TRACE_CHARACTERS)
                spending.fail(Health(call.model, self._home.clock(), text))

    def answer(self, key: str) -> str | None:
        """Return a recent answer to the same prompt, identified by ``key``, or ``None``."""
        with suppress(NacreError), self._writing() as spending:
            return spending.answer(key, self._home.now() - REUSE_PERIOD)
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
            if self._home.database.unwritable:
                raise self._home.database.unwritable
            database = self._database = self._database or open_database(self._home.settings)
            with database.transaction():
                yield Spending(database)


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
        asked = replace(prompt, text=unusable) if repair else prompt
        key = f"{self.name} {prompt.version} {key_of(asked)}"
        if repair:
            self._ledger.drop_answer(key)
        return None if repair else key

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
        is_reusable = call.prompt and not completion.is_cut and self._clean(text) == text
        if not (key and is_reusable):
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
            *self._reserve_for(prompt),
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

    def _reserve_for(self, prompt: Prompt) -> tuple[Tokens, int | None]:
        if not self._is_free:
            return Tokens(), max_cost(prompt, self.capabilities)
        overhead = provider_of(self._home.settings, self.name.partition(":")[0]).beside
        output = min(prompt.output_tokens, _EXPECTED_ANSWER_TOKENS)
        return Tokens(input=tokens_of(prompt) + overhead, output=output), 0

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


# -- Embedding models ------------------------------------------------------------
#
# Budgets limit embedding that the user did not explicitly request. Each such call first reserves
# its maximum cost. Questions are also limited, but their cost is first recorded in the spool,
# because recall does not write to the database.


SENDS_TO = "embedding.sends_to"
_LOCAL_SETTINGS = ("minilm", "none")
_QUESTION_SHARE = 100
"""The budget divided by this number is reserved for questions."""

_PASSAGE_TOKENS = 300
"""Approximate number of tokens in a passage."""


def place_of(settings: Settings, setting: str) -> Place:
    """Return the host to which a model's input is sent. Raises EmbedderUnavailableError."""
    return Place() if setting in _LOCAL_SETTINGS else embeddings.place_at(settings, setting)


def missing_consent(settings: Settings, setting: str) -> EmbedderHeldError | None:
    """Return an error if the user has not agreed to send text to the model's host.

    Raises EmbedderUnavailableError.
    """
    place = place_of(settings, setting)
    if place.is_local or place.host in settings[SENDS_TO]:
        return None
    return EmbedderHeldError(
        f"{setting} sends no text to {place.host} without your consent",
        hint="nacre writer embedding --resume shows the cost and asks",
        reason="no yes",
    )


def consent_notice(settings: Settings, setting: str) -> str | None:
    """Return what users must know before they select a remote model. Raises
    EmbedderUnavailableError.
    """
    if error := missing_consent(settings, setting):
        return f"{error.message}: {error.hint}"
    place = place_of(settings, setting)
    if place.is_local:
        return None
    return (
        f"{setting} sends texts to {place.host} within the budget; to send all now, use "
        "nacre writer embedding --resume (with --estimate, it only shows the number)"
    )


def grant_consent(home: Home, setting: str) -> Home:
    """Store the user's consent to send text to a model's host, and return the updated home.

    Raises InvalidSettingsError if an environment variable sets the consents, or
    EmbedderUnavailableError.
    """
    if missing_consent(home.settings, setting) is None:
        return home
    origin = home.settings.values[SENDS_TO].origin
    if origin.startswith("$"):
        raise InvalidSettingsError(
            f"{origin} overrides your consent",
            hint=f"add the host to it, or unset {origin[1:]}",
        )
    hosts = [*home.settings[SENDS_TO], place_of(home.settings, setting).host]
    write_setting(home.settings.config, SENDS_TO, hosts)
    return replace(home, settings=home.settings.having(SENDS_TO, hosts))


def refusal(
    home: Home,
    setting: str,
    tokens: int = _PASSAGE_TOKENS,
    spending: Spending | None = None,
    *,
    is_question: bool = False,
) -> EmbedderHeldError | None:
    """Return an error if consent or budget forbids sending text to a model now, else ``None``.

    Raises EmbedderUnavailableError.
    """
    if error := missing_consent(home.settings, setting):
        return error
    cost = place_of(home.settings, setting).cost(tokens)
    if cost == 0:
        return None
    limit = daily_budget(home, spending)
    if not is_question:
        limit = replace(limit, most=limit.most - limit.most // _QUESTION_SHARE)
    problem = unpriced(setting) if cost is None else over_budget(limit, cost, "vectors")
    if problem is None:
        return None
    reason = "no price" if cost is None else "budget"
    return EmbedderHeldError(problem.message, hint=problem.hint, reason=reason)


class SpendingMeter:
    """A meter that checks and records an embedding model's calls."""

    def __init__(self, home: Home, setting: str, *, is_requested: bool) -> None:
        self._home = home
        self._setting = setting
        self._is_requested = is_requested

    def check(self, tokens: int, *, is_question: bool) -> None:
        """Raise EmbedderHeldError if this number of tokens must not be sent now."""
        if self._is_requested:
            return
        if error := refusal(self._home, self._setting, tokens, is_question=is_question):
            raise error

    @contextlib.contextmanager
    def count(self, tokens: int, *, is_question: bool) -> Iterator[embeddings.Usage]:
        """Record a call of about ``tokens`` tokens. Failed calls count, because they may be
        charged.

        Raises EmbedderUnavailableError.
        """
        home, setting = self._home, self._setting
        place, usage = place_of(home.settings, setting), embeddings.Usage(tokens)
        call = Call(
            home.ids(),
            home.clock(),
            home.today(),
            VECTORS,
            setting,
            not self._is_requested,
            Tokens(tokens),
            place.cost(tokens),
        )
        is_reserved = not (self._is_requested or is_question)
        with contextlib.closing(Ledger(home, background=is_reserved)) as ledger:
            try:
                ledger.reserve(call, lambda spending: refusal(home, setting, tokens, spending))
            except BudgetSpentError as error:
                raise EmbedderUnavailableError(error.message, hint=error.hint) from error
            began, outcome = time.perf_counter(), "done"
            try:
                yield usage
            except NacreError as error:
                outcome = "failed"
                if not (isinstance(error, ModelUnavailableError) and error.may_cost):
                    usage.tokens = 0
                raise
            finally:
                ledger.end(
                    replace(
                        call,
                        tokens=Tokens(usage.tokens),
                        cost=place.cost(usage.tokens),
                        seconds=time.perf_counter() - began,
                        outcome=outcome,
                    )
                )


def embedder_of(home: Home, name: str | None = None, *, is_requested: bool = False) -> Embedder:
    """Return an embedding model, by default the configured one, which is loaded on first use.

    Unless ``is_requested`` is True, consent and budgets are checked before each remote call.
    Raises EmbedderUnavailableError.
    """
    name = name or home.settings.text("embedding.model")
    if name not in home.embedders:
        home.embedders[name] = home.load_embedder(home.settings.having("embedding.model", name))
    embedder = home.embedders[name]
    if not isinstance(embedder, CountedEmbedder):
        return embedder
    return embedder.counted_by(SpendingMeter(home, name, is_requested=is_requested))


def embedder_in_use(home: Home) -> Embedder:
    """Return the model that computed the stored vectors or, without vectors, the configured one.

    Raises EmbedderUnavailableError.
    """
    return embedder_of(home, home.vectors.setting())


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

    A result is an answer, an error, or ``None`` for a question that was not asked or took longer
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
