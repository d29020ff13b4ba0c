"""All stages in a row: a session's turns → candidate memories, what the owner said or accepted and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from nacre.extraction.reading.bounds import bounded
from nacre.extraction.reading.course import doubted
from nacre.extraction.reading.meaning import Judge, Meaning
from nacre.extraction.reading.speech import Utterance, utterances
from nacre.extraction.rules.accepted import accepted
from nacre.extraction.rules.answers import answered
from nacre.extraction.rules.behaviour import behaviours, is_answered
from nacre.extraction.rules.concluded import concluded
from nacre.extraction.rules.confirmed import confirmed
from nacre.extraction.rules.findings import Finding
from nacre.extraction.rules.importance import MAX_STRONG, STRONG
from nacre.extraction.rules.lessons import lessons
from nacre.extraction.rules.opening import begun
from nacre.extraction.rules.plans import planned
from nacre.extraction.rules.repeated import demands
from nacre.extraction.rules.reversal import settle
from nacre.extraction.rules.review_remarks import reviewed
from nacre.extraction.rules.stated import stated
from nacre.values.candidate import Candidate
from nacre.values.session import Session, SessionKind, Turn

MAX_CANDIDATES = 6
_ONE_MORE_PER = 12
_MOST = 10


def extract(
    session: Session, turns: Sequence[Turn], *, begin: int = 0, meaning: Meaning | None = None
) -> list[Candidate]:
    """The memories of a session whose evidence includes a turn at or after ``begin``, in order.

    Pure and deterministic: the same turns and the same ``meaning`` give the same candidates. Without a meaning the
    cue tables alone decide.
    """
    if session.kind is not SessionKind.MAIN:
        return []
    turns = [bounded(turn) for turn in turns]
    spoken = utterances(turns)
    judge = Judge(meaning, spoken)
    findings = sorted(_find(turns, judge.spoken, judge), key=lambda one: one.index)
    kept = _temper(_few(settle(findings, spoken), len(spoken)))
    return [_candidate(one, turns) for one in kept if max(one.evidence) >= begin]


def _find(turns: Sequence[Turn], spoken: Sequence[Utterance], judge: Judge) -> Iterator[Finding]:
    suspected = list(confirmed(turns, spoken))
    borne_out = [one for one in lessons(turns, spoken, judge) if one.index not in {other.index for other in suspected}]
    found = [
        *suspected,
        *(one for one in borne_out if not doubted(one.content, one.index + 1, turns, spoken)),
        *demands(spoken),
        *answered(turns, spoken),
        *accepted(turns, spoken, judge),
        *stated(spoken, judge),
    ]
    found += concluded(turns, spoken, found, judge)
    now = list(behaviours(turns, spoken, found))
    yield from now
    project = list(begun(spoken))
    yield from project
    yield from (one for one in found if not is_answered(one, now) and not any(map(one.repeats, project)))
    yield from planned(turns, spoken)
    yield from reviewed(turns, spoken)


def _few(findings: list[Finding], utterance_count: int) -> list[Finding]:
    """The surest, in the order they were said."""
    most = min(_MOST, MAX_CANDIDATES + utterance_count // _ONE_MORE_PER)
    surest = sorted(findings, key=lambda one: (-one.score, one.index))[:most]
    return [one for one in findings if one in surest]


def _temper(findings: list[Finding]) -> list[Finding]:
    """At most two memories of a session may change what every other session does."""
    strong = [one for one in findings if one.importance >= STRONG]
    allowed = sorted(strong, key=lambda one: (-one.importance, -one.score, one.index))[:MAX_STRONG]
    too_many = [one for one in strong if one not in allowed]
    return [replace(one, importance=STRONG - 1) if one in too_many else one for one in findings]


def _candidate(finding: Finding, turns: Sequence[Turn]) -> Candidate:
    return Candidate(
        kind=finding.kind,
        subject=finding.subject,
        content=finding.content,
        turns=tuple(turns[at].id for at in finding.evidence),
        importance=finding.importance,
        expiry=finding.expiry,
        tags=finding.tags,
        speaker=finding.speaker,
        canonical_key=finding.canonical_key,
    )
