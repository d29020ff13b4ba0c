"""What a session changes of memories that are known: they are over, or say something else from then on."""

from __future__ import annotations

from dataclasses import replace

from nacre.dedup.placement import MOST_CONFIRMATIONS, await_models, update
from nacre.dedup.supersession import released
from nacre.extraction.by_model.overtaken import Overtaken
from nacre.home.change import Change
from nacre.home.redaction import redacted
from nacre.values.memory import Retirement

AMENDED = "amended"
"""The front-matter key of a memory whose words a model brought up to date: which model, and what showed it."""


def end(change: Change, memory_id: str, reason: str) -> None:
    """Move a memory to ``retired/``; what it had superseded holds again."""
    home = change.home
    memory = home.memories.find(memory_id)
    if memory is None or not memory.is_active:
        return
    clean = home.redactor.clean(reason)
    gone = replace(memory, retired=Retirement(home.now(), clean))
    told = change.entry("retire", memory=memory_id, reason=clean)
    change.put([gone, *released(home, [memory])], [told])


def amend(change: Change, one: Overtaken, by: str) -> None:
    """Let a memory end, or say what it says now, in the words that the model ``by`` that name chose.

    Who said it, its trust and its name stay. One that says something else than when the model saw it is left alone, and
    so is one whose file a person is editing: their words come first.
    """
    reason = f"as a session shows: {one.quote}"
    if not one.now:
        end(change, one.memory.id, f"over, {reason}")
        return
    home = change.home
    memory = home.memories.find(one.memory.id)
    if memory is None or not memory.is_active or memory.content != one.memory.content:
        return
    rewritten = redacted(home.redactor, replace(
        memory, content=one.now, claim=None, updated=max(memory.updated, one.shown.at),
        confirmed=tuple(sorted((*memory.confirmed, one.shown), key=lambda it: it.at)[-MOST_CONFIRMATIONS:]),
        extra={**memory.extra, AMENDED: {"by": by, "reason": reason}},
    ))  # fmt: skip
    if update(change, rewritten):
        await_models(home, rewritten, memory)
