"""What a daemon says of itself, and how others have it end. Light: commands ask before they load anything."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from nacre.link.address import LOCK
from nacre.link.client import Away, Refused, ask
from nacre.platform import json_values
from nacre.platform.locks import is_held

_PAUSE_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Greeting:
    """What a daemon says of itself.

    It runs for so many ``seconds``, answered ``answered`` questions and is at ``at_work``, this one left out.
    ``follows`` says whether it follows sessions; ``is_warm`` whether what it loads first is loaded. ``http`` is where
    it serves agents over HTTP. One that is ``on_demand`` ends when nobody asks for ``idle_minutes``.
    """

    pid: int
    version: str
    protocol: int
    seconds: float
    answered: int = 0
    at_work: int = 0
    follows: bool = False
    is_warm: bool = False
    http: str | None = None
    on_demand: bool = False
    idle_minutes: float | None = None
    memory_mb: float | None = None
    problems: tuple[str, ...] = ()


def greet(home: Path, seconds: float = 1.0) -> Greeting | None:
    """What the daemon of a home says of itself; ``None`` where none answers."""
    try:
        return json_values.convert(ask(str(home), "hello", {}, seconds=seconds), Greeting)
    except (Away, Refused, msgspec.ValidationError):
        return None


def ask_to_stop(home: Path, seconds: float = 5.0) -> bool:
    """Have the daemon of a home finish and end; returns whether it is gone."""
    with suppress(Away, Refused):
        ask(str(home), "stop", {}, seconds=1.0)
    until = time.monotonic() + seconds
    while is_held(home / LOCK):
        if time.monotonic() > until:
            return False
        time.sleep(_PAUSE_SECONDS)
    return True
