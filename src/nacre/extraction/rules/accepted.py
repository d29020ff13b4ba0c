"""Finds, in words: what an agent concluded or proposed, and the owner accepted in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nacre.extraction.reading.cues import Language, language_of
from nacre.extraction.reading.meaning import Judge
from nacre.extraction.reading.sentences import split_report
from nacre.extraction.reading.speech import Utterance, acceptance, before, is_taken_back, trusted_agent
from nacre.extraction.rules.answers import POINTED
from nacre.extraction.rules.classify import Verdict, classify
from nacre.extraction.rules.findings import Finding, to_finding
from nacre.extraction.rules.neighbours import in_a_row, leans
from nacre.extraction.rules.reversal import content_words
from nacre.values.memory import Kind
from nacre.values.session import Speaker, Turn

_LEAST_WORTH = 0.5
_MAX_CLAIM = 260
_MIN_CLAIM = 30
_MIN_WORDS = 4
_MAX_WORDS = 40
_ECHO = 0.6


def accepted(turns: Sequence[Turn], spoken: Sequence[Utterance], judge: Judge) -> Iterator[Finding]:
    """The agent's last claim before every word of acceptance, with what the owner said about it."""
    for utterance in spoken:
        language = language_of(utterance.text)
        agent = trusted_agent(turns, utterance.index)
        if agent is None or acceptance(utterance, language) is None or is_taken_back(utterance, 0):
            continue
        claim = _claim(turns[agent].text, language, judge)
        if claim and not _repeats(claim, turns, agent, language):
            yield from _kept(claim, utterance, agent, language)


def _claim(text: str, language: Language, judge: Judge) -> str | None:
    """The last sentence that says how things are to be, not what the agent does next."""
    for one in reversed([statement.text for statement in split_report(text)]):
        if _claims(one, language) and not leans(one, language):
            affinity = judge.of(one, language)
            if affinity is None or affinity.worth >= _LEAST_WORTH:
                return one
    return None


def _repeats(claim: str, turns: Sequence[Turn], agent: int, language: Language) -> bool:
    """Whether the agent only says again what the owner had just said."""
    asked = before(turns, agent, Speaker.OWNER)
    said = content_words(turns[asked].text, language) if asked is not None else frozenset[str]()
    words = content_words(claim, language)
    return len(words & said) >= _ECHO * len(words)


def _claims(text: str, language: Language) -> bool:
    cues = language.accepted
    least = _MIN_CLAIM if language.joiner else _MIN_CLAIM // 2
    if not least <= len(text) <= _MAX_CLAIM or text.endswith(("?", "？", ":", "：")):
        return False
    if (
        text.startswith("`")
        or cues.step.search(text)
        or language.lesson.hedge.search(text)
        or language.lesson.cause.search(text)
    ):
        return False  # a cause is told with its trouble: see lessons
    return bool(cues.claim.search(text))


def _kept(claim: str, utterance: Utterance, agent: int, language: Language) -> Iterator[Finding]:
    own = _own_words(utterance, language)
    text = in_a_row([claim, *own], language)
    verdict = Verdict(text, Kind.DECISION, POINTED, POINTED)
    finding = to_finding(verdict, text, (agent, utterance.index), language, Speaker.OWNER if own else Speaker.AGENT)
    if finding:
        yield finding


def _own_words(utterance: Utterance, language: Language) -> list[str]:
    """What the owner added: "good idea, but only for the public API". What says enough by itself is kept by itself."""
    told = []
    for at, one in enumerate(acceptance(utterance, language) or []):
        said = classify(one, language)
        limits = language.answers.but.match(one)
        if _adds(one, language) and (limits or (at == 0 and not (said and said.kept))):
            told.append(one[0].upper() + one[1:])
    return told


def _adds(text: str, language: Language) -> bool:
    words = text.split() if language.joiner else list(text)
    asks = text.rstrip().endswith(("?", "？"))
    return _MIN_WORDS <= len(words) <= _MAX_WORDS and not asks and not language.reject["errand"].search(text)
