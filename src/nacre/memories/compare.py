"""What a memory claims, as a model tells it: what is asked, what of the answer holds, which claims are of one thing."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import msgspec

from nacre.base.text import normalise, shorten
from nacre.base.times import shown_day
from nacre.errors import AnswerUnusable
from nacre.home.change import Change
from nacre.home.home import Home
from nacre.llm.local_model import calibration_of
from nacre.memories.judge import Comparison, Relation, compare, last_said, says_done
from nacre.memories.placement import confirm, put, rarity_of
from nacre.values.memory import Claim, Kind, Memory, Retirement
from nacre.values.models import Prompt
from nacre.values.reports import StoreOutcome
from nacre.values.session import Speaker, Task

OWNER = "owner"
"""The entity that a person is who speaks of themselves."""

MOST_HINTS = 50
"""So many known entities are told to a model (seed facts 1.3)."""

LONGEST_TEXT = 1_500
"""Characters of a memory that a model reads: what it claims and what ends it stands at the beginning."""

_LONGEST_NAME = 80
_LONGEST_OBJECT = 300
_OUTPUT_TOKENS = 400
_SAME_ATTRIBUTE = 0.6
_SELF = frozenset(
    {"user", "the-user", "owner", "the-owner", "i", "me", "my", "myself", "我", "用户"}
)
_ARTICLE = re.compile(r"^(?:the|an?)-(?=.)")
_NO_NAME = re.compile(r"[^\w./@+#-]+")
_NO_WORD = re.compile(r"[\W_]+")
_OF_NO_WEIGHT = frozenset({"change", "changes", "owner", "owners", "ownership", "owned", "own"})
_ARY = "ary"
_SHORTEST_STEM = 3


class ClaimAnswer(msgspec.Struct, forbid_unknown_fields=True):
    """What a model says a memory claims; empty texts where it claims nothing."""

    entity: str
    attribute: str
    predicate: str
    object: str
    confidence: float


def claim_prompt(memory: Memory, known: Sequence[str], answer: dict[str, Any]) -> Prompt:
    """Ask what a memory claims; ``known`` are entities that others are about, ``answer`` the schema."""
    return Prompt(
        Task.CLAIMS,
        system("claim-1"),
        f"The memory:\n{as_data(memory)}",
        answer,
        name="claim",
        shared=f"Known entities: {json.dumps(list(known)[:MOST_HINTS], ensure_ascii=False)}",
        version="claim/1",
        output_tokens=_OUTPUT_TOKENS,
    )


def claim_of(answer: ClaimAnswer) -> Claim | None:
    """The claim in an answer, its names in their one form; ``None`` where there is none."""
    entity, attribute = entity_name(answer.entity), attribute_name(answer.attribute)
    said = shorten(answer.object, _LONGEST_OBJECT)
    if not (entity and attribute and said):
        return None
    return Claim(
        entity,
        attribute,
        attribute_name(answer.predicate),
        said,
        round(share(answer.confidence), 2),
    )


def share(number: float) -> float:
    """A number between 0 and 1; 0 where it is none."""
    return min(1.0, max(0.0, number)) if number == number else 0.0


def entity_name(text: str) -> str:
    """An entity in its one form: lower case, hyphens between words; whoever speaks of themselves is the owner."""
    text = unicodedata.normalize("NFKC", text).strip().lower().replace("_", "-")
    name = _ARTICLE.sub("", _NO_NAME.sub("-", text).strip("-."))[:_LONGEST_NAME].strip("-")
    return OWNER if name in _SELF or f"the-{name}" in _SELF else name


def attribute_name(text: str) -> str:
    """An attribute or predicate in its one form: snake case."""
    return (
        _NO_WORD.sub("_", unicodedata.normalize("NFKC", text).lower())
        .strip("_")[:_LONGEST_NAME]
        .strip("_")
    )


def are_one_attribute(one: str, other: str) -> bool:
    """Whether two attributes are one: alike in six of ten words (Jaccard .6), those of no weight and endings aside."""
    mine, theirs = _stems(one), _stems(other)
    return one == other or (
        bool(mine & theirs) and len(mine & theirs) >= _SAME_ATTRIBUTE * len(mine | theirs)
    )


def _stems(attribute: str) -> frozenset[str]:
    words = [word for word in attribute.split("_") if word and word not in _OF_NO_WEIGHT]
    return frozenset(
        word.removesuffix(_ARY) if len(word) - len(_ARY) >= _SHORTEST_STEM else word
        for word in words
    )


def as_data(memory: Memory, **more: object) -> str:
    """A memory for a prompt, as one line of JSON: nothing that it says can end the quotation it stands in."""
    values = {**more, "kind": memory.kind.value, "subject": shorten(memory.subject, 200)}
    return json.dumps({**values, "text": shorten(memory.content, LONGEST_TEXT)}, ensure_ascii=False)


@cache
def system(name: str) -> str:
    """The prompt in a file of ``prompts/``."""
    return files(__package__).joinpath(f"prompts/{name}.md").read_text(encoding="utf-8")


# ----------------------------------------------------------------------------
# What a model says of two memories that may be at odds, and what becomes of it: code decides that.


AUTO_SUPERSEDE = 0.85
"""Surer than this, and a fact or preference is superseded without asking (``contradiction.auto_supersede``)."""

UNSURE = 0.75
"""No surer than this, and a person has to say (seed facts 1.3)."""

MOST_REASON = 200
_SETTLED = (Kind.DECISION, Kind.LESSON)
_REPLACEABLE = (Kind.FACT, Kind.PREFERENCE)
_SHORTEST_QUOTE = 4
_TOKENS_A_VERDICT = 150


class Bearing(StrEnum):
    """How two memories stand to each other, as a model sees it."""

    SUPERSEDES = "supersedes"
    CONTRADICTS = "contradicts"
    COEXISTS = "coexists"
    UNRELATED = "unrelated"


class Resolution(StrEnum):
    """What becomes of two memories: the earlier one is superseded, a person has to say, both hold."""

    SUPERSEDED = "superseded"
    PENDING = "pending"
    COEXIST = "coexist"


class PairAnswer(msgspec.Struct, forbid_unknown_fields=True):
    """What a model says of one numbered memory."""

    number: int
    relation: Literal["supersedes", "contradicts", "coexists", "unrelated"]
    confidence: float
    explanation: str


class JudgeAnswer(msgspec.Struct, forbid_unknown_fields=True):
    """One verdict a number."""

    verdicts: list[PairAnswer]


class DoneAnswer(msgspec.Struct, forbid_unknown_fields=True):
    """A todo that is done, and the words that say so."""

    number: int
    quote: str


class TodosAnswer(msgspec.Struct, forbid_unknown_fields=True):
    """The todos that are done."""

    done: list[DoneAnswer]


@dataclass(frozen=True, slots=True)
class Judgement:
    """How a pair was judged, how sure that is (0 to 1), and why in a sentence."""

    bearing: Bearing
    confidence: float
    explanation: str = ""

    @property
    def says_both_hold(self) -> bool:
        """Whether both surely hold, so that nobody need doubt it."""
        return (
            self.bearing in (Bearing.COEXISTS, Bearing.UNRELATED)
            and self.confidence > AUTO_SUPERSEDE
        )


def judge_prompt(memory: Memory, others: Sequence[Memory], answer: dict[str, Any]) -> Prompt:
    """Ask how others stand to a memory; each comes with the day on which it was said last, and whether that was later.

    The order is the one by which code decides what ends what; of one day, the days do not tell it.
    """
    lines = [
        _told(other, number=number, order="later" if other.is_said_after(memory) else "earlier")
        for number, other in enumerate(others, 1)
    ]
    text = f"The memory in question:\n{_told(memory)}\n\nThe others:\n" + "\n".join(lines)
    return Prompt(
        Task.CONTRADICTION,
        system("judge-1"),
        text,
        answer,
        name="judgement",
        version="judge/1",
        output_tokens=200 + _TOKENS_A_VERDICT * len(others),
    )


def todos_prompt(memory: Memory, todos: Sequence[Memory], answer: dict[str, Any]) -> Prompt:
    """Ask which open todos a memory shows to be done."""
    lines = "\n".join(as_data(todo, number=number) for number, todo in enumerate(todos, 1))
    text = f"The memory:\n{as_data(memory)}\n\nOpen todos:\n{lines}"
    return Prompt(
        Task.TODOS,
        system("todos-1"),
        text,
        answer,
        name="done",
        version="todos/1",
        output_tokens=200 + _TOKENS_A_VERDICT * len(todos),
    )


def _told(memory: Memory, **more: object) -> str:
    since, until = memory.valid.since, memory.valid.until
    known = {"holds_from": since and since.isoformat(), "holds_until": until and until.isoformat()}
    dates = {name: day for name, day in known.items() if day}
    return as_data(
        memory, **more, said=shown_day(memory.last_said), by=memory.speaker.value, **dates
    )


def judgements(answer: JudgeAnswer, count: int) -> list[Judgement]:
    """The verdicts of an answer, in order. Raises AnswerUnusable where one is missing or told twice."""
    by_number = {one.number: one for one in answer.verdicts}
    if len(by_number) != len(answer.verdicts) or set(by_number) != set(range(1, count + 1)):
        raise AnswerUnusable("the verdicts are not one for each memory")
    found = (by_number[number] for number in range(1, count + 1))
    return [
        Judgement(
            Bearing(one.relation),
            round(share(one.confidence), 2),
            shorten(one.explanation, MOST_REASON),
        )
        for one in found
    ]


def finished(
    answer: TodosAnswer, memory: Memory, todos: Sequence[Memory]
) -> list[tuple[Memory, str]]:
    """The todos that are done by the words of a memory: each with its quote, which stands there and is not negated."""
    found: dict[int, tuple[Memory, str]] = {}
    for one in answer.done:
        quote = one.quote.strip().strip("\"'“”‘’…")
        if 1 <= one.number <= len(todos) and _is_said(quote, memory):
            found.setdefault(one.number, (todos[one.number - 1], shorten(quote, MOST_REASON)))
    return list(found.values())


def _is_said(quote: str, memory: Memory) -> bool:
    """Whether a memory says so, and no negation within 40 characters before takes it back."""
    told, said = normalise(quote), normalise(memory.content)
    if len(told) < _SHORTEST_QUOTE or told not in said:
        return False
    start = memory.content.find(quote)
    stretch = (start, start + len(quote)) if start >= 0 else (0, None)
    return says_done(memory.content, *stretch) is not False


def resolve(
    earlier: Memory, later: Memory, judged: Judgement, sure: float = AUTO_SUPERSEDE
) -> Resolution:
    """What becomes of two memories that were judged (seed facts 1.3), by the order in which they were said.

    What happened stays true. What is sure supersedes a fact or a preference of no greater importance; what a decision
    or a lesson says, and what is no surer than .75, a person settles. So they do where only an agent says otherwise
    than the owner, and where the later one speaks of an earlier time.
    """
    if earlier.kind is Kind.EVENT or judged.bearing in (Bearing.COEXISTS, Bearing.UNRELATED):
        return Resolution.COEXIST
    is_blocked = later.importance < earlier.importance
    is_sure = judged.bearing is Bearing.SUPERSEDES and judged.confidence > sure
    if is_sure and not is_blocked and earlier.kind in _REPLACEABLE:
        return Resolution.PENDING if _needs_a_person(earlier, later) else Resolution.SUPERSEDED
    if judged.bearing is Bearing.CONTRADICTS or judged.confidence <= UNSURE:
        return Resolution.PENDING
    return Resolution.PENDING if is_blocked or earlier.kind in _SETTLED else Resolution.COEXIST


def _needs_a_person(earlier: Memory, later: Memory) -> bool:
    is_only_agents = not later.is_worded and earlier.speaker is Speaker.OWNER
    since = (earlier.valid.since, later.valid.since)
    return is_only_agents or (since[0] is not None and since[1] is not None and since[1] < since[0])


# ----------------------------------------------------------------------------
# What only vectors tell: memories made just now are compared by meaning, and linked with the nearest.


AUTO_LINKS = 3
"""So many nearest memories are linked (seed facts 2.1)."""

_NEIGHBOURS = 24


def settle(home: Home, rows: Sequence[int]) -> dict[str, StoreOutcome]:
    """Link the memories of some rows with those nearest to them, and compare those that are new with their neighbours.

    Returns what became of those that something became of. Links of similarity are derived: they lie in the index only.
    """
    found = home.memories.by_rows(rows)
    memories = {row: one for row, one in found.items() if not one.superseded_by}
    near = {row: _neighbours(home, row, memory) for row, memory in memories.items()}
    limits = calibration_of(home.vectors.model(), home.vectors.seen())
    with home.database.transaction():
        for row, memory in memories.items():
            home.database.yield_write_lock()
            alike = {other.id: cosine for other, cosine in near[row] if cosine >= limits.link}
            home.comparisons.link_alike(memory.id, dict(list(alike.items())[:AUTO_LINKS]))
    waiting = home.comparisons.waiting(rows)
    if not waiting:
        return {}
    row_of = {memory.id: row for row, memory in memories.items()}
    outcomes = {}
    with home.change("settle", why="compared by meaning") as change, change.transaction():
        for memory_id in home.comparisons.waiting(rows):
            if change.yield_locks():
                waiting = home.comparisons.waiting(rows)
            if memory_id not in waiting:
                continue  # another process was faster
            home.comparisons.settled(memory_id)
            outcome = _settle(change, memory_id, near.get(row_of.get(memory_id, 0), []))
            if outcome:
                outcomes[memory_id] = outcome
    return outcomes


def _neighbours(home: Home, row: int, memory: Memory) -> list[tuple[Memory, float]]:
    """Active memories of the same project, the nearest first."""
    found = {one.row: one.cosine for one in home.vectors.near_memory(row, limit=_NEIGHBOURS)}
    others = home.memories.by_rows(list(found))
    return [
        (others[other], cosine)
        for other, cosine in found.items()
        if other in others
        and others[other].shares_place(memory)
        and not others[other].superseded_by
    ]


def _settle(
    change: Change, memory_id: str, near: Sequence[tuple[Memory, float]]
) -> StoreOutcome | None:
    """Compare a memory anew, now that its vector tells its neighbours."""
    home = change.home
    memory = home.memories.find(memory_id)
    cosines = {other.id: cosine for other, cosine in near}
    present = [home.memories.find(other) for other in cosines]
    others = [other for other in present if other and other.is_active]
    if memory is None or not memory.is_active or not others:
        return None
    vectors = home.vectors
    found = compare(
        memory,
        others,
        cosines=cosines,
        model=vectors.model(),
        seen=vectors.seen(),
        rarity=rarity_of(home),
    )
    again = next((one for one in found if one.repeats), None)
    if again:
        return _absorb(change, memory, again)
    if any(one.verdict.relation not in (Relation.RELATED, Relation.UNRELATED) for one in found):
        return put(change, memory, found)
    return None


def _absorb(change: Change, memory: Memory, again: Comparison) -> StoreOutcome:
    """One of two that say the same goes to ``retired/``: the later one, and the other keeps where it was said."""
    kept, gone = again.other, memory
    if last_said(kept) > last_said(gone):
        kept, gone = gone, kept
    if gone.speaker is Speaker.OWNER:
        confirm(change, kept, gone)
    reason = f"says the same as {kept.id}"
    retired = replace(gone, retired=Retirement(change.home.now(), reason))
    change.put([retired], [change.entry("retire", memory=gone.id, reason=reason)])
    return StoreOutcome("known", kept.id, again.verdict.reason)
