"""Two statements side by side: what they share, where they differ."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cached_property, lru_cache
from itertools import pairwise, takewhile

from nacre.dedup.cues import ChangeLanguage, languages
from nacre.dedup.had import held, says
from nacre.dedup.statement import Statement
from nacre.dedup.words import Amount, stem

_CLOSE_WORDS = 3

FRAME = 0.6
"""From this share of equal words in equal order on, two texts are built alike."""

_DATES = frozenset({"date", "time", "weekday"})


@dataclass(frozen=True, slots=True)
class Contrast:
    """Topical words that stand in one frame, the earlier and the later ones, and whether before the verb in both."""

    old: frozenset[str]
    new: frozenset[str]
    before_verb: bool


@dataclass(frozen=True, slots=True)
class Value:
    """What differs, as it is told; the ``words`` that say it; and whether nothing else differs, and one excludes it."""

    told: str
    words: frozenset[str] = frozenset()
    is_sure: bool = True


@dataclass(frozen=True)
class Pair:
    """An earlier and a later statement, the cosine of their vectors, and whether their titles and keys are the same."""

    old: Statement
    new: Statement
    language: ChangeLanguage
    cosine: float | None
    same_subject: bool
    same_key: bool

    @cached_property
    def shared(self) -> frozenset[str]:
        """The topical words of the earlier one that the later one has, too."""
        return frozenset(word for word in self.old.words if held(word, self.new))

    @cached_property
    def likeness(self) -> float:
        """The share of topical words that the two have in common (Dice), 0 to 1."""
        size = len(self.old.words) + len(self.new.words)
        back = sum(held(word, self.old) for word in self.new.words)
        return (len(self.shared) + back) / size if size else 0.0

    @cached_property
    def about(self) -> frozenset[str]:
        """What both are about: the words they share without numbers and the new value."""
        return frozenset(word for word in self.shared if not word[0].isdigit()) - self.new.come

    @cached_property
    def is_of_one_thing(self) -> bool:
        """Whether both are about one thing: they share more than a property, or answer one question by their keys."""
        agrees = any(one.says(other) for one in self.old.measured for other in self.new.measured)
        telling = self.about - self.attributes - self.light
        tells = self.is_framed and bool(self.new.turns or self._amount) and bool(self.about - self.attributes)
        return agrees or bool(telling) or tells or self.same_key

    @cached_property
    def value(self) -> Value | None:
        """What both give, and give differently: an amount, a name or known thing, or that it is so at all.

        It is sure where it is the only one, and one excludes the other.
        """
        if self.old.denies != self.new.denies:
            return self._denial
        found = [one for one in (self._amount, self._name) if one]
        found = found or [one for one in (self._word, self._state) if one]
        mine, theirs = self._measured
        if not found or min(len(mine), len(theirs)) > 1:
            return None
        is_one = len(found) == 1 and len(mine) == len(theirs) <= 1
        return found[0] if is_one else replace(found[0], is_sure=False)

    @cached_property
    def _measured(self) -> tuple[list[Amount], list[Amount]]:
        """The amounts that only the one gives, and those that only the other gives."""
        old, new = self.old.measured, self.new.measured
        mine = [one for one in old if not any(one.says(other) for other in new)]
        return mine, [one for one in new if not any(one.says(other) for other in old)]

    @property
    def _amount(self) -> Value | None:
        mine, theirs = self._measured
        told = (f"{one.text} → {other.text}" for one in mine for other in theirs if one.conflicts(other))
        found = next(told, None)
        return Value(found) if found else None

    @property
    def _name(self) -> Value | None:
        """Other names that nobody knows, or known things of one kind, that are not what something is said of."""
        mine, theirs = self._own(self.old, self.new), self._own(self.new, self.old)
        if not (mine and theirs and _is_one(mine, self.old) and _is_one(theirs, self.new)):
            return None
        ends = bool(self.new.turns) and self.old.said[-1].stem in mine and self.new.said[-1].stem in theirs
        if mine <= self.old.topic and theirs <= self.new.topic and not (ends or self._is_role):
            return None
        kinds, others = _kinds(self.old, mine), _kinds(self.new, theirs)
        is_of_a_kind = bool(kinds & others) if kinds and others else kinds == others or bool(self.new.turns)
        if not is_of_a_kind or (not self.new.turns and _siblings(mine) == _siblings(theirs)):
            return None
        is_sure = bool(self.new.turns) or (self.old.is_equation and self.new.is_equation)
        return Value(f"{self.old.spell(mine)} → {self.new.spell(theirs)}", mine | theirs, is_sure)

    @property
    def _is_role(self) -> bool:
        return self.old.has_role and self.new.has_role

    def _own(self, one: Statement, other: Statement) -> frozenset[str]:
        return frozenset(
            word.stem for word in one.said
            if (word.stem in one.names or word.stem in one.things) and not _is_said(word.stem, other)
        )  # fmt: skip

    @property
    def _denial(self) -> Value | None:
        """That one is so and the other is not: one of the two says nothing else of its own, and gives no other value.

        Of all and not of all it may be that some are, and a denied amount may be a bound.
        """
        if self._name or all(self._own_of(*ways) for ways in self._both_ways):
            return None
        every = self.language.mood.every
        is_sure = not any(every.search(one.text[: one.end].lower()) for one, _ in self._both_ways)
        return Value("says the opposite", is_sure=is_sure and not self._amount)

    def _own_of(self, one: Statement, other: Statement) -> bool:
        """Whether one says anything of its own, be it by a verb that carries no topic, a day or a case."""
        moved = self.language.change.moved
        given = other.measured
        return (
            any(not says(word.stem, other) and not moved.search(word.text.lower()) for word in one.uttered)
            or any(not any(amount.says(by) or _bounds(amount, by) for by in given) for amount in one.measured)
            or bool({word for _, word in one.scopes} - {word for _, word in other.scopes} - {by.value for by in given})
        )

    @property
    def _word(self) -> Value | None:
        """Another plain word at the end, where words of change say so: "is called heron", "is now called egret"."""
        old, new = self.old.said[-1:], self.new.said[-1:]
        if not self.new.turns or not old or not new or not self.is_framed:
            return None
        words = {old[0].stem}, {new[0].stem}
        own = [{word.stem for word in one.said if not says(word.stem, other)} for one, other in self._both_ways]
        return Value(f"{old[0].text} → {new[0].text}", frozenset(own[0] | own[1])) if tuple(own) == words else None

    @property
    def _state(self) -> Value | None:
        """Another state of the same, in the same words: "is on", "is off"."""
        states = _pairs_of(self.language.language, "states")
        silent = _stems(self.language.language, "stop") - {word for pair in states for word in pair}
        mine, theirs = ([word for word in one.order if word not in silent] for one in (self.old, self.new))
        other = [pair for pair in zip(mine, theirs, strict=False) if pair[0] != pair[1]]
        is_one = len(mine) == len(theirs) and len(other) == 1 and other[0] in states
        if not is_one:
            return None
        told = f"{self.old.spell(other[0])} → {self.new.spell(other[0])}"
        return Value(told, frozenset(other[0]), is_sure=False)

    @property
    def _both_ways(self) -> tuple[tuple[Statement, Statement], tuple[Statement, Statement]]:
        return (self.old, self.new), (self.new, self.old)

    @cached_property
    def beyond_old(self) -> frozenset[str]:
        """What only the earlier one says, beside the value: no property, nothing that any statement has."""
        return self._beyond(self.old, self.new)

    @cached_property
    def beyond_new(self) -> frozenset[str]:
        """What only the later one says, beside the value and words of change."""
        return self._beyond(self.new, self.old) - self.new.gone - self.new.come - self.new.told_by

    @cached_property
    def beyond_change(self) -> frozenset[str]:
        """What a later one that tells a change in words may say it of beside what both say.

        What came for it is a name; what follows what has gone tells no more, unless it tells a case.
        """
        named = (self.new.names | self.new.things.keys()) - self.new.topic
        at = [place for place, word in enumerate(self.new.order) if word in self.new.gone]
        before = frozenset(self.new.order[: max(at, default=0)])
        return (self.beyond_new - named) & (before | self.new.cased)

    def _beyond(self, one: Statement, other: Statement) -> frozenset[str]:
        usual = self.attributes if one.topic - self.attributes else self.attributes - one.topic  # "images" are a thing
        silent = usual | self.light | (self.value.words if self.value else frozenset())
        change = self.language.change
        own = (word for word in one.said if word.stem not in silent and not says(word.stem, other))
        words = frozenset(word.stem for word in own if not change.moved.search(word.text.lower()))
        mine, theirs = self._measured if one is self.old else self._measured[::-1]
        more = mine if len(mine) > len(theirs) else ()
        return words | {amount.text for amount in more if not any(amount.conflicts(given) for given in theirs)}

    @property
    def narrowed(self) -> frozenset[str]:
        """``narrows``, where both speak of a part of something, and in the same frame: that is no case of the other."""
        both = self.is_framed and "narrows" in self.old.moods & self.new.moods
        return frozenset({"narrows"}) if both else frozenset()

    @cached_property
    def case_of(self) -> Statement | None:
        """Which of the two is said of a special case of what the other one is said of, if one is.

        It alone has words of its own, and one tells the case: after "for" and the like, or before what both are about
        ("admin uploads", "admins may upload").
        """
        if bool(self.beyond_old) == bool(self.beyond_new):
            return None
        one, own = (self.old, self.beyond_old) if self.beyond_old else (self.new, self.beyond_new)
        if self.language.mood.every.search(one.text[: one.end].lower()):
            return None
        if any(amount.text in own for amount in one.measured):
            return one
        before = {word.stem for word, following in pairwise(one.said) if following.stem in self.about - self.light}
        leading = {word.stem for word in takewhile(lambda word: word.stem in own, one.said)}
        return one if own & (one.cased | ((before | leading) & (one.topic | self._sorts))) else None

    @property
    def _sorts(self) -> frozenset[str]:
        return _stems(self.language.language, "sort")

    @cached_property
    def is_framed(self) -> bool:
        """Whether most words are the same, in the same order."""
        equal = sum(end - begin for tag, begin, end, _, _ in self._blocks if tag == "equal")
        return 2 * equal >= FRAME * (len(self.old.order) + len(self.new.order))

    @property
    def attributes(self) -> frozenset[str]:
        """Words for properties of things."""
        return _stems(self.language.language, "attribute")

    @property
    def parts(self) -> frozenset[str]:
        """Words for parts of a whole."""
        return _stems(self.language.language, "part")

    @property
    def light(self) -> frozenset[str]:
        """Words that carry no topic."""
        return _stems(self.language.language, "light")

    @cached_property
    def _blocks(self) -> Sequence[tuple[str, int, int, int, int]]:
        return SequenceMatcher(None, self.old.order, self.new.order, autojunk=False).get_opcodes()

    @cached_property
    def contrasts(self) -> tuple[Contrast, ...]:
        """Where the two have other topical words between the same ones."""
        old, new = self.old, self.new
        found = []
        for at, (tag, begin, end, start, stop) in enumerate(self._blocks):
            mine, theirs = self._unlike(begin, end, start, stop, lambda word, by: word in by.words)
            if tag != "replace" or not mine or not theirs or (mine | theirs) & self.attributes:
                continue
            next_tag = self._blocks[at + 1][0] if at + 1 < len(self._blocks) else ""
            followed = next_tag == "equal" and max(end - begin, stop - start) <= _CLOSE_WORDS
            leads = not begin and not start and not (mine <= old.names and theirs <= new.names)
            before_verb = leads or (mine <= old.topic and theirs <= new.topic)
            found.append(Contrast(mine, theirs, followed and before_verb))
        return tuple(found)

    @cached_property
    def is_swapped(self) -> bool:
        """Whether one word stands for another between the same words, be it topical in one of them only."""
        silent = _stems(self.language.language, "stop")
        if self._begins_otherwise(silent) or self._ends_otherwise(silent):
            return True
        for before, here, after in zip(self._blocks, self._blocks[1:], self._blocks[2:], strict=False):
            if (before[0], here[0], after[0]) != ("equal", "replace", "equal"):
                continue
            mine, theirs = self._unlike(*here[1:], lambda word, _: word not in silent)
            if mine and theirs and (mine & self.old.words or theirs & self.new.words):
                return True
        return False

    def _begins_otherwise(self, silent: frozenset[str]) -> bool:
        """Whether the two tell to do different things with the same."""
        old, new = self.old.order, self.new.order
        if not old or not new or old[0] == new[0] or old[1:2] != new[1:2]:
            return False
        return not {old[0], new[0]} & silent and not held(old[0], self.new) and not held(new[0], self.old)

    def _ends_otherwise(self, silent: frozenset[str]) -> bool:
        """Whether only the last word is another."""
        if len(self._blocks) < 2 or self._blocks[-1][0] != "replace" or not self.is_framed:
            return False
        mine, theirs = self._unlike(*self._blocks[-1][1:], lambda word, _: word not in silent)
        return len(mine) == len(theirs) == 1

    def _unlike(
        self, begin: int, end: int, start: int, stop: int, counts: Callable[[str, Statement], bool]
    ) -> tuple[frozenset[str], frozenset[str]]:
        """The words of two stretches that the other statement does not hold anywhere."""
        old, new = self.old, self.new
        mine = (word for word in old.order[begin:end] if counts(word, old) and not held(word, new))
        theirs = (word for word in new.order[start:stop] if counts(word, new) and not held(word, old))
        return frozenset(mine), frozenset(theirs)

    @cached_property
    def has_other_scope(self) -> bool:
        """Whether the two speak of different cases, or the later one of one case only."""
        old, new = self.old.scopes, self.new.scopes
        given = self.new.gone | self.new.come | {one.value for one in self.old.amounts}
        added = {(name, word) for name, word in new - old if word not in given}
        dropped = {(name, word) for name, word in old - new if word not in self.new.gone}
        if {name for name, _ in added} & {name for name, _ in dropped} or self._is_general(dropped):
            return True
        return any(not held(word, self.old) for _, word in added) or self.is_opposite

    def _is_general(self, dropped: set[tuple[str, str]]) -> bool:
        """Whether the earlier one speaks of one case by an adjective ("the staging api …"), the later one of none."""
        return any(
            name == "environment" and word in self.old.topic and not held(word, self.new) for name, word in dropped
        )

    @property
    def is_opposite(self) -> bool:
        """Whether each has a word that excludes one of the other: "read" and "write"."""
        mine, theirs = set(self.old.order), set(self.new.order)
        return any(
            one in mine and other in theirs and one not in theirs and other not in mine and one not in self.new.gone
            for one, other in _pairs_of(self.language.language, "opposites")
        )

    @cached_property
    def has_other_thing(self) -> bool:
        """Whether the same is said of another thing, or a change of a part that the earlier one does not name."""
        if self.old.numbers != self.new.numbers and self.old.numbers and self.new.numbers:
            return True
        if any(one.before_verb and not self._may_be_said(one) for one in self.contrasts):
            return True
        order, topic = self.new.order, self.new.topic
        changing = self.new.gone | self.new.come
        return any(
            word in self.parts and word not in changing and {word, modifier} <= topic
            and not held(word, self.old) and not held(modifier, self.old)
            for modifier, word in pairwise(order)
        )  # fmt: skip

    @cached_property
    def is_other_case(self) -> bool:
        """Whether both speak of one sort of thing, each of another one: "EU customers …" and "US customers …".

        So do two that differ in a name and in an amount: what changed is one of them.
        """
        mine, theirs = self._qualified(self.old, self.new), self._qualified(self.new, self.old)
        changing = self.new.gone | self.new.come
        if any(not theirs[head] & changing for head in mine.keys() & theirs.keys()):
            return True
        return all(self.own_names) and not self.new.is_exchange and self.other_amount() is not None

    def _qualified(self, one: Statement, other: Statement) -> dict[str, frozenset[str]]:
        """Shared word → the words right before it that only this statement has."""
        found: dict[str, set[str]] = {}
        silent = self.light | _stems(self.language.language, "stop")
        for before, word in pairwise(one.order):
            is_own = before in one.words and before not in silent and not held(before, other)
            if is_own and word in one.words and held(word, other):
                found.setdefault(word, set()).add(before)
        return {word: frozenset(befores) for word, befores in found.items()}

    def _may_be_said(self, contrast: Contrast) -> bool:
        """Whether what differs may be what is said, not what it is said of: "Ana leads", "Stripe is the provider"."""
        mine, theirs = contrast.old <= self.old.names, contrast.new <= self.new.names
        return mine != theirs or (mine and theirs and self.old.has_role and self.new.has_role)

    def other_amount(self, *, only_dates: bool = False) -> str | None:
        """An amount that both give, and give differently; ``None`` where they agree on one of its sort."""
        old, new = self.old.amounts, self.new.amounts
        agreed = {(one.sort, one.unit) for one in old for other in new if one.says(other)}
        for one in old:
            for other in new:
                wanted = one.sort in _DATES if only_dates else (one.sort, one.unit) not in agreed
                if wanted and one.conflicts(other):
                    return f"{one.text} → {other.text}"
        return None

    @cached_property
    def own_names(self) -> tuple[list[str], list[str]]:
        """The names that only the one has, and those that only the other has."""
        mine = [word for word in self.old.order if word in self.old.names and not held(word, self.new)]
        theirs = [word for word in self.new.order if word in self.new.names and not held(word, self.old)]
        return mine, theirs


def _bounds(amount: Amount, other: Amount) -> bool:
    """Whether one amount may bound the other, as no day does."""
    return amount.sort not in _DATES and amount.conflicts(other)


def _is_said(word: str, by: Statement) -> bool:
    """Whether a statement has a word, and not in an aside alone: what went may be named there."""
    return held(word, by) and (word not in by.words or any(word == one.stem for one in by.said))


def _is_one(names: frozenset[str], by: Statement) -> bool:
    """Whether some names stand beside each other, as those of one thing do."""
    at = [place for place, word in enumerate(by.order) if word in names]
    return at[-1] - at[0] < len(at)


def _kinds(by: Statement, names: frozenset[str]) -> frozenset[str]:
    return frozenset(kind for name in names for kind in by.things.get(name, ()))


def _siblings(names: frozenset[str]) -> frozenset[str]:
    """What is left of names like "node-1" and "node-2": they stand beside each other."""
    return frozenset(re.sub(r"\d+", "#", name) for name in names)


@lru_cache(maxsize=16)
def _stems(name: str, words: str) -> frozenset[str]:
    language = next(one for one in languages() if one.language == name)
    plain: frozenset[str] = getattr(language.words, words)
    return frozenset(stem(word, language) for word in plain) | plain


@lru_cache(maxsize=8)
def _pairs_of(name: str, sort: str) -> tuple[tuple[str, str], ...]:
    """Pairs of stems that exclude each other, either way round."""
    language = next(one for one in languages() if one.language == name)
    pairs = [(stem(first, language), stem(second, language)) for first, second in getattr(language, sort)]
    return (*pairs, *((second, first) for first, second in pairs))
