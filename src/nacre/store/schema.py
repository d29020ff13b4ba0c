"""Interface of database engines, SQL conditions for filters, names of memories, and rows.

Only this module composes SQL from filters. It joins fixed fragments.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import is_dataclass, replace
from datetime import date, datetime
from enum import StrEnum
from functools import cache, wraps
from operator import attrgetter
from typing import (
    TYPE_CHECKING,
    Any,
    NamedTuple,
    Protocol,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from nacre.base import json as json_values
from nacre.base.frozen import frozen
from nacre.base.ids import at_ms, content_hash, from_ms, to_ms
from nacre.base.lazy import Module
from nacre.base.sql import Queries
from nacre.base.text import aliases_in, called, mentioned, to_bytes
from nacre.base.times import day_interval
from nacre.errors import NacreError
from nacre.values.memory import Memory, Scope
from nacre.values.recall import Filter, RecallQuery, RecallResult
from nacre.values.session import Action, Flag, Speaker, StoredTurn, ToolCall, Trust, Turn

if TYPE_CHECKING:
    import msgspec
    import numpy as np
    from numpy.typing import NDArray

    from nacre.base.ids import Clock
    from nacre.base.locks import FileLock
    from nacre.home.home import Home
    from nacre.serve.homes import KeySpaces
    from nacre.settings import Settings
    from nacre.store.search import Walk, WordSearch
    from nacre.values.memory import DeedFilter
    from nacre.vault.files import Vault
else:
    msgspec = Module("msgspec")

_VISIBLE_SCOPES: dict[Scope, tuple[Scope, ...]] = {
    Scope.PRIVATE: (),
    Scope.PERSONAL: (Scope.PERSONAL, Scope.PUBLIC),
    Scope.PUBLIC: (Scope.PUBLIC,),
}
"""Scopes that a request can see, keyed by the request's own scope. An empty tuple means all."""

_IN_SESSIONS = """s.row IN (
    SELECT row FROM sessions WHERE tool || ':' || native_id IN (SELECT value FROM json_each(?))
    OR label IN (SELECT value FROM json_each(?))
)"""
_MEMORY_IN_SESSIONS = """(m.session IN (SELECT value FROM json_each(?)) OR m.session IN (
    SELECT tool || ':' || native_id FROM sessions WHERE label IN (SELECT value FROM json_each(?))
))"""


@frozen
class Clause:
    """An SQL condition with its values, and the view from which it selects."""

    sql: str
    values: tuple[object, ...] = ()
    source: str = "active_memories"

    def into(self, statement: str) -> str:
        """Return a statement with ``{where}`` and ``{source}`` filled in."""
        return statement.format(where=self.sql, source=self.source)

    @property
    def is_open(self) -> bool:
        """True if the condition selects all rows."""
        return not self.values and self.sql == "TRUE"


_HAS_BEGUN = "coalesce(m.valid_since, date(m.created / 1000, 'unixepoch', 'localtime')) <= ?"
_NOT_ENDED = (
    "CASE WHEN m.superseded_by IS NULL THEN coalesce(m.valid_until >= ?, TRUE)"
    " ELSE coalesce(m.valid_until > ?, FALSE) END"
)
"""Condition that a memory is still valid on a day. It is not valid on the day it was superseded."""


def memory_clause(criteria: Filter, today: date | None = None, *, for_list: bool = False) -> Clause:
    """Return the condition for memories ``m`` that match a filter, now or on its ``as_of`` day.

    ``today`` excludes outdated memories and, unless ``for_list``, expired ones.
    """
    day = criteria.as_of
    tags = tuple(tag.lower() for tag in criteria.tags)
    has_tag = _among("lower(g.tag)", tags)[1]
    return _where(
        (day, _HAS_BEGUN, day),
        (day, _NOT_ENDED, day, day),
        *_parts_of_both("m.project", "m.created", criteria),
        _among("m.kind", criteria.kinds),
        _among("m.expiry", criteria.expiry),
        _among("substr(m.session, 1, max(instr(m.session, ':') - 1, 0))", criteria.tools),
        (criteria.sessions, _MEMORY_IN_SESSIONS, criteria.sessions, criteria.sessions),
        _among("m.scope", _VISIBLE_SCOPES[criteria.scope]),
        (today and not day, "(m.valid_until IS NULL OR m.valid_until >= ?)", today),
        (today and not for_list, "(m.expires_on IS NULL OR m.expires_on > ?)", today),
        (criteria.min_importance is not None, "m.importance >= ?", criteria.min_importance),
        (criteria.owner_only, "m.speaker = 'owner'"),
        (criteria.trusted, "m.trust = 'trusted'"),
        (criteria.settled, "m.inbox = 0 AND m.proposed = 0"),
        (tags, f"m.id IN (SELECT g.memory FROM tags g WHERE {has_tag})", *tags),  # noqa: S608
        source="past_memories" if day else "active_memories",
    )


def admits(criteria: Filter, memory: Memory) -> bool:
    """Return True if a candidate matches a filter, as :func:`memory_clause` decides in SQL."""
    session, tags = memory.source.session or "", {tag.lower() for tag in memory.tags}
    return (
        not (criteria.as_of or criteria.settled or criteria.scope is not Scope.PRIVATE)
        and (
            not criteria.projects
            or memory.project in criteria.projects
            or not (memory.project or criteria.strict)
        )
        and (not memory.project or memory.project not in criteria.exclude_projects)
        and (not criteria.since or memory.created >= criteria.since)
        and (not criteria.until or memory.created < criteria.until)
        and (not criteria.kinds or memory.kind in criteria.kinds)
        and (not criteria.tags or not tags.isdisjoint(tag.lower() for tag in criteria.tags))
        and (not criteria.min_importance or memory.importance >= criteria.min_importance)
        and (not criteria.expiry or memory.expiry in criteria.expiry)
        and (not criteria.owner_only or memory.speaker is Speaker.OWNER)
        and (not criteria.trusted or memory.trust is Trust.TRUSTED)
        and (not criteria.tools or session.partition(":")[0] in criteria.tools)
        and (not criteria.sessions or session in criteria.sessions)
    )


FORMER = Clause("m.superseded_by IS NOT NULL", source="past_memories")
"""Condition that selects superseded memories."""


_HOLDS_WORD = """(instr(lower(m.subject || ' ' || m.content), lower(?)) > 0
OR EXISTS (SELECT 1 FROM tags g WHERE g.memory = m.id AND instr(lower(g.tag), lower(?)) > 0))"""


def with_words(clause: Clause, words: Sequence[str]) -> Clause:
    """Extend a condition so that the subject, content or tags must contain each word."""
    if not words:
        return clause
    sql = " AND ".join((clause.sql, *(_HOLDS_WORD for _ in words)))
    return replace(
        clause, sql=sql, values=(*clause.values, *(word for word in words for _ in range(2)))
    )


def turn_clause(criteria: Filter) -> Clause:
    """Return the condition for turns ``t`` and sessions ``s`` that match a filter."""
    day = criteria.as_of
    return _where(
        *_parts_of_both("s.project", "t.time", criteria),
        # There are fewer sessions than turns to compare.
        (criteria.since, "(s.ended IS NULL OR s.ended >= ?)", criteria.since),
        (criteria.until, "(s.started IS NULL OR s.started < ?)", criteria.until),
        _among("s.tool", criteria.tools),
        (criteria.sessions, _IN_SESSIONS, criteria.sessions, criteria.sessions),
        (criteria.owner_only, "t.speaker = 'owner'"),
        (criteria.trusted, "t.trust = 'trusted'"),
        (day, "t.time < ?", day and day_interval(day)[1]),
        (criteria.scope != Scope.PRIVATE, "FALSE"),
    )


def deed_clause(criteria: DeedFilter) -> Clause:
    """Return the condition for actions of agents in turns ``t`` and sessions ``s``."""
    return _where(
        (criteria.project, "s.project = ?", criteria.project),
        (criteria.tool, "s.tool = ?", criteria.tool),
        (criteria.since, "coalesce(t.time, s.ended) >= ?", criteria.since),
    )


_Part = tuple[Any, ...]
"""A value, an SQL condition and its bound values.

If the value is falsy, the condition is omitted.
"""


def _parts_of_both(project: str, time: str, criteria: Filter) -> list[_Part]:
    projects, excluded = criteria.projects, criteria.exclude_projects
    among = _among(project, projects)[1]
    open_end = "" if criteria.strict else f" OR {project} IS NULL"
    return [
        (projects, f"({among}{open_end})", *projects),
        (excluded, f"({project} IS NULL OR NOT {_among(project, excluded)[1]})", *excluded),
        (criteria.since, f"{time} >= ?", criteria.since),
        (criteria.until, f"{time} < ?", criteria.until),
    ]


def _among(column: str, options: Sequence[str]) -> _Part:
    return (options, f"{column} IN ({', '.join('?' * len(options))})", *options)


def _where(*parts: _Part, source: str = "active_memories") -> Clause:
    used = [part[1:] for part in parts if part[0]]
    return Clause(
        " AND ".join(sql for sql, *_ in used) or "TRUE",
        tuple(value for _, *values in used for value in values),
        source,
    )


# -- The interface of database engines ----------------------------------------


UNREADABLE = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)
"""Exceptions raised outside the engine for rows with unexpected contents."""

Row = tuple[Any, ...]
T = TypeVar("T")
Method = TypeVar("Method", bound=Callable[..., Any])

_MAX_KEY_BYTES = 2_000


class Indexed(StrEnum):
    """The full-text tables: memories, turns, and failed calls with their errors."""

    MEMORIES = "memories"
    TURNS = "turns"
    FAILURES = "failures"


class Words(NamedTuple):
    """A row's words for the full-text index: the words of each column, and all identifiers.

    This is a tuple so that the status line starts fast.
    """

    row: int
    texts: tuple[str, ...]
    names: str = ""


class WordIndex(Protocol):
    """The full-text index of a database engine.

    Call its writing methods in the transaction that writes the rows.
    """

    def add(self, kind: Indexed, rows: Sequence[Words]) -> None:
        """Add rows that are not in the index yet."""

    def drop(self, kind: Indexed, rows: Sequence[int]) -> None:
        """Remove rows from the index, if present."""

    def frequencies(self, kind: Indexed, stems: Sequence[str]) -> dict[str, int]:
        """Return the number of rows that contain each stem, omitting zeros."""

    def best(self, kind: Indexed, words: Sequence[str], where: Clause, limit: int) -> list[int]:
        """Return rows that contain any of the words, best BM25 score first.

        The condition refers to memories ``m``, or to ``turns t`` and their ``sessions s``.
        """


class Database(Queries, Protocol):
    """A database connection, for one thread at a time.

    A statement outside a transaction is committed at once. All methods can raise StoreBusyError,
    UnusableStoreError and UnavailableError; on a read-only database, writes raise ``unwritable``.
    """

    unwritable: NacreError | None
    """The error that writes raise if the database is read-only."""

    @property
    def server(self) -> Server | None:
        """The server that stores this database, or ``None`` for a local file."""

    def rows(self, sql: str, parameters: dict[str, Any] | Sequence[Any] = ()) -> list[Row]:
        """Run SQL that was composed in this package, and return all rows."""

    def many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run SQL that was composed in this package, once for each row, in one transaction."""

    def insert(self, table: str, row: Mapping[str, Any], returning: str) -> Any:
        """Insert a row in the open transaction, and return the stored value of one column."""

    def columns(self, table: str) -> list[str]:
        """Return a table's column names, in order."""

    def transaction(self) -> AbstractContextManager[None]:
        """Run the block as the only writer, and roll back on exceptions. Nested blocks join the
        outer one.
        """

    @property
    def is_in_transaction(self) -> bool:
        """True if a transaction is open."""

    def reading(self) -> AbstractContextManager[None]:
        """Run the block with a view of the database that concurrent writes do not change."""

    def yield_write_lock(
        self, first: Callable[[], object] | None = None, between: Callable[[], object] | None = None
    ) -> bool:
        """Commit a long transaction and begin a new one, so that other processes can write.

        ``first`` is called before the commit, ``between`` after it. Nothing happens in a nested
        block, or if the lock was held for less than 30 ms. Return True if another connection has
        written, so earlier data might be outdated.
        """

    def edition(self) -> object:
        """Return a token that changes when another connection commits."""

    def state(self) -> object:
        """Return a token that changes with every write, or ``None`` within a transaction."""

    @property
    def words(self) -> WordIndex:
        """The full-text index of this database."""

    def stems(self, text: str) -> list[str]:
        """Return a text's Porter stems without diacritics, as in the full-text index."""

    def relax(self) -> None:
        """Let commits return before data is on disk. Use this only for data that can be read
        again.
        """

    def tighten(self) -> None:
        """Undo :meth:`relax`: commits wait for the disk again."""

    def is_in_place(self) -> bool:
        """Return True if a new connection would open the same database."""

    @property
    def identity(self) -> object:
        """A token that identifies the open file or, on a server, the tenant."""

    def schema(self) -> int:
        """Return the number of the last applied migration."""

    def interrupt(self) -> None:
        """Interrupt another thread's statement, which then raises UnavailableError."""

    def close(self) -> None:
        """Close the connection; further calls do nothing."""


class Server(Protocol):
    """A database server that stores a memory in place of files and SQLite."""

    def vault(self, clock: Clock) -> Vault:
        """Return the vault on this server."""

    def lock(self, name: str) -> FileLock:
        """Return a lock shared by all processes that write to this server."""

    def search(self, table: str) -> WordSearch:
        """Return the full-text search of a table: ``memories`` or ``turns``."""

    def nearest(self, bits: NDArray[np.uint64]) -> Walk:
        """Iterate over passages by distance from a query, given the sign bits of its vector."""

    def allowed(
        self, home: Home, operation: str, *, writes: bool, owners: bool
    ) -> AbstractContextManager[None]:
        """Check the caller's role, and record writes during the block. Raises NotAllowedError."""

    def with_further_spaces(
        self,
        home: Home,
        query: RecallQuery,
        own: RecallResult,
        ask: Callable[[Home, RecallQuery], RecallResult],
    ) -> RecallResult:
        """Add the results from all other searched spaces to ``own``."""


class Engine(Protocol):
    """Factory for databases on a server, registered by URL scheme as a ``nacre.engines`` plugin."""

    def __call__(
        self, url: str, tenant: str, account: str, unwritable: NacreError | None
    ) -> Database:
        """Connect to a tenant's database and migrate its schema."""

    def key_spaces(self, settings: Settings) -> KeySpaces:
        """Return the spaces that are accessible with API keys."""


def fits_index(text: str) -> bool:
    """Return True if a text is short enough for an indexed PostgreSQL column."""
    return len(to_bytes(text)) <= _MAX_KEY_BYTES


def in_transaction(method: Method) -> Method:
    """Make a store's method run in a transaction."""

    @wraps(method)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        with self._db.transaction():
            return method(self, *args, **kwargs)

    return cast(Method, run)


def runs(statement: str) -> Callable[[Method], Method]:
    """Decorate a stub method, which then runs the named statement with its parameters."""

    def decorate(method: Method) -> Method:
        code = method.__code__
        names = code.co_varnames[1 : code.co_argcount]
        defaults = method.__kwdefaults__ or {}

        @wraps(method)
        def run(self: Any, *args: Any, **kwargs: Any) -> None:
            self._db.run(statement, **defaults | dict(zip(names, args, strict=False)) | kwargs)

        return cast(Method, run)

    return decorate


class Store:
    """Base class for stores, each of which reads and writes some tables."""

    def __init__(self, database: Database) -> None:
        self.database = self._db = database

    def _records(self, kind: type[T], name: str, /, **parameters: Any) -> list[T]:
        """Return the rows of a named query as values; see :func:`records`."""
        return records(kind, self._db.all(name, **parameters))


# -- Names of memories, and links to names in bodies --------------------------


ALIASES = "aliases"
"""Front matter key for alternative names, as in Obsidian."""


class Names(Store):
    """Names and mentions of memories, and the links in memory bodies."""

    def of(self, memory_id: str) -> set[str]:
        """Return the normalised names of a memory."""
        return set(self._db.column("list_memory_names", memory=memory_id))

    def put(self, memory: Memory, former: Collection[str] = ()) -> None:
        """Store a memory's names and mentions, and update affected links.

        Call this in the transaction that writes its row or renames its file. ``former`` contains
        names that are already deleted.
        """
        former = {*former, *self.of(memory.id)}
        self._db.run("delete_memory_names", memory=memory.id)
        self._db.run("delete_mentions", source=memory.id)
        row = self._db.one("find_path_of", memory=memory.id)
        names = called(
            memory.subject, row[0] if row else None, aliases_in(memory.extra.get(ALIASES))
        )
        self._db.run_many(
            "insert_memory_name",
            [
                {"name": name, "memory": memory.id, "written": written, "is_alias": int(is_alias)}
                for name, (written, is_alias) in names.items()
                if fits_index(name)
            ],
        )
        links = [name for name in mentioned(memory.content) if fits_index(name)]
        self._db.run_each("insert_mention", "name", links, source=memory.id)
        if not links:
            self._db.run("delete_body_links", sources=[memory.id])
        self.resolve({*former, *names}, *([memory.id] if links else []))

    def resolve(self, names: Collection[str], *sources: str) -> None:
        """Update the body links of ``sources`` and of memories that mention these names."""
        using = self._db.column("list_mentioning", names=[*names])
        if memories := [*dict.fromkeys((*sources, *using))]:
            self._db.run("delete_body_links", sources=memories)
            self._db.run("insert_body_links", sources=memories)

    def lost(self, memory_id: str, known_names: Collection[str]) -> list[str]:
        """Return names by which other memories link to this one, except ``known_names``."""
        return self._db.column("list_lost_memory_names", memory=memory_id, kept=[*known_names])


# -- Values as rows -----------------------------------------------------------
# Each dataclass field has a column of the same name. Days are stored as ISO strings, times as
# milliseconds, and lists and mappings as JSON. Each field of a nested value has its own column,
# such as ``valid_since`` for ``valid.since``.


_Read = Callable[[Any], Any]


def records(kind: type[T], rows: Iterable[Row]) -> list[T]:
    """Build values of a dataclass from rows.

    The columns must be in the order of the fields; the last ones can be missing.
    """
    build: Any = kind
    reads = _readers(build)
    if not any(reads):
        return [build(*row) for row in rows]
    return [
        build(
            *(
                read(value) if read and value is not None else value
                for read, value in zip(reads, row, strict=False)
            )
        )
        for row in rows
    ]


def record(kind: type[T], row: Row | None) -> T | None:
    """Build a value from a row like :func:`records`, or return ``None`` if the row is missing."""
    return records(kind, [row])[0] if row else None


@cache
def _readers(kind: Any) -> list[_Read | None]:
    return [_reader(field_type) for field_type in get_type_hints(kind).values()]


_ELSEWHERE = ("tags", "links", "confirmed")
"""Fields of memories that have their own tables."""

_RENAMED = {"source_session": "session", "source_turns": "turns"}


@cache
def _memory_fields() -> dict[str, tuple[Any, bool, dict[str, tuple[str, _Read | None]]]]:
    layout = {}
    for name, kind in get_type_hints(Memory).items():
        bare, is_optional = _without_none(kind)
        parts = {name: kind}
        if is_dataclass(bare):
            parts = {f"{name}_{part}": value for part, value in get_type_hints(bare).items()}
        columns = {
            column.removeprefix(f"{name}_"): (_RENAMED.get(column, column), _reader(value))
            for column, value in parts.items()
        }
        if name not in _ELSEWHERE:
            layout[name] = (bare, is_optional, columns)
    return layout


@cache
def memory_columns() -> list[str]:
    """Return the columns to select for a memory: the row number, then its fields."""
    fields = _memory_fields().values()
    return ["row", *(column for *_, parts in fields for column, _ in parts.values())]


def memory_row(memory: Memory) -> dict[str, object]:
    """Return the values of a memory's columns by name."""
    row: dict[str, object] = {}
    for name, (_, _, parts) in _memory_fields().items():
        value = getattr(memory, name)
        for part, (column, _) in parts.items():
            row[column] = value if part == name else getattr(value, part, None)
    return row


def memory_of(row: Row, **fields: Any) -> Memory:
    """Build a memory from a row with :func:`memory_columns` and from ``fields`` stored
    elsewhere.
    """
    stored = iter(row[1:])
    for name, (kind, is_optional, parts) in _memory_fields().items():
        values = [
            value if read is None or value is None else read(value)
            for (_, read), value in zip(parts.values(), stored, strict=False)
        ]
        if name in parts:
            fields[name] = values[0]
        else:
            fields[name] = None if is_optional and values[0] is None else kind(*values)
    return Memory(**fields)


def noted_pair(text: str | None, default: tuple[Any, Any]) -> tuple[Any, Any]:
    """Parse a stored JSON pair, or return ``default`` unless its types match."""
    try:
        first, second = json.loads(text or "null")
    except (TypeError, ValueError, RecursionError):
        return default
    return (
        (first, second)
        if (type(first), type(second)) == (type(default[0]), type(default[1]))
        else default
    )


def _without_none(kind: Any) -> tuple[Any, bool]:
    is_optional = type(None) in get_args(kind)
    return (
        (next(argument for argument in get_args(kind) if argument is not type(None)), True)
        if is_optional
        else (kind, False)
    )


def _reader(kind: Any) -> _Read | None:
    kind, is_optional = _without_none(kind)
    origin: Any = get_origin(kind) or kind
    if origin in (str, int, float, bytes):
        return None
    if origin in (tuple, frozenset):
        return lambda text: origin(() if text == "[]" else json.loads(text))
    if isinstance(origin, type) and is_dataclass(origin):
        return lambda text: json_values.decode(text, origin)
    reads: dict[Any, Any] = {
        dict: json.loads,
        datetime: from_ms if is_optional else at_ms,
        date: date.fromisoformat,
    }
    read: _Read = reads.get(origin, origin)
    return read


# -- Turns as rows ------------------------------------------------------------


def encode(values: object) -> str:
    """Encode values as JSON, which is faster than binding large collections."""
    encoded: bytes = msgspec.json.encode(values)
    return encoded.decode()


def turn_identity(tool: str, row: int, turn: Turn) -> bytes:
    """Return a 16-byte key for a turn. Copies in other sessions share it if its id is unique."""
    return shared_identity(tool if turn.unique else f"{tool}\0{row}", turn.id)


def shared_identity(scope: str, turn_id: str) -> bytes:
    """Return a 16-byte key for a turn in ``scope`` (a tool or one of its sessions)."""
    return content_hash(f"{scope}\0{turn_id}")


_CALL_FIELDS = attrgetter("name", "input", "outcome", "action", "paths", "error", "made")
_REQUIRED_CALL_FIELDS = 3


def tools_column(turn: Turn) -> str | None:
    """Encode a turn's tool calls for its row, each as a list of values without trailing defaults.

    Without calls, the value is ``None``.
    """
    if not turn.tool_calls:
        return None
    defaults, encoded = _CALL_FIELDS(ToolCall("")), []
    for call in turn.tool_calls:
        values = [*_CALL_FIELDS(call)]
        while len(values) > _REQUIRED_CALL_FIELDS and values[-1] == defaults[len(values) - 1]:
            values.pop()
        encoded.append(values)
    return encode(encoded)


def stored_calls(tools: str | None) -> tuple[ToolCall, ...]:
    """Decode the tool calls stored in a turn's row. Raises ValueError for an unknown action."""
    return tuple(_stored_call(*call) for call in json.loads(tools)) if tools else ()


def _stored_call(
    name: str,
    brief: str = "",
    outcome: str | None = None,
    action: str = Action.OTHER.value,
    paths: Sequence[str] = (),
    error: str | None = None,
    made: Sequence[str] = (),
) -> ToolCall:
    return ToolCall(name, brief, outcome, Action(action), tuple(paths), error, tuple(made))


def did_of(calls: Sequence[ToolCall]) -> str:
    """Return a turn's tool calls as text for the full-text index."""
    return "\n".join(
        f"{call.name} {call.input} {call.outcome if call.outcome != 'ok' else ''}" for call in calls
    )


def turn_row(session: int, seq: int, identity: bytes, turn: Turn) -> tuple[object, ...]:
    """Return a turn's column values."""
    return (
        session,
        seq,
        turn.id,
        identity.hex(),
        turn.speaker.value,
        turn.trust.value,
        int(turn.flags),
        to_ms(turn.time),
        turn.author,
        turn.text,
        tools_column(turn),
    )


def stored_turn(row: Row) -> StoredTurn:
    """Build a turn from its row."""
    number, session, seq, native_id, speaker, trust, flags, time, author, text, tools = row
    calls = stored_calls(tools)
    turn = Turn(
        id=native_id,
        speaker=Speaker(speaker),
        text=text,
        time=from_ms(time),
        tool_calls=calls,
        flags=Flag(flags),
        trust=Trust(trust),
        author=author,
    )
    return StoredTurn(number, session, seq, turn)
