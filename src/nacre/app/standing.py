"""Standing retirements: what fits is retired as soon as it is stored. The ledger keeps them."""

from __future__ import annotations

import re
from dataclasses import replace

from nacre.app.context import Context
from nacre.model.forgetting import Match, StandingRetirement
from nacre.model.memory import Memory, Retirement

SUPPRESSED = ("session-start",)
"""Where what a standing retirement takes stays out (seed facts 1.9)."""


def fits(subject: str, pattern: str, match: Match) -> bool:
    """Whether a subject fits a pattern; letter case and spaces do not count."""
    subject, pattern = plain(subject), plain(pattern)
    if match is Match.EXACT:
        return subject == pattern
    if match is Match.CONTAINS:
        return pattern in subject
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), subject, re.DOTALL) is not None


def plain(subject: str) -> str:
    """A subject as subjects are compared."""
    return " ".join(subject.casefold().split())


def standing_for(context: Context, memory: Memory) -> StandingRetirement | None:
    """The standing retirement that a memory falls under; the oldest, where several do."""
    for rule in context.tombstones.standing():
        same_key = rule.canonical_key is not None and rule.canonical_key == memory.canonical_key
        if same_key or fits(memory.subject, rule.pattern, rule.match):
            return rule
    return None


def retired_by(context: Context, memory: Memory, rule: StandingRetirement) -> Memory:
    """A memory as it is stored under a standing retirement."""
    contexts = tuple(dict.fromkeys((*memory.suppressed_contexts, *rule.contexts)))
    reason = rule.reason or f"{rule.pattern!r} is retired whenever it is stored"
    return replace(memory, retired=Retirement(context.now(), reason), suppressed_contexts=contexts)
