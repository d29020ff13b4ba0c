"""Write the section about the dashboard's packages in NOTICE, from web/package-lock.json and web/node_modules."""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
NOTICE, WEB = ROOT / "NOTICE", ROOT / "web"
HEADING = "Dashboard\n=========\n"
INTRODUCTION = """
The built dashboard, nacre/serve/static, contains parts of these npm packages, each under the MIT licence:

"""
BEGIN = "Permission is hereby granted"
MODEL = "preact"
"""The package whose licence is printed. The script checks that all licences have the same text."""


def bundled() -> dict[str, str]:
    """Return names and versions of bundled packages: those in the lock file that are not only for building."""
    packages = json.loads((WEB / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    return {
        path.rpartition("node_modules/")[2]: package["version"]
        for path, package in packages.items()
        if path and not package.get("dev")
    }


def text_of(name: str) -> str:
    """Return a package's licence. Raises FileNotFoundError if npm did not install it."""
    return next((WEB / "node_modules" / name).glob("LICENSE*")).read_text(encoding="utf-8")


def is_mit(text: str) -> bool:
    """Return True if a text is the MIT licence."""
    return _permission(text).split() == _permission(text_of(MODEL)).split()


def section() -> str:
    """Return the section for NOTICE."""
    lines = []
    for name, version in bundled().items():
        text = text_of(name)
        if not is_mit(text):
            sys.exit(f"{name} does not have the MIT licence: add its licence to NOTICE")
        owners = [
            " ".join(line.split()) for line in text.splitlines() if line.startswith("Copyright ")
        ]
        lines += [f"  {name} {version}", *(f"      {owner}" for owner in owners), ""]
    return (
        HEADING
        + INTRODUCTION
        + "\n".join(lines)
        + "\n"
        + _permission(text_of(MODEL)).strip()
        + "\n"
    )


def _permission(text: str) -> str:
    return text[text.index(BEGIN) :].partition("\n## ")[0]


if __name__ == "__main__":
    before = NOTICE.read_text(encoding="utf-8").partition(HEADING)[0].rstrip("\n")
    NOTICE.write_text(f"{before}\n\n\n{section()}", encoding="utf-8")
