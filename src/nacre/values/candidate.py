"""The result of extraction: one proposed memory."""

from __future__ import annotations

from nacre.platform.fast_dataclass import dataclass
from nacre.values.memory import Confidence, Expiry, Kind
from nacre.values.session import Speaker, Trust


@dataclass(frozen=True, slots=True)
class Candidate:
    """One proposed memory: the session's own words, and the ids of the turns that show it.

    ``importance`` follows agenr's calibration (seed facts 1.5): 7 is the durable default, 8 would change what
    another running session does, 9 and 10 are never given by rules alone. ``confidence_score`` is the share of its
    words that its evidence holds, where a model chose them.
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
