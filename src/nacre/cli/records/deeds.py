"""What agents did, as JSON. ``docs/json.md`` documents every field."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nacre.cli.records.answers import memory_hit_record, turn_hit_record
from nacre.cli.records.sessions import call_record
from nacre.cli.records.values import Record, stamp

if TYPE_CHECKING:
    from nacre.sessions.pattern_search import Matches
    from nacre.values.file_history import FileChange, FileHistory, Repair, Trouble
    from nacre.values.session import Session, Turn
    from nacre.views import FixResult


def matches_record(found: Matches, expression: str, message: str | None, offset: int) -> Record:
    """The answer of ``sessions search --regex``."""
    return {
        "query": expression,
        "hits": [turn_hit_record(hit) for hit in found.turns],
        "message": message,
        "more": found.more,
        "offset": offset,
        "unread": found.unread,
        "given_up": found.given_up,
    }


def history_record(history: FileHistory, offset: int) -> Record:
    """The answer of ``did``."""
    return {
        "path": history.asked,
        "files": list(history.paths),
        "edits": history.edits,
        "reads": history.reads,
        "sessions": history.sessions,
        "changes": [_change(change) for change in history.changes],
        "more": history.more,
        "offset": offset,
    }


def fix_record(result: FixResult) -> Record:
    """The answer of ``fix``."""
    return {
        "error": result.error,
        "troubles": [_trouble(trouble) for trouble in result.troubles],
        "lessons": [memory_hit_record(hit) for hit in result.lessons],
        "talk": [turn_hit_record(hit) for hit in result.talk],
    }


def _change(change: FileChange) -> Record:
    return {
        **_place(change.session, change.project),
        "path": change.path,
        "seq": change.seq,
        "time": stamp(change.time),
        "edits": change.edits,
        "reads": change.reads,
        "failed": change.failed,
        "commands": [call_record(call) for call in change.commands],
        "request": _said(change.request),
        "words": _said(change.words),
    }


def _trouble(trouble: Trouble) -> Record:
    return {
        "error": trouble.error,
        "trust": "untrusted",
        "likeness": trouble.likeness,
        "times": trouble.times,
        "sessions": trouble.sessions,
        "mended": trouble.mended,
        "repairs": [_repair(repair) for repair in trouble.repairs],
    }


def _repair(repair: Repair) -> Record:
    return {
        **_place(repair.session, repair.project),
        "seq": repair.seq,
        "time": stamp(repair.time),
        "failed": call_record(repair.failed),
        "worked": repair.worked,
        "attempts": repair.attempts,
        "steps": [call_record(call) for call in repair.steps],
        "words": _said(repair.words),
    }


def _place(session: Session, project: str | None) -> Record:
    return {
        "session_id": session.native_id,
        "tool": session.tool,
        "model": session.model,
        "project": project,
        "branch": session.branch,
        "kind": session.kind.value,
        "title": session.title,
    }


def _said(turn: Turn | None) -> Record | None:
    if turn is None:
        return None
    return {
        "turn_id": turn.id, "speaker": turn.speaker.value, "trust": turn.trust.value, "time": stamp(turn.time),
        "text": turn.text,
    }  # fmt: skip
