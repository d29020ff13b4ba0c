"""Reads: what was asked for in a session, the main things first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from nacre.base.text import is_unspaced, normalise, one_line, shorten
from nacre.learn.explicit import leans
from nacre.learn.reading import (
    bounded,
    calls,
    changes,
    content_words,
    in_time,
    is_own,
    objects,
    passages,
)
from nacre.learn.sentences import (
    Language,
    Statement,
    Utterance,
    acceptance,
    is_content,
    is_pasted,
    language_of,
    split,
    utterances,
)
from nacre.sessions import summary
from nacre.sessions.summary import (
    announces,
    asks_last,
    does,
    failing,
    giving_up,
    is_check,
    is_report,
    open_todos,
    pass_at_the_end,
    questions,
    says_done,
    says_undone,
    speaks_against,
    tells_work,
    ticks,
    told,
    unmended,
    unticked,
)
from nacre.sessions.summary import opening as summary_opening
from nacre.values.session import (
    Action,
    Ending,
    Flag,
    Loose,
    OpenEnd,
    Session,
    SessionOutcome,
    Speaker,
    Summary,
    ToolCall,
    Topic,
    Trust,
    Turn,
)

MOST = 8
LONGEST = 300
"""Characters of a topic."""

_SHORT = 120
_LEAST_WORDS = 3
_LEAST_SIGNS = 5
_ALIKE = 0.6
_ANSWER = 8
_LEANING = 6
FORMS = frozenset(
    {"AskUserQuestion", "ask_followup_question", "request_user_input", "question", "ask_user"}
)
_HEADING = re.compile(r"^#{1,4} +(\S.*)$", re.MULTILINE)
_ERROR_PLACE = re.compile(r"[\w./\\-]+\.\w{1,4}:\d+")
_SPARE = Flag.META | Flag.SUMMARY


@dataclass(slots=True)
class _Request:
    """What was asked for, the turn it was asked in, and what followed. ``is_new`` is false for what goes on with the
    request before."""

    text: str
    turn: Turn
    is_new: bool = True
    work: int = 0


def topics(turns: Sequence[Turn], spoken: Sequence[Utterance]) -> list[Topic]:
    """What was asked for: first what began it, then by how much work followed."""
    found = [one for one in _merged(_requests(turns, spoken)) if not is_idle(one.text)]
    found = [*found[:1], *sorted(found[1:], key=lambda one: -one.work)]
    return [Topic(one.text, one.turn.id, one.turn.speaker, one.work) for one in found[:MOST]]


def first_request(turns: Sequence[Turn], spoken: Sequence[Utterance]) -> str | None:
    """The first thing that was asked for, else the first words of anyone."""
    requests = _requests(turns, spoken)
    said = next((request for request in requests if request.is_new), next(iter(requests), None))
    if said:
        return said.text
    return next(
        (one_line(turn.text) for turn in turns if turn.text and not turn.flags & _SPARE), None
    )


def is_idle(text: str) -> bool:
    """Whether words ask for nothing: a greeting, thanks, a yes."""
    return len(text) <= _SHORT and bool(language_of(text).summary.idle.match(text))


def asks_for_work(sentence: str) -> bool:
    """Whether a sentence asks for something to be done: no question, no nod, and not only something to look at."""
    language = language_of(sentence)
    told = language.trim(sentence)
    if (
        not is_telling(told)
        or language.summary.look.match(told)
        or language.summary.onward.match(told)
    ):
        return False
    is_order = language.reject["errand"].search(told)
    return bool(is_order) or not (
        language.reject["question"].search(told) or told.endswith(("?", "？"))
    )


def _requests(turns: Sequence[Turn], spoken: Sequence[Utterance]) -> list[_Request]:
    found = [
        _Request(words_of(turns[one.index], one), turns[one.index], asks(turns, one))
        for one in spoken
    ]
    places = [one.index for one in spoken]
    if not found:
        found, places = _without_owner(turns)
    for one, begin, end in zip(found, places, [*places, len(turns)][1:], strict=True):
        done = turns[begin + 1 : end]
        one.work = 1 + sum(len(turn.tool_calls) + is_own(turn) for turn in done)
    return found


def _without_owner(turns: Sequence[Turn]) -> tuple[list[_Request], list[int]]:
    """The task of a sub-agent, or what the owner only pasted."""
    for speaker in (Speaker.OWNER, Speaker.AGENT):
        at = next(
            (
                at
                for at, turn in enumerate(turns[:2])
                if turn.speaker is speaker and _is_plain(turn)
            ),
            None,
        )
        if at is not None:
            return [_Request(shorten(turns[at].text, LONGEST), turns[at])], [at]
    return [], []


def _is_plain(turn: Turn) -> bool:
    return turn.trust is Trust.TRUSTED and is_content(turn) and not turn.tool_calls


def words_of(turn: Turn, utterance: Utterance) -> str:
    """The words as they were typed where these are few, else without what was pasted; a bare command by its name."""
    raw = utterance.text.strip()
    if is_bare_command(turn, utterance):
        return shorten(one_line(turn.text), LONGEST)
    if len(raw) <= LONGEST and turn.speaker is Speaker.OWNER and _is_typed(raw):
        return one_line(raw)
    joiner = language_of(raw).joiner
    kept = [statement.text for statement in utterance.statements]
    while len(kept) > 1 and is_idle(kept[0]):
        kept.pop(0)
    text = joiner.join(kept)
    if text.endswith((":", "：")):
        heading = _HEADING.search(raw)
        text = f"{text}{joiner}{heading[1].strip(' #*')}" if heading else text
    return shorten(text, LONGEST)


def is_bare_command(turn: Turn, utterance: Utterance) -> bool:
    """Whether a message is a slash command with nothing that tells by itself what was wanted: "/model opus"."""
    return (
        bool(turn.flags & Flag.COMMAND)
        and turn.text.startswith("/")
        and not is_telling(utterance.text)
    )


def _is_typed(raw: str) -> bool:
    """Whether nothing in a message seems to be pasted."""
    lines = [line for line in raw.splitlines() if line.strip()]
    if _HEADING.search(raw):
        return False
    return len(lines) == 1 or (
        "```" not in raw and "</" not in raw and not any(map(is_pasted, lines))
    )


def asks(turns: Sequence[Turn], utterance: Utterance) -> bool:
    """Whether a message asks for something of its own, rather than to go on, or again, or otherwise."""
    text = utterance.text.strip()
    language = language_of(text)
    if not is_telling(text) or is_pasted(text.splitlines()[0]) or _ERROR_PLACE.match(text):
        return False
    if (
        utterance.correcting
        or acceptance(utterance, language) == []
        or _was_asked(turns, utterance)
    ):
        return False
    return not (len(text) <= _SHORT and _goes_on(utterance, language))


def is_telling(text: str) -> bool:
    """Whether a message has words enough to ask for something, besides paths and addresses."""
    if is_idle(text):
        return False
    if not language_of(text).joiner or is_unspaced(text):
        return sum(map(str.isalnum, text)) >= _LEAST_SIGNS
    return (
        sum("/" not in word and any(map(str.isalpha, word)) for word in text.split())
        >= _LEAST_WORDS
    )


def _goes_on(utterance: Utterance, language: Language) -> bool:
    """Whether a short message only goes on with what was asked before, ends it, or has it committed."""
    text = utterance.text.strip()
    cues = language.summary
    if cues.onward.match(text) or cues.stop.match(text) or objects(utterance, language):
        return True
    if language.accepted.finished.match(text):
        return True
    words = len(text.split()) if language.joiner else len(text) // 2
    return (words <= _ANSWER and bool(language.answers.yes.match(text))) or (
        words <= _LEANING and leans(text, language)
    )


def _was_asked(turns: Sequence[Turn], utterance: Utterance) -> bool:
    """Whether a message answers what the agent has just asked: in a form, or in a few words."""
    places = range(utterance.index - 1, -1, -1)
    before = next((turns[at] for at in places if turns[at].speaker is Speaker.AGENT), None)
    if before is None:
        return False
    if before.tool_calls and before.tool_calls[-1].name in FORMS:
        return True
    words = (
        len(utterance.text.split())
        if language_of(utterance.text).joiner
        else len(utterance.text) // 2
    )
    return words <= _ANSWER and before.text.rstrip(" *_)`").endswith(("?", "？"))


def _merged(requests: Sequence[_Request]) -> list[_Request]:
    """Requests with what went on with them; one that is made again is one."""
    found: list[_Request] = []
    known: list[frozenset[str]] = []
    for request in requests:
        words = content_words(request.text, language_of(request.text))
        same = next(_alike(words, known), None) if request.is_new else len(found) - 1
        if same is None or same < 0:
            found.append(request)
            known.append(words)
        else:
            found[same].work += request.work
    if len(found) > 1 and not found[0].is_new:
        found[1].work += found.pop(0).work
    return found


def _alike(words: frozenset[str], known: Sequence[frozenset[str]]) -> Iterator[int]:
    for at, other in enumerate(known):
        if words and other and len(words & other) >= _ALIKE * len(words | other):
            yield at


# ----------------------------------------------------------------------------
# Reads: how a session ended: by the owner's last words, the agent's last report, and the last checks
# that ran.


ENDED = "the owner ended it"
CUT_OFF = (
    "it ends in the middle of a call",
    "it ends in the middle of the work",
    "the owner stopped the agent",
)
"""Reasons that others ask for."""

_RED = "a check failed, and was not seen to pass again"
_LOOKING = frozenset({Action.READ, Action.SEARCH, Action.FETCH, Action.PLAN})
_WORDS = 240
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
        return int(
            bool(self.turns)
            and self.turns[0].speaker is Speaker.AGENT
            and not self.turns[0].tool_calls
        )

    @cached_property
    def agent(self) -> list[Turn]:
        """What the agent did and said after them."""
        return [
            turn
            for turn in self.turns[self.begin :]
            if turn.speaker is Speaker.AGENT and not turn.flags & _NOISE
        ]

    @cached_property
    def is_interrupted(self) -> bool:
        """Whether the owner stopped the agent, and it did nothing after that. A call they declined says more."""
        last = next(
            (turn for turn in reversed(self.turns[self.begin :]) if _is_of_either(turn)), None
        )
        declined = bool(
            self.agent
            and self.agent[-1].tool_calls
            and self.agent[-1].tool_calls[-1].outcome == "rejected"
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
        return is_idle(utterance.text.strip()) or is_bare_command(
            self.turns[utterance.index], utterance
        )

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
        return not any(is_telling(one.text) for one in asked) or any(
            asks_for_work(one.text) for one in asked
        )


def _acts(call: ToolCall) -> bool:
    """Whether a call came out and did something."""
    return (
        call.outcome == "ok" and call.action not in _LOOKING and does(call) and not is_check(call)
    )


def _is_of_either(turn: Turn) -> bool:
    """Whether a turn is the agent's, or tells that the owner stopped it."""
    return not turn.flags & Flag.SIDECHAIN and (
        turn.speaker is Speaker.AGENT or bool(turn.flags & Flag.INTERRUPTED)
    )


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
    if (
        len(end.spoken) > 1
        and objects(end.owner, language)
        and not language.summary.onward.match(text)
    ):
        return _said(Ending.FAILED, "the owner's last words object", end, text)
    return _said(Ending.STOPPED, "the last request has no answer", end, text)


def _by_contentment(end: End) -> SessionOutcome | None:
    """The owner's last words accept what was before, which the agent's words may not deny; else they tell nothing."""
    before = next((turn for turn in reversed(end.turns[: end.begin - 1]) if is_own(turn)), None)
    if end.owner is None or before is None:
        return None
    if asks_last(before.text) or announces(before.text):
        return (
            None
            if end.agent
            else _said(Ending.STOPPED, "the last request has no answer", end, end.owner.text)
        )
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
    if (
        last is None
        or not last.tool_calls
        or (is_report(last) and not _hands_over(last.tool_calls[-1]))
    ):
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
    return (
        call.action is Action.PLAN
        and not ticks(call)
        and "[ ] " not in call.input
        and not call.made
    )


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
        return _told(Ending.FAILED, _RED, report, summary_opening(text))
    if asked := asks_last(text):
        return _told(Ending.STOPPED, "the agent waits for an answer", report, asked)
    if against := _against(
        end, report, says_undone(text) if _has_committed(end) else speaks_against(text)
    ):
        return against
    passes = pass_at_the_end(end.work)
    if done:
        reason = "the agent says that it is done"
        return _told(
            Ending.DONE,
            f"{reason}, and its checks pass" if passes else reason,
            report,
            summary_opening(text),
        )
    if passes:
        return _told(Ending.DONE, "its checks pass at the end", report, summary_opening(text))
    if end.has_acted and tells_work(text):
        return _told(
            Ending.DONE, "the agent reported what it changed", report, summary_opening(text)
        )
    if not end.has_acted and not end.asks_for_work:
        return _told(Ending.DONE, "the agent answered", report, summary_opening(text))
    return _told(Ending.UNKNOWN, "nothing tells that it was done", report, summary_opening(text))


def _against(end: End, report: Turn, denial: str) -> SessionOutcome | None:
    """What speaks against that it was done: what failed, a list that has something left, the agent's ``denial``."""
    if failing(end.work):
        return _told(Ending.UNKNOWN, _RED, report, denial)
    if unmended(end.turns[end.begin :]):
        return _told(
            Ending.UNKNOWN, "a command failed, and was not seen to work after", report, denial
        )
    if open_todos(end.turns) or unticked(report.text):
        return _told(Ending.UNKNOWN, "the agent's list has something left", report, denial)
    if denial:
        return _told(
            Ending.UNKNOWN,
            "the agent's last words say that something failed or is left",
            report,
            denial,
        )
    return None


def _said(ending: Ending, reason: str, end: End, words: str) -> SessionOutcome:
    turn = end.turns[end.owner.index].id if end.owner else None
    return SessionOutcome(ending, reason, shorten(words, _WORDS), Speaker.OWNER, turn)


def _told(ending: Ending, reason: str, report: Turn, words: str) -> SessionOutcome:
    """What the agent's words tell; none are quoted that draw on text from outside."""
    if not is_own(report):
        return SessionOutcome(ending, reason)
    return SessionOutcome(ending, reason, shorten(words, _WORDS), Speaker.AGENT, report.id)


# ----------------------------------------------------------------------------
# Reads: what a session left: requests, questions, todos, next steps that nobody took, checks that
# still fail.


MOST_OF_A_KIND = 6
_CHARACTERS = 240
_LEAST = 12
_DONE_SINCE = 0.6
_EXIT = re.compile(r"exit -?\d+")


def open_ends(
    turns: Sequence[Turn], spoken: Sequence[Utterance], ended: SessionOutcome
) -> list[OpenEnd]:
    """What was left, by kind; each thing once."""
    end = End(turns, spoken)
    found = [
        *_request(end, ended),
        *_questions(end, ended),
        *_failing(end),
        *_todos(turns),
        *_next_steps(end),
    ]
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
        yield OpenEnd(
            Loose.REQUEST, shorten(words_of(turn, last), _CHARACTERS), Speaker.OWNER, turn.id
        )


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
                Loose.TODO if text in boxes else Loose.NEXT_STEP,
                shorten(text, _CHARACTERS),
                Speaker.AGENT,
                report.id,
            )


def _done_words(turn: Turn) -> frozenset[str]:
    told_of = " ".join([turn.text, *(call.input for call in turn.tool_calls)])
    return content_words(told_of, language_of(turn.text))


def _left(text: str) -> Iterator[str]:
    for passage in passages(text):
        is_ahead = bool(passage.heading) and bool(
            language_of(passage.heading).summary.ahead.match(passage.heading)
        )
        for statement in passage.statements:
            if _is_left(statement, is_ahead=is_ahead):
                yield statement.text


def _is_left(one: Statement, *, is_ahead: bool) -> bool:
    cues = language_of(one.text).summary
    if (
        one.text.endswith((":", "：", "?", "？"))
        or cues.nothing.match(one.text)
        or cues.offer.search(one.text)
    ):
        return False
    leads = one.lead is not None and bool(language_of(one.lead).summary.ahead.match(one.lead))
    least = _LEAST if language_of(one.text).joiner else _LEAST // 3
    return len(one.text) >= least and (is_ahead or leads or bool(cues.left.search(one.text)))


# ----------------------------------------------------------------------------
# All of it in a row: a session's turns → its summary.


TITLE_CHARACTERS = 120


def summarise(session: Session, turns: Sequence[Turn]) -> Summary:
    """The summary of a session. Pure and deterministic: the same turns give the same."""
    turns = in_time([bounded(turn) for turn in turns])
    if not turns:
        return Summary()
    spoken = utterances(turns)
    calls = [call for _, call in summary.all_calls(turns)]
    ended = outcome(turns, spoken)
    return Summary(
        topics=tuple(topics(turns, spoken)),
        outcome=ended,
        open_ends=tuple(open_ends(turns, spoken, ended)),
        tools=summary.tools(calls),
        files=summary.files(calls, session.cwd),
        commands=summary.commands(calls),
        commits=summary.commits(turns),
        pull_requests=summary.pull_requests(turns),
        errors=summary.errors(calls),
        packages=summary.packages(calls),
        urls=summary.urls(turns),
    )


def opening(turns: Sequence[Turn]) -> str | None:
    """What a session without a title is called: its first real request, shortened at a word."""
    shown = in_time([bounded(turn) for turn in turns])
    found = first_request(shown, utterances(shown))
    return shorten(found, TITLE_CHARACTERS) if found else None
