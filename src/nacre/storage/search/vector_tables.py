"""The tables of vectors: of the model in use, or of another one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from nacre.storage.database import Database, Row
from nacre.storage.sqlite.queries import about_other


class VectorTables:
    """The tables of the vectors in use, or, ``other``, of those of another model."""

    def __init__(self, database: Database, *, other: bool) -> None:
        self._database = database
        self._other = other

    def all(self, name: str, **parameters: Any) -> list[Row]:
        return self._database.all(self._named(name), **parameters)

    def one(self, name: str, **parameters: Any) -> Row | None:
        return self._database.one(self._named(name), **parameters)

    def run(self, name: str, **parameters: Any) -> int:
        return self._database.run(self._named(name), **parameters)

    def run_many(self, name: str, rows: Sequence[dict[str, Any]]) -> None:
        self._database.run_many(self._named(name), rows)

    def transaction(self) -> AbstractContextManager[None]:
        return self._database.transaction()

    def reading(self) -> AbstractContextManager[None]:
        return self._database.reading()

    def _named(self, name: str) -> str:
        return about_other(name) if self._other else name
