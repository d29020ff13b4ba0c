"""Reads: what a session left: requests, questions, todos, next steps that nobody took, checks that still fail."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from nacre.extraction.reading.cues import language_of
from nacre.extraction.reading.reports import passages
from nacre.extraction.reading.sentences import Statement
from nacre.extraction.reading.speech import Utterance
from nacre.extraction.rules.reversal import content_words
from nacre.sessions.summary.checks import failing, unmended
from nacre.sessions.summary.ending import CUT_OFF, ENDED, End
from nacre.sessions.summary.last_words import questions
from nacre.sessions.summary.todos import open_todos, unticked
from nacre.sessions.summary.topics import asks, is_telling, words_of
from nacre.sessions.summary.work import told
from nacre.text.passages import normalise, shorten
from nacre.values.session import Speaker, ToolCall, Turn
from nacre.values.summary import Ending, Loose, OpenEnd, SessionOutcome

MOST_OF_A_KIND = 6
_CHARACTERS = 240
_LEAST = 12
_DONE_SINCE = 0.6
_EXIT = re.compile(r"exit -?\d+")


def open_ends(turns: Sequence[Turn], spoken: Sequence[Utterance], ended: SessionOutcome) -> list[OpenEnd]:
    """What was left, by kind; each thing once."""
    end = End(turns, spoken)
    found = [*_request(end, ended), *_questions(end, ended), *_failing(end), *_todos(turns), *_next_steps(end)]
    kept: dict[str, OpenEnd] = {}
    for one in found:
        same = normalise(one.text)
        if sum(other.kind is one.kind for other in kept.values()) < MOST_OF_A_KIND:
            kept.setdefault(same, one)
    return list(kept.values())


def _request(end: End, ended: SessionOutcome) -> Iterator[OpenEnd]:
    """The owner's last request, where nobody answered it or the answer was cut off."""
    is_open = not end.agent and ended.ending is not Ending.DONE and ended.reason != ENDED
    if not (end.owner and (is_open or ended.reason in CUT_OFF)):
        return
    last = next((one for one in reversed(end.spoken) if asks(end.turns, one)), end.owner)
    if is_telling(last.text):
        turn = end.turns[last.index]
        yield OpenEnd(Loose.REQUEST, shorten(words_of(turn, last), _CHARACTERS), Speaker.OWNER, turn.id)


def _questions(end: End, ended: SessionOutcome) -> Iterator[OpenEnd]:
    """What the agent asked last, where the owner did not answer."""
    if end.report and ended.speaker is not Speaker.OWNER:
        for text in questions(end.report.text):
            yield OpenEnd(Loose.QUESTION, shorten(text, _CHARACTERS), Speaker.AGENT, end.report.id)


def _failing(end: End) -> Iterator[OpenEnd]:
    """Checks whose last run failed, and commands that failed in the end and were not seen to work after."""
    for turn, call in [*failing(end.turns), *unmended(end.turns[end.begin :])]:
        yield OpenEnd(Loose.FAILING, f"{told(call)} → {_result(call)}", Speaker.AGENT, turn.id)


def _result(call: ToolCall) -> str:
    """How a call failed, without the words that a tool put out."""
    return call.outcome if call.outcome and _EXIT.fullmatch(call.outcome) else "error"


def _todos(turns: Sequence[Turn]) -> Iterator[OpenEnd]:
    for turn, text in open_todos(turns):
        yield OpenEnd(Loose.TODO, shorten(text, _CHARACTERS), Speaker.AGENT, turn.id)


def _next_steps(end: End) -> Iterator[OpenEnd]:
    """What the agent's last report names as left, or does not tick off, unless it was done since."""
    report = end.last_report
    if report is None:
        return
    at = next(number for number, turn in enumerate(end.turns) if turn is report)
    since = [_done_words(turn) for turn in end.turns[at + 1 :]]
    boxes = unticked(report.text)
    for text in [*boxes, *_left(report.text)]:
        words = content_words(text, language_of(text))
        if words and not any(len(words & done) >= _DONE_SINCE * len(words) for done in since):
            yield OpenEnd(
                Loose.TODO if text in boxes else Loose.NEXT_STEP, shorten(text, _CHARACTERS), Speaker.AGENT, report.id
            )


def _done_words(turn: Turn) -> frozenset[str]:
    told_of = " ".join([turn.text, *(call.input for call in turn.tool_calls)])
    return content_words(told_of, language_of(turn.text))


def _left(text: str) -> Iterator[str]:
    for passage in passages(text):
        is_ahead = bool(passage.heading) and bool(language_of(passage.heading).summary.ahead.match(passage.heading))
        for one in passage.statements:
            if _is_left(one, is_ahead=is_ahead):
                yield one.text


def _is_left(one: Statement, *, is_ahead: bool) -> bool:
    cues = language_of(one.text).summary
    if one.text.endswith((":", "：", "?", "？")) or cues.nothing.match(one.text) or cues.offer.search(one.text):
        return False
    leads = one.lead is not None and bool(language_of(one.lead).summary.ahead.match(one.lead))
    least = _LEAST if language_of(one.text).joiner else _LEAST // 3
    return len(one.text) >= least and (is_ahead or leads or bool(cues.left.search(one.text)))
