"""Memories, sessions and turns for tests of stores."""

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
    """An id that begins as those of one moment do."""
    return f"0193-{number:04x}"


def memory(number: int, content: str = "", *, days: float = 0, **more: Any) -> Memory:
    """A memory that was stored some days after noon."""
    at = NOON + timedelta(days=days)
    given = {
        "kind": Kind.FACT,
        "subject": f"Subject {number}",
        "created": at,
        "updated": at,
        **more,
    }
    return Memory(id=an_id(number), content=content or f"Content {number}.", **given)


def retired(days: float = 0, reason: str | None = None) -> dict[str, Retirement]:
    """What a memory holds that was retired some days after noon."""
    return {"retired": Retirement(NOON + timedelta(days=days), reason)}


def put(database: Database, *memories: Memory) -> Memories:
    """A store that holds some memories."""
    store = Memories(database)
    with database.transaction():
        for one in memories:
            store.put(one)
    return store


def numbers(found: Sequence[Memory | str]) -> list[int]:
    """The numbers by which memories were made."""
    return [int((one if isinstance(one, str) else one.id)[5:], 16) for one in found]


def turn(name: str, text: str = "Said.", *, minutes: float | None = None, **more: Any) -> Turn:
    """A turn of the owner, some minutes after noon."""
    at = None if minutes is None else NOON + timedelta(minutes=minutes)
    return Turn(**{"id": name, "speaker": Speaker.OWNER, "text": text, "time": at, **more})


def said(
    database: Database,
    native_id: str,
    *turns: Turn,
    tool: str = "claude-code",
    project: str | None = None,
    file: str | None = None,
    kind: SessionKind = SessionKind.MAIN,
    **more: Any,
) -> int:
    """Store a session with its turns; returns its row."""
    store = Sessions(database)
    session = Session(tool, native_id, kind=kind, **more)
    with database.transaction():
        row = store.upsert(session, project=project, file=file)
        store.add_turns(session, row, turns)
        store.refresh([row])
    return row
