"""The vector lane's ticket: a question embedded, and the vectors to compare it with."""

from __future__ import annotations

import math
import time
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from heapq import nlargest
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from nacre.base.text import is_unspaced, words
from nacre.base.text import normalise as text_normalise
from nacre.base.times import Window, day_of
from nacre.errors import EmbedderUnavailable, RerankerUnavailable
from nacre.home.consent import embedder_in_use
from nacre.home.home import BUNDLED, Home
from nacre.protocols import RemoteEmbedder
from nacre.recall.question import COMMON_TERM_SHARE, Question
from nacre.recall.scoring import (
    ADDED_FACTORS,
    NEAR_WINDOW,
    SecondLook,
    Signals,
    Sureness,
    age_factor,
    blend,
    factors,
    importance_score,
    min_max,
    product,
    sureness_of,
    window_factor,
)
from nacre.store.memories import Memories, UsageLog
from nacre.store.schema import FORMER, Clause, memory_clause
from nacre.store.search import Corpus, Held, Match, Selection, Term, WordSearch
from nacre.values.memory import Kind, Memory
from nacre.values.recall import Filter, Lane, LaneState, Mode, RecallQuery
from nacre.values.review import Usage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from nacre.store.search import VectorsOf


@dataclass(frozen=True, slots=True)
class QueryVector:
    """A unit vector, and the store its cosines come from."""

    value: NDArray[np.float32]
    vectors: VectorsOf

    def sureness(self, kind: str) -> Sureness:
        """How sure a hit among ``turns`` or ``memories`` is by these vectors."""
        return sureness_of(kind, self.vectors.model(), self.vectors.seen())


# ----------------------------------------------------------------------------
# The lexical score: BM25F over a turn and its neighbours.
#
# A turn is not read alone: its own terms count fully, those of the turns around it in part. Every
# turn's counts are
# brought to an ordinary length before they are shared, so that a long answer does not drown its
# neighbours.


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
    own: Mapping[tuple[int, int], Held],
    places: Iterable[tuple[int, int]],
    *,
    share: float,
    reach: int,
) -> dict[tuple[int, int], Held]:
    """The term counts at some places (session, seq), each with the share of those around it."""
    shared = {
        place: {at: share * count for at, count in held.items()} for place, held in own.items()
    }
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
        held = (
            sum(self.weights[at] * share for at, share in self._held(rows).items())
            if self.weights
            else 0.0
        )
        if in_part:
            return Signals(
                held / self.total + self.identifiers,
                cosine,
                self.unknown - self.identifiers,
                whole=whole,
            )
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
    question: Question,
    terms: Sequence[Term],
    corpus: Corpus,
    *,
    bm25: Bm25 = Bm25(),
    postings: int | None = None,
) -> tuple[tuple[Term, ...], Weights, QueryCoverage]:
    """The terms to search by, the rarest known ones in their order, what they weigh, and the telling ones.

    ``postings`` bounds the rows that the terms touch together; the rarest term is kept whatever it touches.
    """
    kept: list[int] = []
    left = math.inf if postings is None else postings
    idle = _other_spellings(
        question, {term.word: n for term, n in zip(terms, corpus.frequencies, strict=True)}
    )
    known = [
        at for at, count in enumerate(corpus.frequencies) if count and terms[at].word not in idle
    ]
    for at in sorted(known, key=lambda at: corpus.frequencies[at])[:MAX_TERMS]:
        left -= corpus.frequencies[at]
        if left >= 0 or not kept:
            kept.append(at)
    kept.sort()
    every = weigh(corpus, bm25)
    idf = tuple(every.idf[at] for at in kept)
    asked = sum(
        weight for term, weight in zip(terms, every.idf, strict=True) if term.word not in idle
    )
    weights = replace(
        every, idf=idf, elsewhere=max(0.0, asked - sum(idf)) if len(terms) <= MAX_TERMS else 0.0
    )
    return tuple(terms[at] for at in kept), weights, _coverage(question, terms, corpus, kept)


def _coverage(
    question: Question, terms: Sequence[Term], corpus: Corpus, kept: Sequence[int]
) -> QueryCoverage:
    """What of the question an answer must hold.

    An excerpt is judged mostly by what the index knows of it: the rest is of another day. Of the pairs of characters
    that a script without spaces is cut into, about half lie across two words: those unknown count half, and against
    nobody.
    """
    known = {term.word: count for term, count in zip(terms, corpus.frequencies, strict=True)}
    idle = _other_spellings(question, known)
    wanted = {
        at
        for at, term in enumerate(terms)
        if term.word not in idle and _is_distinctive(term.word, question, known)
    }
    every = {at for at, term in enumerate(terms) if term.word not in idle}
    all_words = (
        frozenset(kept.index(at) for at in every & set(kept))
        if all(corpus.frequencies[at] for at in every)
        else frozenset[int]()
    )
    if not wanted:
        unknown_words = QueryCoverage(
            total=1.0, unknown=1.0, identifiers=float(bool(question.names))
        )
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
    if (
        question.is_prompt and not question.is_pasted
    ):  # of a long one the sentences speak, each for itself
        total = math.sqrt(total * rarest)
    coded = {word for name in question.names for word in words(name)}
    return QueryCoverage(
        weights=weights,
        total=total,
        unknown=missing / total,
        unknown_name=not question.is_pasted
        and any(terms[at].word in question.proper for at in unknown),
        identifiers=min(missing, sum(idf[at] for at in unknown if terms[at].word in coded)) / total,
        by_share=question.is_prompt,
        all_words=all_words,
    )


def _distinctive_weights(
    question: Question, terms: Sequence[Term], corpus: Corpus
) -> tuple[float, ...]:
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
        made = {word for one, parts in question.spellings for word in (one, *parts)} - set(
            words(question.text)
        )
        idle |= {word for word in made if not known.get(word)}
    return idle


def _is_distinctive(word: str, question: Question, known: Mapping[str, int]) -> bool:
    """A number that nobody ever said is one that changes from message to message."""
    if word not in question.telling:
        return False
    return bool(known[word]) or 2 * sum(character.isdecimal() for character in word) < len(word)


# ----------------------------------------------------------------------------
# Recall over memories: lexical, vector, link and time lanes, then the memory-aware score
# (docs/context.md).


CANDIDATES = 250
WEIGHTS = {"lexical": 0.5, "vector": 0.5}
SIMILARITY_EXPONENT = 0.7
FULL_TEXT_BONUS = 0.15
HIGHEST = 1 + FULL_TEXT_BONUS
"""What a score is divided by, so that the best there can be is 1."""
NAME_BONUS = 0.1
MOST_INHERITED = 0.8
"""However strong a link is, what it leads to is not what was found."""

PREFERRED_KIND = 1.25
"""What a kind that is preferred counts (seed facts 2.3), within the clamp on all factors."""

UNSEEN_ROWS = 50
"""A young home cannot tell common words from rare ones: words are weighed as if it held so many more memories."""
LINK_SEEDS = 5
_PROMPT_READ = 50
"""Of the candidates of a prompt so many are read, the most relevant; and besides whatever may be sure to fit."""

_LEANING = 0.3
"""What it counts, of the words of a prompt, that it sounds like a question for the kind of a memory."""
FORMER_SHARE = 0.8
"""What a memory was replaced for is still asked for in the old words: they count so much for what took its place."""


@dataclass(frozen=True, slots=True)
class ScoredMemory:
    """A memory with its score (0 to 1), the parts of it, the absolute signals, and how sure it is to answer by those.

    ``linked_from`` are the ids of the hits that it was reached from.
    """

    memory: Memory
    score: float
    components: dict[str, float]
    signals: Signals
    confidence: float = 0.0
    linked_from: tuple[str, ...] = ()


def rescored(item: ScoredMemory, score: float) -> ScoredMemory:
    """A hit with the score of another place; its components tell so, and still multiply to the score."""
    if not item.score:
        return replace(item, score=score)
    kept = item.components.get("x_place", 1.0) * score / item.score
    components = {name: value for name, value in item.components.items() if name != "x_place"}
    if round(kept, 4) != 1.0:
        components["x_place"] = round(kept, 4)
    return replace(item, score=score, components=components)


@dataclass(frozen=True, slots=True)
class Ranking:
    """How memories are to be ranked: as of when, around which date, by relevance alone or with age and use.

    ``clamped=False`` is the formula of agenr (seed facts 1.2.1) as it stands: no clamp, no factors but its own, the
    whole bonus for any full-text match, and without ``boost`` the cosine as it is. ``as_seen`` is the moment that days
    count back from, by default ``now``; ``word_share`` what words count beside meaning; memories of ``prefer_kinds``
    count a quarter more. ``window`` is a time that the question names.
    """

    now: datetime
    around: datetime | None = None
    radius_days: float = 14.0
    boost: bool = True
    clamped: bool = True
    as_seen: datetime | None = None
    word_share: float | None = None
    prefer_kinds: tuple[Kind, ...] = ()
    window: Window | None = None

    @property
    def today(self) -> date:
        """The day on which a memory must still be true."""
        return day_of(self.now)


@dataclass(frozen=True, slots=True)
class _Found:
    """What the lanes found, by row: term counts and cosines."""

    matches: Mapping[int, Match] = field(default_factory=dict)
    coverage: QueryCoverage = QueryCoverage()
    empty: bool = False
    sureness: Sureness = field(default_factory=lambda: sureness_of("memories", None))
    cosines: Mapping[int, float] = field(default_factory=dict)
    leans: tuple[Kind, ...] = ()
    is_prompt: bool = False
    text: str = ""
    """The question, normalised."""

    def passes_over(self, memory: Memory) -> bool:
        """Whether the model cannot read a memory, so that its cosine to a prompt says nothing."""
        return (
            self.is_prompt
            and not self.sureness.scale.reads_unspaced
            and is_unspaced(memory.content)
        )

    def signals(
        self, row: int, *, cosine: float | None, in_part: bool, is_leant_to: bool
    ) -> Signals:
        """What speaks for a row."""
        match = self.matches.get(row)
        signals = self.coverage.signals(match.held if match else {}, cosine=cosine, in_part=in_part)
        if not (self.empty or is_leant_to):
            return signals
        return replace(
            signals, empty=self.empty, coverage=signals.coverage + _LEANING * is_leant_to
        )

    def worth_reading(self, parts: Mapping[int, Mapping[str, float]]) -> list[int]:
        """The rows that may be sure to fit, whatever their memories are, the surest, and the most relevant."""
        could = {row: self._surest(row, in_part="name" in part) for row, part in parts.items()}
        relevant = nlargest(_PROMPT_READ, parts, key=lambda row: sum(parts[row].values()))
        kept = {*relevant, *nlargest(1, could, key=lambda row: could[row])}
        return [row for row in parts if row in kept or could[row] >= self.sureness.beside]

    def _surest(self, row: int, *, in_part: bool) -> float:
        """How sure a row can be, of a kind that is leant to, and in a script that the model may not read."""
        unseen = self.signals(row, cosine=None, in_part=in_part, is_leant_to=bool(self.leans))
        cosine = self.cosines.get(row)
        if cosine is None:
            return self.sureness.confidence(unseen)
        sure = self.sureness.confidence(replace(unseen, cosine=cosine))
        return (
            sure
            if self.sureness.scale.reads_unspaced
            else max(sure, self.sureness.confidence(unseen))
        )


class _Synonyms(NamedTuple):
    """What stands for a term of a question: a word or phrase, with its share and the rows that may hold it."""

    at: int
    term: Term
    form: str
    share: float
    rows: int


def sureness_kind(question: Question) -> str:
    """How memories are judged: as answers to a question, or as what a prompt brings up."""
    return "prompts" if question.is_prompt else "memories"


class MemoryRecall:
    """Ranks memories for a question."""

    def __init__(
        self, search: WordSearch, memories: Memories, selection: Selection, usage: UsageLog
    ) -> None:
        self._search = search
        self._memories = memories
        self._selection = selection
        self._usage = usage

    def rank(
        self,
        question: Question,
        wanted: Filter,
        ranking: Ranking,
        *,
        vector: QueryVector | None,
        lexical: bool = True,
    ) -> list[ScoredMemory]:
        """All memories that any lane found, the best first."""
        if question.is_open:
            inside = self._of_a_time(
                self._rows_of(within(wanted, ranking.window), ranking), ranking
            )
            if inside or ranking.window is None or question.is_prompt:
                return inside
            beside = self._of_a_time(self._rows_of(wanted, ranking), ranking)
            return [item for item in beside if item.components["x_time"] >= NEAR_WINDOW]
        where = memory_clause(wanted, ranking.today)
        admitted = self._selection.admitted_memories(wanted, today=ranking.today)
        former = (
            {}
            if wanted.as_of
            else {old: row for old, row in self._memories.former().items() if row in admitted}
        )
        matches, weights, coverage = (
            self._lexical(question, where, former) if lexical else ({}, Weights(), QueryCoverage())
        )
        named = self._named(question, where) if lexical else set()
        cosines = self._cosines(vector, admitted, former)
        words = {row: saturate(match.held, match.length, weights) for row, match in matches.items()}
        nearest = nlargest(CANDIDATES, cosines, key=lambda row: (cosines[row], -row))
        kept = {*nearest, *matches, *named}
        near = {row: share for row, share in min_max(cosines).items() if row in kept}
        weights_of = shares(ranking.word_share)
        parts = blend(
            {
                "lexical": (weights_of["lexical"], min_max(words, floor=0.0)),
                "vector": (weights_of["vector"], near),
            }
        )
        for row in named:
            parts.setdefault(row, {})["name"] = NAME_BONUS
        kind = sureness_kind(question)
        sureness = vector.sureness(kind) if vector else sureness_of(kind, None)
        text = text_normalise(question.text)
        lanes = _Found(
            matches,
            coverage,
            question.says_nothing,
            sureness,
            cosines,
            question.leans,
            question.is_prompt,
            text,
        )
        found = self._memories.by_rows(
            lanes.worth_reading(parts) if question.is_prompt else list(parts)
        )
        linked = self._follow_links(parts, found, admitted, wanted.as_of or ranking.today)
        return self._scored(parts, found, lanes, ranking, linked)

    def browse(self, rows: list[int], ranking: Ranking) -> list[ScoredMemory]:
        """Memories without a question: by importance, and a half-life of 30 days (seed facts 1.2.2)."""
        browsed = [_browsed(memory, ranking) for memory in self._memories.by_rows(rows).values()]
        return sorted(browsed, key=lambda item: (-item.score, item.memory.id))

    def _rows_of(self, wanted: Filter, ranking: Ranking) -> list[int]:
        return self._selection.browse_memories(wanted, limit=CANDIDATES, today=ranking.today)

    def _of_a_time(self, rows: list[int], ranking: Ranking) -> list[ScoredMemory]:
        """The memories of a time or kind that was asked for, and nothing else was."""
        parts = {row: {"time": 1.0} for row in rows}
        return self._scored(parts, self._memories.by_rows(rows), _Found(), ranking, {})

    def _lexical(
        self, question: Question, where: Clause, former: Mapping[int, int]
    ) -> tuple[dict[int, Match], Weights, QueryCoverage]:
        terms = self._search.terms(question.words)
        if not terms:
            return {}, Weights(), QueryCoverage()
        corpus = self._search.corpus(terms)
        synonyms = self._synonyms(question, terms)
        corpus = replace(
            corpus,
            rows=corpus.rows + UNSEEN_ROWS,
            frequencies=_with_synonyms(corpus.frequencies, synonyms),
        )
        terms, weights, coverage = choose(question, terms, corpus)
        matches = {match.row: match for match in self._search.match(terms, where, CANDIDATES)}
        for old in self._search.match(terms, FORMER, CANDIDATES) if former else ():
            if old.row in former:
                row = former[old.row]
                matches[row] = _with_former(matches.get(row), old._replace(row=row))
        self._match_synonyms(synonyms, {term: at for at, term in enumerate(terms)}, where, matches)
        return matches, weights, coverage

    def _synonyms(self, question: Question, terms: Sequence[Term]) -> list[_Synonyms]:
        """What stands for the words of a prompt, as far as any memory holds it."""
        if not question.synonyms:
            return []
        by_stem = {term.stem: at for at, term in enumerate(terms)}
        phrases = dict.fromkeys(phrase for forms in question.synonyms.values() for phrase in forms)
        rows = self._search.rows_with(list(phrases))
        found = []
        for word, forms in question.synonyms.items():
            at = next(
                (by_stem[term.stem] for term in self._search.terms([word]) if term.stem in by_stem),
                None,
            )
            if at is not None:
                found += [
                    _Synonyms(at, terms[at], form, share, rows[form])
                    for form, share in forms.items()
                    if form in rows
                ]
        return found

    def _match_synonyms(
        self,
        synonyms: Sequence[_Synonyms],
        places: Mapping[Term, int],
        where: Clause,
        matches: dict[int, Match],
    ) -> None:
        """Add to what rows hold of the terms what stands for them."""
        wanted = [one for one in synonyms if one.term in places]
        for match in self._search.match([Term(one.form, "") for one in wanted], where, CANDIDATES):
            held = dict(matches[match.row].held) if match.row in matches else {}
            for at in match.held:
                place = places[wanted[at].term]
                held[place] = max(held.get(place, 0.0), wanted[at].share)
            matches[match.row] = matches.get(match.row, match)._replace(held=held)

    def _named(self, question: Question, where: Clause) -> set[int]:
        names = question.names
        if question.is_prompt:  # a name that stands in the index as it is was found as a word
            names = tuple(name for name in names if name not in self._search.rows_with(names))
        return {row for row, _, _ in self._search.match_parts(names, where, CANDIDATES)}

    def _cosines(
        self, vector: QueryVector | None, admitted: set[int], former: Mapping[int, int]
    ) -> dict[int, float]:
        if vector is None:
            return {}
        every = vector.vectors.memory_cosines(vector.value)
        found = {row: cosine for row, cosine in every.items() if row in admitted}
        for old, row in former.items():
            if (
                row in found and old in every
            ):  # without a vector of its own, a memory is judged by its words
                found[row] = max(found[row], FORMER_SHARE * every[old])
        return found

    def _follow_links(
        self,
        parts: dict[int, dict[str, float]],
        found: dict[int, Memory],
        admitted: set[int],
        day: date,
    ) -> dict[int, tuple[str, ...]]:
        """The memories one hop from the best five inherit a share of their relevance: the strength of the link.

        Row → where from.
        """
        best = sorted(found, key=lambda row: -sum(parts[row].values()))[:LINK_SEEDS]
        relevance = {found[row].id: sum(parts[row].values()) for row in best}
        reached: dict[str, float] = {}
        sources: dict[str, list[str]] = {}
        for source, target, strength in self._memories.neighbours(list(relevance), day):
            reached[target] = max(
                reached.get(target, 0.0), min(MOST_INHERITED, strength) * relevance[source]
            )
            sources.setdefault(target, []).append(source)
        linked = {}
        for row, memory in self._memories.rows_of(list(reached)).items():
            if row in admitted and reached[memory.id] > sum(parts.get(row, {}).values()):
                parts[row] = {
                    **parts.get(row, {}),
                    "link": reached[memory.id] - sum(parts.get(row, {}).values()),
                }
                found[row] = memory
                linked[row] = tuple(sources[memory.id])
        return linked

    def _scored(
        self,
        parts: Mapping[int, dict[str, float]],
        memories: Mapping[int, Memory],
        found: _Found,
        ranking: Ranking,
        linked: Mapping[int, tuple[str, ...]],
    ) -> list[ScoredMemory]:
        usage = self._usage.of([memory.id for memory in memories.values()])
        scored = []
        for row, memory in memories.items():
            cosine = None if found.passes_over(memory) else found.cosines.get(row)
            signals = found.signals(
                row,
                cosine=cosine,
                in_part="name" in parts[row],
                is_leant_to=memory.kind in found.leans,
            )
            used = usage.get(memory.id, Usage())
            score, components = score_of(
                memory,
                parts[row],
                used,
                ranking,
                found_in_text=row in found.matches,
                cosine=found.cosines.get(row),
            )
            if ranking.window:
                factor = window_factor(memory, ranking.window)
                score, components["x_time"] = score * factor, round(factor, 4)
            is_verbatim = (
                len(memory.content) < 2 * len(found.text) + 2
                and text_normalise(memory.content) == found.text
            )
            sure = 1.0 if is_verbatim else found.sureness.confidence(signals)
            scored.append(
                ScoredMemory(memory, score, components, signals, sure, linked.get(row, ()))
            )
        return sorted(scored, key=lambda item: (-item.score, item.memory.id))


def within(wanted: Filter, window: Window | None) -> Filter:
    """Return the filter with the times of a window."""
    return replace(wanted, since=window.since, until=window.until) if window else wanted


def shares(word_share: float | None) -> Mapping[str, float]:
    """What words and meaning count, where a query says so; else as they were measured best."""
    return WEIGHTS if word_share is None else {"lexical": word_share, "vector": 1 - word_share}


def _browsed(memory: Memory, ranking: Ranking) -> ScoredMemory:
    worth = importance_score(memory.importance)
    now = ranking.as_seen or ranking.now
    age = age_factor(memory, now, around=ranking.around, radius_days=ranking.radius_days)
    components = {"relevance": round(worth, 4), "x_age": round(age, 4)}
    return ScoredMemory(memory, worth * age, components, Signals(0.0, None))


def score_of(
    memory: Memory,
    parts: Mapping[str, float],
    usage: Usage,
    ranking: Ranking,
    *,
    found_in_text: bool,
    cosine: float | None = None,
) -> tuple[float, dict[str, float]]:
    """sim^0.7 · clamp(factors) + .15 · sim for a full-text match, over 1.15; relevance alone without boost.

    agenr cuts at 1 instead. There the best of what is new and important all score 1, and their order is lost. The
    components tell the same as a product: ``relevance`` times every ``x_…`` is the score.
    """
    similarity = min(1.0, sum(parts.values()))
    components = {name: round(value, 4) for name, value in parts.items() if value}
    if not ranking.boost:
        if not ranking.clamped and cosine is not None:
            similarity = max(0.0, cosine)
        return similarity, components | {"relevance": round(similarity, 4)}
    weighed = factors(
        memory,
        usage,
        ranking.now,
        around=ranking.around,
        radius_days=ranking.radius_days,
        as_seen=ranking.as_seen,
    )
    if memory.kind in ranking.prefer_kinds:
        weighed["kind"] = PREFERRED_KIND
    if not ranking.clamped:
        weighed = {name: value for name, value in weighed.items() if name not in ADDED_FACTORS}
    bonus = FULL_TEXT_BONUS * (similarity if ranking.clamped else 1.0) if found_in_text else 0.0
    worth = product(weighed) if ranking.clamped else math.prod(weighed.values())
    score = min(
        1.0,
        (similarity**SIMILARITY_EXPONENT * worth + bonus) / (HIGHEST if ranking.clamped else 1.0),
    )
    components["relevance"] = round(similarity, 4)
    told = weighed | _rest_of_product(similarity, weighed, worth, score)
    components |= {f"x_{name}": round(value, 4) for name, value in told.items() if value != 1.0}
    components["worth"] = round(worth, 4)
    if bonus:
        components["full_text"] = round(bonus, 4)
    return score, components


def _rest_of_product(
    similarity: float, weighed: Mapping[str, float], worth: float, score: float
) -> dict[str, float]:
    """What makes a product of a score beside its factors: the curve, the clamp, and the words' bonus with its scale."""
    if similarity <= 0:
        return {}
    curve = similarity ** (SIMILARITY_EXPONENT - 1)
    return {
        "curve": curve,
        "clamp": worth / math.prod(weighed.values()),
        "words": score / (similarity * curve * worth),
    }


def _with_synonyms(frequencies: Sequence[int], synonyms: Sequence[_Synonyms]) -> tuple[int, ...]:
    """How common words are, where one that no row holds is as common as what stands for it."""
    found = list(frequencies)
    for one in synonyms:
        if not frequencies[one.at]:
            found[one.at] += one.rows
    return tuple(found)


def _with_former(own: Match | None, former: Match) -> Match:
    """A memory's term counts with those of what it replaced."""
    shared = {at: FORMER_SHARE * count for at, count in former.held.items()}
    if own is None:
        return former._replace(held=shared)
    return own._replace(
        held={at: max(own.held.get(at, 0.0), shared.get(at, 0.0)) for at in own.held | shared}
    )


# ----------------------------------------------------------------------------
# Open the lanes of a query: embed the question where a model can, and say why where it cannot.


@dataclass(frozen=True, slots=True)
class Lanes:
    """The lanes of one query: the embedded question where meaning counts, and what each did."""

    vector: QueryVector | None
    lexical: bool
    reports: tuple[Lane, ...]
    second: SecondLook | None = None

    def told(self) -> tuple[Lane, ...]:
        """What ran, once all has."""
        return (*self.reports, self.second.report()) if self.second else self.reports


def open_lanes(home: Home, query: RecallQuery, question: Question) -> Lanes:
    """Embed the question where the vector lane can run, and say why where it cannot."""
    lexical = query.mode in (Mode.HYBRID, Mode.LEXICAL)
    reports = [Lane("lexical", LaneState.RAN if lexical else LaneState.SKIPPED)]
    vector = None
    if query.mode in (Mode.LEXICAL, Mode.BROWSE):
        reports.append(Lane("vector", LaneState.SKIPPED))
    elif home.settings.text("embedding.model") == "none":
        reports.append(Lane("vector", LaneState.SKIPPED, note="off in the settings"))
    elif (
        lexical
        and is_unspaced(question.semantic)
        and home.settings.text("embedding.model") == BUNDLED
    ):
        reports.append(
            Lane("vector", LaneState.SKIPPED, note="the model does not read this script")
        )
    else:
        try:
            vector, report = _embed_question(home, question, query.topic)
            reports.append(report)
        except EmbedderUnavailable as error:
            reports.append(Lane("vector", LaneState.UNAVAILABLE, note=error.message))
    second = None
    try:
        if query.mode is not Mode.BROWSE and home.reranker:
            second = SecondLook(home.reranker, query.text, time.perf_counter)
    except RerankerUnavailable as error:
        reports.append(Lane("reranker", LaneState.UNAVAILABLE, note=error.message))
    return Lanes(vector, lexical, tuple(reports), second)


def _embed_question(home: Home, question: Question, topic: str) -> tuple[QueryVector | None, Lane]:
    """By the model that made the vectors in use, whichever is set by now."""
    vectors = home.vectors
    model = vectors.model()
    if model is None:
        return None, Lane(
            "vector", LaneState.PARTIAL, note="no vectors yet: nacre ingest makes them"
        )
    embedder = embedder_in_use(home)
    if embedder.name != model:
        return None, Lane("vector", LaneState.UNAVAILABLE, note=f"the vectors were made by {model}")
    text = f"{topic.strip()}: {question.semantic}" if topic.strip() else question.semantic
    if isinstance(embedder, RemoteEmbedder):
        embedder = embedder.within(home.settings.number("embedding.query_seconds"), question=True)
        text = home.redactor.clean(text)  # it may leave this machine
    embedded = embedder.embed([text])[0]
    if vectors.dimensions() not in (0, len(embedded)):
        told = f"{model} gives vectors of {len(embedded)} numbers now, and the index has {vectors.dimensions()}"
        return None, Lane("vector", LaneState.UNAVAILABLE, note=told)
    are_missing = vectors.are_missing()
    goes_on = (
        "nacre embed tells why"
        if isinstance(embedder, RemoteEmbedder)
        else "nacre ingest goes on with them"
    )
    note = f"some texts have no vectors yet: {goes_on}" if are_missing else None
    state = LaneState.PARTIAL if are_missing else LaneState.RAN
    return QueryVector(embedded, vectors.of(model)), Lane("vector", state, note=note)
