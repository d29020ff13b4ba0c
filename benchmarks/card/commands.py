"""``python -m benchmarks card``."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from benchmarks.card.measuring import Card, Setting, measure_card
from benchmarks.card.systems import read_description, version_of
from benchmarks.retrieval.suites import SUITES, load_suite
from benchmarks.running import FOLDER, NEW_FOLDER, answer_measured, workspace
from nacre.cli.command import Paper, Run, bold, command


@command(
    "card",
    examples=[
        "python -m benchmarks card --system fts5 --suite coding",
        "python -m benchmarks card --system nacre --suite locomo --data bench --out nacre-locomo",
        "python -m benchmarks card --system my-server.toml --suite coding",
    ],
)
@click.option(
    "--system",
    "name",
    required=True,
    help="fts5, a bundled description (nacre, mempalace, …), or a .toml file.",
)
@click.option("--suite", type=click.Choice(SUITES), required=True, help="Questions to ask.")
@click.option(
    "--data", type=FOLDER, default=".", help="Folder with the suites' files; coding needs none."
)
@click.option(
    "--every", type=click.IntRange(1), default=1, help="Ask only each n-th question of a sort."
)
@click.option("--out", type=NEW_FOLDER, help="New folder for one result file per question.")
def card(run: Run, name: str, suite: str, data: Path, every: int, out: Path | None) -> None:
    """Measure the recall and the silence of any MCP server or command.

    Silence is measured at the same setting as recall. If a system marks uncertain results itself,
    a second row counts the others only.
    """
    description = read_description(name)
    version = version_of(description)
    with workspace(run, out) as (folder, notify):
        result = measure_card(
            name, version, description, load_suite(suite, data), folder, every=every, notify=notify
        )
    answer_measured(run, dataclasses.asdict(result), lambda paper: _render(paper, result))


def _render(paper: Paper, result: Card) -> None:
    asked = ", ".join(f"{count:,} {sort}" for sort, count in result.questions.items())
    paper.line(bold(result.system), f" {result.version} on {result.suite}: {asked} questions")
    rows = [row for setting in result.settings for row in _rows(setting)]
    paper.table(rows, header=("percent", "hit@1", "hit@5", "recall@10", "all@10"))
    for setting in result.settings:
        figures = {
            "silent on foreign questions": setting.silent_foreign,
            "silent on near misses": setting.silent_near_miss,
            "stale answer first": setting.stale_first,
        }
        shown = ", ".join(f"{key} {value}" for key, value in figures.items() if value is not None)
        paper.line(f"{setting.name}: {shown or 'no further figures'}")
    paper.line(
        f"tokens: {result.answer_tokens:,.0f} an answer, {result.schema_tokens:,} of tools; "
        f"ms: p50 {result.p50_ms}, p95 {result.p95_ms}; load {result.load_seconds} s; "
        f"MB: {result.megabytes_disk} on disk, {result.megabytes_memory} in memory"
    )


def _rows(setting: Setting) -> list[tuple[str, ...]]:
    levels = {"sessions": setting.sessions, "turns": setting.turns}
    return [
        (
            f"{setting.name}, {level}",
            *(f"{scores[measure]:.1f}" for measure in ("hit@1", "hit@5", "recall@10", "all@10")),
        )
        for level, scores in levels.items()
        if scores
    ]
