"""How a host is set up and talked to: one driver a host, all alike to the tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from tests.hosts.stage import Stage


@dataclass(frozen=True)
class Said:
    """What came of one prompt: the model's words as the host shows them, and the host's own id of the session."""

    text: str
    session: str
    seconds: float
    more: Mapping[str, object] = field(default_factory=dict)


class Driver(Protocol):
    """One host. ``name`` is its name for ``nacre init``, which is given ``options`` besides; ``tool`` is that of the
    adapter which reads its transcripts, ``program`` what people type to start it."""

    name: str
    tool: str
    program: str
    options: tuple[str, ...]
    starts: str
    """Its event when a session starts; so with ``prompts``, ``compacts`` and ``ends``, empty where it has none."""
    prompts: str
    compacts: str
    ends: str

    def set_up(self, stage: Stage) -> None:
        """Write what the host itself needs to talk to the provider; nothing of nacre's."""

    def say(self, stage: Stage, prompt: str, session: str = "", *, compacts: bool = False) -> Said:
        """One prompt, in a new session or in one that goes on. ``compacts`` lets the host compact as early as it can.

        Raises AssertionError where the host fails.
        """
