"""The calls of models that the ledger of a home has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nacre.home.spending import fold_notes


@dataclass(frozen=True, slots=True)
class Entry:
    """Calls of a task, in the background or on request. Costs are millionths of a US dollar."""

    task: str
    is_background: bool
    calls: int
    failed: int
    input: int
    output: int
    cost: int
    unpriced: int


def entries(home: Any) -> list[Entry]:
    """Return the calls by day, task, model and whether they ran in the background."""
    fold_notes(home)
    rows = home.database.rows(
        "SELECT task, background, count(*), sum(outcome = 'failed'), sum(input), sum(output), coalesce(sum(cost), 0), "
        "sum(cost IS NULL) FROM model_calls GROUP BY day, task, model, background ORDER BY day, task, model, background"
    )
    return [Entry(task, bool(background), *sums) for task, background, *sums in rows]
