"""Session summaries: topics, outcome, unfinished work and title."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from nacre.base.text import is_unspaced, normalise, one_line, shorten
from nacre.learn.explicit import leans
from nacre.learn.reading import (
    calls,
    content_words,
    is_change,
    is_objection,
    is_own,
    passages,
    shorten_for_regex,
    sort_by_time,
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
    describe_call,
    does,
    failing,
    find_unmended,
    find_unticked,
    giving_up,
    is_check,
    is_report,
    open_todos,
    pass_at_the_end,
    questions,
    says_done,
    says_undone,
    speaks_against,
    states_work,
    ticks,
)
from nacre.sessions.summary import opening as first_sentence
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
"""Maximum length of a topic, in characters."""

_SHORT_CHARACTERS = 120
_MIN_WORDS = 3
_MIN_CHARACTERS = 5
_SAME_REQUEST_OVERLAP = 0.6
_MAX_ANSWER_WORDS = 8
_MAX_DEPENDENT_WORDS = 6
FORMS = frozenset(
    {"AskUserQuestion", "ask_followup_question", "request_user_input", "question", "ask_user"}
)
_HEADING = re.compile(r"^#{1,4} +(\S.*)$", re.MULTILINE)
_ERROR_PLACE = re.compile(r"[\w./\\-]+\.\w{1,4}:\d+")
_NOT_CONVERSATION = Flag.META | Flag.SUMMARY


@dataclass(slots=True)
class _Request:
    """A request and the turn that contains it.

    ``is_new``: False if the request continues an earlier one. ``work``: number of calls and answers
    that followed.
    """

    text: str
    turn: Turn
    is_new: bool = True
    work: int = 0


def topics(turns: Sequence[Turn], spoken: Sequence[Utterance]) -> list[Topic]:
    """Return the first request, followed by the requests that took the most work."""
    requests = [item for item in _merge(_requests(turns, spoken)) if not is_idle(item.text)]
    requests = [*requests[:1], *sorted(requests[1:], key=lambda item: -item.work)]
    return [
        Topic(item.text, item.turn.id, item.turn.speaker, item.work) for item in requests[:MOST]
    ]


def first_request(turns: Sequence[Turn], spoken: Sequence[Utterance]) -> str | None:
    """Return the first request. If there is no request, return the first words of any speaker."""
    requests = _requests(turns, spoken)
    first = next((request for request in requests if request.is_new), next(iter(requests), None))
    if first:
        return first.text
    return next(
        (one_line(turn.text) for turn in turns if turn.text and not turn.flags & _NOT_CONVERSATION),
        None,
    )


def is_idle(text: str) -> bool:
    """Return True for a greeting, thanks or assent."""
    return len(text) <= _SHORT_CHARACTERS and bool(language_of(text).summary.idle.match(text))


def asks_for_work(sentence: str) -> bool:
    """Return True if a sentence asks for work other than answering or reading."""
    language = language_of(sentence)
    bare = language.trim(sentence)
    if (
        not is_telling(bare)
        or language.summary.look.match(bare)
        or language.summary.onward.match(bare)
    ):
        return False
    is_order = language.reject["errand"].search(bare)
    return bool(is_order) or not (
        language.reject["question"].search(bare) or bare.endswith(("?", "？"))
    )


def _requests(turns: Sequence[Turn], spoken: Sequence[Utterance]) -> list[_Request]:
    requests = [
        _Request(words_of(turns[item.index], item), turns[item.index], asks(turns, item))
        for item in spoken
    ]
    places = [item.index for item in spoken]
    if not requests:
        requests, places = _without_owner(turns)
    for request, begin, end in zip(requests, places, [*places, len(turns)][1:], strict=True):
        done = turns[begin + 1 : end]
        request.work = 1 + sum(len(turn.tool_calls) + is_own(turn) for turn in done)
    return requests


def _without_owner(turns: Sequence[Turn]) -> tuple[list[_Request], list[int]]:
    """Return the request in pasted text or in a sub-agent's task, and the request's position."""
    for speaker in (Speaker.OWNER, Speaker.AGENT):
        at = next(
            (
                at
                for at, turn in enumerate(turns[:2])
                if turn.speaker is speaker
                and (turn.trust is Trust.TRUSTED and is_content(turn) and not turn.tool_calls)
            ),
            None,
        )
        if at is not None:
            return [_Request(shorten(turns[at].text, LONGEST), turns[at])], [at]
    return [], []


def words_of(turn: Turn, utterance: Utterance) -> str:
    """Return a bare command or a short typed message verbatim, and other messages without pasted text."""
    raw = utterance.text.strip()
    if is_bare_command(turn, utterance):
        return shorten(one_line(turn.text), LONGEST)
    if len(raw) <= LONGEST and turn.speaker is Speaker.OWNER and _is_typed(raw):
        return one_line(raw)
    joiner = language_of(raw).joiner
    texts = [statement.text for statement in utterance.statements]
    while len(texts) > 1 and is_idle(texts[0]):
        texts.pop(0)
    text = joiner.join(texts)
    if text.endswith((":", "：")):
        heading = _HEADING.search(raw)
        text = f"{text}{joiner}{heading[1].strip(' #*')}" if heading else text
    return shorten(text, LONGEST)


def is_bare_command(turn: Turn, utterance: Utterance) -> bool:
    """Return True for a slash command without a request, such as "/model opus"."""
    return (
        bool(turn.flags & Flag.COMMAND)
        and turn.text.startswith("/")
        and not is_telling(utterance.text)
    )


def _is_typed(raw: str) -> bool:
    lines = [line for line in raw.splitlines() if line.strip()]
    if _HEADING.search(raw):
        return False
    return len(lines) == 1 or (
        "```" not in raw and "</" not in raw and not any(map(is_pasted, lines))
    )


def asks(turns: Sequence[Turn], utterance: Utterance) -> bool:
    """Return True if a message is a new request, not a continuation, repetition or correction."""
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
    return not (len(text) <= _SHORT_CHARACTERS and _goes_on(utterance, language))


def is_telling(text: str) -> bool:
    """Return True if a message has enough words for a request, not counting paths and addresses."""
    if is_idle(text):
        return False
    if not language_of(text).joiner or is_unspaced(text):
        return sum(map(str.isalnum, text)) >= _MIN_CHARACTERS
    return (
        sum("/" not in word and any(map(str.isalpha, word)) for word in text.split()) >= _MIN_WORDS
    )


def _goes_on(utterance: Utterance, language: Language) -> bool:
    """Return True if a short message only continues, ends or accepts the previous request."""
    text = utterance.text.strip()
    cues = language.summary
    if cues.onward.match(text) or cues.stop.match(text) or is_objection(utterance, language):
        return True
    if language.accepted.finished.match(text):
        return True
    words = len(text.split()) if language.joiner else len(text) // 2
    return (words <= _MAX_ANSWER_WORDS and bool(language.answers.yes.match(text))) or (
        words <= _MAX_DEPENDENT_WORDS and leans(text, language)
    )


def _was_asked(turns: Sequence[Turn], utterance: Utterance) -> bool:
    """Return True if a message fills in a form or briefly answers a question from the agent."""
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
    return words <= _MAX_ANSWER_WORDS and before.text.rstrip(" *_)`").endswith(("?", "？"))


def _merge(requests: Sequence[_Request]) -> list[_Request]:
    merged: list[_Request] = []
    word_sets: list[frozenset[str]] = []
    for request in requests:
        words = content_words(request.text, language_of(request.text))
        same = next(_alike(words, word_sets), None) if request.is_new else len(merged) - 1
        if same is None or same < 0:
            merged.append(request)
            word_sets.append(words)
        else:
            merged[same].work += request.work
    if len(merged) > 1 and not merged[0].is_new:
        merged[1].work += merged.pop(0).work
    return merged


def _alike(words: frozenset[str], word_sets: Sequence[frozenset[str]]) -> Iterator[int]:
    for at, word_set in enumerate(word_sets):
        if (
            words
            and word_set
            and len(words & word_set) >= _SAME_REQUEST_OVERLAP * len(words | word_set)
        ):
            yield at


# -- Outcome ------------------------------------------------------------------
# The owner's last words, the agent's last report and the last checks decide the outcome.


ENDED = "the owner ended it"
CUT_OFF = (
    "it ends in the middle of a call",
    "it ends in the middle of the work",
    "the owner stopped the agent",
)
"""Reasons why a session was cut off. Other code compares these texts."""

_CHECK_FAILED = "a check failed and did not pass again"
_READING = frozenset({Action.READ, Action.SEARCH, Action.FETCH, Action.PLAN})
_QUOTE_CHARACTERS = 240
_NOISE = Flag.META | Flag.SUMMARY | Flag.SIDECHAIN


@dataclass(frozen=True)
class End:
    """The end of a session: the owner's last message, if any, and all later turns."""

    turns: Sequence[Turn]
    spoken: Sequence[Utterance]

    @cached_property
    def owner(self) -> Utterance | None:
        """The owner's last message."""
        return self.spoken[-1] if self.spoken else None

    @cached_property
    def begin(self) -> int:
        """Index of the first turn after the owner's last message or a parent agent's task."""
        if self.owner:
            return self.owner.index + 1
        return int(
            bool(self.turns)
            and self.turns[0].speaker is Speaker.AGENT
            and not self.turns[0].tool_calls
        )

    @cached_property
    def agent(self) -> list[Turn]:
        """The agent's turns from ``begin`` on."""
        return [
            turn
            for turn in self.turns[self.begin :]
            if turn.speaker is Speaker.AGENT and not turn.flags & _NOISE
        ]

    @cached_property
    def is_interrupted(self) -> bool:
        """True if the owner interrupted the agent and the agent did nothing afterwards.

        A call that the owner declined is not an interruption.
        """
        last = next(
            (
                turn
                for turn in reversed(self.turns[self.begin :])
                if (
                    not turn.flags & Flag.SIDECHAIN
                    and (turn.speaker is Speaker.AGENT or bool(turn.flags & Flag.INTERRUPTED))
                )
            ),
            None,
        )
        declined = bool(
            self.agent
            and self.agent[-1].tool_calls
            and self.agent[-1].tool_calls[-1].outcome == "rejected"
        )
        return bool(last and last.flags & Flag.INTERRUPTED) and not declined

    @cached_property
    def report(self) -> Turn | None:
        """The agent's last turn if this turn is a report in the agent's own words, otherwise ``None``."""
        last = self.agent[-1] if self.agent else None
        return last if last and is_own(last) and is_report(last) else None

    @cached_property
    def last_report(self) -> Turn | None:
        """The agent's last words that do not quote external text."""
        return next((turn for turn in reversed(self.turns) if is_own(turn)), None)

    @cached_property
    def request(self) -> Utterance | None:
        """The owner's last new request, or the last message if there is no new request."""
        return next(
            (utterance for utterance in reversed(self.spoken) if asks(self.turns, utterance)),
            self.owner,
        )

    def is_empty(self, utterance: Utterance) -> bool:
        """Return True if the owner's message contains no request."""
        return is_idle(utterance.text.strip()) or is_bare_command(
            self.turns[utterance.index], utterance
        )

    @cached_property
    def work(self) -> Sequence[Turn]:
        """The turns after the last request."""
        return self.turns[self.request.index + 1 if self.request else self.begin :]

    @cached_property
    def has_acted(self) -> bool:
        """True if a call after the last request did more than reading or checking."""
        return any(
            (
                call.outcome == "ok"
                and call.action not in _READING
                and does(call)
                and not is_check(call)
            )
            for call in calls(self.work, 0, len(self.work))
        )

    @cached_property
    def asks_for_work(self) -> bool:
        """True if the last request asked for work, not only information."""
        statements = self.request.statements if self.request else split(self.turns[0].text)
        return not any(is_telling(statement.text) for statement in statements) or any(
            asks_for_work(statement.text) for statement in statements
        )


def outcome(turns: Sequence[Turn], spoken: Sequence[Utterance]) -> SessionOutcome:
    """Return how a session ended.

    It is done only with evidence and without objections. Without evidence, it is unknown.
    """
    end = End(turns, spoken)
    if spoken and not end.has_acted and all(map(end.is_empty, spoken)):
        return SessionOutcome(Ending.UNKNOWN, "there was no written request")
    result = (
        _by_owner(end)
        or (SessionOutcome(Ending.STOPPED, CUT_OFF[2]) if end.is_interrupted else None)
        or _in_the_middle(end)
        or _outcome_by_report(end)
    )
    return result or SessionOutcome(Ending.UNKNOWN, "there is no evidence")


def _by_owner(end: End) -> SessionOutcome | None:
    """Return the outcome that the owner's last message implies, if the agent did nothing relevant after it."""
    if end.owner is None:
        return None
    text = end.owner.text
    language = language_of(text)
    worked = bool(calls(end.turns, end.begin, len(end.turns)))
    if len(text) <= _SHORT_CHARACTERS and language.summary.stop.match(text) and not worked:
        return _with_owner_words(Ending.STOPPED, ENDED, end, text)
    if _is_content(end.owner, language) and not worked:
        before = next((turn for turn in reversed(end.turns[: end.begin - 1]) if is_own(turn)), None)
        if before is None:
            return None
        if asks_last(before.text) or announces(before.text):
            unanswered = "the last request has no answer"
            return None if end.agent else _with_owner_words(Ending.STOPPED, unanswered, end, text)
        objection = _objection(end, before, says_undone(before.text))
        return objection or _with_owner_words(Ending.DONE, "the owner is satisfied", end, text)
    if end.agent or end.is_interrupted:
        return None
    if (
        len(end.spoken) > 1
        and is_objection(end.owner, language)
        and not language.summary.onward.match(text)
    ):
        return _with_owner_words(Ending.FAILED, "the owner's last message objects", end, text)
    return _with_owner_words(Ending.STOPPED, "the last request has no answer", end, text)


def _is_content(owner: Utterance, language: Language) -> bool:
    """Return True if the owner only approves the work, gives thanks or asks for a commit."""
    text = owner.text.strip()
    if text.endswith(("?", "？")) or is_objection(owner, language):
        return False
    if len(text) <= _SHORT_CHARACTERS and (is_idle(text) or acceptance(owner, language) == []):
        return not language.answers.no.match(text)
    return len(text) <= _SHORT_CHARACTERS and bool(language.accepted.finished.match(text))


def _in_the_middle(end: End) -> SessionOutcome | None:
    """Return the outcome if the agent was stopped before its report."""
    last = end.agent[-1] if end.agent else None
    call = last.tool_calls[-1] if last and last.tool_calls else None
    if (
        last is None
        or call is None
        or (
            is_report(last)
            and not (
                call.action is Action.PLAN
                and not ticks(call)
                and "[ ] " not in call.input
                and not call.made
            )
        )
    ):
        return None
    if call.outcome == "rejected":
        return SessionOutcome(Ending.STOPPED, "the owner declined the last call")
    if call.outcome is None:
        waits = call.name in FORMS
        return SessionOutcome(
            Ending.STOPPED, "the agent waits for an answer" if waits else CUT_OFF[0]
        )
    is_ticked = ticks(call) and "[ ] " not in call.input
    if (
        (is_ticked or call.name in ("attempt_completion", "finish", "task_complete"))
        and is_own(last)
        and not announces(last.text)
    ):
        return _outcome_by_text(end, last)
    return SessionOutcome(Ending.STOPPED, CUT_OFF[1])


def _outcome_by_report(end: End) -> SessionOutcome | None:
    """Return the outcome according to the agent's last words.

    Quoted external text cannot prove that the work is done.
    """
    if end.report:
        return _outcome_by_text(end, end.report)
    if not end.agent:
        return None
    last = end.agent[-1]
    if announces(last.text):
        return SessionOutcome(Ending.UNKNOWN, "it ends with an announcement of the agent")
    if not _objection(end, last, speaks_against(last.text)):
        if pass_at_the_end(end.work):
            return SessionOutcome(Ending.DONE, "its checks pass at the end")
        if _has_committed(end):
            return SessionOutcome(Ending.DONE, "the work was committed")
    return SessionOutcome(Ending.UNKNOWN, "its last message uses external text")


def _has_committed(end: End) -> bool:
    return any(
        name.startswith("commit ")
        for turn in end.agent
        for call in turn.tool_calls
        for name in call.made
    )


def _outcome_by_text(end: End, report: Turn) -> SessionOutcome:
    text = report.text
    done, gave_up, has_failing_check = says_done(text), giving_up(text), failing(end.work)
    if gave_up and (has_failing_check or not done):
        return _with_agent_words(
            Ending.FAILED, "the agent says that it did not work", report, gave_up
        )
    if has_failing_check and not done and any(map(is_change, calls(end.work, 0, len(end.work)))):
        return _with_agent_words(Ending.FAILED, _CHECK_FAILED, report, first_sentence(text))
    if question := asks_last(text):
        return _with_agent_words(Ending.STOPPED, "the agent waits for an answer", report, question)
    if objection := _objection(
        end, report, says_undone(text) if _has_committed(end) else speaks_against(text)
    ):
        return objection
    passes = pass_at_the_end(end.work)
    if done:
        reason = "the agent says that it is done"
        return _with_agent_words(
            Ending.DONE,
            f"{reason}, and its checks pass" if passes else reason,
            report,
            first_sentence(text),
        )
    if passes:
        return _with_agent_words(
            Ending.DONE, "its checks pass at the end", report, first_sentence(text)
        )
    if end.has_acted and states_work(text):
        return _with_agent_words(
            Ending.DONE, "the agent reported what it changed", report, first_sentence(text)
        )
    if not end.has_acted and not end.asks_for_work:
        return _with_agent_words(Ending.DONE, "the agent answered", report, first_sentence(text))
    return _with_agent_words(
        Ending.UNKNOWN, "there is no evidence that it was done", report, first_sentence(text)
    )


def _objection(end: End, report: Turn, denial: str) -> SessionOutcome | None:
    """Return an outcome if something suggests that the work is not done, such as a failed check."""
    if failing(end.work):
        return _with_agent_words(Ending.UNKNOWN, _CHECK_FAILED, report, denial)
    if find_unmended(end.turns[end.begin :]):
        return _with_agent_words(
            Ending.UNKNOWN, "a command failed and did not work later", report, denial
        )
    if open_todos(end.turns) or find_unticked(report.text):
        return _with_agent_words(
            Ending.UNKNOWN, "the agent's todo list has open items", report, denial
        )
    if denial:
        return _with_agent_words(
            Ending.UNKNOWN,
            "the agent's last message says that something failed or is left",
            report,
            denial,
        )
    return None


def _with_owner_words(ending: Ending, reason: str, end: End, words: str) -> SessionOutcome:
    turn = end.turns[end.owner.index].id if end.owner else None
    return SessionOutcome(ending, reason, shorten(words, _QUOTE_CHARACTERS), Speaker.OWNER, turn)


def _with_agent_words(ending: Ending, reason: str, report: Turn, words: str) -> SessionOutcome:
    if not is_own(report):
        return SessionOutcome(ending, reason)
    return SessionOutcome(
        ending, reason, shorten(words, _QUOTE_CHARACTERS), Speaker.AGENT, report.id
    )


# -- Open ends ----------------------------------------------------------------
# Unanswered requests and questions, open todos and next steps, and failing checks.


MOST_OF_A_KIND = 6
_OPEN_END_CHARACTERS = 240
_MIN_STEP_CHARACTERS = 12
_DONE_OVERLAP = 0.6
_EXIT = re.compile(r"exit -?\d+")


def open_ends(
    turns: Sequence[Turn], spoken: Sequence[Utterance], ended: SessionOutcome
) -> list[OpenEnd]:
    """Return the tasks and questions that a session left open, grouped by kind."""
    end = End(turns, spoken)
    items = [
        *_request(end, ended),
        *_questions(end, ended),
        *_failing(end),
        *_todos(turns),
        *_next_steps(end),
    ]
    kept: dict[str, OpenEnd] = {}
    for item in items:
        text = normalise(item.text)
        if sum(other.kind is item.kind for other in kept.values()) < MOST_OF_A_KIND:
            kept.setdefault(text, item)
    return list(kept.values())


def _request(end: End, ended: SessionOutcome) -> Iterator[OpenEnd]:
    is_open = not end.agent and ended.ending is not Ending.DONE and ended.reason != ENDED
    if not (end.owner and (is_open or ended.reason in CUT_OFF)):
        return
    last = next(
        (utterance for utterance in reversed(end.spoken) if asks(end.turns, utterance)), end.owner
    )
    if is_telling(last.text):
        turn = end.turns[last.index]
        yield OpenEnd(
            Loose.REQUEST,
            shorten(words_of(turn, last), _OPEN_END_CHARACTERS),
            Speaker.OWNER,
            turn.id,
        )


def _questions(end: End, ended: SessionOutcome) -> Iterator[OpenEnd]:
    if end.report and ended.speaker is not Speaker.OWNER:
        for text in questions(end.report.text):
            yield OpenEnd(
                Loose.QUESTION, shorten(text, _OPEN_END_CHARACTERS), Speaker.AGENT, end.report.id
            )


def _failing(end: End) -> Iterator[OpenEnd]:
    for turn, call in [*failing(end.turns), *find_unmended(end.turns[end.begin :])]:
        yield OpenEnd(
            Loose.FAILING, f"{describe_call(call)} → {_result(call)}", Speaker.AGENT, turn.id
        )


def _result(call: ToolCall) -> str:
    """Return a failed call's exit code or "error", without the tool's output."""
    return call.outcome if call.outcome and _EXIT.fullmatch(call.outcome) else "error"


def _todos(turns: Sequence[Turn]) -> Iterator[OpenEnd]:
    for turn, text in open_todos(turns):
        yield OpenEnd(Loose.TODO, shorten(text, _OPEN_END_CHARACTERS), Speaker.AGENT, turn.id)


def _next_steps(end: End) -> Iterator[OpenEnd]:
    """Yield the next steps named in the last report, except steps done after the report."""
    report = end.last_report
    if report is None:
        return
    at = next(number for number, turn in enumerate(end.turns) if turn is report)
    since = [_done_words(turn) for turn in end.turns[at + 1 :]]
    boxes = find_unticked(report.text)
    for text in [*boxes, *_iter_left(report.text)]:
        words = content_words(text, language_of(text))
        if words and not any(len(words & done) >= _DONE_OVERLAP * len(words) for done in since):
            yield OpenEnd(
                Loose.TODO if text in boxes else Loose.NEXT_STEP,
                shorten(text, _OPEN_END_CHARACTERS),
                Speaker.AGENT,
                report.id,
            )


def _done_words(turn: Turn) -> frozenset[str]:
    text = " ".join([turn.text, *(call.input for call in turn.tool_calls)])
    return content_words(text, language_of(turn.text))


def _iter_left(text: str) -> Iterator[str]:
    for passage in passages(text):
        is_ahead = bool(passage.heading) and bool(
            language_of(passage.heading).summary.ahead.match(passage.heading)
        )
        for statement in passage.statements:
            if _is_left(statement, is_ahead=is_ahead):
                yield statement.text


def _is_left(statement: Statement, *, is_ahead: bool) -> bool:
    cues = language_of(statement.text).summary
    if (
        statement.text.endswith((":", "：", "?", "？"))
        or cues.nothing.match(statement.text)
        or cues.offer.search(statement.text)
    ):
        return False
    leads = statement.lead is not None and bool(
        language_of(statement.lead).summary.ahead.match(statement.lead)
    )
    least = (
        _MIN_STEP_CHARACTERS if language_of(statement.text).joiner else _MIN_STEP_CHARACTERS // 3
    )
    return len(statement.text) >= least and (
        is_ahead or leads or bool(cues.left.search(statement.text))
    )


# -- Whole summary ------------------------------------------------------------


TITLE_CHARACTERS = 120


def summarise(session: Session, turns: Sequence[Turn]) -> Summary:
    """Return a session's summary, which is always the same for the same input."""
    turns = sort_by_time([shorten_for_regex(turn) for turn in turns])
    if not turns:
        return Summary()
    spoken = utterances(turns)
    calls = [call for _, call in summary.all_calls(turns)]
    result = outcome(turns, spoken)
    return Summary(
        topics=tuple(topics(turns, spoken)),
        outcome=result,
        open_ends=tuple(open_ends(turns, spoken, result)),
        files=summary.files(calls, session.cwd),
        commits=summary.commits(turns),
        pull_requests=summary.pull_requests(turns),
        errors=summary.errors(calls),
    )


def opening(turns: Sequence[Turn]) -> str | None:
    """Return the first request, shortened to a title."""
    ordered = sort_by_time([shorten_for_regex(turn) for turn in turns])
    request = first_request(ordered, utterances(ordered))
    return shorten(request, TITLE_CHARACTERS) if request else None
