"""Sessions and turns in the index."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from nacre.platform.ids import from_ms, to_ms
from nacre.storage.database import Database, Indexed, Row, Words
from nacre.storage.file_history import DeedIndex
from nacre.storage.turn_rows import did_of, encode, stored_turn, tools_column, turn_identity, turn_row
from nacre.text.open_weights import noted
from nacre.text.passages import identifiers, segment
from nacre.values.cursor import Cursor, Tally
from nacre.values.file_history import Deeds
from nacre.values.filters import SessionFilter
from nacre.values.session import (
    Heard,
    SeenFile,
    Session,
    SessionKind,
    Speaker,
    StoredSession,
    StoredTurn,
    Tokens,
    ToolCall,
    Turn,
    Unlearned,
)

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
            "upsert_session", tool=session.tool, native_id=session.native_id, project=project, title=session.title,
            cwd=session.cwd, branch=session.branch, kind=session.kind.value, parent=session.parent,
            started=to_ms(session.started), tool_version=session.tool_version,
            model=noted(before[0] if before else None, session.model), label=session.label, file=file,
            tokens_input=spent and spent.input, tokens_cached=spent and spent.cached,
            tokens_output=spent and spent.output,
        )  # fmt: skip
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
            placed += [(row, seq, identity, turns[identity]) for seq, identity in self._drop_grown(row, turns, known)]
            placed += [(row, seq, one, turns[one]) for seq, one in enumerate(fresh, start=next_seq[row])]
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
        index_texts(self._db, [(number, turn.text, turn.tool_calls) for number, (_, _, _, turn) in rows])
        done = [Deeds(number, turn.tool_calls) for number, (_, _, _, turn) in rows if turn.tool_calls]
        DeedIndex(self._db).add(done)

    def _known(self, identities: Sequence[bytes]) -> dict[bytes, Row]:
        encoded = json.dumps([identity.hex() for identity in identities])
        return {found[1]: found for found in self._db.all("find_known_turns", identities=encoded)}

    def _drop_grown(
        self, session: int, turns: Mapping[bytes, Turn], known: Mapping[bytes, Row]
    ) -> Iterator[tuple[int, bytes]]:
        """Take out the turns of a session that grew since they were stored; yields where they stood."""
        changed = {
            identity: known[identity] for identity, turn in turns.items()
            if identity in known and known[identity][2] == session and _said(turn) != _said_before(known[identity])
        }  # fmt: skip
        copied = bool(changed) and (self._db.one("count_session_files", session=session) or (0,))[0] > 1
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
                index_texts(self._db, [(row, it.turn.text, it.turn.tool_calls) for row, it in found.items()])

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

    def _gone(self, row: int, ids: Sequence[str], held: str | None, others: Sequence[str | None]) -> list[int]:
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

    def mark_learned(self, one: Unlearned, seq: int, unwritten: int | None, asked: datetime | None) -> None:
        """Extraction has seen the turns before ``seq`` of a session that was listed; a writer, ``asked`` last then, is
        to be shown those from ``unwritten`` on, or none. What another process noted of it meanwhile stands.
        """
        self._db.run(
            "mark_learned", row=one.row, extracted=seq, unwritten=unwritten, asked=to_ms(asked), begin=one.begin,
            unwritten_before=-1 if one.unwritten is None else one.unwritten,
            asked_before=-1 if one.asked is None else to_ms(one.asked),
        )  # fmt: skip

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

    def page(self, wanted: SessionFilter, *, limit: int, offset: int) -> tuple[list[StoredSession], int]:
        """Sessions, the newest first, and how many fit; where the page is empty, those before it."""
        rows = self._db.all(
            "list_sessions", tool=wanted.tool, project=wanted.project, since=to_ms(wanted.since),
            until=to_ms(wanted.until), subagents=wanted.subagents, branch=wanted.branch, model=wanted.model,
            kind=wanted.kind and wanted.kind.value, words=wanted.words, opening=OPENING_TURNS, limit=limit,
            offset=offset,
        )  # fmt: skip
        return [_stored(row[:-1]) for row in rows], rows[0][-1] if rows else offset

    def children(self, row: int) -> list[StoredSession]:
        """The sessions that a session sent out: sub-agents, forks."""
        session = self.get(row).session
        rows = self._db.all("list_children", tool=session.tool, native_id=session.native_id, row=row)
        return [*map(_stored, rows)]

    def active(self, rows: Sequence[int]) -> dict[int, timedelta]:
        """How long sessions were at work, without pauses of more than half an hour; only those with times."""
        found = self._db.all("sum_active", rows=json.dumps(list(rows)), pause=_PAUSE_MS)
        return {row: timedelta(milliseconds=total) for row, total in found}

    def last_turns(self, row: int, limit: int) -> list[StoredTurn]:
        """The end of a session, in order."""
        found = self._db.all("list_last_turns", session=row, limit=limit)
        return [stored_turn((turn_row, row, seq, *rest)) for turn_row, seq, *rest in reversed(found)]

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

    def save_cursor(self, path: str, tool: str, cursor: Cursor, tally: Tally, *, goes_on: bool = False) -> None:
        """Remember where the reading of a file ended, and what in it was not understood.

        The tally adds to what was counted before where the reading ``goes_on`` from there.
        """
        self._db.run(
            "save_cursor", path=path, tool=tool, inode=cursor.inode, offset=cursor.offset, size=cursor.size,
            mtime_ns=cursor.mtime_ns, fingerprint=cursor.fingerprint, carry=json.dumps(cursor.carry),
            unknown=json.dumps(dict(tally.unknown)), corrupt=tally.corrupt + tally.oversized,
            goes_on=goes_on,
        )  # fmt: skip

    def move_cursor(self, path: str, cursor: Cursor) -> None:
        """A transcript was written anew: where the reading of it goes on."""
        self._db.run(
            "move_cursor", path=path, inode=cursor.inode, offset=cursor.offset, size=cursor.size,
            mtime_ns=cursor.mtime_ns, fingerprint=cursor.fingerprint,
        )  # fmt: skip

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
        return [Heard(tool, version, bool(spoke)) for tool, version, spoke in self._db.all("list_heard", latest=latest)]


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
        number, tool, native_id, project, title, cwd, branch, kind, parent, started, ended, version, model, label, file,
        turns, *spent,
    ) = row  # fmt: skip
    tokens = Tokens(*(count or 0 for count in spent)) if any(spent) else None
    session = Session(
        tool=tool, native_id=native_id, title=title, cwd=cwd, branch=branch, label=label, kind=SessionKind(kind),
        parent=parent, started=from_ms(started), tool_version=version, model=model, tokens=tokens,
    )  # fmt: skip
    return StoredSession(number, session, project, from_ms(ended), file, turns)
