"""What models may cost: each call is noted, and one in the background is asked for first.

A background call is written down at what it may cost at most before it is made, in a transaction of its own over a
connection of its own, and at what it cost afterwards: calls side by side, of several processes, keep within the budget
together. One that failed counts what was sent, unless the provider said no. One whose process ends
on the way stays at what it may have cost. Calls that somebody waits for are noted in a spool, and held by no budget.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from threading import Lock

from nacre.errors import BudgetSpent, ModelRefused, ModelUnavailable, NacreError, Unavailable
from nacre.home.home import Home, open_database
from nacre.llm.credentials.billing import key_of
from nacre.llm.meter import tokens_of
from nacre.llm.providers import provider_of
from nacre.platform.days import day_interval, shown_minute
from nacre.settings import Settings
from nacre.spending import tracing
from nacre.spending.permission import Permission
from nacre.spending.spool import fold_notes, note_answer, note_call
from nacre.storage.database import Database
from nacre.storage.spending import Spending
from nacre.text.passages import shorten
from nacre.values.model_calls import Prompt, Task, Tokens
from nacre.values.spending import DOLLAR, Call, Health, Spent, dollars
from nacre.views import Budget, CostReport

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
    """Counts the calls of a home's models (see :class:`nacre.llm.meter.Books`)."""

    def __init__(self, home: Home, connection: OwnConnection, *, background: bool) -> None:
        self._home = home
        self._connection = connection
        self._background = background
        self._permission = Permission(home)

    def begin(self, model: str, prompt: Prompt, most: int | None) -> Call:
        """A call that may cost so much at most. Raises BudgetSpent, Unavailable, where it is not to be made."""
        run = tracing.current()
        problem = self._permission.obstacle(prompt.task) if self._background else None
        if problem:
            raise BudgetSpent(f"{model} is not asked now: {problem}", hint="nacre writer")
        call = Call(
            self._home.ids(), self._home.clock(), self._home.today(), prompt.task.value, model,
            self._background, tokens=self._expected(model, prompt), cost=most, trace=run.trace.id if run else None,
        )  # fmt: skip
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

    def fail(self, call: Call, tokens: Tokens, cost: int | None, seconds: float, error: NacreError | None) -> None:
        """It was not answered; what it may have taken is an estimate. That the next call is likely to fail, too, is
        kept: a prompt that is too long does not say so."""
        failed = replace(call, tokens=tokens, cost=cost, seconds=seconds, outcome="failed")
        if not self._background:
            note_call(self._home, failed)
            return
        with contextlib.suppress(NacreError), self._connection.writing() as spending:
            spending.finish(failed)
            if isinstance(error, ModelUnavailable) or type(error) is ModelRefused:
                told = f"{error.message}; {error.hint}" if error.hint and type(error) is ModelRefused else error.message
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
                f"no call of {call.model} can be noted, so no budget can hold it: {error.message}", hint=error.hint
            ) from error
        if refused:
            raise refused[1]

    def _obstacle(self, spending: Spending, call: Call) -> tuple[str, Unavailable] | None:
        """Why a background call is not made, in a word and in full."""
        in_all, of_task = spending.in_background(call.day, call.task, partial(is_priced, self._home.settings))
        budgets = [("budget", None, in_all), ("task budget", call.task, of_task)]
        if self._is_by_subscription(call.model):
            if refused := self._beyond_tokens(spending, call):
                return refused
            budgets = budgets[1:]  # what the command says it would cost counts only within a bound of the task's own
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
            return "calls", BudgetSpent(told, hint=self._until(False, f"nacre config set {CALLS} …"))
        if taken + wanted <= most:
            return None
        told = f"{call.model} may take {most:,} tokens a day, {taken:,} are taken, and a call may take {wanted:,}"
        return "tokens", BudgetSpent(told, hint=self._until(wanted > most, f"nacre config set {key} …"))

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
    """Keeps answers in a home (see :class:`nacre.llm.cache.Answers`); none that holds what looks like a secret."""

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
    return Tokens(input=tokens_of(prompt) + beside, output=min(prompt.output_tokens, _ANSWER_TOKENS))


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
            spending.in_background(day, task or "", partial(is_priced, home.settings))[1 if task else 0],
        )
        for task, amount in most.items()
    ]
    return CostReport(
        since, day, resets_at(home), [_paid(home.settings, one) for one in spending.since(since)],
        spending.refusals(since), budgets, home.settings.flag("models.background"),
    )  # fmt: skip


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
        return provider.subscription and not key_of(settings, provider)
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
    return sorted(sums, key=lambda one: one.name if by == "day" else (-one.cost, -one.calls, one.name))


def summed(name: str, group: Sequence[Spent]) -> Sum:
    """Calls as one line."""
    return Sum(
        name, sum(one.calls for one in group), sum(one.calls for one in group if one.is_background),
        sum(one.failed for one in group), sum((one.tokens for one in group), Tokens()),
        sum(one.cost for one in group), sum(one.unpriced for one in group), sum(one.seconds for one in group),
        sum(one.estimated for one in group),
    )  # fmt: skip
