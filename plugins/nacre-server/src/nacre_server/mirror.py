"""Copy the rows of one database to another one, across engines.

Rows of both are read in key order and differences are written. An interrupted copy continues, and
the next pass corrects changes made during a copy. A pass without changes proves that the copy is
complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from nacre.base.frozen import frozen
from nacre.base.sql import quoted
from nacre.store.schema import Database, Indexed, Row

TABLES = tuple(
    (
        "sessions turns memories tags confirmations links mentions memory_names "
        "candidates unsettled stale_memories projects project_keys "
        "project_dependencies vault_files files file_uses session_files passages "
        "turn_passages passage_bits memory_vectors embedding other_passages "
        "other_turn_passages other_passage_bits other_memory_vectors other_embedding usage "
        "uses effects usage_values co_recall review_queue operations intents touched tombstones "
        "standing_retirements forgetting_values archived transcript_cursors "
        "ingest_log model_calls model_health model_answers traces code_projects code_files "
        "code_symbols code_edges code_outside code_mentions code_mentions_read"
    ).split()
)
"""Tables to copy, in an order that respects foreign keys and triggers."""

OF_ONE_ENGINE = frozenset({"ledger_end", "git_state", "names", "unreadable_files"})
"""Tables in both engines whose content depends on local files or full text."""

_WITH_FULL_TEXT = {"turns": (Indexed.TURNS, Indexed.FAILURES), "memories": (Indexed.MEMORIES,)}
"""Tables with full text. A changed row and all dependent rows are deleted and inserted again."""

_KEYS = "SELECT name FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk"
_ROWS_PER_PAGE = 2_000
_ROWS_PER_WRITE = 1_000
_MAX_PASSES = 10

Stamp = Callable[[dict[str, Any]], dict[str, Any]]
"""Converts a source row to the target row."""


@frozen
class Mirrored:
    """The result of a copy.

    ``rows`` is the number of rows in each table, and ``written`` is the number of rows written or
    deleted in all passes. ``is_settled`` is True if the last pass wrote nothing.
    """

    rows: Mapping[str, int]
    written: int
    passes: int
    is_settled: bool


@frozen
class _Table:
    name: str
    columns: tuple[str, ...]
    keys: tuple[int, ...]
    """Positions of the key columns."""

    def key(self, row: Row) -> Row:
        return tuple(row[at] for at in self.keys)

    @property
    def key_columns(self) -> list[str]:
        return [quoted(self.columns[at]) for at in self.keys]


class Mirror:
    """Copies rows from ``source`` to ``target``. ``stamps`` convert the rows of some tables."""

    def __init__(self, source: Database, target: Database, stamps: Mapping[str, Stamp]) -> None:
        self._source = source
        self._target = target
        self._stamps = stamps
        file = target if source.server else source
        self._tables = [_table(file, name) for name in TABLES]

    def run(self, notify: Callable[[str, int], object], index: Callable[[bool], int]) -> Mirrored:
        """Copy rows until a pass finds no differences, but at most ten times.

        ``notify`` receives a table's name and the number of rows read. ``index`` builds missing
        full text. Its argument says whether rows were added, and it returns the number of rows
        indexed.
        """
        written = passes = 0
        changed = 1
        rows: dict[str, int] = {}
        while changed and passes < _MAX_PASSES:
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
        last = (self._source.value("next_turn_row") or 1) - 1
        self._target.run("keep_turn_rows_above", row=last)
        for table, column in self._target.all("list_numbered") if self._target.server else ():
            (highest,) = self._source.rows(f"SELECT max({column}) FROM {table}")[0]  # noqa: S608 - internal names
            self._target.one("keep_rows_above", held=table, row=highest or 0)

    def _remove(self, table: _Table) -> int:
        """Delete target rows that are not in the source.

        In tables with full text, rows that differ are also deleted.
        """
        outdated: list[Row] = []
        removed = 0
        if not self._target.rows(f"SELECT 1 FROM {table.name} LIMIT 1"):  # noqa: S608 - internal names
            return 0
        for expected, present in self._pairs(table):
            if present is not None and (
                expected is None or (table.name in _WITH_FULL_TEXT and expected != present)
            ):
                outdated.append(table.key(present))
            if len(outdated) >= _ROWS_PER_WRITE:
                removed += self._delete(table, outdated)
                outdated = []
        return removed + self._delete(table, outdated)

    def _delete(self, table: _Table, keys: Sequence[Row]) -> int:
        if keys:
            where = " AND ".join(f"{column} = ?" for column in table.key_columns)
            with self._target.transaction():
                for kind in _WITH_FULL_TEXT.get(table.name, ()):
                    self._target.words.drop(kind, [key[0] for key in keys])
                self._target.many(f"DELETE FROM {table.name} WHERE {where}", keys)  # noqa: S608 - internal names
        return len(keys)

    def _add(self, table: _Table, notify: Callable[[str, int], object]) -> tuple[int, int]:
        """Write missing and different rows. Return the number of source rows and the number written."""
        new: list[Row] = []
        read = added = 0
        for expected, present in self._pairs(table):
            read += expected is not None
            if expected is not None and expected != present:
                new.append(expected)
            if len(new) >= _ROWS_PER_WRITE:
                added += self._write(table, new)
                new = []
            if read % _ROWS_PER_PAGE == 0:
                notify(table.name, read)
        notify(table.name, read)
        return read, added + self._write(table, new)

    def _write(self, table: _Table, rows: Sequence[Row]) -> int:
        if rows:
            with self._target.transaction():
                columns = ", ".join(map(quoted, table.columns))
                others = [
                    quoted(name) for at, name in enumerate(table.columns) if at not in table.keys
                ]
                resolution = (
                    f"UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in others)}"
                    if others
                    else "NOTHING"
                )
                self._target.many(
                    f"INSERT INTO {table.name} ({columns}) VALUES ({', '.join('?' * len(table.columns))}) "  # noqa: S608
                    f"ON CONFLICT ({', '.join(table.key_columns)}) DO {resolution}",
                    rows,
                )
        return len(rows)

    def _pairs(self, table: _Table) -> Iterator[tuple[Row | None, Row | None]]:
        """Yield the rows of both databases in pairs with the same key, in key order."""
        stamp = self._stamps.get(table.name)
        source_rows, target_rows = (_read(self._source, table), _read(self._target, table))
        expected, present = next(source_rows, None), next(target_rows, None)
        while expected is not None or present is not None:
            if present is None or (
                expected is not None and table.key(expected) < table.key(present)
            ):
                yield self._for_target(table, expected, stamp), None
                expected = next(source_rows, None)
            elif expected is None or table.key(present) < table.key(expected):
                yield None, present
                present = next(target_rows, None)
            else:
                yield self._for_target(table, expected, stamp), present
                expected, present = next(source_rows, None), next(target_rows, None)

    def _for_target(self, table: _Table, row: Row | None, stamp: Stamp | None) -> Row | None:
        """Convert a source row for the target. Texts on a server cannot contain NUL."""
        if row is None:
            return None
        if stamp:
            row = tuple(stamp(dict(zip(table.columns, row, strict=True))).values())
        if self._target.server:
            row = tuple(
                value.replace("\0", "\ufffd") if isinstance(value, str) and "\0" in value else value
                for value in row
            )
        return row


def _table(file: Database, name: str) -> _Table:
    columns = tuple(file.columns(name))
    keys = [key for (key,) in file.rows(_KEYS, [name])] or list(columns)
    return _Table(name, columns, tuple(columns.index(key) for key in keys))


def _read(database: Database, table: _Table) -> Iterator[Row]:
    """Yield all rows in key order, page by page, so that other connections are not blocked."""
    columns, keys = ", ".join(map(quoted, table.columns)), ", ".join(table.key_columns)
    head, tail = f"SELECT {columns} FROM {table.name}", f" ORDER BY {keys} LIMIT {_ROWS_PER_PAGE}"  # noqa: S608 - internal names
    after = f" WHERE ({keys}) > ({', '.join('?' * len(table.keys))})"
    page = database.rows(head + tail)
    while page:
        yield from page
        page = (
            database.rows(head + after + tail, table.key(page[-1]))
            if len(page) == _ROWS_PER_PAGE
            else []
        )
