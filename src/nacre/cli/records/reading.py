"""What reading transcripts brought."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nacre.cli.records.answers import recall_record
from nacre.cli.records.archive import archived_record
from nacre.cli.records.memories import memory_record
from nacre.cli.records.values import Record

if TYPE_CHECKING:
    from nacre.setup.quickstart import QuickstartResult
    from nacre.values.model_calls import Tokens
    from nacre.values.reports import IngestPlan, IngestReport, ModelExtraction


def ingest_record(report: IngestReport) -> Record:
    """What an ingest read and learned."""
    return {
        "files": report.files,
        "sessions": report.sessions,
        "turns": report.turns,
        "memories": len(report.memories),
        "memory_ids": list(report.memories),
        "skipped": report.skipped,
        "unrecognised": report.unrecognised,
        "left_out": report.left_out,
        "duplicates": report.duplicates,
        "decided": report.decided,
        "corrupt": report.corrupt,
        "excluded": report.excluded,
        "unknown": report.unknown,
        "empty": list(report.empty),
        "problems": [{"path": item.path, "message": item.message, "hint": item.hint} for item in report.problems],
        "tools": report.tools,
        "bytes": report.bytes_read,
        "read_seconds": round(report.read_seconds, 3),
        "seconds": round(report.seconds, 3),
        "archived": archived_record(report.archived),
        "vectors": {"made": report.vectors_made, "left": report.vectors_left, "note": report.vectors_note},
        **({"extraction": by_model_record(report.extraction)} if report.extraction else {}),
    }


def by_model_record(report: ModelExtraction) -> Record:
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
        "repeated": report.repeated,
        "dropped": report.dropped,
        "problem": report.problem,
        "hint": report.hint,
    }


def tokens_record(tokens: Tokens) -> Record:
    """Tokens of calls of a language model."""
    return {"input": tokens.input, "output": tokens.output, "cached": tokens.cached, "written": tokens.written}


def quickstart_record(result: QuickstartResult) -> Record:
    """What a first look found."""
    return {
        "source": result.source,
        "tools": result.tools,
        "report": ingest_record(result.report),
        "best": [memory_record(memory) for memory in result.best],
        "answers": [{"question": answer.question, **recall_record(answer.result, None)} for answer in result.answers],
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
        "problems": [{"path": item.path, "message": item.message, "hint": item.hint} for item in plan.problems],
    }
