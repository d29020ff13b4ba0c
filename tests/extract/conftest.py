"""Small sessions, and what is extracted from them."""

from __future__ import annotations

from dataclasses import replace

from nacre.extraction.extractor import extract
from nacre.extraction.reading.meaning import Meaning
from nacre.values.candidate import Candidate
from nacre.values.session import Flag, Session, Speaker, ToolCall, Trust, Turn

SESSION = Session(tool="claude-code", native_id="s1")


def owner(text: str, flags: Flag = Flag.NONE) -> Turn:
    return Turn(id="", speaker=Speaker.OWNER, text=text, flags=flags)


def agent(text: str, *, calls: tuple[ToolCall, ...] = (), trust: Trust = Trust.TRUSTED) -> Turn:
    return Turn(id="", speaker=Speaker.AGENT, text=text, tool_calls=calls, trust=trust)


def memories(
    *turns: Turn, begin: int = 0, session: Session = SESSION, meaning: Meaning | None = None
) -> list[Candidate]:
    said = [replace(turn, id=f"t{at}") for at, turn in enumerate(turns)]
    return extract(session, said, begin=begin, meaning=meaning)


def only(*turns: Turn) -> Candidate:
    found = memories(*turns)
    assert len(found) == 1, found
    return found[0]
