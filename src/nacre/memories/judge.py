"""Decide without a model how a later statement stands to an earlier one: only where words alone leave no doubt.

Two statements are the same if their words are equal, or if their vectors are near and numbers, names and denials agree.
A statement supersedes another if it says that something rare is gone which the other asserts, or gives another value in
the same slot. Everything less certain leaves both as they are; a person is asked where one may be out of date.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from difflib import SequenceMatcher
from enum import StrEnum
from functools import cache, cached_property
from importlib.resources import files
from typing import Literal

import msgspec

from nacre.base.ids import content_hash
from nacre.base.text import is_unspaced, normalise, one_line, shorten, title_of, visible
from nacre.base.times import day_of, shown_day
from nacre.errors import EditConflict
from nacre.home.change import Change
from nacre.home.home import Home
from nacre.home.operations import apply_intents
from nacre.llm.failures import schema_of
from nacre.llm.local_model import Calibration, Seen, calibration_of
from nacre.llm.minilm import vocabulary
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
from nacre.values.session import Speaker, Task
from nacre.vault import files as ledger
from nacre.vault.files import LEDGER

LONGEST = 4_000
"""Characters of a text that are compared."""

ENOUGH_TURNS = 500
"""From so many turns on, the words of a home tell which of them are rare."""

_PRIOR_TURNS = 500
_WORDS_A_TURN = 20
_FIRST_WORD = 1_996
"""Rank of the first whole word in the vocabulary; letters and signs stand before it."""

_ZIPF = 10.0
_RARE = 0.0004
_RARE_HERE = 0.02
_MOST_OF_IT = 0.34
_ALIKE = 0.7
_BLOCK = 3
_CLAIMS = (Kind.FACT, Kind.DECISION, Kind.PREFERENCE, Kind.RELATIONSHIP)
_ASIDE = re.compile(r"[,;:(]\s|[，；：（]")
_TIMES = frozenset({"weekday", "date", "time", "path"})
_TURNED = frozenset({"of", "by", "von"})


class Relation(StrEnum):
    """How a later statement stands to an earlier one.

    ``supersedes``: the earlier one is no longer true; ``doubts``: it may be out of date. ``same``: it says nothing new;
    ``related``: both are about one thing.
    """

    SUPERSEDES = "supersedes"
    DOUBTS = "doubts"
    SAME = "same"
    RELATED = "related"
    UNRELATED = "unrelated"


@dataclass(frozen=True, slots=True)
class Verdict:
    """How two statements stand to each other, why in a few words, and how much of a change both have in common."""

    relation: Relation
    reason: str = ""
    likeness: float = 0.0


_UNRELATED = Verdict(Relation.UNRELATED)

Counts = Callable[[Sequence[str]], tuple[int, Sequence[int]]]
"""How many turns a home has, and in how many of them some words stand."""


class Rarity:
    """Which words are rare in a home: by its turns, smoothed with the vocabulary of the bundled model's tokenizer."""

    def __init__(self, count: Counts = lambda words: (0, [0] * len(words))) -> None:
        self._count = count

    @cached_property
    def is_known(self) -> bool:
        """Whether the home has turns enough to tell."""
        return self._count([])[0] >= ENOUGH_TURNS

    def has_rare(self, words: Sequence[str]) -> bool:
        """Whether one of some words is rare."""
        turns, found = self._count(words)
        for word, held in zip(words, found, strict=True):
            usual = min(1.0, _usual(word))
            if turns < ENOUGH_TURNS:
                if usual < _RARE:
                    return True
            elif (held + _PRIOR_TURNS * usual) / (turns + _PRIOR_TURNS) < _RARE_HERE:
                return True
        return False


def _usual(word: str) -> float:
    """The share of turns that would hold a word, by its rank in the vocabulary; a word that is not there is rare."""
    rank = vocabulary().get(word, 0)
    return _WORDS_A_TURN / (_ZIPF * max(1, rank - _FIRST_WORD)) if rank >= _FIRST_WORD else 0.0


def judge(
    earlier: Memory,
    later: Memory,
    cosine: float | None,
    limits: Calibration,
    rarity: Rarity | None = None,
) -> Verdict:
    """What ``later`` means for ``earlier``, which hold in one project, or one of them everywhere.

    ``cosine`` is that of their vectors where both have one.
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
    is_alike = 2 * len(old.words & new.words) >= _ALIKE * max(1, len(old.words) + len(new.words))
    is_about = is_near or is_alike or (subjects[0] and subjects[0] == subjects[1])
    return Verdict(Relation.RELATED, "about the same") if is_about else _UNRELATED


def _keeps(kind: Kind, later: Kind) -> bool:
    """Events stay true, only a todo moves a todo, and a lesson ends nothing but a lesson."""
    return (
        kind is Kind.EVENT
        or (later is Kind.TODO) != (kind is Kind.TODO)
        or (later is Kind.LESSON) > (kind is later)
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
    is_turned = (
        old.order != new.order
        and sorted(old.order) == sorted(new.order)
        and not (_turns(old) or _turns(new))
    )
    named = {*old.names, *new.names}
    of_old, of_new = (
        [word.text.lower() for word in one.tokens if word.text.lower() in named]
        for one in (old, new)
    )
    is_named = of_old == of_new or (
        sorted(of_old) == sorted(of_new) and (_turns(old) or _turns(new))
    )
    is_alike = is_named and (old.slots, old.negations) == (new.slots, new.negations)
    is_alike = is_alike and bool(old.departures) == bool(new.departures)
    is_alike = is_alike and not is_turned and old.has("unsure") == new.has("unsure")
    return is_alike and len(new.words - old.words) <= len(old.words - new.words)


def _turns(one: Statement) -> bool:
    """Whether a small word may turn the order of what it says: "the gate of the quarry"."""
    return any(word.text in _TURNED for word in one.tokens)


def _departure(old: Statement, new: Statement, rarity: Rarity) -> Verdict | None:
    """The later statement says that something is gone that the earlier one asserts."""
    for one in new.departures:
        if not one.gone <= old.words or one.case - old.words or _denies(old, one):
            continue
        named = [word.text.lower() for word in old.tokens if word.stem in one.gone]
        is_rare = _asserts(old, one) and rarity.has_rare(named)
        if is_rare or (
            2 * len(one.beside & old.words) >= len(one.beside) and _common(old, new) >= _MOST_OF_IT
        ):
            relation = (
                Relation.SUPERSEDES if is_rare and one.beside <= old.words else Relation.DOUBTS
            )
            return Verdict(relation, f"no longer: {one.text}", _common(old, new))
    if (
        new.has("again")
        and old.negations
        and not new.negations
        and old.words
        and old.words <= new.words
    ):
        return Verdict(Relation.SUPERSEDES, "allowed again", 1.0)
    return None


def _denies(old: Statement, one: Departure) -> bool:
    """Whether the earlier statement says itself that this is gone, or denies it in the same clause."""
    told = [read(clause) for clause in _ASIDE.split(old.text)]
    is_denied = any(clause.negations for clause in told if one.gone & clause.words)
    return is_denied or any(one.gone & said.gone for said in old.departures)


def _asserts(old: Statement, one: Departure) -> bool:
    """Whether what is gone is what the earlier statement is about: not in an aside, nor a word beside another one ("the
    Redis outage").
    """
    if not one.gone <= read(_ASIDE.split(old.text)[0]).words:
        return False
    at = max(place for place, token in enumerate(old.tokens) if token.stem in one.gone)
    following = old.tokens[at + 1 : at + 2]
    return at < len(one.gone) + 1 or not following or following[0].stem not in old.words


def _common(old: Statement, new: Statement) -> float:
    """The share of the earlier statement's words that the later one has."""
    return len(old.words & new.words) / len(old.words) if old.words else 0.0


def _other_value(old: Statement, new: Statement, rarity: Rarity) -> Verdict | None:
    """Both say the same, but for a day, a time, a version or a measure in one slot."""
    mine, theirs = _apart(old.slots, new.slots), _apart(new.slots, old.slots)
    if not (len(mine) == len(theirs) == 1) or mine[0].sort != theirs[0].sort:
        return None
    told, place = f"{mine[0].text} → {theirs[0].text}", f"\x00{mine[0].sort}"
    frame, of_new = ([word.stem for word in one.frame] for one in (old, new))
    if old.negations == new.negations and frame == of_new and frame.index(place) > 1:
        is_sure = new.has("now") or mine[0].sort not in _TIMES
        return Verdict(Relation.SUPERSEDES if is_sure else Relation.DOUBTS, told, 1.0)
    if _topic(old) == _topic(new) and len(_topic(old)) > (not new.has("now")):
        is_sure = new.has("now") and rarity.is_known
        return Verdict(Relation.SUPERSEDES if is_sure else Relation.DOUBTS, told, 1.0)
    return None


def _apart(slots: Sequence[Slot], others: Sequence[Slot]) -> list[Slot]:
    given = {(one.sort, one.value) for one in others}
    return [one for one in slots if (one.sort, one.value) not in given]


def _topic(one: Statement) -> frozenset[str]:
    """What a statement is about beside its values."""
    return one.words - {
        token.stem for slot in one.slots for token in read(f"{slot.sort} {slot.text}").tokens
    }


def _contradiction(
    earlier: Memory, later: Memory, old: Statement, new: Statement
) -> Verdict | None:
    """Both have one subject, given or as the words begin, or one verb, and cannot both hold."""
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
    mine, theirs = _apart(old.slots, new.slots), _apart(new.slots, old.slots)
    if has_subject and len(mine) == len(theirs) == 1 and mine[0].sort == theirs[0].sort:
        return Verdict(Relation.DOUBTS, f"{mine[0].text} → {theirs[0].text}", _common(old, new))
    return None if is_opposite else _other_object(old, new)


def _other_object(old: Statement, new: Statement) -> Verdict | None:
    """The same verb with another object: "use tabs", "use two spaces"."""
    mine, theirs = ([word.stem for word in one.frame] for one in (old, new))
    changes = [
        one
        for one in SequenceMatcher(None, mine, theirs, autojunk=False).get_opcodes()
        if one[0] != "equal"
    ]
    if len(changes) != 1 or changes[0][0] != "replace":
        return None
    _, begin, end, start, stop = changes[0]
    is_short = begin > 0 and max(end - begin, stop - start) <= _BLOCK
    blocks = mine[begin:end], theirs[start:stop]
    is_number = any(all(word.isdigit() or word[0] == "\x00" for word in block) for block in blocks)
    if not is_short or is_number or (mine[end:] and mine[end] not in cues().border):
        return None
    is_order = old.tokens[0].stem == mine[0] and set(mine[1:begin]) <= cues().border
    if not (is_order or new.has("now") or new.has("equation")):
        return None
    told = (
        " ".join(word.text for word in block)
        for block in (old.frame[begin:end], new.frame[start:stop])
    )
    return Verdict(Relation.DOUBTS, " → ".join(told), 1.0)


def closes(todo: Memory, later: Memory) -> bool:
    """Whether a later event, fact or decision says that an open todo is done (seed facts 1.3, step 4)."""
    if later.kind not in (Kind.EVENT, Kind.FACT, Kind.DECISION) or not says_done(
        later.content[:LONGEST]
    ):
        return False
    old, new = (
        read(todo.content[:LONGEST], todo.project),
        read(later.content[:LONGEST], todo.project),
    )
    has_key = bool(todo.canonical_key) and todo.canonical_key == later.canonical_key
    there = {one.stem for one in new.tokens}
    is_all = all(
        word in there or (not word.isascii() and set(word) <= set(new.text)) for word in old.words
    )
    return has_key or (len(old.words) > 1 and is_all)


def says_done(text: str, start: int = 0, end: int | None = None) -> bool | None:
    """Whether a part of a text says that something is done, with no denial in the 40 characters before; ``None`` where
    it says neither.
    """
    found = cues().pattern["done"].search(text, start, len(text) if end is None else end)
    if found is None:
        return None
    return not cues().pattern["undone"].search(text[max(0, found.start() - 40) : found.start()])


# ----------------------------------------------------------------------------
# One memory against others: which of two is later, what the later one means for the earlier one.


APART = "alternative_to"
"""A link of this relation between two memories says that both hold, whatever a comparison finds."""


SUPERSEDES = "supersedes"
"""A link of this relation says which memory another one replaced."""

SPECIALIZES = "specializes"
"""A link of this relation says that a memory is of a special case of another one's: both hold."""

CONTRADICTS = "contradicts"
"""A link of this relation says that another memory is likely to be outdated: a person has to say."""

_BOTH_HOLD = frozenset({APART, SPECIALIZES})

_UNTRUSTED = Verdict(Relation.RELATED, "from an untrusted source")
"""What draws on text from outside ends, closes and confirms nothing that the owner said."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Another memory, how the one in question stands to it, and whether the one in question is the later."""

    other: Memory
    verdict: Verdict
    is_later: bool

    @property
    def replaces(self) -> bool:
        """Whether the one in question takes the other's place."""
        return self.is_later and self.verdict.relation is Relation.SUPERSEDES

    @property
    def is_replaced(self) -> bool:
        """Whether the other one, which is later, says otherwise."""
        return not self.is_later and self.verdict.relation is Relation.SUPERSEDES

    @property
    def doubts(self) -> bool:
        """Whether the one in question makes it likely, and no more, that the other is outdated."""
        return self.is_later and self.verdict.relation is Relation.DOUBTS

    @property
    def is_doubted(self) -> bool:
        """Whether the other one, which is later, makes it likely that this one is outdated."""
        return not self.is_later and self.verdict.relation is Relation.DOUBTS

    @property
    def repeats(self) -> bool:
        """Whether the one in question says nothing that the other does not."""
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
    """Compare a memory with others that hold where it does; ``cosines`` are by id, of vectors that ``model`` made.

    ``seen`` is how that sees the probes, where it was not measured; ``rarity`` tells which words are rare.
    """
    limits = calibration_of(model, seen)
    cosines = cosines or {}
    found = [
        _compared(memory, other, cosines.get(other.id), limits, rarity)
        for other in others
        if other.id != memory.id and other.shares_place(memory) and not _are_apart(memory, other)
    ]
    return _one_alone(memory, found)


def _one_alone(memory: Memory, found: list[Comparison]) -> list[Comparison]:
    """One statement ends one other; what it seems to end beside that, a person has to say."""
    has_ended = any(link.rel == SUPERSEDES for link in memory.links)
    ends = [
        one
        for one in found
        if one.is_later and one.verdict.relation is Relation.SUPERSEDES and one.verdict.likeness
    ]
    best = None if has_ended else max(ends, key=lambda one: one.verdict.likeness, default=None)
    return [_doubted(one) if one in ends and one is not best else one for one in found]


def _doubted(one: Comparison) -> Comparison:
    return replace(one, verdict=replace(one.verdict, relation=Relation.DOUBTS))


def last_said(memory: Memory) -> datetime:
    """When a memory was last said or written down."""
    return memory.last_said


def _compared(
    memory: Memory, other: Memory, cosine: float | None, limits: Calibration, rarity: Rarity | None
) -> Comparison:
    is_later = (
        vouches(memory, other) or memory.last_said >= other.last_said
    )  # at one moment: the new one
    earlier, later = (other, memory) if is_later else (memory, other)
    if vouches(other, memory):
        return Comparison(other, _UNTRUSTED, is_later)
    if earlier.kind is Kind.TODO and closes(earlier, later):
        verdict = Verdict(Relation.SUPERSEDES, "done")
    else:
        verdict = judge(earlier, later, cosine, limits, rarity)
    if _share_a_key(earlier, later) and verdict.relation not in _SAYING_THE_SAME:
        verdict = Verdict(Relation.SUPERSEDES, f"holds the key {later.canonical_key}")
    if outranks(earlier, later):
        verdict = _of_the_agent(verdict)
    if vouches(memory, other) and verdict.relation is Relation.SAME:
        verdict = replace(
            verdict, relation=Relation.SUPERSEDES, reason="the same, from a trusted source"
        )
    return Comparison(other, verdict, is_later)


def vouches(memory: Memory, other: Memory) -> bool:
    """Whether somebody answers for a memory and not for another one: then it comes after it, whenever it was said."""
    return memory.is_vouched and not other.is_vouched


def outranks(memory: Memory, other: Memory) -> bool:
    """Whether the owner said a memory, and no word of the other one: that does not count against it by itself."""
    return memory.speaker is Speaker.OWNER and not other.is_worded


def _of_the_agent(verdict: Verdict) -> Verdict:
    """What only the agent said, or the owner only nodded to, ends nothing that the owner said."""
    if verdict.relation is Relation.SUPERSEDES:
        return replace(verdict, relation=Relation.DOUBTS)
    return verdict


_SAYING_THE_SAME = frozenset({Relation.SAME, Relation.SUPERSEDES})


def _share_a_key(one: Memory, other: Memory) -> bool:
    """Whether both were given the same key on purpose: one memory holds it.

    A key of what was learned is a reason to compare: a rule and its special case may be given the same.
    """
    is_given = not one.is_learned and not other.is_learned and one.kind is other.kind
    return is_given and bool(one.canonical_key) and one.canonical_key == other.canonical_key


def _are_apart(one: Memory, other: Memory) -> bool:
    return any(link.rel in _BOTH_HOLD and link.to == other.id for link in one.links) or any(
        link.rel in _BOTH_HOLD and link.to == one.id for link in other.links
    )


# ----------------------------------------------------------------------------
# One memory in the place of another: both files say so, and it can be taken back.
#
# The old one has ``superseded_by`` and the day until which it was true, the new one a link
# ``supersedes`` with the
# reason.


OUTLIVED = "what superseded it was forgotten"


def ended(old: Memory, new: Memory) -> Memory:
    """The old memory as it is once the new one holds: true until then."""
    is_told = new.valid.since and (old.valid.since is None or new.valid.since > old.valid.since)
    day = new.valid.since if is_told and new.valid.since else day_of(last_said(new))
    until = min(day, old.valid.until) if old.valid.until else day
    return replace(old, superseded_by=new.id, valid=replace(old.valid, until=until))


def active_again(old: Memory) -> Memory:
    """A superseded memory as it is when nothing supersedes it any more."""
    return replace(old, superseded_by=None, valid=replace(old.valid, until=None))


def without_link(new: Memory, old_id: str) -> Memory:
    """The new memory without its link to one that it superseded."""
    return _without(new, SUPERSEDES, old_id)


def without_doubt(new: Memory, old_id: str) -> Memory:
    """The new memory without its doubt about another."""
    return _without(new, CONTRADICTS, old_id)


def _without(memory: Memory, rel: str, to: str) -> Memory:
    return replace(
        memory, links=tuple(link for link in memory.links if (link.rel, link.to) != (rel, to))
    )


def doubted(new: Memory, old_id: str, reason: str) -> Memory:
    """The new memory with a link that says that it may have outdated another one."""
    return _with(new, Link(CONTRADICTS, old_id, reason))


def _with(memory: Memory, link: Link) -> Memory:
    has = any((one.rel, one.to) == (link.rel, link.to) for one in memory.links)
    return memory if has else replace(memory, links=(*memory.links, link))


def superseded(memory: Memory) -> dict[str, str | None]:
    """What a memory says it superseded: id → reason."""
    return {link.to: link.reason for link in memory.links if link.rel == SUPERSEDES}


def released(home: Home, gone: Sequence[Memory]) -> list[Memory]:
    """What changes when memories go: those they superseded hold again, or are followed by what still holds.

    The memories as they are to be written; nothing is.
    """
    going = {memory.id for memory in gone}
    changed: dict[str, Memory] = {}
    for memory in gone:
        old = [
            one
            for one in home.memories.replaced_by(memory.id)
            if not one.retired and one.id not in going
        ]
        newer = _still_holding(home, memory, going) if old else None
        if newer is None:
            changed.update((one.id, active_again(one)) for one in old)
            continue
        changed.update((one.id, ended(active_again(one), newer)) for one in old)
        reasons, newer = superseded(memory), changed.get(newer.id, newer)
        links = tuple(Link(SUPERSEDES, one.id, reasons.get(one.id)) for one in old)
        changed[newer.id] = replace(newer, links=(*newer.links, *links))
    return list(changed.values())


def outlived(
    home: Home, gone: Sequence[Memory], left: Mapping[str, Memory], now: datetime
) -> list[Memory]:
    """What changes when memories are forgotten: nothing names them any more, and nothing comes back by itself.

    What they superseded is followed by what superseded them; where nothing did, it is retired. ``left`` are memories
    that change anyhow. The memories as they are to be written; nothing is.
    """
    going = {memory.id for memory in gone}
    changed = dict(left)
    for naming in home.memories.in_any_state(home.erasing.linking(sorted(going))):
        if naming.id not in going:
            memory = changed.get(naming.id, naming)
            changed[naming.id] = replace(
                memory, links=tuple(link for link in memory.links if link.to not in going)
            )
    for memory in gone:
        newer = _still_holding(home, memory, going)
        for old in home.memories.replaced_by(memory.id):
            if old.id in going:
                continue
            old = active_again(changed.get(old.id, old))
            if newer and not old.retired:
                old = ended(old, newer)
                holding = changed.get(newer.id, newer)
                changed[newer.id] = replace(
                    holding, links=(*holding.links, Link(SUPERSEDES, old.id))
                )
            changed[old.id] = (
                replace(old, retired=old.retired or Retirement(now, OUTLIVED)) if not newer else old
            )
    return list(changed.values())


def _still_holding(home: Home, memory: Memory, going: Collection[str]) -> Memory | None:
    """The first in the line of what superseded a memory that is there and does not go, too."""
    passed: set[str] = set()
    newer: Memory | None = memory
    while newer and newer.superseded_by and newer.superseded_by not in passed:
        passed.add(newer.superseded_by)
        newer = home.memories.find(newer.superseded_by)
        if newer and newer.id not in going and not newer.retired:
            return newer
    return None


def agreed(home: Home, changed: Iterable[tuple[Memory | None, Memory]]) -> list[Memory]:
    """What else must change when files were edited by hand, so that both sides of a succession say the same.

    ``changed`` are memories before and after. A person may add or take away either side; the other one follows.
    """
    follow: dict[str, Memory] = {}
    for before, after in changed:
        if after.retired:
            continue
        said, had = superseded(after), superseded(before) if before else {}
        for old in _found(home, said.keys() ^ had.keys()):
            if old.id in had and old.superseded_by == after.id:
                follow[old.id] = active_again(old)
            elif old.id in said and not old.superseded_by:
                follow[old.id] = ended(old, after)
        newer = (
            home.memories.find(before.superseded_by or "")
            if before and not after.superseded_by
            else None
        )
        if before and newer:
            follow[after.id] = active_again(after) if after.valid == before.valid else after
            follow[newer.id] = without_link(newer, after.id)
    return list(follow.values())


def _found(home: Home, memory_ids: Iterable[str]) -> list[Memory]:
    found = (home.memories.find(memory_id) for memory_id in sorted(memory_ids))
    return [memory for memory in found if memory and not memory.retired]


# ----------------------------------------------------------------------------
# What a language model may decide about a new memory and those nearest to it, and what code holds it
# to.
#
# ADD, UPDATE, SKIP and SUPERSEDE are agenr's (online dedup from a cosine of .72); AMEND is for what
# ends in a part. A
# model only ever names one of the
# memories it was shown, by number; whatever it says, a decision that would lose a number, a name or a
# denial, or by
# which a weaker source would change a stronger one, is none.


VERSION = "decide-2"
NAME = "decide"

SHORTEST = 20
"""Characters of a merged memory at least (seed facts 1.5), where neither of the two has fewer."""

_SETTLED = frozenset({Kind.DECISION, Kind.PREFERENCE})
"""What a choice may be called when it is written down twice: as a rule from now on, or as what was settled that day."""

MOST_ADDED = 100
"""A merged memory is at most so many characters longer than both together."""

MOST_ENDED = 0.5
"""Of a memory that goes on in a part, so much of its words may go; with more of them it is another one."""

_REASON_CHARACTERS = 160
_OUTPUT_TOKENS = 4_096
_CLAIMS_DECISION_PROMPT = frozenset({Kind.FACT, Kind.DECISION, Kind.PREFERENCE, Kind.RELATIONSHIP})


class Action(StrEnum):
    """What becomes of a new memory."""

    ADD = "ADD"
    UPDATE = "UPDATE"
    SKIP = "SKIP"
    SUPERSEDE = "SUPERSEDE"
    AMEND = "AMEND"


_IN_WORDS = frozenset({Action.UPDATE, Action.AMEND})
"""What is given in words of its own."""


class Choice(msgspec.Struct, forbid_unknown_fields=True):
    """What a model answers: why, what, about which memory (its number), and the words of both where they become one, or
    those that are left of it.
    """

    reason: str
    action: Literal["ADD", "UPDATE", "SKIP", "SUPERSEDE", "AMEND"]
    target: int | None
    merged: str | None


@dataclass(frozen=True, slots=True)
class Decision:
    """What a model decided: about which memory (its id, and its :func:`mark` then), in which words, why.

    ``by`` is the model.
    """

    action: Action
    by: str
    reason: str
    target: str | None = None
    mark: str | None = None
    merged: str = ""

    def in_words(self) -> str:
        """The reason and who gave it."""
        return f"{self.reason or self.action.value.lower()} ({self.by})"


def mark(memory: Memory) -> str:
    """What a decision about a memory rests on: it is void when this is another."""
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
    """What a model is asked: a new memory and those nearest to it, as data that nothing within it can end."""
    stored = "\n".join(_as_data(one, number) for number, one in enumerate(near, start=1))
    return Prompt(
        Task.DEDUP,
        _system(),
        f"<stored>\n{stored}\n</stored>\n<new>\n{_as_data(memory)}\n</new>",
        schema_of(Choice),
        name=NAME,
        version=VERSION,
        output_tokens=_OUTPUT_TOKENS,
        timeout_seconds=seconds,
    )


def decide(choice: Choice, memory: Memory, near: Sequence[Memory], by: str) -> Decision:
    """What follows from a model's answer; ADD, with the reason why, where it may not be followed."""
    reason = shorten(visible(choice.reason), _REASON_CHARACTERS)
    if choice.action == Action.ADD:
        return Decision(Action.ADD, by, reason)
    if choice.target is None or not 1 <= choice.target <= len(near):
        return Decision(Action.ADD, by, f"no memory has the number {choice.target}")
    target = near[choice.target - 1]
    action, merged = Action(choice.action), visible(choice.merged or "").strip()
    if "\n" not in target.content + memory.content:
        merged = one_line(merged)
    if action is Action.UPDATE and normalise(merged) == normalise(target.content):
        action = Action.SKIP
    made = Decision(
        action, by, reason, target.id, mark(target), merged if action in _IN_WORDS else ""
    )
    why = refusal(made, memory, target)
    return Decision(Action.ADD, by, f"not {_NAMES[action]}: {why}") if why else made


def refusal(decision: Decision, memory: Memory, target: Memory) -> str | None:
    """Why a decision about two memories may not be followed; ``None`` where it may."""
    if decision.mark != mark(target) or not target.is_active:
        return "the other memory has changed"
    if not memory.shares_place(target):
        return "it belongs to another project"
    if target.is_vouched and not memory.is_vouched:
        return "it comes from an untrusted source"
    return _REFUSALS[decision.action](decision, memory, target)


def _no_repetition(_: Decision, memory: Memory, target: Memory) -> str | None:
    """A memory is left out only where another one of its kind says all of it, as surely, and by who counts as much."""
    if why := _no_one_memory(memory, target):
        return why
    if missing := lost(memory.content, [target.content]):
        return f"the other does not say {missing}"
    swapped = swaps(memory.content, [target.content])
    return f"the other has {swapped}" if swapped else None


def _no_union(decision: Decision, memory: Memory, target: Memory) -> str | None:
    """Two memories become one only in words that keep what both say and add nothing."""
    if why := _no_one_memory(memory, target) or _no_later(memory, target):
        return why
    if (memory.speaker, memory.is_worded) != (target.speaker, target.is_worded):
        return "the owner and the agent said them"
    merged, both = decision.merged, (target.content, memory.content)
    shortest = min(SHORTEST, *map(len, both))
    if not shortest <= len(merged) <= min(sum(map(len, both)) + MOST_ADDED, LONGEST):
        return "the merged words are too few or too many"
    for one in both:
        if missing := lost(one, [merged]):
            return f"the merged words leave out {missing}"
        if leaves_out(one, merged) > MOST_LEFT_OUT:
            return "the merged words leave out most of one"
    added = adds(merged, both)
    return f"the merged words add {added}" if added else None


def _no_one_memory(memory: Memory, target: Memory) -> str | None:
    if memory.kind is not target.kind and not {memory.kind, target.kind} <= _SETTLED:
        return f"one is a {memory.kind}, the other a {target.kind}"
    if memory.is_vouched is not target.is_vouched or memory.trust is not target.trust:
        return "only one is trusted"
    return "the owner's words would count as the agent's" if _is_weaker(target, memory) else None


def _no_succession(_: Decision, memory: Memory, target: Memory) -> str | None:
    """What ends a memory is said later, about a like thing, and by somebody whose word counts as much."""
    if _is_weaker(memory, target):
        return "the agent's words end nothing that the owner said"
    are_like = memory.kind is target.kind or {memory.kind, target.kind} <= _CLAIMS_DECISION_PROMPT
    if target.kind is Kind.EVENT or not are_like:
        return f"a {memory.kind} does not end a {target.kind}"
    return _no_later(memory, target)


def _no_amendment(decision: Decision, memory: Memory, target: Memory) -> str | None:
    """What ends a part of a memory may end it, and leaves it in words that add nothing and keep the most of it."""
    if why := _no_succession(decision, memory, target):
        return why
    left = decision.merged
    if (
        not min(SHORTEST, len(target.content))
        <= len(left)
        <= min(len(target.content) + MOST_ADDED, LONGEST)
    ):
        return "the words that are left are too few or too many"
    if normalise(left) == normalise(target.content):
        return "nothing of it has changed"
    if leaves_out(target.content, left) > MOST_ENDED:
        return "the words that are left leave out most of it"
    if denial := lost_denial(target.content, left):
        return denial
    if exchanged := exchanges(left, target.content):
        return f"the words that are left have {exchanged}"
    added = adds(left, (target.content, memory.content))
    return f"the words that are left add {added}" if added else None


def _no_later(memory: Memory, target: Memory) -> str | None:
    return "the other was said later" if memory.last_said < target.last_said else None


def _is_weaker(one: Memory, other: Memory) -> bool:
    """Whether the owner said the other, and not the one."""
    return other.speaker is Speaker.OWNER and not one.is_worded


_REFUSALS = {
    Action.ADD: lambda *_: None,
    Action.SKIP: _no_repetition,
    Action.UPDATE: _no_union,
    Action.SUPERSEDE: _no_succession,
    Action.AMEND: _no_amendment,
}
_NAMES = {
    Action.SKIP: "known",
    Action.UPDATE: "merged",
    Action.SUPERSEDE: "superseding",
    Action.AMEND: "amending",
}


def _as_data(memory: Memory, number: int | None = None) -> str:
    """A memory on one line of JSON, in which no mark of the prompt can stand."""
    told = {
        "number": number,
        "kind": memory.kind.value,
        "said_by": memory.speaker.value,
        "day": shown_day(memory.last_said),
        "subject": memory.subject,
        "content": memory.content,
    }
    line = msgspec.json.encode({key: value for key, value in told.items() if value is not None})
    return line.decode("utf-8", "replace").replace("<", "\\u003c").replace(">", "\\u003e")


@cache
def _system() -> str:
    return (files(__package__) / "prompts" / f"{VERSION}.md").read_text(encoding="utf-8")


# ----------------------------------------------------------------------------
# Standing retirements: what fits is retired as soon as it is stored. The ledger keeps them.
#
# One that arrives in the ledger from another machine also takes what was stored here before, without
# knowing of it. What
# is stored or brought back in spite of it, on whichever machine, stays.


SUPPRESSED = ("session-start",)
"""Where what a standing retirement takes stays out (seed facts 1.9)."""


def fits(subject: str, pattern: str, match: Match) -> bool:
    """Whether a subject fits a pattern; letter case and spaces do not count."""
    subject, pattern = plain(subject), plain(pattern)
    if match is Match.EXACT:
        return subject == pattern
    if match is Match.CONTAINS:
        return pattern in subject
    return (
        re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), subject, re.DOTALL) is not None
    )


def plain(subject: str) -> str:
    """A subject as subjects are compared."""
    return " ".join(subject.casefold().split())


def standing_for(home: Home, memory: Memory) -> StandingRetirement | None:
    """The standing retirement that a memory falls under; the oldest, where several do."""
    return next((rule for rule in home.tombstones.standing() if is_under(memory, rule)), None)


def is_under(memory: Memory, rule: StandingRetirement) -> bool:
    """Whether a memory falls under a standing retirement."""
    same_key = rule.canonical_key is not None and rule.canonical_key == memory.canonical_key
    return same_key or fits(memory.subject, rule.pattern, rule.match)


def retire_due(home: Home) -> int:
    """Retire what was here when a standing retirement arrived; returns how many. Call when all files are read.

    What somebody brought back in spite of it stays, as does what is being edited just now: that is told in
    ``home.problems``. While another process writes, it is left to the next command.
    """
    if not home.tombstones.arrived():
        return 0
    with home.vault_lock.if_free() as is_ours:
        return _retire_arrived(home) if is_ours else 0


def _retire_arrived(home: Home) -> int:
    with home.change("retire", why="a standing retirement of another machine") as change:
        apply_intents(home)
        arrived = home.tombstones.arrived()
        back = _brought_back(home) if arrived else set()
        found = [
            one for one in home.memories.in_any_state(sorted(set(arrived) - back)) if one.is_active
        ]
        due = [(memory, rule) for memory in found if (rule := standing_for(home, memory))]
        retired = sum(_retire(change, memory, rule) for memory, rule in due)
        with home.database.transaction():
            home.tombstones.set_arrived(())
        return retired


def _retire(change: Change, memory: Memory, rule: StandingRetirement) -> bool:
    home = change.home
    gone = retired_by(home, memory, rule)
    reason = gone.retired.reason if gone.retired else None
    told = change.entry("retire", memory=memory.id, reason=reason)
    try:
        change.put([gone, *released(home, [memory])], [told])
    except EditConflict as error:
        home.problems.append(error.message)
        return False
    return True


def _brought_back(home: Home) -> set[str]:
    """Memories that were unretired after a standing retirement: the ledger tells, whichever machine it was."""
    since = min((rule.at for rule in home.tombstones.standing()), default=home.now())
    try:
        entries = ledger.read(home.vault.read(LEDGER))
    except FileNotFoundError:
        return set()
    return {
        str(one.details.get("memory"))
        for one in entries
        if one.action == "unretire" and one.at >= since
    }


def retired_by(home: Home, memory: Memory, rule: StandingRetirement) -> Memory:
    """A memory as it is stored under a standing retirement."""
    contexts = tuple(dict.fromkeys((*memory.suppressed_contexts, *rule.contexts)))
    reason = rule.reason or f"{rule.pattern!r} is retired whenever it is stored"
    return replace(memory, retired=Retirement(home.now(), reason), suppressed_contexts=contexts)
