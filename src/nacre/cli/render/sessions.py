"""Sessions for people: a table, and one as a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nacre.cli.paper import Paper, Span, bold, dim
from nacre.cli.render.memories import render_table
from nacre.cli.render.words import count, day, minute, short_session, speaker_name
from nacre.model.session import Flag, Speaker, Trust
from nacre.text import shorten

if TYPE_CHECKING:
    from nacre.app.looking import SessionLine, SessionView
    from nacre.storage.sessions import StoredTurn

_TINTS = {Speaker.OWNER: "bold green", Speaker.AGENT: "bold cyan", Speaker.TOOL: "dim", Speaker.SYSTEM: "dim"}
_TURN_CHARACTERS = 2000
_CALLS_SHOWN = 8


def render_sessions(paper: Paper, lines: Sequence[SessionLine], *, has_more: bool, offset: int) -> None:
    """One line a session: id, day, tool, turns, project, title."""
    rows = [
        (
            dim(short_session(item.session.native_id)), dim(day(item.ended or item.session.started)), item.session.tool,
            f"{item.turns:>4}", item.project or "", item.session.title or dim(line.opening or "nothing was said"),
        )
        for line in lines
        for item in (line.session,)
    ]  # fmt: skip
    paper.table(rows, drop=(3, 1, 4))
    if has_more:
        paper.blank()
        paper.line(dim(f"more: --offset {offset + len(lines)}"))


def render_session(paper: Paper, view: SessionView, *, first: int, full: bool) -> None:
    """A session's facts, its turns, and what was learned from it."""
    stored = view.session
    session = stored.session
    paper.line(bold(session.title or session.id))
    paper.blank()
    paper.facts(
        (
            ("session", session.id),
            ("project", stored.project or ""),
            ("folder", session.cwd or ""),
            ("branch", session.branch or ""),
            ("kind", session.kind.value if session.kind.value != "main" else ""),
            ("time", " to ".join(part for part in (minute(session.started), minute(stored.ended)) if part)),
            ("turns", f"{stored.turns:,}"),
            ("file", stored.file or ""),
        )
    )
    for item in view.turns:
        _render_turn(paper, item, full=full)
    left = stored.turns - first - len(view.turns)
    if left > 0:
        paper.blank()
        paper.line(dim(f"{count(left, 'more turn')}: --from {first + len(view.turns)}, or --limit 0 for all"))
    if view.memories:
        paper.heading("Learned from it")
        render_table(paper, view.memories, indent=2)


def _render_turn(paper: Paper, item: StoredTurn, *, full: bool) -> None:
    turn = item.turn
    notes = [flag.name.lower() for flag in turn.flags if flag.name and flag is not Flag.COMMAND]
    told = ", ".join([text for text in (minute(turn.time), *notes) if text])
    paper.blank()
    paper.line(Span(speaker_name(turn.speaker, turn.author), _TINTS[turn.speaker]), "  ", dim(told))
    if turn.text:
        is_long = not full and len(turn.text) > _TURN_CHARACTERS
        text = turn.text[:_TURN_CHARACTERS] + " …" if is_long else turn.text
        if turn.trust is Trust.UNTRUSTED:
            paper.framed(text, f"from {speaker_name(turn.speaker, turn.author)}", indent=2)
        else:
            paper.body(text, indent=2)
    calls = turn.tool_calls if full else turn.tool_calls[:_CALLS_SHOWN]
    for call in calls:
        outcome = f" → {call.outcome}" if call.outcome and call.outcome != "ok" else ""
        paper.line(dim(f"{call.name}: {shorten(call.input, 120)}{shorten(outcome, 100)}"), indent=2, hang=2)
    if len(calls) < len(turn.tool_calls):
        paper.line(dim(f"and {count(len(turn.tool_calls) - len(calls), 'more call')}"), indent=2)
