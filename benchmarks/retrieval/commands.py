"""``python -m benchmarks retrieval`` and ``parity``."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

from benchmarks.retrieval.homes import Shelf
from benchmarks.retrieval.parity import ParityResult, measure_parity
from benchmarks.retrieval.retrieval import Level, RecipeResult, RetrievalResult, measure
from benchmarks.retrieval.scoring import MEASURES
from benchmarks.retrieval.suites import SUITES, load_suite
from benchmarks.running import FOLDER, NEW_FOLDER, answer_measured, progress_shown
from nacre.cli.command import Paper, Run, bold, command, dim
from nacre.llm.local_model import load_minilm

_TURN_MEASURES = MEASURES
_SESSION_MEASURES = ("hit@1", "hit@5", "recall@5", "recall@10", "all@10", "mrr")
_SUITE = click.option(
    "--suite",
    "name",
    type=click.Choice(SUITES),
    required=True,
    help="Questions to ask; pile has all other suites in one home.",
)
_DATA = click.option(
    "--data",
    type=FOLDER,
    default=".",
    help="Folder with the suites' files; coding needs none.",
)
_CACHE = click.option(
    "--cache",
    type=NEW_FOLDER,
    default=Path(tempfile.gettempdir()) / "nacre-benchmark",
    show_default=True,
    help="Folder for cached homes and vectors.",
)
_NO_VECTORS = click.option("--no-vectors", is_flag=True, help="Measure only the lexical lane.")


@command(
    "retrieval",
    examples=[
        "python -m benchmarks retrieval --suite locomo --data bench",
        "python -m benchmarks retrieval --suite pile --data bench --ablations --json > pile.json",
        "python -m benchmarks retrieval --suite longmemeval --data bench --no-vectors",
    ],
)
@_SUITE
@_DATA
@_CACHE
@click.option("--fresh", is_flag=True, help="Recreate the homes even if nothing changed.")
@click.option("--ablations", is_flag=True, help="Also measure without each ingredient.")
@click.option(
    "--questions", type=click.IntRange(1), help="Ask only this number of questions, evenly chosen."
)
@_NO_VECTORS
def retrieval(
    run: Run,
    name: str,
    data: Path,
    cache: Path,
    fresh: bool,
    ablations: bool,
    questions: int | None,
    no_vectors: bool,
) -> None:
    """Measure recall on a public benchmark.

    Each haystack gets its own home, filled by nacre ingest. Nothing is written to your home.
    """

    shelf = Shelf(cache, vectors=not no_vectors, fresh=fresh)
    with progress_shown(run) as notify:
        result = measure(
            load_suite(name, data),
            shelf,
            load_minilm,
            ablations=ablations,
            questions=questions,
            notify=notify,
        )
    answer_measured(run, dataclasses.asdict(result), lambda paper: _render_retrieval(paper, result))


@command(
    "parity",
    examples=[
        "python -m benchmarks parity --server postgresql://postgres@localhost/bench --suite coding",
        "python -m benchmarks parity --server postgresql://postgres@localhost/bench --data bench --json",
    ],
)
@click.option(
    "--server",
    required=True,
    help="Address of a PostgreSQL server; each home gets a new tenant.",
)
@click.option(
    "--suite",
    "names",
    type=click.Choice(SUITES),
    multiple=True,
    help="Questions to ask (default: all available suites).",
)
@_DATA
@_CACHE
@_NO_VECTORS
def parity(
    run: Run, server: str, names: tuple[str, ...], data: Path, cache: Path, no_vectors: bool
) -> None:
    """Compare recall from a server with recall from a file.

    Both have the same sessions and get the same questions. The top hits are compared, and when
    nothing is shown.
    """
    with progress_shown(run) as notify:
        shelf = Shelf(cache, vectors=not no_vectors)
        result = measure_parity(names or SUITES, data, shelf, server, load_minilm, notify)
    answer_measured(run, dataclasses.asdict(result), lambda paper: _render_parity(paper, result))


def _render_retrieval(paper: Paper, result: RetrievalResult) -> None:
    paper.line(
        bold(result.suite),
        f": {result.questions:,} questions, {result.turns:,} turns, {result.sessions:,} sessions, ",
        f"{result.haystacks} homes; figures in percent",
    )
    if any(recipe.turns.overall for recipe in result.recipes):
        paper.heading("Turns")
        _table(paper, result.recipes, "turns", _TURN_MEASURES)
        _by_category(paper, result.recipes, "turns", "recall@10")
    if any(recipe.sessions.overall for recipe in result.recipes):
        paper.heading("Sessions, by their best turn")
        _table(paper, result.recipes, "sessions", _SESSION_MEASURES)
        _by_category(paper, result.recipes, "sessions", "hit@1")
    _gains(paper, result.recipes)
    paper.heading("Latency in ms")
    rows = [
        [recipe.name, f"{recipe.p50_ms:.1f}", f"{recipe.p95_ms:.1f}"] for recipe in result.recipes
    ]
    paper.table([[dim("recipe"), dim("p50"), dim("p95")], *rows], indent=2)


def _render_parity(paper: Paper, result: ParityResult) -> None:
    header = (
        "suite",
        "questions",
        "hit@5 file",
        "server",
        "top ten",
        "same order",
        "same silence",
        "ms file",
        "ms server",
    )
    rows = [
        (
            suite.suite,
            f"{suite.questions:,}",
            f"{suite.hit_file:.1f}",
            f"{suite.hit_server:.1f}",
            f"{suite.overlap:.1f}",
            f"{suite.same_order:.1f}",
            f"{suite.silence:.1f} of {suite.asked:,}",
            f"{suite.file.p50:.1f}",
            f"{suite.server.p50:.1f}",
        )
        for suite in result.suites
    ]
    paper.table(rows, header=header)
    if result.absent:
        paper.line(dim(f"No data for: {', '.join(result.absent)}."))


def _table(
    paper: Paper, recipes: Sequence[RecipeResult], level: str, measures: Sequence[str]
) -> None:
    rows = [
        [recipe.name, *(f"{overall[measure]:.1f}" for measure in measures)]
        for recipe in recipes
        if (overall := _level(recipe, level).overall)
    ]
    paper.table([[dim("recipe"), *(dim(measure) for measure in measures)], *rows], indent=2)


def _by_category(paper: Paper, recipes: Sequence[RecipeResult], level: str, measure: str) -> None:
    categories = list(_level(recipes[0], level).categories)
    if len(categories) < 2 or len(categories) > 8:
        return
    rows = [
        [
            recipe.name,
            *(
                f"{_level(recipe, level).categories[category][measure]:.1f}"
                for category in categories
            ),
        ]
        for recipe in recipes
    ]
    paper.blank()
    paper.table(
        [[dim(f"{measure} by category"), *(dim(category) for category in categories)], *rows],
        indent=2,
    )


def _gains(paper: Paper, recipes: Sequence[RecipeResult]) -> None:
    compared = [recipe for recipe in recipes if recipe.gains]
    if not compared:
        return
    names = list(compared[0].gains)
    paper.heading("Points over plain FTS5 (paired bootstrap, 95 %)")
    rows = [
        [
            recipe.name,
            *(
                f"{gain.points:+.1f} [{gain.low:+.1f}, {gain.high:+.1f}]"
                for gain in recipe.gains.values()
            ),
        ]
        for recipe in compared
    ]
    paper.table([[dim("recipe"), *(dim(name) for name in names)], *rows], indent=2)


def _level(recipe: RecipeResult, level: str) -> Level:
    return recipe.turns if level == "turns" else recipe.sessions
