"""What goes between a machine and a server, and how that went."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from nacre.platform.ids import bytes_hash
from nacre.values.session import Session, Speaker, Trust
from nacre.vault.merge_notes import Note


@dataclass(frozen=True, slots=True)
class PushedDocument:
    """What a document is to hold; ``None`` removes it. ``base`` is the hash of what it held, ``None`` for a new one."""

    path: str
    text: str | None
    base: str | None = None


@dataclass(frozen=True, slots=True)
class PushedTurn:
    """A turn as it goes to a server; ``calls`` are its tool calls as rows keep them, in JSON."""

    id: str
    speaker: Speaker
    text: str
    time: datetime | None = None
    calls: str = ""
    flags: int = 0
    trust: Trust = Trust.TRUSTED
    author: str | None = None


@dataclass(frozen=True, slots=True)
class PushedSession:
    """Some turns of a session, in their order."""

    session: Session
    project: str | None
    turns: list[PushedTurn]


@dataclass(frozen=True, slots=True)
class ServerDocument:
    """What a document holds at the server; ``None`` where it was removed."""

    path: str
    text: str | None


@dataclass(frozen=True, slots=True)
class ServerChanges:
    """What became of documents, up to ``version``, and the ledger, up to line ``ledger_at``. ``is_all``: there is no
    more to ask for. ``newest`` is the last version of all."""

    space: str
    version: int
    newest: int
    ledger_at: int
    documents: list[ServerDocument]
    ledger: list[str]
    is_all: bool


@dataclass(frozen=True, slots=True)
class Pushed:
    """Why nothing was taken: somebody else changed that meanwhile. Empty: everything was."""

    obstacle: str = ""


@dataclass(frozen=True, slots=True)
class Exchanged:
    """What one exchange did. ``held`` are documents that stay here, each with the reason; ``notes`` what was merged."""

    url: str
    space: str
    sent: int = 0
    received: int = 0
    turns: int = 0
    notes: tuple[Note, ...] = ()
    held: tuple[tuple[str, str], ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RemoteStanding:
    """How a home stands to its server. ``succeeded`` is when both were last in step, ``problem`` why they are not."""

    url: str
    space: str
    private: bool
    succeeded: str | None = None
    problem: str = ""
    hint: str = ""
    documents: int = 0
    waiting_turns: int = 0


def digest(data: bytes | None) -> str | None:
    """What stands for what a document holds."""
    return None if data is None else bytes_hash(data).hex()


def name_of(path: str) -> str:
    """What stands for a path where it is not to be told."""
    return bytes_hash(path.encode("utf-8", "surrogatepass")).hex()
