"""Which shards a home has: their rows in the database, their folders beside it."""

from __future__ import annotations

import hashlib
import re
import secrets
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from nacre.storage.search.shards import IDENTITY, Shard, ShardTurn, write_shard
from nacre.storage.sqlite.database import FileDatabase

_NAME = re.compile(r"[0-9a-f]{16}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class ShardPlace:
    """A shard as the database knows it: turns from row ``first`` to ``last``; how many, and words in all of them."""

    name: str
    first: int
    last: int
    rows: int
    words: int
    is_current: bool


class ShardSet:
    """Opens and makes shards. Who writes holds the lock of the index; readers need none."""

    def __init__(self, database: FileDatabase, folder: Path) -> None:
        self._db = database
        self.folder = folder
        self._open: dict[str, Shard] = {}

    def places(self) -> list[ShardPlace]:
        """All shards in the order of their turns."""
        return [
            ShardPlace(name, first, last, rows, words, identity == IDENTITY)
            for name, identity, first, last, rows, words in self._db.all("list_shards")
        ]

    def open(self, places: Sequence[ShardPlace]) -> tuple[list[Shard], list[ShardPlace]]:
        """Those shards that can be read, and the others: lost, damaged, of another format, or no Tantivy to read them.

        Open ones stay open until they are replaced.
        """
        names = {place.name for place in places}
        self._open = {name: shard for name, shard in self._open.items() if name in names}
        missing = [place for place in places if not self._opened(place)]
        return [self._open[place.name] for place in places if place.name in self._open], missing

    def unreadable(self) -> list[ShardPlace]:
        """Shards whose turns cannot be searched now."""
        return self.open(self.places())[1]

    def moved(self) -> list[int]:
        """Sessions whose project was learned after a shard was made."""
        return [session for (session,) in self._db.all("list_sessions_moved")]

    def new_name(self) -> str:
        """A name that no shard had before: which database it belongs to, and a number at random."""
        return f"{self._life()}-{secrets.token_hex(6)}"

    def _life(self) -> str:
        """What the names of this database's shards begin with: that of the first, which comes from the file itself, so
        that what a crash leaves of it is known again. Raises OSError."""
        places = self.places()
        if places:
            return _life_of(places[0].name)
        seen = self._db.path.stat()
        return hashlib.blake2b(f"{seen.st_dev}:{seen.st_ino}".encode(), digest_size=8).hexdigest()

    def write(self, name: str, turns: Iterable[ShardTurn]) -> Path:
        """Make the files of a shard; nobody looks into them before the database names it."""
        folder = self.folder / name
        write_shard(folder, turns)
        return folder

    def remove(self, names: Iterable[str]) -> None:
        """Remove the files of shards. Whoever has them open reads on."""
        for name in names:
            self._open.pop(name, None)
            shutil.rmtree(self.folder / name, ignore_errors=True)

    def sweep(self, *, others: bool = False) -> None:
        """Remove the files of shards of this database that it does not name; with ``others`` those of any database."""
        if not self.folder.is_dir():
            return
        names = {place.name for place in self.places()}
        lives = {_life_of(name) for name in names} or {self._life()}
        strays = [path.name for path in self.folder.iterdir() if _NAME.fullmatch(path.name) and path.name not in names]
        self.remove([name for name in strays if others or _life_of(name) in lives])

    def bytes(self) -> int:
        """What the shards take on disk."""
        if not self.folder.is_dir():
            return 0
        return sum(file.stat().st_size for file in self.folder.rglob("*") if file.is_file())

    def _opened(self, place: ShardPlace) -> bool:
        if place.name in self._open:
            return True
        if not place.is_current:
            return False
        try:
            shard = Shard(self.folder / place.name)
        except (OSError, ImportError):
            return False
        if shard.rows != place.rows:
            return False
        self._open[place.name] = shard
        return True


def _life_of(name: str) -> str:
    """The first part of a shard's name: which database it belongs to."""
    return name.partition("-")[0]
