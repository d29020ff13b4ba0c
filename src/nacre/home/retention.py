"""Transcripts that tools will soon delete, and pruning of the archive."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from nacre.base.frozen import frozen
from nacre.home import archive_packs
from nacre.home.home import Home
from nacre.readers.adapter import Places
from nacre.readers.registry import Retention, retentions
from nacre.store.sessions import Archived
from nacre.values.session import SeenFile

SOON_DAYS = 7
SOON_FILES = 20
_DAY_SECONDS = 86_400


@frozen
class Leaving:
    """Transcripts that their tool will soon delete.

    ``archived``: how many of these transcripts are already archived. ``days``: time until the first
    deletion. Some tools keep only a limited number of files in a folder. For these tools, ``days``
    is ``None``.
    """

    retention: Retention
    files: int
    days: float | None
    archived: int

    @property
    def is_kept(self) -> bool:
        """True if all transcripts are archived."""
        return self.archived == self.files

    def in_words(self) -> str:
        """Describe the transcripts in one sentence."""
        transcripts = f"{self.files:,} transcripts" if self.files > 1 else "1 transcript"
        go = "are deleted" if self.files > 1 else "is deleted"
        return (
            f"{self.retention.label} {self._rule()}: {transcripts} {go} {self._when()}; "
            f"archived {self.archived:,} of {self.files:,}"
        )

    def _rule(self) -> str:
        if self.retention.days is None:
            return f"keeps only the newest {self.retention.files:,} sessions of a folder"
        return f"deletes transcripts older than {self.retention.days:,.0f} days"

    def _when(self) -> str:
        if self.days is None:
            return f"within the next {SOON_FILES} sessions"
        return f"starting in {self.days:.0f} days" if self.days >= 1 else "starting now"


def leaving(home: Home) -> list[Leaving]:
    """Return the transcripts that will soon be deleted, grouped by tool."""
    settings = home.settings
    rules = {
        rule.tool: rule
        for rule in retentions(Places(settings.user_home, settings.environ, settings.platform))
    }
    files: dict[str, list[SeenFile]] = defaultdict(list)
    for file in home.sessions.seen_files():
        if file.tool in rules:
            files[file.tool].append(file)
    archived_times = {state.path: state.changed for state in home.archive.all() if state.pack}
    now = home.now().timestamp()
    expiring = []
    for tool, seen_files in sorted(files.items()):
        rule = rules[tool]
        due = list(
            _expiring_by_age(rule.days, seen_files, now)
            if rule.days is not None
            else _expiring_by_count(rule.files or 0, seen_files)
        )
        if due:
            days = [days_left for _, days_left in due if days_left is not None]
            archived = sum(archived_times.get(file.path) == file.mtime_ns for file, _ in due)
            expiring.append(
                Leaving(rule, len(due), max(0.0, min(days)) if days else None, archived)
            )
    return expiring


def _expiring_by_age(
    days: float, files: Sequence[SeenFile], now: float
) -> Iterator[tuple[SeenFile, float | None]]:
    for file in files:
        days_left = days - (now - file.mtime_ns / 1e9) / _DAY_SECONDS
        if days_left <= SOON_DAYS and Path(file.path).is_file():
            yield file, days_left


def _expiring_by_count(
    limit: int, files: Sequence[SeenFile]
) -> Iterator[tuple[SeenFile, float | None]]:
    folders: dict[Path, list[SeenFile]] = defaultdict(list)
    for file in files:
        folders[Path(file.path).parent].append(file)
    for in_folder in folders.values():
        if len(in_folder) > limit - SOON_FILES:
            existing = sorted(
                (file for file in in_folder if Path(file.path).is_file()),
                key=lambda file: file.mtime_ns,
            )
            yield from (
                (file, None) for file in existing[: max(0, len(existing) - (limit - SOON_FILES))]
            )


# -- Pruning -------------------------------------------------------------------
#
# The transcripts that have not changed for the longest time are deleted first.


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
