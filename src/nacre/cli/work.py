"""``nacre did``, ``fix`` and ``search``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from nacre.base.text import one_line, shorten
from nacre.cli import hits
from nacre.cli.command import TEXT, Paper, Run, Span, bold, command, dim, joined
from nacre.cli.operations import ask, perform
from nacre.cli.options import (
    LANES,
    OFFSET,
    argument,
    count,
    flag,
    limit_option,
    option,
    options,
    read_content,
    speaker_name,
    turn_name,
    when,
    with_turn_filter,
)
from nacre.home import views
from nacre.recall.requests import ASPECTS, ROLES
from nacre.sessions import find
from nacre.values import recall
from nacre.values.memory import DeedFilter
from nacre.values.session import (
    FileChange,
    FileHistory,
    Repair,
    SessionKind,
    Speaker,
    ToolCall,
    Trouble,
    Trust,
    Turn,
)

if TYPE_CHECKING:
    from nacre.sessions.find import Matches


_Deed = FileChange | Repair
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
        "nacre did Makefile --reads --json",
    ],
)
@argument("did", "path")
@limit_option("did")
@OFFSET
@options("did", "reads")
@options(DeedFilter, "tool", "project", "since", "until")
def did(run: Run, path: str, **request: Any) -> None:
    """Show who changed a file, when and why.

    PATH is a file or folder. A relative path such as src/app.py matches at any depth below folders
    where agents worked.
    """
    limits = " within these limits" if any(request[name] for name in _FILTER) else ""
    history = ask(run, FileHistory, "did", path=path, **_with_filter(request))
    hits.present(
        run, history, history.changes, _render_history, offset=request["offset"], limits=limits
    )


def _with_filter(request: dict[str, Any]) -> dict[str, Any]:
    return request | {"wanted": {name: request.pop(name) for name in _FILTER & request.keys()}}


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
@options(DeedFilter, "tool", "project", "since")
def fix(run: Run, error: tuple[str, ...], **request: Any) -> None:
    """Show earlier attempts to fix an error, and which worked.

    ERROR is a line or a whole trace; - reads standard input.
    """
    words = read_content(" ".join(error))
    result = ask(run, views.FixResult, "fix", error=words, **_with_filter(request))
    hits.present(run, result, result.troubles or result.lessons or result.talk, _render_fix)


def _render_history(paper: Paper, history: FileHistory, *, offset: int, limits: str) -> None:
    if not history.paths and not history.changes:
        paper.line(bold(f"No recorded session touched {history.asked}{limits}."))
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
    if not (history.changes or history.edits):
        paper.blank()
        paper.line(f"It was only read, never changed{limits}; --reads shows when.")
    for rank, change in enumerate(history.changes, start=offset + 1):
        paper.blank()
        _render_change(paper, rank, change, names_file=len(history.paths) > 1)
    if history.more:
        paper.blank()
        paper.note(f"more: --offset {offset + len(history.changes)}")


def _render_fix(paper: Paper, result: views.FixResult) -> None:
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


def _render_change(paper: Paper, rank: int, change: FileChange, *, names_file: bool) -> None:
    paper.line(
        bold(f"{rank:>2}"),
        "  ",
        dim(_describe_place(change)),
        hang=_INDENT,
    )
    if names_file and change.path:
        paper.line(change.path, indent=_INDENT)
    _render_turn(paper, change.request, "asked", change)
    _render_turn(paper, change.words, "said", change)
    counts = [f"edited {_turns(change.edits)}"] if change.edits else []
    counts += [f"read {_turns(change.reads)}"] if change.reads and not change.edits else []
    counts += [f"{change.failed} failed"] if change.failed else []
    if counts:
        paper.note(joined(counts), indent=_INDENT)


def _render_trouble(paper: Paper, trouble: Trouble) -> None:
    paper.framed(trouble.error, "tool output")
    counts = joined(
        (f"occurred {_times(trouble.times)}", f"in {count(trouble.sessions, 'session')}")
    )
    paper.note(counts if trouble.mended else f"{counts} · no known fix")
    for repair in trouble.repairs:
        paper.blank()
        _render_repair(paper, repair)


def _render_repair(paper: Paper, repair: Repair) -> None:
    mark = Span("✓", "bold green") if repair.worked else Span("✗", "bold red")
    paper.line(
        mark,
        "   ",
        dim(_describe_place(repair)),
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
    _render_turn(paper, repair.words, "said", repair)


def _render_turn(
    paper: Paper,
    turn: Turn | None,
    verb: str,
    deed: _Deed,
) -> None:
    if turn is None or not turn.text:
        return
    speaker = (
        "the other agent"
        if verb == "asked" and turn.speaker is Speaker.AGENT
        else speaker_name(turn.speaker)
    )
    text = shorten(one_line(turn.text), _TURN_CHARACTERS)
    if turn.trust is Trust.UNTRUSTED:
        paper.framed(text, f"{speaker} in {turn_name(deed.session.id, deed.seq)}", indent=_INDENT)
    else:
        paper.line(Span(f"{speaker}:", "bold"), " ", text, indent=_INDENT)


def _render_call(paper: Paper, call: ToolCall, *, indent: int) -> None:
    outcome = f" → {shorten(call.outcome, 60)}" if call.failed and call.outcome else ""
    paper.note(f"{call.name}: {shorten(call.input, _CALL_CHARACTERS)}{outcome}", indent=indent)


def _describe_place(deed: _Deed) -> str:
    session = deed.session
    kind = "" if session.kind is SessionKind.MAIN else session.kind.value
    name = turn_name(session.id, deed.seq)
    return joined((name, kind, deed.project, session.branch, session.model, when(deed.time)))


def _turns(number: int) -> str:
    return f"in {count(number, 'turn')}" if number else "never"


def _times(number: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(number, f"{number:,} times")


# ----------------------------------------------------------------------------
# ``nacre search``.


_MATCHED = ("limit", "offset", "aspect", "role")
"""Options that also apply to regular-expression searches."""


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
)
@option(
    "search-sessions",
    "role",
    type=click.Choice(ROLES.split("|")),
    help="Only turns of this speaker; owner is you.",
)
@flag("--regex", "Search all turns for a regular expression, newest first.")
@options("search-sessions", "around", "ignore_time")
@LANES
@options("search-sessions", "fuzzy")
@flag("--explain", "Show the parts of each score and the state of each lane.")
def search(
    run: Run,
    question: tuple[str, ...],
    criteria: recall.Filter,
    regex: bool,
    explain: bool,
    **request: Any,
) -> None:
    """Search the turns and tool calls of all sessions."""
    words, offset = " ".join(question), request["offset"]
    if regex:
        _match(run, words, criteria, {name: request[name] for name in _MATCHED})
        return
    request["mode"] = request["mode"] or "hybrid"
    result = ask(
        run, recall.RecallResult, "search-sessions", text=words, filter=criteria, **request
    )
    hits.present(
        run,
        result,
        result.turns,
        hits.render_answer,
        result.turns,
        explain=explain,
        more=f"more: --offset {offset + len(result.turns)}",
        offset=offset,
    )


def _match(run: Run, expression: str, criteria: recall.Filter, request: dict[str, Any]) -> None:
    # Search in this process: a slow search would block the daemon.
    matches = perform(run, find.match_turns, expression=expression, filter=criteria, **request)
    if matches.unread:
        run.warnings.append(
            "time limit reached before all turns were searched; narrow with --since or --project"
        )
    if matches.given_up:
        run.warnings.append(f"{matches.given_up} turns were skipped because matching took too long")
    hits.present(run, matches, matches.turns, _render_matches, offset=request["offset"])


def _render_matches(paper: Paper, matches: Matches, *, offset: int) -> None:
    if not matches.turns:
        paper.line(bold(hits.NOTHING))
    hits.render_results(paper, matches.turns, offset=offset)
    if matches.more:
        paper.note(f"more: --offset {offset + len(matches.turns)}")
