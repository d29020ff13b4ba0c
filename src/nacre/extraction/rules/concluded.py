"""Finds, in reports: what an agent found out about trouble of the owner's, who went on from it: lessons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nacre.extraction.reading.course import (
    Stretch,
    calls,
    changed,
    doubted,
    is_wrapped_up,
    refuted,
    said_by_agent,
    stretches,
    trouble,
    welcome,
)
from nacre.extraction.reading.cues import Language, language_of
from nacre.extraction.reading.meaning import Judge
from nacre.extraction.reading.reports import bare, is_certain, passages
from nacre.extraction.reading.speech import Utterance
from nacre.extraction.rules.classify import Verdict
from nacre.extraction.rules.findings import Finding, to_finding
from nacre.extraction.rules.lessons import explains
from nacre.extraction.rules.neighbours import in_a_row, leans
from nacre.extraction.rules.reversal import content_words
from nacre.extraction.rules.wording import capitalised, unlabelled
from nacre.values.memory import Kind
from nacre.values.session import Speaker, Turn

MOST = 2
"""Lessons of a session that are told like this."""

_WEIGHT = 1.0
_LEAST_CALLS = 3
_MAX_TOGETHER = 400
_MAX_FIX = 260
_MIN_WORDS = 7
_MOST_CAUSES = 2
_SAME = 0.5
_SHORT = 20
_ABOUT = 3


@dataclass(frozen=True, slots=True)
class _Conclusion:
    """What it was and what mended it, in the agent's words, and the turns that say so."""

    causes: tuple[str, ...]
    fix: str
    turns: tuple[int, ...]


def concluded(
    turns: Sequence[Turn], spoken: Sequence[Utterance], known: Sequence[Finding], judge: Judge
) -> Iterator[Finding]:
    """The agent's findings on the owner's trouble that cost effort, led to a change and met no objection.

    Where the owner told the trouble and has the work committed, or gives thanks for it, that alone bears them out.
    ``known`` lessons of other evidence are not told again, unless there is more to say.
    """
    found = [one for stretch in stretches(turns, spoken) for one in _of(turns, spoken, stretch, judge)]
    fresh = [one for one in found if not any(_tells(other, one) for other in known)]
    surest = sorted(fresh, key=lambda one: (-one.score, -one.index))[:MOST]
    yield from (one for one in fresh if one in surest)


def _tells(known: Finding, one: Finding) -> bool:
    """Whether a lesson rests on the same words and is not simply contained in the new one."""
    if known.kind is not Kind.LESSON or not set(known.evidence) & set(one.evidence[1:]):
        return False
    about = content_words(known.content, language_of(known.content)) & content_words(
        one.content, language_of(one.content)
    )
    return len(about) >= _ABOUT and known.content not in one.content


def _of(turns: Sequence[Turn], spoken: Sequence[Utterance], stretch: Stretch, judge: Judge) -> Iterator[Finding]:
    problem = trouble(turns, spoken, stretch)
    welcomed = welcome(turns, spoken, stretch)
    if problem is None or welcomed is None:
        return
    wrapped_up = bool(problem.text) and is_wrapped_up(spoken, stretch)
    mended = stretch.end if wrapped_up else _mended(turns, spoken, stretch)
    if mended is None or not (wrapped_up or len(calls(turns, problem.index, mended)) >= _LEAST_CALLS):
        return
    conclusion = _conclusion(turns, stretch, problem.text, judge)
    if conclusion is None:
        return
    text = _told(problem.text, conclusion)
    if refuted(text, stretch.end, turns, spoken) or (mended > stretch.end and doubted(text, mended, turns, spoken)):
        return
    evidence = (stretch.begin, *conclusion.turns, *([stretch.end] if stretch.end < len(turns) else []))
    verdict = Verdict(text, Kind.LESSON, _WEIGHT + welcomed, _WEIGHT)
    finding = to_finding(verdict, text, evidence, language_of(text), Speaker.AGENT)
    if finding:
        yield finding


def _mended(turns: Sequence[Turn], spoken: Sequence[Utterance], stretch: Stretch) -> int | None:
    """Where a stretch ends in which something was changed for it: itself, or the next one when the owner said so."""
    if changed(turns, stretch.begin, stretch.end):
        return stretch.end
    after = next((one for one in spoken if one.index >= stretch.end), None)
    if after is None or not _says_so(after):
        return None
    following = next((one.index for one in spoken if one.index > after.index), len(turns))
    return following if changed(turns, after.index, following) else None


def _says_so(after: Utterance) -> bool:
    """Whether the owner says to go ahead: in words for it, or in a short answer that asks nothing."""
    language = language_of(after.text)
    if language.concluded.go.search(after.statements[0].text):
        return True
    short = len(after.text.split()) <= _SHORT if language.joiner else len(after.text) <= _SHORT * 2
    return short and not after.text.rstrip().endswith(("?", "？"))


def _conclusion(turns: Sequence[Turn], stretch: Stretch, problem: str, judge: Judge) -> _Conclusion | None:
    """The latest cause that is told for certain, with what mended it; one in so many words before what sounds like one.

    What was said on the way counts only when a fix is told with it or in the closing report: the agent may think
    otherwise by then.
    """
    said = said_by_agent(turns, stretch)
    for judging in (None, judge):
        for at in reversed(said):
            causes = _causes(turns[at].text, problem, judging)
            if causes:
                last = said[-1]
                fix = _fix(turns[last].text, causes) or _fix(turns[at].text, causes)
                return _Conclusion(causes, fix, tuple(dict.fromkeys((at, last)))) if fix or at == last else None
    return None


def _causes(text: str, problem: str, judge: Judge | None) -> tuple[str, ...]:
    """The sentences of a report that say what it was, each with the one before where it leans on that."""
    found: list[str] = []
    for passage in passages(text):
        language = language_of(text)
        announced = bool(language.concluded.topic.search(passage.heading)) if passage.heading else False
        before = ""
        for one in passage.statements:
            told = bare(one.text, language)
            if _is_cause(told, language) and (announced or _says_cause(told, language, judge)):
                found += _standing(told, before, problem, language)
            announced = bool(language.concluded.announce.match(one.text.strip()))
            before = told if told and not leans(told, language) and is_certain(told, language) else ""
    return tuple(dict.fromkeys(found))[:_MOST_CAUSES]


def _says_cause(told: str, language: Language, judge: Judge | None) -> bool:
    return explains(told, language, judge) if judge else bool(language.concluded.cause.search(told))


def _standing(told: str, before: str, problem: str, language: Language) -> list[str]:
    """A cause that says what it is about: by itself, with the sentence before, or after the owner's words."""
    if not leans(told, language):
        return [told]
    if before:
        return [in_a_row([before, told], language)]
    return [in_a_row([problem, told], language)] if problem else []


def _is_cause(text: str, language: Language) -> bool:
    enough = not language.joiner or len(text.split()) >= _MIN_WORDS
    return enough and is_certain(text, language)


def _fix(text: str, causes: tuple[str, ...]) -> str:
    """What a report says mended it, with the sentence that goes on about that."""
    language = language_of(text)
    for passage in passages(text):
        for place, one in enumerate(passage.statements):
            told = bare(one.text, language)
            if told in causes or not language.concluded.fix.search(told) or not is_certain(told, language):
                continue
            more = next((bare(after.text, language) for after in passage.statements[place + 1 : place + 2]), "")
            goes_on = (
                more and more not in causes and is_certain(more, language) and not language.concluded.fix.search(more)
            )
            return in_a_row([told, more], language) if goes_on and len(told) + len(more) <= _MAX_FIX else told
    return ""


def _told(problem: str, conclusion: _Conclusion) -> str:
    """Problem, cause and fix in a row, as far as there is room; the problem only where the cause does not name it."""
    language = language_of(conclusion.causes[0])
    causes = [capitalised(unlabelled(one, language), language) for one in conclusion.causes]
    parts = causes[:1]
    for more in (conclusion.fix, *causes[1:]):
        if more and len(in_a_row([*parts, more], language)) <= _MAX_TOGETHER:
            parts = [*parts, more]
    parts.sort(key=lambda one: one == conclusion.fix)
    with_problem = in_a_row([problem, *parts], language) if problem else ""
    if with_problem and len(with_problem) <= _MAX_TOGETHER and not _says_again(problem, causes[0], language):
        return with_problem
    return in_a_row(parts, language)


def _says_again(problem: str, cause: str, language: Language) -> bool:
    words = content_words(problem, language)
    return len(words & content_words(cause, language)) >= _SAME * len(words)
