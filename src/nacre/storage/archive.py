"""What the archive holds, as its packs tell it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from nacre.storage.database import Database, in_transaction


@dataclass(frozen=True, slots=True)
class Archived:
    """How far a transcript is archived.

    ``kind`` is what its pack holds; ``pack`` is the pack's path below the archive, ``None`` while there is none.
    Bytes up to ``until`` are in it, of which there are ``raw`` in all, the pack has ``size``. ``changed`` (ns) and
    ``inode`` are those of the transcript when it was looked at last. ``withheld``: never its own words.
    """

    path: str
    tool: str
    kind: str
    pack: str | None = None
    until: int = 0
    size: int = 0
    raw: int = 0
    inode: int = 0
    fingerprint: str = ""
    changed: int = 0
    withheld: bool = False


@dataclass(frozen=True, slots=True)
class Due:
    """A transcript that was read since it was archived last: up to ``size``; ``changed`` then (ns)."""

    path: str
    tool: str
    inode: int
    size: int
    changed: int


@dataclass(frozen=True, slots=True)
class Part:
    """A segment of a pack."""

    start: int
    until: int
    digest: bytes
    is_copy: bool


class ArchiveIndex:
    """Reads and writes ``archived`` and ``archive_segments``."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def all(self) -> list[Archived]:
        """Everything, what changed last first."""
        return [_archived(row) for row in self._db.all("list_archived")]

    def find(self, path: str) -> Archived | None:
        """What is archived of a transcript."""
        row = self._db.one("find_archived", path=path)
        return _archived(row) if row else None

    def alike(self, fingerprint: str, path: str) -> list[Archived]:
        """Other transcripts that begin with the same bytes."""
        found = self._db.all("find_archived_alike", fingerprint=fingerprint, path=path)
        return [_archived(row) for row in found]

    def has_below(self, folder: str) -> bool:
        """Whether anything is archived of transcripts below a folder."""
        return self._db.one("find_archived_below", start=f"{folder}/", end=f"{folder}0") is not None

    def due(self) -> list[Due]:
        """Transcripts that were read further than they are archived, the oldest first."""
        return [Due(*row) for row in self._db.all("list_archive_due")]

    @in_transaction
    def save(self, archived: Archived, parts: Sequence[Part]) -> None:
        """Remember what a pack holds."""
        self._db.run(
            "save_archived", path=archived.path, tool=archived.tool, kind=archived.kind, pack=archived.pack,
            until=archived.until, size=archived.size, raw=archived.raw, inode=archived.inode,
            fingerprint=archived.fingerprint, changed=archived.changed, withheld=int(archived.withheld),
        )  # fmt: skip
        self._db.run("delete_archive_segments", path=archived.path)
        self._db.run_many(
            "insert_archive_segment",
            [
                {
                    "path": archived.path, "number": number, "start": part.start, "until": part.until,
                    "digest": part.digest, "is_copy": int(part.is_copy),
                }
                for number, part in enumerate(parts)
            ],
        )  # fmt: skip

    def rename(self, before: str, path: str) -> None:
        """A transcript goes by another name."""
        self._db.run("rename_archived", before=before, path=path)

    def withhold(self, path: str, tool: str) -> None:
        """Of this transcript only what the index has may be archived from now on."""
        self._db.run("withhold_archived", path=path, tool=tool)

    def delete(self, path: str) -> None:
        """Nothing is known of a transcript any more."""
        self._db.run("delete_archived", path=path)

    def clear(self) -> None:
        """Nothing is known."""
        self._db.run("clear_archived")

    def parts(self, path: str) -> list[Part]:
        """The segments of a transcript's pack, in order."""
        found = self._db.all("list_archive_segments", path=path)
        return [Part(start, until, digest, bool(is_copy)) for start, until, digest, is_copy in found]

    def holder(self, digest: bytes, *, beside: str) -> str | None:
        """A pack that has the bytes of a segment, not counting that of one transcript."""
        row = self._db.one("find_archive_segment", digest=digest, path=beside)
        return str(row[0]) if row else None

    def copies(self, path: str) -> list[str]:
        """Transcripts whose packs rely on the bytes in that of this one."""
        return [str(other) for (other,) in self._db.all("list_archive_copies", path=path)]

    def sessions_of(self, tool: str, path: str) -> list[int]:
        """Rows of the sessions that were read from a transcript."""
        return [row for (row,) in self._db.all("list_session_rows_of_file", tool=tool, file=path)]


def _archived(row: Sequence[Any]) -> Archived:
    *values, withheld = row
    return replace(Archived(*values), withheld=bool(withheld))
