"""One memory with all that belongs to it: evidence, links, file, usage."""

from __future__ import annotations

from nacre.home.home import Home
from nacre.memories.evidence import evidence_of
from nacre.memories.quality import maturity
from nacre.memories.scan import catch_up
from nacre.memories.store import etag_of, get
from nacre.memories.usage import spool_use, today
from nacre.values.memory import Memory
from nacre.values.review import Usage
from nacre.views import CompanionView, LinkView, MemoryView

_COMPANIONS = 10


def look_at(home: Home, reference: str, *, update: bool = False, session: str | None = None) -> MemoryView:
    """A memory in any state with all that belongs to it. Raises NotFound, Conflict.

    ``update`` counts that as a use of it, in the host's session if there is one.
    """
    memory = read_memory(home, reference, update=update, session=session)
    file = home.files.file_of(memory.id)
    doubt = home.memories.stale().get(memory.id)
    usage = home.usage.of([memory.id]).get(memory.id, Usage())
    return MemoryView(
        memory, evidence_of(home, memory), _links(home, memory), file.path if file else None, usage,
        maturity(usage), _together(home, memory), etag_of(home, memory),
        doubt[1] if doubt else None,
    )  # fmt: skip


def read_memory(home: Home, reference: str, *, update: bool, session: str | None = None) -> Memory:
    """One memory in any state; with ``update``, opening it is a use. Raises NotFound, Conflict."""
    catch_up(home)
    memory = get(home, reference)
    if update and memory.is_active:
        spool_use(home, [memory.id], session=session, is_look=True)
    return memory


def _together(home: Home, memory: Memory) -> tuple[CompanionView, ...]:
    edges = home.co_recall.of([memory.id], today(home))[:_COMPANIONS]
    others = {other.id: other for other in home.memories.rows_of([edge.other for edge in edges]).values()}
    return tuple(CompanionView(others[edge.other], edge.weight, edge.sessions) for edge in edges)


def _links(home: Home, memory: Memory) -> tuple[LinkView, ...]:
    views = []
    for link in home.links.of(memory.id):
        is_outgoing = link.source == memory.id
        other = link.target if is_outgoing else link.source
        found = home.memories.find(other)
        subject = found.subject if found else None
        views.append(
            LinkView(link.rel, other, subject, is_outgoing, link.origin, link.reason, link.strength, link.valid)
        )
    return tuple(views)
