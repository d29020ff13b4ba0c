"""The history, evidence and links of memories, and the beliefs about a project."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Annotated

from nacre.base.bounds import bounds
from nacre.base.ids import to_ms
from nacre.base.link import deliveries
from nacre.base.text import excerpt, words
from nacre.base.times import day_of
from nacre.errors import ConflictError
from nacre.home import operations
from nacre.home.home import Home
from nacre.home.views import Belief, Beliefs, CompanionView, LinkView, MemoryView, Step
from nacre.memories import edit, judge, requests, store
from nacre.memories.usage import maturity, spool_use, today
from nacre.operations import operation
from nacre.values import fields
from nacre.values.memory import Kind, Link, Memory, by_id
from nacre.values.recall import Evidence, Filter


@operation("history", by_key=True)
def history_of(home: Home, reference: fields.Reference) -> list[Step]:
    """Return a memory with all predecessors and successors, oldest first.

    Raises NotFoundError, ConflictError.
    """
    edit.catch_up(home)
    memory = store.get(home, reference)
    chain = {memory.id: memory}
    _add_predecessors(home, memory, chain)
    newest = memory
    while newest.superseded_by and newest.superseded_by not in chain:
        newer = home.memories.find(newest.superseded_by)
        if newer is None:
            break
        newest = chain[newer.id] = newer
        _add_predecessors(home, newer, chain)
    ordered = sorted(chain.values(), key=lambda item: (_start_of(item), item.last_said, item.id))
    steps = []
    for item in ordered:
        newer = chain.get(item.superseded_by or "")
        steps.append(
            Step(
                item,
                _start_of(item),
                item.valid.until,
                item.superseded_by,
                judge.superseded_ids(newer).get(item.id) if newer else None,
                item.id == memory.id,
            )
        )
    return steps


def bring_back(home: Home, reference: str) -> Memory:
    """Restore a superseded or retired memory and return it.

    Its successor stays active, and later comparisons supersede neither memory. Its closed reviews
    are reopened. Raises NotFoundError, or ConflictError for an active memory or an ambiguous
    reference.
    """
    edit.catch_up(home)
    memory = store.get(home, reference)
    if memory.is_active:
        raise ConflictError(
            f"{memory.subject!r} is neither superseded nor retired",
            hint=f"nacre show {memory.id[-8:]}",
        )
    followers = _followers(home, memory)
    contexts = memory.suppressed_contexts
    if memory.retired:
        contexts = tuple(context for context in contexts if context not in judge.SUPPRESSED)
    apart = (Link(judge.APART, newer.id) for newer in followers if newer.id == memory.superseded_by)
    restored = replace(
        judge.active_again(memory) if memory.superseded_by else memory,
        retired=None,
        suppressed_contexts=contexts,
        links=(*memory.links, *apart),
    )
    changed = [
        restored,
        *(judge.without_link(newer, memory.id) for newer in followers),
        *(judge.reconcile(home, [(None, restored)]) if memory.retired else ()),
    ]
    with (
        home.change("unretire", subject=operations.subject_of(changed)) as change,
        change.transaction(),
    ):
        change.put(changed, [change.entry("unretire", memory=memory.id)])
        if memory.retired:
            home.reviews.reopen(memory.id, to_ms(memory.retired.at) or 0)
    return restored


def _add_predecessors(home: Home, memory: Memory, chain: dict[str, Memory]) -> None:
    stack = [memory]
    while stack:
        older = [old for old in home.memories.replaced_by(stack.pop().id) if old.id not in chain]
        chain.update((old.id, old) for old in older)
        stack += older


def _followers(home: Home, memory: Memory) -> list[Memory]:
    sources = [
        link.source
        for link in home.links.of(memory.id)
        if (link.rel, link.target) == (judge.SUPERSEDES, memory.id)
    ]
    ids = dict.fromkeys((memory.superseded_by or memory.id, *sources))
    followers = (home.memories.find(newer) for newer in ids if newer != memory.id)
    return [newer for newer in followers if newer]


def _start_of(memory: Memory) -> date:
    return memory.valid.since or day_of(memory.created)


# -- Viewing a memory ----------------------------------------------------------


_MAX_COMPANIONS = 10


@operation("look", by_key=True)
def look_at(home: Home, request: requests.GetRequest) -> MemoryView:
    """Return a memory with its evidence, links, file and usage."""
    memory = read_memory(home, request)
    file = home.files.file_of(memory.id)
    stale = home.memories.stale().get(memory.id)
    newer = ", ".join(other[-8:] for other in home.reviews.newer([memory.id]).get(memory.id, ()))
    usage = home.usage.of([memory.id])[memory.id]
    edges = home.co_recall.of([memory.id], today(home))[:_MAX_COMPANIONS]
    memories = by_id(home.memories.rows_of([edge.other for edge in edges]).values())
    companions = (CompanionView(memories[edge.other], edge.weight, edge.sessions) for edge in edges)
    return MemoryView(
        memory,
        evidence_of(home, memory),
        _links(home, memory),
        file.path if file else None,
        usage,
        maturity(usage),
        tuple(companions),
        store.etag_of(home, memory),
        stale[1] if stale else f"see {newer}" if newer else None,
        deliveries(home.settings.home, memory.id),
    )


@operation("beliefs", by_key=True)
def list_beliefs(
    home: Home,
    *,
    project: fields.OnlyProject = None,
    kinds: Annotated[tuple[Kind, ...], bounds("Only statements of these kinds.")] = (
        Kind.PREFERENCE,
        Kind.DECISION,
        Kind.FACT,
    ),
    replaced: Annotated[bool, bounds("Include the statements that were superseded.")] = False,
    limit: fields.Limit = 50,
    offset: fields.Offset = 0,
) -> Beliefs:
    """List the statements about a project that nacre considers true, newest first.

    Without a project, list the statements about the owner: those that apply everywhere.
    """
    edit.catch_up(home)
    criteria = Filter(
        (project,) if project else (),
        strict=True,
        exclude_projects=() if project else tuple(home.memories.projects()),
        kinds=kinds,
        trusted=True,
        settled=True,
    )
    rows, total = home.selection.list_memories(
        criteria, limit=limit, offset=offset, today=home.today(), for_list=False
    )
    beliefs = []
    for memory in home.memories.by_rows(rows).values():
        chain: dict[str, Memory] = {}
        if replaced:
            _add_predecessors(home, memory, chain)
        beliefs.append(
            Belief(
                memory,
                next(iter(evidence_of(home, memory)), None),
                tuple(sorted(chain.values(), key=lambda old: old.created, reverse=True)),
            )
        )
    return Beliefs(tuple(beliefs), total)


@operation("get", by_key=True)
def read_memory(home: Home, request: requests.GetRequest) -> Memory:
    """Return a memory in any state.

    If ``update`` is set, this counts as a use of the memory. Raises NotFoundError, ConflictError.
    """
    edit.catch_up(home)
    memory = store.get(home, request.reference)
    if request.update and memory.is_active:
        spool_use(home, [memory.id], session=request.session, is_look=True)
    return memory


def _links(home: Home, memory: Memory) -> tuple[LinkView, ...]:
    views = []
    for link in home.links.of(memory.id):
        is_outgoing = link.source == memory.id
        other = link.target if is_outgoing else link.source
        linked = home.memories.find(other)
        views.append(
            LinkView(
                link.rel,
                other,
                linked.subject if linked else None,
                is_outgoing,
                link.origin,
                link.reason,
                link.strength,
                link.valid,
            )
        )
    return tuple(views)


# -- Evidence ------------------------------------------------------------------


_MAX_EVIDENCE_CHARACTERS = 240
_MAX_CONFIRMATIONS = 2
"""Maximum number of confirmations that are shown as evidence, latest first."""


def evidence_of(
    home: Home, memory: Memory, characters: int = _MAX_EVIDENCE_CHARACTERS
) -> tuple[Evidence, ...]:
    """Return excerpts of the messages in which a memory was stated or confirmed."""
    sources = [(memory.source.session, turn) for turn in memory.source.turns]
    sources += [
        (confirmation.session, turn)
        for confirmation in memory.confirmed[-_MAX_CONFIRMATIONS:]
        for turn in confirmation.turns
    ]
    evidence = []
    for session_id, turn_id in sources:
        stored = home.sessions.find_said(session_id, turn_id) if session_id else None
        if stored is None:
            continue
        turn, session = stored.turn, home.sessions.get(stored.session).session
        quote = excerpt(turn.text, words(memory.content)[:12], characters, phrase=memory.content)
        evidence.append(Evidence(session.id, turn_id, stored.seq, turn.speaker, turn.time, quote))
    return tuple(evidence)
