"""The gateway at work: channels receive, conversations are answered one turn at a time, answers are sent."""

from __future__ import annotations

import asyncio
import traceback
from collections import OrderedDict, deque
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

from nacre.errors import ChannelRefused, ChannelUnavailable, NacreError
from nacre.gateway.answering import Answering, Work, excuse
from nacre.gateway.channel_options import LiveRules, Open
from nacre.gateway.channels.channel import Channel, ServesHttp, ShowsPieces
from nacre.gateway.delivery import Delivery
from nacre.gateway.files import Cleans
from nacre.gateway.inbox import HISTORY_KEYS, ChannelInbox, Desk
from nacre.gateway.keeping import Keeping
from nacre.gateway.sessions import Sessions
from nacre.gateway.transcript import Transcripts
from nacre.gateway.turns import Taken, Turns
from nacre.platform.ids import Clock
from nacre.settings import Settings
from nacre.storage.gateway import GatewayStore
from nacre.values.gateway.message import Answer, Chat

_KEEP_DAYS = 7
_TIDY_SECONDS = 60.0
_END_SECONDS = 3.0
_LEAST_PAUSE, _MOST_PAUSE = 1.0, 300.0
_MOST_DEBOUNCES = 10
"""Who goes on writing is answered after so many pauses at the latest."""

_MINUTE = 60.0
_SILENT = "NO_REPLY"
"""What a responder answers where nothing is to be said (OpenClaw)."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What a gateway works with. ``tell`` writes to its log."""

    settings: Settings
    store: GatewayStore
    channels: Mapping[str, Open]
    answering: Answering
    redactor: Cleans
    clock: Clock
    new_id: Callable[[], str]
    tell: Callable[[str], None]
    listen: Callable[[Mapping[str, ServesHttp]], Coroutine[Any, Any, None]] | None = None
    transcripts: Transcripts = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "transcripts", Transcripts(self.settings.home))


class Gateway:
    """Serves the channels of one home until it is told to stop. Not to be run twice."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        settings = parts.settings
        sessions = Sessions(parts.store, parts.transcripts, parts.clock, parts.new_id)
        self._turns = Turns(sessions, settings, parts.redactor)
        self._debounce = settings.number("gateway.debounce_seconds")
        self._at_once = settings.whole("gateway.at_once")
        self._a_minute = settings.whole("gateway.answers_a_minute")
        self._pool = ThreadPoolExecutor(self._at_once, thread_name_prefix="answering")
        self._talks: dict[str, asyncio.Task[None]] = {}
        self._paces: OrderedDict[str, deque[float]] = OrderedDict()

    async def run(self, stop: asyncio.Event) -> None:
        """Until ``stop`` is set. What is being answered then is answered next time."""
        parts = self._parts
        self._room = asyncio.Semaphore(self._at_once)
        open_channels = {name: one.channel for name, one in parts.channels.items()}
        self._delivery = Delivery(parts.store, open_channels, parts.clock, parts.tell)
        self._keeping = Keeping(
            self._turns.sessions, parts.answering, parts.tell, index_every=parts.settings.whole("gateway.index_every")
        )
        desk = Desk(
            parts.store, parts.redactor, parts.clock, parts.new_id, self._wake, self._delivery.send,
            parts.settings.whole("gateway.most_waiting"), parts.settings.whole("gateway.group_history"),
        )  # fmt: skip
        tasks = [asyncio.create_task(self._receive(name, one, desk)) for name, one in parts.channels.items()]
        tasks.append(asyncio.create_task(self._tidy()))
        called = {name: one for name, one in open_channels.items() if isinstance(one, ServesHttp)}
        if called and parts.listen:
            tasks.append(asyncio.create_task(self._guarded("listener", parts.listen(called))))
        self._go_on()
        await stop.wait()
        await self._end(tasks)

    def _go_on(self) -> None:
        """What waited when the gateway ended, or when something stood in its way."""
        for session in self._parts.store.pending_sessions():
            self._parts.transcripts.write_pending(self._parts.store, session)
        for key, channel in self._parts.store.waiting_keys():
            self._wake(key, channel)
        for key, channel in self._parts.store.sending_keys():
            self._delivery.send(key, channel)

    async def _end(self, tasks: list[asyncio.Task[None]]) -> None:
        talks = list(self._talks.values())
        for task in (*tasks, *talks):
            task.cancel()
        await asyncio.to_thread(self._parts.answering.close)
        await asyncio.gather(*tasks, *talks, return_exceptions=True)
        self._parts.store.release()
        await self._delivery.stop(_END_SECONDS)
        for one in self._parts.channels.values():
            await self._guarded("closing", one.channel.close())
        await asyncio.to_thread(self._pool.shutdown, wait=True, cancel_futures=True)
        await self._keeping.stop(_END_SECONDS)

    # Receiving

    async def _receive(self, name: str, one: Open, desk: Desk) -> None:
        """Run a channel; where it cannot go on, again later, ever more seldom."""
        pause = _LEAST_PAUSE
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            self._parts.store.note_problem(name, "")
            try:
                await one.channel.run(ChannelInbox(desk, LiveRules(self._parts.settings, one.options.rules)))
                return
            except ChannelRefused as error:
                self._tell_problem(name, error)
                return
            except ChannelUnavailable as error:
                self._tell_problem(name, error)
                after = error.retry_after
            except Exception as error:  # noqa: BLE001 - a channel may be a third party's, and the others go on
                self._parts.tell(f"{name}: " + "".join(traceback.format_exception(error)).rstrip())
                after = None
            pause = _LEAST_PAUSE if loop.time() - began > _MOST_PAUSE else pause
            await asyncio.sleep(after or pause)
            pause = min(2 * pause, _MOST_PAUSE)

    def _tell_problem(self, name: str, error: NacreError) -> None:
        told = error.message + (f" ({error.hint})" if error.hint else "")
        self._parts.tell(f"{name}: {told}")
        self._parts.store.note_problem(name, told)

    # Answering

    def _wake(self, key: str, channel: str) -> None:
        """Something waits to be answered in a conversation."""
        if channel in self._parts.channels and key not in self._talks:
            self._talks[key] = asyncio.create_task(self._converse(key, channel), name=f"answering {key}")

    async def _converse(self, key: str, channel: str) -> None:
        try:
            while await self._is_quiet(key):
                await self._keep_pace(key)
                async with self._room:
                    await self._answer_next(key, channel)
        except NacreError as error:  # the disk is full, say: what waits is answered by and by
            self._parts.tell(f"{key}: {error.message}")
        except OSError as error:
            self._parts.tell(f"{key}: {error.strerror or error}")
        except Exception as error:  # noqa: BLE001 - what one conversation brings about is told, and the others go on
            self._parts.tell(f"{key}: " + "".join(traceback.format_exception(error)).rstrip())
        finally:
            del self._talks[key]

    async def _is_quiet(self, key: str) -> bool:
        """Wait until nobody wrote for the pause that makes one turn of several messages; false where nothing waits."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self._debounce * _MOST_DEBOUNCES
        while True:
            last, count = self._parts.store.last_waiting(key)
            if last is None or not count:
                return bool(self._parts.store.is_taken(key))
            left = self._debounce - (self._parts.clock() - last).total_seconds()
            if left <= 0 or loop.time() >= until:
                return True
            await asyncio.sleep(min(left, self._debounce))

    async def _keep_pace(self, key: str) -> None:
        """So many answers a minute: what comes meanwhile is answered together."""
        loop = asyncio.get_running_loop()
        times = self._paces.setdefault(key, deque(maxlen=self._a_minute))
        self._paces.move_to_end(key)
        if len(self._paces) > HISTORY_KEYS:
            self._paces.popitem(last=False)
        if len(times) == self._a_minute and (left := times[0] + _MINUTE - loop.time()) > 0:
            await asyncio.sleep(left)
        times.append(loop.time())

    async def _answer_next(self, key: str, channel: str) -> None:
        one = self._parts.channels[channel]
        taken = await self._turns.take(key, one)
        if taken is None:
            self._delivery.send(key, channel)  # a command may have been answered
            self._keeping.index(self._turns.ended)
            self._turns.ended.clear()
            return
        pieces: asyncio.Queue[str] = asyncio.Queue()
        shown = [
            asyncio.create_task(self._show_typing(one.channel, taken.chat)),
            asyncio.create_task(self._show_pieces(one.channel, taken.chat, pieces)),
        ]
        try:
            answer, problem = await self._answered(taken, one, pieces)
        finally:
            for task in shown:
                task.cancel()
        silent = answer.text.strip() == _SILENT
        self._turns.finish(taken, answer, one.channel.limits, problem=problem, is_silent=silent)
        self._delivery.send(key, channel)
        self._keeping.look(taken.session.key, one.options)

    async def _answered(self, taken: Taken, one: Open, pieces: asyncio.Queue[str]) -> tuple[Answer, str]:
        """The answer, or an excuse and what went wrong."""
        if taken.is_hopeless:
            return Answer("I cannot answer this message."), "the gateway ended three times while it was answered"
        loop = asyncio.get_running_loop()
        try:
            work = Work(taken.session, one.options, taken.turn)
            hear = partial(_put, loop, pieces) if isinstance(one.channel, ShowsPieces) else None
            return await loop.run_in_executor(self._pool, self._parts.answering.answer, work, hear), ""
        except NacreError as error:
            self._parts.tell(f"{taken.session.key}: no answer: {error.message}")
            if self._parts.answering.is_closed:
                raise  # it was cut off by the end: next time
            return Answer(excuse(error, is_owner=taken.is_owners)), error.message

    async def _show_typing(self, channel: Channel, chat: Chat) -> None:
        seconds = channel.limits.typing_seconds
        while seconds > 0:
            await self._guarded("", channel.show_typing(chat))
            await asyncio.sleep(seconds * 0.8)

    async def _show_pieces(self, channel: Channel, chat: Chat, pieces: asyncio.Queue[str]) -> None:
        while isinstance(channel, ShowsPieces):
            await self._guarded("", channel.show_piece(chat, await pieces.get()))

    # Tidying up

    async def _tidy(self) -> None:
        """Close conversations that went silent, and forget what is done."""
        while True:
            try:
                for name, one in self._parts.channels.items():
                    self._keeping.close_stale(name, one.options)
                self._parts.store.prune(self._parts.clock() - timedelta(days=_KEEP_DAYS))
                self._go_on()
            except (NacreError, OSError) as error:
                self._parts.tell(f"tidying up: {error}")
            await asyncio.sleep(_TIDY_SECONDS)

    async def _guarded(self, what: str, work: Coroutine[Any, Any, None]) -> None:
        """Do it; what fails is told, and ends nothing else."""
        try:
            await work
        except Exception as error:  # noqa: BLE001 - a channel may be a third party's
            if what:
                self._parts.tell(f"{what}: {error}")


def _put(loop: asyncio.AbstractEventLoop, pieces: asyncio.Queue[str], piece: str) -> None:
    """A piece of an answer, from the thread that makes it."""
    with suppress(RuntimeError):  # the loop has ended
        loop.call_soon_threadsafe(pieces.put_nowait, piece)
