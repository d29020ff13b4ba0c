"""Look at what runs and answers went through."""

from __future__ import annotations

from datetime import datetime

from nacre.errors import Conflict, NotFound
from nacre.home.home import Home
from nacre.memories.usage import session_name
from nacre.spending.spool import fold_notes
from nacre.values.trace import Trace, TraceKind
from nacre.views import Event, TraceView

_CALLS_SHOWN = 10


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
    session, events = _afterwards(home, trace)
    return TraceView(trace, names, session, events)


def _afterwards(home: Home, trace: Trace) -> tuple[str | None, list[Event]]:
    """What was done in the session of a question after it, as far as its transcript is read."""
    if not trace.session:
        return None, []
    row = next((row for row, native_id in home.traces.sessions() if session_name(native_id) == trace.session), None)
    if row is None:
        return None, []
    events = [
        Event(turn.time, call)
        for turn in (stored.turn for stored in home.sessions.turns_of(row))
        if turn.time and turn.time >= trace.began
        for call in turn.tool_calls
    ]
    return home.sessions.get(row).session.id, events[:_CALLS_SHOWN]
