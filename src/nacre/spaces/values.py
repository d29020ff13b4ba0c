"""Spaces, who belongs to them, keys to them, and what is noted of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from nacre.values.actor import Role
from nacre.values.memory import Memory


class SpaceKind(StrEnum):
    """Whose a space is."""

    PERSON = "person"
    TEAM = "team"
    ORGANISATION = "organisation"


class Raising(StrEnum):
    """Who may raise a memory of their own into a space: its owners alone, or its members, too."""

    OWNERS = "owners"
    MEMBERS = "members"


@dataclass(frozen=True, slots=True)
class Space:
    """A space that an account belongs to, and in which role. ``is_own`` is where it writes, ``is_read`` whether recall
    reads it, too."""

    name: str
    kind: SpaceKind
    raising: Raising
    role: Role
    is_own: bool = False
    is_read: bool = False


@dataclass(frozen=True, slots=True)
class Member:
    """Who belongs to a space, in which role, since when."""

    account: str
    role: Role
    since: datetime | None


@dataclass(frozen=True, slots=True)
class Key:
    """A key, without what would open anything: ``id`` is how the key begins, after ``nacre_``."""

    id: str
    space: str
    account: str
    role: Role
    created: datetime | None
    expires: datetime | None
    revoked: datetime | None = None
    last_used: datetime | None = None


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key that was just made. ``secret`` is told once; the server keeps a hash of it."""

    key: Key
    secret: str


@dataclass(frozen=True, slots=True)
class Note:
    """A line of a space's audit log: an operation, what it was about (ids and names), and what became of it: ``done``,
    or the code of the error."""

    at: datetime | None
    account: str
    action: str
    subject: str
    outcome: str


@dataclass(frozen=True, slots=True)
class Shared:
    """A memory as it is in another space now; ``is_new`` unless it was there and was brought up to date."""

    memory: Memory
    space: str
    is_new: bool
