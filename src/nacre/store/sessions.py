"""Stores of sessions, turns, agents' actions, activity, archive state and project contents."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import date, datetime, timedelta

from nacre.base.frozen import frozen
from nacre.base.ids import from_ms
from nacre.base.text import identifiers, noted, segment
from nacre.base.times import day_interval
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
    in_transaction,
    record,
    records,
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
    LargestChange,
    MainSession,
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

_USES = (Action.READ, Action.EDIT)
_NOISE = Flag.META | Flag.SUMMARY | Flag.INJECTED


class DeedIndex(Store):
    """Index of agents' file operations and failed calls."""

    def add(self, done: Sequence[Deeds]) -> None:
        """Index the actions of stored turns, in the transaction that stores them."""
        uses = [use for deeds in done for use in _uses(deeds)]
        if uses:
            encoded = encode(uses)
            self._db.run("insert_files", uses=encoded)
            self._db.run("insert_file_uses", uses=encoded)
        self._add_failures(done)

    def index_again(self, done: Sequence[Deeds]) -> None:
        """Rebuild the index entries of failed calls in the given turns."""
        self._db.words.drop(Indexed.FAILURES, [deeds.turn for deeds in done])
        self._add_failures(done)

    def _add_failures(self, done: Sequence[Deeds]) -> None:
        failures = [failure for deeds in done if (failure := _failure(deeds))]
        if failures:
            self._db.words.add(Indexed.FAILURES, failures)

    def files_named(self, name: str) -> list[tuple[int, str]]:
        """Return (row, path) of each file with this base name, ignoring case."""
        return self._db.all("list_files_named", last=name.lower())

    def all_files(self) -> list[tuple[int, str]]:
        """Return (row, path) of every file that agents have used."""
        return self._db.all("list_all_files")

    def largest_changes(self, limit: int, *, without: str = "") -> list[LargestChange]:
        """Return the most edited files, ignoring sessions in the folder ``without``."""
        pattern = f"{without}%" if without else "-"
        rows = self._db.all("list_largest_changes", limit=limit, without=pattern)
        return records(LargestChange, rows)

    def uses(
        self, files: Sequence[int], criteria: DeedFilter, *, reads: bool, limit: int
    ) -> list[FileUse]:
        """Return edits of files, and with ``reads`` also reads, newest first."""
        rows = self._db.all(
            "list_file_uses", files=files, **asdict(criteria), reads=reads, limit=limit
        )
        return records(FileUse, rows)

    def failures(self, words: Sequence[str], criteria: DeedFilter, *, limit: int) -> list[int]:
        """Return turns whose failed calls contain any of the words, best BM25 score first."""
        return self._db.words.best(Indexed.FAILURES, words, deed_clause(criteria), limit)

    def requests(self, session: int, seq: int, *, limit: int) -> list[int]:
        """Return the owner's requests before position ``seq`` in a session, latest first."""
        rows = self._db.all(
            "list_requests",
            session=session,
            seq=seq,
            speaker=Speaker.OWNER.value,
            noise=int(_NOISE),
            limit=limit,
        )
        return [turn for (turn,) in rows]


def plain_path(path: str) -> str:
    """Normalise a path for the index: ``/`` as the separator, and no leading ``./``."""
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
"""Number of opening turns used to describe an untitled session."""
_ALL_SESSIONS = SessionFilter()

TurnBatch = tuple[str, int, Sequence[Turn]]
"""A session's tool, its row, and turns of the session in order."""


_Identified = tuple[int, dict[bytes, Turn]]
_Placed = tuple[int, int, bytes, Turn]


class Sessions(Store):
    """Sessions, their turns, and read positions in transcripts."""

    def upsert(
        self, session: Session, *, project: str | None, file: str | None, is_stated: bool = False
    ) -> int:
        """Insert a session or update its known fields, and return its row.

        With ``is_stated``, the session names its project, and its folder does not matter.
        """
        spent = session.tokens
        before = self._db.one("model_of_session", tool=session.tool, native_id=session.native_id)
        row = self._db.one(
            "upsert_session",
            **asdict(replace(session, model=noted(before[0] if before else None, session.model))),
            project=project,
            met_as=project if is_stated else None,
            file=file,
            tokens_input=spent and spent.input,
            tokens_cached=spent and spent.cached,
            tokens_output=spent and spent.output,
        )
        if row and file:
            self._db.run("note_session_file", session=row[0], file=file)
        return int(row[0]) if row else 0

    def add_turns(self, session: Session, row: int, turns: Sequence[Turn]) -> int:
        """Append turns to one session, as :meth:`add_batches` does."""
        return self.add_batches([(session.tool, row, turns)])[0]

    def add_batches(self, batches: Sequence[TurnBatch]) -> list[int]:
        """Append turns to their sessions, and return the number of new turns in each batch.

        A changed turn replaces the stored turn in the same position.
        """
        return [count for portion in _portions(batches) for count in self._add_portion(portion)]

    def _add_portion(self, portion: Sequence[_Identified]) -> list[int]:
        identities = [identity.hex() for _, turns in portion for identity in turns]
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
        self._db.run("insert_turns", turns=encoded)
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
        changed = {
            identity: stored[identity]
            for identity, turn in turns.items()
            if identity in stored
            and stored[identity][2] == session
            and _content(turn) != _stored_content(stored[identity])
        }
        # One of several files can be an old copy, so only a longer version replaces a turn.
        copied = bool(changed) and (self._db.value("count_session_files", session=session) or 0) > 1
        for identity, row in changed.items():
            if not copied or _length(_content(turns[identity])) > _length(_stored_content(row)):
                self._forget_turns([row[0]])
                if turns[identity].speaker is Speaker.OWNER:  # learn the new words
                    self._db.run("limit_extracted", row=session, before=row[3])
                    self._db.run("leave_turn", session=session, turns=[turns[identity].id])
                yield row[3], identity

    @in_transaction
    def index_again(self, rows: Sequence[int]) -> None:
        """Add turns that are missing from the full-text index."""
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
        """Delete turns that are no longer in any file, and return the affected sessions.

        Call this after reading a whole file. ``present`` maps native session ids to its turn ids.
        """
        touched = set()
        for row, native_id, stored_ids in self._db.all(
            "list_sessions_of_file", tool=tool, file=file
        ):
            ids = present.get(native_id)
            other_files = self._db.all("list_other_files", session=row, file=file)
            deleted = self._removed_turns(
                row, ids or (), stored_ids, [other for _, other in other_files]
            )
            self._forget_turns(deleted)
            if ids is not None:
                self._db.run("hold_turns", session=row, file=file, held=ids)
            elif other_files:
                self._db.run("leave_session_file", session=row, file=file)
                self._db.run("move_session", row=row, file=file, other=other_files[0][0])
            else:
                self._db.run("delete_session", row=row)
                continue
            if deleted:
                self._db.run("limit_extracted", row=row, before=sys.maxsize)
                self._db.run("delete_unfounded_candidates", row=row)
                touched.add(int(row))
        return touched

    def _removed_turns(
        self,
        row: int,
        ids: Sequence[str],
        stored_ids: str | None,
        other_files: Sequence[str | None],
    ) -> list[int]:
        if not other_files:
            rows = self._db.all("list_turns_gone", session=row, ids=ids)
        elif stored_ids is None or None in other_files:  # a file was never read completely
            return []
        else:
            remaining = {
                *ids,
                *(turn for other in other_files if other for turn in json.loads(other)),
            }
            lost = [turn for turn in json.loads(stored_ids) if turn not in remaining]
            rows = self._db.all("list_turns_named", session=row, ids=lost)
        return [int(turn) for (turn,) in rows]

    def _forget_turns(self, rows: Sequence[int]) -> None:
        self._forget_text(rows)
        self._db.run_each("delete_turn", "row", rows)

    def folders(self) -> list[str]:
        """Return the working directories of all sessions."""
        return self._db.column("list_folders")

    def without_folder(self, tool: str) -> list[int]:
        """Return the rows of a tool's sessions whose working directory is unknown."""
        return self._db.column("list_without_folder", tool=tool)

    @runs("refresh_session")
    def refresh(self, rows: Sequence[int]) -> None:
        """Recompute the counts and dates of sessions from their turns."""

    def to_extract(self) -> list[Unlearned]:
        """Return sessions with turns that extraction or the writer must still process, oldest
        first.
        """
        return self._records(Unlearned, "list_sessions_to_extract")

    def not_shown(self) -> list[Unlearned]:
        """Return sessions that only the writer must still process, oldest first."""
        return self._records(Unlearned, "list_sessions_not_shown")

    @runs("mark_extracted")
    def mark_extracted(self, row: int, seq: int) -> None:
        """Record that extraction processed the turns before ``seq``."""

    def mark_learned(
        self, unlearned: Unlearned, seq: int, unwritten: int | None, requested_at: datetime | None
    ) -> None:
        """Record the progress of extraction (``seq``) and the writer (``unwritten``) in a session.

        ``requested_at`` is the time of the writer's last call. Concurrent changes take precedence.
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
        """Let the writer process pending sessions at once, even after a recent failure."""

    @runs("mark_all_extracted")
    def mark_all_extracted(self) -> None:
        """Make extraction skip all current turns."""

    def find(self, reference: str) -> list[StoredSession]:
        """Find up to three sessions by ``<tool>:<id>``, native id, or a prefix of either."""
        tool, _, native_id = reference.partition(":")
        rows = self._db.all("find_session", tool=tool, native_id=native_id) if native_id else []
        rows = rows or self._db.all("find_sessions_by_native_id", native_id=reference, tool=None)
        if native_id and not rows:
            rows = self._db.all("find_sessions_by_native_id", native_id=native_id, tool=tool)
        exact = [row for row in rows if row[6] == reference]
        return [_session_from_row(row) for row in exact or rows]

    def get(self, row: int) -> StoredSession:
        """Return the session in a row, or raise KeyError."""
        session = self._db.one("find_session_by_row", row=row)
        if session is None:
            raise KeyError(row)
        return _session_from_row(session)

    def newest(
        self, criteria: SessionFilter = _ALL_SESSIONS, *, limit: int = 20
    ) -> list[StoredSession]:
        """Return matching sessions, newest first."""
        return self.page(criteria, limit=limit, offset=0)[0]

    def page(
        self, criteria: SessionFilter, *, limit: int, offset: int
    ) -> tuple[list[StoredSession], int]:
        """Return a page of sessions, newest first, and the total (or the offset if the page is
        empty).
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
        """Return a session's sub-agent sessions and forks."""
        session = self.get(row).session
        rows = self._db.all(
            "list_children", tool=session.tool, native_id=session.native_id, row=row
        )
        return [*map(_session_from_row, rows)]

    def active(self, rows: Sequence[int]) -> dict[int, timedelta]:
        """Return how long each session was active, not counting pauses over 30 minutes."""
        rows_found = self._db.all("sum_active", rows=rows, pause=_PAUSE_MS)
        return {row: timedelta(milliseconds=total) for row, total in rows_found}

    def last_turns(self, row: int, limit: int) -> list[StoredTurn]:
        """Return a session's last turns, in order."""
        turns = self._db.all("list_last_turns", session=row, limit=limit)
        return [stored_turn((turn[0], row, *turn[1:])) for turn in reversed(turns)]

    def counts(self) -> list[Row]:
        """Return (tool, sessions, turns, first time in ms, last time in ms), busiest tool first."""
        return self._db.all("count_sessions")

    def turns_of(self, row: int, *, first: int = 0, limit: int = -1) -> list[StoredTurn]:
        """Return a session's turns in order."""
        turns = self._db.all("list_turns", session=row, first=first, limit=limit)
        return [stored_turn((turn[0], row, *turn[1:])) for turn in turns]

    def read_turns(self, row: int, limit: int = -1) -> list[Turn]:
        """Return a session's turns in order, without their positions."""
        return [item.turn for item in self.turns_of(row, limit=limit)]

    def all_turns(self, row: int) -> list[Turn]:
        """Return a session's turns in order, each with ``unique`` set if its id is unique."""
        tool = self.get(row).session.tool
        identities: dict[int, bytes] = dict(self._db.all("list_identities", session=row))
        turns = []
        for item in self.turns_of(row):
            turn = replace(item.turn, unique=True)
            is_unique = turn_identity(tool, row, turn) == identities[item.seq]
            turns.append(turn if is_unique else item.turn)
        return turns

    def place_of(self, row: int, native_id: str) -> int | None:
        """Return a turn's position (``seq``) in a session."""
        return self._db.value("find_turn_in_session", session=row, native_id=native_id)

    def by_rows(self, rows: Sequence[int]) -> dict[int, StoredTurn]:
        """Return the turns in these rows, in this order and keyed by row."""
        turns = {row[0]: stored_turn(row) for row in self._db.all("find_turns", rows=rows)}
        return {row: turns[row] for row in rows if row in turns}

    def places(self, rows: Sequence[int]) -> dict[int, tuple[int, int]]:
        """Map turn rows to (session row, seq)."""
        places = self._db.all("find_places", rows=rows)
        return {row: (session, seq) for row, session, seq in places}

    def labels(self, tool: str) -> list[str]:
        """Return the labels of a tool's sessions, such as rooms or conversations."""
        return self._db.column("list_labels", tool=tool)

    def authors(self) -> set[str]:
        """Return all authors of turns."""
        return set(self._db.column("list_authors"))

    def unknown_senders(self) -> list[tuple[str, int]]:
        """Return senders in direct chats who might not be the owner, with their message counts,
        most frequent first.
        """
        return self._db.all("list_unknown_senders")

    def projects(self) -> set[str]:
        """Return all projects that have sessions or memories."""
        return set(self._db.column("list_projects_named"))

    def cursor(self, path: str) -> tuple[str, Cursor] | None:
        """Return a transcript's tool and read position, if known."""
        row = self._db.one("find_cursor", path=path)
        if row is None:
            return None
        return row[0], records(Cursor, [row[1:]])[0]

    def save_cursor(
        self, path: str, tool: str, cursor: Cursor, tally: Tally, *, goes_on: bool = False
    ) -> None:
        """Store a transcript's read position and its counts of unknown and corrupt entries.

        With ``goes_on``, they are added to the previous counts.
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
        """Store the new read position in a rewritten transcript."""
        self._db.run("move_cursor", path=path, **asdict(cursor))

    def save_ingest(self, run: str, started: int, finished: int, **counts: int) -> None:
        """Record an ingest run (times in ms)."""
        self._db.run("save_ingest", id=run, started=started, finished=finished, **counts)

    def last_ingest(self) -> datetime | None:
        """Return the time of the last ingest."""
        row = self._db.one("last_ingest")
        return from_ms(row[1] or row[0]) if row else None

    def seen_files(self) -> list[SeenFile]:
        """Return all transcripts that were read."""
        return self._records(SeenFile, "list_cursors")

    def versions(self) -> dict[str, str]:
        """Return the tool version that last wrote to each transcript, by path."""
        return dict(self._db.all("list_versions_of_files"))

    def find_said(self, session: str, turn_id: str) -> StoredTurn | None:
        """Find a turn in a session (``<tool>:<id>``), or in a copy made when the session was
        resumed.
        """
        tool, _, _ = session.partition(":")
        sessions = self.find(session)
        place = self.place_of(sessions[0].row, turn_id) if sessions else None
        if sessions and place is not None:
            return self.turns_of(sessions[0].row, first=place, limit=1)[0]
        copy = turn_identity(tool, 0, Turn(turn_id, Speaker.OWNER, "", unique=True))
        row = self._db.one("find_turn_by_identity", identity=copy)
        return self.by_rows(row)[row[0]] if row else None

    def main_sessions(self, latest: int) -> list[MainSession]:
        """Return each tool's latest main sessions, and whether the owner spoke in each."""
        return self._records(MainSession, "list_heard", latest=latest)


def index_texts(database: Database, texts: Sequence[tuple[int, str, Sequence[ToolCall]]]) -> None:
    """Add the text and actions of new turns to the full-text index."""
    entries = []
    for row, text, calls in texts:
        did = did_of(calls)
        names = " ".join(identifiers(f"{text}\n{did}"))[:_MAX_NAMES_CHARACTERS]
        entries.append(Words(row, (segment(text), segment(did)), names))
    database.words.add(Indexed.TURNS, entries)


def _portions(batches: Sequence[TurnBatch]) -> Iterator[list[_Identified]]:
    """Group batches so that no turn is repeated in a group. Its first copy must be stored first."""
    portion: list[_Identified] = []
    identities: set[bytes] = set()
    for tool, row, turns in batches:
        identified = {turn_identity(tool, row, turn): turn for turn in turns}
        if not identities.isdisjoint(identified):
            yield portion
            portion, identities = [], set()
        portion.append((row, identified))
        identities.update(identified)
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
    """A range of days, both included, in one project or all."""

    first: date
    last: date
    project: str | None = None

    @property
    def since(self) -> datetime:
        """The start of the first day in local time."""
        return day_interval(self.first)[0]

    @property
    def until(self) -> datetime:
        """The end of the last day in local time."""
        return day_interval(self.last)[1]

    @property
    def _moments(self) -> dict[str, object]:
        return {"since": self.since, "until": self.until, "project": self.project}


class Activity(Store):
    """Daily counts of sessions, memories and model calls."""

    def sessions(self, period: Period) -> list[Row]:
        """Return (day, tool, sessions started, turns), excluding sub-agent and scheduled sessions."""
        days = {"first": period.first, "last": period.last}
        return self._db.all("count_sessions_by_day", **period._moments, **days)

    def sources(self, period: Period) -> list[Row]:
        """Return (speaker, tool or None, count) for valid memories from a period, largest count
        first.
        """
        return self._db.all("count_memories_by_source", **period._moments)

    def calls(self, first: date, last: date) -> list[Row]:
        """Return (day, task, tokens, cost in millionths of a US dollar) for model calls."""
        return self._db.all("count_calls_by_day", first=first, last=last)


# -- Changes since the last check ---------------------------------------------


@frozen
class MemoryChange:
    """A change to a memory.

    ``change`` is ``stored``, ``changed``, ``retired`` (or superseded), ``restored`` or ``removed``.
    ``operation`` is the last operation on the memory.
    """

    change: str
    id: str
    operation: str | None


@frozen
class GrownSession:
    """A session with new turns, and its current turn count."""

    id: str
    tool: str
    turns: int


class Changes:
    """Changes in the database since the last check."""

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
            ids = [change.id for change in changes]
            self._db.run_each("drop_known_memory", "id", ids)
            self._db.run_each("note_memory", "id", ids)
        return changes

    def last_turn(self) -> int:
        """Return the row of the newest turn."""
        return self._db.value("last_read_turn") or 0

    def grown_sessions(self, after_turn: int, most: int) -> list[GrownSession]:
        """Return sessions with turns after a row, sorted by latest turn."""
        rows = self._db.all("list_grown_sessions", turn=after_turn, limit=most)
        return records(GrownSession, rows)

    def operations(self, since: datetime) -> list[tuple[str, str]]:
        """Return (id, action) of operations since a given time, oldest first."""
        return self._db.all("list_operations_since", since=since)

    def doubted(self) -> frozenset[str]:
        """Return the memories that newer ones might have made outdated. This reads all links."""
        return frozenset(self._db.column("list_doubted"))

    def queued(self) -> frozenset[str]:
        """Return memories that await review or are possibly outdated."""
        return frozenset(self._db.column("list_queued"))

    def free_pages(self) -> None:
        """Free the memory that SQLite's page cache uses."""
        self._db.all("give_pages_back")


# -- State of the archive -----------------------------------------------------


@frozen
class Archived:
    """How far a transcript is archived.

    ``kind`` is the contents of its pack, ``pack`` the path in the archive, and ``size`` the pack's
    size. ``raw`` is the number of transcript bytes in the pack, and ``until`` the offset up to
    which the transcript is archived. ``changed`` and ``inode`` are its modification time (ns) and
    inode at the last check. If ``withheld``, its own text is never archived.
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
    """A transcript to archive, with the size and modification time (ns) when it was last read."""

    path: str
    tool: str
    inode: int
    size: int
    changed: int


class ArchiveIndex(Store):
    """A record of which transcripts are archived, and how far."""

    def all(self) -> list[Archived]:
        """Return the archive records of all transcripts, most recently changed first."""
        return self._records(Archived, "list_archived")

    def find(self, path: str) -> Archived | None:
        """Return the archive record of a transcript."""
        return record(Archived, self._db.one("find_archived", path=path))

    def has_below(self, folder: str) -> bool:
        """Return True if a transcript below a folder is archived."""
        return self._db.one("find_archived_below", start=f"{folder}/", end=f"{folder}0") is not None

    def due(self) -> list[Due]:
        """Return transcripts that have changed since they were archived, oldest first."""
        return self._records(Due, "list_archive_due")

    def save(self, archived: Archived) -> None:
        """Record how far a transcript is archived."""
        self._db.run("save_archived", **asdict(archived))

    @runs("withhold_archived")
    def withhold(self, path: str, tool: str) -> None:
        """Exclude a transcript's own text from the archive, but not its indexed turns."""

    def clear(self) -> None:
        self._db.run("clear_archived")

    def sessions_of(self, tool: str, path: str) -> list[int]:
        """Return the rows of sessions that came from a transcript."""
        return self._db.column("list_session_rows_of_file", tool=tool, file=path)


# -- Contents of projects -----------------------------------------------------


Counted = dict[str, tuple[int, datetime | None]]
"""Number of entries and time of the last entry, keyed by project."""


class ProjectContents(Store):
    """The sessions and memories of each project."""

    def sessions(self) -> Counted:
        """Count each project's sessions, excluding sub-agent and scheduled sessions."""
        return self._counted("count_sessions_by_project")

    def memories(self) -> Counted:
        """Count each project's valid memories."""
        return self._counted("count_memories_by_project")

    def _counted(self, name: str) -> Counted:
        return {slug: (count, from_ms(last)) for slug, count, last in self._db.all(name)}

    def memory_ids(self, project: str | None, limit: int) -> list[str]:
        """Return up to ``limit`` memories of a project, active or not."""
        return self._db.column("list_memories_of_project", project=project, limit=limit)

    def names_met(self) -> list[tuple[str, str]]:
        """Return (recorded name, current name) for each project with sessions."""
        return self._db.all("list_names_met")

    @runs("move_sessions")
    def move_sessions(self, former: str, project: str, into: str) -> None:
        """Move sessions that were recorded under the name ``former`` to another project."""

    def has_branch(self, folder: str) -> bool:
        """Return True if any session in a folder was on a git branch."""
        return bool(self._db.value("has_branch", folder=folder))

    def is_shared(self, folder: str) -> bool:
        """Return True if the sessions in a folder name different projects."""
        return bool(self._db.value("is_shared", folder=folder))

    def places(self) -> list[tuple[str | None, str, str | None]]:
        """Return (project, folder, branch) of sessions that do not name a project themselves."""
        return self._db.all("list_places")

    @runs("move_sessions_of_folder")
    def move_sessions_of_folder(
        self, folder: str | None, project: str | None, into: str | None
    ) -> None:
        """Move the sessions in a folder from one project to another."""
