"""Makes the rows of one database those of another, whichever engines they are of.

Both are read in the order of their keys, side by side; what differs is written. So a copy that was interrupted goes on,
one during which the source changed is mended by another pass, and a pass that finds nothing to write is the proof.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nacre.storage.database import Database, Indexed, Row

TABLES = (
    "sessions", "turns", "memories", "tags", "confirmations", "links", "mentions", "memory_names", "claims",
    "claimless", "claims_waiting", "conflicts", "candidates", "unsettled", "stale_memories", "projects",
    "project_keys", "project_dependencies", "vault_files", "files", "file_uses", "session_files",
    "passages", "turn_passages", "passage_bits", "memory_vectors", "embedding", "other_passages", "other_turn_passages",
    "other_passage_bits", "other_memory_vectors", "other_embedding", "usage", "uses", "usage_values", "co_recall",
    "review_queue", "operations", "intents", "touched", "tombstones", "standing_retirements",
    "forgetting_values", "archived", "archive_segments", "transcript_cursors", "ingest_log", "model_calls",
    "model_refusals", "model_health", "model_answers", "traces", "code_projects", "code_files", "code_symbols",
    "code_edges", "code_outside", "code_mentions", "code_mentions_read",
)  # fmt: skip
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
            if present is not None and (wanted is None or (table.name in _AFRESH and wanted != present)):
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
            row = tuple(one.replace("\0", "\ufffd") if isinstance(one, str) and "\0" in one else one for one in row)
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
    told = f"UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in others)}" if others else "NOTHING"
    return (
        f"INSERT INTO {table.name} ({columns}) VALUES ({', '.join('?' * len(table.columns))}) "  # noqa: S608
        f"ON CONFLICT ({', '.join(table.key_columns)}) DO {told}"
    )
