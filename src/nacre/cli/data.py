"""``nacre archive``."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre.cli import output
from nacre.cli.command import Group, Paper, Run, Span, bold, command, dim
from nacre.cli.learn import ingest_record, render_ingest
from nacre.cli.operations import perform, resumable
from nacre.cli.options import (
    Record,
    argument,
    count,
    day,
    option,
    project_slug,
    readable,
    size,
    stamp,
)
from nacre.cli.status import answer_checks, checks_record, problem_records, render_problems
from nacre.data import backup as backups
from nacre.data import export as exporting
from nacre.data import imports
from nacre.home import archive as keep
from nacre.home import retention as pruning

if TYPE_CHECKING:
    from nacre.data.backup import BackupReport, Manifest, RestoreReport
    from nacre.data.export import ExportReport
    from nacre.data.importers import Skipped
    from nacre.data.imports import ImportPlan, ImportReport
    from nacre.home.archive import ArchivedTool, ArchiveStatus
    from nacre.store.sessions import Archived
    from nacre.values.reports import Check, Problem

_SHOWN = 10


@click.group(
    "archive",
    cls=Group,
    examples=["nacre archive status", "nacre archive verify", "nacre archive prune"],
)
def archive() -> None:
    """Look after the transcripts that nacre keeps.

    Every ingest archives what it read: without secrets, compressed. What a tool deletes stays here: nacre db rebuild
    reads it, and nacre sessions restore writes it again.
    """


@archive.command("status", examples=["nacre archive status", "nacre archive status --json"])
@click.pass_obj
def status(run: Run) -> None:
    """Tell what is in the archive, what it takes, and what the tools are about to delete."""
    found: ArchiveStatus = perform(run, "archive-status")
    run.answer(_status_record(found), lambda paper: _render_status(paper, found))


@archive.command("verify", examples=["nacre archive verify", "nacre archive verify --repair"])
@click.option(
    "--repair",
    is_flag=True,
    help="Set damaged packs aside and archive again what the tools still have.",
)
@click.pass_obj
def verify(run: Run, repair: bool) -> None:
    """Read everything in the archive and compare every checksum.

    Exits with 1 when something is damaged, or with --repair could not be archived again: the next ingest tries that.
    """
    mended = 0
    left: Sequence[Problem] = ()
    with output.shown(run) as notify:
        files, problems = keep.verify(run.home, notify)
        if repair:
            mended = keep.mend(run.home) if problems else 0
            left = keep.archive(
                run.home, notify
            ).problems  # also of what was set aside by a repair that was cut short
    run.exit_code = 1 if len(problems) > mended or left else 0

    def render(paper: Paper) -> None:
        if not problems:
            paper.line(bold("Sound"), f": {files:,} transcripts, every checksum is right.")
        render_problems(
            paper, problems, rest=f"{files - len(problems):,} of {files:,} transcripts are sound"
        )
        if mended:
            rest = "" if left else "; what the tools still have is archived again"
            paper.line(f"{mended:,} were set aside{rest}.")
        render_problems(
            paper, left, rest="everything else that the tools still have is archived again"
        )

    record = {"files": files, "problems": problem_records(problems), "repaired": mended}
    run.answer({**record, "not_archived": problem_records(left)}, render)


@archive.command(
    "prune",
    examples=[
        "nacre archive prune --dry-run",
        "nacre archive prune --keep-days 365 --yes",
        "nacre archive prune",
    ],
)
@option(
    "archive-prune",
    "keep_days",
    type=click.IntRange(1),
    default=None,
    show_default=False,
    help="Keep what changed within this many days [default: archive.keep_days].",
)
@option(
    "archive-prune",
    "budget_mb",
    type=click.IntRange(1),
    default=None,
    show_default=False,
    help="Size that may be left, in megabytes [default: archive.budget_mb].",
)
@click.option("--dry-run", is_flag=True, help="Say what would go, and delete nothing.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def prune(run: Run, keep_days: int | None, budget_mb: int | None, dry_run: bool, yes: bool) -> None:
    """Delete from the archive what changed longest ago.

    Sessions, turns and memories stay; what goes can then be read again only where its tool still has it. With
    archive.keep_days or archive.budget_mb set, every ingest does this by itself.
    """
    given = keep_days or budget_mb
    settings = run.settings
    days = keep_days or (0 if given else settings.whole("archive.keep_days"))
    budget = budget_mb or (0 if given else settings.whole("archive.budget_mb"))
    if not days and not budget:
        raise click.UsageError(
            "nothing says what may go: --keep-days or --budget-mb", click.get_current_context()
        )
    chosen = pruning.choose(run.home, days, budget)
    size = sum(state.size for state in chosen)
    if chosen and not dry_run:
        refusal = "what is deleted from the archive may be nowhere else: add --yes"
        run.confirm(
            f"Delete {count(len(chosen), 'transcript')} from the archive?", yes=yes, refusal=refusal
        )
        run.home.actor.require_owner("nacre archive prune")
        pruning.prune(run.home, chosen)
    record = {
        "dry_run": dry_run,
        "pruned": [{"path": one.path, "tool": one.tool, "bytes": one.size} for one in chosen],
        "bytes": size,
    }
    run.answer(record, lambda paper: _render_pruned(paper, chosen, size, dry_run=dry_run))


def _status_record(status: ArchiveStatus) -> Record:
    """What the archive holds."""
    return {
        "enabled": status.enabled,
        "folder": str(status.folder),
        "files": sum(tool.files for tool in status.tools),
        "raw_bytes": sum(tool.raw for tool in status.tools),
        "bytes": sum(tool.stored for tool in status.tools),
        "tools": [
            {
                "tool": tool.tool,
                "files": tool.files,
                "gone": tool.gone,
                "raw_bytes": tool.raw,
                "bytes": tool.stored,
                "first": stamp(tool.first),
                "last": stamp(tool.last),
            }
            for tool in status.tools
        ],
        "waiting": status.waiting,
        "withheld": status.withheld,
        "leaving": [
            {
                "tool": one.retention.tool,
                "setting": one.retention.setting,
                "keeps_days": one.retention.days,
                "keeps_files": one.retention.files,
                "files": one.files,
                "days": None if one.days is None else round(one.days, 1),
                "archived": one.archived,
            }
            for one in status.leaving
        ],
    }


def _render_status(paper: Paper, status: ArchiveStatus) -> None:
    """What is in it, tool by tool; what is not; what the tools are about to delete."""
    files, raw, stored = (
        sum(tool.files for tool in status.tools),
        sum(tool.raw for tool in status.tools),
        sum(tool.stored for tool in status.tools),
    )
    if not status.enabled:
        paper.line("Transcripts are not archived: nacre config set archive.enabled true")
    if files:
        share = f" ({stored / raw:.0%})" if raw else ""
        paper.line(
            bold(count(files, "transcript")),
            f", {size(raw)} in {size(stored)}{share}",
            dim(f" {status.folder}"),
        )
        paper.facts([(tool.tool, _told(tool)) for tool in status.tools], indent=2)
    elif status.enabled:
        paper.line("Nothing is archived yet: nacre ingest does it.")
    if status.waiting:
        paper.line(f"{count(status.waiting, 'transcript')} wait for the next ingest.")
    if status.withheld:
        paper.line(
            dim(
                f"Of {status.withheld:,}, in which something was forgotten or excluded, only the rest is kept."
            )
        )
    for one in status.leaving:
        paper.line(f"{one.in_words()}.")
        paper.line(dim(one.retention.setting), indent=2)


def _told(tool: ArchivedTool) -> str:
    gone = f", {tool.gone:,} no longer at the tool" if tool.gone else ""
    return f"{count(tool.files, 'transcript')}{gone}, {size(tool.stored)}, {day(tool.first)} to {day(tool.last)}"


def _render_pruned(paper: Paper, chosen: Sequence[Archived], freed: int, *, dry_run: bool) -> None:
    """What went, or would."""
    if not chosen:
        paper.line("Nothing to prune.")
        return
    verb = "Would delete" if dry_run else "Deleted"
    paper.line(
        bold(f"{verb} {count(len(chosen), 'transcript')}"), f" from the archive, {size(freed)}"
    )
    for state in chosen[:_SHOWN]:
        paper.line(dim(state.path), indent=2)
    if len(chosen) > _SHOWN:
        paper.line(dim(f"and {len(chosen) - _SHOWN:,} more"), indent=2)


# ----------------------------------------------------------------------------
# ``nacre backup``.


_FILE = click.Path(path_type=Path)


@click.group(
    "backup",
    cls=Group,
    examples=[
        "nacre backup create ~/nacre.zip",
        "nacre backup verify ~/nacre.zip",
        "nacre backup restore ~/nacre.zip",
    ],
)
def backup() -> None:
    """Back up the whole home, prove a backup, bring it back.

    A backup is a zip: the vault with its history, the database, settings without secrets, and a manifest of hashes.
    """


@backup.command(
    "create", examples=["nacre backup create", "nacre backup create /mnt/usb/nacre.zip"]
)
@argument("backup-create", "target", metavar="[FILE]", required=False)
@option("backup-create", "overwrite", "--force", help="Overwrite FILE.")
@click.pass_obj
def create(run: Run, target: Path | None, overwrite: bool) -> None:
    """Write a backup of the whole home; others may go on writing meanwhile.

    Without FILE, into this folder, named after the time.
    """
    target = target or Path(f"nacre-{datetime.now().astimezone():%Y%m%d-%H%M%S}.zip")
    with output.shown(run) as notify:
        report: BackupReport = perform(
            run, "backup-create", notify, target=target, overwrite=overwrite
        )

    def render(paper: Paper) -> None:
        paper.line(bold("Wrote"), f" {report.path} ", dim(f"({size(report.bytes)})"))
        paper.line(
            ", ".join(f"{number:,} {name}" for name, number in report.manifest.counts.items()),
            indent=2,
        )
        for note in report.manifest.notes:
            paper.line(dim(note), indent=2)
        paper.line(
            dim(
                f"nacre backup verify {report.path} proves {count(len(report.manifest.files), 'file')}"
            ),
            indent=2,
        )

    run.answer(_record(report.manifest, path=str(report.path), bytes=report.bytes), render)


@backup.command("verify", examples=["nacre backup verify ~/nacre.zip"])
@argument("backup-verify", "backup", metavar="FILE")
@click.pass_obj
def verify_backup(run: Run, backup: Path) -> None:
    """Restore a backup into a folder of its own, open it and prove it; nothing here is touched.

    Exits with 1 when something in it is wrong.
    """
    with output.shown(run) as notify:
        checks: list[Check] = perform(run, "backup-verify", notify, backup=backup)
    answer_checks(run, checks, {"path": str(backup), **checks_record(checks)})


@backup.command(
    "restore",
    examples=["nacre backup restore ~/nacre.zip --to ~/other", "nacre backup restore ~/nacre.zip"],
)
@argument("backup-restore", "backup", metavar="FILE")
@option(
    "backup-restore",
    "target",
    "--to",
    help="The folder that becomes the home; without it, the one nacre uses.",
)
@option(
    "backup-restore",
    "replace",
    "--force",
    help="Also where a home is: it is kept beside the new one.",
)
@click.pass_obj
def restore(run: Run, backup: Path, target: Path | None, replace: bool) -> None:
    """Bring a backup back as a home.

    A home that is there is never overwritten: on a terminal you are asked, and it is kept aside under another name.
    """
    home = (target or run.settings.home).expanduser().absolute()
    manifest = backups.read_manifest(backup)
    if not replace and run.is_interactive and home.is_dir() and any(home.iterdir()):
        run.confirm(
            f"Put the backup of {manifest.created} in the place of {home}? What is there is kept aside."
        )
        replace = True
    with output.shown(run) as notify:
        report: RestoreReport = perform(
            run, "backup-restore", notify, backup=backup, target=home, replace=replace
        )

    def render(paper: Paper) -> None:
        paper.line(bold("Restored"), f" {report.home} from the backup of {report.manifest.created}")
        if report.kept:
            paper.line(f"What was there is {report.kept}", indent=2)
        for note in report.manifest.notes:
            paper.line(dim(note), indent=2)
        paper.line(dim("nacre doctor --deep proves it"), indent=2)

    kept = str(report.kept) if report.kept else None
    run.answer(_record(report.manifest, home=str(report.home), kept=kept), render)


def _record(manifest: Manifest, **more: object) -> dict[str, object]:
    return {
        **more,
        "created": manifest.created,
        "counts": manifest.counts,
        "files": len(manifest.files),
        "uncompressed_bytes": manifest.bytes,
        "notes": list(manifest.notes),
    }


# ----------------------------------------------------------------------------
# ``nacre export``.


_STDOUT = "-"
_FORMS = {
    "jsonl": "JSON lines",
    "markdown": "one page",
    "zip": "Markdown files",
    "clawxmemory": "for ClawXMemory",
}
_NAMES = {
    "memory": ("memory", "memories"),
    "page": ("project page", "project pages"),
    "link": ("computed edge", "computed edges"),
    "ledger": ("ledger entry", "ledger entries"),
    "session": ("session", "sessions"),
    "turn": ("turn", "turns"),
}


@command(
    "export",
    examples=[
        "nacre export memories.jsonl            # for another nacre, or for a program",
        "nacre export memories.md               # one page to read",
        "nacre export vault.zip --sessions      # the Markdown files themselves, and every session",
    ],
)
@argument("export", "target", metavar="FILE", type=click.Path(path_type=Path, allow_dash=True))
@option(
    "export",
    "form",
    "--format",
    type=click.Choice(["jsonl", "markdown", "clawxmemory"]),
    default=None,
    show_default=False,
    help="Without it, FILE's ending decides: .md is one page, .zip the Markdown files, all else JSON lines. "
    "clawxmemory is a snapshot that ClawXMemory imports.",
)
@option("export", "sessions")
@option("export", "project", help="Only this project; . is the one of this folder.")
@option("export", "include_retired")
@option("export", "overwrite", "--force", help="Overwrite FILE.")
@click.pass_obj
def export(
    run: Run,
    target: Path,
    form: str | None,
    sessions: bool,
    project: str | None,
    include_retired: bool,
    overwrite: bool,
) -> None:
    """Write everything into one file that others can read.

    Memories with every key, links, how they were used, the ledger, project pages; - writes to standard output. Secrets
    are taken out once more. nacre import reads the JSON lines and the zip again.
    """
    to_stdout = str(target) == _STDOUT
    if to_stdout and run.as_json:
        raise click.UsageError(
            "standard output can hold the export or the report: name a file, or leave --json out"
        )
    options = exporting.ExportOptions(
        form=_form(target, form),
        sessions=sessions,
        include_retired=include_retired,
        project=project_slug(run.home, project) if project else None,
    )
    out = sys.stdout.buffer if to_stdout else target
    with output.shown(run) as notify:
        report = exporting.export(run.home, out, options, overwrite=overwrite, on_progress=notify)
    if to_stdout:
        run.show(lambda paper: _render_export(paper, report))
        return
    run.answer(_export_record(report), lambda paper: _render_export(paper, report))


def _form(file: Path, form: str | None) -> str:
    ending = file.suffix.lower()
    if ending == ".zip" and form in (None, "markdown"):
        return "zip"
    if form:
        return form
    return "markdown" if ending in (".md", ".markdown") else "jsonl"


def _export_record(report: ExportReport) -> Record:
    """What went out."""
    return {
        "path": report.path,
        "format": report.form,
        "counts": report.counts,
        "left_out": report.left_out,
        "withheld": report.withheld,
        "bytes": report.bytes,
    }


def _render_export(paper: Paper, report: ExportReport) -> None:
    """What went out, and what stayed."""
    paper.line(
        bold("Exported"),
        f" {count(report.counts['memory'], 'memory', 'memories')} to {report.path} ",
        dim(f"({_FORMS[report.form]}, {size(report.bytes)})"),
    )
    told = [
        count(number, *_NAMES[name])
        for name, number in report.counts.items()
        if number and name != "memory"
    ]
    if told:
        paper.line(f"with {', '.join(told)}", indent=2)
    if report.left_out:
        stay = count(report.left_out, "retired memory stays", "retired memories stay")
        paper.line(dim(f"{stay} here: --include-retired takes them along"), indent=2)
    if report.withheld:
        stay = count(report.withheld, "memory stays", "memories stay")
        paper.line(
            dim(f"{stay} here: from outside, or proposed by agents, and the file could not say so"),
            indent=2,
        )


# ----------------------------------------------------------------------------
# ``nacre import``.


_SOURCES = (
    "nacre",
    "agenr",
    "claude-mem",
    "mem0",
    "basic-memory",
    "mcp-memory-service",
    "letta",
    "agent-knowledge",
    "clawxmemory",
    "claude-memory",
    "openclaw",
    "codex-memories",
    "instructions",
    "chatgpt",
    "claude-ai",
)


@command(
    "import",
    examples=[
        "nacre import ~/.claude-mem/claude-mem.db --dry-run",
        "nacre import ~/Downloads/chatgpt-export.zip",
        "nacre extract session.jsonl --json | nacre import - --trust",
    ],
)
@argument("import", "path")
@option(
    "import",
    "source",
    "--from",
    type=click.Choice(["auto", *_SOURCES]),
    help="What wrote it; recognised by its content where that is possible.",
)
@option("import", "trust")
@option("import", "project", help="Put everything into this project; . is the one of this folder.")
@click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")
@option("import", "vectors", help="Leave the vectors to the next ingest.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def import_(
    run: Run,
    /,
    path: Path,
    source: str,
    project: str | None,
    dry_run: bool,
    yes: bool,
    **more: bool,
) -> None:
    """Take in what another memory or an account's export holds.

    What comes in is untrusted unless you say --trust: it is found when you search, it is never put before an agent by
    itself, and it ends nothing that is here. A second import of the same adds nothing. On a terminal it asks first.
    PATH is a file or folder, or - for standard input.
    """
    with readable(path) as file:
        _import(run, file, source, project, dry_run=dry_run, yes=yes, **more)


def _import(
    run: Run,
    path: Path,
    source: str,
    project: str | None,
    *,
    dry_run: bool,
    yes: bool,
    trust: bool,
    vectors: bool,
) -> None:
    options = exporting.ImportOptions(
        path=path,
        source=source,
        trust=trust,
        vectors=vectors,
        project=project_slug(run.home, project) if project else None,
    )
    plan = imports.plan_import(run.home, options)
    if dry_run or plan.is_empty:
        run.answer(
            _import_record(plan, None, dry_run=dry_run), lambda paper: _render_plan(paper, plan)
        )
        return
    if run.is_interactive and not yes:
        run.show(lambda paper: _render_plan(paper, plan))
        run.confirm("Take this in?")
    with output.shown(run) as notify, resumable(run):
        report = imports.carry_out(run.home, plan, notify)
    run.exit_code = 1 if report.ingest and report.ingest.problems else 0
    run.answer(
        _import_record(plan, report, dry_run=False),
        lambda paper: _render_import(paper, plan, report),
    )


def _import_record(plan: ImportPlan, report: ImportReport | None, *, dry_run: bool) -> Record:
    """What was found, and what became of it; without a report, what would."""
    actions = Counter(step.action.value for step in plan.steps)
    repeated = actions["duplicate"] + (report.duplicates if report else 0)
    return {
        "source": plan.source.name,
        "path": str(plan.options.path),
        "trusted": plan.options.trust,
        "dry_run": dry_run,
        "kinds": plan.kinds,
        "added": len(report.added) if report else actions["add"],
        "updated": report.updated if report else actions["update"],
        "newly_trusted": report.trusted if report else actions["trust"],
        "brought_back": report.brought_back if report else actions["bring back"],
        "known": actions["known"],
        "duplicates": repeated,
        "skipped": [
            {"where": item.where, "reason": item.reason, "count": item.count}
            for item in plan.skipped
        ],
        "left_out": [
            {"reason": reason, "count": number} for reason, number in _left_out(plan).items()
        ],
        "pages": report.pages if report else len(plan.pages),
        "ledger_entries": report.entries if report else len(plan.entries),
        "sessions": report.sessions if report else plan.sessions,
        "turns": report.turns if report else plan.turns,
        "transcripts": [str(path) for path in plan.transcripts],
        "memory_ids": report.added if report else [],
        "ingest": ingest_record(report.ingest) if report and report.ingest else None,
    }


def _render_plan(paper: Paper, plan: ImportPlan) -> None:
    """What was found, and what is to become of it."""
    paper.line(bold(plan.source.label), f" in {plan.options.path}")
    actions = Counter(step.action.value for step in plan.steps)
    paper.facts(
        (
            ("to add", _added(plan, actions["add"])),
            (
                "to update",
                f"{actions['update']:,}, edited there since" if actions["update"] else "",
            ),
            ("to trust", f"{actions['trust']:,} imported before" if actions["trust"] else ""),
            (
                "to bring back",
                f"{actions['bring back']:,} that an undo took out" if actions["bring back"] else "",
            ),
            ("known", _reasons(plan, "known")),
            ("duplicates", _reasons(plan, "duplicate")),
            ("sessions", f"{plan.sessions:,} with {plan.turns:,} turns" if plan.sessions else ""),
            ("pages", f"{len(plan.pages):,}" if plan.pages else ""),
            ("ledger", f"{len(plan.entries):,} entries" if plan.entries else ""),
            ("transcripts", _transcripts(plan)),
        ),
        indent=2,
    )
    _render_skipped(paper, plan)
    if plan.is_empty:
        paper.line(
            "Nothing new in it." if plan.steps else "There is nothing in it to take in.", indent=2
        )


def _render_import(paper: Paper, plan: ImportPlan, report: ImportReport) -> None:
    """What came in, and what did not."""
    how = "trusted" if plan.options.trust else "untrusted"
    if plan.steps or not report.ingest:
        new = count(len(report.added), "memory", "memories")
        paper.line(bold(f"Imported {new}"), f" from {plan.source.label}, {how}")
    known = [_reasons(plan, "known"), f"{report.updated:,} updated" if report.updated else ""]
    repeated = sum(step.action.value == "duplicate" for step in plan.steps) + report.duplicates
    paper.facts(
        (
            (
                "kinds",
                ", ".join(f"{number:,} {kind}" for kind, number in plan.kinds.items())
                if report.added
                else "",
            ),
            ("known", ", ".join(text for text in known if text)),
            ("trusted now", f"{report.trusted:,}" if report.trusted else ""),
            (
                "back again",
                f"{report.brought_back:,} that an undo took out" if report.brought_back else "",
            ),
            ("duplicates", f"{repeated:,}" if repeated else ""),
            (
                "sessions",
                f"{report.sessions:,} with {report.turns:,} turns" if report.sessions else "",
            ),
            ("pages", f"{report.pages:,}" if report.pages else ""),
            ("ledger", f"{report.entries:,} entries" if report.entries else ""),
        ),
        indent=2,
    )
    _render_skipped(paper, plan)
    if report.added and not plan.options.trust:
        paper.line(dim("They are found when you search; --trust would make them yours."), indent=2)
    if report.ingest:
        render_ingest(paper, report.ingest, searched=False)


def _added(plan: ImportPlan, number: int) -> str:
    kinds = ", ".join(f"{of_kind:,} {kind}" for kind, of_kind in plan.kinds.items())
    how = "" if plan.options.trust else "; untrusted, say --trust if it is yours"
    return f"{count(number, 'memory', 'memories')} ({kinds}){how}" if number else ""


def _reasons(plan: ImportPlan, action: str) -> str:
    reasons = Counter(step.reason or "" for step in plan.steps if step.action.value == action)
    return ", ".join(f"{number:,} {reason}" for reason, number in reasons.most_common(4))


def _transcripts(plan: ImportPlan) -> str:
    return (
        f"{count(len(plan.transcripts), 'file')}, read as nacre ingest reads them"
        if plan.transcripts
        else ""
    )


def _left_out(plan: ImportPlan) -> dict[str, int]:
    """How many things were left out for each reason, the most frequent first."""
    numbers = Counter[str]()
    for item in plan.skipped:
        numbers[item.reason] += item.count
    return dict(numbers.most_common())


def _render_skipped(paper: Paper, plan: ImportPlan) -> None:
    reasons: dict[str, list[Skipped]] = {}
    for item in plan.skipped:
        reasons.setdefault(item.reason, []).append(item)
    if reasons:
        paper.heading("Left out")
    for reason, number in _left_out(plan).items():
        items = reasons[reason]
        more = f" and {len(items) - 3} more" if len(items) > 3 else ""
        places = ", ".join(item.where for item in items[:3])
        paper.line(f"{number:,} ", Span(reason, "yellow"), f": {places}{more}", indent=2, hang=2)
