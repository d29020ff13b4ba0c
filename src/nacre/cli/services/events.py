"""What the watcher tells: one event, as JSON and as a line."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from nacre.cli.formats import Record, count, stamp
from nacre.platform.days import shown

if TYPE_CHECKING:
    from nacre.watching.watcher import WatchEvent


def event_record(event: WatchEvent) -> Record:
    """One line of ``watch``."""
    return {
        "event": event.kind,
        "time": stamp(event.time),
        "files": event.files,
        "turns": event.turns,
        "memories": event.memories,
        "vectors": {"made": event.vectors_made, "left": event.vectors_left},
        "tools": dict(event.tools),
        "folders": event.folders,
        "mode": event.mode,
        "path": event.path,
        "message": event.note,
        "hint": event.hint,
    }


def event_line(event: WatchEvent, *, with_day: bool = False) -> str:
    """An event in one line."""
    at = shown(event.time, "%Y-%m-%d %H:%M:%S" if with_day else "%H:%M:%S")
    return f"{at}  {_WORDS[event.kind](event)}"


def _started(event: WatchEvent) -> str:
    how = f"by looking again and again, for {event.note}" if event.note else "as they are written"
    return f"following the sessions in {count(event.folders, 'folder')} {how}; Ctrl-C ends it"


def _read(event: WatchEvent) -> str:
    tools = ", ".join(event.tools) or count(event.files, "transcript")
    return f"read {count(event.turns, 'turn')} of {tools}"


def _learned(event: WatchEvent) -> str:
    parts = [f"learned {count(event.memories, 'memory', 'memories')}"] if event.memories else []
    if event.vectors_made:
        left = f", {event.vectors_left:,} texts wait" if event.vectors_left else ""
        parts.append(f"made {count(event.vectors_made, 'vector')}{left}")
    return "; ".join(parts)


def _problem(event: WatchEvent) -> str:
    where = f"{event.path}: " if event.path else ""
    return f"problem: {where}{event.note}" + (f" ({event.hint})" if event.hint else "")


_WORDS: dict[str, Callable[[WatchEvent], str]] = {
    "started": _started,
    "read": _read,
    "learned": _learned,
    "mode": lambda event: f"looking again and again from now on: {event.note}" if event.note else "listening again",
    "problem": _problem,
    "stopped": lambda event: f"stopped after {event.turns:,} turns and {count(event.memories, 'memory', 'memories')}",
}
