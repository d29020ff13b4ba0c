"""Databases among the files that were named: the one that has the tables of a known program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from nacre.errors import InvalidInput
from nacre.portability.sources.source import Skipped
from nacre.portability.sources.tree import Tree
from nacre.storage.sqlite.foreign import ForeignDatabase, open_foreign

Tables = Mapping[str, frozenset[str]]
"""Tables by name, with columns that each must have."""


def database_with(tree: Tree, tables: Tables) -> Path | None:
    """The first database that has all of the tables. A zip is not looked into: SQLite reads files."""
    if tree.root.is_file() and not tree.single:
        return None
    for name in tree.names:
        if not tree.is_database(name):
            continue
        try:
            with open_foreign(tree.path_of(name)) as database:
                if _has(database, tables):
                    return tree.path_of(name)
        except InvalidInput:
            continue
    return None


def refused(tree: Tree, what: str) -> Iterator[Skipped]:
    """Named as a program's, and not: say what is wrong with each file. Raises InvalidInput."""
    for name in tree.names:
        with open_foreign(tree.path_of(name)):
            yield Skipped(str(tree.path_of(name)), what)


def _has(database: ForeignDatabase, tables: Tables) -> bool:
    return all(columns <= set(database.columns(table)) for table, columns in tables.items())
