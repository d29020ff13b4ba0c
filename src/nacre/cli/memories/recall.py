"""``nacre recall``."""

from __future__ import annotations

import contextlib
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nacre.cli.command import command
from nacre.cli.formats import Record, stamp
from nacre.cli.memories.hits import (
    EMPTY,
    NOTHING,
    describe_lanes,
    lane_records,
    memory_hit_record,
    render_beginning,
    render_hit,
    render_lanes,
    render_nothing,
    render_span,
    render_turn_hits,
    turn_hit_record,
)
from nacre.cli.operations import ask, is_empty, perform
from nacre.cli.options import LANES, NO_DAEMON, limit_option, with_memory_filter
from nacre.cli.paper import Paper, Span, bold, dim
from nacre.cli.request_options import argument, option, options
from nacre.cli.run import Run
from nacre.home import location
from nacre.platform.lazy import load
from nacre.retrieval.deep import recall as deep
from nacre.values import deep_recall

if TYPE_CHECKING:
    from nacre.values.deep_recall import DeepResult
    from nacre.values.recall import Filter, RecallResult


_RANKING = ("topic", "prefer_kinds", "threshold", "fuzzy", "word_share", "mmr_lambda")
"""Options of ranking that only ordinary recall knows."""

_WHO = {"model": "the model", "rules": "rules", "asker": "you"}


@command(
    "recall",
    examples=[
        'nacre recall "which database do we use for billing?"',
        'nacre recall "what did we decide last week" --project . --kind decision',
        'nacre recall --deep "how do we roll back a release of the web shop?"',
    ],
)
@argument("recall", "text", metavar="[QUESTION]...", nargs=-1, required=False)
@limit_option("recall", default=None, show_default=False)
@with_memory_filter
@option("recall", "around")
@option("recall", "radius_days", "--around-radius")
@option("recall", "ignore_time")
@LANES
@click.option(
    "--deep",
    is_flag=True,
    help="What an agent should know before it answers: of one project, chosen by the model that is set, else by rules.",
)
@click.option("--browse", is_flag=True, help="By importance and date; needs no question.")
@options("recall", "expand", "rerank")
@option("recall", "budget_tokens", "--budget")
@option("recall", "turns", default=None, show_default=False)
@click.option("--explain", is_flag=True, help="Show what each score is made of, and what each lane did.")
@option("recall", "update", help="Do not count this as a use of the memories.")
@option("recall", "session")
@option("recall", "boost", help="Rank by relevance alone, not by age, use and importance.")
@options("recall", "topic", "prefer_kinds", "threshold", "fuzzy")
@option("recall", "word_share", "--word-share", "--alpha")
@option("recall", "diversify", "--no-diversify", "--no-mmr", help="Also show what says nearly the same.")
@option("recall", "mmr_lambda")
@NO_DAEMON
def recall(  # noqa: PLR0913 - one parameter an option
    run: Run, text: tuple[str, ...], limit: int | None, wanted: Filter, around: datetime | None,
    radius_days: float, mode: str | None, deep: bool, browse: bool, expand: bool,
    rerank: bool, budget_tokens: int | None, turns: int | None,
    explain: bool, update: bool, boost: bool, session: str | None, **ranking: Any,
) -> None:  # fmt: skip
    """Find the memories that answer a question.

    Without a question, on a terminal, it opens a picker: what you type is searched for, Enter shows a memory.
    """
    if not (text or deep or browse) and load("nacre.cli.terminal.screen:can_be_drawn")(run):
        load("nacre.cli.terminal.picker:browse")(run, wanted)
        return
    if deep:
        _refuse_with_deep(
            {"--browse": browse, "--around": around, "--mode": mode, "--budget": budget_tokens, "--turns": turns,
             "--limit": limit, "--no-boost": not boost, "--expand": expand, "--rerank": rerank,
             "--no-diversify": not ranking["diversify"],
             **{f"--{name.replace('_', '-')}": ranking[name] or None for name in _RANKING}}
        )  # fmt: skip
        _recall_deep(run, " ".join(text), wanted, explain=explain, update=update, session=session)
        return
    settings = run.settings
    ranking.pop("no_daemon")
    asks_model = expand or settings.flag("recall.expand"), rerank or settings.text("recall.reranker") == "model"
    result: RecallResult = (perform if any(asks_model) else ask)(  # a model takes its time, and is shown as it goes
        run, "recall",
        text=" ".join(text), filter=wanted, limit=limit or settings.whole("recall.limit"), around=around,
        mode="browse" if browse else mode or settings.text("recall.mode"), radius_days=radius_days,
        budget_tokens=settings.whole("recall.budget_tokens") if budget_tokens is None else budget_tokens,
        turns=settings.whole("recall.turns") if turns is None else turns, boost=boost, update=update,
        session=session, expand=asks_model[0], rerank=asks_model[1], **ranking,
    )  # fmt: skip
    message = None
    if not (result.hits or result.turns):
        message = EMPTY if is_empty(run) else NOTHING
    run.answer(
        recall_record(result, message), lambda paper: _render_recall(paper, result, message=message, explain=explain)
    )


def _refuse_with_deep(given: dict[str, object]) -> None:
    named = [name for name, value in given.items() if value is not None and value is not False]
    if named:
        raise click.UsageError(f"{named[0]} does not go with --deep, which tells five memories at most")


def _recall_deep(run: Run, question: str, wanted: Filter, *, explain: bool, update: bool, session: str | None) -> None:
    recent = deep.recent_of(run.home, session) if session else ()
    here = None
    with contextlib.suppress(FileNotFoundError):  # the folder was deleted
        here = location.project_of_folder(run.home, Path.cwd())
    result: DeepResult = perform(
        run, "deep-recall", text=question, filter=wanted, recent=recent, here=here, update=update, session=session
    )
    run.answer(_deep_record(result, _message_of(result)), lambda paper: _render_deep(paper, result, explain=explain))


def recall_record(result: RecallResult, message: str | None) -> Record:
    """The answer of ``recall``."""
    return {
        "query": result.query,
        "hits": [memory_hit_record(hit) for hit in result.hits],
        "turns": [turn_hit_record(hit) for hit in result.turns],
        "lanes": lane_records(result.lanes),
        "message": message,
        "truncated": result.truncated,
        "since": stamp(result.since),
        "until": stamp(result.until),
        "around": stamp(result.around),
        "time_words": result.time_words,
        "took_ms": round(result.took_ms, 2),
    }


def _deep_record(result: DeepResult, message: str | None) -> Record:
    """The answer of ``recall --deep``."""
    return {
        "query": result.query,
        "route": result.route.value,
        "project": result.project,
        "clarify": list(result.clarify),
        "candidates": [{"project": one.slug, "score": one.score, "named": one.named} for one in result.candidates],
        "hits": [memory_hit_record(hit) for hit in result.hits],
        "context": result.context,
        "steps": [
            {"name": step.name, "by": step.by.value, "outcome": step.outcome, "problem": step.problem}
            for step in result.steps
        ],
        "lanes": lane_records(result.lanes),
        "model": result.model,
        "repeated": result.repeated,
        "message": message,
        "took_ms": round(result.took_ms, 2),
    }


def _render_recall(paper: Paper, result: RecallResult, *, message: str | None, explain: bool) -> None:
    """Memories first, then turns, then what was less than it should be."""
    if message == EMPTY:
        render_beginning(paper)
        return
    for rank, hit in enumerate(result.hits, start=1):
        render_hit(paper, rank, hit, explain=explain)
        paper.blank()
    if message:
        render_nothing(paper, message)
    render_turn_hits(paper, result.turns, explain=explain, offset=len(result.hits))
    _render_notes(paper, result)
    render_lanes(paper, result, explain=explain)


def _render_notes(paper: Paper, result: RecallResult) -> None:
    render_span(paper, result)
    if result.truncated:
        paper.blank()
        paper.line(dim("More memories answer; the token budget left them out."))


def _message_of(result: DeepResult) -> str | None:
    """Why there are no hits, where there are none."""
    if result.hits or result.clarify:
        return None
    if result.route is deep_recall.Route.NONE:
        return "That needs no memory."
    return "Nothing beside what is known of you." if result.context else NOTHING


def _render_deep(paper: Paper, result: DeepResult, *, explain: bool) -> None:
    """What was found, or which project has to be named, then who decided it."""
    if result.clarify:
        paper.line(bold("Which project do you mean?"))
        for slug in result.clarify:
            paper.line(f"--project {slug}", indent=2)
    elif not result.hits:
        paper.line(bold(_message_of(result) or NOTHING))
        if result.route is not deep_recall.Route.NONE:
            paper.line(dim("What draws on text from outside is never told here; nacre recall may show more."), indent=2)
    elif result.project:
        paper.line(dim("of the project "), bold(result.project))
        paper.blank()
    for rank, hit in enumerate(result.hits, start=1):
        render_hit(paper, rank, hit, explain=explain)
        paper.blank()
    if explain and result.context:
        paper.heading("For an agent")
        paper.body(result.context, indent=2)
    _render_steps(paper, result, explain=explain)


def _render_steps(paper: Paper, result: DeepResult, *, explain: bool) -> None:
    paper.blank()
    told = [f"{step.name} {step.outcome} (by {_WHO[step.by]})" for step in result.steps]
    paper.line(dim("; ".join(told)), hang=2)
    if result.problem:
        paper.line(Span(f"the model did not help: {result.problem}; rules went on", "yellow"), hang=2)
    elif result.model is None:
        paper.line(dim("no language model is set: rules decided all of it (nacre setup)"), hang=2)
    lanes = result.lanes if explain else result.degraded
    if lanes:
        paper.line(dim(f"{'lanes' if explain else 'degraded'}: {describe_lanes(lanes)}"), hang=2)
    if explain:
        again = " · answered again from memory" if result.repeated else ""
        paper.line(dim(f"model: {result.model or 'none'} · {result.took_ms:.0f} ms{again}"))
