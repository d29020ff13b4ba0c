"""The daemon: its socket server, background work and hooks."""

from __future__ import annotations

import json
import os
import re
import socket
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

import nacre
from nacre.base import files, plugins
from nacre.base.environment import install_hint
from nacre.base.frozen import frozen
from nacre.base.ids import utc_now
from nacre.base.link import EVENTS, LOCK, PROTOCOL, ask_to_stop, socket_path, start_process
from nacre.base.locks import FileLock
from nacre.care.follow import Follower
from nacre.data.sync import keep_history
from nacre.errors import (
    ConflictError,
    NacreError,
    OwnerOnlyError,
    UnavailableError,
    UnusableStoreError,
)
from nacre.home.home import Home
from nacre.home.spending import embedder_in_use, fold_notes
from nacre.memories.edit import catch_up
from nacre.memories.vectors import embed_memories
from nacre.operations import Operation
from nacre.review.dream import dream_if_due
from nacre.serve import browsers, hook_shapes
from nacre.serve.catalogue import CATALOGUE, find_operation
from nacre.serve.events import Bus, Live
from nacre.serve.homes import (
    Answering,
    Caller,
    Greeting,
    Homes,
    Site,
    give_back,
    greet,
    memory_mb,
    share_arenas,
    stamp_of,
    trace_of,
)
from nacre.serve.server_web import TOKEN, Door, Web
from nacre.settings import Settings
from nacre.setup import chores
from nacre.values.context import HookAnswer, HookCall, HookEvent
from nacre.values.memory import Actor, Face
from nacre.values.recall import RecallQuery

_BACKLOG = 1024
"""Maximum number of connections waiting to be accepted."""

_ACCEPT_PAUSE_SECONDS = 0.1

_REQUEST = re.compile(
    rb"POST /(call/(?P<operation>[\w-]+)|hook/(?P<host>[\w-]+)/(?P<event>[\w-]+)) HTTP/1\.1\r\n"
)

Tell = Callable[[str], None]
Answer = Callable[[str, bytes, Caller], tuple[HTTPStatus, bytes]]


class Server:
    """An HTTP server on a home's socket, with a thread for each connection.

    ``answer`` returns the status and body of a response, which is not sent if the body is empty.
    ``hook`` sends its response itself. ``tell`` writes to the daemon's log.
    """

    def __init__(
        self,
        home: Path,
        answer: Answer,
        tell: Tell,
        hook: Callable[[str, str, bytes, Caller], None] = lambda *_: None,
    ) -> None:
        self._home = home
        self.path = socket_path(home)
        self._answer = answer
        self._hook = hook
        self._tell = tell
        self._guard = threading.Lock()
        self.at_work = 0
        """Number of callers being served."""
        self._socket: socket.socket | None = None
        self._socket_status: os.stat_result | None = None
        self.answers = 0
        self.asked_at = time.monotonic()
        """Time of the last request or answer, from ``time.monotonic``."""

    def start(self) -> None:
        """Listen on the socket, even if an earlier daemon has left it. Raises UnusableStoreError on failure.

        On Windows, where there is no such socket, this does nothing.
        """
        if not hasattr(socket, "AF_UNIX"):
            return
        folder = Path(self.path).parent
        try:
            files.make_folder(folder)
            files.refuse_unsafe(folder)
            for leftover in folder.glob(f"{Path(self.path).name}.*"):
                leftover.unlink(missing_ok=True)  # from a process killed while it started
            listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            fresh = f"{self.path}.{os.getpid()}"
            listening.bind(fresh)
            os.chmod(fresh, stat.S_IRUSR | stat.S_IWUSR)
            listening.listen(_BACKLOG)
            os.replace(fresh, self.path)
            self._socket_status = os.stat(self.path)
        except OSError as error:
            message = f"cannot listen at {self.path}: {error.strerror or error}"
            raise UnusableStoreError(
                message, hint="is the home on a file system that supports sockets?"
            ) from error
        self._socket = listening
        threading.Thread(
            target=self._accept, args=(listening,), daemon=True, name="accepting"
        ).start()

    def is_in_place(self) -> bool:
        """Return False if the socket is gone because the home was moved or deleted."""
        if not hasattr(socket, "AF_UNIX"):
            return self._home.is_dir()
        with suppress(OSError):
            status = os.stat(self.path)
            return self._socket_status is not None and (status.st_ino, status.st_dev) == (
                self._socket_status.st_ino,
                self._socket_status.st_dev,
            )
        return False

    def stop(self) -> None:
        """Stop listening. Requests in progress continue."""
        listening, self._socket = self._socket, None
        if listening is None:
            return
        if self.is_in_place():
            with suppress(OSError):
                os.unlink(self.path)
        with suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts connections
        listening.close()

    def _accept(self, listening: socket.socket) -> None:
        while self._socket is listening:
            try:
                link, _ = listening.accept()
                self._note(1)
                try:
                    threading.Thread(
                        target=self._serve, args=(link,), daemon=True, name="answering"
                    ).start()
                except RuntimeError:
                    self._note(-1)
                    raise
            except (OSError, RuntimeError) as error:
                # Out of file descriptors or threads, perhaps only briefly.
                if self._socket is listening:
                    self._tell(f"a caller was rejected: {error}")
                    time.sleep(_ACCEPT_PAUSE_SECONDS)

    def _serve(self, link: socket.socket) -> None:
        try:
            with link, suppress(OSError):
                self._respond(Caller(link))
        except Exception as error:  # noqa: BLE001 - no caller's error may end the server
            self._tell(trace_of(error))
        finally:
            self._note(-1)

    def _respond(self, caller: Caller) -> None:
        message = caller.question() if caller.is_allowed() else b""
        if not message:
            return
        body = message.partition(b"\r\n\r\n")[2]
        request = _REQUEST.match(message)
        if request is None:
            caller.take(HTTPStatus.NOT_FOUND, b"")
        elif request["operation"]:
            status, answer = self._answer(request["operation"].decode(), body, caller)
            if answer:
                self._note(0, answers=1)
                caller.take(status, answer)
        else:
            self._note(0, answers=1)
            self._hook(request["host"].decode(), request["event"].decode(), body, caller)

    def _note(self, callers: int, *, answers: int = 0) -> None:
        with self._guard:
            self.at_work += callers
            self.answers += answers
            self.asked_at = time.monotonic()


# -- Background work -------------------------------------------------------------------------------


HISTORY_SECONDS = 10.0
REST_SECONDS = 600.0
"""Idle time in seconds after which the daemon consolidates memories."""

_POLL_SECONDS = 0.5
_MIN_PAUSE_SECONDS, _MAX_PAUSE_SECONDS = 1.0, 300.0
_TERMINATE_SECONDS = 1.0


@dataclass
class Tending:
    """The daemon's background work: vectors, history, chores, consolidation and freeing memory.

    ``_reads``: tells whether the daemon follows a transcript. ``_rested``: tells the seconds since
    the last request ended.
    """

    _settings: Settings
    _homes: Homes
    _tell: Tell
    _reads: Callable[[Path], bool]
    _rested: Callable[[], float]
    _process: subprocess.Popen[bytes] | None = None
    _not_before: float = 0.0
    _pause: float = _MIN_PAUSE_SECONDS
    _embedded: object = None
    _embeds_at: float = 0.0
    _embed_pause: float = _MIN_PAUSE_SECONDS

    def run(self, stop: threading.Event) -> None:
        last = time.monotonic()
        is_rested = False
        while not stop.wait(_POLL_SECONDS):
            self._run_chores()
            self._embed()
            was_rested, is_rested = is_rested, self._rested() >= REST_SECONDS
            if is_rested and not was_rested:
                self._dream()
            if time.monotonic() - last > HISTORY_SECONDS:
                self._keep_history()
                if self._homes.shrink():
                    give_back()
                last = time.monotonic()
        if self._process and self._process.poll() is None:
            self._process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_TERMINATE_SECONDS)

    def _embed(self) -> None:
        if time.monotonic() < self._embeds_at:
            return
        is_stuck = False
        with suppress(NacreError), self._homes.lent(0.0) as home:
            catch_up(home, 0.0)
            if home.database.state() != self._embedded:
                newest = home.vectors.memories_to_embed(1)
                if newest:
                    embed_memories(home)
                remaining = home.vectors.memories_to_embed(1)
                is_stuck = bool(remaining) and remaining == newest
                self._embedded = None if remaining else home.database.state()
        self._embed_pause = (
            min(2 * self._embed_pause, _MAX_PAUSE_SECONDS) if is_stuck else _MIN_PAUSE_SECONDS
        )
        self._embeds_at = time.monotonic() + self._embed_pause

    def _keep_history(self) -> None:
        try:
            with self._homes.lent(0.0) as context:
                keep_history(context)
                fold_notes(
                    context
                )  # so that listeners learn of questions before anyone reads traces
        except NacreError:
            return  # all homes are busy or cannot be opened; retry later
        except OSError as error:
            self._tell(f"cannot commit: {error}")

    def _dream(self) -> None:
        try:
            with self._homes.lent(0.0) as home:
                report = dream_if_due(home)
        except NacreError as error:
            self._tell(f"no dream: {error.message}")
            return
        if report:
            result = f"retired memories: {report.plan.ending}"
            self._tell(f"dreamt: {result if report.operation else 'planned, without changes'}")
            give_back()

    # A separate process does the chores of hooks. It is restarted with growing pauses.

    def _run_chores(self) -> None:
        if self._process and self._process.poll() is None:
            return
        if self._process:
            self._note_end(self._process.returncode)
        chores.drop(self._settings.home, self._is_needless)
        if time.monotonic() < self._not_before or not chores.is_due(
            self._settings.home, time.time()
        ):
            return
        try:
            self._process = start_process(self._settings.home, self._settings.environ, "chores")
        except OSError as error:
            self._tell(f"the process for chores cannot be started: {error.strerror}")
            self._not_before = time.monotonic() + _MAX_PAUSE_SECONDS

    def _is_needless(self, chore: chores.Chore) -> bool:
        return (
            chore.kind == HookEvent.TURN_END
            and bool(chore.transcript)
            and self._reads(Path(chore.transcript or ""))
        )

    def _note_end(self, code: int) -> None:
        self._process = None
        is_stuck = bool(code) or chores.is_due(self._settings.home, time.time())
        self._pause = min(2 * self._pause, _MAX_PAUSE_SECONDS) if is_stuck else _MIN_PAUSE_SECONDS
        self._not_before = time.monotonic() + (self._pause if is_stuck else 0.0)
        if code:
            self._tell(f"chores ended with {code}")


# -- Hooks -----------------------------------------------------------------------------------------
# A hook posts the host's input to ``/hook/HOST/EVENT``. The response is the output for the host.
# With status 503, the hook must compute the answer itself.


_HOOK_SECONDS = 1.0
"""Maximum time that a hook waits, in seconds."""


@dataclass
class Hooks:
    """A handler that answers hosts' hooks by running the operation ``hook``."""

    _home: str
    _answer: Answer

    def take(self, host: str, event: str, body: bytes, caller: Caller) -> None:
        began = time.monotonic()
        shape = hook_shapes.SHAPES.get(host)
        if shape is None:
            caller.take(HTTPStatus.NOT_FOUND, b"")
            return
        name = shape.name_of(event)
        call = shape.call(host, name, hook_shapes.parse_input(body) or {})
        how, answer = self._call(name, call, caller)
        if answer is None:
            caller.take(HTTPStatus.SERVICE_UNAVAILABLE, b"")
            return
        context = hook_shapes.context_of(name, answer)
        try:
            caller.take(HTTPStatus.OK, shape.output(event, name, context))
        except OSError:  # the hook's time limit is over
            how, context = "late", ""
            if name == "session-start":
                hook_shapes.owe_start(self._home, call["session"], call["occasion"])
        else:
            hook_shapes.keep(self._home, call, answer)
        took = round(1000 * (time.monotonic() - began), 1)
        hook_shapes.log(self._home, host, event, how, took, len(context))

    def _call(
        self, name: str, call: Mapping[str, Any], caller: Caller
    ) -> tuple[str, dict[str, Any] | None]:
        if call["is_apart"] or not (
            name in hook_shapes.TELLING or name in EVENTS or name == hook_shapes.TOOL
        ):
            return "apart", {}
        message = {"protocol": PROTOCOL, "request": call, "seconds": _HOOK_SECONDS}
        body = self._answer("hook", json.dumps(message).encode(), caller)[1]
        answer = json.loads(body).get("result") if body else {}
        if answer is not None and name in EVENTS:
            hook_shapes.leave_chore(self._home, name, call)
        return "daemon", answer


# -- The daemon ------------------------------------------------------------------------------------


_SHUTDOWN_SECONDS = 1.5
_PATIENCE_SECONDS = 5.0
_MINUTE = 60.0
_SAMPLE_QUESTION = "what was decided here, and why?"


class End(StrEnum):
    """The reason why a daemon ended."""

    REQUESTED = "on request"
    IDLE = "idle"
    UPGRADED = "nacre was updated"
    OUTDATED = "another version of nacre changed the database"
    HOME_MISSING = "the home was moved or deleted"


@frozen
class DaemonOptions:
    """The options of a daemon. With ``on_demand``, it ends after ``idle_minutes`` without requests,
    or when a permanent daemon starts. With ``watches``, it follows sessions.
    """

    on_demand: bool = False
    idle_minutes: float = 30.0
    watches: bool = True
    http: Door = Door()


class Daemon:
    """The daemon of a home. It can :meth:`run` only once."""

    def __init__(
        self, settings: Settings, open_home: Callable[[], Home], options: DaemonOptions, tell: Tell
    ) -> None:
        self._settings = settings
        self._open_home = open_home
        self._options = options
        self._tell = tell
        self._homes = Homes(open_home, settings.home, settings.config)
        self._stop = threading.Event()
        self._began = time.monotonic()
        self._program = stamp_of(nacre.__file__)
        self._is_warm = False
        self._problems: list[str] = []
        self._threads: list[threading.Thread] = []
        self._serves_plugins = False
        self._follower: Follower | None = None
        self._live = Live(open_home, Bus(utc_now))
        own = {"hello": self._greeting, "stop": self._handle_stop, "open": self._handle_open}
        server = settings.server
        self._spaces = plugins.load_engine(server).key_spaces(settings) if server else None
        self._answering = Answering(
            self._homes, tell, own, self._find_operation, bus=self._live.bus, spaces=self._spaces
        )
        self._site = Site(
            settings.home,
            self._answering.run,
            self._facts,
            browsers.Browsers(settings.home),
            self._live,
            tell,
            everything=settings.text("mcp.tools") == "all",
            spaces=self._spaces,
        )
        self._web = Web(self._site, options.http) if options.http.place else None
        self._opening = threading.Lock()
        hooks = Hooks(str(settings.home), self._answering.answer)
        self._server = Server(settings.home, self._answering.answer, tell, hooks.take)

    @property
    def is_at_work(self) -> bool:
        """True if requests are in progress, even after :meth:`run` has returned."""
        return self._server.at_work > 0

    def run(self, stop: threading.Event) -> End:
        """Serve the home, and return why the daemon ended. Setting ``stop`` ends it.

        Raises ConflictError if another daemon serves the home.
        """
        self._stop = stop
        share_arenas()
        lock = FileLock(self._settings.home / LOCK)
        with self._homes.lent():
            pass  # this raises if the home cannot be opened
        self._take_place(lock)
        try:
            self._begin()
            why = self._wait()
            self._tell(f"ends: {why}")
            return why
        finally:
            self._end()
            lock.release()

    def _take_place(self, lock: FileLock) -> None:
        home, daemon = self._settings.home, None
        until = time.monotonic() + (0.0 if self._options.on_demand else _PATIENCE_SECONDS)
        while not lock.acquire():
            daemon = greet(home)
            if daemon and daemon.on_demand and not self._options.on_demand:
                ask_to_stop(home)
            elif daemon or time.monotonic() > until:
                break
            time.sleep(_POLL_SECONDS)
        else:
            return
        process = f" (process {daemon.pid})" if daemon else ""
        raise ConflictError(
            f"a daemon already serves {home}{process}", hint="see nacre serve status"
        )

    def _begin(self) -> None:
        self._begin_http()  # clients can ask for its address from now on
        self._server.start()
        tending = Tending(self._settings, self._homes, self._tell, self._reads, self._rested)
        self._start("minding", lambda: self._answering.mind(self._stop))
        self._start("tending", lambda: tending.run(self._stop))
        self._start("warming", self._warm)
        self._start("looking", lambda: self._live.run(self._stop))
        if self._options.watches:
            self._start("following", self._follow)
        self._begin_plugins()
        self._tell(f"serves {self._settings.home}{self._http_summary()}; process {os.getpid()}")
        for problem in self._problems:
            self._tell(problem)

    def _begin_plugins(self) -> None:
        makers = plugins.load_usable_plugins(plugins.DAEMON)
        for group in (plugins.OPERATIONS, plugins.RESOURCES, plugins.SERVICES, plugins.DAEMON):
            self._problems += [error.message for error in plugins.broken_plugins(group)]
        if self._settings.flag("gateway.enabled") and "gateway" not in makers:
            self._problems.append(f"the gateway is not installed: {install_hint('gateway')}")
        for name, make in makers.items():
            try:
                work = make(self._settings, self._homes.lent, self._tell)
            except Exception as error:  # noqa: BLE001 - callers must still be answered
                self._problems.append(f"the plugin {name!r} failed: {error}")
                continue
            if work:
                self._start(name, partial(work, self._stop))
                self._serves_plugins = True

    def _begin_http(self) -> None:
        port = None if self._web else self._site.browsers.port
        if port is not None:
            self._web = Web(self._site, Door.of(self._settings, str(port)))
        if self._web is None:
            return
        try:
            self._web.start()
        except (NacreError, ImportError) as error:
            if port is None and not self._options.on_demand:
                raise
            self._problems.append(f"not served over HTTP: {error}")
            self._web = None

    def _http_summary(self) -> str:
        if not self._web:
            return ""
        token = (
            f"token: {self._settings.home / TOKEN}" if self._web.asks_token else "without a token"
        )
        return (
            f", and over HTTP at {self._web.address}, agents at {self._web.address}/mcp ({token})"
        )

    def _start(self, name: str, work: Callable[[], None]) -> None:
        def guarded() -> None:
            while not self._stop.is_set():
                try:
                    work()
                except Exception as error:  # noqa: BLE001 - callers must still be answered
                    self._tell(trace_of(error))
                    problem = f"{name} failed: {type(error).__name__}: {error}"
                    if problem not in self._problems:
                        self._problems.append(problem)
                    self._stop.wait(_MINUTE)
                else:
                    return

        self._threads.append(threading.Thread(target=guarded, daemon=True, name=name))
        self._threads[-1].start()

    def _wait(self) -> End:
        while not self._stop.wait(_POLL_SECONDS):
            if not self._server.is_in_place():
                return End.HOME_MISSING
            if self._homes.outdated:
                return End.OUTDATED
            if self._is_upgraded():
                return End.UPGRADED
            if self._is_idle():
                return End.IDLE
        return End.REQUESTED

    def _is_upgraded(self) -> bool:
        current = stamp_of(nacre.__file__)
        if current == self._program:
            return False
        while not self._stop.wait(2 * _POLL_SECONDS):
            before, current = current, stamp_of(nacre.__file__)
            if current == before:
                return True
        return False

    def _is_idle(self) -> bool:
        is_needed = self._live.bus.listeners or self._serves_plugins
        if not self._options.on_demand or self._server.at_work or is_needed:
            return False
        return self._rested() > self._options.idle_minutes * _MINUTE

    def _rested(self) -> float:
        over_socket = 0.0 if self._server.at_work else time.monotonic() - self._server.asked_at
        return min(over_socket, self._web.rested) if self._web else over_socket

    def _end(self) -> None:
        self._stop.set()
        self._live.wake()
        self._server.stop()
        if self._web:
            self._web.stop()
        until = time.monotonic() + _SHUTDOWN_SECONDS
        while self._server.at_work and time.monotonic() < until:
            time.sleep(0.01)
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        self._homes.close()
        if self._spaces:
            self._spaces.close()

    def _follow(self) -> None:
        follower = Follower(self._settings, self._open_home, self._tell, utc_now)
        self._follower = follower
        try:
            follower.run(self._stop)
        finally:
            self._follower = None

    def _reads(self, path: Path) -> bool:
        follower = self._follower
        return follower is not None and follower.reads(path)

    def _hook(self, home: Home, call: HookCall) -> HookAnswer:
        answer: HookAnswer = CATALOGUE["hook"].run(
            home, call if self._is_warm else replace(call, alone=True)
        )
        return answer

    def _warm(self) -> None:
        try:
            with self._homes.lent() as home:
                CATALOGUE["hook"].run(
                    home, HookCall("", HookEvent.PROMPT, prompt=_SAMPLE_QUESTION, alone=True)
                )
                CATALOGUE["recall"].run(
                    home, RecallQuery(_SAMPLE_QUESTION, limit=1, turns=1, update=False)
                )
                CATALOGUE["hook"].run(home, HookCall("", HookEvent.PROMPT, prompt=_SAMPLE_QUESTION))
                if home.settings.embeds:
                    _ = embedder_in_use(home)  # loads the model even if there are no memories
        except NacreError as error:
            self._tell(f"the model and caches could not be loaded in advance: {error.message}")
        self._is_warm = True

    def _greeting(self, _: Caller) -> Greeting:
        options, web, follower = self._options, self._web, self._follower
        return Greeting(
            os.getpid(),
            nacre.__version__,
            PROTOCOL,
            round(time.monotonic() - self._began, 1),
            self._server.answers,
            self._server.at_work - 1,
            follower.state if follower else None,
            self._is_warm,
            f"{web.address}/mcp" if web else None,
            options.on_demand,
            options.idle_minutes if options.on_demand else None,
            memory_mb(),
            tuple(self._problems),
        )

    def _handle_stop(self, _: Caller) -> bool:
        self._stop.set()
        return True

    def _find_operation(self, name: str) -> Operation | None:
        entry = find_operation(name)
        return replace(entry, function=self._hook) if entry and name == "hook" else entry

    def _handle_open(self, caller: Caller) -> str:
        Actor(Face.DAEMON, caller.agent()).require_owner("nacre open")
        if caller.is_orphan():
            raise OwnerOnlyError(
                "the caller of nacre open cannot be determined", hint="run it in your own terminal"
            )
        with self._opening:
            if self._web is None:
                self._web = self._start_web()
            return self._web.invite()

    def _start_web(self) -> Web:
        with self._homes.lent() as home:
            door = Door.of(home.settings, "")
        ports = (self._site.browsers.port or 0, home.settings.whole("web.port"))
        for port in (*filter(None, ports), 0):
            web = Web(self._site, replace(door, place=str(port)))
            with suppress(*([UnavailableError] if port else [])):
                web.start()
                return web
        raise UnavailableError("no port is free")

    def _facts(self) -> dict[str, object]:
        with self._homes.lent() as home:
            embedding = home.settings.text("embedding.model")
            writer = home.settings.text("models.extraction")
        return {
            "version": nacre.__version__,
            "home": str(self._settings.home),
            "embedding": embedding,
            "writer": writer,
        }
