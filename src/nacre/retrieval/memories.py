"""Recall over memories: lexical, vector, link and time lanes, then the memory-aware score (docs/context.md)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from heapq import nlargest
from typing import NamedTuple

from nacre.platform.days import day_of
from nacre.retrieval.confidence import Signals, Sureness, sureness_of
from nacre.retrieval.fusion import blend, min_max
from nacre.retrieval.lanes import QueryVector
from nacre.retrieval.lexical import QueryCoverage, Weights, choose, saturate
from nacre.retrieval.question.question import Question
from nacre.retrieval.scoring import (
    ADDED_FACTORS,
    NEAR_WINDOW,
    age_factor,
    factors,
    importance_score,
    product,
    window_factor,
)
from nacre.storage.filters import FORMER, Clause, memory_clause
from nacre.storage.memories import Memories
from nacre.storage.search.full_text import Match, Term, WordSearch
from nacre.storage.search.selection import Selection
from nacre.storage.usage import UsageLog
from nacre.text.passages import is_unspaced, normalise
from nacre.text.time_expressions import Window
from nacre.values.memory import Kind, Memory
from nacre.values.recall import Filter
from nacre.values.review import Usage

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
        return self.is_prompt and not self.sureness.scale.reads_unspaced and is_unspaced(memory.content)

    def signals(self, row: int, *, cosine: float | None, in_part: bool, is_leant_to: bool) -> Signals:
        """What speaks for a row."""
        match = self.matches.get(row)
        signals = self.coverage.signals(match.held if match else {}, cosine=cosine, in_part=in_part)
        if not (self.empty or is_leant_to):
            return signals
        return replace(signals, empty=self.empty, coverage=signals.coverage + _LEANING * is_leant_to)

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
        return sure if self.sureness.scale.reads_unspaced else max(sure, self.sureness.confidence(unseen))


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

    def __init__(self, search: WordSearch, memories: Memories, selection: Selection, usage: UsageLog) -> None:
        self._search = search
        self._memories = memories
        self._selection = selection
        self._usage = usage

    def rank(
        self, question: Question, wanted: Filter, ranking: Ranking, *, vector: QueryVector | None, lexical: bool = True
    ) -> list[ScoredMemory]:
        """All memories that any lane found, the best first."""
        if question.is_open:
            inside = self._of_a_time(self._rows_of(within(wanted, ranking.window), ranking), ranking)
            if inside or ranking.window is None or question.is_prompt:
                return inside
            beside = self._of_a_time(self._rows_of(wanted, ranking), ranking)
            return [item for item in beside if item.components["x_time"] >= NEAR_WINDOW]
        where = memory_clause(wanted, ranking.today)
        admitted = self._selection.admitted_memories(wanted, today=ranking.today)
        former = {} if wanted.as_of else {old: row for old, row in self._memories.former().items() if row in admitted}
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
        text = normalise(question.text)
        lanes = _Found(
            matches, coverage, question.says_nothing, sureness, cosines, question.leans, question.is_prompt, text
        )
        found = self._memories.by_rows(lanes.worth_reading(parts) if question.is_prompt else list(parts))
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
            corpus, rows=corpus.rows + UNSEEN_ROWS, frequencies=_with_synonyms(corpus.frequencies, synonyms)
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
            at = next((by_stem[term.stem] for term in self._search.terms([word]) if term.stem in by_stem), None)
            if at is not None:
                found += [
                    _Synonyms(at, terms[at], form, share, rows[form]) for form, share in forms.items() if form in rows
                ]
        return found

    def _match_synonyms(
        self, synonyms: Sequence[_Synonyms], places: Mapping[Term, int], where: Clause, matches: dict[int, Match]
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

    def _cosines(self, vector: QueryVector | None, admitted: set[int], former: Mapping[int, int]) -> dict[int, float]:
        if vector is None:
            return {}
        every = vector.vectors.memory_cosines(vector.value)
        found = {row: cosine for row, cosine in every.items() if row in admitted}
        for old, row in former.items():
            if row in found and old in every:  # without a vector of its own, a memory is judged by its words
                found[row] = max(found[row], FORMER_SHARE * every[old])
        return found

    def _follow_links(
        self, parts: dict[int, dict[str, float]], found: dict[int, Memory], admitted: set[int], day: date
    ) -> dict[int, tuple[str, ...]]:
        """The memories one hop from the best five inherit a share of their relevance: the strength of the link.

        Row → where from.
        """
        best = sorted(found, key=lambda row: -sum(parts[row].values()))[:LINK_SEEDS]
        relevance = {found[row].id: sum(parts[row].values()) for row in best}
        reached: dict[str, float] = {}
        sources: dict[str, list[str]] = {}
        for source, target, strength in self._memories.neighbours(list(relevance), day):
            reached[target] = max(reached.get(target, 0.0), min(MOST_INHERITED, strength) * relevance[source])
            sources.setdefault(target, []).append(source)
        linked = {}
        for row, memory in self._memories.rows_of(list(reached)).items():
            if row in admitted and reached[memory.id] > sum(parts.get(row, {}).values()):
                parts[row] = {**parts.get(row, {}), "link": reached[memory.id] - sum(parts.get(row, {}).values())}
                found[row] = memory
                linked[row] = tuple(sources[memory.id])
        return linked

    def _scored(
        self, parts: Mapping[int, dict[str, float]], memories: Mapping[int, Memory], found: _Found, ranking: Ranking,
        linked: Mapping[int, tuple[str, ...]],
    ) -> list[ScoredMemory]:  # fmt: skip
        usage = self._usage.of([memory.id for memory in memories.values()])
        scored = []
        for row, memory in memories.items():
            cosine = None if found.passes_over(memory) else found.cosines.get(row)
            signals = found.signals(
                row, cosine=cosine, in_part="name" in parts[row], is_leant_to=memory.kind in found.leans
            )
            used = usage.get(memory.id, Usage())
            score, components = score_of(
                memory, parts[row], used, ranking, found_in_text=row in found.matches, cosine=found.cosines.get(row)
            )
            if ranking.window:
                factor = window_factor(memory, ranking.window)
                score, components["x_time"] = score * factor, round(factor, 4)
            is_verbatim = len(memory.content) < 2 * len(found.text) + 2 and normalise(memory.content) == found.text
            sure = 1.0 if is_verbatim else found.sureness.confidence(signals)
            scored.append(ScoredMemory(memory, score, components, signals, sure, linked.get(row, ())))
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
    memory: Memory, parts: Mapping[str, float], usage: Usage, ranking: Ranking, *, found_in_text: bool,
    cosine: float | None = None,
) -> tuple[float, dict[str, float]]:  # fmt: skip
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
        memory, usage, ranking.now, around=ranking.around, radius_days=ranking.radius_days, as_seen=ranking.as_seen
    )
    if memory.kind in ranking.prefer_kinds:
        weighed["kind"] = PREFERRED_KIND
    if not ranking.clamped:
        weighed = {name: value for name, value in weighed.items() if name not in ADDED_FACTORS}
    bonus = FULL_TEXT_BONUS * (similarity if ranking.clamped else 1.0) if found_in_text else 0.0
    worth = product(weighed) if ranking.clamped else math.prod(weighed.values())
    score = min(1.0, (similarity**SIMILARITY_EXPONENT * worth + bonus) / (HIGHEST if ranking.clamped else 1.0))
    components["relevance"] = round(similarity, 4)
    told = weighed | _rest_of_product(similarity, weighed, worth, score)
    components |= {f"x_{name}": round(value, 4) for name, value in told.items() if value != 1.0}
    components["worth"] = round(worth, 4)
    if bonus:
        components["full_text"] = round(bonus, 4)
    return score, components


def _rest_of_product(similarity: float, weighed: Mapping[str, float], worth: float, score: float) -> dict[str, float]:
    """What makes a product of a score beside its factors: the curve, the clamp, and the words' bonus with its scale."""
    if similarity <= 0:
        return {}
    curve = similarity ** (SIMILARITY_EXPONENT - 1)
    return {
        "curve": curve, "clamp": worth / math.prod(weighed.values()), "words": score / (similarity * curve * worth),
    }  # fmt: skip


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
    return own._replace(held={at: max(own.held.get(at, 0.0), shared.get(at, 0.0)) for at in own.held | shared})
