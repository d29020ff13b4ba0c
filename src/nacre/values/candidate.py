"""The result of extraction: one proposed memory, and one that waits to become one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from nacre.values.memory import Confidence, Expiry, Kind, Memory
from nacre.values.session import Speaker, Trust


class Why(StrEnum):
    """Why a candidate waits.

    ``found``: rules found it, nobody wrote it. ``unproven``: its evidence does not bear it out. ``untrusted``: it may
    come from outside. ``minor``: a writer wrote it, and others of its session matter more.
    """

    FOUND = "found"
    UNPROVEN = "unproven"
    UNTRUSTED = "untrusted"
    MINOR = "minor"


@dataclass(frozen=True, slots=True)
class Candidate:
    """One proposed memory: the session's own words, and the ids of the turns that show it.

    ``importance`` follows agenr's calibration (seed facts 1.5): 7 is the durable default, 8 would change what
    another running session does, 9 and 10 are never given by rules alone. ``confidence_score`` is the share of its
    words that its evidence holds, where a model chose them. ``held`` says why it is to wait, empty for a memory at
    once, and ``detail`` says so in words; ``score`` is how likely it matters, 0 to 1. ``nodded`` says that
    once text from outside was read the owner stated hardly a word of it, or not what it tells to be gone
    (:data:`nacre.values.memory.NODDED`). ``mixed`` says that its message has marks of a paste
    (:data:`nacre.values.memory.BESIDE_PASTE`).
    """

    kind: Kind
    subject: str
    content: str
    turns: tuple[str, ...]
    importance: int = 7
    expiry: Expiry = Expiry.PERMANENT
    tags: tuple[str, ...] = ()
    speaker: Speaker = Speaker.OWNER
    trust: Trust = Trust.TRUSTED
    canonical_key: str | None = None
    confidence: Confidence = Confidence.INFERRED
    confidence_score: float | None = None
    held: Why | None = None
    detail: str = ""
    score: float = 1.0
    nodded: bool = False
    mixed: bool = False


@dataclass(frozen=True, slots=True)
class HeldCandidate:
    """A candidate that waits, as the memory it would be: why it waits, ``detail`` in words, its score, since when."""

    memory: Memory
    why: Why
    detail: str | None
    score: float
    found: datetime
