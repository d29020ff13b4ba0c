"""What a turn is about, beside its words: errors, plans, settings, files, decisions, the use of tools."""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Annotated, TypeVar

from msgspec import Meta

from nacre.base.bounds import bounds
from nacre.base.request import Request
from nacre.base.text import count, excerpt, one_line, shorten, words
from nacre.base.times import Window, day_interval
from nacre.home.home import Home
from nacre.home.spending import note_trace
from nacre.memories.store import session_name
from nacre.recall.lanes import (
    Bm25,
    MemoryRecall,
    QueryVector,
    Ranking,
    ScoredMemory,
    rescored,
    sureness_kind,
)
from nacre.recall.question import Question, as_prompt, is_common_name, parts_of, read_question
from nacre.recall.scoring import BORDER, Scale, Signals, answering, min_max
from nacre.store.memories import Edge
from nacre.values.memory import Memory, Scope
from nacre.values.models import NARROWED, NOT_SURE, NOTHING_FOUND, PROJECTS, Step, Trace, TraceKind
from nacre.values.recall import (
    DeepResult,
    Filter,
    LaneState,
    Mode,
    RecallQuery,
    RecallResult,
    Said,
    TurnHit,
)
from nacre.values.review import Judged, Verdict
from nacre.values.session import Action, Trust, Turn

_SAID_CHARACTERS = 120


class Aspect(StrEnum):
    """One aspect of turns that a search may be limited to."""

    ERRORS = "errors"
    PLANS = "plans"
    CONFIGS = "configs"
    TOOLS = "tools"
    FILES = "files"
    DECISIONS = "decisions"


def shows(turn: Turn, aspect: Aspect) -> bool:
    """Whether a turn is about it: by what was done where that tells, else by the words said."""
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
    """What a search admits that is limited to an aspect and to what somebody said; ``None`` where both are ``all``."""
    if aspect == role == "all":
        return None

    def admits(turn: Turn) -> bool:
        return (role in ("all", turn.speaker)) and (aspect == "all" or shows(turn, Aspect(aspect)))

    return admits


def with_error(hit: TurnHit, terms: Sequence[str]) -> TurnHit:
    """Return a hit with the error for which its turn was admitted. The output of a tool is untrusted."""
    turn = hit.turn
    errors = [
        f"{call.name}: {call.error or call.outcome}" for call in turn.tool_calls if call.failed
    ]
    if errors:
        error = max(errors, key=lambda text: sum(term in text.lower() for term in terms))
        shown = f"{shorten(hit.excerpt, _SAID_CHARACTERS)} — {excerpt(error, terms)}"
        return replace(hit, excerpt=shown, turn=replace(turn, trust=Trust.UNTRUSTED))
    found = _patterns()[Aspect.ERRORS].search(turn.text)
    is_hidden = found is not None and one_line(found[0]) not in hit.excerpt
    return (
        replace(hit, excerpt=excerpt(turn.text, terms, wanted=found[0]))
        if found and is_hidden
        else hit
    )


@cache
def _patterns() -> dict[Aspect, re.Pattern[str]]:
    table = tomllib.loads(files(__package__).joinpath("aspects.toml").read_text(encoding="utf-8"))
    return {Aspect(name): _compiled(kinds) for name, kinds in table.items() if any(kinds.values())}


def _compiled(kinds: dict[str, list[str]]) -> re.Pattern[str]:
    words = rf"\b(?:{'|'.join(kinds['words'])})\b"
    return re.compile("|".join([words, *kinds["signs"]]), re.IGNORECASE)


# ----------------------------------------------------------------------------
# Requests for recall, beside :class:`nacre.values.recall.RecallQuery`.


ASPECTS = "all|errors|plans|configs|tools|files|decisions"
ROLES = "all|owner|agent"


@dataclass(frozen=True, slots=True)
class TurnQuery(RecallQuery):
    """A search of turns."""

    offset: Annotated[int, bounds("Items to skip.", ge=0)] = 0
    aspect: Annotated[str, bounds("Only turns about this.", pattern=f"^({ASPECTS})$")] = "all"
    role: Annotated[str, bounds("Only turns of this speaker.", pattern=f"^({ROLES})$")] = "all"


class DeepQuery(Request, frozen=True, kw_only=True):
    """What an agent should know before it answers a question: whole memories of one project.

    ``recent`` are the messages before it, the latest last.
    """

    text: Annotated[str, Meta(description="The question.")]
    filter: Annotated[Filter, Meta(description="Which memories.")] = Filter()
    recent: Annotated[
        tuple[Said, ...], Meta(description="The messages before, the latest last.")
    ] = ()
    here: Annotated[
        str | None, Meta(description="The project of the folder that it is asked in.")
    ] = None
    update: Annotated[bool, Meta(description="Count what is found as used.")] = True
    session: Annotated[str | None, Meta(description="The host's session that asks.")] = None


class FeedbackRequest(Request, frozen=True, kw_only=True):
    """Which memories an agent's reply used: those named, else those used in the session since the last feedback."""

    reply: Annotated[str, Meta(description="The agent's reply; it is compared, never kept.")]
    references: Annotated[
        tuple[str, ...], Meta(description="Memories, by their ids or subjects.")
    ] = ()
    session: Annotated[
        str | None, Meta(description="The host's session in which memories were used.")
    ] = None
    stored: Annotated[
        tuple[str, ...], Meta(description="Memories that the agent stored meanwhile.")
    ] = ()


class JudgeRequest(Request, frozen=True, kw_only=True):
    """What a person says of memories."""

    references: Annotated[
        tuple[str, ...], Meta(description="Memories, by their ids or subjects.", min_length=1)
    ]
    good: Annotated[bool, Meta(description="Whether they are good; bad ones wait for review.")]


# ----------------------------------------------------------------------------
# Cases: a trace of every question that is answered, and of what became of the answer.
#
# What was shown is kept by its ids alone, so that nothing is told twice: who looks sees it as it is
# then, and what is
# forgotten is gone here, too.


_QUESTION_CHARACTERS = 400
_REMEMBERED = timedelta(days=30)
_STATUS = {LaneState.RAN: "done", LaneState.PARTIAL: "done", LaneState.UNAVAILABLE: "failed"}
_NARROWING = (
    "since",
    "until",
    "kinds",
    "tags",
    "min_importance",
    "expiry",
    "owner_only",
    "tools",
    "as_of",
    "exclude_projects",
)
_TOLD = {Verdict.USED: "used", Verdict.UNUSED: "not used", Verdict.CORRECTED: "corrected"}


def note_case(home: Home, query: RecallQuery, result: RecallResult) -> None:
    """Note a question and its answer: a line in a spool, nothing in the database."""
    if not home.settings.flag("traces.cases"):
        return
    steps = [
        Step(
            f"{lane.name} lane",
            output=lane.note or lane.state.value,
            status=_STATUS.get(lane.state, "skipped"),
        )
        for lane in result.lanes
    ]
    shown = {hit.memory.id: hit.score for hit in result.hits}
    shown |= {f"{hit.session.id}#{hit.turn.id}": hit.score for hit in result.turns}
    _note(home, query, steps, shown, _outcome(result), result.took_ms)


def note_deep_case(home: Home, query: DeepQuery, result: DeepResult) -> None:
    """The same for a question that was looked into deeply: its steps, and who took each."""
    if not home.settings.flag("traces.cases"):
        return
    steps = [
        Step(
            step.name,
            output=step.problem or step.outcome,
            status="failed" if step.problem else "done",
            more={"by": step.by.value},
        )
        for step in result.steps
    ]
    shown = {hit.memory.id: hit.score for hit in result.hits}
    memories = len(shown)
    outcome = (
        f"asks which project: {', '.join(result.clarify)}" if result.clarify else NOTHING_FOUND
    )
    if memories:
        of = f"of {result.project}" if result.project else "of no project"
        outcome = f"{count(memories, 'memory', 'memories')} {of}"
    _note(home, query, steps, shown, outcome, result.took_ms)


def _note(
    home: Home,
    query: RecallQuery | DeepQuery,
    steps: Sequence[Step],
    shown: Mapping[str, float],
    outcome: str,
    took_ms: float,
) -> None:
    ended, took = home.clock(), timedelta(milliseconds=took_ms)
    answer = Step(
        "answer", output=outcome, refs=tuple(shown), seconds=took.total_seconds(), more=shown
    )
    question = shorten(home.redactor.clean(query.text), _QUESTION_CHARACTERS)
    session = session_name(query.session) if query.session else ""
    told = (_asked(home, query.filter), *steps, answer)
    note_trace(
        home,
        Trace(
            home.ids(),
            TraceKind.CASE,
            question,
            ended - took,
            ended,
            outcome,
            told,
            session=session,
        ),
    )


def _asked(home: Home, wanted: Filter) -> Step:
    """Who asked, of which projects, and by which filters the question was narrowed."""
    more = {PROJECTS: ",".join(wanted.projects), NARROWED: ",".join(_narrowing(wanted))}
    about = (
        f"{home.actor.in_words}; of {', '.join(wanted.projects)}"
        if wanted.projects
        else home.actor.in_words
    )
    return Step("asked", output=about, more={name: value for name, value in more.items() if value})


def _narrowing(wanted: Filter) -> list[str]:
    """Filters but for projects and trust: who asks for todos of May only is not told what is not known."""
    names = [name for name in _NARROWING if getattr(wanted, name)]
    return [*names, "scope"] if wanted.scope is not Scope.PRIVATE else names


def note_verdicts(home: Home, judged: Sequence[Judged], session: str | None) -> None:
    """Say in the latest questions that memories were shown for whether they were of use."""
    since = home.now() - _REMEMBERED
    of_case: Mapping[str, list[Judged]] = defaultdict(list)
    for item in judged:
        case = home.traces.case_of(
            item.memory_id, session_name(session) if session else None, since
        )
        if case:
            of_case[case].append(item)
    with home.database.transaction():
        for case, items in of_case.items():
            told = "; ".join(
                f"{words}: {sum(item.verdict is verdict for item in items)}"
                for verdict, words in _TOLD.items()
                if any(item.verdict is verdict for item in items)
            )
            more = {item.memory_id: _TOLD[item.verdict] for item in items}
            home.traces.add_step(
                case, Step("hears back", output=told, refs=tuple(more), more=more), told
            )


def _outcome(result: RecallResult) -> str:
    if not result.is_answered:
        return NOT_SURE if result.hits or result.turns else NOTHING_FOUND
    return f"{count(len(result.hits), 'memory', 'memories')}, {count(len(result.turns), 'turn')}"


# ----------------------------------------------------------------------------
# Memories that were used together come together: neighbours of the best hits gain a little (seed
# facts 1.2.2).
#
# A gain reorders hits that are likely to answer. What is not likely to by itself may come along, but
# only after all that
# is, only where it was used together more than once, and only a few: habit adds to an answer, it does
# not replace it.


SEEDS = 5
NEIGHBOURS = 10
LEAST_WEIGHT = 0.1
SHARE = 0.15
COMPANION_WEIGHT = 0.15
"""What one session gives an edge, .1, does not suffice to bring along what nothing else speaks for."""

COMPANIONS = 3


def seeds(hits: Sequence[ScoredMemory]) -> list[str]:
    """The ids of the best hits that are likely to answer, by signals that do not depend on ranks."""
    return [item.memory.id for item in hits if item.confidence >= BORDER][:SEEDS]


def pulls(edges: Sequence[Edge]) -> dict[str, float]:
    """The weight with which each neighbour is drawn: that of its strongest edge to a seed.

    ``edges`` go out from the seeds, the strongest first; ten a seed count.
    """
    drawn: dict[str, float] = {}
    followed: dict[str, int] = {}
    for edge in edges:
        followed[edge.memory] = followed.get(edge.memory, 0) + 1
        if edge.weight >= LEAST_WEIGHT and followed[edge.memory] <= NEIGHBOURS:
            drawn[edge.other] = max(drawn.get(edge.other, 0.0), edge.weight)
    return drawn


def may_come_along(weight: float) -> bool:
    """Whether use together alone is reason enough to show a memory."""
    return weight >= COMPANION_WEIGHT


def lift(hits: Sequence[ScoredMemory], drawn: Mapping[str, float]) -> list[ScoredMemory]:
    """The hits with what their neighbours add: own score + .15 · weight, at most 1, where they are likely to answer."""
    lifted = [
        _drawn(item, drawn[item.memory.id])
        if item.memory.id in drawn and item.confidence >= BORDER
        else item
        for item in hits
    ]
    return sorted(lifted, key=lambda item: (-item.score, item.memory.id))


def companions(
    hits: Sequence[ScoredMemory],
    others: Sequence[ScoredMemory],
    found: Sequence[Memory],
    drawn: Mapping[str, float],
) -> list[ScoredMemory]:
    """What comes along below the hits: from ``others``, which lanes found without being sure, or ``found`` by none."""
    unfound = [ScoredMemory(memory, 0.0, {}, Signals(0.0, None)) for memory in found]
    ceiling = min((item.score for item in hits), default=0.0)
    drawn_along = [
        _drawn(item, drawn[item.memory.id], ceiling)
        for item in [*others, *unfound]
        if may_come_along(drawn.get(item.memory.id, 0.0))
    ]
    return sorted(drawn_along, key=lambda item: (-item.score, item.memory.id))[:COMPANIONS]


def _drawn(item: ScoredMemory, weight: float, ceiling: float = 1.0) -> ScoredMemory:
    gain = SHARE * weight
    score = min(ceiling, item.score + gain)
    told = (
        {"x_co_recall": round(score / item.score, 4)}
        if item.score
        else {"relevance": round(score, 4)}
    )
    return replace(
        item, score=score, components={**item.components, **told, "co_recall": round(gain, 4)}
    )


# ----------------------------------------------------------------------------
# Keep near-copies from filling an answer: maximal marginal relevance (Carbonell & Goldstein 1998).


T = TypeVar("T")

LAMBDA = 0.7
"""What relevance counts, beside being unlike what was chosen before."""

NEAR_COPY = 0.75
"""From this likeness on an item says what another one says already: it comes after all that does not."""


def diversify(
    items: Sequence[T],
    *,
    score: Callable[[T], float],
    text: Callable[[T], str],
    limit: int,
    relevance_share: float = LAMBDA,
) -> list[tuple[T, float]]:
    """Choose up to ``limit`` items, each weighed against its likeness to those chosen before; each with that likeness.

    Likeness is the Jaccard index of words longer than two characters; scores are expected in 0..1.
    """
    left = list(items)
    bags = {id(item): {word for word in words(text(item)[:2000]) if len(word) > 2} for item in left}
    chosen: list[tuple[T, float]] = []
    closest = {id(item): 0.0 for item in left}
    while left and len(chosen) < limit:
        best = max(left, key=lambda item: _worth(score(item), closest[id(item)], relevance_share))
        chosen.append((best, closest[id(best)]))
        left = [item for item in left if item is not best]
        for item in left:
            closest[id(item)] = max(closest[id(item)], _jaccard(bags[id(item)], bags[id(best)]))
    return chosen


def share_left(score: float, likeness: float, relevance_share: float = LAMBDA) -> float:
    """The share of its score that an item keeps for its place, 0 to 1: what likeness takes is (1-λ)/λ of itself."""
    if score <= 0 or relevance_share <= 0:
        return 0.0
    return max(0.0, 1 - (1 - relevance_share) / relevance_share * likeness / score)


def _worth(score: float, likeness: float, relevance_share: float) -> float:
    worth = relevance_share * score - (1 - relevance_share) * likeness
    return worth - (1.0 if likeness >= NEAR_COPY else 0.0)


def _jaccard(first: set[str], second: set[str]) -> float:
    union = len(first | second)
    return len(first & second) / union if union else 0.0


# ----------------------------------------------------------------------------
# What several questions found, as one answer.


def most_of(lists: Sequence[Sequence[ScoredMemory]]) -> list[ScoredMemory]:
    """Hits of several questions as one list: of each memory the best score, and as sure as it ever was."""
    best: dict[str, ScoredMemory] = {}
    for item in (item for ranked in lists for item in ranked):
        known = best.get(item.memory.id)
        if known is None:
            best[item.memory.id] = item
            continue
        first = max((known, item), key=lambda one: one.score)
        surest = max((known, item), key=lambda one: one.confidence)
        linked = tuple(dict.fromkeys((*known.linked_from, *item.linked_from)))
        best[item.memory.id] = replace(
            first, signals=surest.signals, confidence=surest.confidence, linked_from=linked
        )
    return sorted(best.values(), key=lambda item: (-item.score, item.memory.id))


# ----------------------------------------------------------------------------
# What may be outdated stays a hit, and comes after what was said since.


def newer_first(
    hits: Sequence[ScoredMemory],
    pairs: Iterable[tuple[str, str]],
    last_said: Callable[[Memory], datetime],
) -> list[ScoredMemory]:
    """The hits, each older one of ``pairs`` (older, newer) right after the newer one, which takes the better place.

    Of several newer ones the last of ``pairs`` counts. What was ``last_said`` at the same time, or again since, stays
    where it is.
    """
    found = {hit.memory.id: hit for hit in hits}
    follows: dict[str, str] = {}
    for older, newer in pairs:
        if (
            older in found
            and newer in found
            and last_said(found[newer].memory) > last_said(found[older].memory)
        ):
            follows[older] = newer
    groups: dict[str, list[ScoredMemory]] = {}
    for hit in hits:
        groups.setdefault(_newest(follows, hit.memory.id), []).append(hit)
    return [hit for group in groups.values() for hit in _in_order(group, last_said)]


def _newest(follows: Mapping[str, str], memory_id: str) -> str:
    """The end of a chain of pairs that begins with a memory; each is later than the one before."""
    while memory_id in follows:
        memory_id = follows[memory_id]
    return memory_id


def _in_order(
    group: Sequence[ScoredMemory], last_said: Callable[[Memory], datetime]
) -> list[ScoredMemory]:
    """A group, the latest first, with the group's scores by place."""
    if len(group) == 1:
        return list(group)
    scores = sorted((hit.score for hit in group), reverse=True)
    latest = sorted(group, key=lambda hit: (last_said(hit.memory), hit.memory.id), reverse=True)
    return [rescored(hit, score) for hit, score in zip(latest, scores, strict=True)]


# ----------------------------------------------------------------------------
# What goes into the ranking of turns, and how much of each. One value holds all constants, so that a
# benchmark can
# leave one ingredient out at a time.


@dataclass(frozen=True, slots=True)
class Recipe:
    """The ingredients of turn recall.

    ``lexical``, ``vector`` and ``session`` are shares of the fused score; ``session`` is taken once by words and once
    by meaning. The others are added to a fused score of at most 1: ``author`` when the turn's author is the one person
    the question names, ``presence`` when a person it names takes part in the session or the session belongs to a
    project it names, ``name`` when an identifier was found in part, ``time`` when the turn lies in the time it names.
    ``asks`` is taken away where a turn does nothing but ask: what answers it lies beside it.
    """

    lexical: float = 0.5
    vector: float = 0.5
    session: float = 0.15
    author: float = 0.15
    presence: float = 0.15
    name: float = 0.1
    time: float = 0.2
    asks: float = 0.1

    bm25: Bm25 = Bm25(k1=0.8, b=0.5)
    reach: int = 2
    """Turns before and after that are read with a turn."""

    neighbours: float = 0.35
    """What a neighbour's term counts, beside 1 for the turn's own."""

    smoothing: float = 0.5
    """What the mean cosine of the neighbours counts, beside 1 for the turn's own."""

    doubt: float = 0.5
    """How far the lexical lane is trusted less when even its best turn holds little of the question: an exponent."""

    scale: Scale = min_max
    """Puts the scores of a lane on 0..1."""

    candidates: int = 100
    """Turns that each lane proposes."""

    parts: int = 30
    """Turns proposed because part of an identifier is in them."""

    window: int = 400
    """Turns whose term counts are known; those beyond count as empty neighbours."""

    postings: int = 10_000
    """Rows that the words of a question may touch, together; beyond, its commonest words are left out. Bounds the time
    of the lexical lane; homes below some thousand turns never reach it."""

    passages: int = 3
    """Turns that speak for their session by meaning."""


DEFAULT = Recipe()
"""Chosen on LoCoMo dev, the LongMemEval subset, DevMemBench dev and their pile; docs/benchmarks.md has the tables."""


# ----------------------------------------------------------------------------
# The memories that answer a question, ranked and cut to what is sure: what every recall does, and a
# hook alone.
#
# Light: what only a full recall needs (vectors, models, turns, the vault's files) is in
# :mod:`nacre.recall.recall`.


_APART = "alternative_to"
_MOMENT = timedelta(milliseconds=1)
"""The relation of two memories that both hold, as a person said: a hook does not load :mod:`nacre.dedup`."""

DIVERSIFY_FROM = 3
"""Candidates weighed for diversity, per hit asked for."""


def ranked_by_words(home: Home, query: RecallQuery) -> list[ScoredMemory]:
    """The memories that answer by their words alone, the best first.

    As :func:`nacre.recall.recall.recall` in the mode ``lexical`` finds them, from the database as it is. What the
    question says happened before or after something is not looked up.
    """
    question = _read(home, query, query.text)
    ranking = ranking_of(home, query, question)
    ranked, wanted = rank_memories(home, query, question, ranking)
    parts = [_read(home, query, part) for part in parts_of(query.text)] if query.is_prompt else []
    if parts:
        engine = engine_of(home)
        ranked = most_of(
            [ranked, *(engine.rank(part, wanted, ranking, vector=None) for part in parts)]
        )
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
    question: Question,
    ranking: Ranking,
    *,
    vector: QueryVector | None = None,
    lexical: bool = True,
) -> tuple[list[ScoredMemory], Filter]:
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
    return replace(
        wanted, since=_moved(query.around, -reach), until=_moved(query.around, reach + _MOMENT)
    )


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
    return replace(
        wanted, kinds=wanted.kinds or question.lists, projects=wanted.projects or question.projects
    )


def window_of(query: RecallQuery, question: Question) -> Window | None:
    """Return the time that the question names, unless options name one."""
    if query.mode is Mode.BROWSE or query.filter.since or query.filter.until or query.around:
        return None
    return question.window


def confident(
    ranked: Sequence[ScoredMemory], query: RecallQuery, question: Question
) -> list[ScoredMemory]:
    """The hits likely to answer; a linked memory counts when the very one it is linked from does."""
    if query.mode is Mode.BROWSE or question.is_open:
        return list(ranked)
    sure = {item.memory.id for item in ranked if item.confidence >= BORDER}
    shown = {item.memory.id for item in answering(sureness_kind(question), ranked)}
    return [
        item for item in ranked if item.memory.id in shown or not sure.isdisjoint(item.linked_from)
    ]


def doubts(home: Home, hits: Sequence[ScoredMemory]) -> list[tuple[str, str]]:
    """Which of some memories are likely to be outdated, by which: (older, newer)."""
    found = home.reviews.doubts([item.memory.id for item in hits], both_ways=True)
    return [(doubt.older, doubt.newer) for doubt in found]


def newest_first(
    home: Home, query: RecallQuery, hits: Sequence[ScoredMemory]
) -> list[ScoredMemory]:
    """The hits, what may be outdated right after what was said since; so is what a person said holds beside it.

    With a prompt, unasked, only the newer one of two is told until somebody decides, also where the older one was
    edited since. Of two that doubt each other it is the one that was said last.
    """
    doubted = doubts(home, hits)
    found = {item.memory.id: item.memory for item in hits}
    linked = [
        (one, link.to)
        for one in found.values()
        for link in one.links
        if link.rel == _APART and link.to in found
    ]
    pairs = [sorted((one, found[other]), key=_last_said) for one, other in linked]
    ordered = newer_first(
        hits, [*((older.id, newer.id) for older, newer in pairs), *doubted], _last_said
    )
    if not query.is_prompt:
        return ordered
    outdated = {
        older
        for older, newer in doubted
        if newer in found
        and ((newer, older) not in doubted or _last_said(found[newer]) > _last_said(found[older]))
    }
    return [item for item in ordered if item.memory.id not in outdated] or ordered[:1]


def diverse(ranked: Sequence[ScoredMemory], query: RecallQuery) -> list[ScoredMemory]:
    """The best hits, each weighed against its likeness to those before, where that is wanted."""
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
    return [_placed(item, likeness, relevance_share) for item, likeness in chosen]


def _placed(item: ScoredMemory, likeness: float, relevance_share: float) -> ScoredMemory:
    """A hit with what it keeps of its score for its place: the score says how well it answers, and stays."""
    if not likeness:
        return item
    kept = round(share_left(item.score, likeness, relevance_share), 4)
    return replace(
        item, components={**item.components, "likeness": round(likeness, 4), "mmr": kept}
    )


def _last_said(memory: Memory) -> datetime:
    return memory.last_said
