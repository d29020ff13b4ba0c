"""Which models are set, what they can do, and whether they answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import msgspec

from nacre.app.context import Context
from nacre.app.models import NONE, model_for, name_for
from nacre.app.tracing import tracing
from nacre.errors import InvalidInput, ModelRefused, NacreError
from nacre.llm.answers import read, schema_of
from nacre.llm.registry import describe, obstacle
from nacre.llm.retrying import Setback
from nacre.model.prompting import Capabilities, Prompt, Task, Tokens
from nacre.model.trace import TraceKind
from nacre.settings import Settings, Value

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

    ``credential`` says where its key comes from, empty where there is none; ``problem`` what keeps it from answering.
    """

    name: str
    label: str
    tasks: tuple[Task, ...]
    capabilities: Capabilities
    credential: str = ""
    needs_key: bool = False
    problem: NacreError | None = None


@dataclass(frozen=True, slots=True)
class Trial:
    """One short call: what answered and in which time, in seconds. ``cost`` is US dollars, if that is known."""

    name: str
    model: str
    answer: str
    seconds: float
    tokens: Tokens
    cost: Decimal | None


def uses(context: Context) -> dict[Task, str]:
    """The model of each task, as ``provider:model`` or ``none``."""
    return {task: name_for(context, task) for task in Task if task is not Task.TEST}


def offers(context: Context) -> Sequence[Offer]:
    """The models that are set, each once, in the order of their tasks."""
    tasks: dict[str, list[Task]] = {}
    for task, name in uses(context).items():
        if name != NONE:
            tasks.setdefault(name, []).append(task)
    default = context.settings["models.default"]
    if default not in ("", NONE):
        tasks.setdefault(default, [])
    return [_offer(context.settings, name, tuple(found)) for name, found in tasks.items()]


def try_model(context: Context, name: str = "", hear: Callable[[Setback], object] | None = None) -> Trial:
    """Ask a model one short question: that of ``models.default``, or the one that is named.

    ``hear`` is told of tries that failed and are made again. Raises InvalidInput where none is set, ModelUnavailable,
    ModelRefused, and AnswerUnusable where it does not keep to a schema.
    """
    model = model_for(
        _naming(context, name), Task.TEST, background=False, hear=(lambda _, setback: hear(setback)) if hear else None
    )
    if model is None:
        raise InvalidInput("no model is set", hint="nacre setup, or nacre models test provider:model")
    try:
        with tracing(context, TraceKind.TEST, model.name) as run:
            began = time.perf_counter()
            completion = model.complete(_PROMPT)
            seconds = time.perf_counter() - began
            answer = read(completion, _Metal, model.name)
            run.outcome = "answered"
    finally:
        model.close()
    price = model.capabilities.price
    cost = completion.tokens.cost(price) if price else None
    return Trial(model.name, completion.model, answer.metal, seconds, completion.tokens, cost)


def _naming(context: Context, name: str) -> Context:
    """The same home, where the default model is the one named."""
    if not name:
        return context
    values = {**context.settings.values, "models.default": Value(name, "command line")}
    return replace(context, settings=replace(context.settings, values=values))


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
