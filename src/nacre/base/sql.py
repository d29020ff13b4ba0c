"""Named statements from SQL files."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from sys import modules

# -- SQL files -------------------------------------------------------------------------------------
# Each statement follows a line ``-- name --`` and comment lines with its purpose.


_HEADING = re.compile(r"^-- (\w+) --\s*$", re.MULTILINE)


@cache
def statements(package: str, folder: str) -> dict[str, str]:
    """Return the statements of all ``.sql`` files in a package's folder, by name.

    Raises ValueError if two have the same name.
    """
    result: dict[str, str] = {}
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
