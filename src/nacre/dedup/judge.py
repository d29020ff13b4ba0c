"""What a later statement means for an earlier one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from nacre.dedup.change import log_odds, signs
from nacre.dedup.cues import language_of
from nacre.dedup.pair import Pair, held
from nacre.dedup.statement import Statement, read
from nacre.embed.calibration import Calibration
from nacre.values.memory import Kind, Memory

SAME_WORDS = 0.8
"""The share of topical words in common from which two texts say the same, where nothing forbids it."""

SOME_WORDS = 0.6
"""The share that goes with a cosine of ``alike``."""

MOST_ADDED = 0.4
"""A text of which so much is new says more than a repetition."""

NEARLY_ALL = 0.75
"""The share of the earlier words that a change of plain words repeats; a retraction may repeat a little less."""
NEARLY_ALL_RETRACTED = 0.7

ENOUGH = 0.3
"""The share of words in common from which two values may be those of one thing."""

HALF = 0.5
"""The share from which even known things of different kinds may stand for each other, as kinds are not complete."""

FEW = 3
"""Fewer topical words than these say too little to be changed by other plain words."""

SURE = 2.25
LIKELY = 1.0
"""Log odds from which a change is taken for one, and from which a person is asked (docs/dedup.md)."""

_NO_CLAIM = frozenset({"asks", "supposes", "recounts", "adds", "narrows", "chats"})


class Relation(StrEnum):
    """How a later statement stands to an earlier one.

    ``supersedes``: the earlier one is no longer true; ``doubts``: that is likely, but not sure. ``same``: it says
    nothing new; ``fuller``: it says the same and a little more. ``related``: both are about one thing.
    """

    SUPERSEDES = "supersedes"
    DOUBTS = "doubts"
    SAME = "same"
    FULLER = "fuller"
    RELATED = "related"
    UNRELATED = "unrelated"


@dataclass(frozen=True, slots=True)
class Verdict:
    """How two statements stand to each other, why in a few words, and the log odds of a change where they decided."""

    relation: Relation
    reason: str = ""
    odds: float = 0.0


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
    if _excludes(pair, earlier.kind, later.kind):
        return likeness
    return _change(pair, earlier.kind, later.kind, limits, likeness.relation) or likeness


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
    if not done or pair.new.moods & _NO_CLAIM or pair.has_other_scope or pair.is_swapped:
        return False
    if mood.undone.search(pair.new.text[max(0, done.start() - 40) : done.start()]):
        return False
    asked = [word for word in pair.old.words if word not in pair.attributes]
    return pair.same_key or (not pair.own_names[0] and len(asked) > 1 and all(held(word, pair.new) for word in asked))


def _excludes(pair: Pair, kind: Kind, later: Kind) -> bool:
    """Whether the later statement is none that ends such an earlier one, or both speak of other times, cases, things.

    Events are all true; only a todo moves a todo, and a lesson ends nothing but a lesson.
    """
    if kind is Kind.EVENT or (later is Kind.TODO) != (kind is Kind.TODO) or (later is Kind.LESSON) > (kind is later):
        return True
    is_past = bool(pair.old.moods & {"recounts", "asks"}) or bool(pair.new.moods & _NO_CLAIM)
    return is_past or _happened(pair) or pair.has_other_scope or pair.has_other_thing or pair.is_other_case


def _happened(pair: Pair) -> bool:
    """Whether both tell what was done on a day: both stay true, whatever kind they were given."""
    done = pair.language.mood.done
    return all(done.search(one.text) and any(a.sort == "date" for a in one.amounts) for one in (pair.old, pair.new))


def _change(pair: Pair, kind: Kind, later: Kind, limits: Calibration, likeness: Relation) -> Verdict | None:
    """Whether the later statement replaces the earlier one, surely or probably."""
    said = _names_what_went(pair)
    if later is Kind.TODO:
        reason = said or pair.other_amount(only_dates=True)
        return Verdict(Relation.SUPERSEDES, reason) if reason else None
    if not said and (kind is Kind.LESSON or later is Kind.EVENT):
        return None
    change = stated_change(pair, limits)
    odds = log_odds(pair, signs(pair, by_words=bool(change.reason), other_value=bool(change.value)))
    if odds < LIKELY or (not change.reason and likeness in (Relation.SAME, Relation.FULLER)):
        return None
    is_announced = bool(change.reason or pair.new.turns or pair.new.phrases)
    if not is_announced and pair.old.words <= pair.shared:
        return None
    reason = change.reason or change.value or pair.other_amount() or pair.other_kind_of_thing or pair.other_name
    is_told = bool(said) and (
        bool(pair.telling - pair.new.gone) or pair.likeness >= NEARLY_ALL or _is_plain_exchange(pair)
    )
    is_sure = is_told or (is_announced and odds >= SURE)
    relation = Relation.SUPERSEDES if is_sure else Relation.DOUBTS
    return Verdict(relation, reason or "announces a change", odds)


def _is_plain_exchange(pair: Pair) -> bool:
    """Whether the later one says "from this to that" and nothing of what else it might be said of."""
    return pair.new.is_exchange and not pair.has_own_topic and bool(pair.new.gone & pair.old.names)


@dataclass(frozen=True, slots=True)
class StatedChange:
    """What two statements say of a change: the ``value`` that differs, and what the words say of it as ``reason``."""

    value: str | None
    reason: str | None


def stated_change(pair: Pair, limits: Calibration) -> StatedChange:
    """What a later statement changes of an earlier one."""
    value = _changed_value(pair, limits)
    reason = _names_what_went(pair) or (value or _denied(pair) if len(pair.contrasts) <= 1 else None)
    return StatedChange(value, reason)


def _denied(pair: Pair) -> str | None:
    """The same words, once with a negation and once without."""
    is_denied = pair.old.is_negative != pair.new.is_negative and pair.likeness >= NEARLY_ALL and len(pair.shared) > 1
    return "says the opposite" if is_denied and pair.is_framed and not pair.is_swapped else None


def _names_what_went(pair: Pair) -> str | None:
    """The later statement says that something is gone, and the earlier one says that it is there."""
    usual = pair.attributes | pair.parts
    for phrase in pair.new.phrases:
        telling = [word for word in phrase if word not in usual] or list(phrase)
        claimed = {word for word in telling if _said(word, pair.old) and word not in pair.old.gone}
        numbers = {word for word in phrase if word[0].isdigit()}
        if not claimed or not numbers <= claimed:
            continue
        is_named = bool(claimed & (pair.old.names | pair.new.names))
        if is_named or _is_claimed(pair, telling, claimed):
            return f"no longer: {pair.new.spell(phrase)}"
    return None


def _is_claimed(pair: Pair, phrase: list[str], claimed: set[str]) -> bool:
    """Whether the earlier statement has what has gone: several words of it, or one that is more than a plain word."""
    if len(claimed) == 1:
        word = next(iter(claimed))
        agrees = any(one.says(other) for one in pair.old.amounts for other in pair.new.amounts)
        about_one = agrees or bool(pair.shared - claimed - pair.attributes)
        is_telling = about_one or pair.new.is_exchange or any(map(str.isdigit, word)) or _has_rival(pair.new, word)
        return is_telling and len(set(phrase)) == 1
    is_whole = len(claimed) == len(set(phrase))
    return is_whole or (2 * len(claimed) >= len(phrase) and bool({phrase[0], phrase[-1]} & claimed))


def _has_rival(statement: Statement, word: str) -> bool:
    """Whether a statement names two things of one kind, one of them by this word."""
    kinds = statement.things.get(word, frozenset())
    return any(kinds & others for other, others in statement.things.items() if other != word)


def _said(word: str, by: Statement) -> bool:
    return word in by.order or held(word, by)


def _changed_value(pair: Pair, limits: Calibration) -> str | None:
    """Both answer one question, and differently."""
    if pair.new.is_exchange:
        return None
    if pair.new.is_negative and not pair.old.is_negative and not pair.new.turns:
        return None
    strength = len(pair.about) + pair.same_subject + 2 * pair.same_key
    is_plain = not pair.new.phrases or "retracts" in pair.new.turns
    one_thing = _is_one_thing(pair, strength, limits)
    if is_plain and one_thing and (value := pair.other_amount()):
        return value
    told_anew = bool(pair.new.turns - {"now"}) and not pair.has_own_topic
    if (one_thing or told_anew) and (value := pair.other_kind_of_thing):
        return value
    return _changed_name(pair) or _otherwise(pair, strength) if is_plain else None


def _is_one_thing(pair: Pair, strength: int, limits: Calibration) -> bool:
    """Whether two values may be those of one thing: enough in common, and no thing that only one of them names."""
    if pair.is_two_sided or (pair.is_narrower and not pair.new.turns):
        return False
    near = pair.cosine is not None and pair.cosine >= limits.alike
    shares = bool(pair.telling) and strength > 0 and pair.share >= ENOUGH
    return near or pair.same_subject or pair.same_key or shares


def _changed_name(pair: Pair) -> str | None:
    in_roles = pair.old.has_role and pair.new.has_role
    telling = bool(pair.telling) or pair.same_subject or pair.same_key
    share = pair.share
    if telling and (in_roles or pair.new.turns) and share >= ENOUGH:
        return pair.other_name if share >= HALF or not pair.are_known_and_unlike else None
    is_one = (pair.same_key or pair.same_subject) and pair.is_framed and not pair.are_known_and_unlike
    return pair.other_name if is_one else None


def _otherwise(pair: Pair, strength: int) -> str | None:
    """A change of plain words needs words of change, and nearly all of what was said before."""
    turns = pair.new.turns
    share = len(pair.about) / max(1, len(pair.old.words))
    nearly_all = share >= (NEARLY_ALL_RETRACTED if "retracts" in turns else NEARLY_ALL)
    is_equation = pair.old.is_equation and pair.new.is_equation
    if turns and (is_equation or turns - {"now"}) and _same_topic(pair):
        return "says it otherwise"
    if (turns and len(pair.old.words) >= FEW and strength > 1 and nearly_all) or (
        pair.same_subject and "retracts" in turns
    ):
        return "says it otherwise"
    return None


def _same_topic(pair: Pair) -> bool:
    """Whether the two are said of the same thing in the same words."""
    mine, theirs = pair.old.topic, pair.new.topic
    both = bool(mine and theirs) and mine < pair.old.words and theirs < pair.new.words
    return both and all(held(word, pair.new) for word in mine) and all(held(word, pair.old) for word in theirs)


def _likeness(pair: Pair, same_kind: bool, limits: Calibration) -> Verdict:
    """Whether the two say the same, one more fully than the other, or speak of one thing."""
    if pair.new.moods & _NO_CLAIM != pair.old.moods & _NO_CLAIM:
        return _UNRELATED
    near = pair.cosine if pair.cosine is not None else 0.0
    is_same = pair.likeness >= SAME_WORDS or near >= limits.same
    is_same = is_same or (near >= limits.alike and pair.likeness >= SOME_WORDS)
    if is_same and same_kind and not _differ(pair):
        return _said_again(pair)
    if pair.same_subject or near >= limits.link or pair.likeness >= SAME_WORDS:
        return Verdict(Relation.RELATED, "about the same")
    return _UNRELATED


def _differ(pair: Pair) -> bool:
    """Whether anything forbids that both say the same: numbers, names, versions, negation, scope, another thing."""
    old, new = pair.old, pair.new
    if old.is_negative != new.is_negative or pair.has_other_scope or old.scopes != new.scopes:
        return True
    if pair.has_other_thing or pair.is_swapped or pair.other_kind_of_thing or (new.phrases and not old.phrases):
        return True
    mine, theirs = ({(one.sort, one.value) for one in found} for found in (old.amounts, new.amounts))
    return (bool(mine and theirs) and not (mine <= theirs or theirs <= mine)) or all(pair.own_names)


def _said_again(pair: Pair) -> Verdict:
    added = [word for word in pair.new.words if not held(word, pair.old)]
    lost = [word for word in pair.old.words if not held(word, pair.new)]
    uncounted = [one for one in pair.old.amounts if not any(one.says(other) for other in pair.new.amounts)]
    counted = [one.text for one in pair.new.amounts if not any(one.says(other) for other in pair.old.amounts)]
    done = pair.language.mood.done
    if (added and uncounted) or (done.search(pair.new.text) and not done.search(pair.old.text)):
        return Verdict(Relation.RELATED, "about the same")
    if lost or not (added or counted):
        return Verdict(Relation.SAME, "says the same")
    if len(added) > MOST_ADDED * len(pair.new.words):
        return Verdict(Relation.RELATED, "says more")
    return Verdict(Relation.FULLER, f"adds {' '.join([pair.new.spell(added), *counted]).strip()}")
