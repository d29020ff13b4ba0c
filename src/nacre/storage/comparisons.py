"""What comparing memories needs: candidates by words, what waits to be compared by meaning, evidence."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from nacre.storage.database import Database, Indexed
from nacre.storage.filters import Clause
from nacre.text.passages import STOP_WORDS, words
from nacre.values.memory import Memory

MOST_ROWS = 2_000
"""Rows that the words looked for may have together: rare words come first, common ones only where memories are few."""

MOST_WORDS = 16


class Comparisons:
    """Reads candidates; keeps what is derived for comparing."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def alike(self, memory: Memory, *, limit: int) -> list[int]:
        """Rows of active memories of the same project that share rare words, a title or a key with a memory."""
        titled = self._db.all(
            "list_memories_titled", project=memory.project, subject=memory.subject, canonical_key=memory.canonical_key,
            limit=limit,
        )  # fmt: skip
        found = dict.fromkeys(row for (row,) in titled)
        telling = self._telling(words(f"{memory.subject} {memory.content}"))
        if telling:
            same = Clause("m.project IS NOT DISTINCT FROM ?", (memory.project,))
            found |= dict.fromkeys(self._db.words.best(Indexed.MEMORIES, telling, same, limit))
        return list(found)

    def _telling(self, said: Sequence[str]) -> list[str]:
        """The rarest words, as many as do not bring too many rows."""
        stems = {word: self._db.stems(word)[:1] for word in dict.fromkeys(said) if word not in STOP_WORDS}
        wanted = sorted({stem[0] for stem in stems.values() if stem})
        counted = self._db.words.frequencies(Indexed.MEMORIES, wanted)
        ranked = sorted((counted.get(stem[0], 0), word) for word, stem in stems.items() if stem)
        telling: list[str] = []
        rows = 0
        for count, word in ranked:
            rows += count
            if telling and (rows > MOST_ROWS or len(telling) == MOST_WORDS):
                break
            if count:
                telling.append(word)
        return telling

    def wait(self, memory_id: str) -> None:
        """A new memory is to be compared by meaning when it has a vector."""
        self._db.run("insert_unsettled", memory=memory_id)

    def settled(self, memory_id: str) -> None:
        """It was compared."""
        self._db.run("delete_unsettled", memory=memory_id)

    def waiting(self, rows: Sequence[int]) -> list[str]:
        """Which memories of some rows wait to be compared, the oldest first."""
        return [memory for (memory,) in self._db.all("list_unsettled", rows=json.dumps(list(rows)))]

    def row_of(self, memory_id: str) -> int | None:
        """The row of a memory."""
        row = self._db.one("find_memory_row", id=memory_id)
        return int(row[0]) if row else None

    def link_alike(self, memory_id: str, near: Mapping[str, float]) -> None:
        """Replace a memory's links of similarity: id → cosine."""
        self._db.run("delete_auto_links", source=memory_id)
        links: list[dict[str, object]] = [
            {"source": memory_id, "target": other, "strength": round(cosine, 4)} for other, cosine in near.items()
        ]
        self._db.run_many("insert_auto_link", links)

    def stated_in(self, session: str, turn: str) -> list[tuple[str, bool]]:
        """What a turn is evidence of: the words of each memory, and whether it is superseded."""
        found = self._db.all("list_stated", session=session)
        return [(text, bool(gone)) for turns, text, gone in found if turn in json.loads(turns)]
