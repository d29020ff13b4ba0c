"""Files, symbols and edges of repositories."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from nacre.base.ids import from_ms, to_ms
from nacre.store.schema import Database, in_transaction

FILE = "file"
"""The kind of the symbol that a file is."""

_MOST_LIKE = 500


@dataclass(frozen=True, slots=True)
class CodeProject:
    """A project whose code was read: from which folder and when. ``is_linked``: its edges are whole."""

    row: int
    project: str
    root: str
    read_at: datetime
    is_linked: bool


@dataclass(frozen=True, slots=True)
class Symbol:
    """A symbol, or a file, whose qualified name is empty."""

    row: int
    project: str
    path: str
    qualified: str
    kind: str
    line: int
    end_line: int


@dataclass(frozen=True, slots=True)
class NewSymbol:
    """A symbol to be stored."""

    name: str
    qualified: str
    kind: str
    line: int
    end_line: int


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file that was read. ``facts`` are as :mod:`nacre.code.ask` packs them."""

    path: str
    language: str
    hash: bytes
    facts: bytes
    symbols: Sequence[NewSymbol]


class CodeGraph:
    """Reads and writes the code of projects."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def find(self, project: str) -> CodeProject | None:
        """The code of a project."""
        found = self._db.one("find_code_project", project=project)
        if found is None:
            return None
        row, name, root, at, is_linked = found
        return CodeProject(row, name, root, _time(at), bool(is_linked))

    def projects(self) -> list[tuple[str, str, datetime, int]]:
        """All projects with code: slug, folder, when it was read, files."""
        return [
            (name, root, _time(at), count)
            for name, root, at, count in self._db.all("list_code_projects")
        ]

    @in_transaction
    def begin(self, project: str, root: str, at: datetime) -> CodeProject:
        """Note that the code of a project is read from a folder."""
        self._db.run("save_code_project", project=project, root=root, at=to_ms(at))
        found = self.find(project)
        assert found is not None  # noqa: S101 - it was written just now
        return found

    def forget(self, project: str) -> None:
        """Delete all code of a project."""
        self._db.run("delete_code_project", project=project)

    def hashes(self, project: int) -> dict[str, tuple[int, bytes]]:
        """The files of a project as they were read: path → row and hash."""
        return {
            path: (row, digest)
            for path, row, digest in self._db.all("list_code_hashes", project=project)
        }

    def facts(self, project: int) -> list[tuple[int, str, bytes]]:
        """What the files of a project say: row, path, facts."""
        return [
            (row, path, facts)
            for row, path, facts in self._db.all("list_code_facts", project=project)
        ]

    @in_transaction
    def drop(self, project: int, rows: Sequence[int]) -> None:
        """Delete files with all that is known of them; the edges are not whole then."""
        self._db.run("mark_code_linked", project=project, linked=0)
        self._db.run("delete_code_files", rows=json.dumps(list(rows)))

    @in_transaction
    def put(self, project: int, files: Iterable[NewFile]) -> None:
        """Store files that were read; the edges are not whole then."""
        self._db.run("mark_code_linked", project=project, linked=0)
        for one in files:
            name = one.path.rsplit("/", 1)[-1]
            self._db.run(
                "insert_code_file",
                project=project,
                path=one.path,
                last=name.lower(),
                language=one.language,
                hash=one.hash,
                facts=one.facts,
            )
            row = (self._db.one("find_code_file_row", project=project, path=one.path) or (0,))[0]
            own = NewSymbol("", "", FILE, 1, 1)
            self._db.run_many(
                "insert_code_symbol",
                [
                    {
                        "file": row,
                        "last": symbol.name.lower(),
                        "qualified": symbol.qualified,
                        "kind": symbol.kind,
                        "line": symbol.line,
                        "end_line": symbol.end_line,
                    }
                    for symbol in (own, *one.symbols)
                ],
            )

    def symbol_rows(self, project: int) -> dict[tuple[int, str], int]:
        """The rows of a project's symbols, by file and qualified name."""
        found = self._db.all("list_code_symbol_rows", project=project)
        return {(file, qualified): row for file, qualified, row in found}

    @in_transaction
    def link(
        self,
        files: Sequence[int],
        edges: Sequence[tuple[int, str, int, int]],
        outside: Sequence[tuple[str, int, int]],
    ) -> None:
        """Replace what begins in some files: edges (target, kind, source, line), and imports of what is not there
        (module, file, line)."""
        named = json.dumps(list(files))
        self._db.run("delete_code_edges", files=named)
        self._db.run("delete_code_outside", files=named)
        self._db.run_many(
            "insert_code_edge",
            [
                {"target": target, "rel": rel, "source": source, "line": line}
                for target, rel, source, line in edges
            ],
        )
        self._db.run_many(
            "insert_code_outside",
            [{"module": module, "file": file, "line": line} for module, file, line in outside],
        )

    def mark_linked(self, project: int) -> None:
        """The edges of a project are whole."""
        self._db.run("mark_code_linked", project=project, linked=1)

    def counts(self, project: int) -> tuple[int, int]:
        """Symbols and edges of a project."""
        symbols, edges = self._db.one("count_code", project=project) or (0, 0)
        return symbols, edges

    def named(self, name: str, project: str | None) -> list[Symbol]:
        """Symbols by the last part of their names, in any case."""
        return _symbols(
            self._db.all("find_code_symbols", last=name.lower(), project=project, limit=_MOST_LIKE)
        )

    def files_named(self, name: str, project: str | None) -> list[Symbol]:
        """Files by the last part of their paths, in any case."""
        return _symbols(
            self._db.all("find_code_files", last=name.lower(), project=project, limit=_MOST_LIKE)
        )

    def of_rows(self, rows: Iterable[int]) -> dict[int, Symbol]:
        """Symbols by their rows."""
        return {
            one.row: one
            for one in _symbols(self._db.all("list_code_nodes", rows=json.dumps(list(rows))))
        }

    def beside(self, symbol: Symbol) -> list[Symbol]:
        """All symbols of a file; what is defined within a symbol."""
        return _symbols(self._db.all("list_code_nodes_of", row=symbol.row, below=symbol.qualified))

    def edges(
        self, rows: Iterable[int], rels: Sequence[str], *, to: bool = True, limit: int = 100_000
    ) -> list[tuple[int, str, int, int]]:
        """Edges that end at some symbols, else that begin there: (target, kind, source, line)."""
        name = "list_code_edges_to" if to else "list_code_edges_from"
        found = self._db.all(
            name, rows=json.dumps(list(rows)), rels=json.dumps(list(rels)), limit=limit
        )
        return [(target, rel, source, line) for target, rel, source, line in found]

    def importers(self, module: str, project: str | None, limit: int) -> list[tuple[Symbol, str]]:
        """Files that import a module of elsewhere, each with what they import as written; the line is the import's."""
        found = self._db.all("list_code_importers", module=module, project=project, limit=limit)
        return [(Symbol(*row[:7]), str(row[7])) for row in found]

    def edits(
        self, files: Sequence[int], since: datetime, project: str | None
    ) -> list[tuple[int, int, datetime | None, datetime, int]]:
        """Which sessions, of a project or of any, changed files from a time on: file, session, its beginning, the last
        change, changes."""
        found = self._db.all(
            "list_file_edits", files=json.dumps(list(files)), since=to_ms(since), project=project
        )
        return [
            (file, session, from_ms(began), _time(at), count)
            for file, session, began, at, count in found
            if at
        ]


def _symbols(rows: Sequence[tuple[Any, ...]]) -> list[Symbol]:
    return [Symbol(*row) for row in rows]


def _time(milliseconds: int) -> datetime:
    found = from_ms(milliseconds)
    assert found is not None  # noqa: S101 - the column is never empty
    return found


# ----------------------------------------------------------------------------
# Files and symbols that memories name. Derived from their texts, and made again when these change.


@dataclass(frozen=True, slots=True)
class Mention:
    """A name as it is written in a memory. ``manner`` is ``path``, ``marked`` (in backticks), ``fence`` (in a block of
    code) or ``text``; ``key`` is its last part in lower case."""

    key: str
    written: str
    manner: str


class CodeMentions:
    """Reads and writes them."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def unread(self, limit: int) -> list[tuple[str, str, str]]:
        """Memories that nobody looked through yet: id, subject, content."""
        return [
            (one, subject, content)
            for one, subject, content in self._db.all("list_unread_mentions", limit=limit)
        ]

    @in_transaction
    def put(self, found: Iterable[tuple[str, Sequence[Mention]]]) -> None:
        """Store what memories name."""
        listed = list(found)
        self._db.run_many(
            "insert_code_mention",
            [
                {"key": one.key, "memory": memory, "written": one.written, "manner": one.manner}
                for memory, mentions in listed
                for one in mentions
            ],
        )
        self._db.run_many("mark_mentions_read", [{"memory": memory} for memory, _ in listed])

    def ending(self, keys: Iterable[str], project: str, limit: int) -> list[tuple[Mention, str]]:
        """Names that end in one of these, with the memories that hold them, of a project or of none."""
        found = self._db.all(
            "list_mentions_of_keys", keys=json.dumps(list(keys)), project=project, limit=limit
        )
        return [(Mention(key, written, manner), memory) for key, written, manner, memory in found]

    def within(self, memories: Sequence[str]) -> dict[str, list[Mention]]:
        """The names in some memories."""
        found: dict[str, list[Mention]] = defaultdict(list)
        for memory, written, manner in self._db.all(
            "list_mentions_in", memories=json.dumps(list(memories))
        ):
            found[memory].append(Mention(written.lower(), written, manner))
        return found

    def with_paths(self, project: str | None, limit: int) -> list[str]:
        """Memories that name files and may go out of date, the latest first."""
        return [
            memory
            for (memory,) in self._db.all("list_memories_with_paths", project=project, limit=limit)
        ]
