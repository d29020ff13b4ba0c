"""Every text that the database holds, table by table, so that new rules can be applied to old rows.

The tables come from the schema: one that is added later is looked through, too. Full text follows its rows; when all is
done, freed pages are overwritten, so that nothing that was taken out is left in the file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from nacre.errors import StoreBusy
from nacre.platform import json_text
from nacre.storage.database import Indexed, in_transaction
from nacre.storage.file_history import DeedIndex
from nacre.storage.maintenance.erasure import Erasing
from nacre.storage.sessions import index_texts
from nacre.storage.sqlite.database import FileDatabase
from nacre.storage.turn_rows import stored_calls
from nacre.values.file_history import Deeds

BATCH = 500

_FULL_TEXT = ("turns_fts", "turns_parts", "failures_fts", "memories_fts", "memories_parts")

_OWN_WAY = frozenset(
    {
        "turns", "memories", "tags", "links", "vault_files", "git_state", "embedding", "other_embedding",
        "memory_names", "mentions",
    }
)  # fmt: skip
"""Turns are rewritten here with their full text; memories, and what follows them, come from their files."""

Clean = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table with texts: its key columns, and the columns that hold text."""

    name: str
    keys: tuple[str, ...]
    columns: tuple[str, ...]


class StoredTexts:
    """Looks through texts and rewrites those that change."""

    def __init__(self, database: FileDatabase) -> None:
        self._db = database

    def tables(self) -> list[TextTable]:
        """The tables to look through, besides turns."""
        found = []
        for (name,) in self._db.all("list_plain_tables"):
            if name in _OWN_WAY or name.startswith(_FULL_TEXT):
                continue
            columns = self._db.rows(f"SELECT name, type, pk FROM pragma_table_info({_quoted(name)})")  # noqa: S608
            keys = tuple(column for column, _, pk in sorted(columns, key=lambda row: row[2]) if pk)
            texts = tuple(column for column, kind, pk in columns if kind == "TEXT" and not pk)
            if keys and texts:
                found.append(TextTable(name, keys, texts))
        return found

    def batches(self, table: TextTable) -> Iterator[list[tuple[str | None, ...]]]:
        """The rows of a table, keys first, then texts, some hundred at a time; what others add at its end is theirs."""
        columns = ", ".join(map(_quoted, (*table.keys, *table.columns)))
        keys = ", ".join(map(_quoted, table.keys))
        after: Sequence[object] = ()
        while True:
            marks = ", ".join("?" for _ in after)
            beyond = f"WHERE ({keys}) > ({marks})" if after else ""
            rows = self._db.rows(
                f"SELECT {columns} FROM {_quoted(table.name)} {beyond} ORDER BY {keys} LIMIT {BATCH}",  # noqa: S608
                tuple(after),
            )
            if rows:
                yield rows
            if len(rows) < BATCH:
                return
            after = rows[-1][: len(table.keys)]

    def rewrite(self, table: TextTable, key: Sequence[object], texts: Mapping[str, str]) -> None:
        """Give a row other texts."""
        values = ", ".join(f"{_quoted(column)} = ?" for column in texts)
        wanted = " AND ".join(f"{_quoted(column)} = ?" for column in table.keys)
        statement = f"UPDATE {_quoted(table.name)} SET {values} WHERE {wanted}"  # noqa: S608
        self._db.rows(statement, (*texts.values(), *key))

    def turns(self) -> Iterator[list[tuple[int, str, str | None, str | None]]]:
        """Turns as (row, text, tool calls as JSON, author), some hundred at a time; only those there at the start."""
        last = (self._db.one("last_turn_row") or (0,))[0] or 0
        after = 0
        while rows := self._db.all("list_turns_to_scrub", after=after, last=last, limit=BATCH):
            yield [(row, text, tools, author) for row, text, tools, author in rows]
            after = rows[-1][0]

    @in_transaction
    def rewrite_turn(self, row: int, text: str, tools: str | None, author: str | None) -> None:
        """Write a turn anew, in its old place and under a new row: what was computed from its old words goes."""
        kept = self._db.one("find_turn_to_scrub", row=row)
        if kept is None:
            return
        self._db.words.drop(Indexed.TURNS, [row])
        self._db.run("delete_turn", row=row)
        new = (self._db.one("next_turn_row") or (1,))[0]
        session, seq, native_id, identity, speaker, trust, flags, time = kept
        values = (new, session, seq, native_id, identity.hex(), speaker, trust, flags, time, author, text, tools)
        self._db.run("insert_turns", turns=_encoded([values]))
        calls = stored_calls(tools)
        index_texts(self._db, [(new, text, calls)])
        DeedIndex(self._db).add([Deeds(new, calls)])

    def purge(self) -> None:
        """Leave nothing of what was taken out in the file: merge the full text, overwrite what is free, cut the log.

        Raises StoreBusy while another process reads.
        """
        erasing = Erasing(self._db)
        erasing.blank_passages()
        erasing.merge_full_text()
        if not self._db.compact():
            raise StoreBusy("another process reads the database", hint="close it and repeat the command")


def _encoded(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _quoted(name: str) -> str:
    return f'"{name.replace(chr(34), chr(34) * 2)}"'


def clean_stored(text: str, clean: Clean) -> str:
    """A text without secrets; where it is JSON, value by value, so that it stays JSON."""
    if text[:1] in ("{", "["):
        try:
            value = json_text.parse(text)
        except ValueError:
            return clean(text)
        cleaned = clean_value(value, clean)
        return text if cleaned == value else json.dumps(cleaned, ensure_ascii=False)
    return clean(text)


def clean_value(value: object, clean: Clean) -> object:
    """JSON values, and their keys, without secrets in any of their texts."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(str(key)): clean_value(item, clean) for key, item in value.items()}
    if isinstance(value, list):
        return [clean_value(item, clean) for item in value]
    return value
