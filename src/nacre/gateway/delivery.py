"""Send answers: the parts of a conversation in their order, until the platform takes them or never will."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from nacre.errors import ChannelRefused, ChannelUnavailable, NacreError
from nacre.gateway.channels.channel import Channel
from nacre.platform.ids import Clock
from nacre.storage.gateway import GatewayStore
from nacre.values.gateway.message import Part

SEND_SECONDS = 60.0
GIVE_UP = timedelta(hours=24)
"""A part that could not be sent for so long is given up."""

_LEAST_PAUSE, _MOST_PAUSE = 1.0, 600.0
_AT_ONCE = 8
"""Conversations of a channel to which is sent at a time."""

_MOST_FAULTS = 5


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What came of one try: ``sent`` is the platform's id, ``problem`` why it was not; ``final``: do not try again."""

    sent: str = ""
    problem: str = ""
    after: float = 0.0
    final: bool = False


class Delivery:
    """Sends what waits, one task a conversation."""

    def __init__(
        self, store: GatewayStore, channels: Mapping[str, Channel], clock: Clock, tell: Callable[[str], None]
    ) -> None:  # fmt: skip
        self._store = store
        self._channels = channels
        self._clock = clock
        self._tell = tell
        self._room = {name: asyncio.Semaphore(_AT_ONCE) for name in channels}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._sent_at: dict[str, float] = {}

    def send(self, key: str, channel: str) -> None:
        """Something waits to be sent in a conversation."""
        if channel in self._channels and key not in self._tasks:
            self._tasks[key] = asyncio.create_task(self._deliver(key, channel), name=f"sending {key}")

    async def stop(self, seconds: float) -> None:
        """Finish what is being sent, for so long; the rest stays for the next time."""
        tasks = list(self._tasks.values())
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _deliver(self, key: str, channel: str) -> None:
        try:
            while part := self._store.next_part(key):
                await self._wait_until(part.not_before)
                async with self._room[channel]:
                    await self._pace(key, channel)
                    self._note(part, await self._try(part, channel))
        except NacreError as error:  # the disk is full, say: what waits is sent by and by
            self._tell(f"{key}: {error.message}")
        finally:
            del self._tasks[key]
            self._sent_at.pop(key, None)

    async def _try(self, part: Part, name: str) -> _Outcome:
        channel = self._channels[name]
        self._store.begin_part(part.seq, is_idempotent=channel.limits.is_idempotent)
        try:
            outgoing = replace(part.outgoing, attempt=part.attempts + 1)
            return _Outcome(sent=await asyncio.wait_for(channel.send(outgoing), SEND_SECONDS))
        except ChannelUnavailable as error:
            return _Outcome(problem=error.message, after=error.retry_after or 0.0)
        except TimeoutError:
            return _Outcome(problem=f"no answer within {SEND_SECONDS:.0f} s")
        except ChannelRefused as error:
            return _Outcome(problem=error.message, final=True)
        except Exception as error:  # noqa: BLE001 - a channel may be a third party's
            self._tell("".join(traceback.format_exception(error)).rstrip())
            return _Outcome(problem=f"{type(error).__name__}", final=part.attempts + 1 >= _MOST_FAULTS)

    def _note(self, part: Part, outcome: _Outcome) -> None:
        if not outcome.problem:
            self._store.finish_part(part.seq, outcome.sent)
            return
        now = self._clock()
        if outcome.final or now - part.created > GIVE_UP:
            self._tell(f"{part.outgoing.chat.channel}: a message was given up: {outcome.problem}")
            self._store.finish_part(part.seq, None, outcome.problem)
            return
        pause = outcome.after or min(_LEAST_PAUSE * 2**part.attempts, _MOST_PAUSE)
        self._store.delay_part(part.seq, now + timedelta(seconds=pause), outcome.problem)

    async def _wait_until(self, moment: datetime | None) -> None:
        while moment and (left := (moment - self._clock()).total_seconds()) > 0:
            await asyncio.sleep(min(left, _MOST_PAUSE))

    async def _pace(self, key: str, channel: str) -> None:
        """Leave the pause between two messages to one chat that the platform asks for."""
        loop = asyncio.get_running_loop()
        pause = self._sent_at.get(key, 0.0) + self._channels[channel].limits.seconds_between - loop.time()
        if pause > 0:
            await asyncio.sleep(pause)
        self._sent_at[key] = loop.time()
