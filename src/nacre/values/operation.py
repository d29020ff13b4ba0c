"""An operation: one change of the vault that a person would name as one, and can undo."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

EDIT = "edit"
"""The action of what a person did to files in an editor."""

REMOVE = "remove"
"""The action of files that a person deleted: their memories are retired, or gone for good where they were already."""

ADOPT = "adopt"
"""The action of files that were there before anyone kept a history, or that nobody saw come."""

DROP, REVIEW = "drop", "review"
DECISIONS = frozenset({DROP, REVIEW})
"""What is decided in review, and may change no file: that candidates go, that memories stay."""

SYNC = "sync"
"""The action of what was brought in from a remote: its operations are told by their own commits."""

RENAME = "project-rename"
"""The action of giving a project another name."""

FOREIGN = "commit"
"""The action of a commit that somebody else made in the vault's repository; its hash stands for an id."""

WITHHELD = "holds what looks like a secret"
"""Why an edit is kept out of the history until its file is mended."""


@dataclass(frozen=True, slots=True)
class Operation:
    """Its UUIDv7, when, what was done (``store``, ``retire`` …), to what, and why, in words without secrets.

    ``by`` says through which face it was asked, and by which agent, if it was one: ``mcp, claude-code``; ``None`` where
    nobody noted it. ``committed`` is the hash of the commit that holds it, ``None`` while it waits for one.
    """

    id: str
    at: datetime
    action: str
    subject: str | None = None
    why: str | None = None
    by: str | None = None
    committed: str | None = None


@dataclass(frozen=True, slots=True)
class SeenMemoryFile:
    """A memory file as it was last read or written."""

    path: str
    memory: str
    mtime_ns: int
    size: int
    hash: bytes


@dataclass(frozen=True, slots=True)
class Intent:
    """A write to the vault that is durable in the database: ``write``, ``adjust``, ``remove`` or ``append``.

    An ``adjust`` is a write that gives way to whoever changed the file meanwhile. ``base`` is the hash of the file a
    write was made from, ``None`` for a new one, ``former`` what that file said, where it holds no secret. In the
    journal there is also ``seen``: what a person wrote, whose ``document`` is ``None`` where it holds a secret.
    """

    action: str
    path: str
    document: str | None = None
    base: bytes | None = None
    memory: str | None = None
    operation: str | None = None
    former: str | None = None
    seq: int = 0


@dataclass(frozen=True, slots=True)
class Project:
    """A project: its id, and its slug, which is its folder."""

    id: str
    slug: str
    mtime_ns: int
