"""Reads: how the work went: what the owner asked for, what the agent did and reported, how the owner went on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from nacre.extraction.reading.cues import Language, language_of
from nacre.extraction.reading.reports import passages
from nacre.extraction.reading.sentences import Statement
from nacre.extraction.reading.speech import Utterance, acceptance, is_content
from nacre.extraction.rules.lessons import find_problem
from nacre.extraction.rules.neighbours import leans
from nacre.extraction.rules.reversal import content_words
from nacre.values.session import Flag, Speaker, ToolCall, Trust, Turn

TAKEN_IN_WORDS = 0.2
GONE_ON_FROM = 0.1
ENDED = 0.0

_NEAR = 4
_LATER = 3
_MAX_PROBLEM = 140
_OVERLAP = 2
_EDITING = re.compile(r"edit|write|patch|replace|create_file|insert|apply", re.IGNORECASE)
_EDITED = re.compile(r"\bapply_patch\b|\bsed -i|\bcat >|\btee\b|<<\s?['\"]?\w+|\.write\(", re.IGNORECASE)
_CHECK = re.compile(
    r"\b(?:\w*tests?|check|lint|build|verify|run|make|cargo|go|tsc|mypy|ruff|tox|mvn|gradle\w*)\b", re.I
)
_ERROR = re.compile(
    r"""
    (?:^|\s)(?:\w*(?:Error|Exception)\b|Traceback|FAILED?\b|panic|fatal|error\b)\s*[:(\[]
    | \bexit(?:ed)?(?:\ with)?(?:\ code|\ status)?\ [1-9] | [⨯✗✖]
    | \b(?:deadline\ exceeded|timed\ out|permission\ denied|connection\ refused|segmentation\ fault)\b
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Stretch:
    """From one message of the owner to the next: ``begin`` is the owner's turn, ``end`` the next one's or the number
    of turns; ``at`` is the place among the utterances of the one that begins it.
    """

    begin: int
    end: int
    at: int
    utterance: Utterance


def stretches(turns: Sequence[Turn], spoken: Sequence[Utterance]) -> list[Stretch]:
    """The session cut at the owner's messages."""
    first = {one.index: at for at, one in reversed(list(enumerate(spoken)))}
    begins = sorted(first)
    ends = [*begins[1:], len(turns)]
    return [Stretch(begin, end, first[begin], spoken[first[begin]]) for begin, end in zip(begins, ends, strict=False)]


def said_by_agent(turns: Sequence[Turn], stretch: Stretch) -> list[int]:
    """The agent's turns with words of its own in a stretch, in order."""
    return [at for at in range(stretch.begin + 1, stretch.end) if is_own(turns[at])]


def is_own(turn: Turn) -> bool:
    """Whether a turn is the agent's own words, and none from outside."""
    return turn.speaker is Speaker.AGENT and turn.trust is Trust.TRUSTED and is_content(turn)


def calls(turns: Sequence[Turn], begin: int, end: int) -> list[ToolCall]:
    """The tool calls of a part of the session, without those of sub-agents."""
    return [call for turn in turns[begin:end] if not turn.flags & Flag.SIDECHAIN for call in turn.tool_calls]


def changed(turns: Sequence[Turn], begin: int, end: int) -> bool:
    """Whether a call in a part of the session changed a file."""
    return any(changes(call) for call in calls(turns, begin, end))


def changes(call: ToolCall) -> bool:
    """Whether a call changed a file."""
    return call.outcome == "ok" and bool(_EDITING.search(call.name) or _EDITED.search(call.input))


def welcome(turns: Sequence[Turn], spoken: Sequence[Utterance], stretch: Stretch) -> float | None:
    """How much the way the owner went on speaks for what the agent ended with; ``None`` where it speaks against it."""
    after = next((one for one in spoken if one.index >= stretch.end), None)
    if _is_cut_short(turns, stretch):
        return None
    if after is None:
        return ENDED if _is_finished(turns, stretch) else None
    language = language_of(after.text)
    if objects(after, language):
        return None
    if acceptance(after, language) is not None or language.concluded.onward.search(after.statements[0].text):
        return TAKEN_IN_WORDS
    return GONE_ON_FROM


def is_wrapped_up(spoken: Sequence[Utterance], stretch: Stretch) -> bool:
    """Whether the owner has the work of a stretch committed, or gives thanks for it: then it was what they wanted."""
    after = next((one for one in spoken if one.index >= stretch.end), None)
    if after is None:
        return False
    language = language_of(after.text)
    head = [one.text for one in after.statements[:2]]
    doubts = any(language.lesson.unsolved.search(one) or one.rstrip().endswith(("?", "？")) for one in head)
    return bool(language.accepted.finished.match(head[0])) and not doubts


def _is_cut_short(turns: Sequence[Turn], stretch: Stretch) -> bool:
    """Whether the agent was stopped before it reported: its last words stand before calls, or with one that failed."""
    said = said_by_agent(turns, stretch)
    if not said or calls(turns, said[-1] + 1, stretch.end):
        return True
    return any(call.outcome != "ok" for call in turns[said[-1]].tool_calls[-1:])


def objects(utterance: Utterance, language: Language) -> bool:
    """Whether the owner says that it is not so, or not yet."""
    cues = language.concluded
    return any(
        cues.objection.search(language.trim(one.text)) or cues.objection.match(one.text)
        for one in utterance.statements[:2]
    )


def _is_finished(turns: Sequence[Turn], stretch: Stretch) -> bool:
    """Whether a session ended on a report of work that is done, with a check that passed after the last change.

    The owner may still object when a session that is read while it goes on: what was checked is more likely to stay.
    """
    last = said_by_agent(turns, stretch)[-1]
    done = calls(turns, stretch.begin, stretch.end)
    since = next((at for at in range(len(done), 0, -1) if changes(done[at - 1])), 0)
    checked = any(call.outcome == "ok" and _CHECK.search(call.input) for call in done[since:])
    if calls(turns, last, stretch.end) or not checked or done[-1].outcome != "ok":
        return False
    text = turns[last].text
    return bool(language_of(text).concluded.done.search(text)) and not text.rstrip().endswith(("?", "？"))


@dataclass(frozen=True, slots=True)
class Trouble:
    """What went wrong, in the owner's words where they stand alone, and where it was told."""

    text: str
    index: int


def trouble(turns: Sequence[Turn], spoken: Sequence[Utterance], stretch: Stretch) -> Trouble | None:
    """The trouble that a stretch is about; its text is empty where the owner only pasted what failed.

    It may have been told a few messages before, unless the owner has asked for something else since.
    """
    for at in range(stretch.at, max(-1, stretch.at - _NEAR), -1):
        one = spoken[at]
        language = language_of(one.text)
        problem = find_problem([one], 1, language)
        if problem:
            sure = problem.text in one.troubles or _stands_alone(problem.text, language)
            return Trouble(problem.text if sure else "", one.index)
        if _is_hunt(one.text) or _ERROR.search(turns[one.index].text):
            return Trouble("", one.index)
        if wishes(one):
            return None
    return None


@lru_cache(maxsize=64)
def _is_hunt(text: str) -> bool:
    """Asked for the same message from those that follow it, too."""
    return bool(language_of(text).concluded.hunt.search(text))


def wishes(utterance: Utterance) -> bool:
    """Whether a message asks for the product to behave in some way, rather than for some work to be done."""
    return any(_is_wish(one.text) for one in utterance.statements)


@lru_cache(maxsize=4096)
def _is_wish(text: str) -> bool:
    """Asked for the same statement from the messages that follow it, too."""
    behaviour = language_of(text).behaviour
    return not behaviour.chore.search(text) and bool(behaviour.wish.search(text))


def _stands_alone(text: str, language: Language) -> bool:
    asks = text.endswith(("?", "？")) or language.reject["errand"].search(text) or language.lesson.doubt.search(text)
    return len(text) <= _MAX_PROBLEM and not asks and not leans(text, language)


def doubted(text: str, end: int, turns: Sequence[Turn], spoken: Sequence[Utterance]) -> bool:
    """Whether the owner's next message objects, or somebody said later that what a text claims was not it."""
    after = next((one.statements[0].text for one in spoken if one.index >= end), "")
    cues = language_of(after).concluded
    return bool(cues.objection.match(after) or cues.persists.search(after)) or refuted(text, end, turns, spoken)


def refuted(text: str, end: int, turns: Sequence[Turn], spoken: Sequence[Utterance]) -> bool:
    """Whether somebody said later that what a text claims was not it."""
    return refutation(text, end, turns, spoken) is not None


def refutation(text: str, end: int, turns: Sequence[Turn], spoken: Sequence[Utterance]) -> str | None:
    """The words that say later that what a text claims was not it: the owner's soon after, the agent's at any time."""
    words = content_words(text, language_of(text))
    after = [one for one in spoken if one.index >= end][:_LATER]
    persists = [
        one for one in after for said in one.statements if language_of(said.text).concluded.persists.search(said.text)
    ]
    by_owner = (one.text for one in persists if one is after[0] or _shares(one.text, words))
    by_agent = (one.text for one in _withdrawals(turns, end) if _shares(one.text, words))
    return next(by_owner, None) or next(by_agent, None)


def _withdrawals(turns: Sequence[Turn], begin: int) -> Iterator[Statement]:
    for turn in turns[begin:]:
        if is_own(turn):
            for passage in passages(turn.text):
                yield from (
                    one for one in passage.statements if language_of(one.text).concluded.refuted.search(one.text)
                )


def _shares(text: str, words: frozenset[str]) -> bool:
    return len(content_words(text, language_of(text)) & words) >= _OVERLAP
