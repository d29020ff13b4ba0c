"""The gateway: it receives messages, answers them, and sends the answers in parts."""

from __future__ import annotations

import asyncio
import json
import threading
import traceback
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING, Annotated, Any

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
from nacre_gateway.channels import Channel, Tell, open_channel
from nacre_gateway.conversation import (
    ANSWER_SECONDS,
    ChannelOptions,
    OpenChannel,
    code_for,
    current_options,
    is_current,
)
from nacre_gateway.sessions import (
    Answering,
    ChatMessage,
    Lend,
    Sessions,
    Transcripts,
    Turn,
    bounded,
    excuse,
    key_of,
)

if TYPE_CHECKING:
    from nacre.redact.redactor import Redactor

# ----------------------------------------------------------------------------
# Incoming messages.


MAX_GROUPS_WITH_HISTORY = 1_000
"""Maximum number of groups whose recent messages are kept."""

MAX_CHARACTERS = 64_000
"""Maximum length of a message in characters."""

_MAX_ATTACHMENTS = 10
_NAME_CHARACTERS = 80


@frozen
class ChannelInbox:
    """The inbox of a channel."""

    gateway: Gateway
    options: ChannelOptions

    def state(self, name: str) -> str:
        return self.gateway.store.channel_value(self.options.channel, name)

    async def receive(self, messages: Sequence[Incoming], **state: str) -> None:
        """Remove secrets from messages, decide which to answer, and store them."""
        # in a thread, because redacting a long message takes seconds
        cleaned = await asyncio.to_thread(lambda: [self._clean(message) for message in messages])
        options = current_options(self.gateway.settings, self.options)
        new = self.gateway.store.receive(options.channel, self._judge(options, cleaned), state)
        for key in {received.key for received, state in new if state == "heard"}:
            self.gateway.store.trim_heard(key, _GROUP_HISTORY_MESSAGES, MAX_GROUPS_WITH_HISTORY)
        for key in dict.fromkeys(received.key for received, state in new if state == "waiting"):
            self.gateway.wake(key, options.channel)

    def _judge(
        self, options: ChannelOptions, messages: Iterable[Incoming]
    ) -> Iterator[tuple[Received, str]]:
        store = self.gateway.store
        for message in messages:
            now, key = self.gateway.clock(), key_of(message)
            state = options.admit(message, store)
            if state:
                yield Received(0, key, message, now, options.is_owner(message.sender)), state
            elif message.chat.kind is ChatType.DIRECT and (
                reply := code_for(message.sender, options.channel, store, now)
            ):
                part = Outgoing(f"pairing:{self.gateway.new_id()}", message.chat, reply, message.id)
                store.add_part(key, part, now)
                self.gateway.send(key, options.channel)

    def _clean(self, message: Incoming) -> Incoming:
        attachments = tuple(
            Attachment(
                self._name(file.name),
                one_line(file.media_type)[:_NAME_CHARACTERS],
                file.size,
            )
            for file in message.attachments[:_MAX_ATTACHMENTS]
        )
        return replace(
            message,
            text=self.gateway.redactor.clean(message.text[:MAX_CHARACTERS]),
            attachments=attachments,
            sender=Sender(message.sender.id, self._name(message.sender.name)),
        )

    def _name(self, name: str) -> str:
        return one_line(self.gateway.redactor.clean(name))[:_NAME_CHARACTERS]


# ----------------------------------------------------------------------------
# The running gateway.


SEND_SECONDS = 60.0
MAX_SENDING_AGE = timedelta(hours=24)
"""Age after which an unsent part is dropped."""

_MIN_PAUSE, _MAX_PAUSE = 1.0, 600.0
_MAX_FAULTS = 5
_INDEX_EVERY = 5
"""Number of new messages after which a conversation is indexed."""

_KEEP_DAYS = 7
_MAX_ANSWERS_AT_ONCE = 3
_GROUP_HISTORY_MESSAGES = 50
_TIDY_SECONDS = 60.0
_LOOK_SECONDS = 0.2
_END_SECONDS = 3.0
_MIN_RESTART_PAUSE, _MAX_RESTART_PAUSE = 1.0, 300.0
_STEADY_SECONDS = 60.0
"""Time that a connection must last to reset the pause before the next one."""

_MAX_DEBOUNCES = 10
"""Maximum wait while a sender keeps writing, as a multiple of the debounce time."""

_NO_REPLY = "NO_REPLY"
"""The answer with which a model declines to reply, as in OpenClaw."""

Tasks = dict[str, asyncio.Task[None]]
"""Running tasks by conversation."""


@dataclass(eq=False)
class Gateway:
    """A server for the channels of a home. An instance can run only once."""

    settings: Settings
    store: GatewayStore
    channels: Mapping[str, OpenChannel]
    answering: Answering
    redactor: Redactor
    clock: Clock
    new_id: Callable[[], str]
    log: Tell

    def __post_init__(self) -> None:
        transcripts = Transcripts(self.settings.home)
        self._sessions = Sessions(self.store, transcripts, self.clock, self.new_id)
        self._debounce = self.settings.number("gateway.debounce_seconds")
        self._answering_pool = ThreadPoolExecutor(_MAX_ANSWERS_AT_ONCE, "answering")
        self._indexing_pool = ThreadPoolExecutor(1, "indexing")
        self._room = asyncio.Semaphore(_MAX_ANSWERS_AT_ONCE)
        self._answer_tasks: Tasks = {}
        self._send_tasks: Tasks = {}
        self._index_tasks: Tasks = {}

    async def run(self, stop: threading.Event | asyncio.Event) -> None:
        """Serve the channels until ``stop`` is set. The next run finishes interrupted answers."""
        tasks = [
            asyncio.create_task(self._receive(name, opened))
            for name, opened in self.channels.items()
        ]
        tasks.append(asyncio.create_task(self._tidy()))
        while not stop.is_set():
            await asyncio.sleep(_LOOK_SECONDS)
        for task in (*tasks, *self._answer_tasks.values()):
            task.cancel()
        await asyncio.to_thread(self.answering.close)
        await _end([*tasks, *self._answer_tasks.values()], 0)
        self.store.release()
        await _end(self._send_tasks.values(), _END_SECONDS)
        for opened in self.channels.values():
            await _attempt(opened.channel.close())
        await asyncio.to_thread(self._answering_pool.shutdown, wait=True, cancel_futures=True)
        await _end(self._index_tasks.values(), _END_SECONDS)
        self._indexing_pool.shutdown(wait=False, cancel_futures=True)

    def _begin(self, tasks: Tasks, key: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        async def run() -> None:
            try:
                await work()
            except (NacreError, OSError) as error:  # for example a full disk
                self.log(f"{key}: {error}")
            except Exception as error:  # noqa: BLE001 - log it; other conversations continue
                self.log(f"{key}: {_trace(error)}")
            finally:
                del tasks[key]

        if key not in tasks:
            tasks[key] = asyncio.create_task(run())

    # Receiving

    async def _receive(self, name: str, opened: OpenChannel) -> None:
        pause = _MIN_RESTART_PAUSE
        loop = asyncio.get_running_loop()
        while True:
            began, after = loop.time(), None
            self.store.note_problem(name, "")
            try:
                await opened.channel.run(ChannelInbox(self, opened.options))
            except (ChannelRefusedError, ChannelUnavailableError) as error:
                self.log(f"{name}: {error.with_hint}")
                self.store.note_problem(name, error.with_hint)
                if isinstance(error, ChannelRefusedError):
                    return
                after = error.retry_after
            except Exception as error:  # noqa: BLE001 - a channel may be a third party's, and the others continue
                self.log(f"{name}: {_trace(error)}")
            pause = _MIN_RESTART_PAUSE if loop.time() - began > _STEADY_SECONDS else pause
            await asyncio.sleep(after or pause)
            pause = min(2 * pause, _MAX_RESTART_PAUSE)

    # Answering

    def wake(self, key: str, channel: str) -> None:
        if channel in self.channels:
            self._begin(self._answer_tasks, key, lambda: self._converse(key, channel))

    async def _converse(self, key: str, channel: str) -> None:
        while await self._is_quiet(key):
            async with self._room:
                await self._answer_next(key, channel)

    async def _is_quiet(self, key: str) -> bool:
        """Wait until the sender pauses, so that several messages are answered together."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self._debounce * _MAX_DEBOUNCES
        while True:
            last, _ = self.store.last_waiting(key)
            if last is None:
                return bool(self.store.is_taken(key))
            seconds = self._debounce - (self.clock() - last).total_seconds()
            if seconds <= 0 or loop.time() >= until:
                return True
            await asyncio.sleep(min(seconds, self._debounce))

    async def _answer_next(self, key: str, channel: str) -> None:
        opened = self.channels[channel]
        turn = self._sessions.take(key, opened.options)
        if turn is None:
            self.send(key, channel)  # a command may have been answered
            while self._sessions.ended:
                self._index(self._sessions.ended.pop())
            return
        typing = asyncio.create_task(self._show_typing(opened.channel, turn.chat))
        try:
            answer, problem = await self._make_answer(turn, opened)
        finally:
            typing.cancel()
        silent = answer.text.strip() == _NO_REPLY
        self._sessions.finish(
            turn, answer, opened.channel.limits, problem=problem, is_silent=silent
        )
        self.send(key, channel)
        if session := self.store.open_session(key):
            self._index(session, _INDEX_EVERY)

    async def _make_answer(self, turn: Turn, opened: OpenChannel) -> tuple[Answer, str]:
        if turn.is_hopeless:
            return Answer(
                "I cannot answer this message."
            ), "the gateway stopped three times during the answer"
        loop = asyncio.get_running_loop()
        try:
            answer = await loop.run_in_executor(
                self._answering_pool, self.answering.answer, turn, opened.options
            )
            return answer, ""
        except NacreError as error:
            self.log(f"{turn.session.key}: no answer: {error.message}")
            if self.answering.is_closed:
                raise  # cancelled at shutdown, so the next run answers
            return Answer(excuse(error, is_owner=turn.is_private)), error.message

    async def _show_typing(self, channel: Channel, chat: gateway_Chat) -> None:
        seconds = channel.limits.typing_seconds
        while seconds > 0:
            await _attempt(channel.show_typing(chat))
            await asyncio.sleep(seconds * 0.8)

    # Sending the parts of answers

    def send(self, key: str, channel: str) -> None:
        if channel in self.channels:
            self._begin(self._send_tasks, key, lambda: self._deliver(key, channel))

    async def _deliver(self, key: str, name: str) -> None:
        channel = self.channels[name].channel
        while part := self.store.next_part(key):
            while (
                part.not_before
                and (seconds := (part.not_before - self.clock()).total_seconds()) > 0
            ):
                await asyncio.sleep(min(seconds, _MAX_PAUSE))
            await self._try(part, channel)
            await asyncio.sleep(channel.limits.seconds_between)

    async def _try(self, part: Part, channel: Channel) -> None:
        after, is_final = 0.0, False
        self.store.begin_part(part.seq, is_idempotent=channel.limits.is_idempotent)
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
            self.log(_trace(error))
            problem, is_final = type(error).__name__, part.attempts + 1 >= _MAX_FAULTS
        else:
            self.store.finish_part(part.seq, sent)
            return
        now = self.clock()
        if is_final or now - part.created > MAX_SENDING_AGE:
            self.log(f"{part.outgoing.chat.channel}: gave up sending a message: {problem}")
            self.store.finish_part(part.seq, None, problem)
            return
        pause = after or min(_MIN_PAUSE * 2**part.attempts, _MAX_PAUSE)
        self.store.delay_part(part.seq, now + timedelta(seconds=pause), problem)

    # Indexing, one conversation after another

    def _index(self, session: ChatSession, least: int = 1) -> None:
        async def index() -> None:
            await asyncio.get_running_loop().run_in_executor(
                self._indexing_pool, self.answering.index, session
            )
            self.store.note_indexed(session.id, session.messages)

        if session.messages - session.indexed >= least:
            self._begin(self._index_tasks, session.id, index)

    # Tidying up

    async def _tidy(self) -> None:
        store = self.store
        while True:
            try:
                for session in store.pending_sessions():
                    self._sessions.transcripts.write_pending(store, session)
                for key, channel in store.waiting_keys():
                    self.wake(key, channel)
                for key, channel in store.sending_keys():
                    self.send(key, channel)
                for name in self.channels:
                    for stale in self._sessions.close_stale(name):
                        self._index(stale)
                store.prune(self.clock() - timedelta(days=_KEEP_DAYS))
            except (NacreError, OSError) as error:
                self.log(f"cleaning up: {error}")
            await asyncio.sleep(_TIDY_SECONDS)


async def _attempt(coroutine: Coroutine[Any, Any, None]) -> None:
    with suppress(Exception):  # a channel may be a third party's
        await coroutine


async def _end(tasks: Iterable[asyncio.Task[None]], seconds: float) -> None:
    pending = list(tasks)
    if pending:
        await asyncio.wait(pending, timeout=seconds)
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)


def _trace(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)).rstrip()


# ----------------------------------------------------------------------------
# Opening the gateway of a home.


LOCK = f"{FOLDER}/gateway.lock"


def is_running(settings: Settings) -> bool:
    """Return True if a gateway serves this home."""
    return is_held(settings.home / LOCK)


def serve(settings: Settings, lend: Lend, log: Tell, stop: threading.Event) -> None:
    """Serve the configured channels until ``stop`` is set, except those that cannot be opened.

    Raises ConflictError if another gateway serves this home, and NotFoundError if no channel can be
    opened.
    """
    with (
        closing(GatewayStore.open(settings.home)) as store,
        FileLock(settings.home / LOCK).if_free() as is_ours,
    ):
        if not is_ours:
            hint = "see nacre gateway; with gateway.enabled the daemon runs it"
            raise ConflictError(f"another gateway serves {settings.home}", hint=hint)
        names = [
            name
            for name, channel in settings["gateway.channels"].items()
            if channel.get("enabled", True)
        ]
        opened: dict[str, OpenChannel] = {}
        for name in names:
            try:
                options = ChannelOptions.of(settings, name)
                opened[name] = OpenChannel(open_channel(settings, name, log), options)
            except NacreError as error:
                store.note_problem(name, error.with_hint)
                log(f"{name}: {error.with_hint}")
        if not opened:
            problem = "no channel can be opened" if names else "no channel is configured"
            raise NotFoundError(
                problem,
                hint=f"add [gateway.channels.telegram] to {settings.config}; see docs/gateway.md",
            )
        gateway = Gateway(
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
        asyncio.run(gateway.run(stop))


# ----------------------------------------------------------------------------
# A conversation in a terminal.


NAME = "terminal"
_OWNER, _INPUT = "owner", "standard input"


class TerminalChat:
    """A conversation in a terminal. ``is_owner`` is False if an agent runs the terminal."""

    def __init__(self, settings: Settings, lend: Lend, *, is_owner: bool, model: str = "") -> None:
        self._settings = settings
        self._store = GatewayStore.open(settings.home)
        self._redactor = load("nacre.redact.redactor:Redactor")(*settings.redaction)
        self._new_id = uuid7_source()
        self._answering = Answering(settings, lend)
        self._sessions = Sessions(self._store, Transcripts(settings.home), utc_now, self._new_id)
        name = _OWNER if is_owner else "agent"
        self.number = next(number for number in count(1) if self._lock_name(f"{name}-{number}"))
        """Number of this conversation among those open at the same time."""
        self._chat = gateway_Chat(NAME, name if self.number == 1 else f"{name}-{self.number}")
        self._is_owner = is_owner
        self._key = f"{NAME}:{self._chat.id}"
        self._options = ChannelOptions(
            NAME,
            memories="all",
            model=model,
            instructions=settings.text("gateway.instructions"),
        )

    def _lock_name(self, name: str) -> bool:
        self._lock = FileLock(self._settings.home / FOLDER / f"terminal-{name}.lock")
        return self._lock.acquire()

    @property
    def session(self) -> ChatSession:
        return self._sessions.current(self._key, self._chat, NAME)

    def last_messages(self, limit: int) -> Sequence[ChatMessage]:
        return self._sessions.transcripts.recent(self.session.id, limit)

    def ask(self, text: str, *, piped: str = "") -> Answer:
        """Answer a message. Text in ``piped`` does not count as the owner's.

        Raises the errors of :meth:`Responder.answer`. After an error, the next call also answers
        this message.
        """
        inputs = [(piped, Sender(_INPUT), False), (text, Sender(self._chat.id), self._is_owner)]
        messages = [self._to_received(*item) for item in inputs if item[0].strip()]
        self._store.receive(NAME, [(message, "waiting") for message in messages], {})
        turn = self._sessions.take(self._key, self._options)
        if turn is None:
            return Answer("A new conversation.")
        answer = self._answering.answer(turn, self._options)
        self._sessions.finish(turn, answer, Limits(), is_silent=True)
        return answer

    def _to_received(self, text: str, sender: Sender, is_owner: bool) -> Received:
        message = Incoming(
            self._new_id(), self._chat, sender, self._redactor.clean(bounded(text, MAX_CHARACTERS))
        )
        return Received(0, self._key, message, utc_now(), is_owner)

    def begin(self) -> None:
        if before := self._store.open_session(self._key):
            self._sessions.begin(self._key, before.chat, before.name)
            self._index_new(before)

    def close(self) -> None:
        if session := self._store.open_session(self._key):
            self._index_new(session)
        self._answering.close()
        self._store.close()
        self._lock.release()

    def _index_new(self, session: ChatSession) -> None:
        if session.messages > session.indexed:
            self._answering.index(session)
            self._store.note_indexed(session.id, session.messages)


# ----------------------------------------------------------------------------
# Operations. They work in any process, even if no gateway runs.


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
    """A channel with its pending messages and, if it cannot be opened, the reason."""

    name: str
    kind: str
    enabled: bool
    problem: str
    traffic: ChannelTraffic


@frozen
class GatewayState:
    """The gateway's state. ``model`` is ``none`` if unset, and ``waiting`` are the senders to
    approve.
    """

    running: bool
    model: str
    channels: tuple[ChannelState, ...]
    waiting: tuple[Pairing, ...]
    undelivered: tuple[Undelivered, ...]


@frozen
class Chat:
    """A conversation with its last messages.

    ``waiting`` are the messages that the agent has not begun to answer.
    """

    session: ChatSession
    messages: tuple[ChatMessage, ...]
    path: str
    waiting: tuple[ChatMessage, ...] = ()
    is_answering: bool = False


@frozen
class Paired:
    """An approved sender. ``identity`` is set if the sender is now one of ``owner.identities``."""

    pairing: Pairing
    identity: str | None


@operation("gateway-status")
def gateway_status(home: Home) -> GatewayState:
    """Return the state of the gateway."""
    with _open_store(home) as store:
        traffic = {row.channel: row for row in store.traffic()}
        states = [
            ChannelState(
                name,
                str(options.get("kind", name)),
                bool(options.get("enabled", True)),
                _options_problem(home.settings, name) or store.channel_value(name, PROBLEM),
                traffic.get(name, ChannelTraffic(name)),
            )
            for name, options in home.settings["gateway.channels"].items()
        ]
        now = home.clock()
        pending = tuple(row for row in store.pairings() if is_current(row, now))
        return GatewayState(
            is_running(home.settings),
            name_for(home, Task.CHAT),
            tuple(states),
            pending,
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
    with _open_store(home) as store:
        return store.sessions(channel, closed=closed, limit=limit, offset=offset)


@operation("gateway-session")
def show_chat(
    home: Home,
    reference: Reference,
    limit: Annotated[int, bounds("Maximum number of messages.", ge=0, le=1_000)] = 20,
) -> Chat:
    """Return a conversation. Raises NotFoundError, ConflictError."""
    with _open_store(home) as store:
        session = _find_session(store, reference)
        open_messages = store.open_messages(session.key) if session.closed is None else []
    transcripts = Transcripts(home.settings.home)
    pending = tuple(
        _pending_message(message.received)
        for message in open_messages
        if message.state == "waiting"
    )
    current = [message.received for message in open_messages if message.state == "taken"]
    return Chat(
        session,
        tuple(transcripts.recent(session.id, limit, failures=True)),
        str(transcripts.path(session.id)),
        pending,
        _is_answering(home, current),
    )


@operation("gateway-end", writes=True, owners=True, command="gateway show --end")
def end_chat(home: Home, reference: Reference) -> ChatSession:
    """End a conversation. The next message begins a new one. Raises NotFoundError, ConflictError."""
    with _open_store(home) as store:
        session = _find_session(store, reference)
        store.close_session(session.id, home.clock())
        return _find_session(store, session.id)


@operation("gateway-pairings", owners=True, command="gateway pair")
def list_pairings(home: Home) -> list[Pairing]:
    """Return pending and approved senders."""
    with _open_store(home) as store:
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
    with _open_store(home, creates=True) as store:
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
    with _open_store(home) as store:
        if not store.drop_pairing(channel, sender):
            raise NotFoundError(
                f"no sender {who!r} is paired", hint="nacre gateway pair lists the senders"
            )
    return True


def _find_pairing(home: Home, store: GatewayStore, text: str) -> Pairing:
    channel, colon, sender = text.partition(":")
    if colon:
        channels = home.settings["gateway.channels"]
        if channel not in channels:
            names = ", ".join(channels) or "none configured"
            raise NotFoundError(
                f"there is no channel {channel!r}", hint=f"configured channels: {names}"
            )
        return store.pairing(channel, sender) or Pairing(
            channel, sender, "", f"by hand {text}", home.clock()
        )
    letters = "".join(filter(str.isalnum, text.upper()))
    pairing = store.pairing_of_code(f"{letters[:4]}-{letters[4:]}")
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


def _open_store(home: Home, *, creates: bool = False) -> closing[GatewayStore]:
    folder = home.settings.home
    is_there = creates or (folder / DATABASE).exists()
    return closing(GatewayStore.open(folder) if is_there else GatewayStore.empty())
