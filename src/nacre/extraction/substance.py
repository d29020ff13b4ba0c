"""Weighs: whether there is anything in a session that a model should be asked about."""

from __future__ import annotations

from collections.abc import Sequence

from nacre.extraction.extractor import extract
from nacre.extraction.reading.speech import Utterance, is_accepted_plan, utterances
from nacre.settings import Settings
from nacre.text.passages import is_unspaced
from nacre.values.session import Session, SessionKind, Turn

_WORDS_A_CHARACTER = 0.625
"""Eight characters of a script without spaces count as five words."""


def is_worth_asking(session: Session, turns: Sequence[Turn], settings: Settings, *, begin: int = 0) -> bool:
    """Whether the owner said something of substance at or after the turn ``begin``.

    That is a message in which they typed at least ``extraction.substance_words`` words of their own, or a shorter one
    in which the deterministic extractor finds a memory ("never force-push"), or one that accepts a plan. What a harness
    wrote, what was pasted and what comes from outside is none.
    """
    if session.kind is not SessionKind.MAIN:
        return False
    least = settings.whole("extraction.substance_words")
    if any(words_of(one) >= least for one in utterances(turns) if one.index >= begin):
        return True
    if any(is_accepted_plan(turns, at) for at in range(begin, len(turns))):
        return True
    return bool(extract(session, turns, begin=begin))


def words_of(utterance: Utterance) -> float:
    """How many words of their own the owner typed in a message."""
    return sum(_count_words(one.text) for one in utterance.statements)


def _count_words(text: str) -> float:
    if is_unspaced(text):
        return _WORDS_A_CHARACTER * sum(character.isalnum() for character in text)
    return len(text.split())
