"""An inbox in memory, for tests of channels."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from nacre.values.gateway import Incoming


class MemoryInbox:
    """What a channel kept. ``messages`` are those that came, each once; ``kept`` is its state.

    ``before`` is awaited before anything is kept: a test blocks or fails it.
    """

    def __init__(self) -> None:
        self.messages: list[Incoming] = []
        self.kept: dict[str, str] = {}
        self.before: Callable[[], Awaitable[None]] | None = None
        self._ids: set[str] = set()
        self._changed = asyncio.Condition()

    def again(self) -> MemoryInbox:
        """The same inbox after a restart: in another event loop."""
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

    async def receive(self, messages: Sequence[Incoming], **state: str) -> int:
        if self.before is not None:
            await self.before()
        async with self._changed:
            fresh = [one for one in messages if one.id not in self._ids]
            self.messages += fresh
            self._ids |= {one.id for one in messages}
            self.kept |= state
            self._changed.notify_all()
        return len(fresh)

    async def wait_for(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition holds; it is looked at whenever something is kept."""
        async with self._changed:
            await self._changed.wait_for(condition)

    @property
    def texts(self) -> list[str]:
        """The texts of all messages."""
        return [message.text for message in self.messages]
