"""The memories that answer a question, ranked and cut to what is sure: what every recall does, and a hook alone.

Light: what only a full recall needs (vectors, models, turns, the vault's files) is in :mod:`nacre.retrieval.recall`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from nacre.home.home import Home
from nacre.platform.days import day_interval
from nacre.retrieval.confidence import BORDER, answering
from nacre.retrieval.diversify import LAMBDA, diversify, share_left
from nacre.retrieval.lanes import QueryVector
from nacre.retrieval.memories import MemoryRecall, Ranking, ScoredMemory, sureness_kind
from nacre.retrieval.merge import most_of
from nacre.retrieval.outdated import newer_first
from nacre.retrieval.question.prompts import as_prompt, is_common_name, parts_of
from nacre.retrieval.question.question import Question, read_question
from nacre.text.time_expressions import Window
from nacre.values.memory import Memory
from nacre.values.recall import Filter, Mode, RecallQuery

_APART = "alternative_to"
_MOMENT = timedelta(milliseconds=1)
"""The relation of two memories that both hold, as a person said: a hook does not load :mod:`nacre.dedup`."""

DIVERSIFY_FROM = 3
"""Candidates weighed for diversity, per hit asked for."""


def ranked_by_words(home: Home, query: RecallQuery) -> list[ScoredMemory]:
    """The memories that answer by their words alone, the best first.

    As :func:`nacre.retrieval.recall.recall` in the mode ``lexical`` finds them, from the database as it is. What the
    question says happened before or after something is not looked up.
    """
    question = _read(home, query, query.text)
    ranking = ranking_of(home, query, question)
    ranked, wanted = rank_memories(home, query, question, ranking)
    parts = [_read(home, query, part) for part in parts_of(query.text)] if query.is_prompt else []
    if parts:
        engine = engine_of(home)
        ranked = most_of([ranked, *(engine.rank(part, wanted, ranking, vector=None) for part in parts)])
    sure = confident(ranked, query, question)
    sure = newest_first(home, query, sure)
    return diverse(sure, query)[: query.limit]


def engine_of(home: Home) -> MemoryRecall:
    """What ranks memories."""
    return MemoryRecall(home.memory_search, home.memories, home.selection, home.usage)


def _read(home: Home, query: RecallQuery, text: str) -> Question:
    question = read_plainly(home, text)
    return as_prompt(question) if query.is_prompt else question


def read_plainly(home: Home, text: str) -> Question:
    """A question taken apart, with the names that the index knows."""
    authors, projects = home.selection.names_known()
    return read_question(text, now=home.now(), authors=authors, projects=projects)


def projects_named(home: Home, prompt: str) -> tuple[str, ...]:
    """The known projects that a prompt names; not those whose names are words of everyday work ("repo", "demo")."""
    return tuple(name for name in read_plainly(home, prompt).projects if not is_common_name(name))


def ranking_of(home: Home, query: RecallQuery, question: Question) -> Ranking:
    """How the memories for a question are to be ranked: as of now, or of the end of the day that it asks about."""
    now = home.clock()
    day = query.filter.as_of
    moment = min(now, day_interval(day)[1] - _MOMENT) if day else now
    clamped = home.settings.text("scoring.profile") == "nacre"
    until = query.filter.until
    as_seen = query.around or (min(until, moment) if until else None)
    return Ranking(
        moment, query.around, query.radius_days, query.boost, clamped, as_seen, query.word_share, query.prefer_kinds,
        window_of(query, question),
    )  # fmt: skip


def rank_memories(
    home: Home, query: RecallQuery, question: Question, ranking: Ranking, *, vector: QueryVector | None = None,
    lexical: bool = True,
) -> tuple[list[ScoredMemory], Filter]:  # fmt: skip
    """Return ranked memories and the filter that was used."""
    engine = engine_of(home)
    query = replace(query, filter=_around(query))
    if query.mode is Mode.BROWSE:
        limit = max(3 * query.limit, 50)
        rows = home.selection.browse_memories(query.filter, limit=limit, today=ranking.today)
        return engine.browse(rows, ranking), query.filter
    wanted = narrowed(query, question)
    return engine.rank(question, wanted, ranking, vector=vector, lexical=lexical), wanted


def _around(query: RecallQuery) -> Filter:
    """The filter, with the window that a date to search around opens where no times are given (seed facts 1.2.1)."""
    wanted, reach = query.filter, timedelta(days=query.radius_days)
    if query.around is None or wanted.since or wanted.until:
        return wanted
    return replace(wanted, since=_moved(query.around, -reach), until=_moved(query.around, reach + _MOMENT))


def _moved(moment: datetime, by: timedelta) -> datetime | None:
    """Another moment, and none where it would be before the first year or after the last."""
    try:
        return moment + by
    except OverflowError:
        return None


def narrowed(query: RecallQuery, question: Question) -> Filter:
    """The filter, within the kinds and project that the question asks to be listed; options come before its words."""
    wanted = query.filter
    if not question.lists:
        return wanted
    return replace(wanted, kinds=wanted.kinds or question.lists, projects=wanted.projects or question.projects)


def window_of(query: RecallQuery, question: Question) -> Window | None:
    """Return the time that the question names, unless options name one."""
    if query.mode is Mode.BROWSE or query.filter.since or query.filter.until or query.around:
        return None
    return question.window


def confident(ranked: Sequence[ScoredMemory], query: RecallQuery, question: Question) -> list[ScoredMemory]:
    """The hits likely to answer; a linked memory counts when the very one it is linked from does."""
    if query.mode is Mode.BROWSE or question.is_open:
        return list(ranked)
    sure = {item.memory.id for item in ranked if item.confidence >= BORDER}
    shown = {item.memory.id for item in answering(sureness_kind(question), ranked)}
    return [item for item in ranked if item.memory.id in shown or not sure.isdisjoint(item.linked_from)]


def doubts(home: Home, hits: Sequence[ScoredMemory]) -> list[tuple[str, str]]:
    """Which of some memories are likely to be outdated, by which: (older, newer)."""
    found = home.reviews.doubts([item.memory.id for item in hits], both_ways=True)
    return [(doubt.older, doubt.newer) for doubt in found]


def newest_first(home: Home, query: RecallQuery, hits: Sequence[ScoredMemory]) -> list[ScoredMemory]:
    """The hits, what may be outdated right after what was said since; so is what a person said holds beside it.

    With a prompt, unasked, only the newer one of two is told until somebody decides, also where the older one was
    edited since. Of two that doubt each other it is the one that was said last.
    """
    doubted = doubts(home, hits)
    found = {item.memory.id: item.memory for item in hits}
    linked = [(one, link.to) for one in found.values() for link in one.links if link.rel == _APART and link.to in found]
    pairs = [sorted((one, found[other]), key=_last_said) for one, other in linked]
    ordered = newer_first(hits, [*((older.id, newer.id) for older, newer in pairs), *doubted], _last_said)
    if not query.is_prompt:
        return ordered
    outdated = {
        older
        for older, newer in doubted
        if newer in found and ((newer, older) not in doubted or _last_said(found[newer]) > _last_said(found[older]))
    }
    return [item for item in ordered if item.memory.id not in outdated] or ordered[:1]


def diverse(ranked: Sequence[ScoredMemory], query: RecallQuery) -> list[ScoredMemory]:
    """The best hits, each weighed against its likeness to those before, where that is wanted."""
    if not query.diversify:
        return list(ranked[: query.limit])
    pool = ranked[: query.limit * DIVERSIFY_FROM]
    relevance_share = LAMBDA if query.mmr_lambda is None else query.mmr_lambda
    chosen = diversify(
        pool, score=lambda item: item.score, text=lambda item: f"{item.memory.subject} {item.memory.content}",
        limit=query.limit, relevance_share=relevance_share,
    )  # fmt: skip
    return [_placed(item, likeness, relevance_share) for item, likeness in chosen]


def _placed(item: ScoredMemory, likeness: float, relevance_share: float) -> ScoredMemory:
    """A hit with what it keeps of its score for its place: the score says how well it answers, and stays."""
    if not likeness:
        return item
    kept = round(share_left(item.score, likeness, relevance_share), 4)
    return replace(item, components={**item.components, "likeness": round(likeness, 4), "mmr": kept})


def _last_said(memory: Memory) -> datetime:
    return memory.last_said
