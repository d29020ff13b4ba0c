"""Look for a text in all that a turn or a memory says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from nacre.text.passages import one_line
from nacre.values.codec import texts_of
from nacre.values.forgetting import TurnText
from nacre.values.memory import NAMES, Memory

Pattern = re.Pattern[str]

_AROUND = 60
_OF_OTHERS = {"links", "source", "suppressed_contexts"}
"""Their texts speak of other memories, of a file, or of when it is shown."""


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
    yield from texts_of(memory, NAMES | _OF_OTHERS)
