"""What agents did, apart from what was said: the files they touched, and what failed."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any

import msgspec

from nacre.base.ids import from_ms, to_ms
from nacre.base.text import identifiers, noted, segment
from nacre.base.times import day_interval
from nacre.store.schema import (
    Database,
    Indexed,
    Row,
    Words,
    deed_clause,
    did_of,
    encode,
    fits_index,
    in_transaction,
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
    SessionKind,
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


class DeedIndex:
    """Reads and writes the index of deeds."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def add(self, done: Sequence[Deeds]) -> None:
        """Index what turns did that are there. Call in the transaction that stores them."""
        uses = [use for deeds in done for use in _uses(deeds)]
        if uses:
            encoded = _encode(uses).decode()
            self._db.run("insert_files", uses=encoded)
            self._db.run("insert_file_uses", uses=encoded)
        self._add_failures(done)

    def index_again(self, done: Sequence[Deeds]) -> None:
        """Add what failed to the full text, for turns that are missing there."""
        self._db.words.drop(Indexed.FAILURES, [deeds.turn for deeds in done])
        self._add_failures(done)

    def _add_failures(self, done: Sequence[Deeds]) -> None:
        failures = [failure for deeds in done if (failure := _failure(deeds))]
        if failures:
            self._db.words.add(Indexed.FAILURES, failures)

    def files_named(self, name: str) -> list[tuple[int, str]]:
        """Files by the last part of their path, in any case: (row, path)."""
        return [(row, path) for row, path in self._db.all("list_files_named", last=name.lower())]

    def all_files(self) -> list[tuple[int, str]]:
        """Every file that was ever touched: (row, path)."""
        return [(row, path) for row, path in self._db.all("list_all_files")]

    def most_changed(self) -> tuple[str, int] | None:
        """A path of the file that most sessions changed, by its name, and how many sessions did."""
        found = self._db.one("find_most_changed_file")
        return (found[0], found[1]) if found else None

    def uses(
        self, files: Sequence[int], wanted: DeedFilter, *, reads: bool, limit: int
    ) -> list[FileUse]:
        """What was done to some files, the newest first; without ``reads`` only what changed them."""
        found = self._db.all(
            "list_file_uses",
            files=json.dumps(list(files)),
            project=wanted.project,
            tool=wanted.tool,
            since=to_ms(wanted.since),
            until=to_ms(wanted.until),
            reads=reads,
            limit=limit,
        )
        return [
            FileUse(file, turn, session, seq, from_ms(time), Action(action))
            for file, turn, session, seq, time, action in found
        ]

    def failures(self, words: Sequence[str], wanted: DeedFilter, *, limit: int) -> list[int]:
        """Turns with calls that failed in words like these, the best first by BM25."""
        return self._db.words.best(Indexed.FAILURES, words, deed_clause(wanted), limit)

    def requests(self, session: int, seq: int, *, by: Speaker, limit: int) -> list[int]:
        """The turns in which somebody asked for something before a place, the latest first."""
        found = self._db.all(
            "list_requests",
            session=session,
            seq=seq,
            speaker=by.value,
            noise=int(_NOISE),
            limit=limit,
        )
        return [row for (row,) in found]


def plain_path(path: str) -> str:
    """A path as the index holds it: with ``/``, without ``./`` at its beginning."""
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


# ----------------------------------------------------------------------------
# Sessions and turns in the index.


_PORTION = 500
_NAMES_CHARACTERS = 8000
_PAUSE_MS = 30 * 60 * 1000
OPENING_TURNS = 12
"""Turns in which a session without a title says what it is about."""
_EVERY = SessionFilter()

TurnBatch = tuple[str, int, Sequence[Turn]]
"""Turns of one session: its tool, its row, and what is said in order."""


_Identified = tuple[int, dict[bytes, Turn]]
_Placed = tuple[int, int, bytes, Turn]


class Sessions:
    """Reads and writes sessions, turns and cursors."""

    def __init__(self, database: Database) -> None:
        self._db = database

    @property
    def database(self) -> Database:
        """The database these sessions lie in."""
        return self._db

    def upsert(self, session: Session, *, project: str | None, file: str | None) -> int:
        """Record what is known of a session; returns its row."""
        spent = session.tokens
        before = self._db.one("model_of_session", tool=session.tool, native_id=session.native_id)
        row = self._db.one(
            "upsert_session",
            tool=session.tool,
            native_id=session.native_id,
            project=project,
            title=session.title,
            cwd=session.cwd,
            branch=session.branch,
            kind=session.kind.value,
            parent=session.parent,
            started=to_ms(session.started),
            tool_version=session.tool_version,
            model=noted(before[0] if before else None, session.model),
            label=session.label,
            file=file,
            tokens_input=spent and spent.input,
            tokens_cached=spent and spent.cached,
            tokens_output=spent and spent.output,
        )
        if row and file:
            self._db.run("note_session_file", session=row[0], file=file)
        return int(row[0]) if row else 0

    def add_turns(self, session: Session, row: int, turns: Sequence[Turn]) -> int:
        """Add turns at the end of a session and to the full text, as :meth:`add_batches` does."""
        return self.add_batches([(session.tool, row, turns)])[0]

    def add_batches(self, batches: Sequence[TurnBatch]) -> list[int]:
        """Add turns at the end of their sessions and to the full text; returns how many of each batch are new.

        A turn that is known already stays where it is; one that grew is written anew in its old place. Where the
        session lies in several files, one of them may be an old copy: there a turn never becomes shorter. The outcome
        is that of one batch after the other, in a tenth of the statements.
        """
        return [count for portion in _portions(batches) for count in self._add_portion(portion)]

    def _add_portion(self, portion: Sequence[_Identified]) -> list[int]:
        known = self._known([identity for _, turns in portion for identity in turns])
        found = self._db.all("next_seqs", sessions=json.dumps(sorted({row for row, _ in portion})))
        next_seq: dict[int, int] = dict(found)
        placed: list[_Placed] = []
        counts = []
        for row, turns in portion:
            fresh = [identity for identity in turns if identity not in known]
            placed += [
                (row, seq, identity, turns[identity])
                for seq, identity in self._drop_grown(row, turns, known)
            ]
            placed += [
                (row, seq, one, turns[one]) for seq, one in enumerate(fresh, start=next_seq[row])
            ]
            next_seq[row] += len(fresh)
            counts.append(len(fresh))
        if placed:
            self._insert(placed)
        return counts

    def _insert(self, placed: Sequence[_Placed]) -> None:
        first = (self._db.one("next_turn_row") or (1,))[0]
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

    def _known(self, identities: Sequence[bytes]) -> dict[bytes, Row]:
        encoded = json.dumps([identity.hex() for identity in identities])
        return {found[1]: found for found in self._db.all("find_known_turns", identities=encoded)}

    def _drop_grown(
        self, session: int, turns: Mapping[bytes, Turn], known: Mapping[bytes, Row]
    ) -> Iterator[tuple[int, bytes]]:
        """Take out the turns of a session that grew since they were stored; yields where they stood."""
        changed = {
            identity: known[identity]
            for identity, turn in turns.items()
            if identity in known
            and known[identity][2] == session
            and _said(turn) != _said_before(known[identity])
        }
        copied = (
            bool(changed) and (self._db.one("count_session_files", session=session) or (0,))[0] > 1
        )
        for identity, row in changed.items():
            if not copied or _length(_said(turns[identity])) > _length(_said_before(row)):
                self._forget_turns([row[0]])
                yield row[3], identity

    def index_again(self, rows: Sequence[int]) -> None:
        """Add turns to the full text from which they are missing."""
        with self._db.transaction():
            for start in range(0, len(rows), _PORTION):
                found = self.by_rows(rows[start : start + _PORTION])
                self._forget_text(list(found))
                index_texts(
                    self._db, [(row, it.turn.text, it.turn.tool_calls) for row, it in found.items()]
                )

    def _forget_text(self, rows: Sequence[int]) -> None:
        self._db.words.drop(Indexed.TURNS, rows)

    def retain(self, tool: str, file: str, present: Mapping[str, Sequence[str]]) -> set[int]:
        """A file was read as a whole: forget what it held before and does not hold any more, unless another file does.

        ``present`` has the ids of its turns by the native id of their session. Returns the sessions that lost turns.
        """
        touched = set()
        for row, native_id, held in self._db.all("list_sessions_of_file", tool=tool, file=file):
            ids = present.get(native_id)
            others = self._db.all("list_other_files", session=row, file=file)
            gone = self._gone(row, ids or (), held, [other for _, other in others])
            self._forget_turns(gone)
            if ids is not None:
                self._db.run("hold_turns", session=row, file=file, held=encode(ids).decode())
            elif others:
                self._db.run("leave_session_file", session=row, file=file)
                self._db.run("move_session", row=row, file=file, other=others[0][0])
            else:
                self._db.run("delete_session", row=row)
                continue
            if gone:
                self._db.run("limit_extracted", row=row)
                self._db.run("delete_unfounded_candidates", row=row)
                touched.add(int(row))
        return touched

    def _gone(
        self, row: int, ids: Sequence[str], held: str | None, others: Sequence[str | None]
    ) -> list[int]:
        """Turns that a file took back; none where nobody knows what another file of the session holds."""
        if not others:
            found = self._db.all("list_turns_gone", session=row, ids=encode(ids).decode())
        elif held is None or None in others:
            return []
        else:
            kept = {*ids, *(turn for other in others if other for turn in json.loads(other))}
            lost = [turn for turn in json.loads(held) if turn not in kept]
            found = self._db.all("list_turns_named", session=row, ids=encode(lost).decode())
        return [int(turn) for (turn,) in found]

    def _forget_turns(self, rows: Sequence[int]) -> None:
        self._forget_text(rows)
        self._db.run_many("delete_turn", [{"row": row} for row in rows])

    def folders(self) -> list[str]:
        """The working directories of all sessions."""
        return [str(folder) for (folder,) in self._db.all("list_folders")]

    def refresh(self, rows: Sequence[int]) -> None:
        """Bring counts and dates of sessions up to their turns."""
        self._db.run("refresh_session", rows=json.dumps(list(rows)))

    def to_extract(self) -> list[Unlearned]:
        """Sessions with turns that extraction, or a writer, has not seen, the oldest first."""
        return [
            Unlearned(row, begin, end, unwritten, from_ms(asked))
            for row, begin, end, unwritten, asked in self._db.all("list_sessions_to_extract")
        ]

    def not_shown(self) -> list[Unlearned]:
        """Sessions that extraction has seen to their end, and that no writer was shown to theirs, the oldest first."""
        return [
            Unlearned(row, end, end, unwritten, from_ms(asked), is_older=True)
            for row, end, unwritten, asked in self._db.all("list_sessions_not_shown")
        ]

    def mark_extracted(self, row: int, seq: int) -> None:
        """Extraction has seen the turns before ``seq``."""
        self._db.run("mark_extracted", row=row, seq=seq)

    def mark_learned(
        self, one: Unlearned, seq: int, unwritten: int | None, asked: datetime | None
    ) -> None:
        """Extraction has seen the turns before ``seq`` of a session that was listed; a writer, ``asked`` last then, is
        to be shown those from ``unwritten`` on, or none. What another process noted of it meanwhile stands.
        """
        self._db.run(
            "mark_learned",
            row=one.row,
            extracted=seq,
            unwritten=unwritten,
            asked=to_ms(asked),
            begin=one.begin,
            unwritten_before=-1 if one.unwritten is None else one.unwritten,
            asked_before=-1 if one.asked is None else to_ms(one.asked),
        )

    def ask_again(self) -> None:
        """Whoever is to be shown what waits is asked as soon as may be, however short ago that was in vain."""
        self._db.run("ask_again")

    def mark_all_extracted(self) -> None:
        """Extraction is to begin with what comes from now on."""
        self._db.run("mark_all_extracted")

    def find(self, reference: str) -> list[StoredSession]:
        """Sessions by ``<tool>:<id>``, by the tool's own id, or by the beginning of either; at most three."""
        tool, _, native_id = reference.partition(":")
        rows = self._db.all("find_session", tool=tool, native_id=native_id) if native_id else []
        rows = rows or self._db.all("find_sessions_by_native_id", native_id=reference, tool=None)
        if native_id and not rows:
            rows = self._db.all("find_sessions_by_native_id", native_id=native_id, tool=tool)
        exact = [row for row in rows if row[2] == reference]
        return [_stored(row) for row in exact or rows]

    def get(self, row: int) -> StoredSession:
        """A session by row. Raises KeyError."""
        found = self._db.one("find_session_by_row", row=row)
        if found is None:
            raise KeyError(row)
        return _stored(found)

    def newest(self, wanted: SessionFilter = _EVERY, *, limit: int = 20) -> list[StoredSession]:
        """Sessions, the newest first."""
        return self.page(wanted, limit=limit, offset=0)[0]

    def page(
        self, wanted: SessionFilter, *, limit: int, offset: int
    ) -> tuple[list[StoredSession], int]:
        """Sessions, the newest first, and how many fit; where the page is empty, those before it."""
        rows = self._db.all(
            "list_sessions",
            tool=wanted.tool,
            project=wanted.project,
            since=to_ms(wanted.since),
            until=to_ms(wanted.until),
            subagents=wanted.subagents,
            branch=wanted.branch,
            model=wanted.model,
            kind=wanted.kind and wanted.kind.value,
            words=wanted.words,
            opening=OPENING_TURNS,
            limit=limit,
            offset=offset,
        )
        return [_stored(row[:-1]) for row in rows], rows[0][-1] if rows else offset

    def children(self, row: int) -> list[StoredSession]:
        """The sessions that a session sent out: sub-agents, forks."""
        session = self.get(row).session
        rows = self._db.all(
            "list_children", tool=session.tool, native_id=session.native_id, row=row
        )
        return [*map(_stored, rows)]

    def active(self, rows: Sequence[int]) -> dict[int, timedelta]:
        """How long sessions were at work, without pauses of more than half an hour; only those with times."""
        found = self._db.all("sum_active", rows=json.dumps(list(rows)), pause=_PAUSE_MS)
        return {row: timedelta(milliseconds=total) for row, total in found}

    def last_turns(self, row: int, limit: int) -> list[StoredTurn]:
        """The end of a session, in order."""
        found = self._db.all("list_last_turns", session=row, limit=limit)
        return [
            stored_turn((turn_row, row, seq, *rest)) for turn_row, seq, *rest in reversed(found)
        ]

    def counts(self) -> list[Row]:
        """(tool, sessions, turns, first time in ms, last time in ms), the busiest tool first."""
        return self._db.all("count_sessions")

    def turns_of(self, row: int, *, first: int = 0, limit: int = -1) -> list[StoredTurn]:
        """A session's turns in order."""
        found = self._db.all("list_turns", session=row, first=first, limit=limit)
        return [stored_turn((turn_row, row, seq, *rest)) for turn_row, seq, *rest in found]

    def whole(self, row: int) -> list[Turn]:
        """A session's turns in order, each with what makes it the same turn elsewhere."""
        tool = self.get(row).session.tool
        identities: dict[int, bytes] = dict(self._db.all("list_identities", session=row))
        found = []
        for item in self.turns_of(row):
            turn = replace(item.turn, unique=True)
            is_unique = turn_identity(tool, row, turn) == identities[item.seq]
            found.append(turn if is_unique else item.turn)
        return found

    def place_of(self, row: int, native_id: str) -> int | None:
        """The seq of a turn in a session."""
        found = self._db.one("find_turn_in_session", session=row, native_id=native_id)
        return int(found[0]) if found else None

    def by_rows(self, rows: Sequence[int]) -> dict[int, StoredTurn]:
        """Turns by row number."""
        found = self._db.all("find_turns", rows=json.dumps(list(rows)))
        return {row[0]: stored_turn(row) for row in found}

    def places(self, rows: Sequence[int]) -> dict[int, tuple[int, int]]:
        """Where turns stand: row → (session row, seq)."""
        found = self._db.all("find_places", rows=json.dumps(list(rows)))
        return {row: (session, seq) for row, session, seq in found}

    def labels(self, tool: str) -> list[str]:
        """What the sessions with a tool are called: rooms, conversations."""
        return [label for (label,) in self._db.all("list_labels", tool=tool)]

    def authors(self) -> set[str]:
        """People named as authors of turns."""
        return {author for (author,) in self._db.all("list_authors")}

    def unknown_senders(self) -> list[tuple[str, int]]:
        """Who wrote to an agent directly and is not known to be the owner, and how often, the most frequent first."""
        return [(author, count) for author, count in self._db.all("list_unknown_senders")]

    def projects(self) -> set[str]:
        """Projects of sessions or of memories."""
        return {project for (project,) in self._db.all("list_projects_named")}

    def cursor(self, path: str) -> tuple[str, Cursor] | None:
        """The tool a file was read as, and where the reading ended."""
        row = self._db.one("find_cursor", path=path)
        if row is None:
            return None
        tool, inode, offset, size, mtime_ns, fingerprint, carry = row
        return tool, Cursor(inode, offset, size, mtime_ns, fingerprint, json.loads(carry))

    def save_cursor(
        self, path: str, tool: str, cursor: Cursor, tally: Tally, *, goes_on: bool = False
    ) -> None:
        """Remember where the reading of a file ended, and what in it was not understood.

        The tally adds to what was counted before where the reading ``goes_on`` from there.
        """
        self._db.run(
            "save_cursor",
            path=path,
            tool=tool,
            inode=cursor.inode,
            offset=cursor.offset,
            size=cursor.size,
            mtime_ns=cursor.mtime_ns,
            fingerprint=cursor.fingerprint,
            carry=json.dumps(cursor.carry),
            unknown=json.dumps(dict(tally.unknown)),
            corrupt=tally.corrupt + tally.oversized,
            goes_on=goes_on,
        )

    def move_cursor(self, path: str, cursor: Cursor) -> None:
        """A transcript was written anew: where the reading of it goes on."""
        self._db.run(
            "move_cursor",
            path=path,
            inode=cursor.inode,
            offset=cursor.offset,
            size=cursor.size,
            mtime_ns=cursor.mtime_ns,
            fingerprint=cursor.fingerprint,
        )

    def save_ingest(self, run: str, started: int, finished: int, **counts: int) -> None:
        """Remember one run of ingest; times in milliseconds."""
        self._db.run("save_ingest", id=run, started=started, finished=finished, **counts)

    def last_ingest(self) -> datetime | None:
        """When transcripts were last read."""
        row = self._db.one("last_ingest")
        return from_ms(row[1] or row[0]) if row else None

    def seen_files(self) -> list[SeenFile]:
        """Every transcript that was read."""
        return [
            SeenFile(path, tool, size, mtime_ns, json.loads(unknown), corrupt)
            for path, tool, size, mtime_ns, unknown, corrupt in self._db.all("list_cursors")
        ]

    def versions(self) -> dict[str, str]:
        """The last version of its tool that wrote into a transcript, by the transcript's path."""
        return dict(self._db.all("list_versions_of_files"))

    def find_said(self, session: str, turn_id: str) -> StoredTurn | None:
        """The turn that was said in a session (``<tool>:<id>``), also where only a copy of that session is left.

        A tool that resumes a session under another id keeps the ids of its turns, where those are unique.
        """
        tool, _, _ = session.partition(":")
        found = self.find(session)
        place = self.place_of(found[0].row, turn_id) if found else None
        if found and place is not None:
            return self.turns_of(found[0].row, first=place, limit=1)[0]
        copy = turn_identity(tool, 0, Turn(turn_id, Speaker.OWNER, "", unique=True))
        found_copy = self._db.one("find_turn_by_identity", identity=copy)
        return self.by_rows(found_copy)[found_copy[0]] if found_copy else None

    def heard(self, latest: int) -> list[Heard]:
        """Of every tool so many main sessions, those that began last first: does the owner say something in them?"""
        return [
            Heard(tool, version, bool(spoke))
            for tool, version, spoke in self._db.all("list_heard", latest=latest)
        ]


def index_texts(database: Database, texts: Sequence[tuple[int, str, Sequence[ToolCall]]]) -> None:
    """Add to the full text what turns say and did, by their rows, which must not be in it yet."""
    found = []
    for row, text, calls in texts:
        did = did_of(calls)
        names = " ".join(identifiers(f"{text}\n{did}"))[:_NAMES_CHARACTERS]
        found.append(Words(row, (segment(text), segment(did)), names))
    database.words.add(Indexed.TURNS, found)


def _portions(batches: Sequence[TurnBatch]) -> Iterator[list[_Identified]]:
    """Batches with the identities of their turns, cut before one that repeats a turn: it must find it stored."""
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


def _said(turn: Turn) -> tuple[str, str]:
    return turn.text, tools_column(turn) or ""


def _said_before(known: Row) -> tuple[str, str]:
    return known[4], known[5] or ""


def _length(said: tuple[str, str]) -> int:
    return len(said[0]) + len(said[1])


def _stored(row: Row) -> StoredSession:
    (
        number,
        tool,
        native_id,
        project,
        title,
        cwd,
        branch,
        kind,
        parent,
        started,
        ended,
        version,
        model,
        label,
        file,
        turns,
        *spent,
    ) = row
    tokens = Tokens(*(count or 0 for count in spent)) if any(spent) else None
    session = Session(
        tool=tool,
        native_id=native_id,
        title=title,
        cwd=cwd,
        branch=branch,
        label=label,
        kind=SessionKind(kind),
        parent=parent,
        started=from_ms(started),
        tool_version=version,
        model=model,
        tokens=tokens,
    )
    return StoredSession(number, session, project, from_ms(ended), file, turns)


# ----------------------------------------------------------------------------
# What happened when: sessions, memories, recalls, operations and calls of models, counted by day.
#
# Days are those of the owner's clock. ``since`` and ``until`` are half open, ``first`` and ``last``
# days are not.


@dataclass(frozen=True, slots=True)
class Period:
    """From the first day to the last, of a project or of everything."""

    first: date
    last: date
    project: str | None = None

    @property
    def since(self) -> datetime:
        """Its beginning, as the owner's clock has it."""
        return day_interval(self.first)[0]

    @property
    def until(self) -> datetime:
        """The midnight after its last day."""
        return day_interval(self.last)[1]

    @property
    def _moments(self) -> dict[str, int | str | None]:
        return {"since": to_ms(self.since), "until": to_ms(self.until), "project": self.project}


class Activity:
    """Counts what is in the database."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def sessions(self, period: Period) -> list[Row]:
        """(day, tool, sessions that began, turns), without those of sub-agents and schedulers."""
        days = {"first": period.first.isoformat(), "last": period.last.isoformat()}
        return self._db.all("count_sessions_by_day", **period._moments, **days)

    def memories(self, last: date, project: str | None) -> list[Row]:
        """(day, kind, 1 for recorded and -1 for ended, memories), from the first one on."""
        return self._db.all("count_memories_by_day", last=last.isoformat(), project=project)

    def sources(self, period: Period) -> list[Row]:
        """(speaker, tool or ``None``, memories) of what was recorded and holds, the most first."""
        return self._db.all("count_memories_by_source", **period._moments)

    def ages(self, now: datetime, project: str | None) -> list[Row]:
        """(days since it was said last, memories, how many of them may be out of date) of what holds."""
        return self._db.all("count_memories_by_age", now=to_ms(now), project=project)

    def use(self, project: str | None) -> tuple[int, int, int]:
        """Memories that hold and were never recalled, up to five times, more often."""
        row = self._db.one("count_memories_by_use", project=project) or (0, 0, 0)
        return row[0], row[1], row[2]

    def recalls(self, period: Period) -> list[Row]:
        """(day, recalls)."""
        return self._db.all("count_recalls_by_day", **period._moments)

    def questions(self, period: Period, kind: str, unanswered: Collection[str]) -> list[Row]:
        """(day, whether answered, questions) of traces of a kind; some outcomes mean that there was no answer."""
        moments = {"since": to_ms(period.since), "until": to_ms(period.until)}
        return self._db.all(
            "count_questions_by_day", kind=kind, unanswered=json.dumps(list(unanswered)), **moments
        )

    def calls(self, first: date, last: date) -> list[Row]:
        """(day, task, tokens, millionths of a US dollar)."""
        return self._db.all("count_calls_by_day", first=first.isoformat(), last=last.isoformat())


# ----------------------------------------------------------------------------
# What changed in the database since it was looked at last, whichever process changed it.


@dataclass(frozen=True, slots=True)
class MemoryChange:
    """``change`` is ``stored``, ``changed``, ``retired``, ``restored`` or ``removed``; what takes the place of a memory
    retires it. ``operation`` is the id of the last operation that touched it."""

    change: str
    id: str
    operation: str | None


@dataclass(frozen=True, slots=True)
class GrownSession:
    """A session with new turns: its id, its tool, and how many turns it has now."""

    id: str
    tool: str
    turns: int


class Changes:
    """Compares the memories with those of the last look, which a temporary table of the connection keeps."""

    def __init__(self, database: Database) -> None:
        self._db = database
        database.run("create_known_memories")
        database.run("create_memory_states")
        with database.reading():
            database.run("note_memories")

    def memories(self) -> list[MemoryChange]:
        """What became of memories since the last call."""
        with self._db.reading():
            found = [MemoryChange(*row) for row in self._db.all("list_memory_changes")]
            ids = [{"id": one.id} for one in found]
            self._db.run_many("drop_known_memory", ids)
            self._db.run_many("note_memory", ids)
        return found

    def last_turn(self) -> int:
        """The number of the turn that was read last."""
        return int((self._db.one("last_read_turn") or (0,))[0])

    def grown_sessions(self, after_turn: int, most: int) -> list[GrownSession]:
        """Sessions with turns that were read after that one, the one that grew last first."""
        return [
            GrownSession(*row)
            for row in self._db.all("list_grown_sessions", turn=after_turn, limit=most)
        ]

    def operations(self, since: datetime) -> list[tuple[str, str]]:
        """Id and action of operations since a time, the oldest first."""
        return [
            (row[0], row[1]) for row in self._db.all("list_operations_since", since=to_ms(since))
        ]

    def doubted(self) -> frozenset[str]:
        """Memories that a newer one may have outdated; all links are read."""
        return frozenset(row[0] for row in self._db.all("list_doubted"))

    def queued(self) -> frozenset[str]:
        """Memories to be reviewed, or perhaps out of date."""
        return frozenset(row[0] for row in self._db.all("list_queued"))

    def last_trace(self) -> str | None:
        """The trace that ended last, as ids go by time."""
        row = self._db.one("last_trace")
        return str(row[0]) if row and row[0] else None

    def free_pages(self) -> None:
        """Give back the memory that reading took."""
        self._db.all("give_pages_back")


# ----------------------------------------------------------------------------
# What the archive holds, as its packs tell it.


@dataclass(frozen=True, slots=True)
class Archived:
    """How far a transcript is archived.

    ``kind`` is what its pack holds; ``pack`` is the pack's path below the archive, ``None`` while there is none.
    Bytes up to ``until`` are in it, of which there are ``raw`` in all, the pack has ``size``. ``changed`` (ns) and
    ``inode`` are those of the transcript when it was looked at last. ``withheld``: never its own words.
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


@dataclass(frozen=True, slots=True)
class Due:
    """A transcript that was read since it was archived last: up to ``size``; ``changed`` then (ns)."""

    path: str
    tool: str
    inode: int
    size: int
    changed: int


@dataclass(frozen=True, slots=True)
class Part:
    """A segment of a pack."""

    start: int
    until: int
    digest: bytes
    is_copy: bool


class ArchiveIndex:
    """Reads and writes ``archived`` and ``archive_segments``."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def all(self) -> list[Archived]:
        """Everything, what changed last first."""
        return [_archived(row) for row in self._db.all("list_archived")]

    def find(self, path: str) -> Archived | None:
        """What is archived of a transcript."""
        row = self._db.one("find_archived", path=path)
        return _archived(row) if row else None

    def alike(self, fingerprint: str, path: str) -> list[Archived]:
        """Other transcripts that begin with the same bytes."""
        found = self._db.all("find_archived_alike", fingerprint=fingerprint, path=path)
        return [_archived(row) for row in found]

    def has_below(self, folder: str) -> bool:
        """Whether anything is archived of transcripts below a folder."""
        return self._db.one("find_archived_below", start=f"{folder}/", end=f"{folder}0") is not None

    def due(self) -> list[Due]:
        """Transcripts that were read further than they are archived, the oldest first."""
        return [Due(*row) for row in self._db.all("list_archive_due")]

    @in_transaction
    def save(self, archived: Archived, parts: Sequence[Part]) -> None:
        """Remember what a pack holds."""
        self._db.run(
            "save_archived",
            path=archived.path,
            tool=archived.tool,
            kind=archived.kind,
            pack=archived.pack,
            until=archived.until,
            size=archived.size,
            raw=archived.raw,
            inode=archived.inode,
            fingerprint=archived.fingerprint,
            changed=archived.changed,
            withheld=int(archived.withheld),
        )
        self._db.run("delete_archive_segments", path=archived.path)
        self._db.run_many(
            "insert_archive_segment",
            [
                {
                    "path": archived.path,
                    "number": number,
                    "start": part.start,
                    "until": part.until,
                    "digest": part.digest,
                    "is_copy": int(part.is_copy),
                }
                for number, part in enumerate(parts)
            ],
        )

    def rename(self, before: str, path: str) -> None:
        """A transcript goes by another name."""
        self._db.run("rename_archived", before=before, path=path)

    def withhold(self, path: str, tool: str) -> None:
        """Of this transcript only what the index has may be archived from now on."""
        self._db.run("withhold_archived", path=path, tool=tool)

    def delete(self, path: str) -> None:
        """Nothing is known of a transcript any more."""
        self._db.run("delete_archived", path=path)

    def clear(self) -> None:
        """Nothing is known."""
        self._db.run("clear_archived")

    def parts(self, path: str) -> list[Part]:
        """The segments of a transcript's pack, in order."""
        found = self._db.all("list_archive_segments", path=path)
        return [
            Part(start, until, digest, bool(is_copy)) for start, until, digest, is_copy in found
        ]

    def holder(self, digest: bytes, *, beside: str) -> str | None:
        """A pack that has the bytes of a segment, not counting that of one transcript."""
        row = self._db.one("find_archive_segment", digest=digest, path=beside)
        return str(row[0]) if row else None

    def copies(self, path: str) -> list[str]:
        """Transcripts whose packs rely on the bytes in that of this one."""
        return [str(other) for (other,) in self._db.all("list_archive_copies", path=path)]

    def sessions_of(self, tool: str, path: str) -> list[int]:
        """Rows of the sessions that were read from a transcript."""
        return [row for (row,) in self._db.all("list_session_rows_of_file", tool=tool, file=path)]


def _archived(row: Sequence[Any]) -> Archived:
    *values, withheld = row
    return replace(Archived(*values), withheld=bool(withheld))


# ----------------------------------------------------------------------------
# What belongs to projects: how much of it there is, and sessions that follow a project which has
# another name now.


Counted = dict[str, tuple[int, datetime | None]]
"""By project: how many, and when the last was."""


class ProjectContents:
    """Reads what belongs to projects, and writes to which one sessions belong."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def sessions(self) -> Counted:
        """The sessions of each project, without those of sub-agents and schedulers."""
        return {
            slug: (count, from_ms(last))
            for slug, count, last in self._db.all("count_sessions_by_project")
        }

    def memories(self) -> Counted:
        """The memories that hold in each project."""
        return {
            slug: (count, from_ms(last))
            for slug, count, last in self._db.all("count_memories_by_project")
        }

    def memory_ids(self, project: str, limit: int) -> list[str]:
        """The memories of a project in any state, so many at most."""
        return [
            one for (one,) in self._db.all("list_memories_of_project", project=project, limit=limit)
        ]

    def names_met(self) -> list[tuple[str, str]]:
        """What projects of sessions were called when these were met, and are called now."""
        return [(met, now) for met, now in self._db.all("list_names_met")]

    def move_sessions(self, met: str, project: str, into: str) -> None:
        """Sessions of a project that was called ``met`` when they were met belong to another one."""
        self._db.run("move_sessions", met=met, project=project, into=into)

    def folders(self, project: str) -> list[str | None]:
        """The folders of sessions that were met as a project's."""
        return [folder for (folder,) in self._db.all("list_folders_of_sessions", project=project)]

    def move_sessions_of_folder(self, folder: str | None, project: str, into: str) -> None:
        """Sessions in a folder that were met as a project's belong to another one."""
        self._db.run("move_sessions_of_folder", folder=folder, project=project, into=into)
