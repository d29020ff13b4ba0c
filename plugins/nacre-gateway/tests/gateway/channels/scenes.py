"""Helpers that run a channel against a fake platform."""

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
    """Run a scene within the time limit."""
    asyncio.run(asyncio.wait_for(scene, SECONDS))


def setup_of(
    kind: ChannelKind, folder: Path, secrets: dict[str, str], **options: Any
) -> ChannelSetup:
    """Return the setup of a channel of a kind. Its notices are appended to the option ``notices``."""
    values = {option.name: option.default for option in kind.options} | options
    return ChannelSetup(kind.name, values, secrets, options.setdefault("notices", []).append)


@asynccontextmanager
async def running(channel: Channel, inbox: MemoryInbox) -> AsyncIterator[asyncio.Task[None]]:
    """Let the channel receive until the block ends, as the gateway does. An error of the channel
    ends the task."""

    async def receive() -> None:
        while True:
            await channel.run(inbox)
            await asyncio.sleep(0.01)

    task = asyncio.create_task(receive())
    try:
        yield task
    finally:
        if not task.done():
            task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await channel.close()


async def until(server: FakePlatform, condition: Callable[[], object]) -> None:
    """Wait until a condition on the server holds."""
    await asyncio.to_thread(server.wait_for, condition)


async def check_retries(
    channel: Channel, server: FakePlatform, message: Outgoing, seconds: float | None
) -> None:
    """Check three sends: a refused one names its retry time, a cut one may be retried, the last
    arrives."""
    with pytest.raises(ChannelUnavailableError) as later:
        await channel.send(message)
    assert later.value.retry_after == seconds
    server.fail_next(is_cut=True)
    with pytest.raises(ChannelUnavailableError):
        await channel.send(message)
    await channel.send(message)
    await channel.close()
