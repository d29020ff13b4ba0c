"""How many memories a session is worth: of more, those that weigh least wait as candidates.

Who writes part by part writes of each part what matters most in it. What readers would keep of a session grows slower
than the session: of sixty messages of the owner's a dozen memories, of two a few. The constants are those of two
readers' labels (decision 12).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace

from nacre.extraction.reading.speech import utterances
from nacre.values.candidate import Candidate, Why
from nacre.values.session import Turn

_GROWTH, _LEAST = 1.3, 1


def most_of(turns: Sequence[Turn], begin: int) -> int:
    """How many memories the turns from ``begin`` on are worth at most, by the owner's messages among them."""
    messages = {one.index for one in utterances(turns) if one.index >= begin}
    return math.ceil(_GROWTH * math.sqrt(len(messages))) + _LEAST


def worthiest(candidates: Sequence[Candidate], most: int) -> list[Candidate]:
    """The same candidates, of which ``most`` are memories: those that weigh most, of equal ones the last."""
    memories = [at for at, one in enumerate(candidates) if not one.held]
    return _others_wait(candidates, sorted(memories, key=lambda at: (-candidates[at].importance, -at))[:most])


def first_of(candidates: Sequence[Candidate], most: int) -> list[Candidate]:
    """The same candidates, of which only the ``most`` that weigh most may be memories, those that are held back among
    them: who proposes the same again and again, in one way or another, gets no further.
    """
    return _others_wait(candidates, sorted(range(len(candidates)), key=lambda at: -candidates[at].importance)[:most])


def _others_wait(candidates: Sequence[Candidate], kept: Collection[int]) -> list[Candidate]:
    return [
        one if one.held or at in kept else replace(one, held=Why.MINOR, detail="others of its session matter more")
        for at, one in enumerate(candidates)
    ]
