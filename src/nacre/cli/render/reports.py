"""Reports for people: an ingest, checks, statistics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nacre.cli.paper import Paper, Span, bold, dim
from nacre.cli.render.words import count, day, seconds, size

if TYPE_CHECKING:
    from nacre.health.database import Stats
    from nacre.health.proofs.finding import Proof
    from nacre.settings import Settings
    from nacre.values.reports import Check, IngestPlan, IngestReport, ModelExtraction, Problem

_MARKS = {"ok": Span("ok", "green"), "warning": Span("warning", "yellow"), "failure": Span("failure", "bold red")}
_PROBLEMS_SHOWN = 20


def render_ingest(paper: Paper, report: IngestReport, *, searched: bool) -> None:
    """What was read and learned, what is still to do, what went wrong."""
    if not report.files and not report.problems:
        _render_nothing_new(paper, report, searched=searched)
        _render_oddities(paper, report)
        return
    if report.files:
        rate = report.bytes_read / max(report.read_seconds, 0.001)
        shown = f" ({size(int(rate))}/s)" if report.bytes_read > 1_000_000 else ""
        took = f" in {seconds(report.read_seconds)}{shown}"
        paper.line(bold(f"Read {count(report.files, 'file')}"), f", {size(report.bytes_read)}{took}")
        _render_counts(paper, report)
    _render_oddities(paper, report)
    if report.extraction:
        render_model_problem(paper, report.extraction)
    render_problems(paper, report.problems, rest="everything else was read" if report.files else "nothing was read")


def render_plan(paper: Paper, plan: IngestPlan) -> None:
    """What an ingest would read."""
    if plan.files:
        paper.line(bold(f"Would read {count(plan.files, 'file')}"), f", {size(plan.bytes)}")
    else:
        paper.line("Nothing new to read.")
    paper.facts(
        (
            ("tools", ", ".join(f"{tool} {number:,}" for tool, number in sorted(plan.tools.items()))),
            ("unchanged", f"{plan.skipped - plan.unrecognised:,}" if plan.skipped > plan.unrecognised else ""),
            ("no transcripts", f"{plan.unrecognised:,}" if plan.unrecognised else ""),
            ("excluded", f"{sum(plan.excluded.values()):,}" if plan.excluded else ""),
        ),
        indent=2,
    )
    render_problems(paper, plan.problems, rest="everything else can be read")


def _render_counts(paper: Paper, report: IngestReport) -> None:
    paper.facts(
        (
            ("sessions", f"{report.sessions:,}"),
            ("turns", f"{report.turns:,}"),
            ("memories", _learned(report)),
            ("model", _by_model(report.extraction)),
            ("by a model", ", ".join(f"{number:,} {action.lower()}" for action, number in report.decided.items())),
            ("tools", ", ".join(f"{tool} {number:,}" for tool, number in sorted(report.tools.items()))),
            ("skipped", _skipped(report)),
            ("left out", _left_out(report)),
            ("archived", _archived(report)),
            ("vectors", _vectors(report)),
        ),
        indent=2,
    )


def _by_model(report: ModelExtraction | None) -> str:
    """What a language model was asked and what came of it."""
    if report is None or not report.calls:
        return ""
    read = report.tokens.input + report.tokens.cached + report.tokens.written
    dropped = sum(report.dropped.values())
    told = f"{report.model}: {count(report.sessions, 'session')}, {count(report.calls, 'call')}, "
    told += f"{read:,} + {report.tokens.output:,} tokens"
    return told + (f", {count(dropped, 'proposal')} not borne out" if dropped else "")


def render_model_problem(paper: Paper, report: ModelExtraction) -> None:
    """Why a language model did not do all it was asked, and that the work was done."""
    if report.problem:
        parts = f" for {report.by_rules} of {count(report.parts, 'part')}" if report.parts else ""
        paper.line(f"{report.problem}; extraction went by its rules{parts}")
        if report.hint:
            paper.line(dim(f"hint: {report.hint}"))


def _archived(report: IngestReport) -> str:
    kept = report.archived
    pruned = f"; {count(kept.pruned, 'transcript')} given up, as the settings say" if kept.pruned else ""
    return f"{size(kept.read)} as {size(kept.stored)}, in another {kept.seconds:.1f} s{pruned}" if kept.files else ""


def _left_out(report: IngestReport) -> str:
    return f"what was forgotten, in {count(report.left_out, 'file')}" if report.left_out else ""


def render_problems(paper: Paper, problems: Sequence[Problem], *, rest: str = "everything else was read") -> None:
    """What could not be read, and the way out."""
    if not problems:
        return
    paper.heading(f"{count(len(problems), 'problem')}; {rest}")
    for problem in problems[:_PROBLEMS_SHOWN]:
        hint = f" ({problem.hint})" if problem.hint else ""
        paper.line(Span(problem.path, "yellow"), f": {problem.message}{hint}", indent=2, hang=2)
    if len(problems) > _PROBLEMS_SHOWN:
        paper.line(dim(f"and {len(problems) - _PROBLEMS_SHOWN} more: --json lists all"), indent=2)


def _render_nothing_new(paper: Paper, report: IngestReport, *, searched: bool) -> None:
    if report.skipped > report.unrecognised:
        paper.line(f"Nothing new: {count(report.skipped - report.unrecognised, 'transcript')} read before.")
        paper.facts([("vectors", _vectors(report))], indent=2)
    elif report.vectors_made or report.vectors_left:
        paper.line("No new transcripts.")
        paper.facts([("vectors", _vectors(report))], indent=2)
    elif searched:
        paper.line(bold("No transcripts were found on this machine."))
        paper.facts(
            (
                ("nacre ingest PATH", "reads files and folders you name"),
                ("nacre quickstart", "shows what nacre does with example sessions"),
                ("nacre config set ingest.roots '[\"PATH\"]'", "has it look there as well"),
            ),
            indent=2,
        )
    else:
        paper.line("There is no transcript in what was named.")


def _learned(report: IngestReport) -> str:
    known = f" ({report.duplicates:,} more were known)" if report.duplicates else ""
    return f"{len(report.memories):,} new{known}"


def _skipped(report: IngestReport) -> str:
    unchanged = report.skipped - report.unrecognised
    told = [
        f"{unchanged:,} unchanged" if unchanged else "",
        f"{report.unrecognised:,} no transcripts" if report.unrecognised else "",
        *(f"{number:,} excluded by {why}" for why, number in sorted(report.excluded.items())),
    ]
    return ", ".join(text for text in told if text)


def _vectors(report: IngestReport) -> str:
    note = report.vectors_note
    if note and not report.vectors_made and not report.vectors_left:
        return note
    made = f"{report.vectors_made:,} texts" if report.vectors_made else ""
    left = (
        f"{report.vectors_left:,} wait" + ("" if note else " for the next nacre ingest") if report.vectors_left else ""
    )
    return "; ".join(text for text in (", ".join(text for text in (made, left) if text), note) if text)


def _render_oddities(paper: Paper, report: IngestReport) -> None:
    if report.corrupt:
        paper.line(dim(f"{count(report.corrupt, 'line')} could not be understood and were left out."), indent=2)
    if report.unknown:
        kinds = ", ".join(f"{name} ({number:,})" for name, number in sorted(report.unknown.items())[:5])
        paper.line(dim(f"Records of unknown type were left out: {kinds}."), indent=2)
    for path in report.empty[:_PROBLEMS_SHOWN]:
        paper.line(dim(f"{path} is empty: it has no sessions yet, or lost them."), indent=2, hang=2)


def render_checks(paper: Paper, checks: Sequence[Check]) -> None:
    """One line a check, and what to do where it is not well."""
    width = max((len(check.name) for check in checks), default=0)
    for check in checks:
        mark = _MARKS.get(check.state, Span(check.state))
        padded = Span(f"{mark.text:<7}".replace(" ", "\u00a0"), mark.style)
        name = f"{check.name:<{width}}".replace(" ", "\u00a0")
        paper.line(padded, "  ", bold(name), "  ", check.detail, hang=width + 11)
        if check.hint and check.state != "ok":
            paper.line(dim(check.hint), indent=width + 11)


def render_findings(paper: Paper, proofs: Sequence[Proof], repaired: int) -> None:
    """Every finding with its repair, where a line a part did not hold them all."""
    if repaired:
        paper.blank()
        paper.line(bold(f"Repaired {count(repaired, 'finding')}."))
    for proof in proofs:
        if len(proof.findings) < 2:
            continue
        paper.heading(f"{proof.area}: {count(len(proof.findings), 'finding')}")
        for finding in proof.findings[:_PROBLEMS_SHOWN]:
            paper.line(finding.sentence, indent=2, hang=2)
            paper.line(dim(finding.repair), indent=4)
        if len(proof.findings) > _PROBLEMS_SHOWN:
            paper.line(dim(f"and {len(proof.findings) - _PROBLEMS_SHOWN} more: --json lists all"), indent=2)


def render_stats(paper: Paper, stats: Stats, settings: Settings) -> None:
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
    vectors = f"{count(stats.passages, 'passage')}" + (
        f", {stats.vectors_missing:,} texts wait" if stats.vectors_missing else ""
    )
    paper.facts(
        (
            ("projects", f"{stats.projects:,}"),
            ("vectors", f"{vectors} ({stats.model})" if stats.model else vectors),
            ("vault", f"{settings.vault} ({count(stats.vault_files, 'file')})"),
            ("database", f"{settings.database} ({size(stats.database_bytes)})"),
            *([("index", f"{settings.index} ({size(stats.index_bytes)})")] if stats.index_bytes else []),
        ),
        indent=2,
    )
