"""One memory in the place of another: both files say so, and it can be taken back.

The old one has ``superseded_by`` and the day until which it was true, the new one a link ``supersedes`` with the
reason.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from nacre.dedup.comparison import CONTRADICTS, SUPERSEDES, last_said
from nacre.home.home import Home
from nacre.platform.days import day_of
from nacre.values.memory import Link, Memory, Retirement

OUTLIVED = "what superseded it was forgotten"


def ended(old: Memory, new: Memory) -> Memory:
    """The old memory as it is once the new one holds: true until then."""
    is_told = new.valid.since and (old.valid.since is None or new.valid.since > old.valid.since)
    day = new.valid.since if is_told and new.valid.since else day_of(last_said(new))
    until = min(day, old.valid.until) if old.valid.until else day
    return replace(old, superseded_by=new.id, valid=replace(old.valid, until=until))


def active_again(old: Memory) -> Memory:
    """A superseded memory as it is when nothing supersedes it any more."""
    return replace(old, superseded_by=None, valid=replace(old.valid, until=None))


def without_link(new: Memory, old_id: str) -> Memory:
    """The new memory without its link to one that it superseded."""
    return _without(new, SUPERSEDES, old_id)


def without_doubt(new: Memory, old_id: str) -> Memory:
    """The new memory without its doubt about another."""
    return _without(new, CONTRADICTS, old_id)


def _without(memory: Memory, rel: str, to: str) -> Memory:
    return replace(memory, links=tuple(link for link in memory.links if (link.rel, link.to) != (rel, to)))


def doubted(new: Memory, old_id: str, reason: str) -> Memory:
    """The new memory with a link that says that it may have outdated another one."""
    return _with(new, Link(CONTRADICTS, old_id, reason))


def _with(memory: Memory, link: Link) -> Memory:
    has = any((one.rel, one.to) == (link.rel, link.to) for one in memory.links)
    return memory if has else replace(memory, links=(*memory.links, link))


def superseded(memory: Memory) -> dict[str, str | None]:
    """What a memory says it superseded: id → reason."""
    return {link.to: link.reason for link in memory.links if link.rel == SUPERSEDES}


def released(home: Home, gone: Sequence[Memory]) -> list[Memory]:
    """What changes when memories go: those they superseded hold again, or are followed by what still holds.

    The memories as they are to be written; nothing is.
    """
    going = {memory.id for memory in gone}
    changed: dict[str, Memory] = {}
    for memory in gone:
        old = [one for one in home.memories.replaced_by(memory.id) if not one.retired and one.id not in going]
        newer = _still_holding(home, memory, going) if old else None
        if newer is None:
            changed.update((one.id, active_again(one)) for one in old)
            continue
        changed.update((one.id, ended(active_again(one), newer)) for one in old)
        reasons, newer = superseded(memory), changed.get(newer.id, newer)
        links = tuple(Link(SUPERSEDES, one.id, reasons.get(one.id)) for one in old)
        changed[newer.id] = replace(newer, links=(*newer.links, *links))
    return list(changed.values())


def outlived(home: Home, gone: Sequence[Memory], left: Mapping[str, Memory], now: datetime) -> list[Memory]:
    """What changes when memories are forgotten: nothing names them any more, and nothing comes back by itself.

    What they superseded is followed by what superseded them; where nothing did, it is retired. ``left`` are memories
    that change anyhow. The memories as they are to be written; nothing is.
    """
    going = {memory.id for memory in gone}
    changed = dict(left)
    for naming in home.memories.in_any_state(home.erasing.linking(sorted(going))):
        if naming.id not in going:
            memory = changed.get(naming.id, naming)
            changed[naming.id] = replace(memory, links=tuple(link for link in memory.links if link.to not in going))
    for memory in gone:
        newer = _still_holding(home, memory, going)
        for old in home.memories.replaced_by(memory.id):
            if old.id in going:
                continue
            old = active_again(changed.get(old.id, old))
            if newer and not old.retired:
                old = ended(old, newer)
                holding = changed.get(newer.id, newer)
                changed[newer.id] = replace(holding, links=(*holding.links, Link(SUPERSEDES, old.id)))
            changed[old.id] = replace(old, retired=old.retired or Retirement(now, OUTLIVED)) if not newer else old
    return list(changed.values())


def _still_holding(home: Home, memory: Memory, going: Collection[str]) -> Memory | None:
    """The first in the line of what superseded a memory that is there and does not go, too."""
    passed: set[str] = set()
    newer: Memory | None = memory
    while newer and newer.superseded_by and newer.superseded_by not in passed:
        passed.add(newer.superseded_by)
        newer = home.memories.find(newer.superseded_by)
        if newer and newer.id not in going and not newer.retired:
            return newer
    return None


def agreed(home: Home, changed: Iterable[tuple[Memory | None, Memory]]) -> list[Memory]:
    """What else must change when files were edited by hand, so that both sides of a succession say the same.

    ``changed`` are memories before and after. A person may add or take away either side; the other one follows.
    """
    follow: dict[str, Memory] = {}
    for before, after in changed:
        if after.retired:
            continue
        said, had = superseded(after), superseded(before) if before else {}
        for old in _found(home, said.keys() ^ had.keys()):
            if old.id in had and old.superseded_by == after.id:
                follow[old.id] = active_again(old)
            elif old.id in said and not old.superseded_by:
                follow[old.id] = ended(old, after)
        newer = home.memories.find(before.superseded_by or "") if before and not after.superseded_by else None
        if before and newer:
            follow[after.id] = active_again(after) if after.valid == before.valid else after
            follow[newer.id] = without_link(newer, after.id)
    return list(follow.values())


def _found(home: Home, memory_ids: Iterable[str]) -> list[Memory]:
    found = (home.memories.find(memory_id) for memory_id in sorted(memory_ids))
    return [memory for memory in found if memory and not memory.retired]
