"""Memories that were used together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from fnmatch import fnmatchcase

from nacre.base.ids import bytes_hash, to_ms
from nacre.base.times import day_of
from nacre.errors import Conflict, NacreError
from nacre.home.change import Change
from nacre.home.home import Home
from nacre.home.operations import subject_of
from nacre.home.views import CompanionView, LinkView, MemoryView, Step, UsedTogether
from nacre.memories.decision import EdgesRequest, evidence_of
from nacre.memories.edit import catch_up
from nacre.memories.judge import (
    APART,
    SUPERSEDES,
    SUPPRESSED,
    active_again,
    agreed,
    last_said,
    superseded,
    without_link,
)
from nacre.memories.store import etag_of, get, spool_use, today
from nacre.values.memory import Kind, Link, Memory
from nacre.values.recall import Filter
from nacre.values.review import Maturity, Usage, Verdict
from nacre.vault.files import GIT_FOLDER, LISTING, Entry, global_page, is_derived, project_page


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


# ----------------------------------------------------------------------------
# How good a memory turns out to be (seed facts 1.2.4): quality moves a little with every reply.
#
# The borders belong to a measure (docs/context.md): those of cosines lie in the model's calibration,
# those of words here.


LEAST_REPLY = 50
REPLY_CHARACTERS = 8000

SIGNALS = {Verdict.USED: 1.0, Verdict.UNUSED: 0.4, Verdict.CORRECTED: 0.0}
REPLY_SHARE = 0.2
PERSON_SHARE = 0.5
"""A person's word weighs more than a comparison of texts."""

KEPT_QUALITY = 0.3
"""What a dismissed review raises quality to."""

_FLOORS = {Kind.FACT: 0.35, Kind.PREFERENCE: 0.35}
_FLOOR = 0.1


@dataclass(frozen=True, slots=True)
class Borders:
    """From which likeness on a reply used a memory, and something newly stored says it anew."""

    name: str
    used: float
    corrected: float


BY_WORDS = Borders("words", 0.4, 0.6)


def verdict(reply: float, stored: float, borders: Borders) -> Verdict:
    """What a reply says of a memory: the likeness of the reply to it, and of the likest thing the agent stored."""
    if stored >= borders.corrected:
        return Verdict.CORRECTED
    return Verdict.USED if reply >= borders.used else Verdict.UNUSED


def quality_after(before: float, heard: Verdict, kind: Kind, share: float = REPLY_SHARE) -> float:
    """(1 - share) · before + share · signal, not below the floor of the kind."""
    floor = min(before, _FLOORS.get(kind, _FLOOR))
    return min(1.0, max(floor, (1 - share) * before + share * SIGNALS[heard]))


def is_protected(memory: Memory, patterns: Sequence[str]) -> bool:
    """Whether a memory is never to be forgotten: importance 10, evergreen, or a subject that fits a pattern.

    Patterns ignore case; ``*`` stands for any text (seed facts 1.4).
    """
    subject = memory.subject.lower()
    return (
        memory.importance == 10
        or memory.evergreen
        or any(fnmatchcase(subject, item.lower()) for item in patterns)
    )


_MATURITY = ((20, Maturity.PROVEN), (5, Maturity.ESTABLISHED), (0, Maturity.CANDIDATE))


def maturity(usage: Usage) -> Maturity:
    """A candidate under 5 accesses, established from 5, proven from 20 (seed facts 2.3)."""
    return next(name for least, name in _MATURITY if usage.access_count >= least)


# ----------------------------------------------------------------------------
# How a piece of knowledge changed: the chain of memories that superseded each other; and the way
# back.


def history_of(home: Home, reference: str) -> list[Step]:
    """All that a memory superseded and all that superseded it, the oldest first. Raises NotFound, Conflict."""
    catch_up(home)
    asked = get(home, reference)
    found = {asked.id: asked}
    _before(home, asked, found)
    newest = asked
    while newest.superseded_by and newest.superseded_by not in found:
        newer = home.memories.find(newest.superseded_by)
        if newer is None:
            break
        newest = found[newer.id] = newer
        _before(home, newer, found)
    ordered = sorted(found.values(), key=lambda one: (_began(one), last_said(one), one.id))
    return [_step(one, found, is_asked=one.id == asked.id) for one in ordered]


def bring_back(home: Home, reference: str, why: str | None = None) -> Memory:
    """Bring back a memory that was superseded or retired; returns it as it is now.

    What superseded it stays beside it: both then hold, and no comparison ends either again. What held again because it
    was retired is superseded by it again; what it waited for in review it waits for again. Raises NotFound, Conflict.
    """
    with home.change("unretire", why=why) as change:
        return hold_again(change, reference)


def hold_again(change: Change, reference: str) -> Memory:
    """:func:`bring_back` as a change that has written nothing yet."""
    home = change.home
    catch_up(home)
    memory = get(home, reference)
    if memory.is_active:
        raise Conflict(
            f"{memory.subject!r} is neither superseded nor retired",
            hint=f"nacre show {memory.id[-8:]}",
        )
    followers = _followers(home, memory)
    shown = tuple(one for one in memory.suppressed_contexts if one not in SUPPRESSED)
    contexts = shown if memory.retired else memory.suppressed_contexts
    back = replace(active_again(memory) if memory.superseded_by else memory, retired=None)
    back = replace(back, suppressed_contexts=contexts)
    apart = tuple(Link(APART, newer.id) for newer in followers if newer.id == memory.superseded_by)
    back = without_link(replace(back, links=(*back.links, *apart)), memory.id)
    again = agreed(home, [(None, back)]) if memory.retired else []
    changed = [back, *(without_link(newer, memory.id) for newer in followers), *again]
    change.describe(subject=subject_of(changed))
    with change.transaction():
        change.put(changed, [change.entry("unretire", memory=memory.id)])
        if memory.retired:
            home.reviews.reopen(memory.id, to_ms(memory.retired.at) or 0)
    return changed[0]


def _before(home: Home, memory: Memory, found: dict[str, Memory]) -> None:
    """Add all that a memory superseded, and what that superseded."""
    waiting = [memory]
    while waiting:
        older = [old for old in home.memories.replaced_by(waiting.pop().id) if old.id not in found]
        found.update((old.id, old) for old in older)
        waiting += older


def _followers(home: Home, memory: Memory) -> list[Memory]:
    """Whatever says that it superseded a memory, or is named by it."""
    said = [
        one.source
        for one in home.links.of(memory.id)
        if (one.rel, one.target) == (SUPERSEDES, memory.id)
    ]
    ids = dict.fromkeys([*([memory.superseded_by] if memory.superseded_by else []), *said])
    found = (home.memories.find(newer) for newer in ids if newer != memory.id)
    return [newer for newer in found if newer]


def _began(memory: Memory) -> date:
    return memory.valid.since or day_of(memory.created)


def _step(memory: Memory, found: dict[str, Memory], *, is_asked: bool) -> Step:
    newer = found.get(memory.superseded_by or "")
    reason = superseded(newer).get(memory.id) if newer else None
    return Step(memory, _began(memory), memory.valid.until, memory.superseded_by, reason, is_asked)


# ----------------------------------------------------------------------------
# Write the listings of the vault: ``MEMORY.md`` at its top, and one in the folder of each project.
#
# They are derived: no recall reads them, no scan takes them for memories, and git passes over them
# unless the owner
# added them (decision 1). They are written with each commit, not with each memory.


_ALL = 2**31


def write_listings(home: Home) -> list[str]:
    """Bring the listings up to date; returns the paths of those that changed.

    A page that a person wrote stays, whatever it is called. Where the setting is off, nacre's own are removed.
    """
    if home.database.unwritable:
        return []
    wanted = _pages(home) if home.settings.flag("vault.listing") else {}
    there = [path for path in home.vault.paths() if path.endswith(f"/{LISTING}")]
    changed, own = [], []
    for path in sorted({*wanted, *there, LISTING}):
        with suppress(
            NacreError
        ):  # a link, or somebody writes there just now: the next one does it
            present = _present(home, path)
            if present is not None and not is_derived(present):
                continue
            if path in wanted:
                own.append(path)
            if _write(home, path, present, wanted.get(path)):
                changed.append(path)
    if home.settings.flag("git.enabled") and home.vault.exists(GIT_FOLDER):
        with suppress(NacreError):
            home.repository.pass_over(LISTING, own)
    return changed


def _present(home: Home, path: str) -> bytes | None:
    try:
        return home.vault.read(path)
    except FileNotFoundError:
        return None


def _write(home: Home, path: str, present: bytes | None, text: str | None) -> bool:
    """Whether the page was another one."""
    if text is None:
        if present is not None:
            home.vault.remove(path)
        return present is not None
    if present == text.encode("utf-8", "replace"):
        return False
    home.vault.write(path, text, base=None if present is None else bytes_hash(present))
    return True


def _pages(home: Home) -> Mapping[str, str]:
    """Path → text, of every page that there is something to list on."""
    entries: dict[str | None, list[Entry]] = defaultdict(list)
    paths = {one.memory: path for path, one in home.files.seen().items()}
    rows = home.selection.latest_memories(Filter(), limit=_ALL, today=home.today())
    for memory in home.memories.by_rows(rows).values():
        path = paths.get(memory.id, "")
        folder = f"projects/{memory.project}/"
        is_filed = bool(memory.project) and path.startswith(folder)
        if path:
            entries[memory.project if is_filed else None].append(
                Entry(memory, path.removeprefix(folder) if is_filed else path)
            )
    if not entries:
        return {}
    projects = {name: len(found) for name, found in entries.items() if name}
    pages = {f"projects/{name}/{LISTING}": project_page(name, entries[name]) for name in projects}
    return {LISTING: global_page(entries.get(None, []), projects), **pages}


# ----------------------------------------------------------------------------
# One memory with all that belongs to it: evidence, links, file, usage.


_COMPANIONS = 10


def look_at(
    home: Home, reference: str, *, update: bool = False, session: str | None = None
) -> MemoryView:
    """A memory in any state with all that belongs to it. Raises NotFound, Conflict.

    ``update`` counts that as a use of it, in the host's session if there is one.
    """
    memory = read_memory(home, reference, update=update, session=session)
    file = home.files.file_of(memory.id)
    doubt = home.memories.stale().get(memory.id)
    usage = home.usage.of([memory.id]).get(memory.id, Usage())
    return MemoryView(
        memory,
        evidence_of(home, memory),
        _links(home, memory),
        file.path if file else None,
        usage,
        maturity(usage),
        _together(home, memory),
        etag_of(home, memory),
        doubt[1] if doubt else None,
    )


def read_memory(home: Home, reference: str, *, update: bool, session: str | None = None) -> Memory:
    """One memory in any state; with ``update``, opening it is a use. Raises NotFound, Conflict."""
    catch_up(home)
    memory = get(home, reference)
    if update and memory.is_active:
        spool_use(home, [memory.id], session=session, is_look=True)
    return memory


def _together(home: Home, memory: Memory) -> tuple[CompanionView, ...]:
    edges = home.co_recall.of([memory.id], today(home))[:_COMPANIONS]
    others = {
        other.id: other for other in home.memories.rows_of([edge.other for edge in edges]).values()
    }
    return tuple(CompanionView(others[edge.other], edge.weight, edge.sessions) for edge in edges)


def _links(home: Home, memory: Memory) -> tuple[LinkView, ...]:
    views = []
    for link in home.links.of(memory.id):
        is_outgoing = link.source == memory.id
        other = link.target if is_outgoing else link.source
        found = home.memories.find(other)
        subject = found.subject if found else None
        views.append(
            LinkView(
                link.rel,
                other,
                subject,
                is_outgoing,
                link.origin,
                link.reason,
                link.strength,
                link.valid,
            )
        )
    return tuple(views)
