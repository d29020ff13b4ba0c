"""Compare statements and decide how a new memory affects stored memories.

Without a model, only clear cases are decided, as docs/duplicates.md explains. If an earlier
statement might be outdated, the owner decides. In all other cases, both are kept.
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
from itertools import takewhile
from typing import Literal

import msgspec

from nacre.base.frozen import frozen
from nacre.base.ids import content_hash
from nacre.base.text import is_unspaced, normalise, one_line, shorten, title_of, visible
from nacre.base.times import day_of, shown_day
from nacre.home.home import Home
from nacre.llm import minilm
from nacre.llm.calibration import Calibration, MeanCosines, calibration_of
from nacre.llm.failures import Schema, schema_of
from nacre.memories.statements import (
    JOINING,
    MOST_LEFT_OUT,
    Statement,
    Token,
    adds,
    cues,
    exchanges,
    leaves_out,
    lost,
    lost_denial,
    negations,
    read,
    swaps,
)
from nacre.values.memory import Kind, Link, Match, Memory, Retirement, StandingRetirement
from nacre.values.models import Prompt
from nacre.values.session import Task

LONGEST = 4_000
"""Maximum number of characters to compare in a text."""

ENOUGH_TURNS = 500
"""Minimum number of turns in a home for its word counts to show which words are rare."""

_PRIOR_TURNS = 500
_WORDS_PER_TURN = 20
_FIRST_WORD = 1_996
"""Rank of the first whole word in the vocabulary. Letters and symbols have lower ranks."""

_ZIPF = 10.0
_MAX_RARE_SHARE = 0.0004
_MAX_RARE_SHARE_AT_HOME = 0.02
_MIN_COMMON_SHARE = 0.34
_MIN_OVERLAP = 0.7
_MAX_PHRASE_WORDS = 4
_CLAIMS = {Kind.FACT, Kind.DECISION, Kind.PREFERENCE, Kind.RELATIONSHIP}
_WORD = re.compile(r"\w+")
_TIME_SORTS = frozenset({"weekday", "date", "time", "path"})
_PURPOSE = frozenset({"about", "for", "für"})
_INVERTING_WORDS = frozenset({"of", "by", "von"})
"""Words that can invert the word order, as in "the gate of the quarry"."""


class Relation(StrEnum):
    """The relation of a later statement to an earlier one.

    The earlier statement is no longer true (``supersedes``), might be outdated (``doubts``),
    already says everything (``same``), or has the same subject (``related``).
    """

    SUPERSEDES = "supersedes"
    DOUBTS = "doubts"
    SAME = "same"
    RELATED = "related"
    UNRELATED = "unrelated"


@frozen
class Verdict:
    """The relation between two statements, with a short reason and their similarity from 0 to 1."""

    relation: Relation
    reason: str = ""
    likeness: float = 0.0


_UNRELATED = Verdict(Relation.UNRELATED)

Counts = Callable[[Sequence[str]], tuple[int, Sequence[int]]]
"""Function that returns the number of turns in a home, and the number with each word."""


class Rarity:
    """A test for rare words, based on their frequency in the home and in general English."""

    def __init__(self, count: Counts = lambda words: (0, [0] * len(words))) -> None:
        self._count = count

    @cached_property
    def is_known(self) -> bool:
        """True if the home has enough turns for reliable word frequencies."""
        return self._count([])[0] >= ENOUGH_TURNS

    def has_rare(self, words: Sequence[str]) -> bool:
        """Return True if at least one of the words is rare."""
        turns, counts = self._count(words) if self.is_known else (0, [0] * len(words))
        limit = _MAX_RARE_SHARE_AT_HOME if turns else _MAX_RARE_SHARE
        return any(
            count + _PRIOR_TURNS * min(1.0, _expected_share(word)) < limit * (turns + _PRIOR_TURNS)
            for word, count in zip(words, counts, strict=True)
        )


def _expected_share(word: str) -> float:
    """Estimate the share of turns that contain a word, using Zipf's law."""
    rank = minilm.vocabulary().get(word, 0)
    return _WORDS_PER_TURN / (_ZIPF * max(1, rank - _FIRST_WORD)) if rank >= _FIRST_WORD else 0.0


def judge(
    earlier: Memory,
    later: Memory,
    cosine: float | None,
    limits: Calibration,
    rarity: Rarity | None = None,
    *,
    is_nearest: bool = True,
) -> Verdict:
    """Decide how the statement ``later`` relates to ``earlier``.

    Both must apply to the same project. ``cosine`` is their similarity, or ``None`` if one of them
    has no vector. ``is_nearest`` is False if another statement is more similar.
    """
    project, rarity = later.project or earlier.project, rarity or Rarity()
    old, new = read(earlier.content[:LONGEST], project), read(later.content[:LONGEST], project)
    is_whole = max(len(earlier.content), len(later.content)) <= LONGEST
    if earlier.kind is later.kind and is_whole and _is_same(old, new, cosine, limits):
        return Verdict(Relation.SAME, "says the same")
    if not _cannot_supersede(earlier.kind, later.kind) and not old.text.rstrip().endswith(
        ("?", "？")
    ):
        changes = [_departure(old, new, rarity)]
        is_lasting = not any(
            item.has(sort) for item in (old, new) for sort in ("unsure", "passing")
        )
        if is_lasting and later.kind in {*_CLAIMS, Kind.TODO}:
            if negations(old.claim) == negations(new.claim):
                changes.append(_replacement(old, new, rarity))
            if not (old.departures or new.departures):
                changes.append(_contradiction(earlier, later, old, new))
                if is_nearest and not any(changes):
                    changes.append(_event(old, new, cosine, limits))
        found = [change for change in changes if change]
        if found:
            return max(found, key=lambda change: change.relation is Relation.SUPERSEDES)
    is_near = cosine is not None and cosine >= limits.link
    subjects = read(earlier.subject).words, read(later.subject).words
    has_overlap = 2 * len(old.words & new.words) >= _MIN_OVERLAP * max(
        1, len(old.words) + len(new.words)
    )
    is_about = is_near or has_overlap or (subjects[0] and subjects[0] == subjects[1])
    return Verdict(Relation.RELATED, "about the same") if is_about else _UNRELATED


def _cannot_supersede(kind: Kind, later_kind: Kind) -> bool:
    # Events stay true, only a todo supersedes a todo, and a lesson supersedes only a lesson.
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
        (
            [slot.text for slot in item.slots],
            item.negations,
            bool(item.departures),
            item.has("unsure"),
        )
        for item in (old, new)
    )
    adds_words = len(new.words - old.words) > len(old.words - new.words)
    return is_named and parts == new_parts and not (is_turned or adds_words)


def _departure(old: Statement, new: Statement, rarity: Rarity) -> Verdict | None:
    claim = read(old.claim)
    likeness = len(old.words & new.words) / (len(old.words) or 1)
    for departure in () if claim.negations else new.departures:
        subject, rest = departure.subject, old.words - departure.subject - new.words
        unknown = departure.context - old.words
        # If both have words that the other lacks, they are about different things.
        if (
            not (subject and subject <= claim.words and departure.values <= old.values)
            or (rest and unknown)
            or unknown.intersection(_stems(new.content[:1]))
            or any(subject & other.subject for other in old.departures)
        ):
            continue
        gone = [word for word in old.tokens if word.stem in subject]
        if not (gone and old.content):
            continue
        is_whole = old.words <= subject and departure.values == old.values
        is_clear = is_whole or rarity.has_rare([word.text.lower() for word in gone])
        is_main = {old.content[0].stem, old.content[-1].stem} & subject
        if is_clear or is_main or likeness >= _MIN_COMMON_SHARE:
            # The word after it shows if the statement is about another thing, like "Redis outage".
            following = old.tokens[old.tokens.index(gone[-1]) + 1 :][:1]
            asserts = old.tokens[0] == gone[0] or {*_stems(following)}.isdisjoint(old.words)
            is_sure = is_clear and asserts and not unknown
            return _verdict(f"no longer: {departure.text}", likeness, is_sure=is_sure)
    if new.has("again") and old.negations > new.negations and old.words and old.words <= new.words:
        return _verdict("allowed again", is_sure=True)
    return None


def _replacement(old: Statement, new: Statement, rarity: Rarity) -> Verdict | None:
    """Compare statements that are the same except for values, such as days, or for one phrase."""
    kept = _essential(old, new)
    sides = [sorted(words, key=lambda word: word.stem) for words in (kept, new.content)]
    has_phrase = _stems(sides[0]) != _stems(sides[1])
    gone, come = _difference(*((kept, new.content) if has_phrase else sides))
    if not gone or (has_phrase and len(gone) == len(kept)):
        return None
    phrases = _text(old, gone), _text(new, come)
    if has_phrase and not (_is_phrase(phrases[0], gone) and _is_phrase(phrases[1], come)):
        return None
    values = {(word.stem, word.value) for word in gone}
    if new.departures:
        is_named = any(
            values <= departure.values or {*_stems(gone)} == departure.subject
            for departure in new.departures
        )
        is_sure: bool | None = is_named or None
    elif has_phrase:
        is_sure = _is_other_phrase(old, new, gone, come, rarity, has_tail=kept[-1] != gone[-1])
    else:
        is_sure = _is_other_value(old, new, gone, len(kept) - len(gone), rarity)
    if is_sure is None:
        return None
    return _verdict(" → ".join(phrases), is_sure=is_sure and kept == old.content)


def _event(
    old: Statement, new: Statement, cosine: float | None, limits: Calibration
) -> Verdict | None:
    """Doubt a statement if the later one says that its subject has changed."""
    subject = [*takewhile(lambda word: word.stem in old.words, new.content)]
    is_other = new.words - old.words or new.values - old.values
    if not (new.is_change and subject and is_other and cosine and cosine >= limits.link):
        return None
    return _verdict(f"changed: {_text(new, subject)}", is_sure=False)


def _verdict(reason: str, likeness: float = 1.0, *, is_sure: bool) -> Verdict:
    return Verdict(Relation.SUPERSEDES if is_sure else Relation.DOUBTS, reason, likeness)


def _stems(words: Iterable[Token]) -> list[str]:
    return [word.stem for word in words]


def _essential(old: Statement, new: Statement) -> list[Token]:
    """Return the content of ``old`` without the words that ``new`` may omit.

    These are words before "and", and a verb that "moved to" replaces.
    """
    stems = {word.stem for word in new.content}
    optional = JOINING | cues().plain if new.has("moved") else JOINING
    return [
        word
        for word in old.content
        if word.stem in stems
        or old.claim[word.start + len(word.text) :].strip().partition(" ")[0].lower()
        not in (JOINING if word.is_name else optional)
    ]


def _difference(
    old: Sequence[Token], new: Sequence[Token]
) -> tuple[Sequence[Token], Sequence[Token]]:
    """Return the words that differ, if each side has exactly one group of them."""
    keys, new_keys = ([word.stem + word.value for word in words] for words in (old, new))
    groups = [
        (old[begin:end], new[start:stop])
        for tag, begin, end, start, stop in SequenceMatcher(
            None, keys, new_keys, autojunk=False
        ).get_opcodes()
        if tag != "equal"
    ]
    gone, come = [words for words, _ in groups if words], [words for _, words in groups if words]
    return (gone[0], come[0]) if len(gone) == len(come) == 1 else ((), ())


def _text(statement: Statement, words: Sequence[Token]) -> str:
    ends = [word.start + len(word.text) for word in words]
    return statement.claim[min(word.start for word in words) : max(ends)]


def _is_phrase(text: str, words: Sequence[Token]) -> bool:
    """Return True if a text is short and contains only the given words."""
    is_short = len(words) <= _MAX_PHRASE_WORDS and sum(map(_is_common, words)) <= 1
    is_short = is_short and not any(word.value for word in words)
    own = "".join(word.text for word in words)
    return is_short and "".join(_WORD.findall(text)) == "".join(_WORD.findall(own))


def _is_common(word: Token) -> bool:
    return not word.is_name and word.text.isascii()


def _is_other_value(
    old: Statement, new: Statement, gone: Sequence[Token], topics: int, rarity: Rarity
) -> bool | None:
    """Return True if a value certainly changed, False if it might have, and None if it did not."""
    sorts = {word.stem[1:] for word in gone}
    frame, new_frame = _stems(old.frame), _stems(new.frame)
    if len(gone) > 1 and not sorts <= _TIME_SORTS:
        return None
    if frame == new_frame and min(frame.index(word.stem) for word in gone) > 1:
        return new.has("now") or sorts.isdisjoint(_TIME_SORTS)
    if topics > (not new.is_change) or (new.is_change and frame == new_frame):
        return new.is_change and rarity.is_known
    return None


def _is_other_phrase(
    old: Statement,
    new: Statement,
    gone: Sequence[Token],
    come: Sequence[Token],
    rarity: Rarity,
    *,
    has_tail: bool,
) -> bool | None:
    """Return True if a version certainly changed, False if a phrase might have, or else None."""
    patterns, border, plain = cues().pattern, cues().border, cues().plain
    (before, after), (new_before, new_after) = _neighbours(old, gone), _neighbours(new, come)
    text = old.claim[: gone[0].start]
    words = _WORD.findall(text.lower())
    if cues().silent.issuperset(words):
        rest = old.claim[gone[-1].start + len(gone[-1].text) :]
        return False if new.is_change and patterns["role"].match(rest) else None
    if before != new_before and not new.has("moved"):
        return None
    numbers = [word.stem.isdigit() for word in (*gone, *come)]
    if any(numbers) and (new.is_change or len(numbers) == 2):
        is_count = before in plain and after == new_after and after not in border
        if new.is_change and is_count and (after or all(numbers)):
            return False
        name = old.frame[old.frame.index(gone[0]) - 1]
        choice = patterns["choice"].search(old.claim[: name.start])
        has_verb = choice or (new.is_change and name != old.frame[0])
        if not (all(numbers) and name.is_name and has_verb):
            return None
        # Only versions of the same thing are certain: "use Postgres 15" and "use Postgres 17".
        return bool(choice and choice.lastindex) and rarity.has_rare([name.text.lower()])
    is_chosen = patterns["choice"].search(text) and all(word.is_name for word in (*gone, *come))
    ends_phrase = is_chosen or not after or after in border or after > "\u3400"
    if (
        before in _PURPOSE
        or not ends_phrase
        or (gone[-1].text[:1].isupper() and _is_common(come[-1]))
    ):
        return None
    if new.is_change:
        return False if has_tail or not patterns["many"].search(text) else None
    following = (
        statement.claim[part[-1].start + len(part[-1].text) :].split()[:1]
        for statement, part in ((old, gone), (new, come))
    )
    is_order = words[0] not in cues().silent and border.union(plain).issuperset(words)
    is_order = is_order and next(following) == next(following)
    return False if (is_order if has_tail else new.has("equation")) else None


def _neighbours(statement: Statement, words: Sequence[Token]) -> tuple[str, str]:
    """Return the stems of the frame's words before and after the given words."""
    stems = ["", *_stems(statement.frame), ""]
    return stems[statement.frame.index(words[0])], stems[statement.frame.index(words[-1]) + 2]


def _contradiction(
    earlier: Memory, later: Memory, old: Statement, new: Statement
) -> Verdict | None:
    if earlier.kind not in _CLAIMS:
        return None
    has_subject = earlier.subject == later.subject != title_of(later.content)
    if (old.negations > 0) != (new.negations > 0):
        is_same = old.words == new.words or (has_subject and old.words & new.words)
        return _verdict("says the opposite", is_sure=False) if is_same and old.words else None
    gone, come = (
        {slot.stem: slot.text for slot in a.slots if (slot.stem, slot.value) not in b.values}
        for a, b in ((old, new), (new, old))
    )
    if has_subject and len(gone) == 1 and gone.keys() == come.keys():
        change = " → ".join((*gone.values(), *come.values()))
        return _verdict(change, is_sure=False)
    return None


def closes(todo: Memory, later: Memory) -> bool:
    """Return True if a later event, fact or decision means that an open todo is done."""
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
    """Return True if ``text[start:end]`` says that a task is done, False if not done, or else None."""
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
"""Verdict for untrusted text, which cannot change or confirm the owner's statements."""


@frozen
class Comparison:
    """The comparison of a memory with ``other``.

    ``is_later`` is True if ``other`` is the earlier one.
    """

    other: Memory
    verdict: Verdict
    is_later: bool

    @property
    def replaces(self) -> bool:
        """True if the memory is later and replaces the other one."""
        return self.is_later and self.verdict.relation is Relation.SUPERSEDES

    @property
    def is_replaced(self) -> bool:
        """True if the other memory is later and replaces this one."""
        return not self.is_later and self.verdict.relation is Relation.SUPERSEDES

    @property
    def doubts(self) -> bool:
        """True if the memory suggests that the other one is outdated."""
        return self.is_later and self.verdict.relation is Relation.DOUBTS

    @property
    def is_doubted(self) -> bool:
        """True if the other memory suggests that this one is outdated."""
        return not self.is_later and self.verdict.relation is Relation.DOUBTS

    @property
    def repeats(self) -> bool:
        """True if the memory says the same as the other one."""
        return self.verdict.relation is Relation.SAME


def compare(
    memory: Memory,
    candidates: Iterable[Memory],
    *,
    cosines: Mapping[str, float] | None = None,
    model: str | None = None,
    mean_cosines: MeanCosines | None = None,
    rarity: Rarity | None = None,
) -> list[Comparison]:
    """Compare a memory with all candidates that apply to the same project.

    ``cosines`` maps ids of candidates to their similarity according to ``model``. For an unknown
    model, the thresholds are estimated from ``mean_cosines``.
    """
    limits = calibration_of(model, mean_cosines)
    cosines = cosines or {}
    highest = max(cosines.values(), default=None)
    comparisons = [
        _compare_pair(memory, other, cosines.get(other.id), limits, rarity, highest)
        for other in candidates
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
    memory: Memory,
    other: Memory,
    cosine: float | None,
    limits: Calibration,
    rarity: Rarity | None,
    highest: float | None,
) -> Comparison:
    # If the times are equal, the new memory counts as later.
    is_later = vouches(memory, other) or memory.last_said >= other.last_said
    earlier, later = (other, memory) if is_later else (memory, other)
    if vouches(other, memory):
        return Comparison(other, _UNTRUSTED, is_later)
    if earlier.kind is Kind.TODO and closes(earlier, later):
        verdict = Verdict(Relation.SUPERSEDES, "done")
    else:
        verdict = judge(earlier, later, cosine, limits, rarity, is_nearest=cosine == highest)
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

    Then ``memory`` counts as the later one, regardless of dates.
    """
    return memory.is_vouched and not other.is_vouched


def outranks(memory: Memory, other: Memory) -> bool:
    """Return True if ``memory`` is the owner's statement and ``other`` is not in the owner's words.

    Then ``other`` cannot supersede ``memory``.
    """
    return memory.is_owners and not other.is_worded


def _weaken(verdict: Verdict) -> Verdict:
    if verdict.relation is Relation.SUPERSEDES:
        return replace(verdict, relation=Relation.DOUBTS)
    return verdict


_SAYING_THE_SAME = frozenset({Relation.SAME, Relation.SUPERSEDES})


def _share_a_key(memory: Memory, other: Memory) -> bool:
    # A rule and its exception can share a learned key.
    is_given = not memory.is_learned and not other.is_learned and memory.kind is other.kind
    return is_given and bool(memory.canonical_key) and memory.canonical_key == other.canonical_key


# -- Succession ----------------------------------------------------------------
#
# The old memory stores ``superseded_by`` and its last day, the new one a ``supersedes`` link with
# the reason. Each side can be undone on its own.


OUTLIVED = "its successor was forgotten"


def mark_ended(old: Memory, new: Memory) -> Memory:
    """Return the old memory with an end date, and with the new memory as its successor."""
    has_later_start = new.valid.since and (
        old.valid.since is None or new.valid.since > old.valid.since
    )
    day = new.valid.since if has_later_start and new.valid.since else day_of(new.last_said)
    until = min(day, old.valid.until) if old.valid.until else day
    return replace(old, superseded_by=new.id, valid=replace(old.valid, until=until))


def active_again(old: Memory) -> Memory:
    """Return a superseded memory with its successor and end date removed."""
    return replace(old, superseded_by=None, valid=replace(old.valid, until=None))


def without_link(new: Memory, old_id: str) -> Memory:
    """Return the new memory without the link that says it supersedes the old one."""
    return _without(new, SUPERSEDES, old_id)


def without_doubt(new: Memory, old_id: str) -> Memory:
    """Return the new memory without the link that says it contradicts the old one."""
    return _without(new, CONTRADICTS, old_id)


def _without(memory: Memory, rel: str, to: str) -> Memory:
    return replace(
        memory, links=tuple(link for link in memory.links if (link.rel, link.to) != (rel, to))
    )


def add_doubt(new: Memory, old_id: str, reason: str) -> Memory:
    """Return the new memory with a link that says it contradicts the old one."""
    link = Link(CONTRADICTS, old_id, reason)
    is_present = any((existing.rel, existing.to) == (link.rel, link.to) for existing in new.links)
    return new if is_present else replace(new, links=(*new.links, link))


def superseded_ids(memory: Memory) -> dict[str, str | None]:
    """Return the ids of the memories that a memory replaced, each with the reason."""
    return {link.to: link.reason for link in memory.links if link.rel == SUPERSEDES}


def release(home: Home, removed: Sequence[Memory]) -> list[Memory]:
    """Return the other memories that must change when ``removed`` memories are retired.

    Memories that a removed memory superseded become active again, or its successor supersedes them.
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
    home: Home, removed: Sequence[Memory], other_changes: Mapping[str, Memory], now: datetime
) -> list[Memory]:
    """Return the other memories that must change when ``removed`` memories are forgotten.

    Memories that a removed memory superseded get its successor, or are retired if it has none.
    ``other_changes`` contains changed memories by id.
    """
    gone_ids = {memory.id for memory in removed}
    changed = dict(other_changes)
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
    visited: set[str] = set()
    newer: Memory | None = memory
    while newer and newer.superseded_by and newer.superseded_by not in visited:
        visited.add(newer.superseded_by)
        newer = home.memories.find(newer.superseded_by)
        if newer and newer.id not in gone_ids and not newer.retired:
            return newer
    return None


def reconcile(home: Home, changed: Iterable[tuple[Memory | None, Memory]]) -> list[Memory]:
    """Return updates so that memories and their successors refer to each other after edits.

    ``changed`` contains each edited memory before and after the edit.
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
# ADD, UPDATE, SKIP and SUPERSEDE come from agenr, which asks at a cosine similarity of .72 or more.
# AMEND is for memories that are partly outdated. A model refers to memories by their numbers in the
# prompt. A decision that loses a number, name or negation, or lets a weaker source change a stronger
# one, is discarded.


VERSION = "decide-2"
NAME = "decide"

SHORTEST = 20
"""Minimum number of characters of a merged memory, unless an original is shorter."""

_SETTLED = frozenset({Kind.DECISION, Kind.PREFERENCE})
"""Kinds that can record the same choice: as a rule for the future, or as a decision on one day."""

MOST_ADDED = 100
"""Maximum number of characters by which a merged memory can exceed the combined originals."""

MOST_ENDED = 0.5
"""Maximum share of a memory's words that an amendment can remove."""

_MAX_REASON_CHARACTERS = 160
_MAX_OUTPUT_TOKENS = 4_096


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

    ``target`` is the id of the stored memory to change, ``mark`` its hash from :func:`mark`, and
    ``merged`` its new text.
    """

    action: Action
    by: str
    reason: str
    target: str | None = None
    mark: str | None = None
    merged: str = ""

    def in_words(self) -> str:
        """Return the reason for the decision, with the name of the model."""
        return f"{self.reason or self.action.value.lower()} ({self.by})"


def mark(memory: Memory) -> str:
    """Return a hash that shows whether a memory has changed since a model decided about it."""
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
    """Return a prompt that asks a model about a new memory and the most similar stored ones."""
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
    """Convert a model's answer to a decision, which is ADD if the answer is not acceptable."""
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
    """Return the reason why a model's decision is not acceptable, or ``None``."""
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
    are_like = memory.kind is target.kind or {memory.kind, target.kind} <= _CLAIMS
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
    """Return the text of a prompt in ``prompts/``."""
    return (files(__package__) / "prompts" / f"{name}.md").read_text(encoding="utf-8")


# -- Standing retirements ------------------------------------------------------
#
# They retire matching memories as soon as these are stored. The ledger shares them with all machines.


SUPPRESSED = ("session-start",)
"""Contexts that omit memories under a standing retirement."""


def fits(subject: str, pattern: str, match: Match) -> bool:
    """Return True if a subject matches a pattern, ignoring case and spaces."""
    subject, pattern = plain(subject), plain(pattern)
    if match is Match.EXACT:
        return subject == pattern
    if match is Match.CONTAINS:
        return pattern in subject
    return (
        re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), subject, re.DOTALL) is not None
    )


def plain(subject: str) -> str:
    """Return a subject with normalised case and spaces, for comparison."""
    return " ".join(subject.casefold().split())


def standing_for(home: Home, memory: Memory) -> StandingRetirement | None:
    """Return the oldest standing retirement that covers a memory, if any."""
    for rule in home.tombstones.standing():
        has_key = rule.canonical_key is not None and rule.canonical_key == memory.canonical_key
        if has_key or fits(memory.subject, rule.pattern, rule.match):
            return rule
    return None


def retired_by(home: Home, memory: Memory, rule: StandingRetirement) -> Memory:
    """Return a copy of a memory, retired by a standing retirement."""
    contexts = tuple(dict.fromkeys((*memory.suppressed_contexts, *rule.contexts)))
    reason = rule.reason or f"memories about {rule.pattern!r} are always retired"
    return replace(memory, retired=Retirement(home.now(), reason), suppressed_contexts=contexts)
