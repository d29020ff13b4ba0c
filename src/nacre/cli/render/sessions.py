"""Sessions for people: a table, and one as a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nacre.cli.paper import Cell, Paper, Span, bold, dim, joined
from nacre.cli.render.memories import render_table
from nacre.cli.render.words import amount, count, day, duration, minute, short_session, speaker_name, tokens_told
from nacre.text.passages import one_line, shorten
from nacre.values.session import Flag, Session, SessionKind, Speaker, Trust

if TYPE_CHECKING:
    from nacre.storage.sessions import StoredSession, StoredTurn
    from nacre.views import SessionLine, SessionView

_TINTS = {Speaker.OWNER: "bold green", Speaker.AGENT: "bold cyan", Speaker.TOOL: "dim", Speaker.SYSTEM: "dim"}
_TURN_CHARACTERS = 2000
_CALLS_SHOWN = 8
_COLUMNS = ("session", "last", "tool", "project", "branch", "model", "  at work", "turns", "tokens", "")
_LEAST_TITLE = 44
_BRANCH = 20
_MODEL = 20
_SENT_SHOWN = 12


def render_sessions(paper: Paper, lines: Sequence[SessionLine], *, has_more: bool, offset: int) -> None:
    """One line a session: id, day, tool, project, branch, model, how long, turns, tokens, title."""
    rows = [_row(line) for line in lines]
    names = [dim(name) if any(row[at] for row in rows) else "" for at, name in enumerate(_COLUMNS)]
    paper.table([names, *rows], drop=(5, 8, 4, 6, 1, 7, 3), least=_LEAST_TITLE)
    if has_more:
        paper.blank()
        paper.line(dim(f"more: --offset {offset + len(lines)}"))


def _row(line: SessionLine) -> tuple[Cell, ...]:
    stored, session = line.session, line.session.session
    return (
        dim(short_session(session.native_id)), dim(day(stored.ended or session.started)), session.tool,
        stored.project or "", dim(shorten(session.branch or "", _BRANCH)), dim(shorten(session.model or "", _MODEL)),
        f"{duration(line.active):>9}" if line.active else "", f"{stored.turns:>5}",
        dim(f"{amount(session.tokens.total):>6}") if session.tokens else "", _title(line),
    )  # fmt: skip


def _title(line: SessionLine) -> tuple[Span | str, ...]:
    session = line.session.session
    kind = dim(f"{session.kind.value}: ") if session.kind is not SessionKind.MAIN else ""
    return kind, session.title or dim(line.opening or "nothing was said")


def render_facts(paper: Paper, view: SessionView) -> None:
    """A session's title and what is known of it."""
    stored = view.session
    session = stored.session
    paper.line(bold(one_line(session.title or view.opening or session.id)))
    paper.blank()
    paper.facts(
        (
            ("session", session.id),
            ("project", stored.project or ""),
            ("folder", session.cwd or ""),
            ("branch", session.branch or ""),
            ("kind", session.kind.value if session.kind is not SessionKind.MAIN else ""),
            ("sent by", _reference(view.parent) if view.parent else session.parent or ""),
            ("model", _model(session)),
            ("time", _time(view)),
            ("turns", f"{stored.turns:,}"),
            ("tokens", tokens_told(session.tokens) if session.tokens else ""),
            ("file", stored.file or ""),
        )
    )


def render_session(paper: Paper, view: SessionView, *, first: int, full: bool) -> None:
    """A session's facts, its turns, the sub-agents it sent out, and what was learned from it."""
    render_facts(paper, view)
    render_turns(paper, view.turns, full=full)
    left = view.session.turns - first - len(view.turns)
    if left > 0:
        paper.blank()
        paper.line(dim(f"{count(left, 'more turn')}: --from {first + len(view.turns)}, or --limit 0 for all"))
    render_sent(paper, view)
    if view.memories:
        paper.heading("Learned from it")
        render_table(paper, view.memories, indent=2)


def render_sent(paper: Paper, view: SessionView) -> None:
    """The sessions that it sent out: ``nacre sessions show`` takes their ids."""
    if not view.children:
        return
    paper.heading("Sent out")
    shown = view.children[:_SENT_SHOWN]
    paper.table(
        [
            (
                dim(short_session(line.session.session.native_id)), line.session.session.kind.value,
                f"{line.session.turns:>4}", duration(line.active) if line.active else "", _title(line)[1],
            )
            for line in shown
        ],
        drop=(3, 2), indent=2,
    )  # fmt: skip
    if len(shown) < len(view.children):
        paper.line(dim(f"and {len(view.children) - len(shown):,} more"), indent=2)


def render_turns(paper: Paper, turns: Sequence[StoredTurn], *, full: bool) -> None:
    """Turns as a conversation."""
    for item in turns:
        _render_turn(paper, item, full=full)


def _reference(stored: StoredSession) -> str:
    return joined((short_session(stored.session.native_id), stored.session.title or ""))


def _model(session: Session) -> str:
    version = f"{session.tool} {session.tool_version}" if session.tool_version else ""
    return joined((session.model or "", version))


def _time(view: SessionView) -> str:
    stored = view.session
    span = " to ".join(part for part in (minute(stored.session.started), minute(stored.ended)) if part)
    return joined((span, f"{duration(view.active)} at work" if view.active else ""))


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
