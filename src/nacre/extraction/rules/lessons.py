"""Finds, in words: trouble, its cause and the owner's word, or a command's, that this was it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from nacre.extraction.reading.cue_sets import LessonCues
from nacre.extraction.reading.cues import Language, language_named, language_of
from nacre.extraction.reading.meaning import Judge
from nacre.extraction.reading.patterns import Pattern
from nacre.extraction.reading.reports import without_places
from nacre.extraction.reading.sentences import Statement, split_report
from nacre.extraction.reading.speech import Utterance, acceptance, before, is_content
from nacre.extraction.rules.classify import PROVEN, Verdict
from nacre.extraction.rules.findings import Finding, to_finding
from nacre.extraction.rules.neighbours import in_a_row, leans
from nacre.values.memory import Kind
from nacre.values.session import Flag, Speaker, ToolCall, Trust, Turn

_LOOK_BACK = 8
_NEAR = 4
_AGENT_LOOK_BACK = 12
_MAX_PROBLEM = 240
_MAX_CAUSE = 260
_MIN_WORDS = 5
_MIN_TELLING = 6
_PAUSES = tuple(",;:.—–-，。：；")
_SIGNS = " ,;:.—–-，。：；"
Wanted = Callable[[str, Language], bool]

_COMMAND = re.compile(r"\w=\w|\s--?\w|`[^`]{4,}`|\w/\w+/")


def lessons(turns: Sequence[Turn], spoken: Sequence[Utterance], judge: Judge) -> Iterator[Finding]:
    """The lessons of a session that were confirmed, by the owner's word or by a command that failed before."""
    told: set[int] = set()
    for finders in ((_found, _confirmed), (_accepted, _proven)):
        for at in range(len(spoken)):
            here = _OwnerMessage(turns, spoken, at, judge)
            lesson = next((one for one in (find(here) for find in finders) if one), None)
            if lesson and not told & {*lesson.causes, *lesson.trouble}:
                told |= {*lesson.causes, *lesson.trouble}
                yield from _finding(lesson)


@dataclass(frozen=True, slots=True)
class _Lesson:
    """The words of a lesson, the indexes of all turns they come from, of those that say the cause, and of the one that
    tells the trouble, where it is told.
    """

    text: str
    turns: tuple[int, ...]
    causes: tuple[int, ...]
    by_agent: bool
    trouble: tuple[int, ...] = ()


def _finding(lesson: _Lesson) -> Iterator[Finding]:
    text = without_places(lesson.text)
    verdict = Verdict(text, Kind.LESSON, PROVEN, PROVEN)
    speaker = Speaker.AGENT if lesson.by_agent else Speaker.OWNER
    finding = to_finding(verdict, text, lesson.turns, language_of(text), speaker)
    if finding:
        yield finding


@dataclass(frozen=True, slots=True)
class _OwnerMessage:
    """A message of the owner in its session: the one at place ``at`` among the ``spoken``."""

    turns: Sequence[Turn]
    spoken: Sequence[Utterance]
    at: int
    judge: Judge

    @property
    def utterance(self) -> Utterance:
        return self.spoken[self.at]

    @property
    def language(self) -> Language:
        return language_of(self.utterance.text)


def _found(here: _OwnerMessage) -> _Lesson | None:
    """The owner tells what was behind the trouble: found themselves, or remembered."""
    utterance, language = here.utterance, here.language
    own = next((at for at, one in enumerate(utterance.statements[:2]) if language.lesson.own.search(one.text)), None)
    problem = find_problem(here.spoken, here.at, language, look_back=_NEAR) if own is not None else None
    if own is None or problem is None or language.lesson.doubt.search(problem.text):
        return None
    for one in utterance.statements[own : own + 2]:
        text = _unannounced(language.trim(one.text), language)
        if _tells_cause(text, language) and not leans(text, language):
            told = in_a_row([problem.text[:_MAX_PROBLEM], text[0].upper() + text[1:]], language)
            return _Lesson(told, (problem.index, utterance.index), (utterance.index,), False, (problem.index,))
    return None


def _unannounced(text: str, language: Language) -> str:
    """A statement without words in front that only say that it is the cause: "Found it: …"."""
    own = language.lesson.own.match(text)
    rest = text[own.end() :] if own else ""
    return rest.lstrip(_SIGNS) if rest.lstrip()[:1] in _PAUSES and rest.strip(_SIGNS) else text


def _confirmed(here: _OwnerMessage) -> _Lesson | None:
    """The owner says that this was it."""
    utterance, language = here.utterance, here.language
    cues = language.lesson
    head = utterance.statements[:2]
    solved = [one for one in head if cues.solved.search(one.text) and not cues.unsolved.search(one.text)]
    if not solved or solved[0].text.endswith(("?", "？")):
        return None
    problem = find_problem(here.spoken, here.at, language)
    if not problem:
        return None
    own = _own_words(utterance, language)
    told = any(cues.cause.search(text) for text in own)
    explained = None if told else _explanation(here, problem.index, nearby=bool(own), fixes=not own, sounds=True)
    if not own and not explained:
        return None
    causes, where = (explained.causes, (explained.index,)) if explained else ((), ())
    text = in_a_row([problem.text[:_MAX_PROBLEM], *causes, *own[:2]], language)
    evidence = tuple(dict.fromkeys([problem.index, *where, utterance.index]))
    return _Lesson(text, evidence, where or (utterance.index,), not own, (problem.index,))


def _accepted(here: _OwnerMessage) -> _Lesson | None:
    """The owner accepts in words what the agent just said it was."""
    utterance, language = here.utterance, here.language
    if acceptance(utterance, language) is None or language.lesson.unsolved.search(utterance.statements[0].text):
        return None
    begin = before(here.turns, utterance.index, Speaker.OWNER) or 0
    problem = find_problem(here.spoken, here.at, language, look_back=_NEAR)
    explained = _explanation(here, begin, nearby=True, sounds=problem is not None)
    return _told(here, explained) if explained else None


def _proven(here: _OwnerMessage) -> _Lesson | None:
    """A command that failed before the agent said what it was works after it, and the owner does not object."""
    utterance, language = here.utterance, here.language
    if here.at == 0 or language.lesson.unsolved.search(utterance.statements[0].text):
        return None
    if language.answers.no.match(utterance.statements[0].text):
        return None
    earlier = here.spoken[here.at - 1].index
    between = here.turns[earlier : utterance.index]
    if not _works_now(between, len(between)):
        return None
    explained = _explanation(here, earlier, nearby=True)
    if not explained or not _works_now(between, explained.index - earlier):
        return None
    return _told(here, explained)


def _works_now(turns: Sequence[Turn], said: int) -> bool:
    """Whether a call that went wrong up to a turn went well at it or later; anywhere for the turn past the last."""
    wrong = {(call.name, call.input) for turn in turns[: said + 1] for call in turn.tool_calls if _went_wrong(call)}
    later = turns[said:] or turns
    return any((call.name, call.input) in wrong for turn in later for call in turn.tool_calls if call.outcome == "ok")


def _went_wrong(call: ToolCall) -> bool:
    return bool(call.outcome and call.outcome.startswith(("exit ", "error")))


def _told(here: _OwnerMessage, explained: Explanation) -> _Lesson | None:
    """The agent's words on the cause, after the owner's on the trouble where these are near."""
    language = language_of(explained.causes[0])
    problem = find_problem(here.spoken, here.at, language, look_back=_NEAR)
    if problem is None and leans(explained.causes[0], language):
        return None
    text = in_a_row([*([problem.text[:_MAX_PROBLEM]] if problem else []), *explained.causes], language)
    evidence = tuple(dict.fromkeys([*([problem.index] if problem else []), explained.index, here.utterance.index]))
    return _Lesson(text, evidence, (explained.index,), True, (problem.index,) if problem else ())


def _own_words(utterance: Utterance, language: Language) -> list[str]:
    """What the owner says about it beyond "that fixed it": the cause where they name it, else how they know."""
    telling = [one for one in utterance.statements if _explains(one, language)]
    causes = [one for one in telling if language.lesson.cause.search(one.text)]
    bare = (language.lesson.confirmation.sub("", one.text) for one in causes or telling)
    return [text[0].upper() + text[1:] for text in bare if text]


@dataclass(frozen=True, slots=True)
class Explanation:
    """What an agent said it was, and where."""

    causes: tuple[str, ...]
    index: int


def _explanation(
    here: _OwnerMessage, after: int, *, nearby: bool, fixes: bool = False, sounds: bool = False
) -> Explanation | None:
    """The agent's latest words on the cause: ``nearby`` those just answered, else a few turns back, but not
    beyond a word of the owner that it was something else. Without any, where ``sounds`` will do, what sounds like one;
    where ``fixes`` will do, what differs now.
    """

    def by(pattern: Callable[[LessonCues], Pattern]) -> Wanted:
        return lambda text, language: bool(pattern(language.lesson).search(text))

    wanted = [by(lambda cues: cues.cause)]
    wanted += [lambda text, language: explains(text, language, here.judge, sure=True)] if sounds else []
    wanted += [by(lambda cues: cues.fix)] if fixes else []
    found = (_latest(here, after, nearby, pattern) for pattern in wanted)
    return next((one for one in found if one), None)


def explains(text: str, language: Language, judge: Judge, *, sure: bool = False) -> bool:
    """Whether a sentence of an agent sounds like the cause of some trouble, rather than like what was done about it."""
    passed_over = (language.lesson.deed, language.concluded.refuted, language.behaviour.aside)
    enough = not language.joiner or len(text.split()) >= _MIN_TELLING
    return enough and not any(cue.search(text) for cue in passed_over) and judge.explains(text, language, sure=sure)


def _latest(here: _OwnerMessage, after: int, nearby: bool, wanted: Wanted) -> Explanation | None:
    said = [at for at in range(here.utterance.index - 1, after, -1) if is_content(here.turns[at])]
    for at in said[:_AGENT_LOOK_BACK]:
        turn = here.turns[at]
        by_owner = turn.speaker is Speaker.OWNER
        if by_owner and (nearby or language_of(turn.text).lesson.unsolved.search(turn.text)):
            return None
        causes = _causes(turn, wanted) if turn.speaker is Speaker.AGENT else []
        if causes:
            return Explanation(tuple(causes[:2]), at)
    return None


@dataclass(frozen=True, slots=True)
class Problem:
    """What the owner said went wrong, and where."""

    text: str
    index: int


def find_problem(
    utterances: Sequence[Utterance], at: int, language: Language, *, look_back: int = _LOOK_BACK
) -> Problem | None:
    """The owner's latest statement of trouble before an utterance."""
    for earlier in reversed(utterances[max(0, at - look_back) : at]):
        for one in earlier.statements:
            told = language.told(one.text)
            text = told if told in earlier.troubles else _trouble_in(one.text, language.language)
            if text:
                return Problem(text, earlier.index)
    return None


@lru_cache(maxsize=4096)
def _trouble_in(text: str, name: str) -> str | None:
    """The trouble that a statement tells of; asked for the same statement from every message that follows it."""
    language = language_named(name)
    told = language.told(text)
    return told if _tells_trouble(told, language) else None


def _tells_trouble(text: str, language: Language) -> bool:
    says_enough = len(text.split()) >= _MIN_WORDS or not language.joiner
    if len(text) > _MAX_PROBLEM or not says_enough:
        return False
    trouble = language.lesson.problem.search(text) and not language.lean.start.match(text)
    asked = _is_question(text) and not language.lesson.trouble_asked.search(text)
    return bool(trouble) and not asked


def _is_question(text: str) -> bool:
    return text.rstrip().endswith(("?", "？"))


def _explains(one: Statement, language: Language) -> bool:
    """The owner's own words on the cause, beyond "that fixed it"."""
    rest = language.lesson.solved.sub("", language.trim(one.text))
    long_enough = len(rest.split()) >= _MIN_WORDS or (not language.joiner and len(rest) >= 8)
    long_enough = long_enough or bool(_COMMAND.search(rest))
    telling = language.lesson.cause.search(one.text) or language.lesson.solved.search(one.text)
    return bool(telling and long_enough and not _is_question(one.text))


def _causes(turn: Turn, wanted: Wanted) -> list[str]:
    """The sentences of an agent's message that say what it was; none from text that came from outside."""
    if turn.trust is Trust.UNTRUSTED or not is_content(turn) or turn.flags & Flag.SIDECHAIN:
        return []
    language = language_of(turn.text)
    found, announced = [], False
    for one in split_report(turn.text):
        if _tells_cause(one.text, language) and (announced or wanted(one.text, language)):
            found.append(one.text.strip())
        leads = one.text.endswith((":", "：")) and wanted(one.text, language)
        announced = bool(leads or language.lesson.announce.match(one.text))
    return found


def _tells_cause(text: str, language: Language) -> bool:
    """Whether a sentence on the cause is said for certain, in words enough and not too many."""
    least = _MIN_WORDS * 4 if language.joiner else _MIN_WORDS * 2
    if not least <= len(text) <= _MAX_CAUSE or text.endswith((":", "：")):
        return False
    idle = (language.lesson.hedge, language.concluded.trivial, language.concluded.status)
    return not any(cue.search(text) for cue in idle) and not _is_question(text)
