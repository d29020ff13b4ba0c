"""``nacre sessions`` and ``nacre resume``."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nacre.base.text import one_line, shorten
from nacre.cli import hits
from nacre.cli.command import TEXT, Cell, Group, Paper, Run, Span, command, dim, joined
from nacre.cli.options import (
    EVERYTHING,
    OFFSET,
    amount,
    argument,
    ask,
    ask_pages,
    count,
    day,
    describe_tokens,
    duration,
    flag,
    limit_option,
    minute,
    option,
    perform,
    place_of,
    short_session,
    size,
    speaker_name,
)
from nacre.data import export
from nacre.errors import UnavailableError
from nacre.home import archive, views
from nacre.values.memory import SessionFilter
from nacre.values.session import (
    Ending,
    Flag,
    SessionKind,
    SessionOutcome,
    Speaker,
    StoredSession,
    StoredTurn,
    Summary,
    Trust,
)

if TYPE_CHECKING:
    from nacre.home.views import Resumption, SessionLine, SessionReport, SessionView


_TURNS_SHOWN = 40
_TAIL_SHOWN = 6
_CHILDREN_SHOWN = 12
REFERENCE = click.argument("reference", metavar="[ID]", type=TEXT, required=False)
_TINTS = {"owner": "bold green", "agent": "bold cyan", "tool": "dim", "system": "dim"}
ENDINGS = {
    Ending.DONE: Span("done", "green"),
    Ending.FAILED: Span("failed", "red"),
    Ending.STOPPED: Span("stopped", "yellow"),
}
_TURN_CHARACTERS = 2000


@command(
    "show",
    examples=[
        "nacre sessions show 7f3a1c2d",
        "nacre sessions show claude-code:7f3a1c2d --from 40 --limit 20",
        "nacre sessions show 7f3a1c2d --full --limit 0",
    ],
)
@REFERENCE
@option("session", "first", "--from", show_default=False)
@option(
    "session",
    "limit",
    "--limit",
    "-n",
    default=None,
    show_default=False,
    help=f"Maximum number of turns; 0 for all [default: {_TURNS_SHOWN}, {_TAIL_SHOWN} at the end; all with --json].",
)
@flag("--tail", "Show the last turns.")
@flag("--full", "Do not shorten long turns.")
def show(
    run: Run, reference: str | None, first: int, limit: int | None, tail: bool, full: bool
) -> None:
    """Show a session's turns and the memories learned from it.

    ID is the tool's session id or its beginning [default: the last session of this folder], with #40 to start at turn
    40.
    """
    if tail:
        end = ask_session(run, reference, limit=limit or _TAIL_SHOWN, at_end=True)
        run.present(end, _render_end, full=full)
    else:
        limit = (0 if run.as_json else _TURNS_SHOWN) if limit is None else limit
        view = ask_session(run, reference, first=first, limit=limit or None)
        run.present(view, _render_session, full=full)


def ask_session(
    run: Run, reference: str | None, *, limit: int | None, first: int = 0, at_end: bool = False
) -> SessionView:
    """Return the session whose id starts with ``reference``, by default this folder's last one.

    If ``limit`` is ``None``, all turns are included.
    """
    place = {"reference": reference, "folder": str(Path.cwd())}
    page = {"first": first, "limit": limit, "at_end": at_end}
    view = ask(run, views.SessionView, "session", **place, **page)
    warn_of_default(run, reference, view.session)
    return view


def warn_of_default(run: Run, reference: str | None, session: StoredSession) -> None:
    """Warn that the default session is from another project if this folder has no session."""
    if reference is None and (
        session.project is None or place_of(run, None).project != session.project
    ):
        click.echo(
            "No known session in this folder; showing the last session of any folder.", err=True
        )


def session_title(line: SessionLine) -> tuple[Span | str, ...]:
    """Return a session's kind (unless ``main``), followed by its title or first request."""
    session = line.session.session
    kind = dim(f"{session.kind.value}: ") if session.kind is not SessionKind.MAIN else ""
    return kind, session.title or dim(line.opening or "no messages")


def render_facts(paper: Paper, view: SessionView) -> None:
    """Print a session's title and properties."""
    stored, parent = view.session, view.parent
    session = stored.session
    version = f"{session.tool} {session.tool_version}" if session.tool_version else ""
    span = " to ".join(filter(None, (minute(session.started), minute(stored.ended))))
    paper.title(one_line(session.title or view.opening or session.id))
    paper.blank()
    paper.facts(
        (
            ("session", session.id),
            ("project", stored.project),
            ("folder", session.cwd),
            ("branch", session.branch),
            ("kind", session.kind.value if session.kind is not SessionKind.MAIN else ""),
            (
                "started by",
                joined((short_session(parent.session.native_id), parent.session.title))
                if parent
                else session.parent,
            ),
            ("model", joined((session.model, version))),
            (
                "time",
                joined(
                    (span, f"{duration(view.active.total_seconds())} active" if view.active else "")
                ),
            ),
            ("turns", f"{stored.turns:,}"),
            ("tokens", describe_tokens(session.tokens) if session.tokens else ""),
            ("file", stored.file),
        ),
        indent=0,
    )


def _render_end(paper: Paper, view: SessionView, *, full: bool) -> None:
    render_facts(paper, view)
    for item in view.turns:
        _render_turn(paper, item, full=full)


def _render_session(paper: Paper, view: SessionView, *, full: bool) -> None:
    _render_end(paper, view, full=full)
    following = view.turns[-1].seq + 1 if view.turns else view.session.turns
    remaining = view.session.turns - following
    if remaining > 0:
        paper.footer(f"{count(remaining, 'more turn')}: --from {following}, or --limit 0 for all")
    render_outcome(paper, view)


def render_outcome(paper: Paper, view: SessionView) -> None:
    """Print a session's sub-agents and the memories learned from it."""
    if view.children:
        paper.heading("Sub-agents")
        rows = [
            (
                dim(short_session(line.session.session.native_id)),
                line.session.session.kind.value,
                f"{line.session.turns:>4}",
                duration(line.active.total_seconds()) if line.active else "",
                session_title(line)[1],
            )
            for line in view.children[:_CHILDREN_SHOWN]
        ]
        paper.table(rows, drop=(3, 2), indent=2)
        paper.more(len(view.children) - _CHILDREN_SHOWN)
    if view.memories:
        paper.heading("Learned from it")
        hits.render_table(paper, view.memories, indent=2)


def _render_turn(paper: Paper, item: StoredTurn, *, full: bool) -> None:
    turn = item.turn
    notes = [flag.name.lower() for flag in turn.flags if flag.name and flag is not Flag.COMMAND]
    details = ", ".join([text for text in (minute(turn.time), *notes) if text])
    speaker = speaker_name(turn.speaker, turn.author)
    paper.blank()
    paper.line(Span(speaker, _TINTS[turn.speaker]), "  ", dim(details))
    if turn.text:
        is_long = not full and len(turn.text) > _TURN_CHARACTERS
        text = turn.text[:_TURN_CHARACTERS] + " …" if is_long else turn.text
        if turn.trust is Trust.UNTRUSTED:
            paper.framed(text, f"from {speaker}", indent=2)
        else:
            paper.body(text, indent=2)
    calls = turn.tool_calls if full else turn.tool_calls[:8]
    for call in calls:
        outcome = f" → {call.outcome}" if call.outcome and call.outcome != "ok" else ""
        paper.note(f"{call.name}: {shorten(call.input, 120)}{shorten(outcome, 100)}", indent=2)
    if len(calls) < len(turn.tool_calls):
        paper.note(f"and {count(len(turn.tool_calls) - len(calls), 'more call')}", indent=2)


# ----------------------------------------------------------------------------
# ``nacre sessions``, and ``nacre sessions list``.


_COLUMNS = (
    "session",
    "last",
    "tool",
    "project",
    "branch",
    "model",
    "   active",
    "turns",
    "tokens",
    "title",
)


_PLACES = {
    "show": "sessions:show",
    "extract": "learn:extract",
    "summary": "sessions:summary",
    "export": "sessions:export_session",
    "restore": "sessions:restore",
}


@click.group(
    "sessions",
    cls=Group,
    places=_PLACES,
    examples=[
        'nacre search "migration failed"',
        "nacre sessions list --project .",
        "nacre sessions summary 7f3a1c2d",
    ],
)
def sessions() -> None:
    """List and read your agents' sessions."""


@sessions.command(
    "list",
    examples=[
        "nacre sessions list",
        "nacre sessions list --tool codex --since 2w",
        "nacre sessions list --project . --branch main retries",
    ],
)
@argument(SessionFilter, "words", nargs=-1)
@limit_option("sessions")
@OFFSET
@option(SessionFilter, "tool", "project", "since", "until", "branch")
@option(SessionFilter, "model", help="Only sessions whose model name contains this, e.g. opus.")
@option(SessionFilter, "kind", "subagents")
@EVERYTHING
def list_sessions(
    run: Run, words: tuple[str, ...], limit: int, offset: int, everything: bool, **filters: Any
) -> None:
    """List sessions, newest first.

    WORDS select sessions by title, or by your first message if they have no title.
    """
    filters["words"] = " ".join(words) or None
    pages, lines = ask_pages(
        run,
        views.SessionPage,
        "sessions",
        "lines",
        filter=filters,
        limit=limit,
        offset=offset,
        everything=everything,
    )

    page = replace(pages[-1], lines=lines)
    hits.present(run, page, lines, _render_sessions, offset=offset)


def _render_sessions(paper: Paper, page: views.SessionPage, *, offset: int) -> None:
    if not page.lines:
        paper.line("No session matches. Try fewer filters.")
        return
    rows = [_row(line) for line in page.lines]
    paper.table(rows, header=_COLUMNS, drop=(5, 8, 4, 6, 7, 2, 1, 3), least=30)
    if page.more:
        paper.footer(f"more: --offset {offset + len(page.lines)}")


def _row(line: SessionLine) -> tuple[Cell, ...]:
    stored, session = line.session, line.session.session
    return (
        dim(short_session(session.native_id)),
        dim(day(stored.ended or session.started)),
        session.tool,
        shorten(stored.project or "", 24),
        dim(shorten(session.branch or "", 20)),
        dim(shorten(session.model or "", 20)),
        f"{duration(line.active.total_seconds()):>9}" if line.active else "",
        f"{stored.turns:>5}",
        dim(f"{amount(session.tokens.total):>6}") if session.tokens else "",
        session_title(line),
    )


# ----------------------------------------------------------------------------
# ``nacre sessions summary``.


_FILES_SHOWN = 12
_ERRORS_SHOWN = 3
_OPEN_END_LABELS = {
    "request": "unfinished",
    "question": "asked",
    "todo": "to do",
    "next step": "left",
    "failing": "fails",
}


@command(
    "summary",
    examples=[
        "nacre sessions summary",
        "nacre sessions summary 7f3a1c2d",
        "nacre sessions summary claude-code:7f3a1c2d --json",
    ],
)
@REFERENCE
def summary(run: Run, reference: str | None) -> None:
    """Summarise a session: requests, outcome, open points and actions.

    ID is the tool's session id or its beginning [default: the last session of this folder]. No model is used: the
    summary quotes you and the agent, without untrusted text.
    """
    report = ask(
        run, views.SessionReport, "session-summary", reference=reference, folder=str(Path.cwd())
    )
    warn_of_default(run, reference, report.view.session)
    run.present(report, _render_summary)


def _render_summary(paper: Paper, report: SessionReport) -> None:
    summary = report.summary
    render_facts(paper, report.view)
    if summary.topics:
        paper.heading("Asked for")
        for topic in summary.topics:
            speaker = "" if topic.speaker is Speaker.OWNER else f"{speaker_name(topic.speaker)}: "
            paper.line("· ", dim(speaker), topic.text, indent=2)
    paper.heading("Ended")
    _render_outcome(paper, summary.outcome)
    if summary.open_ends:
        paper.heading("Left open")
        for end in summary.open_ends:
            paper.line("· ", dim(f"{_OPEN_END_LABELS[end.kind]}: "), end.text, indent=2)
    _render_work(paper, summary)
    unresolved = [error for error in summary.errors if not error.mended]
    if unresolved:
        paper.heading("Unresolved errors")
    for error in unresolved[:_ERRORS_SHOWN]:
        paper.note(f"{error.call}{_times(error.times)}", indent=2)
        paper.framed(error.text, "tool output", indent=4)
    paper.more(len(unresolved) - _ERRORS_SHOWN, " with --json")
    render_outcome(paper, report.view)


def _render_outcome(paper: Paper, outcome: SessionOutcome) -> None:
    reason = outcome.reason
    for old, new in (("the owner is", "you are"), ("the owner's", "your"), ("the owner", "you")):
        reason = reason.replace(old, new)
    ending = ENDINGS.get(outcome.ending, dim(outcome.ending.value))
    paper.line(ending, dim(f"  {reason}"), indent=2)
    if outcome.words and outcome.speaker:
        paper.title(f"{speaker_name(outcome.speaker)}:", " ", outcome.words, indent=2)


def _render_work(paper: Paper, summary: Summary) -> None:
    files = [f"{file.path}{_times(file.edits)}" for file in summary.modified]
    more = len(files) - _FILES_SHOWN
    changed = ", ".join(files[:_FILES_SHOWN]) + (f" and {more:,} more" if more > 0 else "")
    read = sum(1 for file in summary.files if not file.edits)
    only_read = f"{count(read, 'file')} only read" if read else ""
    resolved = sum(1 for error in summary.errors if error.mended)
    if not any((changed, read, summary.commits, summary.pull_requests)):
        return
    paper.heading("Done")
    paper.facts(
        (
            ("changed", joined((changed, only_read))),
            ("commits", ", ".join(summary.commits)),
            ("requests", ", ".join(summary.pull_requests)),
            ("errors", f"{resolved:,} resolved" if resolved else ""),
        )
    )


def _times(number: int) -> str:
    return f" ×{number:,}" if number > 1 else ""


# ----------------------------------------------------------------------------
# ``nacre resume`` replaces this process with the session's tool.


@command(
    "resume",
    examples=[
        "nacre resume",
        "nacre resume 7f3a1c2d",
        "nacre resume rounding of the ledger --print",
    ],
)
@argument("resume", "what", metavar="[ID|WORDS]...", nargs=-1)
@flag("--print", "Print the command without running it.", "only_print")
def resume(run: Run, what: tuple[str, ...], only_print: bool) -> None:
    """Continue a session in its own tool.

    ID is the session's id or its beginning; WORDS are from its title or text. The default is the last session of this
    folder's project. The tool starts in the session's folder: claude --resume, codex resume, gemini --resume, copilot
    --resume, cursor-agent --resume or opencode --session.
    """
    resumption = ask(
        run, views.Resumption, "resume", what=" ".join(what) or None, folder=str(Path.cwd())
    )
    if run.as_json or only_print:
        run.answer(resumption, Paper.verbatim, _shell_command(resumption))
        return
    if not (run.is_interactive and sys.stdout.isatty()):
        raise click.UsageError("the tool needs a terminal; --print only prints its command")
    program = shutil.which(resumption.command[0])
    if program is None:
        raise UnavailableError(
            f"{resumption.command[0]} is not on the PATH",
            hint=f"run where it is installed: {_shell_command(resumption)}",
        )
    run.show(
        Paper.line,
        *session_title(resumption.line),
        dim(f"  {shlex.join(resumption.command)}"),
        hang=2,
    )
    run.close()
    if resumption.folder:
        os.chdir(resumption.folder)
    if run.umask is not None:
        os.umask(run.umask)
    os.execv(program, resumption.command)  # noqa: S606 - the adapter's command; the id cannot be an option


def _shell_command(resumption: Resumption) -> str:
    command = shlex.join(resumption.command)
    return f"cd {shlex.quote(resumption.folder)} && {command}" if resumption.folder else command


# ----------------------------------------------------------------------------
# ``nacre sessions export``.


@command(
    "export",
    examples=["nacre sessions export > session.md", "nacre sessions export 7f3a1c2d --json"],
)
@REFERENCE
def export_session(run: Run, reference: str | None) -> None:
    """Print a session as Markdown for sharing.

    ID is the tool's session id or its beginning [default: the last session of this folder]. Secrets are removed again.
    Speakers and untrusted text stay marked.
    """
    view = ask_session(run, reference, limit=None)
    turns = [item.turn for item in view.turns]
    lines = export.session_lines(view.session, turns, title=view.opening)
    run.answer(view, Paper.verbatim, "\n".join(lines))


# ----------------------------------------------------------------------------
# ``nacre sessions restore``.


@command(
    "restore",
    examples=[
        "nacre sessions restore 7f3a1c2d",
        "nacre sessions restore claude-code:7f3a1c2d --to ~/old-sessions",
    ],
)
@argument("session-restore", "reference", metavar="ID")
@option(
    "session-restore",
    "folder",
    "--to",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write it into this folder.",
)
def restore(run: Run, reference: str, folder: Path | None) -> None:
    """Restore a session's transcript from the archive.

    Without --to, the transcript is restored to its original place, where the agent finds it. The transcript contains no
    secrets or images.
    """
    run.present(perform(run, archive.restore, reference=reference, folder=folder), _render_restored)


def _render_restored(paper: Paper, restored: archive.Restored) -> None:
    paper.title("Wrote", f" {restored.path} ", dim(f"({size(restored.size)})"))
    if restored.is_whole:
        paper.note("Secrets, images and other encoded data are not included.", indent=2)
    else:
        paper.note(
            "Only its turns were archived, as JSON lines; its tool cannot read them.", indent=2
        )
