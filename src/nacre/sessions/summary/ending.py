"""Reads: how a session ended: by the owner's last words, the agent's last report, and the last checks that ran."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from nacre.extraction.reading.course import calls, changed, changes, is_own, objects
from nacre.extraction.reading.cues import Language, language_of
from nacre.extraction.reading.patterns import Pattern
from nacre.extraction.reading.reports import passages
from nacre.extraction.reading.speech import Utterance, acceptance
from nacre.sessions.summary.topics import FORMS, is_idle
from nacre.text.passages import shorten
from nacre.transcripts.commands import names
from nacre.values.session import Action, Flag, Speaker, ToolCall, Turn
from nacre.values.summary import Ending, SessionOutcome

ENDED = "the owner ended it"
CUT_OFF = (
    "it ends in the middle of a call", "it ends in the middle of the work", "the owner stopped the agent",
)  # fmt: skip
"""Reasons that others ask for."""

_BUILD = "build"

_WORDS = 240
_SHORT = 120
_FINAL = 200
_BRIEF = 25
_CHECK = re.compile(
    r"(?:\S+ )*?(?:pytest|jest|vitest|mocha|rspec|phpunit|tox|nox|ctest|mypy|pyright|ruff|flake8|eslint|tsc|tsgo|clippy"
    r"|golangci-lint|rubocop|shellcheck|unittest|playwright|cypress|make|ninja|biome|credo|dialyzer"
    r"|(?:run[-_.]?)?(?:tests?|check|lint|build|verify|vet|typecheck|type-check|compile)(?:[:._-][\w:.-]*)?)"
)
_STATIC = re.compile(
    r"lint|ruff|eslint|flake8|clippy|biome|credo|shellcheck|rubocop|\bvet\b|mypy|pyright|tsc|tsgo|type-?check|dialyzer"
)
_TESTING = re.compile(r"test|jest|mocha|rspec|phpunit|tox|nox|playwright|cypress")
_BUILDING = re.compile(r"build|compile|(?:make|ninja)$|cargo check")
_NEVER_RAN = re.compile(r"exit 12[67]")
"""There is no such program, or it may not be run."""
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


def _is_of_either(turn: Turn) -> bool:
    """Whether a turn is the agent's, or tells that the owner stopped it."""
    return not turn.flags & Flag.SIDECHAIN and (turn.speaker is Speaker.AGENT or bool(turn.flags & Flag.INTERRUPTED))


def is_report(turn: Turn) -> bool:
    """Whether a turn ends with words: it has no calls, or, in tools that put both into one, its words sound final."""
    if announces(turn.text):
        return False
    if not turn.tool_calls:
        return bool(turn.text)
    if turn.tool_calls[-1].outcome in (None, "rejected"):
        return False
    is_done = _holds(turn.text, language_of(turn.text).concluded.done)
    return is_done or len(turn.text) >= _FINAL or turn.text.rstrip().endswith(("?", "？"))


def announces(text: str) -> bool:
    """Whether words end with what their speaker does next: "Let me run the tests:"."""
    if text.rstrip().endswith((":", "：")):
        return True
    said = [one.text for passage in passages(text) for one in passage.statements][-1:]
    return any(language_of(one).summary.announces.search(one) for one in said)


def outcome(turns: Sequence[Turn], spoken: Sequence[Utterance]) -> SessionOutcome:
    """How it ended. What is not told by words or deeds is unknown."""
    end = End(turns, spoken)
    told = _by_owner(end) or _interrupted(end) or _in_the_middle(end) or _by_report(end)
    return told or SessionOutcome(Ending.UNKNOWN, "nothing tells")


def failing(turns: Sequence[Turn]) -> list[tuple[Turn, ToolCall]]:
    """The checks that failed, each with its turn, and after which none of their sort passed: tests, lints, or builds,
    which whatever passes shows to work.
    """
    red: dict[str, tuple[Turn, ToolCall]] = {}
    for turn in turns:
        for call in turn.tool_calls:
            sorts = _sorts(call)
            if not sorts or call.outcome in (None, "rejected") or _NEVER_RAN.search(call.outcome or ""):
                continue
            if call.failed:
                red.update(dict.fromkeys(sorts, (turn, call)))
            else:
                for sort in (*sorts, _BUILD):
                    red.pop(sort, None)
    return list({id(call): (turn, call) for turn, call in red.values()}.values())


def is_check(call: ToolCall) -> bool:
    """Whether a call tests, lints or builds."""
    return bool(_sorts(call))


def _sorts(call: ToolCall) -> set[str]:
    """Which sorts of checks a call runs."""
    if call.action is not Action.RUN:
        return set()
    return {_sort(name) for name in names(call.input) if _CHECK.fullmatch(name)}


def _sort(name: str) -> str:
    """What a check is, by its name; one that only says so is of its own sort: "make check"."""
    if _TESTING.search(name):
        return "test"
    if _STATIC.search(name):
        return "lint"
    return _BUILD if _BUILDING.search(name) else name


def _by_owner(end: End) -> SessionOutcome | None:
    """What the owner's last words say of it, where the agent did nothing more that counts."""
    if end.owner is None:
        return None
    text = end.owner.text
    language = language_of(text)
    worked = bool(calls(end.turns, end.begin, len(end.turns)))
    if len(text) <= _SHORT and language.summary.stop.match(text) and not worked:
        return _said(Ending.STOPPED, ENDED, end, text)
    if _is_content(end.owner, language) and not changed(end.turns, end.begin, len(end.turns)):
        return _said(Ending.DONE, "the owner is content", end, text) if _has_worked(end) else None
    if end.agent or end.is_interrupted:
        return None
    if len(end.spoken) > 1 and objects(end.owner, language) and not language.summary.onward.match(text):
        return _said(Ending.FAILED, "the owner's last words object", end, text)
    return _said(Ending.STOPPED, "the last request has no answer", end, text)


def _is_content(owner: Utterance, language: Language) -> bool:
    """Whether the owner accepts, gives thanks, or has the work committed, and asks for nothing else."""
    text = owner.text.strip()
    if text.endswith(("?", "？")) or objects(owner, language):
        return False
    if len(text) <= _SHORT and (is_idle(text) or acceptance(owner, language) == []):
        return not language.answers.no.match(text)
    return len(text) <= _SHORT and bool(language.accepted.finished.match(text))


def _has_worked(end: End) -> bool:
    """Whether there was anything before that the owner can be content with."""
    before = end.turns[: end.begin - 1]
    return any(is_own(turn) for turn in before)


def _interrupted(end: End) -> SessionOutcome | None:
    return SessionOutcome(Ending.STOPPED, CUT_OFF[2]) if end.is_interrupted else None


def _in_the_middle(end: End) -> SessionOutcome | None:
    """The agent was stopped before it could report."""
    last = end.agent[-1] if end.agent else None
    if last is None or is_report(last) or not last.tool_calls:
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
    is_ticked = call.action is Action.PLAN and "[ ] " not in call.input
    return is_ticked or call.name in ("attempt_completion", "finish", "task_complete")


def _by_report(end: End) -> SessionOutcome | None:
    """What the agent's last words say."""
    if end.report:
        return _reported(end, end.report)
    if not end.agent:
        return None
    if _checks_pass(end):
        return SessionOutcome(Ending.DONE, "its checks pass at the end")
    if any(call.made for turn in end.agent for call in turn.tool_calls):
        return SessionOutcome(Ending.DONE, "the work was committed")
    if announces(end.agent[-1].text):
        return SessionOutcome(Ending.UNKNOWN, "it ends with what the agent was about to do")
    return SessionOutcome(Ending.UNKNOWN, "its last words draw on text from outside")


def _reported(end: End, report: Turn) -> SessionOutcome:
    text = report.text
    language = language_of(text)
    done, gave_up = _holds(text, language.concluded.done), _giving_up(text)
    red = failing(end.turns[end.begin :])
    if gave_up and (red or not done):
        return _told(Ending.FAILED, "the agent says that it did not work", report, gave_up)
    if red and not done and changed(end.turns, end.begin, len(end.turns)):
        return _told(Ending.FAILED, "a check failed, and was not seen to pass again", report, _opening(text))
    if asked := _asked_last(text):
        return _told(Ending.STOPPED, "the agent waits for an answer", report, asked)
    if done:
        reason = "the agent says that it is done"
        passes = _checks_pass(end)
        return _told(Ending.DONE, f"{reason}, and its checks pass" if passes else reason, report, _opening(text))
    if _checks_pass(end):
        return _told(Ending.DONE, "its checks pass at the end", report, _opening(text))
    if not changed(end.turns, end.begin, len(end.turns)):
        return _told(Ending.DONE, "the agent answered", report, _opening(text))
    return _told(Ending.DONE, "the agent reported what it changed", report, _opening(text))


def _checks_pass(end: End) -> bool:
    """Whether something was changed, and a check passed after the last change."""
    done = calls(end.turns, 0, len(end.turns))
    since = next((at for at in range(len(done), 0, -1) if changes(done[at - 1])), None)
    if since is None or failing(end.turns):
        return False
    return any(is_check(call) and call.outcome == "ok" for call in done[since:])


def questions(text: str) -> list[str]:
    """What an agent asks at the end of its words, without what asks for nothing in particular."""
    found = [one.text for passage in passages(text) for one in passage.statements][-3:]
    return [one for one in found if _is_question(one) and not _offers(one)]


def _asked_last(text: str) -> str:
    """The question with which words end, but for what asks for nothing in particular."""
    said = [one.text for passage in passages(text) for one in passage.statements]
    while said and _offers(said[-1]):
        said.pop()
    return said[-1] if said and _is_question(said[-1]) else ""


def _is_question(sentence: str) -> bool:
    return sentence.rstrip("*_ )）\"'").endswith(("?", "？"))


def _offers(sentence: str) -> bool:
    return bool(language_of(sentence).summary.offer.search(sentence))


def _giving_up(text: str) -> str:
    """The last sentence that says that it did not get there, with what follows where it is short."""
    wanted = language_of(text).summary.gave_up
    said = [one.text for passage in passages(text) for one in passage.statements]
    return next((_with_next(said, at) for at in reversed(range(len(said))) if wanted.search(said[at])), "")


def _holds(text: str, wanted: Pattern) -> bool:
    """Whether a line of a text says so. Over many lines of signs alone, expressions would go back and forth."""
    return any(wanted.search(line) for line in text.splitlines() if line.strip())


def _opening(text: str) -> str:
    """The first sentence, with what follows where it is short: "Done."; none where it only leads into something."""
    said = [one.text for passage in passages(text) for one in passage.statements]
    at = next((at for at, one in enumerate(said) if not _leads(one)), None)
    return "" if at is None else _with_next(said, at)


def _with_next(said: Sequence[str], at: int) -> str:
    following = [one for one in said[at + 1 : at + 2] if not _leads(one)]
    return language_of(said[at]).joiner.join([said[at], *following]) if len(said[at]) <= _BRIEF else said[at]


def _leads(sentence: str) -> bool:
    return sentence.endswith((":", "："))


def _said(ending: Ending, reason: str, end: End, words: str) -> SessionOutcome:
    turn = end.turns[end.owner.index].id if end.owner else None
    return SessionOutcome(ending, reason, shorten(words, _WORDS), Speaker.OWNER, turn)


def _told(ending: Ending, reason: str, report: Turn, words: str) -> SessionOutcome:
    return SessionOutcome(ending, reason, shorten(words, _WORDS), Speaker.AGENT, report.id)
