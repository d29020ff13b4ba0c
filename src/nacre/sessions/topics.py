"""Session summaries: topics, outcome, unfinished work and title."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

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
_PLAN = re.compile(r"^(?:implementation )?plan\b[\s:]*", re.IGNORECASE)
_ERROR_PLACE = re.compile(r"[\w./\\-]+\.\w{1,4}:\d+")
_NOT_CONVERSATION = Flag.META | Flag.SUMMARY


@dataclass(slots=True)
class _Request:
    text: str
    turn: Turn
    is_new: bool = True
    work: int = 0


def topics(turns: Sequence[Turn], spoken: Sequence[Utterance]) -> list[Topic]:
    """Return a session's first request, followed by those that took the most work."""
    requests = [item for item in _merge(_requests(turns, spoken)) if not is_idle(item.text)]
    requests = [*requests[:1], *sorted(requests[1:], key=lambda item: -item.work)]
    return [
        Topic(item.text, item.turn.id, item.turn.speaker, item.work) for item in requests[:MOST]
    ]


def is_idle(text: str) -> bool:
    """Return True for a greeting, thanks or a simple yes."""
    return len(text) <= _SHORT_CHARACTERS and bool(language_of(text).summary.idle.match(text))


def asks_for_work(sentence: str) -> bool:
    """Return True if a sentence asks for more than reading and answering."""
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
        _Request(words_of(turns[item.index], item), turns[item.index], is_new_request(turns, item))
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
    for speaker in (Speaker.OWNER, Speaker.AGENT):
        for at, turn in enumerate(turns[:2]):
            is_trusted = turn.speaker is speaker and turn.trust is Trust.TRUSTED
            if is_trusted and is_content(turn) and not turn.tool_calls:
                return [_Request(shorten(turn.text, LONGEST), turn)], [at]
    return [], []


def words_of(turn: Turn, utterance: Utterance) -> str:
    """Return a message without pasted text.

    Bare slash commands and short typed messages stay unchanged.
    """
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
        text = _PLAN.sub("", heading[1].strip(" #*")) or text if heading else text
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


def is_new_request(turns: Sequence[Turn], utterance: Utterance) -> bool:
    """Return True if a message is a new request rather than a follow-up or an answer."""
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
    """Return True if a message is long enough to be a request, not counting paths and URLs."""
    if is_idle(text):
        return False
    if not language_of(text).joiner or is_unspaced(text):
        return sum(map(str.isalnum, text)) >= _MIN_CHARACTERS
    return (
        sum("/" not in word and any(map(str.isalpha, word)) for word in text.split()) >= _MIN_WORDS
    )


def _goes_on(utterance: Utterance, language: Language) -> bool:
    text = utterance.text.strip()
    cues = language.summary
    if cues.onward.match(text) or cues.stop.match(text) or is_objection(utterance, language):
        return True
    if language.accepted.finished.match(text):
        return True
    words = _count_words(text, language)
    return (words <= _MAX_ANSWER_WORDS and bool(language.answers.yes.match(text))) or (
        words <= _MAX_DEPENDENT_WORDS and leans(text, language)
    )


def _was_asked(turns: Sequence[Turn], utterance: Utterance) -> bool:
    places = range(utterance.index - 1, -1, -1)
    before = next((turns[at] for at in places if turns[at].speaker is Speaker.AGENT), None)
    if before is None:
        return False
    if before.tool_calls and before.tool_calls[-1].name in FORMS:
        return True
    words = _count_words(utterance.text, language_of(utterance.text))
    return words <= _MAX_ANSWER_WORDS and before.text.rstrip(" *_)`").endswith(("?", "？"))


def _count_words(text: str, language: Language) -> int:
    return len(text.split()) if language.joiner else len(text) // 2


def _merge(requests: Sequence[_Request]) -> list[_Request]:
    merged: list[_Request] = []
    word_sets: list[frozenset[str]] = []
    for request in requests:
        words = content_words(request.text)
        alike = (
            at
            for at, earlier_words in enumerate(word_sets)
            if words
            and len(words & earlier_words) >= _SAME_REQUEST_OVERLAP * len(words | earlier_words)
        )
        same = next(alike, None) if request.is_new else len(merged) - 1
        if same is None or same < 0:
            merged.append(request)
            word_sets.append(words)
        else:
            merged[same].work += request.work
    if len(merged) > 1 and not merged[0].is_new:
        merged[1].work += merged.pop(0).work
    return merged


# -- Outcome ------------------------------------------------------------------
# The owner's last message, the agent's last report and the last checks decide the outcome.


ENDED = "the owner ended it"
CUT_OFF = (
    "it ends in the middle of a call",
    "it ends in the middle of the work",
    "the owner stopped the agent",
)
"""Reasons why a session was cut off. Other code compares the reason of an outcome with them."""

_CHECK_FAILED = "a check failed and did not pass again"
_OPEN_TODOS = "the agent's todo list has open items"
_READING = frozenset({Action.READ, Action.SEARCH, Action.FETCH, Action.PLAN})
_QUOTE_CHARACTERS = 240
_NOISE = Flag.META | Flag.SUMMARY | Flag.SIDECHAIN


@dataclass(frozen=True)
class End:
    """The end of a session, from the owner's last message on."""

    turns: Sequence[Turn]
    spoken: Sequence[Utterance]

    @cached_property
    def owner(self) -> Utterance | None:
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
        return [
            turn
            for turn in self.turns[self.begin :]
            if turn.speaker is Speaker.AGENT and not turn.flags & _NOISE
        ]

    @cached_property
    def is_interrupted(self) -> bool:
        """True if the owner interrupted the agent's last action.

        Declining a call is not an interruption.
        """
        last = next(
            (
                turn
                for turn in reversed(self.turns[self.begin :])
                if not turn.flags & Flag.SIDECHAIN
                and (turn.speaker is Speaker.AGENT or turn.flags & Flag.INTERRUPTED)
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
        """The agent's last turn, if it is a report in the agent's own words."""
        last = self.agent[-1] if self.agent else None
        return last if last and is_own(last) and is_report(last) else None

    @cached_property
    def request(self) -> Utterance | None:
        """The owner's last new request, or else the owner's last message."""
        return next(
            (
                utterance
                for utterance in reversed(self.spoken)
                if is_new_request(self.turns, utterance)
            ),
            self.owner,
        )

    @cached_property
    def work(self) -> Sequence[Turn]:
        return self.turns[self.request.index + 1 if self.request else self.begin :]

    @cached_property
    def has_acted(self) -> bool:
        """True if a call after the last request did more than read or check."""
        return any(
            call.outcome == "ok"
            and call.action not in _READING
            and does(call)
            and not is_check(call)
            for call in calls(self.work, 0, len(self.work))
        )

    @cached_property
    def asks_for_work(self) -> bool:
        """True if the last request asks for work and not only for information."""
        statements = self.request.statements if self.request else split(self.turns[0].text)
        return not any(is_telling(statement.text) for statement in statements) or any(
            asks_for_work(statement.text) for statement in statements
        )


def outcome(turns: Sequence[Turn], spoken: Sequence[Utterance]) -> SessionOutcome:
    """Return how a session ended.

    The ending is unknown without evidence. It is done only if nothing contradicts the evidence.
    """
    end = End(turns, spoken)
    is_empty = all(
        is_idle(item.text.strip()) or is_bare_command(turns[item.index], item) for item in spoken
    )
    if spoken and is_empty and not end.has_acted:
        return SessionOutcome(Ending.UNKNOWN, "there was no written request")
    result = (
        _by_owner(end)
        or (SessionOutcome(Ending.STOPPED, CUT_OFF[2]) if end.is_interrupted else None)
        or _in_the_middle(end)
        or _outcome_by_report(end)
    )
    return result or SessionOutcome(Ending.UNKNOWN, "there is no evidence")


def _by_owner(end: End) -> SessionOutcome | None:
    if end.owner is None:
        return None
    turn, text = end.turns[end.owner.index], end.owner.text
    language = language_of(text)
    worked = bool(calls(end.turns, end.begin, len(end.turns)))
    if len(text) <= _SHORT_CHARACTERS and language.summary.stop.match(text) and not worked:
        return _quoting(Ending.STOPPED, ENDED, turn, text)
    if _is_content(end.owner, language) and not worked:
        before = next((turn for turn in reversed(end.turns[: end.begin - 1]) if is_own(turn)), None)
        if before is None:
            return None
        if asks_last(before.text) or announces(before.text):
            unanswered = "the last request has no answer"
            return None if end.agent else _quoting(Ending.STOPPED, unanswered, turn, text)
        objection = _objection(end, before, says_undone(before.text))
        return objection or _quoting(Ending.DONE, "the owner is satisfied", turn, text)
    if end.agent or end.is_interrupted:
        return None
    if (
        len(end.spoken) > 1
        and is_objection(end.owner, language)
        and not language.summary.onward.match(text)
    ):
        return _quoting(Ending.FAILED, "the owner's last message objects", turn, text)
    return _quoting(Ending.STOPPED, "the last request has no answer", turn, text)


def _is_content(owner: Utterance, language: Language) -> bool:
    text = owner.text.strip()
    if text.endswith(("?", "？")) or is_objection(owner, language):
        return False
    if len(text) <= _SHORT_CHARACTERS and (is_idle(text) or acceptance(owner, language) == []):
        return not language.answers.no.match(text)
    return len(text) <= _SHORT_CHARACTERS and bool(language.accepted.finished.match(text))


def _in_the_middle(end: End) -> SessionOutcome | None:
    last = end.agent[-1] if end.agent else None
    if last is None or not last.tool_calls:
        return None
    call = last.tool_calls[-1]
    has_open_items = "[ ] " in call.input
    is_plan = (
        call.action is Action.PLAN and not ticks(call) and not has_open_items and not call.made
    )
    if is_report(last) and not is_plan:
        return None
    if call.outcome == "rejected":
        return SessionOutcome(Ending.STOPPED, "the owner declined the last call")
    if call.outcome is None:
        is_form = call.name in FORMS
        return SessionOutcome(
            Ending.STOPPED, "the agent waits for an answer" if is_form else CUT_OFF[0]
        )
    if (
        (
            (ticks(call) and not has_open_items)
            or call.name in ("attempt_completion", "finish", "task_complete")
        )
        and is_own(last)
        and not announces(last.text)
    ):
        return _outcome_by_text(end, last)
    return SessionOutcome(Ending.STOPPED, CUT_OFF[1])


def _outcome_by_report(end: End) -> SessionOutcome | None:
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
        if summary.commits(end.agent):
            return SessionOutcome(Ending.DONE, "the work was committed")
    return SessionOutcome(Ending.UNKNOWN, "its last message uses external text")


def _outcome_by_text(end: End, report: Turn) -> SessionOutcome:
    text = report.text
    done, gave_up, has_failing_check = says_done(text), giving_up(text), failing(end.work)

    quote = summary.opening(text)
    if gave_up and (has_failing_check or not done):
        return _quoting(Ending.FAILED, "the agent says that it did not work", report, gave_up)
    if has_failing_check and not done and any(map(is_change, calls(end.work, 0, len(end.work)))):
        return _quoting(Ending.FAILED, _CHECK_FAILED, report, quote)
    if question := asks_last(text):
        return _quoting(Ending.STOPPED, "the agent waits for an answer", report, question)
    if objection := _objection(
        end, report, says_undone(text) if summary.commits(end.agent) else speaks_against(text)
    ):
        return objection
    reason = _evidence(end, text, done=done)
    if reason:
        return _quoting(Ending.DONE, reason, report, quote)
    return _quoting(Ending.UNKNOWN, "there is no evidence that it was done", report, quote)


def _evidence(end: End, text: str, *, done: bool) -> str:
    passes = pass_at_the_end(end.work)
    if done:
        return f"the agent says that it is done{', and its checks pass' if passes else ''}"
    if passes:
        return "its checks pass at the end"
    if end.has_acted:
        return "the agent reported what it changed" if states_work(text) else ""
    return "" if end.asks_for_work else "the agent answered"


def _objection(end: End, report: Turn, denial: str) -> SessionOutcome | None:
    reasons = (
        (failing(end.work), _CHECK_FAILED),
        (find_unmended(end.turns[end.begin :]), "a command failed and did not work later"),
        (open_todos(end.turns), _OPEN_TODOS),
        (find_unticked(report.text), _OPEN_TODOS),
        (denial, "the agent's last message says that something failed or is left"),
    )
    reason = next((reason for evidence, reason in reasons if evidence), None)
    return _quoting(Ending.UNKNOWN, reason, report, denial) if reason else None


def _quoting(ending: Ending, reason: str, turn: Turn, words: str) -> SessionOutcome:
    # The turn may repeat external text, which must not be quoted.
    if turn.speaker is Speaker.AGENT and not is_own(turn):
        return SessionOutcome(ending, reason)
    return SessionOutcome(ending, reason, shorten(words, _QUOTE_CHARACTERS), turn.speaker, turn.id)


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
    """Return the requests, questions and tasks that a session left open."""
    selected: dict[str, OpenEnd] = {}
    for kind, text, turn in _open_items(End(turns, spoken), ended):
        item = OpenEnd(kind, shorten(text, _OPEN_END_CHARACTERS), turn.speaker, turn.id)
        if sum(other.kind is kind for other in selected.values()) < MOST_OF_A_KIND:
            selected.setdefault(normalise(item.text), item)
    return list(selected.values())


def _open_items(end: End, ended: SessionOutcome) -> Iterator[tuple[Loose, str, Turn]]:
    is_open = not end.agent and ended.ending is not Ending.DONE and ended.reason != ENDED
    request = end.request
    if request and (is_open or ended.reason in CUT_OFF) and is_telling(request.text):
        turn = end.turns[request.index]
        yield Loose.REQUEST, words_of(turn, request), turn
    if end.report and ended.speaker is not Speaker.OWNER:
        for text in questions(end.report.text):
            yield Loose.QUESTION, text, end.report
    for turn, call in [*failing(end.turns), *find_unmended(end.turns[end.begin :])]:
        # Outcomes can contain the tool's output.
        result = call.outcome if _EXIT.fullmatch(call.outcome or "") else "error"
        yield Loose.FAILING, f"{describe_call(call)} → {result}", turn
    for turn, text in open_todos(end.turns):
        yield Loose.TODO, text, turn
    yield from _next_steps(end.turns)


def _next_steps(turns: Sequence[Turn]) -> Iterator[tuple[Loose, str, Turn]]:
    at = next((at for at in reversed(range(len(turns))) if is_own(turns[at])), None)
    if at is None:
        return
    report = turns[at]
    done_words = [_done_words(turn) for turn in turns[at + 1 :]]
    boxes = find_unticked(report.text)
    for text in [*boxes, *_iter_remaining(report.text)]:
        words = content_words(text)
        if words and not any(
            len(words & done) >= _DONE_OVERLAP * len(words) for done in done_words
        ):
            yield Loose.TODO if text in boxes else Loose.NEXT_STEP, text, report


def _done_words(turn: Turn) -> frozenset[str]:
    text = " ".join([turn.text, *(call.input for call in turn.tool_calls)])
    return content_words(text, language_of(turn.text))


def _iter_remaining(text: str) -> Iterator[str]:
    for passage in passages(text):
        is_ahead = bool(passage.heading) and bool(
            language_of(passage.heading).summary.ahead.match(passage.heading)
        )
        for statement in passage.statements:
            if _is_remaining(statement, is_ahead=is_ahead):
                yield statement.text


def _is_remaining(statement: Statement, *, is_ahead: bool) -> bool:
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
        is_ahead or leads or bool(cues.remaining.search(statement.text))
    )


# -- Whole summary ------------------------------------------------------------


TITLE_CHARACTERS = 120
_MIN_SUBJECT_WORDS = 2
_MAIN_BRANCHES = ("main", "master", "develop", "dev", "HEAD")
_ACTIVITY = frozenset(
    """address branch bug bugs change changed changes check code comment comments commit commits continue error errors
    fail failing failures feedback file fix get go have help implement issue issues last left let lint local look need
    open plan pr problem problems pull read respond review run start test tests things try use want way work
    working""".split()
)
"""Words that name an activity rather than a subject."""


def summarise(session: Session, turns: Sequence[Turn]) -> Summary:
    """Summarise a session from its turns."""
    turns = sort_by_time([shorten_for_regex(turn) for turn in turns])
    if not turns:
        return Summary()
    spoken = utterances(turns)
    calls = [call for turn in turns for call in turn.tool_calls]
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


def opening(turns: Sequence[Turn], branch: str | None = None) -> str | None:
    """Derive a title from the first clear request, the branch, or the first message."""
    turns = sort_by_time([shorten_for_regex(turn) for turn in turns])
    requests = _requests(turns, utterances(turns))
    own = [request for request in requests if request.is_new] or requests
    texts = [request.text for request in own]
    if not texts:
        spoken = (turn.text for turn in turns if turn.text and not turn.flags & _NOT_CONVERSATION)
        texts = [one_line(text) for text in islice(spoken, 1)]
    elif not _has_subject(texts[0]) and branch and branch not in _MAIN_BRANCHES:
        return shorten(f"{branch}: {texts[0]}", TITLE_CHARACTERS)
    text = next(filter(_has_subject, texts), next(iter(texts), None))
    return shorten(text, TITLE_CHARACTERS) if text else None


def _has_subject(text: str) -> bool:
    language = language_of(text)
    return len(content_words(text, language, _ACTIVITY)) >= _MIN_SUBJECT_WORDS
