"""Wirings of hosts as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nacre.cli.records.values import Record

if TYPE_CHECKING:
    from nacre.cli.init_daemon import DaemonMet
    from nacre.values.wiring import LeftAlone, WiringDone, WiringPlan


def plan_record(plan: WiringPlan, diffs: Sequence[str]) -> Record:
    """What would be, or was, changed."""
    return {
        "hosts": [
            {"host": wish.host, "scope": wish.scope, "project": str(wish.project) if wish.project else None}
            for wish in plan.wishes
        ],
        "files": [
            {
                "path": str(change.path), "action": change.action, "hosts": list(change.hosts), "what": change.what,
                "diff": diff,
            }
            for change, diff in zip(plan.changes, diffs, strict=True)
        ],
        "left_alone": [_left(one) for one in plan.left_alone],
        "kept": [_left(one) for one in plan.kept],
        "commands": [{"command": list(one.words), "what": one.what} for one in plan.commands],
        "notes": [{"host": host, "note": note} for host, note in plan.notes],
        "done": False, "backups": [], "old_copies": [], "daemon": None, "failed": [], "trusted": False,
    }  # fmt: skip


def done_record(done: WiringDone, diffs: Sequence[str], daemon: DaemonMet | None) -> Record:
    """What was changed."""
    return plan_record(done.plan, diffs) | {
        "done": True,
        "backups": [str(path) for path in done.backups],
        "old_copies": [str(path) for path in done.old_copies],
        "daemon": {"version": daemon.version, "state": daemon.state} if daemon else None,
        "left_alone": [_left(one) for one in (*done.plan.left_alone, *done.left_alone)],
        "trusted": done.trusted,
        "failed": [{"command": command, "said": said} for command, said in done.failed],
    }


def _left(one: LeftAlone) -> Record:
    return {"path": str(one.path), "host": one.host, "reason": one.reason, "hint": one.hint}
