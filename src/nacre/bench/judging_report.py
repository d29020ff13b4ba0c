"""The results of ``nacre benchmark claims`` and ``judge`` for people."""

from __future__ import annotations

from collections.abc import Sequence

from nacre.bench.judging import PASS, CaseResult, ClaimResult, JudgeResult, PairResult
from nacre.cli.paper import Paper, bold, dim
from nacre.dedup.contradiction import Outcome

_TOLD = {Outcome.SUPERSEDED: "ended", Outcome.PENDING: "asked about", Outcome.COEXIST: "both stay"}


def render_claims(paper: Paper, result: ClaimResult) -> None:
    """The mean score, and the cases that did not pass."""
    paper.line(bold("Claims"), dim(f"  {result.model}"))
    paper.facts((("score", f"{result.score:.3f}"), ("passed", f"{result.passed} of {len(result.cases)}")), indent=2)
    _misses(paper, result.cases)


def render_judge(paper: Paper, result: JudgeResult) -> None:
    """What each judge made of all pairs, and those of which one of them made something wrong."""
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
    _missed_pairs(paper, result.cases)


def _missed_pairs(paper: Paper, cases: Sequence[PairResult]) -> None:
    missed = [case for case in cases if any(one.problem for one in case.judged)]
    if missed:
        paper.heading("Not right")
    for case in missed:
        paper.line(f"{case.id}  {case.why}", dim(f"  {case.wanted.value}, {_TOLD[case.expected]}"), indent=2, hang=2)
        for one in case.judged:
            sure = "" if one.confidence is None else f" ({one.confidence:.2f})"
            came = one.problem or f"{_TOLD[one.outcome]}, as it should be"
            paper.line(f"{one.judge}: {one.relation.value}{sure}: {came}", indent=4, hang=2)
            if one.problem and one.explanation:
                paper.line(dim(one.explanation), indent=6, hang=2)


def _misses(paper: Paper, cases: Sequence[CaseResult]) -> None:
    missed = [one for one in cases if one.score < PASS]
    if missed:
        paper.heading("Not passed")
    for one in missed:
        paper.line(f"{one.id}  {one.score:.2f}  wanted {one.wanted}", indent=2, hang=2)
        paper.line(f"came {one.came}", indent=4, hang=2)
