"""The ways to search (lanes): words, meaning, links and time."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from datetime import date, datetime
from heapq import nlargest
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from nacre.base.frozen import frozen
from nacre.base.text import is_unspaced, words
from nacre.base.text import normalise as text_normalise
from nacre.base.times import Window, day_of
from nacre.errors import EmbedderUnavailableError
from nacre.home import spending
from nacre.home.home import BUNDLED, Home
from nacre.protocols import RemoteEmbedder
from nacre.recall.question import COMMON_TERM_SHARE, Question
from nacre.recall.scoring import (
    ADDED_FACTORS,
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


_QUERY_SECONDS = 2.0
"""Time limit for a remote model that embeds a question."""


@frozen
class QueryVector:
    """A question's unit vector, and the stored vectors to compare it with."""

    value: NDArray[np.float32]
    vectors: VectorsOf

    def sureness(self, kind: str) -> Sureness:
        """Return the confidence model for ``turns`` or ``memories``."""
        return sureness_of(kind, self.vectors.model(), self.vectors.seen())


# -- Lexical score: BM25F over a turn and its neighbours -------------------------------------------
# The terms of neighbouring turns count partly. Counts are first normalised to the average length,
# so that a long answer does not outweigh its neighbours.


MAX_TERMS = 24
"""Maximum number of terms to search for. The rarest are chosen."""

_NOTHING: Held = {}
K = TypeVar("K", bound=Hashable)


@frozen
class Bm25:
    """The BM25 parameters. ``k1`` controls term saturation, and ``b`` the length penalty."""

    k1: float = 0.8
    b: float = 0.3


@frozen
class Weights:
    """The weights of the query's terms, and the average length of a row.

    ``elsewhere`` is the total weight of the words that the search skips.
    """

    idf: tuple[float, ...] = ()
    average_length: float = 1.0
    bm25: Bm25 = Bm25()
    elsewhere: float = 0.0

    @property
    def total(self) -> float:
        return sum(self.idf) + self.elsewhere


def weigh(corpus: Corpus, bm25: Bm25 = Bm25()) -> Weights:
    """Return the weight of each term: its inverse document frequency, but at least zero."""
    idf = tuple(map(corpus.idf, corpus.frequencies))
    return Weights(idf, max(1.0, corpus.average_length), bm25)


def saturate(counts: Held, length: float, weights: Weights) -> float:
    """Return the BM25 score of a row with these term counts."""
    k1, b, idf = weights.bm25.k1, weights.bm25.b, weights.idf
    slope = k1 * (1 - b + b * length / weights.average_length)
    score = 0.0
    for at, count in counts.items():
        score += idf[at] * count * (k1 + 1) / (count + slope)
    return score


def normalise(matches: Mapping[K, Match], weights: Weights) -> dict[K, Held]:
    """Return the term counts of each row, divided by a factor for its length."""
    b, average = weights.bm25.b, weights.average_length
    normalised = {}
    for row, match in matches.items():
        if match.held:
            length = 1 - b + b * match.length / average
            normalised[row] = {at: count / length for at, count in match.held.items()}
    return normalised


def in_context(
    own: Mapping[tuple[int, int], Held],
    places: Iterable[tuple[int, int]],
    *,
    share: float,
    reach: int,
) -> dict[tuple[int, int], Held]:
    """Return the term counts of each turn, including those of its neighbours.

    A place is a session's row and a turn's position. The counts of neighbours up to ``reach`` turns
    away are multiplied by ``share``.
    """
    shared = {
        place: {at: share * count for at, count in counts.items()} for place, counts in own.items()
    }
    steps = [step for step in range(-reach, reach + 1) if step]
    totals = {}
    for place in places:
        session, seq = place
        total = dict(own.get(place, ()))
        for step in steps:
            for at, count in shared.get((session, seq + step), _NOTHING).items():
                total[at] = total[at] + count if at in total else count
        totals[place] = total
    return totals


@frozen
class QueryCoverage:
    """The words of a question that an answer should contain."""

    weights: tuple[float, ...] = ()
    total: float = 0.0
    unknown: float = 0.0
    """Weighted share of words that are not indexed."""

    unknown_name: bool = False
    """True if one of the unknown words is a name."""

    identifiers: float = 0.0
    """Weighted share of unknown identifiers."""

    by_share: bool = False
    """True if a synonym counts only partly."""

    all_words: frozenset[int] = frozenset()
    """Positions of all words, or none if one of the words is not indexed."""

    def is_whole(self, row: Held) -> bool:
        return bool(self.all_words) and self.all_words <= row.keys()

    def signals(self, *rows: Held, cosine: float | None, in_part: bool = False) -> Signals:
        """Return the signals of a hit that consists of one or more rows.

        ``in_part`` is True if an identifier from the question is part of a longer one in the rows.
        """
        whole, share = any(map(self.is_whole, rows)), self.share(*rows)
        unknown, unknown_name = self.unknown, self.unknown_name
        if in_part:
            share, unknown = share + self.identifiers, unknown - self.identifiers
            unknown_name = False
        return Signals(share, share, cosine, unknown, unknown_name, whole=whole)

    def share(self, *rows: Held) -> float:
        """Return the weighted share of the question's distinctive words that the rows contain."""
        if not self.total:
            return 0.5
        if not self.weights:
            return 0.0
        shares = self._shares(rows)
        return sum(self.weights[at] * share for at, share in shares.items()) / self.total

    def _shares(self, rows: Sequence[Held]) -> Held:
        if not self.by_share:
            return {at: 1.0 for row in rows for at in row}
        shares_by_term: dict[int, float] = {}
        for row in rows:
            for at, share in row.items():
                shares_by_term[at] = max(shares_by_term.get(at, 0.0), min(1.0, share))
        return shares_by_term


def choose(
    question: Question,
    terms: Sequence[Term],
    corpus: Corpus,
    *,
    bm25: Bm25 = Bm25(),
    postings: int | None = None,
) -> tuple[tuple[Term, ...], Weights, QueryCoverage]:
    """Choose the rarest indexed terms for a search.

    Together, they occur in at most ``postings`` rows, but the rarest is always chosen. Return them
    with their weights and coverage.
    """
    chosen: list[int] = []
    budget = math.inf if postings is None else postings
    ignored = _unused_spellings(
        question, {term.word: n for term, n in zip(terms, corpus.frequencies, strict=True)}
    )
    indexed = [
        at for at, count in enumerate(corpus.frequencies) if count and terms[at].word not in ignored
    ]
    for at in sorted(indexed, key=lambda at: corpus.frequencies[at])[:MAX_TERMS]:
        budget -= corpus.frequencies[at]
        if budget >= 0 or not chosen:
            chosen.append(at)
    chosen.sort()
    all_weights = weigh(corpus, bm25)
    idf = tuple(all_weights.idf[at] for at in chosen)
    total = sum(
        weight
        for term, weight in zip(terms, all_weights.idf, strict=True)
        if term.word not in ignored
    )
    weights = replace(
        all_weights,
        idf=idf,
        elsewhere=max(0.0, total - sum(idf)) if len(terms) <= MAX_TERMS else 0.0,
    )
    return tuple(terms[at] for at in chosen), weights, _coverage(question, terms, corpus, chosen)


def _coverage(
    question: Question, terms: Sequence[Term], corpus: Corpus, chosen: Sequence[int]
) -> QueryCoverage:
    frequencies = {term.word: count for term, count in zip(terms, corpus.frequencies, strict=True)}
    ignored = _unused_spellings(question, frequencies)
    distinctive = {
        at
        for at, term in enumerate(terms)
        if term.word not in ignored
        and term.word in question.telling
        # Unknown numbers do not count, because they vary between messages.
        and (
            frequencies[term.word]
            or 2 * sum(character.isdecimal() for character in term.word) < len(term.word)
        )
    }
    searched = {at for at, term in enumerate(terms) if term.word not in ignored}
    all_words = (
        frozenset(chosen.index(at) for at in searched & set(chosen))
        if all(corpus.frequencies[at] for at in searched)
        else frozenset[int]()
    )
    if not distinctive:
        unknown_words = QueryCoverage(
            total=1.0, unknown=1.0, identifiers=float(bool(question.names))
        )
        known_words = QueryCoverage(all_words=all_words)
        return unknown_words if question.telling or question.is_prompt else known_words
    weights = weigh(corpus).idf
    idf = (
        weights
        if not question.common_terms
        else (
            tuple(
                weight * COMMON_TERM_SHARE
                # Everyday words have less weight, unless they are indexed and the user asks about past work.
                if term.word in question.common_terms and not (question.is_about_us and count)
                else weight
                for term, weight, count in zip(terms, weights, corpus.frequencies, strict=True)
            )
        )
    )
    unknown = {at for at in distinctive if not corpus.frequencies[at]}
    pairs = {at for at in unknown if question.is_foreign or is_unspaced(terms[at].word)}
    missing = sum(idf[at] for at in unknown - pairs)
    weights = tuple(idf[at] if at in distinctive else 0.0 for at in chosen)
    if question.is_pasted:
        missing = min(missing, sum(weights) / 2)
    # At least the weight of an unindexed word, because one common word does not identify an answer.
    rarest = weigh(replace(corpus, frequencies=(0,))).total
    total = max(sum(weights) + missing + sum(idf[at] for at in pairs) / 2, rarest)
    # A long prompt is instead judged sentence by sentence.
    if question.is_prompt and not question.is_pasted:
        total = math.sqrt(total * rarest)
    identifier_words = {word for name in question.names for word in words(name)}
    return QueryCoverage(
        weights=weights,
        total=total,
        unknown=missing / total,
        unknown_name=not question.is_pasted
        and any(terms[at].word in question.proper for at in unknown),
        identifiers=min(
            missing, sum(idf[at] for at in unknown if terms[at].word in identifier_words)
        )
        / total,
        by_share=question.is_prompt,
        all_words=all_words,
    )


def _unused_spellings(question: Question, frequencies: Mapping[str, int]) -> set[str]:
    unused: set[str] = set()
    for joined, parts in question.spellings:
        unused |= set(parts) - {joined} if frequencies.get(joined) else {joined}
    return unused


# -- Recall of memories: lexical, vector, link and time lanes, then the score (docs/context.md) ----


CANDIDATES = 250
WORD_SHARE = 0.5
SIMILARITY_EXPONENT = 0.7
FULL_TEXT_BONUS = 0.15
HIGHEST = 1 + FULL_TEXT_BONUS
"""Maximum raw score. Scores are divided by it."""
NAME_BONUS = 0.1
MOST_INHERITED = 0.8
"""Maximum share of a hit's relevance that a linked memory gets."""

PREFERRED_KIND = 1.25
"""Score factor for memories of a preferred kind."""

UNSEEN_ROWS = 50
"""Number added to the corpus size, because word frequencies mean little in a small home."""
SMALL_HOME_TURNS = 500
"""Number of turns at which word frequencies have half of their full weight."""

LINK_SEEDS = 5
_MAX_PROMPT_ROWS = 50
"""Number of memories to load for a prompt, besides those that may have a high confidence."""

_KIND_COVERAGE = 0.3
"""Added to a memory's coverage if a prompt seems to ask for its kind."""
VERBATIM_FIT = 10.0
"""Fit of a memory that contains the question verbatim."""
FORMER_SHARE = 0.8
"""Weight of a superseded memory's words when they count for its replacement."""


@frozen
class ScoredMemory:
    """A memory with its score between 0 and 1, its confidence and its fit (see :class:`Sureness`).

    ``linked_from`` contains the ids of the hits that link to this memory.
    """

    memory: Memory
    score: float
    components: dict[str, float]
    signals: Signals
    confidence: float = 0.0
    linked_from: tuple[str, ...] = ()
    fit: float = 0.0


def rescore(item: ScoredMemory, score: float) -> ScoredMemory:
    """Return a hit with a new score, adjusting ``x_place`` so that the components explain it."""
    if not item.score:
        return replace(item, score=score)
    factor = item.components.get("x_place", 1.0) * score / item.score
    components = {name: value for name, value in item.components.items() if name != "x_place"}
    if round(factor, 4) != 1.0:
        components["x_place"] = round(factor, 4)
    return replace(item, score=score, components=components)


@frozen
class Ranking:
    """Options for the ranking of memories."""

    now: datetime
    around: datetime | None = None
    radius_days: float = 14.0
    boost: bool = True
    """True if age and use affect the score."""

    clamped: bool = True
    """False for agenr's original formula."""

    as_seen: datetime | None = None
    """Time at which ages are measured, by default ``now``."""

    word_share: float | None = None
    """Weight of words relative to meaning."""

    prefer_kinds: tuple[Kind, ...] = ()
    """Kinds of memories whose score is raised by a quarter."""

    window: Window | None = None
    """Period named in the question."""

    @property
    def today(self) -> date:
        """The day on which memories must be valid."""
        return day_of(self.now)


@frozen
class _LaneResults:
    matches: Mapping[int, Match] = field(default_factory=dict)
    coverage: QueryCoverage = QueryCoverage()
    empty: bool = False
    sureness: Sureness = field(default_factory=lambda: sureness_of("memories", None))
    cosines: Mapping[int, float] = field(default_factory=dict)
    leans: tuple[Kind, ...] = ()
    is_prompt: bool = False
    text: str = ""
    """The normalised question."""

    def signals(
        self, row: int, *, cosine: float | None, in_part: bool, is_leant_to: bool
    ) -> Signals:
        match = self.matches.get(row)
        signals = self.coverage.signals(match.held if match else {}, cosine=cosine, in_part=in_part)
        if not (self.empty or is_leant_to):
            return signals
        return replace(
            signals, empty=self.empty, coverage=signals.coverage + _KIND_COVERAGE * is_leant_to
        )

    def worth_reading(self, parts: Mapping[int, Mapping[str, float]]) -> list[int]:
        best_possible = {
            row: self._best_confidence(row, in_part="name" in part) for row, part in parts.items()
        }
        relevant = nlargest(_MAX_PROMPT_ROWS, parts, key=lambda row: sum(parts[row].values()))
        loaded = {*relevant, *nlargest(1, best_possible, key=lambda row: best_possible[row])}
        return [
            row for row in parts if row in loaded or best_possible[row] >= self.sureness.further
        ]

    def _best_confidence(self, row: int, *, in_part: bool) -> float:
        without_cosine = self.signals(
            row, cosine=None, in_part=in_part, is_leant_to=bool(self.leans)
        )
        cosine = self.cosines.get(row)
        if cosine is None:
            return self.sureness.confidence(without_cosine)
        confidence = self.sureness.confidence(replace(without_cosine, cosine=cosine))
        return (
            confidence
            if self.sureness.scale.reads_unspaced
            else max(confidence, self.sureness.confidence(without_cosine))
        )


class _Synonyms(NamedTuple):
    at: int
    term: Term
    form: str
    share: float
    rows: int


def sureness_kind(question: Question) -> str:
    """Return the name of the confidence model for a question or prompt."""
    return "prompts" if question.is_prompt else "memories"


@frozen
class MemoryRecall:
    """A search engine that ranks memories for a question."""

    search: WordSearch
    memories: Memories
    selection: Selection
    usage: UsageLog
    background: WordSearch
    """The search of turns, which supplies word frequencies."""

    def rank(
        self,
        question: Question,
        criteria: Filter,
        ranking: Ranking,
        *,
        vector: QueryVector | None,
        lexical: bool = True,
    ) -> list[ScoredMemory]:
        """Return the memories that any lane finds, the best first."""
        if question.is_open:
            return self._by_time(
                self.selection.browse_memories(
                    within(criteria, ranking.window), limit=CANDIDATES, today=ranking.today
                ),
                ranking,
            )
        where = memory_clause(criteria, ranking.today)
        admitted = self.selection.admitted_memories(criteria, today=ranking.today)
        former = (
            {}
            if criteria.as_of
            else {old: row for old, row in self.memories.former().items() if row in admitted}
        )
        matches, weights, coverage = (
            self._lexical(question, where, former) if lexical else ({}, Weights(), QueryCoverage())
        )
        by_name = (
            {row for row, _, _ in self.search.match_parts(question.names, where, CANDIDATES)}
            if lexical
            else set[int]()
        )
        cosines = self._cosines(vector, admitted, former)
        words = {row: saturate(match.held, match.length, weights) for row, match in matches.items()}
        nearest = nlargest(CANDIDATES, cosines, key=lambda row: (cosines[row], -row))
        candidates = {*nearest, *matches, *by_name}
        cosine_scores = {row: share for row, share in min_max(cosines).items() if row in candidates}
        word_share = WORD_SHARE if ranking.word_share is None else ranking.word_share
        parts = blend(
            {
                "lexical": (word_share, min_max(words, floor=0.0)),
                "vector": (1 - word_share, cosine_scores),
            }
        )
        for row in by_name:
            parts.setdefault(row, {})["name"] = NAME_BONUS
        kind = sureness_kind(question)
        sureness = vector.sureness(kind) if vector else sureness_of(kind, None)
        text = text_normalise(question.text)
        lanes = _LaneResults(
            matches,
            coverage,
            question.says_nothing,
            sureness,
            cosines,
            question.leans,
            question.is_prompt,
            text,
        )
        memories = self.memories.by_rows(
            lanes.worth_reading(parts) if question.is_prompt else list(parts)
        )
        linked = self._follow_links(parts, memories, admitted, criteria.as_of or ranking.today)
        return self._score_all(parts, memories, lanes, ranking, linked)

    def browse(self, rows: list[int], ranking: Ranking) -> list[ScoredMemory]:
        """Rank memories by importance and age when there is no question."""
        now = ranking.as_seen or ranking.now
        browsed = []
        for memory in self.memories.by_rows(rows).values():
            worth = importance_score(memory.importance)
            age = age_factor(memory, now, around=ranking.around, radius_days=ranking.radius_days)
            components = {"relevance": round(worth, 4), "x_age": round(age, 4)}
            browsed.append(ScoredMemory(memory, worth * age, components, Signals(0.0, 0.0, None)))
        return sorted(browsed, key=lambda item: (-item.score, item.memory.id))

    def _by_time(self, rows: list[int], ranking: Ranking) -> list[ScoredMemory]:
        parts = {row: {"time": 1.0} for row in rows}
        return self._score_all(parts, self.memories.by_rows(rows), _LaneResults(), ranking, {})

    def _lexical(
        self, question: Question, where: Clause, former: Mapping[int, int]
    ) -> tuple[dict[int, Match], Weights, QueryCoverage]:
        terms = self.search.terms(question.words)
        if not terms:
            return {}, Weights(), QueryCoverage()
        corpus = self.search.corpus(terms)
        synonyms = self._synonyms(question, terms)
        turns = self.background.corpus(terms)
        # In a small home, the words of a memory are frequent only because its own turns contain them.
        share = turns.rows / (turns.rows + SMALL_HOME_TURNS)
        combined = [
            frequency + round(share * in_turns)
            for frequency, in_turns in zip(corpus.frequencies, turns.frequencies, strict=True)
        ]
        for synonym in synonyms:
            if not corpus.frequencies[synonym.at]:
                combined[synonym.at] += synonym.rows
        rows = corpus.rows + round(share * turns.rows) + UNSEEN_ROWS
        corpus = replace(corpus, rows=rows, frequencies=tuple(combined))
        terms, weights, coverage = choose(question, terms, corpus)
        matches = {match.row: match for match in self.search.match(terms, where, CANDIDATES)}
        for old in self.search.match(terms, FORMER, CANDIDATES) if former else ():
            if old.row in former:
                row = former[old.row]
                own = matches.get(row, old._replace(row=row, held={}))
                counts = dict(own.held)
                for at, count in old.held.items():
                    counts[at] = max(counts.get(at, 0.0), FORMER_SHARE * count)
                matches[row] = own._replace(held=counts)
        places = {term: at for at, term in enumerate(terms)}
        usable = [synonym for synonym in synonyms if synonym.term in places]
        for match in self.search.match(
            [Term(synonym.form, "") for synonym in usable], where, CANDIDATES
        ):
            counts = dict(matches[match.row].held) if match.row in matches else {}
            for at in match.held:
                place = places[usable[at].term]
                counts[place] = max(counts.get(place, 0.0), usable[at].share)
            matches[match.row] = matches.get(match.row, match)._replace(held=counts)
        return matches, weights, coverage

    def _synonyms(self, question: Question, terms: Sequence[Term]) -> list[_Synonyms]:
        if not question.synonyms:
            return []
        by_stem = {term.stem: at for at, term in enumerate(terms)}
        phrases = dict.fromkeys(phrase for forms in question.synonyms.values() for phrase in forms)
        rows = self.search.rows_with(list(phrases))
        synonyms = []
        for word, forms in question.synonyms.items():
            at = next(
                (by_stem[term.stem] for term in self.search.terms([word]) if term.stem in by_stem),
                None,
            )
            if at is not None:
                synonyms += [
                    _Synonyms(at, terms[at], form, share, rows[form])
                    for form, share in forms.items()
                    if form in rows
                ]
        return synonyms

    def _cosines(
        self, vector: QueryVector | None, admitted: set[int], former: Mapping[int, int]
    ) -> dict[int, float]:
        if vector is None:
            return {}
        all_cosines = vector.vectors.memory_cosines(vector.value)
        cosines = {row: cosine for row, cosine in all_cosines.items() if row in admitted}
        for old, row in former.items():
            # If the memory has no vector, only its words count.
            if row in cosines and old in all_cosines:
                cosines[row] = max(cosines[row], FORMER_SHARE * all_cosines[old])
        return cosines

    def _follow_links(
        self,
        parts: dict[int, dict[str, float]],
        memories: dict[int, Memory],
        admitted: set[int],
        day: date,
    ) -> dict[int, tuple[str, ...]]:
        best = sorted(memories, key=lambda row: -sum(parts[row].values()))[:LINK_SEEDS]
        relevance = {memories[row].id: sum(parts[row].values()) for row in best}
        reached: dict[str, float] = {}
        sources: dict[str, list[str]] = {}
        for source, target, strength in self.memories.neighbours(list(relevance), day):
            reached[target] = max(
                reached.get(target, 0.0), min(MOST_INHERITED, strength) * relevance[source]
            )
            sources.setdefault(target, []).append(source)
        linked = {}
        for row, memory in self.memories.rows_of(list(reached)).items():
            if row in admitted and reached[memory.id] > sum(parts.get(row, {}).values()):
                parts[row] = {
                    **parts.get(row, {}),
                    "link": reached[memory.id] - sum(parts.get(row, {}).values()),
                }
                memories[row] = memory
                linked[row] = tuple(sources[memory.id])
        return linked

    def _score_all(
        self,
        parts: Mapping[int, dict[str, float]],
        memories: Mapping[int, Memory],
        lanes: _LaneResults,
        ranking: Ranking,
        linked: Mapping[int, tuple[str, ...]],
    ) -> list[ScoredMemory]:
        usage = self.usage.of([memory.id for memory in memories.values()])
        scored = []
        for row, memory in memories.items():
            cosine = (
                None
                if lanes.is_prompt
                and not lanes.sureness.scale.reads_unspaced
                and is_unspaced(memory.content)
                else lanes.cosines.get(row)
            )
            signals = lanes.signals(
                row,
                cosine=cosine,
                in_part="name" in parts[row],
                is_leant_to=memory.kind in lanes.leans,
            )
            memory_usage = usage[memory.id]
            score, components = score_of(
                memory,
                parts[row],
                memory_usage,
                ranking,
                found_in_text=row in lanes.matches,
                cosine=lanes.cosines.get(row),
            )
            if ranking.window:
                factor = window_factor(memory, ranking.window)
                score, components["x_time"] = score * factor, round(factor, 4)
            is_verbatim = (
                len(memory.content) < 2 * len(lanes.text) + 2
                and text_normalise(memory.content) == lanes.text
            )
            confidence = 1.0 if is_verbatim else lanes.sureness.confidence(signals)
            fit = VERBATIM_FIT if is_verbatim else lanes.sureness.fit(signals)
            links = linked.get(row, ())
            scored.append(ScoredMemory(memory, score, components, signals, confidence, links, fit))
        return sorted(scored, key=lambda item: (-item.score, item.memory.id))


def within(criteria: Filter, window: Window | None) -> Filter:
    """Return a filter restricted to a period."""
    return replace(criteria, since=window.since, until=window.until) if window else criteria


def score_of(
    memory: Memory,
    parts: Mapping[str, float],
    usage: Usage,
    ranking: Ranking,
    *,
    found_in_text: bool,
    cosine: float | None = None,
) -> tuple[float, dict[str, float]]:
    """Return a memory's score and the components that explain it.

    The score is (sim^0.7 · clamp(factors) + 0.15 · sim) / 1.15, without the second term if the
    question's words do not match. Without ``ranking.boost``, the score is the relevance alone.
    """
    similarity = min(1.0, sum(parts.values()))
    components = {name: round(value, 4) for name, value in parts.items() if value}
    if not ranking.boost:
        if not ranking.clamped and cosine is not None:
            similarity = max(0.0, cosine)
        return similarity, components | {"relevance": round(similarity, 4)}
    factor_values = factors(
        memory,
        usage,
        ranking.now,
        around=ranking.around,
        radius_days=ranking.radius_days,
        as_seen=ranking.as_seen,
    )
    if memory.kind in ranking.prefer_kinds:
        factor_values["kind"] = PREFERRED_KIND
    if not ranking.clamped:
        factor_values = {
            name: value for name, value in factor_values.items() if name not in ADDED_FACTORS
        }
    bonus = FULL_TEXT_BONUS * (similarity if ranking.clamped else 1.0) if found_in_text else 0.0
    worth = product(factor_values) if ranking.clamped else math.prod(factor_values.values())
    score = min(
        1.0,
        (similarity**SIMILARITY_EXPONENT * worth + bonus) / (HIGHEST if ranking.clamped else 1.0),
    )
    components["relevance"] = round(similarity, 4)
    displayed = dict(factor_values)
    if similarity > 0:
        curve = similarity ** (SIMILARITY_EXPONENT - 1)
        displayed |= {
            "curve": curve,
            "clamp": worth / math.prod(factor_values.values()),
            "words": score / (similarity * curve * worth),
        }
    components |= {
        f"x_{name}": round(value, 4) for name, value in displayed.items() if value != 1.0
    }
    components["worth"] = round(worth, 4)
    if bonus:
        components["full_text"] = round(bonus, 4)
    return score, components


# -- Opening of lanes ------------------------------------------------------------------------------


@frozen
class Lanes:
    """The lanes of a query, with a report on each. Without ``vector``, only words are searched."""

    vector: QueryVector | None
    lexical: bool
    reports: tuple[Lane, ...]


def open_lanes(home: Home, query: RecallQuery, question: Question) -> Lanes:
    """Return a query's lanes, with the question's vector or the reason for its absence."""
    lexical = query.mode in (Mode.HYBRID, Mode.LEXICAL)
    reports = [Lane("lexical", LaneState.RAN if lexical else LaneState.SKIPPED)]
    vector = None
    if query.mode in (Mode.LEXICAL, Mode.BROWSE):
        reports.append(Lane("vector", LaneState.SKIPPED))
    elif not home.settings.embeds:
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
            vector, lane = _embed_question(home, question, query.topic)
            reports.append(lane)
        except EmbedderUnavailableError as error:
            reports.append(Lane("vector", LaneState.UNAVAILABLE, note=error.message))
    return Lanes(vector, lexical, tuple(reports))


def _embed_question(home: Home, question: Question, topic: str) -> tuple[QueryVector | None, Lane]:
    vectors = home.vectors
    model = vectors.model()
    if model is None:
        return None, Lane(
            "vector", LaneState.PARTIAL, note="no vectors yet: nacre ingest computes them"
        )
    embedder = spending.embedder_in_use(home)
    if embedder.name != model:
        return None, Lane("vector", LaneState.UNAVAILABLE, note=f"the vectors were made by {model}")
    text = f"{topic.strip()}: {question.semantic}" if topic.strip() else question.semantic
    if isinstance(embedder, RemoteEmbedder):
        embedder = embedder.within(_QUERY_SECONDS, question=True)
        text = home.redactor.clean(text)  # the text can leave this machine
    embedded = embedder.embed([text])[0]
    if vectors.dimensions() not in (0, len(embedded)):
        problem = f"{model} now returns {len(embedded)} dimensions, but the index has {vectors.dimensions()}"
        return None, Lane("vector", LaneState.UNAVAILABLE, note=problem)
    are_missing = vectors.are_missing()
    goes_on = (
        "nacre writer embedding shows why"
        if isinstance(embedder, RemoteEmbedder)
        else "nacre ingest continues"
    )
    note = f"some texts have no vectors yet: {goes_on}" if are_missing else None
    state = LaneState.PARTIAL if are_missing else LaneState.RAN
    return QueryVector(embedded, vectors.of(model)), Lane("vector", state, note=note)
