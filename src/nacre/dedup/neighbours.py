"""What only vectors tell: memories made just now are compared by meaning, and linked with the nearest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nacre.dedup.comparison import Comparison, compare, last_said
from nacre.dedup.judge import Relation
from nacre.dedup.placement import confirm, put, rarity_of
from nacre.embed.calibration import calibration_of
from nacre.home.change import Change
from nacre.home.home import Home
from nacre.values.memory import Memory, Retirement
from nacre.values.reports import StoreOutcome
from nacre.values.session import Speaker

AUTO_LINKS = 3
"""So many nearest memories are linked (seed facts 2.1)."""

_NEIGHBOURS = 24


def settle(home: Home, rows: Sequence[int]) -> dict[str, StoreOutcome]:
    """Link the memories of some rows with those nearest to them, and compare those that are new with their neighbours.

    Returns what became of those that something became of. Links of similarity are derived: they lie in the index only.
    """
    found = home.memories.by_rows(rows)
    memories = {row: one for row, one in found.items() if not one.superseded_by}
    near = {row: _neighbours(home, row, memory) for row, memory in memories.items()}
    limits = calibration_of(home.vectors.model(), home.vectors.seen())
    with home.database.transaction():
        for row, memory in memories.items():
            home.database.yield_write_lock()
            alike = {other.id: cosine for other, cosine in near[row] if cosine >= limits.link}
            home.comparisons.link_alike(memory.id, dict(list(alike.items())[:AUTO_LINKS]))
    waiting = home.comparisons.waiting(rows)
    if not waiting:
        return {}
    row_of = {memory.id: row for row, memory in memories.items()}
    outcomes = {}
    with home.change("settle", why="compared by meaning") as change, change.transaction():
        for memory_id in home.comparisons.waiting(rows):
            if change.yield_locks():
                waiting = home.comparisons.waiting(rows)
            if memory_id not in waiting:
                continue  # another process was faster
            home.comparisons.settled(memory_id)
            outcome = _settle(change, memory_id, near.get(row_of.get(memory_id, 0), []))
            if outcome:
                outcomes[memory_id] = outcome
    return outcomes


def _neighbours(home: Home, row: int, memory: Memory) -> list[tuple[Memory, float]]:
    """Active memories of the same project, the nearest first."""
    found = {one.row: one.cosine for one in home.vectors.near_memory(row, limit=_NEIGHBOURS)}
    others = home.memories.by_rows(list(found))
    return [
        (others[other], cosine)
        for other, cosine in found.items()
        if other in others and others[other].shares_place(memory) and not others[other].superseded_by
    ]


def _settle(change: Change, memory_id: str, near: Sequence[tuple[Memory, float]]) -> StoreOutcome | None:
    """Compare a memory anew, now that its vector tells its neighbours."""
    home = change.home
    memory = home.memories.find(memory_id)
    cosines = {other.id: cosine for other, cosine in near}
    present = [home.memories.find(other) for other in cosines]
    others = [other for other in present if other and other.is_active]
    if memory is None or not memory.is_active or not others:
        return None
    vectors = home.vectors
    found = compare(memory, others, cosines=cosines, model=vectors.model(), seen=vectors.seen(), rarity=rarity_of(home))
    again = next((one for one in found if one.repeats), None)
    if again:
        return _absorb(change, memory, again)
    if any(one.verdict.relation not in (Relation.RELATED, Relation.UNRELATED) for one in found):
        return put(change, memory, found)
    return None


def _absorb(change: Change, memory: Memory, again: Comparison) -> StoreOutcome:
    """One of two that say the same goes to ``retired/``: the later one, and the other keeps where it was said."""
    kept, gone = again.other, memory
    if last_said(kept) > last_said(gone):
        kept, gone = gone, kept
    if gone.speaker is Speaker.OWNER:
        confirm(change, kept, gone)
    reason = f"says the same as {kept.id}"
    retired = replace(gone, retired=Retirement(change.home.now(), reason))
    change.put([retired], [change.entry("retire", memory=gone.id, reason=reason)])
    return StoreOutcome("known", kept.id, again.verdict.reason)
