"""How sure a difference between two groups of sessions is: by drawing anew, many times, who was in which group.

Which session was held out was drawn by lot. If that makes no difference, any other draw would have done as well: what
differs between the groups of other draws is what chance does. So an interval without 0 comes about by chance in 5 of
100 homes, whatever the counts are distributed like.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from random import Random
from typing import Annotated, Any

from msgspec import Meta

from nacre.base import json
from nacre.base.ids import from_ms, to_ms
from nacre.base.request import Request
from nacre.base.text import words
from nacre.context.build import prose
from nacre.context.hooks import SHARE, Draw, drawn, note_share
from nacre.errors import Conflict, NotFound, QueryInvalid
from nacre.home.change import baseline_file, write_json
from nacre.home.home import Home
from nacre.hosts import ways
from nacre.hosts.registry import HOSTS_REGISTRY
from nacre.learn.reading import objects
from nacre.learn.sentences import Utterance, language_of, utterances
from nacre.memories.store import get, list_active
from nacre.recall.recall import recall
from nacre.values.memory import Kind, Memory, SessionFilter
from nacre.values.recall import Filter, Lane, Mode, RecallQuery, RecallResult
from nacre.values.reports import OnProgress, Progress
from nacre.values.session import Action, Flag, SessionKind, StoredSession, Turn
from nacre.vault.files import slugify

DRAWS = 1_999
CONFIDENCE = 0.95

LEAST = 32
"""Sessions told and held out, multiplied, by their sum. From there on a difference of half a standard deviation is
found 4 times in 5: (1.96 + 0.84)² / 0.5² = 31.4. That is 64 of each, or 40 held out beside 160."""

LEAST_HAPPENED = 10
"""Sessions in which it happened at all, of both groups together: of what never happened, the interval would be none."""

Counts = Sequence[tuple[int, int]]
"""Of each session, how often something happened and how often it could have; the latter is not 0."""


def are_enough(told: Counts, held_out: Counts) -> bool:
    """Whether these sessions can say something."""
    happened = sum(times > 0 for times, _ in (*told, *held_out))
    effective = len(told) * len(held_out) / max(1, len(told) + len(held_out))
    return effective >= LEAST and happened >= LEAST_HAPPENED


def needed_at(share: float) -> int:
    """How many sessions that takes, where that share of them is held out."""
    return math.ceil(round(LEAST / (share * (1 - share)), 6))


def rate(counts: Counts) -> float:
    """How often it happened, of all the times that it could have, in all sessions together."""
    return sum(times for times, _ in counts) / sum(of for _, of in counts)


def interval(told: Counts, held_out: Counts, random: Random) -> tuple[float, float]:
    """Within which bounds the true difference of their rates, held out less told, lies.

    Differences are taken in standard errors, so that a group may vary more than the other.
    """
    every = [_sums(times, of) for times, of in (*told, *held_out)]
    whole = _added(every)
    draws = (_added(random.sample(every, len(held_out))) for _ in range(DRAWS))
    by_chance = sorted(_standardised(whole, drawn) for drawn in draws)
    outside = round((1 - CONFIDENCE) / 2 * (DRAWS + 1))
    difference, error = _difference(whole, _added(every[len(told) :]))
    return difference - error * by_chance[-outside], difference - error * by_chance[outside - 1]


_Sums = tuple[int, int, int, int, int, int]
"""Of sessions: how many, how often it happened and could have, and the squares and products of the latter two."""


def _sums(times: int, of: int) -> _Sums:
    return 1, times, of, times * times, times * of, of * of


def _added(sessions: Sequence[_Sums]) -> _Sums:
    n, times, of, squares, products, of_squares = map(sum, zip(*sessions, strict=True))
    return n, times, of, squares, products, of_squares


def _standardised(whole: _Sums, held_out: _Sums) -> float:
    difference, error = _difference(whole, held_out)
    return (
        difference / error if error else math.copysign(math.inf, difference) if difference else 0.0
    )


def _difference(whole: _Sums, held_out: _Sums) -> tuple[float, float]:
    """The difference of the rates of those held out and of the rest, and its standard error."""
    told = [of_all - of_these for of_all, of_these in zip(whole, held_out, strict=True)]
    (without, first), (with_memory, second) = map(_rate_and_variance, (held_out, told))
    return without - with_memory, math.sqrt(first + second)


def _rate_and_variance(sums: Sequence[int]) -> tuple[float, float]:
    """Of a ratio of sums: from how far each session is from what its own number of times would have at that rate."""
    n, times, of, squares, products, of_squares = sums
    rate = times / of
    off = squares - 2 * rate * products + rate * rate * of_squares
    return rate, max(0.0, off) / (of * of) * n / (n - 1)


# ----------------------------------------------------------------------------
# What can be said of how useful memory is.


class Aspect(StrEnum):
    """What is measured of a session; of each, less is better."""

    MESSAGES = "messages"
    """Messages of the owner's, a session: how many turns it took."""
    CORRECTIONS = "corrections"
    """Of the owner's messages after the first: those that say that it is not so, or that declined a call."""
    REPEATED = "repeated"
    """Of the owner's messages: those that the owner sent in nearly these words in an earlier session there."""
    FAILED_CALLS = "failed-calls"
    """Of the agent's commands, reads and edits: those that failed."""


class Finding(StrEnum):
    """What an interval allows to say."""

    TOO_FEW = "too few"
    """Sessions, or those in which it happened, to say anything."""
    UNCLEAR = "unclear"
    """Both more and less are possible."""
    LESS_WITH_MEMORY = "less with memory"
    MORE_WITH_MEMORY = "more with memory"


@dataclass(frozen=True, slots=True)
class Comparison:
    """One aspect, of the sessions that have it: ``held_out`` less ``told`` is the ``difference``, and it lies between
    ``low`` and ``high`` with 95 % confidence. Where they are too few, nothing is said but how many."""

    aspect: Aspect
    finding: Finding
    sessions_told: int
    sessions_held_out: int
    told: float | None = None
    held_out: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Usefulness:
    """What the hold-out shows. ``share`` is held out now (0: none), ``compared`` the share that was in force when the
    sessions began that are compared, ``since`` when it came into force first.

    ``left_out`` sessions since then are not compared: they go on, nobody said anything in them, or the share changed
    meanwhile. ``needed`` is how many have to be compared at that share before anything is said.
    """

    share: float
    compared: float = 0.0
    since: datetime | None = None
    sessions_told: int = 0
    sessions_held_out: int = 0
    left_out: int = 0
    needed: int = 0
    comparisons: tuple[Comparison, ...] = ()


# ----------------------------------------------------------------------------
# What is counted of sessions, and of which.


GOES_ON = timedelta(hours=1)
"""A session in which nobody spoke for so long is over."""

_LEAST_WORDS = 5
_SAME = 0.85
"""Two messages whose words overlap so far (Jaccard) ask the same (seed facts 1.8)."""

_DONE = frozenset({Action.RUN, Action.READ, Action.EDIT})


@dataclass(frozen=True, slots=True)
class Counted:
    """A session that can be compared: of each aspect how often it happened, and how often it could have."""

    is_held_out: bool
    counts: Mapping[Aspect, tuple[int, int]]


def count_sessions(home: Home, draw: Draw, share: float) -> Iterator[Counted | None]:
    """The sessions that began while that share was in force; ``None`` for one that cannot be compared."""
    tools = {wish.host for wish in ways.load(home.settings.home).wishes} or set(HOSTS_REGISTRY)
    found = home.sessions.newest(SessionFilter(kind=SessionKind.MAIN), limit=-1)
    found.sort(key=lambda one: (_began(one), one.row))
    sent = _Sent()
    counted: list[_Counting] = []
    for session in found:
        turns = [stored.turn for stored in home.sessions.turns_of(session.row)]
        messages = utterances(turns)
        places = sent.add(session.project or session.session.cwd, messages)
        if draw.share_at(_began(session)) == share and session.session.tool in tools:
            is_steady = draw.is_steady(_began(session), to_ms(session.ended) or 0)
            usable = bool(messages) and is_steady and _is_over(home, session)
            counted.append(_Counting(session, _counts(turns, messages) if usable else None, places))
    repeated = sent.repeated()
    for one in counted:
        if one.counts is None:
            yield None
            continue
        again = sum(place in repeated for place in one.places)
        counts = {**one.counts, Aspect.REPEATED: (again, one.counts[Aspect.MESSAGES][0])}
        yield Counted(draw.takes(one.session.session.id, _began(one.session)), counts)


@dataclass(frozen=True, slots=True)
class _Counting:
    """A session, what was counted of it, if it can be compared, and the places of its messages among all."""

    session: StoredSession
    counts: Mapping[Aspect, tuple[int, int]] | None
    places: range


def _began(session: StoredSession) -> int:
    return to_ms(session.session.started) or 0


def _is_over(home: Home, session: StoredSession) -> bool:
    return session.ended is not None and home.now() - session.ended >= GOES_ON


def _counts(turns: Sequence[Turn], messages: Sequence[Utterance]) -> dict[Aspect, tuple[int, int]]:
    calls = [call for turn in turns if not turn.flags & Flag.SIDECHAIN for call in turn.tool_calls]
    done = [call for call in calls if call.action in _DONE]
    after = messages[1:]
    corrections = sum(one.correcting or objects(one, language_of(one.text)) for one in after)
    return {
        Aspect.MESSAGES: (len(messages), 1),
        Aspect.CORRECTIONS: (corrections, len(after)),
        Aspect.FAILED_CALLS: (sum(call.failed for call in done), len(done)),
    }


class _Sent:
    """The messages of all sessions, in the order of these."""

    def __init__(self) -> None:
        self._all: list[tuple[int, str | None, frozenset[str]]] = []
        """The session, its project, and the words; those of few words say too little."""
        self._sessions = 0

    def add(self, project: str | None, messages: Sequence[Utterance]) -> range:
        """Add a session; returns the places of its messages."""
        begin = len(self._all)
        for text in (prose(one.text) for one in messages):
            said = frozenset(words(text))
            self._all.append(
                (self._sessions, project, said if len(said) >= _LEAST_WORDS else frozenset())
            )
        self._sessions += 1
        return range(begin, len(self._all))

    def repeated(self) -> set[int]:
        """The places of those that were sent in nearly these words in an earlier session of their project."""
        times = Counter(word for _, _, said in self._all for word in said)
        first: dict[tuple[str | None, frozenset[str]], int] = {}
        known: dict[tuple[str | None, str], list[frozenset[str]]] = defaultdict(list)
        found = set()
        for place, (session, project, said) in enumerate(self._all):
            rare = _rare(said, times)
            likely = (
                other for word in rare for other in known[project, word] if _is_same(said, other)
            )
            if any(first[project, other] < session for other in likely):
                found.add(place)
            if said and (project, said) not in first:
                first[project, said] = session
                for word in rare:
                    known[project, word].append(said)
        return found


def _rare(message: frozenset[str], times: Mapping[str, int]) -> list[str]:
    """The rarest words of a message: any that is the same has one of them."""
    ordered = sorted(message, key=lambda word: (times[word], word))
    return ordered[: len(ordered) - math.ceil(_SAME * len(ordered)) + 1]


def _is_same(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) > _SAME * len(one | other)


# ----------------------------------------------------------------------------
# Whether memory helps, as far as the sessions that were held out can tell.


_SEED = 20_26
"""Asked twice, the same is answered."""


def usefulness(home: Home) -> Usefulness:
    """Compare the sessions that were held out with those that were told something."""
    now = to_ms(home.clock()) or 0
    if not home.database.unwritable:
        note_share(home.settings, now)
    draw, share = drawn(home.settings.home), home.settings.number(SHARE)
    used = [(since, one) for since, one in draw.shares if one > 0]
    if not used:
        return Usefulness(share)
    compared = used[-1][1]
    found = list(count_sessions(home, draw, compared))
    sessions = [one for one in found if one]
    since = from_ms(next(since for since, one in used if one == compared))
    held_out = sum(one.is_held_out for one in sessions)
    return Usefulness(
        share,
        compared,
        since,
        len(sessions) - held_out,
        held_out,
        len(found) - len(sessions),
        needed_at(compared),
        compare(sessions, Random(_SEED)),  # noqa: S311 - the same each time
    )


def compare(sessions: Sequence[Counted], random: Random) -> tuple[Comparison, ...]:
    """Compare those held out with the others, in each aspect."""
    return tuple(_compared(aspect, sessions, random) for aspect in Aspect)


def _compared(aspect: Aspect, sessions: Sequence[Counted], random: Random) -> Comparison:
    told, held_out = (
        [
            one.counts[aspect]
            for one in sessions
            if one.is_held_out is group and one.counts[aspect][1]
        ]
        for group in (False, True)
    )
    if not are_enough(told, held_out):
        return Comparison(aspect, Finding.TOO_FEW, len(told), len(held_out))
    return _measured(aspect, told, held_out, random)


def _measured(aspect: Aspect, told: Counts, held_out: Counts, random: Random) -> Comparison:
    with_memory, without = rate(told), rate(held_out)
    low, high = interval(told, held_out, random)
    finding = (
        Finding.LESS_WITH_MEMORY
        if low > 0
        else Finding.MORE_WITH_MEMORY
        if high < 0
        else Finding.UNCLEAR
    )
    return Comparison(
        aspect,
        finding,
        len(told),
        len(held_out),
        with_memory,
        without,
        without - with_memory,
        low,
        high,
    )


# ----------------------------------------------------------------------------
# Saved queries on a person's own home: what they find now, and what changed since a baseline.
#
# Queries and baseline are JSON files in the home, in the shape agenr gave them. Asking never counts
# as use.


DEFAULT_LIMIT = 10
DEFAULT_BUDGET = 2000
HIT_DEPTHS = (1, 5, 10)

_QUERIES = "eval-queries.json"
_SHAPE = 'a JSON list of {"id": …, "query": …, "expects": [memory ids]}, the last one optional'


@dataclass(frozen=True, slots=True)
class SavedQuery:
    """A question worth asking again; ``expects`` are ids of memories that should answer it, where that is known."""

    id: str
    query: str
    expects: tuple[str, ...] = ()


DEFAULT_QUERIES = (
    SavedQuery("session-start", "what a session starts with"),
    SavedQuery("recent-decisions", "decisions made recently"),
    SavedQuery("active-todos", "active todos and tasks"),
    SavedQuery("preferences", "what the owner prefers"),
)


@dataclass(frozen=True, slots=True)
class Result:
    """A memory in an answer; no score where memories are listed by date."""

    memory: Memory
    score: float | None


@dataclass(frozen=True, slots=True)
class Expected:
    """A memory that should answer, and its rank; ``None`` where it is not in the answer.

    ``subject`` is ``None`` for a memory that does not exist; ``is_active`` says whether recall can find it at all.
    """

    id: str
    rank: int | None
    subject: str | None
    is_active: bool


@dataclass(frozen=True, slots=True)
class Move:
    """A memory whose rank is not what it was; ``None`` means outside the answer."""

    id: str
    subject: str
    before: int | None
    now: int | None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a saved query finds.

    ``moves`` is ``None`` where there is nothing to
    compare with.
    """

    query: SavedQuery
    results: tuple[Result, ...]
    lanes: tuple[Lane, ...] = ()
    expected: tuple[Expected, ...] = ()
    moves: tuple[Move, ...] | None = None

    @property
    def best_expected(self) -> int | None:
        """The rank of the first memory that should answer."""
        return min((item.rank for item in self.expected if item.rank), default=None)


@dataclass(frozen=True, slots=True)
class Expectations:
    """How well queries find what they should: the share with an expected memory among the first k, and the MRR."""

    queries: int
    hits: Mapping[int, float]
    mrr: float


@dataclass(frozen=True, slots=True)
class Baseline:
    """Answers kept to compare with: by query id the question, and the ids and subjects of what it found, in order."""

    saved_at: str
    version: str
    limit: int
    queries: Mapping[str, tuple[str, tuple[tuple[str, str], ...]]]


def queries_file(home: Home) -> Path:
    """Where saved queries are by default."""
    return home.settings.home / _QUERIES


def load_queries(file: Path) -> tuple[SavedQuery, ...]:
    """The saved queries; the default ones where there is no file yet. Raises QueryInvalid."""
    try:
        found = tuple(_read_query(item) for item in json.parse(file.read_bytes()))
    except FileNotFoundError:
        return DEFAULT_QUERIES
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise QueryInvalid(
            f"{file} holds no queries: {error}", hint=f"it should be {_SHAPE}"
        ) from error
    if not all(item.id and item.query for item in found):
        raise QueryInvalid(
            f"{file} holds a query without id or words", hint=f"it should be {_SHAPE}"
        )
    if len({item.id for item in found}) < len(found):
        raise QueryInvalid(
            f"{file} holds two queries with the same id", hint="ids are what a baseline goes by"
        )
    return found


def _read_query(item: Mapping[str, Any]) -> SavedQuery:
    expects = item.get("expects") or []
    if not isinstance(expects, list):
        raise TypeError("expects is no list")
    return SavedQuery(str(item["id"]).strip(), str(item["query"]).strip(), tuple(map(str, expects)))


def add_query(
    home: Home, file: Path, text: str, *, query_id: str | None, expects: Sequence[str]
) -> SavedQuery:
    """Save a query; the default ones stay. Raises NotFound for an expected memory, Conflict for an id that is taken."""
    queries = load_queries(file)
    asked, name = home.redactor.clean(text.strip()), home.redactor.clean((query_id or "").strip())
    added = SavedQuery(
        name or slugify(asked), asked, tuple(get(home, reference).id for reference in expects)
    )
    if not added.id or not added.query:
        raise QueryInvalid(
            "the question is empty", hint='nacre eval add "which database do we use?"'
        )
    if added.id in {query.id for query in queries}:
        raise Conflict(
            f"there is a query {added.id!r} already",
            hint=f"nacre eval remove {added.id}, or give --id",
        )
    _save_queries(file, (*queries, added))
    return added


def remove_query(file: Path, query_id: str) -> SavedQuery:
    """Forget a query. Raises NotFound."""
    queries = load_queries(file)
    removed = next((query for query in queries if query.id == query_id), None)
    if removed is None:
        raise NotFound(f"no query is called {query_id!r}", hint="nacre eval list shows them")
    _save_queries(file, [query for query in queries if query is not removed])
    return removed


def ask(
    home: Home,
    queries: Sequence[SavedQuery],
    *,
    limit: int = DEFAULT_LIMIT,
    budget: int = DEFAULT_BUDGET,
    baseline: Baseline | None = None,
    notify: OnProgress = lambda _: None,
) -> list[Answer]:
    """Ask every query, and hold the answers against a baseline. ``budget`` (tokens) bounds what a session starts with.

    Four ids have a meaning of their own, whatever their words: session-start, recent-decisions, active-todos,
    preferences.
    """
    answers = []
    for done, query in enumerate(queries, start=1):
        answer = _SPECIAL.get(query.id, _recalled)(home, query, limit, budget)
        expected = _expected(home, answer) if query.expects else ()
        moves = _moves(query, answer.results, baseline) if baseline else None
        answers.append(replace(answer, expected=expected, moves=moves))
        notify(Progress("asking", done, len(queries)))
    return answers


def expectations(answers: Sequence[Answer], limit: int) -> Expectations | None:
    """How well the queries that say what they expect find it; ``None`` where none does."""
    ranks = [answer.best_expected for answer in answers if answer.expected]
    if not ranks:
        return None
    hits = {
        depth: sum(rank is not None and rank <= depth for rank in ranks) / len(ranks)
        for depth in HIT_DEPTHS
        if depth <= limit
    }
    return Expectations(len(ranks), hits, sum(1 / rank for rank in ranks if rank) / len(ranks))


def load_baseline(home: Home) -> Baseline:
    """The answers kept last. Raises NotFound, QueryInvalid."""
    file = baseline_file(home)
    try:
        data = json.parse(file.read_bytes())
        return Baseline(
            saved_at=str(data["saved_at"]),
            version=str(data["version"]),
            limit=int(data["limit"]),
            queries={
                item["id"]: (
                    item["query"],
                    tuple((found["id"], found["subject"]) for found in item["results"]),
                )
                for item in data["queries"]
            },
        )
    except FileNotFoundError as error:
        raise NotFound(
            "there is no baseline to compare with", hint="nacre eval --save-baseline keeps one"
        ) from error
    except (ValueError, TypeError, KeyError) as error:
        raise QueryInvalid(
            f"{file} holds no baseline: {error}", hint="nacre eval --save-baseline makes it anew"
        ) from error


def save_baseline(
    home: Home, answers: Sequence[Answer], *, limit: int, version: str, now: datetime
) -> Path:
    """Keep answers to compare with later, instead of those kept before."""
    file = baseline_file(home)
    write_json(
        file,
        {
            "saved_at": now.isoformat(),
            "version": version,
            "limit": limit,
            "queries": [
                {
                    "id": answer.query.id,
                    "query": answer.query.query,
                    "results": [_baseline_result(result) for result in answer.results],
                }
                for answer in answers
            ],
        },
    )
    return file


def _baseline_result(result: Result) -> dict[str, Any]:
    memory = result.memory
    return {
        "id": memory.id,
        "score": result.score,
        "kind": memory.kind.value,
        "importance": memory.importance,
        "created": memory.created.isoformat(),
        "updated": memory.updated.isoformat(),
        "subject": memory.subject,
        "content": memory.content,
    }


def _recalled(home: Home, query: SavedQuery, limit: int, _: int) -> Answer:
    mode = Mode(home.settings.text("recall.mode"))
    return _answer(
        query, recall(home, RecallQuery(query.query, mode=mode, limit=limit, turns=0, update=False))
    )


def _session_start(home: Home, query: SavedQuery, limit: int, budget: int) -> Answer:
    browse = RecallQuery(
        "", mode=Mode.BROWSE, limit=limit, budget_tokens=budget, turns=0, update=False
    )
    return replace(_answer(query, recall(home, browse)), lanes=())


def _answer(query: SavedQuery, found: RecallResult) -> Answer:
    results = tuple(Result(hit.memory, hit.score) for hit in found.hits)
    return Answer(query, results, found.lanes)


def _recent_decisions(home: Home, query: SavedQuery, limit: int, _: int) -> Answer:
    return _newest(home, query, limit, Kind.DECISION)


def _active_todos(home: Home, query: SavedQuery, limit: int, _: int) -> Answer:
    return _newest(home, query, limit, Kind.TODO)


def _preferences(home: Home, query: SavedQuery, limit: int, _: int) -> Answer:
    return _newest(home, query, limit, Kind.PREFERENCE)


def _newest(home: Home, query: SavedQuery, limit: int, kind: Kind) -> Answer:
    memories, _ = list_active(home, Filter(kinds=(kind,)), limit=limit)
    return Answer(query, tuple(Result(memory, None) for memory in memories))


_SPECIAL: dict[str, Callable[[Home, SavedQuery, int, int], Answer]] = {
    "session-start": _session_start,
    "recent-decisions": _recent_decisions,
    "active-todos": _active_todos,
    "preferences": _preferences,
}


def _expected(home: Home, answer: Answer) -> tuple[Expected, ...]:
    ranks = {result.memory.id: rank for rank, result in enumerate(answer.results, start=1)}
    found = []
    for memory_id in answer.query.expects:
        memory = home.memories.find(memory_id)
        is_active = memory is not None and memory.is_active
        found.append(
            Expected(memory_id, ranks.get(memory_id), memory.subject if memory else None, is_active)
        )
    return tuple(found)


def _moves(
    query: SavedQuery, results: Sequence[Result], baseline: Baseline
) -> tuple[Move, ...] | None:
    """What is elsewhere now; ``None`` for a query that is new, or asks for something else than it did."""
    text, kept = baseline.queries.get(query.id, ("", ()))
    if text != query.query:
        return None
    before = {memory_id: rank for rank, (memory_id, _) in enumerate(kept, start=1)}
    now = {result.memory.id: rank for rank, result in enumerate(results, start=1)}
    subjects = {**dict(kept), **{result.memory.id: result.memory.subject for result in results}}
    return tuple(
        Move(memory_id, subjects[memory_id], before.get(memory_id), now.get(memory_id))
        for memory_id in dict.fromkeys((*now, *before))
        if before.get(memory_id) != now.get(memory_id)
    )


def _save_queries(file: Path, queries: Sequence[SavedQuery]) -> None:
    items: list[dict[str, Any]] = [{"id": query.id, "query": query.query} for query in queries]
    for item, query in zip(items, queries, strict=True):
        if query.expects:
            item["expects"] = list(query.expects)
    write_json(file, items)


# ----------------------------------------------------------------------------
# Requests to ask saved queries, and to keep them.


class QueriesRequest(Request, frozen=True, kw_only=True):
    """The saved queries."""

    queries: Annotated[
        Path | None, Meta(description="The file of saved queries, if it is another one.")
    ] = None


class EvaluateRequest(QueriesRequest, frozen=True, kw_only=True):
    """Ask saved queries of the memory."""

    limit: (
        Annotated[
            int,
            Meta(description="Memories per query; 10, or as many as the baseline.", ge=1, le=1000),
        ]
        | None
    ) = None
    budget: Annotated[int, Meta(description="Tokens at a session's start.", ge=1)] = 2000
    compare: Annotated[
        bool, Meta(description="Tell what changed since the baseline that was kept.")
    ] = False


class AddQueryRequest(QueriesRequest, frozen=True, kw_only=True):
    """Save a query."""

    question: Annotated[str, Meta(description="The question.", min_length=1)]
    query_id: Annotated[
        str | None, Meta(description="What to call it; by default made of its words.")
    ] = None
    expects: Annotated[
        tuple[str, ...], Meta(description="Memories that should answer, by their ids or subjects.")
    ] = ()


class RemoveQueryRequest(QueriesRequest, frozen=True, kw_only=True):
    """Forget a saved query."""

    query_id: Annotated[str, Meta(description="What it is called.")]


# ----------------------------------------------------------------------------
# What is answered to requests about saved queries; :mod:`nacre.serve.catalogue` lists them.


def evaluate(home: Home, request: EvaluateRequest) -> list[Answer]:
    """Ask saved queries of the memory, and tell what changed since the baseline. Raises QueryInvalid, NotFound."""
    before = load_baseline(home) if request.compare else None
    limit = request.limit or (before.limit if before else DEFAULT_LIMIT)
    saved = load_queries(_file(home, request))
    return ask(home, saved, limit=limit, budget=request.budget, baseline=before)


def list_queries(home: Home, request: QueriesRequest) -> list[SavedQuery]:
    """The saved queries; the default ones where none are saved yet. Raises QueryInvalid."""
    return list(load_queries(_file(home, request)))


def add_query_answers(home: Home, request: AddQueryRequest) -> SavedQuery:
    """Save a query. Raises QueryInvalid, NotFound, Conflict."""
    return add_query(
        home,
        _file(home, request),
        request.question,
        query_id=request.query_id,
        expects=request.expects,
    )


def remove_query_answers(home: Home, request: RemoveQueryRequest) -> SavedQuery:
    """Forget a saved query. Raises NotFound."""
    return remove_query(_file(home, request), request.query_id)


def _file(home: Home, request: QueriesRequest) -> Path:
    return request.queries or queries_file(home)
