"""A session's turns → candidate memories: what the owner stated plainly, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from nacre.extract.answers import asked, complete, pairs
from nacre.extract.candidate import Candidate
from nacre.extract.classify import Verdict, classify
from nacre.extract.context import leans, stand_alone, with_request
from nacre.extract.cues import Language, language_of
from nacre.extract.findings import Finding
from nacre.extract.importance import AGENT_CAP, MAX_STRONG, STRONG, expiry_of, importance_of
from nacre.extract.lessons import find_problem, lessons
from nacre.extract.repeated import demands
from nacre.extract.reversal import settle
from nacre.extract.speech import Utterance, trusted_agent, utterances
from nacre.extract.subject import key_of, subject_of, tags_of
from nacre.extract.validate import refusal, size_refusal
from nacre.model.memory import Kind
from nacre.model.session import Session, SessionKind, Speaker, Turn

MAX_CANDIDATES = 6
_ONE_MORE_PER = 12
_MOST = 10
_POINTED_SCORE = 1.1
_PROVEN_SCORE = 1.4
_COLONS = ":："
_RECENT = 3


def extract(session: Session, turns: Sequence[Turn], *, begin: int = 0) -> list[Candidate]:
    """The memories of a session whose evidence includes a turn at or after ``begin``, in order.

    Pure and deterministic: the same turns give the same candidates.
    """
    if session.kind is not SessionKind.MAIN:
        return []
    spoken = utterances(turns)
    findings = sorted(_find(turns, spoken), key=lambda one: one.index)
    kept = _temper(_few(settle(findings, spoken), len(spoken)))
    return [_candidate(one, turns) for one in kept if max(one.evidence) >= begin]


def _find(turns: Sequence[Turn], spoken: Sequence[Utterance]) -> Iterator[Finding]:
    for lesson in lessons(turns, spoken):
        language = language_of(lesson.text)
        verdict = Verdict(lesson.text, Kind.LESSON, _PROVEN_SCORE, _PROVEN_SCORE)
        finding = _finding(verdict, lesson.text, lesson.turns, language)
        if finding and lesson.by_agent:
            finding = replace(finding, speaker=Speaker.AGENT, importance=min(finding.importance, AGENT_CAP))
        if finding:
            yield finding
    for demand in demands(spoken):
        language = language_of(demand.text)
        verdict = Verdict(demand.text, Kind.PREFERENCE, _PROVEN_SCORE, _PROVEN_SCORE)
        finding = _finding(verdict, demand.text, demand.turns, language)
        if finding:
            yield finding
    for at, utterance in enumerate(spoken):
        yield from _answered(turns, utterance)
        yield from _stated(spoken, at)


def _answered(turns: Sequence[Turn], utterance: Utterance) -> Iterator[Finding]:
    language = language_of(utterance.text)
    texts: list[tuple[str, tuple[int, ...]]] = [(text, (utterance.index,)) for text in pairs(utterance.text)]
    agent = trusted_agent(turns, utterance.index)
    if agent is not None:
        completed = complete(list(utterance.statements), asked(turns[agent].text), language)
        texts += [(one.text, (agent, utterance.index)) for one in completed]
    for text, evidence in texts:
        said = classify(text, language)
        kind = said.kind if said and said.kept else Kind.DECISION
        verdict = Verdict(text, kind, _POINTED_SCORE, _POINTED_SCORE, strong=bool(said and said.strong))
        if not leans(text, language):
            finding = _finding(verdict, text, evidence, language)
            if finding:
                yield finding


def _stated(spoken: Sequence[Utterance], at: int) -> Iterator[Finding]:
    utterance = spoken[at]
    for place in range(len(utterance.statements)):
        verdict = _verdict(utterance, place)
        if verdict is None:
            continue
        language = language_of(verdict.text)
        content, evidence = _in_context(spoken, at, place, verdict)
        finding = _finding(verdict, content, evidence, language) if content else None
        if finding:
            yield finding


def _verdict(utterance: Utterance, place: int) -> Verdict | None:
    """What a statement is, if it is worth keeping."""
    statement = utterance.statements[place]
    language = language_of(statement.text)
    bonus = language.score.rejected if utterance.correcting else 0.0
    in_request = place > 0 and _is_request(utterance)
    following = utterance.statements[place + 1 : place + 2]
    remembered = bool(following and language.remember.after.match(following[0].text))
    texts = [
        statement.text,
        *([f"{statement.lead.rstrip(_COLONS)} {statement.text}"] if statement.lead else []),
    ]
    verdicts = [classify(text, language, bonus=bonus, in_request=in_request, remembered=remembered) for text in texts]
    verdict = next((one for one in verdicts if one and one.kept), None)
    if verdict is None or language.remember.after.match(statement.text):
        return None
    return None if refusal(verdict, language) else verdict


def _is_request(utterance: Utterance) -> bool:
    language = language_of(utterance.text)
    return bool(language.reject["errand"].search(language.trim(utterance.statements[0].text)))


def _in_context(
    spoken: Sequence[Utterance], at: int, place: int, verdict: Verdict
) -> tuple[str | None, tuple[int, ...]]:
    """The words that stand alone, and the turns they come from."""
    utterance = spoken[at]
    language = language_of(verdict.text)
    here = (utterance.index,)
    if verdict.kind is Kind.LESSON and leans(verdict.text, language):
        problem = find_problem(spoken, at, language, look_back=_RECENT)
        told = f"{problem.text}{language.joiner}{verdict.text}" if problem else None
        return told, (problem.index, *here) if problem else here
    if verdict.with_request:
        told = with_request(verdict.text, place, utterance.statements, language)
        if told != verdict.text:
            return told, here
    return stand_alone(verdict.text, place, utterance.statements, language), here


def _finding(verdict: Verdict, content: str, evidence: tuple[int, ...], language: Language) -> Finding | None:
    about = content if leans(verdict.text, language) else verdict.text
    subject = subject_of(about, language, whole=verdict.kind is Kind.LESSON)
    if subject is None or size_refusal(content):
        return None
    return Finding(
        kind=verdict.kind,
        subject=subject,
        content=content[0].upper() + content[1:],
        spoken=verdict.text,
        index=evidence[-1],
        evidence=evidence,
        score=verdict.score,
        importance=importance_of(verdict, language),
        expiry=expiry_of(verdict, language),
        tags=tags_of(content, language),
        canonical_key=key_of(content, subject, language),
    )


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
