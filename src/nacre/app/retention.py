"""Transcripts that their tools are about to delete, and whether the archive has them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from nacre.app.context import Context
from nacre.transcripts.adapter import Places
from nacre.transcripts.retention import Retention, retentions

SOON_DAYS = 7
_DAY_SECONDS = 86_400


@dataclass(frozen=True, slots=True)
class Leaving:
    """``files`` transcripts of a tool go within ``SOON_DAYS``, the first in ``days``; ``archived`` of them are kept."""

    retention: Retention
    files: int
    days: float
    archived: int

    @property
    def is_kept(self) -> bool:
        """Whether nothing is lost when they go."""
        return self.archived == self.files

    def in_words(self) -> str:
        """As one sentence."""
        tool, old = self.retention.label, self.retention.days
        transcripts = f"{self.files:,} transcripts" if self.files > 1 else "1 transcript"
        when = f"from in {self.days:.0f} days on" if self.days >= 1 else "from now on"
        return (
            f"{tool} deletes what is older than {old:,.0f} days: {transcripts} go {when}; "
            f"archived {self.archived:,} of {self.files:,}"
        )


def leaving(context: Context) -> list[Leaving]:
    """What goes soon, tool by tool, of the transcripts that were read and still exist."""
    settings = context.settings
    known = {one.tool: one for one in retentions(Places(settings.user_home, settings.environ, settings.platform))}
    kept = {state.path: state for state in context.archive.all() if state.pack}
    now = context.now().timestamp()
    found: dict[str, list[tuple[float, bool]]] = {}
    for file in context.sessions.seen_files():
        one = known.get(file.tool)
        left = one.days - (now - file.mtime_ns / 1e9) / _DAY_SECONDS if one else SOON_DAYS + 1
        if left <= SOON_DAYS and Path(file.path).is_file():
            state = kept.get(file.path)
            found.setdefault(file.tool, []).append((left, state is not None and state.changed == file.mtime_ns))
    return [
        Leaving(known[tool], len(files), max(0.0, min(left for left, _ in files)), sum(is_kept for _, is_kept in files))
        for tool, files in sorted(found.items())
    ]
