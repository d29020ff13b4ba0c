"""Compare statements and decide what a new memory means for stored memories.

Without a model, only clear cases are decided. Two statements are the same if their words are equal,
or if their vectors are close and their numbers, names and negations are equal. A statement supersedes
an earlier statement if it says that something rare in the earlier statement is gone, or if it gives
a different value, such as a version. If an earlier statement might be outdated, the owner decides. In
all other cases, both are kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from difflib import SequenceMatcher
from enum import StrEnum
from functools import cache, cached_property
from importlib.resources import files
from typing import Literal

import msgspec

from nacre.base.frozen import frozen
from nacre.base.ids import content_hash
from nacre.base.text import is_unspaced, normalise, one_line, shorten, title_of, visible
from nacre.base.times import day_of, shown_day
from nacre.errors import EditConflictError
from nacre.home.change import Change
from nacre.home.home import Home
from nacre.home.operations import apply_intents
from nacre.llm import minilm
from nacre.llm.calibration import Calibration, Seen, calibration_of
from nacre.llm.failures import Schema, schema_of
from nacre.memories.statements import (
    MOST_LEFT_OUT,
    Departure,
    Slot,
    Statement,
    adds,
    cues,
    exchanges,
    leaves_out,
    lost,
    lost_denial,
    read,
    swaps,
)
from nacre.values.memory import Kind, Link, Match, Memory, Retirement, StandingRetirement
from nacre.values.models import Prompt
from nacre.values.session import Task
from nacre.vault import files as ledger

LONGEST = 4_000
"""Maximum number of characters to compare in a text."""

ENOUGH_TURNS = 500
"""Minimum number of turns in a nacre home before its word counts determine which words are rare."""

_PRIOR_TURNS = 500
_WORDS_PER_TURN = 20
_FIRST_WORD = 1_996
"""Rank of the first whole word in the vocabulary. Letters and symbols have lower ranks."""

_ZIPF = 10.0
_MAX_RARE_SHARE = 0.0004
_MAX_RARE_SHARE_AT_HOME = 0.02
_MIN_COMMON_SHARE = 0.34
_MIN_OVERLAP = 0.7
_MAX_BLOCK_WORDS = 3
_CLAIMS = (Kind.FACT, Kind.DECISION, Kind.PREFERENCE, Kind.RELATIONSHIP)
_ASIDE = re.compile(r"[,;:(]\s|[，；：（]")
_TIME_SORTS = frozenset({"weekday", "date", "time", "path"})
_INVERTING_WORDS = frozenset({"of", "by", "von"})
"""Words that can invert the word order, as in "the gate of the quarry"."""


class Relation(StrEnum):
    """How a later statement relates to an earlier statement.

    ``supersedes``: the earlier statement is no longer true. ``doubts``: it might be outdated.
    ``same``: the later statement adds nothing. ``related``: both have the same subject.
    """

    SUPERSEDES = "supersedes"
    DOUBTS = "doubts"
    SAME = "same"
    RELATED = "related"
    UNRELATED = "unrelated"


@frozen
class Verdict:
    """The relation of two statements, a short reason, and their similarity (0 to 1)."""

    relation: Relation
    reason: str = ""
    likeness: float = 0.0


_UNRELATED = Verdict(Relation.UNRELATED)

Counts = Callable[[Sequence[str]], tuple[int, Sequence[int]]]
"""Function that returns the number of turns in a home, and the number of turns that contain each word."""


class Rarity:
    """A test for rare words.

    The test combines the home's word counts with the word frequencies of the bundled tokenizer.
    """

    def __init__(self, count: Counts = lambda words: (0, [0] * len(words))) -> None:
        self._count = count

    @cached_property
    def is_known(self) -> bool:
        """True if the home has enough turns for useful word counts."""
        return self._count([])[0] >= ENOUGH_TURNS

    def has_rare(self, words: Sequence[str]) -> bool:
        """Return True if any of the words is rare."""
        turns, counts = self._count(words)
        for word, count in zip(words, counts, strict=True):
            expected = min(1.0, _expected_share(word))
            if turns < ENOUGH_TURNS:
                if expected < _MAX_RARE_SHARE:
                    return True
            elif (count + _PRIOR_TURNS * expected) / (
                turns + _PRIOR_TURNS
            ) < _MAX_RARE_SHARE_AT_HOME:
                return True
        return False


def _expected_share(word: str) -> float:
    """Return the expected share of turns that contain a word, from its rank in the vocabulary.

    The share of a word missing from the vocabulary is 0.
    """
    rank = minilm.vocabulary().get(word, 0)
    return _WORDS_PER_TURN / (_ZIPF * max(1, rank - _FIRST_WORD)) if rank >= _FIRST_WORD else 0.0


def judge(
    earlier: Memory,
    later: Memory,
    cosine: float | None,
    limits: Calibration,
    rarity: Rarity | None = None,
) -> Verdict:
    """Return the relation of ``later`` to ``earlier``.

    Both must belong to the same project, or one must apply to all projects.

    ``cosine`` is the cosine similarity between their vectors, or ``None`` if a vector is missing.
    """
    project = later.project or earlier.project
    old, new = read(earlier.content[:LONGEST], project), read(later.content[:LONGEST], project)
    is_whole = max(len(earlier.content), len(later.content)) <= LONGEST
    if earlier.kind is later.kind and is_whole and _is_same(old, new, cosine, limits):
        return Verdict(Relation.SAME, "says the same")
    if not _keeps(earlier.kind, later.kind) and not old.text.rstrip().endswith(("?", "？")):
        change = _departure(old, new, rarity or Rarity())
        if (
            change is None
            and not (old.has("unsure") or new.has("unsure"))
            and later.kind in (*_CLAIMS, Kind.TODO)
        ):
            change = _other_value(old, new, rarity or Rarity()) or _contradiction(
                earlier, later, old, new
            )
        if change:
            return change
    is_near = cosine is not None and cosine >= limits.link
    subjects = read(earlier.subject).words, read(later.subject).words
    has_overlap = 2 * len(old.words & new.words) >= _MIN_OVERLAP * max(
        1, len(old.words) + len(new.words)
    )
    is_about = is_near or has_overlap or (subjects[0] and subjects[0] == subjects[1])
    return Verdict(Relation.RELATED, "about the same") if is_about else _UNRELATED


def _keeps(kind: Kind, later_kind: Kind) -> bool:
    """Return True if a memory of ``later_kind`` never supersedes a memory of ``kind``.

    Events stay true, only a todo supersedes a todo, and a lesson supersedes only a lesson.
    """
    return (
        kind is Kind.EVENT
        or (later_kind is Kind.TODO) != (kind is Kind.TODO)
        or (later_kind is Kind.LESSON) > (kind is later_kind)
    )


def _is_same(old: Statement, new: Statement, cosine: float | None, limits: Calibration) -> bool:
    if old.signs != new.signs:
        return False
    if [word.stem for word in old.tokens] == [word.stem for word in new.tokens]:
        return new.text.isascii() or normalise(old.text) == normalise(new.text)
    if (
        cosine is None
        or cosine < limits.same
        or (not limits.reads_unspaced and is_unspaced(new.text))
    ):
        return False
    inverts = any(word.text in _INVERTING_WORDS for word in (*old.tokens, *new.tokens))
    is_turned = old.order != new.order and sorted(old.order) == sorted(new.order) and not inverts
    names = {*old.names, *new.names}
    of_old, of_new = (
        [word.text.lower() for word in statement.tokens if word.text.lower() in names]
        for statement in (old, new)
    )
    is_named = of_old == of_new or (inverts and sorted(of_old) == sorted(of_new))
    parts, new_parts = (
        (item.slots, item.negations, bool(item.departures), item.has("unsure"))
        for item in (old, new)
    )
    adds_words = len(new.words - old.words) > len(old.words - new.words)
    return is_named and parts == new_parts and not (is_turned or adds_words)


def _departure(old: Statement, new: Statement, rarity: Rarity) -> Verdict | None:
    """Return a verdict if ``new`` says that something mentioned in ``old`` is gone."""
    for departure in new.departures:
        if (
            not departure.subject <= old.words
            or departure.case - old.words
            or _denies(old, departure)
        ):
            continue
        gone_words = [word.text.lower() for word in old.tokens if word.stem in departure.subject]
        is_rare = rarity.has_rare(gone_words)
        if is_rare or (
            2 * len(departure.context & old.words) >= len(departure.context)
            and _common(old, new) >= _MIN_COMMON_SHARE
        ):
            is_certain = is_rare and _asserts(old, departure) and departure.context <= old.words
            relation = Relation.SUPERSEDES if is_certain else Relation.DOUBTS
            return Verdict(relation, f"no longer: {departure.text}", _common(old, new))
    if (
        new.has("again")
        and old.negations
        and not new.negations
        and old.words
        and old.words <= new.words
    ):
        return Verdict(Relation.SUPERSEDES, "allowed again", 1.0)
    return None


def _denies(old: Statement, departure: Departure) -> bool:
    """Return True if ``old`` already says that the subject of ``departure`` is gone.

    A negation in the same clause is enough.
    """
    clauses = [read(clause) for clause in _ASIDE.split(old.text)]
    is_denied = any(clause.negations for clause in clauses if departure.subject & clause.words)
    return is_denied or any(departure.subject & other.subject for other in old.departures)


def _asserts(old: Statement, departure: Departure) -> bool:
    """Return True if the earlier statement is mainly about the thing that is gone.

    The thing does not count if it occurs in an aside or only describes another word ("the Redis
    outage").
    """
    if not departure.subject <= read(_ASIDE.split(old.text)[0]).words:
        return False
    last_gone = max(
        index for index, token in enumerate(old.tokens) if token.stem in departure.subject
    )
    following = old.tokens[last_gone + 1 : last_gone + 2]
    return (
        last_gone < len(departure.subject) + 1
        or not following
        or following[0].stem not in old.words
    )


def _common(old: Statement, new: Statement) -> float:
    """Return the share of the earlier statement's words that the later statement contains."""
    return len(old.words & new.words) / len(old.words) if old.words else 0.0


def _other_value(old: Statement, new: Statement, rarity: Rarity) -> Verdict | None:
    old_slots, new_slots = _slots_not_in(old.slots, new.slots), _slots_not_in(new.slots, old.slots)
    if not (len(old_slots) == len(new_slots) == 1) or old_slots[0].sort != new_slots[0].sort:
        return None
    change, place = f"{old_slots[0].text} → {new_slots[0].text}", f"\x00{old_slots[0].sort}"
    frame, new_frame = ([word.stem for word in statement.frame] for statement in (old, new))
    if old.negations == new.negations and frame == new_frame and frame.index(place) > 1:
        is_sure = new.has("now") or old_slots[0].sort not in _TIME_SORTS
        return Verdict(Relation.SUPERSEDES if is_sure else Relation.DOUBTS, change, 1.0)
    if _topic(old) == _topic(new) and len(_topic(old)) > (not new.has("now")):
        is_sure = new.has("now") and rarity.is_known
        return Verdict(Relation.SUPERSEDES if is_sure else Relation.DOUBTS, change, 1.0)
    return None


def _slots_not_in(slots: Sequence[Slot], others: Sequence[Slot]) -> list[Slot]:
    excluded = {(other.sort, other.value) for other in others}
    return [slot for slot in slots if (slot.sort, slot.value) not in excluded]


def _topic(statement: Statement) -> frozenset[str]:
    return statement.words - {
        token.stem for slot in statement.slots for token in read(f"{slot.sort} {slot.text}").tokens
    }


def _contradiction(
    earlier: Memory, later: Memory, old: Statement, new: Statement
) -> Verdict | None:
    """Return a verdict of doubt if two statements about the same thing cannot both be true."""
    if old.departures or new.departures or earlier.kind not in _CLAIMS:
        return None
    is_opposite = (old.negations > 0) != (new.negations > 0)
    has_subject = earlier.subject == later.subject != title_of(later.content)
    if (
        is_opposite
        and old.words
        and (old.words == new.words or (has_subject and old.words & new.words))
    ):
        return Verdict(Relation.DOUBTS, "says the opposite", 1.0)
    old_slots, new_slots = _slots_not_in(old.slots, new.slots), _slots_not_in(new.slots, old.slots)
    if (
        has_subject
        and len(old_slots) == len(new_slots) == 1
        and old_slots[0].sort == new_slots[0].sort
    ):
        return Verdict(
            Relation.DOUBTS, f"{old_slots[0].text} → {new_slots[0].text}", _common(old, new)
        )
    return None if is_opposite else _other_object(old, new)


def _other_object(old: Statement, new: Statement) -> Verdict | None:
    """Return a verdict if a verb has different objects: "use tabs" and "use two spaces"."""
    old_stems, new_stems = ([word.stem for word in statement.frame] for statement in (old, new))
    changes = [
        change
        for change in SequenceMatcher(None, old_stems, new_stems, autojunk=False).get_opcodes()
        if change[0] != "equal"
    ]
    if len(changes) != 1 or changes[0][0] != "replace":
        return None
    _, begin, end, start, stop = changes[0]
    is_short = begin > 0 and max(end - begin, stop - start) <= _MAX_BLOCK_WORDS
    blocks = old_stems[begin:end], new_stems[start:stop]
    is_number = any(all(word.isdigit() or word[0] == "\x00" for word in block) for block in blocks)
    if not is_short or is_number or (old_stems[end:] and old_stems[end] not in cues().border):
        return None
    is_order = old.tokens[0].stem == old_stems[0] and set(old_stems[1:begin]) <= cues().border
    if not (is_order or new.has("now") or new.has("equation")):
        return None
    texts = (
        " ".join(word.text for word in block)
        for block in (old.frame[begin:end], new.frame[start:stop])
    )
    return Verdict(Relation.DOUBTS, " → ".join(texts), 1.0)


def closes(todo: Memory, later: Memory) -> bool:
    """Return True if a later event, fact or decision says that an open todo is done."""
    if later.kind not in (Kind.EVENT, Kind.FACT, Kind.DECISION) or not says_done(
        later.content[:LONGEST]
    ):
        return False
    old, new = (
        read(todo.content[:LONGEST], todo.project),
        read(later.content[:LONGEST], todo.project),
    )
    has_key = bool(todo.canonical_key) and todo.canonical_key == later.canonical_key
    stems = {token.stem for token in new.tokens}
    has_all_words = all(
        word in stems or (not word.isascii() and set(word) <= set(new.text)) for word in old.words
    )
    return has_key or (len(old.words) > 1 and has_all_words)


def says_done(text: str, start: int = 0, end: int | None = None) -> bool | None:
    """Return True if ``text[start:end]`` says that a task is done.

    Return False if the text says that the task is not done. Return ``None`` if the text does not
    say.
    """
    match = cues().pattern["done"].search(text, start, len(text) if end is None else end)
    if match is None:
        return None
    return not cues().pattern["undone"].search(text[max(0, match.start() - 40) : match.start()])


# -- Comparing memories --------------------------------------------------------


APART = "alternative_to"
"""Link relation between two memories that both stay valid, regardless of comparisons."""


SUPERSEDES = "supersedes"
"""Link relation from a memory to its predecessor."""

SPECIALIZES = "specializes"
"""Link relation from a special case to the general memory. Both stay valid."""

CONTRADICTS = "contradicts"
"""Link relation to a memory that is probably outdated. The owner has to decide."""

_BOTH_HOLD = frozenset({APART, SPECIALIZES})

_UNTRUSTED = Verdict(Relation.RELATED, "from an untrusted source")
"""Verdict for text from an untrusted source, which cannot supersede, close or confirm the owner's statements."""


@frozen
class Comparison:
    """A comparison of a memory with ``other``.

    ``is_later`` is true if the memory is later than ``other``.
    """

    other: Memory
    verdict: Verdict
    is_later: bool

    @property
    def replaces(self) -> bool:
        """True if the memory replaces the other memory."""
        return self.is_later and self.verdict.relation is Relation.SUPERSEDES

    @property
    def is_replaced(self) -> bool:
        """True if the other memory is later and replaces this memory."""
        return not self.is_later and self.verdict.relation is Relation.SUPERSEDES

    @property
    def doubts(self) -> bool:
        """True if the other memory is probably outdated because of this memory."""
        return self.is_later and self.verdict.relation is Relation.DOUBTS

    @property
    def is_doubted(self) -> bool:
        """True if this memory is probably outdated because of the other memory, which is later."""
        return not self.is_later and self.verdict.relation is Relation.DOUBTS

    @property
    def repeats(self) -> bool:
        """True if the memory adds nothing to the other memory."""
        return self.verdict.relation is Relation.SAME


def compare(
    memory: Memory,
    others: Iterable[Memory],
    *,
    cosines: Mapping[str, float] | None = None,
    model: str | None = None,
    seen: Seen | None = None,
    rarity: Rarity | None = None,
) -> list[Comparison]:
    """Compare a memory with all ``others`` that apply to the same project.

    ``cosines``: mapping from memory ids to cosine similarities. ``model``: name of the model that
    computed the similarities. ``seen``: mean cosines for estimating the thresholds of an unknown
    model. ``rarity``: test for rare words.
    """
    limits = calibration_of(model, seen)
    cosines = cosines or {}
    comparisons = [
        _compare_pair(memory, other, cosines.get(other.id), limits, rarity)
        for other in others
        if other.id != memory.id
        and other.shares_place(memory)
        and not (
            any(link.rel in _BOTH_HOLD and link.to == other.id for link in memory.links)
            or any(link.rel in _BOTH_HOLD and link.to == memory.id for link in other.links)
        )
    ]
    has_ended = any(link.rel == SUPERSEDES for link in memory.links)
    superseding = [
        item
        for item in comparisons
        if item.is_later and item.verdict.relation is Relation.SUPERSEDES and item.verdict.likeness
    ]
    best = (
        None
        if has_ended
        else max(superseding, key=lambda item: item.verdict.likeness, default=None)
    )
    return [
        replace(item, verdict=_weaken(item.verdict))
        if item in superseding and item is not best
        else item
        for item in comparisons
    ]


def _compare_pair(
    memory: Memory, other: Memory, cosine: float | None, limits: Calibration, rarity: Rarity | None
) -> Comparison:
    # If the times are equal, the new memory counts as later.
    is_later = vouches(memory, other) or memory.last_said >= other.last_said
    earlier, later = (other, memory) if is_later else (memory, other)
    if vouches(other, memory):
        return Comparison(other, _UNTRUSTED, is_later)
    if earlier.kind is Kind.TODO and closes(earlier, later):
        verdict = Verdict(Relation.SUPERSEDES, "done")
    else:
        verdict = judge(earlier, later, cosine, limits, rarity)
    if _share_a_key(earlier, later) and verdict.relation not in _SAYING_THE_SAME:
        verdict = Verdict(Relation.SUPERSEDES, f"has the key {later.canonical_key}")
    if outranks(earlier, later):
        verdict = _weaken(verdict)
    if vouches(memory, other) and verdict.relation is Relation.SAME:
        verdict = replace(
            verdict, relation=Relation.SUPERSEDES, reason="the same, from a trusted source"
        )
    return Comparison(other, verdict, is_later)


def vouches(memory: Memory, other: Memory) -> bool:
    """Return True if ``memory`` is trustworthy and ``other`` is not.

    In this case, ``memory`` counts as the later memory, regardless of the dates.
    """
    return memory.is_vouched and not other.is_vouched


def outranks(memory: Memory, other: Memory) -> bool:
    """Return True if the owner stated ``memory``, and ``other`` is not in the owner's own words.

    ``other`` then cannot supersede ``memory``.
    """
    return memory.is_owners and not other.is_worded


def _weaken(verdict: Verdict) -> Verdict:
    """Return a verdict that casts doubt on the owner's statement instead of superseding it.

    Only the owner's words can supersede it.
    """
    if verdict.relation is Relation.SUPERSEDES:
        return replace(verdict, relation=Relation.DOUBTS)
    return verdict


_SAYING_THE_SAME = frozenset({Relation.SAME, Relation.SUPERSEDES})


def _share_a_key(memory: Memory, other: Memory) -> bool:
    """Return True if both memories were given the same canonical key, which must be unique.

    Learned keys do not count, because a rule and its special case can share a learned key.
    """
    is_given = not memory.is_learned and not other.is_learned and memory.kind is other.kind
    return is_given and bool(memory.canonical_key) and memory.canonical_key == other.canonical_key


# -- Succession ----------------------------------------------------------------
#
# The old memory stores ``superseded_by`` and the day until which it was true. The new memory stores
# a ``supersedes`` link with the reason. Either side can be undone.


OUTLIVED = "its successor was forgotten"


def mark_ended(old: Memory, new: Memory) -> Memory:
    """Return the old memory with an end date and with ``superseded_by`` set to the new memory."""
    has_later_start = new.valid.since and (
        old.valid.since is None or new.valid.since > old.valid.since
    )
    day = new.valid.since if has_later_start and new.valid.since else day_of(new.last_said)
    until = min(day, old.valid.until) if old.valid.until else day
    return replace(old, superseded_by=new.id, valid=replace(old.valid, until=until))


def active_again(old: Memory) -> Memory:
    """Return a copy of a superseded memory that has no successor and no end date."""
    return replace(old, superseded_by=None, valid=replace(old.valid, until=None))


def without_link(new: Memory, old_id: str) -> Memory:
    """Return the new memory without its link to a memory that it superseded."""
    return _without(new, SUPERSEDES, old_id)


def without_doubt(new: Memory, old_id: str) -> Memory:
    """Return the new memory without its ``contradicts`` link to the old memory."""
    return _without(new, CONTRADICTS, old_id)


def _without(memory: Memory, rel: str, to: str) -> Memory:
    return replace(
        memory, links=tuple(link for link in memory.links if (link.rel, link.to) != (rel, to))
    )


def add_doubt(new: Memory, old_id: str, reason: str) -> Memory:
    """Return the new memory with a ``contradicts`` link to a possibly outdated memory."""
    link = Link(CONTRADICTS, old_id, reason)
    is_present = any((existing.rel, existing.to) == (link.rel, link.to) for existing in new.links)
    return new if is_present else replace(new, links=(*new.links, link))


def superseded_ids(memory: Memory) -> dict[str, str | None]:
    """Return the ids of the memories that a memory superseded, each with the reason."""
    return {link.to: link.reason for link in memory.links if link.rel == SUPERSEDES}


def release(home: Home, removed: Sequence[Memory]) -> list[Memory]:
    """Return the memories that change when ``removed`` memories are retired.

    A memory that was superseded by a removed memory becomes active again. If a later successor
    remains, that successor supersedes the memory instead. Nothing is written.
    """
    gone_ids = {memory.id for memory in removed}
    changed: dict[str, Memory] = {}
    for memory in removed:
        predecessors = [
            old
            for old in home.memories.replaced_by(memory.id)
            if not old.retired and old.id not in gone_ids
        ]
        newer = _still_holding(home, memory, gone_ids) if predecessors else None
        if newer is None:
            changed.update(
                (predecessor.id, active_again(predecessor)) for predecessor in predecessors
            )
            continue
        changed.update(
            (predecessor.id, mark_ended(active_again(predecessor), newer))
            for predecessor in predecessors
        )
        reasons, newer = superseded_ids(memory), changed.get(newer.id, newer)
        links = tuple(
            Link(SUPERSEDES, predecessor.id, reasons.get(predecessor.id))
            for predecessor in predecessors
        )
        changed[newer.id] = replace(newer, links=(*newer.links, *links))
    return list(changed.values())


def detach(
    home: Home, removed: Sequence[Memory], left: Mapping[str, Memory], now: datetime
) -> list[Memory]:
    """Return the memories that change when ``removed`` memories are forgotten.

    Links to removed memories are deleted. A memory that was superseded by a removed memory is
    superseded by the next remaining successor. If there is no such successor, the memory is
    retired. ``left`` contains memories that change for other reasons. Nothing is written.
    """
    gone_ids = {memory.id for memory in removed}
    changed = dict(left)
    for naming in home.memories.in_any_state(home.erasing.linking(sorted(gone_ids))):
        if naming.id not in gone_ids:
            memory = changed.get(naming.id, naming)
            changed[naming.id] = replace(
                memory, links=tuple(link for link in memory.links if link.to not in gone_ids)
            )
    for memory in removed:
        newer = _still_holding(home, memory, gone_ids)
        for old in home.memories.replaced_by(memory.id):
            if old.id in gone_ids:
                continue
            old = active_again(changed.get(old.id, old))
            if newer and not old.retired:
                old = mark_ended(old, newer)
                holding = changed.get(newer.id, newer)
                changed[newer.id] = replace(
                    holding, links=(*holding.links, Link(SUPERSEDES, old.id))
                )
            changed[old.id] = (
                replace(old, retired=old.retired or Retirement(now, OUTLIVED)) if not newer else old
            )
    return list(changed.values())


def _still_holding(home: Home, memory: Memory, gone_ids: Collection[str]) -> Memory | None:
    """Return the first successor of a memory that is neither retired nor in ``gone_ids``, if any."""
    visited: set[str] = set()
    newer: Memory | None = memory
    while newer and newer.superseded_by and newer.superseded_by not in visited:
        visited.add(newer.superseded_by)
        newer = home.memories.find(newer.superseded_by)
        if newer and newer.id not in gone_ids and not newer.retired:
            return newer
    return None


def reconcile(home: Home, changed: Iterable[tuple[Memory | None, Memory]]) -> list[Memory]:
    """Return the memories to update so that each memory and its successor name each other.

    ``changed`` contains each manually edited memory before and after the edit.
    """
    updates: dict[str, Memory] = {}
    for before, after in changed:
        if after.retired:
            continue
        superseded_now, superseded_before = (
            superseded_ids(after),
            superseded_ids(before) if before else {},
        )
        for old in home.memories.in_any_state(
            sorted(superseded_now.keys() ^ superseded_before.keys())
        ):
            if old.retired:
                continue
            if old.id in superseded_before and old.superseded_by == after.id:
                updates[old.id] = active_again(old)
            elif old.id in superseded_now and not old.superseded_by:
                updates[old.id] = mark_ended(old, after)
        newer = (
            home.memories.find(before.superseded_by or "")
            if before and not after.superseded_by
            else None
        )
        if before and newer:
            updates[after.id] = active_again(after) if after.valid == before.valid else after
            updates[newer.id] = without_link(newer, after.id)
    return list(updates.values())


# -- Decisions by a language model ---------------------------------------------
#
# ADD, UPDATE, SKIP and SUPERSEDE come from agenr, which asks from a cosine similarity of .72. AMEND
# is for memories that are partly outdated. A model refers to memories by their numbers in the prompt.
# A decision is discarded if it would lose a number, name or negation, or if a weaker source
# would change a memory from a stronger source.


VERSION = "decide-2"
NAME = "decide"

SHORTEST = 20
"""Minimum number of characters of a merged memory, unless an original is shorter."""

_SETTLED = frozenset({Kind.DECISION, Kind.PREFERENCE})
"""Kinds that can describe the same choice, as a rule for the future or as a decision on one day."""

MOST_ADDED = 100
"""Maximum number of characters by which a merged memory can exceed the combined originals."""

MOST_ENDED = 0.5
"""Maximum share of a memory's words that an amendment can remove."""

_MAX_REASON_CHARACTERS = 160
_MAX_OUTPUT_TOKENS = 4_096
_SUCCESSIVE_KINDS = frozenset({Kind.FACT, Kind.DECISION, Kind.PREFERENCE, Kind.RELATIONSHIP})


class Action(StrEnum):
    """An action for a new memory."""

    ADD = "ADD"
    UPDATE = "UPDATE"
    SKIP = "SKIP"
    SUPERSEDE = "SUPERSEDE"
    AMEND = "AMEND"


_IN_WORDS = frozenset({Action.UPDATE, Action.AMEND})
"""Actions that require new text."""


class Choice(Schema):
    """What a model answers: why, what, about which memory (its number), and the words of both where they become one, or
    those that are left of it.
    """

    reason: str
    action: Literal["ADD", "UPDATE", "SKIP", "SUPERSEDE", "AMEND"]
    target: int | None
    merged: str | None


@frozen
class Decision:
    """A model's decision about a new memory.

    ``by``: name of the model. ``target``: id of the stored memory that the decision changes.
    ``mark``: hash of the target, see :func:`mark`. ``merged``: new text of the target.
    """

    action: Action
    by: str
    reason: str
    target: str | None = None
    mark: str | None = None
    merged: str = ""

    def in_words(self) -> str:
        """Return the reason for the decision and the model's name."""
        return f"{self.reason or self.action.value.lower()} ({self.by})"


def mark(memory: Memory) -> str:
    """Return a hash of a memory's text and state.

    A decision about the memory applies only while the hash stays the same.
    """
    parts = (
        memory.subject,
        memory.content,
        memory.kind,
        memory.project or "",
        memory.speaker,
        memory.trust,
        memory.superseded_by or "",
        str(memory.retired is not None),
    )
    return content_hash("\0".join(parts)).hex()


def prompt_for(memory: Memory, near: Sequence[Memory], *, seconds: float) -> Prompt:
    """Return the prompt with a new memory and its nearest memories.

    Texts are escaped, so that they cannot close the tags.
    """
    stored = "\n".join(_as_json_line(other, number) for number, other in enumerate(near, start=1))
    return Prompt(
        Task.DEDUP,
        system(VERSION),
        f"<stored>\n{stored}\n</stored>\n<new>\n{_as_json_line(memory)}\n</new>",
        schema_of(Choice),
        name=NAME,
        version=VERSION,
        output_tokens=_MAX_OUTPUT_TOKENS,
        timeout_seconds=seconds,
    )


def decide(choice: Choice, memory: Memory, near: Sequence[Memory], by: str) -> Decision:
    """Return the decision in a model's answer.

    If the decision must be refused, return the action ADD with the reason for the refusal.
    """
    reason = shorten(visible(choice.reason), _MAX_REASON_CHARACTERS)
    if choice.action == Action.ADD:
        return Decision(Action.ADD, by, reason)
    if choice.target is None or not 1 <= choice.target <= len(near):
        return Decision(Action.ADD, by, f"there is no memory number {choice.target}")
    target = near[choice.target - 1]
    action, merged = Action(choice.action), visible(choice.merged or "").strip()
    if "\n" not in target.content + memory.content:
        merged = one_line(merged)
    if action is Action.UPDATE and normalise(merged) == normalise(target.content):
        action = Action.SKIP
    decision = Decision(
        action, by, reason, target.id, mark(target), merged if action in _IN_WORDS else ""
    )
    why = refusal(decision, memory, target)
    return Decision(Action.ADD, by, f"not {_NAMES[action]}: {why}") if why else decision


def refusal(decision: Decision, memory: Memory, target: Memory) -> str | None:
    """Return the reason to refuse a decision about two memories, or ``None`` to accept it."""
    if decision.mark != mark(target) or not target.is_active:
        return "the other memory has changed"
    if not memory.shares_place(target):
        return "it belongs to another project"
    if target.is_vouched and not memory.is_vouched:
        return "it comes from an untrusted source"
    return _REFUSALS[decision.action](decision, memory, target)


def _refuse_skip(_: Decision, memory: Memory, target: Memory) -> str | None:
    if why := _refuse_mixed_sources(memory, target):
        return why
    if missing := lost(memory.content, [target.content]):
        return f"the other memory does not contain {missing}"
    swapped = swaps(memory.content, [target.content])
    return f"the other memory has {swapped}" if swapped else None


def _refuse_update(decision: Decision, memory: Memory, target: Memory) -> str | None:
    if why := _refuse_mixed_sources(memory, target) or _refuse_earlier(memory, target):
        return why
    if (memory.speaker, memory.is_worded) != (target.speaker, target.is_worded):
        return "one is from the owner, the other from an agent"
    merged, contents = decision.merged, (target.content, memory.content)
    shortest = min(SHORTEST, *map(len, contents))
    if not shortest <= len(merged) <= min(sum(map(len, contents)) + MOST_ADDED, LONGEST):
        return "the merged text is too short or too long"
    for original in contents:
        if missing := lost(original, [merged]):
            return f"the merged text leaves out {missing}"
        if leaves_out(original, merged) > MOST_LEFT_OUT:
            return "the merged text leaves out most of one memory"
    added = adds(merged, contents)
    return f"the merged text adds {added}" if added else None


def _refuse_mixed_sources(memory: Memory, target: Memory) -> str | None:
    if memory.kind is not target.kind and not {memory.kind, target.kind} <= _SETTLED:
        return f"one is a {memory.kind}, the other a {target.kind}"
    if memory.is_vouched is not target.is_vouched or memory.trust is not target.trust:
        return "only one is trusted"
    return (
        "the owner's statement would be attributed to the agent"
        if outranks(memory, target)
        else None
    )


def _refuse_supersede(_: Decision, memory: Memory, target: Memory) -> str | None:
    if outranks(target, memory):
        return "an agent's statement cannot supersede the owner's"
    are_like = memory.kind is target.kind or {memory.kind, target.kind} <= _SUCCESSIVE_KINDS
    if target.kind is Kind.EVENT or not are_like:
        return f"a {memory.kind} does not supersede a {target.kind}"
    return _refuse_earlier(memory, target)


def _refuse_amend(decision: Decision, memory: Memory, target: Memory) -> str | None:
    if why := _refuse_supersede(decision, memory, target):
        return why
    remaining = decision.merged
    if (
        not min(SHORTEST, len(target.content))
        <= len(remaining)
        <= min(len(target.content) + MOST_ADDED, LONGEST)
    ):
        return "the remaining text is too short or too long"
    if normalise(remaining) == normalise(target.content):
        return "the remaining text is unchanged"
    if leaves_out(target.content, remaining) > MOST_ENDED:
        return "the remaining text leaves out most of it"
    if denial := lost_denial(target.content, remaining):
        return denial
    if exchanged := exchanges(remaining, target.content):
        return f"the remaining text has {exchanged}"
    added = adds(remaining, (target.content, memory.content))
    return f"the remaining text adds {added}" if added else None


def _refuse_earlier(memory: Memory, target: Memory) -> str | None:
    return "the other statement is later" if memory.last_said < target.last_said else None


_REFUSALS = {
    Action.ADD: lambda *_: None,
    Action.SKIP: _refuse_skip,
    Action.UPDATE: _refuse_update,
    Action.SUPERSEDE: _refuse_supersede,
    Action.AMEND: _refuse_amend,
}
_NAMES = {
    Action.SKIP: "known",
    Action.UPDATE: "merged",
    Action.SUPERSEDE: "superseding",
    Action.AMEND: "amending",
}


def _as_json_line(memory: Memory, number: int | None = None) -> str:
    fields = {
        "number": number,
        "kind": memory.kind.value,
        "said_by": memory.speaker.value,
        "day": shown_day(memory.last_said),
        "subject": memory.subject,
        "content": memory.content,
    }
    line = msgspec.json.encode({key: value for key, value in fields.items() if value is not None})
    return line.decode("utf-8", "replace").replace("<", "\\u003c").replace(">", "\\u003e")


@cache
def system(name: str) -> str:
    """Return a prompt from ``prompts/``."""
    return (files(__package__) / "prompts" / f"{name}.md").read_text(encoding="utf-8")


# -- Standing retirements ------------------------------------------------------
#
# A memory that matches a standing retirement is retired as soon as it is stored. The ledger
# contains all standing retirements. A retirement from another machine also applies to memories
# stored here before it arrived. Memories stored or unretired despite a standing retirement stay
# active on all machines.


SUPPRESSED = ("session-start",)
"""Contexts that omit memories under a standing retirement."""


def fits(subject: str, pattern: str, match: Match) -> bool:
    """Return True if a subject matches a pattern. Case and spaces are ignored."""
    subject, pattern = plain(subject), plain(pattern)
    if match is Match.EXACT:
        return subject == pattern
    if match is Match.CONTAINS:
        return pattern in subject
    return (
        re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), subject, re.DOTALL) is not None
    )


def plain(subject: str) -> str:
    """Return a subject in the form used for comparison."""
    return " ".join(subject.casefold().split())


def standing_for(home: Home, memory: Memory) -> StandingRetirement | None:
    """Return the oldest rule for automatic retirement that applies to a memory, or ``None``."""
    return next((rule for rule in home.tombstones.standing() if is_under(memory, rule)), None)


def is_under(memory: Memory, rule: StandingRetirement) -> bool:
    """Return True if a rule for automatic retirement applies to a memory."""
    same_key = rule.canonical_key is not None and rule.canonical_key == memory.canonical_key
    return same_key or fits(memory.subject, rule.pattern, rule.match)


def retire_due(home: Home) -> int:
    """Apply new rules for automatic retirement. Return the number of retired memories.

    Call this after reading all files. Memories that the owner restored stay active. Memories that
    are being edited stay active and are reported in ``home.problems``. If another process is
    writing, the next command does the work.
    """
    if not home.tombstones.arrived():
        return 0
    with home.vault_lock.if_free() as is_ours:
        return _retire_arrived(home) if is_ours else 0


def _retire_arrived(home: Home) -> int:
    with home.change("retire", why="a persistent retirement from another machine") as change:
        apply_intents(home)
        arrived = home.tombstones.arrived()
        unretired = _unretired_ids(home) if arrived else set()
        affected = [
            memory
            for memory in home.memories.in_any_state(sorted(set(arrived) - unretired))
            if memory.is_active
        ]
        due = [(memory, rule) for memory in affected if (rule := standing_for(home, memory))]
        retired = sum(_retire(change, memory, rule) for memory, rule in due)
        with home.transaction():
            home.tombstones.set_arrived(())
        return retired


def _retire(change: Change, memory: Memory, rule: StandingRetirement) -> bool:
    home = change.home
    retired = retired_by(home, memory, rule)
    reason = retired.retired.reason if retired.retired else None
    entry = change.entry("retire", memory=memory.id, reason=reason)
    try:
        change.put([retired, *release(home, [memory])], [entry])
    except EditConflictError as error:
        home.problems.append(error.message)
        return False
    return True


def _unretired_ids(home: Home) -> set[str]:
    since = min((rule.at for rule in home.tombstones.standing()), default=home.now())
    return {
        str(entry.details.get("memory"))
        for entry in ledger.read(home.ledger())
        if entry.action == "unretire" and entry.at >= since
    }


def retired_by(home: Home, memory: Memory, rule: StandingRetirement) -> Memory:
    """Return a memory retired under a standing retirement."""
    contexts = tuple(dict.fromkeys((*memory.suppressed_contexts, *rule.contexts)))
    reason = rule.reason or f"memories about {rule.pattern!r} are always retired"
    return replace(memory, retired=Retirement(home.now(), reason), suppressed_contexts=contexts)
