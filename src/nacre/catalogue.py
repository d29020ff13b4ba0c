"""Every operation that other processes may ask for, once: its name, what is asked, what is answered, and who does it.

The daemon answers by it and MCP calls it; what crosses a process is JSON of these very types, by msgspec.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from nacre.errors import InvalidInput
from nacre.home.home import Home
from nacre.requests import (
    ConnectionsRequest,
    CostRequest,
    DidQuery,
    DiffRequest,
    ExtractRequest,
    FixQuery,
    GetRequest,
    HistoryRequest,
    ListRequest,
    LogRequest,
    NewMemory,
    OverviewRequest,
    PageRequest,
    PlaceRequest,
    ReadRequest,
    RetireRequest,
    SessionRequest,
    SessionsRequest,
    SettledRequest,
    TraceRequest,
    TracesRequest,
    TurnQuery,
    WaitingRequest,
)
from nacre.values.context import ContextBlock, ContextRequest
from nacre.values.deep_recall import DeepQuery, DeepResult
from nacre.values.file_history import FileHistory
from nacre.values.handoff import ChoresReport, ChoresRequest, FlushReport, FlushRequest, HandoffRequest, HandoffView
from nacre.values.hooks import HookAnswer, HookCall
from nacre.values.memory import Memory
from nacre.values.recall import RecallQuery, RecallResult
from nacre.values.reports import IngestReport, StoreOutcome
from nacre.values.trace import Trace
from nacre.views import (
    Connections,
    CostReport,
    Extracted,
    FixResult,
    Listed,
    Listing,
    MemoryView,
    OperationDiff,
    Overview,
    Place,
    SessionPage,
    SessionReport,
    SessionView,
    Settled,
    Step,
    TraceView,
    Waiting,
)

Request = TypeVar("Request")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Entry(Generic[Request, Result]):
    """One operation.

    ``writes`` says that it changes more than usage and traces, ``takes_long`` that it may take minutes: few of those
    run side by side, so that others are answered meanwhile.
    """

    name: str
    request: type[Request]
    result: Any
    """A type, or what stands for one, such as ``list[Memory]``."""
    run: Callable[[Home, Request], Result]
    writes: bool = False
    takes_long: bool = False

    def answer(self, home: Home, asked: bytes | msgspec.Raw) -> bytes:
        """Run it on a request in JSON; the result in JSON. Raises InvalidInput and what the operation raises."""
        try:
            request = msgspec.json.decode(asked, type=self.request)
        except (msgspec.ValidationError, msgspec.DecodeError) as error:
            raise InvalidInput(f"{self.name}: {error}") from error
        return msgspec.json.encode(self.run(home, request))

    def read(self, answered: bytes) -> Result:
        """What an answer in JSON holds."""
        result: Result = msgspec.json.decode(answered, type=self.result)
        return result


def _recall(home: Home, query: RecallQuery) -> RecallResult:
    from nacre.retrieval.recall import recall

    return recall(home, query)


def _search_sessions(home: Home, query: TurnQuery) -> RecallResult:
    from nacre.retrieval.aspects import admission
    from nacre.retrieval.recall import search_sessions

    return search_sessions(home, query, offset=max(0, query.offset), admits=admission(query.aspect, query.role))


def _store(home: Home, new: NewMemory) -> StoreOutcome:
    from nacre.memories.store import store

    return store(home, new)


def _get(home: Home, asked: GetRequest) -> Memory:
    from nacre.sessions.views import open_memory

    return open_memory(home, asked.reference, update=asked.update, session=asked.session)


def _retire(home: Home, asked: RetireRequest) -> list[Memory]:
    from nacre.memories.retire import choose, retire_chosen

    chosen = choose(home, asked.references, asked.contains, persist=asked.persist)
    return retire_chosen(home, chosen, asked.reason, persist=asked.persist)[0]


def _list(home: Home, asked: ListRequest) -> Listing:
    from nacre.memories.store import list_active

    found, total = list_active(home, asked.filter, limit=max(0, asked.limit), offset=max(0, asked.offset))
    return Listing(tuple(found), total)


def _deep_recall(home: Home, query: DeepQuery) -> DeepResult:
    from nacre.retrieval.deep.recall import deep_recall

    return deep_recall(home, query)


def _look(home: Home, asked: GetRequest) -> MemoryView:
    from nacre.sessions.views import look_at

    return look_at(home, asked.reference, update=asked.update, session=asked.session)


def _sessions(home: Home, asked: SessionsRequest) -> SessionPage:
    from nacre.sessions.views import list_sessions

    lines, more = list_sessions(home, asked.filter, limit=max(0, asked.limit), offset=max(0, asked.offset))
    return SessionPage(tuple(lines), more)


def _session(home: Home, asked: SessionRequest) -> SessionView:
    from nacre.sessions.views import cleaned, look_at_end, look_at_session

    folder = Path(asked.folder) if asked.folder else None
    limit = -1 if asked.limit is None else max(0, asked.limit)
    if asked.at_end:
        return cleaned(home, look_at_end(home, asked.reference, limit=limit, folder=folder))
    first = max(0, asked.first)
    return cleaned(home, look_at_session(home, asked.reference, first=first, limit=limit, folder=folder))


def _session_summary(home: Home, asked: SessionRequest) -> SessionReport:
    from nacre.sessions.summaries import sum_up

    return sum_up(home, asked.reference, Path(asked.folder) if asked.folder else None)


def _did(home: Home, query: DidQuery) -> FileHistory:
    from nacre.sessions.file_history import did

    return did(home, query)


def _fix(home: Home, query: FixQuery) -> FixResult:
    from nacre.sessions.fixes import fix

    return fix(home, query)


def _ingest(home: Home, asked: ReadRequest) -> IngestReport:
    from nacre.ingestion.ingest import IngestOptions, ingest

    return ingest(home, IngestOptions(vectors=asked.vectors))


def _context(home: Home, asked: ContextRequest) -> ContextBlock:
    from nacre.context.build import build

    return build(home, asked)


def _hook(home: Home, call: HookCall) -> HookAnswer:
    from nacre.context.hook_answers import answer

    return answer(home, call)


def _flush(home: Home, asked: FlushRequest) -> FlushReport:
    from nacre.chores.flush import flush

    return flush(home, asked)


def _handoff(home: Home, asked: HandoffRequest) -> HandoffView:
    from nacre.context.handoff.requests import handoff

    return handoff(home, asked)


def _chores(home: Home, asked: ChoresRequest) -> ChoresReport:
    from nacre.chores.queue import do_waiting

    return do_waiting(home, seconds=asked.seconds)


def _history(home: Home, asked: HistoryRequest) -> list[Step]:
    from nacre.memories.lineage import history_of

    return history_of(home, asked.reference)


def _log(home: Home, asked: LogRequest) -> list[Listed]:
    from nacre.history.operations import log

    limit, offset = max(0, asked.limit), max(0, asked.offset)
    return log(home, reference=asked.memory, project=asked.project, limit=limit, offset=offset)


def _diff(home: Home, asked: DiffRequest) -> OperationDiff:
    from nacre.history.operations import changes_of, differences, operation_meant

    operation = operation_meant(home, asked.reference)
    return OperationDiff(operation, tuple(differences(changes_of(home, operation))))


def _settled(home: Home, _: SettledRequest) -> list[Settled]:
    from nacre.review.conflicts import history

    return history(home)


def _traces(home: Home, asked: TracesRequest) -> list[Trace]:
    from nacre.health.traces import list_traces

    return list_traces(home, asked.kind, asked.since, max(0, asked.limit))


def _trace(home: Home, asked: TraceRequest) -> TraceView:
    from nacre.health.traces import show_trace

    return show_trace(home, asked.reference)


def _cost(home: Home, asked: CostRequest) -> CostReport:
    from nacre.spending.budget import costs

    return costs(home, max(1, asked.days))


def _place(home: Home, asked: PlaceRequest) -> Place:
    from nacre.answers import place

    return place(home, asked)


def _page(home: Home, asked: PageRequest) -> str:
    from nacre.answers import page

    return page(home, asked)


def _extract(home: Home, asked: ExtractRequest) -> Extracted:
    from nacre.answers import extracted

    return extracted(home, asked)


def _waiting(home: Home, asked: WaitingRequest) -> Waiting:
    from nacre.answers import waiting

    return waiting(home, asked)


def _connections(home: Home, asked: ConnectionsRequest) -> Connections:
    from nacre.memories.connections import connections

    return connections(home, asked)


def _overview(home: Home, asked: OverviewRequest) -> Overview:
    from nacre.answers import overview

    return overview(home, asked)


_ENTRIES: tuple[Entry[Any, Any], ...] = (
    Entry("recall", RecallQuery, RecallResult, _recall),
    Entry("search-sessions", TurnQuery, RecallResult, _search_sessions),
    Entry("store", NewMemory, StoreOutcome, _store, writes=True),
    Entry("get", GetRequest, Memory, _get),
    Entry("retire", RetireRequest, list[Memory], _retire, writes=True),
    Entry("list", ListRequest, Listing, _list),
    Entry("deep-recall", DeepQuery, DeepResult, _deep_recall, takes_long=True),
    Entry("look", GetRequest, MemoryView, _look),
    Entry("place", PlaceRequest, Place, _place),
    Entry("page", PageRequest, str, _page),
    Entry("sessions", SessionsRequest, SessionPage, _sessions),
    Entry("session", SessionRequest, SessionView, _session),
    Entry("session-summary", SessionRequest, SessionReport, _session_summary),
    Entry("extract", ExtractRequest, Extracted, _extract, takes_long=True),
    Entry("did", DidQuery, FileHistory, _did),
    Entry("fix", FixQuery, FixResult, _fix),
    Entry("history", HistoryRequest, list[Step], _history),
    Entry("log", LogRequest, list[Listed], _log),
    Entry("diff", DiffRequest, OperationDiff, _diff),
    Entry("settled", SettledRequest, list[Settled], _settled),
    Entry("traces", TracesRequest, list[Trace], _traces),
    Entry("trace", TraceRequest, TraceView, _trace),
    Entry("cost", CostRequest, CostReport, _cost),
    Entry("waiting", WaitingRequest, Waiting, _waiting),
    Entry("connections", ConnectionsRequest, Connections, _connections),
    Entry("overview", OverviewRequest, Overview, _overview),
    Entry("ingest", ReadRequest, IngestReport, _ingest, writes=True, takes_long=True),
    Entry("context", ContextRequest, ContextBlock, _context),
    Entry("hook", HookCall, HookAnswer, _hook),
    Entry("handoff", HandoffRequest, HandoffView, _handoff, writes=True),
    Entry("flush", FlushRequest, FlushReport, _flush, writes=True, takes_long=True),
    Entry("chores", ChoresRequest, ChoresReport, _chores, writes=True, takes_long=True),
)

CATALOGUE: Mapping[str, Entry[Any, Any]] = {entry.name: entry for entry in _ENTRIES}
"""By name."""
