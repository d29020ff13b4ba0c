"""The lexical score: BM25F over a turn and its neighbours.

A turn is not read alone: its own terms count fully, those of the turns around it in part. Every turn's counts are
brought to an ordinary length before they are shared, so that a long answer does not drown its neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from nacre.retrieval.confidence import Signals
from nacre.retrieval.question.question import COMMON_TERM_SHARE, Question
from nacre.storage.search.full_text import Corpus, Held, Match, Term
from nacre.text.passages import is_unspaced, words

MAX_TERMS = 24
"""Terms that a question is searched by: the rarest that the index knows."""

_NOTHING: Held = {}
K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Bm25:
    """``k1``: how soon repetition stops counting; ``b``: how much length counts against a row."""

    k1: float = 0.8
    b: float = 0.3


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each term of a query says, and how long an ordinary row is. ``elsewhere`` is what its other words would
    say, which the index does not know or which were left out."""

    idf: tuple[float, ...] = ()
    average_length: float = 1.0
    bm25: Bm25 = Bm25()
    elsewhere: float = 0.0

    @property
    def total(self) -> float:
        """The weight of a row that holds every word of the question."""
        return sum(self.idf) + self.elsewhere

    @property
    def ideal(self) -> float:
        """The score no row reaches: every term, over and over."""
        return self.total * (self.bm25.k1 + 1)


def weigh(corpus: Corpus, bm25: Bm25 = Bm25()) -> Weights:
    """Inverse document frequency, in the form that is never negative (seed facts 2.3)."""
    idf = tuple(map(corpus.idf, corpus.frequencies))
    return Weights(idf, max(1.0, corpus.average_length), bm25)


def saturate(held: Held, length: float, weights: Weights) -> float:
    """BM25 of a row that holds the terms so often."""
    k1, b, idf = weights.bm25.k1, weights.bm25.b, weights.idf
    slope = k1 * (1 - b + b * length / weights.average_length)
    score = 0.0
    for at, count in held.items():
        score += idf[at] * count * (k1 + 1) / (count + slope)
    return score


def saturate_ordinary(rows: Mapping[K, Held], weights: Weights) -> dict[K, float]:
    """As :func:`saturate`, for many rows of ordinary length."""
    k1, idf = weights.bm25.k1, weights.idf
    scores = {}
    for row, held in rows.items():
        score = 0.0
        for at, count in held.items():
            score += idf[at] * count * (k1 + 1) / (count + k1)
        scores[row] = score
    return scores


def normalise(matches: Mapping[K, Match], weights: Weights) -> dict[K, Held]:
    """The term counts of rows that hold any, as if they were of ordinary length."""
    b, average = weights.bm25.b, weights.average_length
    found = {}
    for row, match in matches.items():
        if match.held:
            length = 1 - b + b * match.length / average
            found[row] = {at: count / length for at, count in match.held.items()}
    return found


def in_context(
    own: Mapping[tuple[int, int], Held], places: Iterable[tuple[int, int]], *, share: float, reach: int
) -> dict[tuple[int, int], Held]:
    """The term counts at some places (session, seq), each with the share of those around it."""
    shared = {place: {at: share * count for at, count in held.items()} for place, held in own.items()}
    steps = [step for step in range(-reach, reach + 1) if step]
    found = {}
    for place in places:
        session, seq = place
        total = dict(own.get(place, ()))
        for step in steps:
            for at, count in shared.get((session, seq + step), _NOTHING).items():
                total[at] = total[at] + count if at in total else count
        found[place] = total
    return found


@dataclass(frozen=True, slots=True)
class QueryCoverage:
    """What the telling words of a question weigh among its terms (0 for the others), the share of their weight that
    the index does not know at all, whether a name is part of that, and the share of identifiers in it: those may be
    part of longer ones. ``by_share``: a row may hold a word by what stands for it, which counts in part. ``all_words``
    are the places of all words that are searched for; empty where the index does not know one of them."""

    weights: tuple[float, ...] = ()
    total: float = 0.0
    unknown: float = 0.0
    unknown_name: bool = False
    identifiers: float = 0.0
    by_share: bool = False
    all_words: frozenset[int] = frozenset()

    def is_whole(self, row: Held) -> bool:
        """Whether a row holds every word of the question."""
        return bool(self.all_words) and self.all_words <= row.keys()

    def signals(self, *rows: Held, cosine: float | None, in_part: bool = False) -> Signals:
        """What speaks for rows that hold so much, together; ``in_part``: they hold an identifier within a longer one.

        Without any telling word nothing speaks for or against them: half the weight counts as held.
        """
        whole = any(map(self.is_whole, rows))
        if not self.total:
            return Signals(0.5, cosine, whole=whole)
        held = sum(self.weights[at] * share for at, share in self._held(rows).items()) if self.weights else 0.0
        if in_part:
            return Signals(
                held / self.total + self.identifiers, cosine, self.unknown - self.identifiers, whole=whole
            )  # fmt: skip
        return Signals(held / self.total, cosine, self.unknown, self.unknown_name, whole=whole)

    def _held(self, rows: Sequence[Held]) -> Held:
        """The terms that any of the rows holds, and in which share."""
        if not self.by_share:
            return {at: 1.0 for row in rows for at in row}
        found: dict[int, float] = {}
        for row in rows:
            for at, share in row.items():
                found[at] = max(found.get(at, 0.0), min(1.0, share))
        return found


def choose(
    question: Question, terms: Sequence[Term], corpus: Corpus, *, bm25: Bm25 = Bm25(), postings: int | None = None
) -> tuple[tuple[Term, ...], Weights, QueryCoverage]:
    """The terms to search by, the rarest known ones in their order, what they weigh, and the telling ones.

    ``postings`` bounds the rows that the terms touch together; the rarest term is kept whatever it touches.
    """
    kept: list[int] = []
    left = math.inf if postings is None else postings
    idle = _other_spellings(question, {term.word: n for term, n in zip(terms, corpus.frequencies, strict=True)})
    known = [at for at, count in enumerate(corpus.frequencies) if count and terms[at].word not in idle]
    for at in sorted(known, key=lambda at: corpus.frequencies[at])[:MAX_TERMS]:
        left -= corpus.frequencies[at]
        if left >= 0 or not kept:
            kept.append(at)
    kept.sort()
    every = weigh(corpus, bm25)
    idf = tuple(every.idf[at] for at in kept)
    asked = sum(weight for term, weight in zip(terms, every.idf, strict=True) if term.word not in idle)
    weights = replace(every, idf=idf, elsewhere=max(0.0, asked - sum(idf)) if len(terms) <= MAX_TERMS else 0.0)
    return tuple(terms[at] for at in kept), weights, _coverage(question, terms, corpus, kept)


def _coverage(question: Question, terms: Sequence[Term], corpus: Corpus, kept: Sequence[int]) -> QueryCoverage:
    """What of the question an answer must hold.

    An excerpt is judged mostly by what the index knows of it: the rest is of another day. Of the pairs of characters
    that a script without spaces is cut into, about half lie across two words: those unknown count half, and against
    nobody.
    """
    known = {term.word: count for term, count in zip(terms, corpus.frequencies, strict=True)}
    idle = _other_spellings(question, known)
    wanted = {
        at for at, term in enumerate(terms) if term.word not in idle and _is_distinctive(term.word, question, known)
    }
    every = {at for at, term in enumerate(terms) if term.word not in idle}
    all_words = (
        frozenset(kept.index(at) for at in every & set(kept))
        if all(corpus.frequencies[at] for at in every)
        else frozenset[int]()
    )
    if not wanted:
        unknown_words = QueryCoverage(total=1.0, unknown=1.0, identifiers=float(bool(question.names)))
        known_words = QueryCoverage(all_words=all_words)
        return unknown_words if question.telling or question.is_prompt else known_words
    idf = _distinctive_weights(question, terms, corpus)
    unknown = {at for at in wanted if not corpus.frequencies[at]}
    pairs = {at for at in unknown if question.is_foreign or is_unspaced(terms[at].word)}
    missing = sum(idf[at] for at in unknown - pairs)
    weights = tuple(idf[at] if at in wanted else 0.0 for at in kept)
    if question.is_pasted:
        missing = min(missing, sum(weights) / 2)
    rarest = _rarest_weight(corpus)
    total = max(sum(weights) + missing + sum(idf[at] for at in pairs) / 2, rarest)
    if question.is_prompt and not question.is_pasted:  # of a long one the sentences speak, each for itself
        total = math.sqrt(total * rarest)
    coded = {word for name in question.names for word in words(name)}
    return QueryCoverage(
        weights=weights,
        total=total,
        unknown=missing / total,
        unknown_name=not question.is_pasted and any(terms[at].word in question.proper for at in unknown),
        identifiers=min(missing, sum(idf[at] for at in unknown if terms[at].word in coded)) / total,
        by_share=question.is_prompt,
        all_words=all_words,
    )


def _distinctive_weights(question: Question, terms: Sequence[Term], corpus: Corpus) -> tuple[float, ...]:
    """What each term weighs among those that an answer is recognised by.

    Words of everyday work weigh less; not where people ask what they have done: then what of them is known counts.
    """
    weights = weigh(corpus).idf
    if not question.common_terms:
        return weights
    return tuple(
        weight * COMMON_TERM_SHARE
        if term.word in question.common_terms and not (question.is_about_us and count)
        else weight
        for term, weight, count in zip(terms, weights, corpus.frequencies, strict=True)
    )


def _rarest_weight(corpus: Corpus) -> float:
    """What a word weighs that no row holds: one common word alone is not enough to recognise an answer by."""
    return weigh(replace(corpus, frequencies=(0,))).total


def _other_spellings(question: Question, known: Mapping[str, int]) -> set[str]:
    """The words of each identifier's spelling that the index does not have: the other one speaks for it.

    Of a prompt also those that only come of a spelling, and that nothing holds: it has them in words already.
    """
    idle: set[str] = set()
    for one, parts in question.spellings:
        idle |= set(parts) - {one} if known.get(one) else {one}
    if question.is_prompt and question.spellings:
        made = {word for one, parts in question.spellings for word in (one, *parts)} - set(words(question.text))
        idle |= {word for word in made if not known.get(word)}
    return idle


def _is_distinctive(word: str, question: Question, known: Mapping[str, int]) -> bool:
    """A number that nobody ever said is one that changes from message to message."""
    if word not in question.telling:
        return False
    return bool(known[word]) or 2 * sum(character.isdecimal() for character in word) < len(word)
