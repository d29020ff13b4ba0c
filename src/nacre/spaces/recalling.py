"""One recall over several spaces: the own one, and those that ``storage.spaces`` names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from nacre.errors import NacreError
from nacre.home.home import Home
from nacre.text.passages import count_tokens
from nacre.values.memory import Scope
from nacre.values.recall import HitConfidence, Lane, LaneState, MemoryHit, RecallQuery, RecallResult

Ask = Callable[[Home, RecallQuery], RecallResult]


def with_further_spaces(home: Home, query: RecallQuery, own: RecallResult, ask: Ask) -> RecallResult:
    """An answer with what further spaces hold, the best score first, each hit with its space.

    They are asked as somebody else's: what is private there, and what was said in sessions, stays there. What is in
    several spaces under one id is told once, as the own space has it. A space that cannot be read is a lane that did
    not run.
    """
    if not home.database.is_server or not home.settings.texts("storage.spaces"):
        return own
    space = home.settings.text("storage.tenant")
    hits, lanes = [replace(hit, space=space) for hit in own.hits], list(own.lanes)
    for name, other in home.further_spaces.homes().items():
        found = other if isinstance(other, NacreError) else _asked(other, query, ask)
        if isinstance(found, NacreError):
            lanes.append(Lane(f"space {name}", LaneState.UNAVAILABLE, found.message))
            continue
        lanes.append(Lane(f"space {name}", LaneState.RAN))
        known = {hit.memory.id for hit in hits}
        hits += [replace(hit, space=name) for hit in found.hits if hit.memory.id not in known]
    hits.sort(key=lambda hit: (hit.confidence is HitConfidence.WEAK, -hit.score))
    kept = _within(hits[: query.limit], query.budget_tokens)
    return replace(
        own, hits=tuple(kept), lanes=tuple(lanes), truncated=own.truncated or len(kept) < len(hits[: query.limit]),
    )  # fmt: skip


def _asked(other: Home, query: RecallQuery, ask: Ask) -> RecallResult | NacreError:
    """What a space answers; it counts no use, and no model is asked a second time."""
    scope = Scope.PERSONAL if query.filter.scope is Scope.PRIVATE else query.filter.scope
    asked = replace(
        query, filter=replace(query.filter, scope=scope), update=False, turns=0, co_recall=False, expand=False,
        rerank=False, budget_tokens=None,
    )  # fmt: skip
    try:
        return ask(other, asked)
    except NacreError as error:
        return error


def _within(hits: Sequence[MemoryHit], budget: int | None) -> list[MemoryHit]:
    """As many hits as the token budget holds; the first one always fits."""
    kept: list[MemoryHit] = []
    left = budget or 0
    for hit in hits:
        left -= count_tokens(f"{hit.memory.subject}\n{hit.memory.content}")
        if budget and left < 0 and kept:
            break
        kept.append(hit)
    return kept
