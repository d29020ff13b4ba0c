"""The home's folder: who may read it, and whether git finds its repository whole."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

from nacre.app.context import Context
from nacre.app.proofs.finding import FAILURE, WARNING, Finding, Mend, Proof, deep_repair

_GIT_SECONDS = 300
_GIT = (
    "git", "-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}", "fsck", "--no-dangling", "--no-progress",
)  # fmt: skip


def prove_modes(context: Context) -> Proof:
    """Nobody but the owner may read or write what is in the home."""
    home = context.settings.home
    if os.name != "posix":
        return Proof("modes", "not looked at on this system")
    paths = [home, *_below(home)]
    open_to_all = [path for path in paths if path.lstat().st_mode & (stat.S_IWGRP | stat.S_IWOTH)]
    readable = [path for path in paths if path not in open_to_all and _shows(home, path)]
    found = []
    if open_to_all:
        told = f"others can write to {_listed(home, open_to_all)}"
        found.append(Finding(FAILURE, told, deep_repair(), _closer(open_to_all)))
    if readable:
        told = f"others can read {_listed(home, readable)}"
        found.append(Finding(WARNING, told, deep_repair(), _closer(readable)))
    return Proof("modes", f"{len(paths):,} files and folders", found)


def _shows(home: Path, path: Path) -> bool:
    """Whether others can read the home or a file in it: folders in a closed home and git's own files show nothing."""
    mode = path.lstat().st_mode
    return bool(mode & 0o077) and (path == home or (stat.S_ISREG(mode) and ".git" not in path.parts))


def _below(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = Path(parent, name)
            if not path.is_symlink():
                yield path


def _listed(home: Path, paths: list[Path]) -> str:
    named = ", ".join(str(path.relative_to(home)) if path != home else str(home) for path in paths[:3])
    return named if len(paths) <= 3 else f"{named} and {len(paths) - 3} more"


def _closer(paths: list[Path]) -> Mend:
    def mend(_: Context) -> None:
        for path in paths:
            if path.exists() and not path.is_symlink():
                path.chmod(path.stat().st_mode & 0o700)

    return mend


def prove_git(context: Context) -> Proof:
    """Git finds every object of the vault's repository."""
    vault = context.settings.vault
    if not (vault / ".git").exists():
        return Proof("git", "no repository")
    environment = {**context.settings.environ, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            _GIT, cwd=vault, env=environment, capture_output=True, text=True, timeout=_GIT_SECONDS, check=False,
            errors="replace",
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return Proof("git", "not looked at", [Finding(WARNING, f"git fsck did not run: {error}", "install git")])
    said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    if done.returncode == 0:
        return Proof("git", "every object is there")
    repair = f"fetch what is missing from a clone or a backup, then: git -C {vault} fsck"
    return Proof("git", "damaged", [Finding(FAILURE, f"git: {line}", repair) for line in said[:10] or ["fsck failed"]])
