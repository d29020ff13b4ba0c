"""One daemon a home, from its start to its end: it answers, follows sessions, and leaves when it is not needed."""

from __future__ import annotations

import os
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

import nacre
from nacre.catalogue import CATALOGUE, offered_by
from nacre.daemon.answering import Answering, Waiting
from nacre.daemon.chatting import Chatting
from nacre.daemon.following import Following
from nacre.daemon.footprint import memory_mb, share_arenas
from nacre.daemon.greeting import Greeting, ask_to_stop, greet
from nacre.daemon.homes import Homes
from nacre.daemon.hooks import Hooks
from nacre.daemon.server import Caller, Server
from nacre.daemon.spaces import Spaces
from nacre.daemon.tending import Tending
from nacre.daemon.web import TOKEN, Door, Site, Web
from nacre.errors import Conflict, NacreError, OwnerOnly, Unavailable
from nacre.events.bus import Bus
from nacre.events.live import Live
from nacre.events.progress import publish_watched
from nacre.home.home import Home
from nacre.link.address import LOCK
from nacre.link.client import PROTOCOL
from nacre.platform.ids import utc_now
from nacre.platform.locks import FileLock
from nacre.settings import Settings
from nacre.spending.embedders import embedder_in_use
from nacre.values.actor import Actor, Face
from nacre.values.hooks import HookAnswer, HookCall, HookEvent
from nacre.values.recall import RecallQuery
from nacre.web.browsers import Browsers

if TYPE_CHECKING:
    from nacre.watching.watcher import WatchEvent

_LOOK_SECONDS = 0.5
_END_SECONDS = 1.5
_MINUTE = 60.0
_WARMING = "what was decided here, and why?"


class End(StrEnum):
    """Why a daemon ended."""

    ASKED = "it was asked to"
    IDLE = "nobody asked for a while"
    UPGRADED = "its program was changed on disk"
    OUTDATED = "another version of nacre changed the database"
    GONE = "its home was moved or deleted"


@dataclass(frozen=True, slots=True)
class DaemonOptions:
    """``idle_minutes`` without a question end one that was started ``on_demand``, which also gives way to one that was
    not. ``watches`` says whether it follows sessions, ``http`` where it serves HTTP, and to whom."""

    on_demand: bool = False
    idle_minutes: float = 30.0
    watches: bool = True
    http: Door = Door()
    version: str = ""


@dataclass(frozen=True, slots=True)
class Voice:
    """Who is told what a daemon does, and what its watcher does."""

    tell: Callable[[str], None]
    watched: Callable[[WatchEvent], None]


class Daemon:
    """Serves one home until it is told to stop, or has no reason to stay. Not to be run twice."""

    def __init__(
        self, settings: Settings, open_home: Callable[[], Home], options: DaemonOptions, voice: Voice
    ) -> None:  # fmt: skip
        self._settings = settings
        self._options = options
        self._tell, self._tell_watched = voice.tell, voice.watched
        self._homes = Homes(open_home, settings.home, settings.config)
        self._stop = threading.Event()
        self._began = time.monotonic()
        self._program = _program()
        self._is_warm = False
        self._problems: list[str] = []
        self._threads: list[threading.Thread] = []
        self._following = (
            Following(settings.home, open_home, self._watched, voice.tell, options.version) if options.watches else None
        )
        self._live = Live(open_home, Bus(utc_now))
        own = {
            "hello": self._greeting, "stop": self._asked_to_stop, "follow": self._asked_to_follow,
            "open": self._asked_to_open,
        }  # fmt: skip
        offered = offered_by(Face.DAEMON)
        catalogue = {**offered, "hook": replace(offered["hook"], place=self._hook)}
        self._spaces = Spaces(settings) if settings.server else None
        self._answering = Answering(
            self._homes, voice.tell, own, catalogue, bus=self._live.bus,
            homes_of=self._spaces.homes if self._spaces else None,
        )  # fmt: skip
        self._site = Site(
            settings.home, self._answering.run, self._facts, Browsers(settings.home), self._live, voice.tell,
            everything=settings.text("mcp.tools") == "all", bearer=self._spaces.bearer if self._spaces else None,
            live_of=self._spaces.live if self._spaces else None,
        )  # fmt: skip
        self._web = Web(self._site, options.http) if options.http.place else None
        self._opening = threading.Lock()
        hooks = Hooks(settings.home, self._answering.answer)
        self._server = Server(settings.home, self._answering.answer, voice.tell, hooks.take)

    @property
    def is_at_work(self) -> bool:
        """Whether questions are still being answered; after the end, those that took too long."""
        return self._server.at_work > 0

    def run(self, stop: threading.Event) -> End:
        """Serve until ``stop`` is set; returns why it ended.

        Raises Conflict where a daemon serves this home, and what opening it raises.
        """
        self._stop = stop
        share_arenas()
        lock = FileLock(self._settings.home / LOCK)
        with self._homes.lent():
            pass  # a home that cannot be opened is told to whoever starts it
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
        """Be the only daemon of the home. One that was started on demand gives way to one that is to stay."""
        home = self._settings.home
        if lock.acquire():
            return
        there = greet(home)
        if there and there.on_demand and not self._options.on_demand:
            ask_to_stop(home)
            if lock.acquire(1.0):
                return
        told = f" (process {there.pid})" if there else ""
        raise Conflict(f"a daemon serves {home} already{told}", hint="nacre serve status tells how it is")

    def _begin(self) -> None:
        self._begin_http()  # before anybody can ask where it is
        self._server.start()
        reads = self._following.reads if self._following else lambda _: False
        tending = Tending(self._settings, self._homes, self._tell, reads, self._rested)
        self._start("minding", lambda: self._answering.mind(self._stop))
        self._start("tending", lambda: tending.run(self._stop))
        self._start("warming", self._warm)
        self._start("looking", lambda: self._live.run(self._stop))
        if self._following:
            following = self._following
            self._start("following", lambda: following.run(self._stop))
        if self._settings.flag("gateway.enabled"):
            chatting = Chatting(self._settings, self._homes.lent, self._tell)
            self._start("chatting", lambda: chatting.run(self._stop))
        self._tell(f"serves {self._settings.home}{self._told_of_http()}; process {os.getpid()}")
        for problem in self._problems:
            self._tell(problem)

    def _begin_http(self) -> None:
        """Where it was asked for, or where a browser still knows the home: at the port that it knows."""
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

    def _told_of_http(self) -> str:
        if not self._web:
            return ""
        token = f"token: {self._settings.home / TOKEN}" if self._web.asks_token else "without a token"
        return f", and over HTTP at {self._web.address}, agents at {self._web.address}/mcp ({token})"

    def _start(self, name: str, work: Callable[[], None]) -> None:
        """Do it in a thread; what fails is told, and begun again in a minute."""

        def guarded() -> None:
            while not self._stop.is_set():
                try:
                    work()
                except Exception as error:  # noqa: BLE001 - who asks is answered, whatever befalls the rest
                    self._tell("".join(traceback.format_exception(error)).rstrip())
                    self._stop.wait(_MINUTE)
                else:
                    return

        self._threads.append(threading.Thread(target=guarded, daemon=True, name=name))
        self._threads[-1].start()

    def _wait(self) -> End:
        while not self._stop.wait(_LOOK_SECONDS):
            if not self._server.is_in_place():
                return End.GONE
            if self._homes.outdated:
                return End.OUTDATED
            if self._is_upgraded():
                return End.UPGRADED
            if self._is_idle():
                return End.IDLE
        return End.ASKED

    def _is_upgraded(self) -> bool:
        """Whether another nacre lies where this one was loaded from, and has come to rest there."""
        seen = _program()
        if seen == self._program:
            return False
        while not self._stop.wait(2 * _LOOK_SECONDS):
            before, seen = seen, _program()
            if seen == before:
                return True
        return False

    def _is_idle(self) -> bool:
        is_needed = self._live.bus.listeners or self._settings.flag("gateway.enabled")
        if not self._options.on_demand or self._server.at_work or is_needed:
            return False
        return self._rested() > self._options.idle_minutes * _MINUTE

    def _rested(self) -> float:
        """For how many seconds nobody has asked for anything; 0 while somebody is answered."""
        over_socket = 0.0 if self._server.at_work else time.monotonic() - self._server.asked_at
        return min(over_socket, self._web.rested) if self._web else over_socket

    def _end(self) -> None:
        self._stop.set()
        self._live.wake()
        self._server.stop()
        if self._web:
            self._web.stop()
        until = time.monotonic() + _END_SECONDS
        while self._server.at_work and time.monotonic() < until:
            time.sleep(0.01)
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        self._homes.close()
        if self._spaces:
            self._spaces.close()

    def _watched(self, event: WatchEvent) -> None:
        self._tell_watched(event)
        publish_watched(self._live.bus, event)

    def _hook(self, home: Home, call: HookCall) -> HookAnswer:
        """What a hook is answered: by words alone until the model is loaded, since hooks wait for milliseconds."""
        answer: HookAnswer = CATALOGUE["hook"].run(home, call if self._is_warm else replace(call, alone=True))
        return answer

    def _warm(self) -> None:
        """Load what the first questions need, before they are asked; nothing is told, and no use is noted."""
        try:
            with self._homes.lent() as home:
                CATALOGUE["hook"].run(home, HookCall("", HookEvent.PROMPT, prompt=_WARMING, alone=True))
                CATALOGUE["recall"].run(home, RecallQuery(_WARMING, limit=1, turns=1, update=False))
                CATALOGUE["hook"].run(home, HookCall("", HookEvent.PROMPT, prompt=_WARMING))
                if home.settings.text("embedding.model") != "none":
                    _ = embedder_in_use(home)  # also where there is nothing yet that it could be compared with
        except NacreError as error:
            self._tell(f"nothing could be loaded beforehand: {error.message}")
        self._is_warm = True

    def _greeting(self, _: Waiting) -> Greeting:
        options, web = self._options, self._web
        return Greeting(
            os.getpid(), options.version, PROTOCOL, round(time.monotonic() - self._began, 1), self._server.answered,
            self._server.at_work - 1, bool(self._following and self._following.follows), self._is_warm,
            f"{web.address}/mcp" if web else None, options.on_demand,
            options.idle_minutes if options.on_demand else None, memory_mb(), tuple(self._problems),
        )  # fmt: skip

    def _asked_to_stop(self, _: Waiting) -> bool:
        self._stop.set()
        return True

    def _asked_to_follow(self, _: Waiting) -> bool:
        if self._following:
            self._following.again()
        return bool(self._following)

    def _asked_to_open(self, caller: Waiting) -> str:
        """An address at which one browser becomes the owner's: only for whoever is known to run in no agent."""
        Actor(Face.DAEMON, caller.agent()).require_owner("nacre open")
        if isinstance(caller, Caller) and caller.is_orphan():
            raise OwnerOnly("who started nacre open cannot be told", hint="run it in a terminal of your own")
        with self._opening:
            if self._web is None:
                self._web = self._opened_web()
            return self._web.invite()

    def _opened_web(self) -> Web:
        """HTTP at the port that browsers know, else that of the settings, else any."""
        with self._homes.lent() as home:
            door = Door.of(home.settings, "")
        ports = (self._site.browsers.port or 0, home.settings.whole("web.port"))
        for port in (*filter(None, ports), 0):
            web = Web(self._site, replace(door, place=str(port)))
            with suppress(*([Unavailable] if port else [])):
                web.start()
                return web
        raise Unavailable("no port is free")

    def _facts(self) -> dict[str, object]:
        with self._homes.lent() as home:
            embedding = home.settings.text("embedding.model")
        return {"version": self._options.version, "home": str(self._settings.home), "embedding": embedding}


def _program() -> tuple[int, int]:
    """What changes when another nacre is installed in the place of this one."""
    with suppress(OSError):
        seen = os.stat(nacre.__file__)
        return seen.st_mtime_ns, seen.st_ino
    return 0, 0
