"""What only vectors tell: memories made just now are compared by meaning, and linked with the nearest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nacre.app.comparing import Comparison, compare, last_said
from nacre.app.context import Context
from nacre.app.operating import operating
from nacre.app.placing import confirm, put
from nacre.app.writing import apply_intents, commit, entry, rest
from nacre.embed.calibration import calibration_of
from nacre.model.memory import Memory, Retirement
from nacre.model.reports import StoreOutcome
from nacre.model.session import Speaker

AUTO_LINKS = 3
"""So many nearest memories are linked (seed facts 2.1)."""

_NEIGHBOURS = 24


def settle(context: Context, rows: Sequence[int]) -> dict[str, StoreOutcome]:
    """Link the memories of some rows with those nearest to them, and compare those that are new with their neighbours.

    Returns what became of those that something became of. Links of similarity are derived: they lie in the index only.
    """
    found = context.memories.by_rows(rows)
    memories = {row: one for row, one in found.items() if not (one.superseded_by or one.is_handoff)}
    near = {row: _neighbours(context, row, memory) for row, memory in memories.items()}
    limits = calibration_of(context.vectors.model(), context.vectors.seen())
    with context.database.transaction():
        for row, memory in memories.items():
            context.database.breathe()
            alike = {other.id: cosine for other, cosine in near[row] if cosine >= limits.link}
            context.comparisons.link_alike(memory.id, dict(list(alike.items())[:AUTO_LINKS]))
    waiting = context.comparisons.waiting(rows)
    if not waiting:
        return {}
    row_of = {memory.id: row for row, memory in memories.items()}
    outcomes = {}
    with context.vault_lock:
        with context.database.transaction(), operating(context, "settle", why="compared by meaning"):
            for memory_id in context.comparisons.waiting(rows):
                if rest(context):
                    waiting = context.comparisons.waiting(rows)
                if memory_id not in waiting:
                    continue  # another process was faster
                context.comparisons.settled(memory_id)
                outcome = _settle(context, memory_id, near.get(row_of.get(memory_id, 0), []))
                if outcome:
                    outcomes[memory_id] = outcome
        apply_intents(context)
    return outcomes


def _neighbours(context: Context, row: int, memory: Memory) -> list[tuple[Memory, float]]:
    """Active memories of the same project, the nearest first."""
    found = {one.row: one.cosine for one in context.vectors.near_memory(row, limit=_NEIGHBOURS)}
    others = context.memories.by_rows(list(found))
    return [
        (others[other], cosine)
        for other, cosine in found.items()
        if other in others
        and others[other].project == memory.project
        and not (others[other].superseded_by or others[other].is_handoff)
    ]


def _settle(context: Context, memory_id: str, near: Sequence[tuple[Memory, float]]) -> StoreOutcome | None:
    """Compare a memory anew, now that its vector tells its neighbours."""
    memory = context.memories.find(memory_id)
    cosines = {other.id: cosine for other, cosine in near}
    present = [context.memories.find(other) for other in cosines]
    others = [other for other in present if other and not other.superseded_by and not other.retired]
    if memory is None or memory.superseded_by or memory.retired or not others:
        return None
    vectors = context.vectors
    found = compare(memory, others, cosines=cosines, model=vectors.model(), seen=vectors.seen())
    again = next((one for one in found if one.repeats), None)
    if again:
        return _absorb(context, memory, again)
    if any(one.replaces or one.is_replaced or one.doubts or one.is_doubted for one in found):
        return put(context, memory, found)
    return None


def _absorb(context: Context, memory: Memory, again: Comparison) -> StoreOutcome:
    """One of two that say the same goes to ``retired/``: the later one, and the other keeps where it was said."""
    kept, gone = again.other, memory
    if last_said(kept) > last_said(gone):
        kept, gone = gone, kept
    if gone.speaker is Speaker.OWNER:
        confirm(context, kept, gone)
    reason = f"says the same as {kept.id}"
    retired = replace(gone, retired=Retirement(context.now(), reason))
    commit(context, [retired], [entry(context, "retire", memory=gone.id, reason=reason)])
    return StoreOutcome("known", kept.id, again.verdict.reason)
