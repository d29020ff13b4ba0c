"""What is answered to requests about the embedding model; :mod:`nacre.catalogue` lists them."""

from __future__ import annotations

from nacre.home.home import Home
from nacre.indexing import model_switch
from nacre.indexing.model_switch import Plan, Trial
from nacre.indexing.requests import ModelRequest
from nacre.indexing.vectors import Embedded
from nacre.values.reports import OnProgress, Progress


def plan(home: Home, request: ModelRequest) -> Plan:
    """What it takes to go over to a model, or on with it; nothing is sent. Raises EmbedderUnavailable."""
    return model_switch.plan(home, request.name)


def try_one(home: Home, request: ModelRequest) -> Trial:
    """Embed one short text. Raises EmbedderUnavailable."""
    return model_switch.try_one(home, request.name)


def switch(home: Home, request: ModelRequest, on_progress: OnProgress | None = None) -> Embedded:
    """Have another model make the vectors. Raises EmbedderUnavailable, SettingsInvalid."""
    return model_switch.switch(home, request.name, on_progress or _ignore)


def resume(home: Home, on_progress: OnProgress | None = None) -> Embedded:
    """Go on with the vectors that are missing."""
    return model_switch.resume(home, on_progress or _ignore)


def _ignore(_: Progress) -> None:
    """Nobody waits for it."""
