"""Whether another nacre than this one is at work: in what was wired, and as the daemon."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from nacre import __version__
from nacre.link.client import Away, Refused, ask
from nacre.settings import Settings
from nacre.values.reports import WARNING, Check
from nacre.wiring.record import Wired
from nacre.wiring.ways import own_programs

_SECONDS = 1.0


def written_by_another(settings: Settings, wired: Wired) -> str:
    """Which nacre wrote the wirings last, where it is not this one: of another version, or at another place."""
    program = shlex.join(own_programs(settings).nacre)
    if not wired.nacre or (wired.nacre, wired.program) == (__version__, program):
        return ""
    if wired.nacre != __version__:
        return f"nacre {wired.nacre} wrote it, this is {__version__}"
    return f"the nacre at {wired.program} wrote it, this is {program}"


def daemon_of_another(settings: Settings) -> Iterator[Check]:
    """A finding where the daemon is of another version."""
    try:
        version = str(ask(str(settings.home), "hello", {}, seconds=_SECONDS)["version"])
    except (Away, Refused, KeyError, TypeError):
        return
    if version != __version__:
        told = f"nacre {version} serves this home, this is {__version__}"
        yield Check("daemon", WARNING, told, "nacre serve stop; the next session starts this one's")
