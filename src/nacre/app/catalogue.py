"""Every operation that other processes may ask for, once: its name, what is asked, what is answered, and who does it.

The daemon answers by it and MCP calls it; what crosses a process is JSON of these very types, by msgspec.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import msgspec

from nacre.app.context import Context
from nacre.app.remembering import NewMemory
from nacre.errors import InvalidInput
from nacre.model.context import ContextBlock, ContextRequest
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
from nacre.model.reports import StoreOutcome

Request = TypeVar("Request")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Entry(Generic[Request, Result]):
    """One operation. ``writes`` says that it changes more than usage and traces."""

    name: str
    request: type[Request]
    result: Any
    """A type, or what stands for one, such as ``list[Memory]``."""
    run: Callable[[Context, Request], Result]
    writes: bool = False

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
    Entry("context", ContextRequest, ContextBlock, _context),
    Entry("hook", HookCall, HookAnswer, _hook),
    Entry("handoff", HandoffRequest, HandoffView, _handoff, writes=True),
    Entry("flush", FlushRequest, FlushReport, _flush, writes=True),
    Entry("chores", ChoresRequest, ChoresReport, _chores, writes=True),
)

CATALOGUE: Mapping[str, Entry[Any, Any]] = {entry.name: entry for entry in _ENTRIES}
"""By name."""
