"""Database maintenance: copying state to a new database, erasing, rewriting texts, and checks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw
import msgspec

from nacre.base import json as json_values
from nacre.base.frozen import frozen
from nacre.base.ids import at_ms
from nacre.base.sql import quoted
from nacre.errors import NacreError, StoreBusyError
from nacre.store.gateway import GatewayStore
from nacre.store.journal import Traces
from nacre.store.review import Candidates
from nacre.store.rows import records
from nacre.store.schema import (
    UNREADABLE,
    Indexed,
    Store,
    in_transaction,
    runs,
    stored_calls,
)
from nacre.store.sessions import DeedIndex, index_texts
from nacre.store.sqlite import FileDatabase, about_other, damaged
from nacre.values.memory import SessionPlace, TurnPlace, TurnText
from nacre.values.session import Deeds

CARRIED = {
    "model_calls": ("model costs", ""),
    "model_health": ("model failures", ""),
    "model_answers": ("model answers", ""),
    "traces": ("traces", ""),
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
"""Tables to copy to a rebuilt database, each with a description and its columns of memory ids.

Instead of columns, an entry can name a statement that copies the rows.
"""

DERIVED = frozenset(
    "archived code_mentions code_mentions_read confirmations embedding file_uses "
    "files forgetting_values links memories memory_names memory_vectors mentions passage_bits passages "
    "project_dependencies project_keys projects session_files standing_retirements "
    "tags tombstones transcript_cursors turn_passages turns unreadable_files vault_files".split()
)
"""Tables that are rebuilt from the vault, ledger, transcripts and archive."""

DISCARDED = frozenset(
    "git_state intents ledger_end operations other_embedding other_memory_vectors other_passage_bits other_passages "
    "other_turn_passages touched".split()
)
"""Tables that are not copied. They depend on one database file, an unused model, or git."""

_READ_ERROR_CODES = (apsw.SQLITE_IOERR_READ, apsw.SQLITE_IOERR_SHORT_READ)
_WRITE_ERRORS = (
    apsw.FullError,
    apsw.ReadOnlyError,
    apsw.CantOpenError,
    apsw.PermissionsError,
    apsw.BusyError,
)


def carry_over(earlier: Path, database: FileDatabase) -> list[str]:
    """Copy the tables in ``CARRIED`` from an earlier database.

    Returns descriptions of the tables that could not be read. Both databases must have the current
    schema. Tables with an unreadable row are skipped. Raises UnusableStoreError, StoreBusyError or
    Unavailable if ``database`` cannot be written.
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
                        known = "IN (SELECT id FROM main.memories)"
                        parts = [f"{column} {known}" for column in columns.split()]
                        parts += ["json_valid(body)"] if table == "traces" else []
                        condition = " AND ".join(parts) or "true"
                        rows = f"SELECT * FROM earlier.{table} WHERE {condition}"  # noqa: S608 - names from above
                        database.many(f"INSERT OR REPLACE INTO main.{table} {rows}", [()])
                    if not database.is_readable(table):
                        raise damaged(earlier)
                    if table == "traces":
                        Traces(database).latest(limit=-1)
                    if table == "candidates":
                        Candidates(database).waiting()
            except (NacreError, *UNREADABLE) as error:
                if not is_read_error(error):
                    raise
                lost.append(description)
    finally:
        database.run("detach_earlier")
    return lost


def is_read_error(error: Exception) -> bool:
    """Return True if an error was caused by reading rows rather than writing."""
    cause = error.__cause__
    if isinstance(cause, apsw.IOError):
        return getattr(cause, "extendedresult", 0) in _READ_ERROR_CODES
    return not isinstance(cause, _WRITE_ERRORS)


# -- Erasing ------------------------------------------------------------------
# Erasing deletes forgotten content from every table and its bytes from the file.


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
    """Database queries and deletions for the forget operation."""

    def sessions(self) -> list[SessionPlace]:
        """Return all sessions."""
        return records(SessionPlace, self._db.all("list_session_places"))

    def turn_places(self) -> Iterator[TurnPlace]:
        """Yield all turns in chunks."""
        after = 0
        while rows := self._db.all("list_turn_places", after=after, limit=_TURNS_AT_ONCE):
            yield from records(TurnPlace, rows)
            after = int(rows[-1][0])

    def places_of(self, rows: Sequence[int]) -> list[TurnPlace]:
        """Return the turns in the given rows."""
        return records(TurnPlace, self._db.all("list_turn_keys", rows=rows))

    def places_in(self, session: int) -> list[TurnPlace]:
        """Return the turns of a session."""
        return records(TurnPlace, self._db.all("list_turn_keys_of_session", session=session))

    def turn_texts(self) -> Iterator[TurnText]:
        """Yield the texts of all turns in chunks."""
        after = 0
        while rows := self._db.all("list_turn_texts", after=after, limit=_TURNS_AT_ONCE):
            for row, session, text, tools, author in rows:
                yield TurnText(row, session, text, stored_calls(tools), author)
            after = int(rows[-1][0])

    def turns_before(
        self, moment: datetime, projects: Sequence[str] | None
    ) -> list[tuple[int, int]]:
        """Return (row, session row) of turns before ``moment`` in some projects, or in all projects."""
        return self._db.all("list_turns_before", projects=projects, before=moment)

    def linking(self, memory_ids: Sequence[str]) -> list[str]:
        """Return the ids of memories that link to any of the given memories."""
        return self._db.column("list_linking", ids=memory_ids)

    def alike(self, memory_ids: Sequence[str]) -> list[str]:
        """Return the ids of the given memories and of all memories with the same text, in any state."""
        return self._db.column("list_memories_alike", ids=memory_ids)

    def delete_turns(self, session: int, rows: Sequence[int]) -> None:
        """Delete turns and their full text.

        Short transactions let other processes write. Each transaction also updates the session, so that the session is
        correct after a crash.
        """
        for start in range(0, len(rows), _TURNS_PER_TRANSACTION):
            portion = rows[start : start + _TURNS_PER_TRANSACTION]
            with self._db.transaction():
                self._db.words.drop(Indexed.TURNS, portion)
                self._db.run_many("delete_turn", [{"row": row} for row in portion])
                self._db.run_many("limit_extracted", [{"row": session}])
                self._db.run("refresh_session", rows=[session])

    def delete_sessions(self, rows: Sequence[int]) -> None:
        """Delete sessions. The turns of the sessions must already be deleted."""
        with self._db.transaction():
            self._db.run_many("delete_session", [{"row": row} for row in rows])

    def clear_titles(self, rows: Sequence[int]) -> None:
        """Delete the titles of sessions."""
        with self._db.transaction():
            self._db.run_many("clear_title", [{"row": row} for row in rows])

    @runs("delete_cursor")
    def delete_cursor(self, path: str) -> None:
        """Make the next ingest read a file from the start."""

    def returned(self) -> set[str]:
        """Return the runs of ``forget`` after which deleted memories reappeared."""
        return set(self._db.column("list_runs_returned"))

    @runs("delete_cursors_at_beginning")
    def delete_held_cursors(self) -> None:
        """Make the next ingest reread files that were only partly read."""

    @in_transaction
    def delete_traces(self, memory_id: str) -> None:
        """Delete all data about a memory except its row."""
        for statement in _ERASE_STATEMENTS:
            self._db.run(statement, id=memory_id)

    @in_transaction
    def clear_journal(self, is_quoted: Callable[[str], object]) -> None:
        """Delete journal entries with matching text. Their operations can no longer be undone."""
        intents = self._db.all("list_journal_texts")
        written = [seq for seq, *texts in intents if any(map(is_quoted, texts))]
        operations = self._db.all("list_operation_texts")
        quoting = [operation for operation, *texts in operations if any(map(is_quoted, texts))]
        paths = [
            path
            for path, *texts in self._db.all("list_touched_paths")
            if any(map(is_quoted, (path, *texts)))
        ]
        self._db.run_many("delete_intent_for_good", [{"seq": seq} for seq in written])
        self._db.run_many("erase_operation_words", [{"id": operation} for operation in quoting])
        self._db.run_many("delete_touched_path", [{"path": path} for path in paths])

    def blank_passages(self) -> int:
        """Clear passages that belong to no turn, and return their number.

        Passages of other models are included.
        """
        return self._blank_all(str) + self._blank_all(about_other)

    def _blank_all(self, statement_name: Callable[[str], str]) -> int:
        rows = self._db.column(statement_name("list_orphaned_passages"))
        for start in range(0, len(rows), _TURNS_PER_TRANSACTION):
            with self._db.transaction():
                for row in rows[start : start + _TURNS_PER_TRANSACTION]:
                    self._blank(row, statement_name)
        return len(rows)

    @runs("prune_names")
    def prune_names(self) -> None:
        """Delete identifiers that no longer occur in any text, if a server stores the memory."""

    def merge_full_text(self) -> None:
        """Purge deleted words from the full-text index, with pauses for other processes that write."""
        for merge in _MERGE_STATEMENTS:
            pages = -_PAGES_PER_MERGE
            while (
                self._db.run(merge, pages=pages) >= 2
            ):  # with fewer changes, nothing is left to merge
                pages = _PAGES_PER_MERGE

    def _blank(self, row: int, statement_name: Callable[[str], str]) -> None:
        self._db.run(statement_name("blank_passage"), row=row)
        run = self._db.one(statement_name("find_bits"), row=row)
        if run is None or not run[1] or row >= run[0] + run[1]:
            return
        first, count, bits = run
        width = len(bits) // count
        at = (row - first) * width
        self._db.run(
            statement_name("update_bits"),
            first=first,
            bits=bits[:at] + bytes(width) + bits[at + width :],
        )


# -- Erasing in the gateway's database ----------------------------------------
# This database also holds text that is not in a transcript yet.


_TEXT_FIELDS = ("text", "content", "name", "summary", "reason")
"""Fields of messages, parts of answers, and transcript lines that contain text."""

_ERASE_BY_KIND = {
    "inbound": "finish_inbound",
    "outbound": "drop_outbound",
    "line": "drop_pending_line",
}


@frozen
class Held:
    """Text that is kept only until it is answered, sent or written to a transcript.

    ``kind``: ``inbound``, ``outbound`` or ``line``. ``seq``: number of the text's row.
    ``session``: id of the conversation's open session, or "".
    """

    kind: str
    seq: int
    session: str
    texts: tuple[str, ...]
    at: datetime


class GatewayErasure(GatewayStore):
    """Deletion of forgotten content from the gateway's database."""

    def held(self) -> list[Held]:
        """Return all stored text."""
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
        """Return the names of conversations and of people who requested access."""
        return self._db.column("list_chat_names")

    @in_transaction
    def erase_held(self, texts: Iterable[Held], names: Iterable[str] = ()) -> None:
        """Delete names, and texts that wait to be answered, sent or written."""
        for text in texts:
            self._db.run(_ERASE_BY_KIND[text.kind], seq=text.seq)
        for name in names:
            self._db.run("clear_chat_name", called=name)
            self._db.run("clear_pairing_name", called=name)

    @in_transaction
    def erase(self, lines: Iterable[str], pending: Iterable[int]) -> None:
        """Delete messages and answers by line id, and pending lines by number."""
        for line in lines:
            self._db.run("erase_inbound", line=line)
            self._db.run("erase_outbound", line=line)
        for seq in pending:
            self._db.run("drop_pending_line", seq=seq)

    @runs("delete_chat_session")
    def delete_session(self, session: str) -> None:
        """Delete a session. The next message starts a new session."""

    def compact(self) -> bool:
        """Erase all traces of deleted data.

        Return False if another process is still reading the file. Raises StoreBusyError.
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


# -- Rewriting stored texts ---------------------------------------------------
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
        "other_embedding",
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
    """Reads and rewrites all texts in the database."""

    def __init__(self, database: FileDatabase) -> None:
        self._db = database

    def tables(self) -> list[TextTable]:
        """Return the tables that contain text.

        Turns, and tables that are restored from files, are left out.
        """
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
        """Yield a table's rows (keys, then texts) in batches. Concurrently added rows can be missing."""
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
        """Replace some texts of a row."""
        values = ", ".join(f"{quoted(column)} = ?" for column in texts)
        condition = " AND ".join(f"{quoted(column)} = ?" for column in table.keys)
        statement = f"UPDATE {quoted(table.name)} SET {values} WHERE {condition}"  # noqa: S608
        self._db.rows(statement, (*texts.values(), *key))

    def turns(self) -> Iterator[list[tuple[int, str, str | None, str | None]]]:
        """Yield batches of turns as (row, text, tool calls as JSON, author).

        Turns that are added during the iteration are left out.
        """
        last = self._db.value("last_turn_row") or 0
        after = 0
        while rows := self._db.all("list_turns_to_scrub", after=after, last=last, limit=BATCH):
            yield [(row, text, tools, author) for row, text, tools, author in rows]
            after = rows[-1][0]

    @in_transaction
    def rewrite_turn(self, row: int, text: str, tools: str | None, author: str | None) -> None:
        """Store a turn's new text in a new row, which discards all data derived from the old text."""
        stored = self._db.one("find_turn_to_scrub", row=row)
        if stored is None:
            return
        self._db.words.drop(Indexed.TURNS, [row])
        self._db.run("delete_turn", row=row)
        new = self._db.value("next_turn_row") or 1
        values = (new, *stored[:3], stored[3].hex(), *stored[4:], author, text, tools)
        self._db.run("insert_turns", turns=msgspec.json.encode([values]).decode())
        calls = stored_calls(tools)
        index_texts(self._db, [(new, text, calls)])
        DeedIndex(self._db).add([Deeds(new, calls)])

    def purge(self) -> None:
        """Erase removed text from the full-text index, free pages and the log.

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
    """Remove secrets from text. In JSON, each value is cleaned, so that the JSON remains valid."""
    if text[:1] in ("{", "["):
        try:
            value = json_values.parse(text)
        except ValueError:
            return clean(text)
        cleaned = clean_value(value, clean)
        return text if cleaned == value else json.dumps(cleaned, ensure_ascii=False)
    return clean(text)


def clean_value(value: object, clean: Clean) -> object:
    """Remove secrets from the keys and values of a JSON value."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(str(key)): clean_value(item, clean) for key, item in value.items()}
    if isinstance(value, list):
        return [clean_value(item, clean) for item in value]
    return value


# -- Consistency checks of the index ------------------------------------------


_UNINDEX_STATEMENTS = {
    "memories_fts": "unindex_memory",
    "memories_parts": "unindex_memory_parts",
    "turns_fts": "unindex_turn",
    "turns_parts": "unindex_turn_parts",
    "failures_fts": "unindex_failures",
}


class Soundness:
    """Consistency checks of a database. Only :meth:`forget_text` changes data."""

    def __init__(self, database: FileDatabase) -> None:
        self._db = database

    def pages(self) -> int:
        """Return the number of pages in the file."""
        return self._db.value("count_pages") or 0

    def unreadable(self) -> list[str]:
        """Return the names of tables that contain invalid UTF-8."""
        names = self._db.column("list_tables")
        return [name for name in names if not self._db.is_readable(name)]

    def strays(self) -> list[tuple[str, int]]:
        """Return (table, number of rows whose parent row is missing)."""
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
        """Return, for each full-text table, the rows whose memory or turn was deleted."""
        strays: dict[str, list[int]] = {}
        for table, row in self._db.all("list_text_without_rows"):
            strays.setdefault(table, []).append(row)
        return strays

    def forget_text(self, table: str, rows: Sequence[int]) -> None:
        """Delete rows of a full-text table."""
        self._db.run_many(_UNINDEX_STATEMENTS[table], [{"row": row} for row in rows])

    def vectors_of_other_size(self, dimensions: int) -> int:
        """Count vectors that do not have the given number of dimensions."""
        return self._db.value("count_odd_vectors", size=dimensions) or 0

    def bits_missing(self) -> int:
        """Return the difference between the number of passages and the number of bit vectors."""
        return abs(int(self._db.value("count_bits_missing") or 0))

    def sessions_miscounted(self) -> list[tuple[int, str]]:
        """Return (row, id) of sessions whose turn count is wrong."""
        return self._db.all("list_sessions_miscounted")

    def known_turns(self, identities: Sequence[bytes]) -> int:
        """Count how many of the given turns are in the index."""
        encoded = json.dumps([identity.hex() for identity in identities])
        return self._db.value("count_known_turns", identities=encoded) or 0
