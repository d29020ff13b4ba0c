"""What a host's session was given already: one small file a session, which nobody waits for.

Hooks read and write it in milliseconds, with the daemon or without. Two that write at once leave the one's or the
other's: at worst something is told twice.
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from nacre import private
from nacre.link.address import session_file
from nacre.model.context import SessionState

KEPT_DAYS = 7
_DAY_SECONDS = 86_400
_MOST_BYTES = 200_000


def read_state(home: Path, session: str | None) -> SessionState:
    """What is known of a session; a new state where nothing is, or where it cannot be read."""
    if not session:
        return SessionState()
    try:
        descriptor = private.open_file(_path(home, session), os.O_RDONLY)
        with os.fdopen(descriptor, "rb") as file:
            return _state(json.loads(file.read(_MOST_BYTES)))
    except (OSError, ValueError, TypeError):
        return SessionState()


def write_state(home: Path, session: str | None, state: SessionState | None) -> None:
    """Keep it, once what it speaks of was delivered, as far as the disk lets: nothing fails for it."""
    if not session or state is None:
        return
    path = _path(home, session)
    temporary = private.temporary_name(path)
    with contextlib.suppress(OSError):
        private.make_folder(path.parent)
        descriptor = private.open_file(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        with os.fdopen(descriptor, "wb") as file:
            file.write(json.dumps(asdict(state)).encode())
        temporary.replace(path)


def prune_states(home: Path, now: float) -> int:
    """Remove those of sessions that were not heard of for a week (``now``: epoch seconds); returns how many."""
    removed = 0
    with contextlib.suppress(OSError):
        for path in _path(home, "any").parent.iterdir():
            with contextlib.suppress(OSError):
                if now - path.stat().st_mtime > KEPT_DAYS * _DAY_SECONDS:
                    path.unlink()
                    removed += 1
    return removed


def _state(kept: object) -> SessionState:
    """What a file holds, each value that has its kind. Raises TypeError."""
    if not isinstance(kept, dict):
        raise TypeError
    values: dict[str, Any] = {}
    for field in fields(SessionState):
        value, default = kept.get(field.name), field.default
        if isinstance(default, tuple) and isinstance(value, list):
            values[field.name] = tuple(one for one in value if isinstance(one, str))
        elif type(value) is type(default):
            values[field.name] = value
    return SessionState(**values)


def _path(home: Path, session: str) -> Path:
    return Path(session_file(str(home), session))
