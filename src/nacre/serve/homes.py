"""The daemon's pool of open homes, its answers to calls, and its status."""

from __future__ import annotations

import ctypes
import os
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
from nacre.base.frozen import frozen
from nacre.base.ids import utc_now
from nacre.base.link import PROTOCOL, DaemonAwayError, DaemonRefusedError, ask
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
from nacre.serve.mcp import HomeCalls
from nacre.settings import Settings
from nacre.values.memory import AN_AGENT, Actor, Bearer, Face, acting, acting_now
from nacre.values.reports import Following
from nacre.vault.watch import VaultWatch

if TYPE_CHECKING:
    from nacre.home.home import ModelLoader
    from nacre.serve.browsers import Browsers
    from nacre.store.search import Kept

MOST = 6
"""Maximum number of open homes. If all are in use, callers wait."""

_IDLE_SECONDS = 60.0
_MAX_WAIT_SECONDS = 30.0

_Stamp = tuple[int, int, int]


@dataclass(slots=True)
class _Open:
    """An open home, with its settings and schema versions at opening, and the time of its last use."""

    home: Home
    stamp: _Stamp | None
    schema: int
    freed: float = 0.0


class Homes:
    """A pool of open homes that share an embedding model. Only one thread at a time uses each home.

    A home is reopened if its database was replaced or its settings changed.
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
        self._kept: tuple[object, Kept | None] = 0, None
        self._watch: VaultWatch | None = None
        self._stamp: _Stamp | None = None
        self._is_closed = False
        self._keeps_none = False
        self.writing = threading.BoundedSemaphore(1)
        """Lock that lets only one thread write at a time."""
        self.outdated: str | None = None
        """Reason why this process can no longer use the home, or ``None``."""

    @contextmanager
    def lent(self, seconds: float = _MAX_WAIT_SECONDS) -> Iterator[Home]:
        """Lend a home to the caller for the duration of the context.

        Raises any error from opening the home, and UnavailableError if all homes are in use.
        """
        if not self._room.acquire(timeout=max(0.0, seconds)):
            raise UnavailableError("the daemon is busy", hint="ask again")
        try:
            opened = self._take_free() or self._open_new()
            database, vectors = self._kept
            if vectors and database == opened.home.database.identity:
                opened.home.vectors.begin_with(vectors)  # a second copy could take 100 MB
            try:
                yield opened.home
            finally:
                self._give_back(opened)
        finally:
            self._room.release()

    def shrink(self) -> bool:
        """Close homes unused for a minute, but keep at least one. Return True if any were closed."""
        now = time.monotonic()
        with self._guard:
            kept = [
                opened for opened in self._free if now - opened.freed < _IDLE_SECONDS
            ] or self._free[-1:]
            old = [opened for opened in self._free if opened not in kept]
            self._free = kept
        for opened in old:
            opened.home.disconnect()
        return bool(old)

    def give_way(self) -> None:
        """Close homes now or as soon as they are returned, and keep none open from now on."""
        with self._guard:
            self._keeps_none = True
            free, self._free = self._free, []
            self._unwatch()
        for opened in free:
            opened.home.disconnect()

    def close(self) -> None:
        """Close all homes permanently. Homes in use are closed when they are returned."""
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
        return opened.stamp == _stamp(self._config)

    def _open_new(self) -> _Open:
        if self._is_closed:
            raise ShuttingDownError("the daemon is shutting down")
        if self._was_there and not self._home.is_dir():
            raise ShuttingDownError(
                "the home was moved or deleted"
            )  # opening it would create it again
        stamp = _stamp(self._config)
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
                self._unwatch()
            self._watch = self._watch or VaultWatch(home.vault)
        shared = replace(home, load_embedder=lambda settings: self._embedder(home, settings))
        shared.vault.watch = self._watch
        return _Open(shared, stamp, shared.database.schema())

    def _give_back(self, opened: _Open) -> None:
        opened.home.problems.clear()
        opened.freed = time.monotonic()
        with self._guard:
            if "vectors" in opened.home.__dict__:
                self._kept = opened.home.database.identity, opened.home.vectors.kept()
            if not self._keeps_none:
                self._free.append(opened)
                return
        opened.home.disconnect()

    def _unwatch(self) -> None:
        if self._watch:
            self._watch.close()
        self._watch = None

    def _embedder(self, home: Home, settings: Settings) -> Embedder:
        name = str(settings.text("embedding.model"))
        with self._loading:
            embedders = self._embedders
            if name not in embedders:
                embedders[name] = home.load_embedder(settings)
            return embedders[name]


def _stamp(path: Path) -> _Stamp | None:
    with suppress(OSError):
        status = os.stat(path)
        return status.st_mtime_ns, status.st_size, status.st_ino
    return None


# -- Memory of the process -------------------------------------------------------------------------


_M_ARENA_MAX = -8
_ARENAS = 2


def share_arenas() -> None:
    """Limit glibc to two memory arenas instead of several per core. Call this first."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS)


def give_back() -> None:
    """Return freed memory to the system, because glibc would keep it."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)


def memory_mb() -> float | None:
    """Return the process's memory use in MB, or its peak if the current use is unknown."""
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


# -- Callers and the served home -------------------------------------------------------------------


class Waiting(Protocol):
    """A caller that waits for an answer."""

    def has_left(self) -> bool:
        """Return True if the caller has disconnected."""
        ...

    def agent(self) -> str | None:
        """Return the agent that runs the caller's process, or ``None`` if unknown."""
        ...


class Run(Protocol):
    """A function that runs an operation in this process. Requests and results are JSON."""

    def __call__(self, operation: str, request: bytes, actor: Actor, caller: Waiting) -> bytes:
        """Wait until the operation can start, then run the operation.

        Return nothing if ``caller`` has disconnected. Raises NacreError.
        """
        ...


@dataclass(frozen=True)
class Site:
    """The served home and its operations.

    ``facts``: function that returns data for all permitted callers. ``tell``: function that
    writes to the daemon's log. ``everything``: True to offer all tools to agents (``mcp.tools =
    all``).
    """

    home: Path
    run: Run
    facts: Callable[[], Mapping[str, object]]
    browsers: Browsers
    live: Live
    tell: Callable[[str], None]
    everything: bool = False
    bearer: Callable[[str], Bearer | None] | None = None
    """Function that returns a key's owner, if a server stores the memory. It blocks."""

    live_of: Callable[[Bearer], Live] | None = None
    """Function that returns the events of the space that belongs to a key."""

    is_ready: Callable[[], bool] = lambda: True
    """Function that returns True if the database can be reached. It blocks."""


# -- Spaces of keys --------------------------------------------------------------------------------


class KeySpaces(Protocol):
    """A server's spaces, which clients use with a key."""

    def bearer(self, secret: str) -> Bearer | None:
        """Return a key's owner, or ``None`` for an invalid key. Raises NacreError."""

    def homes(self, bearer: Bearer) -> Homes:
        """Return the pool of homes for an account in a space."""

    def live(self, bearer: Bearer) -> Live:
        """Return the events of a space."""

    def close(self) -> None:
        """Close all homes."""


# -- Tool calls with a key -------------------------------------------------------------------------


class _ToolCaller:
    """A caller without a connection. Only the time limit can end its calls early."""

    def has_left(self) -> bool:
        return False

    def agent(self) -> str | None:
        """Return None. The key already identifies the caller."""
        return None


class KeyCalls(HomeCalls):
    """A runner of operations for callers with and without a key.

    A call with a key runs in the key's space. Other calls run in the home.
    """

    def __init__(self, home: Path, run: Run) -> None:
        super().__init__(home)
        self._run_by_key = run

    def __call__(
        self, operation: str, /, *, load_model: ModelLoader | None = None, **fields: Any
    ) -> Any:
        """Return the operation's result. Raises NacreError."""
        actor = acting_now()
        if actor is None or actor.bearer is None:
            return super().__call__(operation, load_model=load_model, **fields)
        message = msgspec.json.encode(json.to_plain(fields))
        answer = self._run_by_key(operation, message, actor, _ToolCaller())
        return json.from_plain(msgspec.json.decode(answer), CATALOGUE[operation].result)


# -- Answers to callers ----------------------------------------------------------------------------


MOST_SECONDS = 600.0
"""Maximum time that a caller can wait for an answer, in seconds."""

_SLOW_SECONDS = 2.0
_MAX_LONG_CALLS = 2
_GRACE_SECONDS = 2.0
"""Extra time in seconds for a call whose caller has disconnected. It loads data for later calls."""

_POLL_SECONDS = 0.25
_MAX_AGENT_CHARACTERS = 40


class _Call(msgspec.Struct, frozen=True):
    request: msgspec.Raw = msgspec.Raw(b"{}")
    protocol: int = 0
    seconds: float = MOST_SECONDS
    settings: str | None = None
    notes: bool = False
    agent: str | None = None


@dataclass(slots=True, eq=False)
class _AtWork:
    """A call in progress. ``left``: the time at which the caller disconnected."""

    home: Home
    caller: Waiting
    until: float
    left: float | None = None


class _CallerLeftError(Exception):
    """The caller has disconnected."""


class Answering:
    """A thread-safe runner of the operations that callers request.

    ``own``: the daemon's own operations, which receive the caller. ``find``: function that
    returns any other operation. ``bus``: receiver of progress events. ``homes_of``: function
    that returns the homes of a key's owner.
    """

    def __init__(
        self,
        homes: Homes,
        tell: Callable[[str], None],
        own: Mapping[str, Callable[[Waiting], object]],
        find: Callable[[str], Operation | None] = find_operation,
        *,
        bus: Bus | None = None,
        homes_of: Callable[[Bearer], Homes] | None = None,
    ) -> None:
        self._homes = homes
        self._homes_of = homes_of
        self._tell = tell
        self._own = own
        self._bus = bus or Bus(utc_now)
        self._find = find
        self._long = threading.BoundedSemaphore(_MAX_LONG_CALLS)
        self._guard = threading.Lock()
        self._at_work: list[_AtWork] = []

    def answer(self, operation: str, body: bytes, caller: Waiting) -> tuple[HTTPStatus, bytes]:
        """Return a response's status and body. The body is empty if the caller has disconnected."""
        try:
            return HTTPStatus.OK, self._result(operation, body, caller)
        except _CallerLeftError:
            return HTTPStatus.GATEWAY_TIMEOUT, b""
        except NacreError as error:
            return HTTPStatus.BAD_REQUEST, _refusal(error.code, error.message, error.hint)
        except Exception as error:  # noqa: BLE001 - a call must not end the daemon
            self._tell("".join(traceback.format_exception(error)).rstrip())
            refusal = _refusal(
                "internal", f"{type(error).__name__} in the daemon", "see logs/daemon.log"
            )
            return HTTPStatus.INTERNAL_SERVER_ERROR, refusal

    def run(self, operation: str, request: bytes, actor: Actor, caller: Waiting) -> bytes:
        """Run an operation for an actor and return JSON, or nothing if the caller has disconnected.

        Raises NacreError.
        """
        call = _Call(msgspec.Raw(request))
        try:
            return self._execute(CATALOGUE[operation], call, actor, caller)
        except _CallerLeftError:
            return b""
        except NacreError:
            raise
        except Exception as error:
            self._tell("".join(traceback.format_exception(error)).rstrip())
            raise InternalError(
                f"{type(error).__name__} in the daemon", hint="see logs/daemon.log"
            ) from error

    def mind(self, stop: threading.Event) -> None:
        """Interrupt calls that only read, if the caller has disconnected or the time is up.

        Return when ``stop`` is set.
        """
        while not stop.wait(_POLL_SECONDS):
            with self._guard:
                for running in self._at_work:
                    now = time.monotonic()
                    if running.left is None and (now > running.until or running.caller.has_left()):
                        running.left = now
                    if running.left is not None and now - running.left > _GRACE_SECONDS:
                        running.home.database.interrupt()

    def _result(self, operation: str, body: bytes, caller: Waiting) -> bytes:
        try:
            call = json.parse_json_tree(body, _Call)
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
        return (
            b'{"result":' + self._execute(entry, call, _actor(entry, call, caller), caller) + b"}"
        )

    def _execute(self, entry: Operation, call: _Call, actor: Actor, caller: Waiting) -> bytes:
        until = time.monotonic() + max(0.0, min(call.seconds, MOST_SECONDS))
        with self._turn(entry, until, actor.bearer) as home:
            if caller.has_left() or time.monotonic() >= until:
                raise _CallerLeftError
            began = time.monotonic()
            with acting(actor):
                answer = self._run(entry, home, call, caller, until)
        took = time.monotonic() - began
        if took > _SLOW_SECONDS and not entry.takes_long:
            self._tell(f"{entry.name} took {took:.1f} s")
        return answer

    @contextmanager
    def _turn(self, entry: Operation, until: float, bearer: Bearer | None) -> Iterator[Home]:
        """Wait until the operation can run, and yield the home on which it works.

        Only one operation at a time writes to a space. The number of long operations is limited.
        They work in parts, and other operations can write between two parts.
        """
        homes = self._homes_of(bearer) if bearer and self._homes_of else self._homes
        gate = self._long if entry.takes_long else homes.writing if entry.writes else None
        with ExitStack() as stack:
            if gate is not None:
                if not gate.acquire(timeout=max(0.0, until - time.monotonic())):
                    raise UnavailableError("the daemon is busy", hint="ask again")
                stack.callback(gate.release)
            yield stack.enter_context(homes.lent(until - time.monotonic()))

    def _run(
        self, entry: Operation, home: Home, call: _Call, caller: Waiting, until: float
    ) -> bytes:
        if call.settings is not None and call.settings != home.settings.mark:
            raise SettingsMismatchError
        running = _AtWork(home, caller, until)
        if not entry.writes:
            with self._guard:
                self._at_work.append(running)
        try:
            with published(self._bus, entry.name) as on_progress:
                result = entry.answer(home, call.request, on_progress)
            embed_new_memories(home)
        except UnavailableError:
            if running.left is not None:
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


def _actor(entry: Operation, call: _Call, caller: Waiting) -> Actor:
    if call.agent is not None:
        return Actor(Face.MCP, shorten(one_line(call.agent), _MAX_AGENT_CHARACTERS) or AN_AGENT)
    return Actor(Face.DAEMON, caller.agent() if entry.writes or entry.owners else None)


def _refusal(code: str, message: str, hint: str | None) -> bytes:
    return msgspec.json.encode({"error": {"code": code, "message": message, "hint": hint}})


# -- Status of a daemon ----------------------------------------------------------------------------
# This part imports little, because commands use it first.


@frozen
class Greeting:
    """The status of a daemon.

    ``seconds``: seconds since the start. ``at_work``: number of other requests in progress.
    ``following``: how the daemon follows sessions, if enabled. ``is_warm``: True if the model
    is loaded. ``http``: the address for agents. ``on_demand``: True if the daemon ends after
    ``idle_minutes`` without a request.
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
    """Return the status of a home's daemon, or ``None`` if no daemon answers."""
    try:
        return json.convert(ask(str(home), "hello", {}, seconds=1.0), Greeting)
    except (DaemonAwayError, DaemonRefusedError, msgspec.ValidationError):
        return None
