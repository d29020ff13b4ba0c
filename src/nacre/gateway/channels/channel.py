"""What a channel is, and what it is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from nacre.values.gateway.message import Attachment, Chat, Incoming, Limits, Outgoing

if TYPE_CHECKING:
    from starlette.routing import BaseRoute


class Inbox(Protocol):
    """Where a channel puts what it received. All of it runs in the gateway's event loop."""

    def state(self, name: str) -> str:
        """What the channel kept under a name (an offset, a session to resume); empty where it kept nothing."""

    async def receive(self, messages: Sequence[Incoming], **state: str) -> int:
        """Keep messages, and what the channel wants to remember, in one transaction: on disk when this returns.

        Only then may a channel confirm them to its platform. Messages that came before are left out: it returns how
        many are new. It waits while too many messages wait to be answered.
        """


class Channel(Protocol):
    """One connection to a platform, for one account of the owner's.

    A channel converts; it decides nothing: who may write, what is answered, and how often a send is tried again is the
    gateway's.
    """

    limits: Limits

    async def run(self, inbox: Inbox) -> None:
        """Receive until cancelled. It reconnects by itself after short disturbances, as its platform documents.

        Raises ChannelUnavailable where it cannot go on for now (the gateway runs it again later, ever more seldom) and
        ChannelRefused where trying again does not help, as with a wrong token.
        """

    async def send(self, outgoing: Outgoing) -> str:
        """Send one part; the platform's id of the message. The text is within ``limits``.

        Raises ChannelUnavailable (with ``retry_after`` where the platform says so) where it may be tried again,
        ChannelRefused where this message can never be delivered.
        """

    async def show_typing(self, chat: Chat) -> None:
        """Show that an answer is being written, for ``limits.typing_seconds``. What fails is passed over."""

    async def fetch(self, attachment: Attachment, target: Path, most_bytes: int) -> None:
        """Write the file to a path in a folder of the gateway's. Raises ChannelUnavailable, ChannelRefused."""

    async def close(self) -> None:
        """Let go of connections."""


@runtime_checkable
class ServesHttp(Protocol):
    """A channel that a platform calls: its routes are served by the gateway's own listener (``gateway.listen``)."""

    def routes(self) -> Sequence[BaseRoute]:
        """Routes below ``/<name of the channel>``. They check signatures before anything else is read."""


@runtime_checkable
class ShowsPieces(Protocol):
    """A channel that shows an answer while it is made. What it shows is not the answer: that is sent in the end."""

    async def show_piece(self, chat: Chat, piece: str) -> None:
        """Show a piece more, in the order in which they come. What fails is passed over."""


@dataclass(frozen=True, slots=True)
class ChannelSetup:
    """What a channel is made from: its name, the values of its options, and the secrets that they name, resolved.

    ``folder`` is a private folder of its own in the home. ``tell`` writes a line to the gateway's log.
    """

    name: str
    options: Mapping[str, Any]
    secrets: Mapping[str, str] = field(repr=False)
    folder: Path
    tell: Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a kind of channel, in ``gateway.channels.<name>``."""

    name: str
    summary: str
    default: Any = None
    is_secret: bool = False
    is_required: bool = False


@dataclass(frozen=True, slots=True)
class ChannelKind:
    """A kind of channel. Third parties register theirs in the entry-point group ``nacre.channels``.

    ``libraries`` are importable names that it needs, ``extra`` the extra of nacre that brings them. ``secrets`` of
    ``options`` are written as ``env:NAME`` or ``file:PATH``. ``identity`` is the form of a sender's id for people.
    """

    name: str
    label: str
    make: Callable[[ChannelSetup], Channel]
    options: tuple[Option, ...] = ()
    libraries: tuple[str, ...] = ()
    extra: str = ""
    identity: str = ""
