"""Gateway that receives messages, makes answers and sends them in parts."""

from __future__ import annotations

import asyncio
import json
import threading
import traceback
from collections import OrderedDict, deque
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import count
from typing import Annotated, Any, cast

from nacre.base.bounds import bounds
from nacre.base.frozen import frozen
from nacre.base.ids import Clock, utc_now, uuid7_source
from nacre.base.lazy import load
from nacre.base.locks import FileLock, is_held
from nacre.base.text import one_line
from nacre.errors import (
    ChannelRefusedError,
    ChannelUnavailableError,
    ConflictError,
    NacreError,
    NotFoundError,
)
from nacre.home.home import Home
from nacre.home.spending import name_for
from nacre.operations import operation
from nacre.settings import Settings
from nacre.setup.models import set_setting
from nacre.store.gateway import DATABASE, FOLDER, PROBLEM, GatewayStore
from nacre.values.fields import Offset
from nacre.values.gateway import (
    Answer,
    Attachment,
    ChannelTraffic,
    ChatSession,
    ChatType,
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
from nacre_gateway.channels import Channel, ServesHttp, Tell, open_channel
from nacre_gateway.conversation import (
    ANSWER_SECONDS,
    SESSION_HOURS,
    ChannelOptions,
    Cleans,
    LiveRules,
    Open,
    Rules,
    admit,
    code_for,
    is_current,
)
from nacre_gateway.sessions import (
    Answering,
    Batch,
    ChatMessage,
    Keeping,
    Lend,
    Sessions,
    Transcripts,
    Turns,
    Work,
    bounded,
    excuse,
    key_of,
    message_line,
)

SEND_SECONDS = 60.0
MAX_SENDING_AGE = timedelta(hours=24)
"""Age at which an unsent part is abandoned."""

_MIN_PAUSE, _MAX_PAUSE = 1.0, 600.0
_MAX_PARALLEL_CHATS = 8
"""Maximum number of conversations of a channel to which parts are sent at the same time."""

_MAX_FAULTS = 5


class Delivery:
    """Sends the parts of answers with one task per conversation."""

    def __init__(
        self,
        store: GatewayStore,
        channels: Mapping[str, Channel],
        clock: Clock,
        log: Tell,
    ) -> None:
        self._store = store
        self._channels = channels
        self._clock = clock
        self._tell = log
        self._room = {name: asyncio.Semaphore(_MAX_PARALLEL_CHATS) for name in channels}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._sent_at: dict[str, float] = {}

    def send(self, key: str, channel: str) -> None:
        if channel in self._channels and key not in self._tasks:
            self._tasks[key] = asyncio.create_task(
                self._deliver(key, channel), name=f"sending {key}"
            )

    async def stop(self, seconds: float) -> None:
        """Wait up to ``seconds`` for sends in progress. Other parts stay pending."""
        tasks = list(self._tasks.values())
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _deliver(self, key: str, channel: str) -> None:
        try:
            while part := self._store.next_part(key):
                while (
                    part.not_before
                    and (left := (part.not_before - self._clock()).total_seconds()) > 0
                ):
                    await asyncio.sleep(min(left, _MAX_PAUSE))
                async with self._room[channel]:
                    loop = asyncio.get_running_loop()
                    pause = (
                        self._sent_at.get(key, 0.0)
                        + self._channels[channel].limits.seconds_between
                        - loop.time()
                    )
                    if pause > 0:
                        await asyncio.sleep(pause)
                    self._sent_at[key] = loop.time()
                    await self._try(part, channel)
        except NacreError as error:  # for example a full disk: pending parts are sent later
            self._tell(f"{key}: {error.message}")
        finally:
            del self._tasks[key]
            self._sent_at.pop(key, None)

    async def _try(self, part: Part, name: str) -> None:
        channel = self._channels[name]
        after, is_final = 0.0, False
        self._store.begin_part(part.seq, is_idempotent=channel.limits.is_idempotent)
        try:
            outgoing = replace(part.outgoing, attempt=part.attempts + 1)
            sent = await asyncio.wait_for(channel.send(outgoing), SEND_SECONDS)
        except ChannelUnavailableError as error:
            problem, after = error.message, error.retry_after or 0.0
        except TimeoutError:
            problem = f"no answer within {SEND_SECONDS:.0f} s"
        except ChannelRefusedError as error:
            problem, is_final = error.message, True
        except Exception as error:  # noqa: BLE001 - a channel may be a third party's
            self._tell("".join(traceback.format_exception(error)).rstrip())
            problem, is_final = type(error).__name__, part.attempts + 1 >= _MAX_FAULTS
        else:
            self._store.finish_part(part.seq, sent)
            return
        now = self._clock()
        if is_final or now - part.created > MAX_SENDING_AGE:
            self._tell(f"{part.outgoing.chat.channel}: gave up sending a message: {problem}")
            self._store.finish_part(part.seq, None, problem)
            return
        pause = after or min(_MIN_PAUSE * 2**part.attempts, _MAX_PAUSE)
        self._store.delay_part(part.seq, now + timedelta(seconds=pause), problem)


# ----------------------------------------------------------------------------
# Received messages are redacted, judged, and on disk before they are confirmed to the platform.


MAX_GROUPS_WITH_HISTORY = 1_000
"""Maximum number of groups whose recent messages are kept."""

MAX_CHARACTERS = 64_000
"""Maximum length of a message, in characters."""

_MAX_ATTACHMENTS = 10
_NAME_CHARACTERS = 80
_PAUSE_SECONDS = 0.1


@frozen
class Parts:
    """The components of a gateway. ``log`` writes to its log."""

    settings: Settings
    store: GatewayStore
    channels: Mapping[str, Open]
    answering: Answering
    redactor: Cleans
    clock: Clock
    new_id: Callable[[], str]
    log: Tell

    @property
    def transcripts(self) -> Transcripts:
        return Transcripts(self.settings.home)


@frozen
class ChannelInbox:
    """The inbox of a channel.

    ``wake`` is called for conversations with messages to answer, and ``send`` for those with parts
    to send.
    """

    parts: Parts
    live_rules: LiveRules
    wake: Callable[[str, str], None]
    send: Callable[[str, str], None]

    @property
    def _rules(self) -> Rules:
        return self.live_rules()

    def state(self, name: str) -> str:
        return self.parts.store.channel_value(self._rules.channel, name)

    async def receive(self, messages: Sequence[Incoming], **state: str) -> int:
        """Store messages and state. Return the number of new messages. Waits while too many are pending."""
        while self.parts.store.waiting(self._rules.channel) >= _MAX_WAITING:
            await asyncio.sleep(_PAUSE_SECONDS)
        # in a thread, because redacting a long text takes seconds
        cleaned = await asyncio.to_thread(lambda: [self._clean(message) for message in messages])
        judged_messages: list[tuple[Received, str]] = []

        def judged() -> Iterator[tuple[Received, str]]:
            for item in self._judge_all(cleaned):
                judged_messages.append(item)
                yield item

        new = self.parts.store.receive(self._rules.channel, judged(), state)
        for key in {received.key for received, state in new if state == "heard"}:
            self.parts.store.trim_heard(key, _GROUP_HISTORY_MESSAGES, MAX_GROUPS_WITH_HISTORY)
        for key in dict.fromkeys(received.key for received, state in new if state == "waiting"):
            self.wake(key, self._rules.channel)
        return len(messages) - (len(judged_messages) - len(new))

    def _judge_all(self, messages: Iterable[Incoming]) -> Iterator[tuple[Received, str]]:
        """Decide what to do with each message, inside the transaction that stores the messages."""
        for message in messages:
            if message.edits:
                yield from self._edit(message)
                continue
            rules, store, now = self._rules, self.parts.store, self.parts.clock()
            state = admit(message, rules, store)
            key = key_of(message)
            if (
                state is None
                and message.chat.kind is ChatType.DIRECT
                and (reply := code_for(message.sender, rules.channel, store, now))
            ):
                part = Outgoing(f"pairing:{self.parts.new_id()}", message.chat, reply, message.id)
                store.add_part(key, part, now)
                self.send(key, rules.channel)
            if state:
                yield Received(0, key, message, now, rules.is_owner(message.sender)), state

    def _edit(self, message: Incoming) -> Iterator[tuple[Received, str]]:
        """Apply an edit. If the message was already answered, add the edit to the transcript."""
        store = self.parts.store
        earlier = store.find(self._rules.channel, message.edits)
        if (
            earlier is None
            or earlier.sender != message.sender.id
            or store.find(self._rules.channel, message.id)
            or admit(message, self._rules, store) is None
        ):
            return
        edited = Received(
            0, earlier.key, message, self.parts.clock(), self._rules.is_owner(message.sender)
        )
        if earlier.message and earlier.state in ("waiting", "heard"):
            before = earlier.message.sent
            # a message can be delivered again later
            if not (message.sent and before and message.sent < before):
                store.replace_text(
                    earlier.seq, replace(earlier.message, text=message.text, sent=message.sent)
                )
        elif earlier.line and (session := store.session_of(earlier.key, earlier.line)):
            store.add_lines(
                session.id, [message_line(self.parts.new_id(), edited, edits=earlier.line)]
            )
        yield edited, "done"

    def _clean(self, message: Incoming) -> Incoming:
        attachments = tuple(
            Attachment(
                self._name(file.name),
                one_line(file.media_type)[:_NAME_CHARACTERS],
                file.size,
                file.source,
            )
            for file in message.attachments[:_MAX_ATTACHMENTS]
        )
        return replace(
            message,
            text=self.parts.redactor.clean(message.text[:MAX_CHARACTERS]),
            attachments=attachments,
            sender=Sender(message.sender.id, self._name(message.sender.name)),
        )

    def _name(self, name: str) -> str:
        """Reduce a name to one line, so that it cannot look like another message. Anyone can choose a name."""
        return one_line(self.parts.redactor.clean(name))[:_NAME_CHARACTERS]


# ----------------------------------------------------------------------------
# The running gateway. Each conversation is answered one turn at a time.


_KEEP_DAYS = 7
_MAX_ANSWERS_AT_ONCE = 3
_MAX_WAITING = 10_000
_GROUP_HISTORY_MESSAGES = 50
_TIDY_SECONDS = 60.0
_END_SECONDS = 3.0
_MIN_RESTART_PAUSE, _MAX_RESTART_PAUSE = 1.0, 300.0
_MAX_DEBOUNCES = 10
"""Maximum wait for a sender who keeps writing, as a multiple of the debounce time."""

_MINUTE = 60.0
_NO_REPLY = "NO_REPLY"
"""The model's answer if nothing should be sent, as in OpenClaw."""


class Gateway:
    """Serves the channels of a home until stopped. It can run only once."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        settings = parts.settings
        sessions = Sessions(parts.store, parts.transcripts, parts.clock, parts.new_id)
        self._turns = Turns(sessions, settings, parts.redactor)
        self._debounce = settings.number("gateway.debounce_seconds")
        self._at_once = _MAX_ANSWERS_AT_ONCE
        self._a_minute = settings.whole("gateway.answers_a_minute")
        self._pool = ThreadPoolExecutor(self._at_once, thread_name_prefix="answering")
        self._conversations: dict[str, asyncio.Task[None]] = {}
        self._paces: OrderedDict[str, deque[float]] = OrderedDict()

    async def run(self, stop: asyncio.Event) -> None:
        """Run until ``stop`` is set. Answers in progress are repeated in the next run."""
        parts = self._parts
        self._room = asyncio.Semaphore(self._at_once)
        open_channels = {name: opened.channel for name, opened in parts.channels.items()}
        self._delivery = Delivery(parts.store, open_channels, parts.clock, parts.log)
        self._keeping = Keeping(self._turns.sessions, parts.answering, parts.log)
        tasks = [
            asyncio.create_task(self._receive(name, opened))
            for name, opened in parts.channels.items()
        ]
        tasks.append(asyncio.create_task(self._tidy()))
        served = {
            name: channel
            for name, channel in open_channels.items()
            if isinstance(channel, ServesHttp)
        }
        if served:
            listener = load("nacre_gateway.listener:Listener")(
                parts.settings.text("gateway.listen"), served, parts.log
            )
            tasks.append(asyncio.create_task(self._guarded("listener", listener.run())))
        self._resume()
        await stop.wait()
        conversations = list(self._conversations.values())
        for task in (*tasks, *conversations):
            task.cancel()
        await asyncio.to_thread(self._parts.answering.close)
        await asyncio.gather(*tasks, *conversations, return_exceptions=True)
        self._parts.store.release()
        await self._delivery.stop(_END_SECONDS)
        for opened in self._parts.channels.values():
            await self._guarded("closing", opened.channel.close())
        await asyncio.to_thread(self._pool.shutdown, wait=True, cancel_futures=True)
        await self._keeping.stop(_END_SECONDS)

    def _resume(self) -> None:
        """Resume work that was pending when the gateway ended or that an error blocked."""
        for session in self._parts.store.pending_sessions():
            self._parts.transcripts.write_pending(self._parts.store, session)
        for key, channel in self._parts.store.waiting_keys():
            self._wake(key, channel)
        for key, channel in self._parts.store.sending_keys():
            self._delivery.send(key, channel)

    # Receiving

    async def _receive(self, name: str, opened: Open) -> None:
        pause = _MIN_RESTART_PAUSE
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            self._parts.store.note_problem(name, "")
            try:
                rules = LiveRules(self._parts.settings, opened.options.rules)
                await opened.channel.run(
                    ChannelInbox(self._parts, rules, self._wake, self._delivery.send)
                )
                return
            except ChannelRefusedError as error:
                self._tell_problem(name, error)
                return
            except ChannelUnavailableError as error:
                self._tell_problem(name, error)
                after = error.retry_after
            except Exception as error:  # noqa: BLE001 - a channel may be a third party's, and the others continue
                self._parts.log(f"{name}: " + "".join(traceback.format_exception(error)).rstrip())
                after = None
            pause = _MIN_RESTART_PAUSE if loop.time() - began > _MAX_RESTART_PAUSE else pause
            await asyncio.sleep(after or pause)
            pause = min(2 * pause, _MAX_RESTART_PAUSE)

    def _tell_problem(self, name: str, error: NacreError) -> None:
        problem = error.message + (f" ({error.hint})" if error.hint else "")
        self._parts.log(f"{name}: {problem}")
        self._parts.store.note_problem(name, problem)

    # Answering

    def _wake(self, key: str, channel: str) -> None:
        if channel in self._parts.channels and key not in self._conversations:
            self._conversations[key] = asyncio.create_task(
                self._converse(key, channel), name=f"answering {key}"
            )

    async def _converse(self, key: str, channel: str) -> None:
        try:
            while await self._is_quiet(key):
                loop = asyncio.get_running_loop()
                # Limit answers per minute. Messages that arrive in this time are answered together.
                times = self._paces.setdefault(key, deque(maxlen=self._a_minute))
                self._paces.move_to_end(key)
                if len(self._paces) > MAX_GROUPS_WITH_HISTORY:
                    self._paces.popitem(last=False)
                if len(times) == self._a_minute and (left := times[0] + _MINUTE - loop.time()) > 0:
                    await asyncio.sleep(left)
                times.append(loop.time())
                async with self._room:
                    await self._answer_next(key, channel)
        except NacreError as error:  # for example a full disk: pending messages are answered later
            self._parts.log(f"{key}: {error.message}")
        except OSError as error:
            self._parts.log(f"{key}: {error.strerror or error}")
        except Exception as error:  # noqa: BLE001 - log it; other conversations continue
            self._parts.log(f"{key}: " + "".join(traceback.format_exception(error)).rstrip())
        finally:
            del self._conversations[key]

    async def _is_quiet(self, key: str) -> bool:
        """Wait for a pause in writing, to answer several messages in one turn.

        Return False if no messages are pending.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + self._debounce * _MAX_DEBOUNCES
        while True:
            last, count = self._parts.store.last_waiting(key)
            if last is None or not count:
                return bool(self._parts.store.is_taken(key))
            left = self._debounce - (self._parts.clock() - last).total_seconds()
            if left <= 0 or loop.time() >= until:
                return True
            await asyncio.sleep(min(left, self._debounce))

    async def _answer_next(self, key: str, channel: str) -> None:
        opened = self._parts.channels[channel]
        batch = await self._turns.take(key, opened)
        if batch is None:
            self._delivery.send(key, channel)  # a command could have been answered
            self._keeping.index(self._turns.ended)
            self._turns.ended.clear()
            return
        typing = asyncio.create_task(self._show_typing(opened.channel, batch.chat))
        try:
            answer, problem = await self._make_answer(batch, opened)
        finally:
            typing.cancel()
        silent = answer.text.strip() == _NO_REPLY
        self._turns.finish(batch, answer, opened.channel.limits, problem=problem, is_silent=silent)
        self._delivery.send(key, channel)
        self._keeping.look(batch.session.key, opened.options)

    async def _make_answer(self, batch: Batch, opened: Open) -> tuple[Answer, str]:
        if batch.is_hopeless:
            return Answer(
                "I cannot answer this message."
            ), "the gateway stopped three times during the answer"
        loop = asyncio.get_running_loop()
        try:
            work = Work(batch.session, opened.options, batch.turn)
            return await loop.run_in_executor(self._pool, self._parts.answering.answer, work), ""
        except NacreError as error:
            self._parts.log(f"{batch.session.key}: no answer: {error.message}")
            if self._parts.answering.is_closed:
                raise  # cancelled at the end, so answered in the next run
            return Answer(excuse(error, is_owner=batch.is_owners)), error.message

    async def _show_typing(self, channel: Channel, chat: gateway_Chat) -> None:
        seconds = channel.limits.typing_seconds
        while seconds > 0:
            await self._guarded("", channel.show_typing(chat))
            await asyncio.sleep(seconds * 0.8)

    # Tidying up

    async def _tidy(self) -> None:
        while True:
            try:
                for name, opened in self._parts.channels.items():
                    self._keeping.close_stale(name, opened.options)
                self._parts.store.prune(self._parts.clock() - timedelta(days=_KEEP_DAYS))
                self._resume()
            except (NacreError, OSError) as error:
                self._parts.log(f"cleaning up: {error}")
            await asyncio.sleep(_TIDY_SECONDS)

    async def _guarded(self, label: str, coroutine: Coroutine[Any, Any, None]) -> None:
        """Await a coroutine. Log its errors and continue."""
        try:
            await coroutine
        except Exception as error:  # noqa: BLE001 - a channel may be a third party's
            if label:
                self._parts.log(f"{label}: {error}")


# ----------------------------------------------------------------------------
# Open the gateway of a home and run it, in ``nacre gateway run`` or in the daemon.


LOCK = f"{FOLDER}/gateway.lock"
_LOOK_SECONDS = 0.2


def is_running(settings: Settings) -> bool:
    """Return True if a gateway serves this home."""
    return is_held(settings.home / LOCK)


def serve(
    settings: Settings,
    lend: Lend,
    log: Tell,
    stop: threading.Event,
) -> None:
    """Serve the configured channels until ``stop`` is set.

    If a channel cannot be opened, log this and serve the other channels. Raises ConflictError if
    another gateway serves this home, NotFoundError if no channel is configured or can be opened,
    and errors of opening the store.
    """
    with closing(GatewayStore.open(settings.home)) as store:
        lock = FileLock(settings.home / LOCK)
        if not lock.acquire():
            hint = "see nacre gateway; with gateway.enabled the daemon runs it"
            raise ConflictError(f"another gateway serves {settings.home}", hint=hint)
        try:
            names = [
                name
                for name, channel in settings["gateway.channels"].items()
                if channel.get("enabled", True)
            ]
            opened: dict[str, Open] = {}
            for name in names:
                try:
                    options = ChannelOptions.of(settings, name)
                    opened[name] = Open(
                        open_channel(settings, name, partial(_log_for, log, name)), options
                    )
                except (NacreError, ImportError) as error:
                    hint = (
                        f" ({error.hint})" if isinstance(error, NacreError) and error.hint else ""
                    )
                    store.note_problem(name, f"{error}{hint}")
                    log(f"{name}: {error}{hint}")
            if not opened:
                problem = "no channel can be opened" if names else "no channel is configured"
                raise NotFoundError(
                    problem,
                    hint=f"add [gateway.channels.telegram] to {settings.config}; see docs/gateway.md",
                )
            parts = Parts(
                settings,
                store,
                opened,
                Answering(settings, lend),
                load("nacre.redact.redactor:Redactor")(*settings.redaction),
                utc_now,
                uuid7_source(),
                log,
            )
            log(f"answers in {', '.join(opened)}")
            asyncio.run(_run(Gateway(parts), stop))
        finally:
            lock.release()


def _log_for(log: Tell, name: str, line: str) -> None:
    log(f"{name}: {line}")


async def _run(gateway: Gateway, stop: threading.Event) -> None:
    stopping = asyncio.Event()

    async def watch() -> None:
        while not stop.is_set():
            await asyncio.sleep(_LOOK_SECONDS)
        stopping.set()

    watching = asyncio.create_task(watch())
    await gateway.run(stopping)
    watching.cancel()


# ----------------------------------------------------------------------------
# A conversation in a terminal, with the same sessions, memory and answers as in channels


NAME = "terminal"
_OWNER, _INPUT = "owner", "standard input"


class TerminalChat:
    """A conversation with a person at a terminal.

    ``is_owner`` is True if no agent runs the terminal, so that the messages count as the owner's.
    """

    def __init__(self, settings: Settings, lend: Lend, *, is_owner: bool, model: str = "") -> None:
        self._settings = settings
        self._store = GatewayStore.open(settings.home)
        self._redactor = load("nacre.redact.redactor:Redactor")(*settings.redaction)
        self._new_id = uuid7_source()
        self._answering = Answering(settings, lend)
        self._sessions = Sessions(self._store, Transcripts(settings.home), utc_now, self._new_id)
        self._turns = Turns(self._sessions, settings, self._redactor)
        name = _OWNER if is_owner else "agent"
        self.number = next(number for number in count(1) if self._lock_name(f"{name}-{number}"))
        """Number that distinguishes this conversation from others that are open."""
        self._chat = gateway_Chat(NAME, name if self.number == 1 else f"{name}-{self.number}")
        self._is_owner = is_owner
        self._key = f"{NAME}:{self._chat.id}"
        options = ChannelOptions(
            Rules(NAME),
            memories="all",
            model=model,
            instructions=settings.text("gateway.instructions"),
            hours=SESSION_HOURS,
        )
        self._open = Open(cast(Channel, _Screen()), options)

    def _lock_name(self, name: str) -> bool:
        self._lock = FileLock(self._settings.home / FOLDER / f"terminal-{name}.lock")
        return self._lock.acquire()

    @property
    def session(self) -> ChatSession:
        return self._sessions.current(self._key, self._chat, NAME, self._open.options.hours)

    def last_messages(self, limit: int) -> Sequence[ChatMessage]:
        return self._sessions.transcripts.recent(self.session.id, limit).messages

    def ask(self, text: str, *, piped: str = "") -> Answer:
        """Answer a message.

        Output from another program (``piped``) does not count as the owner's. Raises
        ModelUnavailableError, ModelRefusedError, BudgetSpentError. In these cases, the message is
        kept and answered with the next one.
        """
        inputs = [(piped, Sender(_INPUT), False), (text, Sender(self._chat.id), self._is_owner)]
        messages = [self._to_received(*item) for item in inputs if item[0].strip()]
        self._store.receive(NAME, [(message, "waiting") for message in messages], {})
        batch = asyncio.run(self._turns.take(self._key, self._open))
        if batch is None:
            return Answer("A new conversation.")
        answer = self._answering.answer(Work(batch.session, self._open.options, batch.turn))
        self._turns.finish(batch, answer, self._open.channel.limits, is_silent=True)
        return answer

    def _to_received(self, text: str, sender: Sender, is_owner: bool) -> Received:
        message = Incoming(
            self._new_id(), self._chat, sender, self._redactor.clean(bounded(text, MAX_CHARACTERS))
        )
        return Received(0, self._key, message, utc_now(), is_owner)

    def begin(self) -> None:
        before = self._store.open_session(self._key)
        self._sessions.reset(self._key)
        if before and before.messages > before.indexed:
            self._index(before)

    def close(self) -> None:
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
    """The limits of a terminal, which cannot receive files."""

    limits = Limits(characters=1_000_000)


# ----------------------------------------------------------------------------
# Operations on the gateway's database. They work in any process, and when no gateway is running.


_CODE_LETTERS = 9
Reference = Annotated[
    str,
    bounds(
        "A conversation: its id, the start of its id, or its key.",
        min_length=1,
        max_length=300,
    ),
]


@frozen
class ChannelState:
    """A channel's configuration, pending work, and any problem that prevents opening it."""

    name: str
    kind: str
    enabled: bool
    problem: str
    traffic: ChannelTraffic


@frozen
class GatewayState:
    """State of the gateway. ``model`` answers (``none`` if not set). ``waiting`` are senders that await approval."""

    running: bool
    model: str
    channels: tuple[ChannelState, ...]
    waiting: tuple[Pairing, ...]
    undelivered: tuple[Undelivered, ...]


@frozen
class Chat:
    """A conversation with its last messages, oldest first, and a summary of earlier messages.

    ``waiting`` are messages that nacre has not begun to answer. ``is_answering`` is True while it
    makes an answer.
    """

    session: ChatSession
    messages: tuple[ChatMessage, ...]
    summary: str
    path: str
    waiting: tuple[ChatMessage, ...] = ()
    is_answering: bool = False


@frozen
class Paired:
    """An approved sender. If it is the owner, ``identity`` was added to ``owner.identities``."""

    pairing: Pairing
    identity: str | None


@operation("gateway-status")
def gateway_status(home: Home) -> GatewayState:
    """Return the state of the gateway."""
    with _open_store(home.settings) as store:
        traffic = {row.channel: row for row in store.traffic()}
        channels: Mapping[str, Mapping[str, Any]] = home.settings["gateway.channels"]
        states = [
            ChannelState(
                name,
                str(options.get("kind", name)),
                bool(options.get("enabled", True)),
                _options_problem(home.settings, name) or store.channel_value(name, PROBLEM),
                traffic.get(name, ChannelTraffic(name)),
            )
            for name, options in channels.items()
        ]
        now = home.clock()
        waiting = tuple(row for row in store.pairings() if is_current(row, now))
        return GatewayState(
            is_running(home.settings),
            name_for(home, Task.CHAT),
            tuple(states),
            waiting,
            tuple(store.problems()),
        )


@operation("gateway-sessions")
def list_chats(
    home: Home,
    channel: Annotated[str, bounds("Name of a channel in gateway.channels.", max_length=60)]
    | None = None,
    closed: Annotated[bool, bounds("Include ended conversations.")] = False,
    limit: Annotated[int, bounds("Maximum number of conversations.", ge=0, le=1_000)] = 20,
    offset: Offset = 0,
) -> list[ChatSession]:
    """Return conversations, most recently used first."""
    with _open_store(home.settings) as store:
        return store.sessions(channel, closed=closed, limit=limit, offset=offset)


@operation("gateway-session")
def show_chat(
    home: Home,
    reference: Reference,
    limit: Annotated[int, bounds("Maximum number of messages.", ge=0, le=1_000)] = 20,
) -> Chat:
    """Return a conversation. Raises NotFoundError, ConflictError."""
    with _open_store(home.settings) as store:
        session = _find_session(store, reference)
        open_messages = store.open_messages(session.key) if session.closed is None else []
    transcripts = Transcripts(home.settings.home)
    recent = transcripts.recent(session.id, limit, failures=True)
    waiting = tuple(
        _pending_message(message.received)
        for message in open_messages
        if message.state == "waiting"
    )
    current = [message.received for message in open_messages if message.state == "taken"]
    return Chat(
        session,
        tuple(recent.messages),
        recent.summary,
        str(transcripts.path(session.id)),
        waiting,
        _is_answering(home, current),
    )


@operation("gateway-end", writes=True, owners=True, command="gateway show --end")
def end_chat(home: Home, reference: Reference) -> ChatSession:
    """End a conversation. The next message begins a new one. Raises NotFoundError, ConflictError."""
    with _open_store(home.settings) as store:
        session = _find_session(store, reference)
        store.close_session(session.id, home.clock())
        return _find_session(store, session.id)


@operation("gateway-pairings", owners=True, command="gateway pair")
def list_pairings(home: Home) -> list[Pairing]:
    """Return pending and approved senders."""
    with _open_store(home.settings) as store:
        return store.pairings()


@operation("gateway-pair", writes=True, owners=True)
def pair(
    home: Home,
    who: Annotated[
        str,
        bounds("A code, or <channel>:<id> of a sender.", min_length=3, max_length=300),
    ],
    me: Annotated[bool, bounds("The sender is you: these messages count as your own.")] = False,
) -> Paired:
    """Approve a sender. Raises NotFoundError for an unknown or expired code and for an unknown channel."""
    with _open_store(home.settings, creates=True) as store:
        pairing = _find_pairing(home, store, who.strip())
        store.approve(pairing, home.clock())
        paired = store.pairing(pairing.channel, pairing.sender) or pairing
    return Paired(paired, _add_owner_identity(home.settings, paired) if me else None)


@operation("gateway-unpair", writes=True, owners=True, command="gateway pair --remove")
def unpair(
    home: Home,
    who: Annotated[str, bounds("<channel>:<id> of a sender.", min_length=3, max_length=300)],
) -> bool:
    """Revoke a sender's approval. Raises NotFoundError."""
    channel, _, sender = who.strip().partition(":")
    with _open_store(home.settings) as store:
        if not store.drop_pairing(channel, sender):
            raise NotFoundError(
                f"no sender {who!r} is paired", hint="nacre gateway pair lists the senders"
            )
    return True


def _find_pairing(home: Home, store: GatewayStore, text: str) -> Pairing:
    channel, colon, sender = text.partition(":")
    if colon:
        if channel not in home.settings["gateway.channels"]:
            names = ", ".join(home.settings["gateway.channels"]) or "none configured"
            raise NotFoundError(f"there is no channel {channel!r}", hint=f"channels: {names}")
        return store.pairing(channel, sender) or Pairing(
            channel, sender, "", f"by hand {text}", home.clock()
        )
    letters = "".join(letter for letter in text.upper() if letter.isalnum())
    half = _CODE_LETTERS // 2
    pairing = store.pairing_of_code(f"{letters[:half]}-{letters[half:]}")
    if pairing is None or not (pairing.approved or is_current(pairing, home.clock())):
        hint = "codes expire after an hour: ask the sender to write again, and use the new code"
        raise NotFoundError(f"{text!r} is not a pending code", hint=hint)
    return pairing


def _add_owner_identity(settings: Settings, pairing: Pairing) -> str:
    identity = f"{pairing.channel}:{pairing.sender}"
    identities = settings.texts("owner.identities")
    if identity not in identities:
        value = json.dumps(
            [*identities, identity], ensure_ascii=False
        )  # an id can contain characters that end a TOML string
        set_setting(settings, "owner.identities", value)
    return identity


def _pending_message(received: Received) -> ChatMessage:
    sender = received.message.sender
    at = received.received.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return ChatMessage(
        f"waiting-{received.seq}",
        "user",
        received.message.text,
        sender.name or sender.id,
        at,
        received.is_owner,
    )


def _is_answering(home: Home, messages: Sequence[Received]) -> bool:
    """Return True if messages are being answered. Return False if they are left from a crash or a closed terminal."""
    if not messages:
        return False
    if messages[-1].message.chat.channel != NAME:
        return is_running(home.settings)
    return home.clock() - messages[-1].received < timedelta(seconds=ANSWER_SECONDS)


def _find_session(store: GatewayStore, reference: str) -> ChatSession:
    sessions = store.find_sessions(reference)
    exact = [session for session in sessions if reference in (session.id, session.key)]
    if not sessions:
        raise NotFoundError(
            f"there is no conversation {reference!r}",
            hint="nacre gateway sessions lists conversations",
        )
    if len(sessions) > 1 and not exact:
        raise ConflictError(
            f"several conversations begin with {reference!r}",
            hint=", ".join(session.id for session in sessions),
        )
    return (exact or sessions)[0]


def _options_problem(settings: Settings, name: str) -> str:
    try:
        ChannelOptions.of(settings, name)
    except NacreError as error:
        return error.message
    return ""


@contextmanager
def _open_store(settings: Settings, *, creates: bool = False) -> Iterator[GatewayStore]:
    """Open the gateway's store. If there is none, yield an empty one for reading."""
    is_there = creates or (settings.home / DATABASE).exists()
    store = GatewayStore.open(settings.home) if is_there else GatewayStore.empty()
    try:
        yield store
    finally:
        store.close()
