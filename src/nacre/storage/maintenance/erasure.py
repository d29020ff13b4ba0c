"""Delete what was forgotten from every table, and the bytes of it from the file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from nacre.platform.ids import to_ms
from nacre.storage.database import Database, Indexed, in_transaction
from nacre.storage.sqlite.queries import about_other
from nacre.storage.turn_rows import stored_calls
from nacre.values.forgetting import SessionPlace, TurnPlace, TurnText

_TURNS_A_TRANSACTION = 60
_STEP = 5000
_MERGES = ("merge_turns_fts", "merge_turns_parts", "merge_failures_fts", "merge_memories_fts", "merge_memories_parts")
_PAGES_A_MERGE = 100
_OF_MEMORY = (
    "erase_links", "erase_usage", "erase_uses", "erase_co_recall", "erase_reviews", "erase_unsettled",
    "delete_claims_waiting", "erase_claimless", "erase_conflicts", "erase_intents",
    "erase_operations", "erase_touched",
)  # fmt: skip


class Erasing:
    """What forgetting reads and deletes."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def sessions(self) -> list[SessionPlace]:
        """Every session."""
        return [SessionPlace(*row) for row in self._db.all("list_session_places")]

    def turn_places(self) -> Iterator[TurnPlace]:
        """Every turn, read in pieces."""
        after = 0
        while found := self._db.all("list_turn_places", after=after, limit=_STEP):
            yield from (TurnPlace(*row) for row in found)
            after = int(found[-1][0])

    def places_of(self, rows: Sequence[int]) -> list[TurnPlace]:
        """Some turns by row."""
        return [TurnPlace(*row) for row in self._db.all("list_turn_keys", rows=json.dumps(list(rows)))]

    def places_in(self, session: int) -> list[TurnPlace]:
        """The turns of a session."""
        return [TurnPlace(*row) for row in self._db.all("list_turn_keys_of_session", session=session)]

    def turn_texts(self) -> Iterator[TurnText]:
        """What every turn says, read in pieces."""
        after = 0
        while found := self._db.all("list_turn_texts", after=after, limit=_STEP):
            for row, session, text, tools, author in found:
                yield TurnText(row, session, text, stored_calls(tools), author)
            after = int(found[-1][0])

    def turns_before(self, moment: datetime, projects: Sequence[str] | None) -> list[tuple[int, int]]:
        """Turns said before a time, of some projects or of all: (row, session row)."""
        names = json.dumps(list(projects)) if projects is not None else None
        return [
            (row, session) for row, session in self._db.all("list_turns_before", projects=names, before=to_ms(moment))
        ]

    def linking(self, memory_ids: Sequence[str]) -> list[str]:
        """Memories that name some others."""
        return [memory for (memory,) in self._db.all("list_linking", ids=json.dumps(list(memory_ids)))]

    def alike(self, memory_ids: Sequence[str]) -> list[str]:
        """Memories, in any state, that say the same in the same words; with those that were asked about."""
        return [memory for (memory,) in self._db.all("list_memories_alike", ids=json.dumps(list(memory_ids)))]

    def delete_turns(self, session: int, rows: Sequence[int]) -> None:
        """Delete turns of a session with their full text, a few hundred a transaction: others can write in between.

        The session is brought up to those that are left each time: after a crash nothing would tell that it was not.
        """
        for start in range(0, len(rows), _TURNS_A_TRANSACTION):
            portion = rows[start : start + _TURNS_A_TRANSACTION]
            with self._db.transaction():
                self._db.words.drop(Indexed.TURNS, portion)
                self._db.run_many("delete_turn", [{"row": row} for row in portion])
                self._db.run_many("limit_extracted", [{"row": session}])
                self._db.run("refresh_session", rows=json.dumps([session]))

    def delete_sessions(self, rows: Sequence[int]) -> None:
        """Delete sessions whose turns are gone."""
        with self._db.transaction():
            self._db.run_many("delete_session", [{"row": row} for row in rows])

    def clear_titles(self, rows: Sequence[int]) -> None:
        """Sessions lose their titles."""
        with self._db.transaction():
            self._db.run_many("clear_title", [{"row": row} for row in rows])

    def delete_cursor(self, path: str) -> None:
        """The file is read from its beginning next time."""
        self._db.run("delete_cursor", path=path)

    def returned(self) -> set[str]:
        """The runs that forgot what is there again: a memory, or the session of one."""
        return {run for (run,) in self._db.all("list_runs_returned")}

    def delete_held_cursors(self) -> None:
        """Files that something was left out of are read again."""
        self._db.run("delete_cursors_at_beginning")

    @in_transaction
    def delete_traces(self, memory_id: str) -> None:
        """Delete what is kept about a memory beside its own row."""
        for statement in _OF_MEMORY:
            self._db.run(statement, id=memory_id)

    @in_transaction
    def clear_journal(self, quotes: Callable[[str], object]) -> None:
        """Take from the journal whatever quotes a text: what was written cannot be undone then."""
        texts = self._db.all("list_journal_texts")
        written = [seq for seq, *said in texts if any(map(quotes, said))]
        operations = self._db.all("list_operation_texts")
        told = [operation for operation, *said in operations if any(map(quotes, said))]
        paths = [path for path, *said in self._db.all("list_touched_paths") if any(map(quotes, (path, *said)))]
        self._db.run_many("delete_intent_for_good", [{"seq": seq} for seq in written])
        self._db.run_many("erase_operation_words", [{"id": operation} for operation in told])
        self._db.run_many("delete_touched_path", [{"path": path} for path in paths])

    def blank_passages(self) -> int:
        """Take hash, vector and bits of passages that nobody says any more; returns how many.

        Those of another model, which are in the making, go as those in use do.
        """
        return self._blank_all(str) + self._blank_all(about_other)

    def _blank_all(self, named: Callable[[str], str]) -> int:
        rows = [row for (row,) in self._db.all(named("list_orphaned_passages"))]
        for start in range(0, len(rows), _TURNS_A_TRANSACTION):
            with self._db.transaction():
                for row in rows[start : start + _TURNS_A_TRANSACTION]:
                    self._blank(row, named)
        return len(rows)

    def prune_names(self) -> None:
        """Delete identifiers that no text holds any more, on a server."""
        self._db.run("prune_names")

    def merge_full_text(self) -> None:
        """Leave no deleted word in the full text, in steps that let others write."""
        for merge in _MERGES:
            pages = -_PAGES_A_MERGE
            while self._db.run(merge, pages=pages) >= 2:  # below: nothing was left to merge
                pages = _PAGES_A_MERGE

    def _blank(self, row: int, named: Callable[[str], str]) -> None:
        self._db.run(named("blank_passage"), row=row)
        found = self._db.one(named("find_bits"), row=row)
        if found is None or not found[1] or row >= found[0] + found[1]:
            return
        first, count, bits = found
        width = len(bits) // count
        at = (row - first) * width
        self._db.run(named("update_bits"), first=first, bits=bits[:at] + bytes(width) + bits[at + width :])
