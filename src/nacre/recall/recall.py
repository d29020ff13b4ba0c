"""Recall over pending candidates: by the words of each, and by the meaning of the turns that show it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TypeVar

from nacre.base.ids import to_ms
from nacre.base.text import STOP_WORDS, count_tokens, excerpt, segment, words
from nacre.base.times import Window
from nacre.errors import EmbedderUnavailable, QueryInvalid
from nacre.home.consent import embedder_of
from nacre.home.home import BUNDLED, Home
from nacre.home.location import with_dependencies
from nacre.llm.local_model import calibration_of
from nacre.memories.decision import evidence_of
from nacre.memories.edit import catch_up
from nacre.memories.spaces import with_further_spaces
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
from nacre.recall import ranking
from nacre.recall.advice import is_guessed, phrased, regraded
from nacre.recall.lanes import (
    Lanes,
    QueryVector,
    Ranking,
    ScoredMemory,
    choose,
    open_lanes,
    rescored,
    within,
)
from nacre.recall.question import (
    Question,
    anchored,
    as_prompt,
    find_anchor,
    parts_of,
    read_question,
    spelled,
)
from nacre.recall.ranking import (
    DEFAULT,
    DIVERSIFY_FROM,
    LAMBDA,
    Aspect,
    FeedbackRequest,
    JudgeRequest,
    TurnQuery,
    admission,
    confident,
    diverse,
    diversify,
    doubts,
    engine_of,
    most_of,
    newest_first,
    note_case,
    note_verdicts,
    rank_memories,
    ranking_of,
    window_of,
    with_error,
)
from nacre.recall.scoring import BORDER, answering, in_words, is_sure, matches, sureness_of
from nacre.recall.turns import ScoredTurn, TurnRecall
from nacre.store.search import Corpus
from nacre.values.memory import Memory, Scope
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
from nacre.values.review import FeedbackReport, Judged, Reason, Usage, Verdict
from nacre.values.session import Speaker, StoredTurn, Trust, Turn


def rank_candidates(
    home: Home, query: RecallQuery, question: Question, wanted: Filter, lanes: Lanes
) -> list[ScoredMemory]:
    """The pending candidates that a filter admits, with their confidence. They are not in the full-text index."""
    if query.mode is Mode.BROWSE or question.is_open:
        return []
    waiting = [one.memory for one in home.candidates.waiting() if _admits(wanted, one.memory)]
    if not waiting:
        return []
    stems = [
        frozenset(home.database.stems(segment(f"{one.subject}. {one.content}"))) for one in waiting
    ]
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
        signals = replace(
            coverage.signals(places, cosine=cosines.get(memory.id)), empty=question.says_nothing
        )
        sure = sureness.confidence(signals)
        components = {"lexical": round(signals.coverage, 4)} if places else {}
        found.append(ScoredMemory(memory, sure, components, signals, sure))
    return found


def less_likely(
    found: Sequence[ScoredMemory], likely: Sequence[ScoredMemory]
) -> list[ScoredMemory]:
    """Candidates that answer and weak hits, the surest first, to be shown after the likely memories.

    Where any hit is sure, a weak one is only shown if it holds every word of the question.
    """
    shows_weak = not any(map(is_sure, (*found, *likely)))
    shown = [
        item
        for item in found
        if item.confidence >= BORDER or item.signals.whole or (shows_weak and matches(item))
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
    """Whether a candidate passes a filter, as :func:`nacre.store.schema.memory_clause` decides for memories."""
    session, tags = memory.source.session or "", {tag.lower() for tag in memory.tags}
    return (
        not (wanted.as_of or wanted.settled or wanted.scope is not Scope.PRIVATE)
        and (
            not wanted.projects
            or memory.project in wanted.projects
            or not (memory.project or wanted.strict)
        )
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


# ----------------------------------------------------------------------------
# Answer questions: memories, and the turns of sessions beside them.


Hit = TypeVar("Hit", ScoredMemory, ScoredTurn)
Keep = Callable[[Sequence[ScoredTurn]], list[ScoredTurn]]
_MAX_QUERY_CHARACTERS = 20_000
_PATIENCE_SECONDS = 0.2
_ASKED_FIRST = 100
_ASKED_MOST = 6_400


def recall(home: Home, query: RecallQuery) -> RecallResult:
    """The memories that answer a question, the best first. Raises QueryInvalid.

    What a person changed by hand is taken in first. The answer itself writes only one line to a spool, which the next
    writing command folds into usage.
    """
    started = time.perf_counter()
    check(query)
    given, query = query, _in_scope(home, query)
    if not query.is_prompt:
        catch_up(home, _PATIENCE_SECONDS)
    asked = query.text
    query, spelling = _spelled(home, query)
    question = _read(home, query)
    lanes = open_lanes(home, query, question)
    ranking = ranking_of(home, query, question)
    ranked, wanted = rank_memories(
        home, query, question, ranking, vector=lanes.vector, lexical=lanes.lexical
    )
    ranked = _with_parts(home, query, ranked, wanted, ranking)
    ranked, expansion = _expanded(home, query, question, ranked, wanted, ranking)
    likely = confident(ranked, query, question)
    sure = _looked_at_again(lanes, likely, _memory_text)
    sure, graded = _graded(home, query, sure)
    sure = newest_first(home, query, sure)
    kept, along = _co_recalled(home, query, wanted, ranked, sure)
    shown = [*diverse(kept, query), *along]
    waiting = [] if query.confident else rank_candidates(home, query, question, wanted, lanes)
    if not query.confident and query.mode is not Mode.BROWSE:
        known = {item.memory.id for item in (*likely, *along)}
        shown += less_likely(
            [*(item for item in ranked if item.memory.id not in known), *waiting], shown
        )
    shown = [item for item in shown if item.score >= query.threshold]
    hits, truncated = _cut(shown[: query.limit], query)
    outdated = [] if query.filter.as_of else doubts(home, hits)
    result = RecallResult(
        query=asked,
        hits=_memory_hits(
            home,
            hits,
            query,
            outdated,
            waiting,
            is_listed=query.mode is Mode.BROWSE or question.is_open,
        ),
        turns=tuple(_turns_beside(home, query, question, lanes, is_sure=any(map(is_sure, hits)))),
        lanes=(*lanes.told(), *spelling, *expansion, *graded),
        around=query.around,
        **_times(wanted, ranking.window),
        truncated=truncated,
        took_ms=(time.perf_counter() - started) * 1000,
    )
    if query.update and query.mode is not Mode.BROWSE:
        _note_use(home, query, sure, hits)
        note_case(home, query, result)
    return with_further_spaces(home, given, result, recall)


def search_sessions(
    home: Home,
    query: RecallQuery,
    *,
    offset: int = 0,
    admits: Callable[[Turn], bool] | None = None,
    exact: bool = True,
) -> RecallResult:
    """Return the turns that match a question, the best first. Raises QueryInvalid.

    If any turn holds every word of the question and does more than ask, only turns that hold every word are returned,
    unless ``exact`` is false. ``admits`` leaves out what it does not admit; it is asked of ever more of the best turns
    until enough are found. ``truncated`` says that there are more.
    """
    started = time.perf_counter()
    check(query)
    asked = query.text
    query, spelling = _spelled(home, _in_scope(home, query))
    question = _read(home, query)
    lanes = open_lanes(home, query, question)
    if offset or admits:
        query = replace(query, diversify=False)
    wanted = offset + query.limit + 1

    def find(keep: Keep, most: int, pool: int = 0) -> tuple[list[TurnHit], bool]:
        found = _rank_turns(home, query, question, lanes, most, keep, pool)
        return [hit for hit in found if admits is None or admits(hit.turn)], len(found) < most

    hits = find(_whole, wanted if admits is None else _ASKED_MOST, _ASKED_MOST)[0] if exact else []
    reach = wanted if admits is None else max(wanted, _ASKED_FIRST)
    while not hits:
        found, is_all = find(lambda ranked: list(filter(matches, ranked)), reach)
        if len(found) >= wanted or is_all or reach >= _ASKED_MOST:
            hits = found
            break
        reach *= 4
    return RecallResult(
        query=asked,
        turns=tuple(hits[offset : wanted - 1]),
        lanes=(*lanes.told(), *spelling),
        around=query.around,
        **_times(query.filter, window_of(query, question)),
        truncated=len(hits) >= wanted,
        took_ms=(time.perf_counter() - started) * 1000,
    )


def _times(given: Filter, window: Window | None) -> dict[str, Any]:
    """Return the times of an answer: those that were given, else those that were read from the question."""
    asked = window or given
    return {
        "since": asked.since,
        "until": asked.until,
        "time_words": window.words.strip() if window else None,
    }


def _in_scope(home: Home, query: RecallQuery) -> RecallQuery:
    """The query with what its projects depend on, and without what is untrusted where the owner wants none.

    That of a prompt has the filter of its context.
    """
    if not query.is_prompt:
        query = replace(query, filter=with_dependencies(home, query.filter))
    if query.filter.trusted or not home.settings.flag("recall.trusted"):
        return query
    return replace(query, filter=replace(query.filter, trusted=True))


def _spelled(home: Home, query: RecallQuery) -> tuple[RecallQuery, tuple[Lane, ...]]:
    """The query with misspelt words as they are known, where that is wanted, and which these are."""
    if not query.fuzzy or query.mode is Mode.BROWSE:
        return query, ()
    text, lane = spelled(home, query.text)
    return replace(query, text=text), (lane,)


def _read(home: Home, query: RecallQuery) -> Question:
    """The question taken apart, with the time of what it says happened before or after it."""
    authors, projects = home.sessions.authors(), home.sessions.projects()

    def read(text: str) -> Question:
        question = read_question(
            text, now=home.now(), authors=authors, projects=projects, ignore_time=query.ignore_time
        )
        return as_prompt(question) if query.is_prompt else question

    question = read(query.text)
    if query.ignore_time or find_anchor(question) is None:
        return question
    engine = TurnRecall(home.turn_search, home.sessions, home.selection)
    return anchored(question, lambda event: engine.when(read(event), query.filter))


def _note_use(
    home: Home, query: RecallQuery, sure: Sequence[ScoredMemory], hits: Sequence[ScoredMemory]
) -> None:
    """Note the use of the shown memories that are likely to answer, not of those that only came along."""
    likely = {item.memory.id for item in sure}
    used = [item.memory.id for item in hits if item.memory.id in likely]
    if used:
        spool_use(home, used, session=query.session)


def check(query: RecallQuery) -> None:
    """Raises QueryInvalid for what cannot be asked."""
    if not query.text.strip() and query.mode is not Mode.BROWSE:
        raise QueryInvalid(
            "the question is empty", hint="ask something, or browse: nacre recall --browse"
        )
    if len(query.text) > _MAX_QUERY_CHARACTERS:
        raise QueryInvalid(
            f"the question is longer than {_MAX_QUERY_CHARACTERS:,} characters", hint="shorten it"
        )
    wanted = query.filter
    if wanted.since and wanted.until and wanted.since >= wanted.until:
        raise QueryInvalid("--since lies after --until", hint="exchange them")
    if not 0 < query.radius_days <= MOST_RADIUS_DAYS:
        raise QueryInvalid(
            f"the radius must be above 0 and at most {MOST_RADIUS_DAYS:,} days",
            hint="14 days reach a fortnight to either side",
        )
    if query.around is None and query.radius_days != DEFAULT_RADIUS_DAYS:
        raise QueryInvalid(
            "a radius is around a day, and none is given", hint="add the day: --around 2026-11-20"
        )
    if query.limit < 1:
        raise QueryInvalid("the limit must be at least 1", hint="10 is the usual limit")


def _with_parts(
    home: Home, query: RecallQuery, ranked: list[ScoredMemory], wanted: Filter, ranking: Ranking
) -> list[ScoredMemory]:
    """The hits of a prompt, with those of each of its sentences."""
    found = [ranked]
    for asked in (
        _read(home, replace(query, text=part))
        for part in (parts_of(query.text) if query.is_prompt else ())
    ):
        lanes = open_lanes(home, query, asked)
        found.append(
            engine_of(home).rank(asked, wanted, ranking, vector=lanes.vector, lexical=lanes.lexical)
        )
    return most_of(found) if len(found) > 1 else ranked


def _expanded(
    home: Home,
    query: RecallQuery,
    question: Question,
    ranked: list[ScoredMemory],
    wanted: Filter,
    ranking: Ranking,
) -> tuple[list[ScoredMemory], tuple[Lane, ...]]:
    """The hits with those of other phrasings of the question, where they are wanted, and what became of that."""
    if not query.expand or question.is_open or query.mode is Mode.BROWSE:
        return ranked, ()
    phrasings, lane = phrased(home, query.text)
    found = [ranked]
    engine = engine_of(home)
    for phrasing in phrasings:
        asked = _read(home, replace(query, text=phrasing))
        if not asked.is_open:
            lanes = open_lanes(home, query, asked)
            hits = engine.rank(asked, wanted, ranking, vector=lanes.vector, lexical=lanes.lexical)
            found.append(
                [replace(one, confidence=0.0) for one in hits]
                if is_guessed(phrasing, query.text)
                else hits
            )
    return most_of(found) if len(found) > 1 else ranked, (lane,)


def _graded(
    home: Home, query: RecallQuery, sure: list[ScoredMemory]
) -> tuple[list[ScoredMemory], tuple[Lane, ...]]:
    """The hits as a language model orders them, where that is wanted."""
    if not query.rerank or query.mode is Mode.BROWSE or not sure:
        return sure, ()
    again, lane = regraded(home, query.text, sure)
    return again, (lane,)


def _co_recalled(
    home: Home,
    query: RecallQuery,
    wanted: Filter,
    ranked: Sequence[ScoredMemory],
    hits: list[ScoredMemory],
) -> tuple[list[ScoredMemory], list[ScoredMemory]]:
    """The hits with what use together adds, and what comes along below them."""
    seeds = ranking.seeds(hits)
    if not seeds or not query.co_recall or not query.boost or query.mode is Mode.BROWSE:
        return hits, []
    drawn = ranking.pulls(home.co_recall.of(seeds, today(home)))
    if not drawn:
        return hits, []
    shown = {item.memory.id for item in hits}
    others = [item for item in ranked if item.memory.id not in shown and item.memory.is_vouched]
    known = {item.memory.id for item in ranked}
    unknown = {memory for memory, weight in drawn.items() if ranking.may_come_along(weight)} - known
    asked_by_nobody = replace(wanted, trusted=True, settled=True)
    admitted = (
        home.selection.admitted_memories(asked_by_nobody, today=home.today()) if unknown else set()
    )
    found = [
        memory for row, memory in home.memories.rows_of(sorted(unknown)).items() if row in admitted
    ]
    return ranking.lift(hits, drawn), ranking.companions(hits, others, found, drawn)


def _looked_at_again(lanes: Lanes, ranked: list[Hit], text: Callable[[Hit], str]) -> list[Hit]:
    """The hits after the reranker's look at the best of them, if there is one; the scores go to the places."""
    if lanes.second is None or len(ranked) < 2:
        return ranked
    again = lanes.second.reorder(ranked, score=lambda item: item.score, text=text)
    scores = sorted((item.score for item in ranked), reverse=True)
    return [_moved(item, score) for item, score in zip(again, scores, strict=True)]


def _moved(item: Hit, score: float) -> Hit:
    return rescored(item, score) if isinstance(item, ScoredMemory) else replace(item, score=score)


def _memory_text(item: ScoredMemory) -> str:
    return f"{item.memory.subject}. {item.memory.content}"


def _cut(ranked: list[ScoredMemory], query: RecallQuery) -> tuple[list[ScoredMemory], bool]:
    """As many hits as the token budget holds; the first hit always fits."""
    if not query.budget_tokens:
        return ranked, False
    kept: list[ScoredMemory] = []
    left = query.budget_tokens
    for item in ranked:
        left -= _tokens(item.memory)
        if left < 0 and kept:
            return kept, True
        kept.append(item)
    return kept, False


def _tokens(memory: Memory) -> int:
    return count_tokens(f"{memory.subject}\n{memory.content}")


def _memory_hits(
    home: Home,
    hits: Sequence[ScoredMemory],
    query: RecallQuery,
    outdated: Sequence[tuple[str, str]],
    waiting: Sequence[ScoredMemory],
    *,
    is_listed: bool,
) -> tuple[MemoryHit, ...]:
    """The hits as they are shown; what was said in sessions is private."""
    is_private = query.filter.scope is Scope.PRIVATE
    stale = home.memories.stale() if hits and is_private and not query.filter.as_of else {}
    return tuple(
        MemoryHit(
            item.memory,
            round(item.score, 4),
            {**item.components, **_absolute(item)},
            HitConfidence.SURE if is_listed else in_words(item.confidence),
            evidence_of(home, item.memory) if is_private else (),
            tuple(newer for older, newer in outdated if older == item.memory.id),
            stale[item.memory.id][1] if item.memory.id in stale else None,
            candidate=item in waiting,
        )
        for item in hits
    )


def _turns_beside(
    home: Home, query: RecallQuery, question: Question, lanes: Lanes, *, is_sure: bool
) -> list[TurnHit]:
    """Turns to show beside the memories: none where the filter speaks of what only memories have.

    Weak ones only where no turn is likely to answer and ``is_sure``, that a memory does, is false.
    What answers with a memory that was superseded is left out, unless the question is about the past.
    """
    wanted = query.filter
    if (
        not query.turns
        or question.lists
        or wanted.kinds
        or wanted.tags
        or wanted.expiry
        or wanted.min_importance is not None
    ):
        return []
    if question.is_only_time:
        query = replace(query, filter=within(query.filter, window_of(query, question)))

    def keep(ranked: Sequence[ScoredTurn]) -> list[ScoredTurn]:
        weak = [] if is_sure or query.confident else [item for item in ranked if matches(item)]
        return answering("turns", ranked) or weak

    hits = _rank_turns(home, query, question, lanes, 2 * query.turns, keep)
    current = (hit for hit in hits if wanted.as_of or not _is_outdated(home, hit, question))
    return list(islice(current, query.turns))


def _is_outdated(home: Home, hit: TurnHit, question: Question) -> bool:
    """Whether what a turn says to the question was superseded: what it is evidence of, nearest to the question."""
    stated = home.comparisons.stated_in(hit.session.id, hit.turn.id)
    asked = set(question.words)
    nearest = max(
        stated, key=lambda one: (len(asked.intersection(words(one[0]))), not one[1]), default=None
    )
    return nearest is not None and nearest[1]


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

    def said(item: ScoredTurn) -> str:
        return stored[item.row].turn.text

    ranked = _looked_at_again(lanes, ranked, said)
    if query.diversify and ranked:
        highest = ranked[0].score
        chosen = diversify(
            ranked,
            score=lambda item: item.score / highest,
            text=said,
            limit=limit,
            relevance_share=LAMBDA if query.mmr_lambda is None else query.mmr_lambda,
        )
        ranked = [item for item, _ in chosen]
    return _turn_hits(home, ranked[:limit], stored, question)


def _whole(ranked: Sequence[ScoredTurn]) -> list[ScoredTurn]:
    """The turns that hold every word of the question; none where all of them only ask."""
    found = [item for item in ranked if item.signals.whole]
    return found if any("asks" not in item.components for item in found) else []


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
            components={**item.components, **_absolute(item)},
            confidence=in_words(item.confidence),
        )
        for item in ranked
    ]


def readable(turn: Turn) -> str:
    """What a turn said, or what it did where it said nothing."""
    return turn.text or "; ".join(f"{call.name}: {call.input}" for call in turn.tool_calls)


def _absolute(item: ScoredMemory | ScoredTurn) -> dict[str, float]:
    """How sure a hit is, and the signals that say so."""
    signals = item.signals
    found = {"sure": item.confidence, "coverage": signals.coverage}
    if signals.unknown:
        found["unknown"] = signals.unknown
    if signals.cosine is not None:
        found["cosine"] = signals.cosine
    return {name: round(value, 4) for name, value in found.items()}


# ----------------------------------------------------------------------------
# What a reply, or a person, says of the memories that were recalled for it.


@dataclass(frozen=True, slots=True)
class _Measure:
    """How like texts are: ``holds`` is how much of a memory is in the reply, ``repeats`` how like two memories are."""

    borders: Borders
    holds: Callable[[Memory], float]
    repeats: Callable[[Memory, Memory], float]


def feedback(
    home: Home,
    reply: str,
    references: Sequence[str] = (),
    *,
    session: str | None = None,
    stored: Sequence[str] = (),
) -> FeedbackReport:
    """Judge memories by an agent's reply: used, not used, or corrected.

    They are those named, else those used in the host's session since the last feedback on it. ``stored`` names what
    the agent itself stored meanwhile. The reply is compared and not kept. Raises QueryInvalid where neither memories
    nor a session are named, NotFound, Conflict.
    """
    if not references and not session:
        raise QueryInvalid(
            "nothing says which memories to judge",
            hint="name them, or the session they were used in",
        )
    catch_up(home)
    fold_usage(home)
    memories = _named(home, references) if references else _used_in(home, session or "")
    corrections = _named(home, stored)
    said = home.redactor.clean(reply.strip()[:REPLY_CHARACTERS])
    if len(said) < LEAST_REPLY:
        return FeedbackReport(
            note=f"the reply has fewer than {LEAST_REPLY} characters, too few to judge by"
        )
    if not memories:
        return FeedbackReport(note="no memory was used in that session since the last feedback")
    measure = _measure(home, said, [*memories, *corrections])
    heard = {}
    for memory in memories:
        anew = max(
            (measure.repeats(memory, other) for other in corrections if other.id != memory.id),
            default=0.0,
        )
        likeness = measure.holds(memory)
        heard[memory.id] = _Heard(verdict(likeness, anew, measure.borders), likeness)
    with home.database.transaction():
        judged = _judge(home, memories, heard, REPLY_SHARE)
        if session and not references:
            _settle(home, session_name(session), judged)
        note_verdicts(home, judged, session)
    return FeedbackReport(judged, measure.borders.name)


def judge(home: Home, references: Sequence[str], *, good: bool) -> FeedbackReport:
    """A person's own verdict; what they call bad also waits for review. Raises NotFound, Conflict."""
    catch_up(home)
    fold_usage(home)
    memories = _named(home, references)
    said = _Heard(Verdict.USED if good else Verdict.CORRECTED, None)
    with home.database.transaction():
        judged = _judge(home, memories, {memory.id: said for memory in memories}, PERSON_SHARE)
        for memory in memories if not good else ():
            at = to_ms(home.now()) or 0
            home.reviews.add(memory.id, Reason.MANUAL, "you called it bad", at, once=False)
        note_verdicts(home, judged, None)
    return FeedbackReport(judged, "person")


@dataclass(frozen=True, slots=True)
class _Heard:
    verdict: Verdict
    likeness: float | None


def _judge(
    home: Home, memories: Sequence[Memory], heard: dict[str, _Heard], share: float
) -> tuple[Judged, ...]:
    usage = home.usage.of([memory.id for memory in memories])
    judged = []
    for memory in memories:
        before, said = usage.get(memory.id, Usage()).quality, heard[memory.id]
        after = quality_after(before, said.verdict, memory.kind, share)
        home.usage.set_quality(memory.id, after)
        judged.append(Judged(memory.id, memory.subject, said.verdict, said.likeness, before, after))
    queue_reviews(home)
    return tuple(judged)


def _settle(home: Home, session: str, judged: Sequence[Judged]) -> None:
    """A reply is heard once on every use; what it used it used together."""
    home.session_uses.judge(session, [item.memory_id for item in judged])
    used = [item.memory_id for item in judged if item.verdict is Verdict.USED]
    use_together(home, session, used, today(home))


def _named(home: Home, references: Sequence[str]) -> list[Memory]:
    found = [get(home, reference) for reference in references]
    return list({memory.id: memory for memory in found}.values())


def _used_in(home: Home, session: str) -> list[Memory]:
    ids = home.session_uses.unjudged(session_name(session))
    active = {memory.id: memory for memory in home.memories.rows_of(ids).values()}
    return [active[memory_id] for memory_id in ids if memory_id in active]


def _measure(home: Home, reply: str, memories: Sequence[Memory]) -> _Measure:
    """By vectors where there is a model, else by words."""
    if home.settings.text("embedding.model") != "none":
        try:
            return _by_cosine(home, reply, memories)
        except EmbedderUnavailable:
            pass
    return _by_words(home, reply, memories)


def _by_cosine(home: Home, reply: str, memories: Sequence[Memory]) -> _Measure:
    """The best cosine of any passage with any passage, by the bundled model: what is heard stays on this machine."""
    embedder = embedder_of(home, BUNDLED)
    heard = embedder.embed(passages(reply))
    vectors = {memory.id: embedder.embed(passages(memory.content)) for memory in memories}
    known = calibration_of(embedder.name)
    return _Measure(
        Borders("cosine", known.used, known.corrected),
        lambda memory: float((vectors[memory.id] @ heard.T).max()),
        lambda one, other: float((vectors[one.id] @ vectors[other.id].T).max()),
    )


def _by_words(home: Home, reply: str, memories: Sequence[Memory]) -> _Measure:
    """The share of a memory's words, stemmed and without stop words; of the shorter one where two are compared."""
    search = home.memory_search

    def stems(text: str) -> set[str]:
        return {
            term.stem
            for term in search.terms([word for word in words(text) if word not in STOP_WORDS])
        }

    heard = stems(reply)
    held = {memory.id: stems(memory.content) for memory in memories}

    def repeats(one: Memory, other: Memory) -> float:
        least = min(len(held[one.id]), len(held[other.id]))
        return len(held[one.id] & held[other.id]) / max(1, least)

    return _Measure(
        BY_WORDS,
        lambda memory: len(held[memory.id] & heard) / max(1, len(held[memory.id])),
        repeats,
    )


# ----------------------------------------------------------------------------
# What is answered to requests for recall; :mod:`nacre.serve.catalogue` lists them.


def search_sessions_answers(home: Home, request: TurnQuery) -> RecallResult:
    """The turns of all sessions that answer a question, the best first. Raises QueryInvalid."""
    admits = admission(request.aspect, request.role)
    found = search_sessions(home, request, offset=max(0, request.offset), admits=admits)
    if request.aspect != Aspect.ERRORS:
        return found
    return replace(found, turns=tuple(with_error(hit, words(request.text)) for hit in found.turns))


def judge_by_reply(home: Home, request: FeedbackRequest) -> FeedbackReport:
    """Let memories learn from an agent's reply: used, unused or corrected. Raises QueryInvalid, NotFound, Conflict."""
    return feedback(
        home, request.reply, request.references, session=request.session, stored=request.stored
    )


def judge_answers(home: Home, request: JudgeRequest) -> FeedbackReport:
    """Let memories learn that a person finds them good or bad. Raises NotFound, Conflict."""
    return judge(home, request.references, good=request.good)
