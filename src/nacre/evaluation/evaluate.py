"""Saved queries on a person's own home: what they find now, and what changed since a baseline.

Queries and baseline are JSON files in the home, in the shape agenr gave them. Asking never counts as use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from nacre.errors import Conflict, NotFound, QueryInvalid
from nacre.home.baseline import baseline_file, write_json
from nacre.home.home import Home
from nacre.memories.store import get, list_active
from nacre.platform import json_text
from nacre.retrieval.recall import recall
from nacre.values.memory import Kind, Memory
from nacre.values.recall import Filter, Lane, Mode, RecallQuery, RecallResult
from nacre.values.reports import OnProgress, Progress
from nacre.vault.layout import slugify

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
        found = tuple(_read_query(item) for item in json_text.parse(file.read_bytes()))
    except FileNotFoundError:
        return DEFAULT_QUERIES
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise QueryInvalid(f"{file} holds no queries: {error}", hint=f"it should be {_SHAPE}") from error
    if not all(item.id and item.query for item in found):
        raise QueryInvalid(f"{file} holds a query without id or words", hint=f"it should be {_SHAPE}")
    if len({item.id for item in found}) < len(found):
        raise QueryInvalid(f"{file} holds two queries with the same id", hint="ids are what a baseline goes by")
    return found


def _read_query(item: Mapping[str, Any]) -> SavedQuery:
    expects = item.get("expects") or []
    if not isinstance(expects, list):
        raise TypeError("expects is no list")
    return SavedQuery(str(item["id"]).strip(), str(item["query"]).strip(), tuple(map(str, expects)))


def add_query(home: Home, file: Path, text: str, *, query_id: str | None, expects: Sequence[str]) -> SavedQuery:
    """Save a query; the default ones stay. Raises NotFound for an expected memory, Conflict for an id that is taken."""
    queries = load_queries(file)
    asked, name = home.redactor.clean(text.strip()), home.redactor.clean((query_id or "").strip())
    added = SavedQuery(name or slugify(asked), asked, tuple(get(home, reference).id for reference in expects))
    if not added.id or not added.query:
        raise QueryInvalid("the question is empty", hint='nacre eval add "which database do we use?"')
    if added.id in {query.id for query in queries}:
        raise Conflict(f"there is a query {added.id!r} already", hint=f"nacre eval remove {added.id}, or give --id")
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
    home: Home, queries: Sequence[SavedQuery], *, limit: int = DEFAULT_LIMIT, budget: int = DEFAULT_BUDGET,
    baseline: Baseline | None = None, notify: OnProgress = lambda _: None,
) -> list[Answer]:  # fmt: skip
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
        data = json_text.parse(file.read_bytes())
        return Baseline(
            saved_at=str(data["saved_at"]),
            version=str(data["version"]),
            limit=int(data["limit"]),
            queries={
                item["id"]: (item["query"], tuple((found["id"], found["subject"]) for found in item["results"]))
                for item in data["queries"]
            },
        )
    except FileNotFoundError as error:
        raise NotFound("there is no baseline to compare with", hint="nacre eval --save-baseline keeps one") from error
    except (ValueError, TypeError, KeyError) as error:
        raise QueryInvalid(
            f"{file} holds no baseline: {error}", hint="nacre eval --save-baseline makes it anew"
        ) from error


def save_baseline(home: Home, answers: Sequence[Answer], *, limit: int, version: str, now: datetime) -> Path:
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
        "id": memory.id, "score": result.score, "kind": memory.kind.value, "importance": memory.importance,
        "created": memory.created.isoformat(), "updated": memory.updated.isoformat(), "subject": memory.subject,
        "content": memory.content,
    }  # fmt: skip


def _recalled(home: Home, query: SavedQuery, limit: int, _: int) -> Answer:
    mode = Mode(home.settings.text("recall.mode"))
    return _answer(query, recall(home, RecallQuery(query.query, mode=mode, limit=limit, turns=0, update=False)))


def _session_start(home: Home, query: SavedQuery, limit: int, budget: int) -> Answer:
    browse = RecallQuery("", mode=Mode.BROWSE, limit=limit, budget_tokens=budget, turns=0, update=False)
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
        found.append(Expected(memory_id, ranks.get(memory_id), memory.subject if memory else None, is_active))
    return tuple(found)


def _moves(query: SavedQuery, results: Sequence[Result], baseline: Baseline) -> tuple[Move, ...] | None:
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
