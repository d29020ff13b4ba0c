"""Extract the facts of one source file from its syntax tree (tree-sitter)."""

from __future__ import annotations

import contextlib
import gc
import hashlib
import os
import queue
import signal
import struct
import subprocess
import sys
import threading
import time
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from typing import IO, TYPE_CHECKING, Any

import msgspec

from nacre.base import json
from nacre.base.lazy import Module, load
from nacre.code.ask import (
    CLASS_KINDS,
    INNER_KINDS,
    LANGUAGES,
    MODULE,
    Base,
    Call,
    CodeReport,
    Definition,
    Facts,
    ForgetCodeRequest,
    ForgottenCode,
    Import,
    IngestCodeRequest,
    Listing,
    Variable,
    language_of,
    list_code,
    parser_of,
    read_file,
    require,
    toplevel,
)
from nacre.code.languages import (
    NAME_CHARACTERS,
    CFamily,
    Ecma,
    Go,
    Java,
    Python,
    Reader,
    Rust,
    clean_type,
    line_of,
    text_of,
)
from nacre.code.resolution import Edge, Resolution
from nacre.errors import InvalidInput, NotFound
from nacre.home.change import known_or_named, project_called
from nacre.home.home import Home
from nacre.home.location import projects
from nacre.store.code import CodeProject, NewFile, NewSymbol
from nacre.values.reports import OnProgress, Progress

if TYPE_CHECKING:
    from tree_sitter import Node

MOST_DEFINITIONS = 20_000
MOST_REFERENCES = 100_000
"""Limits per file; the rest is left out."""

QUALIFIED_CHARACTERS = 500
"""Nobody asks for a longer name; of thousands of definitions within each other they would fill the memory."""

_READERS: Mapping[str, Reader] = {
    "python": Python(),
    "ecma": Ecma(),
    "go": Go(),
    "rust": Rust(),
    "java": Java(),
    "cfamily": CFamily(),
}
_DEFINES = ("function", "class", "interface", "type", "namespace", "impl")
_ORDER = {
    name: place for place, name in enumerate((*_DEFINES, "package", "import", "variable", "call"))
}


def read_code(language: str, source: bytes) -> Facts:
    """The facts of a file. Raises ImportError where the parser of its language is not installed."""
    parser, query = parser_of(language)
    captured = load("tree_sitter:QueryCursor")(query).captures(parser.parse(source).root_node)
    reading = _Reading(_READERS[LANGUAGES[language].family])
    for capture, node in _in_order(captured):
        reading.take(capture, node)
    return reading.facts(language)


def _in_order(captured: Mapping[str, list[Node]]) -> Iterator[tuple[str, Node]]:
    """Captures in source order, enclosing nodes first; at one node the definition first."""
    found = [
        (node.start_byte, -node.end_byte, _ORDER.get(capture, 99), capture, node)
        for capture, nodes in captured.items()
        for node in nodes
    ]
    found.sort(key=lambda one: one[:3])
    yield from ((capture, node) for *_, capture, node in found)


class _Reading:
    """The facts collected so far, and the stack of enclosing definitions."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._open: list[tuple[int, int]] = []
        self._definitions: list[Definition] = []
        self._calls: dict[tuple[int, str, str], int] = {}
        self._imports: list[Import] = []
        self._bases: list[Base] = []
        self._variables: dict[Variable, None] = {}
        self._package = self._default = ""

    def take(self, capture: str, node: Node) -> None:
        """Add one capture; captures come in source order."""
        while self._open and self._open[-1][0] <= node.start_byte:
            self._open.pop()
        if capture in _DEFINES:
            self._define(capture, node)
        elif capture == "package":
            self._package = text_of(node)
        elif capture == "import":
            self._imports += self._reader.imports(node)
            self._default = self._reader.default(node) or self._default
        elif capture == "variable":
            self._declare(node)
        elif len(self._calls) < MOST_REFERENCES:
            self._call(capture, node)

    def facts(self, language: str) -> Facts:
        """The facts of the whole file."""
        return Facts(
            language,
            self._package,
            self._default,
            tuple(self._definitions),
            tuple(Call(*key, line) for key, line in self._calls.items()),
            tuple(
                one
                for one in self._imports
                if len(one.module) + len(one.name) <= 2 * NAME_CHARACTERS
            ),
            tuple(self._bases),
            tuple(self._variables),
        )

    @property
    def _scope(self) -> int:
        return self._open[-1][1] if self._open else MODULE

    def _define(self, capture: str, node: Node) -> None:
        name, parent = self._reader.name(node), self._scope
        around = self._definitions[parent] if parent != MODULE else None
        before = f"{around.qualified}." if around else ""
        is_long = len(name) > NAME_CHARACTERS or len(before) + len(name) > QUALIFIED_CHARACTERS
        if not name or is_long or len(self._definitions) >= MOST_DEFINITIONS:
            return
        own, _, last = name.rpartition(".")
        owner = (
            f"{before}{own}"
            if own
            else (around.qualified if around and around.kind in CLASS_KINDS else "")
        )
        kind = self._reader.kind(node, capture)
        if kind == "function" and owner:
            kind = "method"
        returns = self._reader.returns(node) if capture == "function" else ""
        number = len(self._definitions)
        self._definitions.append(
            Definition(
                last,
                before + name,
                kind,
                parent,
                owner,
                line_of(node),
                node.end_point[0] + 1,
                returns,
                self._reader.is_hidden(node),
            )
        )
        self._open.append((node.end_byte, number))
        if kind in CLASS_KINDS:
            self._bases += (Base(number, one) for one in self._reader.bases(node) if one)

    def _declare(self, node: Node) -> None:
        self._imports += self._reader.imports(node) if node.type == "variable_declarator" else ()
        for name, kind in self._reader.variables(node):
            if not name or not kind or len(self._variables) >= MOST_REFERENCES:
                continue
            self._variables[Variable(self._scope, name, kind)] = None

    def _call(self, capture: str, node: Node) -> None:
        if capture == "new":
            name = clean_type(text_of(node))
            receiver, _, last = name.rpartition(".")
            found = (receiver, last) if last else None
        else:
            found = self._reader.call(node)
        if not found or (capture == "component" and not found[1][:1].isupper()):
            return
        scope = self._scope
        while scope != MODULE and self._definitions[scope].kind in INNER_KINDS:
            scope = self._definitions[scope].parent
        if max(map(len, found)) <= NAME_CHARACTERS:
            self._calls.setdefault((scope, *found), line_of(node))


# ----------------------------------------------------------------------------
# A process that reads code: a root and paths come in on its standard input, facts go out on its
# standard output.
#
# A parser written in C may crash on a file, or a file of brackets within brackets may take it hours;
# then only this
# process ends.


SECONDS_A_FILE = 10
"""Of the processor's time: who made a file that takes longer did not mean it to be read."""

MOST_MEMORY = 2**31

resource = Module("resource")  # Windows has no such module

_SIZE = struct.Struct("<I")


class Read(msgspec.Struct, frozen=True, array_like=True):
    """A file that was read; ``facts`` is ``None`` if it could not be."""

    path: str
    language: str
    facts: Facts | None


_encode = msgspec.msgpack.Encoder().encode
_of_paths = msgspec.msgpack.Decoder(list[str])
_of_read = msgspec.msgpack.Decoder(Read)


def main() -> None:
    """Read files until standard input ends or nobody takes the results."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    gc.freeze()
    gc.set_threshold(50_000)
    _limit_memory()
    with contextlib.suppress(OSError):
        _serve(sys.stdin.buffer, out)
    os._exit(0)


def read_one(root: Path, path: str) -> Read:
    """Read one file."""
    language = language_of(path) or ""
    data = read_file(root, path)
    return Read(
        path, language, read_code(language, data) if data is not None and language else None
    )


def send(stream: IO[bytes], value: object) -> None:
    """Write a value, preceded by its size."""
    packed = _encode(value)
    stream.write(_SIZE.pack(len(packed)) + packed)


def receive_read(stream: IO[bytes]) -> Read | None:
    """The next file that was read; ``None`` at the end. Raises OSError where the stream ends within one."""
    packed = _receive(stream)
    return _of_read.decode(packed) if packed is not None else None


def _receive(stream: IO[bytes]) -> bytes | None:
    head = stream.read(_SIZE.size)
    if len(head) < _SIZE.size:
        return None
    (size,) = _SIZE.unpack(head)
    packed = stream.read(size)
    return packed if len(packed) == size else None


def _serve(told: IO[bytes], out: IO[bytes]) -> None:
    first = _receive(told)
    if first is None:
        return
    root = Path(_of_paths.decode(first)[0])
    while (packed := _receive(told)) is not None:
        for path in _of_paths.decode(packed):
            _limit_time(SECONDS_A_FILE)
            read = read_one(root, path)
            _limit_time(0)
            send(out, read)
            out.flush()


def _limit_memory() -> None:
    """End this process, and not others, where a file takes too much; not on Windows."""
    if sys.platform != "win32":
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))


def _limit_time(seconds: int) -> None:
    """End this process so much later, whatever it does then, also in C; 0: do not. Not on Windows."""
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_PROF, seconds)


# ----------------------------------------------------------------------------
# Read code in worker processes: two cores halve the time, and a parser that crashes costs one file.


_PORTION = 40
_FEW = 300
"""Files that one process reads in the time that a second one takes to start."""

MOST_PROCESSES = 4


def count_processes(files: int) -> int:
    """The number of processes for a number of files."""
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return 1 if files < _FEW else min(cores, MOST_PROCESSES)


def read_all(root: Path, paths: Sequence[str], processes: int) -> Iterator[Read]:
    """Read files, in the order in which they finish. A file that crashes a process has no facts."""
    if getattr(sys, "frozen", False) or not sys.executable:
        yield from (read_one(root, path) for path in paths)
        return
    portions: queue.SimpleQueue[Sequence[str]] = queue.SimpleQueue()
    for start in range(0, len(paths), _PORTION):
        portions.put(paths[start : start + _PORTION])
    done: queue.Queue[Read | None] = queue.Queue(maxsize=200)
    over = threading.Event()
    threads = [
        threading.Thread(
            target=_feed, args=(root, portions, done, over), name="nacre-code", daemon=True
        )
        for _ in range(processes)
    ]
    for thread in threads:
        thread.start()
    try:
        running = len(threads)
        while running:
            found = done.get()
            running -= found is None
            if found is not None:
                yield found
    finally:
        over.set()


def _feed(
    root: Path,
    portions: queue.SimpleQueue[Sequence[str]],
    done: queue.Queue[Read | None],
    over: threading.Event,
) -> None:
    """Give portions of files to a process, and to a new one when it dies."""
    process: Popen[bytes] | None = None
    try:
        while not over.is_set():
            try:
                left = list(portions.get_nowait())
            except queue.Empty:
                break
            while left and not over.is_set():
                process = process or _start(root)
                read = _read_portion(process, left, done, over)
                if read < len(left) and not over.is_set():
                    _hand_over(done, over, Read(left[read], "", None))
                    _end(process)
                    process, read = None, read + 1
                left = left[read:]
    finally:
        if process:
            _end(process)
        _hand_over(done, over, None)


def _read_portion(
    process: Popen[bytes], paths: list[str], done: queue.Queue[Read | None], over: threading.Event
) -> int:
    """The number of files that a process read before it died; all of them if it did not."""
    assert process.stdin is not None  # noqa: S101 - it was started with pipes
    assert process.stdout is not None  # noqa: S101
    try:
        send(process.stdin, paths)
        process.stdin.flush()
        for number in range(len(paths)):
            found = receive_read(process.stdout)
            if found is None or not _hand_over(done, over, found):
                return number
    except OSError:
        return 0
    return len(paths)


def _hand_over(done: queue.Queue[Read | None], over: threading.Event, found: Read | None) -> bool:
    """Put a result into the queue; wait for room unless reading was stopped."""
    while not over.is_set():
        try:
            done.put(found, timeout=0.2)
        except queue.Full:
            continue
        return True
    return False


def _start(root: Path) -> Popen[bytes]:
    script = f"import sys; sys.path[:] = {sys.path!a}; from nacre.code.ingest import main; main()"
    # In a group of its own: Ctrl-C is for the process that stores, which then ends this one.
    process = Popen(
        [sys.executable, "-P", "-c", script],
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        start_new_session=True,
        creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
    )
    assert process.stdin is not None  # noqa: S101 - it was started with pipes
    send(process.stdin, [str(root)])
    return process


def _end(process: Popen[bytes]) -> None:
    process.kill()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
    process.wait()


# ----------------------------------------------------------------------------
# Read a repository: parse the files that changed, then resolve all calls, imports and base classes
# again.


_PORTION_INGEST = 200
_MOST_FAILED = 20
_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(Facts).decode


@dataclass(slots=True)
class _Tally:
    files: int = 0
    read: int = 0
    unchanged: int = 0
    removed: int = 0
    skipped: int = 0
    failed: list[str] = field(default_factory=list)
    left_out: int = 0


def ingest_code(
    home: Home, asked: IngestCodeRequest, on_progress: OnProgress | None = None
) -> CodeReport:
    """Read the repository that contains a folder; after the first time only the files that changed.

    Nothing of it is run, and no text of it is kept but names. Raises Unavailable where tree-sitter is not installed,
    NotFound for a folder that is not there, InvalidInput where no project can be told.
    """
    require()
    begun = time.monotonic()
    folder = Path(asked.folder).expanduser()
    if not folder.is_dir():
        raise NotFound(f"{folder} is no folder", hint="name the folder of a repository")
    root = toplevel(folder, home.settings.environ)
    project = _project(home, asked.project, root)
    known = home.code.find(project)
    opened = home.code.begin(project, str(root), home.now())
    listing = list_code(root, home.settings.environ, asked.max_files)
    tally = _Tally(files=len(listing.code), left_out=listing.left_out)
    changed = _changed(home, opened, root, listing, tally, is_forced=asked.force)
    _read(home, opened, root, changed, tally, on_progress, begun + asked.seconds)
    is_whole = (
        known is not None
        and known.is_linked
        and not _has_newer(root, listing.manifests, known.read_at)
    )
    if changed or tally.removed or not is_whole:
        _link(home, opened, root, listing, on_progress)
    symbols, edges = home.code.counts(opened.row)
    languages = Counter(language_of(path) or "" for path in home.code.hashes(opened.row))
    return CodeReport(
        project,
        str(root),
        tally.files,
        tally.read,
        tally.unchanged,
        tally.removed,
        tally.skipped,
        tuple(tally.failed[:_MOST_FAILED]),
        tally.left_out,
        symbols,
        edges,
        dict(languages.most_common()),
        listing.by_git,
        time.monotonic() - begun,
    )


def forget_code(home: Home, asked: ForgetCodeRequest) -> ForgottenCode:
    """Forget the code of a project; its files stay as they are."""
    found = home.code.find(asked.project)
    home.code.forget(asked.project)
    return ForgottenCode(asked.project, found is not None)


def _project(home: Home, name: str | None, root: Path) -> str:
    if name:
        return project_called(home, name, projects(home))
    found = known_or_named(home, root)
    if found is None:
        raise InvalidInput(f"{root} belongs to no project", hint="name one: --project NAME")
    return found


def _has_newer(root: Path, paths: Sequence[str], since: datetime) -> bool:
    """Whether one of some files changed since."""
    return any(
        one.is_file() and one.stat().st_mtime > since.timestamp()
        for one in map(root.joinpath, paths)
    )


def _changed(
    home: Home, opened: CodeProject, root: Path, listing: Listing, tally: _Tally, *, is_forced: bool
) -> list[tuple[str, bytes]]:
    """New and changed files, each with its hash. Deletes the files that are gone from the index."""
    known = home.code.hashes(opened.row)
    found: list[tuple[str, bytes]] = []
    gone = known.keys() - set(listing.code)
    for path in listing.code:
        data = read_file(root, path)
        if data is None or home.redactor.clean(path) != path:
            tally.skipped += 1
            gone |= {path} & known.keys()
            continue
        digest = hashlib.blake2b(data, digest_size=16).digest()
        if not is_forced and path in known and known[path][1] == digest:
            tally.unchanged += 1
        else:
            found.append((path, digest))
    if gone:
        home.code.drop(opened.row, [known[path][0] for path in sorted(gone)])
        tally.removed = len(gone)
    return found


def _read(
    home: Home,
    opened: CodeProject,
    root: Path,
    changed: Sequence[tuple[str, bytes]],
    tally: _Tally,
    on_progress: OnProgress | None,
    until: float,
) -> None:
    """Parse files and store their facts, a few hundred per transaction."""
    digests = dict(changed)
    waiting: list[NewFile] = []
    done = 0
    for read in read_all(root, list(digests), count_processes(len(digests))):
        done += 1
        if read.facts is None:
            tally.failed.append(read.path)
        else:
            waiting.append(_new_file(home, read.path, digests[read.path], read.facts))
        if len(waiting) >= _PORTION_INGEST:
            _store(home, opened, waiting, tally)
            if on_progress:
                on_progress(Progress("code", done, len(digests)))
        if time.monotonic() > until:
            break
    _store(home, opened, waiting, tally)
    tally.left_out += len(digests) - done


def _store(home: Home, opened: CodeProject, waiting: list[NewFile], tally: _Tally) -> None:
    known = home.code.hashes(opened.row)
    former = [known[one.path][0] for one in waiting if one.path in known]
    with home.database.transaction():
        if former:
            home.code.drop(opened.row, former)
        home.code.put(opened.row, waiting)
    tally.read += len(waiting)
    waiting.clear()


def _new_file(home: Home, path: str, digest: bytes, facts: Facts) -> NewFile:
    facts = _without_secrets(home, facts)
    symbols = [
        NewSymbol(one.name, one.qualified, one.kind, one.line, one.end_line)
        for one in facts.definitions
        if one.kind not in INNER_KINDS
    ]
    return NewFile(path, facts.language, digest, zlib.compress(_pack(facts), 1), symbols)


def _without_secrets(home: Home, facts: Facts) -> Facts:
    """The facts with every name redacted that looks like a secret."""
    names = "\n".join(sorted(_names(facts)))
    if home.redactor.clean(names) == names:
        return facts
    return json.convert(_cleaned(home, msgspec.to_builtins(facts)), Facts)


def _names(facts: Facts) -> set[str]:
    """Every text that the facts hold, each once."""
    found = {facts.package, facts.default}
    found.update(text for one in facts.definitions for text in (one.qualified, one.returns))
    found.update(f"{one.receiver}.{one.name}" for one in facts.calls)
    found.update(text for one in facts.imports for text in (one.module, one.name, one.alias))
    found.update(text for one in facts.variables for text in (one.name, one.type))
    found.update(one.name for one in facts.bases)
    return found


def _cleaned(home: Home, value: Any) -> Any:
    if isinstance(value, str):
        return home.redactor.clean(value)
    return [_cleaned(home, one) for one in value] if isinstance(value, list | tuple) else value


def _without_calls(packed: bytes) -> Facts:
    """The facts without calls: these are most of the memory, and are needed one file at a time."""
    return msgspec.structs.replace(_facts(packed), calls=())


def _facts(packed: bytes) -> Facts:
    return _unpack(zlib.decompress(packed))


def _link(
    home: Home, opened: CodeProject, root: Path, listing: Listing, on_progress: OnProgress | None
) -> None:
    """Resolve all edges of a project again: a new or removed definition changes what names mean in other files."""
    held = home.code.facts(opened.row)
    manifests = {
        path: (read_file(root, path) or b"").decode("utf-8", "replace")
        for path in listing.manifests
    }
    resolution = Resolution([(path, _without_calls(packed)) for _, path, packed in held], manifests)
    rows = [row for row, _, _ in held]
    symbols = home.code.symbol_rows(opened.row)

    def row_of(node: tuple[int, int]) -> int:
        number, place = node
        name = (
            "" if place == MODULE else resolution.index.facts[number].definitions[place].qualified
        )
        return symbols[rows[number], name]

    for start in range(0, len(rows), _PORTION_INGEST):
        edges: list[tuple[int, str, int, int]] = []
        outside: list[tuple[str, int, int]] = []
        numbers = range(start, min(start + _PORTION_INGEST, len(rows)))
        for number in numbers:
            for one in resolution.of(number, _facts(held[number][2]).calls):
                if isinstance(one, Edge):
                    edges.append((row_of(one.target), one.rel, row_of(one.source), one.line))
                else:
                    outside.append((one.module, rows[number], one.line))
        home.code.link([rows[number] for number in numbers], edges, outside)
        if on_progress:
            on_progress(Progress("linking", numbers.stop, len(rows)))
    home.code.mark_linked(opened.row)
