"""Sessions and their turns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nacre.cli.records.memories import memory_record
from nacre.cli.records.values import Record, stamp

if TYPE_CHECKING:
    from nacre.app.looking import SessionView
    from nacre.model.session import ToolCall
    from nacre.storage.sessions import StoredSession, StoredTurn


def session_record(stored: StoredSession) -> Record:
    """One session."""
    session = stored.session
    return {
        "session_id": session.native_id,
        "session": session.id,
        "tool": session.tool,
        "project": stored.project,
        "title": session.title,
        "kind": session.kind.value,
        "parent": session.parent,
        "cwd": session.cwd,
        "branch": session.branch,
        "started": stamp(session.started),
        "ended": stamp(stored.ended),
        "turns": stored.turns,
        "file": stored.file,
    }


def session_view_record(view: SessionView, first: int) -> Record:
    """One session with turns; ``turns`` are the turns here, ``total`` counts all."""
    record = session_record(view.session)
    return {
        **record,
        "total": record["turns"],
        "first": first,
        "turns": [_turn_record(stored) for stored in view.turns],
        "memories": [memory_record(memory) for memory in view.memories],
    }


def _turn_record(stored: StoredTurn) -> Record:
    turn = stored.turn
    return {
        "turn_id": turn.id,
        "seq": stored.seq,
        "speaker": turn.speaker.value,
        "author": turn.author,
        "time": stamp(turn.time),
        "text": turn.text,
        "trust": turn.trust.value,
        "flags": [flag.name.lower() for flag in turn.flags if flag.name],
        "tool_calls": [call_record(call) for call in turn.tool_calls],
    }


def call_record(call: ToolCall) -> Record:
    """One tool call of an agent."""
    return {
        "name": call.name,
        "input": call.input,
        "outcome": call.outcome,
        "action": call.action.value,
        "paths": list(call.paths),
        "error": call.error,
        "made": list(call.made),
    }
