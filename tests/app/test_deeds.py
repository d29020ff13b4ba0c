"""What agents did, apart from what was said: who changed a file and why, what mended an error, narrower searches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from nacre.api import MemoryHome
from nacre.care.database import rebuild
from nacre.data.forget import ScrubOptions
from nacre.data.scrub import scrub
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

BEGAN = "2026-11-18T09:00:00.000Z"
ERROR = "ModuleNotFoundError: No module named 'yeast'"


@contextmanager
def opened(world: World) -> Iterator[tuple[MemoryHome, Home]]:
    context = world.context()
    with MemoryHome(context) as memory:
        yield memory, context


def calls(
    uuid: str, name: str, at: str, text: str = "", session: str = "5e55-0001", **arguments: Any
) -> dict[str, Any]:
    record = says("assistant", text, uuid=uuid, at=at, session=session)
    content = record["message"]["content"] if text else []
    record["message"]["content"] = [
        *content,
        {"type": "tool_use", "id": f"toolu_{uuid}", "name": name, "input": arguments},
    ]
    return record


def gives(
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


def bakery(world: World) -> None:
    """A session in which a failing test is mended by an edit and an installation."""
    world.transcript(
        "5e55-0001",
        says(
            "user", "The dough tests fail since yesterday, please mend them.", uuid="u1", at=BEGAN
        ),
        calls("a1", "Bash", "2026-11-18T09:00:10.000Z", command="cd oven && pytest -q tests/dough"),
        gives(
            "a1", f"Exit code 1\ncollected 3 items\n{ERROR}", "2026-11-18T09:00:11.000Z", fails=True
        ),
        calls(
            "a2", "Read", "2026-11-18T09:00:20.000Z", file_path="/code/acme-billing/src/dough.py"
        ),
        gives("a2", "import yeast", "2026-11-18T09:00:21.000Z"),
        calls("a3", "Bash", "2026-11-18T09:00:30.000Z", command="pip install yeast-tools"),
        gives("a3", "done", "2026-11-18T09:00:31.000Z"),
        calls(
            "a4",
            "Edit",
            "2026-11-18T09:00:40.000Z",
            file_path="/code/acme-billing/src/dough.py",
            old_string="import yeast",
            new_string="import yeast_tools",
        ),
        gives("a4", "edited", "2026-11-18T09:00:41.000Z"),
        calls("a5", "Bash", "2026-11-18T09:00:50.000Z", command="pytest -q tests/dough"),
        gives("a5", "3 passed", "2026-11-18T09:00:51.000Z"),
        says(
            "assistant",
            "The package was renamed: it is yeast_tools now, and the tests pass.",
            uuid="a6",
            at="2026-11-18T09:01:00.000Z",
        ),
        says("user", "ok", uuid="u2", at="2026-11-18T09:02:00.000Z"),
        calls(
            "a7",
            "Edit",
            "2026-11-18T09:02:10.000Z",
            file_path="/code/acme-billing/src/dough.py",
            old_string="x",
            new_string="y",
        ),
        gives("a7", "String to replace not found in file.", "2026-11-18T09:02:11.000Z", fails=True),
    )


def elsewhere(world: World) -> None:
    """Another project with a file of the same name, and an error that nothing mended."""
    cwd, mill = "/code/mill", "5e55-0002"
    at = "2026-11-19T09:00:{:02}.000Z".format
    jammed = "Exit code 2\nmill: stone 7 is jammed at 0x7f31aa"
    records = [
        says("user", "Grind finer, the flour is too coarse.", uuid="m1", session=mill, at=at(0)),
        calls(
            "m2", "Write", at(10), file_path="/code/mill/src/dough.py", content="x", session=mill
        ),
        gives("m2", "written", at(11), session=mill),
        calls("m3", "Bash", at(20), command="make flour", session=mill),
        gives("m3", jammed, at(21), fails=True, session=mill),
    ]
    world.transcript(
        "5e55-0002", *({**record, "cwd": cwd} for record in records), folder="-code-mill"
    )


def test_file_history_shows_the_change_its_session_and_request(world: World) -> None:
    bakery(world)
    with opened(world) as (memory, context):
        memory.ingest()
        history = did(context, DidQuery(path="src/dough.py"))
    assert history.paths == ("/code/acme-billing/src/dough.py",)
    assert (history.edits, history.reads, history.sessions) == (2, 1, 1)
    change = history.changes[0]
    assert change.request
    assert change.request.text == "The dough tests fail since yesterday, please mend them."
    assert change.session.tool == "claude-code"
    assert (change.edits, change.failed) == (2, 1), "an ok asks for nothing new"
    assert len(history.changes) == 1


@pytest.mark.parametrize(
    ("asked", "found"),
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
    world: World, asked: str, found: int
) -> None:
    bakery(world)
    elsewhere(world)
    with opened(world) as (memory, context):
        memory.ingest()
        assert len(did(context, DidQuery(path=asked)).paths) == found


def test_file_history_is_filtered_by_project_and_paged(world: World) -> None:
    bakery(world)
    elsewhere(world)
    with opened(world) as (memory, context):
        memory.ingest()
        page = did(context, DidQuery(path="dough.py", limit=1))
        assert [change.project for change in page.changes] == ["mill"]
        assert page.more
        rest = did(context, DidQuery(path="dough.py", limit=1, offset=1))
        assert [change.project for change in rest.changes] == ["acme-billing"]
        assert not rest.more
        only = did(context, DidQuery(path="dough.py", wanted=DeedFilter(project="mill")))
        assert [change.session.native_id for change in only.changes] == ["5e55-0002"]


def test_commands_naming_a_file_are_shown_on_request(world: World) -> None:
    bakery(world)
    with opened(world) as (memory, context):
        memory.ingest()
        history = did(context, DidQuery(path="tests/dough", commands=True))
    assert [call.input for change in history.changes for call in change.commands] == [
        "cd oven && pytest -q tests/dough",
        "pytest -q tests/dough",
    ]


def test_fix_shows_the_steps_that_repaired_an_error(world: World) -> None:
    bakery(world)
    with opened(world) as (memory, context):
        memory.ingest()
        trace = f'Traceback (most recent call last):\n  File "/other/x.py", line 9, in <module>\n{ERROR}\n'
        found = fix(context, FixQuery(error=trace))
    assert len(found.troubles) == 1
    repair = found.troubles[0].repairs[0]
    assert (repair.worked, repair.attempts) == (True, 0)
    assert [call.input for call in repair.steps] == [
        "pip install yeast-tools",
        "/code/acme-billing/src/dough.py",
        "pytest -q tests/dough",
    ]
    assert repair.words
    assert "renamed" in repair.words.text


def test_fix_reports_an_unrepaired_error(world: World) -> None:
    elsewhere(world)
    with opened(world) as (memory, context):
        memory.ingest()
        found = fix(context, FixQuery(error="mill: stone 12 is jammed at 0x99aa10"))
        assert [(trouble.mended, trouble.times) for trouble in found.troubles] == [(0, 1)], (
            "numbers are new each time"
        )
        other = fix(context, FixQuery(error="mill: no grain left in the funnel"))
        assert other.troubles == ()


def test_pasted_error_is_found_with_its_answer(world: World) -> None:
    world.transcript(
        "5e55-0001",
        says("user", "What is this?\nfunnel.GrainMissing: no grain in funnel 3", uuid="u1"),
        says("assistant", "The hopper is empty. Fill it before you start the mill.", uuid="a1"),
    )
    with opened(world) as (memory, context):
        memory.ingest()
        found = fix(context, FixQuery(error="funnel.GrainMissing: no grain in funnel 8"))
    assert found.troubles == ()
    assert [hit.turn.id for hit in found.talk] == ["a1"]


def test_empty_error_text_is_refused(world: World) -> None:
    with opened(world) as (_, context), pytest.raises(InvalidQueryError):
        fix(context, FixQuery(error="  \n"))


def test_fix_omits_declined_and_unrelated_steps(world: World) -> None:
    declined = gives(
        "b2",
        "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it "
        "was a file edit, the new_string was NOT written to the file). STOP what you are doing and wait "
        "for the user to tell you how to proceed.",
        "2026-11-18T09:00:21.000Z",
        fails=True,
    )
    world.transcript(
        "5e55-0001",
        says("user", "Start the tide gauge.", uuid="u1", at=BEGAN),
        calls("b1", "Bash", "2026-11-18T09:00:10.000Z", command="gauge serve --port 7070"),
        gives(
            "b1",
            "Exit code 1\nERROR: BuoyMissing: no buoy in harbour.toml",
            "2026-11-18T09:00:11.000Z",
            fails=True,
        ),
        calls("b2", "Bash", "2026-11-18T09:00:20.000Z", command="gauge reset --all"),
        declined,
        calls("b3", "Bash", "2026-11-18T09:00:30.000Z", command="prettier --write docs/menu.md"),
        gives("b3", "done", "2026-11-18T09:00:31.000Z"),
        calls(
            "b4",
            "Edit",
            "2026-11-18T09:00:40.000Z",
            file_path="/code/acme-billing/harbour.toml",
            old_string="a",
            new_string="b",
        ),
        gives("b4", "edited", "2026-11-18T09:00:41.000Z"),
        calls("b5", "Bash", "2026-11-18T09:00:50.000Z", command="gauge serve --port 7070"),
        gives("b5", "listening", "2026-11-18T09:00:51.000Z"),
    )
    with opened(world) as (memory, context):
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
        says("user", f"It prints this:\n{log}", uuid="u1", at=BEGAN),
        says("assistant", "The broker was down; it listens again after a restart.", uuid="a1"),
        says("user", f"Another one, never answered:\n{log}", uuid="u2", session="5e55-0001"),
    )
    with opened(world) as (memory, context):
        memory.ingest(extract=False, vectors=False)
        talk = fix(context, FixQuery(error=log)).talk
    assert [hit.turn.id for hit in talk] == ["a1"]


def test_forgetting_removes_file_history_and_errors(world: World) -> None:
    bakery(world)
    with opened(world) as (memory, context):
        memory.ingest()
        memory.forget(memory.plan_forgetting(sessions=["5e55-0001"]))
        assert did(context, DidQuery(path="dough.py")).paths == ()
        assert fix(context, FixQuery(error=ERROR)).troubles == ()
    assert b"dough.py" not in b"".join(path.read_bytes() for path in world.home.glob("nacre.db*"))


def test_rebuild_restores_the_file_history(world: World) -> None:
    bakery(world)
    with opened(world) as (memory, context):
        memory.ingest()
        before = did(context, DidQuery(path="dough.py"))
    rebuild(world.settings(), world.context)
    with opened(world) as (_, context):
        assert did(context, DidQuery(path="dough.py")) == before


def test_scrub_removes_a_new_secret_from_file_history(world: World) -> None:
    world.transcript(
        "5e55-0001",
        says("user", "Show the recipe, please, it must be somewhere.", uuid="u1"),
        calls("a1", "Read", "2026-11-18T09:00:10.000Z", file_path="/code/recipe-SECRETBUNS.md"),
        gives("a1", "no such file: recipe-SECRETBUNS.md", "2026-11-18T09:00:11.000Z", fails=True),
    )
    with opened(world) as (memory, context):
        memory.ingest()
        assert did(context, DidQuery(path="recipe-SECRETBUNS.md", reads=True)).reads == 1
    world.environ |= {"NACRE_REDACTION_PATTERNS": '["SECRETBUNS"]'}
    with opened(world) as (memory, context):
        scrub(context, ScrubOptions())
        assert did(context, DidQuery(path="recipe-SECRETBUNS.md", reads=True)).reads == 0
        assert fix(context, FixQuery(error="no such file: recipe-SECRETBUNS.md")).troubles == ()
    assert b"SECRETBUNS" not in (world.home / "nacre.db").read_bytes()


def test_session_search_can_be_limited_by_aspect_and_role(world: World) -> None:
    bakery(world)
    with opened(world) as (memory, context):
        memory.ingest()

        def found(aspect: str, role: str = "all") -> list[str]:
            result = search_sessions(
                context, RecallQuery("dough tests zinc"), admits=admission(aspect, role)
            )
            return sorted(hit.turn.id for hit in result.turns)

        assert set(found("errors")) == {"u1", "a1", "a7"}
        assert found("errors", "owner") == ["u1"]
        assert set(found("files")) >= {"a2", "a4"}
        assert "u1" not in found("tools")
        assert found("plans") == []


def test_error_search_shows_the_error(world: World) -> None:
    long = " ".join(["We knead the dough for the tests."] * 20)
    bakery(world)
    world.transcript(
        "5e55-0002", says("user", f"{long} It ends with KeyError: 'oven'. {long}", uuid="u9")
    )
    with opened(world) as (memory, context):
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
    with opened(world) as (memory, context):
        memory.ingest()
        pages = [
            search_sessions(context, RecallQuery("loaf dark", limit=3), offset=at) for at in (3, 6)
        ]
        assert [page.truncated for page in pages] == [True, False]
        assert len({hit.turn.id for page in pages for hit in page.turns}) == 4


def test_regex_search_covers_texts_and_tool_output(world: World) -> None:
    bakery(world)
    with opened(world) as (memory, context):
        memory.ingest()
        found = match_turns(context, r"no module named '\w+'", limit=5)
        assert [hit.turn.id for hit in found.turns] == ["a1"]
        assert found.turns[0].turn.trust is Trust.UNTRUSTED, "a tool said it"
        assert "ModuleNotFoundError" in found.turns[0].excerpt
        with pytest.raises(InvalidQueryError):
            match_turns(context, "(", limit=5)


def test_slow_regex_is_abandoned_and_counted(world: World) -> None:
    world.transcript(
        "5e55-0001",
        says("user", "oh ah " * 300 + ".", uuid="u1"),
        says("user", "bread and butter", uuid="u2"),
    )
    with opened(world) as (memory, context):
        memory.ingest()
        found = match_turns(context, r"(.*h){20}\Z|bread", limit=5)
        assert found.given_up == 1
        assert [hit.turn.id for hit in found.turns] == ["u2"]


def test_home_at_another_path_is_never_read(world: World, tmp_path: Path) -> None:
    bakery(world)
    with opened(world) as (memory, context):
        memory.ingest()
        assert did(context, DidQuery(path=str(tmp_path / "dough.py"))).paths == ()
