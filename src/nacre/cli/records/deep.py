"""What deep recall answers."""

from __future__ import annotations

from nacre.cli.records.answers import lane_records, memory_hit_record
from nacre.cli.records.values import Record
from nacre.values.deep_recall import DeepResult


def deep_record(result: DeepResult, message: str | None) -> Record:
    """The answer of ``recall --deep``."""
    return {
        "query": result.query,
        "route": result.route.value,
        "project": result.project,
        "clarify": list(result.clarify),
        "candidates": [{"project": one.slug, "score": one.score, "named": one.named} for one in result.candidates],
        "hits": [memory_hit_record(hit) for hit in result.hits],
        "context": result.context,
        "steps": [
            {"name": step.name, "by": step.by.value, "outcome": step.outcome, "problem": step.problem}
            for step in result.steps
        ],
        "lanes": lane_records(result.lanes),
        "model": result.model,
        "repeated": result.repeated,
        "message": message,
        "took_ms": round(result.took_ms, 2),
    }
