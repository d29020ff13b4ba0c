"""Every operation that other processes may ask for, once: its name, what is asked, what is answered, and who does it.

The daemon answers by it and MCP calls it; what crosses a process is JSON of these very types, by msgspec.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import msgspec

from nacre.app import asking
from nacre.app.asking import (
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
from nacre.app.connections import Connections, ConnectionsRequest, connections
from nacre.app.context import Context
from nacre.app.doing import DidQuery
from nacre.app.fixing import FixQuery, FixResult
from nacre.app.looking import MemoryView, SessionView
from nacre.app.remembering import NewMemory
from nacre.app.summarising import SessionReport
from nacre.errors import InvalidInput
from nacre.model.context import ContextBlock, ContextRequest
from nacre.model.deeds import FileHistory
from nacre.model.deep import DeepQuery, DeepResult
from nacre.model.handing import (
    ChoresReport,
    ChoresRequest,
    FlushReport,
    FlushRequest,
    HandoffRequest,
    HandoffView,
)
from nacre.model.hooking import HookAnswer, HookCall
from nacre.model.memory import Memory
from nacre.model.recall import Filter, RecallQuery, RecallResult
from nacre.model.reports import IngestReport, StoreOutcome

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
    run: Callable[[Context, Request], Result]
    writes: bool = False
    takes_long: bool = False

    def answer(self, context: Context, asked: bytes | msgspec.Raw) -> bytes:
        """Run it on a request in JSON; the result in JSON. Raises InvalidInput and what the operation raises."""
        try:
            request = msgspec.json.decode(asked, type=self.request)
        except (msgspec.ValidationError, msgspec.DecodeError) as error:
            raise InvalidInput(f"{self.name}: {error}") from error
        return msgspec.json.encode(self.run(context, request))

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
    """Memories to soft-delete; see :meth:`nacre.app.memory_home.MemoryHome.retire`."""

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


def _recall(context: Context, query: RecallQuery) -> RecallResult:
    from nacre.app.recalling import recall

    return recall(context, query)


def _search_sessions(context: Context, query: RecallQuery) -> RecallResult:
    from nacre.app.recalling import search_sessions

    return search_sessions(context, query)


def _store(context: Context, new: NewMemory) -> StoreOutcome:
    from nacre.app.remembering import store

    return store(context, new)


def _get(context: Context, asked: GetRequest) -> Memory:
    from nacre.app.looking import open_memory

    return open_memory(context, asked.reference, update=asked.update, session=asked.session)


def _retire(context: Context, asked: RetireRequest) -> list[Memory]:
    from nacre.app.retiring import choose, retire_chosen

    chosen = choose(context, asked.references, asked.contains, persist=asked.persist)
    return retire_chosen(context, chosen, asked.reason, persist=asked.persist)[0]


def _list(context: Context, asked: ListRequest) -> Listing:
    from nacre.app.remembering import list_active

    found, total = list_active(context, asked.filter, limit=max(0, asked.limit), offset=max(0, asked.offset))
    return Listing(tuple(found), total)


def _deep_recall(context: Context, query: DeepQuery) -> DeepResult:
    from nacre.app.deep_recalling import deep_recall

    return deep_recall(context, query)


def _look(context: Context, asked: GetRequest) -> MemoryView:
    from nacre.app.looking import look_at

    return look_at(context, asked.reference, update=asked.update, session=asked.session)


def _sessions(context: Context, asked: SessionsRequest) -> SessionPage:
    from nacre.app.looking import list_sessions

    lines, more = list_sessions(context, asked.filter, limit=max(0, asked.limit), offset=max(0, asked.offset))
    return SessionPage(tuple(lines), more)


def _session(context: Context, asked: SessionRequest) -> SessionView:
    from nacre.app.looking import cleaned, look_at_end, look_at_session

    if asked.at_end:
        return cleaned(context, look_at_end(context, asked.reference, limit=max(0, asked.limit)))
    first, limit = max(0, asked.first), max(0, asked.limit)
    return cleaned(context, look_at_session(context, asked.reference, first=first, limit=limit))


def _session_summary(context: Context, asked: SessionRequest) -> SessionReport:
    from nacre.app.summarising import sum_up

    return sum_up(context, asked.reference)


def _did(context: Context, query: DidQuery) -> FileHistory:
    from nacre.app.doing import did

    return did(context, query)


def _fix(context: Context, query: FixQuery) -> FixResult:
    from nacre.app.fixing import fix

    return fix(context, query)


def _ingest(context: Context, asked: ReadRequest) -> IngestReport:
    from nacre.app.ingesting import IngestOptions, ingest

    return ingest(context, IngestOptions(vectors=asked.vectors))


def _context(context: Context, asked: ContextRequest) -> ContextBlock:
    from nacre.app.contexts.building import build

    return build(context, asked)


def _hook(context: Context, call: HookCall) -> HookAnswer:
    from nacre.app.hooking import answer

    return answer(context, call)


def _flush(context: Context, asked: FlushRequest) -> FlushReport:
    from nacre.app.flushing import flush

    return flush(context, asked)


def _handoff(context: Context, asked: HandoffRequest) -> HandoffView:
    from nacre.app.handoffs import handoff

    return handoff(context, asked)


def _chores(context: Context, asked: ChoresRequest) -> ChoresReport:
    from nacre.app.chores import do_waiting

    return do_waiting(context, seconds=asked.seconds)


_ENTRIES: tuple[Entry[Any, Any], ...] = (
    Entry("recall", RecallQuery, RecallResult, _recall),
    Entry("search-sessions", RecallQuery, RecallResult, _search_sessions),
    Entry("store", NewMemory, StoreOutcome, _store, writes=True),
    Entry("get", GetRequest, Memory, _get),
    Entry("retire", RetireRequest, list[Memory], _retire, writes=True),
    Entry("list", ListRequest, Listing, _list),
    Entry("deep-recall", DeepQuery, DeepResult, _deep_recall, takes_long=True),
    Entry("look", GetRequest, MemoryView, _look),
    Entry("place", PlaceRequest, Place, asking.place),
    Entry("page", PageRequest, str, asking.page),
    Entry("sessions", SessionsRequest, SessionPage, _sessions),
    Entry("session", SessionRequest, SessionView, _session),
    Entry("session-summary", SessionRequest, SessionReport, _session_summary),
    Entry("extract", ExtractRequest, Extracted, asking.extracted, takes_long=True),
    Entry("did", DidQuery, FileHistory, _did),
    Entry("fix", FixQuery, FixResult, _fix),
    Entry("waiting", WaitingRequest, Waiting, asking.waiting),
    Entry("connections", ConnectionsRequest, Connections, connections),
    Entry("overview", OverviewRequest, Overview, asking.overview),
    Entry("ingest", ReadRequest, IngestReport, _ingest, writes=True, takes_long=True),
    Entry("context", ContextRequest, ContextBlock, _context),
    Entry("hook", HookCall, HookAnswer, _hook),
    Entry("handoff", HandoffRequest, HandoffView, _handoff, writes=True),
    Entry("flush", FlushRequest, FlushReport, _flush, writes=True, takes_long=True),
    Entry("chores", ChoresRequest, ChoresReport, _chores, writes=True, takes_long=True),
)

CATALOGUE: Mapping[str, Entry[Any, Any]] = {entry.name: entry for entry in _ENTRIES}
"""By name."""
