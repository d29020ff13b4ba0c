"""Who answers: the seam between conversations and agents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from nacre.values.gateway.message import Answer


@dataclass(frozen=True, slots=True)
class Question:
    """One question: what the responder is told of itself (``system``), and everything else (``text``).

    ``tools`` are those that the owner allows in this channel, by the agent's own names; without any it has none.
    ``folder`` is where it works while it may use them. ``seconds`` is the longest time it may take.
    """

    system: str
    text: str
    tools: tuple[str, ...] = ()
    folder: Path | None = None
    seconds: float = 300.0


class Responder(Protocol):
    """Answers questions; safe to share between threads. It has no memory of others."""

    name: str
    """``provider:model``."""

    window: int
    """Tokens that it reads and writes at most."""

    def answer(self, question: Question, hear: Callable[[str], None] | None = None) -> Answer:
        """Answer in plain text. ``hear`` is given pieces of the answer as they come, where it can stream.

        Raises ModelUnavailable, ModelRefused, BudgetSpent.
        """

    def close(self) -> None:
        """Cut off answers that are being made, which raise ModelUnavailable."""
