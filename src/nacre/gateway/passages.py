"""Passages of earlier conversations that fit a question."""

from __future__ import annotations

from collections.abc import Sequence

from nacre.home.home import Home


def passages_for(
    home: Home, question: str, *, limit: int, budget_tokens: int, key: str | None, leave_out: str
) -> Sequence[str]:  # fmt: skip
    """Those that fit best, within a budget: of one conversation's earlier sessions (``key``), or of all conversations;
    without those of the session that goes on."""
    del home, question, limit, budget_tokens, key, leave_out
    return ()
