"""Records of vault files, operations and the archive, on both engines."""

from __future__ import annotations

from dataclasses import replace

from nacre import __version__
from nacre.store.journal import Journal, VaultIndex
from nacre.store.memories import Memories
from nacre.store.review import Reviews
from nacre.store.schema import Database
from nacre.store.sessions import (
    Archived,
    ArchiveIndex,
    Changes,
    Due,
    GrownSession,
    MemoryChange,
    Sessions,
)
from nacre.values.memory import Intent, Link, Operation, Project, SeenMemoryFile
from nacre.values.review import Reason
from nacre.values.session import Cursor, Tally
from tests.storage.samples import DAY, MS, NOON, an_id, memory, put, put_session, retired, turn

_BYTES = bytes(range(256))


def _insert(database: Database, *intents: Intent, applied: bool = False) -> list[Intent]:
    for intent in intents:
        database.run(
            "insert_intent",
            action=intent.action,
            path=intent.path,
            document=intent.document,
            base=intent.base,
            memory=intent.memory,
            operation=intent.operation,
            former=intent.former,
            applied=int(applied),
        )
    return VaultIndex(database).intents()


def _operation(number: int, **more: object) -> Operation:
    fields = {"at": NOON + number * DAY, "action": "store", "subject": f"é {number}", **more}
    return Operation(id=f"0193-{number:04x}", **fields)  # type: ignore[arg-type]


def test_files_are_recorded_as_last_seen(database: Database) -> None:
    store = VaultIndex(database)
    database.run(
        "upsert_vault_file", path="é.md", memory=an_id(1), mtime_ns=2**60, size=2**40, hash=_BYTES
    )
    database.run("upsert_vault_file", path="b.md", memory=an_id(2), mtime_ns=1, size=1, hash=b"")
    database.run("upsert_vault_file", path="b.md", memory=an_id(3), mtime_ns=2, size=3, hash=b"x")
    first, second = (
        SeenMemoryFile("é.md", an_id(1), 2**60, 2**40, _BYTES),
        SeenMemoryFile("b.md", an_id(3), 2, 3, b"x"),
    )
    assert store.indexed() == {"é.md": first, "b.md": second}
    assert (
        store.file_of(an_id(1)),
        store.file_of(an_id(2)),
        store.at("b.md"),
        store.at("B.md"),
    ) == (
        first,
        None,
        second,
        None,
    )
    database.run("distrust_vault_file", path="b.md")
    assert store.at("b.md") == replace(second, mtime_ns=0, hash=b"")
    put(database, memory(1), memory(2))
    assert store.unfiled() == [an_id(2)]


def test_invalid_memory_files_keep_their_reason_until_changed(
    database: Database,
) -> None:
    store = VaultIndex(database)
    store.set_unreadable("a.md", 1, 2, "why")
    store.set_unreadable("b.md", 1, 2, "why")
    assert (store.why_unreadable("a.md", 1, 2), store.why_unreadable("a.md", 1, 3)) == ("why", None)
    database.run(
        "upsert_unreadable",
        path="c.md",
        mtime_ns=1,
        size=2,
        version=f"{__version__}-",
        reason="older",
    )
    assert store.why_unreadable("c.md", 1, 2) is None
    database.run("upsert_vault_file", path="d.md", memory="m", mtime_ns=5, size=6, hash=b"")
    _insert(database, Intent("write", "b.md", "text"))
    times = {"a.md": (1, 2), "d.md": (5, 6), "b.md": (1, 2)}
    assert store.file_states() == (times, {"b.md"}, {"a.md": "why"})
    store.keep_unreadable({("a.md", 1, 2), ("b.md", 9, 2)})
    assert store.file_states() == ({"a.md": (1, 2), "d.md": (5, 6)}, {"b.md"}, {"a.md": "why"})


def test_writes_are_pending_until_done_or_given_up(database: Database) -> None:
    store = VaultIndex(database)
    full = Intent("adjust", "a.md", "é\n", _BYTES, an_id(1), None, "before")
    writes = _insert(
        database,
        Intent("write", "a.md", "one"),
        full,
        Intent("remove", "b.md"),
        Intent("append", "l", "x"),
    )
    assert [replace(item, seq=0) for item in writes] == [
        Intent("write", "a.md", "one"),
        full,
        Intent("remove", "b.md"),
        Intent("append", "l", "x"),
    ]
    assert [item.seq for item in writes] == sorted({item.seq for item in writes})
    assert store.pending_document("a.md") == "é\n"
    assert store.pending_document("b.md") is None
    assert store.awaited_paths() == {"a.md", "b.md"}
    assert store.journal_paths() == {"a.md", "b.md", "l"}
    for item in writes[:3]:
        store.done(item.seq)
    store.give_up(writes[3].seq)
    store.done(10**9)
    assert store.intents() == []
    assert store.journal_paths() == set()
    (again,) = _insert(database, Intent("write", "c.md", operation="0193-0001"))
    assert again.seq > writes[3].seq
    store.done(again.seq)
    store.give_up(again.seq)
    assert store.journal_paths() == {"c.md"}


def test_project_keys_belong_to_the_first_project(database: Database) -> None:
    store = VaultIndex(database)
    first, second = Project("p1", "one", 2**60), Project("p2", "Two", 0)
    store.save_project(
        first, [("alias", "old"), ("root", "/code/ä"), ("alias", "old")], ["old", "Two", "gone"]
    )
    store.save_project(second, [("alias", "old"), ("alias", "one"), ("remote", "x")], ["one"])
    assert store.projects() == [second, first]
    assert store.project_keys() == [
        ("alias", "one", "Two"),
        ("remote", "x", "Two"),
        ("alias", "old", "one"),
        ("root", "/code/ä", "one"),
    ]
    assert [store.project_by("alias", name) for name in ("old", "OLD")] == ["one", None]
    assert [store.name_now(name) for name in ("old", "one", "new")] == ["one", "one", "new"]
    assert store.dependencies() == [("Two", "one"), ("one", "Two"), ("one", "gone")]
    assert store.dependencies("Two") == [("Two", "one")]
    store.save_project(Project("p3", "one", 1), [("alias", "old")])
    assert [project.id for project in store.projects()] == ["p2", "p3"]
    assert store.project_by("alias", "old") == "one"
    assert store.project_by("root", "/code/ä") is None
    store.forget_project("Two", unless="p2")
    store.forget_project("one")
    assert [project.id for project in store.projects()] == ["p2"]


def test_operations_are_listed_newest_first_and_found_by_id(database: Database) -> None:
    store = Journal(database)
    paths = (
        "projects/a_b/x.md",
        "projects/aXb/x.md",
        "retired/projects/a_b/y.md",
        "projects/A_B/z.md",
        "global/x.md",
    )
    for number, path in enumerate(paths, start=1):
        fields = Intent("write", path, memory=an_id(number % 2))
        store.record(
            _operation(number, why=None, by="mcp"),
            [fields, Intent("append", "ledger"), Intent("remove", "old.md")],
        )
    store.record(
        _operation(1, subject="other"),
        [Intent("write", "old.md", memory="m"), Intent("write", paths[0], memory="m")],
    )
    assert store.find("0193-0001") == _operation(1, by="mcp")
    assert store.touched("0193-0001") == [("old.md", "m"), (paths[0], an_id(1))]

    def numbers(**query: object) -> list[int]:
        return [int(operation.id[5:], 16) for operation in store.operations(**query)]  # type: ignore[arg-type]

    assert numbers() == [5, 4, 3, 2, 1]
    assert numbers(project="a_b") == [3, 1]
    assert numbers(project="a") == []
    assert numbers(memory=an_id(1)) == [5, 3, 1]
    assert numbers(since=NOON + 2 * DAY, until=NOON + 4 * DAY) == [3, 2]
    assert numbers(limit=2, offset=1) == [4, 3]
    assert numbers(action="edit") == []
    assert [item.id for item in store.find_like("0193")] == ["0193-0005", "0193-0004", "0193-0003"]
    assert [item.id for item in store.find_like("-0002")] == ["0193-0002"]
    assert store.find_like("93-0") == store.find_like("002") == store.find_like("%%%%") == []


def test_operations_await_commit_in_write_order(database: Database) -> None:
    store, vault = Journal(database), VaultIndex(database)
    for number in (1, 2, 3, 4):
        store.record(_operation(number), [])
    writes = [
        Intent("write", "b.md", "B", operation="0193-0002"),
        Intent("write", "a.md", "A", operation="0193-0001"),
        Intent("append", "ledger", "x", operation="0193-0002"),
    ]
    rows = _insert(database, *writes)
    assert [item.id for item in store.unfinished()] == [
        "0193-0001",
        "0193-0002",
        "0193-0003",
        "0193-0004",
    ]
    for number in (1, 2, 3):
        store.close(f"0193-{number:04x}", "late")
    assert [item.id for item in store.pending()] == ["0193-0002", "0193-0001"]
    assert [item.id for item in store.pending(limit=1)] == ["0193-0002"]
    assert [text.id for text in store.without_texts()] == ["0193-0003"]
    assert store.count_pending() == (2, NOON + DAY)
    assert (store.is_in_ledger("0193-0002"), store.is_in_ledger("0193-0001")) == (True, False)
    assert store.is_unapplied("0193-0001")
    for item in rows:
        vault.done(item.seq)
    assert not store.is_unapplied("0193-0001")
    assert [item.path for item in store.written_by("0193-0002")] == ["b.md", "ledger"]
    store.explain("0193-0001", "because")
    store.committed("0193-0001", "abc")
    assert store.find("0193-0001") == _operation(1, why="because", committed="abc")
    assert store.written_by("0193-0001") == []
    assert store.count_pending() == (1, NOON + 2 * DAY)
    store.drop("0193-0002")
    store.drop("0193-0003")
    assert store.count_pending() == (0, None)
    store.add_past(_operation(1, subject="told", committed="def"), [("c.md", "m"), ("c.md", "n")])
    assert store.find("0193-0001") == _operation(1, subject="told", committed="def")
    assert store.touched("0193-0001") == [("c.md", "m")]
    store.forget_past()
    assert [operation.id for operation in store.operations()] == ["0193-0004"]


def test_journal_records_previous_file_content(database: Database) -> None:
    store = Journal(database)
    for number in (1, 2, 3):
        store.record(_operation(number, why="said"), [Intent("write", "a.md", memory=an_id(1))])
        _insert(
            database,
            Intent(
                "write",
                "a.md",
                f"v{number}",
                memory=an_id(1),
                operation=f"0193-{number:04x}",
                former="f",
            ),
            applied=True,
        )
    _insert(database, Intent("append", "a.md", "line", operation="0193-0003"), applied=True)
    _insert(database, Intent("seen", "s.md"), Intent("seen", "r.md"), applied=True)
    (last,) = [item for item in store.written_by("0193-0003") if item.action == "write"]
    assert store.before(last) == ("write", "v2")
    assert store.before(store.written_by("0193-0001")[0]) is None
    assert store.withheld() == ["r.md", "s.md"]
    store.withdraw("r.md")
    assert store.withheld() == ["s.md"]
    assert store.keep_last(2) == 1
    assert store.before(last) == ("write", "v2")
    assert store.written_by("0193-0001") == []
    store.rename("a.md", "z.md")
    assert [path for path, _ in store.touched("0193-0002")] == ["z.md"]
    assert [item.path for item in store.written_by("0193-0002")] == ["z.md"]


def test_operation_that_touched_a_renamed_file_counts_once(database: Database) -> None:
    store = Journal(database)
    store.record(
        _operation(1),
        [Intent("remove", "old.md", memory="a"), Intent("write", "new.md", memory="b")],
    )
    store.record(_operation(2), [Intent("write", "new.md", memory="c")])
    store.rename("old.md", "new.md")
    assert (store.touched("0193-0001"), store.touched("0193-0002")) == (
        [("new.md", "a")],
        [("new.md", "c")],
    )


def test_ledger_end_and_git_state_are_recorded(database: Database) -> None:
    store = Journal(database)
    assert (store.ledger_end(), store.git_state("read")) == ((0, b""), None)
    for size in (1, 2**40):
        store.set_ledger_end(size, _BYTES)
        store.set_git_state("read", str(size))
    assert (store.ledger_end(), store.git_state("read")) == ((2**40, _BYTES), str(2**40))


def test_archive_lists_the_contents_of_its_packs(database: Database) -> None:
    store = ArchiveIndex(database)
    first = Archived("/srv/a", "codex", "lines", "p1", 10, 5, 10, 2**40, "ff", 2**60, False)
    two = Archived("/srv/b", "codex", "lines", "p2", 10, 5, 10, 3, "ff", 7, True)
    store.save(first)
    store.save(first)
    store.save(two)
    store.save(replace(two, withheld=False))
    assert store.all() == [first, two]
    assert (store.find("/srv/b"), store.find("/srv/B")) == (two, None)
    assert [store.has_below(folder) for folder in ("/srv", "/sr", "/srv/a", "/SRV")] == [
        True,
        False,
        False,
        False,
    ]
    store.withhold("/srv/a", "codex")
    store.withhold("/srv/c", "pi")
    assert store.find("/srv/a") == replace(first, withheld=True, changed=-1)
    assert store.find("/srv/c") == Archived("/srv/c", "pi", "turns", withheld=True)
    assert [item.path for item in store.all()] == ["/srv/b", "/srv/c", "/srv/a"]
    store.clear()
    assert store.all() == []


def test_transcripts_read_beyond_the_archive_are_due(database: Database) -> None:
    store, sessions = ArchiveIndex(database), Sessions(database)
    for path, changed in (("/srv/b", 7), ("/srv/a", 7), ("/srv/c", 3), ("/srv/d", 9)):
        sessions.save_cursor(path, "codex", Cursor(1, 2, 3, changed), Tally())
    store.save(Archived("/srv/d", "codex", "lines", inode=1, changed=9))
    store.save(Archived("/srv/c", "codex", "lines", inode=2, changed=3))
    assert store.due() == [
        Due("/srv/c", "codex", 1, 3, 3),
        Due("/srv/a", "codex", 1, 3, 7),
        Due("/srv/b", "codex", 1, 3, 7),
    ]
    rows = [put_session(database, name, tool="codex", file="/srv/a") for name in ("one", "two")]
    assert store.sessions_of("codex", "/srv/a") == rows
    assert store.sessions_of("pi", "/srv/a") == []


def test_changes_since_the_last_check_are_reported_once(database: Database) -> None:
    put(database, memory(1), memory(2), memory(3), memory(4, **retired()), memory(5), memory(6))
    store = Changes(database)
    assert store.memories() == []
    Journal(database).record(_operation(7), [Intent("write", "a.md", memory=an_id(1))])
    Journal(database).record(_operation(8), [Intent("write", "a.md", memory=an_id(1))])
    put(
        database,
        memory(1, "Other words."),
        memory(2, superseded_by=an_id(1)),
        memory(4),
        memory(5, project="p"),
        memory(6),
        memory(7),
        memory(8, **retired()),
    )
    with database.transaction():
        Memories(database).delete(an_id(3))
    assert sorted(store.memories(), key=lambda item: item.id) == [
        MemoryChange("changed", an_id(1), "0193-0008"),
        MemoryChange("retired", an_id(2), None),
        MemoryChange("removed", an_id(3), None),
        MemoryChange("restored", an_id(4), None),
        MemoryChange("changed", an_id(5), None),
        MemoryChange("stored", an_id(7), None),
        MemoryChange("retired", an_id(8), None),
    ]
    Memories(database).set_importance(an_id(6), 1)
    assert store.memories() == [MemoryChange("changed", an_id(6), None)]
    assert store.memories() == []
    store.free_pages()
    assert store.operations(NOON + 8 * DAY) == [("0193-0008", "store")]


def test_growth_and_doubts_are_reported(database: Database) -> None:
    store = Changes(database)
    assert store.last_turn() == 0
    put_session(database, "one", turn("1"))
    mark = store.last_turn()
    put_session(database, "two", turn("1"), tool="codex")
    put_session(database, "one", turn("2"), turn("3"))
    assert store.grown_sessions(mark, 9) == [
        GrownSession("claude-code:one", "claude-code", 3),
        GrownSession("codex:two", "codex", 1),
    ]
    assert [session.id for session in store.grown_sessions(mark, 1)] == ["claude-code:one"]
    put(database, memory(1, links=(Link("contradicts", an_id(2)),)), memory(2), memory(3))
    Reviews(database).add(an_id(3), Reason.MANUAL, "", MS, once=False)
    Memories(database).set_stale([(an_id(1), 0.5, "")])
    assert (store.doubted(), store.queued()) == ({an_id(2)}, {an_id(1), an_id(3)})
