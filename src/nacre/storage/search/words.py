"""Full text, on every engine: rows of some kind and the words that they hold."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from nacre.platform.fast_dataclass import dataclass

if TYPE_CHECKING:
    from nacre.storage.filters import Clause


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
    """Full text of an engine. What writes is called within the transaction that writes the rows."""

    def add(self, kind: Indexed, rows: Sequence[Words]) -> None:
        """Index rows that are not in it yet."""

    def drop(self, kind: Indexed, rows: Sequence[int]) -> None:
        """Take rows out; those that are not in it are left alone."""

    def frequencies(self, kind: Indexed, stems: Sequence[str]) -> dict[str, int]:
        """In how many rows some stems stand; those that stand in none are left out."""

    def best(self, kind: Indexed, words: Sequence[str], where: Clause, limit: int) -> list[int]:
        """Rows that hold any of some words and that a condition lets through, the best by BM25 first.

        The condition is on memories ``m``, or on ``turns t`` and their ``sessions s``.
        """
