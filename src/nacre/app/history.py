"""How a piece of knowledge changed: the chain of memories that superseded each other; and the way back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date

from nacre.app.comparing import APART, last_said
from nacre.app.context import Context
from nacre.app.remembering import get
from nacre.app.scanning import scan
from nacre.app.superseding import active_again, superseded, without_link
from nacre.app.writing import entry, save
from nacre.errors import Conflict
from nacre.model.memory import Link, Memory


@dataclass(frozen=True, slots=True)
class Step:
    """A memory in its history: from when until when it was true, what took its place and why.

    ``is_asked`` marks the one whose history it is.
    """

    memory: Memory
    since: date
    until: date | None
    superseded_by: str | None
    reason: str | None
    is_asked: bool


def history_of(context: Context, reference: str) -> list[Step]:
    """All that a memory superseded and all that superseded it, the oldest first. Raises NotFound, Conflict."""
    scan(context)
    asked = get(context, reference)
    found = {asked.id: asked}
    _before(context, asked, found)
    newest = asked
    while newest.superseded_by and newest.superseded_by not in found:
        newer = context.memories.find(newest.superseded_by)
        if newer is None:
            break
        newest = found[newer.id] = newer
        _before(context, newer, found)
    ordered = sorted(found.values(), key=lambda one: (_began(one), last_said(one), one.id))
    return [_step(one, found, is_asked=one.id == asked.id) for one in ordered]


def restore(context: Context, reference: str) -> Memory:
    """Bring back a memory that was superseded or retired; returns it as it is now.

    What superseded it stays beside it: both then hold, and no comparison ends either again. Raises NotFound, Conflict.
    """
    with context.vault_lock:
        scan(context)
        memory = get(context, reference)
        if not memory.superseded_by and not memory.retired:
            raise Conflict(f"{memory.subject!r} is neither superseded nor retired", hint=f"nacre show {memory.id[-8:]}")
        newer = context.memories.find(memory.superseded_by) if memory.superseded_by else None
        back = replace(active_again(memory) if memory.superseded_by else memory, retired=None)
        changed = [back]
        if newer:
            changed = [replace(back, links=(*back.links, Link(APART, newer.id))), without_link(newer, memory.id)]
        save(context, changed, [entry(context, "restore", memory=memory.id)])
        return changed[0]


def _before(context: Context, memory: Memory, found: dict[str, Memory]) -> None:
    for old in context.memories.replaced_by(memory.id):
        if old.id not in found:
            found[old.id] = old
            _before(context, old, found)


def _began(memory: Memory) -> date:
    return memory.valid.since or memory.created.date()


def _step(memory: Memory, found: dict[str, Memory], *, is_asked: bool) -> Step:
    newer = found.get(memory.superseded_by or "")
    reason = superseded(newer).get(memory.id) if newer else None
    return Step(memory, _began(memory), memory.valid.until, memory.superseded_by, reason, is_asked)
