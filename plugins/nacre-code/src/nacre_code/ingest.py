"""Read the code of a repository: extract facts with tree-sitter in worker processes, then resolve edges."""

from __future__ import annotations

import contextlib
import signal
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import msgspec

from nacre.base import json
from nacre.base.bounds import bounds
from nacre.base.ids import bytes_hash
from nacre.base.lazy import Module
from nacre.errors import InvalidInputError, NotFoundError
from nacre.home.change import known_or_named, project_called
from nacre.home.home import Home
from nacre.home.location import clean_values, projects
from nacre.home.parsing import count_cores
from nacre.home.workers import Tasks, in_processes
from nacre.operations import operation
from nacre.values.reports import OnProgress, Progress
from nacre_code.ask import CodeReport, ForgottenCode, Listing, list_code, read_file, toplevel
from nacre_code.languages import (
    INNER_KINDS,
    MODULE,
    Facts,
    language_of,
    read_code,
    require_parsers,
)
from nacre_code.resolution import Resolution
from nacre_code.store import CodeGraph, NewFile

# ----------------------------------------------------------------------------
# Files are parsed in worker processes, because a parser can crash or hang on malformed code.


SECONDS_PER_FILE = 10
"""Maximum CPU time per file, in seconds."""

MAX_MEMORY_BYTES = 2**31
MAX_PROCESSES = 4

_FILES_PER_GROUP = 40
_MIN_FILES_FOR_WORKERS = 300
"""Minimum number of files for which several processes are used."""

resource = Module("resource")  # Windows lacks this module


ReadFile = tuple[str, Facts | None]
"""A file's path, and its facts or ``None`` if it could not be read."""


def read_all(root: Path, paths: Sequence[str]) -> Iterator[ReadFile]:
    """Yield each file with its facts, in order, or with ``None`` if parsing it crashed a worker."""
    tasks = Tasks(
        partial(_limited_reader, root), partial(_read_path, root), lambda path: (path, None)
    )
    groups = [
        paths[start : start + _FILES_PER_GROUP] for start in range(0, len(paths), _FILES_PER_GROUP)
    ]
    count = min(count_cores(), MAX_PROCESSES) if len(paths) >= _MIN_FILES_FOR_WORKERS else 1
    return in_processes(groups, tasks, count)


def _read_path(root: Path, path: str) -> Iterator[ReadFile]:
    language = language_of(path)
    data = read_file(root, path)
    yield path, read_code(language, data) if data is not None and language else None


def _limited_reader(root: Path) -> Callable[[str], Iterator[ReadFile]]:
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
# Parse the changed files of a repository, then resolve all calls, imports and base classes.


_FILES_PER_TRANSACTION = 200
_MAX_FAILED = 20


@operation(
    "graph-ingest-code", writes=True, takes_long=True, owners=True, command="graph ingest-code"
)
def ingest_code(
    home: Home,
    folder: Annotated[
        str,
        bounds("Any folder of the repository to read.", min_length=1),
    ],
    project: Annotated[
        str | None, bounds("The project of the code; default: the folder's.")
    ] = None,
    max_files: Annotated[int, bounds("Maximum number of files.", ge=1, le=200_000)] = 20_000,
    on_progress: OnProgress = lambda _: None,
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
    graph = CodeGraph(home.database)
    former = graph.find(project)
    row = graph.begin(project, str(root), home.now())
    listing = list_code(root, home.settings.environ, max_files)
    changed, skipped, removed = _find_changed(home, graph, row, root, listing)
    batch: list[NewFile] = []
    failed: list[str] = []
    for done, (path, facts) in enumerate(read_all(root, list(changed)), 1):
        if facts is None:
            failed.append(path)
        else:
            batch.append(_new_file(home, path, changed[path], facts))
        if len(batch) >= _FILES_PER_TRANSACTION:
            graph.put(row, batch)
            batch.clear()
            on_progress(Progress("code", done, len(changed)))
    graph.put(row, batch)
    is_linked = (
        former is not None
        and former.is_linked
        and not any(
            file.is_file() and file.stat().st_mtime > former.read_at.timestamp()
            for file in map(root.joinpath, listing.manifests)
        )
    )
    if changed or removed or not is_linked:
        _resolve_edges(graph, row, root, listing, on_progress)
    symbols, edges = graph.counts(row)
    languages = Counter(language_of(path) or "" for path in graph.hashes(row))
    return CodeReport(
        project,
        str(root),
        len(listing.code),
        len(changed) - len(failed),
        len(listing.code) - len(changed) - skipped,
        removed,
        skipped,
        tuple(failed[:_MAX_FAILED]),
        listing.left_out,
        symbols,
        edges,
        dict(languages.most_common()),
        time.monotonic() - started,
    )


@operation("graph-forget-code", writes=True, owners=True, command="graph ingest-code --forget")
def forget_code(
    home: Home, project: Annotated[str, bounds("The project.", min_length=1)]
) -> ForgottenCode:
    """Forget the code of a project. Its files are not changed."""
    graph = CodeGraph(home.database)
    stored = graph.find(project)
    graph.forget(project)
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
    home: Home, graph: CodeGraph, row: int, root: Path, listing: Listing
) -> tuple[dict[str, bytes], int, int]:
    stored = graph.hashes(row)
    hashes: dict[str, bytes] = {}
    for path in listing.code:
        data = read_file(root, path)
        if data is not None and home.redactor.clean(path) == path:
            hashes[path] = bytes_hash(data)
    removed = [file for path, (file, _) in stored.items() if path not in hashes]
    if removed:
        graph.drop(row, removed)
    changed = {
        path: digest
        for path, digest in hashes.items()
        if path not in stored or stored[path][1] != digest
    }
    return changed, len(listing.code) - len(hashes), len(removed)


def _new_file(home: Home, path: str, digest: bytes, facts: Facts) -> NewFile:
    names = {facts.package, facts.default}
    names.update(text for item in facts.definitions for text in (item.qualified, item.returns))
    names.update(f"{item.receiver}.{item.name}" for item in facts.calls)
    names.update(text for item in facts.imports for text in (item.module, item.name, item.alias))
    names.update(text for item in facts.variables for text in (item.name, item.type))
    names.update(item.name for item in facts.bases)
    text = "\n".join(sorted(names))
    if home.redactor.clean(text) != text:
        facts = json.convert(clean_values(home.redactor, msgspec.to_builtins(facts)), Facts)
    symbols = [item for item in facts.definitions if item.kind not in INNER_KINDS]
    return NewFile(
        path, facts.language, digest, zlib.compress(msgspec.msgpack.encode(facts), 1), symbols
    )


def _unpack(packed: bytes) -> Facts:
    return msgspec.msgpack.decode(zlib.decompress(packed), type=Facts)


def _resolve_edges(
    graph: CodeGraph, row: int, root: Path, listing: Listing, on_progress: OnProgress
) -> None:
    """Resolve all edges again, because a change in one file can affect names in others."""
    files = graph.facts(row)
    manifests = {
        path: (read_file(root, path) or b"").decode("utf-8", "replace")
        for path in listing.manifests
    }
    # Calls use the most RAM and are needed for only one file at a time.
    without_calls = [
        (path, msgspec.structs.replace(_unpack(packed), calls=())) for _, path, packed in files
    ]
    resolution = Resolution(without_calls, manifests)
    rows = [file for file, _, _ in files]
    symbols = graph.symbol_rows(row)

    def row_of(node: tuple[int, int]) -> int:
        number, place = node
        name = "" if place == MODULE else resolution.index.definition(node).qualified
        return symbols[rows[number], name]

    for start in range(0, len(rows), _FILES_PER_TRANSACTION):
        edges: list[dict[str, Any]] = []
        outside: list[dict[str, Any]] = []
        numbers = range(start, min(start + _FILES_PER_TRANSACTION, len(rows)))
        for number in numbers:
            for edge in resolution.of(number, _unpack(files[number][2]).calls):
                line = {"line": edge.line}
                if isinstance(edge.target, str):
                    outside.append({"module": edge.target, "file": rows[number], **line})
                else:
                    nodes = {"target": row_of(edge.target), "source": row_of(edge.source)}
                    edges.append({"rel": edge.rel, **nodes, **line})
        graph.link([rows[number] for number in numbers], edges, outside)
        on_progress(Progress("linking", numbers.stop, len(rows)))
    graph.mark_linked(row)
