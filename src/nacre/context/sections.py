"""How the sections of a session's start share its budget; what one leaves flows on to the next (seed facts 2.5)."""

from __future__ import annotations

from collections.abc import Sequence

from nacre.text.passages import count_tokens
from nacre.values.context import Part

SHARES = {
    Part.IDENTITY: 0.08,
    Part.PROFILE: 0.12,
    Part.PROJECT: 0.10,
    Part.HANDOFF: 0.12,
    Part.PREVIOUS: 0.10,
    Part.RELEVANT: 0.13,
}
"""In the order in which they are told. Memories have at least what is left of the whole."""

_MORE = "> …"


class Allowance:
    """What each section may take of a budget in tokens. Sections are asked for in their order."""

    def __init__(self, budget_tokens: int) -> None:
        self._budget = budget_tokens
        self._granted = 0.0
        self._next = list(SHARES)

    def of(self, part: Part, used_tokens: int) -> int:
        """What a section may take, where those before it took ``used_tokens``."""
        while part in self._next:
            self._granted += SHARES[self._next.pop(0)]
        return max(0, int(self._granted * self._budget) - used_tokens)


def fitting(lines: Sequence[str], tokens: int) -> list[str]:
    """As many lines as fit, from the first on, with a mark where some are left out."""
    kept: list[str] = []
    for line in lines:
        tokens -= count_tokens(line + "\n")
        if tokens < 0:
            break
        kept.append(line)
    if len(kept) < len(lines):
        kept = [*kept[:-1], _MORE] if kept else []
    return kept if any(line.strip("> …") for line in kept) else []
