"""Of what was written of a long session, chooses what is worth telling: the rest waits as candidates.

Who writes part by part writes of each part what matters most in it. What readers would keep of a session grows slower
than the session: of 60 messages of the owner's a dozen memories, of two a few (figures: decision 59).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from nacre.extraction.by_model.answer import Chosen
from nacre.extraction.by_model.calls import Caller
from nacre.extraction.by_model.prompts import for_choice
from nacre.extraction.reading.speech import utterances
from nacre.values.candidate import Candidate, Why
from nacre.values.session import Turn

_GROWTH, _LEAST = 1.3, 1


def most_of(turns: Sequence[Turn], begin: int) -> int:
    """How many memories the turns from ``begin`` on are worth at most, by the owner's messages among them."""
    messages = {one.index for one in utterances(turns) if one.index >= begin}
    return math.ceil(_GROWTH * math.sqrt(len(messages))) + _LEAST


def chosen(caller: Caller, candidates: Sequence[Candidate], most: int, seconds: float) -> list[Candidate]:
    """The same candidates; of more than ``most`` memories those that the model does not choose wait.

    Where it does not answer, those that weigh most are chosen, of equal ones the last.
    """
    memories = [at for at, one in enumerate(candidates) if not one.held]
    if len(memories) <= most:
        return list(candidates)
    answer = caller.ask(for_choice([candidates[at] for at in memories], most, caller.capabilities, seconds), Chosen)
    named = dict.fromkeys(answer.keep) if answer else {}
    kept = [memories[number - 1] for number in named if 0 < number <= len(memories)][:most]
    kept = kept or sorted(memories, key=lambda at: (-candidates[at].importance, -at))[:most]
    return [
        replace(one, held=Why.MINOR, detail="others of its session matter more")
        if at in memories and at not in kept else one
        for at, one in enumerate(candidates)
    ]  # fmt: skip
