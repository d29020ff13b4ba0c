"""``python -m benchmarks stale``, ``claims`` and ``judge``."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import click

from benchmarks.contradictions.judging import (
    PASS,
    CaseResult,
    ClaimData,
    ClaimResult,
    JudgeResult,
    PairData,
    PairResult,
    measure_claims,
    measure_judge,
)
from benchmarks.contradictions.stale import PhrasingResult, StaleData, StaleResult, measure, totals
from benchmarks.dataset import load_cases
from benchmarks.running import FILE, progress_shown, workspace
from nacre.cli.command import Paper, Run, bold, command, dim
from nacre.errors import ModelRefusedError
from nacre.home.spending import model_for
from nacre.llm.local_model import load_minilm
from nacre.memories.compare import Resolution
from nacre.values.session import Task


@command(
    "stale",
    examples=[
        "python -m benchmarks stale",
        "python -m benchmarks stale --no-vectors --json",
        "python -m benchmarks stale --through sessions",
    ],
)
@click.option("--data", type=FILE, help="Use other data in this format.")
@click.option("--no-vectors", is_flag=True, help="Compare by words only.")
@click.option(
    "--through",
    type=click.Choice(["store", "sessions"]),
    default="store",
    show_default=True,
    help="Store each statement directly, or learn it from a session.",
)
def stale(run: Run, data: Path | None, no_vectors: bool, through: str) -> None:
    """Measure whether changed facts replace the outdated ones, and nothing else.

    Works in a temporary folder; nothing is written to your home.
    """

    cases = load_cases(data, "stale", StaleData)
    with workspace(run) as (place, notify):
        result = measure(
            cases, place, None if no_vectors else load_minilm, through=through, notify=notify
        )
    run.answer(dataclasses.asdict(result), lambda paper: _render_stale(paper, result))


@command(
    "claims",
    examples=["python -m benchmarks claims", "python -m benchmarks claims --data mine.json --json"],
)
@click.option("--data", type=FILE, help="Use other cases in this format.")
def claims(run: Run, data: Path | None) -> None:
    """Measure how well the model configured for claims extracts claims from memories.

    This calls the model once for each case. Only the cost is written to your home.
    """

    model = model_for(run.home, Task.CLAIMS, background=False)
    if model is None:
        raise ModelRefusedError(
            "no language model is configured", hint="nacre config set models.claims PROVIDER:MODEL"
        )
    with progress_shown(run) as notify:
        result = measure_claims(load_cases(data, "claims", ClaimData), model, notify)
    run.answer(dataclasses.asdict(result), lambda paper: _render_claims(paper, result))


@command(
    "judge",
    examples=[
        "python -m benchmarks judge",
        "python -m benchmarks judge --rules",
        "python -m benchmarks judge --data mine.json --json",
    ],
)
@click.option("--data", type=FILE, help="Use other cases in this format.")
@click.option(
    "--rules", "only_rules", is_flag=True, help="Use only rules, even if a model is configured."
)
def judge(run: Run, data: Path | None, only_rules: bool) -> None:
    """Measure how well pairs of memories are judged, by the rules and by the model configured for contradictions."""

    model = None if only_rules else model_for(run.home, Task.CONTRADICTION, background=False)
    with progress_shown(run) as notify:
        result = measure_judge(load_cases(data, "judge", PairData), model, notify)
    run.answer(dataclasses.asdict(result), lambda paper: _render_judge(paper, result))


_HEADINGS = (
    "phrasing",
    "changes",
    "superseded",
    "marked",
    "questions",
    "stale first",
    "stale hits",
    "of them marked",
    "new found",
    "past found",
)


def _render_stale(paper: Paper, result: StaleResult) -> None:
    """Print figures for each phrasing, wrongly ended or merged memories, and the failures."""
    how = f"through {result.through}, {'with' if result.vectors else 'without'} vectors"
    paper.line(bold("Changes"), dim(f"  {how}"))
    rows = [_row(phrasing) for phrasing in (*result.phrasings, totals(result))]
    paper.table([[dim(name) for name in _HEADINGS], *rows], indent=2)
    paper.heading("Unchanged facts")
    rates = (
        ("look-alikes superseded or dropped", result.wrong_lookalikes),
        ("other memories superseded or dropped", result.wrong_others),
        ("look-alikes marked", result.doubted_lookalikes),
        ("other memories marked", result.doubted_others),
        ("repetitions found", result.duplicates_found),
        ("distinct pairs merged", result.distinct_merged),
        ("related pairs merged", result.related_merged),
    )
    paper.table(
        [(name, f"{rate.count} of {rate.of}", dim(f"{rate.percent} %")) for name, rate in rates],
        indent=2,
    )
    if result.not_learned:
        paper.line(
            dim(
                f"{result.not_learned} cases were not learned from their sessions and are not counted"
            ),
            indent=2,
        )
    if result.failures:
        paper.heading("Failures")
    for failure in result.failures:
        paper.line(bold(failure.what), f"  {failure.id}  ", dim(failure.note), indent=2, hang=2)
        paper.line(failure.earlier, indent=4)
        paper.line(f"→ {failure.later}", indent=4, hang=2)


def _row(result: PhrasingResult) -> list[str]:
    marked = (result.changes, result.superseded, result.doubted)
    answers = (
        result.questions,
        result.first,
        result.stale,
        result.marked,
        result.found,
        result.past,
    )
    return [result.phrasing, *map(str, (*marked, *answers))]


_OUTCOME_NAMES = {
    Resolution.SUPERSEDED: "ended",
    Resolution.PENDING: "pending",
    Resolution.COEXIST: "both stay",
}


def _render_claims(paper: Paper, result: ClaimResult) -> None:
    paper.line(bold("Claims"), dim(f"  {result.model}"))
    paper.facts(
        (("score", f"{result.score:.3f}"), ("passed", f"{result.passed} of {len(result.cases)}")),
        indent=2,
    )
    _misses(paper, result.cases)


def _render_judge(paper: Paper, result: JudgeResult) -> None:
    paper.line(bold("Judgements"), dim(f"  {result.pairs} pairs"))
    rows = [
        (
            judge.name,
            f"{judge.relations} of {result.pairs}",
            f"{judge.outcomes} of {result.pairs}",
            str(judge.wrongly_ended),
            "" if judge.score is None else f"{judge.score:.3f}",
            "" if judge.passed is None else str(judge.passed),
        )
        for judge in result.judges
    ]
    headings = ("judge", "relations right", "outcomes right", "wrongly ended", "score", "passed")
    paper.table([[dim(name) for name in headings], *rows], indent=2)
    _missed_pairs(paper, result.cases)


def _missed_pairs(paper: Paper, cases: Sequence[PairResult]) -> None:
    missed = [case for case in cases if any(verdict.problem for verdict in case.judged)]
    if missed:
        paper.heading("Wrong")
    for case in missed:
        paper.line(
            f"{case.id}  {case.why}",
            dim(f"  {case.wanted.value}, {_OUTCOME_NAMES[case.expected]}"),
            indent=2,
            hang=2,
        )
        for verdict in case.judged:
            sure = "" if verdict.confidence is None else f" ({verdict.confidence:.2f})"
            came = verdict.problem or f"{_OUTCOME_NAMES[verdict.outcome]}, as expected"
            paper.line(f"{verdict.judge}: {verdict.relation.value}{sure}: {came}", indent=4, hang=2)
            if verdict.problem and verdict.explanation:
                paper.line(dim(verdict.explanation), indent=6, hang=2)


def _misses(paper: Paper, cases: Sequence[CaseResult]) -> None:
    missed = [case for case in cases if case.score < PASS]
    if missed:
        paper.heading("Not passed")
    for case in missed:
        paper.line(f"{case.id}  {case.score:.2f}  expected {case.wanted}", indent=2, hang=2)
        paper.line(f"got {case.came}", indent=4, hang=2)
