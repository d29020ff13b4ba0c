"""Ranking of session turns by words, by meaning, and by the turns around them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from heapq import nlargest

from nacre.base.frozen import frozen
from nacre.base.ids import from_ms
from nacre.base.text import words as words_of
from nacre.recall.lanes import (
    QueryCoverage,
    QueryVector,
    Weights,
    choose,
    in_context,
    normalise,
    saturate,
)
from nacre.recall.question import Question, only_asks
from nacre.recall.ranking import DEFAULT, Recipe
from nacre.recall.scoring import (
    BORDER,
    Signals,
    blend,
    gaussian,
    min_max,
    sureness_of,
    window_closeness,
)
from nacre.store.schema import turn_clause
from nacre.store.search import Admission, Held, Match, Selection, Term, WordSearch
from nacre.store.sessions import Sessions
from nacre.values.recall import Filter

_CHECKED_TURNS = 40
"""Number of best turns that are checked for only asking a question."""

Place = tuple[int, int]
"""A session's row in the database, and the position of a turn in the session."""


@frozen
class ScoredTurn:
    """A turn with its score (0 to about 1.5), its confidence and its fit.

    :class:`nacre.recall.scoring.Sureness` explains confidence and fit.
    """

    row: int
    place: Place
    score: float
    components: dict[str, float]
    signals: Signals
    confidence: float
    fit: float


@frozen
class LexicalHits:
    """The result of a search by words."""

    matches: dict[Place, Match] = field(default_factory=dict)
    """The best turns with words from the question."""

    terms: tuple[Term, ...] = ()
    weights: Weights = Weights()
    coverage: QueryCoverage = QueryCoverage()
    named: tuple[Place, ...] = ()
    """Turns that contain part of an identifier."""

    around: dict[Place, Match] = field(default_factory=dict)
    """Turns close to the best turns."""

    @property
    def all_matches(self) -> dict[Place, Match]:
        return {**self.around, **self.matches}


@frozen
class TurnRecall:
    """A search engine that ranks turns for a question."""

    search: WordSearch
    sessions: Sessions
    selection: Selection
    recipe: Recipe = DEFAULT

    def rank(
        self,
        question: Question,
        criteria: Filter,
        *,
        vector: QueryVector | None,
        words: LexicalHits | None = None,
        lexical: bool = True,
        around: datetime | None = None,
        radius_days: float = 14.0,
        limit: int = 100,
    ) -> list[ScoredTurn]:
        """Return the best turns in order, by words alone without ``vector``.

        ``words`` is the result of :meth:`search_words`, if it is already known.
        """
        if words is None:
            words = self.search_words(question, criteria) if lexical else LexicalHits()
        admitted = self.selection.admitted_turns(criteria)
        nearest = (
            vector.vectors.nearest_turns(
                vector.value, limit=self.recipe.candidates, admitted=admitted
            )
            if vector
            else ()
        )
        near = {turn.row: turn.cosine for turn in nearest}
        pool = self._pool(words, near, admitted)
        cosines = self._cosines(vector, pool, near)
        parts = blend({**self._by_words(words, pool), **self._by_meaning(cosines, pool)})
        if cosines:
            for place in pool.keys() & words.matches.keys():
                own = words.coverage.share(words.matches[place].held)
                parts[place]["own_words"] = self.recipe.own_words * own
        for place, bonus in self._bonuses(question, words, pool, around, radius_days).items():
            parts.setdefault(place, {}).update(bonus)
        scores = {place: sum(values.values()) for place, values in parts.items()}
        best = nlargest(
            max(limit, _CHECKED_TURNS),
            scores,
            key=lambda place: (scores[place], -place[0], -place[1]),
        )
        best = self._answers_first(best, pool, parts, scores)[:limit]
        sureness = vector.sureness("turns") if vector else sureness_of("turns", None)
        hits, matches = [], words.all_matches
        for place in best:
            if scores[place] <= 0:
                break
            signals = _signals(place, question, words, matches, cosines.get(place))
            components = {name: round(value, 4) for name, value in parts[place].items() if value}
            confidence, fit = sureness.confidence(signals), sureness.fit(signals)
            hits.append(
                ScoredTurn(pool[place], place, scores[place], components, signals, confidence, fit)
            )
        return hits

    def time_of(self, event: Question, criteria: Filter) -> datetime | None:
        """Return the time of the turn that best matches an event by its words, if any."""
        ranked = self.rank(event, criteria, vector=None, limit=10)
        if not ranked or ranked[0].confidence < BORDER:
            return None
        return self.sessions.by_rows([ranked[0].row])[ranked[0].row].turn.time

    def _answers_first(
        self,
        best: list[Place],
        pool: Mapping[Place, int],
        parts: dict[Place, dict[str, float]],
        scores: dict[Place, float],
    ) -> list[Place]:
        if not self.recipe.asks:
            return best
        rows = {pool[place]: place for place in best[:_CHECKED_TURNS]}
        for row, text in self.sessions.database.all("find_texts", rows=[*rows]):
            if only_asks(text):
                parts[rows[row]]["asks"] = -self.recipe.asks
                scores[rows[row]] -= self.recipe.asks
        return sorted(best, key=lambda place: (-scores[place], place))

    # -- Lanes -----------------------------------------------------------------------------------------

    def search_words(self, question: Question, criteria: Filter) -> LexicalHits:
        terms = self.search.terms(question.words)
        if not terms:
            return LexicalHits()
        corpus = self.search.corpus(terms)
        recipe = self.recipe
        terms, weights, coverage = choose(
            question, terms, corpus, bm25=recipe.bm25, postings=recipe.postings
        )
        matching = self.search.match(terms, turn_clause(criteria), recipe.window)
        matches = {(match.session, match.seq): match for match in matching}
        return LexicalHits(
            matches,
            terms,
            weights,
            coverage,
            tuple(self._partial_matches(question, criteria, terms, matches)),
        )

    def _partial_matches(
        self,
        question: Question,
        criteria: Filter,
        terms: Sequence[Term],
        matches: Mapping[Place, Match],
    ) -> Iterable[Place]:
        """Find identifiers inside longer ones, which the index of whole words misses."""
        places = [
            (session, seq)
            for _, session, seq in self.search.match_parts(
                question.names, turn_clause(criteria), self.recipe.parts
            )
        ]
        if len(places) >= self.recipe.parts:
            return  # a frequent identifier is not distinctive
        stems = [term.stem for term in terms]
        names = [
            [term.stem for term in self.search.terms(words_of(name))] for name in question.names
        ]
        names_at = [
            [stems.index(stem) for stem in name] for name in names if set(name) <= set(stems)
        ]
        for place in places:
            counts = matches[place].held if place in matches else {}
            if not counts or not any(counts.keys() >= set(name) for name in names_at):
                yield place

    def _pool(
        self, words: LexicalHits, near: Mapping[int, float], admitted: Admission | None
    ) -> dict[Place, int]:
        places = [*list(words.matches)[: self.recipe.candidates], *words.named]
        places += self.sessions.places(list(near)).values()
        reach = self.recipe.reach
        extended = {
            (session, at)
            for session, seq in places
            for at in range(max(0, seq - reach), seq + reach + 1)
        }
        pool = {place: words.matches[place].row for place in extended if place in words.matches}
        neighbours = self.search.at(sorted(extended - pool.keys()), words.terms)
        if admitted is not None:
            admitted_rows = admitted.among([match.row for match in neighbours])
            neighbours = [match for match in neighbours if match.row in admitted_rows]
        for match in neighbours:
            place = match.session, match.seq
            words.around[place], pool[place] = match, match.row
        return pool

    def _cosines(
        self, vector: QueryVector | None, pool: Mapping[Place, int], near: Mapping[int, float]
    ) -> dict[Place, float]:
        if vector is None:
            return {}
        missing = [row for row in pool.values() if row not in near]
        by_row = {**vector.vectors.cosines_of_turns(vector.value, missing), **near}
        return {place: by_row[row] for place, row in pool.items() if row in by_row}

    # -- Scores ----------------------------------------------------------------------------------------

    def _by_words(
        self, words: LexicalHits, pool: Iterable[Place]
    ) -> dict[str, tuple[float, dict[Place, float]]]:
        if not words.matches:
            return {}
        counts_in_context = in_context(
            normalise(words.all_matches, words.weights),
            pool,
            share=self.recipe.neighbours,
            reach=self.recipe.reach,
        )
        weights = words.weights
        # The counts are already adjusted for the length.
        scores = {
            place: saturate(counts, weights.average_length, weights)
            for place, counts in counts_in_context.items()
        }
        best = max(scores.values(), default=0.0)
        ideal = weights.total * (weights.bm25.k1 + 1)
        trust = min(1.0, best / ideal) ** self.recipe.doubt if best else 0.0
        turns = min_max(scores, floor=0.0)
        counts: dict[int, Held] = {}
        for (session, _), match in words.all_matches.items():
            # A term counts at most once per turn.
            totals = counts.setdefault(session, {})
            for at, count in match.held.items():
                totals[at] = totals.get(at, 0.0) + (count if count < 1.0 else 1.0)
        sessions = min_max(
            {
                session: saturate(totals, weights.average_length, weights)
                for session, totals in counts.items()
            },
            floor=0.0,
        )
        return {
            "lexical": (
                self.recipe.lexical,
                {place: trust * score for place, score in turns.items()},
            ),
            "session_words": (
                self.recipe.session,
                {place: trust * sessions.get(place[0], 0.0) for place in pool},
            ),
        }

    def _by_meaning(
        self, cosines: Mapping[Place, float], pool: Iterable[Place]
    ) -> dict[str, tuple[float, dict[Place, float]]]:
        if not cosines:
            return {}
        by_session: dict[int, list[float]] = defaultdict(list)
        for (session, _), cosine in cosines.items():
            by_session[session].append(cosine)
        best = {
            session: nlargest(self.recipe.passages, values)
            for session, values in by_session.items()
        }
        sessions = min_max({session: sum(values) / len(values) for session, values in best.items()})
        steps = [
            step for distance in range(1, self.recipe.reach + 1) for step in (-distance, distance)
        ]
        smoothed = {}
        for (session, seq), own in cosines.items():
            total = weight = 0.0
            for step in steps:
                neighbour = cosines.get((session, seq + step))
                if neighbour is not None:
                    total += neighbour / abs(step)
                    weight += 1 / abs(step)
            smoothed[session, seq] = own + (
                self.recipe.smoothing * total / weight if weight else 0.0
            )
        return {
            "vector": (self.recipe.vector, min_max(smoothed)),
            "session_meaning": (
                self.recipe.session,
                {place: sessions.get(place[0], 0.0) for place in pool},
            ),
        }

    def _bonuses(
        self,
        question: Question,
        words: LexicalHits,
        pool: Mapping[Place, int],
        around: datetime | None,
        radius_days: float,
    ) -> dict[Place, dict[str, float]]:
        bonuses: dict[Place, dict[str, float]] = defaultdict(dict)
        for place in words.named:
            if place in pool:
                bonuses[place]["name"] = self.recipe.name
        for place in self._of_projects(question.projects, pool):
            bonuses[place]["project"] = self.recipe.presence
        rows = self.sessions.database.all("find_narration", rows=pool.values())
        narration = {row for (row,) in rows}
        for place, row in pool.items():
            if row in narration:
                bonuses[place]["narration"] = -self.recipe.narration
        if not question.authors and around is None and question.window is None:
            return bonuses
        rows = self.sessions.database.all("find_bylines", rows=pool.values())
        by_row = {row: (author, from_ms(time)) for row, time, author in rows}
        bylines = {place: by_row[row] for place, row in pool.items() if row in by_row}
        if question.authors:
            self._add_people(bonuses, question.authors, bylines)
        for place, (_, time) in bylines.items():
            closeness = _closeness(time, question, around, radius_days)
            if closeness > 0.01:
                bonuses[place]["time"] = self.recipe.time * closeness
        return bonuses

    def _of_projects(self, projects: Sequence[str], pool: Iterable[Place]) -> Iterable[Place]:
        if not projects:
            return ()
        sessions = {session for session, _ in pool}
        rows = self.sessions.database.all("find_sessions_of", rows=sessions)
        sessions_of_projects = {row for row, _, _, project, *_ in rows if project in projects}
        return [place for place in pool if place[0] in sessions_of_projects]

    def _add_people(
        self,
        bonuses: dict[Place, dict[str, float]],
        people: Sequence[str],
        bylines: Mapping[Place, tuple[str | None, datetime | None]],
    ) -> None:
        present: dict[int, set[str]] = defaultdict(set)
        for (session, _), (author, _) in bylines.items():
            if author and author in people:
                present[session].add(author)
        for place, (author, _) in bylines.items():
            if present[place[0]]:
                bonuses[place]["presence"] = (
                    self.recipe.presence * len(present[place[0]]) / len(people)
                )
            if len(people) == 1 and author == people[0]:
                bonuses[place]["author"] = self.recipe.author


def _signals(
    place: Place,
    question: Question,
    words: LexicalHits,
    matches: Mapping[Place, Match],
    cosine: float | None,
) -> Signals:
    session, seq = place
    near = (matches.get((session, seq + step)) for step in (-1, 0, 1))
    counts = [match.held for match in near if match]
    in_part = place in words.named
    signals = words.coverage.signals(*counts, cosine=cosine, in_part=in_part)
    match = matches.get(place)
    alone = words.coverage.signals(match.held if match else {}, cosine=cosine, in_part=in_part)
    whole = match is not None and alone.whole
    return replace(signals, own=alone.own, empty=question.says_nothing, whole=whole)


def _closeness(
    time: datetime | None, question: Question, around: datetime | None, radius_days: float
) -> float:
    window = question.window
    if time is None:
        return 0.0
    if around is not None:
        return gaussian(abs((time - around).total_seconds()) / 86_400, radius_days)
    return window_closeness(time, window, radius_days) if window else 0.0
