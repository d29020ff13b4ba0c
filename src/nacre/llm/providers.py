"""Language models: names, capabilities, prices, clients, usage records and recorded answers."""

from __future__ import annotations

import hashlib
import http.client
import json
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, replace
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import cache
from importlib.util import find_spec
from math import ceil
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from nacre.base import files as private_files
from nacre.base import json as json_values
from nacre.base.frozen import frozen
from nacre.base.text import count_tokens
from nacre.errors import ModelDeclinedError, ModelRefusedError, ModelUnavailableError, NacreError
from nacre.llm import api as llm_api
from nacre.llm import failures, programs
from nacre.llm.credentials import (
    COMMANDS,
    Provider,
    credential_for,
    provider_of,
    providers,
    read_table,
)
from nacre.llm.failures import CallTarget, key_of_billing
from nacre.protocols import LanguageModel
from nacre.settings import Settings
from nacre.values.codec import with_texts
from nacre.values.models import (
    DOLLAR,
    MILLION,
    Capabilities,
    Completion,
    Price,
    Prompt,
    Tokens,
    most_written,
)


def full_name(name: str) -> str:
    """Replace an alias such as ``anthropic:sonnet`` with the model's full name. Other names are
    returned unchanged.
    """
    provider, _, model = name.partition(":")
    model_name = aliases().get(provider, {}).get(model)
    return f"{provider}:{model_name}" if model_name else name


@cache
def aliases() -> Mapping[str, Mapping[str, str]]:
    """Return each provider's aliases, mapped to the names of models."""
    return read_table("aliases.toml")


# -- Capabilities and prices -----------------------------------------------------------------------
# These are in ``capabilities.toml``. The setting ``models.capabilities`` takes precedence.


_DATE = re.compile(r"[-@](?:20\d{6}|20\d\d-\d\d-\d\d)(?:-v\d+(?::\d+)?)?$")
_OWNER = re.compile(r"^(?:[a-z]{2}\.)?anthropic\.")
_THINKING_TOKENS = 8_192
"""Additional output tokens for thinking, which would otherwise truncate the answer."""


class _Own(msgspec.Struct, forbid_unknown_fields=True):
    window: int | None = None
    output: int | None = None
    answers: Literal["schema", "json", "text"] | None = None
    caches: bool | None = None
    price: dict[str, float] | None = None


def capabilities_of(settings: Settings, provider: Provider, model: str) -> Capabilities:
    """Return a model's capabilities. If the model is unknown, they are low and ``known`` is False.

    The tables in ``models.capabilities`` are keyed by ``provider:model``, a model's name, or a
    pattern. Raises ModelRefusedError if one is invalid.
    """
    listed = (able for names, able in _tables() if _matches(names, bare_name(model)))
    able = next(listed, None) or Capabilities(answers=provider.answers or "json")
    if provider.api in COMMANDS:
        able = replace(able, answers=provider.answers)
    if provider.free:
        able = replace(able, price=Price())
    return _with_overrides(settings, provider, model, able)


def own_price(settings: Settings, provider: Provider, model: str) -> Decimal | None:
    """Return the price per million input tokens from the user's settings, if any."""
    price = _with_overrides(settings, provider, model, Capabilities()).price
    return price.input if price else None


def _with_overrides(
    settings: Settings, provider: Provider, model: str, able: Capabilities
) -> Capabilities:
    for pattern, table in settings["models.capabilities"].items():
        if _matches([pattern], f"{provider.name}:{model}", model, bare_name(model)):
            able = _changed(able, pattern, table)
    return replace(able, thinking=_THINKING_TOKENS if provider.api == "openai" else 0)


def bare_name(model: str) -> str:
    """Return a model's name without vendor and date, such as ``claude-sonnet-4`` for
    ``anthropic/claude-sonnet-4-20250514``.
    """
    return _DATE.sub("", _OWNER.sub("", model.lower().rpartition("/")[2]))


@cache
def _tables() -> list[tuple[list[str], Capabilities]]:
    entries = []
    for table in read_table("capabilities.toml")["model"]:
        names, price = table.pop("names"), table.pop("price", None)
        able = Capabilities(**table, price=Price(**price) if price else None, known=True)
        entries.append((names, able))
    return entries


def _matches(patterns: Iterable[str], *names: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns for name in names)


def _changed(able: Capabilities, pattern: str, table: Mapping[str, Any]) -> Capabilities:
    where = f"models.capabilities.{pattern}"
    try:
        own = json_values.convert(dict(table), _Own)
        price = _priced(own.price) if own.price else able.price
    except (msgspec.ValidationError, TypeError) as error:
        hint = "keys: window, output, answers, caches, price = {input, output, cached, written}"
        raise ModelRefusedError(f"{where} cannot be read: {error}", hint=hint) from error
    plain: dict[str, Any] = {
        name: value
        for name in ("window", "output", "answers", "caches")
        if (value := getattr(own, name)) is not None
    }
    return replace(able, **plain, price=price, known=able.known or own.window is not None)


def _priced(table: Mapping[str, float]) -> Price:
    """Parse a price. By default, cached tokens cost as much as other input."""
    prices = {name: Decimal(str(value)) for name, value in table.items()}
    input_price = prices.get("input", Decimal(0))
    return Price(**{"cached": input_price, "written": input_price, **prices})


# -- Opening models --------------------------------------------------------------------------------


def open_model(settings: Settings, name: str) -> LanguageModel:
    """Open the model ``provider:model``, without sending anything.

    Raises ModelRefusedError if the provider is unknown, or its library or key is missing.
    """
    target, able = describe(settings, name)
    if target.provider.needs_key and target.credential is None:
        raise failures.no_key(target)
    api = target.provider.api
    if api in COMMANDS:
        kinds = {
            "claude-cli": programs.ClaudeModel,
            "codex-cli": programs.CodexModel,
            "gemini-cli": programs.GeminiModel,
            "opencode-cli": programs.OpenCodeModel,
        }
        return kinds[api](target, able, _environment(settings, target.provider))
    return _CLIENTS[api](target, able)


def _environment(settings: Settings, provider: Provider) -> Mapping[str, str]:
    """Return the environment for an agent's command.

    It omits keys that bypass a subscription, and credentials for channels, which the agent's tools
    could read.
    """
    channels = settings["gateway.channels"].values()
    hidden = {str(value) for options in channels for value in options.values()}
    if provider.subscription and not key_of_billing(settings, provider):
        hidden |= {f"env:{name}" for name in provider.keys}
    return {name: text for name, text in settings.environ.items() if f"env:{name}" not in hidden}


def obstacle(settings: Settings, target: CallTarget) -> NacreError | None:
    """Return the error that opening a model would raise, or ``None``, without loading anything."""
    if target.provider.needs_key and target.credential is None:
        return failures.no_key(target)
    if client := _CLIENTS.get(target.provider.api):
        library = client.library
        return None if find_spec(library) else failures.no_library(target, library)
    if program := COMMANDS.get(target.provider.api):
        return (
            None
            if shutil.which(program, path=settings.environ.get("PATH"))
            else failures.no_program(target, program)
        )
    return None


def describe(settings: Settings, name: str) -> tuple[CallTarget, Capabilities]:
    """Return the target for calls to a model or alias, and the model's capabilities."""
    provider_name, colon, model = full_name(name).partition(":")
    provider = provider_of(settings, provider_name)
    if provider.api == "embeddings":
        raise ModelRefusedError(
            f"{provider.label} has no language models",
            hint="for vectors: nacre writer embedding " + name,
        )
    if not model and (not colon or provider.api not in COMMANDS):
        raise ModelRefusedError(
            f"{name!r} is not a model of {provider.label}", hint=f"{provider_name}:<model>"
        )
    able = capabilities_of(settings, provider, model)
    return CallTarget(provider, model, credential_for(settings, provider_name), able.window), able


_CLIENTS = {
    "anthropic": llm_api.AnthropicModel,
    "openai": llm_api.OpenAIModel,
    "chat": llm_api.OpenAIModel,
}


# -- Usage and cost of calls -----------------------------------------------------------------------


_MIN_BYTES_PER_TOKEN = 2
"""Assumed minimum number of bytes in a token. Prose has four or more, code about three."""


def cost_of(completion: Completion, able: Capabilities) -> Decimal | None:
    """Return the cost of an answer in US dollars, or ``None`` if it is unknown. If the model has no
    price, it is the reported cost.
    """
    if completion.is_repeated:
        return Decimal(0)
    if able.price:
        return completion.tokens.cost(able.price)
    dollars = completion.more.get("cost_usd")
    return Decimal(str(dollars)) if isinstance(dollars, int | float) else None


def failed_usage(
    prompt: Prompt, error: BaseException, able: Capabilities
) -> tuple[Tokens, Decimal | None]:
    """Estimate the input tokens of a failed call and their cost in US dollars. Both are zero if the
    provider cannot have charged for the call.
    """
    is_free = isinstance(error, NacreError) and not isinstance(error, ModelDeclinedError)
    if isinstance(error, ModelUnavailableError):
        is_free = not error.may_cost
    if is_free:
        return Tokens(), Decimal(0)
    tokens = Tokens(input=tokens_of(prompt))
    return tokens, tokens.cost(able.price) if able.price else None


def max_cost(prompt: Prompt, able: Capabilities) -> int | None:
    """Return the highest possible cost of a prompt in millionths of a US dollar.

    Assumes the longest answer, an empty cache, and two bytes per token. Returns ``None`` if the
    price is unknown.
    """
    if able.price is None:
        return None
    input_tokens = sum(
        -(-len(text.encode("utf-8", "replace")) // _MIN_BYTES_PER_TOKEN) for text in _texts(prompt)
    )
    dearest = max(able.price.input, able.price.written)
    return as_counted(
        (input_tokens * dearest + most_written(prompt, able) * able.price.output) / MILLION
    )


def tokens_of(prompt: Prompt) -> int:
    """Estimate the number of tokens in a prompt, including its schema."""
    return sum(map(count_tokens, _texts(prompt)))


def _texts(prompt: Prompt) -> tuple[str, ...]:
    return prompt.system, prompt.shared, prompt.text, msgspec.json.encode(prompt.answer).decode()


def as_counted(dollars: Decimal | None) -> int | None:
    """Convert US dollars to millionths of a dollar, rounded up."""
    return None if dollars is None else ceil(dollars * DOLLAR)


# -- Models to choose from -------------------------------------------------------------------------
# They are listed by a local server, or else in ``proposals.toml``.


_LIST_TIMEOUT_SECONDS = 0.5
_MAX_LIST_BYTES = 1_000_000


def list_proposed(provider: Provider) -> list[str]:
    """Return a provider's models for the user to choose from, the recommended one first."""
    listed = listed_here(provider)
    if listed is not None:
        return listed
    return list(read_table("proposals.toml").get(provider.name, []))


def servers_here(settings: Settings) -> dict[str, list[str]]:
    """Return the models on each local server that responds."""
    able = [
        provider
        for provider in providers(settings).values()
        if provider.api == "chat" and not provider.needs_key
    ]
    lists = {provider.name: listed_here(provider) for provider in able}
    return {name: models for name, models in lists.items() if models is not None}


def listed_here(provider: Provider) -> list[str] | None:
    """Return the language models on a local server, or ``None`` if the provider is not local or
    does not respond.
    """
    address = urlsplit(provider.base_url)
    if provider.api != "chat" or address.scheme != "http" or not provider.is_here:
        return None
    connection = http.client.HTTPConnection(
        str(address.hostname), address.port, timeout=_LIST_TIMEOUT_SECONDS
    )
    try:
        connection.request("GET", f"{address.path.rstrip('/')}/models")
        answer = json.loads(connection.getresponse().read(_MAX_LIST_BYTES))
        names = [str(entry["id"]) for entry in answer["data"]]
        return [name for name in names if "embed" not in name.lower() and not traits_of(name).names]
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError, RecursionError):
        return None
    finally:
        connection.close()


@frozen
class Traits:
    """Properties of an embedding model, from ``embeddings.toml``."""

    names: list[str]
    dimensions: int = 0
    window: int = 512
    price: Decimal | None = None
    passage: str = ""
    question: str = ""


def traits_of(model: str) -> Traits:
    """Return the properties of a model, or defaults without ``names`` if ``embeddings.toml`` does
    not list it.
    """
    bare = model.lower().rpartition("/")[2].partition(":")[0]
    return next((traits for traits in _listed() if _matches(traits.names, bare)), Traits([]))


@cache
def _listed() -> list[Traits]:
    return [Traits(**table) for table in read_table("embeddings.toml")["model"]]


# -- Cassettes -------------------------------------------------------------------------------------
# Cassettes are files with recorded answers, which tests replay without a model.


Redact = Callable[[str], str]

_KEY_CHARACTERS = 24
_UNSAFE = re.compile(r"[^a-z0-9]+")
_ABLE = Capabilities(window=200_000, output=64_000, answers="schema", known=True)


def key_of(prompt: Prompt) -> str:
    """Return a hash that identifies a prompt. It ignores the timeout."""
    parts = [prompt.task, prompt.system, prompt.shared, prompt.text, prompt.name, prompt.answer]
    encoded = json.dumps(parts, sort_keys=True, ensure_ascii=False).encode(
        "utf-8", errors="replace"
    )
    return hashlib.sha256(encoded).hexdigest()[:_KEY_CHARACTERS]


class RecordingModel:
    """A wrapper that saves a model's successful answers in a folder.

    ``redact`` removes secrets from the recordings.
    """

    def __init__(self, model: LanguageModel, folder: Path, redact: Redact) -> None:
        self.name = model.name
        self.capabilities = model.capabilities
        self._model = model
        self._folder = folder
        self._redact = redact

    def complete(self, prompt: Prompt) -> Completion:
        """Return the model's answer after recording it. Errors of the model are passed on."""
        completion = self._model.complete(prompt)
        names = ("task", "version", "name", "system", "shared", "text", "answer")
        question = {name: getattr(prompt, name) for name in names}
        answer = {name: getattr(completion, name) for name in ("text", "model", "is_cut")}
        answer["tokens"] = asdict(completion.tokens)
        record = {"model": self.name, "prompt": question, "completion": answer}
        record = with_texts(record, self._redact)
        text = json.dumps(record, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
        private_files.make_folder(self._folder)
        private_files.write_file(self._folder / file_name(prompt), text)
        return completion

    def close(self) -> None:
        self._model.close()


class ReplayingModel:
    """A model that replays recorded answers."""

    def __init__(
        self, folder: Path, *, name: str = "cassette:1", capabilities: Capabilities = _ABLE
    ) -> None:
        self.name = name
        self.capabilities = capabilities
        self._folder = folder

    def complete(self, prompt: Prompt) -> Completion:
        """Return the recorded answer to a prompt. Raises ModelUnavailableError if there is none."""
        path = self._folder / file_name(prompt)
        try:
            answer = json.loads(path.read_text(encoding="utf-8"))["completion"]
            tokens = Tokens(**answer["tokens"])
            return Completion(
                answer["text"], tokens, answer["model"], answer["is_cut"], is_repeated=True
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            problem = f"no cassette in {self._folder} has this prompt ({prompt.version or prompt.task.value})"
            raise ModelUnavailableError(
                problem, hint="make cassettes MODEL=provider:model", retry=False
            ) from error

    def close(self) -> None:
        """Do nothing, because nothing is open."""


def file_name(prompt: Prompt) -> str:
    """Return the file name of a prompt's cassette."""
    version = _UNSAFE.sub("-", (prompt.version or prompt.task.value).lower()).strip("-")
    return f"{version}-{key_of(prompt)}.json"
