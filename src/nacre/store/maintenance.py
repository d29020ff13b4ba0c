"""Database maintenance: copying state, erasing, rewriting stored text, and checks."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw

from nacre.base import json as json_values
from nacre.base.frozen import frozen
from nacre.base.ids import at_ms
from nacre.base.sql import quoted
from nacre.base.times import UNKNOWN_TIME
from nacre.errors import NacreError, StoreBusyError
from nacre.store.gateway import GatewayStore
from nacre.store.journal import Questions
from nacre.store.review import Candidates
from nacre.store.schema import (
    UNREADABLE,
    Indexed,
    Store,
    encode,
    in_transaction,
    records,
    runs,
    stored_calls,
)
from nacre.store.search import drop_texts
from nacre.store.sessions import DeedIndex, index_texts
from nacre.store.sqlite import FileDatabase, damaged
from nacre.values.codec import with_texts
from nacre.values.memory import SessionPlace, TurnPlace, TurnText
from nacre.values.session import Deeds

CARRIED = {
    "model_calls": ("model costs", ""),
    "model_health": ("model failures", ""),
    "questions": ("questions", ""),
    "candidates": ("candidates", ""),
    "usage": ("use of memories", "memory"),
    "uses": ("times of use", "memory"),
    "effects": ("effects of context", ""),
    "usage_values": ("counters of use", ""),
    "co_recall": ("memories used together", "a b"),
    "unsettled": ("memories to compare", "memory"),
    "stale_memories": ("stale memories", "memory"),
    "review_queue": ("pending reviews", "carry_review_queue"),
    "sessions": ("results of sessions", "carry_sessions"),
    "code_projects": ("projects with code", ""),
    "code_files": ("code files", ""),
    "code_symbols": ("code symbols", ""),
    "code_edges": ("calls in code", ""),
    "code_outside": ("imports in code", ""),
    "ingest_log": ("times of ingests", ""),
}
"""Tables to copy to a rebuilt database.

Each entry has a description, and either its columns of memory ids or a statement for copying.
"""

DERIVED = frozenset(
    "archived code_mentions code_mentions_read confirmations embedding file_uses "
    "files forgetting_values links memories memory_names memory_vectors mentions passage_bits passages "
    "project_dependencies project_keys projects session_files standing_retirements "
    "tags tombstones transcript_cursors turn_passages turns unreadable_files vault_files".split()
)
"""Tables that are rebuilt from the vault, ledger, transcripts and archive."""

_READ_ERROR_CODES = (apsw.SQLITE_IOERR_READ, apsw.SQLITE_IOERR_SHORT_READ)
_WRITE_ERRORS = (
    apsw.FullError,
    apsw.ReadOnlyError,
    apsw.CantOpenError,
    apsw.PermissionsError,
    apsw.BusyError,
)


def carry_over(earlier: Path, database: FileDatabase) -> list[str]:
    """Copy the tables in ``CARRIED`` from an earlier database, and return descriptions of
    unreadable tables.

    Both databases must have the current schema. Raises UnusableStoreError, StoreBusyError or
    UnavailableError if ``database`` cannot be written.
    """
    lost = []
    database.run("attach_earlier", path=str(earlier))
    try:
        for table, (description, columns) in CARRIED.items():
            try:
                with database.transaction():
                    if columns.startswith("carry_"):
                        database.run(columns)
                    else:  # without a condition, SQLite would copy records of any type
                        present = "IN (SELECT id FROM main.memories)"
                        parts = [f"{column} {present}" for column in columns.split()]
                        parts += ["json_valid(body)"] if table == "questions" else []
                        condition = " AND ".join(parts) or "true"
                        rows = f"SELECT * FROM earlier.{table} WHERE {condition}"  # noqa: S608 - names from above
                        database.many(f"INSERT OR REPLACE INTO main.{table} {rows}", [()])
                    if not database.is_readable(table):
                        raise damaged(earlier)
                    if table == "questions":
                        Questions(database).unanswered(UNKNOWN_TIME)
                    if table == "candidates":
                        Candidates(database).pending()
            except (NacreError, *UNREADABLE) as error:
                if not is_read_error(error):
                    raise
                lost.append(description)
    finally:
        database.run("detach_earlier")
    return lost


def is_read_error(error: Exception) -> bool:
    """Return True if an error occurred while reading rows, not while writing."""
    cause = error.__cause__
    if isinstance(cause, apsw.IOError):
        return getattr(cause, "extendedresult", 0) in _READ_ERROR_CODES
    return not isinstance(cause, _WRITE_ERRORS)


# -- Erasing ------------------------------------------------------------------


_TURNS_PER_TRANSACTION = 60
_TURNS_AT_ONCE = 5000
_MERGE_STATEMENTS = (
    "merge_turns_fts",
    "merge_turns_parts",
    "merge_failures_fts",
    "merge_memories_fts",
    "merge_memories_parts",
)
_PAGES_PER_MERGE = 100
_ERASE_STATEMENTS = (
    "erase_links",
    "erase_usage",
    "erase_uses",
    "erase_effects",
    "erase_co_recall",
    "erase_reviews",
    "erase_unsettled",
    "erase_intents",
    "erase_operations",
    "erase_touched",
)


class Erasing(Store):
    """Queries and deletions in the database for the ``forget`` operation."""

    def sessions(self) -> list[SessionPlace]:
        """Return all sessions."""
        return self._records(SessionPlace, "list_session_places")

    def turn_places(self) -> Iterator[TurnPlace]:
        """Yield all turns without their text."""
        after = 0
        while rows := self._db.all("list_turn_places", after=after, limit=_TURNS_AT_ONCE):
            yield from records(TurnPlace, rows)
            after = int(rows[-1][0])

    def places_of(self, rows: Sequence[int]) -> list[TurnPlace]:
        """Return the turns in the given rows."""
        return self._records(TurnPlace, "list_turn_keys", rows=rows)

    def places_in(self, session: int) -> list[TurnPlace]:
        """Return the turns of a session."""
        return self._records(TurnPlace, "list_turn_keys_of_session", session=session)

    def turn_texts(self) -> Iterator[TurnText]:
        """Yield the text and tool calls of all turns."""
        after = 0
        while rows := self._db.all("list_turn_texts", after=after, limit=_TURNS_AT_ONCE):
            for row, session, text, tools, author in rows:
                yield TurnText(row, session, text, stored_calls(tools), author)
            after = int(rows[-1][0])

    def turns_before(
        self, moment: datetime, projects: Sequence[str] | None
    ) -> list[tuple[int, int]]:
        """Return (row, session row) of each turn before ``moment`` in the given projects, or in
        all.
        """
        return self._db.all("list_turns_before", projects=projects, before=moment)

    def linking(self, memory_ids: Sequence[str]) -> list[str]:
        """Return the ids of memories that link to any of the given memories."""
        return self._db.column("list_linking", ids=memory_ids)

    def alike(self, memory_ids: Sequence[str]) -> list[str]:
        """Return the ids of all memories, active or not, with the same text as a given memory."""
        return self._db.column("list_memories_alike", ids=memory_ids)

    def delete_turns(self, session: int, rows: Sequence[int]) -> None:
        """Delete turns and their full-text entries, and update their session.

        Short transactions let other processes write in between.
        """
        for start in range(0, len(rows), _TURNS_PER_TRANSACTION):
            portion = rows[start : start + _TURNS_PER_TRANSACTION]
            with self._db.transaction():
                self._db.words.drop(Indexed.TURNS, portion)
                self._db.run_each("delete_turn", "row", portion)
                self._db.run("limit_extracted", row=session, before=sys.maxsize)
                self._db.run("refresh_session", rows=[session])

    @in_transaction
    def delete_sessions(self, rows: Sequence[int]) -> None:
        """Delete sessions that no longer have turns."""
        self._db.run_each("delete_session", "row", rows)

    @in_transaction
    def clear_titles(self, rows: Sequence[int]) -> None:
        """Delete the titles of sessions."""
        self._db.run_each("clear_title", "row", rows)

    @runs("delete_cursor")
    def delete_cursor(self, path: str) -> None:
        """Make the next ingest read a transcript from the start."""

    def returned(self) -> set[str]:
        """Return the ``forget`` runs after which a deleted memory reappeared."""
        return set(self._db.column("list_runs_returned"))

    @runs("delete_cursors_at_beginning")
    def delete_held_cursors(self) -> None:
        """Make the next ingest reread transcripts that were only partly read."""

    @in_transaction
    def delete_traces(self, memory_id: str) -> None:
        """Delete all data about a memory except its row."""
        for statement in _ERASE_STATEMENTS:
            self._db.run(statement, id=memory_id)

    @in_transaction
    def clear_journal(self, is_quoted: Callable[[str], object]) -> None:
        """Delete journal text that ``is_quoted`` accepts. This prevents undoing its operations."""
        intents = self._db.all("list_journal_texts")
        written = [seq for seq, *texts in intents if any(map(is_quoted, texts))]
        operations = self._db.all("list_operation_texts")
        quoting = [operation for operation, *texts in operations if any(map(is_quoted, texts))]
        paths = [
            path
            for path, *texts in self._db.all("list_touched_paths")
            if any(map(is_quoted, (path, *texts)))
        ]
        self._db.run_each("delete_intent_for_good", "seq", written)
        self._db.run_each("erase_operation_words", "id", quoting)
        self._db.run_each("delete_touched_path", "path", paths)

    def blank_passages(self) -> int:
        """Clear the passages that belong to no turn, and return their number."""
        rows = self._db.column("list_orphaned_passages")
        for start in range(0, len(rows), _TURNS_PER_TRANSACTION):
            with self._db.transaction():
                for row in rows[start : start + _TURNS_PER_TRANSACTION]:
                    self._blank(row)
        return len(rows)

    @runs("prune_names")
    def prune_names(self) -> None:
        """Delete identifiers that no longer occur in any text (servers only)."""

    def merge_full_text(self) -> None:
        """Purge deleted words from the full-text index without blocking writers."""
        for merge in _MERGE_STATEMENTS:
            pages = -_PAGES_PER_MERGE
            while (
                self._db.run(merge, pages=pages) >= 2
            ):  # with fewer changes, nothing is left to merge
                pages = _PAGES_PER_MERGE

    def _blank(self, row: int) -> None:
        self._db.run("blank_passage", row=row)
        run = self._db.one("find_bits", row=row)
        if run is None or not run[1] or row >= run[0] + run[1]:
            return
        first, count, bits = run
        width = len(bits) // count
        at = (row - first) * width
        self._db.run("update_bits", first=first, bits=bits[:at] + bytes(width) + bits[at + width :])


# -- Erasing in the gateway's database ----------------------------------------
# This database also holds text that is not in a transcript yet.


_TEXT_FIELDS = ("text", "content", "name", "summary", "reason")
"""Text fields of messages, answer parts and transcript lines."""

_ERASE_BY_KIND = {
    "inbound": "finish_inbound",
    "outbound": "drop_outbound",
    "line": "drop_pending_line",
}


@frozen
class PendingText:
    """Text that is kept only until it is answered, sent or written to a transcript.

    ``kind`` is ``inbound``, ``outbound`` or ``line``. ``seq`` is the row number, and ``session``
    the conversation's open session, or "".
    """

    kind: str
    seq: int
    session: str
    texts: tuple[str, ...]
    at: datetime


class GatewayErasure(GatewayStore):
    """Deletion of forgotten text from the gateway's database."""

    def pending_texts(self) -> list[PendingText]:
        """Return all pending text."""
        return [
            PendingText(
                kind,
                seq,
                session or "",
                tuple(_texts(json_values.decode(text, Any))),
                at_ms(at),
            )
            for kind, seq, session, text, at in self._db.all("list_held_words")
        ]

    def names(self) -> list[str]:
        """Return the names of conversations and of people who asked for access."""
        return self._db.column("list_chat_names")

    @in_transaction
    def erase_pending(self, texts: Iterable[PendingText], names: Iterable[str] = ()) -> None:
        """Delete pending text and the names of conversations and people."""
        for text in texts:
            self._db.run(_ERASE_BY_KIND[text.kind], seq=text.seq)
        for name in names:
            self._db.run("clear_chat_name", called=name)
            self._db.run("clear_pairing_name", called=name)

    @in_transaction
    def erase(self, lines: Iterable[str], pending: Iterable[int]) -> None:
        """Delete messages and answers by line id, and pending lines by number."""
        ids = [*lines]
        self._db.run_each("erase_inbound", "line", ids)
        self._db.run_each("erase_outbound", "line", ids)
        self._db.run_each("drop_pending_line", "seq", pending)

    @runs("delete_chat_session")
    def delete_session(self, session: str) -> None:
        """Delete a session; the next message in the conversation starts a new one."""

    def compact(self) -> bool:
        """Erase all traces of deleted data. Return False if another process is reading the file.

        Raises StoreBusyError.
        """
        return self._db.compact()


def _texts(value: Any) -> Iterator[str]:
    for name, item in (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    ):
        if isinstance(item, str) and name in _TEXT_FIELDS:
            yield item
        yield from _texts(item)


# -- Rewriting stored text ----------------------------------------------------
# New redaction rules are applied to old rows. The tables are read from the schema, so that new
# tables are included. The full-text index is updated with the rows. Finally, free pages are
# overwritten, so that no removed text remains in the file.


BATCH = 500

_FULL_TEXT = ("turns_fts", "turns_parts", "failures_fts", "memories_fts", "memories_parts")

_EXCLUDED_TABLES = frozenset(
    {
        "turns",
        "memories",
        "tags",
        "links",
        "vault_files",
        "git_state",
        "embedding",
        "memory_names",
        "mentions",
    }
)
"""Tables to skip, because they are rewritten separately (turns) or restored from files."""

Clean = Callable[[str], str]


@frozen
class TextTable:
    """A table's name, key columns and text columns."""

    name: str
    keys: tuple[str, ...]
    columns: tuple[str, ...]


class StoredTexts:
    """All text in the database, for reading and rewriting."""

    def __init__(self, database: FileDatabase) -> None:
        self._db = database

    def tables(self) -> list[TextTable]:
        """Return the tables with text, except turns and tables that are rebuilt from files."""
        tables = []
        for (name,) in self._db.all("list_plain_tables"):
            if name in _EXCLUDED_TABLES or name.startswith(_FULL_TEXT):
                continue
            columns = self._db.rows(
                f"SELECT name, type, pk FROM pragma_table_info({quoted(name)})"  # noqa: S608
            )
            keys = tuple(column for column, _, pk in sorted(columns, key=lambda row: row[2]) if pk)
            texts = tuple(column for column, kind, pk in columns if kind == "TEXT" and not pk)
            if keys and texts:
                tables.append(TextTable(name, keys, texts))
        return tables

    def batches(self, table: TextTable) -> Iterator[list[tuple[str | None, ...]]]:
        """Yield batches of a table's rows, each row as its keys and its text columns.

        Rows added during the iteration can be missing.
        """
        columns = ", ".join(map(quoted, (*table.keys, *table.columns)))
        keys = ", ".join(map(quoted, table.keys))
        after: Sequence[object] = ()
        while True:
            marks = ", ".join("?" for _ in after)
            beyond = f"WHERE ({keys}) > ({marks})" if after else ""
            rows = self._db.rows(
                f"SELECT {columns} FROM {quoted(table.name)} {beyond} ORDER BY {keys} LIMIT {BATCH}",  # noqa: S608
                tuple(after),
            )
            if rows:
                yield rows
            if len(rows) < BATCH:
                return
            after = rows[-1][: len(table.keys)]

    def rewrite(self, table: TextTable, key: Sequence[object], texts: Mapping[str, str]) -> None:
        """Replace the text in some columns of a row."""
        values = ", ".join(f"{quoted(column)} = ?" for column in texts)
        condition = " AND ".join(f"{quoted(column)} = ?" for column in table.keys)
        statement = f"UPDATE {quoted(table.name)} SET {values} WHERE {condition}"  # noqa: S608
        self._db.rows(statement, (*texts.values(), *key))

    def turns(self) -> Iterator[list[tuple[int, str, str | None, str | None]]]:
        """Yield batches of existing turns as (row, text, tool calls as JSON, author)."""
        last = self._db.value("last_turn_row") or 0
        after = 0
        while rows := self._db.all("list_turns_to_scrub", after=after, last=last, limit=BATCH):
            yield [(row, text, tools, author) for row, text, tools, author in rows]
            after = rows[-1][0]

    @in_transaction
    def rewrite_turn(self, row: int, text: str, tools: str | None, author: str | None) -> None:
        """Replace a turn's text, and discard all data derived from the old text."""
        stored = self._db.one("find_turn_to_scrub", row=row)
        if stored is None:
            return
        self._db.words.drop(Indexed.TURNS, [row])
        self._db.run("delete_turn", row=row)
        new = self._db.value("next_turn_row") or 1
        values = (new, *stored[:3], stored[3].hex(), *stored[4:], author, text, tools)
        self._db.run("insert_turns", turns=encode([values]))
        calls = stored_calls(tools)
        index_texts(self._db, [(new, text, calls)])
        DeedIndex(self._db).add([Deeds(new, calls)])

    def purge(self) -> None:
        """Erase removed text from the full-text index, the free pages and the write-ahead log.

        Raises StoreBusyError if another process is reading the database.
        """
        erasing = Erasing(self._db)
        erasing.blank_passages()
        erasing.merge_full_text()
        if not self._db.compact():
            raise StoreBusyError(
                "another process is reading the database",
                hint="end that process and repeat the command",
            )


def clean_stored(text: str, clean: Clean) -> str:
    """Apply ``clean`` to a text. JSON stays valid, because each value is cleaned separately."""
    if text[:1] in ("{", "["):
        try:
            value = json_values.parse(text)
        except ValueError:
            return clean(text)
        cleaned = with_texts(value, clean, keys=True)
        return text if cleaned == value else json.dumps(cleaned, ensure_ascii=False)
    return clean(text)


# -- Consistency checks of the index ------------------------------------------


class Soundness:
    """Consistency checks of an index database."""

    def __init__(self, database: FileDatabase) -> None:
        self._db = database

    def pages(self) -> int:
        """Return the database file's number of pages."""
        return self._db.value("count_pages") or 0

    def unreadable(self) -> list[str]:
        """Return the names of tables with rows that cannot be read."""
        names = self._db.column("list_tables")
        return [name for name in names if not self._db.is_readable(name)]

    def strays(self) -> list[tuple[str, int]]:
        """Count the rows without a parent row in each table."""
        return self._db.all("count_strays")

    def texts(self) -> int:
        """Count memories and turns."""
        return self._db.value("count_texts") or 0

    def memories_unindexed(self) -> list[str]:
        """Return the ids of memories missing from the full-text index."""
        return self._db.column("list_memories_unindexed")

    def turns_unindexed(self) -> list[int]:
        """Return the rows of turns missing from the full-text index."""
        return self._db.column("list_turns_unindexed")

    def text_without_rows(self) -> dict[str, list[int]]:
        """Return the rows in each full-text table whose memory or turn was deleted."""
        strays: dict[str, list[int]] = {}
        for table, row in self._db.all("list_text_without_rows"):
            strays.setdefault(table, []).append(row)
        return strays

    def forget_text(self, table: str, rows: Sequence[int]) -> None:
        """Delete rows from a full-text table."""
        drop_texts(self._db, table, rows)

    def vectors_of_other_size(self, dimensions: int) -> int:
        """Count the vectors that do not have this number of dimensions."""
        return self._db.value("count_odd_vectors", size=dimensions) or 0

    def bits_missing(self) -> int:
        """Return the difference between the numbers of passages and bit vectors."""
        return abs(int(self._db.value("count_bits_missing") or 0))

    def sessions_miscounted(self) -> list[tuple[int, str]]:
        """Return the row and id of each session whose turn count is wrong."""
        return self._db.all("list_sessions_miscounted")

    def known_turns(self, identities: Sequence[bytes]) -> int:
        """Count how many of these turns are in the index."""
        known = [identity.hex() for identity in identities]
        return self._db.value("count_known_turns", identities=known) or 0
