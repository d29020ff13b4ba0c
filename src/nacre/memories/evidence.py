"""The turns that show a memory."""

from __future__ import annotations

from nacre.home.home import Home
from nacre.text.excerpt import excerpt
from nacre.text.passages import words
from nacre.values.memory import Memory
from nacre.values.recall import Evidence

_CHARACTERS = 240
_CONFIRMATIONS = 2
"""Of a memory that was said again, the latest turns are shown as evidence."""


def evidence_of(home: Home, memory: Memory, characters: int = _CHARACTERS) -> tuple[Evidence, ...]:
    """The turns that show a memory, first and when it was said again, as far as they are in the index; of each this
    many characters, at most.
    """
    said_in = [(memory.source.session, turn) for turn in memory.source.turns]
    said_in += [(one.session, turn) for one in memory.confirmed[-_CONFIRMATIONS:] for turn in one.turns]
    evidence = []
    for session_id, turn_id in said_in:
        stored = home.sessions.find_said(session_id, turn_id) if session_id else None
        if stored is None:
            continue
        turn, session = stored.turn, home.sessions.get(stored.session).session
        said = excerpt(turn.text, words(memory.content)[:12], characters, wanted=memory.content)
        evidence.append(Evidence(session.id, turn_id, turn.speaker, turn.time, said))
    return tuple(evidence)
