"""Memories that were used together."""

from __future__ import annotations

from nacre.home.home import Home
from nacre.memories.requests import EdgesRequest
from nacre.memories.scan import catch_up
from nacre.memories.store import get
from nacre.memories.usage import today
from nacre.views import UsedTogether


def edges(home: Home, asked: EdgesRequest) -> list[UsedTogether]:
    """Pairs of active memories that were used together, the strongest first; of one memory, where it is named.

    A weight grows by .1 a session in which both were used, and loses a twentieth a day (seed facts 1.2.4). Raises
    NotFound, Conflict.
    """
    catch_up(home)
    if asked.reference is None:
        found = home.co_recall.strongest(today(home), asked.limit)
    else:
        found = home.co_recall.of([get(home, asked.reference).id], today(home))[: asked.limit]
    ids = sorted({memory for edge in found for memory in (edge.memory, edge.other)})
    memories = {one.id: one for one in home.memories.rows_of(ids).values()}
    return [
        UsedTogether(memories[edge.memory], memories[edge.other], edge.weight, edge.sessions)
        for edge in found
        if edge.memory in memories and edge.other in memories
    ]
