"""``nacre sync``."""

from __future__ import annotations

from typing import Any

import click

from nacre.care import database
from nacre.cli.command import Group, Paper, Run, bold, command, dim, joined
from nacre.cli.learn import render_ingest
from nacre.cli.operations import perform
from nacre.cli.options import SHORT_ID, YES, count, day, flag, option, size
from nacre.data import sync as syncing
from nacre.memories import edit
from nacre.vault.documents import MergeOutcome

_MAX_NOTES = 10
_OUTCOMES = {
    MergeOutcome.MERGED: "merged: {name}: {fields} changed on both sides, decided by rule",
    MergeOutcome.KEPT_TWICE: (
        "kept twice: {name}: both sides changed the same words; the other version is {note.other}; "
        "choose with nacre review resolve"
    ),
    MergeOutcome.STAYS_RETIRED: (
        "stays retired: {name}: edited elsewhere; nacre retire --restore ID makes it active"
    ),
    MergeOutcome.KEPT_EDITED: "kept: {name}: deleted on one side, edited on the other",
    MergeOutcome.RENAMED: "renamed: {name} is now {note.path}; {note.other} was taken",
    MergeOutcome.UNITED: "combined: {note.path} was created on both sides",
    MergeOutcome.KEPT_BESIDE: "two versions: {note.path}; the other is {note.other}",
    MergeOutcome.FORGOTTEN: "forgotten on another machine: {name}",
}
"""Maps each outcome to its message about a memory."""


@command(
    "sync",
    examples=[
        "nacre sync --remote git@example.org:me/memories.git",
        "nacre sync",
        "nacre sync --dry-run",
    ],
)
@option("sync", "remote", metavar="URL|NAME")
@option("sync", "dry_run")
@option("sync", "timeout_seconds", "--timeout", type=click.FloatRange(1, 3600))
@option("sync", "accept_rewritten")
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
        if note.outcome is not MergeOutcome.MERGED or note.fields:
            short = f" ({note.memory[-SHORT_ID:]})" if note.memory else ""
            sentence = _OUTCOMES[note.outcome]
            name, fields = f"{note.subject or note.path}{short}", ", ".join(note.fields)
            paper.line(f"  {sentence.format(note=note, name=name, fields=fields)}")
    paper.more(len(result.notes) - _MAX_NOTES, "; --json lists them all")
    for file in result.held:
        paper.line(f"  not sent: {file.path} {file.reason}")
    for path in result.left_out:
        paper.line(f"  left out: {path} is a symbolic link or a separate repository")
    paper.note(f"  {result.url or result.remote}, branch {result.branch}")


def _summary(result: syncing.Synced) -> str:
    is_plan = result.state == "planned"
    if not result.sent and not result.received:
        return (
            "Nothing to send or receive." if is_plan else "Up to date: nothing to send or receive."
        )
    parts = (
        f"{'would send' if is_plan else 'sent'} {count(result.sent, 'operation')}"
        if result.sent
        else "",
        f"{'would receive' if is_plan else 'received'} {count(result.received, 'operation')}"
        if result.received
        else "",
    )
    summary = joined(parts, ", ")
    return f"{summary[:1].upper()}{summary[1:]}."


# ----------------------------------------------------------------------------
# ``nacre admin db``.


@click.group("db", cls=Group, examples=["nacre admin db stats", "nacre admin db rebuild"])
def db() -> None:
    """Manage the database.

    It can always be rebuilt, because the vault has every memory.
    """


@db.command("stats", examples=["nacre admin db stats"])
def stats(run: Run) -> None:
    """Count memories, sessions, vectors and bytes, and show paths and versions."""
    run.present(perform(run, database.stats), _render_stats)


@db.command("vacuum", examples=["nacre admin db vacuum"])
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
    report = perform(run, database.rebuild, vectors=vectors)
    edit.scan(run.home)  # reports the files that the rebuild could not read
    run.exit_code = 1 if run.home.problems else 0
    total = len(run.home.memories.all_ids())

    def render(paper: Paper) -> None:
        paper.line(
            bold("Rebuilt"),
            f" {run.settings.database} from {run.settings.vault}: {count(total, 'memory', 'memories')}",
        )
        if report.files or report.problems:
            render_ingest(paper, report, searched=True)

    run.answer(report, render)


@db.command("reset", examples=["nacre admin db reset", "nacre admin db reset --yes"])
@YES
def reset(run: Run, yes: bool) -> None:
    """Remove the database, but keep the vault and a copy of the database."""
    question = f"Remove {run.settings.database}? A copy is kept."
    run.confirm(question, yes=yes, refusal="reset removes the database: add --yes")
    copy = perform(run, database.reset)

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
