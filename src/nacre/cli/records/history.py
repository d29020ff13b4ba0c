"""Commits, operations, what they changed, and syncs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nacre.cli.records.values import Record, stamp

if TYPE_CHECKING:
    from nacre.history.commit import Committed
    from nacre.history.undo import Undoing
    from nacre.sync.sync import Synced
    from nacre.values.operation import Operation
    from nacre.views import Difference


def committed_record(done: Committed) -> Record:
    """What a commit took."""
    return {
        "commits": [{"commit": commit, "title": title} for commit, title in done.commits],
        "operations": done.operations,
        "waiting": done.waiting,
        "held": [{"path": item.path, "reason": item.reason} for item in done.held],
        "note": done.note,
    }


def operation_record(operation: Operation, memories: Sequence[str] = ()) -> Record:
    """One operation."""
    return {
        "operation": operation.id,
        "time": stamp(operation.at),
        "action": operation.action,
        "subject": operation.subject,
        "why": operation.why,
        "state": "committed" if operation.committed else "pending",
        "commit": operation.committed,
        "memory_ids": list(memories),
    }


def diff_record(operation: Operation, found: Sequence[Difference]) -> Record:
    """What an operation changed."""
    memories = dict.fromkeys(one.change.memory for one in found if one.change.memory)
    return {**operation_record(operation, tuple(memories)), "changes": [_difference_record(one) for one in found]}


def _difference_record(one: Difference) -> Record:
    before, after = one.change.before, one.change.after
    return {
        "id": one.change.memory or None,
        "subject": one.subject,
        "path_before": before.path if before else None,
        "path": after.path if after else None,
        "fields": [{"name": field.name, "before": field.before, "after": field.after} for field in one.fields],
        "text": [{"mark": line[:1], "line": line[1:]} for line in one.lines],
    }


def undo_record(undoing: Undoing) -> Record:
    """What an undo does, or did."""
    return {
        "undone": operation_record(undoing.operation),
        "undo": undoing.op,
        "steps": [
            {
                "action": step.action.replace(" ", "_"),
                "id": step.change.memory or None,
                "subject": step.subject,
                "path": step.change.latest.path,
                "clashes": list(step.clashes),
            }
            for step in undoing.steps
        ],
    }


def sync_record(done: Synced) -> Record:
    """What a sync did, or would do."""
    return {
        "state": done.state.value,
        "remote": done.remote,
        "url": done.url,
        "branch": done.branch,
        "sent": done.sent,
        "received": done.received,
        "notes": [
            {
                "outcome": note.outcome.value, "id": note.memory, "subject": note.subject, "path": note.path,
                "other_path": note.other, "fields": list(note.fields),
            }
            for note in done.notes
        ],
        "held": [{"path": item.path, "reason": item.reason} for item in done.held],
        "left_out": list(done.left_out),
        "problems": list(done.problems),
    }  # fmt: skip
