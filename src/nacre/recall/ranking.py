"""Ranking of memories and turns, and merging of both into one list."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cache
from itertools import accumulate, takewhile
from pathlib import Path
from typing import TypeVar

from nacre.base.frozen import frozen
from nacre.base.text import count, excerpt, one_line, shorten, words
from nacre.base.times import Window, day_interval, shown_day
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
from nacre.recall.scoring import BORDER, Signals, select_answering
from nacre.store import memories
from nacre.values import models
from nacre.values.memory import Memory
from nacre.values.recall import (
    Filter,
    HitConfidence,
    LaneState,
    MemoryHit,
    Mode,
    RecallQuery,
    RecallResult,
    TurnHit,
)
from nacre.values.session import Action, Speaker, Trust, Turn

_HIT_CHARACTERS = 120


class Aspect(StrEnum):
    """A subject to which a search of turns can be restricted."""

    ERRORS = "errors"
    PLANS = "plans"
    CONFIGS = "configs"
    TOOLS = "tools"
    FILES = "files"
    DECISIONS = "decisions"


def shows(turn: Turn, aspect: Aspect) -> bool:
    """Return True if a turn's text or tool calls concern an aspect."""
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
    """Return a filter for turns by aspect and speaker, or ``None`` if it would accept all."""
    if aspect == role == "all":
        return None

    def admits(turn: Turn) -> bool:
        return (role in ("all", turn.speaker)) and (aspect == "all" or shows(turn, Aspect(aspect)))

    return admits


def with_error(hit: TurnHit, terms: Sequence[str]) -> TurnHit:
    """Return a hit whose excerpt shows the turn's error.

    Tool output is external text, so quoting it makes the turn untrusted.
    """
    turn = hit.turn
    errors = [
        f"{call.name}: {call.error or call.outcome}" for call in turn.tool_calls if call.failed
    ]
    if errors:
        error = max(errors, key=lambda text: sum(term in text.lower() for term in terms))
        text = f"{shorten(hit.excerpt, _HIT_CHARACTERS)} — {excerpt(error, terms)}"
        return replace(hit, excerpt=text, turn=replace(turn, trust=Trust.UNTRUSTED))
    match = _patterns()[Aspect.ERRORS].search(turn.text)
    is_hidden = match is not None and one_line(match[0]) not in hit.excerpt
    return (
        replace(hit, excerpt=excerpt(turn.text, terms, phrase=match[0]))
        if match and is_hidden
        else hit
    )


@cache
def _patterns() -> dict[Aspect, re.Pattern[str]]:
    table = tomllib.loads(Path(__file__).with_name("aspects.toml").read_text(encoding="utf-8"))
    return {
        Aspect(name): re.compile(
            "|".join([rf"\b(?:{'|'.join(kinds['words'])})\b", *kinds["signs"]]), re.IGNORECASE
        )
        for name, kinds in table.items()
        if any(kinds.values())
    }


# -- Recorded questions ----------------------------------------------------------------------------
# Only a summary of the outcome is recorded, so that the record reveals no forgotten memory.


_QUESTION_CHARACTERS = 400
_STATUS = {LaneState.RAN: "done", LaneState.PARTIAL: "done", LaneState.UNAVAILABLE: "failed"}


def note_question(home: Home, query: RecallQuery | requests.DeepQuery, outcome: str) -> None:
    """Append a question and a summary of its results to the spool file."""
    question = shorten(home.redactor.clean(query.text), _QUESTION_CHARACTERS)
    criteria = query.filter
    is_narrowed = Filter() != replace(
        criteria, projects=(), strict=False, sessions=(), trusted=False, settled=False
    )
    spending.note(
        home,
        models.AskedQuestion(
            home.ids(), home.clock(), question, outcome, criteria.projects, is_narrowed
        ),
    )


def outcome_of(result: RecallResult) -> str:
    """Summarise the result of a recall for the record of questions."""
    if not result.is_answered:
        return models.NOT_SURE if result.hits or result.turns else models.NOTHING_FOUND
    return f"{count(len(result.hits), 'memory', 'memories')}, {count(len(result.turns), 'turn')}"


# -- Joint use: memories used together raise each other's rank -------------------------------------
# Likely hits rise in rank. A few memories that were used with them more than once follow them.


SEEDS = 5
NEIGHBOURS = 10
LEAST_WEIGHT = 0.1
SHARE = 0.15
COMPANION_WEIGHT = 0.15
"""Minimum weight to show a memory only because it was used with a hit. Each session adds 0.1."""

COMPANIONS = 3


def seeds(hits: Sequence[ScoredMemory]) -> list[str]:
    """Return the ids of the best hits that probably answer the question."""
    return [item.memory.id for item in hits if item.confidence >= BORDER][:SEEDS]


def pulls(edges: Sequence[memories.Edge]) -> dict[str, float]:
    """Return the weight of the strongest link from a seed to each memory.

    ``edges`` start at seeds and are sorted by weight. Only the first ten of each seed count.
    """
    weights: dict[str, float] = {}
    counts: dict[str, int] = {}
    for edge in edges:
        counts[edge.memory] = counts.get(edge.memory, 0) + 1
        if edge.weight >= LEAST_WEIGHT and counts[edge.memory] <= NEIGHBOURS:
            weights[edge.other] = max(weights.get(edge.other, 0.0), edge.weight)
    return weights


def lift(hits: Sequence[ScoredMemory], weights: Mapping[str, float]) -> list[ScoredMemory]:
    """Raise the score of each likely hit by 0.15 times its weight, up to 1."""
    lifted = [
        _with_gain(item, weights[item.memory.id])
        if item.memory.id in weights and item.confidence >= BORDER
        else item
        for item in hits
    ]
    return sorted(lifted, key=lambda item: (-item.score, item.memory.id))


def companions(
    hits: Sequence[ScoredMemory],
    less_confident: Sequence[ScoredMemory],
    unranked_memories: Sequence[Memory],
    weights: Mapping[str, float],
) -> list[ScoredMemory]:
    """Choose memories to show below the hits with which they were used in the past.

    They are ``less_confident`` hits, or memories that the search missed.
    """
    unranked = [
        ScoredMemory(memory, 0.0, {}, Signals(0.0, 0.0, None)) for memory in unranked_memories
    ]
    ceiling = min((item.score for item in hits), default=0.0)
    lifted = [
        _with_gain(item, weights[item.memory.id], ceiling)
        for item in [*less_confident, *unranked]
        if weights.get(item.memory.id, 0.0) >= COMPANION_WEIGHT
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
"""Weight of relevance. The weight of diversity is the rest, up to 1."""

NEAR_COPY = 0.75
"""Minimum similarity of near copies, which are chosen last."""


def diversify(
    items: Sequence[T],
    *,
    score: Callable[[T], float],
    text: Callable[[T], str],
    limit: int,
    relevance_share: float = LAMBDA,
) -> list[T]:
    """Choose up to ``limit`` items that have high scores (0 to 1) but differ from each other.

    Similarity is the Jaccard index of the words with at least three characters.
    """
    remaining = list(items)
    bags = {
        id(item): {word for word in words(text(item)[:2000]) if len(word) > 2} for item in remaining
    }
    chosen: list[T] = []
    closest = {id(item): 0.0 for item in remaining}
    while remaining and len(chosen) < limit:
        best = max(
            remaining, key=lambda item: _mmr_score(score(item), closest[id(item)], relevance_share)
        )
        chosen.append(best)
        remaining = [item for item in remaining if item is not best]
        for item in remaining:
            first, second = bags[id(item)], bags[id(best)]
            likeness = len(first & second) / max(1, len(first | second))
            closest[id(item)] = max(closest[id(item)], likeness)
    return chosen


def _mmr_score(score: float, likeness: float, relevance_share: float) -> float:
    worth = relevance_share * score - (1 - relevance_share) * likeness
    return worth - (1.0 if likeness >= NEAR_COPY else 0.0)


# -- Merging ---------------------------------------------------------------------------------------


def most_of(lists: Sequence[Sequence[ScoredMemory]]) -> list[ScoredMemory]:
    """Merge the hits for several questions, keeping the best score and confidence of each memory."""
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
    if len(group) == 1:
        return list(group)
    scores = sorted((hit.score for hit in group), reverse=True)
    latest = sorted(group, key=lambda hit: (hit.memory.last_said, hit.memory.id), reverse=True)
    return [rescore(hit, score) for hit, score in zip(latest, scores, strict=True)]


# -- One list of memories, candidates and turns ---------------------------------------------------
# The scores of memories and turns are not comparable, but their fits are.


Hit = MemoryHit | TurnHit
HitT = TypeVar("HitT", bound=Hit)

SURE_FIT = 1.5
"""Minimum fit of a sure hit, including its lead. On the data in docs/recall.md, 67 of 74 are right.
"""

_MIN_REPLACEMENT_FIT = -1.0
"""Minimum fit of a later statement to make an earlier one uncertain."""

LEAD_WEIGHT = 0.5
MAX_LEAD = 1.5
"""Limit for a hit's lead over the hits in other sessions."""

_MAX_LATER_DEFICIT = 1.5
"""How much worse a later statement may fit the question than the statement it replaces.

Tuned on 24 pairs of statements, 60 questions about the development tree, and DevMemBench.
"""

_MAX_STATEMENT_CHARACTERS = 1_500
"""Maximum length of a statement. Longer messages usually contain pasted text."""


def in_one_list(hits: Sequence[MemoryHit], turns: Sequence[TurnHit]) -> list[Hit]:
    """Merge memories, candidates and turns, the best first, and set their confidence and doubts.

    Each list keeps its order, except that :func:`current_first` moves the owner's statements. Weak
    hits come last.
    """
    groups = (
        [hit for hit in hits if not hit.candidate],
        turns,
        [hit for hit in hits if hit.candidate],
    )
    merged = sorted(
        ((fit, hit) for group in groups for fit, hit in _with_best_fit(group)),
        key=lambda item: (item[1].confidence is HitConfidence.WEAK, -item[0]),
    )
    ordered = current_first([hit for _, hit in merged])
    current = [_with_doubt(hit, ordered[:at]) for at, hit in enumerate(ordered)]
    sure = list(takewhile(lambda hit: _is_certain(hit, current), current))
    current[: len(sure)] = [replace(hit, confidence=HitConfidence.SURE) for hit in sure]
    return [replace(hit, rank=rank) for rank, hit in enumerate(current)]


def current_first(hits: Sequence[HitT]) -> list[HitT]:
    """Move each statement of the owner ahead of its earlier versions and of comments on it."""
    ordered: list[HitT] = []
    for hit in hits:
        before = (at for at, other in enumerate(ordered) if _precedes(hit, other))
        ordered.insert(next(before, len(ordered)), hit)
    return ordered


def _with_best_fit(hits: Sequence[Hit]) -> Iterator[tuple[float, Hit]]:
    best = accumulate(map(_fit, reversed(hits)), max)
    return zip(reversed(list(best)), hits, strict=True)


def _fit(hit: Hit) -> float:
    return hit.components.get("fit", 0.0)


def _session(hit: Hit) -> str | None:
    return hit.session.id if isinstance(hit, TurnHit) else hit.memory.source.session


def _time(hit: Hit) -> datetime | None:
    return hit.turn.time if isinstance(hit, TurnHit) else hit.memory.last_said


def _is_statement(hit: Hit) -> bool:
    """Return True if the owner stated a hit. Turns with a named author come from group chats."""
    if isinstance(hit, MemoryHit):
        return hit.memory.speaker is Speaker.OWNER
    turn = hit.turn
    return turn.speaker is Speaker.OWNER and not turn.author and not _is_open(turn)


def _is_open(turn: Turn) -> bool:
    is_long = len(turn.text) > _MAX_STATEMENT_CHARACTERS
    return is_long or recall_question.has_question(turn.text)


def _is_after(hit: Hit, other: Hit) -> bool:
    time, other_time = _time(hit), _time(other)
    return time is not None and other_time is not None and time > other_time


def _is_later(hit: Hit, other: Hit) -> bool:
    """Return True if ``hit`` is a later statement on the same subject. Memories are not compared
    with each other, because their relation is stored.
    """
    turns = isinstance(hit, TurnHit) + isinstance(other, TurnHit)
    return (
        turns > (_session(hit) == _session(other))
        and _is_after(hit, other)
        and min(_fit(hit), _fit(other)) >= 0
        and _fit(hit) >= _fit(other) - _MAX_LATER_DEFICIT
        and _is_statement(hit)
        and _is_statement(other)
    )


def _precedes(hit: Hit, other: Hit) -> bool:
    if HitConfidence.WEAK in (hit.confidence, other.confidence):
        return False
    is_comment = (
        isinstance(other, TurnHit)
        and not other.turn.author
        and _session(hit) == _session(other)
        and _fit(hit) >= max(0.0, _fit(other))
        and _is_statement(hit)
        and not _is_statement(other)
    )
    return is_comment or _is_later(hit, other)


def _with_doubt(hit: Hit, before: Sequence[Hit]) -> Hit:
    later = next((other for other in before if _is_later(other, hit)), None)
    time = _time(later) if later else None
    if later is None or time is None or hit.doubt or _session(hit) == _session(later):
        return hit
    return replace(hit, doubt=f"the owner said more on {shown_day(time)}")


def _is_certain(hit: Hit, hits: Sequence[Hit]) -> bool:
    if hit.confidence is HitConfidence.WEAK or "narration" in hit.components:
        return False
    turn = hit.turn if isinstance(hit, TurnHit) else None
    if turn and turn.speaker is Speaker.OWNER and _is_open(turn):
        return False
    is_agents = turn is not None and turn.speaker is Speaker.AGENT
    session, best_rival = _session(hit), -MAX_LEAD
    for other in hits:
        is_same = session is not None and _session(other) == session
        could_replace = is_agents if is_same else _fit(other) >= _MIN_REPLACEMENT_FIT
        is_turn_after = isinstance(other, TurnHit) and _is_after(other, hit)
        if could_replace and is_turn_after and _is_statement(other):
            return False
        if not (other is hit or other.doubt or is_same):
            best_rival = max(best_rival, _fit(other))
    return _fit(hit) + LEAD_WEIGHT * min(MAX_LEAD, _fit(hit) - best_rival) >= SURE_FIT


# -- Constants for ranking turns -------------------------------------------------------------------
# A benchmark turns them off one by one.


@frozen
class Recipe:
    """Constants for the ranking of turns."""

    lexical: float = 0.5
    """Weight of the words."""

    vector: float = 0.5
    """Weight of the meaning."""

    session: float = 0.15
    """Weight of words and meaning in the whole session."""

    author: float = 0.15
    """Bonus for turns by the only person in the question."""

    presence: float = 0.15
    """Bonus for sessions that contain a person or project from the question."""

    name: float = 0.1
    """Bonus for a match with part of an identifier."""

    own_words: float = 0.1
    """Bonus for turns that themselves contain the question's distinctive words."""

    time: float = 0.2
    """Bonus for turns in the period named in the question."""

    asks: float = 0.1
    """Deduction for turns that only ask."""

    narration: float = 0.2
    """Deduction for an agent's comments on its tool calls, which are far commoner than answers."""

    bm25: Bm25 = Bm25(k1=0.8, b=0.5)
    reach: int = 2
    """Number of turns before and after a turn that count as neighbours."""

    neighbours: float = 0.35
    """Weight of a term in a neighbouring turn, relative to a term in the turn itself."""

    smoothing: float = 0.5
    """Weight of the neighbours' mean cosine, relative to the turn's own cosine."""

    doubt: float = 0.5
    """Exponent that weakens the search by words if even its best turn matches few words."""

    candidates: int = 100
    """Number of turns that each lane adds to the ranking."""

    parts: int = 30
    """Maximum number of turns that are candidates because of part of an identifier."""

    window: int = 400
    """Maximum number of turns whose words are counted."""

    postings: int = 10_000
    """Maximum number of index rows to read. The most frequent words are dropped to stay below it."""

    passages: int = 3
    """Number of turns that represent a session: those nearest in meaning."""


DEFAULT = Recipe()
"""Constants tuned on three benchmarks. See docs/benchmarks.md."""


# -- Ranking of memories ---------------------------------------------------------------------------


_ALTERNATIVE = "alternative_to"
"""Relation between two memories that a person declared to be valid together."""

_MOMENT = timedelta(milliseconds=1)

DIVERSIFY_FROM = 3
"""Number of candidates considered for each hit when near copies are avoided."""


def engine_of(home: Home) -> MemoryRecall:
    """Return the search engine for the memories of a home."""
    return MemoryRecall(
        home.memory_search, home.memories, home.selection, home.usage, home.turn_search
    )


def read_plainly(home: Home, text: str, *, ignore_time: bool = False) -> recall_question.Question:
    """Parse a question, and recognise the people and projects that nacre knows."""
    return recall_question.read_question(
        text,
        now=home.now(),
        authors=home.sessions.authors(),
        projects=home.sessions.projects(),
        ignore_time=ignore_time,
    )


def projects_named(home: Home, prompt: str) -> tuple[str, ...]:
    """Return the known projects that a prompt names, except everyday words ("repo", "demo")."""
    return tuple(
        name
        for name in read_plainly(home, prompt).projects
        if not recall_question.is_common_name(name)
    )


def ranking_of(home: Home, query: RecallQuery, question: recall_question.Question) -> Ranking:
    """Return the ranking options as of now, or as of the end of the requested day."""
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
    """Return the ranked memories, and the filter that selected them."""
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
    """Return the filter restricted to the kinds and projects that the question asks to list.

    Kinds and projects already in the filter take precedence.
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
    """Return the period named in the question, or ``None`` if an option sets the time."""
    if query.mode is Mode.BROWSE or query.filter.since or query.filter.until or query.around:
        return None
    return question.window


def confident(
    ranked: Sequence[ScoredMemory], query: RecallQuery, question: recall_question.Question
) -> list[ScoredMemory]:
    """Return the hits that probably answer the question.

    Memories linked from these hits are included, unless the question is a prompt.
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


def newest_first(
    home: Home, query: RecallQuery, hits: Sequence[ScoredMemory]
) -> list[ScoredMemory]:
    """Move each memory directly behind the newer one that replaces it or is its alternative.

    For a prompt, drop memories that are probably outdated.
    """
    newer_ids = home.reviews.newer([item.memory.id for item in hits])
    doubted_pairs = [(older, newer) for older, ids in newer_ids.items() for newer in ids]
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
    """Return the best hits, without similar ones at the top unless the query disables this."""
    if not query.diversify:
        return list(ranked[: query.limit])
    pool = ranked[: query.limit * DIVERSIFY_FROM]
    return diversify(
        pool,
        score=lambda item: item.score,
        text=lambda item: f"{item.memory.subject} {item.memory.content}",
        limit=query.limit,
        relevance_share=LAMBDA if query.mmr_lambda is None else query.mmr_lambda,
    )
