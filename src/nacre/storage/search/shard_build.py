"""What making shards reads and writes in the database."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence

import msgspec

from nacre.storage.database import Indexed
from nacre.storage.search.shard_set import ShardPlace
from nacre.storage.search.shards import ShardTurn
from nacre.storage.search.word_counts import pack
from nacre.storage.sqlite.database import FileDatabase
from nacre.storage.turn_rows import did_of, stored_calls
from nacre.text.passages import identifiers, segment

_BATCH = 500
_NAMES_CHARACTERS = 8000
"""So much of a turn's identifiers is searched for parts, as in the database."""


class Sharding:
    """Reads the turns that become shards, and takes their text out of the database."""

    def __init__(self, database: FileDatabase) -> None:
        self._db = database

    def is_waiting(self, turns: int) -> bool:
        """Whether the full text of more turns than this lies in the database."""
        found = self._db.one("count_waiting_for_shard", limit=turns + 1)
        return found is not None and found[0] > turns

    def ranges(self, after: int, largest: int) -> list[tuple[int, int]]:
        """The rows of all turns beyond one, in runs of at most so many numbers."""
        newest = int((self._db.one("last_turn") or (0,))[0])
        found: list[tuple[int, int]] = []
        while after < newest:
            first = (self._db.one("first_turn_after", row=after) or (None,))[0]
            if first is None:
                break
            after = min(newest, int(first) + largest - 1)
            found.append((int(first), after))
        return found

    def count(self, ranges: Sequence[tuple[int, int]]) -> int:
        """How many numbers are in some ranges: about as many turns."""
        return sum(last - first + 1 for first, last in ranges)

    def present(self, place: ShardPlace) -> int:
        """How many turns of a shard are still there."""
        return int((self._db.one("count_sharded", first=place.first, last=place.last) or (0,))[0])

    def turns(self, first: int, last: int, told: Callable[[int], None]) -> Iterator[ShardTurn]:
        """The turns of a range as a shard wants them; notes on the way what they hold, in small transactions."""
        while first <= last:
            rows = self._db.all("list_turns_to_shard", first=first, last=last, limit=_BATCH)
            if not rows:
                return
            packed: list[tuple[int, int, int, str]] = []
            names: dict[str, None] = {}
            batch: list[ShardTurn] = []
            for row, session, seq, text, tools, project, tool, speaker, trust, time in rows:
                did = did_of(stored_calls(tools))
                said, done = self._db.stems(segment(text)), self._db.stems(segment(did))
                own = _names(text, did)
                packed.append((row, session, seq, pack(said, done).hex()))
                names.update(dict.fromkeys(own))
                batch.append(ShardTurn(row, session, [*said, *done], own, project, tool, speaker, trust, time))
            self._note(packed, list(names))
            yield from batch
            told(len(rows))
            first = rows[-1][0] + 1

    def forget_text_in_shards(self) -> None:
        """Take turns out of the database's full text that shards have: at once where that is all, else in portions."""
        while rows := [row for (row,) in self._db.all("list_text_in_shards", limit=_BATCH)]:
            with self._db.transaction():
                if not self._db.one("find_text_in_no_shard"):
                    self._db.run("empty_turns_fts")
                    self._db.run("empty_turns_parts")
                    return
                self._db.words.drop(Indexed.TURNS, rows)

    def take_back(self, place: ShardPlace, index: Callable[[Sequence[int]], None]) -> None:
        """Without Tantivy no shard is made anew: its turns go back into the database's full text."""
        rows = [row for (row,) in self._db.all("list_rows_between", first=place.first, last=place.last)]
        with self._db.transaction():
            self._db.run("delete_shard", shard=place.name)
            index(rows)

    def drop_names(self, is_held: Callable[[str], bool]) -> None:
        """Forget identifiers that no turn has any more."""
        after = 0
        while found := self._db.all("list_names", after=after, limit=_BATCH):
            after = int(found[-1][0])
            gone: list[dict[str, object]] = [{"row": row} for row, name in found if not is_held(name)]
            if gone:
                with self._db.transaction():
                    self._db.run_many("unindex_name", gone)
                    self._db.run_many("delete_name", gone)

    def _note(self, packed: Sequence[tuple[int, int, int, str]], names: Sequence[str]) -> None:
        with self._db.transaction():
            self._db.run("insert_turn_words", turns=msgspec.json.encode(packed).decode())
            known = int((self._db.one("last_name") or (0,))[0])
            self._db.run("insert_names", names=json.dumps(names))
            self._db.run("index_names", after=known)


def _names(text: str, did: str) -> list[str]:
    """Identifiers as a shard has them: in lower case, without spaces, each once."""
    found: dict[str, None] = {}
    left = _NAMES_CHARACTERS
    for name in identifiers(f"{text}\n{did}"):
        left -= len(name) + 1
        if left < 0:
            break
        found["".join(name.lower().split())] = None
    return list(found)
