"""What sessions change of memories that are known: they are over, or say something else from then on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from nacre.dedup.placement import MOST_CONFIRMATIONS, await_models, update
from nacre.dedup.supersession import released
from nacre.extraction.by_model.overtaken import Overtaken
from nacre.home.change import Change
from nacre.home.redaction import redacted
from nacre.values.memory import Retirement

AMENDED = "amended"
"""The front-matter key of a memory whose words a model brought up to date: which model, and what showed it."""


@dataclass
class Amendments:
    """What is noted of known memories until it is written, and how many were ``changed`` and ``ended`` so far."""

    changed: int = 0
    ended: int = 0
    _ends: dict[str, str] = field(default_factory=dict)
    _changes: list[tuple[Overtaken, str]] = field(default_factory=list)

    def end(self, memory_id: str, reason: str) -> None:
        """A memory is to end."""
        self._ends[memory_id] = reason

    def note(self, overtaken: Sequence[Overtaken], by: str) -> None:
        """What a model found overtaken is to end, or to say what it says now."""
        for one in overtaken:
            if one.now:
                self._changes.append((one, by))
            else:
                self.end(one.memory.id, f"over, as a session shows: {one.quote}")

    def write(self, change: Change) -> None:
        """Write what was noted."""
        for memory_id, reason in self._ends.items():
            self.ended += _end(change, memory_id, reason)
            change.yield_locks()
        for one, model in self._changes:
            self.changed += _amend(change, one, model)
            change.yield_locks()
        self._ends.clear()
        self._changes.clear()


def _end(change: Change, memory_id: str, reason: str) -> bool:
    """Move a memory to ``retired/``, unless it ended before; what it had superseded holds again."""
    home = change.home
    memory = home.memories.find(memory_id)
    if memory is None or not memory.is_active:
        return False
    clean = home.redactor.clean(reason)
    gone = replace(memory, retired=Retirement(home.now(), clean))
    told = change.entry("retire", memory=memory_id, reason=clean)
    change.put([gone, *released(home, [memory])], [told])
    return True


def _amend(change: Change, one: Overtaken, by: str) -> bool:
    """Have a memory say what it says now, in the words that the model ``by`` that name chose; returns whether it does.

    Who said it, its trust and its name stay. One that says something else than when the model saw it is left alone, and
    so is one whose file a person is editing: their words come first.
    """
    home = change.home
    memory = home.memories.find(one.memory.id)
    if memory is None or not memory.is_active or memory.content != one.memory.content:
        return False
    confirmed = sorted((*memory.confirmed, one.shown), key=lambda it: it.at)[-MOST_CONFIRMATIONS:]
    noted = {AMENDED: {"by": by, "reason": f"a session shows it: {one.quote}"}}
    rewritten = redacted(home.redactor, replace(
        memory, content=one.now, claim=None, updated=max(memory.updated, one.shown.at), confirmed=tuple(confirmed),
        extra={**memory.extra, **noted},
    ))  # fmt: skip
    is_written = update(change, rewritten)
    if is_written:
        await_models(home, rewritten, memory)
    return is_written
