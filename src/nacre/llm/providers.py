"""Language models: names, capabilities, prices, clients, usage records and recorded answers."""

from __future__ import annotations

import hashlib
import http.client
import json
import re
import shutil
import time
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
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
from nacre.errors import ModelDeclinedError, ModelRefusedError, ModelUnavailableError, NacreError
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
    """Return the ``provider:model`` for an alias such as ``anthropic:sonnet``. Other names are returned unchanged."""
    provider, _, model = name.partition(":")
    model_name = aliases().get(provider, {}).get(model)
    return f"{provider}:{model_name}" if model_name else name


@cache
def aliases() -> Mapping[str, Mapping[str, str]]:
    """Return each provider's aliases with the corresponding models."""
    return tomllib.loads((files("nacre.llm") / "aliases.toml").read_text("utf-8"))


# -- Capabilities and prices -----------------------------------------------------------------------
# These are in ``capabilities.toml``. The setting ``models.capabilities`` takes precedence.


_DATE = re.compile(r"[-@](?:20\d{6}|20\d\d-\d\d-\d\d)(?:-v\d+(?::\d+)?)?$")
_OWNER = re.compile(r"^(?:[a-z]{2}\.)?anthropic\.")
_FIXED = (*COMMANDS, "mcp-sampling")
"""Model formats that support schemas in the same way for every model."""
_THINKING_TOKENS = 8_192
"""Additional output tokens for thinking, which would otherwise truncate the answer."""


class _Own(msgspec.Struct, forbid_unknown_fields=True):
    window: int | None = None
    output: int | None = None
    answers: Literal["schema", "tool", "json", "text"] | None = None
    caches: bool | None = None
    price: dict[str, float] | None = None


def capabilities_of(settings: Settings, provider: Provider, model: str) -> Capabilities:
    """Return a model's capabilities. Unknown models get small defaults, and ``known`` is False.

    Tables in ``models.capabilities`` are keyed by ``provider:model``, by a model's name, or by patterns of these.
    Raises ModelRefusedError for invalid tables.
    """
    listed = (able for names, able in _tables() if _matches(names, bare_name(model)))
    able = next(listed, None) or Capabilities(answers=provider.answers or "json")
    if provider.api in _FIXED:
        able = replace(able, answers=provider.answers)
    if provider.free:
        able = replace(able, price=Price())
    return _with_overrides(settings, provider, model, able)


def own_price(settings: Settings, provider: Provider, model: str) -> Decimal | None:
    """Return the user's price per million input tokens, if configured. Raises ModelRefusedError."""
    price = _with_overrides(settings, provider, model, Capabilities()).price
    return price.input if price else None


def _with_overrides(
    settings: Settings, provider: Provider, model: str, able: Capabilities
) -> Capabilities:
    own: Mapping[str, Mapping[str, Any]] = settings["models.capabilities"]
    for pattern, table in own.items():
        if _matches([pattern], f"{provider.name}:{model}", model, bare_name(model)):
            able = _changed(able, pattern, table)
    return replace(able, thinking=_THINKING_TOKENS if provider.api == "openai" else 0)


def bare_name(model: str) -> str:
    """Return a model's name without provider and date.

    ``anthropic/claude-sonnet-4-20250514`` becomes ``claude-sonnet-4``.
    """
    name = model.lower().rpartition("/")[2]
    return _DATE.sub("", _OWNER.sub("", name))


@cache
def _tables() -> Sequence[tuple[tuple[str, ...], Capabilities]]:
    text = (files("nacre.llm") / "capabilities.toml").read_text("utf-8")
    tables = tomllib.loads(text, parse_float=Decimal)["model"]
    entries = []
    for table in tables:
        names, price = table.pop("names"), table.pop("price", None)
        entries.append(
            (
                tuple(names),
                Capabilities(**table, price=Price(**price) if price else None, known=True),
            )
        )
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
    """Parse a price. By default, cached tokens cost as much as input. Raises TypeError for unknown names."""
    prices = {name: Decimal(str(value)) for name, value in table.items()}
    whole = prices.get("input", Decimal(0))
    return Price(**{"cached": whole, "written": whole, **prices})


# -- Opening models --------------------------------------------------------------------------------


def open_model(settings: Settings, name: str) -> LanguageModel:
    """Open the model ``provider:model``, without sending anything.

    Raises ModelRefusedError if the provider is unknown, its library is missing, or there is no key.
    """
    target, able = describe(settings, name)
    if target.provider.needs_key and target.credential is None:
        raise failures.no_key(target)
    api = target.provider.api  # only the module for this format is loaded
    if api == "mcp-sampling":
        hint = "it only works with an MCP client that offers sampling; otherwise set another model"
        raise ModelRefusedError(
            f"{target.name} needs an MCP client, and none is connected", hint=hint
        )
    if api in _COMMANDS:
        by_command: Callable[..., LanguageModel] = load(_COMMANDS[api])
        return by_command(target, able, _environment(settings, target.provider))
    over_http: Callable[..., LanguageModel] = load(_WIRES[api])
    return over_http(target, able)


def _environment(settings: Settings, provider: Provider) -> Mapping[str, str]:
    """Return the environment variables for an agent's command.

    Credentials for channels are omitted, because the agent's tools can read the variables. API keys
    are omitted if calls would be billed to the key instead of a subscription.
    """
    channels: Mapping[str, Mapping[str, Any]] = settings["gateway.channels"]
    named = {str(value) for options in channels.values() for value in options.values()}
    own = environment_of(settings, provider)
    return {name: value for name, value in own.items() if f"env:{name}" not in named}


def obstacle(settings: Settings, target: CallTarget) -> NacreError | None:
    """Return the error that prevents a model from being opened, or ``None``. Nothing is loaded."""
    if target.provider.needs_key and target.credential is None:
        return failures.no_key(target)
    if library := _LIBRARIES.get(target.provider.api):
        return None if find_spec(library) else failures.no_library(target, library)
    if program := COMMANDS.get(target.provider.api):
        return (
            None
            if shutil.which(program, path=settings.environ.get("PATH"))
            else failures.no_program(target, program)
        )
    return None


def describe(settings: Settings, name: str) -> tuple[CallTarget, Capabilities]:
    """Return the target for calls to a model, and the model's capabilities.

    ``name`` can be an alias. Raises ModelRefusedError.
    """
    provider_name, colon, model = full_name(name).partition(":")
    provider = provider_of(settings, provider_name)
    if provider.api == "embeddings":
        raise ModelRefusedError(
            f"{provider.label} has no language models",
            hint="for vectors: nacre writer embedding " + name,
        )
    if not model and (not colon or provider.api not in (*COMMANDS, "mcp-sampling")):
        raise ModelRefusedError(
            f"{name!r} is not a model of {provider.label}", hint=f"{provider_name}:<model>"
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
    "claude-cli": "nacre.llm.programs:ClaudeModel",
    "codex-cli": "nacre.llm.programs:CodexModel",
    "gemini-cli": "nacre.llm.programs:GeminiModel",
    "opencode-cli": "nacre.llm.programs:OpenCodeModel",
}


# -- Metered models --------------------------------------------------------------------------------


_MIN_BYTES_PER_TOKEN = 2
"""Assumed minimum number of bytes in a token. Prose has four or more, code about three."""


class Books(Protocol):
    """Records calls. Costs are in millionths of a US dollar."""

    def begin(self, model: str, prompt: Prompt, most: int | None) -> Call:
        """Record the start of a call with its maximum cost (``None``: unknown).

        Raises BudgetSpentError, ModelUnavailableError.
        """

    def end(self, call: Call, error: NacreError | None = None) -> None:
        """Record the end of a call with its tokens and cost.

        The tokens and cost of a failed call are estimates. If the caller has abandoned the call,
        the outcome stays ``open``.
        """

    def trace(self, call: Call, prompt: Prompt, answer: str, error: str) -> None:
        """Store a call's prompt, answer and error."""

    def close(self) -> None:
        """Release resources."""


class Metered:
    """A language model that records its calls and their cost.

    If a library retries a call, this counts as one call.
    """

    def __init__(self, model: LanguageModel, books: Books) -> None:
        self.name = model.name
        self.capabilities = model.capabilities
        self._model = model
        self._books = books
        self._is_closed = False

    def complete(self, prompt: Prompt) -> Completion:
        """Answer a prompt. Raises the model's errors, and BudgetSpentError."""
        call = self._books.begin(self.name, prompt, most_of(prompt, self.capabilities))
        began = time.perf_counter()
        try:
            completion = self._model.complete(prompt)
        except BaseException as error:
            tokens, cost = of_failed(prompt, error, self.capabilities)
            ended = self._ended(call, tokens, cost, time.perf_counter() - began)
            if isinstance(error, NacreError) and not self._is_closed:
                ended = replace(ended, outcome="failed")
                self._books.end(ended, error)
            else:
                self._books.end(ended)
            self._books.trace(ended, prompt, "", str(error) or type(error).__name__)
            raise
        cost = cost_of(completion, self.capabilities)
        ended = self._ended(call, completion.tokens, cost, time.perf_counter() - began)
        self._books.end(replace(ended, outcome="done"))
        answer = "\n".join([*completion.more.get("steps", ()), completion.text])
        self._books.trace(ended, prompt, answer, "")
        return completion

    @staticmethod
    def _ended(call: Call, tokens: Tokens, cost: Decimal | None, seconds: float) -> Call:
        return replace(call, tokens=tokens, cost=as_counted(cost), seconds=seconds)

    def close(self) -> None:
        """Cancel the running calls. Their maximum costs stay recorded."""
        self._is_closed = True
        self._model.close()
        self._books.close()


def cost_of(completion: Completion, able: Capabilities) -> Decimal | None:
    """Return the cost of an answer in US dollars, or ``None`` if the cost is unknown.

    The cost is computed from the tokens. If the model has no price, the reported cost is returned.
    """
    if completion.is_repeated:
        return Decimal(0)
    if able.price:
        return completion.tokens.cost(able.price)
    dollars = completion.more.get("cost_usd")
    return Decimal(str(dollars)) if isinstance(dollars, int | float) else None


def of_failed(
    prompt: Prompt, error: BaseException, able: Capabilities
) -> tuple[Tokens, Decimal | None]:
    """Estimate the input tokens of a failed call, and their price in US dollars.

    Both are zero if the provider refused the call or was not reached.
    """
    is_free = isinstance(error, NacreError) and not isinstance(error, ModelDeclinedError)
    if isinstance(error, ModelUnavailableError):
        is_free = not error.may_cost
    if is_free:
        return Tokens(), Decimal(0)
    tokens = Tokens(input=tokens_of(prompt))
    return tokens, tokens.cost(able.price) if able.price else None


def most_of(prompt: Prompt, able: Capabilities) -> int | None:
    """Return the maximum cost of a prompt, or ``None`` if the model has no price.

    The estimate assumes the longest answer, an empty cache, and two bytes per token.
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
    """Estimate the tokens in a prompt, including its schema."""
    return sum(map(count_tokens, _texts(prompt)))


def _texts(prompt: Prompt) -> tuple[str, ...]:
    return prompt.system, prompt.shared, prompt.text, msgspec.json.encode(prompt.answer).decode()


def as_counted(dollars: Decimal | None) -> int | None:
    """Convert US dollars to millionths, rounded up."""
    return None if dollars is None else ceil(dollars * DOLLAR)


# -- Models to choose from -------------------------------------------------------------------------
# They are listed by a local server, or else in ``proposals.toml``.


_LIST_TIMEOUT_SECONDS = 0.5
_MAX_LIST_BYTES = 1_000_000


def list_proposed(provider: Provider) -> list[str]:
    """Return a provider's known model names, starting with the recommended model. The list can be empty."""
    listed = listed_here(provider)
    if listed is not None:
        return listed
    table = tomllib.loads((files("nacre.llm") / "proposals.toml").read_text("utf-8"))
    return list(table.get(provider.name, []))


def servers_here(settings: Settings) -> dict[str, list[str]]:
    """Return the models on the local servers that respond, by provider.

    Raises ModelRefusedError if ``models.providers`` is invalid.
    """
    able = [
        provider
        for provider in providers(settings).values()
        if provider.api == "chat" and not provider.needs_key
    ]
    lists = {provider.name: listed_here(provider) for provider in able}
    return {name: models for name, models in lists.items() if models is not None}


def listed_here(provider: Provider) -> list[str] | None:
    """Return a local server's language models, or ``None`` if the provider is remote or does not respond."""
    address = urlsplit(provider.base_url)
    if (
        provider.api != "chat"
        or address.scheme != "http"
        or not address.hostname
        or not is_loopback(address.hostname)
    ):
        return None
    connection = http.client.HTTPConnection(
        address.hostname, address.port, timeout=_LIST_TIMEOUT_SECONDS
    )
    try:
        connection.request("GET", f"{address.path.rstrip('/')}/models")
        answer = json.loads(connection.getresponse().read(_MAX_LIST_BYTES))
        return [name for entry in answer["data"] if not _makes_vectors(name := str(entry["id"]))]
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError, RecursionError):
        return None
    finally:
        connection.close()


def _makes_vectors(model: str) -> bool:
    bare = model.lower().rpartition("/")[2].partition(":")[0]
    return "embed" in bare or _matches(_for_vectors(), bare)


@cache
def _for_vectors() -> tuple[str, ...]:
    tables = tomllib.loads((files("nacre.llm") / "embeddings.toml").read_text("utf-8"))["model"]
    return tuple(name for table in tables for name in table["names"])


# -- Cassettes -------------------------------------------------------------------------------------
# Cassettes are files with recorded answers, which tests replay without a model.


Redact = Callable[[str], str]

_KEY_CHARACTERS = 24
_UNSAFE = re.compile(r"[^a-z0-9]+")
_ABLE = Capabilities(window=200_000, output=64_000, answers="schema", known=True)


def key_of(prompt: Prompt) -> str:
    """Return a hash of a prompt without its timeout."""
    parts = [prompt.task, prompt.system, prompt.shared, prompt.text, prompt.name, prompt.answer]
    encoded = json.dumps(parts, sort_keys=True, ensure_ascii=False).encode(
        "utf-8", errors="replace"
    )
    return hashlib.sha256(encoded).hexdigest()[:_KEY_CHARACTERS]


class RecordingModel:
    """A model that records another model's answers in ``folder``. Implements LanguageModel.

    ``redact`` removes secrets before writing. Prompts contain no credentials. Failures are not recorded.
    """

    def __init__(self, model: LanguageModel, folder: Path, redact: Redact) -> None:
        self.name = model.name
        self.capabilities = model.capabilities
        self._model = model
        self._folder = folder
        self._redact = redact

    def complete(self, prompt: Prompt) -> Completion:
        """Return and record the model's answer. Raises the model's errors."""
        completion = self._model.complete(prompt)
        question = {
            "task": prompt.task.value,
            "version": prompt.version,
            "name": prompt.name,
            "system": prompt.system,
            "shared": prompt.shared,
            "text": prompt.text,
            "answer": dict(prompt.answer),
        }
        answer = {
            "text": completion.text,
            "model": completion.model,
            "is_cut": completion.is_cut,
            "tokens": asdict(completion.tokens),
        }
        record = _without_secrets(
            {"model": self.name, "prompt": question, "completion": answer}, self._redact
        )
        text = json.dumps(record, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
        private_files.make_folder(self._folder)
        private_files.write_file(self._folder / file_name(prompt), text)
        return completion

    def close(self) -> None:
        self._model.close()


class ReplayingModel:
    """A model that replays the cassettes in a folder. Implements LanguageModel.

    Raises ModelUnavailableError for a prompt that was not recorded or has changed.
    """

    def __init__(
        self, folder: Path, *, name: str = "cassette:1", capabilities: Capabilities = _ABLE
    ) -> None:
        self.name = name
        self.capabilities = capabilities
        self._folder = folder

    def complete(self, prompt: Prompt) -> Completion:
        """Return the answer and the token counts that were recorded for a prompt.

        Raises ModelUnavailableError if there is no recording.
        """
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
        """Do nothing."""


def file_name(prompt: Prompt) -> str:
    """Return the file name of a prompt's cassette, which contains the prompt's version and key."""
    version = _UNSAFE.sub("-", (prompt.version or prompt.task.value).lower()).strip("-")
    return f"{version}-{key_of(prompt)}.json"


def _without_secrets(value: Any, redact: Redact) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {key: _without_secrets(item, redact) for key, item in value.items()}
    return [_without_secrets(item, redact) for item in value] if isinstance(value, list) else value
