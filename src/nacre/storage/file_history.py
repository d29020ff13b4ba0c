"""What agents did, apart from what was said: the files they touched, and what failed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import msgspec

from nacre.platform.ids import from_ms, to_ms
from nacre.storage.database import Database, Indexed, Words, fits_index
from nacre.storage.filters import deed_clause
from nacre.text.passages import segment
from nacre.values.file_history import Deeds, FileUse
from nacre.values.filters import DeedFilter
from nacre.values.session import Action, Flag, Speaker

_encode = msgspec.json.Encoder().encode
_USES = (Action.READ, Action.EDIT)
_NOISE = Flag.META | Flag.SUMMARY | Flag.INJECTED


class DeedIndex:
    """Reads and writes the index of deeds."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def add(self, done: Sequence[Deeds]) -> None:
        """Index what turns did that are there. Call in the transaction that stores them."""
        uses = [use for deeds in done for use in _uses(deeds)]
        if uses:
            encoded = _encode(uses).decode()
            self._db.run("insert_files", uses=encoded)
            self._db.run("insert_file_uses", uses=encoded)
        self._add_failures(done)

    def index_again(self, done: Sequence[Deeds]) -> None:
        """Add what failed to the full text, for turns that are missing there."""
        self._db.words.drop(Indexed.FAILURES, [deeds.turn for deeds in done])
        self._add_failures(done)

    def _add_failures(self, done: Sequence[Deeds]) -> None:
        failures = [failure for deeds in done if (failure := _failure(deeds))]
        if failures:
            self._db.words.add(Indexed.FAILURES, failures)

    def files_named(self, name: str) -> list[tuple[int, str]]:
        """Files by the last part of their path, in any case: (row, path)."""
        return [(row, path) for row, path in self._db.all("list_files_named", last=name.lower())]

    def all_files(self) -> list[tuple[int, str]]:
        """Every file that was ever touched: (row, path)."""
        return [(row, path) for row, path in self._db.all("list_all_files")]

    def most_changed(self) -> tuple[str, int] | None:
        """A path of the file that most sessions changed, by its name, and how many sessions did."""
        found = self._db.one("find_most_changed_file")
        return (found[0], found[1]) if found else None

    def uses(self, files: Sequence[int], wanted: DeedFilter, *, reads: bool, limit: int) -> list[FileUse]:
        """What was done to some files, the newest first; without ``reads`` only what changed them."""
        found = self._db.all(
            "list_file_uses", files=json.dumps(list(files)), project=wanted.project, tool=wanted.tool,
            since=to_ms(wanted.since), until=to_ms(wanted.until), reads=reads, limit=limit,
        )  # fmt: skip
        return [
            FileUse(file, turn, session, seq, from_ms(time), Action(action))
            for file, turn, session, seq, time, action in found
        ]

    def failures(self, words: Sequence[str], wanted: DeedFilter, *, limit: int) -> list[int]:
        """Turns with calls that failed in words like these, the best first by BM25."""
        return self._db.words.best(Indexed.FAILURES, words, deed_clause(wanted), limit)

    def requests(self, session: int, seq: int, *, by: Speaker, limit: int) -> list[int]:
        """The turns in which somebody asked for something before a place, the latest first."""
        found = self._db.all(
            "list_requests", session=session, seq=seq, speaker=by.value, noise=int(_NOISE), limit=limit
        )
        return [row for (row,) in found]


def plain_path(path: str) -> str:
    """A path as the index holds it: with ``/``, without ``./`` at its beginning."""
    return path.replace("\\", "/").removeprefix("./").rstrip("/") or "/"


def _uses(deeds: Deeds) -> Iterator[tuple[int, str, str, str]]:
    for call in deeds.calls:
        if call.action in _USES and call.outcome != "rejected":
            for path in filter(fits_index, map(plain_path, call.paths)):
                yield deeds.turn, path, path.rsplit("/", 1)[-1].lower(), call.action.value


def _failure(deeds: Deeds) -> Words | None:
    failed = [call for call in deeds.calls if call.failed]
    if not failed:
        return None
    tried = "\n".join(f"{call.name} {call.input}" for call in failed)
    error = "\n".join(call.error or call.outcome or "" for call in failed)
    return Words(deeds.turn, (segment(tried), segment(error)))
