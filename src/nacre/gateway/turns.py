"""Turns: the messages that are answered together, from the database to the transcript and back."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from nacre.errors import ChannelRefused, ChannelUnavailable
from nacre.gateway.channel_options import ChannelOptions, Open
from nacre.gateway.channels.channel import Channel
from nacre.gateway.files import Cleans, keep_newest, redact
from nacre.gateway.prompt import Turn, tokens_of
from nacre.gateway.sessions import STARTS, Sessions, command_in
from nacre.gateway.splitting import split
from nacre.gateway.transcript import Recent, answer_line, failure_line, message_line
from nacre.platform import private_files
from nacre.settings import Settings
from nacre.storage.gateway import FOLDER, Kept, Line
from nacre.values.gateway.conversation import ChatSession
from nacre.values.gateway.message import Answer, Attachment, Chat, ChatType, Limits, Outgoing

_MOST_ATTEMPTS = 3
_MOST_FILE_BYTES = 20_000_000
_MEGABYTE = 1_000_000
_FILES_SECONDS = 120.0
"""For all files of a turn: meanwhile another conversation may wait."""

_NAME_BYTES = 120
"""Of a file's name: most systems allow 255, with what stands before it."""
_NEW = "A new conversation. I still remember what I learned."
_GREETING = "I am listening. /new begins a new conversation."


@dataclass(frozen=True, slots=True)
class Taken:
    """Messages that are being answered, and the session they belong to."""

    session: ChatSession
    turn: Turn
    numbers: tuple[int, ...]
    reply_to: str
    tokens: int
    messages: int
    is_owners: bool
    """Whether the owner alone wrote them, and reads the answer."""
    is_hopeless: bool = False
    """Whether the gateway ended too often while these were answered."""

    @property
    def chat(self) -> Chat:
        """Where the answer goes."""
        return self.turn.asked[-1].message.chat


class Turns:
    """Takes what waits, and records what was answered. It runs in the event loop."""

    def __init__(self, sessions: Sessions, settings: Settings, redactor: Cleans) -> None:
        self.sessions = sessions
        self._settings = settings
        self._redactor = redactor
        self._most_files = settings.whole("gateway.files_mb") * _MEGABYTE
        self._store = sessions.store
        self.ended: list[ChatSession] = []
        """Sessions that somebody ended by a command, and nobody has looked after yet."""

    async def take(self, key: str, one: Open) -> Taken | None:
        """What waits in a conversation; nothing where it was a command, which is answered at once."""
        kept = self._store.open_messages(key)
        asked = [message for message in kept if message.state != "heard"]
        if not asked:
            return None
        if command := command_in(asked[0].received.message.text):
            self._obey(key, command, asked[0])
            return None
        commands = (at for at, message in enumerate(asked) if command_in(message.received.message.text))
        asked = asked[: next(commands, len(asked))]
        last = asked[-1].received
        heard = [message for message in kept if message.state == "heard" and message.received.seq < last.seq]
        session = self._session(key, last.message.chat, last.message.sender.name or last.message.sender.id, one.options)
        lines = await self._write(session, sorted((*heard, *asked), key=lambda message: message.received.seq), one)
        recent = self.sessions.transcripts.recent(
            session.id, self._settings.whole("gateway.history") + len(heard) + len(asked)
        )
        taken = self._taken(session, asked, heard, _without(recent, lines), one)
        folder = self.sessions.transcripts.home / FOLDER
        files = [(name, folder / place) for said in recent.messages if said.id in lines for name, place in said.files]
        return replace(taken, turn=replace(taken.turn, files=files))

    def finish(
        self, taken: Taken, answer: Answer, limits: Limits, *, problem: str = "", is_silent: bool = False
    ) -> None:  # fmt: skip
        """Record an answer, whose parts wait to be sent then; ``problem`` where it is only an excuse."""
        now, one = self.sessions.clock(), self.sessions.new_id()
        texts = [] if is_silent else split(answer.text, limits)
        parts = [
            Outgoing(f"{one}:{at}", taken.chat, text, "" if at else taken.reply_to) for at, text in enumerate(texts)
        ]
        line = failure_line(one, problem, now) if problem else answer_line(one, taken.chat.channel, answer, now)
        self._store.finish(
            taken.session, taken.numbers, answer, parts, [line], now,
            tokens=taken.tokens + (0 if problem else tokens_of([answer.text])),
            messages=taken.messages + (0 if problem else 1),
        )  # fmt: skip
        self.sessions.transcripts.write_pending(self._store, taken.session.id)

    def _session(self, key: str, chat: Chat, name: str, options: ChannelOptions) -> ChatSession:
        shown = name if chat.kind is ChatType.DIRECT else f"group {chat.id}"
        return self.sessions.current(key, chat, shown, options.hours)

    def _obey(self, key: str, command: str, kept: Kept) -> None:
        """``/new``: the next message begins a new session. ``/start``: a greeting."""
        message = kept.received.message
        before = self._store.open_session(key)
        if command != STARTS and before:
            self.ended.append(before)
            self.sessions.reset(key)
        session = self._store.open_session(key) or self.sessions.begin(key, message.chat, message.sender.name, None)
        text = _GREETING if command == STARTS else _NEW
        part = Outgoing(self.sessions.new_id(), message.chat, text, message.id)
        self._store.finish(session, [kept.received.seq], Answer(""), [part], [], self.sessions.clock())
        self.sessions.transcripts.write_pending(self._store, session.id)

    async def _write(self, session: ChatSession, messages: Sequence[Kept], one: Open) -> set[str]:
        """Put messages into the transcript, unless they are there; the ids of all their lines."""
        taken: list[tuple[int, str]] = []
        lines: list[Line] = []
        until = asyncio.get_running_loop().time() + _FILES_SECONDS
        for message in messages:
            line = message.line
            if line is None:
                line = self.sessions.new_id()
                places = enumerate(self._files(message))
                files = [await self._file(session, f"{line}-{at}", file, one.channel, until) for at, file in places]
                lines.append(message_line(line, message.received, message.received.message.text, files))
            taken.append((message.received.seq, line))
        self._store.take(session.id, taken, lines)
        self.sessions.transcripts.write_pending(self._store, session.id)
        if any(self._files(message) for message in messages):
            await self._bound_files()
        return {line for _, line in taken}

    def _files(self, message: Kept) -> Sequence[Attachment]:
        return message.received.message.attachments if message.state != "heard" else ()

    async def _file(
        self, session: ChatSession, head: str, file: Attachment, channel: Channel, until: float
    ) -> Mapping[str, Any]:  # fmt: skip
        """What the transcript says of a file; it is fetched into the home, where it can be."""
        known = {"name": file.name, "mediaType": file.media_type or None, "size": file.size}
        if not self._most_files:
            return {**known, "problem": "no files are kept: gateway.files_mb is 0"}
        folder = self.sessions.transcripts.home / FOLDER / "files" / session.id
        target = folder / f"{head}-{_safe(file.name)}"
        try:
            private_files.make_folder(folder)
            async with asyncio.timeout_at(until):
                await channel.fetch(file, target, _MOST_FILE_BYTES)
            await asyncio.to_thread(redact, target, self._redactor)  # of a long one it takes a minute
        except (ChannelUnavailable, ChannelRefused, OSError) as error:
            return {**known, "problem": str(error) or "it took too long"}
        return {**known, "path": target.relative_to(self.sessions.transcripts.home / FOLDER).as_posix()}

    async def _bound_files(self) -> None:
        with suppress(OSError):  # the next files bring it about again
            await asyncio.to_thread(keep_newest, self.sessions.transcripts.home / FOLDER / "files", self._most_files)

    def _taken(
        self, session: ChatSession, asked: Sequence[Kept], heard: Sequence[Kept], recent: Recent,
        one: Open,
    ) -> Taken:  # fmt: skip
        last = asked[-1].received
        speakers = [one.received.is_owner for one in asked]
        texts = [one.received.message.text for one in (*heard, *asked)]
        turn = Turn(
            [one.received for one in asked], [one.received for one in heard], recent,
            one.options.sees_memories(last.message.chat, speakers),
        )  # fmt: skip
        replies = last.message.chat.kind is ChatType.GROUP or one.channel.limits.always_replies
        return Taken(
            session, turn, tuple(one.received.seq for one in asked), last.message.id if replies else "",
            tokens_of(texts), len(texts), all(speakers) and last.message.chat.kind is ChatType.DIRECT,
            max(one.attempts for one in asked) >= _MOST_ATTEMPTS,
        )  # fmt: skip


def _without(recent: Recent, lines: set[str]) -> Recent:
    return Recent([one for one in recent.messages if one.id not in lines], recent.summary)


def _safe(name: str) -> str:
    """A name of a file without folders, and without what shells and other systems trip over."""
    kept = "".join(one if one.isalnum() or one in "._-" else "_" for one in name.replace("\\", "/").rpartition("/")[2])
    return kept.strip(".").encode()[-_NAME_BYTES:].decode(errors="ignore") or "file"
