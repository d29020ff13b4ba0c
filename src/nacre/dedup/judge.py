"""Decide without a model how a later statement stands to an earlier one: only where words alone leave no doubt.

Two statements are the same if their words are equal, or if their vectors are near and numbers, names and denials agree.
A statement supersedes another if it says that something rare is gone which the other asserts, or gives another value in
the same slot. Everything less certain leaves both as they are; a person is asked where one may be out of date.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from functools import cached_property

from nacre.dedup.statement import Departure, Slot, Statement, cues, read
from nacre.embed.calibration import Calibration
from nacre.embed.minilm import vocabulary
from nacre.text.passages import is_unspaced, normalise, title_of
from nacre.values.memory import Kind, Memory

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
    earlier: Memory, later: Memory, cosine: float | None, limits: Calibration, rarity: Rarity | None = None
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
        if change is None and not (old.has("unsure") or new.has("unsure")) and later.kind in (*_CLAIMS, Kind.TODO):
            change = _other_value(old, new, rarity or Rarity()) or _contradiction(earlier, later, old, new)
        if change:
            return change
    is_near = cosine is not None and cosine >= limits.link
    subjects = read(earlier.subject).words, read(later.subject).words
    is_alike = 2 * len(old.words & new.words) >= _ALIKE * max(1, len(old.words) + len(new.words))
    is_about = is_near or is_alike or (subjects[0] and subjects[0] == subjects[1])
    return Verdict(Relation.RELATED, "about the same") if is_about else _UNRELATED


def _keeps(kind: Kind, later: Kind) -> bool:
    """Events stay true, only a todo moves a todo, and a lesson ends nothing but a lesson."""
    return kind is Kind.EVENT or (later is Kind.TODO) != (kind is Kind.TODO) or (later is Kind.LESSON) > (kind is later)


def _is_same(old: Statement, new: Statement, cosine: float | None, limits: Calibration) -> bool:
    if old.signs != new.signs:
        return False
    if [word.stem for word in old.tokens] == [word.stem for word in new.tokens]:
        return new.text.isascii() or normalise(old.text) == normalise(new.text)
    if cosine is None or cosine < limits.same or (not limits.reads_unspaced and is_unspaced(new.text)):
        return False
    is_turned = old.order != new.order and sorted(old.order) == sorted(new.order) and not (_turns(old) or _turns(new))
    named = {*old.names, *new.names}
    of_old, of_new = ([word.text.lower() for word in one.tokens if word.text.lower() in named] for one in (old, new))
    is_named = of_old == of_new or (sorted(of_old) == sorted(of_new) and (_turns(old) or _turns(new)))
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
        if is_rare or (2 * len(one.beside & old.words) >= len(one.beside) and _common(old, new) >= _MOST_OF_IT):
            relation = Relation.SUPERSEDES if is_rare and one.beside <= old.words else Relation.DOUBTS
            return Verdict(relation, f"no longer: {one.text}", _common(old, new))
    if new.has("again") and old.negations and not new.negations and old.words and old.words <= new.words:
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
    return one.words - {token.stem for slot in one.slots for token in read(f"{slot.sort} {slot.text}").tokens}


def _contradiction(earlier: Memory, later: Memory, old: Statement, new: Statement) -> Verdict | None:
    """Both have one subject, given or as the words begin, or one verb, and cannot both hold."""
    if old.departures or new.departures or earlier.kind not in _CLAIMS:
        return None
    is_opposite = (old.negations > 0) != (new.negations > 0)
    has_subject = earlier.subject == later.subject != title_of(later.content)
    if is_opposite and old.words and (old.words == new.words or (has_subject and old.words & new.words)):
        return Verdict(Relation.DOUBTS, "says the opposite", 1.0)
    mine, theirs = _apart(old.slots, new.slots), _apart(new.slots, old.slots)
    if has_subject and len(mine) == len(theirs) == 1 and mine[0].sort == theirs[0].sort:
        return Verdict(Relation.DOUBTS, f"{mine[0].text} → {theirs[0].text}", _common(old, new))
    return None if is_opposite else _other_object(old, new)


def _other_object(old: Statement, new: Statement) -> Verdict | None:
    """The same verb with another object: "use tabs", "use two spaces"."""
    mine, theirs = ([word.stem for word in one.frame] for one in (old, new))
    changes = [one for one in SequenceMatcher(None, mine, theirs, autojunk=False).get_opcodes() if one[0] != "equal"]
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
    told = (" ".join(word.text for word in block) for block in (old.frame[begin:end], new.frame[start:stop]))
    return Verdict(Relation.DOUBTS, " → ".join(told), 1.0)


def closes(todo: Memory, later: Memory) -> bool:
    """Whether a later event, fact or decision says that an open todo is done (seed facts 1.3, step 4)."""
    if later.kind not in (Kind.EVENT, Kind.FACT, Kind.DECISION) or not says_done(later.content[:LONGEST]):
        return False
    old, new = read(todo.content[:LONGEST], todo.project), read(later.content[:LONGEST], todo.project)
    has_key = bool(todo.canonical_key) and todo.canonical_key == later.canonical_key
    there = {one.stem for one in new.tokens}
    is_all = all(word in there or (not word.isascii() and set(word) <= set(new.text)) for word in old.words)
    return has_key or (len(old.words) > 1 and is_all)


def says_done(text: str, start: int = 0, end: int | None = None) -> bool | None:
    """Whether a part of a text says that something is done, with no denial in the 40 characters before; ``None`` where
    it says neither.
    """
    found = cues().pattern["done"].search(text, start, len(text) if end is None else end)
    if found is None:
        return None
    return not cues().pattern["undone"].search(text[max(0, found.start() - 40) : found.start()])
