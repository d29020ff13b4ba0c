"""Open homes for threads that answer side by side: each has its own database connection, all share one model."""

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
from nacre.base.ids import utc_now
from nacre.base.link import LOCK, PROTOCOL, Away, Refused, ask
from nacre.base.locks import is_held
from nacre.base.text import one_line, shorten
from nacre.care import follow
from nacre.care.watcher import Watcher, WatchEvent, WatchOptions
from nacre.data.sync import embed_new_memories, warnings_of
from nacre.errors import (
    Conflict,
    Ending,
    Fault,
    InvalidInput,
    NacreError,
    OtherSettings,
    OtherVersion,
    SchemaTooNew,
    Unavailable,
)
from nacre.gateway import engine
from nacre.home.home import Home
from nacre.protocols import Embedder, RemoteEmbedder
from nacre.serve.catalogue import CATALOGUE, offered_by
from nacre.serve.events import Bus, published
from nacre.serve.mcp import HomeCalls
from nacre.serve.operation import Operation
from nacre.settings import Settings
from nacre.values.memory import AN_AGENT, Actor, Bearer, Face, acting, acting_now
from nacre.vault.watch import VaultWatch

if TYPE_CHECKING:
    from nacre.gateway.sessions import Lend
    from nacre.home.home import ModelLoader
    from nacre.serve.web import Run
    from nacre.store.search import Kept

MOST = 6
"""So many are open at once; who comes then waits for one of them."""

_KEPT_SECONDS = 60.0
_PATIENCE_SECONDS = 30.0

_Stamp = tuple[int, int, int]


@dataclass(slots=True)
class _Open:
    """An open home, how its settings' file and its database's schema were then, and when it was last needed."""

    home: Home
    stamp: _Stamp | None
    schema: int
    freed: float = 0.0


class Homes:
    """Lends an open home to one thread at a time, and keeps it open for the next.

    One that is not what is on disk any more, as its database was made anew or its settings changed, is opened again.
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
        """Who holds it writes there: one at a time."""
        self.outdated: str | None = None
        """Why this program cannot work with the home any more."""

    @contextmanager
    def lent(self, seconds: float = _PATIENCE_SECONDS) -> Iterator[Home]:
        """A home of one's own for the block. Raises what opening one raises, Unavailable where all are in use."""
        if not self._room.acquire(timeout=max(0.0, seconds)):
            raise Unavailable("the daemon is busy", hint="ask again")
        try:
            found = self._taken() or self._opened()
            self._share_with(found.home)
            try:
                yield found.home
            finally:
                self._give_back(found)
        finally:
            self._room.release()

    def shrink(self) -> bool:
        """Close those that nobody needed for a minute, but one; returns whether there were any."""
        now = time.monotonic()
        with self._guard:
            kept = [one for one in self._free if now - one.freed < _KEPT_SECONDS] or self._free[-1:]
            old = [one for one in self._free if one not in kept]
            self._free = kept
        for one in old:
            one.home.disconnect()
        return bool(old)

    def give_way(self) -> None:
        """Keep no home open any more: those that are lent close when they come back, and so do those that somebody asks
        for yet who came before."""
        with self._guard:
            self._keeps_none = True
            free, self._free = self._free, []
            self._unwatch()
        for one in free:
            one.home.disconnect()

    def close(self) -> None:
        """Close all homes; those that are lent close when they come back, and none is opened any more."""
        self._is_closed = True
        self.give_way()
        for embedder in self._embedders.values():
            if isinstance(embedder, RemoteEmbedder):
                embedder.close()

    def _taken(self) -> _Open | None:
        """The home that was used last, if it still is what is on disk."""
        while True:
            with self._guard:
                if not self._free:
                    return None
                found = self._free.pop()
            if self._is_good(found):
                return found
            found.home.disconnect()

    def _is_good(self, one: _Open) -> bool:
        home = one.home
        if not home.database.is_in_place() or home.database.unwritable:
            return False
        if home.database.schema() != one.schema:
            self.outdated = "another version of nacre changed the database"
            raise Ending(self.outdated)
        return one.stamp == _stamp(self._config)

    def _opened(self) -> _Open:
        if self._is_closed:
            raise Ending("the daemon is about to end")
        if self._was_there and not self._home.is_dir():
            raise Ending("the home was moved or deleted")  # and is not made anew
        stamp = _stamp(self._config)
        try:
            home = self._open_home()
        except SchemaTooNew as error:
            self.outdated = error.message
            raise
        self._was_there = True
        with (
            self._guard
        ):  # not the one that is held while a model is loaded: who opens a home waits for no model
            if stamp != self._stamp:
                self._embedders, self._stamp = {}, stamp
                self._unwatch()
            self._watch = self._watch or VaultWatch(home.vault)
        shared = replace(home, load_embedder=lambda settings: self._embedder(home, settings))
        shared.vault.watch = self._watch
        return _Open(shared, stamp, shared.database.schema())

    def _share_with(self, home: Home) -> None:
        """What one home has in memory of the vectors, the others need not load: it may be a hundred megabytes."""
        file, kept = self._kept
        if kept and file == home.database.identity:
            home.vectors.begin_with(kept)

    def _give_back(self, one: _Open) -> None:
        one.home.problems.clear()
        one.freed = time.monotonic()
        with self._guard:
            if "vectors" in one.home.__dict__:
                self._kept = one.home.database.identity, one.home.vectors.kept()
            if not self._keeps_none:
                self._free.append(one)
                return
        one.home.disconnect()

    def _unwatch(self) -> None:
        if self._watch:
            self._watch.close()
        self._watch = None

    def _embedder(self, home: Home, settings: Settings) -> Embedder:
        """One model for all threads, loaded by the first that needs it."""
        name = str(settings.text("embedding.model"))
        with self._loading:
            known = self._embedders
            if name not in known:
                known[name] = home.load_embedder(settings)
            return known[name]


def _stamp(path: Path) -> _Stamp | None:
    with suppress(OSError):
        seen = os.stat(path)
        return seen.st_mtime_ns, seen.st_size, seen.st_ino
    return None


# ----------------------------------------------------------------------------
# How much memory the daemon takes, and how it gives back what it needs no more: glibc keeps what is
# freed.


_M_ARENA_MAX = -8
_ARENAS = 2


def share_arenas() -> None:
    """Let threads share two pools of memory, where the system's own way is many a core. To be called first."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS)


def give_back() -> None:
    """Give what was freed back to the system, where it would be kept."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)


def memory_mb() -> float | None:
    """How much memory this process takes now, or, where the system does not tell that simply, took at most."""
    with (
        suppress(OSError, ValueError, IndexError),
        open("/proc/self/statm", encoding="ascii") as told,
    ):
        return round(int(told.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6, 1)
    if sys.platform != "win32":
        import resource  # noqa: PLC0415 - Windows has no such module

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return round(peak / 1e6 if sys.platform == "darwin" else peak / 1e3, 1)
    return None


# ----------------------------------------------------------------------------
# The tools of agents that show a key to a space.


class _Waiting:
    """Whoever waits for a tool; it ends with its time."""

    def has_left(self) -> bool:
        """Nobody tells."""
        return False

    def agent(self) -> str | None:
        """The key says who it is."""
        return None


class KeyCalls(HomeCalls):
    """Calls in the space whose key the request shows, else about the home."""

    def __init__(self, home: Path, run: Run) -> None:
        super().__init__(home)
        self._run_by_key = run

    def __call__(
        self, operation: str, request: Any, *, load_model: ModelLoader | None = None
    ) -> Any:
        """The operation's result. Raises NacreError."""
        actor = acting_now()
        if actor is None or actor.bearer is None:
            return super().__call__(operation, request, load_model=load_model)
        asked = msgspec.json.encode(json.to_plain(request))
        answer = self._run_by_key(operation, asked, actor, _Waiting())
        return json.from_plain(msgspec.json.decode(answer), CATALOGUE[operation].result)


# ----------------------------------------------------------------------------
# What a question asks for, and its answer: the catalogue's operations, in an open home, while
# somebody waits.


MOST_SECONDS = 600.0
"""Longest a caller may wait, in seconds."""

_SLOW_SECONDS = 2.0
_MOST_LONG = 2
_GRACE_SECONDS = 2.0
"""So long a question is gone on with after its caller left: what it loads meanwhile, the next one needs."""

_LOOK_SECONDS = 0.25
_AGENT_CHARACTERS = 40


class Waiting(Protocol):
    """Whoever waits for an answer."""

    def has_left(self) -> bool:
        """Whether nobody does any more."""
        ...

    def agent(self) -> str | None:
        """The agent in which it runs, if it is a process of this machine that runs in one."""
        ...


class _Call(msgspec.Struct, frozen=True):
    request: msgspec.Raw = msgspec.Raw(b"{}")
    protocol: int = 0
    seconds: float = MOST_SECONDS
    settings: str | None = None
    notes: bool = False
    agent: str | None = None


@dataclass(slots=True, eq=False)
class _AtWork:
    """A question that runs; ``left`` is since when nobody waits for its answer."""

    home: Home
    caller: Waiting
    until: float
    left: float | None = None


class _NobodyWaits(Exception):  # noqa: N818 - what is the case
    """There is no use in an answer."""


class Answering:
    """Answers calls, from any thread. ``own`` are operations of the daemon itself, by name: they get no home, but
    whoever asks. How far operations are goes to the ``bus``. ``homes_of`` are those of the space that a key opens."""

    def __init__(
        self,
        homes: Homes,
        tell: Callable[[str], None],
        own: Mapping[str, Callable[[Waiting], object]],
        catalogue: Mapping[str, Operation] | None = None,
        *,
        bus: Bus | None = None,
        homes_of: Callable[[Bearer], Homes] | None = None,
    ) -> None:
        self._homes = homes
        self._homes_of = homes_of
        self._tell = tell
        self._own = own
        self._bus = bus or Bus(utc_now)
        self._catalogue = offered_by(Face.DAEMON) if catalogue is None else catalogue
        self._long = threading.BoundedSemaphore(_MOST_LONG)
        self._guard = threading.Lock()
        self._at_work: list[_AtWork] = []

    def answer(self, operation: str, body: bytes, caller: Waiting) -> tuple[HTTPStatus, bytes]:
        """The status and the body of a response; no body where nobody waits for it any more."""
        try:
            return HTTPStatus.OK, self._result(operation, body, caller)
        except _NobodyWaits:
            return HTTPStatus.GATEWAY_TIMEOUT, b""
        except NacreError as error:
            return HTTPStatus.BAD_REQUEST, _refusal(error.code, error.message, error.hint)
        except Exception as error:  # noqa: BLE001 - a question that breaks an answer must not break the daemon
            self._tell("".join(traceback.format_exception(error)).rstrip())
            told = _refusal(
                "internal", f"{type(error).__name__} in the daemon", "logs/daemon.log tells more"
            )
            return HTTPStatus.INTERNAL_SERVER_ERROR, told

    def run(self, operation: str, request: bytes, actor: Actor, caller: Waiting) -> bytes:
        """The result of an operation that an actor asks for in this process, in JSON; nothing where nobody waits for it
        any more. Raises NacreError."""
        asked = _Call(msgspec.Raw(request))
        try:
            return self._answered(CATALOGUE[operation], asked, actor, caller)
        except _NobodyWaits:
            return b""
        except NacreError:
            raise
        except Exception as error:
            self._tell("".join(traceback.format_exception(error)).rstrip())
            raise Fault(
                f"{type(error).__name__} in the daemon", hint="logs/daemon.log tells more"
            ) from error

    def mind(self, stop: threading.Event) -> None:
        """Until ``stop`` is set, interrupt what nobody waits for any more. Writing is gone on with: it is wanted."""
        while not stop.wait(_LOOK_SECONDS):
            with self._guard:
                for one in self._at_work:
                    now = time.monotonic()
                    if one.left is None and (now > one.until or one.caller.has_left()):
                        one.left = now
                    if one.left is not None and now - one.left > _GRACE_SECONDS:
                        one.home.database.interrupt()

    def _result(self, operation: str, body: bytes, caller: Waiting) -> bytes:
        try:
            asked = json.parse_json_values(body, _Call)
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise InvalidInput(f"no question: {error}", hint="docs/daemon.md shows one") from error
        if operation in self._own:
            return b'{"result":' + msgspec.json.encode(self._own[operation](caller)) + b"}"
        if asked.protocol != PROTOCOL:
            raise OtherVersion(f"this daemon speaks protocol {PROTOCOL}, not {asked.protocol}")
        entry = self._catalogue.get(operation)
        if entry is None:
            raise InvalidInput(
                f"there is no operation {operation!r}", hint=f"one of {', '.join(self._catalogue)}"
            )
        return (
            b'{"result":'
            + self._answered(entry, asked, _actor(entry, asked, caller), caller)
            + b"}"
        )

    def _answered(self, entry: Operation, asked: _Call, actor: Actor, caller: Waiting) -> bytes:
        until = time.monotonic() + max(0.0, min(asked.seconds, MOST_SECONDS))
        with self._turn(entry, until, actor.bearer) as home:
            if caller.has_left() or time.monotonic() >= until:
                raise _NobodyWaits
            began = time.monotonic()
            with acting(actor):
                answer = self._run(entry, home, asked, caller, until)
        took = time.monotonic() - began
        if took > _SLOW_SECONDS and not entry.takes_long:
            self._tell(f"{entry.name} took {took:.1f} s")
        return answer

    @contextmanager
    def _turn(self, entry: Operation, until: float, bearer: Bearer | None) -> Iterator[Home]:
        """A home, when it is an operation's turn: one writes to a space at a time, and few that take long run: these
        let others write between their parts."""
        homes = self._homes_of(bearer) if bearer and self._homes_of else self._homes
        gate = self._long if entry.takes_long else homes.writing if entry.writes else None
        with ExitStack() as held:
            if gate is not None:
                if not gate.acquire(timeout=max(0.0, until - time.monotonic())):
                    raise Unavailable("the daemon is busy", hint="ask again")
                held.callback(gate.release)
            yield held.enter_context(homes.lent(until - time.monotonic()))

    def _run(
        self, entry: Operation, home: Home, asked: _Call, caller: Waiting, until: float
    ) -> bytes:
        if asked.settings is not None and asked.settings != home.settings.mark:
            raise OtherSettings
        one = _AtWork(home, caller, until)
        if not entry.writes:
            with self._guard:
                self._at_work.append(one)
        try:
            with published(self._bus, entry.name) as on_progress:
                result = entry.answer(home, asked.request, on_progress)
            embed_new_memories(home)
        except Unavailable:
            if one.left is not None:
                raise _NobodyWaits from None
            raise
        finally:
            with self._guard:
                if one in self._at_work:
                    self._at_work.remove(one)
        if not asked.notes:
            return result
        told = {"warnings": warnings_of(home), "problems": home.problems}
        return result + b',"notes":' + msgspec.json.encode(told)


def _actor(entry: Operation, asked: _Call, caller: Waiting) -> Actor:
    """Who asks: MCP's tools say for which agent; what other processes ask for is the agent's in which they run.

    Reading is nobody's in particular, and hooks, which agents run, only read.
    """
    if asked.agent is not None:
        return Actor(Face.MCP, shorten(one_line(asked.agent), _AGENT_CHARACTERS) or AN_AGENT)
    return Actor(Face.DAEMON, caller.agent() if entry.writes or entry.owners else None)


def _refusal(code: str, message: str, hint: str | None) -> bytes:
    return msgspec.json.encode({"error": {"code": code, "message": message, "hint": hint}})


# ----------------------------------------------------------------------------
# The gateway in the daemon: it answers in channels unless another process does, and takes over when
# that ends.


_PAUSE_SECONDS = 60.0


class Chatting:
    """Serves the channels in a thread, from ``run`` until ``stop``."""

    def __init__(self, settings: Settings, lend: Lend, tell: Callable[[str], None]) -> None:
        self._settings = settings
        self._lend = lend
        self._tell = tell
        self._told = ""

    def run(self, stop: threading.Event) -> None:
        """Until ``stop`` is set. What fails is told once, and tried again in a minute."""
        while not stop.is_set():
            try:
                engine.serve(self._settings, self._lend, self._tell, stop)
            except Conflict:
                self._say("another process answers in the channels")
            except NacreError as error:
                self._say(
                    f"no gateway: {error.message}" + (f" ({error.hint})" if error.hint else "")
                )
            stop.wait(_PAUSE_SECONDS)

    def _say(self, line: str) -> None:
        if line != self._told:
            self._told = line
            self._tell(line)


# ----------------------------------------------------------------------------
# The watcher in the daemon: it follows sessions unless another watcher does, and takes over when that
# ends.


class Following:
    """Follows sessions in a thread, from ``run`` until ``stop``. ``nacre watcher stop`` ends it until ``again``."""

    def __init__(
        self,
        home: Path,
        open_home: Callable[[], Home],
        watched: Callable[[WatchEvent], None],
        tell: Callable[[str], None],
        version: str,
    ) -> None:
        self._home = home
        self._open_home = open_home
        self._watched = watched
        self._tell = tell
        self._version = version
        self._wanted = threading.Event()
        self._told: str | None = None
        self._watcher: Watcher | None = None
        self.follows = False
        """Whether it does now."""

    def run(self, stop: threading.Event) -> None:
        """Until ``stop`` is set. What fails is told once, and tried again."""
        self._wanted.set()
        while not stop.is_set():
            if self._wanted.is_set():
                self._wanted.clear()
                self._follow_once(stop)
            if stop.is_set():
                return
            self._wanted.wait(1.0)

    def again(self) -> None:
        """Follow now, where that was ended, or another one did."""
        self._wanted.set()

    def reads(self, path: Path) -> bool:
        """Whether a transcript is followed: it is read soon then."""
        return self.follows and self._watcher is not None and self._watcher.reads(path)

    def _follow_once(self, stop: threading.Event) -> None:
        try:
            self._watcher = Watcher(self._open_home, WatchOptions(), self._hear, self._version)
            self._watcher.run(stop)  # which also ends when somebody asks the watcher to
        except Conflict:
            self._say("another watcher follows the sessions")
            self._later(stop)
        except NacreError as error:
            self._say(f"sessions are not followed: {error.message}")
            self._later(stop)
        else:
            self._told = None
        finally:
            self.follows = False

    def _hear(self, event: WatchEvent) -> None:
        self.follows = self.follows or event.kind == "started"
        self._watched(event)

    def _later(self, stop: threading.Event) -> None:
        """Try again in a minute, or at once when the other watcher ended, or somebody wants it."""
        for _ in range(int(_PAUSE_SECONDS)):
            if self._wanted.is_set() or stop.wait(1.0):
                break
        if not stop.is_set() and not follow.is_asked_to_end(self._home):
            self._wanted.set()

    def _say(self, line: str) -> None:
        if line != self._told:
            self._told = line
            self._tell(line)


# ----------------------------------------------------------------------------
# What a daemon says of itself, and how others have it end. Light: commands ask before they load
# anything.


_PAUSE_SECONDS_GREETING = 0.02


@dataclass(frozen=True, slots=True)
class Greeting:
    """What a daemon says of itself.

    It runs for so many ``seconds``, answered ``answered`` questions and is at ``at_work``, this one left out.
    ``follows`` says whether it follows sessions; ``is_warm`` whether what it loads first is loaded. ``http`` is where
    it serves agents over HTTP. One that is ``on_demand`` ends when nobody asks for ``idle_minutes``.
    """

    pid: int
    version: str
    protocol: int
    seconds: float
    answered: int = 0
    at_work: int = 0
    follows: bool = False
    is_warm: bool = False
    http: str | None = None
    on_demand: bool = False
    idle_minutes: float | None = None
    memory_mb: float | None = None
    problems: tuple[str, ...] = ()


def greet(home: Path, seconds: float = 1.0) -> Greeting | None:
    """What the daemon of a home says of itself; ``None`` where none answers."""
    try:
        return json.convert(ask(str(home), "hello", {}, seconds=seconds), Greeting)
    except (Away, Refused, msgspec.ValidationError):
        return None


def ask_to_stop(home: Path, seconds: float = 5.0) -> bool:
    """Have the daemon of a home finish and end; returns whether it is gone."""
    with suppress(Away, Refused):
        ask(str(home), "stop", {}, seconds=1.0)
    until = time.monotonic() + seconds
    while is_held(home / LOCK):
        if time.monotonic() > until:
            return False
        time.sleep(_PAUSE_SECONDS_GREETING)
    return True
