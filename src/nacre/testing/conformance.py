"""What the kit does with a sample that depends on its form: a file of text, or a database."""

from __future__ import annotations

import contextlib
import json
import os
import random
import sqlite3
import tempfile
import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import msgspec

from nacre.errors import InvalidInputError, UnreadableTranscriptError
from nacre.home.parsing import Batch, FileFailed, Job, read_files
from nacre.readers.adapter import (
    MAGIC,
    SUFFIXES,
    Adapter,
    DatabaseSource,
    FileSource,
    Head,
    Places,
    Root,
    read_head,
)
from nacre.readers.registry import builtins
from nacre.redact.redactor import Redactor
from nacre.store.foreign import open_foreign
from nacre.testing.samples import samples
from nacre.values.session import Cursor, Flag, Session, Speaker, Tally, Trust, Turn

_NOISE = (
    b"",
    b"{",
    b"[[]]",
    b'{"type": 7, "role": [], "parts": "x"}',
    b"\xff\xfe\xed\xa0\x80",
    None,
    -1,
    3.5,
)
"""What a column may hold that no adapter expects."""

Value = bytes | str | int | float | None


AnySource = FileSource | DatabaseSource


class Form(Protocol):
    """How a sample is opened, changed and spoiled. ``path`` is where it lies."""

    is_database: bool

    def head(self, path: Path) -> contextlib.AbstractContextManager[Head]:
        """What an adapter recognises it by. Raises NacreError."""

    def source(
        self, path: Path, cursor: Cursor | None
    ) -> contextlib.AbstractContextManager[AnySource]:
        """What an adapter parses. Raises NacreError."""

    def put(self, path: Path, data: bytes, old: bytes, new: bytes) -> bytes | None:
        """The sample with some words changed wherever they stand; ``None`` where they do not."""

    def spoiled(self, path: Path, data: bytes) -> Iterator[tuple[str, bytes]]:
        """What may lie in a file instead, each with what it is called."""


def form_of(path: Path) -> Form:
    """The form of a file, going by its name, as everywhere."""
    return DatabaseForm() if path.name.endswith(SUFFIXES) else TextForm()


class TextForm:
    """A file of text, mostly of lines."""

    is_database = False

    @contextlib.contextmanager
    def head(self, path: Path) -> Iterator[Head]:
        """The beginning of the file."""
        yield read_head(path)

    def source(self, path: Path, cursor: Cursor | None) -> FileSource:
        """The file, from where the last reading ended."""
        return FileSource(path, cursor)

    def put(self, path: Path, data: bytes, old: bytes, new: bytes) -> bytes | None:  # noqa: ARG002
        """Wherever the words stand."""
        return data.replace(old, new) if old in data else None

    def spoiled(self, path: Path, data: bytes) -> Iterator[tuple[str, bytes]]:  # noqa: ARG002
        """Empty, binary, torn, and written in other ways."""
        half = len(data) // 2
        yield "an empty file", b""
        yield "zero bytes", bytes(4096)
        yield "random bytes", random.Random(1).randbytes(4096)  # noqa: S311 - the same each time
        yield "a torn file", data[:half]
        yield "bytes that are no UTF-8", data[:half] + b"\xff\xfe\xed\xa0\x80" + data[half:]
        yield "a binary tail", data + bytes(range(256)) * 8
        yield "no newline at the end", data.rstrip()
        yield "Windows line ends", data.replace(b"\n", b"\r\n")
        yield "a mark of byte order", b"\xef\xbb\xbf" + data


class DatabaseForm:
    """A SQLite database that its tool closed."""

    is_database = True

    @contextlib.contextmanager
    def head(self, path: Path) -> Iterator[Head]:
        """Its tables."""
        with open_foreign(path) as database:
            yield Head(path, MAGIC, database)

    @contextlib.contextmanager
    def source(self, path: Path, cursor: Cursor | None) -> Iterator[DatabaseSource]:
        """The database, with what the last reading carried over."""
        with contextlib.ExitStack() as stack:
            yield DatabaseSource(
                path,
                stack.enter_context(open_foreign(path)),
                lambda other: stack.enter_context(open_foreign(other)),
                cursor,
            )

    def put(self, path: Path, data: bytes, old: bytes, new: bytes) -> bytes | None:
        """In every column of every row in which the words stand."""

        def change(value: Value) -> Value:
            if isinstance(value, str):
                return value.replace(old.decode(), new.decode())
            return value.replace(old, new) if isinstance(value, bytes) else value

        changed = _changed(path, data, change)
        return changed if changed != data else None

    def spoiled(self, path: Path, data: bytes) -> Iterator[tuple[str, bytes]]:
        """Every column of every table holding what nobody expects; no rows; half of the file."""
        yield "a torn file", data[: len(data) // 2]
        yield "pages of noise", data[: len(data) // 2] + random.Random(1).randbytes(len(data) // 2)  # noqa: S311
        for table, column in _columns(path, data):
            for noise in _NOISE:
                spoilt = _changed(path, data, partial(_replaced, noise), table, column)
                yield f"{noise!r} in {table}.{column}", spoilt
        yield "tables without rows", _emptied(path, data)


def _replaced(noise: Value, _: Value) -> Value:
    return noise


def _columns(path: Path, data: bytes) -> list[tuple[str, str]]:
    with _open(path, data) as database:
        tables = [
            name
            for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        ]
        return [
            (table, column)
            for table in tables
            for (column,) in database.execute("SELECT name FROM pragma_table_info(?)", (table,))
        ]


def _changed(
    path: Path,
    data: bytes,
    change: Callable[[Value], Value],
    table: str | None = None,
    column: str | None = None,
) -> bytes:
    """A database with changed values, in one column or in all; what its tables do not take stays."""
    wanted = [(table, column)] if table and column else _columns(path, data)
    with _open(path, data) as database:
        for where, name in wanted:
            quoted, of = _quoted(name), _quoted(where)
            for row, value in database.execute(f"SELECT rowid, {quoted} FROM {of}").fetchall():  # noqa: S608 - quoted
                with contextlib.suppress(
                    sqlite3.Error
                ):  # another row has it, or it must be of a type
                    new = change(value)
                    if new != value:
                        database.execute(
                            f"UPDATE {of} SET {quoted} = ? WHERE rowid = ?",  # noqa: S608
                            (new, row),
                        )
    return path.read_bytes()


def _emptied(path: Path, data: bytes) -> bytes:
    tables = {table for table, _ in _columns(path, data)}
    with _open(path, data) as database:
        for table in tables:
            database.execute(f"DELETE FROM {_quoted(table)}")  # noqa: S608
    return path.read_bytes()


@contextlib.contextmanager
def _open(path: Path, data: bytes) -> Iterator[sqlite3.Connection]:
    path.write_bytes(data)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        yield database


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


# ----------------------------------------------------------------------------
# What happens in a conversation, whatever a tool writes of it.


@dataclass(frozen=True)
class Owner:
    """The owner types something."""

    text: str


@dataclass(frozen=True)
class Agent:
    """The agent says something."""

    text: str


@dataclass(frozen=True)
class Tool:
    """The agent calls a tool, which answers. ``name`` is what Claude Code calls it."""

    name: str
    argument: str
    output: str


@dataclass(frozen=True)
class Summary:
    """The host sums up what was said so far."""

    text: str


Step = Owner | Agent | Tool | Summary


# ----------------------------------------------------------------------------
# What every adapter promises, tried on a sample of its tool's transcripts.


Write = Callable[[Path, Sequence[Step]], Path]
"""Writes a conversation, as the tool would, below a folder; gives the transcript."""

Complaints = Iterator[str]

_MOST_CUTS = 40
_LONG_LINE = 4 * 1024 * 1024
_MOST_MEMORY = 96 * 1024 * 1024
_MTIME = 1_795_003_200
_MARKED = "<nacre-context>zephyr lantern quartz</nacre-context>"
_SECRET = "ghp_" + "a1B2" * 9
_PAGE = "All rowers must hand their oars to the stranger before the race begins."
_MEMORY = "The boat house is locked at nine in the evening, except on Fridays."
_NOISE_CONFORMANCE = (
    "<nacre-context",
    "<system-reminder",
    "<system_reminder",
    "<environment_details",
    "<environment_context",
)


@dataclass(frozen=True)
class _Reading:
    """What one reading gave: the last that was said of each session, and of each turn in its session."""

    sessions: dict[str, Session]
    turns: dict[tuple[str, str], Turn]
    given: int
    cursor: Cursor
    tally: Tally


def check_adapter(
    adapter: Adapter,
    sample: Path,
    *,
    beside: Iterable[Path] = (),
    others: Iterable[Path] = (),
    write: Write | None = None,
    keeps_output: bool = True,
    takes_anything: bool = False,
) -> None:
    """Try an adapter; raises AssertionError that names every broken promise.

    ``sample`` is a transcript with words of the owner, a file of text or a database that its tool closed; ``beside``
    are files that the adapter reads next to it. The samples of nacre's own adapters are not to be recognised, nor are
    ``others``, unless it ``takes_anything``.

    With ``write``, which renders a conversation as the tool writes it, it is also tried who speaks and how far that is
    trusted; where the tool does not record what its tools answered, ``keeps_output`` is false.
    """
    with tempfile.TemporaryDirectory(prefix="nacre-conformance-") as folder:
        kit = _Kit(adapter, sample, tuple(beside), Path(folder))
        complaints = list(kit.recognises(others, takes_anything=takes_anything))
        for tried in (
            kit.places,
            kit.reads,
            kit.goes_on,
            kit.survives,
            kit.counts,
            kit.strips,
            kit.redacts,
        ):
            complaints += tried()
        complaints += kit.is_bounded()
        complaints += kit.is_left_alone()
        if write:
            complaints += kit.grows(write)
            complaints += kit.attributes(write, keeps_output=keeps_output)
    if complaints:
        listed = "\n".join(f"- {complaint}" for complaint in complaints)
        raise AssertionError(
            f"the adapter {adapter.tool} ({adapter.label}) breaks promises:\n{listed}"
        )


class _Environment(dict[str, str]):
    """An environment without variables, which remembers what was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.read: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        self.read.add(name)
        return default

    def __missing__(self, name: str) -> str:
        self.read.add(name)
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        self.read.add(str(name))
        return False


class _Kit:
    def __init__(
        self, adapter: Adapter, sample: Path, beside: tuple[Path, ...], folder: Path
    ) -> None:
        self.adapter = adapter
        self.data = sample.read_bytes()
        self.path = folder / sample.parent.name / sample.name
        self.path.parent.mkdir(parents=True)
        for file in beside:
            self.path.with_name(file.name).write_bytes(file.read_bytes())
        self.folder = folder
        self.form = form_of(self.path)

    # What is tried

    def recognises(self, others: Iterable[Path], *, takes_anything: bool) -> Complaints:
        """The sample is recognised, and nobody else's."""
        if not self.recognised(self.put(self.data)):
            yield "it does not recognise its own sample"
        for name, others_data in self.foreign(others) if not takes_anything else ():
            if others_data != self.data and self.recognised(self.put(others_data, name)):
                yield f"it takes a transcript of another tool for its own: {name}"
        self.put(self.data)

    def recognised(self, path: Path) -> bool:
        with form_of(path).head(path) as head:
            return self.adapter.sniff(head)

    def foreign(self, others: Iterable[Path]) -> Iterator[tuple[str, bytes]]:
        for name, (file, data) in samples().items():
            if not _is_builtin(name, self.adapter):
                yield f"{name}/{file}", data
        yield from ((file.name, file.read_bytes()) for file in others)

    def places(self) -> Complaints:
        """Roots are told for every system, also where no folder exists; variables that they read are declared."""
        environ = _Environment()
        for platform in ("linux", "darwin", "win32"):
            roots = self.adapter.roots(Places(self.folder / "nobody", environ, platform))
            if not all(isinstance(root, Root) for root in roots):
                yield f"its roots on {platform} are no Root records"
        for name in sorted(environ.read.difference(self.adapter.environment)):
            yield f"its roots read the variable {name}, which its environment does not name"

    def reads(self) -> Complaints:
        """Sessions before turns, sound ids and times, and the same in every reading."""
        first, again = self.read(self.data), self.read(self.data)
        if not any(turn.speaker is Speaker.OWNER and turn.text for turn in first.turns.values()):
            yield "its sample gives no words of the owner"
        if (first.sessions, first.turns) != (again.sessions, again.turns):
            yield "two readings of the same file differ"
        if first.given != len(first.turns):
            yield f"{first.given - len(first.turns)} of its {first.given} turns have the id of another one"
        yield from (
            f"the session {session.id} is of another tool"
            for session in first.sessions.values()
            if self.strange(session)
        )
        for (_, name), turn in first.turns.items():
            if not name or len(name) > 200:
                yield f"a turn has a bad id: {name[:50]!r}"
            if turn.time and (turn.time.tzinfo is None or turn.time.utcoffset() != timedelta(0)):
                yield f"the time of turn {name} is not in UTC"
            if turn.speaker is Speaker.OWNER and any(
                mark in turn.text for mark in _NOISE_CONFORMANCE
            ):
                yield f"turn {name} has words that the owner did not type"

    def strange(self, session: Session) -> bool:
        return session.tool != self.adapter.tool or not session.native_id

    def goes_on(self) -> Complaints:
        """A file that is read while it grows gives what it gives in one reading."""
        if self.adapter.whole or self.form.is_database:
            return
        whole = self.read(self.data)
        for cut in self.cuts():
            early = self.read(self.data[:cut])
            late = self.read(self.data, early.cursor)
            if {**early.turns, **late.turns} != whole.turns or {
                **early.sessions,
                **late.sessions,
            } != whole.sessions:
                yield f"a reading that ended at byte {cut} and went on differs from one reading"
                return

    def cuts(self) -> list[int]:
        ends = [at + 1 for at, byte in enumerate(self.data) if byte == 0x0A]
        torn = [(first + last) // 2 for first, last in pairwise(ends)]
        every = sorted({*ends, *torn})
        return every[:: max(1, len(every) // _MOST_CUTS)]

    def survives(self) -> Complaints:
        """Nothing that lies in a file makes an adapter fail; a format read as a whole may say that it is not whole."""
        for name, data in self.form.spoiled(self.path, self.data):
            try:
                self.recognised(self.put(data))
                self.read(data)
            except UnreadableTranscriptError:
                if not (self.adapter.whole or self.form.is_database):
                    yield f"{name}: it says that a file cannot be read which is read line by line"
            except Exception as error:  # noqa: BLE001 - whatever it raises is told
                if not (self.form.is_database and isinstance(error, InvalidInputError)):
                    yield f"{name}: it raises {type(error).__name__}: {error}"

    def counts(self) -> Complaints:
        """A record that nobody knows is counted and costs no other."""
        lines = self.data.splitlines(keepends=True)
        if (
            self.adapter.whole
            or self.form.is_database
            or not all(_is_object(line) for line in lines if line.strip())
        ):
            return
        known = self.read(self.data)
        strange = (
            json.dumps({"type": "zephyr_lantern", "payload": {"type": "zephyr_lantern"}}).encode()
            + b"\n"
        )
        found = self.read(self.data.rstrip() + b"\n" + strange + b'{"broken": \n')
        if found.turns != known.turns:
            yield "an unknown record changes what was said before it"
        if not sum(found.tally.unknown.values()) > sum(known.tally.unknown.values()):
            yield "an unknown record is not counted: call source.unknown"
        if not found.tally.corrupt > known.tally.corrupt:
            yield "a broken line is not counted: call source.corrupt"

    def strips(self) -> Complaints:
        """nacre's own context does not come back as something that was said."""
        if not list(self.planted(_MARKED)):
            yield "nothing that is said in its sample stands in the file: take a plainer sample"
        for place, data in self.planted(_MARKED):
            found = [
                turn for turn in self.read(data).turns.values() if "zephyr lantern" in turn.text
            ]
            if found:
                yield f"nacre's own context in {place} is not stripped: use injected.clean"

    def planted(self, words: str) -> Iterator[tuple[str, bytes]]:
        """The sample with some words more in a text of the owner, and in one of the agent."""
        told = list(self.read(self.data).turns.values())
        for speaker in (Speaker.OWNER, Speaker.AGENT):
            for line in (
                turn.text.splitlines()[0] for turn in told if turn.speaker is speaker and turn.text
            ):
                changed = (
                    self.form.put(self.path, self.data, form, form + f" {words}".encode())
                    for form in _forms(line)
                )
                planted = next((data for data in changed if data), None) if len(line) > 5 else None
                if planted:
                    yield f"a text of the {speaker}", planted
                    break

    def redacts(self) -> Complaints:
        """A secret does not get past the adapter: it hands texts on uncut, for those who take secrets out."""
        for place, data in self.planted(_SECRET):
            held = msgspec.json.encode([batch.turns for batch in self.stored(data)]).decode()
            if _SECRET[:12] in held:
                yield f"a secret in {place} is cut, or written so that it is not recognised"

    def stored(self, data: bytes) -> list[Batch]:
        self.put(data)
        events = list(read_files([Job(self.path, len(data))], Redactor()))
        return (
            []
            if any(isinstance(event, FileFailed) for event in events)
            else [event for event in events if isinstance(event, Batch)]
        )

    def is_bounded(self) -> Complaints:
        """One very long line costs no more than some times its length."""
        if self.form.is_database:
            return
        data = self.data.rstrip() + b"\n" + b'{"type":"x","text":"' + b"y" * _LONG_LINE + b'"}\n'
        self.put(data)
        tracemalloc.start()
        try:
            self.read(data)
        except UnreadableTranscriptError:
            pass
        finally:
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        if peak > _MOST_MEMORY:
            yield f"a line of {_LONG_LINE >> 20} MB takes {peak >> 20} MB of memory"

    def is_left_alone(self) -> Complaints:
        """A database in which nothing changed is not read again: it may be of gigabytes."""
        if self.form.is_database and (
            again := self.read(self.data, self.read(self.data).cursor).given
        ):
            yield f"{again} turns of a database that did not change are read again: use databases.Marks"

    def grows(self, write: Write) -> Complaints:
        """A database that is read while it is written gives what it gives in one reading."""
        if not self.form.is_database:
            return
        steps: list[Step] = [
            Owner("Where do the rowers meet?"),
            Agent("At the boat house."),
            Owner("And when?"),
            Tool("Read", "/code/lake/hours.md", "nine to five"),
            Agent("At nine."),
            Owner("Then I come at nine."),
        ]
        for count in range(1, len(steps)):
            early = self.read_at(write(self.folder / f"grown-{count}", steps[:count]))
            path = write(self.folder / f"grown-{count}", steps)
            late, whole = self.read_at(path, early.cursor), self.read_at(path)
            if {**early.turns, **late.turns} != whole.turns or {
                **early.sessions,
                **late.sessions,
            } != whole.sessions:
                yield f"a reading after {count} of {len(steps)} steps that went on differs from one reading"
                return

    def attributes(self, write: Write, *, keeps_output: bool) -> Complaints:
        """Who speaks, and how far that is to be trusted."""
        steps: list[Step] = [
            Owner(f"<nacre-context>{_MEMORY}</nacre-context> What does the page say?"),
            Agent("I look it up."),
            Tool("WebFetch", "https://lake.example", _PAGE),
            Agent("It is about oars."),
            Owner("ok then"),
            Agent(f"It says: {_PAGE}"),
            Owner("And the boat house?"),
            Agent(f"From memory: {_MEMORY}"),
            Owner("Rowers keep their oars in any case."),
        ]
        found = self.read_at(write(self.folder / "written", steps))
        said = [turn.text for turn in found.turns.values() if _is_typed(turn)]
        typed = [
            "What does the page say?",
            "ok then",
            "And the boat house?",
            "Rowers keep their oars in any case.",
        ]
        if said != typed:
            yield f"the owner said {typed}, and it gives {said}"
        turns = {
            turn.text: turn for turn in found.turns.values() if turn.speaker is not Speaker.OWNER
        }
        page = next((turn for text, turn in turns.items() if text.startswith("It says:")), None)
        if page is None or page.speaker is not Speaker.AGENT:
            yield "what the agent said is missing, or said by somebody else"
        elif keeps_output and page.trust is not Trust.UNTRUSTED:
            yield "what the agent repeats of a page is trusted: let trust.Exchange hear what tools answer"
        memory = next(
            (turn for text, turn in turns.items() if text.startswith("From memory")), None
        )
        if memory and memory.trust is Trust.TRUSTED and not memory.flags & Flag.INJECTED:
            yield "what the agent repeats of nacre's own context is not marked: let trust.Exchange hear it"
        if any(
            turn.text == _PAGE for turn in found.turns.values() if turn.speaker is not Speaker.AGENT
        ):
            yield "what a tool answered is given as somebody's words"

    # How it is tried

    def put(self, data: bytes, name: str | None = None) -> Path:
        path = self.folder / "others" / name if name else self.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        os.utime(path, (_MTIME, _MTIME))  # some formats know no other time
        return path

    def read(self, data: bytes, cursor: Cursor | None = None) -> _Reading:
        return self.read_at(self.put(data), cursor)

    def read_at(self, path: Path, cursor: Cursor | None = None) -> _Reading:
        sessions: dict[str, Session] = {}
        turns: dict[tuple[str, str], Turn] = {}
        current, given = "", 0
        with form_of(path).source(path, cursor) as source:
            for item in self.adapter.parse(source):
                if isinstance(item, Session):
                    current = item.native_id
                    sessions[current] = item
                elif not sessions:
                    raise AssertionError(
                        f"the adapter {self.adapter.tool} gives a turn before its session"
                    )
                else:
                    turns[current, item.id] = item
                    given += 1
            carried = msgspec.json.decode(msgspec.json.encode(source.carry))
            return _Reading(
                sessions, turns, given, replace(source.cursor(), carry=carried), source.tally
            )


def _is_builtin(name: str, adapter: Adapter) -> bool:
    """Whether a sample is of the adapter that is tried."""
    return builtins().get(name) == adapter


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _forms(line: str) -> Iterator[bytes]:
    """A line as it may stand in a file: as it is, or inside a string of JSON."""
    yield json.dumps(line)[1:-1].encode()
    yield json.dumps(line, ensure_ascii=False)[1:-1].encode("utf-8", errors="replace")
    yield line.encode("utf-8", errors="replace")


def _is_typed(turn: Turn) -> bool:
    return turn.speaker is Speaker.OWNER and not turn.flags & (Flag.META | Flag.COMMAND)
