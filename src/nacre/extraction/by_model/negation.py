"""Compares: whether a memory says the opposite of what was said, in nearly the same words."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from nacre.extraction.by_model.stances import Clause, clauses, data, is_complaint, is_free, key_of, points_back, whole
from nacre.text.stems import stem

LEAST_COVERED = 0.6
"""Of a clause's words must be in one that was said for the two to be compared."""

_MOST = 0.75
"""Of a claim's words were denied, for it to be a denied claim."""

_NEARLY_ALL = 0.8
"""Of a denial's words were said without one, for it to be made up."""

AS_NEAR = 0.9
"""Clauses that have nearly as many of the words as the nearest one are compared, too: one of them may bear it out."""

_FEWEST = 4
"""Words that two clauses have in common, one after the other, for a word put in to be told from a free wording."""

_FEWEST_LETTERS = 4
_MOST_MOVED = 60
"""Words from the first to the last one that changed places."""

_ARTICLES = frozenset(
    "the a an our my your this that der die das den dem des ein eine einen einem einer unser unsere le la les l un une "
    "des notre nos el los las una unos unas nuestro nuestra su".split()
)
_DUTY = frozenset({"may", "must"})
_BE = frozenset("is are was were be been being get gets est sont es son fue werden wird wurde".split())


@dataclass(frozen=True, slots=True)
class Evidence:
    """The clauses that were said, the owner's apart from the agent's, and the ``sentences`` as a whole.

    ``known`` are all words that somebody said: a word put in that is none of them was made up.
    """

    by_owner: tuple[Clause, ...]
    by_agent: tuple[Clause, ...]
    sentences: tuple[Clause, ...]
    known: Set[str]

    def denies(self, claim: Clause) -> bool:
        """Whether it denies something of a claim, wherever: also by pointing at it ("drop that")."""
        return any(
            (one.is_denied or one.turning or one.limiting) and (one.words & claim.words or points_back(one.text))
            for one in (*self.by_owner, *self.by_agent)
        )


def is_turned(claim: str, said: Evidence) -> bool:
    """Whether a clause of a sentence is against the clauses that were said and have its words.

    What an agent said counts where the owner said nothing of the kind.
    """
    parts = clauses(claim)
    if any(_is_against(one, said) for one in parts if one.words):
        return True
    return len(parts) > 1 and _is_against(whole(claim), replace(said, by_owner=(), by_agent=()))


def _is_against(claim: Clause, said: Evidence) -> bool:
    near = nearest(claim, said.by_owner) or nearest(claim, said.by_agent) or nearest(claim, said.sentences)
    return bool(near) and all(differ(claim, one, said) for one in near)


def nearest(claim: Clause, every: Sequence[Clause]) -> list[Clause]:
    """The clauses that have most of the words of another one, if any has enough of them."""
    wanted = claim.words
    best = max((one.covers(wanted) for one in every), default=0.0)
    if best < LEAST_COVERED or (len(wanted) == 1 and best < 1):
        return []
    return [one for one in every if one.covers(wanted) >= AS_NEAR * best]


def differ(claim: Clause, said: Clause, evidence: Evidence) -> bool:
    """Whether one says the opposite of the other: what turns a sentence round, twice, leaves it as it is."""
    order = _Order.of(claim, said)
    is_swapped = order.is_swapped()
    flips = is_swapped + (_has_opposite(claim, said) and (is_swapped or not order.is_free))
    flips += _lost_denial(claim, said) or _gained_denial(claim, said, evidence)
    return flips % 2 == 1 or _is_put_in(claim, said, evidence.known)


def _lost_denial(claim: Clause, said: Clause) -> bool:
    """Whether what was denied is claimed, without any word that denies or limits it in another way."""
    if said.is_loose or is_complaint(said.text) or said.covers(claim.words) < _MOST:
        return False
    if is_free(said.text, claim.text) or (len(claim.words) == 1 and claim.words != said.words):
        return False
    is_denied = (said.is_denied + _turns(said, claim)) % 2 == 1
    return is_denied and not (claim.is_denied or claim.turning - said.turning or claim.limiting - said.limiting)


def _turns(one: Clause, other: Clause) -> int:
    """How many words that deny by what they mean one clause has, where it says about the same as the other."""
    return len(one.turning - other.turning) if other.covers(one.words) >= LEAST_COVERED else 0


def _gained_denial(claim: Clause, said: Clause, evidence: Evidence) -> bool:
    """Whether what was said is denied, without any word that was said for it."""
    if said.is_loose or said.covers(claim.words) < _NEARLY_ALL or len(claim.words) < 2:
        return False
    is_denied = (claim.is_denied + _turns(claim, said)) % 2 == 1
    is_so = said.is_denied or said.turning - claim.turning
    is_limited = said.limiting - claim.limiting and said.covers(claim.words) < 1
    return is_denied and not is_so and not is_limited and not evidence.denies(claim)


def _has_opposite(claim: Clause, said: Clause) -> bool:
    """Whether the one has the opposite of a word of the other in its place."""
    every = data()
    here, there = (frozenset(map(stem, one.tokens)) for one in (claim, said))
    only_here, only_there = (one - every.turning for one in (here - there, there - here))
    for one in only_here:
        for other in only_there:
            if {one, other} == _DUTY and (claim.is_denied or said.is_denied):
                continue  # "no … may" is "must not"
            if (one, other) in every.opposites or _by_beginning(one, other):
                return True
    return not (claim.text.isascii() and said.text.isascii()) and any(
        one in claim.text and one not in said.text and other in said.text and other not in claim.text
        for one, other in every.chinese_opposites
    )


def _by_beginning(one: str, other: str) -> bool:
    for first, second in data().beginnings:
        if one.startswith(first) and other.startswith(second):
            rest = one.removeprefix(first)
            if len(rest) >= _FEWEST_LETTERS and rest == other.removeprefix(second):
                return True
    return False


@dataclass(frozen=True, slots=True)
class _Order:
    """In what order two clauses have the words that both have. A passive changes their places, and says the same."""

    claim: Clause
    said: Clause
    here: Sequence[str]
    there: Sequence[str]

    @classmethod
    def of(cls, claim: Clause, said: Clause) -> _Order:
        return cls(claim, said, _bare(claim), _bare(said))

    @property
    def _added(self) -> frozenset[str]:
        return (frozenset(self.here) ^ frozenset(self.there)) & data().passive

    def _common(self) -> tuple[list[str], list[str]]:
        common = (set(self.here) & set(self.there)) - data().passive - _BE
        here, there = ([token for token in tokens if token in common] for tokens in (self.here, self.there))
        return here, there

    @property
    def is_free(self) -> bool:
        """Whether the words stand in another order, so that what is told of which cannot be told from it."""
        here, there = self._common()
        return here != there

    def is_swapped(self) -> bool:
        """Whether two words have changed places, and nothing else says so: who does it to whom, from what to what."""
        here, there = self._common()
        if len(self.claim.words & self.said.words) < 2 or sorted(here) != sorted(there):
            return False
        if here == there:
            return self._is_turned_passive()
        moved = _changed_places(here, there)
        return not self._added and moved is not None and _is_in_place_of(moved, self.here, self.there)

    def _is_turned_passive(self) -> bool:
        """Whether one is a passive of the other, and yet nothing has changed places."""
        only_here = frozenset(self.here) - frozenset(self.there)
        by = only_here & data().passive
        is_passive = not by.isdisjoint("被由") or bool(by and only_here & _BE)
        return is_passive and self.claim.words == self.said.words


def _is_in_place_of(moved: tuple[str, str], here: Sequence[str], there: Sequence[str]) -> bool:
    """Whether two words that changed places stand where the other one stood: "from A to B", "from B to A"."""
    first, second = moved
    every = data().opposites
    pairs = ((_before(first, there), _before(second, here)), (_before(second, there), _before(first, here)))
    return all(one == other or not (one and other) or (one, other) in every for one, other in pairs)


def _before(word: str, tokens: Sequence[str]) -> str:
    at = tokens.index(word)
    return tokens[at - 1] if at else ""


def _is_turned_passive(claim: Clause, said: Clause, added: Set[str]) -> bool:
    by = added & data().passive
    is_chinese = not by.isdisjoint("被由")
    return bool(by) and (is_chinese or bool(added & _BE)) and claim.words == said.words


def _changed_places(one: Sequence[str], other: Sequence[str]) -> tuple[str, str] | None:
    """The first words of two parts of a claim that stand in each other's place in what was said."""
    start = next((at for at, (a, b) in enumerate(zip(one, other, strict=True)) if a != b), 0)
    end = next((at for at, (a, b) in enumerate(zip(one[::-1], other[::-1], strict=True)) if a != b), 0)
    first, second = one[start : len(one) - end], other[start : len(other) - end]
    every = data()
    loose = every.silent | every.joining | every.denials
    if len(first) > _MOST_MOVED:
        return None
    for head in range(1, len(first) - 1):
        for tail in range(1, len(first) - head):
            between = first[head : len(first) - tail]
            changed = [*first[len(first) - tail :], *between, *first[:head]]
            moved = {*first[:head], *first[len(first) - tail :]}
            if changed == second and not moved & loose and not set(between) <= every.joining:
                return first[len(first) - tail], first[0]
    return None


def _is_put_in(claim: Clause, said: Clause, known: Set[str]) -> bool:
    """Whether a clause repeats another one word for word but for one word, which nobody said."""
    if not known or not all(token.isascii() for token in claim.tokens[:1]):
        return False
    here, there = _bare(claim), _bare(said)
    blocks = [one for one in SequenceMatcher(None, there, here, autojunk=False).get_opcodes() if one[0] != "equal"]
    if len(blocks) != 1 or blocks[0][0] != "replace" or len(claim.words & said.words) < _FEWEST:
        return False
    _, begin, end, first, last = blocks[0]
    if (end - begin, last - first) != (1, 1):
        return False
    word, instead_of = here[first], there[begin]
    if word in known or word[:3] == instead_of[:3]:
        return False
    return key_of(word) in claim.words and key_of(instead_of) in said.words


def _bare(clause: Clause) -> list[str]:
    return [stem(token) for token in clause.tokens if token not in _ARTICLES]
