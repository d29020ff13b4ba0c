"""``nacre did``, ``fix``, ``search`` and ``gateway search``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from nacre.base import text as passages
from nacre.cli import hits
from nacre.cli.command import TEXT, Paper, Run, Span, bold, command, dim, joined
from nacre.cli.operations import ask, is_empty, perform
from nacre.cli.options import (
    LANES,
    OFFSET,
    argument,
    count,
    flag,
    limit_option,
    option,
    read_content,
    short_session,
    speaker_name,
    when,
    with_turn_filter,
)
from nacre.home import views
from nacre.recall.requests import ASPECTS, ROLES
from nacre.sessions import find
from nacre.values import recall
from nacre.values import session as values_session
from nacre.values.memory import DeedFilter

if TYPE_CHECKING:
    from nacre.sessions.find import Matches


_INDENT = 4
_TURN_CHARACTERS = 280
_CALL_CHARACTERS = 120
_PATHS_SHOWN = 6
_FILTER = {"project", "tool", "since", "until"}


@command(
    "did",
    examples=[
        "nacre did src/billing/retry.py",
        "nacre did docs --since 2w --project .",
        "nacre did Makefile --reads --commands --json",
    ],
)
@argument("did", "path")
@limit_option("did")
@OFFSET
@option("did", "reads", help="Also show turns that only read the file.")
@option("did", "commands", help="Also show commands that mention the file.")
@option(DeedFilter, "tool", help="Only sessions with this tool, e.g. claude-code.")
@option(DeedFilter, "project", help="Only this project; . means this folder's project.")
@option(DeedFilter, "since", help="From this day on: 2026-11-20, 3d, 2w, yesterday, march.")
@option(DeedFilter, "until")
def did(run: Run, path: str, **asked: Any) -> None:
    """Show who changed a file, when and why.

    PATH is a file or folder. A relative path such as src/app.py matches below any folder where agents worked.
    """
    history = ask(run, values_session.FileHistory, "did", path=path, **_with_filter(asked))
    empty = not history.changes and is_empty(run)
    run.present(history, _render_history, offset=asked["offset"], empty=empty)


def _with_filter(asked: dict[str, Any]) -> dict[str, Any]:
    """Group the filter options in the field ``wanted``."""
    return asked | {"wanted": {name: asked.pop(name) for name in _FILTER & asked.keys()}}


@command(
    "fix",
    examples=[
        "nacre fix \"ModuleNotFoundError: No module named 'yaml'\"",
        "npm run build 2>&1 | nacre fix -",
        'nacre fix "connection refused" --project . --since 2w',
    ],
)
@argument("fix", "error", nargs=-1, required=False)
@limit_option("fix")
@option(DeedFilter, "tool", help="Only sessions with this tool, e.g. claude-code.")
@option(DeedFilter, "project", help="Only this project; . means this folder's project.")
@option(DeedFilter, "since", help="From this day on: 2026-11-20, 3d, 2w, yesterday, march.")
def fix(run: Run, error: tuple[str, ...], **asked: Any) -> None:
    """Show earlier attempts to fix an error, and which worked.

    ERROR is a line or a whole trace; - reads standard input.
    """
    words = read_content(" ".join(error))
    result = ask(run, views.FixResult, "fix", error=words, **_with_filter(asked))
    empty = not (result.troubles or result.lessons or result.talk) and is_empty(run)
    run.present(result, _render_fix, empty=empty)


def _render_history(
    paper: Paper, history: values_session.FileHistory, *, offset: int, empty: bool
) -> None:
    if empty:
        hits.render_beginning(paper)
        return
    if not history.paths and not history.changes:
        paper.line(bold(f"No recorded session touched {history.asked}."))
        return
    paths = history.paths[:_PATHS_SHOWN]
    paper.line(bold(paths[0] if len(paths) == 1 else history.asked))
    counts = joined(
        (
            f"edited {_turns(history.edits)}",
            f"read {_turns(history.reads)}",
            f"{count(history.sessions, 'session')}",
        )
    )
    paper.note(counts)
    if len(history.paths) > 1:
        for path in paths:
            paper.note(path, indent=2)
        paper.more(len(history.paths) - len(paths))
    if not history.changes:
        paper.blank()
        paper.line("It was only read, never changed; --reads shows when.")
    for rank, change in enumerate(history.changes, start=offset + 1):
        paper.blank()
        _render_change(paper, rank, change, names_file=len(history.paths) > 1)
    if history.more:
        paper.blank()
        paper.note(f"more: --offset {offset + len(history.changes)}")


def _render_fix(paper: Paper, result: views.FixResult, *, empty: bool) -> None:
    if empty:
        hits.render_beginning(paper)
        return
    for number, trouble in enumerate(result.troubles):
        if number:
            paper.blank()
        _render_trouble(paper, trouble)
    if result.talk:
        paper.line(bold("No command failed with this error, but it was discussed:"))
        paper.blank()
        hits.render_results(paper, result.talk)
    if result.lessons:
        paper.heading("Lessons")
        hits.render_results(paper, result.lessons)
    if not (result.troubles or result.talk or result.lessons):
        paper.line(bold("This error does not occur in your sessions."))


def _render_change(
    paper: Paper, rank: int, change: values_session.FileChange, *, names_file: bool
) -> None:
    paper.line(
        bold(f"{rank:>2}"),
        "  ",
        dim(_describe_place(change.session, change.project, when(change.time))),
        hang=_INDENT,
    )
    if names_file and change.path:
        paper.line(change.path, indent=_INDENT)
    _render_turn(paper, change.request, "asked", change.session)
    _render_turn(paper, change.words, "said", change.session)
    counts = [f"edited {_turns(change.edits)}"] if change.edits else []
    counts += [f"read {_turns(change.reads)}"] if change.reads and not change.edits else []
    counts += [f"{change.failed} failed"] if change.failed else []
    if counts:
        paper.note(joined(counts), indent=_INDENT)
    for call in change.commands[:3]:
        _render_call(paper, call, indent=_INDENT)


def _render_trouble(paper: Paper, trouble: values_session.Trouble) -> None:
    paper.framed(trouble.error, "tool output")
    counts = joined(
        (f"occurred {_times(trouble.times)}", f"in {count(trouble.sessions, 'session')}")
    )
    paper.note(counts if trouble.mended else f"{counts} · no known fix")
    for repair in trouble.repairs:
        paper.blank()
        _render_repair(paper, repair)


def _render_repair(paper: Paper, repair: values_session.Repair) -> None:
    mark = Span("✓", "bold green") if repair.worked else Span("✗", "bold red")
    paper.line(
        mark,
        "   ",
        dim(_describe_place(repair.session, repair.project, when(repair.time))),
        hang=_INDENT,
    )
    _render_call(paper, repair.failed, indent=_INDENT)
    again = f"failed {_times(repair.attempts)} more" if repair.attempts else ""
    if repair.worked:
        paper.note(joined((again, "then worked:")) if again else "then worked:", indent=_INDENT)
        for call in repair.steps:
            _render_call(paper, call, indent=_INDENT + 2)
    else:
        paper.note(joined((again, "no later success")), indent=_INDENT)
    _render_turn(paper, repair.words, "said", repair.session)


def _render_turn(
    paper: Paper, turn: values_session.Turn | None, verb: str, session: values_session.Session
) -> None:
    if turn is None or not turn.text:
        return
    speaker = (
        "the other agent"
        if verb == "asked" and turn.speaker is values_session.Speaker.AGENT
        else speaker_name(turn.speaker)
    )
    text = passages.shorten(passages.one_line(turn.text), _TURN_CHARACTERS)
    if turn.trust is values_session.Trust.UNTRUSTED:
        paper.framed(
            text, f"{speaker} in {session.tool} {short_session(session.native_id)}", indent=_INDENT
        )
    else:
        paper.line(Span(f"{speaker}:", "bold"), " ", text, indent=_INDENT)


def _render_call(paper: Paper, call: values_session.ToolCall, *, indent: int) -> None:
    outcome = f" → {passages.shorten(call.outcome, 60)}" if call.failed and call.outcome else ""
    paper.note(
        f"{call.name}: {passages.shorten(call.input, _CALL_CHARACTERS)}{outcome}", indent=indent
    )


def _describe_place(session: values_session.Session, project: str | None, time: str) -> str:
    kind = "" if session.kind is values_session.SessionKind.MAIN else session.kind.value
    name = f"{session.tool} {short_session(session.native_id)}"
    return joined((name, kind, project, session.branch, session.model, time))


def _turns(number: int) -> str:
    return f"in {count(number, 'turn')}" if number else "never"


def _times(number: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(number, f"{number:,} times")


# ----------------------------------------------------------------------------
# ``nacre search``.


_MATCHED = ("limit", "offset", "aspect", "role")
"""Options that also apply to regular expressions."""


@command(
    "search",
    examples=[
        'nacre search "what did I say about retries" --role owner --since march',
        "nacre search billing --scope decisions --tool codex --json",
        "nacre search --regex 'E[A-Z]+REFUSED' --scope errors",
    ],
)
@click.argument("question", nargs=-1, type=TEXT)
@limit_option("match-sessions")
@OFFSET
@with_turn_filter
@option(
    "search-sessions",
    "aspect",
    "--scope",
    type=click.Choice(ASPECTS.split("|")),
    help="Only turns of this type.",
)
@option(
    "search-sessions",
    "role",
    type=click.Choice(ROLES.split("|")),
    help="Only turns of this speaker; owner is you.",
)
@flag("--regex", "Search all turns for a regular expression, newest first.")
@option("search-sessions", "around", help="Prefer turns around this time.")
@option("search-sessions", "ignore_time")
@LANES
@option("search-sessions", "fuzzy")
@flag("--explain", "Show the parts of each score and the state of each lane.")
def search(
    run: Run,
    question: tuple[str, ...],
    wanted: recall.Filter,
    regex: bool,
    explain: bool,
    **asked: Any,
) -> None:
    """Search the turns and tool calls of all sessions."""
    words, offset = " ".join(question), asked["offset"]
    if regex:
        _match(run, words, wanted, {name: asked[name] for name in _MATCHED})
        return
    asked["mode"] = asked["mode"] or "hybrid"
    result = ask(run, recall.RecallResult, "search-sessions", text=words, filter=wanted, **asked)
    message = None if result.turns else _nothing(run)
    run.present(result, _render_search, message=message, explain=explain, offset=offset)


def _nothing(run: Run) -> str:
    return hits.EMPTY if is_empty(run) else hits.NOTHING


def _match(run: Run, expression: str, wanted: recall.Filter, asked: dict[str, Any]) -> None:
    """Search turns in this process, because a slow search would block the daemon."""
    matches = perform(run, find.match_turns, expression=expression, filter=wanted, **asked)
    message = None if matches.turns else _nothing(run)
    if matches.unread:
        run.warnings.append(
            "time limit reached before all turns were searched; narrow with --since or --project"
        )
    if matches.given_up:
        run.warnings.append(f"{matches.given_up} turns were skipped because matching took too long")
    run.present(matches, _render_matches, message=message, offset=asked["offset"])


def _render_search(
    paper: Paper,
    result: recall.RecallResult,
    *,
    message: str | None,
    explain: bool,
    offset: int = 0,
) -> None:
    if message == hits.EMPTY:
        hits.render_beginning(paper)
        return
    if message:
        hits.render_nothing(paper, message)
    hits.render_results(paper, result.turns, explain=explain, offset=offset)
    hits.render_span(paper, result)
    hits.render_lanes(paper, result, explain=explain)
    if result.truncated:
        paper.note(f"more: --offset {offset + len(result.turns)}")


def _render_matches(paper: Paper, matches: Matches, *, message: str | None, offset: int) -> None:
    if message == hits.EMPTY:
        hits.render_beginning(paper)
    elif message:
        paper.line(bold(message))
    hits.render_results(paper, matches.turns, offset=offset)
    if matches.more:
        paper.note(f"more: --offset {offset + len(matches.turns)}")
