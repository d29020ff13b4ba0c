"""The words that agents are given about nacre: one source for all hosts."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def words(name: str) -> str:
    """A text of the folder ``words``."""
    return (files(__package__) / "words" / name).read_text(encoding="utf-8")


def instructions(front: str = "") -> str:
    """What goes into a file of instructions; ``front`` is the front matter that a host wants there."""
    return (f"---\n{front}\n---\n\n" if front else "") + words("instructions.md")
