"""What is answered to requests about settings, models and keys; :mod:`nacre.catalogue` lists them."""

from __future__ import annotations

from nacre.home.home import Home
from nacre.settings import Settings
from nacre.setup import credentials, offers
from nacre.setup.offers import Offer, Trial
from nacre.setup.requests import ProviderRequest, SetKeyRequest, TryModelRequest


def list_models(home: Home) -> list[Offer]:
    """The language models that are set."""
    return list(offers.offers(home))


def test_model(home: Home, request: TryModelRequest) -> Trial:
    """Ask a model one short question. Raises InvalidInput, ModelUnavailable, ModelRefused."""
    return offers.try_model(home, request.name)


def set_key(settings: Settings, request: SetKeyRequest) -> str:
    """Keep another key of a provider; returns where. Raises CredentialsUnusable, ModelRefused."""
    return credentials.replace_key(settings, request.provider, request.secret)


def remove_key(settings: Settings, request: ProviderRequest) -> list[str]:
    """Remove a provider's key; returns the places. Raises NotFound."""
    return credentials.remove(settings, request.provider)
