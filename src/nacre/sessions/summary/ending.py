"""Reads: how a session ended: by the owner's last words, the agent's last report, and the last checks that ran."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from nacre.extraction.reading.course import calls, changes, is_own, objects
from nacre.extraction.reading.cues import Language, language_of
from nacre.extraction.reading.sentences import split
from nacre.extraction.reading.speech import Utterance, acceptance
from nacre.sessions.summary.checks import failing, is_check, pass_at_the_end, unmended
from nacre.sessions.summary.last_words import (
    announces,
    asks_last,
    giving_up,
    is_report,
    opening,
    says_done,
    says_undone,
    speaks_against,
    tells_work,
)
from nacre.sessions.summary.todos import open_todos, ticks, unticked
from nacre.sessions.summary.topics import FORMS, asks, asks_for_work, is_bare_command, is_idle, is_telling
from nacre.sessions.summary.work import does
from nacre.text.passages import shorten
from nacre.values.session import Action, Flag, Speaker, ToolCall, Turn
from nacre.values.summary import Ending, SessionOutcome

ENDED = "the owner ended it"
CUT_OFF = (
    "it ends in the middle of a call", "it ends in the middle of the work", "the owner stopped the agent",
)  # fmt: skip
"""Reasons that others ask for."""

_RED = "a check failed, and was not seen to pass again"
_LOOKING = frozenset({Action.READ, Action.SEARCH, Action.FETCH, Action.PLAN})
_WORDS = 240
_SHORT = 120
_NOISE = Flag.META | Flag.SUMMARY | Flag.SIDECHAIN


@dataclass(frozen=True)
class End:
    """The last exchange of a session: the owner's last words, where there are any, and all that came after them."""

    turns: Sequence[Turn]
    spoken: Sequence[Utterance]

    @cached_property
    def owner(self) -> Utterance | None:
        """The owner's last words."""
        return self.spoken[-1] if self.spoken else None

    @cached_property
    def begin(self) -> int:
        """The turn after them, or after the task that another agent gave."""
        if self.owner:
            return self.owner.index + 1
        return int(bool(self.turns) and self.turns[0].speaker is Speaker.AGENT and not self.turns[0].tool_calls)

    @cached_property
    def agent(self) -> list[Turn]:
        """What the agent did and said after them."""
        return [turn for turn in self.turns[self.begin :] if turn.speaker is Speaker.AGENT and not turn.flags & _NOISE]

    @cached_property
    def is_interrupted(self) -> bool:
        """Whether the owner stopped the agent, and it did nothing after that. A call they declined says more."""
        last = next((turn for turn in reversed(self.turns[self.begin :]) if _is_of_either(turn)), None)
        declined = bool(
            self.agent and self.agent[-1].tool_calls and self.agent[-1].tool_calls[-1].outcome == "rejected"
        )
        return bool(last and last.flags & Flag.INTERRUPTED) and not declined

    @cached_property
    def report(self) -> Turn | None:
        """The agent's last words, if they are its own and nothing was done after them."""
        last = self.agent[-1] if self.agent else None
        return last if last and is_own(last) and is_report(last) else None

    @cached_property
    def last_report(self) -> Turn | None:
        """The agent's own last words in the whole session."""
        return next((turn for turn in reversed(self.turns) if is_own(turn)), None)

    @cached_property
    def request(self) -> Utterance | None:
        """The owner's last words that ask for something of their own, else their last words."""
        return next((one for one in reversed(self.spoken) if asks(self.turns, one)), self.owner)

    def is_empty(self, utterance: Utterance) -> bool:
        """Whether a message of the owner asks for nothing: a greeting, a bare command."""
        return is_idle(utterance.text.strip()) or is_bare_command(self.turns[utterance.index], utterance)

    @cached_property
    def work(self) -> Sequence[Turn]:
        """All that came after that request."""
        return self.turns[self.request.index + 1 if self.request else self.begin :]

    @cached_property
    def has_acted(self) -> bool:
        """Whether the agent did more than look and check since then."""
        return any(_acts(call) for call in calls(self.work, 0, len(self.work)))

    @cached_property
    def asks_for_work(self) -> bool:
        """Whether something was to be done, rather than looked up and told."""
        asked = self.request.statements if self.request else split(self.turns[0].text)
        return not any(is_telling(one.text) for one in asked) or any(asks_for_work(one.text) for one in asked)


def _acts(call: ToolCall) -> bool:
    """Whether a call came out and did something."""
    return call.outcome == "ok" and call.action not in _LOOKING and does(call) and not is_check(call)


def _is_of_either(turn: Turn) -> bool:
    """Whether a turn is the agent's, or tells that the owner stopped it."""
    return not turn.flags & Flag.SIDECHAIN and (turn.speaker is Speaker.AGENT or bool(turn.flags & Flag.INTERRUPTED))


def outcome(turns: Sequence[Turn], spoken: Sequence[Utterance]) -> SessionOutcome:
    """How it ended: done where words or deeds tell so and nothing speaks against it. What is not told is unknown."""
    end = End(turns, spoken)
    if spoken and not end.has_acted and all(map(end.is_empty, spoken)):
        return SessionOutcome(Ending.UNKNOWN, "nothing was asked for in words")
    told = _by_owner(end) or _interrupted(end) or _in_the_middle(end) or _by_report(end)
    return told or SessionOutcome(Ending.UNKNOWN, "nothing tells")


def _by_owner(end: End) -> SessionOutcome | None:
    """What the owner's last words say of it, where the agent did nothing more that counts."""
    if end.owner is None:
        return None
    text = end.owner.text
    language = language_of(text)
    worked = bool(calls(end.turns, end.begin, len(end.turns)))
    if len(text) <= _SHORT and language.summary.stop.match(text) and not worked:
        return _said(Ending.STOPPED, ENDED, end, text)
    if _is_content(end.owner, language) and not worked:
        return _by_contentment(end)
    if end.agent or end.is_interrupted:
        return None
    if len(end.spoken) > 1 and objects(end.owner, language) and not language.summary.onward.match(text):
        return _said(Ending.FAILED, "the owner's last words object", end, text)
    return _said(Ending.STOPPED, "the last request has no answer", end, text)


def _by_contentment(end: End) -> SessionOutcome | None:
    """The owner's last words accept what was before, which the agent's words may not deny; else they tell nothing."""
    before = next((turn for turn in reversed(end.turns[: end.begin - 1]) if is_own(turn)), None)
    if end.owner is None or before is None:
        return None
    if asks_last(before.text) or announces(before.text):
        return None if end.agent else _said(Ending.STOPPED, "the last request has no answer", end, end.owner.text)
    if against := _against(end, before, says_undone(before.text)):
        return against
    return _said(Ending.DONE, "the owner is content", end, end.owner.text)


def _is_content(owner: Utterance, language: Language) -> bool:
    """Whether the owner accepts, gives thanks, or has the work committed, and asks for nothing else."""
    text = owner.text.strip()
    if text.endswith(("?", "？")) or objects(owner, language):
        return False
    if len(text) <= _SHORT and (is_idle(text) or acceptance(owner, language) == []):
        return not language.answers.no.match(text)
    return len(text) <= _SHORT and bool(language.accepted.finished.match(text))


def _interrupted(end: End) -> SessionOutcome | None:
    return SessionOutcome(Ending.STOPPED, CUT_OFF[2]) if end.is_interrupted else None


def _in_the_middle(end: End) -> SessionOutcome | None:
    """The agent was stopped before it could report."""
    last = end.agent[-1] if end.agent else None
    if last is None or not last.tool_calls or (is_report(last) and not _hands_over(last.tool_calls[-1])):
        return None
    if last.tool_calls[-1].outcome == "rejected":
        return SessionOutcome(Ending.STOPPED, "the owner declined the last call")
    if last.tool_calls[-1].outcome is None and last.tool_calls[-1].name in FORMS:
        return SessionOutcome(Ending.STOPPED, "the agent waits for an answer")
    if last.tool_calls[-1].outcome is None:
        return SessionOutcome(Ending.STOPPED, CUT_OFF[0])
    if _ends_session(last.tool_calls[-1]) and is_own(last) and not announces(last.text):
        return _reported(end, last)
    return SessionOutcome(Ending.STOPPED, CUT_OFF[1])


def _ends_session(call: ToolCall) -> bool:
    """Whether a call is the kind that an agent ends with: a report, a list without a box that is not ticked."""
    is_ticked = ticks(call) and "[ ] " not in call.input
    return is_ticked or call.name in ("attempt_completion", "finish", "task_complete")


def _hands_over(call: ToolCall) -> bool:
    """Whether a call hands over a plan, which is yet to be carried out."""
    return call.action is Action.PLAN and not ticks(call) and "[ ] " not in call.input and not call.made


def _by_report(end: End) -> SessionOutcome | None:
    """What the agent's last words say; those that draw on text from outside can only speak against it."""
    if end.report:
        return _reported(end, end.report)
    if not end.agent:
        return None
    last = end.agent[-1]
    if announces(last.text):
        return SessionOutcome(Ending.UNKNOWN, "it ends with what the agent was about to do")
    if not _against(end, last, speaks_against(last.text)):
        if pass_at_the_end(end.work):
            return SessionOutcome(Ending.DONE, "its checks pass at the end")
        if _has_committed(end):
            return SessionOutcome(Ending.DONE, "the work was committed")
    return SessionOutcome(Ending.UNKNOWN, "its last words draw on text from outside")


def _has_committed(end: End) -> bool:
    made = [name for turn in end.agent for call in turn.tool_calls for name in call.made]
    return any(name.startswith("commit ") for name in made)


def _reported(end: End, report: Turn) -> SessionOutcome:
    text = report.text
    done, gave_up, red = says_done(text), giving_up(text), failing(end.work)
    if gave_up and (red or not done):
        return _told(Ending.FAILED, "the agent says that it did not work", report, gave_up)
    if red and not done and any(map(changes, calls(end.work, 0, len(end.work)))):
        return _told(Ending.FAILED, _RED, report, opening(text))
    if asked := asks_last(text):
        return _told(Ending.STOPPED, "the agent waits for an answer", report, asked)
    if against := _against(end, report, says_undone(text) if _has_committed(end) else speaks_against(text)):
        return against
    passes = pass_at_the_end(end.work)
    if done:
        reason = "the agent says that it is done"
        return _told(Ending.DONE, f"{reason}, and its checks pass" if passes else reason, report, opening(text))
    if passes:
        return _told(Ending.DONE, "its checks pass at the end", report, opening(text))
    if end.has_acted and tells_work(text):
        return _told(Ending.DONE, "the agent reported what it changed", report, opening(text))
    if not end.has_acted and not end.asks_for_work:
        return _told(Ending.DONE, "the agent answered", report, opening(text))
    return _told(Ending.UNKNOWN, "nothing tells that it was done", report, opening(text))


def _against(end: End, report: Turn, denial: str) -> SessionOutcome | None:
    """What speaks against that it was done: what failed, a list that has something left, the agent's ``denial``."""
    if failing(end.work):
        return _told(Ending.UNKNOWN, _RED, report, denial)
    if unmended(end.turns[end.begin :]):
        return _told(Ending.UNKNOWN, "a command failed, and was not seen to work after", report, denial)
    if open_todos(end.turns) or unticked(report.text):
        return _told(Ending.UNKNOWN, "the agent's list has something left", report, denial)
    if denial:
        return _told(Ending.UNKNOWN, "the agent's last words say that something failed or is left", report, denial)
    return None


def _said(ending: Ending, reason: str, end: End, words: str) -> SessionOutcome:
    turn = end.turns[end.owner.index].id if end.owner else None
    return SessionOutcome(ending, reason, shorten(words, _WORDS), Speaker.OWNER, turn)


def _told(ending: Ending, reason: str, report: Turn, words: str) -> SessionOutcome:
    """What the agent's words tell; none are quoted that draw on text from outside."""
    if not is_own(report):
        return SessionOutcome(ending, reason)
    return SessionOutcome(ending, reason, shorten(words, _WORDS), Speaker.AGENT, report.id)
