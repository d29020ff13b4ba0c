"""Send answers: the parts of a conversation in their order, until the platform takes them or never will."""

from __future__ import annotations

import asyncio
import json
import threading
import traceback
from collections import OrderedDict, deque
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from nacre.base.ids import Clock, utc_now, uuid7_source
from nacre.base.lazy import load
from nacre.base.locks import FileLock, is_held
from nacre.base.text import one_line
from nacre.errors import ChannelRefused, ChannelUnavailable, Conflict, NacreError, NotFound
from nacre.gateway.channels import Channel, Inbox, ServesHttp, ShowsPieces, open_channel
from nacre.gateway.conversation import (
    ChannelOptions,
    ChatRequest,
    ChatsRequest,
    Cleans,
    EndChatRequest,
    LiveRules,
    Open,
    PairRequest,
    Rules,
    UnpairRequest,
    is_current,
    judge,
    may_say,
)
from nacre.gateway.sessions import (
    Answering,
    Keeping,
    Lend,
    Respond,
    Said,
    Sessions,
    Taken,
    Transcripts,
    Turns,
    Work,
    bounded,
    edit_line,
    excuse,
    key_of,
)
from nacre.home.home import Home
from nacre.home.spending import name_for
from nacre.settings import Settings
from nacre.setup.models import SetRequest, set_setting
from nacre.store.gateway import DATABASE, FOLDER, PROBLEM, GatewayStore
from nacre.values.gateway import (
    Answer,
    Attachment,
    ChannelTraffic,
    ChatSession,
    Incoming,
    Limits,
    Outgoing,
    Pairing,
    Part,
    Received,
    Sender,
    Undelivered,
)
from nacre.values.gateway import Chat as gateway_Chat
from nacre.values.session import Task

SEND_SECONDS = 60.0
GIVE_UP = timedelta(hours=24)
"""A part that could not be sent for so long is given up."""

_LEAST_PAUSE, _MOST_PAUSE = 1.0, 600.0
_AT_ONCE = 8
"""Conversations of a channel to which is sent at a time."""

_MOST_FAULTS = 5


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What came of one try: ``sent`` is the platform's id, ``problem`` why it was not; ``final``: do not try again."""

    sent: str = ""
    problem: str = ""
    after: float = 0.0
    final: bool = False


class Delivery:
    """Sends what waits, one task a conversation."""

    def __init__(
        self,
        store: GatewayStore,
        channels: Mapping[str, Channel],
        clock: Clock,
        tell: Callable[[str], None],
    ) -> None:
        self._store = store
        self._channels = channels
        self._clock = clock
        self._tell = tell
        self._room = {name: asyncio.Semaphore(_AT_ONCE) for name in channels}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._sent_at: dict[str, float] = {}

    def send(self, key: str, channel: str) -> None:
        """Something waits to be sent in a conversation."""
        if channel in self._channels and key not in self._tasks:
            self._tasks[key] = asyncio.create_task(
                self._deliver(key, channel), name=f"sending {key}"
            )

    async def stop(self, seconds: float) -> None:
        """Finish what is being sent, for so long; the rest stays for the next time."""
        tasks = list(self._tasks.values())
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _deliver(self, key: str, channel: str) -> None:
        try:
            while part := self._store.next_part(key):
                await self._wait_until(part.not_before)
                async with self._room[channel]:
                    await self._pace(key, channel)
                    self._note(part, await self._try(part, channel))
        except NacreError as error:  # the disk is full, say: what waits is sent by and by
            self._tell(f"{key}: {error.message}")
        finally:
            del self._tasks[key]
            self._sent_at.pop(key, None)

    async def _try(self, part: Part, name: str) -> _Outcome:
        channel = self._channels[name]
        self._store.begin_part(part.seq, is_idempotent=channel.limits.is_idempotent)
        try:
            outgoing = replace(part.outgoing, attempt=part.attempts + 1)
            return _Outcome(sent=await asyncio.wait_for(channel.send(outgoing), SEND_SECONDS))
        except ChannelUnavailable as error:
            return _Outcome(problem=error.message, after=error.retry_after or 0.0)
        except TimeoutError:
            return _Outcome(problem=f"no answer within {SEND_SECONDS:.0f} s")
        except ChannelRefused as error:
            return _Outcome(problem=error.message, final=True)
        except Exception as error:  # noqa: BLE001 - a channel may be a third party's
            self._tell("".join(traceback.format_exception(error)).rstrip())
            return _Outcome(
                problem=f"{type(error).__name__}", final=part.attempts + 1 >= _MOST_FAULTS
            )

    def _note(self, part: Part, outcome: _Outcome) -> None:
        if not outcome.problem:
            self._store.finish_part(part.seq, outcome.sent)
            return
        now = self._clock()
        if outcome.final or now - part.created > GIVE_UP:
            self._tell(f"{part.outgoing.chat.channel}: a message was given up: {outcome.problem}")
            self._store.finish_part(part.seq, None, outcome.problem)
            return
        pause = outcome.after or min(_LEAST_PAUSE * 2**part.attempts, _MOST_PAUSE)
        self._store.delay_part(part.seq, now + timedelta(seconds=pause), outcome.problem)

    async def _wait_until(self, moment: datetime | None) -> None:
        while moment and (left := (moment - self._clock()).total_seconds()) > 0:
            await asyncio.sleep(min(left, _MOST_PAUSE))

    async def _pace(self, key: str, channel: str) -> None:
        """Leave the pause between two messages to one chat that the platform asks for."""
        loop = asyncio.get_running_loop()
        pause = (
            self._sent_at.get(key, 0.0)
            + self._channels[channel].limits.seconds_between
            - loop.time()
        )
        if pause > 0:
            await asyncio.sleep(pause)
        self._sent_at[key] = loop.time()


# ----------------------------------------------------------------------------
# What channels receive: redacted, judged, and on disk before a platform is told that it arrived.


HISTORY_KEYS = 1_000
"""Groups of which what was heard is kept (seed facts 4, OpenClaw's MAX_HISTORY_KEYS)."""

MOST_CHARACTERS = 64_000
"""Of one message."""

_MOST_ATTACHMENTS = 10
_NAME_CHARACTERS = 80
_PAUSE_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Desk:
    """What all inboxes of a gateway share. ``wake`` is told of conversations in which something waits to be answered,
    ``send`` of those in which something waits to be sent."""

    store: GatewayStore
    redactor: Cleans
    clock: Clock
    new_id: Callable[[], str]
    wake: Callable[[str, str], None]
    send: Callable[[str, str], None]
    most_waiting: int = 10_000
    most_heard: int = 50


class ChannelInbox:
    """The inbox of one channel; implements Inbox."""

    def __init__(self, desk: Desk, rules: Callable[[], Rules]) -> None:
        self._desk = desk
        self._now = rules

    @property
    def _rules(self) -> Rules:
        return self._now()

    def state(self, name: str) -> str:
        """What the channel kept under a name."""
        return self._desk.store.channel_value(self._rules.channel, name)

    async def receive(self, messages: Sequence[Incoming], **state: str) -> int:
        """Keep messages and state; how many did not come before. Waits while too many wait to be answered."""
        while self._desk.store.waiting(self._rules.channel) >= self._desk.most_waiting:
            await asyncio.sleep(_PAUSE_SECONDS)
        # a long text takes seconds, in which all others would wait
        cleaned = await asyncio.to_thread(lambda: [self._cleaned(one) for one in messages])
        kept: list[tuple[Received, str]] = []

        def judged() -> Iterator[tuple[Received, str]]:
            for one in self._judged(cleaned):
                kept.append(one)
                yield one

        new = self._desk.store.receive(self._rules.channel, judged(), state)
        self._tell(new)
        return len(messages) - (len(kept) - len(new))

    def _judged(self, messages: Iterable[Incoming]) -> Iterator[tuple[Received, str]]:
        """What becomes of each. It runs in the transaction that keeps them: an edit may follow its message at once."""
        for message in messages:
            if message.edits:
                yield from self._edit(message)
                continue
            verdict = judge(message, self._rules, self._desk.store, self._desk.clock())
            key = key_of(message)
            if verdict.reply:
                self._reply(key, message, verdict.reply)
            if verdict.state:
                yield Received(0, key, message, self._desk.clock(), verdict.is_owner), verdict.state

    def _tell(self, kept: Sequence[tuple[Received, str]]) -> None:
        desk = self._desk
        for key in {one.key for one, state in kept if state == "heard"}:
            desk.store.trim_heard(key, desk.most_heard, HISTORY_KEYS)
        for key in dict.fromkeys(one.key for one, state in kept if state == "waiting"):
            desk.wake(key, self._rules.channel)

    def _edit(self, message: Incoming) -> Iterator[tuple[Received, str]]:
        """A new text of a message: it is answered as edited, where it still waits; else the transcript says so."""
        store = self._desk.store
        found = store.find(self._rules.channel, message.edits)
        if (
            found is None
            or found.sender != message.sender.id
            or store.find(self._rules.channel, message.id)
        ):
            return
        if not may_say(message, self._rules, store):
            return
        edited = Received(
            0, found.key, message, self._desk.clock(), self._rules.is_owner(message.sender)
        )
        if found.message and found.state in ("waiting", "heard"):
            if not _is_before(message, found.message):
                store.replace_text(
                    found.seq, replace(found.message, text=message.text, sent=message.sent)
                )
        elif found.line and (session := store.session_of(found.key, found.line)):
            store.add_lines(session.id, [edit_line(self._desk.new_id(), edited, found.line)])
        yield edited, "done"

    def _reply(self, key: str, message: Incoming, text: str) -> None:
        """A word to somebody who is not let in; it goes the way of all answers."""
        part = Outgoing(f"pairing:{self._desk.new_id()}", message.chat, text, message.id)
        self._desk.store.add_part(key, part, self._desk.clock())
        self._desk.send(key, self._rules.channel)

    def _cleaned(self, message: Incoming) -> Incoming:
        """Without secrets, and within bounds."""
        attachments = tuple(
            Attachment(
                self._name(one.name),
                one_line(one.media_type)[:_NAME_CHARACTERS],
                one.size,
                one.source,
            )
            for one in message.attachments[:_MOST_ATTACHMENTS]
        )
        return replace(
            message,
            text=self._desk.redactor.clean(message.text[:MOST_CHARACTERS]),
            attachments=attachments,
            sender=Sender(message.sender.id, self._name(message.sender.name)),
        )

    def _name(self, name: str) -> str:
        """Anybody may choose it: one line, so that nothing in it passes for another's words."""
        return one_line(self._desk.redactor.clean(name))[:_NAME_CHARACTERS]


def _is_before(message: Incoming, other: Incoming) -> bool:
    """Whether a message was written before another: what a platform delivers again may come late."""
    return bool(message.sent and other.sent and message.sent < other.sent)


# ----------------------------------------------------------------------------
# The gateway at work: channels receive, conversations are answered one turn at a time, answers are
# sent.


_KEEP_DAYS = 7
_TIDY_SECONDS = 60.0
_END_SECONDS = 3.0
_LEAST_PAUSE_ENGINE, _MOST_PAUSE_ENGINE = 1.0, 300.0
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
            self._turns.sessions,
            parts.answering,
            parts.tell,
            index_every=parts.settings.whole("gateway.index_every"),
        )
        desk = Desk(
            parts.store,
            parts.redactor,
            parts.clock,
            parts.new_id,
            self._wake,
            self._delivery.send,
            parts.settings.whole("gateway.most_waiting"),
            parts.settings.whole("gateway.group_history"),
        )
        tasks = [
            asyncio.create_task(self._receive(name, one, desk))
            for name, one in parts.channels.items()
        ]
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
        pause = _LEAST_PAUSE_ENGINE
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            self._parts.store.note_problem(name, "")
            try:
                await one.channel.run(
                    ChannelInbox(desk, LiveRules(self._parts.settings, one.options.rules))
                )
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
            pause = _LEAST_PAUSE_ENGINE if loop.time() - began > _MOST_PAUSE_ENGINE else pause
            await asyncio.sleep(after or pause)
            pause = min(2 * pause, _MOST_PAUSE_ENGINE)

    def _tell_problem(self, name: str, error: NacreError) -> None:
        told = error.message + (f" ({error.hint})" if error.hint else "")
        self._parts.tell(f"{name}: {told}")
        self._parts.store.note_problem(name, told)

    # Answering

    def _wake(self, key: str, channel: str) -> None:
        """Something waits to be answered in a conversation."""
        if channel in self._parts.channels and key not in self._talks:
            self._talks[key] = asyncio.create_task(
                self._converse(key, channel), name=f"answering {key}"
            )

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

    async def _answered(
        self, taken: Taken, one: Open, pieces: asyncio.Queue[str]
    ) -> tuple[Answer, str]:
        """The answer, or an excuse and what went wrong."""
        if taken.is_hopeless:
            return Answer(
                "I cannot answer this message."
            ), "the gateway ended three times while it was answered"
        loop = asyncio.get_running_loop()
        try:
            work = Work(taken.session, one.options, taken.turn)
            hear = partial(_put, loop, pieces) if isinstance(one.channel, ShowsPieces) else None
            return await loop.run_in_executor(
                self._pool, self._parts.answering.answer, work, hear
            ), ""
        except NacreError as error:
            self._parts.tell(f"{taken.session.key}: no answer: {error.message}")
            if self._parts.answering.is_closed:
                raise  # it was cut off by the end: next time
            return Answer(excuse(error, is_owner=taken.is_owners)), error.message

    async def _show_typing(self, channel: Channel, chat: gateway_Chat) -> None:
        seconds = channel.limits.typing_seconds
        while seconds > 0:
            await self._guarded("", channel.show_typing(chat))
            await asyncio.sleep(seconds * 0.8)

    async def _show_pieces(
        self, channel: Channel, chat: gateway_Chat, pieces: asyncio.Queue[str]
    ) -> None:
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


# ----------------------------------------------------------------------------
# Open the gateway of a home and run it: by ``nacre gateway run``, or in the daemon.


LOCK = f"{FOLDER}/gateway.lock"
_LOOK_SECONDS = 0.2

Tell = Callable[[str], None]


def is_running(settings: Settings) -> bool:
    """Whether a gateway serves this home."""
    return is_held(settings.home / LOCK)


def serve(
    settings: Settings,
    lend: Lend,
    tell: Tell,
    stop: threading.Event,
    *,
    respond: Respond | None = None,
    ready: Callable[[], object] = lambda: None,
) -> None:
    """Serve the channels that are configured, until ``stop`` is set; ``ready`` is called when it begins.

    A channel that cannot be opened is told of, and the others are served. Raises Conflict where another gateway serves
    this home, NotFound where no channel is configured or none can be opened, and what opening the store raises.
    """
    with closing(GatewayStore.open(settings.home)) as store:
        lock = FileLock(settings.home / LOCK)
        if not lock.acquire():
            hint = "nacre gateway status; the daemon runs it where gateway.enabled is set"
            raise Conflict(f"a gateway serves {settings.home} already", hint=hint)
        try:
            opened = _open_channels(settings, store, tell)
            answering = Answering(
                settings, lend, respond or load("nacre.gateway.conversation:responder_for")
            )
            redactor = load("nacre.redact.redactor:Redactor")(*settings.redaction)
            parts = Parts(
                settings,
                store,
                opened,
                answering,
                redactor,
                utc_now,
                uuid7_source(),
                tell,
                _listening(settings, tell),
            )
            tell(f"answers in {', '.join(opened)}")
            asyncio.run(_run(Gateway(parts), stop, ready))
        finally:
            lock.release()


async def _run(gateway: Gateway, stop: threading.Event, ready: Callable[[], object]) -> None:
    ends = asyncio.Event()

    async def watch() -> None:
        while not stop.is_set():
            await asyncio.sleep(_LOOK_SECONDS)
        ends.set()

    watching = asyncio.create_task(watch())
    ready()
    await gateway.run(ends)
    watching.cancel()


def _open_channels(settings: Settings, store: GatewayStore, tell: Tell) -> Mapping[str, Open]:
    names = [name for name, own in settings["gateway.channels"].items() if own.get("enabled", True)]
    opened: dict[str, Open] = {}
    for name in names:
        try:
            options = ChannelOptions.of(settings, name)
            opened[name] = Open(open_channel(settings, name, _named(name, tell)), options)
        except (NacreError, ImportError) as error:
            hint = f" ({error.hint})" if isinstance(error, NacreError) and error.hint else ""
            store.note_problem(name, f"{error}{hint}")
            tell(f"{name}: {error}{hint}")
    if not opened:
        told = "no channel can be opened" if names else "no channel is configured"
        raise NotFound(
            told,
            hint=f"[gateway.channels.telegram] in {settings.config}; docs/gateway.md tells how",
        )
    return opened


def _named(name: str, tell: Tell) -> Tell:
    return lambda line: tell(f"{name}: {line}")


def _listening(
    settings: Settings, tell: Tell
) -> Callable[[Mapping[str, ServesHttp]], Coroutine[Any, Any, None]]:
    def listen(channels: Mapping[str, ServesHttp]) -> Coroutine[Any, Any, None]:
        listener = load("nacre.gateway.listener:Listener")(
            settings.text("gateway.listen"), channels, tell
        )
        running: Coroutine[Any, Any, None] = listener.run()
        return running

    return listen


# ----------------------------------------------------------------------------
# A conversation in a terminal: the same sessions, memory and answers as in channels, without a
# channel.


NAME = "terminal"
_OWNER, _INPUT = "owner", "standard input"


class TerminalChat:
    """One person at a terminal. ``is_owner``: no agent runs the terminal; what is said counts as the owner's then."""

    def __init__(
        self, settings: Settings, lend: Lend, respond: Respond, *, is_owner: bool, model: str = ""
    ) -> None:
        self._settings = settings
        self._store = GatewayStore.open(settings.home)
        self._redactor = load("nacre.redact.redactor:Redactor")(*settings.redaction)
        self._new_id = uuid7_source()
        self._answering = Answering(settings, lend, respond)
        self._sessions = Sessions(self._store, Transcripts(settings.home), utc_now, self._new_id)
        self._turns = Turns(self._sessions, settings, self._redactor)
        who = _OWNER if is_owner else "agent"
        self.number = next(number for number in count(1) if self._takes(f"{who}-{number}"))
        """Which of the conversations that go on at once this is: 1 where it is the only one."""
        self._chat = gateway_Chat(NAME, who if self.number == 1 else f"{who}-{self.number}")
        self._is_owner = is_owner
        self._key = f"{NAME}:{self._chat.id}"
        options = ChannelOptions(
            Rules(NAME),
            memories="all",
            model=model,
            instructions=settings.text("gateway.instructions"),
            hours=settings.number("gateway.session_hours"),
        )
        self._open = Open(_Screen(), options)

    def _takes(self, name: str) -> bool:
        self._lock = FileLock(self._settings.home / FOLDER / f"terminal-{name}.lock")
        return self._lock.acquire()

    @property
    def session(self) -> ChatSession:
        """The conversation that goes on."""
        return self._sessions.current(self._key, self._chat, NAME, self._open.options.hours)

    def said(self, limit: int) -> Sequence[tuple[str, str]]:
        """The last messages of it: role and text."""
        return [
            (one.role, one.text)
            for one in self._sessions.transcripts.recent(self.session.id, limit).messages
        ]

    def ask(
        self, text: str, hear: Callable[[str], None] | None = None, *, piped: str = ""
    ) -> Answer:
        """Answer a message. What another program wrote (``piped``) is not the owner's word. Raises ModelUnavailable,
        ModelRefused, BudgetSpent; the message is kept, and is answered with the next one."""
        said = [(piped, Sender(_INPUT), False), (text, Sender(self._chat.id), self._is_owner)]
        messages = [self._received(*one) for one in said if one[0].strip()]
        self._store.receive(NAME, [(one, "waiting") for one in messages], {})
        taken = asyncio.run(self._turns.take(self._key, self._open))
        if taken is None:
            return Answer("A new conversation.")
        answer = self._answering.answer(Work(taken.session, self._open.options, taken.turn), hear)
        self._turns.finish(taken, answer, self._open.channel.limits, is_silent=True)
        return answer

    def _received(self, text: str, sender: Sender, is_owner: bool) -> Received:
        message = Incoming(
            self._new_id(), self._chat, sender, self._redactor.clean(bounded(text, MOST_CHARACTERS))
        )
        return Received(0, self._key, message, utc_now(), is_owner)

    def begin(self) -> None:
        """A new conversation."""
        before = self._store.open_session(self._key)
        self._sessions.reset(self._key)
        if before and before.messages > before.indexed:
            self._index(before)

    def close(self) -> None:
        """Make what was said searchable, and let go."""
        session = self._store.open_session(self._key)
        if session and session.messages > session.indexed:
            self._index(session)
        self._answering.close()
        self._store.close()
        self._lock.release()

    def _index(self, session: ChatSession) -> None:
        self._answering.index(session)
        self._store.note_indexed(session.id, session.messages)


class _Screen:
    """What shows the answers; implements Channel. They are printed as they come, so nothing is ever sent here."""

    limits = Limits(characters=1_000_000)

    async def run(self, inbox: Inbox) -> None:
        """Nothing comes by itself."""

    async def send(self, outgoing: Outgoing) -> str:
        """Nothing is sent."""
        raise ChannelRefused(f"nothing is sent to a terminal: {outgoing.key}")

    async def show_typing(self, chat: gateway_Chat) -> None:
        """The terminal shows progress by itself."""

    async def fetch(self, attachment: Attachment, target: Path, most_bytes: int) -> None:
        """No files come."""
        raise ChannelRefused(
            f"{attachment.name} cannot be {target.name} of {most_bytes}: no files come from a terminal"
        )

    async def close(self) -> None:
        """Nothing is held."""


# ----------------------------------------------------------------------------
# What is asked about the gateway, from any process: it works on the gateway's database, whether one
# runs or not.


_CODE = 9


@dataclass(frozen=True, slots=True)
class ChannelState:
    """A channel: whether it is configured and enabled, why it cannot be opened, and what it has to do."""

    name: str
    kind: str
    enabled: bool
    problem: str
    traffic: ChannelTraffic


@dataclass(frozen=True, slots=True)
class GatewayState:
    """``model`` is who answers (``none``: nobody yet); ``waiting`` are senders who ask to be let in."""

    running: bool
    model: str
    channels: tuple[ChannelState, ...]
    waiting: tuple[Pairing, ...]
    undelivered: tuple[Undelivered, ...]


@dataclass(frozen=True, slots=True)
class Chat:
    """A conversation with its last messages, the oldest first, and the summary of what was before them.

    ``waiting`` are messages that are not being answered yet; ``is_answering`` says that an answer is being made.
    """

    session: ChatSession
    messages: tuple[Said, ...]
    summary: str
    path: str
    waiting: tuple[Said, ...] = ()
    is_answering: bool = False


@dataclass(frozen=True, slots=True)
class Paired:
    """A sender who was let in; ``identity`` is what was added to ``owner.identities``, where it is the owner."""

    pairing: Pairing
    identity: str | None


def gateway_status(home: Home) -> GatewayState:
    """How the gateway is."""
    with _store(home.settings) as store:
        traffic = {one.channel: one for one in store.traffic()}
        channels: Mapping[str, Mapping[str, Any]] = home.settings["gateway.channels"]
        states = [
            ChannelState(
                name,
                str(own.get("kind", name)),
                bool(own.get("enabled", True)),
                _problem(home.settings, name) or store.channel_value(name, PROBLEM),
                traffic.get(name, ChannelTraffic(name)),
            )
            for name, own in channels.items()
        ]
        now = home.clock()
        waiting = tuple(one for one in store.pairings() if is_current(one, now))
        return GatewayState(
            is_running(home.settings),
            name_for(home, Task.CHAT),
            tuple(states),
            waiting,
            tuple(store.problems()),
        )


def list_chats(home: Home, request: ChatsRequest) -> list[ChatSession]:
    """Conversations, the one that was used last first."""
    with _store(home.settings) as store:
        return store.sessions(
            request.channel, closed=request.closed, limit=request.limit, offset=request.offset
        )


def show_chat(home: Home, request: ChatRequest) -> Chat:
    """One conversation. Raises NotFound, Conflict."""
    with _store(home.settings) as store:
        session = _found(store, request.reference)
        kept = store.open_messages(session.key) if session.closed is None else []
    transcripts = Transcripts(home.settings.home)
    recent = transcripts.recent(session.id, request.limit, failures=True)
    waiting = tuple(_waiting(one.received) for one in kept if one.state == "waiting")
    taken = [one.received for one in kept if one.state == "taken"]
    return Chat(
        session,
        tuple(recent.messages),
        recent.summary,
        str(transcripts.path(session.id)),
        waiting,
        _is_answering(home, taken),
    )


def end_chat(home: Home, request: EndChatRequest) -> ChatSession:
    """End a conversation. Raises NotFound, Conflict."""
    with _store(home.settings) as store:
        session = _found(store, request.reference)
        store.close_session(session.id, home.clock())
        return _found(store, session.id)


def list_pairings(home: Home) -> list[Pairing]:
    """Who asked to be let in, and who was."""
    with _store(home.settings) as store:
        return store.pairings()


def pair(home: Home, request: PairRequest) -> Paired:
    """Let a sender in. Raises NotFound for a code that is not known or too old, and for a channel that is none."""
    with _store(home.settings, makes_one=True) as store:
        found = _asked(home, store, request.who.strip())
        store.approve(found, home.clock())
        paired = store.pairing(found.channel, found.sender) or found
    return Paired(paired, _as_owner(home.settings, paired) if request.me else None)


def unpair(home: Home, request: UnpairRequest) -> bool:
    """Let a sender in no more; whether they were. Raises NotFound."""
    channel, _, sender = request.who.strip().partition(":")
    with _store(home.settings) as store:
        if not store.drop_pairing(channel, sender):
            raise NotFound(
                f"nobody is let in as {request.who!r}", hint="nacre gateway pair lists them"
            )
    return True


def _asked(home: Home, store: GatewayStore, who: str) -> Pairing:
    channel, colon, sender = who.partition(":")
    if colon:
        if channel not in home.settings["gateway.channels"]:
            known = ", ".join(home.settings["gateway.channels"]) or "none is configured"
            raise NotFound(f"there is no channel {channel!r}", hint=f"channels: {known}")
        return store.pairing(channel, sender) or Pairing(
            channel, sender, "", f"by hand {who}", home.clock()
        )
    found = store.pairing_of_code(_code(who))
    if found is None or not (found.approved or is_current(found, home.clock())):
        hint = "codes hold for an hour: have them write again, and take the new one"
        raise NotFound(f"{who!r} is no code that waits", hint=hint)
    return found


def _code(text: str) -> str:
    """As it was given, however it was typed."""
    letters = "".join(one for one in text.upper() if one.isalnum())
    half = _CODE // 2
    return f"{letters[:half]}-{letters[half:]}"


def _as_owner(settings: Settings, pairing: Pairing) -> str:
    identity = f"{pairing.channel}:{pairing.sender}"
    known = settings.texts("owner.identities")
    if identity not in known:
        listed = json.dumps(
            [*known, identity], ensure_ascii=False
        )  # an id may hold what ends a text in TOML
        set_setting(settings, SetRequest(key="owner.identities", value=listed))
    return identity


def _waiting(one: Received) -> Said:
    sender = one.message.sender
    at = one.received.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return Said(
        f"waiting-{one.seq}", "user", one.message.text, sender.name or sender.id, at, one.is_owner
    )


def _is_answering(home: Home, taken: Sequence[Received]) -> bool:
    """Whether messages are being answered: what ended in the middle, or a terminal that was closed, left them so."""
    if not taken:
        return False
    if taken[-1].message.chat.channel != NAME:
        return is_running(home.settings)
    return home.clock() - taken[-1].received < timedelta(
        seconds=home.settings.number("gateway.answer_seconds")
    )


def _found(store: GatewayStore, reference: str) -> ChatSession:
    found = store.find_sessions(reference)
    exact = [one for one in found if reference in (one.id, one.key)]
    if not found:
        raise NotFound(
            f"there is no conversation {reference!r}", hint="nacre gateway sessions lists them"
        )
    if len(found) > 1 and not exact:
        raise Conflict(
            f"{reference!r} is the beginning of several", hint=", ".join(one.id for one in found)
        )
    return (exact or found)[0]


def _problem(settings: Settings, name: str) -> str:
    try:
        ChannelOptions.of(settings, name)
    except NacreError as error:
        return error.message
    return ""


@contextmanager
def _store(settings: Settings, *, makes_one: bool = False) -> Iterator[GatewayStore]:
    """The gateway's store. Who only looks, where there is none, is lent an empty one."""
    is_there = makes_one or (settings.home / DATABASE).exists()
    store = GatewayStore.open(settings.home) if is_there else GatewayStore.empty()
    try:
        yield store
    finally:
        store.close()
