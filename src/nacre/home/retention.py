"""Pruning of the archive: the transcripts that have not changed for the longest time are deleted first."""

from __future__ import annotations

from collections.abc import Sequence

from nacre.home import archive_packs
from nacre.home.home import Home
from nacre.store.sessions import Archived

_DAY_NANOSECONDS = 86_400 * 1_000_000_000
_MEGABYTE = 1_000_000


def prune_as_set(home: Home) -> int:
    """Prune according to ``archive.keep_days`` and ``archive.budget_mb``, and count deletions."""
    settings = home.settings
    chosen = choose(home, settings.whole("archive.keep_days"), settings.whole("archive.budget_mb"))
    return prune(home, chosen) if chosen else 0


def choose(home: Home, keep_days: int, budget_mb: int) -> list[Archived]:
    """Return the archived transcripts to delete, oldest first.

    ``keep_days`` is the maximum age of a transcript. ``budget_mb`` is the maximum size of the whole
    archive. 0 means no limit.
    """
    if not keep_days and not budget_mb:
        return []
    oldest = int(home.now().timestamp() * 1e9) - keep_days * _DAY_NANOSECONDS if keep_days else 0
    remaining = budget_mb * _MEGABYTE if budget_mb else None
    chosen = []
    for state in home.archive.all():  # newest first
        if state.pack is None:
            continue
        if remaining is not None:
            remaining -= state.size
        if state.changed < oldest or (remaining is not None and remaining < 0):
            chosen.append(state)
    return chosen[::-1]


def prune(home: Home, chosen: Sequence[Archived]) -> int:
    """Delete archived transcripts. If a transcript grows later, nacre archives it again.

    Raises StoreBusyError while another process uses the archive.
    """
    with home.archive_lock:
        for state in chosen:
            archive_packs.drop(home, state)
    return len(chosen)
