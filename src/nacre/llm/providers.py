"""What is known of providers of language models: those of ``providers.toml`` and the owner's own."""

from __future__ import annotations

import ipaddress
import re
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

from nacre.errors import ModelRefused
from nacre.settings import Settings

COMMANDS = {"claude-cli": "claude", "codex-cli": "codex", "gemini-cli": "gemini", "opencode-cli": "opencode"}
"""Formats that are an agent tool's own command, and what it is called."""

APIS = ("anthropic", "openai", "chat", *COMMANDS, "mcp-sampling", "embeddings")
_ANSWERS = ("schema", "tool", "json", "text")
_OWN_KEYS = ("api", "base_url", "key", "api_key", "label", "answers", "free", "plain_http")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_YES = ("yes", "true", "1", "on")


@dataclass(frozen=True, slots=True)
class Provider:
    """Who answers, and in which format.

    ``variables`` are the environment's names for its key; ``api_key`` is one that is written in the configuration.
    With a ``subscription`` calls have no price of their own: tokens are counted instead.
    ``beside`` is about how many tokens a command of an agent adds to each question; ``keys`` are the environment's
    names for keys by which its calls would be billed instead.
    ``answers`` is what each of its models can be held to at least (see Capabilities), empty where that is not known.
    """

    name: str
    label: str
    api: str
    base_url: str = ""
    variables: tuple[str, ...] = ()
    needs_key: bool = True
    answers: str = ""
    free: bool = False
    subscription: bool = False
    beside: int = 0
    keys: tuple[str, ...] = ()
    api_key: str = field(default="", repr=False)


def providers(settings: Settings) -> dict[str, Provider]:
    """All providers by name, the owner's own last. Raises ModelRefused where one is written wrongly."""
    return {name: provider_of(settings, name) for name in (*_built_in(), *settings["models.providers"])}


def provider_of(settings: Settings, name: str) -> Provider:
    """The provider of a name. What ``models.providers`` says of it goes before what is built in.

    Raises ModelRefused where there is none, and where its address would send prompts in the clear to another machine.
    """
    own: Mapping[str, str] | None = settings["models.providers"].get(name)
    provider = _built_in().get(name)
    if own is None and provider is None:
        known = ", ".join((*_built_in(), *settings["models.providers"]))
        raise ModelRefused(f"no provider of models is called {name!r}", hint=f"providers: {known}, or none")
    if own is None:
        assert provider is not None  # noqa: S101
        return provider
    return _with_own(provider or Provider(name, name, "chat", needs_key="key" in own), own)


def is_built_in(name: str) -> bool:
    """Whether nacre knows a provider by itself."""
    return name in _built_in()


@cache
def _built_in() -> Mapping[str, Provider]:
    tables: dict[str, dict[str, Any]] = tomllib.loads((files("nacre.llm") / "providers.toml").read_text("utf-8"))
    return {
        name: Provider(name, **{**table, **{key: tuple(table.get(key, ())) for key in ("variables", "keys")}})
        for name, table in tables.items()
    }


def _with_own(provider: Provider, own: Mapping[str, str]) -> Provider:
    where = f"models.providers.{provider.name}"
    for key in own:
        if key not in _OWN_KEYS:
            raise ModelRefused(f"{where} has no key {key!r}", hint=f"keys: {', '.join(_OWN_KEYS)}")
    _check_choice(where, "api", own, APIS)
    _check_choice(where, "answers", own, _ANSWERS)
    if "key" in own and not _VARIABLE.fullmatch(own["key"]):  # a key itself is not shown
        raise ModelRefused(f"{where}.key is no name of an environment variable", hint="key = the variable's name")
    plain: dict[str, Any] = {
        name: own[name] for name in ("api", "base_url", "label", "answers", "api_key") if name in own
    }
    changed = replace(provider, **plain)
    if "key" in own:
        changed = replace(changed, variables=(own["key"],), needs_key=True)
    is_here = is_loopback(_host(changed)) and not (changed.needs_key or changed.api_key)
    changed = replace(changed, free=own["free"].lower() in _YES if "free" in own else changed.free or is_here)
    _check_address(where, changed, own.get("plain_http", "").lower() in _YES)
    return changed


def is_on_this_machine(provider: Provider) -> bool:
    """Whether a provider answers on this machine itself."""
    return is_loopback(_host(provider))


def _host(provider: Provider) -> str:
    with suppress(ValueError):  # an address that is none is refused further on
        return urlsplit(provider.base_url).hostname or ""
    return ""


def _check_choice(where: str, key: str, own: Mapping[str, str], choices: tuple[str, ...]) -> None:
    if key in own and own[key] not in choices:
        raise ModelRefused(f"{where}.{key} cannot be {own[key]!r}", hint=f"one of: {', '.join(choices)}")


def _check_address(where: str, provider: Provider, may_be_plain: bool) -> None:
    if provider.api in (*COMMANDS, "mcp-sampling"):
        return
    try:
        address = urlsplit(provider.base_url)
        host = address.hostname
    except ValueError:
        host = None
    if not host or address.scheme not in ("http", "https"):
        raise ModelRefused(f"{where}.base_url is no address", hint='base_url = "https://host/v1"')
    if address.scheme == "http" and not (may_be_plain or is_loopback(host)):
        raise ModelRefused(
            f"{where} would send prompts and keys in the clear to {host}",
            hint='use https; for a network of your own, add plain_http = "yes"',
        )


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
