"""Values for the gateway: chat messages, conversations, and requests for access."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from nacre.base.frozen import frozen


class ChatType(StrEnum):
    """A chat with one person, or a group."""

    DIRECT = "direct"
    GROUP = "group"


@frozen
class Chat:
    """A chat in which the agent receives and answers messages.

    ``channel``: the user's name for the channel, such as ``telegram``.
    ``id``: the platform's id of the chat.
    ``account``: workspace or bot, if the channel has several.
    ``thread``: topic or thread within the chat.
    """

    channel: str
    id: str
    kind: ChatType = ChatType.DIRECT
    account: str = ""
    thread: str = ""


@frozen
class Sender:
    """The sender of a message, with the platform's id and a name to show."""

    id: str
    name: str = ""


@frozen
class Attachment:
    """A file attached to a message, which nacre does not download. ``size`` is in bytes."""

    name: str
    media_type: str = ""
    size: int | None = None


@frozen
class Incoming:
    """A message received through a channel.

    ``id``: the platform's id, which is unique in the channel.
    ``to_agent``: whether it mentions the agent, replies to it, or is in a direct chat.
    """

    id: str
    chat: Chat
    sender: Sender
    text: str
    sent: datetime | None = None
    attachments: tuple[Attachment, ...] = ()
    to_agent: bool = True


@frozen
class Outgoing:
    """One of the messages into which an answer is split.

    ``key``: stays the same if the message is sent again, so that platforms can ignore duplicates.
    ``attempt``: number of this attempt, starting at 1.
    ``reply_to``: id of the message that it answers.
    """

    key: str
    chat: Chat
    text: str
    reply_to: str = ""
    attempt: int = 1


@frozen
class Limits:
    """The limits and features of a channel.

    ``characters``: maximum length of a message, in UTF-16 units if ``utf16`` is True.
    ``seconds_between``: minimum pause between messages to one chat.
    ``typing_seconds``: how long a typing indicator stays visible, or 0.
    ``is_idempotent``: whether a message sent twice with the same key appears only once.
    """

    characters: int = 4_000
    utf16: bool = False
    seconds_between: float = 0.0
    typing_seconds: float = 0.0
    is_idempotent: bool = False


@frozen
class Received:
    """A received message, which is stored until it is answered.

    ``seq`` is its order of arrival. ``is_owner`` is True if nacre's user sent it.
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
    steps: tuple[str, ...] = ()
    """Descriptions of the agent's tool calls, one line each."""


# -- Conversations and access --------------------------------------------------


@frozen
class ChatSession:
    """A conversation with the agent, which ends at a reset or after a long silence.

    ``key``: the other person or group, such as ``telegram:4711`` or
        ``agent:main:discord:<account>:group:<chat>``.
    ``messages``: number of messages from both sides.
    ``indexed``: number of messages that searches can find.
    ``cost``: cost in US dollars.
    """

    id: str
    key: str
    chat: Chat
    name: str
    created: datetime
    updated: datetime
    messages: int = 0
    indexed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    closed: datetime | None = None


@frozen
class Pairing:
    """A sender's request to talk to the agent. ``approved`` is None until it is granted."""

    channel: str
    sender: str
    name: str
    code: str
    asked: datetime
    approved: datetime | None = None


@frozen
class ChannelTraffic:
    """Counts of the messages in a channel.

    ``waiting``: received messages that still need an answer.
    ``sending``, ``sent``, ``failed``: the agent's messages in each state.
    ``doubled``: messages that may appear twice because the gateway stopped while sending.
    """

    channel: str
    waiting: int = 0
    sending: int = 0
    sent: int = 0
    failed: int = 0
    doubled: int = 0


@frozen
class Undelivered:
    """A message from the agent that was not sent, and the reason.

    Only messages in state ``waiting`` will be tried again; ``failed`` is final.
    """

    channel: str
    key: str
    state: str
    problem: str
    created: datetime
    attempts: int
