"""What is asked about the gateway, from any process: it works on the gateway's database, whether one runs or not."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from nacre.errors import Conflict, NacreError, NotFound
from nacre.gateway.admission import is_current
from nacre.gateway.channel_options import ChannelOptions
from nacre.gateway.requests import ChatRequest, ChatsRequest, EndChatRequest, PairRequest, UnpairRequest
from nacre.gateway.serve import is_running
from nacre.gateway.terminal import NAME as TERMINAL
from nacre.gateway.transcript import Said, Transcripts
from nacre.home.home import Home
from nacre.settings import Settings
from nacre.setup.requests import SetRequest
from nacre.setup.visible_settings import set_setting
from nacre.spending.models import name_for
from nacre.storage.gateway import DATABASE, PROBLEM, GatewayStore
from nacre.values.gateway.conversation import ChannelTraffic, ChatSession, Pairing, Undelivered
from nacre.values.gateway.message import Received
from nacre.values.model_calls import Task

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
                name, str(own.get("kind", name)), bool(own.get("enabled", True)),
                _problem(home.settings, name) or store.channel_value(name, PROBLEM),
                traffic.get(name, ChannelTraffic(name)),
            )
            for name, own in channels.items()
        ]  # fmt: skip
        now = home.clock()
        waiting = tuple(one for one in store.pairings() if is_current(one, now))
        return GatewayState(
            is_running(home.settings), name_for(home, Task.CHAT), tuple(states), waiting, tuple(store.problems())
        )


def list_chats(home: Home, request: ChatsRequest) -> list[ChatSession]:
    """Conversations, the one that was used last first."""
    with _store(home.settings) as store:
        return store.sessions(request.channel, closed=request.closed, limit=request.limit, offset=request.offset)


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
        session, tuple(recent.messages), recent.summary, str(transcripts.path(session.id)), waiting,
        _is_answering(home, taken),
    )  # fmt: skip


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
            raise NotFound(f"nobody is let in as {request.who!r}", hint="nacre gateway pair lists them")
    return True


def _asked(home: Home, store: GatewayStore, who: str) -> Pairing:
    channel, colon, sender = who.partition(":")
    if colon:
        if channel not in home.settings["gateway.channels"]:
            known = ", ".join(home.settings["gateway.channels"]) or "none is configured"
            raise NotFound(f"there is no channel {channel!r}", hint=f"channels: {known}")
        return store.pairing(channel, sender) or Pairing(channel, sender, "", f"by hand {who}", home.clock())
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
        listed = json.dumps([*known, identity], ensure_ascii=False)  # an id may hold what ends a text in TOML
        set_setting(settings, SetRequest(key="owner.identities", value=listed))
    return identity


def _waiting(one: Received) -> Said:
    sender = one.message.sender
    at = one.received.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return Said(f"waiting-{one.seq}", "user", one.message.text, sender.name or sender.id, at, one.is_owner)


def _is_answering(home: Home, taken: Sequence[Received]) -> bool:
    """Whether messages are being answered: what ended in the middle, or a terminal that was closed, left them so."""
    if not taken:
        return False
    if taken[-1].message.chat.channel != TERMINAL:
        return is_running(home.settings)
    return home.clock() - taken[-1].received < timedelta(seconds=home.settings.number("gateway.answer_seconds"))


def _found(store: GatewayStore, reference: str) -> ChatSession:
    found = store.find_sessions(reference)
    exact = [one for one in found if reference in (one.id, one.key)]
    if not found:
        raise NotFound(f"there is no conversation {reference!r}", hint="nacre gateway sessions lists them")
    if len(found) > 1 and not exact:
        raise Conflict(f"{reference!r} is the beginning of several", hint=", ".join(one.id for one in found))
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
