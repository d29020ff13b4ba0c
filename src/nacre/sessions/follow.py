"""Follow a session while it is written: read its transcript again whenever it grows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from nacre.errors import NotFound
from nacre.home.home import Home
from nacre.home.lookup import find_session
from nacre.ingestion.ingest import ingest
from nacre.ingestion.requests import IngestOptions
from nacre.values.session import StoredSession, StoredTurn

_PAUSE = 0.5
_AHEAD = 1_000


def follow_session(
    home: Home, reference: str | None, *, limit: int, wait: Callable[[float], object] = time.sleep
) -> Iterator[list[StoredTurn]]:
    """The last turns of a session, then those that are new or grew, as they come; ends only with the caller.

    Only the session's own transcript is read, and nothing is learned from it: that is for ingest. Raises NotFound,
    Conflict.
    """
    session = find_session(home, reference)
    path = _transcript(session)
    shown = home.sessions.last_turns(session.row, limit)
    yield shown
    first = shown[-1].seq if shown else 0
    known = {item.seq: item.turn for item in shown}
    seen: tuple[int, int] | None = None
    while True:
        now = _state(path)
        if now != seen:
            seen = now
            ingest(home, IngestOptions(paths=(path,), remember_paths=False, extract=False, vectors=False))
            found = home.sessions.turns_of(session.row, first=first, limit=_AHEAD)
            fresh = [item for item in found if known.get(item.seq) != item.turn]
            known = {item.seq: item.turn for item in found}
            first = found[-1].seq if found else first
            if fresh:
                yield fresh
        wait(_PAUSE)


def _transcript(session: StoredSession) -> Path:
    path = Path(session.file) if session.file else None
    if path is None or not path.exists():
        raise NotFound(f"the transcript of {session.session.id} is gone", hint="without --follow its end is shown")
    return path


def _state(path: Path) -> tuple[int, int] | None:
    """Size and time of a transcript; a tool may move it away for a moment."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_size, stat.st_mtime_ns
