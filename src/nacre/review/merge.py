"""Merge a memory, or what is to become one, into another as the owner wants it."""

from __future__ import annotations

from dataclasses import replace

from nacre.dedup.decision_prompt import Action, Decision
from nacre.dedup.placement import await_models, united
from nacre.errors import Conflict, InvalidInput
from nacre.home.change import Change
from nacre.home.home import Home
from nacre.memories.store import get, refuse_broken
from nacre.text.passages import normalise
from nacre.values.memory import Memory
from nacre.values.session import Trust

_BY = "you"
_REASON = "in review"


def target_of(home: Home, reference: str, memory: Memory) -> Memory:
    """The memory that another one is to be merged into. Raises NotFound, Conflict, MemoryInvalid."""
    target = get(home, reference)
    if target.id == memory.id or not target.is_active:
        why = "the same memory" if target.id == memory.id else "superseded or retired"
        raise Conflict(f"{target.subject!r} is {why}", hint="merge it into another memory: nacre list")
    refuse_broken(home, target)
    return target


def words_of_both(target: Memory, memory: Memory) -> str:
    """The words of two memories; those of the first where they hold the second's already."""
    if normalise(memory.content) in normalise(target.content):
        return target.content
    between = "\n\n" if "\n" in target.content + memory.content else " "
    return f"{target.content.rstrip()}{between}{memory.content.strip()}"


def merge_into(change: Change, target: Memory, memory: Memory, content: str | None) -> Memory:
    """Write the target in the words given, or in those of both; the owner answers for it from now on.

    Its subject, its kind and who said it stay; tags and evidence are those of both. Raises InvalidInput, EditConflict.
    """
    home = change.home
    words = (words_of_both(target, memory) if content is None else content).strip()
    if not words:
        raise InvalidInput("a memory needs content", hint="leave the content out to join the words of both")
    merged = united(home, target, memory, Decision(Action.UPDATE, _BY, _REASON, target.id, merged=words))
    merged = replace(merged.as_worded(), trust=Trust.TRUSTED, proposed=False, updated=home.now())
    change.put([merged])
    home.usage.confirm(target.id)
    home.comparisons.wait(merged.id)
    await_models(home, merged, target)
    return merged
