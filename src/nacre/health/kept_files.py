"""A quick look at the ledger, the git history and the archive: bounded in time, so a sample where there is much."""

from __future__ import annotations

import time
from collections.abc import Iterator

from nacre.archive import operations
from nacre.errors import NacreError
from nacre.home.home import Home
from nacre.values.reports import FAILURE, WARNING, Check
from nacre.vault import ledger
from nacre.vault.layout import LEDGER

_LEDGER_BYTES = 4_000_000
_ARCHIVE_SECONDS = 1.0
_DAY_SECONDS = 86_400


def damaged_ledger(home: Home) -> Iterator[Check]:
    """Report lines at the end of the ledger that are no entries."""
    try:
        data = home.vault.read(LEDGER)
    except FileNotFoundError:
        return
    start = data.find(b"\n", len(data) - _LEDGER_BYTES) + 1 if len(data) > _LEDGER_BYTES else 0
    broken = ledger.broken_lines(data[start:])
    if broken:
        number = data.count(b"\n", 0, start) + broken[0]
        told = f"{len(broken):,} of its lines are no entries, the first is line {number:,}"
        yield Check("ledger", WARNING, told, f"mend or remove them in {home.vault.root}/{LEDGER}")


def damaged_history(home: Home) -> Iterator[Check]:
    """Report a git history whose latest commits cannot be read."""
    repository = home.repository
    if not home.settings.flag("git.enabled") or not repository.exists:
        return
    try:
        repository.check()
        damage = repository.recent_damage() if repository.is_whole else "its making was cut short"
    except NacreError as error:
        yield Check("history", FAILURE, error.message, error.hint)
        return
    if damage:
        told = f"the git history is damaged: {damage}"
        yield Check("history", FAILURE, told, "nacre doctor --deep tells what is missing; a clone or a backup has it")


def damaged_archive(home: Home) -> Iterator[Check]:
    """Report damaged packs; where there are many, other ones are looked at on another day."""
    states = [state for state in home.archive.all() if state.pack]
    first = int(home.clock().timestamp()) // _DAY_SECONDS % max(1, len(states))
    until = time.monotonic() + _ARCHIVE_SECONDS
    damaged = []
    for number, state in enumerate([*states[first:], *states[:first]]):
        if operations.is_cut(home, state) or (time.monotonic() < until and operations.damage(home, state)):
            damaged.append(state.path)
        if number % 100 == 0 and time.monotonic() > 2 * _ARCHIVE_SECONDS + until:
            break
    if damaged:
        told = f"{len(damaged):,} of its packs are damaged, as that of {damaged[0]}"
        yield Check("archive", FAILURE, told, "nacre archive verify --repair")
