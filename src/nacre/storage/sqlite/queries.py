"""nacre's own SQL statements, from ``sql/queries/*.sql``.

Vectors are there twice: those in use, and those of another model, in tables of the same shape whose names begin with
``other_``. Each statement about the former stands in the files; the same about the latter is read off it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from nacre.platform.sql_files import statements
from nacre.storage.sqlite import rows

OTHER = "other_"
_WHOLE = re.compile(r"SELECT (?:m\.)?\* (?=FROM (?:active_|past_)?memories\b)")
_VECTOR_TABLES = re.compile(r"(?<!other_)\b(passages|turn_passages|passage_bits|memory_vectors|embedding)\b")


@cache
def query(name: str) -> str:
    """The statement of that name. Raises KeyError."""
    found = _load().get(name)  # those about other vectors are read off the rest, which few processes need
    return with_columns(_all()[name] if found is None else found)


def with_columns(statement: str) -> str:
    """A statement that selects whole memories, with the columns that :func:`memory_rows` reads, in their order."""
    if not _WHOLE.search(statement):
        return statement
    return _WHOLE.sub(f"SELECT {', '.join(rows.memory_rows().columns)} ", statement)


@cache
def about_other(name: str) -> str:
    """The name of the same statement about the vectors of another model; its own where it is about other tables."""
    return OTHER + name if OTHER + name in _all() else name


@cache
def _all() -> dict[str, str]:
    return with_other(_load())


def with_other(statements: Mapping[str, str]) -> dict[str, str]:
    """Statements, and those about the vectors of another model that are read off them."""
    found = dict(statements)
    for name, statement in statements.items():
        if _VECTOR_TABLES.search(statement) and OTHER not in statement:
            found[OTHER + name] = _VECTOR_TABLES.sub(rf"{OTHER}\1", statement)
    return found


def _load() -> dict[str, str]:
    return statements("nacre.storage", "sql/queries")
