"""How memories hang together, told by their links alone: which are in the middle, which stand alone, and all in brief.

No model is asked. Ranked by the number of links, as the seed does (seed facts 2.2); a link of mere likeness counts
where two are even.
"""

from __future__ import annotations

from datetime import timedelta

from nacre.home.home import Home
from nacre.home.lookup import projects
from nacre.memories.requests import ConnectionsRequest
from nacre.memories.scan import catch_up
from nacre.memories.store import list_active
from nacre.values.memory import Kind
from nacre.values.recall import Filter
from nacre.views import Connected, Connections

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
