"""What agents did, for people: the changes of a file, the repairs of an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nacre.cli.paper import Paper, Span, bold, dim, joined
from nacre.cli.render.answers import render_beginning, render_turns
from nacre.cli.render.memories import render_hit
from nacre.cli.render.words import count, short_session, speaker_name, when
from nacre.text.passages import one_line, shorten
from nacre.values.session import SessionKind, Speaker, Trust

if TYPE_CHECKING:
    from nacre.values.file_history import FileChange, FileHistory, Repair, Trouble
    from nacre.values.session import Session, ToolCall, Turn
    from nacre.views import FixResult

_INDENT = 4
_WORDS = 280
_CALL = 120
_PATHS_SHOWN = 6


def render_history(paper: Paper, history: FileHistory, *, offset: int, empty: bool) -> None:
    """What was done to a file, the newest first."""
    if empty:
        render_beginning(paper)
        return
    if not history.paths and not history.changes:
        paper.line(bold(f"No agent is known to have touched {history.asked}."))
        return
    paths = history.paths[:_PATHS_SHOWN]
    paper.line(bold(paths[0] if len(paths) == 1 else history.asked))
    told = joined(
        (f"edited {_times(history.edits)}", f"read {_times(history.reads)}", f"in {count(history.sessions, 'session')}")
    )
    paper.line(dim(told))
    if len(history.paths) > 1:
        for path in paths:
            paper.line(dim(path), indent=2)
        if len(history.paths) > len(paths):
            paper.line(dim(f"and {len(history.paths) - len(paths):,} more"), indent=2)
    if not history.changes:
        paper.blank()
        paper.line("It was never changed, only read: --reads shows when.")
    for rank, change in enumerate(history.changes, start=offset + 1):
        paper.blank()
        _render_change(paper, rank, change, names_file=len(history.paths) > 1)
    if history.more:
        paper.blank()
        paper.line(dim(f"more: --offset {offset + len(history.changes)}"))


def render_fix(paper: Paper, result: FixResult, *, empty: bool) -> None:
    """What followed errors like this one."""
    if empty:
        render_beginning(paper)
        return
    for number, trouble in enumerate(result.troubles):
        if number:
            paper.blank()
        _render_trouble(paper, trouble)
    if result.talk:
        paper.line(bold("No command failed with this, but it was talked about:"))
        paper.blank()
        render_turns(paper, result.talk, explain=False)
    if result.lessons:
        paper.heading("Learned before")
        for rank, hit in enumerate(result.lessons, start=1):
            render_hit(paper, rank, hit, explain=False)
    if not (result.troubles or result.talk or result.lessons):
        paper.line(bold("This error was never met in your sessions."))


def _render_change(paper: Paper, rank: int, change: FileChange, *, names_file: bool) -> None:
    paper.line(bold(f"{rank:>2}"), "  ", dim(_place(change.session, change.project, when(change.time))), hang=_INDENT)
    if names_file and change.path:
        paper.line(change.path, indent=_INDENT, hang=2)
    _render_said(paper, change.request, "asked", change.session)
    _render_said(paper, change.words, "said", change.session)
    done = [f"edited {_times(change.edits)}"] if change.edits else []
    done += [f"read {_times(change.reads)}"] if change.reads and not change.edits else []
    done += [f"{change.failed} of it failed"] if change.failed else []
    if done:
        paper.line(dim(joined(done)), indent=_INDENT)
    for call in change.commands[:3]:
        _render_call(paper, call, indent=_INDENT)


def _render_trouble(paper: Paper, trouble: Trouble) -> None:
    paper.framed(trouble.error, "what a tool put out")
    met = joined((f"met {_times(trouble.times)}", f"in {count(trouble.sessions, 'session')}"))
    paper.line(dim(met if trouble.mended else f"{met} · nothing is known to have worked"))
    for repair in trouble.repairs:
        paper.blank()
        _render_repair(paper, repair)


def _render_repair(paper: Paper, repair: Repair) -> None:
    mark = Span("✓", "bold green") if repair.worked else Span("✗", "bold red")
    paper.line(mark, "   ", dim(_place(repair.session, repair.project, when(repair.time))), hang=_INDENT)
    _render_call(paper, repair.failed, indent=_INDENT)
    again = f"failed {_times(repair.attempts)} more" if repair.attempts else ""
    if repair.worked:
        paper.line(dim(joined((again, "then worked:")) if again else "then worked:"), indent=_INDENT)
        for call in repair.steps:
            _render_call(paper, call, indent=_INDENT + 2)
    else:
        paper.line(dim(joined((again, "not seen to work after"))), indent=_INDENT)
    _render_said(paper, repair.words, "said", repair.session)


def _render_said(paper: Paper, turn: Turn | None, verb: str, session: Session) -> None:
    if turn is None or not turn.text:
        return
    who = "the other agent" if verb == "asked" and turn.speaker is Speaker.AGENT else speaker_name(turn.speaker)
    text = shorten(one_line(turn.text), _WORDS)
    if turn.trust is Trust.UNTRUSTED:
        paper.framed(text, f"{who} in {session.tool} {short_session(session.native_id)}", indent=_INDENT)
    else:
        paper.line(Span(f"{who}:", "bold"), " ", text, indent=_INDENT)


def _render_call(paper: Paper, call: ToolCall, *, indent: int) -> None:
    outcome = f" → {shorten(call.outcome, 60)}" if call.failed and call.outcome else ""
    paper.line(dim(f"{call.name}: {shorten(call.input, _CALL)}{outcome}"), indent=indent, hang=2)


def _place(session: Session, project: str | None, time: str) -> str:
    kind = "" if session.kind is SessionKind.MAIN else session.kind.value
    name = f"{session.tool} {short_session(session.native_id)}"
    return joined((name, kind, project, session.branch, session.model, time))


def _times(number: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(number, f"{number:,} times")
