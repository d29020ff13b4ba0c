"""Models by name: ``provider:model``."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

from nacre.errors import ModelRefused, NacreError
from nacre.llm import failures
from nacre.llm.aliases import full_name
from nacre.llm.capabilities import capabilities_of
from nacre.llm.credentials.billing import environment_of
from nacre.llm.credentials.keys import credential_for
from nacre.llm.failures import CallTarget
from nacre.llm.providers import COMMANDS, Provider, provider_of
from nacre.platform.lazy import load
from nacre.protocols import LanguageModel
from nacre.settings import Settings
from nacre.values.model_calls import Capabilities


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
        return None if shutil.which(program, path=settings.environ.get("PATH")) else failures.no_program(asked, program)
    return None


def describe(settings: Settings, name: str) -> tuple[CallTarget, Capabilities]:
    """Who answers for a name or an alias, and what it can do. Raises ModelRefused where that cannot be told."""
    provider_name, colon, model = full_name(name).partition(":")
    provider = provider_of(settings, provider_name)
    if provider.api == "embeddings":
        raise ModelRefused(f"{provider.label} has no language models", hint="for vectors: nacre embed switch " + name)
    if not model and (not colon or provider.api not in (*COMMANDS, "mcp-sampling")):
        raise ModelRefused(f"{name!r} names no model of {provider.label}", hint=f"{provider_name}:<model>")
    able = capabilities_of(settings, provider, model)
    return CallTarget(provider, model, credential_for(settings, provider_name), able.window), able


_LIBRARIES = {"anthropic": "anthropic", "openai": "openai", "chat": "openai"}
_WIRES = {
    "anthropic": "nacre.llm.wires.anthropic_api:AnthropicModel",
    "openai": "nacre.llm.wires.openai_api:OpenAIModel",
    "chat": "nacre.llm.wires.openai_api:OpenAIModel",
}
_COMMANDS = {
    "claude-cli": "nacre.llm.wires.claude_cli:claude_model",
    "codex-cli": "nacre.llm.wires.codex_cli:codex_model",
    "gemini-cli": "nacre.llm.wires.gemini_cli:gemini_model",
    "opencode-cli": "nacre.llm.wires.opencode_cli:opencode_model",
}
