"""``python -m benchmarks extraction``."""

from __future__ import annotations

from pathlib import Path

import click

from benchmarks.dataset import DATA
from benchmarks.extraction.comparing import read_figures, render_changes, write_figures
from benchmarks.extraction.gold import NAME, as_kept
from benchmarks.extraction.labels import load_labels
from benchmarks.extraction.measuring import measure, read_memories, score
from benchmarks.extraction.report import as_markdown, extraction_record, render_extraction
from benchmarks.running import FILE, FOLDER, NEW_FILE, describe, workspace
from nacre.cli.command import TEXT, Paper, Run, command


@command(
    "extraction",
    examples=[
        "python -m benchmarks extraction",
        "python -m benchmarks extraction --compare before.json --report misses.md",
        "python -m benchmarks extraction --model scripted-gold    # losses after a perfect model",
    ],
)
@click.option(
    "--labels",
    type=FOLDER,
    help="Folder with labels (default: the bundled sessions).",
)
@click.option(
    "--transcripts",
    type=FOLDER,
    help="Folder with the sessions (default: the folder with labels).",
)
@click.option(
    "--sessions", type=TEXT, help="Only the sessions with these label names, separated by commas."
)
@click.option(
    "--memories",
    type=FILE,
    help="Score these memories (output of nacre list --json) instead of extracting.",
)
@click.option("--apart", is_flag=True, help="Use a separate home for each session.")
@click.option("--no-vectors", is_flag=True, help="Extract without the embedding model.")
@click.option(
    "--model",
    type=TEXT,
    help="Extract with this language model; scripted-gold answers with the labels.",
)
@click.option("--misses", is_flag=True, help="Also list missed labels and needless memories.")
@click.option("--report", type=NEW_FILE, help="Write a Markdown report to this file.")
@click.option("--save", type=NEW_FILE, help="Save the figures to this file, for --compare.")
@click.option("--compare", type=FILE, help="Show changes since figures saved with --save.")
@click.option(
    "--fail-under", type=click.FloatRange(0, 100), help="Exit with 1 if the mean score is lower."
)
def extraction(  # noqa: PLR0913 - one parameter an option
    run: Run,
    labels: Path | None,
    transcripts: Path | None,
    sessions: str | None,
    memories: Path | None,
    apart: bool,
    no_vectors: bool,
    model: str | None,
    misses: bool,
    report: Path | None,
    save: Path | None,
    compare: Path | None,
    fail_under: float | None,
) -> None:
    """Measure how well nacre learns from labelled sessions.

    Labels list what should be learned from a session; benchmarks/README.md describes them. Sessions are ingested into a
    temporary home with the production code. Nothing is written to your home.
    """

    folder = labels or DATA / "extraction"
    labelled = load_labels(
        folder, [name.strip() for name in (sessions or "").split(",") if name.strip()]
    )
    before = read_figures(compare) if compare else None
    if memories:
        result = score(labelled, read_memories(memories))
    else:
        with workspace(run) as (place, notify):
            result = measure(
                labelled,
                transcripts or folder,
                place,
                apart=apart,
                vectors=not no_vectors,
                model=model,
                notify=notify,
            )
    commit = describe().commit
    record = {**extraction_record(result), "commit": commit}
    if model == NAME:
        record["gold"] = score(labelled, as_kept(labelled)).score
    changes = before.changes_to(record) if before else None
    if report:
        report.write_text(as_markdown(result, commit), encoding="utf-8")
    if save:
        write_figures(save, record)
    if fail_under is not None and 100 * result.score < fail_under:
        run.exit_code = 1
        run.warnings.append(f"the mean score is {100 * result.score:.1f}, below {fail_under:g}")

    def render(paper: Paper) -> None:
        render_extraction(paper, result, misses=misses)
        if "gold" in record:
            paper.line(f"The labels' own statements score {100 * record['gold']:.1f}.")
        if changes:
            render_changes(paper, changes)

    run.answer({**record, "changes": changes.record() if changes else None}, render)
