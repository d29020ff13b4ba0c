"""Install the hosts that `make test-hosts` drives, at the versions of tests/hosts/hosts.toml, with npm.

Each goes into a folder of its own in .hosts/, or in HOSTS_DIR; what is there at the right version is left alone. What
cannot be installed here is told, and noted in <folder>/missing.txt: its tests skip with these words.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parent.parent
_TABLE = _ROOT / "tests/hosts/hosts.toml"
_NPM = ("npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--omit=dev")
_SECONDS = 600
_AT_ONCE = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("names", nargs="*", help="only these hosts, and the Node they need")
    parser.add_argument("--into", type=Path, default=Path(os.environ.get("HOSTS_DIR") or _ROOT / ".hosts"))
    asked = parser.parse_args()
    table: dict[str, dict[str, Any]] = tomllib.loads(_TABLE.read_text(encoding="utf-8"))
    unknown = sorted(set(asked.names) - set(table))
    if unknown:
        parser.error(f"hosts.toml has no {', '.join(unknown)}")
    names = set(asked.names or table)
    names |= {str(table[name]["node"]) for name in names if "node" in table[name]}
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        told = threads.map(lambda name: _install(asked.into.resolve() / name, table[name]), sorted(names))
        for name, line in zip(sorted(names), told, strict=True):
            print(f"{name:16} {line}", flush=True)


def _install(folder: Path, entry: dict[str, Any]) -> str:
    """Install one, where it is not; what became of it in words."""
    packages = dict(package.rsplit("@", 1) for package in entry["packages"])
    versions = ", ".join(packages.values())
    stamp = folder / "installed.json"
    missing = folder / "missing.txt"
    if stamp.exists() and json.loads(stamp.read_text(encoding="utf-8")) == packages:
        return f"{versions} is there"
    folder.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    reason = _reason() or _npm(folder, packages, entry)
    if reason:
        missing.write_text(f"{reason}\n", encoding="utf-8")
        return f"not installed: {reason}"
    missing.unlink(missing_ok=True)
    stamp.write_text(json.dumps(packages), encoding="utf-8")
    return f"{versions} installed in {time.monotonic() - began:.0f} s"


def _reason() -> str:
    """Why nothing can be installed on this machine, if so."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        return f"the programs are for Linux on x86_64, this is {sys.platform} on {platform.machine()}"
    return "" if shutil.which("npm") else "npm is not there"


def _npm(folder: Path, packages: dict[str, str], entry: dict[str, Any]) -> str:
    """Let npm do it; why it failed, if it did. It begins anew: what a broken installation left is no ground."""
    shutil.rmtree(folder / "node_modules", ignore_errors=True)
    (folder / "package-lock.json").unlink(missing_ok=True)
    wanted = {"private": True, "dependencies": packages}
    (folder / "package.json").write_text(json.dumps(wanted, indent=2), encoding="utf-8")
    try:
        run = subprocess.run(
            _NPM, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"npm took more than {_SECONDS} s"
    if run.returncode:
        errors = [line for line in run.stderr.splitlines() if "error" in line.lower()]
        return f"npm failed: {' '.join(errors[:2]) or f'code {run.returncode}'}"
    start = entry.get("start", "package.json")
    return "" if (folder / start).exists() else f"npm brought no {start}"


if __name__ == "__main__":
    main()
