"""A home takes the place of another, in two steps; after a crash between them, who opens it next takes the second."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

from nacre.platform.locks import FileLock


def put_in_place(fresh: Path, home: Path) -> Path | None:
    """Let ``fresh``, which is whole, take the home's place while nobody writes there.

    Returns where the home before it is kept, beside it; ``None`` where there was none, or an empty folder.
    """
    ready = _ready(home)
    if ready.exists():
        shutil.rmtree(ready)  # of a restore that was cut short before it touched the home
    aside = _aside(home) if home.exists() and (not home.is_dir() or any(home.iterdir())) else None
    with FileLock(home / "vault.lock") if aside and home.is_dir() else contextlib.nullcontext():
        fresh.rename(ready)
        try:
            _give_way(home, aside)
            ready.rename(home)
        except OSError:
            if aside and not home.exists():
                aside.rename(home)
            ready.rename(fresh)
            raise
    return aside


def finish(home: Path) -> bool:
    """Take the second step where the first was taken and the home is away; returns whether it was."""
    if home.exists() or not _ready(home).is_dir():
        return False
    _ready(home).rename(home)
    return True


def _give_way(home: Path, aside: Path | None) -> None:
    if aside:
        home.rename(aside)
    elif home.exists():
        home.rmdir()


def _ready(home: Path) -> Path:
    """Where a whole home waits: one that is not whole never has this name."""
    return home.with_name(f".{home.name}.restored")


def _aside(home: Path) -> Path:
    aside = home.with_name(f"{home.name}.before-restore")
    number = 1
    while aside.exists():
        number += 1
        aside = home.with_name(f"{home.name}.before-restore-{number}")
    return aside
