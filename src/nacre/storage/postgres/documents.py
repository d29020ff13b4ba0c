"""Documents of a vault as rows: every version stays, unless it is forgotten: then its number stays, without path and
bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from nacre.platform.ids import Clock, to_ms
from nacre.storage.database import Database, in_transaction

_STEP = 500


@dataclass(frozen=True, slots=True)
class Head:
    """The present version of a document: a number that only grows, its bytes, milliseconds since 1970."""

    path: str
    version: int
    size: int
    written: int


@dataclass(frozen=True, slots=True)
class Change:
    """A document got another version; its present one, ``None`` where it is there no more."""

    path: str
    version: int
    present: int | None
    size: int


class Documents:
    """Reads and writes ``documents``, ``document_versions`` and ``ledger_lines``."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._db = database
        self._clock = clock

    def read(self, path: str) -> bytes | None:
        """What a document holds; ``None`` where there is none."""
        row = self._db.one("read_document", path=path)
        return bytes(row[0]) if row else None

    def head(self, path: str) -> Head | None:
        """The present version of a document."""
        row = self._db.one("find_document", path=path)
        return Head(path, *row) if row else None

    def heads(self) -> list[Head]:
        """Those of all documents, by their paths."""
        return [Head(*row) for row in self._db.all("list_documents")]

    def changes(self, since: int) -> list[Change]:
        """What was written and removed after a version; nothing of what was forgotten."""
        return [Change(*row) for row in self._db.all("list_changes", since=since)]

    def count(self) -> int:
        """How many documents there are."""
        return int((self._db.one("count_documents") or (0,))[0])

    def state(self) -> object:
        """A value that is another one when anybody has written meanwhile; ``None`` within a transaction."""
        return self._db.state()

    def versions(self, path: str) -> list[tuple[int, bytes | None, int]]:
        """Every version of a document, the first one first: number, what it held, when it was written."""
        return [
            (version, data, written) for version, data, written in self._db.all("list_document_versions", path=path)
        ]

    @in_transaction
    def write(self, path: str, data: bytes) -> None:
        """A document holds this from now on."""
        (version,) = self._db.one("insert_document_version", path=path, data=data, written=self._now()) or (0,)
        self._db.run("save_document", path=path, version=version, size=len(data))

    @in_transaction
    def remove(self, path: str) -> None:
        """A document is there no more; nothing happens where there is none."""
        if self._db.run("delete_document", path=path):
            self._db.one("insert_document_version", path=path, data=None, written=self._now())

    @in_transaction
    def append(self, lines: Iterable[bytes]) -> int:
        """Append lines to the ledger that are not there yet; returns the bytes of all."""
        rows: list[dict[str, object]] = [{"hash": _digest(line), "line": line} for line in lines]
        self._db.run_many("insert_ledger_line", rows)
        return int((self._db.one("size_of_ledger") or (0,))[0])

    def ledger(self) -> bytes:
        """All lines of the ledger."""
        return b"".join(bytes(line) + b"\n" for _, line in self._db.all("list_ledger_lines"))

    def ledger_lines(self) -> int:
        """The number of the ledger's last line; it grows with each."""
        return int((self._db.one("last_ledger_line") or (0,))[0])

    @in_transaction
    def reword(self, lines: Sequence[bytes]) -> None:
        """Some lines of the ledger say less from now on; ``lines`` are all of them."""
        for (number, line), wanted in zip(self._db.all("list_ledger_lines"), lines, strict=True):
            if bytes(line) != wanted and not self._db.run(
                "update_ledger_line", number=number, hash=_digest(wanted), line=wanted
            ):
                self._db.run("delete_ledger_line", number=number)

    @in_transaction
    def forget(self, path: str) -> None:
        """Remove a document with all its versions."""
        self._db.run("delete_document", path=path)
        self._db.run("blank_versions_of", path=path)

    @in_transaction
    def keep_present(self, path: str) -> None:
        """Delete what a page said before."""
        self._db.run("delete_former_versions", path=path)

    def former(self) -> Iterator[tuple[int, str, bytes]]:
        """What documents said before, read in pieces: number, path, bytes."""
        after = 0
        while found := self._db.all("list_former_versions", after=after, limit=_STEP):
            yield from ((version, path, bytes(data)) for version, path, data in found)
            after = found[-1][0]

    def forget_former(self, tells: Callable[[str, bytes], bool]) -> None:
        """Forget former versions that tell something, by path or bytes."""
        told = [version for version, path, data in self.former() if tells(path, data)]
        with self._db.transaction():
            self._db.run_many("blank_version", [{"version": version} for version in told])
            self._db.run("blank_removals")

    def _now(self) -> int:
        return to_ms(self._clock()) or 0


def _digest(line: bytes) -> bytes:
    return blake2b(line, digest_size=16).digest()
