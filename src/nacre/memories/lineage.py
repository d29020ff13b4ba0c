"""How a piece of knowledge changed: the chain of memories that superseded each other; and the way back."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

from nacre.dedup.comparison import APART, SUPERSEDES, last_said
from nacre.dedup.retirement_rules import SUPPRESSED
from nacre.dedup.supersession import active_again, agreed, superseded, without_link
from nacre.errors import Conflict
from nacre.home.change import Change
from nacre.home.home import Home
from nacre.home.operations import subject_of
from nacre.memories.scan import catch_up
from nacre.memories.store import get
from nacre.platform.days import day_of
from nacre.platform.ids import to_ms
from nacre.values.memory import Link, Memory
from nacre.views import Step


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
        raise Conflict(f"{memory.subject!r} is neither superseded nor retired", hint=f"nacre show {memory.id[-8:]}")
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
    said = [one.source for one in home.links.of(memory.id) if (one.rel, one.target) == (SUPERSEDES, memory.id)]
    ids = dict.fromkeys([*([memory.superseded_by] if memory.superseded_by else []), *said])
    found = (home.memories.find(newer) for newer in ids if newer != memory.id)
    return [newer for newer in found if newer]


def _began(memory: Memory) -> date:
    return memory.valid.since or day_of(memory.created)


def _step(memory: Memory, found: dict[str, Memory], *, is_asked: bool) -> Step:
    newer = found.get(memory.superseded_by or "")
    reason = superseded(newer).get(memory.id) if newer else None
    return Step(memory, _began(memory), memory.valid.until, memory.superseded_by, reason, is_asked)
