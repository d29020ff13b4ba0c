"""Named SQL statements, loaded from ``sql/queries/*.sql``.

A file is a row of blocks: a line ``-- name --``, comment lines that give the intent, then one statement.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

_HEADING = re.compile(r"^-- (\w+) --\s*$", re.MULTILINE)


@cache
def query(name: str) -> str:
    """The statement of that name. Raises KeyError."""
    return _load()[name]


@cache
def _load() -> dict[str, str]:
    found: dict[str, str] = {}
    for file in sorted(files("nacre.storage").joinpath("sql/queries").iterdir(), key=lambda file: file.name):
        if not file.name.endswith(".sql"):
            continue
        parts = _HEADING.split(file.read_text(encoding="utf-8"))
        for name, body in zip(parts[1::2], parts[2::2], strict=True):
            if name in found:
                raise ValueError(f"two queries are called {name!r}")
            found[name] = body.strip()
    return found
