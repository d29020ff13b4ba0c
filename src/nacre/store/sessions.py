"""Stores of sessions, turns, agents' actions, activity, archive state and project contents."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import date, datetime, timedelta

import msgspec

from nacre.base.frozen import frozen
from nacre.base.ids import from_ms
from nacre.base.text import identifiers, noted, segment
from nacre.base.times import day_interval
from nacre.store.rows import record, records
from nacre.store.schema import (
    Database,
    Indexed,
    Row,
    Store,
    Words,
    deed_clause,
    did_of,
    encode,
    fits_index,
    runs,
    stored_turn,
    tools_column,
    turn_identity,
    turn_row,
)
from nacre.values.memory import DeedFilter, SessionFilter
from nacre.values.session import (
    Action,
    Cursor,
    Deeds,
    FileUse,
    Flag,
    Heard,
    SeenFile,
    Session,
    Speaker,
    StoredSession,
    StoredTurn,
    Tally,
    Tokens,
    ToolCall,
    Turn,
    Unlearned,
)

_encode = msgspec.json.Encoder().encode
_USES = (Action.READ, Action.EDIT)
_NOISE = Flag.META | Flag.SUMMARY | Flag.INJECTED


class DeedIndex(Store):
    """Index of file operations and failed calls."""

    def add(self, done: Sequence[Deeds]) -> None:
        """Index the actions of stored turns. Call this in the transaction that stores the turns."""
        uses = [use for deeds in done for use in _uses(deeds)]
        if uses:
            encoded = _encode(uses).decode()
            self._db.run("insert_files", uses=encoded)
            self._db.run("insert_file_uses", uses=encoded)
        self._add_failures(done)

    def index_again(self, done: Sequence[Deeds]) -> None:
        """Add the failed calls of the given turns to the full-text index again."""
        self._db.words.drop(Indexed.FAILURES, [deeds.turn for deeds in done])
        self._add_failures(done)

    def _add_failures(self, done: Sequence[Deeds]) -> None:
        failures = [failure for deeds in done if (failure := _failure(deeds))]
        if failures:
            self._db.words.add(Indexed.FAILURES, failures)

    def files_named(self, name: str) -> list[tuple[int, str]]:
        """Return (row, path) of the files with a given base name, ignoring case."""
        return self._db.all("list_files_named", last=name.lower())

    def all_files(self) -> list[tuple[int, str]]:
        """Return (row, path) of every file that was ever touched."""
        return self._db.all("list_all_files")

    def most_changed(self) -> tuple[str, int] | None:
        """Find the file that most sessions edited.

        Return its path and number of sessions. Files with the same name count as one.
        """
        row = self._db.one("find_most_changed_file")
        return (row[0], row[1]) if row else None

    def uses(
        self, files: Sequence[int], criteria: DeedFilter, *, reads: bool, limit: int
    ) -> list[FileUse]:
        """Return reads and edits of files, newest first. Without ``reads``, only edits are returned."""
        rows = self._db.all(
            "list_file_uses", files=files, **asdict(criteria), reads=reads, limit=limit
        )
        return records(FileUse, rows)

    def failures(self, words: Sequence[str], criteria: DeedFilter, *, limit: int) -> list[int]:
        """Return turns with failed calls that contain any of the words, best BM25 score first."""
        return self._db.words.best(Indexed.FAILURES, words, deed_clause(criteria), limit)

    def requests(self, session: int, seq: int, *, by: Speaker, limit: int) -> list[int]:
        """Return the turns before ``seq`` in which a speaker requests something, latest first."""
        rows = self._db.all(
            "list_requests",
            session=session,
            seq=seq,
            speaker=by.value,
            noise=int(_NOISE),
            limit=limit,
        )
        return [turn for (turn,) in rows]


def plain_path(path: str) -> str:
    """Normalise a path for the index, with ``/`` and without a leading ``./``."""
    return path.replace("\\", "/").removeprefix("./").rstrip("/") or "/"


def _uses(deeds: Deeds) -> Iterator[tuple[int, str, str, str]]:
    for call in deeds.calls:
        if call.action in _USES and call.outcome != "rejected":
            for path in filter(fits_index, map(plain_path, call.paths)):
                yield deeds.turn, path, path.rsplit("/", 1)[-1].lower(), call.action.value


def _failure(deeds: Deeds) -> Words | None:
    failed = [call for call in deeds.calls if call.failed]
    if not failed:
        return None
    tried = "\n".join(f"{call.name} {call.input}" for call in failed)
    error = "\n".join(call.error or call.outcome or "" for call in failed)
    return Words(deeds.turn, (segment(tried), segment(error)))


# -- Sessions and turns -------------------------------------------------------


_TURNS_AT_ONCE = 500
_MAX_NAMES_CHARACTERS = 8000
_PAUSE_MS = 30 * 60 * 1000
OPENING_TURNS = 12
"""Number of turns at the start used to describe an untitled session."""
_ALL_SESSIONS = SessionFilter()

TurnBatch = tuple[str, int, Sequence[Turn]]
"""A session's tool, its row, and some of its turns in order."""


_Identified = tuple[int, dict[bytes, Turn]]
_Placed = tuple[int, int, bytes, Turn]


class Sessions(Store):
    """Store of sessions, turns and read positions in transcripts."""

    def upsert(self, session: Session, *, project: str | None, file: str | None) -> int:
        """Insert a session or update its known fields, and return its row."""
        spent = session.tokens
        before = self._db.one("model_of_session", tool=session.tool, native_id=session.native_id)
        row = self._db.one(
            "upsert_session",
            **asdict(replace(session, model=noted(before[0] if before else None, session.model))),
            project=project,
            file=file,
            tokens_input=spent and spent.input,
            tokens_cached=spent and spent.cached,
            tokens_output=spent and spent.output,
        )
        if row and file:
            self._db.run("note_session_file", session=row[0], file=file)
        return int(row[0]) if row else 0

    def add_turns(self, session: Session, row: int, turns: Sequence[Turn]) -> int:
        """Append turns to a session, as :meth:`add_batches` does."""
        return self.add_batches([(session.tool, row, turns)])[0]

    def add_batches(self, batches: Sequence[TurnBatch]) -> list[int]:
        """Append turns to their sessions and the full-text index. Return the new turns per batch.

        Known turns keep their position. A changed turn is replaced. If the session has several
        files, only a longer version replaces the turn, because a file can be an old copy.
        """
        return [count for portion in _portions(batches) for count in self._add_portion(portion)]

    def _add_portion(self, portion: Sequence[_Identified]) -> list[int]:
        identities = json.dumps([identity.hex() for _, turns in portion for identity in turns])
        stored = {row[1]: row for row in self._db.all("find_known_turns", identities=identities)}
        rows = self._db.all("next_seqs", sessions=sorted({session for session, _ in portion}))
        next_seq: dict[int, int] = dict(rows)
        placed: list[_Placed] = []
        counts = []
        for session, turns in portion:
            fresh = [identity for identity in turns if identity not in stored]
            placed += [
                (session, seq, identity, turns[identity])
                for seq, identity in self._drop_grown(session, turns, stored)
            ]
            placed += [
                (session, seq, identity, turns[identity])
                for seq, identity in enumerate(fresh, start=next_seq[session])
            ]
            next_seq[session] += len(fresh)
            counts.append(len(fresh))
        if placed:
            self._insert(placed)
        return counts

    def _insert(self, placed: Sequence[_Placed]) -> None:
        first = self._db.value("next_turn_row") or 1
        rows = list(enumerate(placed, start=first))
        encoded = encode([(number, *turn_row(*place)) for number, place in rows])
        self._db.run("insert_turns", turns=encoded.decode())
        index_texts(
            self._db, [(number, turn.text, turn.tool_calls) for number, (_, _, _, turn) in rows]
        )
        done = [
            Deeds(number, turn.tool_calls) for number, (_, _, _, turn) in rows if turn.tool_calls
        ]
        DeedIndex(self._db).add(done)

    def _drop_grown(
        self, session: int, turns: Mapping[bytes, Turn], stored: Mapping[bytes, Row]
    ) -> Iterator[tuple[int, bytes]]:
        """Delete changed turns from the store, and yield their positions and identities."""
        changed = {
            identity: stored[identity]
            for identity, turn in turns.items()
            if identity in stored
            and stored[identity][2] == session
            and _content(turn) != _stored_content(stored[identity])
        }
        copied = bool(changed) and (self._db.value("count_session_files", session=session) or 0) > 1
        for identity, row in changed.items():
            if not copied or _length(_content(turns[identity])) > _length(_stored_content(row)):
                self._forget_turns([row[0]])
                yield row[3], identity

    def index_again(self, rows: Sequence[int]) -> None:
        """Index turns that are missing from the full-text index."""
        with self._db.transaction():
            for start in range(0, len(rows), _TURNS_AT_ONCE):
                turns = self.by_rows(rows[start : start + _TURNS_AT_ONCE])
                self._forget_text(list(turns))
                index_texts(
                    self._db,
                    [(row, turn.turn.text, turn.turn.tool_calls) for row, turn in turns.items()],
                )

    def _forget_text(self, rows: Sequence[int]) -> None:
        self._db.words.drop(Indexed.TURNS, rows)

    def retain(self, tool: str, file: str, present: Mapping[str, Sequence[str]]) -> set[int]:
        """Delete the turns that no file contains any more, after reading a file completely.

        ``present``: ids of the turns in the file, keyed by native session id. Returns the rows of
        sessions whose turns were deleted.
        """
        touched = set()
        for row, native_id, stored_ids in self._db.all(
            "list_sessions_of_file", tool=tool, file=file
        ):
            ids = present.get(native_id)
            others = self._db.all("list_other_files", session=row, file=file)
            deleted = self._removed_turns(
                row, ids or (), stored_ids, [other for _, other in others]
            )
            self._forget_turns(deleted)
            if ids is not None:
                self._db.run("hold_turns", session=row, file=file, held=encode(ids).decode())
            elif others:
                self._db.run("leave_session_file", session=row, file=file)
                self._db.run("move_session", row=row, file=file, other=others[0][0])
            else:
                self._db.run("delete_session", row=row)
                continue
            if deleted:
                self._db.run("limit_extracted", row=row)
                self._db.run("delete_unfounded_candidates", row=row)
                touched.add(int(row))
        return touched

    def _removed_turns(
        self, row: int, ids: Sequence[str], stored_ids: str | None, others: Sequence[str | None]
    ) -> list[int]:
        """Return the rows of a session's turns that none of its files contains any more.

        If a file was not read completely, the list is empty.
        """
        if not others:
            rows = self._db.all("list_turns_gone", session=row, ids=encode(ids).decode())
        elif stored_ids is None or None in others:
            return []
        else:
            remaining = {*ids, *(turn for other in others if other for turn in json.loads(other))}
            lost = [turn for turn in json.loads(stored_ids) if turn not in remaining]
            rows = self._db.all("list_turns_named", session=row, ids=encode(lost).decode())
        return [int(turn) for (turn,) in rows]

    def _forget_turns(self, rows: Sequence[int]) -> None:
        self._forget_text(rows)
        self._db.run_many("delete_turn", [{"row": row} for row in rows])

    def folders(self) -> list[str]:
        """Return the working directories of all sessions."""
        return self._db.column("list_folders")

    def without_folder(self, tool: str) -> list[int]:
        """Return the rows of a tool's sessions without a working directory."""
        return self._db.column("list_without_folder", tool=tool)

    @runs("refresh_session")
    def refresh(self, rows: Sequence[int]) -> None:
        """Update the counts and dates of sessions from their turns."""

    def to_extract(self) -> list[Unlearned]:
        """Return sessions with turns not yet processed by extraction or a writer, oldest first."""
        return records(Unlearned, self._db.all("list_sessions_to_extract"))

    def not_shown(self) -> list[Unlearned]:
        """Return sessions that only a writer has to process, oldest first.

        Extraction has processed all turns of these sessions.
        """
        return records(Unlearned, self._db.all("list_sessions_not_shown"))

    @runs("mark_extracted")
    def mark_extracted(self, row: int, seq: int) -> None:
        """Record that extraction processed the turns before ``seq``."""

    def mark_learned(
        self, unlearned: Unlearned, seq: int, unwritten: int | None, requested_at: datetime | None
    ) -> None:
        """Record the progress of extraction and of the writer in a session.

        ``seq``, ``unwritten``: first turns that extraction and the writer have to process.
        ``requested_at``: time of the writer's last call. Concurrent changes are kept.
        """
        self._db.run(
            "mark_learned",
            row=unlearned.row,
            extracted=seq,
            unwritten=unwritten,
            asked=requested_at,
            begin=unlearned.begin,
            unwritten_before=-1 if unlearned.unwritten is None else unlearned.unwritten,
            asked_before=-1 if unlearned.asked is None else unlearned.asked,
        )

    @runs("ask_again")
    def ask_again(self) -> None:
        """Let the writer process the pending sessions now, even if a call failed recently."""

    @runs("mark_all_extracted")
    def mark_all_extracted(self) -> None:
        """Make extraction skip all current turns."""

    def find(self, reference: str) -> list[StoredSession]:
        """Find up to three sessions by ``<tool>:<id>``, by native id, or by a prefix of these."""
        tool, _, native_id = reference.partition(":")
        rows = self._db.all("find_session", tool=tool, native_id=native_id) if native_id else []
        rows = rows or self._db.all("find_sessions_by_native_id", native_id=reference, tool=None)
        if native_id and not rows:
            rows = self._db.all("find_sessions_by_native_id", native_id=native_id, tool=tool)
        exact = [row for row in rows if row[6] == reference]
        return [_session_from_row(row) for row in exact or rows]

    def get(self, row: int) -> StoredSession:
        """Return a session by row. Raises KeyError."""
        session = self._db.one("find_session_by_row", row=row)
        if session is None:
            raise KeyError(row)
        return _session_from_row(session)

    def newest(
        self, criteria: SessionFilter = _ALL_SESSIONS, *, limit: int = 20
    ) -> list[StoredSession]:
        """Return sessions, newest first."""
        return self.page(criteria, limit=limit, offset=0)[0]

    def page(
        self, criteria: SessionFilter, *, limit: int, offset: int
    ) -> tuple[list[StoredSession], int]:
        """Return a page of sessions, newest first, and the total.

        If the page is empty, the total is the offset.
        """
        rows = self._db.all(
            "list_sessions",
            **asdict(criteria),
            opening=OPENING_TURNS,
            limit=limit,
            offset=offset,
        )
        return [_session_from_row(row[:-1]) for row in rows], rows[0][-1] if rows else offset

    def children(self, row: int) -> list[StoredSession]:
        """Return the sub-agent sessions and forks of a session."""
        session = self.get(row).session
        rows = self._db.all(
            "list_children", tool=session.tool, native_id=session.native_id, row=row
        )
        return [*map(_session_from_row, rows)]

    def active(self, rows: Sequence[int]) -> dict[int, timedelta]:
        """Return the active time of each session, without pauses over 30 minutes.

        Sessions without timestamps are omitted.
        """
        rows_found = self._db.all("sum_active", rows=rows, pause=_PAUSE_MS)
        return {row: timedelta(milliseconds=total) for row, total in rows_found}

    def last_turns(self, row: int, limit: int) -> list[StoredTurn]:
        """Return the last turns of a session, in order."""
        turns = self._db.all("list_last_turns", session=row, limit=limit)
        return [stored_turn((turn[0], row, *turn[1:])) for turn in reversed(turns)]

    def counts(self) -> list[Row]:
        """Return (tool, sessions, turns, first time in ms, last time in ms), busiest tool first."""
        return self._db.all("count_sessions")

    def turns_of(self, row: int, *, first: int = 0, limit: int = -1) -> list[StoredTurn]:
        """Return a session's turns in order."""
        turns = self._db.all("list_turns", session=row, first=first, limit=limit)
        return [stored_turn((turn[0], row, *turn[1:])) for turn in turns]

    def whole(self, row: int) -> list[Turn]:
        """Return all turns of a session in order.

        ``unique`` is set in turns whose id is unique across sessions.
        """
        tool = self.get(row).session.tool
        identities: dict[int, bytes] = dict(self._db.all("list_identities", session=row))
        turns = []
        for item in self.turns_of(row):
            turn = replace(item.turn, unique=True)
            is_unique = turn_identity(tool, row, turn) == identities[item.seq]
            turns.append(turn if is_unique else item.turn)
        return turns

    def place_of(self, row: int, native_id: str) -> int | None:
        """Return the position (``seq``) of a turn in a session."""
        return self._db.value("find_turn_in_session", session=row, native_id=native_id)

    def by_rows(self, rows: Sequence[int]) -> dict[int, StoredTurn]:
        """Return turns keyed by row."""
        turns = self._db.all("find_turns", rows=rows)
        return {row[0]: stored_turn(row) for row in turns}

    def places(self, rows: Sequence[int]) -> dict[int, tuple[int, int]]:
        """Return (session row, seq) for each turn row."""
        places = self._db.all("find_places", rows=rows)
        return {row: (session, seq) for row, session, seq in places}

    def labels(self, tool: str) -> list[str]:
        """Return the labels (rooms, conversations) of a tool's sessions."""
        return self._db.column("list_labels", tool=tool)

    def authors(self) -> set[str]:
        """Return the authors of turns."""
        return set(self._db.column("list_authors"))

    def unknown_senders(self) -> list[tuple[str, int]]:
        """Return (sender, number of messages) for senders not known to be the owner.

        Only direct chats count. The most frequent sender comes first.
        """
        return self._db.all("list_unknown_senders")

    def projects(self) -> set[str]:
        """Return all projects that have sessions or memories."""
        return set(self._db.column("list_projects_named"))

    def cursor(self, path: str) -> tuple[str, Cursor] | None:
        """Return a transcript's tool and read position."""
        row = self._db.one("find_cursor", path=path)
        if row is None:
            return None
        return row[0], records(Cursor, [row[1:]])[0]

    def save_cursor(
        self, path: str, tool: str, cursor: Cursor, tally: Tally, *, goes_on: bool = False
    ) -> None:
        """Store a transcript's read position and its counts of unknown and corrupt entries.

        ``goes_on``: True to add ``tally`` to the stored counts.
        """
        self._db.run(
            "save_cursor",
            path=path,
            tool=tool,
            **asdict(cursor),
            unknown=tally.unknown,
            corrupt=tally.corrupt + tally.oversized,
            goes_on=goes_on,
        )

    def move_cursor(self, path: str, cursor: Cursor) -> None:
        """Update the read position of a rewritten transcript."""
        self._db.run("move_cursor", path=path, **asdict(cursor))

    def save_ingest(self, run: str, started: int, finished: int, **counts: int) -> None:
        """Record one ingest run (times in ms)."""
        self._db.run("save_ingest", id=run, started=started, finished=finished, **counts)

    def last_ingest(self) -> datetime | None:
        """Return the time of the last ingest."""
        row = self._db.one("last_ingest")
        return from_ms(row[1] or row[0]) if row else None

    def seen_files(self) -> list[SeenFile]:
        """Return all transcripts that were read."""
        return records(SeenFile, self._db.all("list_cursors"))

    def versions(self) -> dict[str, str]:
        """Return the version of the tool that last wrote to each transcript, keyed by path."""
        return dict(self._db.all("list_versions_of_files"))

    def find_said(self, session: str, turn_id: str) -> StoredTurn | None:
        """Find a turn by session (``<tool>:<id>``) and turn id.

        If the session does not contain the turn, a copy in another session is returned. Some tools
        create copies when they resume a session.
        """
        tool, _, _ = session.partition(":")
        sessions = self.find(session)
        place = self.place_of(sessions[0].row, turn_id) if sessions else None
        if sessions and place is not None:
            return self.turns_of(sessions[0].row, first=place, limit=1)[0]
        copy = turn_identity(tool, 0, Turn(turn_id, Speaker.OWNER, "", unique=True))
        row = self._db.one("find_turn_by_identity", identity=copy)
        return self.by_rows(row)[row[0]] if row else None

    def heard(self, latest: int) -> list[Heard]:
        """Return each tool's latest main sessions, and whether the owner spoke in them."""
        return records(Heard, self._db.all("list_heard", latest=latest))


def index_texts(database: Database, texts: Sequence[tuple[int, str, Sequence[ToolCall]]]) -> None:
    """Add turns' texts and actions to the full-text index. The rows must not be indexed yet."""
    entries = []
    for row, text, calls in texts:
        did = did_of(calls)
        names = " ".join(identifiers(f"{text}\n{did}"))[:_MAX_NAMES_CHARACTERS]
        entries.append(Words(row, (segment(text), segment(did)), names))
    database.words.add(Indexed.TURNS, entries)


def _portions(batches: Sequence[TurnBatch]) -> Iterator[list[_Identified]]:
    """Group batches so that no group contains a turn twice.

    A turn must be stored before its next occurrence is processed.
    """
    portion: list[_Identified] = []
    seen: set[bytes] = set()
    for tool, row, turns in batches:
        identified = {turn_identity(tool, row, turn): turn for turn in turns}
        if not seen.isdisjoint(identified):
            yield portion
            portion, seen = [], set()
        portion.append((row, identified))
        seen.update(identified)
    if portion:
        yield portion


def _content(turn: Turn) -> tuple[str, str]:
    return turn.text, tools_column(turn) or ""


def _stored_content(stored: Row) -> tuple[str, str]:
    return stored[4], stored[5] or ""


def _length(content: tuple[str, str]) -> int:
    return len(content[0]) + len(content[1])


def _session_from_row(row: Row) -> StoredSession:
    number, project, ended, file, turns, *facts = row
    (session,) = records(Session, [tuple(facts[:-3])])
    if any(facts[-3:]):
        session = replace(session, tokens=Tokens(*(count or 0 for count in facts[-3:])))
    return StoredSession(number, session, project, from_ms(ended), file, turns)


# -- Activity by day ----------------------------------------------------------
# Days are in local time. ``since``, ``first`` and ``last`` are inclusive, ``until`` is exclusive.


@frozen
class Period:
    """A range of days (inclusive), for one project or all projects."""

    first: date
    last: date
    project: str | None = None

    @property
    def since(self) -> datetime:
        """Start of the first day in local time."""
        return day_interval(self.first)[0]

    @property
    def until(self) -> datetime:
        """End of the last day in local time."""
        return day_interval(self.last)[1]

    @property
    def _moments(self) -> dict[str, object]:
        return {"since": self.since, "until": self.until, "project": self.project}


class Activity(Store):
    """Counts of sessions, memories and calls by day."""

    def sessions(self, period: Period) -> list[Row]:
        """Return (day, tool, sessions started, turns), excluding sub-agent and scheduled sessions."""
        days = {"first": period.first, "last": period.last}
        return self._db.all("count_sessions_by_day", **period._moments, **days)

    def memories(self, last: date, project: str | None) -> list[Row]:
        """Return (day, kind, change, number of memories) until ``last``.

        The change is 1 for memories recorded on that day, and -1 for memories that ended.
        """
        return self._db.all("count_memories_by_day", last=last, project=project)

    def sources(self, period: Period) -> list[Row]:
        """Return (speaker, tool, count) for the valid memories of a period, largest count first.

        The tool is ``None`` if unknown.
        """
        return self._db.all("count_memories_by_source", **period._moments)

    def ages(self, now: datetime, project: str | None) -> list[Row]:
        """Return (age in days, memories, possibly outdated memories) for the valid memories.

        The age counts from the day when the memories were last stated.
        """
        return self._db.all("count_memories_by_age", now=now, project=project)

    def use(self, project: str | None) -> tuple[int, int, int]:
        """Count the valid memories with no recalls, one to five recalls, and more recalls."""
        row = self._db.one("count_memories_by_use", project=project) or (0, 0, 0)
        return row[0], row[1], row[2]

    def recalls(self, period: Period) -> list[Row]:
        """Return (day, number of recalls)."""
        return self._db.all("count_recalls_by_day", **period._moments)

    def questions(self, period: Period, unanswered: Sequence[str]) -> list[Row]:
        """Return (day, True if answered, number of questions).

        ``unanswered``: outcomes of questions that count as unanswered.
        """
        return self._db.all("count_questions_by_day", unanswered=unanswered, **period._moments)

    def calls(self, first: date, last: date) -> list[Row]:
        """Return (day, task, tokens, cost) for model calls.

        The cost is in millionths of a US dollar.
        """
        return self._db.all("count_calls_by_day", first=first, last=last)


# -- Changes since the last check ---------------------------------------------


@frozen
class MemoryChange:
    """A change to a memory.

    ``change``: ``stored``, ``changed``, ``retired`` (also if superseded), ``restored`` or
    ``removed``. ``operation``: id of the last operation on the memory.
    """

    change: str
    id: str
    operation: str | None


@frozen
class GrownSession:
    """The id, tool and current turn count of a session with new turns."""

    id: str
    tool: str
    turns: int


class Changes:
    """Detects changes since the last check. A temporary table stores the last known state."""

    def __init__(self, database: Database) -> None:
        self._db = database
        database.run("create_known_memories")
        database.run("create_memory_states")
        with database.reading():
            database.run("note_memories")

    def memories(self) -> list[MemoryChange]:
        """Return the changes to memories since the last call."""
        with self._db.reading():
            changes = records(MemoryChange, self._db.all("list_memory_changes"))
            ids = [{"id": change.id} for change in changes]
            self._db.run_many("drop_known_memory", ids)
            self._db.run_many("note_memory", ids)
        return changes

    def last_turn(self) -> int:
        """Return the row of the last turn in the index."""
        return self._db.value("last_read_turn") or 0

    def grown_sessions(self, after_turn: int, most: int) -> list[GrownSession]:
        """Return sessions with turns after row ``after_turn``, sorted by latest turn."""
        rows = self._db.all("list_grown_sessions", turn=after_turn, limit=most)
        return records(GrownSession, rows)

    def operations(self, since: datetime) -> list[tuple[str, str]]:
        """Return (id, action) of operations since a given time, oldest first."""
        return self._db.all("list_operations_since", since=since)

    def doubted(self) -> frozenset[str]:
        """Return memories that a newer memory might have made outdated. This reads all links."""
        return frozenset(self._db.column("list_doubted"))

    def queued(self) -> frozenset[str]:
        """Return memories that are in the review queue or possibly outdated."""
        return frozenset(self._db.column("list_queued"))

    def last_trace(self) -> str | None:
        """Return the id of the latest trace."""
        return self._db.value("last_trace")

    def free_pages(self) -> None:
        """Free the RAM used by reading."""
        self._db.all("give_pages_back")


# -- State of the archive -----------------------------------------------------


@frozen
class Archived:
    """The archive state of a transcript.

    ``kind``: the kind of contents in the pack. ``pack``: its path relative to the archive, or
    ``None``. ``size``: its size in bytes. ``raw``: number of transcript bytes in the pack.
    ``until``: offset in the transcript up to which it is archived. ``changed``, ``inode``: the
    transcript's modification time (ns) and inode at the last check. ``withheld``: True if the
    transcript's own text is never archived.
    """

    path: str
    tool: str
    kind: str
    pack: str | None = None
    until: int = 0
    size: int = 0
    raw: int = 0
    inode: int = 0
    fingerprint: str = ""
    changed: int = 0
    withheld: bool = False


@frozen
class Due:
    """A transcript to archive, with its size and modification time (ns) at the last read."""

    path: str
    tool: str
    inode: int
    size: int
    changed: int


class ArchiveIndex(Store):
    """Store of transcripts' archive states and pack segments."""

    def all(self) -> list[Archived]:
        """Return the archive states of all transcripts, most recently changed first."""
        return records(Archived, self._db.all("list_archived"))

    def find(self, path: str) -> Archived | None:
        """Return a transcript's archive state."""
        return record(Archived, self._db.one("find_archived", path=path))

    def has_below(self, folder: str) -> bool:
        """Return True if any transcript in a folder is archived."""
        return self._db.one("find_archived_below", start=f"{folder}/", end=f"{folder}0") is not None

    def due(self) -> list[Due]:
        """Return transcripts that have changed since they were archived, oldest first."""
        return records(Due, self._db.all("list_archive_due"))

    def save(self, archived: Archived) -> None:
        """Record a transcript's archive state."""
        self._db.run("save_archived", **asdict(archived))

    @runs("withhold_archived")
    def withhold(self, path: str, tool: str) -> None:
        """Mark a transcript so that only its indexed text is archived."""

    def clear(self) -> None:
        self._db.run("clear_archived")

    def sessions_of(self, tool: str, path: str) -> list[int]:
        """Return the rows of sessions read from a transcript."""
        return self._db.column("list_session_rows_of_file", tool=tool, file=path)


# -- Contents of projects -----------------------------------------------------


Counted = dict[str, tuple[int, datetime | None]]
"""Number of items and time of the last item, keyed by project."""


class ProjectContents(Store):
    """Store that counts the contents of projects and moves sessions between projects."""

    def sessions(self) -> Counted:
        """Count each project's sessions, without sub-agent and scheduled sessions."""
        return self._counted("count_sessions_by_project")

    def memories(self) -> Counted:
        """Count each project's valid memories."""
        return self._counted("count_memories_by_project")

    def _counted(self, name: str) -> Counted:
        return {slug: (count, from_ms(last)) for slug, count, last in self._db.all(name)}

    def memory_ids(self, project: str, limit: int) -> list[str]:
        """Return up to ``limit`` memories of a project in any state."""
        return self._db.column("list_memories_of_project", project=project, limit=limit)

    def names_met(self) -> list[tuple[str, str]]:
        """Return (recorded name, current name) of the projects that have sessions."""
        return self._db.all("list_names_met")

    @runs("move_sessions")
    def move_sessions(self, former: str, project: str, into: str) -> None:
        """Move the sessions recorded under the name ``former`` from one project to another."""

    def has_branch(self, folder: str) -> bool:
        """Return True if a session in a folder was on a branch."""
        return bool(self._db.value("has_branch", folder=folder))

    def places(self) -> list[tuple[str, str, str | None]]:
        """Return (project, folder, branch) of the sessions, except under a former name."""
        return self._db.all("list_places")

    @runs("move_sessions_of_folder")
    def move_sessions_of_folder(self, folder: str | None, project: str, into: str) -> None:
        """Move the sessions in a folder from one project to another."""
