"""Recall over pending candidates: by the words of each, and by the meaning of the turns that show it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nacre.home.home import Home
from nacre.retrieval.confidence import BORDER, is_sure, matches, sureness_of
from nacre.retrieval.lanes import QueryVector
from nacre.retrieval.lexical import choose
from nacre.retrieval.memories import ScoredMemory
from nacre.retrieval.query_lanes import Lanes
from nacre.retrieval.question.question import Question
from nacre.storage.search.full_text import Corpus
from nacre.text.passages import segment
from nacre.values.memory import Memory, Scope
from nacre.values.recall import Filter, Mode, RecallQuery
from nacre.values.session import Speaker, Trust


def rank_candidates(
    home: Home, query: RecallQuery, question: Question, wanted: Filter, lanes: Lanes
) -> list[ScoredMemory]:
    """The pending candidates that a filter admits, with their confidence. They are not in the full-text index."""
    if query.mode is Mode.BROWSE or question.is_open:
        return []
    waiting = [one.memory for one in home.candidates.waiting() if _admits(wanted, one.memory)]
    if not waiting:
        return []
    stems = [frozenset(home.database.stems(segment(f"{one.subject}. {one.content}"))) for one in waiting]
    terms = home.turn_search.terms(question.words) if lanes.lexical else ()
    corpus = home.turn_search.corpus(terms) if terms else Corpus(0, 1.0, ())
    holders = tuple(sum(term.stem in held for held in stems) for term in terms)
    frequencies = tuple(map(max, corpus.frequencies, holders))
    terms, _, coverage = choose(
        question, terms, replace(corpus, rows=corpus.rows + len(waiting), frequencies=frequencies)
    )
    cosines = _cosines(home, lanes.vector)
    sureness = lanes.vector.sureness("memories") if lanes.vector else sureness_of("memories", None)
    found = []
    for memory, held in zip(waiting, stems, strict=True):
        places = {at: 1.0 for at, term in enumerate(terms) if term.stem in held}
        signals = replace(coverage.signals(places, cosine=cosines.get(memory.id)), empty=question.says_nothing)
        sure = sureness.confidence(signals)
        components = {"lexical": round(signals.coverage, 4)} if places else {}
        found.append(ScoredMemory(memory, sure, components, signals, sure))
    return found


def less_likely(found: Sequence[ScoredMemory], likely: Sequence[ScoredMemory]) -> list[ScoredMemory]:
    """Candidates that answer and weak hits, the surest first, to be shown after the likely memories.

    Where any hit is sure, a weak one is only shown if it holds every word of the question.
    """
    shows_weak = not any(map(is_sure, (*found, *likely)))
    shown = [
        item for item in found if item.confidence >= BORDER or item.signals.whole or (shows_weak and matches(item))
    ]
    return sorted(shown, key=lambda item: (item.signals.whole, item.confidence), reverse=True)


def _cosines(home: Home, vector: QueryVector | None) -> dict[str, float]:
    """The cosine of the best turn of each candidate."""
    if vector is None:
        return {}
    turns = home.database.all("list_turns_of_candidates")
    of_turns = vector.vectors.cosines_of_turns(vector.value, [row for _, row in turns])
    best: dict[str, float] = {}
    for candidate, row in turns:
        if row in of_turns:
            best[candidate] = max(best.get(candidate, -1.0), of_turns[row])
    return best


def _admits(wanted: Filter, memory: Memory) -> bool:
    """Whether a candidate passes a filter, as :func:`nacre.storage.filters.memory_clause` decides for memories."""
    session, tags = memory.source.session or "", {tag.lower() for tag in memory.tags}
    return (
        not (wanted.as_of or wanted.settled or wanted.scope is not Scope.PRIVATE)
        and (not wanted.projects or memory.project in wanted.projects or not (memory.project or wanted.strict))
        and (not memory.project or memory.project not in wanted.exclude_projects)
        and (not wanted.since or memory.created >= wanted.since)
        and (not wanted.until or memory.created < wanted.until)
        and (not wanted.kinds or memory.kind in wanted.kinds)
        and (not wanted.tags or not tags.isdisjoint(tag.lower() for tag in wanted.tags))
        and (not wanted.min_importance or memory.importance >= wanted.min_importance)
        and (not wanted.expiry or memory.expiry in wanted.expiry)
        and (not wanted.owner_only or memory.speaker is Speaker.OWNER)
        and (not wanted.trusted or memory.trust is Trust.TRUSTED)
        and (not wanted.tools or session.partition(":")[0] in wanted.tools)
        and (not wanted.sessions or session in wanted.sessions)
    )
