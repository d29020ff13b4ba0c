"""What the steps of a dream make of memories: who stays, with what others bring along, and who goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from nacre.dedup.comparison import SUPERSEDES
from nacre.dedup.supersession import OUTLIVED, ended
from nacre.dream.clusters import MERGED
from nacre.dream.repetitions import is_owners
from nacre.dream.values import DreamAction, Step
from nacre.home.change import Change
from nacre.home.home import Home
from nacre.review.reflection import ORIGIN
from nacre.values.memory import Confirmation, Link, Memory, Retirement

_MOST_CONFIRMATIONS = 20


def carried(home: Home, steps: Sequence[Step], memories: Mapping[str, Memory]) -> dict[str, Memory]:
    """The memories that stay, as the steps have them, and those that are superseded. When they were said last stays:
    nobody said them again."""
    changed: dict[str, Memory] = {}
    for step in steps:
        present = {**memories, **changed}
        changed |= {one.id: one for one in _changed(home, step, present)}
        if step.action is DreamAction.MERGE:
            changed |= {one.id: one for one in _following(home, step, {**memories, **changed})}
    return changed


def _changed(home: Home, step: Step, memories: Mapping[str, Memory]) -> list[Memory]:
    if step.into is None:
        return []
    memory = memories[step.into]
    if step.action is DreamAction.MERGE:
        return [_enriched(home, step, memories)]
    if step.action is DreamAction.SUPERSEDE:
        links = tuple(Link(SUPERSEDES, one, f"{step.why} ({step.by})") for one in step.ends)
        return [replace(memory, links=(*memory.links, *links)), *(ended(memories[one], memory) for one in step.ends)]
    if step.action is DreamAction.LINK:
        drawn = tuple(Link(step.words, one, f"{step.why} ({step.by})", ORIGIN) for one in step.links)
        return [replace(memory, links=(*memory.links, *drawn))]
    if step.action is DreamAction.FILE:
        return [replace(memory, project=step.project, inbox=False)]
    return [replace(memory, links=tuple(link for link in memory.links if link.to not in step.links))]


def _enriched(home: Home, step: Step, memories: Mapping[str, Memory]) -> Memory:
    """Who stays, in the words that a writer gave it, and with what the others bring along (seed facts 1.4).

    That is the first day, the highest importance, all tags and links, and where it was said. To the owner's memory an
    agent's brings nothing.
    """
    keeper = memories[step.into or ""]
    others = [memories[one] for one in step.ends if is_owners(memories[one]) or not is_owners(keeper)]
    own = {(link.rel, link.to) for link in keeper.links}
    gone = {keeper.id, *step.ends}
    links = [link for one in others for link in one.links if (link.rel, link.to) not in own and link.to not in gone]
    said = [*keeper.confirmed, *(one for other in others for one in _sayings(other))]
    known = {(one.session, one.turns): one for one in sorted(said, key=lambda one: one.at)}
    key = next((one.canonical_key for one in (keeper, *others) if one.canonical_key), None)
    if step.by:
        noted = {"by": step.by, "at": home.now().isoformat(), "of": [keeper.id, *step.ends], "why": step.why}
        keeper = replace(keeper, extra={**keeper.extra, MERGED: noted})
    if step.words:
        keeper = replace(keeper, content=step.words, subject=step.subject, claim=None)
    return replace(
        keeper,
        created=min(one.created for one in (keeper, *others)),
        importance=max(one.importance for one in (keeper, *others)),
        tags=tuple(sorted({*keeper.tags, *(tag for one in others for tag in one.tags)})),
        links=(*keeper.links, *dict.fromkeys(links)),
        confirmed=tuple(known.values())[-_MOST_CONFIRMATIONS:],
        canonical_key=key,
    )


def _sayings(memory: Memory) -> list[Confirmation]:
    """Where a memory that goes was said."""
    if not (is_owners(memory) and memory.source.session):
        return list(memory.confirmed)
    return [Confirmation(memory.created, memory.source.session, memory.source.turns), *memory.confirmed]


def _following(home: Home, step: Step, memories: Mapping[str, Memory]) -> list[Memory]:
    """What was superseded by memories that go into another one is superseded by that one."""
    keeper = memories[step.into or ""]
    old = [one for gone in step.ends for one in home.memories.replaced_by(gone) if not one.retired]
    old = [memories.get(one.id, one) for one in old if one.id != keeper.id]
    linked = {link.to for link in keeper.links if link.rel == SUPERSEDES}
    links = tuple(Link(SUPERSEDES, one.id) for one in old if one.id not in linked)
    followed = [replace(one, superseded_by=keeper.id) for one in old]
    return [*followed, replace(keeper, links=(*keeper.links, *links))] if links else followed


def retire(change: Change, steps: Sequence[Step], memories: Mapping[str, Memory]) -> None:
    """Retire what ends; what had been superseded by something that is over goes with it."""
    home = change.home
    now = home.now()
    gone, entries = [], []
    for step in steps:
        if step.action is DreamAction.SUPERSEDE:
            continue
        reason = f"says the same as {step.into}" if step.into else f"{step.action}: {step.why}"
        outlived = [] if step.into else [old for one in step.ends for old in home.memories.replaced_by(one)]
        for one, why in (
            *((memories[one], reason) for one in step.ends), *((old, OUTLIVED) for old in outlived if not old.retired)
        ):  # fmt: skip
            gone.append(replace(one, retired=Retirement(now, why)))
            entries.append(change.entry("retire", memory=one.id, reason=why))
    change.put(gone, entries)
