"""``nacre recall``."""

from __future__ import annotations

from datetime import datetime

import click

from nacre.cli.command import TEXT, command
from nacre.cli.options import MODE, MOMENT, SESSION, limit_option, with_memory_filter
from nacre.cli.run import Run
from nacre.model.recall import DEFAULT_RADIUS_DAYS, Filter


@command(
    "recall",
    examples=[
        'nacre recall "which database do we use for billing?"',
        'nacre recall "what did we decide last week" --project . --kind decision',
        "nacre recall --browse --min-importance 8",
    ],
)
@click.argument("question", nargs=-1, type=TEXT)
@limit_option(None, "Memories")
@with_memory_filter
@click.option("--around", type=MOMENT, help="Prefer memories from about then.")
@click.option(
    "--around-radius", type=float, default=DEFAULT_RADIUS_DAYS, show_default=True, help="What about means, in days."
)
@click.option("--mode", type=MODE, help="The lanes to use.")
@click.option("--browse", is_flag=True, help="By importance and date; needs no question.")
@click.option("--budget", type=click.IntRange(0), help="Tokens at most.")
@click.option("--turns", type=click.IntRange(0, 100), help="Turns of sessions to show beside the memories.")
@click.option("--explain", is_flag=True, help="Show what each score is made of, and what each lane did.")
@click.option("--no-update", is_flag=True, help="Do not count this as a use of the memories.")
@SESSION
@click.option("--no-boost", is_flag=True, help="Rank by relevance alone, not by age, use and importance.")
def recall(  # noqa: PLR0913 - one parameter an option
    run: Run, question: tuple[str, ...], limit: int | None, wanted: Filter, around: datetime | None,
    around_radius: float, mode: str | None, browse: bool, budget: int | None, turns: int | None, explain: bool,
    no_update: bool, no_boost: bool, session: str | None,
) -> None:  # fmt: skip
    """Find the memories that answer a question."""
    from nacre.app import recalling
    from nacre.cli.records.answers import recall_record
    from nacre.cli.render.answers import EMPTY, NOTHING, render_recall
    from nacre.model.recall import Mode, RecallQuery

    settings = run.settings
    query = RecallQuery(
        text=" ".join(question), filter=wanted, limit=limit or settings["recall.limit"], around=around,
        mode=Mode.BROWSE if browse else Mode(mode or settings["recall.mode"]), radius_days=around_radius,
        budget_tokens=settings["recall.budget_tokens"] if budget is None else budget,
        turns=settings["recall.turns"] if turns is None else turns, boost=not no_boost, update=not no_update,
        session=session,
    )  # fmt: skip
    result = recalling.recall(run.context, query)
    message = None
    if not result.hits:
        from nacre.app.looking import is_empty

        message = EMPTY if is_empty(run.context) else NOTHING
    run.answer(
        recall_record(result, message), lambda paper: render_recall(paper, result, message=message, explain=explain)
    )
