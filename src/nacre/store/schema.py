"""Interface of database engines, SQL conditions for filters, names of memories, and rows of turns.

Only this module composes SQL from filters. It joins fixed fragments.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import date
from enum import StrEnum
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, cast

from nacre.base.frozen import frozen
from nacre.base.ids import from_ms, to_ms
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
    """An SQL condition, its bound values in order, and the view to select from."""

    sql: str
    values: tuple[object, ...] = ()
    source: str = "active_memories"

    def into(self, statement: str) -> str:
        """Insert the condition and the view for ``{where}`` and ``{source}`` in a statement."""
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
    """Return the SQL condition that selects the memories ``m`` matching a filter.

    The memories are active, or were active on the filter's ``as_of`` day. ``today`` excludes
    memories that are outdated on that day and, unless ``for_list`` is set, expired memories.
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


FORMER = Clause("m.superseded_by IS NOT NULL", source="past_memories")
"""Condition that selects superseded memories."""


_HOLDS_WORD = """(instr(lower(m.subject || ' ' || m.content), lower(?)) > 0
OR EXISTS (SELECT 1 FROM tags g WHERE g.memory = m.id AND instr(lower(g.tag), lower(?)) > 0))"""


def with_words(clause: Clause, words: Sequence[str]) -> Clause:
    """Extend a condition on memories: the subject, content or tags must contain each word."""
    if not words:
        return clause
    sql = " AND ".join((clause.sql, *(_HOLDS_WORD for _ in words)))
    return replace(
        clause, sql=sql, values=(*clause.values, *(word for word in words for _ in range(2)))
    )


def turn_clause(criteria: Filter) -> Clause:
    """Return the SQL condition that selects turns ``t`` and sessions ``s`` matching a filter.

    Turns are always private. Times are also checked for sessions, which are fewer than turns.
    """
    day = criteria.as_of
    return _where(
        *_parts_of_both("s.project", "t.time", criteria),
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
    """Return the SQL condition for agents' actions in turns ``t`` and sessions ``s``."""
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
"""Exceptions that rows with unexpected contents cause outside the engine."""

Row = tuple[Any, ...]
Method = TypeVar("Method", bound=Callable[..., Any])

_MAX_KEY_BYTES = 2_000


class Indexed(StrEnum):
    """The full-text tables: memories, turns, and failed calls with their errors."""

    MEMORIES = "memories"
    TURNS = "turns"
    FAILURES = "failures"


class Words(NamedTuple):
    """The words of a row for the full-text index.

    ``texts``: text of each column, split into words. ``names``: identifiers in the text. The class
    is a tuple, so that the status line can load this module in a few milliseconds.
    """

    row: int
    texts: tuple[str, ...]
    names: str = ""


class WordIndex(Protocol):
    """An engine's full-text index. Call writing methods in the transaction that writes the rows."""

    def add(self, kind: Indexed, rows: Sequence[Words]) -> None:
        """Add rows that are not in the index yet."""

    def drop(self, kind: Indexed, rows: Sequence[int]) -> None:
        """Remove rows from the index, if present."""

    def frequencies(self, kind: Indexed, stems: Sequence[str]) -> dict[str, int]:
        """Return the number of rows for each stem. Stems that occur in no row are omitted."""

    def best(self, kind: Indexed, words: Sequence[str], where: Clause, limit: int) -> list[int]:
        """Return rows that contain any of the words and match a condition, best BM25 score first.

        The condition refers to memories ``m``, or to ``turns t`` and their ``sessions s``.
        """


class Database(Queries, Protocol):
    """A database connection, used by one thread at a time.

    Statements outside a transaction are committed immediately. All methods can raise StoreBusyError
    (another process is writing), UnusableStoreError and Unavailable. Methods that write also raise
    ``unwritable``.
    """

    unwritable: NacreError | None
    """The error to raise on writes, if the database is read-only."""

    @property
    def server(self) -> Server | None:
        """The server's vault, locks and search, or ``None`` if the database is a local file."""

    def rows(self, sql: str, parameters: dict[str, Any] | Sequence[Any] = ()) -> list[Row]:
        """Run SQL with bound values and return all rows.

        The SQL must be composed in this package.
        """

    def many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run SQL once for each row, in one transaction.

        The SQL must be composed in this package.
        """

    def insert(self, table: str, row: Mapping[str, Any], returning: str) -> Any:
        """Insert a row and return the stored value of one column. Call this in a transaction."""

    def columns(self, table: str) -> list[str]:
        """Return a table's column names, in order."""

    def transaction(self) -> AbstractContextManager[None]:
        """Run the block as the only writer, and roll back on exceptions. Nested blocks join the outer transaction."""

    @property
    def is_in_transaction(self) -> bool:
        """True if a transaction is open."""

    def reading(self) -> AbstractContextManager[None]:
        """Run the block with a consistent view of the database while other connections write."""

    def yield_write_lock(
        self, first: Callable[[], object] | None = None, between: Callable[[], object] | None = None
    ) -> bool:
        """Commit a long transaction and begin a new one, so that other processes can write.

        ``first``: function called before the commit. ``between``: function called between the
        transactions. Nothing happens in a nested block, or if the lock was held for less than 30
        ms. Return True if another connection has written in between, because data read earlier
        might then be outdated.
        """

    def edition(self) -> object:
        """Return a value that changes when another connection commits."""

    def state(self) -> object:
        """Return a value that changes with every write, or ``None`` within a transaction."""

    @property
    def words(self) -> WordIndex:
        """The full-text index, for writing."""

    def stems(self, text: str) -> list[str]:
        """Return the Porter stems of a text without diacritics, as in the full-text index."""

    def relax(self) -> None:
        """Make commits return before the data is on disk.

        Use this only for data that can be read again.
        """

    def tighten(self) -> None:
        """Make commits wait for the disk again."""

    def is_in_place(self) -> bool:
        """Return True if a new connection would open the same database."""

    @property
    def identity(self) -> object:
        """A value that identifies the opened file, or the tenant's rows on a server."""

    def schema(self) -> int:
        """Return the number of the last migration, even if another program applied it."""

    def interrupt(self) -> None:
        """Interrupt the statement in another thread.

        The interrupted statement raises Unavailable.
        """

    def close(self) -> None:
        """Close the connection. Repeated calls have no effect."""


class Server(Protocol):
    """Interface that a server implements. Without a server, nacre uses files and SQLite."""

    def vault(self, clock: Clock) -> Vault:
        """Return the vault."""

    def lock(self, name: str) -> FileLock:
        """Return a lock that is shared by all processes that can write."""

    def search(self, table: str) -> WordSearch:
        """Return the full-text search of ``memories`` or ``turns``."""

    def nearest(self, bits: NDArray[np.uint64]) -> Walk:
        """Return the passages, the nearest to a query first.

        ``bits``: signs of the numbers in the query's vector.
        """

    def allowed(
        self, home: Home, operation: str, *, writes: bool, owners: bool
    ) -> AbstractContextManager[None]:
        """Return a context manager that checks the caller's role and records writes. Raises NotAllowedError."""

    def with_further_spaces(
        self,
        home: Home,
        query: RecallQuery,
        own: RecallResult,
        ask: Callable[[Home, RecallQuery], RecallResult],
    ) -> RecallResult:
        """Add answers from the other spaces that recall reads to ``own``."""


class Engine(Protocol):
    """Factory for databases on a server. Plugins register it in ``nacre.engines`` by URL scheme."""

    def __call__(
        self, url: str, tenant: str, account: str, unwritable: NacreError | None
    ) -> Database:
        """Connect to a tenant's memory and migrate its schema."""

    def key_spaces(self, settings: Settings) -> KeySpaces:
        """Return the spaces that clients can access with API keys."""


def fits_index(text: str) -> bool:
    """Return True if a text fits into an indexed column in PostgreSQL."""
    return len(to_bytes(text)) <= _MAX_KEY_BYTES


def in_transaction(method: Method) -> Method:
    """Run a store's method in a transaction, unless one is already open."""

    @wraps(method)
    def whole(self: Any, *args: Any, **kwargs: Any) -> Any:
        with self._db.transaction():
            return method(self, *args, **kwargs)

    return cast(Method, whole)


def runs(statement: str) -> Callable[[Method], Method]:
    """Return a decorator for a method that runs a named statement.

    The method and the statement have the same parameters.
    """

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
    """Base class for stores. A store reads and writes some tables."""

    def __init__(self, database: Database) -> None:
        self.database = self._db = database


# -- Names of memories, and links to names in bodies --------------------------


ALIASES = "aliases"
"""Front matter key for alternative names, as in Obsidian."""


class Names(Store):
    """Store of memories' names and mentions, and of the links in memories' bodies."""

    def of(self, memory_id: str) -> set[str]:
        """Return a memory's names in their normalised form."""
        return set(self._db.column("list_memory_names", memory=memory_id))

    def put(self, memory: Memory, former: Collection[str] = ()) -> None:
        """Store a memory's names and mentions, and update the affected links.

        ``former``: previous names that are already deleted. Call this in the transaction that
        writes the memory's row or renames its file.
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
        self._db.run_many("insert_mention", [{"source": memory.id, "name": name} for name in links])
        if not links:
            self._db.run("delete_body_links", sources=[memory.id])
        self.resolve({*former, *names}, *([memory.id] if links else []))

    def resolve(self, names: Collection[str], *sources: str) -> None:
        """Update the links in the text of ``sources`` and of memories that mention the names."""
        using = self._db.column("list_mentioning", names=[*names])
        if memories := [*dict.fromkeys((*sources, *using))]:
            self._db.run("delete_body_links", sources=memories)
            self._db.run("insert_body_links", sources=memories)

    def lost(self, memory_id: str, kept: Collection[str]) -> list[str]:
        """Return the names that other memories use in links to a memory, except ``kept`` names."""
        return self._db.column("list_lost_memory_names", memory=memory_id, kept=[*kept])


# -- Turns as rows ------------------------------------------------------------


def encode(values: object) -> bytes:
    """Encode column values as JSON."""
    return msgspec.json.encode(values)


def turn_identity(tool: str, row: int, turn: Turn) -> bytes:
    """Return 16 bytes that identify a turn.

    Copies in other sessions have the same bytes if the turn's id is unique across sessions.
    """
    return shared_identity(tool if turn.unique else f"{tool}\0{row}", turn.id)


def shared_identity(scope: str, turn_id: str) -> bytes:
    """Return 16 bytes that identify a turn.

    ``scope``: tool, or tool and session if ids are unique only in a session.
    """
    return hashlib.blake2b(to_bytes(f"{scope}\0{turn_id}"), digest_size=16).digest()


def tools_column(turn: Turn) -> str | None:
    """Encode a turn's tool calls for its row. Return ``None`` if the turn has no tool calls."""
    if not turn.tool_calls:
        return None
    return encode(kept_calls(turn.tool_calls)).decode()


def kept_calls(calls: Sequence[ToolCall]) -> list[list[object]]:
    """Return each tool call as a list of values, without default values at the end."""
    encoded: list[list[object]] = []
    for call in calls:
        values: list[object] = [
            call.name,
            call.input,
            call.outcome,
            call.action.value,
            call.paths,
            call.error,
            call.made,
        ]
        plain = [call.name, call.input, call.outcome, Action.OTHER.value, (), None, ()]
        while len(values) > 3 and values[-1] == plain[len(values) - 1]:
            values.pop()
        encoded.append(values)
    return encoded


def stored_calls(tools: str | None) -> tuple[ToolCall, ...]:
    """Decode the tool calls stored in a turn's row."""
    return tuple(kept_call(*call) for call in json.loads(tools)) if tools else ()


def kept_call(
    name: str,
    brief: str = "",
    outcome: str | None = None,
    action: str = Action.OTHER.value,
    paths: Sequence[str] = (),
    error: str | None = None,
    made: Sequence[str] = (),
) -> ToolCall:
    """Build a tool call. Raises ValueError for an unknown action."""
    return ToolCall(name, brief, outcome, Action(action), tuple(paths), error, tuple(made))


def did_of(calls: Sequence[ToolCall]) -> str:
    """Return the text of a turn's tool calls for the full-text index."""
    return "\n".join(
        f"{call.name} {call.input} {call.outcome if call.outcome != 'ok' else ''}" for call in calls
    )


def turn_row(session: int, seq: int, identity: bytes, turn: Turn) -> tuple[object, ...]:
    """Return the column values of a turn."""
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
