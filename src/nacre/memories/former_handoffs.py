"""Handoffs were memories once: those of a home that wait become files, the others go, in one operation."""

from __future__ import annotations

from nacre.errors import EditConflict
from nacre.home.home import Home
from nacre.values.handoff import BY_RULES, HANDED_FOR, Handoff
from nacre.values.memory import Kind, Memory

_STATE, _DUE, _KEY = "handoffs", "due", "handoff"
_TAGS = frozenset({_KEY, "session"})


def note_former(home: Home, memory: Memory) -> None:
    """Note a file in the vault that is a handoff of an older nacre. Call inside the transaction that takes it."""
    if _was_one(memory):
        home.usage.set_value(_STATE, _DUE)


def _was_one(memory: Memory) -> bool:
    return memory.kind is Kind.EVENT and _TAGS.issubset(memory.tags) and isinstance(memory.extra.get(_KEY), dict)


def move_handoffs(home: Home) -> None:
    """Make files of the handoffs that wait and are no older than a week, and delete all that are memories.

    It is due after the upgrade, and when such a file came into the vault; elsewhere it costs a look. What only has the
    tags of a handoff is a memory like any other, and is indexed as such from now on.
    """
    if home.usage.value(_STATE) != _DUE:
        return
    with home.vault_lock.if_free() as is_ours:
        if not is_ours:
            return
        tagged = [one for one in home.memories.everything() if one.kind is Kind.EVENT and _TAGS.issubset(one.tags)]
        former = [one for one in tagged if _was_one(one)]
        waiting = [one for one in former if one.is_vouched and one.is_active]
        for one in waiting:
            is_new = one.updated >= home.now() - HANDED_FOR and home.handoffs.find(one.id) is None
            if one.project and is_new:
                home.handoffs.write(_as_file(one, one.project))
        try:
            with home.change(_KEY, why="handoffs are files of their own") as change, change.transaction():
                for one in former:
                    change.remove(one)
                for one in tagged:
                    if one not in former:
                        home.memories.put(one)
                home.usage.set_value(_STATE, "done")
        except EditConflict as error:
            home.problems.append(error.message)


def _as_file(memory: Memory, project: str) -> Handoff:
    told = {name: str(memory.extra[_KEY].get(name) or "") for name in ("until", "asked", "by")}
    return Handoff(
        memory.id, project, memory.source.session or "", memory.content, told["by"] or BY_RULES, memory.updated,
        memory.updated, told["until"], told["asked"],
    )  # fmt: skip
