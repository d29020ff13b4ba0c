"""Helpers that build small sessions and extract memories from them."""

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


def all_candidates(*turns: Turn, begin: int = 0, session: Session = SESSION) -> list[Candidate]:
    """Return the memories and the pending candidates."""
    numbered = [replace(turn, id=f"t{at}") for at, turn in enumerate(turns)]
    return extract(session, numbered, begin=begin)


def memories(*turns: Turn, begin: int = 0, session: Session = SESSION) -> list[Candidate]:
    """Return the memories that are stored without review."""
    return [item for item in all_candidates(*turns, begin=begin, session=session) if not item.held]


def only(*turns: Turn) -> Candidate:
    result = memories(*turns)
    assert len(result) == 1, result
    return result[0]
