"""Providers by name."""

from __future__ import annotations

from nacre.errors import ModelRefused
from nacre.protocols import LanguageModel
from nacre.settings import Settings


def open_model(settings: Settings, name: str) -> LanguageModel:  # noqa: ARG001
    """The model ``provider:model``. Raises ModelRefused where the provider is unknown or its library is missing."""
    provider, _, _ = name.partition(":")
    raise ModelRefused(f"no provider is called {provider!r}", hint="nacre setup")
