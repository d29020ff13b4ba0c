"""Named statements from SQL files, and their parameters and results."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from enum import Enum
from functools import cache
from pathlib import Path
from sys import modules
from typing import Any, Protocol

from nacre.base import ids

# -- SQL files -------------------------------------------------------------------------------------
# Each statement follows a ``-- name --`` line and comment lines that explain it.


_HEADING = re.compile(r"^-- (\w+) --\s*$", re.MULTILINE)


@cache
def statements(package: str, folder: str) -> dict[str, str]:
    """Return the statements in the ``.sql`` files of a package's folder, by name.

    Raises ValueError if two statements have the same name.
    """
    result = {}
    for file in sorted(
        Path(modules[package].__path__[0], folder).iterdir(), key=lambda file: file.name
    ):
        if not file.name.endswith(".sql"):
            continue
        parts = _HEADING.split(file.read_text(encoding="utf-8"))
        for name, body in zip(parts[1::2], parts[2::2], strict=True):
            if name in result:
                raise ValueError(f"two queries are called {name!r}")
            result[name] = body.strip()
    return result


# -- Parameters and results ------------------------------------------------------------------------


def quoted(name: str) -> str:
    """Quote a name for SQL, or a phrase for FTS5."""
    return '"' + name.replace('"', '""') + '"'


Parameters = Mapping[str, Any] | Sequence[Any]


def bound(value: object) -> object:
    """Convert a value for SQL: times to milliseconds, days to text, collections to JSON."""
    if value is None or type(value) in (str, int, float, bytes):
        return value
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, datetime):
        return ids.to_ms(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value // timedelta(milliseconds=1)
    if isinstance(value, Collection) and not isinstance(value, (str, bytes, bytearray)):
        return json.dumps(value if isinstance(value, dict) else list(value))
    return value


def bind(parameters: Parameters, convert: Callable[[Any], Any] = bound) -> Any:
    """Convert a statement's parameters for SQL."""
    if isinstance(parameters, Mapping):
        return {name: convert(value) for name, value in parameters.items()}
    return [convert(value) for value in parameters]


class Queries(Protocol):
    """An object that runs SQL statements by name."""

    def all(self, name: str, /, **parameters: Any) -> list[tuple[Any, ...]]:
        """Return all rows of a named query."""

    def one(self, name: str, /, **parameters: Any) -> tuple[Any, ...] | None:
        """Return the first row of a named query, or ``None``."""

    def column(self, name: str, /, **parameters: Any) -> list[Any]:
        return [row[0] for row in self.all(name, **parameters)]

    def value(self, name: str, /, **parameters: Any) -> Any | None:
        """Return the first value of a named query, or ``None`` if there is no row."""
        row = self.one(name, **parameters)
        return row[0] if row else None

    def run(self, name: str, /, **parameters: Any) -> int:
        """Run a named statement and return the number of changed rows."""

    def run_many(self, name: str, rows: Sequence[dict[str, Any]]) -> None:
        """Run a named statement once for each row of parameters."""

    def run_each(self, name: str, key: str, values: Iterable[Any], **more: Any) -> None:
        """Run a named statement once for each value of the parameter ``key``."""
        self.run_many(name, [{key: value, **more} for value in values])
