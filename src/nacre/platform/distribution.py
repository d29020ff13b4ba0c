"""The distribution that brings nacre, whose name on an index is not that of the package."""

from __future__ import annotations

NAME = "nacre-memory"


NO_VECTORS = f"pip install '{NAME}[vectors]'; the lexical mode needs none of it"
"""What to do where the libraries of the vector lane are missing."""


def install_hint(extra: str) -> str:
    """The command that adds an optional part, as a hint."""
    return f"pip install '{NAME}[{extra}]'"
