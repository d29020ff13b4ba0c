"""The gateway's database: incoming messages, answers to send, sessions and permitted senders.

It is a separate file, ``gateway/gateway.db`` in nacre's home folder, so that incoming messages
never wait for a process that writes memories.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from nacre.base import files, json
from nacre.base.frozen import frozen
from nacre.base.ids import at_ms, from_ms
from nacre.errors import NacreError, UnavailableError
from nacre.store.schema import Row, in_transaction, record, records, runs
from nacre.store.sqlite import FileDatabase, open_database
from nacre.values.gateway import (
    Answer,
    ChannelTraffic,
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
"""Path of the database relative to nacre's home folder."""

TRANSCRIPTS_LOCK = "transcripts.lock"
"""Name of the lock file in ``FOLDER`` for writing transcripts."""

PROBLEM = "gateway.problem"
"""Key under which a channel's problem is stored."""

_MILLIONTHS = 1_000_000
_MAX_MESSAGES_PER_TURN = 200
"""Maximum number of messages per turn. Others go into the next turn."""

_READERS_PATIENCE_MS = 100


@frozen
class OpenMessage:
    """An unanswered message.

    ``state`` is ``heard``, ``waiting`` or ``taken``, and ``line`` is its id in the transcript.
    """

    received: Received
    state: str
    line: str | None
    attempts: int


@frozen
class Line:
    """A line that is still to be written to a transcript."""

    id: str
    text: str


class GatewayStore:
    """The gateway's database. Each thread needs its own instance."""

    def __init__(self, database: FileDatabase) -> None:
        self._db = database

    @classmethod
    def open(cls, home: Path) -> Self:
        """Open the gateway's database in a home, and create it if needed.

        Raises UnusableStoreError, StoreBusyError, or SchemaTooNewError for a newer nacre's
        database.
        """
        files.make_folder(home / FOLDER)
        return cls(open_database(home / DATABASE, migrations=FOLDER))

    @classmethod
    def empty(cls) -> Self:
        """Create an empty in-memory store, for a home without a gateway."""
        return cls(FileDatabase(Path(":memory:"), migrations=FOLDER))

    @classmethod
    def open_to_read(cls, home: Path) -> Self | None:
        """Open a home's gateway database read-only, or return ``None`` if it is missing or
        unreadable.
        """
        path = home / DATABASE
        if not path.is_file():
            return None
        read_only_error = UnavailableError(
            "the gateway's database is read-only here", hint="this is a bug in nacre"
        )
        try:
            return cls(
                FileDatabase(
                    path,
                    unwritable=read_only_error,
                    patience_ms=_READERS_PATIENCE_MS,
                    migrations=FOLDER,
                )
            )
        except NacreError:
            return None

    def is_in_place(self) -> bool:
        """Return True if the opened file is still in place."""
        return self._db.is_in_place()

    def close(self) -> None:
        self._db.close()

    def edition(self) -> object:
        """Return a token that changes when another process writes to the database."""
        return self._db.edition()

    def channel_value(self, channel: str, name: str) -> str:
        """Return a value that a channel stored, or "" if there is none."""
        return self._db.value("channel_value", channel=channel, field=name) or ""

    def note_problem(self, channel: str, problem: str) -> None:
        """Store a channel's current problem, or "" once it works again."""
        self._db.run("keep_channel_value", channel=channel, field=PROBLEM, value=problem)

    @in_transaction
    def receive(
        self, channel: str, messages: Iterable[tuple[Received, str]], state: Mapping[str, str]
    ) -> list[tuple[Received, str]]:
        """Store received messages and a channel's new state, and return the new messages."""
        new = []
        for received, new_state in messages:
            if self._db.run(
                "insert_inbound",
                channel=channel,
                id=received.message.id,
                key=received.key,
                sender=received.message.sender.id,
                message=_text(received.message),
                is_owner=received.is_owner,
                received=received.received,
                state=new_state,
            ):
                new.append((received, new_state))
        for name, value in state.items():
            self._db.run("keep_channel_value", channel=channel, field=name, value=value)
        return new

    @in_transaction
    def trim_heard(self, key: str, entries: int, keys: int) -> None:
        """Delete all but the last ``entries`` overheard messages of a conversation.

        Overheard messages are kept for at most ``keys`` conversations.
        """
        self._db.run("trim_heard", key=key, keep=entries)
        self._db.run("trim_heard_keys", keep=keys)

    def open_messages(self, key: str) -> list[OpenMessage]:
        """Return a conversation's unanswered messages and those overheard since the last answer."""
        rows = self._db.all("list_open_inbound", key=key, limit=_MAX_MESSAGES_PER_TURN)
        return [
            OpenMessage(
                Received(seq, key, json.decode(text, Incoming), at_ms(received), bool(is_owner)),
                state,
                line,
                attempts,
            )
            for seq, text, is_owner, received, state, line, attempts in rows
        ]

    def waiting_keys(self) -> list[tuple[str, str]]:
        """Return the key and channel of each conversation with unanswered messages."""
        return self._db.all("list_waiting_keys")

    def last_waiting(self, key: str) -> tuple[datetime | None, int]:
        """Return when a conversation's last waiting message arrived, and how many are waiting."""
        moment, count = self._db.one("last_waiting", key=key) or (None, 0)
        return from_ms(moment), count

    def is_taken(self, key: str) -> bool:
        """Return True if the gateway stopped while answering a message in this conversation."""
        return self._db.one("is_taken_inbound", key=key) is not None

    @in_transaction
    def take(
        self, session: str, lines_by_number: Sequence[tuple[int, str | None]], lines: Sequence[Line]
    ) -> None:
        """Mark messages as being answered, and queue lines for the transcript.

        ``lines_by_number`` pairs message numbers with ids of transcript lines.
        """
        for seq, line in lines_by_number:
            self._db.run("take_inbound", seq=seq, line=line)
        self.add_lines(session, lines)

    @runs("release_inbound")
    def release(self) -> None:
        """Subtract the attempts to answer that a shutdown of the gateway interrupted."""

    @in_transaction
    def finish(
        self,
        session: ChatSession,
        numbers: Sequence[int],
        answer: Answer,
        parts: Sequence[Outgoing],
        lines: Sequence[Line],
        at: datetime,
        *,
        messages: int = 0,
    ) -> None:
        """Finish a turn, queue its answer, and add to the session's counts.

        If a message has been forgotten since, only the answer's cost is stored.
        """
        if any(self._db.one("is_done_inbound", seq=seq) for seq in numbers):
            parts, lines, messages = (), (), 0
        self._db.run_each("finish_inbound", "seq", numbers)
        for part in parts:
            self.add_part(session.key, part, at)
        self.add_lines(session.id, lines)
        self._db.run(
            "count_in_chat_session",
            id=session.id,
            at=at,
            messages=messages,
            input=answer.input_tokens,
            output=answer.output_tokens,
            cost=round(answer.cost * _MILLIONTHS),
        )

    @in_transaction
    def add_lines(self, session: str, lines: Sequence[Line]) -> None:
        """Queue lines for a session's transcript."""
        for line in lines:
            self._db.run("insert_pending_line", session=session, id=line.id, line=line.text)

    def pending_lines(self, session: str) -> list[tuple[int, Line]]:
        """Return a session's queued transcript lines with their numbers in the queue."""
        return [
            (seq, Line(line_id, text))
            for seq, line_id, text in self._db.all("list_pending_lines", session=session)
        ]

    def pending_sessions(self) -> list[str]:
        """Return sessions with queued transcript lines."""
        return self._db.column("list_pending_sessions")

    @runs("drop_pending_lines")
    def drop_lines(self, session: str, seq: int) -> None:
        """Delete a session's queued lines up to number ``seq`` after they were written."""

    def open_session(self, key: str) -> ChatSession | None:
        """Return the open session of a conversation."""
        row = self._db.one("open_chat_session", key=key)
        return _session(row) if row else None

    def find_sessions(self, reference: str) -> list[ChatSession]:
        """Find up to three sessions by id, id prefix or conversation key."""
        return [*map(_session, self._db.all("find_chat_session", reference=reference))]

    def sessions(
        self, channel: str | None, *, closed: bool, limit: int, offset: int = 0
    ) -> list[ChatSession]:
        """Return chat sessions, most recently used first."""
        criteria = {"channel": channel, "closed": closed, "limit": limit, "offset": offset}
        return [*map(_session, self._db.all("list_chat_sessions", **criteria))]

    def stale_sessions(self, channel: str, before: datetime) -> list[ChatSession]:
        """Return a channel's open sessions that were last used before a given time."""
        rows = self._db.all("list_stale_chat_sessions", channel=channel, before=before, limit=100)
        return [*map(_session, rows)]

    @in_transaction
    def begin_session(self, session: ChatSession, line: Line) -> None:
        """Store a new session and the first line of its transcript."""
        row = {
            "id": session.id,
            "key": session.key,
            "channel": session.chat.channel,
            "chat": _text(session.chat),
            "name": session.name,
            "created": session.created,
            "updated": session.updated,
        }
        self._db.insert("chat_sessions", row, "id")
        self.add_lines(session.id, [line])

    def close_session(self, session: str, at: datetime) -> bool:
        """Close a session. Return False if it was not open."""
        return bool(self._db.run("close_chat_session", id=session, at=at))

    @runs("note_chat_indexed")
    def note_indexed(self, session: str, messages: int) -> None:
        """Record how many of a session's messages are searchable."""

    def state(self, most: int) -> object:
        """Return a token that changes when sessions, pending messages, senders or errors change."""
        parts = (
            self._db.all("list_recent_chat_states", most=most),
            self._db.all("list_open_chat_states"),
            self.pairings(),
            self.problems(),
        )
        return parts if any(parts) else None

    def add_part(self, key: str, part: Outgoing, at: datetime) -> None:
        """Queue a part of a message for sending, unless its key is already queued."""
        self._db.run(
            "insert_outbound",
            id=part.key,
            key=key,
            channel=part.chat.channel,
            message=_text(part),
            created=at,
        )

    def sending_keys(self) -> list[tuple[str, str]]:
        """Return the key and channel of each conversation with unsent messages."""
        return self._db.all("list_outbound_keys")

    def next_part(self, key: str) -> Part | None:
        """Return the first unsent message part in a conversation."""
        return record(Part, self._db.one("next_outbound", key=key))

    def begin_part(self, seq: int, *, is_idempotent: bool) -> None:
        """Mark a message part as being sent. After a crash, it might be sent again."""
        self._db.run("begin_outbound", seq=seq, counts=not is_idempotent)

    @runs("delay_outbound")
    def delay_part(self, seq: int, not_before: datetime, problem: str) -> None:
        """Record why the platform rejected a message part, and when to retry."""

    def finish_part(self, seq: int, sent: str | None, problem: str | None = None) -> None:
        """Record a message part as sent, with the platform's id, or as failed."""
        self._db.run(
            "finish_outbound",
            seq=seq,
            state="failed" if problem else "sent",
            sent=sent,
            problem=problem,
        )

    @in_transaction
    def prune(self, before: datetime) -> None:
        """Delete finished messages and unused pairing codes from before a given time."""
        self._db.run("prune_inbound", before=before)
        self._db.run("prune_outbound", before=before)
        self._db.run("prune_pairings", before=before)

    def traffic(self) -> list[ChannelTraffic]:
        """Return each channel's numbers of pending and recent messages."""
        return records(ChannelTraffic, self._db.all("gateway_counts"))

    def problems(self, limit: int = 5) -> list[Undelivered]:
        """Return the latest message parts that could not be sent."""
        return records(Undelivered, self._db.all("list_outbound_problems", limit=limit))

    def pairing(self, channel: str, sender: str) -> Pairing | None:
        """Return the pairing of a sender, if any."""
        return record(Pairing, self._db.one("find_pairing", channel=channel, sender=sender))

    def pairing_of_code(self, code: str) -> Pairing | None:
        """Return the pairing with this code."""
        return record(Pairing, self._db.one("find_pairing_by_code", code=code))

    def pairings(self) -> list[Pairing]:
        """Return all pairings, pending first."""
        return records(Pairing, self._db.all("list_pairings"))

    def asking_since(self, channel: str, since: datetime) -> int:
        """Count a channel's pending access requests since a given time."""
        return self._db.value("count_pairings_since", channel=channel, since=since) or 0

    def ask_pairing(self, pairing: Pairing) -> None:
        """Store a sender's request for access."""
        self._db.run("ask_pairing", **asdict(pairing))

    @in_transaction
    def approve(self, pairing: Pairing, at: datetime) -> None:
        """Grant access to a sender, even without a request."""
        self.ask_pairing(pairing)
        self._db.run("approve_pairing", channel=pairing.channel, sender=pairing.sender, at=at)

    def drop_pairing(self, channel: str, sender: str) -> bool:
        """Delete a sender's access or request for it. Return False if there was neither."""
        return bool(self._db.run("drop_pairing", channel=channel, sender=sender))


def _text(value: Any) -> str:
    return json.encode(value).decode()


def _session(row: Row) -> ChatSession:
    (session,) = records(ChatSession, [row[:2] + row[3:]])
    return replace(session, cost=session.cost / _MILLIONTHS)
