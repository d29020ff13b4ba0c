"""A :class:`~nacre.values.recall.Filter` as SQL: fixed fragments, bound values. The only place that composes SQL."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import date
from enum import StrEnum
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, cast

import msgspec

from nacre.base.ids import from_ms, to_ms
from nacre.base.text import aliases_in, called, mentioned
from nacre.base.times import day_interval
from nacre.errors import NacreError
from nacre.values.memory import Memory, Scope
from nacre.values.recall import Filter
from nacre.values.session import Action, Flag, Speaker, StoredTurn, ToolCall, Trust, Turn

if TYPE_CHECKING:
    from nacre.values.memory import DeedFilter

_VISIBLE = {
    Scope.PRIVATE: (Scope.PRIVATE, Scope.PERSONAL, Scope.PUBLIC),
    Scope.PERSONAL: (Scope.PERSONAL, Scope.PUBLIC),
    Scope.PUBLIC: (Scope.PUBLIC,),
}

_IN_SESSIONS = """s.row IN (
    SELECT row FROM sessions WHERE tool || ':' || native_id IN (SELECT value FROM json_each(?))
    OR label IN (SELECT value FROM json_each(?))
)"""
_SAID_IN = """(m.session IN (SELECT value FROM json_each(?)) OR m.session IN (
    SELECT tool || ':' || native_id FROM sessions WHERE label IN (SELECT value FROM json_each(?))
))"""


@dataclass(frozen=True, slots=True)
class Clause:
    """A condition (``TRUE`` where nothing restricts), the values that it binds in order, and the view that it is on."""

    sql: str
    values: tuple[object, ...] = ()
    source: str = "active_memories"

    def into(self, statement: str) -> str:
        """A fixed statement with the condition at ``{where}`` and the view at ``{source}``."""
        return statement.format(where=self.sql, source=self.source)

    @property
    def is_open(self) -> bool:
        """Whether everything passes."""
        return not self.values and self.sql == "TRUE"


def memory_clause(wanted: Filter, today: date | None = None, *, for_list: bool = False) -> Clause:
    """The condition on memories ``m``: on those that are active, or were on the day that ``as_of`` names.

    With ``today``, what is no longer true does not pass. What has expired by then passes only ``for_list``.
    """
    parts = [
        *_past_parts(wanted.as_of),
        *_project_parts("m.project", wanted),
        *_time_parts("m.created", wanted),
        *_among("m.kind", wanted.kinds),
        *_among("m.expiry", wanted.expiry),
        *_among("substr(m.session, 1, max(instr(m.session, ':') - 1, 0))", wanted.tools),
    ]
    if wanted.sessions:
        parts.append((_SAID_IN, (json.dumps(wanted.sessions),) * 2))
    if wanted.scope != Scope.PRIVATE:
        parts += _among("m.scope", _VISIBLE[wanted.scope])
    if today is not None and wanted.as_of is None:
        parts.append(("(m.valid_until IS NULL OR m.valid_until >= ?)", (today.isoformat(),)))
    if today is not None and not for_list:
        parts.append(("(m.expires_on IS NULL OR m.expires_on > ?)", (today.isoformat(),)))
    if wanted.min_importance is not None:
        parts.append(("m.importance >= ?", (wanted.min_importance,)))
    if wanted.owner_only:
        parts.append(("m.speaker = 'owner'", ()))
    if wanted.trusted:
        parts.append(("m.trust = 'trusted'", ()))
    if wanted.settled:
        parts.append(("m.inbox = 0 AND m.proposed = 0", ()))
    if wanted.tags:
        marks = ", ".join("?" * len(wanted.tags))
        tags = tuple(tag.lower() for tag in wanted.tags)
        parts.append(
            (f"m.id IN (SELECT g.memory FROM tags g WHERE lower(g.tag) IN ({marks}))", tags)  # noqa: S608
        )
    return replace(_all(parts), source="past_memories" if wanted.as_of else "active_memories")


FORMER = Clause("m.superseded_by IS NOT NULL", source="past_memories")
"""The condition on memories that something took the place of."""


_HOLDS_WORD = """(instr(lower(m.subject || ' ' || m.content), lower(?)) > 0
OR EXISTS (SELECT 1 FROM tags g WHERE g.memory = m.id AND instr(lower(g.tag), lower(?)) > 0))"""


def with_words(clause: Clause, words: Sequence[str]) -> Clause:
    """The condition, and that a memory's subject, content or tags contain each of some words."""
    if not words:
        return clause
    sql = " AND ".join((clause.sql, *(_HOLDS_WORD for _ in words)))
    return replace(
        clause, sql=sql, values=(*clause.values, *(word for word in words for _ in range(2)))
    )


def turn_clause(wanted: Filter) -> Clause:
    """The condition on ``turns t JOIN sessions s``; turns are private."""
    parts = [
        *_project_parts("s.project", wanted),
        *_time_parts("t.time", wanted),
        *_session_parts(wanted),
        *_among("s.tool", wanted.tools),
    ]
    if wanted.sessions:
        parts.append((_IN_SESSIONS, (json.dumps(wanted.sessions),) * 2))
    if wanted.owner_only:
        parts.append(("t.speaker = 'owner'", ()))
    if wanted.trusted:
        parts.append(("t.trust = 'trusted'", ()))
    if wanted.as_of:
        parts.append(("t.time < ?", (to_ms(day_interval(wanted.as_of)[1]),)))
    if wanted.scope != Scope.PRIVATE:
        parts.append(("FALSE", ()))
    return _all(parts)


def deed_clause(wanted: DeedFilter) -> Clause:
    """The condition on what was done, in ``turns t JOIN sessions s``."""
    parts: list[tuple[str, tuple[object, ...]]] = []
    if wanted.project:
        parts.append(("s.project = ?", (wanted.project,)))
    if wanted.tool:
        parts.append(("s.tool = ?", (wanted.tool,)))
    if wanted.since:
        parts.append(("coalesce(t.time, s.ended) >= ?", (to_ms(wanted.since),)))
    return _all(parts)


def _past_parts(day: date | None) -> list[tuple[str, tuple[object, ...]]]:
    """What held on a day: it had begun, and had not ended; what was superseded that day had."""
    if day is None:
        return []
    began = "coalesce(m.valid_since, date(m.created / 1000, 'unixepoch', 'localtime')) <= ?"
    lasted = (
        "CASE WHEN m.superseded_by IS NULL THEN coalesce(m.valid_until >= ?, TRUE)"
        " ELSE coalesce(m.valid_until > ?, FALSE) END"
    )
    return [(began, (day.isoformat(),)), (lasted, (day.isoformat(), day.isoformat()))]


def _project_parts(column: str, wanted: Filter) -> list[tuple[str, tuple[object, ...]]]:
    parts: list[tuple[str, tuple[object, ...]]] = []
    if wanted.projects:
        marks = ", ".join("?" * len(wanted.projects))
        open_end = "" if wanted.strict else f" OR {column} IS NULL"
        parts.append((f"({column} IN ({marks}){open_end})", tuple(wanted.projects)))
    if wanted.exclude_projects:
        marks = ", ".join("?" * len(wanted.exclude_projects))
        parts.append(
            (f"({column} IS NULL OR {column} NOT IN ({marks}))", tuple(wanted.exclude_projects))
        )
    return parts


def _time_parts(column: str, wanted: Filter) -> list[tuple[str, tuple[object, ...]]]:
    parts: list[tuple[str, tuple[object, ...]]] = []
    if wanted.since:
        parts.append((f"{column} >= ?", (to_ms(wanted.since),)))
    if wanted.until:
        parts.append((f"{column} < ?", (to_ms(wanted.until),)))
    return parts


def _session_parts(wanted: Filter) -> list[tuple[str, tuple[object, ...]]]:
    """What follows for a session from the times of its turns: there are few sessions, and many turns."""
    parts: list[tuple[str, tuple[object, ...]]] = []
    if wanted.since:
        parts.append(("(s.ended IS NULL OR s.ended >= ?)", (to_ms(wanted.since),)))
    if wanted.until:
        parts.append(("(s.started IS NULL OR s.started < ?)", (to_ms(wanted.until),)))
    return parts


def _among(column: str, options: Sequence[str]) -> list[tuple[str, tuple[object, ...]]]:
    if not options:
        return []
    return [
        (f"{column} IN ({', '.join('?' * len(options))})", tuple(str(option) for option in options))
    ]


def _all(parts: list[tuple[str, tuple[object, ...]]]) -> Clause:
    if not parts:
        return Clause("TRUE")
    return Clause(
        " AND ".join(sql for sql, _ in parts),
        tuple(value for _, values in parts for value in values),
    )


# ----------------------------------------------------------------------------
# What stores need of an engine, on a file or on a server: named queries, transactions, full text.


UNREADABLE = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)
"""What is raised by whoever goes on with a row that no nacre wrote; what an engine itself notices is StoreUnusable."""

Row = tuple[Any, ...]
Method = TypeVar("Method", bound=Callable[..., Any])

_MOST_KEY_BYTES = 2_000


class Indexed(StrEnum):
    """What has full text: ``memories`` (subject, content, tags), ``turns`` (said, did), ``failures`` (tried, error)."""

    MEMORIES = "memories"
    TURNS = "turns"
    FAILURES = "failures"


class Words(NamedTuple):
    """A row, the texts of its columns (segmented), and the identifiers in it, between spaces.

    A tuple: the status line loads this module in a few milliseconds.
    """

    row: int
    texts: tuple[str, ...]
    names: str = ""


class WordIndex(Protocol):
    """Full text of an engine. What writes is called within the transaction that writes the rows."""

    def add(self, kind: Indexed, rows: Sequence[Words]) -> None:
        """Index rows that are not in it yet."""

    def drop(self, kind: Indexed, rows: Sequence[int]) -> None:
        """Take rows out; those that are not in it are left alone."""

    def frequencies(self, kind: Indexed, stems: Sequence[str]) -> dict[str, int]:
        """In how many rows some stems stand; those that stand in none are left out."""

    def best(self, kind: Indexed, words: Sequence[str], where: Clause, limit: int) -> list[int]:
        """Rows that hold any of some words and that a condition lets through, the best by BM25 first.

        The condition is on memories ``m``, or on ``turns t`` and their ``sessions s``.
        """


class Database(Protocol):
    """One connection to one memory. A statement outside a transaction is one of its own. One thread at a time.

    Each method may raise StoreBusy (somebody else writes), StoreUnusable and Unavailable; those that write also what
    ``unwritable`` holds.
    """

    is_server: bool
    """Whether the rows are on a server, which many machines may share, and not in a file here."""

    unwritable: NacreError | None
    """Why nothing can be written."""

    def all(self, name: str, **parameters: Any) -> list[Row]:
        """All rows of a named query."""

    def one(self, name: str, **parameters: Any) -> Row | None:
        """The first row of a named query, or ``None``."""

    def rows(self, sql: str, parameters: dict[str, Any] | Sequence[Any] = ()) -> list[Row]:
        """All rows of a statement composed in this package; values are always bound."""

    def run(self, name: str, **parameters: Any) -> int:
        """Run a named statement; returns how many rows it changed."""

    def run_many(self, name: str, rows: Sequence[dict[str, Any]]) -> None:
        """Run a named statement once for each of ``rows``."""

    def many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement composed in this package once for each of ``rows``, in one transaction."""

    def insert(self, table: str, row: Mapping[str, Any], returning: str) -> Any:
        """Insert a row into a table, within a transaction; returns the value of one of its columns."""

    def columns(self, table: str) -> list[str]:
        """The names of a table's columns, in their order."""

    def transaction(self) -> AbstractContextManager[None]:
        """Begin … commit, as the only one who writes; rolled back when the block raises. Nested ones join it."""

    @property
    def is_in_transaction(self) -> bool:
        """Whether a transaction is open."""

    def reading(self) -> AbstractContextManager[None]:
        """One view of all that is read in the block, whatever others write meanwhile."""

    def yield_write_lock(
        self, first: Callable[[], object] | None = None, between: Callable[[], object] | None = None
    ) -> bool:
        """Between two parts of a long transaction that may each stand alone: commit, and let others write.

        ``first`` makes what was written so far whole; ``between`` runs while no transaction is open. Nothing happens
        until the lock was held for 30 ms, nor in a block that joined an outer one. Returns whether anybody else wrote:
        what was read before may have changed then.
        """

    def edition(self) -> object:
        """A value that is another one when another connection has committed meanwhile."""

    def state(self) -> object:
        """A value that is another one when anybody has written meanwhile; ``None`` within a transaction."""

    @property
    def words(self) -> WordIndex:
        """Full text, to be written."""

    def stems(self, text: str) -> list[str]:
        """The words of a text as full text keeps them: diacritics dropped, Porter stems."""

    def relax(self) -> None:
        """Let commits return before the disk confirms them: for what can be read again from transcripts."""

    def tighten(self) -> None:
        """Let commits wait for the disk again."""

    def is_in_place(self) -> bool:
        """Whether what was opened is still what others find there."""

    @property
    def identity(self) -> object:
        """A value that another file, or other rows on a server, do not have."""

    def schema(self) -> int:
        """The number of the last migration that it went through, by whichever program."""

    def interrupt(self) -> None:
        """End the statement that another thread runs here, if one does: it raises Unavailable there."""

    def close(self) -> None:
        """Let go of the connection; a second call does nothing."""


def fits_index(text: str) -> bool:
    """Whether one looks it up: what is longer is no name, path or tag, and PostgreSQL takes it into no index."""
    return len(text.encode("utf-8", "replace")) <= _MOST_KEY_BYTES


def in_transaction(method: Method) -> Method:
    """Make a method of a store (its database is ``_db``) one transaction, or part of the one that is open."""

    @wraps(method)
    def whole(self: Any, *args: Any, **kwargs: Any) -> Any:
        with self._db.transaction():
            return method(self, *args, **kwargs)

    return cast(Method, whole)


# ----------------------------------------------------------------------------
# What memories are called, and the links that their bodies make by these names.


ALIASES = "aliases"
"""The front-matter key for other names, as Obsidian has it."""


class Names:
    """Reads and writes ``memory_names``, ``mentions``, and the links of origin ``body``."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def of(self, memory_id: str) -> set[str]:
        """The keys of what a memory is called."""
        return {name for (name,) in self._db.all("list_memory_names", memory=memory_id)}

    def put(self, memory: Memory, former: Collection[str] = ()) -> None:
        """Note what a memory is called and what it links, and find the links anew that this changes.

        ``former``: what it was called before, where that is not known here any more. Call inside the transaction that
        writes its row or names its file.
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
            self._db.run("delete_body_links", sources=json.dumps([memory.id]))
        self.resolve({*former, *names}, *([memory.id] if links else []))

    def resolve(self, names: Collection[str], *sources: str) -> None:
        """Find the links anew of whoever uses some names, and of some sources."""
        using = (
            source for (source,) in self._db.all("list_mentioning", names=json.dumps([*names]))
        )
        if found := [*dict.fromkeys((*sources, *using))]:
            self._db.run("delete_body_links", sources=json.dumps(found))
            self._db.run("insert_body_links", sources=json.dumps(found))

    def lost(self, memory_id: str, kept: Collection[str]) -> list[str]:
        """Names, as they were written, by which others link a memory, and which are not among the keys it keeps."""
        return [
            written
            for (written,) in self._db.all(
                "list_lost_memory_names", memory=memory_id, kept=json.dumps([*kept])
            )
        ]


# ----------------------------------------------------------------------------
# What the row of a turn holds: its identity, what was said, which tools were called.


encode = msgspec.json.Encoder().encode
"""JSON as columns hold it."""


def turn_identity(tool: str, row: int, turn: Turn) -> bytes:
    """16 bytes that are the same for every copy of a turn, wherever its tool guarantees the id across sessions."""
    return shared_identity(tool if turn.unique else f"{tool}\0{row}", turn.id)


def shared_identity(scope: str, turn_id: str) -> bytes:
    """The identity of a turn whose id its tool guarantees across sessions (then ``scope`` is the tool)."""
    return hashlib.blake2b(
        f"{scope}\0{turn_id}".encode("utf-8", errors="replace"), digest_size=16
    ).digest()


def tools_column(turn: Turn) -> str | None:
    """The tool calls of a turn as its row keeps them; ``None`` where there are none."""
    if not turn.tool_calls:
        return None
    return encode(kept_calls(turn.tool_calls)).decode()


def kept_calls(calls: Sequence[ToolCall]) -> list[list[object]]:
    """Tool calls as rows and exports keep them: name, input, outcome; then action, paths, error, made, where told."""
    kept: list[list[object]] = []
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
        kept.append(values)
    return kept


def stored_calls(tools: str | None) -> tuple[ToolCall, ...]:
    """The tool calls of a turn as its row keeps them."""
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
    """One of them; raises ValueError for an action nobody knows."""
    return ToolCall(name, brief, outcome, Action(action), tuple(paths), error, tuple(made))


def did_of(calls: Sequence[ToolCall]) -> str:
    """What a turn did, in words for the full text."""
    return "\n".join(
        f"{call.name} {call.input} {call.outcome if call.outcome != 'ok' else ''}" for call in calls
    )


def turn_row(session: int, seq: int, identity: bytes, turn: Turn) -> tuple[object, ...]:
    """The columns of a turn."""
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
    """A turn from its row."""
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
