"""The daemon's pool of open homes, its answers to calls, and its status."""

from __future__ import annotations

import ctypes
import os
import select
import socket
import struct
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from nacre.base import json
from nacre.base.environment import agent_of_process, is_orphan
from nacre.base.frozen import frozen
from nacre.base.ids import utc_now
from nacre.base.link import MOST_BYTES, PROTOCOL, DaemonAwayError, DaemonRefusedError, ask, is_whole
from nacre.base.text import one_line, shorten
from nacre.data.sync import embed_new_memories, warnings_of
from nacre.errors import (
    InternalError,
    InvalidInputError,
    NacreError,
    SchemaTooNewError,
    SettingsMismatchError,
    ShuttingDownError,
    UnavailableError,
    VersionMismatchError,
)
from nacre.home.home import Home
from nacre.operations import Operation
from nacre.protocols import Embedder, RemoteEmbedder
from nacre.serve.catalogue import CATALOGUE, find_operation
from nacre.serve.events import Bus, Live, published
from nacre.settings import Settings
from nacre.values.memory import AN_AGENT, Actor, Bearer, Face, acting, acting_now
from nacre.values.reports import Following

if TYPE_CHECKING:
    from nacre.serve.browsers import Browsers
    from nacre.serve.mcp import Call
    from nacre.store.search import PassageCache

MOST = 6
"""Maximum number of open homes. If all are in use, callers wait."""

_IDLE_SECONDS = 60.0
_MAX_WAIT_SECONDS = 30.0

_Stamp = tuple[int, int, int]


@dataclass(slots=True)
class _Open:
    home: Home
    stamp: _Stamp | None
    schema: int
    freed: float = 0.0


class Homes:
    """A pool of open homes, each lent to one thread at a time. They share an embedding model, and
    are reopened if their database or settings change.
    """

    def __init__(
        self, open_home: Callable[[], Home], home: Path, config: Path, most: int = MOST
    ) -> None:
        self._open_home = open_home
        self._home = home
        self._config = config
        self._was_there = False
        self._room = threading.BoundedSemaphore(most)
        self._guard = threading.Lock()
        self._free: list[_Open] = []
        self._loading = threading.Lock()
        self._embedders: dict[str, Embedder] = {}
        self._vectors: tuple[object, PassageCache | None] = 0, None
        self._stamp: _Stamp | None = None
        self._is_closed = False
        self._keeps_none = False
        self.writing = threading.BoundedSemaphore(1)
        """Held by the thread that writes."""
        self.outdated: str | None = None
        """Reason why this process can no longer use the home, or ``None``."""

    @contextmanager
    def lent(self, seconds: float = _MAX_WAIT_SECONDS) -> Iterator[Home]:
        """Lend an open home for the ``with`` block. Raises UnavailableError if none becomes free
        within ``seconds``.
        """
        if not self._room.acquire(timeout=max(0.0, seconds)):
            raise UnavailableError("the daemon is busy", hint="ask again")
        try:
            opened = self._take_free() or self._open_new()
            database, vectors = self._vectors
            if vectors and database == opened.home.database.identity:
                opened.home.vectors.begin_with(vectors)  # a second copy could take 100 MB
            try:
                yield opened.home
            finally:
                self._give_back(opened)
        finally:
            self._room.release()

    def shrink(self) -> bool:
        """Close the homes that were idle for a minute, but keep one. Return True if any were closed."""
        now = time.monotonic()
        with self._guard:
            recent = [
                opened for opened in self._free if now - opened.freed < _IDLE_SECONDS
            ] or self._free[-1:]
            old = [opened for opened in self._free if opened not in recent]
            self._free = recent
        for opened in old:
            opened.home.disconnect()
        return bool(old)

    def give_way(self) -> None:
        """Keep no homes open. Those in use are closed when they are returned."""
        with self._guard:
            self._keeps_none = True
            free, self._free = self._free, []
        for opened in free:
            opened.home.disconnect()

    def close(self) -> None:
        """Close all homes for good. Those in use are closed when they are returned."""
        self._is_closed = True
        self.give_way()
        for embedder in self._embedders.values():
            if isinstance(embedder, RemoteEmbedder):
                embedder.close()

    def _take_free(self) -> _Open | None:
        while True:
            with self._guard:
                if not self._free:
                    return None
                opened = self._free.pop()
            if self._is_current(opened):
                return opened
            opened.home.disconnect()

    def _is_current(self, opened: _Open) -> bool:
        home = opened.home
        if not home.database.is_in_place() or home.database.unwritable:
            return False
        if home.database.schema() != opened.schema:
            self.outdated = "another version of nacre changed the database"
            raise ShuttingDownError(self.outdated)
        return opened.stamp == stamp_of(self._config)

    def _open_new(self) -> _Open:
        if self._is_closed:
            raise ShuttingDownError("the daemon is shutting down")
        if self._was_there and not self._home.is_dir():
            raise ShuttingDownError(
                "the home was moved or deleted"
            )  # opening it would create it again
        stamp = stamp_of(self._config)
        try:
            home = self._open_home()
        except SchemaTooNewError as error:
            self.outdated = error.message
            raise
        self._was_there = True
        with (
            self._guard
        ):  # without ``_loading``, so that opening a home does not wait for a model to load
            if stamp != self._stamp:
                self._embedders, self._stamp = {}, stamp
        shared = replace(home, load_embedder=lambda settings: self._embedder(home, settings))
        return _Open(shared, stamp, shared.database.schema())

    def _give_back(self, opened: _Open) -> None:
        opened.home.problems.clear()
        opened.freed = time.monotonic()
        with self._guard:
            if "vectors" in opened.home.__dict__:
                self._vectors = opened.home.database.identity, opened.home.vectors.passage_cache()
            if not self._keeps_none:
                self._free.append(opened)
                return
        opened.home.disconnect()

    def _embedder(self, home: Home, settings: Settings) -> Embedder:
        name = str(settings.text("embedding.model"))
        with self._loading:
            embedders = self._embedders
            if name not in embedders:
                embedders[name] = home.load_embedder(settings)
            return embedders[name]


def stamp_of(path: str | Path) -> _Stamp | None:
    """Return values that change with a file, or ``None`` if there is no such file."""
    with suppress(OSError):
        status = os.stat(path)
        return status.st_mtime_ns, status.st_size, status.st_ino
    return None


# -- Memory of the process -------------------------------------------------------------------------


_M_ARENA_MAX = -8
_ARENAS = 2


def share_arenas() -> None:
    """Limit glibc to two memory arenas instead of several per core, before threads are started."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS)


def give_back() -> None:
    """Return freed memory to the system, which glibc does not do by itself."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)


def memory_mb() -> float | None:
    """Return the memory used by this process in MB. On some systems, only its peak is known."""
    with (
        suppress(OSError, ValueError, IndexError),
        open("/proc/self/statm", encoding="ascii") as statm,
    ):
        return round(int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6, 1)
    if sys.platform != "win32":
        import resource  # noqa: PLC0415 - missing on Windows

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return round(peak / 1e6 if sys.platform == "darwin" else peak / 1e3, 1)
    return None


# -- Spaces of keys --------------------------------------------------------------------------------


class KeySpaces(Protocol):
    """The spaces of a memory server, to which keys give access."""

    def bearer(self, secret: str) -> Bearer | None:
        """Return the holder of a key, or ``None`` if it is invalid."""

    def homes(self, bearer: Bearer) -> Homes:
        """Return the pool of homes for the holder's space."""

    def live(self, bearer: Bearer) -> Live:
        """Return the events of the holder's space."""

    def is_reachable(self) -> bool:
        """Wait for the server's database, and return True if it answers."""

    def close(self) -> None:
        """Close the homes of all spaces."""


# -- Callers and the served home -------------------------------------------------------------------


_CALLER_TIMEOUT_SECONDS = 5.0
"""Time limit in seconds for receiving a request, and for sending the response."""


@dataclass
class Caller:
    """The client at the other end of a connection."""

    _link: socket.socket

    def has_left(self) -> bool:
        """Return True if the client has disconnected. Works only on Linux."""
        if sys.platform != "linux":
            return False
        poll = select.poll()
        poll.register(self._link, 0)
        return any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll(0))

    def is_allowed(self) -> bool:
        """Return True if the client's process runs as this user or as root."""
        if sys.platform != "linux":
            return True  # only this user can access the folder and the socket
        return self._credentials()[1] in (os.getuid(), 0)

    def agent(self) -> str | None:
        """Return the agent that runs the client's process, if it is known. Works only on Linux."""
        return agent_of_process(self._credentials()[0]) if sys.platform == "linux" else None

    def is_orphan(self) -> bool:
        """Return True if the client has no terminal and no parent. Works only on Linux."""
        return sys.platform == "linux" and is_orphan(self._credentials()[0])

    def _credentials(self) -> tuple[int, int]:
        size = struct.calcsize("2i")  # the group follows
        process, user = struct.unpack(
            "2i", self._link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
        )
        return process, user

    def question(self) -> bytes:
        """Read the request. Return nothing if it is too long or the client disconnects."""
        until = time.monotonic() + _CALLER_TIMEOUT_SECONDS
        received = bytearray()
        while not is_whole(received):
            self._link.settimeout(max(0.001, until - time.monotonic()))
            chunk = self._link.recv(65_536)
            if not chunk or len(received) > MOST_BYTES:
                return b""
            received += chunk
        return bytes(received)

    def take(self, status: HTTPStatus, body: bytes) -> None:
        head = f"HTTP/1.1 {status} {status.phrase}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        self._link.settimeout(_CALLER_TIMEOUT_SECONDS)
        self._link.sendall(head.encode() + body)


Run = Callable[[str, bytes, Actor, Callable[[], bool]], bytes]
"""A function that runs an operation with a JSON request when its turn comes, and returns JSON.

Its last argument tells if the caller has disconnected. If so, the result is empty.
"""


@dataclass(frozen=True)
class Site:
    """The home that a daemon serves.

    ``facts`` returns data that all permitted callers may see. ``tell`` writes to the daemon's log.
    ``everything``: whether agents can use all tools. ``spaces``: set only on a memory server.
    """

    home: Path
    run: Run
    facts: Callable[[], Mapping[str, object]]
    browsers: Browsers
    live: Live
    tell: Callable[[str], None]
    everything: bool = False
    spaces: KeySpaces | None = None


# -- Tool calls over HTTP --------------------------------------------------------------------------


def calls_of(run: Run) -> Call:
    """Return a function that runs operations in the caller's space or, if there is none, in the home."""

    def call(operation: str, /, **fields: Any) -> Any:
        actor = acting_now() or Actor(Face.MCP, AN_AGENT)
        answer = run(operation, msgspec.json.encode(json.to_plain(fields)), actor, lambda: False)
        return json.convert(msgspec.json.decode(answer), CATALOGUE[operation].result)

    return call


# -- Answers to callers ----------------------------------------------------------------------------


MOST_SECONDS = 600.0
"""Maximum time that a caller can wait for an answer, in seconds."""

_SLOW_SECONDS = 2.0
_MAX_LONG_CALLS = 2
_GRACE_SECONDS = 2.0
"""Extra time in seconds for a call whose caller has disconnected, to load data for later calls."""

_POLL_SECONDS = 0.25


class _Call(msgspec.Struct, frozen=True):
    request: msgspec.Raw = msgspec.Raw(b"{}")
    protocol: int = 0
    seconds: float = MOST_SECONDS
    settings: str | None = None
    notes: bool = False
    agent: str | None = None


@dataclass(slots=True, eq=False)
class _AtWork:
    home: Home
    has_left: Callable[[], bool]
    until: float
    left_at: float | None = None


def trace_of(error: Exception) -> str:
    """Return an error's traceback for the log."""
    return "".join(traceback.format_exception(error)).rstrip()


class _CallerLeftError(Exception):
    """The caller has disconnected."""


class Answering:
    """A thread-safe runner of operations for callers.

    ``own`` contains the daemon's own operations, which also receive the caller. ``find`` looks up
    all others.
    """

    def __init__(
        self,
        homes: Homes,
        tell: Callable[[str], None],
        own: Mapping[str, Callable[[Caller], object]],
        find: Callable[[str], Operation | None] = find_operation,
        *,
        bus: Bus | None = None,
        spaces: KeySpaces | None = None,
    ) -> None:
        self._homes = homes
        self._spaces = spaces
        self._tell = tell
        self._own = own
        self._bus = bus or Bus(utc_now)
        self._find = find
        self._long = threading.BoundedSemaphore(_MAX_LONG_CALLS)
        self._guard = threading.Lock()
        self._at_work: list[_AtWork] = []

    def answer(self, operation: str, body: bytes, caller: Caller) -> tuple[HTTPStatus, bytes]:
        """Run an operation and return the response's status and body, which is empty if the caller
        has left.
        """
        try:
            with self._unexpected_errors():
                return HTTPStatus.OK, self._result(operation, body, caller)
        except _CallerLeftError:
            return HTTPStatus.GATEWAY_TIMEOUT, b""
        except NacreError as error:
            is_internal = isinstance(error, InternalError)
            status = HTTPStatus.INTERNAL_SERVER_ERROR if is_internal else HTTPStatus.BAD_REQUEST
            return status, json.encode({"error": error})

    def run(
        self, operation: str, request: bytes, actor: Actor, has_left: Callable[[], bool]
    ) -> bytes:
        """Run an operation and return its result as JSON, which is empty if the caller has left."""
        try:
            with self._unexpected_errors():
                call = _Call(msgspec.Raw(request))
                return self._execute(CATALOGUE[operation], call, actor, has_left)
        except _CallerLeftError:
            return b""

    @contextmanager
    def _unexpected_errors(self) -> Iterator[None]:
        try:
            yield
        except (NacreError, _CallerLeftError):
            raise
        except Exception as error:
            self._tell(trace_of(error))
            raise InternalError(
                f"{type(error).__name__} in the daemon", hint="see logs/daemon.log"
            ) from error

    def mind(self, stop: threading.Event) -> None:
        """Interrupt read-only operations that are overdue or no longer needed, until ``stop`` is set."""
        while not stop.wait(_POLL_SECONDS):
            with self._guard:
                for running in self._at_work:
                    now = time.monotonic()
                    if running.left_at is None and (now > running.until or running.has_left()):
                        running.left_at = now
                    if running.left_at is not None and now - running.left_at > _GRACE_SECONDS:
                        running.home.database.interrupt()

    def _result(self, operation: str, body: bytes, caller: Caller) -> bytes:
        try:
            call = json.decode(body, _Call)
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise InvalidInputError(
                f"invalid request: {error}", hint="see docs/daemon.md"
            ) from error
        if operation in self._own:
            return b'{"result":' + msgspec.json.encode(self._own[operation](caller)) + b"}"
        if call.protocol != PROTOCOL:
            raise VersionMismatchError(
                f"this daemon speaks protocol {PROTOCOL}, not {call.protocol}"
            )
        entry = self._find(operation)
        if entry is None:
            raise InvalidInputError(
                f"there is no operation {operation!r}", hint=f"one of {', '.join(CATALOGUE)}"
            )
        if call.agent is None:
            actor = Actor(Face.DAEMON, caller.agent() if entry.writes or entry.owners else None)
        else:
            agent = shorten(one_line(call.agent), 40) or AN_AGENT
            actor = Actor(Face.MCP, agent)
        return b'{"result":' + self._execute(entry, call, actor, caller.has_left) + b"}"

    def _execute(
        self, entry: Operation, call: _Call, actor: Actor, has_left: Callable[[], bool]
    ) -> bytes:
        until = time.monotonic() + max(0.0, min(call.seconds, MOST_SECONDS))
        with self._turn(entry, until, actor.bearer) as home:
            if has_left() or time.monotonic() >= until:
                raise _CallerLeftError
            began = time.monotonic()
            with acting(actor):
                answer = self._run(entry, home, call, _AtWork(home, has_left, until))
        took = time.monotonic() - began
        if took > _SLOW_SECONDS and not entry.takes_long:
            self._tell(f"{entry.name} took {took:.1f} s")
        return answer

    @contextmanager
    def _turn(self, entry: Operation, until: float, bearer: Bearer | None) -> Iterator[Home]:
        homes = self._spaces.homes(bearer) if bearer and self._spaces else self._homes
        # Long operations do not hold ``writing``: they let others write between their steps.
        gate = self._long if entry.takes_long else homes.writing if entry.writes else None
        with ExitStack() as stack:
            if gate is not None:
                if not gate.acquire(timeout=max(0.0, until - time.monotonic())):
                    raise UnavailableError("the daemon is busy", hint="ask again")
                stack.callback(gate.release)
            yield stack.enter_context(homes.lent(until - time.monotonic()))

    def _run(self, entry: Operation, home: Home, call: _Call, running: _AtWork) -> bytes:
        if call.settings is not None and call.settings != home.settings.mark:
            raise SettingsMismatchError
        if not entry.writes:
            with self._guard:
                self._at_work.append(running)
        try:
            with published(self._bus, entry.name) as on_progress:
                result = entry.answer(home, call.request, on_progress)
            embed_new_memories(home)
        except UnavailableError:
            if running.left_at is not None:
                raise _CallerLeftError from None
            raise
        finally:
            with self._guard:
                if running in self._at_work:
                    self._at_work.remove(running)
        if not call.notes:
            return result
        notes = {"warnings": warnings_of(home), "problems": home.problems}
        return result + b',"notes":' + msgspec.json.encode(notes)


# -- Status of a daemon ----------------------------------------------------------------------------
# This part imports little, because commands use it first.


@frozen
class Greeting:
    """The status of a running daemon.

    ``seconds``: time since its start. ``at_work``: number of other requests in progress. ``http``:
    the address for agents. An ``on_demand`` daemon ends after ``idle_minutes`` without requests.
    """

    pid: int
    version: str
    protocol: int
    seconds: float
    answered: int = 0
    at_work: int = 0
    following: Following | None = None
    is_warm: bool = False
    http: str | None = None
    on_demand: bool = False
    idle_minutes: float | None = None
    memory_mb: float | None = None
    problems: tuple[str, ...] = ()


def greet(home: Path) -> Greeting | None:
    """Ask a home's daemon for its status. Return ``None`` if there is no answer."""
    try:
        return json.convert(ask(home, "hello", {}, seconds=1.0), Greeting)
    except (DaemonAwayError, DaemonRefusedError, msgspec.ValidationError):
        return None
