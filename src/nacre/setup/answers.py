"""What is answered to requests about settings, models and keys; :mod:`nacre.catalogue` lists them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nacre.home.home import Home
from nacre.settings import SETTINGS, Settings, load_settings, write_setting
from nacre.setup import credentials, offers
from nacre.setup.offers import Offer, Trial
from nacre.setup.requests import ProviderRequest, SetKeyRequest, SetRequest, SettingRequest, TryModelRequest
from nacre.setup.visible_settings import hidden


@dataclass(frozen=True, slots=True)
class SettingView:
    """A setting's value, as ``sk-…abcd`` where it is a key, and where the value comes from."""

    key: str
    value: Any
    origin: str


def list_settings(settings: Settings) -> list[SettingView]:
    """Every setting, its value, and where the value comes from."""
    return [_view(settings, setting.key) for setting in SETTINGS]


def get_setting(settings: Settings, request: SettingRequest) -> SettingView:
    """One setting. Raises SettingsInvalid."""
    return _view(settings, request.key)


def set_setting(settings: Settings, request: SetRequest) -> SettingView:
    """Write one setting to the config file. Raises SettingsInvalid."""
    write_setting(settings.config, request.key, request.value)
    return _view(load_settings(settings.home, settings.environ), request.key)


def _view(settings: Settings, key: str) -> SettingView:
    return SettingView(key, hidden(settings, settings[key]), settings.values[key].origin)


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
