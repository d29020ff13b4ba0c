"""Transcripts that their tools are about to delete, and whether the archive has them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from nacre.home import archive_packs
from nacre.home.home import Home
from nacre.readers.adapter import Places
from nacre.readers.registry import Retention, retentions
from nacre.store.sessions import Archived
from nacre.values.session import SeenFile

SOON_DAYS = 7
SOON_FILES = 20
_DAY_SECONDS = 86_400


@dataclass(frozen=True, slots=True)
class Leaving:
    """``files`` transcripts of a tool go soon; ``archived`` of them are kept.

    Soon is within ``SOON_DAYS``, the first in ``days``, or, where a tool keeps so many of a folder, within the next
    ``SOON_FILES`` sessions there: then ``days`` is ``None``.
    """

    retention: Retention
    files: int
    days: float | None
    archived: int

    @property
    def is_kept(self) -> bool:
        """Whether nothing is lost when they go."""
        return self.archived == self.files

    def in_words(self) -> str:
        """As one sentence."""
        transcripts = f"{self.files:,} transcripts" if self.files > 1 else "1 transcript"
        go = "go" if self.files > 1 else "goes"
        return (
            f"{self.retention.label} {self._rule()}: {transcripts} {go} {self._when()}; "
            f"archived {self.archived:,} of {self.files:,}"
        )

    def _rule(self) -> str:
        if self.retention.days is None:
            return f"keeps the newest {self.retention.files:,} sessions of a folder"
        return f"deletes what is older than {self.retention.days:,.0f} days"

    def _when(self) -> str:
        if self.days is None:
            return f"with the next {SOON_FILES} sessions there"
        return f"from in {self.days:.0f} days on" if self.days >= 1 else "from now on"


def leaving(home: Home) -> list[Leaving]:
    """What goes soon, tool by tool, of the transcripts that were read and still exist."""
    settings = home.settings
    known = {
        one.tool: one
        for one in retentions(Places(settings.user_home, settings.environ, settings.platform))
    }
    files: dict[str, list[SeenFile]] = defaultdict(list)
    for file in home.sessions.seen_files():
        if file.tool in known:
            files[file.tool].append(file)
    kept = {state.path: state.changed for state in home.archive.all() if state.pack}
    now = home.now().timestamp()
    found = []
    for tool, seen in sorted(files.items()):
        one = known[tool]
        going = list(
            _aging(one.days, seen, now) if one.days is not None else _crowded(one.files or 0, seen)
        )
        if going:
            days = [left for _, left in going if left is not None]
            archived = sum(kept.get(file.path) == file.mtime_ns for file, _ in going)
            found.append(Leaving(one, len(going), max(0.0, min(days)) if days else None, archived))
    return found


def _aging(
    days: float, files: Sequence[SeenFile], now: float
) -> Iterator[tuple[SeenFile, float | None]]:
    """What goes for its age, and in how many days."""
    for file in files:
        left = days - (now - file.mtime_ns / 1e9) / _DAY_SECONDS
        if left <= SOON_DAYS and Path(file.path).is_file():
            yield file, left


def _crowded(most: int, files: Sequence[SeenFile]) -> Iterator[tuple[SeenFile, float | None]]:
    """What goes because a folder is full: the oldest there."""
    folders: dict[Path, list[SeenFile]] = defaultdict(list)
    for file in files:
        folders[Path(file.path).parent].append(file)
    for held in folders.values():
        if len(held) > most - SOON_FILES:
            there = sorted(
                (file for file in held if Path(file.path).is_file()), key=lambda file: file.mtime_ns
            )
            yield from ((file, None) for file in there[: max(0, len(there) - (most - SOON_FILES))])


# ----------------------------------------------------------------------------
# Give up what is archived: what changed longest ago goes first.


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
            archive_packs.drop(home, state)
    return len(chosen)
