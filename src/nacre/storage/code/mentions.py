"""Files and symbols that memories name. Derived from their texts, and made again when these change."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nacre.storage.database import Database, in_transaction


@dataclass(frozen=True, slots=True)
class Mention:
    """A name as it is written in a memory. ``manner`` is ``path``, ``marked`` (in backticks), ``fence`` (in a block of
    code) or ``text``; ``key`` is its last part in lower case."""

    key: str
    written: str
    manner: str


class CodeMentions:
    """Reads and writes them."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def unread(self, limit: int) -> list[tuple[str, str, str]]:
        """Memories that nobody looked through yet: id, subject, content."""
        return [(one, subject, content) for one, subject, content in self._db.all("list_unread_mentions", limit=limit)]

    @in_transaction
    def put(self, found: Iterable[tuple[str, Sequence[Mention]]]) -> None:
        """Store what memories name."""
        listed = list(found)
        self._db.run_many(
            "insert_code_mention",
            [
                {"key": one.key, "memory": memory, "written": one.written, "manner": one.manner}
                for memory, mentions in listed
                for one in mentions
            ],
        )
        self._db.run_many("mark_mentions_read", [{"memory": memory} for memory, _ in listed])

    def ending(self, keys: Iterable[str], project: str, limit: int) -> list[tuple[Mention, str]]:
        """Names that end in one of these, with the memories that hold them, of a project or of none."""
        found = self._db.all(
            "list_mentions_of_keys", keys=json.dumps(list(keys)), project=project, limit=limit
        )  # fmt: skip
        return [(Mention(key, written, manner), memory) for key, written, manner, memory in found]

    def within(self, memories: Sequence[str]) -> dict[str, list[Mention]]:
        """The names in some memories."""
        found: dict[str, list[Mention]] = defaultdict(list)
        for memory, written, manner in self._db.all("list_mentions_in", memories=json.dumps(list(memories))):
            found[memory].append(Mention(written.lower(), written, manner))
        return found

    def with_paths(self, project: str | None, limit: int) -> list[str]:
        """Memories that name files and may go out of date, the latest first."""
        return [memory for (memory,) in self._db.all("list_memories_with_paths", project=project, limit=limit)]
