"""What a question asks for, and its answer: the catalogue's operations, in an open home, while somebody waits."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Protocol

import msgspec

from nacre.catalogue import CATALOGUE, offered_by
from nacre.daemon.homes import Homes
from nacre.errors import Fault, InvalidInput, NacreError, OtherSettings, OtherVersion, Unavailable
from nacre.events.bus import Bus
from nacre.events.progress import published
from nacre.home.home import Home
from nacre.link.client import PROTOCOL
from nacre.operation import Operation
from nacre.platform import json_values
from nacre.platform.ids import utc_now
from nacre.sync.follow_up import embed_new_memories, warnings_of
from nacre.text.passages import one_line, shorten
from nacre.values.actor import AN_AGENT, Actor, Bearer, Face, acting

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
        self, homes: Homes, tell: Callable[[str], None], own: Mapping[str, Callable[[Waiting], object]],
        catalogue: Mapping[str, Operation] | None = None, *,
        bus: Bus | None = None, homes_of: Callable[[Bearer], Homes] | None = None,
    ) -> None:  # fmt: skip
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
            told = _refusal("internal", f"{type(error).__name__} in the daemon", "logs/daemon.log tells more")
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
            raise Fault(f"{type(error).__name__} in the daemon", hint="logs/daemon.log tells more") from error

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
            asked = json_values.parse(body, _Call)
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise InvalidInput(f"no question: {error}", hint="docs/daemon.md shows one") from error
        if operation in self._own:
            return b'{"result":' + msgspec.json.encode(self._own[operation](caller)) + b"}"
        if asked.protocol != PROTOCOL:
            raise OtherVersion(f"this daemon speaks protocol {PROTOCOL}, not {asked.protocol}")
        entry = self._catalogue.get(operation)
        if entry is None:
            raise InvalidInput(f"there is no operation {operation!r}", hint=f"one of {', '.join(self._catalogue)}")
        return b'{"result":' + self._answered(entry, asked, _actor(entry, asked, caller), caller) + b"}"

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
    ) -> bytes:  # fmt: skip
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
