"""What a later statement means for an earlier one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from nacre.dedup.cues import language_of
from nacre.dedup.had import held, says
from nacre.dedup.pair import Pair
from nacre.dedup.repetition import alone, differ, plain
from nacre.dedup.statement import Statement, read
from nacre.dedup.words import Amount
from nacre.embed.calibration import Calibration
from nacre.text.stems import stem
from nacre.values.memory import Kind, Memory

SAME_WORDS = 0.8
"""The share of topical words in common from which two texts are about one thing."""

CASE_WORDS = 0.3
"""A rule and its special case share at least so many of their words, and so does what is ended with what tells in plain
words what has gone: what shares fewer speaks of other things."""

SOME_WORDS = 0.6
"""The share from which one of two texts may say the other again."""

MOST_ADDED = 0.4
"""A text of which so much is new says more than a repetition."""

MOST_LEFT = 2
"""Words beyond a change from which on it is not even a doubt."""

_NO_CLAIM = frozenset({"asks", "supposes", "recounts", "adds", "narrows", "chats"})
_NOT_DONE = _NO_CLAIM - {"recounts", "adds"}
"""Who says that just that was done tells of the past, and may have added it."""
_NO_CASE = frozenset({"asks", "recounts", "chats"})


class Relation(StrEnum):
    """How a later statement stands to an earlier one.

    ``supersedes``: the earlier one is no longer true; ``doubts``: that is likely, but not sure. ``specializes``: it
    says otherwise of a special case of what the earlier one is about; ``generalizes``: the earlier one did of it, and
    both hold. ``same``: it says nothing new; ``fuller``: it says the same and a little more. ``related``: both are
    about one thing.
    """

    SUPERSEDES = "supersedes"
    DOUBTS = "doubts"
    SPECIALIZES = "specializes"
    GENERALIZES = "generalizes"
    SAME = "same"
    FULLER = "fuller"
    RELATED = "related"
    UNRELATED = "unrelated"


@dataclass(frozen=True, slots=True)
class Verdict:
    """How two statements stand to each other, why in a few words, and the share of words in common of a change."""

    relation: Relation
    reason: str = ""
    likeness: float = 0.0


_UNRELATED = Verdict(Relation.UNRELATED)

LONGEST = 4_000
"""Characters of a text that are compared: the work grows with the square of its words."""


def judge(earlier: Memory, later: Memory, cosine: float | None, limits: Calibration) -> Verdict:
    """What ``later`` means for ``earlier``, which hold in one project, or one of them everywhere.

    ``cosine`` is that of their vectors where both have one. Precision comes first: what is not clearly a change is
    none. Of a text longer than 4,000 characters the beginning may tell a change, but never that it says the same.
    """
    pair = pair_of(earlier, later, cosine)
    is_whole = max(len(earlier.content), len(later.content)) <= LONGEST
    likeness = _likeness(pair, earlier.kind is later.kind, limits) if is_whole else _UNRELATED
    if _keeps(earlier.kind, later.kind) or likeness.relation is Relation.SAME:
        return likeness
    change = None if _excludes(pair) else _change(pair, earlier.kind, later.kind)
    return change or _case(pair) or likeness


def pair_of(earlier: Memory, later: Memory, cosine: float | None = None) -> Pair:
    """Two memories side by side."""
    project = later.project or earlier.project
    subjects = read(earlier.subject[:LONGEST], project).words, read(later.subject[:LONGEST], project).words
    return Pair(
        read(earlier.content[:LONGEST], project),
        read(later.content[:LONGEST], project),
        language_of(later.content),
        cosine,
        same_subject=bool(subjects[0]) and subjects[0] == subjects[1],
        same_key=_share_a_key(earlier, later),
    )


def _share_a_key(earlier: Memory, later: Memory) -> bool:
    """Whether both answer one question: they have one canonical key, or claim something of one attribute."""
    same_claim = earlier.claim is not None and later.claim is not None and earlier.claim.key == later.claim.key
    return same_claim or (bool(earlier.canonical_key) and earlier.canonical_key == later.canonical_key)


def closes(todo: Memory, later: Memory) -> bool:
    """Whether a later event, fact or decision says that an open todo is done (seed facts 1.3, step 4)."""
    if later.kind not in (Kind.EVENT, Kind.FACT, Kind.DECISION):
        return False
    pair = pair_of(todo, later)
    mood = pair.language.mood
    done = mood.done.search(pair.new.text)
    if not done or pair.has_other_scope or pair.is_swapped:
        return False
    is_that = stem(done.group().lower()) in pair.old.words
    if pair.new.moods & (_NOT_DONE if is_that else _NO_CLAIM):
        return False
    if mood.undone.search(pair.new.text[max(0, done.start() - 40) : done.start()]):
        return False
    asked = [word for word in pair.old.words if word not in pair.attributes]
    return pair.same_key or (not pair.own_names[0] and len(asked) > 1 and all(held(word, pair.new) for word in asked))


def _keeps(kind: Kind, later: Kind) -> bool:
    """Whether no statement of the later kind ends one of the earlier kind, whatever they say.

    Events are all true; only a todo moves a todo, and a lesson ends nothing but a lesson.
    """
    return kind is Kind.EVENT or (later is Kind.TODO) != (kind is Kind.TODO) or (later is Kind.LESSON) > (kind is later)


def _excludes(pair: Pair) -> bool:
    """Whether the later statement claims nothing of today, or both speak of other times, cases, things."""
    is_past = bool(pair.old.moods & {"recounts", "asks"}) or bool(pair.new.moods - pair.narrowed & _NO_CLAIM)
    return is_past or _happened(pair) or pair.has_other_scope or pair.has_other_thing or pair.is_other_case


def _happened(pair: Pair) -> bool:
    """Whether both tell what was done on a day: both stay true, whatever kind they were given."""
    done = pair.language.mood.done
    return all(
        done.match(one.text.lower()) or (done.search(one.text) and any(a.sort == "date" for a in one.amounts))
        for one in (pair.old, pair.new)
    )


def _change(pair: Pair, kind: Kind, later: Kind) -> Verdict | None:
    """Whether the later statement replaces the earlier one: surely where neither has a word beyond what changed."""
    gone = _what_went(pair)
    if gone:
        left = pair.beyond_change
        is_sure = not left and (gone.is_named or pair.likeness >= CASE_WORDS)
        return _verdict(pair, gone.told, is_sure=is_sure) if len(left) <= MOST_LEFT else None
    if kind is Kind.LESSON or later is Kind.EVENT or (later is Kind.TODO and not pair.other_amount(only_dates=True)):
        return None
    value = pair.value
    if value is None or not pair.is_of_one_thing or pair.case_of is not None:
        return None
    beyond = pair.beyond_old or pair.beyond_new
    if (pair.beyond_old and pair.beyond_new) or len(beyond) > MOST_LEFT:
        return None
    return _verdict(pair, value.told, is_sure=value.is_sure and not beyond)


def _verdict(pair: Pair, reason: str, *, is_sure: bool) -> Verdict:
    return Verdict(Relation.SUPERSEDES if is_sure else Relation.DOUBTS, reason, pair.likeness)


def _case(pair: Pair) -> Verdict | None:
    """Whether one of the two says otherwise of a special case of what the other one is about."""
    if (pair.old.moods | pair.new.moods) & _NO_CASE or pair.is_opposite or not pair.is_of_one_thing:
        return None
    if pair.value is None or pair.case_of is None or pair.likeness < CASE_WORDS:
        return None
    return Verdict(Relation.SPECIALIZES if pair.case_of is pair.new else Relation.GENERALIZES, pair.value.told)


@dataclass(frozen=True, slots=True)
class _Gone:
    """What is no longer so, in words, and whether it has a name."""

    told: str
    is_named: bool


def _what_went(pair: Pair) -> _Gone | None:
    """The later statement says that something is gone, and the earlier one says that it is there, in the same words."""
    usual = pair.attributes | pair.parts
    for phrase in pair.new.phrases:
        telling = {word for word in phrase if word not in usual} or set(phrase)
        claimed = {word for word in telling if says(word, pair.old) and word not in pair.old.gone}
        numbers = {word for word in phrase if word[0].isdigit()}
        if not claimed or not numbers <= claimed:
            continue
        is_named = bool(claimed & (pair.old.names | pair.new.names))
        if is_named or (claimed == telling and _is_telling(pair, claimed)):
            return _Gone(f"no longer: {pair.new.spell(phrase)}", is_named)
    return None


def _is_telling(pair: Pair, claimed: set[str]) -> bool:
    """Whether plain words tell what has gone: several of them, or one beside something else that both speak of."""
    has_rival = any(_has_rival(pair.new, word) for word in claimed)
    return len(claimed) > 1 or pair.new.is_exchange or has_rival or bool(pair.shared - claimed - pair.attributes)


def _has_rival(statement: Statement, word: str) -> bool:
    """Whether a statement names two things of one kind, one of them by this word."""
    kinds = statement.things.get(word, frozenset())
    return any(kinds & others for other, others in statement.things.items() if other != word)


def _likeness(pair: Pair, same_kind: bool, limits: Calibration) -> Verdict:
    """Whether the two say the same, one more fully than the other, or speak of one thing."""
    if pair.new.moods & _NO_CLAIM != pair.old.moods & _NO_CLAIM:
        return _UNRELATED
    near = pair.cosine if pair.cosine is not None else 0.0
    both = plain(pair)
    if both.likeness >= SOME_WORDS and same_kind and not differ(both):
        return _said_again(both)
    if pair.same_subject or near >= limits.link or pair.likeness >= SAME_WORDS:
        return Verdict(Relation.RELATED, "about the same")
    return _UNRELATED


def _said_again(pair: Pair) -> Verdict:
    """What of two that may say the same the later one says: nothing new only where no word or number is its own.

    What the longer one says beyond the other is a property that goes without saying, or stands in an aside.
    """
    mine, theirs = alone(pair)
    done = pair.language.mood.done
    if (mine and theirs) or (done.search(pair.new.text) and not done.search(pair.old.text)):
        return Verdict(Relation.RELATED, "about the same")
    longer, more = (pair.old, mine) if mine else (pair.new, theirs)
    if any(isinstance(one, Amount) or (one.start < longer.end and one.stem not in pair.attributes) for one in more):
        return Verdict(Relation.RELATED, "says more")
    if not theirs:
        return Verdict(Relation.SAME, "says the same")
    if len(theirs) > MOST_ADDED * len(pair.new.words):
        return Verdict(Relation.RELATED, "says more")
    return Verdict(Relation.FULLER, f"adds {' '.join(one.text for one in theirs)}")
