"""Give up what is archived: what changed longest ago goes first."""

from __future__ import annotations

from collections.abc import Sequence

from nacre.archive import pack_store
from nacre.home.home import Home
from nacre.storage.archive import Archived

_DAY_NS = 86_400 * 1_000_000_000
_MB = 1_000_000


def prune_as_set(home: Home) -> int:
    """Prune as ``archive.keep_days`` and ``archive.budget_mb`` say; returns how many transcripts went."""
    settings = home.settings
    chosen = choose(home, settings.whole("archive.keep_days"), settings.whole("archive.budget_mb"))
    return prune(home, chosen) if chosen else 0


def choose(home: Home, keep_days: int, budget_mb: int) -> list[Archived]:
    """What is older than so many days, or beyond a size; 0 sets no bound. The oldest first."""
    if not keep_days and not budget_mb:
        return []
    oldest = int(home.now().timestamp() * 1e9) - keep_days * _DAY_NS if keep_days else 0
    left = budget_mb * _MB if budget_mb else None
    chosen = []
    for state in home.archive.all():  # what changed last first
        if state.pack is None:
            continue
        if left is not None:
            left -= state.size
        if state.changed < oldest or (left is not None and left < 0):
            chosen.append(state)
    return chosen[::-1]


def prune(home: Home, chosen: Sequence[Archived]) -> int:
    """Delete what is archived of these transcripts. One that grows again is archived again.

    Raises StoreBusy while another process archives.
    """
    with home.archive_lock:
        for state in chosen:
            pack_store.drop(home, state)
    return len(chosen)
