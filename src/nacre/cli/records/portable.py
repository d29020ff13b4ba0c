"""What went out, and what came in."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from nacre.cli.records.reading import ingest_record
from nacre.cli.records.values import Record

if TYPE_CHECKING:
    from nacre.portability.exporting import ExportReport
    from nacre.portability.importing import ImportPlan, ImportReport


def export_record(report: ExportReport) -> Record:
    """What went out."""
    return {
        "path": report.path,
        "format": report.form,
        "counts": report.counts,
        "left_out": report.left_out,
        "bytes": report.bytes,
    }


def import_record(plan: ImportPlan, report: ImportReport | None, *, dry_run: bool) -> Record:
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
        "known": actions["known"],
        "duplicates": repeated,
        "skipped": [{"where": item.where, "reason": item.reason} for item in plan.skipped],
        "pages": report.pages if report else len(plan.pages),
        "ledger_entries": report.entries if report else len(plan.entries),
        "sessions": report.sessions if report else plan.sessions,
        "turns": report.turns if report else plan.turns,
        "transcripts": [str(path) for path in plan.transcripts],
        "memory_ids": report.added if report else [],
        "ingest": ingest_record(report.ingest) if report and report.ingest else None,
    }
