"""The interface of host drivers: set up a host and send it prompts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from tests.hosts.stage import Stage


@dataclass(frozen=True)
class PromptResult:
    """The result of one prompt: the text that the host shows and its session id."""

    text: str
    session: str
    seconds: float
    more: Mapping[str, object] = field(default_factory=dict)


class Driver(Protocol):
    """A host. ``name`` is its name for ``nacre init`` and ``options`` are further arguments.

    ``tool`` is the name of the adapter that reads its transcripts, and ``program`` the command that people type.
    """

    name: str
    tool: str
    program: str
    options: tuple[str, ...]
    starts: str
    """The event of a session start; also ``prompts``, ``compacts`` and ``ends``, empty if there is none."""
    prompts: str
    compacts: str
    ends: str

    def set_up(self, stage: Stage) -> None:
        """Write the host's own provider settings, without anything of nacre's."""

    def say(
        self, stage: Stage, prompt: str, session: str = "", *, compacts: bool = False
    ) -> PromptResult:
        """Run one prompt in a new or an existing session. ``compacts`` lets the host compact as early as possible.

        Raises AssertionError if the host fails.
        """
