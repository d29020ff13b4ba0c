"""Handoffs and chores."""

from __future__ import annotations

from datetime import UTC, datetime

from nacre.chores.queue import Chore
from nacre.cli.records.memories import memory_record
from nacre.cli.records.values import Record, stamp
from nacre.values.handoff import HandoffView


def handoff_record(view: HandoffView) -> Record:
    """The answer of ``handoff``."""
    return {
        "project": view.project,
        "handoff": memory_record(view.memory) if view.memory else None,
        "waits": view.waits,
        "stored": view.is_new,
        "note": view.note,
    }


def chore_record(chore: Chore) -> Record:
    """A chore."""
    return {
        "kind": chore.kind, "session": chore.session or None, "folder": chore.folder, "tries": chore.tries,
        "left_at": stamp(datetime.fromtimestamp(chore.at, UTC)) if chore.at else None, "note": chore.note or None,
    }  # fmt: skip
