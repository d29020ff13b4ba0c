"""Documents of a vault as rows: every version stays."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

from nacre.platform.fast_dataclass import dataclass
from nacre.platform.ids import Clock, to_ms
from nacre.storage.database import Database, in_transaction


@dataclass(frozen=True, slots=True)
class Head:
    """The present version of a document: a number that only grows, its bytes, milliseconds since 1970."""

    path: str
    version: int
    size: int
    written: int


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
        rows: list[dict[str, object]] = [
            {"hash": blake2b(line, digest_size=16).digest(), "line": line} for line in lines
        ]
        self._db.run_many("insert_ledger_line", rows)
        return int((self._db.one("size_of_ledger") or (0,))[0])

    def ledger(self) -> bytes:
        """All lines of the ledger."""
        return b"".join(bytes(line) + b"\n" for (line,) in self._db.all("list_ledger_lines"))

    def _now(self) -> int:
        return to_ms(self._clock()) or 0
