"""``nacre sessions search``."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import click

from nacre.cli.command import TEXT, command
from nacre.cli.formats import Record, stamp
from nacre.cli.memories.hits import (
    EMPTY,
    NOTHING,
    lane_records,
    render_beginning,
    render_lanes,
    render_nothing,
    render_span,
    render_turn_hits,
    turn_hit_record,
)
from nacre.cli.operations import ask, is_empty, perform
from nacre.cli.options import JSON_LINES, LANES, OFFSET, limit_option, with_turn_filter
from nacre.cli.paper import Paper, bold, dim
from nacre.cli.request_options import option
from nacre.cli.run import Run
from nacre.retrieval.requests import ASPECTS, ROLES

if TYPE_CHECKING:
    from nacre.sessions.pattern_search import Matches
    from nacre.values.recall import Filter, RecallResult


@command(
    "search",
    examples=[
        'nacre sessions search "what did I say about retries" --role owner --since march',
        "nacre sessions search billing --scope decisions --tool codex --json",
        "nacre sessions search --regex 'E[A-Z]+REFUSED' --scope errors",
    ],
)
@click.argument("question", nargs=-1, type=TEXT)
@limit_option("match-sessions")
@OFFSET
@with_turn_filter
@option(
    "search-sessions", "aspect", "--scope", type=click.Choice(ASPECTS.split("|")),
    help="Only turns about these, or with calls of tools.",
)  # fmt: skip
@option(
    "search-sessions", "role", type=click.Choice(ROLES.split("|")), help="Only your turns (owner), or those of agents."
)
@click.option("--regex", is_flag=True, help="Search all turns for a regular expression, the latest first.")
@click.option("--semantic", is_flag=True, help="By meaning alone, not by words: the same as --mode vector.")
@option("search-sessions", "around", help="Prefer turns from about then.")
@option("search-sessions", "ignore_time")
@LANES
@option("search-sessions", "fuzzy")
@click.option("--explain", is_flag=True, help="Show what each score is made of, and what each lane did.")
@JSON_LINES
def search(  # noqa: PLR0913 - one parameter an option
    run: Run, question: tuple[str, ...], limit: int, offset: int, wanted: Filter, aspect: str, role: str, regex: bool,
    semantic: bool, around: datetime | None, ignore_time: bool, mode: str | None, fuzzy: bool,
    explain: bool, as_lines: bool,
) -> None:  # fmt: skip
    """Search everything that was said and done."""
    words = " ".join(question)
    if regex:
        _match(run, words, wanted, limit=limit, offset=offset, aspect=aspect, role=role, as_lines=as_lines)
        return
    chosen = "vector" if semantic else mode or run.settings.text("recall.mode")
    result: RecallResult = ask(
        run, "search-sessions", text=words, filter=wanted, mode=chosen, limit=limit, around=around, offset=offset,
        aspect=aspect, role=role, fuzzy=fuzzy, ignore_time=ignore_time,
    )  # fmt: skip
    message = None if result.turns else _nothing(run)
    record = _search_record(result, message) | {"offset": offset}
    if as_lines:
        run.answer_lines(record["hits"])
        return
    run.answer(record, lambda paper: _render_search(paper, result, message=message, explain=explain, offset=offset))


def _nothing(run: Run) -> str:
    return EMPTY if is_empty(run) else NOTHING


def _match(
    run: Run, expression: str, wanted: Filter, *, limit: int, offset: int, aspect: str, role: str, as_lines: bool
) -> None:
    """Match in this process: many seconds of one processor, which the daemon's other callers would wait for."""
    found: Matches = perform(
        run,
        "match-sessions",
        expression=expression,
        filter=wanted,
        limit=limit,
        offset=offset,
        aspect=aspect,
        role=role,
    )
    message = None if found.turns else _nothing(run)
    if found.unread:
        run.warnings.append("not all turns were looked at in the time there is: narrow it with --since or --project")
    if found.given_up:
        run.warnings.append(f"on {found.given_up} turns the expression takes too long; they were left out")
    record = _matches_record(found, expression, message, offset)
    if as_lines:
        run.answer_lines(record["hits"])
        return
    run.answer(
        record,
        lambda paper: _render_matches(paper, found, message=message, offset=offset),
    )


def _search_record(result: RecallResult, message: str | None) -> Record:
    """The answer of ``sessions search``."""
    return {
        "query": result.query,
        "hits": [turn_hit_record(hit) for hit in result.turns],
        "lanes": lane_records(result.lanes),
        "message": message,
        "more": result.truncated,
        "since": stamp(result.since),
        "until": stamp(result.until),
        "time_words": result.time_words,
        "took_ms": round(result.took_ms, 2),
    }


def _matches_record(found: Matches, expression: str, message: str | None, offset: int) -> Record:
    """The answer of ``sessions search --regex``."""
    return {
        "query": expression,
        "hits": [turn_hit_record(hit) for hit in found.turns],
        "message": message,
        "more": found.more,
        "offset": offset,
        "unread": found.unread,
        "given_up": found.given_up,
    }


def _render_search(paper: Paper, result: RecallResult, *, message: str | None, explain: bool, offset: int = 0) -> None:
    """Turns, then what was less than it should be."""
    if message == EMPTY:
        render_beginning(paper)
        return
    if message:
        render_nothing(paper, message)
    render_turn_hits(paper, result.turns, explain=explain, offset=offset)
    render_span(paper, result)
    render_lanes(paper, result, explain=explain)
    if result.truncated:
        paper.line(dim(f"more: --offset {offset + len(result.turns)}"))


def _render_matches(paper: Paper, found: Matches, *, message: str | None, offset: int) -> None:
    """Turns that match an expression."""
    if message == EMPTY:
        render_beginning(paper)
    elif message:
        paper.line(bold(message))
    render_turn_hits(paper, found.turns, explain=False, offset=offset)
    if found.more:
        paper.line(dim(f"more: --offset {offset + len(found.turns)}"))
