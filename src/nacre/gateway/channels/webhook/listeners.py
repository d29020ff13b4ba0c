"""Who waits for answers at the moment: requests, and connections."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from nacre.values.gateway.message import Chat

TAKE_SECONDS = 10.0
"""Longest time a program may take to receive an answer."""

_MOST_WAITING = 50
"""Requests that wait at a time, of the 64 that the server answers."""


class Listener(Protocol):
    """A program that listens to a chat."""

    async def give(self, answer: Mapping[str, Any]) -> bool:
        """Whether it took the answer."""

    async def show(self, chat: Chat, what: Mapping[str, Any]) -> None:
        """Show how an answer comes along: ``typing``, or a ``piece`` of it."""


class Listeners:
    """Programs by the chats that they listen to."""

    def __init__(self) -> None:
        self._by_chat: dict[tuple[str, str], list[Listener]] = {}
        self._waiting = 0

    def add(self, chat: Chat, listener: Listener) -> None:
        """Let a program hear what is answered in a chat."""
        self._by_chat.setdefault((chat.id, chat.thread), []).append(listener)

    def remove(self, chat: Chat, listener: Listener) -> None:
        """Let a program hear no more of a chat."""
        heard = self._by_chat[chat.id, chat.thread]
        heard.remove(listener)
        if not heard:
            del self._by_chat[chat.id, chat.thread]

    async def give(self, chat: Chat, answer: Mapping[str, Any]) -> bool:
        """Whether any program took the answer."""
        return any(await asyncio.gather(*(one.give(answer) for one in self._of(chat))))

    async def show(self, chat: Chat, what: Mapping[str, Any]) -> None:
        """Show those who listen to a chat how an answer comes along."""
        await asyncio.gather(*(one.show(chat, what) for one in self._of(chat)))

    @contextmanager
    def waiting(self, chat: Chat, *, wanted: bool) -> Iterator[Waiter | None]:
        """A request that waits for an answer in a chat; none where that is not wanted, or too many wait."""
        if not wanted or self._waiting >= _MOST_WAITING:
            yield None
            return
        waiter = Waiter()
        self._waiting += 1
        self.add(chat, waiter)
        try:
            yield waiter
        finally:
            self._waiting -= 1
            self.remove(chat, waiter)

    def _of(self, chat: Chat) -> tuple[Listener, ...]:
        return tuple(self._by_chat.get((chat.id, chat.thread), ()))


class Waiter:
    """A request that waits for one answer."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.answer: asyncio.Future[Mapping[str, Any]] = loop.create_future()
        self._was_taken: asyncio.Future[bool] = loop.create_future()

    async def give(self, answer: Mapping[str, Any]) -> bool:
        """See Listener."""
        if self.answer.done():
            return False
        self.answer.set_result(answer)
        done, _ = await asyncio.wait({self._was_taken}, timeout=TAKE_SECONDS)
        return bool(done) and self._was_taken.result()

    async def show(self, chat: Chat, what: Mapping[str, Any]) -> None:
        """See Listener: a request shows nothing until it is answered."""

    def settle(self, *, was_taken: bool) -> None:
        """Say whether the answer was written to the program."""
        self._was_taken.set_result(was_taken)
