"""Sessions, turns, transcript cursors and agent actions, on both engines."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

from nacre.store.schema import Database
from nacre.store.sessions import DeedIndex, ProjectContents, Sessions
from nacre.values.memory import DeedFilter, SessionFilter
from nacre.values.session import (
    Action,
    Cursor,
    FileUse,
    Flag,
    MainSession,
    SeenFile,
    Session,
    SessionKind,
    Speaker,
    Tally,
    Tokens,
    ToolCall,
    Trust,
    Unlearned,
)
from tests.storage.samples import DAY, MS, NOON, memory, put, put_session, turn

_MINUTE = timedelta(minutes=1)
_CALL = ToolCall(
    "Edit", "Größe 🐚", "ok", Action.EDIT, ("/srv/A.py", "./b/A.py"), None, ("task 1",)
)


def _ids(store: Sessions, query: SessionFilter) -> list[str]:
    return [item.session.native_id for item in store.newest(query)]


def test_turn_is_stored_with_every_field(database: Database) -> None:
    full = turn(
        "t1",
        'Ein "Text"\nmit ? :name %s \\u0041 🐚',
        minutes=1,
        speaker=Speaker.AGENT,
        tool_calls=(_CALL, ToolCall("Bash", "ls")),
        flags=Flag.META | Flag.SIDECHAIN,
        trust=Trust.UNTRUSTED,
        author="Ünal",
    )
    bare = turn("t2", "")
    row = put_session(database, "one", full, bare)
    store = Sessions(database)
    assert [item.turn for item in store.turns_of(row)] == [full, bare]
    assert [item.seq for item in store.last_turns(row, 1)] == [1]
    assert [item.turn.id for item in store.turns_of(row, first=1)] == ["t2"]
    assert [item.turn.id for item in store.turns_of(row, limit=1)] == ["t1"]
    assert store.place_of(row, "t2") == 1
    assert store.place_of(row, "t9") is None
    places = {
        turn_row: seq
        for turn_row, (_, seq) in store.places([item.row for item in store.turns_of(row)]).items()
    }
    assert sorted(places.values()) == [0, 1]
    assert store.authors() == {"Ünal"}
    assert store.all_turns(row) == [full, bare]
    actual = store.find_said("claude-code:one", "t1")
    assert actual
    assert actual.turn == full
    assert store.find_said("claude-code:one", "t9") is None


def test_text_with_a_nul_is_stored(database: Database) -> None:
    row = put_session(database, "one", turn("t1", "a\0b \\u0000 \\\\u0000"))
    (actual,) = Sessions(database).turns_of(row)
    assert actual.turn.text.replace("\ufffd", "\0") == "a\0b \\u0000 \\\\u0000"


def test_later_session_data_adds_fields_and_removes_none(database: Database) -> None:
    store = Sessions(database)
    first = Session(
        "codex",
        "one",
        title="First",
        cwd="/code/a",
        kind=SessionKind.SUBAGENT,
        parent="up",
        started=NOON,
        label="room",
        tokens=Tokens(10, 0, 5),
    )
    later = Session(
        "codex",
        "one",
        cwd="/code/b",
        branch="main",
        started=NOON - DAY,
        tool_version="1.2",
        model="m",
        title="Second",
        tokens=Tokens(7, 3, 6),
    )
    row = store.upsert(first, project=None, file="/srv/a")
    assert store.upsert(later, project="nacre", file="/srv/b") == row
    session = store.get(row)
    assert session.session == Session(
        "codex",
        "one",
        title="Second",
        cwd="/code/a",
        branch="main",
        label="room",
        kind=SessionKind.MAIN,
        parent="up",
        started=NOON - DAY,
        tool_version="1.2",
        model="m",
        tokens=Tokens(10, 3, 6),
    )
    assert (session.project, session.file, session.ended, session.turns) == (
        "nacre",
        "/srv/a",
        NOON,
        0,
    )
    assert store.labels("codex") == ["room"]
    assert store.labels("pi") == []
    assert store.versions() == {"/srv/a": "1.2"}


def test_changed_turn_is_rewritten_without_reusing_freed_rows(
    database: Database,
) -> None:
    store = Sessions(database)
    row = put_session(database, "one", turn("t1"), turn("t2", "Short."), file="/srv/a")
    before = [item.row for item in store.turns_of(row)]
    session = Session("claude-code", "one")
    with database.transaction():
        assert (
            store.add_turns(session, row, [turn("t1"), turn("t2", "Longer now."), turn("t3")]) == 1
        )
    after = store.turns_of(row)
    assert [(item.seq, item.turn.text) for item in after] == [
        (0, "Said."),
        (1, "Longer now."),
        (2, "Said."),
    ]
    assert after[0].row == before[0]
    assert min(after[1].row, after[2].row) > before[1]
    with database.transaction():
        assert store.retain("claude-code", "/srv/a", {"one": ["t1"]}) == {row}
    highest = max(item.row for item in after)
    with database.transaction():
        store.add_turns(session, row, [turn("t4")])
    assert store.turns_of(row)[-1].row > highest
    with database.transaction():
        store.retain("claude-code", "/srv/a", {})
    assert store.find("claude-code:one") == []
    again = put_session(database, "one", turn("t5"))
    assert store.turns_of(again)[0].row > highest + 1


def test_batched_turns_equal_single_turns(database: Database) -> None:
    store = Sessions(database)
    first, second = (
        store.upsert(Session("codex", name), project=None, file=None) for name in ("one", "two")
    )
    shared = turn("s", unique=True)
    with database.transaction():
        counts = store.add_batches(
            [
                ("codex", first, [turn("a"), shared, turn("a", "again")]),
                ("codex", second, [turn("a"), shared]),
                ("codex", first, [turn("b")]),
            ]
        )
    store.refresh([first, second])
    assert counts == [2, 1, 1]
    assert [(item.seq, item.turn.id) for item in store.turns_of(first)] == [
        (0, "a"),
        (1, "s"),
        (2, "b"),
    ]
    assert [store.get(row).turns for row in (first, second)] == [3, 1]
    actual = store.find_said("codex:two", "s")
    assert actual
    assert actual.session == first
    assert [item.unique for item in store.all_turns(first)] == [False, True, False]


def test_turn_in_two_files_remains_until_both_drop_it(database: Database) -> None:
    store = Sessions(database)
    row = put_session(database, "one", turn("t1"), turn("t2"), file="/srv/a")
    with database.transaction():
        store.retain("claude-code", "/srv/a", {"one": ["t1", "t2"]})
        store.upsert(Session("claude-code", "one"), project=None, file="/srv/b")
        store.retain("claude-code", "/srv/b", {"one": ["t2"]})
        assert store.retain("claude-code", "/srv/a", {"one": ["t1"]}) == set()
        assert [item.turn.id for item in store.turns_of(row)] == ["t1", "t2"]
        assert store.retain("claude-code", "/srv/a", {}) == {row}
    assert [item.turn.id for item in store.turns_of(row)] == ["t2"]
    assert store.get(row).file == "/srv/b"


def test_sessions_are_found_by_id_and_id_prefix(database: Database) -> None:
    store = Sessions(database)
    for tool, name in (
        ("codex", "abc"),
        ("codex", "abcd"),
        ("pi", "abc"),
        ("pi", "%x"),
        ("pi", "abce"),
        ("pi", "codex:abc"),
    ):
        store.upsert(Session(tool, name), project=None, file=None)
    assert [item.session.id for item in store.find("codex:abc")] == ["codex:abc"]
    assert [item.session.id for item in store.find("abc")] == ["codex:abc", "pi:abc"]
    assert [item.session.id for item in store.find("ab")] == ["codex:abc", "codex:abcd", "pi:abc"]
    assert [item.session.id for item in store.find("pi:ab")] == ["pi:abc", "pi:abce"]
    assert store.find("ABC") == []
    assert [item.session.id for item in store.find("%")] == ["pi:%x"]


def test_sessions_are_filtered_and_listed_newest_first(database: Database) -> None:
    store = Sessions(database)
    put_session(
        database,
        "a",
        turn("1", "Bitte die GRÖSSE ändern", minutes=5),
        model="Claude-Ö",
        project="p",
        branch="main",
    )
    put_session(database, "b", turn("1", "x"), title="Größe", started=NOON, tool="codex")
    put_session(
        database,
        "c",
        turn("1", "x", minutes=9),
        kind=SessionKind.SUBAGENT,
        parent="a",
        title="100% sure_",
    )
    put_session(database, "d", turn("1", "x"), tool="pi")
    put_session(database, "e", turn("1", "x", minutes=9), started=NOON - DAY, project="p")
    assert _ids(store, SessionFilter()) == ["e", "a", "b", "d"]
    assert _ids(store, SessionFilter(subagents=True)) == ["e", "c", "a", "b", "d"]
    assert _ids(store, SessionFilter(kind=SessionKind.SUBAGENT)) == ["c"]
    assert _ids(store, SessionFilter(tool="codex")) == ["b"]
    assert _ids(store, SessionFilter(project="p", branch="main")) == ["a"]
    assert _ids(store, SessionFilter(model="claude-ö")) == ["a"]
    assert _ids(store, SessionFilter(words="grösse")) == ["a"]
    assert _ids(store, SessionFilter(words="GRÖßE")) == ["b"]
    assert _ids(store, SessionFilter(words="0% sure_", subagents=True)) == ["c"]
    assert _ids(store, SessionFilter(since=NOON + 6 * _MINUTE)) == ["e"]
    assert _ids(store, SessionFilter(until=NOON + 6 * _MINUTE)) == ["a", "b"]
    page, count = store.page(SessionFilter(), limit=1, offset=1)
    assert ([item.session.native_id for item in page], count) == (["a"], 4)
    assert store.page(SessionFilter(), limit=1, offset=7) == ([], 7)
    assert len(store.newest(limit=-1)) == 4
    (parent,) = store.find("claude-code:a")
    assert [child.session.native_id for child in store.children(parent.row)] == ["c"]
    assert store.counts() == [
        ("claude-code", 3, 3, MS + 300_000, MS + 540_000),
        ("codex", 1, 1, MS, MS),
        ("pi", 1, 1, None, None),
    ]


def test_active_time_excludes_pauses(database: Database) -> None:
    times = (0, 10, 41, 41, None, 60)
    row = put_session(
        database, "one", *(turn(f"t{at}", minutes=minutes) for at, minutes in enumerate(times))
    )
    idle = put_session(database, "two", turn("x"))
    assert Sessions(database).active([row, idle]) == {row: timedelta(minutes=29)}


def test_sessions_to_extract_are_listed_oldest_first(database: Database) -> None:
    store = Sessions(database)
    late = put_session(database, "late", turn("1", minutes=9), turn("2"))
    timeless = put_session(database, "timeless", turn("1"))
    early = put_session(database, "early", turn("1", minutes=1))
    put_session(database, "sub", turn("1"), kind=SessionKind.SUBAGENT)
    assert store.to_extract() == [
        Unlearned(timeless, 0, 1, None, None),
        Unlearned(early, 0, 1, None, None),
        Unlearned(late, 0, 2, None, None),
    ]
    store.mark_extracted(late, 1)
    listed = next(item for item in store.to_extract() if item.row == early)
    store.mark_learned(listed, 1, 0, NOON)
    store.mark_learned(listed, 0, None, None)  # it was marked after the list was read
    store.mark_extracted(timeless, 1)
    assert store.to_extract() == [
        Unlearned(early, 1, 1, 0, NOON),
        Unlearned(late, 1, 2, None, None),
    ]
    store.mark_all_extracted()
    assert store.to_extract() == []


def test_cursor_accumulates_unknown_records(database: Database) -> None:
    store = Sessions(database)
    cursor = Cursor(7, 2**40, 2**41, 2**60, "ff", {"é": [1]})
    store.save_cursor("/srv/a", "codex", cursor, Tally(Counter({"x": 2, "ü": 1}), 1, 1))
    store.save_cursor("/srv/a", "codex", cursor, Tally(Counter({"x": 3, "y": 1}), 1), goes_on=True)
    assert store.cursor("/srv/a") == ("codex", cursor)
    assert store.seen_files() == [
        SeenFile("/srv/a", "codex", 2**41, 2**60, {"x": 5, "y": 1, "ü": 1}, 3)
    ]
    store.save_cursor("/srv/a", "codex", cursor, Tally(Counter({"z": 1})))
    assert store.seen_files()[0].unknown == {"z": 1}
    assert store.seen_files()[0].corrupt == 0
    store.move_cursor("/srv/a", Cursor(8, 1, 2, 3, "00"))
    assert store.cursor("/srv/a") == ("codex", Cursor(8, 1, 2, 3, "00", {"é": [1]}))
    assert store.cursor("/srv/b") is None


def test_ingest_runs_are_recorded(database: Database) -> None:
    store = Sessions(database)
    counts = {"files": 1, "sessions": 2, "turns": 3, "memories": 4, "skipped": 5}
    assert store.last_ingest() is None
    store.save_ingest("a", MS, MS + 1000, **counts)
    store.save_ingest("b", MS - 9000, MS + 2000, **counts)
    assert store.last_ingest() == NOON + timedelta(seconds=1)


def test_latest_sessions_per_tool_report_owner_turns(database: Database) -> None:
    store = Sessions(database)
    put_session(database, "old", turn("1"), started=NOON - DAY, tool_version="1")
    put_session(
        database,
        "noise",
        turn("1", flags=Flag.META),
        turn("2", speaker=Speaker.AGENT),
        started=NOON,
        tool_version="2",
    )
    put_session(database, "side", turn("1", flags=Flag.SIDECHAIN), started=NOON + DAY)
    put_session(database, "empty", started=NOON - 2 * DAY, tool="pi")
    assert store.main_sessions(2) == [
        MainSession("claude-code", "2", False),
        MainSession("claude-code", "1", True),
        MainSession("pi", None, False),
    ]
    assert store.main_sessions(1) == [
        MainSession("claude-code", "2", False),
        MainSession("pi", None, False),
    ]


def test_senders_without_owner_status_are_counted(database: Database) -> None:
    turns = [
        turn(f"{name}{at}", author=name, trust=Trust.UNTRUSTED)
        for name in ("b", "a", "Ä")
        for at in range(2 + (name == "b"))
    ]
    put_session(database, "one", *turns, turn("mine", author="me"), cwd="/code/b")
    put_session(database, "two", cwd="/code/B")
    store = Sessions(database)
    assert store.unknown_senders() == [("b", 3), ("a", 2), ("Ä", 2)]
    assert store.authors() == {"a", "b", "Ä", "me"}
    assert store.folders() == ["/code/B", "/code/b"]


def test_sessions_follow_a_renamed_project(database: Database) -> None:
    store = ProjectContents(database)
    put_session(database, "a", turn("1", minutes=1), project="old", cwd="/code/a")
    put_session(database, "b", turn("1"), project="old")
    put_session(database, "c", project="old", kind=SessionKind.SUBAGENT, cwd="/code/c")
    put(database, memory(1, project="old"), memory(2, project="old", superseded_by="x"), memory(3))
    assert store.sessions() == {"old": (2, NOON + _MINUTE)}
    assert store.memories() == {"old": (1, NOON)}
    assert store.memory_ids("old", 1) == ["0193-0001"]
    assert Sessions(database).projects() == {"old"}
    store.move_sessions_of_folder(None, "old", "lone")
    store.move_sessions("old", "old", "new")
    assert sorted(store.names_met()) == [("lone", "lone"), ("old", "new")]
    assert store.places() == []
    store.move_sessions("old", "new", "old")
    assert store.places() == [("old", "/code/a", None), ("old", "/code/c", None)]
    assert not store.has_branch("/code/a")


def test_uses_of_a_file_are_listed_newest_first(database: Database) -> None:
    deeds = DeedIndex(database)
    read = ToolCall("Read", "", "ok", Action.READ, ("/srv/ä/Main.PY",))
    edit = ToolCall("Edit", "", "ok", Action.EDIT, ("/srv/ä/Main.PY", "b\\main.py", "b\\main.py"))
    declined = ToolCall("Edit", "", "rejected", Action.EDIT, ("/srv/no",))
    first = put_session(
        database,
        "one",
        turn("1", tool_calls=(read, edit), minutes=1),
        turn("2", tool_calls=(declined,)),
        project="p",
    )
    second = put_session(database, "two", turn("1", tool_calls=(edit,)), tool="codex")
    third = put_session(database, "three", turn("1", tool_calls=(edit,)), started=NOON + DAY)
    files = dict(deeds.files_named("MAIN.py"))
    assert sorted(files.values()) == ["/srv/ä/Main.PY", "b/main.py"]
    assert sorted(path for _, path in deeds.all_files()) == ["/srv/ä/Main.PY", "b/main.py"]
    (mine,) = [row for row, path in files.items() if path == "/srv/ä/Main.PY"]
    uses = deeds.uses([mine], DeedFilter(), reads=False, limit=9)
    assert [(use.session, use.seq, use.time, use.action) for use in uses] == [
        (third, 0, NOON + DAY, Action.EDIT),
        (first, 0, NOON + _MINUTE, Action.EDIT),
        (second, 0, None, Action.EDIT),
    ]
    assert isinstance(uses[0], FileUse)
    assert len(deeds.uses([mine], DeedFilter(project="p"), reads=True, limit=9)) == 2
    assert [
        use.session
        for use in deeds.uses([*files], DeedFilter(since=NOON + 2 * _MINUTE), reads=False, limit=9)
    ] == [third, third]
    assert [
        use.session for use in deeds.uses([mine], DeedFilter(until=NOON), reads=False, limit=9)
    ] == [second]
    assert [
        use.session for use in deeds.uses([mine], DeedFilter(tool="codex"), reads=False, limit=1)
    ] == [second]


def test_file_without_any_remaining_turn_is_forgotten(database: Database) -> None:
    edit = ToolCall("Edit", "", "ok", Action.EDIT, ("/srv/a",))
    both = ToolCall("Edit", "", "ok", Action.EDIT, ("/srv/a", "/srv/b"))
    put_session(database, "one", turn("1", tool_calls=(edit,)))
    put_session(database, "two", turn("1", tool_calls=(both,)), file="/srv/two")
    with database.transaction():
        Sessions(database).retain("claude-code", "/srv/two", {})
    assert [path for _, path in DeedIndex(database).all_files()] == ["/srv/a"]


def test_earlier_requests_are_found_newest_first(database: Database) -> None:
    row = put_session(
        database,
        "one",
        turn("1"),
        turn("2", flags=Flag.META),
        turn("3", ""),
        turn("4"),
        turn("5", speaker=Speaker.AGENT),
        turn("6"),
    )
    requests = DeedIndex(database).requests(row, 5, limit=9)
    assert [Sessions(database).places(requests)[item][1] for item in requests] == [3, 0]
