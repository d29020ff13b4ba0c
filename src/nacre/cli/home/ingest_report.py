"""What an ingest reads and learns, or would, as JSON and as lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nacre.cli.formats import Record, count, seconds, size, tokens_record
from nacre.cli.home.problems import PROBLEMS_SHOWN, problem_records, render_problems
from nacre.cli.paper import Paper, bold, dim

if TYPE_CHECKING:
    from nacre.values.reports import ArchiveReport, IngestPlan, IngestReport, ModelExtraction


def ingest_record(report: IngestReport) -> Record:
    """What an ingest read and learned."""
    return {
        "files": report.files,
        "sessions": report.sessions,
        "turns": report.turns,
        "memories": len(report.memories),
        "memory_ids": list(report.memories),
        "candidates": report.candidates,
        "changed": report.changed,
        "ended": report.ended,
        "doubted": report.doubted,
        "skipped": report.skipped,
        "unrecognised": report.unrecognised,
        "left_out": report.left_out,
        "duplicates": report.duplicates,
        "decided": report.decided,
        "corrupt": report.corrupt,
        "excluded": report.excluded,
        "unknown": report.unknown,
        "empty": list(report.empty),
        "problems": problem_records(report.problems),
        "tools": report.tools,
        "bytes": report.bytes_read,
        "read_seconds": round(report.read_seconds, 3),
        "seconds": round(report.seconds, 3),
        "archived": _archived_record(report.archived),
        "vectors": {"made": report.vectors_made, "left": report.vectors_left, "note": report.vectors_note},
        **({"oversized": report.oversized} if report.oversized else {}),
        **({"extraction": _by_model_record(report.extraction)} if report.extraction else {}),
    }


def _by_model_record(report: ModelExtraction) -> Record:
    """What a language model did for extraction."""
    return {
        "model": report.model,
        "sessions": report.sessions,
        "trivial": report.trivial,
        "parts": report.parts,
        "by_rules": report.by_rules,
        "calls": report.calls,
        "tokens": tokens_record(report.tokens),
        "found": report.found,
        "held": report.held,
        "repeated": report.repeated,
        "dropped": report.dropped,
        "problem": report.problem,
        "hint": report.hint,
        "elsewhere": report.elsewhere,
    }


def plan_record(plan: IngestPlan) -> Record:
    """What an ingest would read."""
    return {
        "dry_run": True,
        "files": plan.files,
        "bytes": plan.bytes,
        "tools": plan.tools,
        "skipped": plan.skipped,
        "unrecognised": plan.unrecognised,
        "excluded": plan.excluded,
        "problems": problem_records(plan.problems),
    }


def _archived_record(report: ArchiveReport) -> Record:
    """What an ingest archived."""
    return {
        "files": report.files, "bytes": report.read, "stored": report.stored, "pruned": report.pruned,
        "seconds": round(report.seconds, 3), "problems": problem_records(report.problems),
    }  # fmt: skip


def render_ingest(paper: Paper, report: IngestReport, *, searched: bool) -> None:
    """What was read and learned, what is still to do, what went wrong."""
    if not report.files and not report.problems:
        _render_nothing_new(paper, report, searched=searched)
        _render_oddities(paper, report)
        if report.extraction:
            _render_model_problem(paper, report.extraction)
        return
    if report.files:
        rate = report.bytes_read / max(report.read_seconds, 0.001)
        shown = f" ({size(int(rate))}/s)" if report.bytes_read > 1_000_000 else ""
        took = f" in {seconds(report.read_seconds)}{shown}"
        paper.line(bold(f"Read {count(report.files, 'file')}"), f", {size(report.bytes_read)}{took}")
        _render_counts(paper, report)
    _render_oddities(paper, report)
    if report.extraction:
        _render_model_problem(paper, report.extraction)
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
            *_of_what_was_read_before(report),
            ("by a model", ", ".join(f"{number:,} {action.lower()}" for action, number in report.decided.items())),
            ("tools", ", ".join(f"{tool} {number:,}" for tool, number in sorted(report.tools.items()))),
            ("skipped", _skipped(report)),
            ("left out", _left_out(report)),
            ("archived", _archived(report)),
            ("vectors", _vectors(report)),
        ),
        indent=2,
    )


def _of_what_was_read_before(report: IngestReport) -> list[tuple[str, str]]:
    """What may be learned without a new file, too: from sessions that are over by now."""
    is_told = bool(report.files or report.memories or report.changed or report.ended)
    return [
        ("memories", _learned(report) if is_told else ""),
        ("doubts", f"{report.doubted:,} may be out of date (nacre review)" if report.doubted else ""),
        ("candidates", f"{report.candidates:,} (nacre review)" if report.candidates else ""),
        ("model", _by_model(report.extraction)),
    ]


def _by_model(report: ModelExtraction | None) -> str:
    """What a language model was asked and what came of it."""
    if report and report.elsewhere:
        return f"{count(report.elsewhere, 'session')} being read by it at the moment, for another process"
    if report is None or not report.calls:
        return ""
    read = report.tokens.input + report.tokens.cached + report.tokens.written
    dropped = sum(report.dropped.values())
    told = f"{report.model}: {count(report.sessions, 'session')}, {count(report.calls, 'call')}, "
    told += f"{read:,} + {report.tokens.output:,} tokens"
    told += f", {count(report.held, 'proposal')} held back" if report.held else ""
    return told + (f", {count(dropped, 'proposal')} of no use" if dropped else "")


def _render_model_problem(paper: Paper, report: ModelExtraction) -> None:
    """Why a language model did not do all it was asked, and that the work was done."""
    if report.problem:
        parts = f" for {report.by_rules} of {count(report.parts, 'part')}" if report.parts else ""
        is_read = report.parts and not report.by_rules
        what = (
            "what it proposed and nobody compared with its evidence waits"
            if is_read
            else "extraction went by its rules"
        )
        paper.line(f"{report.problem}; {what}{'' if is_read else parts}")
        if report.hint:
            paper.line(dim(f"hint: {report.hint}"))


def _archived(report: IngestReport) -> str:
    kept = report.archived
    pruned = f"; {count(kept.pruned, 'transcript')} given up, as the settings say" if kept.pruned else ""
    return f"{size(kept.read)} as {size(kept.stored)}, in another {kept.seconds:.1f} s{pruned}" if kept.files else ""


def _left_out(report: IngestReport) -> str:
    return f"what was forgotten, in {count(report.left_out, 'file')}" if report.left_out else ""


def _render_nothing_new(paper: Paper, report: IngestReport, *, searched: bool) -> None:
    if report.skipped > report.unrecognised:
        paper.line(f"Nothing new: {count(report.skipped - report.unrecognised, 'transcript')} read before.")
        paper.facts([*_of_what_was_read_before(report), ("vectors", _vectors(report))], indent=2)
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
        paper.line("No transcript was found in the given paths.")


def _learned(report: IngestReport) -> str:
    known = f" ({report.duplicates:,} more were known)" if report.duplicates else ""
    changed = f", {report.changed:,} brought up to date" if report.changed else ""
    ended = f", {report.ended:,} over" if report.ended else ""
    return f"{len(report.memories):,} new{known}{changed}{ended}"


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
        too_long = f" ({report.oversized:,} too long to be read)" if report.oversized else ""
        were = "was" if report.corrupt == 1 else "were"
        told = f"{count(report.corrupt, 'line')} could not be understood and {were} left out{too_long}."
        paper.line(dim(told), indent=2)
    if report.unknown:
        kinds = ", ".join(f"{name} ({number:,})" for name, number in sorted(report.unknown.items())[:5])
        paper.line(dim(f"Records of unknown type were left out: {kinds}."), indent=2)
    for path in report.empty[:PROBLEMS_SHOWN]:
        paper.line(dim(f"{path} is empty: it has no sessions yet, or lost them."), indent=2, hang=2)
