"""Writing of generated files."""

from __future__ import annotations

import sys
from pathlib import Path


def write(path: Path, text: str) -> None:
    """Write a generated file. With ``--show`` on the command line, print its text instead."""
    if "--show" in sys.argv:
        print(text, end="")
    else:
        path.write_text(text, encoding="utf-8")
