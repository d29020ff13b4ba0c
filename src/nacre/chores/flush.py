"""Flush: what a session said until now is read and learned at once, and what hooks left to be done is done."""

from __future__ import annotations

from nacre.chores.kinds import do_waiting
from nacre.chores.learn import learn_now
from nacre.chores.requests import FlushRequest
from nacre.home.home import Home
from nacre.ingestion.current_session import read_recent, read_session
from nacre.memories.scan import catch_up
from nacre.values.handoff import FlushReport
from nacre.values.reports import OnProgress
from nacre.values.session import StoredSession


def flush(home: Home, request: FlushRequest, on_progress: OnProgress | None = None) -> FlushReport:
    """Read and learn from what was said until now, then do what waits. What waits for its place in the vault is placed.

    A language model reads only where one may in the background. Raises what writing raises.
    """
    notify = on_progress or (lambda _: None)
    catch_up(home)
    found: StoredSession | None = None
    if request.session:
        found = read_session(home, request.session, request.transcript)
    else:
        read_recent(home)
    rows = [one.row for one in home.sessions.to_extract() if found is None or one.row == found.row]
    is_asked_for_nothing = request.session and found is None
    lessons = None if is_asked_for_nothing else learn_now(home, found, notify)
    chores = do_waiting(home, seconds=request.seconds)
    return FlushReport(
        lessons.memories if lessons else (), lessons.duplicates if lessons else 0,
        0 if is_asked_for_nothing else len(rows), chores, lessons.notes if lessons else (),
    )  # fmt: skip
