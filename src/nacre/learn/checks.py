"""What code can know of a proposal: that its evidence exists, who said it, and whether it comes from outside.

Whether the evidence bears it out has to be understood: that a model is asked (:mod:`nacre.learn.writer`).
What is malformed is dropped; what cannot be trusted waits as a candidate.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from threading import Lock
from typing import TypeVar

import msgspec

from nacre.base.text import normalise, one_line, words
from nacre.errors import (
    AnswerUnusable,
    BudgetSpent,
    ModelRefused,
    ModelUnavailable,
    ModelUnreadable,
    NacreError,
)
from nacre.learn.explicit import size_refusal
from nacre.learn.pasted import reads_as_rule, without_pasted
from nacre.learn.prompts import CHANGES, MEMORIES, Seen, State, Told, tidied, tidied_changes
from nacre.learn.reading import AGENT_CAP, content_words, is_asking
from nacre.learn.sentences import Language, forms, is_accepted_plan, language_of, split, utterances
from nacre.llm.failures import ask
from nacre.llm.local_model import calibration_of
from nacre.memories.judge import MOST_ENDED, Relation, judge
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
"""Of a statement's words may be found in text from outside alone; with more of them, it is somebody else's."""

LEAST_OWNED = 0.3
"""Of the words of a statement that the owner made their own were typed by them."""

FEWEST_OWNED = 2
"""Words of a statement that are the owner's once text from outside was read: one may stand in any answer."""

_STEERING = frozenset({Kind.DECISION, Kind.PREFERENCE, Kind.TODO})
"""What steers agents: nobody but the owner says it."""

MAX_TAGS = 4

_RUN = 5
_WORD = re.compile(r"\w+")
_MAX_SUBJECT = 120
_UNSPOKEN = Flag.META | Flag.SUMMARY | Flag.SIDECHAIN
_ELLIPSIS = re.compile(r"\s*(?:\.{3,}|…)\s*")
_KEY = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+){1,4}")
_TAG = re.compile(r"[\w.+#-]{2,30}")


@dataclass(frozen=True, slots=True)
class Dropped:
    """Why a proposal was not taken at all."""

    reason: str


class Checks:
    """What one session shows. ``begin`` is its first turn that extraction has not seen yet."""

    def __init__(self, turns: Sequence[Turn], *, begin: int = 0) -> None:
        self.turns = turns
        self.begin = begin
        self._typed: dict[int, str] = {}
        self._mixed: set[int] = set()
        for one in utterances(turns):
            said = " ".join(statement.text for statement in one.statements)
            places = (one.index, *one.copies)
            self._mixed |= (
                set(places) if any(statement.mixed for statement in one.statements) else set()
            )
            self._typed |= {at: f"{self._typed.get(at, '')} {said}".strip() for at in places}
        agents = {at for at in range(len(turns)) if _is_trusted_agents(turns, at)}
        known = [*self._typed.values(), *(turns[at].text for at in sorted(agents)), *_calls(turns)]
        self._owned = _words_of(self._typed.values())
        others = [at for at in range(len(turns)) if at not in agents and not _is_recap(turns, at)]
        self._foreign = _words_of(turns[at].text for at in others) - _words_of(known)
        heard = [*map(_without_forms, (turns[at] for at in others)), *_outside_errors(turns)]
        typed = _runs_of(self._typed.values())
        self._outside, self._put_out = _runs_of(heard) - typed, _runs_of(_errors(turns)) - typed

    def judge(self, told: Told, shown: Set[int]) -> Candidate | Dropped:
        """A proposal as a candidate, if its evidence was ``shown``; it waits where it cannot be trusted."""
        content, subject = one_line(told.content), one_line(told.subject)[:_MAX_SUBJECT]
        evidence = tuple(sorted(set(told.evidence)))
        reason = _refusal(told, content) or self._evidence_refusal(evidence, shown)
        if reason:
            return Dropped(reason)
        is_nodded = self._is_nodded(content, evidence)
        is_owner = self._is_owners(told, evidence, is_nodded=is_nodded)
        held, detail = self._doubt(told, content, evidence, is_nodded=is_nodded)
        importance = min(told.importance, 10) if is_owner else min(told.importance, AGENT_CAP)
        return Candidate(
            kind=Kind(told.kind),
            subject=subject or content[:_MAX_SUBJECT],
            content=content,
            turns=tuple(self.turns[at].id for at in evidence),
            importance=importance,
            expiry=Expiry(told.expiry),
            tags=_tags(told.tags),
            speaker=Speaker.OWNER if is_owner else Speaker.AGENT,
            trust=Trust.UNTRUSTED if held is Why.UNTRUSTED else Trust.TRUSTED,
            canonical_key=_key(told.canonical_key),
            confidence=Confidence.EXTRACTED,
            confidence_score=round(1 - self._strange(content, evidence), 2),
            held=held,
            detail=detail,
            nodded=is_owner and (is_nodded or self._ends_unsaid(content, evidence)),
            mixed=is_owner and self.is_mixed(evidence),
        )

    def is_from_outside(self, content: str) -> bool:
        """Whether a statement is made of somebody else's words."""
        return self._is_copied(content, self._outside) or self._is_foreign(
            content_words(content, language_of(content))
        )

    def adds_from_outside(self, content: str, known: str) -> bool:
        """Whether a statement says more than a known one in somebody else's words: a clause of them is enough."""
        if (_runs_of([content]) - _runs_of([known])) & self._outside:
            return True
        words = content_words(content, language_of(content)) - content_words(
            known, language_of(known)
        )
        return self._is_foreign(words)

    def is_typed(self, at: int) -> bool:
        """Whether the owner typed something in a turn."""
        return at in self._typed

    def is_mixed(self, evidence: Iterable[int]) -> bool:
        """Whether a message of the owner's among some turns has marks of a paste."""
        return not self._mixed.isdisjoint(evidence)

    def typed(self, at: int) -> str:
        """What the owner typed in a turn."""
        return self._typed.get(at, "")

    def reached_out(self, evidence: Sequence[int]) -> bool:
        """Whether the session had read text from outside by then: "ok" is no word of the owner's for it."""
        return reached_out(self.turns, evidence[-1])

    def times(self, evidence: Sequence[int]) -> list[datetime]:
        """When turns were said, as far as their tool noted it."""
        return [time for at in evidence if (time := self.turns[at].time)]

    def shows(self, evidence: Sequence[int], quote: str) -> bool:
        """Whether trusted turns, one of them new, hold a quote, which the owner did not paste."""
        if not evidence or evidence[0] < 0 or evidence[-1] < self.begin:
            return False
        is_trusted = all(self.turns[at].trust is Trust.TRUSTED for at in evidence)
        return is_trusted and any(self._holds(at, quote, is_typed=True) for at in evidence)

    def beside(self, evidence: Sequence[int], quote: str, shown: Iterable[int]) -> list[int]:
        """Evidence with the turn that holds the quote, where one of those shown does and none that was named."""
        named = any(self._holds(at, quote, is_typed=True) for at in evidence if at >= 0)
        holding = (
            at for at in sorted(shown) if not named and self._holds(at, quote, is_typed=True)
        )
        return sorted({*evidence, *islice(holding, 1)})

    def _is_owners(self, told: Told, evidence: Sequence[int], *, is_nodded: bool) -> bool:
        """Whether the owner answers for a statement: the words quoted are theirs, or they said something to them. What
        an agent found out since it was asked is the agent's, and so is what the owner only nodded to; what steers
        agents is the owner's or nobody's.
        """
        typed = {at for at in evidence if at in self._typed}
        quoted = [at for at in evidence if self._holds(at, told.quote)]
        if told.kind in _STEERING:
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

    def _doubt(
        self, told: Told, content: str, evidence: Sequence[int], *, is_nodded: bool
    ) -> tuple[Why | None, str]:
        """Why a proposal cannot be a memory at once, if so."""
        if self.is_from_outside(content):
            return Why.UNTRUSTED, "its words are those of text from outside"
        is_rule = Kind(told.kind) is Kind.PREFERENCE or reads_as_rule(content)
        if is_rule and self._is_copied(content, self._put_out):
            return Why.UNTRUSTED, "its words are those of a failing call"
        if told.kind in _STEERING and not any(at in self._typed for at in evidence):
            return Why.UNPROVEN, "the owner neither said nor accepted it"
        if not any(self._holds(at, told.quote) for at in evidence):
            return Why.UNPROVEN, "its quote is not in its evidence"
        if is_nodded and is_rule:
            return (
                Why.UNTRUSTED,
                "hardly a word of it is the owner's, after text from outside was read",
            )
        return None, ""

    def _is_nodded(self, content: str, evidence: Sequence[int]) -> bool:
        """Whether the owner stated hardly a word of a statement in its evidence, once text from outside was read: what
        they asked is no word for it, and one word is enough where they say it as a rule.
        """
        if not self.reached_out(evidence):
            return False
        stated = self._stated(evidence)
        read = (
            content_words if content_words(content, language_of(content)) else _words_of_any_script
        )
        own = read(content, language_of(content))
        shared = [own & read(one, language_of(one)) for one in stated]
        is_ruled = any(
            found and reads_as_rule(one) for one, found in zip(stated, shared, strict=True)
        )
        return not is_ruled and len(frozenset[str]().union(*shared)) < min(FEWEST_OWNED, len(own))

    def _ends_unsaid(self, content: str, evidence: Sequence[int]) -> bool:
        """Whether a statement tells that something is gone, and the owner neither did, nor had it removed, nor denied
        or bound a word of it, once text from outside was read.
        """
        gone = gone_in(content) if self.reached_out(evidence) else []
        stated = self._stated(evidence)
        is_said = any(
            gone_in(one) or binds(one, firm_words(one), content) or _removes(one, gone)
            for one in stated
        )
        return bool(gone) and not is_said

    def _stated(self, evidence: Sequence[int]) -> list[str]:
        """The sentences of the owner's in some turns that are no questions."""
        return [
            one.text for at in evidence for one in split(self.typed(at)) if not is_asking(one.text)
        ]

    def _is_copied(self, content: str, others: Set[tuple[str, ...]]) -> bool:
        """Whether half of a statement stands in some text word by word, of whatever kind it says it is."""
        runs = _runs_of([content])
        return bool(runs) and 2 * len(runs & others) >= len(runs)

    def _is_foreign(self, words: Set[str]) -> bool:
        """Whether many words are from outside alone, and few the owner's, too."""
        foreign, owned = len(words & self._foreign), len(words & self._owned)
        return foreign > MOST_FOREIGN * len(words) and owned < LEAST_OWNED * len(words)

    def _holds(self, at: int, quote: str, *, is_typed: bool = False) -> bool:
        text = self.turns[at].text
        if is_typed and self.turns[at].speaker is Speaker.OWNER:
            text = without_pasted(text)
        said = normalise(f"{text} {self._typed.get(at, '')}")
        parts = [normalise(one) for one in _ELLIPSIS.split(quote)]
        return any(parts) and all(part in said for part in parts)

    def _strange(self, content: str, evidence: Sequence[int]) -> float:
        """The share of the content's words that neither its evidence nor a turn beside it has."""
        words = content_words(content, language_of(content))
        near = {
            one for at in evidence for one in range(at - 2, at + 3) if 0 <= one < len(self.turns)
        }
        said = _words_of(self.turns[at].text for at in near)
        return len(words - said) / len(words) if words else 1.0


def gone_in(text: str) -> list[frozenset[str]]:
    """The words of each thing that a text says to be gone."""
    return [departure.gone for departure in read(text).departures]


def _removes(text: str, gone: Iterable[Collection[str]]) -> bool:
    """Whether a sentence has one of some things removed: "please delete the Redis cache"."""
    language = language_of(text)
    words = content_words(text, language)
    is_order = bool(language.reversal.removal.search(language.trim(text)))
    return is_order and any(not words.isdisjoint(one) for one in gone)


def _words_of_any_script(text: str, _: Language) -> frozenset[str]:
    return frozenset(words(text))


def _is_trusted_agents(turns: Sequence[Turn], at: int) -> bool:
    """Whether a turn holds an agent's own words: what it said, or a plan of its that the owner accepted."""
    turn = turns[at]
    is_said = turn.speaker is Speaker.AGENT and not turn.flags & (_UNSPOKEN | Flag.INJECTED)
    return turn.trust is Trust.TRUSTED and (is_said or is_accepted_plan(turns, at))


def _is_recap(turns: Sequence[Turn], at: int) -> bool:
    """Whether the host summed up what was said: no model is shown that, so no statement is made of its words."""
    return bool(turns[at].flags & Flag.SUMMARY) and not is_accepted_plan(turns, at)


def _calls(turns: Sequence[Turn]) -> list[str]:
    """What calls were given, and the names and numbers that came of them."""
    return [
        " ".join(
            [call.name, call.input, call.outcome or "", call.error or "", *call.paths, *call.made]
        )
        for turn in turns
        if turn.trust is Trust.TRUSTED
        for call in turn.tool_calls
    ]


def _outside_errors(turns: Sequence[Turn]) -> list[str]:
    """What failing calls that reach outside put out: the model sees it, and nobody here said it."""
    return [
        _output(call)
        for turn in turns
        for call in turn.tool_calls
        if call.failed and brings_outside(call)
    ]


def _errors(turns: Sequence[Turn]) -> list[str]:
    """What failing calls put out."""
    return [_output(call) for turn in turns for call in turn.tool_calls if call.failed]


def _output(call: ToolCall) -> str:
    return f"{call.outcome or ''} {call.error or ''}"


def _without_forms(turn: Turn) -> str:
    """A turn's text without the questions of forms that it answers: those are the agent's."""
    text = turn.text
    for form in forms(text) if turn.speaker is Speaker.OWNER else ():
        text = text.replace(form.question, " ")
    return text


def _runs_of(texts: Iterable[str]) -> frozenset[tuple[str, ...]]:
    """All runs of five words, of characters where there are no spaces."""
    found: set[tuple[str, ...]] = set()
    for text in texts:
        words = [
            part
            for word in _WORD.findall(text.lower())
            for part in (word if word > "\u2e7f" else [word])
        ]
        found.update(zip(*(words[at:] for at in range(_RUN)), strict=False))
    return frozenset(found)


def _words_of(texts: Iterable[str]) -> frozenset[str]:
    return frozenset[str]().union(*(content_words(text, language_of(text)) for text in texts))


def _refusal(told: Told, content: str) -> str | None:
    """What is wrong with a proposal whatever the session says."""
    return "unimportant" if told.importance < LEAST_IMPORTANCE else size_refusal(content)


def _tags(told: Iterable[str]) -> tuple[str, ...]:
    plain = (re.sub(r"\s+", "-", tag.strip().lower()) for tag in told)
    return tuple(dict.fromkeys(tag for tag in plain if _TAG.fullmatch(tag)))[:MAX_TAGS]


def _key(told: str | None) -> str | None:
    key = (told or "").strip().lower()
    return key if _KEY.fullmatch(key) else None


# ----------------------------------------------------------------------------
# What a session makes of the memories that are known: which of them are over, and which say something
# else now.


_OF_THE_OWNER = frozenset({Kind.DECISION, Kind.PREFERENCE, Kind.RELATIONSHIP})
"""What the owner said of these kinds ends by their word alone; a trouble ends when it is mended, a todo when done."""


_MOST_CHARACTERS = 1_000
"""Of what a memory says now: what became of a thing stands there beside what still holds."""


@dataclass(frozen=True, slots=True)
class Overtaken:
    """A known memory that is over, or that says ``now`` something else: the ``clause`` that holds no longer, the words
    that show it, where they were said, whether the owner typed something there, and what is claimed by that as a
    ``statement`` to be compared. ``is_free`` says that a rule of the owner's would get words that neither it nor the
    evidence has, or that the session reached outside and the owner, whose memory it is, typed no word of the change
    there, or that the message has marks of a paste: somebody is to look at it.
    """

    memory: Memory
    clause: str
    quote: str
    statement: Candidate
    shown: Confirmation
    is_owners: bool
    now: str = ""
    is_free: bool = False


def overtaken(
    seen: Sequence[Seen],
    known: Sequence[Memory],
    session: str,
    checks: Checks,
    places: Mapping[int, int],
) -> list[Overtaken]:
    """Those of a model's claims that code bears out: about a memory that was shown, quoted from trusted turns that were
    shown and that were said later, one of them the owner's where the memory is theirs to end, or to be reworded and
    holds everywhere. New words come from nobody outside.
    """
    found: dict[str, Overtaken] = {}
    for one in seen:
        memory = known[one.known - 1] if one.known <= len(known) else None
        evidence = sorted({places.get(number, -1) for number in one.evidence})
        evidence = checks.beside(evidence, one.quote, places.values()) if evidence else evidence
        if memory is None or not checks.shows(evidence, one.quote):
            continue
        times = checks.times(evidence)
        if not times or any(said < memory.last_said for said in times):
            continue
        typed = [checks.typed(at) for at in evidence if checks.is_typed(at)]
        said = [checks.turns[at].text for at in evidence]
        is_by_owner = memory.speaker is Speaker.OWNER and memory.kind in _OF_THE_OWNER
        if is_by_owner and not (typed and _is_about(memory, said)):
            continue
        now = one_line(one.now) if one.state is State.CHANGED else ""
        holds_here = memory.project is not None or bool(typed)
        if one.state is State.CHANGED and not (holds_here and _is_new(memory, now, checks)):
            continue
        turns = tuple(checks.turns[at].id for at in evidence)
        shown = Confirmation(max(times), session, turns)
        claim = _claim(memory, now, turns)
        is_outside = checks.reached_out(
            [len(checks.turns) - 1]
        )  # who asked before may be told of a page since
        is_owners = bool(typed) and not (is_outside and not _is_worded(memory, now, typed))
        is_nodded = memory.speaker is Speaker.OWNER and is_outside and not is_owners
        is_mixed = memory.speaker is Speaker.OWNER and checks.is_mixed(evidence)
        is_free = is_nodded or is_mixed or _is_free(memory, now, typed if is_outside else said)
        found.setdefault(
            memory.id,
            Overtaken(memory, one.clause, one.quote, claim, shown, is_owners, now, is_free),
        )
    return list(found.values())


def standing(known: Sequence[Memory], seen: Sequence[Seen]) -> list[Memory]:
    """What is known after a session, as a model has it: what is over is gone, what changed says what it does now."""
    said = {one.known: one for one in seen}
    found = [(memory, said.get(number)) for number, memory in enumerate(known, 1)]
    return [
        replace(memory, content=one.now) if one and one.now else memory
        for memory, one in found
        if one is None or one.state is not State.OVER
    ]


def _is_new(memory: Memory, now: str, checks: Checks) -> bool:
    """Whether words may stand in place of a memory's: other ones, most of its own, not many more, and none that come
    from outside. What happened stays as it was told, and so does what is longer than a model may write.
    """
    is_list = "\n" in memory.content.strip()
    if memory.kind is Kind.EVENT or is_list or normalise(now) == normalise(memory.content):
        return False
    if any(size_refusal(one, _MOST_CHARACTERS) for one in (memory.content, now)):
        return False
    if leaves_out(memory.content, now) > MOST_ENDED:
        return False
    return not checks.adds_from_outside(now, memory.content)


def _is_about(memory: Memory, said: Sequence[str]) -> bool:
    """Whether what was said has a word of a memory, where both are of one language."""
    own = language_of(memory.content)
    return any(language_of(one) is not own or leaves_out(memory.content, one) < 1 for one in said)


def _is_free(memory: Memory, now: str, said: Sequence[str]) -> bool:
    """Whether new words of a rule of the owner's say what neither it nor what was ``said`` does, or deny less than it;
    of one that is over, whether nothing that was said has a word of it.
    """
    if memory.speaker is not Speaker.OWNER or memory.kind is not Kind.PREFERENCE:
        return False
    if not now:
        return not _is_about(memory, said)
    return bool(new_word(now, [memory.content, *said])) or negations(now) < negations(
        memory.content
    )


def _is_worded(memory: Memory, now: str, typed: Sequence[str]) -> bool:
    """Whether a word of a change was typed by the owner, and not asked: one that is new, and where something is denied
    or bound anew, that of it; of an end, and where no word is new or a denial goes, that it holds no longer.
    """
    said = [one.text for text in typed for one in split(text) if not is_asking(one.text)]
    before = {token.stem for token in read(memory.content).tokens}
    new = {word for word in read(now).words if not has_word(before, word)}
    firm, was_firm = firm_words(now), firm_words(memory.content)
    if firm - was_firm:
        both = f"{memory.content}\n{now}"
        if not any(binds(one, firm - was_firm, both) for one in said):
            return False
    elif (was_firm - firm or not new) and not any(_ends(one, memory) for one in said):
        return False
    typed_words = {token.stem for one in said for token in read(one).tokens}
    return not new or any(has_word(typed_words, word) for word in new)


def _ends(text: str, memory: Memory) -> bool:
    """Whether a sentence says that a memory holds no longer: it names what is gone, or plainly says otherwise."""
    before = read(memory.content).words
    if any(one <= before for one in gone_in(text)):
        return True
    said = replace(memory, subject="", content=text, canonical_key=None, claim=None)
    return judge(memory, said, None, calibration_of(None)).relation in (
        Relation.SUPERSEDES,
        Relation.DOUBTS,
    )


def _claim(memory: Memory, now: str, turns: tuple[str, ...]) -> Candidate:
    told = (
        f"It now reads: {now} Before it read: {memory.content}"
        if now
        else f"It is over, or no longer so: {memory.content}"
    )
    return Candidate(memory.kind, memory.subject, told, turns, confidence=Confidence.EXTRACTED)


# ----------------------------------------------------------------------------
# Asks: one call after another, with their tokens counted.


A = TypeVar("A", bound=msgspec.Struct)

_FAILURES_IN_A_ROW = 6
_HELD_TO_A_SCHEMA = ("schema", "tool")
_TIDIED = {MEMORIES: tidied, CHANGES: tidied_changes}

_UNUSABLE_AT_FIRST = 3
"""A model that never answered in the shape asked for, each time told what was wrong, is given up sooner."""

FAILURES = (ModelUnavailable, ModelRefused, BudgetSpent, AnswerUnusable)
"""All that a call may come to: the deterministic path does the work then."""


class Caller:
    """Asks one model on behalf of one session; safe to share between threads. A LanguageModel itself.

    ``stopped`` says why nothing more is asked: the model refused, what it may cost is used up, or it fails every time.
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
        """The answer to a prompt; ``None`` where there is none, and ``problem`` says why."""
        if self.stopped:
            return None
        try:
            found = ask(self, prompt, answer)
        except FAILURES as error:
            self._failed(error)
            return None
        self._failures = 0
        self.answered += 1
        return found

    def complete(self, prompt: Prompt) -> Completion:
        """One call. Of a model that nothing holds to the schema, what nearly fits is made to fit."""
        completion = self._model.complete(prompt)
        with self._lock:
            self.calls += not completion.is_repeated
            self.tokens += completion.tokens
            self.was_cut = self.was_cut or completion.is_cut
        tidy = _TIDIED.get(prompt.name)
        if tidy is None or self.capabilities.answers in _HELD_TO_A_SCHEMA:
            return completion
        return replace(completion, text=tidy(completion.text))

    def close(self) -> None:
        """Cut off the calls that run; nothing more is asked."""
        self.stopped = self.stopped or ModelUnavailable("it was interrupted", retry=False)
        with suppress(NacreError):
            self._model.close()

    @property
    def is_over(self) -> bool:
        """Whether asking about anything else would be in vain, too."""
        return self.stopped is not None and not (self.answered and _may_pass(self.stopped))

    @property
    def is_spent(self) -> bool:
        """Whether a call was refused since it took what it may."""
        return isinstance(self.stopped, BudgetSpent) or self._was_spent

    def try_smaller(self) -> None:
        """Ask once more where only a budget stands against it: a smaller call may fit."""
        if isinstance(self.stopped, BudgetSpent):
            self.stopped, self._was_spent = None, True

    @property
    def is_useless(self) -> bool:
        """Whether nothing more is asked since the model never answered in the shape asked for, or in none."""
        return isinstance(self.stopped, AnswerUnusable | ModelUnreadable)

    def _failed(self, error: NacreError) -> None:
        self.problem = error
        self._failures += 1
        never_fits = isinstance(error, AnswerUnusable) and not self.answered
        if not _may_pass(error) or self._failures >= (
            _UNUSABLE_AT_FIRST if never_fits else _FAILURES_IN_A_ROW
        ):
            self.stopped = error


def _may_pass(error: NacreError) -> bool:
    return isinstance(error, AnswerUnusable) or (
        isinstance(error, ModelUnavailable) and error.retry
    )
