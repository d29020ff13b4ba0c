"""Handoffs for people."""

from __future__ import annotations

from nacre.cli.paper import Paper, bold, dim
from nacre.values.handoff import HandoffView


def render_handoff(paper: Paper, view: HandoffView) -> None:
    """What is handed over, by which session, and who has it."""
    memory = view.memory
    if memory is None:
        place = f"in {view.project}" if view.project else "here: this folder belongs to no project that was met"
        hint = "" if view.note else "  nacre handoff --store hands the last session over"
        paper.line(f"Nothing is handed over {place}.", dim(hint))
        if view.note:
            paper.line(dim(view.note), indent=2)
        return
    state = "stored; " if view.is_new else ""
    state += "waits for the next session" if view.waits else (memory.retired.reason or "") if memory.retired else ""
    paper.line(bold(memory.subject), dim(f"  {view.project} · {state}"))
    paper.body(memory.content, indent=2)
    paper.line(dim(f"from {memory.source.session} · {memory.id[-8:]}"), indent=2)
    if view.note:
        paper.line(dim(view.note), indent=2)
