"""A candidate in the making."""

from __future__ import annotations

from dataclasses import dataclass

from nacre.model.memory import Expiry, Kind
from nacre.model.session import Speaker


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found, in which turns (``evidence``), how sure; ``spoken`` is the statement as it was said."""

    kind: Kind
    subject: str
    content: str
    spoken: str
    index: int
    evidence: tuple[int, ...]
    score: float
    importance: int
    expiry: Expiry
    tags: tuple[str, ...]
    speaker: Speaker = Speaker.OWNER
    canonical_key: str | None = None
