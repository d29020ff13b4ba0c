"""How memories hang together, told by their links alone: which are in the middle, which stand alone, and all in brief.

No model is asked. Ranked by the number of links, as the seed does (seed facts 2.2); a link of mere likeness counts
where two are even.
"""

from __future__ import annotations

from datetime import timedelta

from nacre.home.home import Home
from nacre.home.lookup import projects
from nacre.memories.requests import ConnectionsRequest, EdgesRequest
from nacre.memories.scan import catch_up
from nacre.memories.store import get, list_active
from nacre.memories.usage import today
from nacre.values.memory import Kind
from nacre.values.recall import Filter
from nacre.views import Connected, Connections, UsedTogether

RECENT = timedelta(days=30)
_MOST_DECISIONS = 5


def connections(home: Home, asked: ConnectionsRequest) -> Connections:
    """How memories hang together."""
    catch_up(home)
    found = home.memories.linked()
    alone = [one for one in found if not one[1]]
    central = sorted((one for one in found if one[1]), key=lambda one: (-one[1], -one[2], one[0]))[: asked.limit]
    unlinked = sorted(alone, key=lambda one: (-one[3], one[2], one[0]))[: asked.limit]
    memories = home.memories.by_rows([one[0] for one in (*central, *unlinked)])
    _, todos = list_active(home, Filter(kinds=(Kind.TODO,)), limit=1)
    recent = Filter(kinds=(Kind.DECISION,), since=home.now() - RECENT)
    decisions, _ = list_active(home, recent, limit=min(asked.limit, _MOST_DECISIONS))

    def shown(rows: list[tuple[int, int, int, int]]) -> tuple[Connected, ...]:
        return tuple(Connected(memories[row], links, alike) for row, links, alike, _ in rows if row in memories)

    return Connections(
        len(found), sum(one[1] for one in found) // 2, len(projects(home)), todos, len(alone), shown(central),
        shown(unlinked), tuple(decisions),
    )  # fmt: skip


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
