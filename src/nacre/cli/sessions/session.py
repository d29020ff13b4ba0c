"""``nacre sessions show`` and ``tail``: one session and its turns."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre.cli import completions
from nacre.cli.command import TEXT, command
from nacre.cli.formats import Record, count, duration, minute, short_session, speaker_name, stamp, tokens_told
from nacre.cli.memories.memory import memory_record, render_table
from nacre.cli.operations import ask, place_of
from nacre.cli.paper import Paper, Span, bold, dim, joined
from nacre.cli.request_options import option
from nacre.cli.run import Run
from nacre.sessions import follow as sessions_follow
from nacre.text import passages
from nacre.values import session as values_session

if TYPE_CHECKING:
    from nacre.values.session import Session, StoredSession, StoredTurn, Tokens, ToolCall
    from nacre.views import SessionLine, SessionView


_TURNS_SHOWN = 40
REFERENCE = click.argument(
    "reference", metavar="[ID]", type=TEXT, required=False, shell_complete=completions.completer(completions.sessions)
)  # fmt: skip
_TINTS = {"owner": "bold green", "agent": "bold cyan", "tool": "dim", "system": "dim"}
_TURN_CHARACTERS = 2000
_CALLS_SHOWN = 8
_SENT_SHOWN = 12


@command(
    "show",
    examples=[
        "nacre sessions show 7f3a1c2d",
        "nacre sessions show claude-code:7f3a1c2d --from 40 --limit 20",
        "nacre sessions show 7f3a1c2d --full --limit 0",
    ],
)
@REFERENCE
@option("session", "first", "--from", show_default=False, help="The first turn to show, counted from 0.")
@option(
    "session", "limit", "--limit", "-n", default=None, show_default=False,
    help=f"Turns at most; 0 for all [default: {_TURNS_SHOWN}; all with --json].",
)  # fmt: skip
@click.option("--full", is_flag=True, help="Do not shorten long turns.")
@click.pass_obj
def show(run: Run, reference: str | None, first: int, limit: int | None, full: bool) -> None:
    """Show one session turn by turn, and what was learned from it.

    ID is the session's id at its tool, or the beginning of it; without one, the last session of this folder.
    """
    limit = (0 if run.as_json else _TURNS_SHOWN) if limit is None else limit
    view = ask_session(run, reference, first=first, limit=limit or None)
    run.answer(session_view_record(view, first), lambda paper: _render_session(paper, view, first=first, full=full))


def ask_session(
    run: Run, reference: str | None, *, limit: int | None, first: int = 0, at_end: bool = False
) -> SessionView:
    """A session by its id or the beginning of it, else the last one of this folder; without a limit all its turns."""
    here = str(Path.cwd())
    view: SessionView = ask(run, "session", reference=reference, first=first, limit=limit, at_end=at_end, folder=here)
    tell_which(run, reference, view.session)
    return view


def tell_which(run: Run, reference: str | None, session: StoredSession) -> None:
    """Where the last session of this folder was wanted, and none of it is known, tell so before another is shown."""
    if reference is None and (session.project is None or place_of(run, None).project != session.project):
        click.echo("No session in this folder is known: this is the last one of all.", err=True)


@command(
    "tail",
    examples=["nacre sessions tail", "nacre sessions tail 7f3a1c2d -n 3", "nacre sessions tail --follow"],
)
@REFERENCE
@option("session", "limit", "--limit", "-n", type=click.IntRange(1), default=6, help="Turns at most.")
@click.option("--follow", "-f", is_flag=True, help="Go on as the session does, until Ctrl-C.")
@click.option("--full", is_flag=True, help="Do not shorten long turns.")
@click.pass_obj
def tail(run: Run, reference: str | None, limit: int, follow: bool, full: bool) -> None:
    """Show the end of a session.

    ID is the session's id at its tool, or the beginning of it; without one, the last session of this folder. With
    --follow its transcript is read again whenever it grows.
    """
    if follow and run.as_json:
        raise click.UsageError("--follow does not end, and --json is one answer: leave one of them out")
    if follow:
        _follow(run, reference, limit, full=full)
        return
    view = ask_session(run, reference, limit=limit, at_end=True)
    first = view.turns[0].seq if view.turns else 0

    def render(paper: Paper) -> None:
        render_facts(paper, view)
        _render_turns(paper, view.turns, full=full)

    run.answer(session_view_record(view, first), render)


def _follow(run: Run, reference: str | None, limit: int, *, full: bool) -> None:
    try:
        for turns in sessions_follow.follow_session(run.home, reference, limit=limit):
            paper = run.paper()
            _render_turns(paper, turns, full=full)
            click.echo(f"\n{paper.text()}", nl=False)
            sys.stdout.flush()
    except KeyboardInterrupt:
        click.echo(err=True)


def _session_record(stored: StoredSession) -> Record:
    """One session."""
    session = stored.session
    return {
        "session_id": session.native_id,
        "session": session.id,
        "tool": session.tool,
        "project": stored.project,
        "title": session.title,
        "kind": session.kind.value,
        "model": session.model,
        "tool_version": session.tool_version,
        "parent": session.parent,
        "cwd": session.cwd,
        "branch": session.branch,
        "started": stamp(session.started),
        "ended": stamp(stored.ended),
        "turns": stored.turns,
        "tokens": session.tokens and _tokens_record(session.tokens),
        "file": stored.file,
    }


def session_line_record(line: SessionLine) -> Record:
    """One session of a list."""
    return {**_session_record(line.session), "active_seconds": _seconds(line.active), "opening": line.opening}


def session_facts_record(view: SessionView) -> Record:
    """A session with what belongs to it besides its turns."""
    return {
        **_session_record(view.session),
        "active_seconds": _seconds(view.active),
        "opening": view.opening,
        "sent_by": view.parent and view.parent.session.id,
        "sent_out": [session_line_record(child) for child in view.children],
    }


def _tokens_record(tokens: Tokens) -> Record:
    return {"input": tokens.input, "cached": tokens.cached, "output": tokens.output}


def _seconds(span: timedelta | None) -> float | None:
    return None if span is None else span.total_seconds()


def session_view_record(view: SessionView, first: int) -> Record:
    """One session with turns; ``turns`` are the turns here, ``total`` counts all."""
    record = session_facts_record(view)
    return {
        **record,
        "total": record["turns"],
        "first": first,
        "turns": [turn_record(stored) for stored in view.turns],
        "memories": [memory_record(memory) for memory in view.memories],
    }


def turn_record(stored: StoredTurn) -> Record:
    """One turn of a session."""
    turn = stored.turn
    return {
        "turn_id": turn.id,
        "seq": stored.seq,
        "speaker": turn.speaker.value,
        "author": turn.author,
        "time": stamp(turn.time),
        "text": turn.text,
        "trust": turn.trust.value,
        "flags": [flag.name.lower() for flag in turn.flags if flag.name],
        "tool_calls": [call_record(call) for call in turn.tool_calls],
    }


def call_record(call: ToolCall) -> Record:
    """One tool call of an agent."""
    return {
        "name": call.name,
        "input": call.input,
        "outcome": call.outcome,
        "action": call.action.value,
        "paths": list(call.paths),
        "error": call.error,
        "made": list(call.made),
    }


def session_title(line: SessionLine) -> tuple[Span | str, ...]:
    """A session's kind, and its title or its first request."""
    session = line.session.session
    kind = dim(f"{session.kind.value}: ") if session.kind is not values_session.SessionKind.MAIN else ""
    return kind, session.title or dim(line.opening or "nothing was said")


def render_facts(paper: Paper, view: SessionView) -> None:
    """A session's title and what is known of it."""
    stored = view.session
    session = stored.session
    paper.line(bold(passages.one_line(session.title or view.opening or session.id)))
    paper.blank()
    paper.facts(
        (
            ("session", session.id),
            ("project", stored.project or ""),
            ("folder", session.cwd or ""),
            ("branch", session.branch or ""),
            ("kind", session.kind.value if session.kind is not values_session.SessionKind.MAIN else ""),
            ("sent by", _reference(view.parent) if view.parent else session.parent or ""),
            ("model", _model(session)),
            ("time", _time(view)),
            ("turns", f"{stored.turns:,}"),
            ("tokens", tokens_told(session.tokens) if session.tokens else ""),
            ("file", stored.file or ""),
        )
    )


def _render_session(paper: Paper, view: SessionView, *, first: int, full: bool) -> None:
    """A session's facts, its turns, the sub-agents it sent out, and what was learned from it."""
    render_facts(paper, view)
    _render_turns(paper, view.turns, full=full)
    left = view.session.turns - first - len(view.turns)
    if left > 0:
        paper.blank()
        paper.line(dim(f"{count(left, 'more turn')}: --from {first + len(view.turns)}, or --limit 0 for all"))
    render_outcome(paper, view)


def render_outcome(paper: Paper, view: SessionView) -> None:
    """What came of a session: the sub-agents it sent out, and what was learned from it."""
    if view.children:
        _render_sent(paper, view)
    if view.memories:
        paper.heading("Learned from it")
        render_table(paper, view.memories, indent=2)


def _render_sent(paper: Paper, view: SessionView) -> None:
    """The sessions that it sent out: ``nacre sessions show`` takes their ids."""
    paper.heading("Sent out")
    shown = view.children[:_SENT_SHOWN]
    paper.table(
        [
            (
                dim(short_session(line.session.session.native_id)), line.session.session.kind.value,
                f"{line.session.turns:>4}", duration(line.active) if line.active else "", session_title(line)[1],
            )
            for line in shown
        ],
        drop=(3, 2), indent=2,
    )  # fmt: skip
    if len(shown) < len(view.children):
        paper.line(dim(f"and {len(view.children) - len(shown):,} more"), indent=2)


def _render_turns(paper: Paper, turns: Sequence[StoredTurn], *, full: bool) -> None:
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
    notes = [flag.name.lower() for flag in turn.flags if flag.name and flag is not values_session.Flag.COMMAND]
    told = ", ".join([text for text in (minute(turn.time), *notes) if text])
    paper.blank()
    paper.line(Span(speaker_name(turn.speaker, turn.author), _TINTS[turn.speaker]), "  ", dim(told))
    if turn.text:
        is_long = not full and len(turn.text) > _TURN_CHARACTERS
        text = turn.text[:_TURN_CHARACTERS] + " …" if is_long else turn.text
        if turn.trust is values_session.Trust.UNTRUSTED:
            paper.framed(text, f"from {speaker_name(turn.speaker, turn.author)}", indent=2)
        else:
            paper.body(text, indent=2)
    calls = turn.tool_calls if full else turn.tool_calls[:_CALLS_SHOWN]
    for call in calls:
        outcome = f" → {call.outcome}" if call.outcome and call.outcome != "ok" else ""
        paper.line(
            dim(f"{call.name}: {passages.shorten(call.input, 120)}{passages.shorten(outcome, 100)}"), indent=2, hang=2
        )
    if len(calls) < len(turn.tool_calls):
        paper.line(dim(f"and {count(len(turn.tool_calls) - len(calls), 'more call')}"), indent=2)
