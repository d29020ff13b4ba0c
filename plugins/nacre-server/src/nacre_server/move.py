"""Moving a home to a server and back."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import msgspec

from nacre.base import files, json
from nacre.base.bounds import bounds
from nacre.base.environment import server_address
from nacre.base.frozen import frozen
from nacre.base.ids import bytes_hash
from nacre.base.sql import quoted
from nacre.care.database import set_aside, take_place
from nacre.errors import (
    ConflictError,
    EditConflictError,
    InvalidInputError,
    NacreError,
    StoreBusyError,
    UnavailableError,
)
from nacre.home.home import Home, open_home
from nacre.home.location import is_empty
from nacre.home.operations import apply_intents
from nacre.home.spending import fold_notes
from nacre.memories.edit import scan
from nacre.memories.usage import fold_usage
from nacre.operations import operation
from nacre.settings import Settings, unwrite_setting, write_setting
from nacre.store.schema import Database, Indexed, Row
from nacre.values.reports import OnProgress, Progress
from nacre.values.session import Deeds
from nacre.vault.files import LEDGER, Vault


@frozen
class Documents:
    """The number and size of a vault's documents, the number of its ledger lines, and a hash of
    everything.
    """

    count: int
    bytes: int
    ledger_lines: int
    hash: str


def documents_of(vault: Vault) -> Documents:
    """Count and hash the contents of a vault."""
    digest, count, size = sha256(), 0, 0
    for path, data in read_documents(vault):
        digest.update(f"{path}\0{len(data)}\0".encode())
        digest.update(data)
        count, size = count + 1, size + len(data)
    lines = _ledger(vault)
    for line in lines:
        digest.update(line + b"\n")
    return Documents(count, size, len(lines), digest.hexdigest())


def carry_documents(source: Vault, home: Home) -> int:
    """Make a home's documents equal to a vault's, and return the number of documents written.

    Raises EditConflictError if the home has ledger entries of another memory, or if another process
    writes to it.
    """
    target = home.vault
    written, source_paths = 0, set()
    for path, data in read_documents(source):
        source_paths.add(path)
        present = present_bytes(target, path)
        if present != data:
            if present is not None:
                _keep(home, path, present)
            target.write_bytes(path, data, base=None if present is None else bytes_hash(present))
            written += 1
    for path in set(target.paths()) - source_paths:
        _keep(home, path, present_bytes(target, path) or b"")
        target.remove(path)
        written += 1
    lines, present_lines = _ledger(source), set(_ledger(target))
    # A line that is only in the target belongs to another memory.
    if not present_lines <= set(lines):
        raise EditConflictError(
            f"{target.root}/{LEDGER} has entries that are not from the memory to be moved",
            hint="move it to an empty home, or to another tenant",
        )
    missing = [line for line in lines if line not in present_lines]
    if missing:
        target.append(LEDGER, [line.decode("utf-8", "replace") for line in missing])
    return written + len(missing)


def read_documents(vault: Vault) -> Iterator[tuple[str, bytes]]:
    """Yield the path and content of each document."""
    for path in vault.paths():
        data = present_bytes(vault, path)
        if data is not None:
            yield path, data


def present_bytes(vault: Vault, path: str) -> bytes | None:
    """Return a document's content, or ``None`` if it is missing."""
    with contextlib.suppress(FileNotFoundError):
        return vault.read(path, any_size=True)
    return None


def _ledger(vault: Vault) -> list[bytes]:
    return (present_bytes(vault, LEDGER) or b"").splitlines()


# -- Source and target of a move: a home's folder, and a tenant on a server ------------------------


_PASSWORD = re.compile(r"(://[^/@:]*):[^/]*@|([?&])password=[^&]*&?")


@frozen
class Moved:
    """The record of a home's last move. ``is_whole`` is True if the move was completed."""

    id: str
    server: str
    tenant: str
    is_whole: bool


def without_password(address: str) -> str:
    """Return an address without its password."""
    return _PASSWORD.sub(lambda match: f"{match[1]}@" if match[1] else match[2], address).rstrip(
        "?&"
    )


def in_folder(settings: Settings) -> Settings:
    """Return settings that keep the memory in a home's folder."""
    if server_address(settings.environ):
        raise UnavailableError(
            "NACRE_DB is a server, so the home is ambiguous",
            hint="unset it, and give the server as an argument",
        )
    database = Path(settings.environ.get("NACRE_DB") or settings.home / "nacre.db").expanduser()
    return replace(settings, database=database).having("storage.url", "")


def on_server(settings: Settings, address: str, tenant: str | None) -> Settings:
    """Return settings that keep a tenant's memory on a server."""
    settings = settings.having("storage.tenant", tenant) if tenant else settings
    return replace(settings, environ={**settings.environ, "NACRE_DB": address})


def read_moved(settings: Settings) -> Moved | None:
    """Return the record of the home's last move, if any."""
    try:
        moved: Moved = json.decode(_file(settings).read_bytes(), Moved)
    except (OSError, msgspec.DecodeError):
        return None
    return moved


def write_moved(settings: Settings, moved: Moved | None) -> None:
    """Store the record of a move, or delete it if it is ``None``."""
    if moved is None:
        _file(settings).unlink(missing_ok=True)
        return
    files.write_file(_file(settings), json.encode(moved).decode() + "\n")


def claim_tenant(server: Home, moved: Moved) -> None:
    """Reserve a tenant for a move that begins or continues.

    Raises ConflictError if the tenant has another memory.
    """
    with server.database.transaction():
        claim = server.database.one("find_move")
        if claim and claim[0] == moved.id:
            return
        if claim or (server.database.value("holds_anything") or 0):
            raise ConflictError(
                f"the tenant {moved.tenant} on that server already has a memory",
                hint="choose another: --tenant NAME; nothing was moved",
            )
        server.database.run("begin_move", id=moved.id)


def _file(settings: Settings) -> Path:
    return settings.home / "moved.json"


Address = Annotated[
    str,
    bounds(
        "The server: postgresql://login@server:5432/database.",
        pattern="^postgres(ql)?://",
        max_length=2_000,
    ),
]

# -- Rows --------------------------------------------------------------------------------------------
# Each pass compares the rows of both databases in key order and writes the differences. The copy is
# complete when a pass finds none.


TABLES = tuple(
    (
        "sessions turns memories tags confirmations links mentions memory_names "
        "candidates unsettled stale_memories projects project_keys "
        "project_dependencies vault_files files file_uses session_files passages "
        "turn_passages passage_bits memory_vectors embedding usage "
        "uses effects usage_values co_recall review_queue operations intents touched tombstones "
        "standing_retirements forgetting_values archived transcript_cursors "
        "ingest_log model_calls model_health questions code_projects code_files "
        "code_symbols code_edges code_outside code_mentions code_mentions_read"
    ).split()
)
"""Tables to copy, in an order that respects foreign keys and triggers."""

OF_ONE_ENGINE = frozenset({"ledger_end", "git_state", "names", "unreadable_files"})
"""Tables that are not copied, because they depend on local files or the full-text index."""

_WITH_FULL_TEXT = {"turns": (Indexed.TURNS, Indexed.FAILURES), "memories": (Indexed.MEMORIES,)}
"""Tables with full text. Changed rows and all dependent rows are deleted and inserted again."""

_KEYS = "SELECT name FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk"
_ROWS_PER_PAGE = 2_000
_ROWS_PER_WRITE = 1_000
_MAX_PASSES = 10

Stamp = Callable[[dict[str, Any]], dict[str, Any]]
"""Function that converts a source row for the target."""


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
    """A copy of all rows from ``source`` to ``target``. ``stamps`` contains row conversions by
    table.
    """

    def __init__(self, source: Database, target: Database, stamps: Mapping[str, Stamp]) -> None:
        self._source = source
        self._target = target
        self._stamps = stamps
        file = target if source.server else source
        self._tables = [_table(file, name) for name in TABLES]

    def run(
        self, notify: Callable[[str, int], object], index: Callable[[bool], int]
    ) -> tuple[dict[str, int], int, int]:
        """Copy rows until a pass finds no differences.

        Return the number of rows in each table, of changes, and of passes. ``notify`` receives a
        table's name and the number of rows read so far. ``index`` adds missing rows to the
        full-text index and returns their number. Raises StoreBusyError after ten passes.
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
        if changed:
            raise StoreBusyError(
                "other processes keep writing to this memory, so the two sides never match",
                hint="stop them (nacre serve stop), then run the command again: it continues",
            )
        return rows, written, passes

    def number_above(self) -> None:
        last = (self._source.value("next_turn_row") or 1) - 1
        self._target.run("keep_turn_rows_above", row=last)
        for table, column in self._target.all("list_numbered") if self._target.server else ():
            (highest,) = self._source.rows(f"SELECT max({column}) FROM {table}")[0]  # noqa: S608 - internal names
            self._target.one("keep_rows_above", held=table, row=highest or 0)

    def _remove(self, table: _Table) -> int:
        if not self._target.rows(f"SELECT 1 FROM {table.name} LIMIT 1"):  # noqa: S608 - internal names
            return 0
        outdated = (
            table.key(present)
            for expected, present in self._pairs(table)
            if present is not None
            and (expected is None or (table.name in _WITH_FULL_TEXT and expected != present))
        )
        where = " AND ".join(f"{column} = ?" for column in table.key_columns)
        removed = 0
        for keys in _batches(outdated):
            with self._target.transaction():
                for kind in _WITH_FULL_TEXT.get(table.name, ()):
                    self._target.words.drop(kind, [key[0] for key in keys])
                self._target.many(f"DELETE FROM {table.name} WHERE {where}", keys)  # noqa: S608 - internal names
            removed += len(keys)
        return removed

    def _add(self, table: _Table, notify: Callable[[str, int], object]) -> tuple[int, int]:
        read = added = 0

        def new() -> Iterator[Row]:
            nonlocal read
            for expected, present in self._pairs(table):
                read += expected is not None
                if expected is not None and expected != present:
                    yield expected
                if read % _ROWS_PER_PAGE == 0:
                    notify(table.name, read)

        columns = ", ".join(map(quoted, table.columns))
        keys = ", ".join(table.key_columns)
        other_columns = [
            quoted(name) for at, name in enumerate(table.columns) if at not in table.keys
        ]
        updates = ", ".join(f"{name} = excluded.{name}" for name in other_columns)
        statement = (
            f"INSERT INTO {table.name} ({columns}) VALUES ({', '.join('?' * len(table.columns))}) "  # noqa: S608 - internal names
            f"ON CONFLICT ({keys}) DO {f'UPDATE SET {updates}' if updates else 'NOTHING'}"
        )
        for rows in _batches(new()):
            with self._target.transaction():
                self._target.many(statement, rows)
            added += len(rows)
        notify(table.name, read)
        return read, added

    def _pairs(self, table: _Table) -> Iterator[tuple[Row | None, Row | None]]:
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
        """Convert a source row, replacing NUL because PostgreSQL cannot store it."""
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
    """Yield all rows in pages, so that other connections are not blocked."""
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


def _batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    remaining = iter(rows)
    while batch := list(islice(remaining, _ROWS_PER_WRITE)):
        yield batch


# -- The move --------------------------------------------------------------------------------------
# An interrupted move can be continued.


MOVED = ".moved"
"""Suffix for the database of a memory that was moved, so that other processes notice."""

REPLACED_FOLDER = "vault.before-move"
"""Folder in the home for documents that a move replaced."""

_INDEX_PORTION = 500


@frozen
class MoveReport:
    """The result of a move from ``kept`` to ``place``."""

    place: str
    kept: str
    tenant: str
    rows: dict[str, int]
    """Number of rows in each table."""

    written: int
    passes: int
    documents: Documents
    documents_there: Documents
    """The documents in the target."""

    is_in_use: bool
    left: str = ""
    """The reason why nacre does not use the target now, if so."""

    @property
    def is_same(self) -> bool:
        return self.documents == self.documents_there


@operation("move", writes=True, takes_long=True, closed=True, owners=True, command="data move")
def move(
    settings: Settings,
    on_progress: OnProgress = lambda _: None,
    *,
    to: Address | None = None,
    source: Address | None = None,
    tenant: Annotated[
        str | None, bounds("The tenant on the server; default: storage.tenant.")
    ] = None,
) -> MoveReport:
    """Move the memory of a home to a server, or from one, and use it there from then on.

    The source stays unchanged. Raises InvalidInputError, ConflictError, UnusableStoreError,
    StoreBusyError, EditConflictError, UnavailableError.
    """
    if (to is None) == (source is None):
        raise InvalidInputError(
            "give the source or the destination of the move",
            hint="use --to ADDRESS or --from ADDRESS",
        )
    if to and settings.server:
        raise ConflictError(
            f"this memory is already on a server: {without_password(settings.server)}",
            hint="nacre data move --from moves it back",
        )
    folder = in_folder(settings)
    if to:
        return _to_server(folder, on_server(folder, to, tenant), on_progress)
    return _from_server(folder, on_server(folder, source or "", tenant), on_progress)


def _to_server(local: Settings, remote: Settings, notify: OnProgress) -> MoveReport:
    address, tenant = without_password(remote.server), remote.text("storage.tenant")
    with _open_ends(local, remote) as (folder, server), _lock_ends(folder):
        moved = read_moved(local)
        if moved is None or (moved.server, moved.tenant) != (address, tenant):
            moved = Moved(str(folder.ids()), address, tenant, is_whole=False)
        claim_tenant(server, moved)
        write_moved(local, moved)
        report = _carry(folder, server, notify)
        obstacle = _obstacle(local, address, tenant)
        if not obstacle:
            write_moved(local, replace(moved, is_whole=True))
            write_setting(local.config, "storage.tenant", tenant)
            write_setting(local.config, "storage.url", address)
            _carry_rows(folder, server, notify)  # rows written since the last pass
            server.database.run("end_move")
            folder.database_file.fold_log()
            folder.close()
            set_aside(local.database, local.database.with_name(local.database.name + MOVED))
        return replace(report, is_in_use=not obstacle, left=obstacle)


def _from_server(local: Settings, remote: Settings, notify: OnProgress) -> MoveReport:
    address, tenant = without_password(remote.server), remote.text("storage.tenant")
    former = local.database.with_name(local.database.name + MOVED)
    at_rest = (
        replace(local, database=former)
        if former.exists() and not local.database.exists()
        else local
    )
    with _open_ends(at_rest, remote) as (folder, server), _lock_ends(folder, server):
        moved = read_moved(local)
        is_former = moved and moved.is_whole and (moved.server, moved.tenant) == (address, tenant)
        if not is_former and not is_empty(folder):
            raise ConflictError(
                f"{folder.settings.home} already has its own memory",
                hint="use an empty home: nacre --home FOLDER data move --from …",
            )
        seen_files, pending, _ = folder.files.file_states()
        edited = {
            path for path, now in folder.vault.times().items() if seen_files.get(path) != now
        } - pending
        if edited:
            raise ConflictError(
                f"{len(edited)} files of {folder.settings.vault} were edited since, including {min(edited)}",
                hint="move them out of the vault, then run the command again",
            )
        write_moved(local, Moved(str(folder.ids()), address, tenant, is_whole=True))
        new = replace(local, database=local.database.with_name(f"{local.database.name}.moving"))
        with contextlib.closing(open_home(new)) as fresh:
            report = _carry(server, fresh, notify)
            fresh.database_file.fold_log()
        folder.close()
        if at_rest is not local:
            set_aside(former, local.database)
        take_place(local.database, new.database)
        unwrite_setting(local.config, "storage.url")
        write_moved(local, None)
        return replace(report, is_in_use=True)


@contextlib.contextmanager
def _open_ends(local: Settings, remote: Settings) -> Iterator[tuple[Home, Home]]:
    closing = contextlib.closing
    with closing(open_home(remote)) as server, closing(open_home(local)) as folder:
        yield folder, server


@contextlib.contextmanager
def _lock_ends(*homes: Home) -> Iterator[None]:
    with ExitStack() as stack:
        for home in homes:
            for lock in (home.vault_lock, home.archive_lock, home.writer_lock):
                stack.enter_context(lock)
            apply_intents(home)
        yield


def _carry(source: Home, target: Home, notify: OnProgress) -> MoveReport:
    notify(Progress("documents", 0, 1))
    scan(source)  # read pending changes in files: manual edits, usage, costs
    fold_usage(source)
    fold_notes(source)
    apply_intents(source)
    written = carry_documents(source.vault, target)
    rows, copied, passes = _carry_rows(source, target, notify)
    server = target if target.database.server else source
    return MoveReport(
        place=_place(target),
        kept=_place(source),
        tenant=server.settings.text("storage.tenant"),
        rows=rows,
        written=copied + written,
        passes=passes,
        documents=documents_of(source.vault),
        documents_there=documents_of(target.vault),
        is_in_use=False,
    )


def _keep(target: Home, path: str, data: bytes) -> None:
    """Keep a copy of a replaced document, except on a server, which keeps all versions."""
    if not target.database.server:
        kept_path = target.settings.home / REPLACED_FOLDER / path
        files.make_folder(kept_path.parent)
        files.write_file(kept_path, data)


def _place(home: Home) -> str:
    return without_password(home.settings.server) or str(home.settings.home)


def _carry_rows(source: Home, target: Home, notify: OnProgress) -> tuple[dict[str, int], int, int]:
    expected = sum(source.memories.counts().values()) + sum(
        turns or 0 for _, _, turns, *_ in source.sessions.counts()
    )
    times, pages = target.vault.times(), target.vault.pages()

    def file(row: dict[str, Any]) -> dict[str, Any]:
        return row | {"mtime_ns": times[row["path"]][0]} if row["path"] in times else row

    def project(row: dict[str, Any]) -> dict[str, Any]:
        return row | {"mtime_ns": pages.get(row["slug"], 0)}

    mirror = Mirror(source.database, target.database, {"vault_files": file, "projects": project})
    mirror.number_above()
    rows_read: dict[str, int] = {}

    def at(table: str, rows: int) -> None:
        rows_read[table] = rows
        notify(
            Progress(
                "rows", min(sum(rows_read.values()), expected), expected, table.replace("_", " ")
            )
        )

    target.database.relax()
    try:
        return mirror.run(at, lambda is_new: _index(target, notify, is_new=is_new))
    finally:
        target.database.tighten()


def _index(home: Home, notify: OnProgress, *, is_new: bool) -> int:
    if is_new and home.database.server:
        home.database.one("look_at_rows")
    memories = home.database.column("list_memories_unindexed")
    turns = home.database.column("list_turns_unindexed")
    total = len(memories) + len(turns)
    for at in range(0, len(memories), _INDEX_PORTION):
        with home.transaction():
            home.memories.index_again(memories[at : at + _INDEX_PORTION])
        notify(Progress("words", at, total))
    for at in range(0, len(turns), _INDEX_PORTION):
        rows = turns[at : at + _INDEX_PORTION]
        with home.transaction():
            stored_turns = home.sessions.by_rows(rows).items()
            home.deeds.index_again(
                [Deeds(row, stored.turn.tool_calls) for row, stored in stored_turns]
            )
            home.sessions.index_again(rows)
        notify(Progress("words", len(memories) + at, total))
    if total and home.database.server:
        home.database.one("look_at_rows")
    return total


def _obstacle(local: Settings, address: str, tenant: str) -> str:
    try:
        open_home(local.having("storage.url", address).having("storage.tenant", tenant)).close()
    except NacreError as error:
        return f"without the password in the address, the server says: {error.message}"
    return ""
