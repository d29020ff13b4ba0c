"""What left and what came in, for people."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from nacre.cli.paper import Paper, Span, bold, dim
from nacre.cli.render.reports import render_ingest
from nacre.cli.render.words import count, size

if TYPE_CHECKING:
    from nacre.portability.exporting import ExportReport
    from nacre.portability.importing import ImportPlan, ImportReport

_FORMS = {"jsonl": "JSON lines", "markdown": "one page", "zip": "Markdown files"}
_NAMES = {
    "memory": ("memory", "memories"), "page": ("project page", "project pages"), "link": ("link", "links"),
    "ledger": ("ledger entry", "ledger entries"), "session": ("session", "sessions"), "turn": ("turn", "turns"),
}  # fmt: skip


def render_export(paper: Paper, report: ExportReport) -> None:
    """What went out, and what stayed."""
    paper.line(
        bold("Exported"), f" {count(report.counts['memory'], 'memory', 'memories')} to {report.path} ",
        dim(f"({_FORMS[report.form]}, {size(report.bytes)})"),
    )  # fmt: skip
    told = [count(number, *_NAMES[name]) for name, number in report.counts.items() if number and name != "memory"]
    if told:
        paper.line(f"with {', '.join(told)}", indent=2)
    if report.left_out:
        stay = count(report.left_out, "retired memory stays", "retired memories stay")
        paper.line(dim(f"{stay} here: --include-retired takes them along"), indent=2)


def render_plan(paper: Paper, plan: ImportPlan) -> None:
    """What was found, and what is to become of it."""
    paper.line(bold(plan.source.label), f" in {plan.options.path}")
    actions = Counter(step.action.value for step in plan.steps)
    paper.facts(
        (
            ("to add", _added(plan, actions["add"])),
            ("to update", f"{actions['update']:,}, edited there since" if actions["update"] else ""),
            ("to trust", f"{actions['trust']:,} imported before" if actions["trust"] else ""),
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


def render_import(paper: Paper, plan: ImportPlan, report: ImportReport) -> None:
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


def _render_skipped(paper: Paper, plan: ImportPlan) -> None:
    reasons: dict[str, list[str]] = {}
    for item in plan.skipped:
        reasons.setdefault(item.reason, []).append(item.where)
    if reasons:
        paper.heading("Left out")
    for reason, places in sorted(reasons.items(), key=lambda item: -len(item[1])):
        more = f" and {len(places) - 3} more" if len(places) > 3 else ""
        paper.line(Span(reason, "yellow"), f": {', '.join(places[:3])}{more}", indent=2, hang=2)
