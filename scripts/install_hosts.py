"""Install the hosts for `make test-hosts` with npm, at pinned versions (HOSTS=newest: the newest versions).

Each has its own folder in .hosts/ or HOSTS_DIR. Hosts with the right version are skipped. If a host
cannot be installed, the reason is printed and saved in <folder>/missing.txt, and the tests that
need it are skipped.
"""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.hosts.programs import CHOSEN, LATEST, TABLE

_NPM = (
    "npm",
    "install",
    "--ignore-scripts",
    "--no-audit",
    "--no-fund",
    "--no-update-notifier",
    "--omit=dev",
)
_SECONDS = 600
_ASK_SECONDS = 60
_AT_ONCE = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("names", nargs="*", help="only these hosts, and their Node")
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(TABLE))
    if unknown:
        parser.error(f"hosts.toml has no {', '.join(unknown)}")
    names = set(options.names or TABLE)
    names |= {str(TABLE[name]["node"]) for name in names if "node" in TABLE[name]}
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        lines = threads.map(_install, sorted(names))
        for name, line in zip(sorted(names), lines, strict=True):
            print(f"{name:16} {line}", flush=True)


def _install(name: str) -> str:
    """Install a host if necessary. Return a description of the result."""
    folder = CHOSEN.place(name)
    missing = folder / "missing.txt"
    began = time.monotonic()
    reason = _reason()
    packages = CHOSEN.packages(name) if reason else _dated(CHOSEN.packages(name))
    versions = ", ".join(packages.values())
    if CHOSEN.installed(name) == packages:
        return f"{versions} is installed"
    folder.mkdir(parents=True, exist_ok=True)
    reason = reason or _npm(folder, packages, str(TABLE[name].get("start", "package.json")))
    if reason:
        missing.write_text(f"{reason}\n", encoding="utf-8")
        return f"not installed: {reason}"
    missing.unlink(missing_ok=True)
    (folder / "installed.json").write_text(json.dumps(packages), encoding="utf-8")
    return f"{versions} installed in {time.monotonic() - began:.0f} s"


def _reason() -> str:
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        return (
            f"the programs are for Linux on x86_64, this is {sys.platform} on {platform.machine()}"
        )
    return "" if shutil.which("npm") else "npm is not installed"


def _dated(packages: dict[str, str]) -> dict[str, str]:
    """Return packages with ``LATEST`` replaced by a version, if npm answers."""
    return {
        name: _latest(name) or version if version == LATEST else version
        for name, version in packages.items()
    }


def _latest(package: str) -> str:
    with suppress(subprocess.TimeoutExpired):
        return _run("npm", "view", package, "version", seconds=_ASK_SECONDS).stdout.strip()
    return ""


def _npm(folder: Path, packages: dict[str, str], start: str) -> str:
    """Install from scratch with npm. Return why this failed, or an empty string."""
    shutil.rmtree(folder / "node_modules", ignore_errors=True)
    (folder / "package-lock.json").unlink(missing_ok=True)
    manifest = {"private": True, "dependencies": packages}
    (folder / "package.json").write_text(json.dumps(manifest, indent=2), encoding="utf-8")
    try:
        run = _run(*_NPM, folder=folder)
    except subprocess.TimeoutExpired:
        return f"npm took more than {_SECONDS} s"
    if run.returncode:
        errors = [line for line in run.stderr.splitlines() if "error" in line.lower()]
        return f"npm failed: {' '.join(errors[:2]) or f'code {run.returncode}'}"
    return "" if (folder / start).exists() else f"npm installed no {start}"


def _run(
    *words: str, folder: Path | None = None, seconds: int = _SECONDS
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


if __name__ == "__main__":
    main()
