"""``nacre sync``."""

from __future__ import annotations

from typing import Any

import click

from nacre.base.json import to_plain
from nacre.care import database, health
from nacre.cli.command import Group, Paper, Run, bold, command, dim
from nacre.cli.learn import render_ingest
from nacre.cli.operations import perform
from nacre.cli.options import SHORT_ID, YES, count, day, flag, option, size
from nacre.data import sync as syncing
from nacre.memories import edit
from nacre.vault import documents

_MAX_NOTES = 10
_COUNTED = {
    "merged": ("merged 1", "merged {}"),
    "kept_twice": ("1 kept twice", "{} kept twice"),
    "stays_retired": ("1 edited but still retired", "{} edited but still retired"),
    "kept_edited": (
        "1 deleted on one side, edited on the other, kept",
        "{} deleted on one side, edited on the other, kept",
    ),
    "renamed": ("1 renamed", "{} renamed"),
    "copy_kept": ("1 copy got a new id", "{} copies got new ids"),
    "united": ("1 created on both sides, combined", "{} created on both sides, combined"),
    "kept_beside": ("1 file kept in two versions", "{} files kept in two versions"),
    "forgotten": ("1 forgotten elsewhere", "{} forgotten elsewhere"),
}


@command(
    "sync",
    examples=[
        "nacre sync --remote git@example.org:me/memories.git",
        "nacre sync",
        "nacre sync --dry-run",
    ],
)
@option(
    "sync",
    "remote",
    metavar="URL|NAME",
    help="The remote: an ssh or https address, a path, or a remote's name.",
)
@option("sync", "dry_run", help="Only show what would be sent, received and merged.")
@option(
    "sync",
    "timeout_seconds",
    "--timeout",
    type=click.FloatRange(1, 3600),
    help="Seconds to wait for the remote.",
)
@option(
    "sync",
    "accept_rewritten",
    help="If the remote's history was rewritten: accept it and apply local changes on top.",
)
@flag("--quiet", "Print nothing; nacre admin doctor shows the result.")
def sync(run: Run, quiet: bool, **request: Any) -> None:
    """Sync your memories with another machine.

    Both machines use your own git repository. Pass the repository's address the first time: --remote URL. Memories that
    changed on both sides are merged field by field. If that fails, both versions are kept. Files that seem to contain a
    secret are not sent.
    """
    run.keeps_history = False
    if quiet:
        syncing.sync_quietly(run.home)
        return
    result = perform(run, syncing.sync, **request)
    run.home.problems[:] = result.problems
    run.present(result, _render_sync)


def _render_sync(paper: Paper, result: syncing.Synced) -> None:
    if result.state == "no_remote":
        paper.line("No remote is set up: your memories stay on this machine.")
        paper.note("  To sync with another machine: nacre sync --remote URL")
        return
    paper.line(bold(_summary(result)))
    for note in result.notes[:_MAX_NOTES]:
        if note.outcome is not documents.MergeOutcome.MERGED or note.fields:
            paper.line(f"  {_describe(note)}")
    paper.more(len(result.notes) - _MAX_NOTES, "; --json lists them all")
    for held in result.held:
        paper.line(f"  not sent: {held.path} {held.reason}")
    for path in result.left_out:
        paper.line(f"  left out: {path} is a symbolic link or a separate repository")
    paper.note(f"  {result.url or result.remote}, branch {result.branch}")


def _summary(result: syncing.Synced) -> str:
    planned = result.state == "planned"
    if not result.sent and not result.received:
        return (
            "Nothing to send or receive." if planned else "Up to date: nothing to send or receive."
        )
    parts = []
    if result.sent:
        parts.append(f"{'would send' if planned else 'sent'} {count(result.sent, 'operation')}")
    if result.received:
        parts.append(
            f"{'would receive' if planned else 'received'} {count(result.received, 'operation')}"
        )
    first = ", ".join(parts)
    outcomes = [note.outcome for note in result.notes]
    counted = [
        _COUNTED[outcome][outcomes.count(outcome) > 1].format(outcomes.count(outcome))
        for outcome in documents.MergeOutcome
        if outcome in outcomes
    ]
    return f"{first[:1].upper()}{first[1:]}{'; ' if counted else ''}{', '.join(counted)}."


def _describe(note: documents.Note) -> str:
    name = note.subject or note.path
    short = f" ({note.memory[-SHORT_ID:]})" if note.memory else ""
    match note.outcome:
        case documents.MergeOutcome.KEPT_TWICE:
            return (
                f"kept twice: {name}{short}: both sides changed the same words; the other version is {note.other}; "
                "choose with nacre review resolve"
            )
        case documents.MergeOutcome.STAYS_RETIRED:
            return f"stays retired: {name}{short}: edited elsewhere; nacre retire --restore {(note.memory or '')[-8:]}"
        case documents.MergeOutcome.KEPT_EDITED:
            return f"kept: {name}{short}: deleted on one side, edited on the other"
        case documents.MergeOutcome.RENAMED:
            return f"renamed: {name}{short} is now {note.path}; {note.other} was taken"
        case documents.MergeOutcome.COPY_KEPT:
            return f"copy: {note.path} has a new id; {note.other} keeps the old one"
        case documents.MergeOutcome.UNITED:
            return f"combined: {note.path} was created on both sides"
        case documents.MergeOutcome.KEPT_BESIDE:
            return f"two versions: {note.path}; the other is {note.other}"
        case documents.MergeOutcome.FORGOTTEN:
            return f"forgotten on another machine{short}"
        case _:
            return f"merged: {name}{short}: {', '.join(note.fields)} changed on both sides, decided by rule"


# ----------------------------------------------------------------------------
# ``nacre admin db``.


@click.group("db", cls=Group, examples=["nacre admin db stats", "nacre admin db rebuild"])
def db() -> None:
    """Manage the database.

    It can always be rebuilt, because the vault has every memory.
    """


@db.command("stats", examples=["nacre admin db stats", "nacre admin db stats --json"])
def stats(run: Run) -> None:
    """Count memories, sessions, vectors and bytes, and show paths and versions."""
    run.present(perform(run, database.stats), _render_stats)


@db.command("vacuum", examples=["nacre admin db vacuum", "nacre admin db vacuum --json"])
def vacuum(run: Run) -> None:
    """Shrink the database file.

    Other writers wait until it ends, which can take seconds for a large file.
    """
    result = perform(run, database.vacuum)
    if not result.is_clean:
        run.warnings.append(
            "another process is reading the database, so its log keeps old data until that process ends"
        )
    saved = max(0, result.before - result.after)
    run.answer(result, Paper.line, bold(size(result.after)), dim(f" ({size(saved)} freed)"))


@db.command(
    "rebuild", examples=["nacre admin db rebuild", "nacre admin db rebuild --yes --no-vectors"]
)
@option("db-rebuild", "vectors", help="Do not compute vectors until the next ingest.")
@YES
def rebuild(run: Run, vectors: bool, yes: bool) -> None:
    """Rebuild the database from the vault and the transcripts.

    Memories, ids and links stay the same. If the old file is readable, usage, reviews and the list of sessions that a
    writer must still read are kept. The old file is kept next to the new file, as nacre.db.old. On a terminal, the
    command asks first.
    """
    run.confirm(f"Rebuild {run.settings.database}? The old file is kept.", yes=yes)
    report = perform(run, health.rebuild, vectors=vectors)
    edit.scan(run.home)  # reports the files that the rebuild could not read
    broken = list(run.home.problems)
    run.exit_code = 1 if broken else 0
    total = len(run.home.memories.all_ids())

    def render(paper: Paper) -> None:
        paper.line(
            bold("Rebuilt"),
            f" {run.settings.database} from {run.settings.vault}: {count(total, 'memory', 'memories')}",
        )
        if report.files or report.problems:
            render_ingest(paper, report, searched=True)

    record = {
        "database": str(run.settings.database),
        "total": total,
        "broken": broken,
        **to_plain(report),
    }
    run.answer(record, render)


@db.command("reset", examples=["nacre admin db reset", "nacre admin db reset --yes"])
@YES
def reset(run: Run, yes: bool) -> None:
    """Remove the database, but keep the vault and a copy of the database."""
    question = f"Remove {run.settings.database}? A copy is kept."
    run.confirm(question, yes=yes, refusal="reset removes the database: add --yes")
    copy = perform(run, health.reset)

    def render(paper: Paper) -> None:
        if copy:
            paper.line(bold("Removed"), f" {run.settings.database}; the copy is {copy}")
            paper.note("To rebuild it from the vault: nacre admin db rebuild", indent=2)
        else:
            paper.line("There is no database to remove.")

    run.answer({"removed": copy is not None, "copy": copy}, render)


def _render_stats(paper: Paper, stats: database.Stats) -> None:
    kinds = {
        kind: number
        for kind, number in stats.memories.items()
        if kind not in ("superseded", "retired")
    }
    inactive = ", ".join(
        f"{stats.memories[state]:,} {state}"
        for state in ("superseded", "retired")
        if stats.memories[state]
    )
    paper.heading(
        f"{count(sum(kinds.values()), 'memory', 'memories')}{f' ({inactive})' if inactive else ''}"
    )
    paper.table([(f"{number:>7,}", kind) for kind, number in kinds.items()])
    turns = sum(tool.turns for tool in stats.tools)
    paper.heading(
        f"{count(sum(tool.sessions for tool in stats.tools), 'session')}, {count(turns, 'turn')}"
    )
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
        f", {stats.vectors_missing:,} texts pending" if stats.vectors_missing else ""
    )
    paper.facts(
        (
            ("projects", f"{stats.projects:,}"),
            ("links", f"{stats.links:,}"),
            ("vectors", f"{vectors} ({stats.model})" if stats.model else vectors),
            ("vault", f"{stats.vault} ({count(stats.vault_files, 'file')})"),
            (
                "database",
                stats.database
                + (f" ({size(stats.database_bytes)})" if stats.database_bytes else ""),
            ),
            ("versions", f"nacre {stats.nacre}, schema {stats.schema}, SQLite {stats.sqlite}"),
        ),
        indent=2,
    )
