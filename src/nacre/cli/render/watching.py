"""What watching tells, for people."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from nacre.cli.paper import Paper, bold, dim
from nacre.cli.render.words import count, size

if TYPE_CHECKING:
    from nacre.watching.status import Standing
    from nacre.watching.survey import Survey
    from nacre.watching.watcher import WatchEvent

_STATES = {
    "starting": "The watcher is starting",
    "running": "The watcher runs",
    "stale": "The watcher runs and says nothing",
    "died": "The watcher ended without saying so",
    "stopped": "The watcher is stopped",
    "never": "No watcher ever ran for this home",
}


def told(event: WatchEvent, *, with_day: bool = False) -> str:
    """An event in one line."""
    moment = event.time.astimezone()
    day = f"{moment:%Y-%m-%d} " if with_day else ""
    return f"{day}{moment:%H:%M:%S}  {_WORDS[event.kind](event)}"


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


def render_survey(paper: Paper, found: Survey) -> None:
    """What would be watched, then what waits there."""
    there = [one for one in found.watched if one.is_there]
    paper.line(bold("Would follow"))
    paper.table([(one.tool or "named", str(one.path)) for one in there], indent=2)
    missing = len(found.watched) - len(there)
    if missing:
        words = f"and {count(missing, 'more folder')} as soon as a tool makes {'it' if missing == 1 else 'them'}"
        paper.line(dim(words), indent=2)
    unread = f"{count(found.unread_files, 'transcript')} ({size(found.unread_bytes)})"
    paper.line(f"{count(found.files, 'transcript')} there; {unread} would be read now.")
    for problem in found.problems:
        paper.line(f"  {problem.path}: {problem.message}")


def render_standing(paper: Paper, found: Standing) -> None:
    """How it stands, in a line, then what it did."""
    health = found.health
    paper.line(bold(_STATES[found.state]), f" (process {health.pid})." if health and found.lives else ".")
    if health is None or found.state == "never":
        return
    errors = []
    if health.last_error and health.last_error_at:
        errors.append(("last problem", f"{health.last_error} ({health.last_error_at.astimezone():%Y-%m-%d %H:%M})"))
    how = "events" if not health.why_polling else f"polling: {health.why_polling}"
    paper.facts(
        [
            ("since", f"{health.started.astimezone():%Y-%m-%d %H:%M}"),
            ("last heartbeat", f"{health.heartbeat.astimezone():%Y-%m-%d %H:%M:%S}"),
            ("follows", f"{count(health.folders, 'folder')} by {how}"),
            (
                "did",
                f"{health.turns:,} turns of {count(health.transcripts, 'transcript')}, "
                f"{count(health.memories, 'memory', 'memories')}",
            ),
            *errors,
        ],
        indent=2,
    )
