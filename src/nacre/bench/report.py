"""Results as tables for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nacre.bench.scoring import MEASURES
from nacre.cli.paper import Paper, bold, dim

if TYPE_CHECKING:
    from nacre.bench.locks import JobHolds
    from nacre.bench.machine import Machine
    from nacre.bench.retrieval import Level, RecipeResult, RetrievalResult
    from nacre.bench.scale import ScaleResult
    from nacre.bench.silence import SilenceResult
    from nacre.bench.speed import Latency, SpeedResult
    from nacre.bench.writers import WritersResult

_TURN_MEASURES = MEASURES
_SESSION_MEASURES = ("hit@1", "hit@5", "recall@5", "recall@10", "all@10", "mrr")


def render_retrieval(paper: Paper, result: RetrievalResult, machine: Machine) -> None:
    """Overall figures, figures by category, gains over the baseline, latency."""
    paper.line(
        bold(result.suite), f": {result.questions:,} questions, {result.turns:,} turns, {result.sessions:,} sessions, ",
        f"{result.haystacks} homes; figures in percent",
    )  # fmt: skip
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
    rows = [[recipe.name, f"{recipe.p50_ms:.1f}", f"{recipe.p95_ms:.1f}"] for recipe in result.recipes]
    paper.table([[dim("recipe"), dim("p50"), dim("p95")], *rows], indent=2)
    render_machine(paper, machine)


def render_silence(paper: Paper, suite: str, result: SilenceResult, machine: Machine) -> None:
    """How often recall shows nothing, and what that costs."""
    paper.line(bold(suite), f": {result.questions:,} questions that have an answer; figures in percent")
    paper.heading("Nothing shown for what is not there")
    rows = [[silent.kind, f"{silent.silent:.1f}", f"{silent.asked} questions"] for silent in result.silent]
    paper.table(rows, indent=2)
    paper.heading("recall@10 for what is there")
    paper.table(
        [
            ["everything that matches", f"{result.found:.1f}", ""],
            ["what recall shows", f"{result.answered:.1f}", f"{result.answered - result.found:+.1f}"],
        ],
        indent=2,
    )
    paper.heading("If the border of confidence lay elsewhere")
    rows = [[f"{trade.border:.1f}", f"{trade.silent:.1f}", f"{-trade.lost:+.1f}"] for trade in result.curve]
    header = [dim("border"), dim("silent where nothing is"), dim("points of recall@10")]
    paper.table([header, *rows], indent=2)
    render_machine(paper, machine)


def _table(paper: Paper, recipes: Sequence[RecipeResult], level: str, measures: Sequence[str]) -> None:
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
        [recipe.name, *(f"{_level(recipe, level).categories[category][measure]:.1f}" for category in categories)]
        for recipe in recipes
    ]
    paper.blank()
    paper.table([[dim(f"{measure} by category"), *(dim(category) for category in categories)], *rows], indent=2)


def _gains(paper: Paper, recipes: Sequence[RecipeResult]) -> None:
    compared = [recipe for recipe in recipes if recipe.gains]
    if not compared:
        return
    names = list(compared[0].gains)
    paper.heading("Points over plain FTS5 (paired bootstrap, 95 %)")
    rows = [
        [recipe.name, *(f"{gain.points:+.1f} [{gain.low:+.1f}, {gain.high:+.1f}]" for gain in recipe.gains.values())]
        for recipe in compared
    ]
    paper.table([[dim("recipe"), *(dim(name) for name in names)], *rows], indent=2)


def _level(recipe: RecipeResult, level: str) -> Level:
    return recipe.turns if level == "turns" else recipe.sessions


def render_speed(paper: Paper, result: SpeedResult, machine: Machine) -> None:
    """Ingest, recall and start."""
    paper.heading("Ingest as a process of its own")
    rows = [
        [
            ingest.name,
            f"{ingest.searchable_seconds:.1f} s",
            f"{ingest.searchable_mb_per_second:.0f} MB/s",
            f"{ingest.seconds:.1f} s",
            f"{ingest.megabytes_per_second:.0f} MB/s",
            f"{ingest.cpu_seconds:.1f} s",
            f"{ingest.peak_mb:.0f} MB",
            f"{ingest.turns:,}",
        ]
        for ingest in result.ingests
    ]
    header = [dim(name) for name in ("", "searchable", "", "whole command", "", "CPU", "memory", "turns")]
    paper.table([header, *rows], indent=2)
    paper.heading(f"Recall at {result.turns:,} turns and {result.passages:,} passages, warm, in this process")
    _latencies(paper, result.recalls)
    paper.line(dim(result.note), indent=2)
    paper.heading(f"Contexts with {result.memories:,} memories, warm, in this process")
    _latencies(paper, result.contexts)
    paper.heading("Whole processes, median of seven")
    paper.table([[start.name, f"{start.median_ms:.0f} ms"] for start in result.starts], indent=2)
    render_machine(paper, machine)


def _latencies(paper: Paper, latencies: Sequence[Latency]) -> None:
    rows = [
        [latency.name, f"p50 {latency.p50_ms:.1f} ms", f"p95 {latency.p95_ms:.1f} ms", f"{latency.queries} questions"]
        for latency in latencies
    ]
    paper.table(rows, indent=2)


def render_scale(paper: Paper, result: ScaleResult, machine: Machine) -> None:
    """A line for each size of the home."""
    paper.heading(f"Recall over turns, warm, grown from {result.material:,} real ones")
    rows = [
        [
            f"{size.turns:,} turns",
            f"lexical p50 {size.lexical.p50:.1f}, p95 {size.lexical.p95:.1f} ms",
            f"all lanes p50 {size.all_lanes.p50:.1f}, p95 {size.all_lanes.p95:.1f} ms",
            f"text {size.text_bytes:.0f}, vectors {size.vector_bytes:.0f} bytes a turn",
            f"{size.memory_mb:.0f} MB, mapped {size.mapped_mb:.0f}",
            f"{size.shards} shards, made in {size.indexing_seconds:.0f} s",
        ]
        for size in result.sizes
    ]
    paper.table(rows, indent=2)
    paper.line(dim(result.note), indent=2)
    render_machine(paper, machine)


def render_writers(paper: Paper, result: WritersResult, machine: Machine) -> None:
    """What many clients got done at once."""
    clients = f"{result.processes} processes and {result.threads} threads"
    paper.heading(f"{clients}, {result.seconds:.0f} seconds: {result.stores_per_second:.0f} durable stores a second")
    spreads = {
        "store": result.stores, "recall": result.recalls, "update of one memory": result.updates,
        "write lock held": result.write_lock, "vault lock held": result.vault_lock,
    }  # fmt: skip
    rows = [
        [
            name,
            f"p50 {one.p50:.0f} ms",
            f"p95 {one.p95:.0f} ms",
            f"p99 {one.p99:.0f} ms",
            f"longest {one.longest:.0f} ms",
            f"{one.count:,} times",
        ]
        for name, one in spreads.items()
    ]
    paper.table(rows, indent=2)
    each = 1000 * result.cpu_seconds / max(1, result.stores.count)
    paper.line(f"The clients used {result.cpu_seconds:.1f} s of CPU in all, {each:.1f} ms for each store.", indent=2)
    told = ", ".join(f"{count:,} {name}" for name, count in sorted(result.outcomes.items()))
    paper.line(f"Answers: {told or 'none'}.", indent=2)
    paper.line(f"All was in files and index {result.settled_seconds:.1f} s after the last one.", indent=2)
    errors = ", ".join(f"{count:,} × {name}" for name, count in sorted(result.errors.items()))
    paper.line(f"Errors: {errors or 'none'}.", indent=2)
    for text in result.wrong or ("Everything acknowledged is there once; index and vault agree.",):
        paper.line(text, indent=2)
    render_machine(paper, machine)


def render_locks(paper: Paper, size: int, jobs: Sequence[JobHolds], machine: Machine) -> None:
    """How long each job held the two locks."""
    paper.heading(f"Locks held at a time, in milliseconds, {size:,} sessions and as many memories")
    rows = [["job", "seconds", "write lock", "p50", "p99", "longest", "vault lock", "p50", "p99", "longest"]]
    for job in jobs:
        locks = (
            [f"{one.count:,} ×", *(f"{figure:.0f}" for figure in (one.p50, one.p99, one.longest))]
            for one in (job.write, job.vault)
        )
        rows.append([job.job, f"{job.seconds:.1f}", *(cell for cells in locks for cell in cells)])
    paper.table(rows, indent=2)
    render_machine(paper, machine)


def render_machine(paper: Paper, machine: Machine) -> None:
    """What was measured on."""
    paper.blank()
    paper.line(
        dim(
            f"{machine.processor}, {machine.cores} cores, {machine.system}, Python {machine.python}, "
            f"nacre {machine.commit or 'installed'}"
        )
    )
