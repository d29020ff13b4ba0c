"""Look for a text in all that a turn or a memory says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from nacre.text.passages import one_line
from nacre.values.forgetting import TurnText
from nacre.values.memory import Memory

Pattern = re.Pattern[str]

_AROUND = 60


def excerpt_of(match: Pattern, texts: Iterable[str]) -> str | None:
    """The first place that matches, with a few words around it, on one line; ``None`` without one."""
    for text in texts:
        found = match.search(text)
        if found:
            start, end = max(0, found.start() - _AROUND), min(len(text), found.end() + _AROUND)
            before, after = "…" if start else "", "…" if end < len(text) else ""
            return f"{before}{one_line(text[start:end])}{after}"
    return None


def turn_texts(turn: TurnText) -> Iterator[str]:
    """Everything a turn says and does."""
    yield turn.text
    for call in turn.calls:
        yield from (call.name, call.input, call.outcome or "", *call.paths, call.error or "", *call.made)
    yield turn.author or ""


def memory_texts(memory: Memory) -> Iterator[str]:
    """Everything a memory says."""
    yield from (memory.subject, memory.content, *memory.tags, *memory.triggers)
    yield from (memory.canonical_key or "", memory.author or "", *claim_texts(memory))
    yield memory.retired.reason or "" if memory.retired else ""
    yield from _texts(memory.extra)


def claim_texts(memory: Memory) -> tuple[str, ...]:
    """What its claim says."""
    claim = memory.claim
    return (claim.entity, claim.attribute, claim.predicate, claim.object) if claim else ()


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield str(name)
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
