"""Ranking of memories and turns, including joint use, diversity and order."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TypeVar

from nacre.base.frozen import frozen
from nacre.base.text import count, excerpt, one_line, shorten, words
from nacre.base.times import Window, day_interval
from nacre.home import spending
from nacre.home.home import Home
from nacre.recall import question as recall_question
from nacre.recall import requests
from nacre.recall.lanes import (
    Bm25,
    MemoryRecall,
    QueryVector,
    Ranking,
    ScoredMemory,
    rescore,
    sureness_kind,
)
from nacre.recall.scoring import BORDER, Scale, Signals, min_max, select_answering
from nacre.store import memories
from nacre.values import models
from nacre.values.memory import Memory, Scope
from nacre.values.recall import Filter, LaneState, Mode, RecallQuery, RecallResult, TurnHit
from nacre.values.session import Action, Trust, Turn

_HIT_CHARACTERS = 120


class Aspect(StrEnum):
    """An aspect by which a search can filter turns."""

    ERRORS = "errors"
    PLANS = "plans"
    CONFIGS = "configs"
    TOOLS = "tools"
    FILES = "files"
    DECISIONS = "decisions"


def shows(turn: Turn, aspect: Aspect) -> bool:
    """Return True if the tool calls or the text of a turn show an aspect."""
    calls = turn.tool_calls
    match aspect:
        case Aspect.TOOLS:
            return bool(calls)
        case Aspect.ERRORS if any(call.failed for call in calls):
            return True
        case Aspect.PLANS if any(call.action is Action.PLAN for call in calls):
            return True
        case Aspect.FILES if any(call.paths for call in calls):
            return True
    pattern = _patterns().get(aspect)
    return bool(pattern and pattern.search(turn.text))


def admission(aspect: str, role: str) -> Callable[[Turn], bool] | None:
    """Return a function that accepts turns with an aspect and a role, or ``None`` to accept all."""
    if aspect == role == "all":
        return None

    def admits(turn: Turn) -> bool:
        return (role in ("all", turn.speaker)) and (aspect == "all" or shows(turn, Aspect(aspect)))

    return admits


def with_error(hit: TurnHit, terms: Sequence[str]) -> TurnHit:
    """Add the turn's error to the excerpt of a hit. Quoted tool output makes the turn untrusted."""
    turn = hit.turn
    errors = [
        f"{call.name}: {call.error or call.outcome}" for call in turn.tool_calls if call.failed
    ]
    if errors:
        error = max(errors, key=lambda text: sum(term in text.lower() for term in terms))
        shown = f"{shorten(hit.excerpt, _HIT_CHARACTERS)} — {excerpt(error, terms)}"
        return replace(hit, excerpt=shown, turn=replace(turn, trust=Trust.UNTRUSTED))
    match = _patterns()[Aspect.ERRORS].search(turn.text)
    is_hidden = match is not None and one_line(match[0]) not in hit.excerpt
    return (
        replace(hit, excerpt=excerpt(turn.text, terms, wanted=match[0]))
        if match and is_hidden
        else hit
    )


@cache
def _patterns() -> dict[Aspect, re.Pattern[str]]:
    table = tomllib.loads(Path(__file__).with_name("aspects.toml").read_text(encoding="utf-8"))
    return {Aspect(name): _compile(kinds) for name, kinds in table.items() if any(kinds.values())}


def _compile(kinds: dict[str, list[str]]) -> re.Pattern[str]:
    words = rf"\b(?:{'|'.join(kinds['words'])})\b"
    return re.compile("|".join([words, *kinds["signs"]]), re.IGNORECASE)


# -- Recorded questions ----------------------------------------------------------------------------
# Only a summary of the outcome is recorded, so that it contains nothing of a forgotten memory.


_QUESTION_CHARACTERS = 400
_STATUS = {LaneState.RAN: "done", LaneState.PARTIAL: "done", LaneState.UNAVAILABLE: "failed"}
_NARROWING_FILTERS = tuple(
    ("since until kinds tags min_importance expiry owner_only tools as_of exclude_projects").split()
)


def note_question(home: Home, query: RecallQuery | requests.DeepQuery, outcome: str) -> None:
    """Append a question and its outcome to the spool in one line. Do not write to the database."""
    question = shorten(home.redactor.clean(query.text), _QUESTION_CHARACTERS)
    criteria = query.filter
    is_narrowed = criteria.scope is not Scope.PRIVATE or any(
        getattr(criteria, name) for name in _NARROWING_FILTERS
    )
    spending.note(
        home,
        models.AskedQuestion(
            home.ids(), home.clock(), question, outcome, criteria.projects, is_narrowed
        ),
    )


def outcome_of(result: RecallResult) -> str:
    """Describe the result of a recall for the record."""
    if not result.is_answered:
        return models.NOT_SURE if result.hits or result.turns else models.NOTHING_FOUND
    return f"{count(len(result.hits), 'memory', 'memories')}, {count(len(result.turns), 'turn')}"


# -- Joint use: memories used together raise each other's rank -------------------------------------
# Hits that probably answer the question can gain rank. A few other memories can follow them if they
# were used together with them more than once.


SEEDS = 5
NEIGHBOURS = 10
LEAST_WEIGHT = 0.1
SHARE = 0.15
COMPANION_WEIGHT = 0.15
"""Minimum edge weight to show a memory only because it was used with a hit.

A single session adds 0.1.
"""

COMPANIONS = 3


def seeds(hits: Sequence[ScoredMemory]) -> list[str]:
    """Return the ids of the best hits that probably answer the question."""
    return [item.memory.id for item in hits if item.confidence >= BORDER][:SEEDS]


def pulls(edges: Sequence[memories.Edge]) -> dict[str, float]:
    """Return the weight of the strongest edge between each memory and a seed.

    ``edges``: edges that start at a seed, strongest first. Only ten edges of each seed count.
    """
    weights: dict[str, float] = {}
    counts: dict[str, int] = {}
    for edge in edges:
        counts[edge.memory] = counts.get(edge.memory, 0) + 1
        if edge.weight >= LEAST_WEIGHT and counts[edge.memory] <= NEIGHBOURS:
            weights[edge.other] = max(weights.get(edge.other, 0.0), edge.weight)
    return weights


def may_come_along(weight: float) -> bool:
    """Return True if memories were used together often enough to be shown together."""
    return weight >= COMPANION_WEIGHT


def lift(hits: Sequence[ScoredMemory], weights: Mapping[str, float]) -> list[ScoredMemory]:
    """Raise the score of each likely hit by 0.15 · weight, to at most 1."""
    lifted = [
        _with_gain(item, weights[item.memory.id])
        if item.memory.id in weights and item.confidence >= BORDER
        else item
        for item in hits
    ]
    return sorted(lifted, key=lambda item: (-item.score, item.memory.id))


def companions(
    hits: Sequence[ScoredMemory],
    others: Sequence[ScoredMemory],
    unranked_memories: Sequence[Memory],
    weights: Mapping[str, float],
) -> list[ScoredMemory]:
    """Choose memories to show below the hits because they were used together with the hits.

    ``others``: less confident hits. ``unranked_memories``: memories that the search did not find.
    """
    unranked = [ScoredMemory(memory, 0.0, {}, Signals(0.0, None)) for memory in unranked_memories]
    ceiling = min((item.score for item in hits), default=0.0)
    lifted = [
        _with_gain(item, weights[item.memory.id], ceiling)
        for item in [*others, *unranked]
        if may_come_along(weights.get(item.memory.id, 0.0))
    ]
    return sorted(lifted, key=lambda item: (-item.score, item.memory.id))[:COMPANIONS]


def _with_gain(item: ScoredMemory, weight: float, ceiling: float = 1.0) -> ScoredMemory:
    gain = SHARE * weight
    score = min(ceiling, item.score + gain)
    change = (
        {"x_co_recall": round(score / item.score, 4)}
        if item.score
        else {"relevance": round(score, 4)}
    )
    return replace(
        item, score=score, components={**item.components, **change, "co_recall": round(gain, 4)}
    )


# -- Diversity: maximal marginal relevance (Carbonell & Goldstein 1998) ----------------------------


T = TypeVar("T")

LAMBDA = 0.7
"""Weight of relevance, from 0 to 1. The rest is the weight of diversity."""

NEAR_COPY = 0.75
"""Minimum similarity of items that count as near copies. Near copies are chosen last."""


def diversify(
    items: Sequence[T],
    *,
    score: Callable[[T], float],
    text: Callable[[T], str],
    limit: int,
    relevance_share: float = LAMBDA,
) -> list[tuple[T, float]]:
    """Choose up to ``limit`` items that have high scores and differ from each other.

    Return each item with its similarity to the most similar item chosen before it. Similarity is
    the Jaccard index of their words, except words of one or two characters. Scores must be in 0..1.
    """
    remaining = list(items)
    bags = {
        id(item): {word for word in words(text(item)[:2000]) if len(word) > 2} for item in remaining
    }
    chosen: list[tuple[T, float]] = []
    closest = {id(item): 0.0 for item in remaining}
    while remaining and len(chosen) < limit:
        best = max(
            remaining, key=lambda item: _mmr_score(score(item), closest[id(item)], relevance_share)
        )
        chosen.append((best, closest[id(best)]))
        remaining = [item for item in remaining if item is not best]
        for item in remaining:
            first, second = bags[id(item)], bags[id(best)]
            likeness = len(first & second) / max(1, len(first | second))
            closest[id(item)] = max(closest[id(item)], likeness)
    return chosen


def share_left(score: float, likeness: float, relevance_share: float = LAMBDA) -> float:
    """Return the share of a score, 0 to 1, that remains after a deduction for similarity.

    The deduction is ``likeness`` · (1-λ)/λ, where λ is ``relevance_share``.
    """
    if score <= 0 or relevance_share <= 0:
        return 0.0
    return max(0.0, 1 - (1 - relevance_share) / relevance_share * likeness / score)


def _mmr_score(score: float, likeness: float, relevance_share: float) -> float:
    worth = relevance_share * score - (1 - relevance_share) * likeness
    return worth - (1.0 if likeness >= NEAR_COPY else 0.0)


# -- Merging ---------------------------------------------------------------------------------------


def most_of(lists: Sequence[Sequence[ScoredMemory]]) -> list[ScoredMemory]:
    """Merge the hits for several questions. Each memory gets its best score and its highest confidence."""
    best: dict[str, ScoredMemory] = {}
    for item in (item for ranked in lists for item in ranked):
        other = best.get(item.memory.id)
        if other is None:
            best[item.memory.id] = item
            continue
        first = max((other, item), key=lambda hit: hit.score)
        surest = max((other, item), key=lambda hit: hit.confidence)
        linked = tuple(dict.fromkeys((*other.linked_from, *item.linked_from)))
        best[item.memory.id] = replace(
            first, signals=surest.signals, confidence=surest.confidence, linked_from=linked
        )
    return sorted(best.values(), key=lambda item: (-item.score, item.memory.id))


# -- Order of outdated memories --------------------------------------------------------------------


def _in_order(group: Sequence[ScoredMemory]) -> list[ScoredMemory]:
    """Sort a group by date, latest first. The hits exchange scores, so that the scores descend."""
    if len(group) == 1:
        return list(group)
    scores = sorted((hit.score for hit in group), reverse=True)
    latest = sorted(group, key=lambda hit: (hit.memory.last_said, hit.memory.id), reverse=True)
    return [rescore(hit, score) for hit, score in zip(latest, scores, strict=True)]


# -- Constants for ranking turns -------------------------------------------------------------------
# They are in one object, so that a benchmark can turn off each of them separately.


@frozen
class Recipe:
    """Constants of turn recall.

    ``lexical``: the weight of words. ``vector``: the weight of meaning. ``session``: the weight of
    the whole session's words, and of its meaning. ``author``: the bonus for turns by the only
    author in the question. ``presence``: the bonus for sessions with a participant or project in
    the question. ``name``: the bonus for turns with part of an identifier. ``time``: the bonus for
    turns in the named period. ``asks``: the deduction for turns that only ask a question.
    ``narration``: the deduction for an agent's comments on its tool calls. Real sessions contain
    ten times as many of these as answers.
    """

    lexical: float = 0.5
    vector: float = 0.5
    session: float = 0.15
    author: float = 0.15
    presence: float = 0.15
    name: float = 0.1
    time: float = 0.2
    asks: float = 0.1
    narration: float = 0.2

    bm25: Bm25 = Bm25(k1=0.8, b=0.5)
    reach: int = 2
    """Number of turns before and after a turn that count as neighbours."""

    neighbours: float = 0.35
    """Weight of a term in a neighbouring turn, relative to a term in the turn itself."""

    smoothing: float = 0.5
    """Weight of the mean cosine of a turn's neighbours, relative to the turn's own cosine."""

    doubt: float = 0.5
    """Exponent that lowers the weight of the word search if its best turn matches few words."""

    scale: Scale = min_max
    """Function that normalises a lane's scores to 0..1."""

    candidates: int = 100
    """Number of turns that each lane adds to the ranking."""

    parts: int = 30
    """Maximum number of turns proposed because they contain part of an identifier."""

    window: int = 400
    """Maximum number of turns whose words are counted. Other turns count as turns without words."""

    postings: int = 10_000
    """Maximum number of index rows for all words of a search.

    If there are more rows, the most frequent words are dropped, so that the search stays fast.
    """

    passages: int = 3
    """Number of turns that represent a session. They are the turns with the highest cosines."""


DEFAULT = Recipe()
"""Constants tuned on three benchmarks. See docs/benchmarks.md."""


# -- Ranking of memories ---------------------------------------------------------------------------


_ALTERNATIVE = "alternative_to"
"""Relation between two memories that a person declared both valid."""

_MOMENT = timedelta(milliseconds=1)

DIVERSIFY_FROM = 3
"""Number of candidates from which each diverse hit is chosen."""


def engine_of(home: Home) -> MemoryRecall:
    """Return the engine that ranks the home's memories."""
    return MemoryRecall(
        home.memory_search, home.memories, home.selection, home.usage, home.turn_search
    )


def read_plainly(home: Home, text: str, *, ignore_time: bool = False) -> recall_question.Question:
    """Parse a question with the names in the index."""
    return recall_question.read_question(
        text,
        now=home.now(),
        authors=home.sessions.authors(),
        projects=home.sessions.projects(),
        ignore_time=ignore_time,
    )


def projects_named(home: Home, prompt: str) -> tuple[str, ...]:
    """Return the known projects that a prompt names, except names that are everyday words ("repo", "demo")."""
    return tuple(
        name
        for name in read_plainly(home, prompt).projects
        if not recall_question.is_common_name(name)
    )


def ranking_of(home: Home, query: RecallQuery, question: recall_question.Question) -> Ranking:
    """Return the options for ranking, as of now or of the end of the requested day."""
    now = home.clock()
    day = query.filter.as_of
    moment = min(now, day_interval(day)[1] - _MOMENT) if day else now
    clamped = home.settings.text("scoring.profile") == "nacre"
    until = query.filter.until
    as_seen = query.around or (min(until, moment) if until else None)
    return Ranking(
        moment,
        query.around,
        query.radius_days,
        query.boost,
        clamped,
        as_seen,
        query.word_share,
        query.prefer_kinds,
        window_of(query, question),
    )


def rank_memories(
    home: Home,
    query: RecallQuery,
    question: recall_question.Question,
    ranking: Ranking,
    *,
    vector: QueryVector | None = None,
    lexical: bool = True,
) -> tuple[list[ScoredMemory], Filter]:
    """Rank memories. Return them and the filter that was used."""
    engine = engine_of(home)
    filter_, reach = query.filter, timedelta(days=query.radius_days)
    query = replace(
        query,
        filter=(
            filter_
            if query.around is None or filter_.since or filter_.until
            else (
                replace(
                    filter_,
                    since=_move(query.around, -reach),
                    until=_move(query.around, reach + _MOMENT),
                )
            )
        ),
    )
    if query.mode is Mode.BROWSE:
        limit = max(3 * query.limit, 50)
        rows = home.selection.browse_memories(query.filter, limit=limit, today=ranking.today)
        return engine.browse(rows, ranking), query.filter
    criteria = narrow(query, question)
    return engine.rank(question, criteria, ranking, vector=vector, lexical=lexical), criteria


def _move(moment: datetime, by: timedelta) -> datetime | None:
    try:
        return moment + by
    except OverflowError:
        return None


def narrow(query: RecallQuery, question: recall_question.Question) -> Filter:
    """Add the kinds and projects that a question asks to list to the filter.

    Kinds and projects that are already in the filter take precedence.
    """
    filter_ = query.filter
    if not question.lists:
        return filter_
    return replace(
        filter_,
        kinds=filter_.kinds or question.lists,
        projects=filter_.projects or question.projects,
    )


def window_of(query: RecallQuery, question: recall_question.Question) -> Window | None:
    """Return the question's time window, or ``None`` if an option sets a time."""
    if query.mode is Mode.BROWSE or query.filter.since or query.filter.until or query.around:
        return None
    return question.window


def confident(
    ranked: Sequence[ScoredMemory], query: RecallQuery, question: recall_question.Question
) -> list[ScoredMemory]:
    """Return the hits that probably answer the question, and memories linked from them.

    For a prompt, linked memories are left out.
    """
    if query.mode is Mode.BROWSE or question.is_open:
        return list(ranked)
    sure_ids = {
        item.memory.id for item in ranked if item.confidence >= BORDER and not query.is_prompt
    }
    answering_ids = {item.memory.id for item in select_answering(sureness_kind(question), ranked)}
    return [
        item
        for item in ranked
        if item.memory.id in answering_ids or not sure_ids.isdisjoint(item.linked_from)
    ]


def doubts(home: Home, hits: Sequence[ScoredMemory]) -> list[tuple[str, str]]:
    """Return pairs of an older memory and a newer one that probably makes it outdated."""
    pairs = home.reviews.doubts([item.memory.id for item in hits], both_ways=True)
    return [(doubt.older, doubt.newer) for doubt in pairs]


def newest_first(
    home: Home, query: RecallQuery, hits: Sequence[ScoredMemory]
) -> list[ScoredMemory]:
    """Place each memory directly after the newer memory that replaces it or is an alternative.

    For a prompt, memories that are probably outdated are left out until a person decides.
    """
    doubted_pairs = doubts(home, hits)
    memories = {item.memory.id: item.memory for item in hits}
    alternatives = [
        pair
        for memory in memories.values()
        for link in memory.links
        if link.rel == _ALTERNATIVE
        for pair in ((memory.id, link.to), (link.to, memory.id))
    ]
    follows = {
        older: newer
        for older, newer in [*alternatives, *doubted_pairs]
        if older in memories
        and newer in memories
        and memories[newer].last_said > memories[older].last_said
    }
    groups: dict[str, list[ScoredMemory]] = {}
    for hit in hits:
        memory_id = hit.memory.id
        while memory_id in follows:
            memory_id = follows[memory_id]
        groups.setdefault(memory_id, []).append(hit)
    ordered = [hit for group in groups.values() for hit in _in_order(group)]
    if not query.is_prompt:
        return ordered
    outdated = {
        older
        for older, newer in doubted_pairs
        if newer in memories
        and (
            (newer, older) not in doubted_pairs
            or memories[newer].last_said > memories[older].last_said
        )
    }
    return [item for item in ordered if item.memory.id not in outdated] or ordered[:1]


def diverse(ranked: Sequence[ScoredMemory], query: RecallQuery) -> list[ScoredMemory]:
    """Return the best hits, reordered for diversity if the query asks for it."""
    if not query.diversify:
        return list(ranked[: query.limit])
    pool = ranked[: query.limit * DIVERSIFY_FROM]
    relevance_share = LAMBDA if query.mmr_lambda is None else query.mmr_lambda
    chosen = diversify(
        pool,
        score=lambda item: item.score,
        text=lambda item: f"{item.memory.subject} {item.memory.content}",
        limit=query.limit,
        relevance_share=relevance_share,
    )
    return [_with_mmr(item, likeness, relevance_share) for item, likeness in chosen]


def _with_mmr(item: ScoredMemory, likeness: float, relevance_share: float) -> ScoredMemory:
    if not likeness:
        return item
    share = round(share_left(item.score, likeness, relevance_share), 4)
    return replace(
        item, components={**item.components, "likeness": round(likeness, 4), "mmr": share}
    )
