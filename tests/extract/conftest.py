"""Small sessions, and what is extracted from them."""

from __future__ import annotations

from dataclasses import replace

from nacre.learn.extract import extract
from nacre.values.memory import Candidate
from nacre.values.session import Flag, Session, Speaker, ToolCall, Trust, Turn

SESSION = Session(tool="claude-code", native_id="s1")


def owner(text: str, flags: Flag = Flag.NONE) -> Turn:
    return Turn(id="", speaker=Speaker.OWNER, text=text, flags=flags)


def agent(text: str, *, calls: tuple[ToolCall, ...] = (), trust: Trust = Trust.TRUSTED) -> Turn:
    return Turn(id="", speaker=Speaker.AGENT, text=text, tool_calls=calls, trust=trust)


def found(*turns: Turn, begin: int = 0, session: Session = SESSION) -> list[Candidate]:
    """Memories, and candidates that wait."""
    said = [replace(turn, id=f"t{at}") for at, turn in enumerate(turns)]
    return extract(session, said, begin=begin)


def memories(*turns: Turn, begin: int = 0, session: Session = SESSION) -> list[Candidate]:
    """What is a memory at once."""
    return [one for one in found(*turns, begin=begin, session=session) if not one.held]


def only(*turns: Turn) -> Candidate:
    kept = memories(*turns)
    assert len(kept) == 1, kept
    return kept[0]
