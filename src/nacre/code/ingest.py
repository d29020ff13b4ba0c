"""Read a repository: parse the files that changed, then resolve all calls, imports and base classes again."""

from __future__ import annotations

import hashlib
import time
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from nacre.code.facts import INNER_KINDS, MODULE, Facts
from nacre.code.languages.table import language_of, require
from nacre.code.repository import Listing, list_code, read_file, toplevel
from nacre.code.requests import ForgetCodeRequest, IngestCodeRequest
from nacre.code.resolution.edges import Edge, Resolution
from nacre.code.values import CodeReport, ForgottenCode
from nacre.code.workers import count_processes, read_all
from nacre.errors import InvalidInput, NotFound
from nacre.home.answers import project_called
from nacre.home.home import Home
from nacre.home.lookup import projects
from nacre.home.projects import known_or_named
from nacre.platform import json_values
from nacre.storage.code.graph import CodeProject, NewFile, NewSymbol
from nacre.values.reports import OnProgress, Progress

_PORTION = 200
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


def ingest_code(home: Home, asked: IngestCodeRequest, on_progress: OnProgress | None = None) -> CodeReport:
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
    is_whole = known is not None and known.is_linked and not _has_newer(root, listing.manifests, known.read_at)
    if changed or tally.removed or not is_whole:
        _link(home, opened, root, listing, on_progress)
    symbols, edges = home.code.counts(opened.row)
    languages = Counter(language_of(path) or "" for path in home.code.hashes(opened.row))
    return CodeReport(
        project, str(root), tally.files, tally.read, tally.unchanged, tally.removed, tally.skipped,
        tuple(tally.failed[:_MOST_FAILED]), tally.left_out, symbols, edges, dict(languages.most_common()),
        listing.by_git, time.monotonic() - begun,
    )  # fmt: skip


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
    return any(one.is_file() and one.stat().st_mtime > since.timestamp() for one in map(root.joinpath, paths))


def _changed(
    home: Home, opened: CodeProject, root: Path, listing: Listing, tally: _Tally, *, is_forced: bool
) -> list[tuple[str, bytes]]:  # fmt: skip
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
    home: Home, opened: CodeProject, root: Path, changed: Sequence[tuple[str, bytes]], tally: _Tally,
    on_progress: OnProgress | None, until: float,
) -> None:  # fmt: skip
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
        if len(waiting) >= _PORTION:
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
    return json_values.convert(_cleaned(home, msgspec.to_builtins(facts)), Facts)


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


def _link(home: Home, opened: CodeProject, root: Path, listing: Listing, on_progress: OnProgress | None) -> None:
    """Resolve all edges of a project again: a new or removed definition changes what names mean in other files."""
    held = home.code.facts(opened.row)
    manifests = {path: (read_file(root, path) or b"").decode("utf-8", "replace") for path in listing.manifests}
    resolution = Resolution([(path, _without_calls(packed)) for _, path, packed in held], manifests)
    rows = [row for row, _, _ in held]
    symbols = home.code.symbol_rows(opened.row)

    def row_of(node: tuple[int, int]) -> int:
        number, place = node
        name = "" if place == MODULE else resolution.index.facts[number].definitions[place].qualified
        return symbols[rows[number], name]

    for start in range(0, len(rows), _PORTION):
        edges: list[tuple[int, str, int, int]] = []
        outside: list[tuple[str, int, int]] = []
        numbers = range(start, min(start + _PORTION, len(rows)))
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
