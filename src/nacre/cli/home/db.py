"""``nacre db``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre.cli import progress
from nacre.cli.command import Group
from nacre.cli.formats import count, day, size, stamp
from nacre.cli.home.ingest_report import ingest_record, render_ingest
from nacre.cli.operations import perform
from nacre.cli.paper import Paper, bold, dim
from nacre.cli.request_options import argument, option
from nacre.cli.run import Run
from nacre.memories import scan

if TYPE_CHECKING:
    from nacre.health.database import Stats
    from nacre.health.database_care import DatabaseVersion, Vacuumed
    from nacre.settings import Settings
    from nacre.values.reports import IngestReport


@click.group(
    "db",
    cls=Group,
    examples=["nacre db stats", "nacre db rebuild", "nacre db backup ~/nacre-backup.db"],
    places={"export": "home.export:export"},
)
def db() -> None:
    """Look after the database.

    It can always be made anew: the vault has every memory.
    """


@db.command("stats", examples=["nacre db stats", "nacre db stats --json"])
@click.pass_obj
def stats(run: Run) -> None:
    """Count memories, sessions, vectors and bytes."""
    found: Stats = perform(run, "db-stats")
    record = asdict(found) | {
        "tools": [asdict(tool) | {"first": stamp(tool.first), "last": stamp(tool.last)} for tool in found.tools]
    }
    run.answer(record, lambda paper: _render_stats(paper, found, run.settings))


@db.command("vacuum", examples=["nacre db vacuum", "nacre db vacuum --json"])
@click.pass_obj
def vacuum(run: Run) -> None:
    """Give the space of what was deleted back to the disk.

    Others who write wait meanwhile: seconds where the file is large.
    """
    done: Vacuumed = perform(run, "db-vacuum")
    if not done.is_clean:
        run.warnings.append("another process reads the database: its log keeps old bytes until it is closed")
    record = {"bytes_before": done.before, "bytes_after": done.after, "is_clean": done.is_clean}
    saved = max(0, done.before - done.after)
    run.answer(
        record, lambda paper: paper.line(bold(size(done.after)), dim(f" ({size(saved)} given back to the disk)"))
    )


@db.command("version", examples=["nacre db version", "nacre db version --json"])
@click.pass_obj
def version(run: Run) -> None:
    """Tell which schema the database has, and which SQLite reads it."""
    found: DatabaseVersion = perform(run, "db-version")
    record = {"nacre": found.nacre, "schema": found.schema, "sqlite": found.sqlite, "database": found.database}
    run.answer(record, lambda paper: paper.facts(tuple((name, str(value)) for name, value in record.items())))


@db.command("path", examples=["nacre db path", 'sqlite3 "$(nacre db path)" .tables'])
@click.pass_obj
def path(run: Run) -> None:
    """Print where the database is."""
    settings = run.settings
    record = {"database": settings.where, "home": str(settings.home), "vault": settings.where_documents}
    run.answer(record, lambda paper: paper.verbatim(settings.where))


@db.command("rebuild", examples=["nacre db rebuild", "nacre db rebuild --yes --no-vectors"])
@option("db-rebuild", "vectors", help="Leave the vectors to the next ingest.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def rebuild(run: Run, vectors: bool, yes: bool) -> None:
    """Make the database anew from the vault and the transcripts.

    Memories, ids and links stay the same. Where the old file can be read, so do usage, reviews and what waits for a
    writer. The old file is kept beside the new one, as nacre.db.old. On a
    terminal it asks first.
    """
    if run.is_interactive and not yes:
        run.confirm(f"Make {run.settings.database} anew? The old file is kept.")
    with progress.shown(run) as notify:
        report: IngestReport = perform(run, "db-rebuild", notify, vectors=vectors)
    scan.scan(run.home)  # finds again what rebuild could not read, so that it is told
    broken = list(run.home.problems)
    run.exit_code = 1 if broken else 0
    total = len(run.home.memories.all_ids())

    def render(paper: Paper) -> None:
        paper.line(
            bold("Rebuilt"), f" {run.settings.database} from {run.settings.vault}: {count(total, 'memory', 'memories')}"
        )
        if report.files or report.problems:
            render_ingest(paper, report, searched=True)

    record = {"database": str(run.settings.database), "total": total, "broken": broken, **ingest_record(report)}
    run.answer(record, render)


@db.command("backup", examples=["nacre db backup", "nacre db backup /mnt/usb/nacre.db"])
@argument("db-backup", "target", required=False)
@click.pass_obj
def backup(run: Run, target: Path | None) -> None:
    """Write a consistent copy of the database.

    Without TARGET, beside the database, named after the time. nacre backup create takes the whole home.
    """
    written: Path = perform(run, "db-backup", target=target)
    number = written.stat().st_size
    run.answer(
        {"path": str(written), "bytes": number},
        lambda paper: paper.line(bold("Wrote"), f" {written} ", dim(f"({size(number)})")),
    )


@db.command("reset", examples=["nacre db reset", "nacre db reset --yes"])
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def reset(run: Run, yes: bool) -> None:
    """Remove the database; the vault stays, and a copy is kept beside it."""
    if not yes:
        if not run.is_interactive:
            raise click.UsageError("reset removes the database: add --yes", click.get_current_context())
        run.confirm(f"Remove {run.settings.database}? A copy is kept.")
    copy: Path | None = perform(run, "db-reset")

    def render(paper: Paper) -> None:
        if copy:
            paper.line(bold("Removed"), f" {run.settings.database}; the copy is {copy}")
            paper.line(dim("The vault has every memory: nacre db rebuild"), indent=2)
        else:
            paper.line("There is no database to remove.")

    run.answer({"removed": copy is not None, "copy": str(copy) if copy else None}, render)


def _render_stats(paper: Paper, stats: Stats, settings: Settings) -> None:
    """What a home holds."""
    kinds = {kind: number for kind, number in stats.memories.items() if kind not in ("superseded", "retired")}
    inactive = ", ".join(
        f"{stats.memories[state]:,} {state}" for state in ("superseded", "retired") if stats.memories[state]
    )
    paper.heading(f"{count(sum(kinds.values()), 'memory', 'memories')}{f' ({inactive})' if inactive else ''}")
    paper.table([(f"{number:>7,}", kind) for kind, number in kinds.items()])
    turns = sum(tool.turns for tool in stats.tools)
    paper.heading(f"{count(sum(tool.sessions for tool in stats.tools), 'session')}, {count(turns, 'turn')}")
    paper.table(
        [
            (
                f"{tool.sessions:>7,}",
                tool.tool,
                count(tool.turns, "turn"),
                dim(f"{day(tool.first)} to {day(tool.last)}"),
            )
            for tool in stats.tools
        ]
    )
    paper.heading("Home")
    vectors = f"{count(stats.passages, 'passage')} of sessions" + (
        f", {stats.vectors_missing:,} texts wait" if stats.vectors_missing else ""
    )
    paper.facts(
        (
            ("projects", f"{stats.projects:,}"),
            ("links", f"{stats.links:,}"),
            ("vectors", f"{vectors} ({stats.model})" if stats.model else vectors),
            ("vault", f"{settings.where_documents} ({count(stats.vault_files, 'file')})"),
            (
                "database",
                f"{settings.where} ({size(stats.database_bytes)})" if stats.database_bytes else settings.where,
            ),
        ),
        indent=2,
    )
