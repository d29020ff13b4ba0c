"""Reading and deleting by the forget operation, on both engines."""

from __future__ import annotations

import re

import numpy as np

from nacre.store.journal import Journal, Tombstones
from nacre.store.maintenance import Erasing
from nacre.store.memories import Memories
from nacre.store.schema import Database
from nacre.store.search import Vectors
from nacre.store.sessions import Sessions
from nacre.values.memory import (
    Confirmation,
    Intent,
    Link,
    Operation,
    Source,
    Tombstone,
    TombstoneKind,
)
from nacre.values.session import Cursor, Tally, ToolCall
from tests.storage.samples import MS, NOON, an_id, memory, put, put_session, retired, turn


def test_places_and_texts_are_read_in_row_order(database: Database) -> None:
    store = Erasing(database)
    row = put_session(
        database,
        "one",
        turn("1", minutes=1, author="Ü"),
        turn("2", "é", tool_calls=(ToolCall("Bash"),)),
        project="p",
    )
    two = put_session(database, "two", turn("1", minutes=5), title="T", cwd="/code")
    assert [(place.row, place.tool, place.native_id) for place in store.sessions()] == [
        (row, "claude-code", "one"),
        (two, "claude-code", "two"),
    ]
    places = [*store.turn_places()]
    assert [place.row for place in places] == sorted(place.row for place in places)
    assert store.places_in(two) == store.places_of([places[2].row]) == places[2:]
    assert [(text.session, text.text, text.author) for text in store.turn_texts()] == [
        (row, "Said.", "Ü"),
        (row, "é", None),
        (two, "Said.", None),
    ]
    before = {session for _, session in store.turns_before(NOON.replace(minute=2), None)}
    assert before == {row}
    assert store.turns_before(NOON.replace(minute=9), ["q"]) == []
    assert len(store.turns_before(NOON.replace(minute=9), ["p"])) == 2
    store.clear_titles([two])
    assert Sessions(database).get(two).session.title is None
    store.delete_turns(row, [places[0].row])
    assert [text.text for text in store.turn_texts()] == ["é", "Said."]
    assert Sessions(database).get(row).turns == 1
    store.delete_sessions([row])
    assert [place.native_id for place in store.sessions()] == ["two"]


def test_duplicates_links_and_returned_tombstones_are_found(database: Database) -> None:
    store = Erasing(database)
    put(
        database,
        memory(1, "Same."),
        memory(2, "same", **retired()),
        memory(3, links=(Link("uses", an_id(1)),)),
        memory(4, superseded_by=an_id(1)),
        memory(5, "[[Subject 1]]"),
        memory(6, source=Source("codex:one")),
        memory(7, confirmed=(Confirmation(NOON, "codex:two"),)),
    )
    assert sorted(store.alike([an_id(1)])) == [an_id(1), an_id(2)]
    assert sorted(store.linking([an_id(1)])) == [an_id(3), an_id(4)]
    Tombstones(database).add(
        Tombstone(kind, value, run)
        for kind, value, run in (
            (TombstoneKind.MEMORY, an_id(2), "a"),
            (TombstoneKind.SESSION, "codex:one", "b"),
            (TombstoneKind.SESSION, "codex:two", "c"),
            (TombstoneKind.MEMORY, "gone", "d"),
        )
    )
    assert store.returned() == {"a", "b", "c"}


def test_all_records_of_a_memory_are_erased(database: Database) -> None:
    store, journal = Erasing(database), Journal(database)
    put(database, memory(1), memory(2, links=(Link("uses", an_id(1)),)))
    for number, document in (
        (1, "secret"),
        (2, f"names {an_id(1)}"),
        (3, "the Secret"),
        (4, "plain"),
    ):
        operation = f"0193-{number:04x}"
        journal.record(
            Operation(operation, NOON, "store", "secret" if number == 4 else "s", "why"),
            [
                Intent("write", f"{number}.md", memory=an_id(number)),
            ],
        )
        database.run(
            "insert_intent",
            action="write",
            path=f"{number}.md",
            document=document,
            base=None,
            memory=an_id(number),
            operation=operation,
            former=None,
            applied=1,
        )
    store.delete_traces(an_id(1))
    actual = Memories(database).find(an_id(2))
    assert actual is not None
    assert actual.links == ()
    assert [bool(journal.written_by(f"0193-{number:04x}")) for number in (1, 2, 3, 4)] == [
        False,
        False,
        True,
        True,
    ]
    assert [journal.touched("0193-0001"), journal.touched("0193-0002")] == [
        [],
        [("2.md", an_id(2))],
    ]
    store.clear_journal(re.compile("secret", re.IGNORECASE).search)
    assert [bool(journal.written_by(f"0193-{number:04x}")) for number in (3, 4)] == [False, True]
    cleared = journal.find("0193-0004")
    assert cleared is not None
    assert (cleared.subject, cleared.why) == (None, None)


def test_unused_passages_lose_vectors_and_keep_numbers(
    database: Database,
) -> None:
    unit = np.eye(3, 64, dtype=np.float32)
    store = Vectors(database)
    row = put_session(
        database,
        "one",
        turn("1", "Long enough to be embedded."),
        turn("2", "And this one is, too."),
        file="/srv/a",
    )
    first, second = (item.row for item in Sessions(database).turns_of(row))
    store.begin("m")
    store.add_turn_passages(
        {first: [b"\1" * 16], second: [b"\2" * 16]},
        [b"\1" * 16, b"\2" * 16],
        unit[:2],
        through=second,
    )
    Erasing(database).delete_turns(row, [first])
    assert Erasing(database).blank_passages() == 1
    assert Erasing(database).blank_passages() == 0
    assert (store.count(), [*store.rows_of_passages([b"\1" * 16, b"\2" * 16])]) == (2, [b"\2" * 16])
    store.add_turn_passages({second: [b"\3" * 16]}, [b"\3" * 16], unit[2:], through=second)
    assert store.count() == 3
    assert [
        (near.row, round(near.cosine, 2)) for near in store.nearest_turns(unit[1], limit=9)
    ] == [(second, 1.0)]


def test_held_and_deleted_cursors_are_removed(database: Database) -> None:
    sessions, store = Sessions(database), Erasing(database)
    for path, offset in (("/srv/a", 0), ("/srv/b", 1), ("/srv/c", MS)):
        sessions.save_cursor(path, "codex", Cursor(offset=offset), Tally())
    store.delete_held_cursors()
    store.delete_cursor("/srv/c")
    assert [file.path for file in sessions.seen_files()] == ["/srv/b"]
