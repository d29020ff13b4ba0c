"""``nacre eval``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre.cli import progress
from nacre.cli.command import TEXT, DefaultGroup
from nacre.cli.paper import Paper, bold, dim
from nacre.cli.run import Run

if TYPE_CHECKING:
    from nacre.evaluation.evaluate import SavedQuery

_QUERIES = click.option(
    "--queries",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file of saved queries, if it is another one.",
)


@click.group(
    "eval", cls=DefaultGroup,
    examples=["nacre eval", "nacre eval --save-baseline", "nacre eval --compare"],
)  # fmt: skip
@_QUERIES
@click.option("--limit", "-n", type=click.IntRange(1, 1000), help="Memories per query; 10, or as many as the baseline.")
@click.option("--budget", type=click.IntRange(1), default=2000, show_default=True, help="Tokens at a session's start.")
@click.option("--save-baseline", is_flag=True, help="Keep the answers, to compare with later.")
@click.option("--compare", is_flag=True, help="Tell what changed since the baseline.")
@click.pass_context
def evaluate(
    context: click.Context, queries: Path | None, limit: int | None, budget: int, save_baseline: bool, compare: bool
) -> None:
    """Ask saved queries of your memory, and see what changed.

    The queries are yours: nacre eval add. Three of the ready-made ones mean more than their words: session-start is
    what a session would begin with, recent-decisions and active-todos list these by date. Asking does not count as use.
    """
    if context.invoked_subcommand is not None:
        return
    from nacre.cli.installed import installed_version
    from nacre.cli.render.answers import render_beginning
    from nacre.cli.render.evaluating import evaluation_record, render_evaluation
    from nacre.evaluation import evaluate as evaluating
    from nacre.home.baseline import baseline_file
    from nacre.home.lookup import is_empty

    run: Run = context.obj
    saved = evaluating.load_queries(_file(run, queries))
    before = evaluating.load_baseline(run.home) if compare else None
    limit = limit or (before.limit if before else evaluating.DEFAULT_LIMIT)
    with progress.shown(run) as notify:
        answers = evaluating.ask(
            run.home, saved, limit=limit, budget=budget, baseline=before, notify=notify or (lambda _: None)
        )
    if save_baseline:
        evaluating.save_baseline(run.home, answers, limit=limit, version=installed_version(), now=run.home.now())
    kept = str(baseline_file(run.home)) if save_baseline else None
    expectations = evaluating.expectations(answers, limit)
    record = evaluation_record(answers, expectations, limit=limit, baseline=before, saved=kept)
    if is_empty(run.home):
        run.answer(record, render_beginning)
        return
    run.answer(record, lambda paper: render_evaluation(paper, answers, expectations, baseline=before, saved=kept))


@evaluate.command("list", examples=["nacre eval list", "nacre eval list --json"])
@_QUERIES
@click.pass_obj
def list_queries(run: Run, queries: Path | None) -> None:
    """List the saved queries."""
    from nacre.evaluation import evaluate as evaluating

    file = _file(run, queries)
    saved = evaluating.load_queries(file)

    def render(paper: Paper) -> None:
        paper.table([(bold(query.id), query.query, dim(_expecting(query))) for query in saved])
        paper.blank()
        paper.line(dim(f"in {file}" if file.exists() else "the ready-made ones; nacre eval add saves your own"))

    run.answer({"queries": [_query_record(query) for query in saved], "path": str(file)}, render)


@evaluate.command(
    "add",
    examples=[
        'nacre eval add "which database do we use for billing?"',
        'nacre eval add "when do we deploy?" --id deploys --expect 5f0c2a4d',
    ],
)
@click.argument("question", nargs=-1, required=True, type=TEXT)
@click.option("--id", "query_id", type=TEXT, help="What to call it; by default made of its words.")
@click.option(
    "--expect", "expects", type=TEXT, multiple=True, help="A memory that should answer, by its id or subject."
)
@_QUERIES
@click.pass_obj
def add(
    run: Run, question: tuple[str, ...], query_id: str | None, expects: tuple[str, ...], queries: Path | None
) -> None:
    """Save a query."""
    from nacre.evaluation import evaluate as evaluating

    added = evaluating.add_query(run.home, _file(run, queries), " ".join(question), query_id=query_id, expects=expects)
    run.answer(
        {"added": _query_record(added)},
        lambda paper: paper.line("Saved: ", bold(added.id), "  ", added.query, "  ", dim(_expecting(added))),
    )


@evaluate.command("remove", examples=["nacre eval remove architecture"])
@click.argument("query_id", metavar="ID", type=TEXT)
@_QUERIES
@click.pass_obj
def remove(run: Run, query_id: str, queries: Path | None) -> None:
    """Forget a saved query."""
    from nacre.evaluation import evaluate as evaluating

    removed = evaluating.remove_query(_file(run, queries), query_id)
    run.answer(
        {"removed": _query_record(removed)},
        lambda paper: paper.line("Removed: ", bold(removed.id), "  ", removed.query),
    )


def _file(run: Run, queries: Path | None) -> Path:
    from nacre.evaluation.evaluate import queries_file

    return queries or queries_file(run.home)


def _query_record(query: SavedQuery) -> dict[str, object]:
    return {"id": query.id, "query": query.query, "expects": list(query.expects)}


def _expecting(query: SavedQuery) -> str:
    return f"expects {', '.join(item[-8:] for item in query.expects)}" if query.expects else ""
