"""Pairs that wait for a person, what became of them, and what a model made of the queue."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from nacre.cli.records.memories import memory_record
from nacre.cli.records.values import Record, stamp

if TYPE_CHECKING:
    from nacre.review.claims import Backfill, Estimate
    from nacre.review.contradictions import JudgeReport
    from nacre.views import Pair, Settled


def pair_record(pair: Pair) -> Record:
    """Two memories and why they wait."""
    judged = pair.judged
    return {
        "conflict": pair.id,
        "older": memory_record(pair.older),
        "newer": memory_record(pair.newer),
        "why": pair.reason,
        "judge": judged.model if judged else "rules",
        "relation": judged.relation if judged else None,
        "certainty": judged.confidence if judged else None,
        "since": stamp(judged.at if judged and judged.at else pair.newer.created),
    }


def settled_record(one: Settled) -> Record:
    """What became of a pair."""
    return {
        "operation": one.operation,
        "time": stamp(one.at),
        "choice": one.choice.value,
        "judge": one.judge,
        "relation": one.relation,
        "certainty": one.confidence,
        "reason": one.reason,
        "older_id": one.older_id,
        "newer_id": one.newer_id,
        "older": memory_record(one.older) if one.older else None,
        "newer": memory_record(one.newer) if one.newer else None,
    }


def judged_record(report: JudgeReport) -> Record:
    """What a model made of what waited."""
    return dataclasses.asdict(report)


def backfill_record(report: Backfill) -> Record:
    """What became of older memories."""
    return dataclasses.asdict(report)


def estimate_record(expected: Estimate) -> Record:
    """What a backfill would cost."""
    return {
        "memories": expected.memories,
        "model": expected.model,
        "input_tokens": expected.tokens.input,
        "output_tokens": expected.tokens.output,
        "cost_usd": None if expected.cost is None else float(expected.cost),
    }
