"""Deterministic checks of a model's proposals: evidence, speaker, and words from external text.

A model verifies that the evidence supports a proposal (:mod:`nacre.learn.writer`). Malformed proposals are dropped, and
untrusted proposals become candidates.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence, Set
from dataclasses import replace
from datetime import datetime
from difflib import SequenceMatcher
from functools import cached_property
from typing import TypeVar

import msgspec

from nacre.base.frozen import frozen
from nacre.base.text import normalise, one_line, words
from nacre.base.times import day_of
from nacre.errors import (
    BudgetSpentError,
    ModelRefusedError,
    ModelUnavailableError,
    NacreError,
    UnreadableModelError,
    UnusableAnswerError,
)
from nacre.learn.explicit import find_option, size_refusal
from nacre.learn.pasted import reads_as_rule, without_pasted
from nacre.learn.prompts import (
    MEMORIES,
    OWNER_TURNS,
    VERDICTS,
    OutdatedMemory,
    ProposedMemory,
    tidy,
    tidy_turns,
    tidy_verdicts,
)
from nacre.learn.reading import AGENT_CAP, content_words, is_asking, is_objection, parse_question
from nacre.learn.sentences import (
    Utterance,
    before,
    forms,
    is_accepted_plan,
    language_of,
    split,
    utterances,
)
from nacre.llm import calibration
from nacre.llm.failures import ask
from nacre.memories import judge as memories_judge
from nacre.memories.statements import binds, firm_words, leaves_out, lost, negations, read
from nacre.protocols import LanguageModel
from nacre.readers.trust import brings_outside, reached_out
from nacre.values.memory import Candidate, Confidence, Confirmation, Expiry, Kind, Memory, Why
from nacre.values.models import Completion, Prompt, Tokens
from nacre.values.session import Flag, Speaker, ToolCall, Trust, Turn

IMPORTANCE = {Kind.FACT: 5, Kind.RELATIONSHIP: 5, Kind.EVENT: 5}
"""Importance of the memories that a model writes, by kind. By default: ``DEFAULT_IMPORTANCE``."""

DEFAULT_IMPORTANCE = 6
ALWAYS_IMPORTANCE = 7
"""Importance of a memory that an agent needs for any task in the project."""

MIN_NEAR_SHARE = 0.9
"""Minimum share of a quote's words that a turn must contain in the same order."""

MIN_SUPPORT = 0.5
"""Minimum share of a statement's words that occur near its evidence."""

MOST_FOREIGN = 0.4
"""Maximum share of a statement's words that may occur only in external text."""

LEAST_OWNED = 0.3
"""Minimum share of the owner's words in a statement that exceeds ``MOST_FOREIGN``."""

FEWEST_OWNED = 2
"""Minimum number of the owner's words in a statement, because one shared word proves nothing."""

_STEERING = frozenset({Kind.DECISION, Kind.PREFERENCE, Kind.TODO})
"""Kinds of memories that instruct agents. Only the owner may state them."""

MAX_TAGS = 4

_RUN_WORDS = 5
_WORD = re.compile(r"\w+")
_MAX_SUBJECT_CHARACTERS = 120
_UNSPOKEN = Flag.META | Flag.SUMMARY | Flag.SIDECHAIN
_ELLIPSIS = re.compile(r"\s*(?:\.{3,}|…)\s*")
_TAG = re.compile(r"[\w.+#-]{3,30}")
_PLAIN = re.compile(r"[A-Za-z]+(?:-[a-z]+)+|[a-z](?:\.[a-z])+|[a-z]+")
"""Ordinary words such as "end-to-end", "e.g" and "three", unlike names and digits."""

_CONTRAST = re.compile(r"\bno longer\b|(?:,| \() ?(?:and |but )?not\b", re.IGNORECASE)
"""Negations that only express a contrast, as in "in pages, not row by row"."""

_DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b")
_MAX_DAYS_FROM_SESSION = 60
_SENTENCE_START = re.compile(r"(?:^|(?<=[.!?:;] ))[A-Z](?=[a-z]+\b)")
_NEIGHBOURS = 2
"""Number of turns around the evidence in which a statement's words may also occur."""

_MAX_ADDED_TURNS = 2
_MAX_UNCOVERED_SHARE = 0.3
_MIN_COVERED_WORDS = 2
_OPTION_MARGIN = 1
_MIN_NEAR_WORDS = 4
_MAX_NEAR_STRETCH = 1.5


@frozen
class Place:
    """The passage of a session that matches a quote.

    ``at``: the index of its turn. ``share``: the share of the quote's words in it.
    """

    at: int
    words: str
    share: float


_ENDED_BY_OWNER = frozenset({Kind.DECISION, Kind.PREFERENCE, Kind.RELATIONSHIP})
"""Kinds of the owner's memories that only the owner can revoke.

Anyone can report a solved problem or a completed todo.
"""

NO_LONGER = "This no longer holds: "
"""Prefix of a claim that a known memory is outdated."""


@frozen
class Overtaken:
    """A memory that a session shows to be outdated.

    ``quote``: words that show this. ``statement``: claim that a model verifies. ``is_owners``:
    whether the words are the owner's own. ``is_doubtful``: whether the owner must review the
    memory.
    """

    memory: Memory
    quote: str
    statement: Candidate
    shown: Confirmation
    is_owners: bool
    is_doubtful: bool = False


class Checks:
    """A checker of the memories that a model proposes for a session. New turns start at ``begin``."""

    def __init__(self, turns: Sequence[Turn], *, begin: int = 0) -> None:
        self.turns = turns
        self.begin = begin
        self._normalised: dict[tuple[int, bool], str] = {}
        self._spoken: dict[int, list[Utterance]] = {}
        for utterance in utterances(turns):
            for at in (utterance.index, *utterance.copies):
                self._spoken.setdefault(at, []).append(utterance)
        self._typed = {
            at: " ".join(
                statement.text for utterance in spoken for statement in utterance.statements
            )
            for at, spoken in self._spoken.items()
        }
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
            # Models are not shown a host's summary, so statements cannot be based on it.
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

    def judge(self, proposal: ProposedMemory, visible_turns: Set[int]) -> Candidate | str:
        """Turn a model's proposal into a candidate, or return the reason to reject it.

        Only ``visible_turns``, which the model has seen, count as evidence.
        """
        content = one_line(proposal.content)
        subject = one_line(proposal.subject)[:_MAX_SUBJECT_CHARACTERS]
        if reason := size_refusal(content):
            return reason
        place = self.locate(proposal.quote, visible_turns, content)
        if place is None:
            return "no evidence"
        kind = Kind(proposal.kind)
        evidence = self._find_evidence(place.at, content, visible_turns)
        if evidence[-1] < self.begin:
            return "read before"
        is_nodded = self._is_nodded(content, evidence)
        is_owner = self._is_owners(kind, place.at, evidence, is_nodded=is_nodded)
        why_held, detail = self._hold_reason(kind, content, place, evidence, is_nodded=is_nodded)
        importance = (
            ALWAYS_IMPORTANCE if proposal.always else IMPORTANCE.get(kind, DEFAULT_IMPORTANCE)
        )
        return Candidate(
            kind=kind,
            subject=subject or content[:_MAX_SUBJECT_CHARACTERS],
            content=content,
            turns=tuple(self.turns[at].id for at in evidence),
            importance=importance if is_owner else min(importance, AGENT_CAP),
            expiry=Expiry.TEMPORARY if kind is Kind.TODO else Expiry.PERMANENT,
            tags=_tags(subject),
            speaker=Speaker.OWNER if is_owner else Speaker.AGENT,
            trust=Trust.UNTRUSTED if why_held is Why.UNTRUSTED else Trust.TRUSTED,
            confidence=Confidence.EXTRACTED,
            confidence_score=round(self._support(content, evidence), 2),
            held=why_held,
            detail=detail,
            nodded=is_owner and (is_nodded or self._ends_unconfirmed(content, evidence)),
            mixed=is_owner and self._is_mixed(evidence),
        )

    def locate(
        self, quote: str, visible_turns: Iterable[int], content: str = "", *, is_typed: bool = False
    ) -> Place | None:
        """Find the turn that contains a quote, preferring new turns.

        With ``content``, a turn with similar words also matches. With ``is_typed``, text that the
        owner pasted does not.
        """
        places = sorted(
            visible_turns, key=lambda at: (at >= self.begin, at in self._typed, at), reverse=True
        )
        exact = (at for at in places if self._contains_quote(at, quote, is_typed=is_typed))
        if (at := next(exact, None)) is not None:
            return Place(at, quote, 1.0)
        for at in places:
            if words := find_near(self._quotable(at, is_typed=is_typed), quote):
                return Place(at, words, MIN_NEAR_SHARE)
        if is_typed or not content:
            return None
        language = language_of(content)
        texts = [terms for text in (quote, content) if (terms := content_words(text, language))]
        shares = {
            at: max(
                len(terms & content_words(self._quotable(at), language)) / len(terms)
                for terms in texts
            )
            for at in places
            if texts
        }
        best = max(shares, key=lambda at: shares[at], default=None)
        if best is None or shares[best] < MIN_SUPPORT:
            return None
        return Place(best, "", shares[best])

    def _find_evidence(self, at: int, content: str, visible_turns: Set[int]) -> tuple[int, ...]:
        evidence = {at}
        if at not in self._typed:
            typed = sorted(index for index in visible_turns if index in self._typed)
            replies = [index for index in typed if index > at]
            evidence |= set(replies[:1] or typed[-1:])
        language = language_of(content)
        words = content_words(content, language)
        missing = words - _words_of(self.turns[index].text for index in evidence)
        agent_words = {
            index: content_words(self.turns[index].text, language)
            for index in visible_turns
            if index not in evidence and _is_trusted_agents(self.turns, index)
        }
        for _ in range(_MAX_ADDED_TURNS):
            best = max(
                agent_words,
                key=lambda index: (len(missing & agent_words[index]), -abs(index - at)),
                default=None,
            )
            if best is None or len(missing) <= _MAX_UNCOVERED_SHARE * len(words):
                break
            covered = missing & agent_words.pop(best)
            if len(covered) < _MIN_COVERED_WORDS:
                break
            evidence.add(best)
            missing -= covered
        return tuple(sorted(evidence))

    def _near(self, evidence: Iterable[int]) -> list[Turn]:
        near = {
            index
            for at in evidence
            for index in range(at - _NEIGHBOURS, at + _NEIGHBOURS + 1)
            if 0 <= index < len(self.turns)
        }
        return [self.turns[at] for at in sorted(near)]

    def _near_texts(self, evidence: Iterable[int]) -> list[str]:
        turns = self._near(evidence)
        marks = {str(day_of(turn.time)) for turn in turns if turn.time}
        marks |= {turn.author for turn in turns if turn.author}
        return [*(turn.text for turn in turns), *_calls(turns), *sorted(marks)]

    def _support(self, content: str, evidence: Iterable[int]) -> float:
        words, near = _word_sets(content, (turn.text for turn in self._near(evidence)))
        return len(words & frozenset[str]().union(*near)) / len(words) if words else 0.0

    def _find_unsupported(self, content: str, evidence: Iterable[int]) -> str | None:
        near = self._near_texts(evidence)
        # A model may replace "yesterday" with a date.
        text = _DATE.sub(self._without_close_date, content)
        text = _SENTENCE_START.sub(lambda match: match.group().lower(), _CONTRAST.sub(" ", text))
        while missing := lost(text, near):
            if missing == "a negation":
                return None if any(map(negations, near)) else missing
            parts = re.split(r"[./:]", missing.lower())
            is_digit = missing.isdigit() and len(missing) == 1
            is_known = not is_digit and all(part in self._everything for part in parts)
            if not (is_known or _PLAIN.fullmatch(missing)):
                return missing
            text = text.replace(missing, " ")
        return None

    def _without_close_date(self, match: re.Match[str]) -> str:
        days = [day_of(turn.time) for turn in (self.turns[0], self.turns[-1]) if turn.time]
        try:
            date = datetime.fromisoformat(match.group()).date()
        except ValueError:
            return match.group()
        is_close = any(abs((day - date).days) <= _MAX_DAYS_FROM_SESSION for day in days)
        return " " if is_close else match.group()

    @cached_property
    def _everything(self) -> str:
        return "\n".join([*(turn.text for turn in self.turns), *_calls(self.turns)]).lower()

    def _is_other_option(self, content: str, evidence: Iterable[int]) -> bool:
        for at in evidence:
            agent = before(self.turns, at, Speaker.AGENT) if at in self._spoken else None
            if agent is None:
                continue
            language = language_of(self.turns[agent].text)
            question = parse_question(self.turns[agent].text)
            answer = self._spoken[at][-1].statements[0].text
            chosen = find_option(answer, question, language_of(answer))
            if chosen is None or len(question.options) < 2:
                continue
            option_words = {
                text: content_words(text, language) for text in question.options.values()
            }
            words = content_words(content, language) - content_words(answer, language)
            words -= frozenset[str].intersection(*option_words.values())
            shared = {text: len(words & own) for text, own in option_words.items()}
            if max(shared.values()) > shared[chosen] + _OPTION_MARGIN:
                return True
        return False

    def _is_objected(self, content: str, at: int, evidence: Iterable[int]) -> bool:
        if at in self._typed:
            return False
        words = content_words(content)
        return any(
            is_objection(
                replace(utterance, statements=utterance.statements[:1]),
                language_of(self._typed[reply]),
            )
            # A statement about the objection itself is allowed.
            and len(words & _words_of([self._typed[reply]])) < FEWEST_OWNED
            for reply in evidence
            if reply > at
            for utterance in self._spoken.get(reply, ())
        )

    def _is_mixed(self, evidence: Iterable[int]) -> bool:
        return any(
            statement.mixed
            for at in evidence
            for utterance in self._spoken.get(at, ())
            for statement in utterance.statements
        )

    def _has_read_outside(self, evidence: Sequence[int]) -> bool:
        return reached_out(self.turns, evidence[-1])

    def find_outdated(
        self,
        claims: Sequence[OutdatedMemory],
        memories: Sequence[Memory],
        session: str,
        visible_turns: Set[int],
    ) -> list[Overtaken]:
        """Return the model's claims about outdated memories that pass all checks.

        A later trusted turn must contain the quote. For the owner's decisions, preferences and
        relationships, the owner must have typed part of the evidence.
        """
        trusted = [
            at for at in visible_turns if at >= self.begin and self.turns[at].trust is Trust.TRUSTED
        ]
        # External text in the session might have influenced the model's claim.
        is_outside = self._has_read_outside([len(self.turns) - 1])
        accepted: dict[str, Overtaken] = {}
        for claim in claims:
            memory = memories[claim.known - 1] if claim.known <= len(memories) else None
            place = self.locate(claim.quote, trusted, is_typed=True)
            if memory is None or place is None:
                continue
            at = place.at
            replies = (index for index in visible_turns if index > at and index in self._typed)
            reply = None if at in self._typed else min(replies, default=None)
            evidence = [at] if reply is None else [at, reply]
            time = self.turns[at].time
            if time is None or time < memory.last_said:
                continue
            typed = [self._typed[index] for index in evidence if index in self._typed]
            texts = [self.turns[index].text for index in evidence]
            is_owners_rule = memory.speaker is Speaker.OWNER and memory.kind in _ENDED_BY_OWNER
            if is_owners_rule and not (typed and _is_about(memory, texts)):
                continue
            is_owners = bool(typed) and not (
                is_outside
                and not any(
                    _ends(sentence.text, memory)
                    for text in typed
                    for sentence in split(text)
                    if not is_asking(sentence.text)
                )
            )
            is_doubtful = memory.speaker is Speaker.OWNER and (
                (is_outside and not is_owners)
                or self._is_mixed(evidence)
                or (
                    memory.kind is Kind.PREFERENCE
                    and not _is_about(memory, typed if is_outside else texts)
                )
            )
            turns = tuple(self.turns[index].id for index in evidence)
            statement = Candidate(
                memory.kind,
                memory.subject,
                f"{NO_LONGER}{memory.content}",
                turns,
                confidence=Confidence.EXTRACTED,
            )
            accepted.setdefault(
                memory.id,
                Overtaken(
                    memory,
                    place.words,
                    statement,
                    Confirmation(time, session, turns),
                    is_owners,
                    is_doubtful,
                ),
            )
        return list(accepted.values())

    def _is_owners(self, kind: Kind, at: int, evidence: Sequence[int], *, is_nodded: bool) -> bool:
        if kind in _STEERING:
            # Mere agreement is enough for an instruction.
            return any(index in self._typed for index in evidence if index >= at)
        return not is_nodded and (
            at in self._typed or any(index > at for index in evidence if index in self._typed)
        )

    def _hold_reason(
        self, kind: Kind, content: str, place: Place, evidence: Sequence[int], *, is_nodded: bool
    ) -> tuple[Why | None, str]:
        language = language_of(content)
        terms = content_words(content, language)
        foreign, owned = len(terms & self._foreign), len(terms & self._owned)
        is_foreign = foreign > MOST_FOREIGN * len(terms) and owned < LEAST_OWNED * len(terms)
        if is_foreign or self._is_copied(content, self._outside):
            return Why.UNTRUSTED, "its words come from external text"
        is_rule = kind is Kind.PREFERENCE or reads_as_rule(content)
        if is_rule and self._is_copied(content, self._put_out):
            return Why.UNTRUSTED, "its words come from the output of a failed call"
        if kind in _STEERING and not any(at in self._typed for at in evidence if at >= place.at):
            return Why.UNPROVEN, "the owner neither stated nor accepted it"
        if is_nodded and is_rule:
            return (
                Why.UNTRUSTED,
                "almost none of its words are the owner's, and the agent had read external text",
            )
        if self._is_objected(content, place.at, evidence):
            return Why.UNPROVEN, "the owner objected to it"
        if self._is_other_option(content, evidence):
            return Why.UNPROVEN, "the owner chose another option"
        if any(language_of(self.turns[at].text) is language for at in evidence):
            if (missing := self._find_unsupported(content, evidence)) is not None:
                return Why.UNPROVEN, f"{missing} is not in its evidence"
            if self._support(content, evidence) < MIN_SUPPORT:
                return Why.UNPROVEN, "most of its words are not in its evidence"
        return None, ""

    def _is_nodded(self, content: str, evidence: Sequence[int]) -> bool:
        """Return True if the owner only agreed with an agent that had read external text."""
        if not self._has_read_outside(evidence):
            return False
        texts = self._statements(evidence)
        own, text_words = _word_sets(content, texts)
        shared = [own & words for words in text_words]
        is_ruled = any(
            common and reads_as_rule(text) for text, common in zip(texts, shared, strict=True)
        )
        return not is_ruled and len(frozenset[str]().union(*shared)) < min(FEWEST_OWNED, len(own))

    def _ends_unconfirmed(self, content: str, evidence: Sequence[int]) -> bool:
        """Return True if only an agent that has read external text reports a removal."""
        departures = find_removals(content) if self._has_read_outside(evidence) else []
        texts = self._statements(evidence)
        is_confirmed = any(
            find_removals(text)
            or binds(text, firm_words(text), content)
            or _removes(text, departures)
            for text in texts
        )
        return bool(departures) and not is_confirmed

    def _statements(self, evidence: Sequence[int]) -> list[str]:
        return [
            sentence.text
            for at in evidence
            for sentence in split(self._typed.get(at, ""))
            if not is_asking(sentence.text)
        ]

    def _is_copied(self, content: str, other_runs: Set[tuple[str, ...]]) -> bool:
        runs = _runs_of([content])
        return bool(runs) and 2 * len(runs & other_runs) >= len(runs)

    def _contains_quote(self, at: int, quote: str, *, is_typed: bool = False) -> bool:
        text = self._quotable(at, is_typed=is_typed)
        parts = [normalise(part) for part in _ELLIPSIS.split(quote)]
        return any(parts) and all(part in text for part in parts)

    def _quotable(self, at: int, *, is_typed: bool = False) -> str:
        if (at, is_typed) not in self._normalised:
            text = self.turns[at].text
            if is_typed and self.turns[at].speaker is Speaker.OWNER:
                text = without_pasted(text)
            self._normalised[at, is_typed] = normalise(f"{text} {self._typed.get(at, '')}")
        return self._normalised[at, is_typed]


def find_near(text: str, quote: str, share: float = MIN_NEAR_SHARE) -> str | None:
    """Return the passage that contains at least ``share`` of a quote's words in order, or ``None``."""
    quote_words, text_words = normalise(quote).split(), text.split()
    if len(quote_words) < _MIN_NEAR_WORDS or len(set(quote_words) & set(text_words)) < share * len(
        set(quote_words)
    ):
        return None
    blocks = SequenceMatcher(None, quote_words, text_words, autojunk=False).get_matching_blocks()[
        :-1
    ]
    if sum(block.size for block in blocks) < share * len(quote_words):
        return None
    start, end = blocks[0].b, blocks[-1].b + blocks[-1].size
    return (
        " ".join(text_words[start:end])
        if end - start <= _MAX_NEAR_STRETCH * len(quote_words)
        else None
    )


def find_removals(text: str) -> list[frozenset[str]]:
    """Return the things that ``text`` reports as removed, each as a set of words."""
    return [departure.subject for departure in read(text).departures]


def _removes(text: str, things: Iterable[Collection[str]]) -> bool:
    language = language_of(text)
    words = content_words(text, language)
    is_order = bool(language.reversal.removal.search(language.trim(text)))
    return is_order and any(not words.isdisjoint(thing) for thing in things)


def _word_sets(content: str, texts: Iterable[str]) -> tuple[frozenset[str], list[frozenset[str]]]:
    if own := content_words(content):
        return own, [content_words(text) for text in texts]
    return frozenset(words(content)), [frozenset(words(text)) for text in texts]


def _is_trusted_agents(turns: Sequence[Turn], at: int) -> bool:
    turn = turns[at]
    is_message = turn.speaker is Speaker.AGENT and not turn.flags & (_UNSPOKEN | Flag.INJECTED)
    return turn.trust is Trust.TRUSTED and (is_message or is_accepted_plan(turns, at))


def _calls(turns: Sequence[Turn]) -> list[str]:
    return [
        " ".join(
            [call.name, call.input, call.outcome or "", call.error or "", *call.paths, *call.made]
        )
        for turn in turns
        if turn.trust is Trust.TRUSTED
        for call in turn.tool_calls
    ]


def _outside_errors(turns: Sequence[Turn]) -> list[str]:
    return [
        _output(call)
        for turn in turns
        for call in turn.tool_calls
        if call.failed and brings_outside(call)
    ]


def _output(call: ToolCall) -> str:
    return f"{call.outcome or ''} {call.error or ''}"


def _without_forms(turn: Turn) -> str:
    text = turn.text
    for form in forms(text) if turn.speaker is Speaker.OWNER else ():
        text = text.replace(form.question, " ")
    return text


def _runs_of(texts: Iterable[str]) -> frozenset[tuple[str, ...]]:
    runs: set[tuple[str, ...]] = set()
    for text in texts:
        words = [
            part
            for word in _WORD.findall(text.lower())
            # Text without spaces is split into characters.
            for part in (word if word > "\u2e7f" else [word])
        ]
        runs.update(zip(*(words[at:] for at in range(_RUN_WORDS)), strict=False))
    return frozenset(runs)


def _words_of(texts: Iterable[str]) -> frozenset[str]:
    return frozenset[str]().union(*(content_words(text) for text in texts))


def _tags(subject: str) -> tuple[str, ...]:
    topical = read(subject).words
    tokens = (token.text.lower() for token in read(subject).tokens if token.stem in topical)
    return tuple(dict.fromkeys(token for token in tokens if _TAG.fullmatch(token)))[:MAX_TAGS]


# -- Known memories that a session outdates --------------------------------------------------------


def _is_about(memory: Memory, texts: Sequence[str]) -> bool:
    own = language_of(memory.content)
    # Words in different languages cannot be compared.
    return any(
        language_of(text) is not own or leaves_out(memory.content, text) < 1 for text in texts
    )


def _ends(text: str, memory: Memory) -> bool:
    memory_words = read(memory.content).words
    if any(departure <= memory_words for departure in find_removals(text)):
        return True
    claim = replace(memory, subject="", content=text, canonical_key=None)
    return memories_judge.judge(memory, claim, None, calibration.calibration_of(None)).relation in (
        memories_judge.Relation.SUPERSEDES,
        memories_judge.Relation.DOUBTS,
    )


# -- Model calls -----------------------------------------------------------------------------------


A = TypeVar("A", bound=msgspec.Struct)

_MAX_FAILURES = 6
_SCHEMA_MODES = ("schema", "tool")
_REPAIRS = {MEMORIES: tidy, OWNER_TURNS: tidy_turns, VERDICTS: tidy_verdicts}

_MAX_FIRST_FAILURES = 3
"""Maximum number of failures of a model that has never given a usable answer."""

FAILURES = (ModelUnavailableError, ModelRefusedError, BudgetSpentError, UnusableAnswerError)
"""Errors of a model call after which rules are used instead."""


class Caller:
    """A wrapper that counts a model's calls and gives up after repeated failures.

    ``problem``: the latest error. ``stopped``: the error that ended the calls.
    """

    def __init__(self, model: LanguageModel) -> None:
        self.name = model.name
        self.capabilities = model.capabilities
        self.tokens = Tokens()
        self.calls = 0
        self.usable_answers = 0
        self.was_cut = False
        self.stopped: NacreError | None = None
        self.problem: NacreError | None = None
        self._model = model
        self._failures = 0
        self._was_spent = False

    def ask(self, prompt: Prompt, answer: type[A]) -> A | None:
        """Ask the model and return the parsed answer.

        If the call fails, return ``None`` and set ``problem``.
        """
        if self.stopped:
            return None
        try:
            result = ask(self, prompt, answer)
        except FAILURES as error:
            self.problem = error
            self._failures += 1
            never_usable = isinstance(error, UnusableAnswerError) and not self.usable_answers
            if not _is_transient(error) or self._failures >= (
                _MAX_FIRST_FAILURES if never_usable else _MAX_FAILURES
            ):
                self.stopped = error
            return None
        self._failures = 0
        self.usable_answers += 1
        return result

    def complete(self, prompt: Prompt) -> Completion:
        """Call the model once. If it does not support schemas, repair small errors in its answer."""
        completion = self._model.complete(prompt)
        self.calls += not completion.is_repeated
        self.tokens += completion.tokens
        self.was_cut = self.was_cut or completion.is_cut
        repair = _REPAIRS.get(prompt.name)
        if repair is None or self.capabilities.answers in _SCHEMA_MODES:
            return completion
        return replace(completion, text=repair(completion.text))

    def close(self) -> None:
        self._model.close()

    @property
    def is_over(self) -> bool:
        """True if calls about other sessions would also fail."""
        return self.stopped is not None and not (
            self.usable_answers and _is_transient(self.stopped)
        )

    @property
    def is_spent(self) -> bool:
        """True if the budget did not allow a call."""
        return isinstance(self.stopped, BudgetSpentError) or self._was_spent

    def try_smaller(self) -> None:
        """Allow calls again after one exceeded the budget, because smaller calls may still fit."""
        if isinstance(self.stopped, BudgetSpentError):
            self.stopped, self._was_spent = None, True

    @property
    def is_useless(self) -> bool:
        """True if the model never answered in the requested format."""
        return isinstance(self.stopped, UnusableAnswerError | UnreadableModelError)


def _is_transient(error: NacreError) -> bool:
    return isinstance(error, UnusableAnswerError) or (
        isinstance(error, ModelUnavailableError) and error.retry
    )
