"""Deterministic checks of a model's proposals: evidence, speaker, and words from external text.

A model verifies that the evidence supports a proposal (:mod:`nacre.learn.writer`). Malformed proposals are dropped, and
untrusted proposals become candidates.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from itertools import islice
from threading import Lock
from typing import TypeVar

import msgspec

from nacre.base.frozen import frozen
from nacre.base.text import normalise, one_line, words
from nacre.errors import (
    BudgetSpentError,
    ModelRefusedError,
    ModelUnavailableError,
    NacreError,
    UnreadableModelError,
    UnusableAnswerError,
)
from nacre.learn.explicit import size_refusal
from nacre.learn.pasted import reads_as_rule, without_pasted
from nacre.learn.prompts import CHANGES, MEMORIES, Seen, State, Told, tidy, tidy_changes
from nacre.learn.reading import AGENT_CAP, content_words, is_asking
from nacre.learn.sentences import Language, forms, is_accepted_plan, language_of, split, utterances
from nacre.llm import calibration
from nacre.llm.failures import ask
from nacre.memories import judge as memories_judge
from nacre.memories.statements import (
    binds,
    firm_words,
    has_word,
    leaves_out,
    negations,
    new_word,
    read,
)
from nacre.protocols import LanguageModel
from nacre.readers.trust import brings_outside, reached_out
from nacre.values.memory import Candidate, Confidence, Confirmation, Expiry, Kind, Memory, Why
from nacre.values.models import Completion, Prompt, Tokens
from nacre.values.session import Flag, Speaker, ToolCall, Trust, Turn

LEAST_IMPORTANCE = 5

MOST_FOREIGN = 0.4
"""Maximum share of words in a statement that occur only in external text."""

LEAST_OWNED = 0.3
"""Minimum share of the owner's words in a statement that exceeds ``MOST_FOREIGN``."""

FEWEST_OWNED = 2
"""Minimum number of the owner's words in a statement after external text was read. One shared word proves nothing."""

_STEERING = frozenset({Kind.DECISION, Kind.PREFERENCE, Kind.TODO})
"""Kinds that steer agents and that only the owner may state."""

MAX_TAGS = 4

_RUN_WORDS = 5
_WORD = re.compile(r"\w+")
_MAX_SUBJECT_CHARACTERS = 120
_UNSPOKEN = Flag.META | Flag.SUMMARY | Flag.SIDECHAIN
_ELLIPSIS = re.compile(r"\s*(?:\.{3,}|…)\s*")
_KEY = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+){1,4}")
_TAG = re.compile(r"[\w.+#-]{2,30}")


@frozen
class Dropped:
    """A rejected proposal, with the reason."""

    reason: str


class Checks:
    """The evidence of one session. ``begin``: index of the first turn not yet extracted."""

    def __init__(self, turns: Sequence[Turn], *, begin: int = 0) -> None:
        self.turns = turns
        self.begin = begin
        self._typed: dict[int, str] = {}
        self._mixed: set[int] = set()
        for utterance in utterances(turns):
            text = " ".join(statement.text for statement in utterance.statements)
            places = (utterance.index, *utterance.copies)
            self._mixed |= (
                set(places) if any(statement.mixed for statement in utterance.statements) else set()
            )
            self._typed |= {at: f"{self._typed.get(at, '')} {text}".strip() for at in places}
        agent_turns = {at for at in range(len(turns)) if _is_trusted_agents(turns, at)}
        own_texts = [
            *self._typed.values(),
            *(turns[at].text for at in sorted(agent_turns)),
            *_calls(turns),
        ]
        self._owned = _words_of(self._typed.values())
        external_turns = [
            at
            for at in range(len(turns))
            if at not in agent_turns
            # Models are not shown a host's summary, so that no statement is based on the summary.
            and (not turns[at].flags & Flag.SUMMARY or is_accepted_plan(turns, at))
        ]
        self._foreign = _words_of(turns[at].text for at in external_turns) - _words_of(own_texts)
        external_texts = [
            *map(_without_forms, (turns[at] for at in external_turns)),
            *_outside_errors(turns),
        ]
        typed = _runs_of(self._typed.values())
        self._outside, self._put_out = (
            _runs_of(external_texts) - typed,
            _runs_of([_output(call) for turn in turns for call in turn.tool_calls if call.failed])
            - typed,
        )

    def judge(self, proposal: Told, shown: Set[int]) -> Candidate | Dropped:
        """Convert a proposal to a candidate. Hold untrusted candidates. Only ``shown`` turns can be evidence."""
        content, subject = (
            one_line(proposal.content),
            one_line(proposal.subject)[:_MAX_SUBJECT_CHARACTERS],
        )
        evidence = tuple(sorted(set(proposal.evidence)))
        reason = (
            "unimportant"
            if proposal.importance < LEAST_IMPORTANCE
            else size_refusal(content) or self._evidence_refusal(evidence, shown)
        )
        if reason:
            return Dropped(reason)
        is_nodded = self._is_nodded(content, evidence)
        is_owner = self._is_owners(proposal, evidence, is_nodded=is_nodded)
        why_held, detail = self._hold_reason(proposal, content, evidence, is_nodded=is_nodded)
        importance = (
            min(proposal.importance, 10) if is_owner else min(proposal.importance, AGENT_CAP)
        )
        words = content_words(content, language_of(content))
        near = {
            index
            for at in evidence
            for index in range(at - 2, at + 3)
            if 0 <= index < len(self.turns)
        }
        near_words = _words_of(self.turns[at].text for at in near)
        return Candidate(
            kind=Kind(proposal.kind),
            subject=subject or content[:_MAX_SUBJECT_CHARACTERS],
            content=content,
            turns=tuple(self.turns[at].id for at in evidence),
            importance=importance,
            expiry=Expiry(proposal.expiry),
            tags=_tags(proposal.tags),
            speaker=Speaker.OWNER if is_owner else Speaker.AGENT,
            trust=Trust.UNTRUSTED if why_held is Why.UNTRUSTED else Trust.TRUSTED,
            canonical_key=_key(proposal.canonical_key),
            confidence=Confidence.EXTRACTED,
            confidence_score=round(1 - (len(words - near_words) / len(words) if words else 1.0), 2),
            held=why_held,
            detail=detail,
            nodded=is_owner and (is_nodded or self._ends_unconfirmed(content, evidence)),
            mixed=is_owner and self.is_mixed(evidence),
        )

    def adds_from_outside(self, content: str, known_text: str) -> bool:
        """Return True if a statement, or one clause of the statement, adds external words to a known text."""
        if (_runs_of([content]) - _runs_of([known_text])) & self._outside:
            return True
        words = content_words(content, language_of(content)) - content_words(
            known_text, language_of(known_text)
        )
        return self._is_foreign(words)

    def is_typed(self, at: int) -> bool:
        """Return True if the owner typed something in a turn."""
        return at in self._typed

    def is_mixed(self, evidence: Iterable[int]) -> bool:
        """Return True if an owner's message in the evidence might contain a paste."""
        return not self._mixed.isdisjoint(evidence)

    def typed_text(self, at: int) -> str:
        """Return the text that the owner typed in a turn."""
        return self._typed.get(at, "")

    def has_read_outside(self, evidence: Sequence[int]) -> bool:
        """Return True if external text was read before the last evidence. A mere "ok" then confirms nothing."""
        return reached_out(self.turns, evidence[-1])

    def times(self, evidence: Sequence[int]) -> list[datetime]:
        """Return the recorded times of turns."""
        return [time for at in evidence if (time := self.turns[at].time)]

    def shows(self, evidence: Sequence[int], quote: str) -> bool:
        """Return True if all evidence is trusted and not entirely old, and a turn contains the quote outside pastes."""
        if not evidence or evidence[0] < 0 or evidence[-1] < self.begin:
            return False
        is_trusted = all(self.turns[at].trust is Trust.TRUSTED for at in evidence)
        return is_trusted and any(self._contains_quote(at, quote, is_typed=True) for at in evidence)

    def add_quoted_turn(
        self, evidence: Sequence[int], quote: str, shown: Iterable[int]
    ) -> list[int]:
        """Add the first shown turn that contains the quote to the evidence, unless the evidence contains the quote."""
        is_cited = any(self._contains_quote(at, quote, is_typed=True) for at in evidence if at >= 0)
        matching = (
            at
            for at in sorted(shown)
            if not is_cited and self._contains_quote(at, quote, is_typed=True)
        )
        return sorted({*evidence, *islice(matching, 1)})

    def _is_owners(self, proposal: Told, evidence: Sequence[int], *, is_nodded: bool) -> bool:
        """Return True if the owner vouches for a statement, because the owner typed the quote or replied to it.

        For kinds that steer agents, the owner must have typed some evidence. Statements about the agent's own work and
        statements that the owner only confirmed are the agent's.
        """
        typed = {at for at in evidence if at in self._typed}
        quoted = [at for at in evidence if self._contains_quote(at, proposal.quote)]
        if proposal.kind in _STEERING:
            return bool(typed)
        if is_nodded:
            return False
        if not quoted:
            return bool(typed)
        return any(at in typed for at in quoted) or any(at > quoted[0] for at in typed)

    def _evidence_refusal(self, evidence: Sequence[int], shown: Set[int]) -> str | None:
        if not evidence or not set(evidence) <= shown:
            return "no such turn"
        return None if evidence[-1] >= self.begin else "read before"

    def _hold_reason(
        self, proposal: Told, content: str, evidence: Sequence[int], *, is_nodded: bool
    ) -> tuple[Why | None, str]:
        """Return the reason to hold a proposal and a detail, or ``None`` and an empty string."""
        if self._is_copied(content, self._outside) or self._is_foreign(
            content_words(content, language_of(content))
        ):
            return Why.UNTRUSTED, "its words are those of text from outside"
        is_rule = Kind(proposal.kind) is Kind.PREFERENCE or reads_as_rule(content)
        if is_rule and self._is_copied(content, self._put_out):
            return Why.UNTRUSTED, "its words are those of a failing call"
        if proposal.kind in _STEERING and not any(at in self._typed for at in evidence):
            return Why.UNPROVEN, "the owner neither said nor accepted it"
        if not any(self._contains_quote(at, proposal.quote) for at in evidence):
            return Why.UNPROVEN, "its quote is not in its evidence"
        if is_nodded and is_rule:
            return (
                Why.UNTRUSTED,
                "hardly a word of it is the owner's, after text from outside was read",
            )
        return None, ""

    def _is_nodded(self, content: str, evidence: Sequence[int]) -> bool:
        """Return True if external text was read and the owner typed almost none of the statement's words.

        The owner's questions do not count. In a rule, one shared word is enough.
        """
        if not self.has_read_outside(evidence):
            return False
        texts = self._statements(evidence)
        words_in = (
            content_words if content_words(content, language_of(content)) else _words_of_any_script
        )
        own = words_in(content, language_of(content))
        shared = [own & words_in(text, language_of(text)) for text in texts]
        is_ruled = any(
            common and reads_as_rule(text) for text, common in zip(texts, shared, strict=True)
        )
        return not is_ruled and len(frozenset[str]().union(*shared)) < min(FEWEST_OWNED, len(own))

    def _ends_unconfirmed(self, content: str, evidence: Sequence[int]) -> bool:
        """Return True if external text was read, and a statement reports something as gone without confirmation.

        The owner's reports, orders and negations count as confirmation.
        """
        departures = find_gone(content) if self.has_read_outside(evidence) else []
        texts = self._statements(evidence)
        is_confirmed = any(
            find_gone(text) or binds(text, firm_words(text), content) or _removes(text, departures)
            for text in texts
        )
        return bool(departures) and not is_confirmed

    def _statements(self, evidence: Sequence[int]) -> list[str]:
        """Return the owner's sentences in the evidence, except questions."""
        return [
            sentence.text
            for at in evidence
            for sentence in split(self.typed_text(at))
            if not is_asking(sentence.text)
        ]

    def _is_copied(self, content: str, other_runs: Set[tuple[str, ...]]) -> bool:
        """Return True if at least half of the word sequences in a statement occur in ``other_runs``."""
        runs = _runs_of([content])
        return bool(runs) and 2 * len(runs & other_runs) >= len(runs)

    def _is_foreign(self, words: Set[str]) -> bool:
        """Return True if many words occur only in external text, and the owner typed few of the words."""
        foreign, owned = len(words & self._foreign), len(words & self._owned)
        return foreign > MOST_FOREIGN * len(words) and owned < LEAST_OWNED * len(words)

    def _contains_quote(self, at: int, quote: str, *, is_typed: bool = False) -> bool:
        text = self.turns[at].text
        if is_typed and self.turns[at].speaker is Speaker.OWNER:
            text = without_pasted(text)
        haystack = normalise(f"{text} {self._typed.get(at, '')}")
        parts = [normalise(part) for part in _ELLIPSIS.split(quote)]
        return any(parts) and all(part in haystack for part in parts)


def find_gone(text: str) -> list[frozenset[str]]:
    """Return the words for each thing that a text reports as gone."""
    return [departure.subject for departure in read(text).departures]


def _removes(text: str, things: Iterable[Collection[str]]) -> bool:
    """Return True if a sentence orders the removal of one of the things: "please delete the Redis cache"."""
    language = language_of(text)
    words = content_words(text, language)
    is_order = bool(language.reversal.removal.search(language.trim(text)))
    return is_order and any(not words.isdisjoint(thing) for thing in things)


def _words_of_any_script(text: str, _: Language) -> frozenset[str]:
    return frozenset(words(text))


def _is_trusted_agents(turns: Sequence[Turn], at: int) -> bool:
    """Return True if a turn is trusted and contains an agent's own words, or a plan that the owner accepted."""
    turn = turns[at]
    is_message = turn.speaker is Speaker.AGENT and not turn.flags & (_UNSPOKEN | Flag.INJECTED)
    return turn.trust is Trust.TRUSTED and (is_message or is_accepted_plan(turns, at))


def _calls(turns: Sequence[Turn]) -> list[str]:
    """Return the inputs of trusted calls, and the names and numbers in the results."""
    return [
        " ".join(
            [call.name, call.input, call.outcome or "", call.error or "", *call.paths, *call.made]
        )
        for turn in turns
        if turn.trust is Trust.TRUSTED
        for call in turn.tool_calls
    ]


def _outside_errors(turns: Sequence[Turn]) -> list[str]:
    """Return the output of failed calls that access external text. A model sees such output in the session."""
    return [
        _output(call)
        for turn in turns
        for call in turn.tool_calls
        if call.failed and brings_outside(call)
    ]


def _output(call: ToolCall) -> str:
    return f"{call.outcome or ''} {call.error or ''}"


def _without_forms(turn: Turn) -> str:
    """Return a turn's text without form questions, which are the agent's words."""
    text = turn.text
    for form in forms(text) if turn.speaker is Speaker.OWNER else ():
        text = text.replace(form.question, " ")
    return text


def _runs_of(texts: Iterable[str]) -> frozenset[tuple[str, ...]]:
    """Return all sequences of five words, or of five characters in unspaced text."""
    runs: set[tuple[str, ...]] = set()
    for text in texts:
        words = [
            part
            for word in _WORD.findall(text.lower())
            for part in (word if word > "\u2e7f" else [word])
        ]
        runs.update(zip(*(words[at:] for at in range(_RUN_WORDS)), strict=False))
    return frozenset(runs)


def _words_of(texts: Iterable[str]) -> frozenset[str]:
    return frozenset[str]().union(*(content_words(text, language_of(text)) for text in texts))


def _tags(tags: Iterable[str]) -> tuple[str, ...]:
    plain = (re.sub(r"\s+", "-", tag.strip().lower()) for tag in tags)
    return tuple(dict.fromkeys(tag for tag in plain if _TAG.fullmatch(tag)))[:MAX_TAGS]


def _key(text: str | None) -> str | None:
    key = (text or "").strip().lower()
    return key if _KEY.fullmatch(key) else None


# -- Known memories that a session outdates --------------------------------------------------------


_ENDED_BY_OWNER = frozenset({Kind.DECISION, Kind.PREFERENCE, Kind.RELATIONSHIP})
"""Kinds of the owner's memories that only the owner can revoke. Solved problems and completed todos need no owner."""


_MAX_CHANGED_CHARACTERS = 1_000
"""Maximum number of characters in an amended memory, which can consist of the valid parts and an outcome."""


@frozen
class Overtaken:
    """A known memory that a session outdates.

    ``clause``: the invalid part of the memory. ``quote``: the words that show the change. ``statement``: the claim to
    verify. ``shown``: the evidence. ``is_owners``: the owner typed the change. ``now``: the new text, empty if the
    whole memory no longer holds. ``is_free``: the change needs a review, because a rule gets unsupported words, the
    owner typed no word of the change after external text was read, or the message might contain a paste.
    """

    memory: Memory
    clause: str
    quote: str
    statement: Candidate
    shown: Confirmation
    is_owners: bool
    now: str = ""
    is_free: bool = False


def check_changes(
    seen: Sequence[Seen],
    memories: Sequence[Memory],
    session: str,
    checks: Checks,
    places: Mapping[int, int],
) -> list[Overtaken]:
    """Return a model's claims about outdated memories that pass the checks.

    The model must have seen the memory, and a later trusted turn must contain the quote. The owner must have typed some
    evidence if only the owner can revoke the memory, or if the memory applies everywhere and is reworded. A new text
    must not contain external words.
    """
    accepted: dict[str, Overtaken] = {}
    for claimed in seen:
        memory = memories[claimed.known - 1] if claimed.known <= len(memories) else None
        evidence = sorted({places.get(number, -1) for number in claimed.evidence})
        evidence = (
            checks.add_quoted_turn(evidence, claimed.quote, places.values())
            if evidence
            else evidence
        )
        if memory is None or not checks.shows(evidence, claimed.quote):
            continue
        times = checks.times(evidence)
        if not times or any(time < memory.last_said for time in times):
            continue
        typed = [checks.typed_text(at) for at in evidence if checks.is_typed(at)]
        texts = [checks.turns[at].text for at in evidence]
        is_by_owner = memory.speaker is Speaker.OWNER and memory.kind in _ENDED_BY_OWNER
        if is_by_owner and not (typed and _is_about(memory, texts)):
            continue
        now = one_line(claimed.now) if claimed.state is State.CHANGED else ""
        holds_here = memory.project is not None or bool(typed)
        if claimed.state is State.CHANGED and not (holds_here and _is_new(memory, now, checks)):
            continue
        turns = tuple(checks.turns[at].id for at in evidence)
        confirmation = Confirmation(max(times), session, turns)
        claim = _claim(memory, now, turns)
        # A page read during the session might have influenced the model's claim.
        is_outside = checks.has_read_outside([len(checks.turns) - 1])
        is_owners = bool(typed) and not (is_outside and not _is_typed_change(memory, now, typed))
        is_nodded = memory.speaker is Speaker.OWNER and is_outside and not is_owners
        is_mixed = memory.speaker is Speaker.OWNER and checks.is_mixed(evidence)
        is_free = is_nodded or is_mixed or _is_free(memory, now, typed if is_outside else texts)
        accepted.setdefault(
            memory.id,
            Overtaken(
                memory, claimed.clause, claimed.quote, claim, confirmation, is_owners, now, is_free
            ),
        )
    return list(accepted.values())


def apply_changes(memories: Sequence[Memory], seen: Sequence[Seen]) -> list[Memory]:
    """Return the known memories after a model's changes, without retired memories and with new text."""
    by_number = {item.known: item for item in seen}
    changes = [(memory, by_number.get(number)) for number, memory in enumerate(memories, 1)]
    return [
        replace(memory, content=change.now) if change and change.now else memory
        for memory, change in changes
        if change is None or change.state is not State.OVER
    ]


def _is_new(memory: Memory, now: str, checks: Checks) -> bool:
    """Return True if ``now`` can replace a memory's text.

    The new text must differ, keep most words, not be too long, and add no external words. Events, lists and long
    memories are not reworded.
    """
    is_list = "\n" in memory.content.strip()
    if memory.kind is Kind.EVENT or is_list or normalise(now) == normalise(memory.content):
        return False
    if any(size_refusal(text, _MAX_CHANGED_CHARACTERS) for text in (memory.content, now)):
        return False
    if leaves_out(memory.content, now) > memories_judge.MOST_ENDED:
        return False
    return not checks.adds_from_outside(now, memory.content)


def _is_about(memory: Memory, texts: Sequence[str]) -> bool:
    """Return True if a text shares a word with a memory, or is in a different language."""
    own = language_of(memory.content)
    return any(
        language_of(text) is not own or leaves_out(memory.content, text) < 1 for text in texts
    )


def _is_free(memory: Memory, now: str, texts: Sequence[str]) -> bool:
    """Return True if ``now`` drops a negation of an owner's rule, or adds words not found in the rule or ``texts``.

    If ``now`` is empty, return True if no text shares a word with the rule.
    """
    if memory.speaker is not Speaker.OWNER or memory.kind is not Kind.PREFERENCE:
        return False
    if not now:
        return not _is_about(memory, texts)
    return bool(new_word(now, [memory.content, *texts])) or negations(now) < negations(
        memory.content
    )


def _is_typed_change(memory: Memory, now: str, typed: Sequence[str]) -> bool:
    """Return True if the owner typed a new word of a change, other than in a question.

    The owner must have typed each new negation or obligation. If the change revokes the memory, removes a negation, or
    adds no words, the owner must state that the memory no longer holds.
    """
    sentences = [
        sentence.text for text in typed for sentence in split(text) if not is_asking(sentence.text)
    ]
    before = {token.stem for token in read(memory.content).tokens}
    new = {word for word in read(now).words if not has_word(before, word)}
    firm, was_firm = firm_words(now), firm_words(memory.content)
    if firm - was_firm:
        both = f"{memory.content}\n{now}"
        if not any(binds(sentence, firm - was_firm, both) for sentence in sentences):
            return False
    elif (was_firm - firm or not new) and not any(
        _ends(sentence, memory) for sentence in sentences
    ):
        return False
    typed_words = {token.stem for sentence in sentences for token in read(sentence).tokens}
    return not new or any(has_word(typed_words, word) for word in new)


def _ends(text: str, memory: Memory) -> bool:
    """Return True if a sentence reports a memory's subject as gone, or clearly contradicts the memory."""
    before = read(memory.content).words
    if any(departure <= before for departure in find_gone(text)):
        return True
    stated = replace(memory, subject="", content=text, canonical_key=None, claim=None)
    return memories_judge.judge(
        memory, stated, None, calibration.calibration_of(None)
    ).relation in (memories_judge.Relation.SUPERSEDES, memories_judge.Relation.DOUBTS)


def _claim(memory: Memory, now: str, turns: tuple[str, ...]) -> Candidate:
    content = (
        f"It now reads: {now} Before it read: {memory.content}"
        if now
        else f"It is over, or no longer so: {memory.content}"
    )
    return Candidate(memory.kind, memory.subject, content, turns, confidence=Confidence.EXTRACTED)


# -- Model calls -----------------------------------------------------------------------------------


A = TypeVar("A", bound=msgspec.Struct)

_MAX_FAILURES = 6
_SCHEMA_MODES = ("schema", "tool")
_REPAIRS = {MEMORIES: tidy, CHANGES: tidy_changes}

_MAX_FIRST_FAILURES = 3
"""Maximum number of failures of a model that never gave a usable answer, even after being shown its errors."""

FAILURES = (ModelUnavailableError, ModelRefusedError, BudgetSpentError, UnusableAnswerError)
"""Errors of a call after which the deterministic extractor takes over."""


class Caller:
    """Thread-safe LanguageModel that calls another model for one session.

    ``stopped``: the reason why no more calls are made, such as a refusal, a spent budget, or repeated failures.
    """

    def __init__(self, model: LanguageModel) -> None:
        self.name = model.name
        self.capabilities = model.capabilities
        self.tokens = Tokens()
        self.calls = 0
        self.answered = 0
        self.was_cut = False
        self.stopped: NacreError | None = None
        self.problem: NacreError | None = None
        self._model = model
        self._failures = 0
        self._was_spent = False
        self._lock = Lock()

    def ask(self, prompt: Prompt, answer: type[A]) -> A | None:
        """Return the answer to a prompt, or ``None`` with the reason in ``problem``."""
        if self.stopped:
            return None
        try:
            result = ask(self, prompt, answer)
        except FAILURES as error:
            self.problem = error
            self._failures += 1
            never_usable = isinstance(error, UnusableAnswerError) and not self.answered
            if not _is_transient(error) or self._failures >= (
                _MAX_FIRST_FAILURES if never_usable else _MAX_FAILURES
            ):
                self.stopped = error
            return None
        self._failures = 0
        self.answered += 1
        return result

    def complete(self, prompt: Prompt) -> Completion:
        """Make one call. Repair nearly valid answers of models without schema support."""
        completion = self._model.complete(prompt)
        with self._lock:
            self.calls += not completion.is_repeated
            self.tokens += completion.tokens
            self.was_cut = self.was_cut or completion.is_cut
        repair = _REPAIRS.get(prompt.name)
        if repair is None or self.capabilities.answers in _SCHEMA_MODES:
            return completion
        return replace(completion, text=repair(completion.text))

    def close(self) -> None:
        """Interrupt running calls and refuse new ones."""
        self.stopped = self.stopped or ModelUnavailableError("it was interrupted", retry=False)
        with suppress(NacreError):
            self._model.close()

    @property
    def is_over(self) -> bool:
        """True if calls about other sessions would also fail."""
        return self.stopped is not None and not (self.answered and _is_transient(self.stopped))

    @property
    def is_spent(self) -> bool:
        """True if the budget refused a call."""
        return isinstance(self.stopped, BudgetSpentError) or self._was_spent

    def try_smaller(self) -> None:
        """Allow calls again after a budget refusal, because a smaller call can fit the budget."""
        if isinstance(self.stopped, BudgetSpentError):
            self.stopped, self._was_spent = None, True

    @property
    def is_useless(self) -> bool:
        """True if calls stopped because no answer ever had the requested format."""
        return isinstance(self.stopped, UnusableAnswerError | UnreadableModelError)


def _is_transient(error: NacreError) -> bool:
    return isinstance(error, UnusableAnswerError) or (
        isinstance(error, ModelUnavailableError) and error.retry
    )
