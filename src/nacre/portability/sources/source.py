"""What a source is, and what it yields."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nacre.portability.sources.tree import Tree
from nacre.values.memory import Memory
from nacre.values.review import Usage
from nacre.values.session import Session, Turn


@dataclass(frozen=True, slots=True)
class Found:
    """One memory of another system, as nacre would keep it.

    ``cwd`` is the folder it was learned in, where the source says that instead of a project.
    """

    memory: Memory
    usage: Usage | None = None
    cwd: str | None = None


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something that is not taken in, and why in a few words; ``where`` is a file or an id, or says what ``count`` of
    them are.
    """

    where: str
    reason: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class Page:
    """A project's page or the owner's profile: its path in the vault, its text."""

    path: str
    document: str


@dataclass(frozen=True, slots=True)
class Operation:
    """A ledger entry of another vault."""

    values: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Talk:
    """A session with all of its turns, and the project it belonged to."""

    session: Session
    project: str | None
    file: str | None
    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True)
class Transcript:
    """A file that is a transcript: ingest reads it."""

    path: Path


Item = Found | Skipped | Page | Operation | Talk | Transcript


@dataclass(frozen=True, slots=True)
class ImportSource:
    """How to recognise and read what one system wrote.

    ``recognise`` looks at content, not only at names. ``read`` yields what it finds and never raises for one bad file.
    """

    name: str
    label: str
    recognise: Callable[[Tree], bool]
    read: Callable[[Tree], Iterator[Item]]
