"""Extract claims, judge and resolve contradictions, and compare memories by vectors."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Literal

from nacre.base.frozen import frozen
from nacre.base.text import normalise, shorten
from nacre.base.times import shown_day
from nacre.errors import UnusableAnswerError
from nacre.home.change import Change
from nacre.home.home import Home
from nacre.llm.calibration import calibration_of
from nacre.llm.failures import Schema, schema_of
from nacre.memories.judge import Relation, compare, says_done, system
from nacre.memories.placement import confirm, put, rarity_of
from nacre.values.memory import Claim, Kind, Memory, Retirement
from nacre.values.models import Prompt
from nacre.values.reports import StoreOutcome
from nacre.values.session import Task

OWNER = "owner"
"""Entity name for speakers who refer to themselves."""

MOST_HINTS = 50
"""Maximum number of known entities in a prompt."""

LONGEST_TEXT = 1_500
"""Maximum number of characters of a memory in a prompt. The claim and its expiry are near the start."""

_MAX_NAME_CHARACTERS = 80
_MAX_OBJECT_CHARACTERS = 300
_MAX_OUTPUT_TOKENS = 400
_MIN_COMMON_WORDS = 0.6
_SELF = frozenset(
    {"user", "the-user", "owner", "the-owner", "i", "me", "my", "myself", "我", "用户"}
)
_ARTICLE = re.compile(r"^(?:the|an?)-(?=.)")
_NOT_IN_NAME = re.compile(r"[^\w./@+#-]+")
_NOT_IN_WORD = re.compile(r"[\W_]+")
_IGNORED_WORDS = frozenset({"change", "changes", "owner", "owners", "ownership", "owned", "own"})
_ARY = "ary"
_MIN_STEM_CHARACTERS = 3


class ClaimAnswer(Schema):
    """What a model says a memory claims; empty texts where it claims nothing."""

    entity: str
    attribute: str
    predicate: str
    object: str
    confidence: float


def claim_prompt(memory: Memory, entities: Sequence[str]) -> Prompt:
    """Return the prompt that asks for a memory's claim."""
    return Prompt(
        Task.CLAIMS,
        system("claim-1"),
        f"The memory:\n{as_data(memory)}",
        schema_of(ClaimAnswer),
        name="claim",
        shared=f"Known entities: {json.dumps(list(entities)[:MOST_HINTS], ensure_ascii=False)}",
        version="claim/1",
        output_tokens=_MAX_OUTPUT_TOKENS,
    )


def claim_of(answer: ClaimAnswer) -> Claim | None:
    """Return the normalised claim in a model's answer, or ``None``."""
    entity, attribute = entity_name(answer.entity), attribute_name(answer.attribute)
    value = shorten(answer.object, _MAX_OBJECT_CHARACTERS)
    if not (entity and attribute and value):
        return None
    return Claim(
        entity,
        attribute,
        attribute_name(answer.predicate),
        value,
        round(share(answer.confidence), 2),
    )


def share(number: float) -> float:
    """Clamp a number to 0 to 1. NaN becomes 0."""
    return min(1.0, max(0.0, number)) if number == number else 0.0


def entity_name(text: str) -> str:
    """Normalise an entity: lower case, with hyphens.

    Speakers referring to themselves become the owner.
    """
    text = unicodedata.normalize("NFKC", text).strip().lower().replace("_", "-")
    name = _ARTICLE.sub("", _NOT_IN_NAME.sub("-", text).strip("-."))[:_MAX_NAME_CHARACTERS].strip(
        "-"
    )
    return OWNER if name in _SELF or f"the-{name}" in _SELF else name


def attribute_name(text: str) -> str:
    """Normalise an attribute or predicate to snake case."""
    return (
        _NOT_IN_WORD.sub("_", unicodedata.normalize("NFKC", text).lower())
        .strip("_")[:_MAX_NAME_CHARACTERS]
        .strip("_")
    )


def are_one_attribute(attribute: str, other: str) -> bool:
    """Return True if two attributes share most words (Jaccard index of .6).

    Insignificant words and endings are ignored.
    """
    stems, other_stems = _stems(attribute), _stems(other)
    return attribute == other or (
        bool(stems & other_stems)
        and len(stems & other_stems) >= _MIN_COMMON_WORDS * len(stems | other_stems)
    )


def _stems(attribute: str) -> frozenset[str]:
    words = [word for word in attribute.split("_") if word and word not in _IGNORED_WORDS]
    return frozenset(
        word.removesuffix(_ARY) if len(word) - len(_ARY) >= _MIN_STEM_CHARACTERS else word
        for word in words
    )


def as_data(memory: Memory, **more: object) -> str:
    """Return a memory as one line of JSON, with its text escaped."""
    values = {**more, "kind": memory.kind.value, "subject": shorten(memory.subject, 200)}
    return json.dumps({**values, "text": shorten(memory.content, LONGEST_TEXT)}, ensure_ascii=False)


# -- Contradictions ------------------------------------------------------------
#
# A model judges a pair of memories, and code decides the consequences.


AUTO_SUPERSEDE = 0.85
"""Confidence above which a fact or preference is superseded without asking the owner."""

UNSURE = 0.75
"""Maximum confidence at which the owner decides."""

MOST_REASON = 200
_OWNER_DECIDES = (Kind.DECISION, Kind.LESSON)
_REPLACEABLE = (Kind.FACT, Kind.PREFERENCE)
_MIN_QUOTE_CHARACTERS = 4
_TOKENS_PER_VERDICT = 150


class Bearing(StrEnum):
    """The relation of two memories according to a model."""

    SUPERSEDES = "supersedes"
    CONTRADICTS = "contradicts"
    COEXISTS = "coexists"
    UNRELATED = "unrelated"


class Resolution(StrEnum):
    """What happens to two judged memories: the earlier is superseded, the owner decides, or both stay valid."""

    SUPERSEDED = "superseded"
    PENDING = "pending"
    COEXIST = "coexist"


class PairAnswer(Schema):
    """What a model says of one numbered memory."""

    number: int
    relation: Literal["supersedes", "contradicts", "coexists", "unrelated"]
    confidence: float
    explanation: str


class JudgeAnswer(Schema):
    """One verdict a number."""

    verdicts: list[PairAnswer]


class DoneAnswer(Schema):
    """A todo that is done, and the words that say so."""

    number: int
    quote: str


class TodosAnswer(Schema):
    """The todos that are done."""

    done: list[DoneAnswer]


@frozen
class Judgement:
    """A verdict on a pair of memories, with confidence (0 to 1) and a one-sentence explanation."""

    bearing: Bearing
    confidence: float
    explanation: str = ""

    @property
    def says_both_hold(self) -> bool:
        """True if the model is sure that both memories are valid."""
        return (
            self.bearing in (Bearing.COEXISTS, Bearing.UNRELATED)
            and self.confidence > AUTO_SUPERSEDE
        )


def judge_prompt(memory: Memory, others: Sequence[Memory]) -> Prompt:
    """Return the prompt that asks how other memories relate to ``memory``.

    The prompt marks each other memory as earlier or later. Dates alone would not order statements
    of the same day.
    """
    lines = [
        _as_dated_data(
            other, number=number, order="later" if other.is_said_after(memory) else "earlier"
        )
        for number, other in enumerate(others, 1)
    ]
    text = f"The memory in question:\n{_as_dated_data(memory)}\n\nThe others:\n" + "\n".join(lines)
    return Prompt(
        Task.CONTRADICTION,
        system("judge-1"),
        text,
        schema_of(JudgeAnswer),
        name="judgement",
        version="judge/1",
        output_tokens=200 + _TOKENS_PER_VERDICT * len(others),
    )


def todos_prompt(memory: Memory, todos: Sequence[Memory]) -> Prompt:
    """Return the prompt that asks which open todos a memory says are done."""
    lines = "\n".join(as_data(todo, number=number) for number, todo in enumerate(todos, 1))
    text = f"The memory:\n{as_data(memory)}\n\nOpen todos:\n{lines}"
    return Prompt(
        Task.TODOS,
        system("todos-1"),
        text,
        schema_of(TodosAnswer),
        name="done",
        version="todos/1",
        output_tokens=200 + _TOKENS_PER_VERDICT * len(todos),
    )


def _as_dated_data(memory: Memory, **more: object) -> str:
    since, until = memory.valid.since, memory.valid.until
    days = {"holds_from": since and since.isoformat(), "holds_until": until and until.isoformat()}
    dates = {name: day for name, day in days.items() if day}
    return as_data(
        memory, **more, said=shown_day(memory.last_said), by=memory.speaker.value, **dates
    )


def judgements(answer: JudgeAnswer, count: int) -> list[Judgement]:
    """Return an answer's verdicts, ordered by number.

    Raises UnusableAnswerError if a verdict is missing or duplicated.
    """
    by_number = {verdict.number: verdict for verdict in answer.verdicts}
    if len(by_number) != len(answer.verdicts) or set(by_number) != set(range(1, count + 1)):
        raise UnusableAnswerError("the answer does not have exactly one verdict for each memory")
    ordered = (by_number[number] for number in range(1, count + 1))
    return [
        Judgement(
            Bearing(verdict.relation),
            round(share(verdict.confidence), 2),
            shorten(verdict.explanation, MOST_REASON),
        )
        for verdict in ordered
    ]


def find_finished(
    answer: TodosAnswer, memory: Memory, todos: Sequence[Memory]
) -> list[tuple[Memory, str]]:
    """Return the todos that a memory says are done, each with a quote. Negated quotes do not count."""
    done: dict[int, tuple[Memory, str]] = {}
    for item in answer.done:
        quote = item.quote.strip().strip("\"'“”‘’…")
        if 1 <= item.number <= len(todos) and _is_said(quote, memory):
            done.setdefault(item.number, (todos[item.number - 1], shorten(quote, MOST_REASON)))
    return list(done.values())


def _is_said(quote: str, memory: Memory) -> bool:
    """Return True if a memory contains the quote without a negation in the preceding 40 characters."""
    plain_quote, plain_text = normalise(quote), normalise(memory.content)
    if len(plain_quote) < _MIN_QUOTE_CHARACTERS or plain_quote not in plain_text:
        return False
    start = memory.content.find(quote)
    span = (start, start + len(quote)) if start >= 0 else (0, None)
    return says_done(memory.content, *span) is not False


def resolve(
    earlier: Memory, later: Memory, judgement: Judgement, sure: float = AUTO_SUPERSEDE
) -> Resolution:
    """Decide whether a later memory supersedes an earlier one, or whether the owner must decide.

    A memory is superseded only if the judgement's confidence is above ``sure``.
    """
    if earlier.kind is Kind.EVENT or judgement.bearing in (Bearing.COEXISTS, Bearing.UNRELATED):
        return Resolution.COEXIST
    is_blocked = later.importance < earlier.importance
    is_sure = judgement.bearing is Bearing.SUPERSEDES and judgement.confidence > sure
    if is_sure and not is_blocked and earlier.kind in _REPLACEABLE:
        return Resolution.PENDING if _needs_owner(earlier, later) else Resolution.SUPERSEDED
    if judgement.bearing is Bearing.CONTRADICTS or judgement.confidence <= UNSURE:
        return Resolution.PENDING
    return (
        Resolution.PENDING if is_blocked or earlier.kind in _OWNER_DECIDES else Resolution.COEXIST
    )


def _needs_owner(earlier: Memory, later: Memory) -> bool:
    is_only_agents = not later.is_worded and earlier.is_owners
    since = (earlier.valid.since, later.valid.since)
    return is_only_agents or (since[0] is not None and since[1] is not None and since[1] < since[0])


# -- Comparison by vectors -----------------------------------------------------


AUTO_LINKS = 3
"""Number of nearest memories to link."""

_MAX_NEIGHBOURS = 24


def settle(home: Home, rows: Sequence[int]) -> dict[str, StoreOutcome]:
    """Link memories to their nearest neighbours, and compare new memories with these.

    Return the outcome for each changed memory. The links exist only in the index, not in files.
    """
    memories_by_row = home.memories.by_rows(rows)
    memories = {row: memory for row, memory in memories_by_row.items() if not memory.superseded_by}
    near = {row: _neighbours(home, row, memory) for row, memory in memories.items()}
    limits = calibration_of(home.vectors.model(), home.vectors.seen())
    with home.transaction():
        for row, memory in memories.items():
            home.database.yield_write_lock()
            alike = {other.id: cosine for other, cosine in near[row] if cosine >= limits.link}
            home.comparisons.link_alike(memory.id, dict(list(alike.items())[:AUTO_LINKS]))
    pending = home.comparisons.waiting(rows)
    if not pending:
        return {}
    row_of = {memory.id: row for row, memory in memories.items()}
    outcomes = {}
    with home.change("settle", why="compared by similarity") as change, change.transaction():
        for memory_id in home.comparisons.waiting(rows):
            if change.yield_locks():
                pending = home.comparisons.waiting(rows)
            if memory_id not in pending:
                continue  # handled by another process
            home.comparisons.settled(memory_id)
            outcome = _settle(change, memory_id, near.get(row_of.get(memory_id, 0), []))
            if outcome:
                outcomes[memory_id] = outcome
    return outcomes


def _neighbours(home: Home, row: int, memory: Memory) -> list[tuple[Memory, float]]:
    cosines = {hit.row: hit.cosine for hit in home.vectors.near_memory(row, limit=_MAX_NEIGHBOURS)}
    others = home.memories.by_rows(list(cosines))
    return [
        (others[other], cosine)
        for other, cosine in cosines.items()
        if other in others
        and others[other].shares_place(memory)
        and not others[other].superseded_by
    ]


def _settle(
    change: Change, memory_id: str, near: Sequence[tuple[Memory, float]]
) -> StoreOutcome | None:
    home = change.home
    memory = home.memories.find(memory_id)
    cosines = {other.id: cosine for other, cosine in near}
    present = [home.memories.find(other) for other in cosines]
    others = [other for other in present if other and other.is_active]
    if memory is None or not memory.is_active or not others:
        return None
    vectors = home.vectors
    comparisons = compare(
        memory,
        others,
        cosines=cosines,
        model=vectors.model(),
        seen=vectors.seen(),
        rarity=rarity_of(home),
    )
    repeated = next((comparison for comparison in comparisons if comparison.repeats), None)
    if repeated:
        remaining, absorbed = repeated.other, memory
        if remaining.last_said > absorbed.last_said:
            remaining, absorbed = absorbed, remaining
        if absorbed.is_owners:
            confirm(change, remaining, absorbed)
        reason = f"says the same as {remaining.id}"
        retired = replace(absorbed, retired=Retirement(change.home.now(), reason))
        change.put([retired], [change.entry("retire", memory=absorbed.id, reason=reason)])
        return StoreOutcome("known", remaining.id, repeated.verdict.reason)
    if any(
        comparison.verdict.relation not in (Relation.RELATED, Relation.UNRELATED)
        for comparison in comparisons
    ):
        return put(change, memory, comparisons)
    return None
