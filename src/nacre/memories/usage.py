"""Quality, history and views of memories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from fnmatch import fnmatchcase
from typing import Annotated

from nacre.base.bounds import bounds
from nacre.base.frozen import frozen
from nacre.base.ids import to_ms
from nacre.base.link import deliveries
from nacre.base.plugins import STALE, load_usable_plugins
from nacre.base.times import day_of
from nacre.errors import ConflictError
from nacre.home import operations
from nacre.home import views as home_views
from nacre.home.home import Home
from nacre.memories import decision, edit, judge, store
from nacre.operations import operation
from nacre.values import fields
from nacre.values.memory import Kind, Link, Memory, by_id
from nacre.values.recall import Filter
from nacre.values.review import Maturity, Usage, Verdict

# -- Quality -------------------------------------------------------------------
#
# Each reply changes a memory's quality slightly (docs/context.md). The thresholds here are for word
# overlap. A model's calibration contains those for cosines.


LEAST_REPLY = 50
REPLY_CHARACTERS = 8000

SIGNALS = {Verdict.USED: 1.0, Verdict.UNUSED: 0.4, Verdict.CORRECTED: 0.0}
REPLY_SHARE = 0.2
PERSON_SHARE = 0.5
"""Weight of a person's verdict, which counts more than a text comparison."""

KEPT_QUALITY = 0.3
"""Minimum quality after a dismissed review."""

_MIN_QUALITY_BY_KIND = {Kind.FACT: 0.35, Kind.PREFERENCE: 0.35}
_MIN_QUALITY = 0.1


@frozen
class Borders:
    """The minimum similarities at which a memory counts as used or corrected."""

    name: str
    used: float
    corrected: float


BY_WORDS = Borders("words", 0.4, 0.6)


def verdict(reply: float, stored: float, borders: Borders) -> Verdict:
    """Decide whether an agent used, ignored or corrected a memory.

    ``reply`` is the memory's similarity to the agent's reply, and ``stored`` its highest similarity
    to a memory that the agent stored.
    """
    if stored >= borders.corrected:
        return Verdict.CORRECTED
    return Verdict.USED if reply >= borders.used else Verdict.UNUSED


def quality_after(before: float, verdict: Verdict, kind: Kind, share: float = REPLY_SHARE) -> float:
    """Return a memory's quality after a verdict.

    This is the mean of the old quality and the verdict, weighted by ``share``, but not below the
    minimum for the kind of memory.
    """
    floor = min(before, _MIN_QUALITY_BY_KIND.get(kind, _MIN_QUALITY))
    return min(1.0, max(floor, (1 - share) * before + share * SIGNALS[verdict]))


def is_protected(memory: Memory, patterns: Sequence[str]) -> bool:
    """Return True if a memory must not be forgotten automatically.

    This applies to evergreen memories, memories of importance 10, and subjects that match a
    pattern. Patterns ignore case and can contain ``*``.
    """
    subject = memory.subject.lower()
    return (
        memory.importance == 10
        or memory.evergreen
        or any(fnmatchcase(subject, item.lower()) for item in patterns)
    )


_MATURITY = ((20, Maturity.PROVEN), (5, Maturity.ESTABLISHED), (0, Maturity.CANDIDATE))


def maturity(usage: Usage) -> Maturity:
    """Return a memory's maturity: established from 5 accesses, proven from 20, else candidate."""
    return next(name for minimum, name in _MATURITY if usage.access_count >= minimum)


# -- History -------------------------------------------------------------------


@operation("history", by_key=True)
def history_of(home: Home, reference: fields.Reference) -> list[home_views.Step]:
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
            home_views.Step(
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
    superseded_again = judge.reconcile(home, [(None, restored)]) if memory.retired else []
    changed = [
        restored,
        *(judge.without_link(newer, memory.id) for newer in followers),
        *superseded_again,
    ]
    with (
        home.change("unretire", subject=operations.subject_of(changed)) as change,
        change.transaction(),
    ):
        change.put(changed, [change.entry("unretire", memory=memory.id)])
        if memory.retired:
            home.reviews.reopen(memory.id, to_ms(memory.retired.at) or 0)
    return changed[0]


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
    ids = dict.fromkeys([*([memory.superseded_by] if memory.superseded_by else []), *sources])
    followers = (home.memories.find(newer) for newer in ids if newer != memory.id)
    return [newer for newer in followers if newer]


def _start_of(memory: Memory) -> date:
    return memory.valid.since or day_of(memory.created)


# -- Memories that might be outdated -------------------------------------------


def note_stale(home: Home) -> None:
    """Let plugins mark memories that might be outdated."""
    for note in load_usable_plugins(STALE).values():
        note(home)


# -- Viewing a memory ----------------------------------------------------------


_MAX_COMPANIONS = 10


@operation("look", by_key=True)
def look_at(home: Home, request: decision.GetRequest) -> home_views.MemoryView:
    """Return a memory with its evidence, links, file and usage."""
    memory = read_memory(home, request)
    file = home.files.file_of(memory.id)
    stale = home.memories.stale().get(memory.id)
    newer = ", ".join(other[-8:] for other in home.reviews.newer([memory.id]).get(memory.id, ()))
    usage = home.usage.of([memory.id])[memory.id]
    edges = home.co_recall.of([memory.id], store.today(home))[:_MAX_COMPANIONS]
    memories = by_id(home.memories.rows_of([edge.other for edge in edges]).values())
    companions = (
        home_views.CompanionView(memories[edge.other], edge.weight, edge.sessions) for edge in edges
    )
    return home_views.MemoryView(
        memory,
        decision.evidence_of(home, memory),
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
) -> home_views.Beliefs:
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
            home_views.Belief(
                memory,
                next(iter(decision.evidence_of(home, memory)), None),
                tuple(sorted(chain.values(), key=lambda old: old.created, reverse=True)),
            )
        )
    return home_views.Beliefs(tuple(beliefs), total)


@operation("get", by_key=True)
def read_memory(home: Home, request: decision.GetRequest) -> Memory:
    """Return a memory in any state.

    If ``update`` is set, this counts as a use of the memory. Raises NotFoundError, ConflictError.
    """
    edit.catch_up(home)
    memory = store.get(home, request.reference)
    if request.update and memory.is_active:
        store.spool_use(home, [memory.id], session=request.session, is_look=True)
    return memory


def _links(home: Home, memory: Memory) -> tuple[home_views.LinkView, ...]:
    views = []
    for link in home.links.of(memory.id):
        is_outgoing = link.source == memory.id
        other = link.target if is_outgoing else link.source
        linked = home.memories.find(other)
        views.append(
            home_views.LinkView(
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
