"""Requests about settings, models and keys."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from nacre.platform.request import Request

Provider = Annotated[str, Meta(description="The provider's name.", min_length=1)]


class SettingRequest(Request, frozen=True, kw_only=True):
    """One setting."""

    key: Annotated[str, Meta(description="The setting's key, as recall.limit.")]


class SetRequest(SettingRequest, frozen=True, kw_only=True):
    """Write one setting to the config file."""

    value: Annotated[Any, Meta(description="Text, a number, true or false; lists and tables are written as in TOML.")]


class TryModelRequest(Request, frozen=True, kw_only=True):
    """Ask a model one short question."""

    name: Annotated[str, Meta(description="provider:model; by default that of models.default.")] = ""


class ProviderRequest(Request, frozen=True, kw_only=True):
    """The key of a provider."""

    provider: Provider


class SetKeyRequest(ProviderRequest, frozen=True, kw_only=True):
    """Keep another key of a provider."""

    secret: Annotated[str, Meta(description="The key.", min_length=1)]


class WriterRequest(Request, frozen=True, kw_only=True):
    """Who writes from the sessions that end from now on, and what it may take."""

    writer: Annotated[str, Meta(description="provider:model, as claude-cli:haiku.", min_length=1)]
    tokens_per_day: (
        Annotated[int, Meta(description="Tokens a day, for a writer that a subscription pays.", ge=1)] | None
    ) = None
    dollars_per_day: (
        Annotated[float, Meta(description="US dollars a day that all models may take in the background.", ge=0)] | None
    ) = None
