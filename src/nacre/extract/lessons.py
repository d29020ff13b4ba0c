"""Trouble, its cause and the owner's word that this was it: a lesson."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from nacre.extract.cues import Language, language_of
from nacre.extract.sentences import Statement, split
from nacre.extract.speech import Utterance, is_content
from nacre.model.session import Flag, Speaker, Trust, Turn

_LOOK_BACK = 8
_AGENT_LOOK_BACK = 12
_MAX_PROBLEM = 240
_MAX_CAUSE = 260
_MIN_WORDS = 5
_COMMAND = re.compile(r"\w=\w|\s--?\w|`[^`]{4,}`|\w/\w+/")


@dataclass(frozen=True, slots=True)
class Lesson:
    """The words of a lesson, and the indexes of the turns they come from."""

    text: str
    turns: tuple[int, ...]
    by_agent: bool


def lessons(turns: Sequence[Turn], utterances: Sequence[Utterance]) -> list[Lesson]:
    """The confirmed lessons of a session."""
    found: list[Lesson] = []
    for at, utterance in enumerate(utterances):
        lesson = _confirmed(turns, utterances, at, utterance)
        if lesson:
            found.append(lesson)
    return found


def _confirmed(turns: Sequence[Turn], utterances: Sequence[Utterance], at: int, utterance: Utterance) -> Lesson | None:
    language = language_of(utterance.text)
    cues = language.lesson
    head = utterance.statements[:2]
    solved = [one for one in head if cues.solved.search(one.text) and not cues.unsolved.search(one.text)]
    if not solved or solved[0].text.endswith(("?", "？")):
        return None
    problem = find_problem(utterances, at, language)
    if not problem:
        return None
    own = _own_words(utterance, language)
    told = any(cues.cause.search(text) for text in own)
    explained = None if told else _explanation(turns, problem.index, utterance.index, nearby=bool(own))
    if not own and not explained:
        return None
    causes, where = (explained.causes, (explained.index,)) if explained else ((), ())
    text = language.joiner.join([problem.text[:_MAX_PROBLEM], *causes, *own[:2]])
    return Lesson(text, tuple(dict.fromkeys([problem.index, *where, utterance.index])), by_agent=not own)


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


def _explanation(turns: Sequence[Turn], after: int, until: int, *, nearby: bool) -> Explanation | None:
    """The agent's latest words on the cause: ``nearby`` those just answered, else a few turns back, but not
    beyond a word of the owner that it was something else.
    """
    said = [at for at in range(until - 1, after, -1) if is_content(turns[at])]
    for at in said[:_AGENT_LOOK_BACK]:
        turn = turns[at]
        by_owner = turn.speaker is Speaker.OWNER
        if by_owner and (nearby or language_of(turn.text).lesson.unsolved.search(turn.text)):
            return None
        causes = _causes(turn) if turn.speaker is Speaker.AGENT else []
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
            text = language.trim(one.text)
            if _tells_trouble(text, language):
                return Problem(text, earlier.index)
    return None


def _tells_trouble(text: str, language: Language) -> bool:
    trouble = language.lesson.problem.search(text) and not language.lean.start.match(text)
    says_enough = len(text.split()) >= _MIN_WORDS or not language.joiner
    return bool(trouble) and says_enough and len(text) <= _MAX_PROBLEM and not _is_question(text)


def _is_question(text: str) -> bool:
    return text.rstrip().endswith(("?", "？"))


def _explains(one: Statement, language: Language) -> bool:
    """The owner's own words on the cause, beyond "that fixed it"."""
    rest = language.lesson.solved.sub("", language.trim(one.text))
    long_enough = len(rest.split()) >= _MIN_WORDS or (not language.joiner and len(rest) >= 8)
    long_enough = long_enough or bool(_COMMAND.search(rest))
    telling = language.lesson.cause.search(one.text) or language.lesson.solved.search(one.text)
    return bool(telling and long_enough and not _is_question(one.text))


def _causes(turn: Turn) -> list[str]:
    """The sentences of an agent's message that say what it was; none from text that came from outside."""
    if turn.trust is Trust.UNTRUSTED or not is_content(turn) or turn.flags & Flag.SIDECHAIN:
        return []
    language = language_of(turn.text)
    return [
        one.text.strip()
        for one in split(turn.text)
        if language.lesson.cause.search(one.text)
        and not language.lesson.hedge.search(one.text)
        and not _is_question(one.text)
        and _MIN_WORDS * 4 <= len(one.text) <= _MAX_CAUSE
        and not one.text.endswith((":", "："))
    ]
