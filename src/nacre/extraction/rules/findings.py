"""Finishes: a candidate in the making, with its subject, weight and the turns that show it."""

from __future__ import annotations

from dataclasses import dataclass

from nacre.extraction.reading.cues import Language
from nacre.extraction.rules.classify import Verdict
from nacre.extraction.rules.importance import AGENT_CAP, expiry_of, importance_of
from nacre.extraction.rules.neighbours import leans
from nacre.extraction.rules.subject import subject_of
from nacre.extraction.rules.tags import key_of, tags_of
from nacre.extraction.rules.validate import size_refusal
from nacre.extraction.rules.wording import capitalised, stated_plainly, unlabelled
from nacre.values.memory import Expiry, Kind
from nacre.values.session import Speaker


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

    def repeats(self, other: Finding) -> bool:
        """Whether it is told from the same statement of the same turn."""
        return self.index == other.index and (self.spoken in other.spoken or other.spoken in self.spoken)


def to_finding(
    verdict: Verdict, content: str, evidence: tuple[int, ...], language: Language, speaker: Speaker = Speaker.OWNER
) -> Finding | None:
    """A statement with its words in full and the turns it comes from; ``None`` without a subject worth the name.

    What an agent said weighs six at most (seed facts 1.5).
    """
    content = stated_plainly(unlabelled(content, language), language)
    about = content if leans(verdict.text, language) else stated_plainly(verdict.text, language)
    subject = subject_of(about, language, verdict.kind)
    if subject is None or size_refusal(content):
        return None
    importance = importance_of(verdict, language)
    return Finding(
        kind=verdict.kind,
        subject=subject,
        content=capitalised(content, language),
        spoken=verdict.text,
        index=evidence[-1],
        evidence=evidence,
        score=verdict.score,
        importance=importance if speaker is Speaker.OWNER else min(importance, AGENT_CAP),
        expiry=expiry_of(verdict, language),
        tags=tags_of(content, language),
        speaker=speaker,
        canonical_key=key_of(content, subject, language),
    )
