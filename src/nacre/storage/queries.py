"""nacre's own SQL statements, from ``sql/queries/*.sql``."""

from __future__ import annotations

from nacre.statements import statements


def query(name: str) -> str:
    """The statement of that name. Raises KeyError."""
    return _load()[name]


def _load() -> dict[str, str]:
    return statements("nacre.storage", "sql/queries")
