"""Compare memories by vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nacre.home.change import Change
from nacre.home.home import Home
from nacre.llm.calibration import calibration_of
from nacre.memories.judge import Relation, compare
from nacre.memories.placement import confirm, put, rarity_of
from nacre.values.memory import Memory, Retirement
from nacre.values.reports import StoreOutcome

AUTO_LINKS = 3
"""Number of nearest memories to link."""

_MAX_NEIGHBOURS = 24


def settle(home: Home, rows: Sequence[int]) -> dict[str, StoreOutcome]:
    """Link memories to their nearest neighbours, and compare new memories with these.

    Return the outcome for each changed memory. The links exist only in the index, not in files.
    """
    memories_by_row = home.memories.by_rows(rows)
    memories = {row: memory for row, memory in memories_by_row.items() if not memory.superseded_by}
    near = {row: _neighbours(home, row, memory) for row, memory in memories.items()}
    limits = calibration_of(home.vectors.model(), home.vectors.seen())
    with home.transaction():
        for row, memory in memories.items():
            home.database.yield_write_lock()
            alike = {other.id: cosine for other, cosine in near[row] if cosine >= limits.link}
            home.comparisons.link_alike(memory.id, dict(list(alike.items())[:AUTO_LINKS]))
    pending = home.comparisons.waiting(rows)
    if not pending:
        return {}
    row_of = {memory.id: row for row, memory in memories.items()}
    outcomes = {}
    with home.change("settle", why="compared by similarity") as change, change.transaction():
        for memory_id in home.comparisons.waiting(rows):
            if change.yield_locks():
                pending = home.comparisons.waiting(rows)
            if memory_id not in pending:
                continue  # handled by another process
            home.comparisons.settled(memory_id)
            outcome = _settle(change, memory_id, near.get(row_of.get(memory_id, 0), []))
            if outcome:
                outcomes[memory_id] = outcome
    return outcomes


def _neighbours(home: Home, row: int, memory: Memory) -> list[tuple[Memory, float]]:
    cosines = {hit.row: hit.cosine for hit in home.vectors.near_memory(row, limit=_MAX_NEIGHBOURS)}
    others = home.memories.by_rows(list(cosines))
    return [
        (others[other], cosine)
        for other, cosine in cosines.items()
        if other in others
        and others[other].shares_place(memory)
        and not others[other].superseded_by
    ]


def _settle(
    change: Change, memory_id: str, near: Sequence[tuple[Memory, float]]
) -> StoreOutcome | None:
    home = change.home
    memory = home.memories.find(memory_id)
    cosines = {other.id: cosine for other, cosine in near}
    present = [home.memories.find(other) for other in cosines]
    others = [other for other in present if other and other.is_active]
    if memory is None or not memory.is_active or not others:
        return None
    vectors = home.vectors
    comparisons = compare(
        memory,
        others,
        cosines=cosines,
        model=vectors.model(),
        seen=vectors.seen(),
        rarity=rarity_of(home),
    )
    repeated = next((comparison for comparison in comparisons if comparison.repeats), None)
    if repeated:
        remaining, absorbed = repeated.other, memory
        if remaining.last_said > absorbed.last_said:
            remaining, absorbed = absorbed, remaining
        if absorbed.is_owners:
            confirm(change, remaining, absorbed)
        reason = f"says the same as {remaining.id}"
        retired = replace(absorbed, retired=Retirement(change.home.now(), reason))
        change.put([retired], [change.entry("retire", memory=absorbed.id, reason=reason)])
        return StoreOutcome("known", remaining.id, repeated.verdict.reason)
    if any(
        comparison.verdict.relation not in (Relation.RELATED, Relation.UNRELATED)
        for comparison in comparisons
    ):
        return put(change, memory, comparisons)
    return None
