"""Finds, in words: what an agent only suspected and the owner found to be so: a lesson."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nacre.extraction.reading.cues import Language, language_of
from nacre.extraction.reading.reports import bare, is_certain, passages
from nacre.extraction.reading.speech import Utterance, trusted_agent
from nacre.extraction.rules.classify import PROVEN, Verdict
from nacre.extraction.rules.findings import Finding, to_finding
from nacre.extraction.rules.lessons import find_problem
from nacre.extraction.rules.neighbours import in_a_row, leans
from nacre.extraction.rules.reversal import content_words
from nacre.values.memory import Kind
from nacre.values.session import Speaker, Turn

_FEW_WORDS = 4
_MAX_TOGETHER = 400


def confirmed(turns: Sequence[Turn], spoken: Sequence[Utterance]) -> Iterator[Finding]:
    """The trouble and the suspicion about it that the owner confirmed in the next message."""
    for at, utterance in enumerate(spoken):
        language = language_of(utterance.text)
        first = utterance.statements[0].text
        agent = trusted_agent(turns, utterance.index)
        if agent is None or not language.concluded.confirmed.match(first) or first.endswith("?"):
            continue
        problem = find_problem(spoken, at, language)
        if problem is None:
            continue
        guess = _guess(turns[agent].text, first)
        text = in_a_row([problem.text, guess], language) if guess else ""
        if not text or len(text) > _MAX_TOGETHER:
            continue
        evidence = tuple(dict.fromkeys((problem.index, agent, utterance.index)))
        finding = to_finding(Verdict(text, Kind.LESSON, PROVEN, PROVEN), text, evidence, language, Speaker.AGENT)
        if finding:
            yield finding


def _guess(text: str, answer: str) -> str:
    """The last suspicion of a message that the answer is about, without the words that made it one."""
    language = language_of(text)
    for passage in reversed(passages(text)):
        for one in reversed(passage.statements):
            led = language.concluded.guess.match(one.text)
            rest = one.text[led.end() :] if led else ""
            told = bare(rest[:1].upper() + rest[1:], language)
            if told and is_certain(told, language) and not leans(told, language) and _is_about(answer, told, language):
                return told
    return ""


def _is_about(answer: str, told: str, language: Language) -> bool:
    rest = language.concluded.confirmed.sub("", answer, count=1)
    words = content_words(rest, language)
    return (len(rest.split()) < _FEW_WORDS and not words) or bool(words & content_words(told, language))
