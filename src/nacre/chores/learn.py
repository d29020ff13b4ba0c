"""Learn from what was read of a session, while its host goes on."""

from __future__ import annotations

from nacre.extraction.learn import Lessons, learn
from nacre.home.home import Home
from nacre.indexing.vectors import embed_pending
from nacre.spending.tracing import MOST_REFS, counted, noting
from nacre.values.reports import OnProgress
from nacre.values.session import StoredSession
from nacre.values.trace import Step, TraceKind

VECTOR_SECONDS = 10.0
"""So long vectors are made; the next ingest goes on with them."""


def learn_now(
    home: Home, session: StoredSession | None, notify: OnProgress | None = None, *, is_over: bool = False
) -> Lessons | None:  # fmt: skip
    """Learn from a session as far as it was read, or from all that wait; ``None`` where learning is off.

    ``is_over``: nobody will answer what was said last.
    """
    if not home.settings.flag("extraction.enabled"):
        return None
    told = notify or (lambda _: None)
    subject = session.session.id if session else "what waits"
    with noting(home, TraceKind.INDEX, subject) as trace, home.run("ingest") as run:
        lessons = learn(home, told, only=session.row if session else None, is_over=is_over, run=run)
        counts = {"memories": len(lessons.memories), "candidates": lessons.candidates}
        trace.outcome = counted(counts)
        if trace.outcome:
            trace.add(Step("learns", output=trace.outcome, refs=tuple(lessons.memories[:MOST_REFS])))
    embed_pending(home, told, seconds=VECTOR_SECONDS)
    return lessons
