"""Full text on a server: stems as numbers in arrays, which an inverted index finds, and BM25 over what it found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b

import msgspec

from nacre.platform.lazy import load
from nacre.storage.database import Database, Indexed, Words, fits_index
from nacre.storage.filters import Clause

WEIGHTS = {Indexed.MEMORIES: (1.5, 1.0, 1.0), Indexed.TURNS: (1.0, 0.5), Indexed.FAILURES: (0.5, 1.0)}
"""What each column counts: a subject more than what is said of it, what was said more than what was done."""

_MOST_SHOWN = 200
"""Characters of a stem kept beside its number, for who looks for its beginning: an index takes 2,700 bytes."""

_encode = msgspec.json.Encoder().encode


def key_of(tenant: str, kind: Indexed, stem: str) -> int:
    """The number of a stem: 64 bits, signed, which no other tenant or kind shares."""
    digest = blake2b(f"{tenant}\0{kind}\0{stem}".encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


class ServerWords:
    """Implements :class:`~nacre.storage.database.WordIndex`."""

    def __init__(self, database: Database, tenant: str) -> None:
        self._db = database
        self._tenant = tenant

    def add(self, kind: Indexed, rows: Sequence[Words]) -> None:
        """Index rows that are not in it yet."""
        names = self._rows_of_names({name for one in rows for name in one.names.split() if fits_index(name)})
        written, terms, total = [], Counter[str](), 0
        for one in rows:
            counts, length = self._count(kind, one.texts)
            held = sorted((key_of(self._tenant, kind, stem), count) for stem, count in counts.items())
            terms.update(counts.keys())
            total += length
            own = sorted({names[name] for name in one.names.split() if name in names})
            written.append((one.row, [key for key, _ in held], [count for _, count in held], length, own))
        self._db.run("insert_words", kind=kind.value, rows=_told(written))
        told = [(key_of(self._tenant, kind, stem), stem[:_MOST_SHOWN], count) for stem, count in terms.items()]
        self._db.run("count_in_terms", kind=kind.value, terms=_told(told))
        self._db.run("count_in_totals", kind=kind.value, rows=len(rows), words=total)

    def drop(self, kind: Indexed, rows: Sequence[int]) -> None:
        """Take rows out; those that are not in it are left alone."""
        gone, words = self._db.one("delete_words", kind=kind.value, rows=_told(list(rows))) or (0, 0)
        if gone:
            self._db.run("prune_terms", kind=kind.value)
            self._db.run("count_in_totals", kind=kind.value, rows=-gone, words=-words)

    def frequencies(self, kind: Indexed, stems: Sequence[str]) -> dict[str, int]:
        """In how many rows some stems stand; those that stand in none are left out."""
        keys = {key_of(self._tenant, kind, stem): stem for stem in stems}
        found = self._db.all("count_terms_of", kind=kind.value, keys=_told(list(keys)))
        return {keys[key]: rows for key, rows in found if rows > 0}

    def best(self, kind: Indexed, words: Sequence[str], where: Clause, limit: int) -> list[int]:
        """Rows that hold any of some words and that a condition lets through, the best by BM25 first."""
        search = load("nacre.storage.postgres.search:ServerSearch")(self._db, kind)
        return [match.row for match in search.match(search.terms(words), where, limit)]

    def _count(self, kind: Indexed, texts: Sequence[str]) -> tuple[dict[str, float], int]:
        """How often each stem is said, weighted over the columns, and how many words there are."""
        counts: dict[str, float] = {}
        length = 0
        for weight, text in zip(WEIGHTS[kind], texts, strict=True):
            stems = self._db.stems(text)
            length += len(stems)
            for stem in stems:
                counts[stem] = counts.get(stem, 0.0) + weight
        return counts, length

    def _rows_of_names(self, names: set[str]) -> dict[str, int]:
        if not names:
            return {}
        told = _told(sorted(names))
        self._db.run("insert_word_names", names=told)
        return dict(self._db.all("list_word_names", names=told))


def _told(values: Sequence[object]) -> str:
    return _encode(values).decode()
