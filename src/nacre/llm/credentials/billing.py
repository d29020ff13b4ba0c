"""What pays the calls of an agent's own command: the subscription of whoever is signed in, or an API key."""

from __future__ import annotations

from contextlib import suppress

from nacre.errors import CredentialsUnusable
from nacre.llm.credentials import logins
from nacre.llm.credentials.methods import API_KEY
from nacre.llm.providers import COMMANDS, Provider
from nacre.settings import Settings


def key_of(settings: Settings, provider: Provider) -> str:
    """Where the API key is that an agent's command would be billed by; empty where somebody is signed in, or no key is
    found.
    """
    tool = COMMANDS.get(provider.api)
    if not provider.subscription or tool is None or logins.is_signed_in(settings, tool):
        return ""
    named = next((name for name in provider.keys if settings.environ.get(name)), "")
    if named:
        return f"${named}"
    with suppress(CredentialsUnusable):
        return next((str(one.path) for one in logins.read(settings, tool) if one.kind == API_KEY), "")
    return ""


def absence(settings: Settings, provider: Provider) -> str:
    """What is told of an agent's command to which nobody seems to be signed in; empty where somebody is, or may be."""
    tool = COMMANDS.get(provider.api)
    if tool is None or logins.is_signed_in(settings, tool):
        return ""
    key = key_of(settings, provider)
    if not key and logins.may_be_in_keychain(settings, tool):
        return ""
    told = f"Nobody seems to be signed in to {provider.label}"
    return f"{told}, which would be billed to the key in {key}." if key else f"{told}."


def environment_of(settings: Settings, provider: Provider) -> dict[str, str]:
    """The environment of an agent's command: without API keys where a subscription pays, which they would go before."""
    kept = dict(settings.environ)
    if provider.subscription and not key_of(settings, provider):
        for name in provider.keys:
            kept.pop(name, None)
    return kept
