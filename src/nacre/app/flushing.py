"""Flush: what a session said until now is read and learned at once, and what hooks left to be done is done."""

from __future__ import annotations

from collections.abc import Callable

from nacre.app.chores import do_waiting
from nacre.app.context import Context
from nacre.app.embedding import embed_pending
from nacre.app.learning import Lessons, learn
from nacre.app.operating import running
from nacre.app.reading_now import read_recent, read_session
from nacre.app.scanning import catch_up
from nacre.app.writing import apply_intents
from nacre.model.handing import FlushReport, FlushRequest
from nacre.model.reports import Progress
from nacre.storage.sessions import StoredSession

VECTOR_SECONDS = 10.0
"""So long vectors are made; the next ingest goes on with them."""

OnProgress = Callable[[Progress], None]


def flush(context: Context, request: FlushRequest, on_progress: OnProgress | None = None) -> FlushReport:
    """Read and learn from what was said until now, then do what waits. What waits for its place in the vault is placed.

    A language model reads only where one may in the background. Raises what writing raises.
    """
    notify = on_progress or (lambda _: None)
    catch_up(context)
    found: StoredSession | None = None
    if request.session:
        found = read_session(context, request.session, request.transcript)
    else:
        read_recent(context)
    rows = [row for row, _ in context.sessions.to_extract() if found is None or row == found.row]
    is_asked_for_nothing = request.session and found is None
    lessons = None if is_asked_for_nothing else learn_now(context, found, notify)
    chores = do_waiting(context, seconds=request.seconds)
    return FlushReport(
        lessons.memories if lessons else (), lessons.duplicates if lessons else 0,
        0 if is_asked_for_nothing else len(rows), chores, lessons.notes if lessons else (),
    )  # fmt: skip


def learn_now(
    context: Context, session: StoredSession | None, notify: OnProgress | None = None, *, is_over: bool = False
) -> Lessons | None:  # fmt: skip
    """Learn from a session as far as it was read, or from all that wait; ``None`` where learning is off.

    ``is_over``: nobody will answer what was said last.
    """
    if not context.settings["extraction.enabled"]:
        return None
    told = notify or (lambda _: None)
    with running(context, "ingest"):
        only = session.row if session else None
        lessons = learn(context, told, in_chunks=True, only=only, is_over=is_over)
    apply_intents(context)
    embed_pending(context, told, seconds=VECTOR_SECONDS)
    return lessons
