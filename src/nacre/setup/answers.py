"""What is answered to requests about settings, models and keys; :mod:`nacre.catalogue` lists them."""

from __future__ import annotations

from nacre.home.home import Home
from nacre.settings import Settings
from nacre.setup import credentials, foreseeing, offers, writer
from nacre.setup.foreseeing import Foreseen
from nacre.setup.offers import Offer, Trial
from nacre.setup.requests import ProviderRequest, SetKeyRequest, TryModelRequest, WriterRequest
from nacre.setup.writer import WriterStatus


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


def writer_status(home: Home) -> WriterStatus:
    """Who writes, and how it fares."""
    return writer.status(home)


def writer_foreseen(home: Home) -> Foreseen:
    """What a writer would take a day, going by the last week."""
    return foreseeing.foreseen(home)


def set_writer(home: Home, request: WriterRequest) -> WriterStatus:
    """Let a model write. Raises ModelRefused, InvalidInput, Unavailable."""
    return writer.set_writer(home, request)


def pause_writer(home: Home) -> WriterStatus:
    """Show the writer no session for now. Raises Unavailable."""
    return writer.pause(home)


def resume_writer(home: Home) -> WriterStatus:
    """Show it sessions again. Raises Unavailable."""
    return writer.resume(home)


def end_writer(home: Home) -> WriterStatus:
    """Have no writer any more. Raises Unavailable."""
    return writer.end(home)
