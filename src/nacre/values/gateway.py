"""Values for channel messages, conversations and pairings."""

from __future__ import annotations

from dataclasses import field
from datetime import datetime
from enum import StrEnum

from nacre.base.frozen import frozen


class ChatType(StrEnum):
    """A chat with one person, or a group."""

    DIRECT = "direct"
    GROUP = "group"


@frozen
class Chat:
    """The chat that a message comes from and its answer goes to.

    ``channel`` is the owner's name for the channel (``telegram``). ``id`` is the platform's chat
    id. ``account`` distinguishes a channel's workspaces or bots. ``thread`` is the topic or thread
    in the chat.
    """

    channel: str
    id: str
    kind: ChatType = ChatType.DIRECT
    account: str = ""
    thread: str = ""


@frozen
class Sender:
    """The sender of a message. The platform assigns the id. ``name`` is the display name."""

    id: str
    name: str = ""


@frozen
class Attachment:
    """A file in a message. ``source`` is the channel's reference for fetching it. ``size`` is in bytes."""

    name: str
    media_type: str = ""
    size: int | None = None
    source: str = ""


@frozen
class Incoming:
    """One message, as received by a channel.

    ``id`` is the platform's id. Messages in one channel with the same id are the same message. An
    edit has a separate id; ``edits`` is the id of the message whose text it replaces. ``to_agent``
    is set if the agent was mentioned or replied to, and always in direct chats.
    """

    id: str
    chat: Chat
    sender: Sender
    text: str
    sent: datetime | None = None
    attachments: tuple[Attachment, ...] = ()
    edits: str = ""
    to_agent: bool = True


@frozen
class Outgoing:
    """One part of an answer to send.

    ``key`` is the same for repeated attempts, for platforms with idempotent sends. ``attempt``
    counts from 1. ``reply_to`` is the id of the message to answer.
    """

    key: str
    chat: Chat
    text: str
    reply_to: str = ""
    attempt: int = 1


@frozen
class Limits:
    """The limits of a channel.

    ``characters`` is the maximum message length as counted by the platform (in UTF-16 units if
    ``utf16``). ``seconds_between`` is the minimum pause between messages to a chat.
    ``typing_seconds`` is the duration of a typing indicator, or 0 if there is no indicator.
    ``is_idempotent`` is set if two sends with the same key appear once. ``always_replies`` is set
    if answers in direct chats quote their message too.
    """

    characters: int = 4_000
    utf16: bool = False
    seconds_between: float = 0.0
    typing_seconds: float = 0.0
    is_idempotent: bool = False
    always_replies: bool = False


@frozen
class Received:
    """A message, stored until it is answered.

    ``seq`` is the order of arrival. ``is_owner`` is set if the sender is an identity of the owner.
    """

    seq: int
    key: str
    message: Incoming
    received: datetime
    is_owner: bool = False


@frozen
class Part:
    """One part of an answer, stored until it is sent."""

    seq: int
    key: str
    outgoing: Outgoing
    created: datetime
    attempts: int = 0
    not_before: datetime | None = None


@frozen
class Answer:
    """A responder's answer: text, model, tokens, and cost in US dollars."""

    text: str
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    steps: tuple[str, ...] = field(default_factory=tuple)
    """Tool uses, one line each."""


# -- Conversations and access --------------------------------------------------


@frozen
class ChatSession:
    """One conversation with the agent, until a reset or a long silence.

    ``key`` identifies the other party: ``telegram:4711``, or
    ``agent:main:discord:<account>:group:<chat>``. ``messages`` counts both parties' messages,
    ``indexed`` the searchable messages. ``compactions`` counts compactions, also across resets.
    ``flushed`` is the compaction cycle in which memories were last stored, or -1. ``tokens`` counts
    tokens since the last compaction. ``cost`` is in US dollars.
    """

    id: str
    key: str
    chat: Chat
    name: str
    created: datetime
    updated: datetime
    messages: int = 0
    indexed: int = 0
    compactions: int = 0
    flushed: int = -1
    tokens: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    closed: datetime | None = None


@frozen
class Pairing:
    """A sender's request for access. ``approved`` is None until access is granted."""

    channel: str
    sender: str
    name: str
    code: str
    asked: datetime
    approved: datetime | None = None


@frozen
class ChannelTraffic:
    """A channel's work: messages to answer, parts to send, and the results of recent parts.

    ``doubled`` counts parts that were being sent when the gateway ended, and were sent again. The
    platform might show such parts twice.
    """

    channel: str
    waiting: int = 0
    sending: int = 0
    sent: int = 0
    failed: int = 0
    doubled: int = 0


@frozen
class Undelivered:
    """A part of an answer that was not sent, and the reason.

    ``failed`` parts will never be sent, unlike ``waiting`` parts.
    """

    channel: str
    key: str
    state: str
    problem: str
    created: datetime
    attempts: int
