"""An operation: one change of the vault that a person would name as one, and can undo."""

from __future__ import annotations

from datetime import datetime

from nacre.platform.fast_dataclass import dataclass

EDIT = "edit"
"""The action of what a person did to files in an editor."""

ADOPT = "adopt"
"""The action of files that were there before anyone kept a history, or that nobody saw come."""

SYNC = "sync"
"""The action of what was brought in from a remote: its operations are told by their own commits."""

FOREIGN = "commit"
"""The action of a commit that somebody else made in the vault's repository; its hash stands for an id."""

WITHHELD = "holds what looks like a secret"
"""Why an edit is kept out of the history until its file is mended."""


@dataclass(frozen=True, slots=True)
class Operation:
    """Its UUIDv7, when, what was done (``store``, ``retire`` …), to what, and why, in words without secrets.

    ``committed`` is the hash of the commit that holds it, ``None`` while it waits for one.
    """

    id: str
    at: datetime
    action: str
    subject: str | None = None
    why: str | None = None
    committed: str | None = None
