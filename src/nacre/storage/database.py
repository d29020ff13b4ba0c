"""What stores need of an engine, on a file or on a server: named queries, transactions, full text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from enum import StrEnum
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, cast

from nacre.errors import NacreError

if TYPE_CHECKING:
    from nacre.storage.filters import Clause

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
