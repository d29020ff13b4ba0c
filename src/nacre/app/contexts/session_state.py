"""What a host's session was given already: one small file a session, which nobody waits for.

Hooks read and write it in milliseconds, with the daemon or without. Two that write at once leave the one's or the
other's: at worst something is told twice.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

import msgspec

from nacre import private

FOLDER = "run/sessions"
KEPT_DAYS = 7
_DAY_SECONDS = 86_400
_MOST_GIVEN = 500
_MOST_BYTES = 200_000


class SessionState(msgspec.Struct, frozen=True):
    """``given`` are the ids of memories, the last one last; ``asked`` is what was looked for last; ``heard`` the last
    prompts. ``signals`` counts those given, ``signal_mark`` and ``signal_at`` (epoch milliseconds) say up to where and
    when. ``turns`` counts the prompts since something was stored, ``nudges`` the reminders.
    """

    given: tuple[str, ...] = ()
    asked: str = ""
    heard: tuple[str, ...] = ()
    signals: int = 0
    signal_mark: int = -1
    signal_at: int = 0
    turns: int = 0
    nudges: int = 0

    def with_given(self, ids: tuple[str, ...]) -> SessionState:
        """The same after more was given."""
        return msgspec.structs.replace(self, given=tuple(dict.fromkeys((*self.given, *ids)))[-_MOST_GIVEN:])


def read_state(home: Path, session: str | None) -> SessionState:
    """What is known of a session; a new state where nothing is, or where it cannot be read."""
    if not session:
        return SessionState()
    try:
        descriptor = private.open_file(_path(home, session), os.O_RDONLY)
        with os.fdopen(descriptor, "rb") as file:
            return msgspec.json.decode(file.read(_MOST_BYTES), type=SessionState)
    except (OSError, msgspec.MsgspecError):
        return SessionState()


def write_state(home: Path, session: str | None, state: SessionState) -> None:
    """Keep it, as far as the disk lets: nothing fails for it."""
    if not session:
        return
    path = _path(home, session)
    temporary = private.temporary_name(path)
    with contextlib.suppress(OSError):
        private.make_folder(path.parent)
        descriptor = private.open_file(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.encode(state))
        temporary.replace(path)


def prune_states(home: Path, now: float) -> int:
    """Remove those of sessions that were not heard of for a week (``now``: epoch seconds); returns how many."""
    removed = 0
    with contextlib.suppress(OSError):
        for path in (home / FOLDER).iterdir():
            with contextlib.suppress(OSError):
                if now - path.stat().st_mtime > KEPT_DAYS * _DAY_SECONDS:
                    path.unlink()
                    removed += 1
    return removed


def _path(home: Path, session: str) -> Path:
    name = hashlib.sha256(session.encode("utf-8", "replace")).hexdigest()[:32]
    return home / FOLDER / f"{name}.json"
