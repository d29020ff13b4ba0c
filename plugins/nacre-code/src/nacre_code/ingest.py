"""Read the code of a repository: extract facts with tree-sitter in worker processes, then resolve edges."""

from __future__ import annotations

import contextlib
import hashlib
import signal
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from nacre.base import json
from nacre.base.bounds import bounds
from nacre.base.lazy import Module, load
from nacre.errors import InvalidInputError, NotFoundError
from nacre.home.change import known_or_named, project_called
from nacre.home.home import Home
from nacre.home.location import projects
from nacre.home.parsing import count_cores
from nacre.home.workers import Tasks, in_processes
from nacre.operations import operation
from nacre.values.reports import OnProgress, Progress
from nacre_code.ask import (
    CLASS_KINDS,
    INNER_KINDS,
    LANGUAGES,
    MODULE,
    Base,
    Call,
    CodeReport,
    Definition,
    Facts,
    ForgottenCode,
    Import,
    Listing,
    Variable,
    language_of,
    list_code,
    parser_of,
    read_file,
    require_parsers,
    toplevel,
)
from nacre_code.languages import (
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
from nacre_code.resolution import Edge, Resolution
from nacre_code.store import CodeGraph, CodeProject, NewFile, NewSymbol

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_DEFINITIONS = 20_000
MAX_REFERENCES = 100_000
"""Maximum number of references per file. Further references are skipped."""

QUALIFIED_CHARACTERS = 500
"""Maximum length of a qualified name. Names in thousands of nested definitions would use up the RAM."""

_READERS: Mapping[str, Reader] = {
    "python": Python(),
    "ecma": Ecma(),
    "go": Go(),
    "rust": Rust(),
    "java": Java(),
    "cfamily": CFamily(),
}
_DEFINITIONS = ("function", "class", "interface", "type", "namespace", "impl")
_ORDER = {
    name: place
    for place, name in enumerate((*_DEFINITIONS, "package", "import", "variable", "call"))
}


def read_code(language: str, source: bytes) -> Facts:
    """Return the facts of a file. Raises ImportError if the language's parser is not installed."""
    parser, query = parser_of(language)
    captured = load("tree_sitter:QueryCursor")(query).captures(parser.parse(source).root_node)
    reading = _Reading(_READERS[LANGUAGES[language].family])
    # In source order, enclosing nodes first. For the same node, the definition comes first.
    rows = [
        (node.start_byte, -node.end_byte, _ORDER.get(capture, 99), capture, node)
        for capture, nodes in captured.items()
        for node in nodes
    ]
    for *_, capture, node in sorted(rows, key=lambda row: row[:3]):
        reading.take(capture, node)
    return reading.facts(language)


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
        while self._open and self._open[-1][0] <= node.start_byte:
            self._open.pop()
        if capture in _DEFINITIONS:
            self._define(capture, node)
        elif capture == "package":
            self._package = text_of(node)
        elif capture == "import":
            self._imports += self._reader.imports(node)
            self._default = self._reader.default(node) or self._default
        elif capture == "variable":
            self._imports += (
                self._reader.imports(node) if node.type == "variable_declarator" else ()
            )
            for name, kind in self._reader.variables(node):
                if not name or not kind or len(self._variables) >= MAX_REFERENCES:
                    continue
                self._variables[Variable(self._scope, name, kind)] = None
        elif len(self._calls) < MAX_REFERENCES:
            self._call(capture, node)

    def facts(self, language: str) -> Facts:
        return Facts(
            language,
            self._package,
            self._default,
            tuple(self._definitions),
            tuple(Call(*key, line) for key, line in self._calls.items()),
            tuple(
                item
                for item in self._imports
                if len(item.module) + len(item.name) <= 2 * NAME_CHARACTERS
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
        if not name or is_long or len(self._definitions) >= MAX_DEFINITIONS:
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
            self._bases += (Base(number, base) for base in self._reader.bases(node) if base)

    def _call(self, capture: str, node: Node) -> None:
        if capture == "new":
            name = clean_type(text_of(node))
            receiver, _, last = name.rpartition(".")
            receiver_and_name = (receiver, last) if last else None
        else:
            receiver_and_name = self._reader.call(node)
        if not receiver_and_name or (
            capture == "component" and not receiver_and_name[1][:1].isupper()
        ):
            return
        scope = self._scope
        while scope != MODULE and self._definitions[scope].kind in INNER_KINDS:
            scope = self._definitions[scope].parent
        if max(map(len, receiver_and_name)) <= NAME_CHARACTERS:
            self._calls.setdefault((scope, *receiver_and_name), line_of(node))


# ----------------------------------------------------------------------------
# Reading in worker processes. Two cores halve the time. A parser written in C can crash on a file
# or take hours for nested brackets. Then only a worker process ends.


SECONDS_PER_FILE = 10
"""Maximum processor time for reading one file, in seconds."""

MAX_MEMORY_BYTES = 2**31
MAX_PROCESSES = 4

_FILES_PER_GROUP = 40
_MIN_FILES_FOR_WORKERS = 300
"""Minimum number of files that are read with several processes."""

resource = Module("resource")  # Windows lacks this module


class ReadFile(msgspec.Struct, frozen=True, array_like=True):
    """A file that was read. ``facts`` is ``None`` if reading failed."""

    path: str
    facts: Facts | None


def read_all(root: Path, paths: Sequence[str]) -> Iterator[ReadFile]:
    """Yield the files in order. If a file crashes its process, its facts are ``None``."""
    tasks = Tasks(partial(_limited_reader, root), partial(_read_path, root), _crashed)
    groups = [
        paths[start : start + _FILES_PER_GROUP] for start in range(0, len(paths), _FILES_PER_GROUP)
    ]
    count = min(count_cores(), MAX_PROCESSES) if len(paths) >= _MIN_FILES_FOR_WORKERS else 1
    return in_processes(groups, tasks, count)


def _crashed(path: str) -> ReadFile:
    return ReadFile(path, None)


def _read_path(root: Path, path: str) -> Iterator[ReadFile]:
    language = language_of(path)
    data = read_file(root, path)
    facts = read_code(language, data) if data is not None and language else None
    yield ReadFile(path, facts)


def _limited_reader(root: Path) -> Callable[[str], Iterator[ReadFile]]:
    """Limit this process's memory. The returned function limits the time for reading a file."""
    if sys.platform == "win32":
        return partial(_read_path, root)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))

    def read(path: str) -> Iterator[ReadFile]:
        # The timer ends this process, even inside C code.
        signal.setitimer(signal.ITIMER_PROF, SECONDS_PER_FILE)
        yield from _read_path(root, path)
        signal.setitimer(signal.ITIMER_PROF, 0)

    return read


# ----------------------------------------------------------------------------
# Reading a repository: parse changed files, then resolve all calls, imports and base classes again.


_FILES_PER_TRANSACTION = 200
_MAX_FAILED = 20
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


@operation(
    "graph-ingest-code", writes=True, takes_long=True, owners=True, command="graph ingest-code"
)
def ingest_code(
    home: Home,
    folder: Annotated[
        str,
        bounds("Any folder of the repository, which is read completely.", min_length=1),
    ],
    project: Annotated[str | None, bounds("The code's project, by default the folder's.")] = None,
    force: Annotated[bool, bounds("Read unchanged files again.")] = False,
    max_files: Annotated[int, bounds("Maximum number of files.", ge=1, le=200_000)] = 20_000,
    seconds: Annotated[
        float, bounds("Time limit in seconds. The next call continues.", gt=0)
    ] = 600.0,
    on_progress: OnProgress | None = None,
) -> CodeReport:
    """Read the repository that contains a folder, and later only its changed files.

    No code is run, and only names are stored. Raises UnavailableError if tree-sitter is not
    installed, NotFoundError for a missing folder, InvalidInputError if the project is unknown.
    """
    require_parsers()
    started = time.monotonic()
    place = Path(folder).expanduser()
    if not place.is_dir():
        raise NotFoundError(f"{place} is not a folder", hint="give the folder of a repository")
    root = toplevel(place, home.settings.environ)
    project = _project_name(home, project, root)
    former = CodeGraph(home.database).find(project)
    opened = CodeGraph(home.database).begin(project, str(root), home.now())
    listing = list_code(root, home.settings.environ, max_files)
    tally = _Tally(files=len(listing.code), left_out=listing.left_out)
    changed = _find_changed(home, opened, root, listing, tally, is_forced=force)
    until = started + seconds
    digests = dict(changed)
    waiting: list[NewFile] = []
    done = 0
    for read in read_all(root, list(digests)):
        done += 1
        if read.facts is None:
            tally.failed.append(read.path)
        else:
            waiting.append(_new_file(home, read.path, digests[read.path], read.facts))
        if len(waiting) >= _FILES_PER_TRANSACTION:
            _store_files(home, opened, waiting, tally)
            if on_progress:
                on_progress(Progress("code", done, len(digests)))
        if time.monotonic() > until:
            break
    _store_files(home, opened, waiting, tally)
    tally.left_out += len(digests) - done
    is_whole = (
        former is not None
        and former.is_linked
        and not any(
            file.is_file() and file.stat().st_mtime > former.read_at.timestamp()
            for file in map(root.joinpath, listing.manifests)
        )
    )
    if changed or tally.removed or not is_whole:
        _resolve_edges(home, opened, root, listing, on_progress)
    symbols, edges = CodeGraph(home.database).counts(opened.row)
    languages = Counter(
        language_of(path) or "" for path in CodeGraph(home.database).hashes(opened.row)
    )
    return CodeReport(
        project,
        str(root),
        tally.files,
        tally.read,
        tally.unchanged,
        tally.removed,
        tally.skipped,
        tuple(tally.failed[:_MAX_FAILED]),
        tally.left_out,
        symbols,
        edges,
        dict(languages.most_common()),
        listing.by_git,
        time.monotonic() - started,
    )


@operation("graph-forget-code", writes=True, owners=True, command="graph ingest-code --forget")
def forget_code(
    home: Home, project: Annotated[str, bounds("The project.", min_length=1)]
) -> ForgottenCode:
    """Forget the code of a project. Its files are not changed."""
    stored = CodeGraph(home.database).find(project)
    CodeGraph(home.database).forget(project)
    return ForgottenCode(project, stored is not None)


def _project_name(home: Home, name: str | None, root: Path) -> str:
    if name:
        return project_called(home, name, projects(home))
    project = known_or_named(home, root)
    if project is None:
        raise InvalidInputError(
            f"{root} belongs to no project", hint="choose one with --project NAME"
        )
    return project


def _find_changed(
    home: Home, opened: CodeProject, root: Path, listing: Listing, tally: _Tally, *, is_forced: bool
) -> list[tuple[str, bytes]]:
    """Return new and changed files with their hashes. Delete missing files from the index."""
    stored = CodeGraph(home.database).hashes(opened.row)
    changed: list[tuple[str, bytes]] = []
    deleted = stored.keys() - set(listing.code)
    for path in listing.code:
        data = read_file(root, path)
        if data is None or home.redactor.clean(path) != path:
            tally.skipped += 1
            deleted |= {path} & stored.keys()
            continue
        digest = hashlib.blake2b(data, digest_size=16).digest()
        if not is_forced and path in stored and stored[path][1] == digest:
            tally.unchanged += 1
        else:
            changed.append((path, digest))
    if deleted:
        CodeGraph(home.database).drop(opened.row, [stored[path][0] for path in sorted(deleted)])
        tally.removed = len(deleted)
    return changed


def _store_files(home: Home, opened: CodeProject, waiting: list[NewFile], tally: _Tally) -> None:
    stored = CodeGraph(home.database).hashes(opened.row)
    former = [stored[file.path][0] for file in waiting if file.path in stored]
    with home.transaction():
        if former:
            CodeGraph(home.database).drop(opened.row, former)
        CodeGraph(home.database).put(opened.row, waiting)
    tally.read += len(waiting)
    waiting.clear()


def _new_file(home: Home, path: str, digest: bytes, facts: Facts) -> NewFile:
    names = {facts.package, facts.default}
    names.update(text for item in facts.definitions for text in (item.qualified, item.returns))
    names.update(f"{item.receiver}.{item.name}" for item in facts.calls)
    names.update(text for item in facts.imports for text in (item.module, item.name, item.alias))
    names.update(text for item in facts.variables for text in (item.name, item.type))
    names.update(item.name for item in facts.bases)
    text = "\n".join(sorted(names))
    if home.redactor.clean(text) != text:
        facts = json.convert(_redact_values(home, msgspec.to_builtins(facts)), Facts)
    symbols = [
        NewSymbol(
            definition.name,
            definition.qualified,
            definition.kind,
            definition.line,
            definition.end_line,
        )
        for definition in facts.definitions
        if definition.kind not in INNER_KINDS
    ]
    return NewFile(path, facts.language, digest, zlib.compress(_pack(facts), 1), symbols)


def _redact_values(home: Home, value: Any) -> Any:
    if isinstance(value, str):
        return home.redactor.clean(value)
    return (
        [_redact_values(home, item) for item in value] if isinstance(value, list | tuple) else value
    )


def _unpack_facts(packed: bytes) -> Facts:
    return _unpack(zlib.decompress(packed))


def _resolve_edges(
    home: Home, opened: CodeProject, root: Path, listing: Listing, on_progress: OnProgress | None
) -> None:
    """Resolve all edges of a project again, because new or removed definitions change the meaning
    of names in other files.
    """
    files = CodeGraph(home.database).facts(opened.row)
    manifests = {
        path: (read_file(root, path) or b"").decode("utf-8", "replace")
        for path in listing.manifests
    }
    # Calls need most of the memory, and only one file's calls are needed at a time.
    without_calls = [
        (path, msgspec.structs.replace(_unpack_facts(packed), calls=()))
        for _, path, packed in files
    ]
    resolution = Resolution(without_calls, manifests)
    rows = [row for row, _, _ in files]
    symbols = CodeGraph(home.database).symbol_rows(opened.row)

    def row_of(node: tuple[int, int]) -> int:
        number, place = node
        name = (
            "" if place == MODULE else resolution.index.facts[number].definitions[place].qualified
        )
        return symbols[rows[number], name]

    for start in range(0, len(rows), _FILES_PER_TRANSACTION):
        edges: list[tuple[int, str, int, int]] = []
        outside: list[tuple[str, int, int]] = []
        numbers = range(start, min(start + _FILES_PER_TRANSACTION, len(rows)))
        for number in numbers:
            for edge in resolution.of(number, _unpack_facts(files[number][2]).calls):
                if isinstance(edge, Edge):
                    edges.append((row_of(edge.target), edge.rel, row_of(edge.source), edge.line))
                else:
                    outside.append((edge.module, rows[number], edge.line))
        CodeGraph(home.database).link([rows[number] for number in numbers], edges, outside)
        if on_progress:
            on_progress(Progress("linking", numbers.stop, len(rows)))
    CodeGraph(home.database).mark_linked(opened.row)
