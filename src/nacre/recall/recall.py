"""Recall of memories, candidates and session turns, and feedback on recalled memories."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from heapq import nlargest
from itertools import chain, islice, pairwise, repeat, zip_longest
from typing import Annotated, Any

from nacre.base.bounds import bounds
from nacre.base.text import STOP_WORDS, count_tokens, segment, words
from nacre.base.times import Window
from nacre.errors import EmbedderUnavailableError, InvalidQueryError
from nacre.home.home import BUNDLED, Home
from nacre.home.location import with_dependencies
from nacre.home.spending import embedder_of
from nacre.llm.calibration import calibration_of
from nacre.memories.edit import catch_up
from nacre.memories.history import evidence_of
from nacre.memories.store import get
from nacre.memories.usage import (
    BY_WORDS,
    LEAST_REPLY,
    PERSON_SHARE,
    REPLY_CHARACTERS,
    REPLY_SHARE,
    Borders,
    fold_usage,
    quality_after,
    queue_reviews,
    session_name,
    spool_use,
    today,
    use_together,
    verdict,
)
from nacre.memories.vectors import passages
from nacre.operations import operation
from nacre.recall import ranking, requests
from nacre.recall.lanes import (
    Lanes,
    QueryVector,
    Ranking,
    ScoredMemory,
    choose,
    open_lanes,
    within,
)
from nacre.recall.question import (
    Question,
    as_prompt,
    asks,
    correct_spelling,
    parts_of,
    resolve_anchor,
)
from nacre.recall.ranking import (
    DEFAULT,
    DIVERSIFY_FROM,
    LAMBDA,
    Aspect,
    Hit,
    admission,
    confident,
    current_first,
    diverse,
    diversify,
    engine_of,
    in_one_list,
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
from nacre.recall.scoring import (
    BORDER,
    Signals,
    in_words,
    is_sure,
    matches,
    select_answering,
    sureness_of,
)
from nacre.recall.turns import ScoredTurn, TurnRecall
from nacre.store.schema import admits
from nacre.store.search import Corpus
from nacre.values.fields import References
from nacre.values.memory import Memory, Scope, by_id
from nacre.values.recall import (
    DEFAULT_RADIUS_DAYS,
    MEMORY_FIELDS,
    MOST_RADIUS_DAYS,
    Filter,
    HitConfidence,
    Lane,
    MemoryHit,
    Mode,
    Quote,
    RecallQuery,
    RecallResult,
    TurnHit,
)
from nacre.values.review import FeedbackReport, Judged, Reason, Verdict
from nacre.values.session import Flag, Speaker, StoredTurn, Trust, Turn


def rank_candidates(
    home: Home, query: RecallQuery, question: Question, criteria: Filter, lanes: Lanes
) -> list[ScoredMemory]:
    """Return the pending candidates that pass a filter, and the confidence that each is relevant.

    They are compared one by one, because the full-text index contains only memories.
    """
    if query.mode is Mode.BROWSE or question.is_open:
        return []
    pending = [item.memory for item in home.candidates.pending() if admits(criteria, item.memory)]
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
        scored.append(
            ScoredMemory(memory, sure, components, signals, sure, fit=sureness.fit(signals))
        )
    return scored


def less_likely(hits: Sequence[ScoredMemory], likely: Sequence[ScoredMemory]) -> list[ScoredMemory]:
    """Return the weak hits to show after the likely ones, the most confident first.

    If a hit is almost certain, only weak hits with every word of the question are shown.
    """
    shows_weak = not any(map(is_sure, (*hits, *likely)))
    selected = [
        item
        for item in hits
        if item.confidence >= BORDER or item.signals.whole or (shows_weak and matches(item))
    ]
    return sorted(selected, key=lambda item: (item.signals.whole, item.confidence), reverse=True)


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


# -- Recall and session search ---------------------------------------------------------------------


Keep = Callable[[Sequence[ScoredTurn]], list[ScoredTurn]]
_MAX_QUERY_CHARACTERS = 20_000
_CATCH_UP_SECONDS = 0.2
_SHARE_OF_BEST = 0.8
"""Minimum confidence of a memory relative to the best one."""
_MAX_POOL = 6_400
_MAX_TURNS_AHEAD = 200
"""Maximum number of turns to read in search of an answer."""
_CONVERSATION_TURNS = 20
"""Maximum distance between turns that form one result."""
_TURN_POOL = 60
_QUOTES = (4, 4, 1)
"""Number of turns to quote with the first, second and third result."""
_ASKING_CHARACTERS = 500
_INHERITED = 0.95
"""Share of a turn's score that passes to the next turn of the conversation."""
_LATER, _STATEMENT, _RESULT, _FITTING = 0.2, 0.2, 0.13, 0.13
"""Bonuses for the last turn, the owner's statements, the agent's last messages, and fitting answers."""

_PROMPT_RECIPE = replace(DEFAULT, window=150, candidates=40)
"""Lower limits for prompts, which must not wait and need only a few turns."""


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
    if question.is_open:
        query = replace(query, filter=within(query.filter, window_of(query, question)))
    ranked, criteria = rank_memories(
        home, query, question, ranking, vector=lanes.vector, lexical=lanes.lexical
    )
    ranked = _with_parts(home, query, ranked, criteria, ranking)
    likely = sure = confident(ranked, query, question)
    sure = newest_first(home, query, sure)
    raised, companion_hits = _with_companions(home, query, criteria, ranked, sure)
    selected = [*diverse(raised, query), *companion_hits]
    pending = [] if query.confident else rank_candidates(home, query, question, criteria, lanes)
    if not query.confident and query.mode is not Mode.BROWSE:
        shown_ids = {item.memory.id for item in (*likely, *companion_hits)}
        selected += less_likely(
            [*(item for item in ranked if item.memory.id not in shown_ids), *pending], selected
        )
    selected = [item for item in selected if item.score >= query.threshold]
    hits, truncated = _fit_budget(selected[: query.limit], query)
    ids = [] if query.filter.as_of else [item.memory.id for item in hits]
    newer = home.reviews.newer(ids)
    is_private = query.filter.scope is Scope.PRIVATE
    stale = home.memories.stale() if is_private and not query.filter.as_of else {}
    home_turns = home.turn_search.corpus(()).rows
    memory_hits = [
        MemoryHit(
            item.memory,
            round(item.score, 4),
            {**item.components, **_confidence_components(item)},
            in_words(item, home_turns),
            evidence_of(home, item.memory) if is_private else (),
            newer.get(item.memory.id, ()),
            stale.get(item.memory.id, (None, None))[1],
            candidate=item in pending,
        )
        for item in hits
    ]
    turns, scores = _turns_beside(home, query, question, lanes, is_sure=any(map(is_sure, hits)))
    if query.mode is Mode.BROWSE or question.is_open:
        # For a question about a time only, the conversations of that time come first.
        parts = (turns, memory_hits) if question.is_only_time else (memory_hits, turns)
        in_list: list[Hit] = [
            replace(hit, confidence=HitConfidence.SURE, rank=rank)
            for rank, hit in enumerate(chain(*parts))
        ]
    else:
        first_turns = {(hit.session.id, hit.seq) for hit in current_first(turns)[: query.turns]}
        in_list = [
            hit
            for hit in in_one_list(memory_hits, turns)
            if isinstance(hit, MemoryHit) or (hit.session.id, hit.seq) in first_turns
        ]
    result = RecallResult(
        query=text,
        hits=tuple(hit for hit in in_list if isinstance(hit, MemoryHit)),
        turns=tuple(
            _with_quotes(
                home,
                [hit for hit in in_list if isinstance(hit, TurnHit)][: query.turns],
                question,
                scores,
            )
        ),
        lanes=(*lanes.reports, *spelling),
        around=query.around,
        **_time_range(criteria, window_of(query, question)),
        truncated=truncated,
        took_ms=(time.perf_counter() - started) * 1000,
    )
    if query.update and query.mode is not Mode.BROWSE:
        sure_ids = {item.memory.id for item in sure}  # excludes companions
        if used := [item.memory.id for item in hits if item.memory.id in sure_ids]:
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

    With ``exact``, if any turns contain every word of the question, only they are returned.
    ``admits`` is a further filter.
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
    reach = _MAX_POOL if admits else needed

    def find(keep: Keep, pool: int = 0) -> list[TurnHit]:
        hits = _rank_turns(home, query, question, lanes, reach, keep, pool)
        return [hit for hit in hits if not admits or admits(hit.turn)]

    hits = (exact and find(_complete, _MAX_POOL)) or find(
        lambda ranked: list(filter(matches, ranked))
    )
    page = in_one_list((), hits[offset : needed - 1])
    return RecallResult(
        query=text,
        turns=tuple(hit for hit in page if isinstance(hit, TurnHit)),
        lanes=(*lanes.reports, *spelling),
        around=query.around,
        **_time_range(query.filter, window_of(query, question)),
        truncated=len(hits) >= needed,
        took_ms=(time.perf_counter() - started) * 1000,
    )


def turns_for_prompt(home: Home, query: RecallQuery) -> Iterator[tuple[Mode, list[TurnHit]]]:
    """Yield the best turns found by words alone, then by words and meaning if the mode allows this.

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
        matching = list(filter(matches, ranked))
        yield (
            mode,
            _turn_hits(
                home, matching, home.sessions.by_rows([item.row for item in matching]), question
            ),
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
    def read(text: str) -> Question:
        question = read_plainly(home, text, ignore_time=query.ignore_time)
        return as_prompt(question) if query.is_prompt else question

    question = read(query.text)
    if query.ignore_time:
        return question
    engine = TurnRecall(home.turn_search, home.sessions, home.selection)
    return resolve_anchor(question, lambda event: engine.time_of(read(event), query.filter))


def check(query: RecallQuery) -> None:
    """Raise InvalidQueryError if the query is invalid."""
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
        raise InvalidQueryError("--since is after --until", hint="swap the two dates")
    if not 0 < query.radius_days <= MOST_RADIUS_DAYS:
        raise InvalidQueryError(
            f"the radius must be above 0 and at most {MOST_RADIUS_DAYS:,} days",
            hint="14 covers two weeks before and two weeks after the day",
        )
    if query.around is None and query.radius_days != DEFAULT_RADIUS_DAYS:
        raise InvalidQueryError(
            "a radius needs a date to be around", hint="add the date: --around 2026-11-20"
        )
    if query.limit < 1:
        raise InvalidQueryError("the limit must be at least 1", hint="10 is the usual limit")


def _with_parts(
    home: Home, query: RecallQuery, ranked: list[ScoredMemory], criteria: Filter, ranking: Ranking
) -> list[ScoredMemory]:
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


def _with_companions(
    home: Home,
    query: RecallQuery,
    criteria: Filter,
    ranked: Sequence[ScoredMemory],
    hits: list[ScoredMemory],
) -> tuple[list[ScoredMemory], list[ScoredMemory]]:
    seeds = ranking.seeds(hits)
    if not seeds or not query.co_recall or not query.boost or query.mode is Mode.BROWSE:
        return hits, []
    weights = ranking.pulls(home.co_recall.of(seeds, today(home)))
    if not weights:
        return hits, []
    hit_ids = {item.memory.id for item in hits}
    other_hits = [
        item for item in ranked if item.memory.id not in hit_ids and item.memory.is_vouched
    ]
    ranked_ids = {item.memory.id for item in ranked}
    unranked = {
        memory_id for memory_id, weight in weights.items() if weight >= ranking.COMPANION_WEIGHT
    } - ranked_ids
    unsolicited = replace(criteria, trusted=True, settled=True)
    admitted = (
        home.selection.admitted_memories(unsolicited, today=home.today()) if unranked else set()
    )
    companions = [
        memory for row, memory in home.memories.rows_of(sorted(unranked)).items() if row in admitted
    ]
    return ranking.lift(hits, weights), ranking.companions(hits, other_hits, companions, weights)


def _fit_budget(ranked: list[ScoredMemory], query: RecallQuery) -> tuple[list[ScoredMemory], bool]:
    if not query.budget_tokens:
        return ranked, False
    fitting: list[ScoredMemory] = []
    tokens = query.budget_tokens
    for item in ranked:
        tokens -= count_tokens(f"{item.memory.subject}\n{item.memory.content}")
        if tokens < 0 and fitting:
            return fitting, True
        fitting.append(item)
    return fitting, False


def _turns_beside(
    home: Home, query: RecallQuery, question: Question, lanes: Lanes, *, is_sure: bool
) -> tuple[list[TurnHit], Mapping[int, float]]:
    criteria = query.filter
    if not query.turns or question.lists or any(getattr(criteria, name) for name in MEMORY_FIELDS):
        return [], {}
    if question.is_only_time:
        return _first_requests(home, query, question), {}

    scores: dict[int, float] = {}

    def keep(ranked: Sequence[ScoredTurn]) -> list[ScoredTurn]:
        scores.update((item.row, item.score) for item in ranked)
        weak = [] if is_sure or query.confident else [item for item in ranked if matches(item)]
        return _one_per_conversation(select_answering("turns", ranked) or weak)[: 4 * query.turns]

    hits = _rank_turns(home, query, question, lanes, 2 * query.turns, keep, _TURN_POOL)
    return [hit for hit in hits if criteria.as_of or not _is_outdated(home, hit, question)], scores


def _one_per_conversation(ranked: Sequence[ScoredTurn]) -> list[ScoredTurn]:
    kept: list[ScoredTurn] = []
    for item in ranked:
        session, seq = item.place
        if not any(
            other.place[0] == session and abs(other.place[1] - seq) <= _CONVERSATION_TURNS
            for other in kept
        ):
            kept.append(item)
    return kept


def _first_requests(home: Home, query: RecallQuery, question: Question) -> list[TurnHit]:
    first: dict[int, StoredTurn] = {}
    for rows in home.selection.newest_turns(replace(query.filter, owner_only=True)):
        turns = home.sessions.by_rows(rows)
        first |= {
            turns[row].session: turns[row]
            for row in rows
            if not turns[row].turn.flags & (Flag.META | Flag.SUMMARY)
        }
        if len(first) >= query.turns:
            break
    ranked = [
        ScoredTurn(item.row, (item.session, item.seq), 1.0, {}, Signals(1.0, 1.0, None), 1.0, 0.0)
        for item in islice(first.values(), query.turns)
    ]
    return _turn_hits(home, ranked, {item.row: item for item in first.values()}, question)


def _with_quotes(
    home: Home, hits: Sequence[TurnHit], question: Question, scores: Mapping[int, float]
) -> Iterator[TurnHit]:
    shown = {(hit.session.id, hit.seq) for hit in hits}
    for hit, most in zip(hits, chain(_QUOTES, repeat(0)), strict=False):
        turns = (
            _conversation(home, hit) if most and hit.confidence is not HitConfidence.WEAK else []
        )
        worth = dict(_worths(turns, question, scores))
        quotable = [item for item in turns if (hit.session.id, item.seq) not in shown]
        matching = max(quotable, key=lambda item: scores.get(item.row, 0.0), default=None)
        best = nlargest(
            most, quotable, key=lambda item: (item is matching and most > 1, worth[item.seq])
        )
        if hit is hits[0]:
            best += [
                answer
                for request, answer in pairwise(turns)
                if answer.turn.speaker is Speaker.AGENT
                and request in best
                and answer in quotable
                and answer not in best
            ]
        shown |= {(hit.session.id, item.seq) for item in best}
        best.sort(key=lambda item: item.seq)
        quotes = (
            Quote(item.seq, item.turn.speaker, question.excerpt(item.turn.text)) for item in best
        )
        yield replace(hit, quotes=tuple(quotes))


def _conversation(home: Home, hit: TurnHit) -> list[StoredTurn]:
    stored = home.sessions.find_said(hit.session.id, hit.turn.id)
    if stored is None:
        return []
    turns = [
        item
        for item in home.sessions.turns_of(
            stored.session, first=max(0, stored.seq - _CONVERSATION_TURNS), limit=_MAX_TURNS_AHEAD
        )
        if item.turn.text
        and item.turn.trust is Trust.TRUSTED
        and not item.turn.flags & (Flag.META | Flag.SUMMARY)
    ]
    return [
        item
        for item, following in zip_longest(turns, turns[1:])
        if not (item.turn.tool_calls and following and following.turn.speaker is Speaker.AGENT)
    ]


def _worths(
    turns: Sequence[StoredTurn], question: Question, scores: Mapping[int, float]
) -> Iterator[tuple[int, float]]:
    """Estimate how well each turn answers the question. A short reply matches few of its words, so
    it inherits part of the previous turns' scores.
    """
    topic, was_asked = 0.0, False
    for at, (item, following) in enumerate(zip_longest(turns, turns[1:])):
        text = item.turn.text
        topic = max(scores.get(item.row, 0.0), _INHERITED * topic)
        worth = topic + _LATER * at / len(turns) + _FITTING * question.is_answered_by(text)
        if item.turn.speaker is Speaker.AGENT:
            worth += _RESULT * (not following or following.turn.speaker is Speaker.OWNER)
        elif not asks(text[-_ASKING_CHARACTERS:]):
            worth += _STATEMENT * (item.row in scores or was_asked)
        was_asked = asks(text[-_ASKING_CHARACTERS:])
        yield item.seq, worth


def answer_after(home: Home, session: int, seq: int) -> Turn | None:
    """Return the agent's last message, from ``seq`` on, before the owner's next one.

    ``session`` is the session's row in the database.
    """
    last = None
    for item in home.sessions.turns_of(session, first=seq, limit=_MAX_TURNS_AHEAD):
        turn = item.turn
        if turn.speaker is Speaker.OWNER and not turn.flags & Flag.META:
            break
        if turn.speaker is Speaker.AGENT and turn.text and not turn.flags & Flag.SUMMARY:
            last = turn
    return last


def _is_outdated(home: Home, hit: TurnHit, question: Question) -> bool:
    statements = home.comparisons.stated_in(hit.session.id, hit.turn.id)
    question_words = set(question.words)
    nearness = [
        (len(question_words.intersection(words(text))), not old) for text, old in statements
    ]
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
    if query.diversify and ranked:
        highest = ranked[0].score
        ranked = diversify(
            ranked,
            score=lambda item: item.score / highest,
            text=lambda item: stored[item.row].turn.text,
            limit=limit,
            relevance_share=LAMBDA if query.mmr_lambda is None else query.mmr_lambda,
        )
    return _turn_hits(home, ranked[:limit], stored, question)


def _complete(ranked: Sequence[ScoredTurn]) -> list[ScoredTurn]:
    complete = [item for item in ranked if item.signals.whole]
    return complete if any("asks" not in item.components for item in complete) else []


def _turn_hits(
    home: Home, ranked: Sequence[ScoredTurn], stored: Mapping[int, StoredTurn], question: Question
) -> list[TurnHit]:
    sessions = {row: home.sessions.get(row) for row in {item.place[0] for item in ranked}}
    home_turns = home.turn_search.corpus(()).rows
    return [
        TurnHit(
            session=sessions[item.place[0]].session,
            project=sessions[item.place[0]].project,
            turn=stored[item.row].turn,
            seq=stored[item.row].seq,
            score=round(item.score, 4),
            excerpt=question.excerpt(readable(stored[item.row].turn)),
            components={**item.components, **_confidence_components(item)},
            confidence=in_words(item, home_turns),
        )
        for item in ranked
    ]


def readable(turn: Turn) -> str:
    """Return the text of a turn, or its tool calls if it has no text."""
    return turn.text or "; ".join(f"{call.name}: {call.input}" for call in turn.tool_calls)


def _confidence_components(item: ScoredMemory | ScoredTurn) -> dict[str, float]:
    signals = item.signals
    values = {"sure": item.confidence, "fit": item.fit, "coverage": signals.coverage}
    if signals.own != signals.coverage:
        values["own"] = signals.own
    if signals.unknown:
        values["unknown"] = signals.unknown
    if signals.cosine is not None:
        values["cosine"] = signals.cosine
    return {name: round(value, 4) for name, value in values.items()}


# -- Feedback --------------------------------------------------------------------------------------


_Finding = tuple[Verdict, float | None]
_REPLY = ""


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
            "no memories were given to judge",
            hint="give the memories, or the session that used them",
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
    contents = {memory.id: memory.content for memory in (*memories, *corrections)}
    borders, similarity = _similarities(home, {_REPLY: text, **contents})
    findings: dict[str, _Finding] = {}
    for memory in memories:
        repeated = max(
            (
                max(similarity(memory.id, other.id), similarity(other.id, memory.id))
                for other in corrections
                if other.id != memory.id
            ),
            default=0.0,
        )
        likeness = similarity(memory.id, _REPLY)
        findings[memory.id] = verdict(likeness, repeated, borders), likeness
    with home.transaction():
        judged = _judge(home, memories, findings, REPLY_SHARE)
        if session and not references:
            # Each use is judged only once. The used memories also count as used together.
            name = session_name(session)
            home.session_uses.judge(name, [item.memory_id for item in judged])
            used = [item.memory_id for item in judged if item.verdict is Verdict.USED]
            use_together(home, name, used, today(home))
    return FeedbackReport(judged, borders.name)


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
    finding = Verdict.USED if good else Verdict.CORRECTED, None
    with home.transaction():
        judged = _judge(home, memories, {memory.id: finding for memory in memories}, PERSON_SHARE)
        for memory in memories if not good else ():
            at = home.now_ms()
            home.reviews.add(memory.id, Reason.MANUAL, "you called it bad", at, once=False)
    return FeedbackReport(judged, "person")


def _judge(
    home: Home, memories: Sequence[Memory], findings: Mapping[str, _Finding], share: float
) -> tuple[Judged, ...]:
    usage = home.usage.of([memory.id for memory in memories])
    judged = []
    for memory in memories:
        before, (judgement, likeness) = usage[memory.id].quality, findings[memory.id]
        after = quality_after(before, judgement, memory.kind, share)
        home.usage.set_quality(memory.id, after)
        judged.append(Judged(memory.id, memory.subject, judgement, likeness, before, after))
    queue_reviews(home)
    return tuple(judged)


def _memories_named(home: Home, references: Sequence[str]) -> list[Memory]:
    memories = [get(home, reference) for reference in references]
    return list(by_id(memories).values())


def _used_in(home: Home, session: str) -> list[Memory]:
    ids = home.session_uses.unjudged(session_name(session))
    active = by_id(home.memories.rows_of(ids).values())
    return [active[memory_id] for memory_id in ids if memory_id in active]


def _similarities(
    home: Home, texts: Mapping[str, str]
) -> tuple[Borders, Callable[[str, str], float]]:
    if home.settings.embeds:
        try:
            embedder = embedder_of(home, BUNDLED)
            vectors = {key: embedder.embed(passages(text)) for key, text in texts.items()}
            calibration = calibration_of(embedder.name)
            borders = Borders("cosine", calibration.used, calibration.corrected)
            return borders, lambda key, other: float((vectors[key] @ vectors[other].T).max())
        except EmbedderUnavailableError:
            pass
    stems = {
        key: {
            term.stem
            for term in home.memory_search.terms(
                [word for word in words(text) if word not in STOP_WORDS]
            )
        }
        for key, text in texts.items()
    }
    return BY_WORDS, lambda key, other: len(stems[key] & stems[other]) / max(1, len(stems[key]))


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
