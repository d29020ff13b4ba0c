"""``nacre eval``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nacre import __version__
from nacre.cli import progress
from nacre.cli.command import DefaultGroup
from nacre.cli.formats import SHORT_ID, count, day, kind_span, short_id
from nacre.cli.memories.hits import lane_records, render_beginning
from nacre.cli.memories.memory import memory_record, subject_and_content
from nacre.cli.operations import perform
from nacre.cli.paper import Paper, Span, bold, dim, joined
from nacre.cli.request_options import argument, option
from nacre.cli.run import Run
from nacre.evaluation import evaluate as evaluating
from nacre.home import baseline as home_baseline
from nacre.home import lookup

if TYPE_CHECKING:
    from nacre.evaluation.evaluate import Answer, Baseline, Expectations, Move, SavedQuery


_QUERIES = option("eval", "queries", type=click.Path(dir_okay=False, path_type=Path))
_PRESENT_QUERIES = option("eval", "queries", type=click.Path(exists=True, dir_okay=False, path_type=Path))


@click.group(
    "eval", cls=DefaultGroup,
    examples=["nacre eval", "nacre eval --save-baseline", "nacre eval --compare"],
)  # fmt: skip
@_PRESENT_QUERIES
@option("eval", "limit", "--limit", "-n")
@option("eval", "budget")
@click.option("--save-baseline", is_flag=True, help="Keep the answers, to compare with later.")
@option("eval", "compare", help="Tell what changed since the baseline.")
@click.pass_context
def evaluate(
    context: click.Context, queries: Path | None, limit: int | None, budget: int, save_baseline: bool, compare: bool
) -> None:
    """Ask saved queries of your memory, and see what changed.

    A check of your own memory: keep its answers before an update, another embedding model or a large import, and see
    afterwards which memories moved. The queries are yours: nacre eval add. The ready-made ones mean more than their
    words: session-start is what a session would begin with, recent-decisions, active-todos and preferences list these
    by date. Asking does not count as use.
    """
    if context.invoked_subcommand is not None:
        return

    run: Run = context.obj
    saved = evaluating.load_queries(_file(run, queries))
    before = evaluating.load_baseline(run.home) if compare else None
    limit = limit or (before.limit if before else evaluating.DEFAULT_LIMIT)
    with progress.shown(run) as notify:
        answers = evaluating.ask(
            run.home, saved, limit=limit, budget=budget, baseline=before, notify=notify or (lambda _: None)
        )
    if save_baseline:
        evaluating.save_baseline(run.home, answers, limit=limit, version=__version__, now=run.home.now())
    kept = str(home_baseline.baseline_file(run.home)) if save_baseline else None
    expectations = evaluating.expectations(answers, limit)
    record = _evaluation_record(answers, expectations, limit=limit, baseline=before, saved=kept)
    if lookup.is_empty(run.home):
        run.answer(record, render_beginning)
        return
    run.answer(record, lambda paper: _render_evaluation(paper, answers, expectations, baseline=before, saved=kept))


@evaluate.command("list", examples=["nacre eval list", "nacre eval list --json"])
@_PRESENT_QUERIES
@click.pass_obj
def list_queries(run: Run, queries: Path | None) -> None:
    """List the saved queries."""
    file = _file(run, queries)
    saved: list[SavedQuery] = perform(run, "eval-list", queries=queries)

    def render(paper: Paper) -> None:
        rows = [(bold(query.id), query.query, dim(_expecting(query))) for query in saved]
        paper.table(rows, header=("id", "query", "expects"))
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
@argument("eval-add", "question", nargs=-1)
@option("eval-add", "query_id", "--id")
@option("eval-add", "expects", help="A memory that should answer, by its id or subject.")
@_QUERIES
@click.pass_obj
def add(
    run: Run, question: tuple[str, ...], query_id: str | None, expects: tuple[str, ...], queries: Path | None
) -> None:
    """Save a query."""
    words = " ".join(question)
    added: SavedQuery = perform(run, "eval-add", queries=queries, question=words, query_id=query_id, expects=expects)
    run.answer(
        {"added": _query_record(added)},
        lambda paper: paper.line(
            "Saved: ", bold(added.id), "  ", added.query, dim(f"  expects {_expecting(added)}" if added.expects else "")
        ),
    )


@evaluate.command("remove", examples=["nacre eval remove preferences"])
@argument("eval-remove", "query_id", metavar="ID")
@_PRESENT_QUERIES
@click.pass_obj
def remove(run: Run, query_id: str, queries: Path | None) -> None:
    """Forget a saved query."""
    removed: SavedQuery = perform(run, "eval-remove", queries=queries, query_id=query_id)
    run.answer(
        {"removed": _query_record(removed)},
        lambda paper: paper.line("Removed: ", bold(removed.id), "  ", removed.query),
    )


def _file(run: Run, queries: Path | None) -> Path:
    return queries or evaluating.queries_file(run.home)


def _query_record(query: SavedQuery) -> dict[str, object]:
    return {"id": query.id, "query": query.query, "expects": list(query.expects)}


def _expecting(query: SavedQuery) -> str:
    return ", ".join(item[-8:] for item in query.expects)


def _render_evaluation(
    paper: Paper, answers: Sequence[Answer], expectations: Expectations | None, *, baseline: Baseline | None,
    saved: str | None,
) -> None:  # fmt: skip
    """Every query with what it finds, and where each memory was before."""
    if not (baseline or saved):
        paper.line(dim("What saved queries find now; --save-baseline keeps that, --compare tells what changed since."))
        paper.line(dim("nacre eval add saves a query of yours."))
    for answer in answers:
        _render_answer(paper, answer, is_compared=baseline is not None)
    paper.blank()
    if baseline:
        moves = [move for answer in answers for move in answer.moves or ()]
        sums = [
            f"{sum(_direction(move) == name for move in moves)} {name}" for name in ("up", "down", "new", "dropped")
        ]
        paper.line(bold(joined(sums)), f" since {baseline.saved_at[:16].replace('T', ' ')} in ", _queries(answers))
    if expectations:
        hits = [f"hit@{depth} {100 * share:.1f}" for depth, share in expectations.hits.items()]
        paper.line(
            bold(joined([*hits, f"MRR {expectations.mrr:.2f}"])), " of ",
            count(expectations.queries, "query that says", "queries that say"), " what to find",
        )  # fmt: skip
    if saved:
        paper.line("Baseline kept: ", _queries(answers), dim(f"  in {saved}"))
    for note in dict.fromkeys(lane.note for answer in answers for lane in answer.lanes if lane.note):
        paper.line(dim(note))


def _render_answer(paper: Paper, answer: Answer, *, is_compared: bool) -> None:
    paper.blank()
    paper.line(bold(answer.query.id), "  ", dim(answer.query.query))
    moved = {move.id: move for move in answer.moves or ()}
    rows = [
        (
            f"{rank:>2}", _told_move(moved.get(result.memory.id)),
            "" if result.score is None else f"{result.score:.2f}", dim(short_id(result.memory)),
            kind_span(result.memory.kind), f"{result.memory.importance:>4}", dim(day(result.memory.created)),
            subject_and_content(result.memory),
        )
        for rank, result in enumerate(answer.results, start=1)
    ]  # fmt: skip
    if rows:
        header = ("", "", "score", "id", "kind", "imp.", "date", "memory")
        paper.table(rows, header=header, drop=(5, 4, 3), indent=2)
    else:
        paper.line(dim("nothing"), indent=2)
    for move in moved.values():
        if move.now is None:
            paper.line(
                Span("dropped", "red"),
                f"  was {move.before}  ",
                dim(move.id[-SHORT_ID:]),
                f"  {move.subject}",
                indent=2,
            )
    for item in answer.expected:
        if item.rank is None:
            gone = "" if item.is_active else "  (retired)" if item.subject else "  (no such memory)"
            paper.line(
                Span("not found", "red"), "  ", dim(item.id[-SHORT_ID:]), f"  {item.subject or ''}{gone}", indent=2
            )
    if is_compared and answer.moves is None:
        paper.line(dim("not in the baseline"), indent=2)


def _told_move(move: Move | None) -> Span | str:
    if move is None or move.now is None:
        return ""
    if move.before is None:
        return Span("new", "cyan")
    by = move.before - move.now
    return Span(f"↑{by}", "green") if by > 0 else Span(f"↓{-by}", "yellow")


def _direction(move: Move) -> str:
    if move.before is None:
        return "new"
    if move.now is None:
        return "dropped"
    return "up" if move.now < move.before else "down"


def _queries(answers: Sequence[Answer]) -> str:
    return count(len(answers), "query", "queries")


def _evaluation_record(
    answers: Sequence[Answer], expectations: Expectations | None, *, limit: int, baseline: Baseline | None,
    saved: str | None,
) -> dict[str, Any]:  # fmt: skip
    """The answer of ``eval``."""
    return {
        "limit": limit,
        "queries": [_answer_record(answer) for answer in answers],
        "expectations": {
            "queries": expectations.queries,
            "hits": [{"depth": depth, "share": share} for depth, share in expectations.hits.items()],
            "mrr": expectations.mrr,
        }
        if expectations
        else None,
        "baseline": {"saved_at": baseline.saved_at, "version": baseline.version} if baseline else None,
        "saved": saved,
    }


def _answer_record(answer: Answer) -> dict[str, Any]:
    return {
        "id": answer.query.id,
        "query": answer.query.query,
        "results": [{**memory_record(result.memory), "score": result.score} for result in answer.results],
        "lanes": lane_records(answer.lanes),
        "expected": [
            {"id": item.id, "rank": item.rank, "subject": item.subject, "active": item.is_active}
            for item in answer.expected
        ],
        "moves": None
        if answer.moves is None
        else [
            {
                "id": move.id, "subject": move.subject, "direction": _direction(move), "before": move.before,
                "now": move.now,
            }
            for move in answer.moves
        ],
    }  # fmt: skip
