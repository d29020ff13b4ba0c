"""Which models are set, what they can do, and whether they answer."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal

import msgspec

from nacre.errors import InvalidInput, ModelRefused, NacreError
from nacre.home.home import Home
from nacre.llm.aliases import full_name
from nacre.llm.answers import read, schema_of
from nacre.llm.registry import describe, obstacle
from nacre.settings import Settings, Value
from nacre.spending.budget import is_by_subscription
from nacre.spending.models import NONE, model_for, name_for, set_for
from nacre.spending.permission import is_set
from nacre.spending.tracing import tracing
from nacre.values.model_calls import Capabilities, Prompt, Task, Tokens
from nacre.values.trace import TraceKind

_OUTPUT_TOKENS = 200


class _Metal(msgspec.Struct, forbid_unknown_fields=True):
    metal: str


_PROMPT = Prompt(
    Task.TEST, "You answer short questions, each with one word.",
    "Which metal is liquid at room temperature?", schema_of(_Metal), name="metal", version="test/1",
    output_tokens=_OUTPUT_TOKENS,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Offer:
    """A model that is set, for some tasks.

    ``aliases`` are the short names by which the settings name it. ``credential`` says where its key comes from, empty
    where there is none; ``problem`` what keeps it from answering.
    """

    name: str
    label: str
    tasks: tuple[Task, ...]
    capabilities: Capabilities
    credential: str = ""
    needs_key: bool = False
    problem: NacreError | None = None
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Trial:
    """One short call: what answered and in which time, in seconds. ``cost`` is US dollars, if that is known; none where
    it ``is_by_subscription``.
    """

    name: str
    model: str
    answer: str
    seconds: float
    tokens: Tokens
    cost: Decimal | None
    is_by_subscription: bool = False


def uses(home: Home) -> dict[Task, str]:
    """The model of each task, as ``provider:model`` or ``none``."""
    return {task: name_for(home, task) for task in Task if task is not Task.TEST}


def offers(home: Home) -> Sequence[Offer]:
    """The models that are set, each once, in the order of their tasks."""
    tasks: dict[str, list[Task]] = {}
    for task, name in uses(home).items():
        if name != NONE:
            tasks.setdefault(name, []).append(task)
    default = home.settings.text("models.default")
    if default not in ("", NONE):
        tasks.setdefault(full_name(default), [])
    written = dict.fromkeys((default, *(set_for(home, task) for task in Task)))
    return [
        replace(
            _offer(home.settings, name, tuple(found)),
            aliases=tuple(one for one in written if one != name and full_name(one) == name),
        )
        for name, found in tasks.items()
    ]


def try_model(home: Home, name: str = "") -> Trial:
    """Ask a model one short question: that of ``models.default``, or the one that is named.

    Raises InvalidInput where none is set, ModelUnavailable, ModelRefused, and AnswerUnusable where it does not keep to
    a schema.
    """
    model = model_for(_naming(home, name), Task.TEST, background=False)
    if model is None:
        raise InvalidInput("no model is set", hint="nacre setup, or nacre models test provider:model")
    try:
        with tracing(home, TraceKind.TEST, model.name) as run:
            began = time.perf_counter()
            completion = model.complete(_PROMPT)
            seconds = time.perf_counter() - began
            answer = read(completion, _Metal, model.name)
            run.outcome = "answered"
    finally:
        model.close()
    if is_set(home) and model.name == name_for(home, Task.EXTRACTION):
        with suppress(NacreError):  # the answer is paid for
            home.sessions.ask_again()
    price, is_by = model.capabilities.price, is_by_subscription(home.settings, model.name)
    cost = Decimal(0) if is_by else completion.tokens.cost(price) if price else None
    return Trial(model.name, completion.model, answer.metal, seconds, completion.tokens, cost, is_by)


def _naming(home: Home, name: str) -> Home:
    """The same home, where the default model is the one named."""
    if not name:
        return home
    values = {**home.settings.values, "models.default": Value(name, "command line")}
    return replace(home, settings=replace(home.settings, values=values))


def _offer(settings: Settings, name: str, tasks: tuple[Task, ...]) -> Offer:
    try:
        asked, able = describe(settings, name)
    except ModelRefused as error:
        return Offer(name, name.partition(":")[0], tasks, Capabilities(), problem=error)
    credential = asked.credential
    return Offer(
        name, asked.provider.label, tasks, able, f"{credential.origin} ({credential.masked})" if credential else "",
        asked.provider.needs_key, obstacle(settings, asked),
    )  # fmt: skip
