"""Full text, on every engine: rows of some kind and the words that they hold."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

from nacre.platform.fast_dataclass import dataclass


class Indexed(StrEnum):
    """What has full text: ``memories`` (subject, content, tags), ``turns`` (said, did), ``failures`` (tried, error)."""

    MEMORIES = "memories"
    TURNS = "turns"
    FAILURES = "failures"


@dataclass(frozen=True, slots=True)
class Words:
    """A row, the texts of its columns (segmented), and the identifiers in it, between spaces."""

    row: int
    texts: tuple[str, ...]
    names: str = ""


class WordIndex(Protocol):
    """Writes full text. Call within the transaction that writes the rows."""

    def add(self, kind: Indexed, rows: Sequence[Words]) -> None:
        """Index rows that are not in it yet."""

    def drop(self, kind: Indexed, rows: Sequence[int]) -> None:
        """Take rows out; those that are not in it are left alone."""
