"""Scenes with a channel that runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from nacre.errors import ChannelUnavailableError
from nacre.values.gateway import Outgoing
from nacre_gateway.channels import Channel, ChannelKind, ChannelSetup
from tests.fakes.memory_inbox import MemoryInbox
from tests.fakes.platform import FakePlatform

SECONDS = 60.0


def play(scene: Coroutine[Any, Any, None]) -> None:
    """Run a scene, for so long at most."""
    asyncio.run(asyncio.wait_for(scene, SECONDS))


def setup_of(
    kind: ChannelKind, folder: Path, secrets: dict[str, str], **options: Any
) -> ChannelSetup:
    """What a channel of a kind is made from; what it tells is in the list ``told`` of the options."""
    values = {option.name: option.default for option in kind.options} | options
    return ChannelSetup(kind.name, values, secrets, folder, options.setdefault("told", []).append)


@asynccontextmanager
async def running(channel: Channel, inbox: MemoryInbox) -> AsyncIterator[asyncio.Task[None]]:
    """The channel receives until the block ends, which raises what the channel raised."""
    task = asyncio.create_task(channel.run(inbox))
    try:
        yield task
    finally:
        if not task.done():
            task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await channel.close()


async def until(server: FakePlatform, condition: Callable[[], object]) -> None:
    """Wait until a condition of the server's holds."""
    await asyncio.to_thread(server.wait_for, condition)


async def is_told_when(
    channel: Channel, server: FakePlatform, message: Outgoing, seconds: float | None
) -> None:
    """A send that is refused says when it may be tried again, one that is cut may be at once; the third arrives."""
    with pytest.raises(ChannelUnavailableError) as later:
        await channel.send(message)
    assert later.value.retry_after == seconds
    server.fail_next(is_cut=True)
    with pytest.raises(ChannelUnavailableError):
        await channel.send(message)
    await channel.send(message)
    await channel.close()
