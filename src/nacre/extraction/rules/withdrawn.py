"""Settles, later on: what was learned from a session before it went on, and is taken back by what was said since."""

from __future__ import annotations

from collections.abc import Sequence

from nacre.extraction.reading.course import objects, refutation
from nacre.extraction.reading.cues import language_of
from nacre.extraction.reading.speech import Utterance, utterances
from nacre.extraction.rules.reversal import taken_back
from nacre.values.memory import Kind, Memory
from nacre.values.session import Speaker, Turn

_QUOTED = 120


def withdrawal(memory: Memory, turns: Sequence[Turn], *, begin: int) -> str | None:
    """The words at or after ``begin`` that take back what a session taught; ``None`` while it still holds.

    What an agent reported is taken back by an objection in the next message, by trouble that persists, and by the
    agent itself; what the owner said, by the owner. The memory's turns must be among ``turns``.
    """
    places = [at for at, turn in enumerate(turns) if turn.id in memory.source.turns]
    if not places or begin >= len(turns):
        return None
    spoken = utterances(turns)
    words = None
    if memory.speaker is Speaker.AGENT or memory.kind is Kind.LESSON:
        words = _objected(memory, places, turns, spoken, begin)
    words = words or taken_back(memory.kind, memory.content, places[-1], spoken, begin=begin)
    return words[:_QUOTED] if words else None


def _objected(
    memory: Memory, places: Sequence[int], turns: Sequence[Turn], spoken: Sequence[Utterance], begin: int
) -> str | None:
    end = max((at for at in places if turns[at].speaker is Speaker.AGENT), default=places[-1]) + 1
    after = next((one for one in spoken if one.index >= end), None)
    if after and after.index >= begin and objects(after, language_of(after.text)):
        return after.text
    return refutation(memory.content, end, turns, spoken)
