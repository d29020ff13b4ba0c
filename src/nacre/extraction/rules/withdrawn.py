"""Settles, later on: what was learned from a session before it went on, and is taken back by what was said since."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from nacre.extraction.explicit.signs import asks
from nacre.extraction.reading.course import objects, refutation
from nacre.extraction.reading.cues import language_of
from nacre.extraction.reading.shown import may_be_others
from nacre.extraction.reading.speech import Utterance, utterances
from nacre.extraction.rules.reversal import dismissed_in, revoked_in, taken_back
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


@dataclass(frozen=True, slots=True)
class Revocation:
    """A statement by which the owner takes back whatever was said of something, when they said it, and the content
    words of that; ``plain`` where it says that what was said of it holds no longer, not only that it does not matter.
    ``forbids``: whether only what forbids that is meant, or only what does not.
    """

    text: str
    time: datetime | None
    words: frozenset[str]
    plain: bool = True
    forbids: bool | None = None


def revocations(turns: Sequence[Turn], begin: int) -> Iterator[Revocation]:
    """What the owner takes back by name at or after ``begin``: "forget the rule about the demo"."""
    for utterance in utterances(turns):
        for statement in utterance.statements if utterance.index >= begin else ():
            revoked = revoked_in(statement.text)
            words, forbids = (revoked, None) if revoked else dismissed_in(statement.text)
            if words and not asks(statement.text) and not may_be_others(statement):
                yield Revocation(statement.text, turns[utterance.index].time, words, bool(revoked), forbids)


def _objected(
    memory: Memory, places: Sequence[int], turns: Sequence[Turn], spoken: Sequence[Utterance], begin: int
) -> str | None:
    end = max((at for at in places if turns[at].speaker is Speaker.AGENT), default=places[-1]) + 1
    after = next((one for one in spoken if one.index >= end), None)
    if after and after.index >= begin and objects(after, language_of(after.text)):
        return after.text
    return refutation(memory.content, end, turns, spoken)
