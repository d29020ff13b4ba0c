"""What an agent was told in so many words: what says the same in the same words is not told beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nacre.extraction.reading import shown, speech
from nacre.home.home import Home
from nacre.text.passages import normalise, shorten
from nacre.transcripts import trust
from nacre.values.context import SessionState
from nacre.values.session import Speaker, Turn

TURN_CHARACTERS = 400
"""So much of a turn is told."""

_LATEST_TURNS = 80
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")


class Told:
    """Sentences that were told."""

    def __init__(self) -> None:
        self._sentences: set[str] = set()

    def add(self, text: str) -> None:
        """Note what is told."""
        self._sentences.update(_sentences(text))

    def says(self, text: str) -> bool:
        """Whether all of a text was told, each sentence as it is: within another it might say the opposite."""
        found = list(_sentences(text))
        return bool(found) and all(one in self._sentences for one in found)


def told_of(home: Home, row: int, turn: Turn) -> str:
    """What may be told of a turn of a session: of the owner's what they neither pasted nor may only show, nor chose in
    the agent's words once the session had read text from outside.
    """
    if turn.speaker is not Speaker.OWNER:
        return turn.text
    own = speech.without_chosen(turn.text)
    if own != turn.text.strip():
        turns = [one.turn for one in home.sessions.turns_of(row)]
        at = next((at for at, one in enumerate(turns) if one.id == turn.id), len(turns))
        if trust.reached_out(turns, at):
            return shown.own_words(own)
    return shown.own_words(turn.text)


def told_before(home: Home, project: str | None, state: SessionState) -> Told:
    """What a session was told: memories, what was handed over to it, turns of the session before."""
    told = Told()
    refs = [ref for ref in state.given if "#" in ref]
    ids = set(state.given).difference(refs)
    for memory in home.memories.in_any_state(sorted(ids)) if ids else ():
        told.add(memory.content)
    for handoff in home.handoffs.among(project, ids) if project and ids else ():
        told.add(handoff.content)
    for ref in refs:
        session, _, turn = ref.partition("#")
        for stored in home.sessions.find(session):
            for one in home.sessions.last_turns(stored.row, _LATEST_TURNS):
                if one.turn.id == turn:
                    told.add(shorten(told_of(home, stored.row, one.turn), TURN_CHARACTERS))
    return told


def _sentences(text: str) -> Iterator[str]:
    for part in _SENTENCE.split(text):
        if sentence := normalise(part):
            yield sentence
