"""Finds, in reports: how the product behaves since the owner asked for it, in the words of the agent that changed it.

A decision where the owner wished for it, a lesson where it mends what they complained about.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nacre.extraction.reading.course import (
    Stretch,
    changed,
    is_wrapped_up,
    refuted,
    said_by_agent,
    stretches,
    trouble,
    welcome,
    wishes,
)
from nacre.extraction.reading.cues import Language, language_of
from nacre.extraction.reading.reports import bare, is_certain, passages
from nacre.extraction.reading.sentences import Statement
from nacre.extraction.reading.speech import Utterance
from nacre.extraction.rules.classify import Verdict
from nacre.extraction.rules.findings import Finding, to_finding
from nacre.extraction.rules.neighbours import in_a_row, leans
from nacre.extraction.rules.reversal import ABOUT_THE_SAME, content_words
from nacre.extraction.rules.wording import capitalised
from nacre.values.memory import Kind
from nacre.values.session import Speaker, Turn

MOST = 2
"""Memories of a session that are told like this; one more for each twenty messages of the owner above forty."""

_LEAST = 2
_LEAST_FOR_TROUBLE = 3
_WEIGHT = 1.0
_MAX_TOGETHER = 380
_SHARED = 1
_SHARED_BY_OWNER = 2


def behaviours(turns: Sequence[Turn], spoken: Sequence[Utterance], known: Sequence[Finding]) -> Iterator[Finding]:
    """What changed as the owner wished, unless ``known`` findings tell it already, in more than a question."""
    found = [one for stretch in stretches(turns, spoken) for one in _of(turns, spoken, stretch)]
    fresh = [one for one in found if not any(_tells(other, one) and not is_answered(other, [one]) for other in known)]
    surest = sorted(fresh, key=lambda one: (-one.score, -one.index))[: max(MOST, len(spoken) // 20)]
    yield from (one for one in fresh if one in surest)


def is_answered(wish: Finding, now: Sequence[Finding]) -> bool:
    """Whether a wish put as a question has become what a report says: then that is told, not the question."""
    words = len(content_words(wish.content, language_of(wish.content)))
    told = [one for one in now if len(content_words(one.content, language_of(one.content))) >= words]
    return _asks(wish) and any(_tells(wish, one) for one in told)


def _asks(one: Finding) -> bool:
    return one.spoken.endswith(("?", "？"))


def _tells(known: Finding, one: Finding) -> bool:
    """Whether a finding that rests on the same request or report says about the same; best in the owner's words."""
    if not set(known.evidence) & set(one.evidence[:2]):
        return False
    theirs, mine = (content_words(text, language_of(text)) for text in (known.content, one.content))
    shared = len(theirs & mine)
    by_owner = known.speaker is Speaker.OWNER and known.evidence == one.evidence[:1]
    return shared >= ABOUT_THE_SAME * min(len(theirs), len(mine)) or (by_owner and shared >= _SHARED_BY_OWNER)


def _of(turns: Sequence[Turn], spoken: Sequence[Utterance], stretch: Stretch) -> Iterator[Finding]:
    wished = wishes(stretch.utterance)
    problem = None if wished else trouble(turns, spoken, stretch)
    welcomed = welcome(turns, spoken, stretch)
    said = said_by_agent(turns, stretch)
    wrapped_up = problem is not None and bool(problem.text) and is_wrapped_up(spoken, stretch)
    if welcomed is None or not said or not (wished or problem):
        return
    if not (wrapped_up or changed(turns, stretch.begin, stretch.end)):
        return
    best = _best(turns[said[-1]].text, stretch.utterance)
    if best is None or best[0] < (_LEAST if wished or wrapped_up else _LEAST_FOR_TROUBLE):
        return
    strength, text = best
    if refuted(text, stretch.end, turns, spoken):
        return
    if problem and problem.text and len(problem.text) + len(text) < _MAX_TOGETHER:
        text = in_a_row([problem.text, text], language_of(text))
    evidence = (stretch.begin, said[-1], *([stretch.end] if stretch.end < len(turns) else []))
    verdict = Verdict(text, Kind.DECISION if wished else Kind.LESSON, _WEIGHT + welcomed + strength / 10, _WEIGHT)
    finding = to_finding(verdict, text, evidence, language_of(text), Speaker.AGENT)
    if finding:
        yield finding


def _best(text: str, asked: Utterance) -> tuple[int, str] | None:
    """The sentences of a report that say most about how it is now, and how much."""
    language = language_of(text)
    words = content_words(asked.text, language_of(asked.text))
    best: tuple[int, str] | None = None
    for passage in passages(text):
        if language.behaviour.aside.search(passage.heading):
            continue
        for place, one in enumerate(passage.statements):
            strength = _strength(_plain(one, language), passage.heading or one.lead or "", language, words)
            told = _told(passage.statements, place, language) if strength >= _LEAST else ""
            if told and (best is None or strength > best[0]):
                best = strength, told
    return best


def _plain(one: Statement, language: Language) -> str:
    rest = language.behaviour.label.sub("", one.text)
    return bare(rest if rest == one.text else capitalised(rest, language), language)


def _told(statements: Sequence[Statement], place: int, language: Language) -> str:
    """A statement, after the one that names what it is about, before one that goes on about it."""
    told = _plain(statements[place], language)
    if not _is_rule(told, language):
        return ""
    parts = [told]
    if leans(told, language) or language.behaviour.pronoun.search(told):
        before = _plain(statements[place - 1], language) if place else ""
        if not before or leans(before, language) or not _is_rule(before, language):
            return ""
        parts = [before, told]
    more = _plain(statements[place + 1], language) if place + 1 < len(statements) else ""
    if more and language.behaviour.more.match(more) and is_certain(more, language):
        parts.append(more)
    return in_a_row(parts if len(in_a_row(parts, language)) <= _MAX_TOGETHER else parts[:-1], language)


def _is_rule(text: str, language: Language) -> bool:
    return is_certain(text, language) and not language.behaviour.aside.search(text)


def _strength(text: str, topic: str, language: Language, asked: frozenset[str]) -> int:
    """How many things speak for a rule of the product: that it says what is now, when, instead of what, and why."""
    cues = language.behaviour
    if not text or len(content_words(text, language) & asked) < _SHARED:
        return 0
    says = bool(cues.now.search(text)) or bool(cues.topic.search(topic))
    whenever = bool(cues.condition.search(text))
    if not says and not cues.whenever.match(text):
        return 0
    return says + whenever + bool(cues.contrast.search(text)) + bool(cues.reason.search(text))
