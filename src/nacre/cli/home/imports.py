"""``nacre import``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre.cli import progress
from nacre.cli.command import command
from nacre.cli.formats import Record, count
from nacre.cli.home.ingest_report import ingest_record, render_ingest
from nacre.cli.operations import resumable
from nacre.cli.options import project_slug, readable
from nacre.cli.paper import Paper, Span, bold, dim
from nacre.cli.request_options import argument, option
from nacre.cli.run import Run
from nacre.portability import importing, requests

if TYPE_CHECKING:
    from nacre.portability.importing import ImportPlan, ImportReport
    from nacre.portability.sources.source import Skipped

_SOURCES = (
    "nacre", "agenr", "claude-mem", "mem0", "basic-memory", "mcp-memory-service", "letta", "agent-knowledge",
    "clawxmemory", "claude-memory", "openclaw", "codex-memories", "instructions", "chatgpt", "claude-ai",
)  # fmt: skip


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
    "import", "source", "--from", type=click.Choice(["auto", *_SOURCES]),
    help="What wrote it; recognised by its content where that is possible.",
)  # fmt: skip
@option("import", "trust")
@option("import", "project", help="Put everything into this project; . is the one of this folder.")
@click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")
@option("import", "vectors", help="Leave the vectors to the next ingest.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def import_(run: Run, /, path: Path, source: str, project: str | None, dry_run: bool, yes: bool, **more: bool) -> None:
    """Take in what another memory or an account's export holds.

    What comes in is untrusted unless you say --trust: it is found when you search, it is never put before an agent by
    itself, and it ends nothing that is here. A second import of the same adds nothing. On a terminal it asks first.
    PATH is a file or folder, or - for standard input.
    """
    with readable(path) as file:
        _import(run, file, source, project, dry_run=dry_run, yes=yes, **more)


def _import(
    run: Run, path: Path, source: str, project: str | None, *, dry_run: bool, yes: bool, trust: bool, vectors: bool
) -> None:
    options = requests.ImportOptions(
        path=path, source=source, trust=trust, vectors=vectors,
        project=project_slug(run.home, project) if project else None,
    )  # fmt: skip
    plan = importing.plan_import(run.home, options)
    if dry_run or plan.is_empty:
        run.answer(_import_record(plan, None, dry_run=dry_run), lambda paper: _render_plan(paper, plan))
        return
    if run.is_interactive and not yes:
        run.show(lambda paper: _render_plan(paper, plan))
        run.confirm("Take this in?")
    with progress.shown(run) as notify, resumable(run):
        report = importing.carry_out(run.home, plan, notify)
    run.exit_code = 1 if report.ingest and report.ingest.problems else 0
    run.answer(_import_record(plan, report, dry_run=False), lambda paper: _render_import(paper, plan, report))


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
        "skipped": [{"where": item.where, "reason": item.reason, "count": item.count} for item in plan.skipped],
        "left_out": [{"reason": reason, "count": number} for reason, number in _left_out(plan).items()],
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
            ("to update", f"{actions['update']:,}, edited there since" if actions["update"] else ""),
            ("to trust", f"{actions['trust']:,} imported before" if actions["trust"] else ""),
            ("to bring back", f"{actions['bring back']:,} that an undo took out" if actions["bring back"] else ""),
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
        paper.line("Nothing new in it." if plan.steps else "There is nothing in it to take in.", indent=2)


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
            ("kinds", ", ".join(f"{number:,} {kind}" for kind, number in plan.kinds.items()) if report.added else ""),
            ("known", ", ".join(text for text in known if text)),
            ("trusted now", f"{report.trusted:,}" if report.trusted else ""),
            ("back again", f"{report.brought_back:,} that an undo took out" if report.brought_back else ""),
            ("duplicates", f"{repeated:,}" if repeated else ""),
            ("sessions", f"{report.sessions:,} with {report.turns:,} turns" if report.sessions else ""),
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
    return f"{count(len(plan.transcripts), 'file')}, read as nacre ingest reads them" if plan.transcripts else ""


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
