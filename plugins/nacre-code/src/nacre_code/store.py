"""Storage of files, symbols and edges of repositories, and of the code names in memories."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import datetime
from posixpath import basename
from typing import Any

from msgspec import structs

from nacre.base.frozen import frozen
from nacre.base.ids import at_ms, from_ms
from nacre.store.schema import Store, in_transaction, record, records, runs
from nacre_code.languages import MODULE, Definition

FILE = "file"
"""Kind of the symbol that represents a file."""

_MAX_SYMBOLS = 500
_MAX_EDGES = 100_000


@frozen
class CodeProject:
    """A project with a code index. ``is_linked`` is True if all edges are stored."""

    project: str
    root: str
    read_at: datetime
    is_linked: bool


@frozen
class Symbol:
    """A symbol in the database. A file is a symbol with an empty qualified name."""

    row: int
    project: str
    path: str
    qualified: str
    kind: str
    line: int
    end_line: int


@frozen
class NewFile:
    """A file to store. ``facts`` are its packed :class:`~nacre_code.languages.Facts`."""

    path: str
    language: str
    hash: bytes
    facts: bytes
    symbols: Sequence[Definition]


class CodeGraph(Store):
    """A store of the files, symbols and edges of projects."""

    def find(self, project: str) -> CodeProject | None:
        return record(CodeProject, self._db.one("find_code_project", project=project))

    def projects(self) -> list[str]:
        """Return the slugs of projects that have a code index."""
        return self._db.column("list_code_projects")

    @in_transaction
    def begin(self, project: str, root: str, at: datetime) -> int:
        """Store a project before its code is read, and return the project's row id."""
        self._db.run("save_code_project", project=project, root=root, at=at)
        *_, row = self._db.one("find_code_project", project=project) or (0,)
        return int(row)

    @runs("delete_code_project")
    def forget(self, project: str) -> None:
        """Delete the code index of a project."""

    def hashes(self, project: int) -> dict[str, tuple[int, bytes]]:
        """Return the (row, hash) of each path in a project."""
        return {
            path: (row, digest)
            for path, row, digest in self._db.all("list_code_hashes", project=project)
        }

    def facts(self, project: int) -> list[tuple[int, str, bytes]]:
        """Return (row, path, facts) for each file of a project."""
        return self._db.all("list_code_facts", project=project)

    @in_transaction
    def drop(self, project: int, rows: Sequence[int]) -> None:
        """Delete files with their symbols and edges. The caller must resolve other files' edges
        again.
        """
        self._db.run("mark_code_linked", project=project, linked=0)
        self._db.run("delete_code_files", rows=rows)

    @in_transaction
    def put(self, project: int, files: Sequence[NewFile]) -> None:
        """Store or replace files. The caller must then resolve edges again."""
        stored = self.hashes(project)
        self.drop(project, [stored[file.path][0] for file in files if file.path in stored])
        own = Definition("", "", FILE, MODULE, "", 1, 1)
        for file in files:
            self._db.run(
                "insert_code_file",
                project=project,
                path=file.path,
                last=basename(file.path).lower(),
                language=file.language,
                hash=file.hash,
                facts=file.facts,
            )
            row = self._db.value("find_code_file_row", project=project, path=file.path)
            self._db.run_many(
                "insert_code_symbol",
                [
                    {**structs.asdict(symbol), "file": row, "last": symbol.name.lower()}
                    for symbol in (own, *file.symbols)
                ],
            )

    def symbol_rows(self, project: int) -> dict[tuple[int, str], int]:
        """Return the row of each symbol in a project, keyed by (file, qualified name)."""
        rows = self._db.all("list_code_symbol_rows", project=project)
        return {(file, qualified): row for file, qualified, row in rows}

    @in_transaction
    def link(
        self,
        files: Sequence[int],
        edges: Sequence[dict[str, Any]],
        outside: Sequence[dict[str, Any]],
    ) -> None:
        """Replace all edges and external imports of these files.

        An edge has a target, rel, source and line; an import a module, file and line.
        """
        self._db.run("delete_code_edges", files=files)
        self._db.run("delete_code_outside", files=files)
        self._db.run_many("insert_code_edge", edges)
        self._db.run_many("insert_code_outside", outside)

    def mark_linked(self, project: int) -> None:
        self._db.run("mark_code_linked", project=project, linked=1)

    def counts(self, project: int) -> tuple[int, int]:
        symbols, edges = self._db.one("count_code", project=project) or (0, 0)
        return symbols, edges

    def named(self, name: str, project: str | None) -> list[Symbol]:
        """Return the symbols with this last name component, ignoring case."""
        return self._find("find_code_symbols", name, project)

    def files_named(self, name: str, project: str | None) -> list[Symbol]:
        """Return files with this name, ignoring case."""
        return self._find("find_code_files", name, project)

    def _find(self, statement: str, name: str, project: str | None) -> list[Symbol]:
        rows = self._db.all(statement, last=name.lower(), project=project, limit=_MAX_SYMBOLS)
        return records(Symbol, rows)

    def of_rows(self, rows: Iterable[int]) -> dict[int, Symbol]:
        symbols = records(Symbol, self._db.all("list_code_nodes", rows=[*rows]))
        return {symbol.row: symbol for symbol in symbols}

    def siblings(self, symbol: Symbol) -> list[Symbol]:
        rows = self._db.all("list_code_nodes_of", row=symbol.row, below=symbol.qualified)
        return records(Symbol, rows)

    def edges(self, rows: Iterable[int], rels: Sequence[str]) -> list[tuple[int, str, int, int]]:
        """Return (target, kind, source, line) for each edge to one of these symbols."""
        return self._db.all("list_code_edges_to", rows=[*rows], rels=rels, limit=_MAX_EDGES)

    def importers(self, module: str, project: str | None, limit: int) -> list[tuple[Symbol, str]]:
        """Return the files that import an external module, with the module's name as written."""
        rows = self._db.all("list_code_importers", module=module, project=project, limit=limit)
        return [(Symbol(*row[:7]), str(row[7])) for row in rows]

    def edits(
        self, files: Sequence[int], since: datetime, project: str | None
    ) -> list[tuple[int, int, datetime | None, datetime, int]]:
        """Return (file, session, session start, last change, number of changes) for changes since a
        time, optionally only in a project's sessions.
        """
        rows = self._db.all("list_file_edits", files=[*files], since=since, project=project)
        return [
            (file, session, from_ms(began), at_ms(at), count)
            for file, session, began, at, count in rows
            if at
        ]


# -- Code names in memories ----------------------------------------------------


@frozen
class Mention:
    """A name of code in a memory, as written there.

    ``manner`` is ``path``, ``marked`` (in backticks), ``fence`` (in a code block) or ``text``.
    ``key`` is the name's last component in lower case.
    """

    key: str
    written: str
    manner: str


class CodeMentions(Store):
    """A store of the names of code that memories mention."""

    def unread(self, limit: int) -> list[tuple[str, str, str]]:
        """Return (id, subject, content) of up to ``limit`` memories whose code names are not
        indexed yet.
        """
        return self._db.all("list_unread_mentions", limit=limit)

    @in_transaction
    def put(self, mentions_by_memory: Iterable[tuple[str, Sequence[Mention]]]) -> None:
        listed = list(mentions_by_memory)
        self._db.run_many(
            "insert_code_mention",
            [
                {**asdict(mention), "memory": memory}
                for memory, mentions in listed
                for mention in mentions
            ],
        )
        self._db.run_each("mark_mentions_read", "memory", [memory for memory, _ in listed])

    def ending(self, keys: Iterable[str], project: str, limit: int) -> list[tuple[Mention, str]]:
        """Return mentions of these keys in memories of the project or of no project."""
        rows = self._db.all("list_mentions_of_keys", keys=[*keys], project=project, limit=limit)
        return [(Mention(key, written, manner), memory) for key, written, manner, memory in rows]

    def within(self, memories: Sequence[str]) -> dict[str, list[Mention]]:
        mentions: dict[str, list[Mention]] = defaultdict(list)
        for memory, written, manner in self._db.all("list_mentions_in", memories=[*memories]):
            mentions[memory].append(Mention(written.lower(), written, manner))
        return mentions

    def with_paths(self, project: str | None, limit: int) -> list[str]:
        """Return the ids of memories that mention files and can become outdated, latest first."""
        return self._db.column("list_memories_with_paths", project=project, limit=limit)
