"""All stages in a row: a session's turns → what the owner stated explicitly, and candidates that may matter.

Only what was explicit becomes a memory at once (:mod:`nacre.extraction.explicit`). What is about the task at hand, what
tells in definite words how something is, and answers that choose, are candidates: they wait for a writer, for the owner
to say them again, or for review.
Which of two explicit statements replaces the other is decided where memories are placed, as for those of two sessions.
"""

from __future__ import annotations

from collections.abc import Sequence

from nacre.extraction.explicit.find import SURE, explicit
from nacre.extraction.reading.bounds import bounded
from nacre.extraction.reading.speech import utterances
from nacre.extraction.rules.answers import answered
from nacre.extraction.rules.findings import Finding, tempered
from nacre.extraction.rules.importance import weighed
from nacre.extraction.rules.reversal import once
from nacre.values.candidate import Candidate, Why
from nacre.values.session import Session, SessionKind, Speaker, Turn

MAX_CANDIDATES = 6
_ONE_MORE_PER = 12
_MOST = 10
CHOSEN = "you chose it"
"""What is told of an answer: its words are the agent's, so that saying it again says nothing."""

SHOWN = "it stands where people paste what others wrote"
"""What is told of what the owner may only show: showing it again says nothing either."""

NODDED = "it is in the agent's words, after text from outside was read"
"""What is told of words of the agent that the owner only pointed at."""

_NOTES = frozenset({"markdown", "text"})
"""Tools whose files may be the owner's own notes: nobody pastes below the first line of these."""

_HEAVIEST = 2.0
"""A statement that weighs so much is as likely to matter as any."""


def extract(session: Session, turns: Sequence[Turn], *, begin: int = 0) -> list[Candidate]:
    """What is found in a session whose evidence includes a turn at or after ``begin``, in order.

    Those that are ``held`` only may matter; the others are memories. Pure and deterministic: the same turns give the
    same candidates.
    """
    if session.kind is not SessionKind.MAIN:
        return []
    turns = [bounded(turn) for turn in turns]
    spoken = utterances(turns)
    is_note = session.tool in _NOTES and all(one.speaker is Speaker.OWNER for one in turns)
    told = once(list(explicit(turns, spoken, is_note=is_note)))
    sure = tempered([one for one in told if one.score >= SURE])
    likely = [one for one in told if one.score < SURE]
    chosen = [one for one in answered(turns, spoken) if not any(map(one.repeats, told))]
    few = _few(once([*likely, *chosen]), len(spoken))
    found = sorted([*sure, *few], key=lambda one: one.index)
    candidates = [
        _candidate(one, turns, is_sure=one in sure, is_chosen=one in chosen)
        for one in found if max(one.evidence) >= begin
    ]  # fmt: skip
    return weighed(session.tool, candidates)


def _few(findings: list[Finding], utterance_count: int) -> list[Finding]:
    """The surest, in the order they were said."""
    most = min(_MOST, MAX_CANDIDATES + utterance_count // _ONE_MORE_PER)
    surest = sorted(findings, key=lambda one: (-one.score, one.index))[:most]
    return [one for one in findings if one in surest]


def _candidate(finding: Finding, turns: Sequence[Turn], *, is_sure: bool, is_chosen: bool) -> Candidate:
    return Candidate(
        kind=finding.kind,
        subject=finding.subject,
        content=finding.content,
        turns=tuple(turns[at].id for at in finding.evidence),
        importance=finding.importance,
        expiry=finding.expiry,
        held=None if is_sure else Why.FOUND,
        detail=CHOSEN if is_chosen else SHOWN if finding.shown else NODDED if finding.nodded else "",
        mixed=finding.mixed,
        score=1.0 if is_sure else round(min(1.0, finding.score / _HEAVIEST), 2),
    )
