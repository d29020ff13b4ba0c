"""What a host's session was given already: one small file a session, which nobody waits for.

Hooks read and write it in milliseconds, with the daemon or without. Two that write at once leave the one's or the
other's: at worst something is told twice.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from nacre.link.address import session_file
from nacre.platform import private_files
from nacre.values.context import SessionState

KEPT_DAYS = 7
_DAY_SECONDS = 86_400
_JUST_SECONDS = 60
"""A reset ends a session and begins the next one at once."""

_MOST_BYTES = 200_000
_MOST_OTHERS = 30
_MOST_BEFORE = 20


def read_state(home: Path, session: str | None) -> SessionState:
    """What is known of a session; a new state where nothing is, or where it cannot be read."""
    return _read(_path(home, session)) if session else SessionState()


def _read(path: Path) -> SessionState:
    try:
        descriptor = private_files.open_file(path, os.O_RDONLY)
        with os.fdopen(descriptor, "rb") as file:
            return _state(json.loads(file.read(_MOST_BYTES)))
    except (OSError, ValueError, TypeError, RecursionError):
        return SessionState()


def write_state(home: Path, session: str | None, state: SessionState | None) -> None:
    """Keep it, once what it speaks of was delivered, as far as the disk lets: nothing fails for it.

    Where it cannot be kept, nobody knows what was delivered: a handoff is given to the next session, too.
    """
    if not session or state is None:
        return
    path = _path(home, session)
    temporary = private_files.temporary_name(path)
    with contextlib.suppress(OSError):
        private_files.make_folder(path.parent)
        private_files.sweep(path.parent, path.name)
        try:
            descriptor = private_files.open_file(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            with os.fdopen(descriptor, "wb") as file:
                file.write(json.dumps(asdict(state)).encode())
            temporary.replace(path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise


def just_ended(home: Path, session: str, folder: str | None, now_ms: int) -> tuple[str, ...]:
    """The sessions of the same tool that ended in a folder within a minute, and those that these went on from."""
    tool = session.partition(":")[0]
    found: list[str] = []
    for state in _others(home, session):
        is_there = state.name.partition(":")[0] == tool and state.folder == (folder or "")
        if is_there and state.ended and 0 <= now_ms - state.ended <= _JUST_SECONDS * 1000:
            found += [state.name, *state.after]
    return tuple(dict.fromkeys(found))[:_MOST_BEFORE]


def _others(home: Path, session: str) -> Iterator[SessionState]:
    """The states of other sessions, of those that were heard of last."""
    own = _path(home, session)
    with contextlib.suppress(OSError):
        with os.scandir(own.parent) as entries:
            files = [(entry.stat().st_mtime, entry.name) for entry in entries if entry.name[:1] != "."]
        for _, name in sorted(files, reverse=True)[:_MOST_OTHERS]:
            if name != own.name:
                yield _read(own.with_name(name))


def prune_states(home: Path, now: float) -> int:
    """Remove those of sessions that were not heard of for a week (``now``: epoch seconds); returns how many.

    What processes that were killed left half written goes as well.
    """
    removed, folder = 0, _path(home, "any").parent
    with contextlib.suppress(OSError):
        private_files.sweep(folder)
        for path in folder.iterdir():
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
