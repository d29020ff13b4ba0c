"""Recall memories and session turns, search pending candidates, and judge recalled memories."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Annotated, Any, TypeVar

from nacre.base.bounds import bounds
from nacre.base.frozen import frozen
from nacre.base.text import STOP_WORDS, count_tokens, excerpt, segment, words
from nacre.base.times import Window
from nacre.errors import EmbedderUnavailableError, InvalidQueryError
from nacre.home.consent import embedder_of
from nacre.home.home import BUNDLED, Home
from nacre.home.location import with_dependencies
from nacre.llm.calibration import calibration_of
from nacre.memories.decision import evidence_of
from nacre.memories.edit import catch_up
from nacre.memories.store import (
    fold_usage,
    get,
    queue_reviews,
    session_name,
    spool_use,
    today,
    use_together,
)
from nacre.memories.usage import (
    BY_WORDS,
    LEAST_REPLY,
    PERSON_SHARE,
    REPLY_CHARACTERS,
    REPLY_SHARE,
    Borders,
    quality_after,
    verdict,
)
from nacre.memories.vectors import passages
from nacre.operations import operation
from nacre.recall import ranking, requests
from nacre.recall.advice import is_guessed, rephrase, rerank
from nacre.recall.lanes import (
    Lanes,
    QueryVector,
    Ranking,
    ScoredMemory,
    choose,
    open_lanes,
    rescore,
    within,
)
from nacre.recall.question import (
    Question,
    as_prompt,
    correct_spelling,
    find_anchor,
    parts_of,
    resolve_anchor,
)
from nacre.recall.ranking import (
    DEFAULT,
    DIVERSIFY_FROM,
    LAMBDA,
    Aspect,
    admission,
    confident,
    diverse,
    diversify,
    doubts,
    engine_of,
    most_of,
    newest_first,
    note_question,
    outcome_of,
    rank_memories,
    ranking_of,
    read_plainly,
    window_of,
    with_error,
)
from nacre.recall.scoring import BORDER, in_words, is_sure, matches, select_answering, sureness_of
from nacre.recall.turns import ScoredTurn, TurnRecall
from nacre.store.search import Corpus
from nacre.values.fields import References
from nacre.values.memory import Memory, Scope, by_id
from nacre.values.recall import (
    DEFAULT_RADIUS_DAYS,
    MOST_RADIUS_DAYS,
    Filter,
    HitConfidence,
    Lane,
    MemoryHit,
    Mode,
    RecallQuery,
    RecallResult,
    TurnHit,
)
from nacre.values.review import FeedbackReport, Judged, Reason, Verdict
from nacre.values.session import Flag, Speaker, StoredTurn, Trust, Turn


def rank_candidates(
    home: Home, query: RecallQuery, question: Question, criteria: Filter, lanes: Lanes
) -> list[ScoredMemory]:
    """Return pending candidates that pass a filter, with their confidence.

    Candidates are not in the full-text index.
    """
    if query.mode is Mode.BROWSE or question.is_open:
        return []
    pending = [item.memory for item in home.candidates.waiting() if _admits(criteria, item.memory)]
    if not pending:
        return []
    stems = [
        frozenset(home.database.stems(segment(f"{item.subject}. {item.content}")))
        for item in pending
    ]
    terms = home.turn_search.terms(question.words) if lanes.lexical else ()
    corpus = home.turn_search.corpus(terms) if terms else Corpus(0, 1.0, ())
    holders = tuple(
        sum(term.stem in stems_of_memory for stems_of_memory in stems) for term in terms
    )
    frequencies = tuple(map(max, corpus.frequencies, holders))
    terms, _, coverage = choose(
        question, terms, replace(corpus, rows=corpus.rows + len(pending), frequencies=frequencies)
    )
    cosines = _cosines(home, lanes.vector)
    sureness = lanes.vector.sureness("memories") if lanes.vector else sureness_of("memories", None)
    scored = []
    for memory, stems_of_memory in zip(pending, stems, strict=True):
        places = {at: 1.0 for at, term in enumerate(terms) if term.stem in stems_of_memory}
        signals = replace(
            coverage.signals(places, cosine=cosines.get(memory.id)), empty=question.says_nothing
        )
        sure = sureness.confidence(signals)
        components = {"lexical": round(signals.coverage, 4)} if places else {}
        scored.append(ScoredMemory(memory, sure, components, signals, sure))
    return scored


def less_likely(hits: Sequence[ScoredMemory], likely: Sequence[ScoredMemory]) -> list[ScoredMemory]:
    """Return the hits to show below the likely memories, most confident first.

    If a memory is almost certain, weak hits must contain every word of the question.
    """
    shows_weak = not any(map(is_sure, (*hits, *likely)))
    shown = [
        item
        for item in hits
        if item.confidence >= BORDER or item.signals.whole or (shows_weak and matches(item))
    ]
    return sorted(shown, key=lambda item: (item.signals.whole, item.confidence), reverse=True)


def _cosines(home: Home, vector: QueryVector | None) -> dict[str, float]:
    if vector is None:
        return {}
    turns = home.database.all("list_turns_of_candidates")
    cosines = vector.vectors.cosines_of_turns(vector.value, [row for _, row in turns])
    best: dict[str, float] = {}
    for candidate, row in turns:
        if row in cosines:
            best[candidate] = max(best.get(candidate, -1.0), cosines[row])
    return best


def _admits(criteria: Filter, memory: Memory) -> bool:
    """Return True if a candidate passes a filter. Mirrors :func:`nacre.store.schema.memory_clause`."""
    session, tags = memory.source.session or "", {tag.lower() for tag in memory.tags}
    return (
        not (criteria.as_of or criteria.settled or criteria.scope is not Scope.PRIVATE)
        and (
            not criteria.projects
            or memory.project in criteria.projects
            or not (memory.project or criteria.strict)
        )
        and (not memory.project or memory.project not in criteria.exclude_projects)
        and (not criteria.since or memory.created >= criteria.since)
        and (not criteria.until or memory.created < criteria.until)
        and (not criteria.kinds or memory.kind in criteria.kinds)
        and (not criteria.tags or not tags.isdisjoint(tag.lower() for tag in criteria.tags))
        and (not criteria.min_importance or memory.importance >= criteria.min_importance)
        and (not criteria.expiry or memory.expiry in criteria.expiry)
        and (not criteria.owner_only or memory.speaker is Speaker.OWNER)
        and (not criteria.trusted or memory.trust is Trust.TRUSTED)
        and (not criteria.tools or session.partition(":")[0] in criteria.tools)
        and (not criteria.sessions or session in criteria.sessions)
    )


# -- Recall and session search ---------------------------------------------------------------------


Hit = TypeVar("Hit", ScoredMemory, ScoredTurn)
Keep = Callable[[Sequence[ScoredTurn]], list[ScoredTurn]]
_MAX_QUERY_CHARACTERS = 20_000
_CATCH_UP_SECONDS = 0.2
_FIRST_POOL = 100
_SHARE_OF_BEST = 0.8
"""Minimum ratio of a memory's confidence to the best memory's confidence."""
_MAX_POOL = 6_400
_MAX_TURNS_AHEAD = 200
"""Number of turns after a turn in which its answer is looked for."""

_PROMPT_RECIPE = replace(DEFAULT, window=150, candidates=40)
"""Constants for prompts, which must not wait. Only their few best turns are used."""


@operation("recall", by_key=True)
def recall(home: Home, query: RecallQuery) -> RecallResult:
    """Return the memories that answer a question, best first. Raises InvalidQueryError.

    Manual edits of the vault are imported first. The use of memories is noted for the next command
    that writes.
    """
    started = time.perf_counter()
    check(query)
    original, query = query, _in_scope(home, query)
    if not query.is_prompt:
        catch_up(home, _CATCH_UP_SECONDS)
    text = query.text
    query, spelling = _with_spelling(home, query)
    question = _read_question(home, query)
    lanes = open_lanes(home, query, question)
    ranking = ranking_of(home, query, question)
    ranked, criteria = rank_memories(
        home, query, question, ranking, vector=lanes.vector, lexical=lanes.lexical
    )
    ranked = _with_parts(home, query, ranked, criteria, ranking)
    ranked, expansion = _with_expansion(home, query, question, ranked, criteria, ranking)
    likely = confident(ranked, query, question)
    sure = _rerank(lanes, likely, lambda item: f"{item.memory.subject}. {item.memory.content}")
    graded: tuple[Lane, ...] = ()
    if query.rerank and query.mode is not Mode.BROWSE and sure:
        sure, lane = rerank(home, query.text, sure)
        graded = (lane,)
    sure = newest_first(home, query, sure)
    raised, companion_hits = _with_companions(home, query, criteria, ranked, sure)
    shown = [*diverse(raised, query), *companion_hits]
    pending = [] if query.confident else rank_candidates(home, query, question, criteria, lanes)
    if not query.confident and query.mode is not Mode.BROWSE:
        shown_ids = {item.memory.id for item in (*likely, *companion_hits)}
        shown += less_likely(
            [*(item for item in ranked if item.memory.id not in shown_ids), *pending], shown
        )
    shown = [item for item in shown if item.score >= query.threshold]
    hits, truncated = _fit_budget(shown[: query.limit], query)
    outdated = [] if query.filter.as_of else doubts(home, hits)
    is_listed = query.mode is Mode.BROWSE or question.is_open
    is_private = query.filter.scope is Scope.PRIVATE
    stale = home.memories.stale() if hits and is_private and not query.filter.as_of else {}
    result = RecallResult(
        query=text,
        hits=tuple(
            MemoryHit(
                item.memory,
                round(item.score, 4),
                {**item.components, **_confidence_components(item)},
                HitConfidence.SURE if is_listed else in_words(item.confidence),
                evidence_of(home, item.memory) if is_private else (),
                tuple(newer for older, newer in outdated if older == item.memory.id),
                stale[item.memory.id][1] if item.memory.id in stale else None,
                candidate=item in pending,
            )
            for item in hits
        ),
        turns=tuple(_turns_beside(home, query, question, lanes, is_sure=any(map(is_sure, hits)))),
        lanes=(*lanes.finish(), *spelling, *expansion, *graded),
        around=query.around,
        **_time_range(criteria, ranking.window),
        truncated=truncated,
        took_ms=(time.perf_counter() - started) * 1000,
    )
    if query.update and query.mode is not Mode.BROWSE:
        sure_ids = {item.memory.id for item in sure}  # companions do not count as used
        used = [item.memory.id for item in hits if item.memory.id in sure_ids]
        if used:
            spool_use(home, used, session=query.session)
        note_question(home, query, outcome_of(result))
    server = home.database.server
    return server.with_further_spaces(home, original, result, recall) if server else result


def search_sessions(
    home: Home,
    query: RecallQuery,
    *,
    offset: int = 0,
    admits: Callable[[Turn], bool] | None = None,
    exact: bool = True,
) -> RecallResult:
    """Return the turns that match a question, best first. Raises InvalidQueryError.

    If ``exact`` is True and some turns contain every word of the question, only these turns are
    returned. ``admits`` filters the turns. ``truncated`` is set if more turns match.
    """
    started = time.perf_counter()
    check(query)
    text = query.text
    query, spelling = _with_spelling(home, _in_scope(home, query))
    question = _read_question(home, query)
    lanes = open_lanes(home, query, question)
    if offset or admits:
        query = replace(query, diversify=False)
    needed = offset + query.limit + 1

    def find(keep: Keep, most: int, pool: int = 0) -> tuple[list[TurnHit], bool]:
        ranked_hits = _rank_turns(home, query, question, lanes, most, keep, pool)
        return [hit for hit in ranked_hits if admits is None or admits(hit.turn)], len(
            ranked_hits
        ) < most

    hits = find(_complete, needed if admits is None else _MAX_POOL, _MAX_POOL)[0] if exact else []
    reach = needed if admits is None else max(needed, _FIRST_POOL)
    while not hits:
        ranked_hits, is_all = find(lambda ranked: list(filter(matches, ranked)), reach)
        if len(ranked_hits) >= needed or is_all or reach >= _MAX_POOL:
            hits = ranked_hits
            break
        reach *= 4
    return RecallResult(
        query=text,
        turns=tuple(hits[offset : needed - 1]),
        lanes=(*lanes.finish(), *spelling),
        around=query.around,
        **_time_range(query.filter, window_of(query, question)),
        truncated=len(hits) >= needed,
        took_ms=(time.perf_counter() - started) * 1000,
    )


def turns_for_prompt(home: Home, query: RecallQuery) -> Iterator[tuple[Mode, list[TurnHit]]]:
    """Yield the best turns for a prompt by their words, then by words and meaning if the mode allows it.

    Raises InvalidQueryError.
    """
    check(query)
    question = _read_question(home, query)
    engine = TurnRecall(home.turn_search, home.sessions, home.selection, _PROMPT_RECIPE)
    words = engine.search_words(question, query.filter)
    for mode in dict.fromkeys((Mode.LEXICAL, query.mode)):
        lanes = open_lanes(home, replace(query, mode=mode), question)
        ranked = engine.rank(
            question, query.filter, vector=lanes.vector, words=words, limit=query.limit
        )
        found = list(filter(matches, ranked))
        yield (
            mode,
            _turn_hits(home, found, home.sessions.by_rows([item.row for item in found]), question),
        )


def _time_range(criteria: Filter, window: Window | None) -> dict[str, Any]:
    span = window or criteria
    return {
        "since": span.since,
        "until": span.until,
        "time_words": window.words.strip() if window else None,
    }


def _in_scope(home: Home, query: RecallQuery) -> RecallQuery:
    if query.is_prompt:
        return query
    return replace(query, filter=with_dependencies(home, query.filter))


def _with_spelling(home: Home, query: RecallQuery) -> tuple[RecallQuery, tuple[Lane, ...]]:
    if not query.fuzzy or query.mode is Mode.BROWSE:
        return query, ()
    text, lane = correct_spelling(home, query.text)
    return replace(query, text=text), (lane,)


def _read_question(home: Home, query: RecallQuery) -> Question:
    """Parse the question and resolve the date of any event in it ("after the release")."""

    def read(text: str) -> Question:
        question = read_plainly(home, text, ignore_time=query.ignore_time)
        return as_prompt(question) if query.is_prompt else question

    question = read(query.text)
    if query.ignore_time or find_anchor(question) is None:
        return question
    engine = TurnRecall(home.turn_search, home.sessions, home.selection)
    return resolve_anchor(question, lambda event: engine.time_of(read(event), query.filter))


def check(query: RecallQuery) -> None:
    """Raise InvalidQueryError if the query is not valid."""
    if not query.text.strip() and query.mode is not Mode.BROWSE:
        raise InvalidQueryError(
            "the question is empty", hint="enter a question, or browse: nacre recall --browse"
        )
    if len(query.text) > _MAX_QUERY_CHARACTERS:
        raise InvalidQueryError(
            f"the question is longer than {_MAX_QUERY_CHARACTERS:,} characters", hint="shorten it"
        )
    criteria = query.filter
    if criteria.since and criteria.until and criteria.since >= criteria.until:
        raise InvalidQueryError("--since is after --until", hint="exchange them")
    if not 0 < query.radius_days <= MOST_RADIUS_DAYS:
        raise InvalidQueryError(
            f"the radius must be above 0 and at most {MOST_RADIUS_DAYS:,} days",
            hint="14 days include two weeks before and after",
        )
    if query.around is None and query.radius_days != DEFAULT_RADIUS_DAYS:
        raise InvalidQueryError("a radius needs a day", hint="add the day: --around 2026-11-20")
    if query.limit < 1:
        raise InvalidQueryError("the limit must be at least 1", hint="10 is the usual limit")


def _with_parts(
    home: Home, query: RecallQuery, ranked: list[ScoredMemory], criteria: Filter, ranking: Ranking
) -> list[ScoredMemory]:
    """Add the hits for each sentence of a prompt. Drop hits of much lower confidence."""
    if not query.is_prompt:
        return ranked
    rankings = [_nearly_best(ranked)]
    for part in parts_of(query.text):
        question = _read_question(home, replace(query, text=part))
        lanes = open_lanes(home, query, question)
        hits = engine_of(home).rank(
            question, criteria, ranking, vector=lanes.vector, lexical=lanes.lexical
        )
        rankings.append(_nearly_best(hits))
    return most_of(rankings)


def _nearly_best(ranked: Sequence[ScoredMemory]) -> list[ScoredMemory]:
    best = max((item.confidence for item in ranked), default=0.0)
    return [item for item in ranked if item.confidence >= _SHARE_OF_BEST * best]


def _with_expansion(
    home: Home,
    query: RecallQuery,
    question: Question,
    ranked: list[ScoredMemory],
    criteria: Filter,
    ranking: Ranking,
) -> tuple[list[ScoredMemory], tuple[Lane, ...]]:
    if not query.expand or question.is_open or query.mode is Mode.BROWSE:
        return ranked, ()
    phrasings, lane = rephrase(home, query.text)
    rankings = [ranked]
    engine = engine_of(home)
    for phrasing in phrasings:
        rephrased = _read_question(home, replace(query, text=phrasing))
        if not rephrased.is_open:
            lanes = open_lanes(home, query, rephrased)
            hits = engine.rank(
                rephrased, criteria, ranking, vector=lanes.vector, lexical=lanes.lexical
            )
            rankings.append(
                [replace(hit, confidence=0.0) for hit in hits]
                if is_guessed(phrasing, query.text)
                else hits
            )
    return most_of(rankings), (lane,)


def _with_companions(
    home: Home,
    query: RecallQuery,
    criteria: Filter,
    ranked: Sequence[ScoredMemory],
    hits: list[ScoredMemory],
) -> tuple[list[ScoredMemory], list[ScoredMemory]]:
    """Raise the scores of hits that were used together.

    Return the hits, and other memories to show below the hits.
    """
    seeds = ranking.seeds(hits)
    if not seeds or not query.co_recall or not query.boost or query.mode is Mode.BROWSE:
        return hits, []
    weights = ranking.pulls(home.co_recall.of(seeds, today(home)))
    if not weights:
        return hits, []
    shown = {item.memory.id for item in hits}
    others = [item for item in ranked if item.memory.id not in shown and item.memory.is_vouched]
    ranked_ids = {item.memory.id for item in ranked}
    unranked = {
        memory_id for memory_id, weight in weights.items() if ranking.may_come_along(weight)
    } - ranked_ids
    unsolicited = replace(criteria, trusted=True, settled=True)
    admitted = (
        home.selection.admitted_memories(unsolicited, today=home.today()) if unranked else set()
    )
    companions = [
        memory for row, memory in home.memories.rows_of(sorted(unranked)).items() if row in admitted
    ]
    return ranking.lift(hits, weights), ranking.companions(hits, others, companions, weights)


def _rerank(lanes: Lanes, ranked: list[Hit], text: Callable[[Hit], str]) -> list[Hit]:
    """Reorder the best hits with the reranker, if any. Reassign the scores in descending order."""
    if lanes.second is None or len(ranked) < 2:
        return ranked
    reordered = lanes.second.reorder(ranked, score=lambda item: item.score, text=text)
    scores = sorted((item.score for item in ranked), reverse=True)
    return [
        replace(item, score=score) if isinstance(item, ScoredTurn) else rescore(item, score)
        for item, score in zip(reordered, scores, strict=True)
    ]


def _fit_budget(ranked: list[ScoredMemory], query: RecallQuery) -> tuple[list[ScoredMemory], bool]:
    """Return the best hits that fit the token budget, and True if others were dropped.

    At least one hit is returned.
    """
    if not query.budget_tokens:
        return ranked, False
    kept: list[ScoredMemory] = []
    left = query.budget_tokens
    for item in ranked:
        left -= count_tokens(f"{item.memory.subject}\n{item.memory.content}")
        if left < 0 and kept:
            return kept, True
        kept.append(item)
    return kept, False


def _turns_beside(
    home: Home, query: RecallQuery, question: Question, lanes: Lanes, *, is_sure: bool
) -> list[TurnHit]:
    """Return the turns to show next to the memories.

    There are none if the filter uses fields that only memories have. If a memory certainly answers
    the question (``is_sure``), weak turns are left out. Turns that match a superseded memory are
    left out, unless the question is about the past.
    """
    criteria = query.filter
    if (
        not query.turns
        or question.lists
        or criteria.kinds
        or criteria.tags
        or criteria.expiry
        or criteria.min_importance is not None
    ):
        return []
    if question.is_only_time:
        query = replace(query, filter=within(query.filter, window_of(query, question)))

    def keep(ranked: Sequence[ScoredTurn]) -> list[ScoredTurn]:
        weak = [] if is_sure or query.confident else [item for item in ranked if matches(item)]
        return select_answering("turns", ranked) or weak

    hits = _rank_turns(home, query, question, lanes, 2 * query.turns, keep)
    current = (hit for hit in hits if criteria.as_of or not _is_outdated(home, hit, question))
    return list(_with_next(home, list(islice(current, query.turns)), question))


def _with_next(home: Home, hits: Sequence[TurnHit], question: Question) -> Iterator[TurnHit]:
    """Yield hits with what follows them, unless it is another hit."""
    shown = {(hit.session.id, hit.turn.id) for hit in hits}
    for hit in hits:
        stored = home.sessions.find_said(hit.session.id, hit.turn.id)
        if stored:
            answer, message = turns_after(home, stored.session, stored.seq + 1)
            turn = answer or (message if hit.turn.speaker is Speaker.AGENT else None)
            place = (hit.session.id, turn.id) if turn else None
            if turn and turn.trust is Trust.TRUSTED and place not in shown:
                shown.add((hit.session.id, turn.id))
                hit = replace(hit, then=excerpt(turn.text, question.words), then_by=turn.speaker)
        yield hit


def turns_after(home: Home, session: int, seq: int) -> tuple[Turn | None, Turn | None]:
    """Return the agent's last words after a position, and the owner's message that ends them.

    ``session`` is the session's row.
    """
    last = None
    for item in home.sessions.turns_of(session, first=seq, limit=_MAX_TURNS_AHEAD):
        turn = item.turn
        if turn.speaker is Speaker.OWNER and not turn.flags & Flag.META:
            return last, turn
        if turn.speaker is Speaker.AGENT and turn.text and not turn.flags & Flag.SUMMARY:
            last = turn
    return last, None


def _is_outdated(home: Home, hit: TurnHit, question: Question) -> bool:
    """Return True if the turn's memory that best fits the question is superseded."""
    stated = home.comparisons.stated_in(hit.session.id, hit.turn.id)
    question_words = set(question.words)
    nearness = [(len(question_words.intersection(words(text))), not old) for text, old in stated]
    return bool(nearness) and not max(nearness)[1]


def _rank_turns(
    home: Home,
    query: RecallQuery,
    question: Question,
    lanes: Lanes,
    limit: int,
    keep: Keep,
    pool: int = 0,
) -> list[TurnHit]:
    recipe = DEFAULT
    if query.word_share is not None:
        recipe = replace(recipe, lexical=query.word_share, vector=1 - query.word_share)
    engine = TurnRecall(home.turn_search, home.sessions, home.selection, recipe)
    ranked = engine.rank(
        question,
        query.filter,
        vector=lanes.vector,
        lexical=lanes.lexical,
        around=query.around,
        radius_days=query.radius_days,
        limit=pool or (limit * DIVERSIFY_FROM if query.diversify else limit),
    )
    ranked = keep(ranked)
    stored = home.sessions.by_rows([item.row for item in ranked])

    def text_of(item: ScoredTurn) -> str:
        return stored[item.row].turn.text

    ranked = _rerank(lanes, ranked, text_of)
    if query.diversify and ranked:
        highest = ranked[0].score
        chosen = diversify(
            ranked,
            score=lambda item: item.score / highest,
            text=text_of,
            limit=limit,
            relevance_share=LAMBDA if query.mmr_lambda is None else query.mmr_lambda,
        )
        ranked = [item for item, _ in chosen]
    return _turn_hits(home, ranked[:limit], stored, question)


def _complete(ranked: Sequence[ScoredTurn]) -> list[ScoredTurn]:
    complete = [item for item in ranked if item.signals.whole]
    return complete if any("asks" not in item.components for item in complete) else []


def _turn_hits(
    home: Home, ranked: Sequence[ScoredTurn], stored: Mapping[int, StoredTurn], question: Question
) -> list[TurnHit]:
    sessions = {row: home.sessions.get(row) for row in {item.place[0] for item in ranked}}
    return [
        TurnHit(
            session=sessions[item.place[0]].session,
            project=sessions[item.place[0]].project,
            turn=stored[item.row].turn,
            score=round(item.score, 4),
            excerpt=excerpt(readable(stored[item.row].turn), question.words),
            components={**item.components, **_confidence_components(item)},
            confidence=in_words(item.confidence),
        )
        for item in ranked
    ]


def readable(turn: Turn) -> str:
    """Return the text of a turn, or a list of its tool calls if it has no text."""
    return turn.text or "; ".join(f"{call.name}: {call.input}" for call in turn.tool_calls)


def _confidence_components(item: ScoredMemory | ScoredTurn) -> dict[str, float]:
    signals = item.signals
    values = {"sure": item.confidence, "coverage": signals.coverage}
    if signals.unknown:
        values["unknown"] = signals.unknown
    if signals.cosine is not None:
        values["cosine"] = signals.cosine
    return {name: round(value, 4) for name, value in values.items()}


# -- Feedback --------------------------------------------------------------------------------------


@frozen
class _Measure:
    """Functions for text similarity.

    ``holds``: the similarity of a memory to the reply. ``repeats``: the similarity of two memories.
    """

    borders: Borders
    holds: Callable[[Memory], float]
    repeats: Callable[[Memory, Memory], float]


@operation("feedback", writes=True)
def feedback(
    home: Home,
    reply: Annotated[str, bounds("The agent's reply, which is not kept.")],
    references: References = (),
    *,
    session: Annotated[
        str | None, bounds("The host's session in which memories were used.")
    ] = None,
    stored: Annotated[tuple[str, ...], bounds("Memories that the agent stored meanwhile.")] = (),
) -> FeedbackReport:
    """Judge from an agent's reply whether memories were used, not used or corrected.

    If ``references`` is empty, judge the memories that were used in the session since the last
    feedback. ``stored`` are the memories that the agent has stored since then. The reply is not
    kept. Raises NotFoundError, ConflictError, and InvalidQueryError if neither memories nor a
    session are given.
    """
    if not references and not session:
        raise InvalidQueryError(
            "there are no memories to judge",
            hint="give memories, or the session in which they were used",
        )
    catch_up(home)
    fold_usage(home)
    memories = _memories_named(home, references) if references else _used_in(home, session or "")
    corrections = _memories_named(home, stored)
    text = home.redactor.clean(reply.strip()[:REPLY_CHARACTERS])
    if len(text) < LEAST_REPLY:
        return FeedbackReport(
            note=f"the reply has fewer than {LEAST_REPLY} characters, too few to judge by"
        )
    if not memories:
        return FeedbackReport(note="no memory was used in that session since the last feedback")
    measure = _measure(home, text, [*memories, *corrections])
    findings = {}
    for memory in memories:
        repeated = max(
            (measure.repeats(memory, other) for other in corrections if other.id != memory.id),
            default=0.0,
        )
        likeness = measure.holds(memory)
        findings[memory.id] = _Judgement(verdict(likeness, repeated, measure.borders), likeness)
    with home.transaction():
        judged = _judge(home, memories, findings, REPLY_SHARE)
        if session and not references:
            # Each use is judged only once. The used memories also count as used together.
            name = session_name(session)
            home.session_uses.judge(name, [item.memory_id for item in judged])
            used = [item.memory_id for item in judged if item.verdict is Verdict.USED]
            use_together(home, name, used, today(home))
    return FeedbackReport(judged, measure.borders.name)


@operation("feedback-judge", writes=True, owners=True, command="review feedback")
def judge(
    home: Home,
    references: Annotated[
        tuple[str, ...], bounds("Memories, by their ids or subjects.", min_length=1)
    ],
    *,
    good: Annotated[bool, bounds("True: they are good. False: they go to review.")],
) -> FeedbackReport:
    """Apply a person's rating, and queue bad memories for review. Raises NotFoundError, ConflictError."""
    catch_up(home)
    fold_usage(home)
    memories = _memories_named(home, references)
    judgement = _Judgement(Verdict.USED if good else Verdict.CORRECTED, None)
    with home.transaction():
        judged = _judge(home, memories, {memory.id: judgement for memory in memories}, PERSON_SHARE)
        for memory in memories if not good else ():
            at = home.now_ms()
            home.reviews.add(memory.id, Reason.MANUAL, "you called it bad", at, once=False)
    return FeedbackReport(judged, "person")


@frozen
class _Judgement:
    verdict: Verdict
    likeness: float | None


def _judge(
    home: Home, memories: Sequence[Memory], findings: dict[str, _Judgement], share: float
) -> tuple[Judged, ...]:
    usage = home.usage.of([memory.id for memory in memories])
    judged = []
    for memory in memories:
        before, finding = usage[memory.id].quality, findings[memory.id]
        after = quality_after(before, finding.verdict, memory.kind, share)
        home.usage.set_quality(memory.id, after)
        judged.append(
            Judged(memory.id, memory.subject, finding.verdict, finding.likeness, before, after)
        )
    queue_reviews(home)
    return tuple(judged)


def _memories_named(home: Home, references: Sequence[str]) -> list[Memory]:
    memories = [get(home, reference) for reference in references]
    return list(by_id(memories).values())


def _used_in(home: Home, session: str) -> list[Memory]:
    ids = home.session_uses.unjudged(session_name(session))
    active = by_id(home.memories.rows_of(ids).values())
    return [active[memory_id] for memory_id in ids if memory_id in active]


def _measure(home: Home, reply: str, memories: Sequence[Memory]) -> _Measure:
    if home.settings.text("embedding.model") != "none":
        try:
            embedder = embedder_of(home, BUNDLED)
            reply_vectors = embedder.embed(passages(reply))
            vectors = {memory.id: embedder.embed(passages(memory.content)) for memory in memories}
            calibration = calibration_of(embedder.name)
            return _Measure(
                Borders("cosine", calibration.used, calibration.corrected),
                lambda memory: float((vectors[memory.id] @ reply_vectors.T).max()),
                lambda memory, other: float((vectors[memory.id] @ vectors[other.id].T).max()),
            )
        except EmbedderUnavailableError:
            pass
    search = home.memory_search

    def stems(text: str) -> set[str]:
        return {
            term.stem
            for term in search.terms([word for word in words(text) if word not in STOP_WORDS])
        }

    reply_stems = stems(reply)
    stems_of = {memory.id: stems(memory.content) for memory in memories}

    def repeats(memory: Memory, other: Memory) -> float:
        least = min(len(stems_of[memory.id]), len(stems_of[other.id]))
        return len(stems_of[memory.id] & stems_of[other.id]) / max(1, least)

    return _Measure(
        BY_WORDS,
        lambda memory: len(stems_of[memory.id] & reply_stems) / max(1, len(stems_of[memory.id])),
        repeats,
    )


# -- Operations -----------------------------------------------------------------------------------


@operation("search-sessions", by_key=True)
def search_sessions_answers(home: Home, request: requests.TurnQuery) -> RecallResult:
    """Return the turns of all sessions that answer a question, best first. Raises InvalidQueryError."""
    admits = admission(request.aspect, request.role)
    result = search_sessions(home, request, offset=max(0, request.offset), admits=admits)
    if request.aspect != Aspect.ERRORS:
        return result
    return replace(
        result, turns=tuple(with_error(hit, words(request.text)) for hit in result.turns)
    )
