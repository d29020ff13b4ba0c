"""After an answer: make conversations searchable, and sum up long ones. It holds nobody up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from nacre.errors import NacreError
from nacre.gateway.answering import Answering
from nacre.gateway.channel_options import ChannelOptions
from nacre.gateway.compaction import KEPT_MESSAGES
from nacre.gateway.prompt import tokens_of
from nacre.gateway.sessions import Sessions
from nacre.gateway.transcript import Recent, compaction_line
from nacre.values.gateway.conversation import ChatSession

_MOST_SUMMED = 2_000
"""Messages of a conversation that are summed up at a time."""


class Keeping:
    """Runs in the event loop; what takes long runs in a thread, one conversation after another."""

    def __init__(
        self, sessions: Sessions, answering: Answering, tell: Callable[[str], None], *, index_every: int
    ) -> None:
        self._sessions = sessions
        self._store = sessions.store
        self._answering = answering
        self._tell = tell
        self._index_every = index_every
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="keeping")
        self._tasks: set[asyncio.Task[None]] = set()
        self._busy: set[str] = set()

    def look(self, key: str, options: ChannelOptions) -> None:
        """A conversation grew."""
        session = self._store.open_session(key)
        if session is None or session.id in self._busy:
            return
        if session.messages - session.indexed >= self._index_every:
            self._start(session, self._keep(session, options))

    def close_stale(self, channel: str, options: ChannelOptions) -> None:
        """Close conversations of a channel that went silent; what they teach is learned by the usual ingest."""
        self.index(self._sessions.close_stale(channel, options.hours))

    def index(self, ended: Iterable[ChatSession]) -> None:
        """Make conversations searchable that ended."""
        for session in ended:
            if session.messages > session.indexed:
                self._start(session, self._index(session))

    async def stop(self, seconds: float) -> None:
        """Finish what is being done, for so long."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)
        for task in self._tasks:
            task.cancel()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _start(self, session: ChatSession, work: Coroutine[Any, Any, None]) -> None:
        self._busy.add(session.id)
        task = asyncio.create_task(self._guarded(session, work), name=f"keeping {session.key}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _guarded(self, session: ChatSession, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except (NacreError, OSError) as error:  # the next messages bring it about again
            self._tell(f"{session.key}: not made searchable: {error}")
        finally:
            self._busy.discard(session.id)

    async def _keep(self, session: ChatSession, options: ChannelOptions) -> None:
        await self._index(session)
        loop = asyncio.get_running_loop()
        if await loop.run_in_executor(self._pool, self._answering.needs_compaction, session, options):
            await self._compact(session, options)

    async def _index(self, session: ChatSession) -> None:
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._pool, self._answering.index, session)
        self._store.note_indexed(session.id, session.messages)

    async def _compact(self, session: ChatSession, options: ChannelOptions) -> None:
        """Keep what it teaches, once a cycle, then sum up all but the last messages."""
        recent = self._sessions.transcripts.recent(session.id, _MOST_SUMMED)
        old, kept = recent.messages[:-KEPT_MESSAGES], recent.messages[-KEPT_MESSAGES:]
        if not old:
            return
        loop = asyncio.get_running_loop()
        to_sum_up = replace(recent, messages=old)
        summary, by = await loop.run_in_executor(self._pool, self._answering.compact, session, options, to_sum_up)
        self._store.note_flushed(session.id)
        now, one = self._sessions.clock(), self._sessions.new_id()
        line = compaction_line(one, summary, len(old), kept[0].id, by, now)
        left = Recent(kept, summary)
        self._store.note_compaction(session.id, tokens_of([summary, *(said.text for said in left.messages)]), line)
        self._sessions.transcripts.write_pending(self._store, session.id)
