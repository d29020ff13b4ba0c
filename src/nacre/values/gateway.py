"""What comes in through a channel, and what goes out."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class ChatType(StrEnum):
    """Whether one person writes to the agent, or a group hears it."""

    DIRECT = "direct"
    GROUP = "group"


@dataclass(frozen=True, slots=True)
class Chat:
    """Where a message was written, and where its answer goes.

    ``channel`` is the name that the owner gave the channel (``telegram``); ``id`` is the platform's own id of the chat;
    ``account`` tells workspaces or bots of one channel apart, ``thread`` the topic or thread within the chat.
    """

    channel: str
    id: str
    kind: ChatType = ChatType.DIRECT
    account: str = ""
    thread: str = ""


@dataclass(frozen=True, slots=True)
class Sender:
    """Who wrote a message: the platform's own id, which nobody can choose, and the name that is shown."""

    id: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that came with a message. ``source`` is what the channel needs to fetch it; ``size`` is in bytes."""

    name: str
    media_type: str = ""
    size: int | None = None
    source: str = ""


@dataclass(frozen=True, slots=True)
class Incoming:
    """One message, as a channel received it.

    ``id`` is the platform's own id: a message that comes twice with the same id in one channel is one message. An edit
    has an id of its own, and ``edits`` names the message whose text it replaces. ``to_agent`` says that the agent was
    mentioned or replied to; in direct chats it is always so.
    """

    id: str
    chat: Chat
    sender: Sender
    text: str
    sent: datetime | None = None
    attachments: tuple[Attachment, ...] = ()
    edits: str = ""
    to_agent: bool = True


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One part of an answer on its way. ``key`` is the same whenever this part is sent again: platforms that know
    idempotent sends are given it. ``attempt`` counts from 1; ``reply_to`` is the id of the message that is answered."""

    key: str
    chat: Chat
    text: str
    reply_to: str = ""
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class Limits:
    """What a channel can take. ``characters`` is the length of one message, counted as the platform counts
    (``utf16`` where it counts UTF-16 units); ``seconds_between`` is the least pause between two messages to one chat;
    ``typing_seconds`` is how long a typing indicator lasts, 0 where there is none; ``is_idempotent`` says that a part
    sent twice with one key appears once; ``always_replies`` that answers say what they answer in direct chats, too."""

    characters: int = 4_000
    utf16: bool = False
    seconds_between: float = 0.0
    typing_seconds: float = 0.0
    is_idempotent: bool = False
    always_replies: bool = False


@dataclass(frozen=True, slots=True)
class Received:
    """A message as it is kept until it is answered. ``seq`` is the order of arrival; ``is_owner`` says that the sender
    is one of the owner's identities."""

    seq: int
    key: str
    message: Incoming
    received: datetime
    is_owner: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """One part of an answer, as it is kept until it is sent."""

    seq: int
    key: str
    outgoing: Outgoing
    created: datetime
    attempts: int = 0
    not_before: datetime | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a responder answered: its words, who it was, and what it read, wrote and cost (US dollars)."""

    text: str
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    steps: tuple[str, ...] = field(default_factory=tuple)
    """What it did besides, where it may use tools: one line each."""


# ----------------------------------------------------------------------------
# Conversations, and who may write in them.


@dataclass(frozen=True, slots=True)
class ChatSession:
    """One conversation with the agent, from its beginning to a reset or a long silence.

    ``key`` names whom it is with: ``telegram:4711``, or ``agent:main:discord:<account>:group:<chat>``. ``messages``
    counts both sides; ``indexed`` is how many there were when it was last made searchable. ``compactions`` counts on
    over resets; ``flushed`` is the compaction cycle in which what was worth keeping was kept, -1 for none. ``tokens``
    are those of what was said since the last compaction; ``cost`` is in US dollars.
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


@dataclass(frozen=True, slots=True)
class Pairing:
    """A sender who asked to be let in (``approved`` is ``None``), or was."""

    channel: str
    sender: str
    name: str
    code: str
    asked: datetime
    approved: datetime | None = None


@dataclass(frozen=True, slots=True)
class ChannelTraffic:
    """What a channel has to do: messages to answer, parts to send, and what became of parts lately.

    ``doubled`` counts parts that were being sent when the gateway ended, and were sent again: the platform may show
    them twice.
    """

    channel: str
    waiting: int = 0
    sending: int = 0
    sent: int = 0
    failed: int = 0
    doubled: int = 0


@dataclass(frozen=True, slots=True)
class Undelivered:
    """A part of an answer that could not be sent so far (``waiting``), or never will be (``failed``), and why."""

    channel: str
    key: str
    state: str
    problem: str
    created: datetime
    attempts: int
