"""Vectors: sign bits of every passage for a quick scan, int8 components for exact cosines.

A passage is kept once, by the hash of its text, however many turns say it. The scan compares a bit a component with
XOR and popcount, and the nearest are compared exactly: a million passages take about six milliseconds, without an
index structure to build or to lose. Bits are held word by word, the first 64 of all passages, then the next, and
compared in portions that stay in the processor's cache.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from nacre.errors import EmbedderUnavailable, StoreUnusable
from nacre.platform.ids import to_ms
from nacre.platform.lazy import load
from nacre.storage.database import Database
from nacre.storage.search import quantised
from nacre.storage.search.quantised import Kept, Matrix, Outward, Walk
from nacre.storage.search.selection import Admission
from nacre.storage.search.vector_tables import VectorTables

_NEAREST_BY_BITS = 600
_WIDENED = 4
_FARTHEST = 40_000
"""No more passages than this are looked at for turns that a filter lets through."""
_FEW_TURNS = 5_000
"""So many turns are compared one by one: quicker than to look for them among all, the nearest first."""
_DROPS = ("drop_embedding_values", "drop_vectors", "drop_turn_passages", "drop_bits", "drop_memory_vectors")
_EXCHANGES = (
    "exchange_passages", "exchange_turn_passages", "exchange_bits", "exchange_memory_vectors",
    "exchange_embedding_values",
)  # fmt: skip
_BUNDLED = "minilm"
"""What was set where vectors were made before it was noted."""


@dataclass(frozen=True, slots=True)
class Near:
    """A row and its cosine to the query."""

    row: int
    cosine: float


class Vectors:
    """Reads and writes vectors. Turns from before ``since`` get none, where a time is given.

    ``other`` are those of another model, being made to replace the ones in use. No search sees them.

    Keeps two things in memory between searches: the bits of passages, which only ever grow, and the vectors of
    memories, read again when some were added. What was dropped since may linger in the latter; row numbers are never
    given twice, so that it belongs to no memory.
    """

    def __init__(self, database: Database, since: datetime | None = None, *, other: bool = False) -> None:
        self._in_use = database
        self._db = VectorTables(database, other=other)
        self._since = to_ms(since)
        self._held: tuple[str | None, str | None] = (None, None)
        self._bits: NDArray[np.uint64] = np.empty((0, 0), np.uint64)
        self._next = 1
        self._edition: tuple[str | None, int] = (None, -1)
        self._complete: object = None
        self._memories: NDArray[np.int64] = np.empty(0, np.int64)
        self._first_pieces: NDArray[np.int64] = np.empty(0, np.int64)
        self._pieces: Matrix = np.empty((0, 0), np.float32)

    def kept(self) -> Kept:
        """What it keeps in memory, for another connection to the same database to begin with."""
        return Kept(self._held, self._bits, self._next)

    def begin_with(self, kept: Kept) -> None:
        """Take what another connection to the same database keeps, where that is more, instead of loading it."""
        if not self._bits.size or (kept.held == self._held and kept.next > self._next):
            self._held, self._bits, self._next = kept.held, kept.bits, kept.next

    # What is made

    def model(self) -> str | None:
        """The name of the model that made the vectors; ``None`` when there are none."""
        return self._value("model")

    def setting(self) -> str | None:
        """What ``embedding.model`` was when the vectors were made: by it their model is found again."""
        return None if self.model() is None else self._value("setting") or _BUNDLED

    def seen(self) -> tuple[float, float] | None:
        """How their model sees the probes (see :mod:`nacre.embed.calibration`), where that was noted."""
        noted = self._value("seen")
        if noted is None:
            return None
        chance, restated = json.loads(noted)
        return float(chance), float(restated)

    def note_seen(self, seen: tuple[float, float]) -> None:
        """Note how their model sees the probes."""
        with self._db.transaction():
            self._set_value("seen", json.dumps(seen))

    def dimensions(self) -> int:
        """Components of a vector; 0 while there is none."""
        row = self._db.one("one_size")
        return int(row[0]) if row else 0

    def size(self) -> int:
        """Bytes of all of them."""
        return int((self._db.one("size_of_vectors") or (0,))[0])

    def begin(self, model: str, setting: str | None = None) -> None:
        """Accept vectors of a model, which ``setting`` names. Vectors of another one are dropped first.

        Their name goes before them, table by table, so that others can write in between; after a crash it is done anew.
        """
        if self.model() == model:
            return
        edition = self.drop()
        with self._db.transaction():
            self._set_value("model", model)
            self._set_value("setting", setting or _BUNDLED)
            self._set_value("edition", str(edition + 1))
            self._set_value("begun", str(edition + 1))

    def drop(self) -> int:
        """Drop all of them; returns their last edition."""
        edition = self._count_of("edition")
        for name in _DROPS:
            self._db.run(name)
        return edition

    def exchange(self) -> bool:
        """Bring those of the other model into use in one step, if none is missing; then drop those that were.

        For ``other``. Returns whether it was done: where texts came meanwhile, their vectors are made first.
        """
        with self._db.transaction():
            if self.model() is None or any(self.missing()):
                return False
            for name in _EXCHANGES:
                self._db.run(name)
        self.drop()
        return True

    def reach_back(self, days: int) -> None:
        """Turns of so many days get vectors (0: all); where that is more than before, old ones are looked at again."""
        before = self._count_of("days")
        if days == before:
            return
        with self._db.transaction():
            self._set_value("days", str(days))
            if before and (not days or days > before):
                self._set_value("through", "0")

    def pass_over(self) -> None:
        """Where no turn waits for a vector, none of those there are is looked at again."""
        with self._db.transaction():
            if not self.turns_to_embed(1):
                newest = self._db.one("last_turn") or (0,)
                self._set_value("through", str(max(int(newest[0]), self._count_of("through"))))

    def turns_to_embed(self, limit: int) -> list[tuple[int, str]]:
        """The next turns without vectors: (row, text)."""
        return self.turns_after(self._count_of("through"), limit)

    def memories_to_embed(self, limit: int) -> list[tuple[int, str, str]]:
        """The newest memories without vectors, by row: (row, subject, content)."""
        found = self._db.all("list_memories_to_embed", limit=limit)
        return sorted((row, subject, content) for row, subject, content in found)

    def are_missing(self) -> bool:
        """Whether a turn or a memory has no vector yet. Where none had, that is looked up once until somebody wrote."""
        state = self._in_use.state()
        if state is None or state != self._complete:
            if self.turns_to_embed(1) or self.memories_to_embed(1):
                return True
            self._complete = state
        return False

    def turns_after(self, row: int, limit: int) -> list[tuple[int, str]]:
        """The turns beyond a row that get vectors: (row, text)."""
        found = self._db.all("list_turns_to_embed", after=row, since=self._since, limit=limit)
        return [(turn, text) for turn, text in found]

    def memory_texts(self) -> list[tuple[str, str]]:
        """All memories that get vectors: (subject, content)."""
        return [(subject, content) for subject, content in self._db.all("list_memory_texts")]

    def missing(self) -> tuple[int, int]:
        """How many turns and memories have no vectors yet."""
        turns = self._db.one("count_turns_to_embed", after=self._count_of("through"), since=self._since) or (0,)
        memories = self._db.one("count_memories_to_embed") or (0,)
        return int(turns[0]), int(memories[0])

    def known(self, hashes: Sequence[bytes]) -> dict[bytes, int]:
        """Passages that are there already, by the hash of their text."""
        found = self._db.all("find_passages", hashes=json.dumps([digest.hex() for digest in hashes]))
        return {digest: row for row, digest in found}

    def take_over(self, earlier: Vectors, hashes: Sequence[bytes]) -> None:
        """Take the passages of some texts from a database that this one is to replace, if the same model made them.

        Where that database is damaged they are not there.
        """
        try:
            if earlier.model() != self.model():
                return
            found = earlier._db.all("find_vectors_by_hash", hashes=json.dumps([digest.hex() for digest in hashes]))
        except StoreUnusable:
            return
        if found:
            with self._db.transaction():
                self._add_passages(
                    [digest for digest, _ in found], quantised.from_int8([vector for _, vector in found])
                )

    def add_turn_passages(
        self, said: Mapping[int, Sequence[bytes]], fresh: Sequence[bytes], vectors: Matrix, *, through: int
    ) -> None:
        """Add the passages of some turns.

        ``said`` maps turn rows to passage hashes; ``fresh`` are the hashes that are new, ``vectors`` their unit
        vectors (one row each); ``through`` is the last turn row done. Turns that are gone by now are left out.
        Raises EmbedderUnavailable for vectors of another size than those that are there.
        """
        with self._db.transaction():
            self._check_size(vectors)
            numbers = self.known([digest for digests in said.values() for digest in digests])
            missing = [at for at, digest in enumerate(fresh) if digest not in numbers]
            if missing:
                numbers |= self._add_passages([fresh[at] for at in missing], vectors[missing])
            pairs: list[dict[str, object]] = [
                {"passage": numbers[digest], "turn": turn} for turn, digests in said.items() for digest in digests
            ]
            self._db.run_many("insert_turn_passage", pairs)
            self._set_value("through", str(max(through, self._count_of("through"))))

    def add_memory_vectors(self, made: Mapping[int, Matrix]) -> None:
        """Add the vectors of memories: row → one unit vector a piece of its text.

        A memory that was edited or removed since its words were read has another row or none: it is left out.
        Raises EmbedderUnavailable for vectors of another size than those that are there.
        """
        rows: list[dict[str, object]] = [
            {"memory": memory, "ordinal": ordinal, "vector": vector.tobytes()}
            for memory, vectors in made.items()
            for ordinal, vector in enumerate(quantised.to_int8(vectors))
        ]
        with self._db.transaction():
            for vectors in made.values():
                self._check_size(vectors)
            self._db.run_many("insert_memory_vector", rows)
            self._set_value("edition", str(self._count_of("edition") + 1))

    # What is found

    def nearest_turns(self, query: Matrix, *, limit: int, admitted: Admission | None = None) -> list[Near]:
        """The turns whose best passage is nearest to a unit vector, by cosine, the nearest first."""
        few = admitted.few(_FEW_TURNS) if admitted else None
        if few is not None:
            return _sorted(self.cosines_of_turns(query, few))[:limit]
        nearest = self._outward(quantised.to_bits(quantised.to_int8(query[None, :]))[0])
        if admitted is None:
            return self._rank(query, nearest.next(_NEAREST_BY_BITS), None)[:limit]
        found: list[Near] = []
        portion = _NEAREST_BY_BITS
        while len(found) < limit and portion < _FARTHEST and (rows := nearest.next(portion)):
            found += self._rank(query, rows, admitted)
            portion *= _WIDENED
        return sorted(found, key=lambda near: (-near.cosine, near.row))[:limit]

    def cosines_of_turns(self, query: Matrix, turns: Sequence[int]) -> dict[int, float]:
        """The cosine of each turn's best passage; turns without vectors are left out."""
        found = self._db.all("find_vectors_of_turns", rows=json.dumps(list(turns)))
        best: dict[int, float] = {}
        if found:
            cosines = quantised.cosines(query, [vector for _, vector in found])
            for (turn, _), cosine in zip(found, cosines, strict=True):
                best[turn] = max(best.get(turn, -1.0), float(cosine))
        return best

    def memory_cosines(self, query: Matrix) -> dict[int, float]:
        """The cosine of every memory's best piece."""
        self._load_memories()
        if not len(self._memories):
            return {}
        best = np.maximum.reduceat(self._pieces @ query, self._first_pieces)
        return dict(zip(self._memories.tolist(), best.tolist(), strict=True))

    def near_memory(self, row: int, *, limit: int) -> list[Near]:
        """The memories whose best piece is nearest to any piece of a memory, the nearest first."""
        self._load_memories()
        at = int(np.searchsorted(self._memories, row))
        if at >= len(self._memories) or self._memories[at] != row:
            return []
        ends = np.append(self._first_pieces[1:], len(self._pieces))
        own = self._pieces[self._first_pieces[at] : ends[at]]
        best = np.maximum.reduceat((self._pieces @ own.T).max(axis=1), self._first_pieces)
        best[at] = -1.0
        nearest = np.argsort(-best, kind="stable")[:limit]
        return [Near(int(self._memories[one]), float(best[one])) for one in nearest if best[one] > 0]

    def near_pairs(self, rows: Sequence[int], *, least: float) -> list[tuple[int, int, float]]:
        """Pairs of these memories whose best pieces are at least so near, the nearest first."""
        self._load_memories()
        return quantised.near_pairs(self._memories, self._first_pieces, self._pieces, rows, least)

    def count(self) -> int:
        """Passages with a vector."""
        return int((self._db.one("count_passages") or (0,))[0])

    def count_memories(self) -> int:
        """Memories with a vector."""
        return int((self._db.one("count_memory_vectors") or (0,))[0])

    def of(self, model: str) -> VectorsOf:
        """The same, to be searched as long as they are those of a model."""
        return VectorsOf(self, model, self._db.reading)

    def _check_size(self, vectors: Matrix) -> None:
        present = self.dimensions()
        if present and len(vectors) and vectors.shape[1] != present:
            raise EmbedderUnavailable(
                f"{self.model()} gives vectors of {vectors.shape[1]} numbers now, and the index has {present}",
                hint="another model answers by that name: nacre doctor --deep --repair drops its vectors",
            )

    def _add_passages(self, digests: Sequence[bytes], vectors: Matrix) -> dict[bytes, int]:
        first = int((self._db.one("next_passage") or (1,))[0])
        packed = quantised.to_int8(vectors)
        rows: list[dict[str, object]] = [
            {"row": first + at, "hash": digest, "vector": packed[at].tobytes()} for at, digest in enumerate(digests)
        ]
        self._db.run_many("insert_passage", rows)
        self._db.run("insert_bits", first=first, count=len(rows), bits=quantised.to_bits(packed).tobytes())
        return {digest: first + at for at, digest in enumerate(digests)}

    def _rank(self, query: Matrix, rows: list[int], admitted: Admission | None) -> list[Near]:
        encoded = json.dumps(rows)
        found = self._db.all("find_vectors", rows=encoded)
        if not found:
            return []
        cosines = dict(
            zip((row for row, _ in found), quantised.cosines(query, [vector for _, vector in found]), strict=True)
        )
        best: dict[int, float] = {}
        said = self._db.all("find_turns_of_passages", rows=encoded)
        among = admitted.among({turn for _, turn in said}) if admitted else None
        for passage, turn in said:
            if passage in cosines and (among is None or turn in among):
                best[turn] = max(best.get(turn, -1.0), float(cosines[passage]))
        return _sorted(best)

    def _outward(self, bits: NDArray[np.uint64]) -> Walk:
        """Passages from the nearest on: a server compares them itself."""
        if self._in_use.is_server:
            walk: Walk = load("nacre.storage.postgres.signs:ServerWalk")(self._in_use, bits)
            return walk
        self._load_bits()
        return Outward(quantised.distances(self._bits, bits) if self._bits.size else np.empty(0, np.uint16))

    def _load_bits(self) -> None:
        held = (self.model(), self._value("begun"))
        if held != self._held:  # others were made, perhaps by another process
            self._bits, self._next, self._held = np.empty((0, 0), np.uint64), 1, held
        runs = self._db.all("list_bits", first=self._next)
        if not runs:
            return
        words = len(runs[0][2]) // runs[0][1] // 8
        fresh = np.frombuffer(b"".join(bits for _, _, bits in runs), np.uint64).reshape(-1, words).T
        self._bits = np.concatenate([self._bits, fresh], axis=1) if self._bits.size else np.ascontiguousarray(fresh)
        self._next = self._bits.shape[1] + 1

    def _load_memories(self) -> None:
        edition = (self.model(), self._count_of("edition"))
        if edition == self._edition:
            return
        found = self._db.all("list_memory_vectors")
        owners = np.array([memory for memory, _ in found], np.int64)
        self._memories, self._first_pieces = np.unique(owners, return_index=True)
        self._pieces = quantised.from_int8([vector for _, vector in found]) if found else np.empty((0, 0), np.float32)
        self._edition = edition

    def _count_of(self, key: str) -> int:
        return int(self._value(key) or 0)

    def _value(self, key: str) -> str | None:
        row = self._db.one("get_embedding_value", key=key)
        return row[0] if row else None

    def _set_value(self, key: str, value: str) -> None:
        self._db.run("set_embedding_value", key=key, value=value)


@dataclass(frozen=True, slots=True)
class VectorsOf:
    """Searches vectors as long as they are those of one model: a question's vector meets no others.

    Where those of another model came into use since the question was embedded, nothing is found.
    """

    _vectors: Vectors
    name: str
    _reading: Callable[[], AbstractContextManager[None]]

    def model(self) -> str:
        """The model's name."""
        return self.name

    def seen(self) -> tuple[float, float] | None:
        """See :meth:`Vectors.seen`."""
        return self._vectors.seen()

    def nearest_turns(self, query: Matrix, *, limit: int, admitted: Admission | None = None) -> list[Near]:
        """See :meth:`Vectors.nearest_turns`."""
        with self._reading():
            return self._vectors.nearest_turns(query, limit=limit, admitted=admitted) if self._is_there() else []

    def cosines_of_turns(self, query: Matrix, turns: Sequence[int]) -> dict[int, float]:
        """See :meth:`Vectors.cosines_of_turns`."""
        with self._reading():
            return self._vectors.cosines_of_turns(query, turns) if self._is_there() else {}

    def memory_cosines(self, query: Matrix) -> dict[int, float]:
        """See :meth:`Vectors.memory_cosines`."""
        with self._reading():
            return self._vectors.memory_cosines(query) if self._is_there() else {}

    def _is_there(self) -> bool:
        return self._vectors.model() == self.name


def _sorted(cosines: Mapping[int, float]) -> list[Near]:
    near = (Near(row, cosine) for row, cosine in cosines.items())
    return sorted(near, key=lambda item: (-item.cosine, item.row))
