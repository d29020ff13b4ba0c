"""Finishes: a candidate in the making, with its subject, weight and the turns that show it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nacre.extraction.rules.importance import MAX_STRONG, STRONG
from nacre.text.passages import shorten
from nacre.values.memory import Expiry, Kind

_SUBJECT_CHARACTERS = 60
_END = ".!?。！？"
_ADDRESS = ("http://", "https://")


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found, in which turns (``evidence``), how sure; ``spoken`` is the statement as it was said, ``shown``
    whether the owner may only show it, as somebody else's, ``nodded`` whether they only pointed at words of the agent,
    which may be somebody else's, too, ``mixed`` whether the message has marks of a paste.
    """

    kind: Kind
    subject: str
    content: str
    spoken: str
    index: int
    evidence: tuple[int, ...]
    score: float
    importance: int
    expiry: Expiry = Expiry.PERMANENT
    shown: bool = False
    nodded: bool = False
    mixed: bool = False

    def repeats(self, other: Finding) -> bool:
        """Whether it is told from the same statement of the same turn."""
        return self.index == other.index and (self.spoken in other.spoken or other.spoken in self.spoken)


def subject_of(content: str) -> str:
    """What a statement is about: its beginning, at most sixty characters."""
    return as_sentence(shorten(content.rstrip(_END), _SUBJECT_CHARACTERS))


def as_sentence(text: str) -> str:
    """A statement with a capital at its beginning, where that is no address; an answer without what points at it."""
    text = text.removeprefix("→ ").replace(": → ", ": ", 1)
    return text if text.startswith(_ADDRESS) else text[:1].upper() + text[1:]


def tempered(findings: Sequence[Finding]) -> list[Finding]:
    """At most two memories of a session may change what every other session does (seed facts 1.5)."""
    strong = [one for one in findings if one.importance >= STRONG]
    allowed = sorted(strong, key=lambda one: (-one.importance, -one.score, one.index))[:MAX_STRONG]
    too_many = [one for one in strong if one not in allowed]
    return [replace(one, importance=STRONG - 1) if one in too_many else one for one in findings]
