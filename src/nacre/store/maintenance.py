"""State that no file of the vault holds, carried from the database that was into the one that takes its place."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw
import msgspec

from nacre.base import json as json_values
from nacre.base.ids import at_ms, to_ms
from nacre.errors import NacreError, StoreBusy
from nacre.store.gateway import GatewayStore
from nacre.store.journal import Traces
from nacre.store.review import Candidates
from nacre.store.schema import UNREADABLE, Database, Indexed, Row, in_transaction, stored_calls
from nacre.store.sessions import DeedIndex, index_texts
from nacre.store.sqlite import FileDatabase, about_other, damaged
from nacre.values.memory import SessionPlace, TurnPlace, TurnText
from nacre.values.session import Deeds

_OURS = "{0} IN (SELECT id FROM main.memories)"

CARRIED = {
    "model_calls": ("what models cost", "true"),
    "model_refusals": ("which calls the budget stopped", "true"),
    "model_health": ("which models failed", "true"),
    "model_answers": ("what models answered", "true"),
    "traces": ("traces", "json_valid(steps)"),
    "candidates": ("candidates", "true"),
    "usage": ("how memories were used", _OURS.format("memory")),
    "uses": ("when memories were used", _OURS.format("memory")),
    "usage_values": ("how far use was counted", "true"),
    "co_recall": (
        "which memories were used together",
        f"{_OURS.format('a')} AND {_OURS.format('b')}",
    ),
    "conflicts": ("judged contradictions", f"{_OURS.format('older')} AND {_OURS.format('newer')}"),
    "claims_waiting": ("which claims were pending", _OURS.format("memory")),
    "claimless": ("which memories claim nothing", _OURS.format("memory")),
    "unsettled": ("which memories were to be compared", _OURS.format("memory")),
    "stale_memories": ("which memories were stale", _OURS.format("memory")),
    "review_queue": ("what waited for review", "carry_review_queue"),
    "sessions": ("what was learned from sessions", "carry_sessions"),
    "code_projects": ("which code was read", "true"),
    "code_files": ("files of code", "true"),
    "code_symbols": ("symbols of code", "true"),
    "code_edges": ("what code calls", "true"),
    "code_outside": ("what code imports", "true"),
    "ingest_log": ("when transcripts were read", "true"),
}
"""Table → its contents in words, and the condition for a row to be carried, or the statement that carries them."""

DERIVED = frozenset(
    "archive_segments archived claims code_mentions code_mentions_read confirmations embedding file_uses "
    "files forgetting_values links memories memory_names memory_vectors mentions passage_bits passages "
    "project_dependencies project_keys projects session_files standing_retirements "
    "tags tombstones transcript_cursors turn_passages turns unreadable_files vault_files".split()
)
"""Tables that are read anew from the vault, the ledger, transcripts and the archive."""

DISCARDED = frozenset(
    "git_state intents ledger_end operations other_embedding other_memory_vectors other_passage_bits other_passages "
    "other_turn_passages touched".split()
)
"""Tables that say something of one database file, of a model that is not in use, or what git tells again."""

_OF_READING = (apsw.SQLITE_IOERR_READ, apsw.SQLITE_IOERR_SHORT_READ)
_OF_WRITING = (
    apsw.FullError,
    apsw.ReadOnlyError,
    apsw.CantOpenError,
    apsw.PermissionsError,
    apsw.BusyError,
)


def carry_over(earlier: Path, database: FileDatabase) -> list[str]:
    """Carry the rows of ``CARRIED``; returns, in words, the tables that the earlier database could not tell any more.

    Both are of the present schema. A table with a row that cannot be read is left behind. Raises StoreUnusable,
    StoreBusy, Unavailable where ``database`` cannot be written to.
    """
    lost = []
    database.run("attach_earlier", path=str(earlier))
    try:
        for table, (told, condition) in CARRIED.items():
            try:
                with database.transaction():
                    if condition.startswith("carry_"):
                        database.run(condition)
                    else:  # with a condition: without one SQLite would copy records of whatever types
                        copied = f"SELECT * FROM earlier.{table} WHERE {condition}"  # noqa: S608 - names from above
                        database.many(f"INSERT OR REPLACE INTO main.{table} {copied}", [()])
                    if not database.is_readable(table):
                        raise damaged(earlier)
                    if table == "traces":
                        Traces(database).latest(limit=-1)
                    if table == "candidates":
                        Candidates(database).waiting()
            except (NacreError, *UNREADABLE) as error:
                if not _is_of_reading(error):
                    raise
                lost.append(told)
    finally:
        database.run("detach_earlier")
    return lost


def _is_of_reading(error: Exception) -> bool:
    """Whether an error says that rows cannot be read, and not that they cannot be written."""
    cause = error.__cause__
    if isinstance(cause, apsw.IOError):
        return getattr(cause, "extendedresult", 0) in _OF_READING
    return not isinstance(cause, _OF_WRITING)


# ----------------------------------------------------------------------------
# Delete what was forgotten from every table, and the bytes of it from the file.


_TURNS_A_TRANSACTION = 60
_STEP = 5000
_MERGES = (
    "merge_turns_fts",
    "merge_turns_parts",
    "merge_failures_fts",
    "merge_memories_fts",
    "merge_memories_parts",
)
_PAGES_A_MERGE = 100
_OF_MEMORY = (
    "erase_links",
    "erase_usage",
    "erase_uses",
    "erase_co_recall",
    "erase_reviews",
    "erase_unsettled",
    "delete_claims_waiting",
    "erase_claimless",
    "erase_conflicts",
    "erase_intents",
    "erase_operations",
    "erase_touched",
)


class Erasing:
    """What forgetting reads and deletes."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def sessions(self) -> list[SessionPlace]:
        """Every session."""
        return [SessionPlace(*row) for row in self._db.all("list_session_places")]

    def turn_places(self) -> Iterator[TurnPlace]:
        """Every turn, read in pieces."""
        after = 0
        while found := self._db.all("list_turn_places", after=after, limit=_STEP):
            yield from (TurnPlace(*row) for row in found)
            after = int(found[-1][0])

    def places_of(self, rows: Sequence[int]) -> list[TurnPlace]:
        """Some turns by row."""
        return [
            TurnPlace(*row) for row in self._db.all("list_turn_keys", rows=json.dumps(list(rows)))
        ]

    def places_in(self, session: int) -> list[TurnPlace]:
        """The turns of a session."""
        return [
            TurnPlace(*row) for row in self._db.all("list_turn_keys_of_session", session=session)
        ]

    def turn_texts(self) -> Iterator[TurnText]:
        """What every turn says, read in pieces."""
        after = 0
        while found := self._db.all("list_turn_texts", after=after, limit=_STEP):
            for row, session, text, tools, author in found:
                yield TurnText(row, session, text, stored_calls(tools), author)
            after = int(found[-1][0])

    def turns_before(
        self, moment: datetime, projects: Sequence[str] | None
    ) -> list[tuple[int, int]]:
        """Turns said before a time, of some projects or of all: (row, session row)."""
        names = json.dumps(list(projects)) if projects is not None else None
        return [
            (row, session)
            for row, session in self._db.all(
                "list_turns_before", projects=names, before=to_ms(moment)
            )
        ]

    def linking(self, memory_ids: Sequence[str]) -> list[str]:
        """Memories that name some others."""
        return [
            memory for (memory,) in self._db.all("list_linking", ids=json.dumps(list(memory_ids)))
        ]

    def alike(self, memory_ids: Sequence[str]) -> list[str]:
        """Memories, in any state, that say the same in the same words; with those that were asked about."""
        return [
            memory
            for (memory,) in self._db.all("list_memories_alike", ids=json.dumps(list(memory_ids)))
        ]

    def delete_turns(self, session: int, rows: Sequence[int]) -> None:
        """Delete turns of a session with their full text, a few hundred a transaction: others can write in between.

        The session is brought up to those that are left each time: after a crash nothing would tell that it was not.
        """
        for start in range(0, len(rows), _TURNS_A_TRANSACTION):
            portion = rows[start : start + _TURNS_A_TRANSACTION]
            with self._db.transaction():
                self._db.words.drop(Indexed.TURNS, portion)
                self._db.run_many("delete_turn", [{"row": row} for row in portion])
                self._db.run_many("limit_extracted", [{"row": session}])
                self._db.run("refresh_session", rows=json.dumps([session]))

    def delete_sessions(self, rows: Sequence[int]) -> None:
        """Delete sessions whose turns are gone."""
        with self._db.transaction():
            self._db.run_many("delete_session", [{"row": row} for row in rows])

    def clear_titles(self, rows: Sequence[int]) -> None:
        """Sessions lose their titles."""
        with self._db.transaction():
            self._db.run_many("clear_title", [{"row": row} for row in rows])

    def delete_cursor(self, path: str) -> None:
        """The file is read from its beginning next time."""
        self._db.run("delete_cursor", path=path)

    def returned(self) -> set[str]:
        """The runs that forgot what is there again: a memory, or the session of one."""
        return {run for (run,) in self._db.all("list_runs_returned")}

    def delete_held_cursors(self) -> None:
        """Files that something was left out of are read again."""
        self._db.run("delete_cursors_at_beginning")

    @in_transaction
    def delete_traces(self, memory_id: str) -> None:
        """Delete what is kept about a memory beside its own row."""
        for statement in _OF_MEMORY:
            self._db.run(statement, id=memory_id)

    @in_transaction
    def clear_journal(self, quotes: Callable[[str], object]) -> None:
        """Take from the journal whatever quotes a text: what was written cannot be undone then."""
        texts = self._db.all("list_journal_texts")
        written = [seq for seq, *said in texts if any(map(quotes, said))]
        operations = self._db.all("list_operation_texts")
        told = [operation for operation, *said in operations if any(map(quotes, said))]
        paths = [
            path
            for path, *said in self._db.all("list_touched_paths")
            if any(map(quotes, (path, *said)))
        ]
        self._db.run_many("delete_intent_for_good", [{"seq": seq} for seq in written])
        self._db.run_many("erase_operation_words", [{"id": operation} for operation in told])
        self._db.run_many("delete_touched_path", [{"path": path} for path in paths])

    def blank_passages(self) -> int:
        """Take hash, vector and bits of passages that nobody says any more; returns how many.

        Those of another model, which are in the making, go as those in use do.
        """
        return self._blank_all(str) + self._blank_all(about_other)

    def _blank_all(self, named: Callable[[str], str]) -> int:
        rows = [row for (row,) in self._db.all(named("list_orphaned_passages"))]
        for start in range(0, len(rows), _TURNS_A_TRANSACTION):
            with self._db.transaction():
                for row in rows[start : start + _TURNS_A_TRANSACTION]:
                    self._blank(row, named)
        return len(rows)

    def prune_names(self) -> None:
        """Delete identifiers that no text holds any more, on a server."""
        self._db.run("prune_names")

    def merge_full_text(self) -> None:
        """Leave no deleted word in the full text, in steps that let others write."""
        for merge in _MERGES:
            pages = -_PAGES_A_MERGE
            while self._db.run(merge, pages=pages) >= 2:  # below: nothing was left to merge
                pages = _PAGES_A_MERGE

    def _blank(self, row: int, named: Callable[[str], str]) -> None:
        self._db.run(named("blank_passage"), row=row)
        found = self._db.one(named("find_bits"), row=row)
        if found is None or not found[1] or row >= found[0] + found[1]:
            return
        first, count, bits = found
        width = len(bits) // count
        at = (row - first) * width
        self._db.run(
            named("update_bits"), first=first, bits=bits[:at] + bytes(width) + bits[at + width :]
        )


# ----------------------------------------------------------------------------
# Forget in the gateway's database: also what no transcript has, or not yet.


_WORDS = ("text", "content", "name", "summary", "reason")
"""Fields of messages, parts of answers and lines that hold what somebody wrote."""

_ERASE = {"inbound": "finish_inbound", "outbound": "drop_outbound", "line": "drop_pending_line"}


@dataclass(frozen=True, slots=True)
class Held:
    """Words that the database holds until they are answered, sent or in a transcript: in the row ``seq`` of ``kind``
    (``inbound``, ``outbound`` or ``line``). ``session`` is the one that goes on there; empty where none does."""

    kind: str
    seq: int
    session: str
    texts: tuple[str, ...]
    at: datetime


class GatewayErasure(GatewayStore):
    """The gateway's database, to be forgotten in."""

    def held(self) -> list[Held]:
        """All such words."""
        return [
            Held(
                kind,
                seq,
                session or "",
                tuple(_texts(json_values.decode(text.encode(), Any))),
                at_ms(at),
            )
            for kind, seq, session, text, at in self._db.all("list_held_words")
        ]

    def names(self) -> list[str]:
        """Names of conversations, and of those who asked to be let in."""
        return [name for (name,) in self._db.all("list_chat_names")]

    @in_transaction
    def erase_held(self, held: Iterable[Held], names: Iterable[str] = ()) -> None:
        """Nothing is kept of such words: they are answered and sent no more. Nor are names."""
        for one in held:
            self._db.run(_ERASE[one.kind], seq=one.seq)
        for name in names:
            self._db.run("clear_chat_name", called=name)
            self._db.run("clear_pairing_name", called=name)

    @in_transaction
    def erase(self, lines: Iterable[str], pending: Iterable[int]) -> None:
        """Nothing is kept of what lines told, by their ids, nor of lines that wait, by their numbers."""
        for line in lines:
            self._db.run("erase_inbound", line=line)
            self._db.run("erase_outbound", line=line)
        for seq in pending:
            self._db.run("drop_pending_line", seq=seq)

    def delete_session(self, session: str) -> None:
        """A session goes: the next message begins another one."""
        self._db.run("delete_chat_session", id=session)

    def compact(self) -> bool:
        """Leave no byte of what is gone; ``False`` while another process still reads it. Raises StoreBusy."""
        return self._db.compact()


def _texts(value: Any) -> Iterator[str]:
    for name, one in (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    ):
        if isinstance(one, str) and name in _WORDS:
            yield one
        yield from _texts(one)


# ----------------------------------------------------------------------------
# Makes the rows of one database those of another, whichever engines they are of.
#
# Both are read in the order of their keys, side by side; what differs is written. So a copy that was
# interrupted goes on,
# one during which the source changed is mended by another pass, and a pass that finds nothing to
# write is the proof.


TABLES = (
    "sessions",
    "turns",
    "memories",
    "tags",
    "confirmations",
    "links",
    "mentions",
    "memory_names",
    "claims",
    "claimless",
    "claims_waiting",
    "conflicts",
    "candidates",
    "unsettled",
    "stale_memories",
    "projects",
    "project_keys",
    "project_dependencies",
    "vault_files",
    "files",
    "file_uses",
    "session_files",
    "passages",
    "turn_passages",
    "passage_bits",
    "memory_vectors",
    "embedding",
    "other_passages",
    "other_turn_passages",
    "other_passage_bits",
    "other_memory_vectors",
    "other_embedding",
    "usage",
    "uses",
    "usage_values",
    "co_recall",
    "review_queue",
    "operations",
    "intents",
    "touched",
    "tombstones",
    "standing_retirements",
    "forgetting_values",
    "archived",
    "archive_segments",
    "transcript_cursors",
    "ingest_log",
    "model_calls",
    "model_refusals",
    "model_health",
    "model_answers",
    "traces",
    "code_projects",
    "code_files",
    "code_symbols",
    "code_edges",
    "code_outside",
    "code_mentions",
    "code_mentions_read",
)
"""What is carried: parents before their children, and what triggers of a table touch behind it."""

OF_ONE_ENGINE = frozenset({"ledger_end", "git_state", "names", "unreadable_files"})
"""Tables of both that say something of the files, or of the full text, of one of them."""

_AFRESH = {"turns": (Indexed.TURNS, Indexed.FAILURES), "memories": (Indexed.MEMORIES,)}
"""Tables with full text. A row of theirs that is another one goes with all that hangs on it, and comes again."""

_KEYS = "SELECT name FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk"
_PAGE = 2_000
_PORTION = 1_000
_MOST_PASSES = 10

Stamp = Callable[[dict[str, Any]], dict[str, Any]]
"""Makes a row of the source what it is to be in the target."""


@dataclass(frozen=True, slots=True)
class Mirrored:
    """What stands in both: rows by table. ``written`` were written or removed, over all passes; ``is_settled`` says
    that the last one wrote nothing."""

    rows: Mapping[str, int]
    written: int
    passes: int
    is_settled: bool


@dataclass(frozen=True, slots=True)
class _Table:
    name: str
    columns: tuple[str, ...]
    keys: tuple[int, ...]
    """Where the columns of its key stand."""

    def key(self, row: Row) -> Row:
        return tuple(row[at] for at in self.keys)

    @property
    def key_columns(self) -> list[str]:
        return [quoted(self.columns[at]) for at in self.keys]


class Mirror:
    """Carries rows from ``source`` to ``target``. ``stamps`` say by table what a row is there."""

    def __init__(self, source: Database, target: Database, stamps: Mapping[str, Stamp]) -> None:
        self._source = source
        self._target = target
        self._stamps = stamps
        file = target if source.is_server else source
        self._tables = [_table(file, name) for name in TABLES]

    def run(self, notify: Callable[[str, int], object], index: Callable[[bool], int]) -> Mirrored:
        """Carry until a pass finds nothing to do, and tell which table one is at, and how many rows were read.

        ``index`` makes the full text that is missing; it is told whether rows came, and returns how many it made. Ends
        after ten passes: then somebody writes all the time.
        """
        written = passes = 0
        changed = 1
        rows: dict[str, int] = {}
        while changed and passes < _MOST_PASSES:
            passes += 1
            removed = sum(self._remove(table) for table in reversed(self._tables))
            added = 0
            for table in self._tables:
                rows[table.name], new = self._add(table, notify)
                added += new
            changed = removed + added + index(bool(added))
            written += changed
        return Mirrored(rows, written, passes, is_settled=not changed)

    def number_above(self) -> None:
        """What the target stores next is numbered above what comes with its numbers."""
        last = (self._source.one("next_turn_row") or (1,))[0] - 1
        self._target.run("keep_turn_rows_above", row=last)
        for table, column in self._target.all("list_numbered") if self._target.is_server else ():
            (most,) = self._source.rows(f"SELECT max({column}) FROM {table}")[0]  # noqa: S608 - names of ours
            self._target.one("keep_rows_above", held=table, row=most or 0)

    def _remove(self, table: _Table) -> int:
        """Rows of the target that the source has not; of tables with full text also those that are others there."""
        gone: list[Row] = []
        removed = 0
        if not self._target.rows(f"SELECT 1 FROM {table.name} LIMIT 1"):  # noqa: S608 - names of ours
            return 0
        for wanted, present in self._pairs(table):
            if present is not None and (
                wanted is None or (table.name in _AFRESH and wanted != present)
            ):
                gone.append(table.key(present))
            if len(gone) >= _PORTION:
                removed += self._delete(table, gone)
                gone = []
        return removed + self._delete(table, gone)

    def _delete(self, table: _Table, keys: Sequence[Row]) -> int:
        if keys:
            where = " AND ".join(f"{column} = ?" for column in table.key_columns)
            with self._target.transaction():
                for kind in _AFRESH.get(table.name, ()):
                    self._target.words.drop(kind, [key[0] for key in keys])
                self._target.many(f"DELETE FROM {table.name} WHERE {where}", keys)  # noqa: S608 - names of ours
        return len(keys)

    def _add(self, table: _Table, notify: Callable[[str, int], object]) -> tuple[int, int]:
        """Write what the target has not, or has otherwise; returns how many rows the source has, and the written."""
        new: list[Row] = []
        read = added = 0
        for wanted, present in self._pairs(table):
            read += wanted is not None
            if wanted is not None and wanted != present:
                new.append(wanted)
            if len(new) >= _PORTION:
                added += self._write(table, new)
                new = []
            if read % _PAGE == 0:
                notify(table.name, read)
        notify(table.name, read)
        return read, added + self._write(table, new)

    def _write(self, table: _Table, rows: Sequence[Row]) -> int:
        if rows:
            with self._target.transaction():
                self._target.many(_upsert(table), rows)
        return len(rows)

    def _pairs(self, table: _Table) -> Iterator[tuple[Row | None, Row | None]]:
        """Rows of both in the order of their keys; those of one key together."""
        stamp = self._stamps.get(table.name)
        theirs, ours = (_read(self._source, table), _read(self._target, table))
        wanted, present = next(theirs, None), next(ours, None)
        while wanted is not None or present is not None:
            if present is None or (wanted is not None and table.key(wanted) < table.key(present)):
                yield self._as_there(table, wanted, stamp), None
                wanted = next(theirs, None)
            elif wanted is None or table.key(present) < table.key(wanted):
                yield None, present
                present = next(ours, None)
            else:
                yield self._as_there(table, wanted, stamp), present
                wanted, present = next(theirs, None), next(ours, None)

    def _as_there(self, table: _Table, row: Row | None, stamp: Stamp | None) -> Row | None:
        """A row of the source as the target can hold it: texts on a server hold no NUL."""
        if row is None:
            return None
        if stamp:
            row = tuple(stamp(dict(zip(table.columns, row, strict=True))).values())
        if self._target.is_server:
            row = tuple(
                one.replace("\0", "\ufffd") if isinstance(one, str) and "\0" in one else one
                for one in row
            )
        return row


def quoted(column: str) -> str:
    """A column's name, which may be a word of SQL."""
    return f'"{column}"'


def _table(file: Database, name: str) -> _Table:
    columns = tuple(file.columns(name))
    keys = [key for (key,) in file.rows(_KEYS, [name])] or list(columns)
    return _Table(name, columns, tuple(columns.index(key) for key in keys))


def _read(database: Database, table: _Table) -> Iterator[Row]:
    """All rows, by their keys; a page at a time, so that nobody waits for it."""
    columns, keys = ", ".join(map(quoted, table.columns)), ", ".join(table.key_columns)
    head, tail = f"SELECT {columns} FROM {table.name}", f" ORDER BY {keys} LIMIT {_PAGE}"  # noqa: S608 - names of ours
    after = f" WHERE ({keys}) > ({', '.join('?' * len(table.keys))})"
    page = database.rows(head + tail)
    while page:
        yield from page
        page = database.rows(head + after + tail, table.key(page[-1])) if len(page) == _PAGE else []


def _upsert(table: _Table) -> str:
    columns = ", ".join(map(quoted, table.columns))
    others = [quoted(name) for at, name in enumerate(table.columns) if at not in table.keys]
    told = (
        f"UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in others)}"
        if others
        else "NOTHING"
    )
    return (
        f"INSERT INTO {table.name} ({columns}) VALUES ({', '.join('?' * len(table.columns))}) "  # noqa: S608
        f"ON CONFLICT ({', '.join(table.key_columns)}) DO {told}"
    )


# ----------------------------------------------------------------------------
# Every text that the database holds, table by table, so that new rules can be applied to old rows.
#
# The tables come from the schema: one that is added later is looked through, too. Full text follows
# its rows; when all is
# done, freed pages are overwritten, so that nothing that was taken out is left in the file.


BATCH = 500

_FULL_TEXT = ("turns_fts", "turns_parts", "failures_fts", "memories_fts", "memories_parts")

_OWN_WAY = frozenset(
    {
        "turns",
        "memories",
        "tags",
        "links",
        "vault_files",
        "git_state",
        "embedding",
        "other_embedding",
        "memory_names",
        "mentions",
    }
)
"""Turns are rewritten here with their full text; memories, and what follows them, come from their files."""

Clean = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table with texts: its key columns, and the columns that hold text."""

    name: str
    keys: tuple[str, ...]
    columns: tuple[str, ...]


class StoredTexts:
    """Looks through texts and rewrites those that change."""

    def __init__(self, database: FileDatabase) -> None:
        self._db = database

    def tables(self) -> list[TextTable]:
        """The tables to look through, besides turns."""
        found = []
        for (name,) in self._db.all("list_plain_tables"):
            if name in _OWN_WAY or name.startswith(_FULL_TEXT):
                continue
            columns = self._db.rows(
                f"SELECT name, type, pk FROM pragma_table_info({_quoted(name)})"  # noqa: S608
            )
            keys = tuple(column for column, _, pk in sorted(columns, key=lambda row: row[2]) if pk)
            texts = tuple(column for column, kind, pk in columns if kind == "TEXT" and not pk)
            if keys and texts:
                found.append(TextTable(name, keys, texts))
        return found

    def batches(self, table: TextTable) -> Iterator[list[tuple[str | None, ...]]]:
        """The rows of a table, keys first, then texts, some hundred at a time; what others add at its end is theirs."""
        columns = ", ".join(map(_quoted, (*table.keys, *table.columns)))
        keys = ", ".join(map(_quoted, table.keys))
        after: Sequence[object] = ()
        while True:
            marks = ", ".join("?" for _ in after)
            beyond = f"WHERE ({keys}) > ({marks})" if after else ""
            rows = self._db.rows(
                f"SELECT {columns} FROM {_quoted(table.name)} {beyond} ORDER BY {keys} LIMIT {BATCH}",  # noqa: S608
                tuple(after),
            )
            if rows:
                yield rows
            if len(rows) < BATCH:
                return
            after = rows[-1][: len(table.keys)]

    def rewrite(self, table: TextTable, key: Sequence[object], texts: Mapping[str, str]) -> None:
        """Give a row other texts."""
        values = ", ".join(f"{_quoted(column)} = ?" for column in texts)
        wanted = " AND ".join(f"{_quoted(column)} = ?" for column in table.keys)
        statement = f"UPDATE {_quoted(table.name)} SET {values} WHERE {wanted}"  # noqa: S608
        self._db.rows(statement, (*texts.values(), *key))

    def turns(self) -> Iterator[list[tuple[int, str, str | None, str | None]]]:
        """Turns as (row, text, tool calls as JSON, author), some hundred at a time; only those there at the start."""
        last = (self._db.one("last_turn_row") or (0,))[0] or 0
        after = 0
        while rows := self._db.all("list_turns_to_scrub", after=after, last=last, limit=BATCH):
            yield [(row, text, tools, author) for row, text, tools, author in rows]
            after = rows[-1][0]

    @in_transaction
    def rewrite_turn(self, row: int, text: str, tools: str | None, author: str | None) -> None:
        """Write a turn anew, in its old place and under a new row: what was computed from its old words goes."""
        kept = self._db.one("find_turn_to_scrub", row=row)
        if kept is None:
            return
        self._db.words.drop(Indexed.TURNS, [row])
        self._db.run("delete_turn", row=row)
        new = (self._db.one("next_turn_row") or (1,))[0]
        session, seq, native_id, identity, speaker, trust, flags, time = kept
        values = (
            new,
            session,
            seq,
            native_id,
            identity.hex(),
            speaker,
            trust,
            flags,
            time,
            author,
            text,
            tools,
        )
        self._db.run("insert_turns", turns=_encoded([values]))
        calls = stored_calls(tools)
        index_texts(self._db, [(new, text, calls)])
        DeedIndex(self._db).add([Deeds(new, calls)])

    def purge(self) -> None:
        """Leave nothing of what was taken out in the file: merge the full text, overwrite what is free, cut the log.

        Raises StoreBusy while another process reads.
        """
        erasing = Erasing(self._db)
        erasing.blank_passages()
        erasing.merge_full_text()
        if not self._db.compact():
            raise StoreBusy(
                "another process reads the database", hint="close it and repeat the command"
            )


def _encoded(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _quoted(name: str) -> str:
    return f'"{name.replace(chr(34), chr(34) * 2)}"'


def clean_stored(text: str, clean: Clean) -> str:
    """A text without secrets; where it is JSON, value by value, so that it stays JSON."""
    if text[:1] in ("{", "["):
        try:
            value = json_values.parse(text)
        except ValueError:
            return clean(text)
        cleaned = clean_value(value, clean)
        return text if cleaned == value else json.dumps(cleaned, ensure_ascii=False)
    return clean(text)


def clean_value(value: object, clean: Clean) -> object:
    """JSON values, and their keys, without secrets in any of their texts."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(str(key)): clean_value(item, clean) for key, item in value.items()}
    if isinstance(value, list):
        return [clean_value(item, clean) for item in value]
    return value


# ----------------------------------------------------------------------------
# Questions that prove the index: what is missing, what belongs to nothing.


_FORGET = {
    "memories_fts": "unindex_memory",
    "memories_parts": "unindex_memory_parts",
    "turns_fts": "unindex_turn",
    "turns_parts": "unindex_turn_parts",
    "failures_fts": "unindex_failures",
}


class Soundness:
    """Asks; changes nothing but texts that belong to nothing, when told to."""

    def __init__(self, database: FileDatabase) -> None:
        self._db = database

    def pages(self) -> int:
        """Pages of the file."""
        return int((self._db.one("count_pages") or (0,))[0])

    def unreadable(self) -> list[str]:
        """Tables that hold a text which is no UTF-8."""
        names = [name for (name,) in self._db.all("list_tables")]
        return [name for name in names if not self._db.is_readable(name)]

    def strays(self) -> list[tuple[str, int]]:
        """Rows whose owner is gone: (table, how many)."""
        return [(table, count) for table, count in self._db.all("count_strays")]

    def texts(self) -> int:
        """Memories and turns."""
        return int((self._db.one("count_texts") or (0,))[0])

    def memories_unindexed(self) -> list[str]:
        """Ids of memories that the full text lacks."""
        return [memory for (memory,) in self._db.all("list_memories_unindexed")]

    def turns_unindexed(self) -> list[int]:
        """Rows of turns that the full text lacks."""
        return [row for (row,) in self._db.all("list_turns_unindexed")]

    def text_without_rows(self) -> dict[str, list[int]]:
        """Rows of full text whose memory or turn is gone, by table."""
        found: dict[str, list[int]] = {}
        for table, row in self._db.all("list_text_without_rows"):
            found.setdefault(table, []).append(row)
        return found

    def forget_text(self, table: str, rows: Sequence[int]) -> None:
        """Take texts out of a full-text table."""
        self._db.run_many(_FORGET[table], [{"row": row} for row in rows])

    def vectors_of_other_size(self, dimensions: int) -> int:
        """Vectors that do not have so many components of a byte each."""
        return int((self._db.one("count_odd_vectors", size=dimensions) or (0,))[0])

    def bits_missing(self) -> int:
        """Passages that the quick index does not know, or knows too many."""
        return abs(int((self._db.one("count_bits_missing") or (0,))[0]))

    def sessions_miscounted(self) -> list[tuple[int, str]]:
        """Sessions whose count is not that of their turns: (row, id)."""
        return [(row, name) for row, name in self._db.all("list_sessions_miscounted")]

    def known_turns(self, identities: Sequence[bytes]) -> int:
        """How many of some turns are in the index."""
        encoded = json.dumps([identity.hex() for identity in identities])
        return int((self._db.one("count_known_turns", identities=encoded) or (0,))[0])
