"""The results of ``nacre benchmark claims`` and ``judge`` for people."""

from __future__ import annotations

from collections.abc import Sequence

from nacre.bench.judging import PASS, CaseResult, ClaimResult, JudgeResult
from nacre.cli.paper import Paper, bold, dim


def render_claims(paper: Paper, result: ClaimResult) -> None:
    """The mean score, and the cases that did not pass."""
    paper.line(bold("Claims"), dim(f"  {result.model}"))
    paper.facts((("score", f"{result.score:.3f}"), ("passed", f"{result.passed} of {len(result.cases)}")), indent=2)
    _misses(paper, result.cases)


def render_judge(paper: Paper, result: JudgeResult) -> None:
    """What each judge made of all pairs, and the cases that did not pass."""
    paper.line(bold("Judgements"), dim(f"  {result.pairs} pairs"))
    rows = [
        (
            one.name, f"{one.relations} of {result.pairs}", f"{one.outcomes} of {result.pairs}", str(one.wrongly_ended),
            "" if one.score is None else f"{one.score:.3f}", "" if one.passed is None else str(one.passed),
        )
        for one in result.judges
    ]  # fmt: skip
    headings = ("judge", "relations right", "outcomes right", "wrongly ended", "score", "passed")
    paper.table([[dim(name) for name in headings], *rows], indent=2)
    _misses(paper, result.cases)


def _misses(paper: Paper, cases: Sequence[CaseResult]) -> None:
    missed = [one for one in cases if one.score < PASS]
    if missed:
        paper.heading("Not passed")
    for one in missed:
        paper.line(f"{one.id}  {one.score:.2f}  wanted {one.wanted}", indent=2, hang=2)
        paper.line(f"came {one.came}", indent=4, hang=2)
