"""``nacre recall``."""

from __future__ import annotations

import contextlib
from datetime import datetime
from typing import TYPE_CHECKING

import click

from nacre.cli.command import TEXT, command
from nacre.cli.options import MODE, NO_DAEMON, TRACE_PROMPTS, limit_option, with_memory_filter
from nacre.cli.request_options import option, options
from nacre.cli.run import Run
from nacre.values.recall import Filter, RecallQuery

if TYPE_CHECKING:
    from nacre.values.recall import RecallQuery, RecallResult


@command(
    "recall",
    examples=[
        'nacre recall "which database do we use for billing?"',
        'nacre recall "what did we decide last week" --project . --kind decision',
        'nacre recall --deep "how do we roll back a release of the web shop?"',
    ],
)
@click.argument("question", nargs=-1, type=TEXT)
@limit_option(None, "Memories")
@with_memory_filter
@option(RecallQuery, "around")
@option(RecallQuery, "radius_days", "--around-radius")
@click.option("--mode", type=MODE, help="The lanes to use.")
@click.option(
    "--deep",
    is_flag=True,
    help="What an agent should know before it answers: of one project, chosen by the model that is set, else by rules.",
)
@click.option("--browse", is_flag=True, help="By importance and date; needs no question.")
@options(RecallQuery, "expand", "rerank")
@TRACE_PROMPTS
@option(RecallQuery, "budget_tokens", "--budget")
@option(RecallQuery, "turns", default=None, show_default=False)
@click.option("--explain", is_flag=True, help="Show what each score is made of, and what each lane did.")
@option(RecallQuery, "update", help="Do not count this as a use of the memories.")
@option(RecallQuery, "session")
@option(RecallQuery, "boost", help="Rank by relevance alone, not by age, use and importance.")
@NO_DAEMON
def recall(  # noqa: PLR0913 - one parameter an option
    run: Run, question: tuple[str, ...], limit: int | None, wanted: Filter, around: datetime | None,
    radius_days: float, mode: str | None, deep: bool, browse: bool, expand: bool,
    rerank: bool, budget_tokens: int | None, turns: int | None,
    explain: bool, update: bool, boost: bool, session: str | None, no_daemon: bool,
) -> None:  # fmt: skip
    """Find the memories that answer a question."""
    if deep:
        _refuse_with_deep(
            {"--browse": browse, "--around": around, "--mode": mode, "--budget": budget_tokens, "--turns": turns,
             "--limit": limit, "--no-boost": not boost, "--expand": expand, "--rerank": rerank}
        )  # fmt: skip
        _recall_deep(run, " ".join(question), wanted, explain=explain, update=update, session=session)
        return
    from nacre.cli.records.answers import recall_record
    from nacre.cli.render.answers import EMPTY, NOTHING, render_recall
    from nacre.values.recall import Mode, RecallQuery

    settings = run.settings
    query = RecallQuery(
        text=" ".join(question), filter=wanted, limit=limit or settings["recall.limit"], around=around,
        mode=Mode.BROWSE if browse else Mode(mode or settings["recall.mode"]), radius_days=radius_days,
        budget_tokens=settings["recall.budget_tokens"] if budget_tokens is None else budget_tokens,
        turns=settings["recall.turns"] if turns is None else turns, boost=boost, update=update,
        session=session, expand=expand or settings["recall.expand"],
        rerank=rerank or settings["recall.reranker"] == "model",
    )  # fmt: skip
    result = _answered(run, query, by_itself=no_daemon)
    message = None
    if not result.hits:
        from nacre.cli.by_daemon import is_empty

        message = EMPTY if is_empty(run) else NOTHING
    run.answer(
        recall_record(result, message), lambda paper: render_recall(paper, result, message=message, explain=explain)
    )


def _answered(run: Run, query: RecallQuery, *, by_itself: bool) -> RecallResult:
    """The daemon's answer, but where a model is asked, which takes its time and is shown as it goes."""
    from nacre.cli.by_daemon import by_daemon
    from nacre.values.recall import RecallResult

    if not (by_itself or query.expand or query.rerank):
        found = by_daemon(run, "recall", query, RecallResult)
        if found:
            return found
    from nacre.retrieval import recall as recalling  # 150 ms that the daemon spares

    return recalling.recall(run.home, query)


def _refuse_with_deep(given: dict[str, object]) -> None:
    named = [name for name, value in given.items() if value is not None and value is not False]
    if named:
        raise click.UsageError(f"{named[0]} does not go with --deep, which tells five memories at most")


def _recall_deep(run: Run, question: str, wanted: Filter, *, explain: bool, update: bool, session: str | None) -> None:
    from pathlib import Path

    from nacre.cli.records.deep import deep_record
    from nacre.cli.render.deep import message_of, render_deep
    from nacre.home.location import project_of_folder
    from nacre.retrieval.deep.recall import deep_recall, recent_of
    from nacre.retrieval.requests import DeepQuery

    context = run.home
    recent = recent_of(context, session) if session else ()
    here = None
    with contextlib.suppress(FileNotFoundError):  # the folder was deleted
        here = project_of_folder(context, Path.cwd())
    query = DeepQuery(text=question, filter=wanted, recent=recent, here=here, update=update, session=session)
    result = deep_recall(context, query)
    run.answer(deep_record(result, message_of(result)), lambda paper: render_deep(paper, result, explain=explain))
