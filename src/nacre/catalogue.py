"""Every operation that other processes may ask for, once: its name, what is asked, what is answered, and who does it.

The daemon answers by it and MCP calls it; what crosses a process is JSON of these very types, by msgspec.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import msgspec

from nacre import requests
from nacre.errors import InvalidInput
from nacre.home.home import Home
from nacre.memories.connections import Connections, ConnectionsRequest, connections
from nacre.memories.store import NewMemory
from nacre.memories.views import MemoryView
from nacre.requests import (
    Extracted,
    ExtractRequest,
    Overview,
    OverviewRequest,
    PageRequest,
    Place,
    PlaceRequest,
    ReadRequest,
    SessionPage,
    SessionRequest,
    SessionsRequest,
    Waiting,
    WaitingRequest,
)
from nacre.sessions.file_history import DidQuery
from nacre.sessions.fixes import FixQuery, FixResult
from nacre.sessions.summaries import SessionReport
from nacre.sessions.views import SessionView
from nacre.values.context import ContextBlock, ContextRequest
from nacre.values.deep_recall import DeepQuery, DeepResult
from nacre.values.file_history import FileHistory
from nacre.values.handoff import ChoresReport, ChoresRequest, FlushReport, FlushRequest, HandoffRequest, HandoffView
from nacre.values.hooks import HookAnswer, HookCall
from nacre.values.memory import Memory
from nacre.values.recall import Filter, RecallQuery, RecallResult
from nacre.values.reports import IngestReport, StoreOutcome

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


@dataclass(frozen=True, slots=True)
class GetRequest:
    """One memory by id, the beginning of its id, or its subject."""

    reference: str
    update: bool = True
    session: str | None = None


@dataclass(frozen=True, slots=True)
class RetireRequest:
    """Memories to soft-delete; see :meth:`nacre.api.MemoryHome.retire`."""

    references: tuple[str, ...] = ()
    contains: tuple[str, ...] = ()
    reason: str | None = None
    persist: bool = False


@dataclass(frozen=True, slots=True)
class ListRequest:
    """Active memories, the newest first."""

    filter: Filter = field(default_factory=Filter)
    limit: int = 50
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Listing:
    """A page of memories, of ``total``."""

    memories: tuple[Memory, ...]
    total: int


def _recall(home: Home, query: RecallQuery) -> RecallResult:
    from nacre.retrieval.recall import recall

    return recall(home, query)


def _search_sessions(home: Home, query: RecallQuery) -> RecallResult:
    from nacre.retrieval.recall import search_sessions

    return search_sessions(home, query)


def _store(home: Home, new: NewMemory) -> StoreOutcome:
    from nacre.memories.store import store

    return store(home, new)


def _get(home: Home, asked: GetRequest) -> Memory:
    from nacre.memories.views import read_memory

    return read_memory(home, asked.reference, update=asked.update, session=asked.session)


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
    from nacre.memories.views import look_at

    return look_at(home, asked.reference, update=asked.update, session=asked.session)


def _sessions(home: Home, asked: SessionsRequest) -> SessionPage:
    from nacre.sessions.views import list_sessions

    lines, more = list_sessions(home, asked.filter, limit=max(0, asked.limit), offset=max(0, asked.offset))
    return SessionPage(tuple(lines), more)


def _session(home: Home, asked: SessionRequest) -> SessionView:
    from nacre.sessions.views import cleaned, look_at_end, look_at_session

    if asked.at_end:
        return cleaned(home, look_at_end(home, asked.reference, limit=max(0, asked.limit)))
    first, limit = max(0, asked.first), max(0, asked.limit)
    return cleaned(home, look_at_session(home, asked.reference, first=first, limit=limit))


def _session_summary(home: Home, asked: SessionRequest) -> SessionReport:
    from nacre.sessions.summaries import sum_up

    return sum_up(home, asked.reference)


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
    from nacre.chores.kinds import do_waiting

    return do_waiting(home, seconds=asked.seconds)


_ENTRIES: tuple[Entry[Any, Any], ...] = (
    Entry("recall", RecallQuery, RecallResult, _recall),
    Entry("search-sessions", RecallQuery, RecallResult, _search_sessions),
    Entry("store", NewMemory, StoreOutcome, _store, writes=True),
    Entry("get", GetRequest, Memory, _get),
    Entry("retire", RetireRequest, list[Memory], _retire, writes=True),
    Entry("list", ListRequest, Listing, _list),
    Entry("deep-recall", DeepQuery, DeepResult, _deep_recall, takes_long=True),
    Entry("look", GetRequest, MemoryView, _look),
    Entry("place", PlaceRequest, Place, requests.place),
    Entry("page", PageRequest, str, requests.page),
    Entry("sessions", SessionsRequest, SessionPage, _sessions),
    Entry("session", SessionRequest, SessionView, _session),
    Entry("session-summary", SessionRequest, SessionReport, _session_summary),
    Entry("extract", ExtractRequest, Extracted, requests.extracted, takes_long=True),
    Entry("did", DidQuery, FileHistory, _did),
    Entry("fix", FixQuery, FixResult, _fix),
    Entry("waiting", WaitingRequest, Waiting, requests.waiting),
    Entry("connections", ConnectionsRequest, Connections, connections),
    Entry("overview", OverviewRequest, Overview, requests.overview),
    Entry("ingest", ReadRequest, IngestReport, _ingest, writes=True, takes_long=True),
    Entry("context", ContextRequest, ContextBlock, _context),
    Entry("hook", HookCall, HookAnswer, _hook),
    Entry("handoff", HandoffRequest, HandoffView, _handoff, writes=True),
    Entry("flush", FlushRequest, FlushReport, _flush, writes=True, takes_long=True),
    Entry("chores", ChoresRequest, ChoresReport, _chores, writes=True, takes_long=True),
)

CATALOGUE: Mapping[str, Entry[Any, Any]] = {entry.name: entry for entry in _ENTRIES}
"""By name."""
