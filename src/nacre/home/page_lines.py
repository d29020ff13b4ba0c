"""Lines that nacre writes on pages of the vault: each names at its end the memories and sessions that it rests on."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date

from nacre.home.home import Home
from nacre.hosts.marked import blocks_of
from nacre.values.memory import Memory

REFERENCE_CHARACTERS = 8
"""Of the end of a memory's id, in a line."""

AGENTS = "an agent: "
"""What stands before the references of a line that rests on what an agent said."""

_REFERENCES = re.compile(rf"\((?:{AGENTS})?([^()\s]+(?:, [^()\s]+)*)\)$")
_OF_MEMORY = re.compile(r"[0-9a-f]{8}")
_OF_SESSION = re.compile(r"[\w.-]+:\S+")


def references_of(line: str) -> tuple[str, ...]:
    """What a line names as its sources, memories by the ends of their ids; empty where it names anything else."""
    found = _REFERENCES.search(line)
    named = tuple(found[1].split(", ")) if found else ()
    return named if all(_OF_MEMORY.fullmatch(one) or is_session(one) for one in named) else ()


def is_session(reference: str) -> bool:
    """Whether a reference is that of a session, not of a memory."""
    return bool(_OF_SESSION.fullmatch(reference))


def as_line(words: str, references: Iterable[str], *, by_agent: bool = False) -> str:
    """A line of a page with what it rests on."""
    return f"- {words} ({AGENTS if by_agent else ''}{', '.join(references)})"


def memory_named(home: Home, reference: str) -> Memory | None:
    """The memory that a line names, in any state; ``None`` where there is none, or more than one."""
    found = [one for one in home.memories.find_like(reference) if one.id.endswith(reference)]
    return found[0] if len(found) == 1 else None


def is_current(memory: Memory, today: date) -> bool:
    """Whether a memory holds on a day, in a place that is settled."""
    is_over = (memory.valid.until and memory.valid.until < today) or (memory.expires_on and memory.expires_on <= today)
    return memory.is_active and not (memory.inbox or is_over)


def without_what_is_over(home: Home, text: str) -> str:
    """A page without those lines of nacre's that rest on a memory which does not hold any more."""
    lines = [line for block in blocks_of(text) for line in block.splitlines() if line.startswith("- ")]
    over = {line for line in lines if not rests_on_what_holds(home, line)}
    if not over:
        return text
    return "".join(line for line in text.splitlines(keepends=True) if line.rstrip("\r\n") not in over)


def rests_on_what_holds(home: Home, line: str) -> bool:
    """Whether all memories that a line names hold, and somebody answers for them."""
    today = home.today()
    found = [memory_named(home, one) for one in references_of(line) if not is_session(one)]
    return all(one is not None and one.is_vouched and is_current(one, today) for one in found)
