"""Conversations, and who may write in them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from nacre.values.gateway.message import Chat


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
