"""What watching tells, as JSON. ``docs/json.md`` documents every field."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nacre.cli.records.values import Record, stamp

if TYPE_CHECKING:
    from nacre.watching.status import Standing
    from nacre.watching.survey import Survey
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


def survey_record(found: Survey) -> Record:
    """The answer of ``watch --dry-run``."""
    return {
        "dry_run": True,
        "watched": [{"path": str(one.path), "tool": one.tool, "exists": one.is_there} for one in found.watched],
        "files": found.files,
        "unread": {"files": found.unread_files, "bytes": found.unread_bytes},
        "problems": [
            {"path": problem.path, "message": problem.message, "hint": problem.hint} for problem in found.problems
        ],
    }


def standing_record(found: Standing) -> Record:
    """How it stands with the watcher."""
    health = found.health
    return {
        "state": found.state,
        "pid": health.pid if health else None,
        "started": stamp(health.started) if health else None,
        "heartbeat": stamp(health.heartbeat) if health else None,
        "stopped": stamp(health.stopped) if health else None,
        "mode": health.mode if health else None,
        "why_polling": health.why_polling if health else None,
        "folders": health.folders if health else None,
        "transcripts": health.transcripts if health else None,
        "turns": health.turns if health else None,
        "memories": health.memories if health else None,
        "vectors_left": health.vectors_left if health else None,
        "last_read": stamp(health.last_read) if health else None,
        "last_error": health.last_error if health else None,
        "last_error_at": stamp(health.last_error_at) if health else None,
    }
