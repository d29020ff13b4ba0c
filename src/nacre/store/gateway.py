"""The gateway's database: incoming messages, answers to send, sessions and permitted senders.

The database is a separate file, ``gateway/gateway.db`` in nacre's home folder, so that receiving a
message never waits for a process that writes memories.
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
from nacre.store.rows import record, records
from nacre.store.schema import Row, in_transaction, runs
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
"""Maximum number of messages per turn. Further messages go into the next turn."""

_READERS_PATIENCE_MS = 100


@frozen
class Kept:
    """An unfinished message. ``state``: ``heard``, ``waiting`` or ``taken``. ``line``: its transcript id."""

    received: Received
    state: str
    line: str | None
    attempts: int


@frozen
class Known:
    """A received message, answered or not.

    ``message``: its contents, or ``None`` after the answer.
    """

    seq: int
    key: str
    sender: str
    state: str
    line: str | None
    message: Incoming | None


@frozen
class Line:
    """A line still to be written to the transcript file."""

    id: str
    text: str


class GatewayStore:
    """Storage of the gateway. Each thread needs a separate instance."""

    def __init__(self, database: FileDatabase) -> None:
        self._db = database

    @classmethod
    def open(cls, home: Path) -> Self:
        """Open the gateway database in a home folder, and create it if needed.

        Raises UnusableStoreError, StoreBusyError, SchemaTooNewError.
        """
        files.make_folder(home / FOLDER)
        return cls(open_database(home / DATABASE, migrations=FOLDER))

    @classmethod
    def empty(cls) -> Self:
        """Create an empty store in memory, for a home that has no gateway."""
        return cls(FileDatabase(Path(":memory:"), migrations=FOLDER))

    @classmethod
    def open_to_read(cls, home: Path) -> Self | None:
        """Open the gateway database in a home folder read-only, or return ``None`` if it is missing or unreadable."""
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
        """Return True if the database file has not been replaced since it was opened."""
        return self._db.is_in_place()

    def close(self) -> None:
        self._db.close()

    def edition(self) -> object:
        """Return a value that changes when another process writes to the database."""
        return self._db.edition()

    def channel_value(self, channel: str, name: str) -> str:
        """Return a value stored by a channel, or "" if it is missing."""
        return self._db.value("channel_value", channel=channel, field=name) or ""

    def note_problem(self, channel: str, problem: str) -> None:
        """Store the problem that keeps a channel from working, or "" if the channel works."""
        self._db.run("keep_channel_value", channel=channel, field=PROBLEM, value=problem)

    @in_transaction
    def receive(
        self, channel: str, messages: Iterable[tuple[Received, str]], state: Mapping[str, str]
    ) -> list[tuple[Received, str]]:
        """Store received messages with their states, and store the channel's new state.

        Only messages that were not stored before are returned.
        """
        new = []
        for received, new_state in messages:
            if self._db.run(
                "insert_inbound",
                channel=channel,
                id=received.message.id,
                key=received.key,
                sender=received.message.sender.id,
                message="" if new_state == "done" else _text(received.message),
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
        """Delete all heard messages of a conversation except the last ``entries``.

        Only ``keys`` conversations keep heard messages.
        """
        self._db.run("trim_heard", key=key, keep=entries)
        self._db.run("trim_heard_keys", keep=keys)

    def find(self, channel: str, message: str) -> Known | None:
        """Find a received message by its platform id."""
        return record(Known, self._db.one("find_inbound", channel=channel, id=message))

    def replace_text(self, seq: int, message: Incoming) -> None:
        """Replace a waiting message that the sender has edited."""
        self._db.run("set_inbound_message", seq=seq, message=_text(message))

    def open_messages(self, key: str) -> list[Kept]:
        """Return a conversation's unanswered messages, and messages heard since the last answer."""
        rows = self._db.all("list_open_inbound", key=key, limit=_MAX_MESSAGES_PER_TURN)
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
        """Return (key, channel) of conversations with unanswered messages."""
        return self._db.all("list_waiting_keys")

    def waiting(self, channel: str) -> int:
        """Count a channel's unanswered messages."""
        return self._db.value("count_waiting_inbound", channel=channel) or 0

    def last_waiting(self, key: str) -> tuple[datetime | None, int]:
        """Return the time of the last waiting message, and the number of waiting messages."""
        moment, count = self._db.one("last_waiting", key=key) or (None, 0)
        return from_ms(moment), count

    def is_taken(self, key: str) -> bool:
        """Return True if any message of a conversation was being answered when the gateway stopped."""
        return self._db.one("is_taken_inbound", key=key) is not None

    @in_transaction
    def take(
        self, session: str, lines_by_number: Sequence[tuple[int, str | None]], lines: Sequence[Line]
    ) -> None:
        """Mark messages as being answered, and queue lines for the transcript.

        ``lines_by_number``: pairs of a message's number and the id of its line.
        """
        for seq, line in lines_by_number:
            self._db.run("take_inbound", seq=seq, line=line)
        self.add_lines(session, lines)

    @runs("release_inbound")
    def release(self) -> None:
        """Reduce the attempt count of messages whose answer a clean shutdown interrupted."""

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
        tokens: int = 0,
        messages: int = 0,
    ) -> None:
        """Finish a turn, queue the parts of the answer, and add to the session's counts.

        If a message was forgotten in the meantime, only the answer's cost is stored.
        """
        if any(self._db.one("is_done_inbound", seq=seq) for seq in numbers):
            parts, lines, tokens, messages = (), (), 0, 0
        for seq in numbers:
            self._db.run("finish_inbound", seq=seq)
        for part in parts:
            self.add_part(session.key, part, at)
        self.add_lines(session.id, lines)
        self._db.run(
            "count_in_chat_session",
            id=session.id,
            at=at,
            messages=messages,
            tokens=tokens,
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
        """Return a session's queued transcript lines, each with its number in the queue."""
        return [
            (seq, Line(line_id, text))
            for seq, line_id, text in self._db.all("list_pending_lines", session=session)
        ]

    def pending_sessions(self) -> list[str]:
        """Return sessions with queued lines."""
        return self._db.column("list_pending_sessions")

    @runs("drop_pending_lines")
    def drop_lines(self, session: str, seq: int) -> None:
        """Delete queued lines up to number ``seq`` after they are written."""

    def open_session(self, key: str) -> ChatSession | None:
        """Return a conversation's open session."""
        row = self._db.one("open_chat_session", key=key)
        return _session(row) if row else None

    def session_of(self, key: str, line: str) -> ChatSession | None:
        """Return the session of a conversation whose transcript contains a given line."""
        row = self._db.one("chat_session_of_line", key=key, line=line)
        return _session(row) if row else None

    def find_sessions(self, reference: str) -> list[ChatSession]:
        """Find up to three sessions by id, id prefix or conversation key."""
        return [*map(_session, self._db.all("find_chat_session", reference=reference))]

    def sessions(
        self, channel: str | None, *, closed: bool, limit: int, offset: int = 0
    ) -> list[ChatSession]:
        """Return sessions, most recently used first."""
        criteria = {"channel": channel, "closed": closed, "limit": limit, "offset": offset}
        return [*map(_session, self._db.all("list_chat_sessions", **criteria))]

    def stale_sessions(self, channel: str, before: datetime) -> list[ChatSession]:
        """Return a channel's open sessions that have not been used since a given time."""
        rows = self._db.all("list_stale_chat_sessions", channel=channel, before=before, limit=100)
        return [*map(_session, rows)]

    @in_transaction
    def begin_session(self, session: ChatSession, line: Line) -> None:
        """Create a session with the first line of its transcript."""
        row = {
            "id": session.id,
            "key": session.key,
            "channel": session.chat.channel,
            "chat": _text(session.chat),
            "name": session.name,
            "created": session.created,
            "updated": session.updated,
            "compactions": session.compactions,
        }
        self._db.insert("chat_sessions", row, "id")
        self.add_lines(session.id, [line])

    def close_session(self, session: str, at: datetime) -> bool:
        """Close a session, and return True if it was open."""
        return bool(self._db.run("close_chat_session", id=session, at=at))

    @runs("note_chat_indexed")
    def note_indexed(self, session: str, messages: int) -> None:
        """Record how many of a session's messages are searchable."""

    @runs("note_chat_flushed")
    def note_flushed(self, session: str) -> None:
        """Record that a session's memories were extracted after its last compaction."""

    @in_transaction
    def note_compaction(self, session: str, tokens: int, line: Line) -> None:
        """Record that a summary replaced a session's older messages.

        ``tokens``: size of the summary and the newer messages.
        """
        self._db.run("note_chat_compacted", id=session, tokens=tokens)
        self.add_lines(session, [line])

    def state(self, most: int) -> object:
        """Return a value that changes with recent sessions, pending messages, senders or errors."""
        parts = (
            self._db.all("list_recent_chat_states", most=most),
            self._db.all("list_open_chat_states"),
            self.pairings(),
            self.problems(),
        )
        return parts if any(parts) else None

    def add_part(self, key: str, part: Outgoing, at: datetime) -> None:
        """Queue a message part to send, unless a part with the same key exists."""
        self._db.run(
            "insert_outbound",
            id=part.key,
            key=key,
            channel=part.chat.channel,
            message=_text(part),
            created=at,
        )

    def sending_keys(self) -> list[tuple[str, str]]:
        """Return (key, channel) of conversations with parts to send."""
        return self._db.all("list_outbound_keys")

    def next_part(self, key: str) -> Part | None:
        """Return the first unsent part of a conversation."""
        return record(Part, self._db.one("next_outbound", key=key))

    def begin_part(self, seq: int, *, is_idempotent: bool) -> None:
        """Mark a part as being sent. If the gateway then stops, the part might be sent twice."""
        self._db.run("begin_outbound", seq=seq, counts=not is_idempotent)

    @runs("delay_outbound")
    def delay_part(self, seq: int, not_before: datetime, problem: str) -> None:
        """Record that the platform rejected a part, and when to retry."""

    def finish_part(self, seq: int, sent: str | None, problem: str | None = None) -> None:
        """Record a part's platform id (``sent``), or the problem that prevented sending."""
        self._db.run(
            "finish_outbound",
            seq=seq,
            state="failed" if problem else "sent",
            sent=sent,
            problem=problem,
        )

    @in_transaction
    def prune(self, before: datetime) -> None:
        """Delete finished messages and unused codes from before a given time.

        Platforms do not send messages of that age again.
        """
        self._db.run("prune_inbound", before=before)
        self._db.run("prune_outbound", before=before)
        self._db.run("prune_pairings", before=before)

    def traffic(self) -> list[ChannelTraffic]:
        """Return each channel's counts of pending and recent messages."""
        return records(ChannelTraffic, self._db.all("gateway_counts"))

    def problems(self, limit: int = 5) -> list[Undelivered]:
        """Return the message parts that most recently could not be sent."""
        return records(Undelivered, self._db.all("list_outbound_problems", limit=limit))

    def pairing(self, channel: str, sender: str) -> Pairing | None:
        """Return the pairing of a sender."""
        return record(Pairing, self._db.one("find_pairing", channel=channel, sender=sender))

    def pairing_of_code(self, code: str) -> Pairing | None:
        """Return the pairing with a given code."""
        return record(Pairing, self._db.one("find_pairing_by_code", code=code))

    def pairings(self) -> list[Pairing]:
        """Return all pairings, pending first."""
        return records(Pairing, self._db.all("list_pairings"))

    def asking_since(self, channel: str, since: datetime) -> int:
        """Count a channel's senders who requested access since a given time and are still pending."""
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
        """Delete a sender's access or request for access, and return True if either existed."""
        return bool(self._db.run("drop_pairing", channel=channel, sender=sender))


def _text(value: Any) -> str:
    return json.encode(value).decode()


def _message(text: str) -> Incoming:
    message: Incoming = json.decode(text.encode(), Incoming)
    return message


def _session(row: Row) -> ChatSession:
    (session,) = records(ChatSession, [row[:2] + row[3:]])
    return replace(session, cost=session.cost / _MILLIONTHS)
