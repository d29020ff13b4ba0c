"""Look for a text in all that a turn or a memory says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from nacre.errors import QueryInvalid
from nacre.text.expressions import Expression
from nacre.text.passages import one_line
from nacre.values.codec import texts_of
from nacre.values.forgetting import TurnText
from nacre.values.memory import NAMES, Memory

_AROUND = 60
_OF_OTHERS = {"links", "source", "suppressed_contexts"}
"""Their texts speak of other memories, of a file, or of when it is shown."""

_SECONDS_A_TEXT = 5.0


class Pattern:
    """What is to be forgotten: a text, letter case aside, or a regular expression. Raises QueryInvalid."""

    def __init__(self, text: str, *, is_regex: bool = False) -> None:
        if not text.strip():
            raise QueryInvalid("the text is empty", hint='nacre forget --match "…"')
        plain = re.compile(re.escape(text.strip()), re.IGNORECASE)
        self._search = Expression(text, _SECONDS_A_TEXT).search if is_regex else plain.search
        if self.search(""):
            raise QueryInvalid(f"{text!r} matches everything", hint="say what is to be forgotten")

    def search(self, text: str) -> Any:
        """The first place that matches, if any. Raises QueryInvalid where a text takes too long."""
        try:
            return self._search(text)
        except TimeoutError as error:
            raise QueryInvalid(
                f"the expression took more than {_SECONDS_A_TEXT:.0f} s on a text of {len(text):,} characters",
                hint="repeat nothing within a repetition: a+ instead of (a+)+",
            ) from error


def excerpt_of(match: Pattern, texts: Iterable[str]) -> str | None:
    """The first place that matches, with a few words around it, on one line; ``None`` without one."""
    for text in texts:
        found = match.search(text)
        if found:
            start, end = max(0, found.start() - _AROUND), min(len(text), found.end() + _AROUND)
            before, after = "…" if start else "", "…" if end < len(text) else ""
            return f"{before}{one_line(text[start:end])}{after}"
    return None


def is_in_path(match: Pattern, path: str) -> bool:
    """Whether the name of a file says it; in names, hyphens stand for spaces."""
    name = path.rpartition("/")[2]
    return any(match.search(one) for one in (name, name.replace("-", " ")))


def turn_texts(turn: TurnText) -> Iterator[str]:
    """Everything a turn says and does."""
    yield turn.text
    for call in turn.calls:
        yield from (call.name, call.input, call.outcome or "", *call.paths, call.error or "", *call.made)
    yield turn.author or ""


def memory_texts(memory: Memory) -> Iterator[str]:
    """Everything a memory says."""
    yield from texts_of(memory, NAMES | _OF_OTHERS)
