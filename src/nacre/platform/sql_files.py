"""SQL statements in files.

A file is a row of blocks: a line ``-- name --``, comment lines that give the intent, then one statement.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from sys import modules

_HEADING = re.compile(r"^-- (\w+) --\s*$", re.MULTILINE)


@cache
def statements(package: str, folder: str) -> dict[str, str]:
    """The statements of all ``.sql`` files in a package's folder, by name. Raises ValueError when two share one."""
    found: dict[str, str] = {}
    for file in sorted(Path(modules[package].__path__[0], folder).iterdir(), key=lambda file: file.name):
        if not file.name.endswith(".sql"):
            continue
        parts = _HEADING.split(file.read_text(encoding="utf-8"))
        for name, body in zip(parts[1::2], parts[2::2], strict=True):
            if name in found:
                raise ValueError(f"two queries are called {name!r}")
            found[name] = body.strip()
    return found
