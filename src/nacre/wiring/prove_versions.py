"""Which version of a host is installed, beside those that were driven for real."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

from nacre.hosts.proven import proven_versions
from nacre.settings import Settings
from nacre.values.reports import OK, Check
from nacre.wiring.dry_runs import quiet
from nacre.wiring.ways import host_named, program_of
from nacre.wiring.written import json_in, text_of

_SECONDS = 10.0
_VERSION = re.compile(r"\d+(?:\.\d+)+[\w.+-]*")


def prove_versions(settings: Settings, hosts: Iterable[str]) -> Iterator[Check]:
    """A word on each host that was driven and whose program is here; another version is no failure."""
    for name in hosts:
        found = next(filter(None, (program_of(settings, one) for one in host_named(name).programs)), None)
        proven = proven_versions().get(name)
        version = proven and found and _version(settings, Path(found))
        if proven and version:
            told = f"{version} is installed; driven for real: {', '.join(proven.versions)} ({proven.on})"
            yield Check(f"{name} version", OK, told)


def _version(settings: Settings, program: Path) -> str:
    """What npm's package of a program says, else the program itself: that takes some seconds, and may leave files."""
    return _of_package(program) or _as_said(settings, program)


def _of_package(program: Path) -> str:
    folders = (folder for folder in program.resolve().parents if "node_modules" in folder.parts)
    held = next(filter(None, (json_in(text_of(folder / "package.json")) for folder in folders)), None)
    return str(held.get("version", "")) if isinstance(held, dict) else ""


def _as_said(settings: Settings, program: Path) -> str:
    try:
        said = subprocess.run(
            [program, "--version"], env=quiet(settings), cwd=settings.user_home, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False,
        ).stdout  # fmt: skip
    except (subprocess.TimeoutExpired, OSError):
        return ""
    found = _VERSION.search(said)
    return found[0] if found else ""
