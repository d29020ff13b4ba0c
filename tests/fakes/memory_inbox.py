"""An inbox in memory, for tests of channels."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from nacre.values.gateway import Incoming


class MemoryInbox:
    """The inbox of a channel. ``messages`` are the received ones, without duplicates; ``kept`` is the channel's state.

    ``before`` is awaited before anything is stored: a test can block or fail it.
    """

    def __init__(self) -> None:
        self.messages: list[Incoming] = []
        self.kept: dict[str, str] = {}
        self.before: Callable[[], Awaitable[None]] | None = None
        self._ids: set[str] = set()
        self._changed = asyncio.Condition()

    def again(self) -> MemoryInbox:
        """Return the same inbox after a restart, for another event loop."""
        inbox = MemoryInbox()
        inbox.messages, inbox.kept, inbox.before, inbox._ids = (
            self.messages,
            self.kept,
            self.before,
            self._ids,
        )
        return inbox

    def state(self, name: str) -> str:
        return self.kept.get(name, "")

    async def receive(self, messages: Sequence[Incoming], **state: str) -> None:
        if self.before is not None:
            await self.before()
        async with self._changed:
            fresh = [message for message in messages if message.id not in self._ids]
            self.messages += fresh
            self._ids |= {message.id for message in messages}
            self.kept |= state
            self._changed.notify_all()

    async def wait_for(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition holds; it is checked after each change."""
        async with self._changed:
            await self._changed.wait_for(condition)

    @property
    def texts(self) -> list[str]:
        """Return the texts of all messages."""
        return [message.text for message in self.messages]
