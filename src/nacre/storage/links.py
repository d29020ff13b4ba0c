"""How memories are linked: the edges of front matter, of names in bodies, and of likeness."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date

from nacre.storage.database import Database, Row
from nacre.values.memory import USUAL_STRENGTH, Validity

ALIKE = "auto"
"""The origin of likeness: it is computed, and made anew whenever a memory changes."""

IN_BODY = "body"
"""The origin of a name in a text: ``[[Name]]``."""


_ALWAYS = Validity()


@dataclass(frozen=True, slots=True)
class Edge:
    """One link of the index: ``strength`` is 0 to 1, ``valid`` says when it holds, its last day excluded."""

    source: str
    rel: str
    target: str
    origin: str
    reason: str | None
    strength: float
    valid: Validity


@dataclass(frozen=True, slots=True)
class EdgeFilter:
    """Which links: those at one memory, in whatever state its other end is, or those between memories that hold.

    Without ``origins`` those that somebody made or wrote: no likeness. ``day``: those that hold on it; none: also those
    that ended. ``project``: those with an end in it.
    """

    memory: str | None = None
    relations: Sequence[str] = ()
    origins: Sequence[str] = ()
    day: date | None = None
    project: str | None = None


class Links:
    """Reads links."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def of(self, memory_id: str) -> list[Edge]:
        """Every edge that starts or ends at a memory."""
        return [as_edge(row) for row in self._db.all("list_links", id=memory_id)]

    def at(
        self, memory_ids: Collection[str], day: date | None, without: Collection[str] = (),
        among: Collection[str] | None = None,
    ) -> list[Edge]:  # fmt: skip
        """The edges that start or end at some memories and hold on a day, or at any time, in no order; no likeness.

        None leads to a memory of ``without``, and all lead to one of ``among``, where that is said.
        """
        wanted = None if among is None else json.dumps(list(among))
        rows = self._db.all("list_links_at", ids=json.dumps(list(memory_ids)), day=_text(day), among=wanted)
        return [as_edge(row) for row in rows if row[0] not in without and row[2] not in without]

    def page(self, wanted: EdgeFilter, *, limit: int, offset: int = 0) -> tuple[list[Edge], int]:
        """Some links, those of the newest memories first, and how many there are in all."""
        rows = self._db.all(
            "page_links", id=wanted.memory, rels=json.dumps(list(wanted.relations)), day=_text(wanted.day),
            origins=json.dumps(list(wanted.origins)), project=wanted.project, limit=limit, offset=offset,
        )  # fmt: skip
        return [as_edge(row) for row in rows], rows[0][-1] if rows else self._count(wanted) if offset else 0

    def _count(self, wanted: EdgeFilter) -> int:
        return self.page(wanted, limit=1)[1]

    def count(self, day: date, project: str | None = None) -> int:
        """How many links there are: what every face shows.

        A link is an edge between two memories that hold, made by somebody (in front matter) or written (a name in a
        text), and holding on the day. Likeness and use together are none. With a project: both ends in it.
        """
        row = self._db.one("count_links", day=_text(day), project=project)
        return int(row[0]) if row else 0

    def count_alike(self, project: str | None = None) -> int:
        """How many pairs of memories that hold are alike: edges that were computed."""
        row = self._db.one("count_alike", project=project)
        return int(row[0]) if row else 0

    def between(self, day: date, project: str | None) -> list[tuple[str, str, float]]:
        """The same links as (source, target, strength), in a stable order."""
        return [(row[0], row[1], row[2]) for row in self._db.all("list_links_between", day=_text(day), project=project)]

    def nodes(self, project: str | None) -> list[str]:
        """The ids of memories that hold, of a project or of all, in a stable order."""
        return [memory for (memory,) in self._db.all("list_nodes", project=project)]

    def ends(self, memory_ids: Collection[str]) -> list[Row]:
        """What is at ends of links: (id, subject, kind, project, whether superseded, whether retired, trust)."""
        return self._db.all("list_ends", ids=json.dumps(list(memory_ids)))

    def map_nodes(self, project: str | None, kinds: Collection[str], day: date | None) -> list[Row]:
        """Memories that are active, or held on a day: (id, subject, kind, project, importance, whether superseded,
        whether trusted, when it began to hold), in a stable order."""
        return self._db.all("list_map_nodes", project=project, kinds=json.dumps(list(kinds)), day=_text(day))

    def map_links(self, day: date, relations: Collection[str] = (), *, alike: bool = False) -> list[Row]:
        """All links that hold on a day, in a stable order; with ``alike`` likeness, too. :func:`as_edge` reads one."""
        return self._db.all("list_map_links", day=_text(day), rels=json.dumps(list(relations)), alike=alike)

    def of_origin(self, origin: str, project: str | None) -> list[str]:
        """The memories whose front matter has links of an origin."""
        return [memory for (memory,) in self._db.all("list_sources_of_origin", origin=origin, project=project)]

    def alike(self) -> list[Edge]:
        """The edges of likeness, which no file holds."""
        return [as_edge(row) for row in self._db.all("list_derived_links")]

    def connected(self) -> set[tuple[str, str]]:
        """Pairs of memories between which a link leads that somebody made or wrote, in whichever direction."""
        return {(source, target) for source, target in self._db.all("list_connected")}

    def state(self) -> Row:
        """Values that are others when a link is another one."""
        return self._db.one("link_state") or ()


def as_edge(row: Row) -> Edge:
    """A link from its row."""
    source, rel, target, origin, reason, strength, since, until = row[:8]
    valid = _ALWAYS
    if since or until:
        valid = Validity(since and date.fromisoformat(since), until and date.fromisoformat(until))
    return Edge(source, rel, target, origin, reason, USUAL_STRENGTH if strength is None else strength, valid)


def _text(day: date | None) -> str | None:
    return day.isoformat() if day else None
