"""Short names of models: ``anthropic:sonnet`` is the newest model of that family which ``aliases.toml`` names."""

from __future__ import annotations

import hashlib
import http.client
import json
import re
import shutil
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from math import ceil
from pathlib import Path
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit

import msgspec

from nacre.base import files as private_files
from nacre.base import json as json_values
from nacre.base.lazy import load
from nacre.base.text import count_tokens
from nacre.errors import ModelDeclined, ModelRefused, ModelUnavailable, NacreError
from nacre.llm import failures
from nacre.llm.credentials import (
    COMMANDS,
    Provider,
    credential_for,
    is_loopback,
    provider_of,
    providers,
)
from nacre.llm.failures import CallTarget, environment_of
from nacre.protocols import LanguageModel
from nacre.settings import Settings
from nacre.values.models import (
    DOLLAR,
    MILLION,
    Call,
    Capabilities,
    Completion,
    Price,
    Prompt,
    Tokens,
    most_written,
)


def full_name(name: str) -> str:
    """The ``provider:model`` that a name stands for; a name that is no alias stands for itself."""
    provider, _, model = name.partition(":")
    found = aliases().get(provider, {}).get(model)
    return f"{provider}:{found}" if found else name


@cache
def aliases() -> Mapping[str, Mapping[str, str]]:
    """By provider: short names, and the models that they stand for."""
    return tomllib.loads((files("nacre.llm") / "aliases.toml").read_text("utf-8"))


# ----------------------------------------------------------------------------
# What a model can do and costs: ``capabilities.toml``, and ``models.capabilities`` before it.


_DATE = re.compile(r"[-@](?:20\d{6}|20\d\d-\d\d-\d\d)(?:-v\d+(?::\d+)?)?$")
_OWNER = re.compile(r"^(?:[a-z]{2}\.)?anthropic\.")
_FIXED = (*COMMANDS, "mcp-sampling")
"""Formats that hold every model to a schema in the same way."""
_THINKING_TOKENS = 8_192
"""Models that think spend the allowance of their answer on it; without room for that it would be cut off."""


class _Own(msgspec.Struct, forbid_unknown_fields=True):
    window: int | None = None
    output: int | None = None
    answers: Literal["schema", "tool", "json", "text"] | None = None
    caches: bool | None = None
    price: dict[str, float] | None = None


def capabilities_of(settings: Settings, provider: Provider, model: str) -> Capabilities:
    """What ``provider:model`` can do. Unknown models get small defaults and ``known`` is false.

    Tables of ``models.capabilities`` are named by ``provider:model``, by a model, or by a pattern of either. Raises
    ModelRefused for one that says what there is not.
    """
    able = _listed(bare_name(model)) or Capabilities(answers=provider.answers or "json")
    if provider.api in _FIXED:
        able = replace(able, answers=provider.answers)
    if provider.free:
        able = replace(able, price=Price())
    return _as_told(settings, provider, model, able)


def own_price(settings: Settings, provider: Provider, model: str) -> Decimal | None:
    """What the owner says a million tokens cost that ``provider:model`` reads, if they do. Raises ModelRefused."""
    price = _as_told(settings, provider, model, Capabilities()).price
    return price.input if price else None


def _as_told(
    settings: Settings, provider: Provider, model: str, able: Capabilities
) -> Capabilities:
    own: Mapping[str, Mapping[str, Any]] = settings["models.capabilities"]
    for pattern, table in own.items():
        if _matches(pattern, (f"{provider.name}:{model}", model, bare_name(model))):
            able = _changed(able, pattern, table)
    return replace(able, thinking=_thinking(provider))


def _thinking(provider: Provider) -> int:
    return _THINKING_TOKENS if provider.api == "openai" else 0


def bare_name(model: str) -> str:
    """A model's name without its provider and date: ``claude-sonnet-4`` of ``anthropic/claude-sonnet-4-20250514``."""
    name = model.lower().rpartition("/")[2]
    return _DATE.sub("", _OWNER.sub("", name))


@cache
def _tables() -> Sequence[tuple[tuple[str, ...], Capabilities]]:
    text = (files("nacre.llm") / "capabilities.toml").read_text("utf-8")
    tables = tomllib.loads(text, parse_float=Decimal)["model"]
    found = []
    for table in tables:
        names, price = table.pop("names"), table.pop("price", None)
        found.append(
            (
                tuple(names),
                Capabilities(**table, price=Price(**price) if price else None, known=True),
            )
        )
    return found


def _listed(name: str) -> Capabilities | None:
    return next((able for names, able in _tables() if _matches_any(names, name)), None)


def _matches_any(patterns: Sequence[str], name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _matches(pattern: str, names: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for name in names)


def _changed(able: Capabilities, pattern: str, table: Mapping[str, Any]) -> Capabilities:
    where = f"models.capabilities.{pattern}"
    try:
        own = json_values.convert(dict(table), _Own)
        price = _priced(own.price) if own.price else able.price
    except (msgspec.ValidationError, TypeError) as error:
        hint = "keys: window, output, answers, caches, price = {input, output, cached, written}"
        raise ModelRefused(f"{where} cannot be read: {error}", hint=hint) from error
    plain: dict[str, Any] = {
        name: value
        for name in ("window", "output", "answers", "caches")
        if (value := getattr(own, name)) is not None
    }
    return replace(able, **plain, price=price, known=able.known or own.window is not None)


def _priced(told: Mapping[str, float]) -> Price:
    """What the cache holds costs as much as the rest, unless that is told. Raises TypeError for other names."""
    prices = {name: Decimal(str(value)) for name, value in told.items()}
    whole = prices.get("input", Decimal(0))
    return Price(**{"cached": whole, "written": whole, **prices})


# ----------------------------------------------------------------------------
# Models by name: ``provider:model``.


def open_model(settings: Settings, name: str) -> LanguageModel:
    """The model ``provider:model``. Nothing is sent yet.

    Raises ModelRefused where the provider is unknown, its library is missing, or there is no key.
    """
    asked, able = describe(settings, name)
    if asked.provider.needs_key and asked.credential is None:
        raise failures.no_key(asked)
    api = asked.provider.api  # its wire format is loaded only where it is used
    if api == "mcp-sampling":
        hint = "it works where nacre is called by an MCP client that offers it; elsewhere set another model"
        raise ModelRefused(f"no MCP client is connected, which {asked.name} needs", hint=hint)
    if api in _COMMANDS:
        by_command: Callable[..., LanguageModel] = load(_COMMANDS[api])
        return by_command(asked, able, _environment(settings, asked.provider))
    over_http: Callable[..., LanguageModel] = load(_WIRES[api])
    return over_http(asked, able)


def _environment(settings: Settings, provider: Provider) -> Mapping[str, str]:
    """The environment for an agent's command, whose tools may read it: without what channels sign in with, and without
    keys that would be billed in the place of a subscription.
    """
    channels: Mapping[str, Mapping[str, Any]] = settings["gateway.channels"]
    named = {str(value) for options in channels.values() for value in options.values()}
    own = environment_of(settings, provider)
    return {name: value for name, value in own.items() if f"env:{name}" not in named}


def obstacle(settings: Settings, asked: CallTarget) -> NacreError | None:
    """What keeps a model from being opened, as far as that is seen without loading anything."""
    if asked.provider.needs_key and asked.credential is None:
        return failures.no_key(asked)
    if library := _LIBRARIES.get(asked.provider.api):
        return None if find_spec(library) else failures.no_library(asked, library)
    if program := COMMANDS.get(asked.provider.api):
        return (
            None
            if shutil.which(program, path=settings.environ.get("PATH"))
            else failures.no_program(asked, program)
        )
    return None


def describe(settings: Settings, name: str) -> tuple[CallTarget, Capabilities]:
    """Who answers for a name or an alias, and what it can do. Raises ModelRefused where that cannot be told."""
    provider_name, colon, model = full_name(name).partition(":")
    provider = provider_of(settings, provider_name)
    if provider.api == "embeddings":
        raise ModelRefused(
            f"{provider.label} has no language models",
            hint="for vectors: nacre embed switch " + name,
        )
    if not model and (not colon or provider.api not in (*COMMANDS, "mcp-sampling")):
        raise ModelRefused(
            f"{name!r} names no model of {provider.label}", hint=f"{provider_name}:<model>"
        )
    able = capabilities_of(settings, provider, model)
    return CallTarget(provider, model, credential_for(settings, provider_name), able.window), able


_LIBRARIES = {"anthropic": "anthropic", "openai": "openai", "chat": "openai"}
_WIRES = {
    "anthropic": "nacre.llm.api:AnthropicModel",
    "openai": "nacre.llm.api:OpenAIModel",
    "chat": "nacre.llm.api:OpenAIModel",
}
_COMMANDS = {
    "claude-cli": "nacre.llm.programs:claude_model",
    "codex-cli": "nacre.llm.programs:codex_model",
    "gemini-cli": "nacre.llm.programs:gemini_model",
    "opencode-cli": "nacre.llm.programs:opencode_model",
}


# ----------------------------------------------------------------------------
# A model whose calls are counted, and asked for first where a budget holds them.


_LEAST_BYTES = 2
"""Of a token: prose has four and more, code about three, what looks like noise less."""


class Books(Protocol):
    """Where calls are counted. Costs are millionths of a US dollar."""

    def begin(self, model: str, prompt: Prompt, most: int | None) -> Call:
        """A call that may cost so much at most, ``None`` where nobody knows. Raises BudgetSpent, ModelUnavailable."""

    def end(self, call: Call, tokens: Tokens, cost: int | None, seconds: float) -> None:
        """It was answered."""

    def fail(
        self, call: Call, tokens: Tokens, cost: int | None, seconds: float, error: NacreError
    ) -> None:
        """It was not; tokens and cost are what that may have taken."""

    def leave(self, call: Call, tokens: Tokens, cost: int | None, seconds: float) -> None:
        """It was broken off on this side, as above: what the provider makes of that nobody hears."""

    def close(self) -> None:
        """Let go of what is open."""


class Metered:
    """Another model, whose calls are written into books; implements LanguageModel.

    What a provider's library asks again by itself is one call.
    """

    def __init__(
        self, model: LanguageModel, books: Books, now: Callable[[], float] = time.perf_counter
    ) -> None:
        self.name = model.name
        self.capabilities = model.capabilities
        self._model = model
        self._books = books
        self._now = now
        self._is_closed = False

    def complete(self, prompt: Prompt) -> Completion:
        """Answer a prompt. Raises what the model raises, and BudgetSpent."""
        call = self._books.begin(self.name, prompt, most_of(prompt, self.capabilities))
        began = self._now()
        try:
            completion = self._model.complete(prompt)
        except BaseException as error:
            tokens, cost = of_failed(prompt, error, self.capabilities)
            seconds = self._now() - began
            if isinstance(error, NacreError) and not self._is_closed:
                self._books.fail(call, tokens, as_counted(cost), seconds, error)
            else:
                self._books.leave(call, tokens, as_counted(cost), seconds)
            raise
        self._books.end(
            call,
            completion.tokens,
            as_counted(cost_of(completion, self.capabilities)),
            self._now() - began,
        )
        return completion

    def close(self) -> None:
        """Cut off the calls that run: what they may have cost stays in the books."""
        self._is_closed = True
        self._model.close()
        self._books.close()


def cost_of(completion: Completion, able: Capabilities) -> Decimal | None:
    """What an answer cost, in US dollars: by its tokens, else by what the provider says; ``None`` if nobody knows."""
    if completion.is_repeated:
        return Decimal(0)
    if able.price:
        return completion.tokens.cost(able.price)
    told = completion.more.get("cost_usd")
    return Decimal(str(told)) if isinstance(told, int | float) else None


def of_failed(
    prompt: Prompt, error: BaseException, able: Capabilities
) -> tuple[Tokens, Decimal | None]:
    """What a call that failed may have taken: as many tokens as were sent, by estimate, and their price in US dollars.

    Nothing where the provider said no, or was not reached.
    """
    is_free = isinstance(error, NacreError) and not isinstance(error, ModelDeclined)
    if isinstance(error, ModelUnavailable):
        is_free = not error.may_cost
    if is_free:
        return Tokens(), Decimal(0)
    tokens = Tokens(input=tokens_of(prompt))
    return tokens, tokens.cost(able.price) if able.price else None


def most_of(prompt: Prompt, able: Capabilities) -> int | None:
    """What a prompt may cost at most: all it may be answered, nothing from a cache, two bytes a token, which few texts
    need. ``None`` without a price."""
    if able.price is None:
        return None
    asked = sum(-(-len(text.encode("utf-8", "replace")) // _LEAST_BYTES) for text in _texts(prompt))
    dearest = max(able.price.input, able.price.written)
    return as_counted((asked * dearest + most_written(prompt, able) * able.price.output) / MILLION)


def tokens_of(prompt: Prompt) -> int:
    """About how many tokens a prompt has, its schema counted."""
    return sum(map(count_tokens, _texts(prompt)))


def _texts(prompt: Prompt) -> tuple[str, ...]:
    return prompt.system, prompt.shared, prompt.text, msgspec.json.encode(prompt.answer).decode()


def as_counted(dollars: Decimal | None) -> int | None:
    """US dollars in millionths, rounded up."""
    return None if dollars is None else ceil(dollars * DOLLAR)


# ----------------------------------------------------------------------------
# Which models there are to choose from: what a server on this machine lists, else what
# ``proposals.toml`` names.


_SECONDS = 0.5
_MOST_BYTES = 1_000_000


def proposed(provider: Provider) -> list[str]:
    """Names of models, the one to begin with first; empty where none is known."""
    listed = listed_here(provider)
    if listed is not None:
        return listed
    table = tomllib.loads((files("nacre.llm") / "proposals.toml").read_text("utf-8"))
    return list(table.get(provider.name, []))


def servers_here(settings: Settings) -> dict[str, list[str]]:
    """The models of each server on this machine that answers, by its provider. Raises ModelRefused where
    ``models.providers`` is written wrongly.
    """
    able = [one for one in providers(settings).values() if one.api == "chat" and not one.needs_key]
    found = {one.name: listed_here(one) for one in able}
    return {name: models for name, models in found.items() if models is not None}


def listed_here(provider: Provider) -> list[str] | None:
    """The language models that a server on this machine lists; ``None`` where it is elsewhere, or does not answer."""
    address = urlsplit(provider.base_url)
    if (
        provider.api != "chat"
        or address.scheme != "http"
        or not address.hostname
        or not is_loopback(address.hostname)
    ):
        return None
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=_SECONDS)
    try:
        connection.request("GET", f"{address.path.rstrip('/')}/models")
        answer = json.loads(connection.getresponse().read(_MOST_BYTES))
        return [name for one in answer["data"] if not _makes_vectors(name := str(one["id"]))]
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError, RecursionError):
        return None
    finally:
        connection.close()


def _makes_vectors(model: str) -> bool:
    """Whether a model is one for vectors, by its name."""
    bare = model.lower().rpartition("/")[2].partition(":")[0]
    return "embed" in bare or any(fnmatchcase(bare, name) for name in _for_vectors())


@cache
def _for_vectors() -> tuple[str, ...]:
    tables = tomllib.loads((files("nacre.llm") / "embeddings.toml").read_text("utf-8"))["model"]
    return tuple(name for table in tables for name in table["names"])


# ----------------------------------------------------------------------------
# Cassettes: what a model answered to a prompt, kept as files, and played again without it.


Redact = Callable[[str], str]

_KEY_CHARACTERS = 24
_UNSAFE = re.compile(r"[^a-z0-9]+")
_ABLE = Capabilities(window=200_000, output=64_000, answers="schema", known=True)


def key_of(prompt: Prompt) -> str:
    """What tells prompts apart: all that a model is asked, and not how long it may take."""
    asked = [prompt.task, prompt.system, prompt.shared, prompt.text, prompt.name, prompt.answer]
    encoded = json.dumps(asked, sort_keys=True, ensure_ascii=False).encode(
        "utf-8", errors="replace"
    )
    return hashlib.sha256(encoded).hexdigest()[:_KEY_CHARACTERS]


class RecordingModel:
    """Asks another model, and keeps each answer in a file of ``folder``; implements LanguageModel.

    ``redact`` takes secrets out of everything that is written; credentials are no part of a prompt. What fails is not
    kept.
    """

    def __init__(self, model: LanguageModel, folder: Path, redact: Redact) -> None:
        self.name = model.name
        self.capabilities = model.capabilities
        self._model = model
        self._folder = folder
        self._redact = redact

    def complete(self, prompt: Prompt) -> Completion:
        """The model's answer. Raises what the model raises."""
        completion = self._model.complete(prompt)
        asked = {
            "task": prompt.task.value,
            "version": prompt.version,
            "name": prompt.name,
            "system": prompt.system,
            "shared": prompt.shared,
            "text": prompt.text,
            "answer": dict(prompt.answer),
        }
        said = {
            "text": completion.text,
            "model": completion.model,
            "is_cut": completion.is_cut,
            "tokens": asdict(completion.tokens),
        }
        record = _without_secrets(
            {"model": self.name, "prompt": asked, "completion": said}, self._redact
        )
        text = json.dumps(record, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
        private_files.make_folder(self._folder)
        private_files.write_file(self._folder / file_name(prompt), text)
        return completion

    def close(self) -> None:
        """Let go of the model."""
        self._model.close()


class ReplayingModel:
    """Answers from the cassettes of a folder, and asks nobody; implements LanguageModel.

    A prompt that was not recorded, or has changed since, is ModelUnavailable.
    """

    def __init__(
        self, folder: Path, *, name: str = "cassette:1", capabilities: Capabilities = _ABLE
    ) -> None:
        self.name = name
        self.capabilities = capabilities
        self._folder = folder

    def complete(self, prompt: Prompt) -> Completion:
        """The answer that was kept, with the tokens it took then. Raises ModelUnavailable."""
        path = self._folder / file_name(prompt)
        try:
            said = json.loads(path.read_text(encoding="utf-8"))["completion"]
            tokens = Tokens(**said["tokens"])
            return Completion(said["text"], tokens, said["model"], said["is_cut"], is_repeated=True)
        except (OSError, ValueError, KeyError, TypeError) as error:
            told = f"no cassette in {self._folder} holds this prompt ({prompt.version or prompt.task.value})"
            raise ModelUnavailable(
                told, hint="make cassettes MODEL=provider:model", retry=False
            ) from error

    def close(self) -> None:
        """Nothing is open."""


def file_name(prompt: Prompt) -> str:
    """Of the cassette that holds a prompt: its version and its key."""
    version = _UNSAFE.sub("-", (prompt.version or prompt.task.value).lower()).strip("-")
    return f"{version}-{key_of(prompt)}.json"


def _without_secrets(value: Any, redact: Redact) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {key: _without_secrets(item, redact) for key, item in value.items()}
    return [_without_secrets(item, redact) for item in value] if isinstance(value, list) else value
