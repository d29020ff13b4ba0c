"""``nacre admin usefulness``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from nacre.care import usefulness as evaluating
from nacre.care.usefulness import (
    Answer,
    Aspect,
    Comparison,
    Finding,
    Move,
    SavedQuery,
    Usefulness,
    needed_at,
)
from nacre.cli.command import Cell, DefaultGroup, Paper, Run, Span, bold, command, dim, joined
from nacre.cli.hits import render_beginning, subject_and_content
from nacre.cli.operations import ask, perform
from nacre.cli.options import SHORT_ID, argument, count, day, flag, kind_span, option, short_id
from nacre.home import location

_LABELS = {
    Aspect.MESSAGES: "your messages in a session",
    Aspect.CORRECTIONS: "corrections per 100 messages",
    Aspect.REPEATED: "repetitions per 100 messages",
    Aspect.FAILED_CALLS: "failures per 100 tool calls",
}
_NAMES = {
    Aspect.MESSAGES: "messages",
    Aspect.CORRECTIONS: "corrections",
    Aspect.REPEATED: "repetitions",
    Aspect.FAILED_CALLS: "failed calls",
}
_FOUND = {
    Finding.LESS_WITH_MEMORY: "Fewer with memory",
    Finding.MORE_WITH_MEMORY: "More with memory",
    Finding.UNCLEAR: "Unclear",
}
_SUGGESTED = 0.2


@command(
    "usefulness",
    examples=[
        "nacre config set usefulness.hold_out 0.2",
        "nacre admin usefulness",
        "nacre admin usefulness --json",
    ],
)
def usefulness(run: Run) -> None:
    """Compare sessions with and without memory.

    With usefulness.hold_out, a random share of sessions gets no automatic context. The difference from other sessions
    is the effect of memory. If too few sessions are held out, no result is shown.
    """
    run.present(ask(run, evaluating.Usefulness, "usefulness"), _render)


def _render(paper: Paper, found: Usefulness) -> None:
    if not found.share:
        paper.line("Every session gets context from nacre.")
        paper.line(f"nacre config set usefulness.hold_out {_SUGGESTED}", indent=2)
        paper.line(
            f"leaves one session in {round(1 / _SUGGESTED)}, chosen at random, without context. "
            f"About {needed_at(_SUGGESTED)} sessions are needed for a result."
        )
    if found.since is None:
        if found.share:
            paper.line("The next session is the first that can be held out.")
        return
    paper.line(
        bold(f"{found.compared:.0%} of sessions held out since {day(found.since)}: "),
        f"{found.sessions_held_out:,} held out, {found.sessions_told:,} others"
        + (f"; {found.left_out:,} not compared" if found.left_out else ""),
        hang=2,
    )
    judged = [
        comparison for comparison in found.comparisons if comparison.finding is not Finding.TOO_FEW
    ]
    if judged:
        paper.blank()
        paper.table(
            [_row(item) for item in judged],
            header=("", "memory", "held out", "difference, with 95 % confidence"),
        )
        paper.blank()
    for finding, words in _FOUND.items():
        names = [_NAMES[item.aspect] for item in judged if item.finding is finding]
        if names:
            paper.line(bold(f"{words}: "), ", ".join(names), hang=2)
    few = [comparison for comparison in found.comparisons if comparison.finding is Finding.TOO_FEW]
    if few:
        of = f" for {', '.join(_NAMES[item.aspect] for item in few)}" if judged else ""
        missing = max(0, found.needed - found.sessions_told - found.sessions_held_out)
        more = f": {count(missing, 'session')} more needed" if missing else ""
        paper.line(bold("Too few sessions"), f"{of}{more}.")


def _row(comparison: Comparison) -> tuple[Cell, ...]:
    times = 1 if comparison.aspect is Aspect.MESSAGES else 100
    told, without = (
        f"{times * (value or 0.0):.1f}" for value in (comparison.told, comparison.held_out)
    )
    difference, low, high = (
        f"{times * (value or 0.0):+.1f}".replace("-", "−")
        for value in (comparison.difference, comparison.low, comparison.high)
    )
    return dim(_LABELS[comparison.aspect]), told, without, f"{difference}  ({low} to {high})"


# ----------------------------------------------------------------------------
# ``nacre admin eval``.


_QUERIES = option("eval", "queries", type=click.Path(dir_okay=False, path_type=Path))
_PRESENT_QUERIES = option(
    "eval", "queries", type=click.Path(exists=True, dir_okay=False, path_type=Path)
)


@click.group(
    "eval",
    cls=DefaultGroup,
    examples=["nacre admin eval", "nacre admin eval --save-baseline", "nacre admin eval --compare"],
)
@_PRESENT_QUERIES
@option("eval", "limit", "--limit", "-n")
@option("eval", "budget")
@flag("--save-baseline", "Save the results for a later comparison.")
@option("eval", "compare", help="Show the changes since the baseline.")
@flag("--list", "Only list the saved queries.", "listed")
@option("eval-remove", "query_id", "--remove", required=False, metavar="ID")
def evaluate(
    run: Run,
    save_baseline: bool,
    listed: bool,
    query_id: str | None,
    queries: Path | None,
    **asked: Any,
) -> None:
    """Run saved queries and show how their results changed.

    Save a baseline before an update, a new embedding model or a large import, then compare to see which memories
    changed rank. Add queries with nacre admin eval add. Some default queries ignore their text: session-start shows the
    context at a session's start, and recent-decisions, active-todos and preferences list these memories by date.
    Running saved queries does not count as a use of the memories.
    """
    if query_id:
        removed = perform(run, evaluating.remove_query, queries=queries, query_id=query_id)
        run.answer(removed, Paper.line, "Removed: ", bold(removed.id))
        return
    if listed:
        saved_queries = perform(run, evaluating.list_queries, queries=queries)
        rows = [(bold(item.id), item.query, dim(_expecting(item))) for item in saved_queries]
        header = ("id", "query", "expects")
        run.answer({"queries": saved_queries}, Paper.table, rows, header=header)
        return
    before = evaluating.load_baseline(run.home) if asked["compare"] else None
    limit = asked["limit"] or (before.limit if before else evaluating.DEFAULT_LIMIT)
    answers = perform(run, evaluating.evaluate, queries=queries, **asked)
    expectations = evaluating.expectations(answers, limit)
    saved = evaluating.save_baseline(run.home, answers, limit) if save_baseline else None
    record = {
        "limit": limit,
        "queries": answers,
        "expectations": expectations,
        "baseline": before and {"saved_at": before.saved_at, "version": before.version},
        "saved": saved,
    }
    if location.is_empty(run.home):
        run.answer(record, render_beginning)
    else:
        run.answer(record, _render_evaluation, answers, expectations, before, saved)


@evaluate.command(
    "add",
    examples=[
        'nacre admin eval add "which database do we use for billing?"',
        'nacre admin eval add "when do we deploy?" --id deploys --expect 5f0c2a4d',
    ],
)
@argument("eval-add", "question", nargs=-1)
@option("eval-add", "query_id", "--id")
@option("eval-add", "expects", help="A memory that should answer, by its id or subject.")
@_QUERIES
def add(run: Run, question: tuple[str, ...], **fields: Any) -> None:
    """Save a query."""
    added = perform(run, evaluating.add_query, question=" ".join(question), **fields)
    expects = dim(f"  expects {_expecting(added)}" if added.expects else "")
    run.answer(added, Paper.line, "Saved: ", bold(added.id), "  ", added.query, expects)


def _expecting(query: SavedQuery) -> str:
    return ", ".join(item[-8:] for item in query.expects)


def _render_evaluation(
    paper: Paper,
    answers: Sequence[Answer],
    expectations: evaluating.Expectations | None,
    baseline: evaluating.Baseline | None,
    saved: Path | None,
) -> None:
    if not (baseline or saved):
        paper.note(
            "These are the current results. --save-baseline saves them, --compare shows later changes."
        )
        paper.note("To save a query of your own: nacre admin eval add.")
    for answer in answers:
        _render_answer(paper, answer, is_compared=baseline is not None)
    paper.blank()
    if baseline:
        moves = [move for answer in answers for move in answer.moves or ()]
        sums = [
            f"{sum(_direction(move) == name for move in moves)} {name}"
            for name in ("up", "down", "new", "dropped")
        ]
        paper.line(
            bold(joined(sums)),
            f" since {baseline.saved_at[:16].replace('T', ' ')} in ",
            _queries(answers),
        )
    if expectations:
        hits = [f"hit@{depth} {100 * share:.1f}" for depth, share in expectations.hits.items()]
        paper.line(
            bold(joined([*hits, f"MRR {expectations.mrr:.2f}"])),
            " of ",
            count(expectations.queries, "query with", "queries with"),
            " expected memories",
        )
    if saved:
        paper.line("Baseline saved: ", _queries(answers), dim(f"  in {saved}"))
    for note in dict.fromkeys(
        lane.note for answer in answers for lane in answer.lanes if lane.note
    ):
        paper.note(note)


def _render_answer(paper: Paper, answer: Answer, *, is_compared: bool) -> None:
    paper.blank()
    paper.line(bold(answer.query.id), "  ", dim(answer.query.query))
    moved = {move.id: move for move in answer.moves or ()}
    rows = [
        (
            f"{rank:>2}",
            _told_move(moved.get(result.memory.id)),
            "" if result.score is None else f"{result.score:.2f}",
            dim(short_id(result.memory)),
            kind_span(result.memory.kind),
            f"{result.memory.importance:>4}",
            dim(day(result.memory.created)),
            subject_and_content(result.memory),
        )
        for rank, result in enumerate(answer.results, start=1)
    ]
    if rows:
        header = ("", "", "score", "id", "kind", "imp.", "date", "memory")
        paper.table(rows, header=header, drop=(5, 4, 3), indent=2)
    else:
        paper.note("nothing", indent=2)
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
            gone = "" if item.is_active else "  (retired)" if item.subject else "  (unknown memory)"
            paper.line(
                Span("not found", "red"),
                "  ",
                dim(item.id[-SHORT_ID:]),
                f"  {item.subject or ''}{gone}",
                indent=2,
            )
    if is_compared and answer.moves is None:
        paper.note("not in the baseline", indent=2)


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
