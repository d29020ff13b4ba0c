"""Requests about the gateway: its state, its conversations, who may write."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from nacre.platform.request import Request

ChannelName = Annotated[str, Meta(description="A channel, by its name in gateway.channels.", max_length=60)]
Reference = Annotated[
    str, Meta(description="A conversation: its id, the beginning of it, or its key.", min_length=1, max_length=300)
]


class ChatsRequest(Request, frozen=True, kw_only=True):
    """Conversations of the gateway, the one that was used last first."""

    channel: ChannelName | None = None
    closed: Annotated[bool, Meta(description="Also those that ended.")] = False
    limit: Annotated[int, Meta(description="Conversations at most.", ge=0, le=1_000)] = 20
    offset: Annotated[int, Meta(description="Items to skip.", ge=0)] = 0


class ChatRequest(Request, frozen=True, kw_only=True):
    """One conversation, with its last messages."""

    reference: Reference
    limit: Annotated[int, Meta(description="Messages at most.", ge=0, le=1_000)] = 20


class EndChatRequest(Request, frozen=True, kw_only=True):
    """End a conversation: the next message begins a new one."""

    reference: Reference


class PairRequest(Request, frozen=True, kw_only=True):
    """Let a sender write to the agent, by the code that they were given, or by channel and id."""

    who: Annotated[str, Meta(description="The code, or <channel>:<id> of a sender.", min_length=3, max_length=300)]
    me: Annotated[bool, Meta(description="It is you: what is said there counts as your own words.")] = False


class UnpairRequest(Request, frozen=True, kw_only=True):
    """Let a sender write no more."""

    who: Annotated[str, Meta(description="<channel>:<id> of a sender.", min_length=3, max_length=300)]
