"""Values for chat messages, conversations, and requests for access in the gateway."""

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
    """A chat in which messages are received and answered.

    ``channel``: the user's name for the channel, such as ``telegram``. ``id``: the platform's chat
    id. ``account``: the workspace or bot, if a channel has several. ``thread``: the topic or thread
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
    """A file in a message. ``source`` is the channel's reference for downloading it.

    ``size`` is in bytes.
    """

    name: str
    media_type: str = ""
    size: int | None = None
    source: str = ""


@frozen
class Incoming:
    """A message received through a channel.

    ``id``: the platform's id, which is unique in the channel. ``edits``: id of the message that
    this message changes. ``to_agent``: True if the agent was mentioned or replied to, or if the
    chat is direct.
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

    ``key`` stays the same if the part is sent again, so that the platform can ignore duplicates.
    ``attempt`` counts from 1. ``reply_to`` is the id of the message to answer.
    """

    key: str
    chat: Chat
    text: str
    reply_to: str = ""
    attempt: int = 1


@frozen
class Limits:
    """The limits and features of a channel.

    ``characters``: maximum length of a message (in UTF-16 units if ``utf16``). ``seconds_between``:
    minimum pause between messages to a chat. ``typing_seconds``: time for which a typing indicator
    stays visible, or 0. ``is_idempotent``: True if a message sent twice with the same key appears
    only once. ``always_replies``: True if answers quote the user's message even in direct chats.
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

    ``seq`` is the order of arrival. ``is_owner`` is set if nacre's user sent it.
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
    """The answer to a message: text, model, tokens, and cost in US dollars."""

    text: str
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    steps: tuple[str, ...] = field(default_factory=tuple)
    """Descriptions of the agent's tool calls, one line each."""


# -- Conversations and access --------------------------------------------------


@frozen
class ChatSession:
    """One conversation with the agent, until a reset or a long silence.

    ``key``: identifier of the other person or group, such as ``telegram:4711`` or
    ``agent:main:discord:<account>:group:<chat>``. ``messages``: number of messages from both sides.
    ``indexed``: number of messages that can be searched. ``compactions``: number of compactions,
    including those before a reset. ``flushed``: value of ``compactions`` when memories were last
    stored, or -1. ``tokens``: number of tokens since the last compaction. ``cost``: cost in US
    dollars.
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
    """A sender's request for access. ``approved`` is None until the request is granted."""

    channel: str
    sender: str
    name: str
    code: str
    asked: datetime
    approved: datetime | None = None


@frozen
class ChannelTraffic:
    """Counts of messages in a channel.

    ``waiting``: messages that need an answer. ``sending``, ``sent``, ``failed``: answer parts in
    this state. ``doubled``: parts that were sent again because the gateway ended while sending. The
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
    """A part of an answer that was not sent, and the problem.

    nacre still tries to send parts with state ``waiting``, but not parts with state ``failed``.
    """

    channel: str
    key: str
    state: str
    problem: str
    created: datetime
    attempts: int
