"""Contexts."""

from __future__ import annotations

from nacre.cli.records.answers import lane_records
from nacre.cli.records.values import Record, stamp
from nacre.values.context import ContextBlock


def context_record(block: ContextBlock) -> Record:
    """The answer of ``context``."""
    return {
        "context": block.text,
        "project": block.project,
        "gate": block.gate,
        "tokens": block.tokens,
        "items": [
            {
                "part": item.part.value, "ref": item.ref, "text": item.text, "tokens": item.tokens,
                "date": stamp(item.date), "score": item.score, "why": item.why,
            }
            for item in block.items
        ],
        "left_out": [{"part": one.part.value, "ref": one.ref, "why": one.why} for one in block.left_out],
        "lanes": lane_records(block.lanes),
        "took_ms": round(block.took_ms, 2),
    }  # fmt: skip
