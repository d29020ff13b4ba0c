"""What saved queries find, for people and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nacre.cli.paper import Paper, Span, bold, dim, joined
from nacre.cli.records.answers import lane_records
from nacre.cli.records.memories import memory_record
from nacre.cli.render.memories import told
from nacre.cli.render.words import count, day, kind_span

if TYPE_CHECKING:
    from nacre.evaluation.evaluate import Answer, Baseline, Expectations, Move

_ID = 8


def render_evaluation(
    paper: Paper, answers: Sequence[Answer], expectations: Expectations | None, *, baseline: Baseline | None,
    saved: str | None,
) -> None:  # fmt: skip
    """Every query with what it finds, and where each memory was before."""
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
            "" if result.score is None else f"{result.score:.2f}", dim(result.memory.id[-_ID:]),
            kind_span(result.memory.kind), f"{result.memory.importance:>2}", dim(day(result.memory.created)),
            told(result.memory),
        )
        for rank, result in enumerate(answer.results, start=1)
    ]  # fmt: skip
    if rows:
        paper.table(rows, drop=(5, 6, 3), indent=2)
    else:
        paper.line(dim("nothing close enough" if answer.abstained else "nothing"), indent=2)
    for move in moved.values():
        if move.now is None:
            paper.line(
                Span("dropped", "red"), f"  was {move.before}  ", dim(move.id[-_ID:]), f"  {move.subject}", indent=2
            )
    for item in answer.expected:
        if item.rank is None:
            gone = "" if item.is_active else "  (retired)" if item.subject else "  (no such memory)"
            paper.line(Span("not found", "red"), "  ", dim(item.id[-_ID:]), f"  {item.subject or ''}{gone}", indent=2)
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


def evaluation_record(
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
        "abstained": answer.abstained,
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
