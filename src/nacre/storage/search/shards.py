"""The full text of many turns, in files that are made once and never changed.

FTS5 reads every row that holds a word of the question: a quarter of a second at a million turns. Tantivy passes over
those that cannot be among the best. Both are fed the same words, cut and stemmed by SQLite's tokenizer, and weigh them
alike (BM25, k1 1.2, b .75; Tantivy rounds the length of long turns).
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from nacre.platform import private_files
from nacre.platform.ids import to_ms
from nacre.values.memory import Scope
from nacre.values.recall import Filter
from nacre.values.session import Speaker, Trust

if TYPE_CHECKING:
    from tantivy import Index, Query, Schema, Searcher

IDENTITY = "1/porter-unicode61-2"
"""Changes whenever a shard's fields do, or the rules that make words of a text."""

_HEAP_BYTES = 200_000_000
_SPACES = str.maketrans(dict.fromkeys(" \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0", "\x00"))


def _tantivy() -> ModuleType:
    import tantivy  # noqa: PLC0415 - 15 ms that only a large home pays

    return tantivy


@dataclass(frozen=True, slots=True)
class ShardTurn:
    """A turn as a shard keeps it: its stems, its identifiers, and what filters ask for; ``time`` in milliseconds."""

    row: int
    session: int
    words: Sequence[str]
    names: Sequence[str]
    project: str | None
    tool: str
    speaker: str
    trust: str
    time: int | None


class Shard:
    """One shard, open. Raises OSError where its files are missing or not whole."""

    def __init__(self, folder: Path) -> None:
        tantivy = _tantivy()

        try:
            self._index: Index = tantivy.Index.open(str(folder))
            self._index.config_reader("manual")  # nothing changes: no thread has to look
            self._searcher: Searcher = self._index.searcher()
        except ValueError as error:
            raise OSError(str(error)) from error
        self._schema: Schema = self._index.schema

    @property
    def rows(self) -> int:
        """Turns in it, also those that are gone from the database since."""
        return int(self._searcher.num_docs)

    def frequencies(self, stems: Sequence[str]) -> list[int]:
        """How many turns hold each stem."""
        return [int(self._searcher.doc_freq("words", stem)) for stem in stems]

    def holds_name(self, name: str) -> bool:
        """Whether a turn has this identifier."""
        return bool(self._searcher.doc_freq("names", name))

    def best(
        self, stems: Sequence[str], idf: Sequence[float], wanted: Filter, moved: Sequence[int], limit: int
    ) -> list[tuple[float, int]]:
        """The best turns by BM25: (score, row). ``idf`` is what each stem weighs in the whole home."""
        tantivy = _tantivy()

        parts = []
        for stem, weight, count in zip(stems, idf, self.frequencies(stems), strict=True):
            if count:
                own = math.log(1 + (self.rows - count + 0.5) / (count + 0.5))
                term = tantivy.Query.term_query(self._schema, "words", stem, index_option="freq")
                parts.append((tantivy.Occur.Should, tantivy.Query.boost_query(term, weight / own)))
        return self._search(tantivy.Query.boolean_query(parts), wanted, moved, limit) if parts else []

    def with_names(self, names: Sequence[str], wanted: Filter, moved: Sequence[int], limit: int) -> list[int]:
        """Rows of turns that have any of some identifiers, as they are written in the shard."""
        tantivy = _tantivy()

        query = tantivy.Query.term_set_query(self._schema, "names", list(names))
        return [row for _, row in self._search(query, wanted, moved, limit)]

    def _search(self, query: Query, wanted: Filter, moved: Sequence[int], limit: int) -> list[tuple[float, int]]:
        tantivy = _tantivy()

        required = list(self._required(wanted, moved))
        if required:
            free = [(tantivy.Occur.Must, tantivy.Query.const_score_query(part, 0.0)) for part in required]
            query = tantivy.Query.boolean_query([(tantivy.Occur.Must, query), *free])
        hits = self._searcher.search(query, limit=limit, count=False).hits
        rows = self._searcher.fast_field_values("row", [address for _, address in hits])
        return [(float(score), int(row)) for (score, _), row in zip(hits, rows, strict=True) if row is not None]

    def _required(self, wanted: Filter, moved: Sequence[int]) -> Iterator[Query]:
        """What a turn must have; its project is looked up in the database again where it was learned later."""
        tantivy = _tantivy()

        late = [f"n:{session}" for session in moved]
        if wanted.projects:
            among = [*map(_project, wanted.projects), *([] if wanted.strict else [_project(None)]), *late]
            yield self._marked(among)
        if wanted.exclude_projects:
            others = self._marked([_project(project) for project in wanted.exclude_projects])
            kept = tantivy.Query.boolean_query(
                [(tantivy.Occur.Must, tantivy.Query.all_query()), (tantivy.Occur.MustNot, others)]
            )
            yield (
                tantivy.Query.boolean_query([(tantivy.Occur.Should, kept), (tantivy.Occur.Should, self._marked(late))])
                if late
                else kept
            )
        if wanted.tools:
            yield self._marked([f"t:{tool}" for tool in wanted.tools])
        if wanted.owner_only:
            yield self._marked([f"s:{Speaker.OWNER.value}"])
        if wanted.trusted:
            yield self._marked([f"u:{Trust.TRUSTED.value}"])
        since, until = _period(wanted)
        if since is not None or until is not None:
            yield tantivy.Query.range_query(
                self._schema, "time", tantivy.FieldType.Integer, since, until, include_lower=True,
                include_upper=until is None,  # what has no end is whole
            )  # fmt: skip
        if wanted.scope is not Scope.PRIVATE:
            yield tantivy.Query.empty_query()

    def _marked(self, marks: Sequence[str]) -> Query:
        tantivy = _tantivy()

        query: Query = tantivy.Query.term_set_query(self._schema, "marks", list(marks))
        return query


def write_shard(folder: Path, turns: Iterable[ShardTurn]) -> None:
    """Make a shard in a folder of its own, for the owner alone; it is on disk when this returns.

    Where it fails, what there is of the folder is removed.
    """
    tantivy = _tantivy()

    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("row", fast=True)
    builder.add_integer_field("time", fast=True)
    builder.add_text_field("words", tokenizer_name="cut", index_option="freq")
    builder.add_text_field("names", tokenizer_name="cut", index_option="basic")
    builder.add_text_field("marks", tokenizer_name="cut", index_option="basic")
    private_files.make_folder(folder)
    try:
        index = tantivy.Index(builder.build(), path=str(folder))
        index.register_tokenizer("cut", tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build())
        writer = index.writer(_HEAP_BYTES, 1)
        for turn in turns:
            document = tantivy.Document()
            document.add_unsigned("row", turn.row)
            if turn.time is not None:
                document.add_integer("time", turn.time)
            document.add_text("words", " ".join(turn.words))
            document.add_text("names", " ".join(turn.names))
            document.add_text("marks", " ".join(_marks(turn)))
            writer.add_document(document)
        writer.commit()
        writer.wait_merging_threads()
        _make_private(folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _make_private(folder: Path) -> None:
    """Files of other libraries have the umask's mode; the folder was private all the time."""
    for file in folder.iterdir():
        if file.suffix == ".lock":
            file.unlink()
            continue
        with contextlib.suppress(PermissionError):
            os.chmod(file, private_files.FILE_MODE)


def _marks(turn: ShardTurn) -> Iterator[str]:
    yield _project(turn.project)
    yield f"n:{turn.session}"
    yield f"t:{turn.tool}".translate(_SPACES)
    yield f"s:{turn.speaker}"
    yield f"u:{turn.trust}"


def _project(project: str | None) -> str:
    return "p" if project is None else f"p:{project}".translate(_SPACES)


def _period(wanted: Filter) -> tuple[int | None, int | None]:
    """From when (milliseconds) until before when."""
    ends = [to_ms(wanted.until)] if wanted.until else []
    if wanted.as_of:
        ends.append(to_ms(datetime.combine(wanted.as_of + timedelta(days=1), time.min, UTC)))
    return to_ms(wanted.since), min((end for end in ends if end is not None), default=None)
