"""Embedding models as records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nacre.cli.records.values import Record
from nacre.values.spending import DOLLAR

if TYPE_CHECKING:
    from nacre.indexing.model_switch import Lot, Plan, Standing
    from nacre.indexing.vectors import Embedded


def standing_record(standing: Standing) -> Record:
    """How the vectors stand."""
    problem, held = standing.problem, standing.held
    return {
        "wanted": standing.wanted, "switching": standing.switching,
        "host": standing.place.host or None, "local": standing.place.is_here,
        "in_use": _lot_record(standing.in_use), "other": _lot_record(standing.other),
        "problem": {"message": problem.message, "hint": problem.hint} if problem else None,
        "held": {"reason": held.reason, "message": held.message, "hint": held.hint} if held else None,
    }  # fmt: skip


def _lot_record(lot: Lot | None) -> Record | None:
    if lot is None:
        return None
    return {
        "setting": lot.setting, "model": lot.model, "state": lot.state, "dimensions": lot.dimensions,
        "passages": lot.passages, "memories": lot.memories, "waiting": lot.waiting, "bytes": lot.bytes,
    }  # fmt: skip


def plan_record(plan: Plan) -> Record:
    """What a switch takes."""
    return {
        "setting": plan.setting, "model": plan.model, "from": plan.used, "host": plan.place.host or None,
        "local": plan.place.is_here, "texts": plan.texts, "tokens": plan.tokens,
        "cost_usd": None if plan.cost is None else float(plan.cost), "asks": plan.wants_yes,
        "left_usd": plan.left / DOLLAR,
    }  # fmt: skip


def made_record(setting: str, made: Embedded) -> Record:
    """What was made."""
    return {"setting": setting, "made": made.made, "left": made.left, "tokens": made.tokens, "note": made.note}
