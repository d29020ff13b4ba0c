"""Actions of agents are found by file and by error, and session searches can be narrowed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from nacre.api import MemoryHome
from nacre.care.database import rebuild
from nacre.data.scrub import ScrubOptions, scrub
from nacre.errors import InvalidQueryError
from nacre.home.home import Home
from nacre.recall import recall
from nacre.recall.ranking import admission
from nacre.recall.recall import search_sessions
from nacre.recall.requests import TurnQuery
from nacre.sessions.find import DidQuery, FixQuery, match_turns
from nacre.sessions.work import did, fix
from nacre.values.memory import DeedFilter
from nacre.values.recall import RecallQuery
from nacre.values.session import Trust
from tests.app.conftest import World, says

START = "2026-11-18T09:00:00.000Z"
ERROR = "ModuleNotFoundError: No module named 'yeast'"


@contextmanager
def open_both(world: World) -> Iterator[tuple[MemoryHome, Home]]:
    context = world.context()
    with MemoryHome(context) as memory:
        yield memory, context


def tool_call(
    uuid: str, name: str, at: str, text: str = "", session: str = "5e55-0001", **arguments: Any
) -> dict[str, Any]:
    record = says("assistant", text, uuid=uuid, at=at, session=session)
    content = record["message"]["content"] if text else []
    record["message"]["content"] = [
        *content,
        {"type": "tool_use", "id": f"toolu_{uuid}", "name": name, "input": arguments},
    ]
    return record


def tool_result(
    uuid: str, output: str, at: str, *, fails: bool = False, session: str = "5e55-0001"
) -> dict[str, Any]:
    record = says("user", "", uuid=f"{uuid}-result", at=at, session=session)
    result = {
        "type": "tool_result",
        "tool_use_id": f"toolu_{uuid}",
        "content": output,
        "is_error": fails,
    }
    record["message"]["content"] = [result]
    return record


def write_bakery_session(world: World) -> None:
    """Write a session in which an edit and an installation fix a failing test."""
    world.transcript(
        "5e55-0001",
        says(
            "user", "The dough tests fail since yesterday, please mend them.", uuid="u1", at=START
        ),
        tool_call(
            "a1", "Bash", "2026-11-18T09:00:10.000Z", command="cd oven && pytest -q tests/dough"
        ),
        tool_result(
            "a1", f"Exit code 1\ncollected 3 items\n{ERROR}", "2026-11-18T09:00:11.000Z", fails=True
        ),
        tool_call(
            "a2", "Read", "2026-11-18T09:00:20.000Z", file_path="/code/acme-billing/src/dough.py"
        ),
        tool_result("a2", "import yeast", "2026-11-18T09:00:21.000Z"),
        tool_call("a3", "Bash", "2026-11-18T09:00:30.000Z", command="pip install yeast-tools"),
        tool_result("a3", "done", "2026-11-18T09:00:31.000Z"),
        tool_call(
            "a4",
            "Edit",
            "2026-11-18T09:00:40.000Z",
            file_path="/code/acme-billing/src/dough.py",
            old_string="import yeast",
            new_string="import yeast_tools",
        ),
        tool_result("a4", "edited", "2026-11-18T09:00:41.000Z"),
        tool_call("a5", "Bash", "2026-11-18T09:00:50.000Z", command="pytest -q tests/dough"),
        tool_result("a5", "3 passed", "2026-11-18T09:00:51.000Z"),
        says(
            "assistant",
            "The package was renamed: it is yeast_tools now, and the tests pass.",
            uuid="a6",
            at="2026-11-18T09:01:00.000Z",
        ),
        says("user", "ok", uuid="u2", at="2026-11-18T09:02:00.000Z"),
        tool_call(
            "a7",
            "Edit",
            "2026-11-18T09:02:10.000Z",
            file_path="/code/acme-billing/src/dough.py",
            old_string="x",
            new_string="y",
        ),
        tool_result(
            "a7", "String to replace not found in file.", "2026-11-18T09:02:11.000Z", fails=True
        ),
    )


def write_mill_session(world: World) -> None:
    """Write a session of another project with a file of the same name and an unfixed error."""
    cwd, mill = "/code/mill", "5e55-0002"
    at = "2026-11-19T09:00:{:02}.000Z".format
    jammed = "Exit code 2\nmill: stone 7 is jammed at 0x7f31aa"
    records = [
        says("user", "Grind finer, the flour is too coarse.", uuid="m1", session=mill, at=at(0)),
        tool_call(
            "m2", "Write", at(10), file_path="/code/mill/src/dough.py", content="x", session=mill
        ),
        tool_result("m2", "written", at(11), session=mill),
        tool_call("m3", "Bash", at(20), command="make flour", session=mill),
        tool_result("m3", jammed, at(21), fails=True, session=mill),
    ]
    world.transcript(
        "5e55-0002", *({**record, "cwd": cwd} for record in records), folder="-code-mill"
    )


def test_file_history_shows_the_change_its_session_and_request(world: World) -> None:
    write_bakery_session(world)
    with open_both(world) as (memory, context):
        memory.ingest()
        history = did(context, DidQuery(path="src/dough.py"))
    assert history.paths == ("/code/acme-billing/src/dough.py",)
    assert (history.edits, history.reads, history.sessions) == (2, 1, 1)
    change = history.changes[0]
    assert change.request
    assert change.request.text == "The dough tests fail since yesterday, please mend them."
    assert change.session.tool == "claude-code"
    assert (change.edits, change.failed) == (2, 1), "an ok is not a new request"
    assert len(history.changes) == 1


@pytest.mark.parametrize(
    ("path", "count"),
    [
        ("dough.py", 2),
        ("DOUGH.py", 2),
        ("./src/dough.py", 2),
        ("/code/mill/src/dough.py", 1),
        ("C:\\code\\mill\\src\\dough.py", 0),
        ("/elsewhere/src/dough.py", 0),
        ("acme-billing", 1),
        ("mill/src/", 1),
        ("ough.py", 0),
        ("rc/dough.py", 0),
    ],
)
def test_file_history_matches_partial_absolute_and_case_insensitive_paths(
    world: World, path: str, count: int
) -> None:
    write_bakery_session(world)
    write_mill_session(world)
    with open_both(world) as (memory, context):
        memory.ingest()
        assert len(did(context, DidQuery(path=path)).paths) == count


def write_oven_session(world: World) -> None:
    """Write a session of a third project with file names relative to the session's folder."""
    day = "2026-11-20T09:00:0{}.000Z".format
    records = [
        says("user", "Bake the bread in the evening.", uuid="r1", session="5e55-0003", at=day(0)),
        *(
            tool_call(f"r{n}", "Write", day(n), file_path=path, content="x", session="5e55-0003")
            for n, path in enumerate(("dough.py", "src/dough.py", "../dough.py"), start=2)
        ),
    ]
    world.transcript(
        "5e55-0003",
        *({**record, "cwd": "/code/oven"} for record in records),
        folder="-code-oven",
    )


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("dough.py", ["dough.py", "oven/src/dough.py", "oven/dough.py", "mill", "acme-billing"]),
        ("src/dough.py", ["oven/src/dough.py", "mill", "acme-billing"]),
        ("oven/dough.py", ["oven/dough.py"]),
        ("/code/oven/src/dough.py", ["oven/src/dough.py"]),
        ("/code/dough.py", ["dough.py"]),
        ("/code/mill/src/dough.py", ["mill"]),
        ("/code/mill/dough.py", []),
    ],
)
def test_file_history_lists_all_files_of_a_name_latest_first(
    world: World, query: str, names: list[str]
) -> None:
    write_bakery_session(world)
    write_mill_session(world)
    write_oven_session(world)
    with open_both(world) as (memory, context):
        memory.ingest()
        history = did(context, DidQuery(path=query))
    expected = [
        f"/code/{path}" if path.endswith(".py") else f"/code/{path}/src/dough.py" for path in names
    ]
    assert list(history.paths) == expected
    assert {change.path for change in history.changes} <= {*history.paths}
    assert history.sessions == len({change.session.id for change in history.changes})


def test_file_history_is_filtered_by_project_and_paged(world: World) -> None:
    write_bakery_session(world)
    write_mill_session(world)
    with open_both(world) as (memory, context):
        memory.ingest()
        page = did(context, DidQuery(path="dough.py", limit=1))
        assert [change.project for change in page.changes] == ["mill"]
        assert page.more
        rest = did(context, DidQuery(path="dough.py", limit=1, offset=1))
        assert [change.project for change in rest.changes] == ["acme-billing"]
        assert not rest.more
        filtered = did(context, DidQuery(path="dough.py", wanted=DeedFilter(project="mill")))
        assert [change.session.native_id for change in filtered.changes] == ["5e55-0002"]


def test_fix_shows_the_steps_that_repaired_an_error(world: World) -> None:
    write_bakery_session(world)
    with open_both(world) as (memory, context):
        memory.ingest()
        trace = f'Traceback (most recent call last):\n  File "/other/x.py", line 9, in <module>\n{ERROR}\n'
        result = fix(context, FixQuery(error=trace))
    assert len(result.troubles) == 1
    repair = result.troubles[0].repairs[0]
    assert (repair.worked, repair.attempts) == (True, 0)
    assert [call.input for call in repair.steps] == [
        "pip install yeast-tools",
        "/code/acme-billing/src/dough.py",
        "pytest -q tests/dough",
    ]
    assert repair.words
    assert "renamed" in repair.words.text


def test_fix_reports_an_unrepaired_error(world: World) -> None:
    write_mill_session(world)
    with open_both(world) as (memory, context):
        memory.ingest()
        known_error = fix(context, FixQuery(error="mill: stone 12 is jammed at 0x99aa10"))
        assert [(trouble.mended, trouble.times) for trouble in known_error.troubles] == [(0, 1)], (
            "numbers in the error differ each time"
        )
        unknown_error = fix(context, FixQuery(error="mill: no grain left in the funnel"))
        assert unknown_error.troubles == ()


def test_pasted_error_is_found_with_its_answer(world: World) -> None:
    world.transcript(
        "5e55-0001",
        says("user", "What is this?\nfunnel.GrainMissing: no grain in funnel 3", uuid="u1"),
        says("assistant", "The hopper is empty. Fill it before you start the mill.", uuid="a1"),
    )
    with open_both(world) as (memory, context):
        memory.ingest()
        result = fix(context, FixQuery(error="funnel.GrainMissing: no grain in funnel 8"))
    assert result.troubles == ()
    assert [hit.turn.id for hit in result.talk] == ["a1"]


def test_empty_error_text_is_refused(world: World) -> None:
    with open_both(world) as (_, context), pytest.raises(InvalidQueryError):
        fix(context, FixQuery(error="  \n"))


def test_fix_omits_declined_and_unrelated_steps(world: World) -> None:
    rejection = tool_result(
        "b2",
        "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it "
        "was a file edit, the new_string was NOT written to the file). STOP what you are doing and wait "
        "for the user to tell you how to proceed.",
        "2026-11-18T09:00:21.000Z",
        fails=True,
    )
    world.transcript(
        "5e55-0001",
        says("user", "Start the tide gauge.", uuid="u1", at=START),
        tool_call("b1", "Bash", "2026-11-18T09:00:10.000Z", command="gauge serve --port 7070"),
        tool_result(
            "b1",
            "Exit code 1\nERROR: BuoyMissing: no buoy in harbour.toml",
            "2026-11-18T09:00:11.000Z",
            fails=True,
        ),
        tool_call("b2", "Bash", "2026-11-18T09:00:20.000Z", command="gauge reset --all"),
        rejection,
        tool_call(
            "b3", "Bash", "2026-11-18T09:00:30.000Z", command="prettier --write docs/menu.md"
        ),
        tool_result("b3", "done", "2026-11-18T09:00:31.000Z"),
        tool_call(
            "b4",
            "Edit",
            "2026-11-18T09:00:40.000Z",
            file_path="/code/acme-billing/harbour.toml",
            old_string="a",
            new_string="b",
        ),
        tool_result("b4", "edited", "2026-11-18T09:00:41.000Z"),
        tool_call("b5", "Bash", "2026-11-18T09:00:50.000Z", command="gauge serve --port 7070"),
        tool_result("b5", "listening", "2026-11-18T09:00:51.000Z"),
    )
    with open_both(world) as (memory, context):
        memory.ingest(extract=False, vectors=False)
        (repair,) = (
            fix(context, FixQuery(error="BuoyMissing: no buoy in harbour.toml")).troubles[0].repairs
        )
    assert repair.worked
    assert [(call.name, call.outcome) for call in repair.steps] == [("Edit", "ok"), ("Bash", "ok")]


def test_fix_returns_the_answer_to_a_pasted_error(world: World) -> None:
    log = "connect ECONNREFUSED 127.0.0.1:6650 while the pulsar client starts"
    world.transcript(
        "5e55-0001",
        says("user", f"It prints this:\n{log}", uuid="u1", at=START),
        says("assistant", "The broker was down; it listens again after a restart.", uuid="a1"),
        says("user", f"Another one, never answered:\n{log}", uuid="u2", session="5e55-0001"),
    )
    with open_both(world) as (memory, context):
        memory.ingest(extract=False, vectors=False)
        talk = fix(context, FixQuery(error=log)).talk
    assert [hit.turn.id for hit in talk] == ["a1"]


def test_forgetting_removes_file_history_and_errors(world: World) -> None:
    write_bakery_session(world)
    with open_both(world) as (memory, context):
        memory.ingest()
        memory.forget(memory.plan_forgetting(sessions=["5e55-0001"]))
        assert did(context, DidQuery(path="dough.py")).paths == ()
        assert fix(context, FixQuery(error=ERROR)).troubles == ()
    assert b"dough.py" not in b"".join(path.read_bytes() for path in world.home.glob("nacre.db*"))


def test_rebuild_restores_the_file_history(world: World) -> None:
    write_bakery_session(world)
    with open_both(world) as (memory, context):
        memory.ingest()
        before = did(context, DidQuery(path="dough.py"))
    rebuild(world.settings(), open_home=world.context)
    with open_both(world) as (_, context):
        assert did(context, DidQuery(path="dough.py")) == before


def test_scrub_removes_a_new_secret_from_file_history(world: World) -> None:
    world.transcript(
        "5e55-0001",
        says("user", "Show the recipe, please, it must be somewhere.", uuid="u1"),
        tool_call("a1", "Read", "2026-11-18T09:00:10.000Z", file_path="/code/recipe-SECRETBUNS.md"),
        tool_result(
            "a1", "no such file: recipe-SECRETBUNS.md", "2026-11-18T09:00:11.000Z", fails=True
        ),
    )
    with open_both(world) as (memory, context):
        memory.ingest()
        assert did(context, DidQuery(path="recipe-SECRETBUNS.md", reads=True)).reads == 1
    world.environ |= {"NACRE_REDACTION_PATTERNS": '["SECRETBUNS"]'}
    with open_both(world) as (memory, context):
        scrub(context, ScrubOptions())
        assert did(context, DidQuery(path="recipe-SECRETBUNS.md", reads=True)).reads == 0
        assert fix(context, FixQuery(error="no such file: recipe-SECRETBUNS.md")).troubles == ()
    assert b"SECRETBUNS" not in (world.home / "nacre.db").read_bytes()


def test_session_search_can_be_limited_by_aspect_and_role(world: World) -> None:
    write_bakery_session(world)
    with open_both(world) as (memory, context):
        memory.ingest()

        def turn_ids(aspect: str, role: str = "all") -> list[str]:
            result = search_sessions(
                context, RecallQuery("dough tests zinc"), admits=admission(aspect, role)
            )
            return sorted(hit.turn.id for hit in result.turns)

        assert set(turn_ids("errors")) == {"u1", "a1", "a7"}
        assert turn_ids("errors", "owner") == ["u1"]
        assert set(turn_ids("files")) >= {"a2", "a4"}
        assert "u1" not in turn_ids("tools")
        assert turn_ids("plans") == []


def test_error_search_shows_the_error(world: World) -> None:
    long = " ".join(["We knead the dough for the tests."] * 20)
    write_bakery_session(world)
    world.transcript(
        "5e55-0002", says("user", f"{long} It ends with KeyError: 'oven'. {long}", uuid="u9")
    )
    with open_both(world) as (memory, context):
        memory.ingest()
        request = TurnQuery("dough tests", aspect="errors")
        hits = {hit.turn.id: hit for hit in recall.search_sessions_answers(context, request).turns}
        assert ERROR in hits["a1"].excerpt
        assert hits["a1"].turn.trust is Trust.UNTRUSTED
        assert "KeyError" in hits["u9"].excerpt


def test_session_search_pages_do_not_overlap(world: World) -> None:
    for number in range(7):
        world.transcript(
            "5e55-0001", says("user", f"The loaf number {number} was too dark.", uuid=f"u{number}")
        )
    with open_both(world) as (memory, context):
        memory.ingest()
        pages = [
            search_sessions(context, RecallQuery("loaf dark", limit=3), offset=at) for at in (3, 6)
        ]
        assert [page.truncated for page in pages] == [True, False]
        assert len({hit.turn.id for page in pages for hit in page.turns}) == 4


def test_regex_search_covers_texts_and_tool_output(world: World) -> None:
    write_bakery_session(world)
    with open_both(world) as (memory, context):
        memory.ingest()
        result = match_turns(context, r"no module named '\w+'", limit=5)
        assert [hit.turn.id for hit in result.turns] == ["a1"]
        assert result.turns[0].turn.trust is Trust.UNTRUSTED, "tool output is untrusted"
        assert "ModuleNotFoundError" in result.turns[0].excerpt
        with pytest.raises(InvalidQueryError):
            match_turns(context, "(", limit=5)


def test_slow_regex_is_abandoned_and_counted(world: World) -> None:
    world.transcript(
        "5e55-0001",
        says("user", "oh ah " * 300 + ".", uuid="u1"),
        says("user", "bread and butter", uuid="u2"),
    )
    with open_both(world) as (memory, context):
        memory.ingest()
        result = match_turns(context, r"(.*h){20}\Z|bread", limit=5)
        assert result.given_up == 1
        assert [hit.turn.id for hit in result.turns] == ["u2"]


def test_home_at_another_path_is_never_read(world: World, tmp_path: Path) -> None:
    write_bakery_session(world)
    with open_both(world) as (memory, context):
        memory.ingest()
        assert did(context, DidQuery(path=str(tmp_path / "dough.py"))).paths == ()
