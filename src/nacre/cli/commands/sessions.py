"""``nacre sessions``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre.cli.command import TEXT, Group
from nacre.cli.commands.one_session import export_session, summary, tail
from nacre.cli.options import (
    ASPECT,
    EVERYTHING,
    JSON_LINES,
    MODE,
    MOMENT,
    OFFSET,
    ROLE,
    limit_option,
    pages,
    project_asked,
    with_turn_filter,
)
from nacre.cli.paper import Paper
from nacre.cli.run import Run
from nacre.values.recall import Filter
from nacre.values.session import SessionKind

if TYPE_CHECKING:
    from nacre.values.recall import RecallResult
    from nacre.views import SessionLine, SessionPage

_TURNS_SHOWN = 40
_KIND = click.Choice([kind.value for kind in SessionKind], case_sensitive=False)


@click.group(
    "sessions",
    cls=Group,
    examples=[
        'nacre sessions search "migration failed"',
        "nacre sessions list --project .",
        "nacre sessions summary 7f3a1c2d",
    ],
)
def sessions() -> None:
    """List, read and search the sessions with your agents."""


for one in (summary, tail, export_session):
    sessions.add_command(one)


@sessions.command(
    "list",
    examples=[
        "nacre sessions list",
        "nacre sessions list --tool codex --since 2w",
        "nacre sessions list --project . --branch main retries",
    ],
)
@click.argument("words", nargs=-1, type=TEXT)
@limit_option(20, "Sessions")
@OFFSET
@click.option("--tool", type=TEXT, help="Only sessions with this tool, e.g. claude-code.")
@click.option("--project", type=TEXT, help="Only this project; . is the one of this folder.")
@click.option("--since", type=MOMENT, help="That went on after then: 2026-11-20, 3d, 2w, yesterday, march.")
@click.option("--until", type=MOMENT, help="That began before then.")
@click.option("--branch", type=TEXT, help="Only sessions that began on this branch.")
@click.option("--model", type=TEXT, help="Only sessions with a model whose name holds this, e.g. opus.")
@click.option("--kind", type=_KIND, help="Only sessions of this kind.")
@click.option("--subagents", is_flag=True, help="Sessions of sub-agents and schedulers as well.")
@EVERYTHING
@JSON_LINES
@click.pass_obj
def list_sessions(  # noqa: PLR0913 - one parameter an option
    run: Run, words: tuple[str, ...], limit: int, offset: int, tool: str | None, project: str | None,
    since: datetime | None, until: datetime | None, branch: str | None, model: str | None, kind: str | None,
    subagents: bool, everything: bool, as_lines: bool,
) -> None:  # fmt: skip
    """List sessions, the newest first.

    With WORDS only those that have them in the title, or, without a title, in what you said first.
    """
    from nacre.cli.by_daemon import asked, is_empty
    from nacre.cli.records.sessions import session_line_record
    from nacre.cli.render.answers import render_beginning
    from nacre.cli.render.sessions import render_sessions
    from nacre.sessions.requests import SessionsRequest
    from nacre.values.filters import SessionFilter

    wanted = SessionFilter(
        tool=tool, project=project_asked(run, project), since=since, until=until, subagents=subagents, branch=branch,
        model=model,
        kind=SessionKind(kind) if kind else None, words=" ".join(words) or None,
    )  # fmt: skip
    has_more, most = False, None if everything else limit

    def page(size: int, at: int) -> tuple[Sequence[SessionLine], bool]:
        nonlocal has_more
        answer: SessionPage = asked(run, "sessions", SessionsRequest(filter=wanted, limit=size, offset=at))
        has_more = answer.more
        return answer.lines, has_more

    lines = pages(page, most, offset)
    if as_lines:
        run.answer_lines(session_line_record(line) for line in lines)
        return
    found = list(lines)
    record = {
        "sessions": [session_line_record(line) for line in found],
        "more": has_more,
        "limit": most,
        "offset": offset,
    }

    def render(paper: Paper) -> None:
        if found:
            render_sessions(paper, found, has_more=has_more, offset=offset)
        elif is_empty(run):
            render_beginning(paper)
        else:
            paper.line("No session fits.")

    run.answer(record, render)


@sessions.command(
    "show",
    examples=[
        "nacre sessions show 7f3a1c2d",
        "nacre sessions show claude-code:7f3a1c2d --from 40 --limit 20",
        "nacre sessions show 7f3a1c2d --full --limit 0",
    ],
)
@click.argument("reference", metavar="[ID]", type=TEXT, required=False)
@click.option("--from", "first", type=click.IntRange(0), default=0, help="The first turn to show, counted from 0.")
@click.option(
    "--limit",
    "-n",
    type=click.IntRange(0),
    help=f"Turns at most; 0 for all [default: {_TURNS_SHOWN}; all with --json].",
)
@click.option("--full", is_flag=True, help="Do not shorten long turns.")
@click.pass_obj
def show(run: Run, reference: str | None, first: int, limit: int | None, full: bool) -> None:
    """Show one session turn by turn, and what was learned from it.

    ID is the session's id at its tool, or the beginning of it; without one, the last session of this folder.
    """
    from nacre.cli.commands.one_session import session_asked
    from nacre.cli.records.sessions import session_view_record
    from nacre.cli.render.sessions import render_session

    limit = (0 if run.as_json else _TURNS_SHOWN) if limit is None else limit
    view = session_asked(run, reference, first=first, limit=limit or None)
    run.answer(session_view_record(view, first), lambda paper: render_session(paper, view, first=first, full=full))


@sessions.command(
    "search",
    examples=[
        'nacre sessions search "what did I say about retries" --role owner --since march',
        "nacre sessions search billing --scope decisions --tool codex --json",
        "nacre sessions search --regex 'E[A-Z]+REFUSED' --scope errors",
    ],
)
@click.argument("question", nargs=-1, type=TEXT)
@limit_option(10, "Turns")
@OFFSET
@with_turn_filter
@click.option(
    "--scope", "aspect", type=ASPECT, default="all", show_default=True, help="Only turns that are about this."
)
@click.option("--role", type=ROLE, default="all", show_default=True, help="Only what you, or what agents said.")
@click.option("--regex", is_flag=True, help="Look through all turns for a regular expression, the latest first.")
@click.option("--semantic", is_flag=True, help="By meaning alone, not by words: the same as --mode vector.")
@click.option("--around", type=MOMENT, help="Prefer turns from about then.")
@click.option("--mode", type=MODE, help="The lanes to use.")
@click.option("--explain", is_flag=True, help="Show what each score is made of, and what each lane did.")
@JSON_LINES
def search(  # noqa: PLR0913 - one parameter an option
    run: Run, question: tuple[str, ...], limit: int, offset: int, wanted: Filter, aspect: str, role: str, regex: bool,
    semantic: bool, around: datetime | None, mode: str | None, explain: bool,
    as_lines: bool,
) -> None:  # fmt: skip
    """Search everything that was said and done."""
    from nacre.cli.by_daemon import asked
    from nacre.cli.records.answers import search_record
    from nacre.cli.render.answers import render_search
    from nacre.retrieval.requests import TurnQuery
    from nacre.values.recall import Mode

    words = " ".join(question)
    if regex:
        _match(run, words, wanted, limit=limit, offset=offset, aspect=aspect, role=role, as_lines=as_lines)
        return
    chosen = Mode.VECTOR if semantic else Mode(mode or run.settings["recall.mode"])
    query = TurnQuery(
        words, wanted, mode=chosen, limit=limit, around=around, offset=offset, aspect=aspect, role=role
    )  # fmt: skip
    result: RecallResult = asked(run, "search-sessions", query)
    message = None if result.turns else _nothing(run)
    record = search_record(result, message) | {"offset": offset}
    if as_lines:
        run.answer_lines(record["hits"])
        return
    run.answer(record, lambda paper: render_search(paper, result, message=message, explain=explain, offset=offset))


def _nothing(run: Run) -> str:
    from nacre.cli.by_daemon import is_empty
    from nacre.cli.render.answers import EMPTY, NOTHING_SAID

    return EMPTY if is_empty(run) else NOTHING_SAID


def _match(
    run: Run, expression: str, wanted: Filter, *, limit: int, offset: int, aspect: str, role: str, as_lines: bool
) -> None:
    """Match in this process: many seconds of one processor, which the daemon's other callers would wait for."""
    from nacre.cli.records.deeds import matches_record
    from nacre.cli.render.answers import render_matches
    from nacre.retrieval.aspects import admission
    from nacre.sessions.pattern_search import match_turns

    admits = admission(aspect, role)
    found = match_turns(run.home, expression, wanted, limit=limit, offset=offset, admits=admits)
    message = None if found.turns else _nothing(run)
    if found.unread:
        run.warnings.append("not all turns were looked at in the time there is: narrow it with --since or --project")
    if found.given_up:
        run.warnings.append(f"on {found.given_up} turns the expression takes too long; they were left out")
    record = matches_record(found, expression, message, offset)
    if as_lines:
        run.answer_lines(record["hits"])
        return
    run.answer(
        record,
        lambda paper: render_matches(paper, found, message=message, offset=offset),
    )


@sessions.command(
    "restore",
    examples=["nacre sessions restore 7f3a1c2d", "nacre sessions restore claude-code:7f3a1c2d --to ~/old-sessions"],
)
@click.argument("reference", metavar="ID", type=TEXT)
@click.option("--to", "folder", type=click.Path(path_type=Path, file_okay=False), help="Write it into this folder.")
@click.pass_obj
def restore(run: Run, reference: str, folder: Path | None) -> None:
    """Write a session's transcript again, from the archive.

    Without --to, where it was, so that its tool finds it. Secrets are not in it, nor images.
    """
    from nacre.archive.operations import restore as write_again
    from nacre.cli.records.archive import restored_record
    from nacre.cli.render.archive import render_restored

    restored = write_again(run.home, reference, folder)
    run.answer(restored_record(restored), lambda paper: render_restored(paper, restored))
