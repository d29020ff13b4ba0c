"""``nacre sessions``, and ``nacre sessions list``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from nacre.cli.command import Group
from nacre.cli.formats import amount, day, duration, short_session
from nacre.cli.memories.hits import render_beginning
from nacre.cli.operations import ask, is_empty
from nacre.cli.options import EVERYTHING, JSON_LINES, OFFSET, find_project, limit_option, pages
from nacre.cli.paper import Cell, Paper, dim
from nacre.cli.request_options import argument, option, options
from nacre.cli.run import Run
from nacre.cli.sessions.session import session_line_record, session_title
from nacre.text import passages
from nacre.values.filters import SessionFilter

if TYPE_CHECKING:
    from nacre.views import SessionLine, SessionPage


_COLUMNS = ("session", "last", "tool", "project", "branch", "model", "  at work", "turns", "tokens", "title")
_LEAST_TITLE = 30
_PROJECT = 24
_BRANCH = 20
_MODEL = 20


_PLACES = {
    "show": "sessions.session:show",
    "tail": "sessions.session:tail",
    "search": "sessions.search:search",
    "summary": "sessions.summary:summary",
    "export": "sessions.export:export_session",
    "restore": "sessions.restore:restore",
}


@click.group(
    "sessions",
    cls=Group,
    places=_PLACES,
    examples=[
        'nacre sessions search "migration failed"',
        "nacre sessions list --project .",
        "nacre sessions summary 7f3a1c2d",
    ],
)
def sessions() -> None:
    """List, read and search the sessions with your agents."""


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
@option(SessionFilter, "tool")
@option(SessionFilter, "project", help="Only this project; . is the one of this folder.")
@option(SessionFilter, "since", help="That went on after then: 2026-11-20, 3d, 2w, yesterday, march.")
@option(SessionFilter, "until", help="That began before then.")
@option(SessionFilter, "branch", help="Only sessions that began on this branch.")
@option(SessionFilter, "model", help="Only sessions with a model whose name holds this, e.g. opus.")
@options(SessionFilter, "kind", "subagents")
@EVERYTHING
@JSON_LINES
@click.pass_obj
def list_sessions(
    run: Run, /, words: tuple[str, ...], limit: int, offset: int, project: str | None, everything: bool, as_lines: bool,
    **wanted: Any,
) -> None:  # fmt: skip
    """List sessions, the newest first.

    With WORDS only those that have them in the title, or, without a title, in what you said first.
    """
    wanted |= {"project": find_project(run, project), "words": " ".join(words) or None}
    has_more, most = False, None if everything else limit

    def page(size: int, at: int) -> tuple[Sequence[SessionLine], bool]:
        nonlocal has_more
        answer: SessionPage = ask(run, "sessions", filter=wanted, limit=size, offset=at)
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
            _render_sessions(paper, found, has_more=has_more, offset=offset)
        elif is_empty(run):
            render_beginning(paper)
        else:
            paper.line("No session fits.")

    run.answer(record, render)


def _render_sessions(paper: Paper, lines: Sequence[SessionLine], *, has_more: bool, offset: int) -> None:
    """One line a session: id, day, tool, project, branch, model, how long, turns, tokens, title."""
    rows = [_row(line) for line in lines]
    paper.table(rows, header=_COLUMNS, drop=(5, 8, 4, 6, 7, 2, 1, 3), least=_LEAST_TITLE)
    if has_more:
        paper.blank()
        paper.line(dim(f"more: --offset {offset + len(lines)}"))


def _row(line: SessionLine) -> tuple[Cell, ...]:
    stored, session = line.session, line.session.session
    return (
        dim(short_session(session.native_id)), dim(day(stored.ended or session.started)), session.tool,
        passages.shorten(stored.project or "", _PROJECT), dim(passages.shorten(session.branch or "", _BRANCH)),
        dim(passages.shorten(session.model or "", _MODEL)),
        f"{duration(line.active):>9}" if line.active else "", f"{stored.turns:>5}",
        dim(f"{amount(session.tokens.total):>6}") if session.tokens else "", session_title(line),
    )  # fmt: skip
