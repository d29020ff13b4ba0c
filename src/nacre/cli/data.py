"""``nacre data``, ``nacre sync`` and ``nacre admin db``."""

from __future__ import annotations

import sys
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nacre.base.json import to_plain
from nacre.care import database
from nacre.cli import output
from nacre.cli.command import Group, Paper, Run, Span, command, dim
from nacre.cli.learn import render_ingest
from nacre.cli.options import (
    SHORT_ID,
    YES,
    Record,
    argument,
    count,
    day,
    flag,
    option,
    perform,
    project_slug,
    readable,
    resumable,
    size,
)
from nacre.cli.status import answer_checks
from nacre.data import backup as backups
from nacre.data import export as exporting
from nacre.data import imports
from nacre.data import sync as syncing
from nacre.home import archive as home_archive
from nacre.memories import edit
from nacre.vault.documents import MergeOutcome

if TYPE_CHECKING:
    from nacre.data.imports import ImportPlan


@command("archive", examples=["nacre data archive"])
def archive(run: Run) -> None:
    """Show the archived transcripts, and transcripts that tools will delete soon.

    Every ingest compresses the files it read, removes their secrets and archives them, so that transcripts deleted by
    a tool are kept.
    nacre admin db rebuild reads them, and nacre sessions restore writes them back. nacre admin doctor --deep verifies
    every checksum. The settings archive.keep_days and archive.budget_mb limit the archive.
    """
    run.present(perform(run, home_archive.status), _render_status)


def _render_status(paper: Paper, status: home_archive.ArchiveStatus) -> None:
    sizes = [(tool.files, tool.raw, tool.stored) for tool in status.tools]
    files, raw, stored = map(sum, zip((0, 0, 0), *sizes, strict=True))
    if not status.enabled:
        paper.line("Transcripts are not archived: nacre config set archive.enabled true")
    if files:
        share = f" ({stored / raw:.0%})" if raw else ""
        paper.title(
            count(files, "transcript"),
            f", {size(raw)} in {size(stored)}{share}",
            dim(f" {status.folder}"),
        )
        paper.facts([(tool.tool, _describe(tool)) for tool in status.tools])
    elif status.enabled:
        paper.line("Nothing is archived yet: run nacre ingest.")
    if status.waiting:
        paper.line(f"{count(status.waiting, 'transcript')} pending until the next ingest.")
    if status.withheld:
        paper.note(
            f"{count(status.withheld, 'transcript')} archived without forgotten or excluded content"
        )


def _describe(tool: home_archive.ArchivedTool) -> str:
    deletions = f", {tool.gone:,} deleted by the tool" if tool.gone else ""
    return f"{count(tool.files, 'transcript')}{deletions}, {size(tool.stored)}, {day(tool.first)} to {day(tool.last)}"


# ----------------------------------------------------------------------------
# ``nacre data backup``.


@click.group(
    "backup",
    cls=Group,
    examples=[
        "nacre data backup create ~/nacre.zip",
        "nacre data backup verify ~/nacre.zip",
        "nacre data backup restore ~/nacre.zip",
    ],
)
def backup() -> None:
    """Back up the whole home; verify or restore a backup.

    A backup is a zip with the vault and its history, the database, settings without secrets, and a manifest of hashes.
    """


@backup.command(
    "create", examples=["nacre data backup create", "nacre data backup create /mnt/usb/nacre.zip"]
)
@argument("backup-create", "target", metavar="[FILE]", required=False)
@option("backup-create", "overwrite", "--force")
def create(run: Run, target: Path | None, overwrite: bool) -> None:
    """Write a backup of the whole home, without blocking other writers.

    Without FILE, it is written to the current folder and named after the current time.
    """
    target = target or Path(f"nacre-{datetime.now().astimezone():%Y%m%d-%H%M%S}.zip")
    report = perform(run, backups.create, target=target, overwrite=overwrite)

    def render(paper: Paper) -> None:
        paper.title("Wrote", f" {report.path} ", dim(f"({size(report.bytes)})"))
        paper.line(
            ", ".join(f"{number:,} {name}" for name, number in report.manifest.counts.items()),
            indent=2,
        )
        for note in report.manifest.notes:
            paper.note(note, indent=2)
        paper.note(
            f"to check its {count(len(report.manifest.files), 'file')}: nacre data backup verify {report.path}",
            indent=2,
        )

    run.answer(report, render)


@backup.command("verify", examples=["nacre data backup verify ~/nacre.zip"])
@argument("backup-verify", "backup", metavar="FILE")
def verify_backup(run: Run, backup: Path) -> None:
    """Verify a backup by restoring it into a separate folder; your home is not changed.

    Exits with 1 if a check fails.
    """
    answer_checks(run, perform(run, database.verify_backup, backup=backup))


@backup.command(
    "restore",
    examples=[
        "nacre data backup restore ~/nacre.zip --to ~/other",
        "nacre data backup restore ~/nacre.zip",
    ],
)
@argument("backup-restore", "backup", metavar="FILE")
@option("backup-restore", "target", "--to")
@option("backup-restore", "replace", "--force")
def restore(run: Run, backup: Path, target: Path | None, replace: bool) -> None:
    """Restore a home from a backup.

    An existing home is never overwritten. On a terminal, the command asks whether to replace the existing home. The
    existing home is then kept under another name.
    """
    home = (target or run.settings.home).expanduser().absolute()
    manifest = backups.read_manifest(backup)
    if not replace and run.is_interactive and home.is_dir() and any(home.iterdir()):
        run.confirm(
            f"Replace {home} with the backup of {manifest.created}? The existing home is kept."
        )
        replace = True
    report = perform(run, backups.restore, backup=backup, target=home, replace=replace)

    def render(paper: Paper) -> None:
        paper.title("Restored", f" {report.home} from the backup of {report.manifest.created}")
        if report.kept:
            paper.line(f"The previous home was moved to {report.kept}", indent=2)
        for note in report.manifest.notes:
            paper.note(note, indent=2)
        paper.note("nacre admin doctor --deep checks it", indent=2)

    run.answer(report, render)


# ----------------------------------------------------------------------------
# ``nacre data export``.


_FORMS = {"jsonl": "JSON lines", "zip": "Markdown files", "clawxmemory": "for ClawXMemory"}
_NAMES = {"page": "project page", "ledger": "ledger entry"}


@command(
    "export",
    examples=[
        "nacre data export memories.jsonl            # for another nacre, or for a program",
        "nacre data export vault.zip --sessions      # the Markdown files themselves, and every session",
    ],
)
@argument("export", "target", metavar="FILE", type=click.Path(path_type=Path, allow_dash=True))
@option(
    "export",
    "form",
    "--format",
    type=click.Choice(["jsonl", "clawxmemory"]),
    default=None,
    show_default=False,
    help="The format [default: by FILE's extension: .zip (Markdown files), else JSON lines]. "
    "Use clawxmemory for ClawXMemory.",
)
@option("export", "sessions")
@option("export", "project", callback=None)
@option("export", "include_retired")
@option("export", "overwrite", "--force")
def export(
    run: Run, target: Path, form: str | None, project: str | None, overwrite: bool, **selection: Any
) -> None:
    """Export your memories to one file that other programs can read.

    It contains memories with all fields, links, usage, the ledger and project pages. FILE can be - for standard output.
    Secrets are removed. nacre data import can read the JSON lines and the zip.
    """
    to_stdout = str(target) == "-"
    if to_stdout and run.as_json:
        raise click.UsageError(
            "standard output cannot carry both the export and --json: name a file, or drop --json"
        )
    options = exporting.ExportOptions(
        form=form or ("zip" if target.suffix.lower() == ".zip" else "jsonl"),
        project=project_slug(run.home, project) if project else None,
        **selection,
    )
    out = sys.stdout.buffer if to_stdout else target
    with output.progress_bar(run) as notify:
        report = exporting.export(run.home, out, options, overwrite=overwrite, on_progress=notify)
    if to_stdout:
        run.show(_render_export, report)
        return
    run.present(report, _render_export)


def _render_export(paper: Paper, report: exporting.ExportReport) -> None:
    paper.title(
        "Exported",
        f" {count(report.counts['memory'], 'memory')} to {report.path} ",
        dim(f"({_FORMS[report.form]}, {size(report.bytes)})"),
    )
    counts = [
        count(number, _NAMES.get(name, name))
        for name, number in report.counts.items()
        if number and name != "memory"
    ]
    if counts:
        paper.line(f"with {', '.join(counts)}", indent=2)
    if report.left_out:
        omitted = count(report.left_out, "retired memory")
        paper.note(f"without {omitted}; to include them: --include-retired", indent=2)
    if report.withheld:
        memories = count(report.withheld, "memory")
        paper.note(
            f"without {memories} that are untrusted or proposed by agents: {report.form} cannot mark them",
            indent=2,
        )


# ----------------------------------------------------------------------------
# ``nacre data import``.


@command(
    "import",
    examples=[
        "nacre data import ~/.claude-mem/claude-mem.db --dry-run",
        "nacre data import ~/Downloads/chatgpt-export.zip",
    ],
)
@argument("import", "path")
@option("import", "source", "--from")
@option("import", "trust")
@option("import", "project", callback=None)
@flag("--dry-run", "Only show what would be done.")
@option("import", "vectors", help="Do not compute vectors until the next ingest.")
@YES
def import_(
    run: Run, path: Path, project: str | None, dry_run: bool, yes: bool, **more: Any
) -> None:
    """Import memories from another tool or an account's export.

    Without --trust, imported memories are untrusted. Searches find untrusted memories, but agents get them only if they
    ask. Untrusted memories do not supersede your memories. Importing the same file again adds nothing. On a terminal,
    the command asks first. PATH is a file or folder, or - for standard input.
    """
    more["project"] = project_slug(run.home, project) if project else None
    with readable(path) as file:
        plan = imports.plan_import(run.home, exporting.ImportOptions(path=file, **more))
        if dry_run or plan.is_empty:
            record = _import_record(plan, _expected(plan)) | {"dry_run": dry_run}
            run.answer(record, _render_plan, plan)
            return
        if run.is_interactive and not yes:
            run.show(_render_plan, plan)
            run.confirm("Import this?")
        with output.progress_bar(run) as notify, resumable(run):
            report = imports.carry_out(run.home, plan, notify)
    report.duplicates += plan.count(imports.Action.DUPLICATE)
    run.exit_code = 1 if report.ingest and report.ingest.problems else 0
    record = _import_record(plan, report) | {"memory_ids": report.added, "dry_run": False}
    run.answer(record, _render_import, plan, report)


def _expected(plan: imports.ImportPlan) -> imports.ImportReport:
    return imports.ImportReport(
        [step.memory.id for step in plan.steps if step.action is imports.Action.ADD],
        plan.count(imports.Action.UPDATE),
        plan.count(imports.Action.TRUST),
        plan.count(imports.Action.BRING_BACK),
        plan.count(imports.Action.DUPLICATE),
        len(plan.pages),
        len(plan.entries),
        plan.sessions,
        plan.turns,
    )


def _import_record(plan: imports.ImportPlan, report: imports.ImportReport) -> Record:
    return {
        **to_plain(report),
        "source": plan.source.name,
        "path": plan.options.path,
        "trusted": plan.options.trust,
        "kinds": plan.kinds,
        "added": len(report.added),
        "newly_trusted": report.trusted,
        "known": plan.count(imports.Action.PRESENT),
        "skipped": plan.skipped,
        "transcripts": plan.transcripts,
    }


def _render_plan(paper: Paper, plan: imports.ImportPlan) -> None:
    paper.title(plan.source.label, f" in {plan.options.path}")
    _render_counts(paper, plan, _expected(plan))
    if plan.is_empty:
        paper.line(
            "It contains nothing new." if plan.steps else "It contains nothing to import.", indent=2
        )


def _render_import(paper: Paper, plan: imports.ImportPlan, report: imports.ImportReport) -> None:
    if plan.steps or not report.ingest:
        new = count(len(report.added), "memory")
        paper.title(f"Imported {new}", f" from {plan.source.label}")
    _render_counts(paper, plan, report)
    if report.added and not plan.options.trust:
        paper.note("Searches find them; --trust would treat them as your own statements.", indent=2)
    if report.ingest:
        render_ingest(paper, report.ingest, searched=False)


def _render_counts(paper: Paper, plan: imports.ImportPlan, report: imports.ImportReport) -> None:
    kinds = ", ".join(f"{number:,} {kind}" for kind, number in plan.kinds.items())
    new = count(len(report.added), "memory")
    how = "" if plan.options.trust else "; untrusted (add --trust if they are yours)"
    restored = f"{report.brought_back:,} removed by an undo" if report.brought_back else ""
    files = f"{count(len(plan.transcripts), 'file')}, as with nacre ingest"
    sessions = f"{report.sessions:,} with {report.turns:,} turns" if report.sessions else ""
    paper.facts(
        (
            ("new", f"{new} ({kinds}){how}" if report.added else ""),
            ("updated", report.updated),
            ("trusted now", report.trusted),
            ("restored", restored),
            ("known", _reasons(plan, "known")),
            ("duplicates", _reasons(plan, "duplicate") or report.duplicates),
            ("sessions", sessions),
            ("pages", report.pages),
            ("ledger", f"{report.entries:,} entries" if report.entries else ""),
            ("transcripts", files if plan.transcripts else ""),
        )
    )
    if plan.skipped:
        paper.heading("Left out")
    for reason in dict.fromkeys(item.reason for item in plan.skipped):
        items = [item for item in plan.skipped if item.reason == reason]
        more = f" and {len(items) - 3} more" if len(items) > 3 else ""
        places = ", ".join(item.where for item in items[:3])
        number = sum(item.count for item in items)
        paper.line(f"{number:,} ", Span(reason, "yellow"), f": {places}{more}", indent=2)


def _reasons(plan: ImportPlan, action: str) -> str:
    reasons = Counter(step.reason or "" for step in plan.steps if step.action.value == action)
    return ", ".join(f"{number:,} {reason}" for reason, number in reasons.most_common(4))


# ----------------------------------------------------------------------------
# ``nacre sync``.


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
    paper.title(_summary(result))
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
    if not (result.sent or result.received):
        start = "Nothing" if is_plan else "Up to date: nothing"
        return f"{start} to send or receive."
    verbs = ("would send", "would receive") if is_plan else ("sent", "received")
    parts = zip(verbs, (result.sent, result.received), strict=True)
    summary = ", ".join(f"{verb} {count(number, 'operation')}" for verb, number in parts if number)
    return f"{summary.capitalize()}."


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
    run.answer(result, Paper.title, size(result.after), dim(f" ({size(saved)} freed)"))


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
        paper.title(
            "Rebuilt",
            f" {run.settings.database} from {run.settings.vault}: {count(total, 'memory')}",
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
            paper.title("Removed", f" {run.settings.database}; the copy is {copy}")
            paper.note("To rebuild it from the vault: nacre admin db rebuild", indent=2)
        else:
            paper.line("There is no database to remove.")

    run.answer({"removed": copy is not None, "copy": copy}, render)


def _render_stats(paper: Paper, stats: database.Stats) -> None:
    kinds = dict(stats.memories)
    states = [(kinds.pop(state), state) for state in ("superseded", "retired")]
    inactive = ", ".join(f"{number:,} {state}" for number, state in states if number)
    paper.heading(f"{count(sum(kinds.values()), 'memory')}{f' ({inactive})' if inactive else ''}")
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
        )
    )
