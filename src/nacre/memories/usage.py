"""Use of memories: joint use, quality, history, and the listings in the vault."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date
from fnmatch import fnmatchcase
from typing import Annotated

from nacre.base.bounds import bounds
from nacre.base.frozen import frozen
from nacre.base.ids import bytes_hash, to_ms
from nacre.base.link import deliveries
from nacre.base.plugins import STALE, load_usable_plugins
from nacre.base.times import day_of
from nacre.errors import ConflictError, NacreError
from nacre.home import operations
from nacre.home import views as home_views
from nacre.home.home import Home
from nacre.memories import decision, edit, judge, store
from nacre.operations import operation
from nacre.values import fields
from nacre.values.memory import Kind, Link, Memory, by_id
from nacre.values.recall import Filter
from nacre.values.review import Maturity, Usage, Verdict
from nacre.vault.files import GIT_FOLDER, LISTING, global_page, is_derived, project_page


@operation("edges", by_key=True)
def edges(
    home: Home,
    reference: fields.Reference | None = None,
    limit: Annotated[int, bounds("Maximum number of pairs.", ge=1, le=1000)] = 20,
) -> list[home_views.UsedTogether]:
    """List pairs of active memories that were used together, strongest first.

    ``reference`` selects the pairs of one memory. Each session that used both memories adds .1 to
    the weight of the pair. The weight loses a twentieth per day. Raises
    NotFoundError, ConflictError.
    """
    edit.catch_up(home)
    day = store.today(home)
    if reference is None:
        pairs = home.co_recall.strongest(day, limit)
    else:
        pairs = home.co_recall.of([store.get(home, reference).id], day)[:limit]
    ids = sorted({memory for pair in pairs for memory in (pair.memory, pair.other)})
    memories = by_id(home.memories.rows_of(ids).values())
    return [
        home_views.UsedTogether(
            memories[pair.memory], memories[pair.other], pair.weight, pair.sessions
        )
        for pair in pairs
        if pair.memory in memories and pair.other in memories
    ]


# -- Quality -------------------------------------------------------------------
#
# Each reply changes a memory's quality slightly. Thresholds depend on the similarity measure.
# Thresholds for cosines are in the model's calibration, and thresholds for words are here. See
# docs/context.md.


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
    """Minimum similarities for a memory to count as used or as corrected."""

    name: str
    used: float
    corrected: float


BY_WORDS = Borders("words", 0.4, 0.6)


def verdict(reply: float, stored: float, borders: Borders) -> Verdict:
    """Return whether an agent used, ignored or corrected a memory.

    ``reply``: similarity between the agent's reply and the memory. ``stored``: highest similarity
    between the memory and the memories that the agent stored.
    """
    if stored >= borders.corrected:
        return Verdict.CORRECTED
    return Verdict.USED if reply >= borders.used else Verdict.UNUSED


def quality_after(before: float, verdict: Verdict, kind: Kind, share: float = REPLY_SHARE) -> float:
    """Return the quality of a memory after a verdict.

    The value of the verdict is averaged with the previous quality, with the weight ``share``. The
    quality does not fall below a minimum for the kind of memory.
    """
    floor = min(before, _MIN_QUALITY_BY_KIND.get(kind, _MIN_QUALITY))
    return min(1.0, max(floor, (1 - share) * before + share * SIGNALS[verdict]))


def is_protected(memory: Memory, patterns: Sequence[str]) -> bool:
    """Return True if a memory must never be forgotten.

    This applies to evergreen memories, to memories of importance 10, and to memories whose subject
    matches a pattern. Patterns ignore case and can contain ``*``.
    """
    subject = memory.subject.lower()
    return (
        memory.importance == 10
        or memory.evergreen
        or any(fnmatchcase(subject, item.lower()) for item in patterns)
    )


_MATURITY = ((20, Maturity.PROVEN), (5, Maturity.ESTABLISHED), (0, Maturity.CANDIDATE))


def maturity(usage: Usage) -> Maturity:
    """Return the maturity: candidate below 5 accesses, established from 5, proven from 20."""
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
    """Restore a superseded or retired memory and return the memory.

    The successor stays active too. Later comparisons do not supersede the memory or the successor.
    If the retirement reactivated other memories, these memories are superseded again. Pending
    reviews of the memory reopen. Raises NotFoundError, ConflictError.
    """
    edit.catch_up(home)
    memory = store.get(home, reference)
    if memory.is_active:
        raise ConflictError(
            f"{memory.subject!r} is neither superseded nor retired",
            hint=f"nacre show {memory.id[-8:]}",
        )
    followers = _followers(home, memory)
    other_contexts = tuple(
        context for context in memory.suppressed_contexts if context not in judge.SUPPRESSED
    )
    contexts = other_contexts if memory.retired else memory.suppressed_contexts
    restored = replace(judge.active_again(memory) if memory.superseded_by else memory, retired=None)
    restored = replace(restored, suppressed_contexts=contexts)
    links_between = tuple(
        Link(judge.APART, newer.id) for newer in followers if newer.id == memory.superseded_by
    )
    restored = judge.without_link(
        replace(restored, links=(*restored.links, *links_between)), memory.id
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


# -- Listings ------------------------------------------------------------------
#
# ``MEMORY.md`` in the vault's top folder and in each project's folder. Listings are derived, so
# recall and scans ignore them, and git ignores them unless the owner added them (decision 1). They
# are written with each commit, not with each memory.


_NO_LIMIT = 2**31


def write_listings(home: Home) -> list[str]:
    """Update the listings and return the paths that changed.

    Hand-written pages with a listing's name are kept.
    """
    if home.database.unwritable:
        return []
    pages = _pages(home)
    existing = [path for path in home.vault.paths() if path.endswith(f"/{LISTING}")]
    changed, own_paths = [], []
    for path in sorted({*pages, *existing, LISTING}):
        with suppress(NacreError):  # a symlink or a concurrent write; retried with the next commit
            present = home.vault.read(path) if home.vault.exists(path) else None
            if present is not None and not is_derived(present):
                continue
            if path in pages:
                own_paths.append(path)
            if _write(home, path, present, pages.get(path)):
                changed.append(path)
    if home.settings.flag("git.enabled") and home.vault.exists(GIT_FOLDER):
        with suppress(NacreError):
            home.repository.pass_over(LISTING, own_paths)
    return changed


def _write(home: Home, path: str, present: bytes | None, text: str | None) -> bool:
    if text is None:
        if present is not None:
            home.vault.remove(path)
        return present is not None
    if present == text.encode("utf-8", "replace"):
        return False
    home.vault.write(path, text, base=None if present is None else bytes_hash(present))
    return True


def _pages(home: Home) -> Mapping[str, str]:
    entries: dict[str | None, dict[str, Memory]] = defaultdict(dict)
    paths = {file.memory: path for path, file in home.files.seen().items()}
    rows = home.selection.latest_memories(Filter(), limit=_NO_LIMIT, today=home.today())
    for memory in home.memories.by_rows(rows).values():
        path = paths.get(memory.id, "")
        folder = f"projects/{memory.project}/"
        is_filed = bool(memory.project) and path.startswith(folder)
        if path:
            path = path.removeprefix(folder) if is_filed else path
            entries[memory.project if is_filed else None][path] = memory
    if not entries:
        return {}
    projects = {name: len(listed) for name, listed in entries.items() if name}
    pages = {f"projects/{name}/{LISTING}": project_page(name, entries[name]) for name in projects}
    return {LISTING: global_page(entries.get(None, {}), projects), **pages}


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
    doubt = home.memories.stale().get(memory.id)
    usage = home.usage.of([memory.id])[memory.id]
    edges = home.co_recall.of([memory.id], store.today(home))[:_MAX_COMPANIONS]
    others = by_id(home.memories.rows_of([edge.other for edge in edges]).values())
    companions = (
        home_views.CompanionView(others[edge.other], edge.weight, edge.sessions) for edge in edges
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
        doubt[1] if doubt else None,
        deliveries(str(home.settings.home), memory.id),
    )


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
        found = home.memories.find(other)
        views.append(
            home_views.LinkView(
                link.rel,
                other,
                found.subject if found else None,
                is_outgoing,
                link.origin,
                link.reason,
                link.strength,
                link.valid,
            )
        )
    return tuple(views)
