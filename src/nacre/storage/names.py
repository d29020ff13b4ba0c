"""What memories are called, and the links that their bodies make by these names."""

from __future__ import annotations

import json
from collections.abc import Collection

from nacre.storage.database import Database, fits_index
from nacre.text.wikilinks import aliases_in, called, mentioned
from nacre.values.memory import Memory

ALIASES = "aliases"
"""The front-matter key for other names, as Obsidian has it."""


class Names:
    """Reads and writes ``memory_names``, ``mentions``, and the links of origin ``body``."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def of(self, memory_id: str) -> set[str]:
        """The keys of what a memory is called."""
        return {name for (name,) in self._db.all("list_memory_names", memory=memory_id)}

    def put(self, memory: Memory, former: Collection[str] = ()) -> None:
        """Note what a memory is called and what it links, and find the links anew that this changes.

        ``former``: what it was called before, where that is not known here any more. Call inside the transaction that
        writes its row or names its file.
        """
        former = {*former, *self.of(memory.id)}
        self._db.run("delete_memory_names", memory=memory.id)
        self._db.run("delete_mentions", source=memory.id)
        row = self._db.one("find_path_of", memory=memory.id)
        names = called(memory.subject, row[0] if row else None, aliases_in(memory.extra.get(ALIASES)))
        self._db.run_many(
            "insert_memory_name",
            [
                {"name": name, "memory": memory.id, "written": written, "is_alias": int(is_alias)}
                for name, (written, is_alias) in names.items()
                if fits_index(name)
            ],
        )
        links = [name for name in mentioned(memory.content) if fits_index(name)]
        self._db.run_many("insert_mention", [{"source": memory.id, "name": name} for name in links])
        if not links:
            self._db.run("delete_body_links", sources=json.dumps([memory.id]))
        self.resolve({*former, *names}, *([memory.id] if links else []))

    def resolve(self, names: Collection[str], *sources: str) -> None:
        """Find the links anew of whoever uses some names, and of some sources."""
        using = (source for (source,) in self._db.all("list_mentioning", names=json.dumps([*names])))
        if found := [*dict.fromkeys((*sources, *using))]:
            self._db.run("delete_body_links", sources=json.dumps(found))
            self._db.run("insert_body_links", sources=json.dumps(found))

    def lost(self, memory_id: str, kept: Collection[str]) -> list[str]:
        """Names, as they were written, by which others link a memory, and which are not among the keys it keeps."""
        return [
            written for (written,) in self._db.all("list_lost_memory_names", memory=memory_id, kept=json.dumps([*kept]))
        ]
