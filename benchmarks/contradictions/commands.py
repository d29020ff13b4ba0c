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
from nacre.errors import ModelRefused
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
@click.option("--data", type=FILE, help="Other data of this shape.")
@click.option("--no-vectors", is_flag=True, help="Compare by words alone.")
@click.option(
    "--through",
    type=click.Choice(["store", "sessions"]),
    default="store",
    show_default=True,
    help="Store each statement, or let it be learned from a session.",
)
@click.pass_obj
def stale(run: Run, data: Path | None, no_vectors: bool, through: str) -> None:
    """Tell whether what changed replaces what was true before, and nothing else.

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
@click.option("--data", type=FILE, help="Other cases of this shape.")
@click.pass_obj
def claims(run: Run, data: Path | None) -> None:
    """Tell how well the model that is set for claims tells what memories claim.

    It costs what so many calls cost; nothing is written to your home but that.
    """

    model = model_for(run.home, Task.CLAIMS, background=False)
    if model is None:
        raise ModelRefused(
            "no language model is set", hint="nacre config set models.claims PROVIDER:MODEL"
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
@click.option("--data", type=FILE, help="Other cases of this shape.")
@click.option("--rules", "only_rules", is_flag=True, help="Ask no model, although one is set.")
@click.pass_obj
def judge(run: Run, data: Path | None, only_rules: bool) -> None:
    """Tell how well pairs of memories are judged, by the rules and by the model that is set for contradictions."""

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
    """Figures by phrasing, what was wrongly ended or merged, and the failures to read."""
    how = f"through {result.through}, {'with' if result.vectors else 'without'} vectors"
    paper.line(bold("Changes"), dim(f"  {how}"))
    rows = [_row(one) for one in (*result.phrasings, totals(result))]
    paper.table([[dim(name) for name in _HEADINGS], *rows], indent=2)
    paper.heading("What still holds")
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


def _row(one: PhrasingResult) -> list[str]:
    marked = (one.changes, one.superseded, one.doubted)
    asked = (one.questions, one.first, one.stale, one.marked, one.found, one.past)
    return [one.phrasing, *map(str, (*marked, *asked))]


_TOLD = {
    Resolution.SUPERSEDED: "ended",
    Resolution.PENDING: "asked about",
    Resolution.COEXIST: "both stay",
}


def _render_claims(paper: Paper, result: ClaimResult) -> None:
    """The mean score, and the cases that did not pass."""
    paper.line(bold("Claims"), dim(f"  {result.model}"))
    paper.facts(
        (("score", f"{result.score:.3f}"), ("passed", f"{result.passed} of {len(result.cases)}")),
        indent=2,
    )
    _misses(paper, result.cases)


def _render_judge(paper: Paper, result: JudgeResult) -> None:
    """What each judge made of all pairs, and those of which one of them made something wrong."""
    paper.line(bold("Judgements"), dim(f"  {result.pairs} pairs"))
    rows = [
        (
            one.name,
            f"{one.relations} of {result.pairs}",
            f"{one.outcomes} of {result.pairs}",
            str(one.wrongly_ended),
            "" if one.score is None else f"{one.score:.3f}",
            "" if one.passed is None else str(one.passed),
        )
        for one in result.judges
    ]
    headings = ("judge", "relations right", "outcomes right", "wrongly ended", "score", "passed")
    paper.table([[dim(name) for name in headings], *rows], indent=2)
    _missed_pairs(paper, result.cases)


def _missed_pairs(paper: Paper, cases: Sequence[PairResult]) -> None:
    missed = [case for case in cases if any(one.problem for one in case.judged)]
    if missed:
        paper.heading("Not right")
    for case in missed:
        paper.line(
            f"{case.id}  {case.why}",
            dim(f"  {case.wanted.value}, {_TOLD[case.expected]}"),
            indent=2,
            hang=2,
        )
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
