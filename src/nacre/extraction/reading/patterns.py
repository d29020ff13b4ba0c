"""Regular expressions that ignore case and are compiled when they are first used."""

from __future__ import annotations

import re
from typing import Any


class Pattern:
    """A regular expression, as :class:`re.Pattern` has them."""

    __slots__ = ("_compiled", "pattern")

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._compiled: re.Pattern[str] | None = None

    def __getattr__(self, name: str) -> Any:
        """A method of the expression. Raises re.error where it is none."""
        if self._compiled is None:
            self._compiled = re.compile(self.pattern, re.IGNORECASE)
        return getattr(self._compiled, name)
