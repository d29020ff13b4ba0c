"""What an adapter is, and what it is given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from nacre.transcripts.objects import decode, split_objects
from nacre.values.session import Session, Turn

T = TypeVar("T")

HEAD_BYTES = 65_536
_ANY = msgspec.json.Decoder()


@dataclass(frozen=True, slots=True)
class Places:
    """Where to look for transcripts: the user's home folder, the environment's variables, ``sys.platform``.

    ``projects`` are the folders in which sessions are known to have worked: some tools keep transcripts there. ``own``
    is nacre's own home, where it is known.
    """

    home: Path
    environ: Mapping[str, str]
    platform: str
    projects: tuple[Path, ...] = ()
    own: Path | None = None


@dataclass(frozen=True, slots=True)
class Root:
    """A folder in which a tool keeps transcripts, and the glob patterns (relative to it) that match them."""

    folder: Path
    patterns: tuple[str, ...]


class Tables(Protocol):
    """A look into a database that a tool owns, also while the tool writes: nothing in or beside it changes."""

    def columns(self, table: str) -> tuple[str, ...]:
        """The columns of a table; none when it does not exist."""

    def all(self, statement: str, **values: Any) -> list[tuple[Any, ...]]:
        """All rows of a statement. The database is free again when this returns: ask for what one session needs,
        by an index, rather than for everything."""


@dataclass(frozen=True)
class Head:
    """The first bytes of a file, for sniffing: 64 KiB, or the first line where that is longer.

    Of a SQLite database ``database`` is open for the time of sniffing; the data is its first bytes all the same.
    """

    path: Path
    data: bytes
    database: Tables | None = None

    @cached_property
    def text(self) -> str:
        """The head as text; what is not UTF-8 is replaced."""
        return self.data.decode("utf-8", errors="replace")

    @cached_property
    def objects(self) -> tuple[dict[str, Any], ...]:
        """The JSON objects on the first 20 complete lines; lines that are not objects are left out.

        Where most lines are none there are none: a text that quotes a record is not a transcript.
        """
        lines = self.data.split(b"\n")
        if len(self.data) >= HEAD_BYTES and len(lines) > 1:
            lines.pop()
        found: list[dict[str, Any]] = []
        first = [line for line in lines if line.strip()][:20]
        if sum(line.lstrip()[:1] == b"{" for line in first) * 2 < len(first):
            return ()
        for line in first:
            for raw in split_objects(line).objects:
                value = decode(_ANY, raw)
                if isinstance(value, dict):
                    found.append(value)
        return tuple(found)


class Source(Protocol):
    """The transcript an adapter parses; :mod:`nacre.transcripts.file_source` has the real one.

    ``carry`` survives between two incremental readings of the same file: an adapter puts there what it needs to
    go on in the middle (session id, working directory, model). It holds JSON values only. ``identities`` are the names
    under which the owner writes in chats (``owner.identities``).
    """

    path: Path
    identities: tuple[str, ...]
    carry: dict[str, Any]
    database: Tables | None

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Complete lines, each with its byte offset, from where the last reading ended. Torn last lines wait.

        Blank lines are left out; a line longer than the limit is skipped and counted."""

    def text(self) -> str:
        """The whole file as text, for formats that are not lines of records."""

    def hold(self, offset: int) -> None:
        """Ask that the next reading starts at ``offset`` again, because a message there may still grow."""

    def unknown(self, record: str) -> None:
        """Count a record type or version the adapter does not know."""

    def corrupt(self) -> None:
        """Count a line that cannot be understood."""

    def look(self, path: Path) -> Tables | None:
        """A look into another database of the same tool; ``None`` when there is none that can be read."""


def records(source: Source, line: bytes, decoder: msgspec.json.Decoder[T]) -> Iterator[T]:
    """The records on a line, nearly always one; what on it is none is counted."""
    try:
        record = decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        yield from _records_apart(source, line, decoder)
    else:
        yield record


def _records_apart(source: Source, line: bytes, decoder: msgspec.json.Decoder[T]) -> Iterator[T]:
    split = split_objects(line)
    if split.torn:
        source.corrupt()
    for raw in split.objects:
        record = decode(decoder, raw)
        if record is None:
            source.corrupt()
        else:
            yield record


@dataclass(frozen=True, slots=True)
class Adapter:
    """How to find, recognise and read one tool's transcripts.

    ``parse`` yields a :class:`Session` before its turns, and again whenever more is known of it (a title, a
    model) or when the file turns to another session; every :class:`Turn` belongs to the last session yielded.
    ``whole`` formats are read again from the start whenever the file changed, and what no longer occurs in it is
    forgotten; the others continue. Where such a file is torn, ``parse`` raises TranscriptUnreadable, so that what was
    read of it before stays. Several adapters may read one tool, each a format of its own.
    ``guesses`` formats take nearly anything: whenever a file of theirs changed, it is asked again what it is.
    ``beside`` names the files that belong to one of its transcripts, for any path: where they change, it changed.
    ``environment`` names the variables that ``roots`` reads: a watcher that the system starts is given these alone.

    ``resume`` is the command by which the tool opens a session again, ``{id}`` standing for its id; none where it has
    no such command.

    ``versions``, ``reads`` and ``leaves_out`` are for people (docs/agents.md): the tool's versions of which files were
    read, what is read of them, and what is not.
    """

    tool: str
    label: str
    roots: Callable[[Places], Sequence[Root]]
    sniff: Callable[[Head], bool]
    parse: Callable[[Source], Iterator[Session | Turn]]
    whole: bool = False
    guesses: bool = False
    versions: str = ""
    reads: tuple[str, ...] = ()
    leaves_out: tuple[str, ...] = ()
    beside: Callable[[Path], Iterable[Path]] | None = None
    environment: tuple[str, ...] = ()
    resume: tuple[str, ...] = ()
