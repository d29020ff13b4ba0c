"""Look at what runs and answers went through."""

from __future__ import annotations

from datetime import datetime

from nacre.errors import Conflict, NotFound
from nacre.home.home import Home
from nacre.spending.spool import fold_notes
from nacre.values.trace import Trace, TraceKind
from nacre.views import TraceView


def list_traces(
    home: Home, kind: TraceKind | None = None, since: datetime | None = None, limit: int = 20
) -> list[Trace]:
    """The latest first."""
    fold_notes(home)
    return home.traces.latest(kind, since, limit)


def show_trace(home: Home, reference: str) -> TraceView:
    """A trace by its id, or the end or the beginning of that. Raises NotFound, Conflict."""
    fold_notes(home)
    found = home.traces.find(reference.strip())
    if not found:
        raise NotFound(f"no trace is called {reference!r}", hint="nacre traces list shows ids")
    if len(found) > 1:
        ids = ", ".join(trace.id for trace in found)
        raise Conflict(f"{reference!r} means several traces: {ids}", hint="give more of the id")
    trace = found[0]
    refs = sorted({ref for step in trace.steps for ref in step.refs})
    names = {memory.id: memory.subject for memory in home.memories.in_any_state(refs)}
    return TraceView(trace, names)
