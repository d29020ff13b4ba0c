"""Models by name: ``provider:model``."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from importlib.util import find_spec

from nacre.errors import ModelRefused, NacreError
from nacre.llm import failures
from nacre.llm.capabilities import capabilities_of
from nacre.llm.credentials.keys import credential_for
from nacre.llm.failures import Asked
from nacre.llm.providers import provider_of
from nacre.llm.retry import RetryingModel
from nacre.protocols import LanguageModel
from nacre.settings import Settings
from nacre.values.model_calls import Capabilities

Opener = Callable[[Settings, Asked, Capabilities], LanguageModel]


def open_model(settings: Settings, name: str) -> LanguageModel:
    """The model ``provider:model``, which tries again by itself. Nothing is sent yet.

    Raises ModelRefused where the provider is unknown, its library is missing, or there is no key.
    """
    asked, able = describe(settings, name)
    if asked.provider.needs_key and asked.credential is None:
        raise failures.no_key(asked)
    return RetryingModel(
        _OPENERS[asked.provider.api](settings, asked, able), seconds=settings["models.timeout_seconds"]
    )


def obstacle(settings: Settings, asked: Asked) -> NacreError | None:
    """What keeps a model from being opened, as far as that is seen without loading anything."""
    if asked.provider.needs_key and asked.credential is None:
        return failures.no_key(asked)
    if library := _LIBRARIES.get(asked.provider.api):
        return None if find_spec(library) else failures.no_library(asked, library)
    if program := _PROGRAMS.get(asked.provider.api):
        return None if shutil.which(program, path=settings.environ.get("PATH")) else failures.no_program(asked, program)
    return None


def describe(settings: Settings, name: str) -> tuple[Asked, Capabilities]:
    """Who answers for a name, and what it can do. Raises ModelRefused where that cannot be told."""
    provider_name, colon, model = name.partition(":")
    provider = provider_of(settings, provider_name)
    if provider.api == "embeddings":
        raise ModelRefused(f"{provider.label} has no language models", hint="for vectors: nacre embed switch " + name)
    if not model and (not colon or provider.api not in ("claude-cli", "codex-cli", "mcp-sampling")):
        raise ModelRefused(f"{name!r} names no model of {provider.label}", hint=f"{provider_name}:<model>")
    able = capabilities_of(settings, provider, model)
    return Asked(provider, model, credential_for(settings, provider_name), able.window), able


def _anthropic(_: Settings, asked: Asked, able: Capabilities) -> LanguageModel:
    from nacre.llm.wires.anthropic_api import AnthropicModel  # each only where it is asked for

    return AnthropicModel(asked, able)


def _openai(_: Settings, asked: Asked, able: Capabilities) -> LanguageModel:
    from nacre.llm.wires.openai_api import OpenAIModel

    return OpenAIModel(asked, able)


def _claude(settings: Settings, asked: Asked, able: Capabilities) -> LanguageModel:
    from nacre.llm.wires.claude_cli import claude_model

    return claude_model(asked, able, settings.environ)


def _codex(settings: Settings, asked: Asked, able: Capabilities) -> LanguageModel:
    from nacre.llm.wires.codex_cli import codex_model

    return codex_model(asked, able, settings.environ)


def _sampling(_: Settings, asked: Asked, able: Capabilities) -> LanguageModel:  # noqa: ARG001
    hint = "it works where nacre is called by an MCP client that offers it; elsewhere set another model"
    raise ModelRefused(f"no MCP client is connected, which {asked.name} needs", hint=hint)


_LIBRARIES = {"anthropic": "anthropic", "openai": "openai", "chat": "openai"}
_PROGRAMS = {"claude-cli": "claude", "codex-cli": "codex"}
_OPENERS: dict[str, Opener] = {
    "anthropic": _anthropic, "openai": _openai, "chat": _openai,
    "claude-cli": _claude, "codex-cli": _codex, "mcp-sampling": _sampling,
}  # fmt: skip
