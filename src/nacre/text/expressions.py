"""Regular expressions of people and agents: bounded in size as they are compiled, and in time as they search."""

from __future__ import annotations

import math
import re
from typing import Any

import regex

from nacre.errors import QueryInvalid

_COUNT = re.compile(r"\{((?:\s|#.*\n)*[0-9](?:[0-9]|\s|#.*\n)*)")
_MOST_CHARACTERS = 1_000
_MOST_SIZE = 1_000_000
"""A million nodes take 300 MB and a third of a second, and nothing ends that from outside."""


class Expression:
    """A regular expression that ignores case. Raises QueryInvalid for what is none, or too large."""

    def __init__(self, expression: str, seconds: float) -> None:
        if len(expression) > _MOST_CHARACTERS or _size(expression) > _MOST_SIZE:
            raise QueryInvalid("the expression is too large", hint="fewer signs, and smaller counts in {…}")
        try:
            self._compiled = regex.compile(expression, regex.IGNORECASE)
        except (regex.error, RecursionError) as error:
            raise QueryInvalid(
                f"invalid regular expression: {error}", hint="escape special characters with \\, or leave out --regex"
            ) from error
        self._seconds = seconds

    def search(self, text: str) -> Any:
        """The first place that matches, if any. Raises TimeoutError."""
        return self._compiled.search(text, timeout=self._seconds)


def _size(expression: str) -> int:
    """How many nodes it has at most, were all its counts within each other: each is compiled so many times. Between
    digits may stand spaces and comments, whose digits count, too."""
    counts = ("".join(filter(str.isdecimal, found)) for found in _COUNT.findall(expression))
    return len(expression) * math.prod(max(1, int(count)) for count in counts)
