"""Sessions and their turns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nacre.cli.records.memories import memory_record
from nacre.cli.records.values import Record, stamp
from nacre.values.session import Trust

if TYPE_CHECKING:
    from datetime import timedelta

    from nacre.storage.sessions import StoredSession, StoredTurn
    from nacre.values.session import Tokens, ToolCall
    from nacre.values.summary import Outcome
    from nacre.views import SessionLine, SessionReport, SessionView


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
        "model": session.model,
        "tool_version": session.tool_version,
        "parent": session.parent,
        "cwd": session.cwd,
        "branch": session.branch,
        "started": stamp(session.started),
        "ended": stamp(stored.ended),
        "turns": stored.turns,
        "tokens": session.tokens and _tokens_record(session.tokens),
        "file": stored.file,
    }


def session_line_record(line: SessionLine) -> Record:
    """One session of a list."""
    return {**session_record(line.session), "active_seconds": _seconds(line.active), "opening": line.opening}


def session_facts_record(view: SessionView) -> Record:
    """A session with what belongs to it besides its turns."""
    return {
        **session_record(view.session),
        "active_seconds": _seconds(view.active),
        "opening": view.opening,
        "sent_by": view.parent and view.parent.session.id,
        "sent_out": [session_line_record(child) for child in view.children],
    }


def summary_record(report: SessionReport) -> Record:
    """What a session was about."""
    summary = report.summary
    return {
        **session_facts_record(report.view),
        "topics": [
            {"text": topic.text, "turn_id": topic.turn, "speaker": topic.speaker.value, "work": topic.work}
            for topic in summary.topics
        ],
        "outcome": _outcome_record(summary.outcome),
        "open_ends": [
            {"kind": end.kind.value, "text": end.text, "speaker": end.speaker.value, "turn_id": end.turn}
            for end in summary.open_ends
        ],
        "tools": [
            {"name": tool.name, "action": tool.action.value, "calls": tool.calls, "failed": tool.failed}
            for tool in summary.tools
        ],
        "files": [{"path": file.path, "edits": file.edits, "reads": file.reads} for file in summary.files],
        "commands": [
            {"name": command.name, "runs": command.runs, "failed": command.failed} for command in summary.commands
        ],
        "commits": list(summary.commits),
        "pull_requests": list(summary.pull_requests),
        "errors": [
            {
                "error": error.text, "trust": Trust.UNTRUSTED.value, "call": error.call, "times": error.times,
                "mended": error.mended,
            }
            for error in summary.errors
        ],
        "packages": list(summary.packages),
        "urls": list(summary.urls),
        "memories": [memory_record(memory) for memory in report.view.memories],
    }  # fmt: skip


def _outcome_record(outcome: Outcome) -> Record:
    return {
        "ending": outcome.ending.value, "reason": outcome.reason, "words": outcome.words,
        "speaker": outcome.speaker and outcome.speaker.value, "turn_id": outcome.turn,
    }  # fmt: skip


def _tokens_record(tokens: Tokens) -> Record:
    return {"input": tokens.input, "cached": tokens.cached, "output": tokens.output}


def _seconds(span: timedelta | None) -> float | None:
    return None if span is None else span.total_seconds()


def session_view_record(view: SessionView, first: int) -> Record:
    """One session with turns; ``turns`` are the turns here, ``total`` counts all."""
    record = session_facts_record(view)
    return {
        **record,
        "total": record["turns"],
        "first": first,
        "turns": [turn_record(stored) for stored in view.turns],
        "memories": [memory_record(memory) for memory in view.memories],
    }


def turn_record(stored: StoredTurn) -> Record:
    """One turn of a session."""
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
