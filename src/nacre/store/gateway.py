"""What the gateway keeps: messages until they are answered, answers until they are sent, sessions, who may write.

A database of its own, ``gateway/gateway.db`` in the home: receiving a message never waits for whoever writes memories.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from nacre.base import files, json
from nacre.base.ids import at_ms, from_ms, to_ms
from nacre.errors import NacreError, Unavailable
from nacre.store.schema import Row, in_transaction
from nacre.store.sqlite import FileDatabase, open_database
from nacre.values.gateway import (
    Answer,
    ChannelTraffic,
    Chat,
    ChatSession,
    Incoming,
    Outgoing,
    Pairing,
    Part,
    Received,
    Undelivered,
)

FOLDER = "gateway"
DATABASE = f"{FOLDER}/gateway.db"
"""In the home."""

TRANSCRIPTS_LOCK = "transcripts.lock"
"""In that folder; held by whoever writes to transcripts of conversations."""

PROBLEM = "gateway.problem"
"""What the gateway itself keeps of a channel."""

_MICRO = 1_000_000
_MOST_AT_ONCE = 200
"""So many messages are one turn at most; the rest is the next one."""

_READERS_PATIENCE_MS = 100


@dataclass(frozen=True, slots=True)
class Kept:
    """A message with its state: ``heard``, ``waiting`` or ``taken``; ``line`` is its id in the transcript."""

    received: Received
    state: str
    line: str | None
    attempts: int


@dataclass(frozen=True, slots=True)
class Known:
    """A message that came, in whatever state; its text is there until it is answered."""

    seq: int
    key: str
    sender: str
    state: str
    line: str | None
    message: Incoming | None


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a transcript, before it is in the file."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class SessionState:
    """How far a session is; ``is_pending`` says that lines of it are not in its transcript yet."""

    id: str
    key: str
    channel: str
    messages: int
    compactions: int
    is_closed: bool
    is_pending: bool


@dataclass(frozen=True, slots=True)
class OpenState:
    """How many messages of a conversation wait, and how many are being answered."""

    key: str
    channel: str
    waiting: int
    taken: int


class GatewayStore:
    """Reads and writes the gateway's database. One thread a store."""

    def __init__(self, database: FileDatabase) -> None:
        self._db = database

    @classmethod
    def open(cls, home: Path) -> Self:
        """That of a home, made where there is none. Raises StoreUnusable, StoreBusy, SchemaTooNew."""
        files.make_folder(home / FOLDER)
        return cls(open_database(home / DATABASE, migrations=FOLDER))

    @classmethod
    def empty(cls) -> Self:
        """One in memory, in place of that of a home that never had a gateway."""
        return cls(FileDatabase(Path(":memory:"), migrations=FOLDER))

    @classmethod
    def open_to_read(cls, home: Path) -> Self | None:
        """That of a home, only to be read; ``None`` where there is none, or where it cannot be read."""
        path = home / DATABASE
        if not path.is_file():
            return None
        only_read = Unavailable(
            "the gateway's database is only read here", hint="this is a mistake of nacre's"
        )
        try:
            return cls(
                FileDatabase(
                    path, unwritable=only_read, patience_ms=_READERS_PATIENCE_MS, migrations=FOLDER
                )
            )
        except NacreError:
            return None

    def is_in_place(self) -> bool:
        """Whether the file is still the one that was opened."""
        return self._db.is_in_place()

    def close(self) -> None:
        """Close the database."""
        self._db.close()

    def edition(self) -> object:
        """A value that is another one when another process has written."""
        return self._db.edition()

    # What comes in

    def channel_value(self, channel: str, name: str) -> str:
        """What a channel kept under a name; empty where it kept nothing."""
        found = self._db.one("channel_value", channel=channel, field=name)
        return str(found[0]) if found else ""

    def note_problem(self, channel: str, problem: str) -> None:
        """Why a channel cannot work just now; empty where it can."""
        self._db.run("keep_channel_value", channel=channel, field=PROBLEM, value=problem)

    @in_transaction
    def receive(
        self, channel: str, messages: Iterable[tuple[Received, str]], state: Mapping[str, str]
    ) -> list[tuple[Received, str]]:
        """Keep messages, each with its state, and what the channel remembers; those that are new."""
        new = []
        for one, becomes in messages:
            if self._db.run(
                "insert_inbound",
                channel=channel,
                id=one.message.id,
                key=one.key,
                sender=one.message.sender.id,
                message="" if becomes == "done" else _text(one.message),
                is_owner=one.is_owner,
                received=to_ms(one.received),
                state=becomes,
            ):
                new.append((one, becomes))
        for name, value in state.items():
            self._db.run("keep_channel_value", channel=channel, field=name, value=value)
        return new

    @in_transaction
    def trim_heard(self, key: str, entries: int, keys: int) -> None:
        """Of what is only heard, keep so many messages of a conversation, and so many conversations."""
        self._db.run("trim_heard", key=key, keep=entries)
        self._db.run("trim_heard_keys", keep=keys)

    def find(self, channel: str, message: str) -> Known | None:
        """A message that came, by its platform's id."""
        row = self._db.one("find_inbound", channel=channel, id=message)
        if row is None:
            return None
        seq, key, sender, text, state, line = row
        return Known(seq, key, sender, state, line, _message(text) if text else None)

    def replace_text(self, seq: int, message: Incoming) -> None:
        """A message that waits was edited."""
        self._db.run("set_inbound_message", seq=seq, message=_text(message))

    def open_messages(self, key: str) -> list[Kept]:
        """What is not answered yet in a conversation, and what was heard since the last answer, in their order."""
        rows = self._db.all("list_open_inbound", key=key, limit=_MOST_AT_ONCE)
        return [
            Kept(
                Received(seq, key, _message(text), at_ms(received), bool(is_owner)),
                state,
                line,
                attempts,
            )
            for seq, text, is_owner, received, state, line, attempts in rows
        ]

    def waiting_keys(self) -> list[tuple[str, str]]:
        """Conversations in which something waits to be answered, each with its channel."""
        return [(key, channel) for key, channel in self._db.all("list_waiting_keys")]

    def waiting(self, channel: str) -> int:
        """How many messages of a channel wait to be answered."""
        return int((self._db.one("count_waiting_inbound", channel=channel) or (0,))[0])

    def last_waiting(self, key: str) -> tuple[datetime | None, int]:
        """When the last message came that waits in a conversation, and how many do."""
        moment, count = self._db.one("last_waiting", key=key) or (None, 0)
        return from_ms(moment), count

    def is_taken(self, key: str) -> bool:
        """Whether messages of a conversation were being answered when the gateway ended."""
        return self._db.one("is_taken_inbound", key=key) is not None

    # Turns

    @in_transaction
    def take(
        self, session: str, taken: Sequence[tuple[int, str | None]], lines: Sequence[Line]
    ) -> None:
        """Messages are being answered: their numbers, and the ids of their lines."""
        for seq, line in taken:
            self._db.run("take_inbound", seq=seq, line=line)
        self._add_lines(session, lines)

    def release(self) -> None:
        """The gateway ends in good order: what is being answered now was no failed attempt."""
        self._db.run("release_inbound")

    @in_transaction
    def finish(
        self,
        session: ChatSession,
        taken: Sequence[int],
        answer: Answer,
        parts: Sequence[Outgoing],
        lines: Sequence[Line],
        at: datetime,
        *,
        tokens: int = 0,
        messages: int = 0,
    ) -> None:
        """A turn is answered: its parts wait to be sent. ``tokens`` and ``messages`` are what the turn added.

        Where what was asked was forgotten meanwhile, nothing is kept of the answer but what it cost.
        """
        if any(self._db.one("is_done_inbound", seq=seq) for seq in taken):
            parts, lines, tokens, messages = (), (), 0, 0
        for seq in taken:
            self._db.run("finish_inbound", seq=seq)
        for part in parts:
            self.add_part(session.key, part, at)
        self._add_lines(session.id, lines)
        self._db.run(
            "count_in_chat_session",
            id=session.id,
            at=to_ms(at),
            messages=messages,
            tokens=tokens,
            input=answer.input_tokens,
            output=answer.output_tokens,
            cost=round(answer.cost * _MICRO),
        )

    # Lines of transcripts

    @in_transaction
    def add_lines(self, session: str, lines: Sequence[Line]) -> None:
        """Lines that wait to be written to a transcript."""
        self._add_lines(session, lines)

    def pending_lines(self, session: str) -> list[tuple[int, Line]]:
        """Lines of a transcript that are not in its file yet, with their numbers."""
        return [
            (seq, Line(one, text))
            for seq, one, text in self._db.all("list_pending_lines", session=session)
        ]

    def pending_sessions(self) -> list[str]:
        """Sessions with such lines."""
        return [one for (one,) in self._db.all("list_pending_sessions")]

    def drop_lines(self, session: str, seq: int) -> None:
        """Lines up to that number are in the file."""
        self._db.run("drop_pending_lines", session=session, seq=seq)

    def _add_lines(self, session: str, lines: Sequence[Line]) -> None:
        for one in lines:
            self._db.run("insert_pending_line", session=session, id=one.id, line=one.text)

    # Sessions

    def open_session(self, key: str) -> ChatSession | None:
        """The session of a key that goes on."""
        row = self._db.one("open_chat_session", key=key)
        return _session(row) if row else None

    def session_of(self, key: str, line: str) -> ChatSession | None:
        """The session of a key in whose transcript a line is."""
        row = self._db.one("chat_session_of_line", key=key, line=line)
        return _session(row) if row else None

    def find_sessions(self, reference: str) -> list[ChatSession]:
        """Sessions by id, the beginning of it, or key; at most three."""
        return [_session(row) for row in self._db.all("find_chat_session", reference=reference)]

    def sessions(
        self, channel: str | None, *, closed: bool, limit: int, offset: int = 0
    ) -> list[ChatSession]:
        """Sessions, the one that was used last first."""
        wanted = {"channel": channel, "closed": closed, "limit": limit, "offset": offset}
        return [_session(row) for row in self._db.all("list_chat_sessions", **wanted)]

    def stale_sessions(self, channel: str, before: datetime, limit: int = 100) -> list[ChatSession]:
        """Sessions of a channel that go on, and that nobody used since a time."""
        rows = self._db.all(
            "list_stale_chat_sessions", channel=channel, before=to_ms(before), limit=limit
        )
        return [_session(row) for row in rows]

    @in_transaction
    def begin_session(self, session: ChatSession, line: Line) -> None:
        """A session begins, with the first line of its transcript."""
        row = {
            "id": session.id,
            "key": session.key,
            "channel": session.chat.channel,
            "chat": _text(session.chat),
            "name": session.name,
            "created": to_ms(session.created),
            "updated": to_ms(session.updated),
            "compactions": session.compactions,
        }
        self._db.insert("chat_sessions", row, "id")
        self._add_lines(session.id, [line])

    def close_session(self, session: str, at: datetime) -> bool:
        """A session does not go on; returns whether it did until now."""
        return bool(self._db.run("close_chat_session", id=session, at=to_ms(at)))

    def note_indexed(self, session: str, messages: int) -> None:
        """A session was made searchable, up to so many messages."""
        self._db.run("note_chat_indexed", id=session, messages=messages)

    def note_flushed(self, session: str) -> None:
        """What was worth keeping in this compaction cycle was kept."""
        self._db.run("note_chat_flushed", id=session)

    @in_transaction
    def note_compaction(self, session: str, tokens: int, line: Line) -> None:
        """The beginning of a session is summed up; ``tokens`` are those of what is left and of the summary."""
        self._db.run("note_chat_compacted", id=session, tokens=tokens)
        self._add_lines(session, [line])

    def recent_states(self, most: int) -> list[SessionState]:
        """How far the sessions are that were used last."""
        return [SessionState(*row) for row in self._db.all("list_recent_chat_states", most=most)]

    def open_states(self) -> list[OpenState]:
        """Conversations in which something waits or is being answered."""
        return [OpenState(*row) for row in self._db.all("list_open_chat_states")]

    # What goes out

    def add_part(self, key: str, part: Outgoing, at: datetime) -> None:
        """A part waits to be sent; one with a key that is known is not added again."""
        self._db.run(
            "insert_outbound",
            id=part.key,
            key=key,
            channel=part.chat.channel,
            message=_text(part),
            created=to_ms(at),
        )

    def sending_keys(self) -> list[tuple[str, str]]:
        """Conversations with parts to send, each with its channel."""
        return [(key, channel) for key, channel in self._db.all("list_outbound_keys")]

    def next_part(self, key: str) -> Part | None:
        """The first part of a conversation that is not sent."""
        row = self._db.one("next_outbound", key=key)
        if row is None:
            return None
        seq, text, attempts, not_before, created = row
        outgoing = json.decode(text.encode(), Outgoing)
        return Part(seq, key, outgoing, at_ms(created), attempts, from_ms(not_before or None))

    def begin_part(self, seq: int, *, is_idempotent: bool) -> None:
        """It is being sent; where it was before and the gateway ended meanwhile, it may come twice."""
        self._db.run("begin_outbound", seq=seq, counts=not is_idempotent)

    def delay_part(self, seq: int, until: datetime, problem: str) -> None:
        """The platform did not take it."""
        self._db.run("delay_outbound", seq=seq, not_before=to_ms(until), problem=problem)

    def finish_part(self, seq: int, sent: str | None, problem: str | None = None) -> None:
        """It is sent, under the platform's id, or never will be."""
        self._db.run(
            "finish_outbound",
            seq=seq,
            state="failed" if problem else "sent",
            sent=sent,
            problem=problem,
        )

    @in_transaction
    def prune(self, before: datetime) -> None:
        """Forget what is done since before a time: a message that came so long ago comes again no more. Codes that
        nobody used go, too."""
        self._db.run("prune_inbound", before=to_ms(before))
        self._db.run("prune_outbound", before=to_ms(before))
        self._db.run("prune_pairings", before=to_ms(before))

    def traffic(self) -> list[ChannelTraffic]:
        """What each channel has to do, and did lately."""
        return [ChannelTraffic(*row) for row in self._db.all("gateway_counts")]

    def problems(self, limit: int = 5) -> list[Undelivered]:
        """The last parts that could not be sent."""
        return [
            Undelivered(channel, key, state, problem, at_ms(created), attempts)
            for channel, key, state, problem, created, attempts in self._db.all(
                "list_outbound_problems", limit=limit
            )
        ]

    # Who may write

    def pairing(self, channel: str, sender: str) -> Pairing | None:
        """A sender's."""
        row = self._db.one("find_pairing", channel=channel, sender=sender)
        return _pairing(row) if row else None

    def pairing_of_code(self, code: str) -> Pairing | None:
        """That of a code."""
        row = self._db.one("find_pairing_by_code", code=code)
        return _pairing(row) if row else None

    def pairings(self) -> list[Pairing]:
        """All of them, those that wait first."""
        return [_pairing(row) for row in self._db.all("list_pairings")]

    def asking_since(self, channel: str, since: datetime) -> int:
        """How many senders of a channel wait that asked since a time."""
        return int(
            (self._db.one("count_pairings_since", channel=channel, since=to_ms(since)) or (0,))[0]
        )

    def ask_pairing(self, pairing: Pairing) -> None:
        """A sender asks to be let in."""
        self._db.run(
            "ask_pairing",
            channel=pairing.channel,
            sender=pairing.sender,
            called=pairing.name,
            code=pairing.code,
            asked=to_ms(pairing.asked),
        )

    @in_transaction
    def approve(self, pairing: Pairing, at: datetime) -> None:
        """The owner lets a sender in, who need not have asked."""
        self.ask_pairing(pairing)
        self._db.run(
            "approve_pairing", channel=pairing.channel, sender=pairing.sender, at=to_ms(at)
        )

    def drop_pairing(self, channel: str, sender: str) -> bool:
        """A sender is let in no more; returns whether they were, or had asked."""
        return bool(self._db.run("drop_pairing", channel=channel, sender=sender))


def _text(value: Any) -> str:
    return json.encode(value).decode()


def _message(text: str) -> Incoming:
    found: Incoming = json.decode(text.encode(), Incoming)
    return found


def _session(row: Row) -> ChatSession:
    (
        one,
        key,
        _,
        chat,
        name,
        created,
        updated,
        messages,
        indexed,
        compactions,
        flushed,
        tokens,
        read,
        written,
        cost,
        closed,
    ) = row
    return ChatSession(
        one,
        key,
        json.decode(chat.encode(), Chat),
        name,
        at_ms(created),
        at_ms(updated),
        messages,
        indexed,
        compactions,
        flushed,
        tokens,
        read,
        written,
        cost / _MICRO,
        from_ms(closed),
    )


def _pairing(row: Row) -> Pairing:
    channel, sender, name, code, asked, approved = row
    return Pairing(channel, sender, name, code, at_ms(asked), from_ms(approved))
