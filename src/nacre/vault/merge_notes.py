"""What a merge did that the vault's owner may want to know."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class MergeOutcome(StrEnum):
    """What a merge did that its owner may want to know."""

    MERGED = "merged"
    """Both sides changed it."""

    KEPT_TWICE = "kept_twice"
    """Both changed the same sentence: there are two memories now, which contradict each other."""

    KEPT_EDITED = "kept_edited"
    """One side deleted it, the other changed it: it stays."""

    STAYS_RETIRED = "stays_retired"
    """One side retired it, the other changed it: it is retired as changed."""

    RENAMED = "renamed"
    """Two memories wanted one path."""

    COPY_KEPT = "copy_kept"
    """One memory lay at two paths: the second has an id of its own now."""

    UNITED = "united"
    """Both sides made the same under different ids."""

    KEPT_BESIDE = "kept_beside"
    """A file that could not be merged: the other version lies beside it."""

    FORGOTTEN = "forgotten"
    """The other side forgot it for good: it goes, and its note has no words."""


@dataclass(frozen=True, slots=True)
class Note:
    """What happened to one memory or file. ``other`` is the path of a second one, ``fields`` what both changed."""

    outcome: MergeOutcome
    path: str
    memory: str | None = None
    subject: str | None = None
    other: str | None = None
    fields: tuple[str, ...] = ()
