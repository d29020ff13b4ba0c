"""Finds, in words: what the owner stated plainly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nacre.extraction.reading.cues import language_of
from nacre.extraction.reading.meaning import Judge
from nacre.extraction.reading.sentences import Statement
from nacre.extraction.reading.speech import Utterance, is_taken_back
from nacre.extraction.rules.classify import THRESHOLD, Verdict, classify, settled
from nacre.extraction.rules.findings import Finding, to_finding
from nacre.extraction.rules.lessons import find_problem
from nacre.extraction.rules.neighbours import leans, stand_alone, with_request
from nacre.extraction.rules.reversal import content_words
from nacre.extraction.rules.validate import refusal
from nacre.values.memory import Kind

_COLONS = ":："
_RECENT = 3


def stated(spoken: Sequence[Utterance], judge: Judge) -> Iterator[Finding]:
    """The statements of all messages that are worth keeping by themselves."""
    for at, utterance in enumerate(spoken):
        for place in range(len(utterance.statements)):
            if is_taken_back(utterance, place):
                continue
            verdict = _verdict(utterance, place, judge)
            if verdict is None:
                continue
            language = language_of(verdict.text)
            content, evidence = _in_context(spoken, at, place, verdict)
            finding = to_finding(verdict, content, evidence, language) if content else None
            if finding:
                yield finding


def _verdict(utterance: Utterance, place: int, judge: Judge) -> Verdict | None:
    """What a statement is, if it is worth keeping."""
    statement = utterance.statements[place]
    language = language_of(statement.text)
    bonus = language.score.rejected if utterance.correcting else 0.0
    in_request = place > 0 and _is_request(utterance)
    detail = in_request and _is_about_what_was_asked(utterance, place)
    following = utterance.statements[place + 1 : place + 2]
    if language.answers.unsure.search(statement.text):
        return None  # the owner only asks whether it is so
    remembered = bool(following and language.remember.after.match(following[0].text))
    affinity = judge.said(language.trim(statement.text))
    texts = [statement.text]
    if statement.lead:
        texts.append(f"{statement.lead.rstrip(_COLONS)} {statement.text}")
    verdicts = [
        classify(
            text, language, bonus=bonus, in_request=in_request, detail=detail, remembered=remembered, affinity=affinity
        )
        for text in texts
    ]
    verdict = next((one for one in verdicts if one and one.kept), None)
    if verdict is None or language.remember.after.match(statement.text):
        return None
    if verdict.cue < THRESHOLD and _is_trouble(statement, utterance, verdict):
        return None
    return None if refusal(verdict, language) else settled(verdict, affinity)


def _is_trouble(statement: Statement, utterance: Utterance, verdict: Verdict) -> bool:
    told = language_of(statement.text).told(statement.text)
    return told in utterance.troubles and not (verdict.remembered or verdict.kind is Kind.LESSON)


def _is_request(utterance: Utterance) -> bool:
    language = language_of(utterance.text)
    return bool(language.reject["errand"].search(language.trim(utterance.statements[0].text)))


def _is_about_what_was_asked(utterance: Utterance, place: int) -> bool:
    """Whether a statement says more of the thing that its message began by asking for."""
    request, said = utterance.statements[0].text, utterance.statements[place].text
    asked = {_singular(word) for word in content_words(request, language_of(request))}
    return any(_singular(word) in asked for word in content_words(said, language_of(said)))


def _singular(word: str) -> str:
    return word[:-1] if word.endswith("s") else word


def _in_context(
    spoken: Sequence[Utterance], at: int, place: int, verdict: Verdict
) -> tuple[str | None, tuple[int, ...]]:
    """The words that stand alone, and the turns they come from."""
    utterance = spoken[at]
    language = language_of(verdict.text)
    here: tuple[int, ...] = (utterance.index,)
    if verdict.kind is Kind.LESSON and leans(verdict.text, language):
        problem = find_problem(spoken, at, language, look_back=_RECENT)
        told = f"{problem.text}{language.joiner}{verdict.text}" if problem else None
        return told, (problem.index, *here) if problem else here
    if verdict.with_request:
        told = with_request(verdict.text, place, utterance.statements, language)
        if told != verdict.text:
            return told, here
    told = stand_alone(verdict.text, place, utterance.statements, language)
    if told is None and place == 0 and at:
        before = spoken[at - 1]
        told = stand_alone(verdict.text, 1, [before.statements[-1], *utterance.statements], language)
        here = (before.index, *here)
    if told is None and verdict.kind is Kind.RELATIONSHIP:
        return verdict.text, (utterance.index,)  # "that's Ana's area": who it is counts
    return told, here
