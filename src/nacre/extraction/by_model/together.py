"""Several small sessions in one call: the words that ask are paid for once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nacre.extraction.by_model.answer import Reply, Seen
from nacre.extraction.by_model.calls import Caller
from nacre.extraction.by_model.layout import DIGEST_TOKENS, Chunk, laid_out, whole
from nacre.extraction.by_model.pipeline import Asking, Extraction, Wanted, compared, replied
from nacre.extraction.by_model.prompts import CHARACTERS_A_TOKEN, chunk_size, for_sessions
from nacre.text.passages import count_tokens
from nacre.values.memory import Memory
from nacre.values.model_calls import Capabilities, Prompt, Tokens
from nacre.values.session import Session, SessionKind, Turn

SMALL = 3_000
"""Tokens of a session that is shown together with others, at most."""

MOST = 8
"""Sessions in one call."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A session that is over: its turns, and the first of them that no model has been shown."""

    session: Session
    turns: Sequence[Turn]
    begin: int = 0


def size_of(shown: Shown) -> int:
    """How many tokens of a session a model would be shown."""
    chunk = whole(laid_out(shown.turns), shown.begin)
    return count_tokens(chunk.text) if chunk else 0


def fitting(sizes: Sequence[int], able: Capabilities) -> int:
    """How many sessions of those sizes go together into one call, from the first on; 0 where that is not small."""
    total, most = 0, min(DIGEST_TOKENS, chunk_size(able) // CHARACTERS_A_TOKEN)
    for count, size in enumerate(sizes[:MOST]):
        total += size
        if size > SMALL or total > most:
            return count
    return min(len(sizes), MOST)


def extract_together(caller: Caller, sessions: Sequence[Shown], wanted: Wanted) -> list[Extraction] | None:
    """What a model finds in sessions that it is shown in one call, in order; ``None`` where it gave no answer.

    Each is judged by itself: a memory whose turns are of two sessions is none. What the calls cost is of none of them:
    the caller tells it.
    """
    asked: list[tuple[Asking, Chunk]] = []
    number = 0
    for one in sessions:
        chunk = whole(laid_out(one.turns, after=number), one.begin)
        if chunk is None or one.session.kind is not SessionKind.MAIN:
            return None
        number = chunk.lines[-1].number
        asked.append((Asking(caller, one.session, one.turns, replace(wanted, begin=one.begin)), chunk))
    shown = [(asking.session, chunk) for asking, chunk in asked]

    def asking_all(known: Sequence[Memory]) -> Prompt:
        return for_sessions(shown, known, caller.capabilities, wanted.timeout_seconds)

    def bears(seen: Seen) -> bool:
        return any(asking.bears(chunk, seen) for asking, chunk in asked)

    answer = replied(caller, shown, asked[0][0].known, wanted.timeout_seconds, bears, asking_all)
    if answer is not None:
        found = _judged(caller, asked, answer, wanted.timeout_seconds)
    elif caller.is_over:
        found = [asking.left_to_rules([chunk]) for asking, chunk in asked]
    else:
        return None
    return [replace(one, calls=0, tokens=Tokens()) for one in found]


def _judged(
    caller: Caller, asked: Sequence[tuple[Asking, Chunk]], answer: Reply, seconds: float
) -> list[Extraction]:  # fmt: skip
    answers = [_own(answer, chunk) for _, chunk in asked]
    taken = [asking.taken([chunk], [own]) for (asking, chunk), own in zip(asked, answers, strict=True)]
    borne = [(kept, overtaken, asking.turns) for (kept, overtaken), (asking, _) in zip(taken, asked, strict=True)]
    judged = compared(caller, borne, seconds)
    return [
        asking.extraction([chunk], [own], of_session)
        for (asking, chunk), own, of_session in zip(asked, answers, judged, strict=True)
    ]


def _own(answer: Reply, chunk: Chunk) -> Reply:
    """What an answer says of one of the sessions."""
    mine = chunk.places.keys()
    return Reply(
        [one for one in answer.memories if mine & set(one.evidence)],
        [one for one in answer.known if mine & set(one.evidence)],
    )
