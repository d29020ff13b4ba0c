"""Memories, sessions and turns for store tests."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from nacre.store.memories import Memories
from nacre.store.schema import Database
from nacre.store.sessions import Sessions
from nacre.values.memory import Kind, Memory, Retirement
from nacre.values.session import Session, SessionKind, Speaker, Turn

NOON = datetime(2026, 11, 2, 12, tzinfo=UTC)
DAY = timedelta(days=1)
MS = 1_793_620_800_000
"""Noon in milliseconds."""


def an_id(number: int) -> str:
    """Return an id whose prefix equals that of other ids from the same moment."""
    return f"0193-{number:04x}"


def memory(number: int, content: str = "", *, days: float = 0, **more: Any) -> Memory:
    """Return a memory stored some days after noon."""
    at = NOON + timedelta(days=days)
    fields = {
        "kind": Kind.FACT,
        "subject": f"Subject {number}",
        "created": at,
        "updated": at,
        **more,
    }
    return Memory(id=an_id(number), content=content or f"Content {number}.", **fields)


def retired(days: float = 0, reason: str | None = None) -> dict[str, Retirement]:
    """Return the fields of a memory that was retired some days after noon."""
    return {"retired": Retirement(NOON + timedelta(days=days), reason)}


def put(database: Database, *memories: Memory) -> Memories:
    """Return a store with memories in it."""
    store = Memories(database)
    with database.transaction():
        for item in memories:
            store.put(item)
    return store


def numbers(memories: Sequence[Memory | str]) -> list[int]:
    """Return the numbers with which the memories were created."""
    return [int((item if isinstance(item, str) else item.id)[5:], 16) for item in memories]


def turn(name: str, text: str = "Said.", *, minutes: float | None = None, **more: Any) -> Turn:
    """Return an owner's turn, some minutes after noon."""
    at = None if minutes is None else NOON + timedelta(minutes=minutes)
    return Turn(**{"id": name, "speaker": Speaker.OWNER, "text": text, "time": at, **more})


def put_session(
    database: Database,
    native_id: str,
    *turns: Turn,
    tool: str = "claude-code",
    project: str | None = None,
    file: str | None = None,
    kind: SessionKind = SessionKind.MAIN,
    **more: Any,
) -> int:
    """Store a session with its turns and return its row."""
    store = Sessions(database)
    session = Session(tool, native_id, kind=kind, **more)
    with database.transaction():
        row = store.upsert(session, project=project, file=file)
        store.add_turns(session, row, turns)
        store.refresh([row])
    return row
