"""The home page: output of ``nacre`` on a terminal and of ``nacre status``."""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import apsw
import pytest

from nacre.base import ids
from nacre.home.home import open_home
from nacre.home.spending import note
from nacre.settings import load_settings
from nacre.setup import chores
from nacre.values.models import Call, Tokens
from tests.cli.conftest import SESSION, TALK, Nacre, environment, said, write_transcript

OTHER = "1a2b3c4d-0000-4000-8000-000000000002"
TODAY = f"{datetime.now(UTC):%Y-%m-%d}"
SHOWN = """
import sys
from contextlib import suppress
from nacre.cli.root import cli
with suppress(SystemExit):
    cli.main(["status", "--json"])
"""
NARROW = {"COLUMNS": "80", "NO_COLOR": "1"}


@pytest.fixture
def worked(nacre: Nacre, user_home: Path) -> None:
    """A session of today with a decision, and an old one."""
    folder = user_home / ".claude" / "projects" / "-code-acme-billing"
    for session, day, texts in ((SESSION, TODAY, TALK), (OTHER, "2026-01-05", TALK[:2])):
        records = [
            said(role, text, number, session=session, day=day)
            for number, (role, text) in enumerate(texts)
        ]
        write_transcript(folder / f"{session}.jsonl", records)
    nacre("ingest", "--no-vectors")


def listing(home: Path) -> list[tuple[Path, int]]:
    """Return a home's files (except SQLite's reader files) and their modification times."""
    ours = (
        path
        for path in home.rglob("*")
        if path.is_file() and not path.name.endswith(("-shm", "-wal"))
    )
    return sorted((path, path.stat().st_mtime_ns) for path in ours)


def test_nacre_without_arguments_shows_home_page_or_help(
    terminal: Nacre, nacre: Nacre, process: Nacre
) -> None:
    nacre("store", "The keys hang in the hall")
    assert "The keys hang in the hall" in terminal().out
    assert terminal("--help").out.startswith("Usage: nacre")
    assert process().out.startswith("Usage: nacre")
    assert nacre("--json", code=2).error["code"] == "usage"


def test_empty_status_explains_first_steps_and_creates_nothing(
    terminal: Nacre, nacre: Nacre, user_home: Path
) -> None:
    output = terminal(environ=NARROW).out
    for name in ("nacre quickstart", "nacre init", "nacre store"):
        assert f"  {name}" in output
    answer = nacre("status", "--json").json
    assert (answer["memories"], answer["sessions"], answer["latest"], answer["learned"]) == (
        0,
        0,
        [],
        [],
    )
    assert not (user_home / ".nacre").exists()


def test_status_names_connected_and_unconnected_tools(
    terminal: Nacre, nacre: Nacre, user_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NACRE_DAEMON_ENABLED", "false")
    for name in (".codex", ".gemini"):
        (user_home / name).mkdir()
    assert "codex, gemini-cli" in terminal(environ=NARROW).out
    nacre("init", "--host", "codex", "--yes")
    nacre("store", "The keys hang in the hall")
    answer = nacre("status", "--json").json
    assert (answer["wired"], answer["not_wired"]) == (["codex"], ["gemini-cli"])
    assert re.search(
        r"connected +codex\n +not connected +gemini-cli: nacre init --host gemini-cli\n",
        terminal(environ=NARROW).out,
    )


@pytest.mark.usefixtures("worked")
def test_status_shows_latest_sessions_and_memories(terminal: Nacre, nacre: Nacre) -> None:
    answer = nacre("status", "--json").json
    latest = [line["session"]["session"]["native_id"] for line in answer["latest"]]
    assert (latest, answer["sessions"]) == ([SESSION, OTHER], 2)
    decided, *_ = (item for item in answer["learned"] if item["kind"] == "decision")
    output = terminal(environ=NARROW).out
    assert f"  {SESSION[:8]}" in output
    assert f"  {decided['id'][-8:]}  decision" in output
    nacre("retire", decided["id"][-8:], "--yes")
    assert decided["id"] not in [item["id"] for item in nacre("status", "--json").json["learned"]]


def test_status_shows_pending_items_with_their_commands(
    terminal: Nacre, nacre: Nacre, monkeypatch: pytest.MonkeyPatch
) -> None:
    nacre("store", "The ferry to the island leaves at nine in the morning", "--subject", "Ferry")
    monkeypatch.setenv("CLAUDECODE", "1")
    nacre("store", "Gulls are white, and they steal bread")
    monkeypatch.delenv("CLAUDECODE")
    answer = nacre("status", "--json").json
    waiting = (
        answer["candidates"],
        answer["doubts"],
        answer["conflicts"],
        answer["writer"]["waiting"],
    )
    assert waiting == (0, 1, 0, 0)
    output = terminal(environ=NARROW).out
    assert "1 item to review  nacre review" in output
    assert "proposed: Gulls are white" in output
    (proposed,) = [item for item in answer["learned"] if item["proposed"]]
    nacre("review", "keep", proposed["id"][-8:])
    assert nacre("status", "--json").json["doubts"] == 0


@pytest.mark.usefixtures("worked")
def test_pending_items_have_the_same_count_everywhere(nacre: Nacre, user_home: Path) -> None:
    records = [
        said(
            "user",
            "Session cookies should be httpOnly, not readable from JavaScript.",
            1,
            session="c0de-1",
        ),
        *(
            said("user", f"We should add the {name} to every report.", 2 + at, session="c0de-1")
            for at, name in enumerate(("depth", "berth", "owner", "keel", "mast"))
        ),
    ]
    write_transcript(
        user_home / ".claude" / "projects" / "-code-acme-billing" / "c0de-1.jsonl", records
    )
    nacre("ingest", "--no-vectors")
    items = nacre("review", "--json").json["items"]
    assert len(items) == 6
    nacre("review", "drop", items[0]["id"])
    counted = [nacre(*words, "--json").json["candidates"] for words in (("status",), ("review",))]
    assert counted == [5, 5]
    assert "5 items to review  nacre review" in nacre("status").out
    assert "5 of 5 items" in nacre("review").out
    checks = nacre("admin", "doctor", "--json", code=None).json["checks"]
    assert [check["detail"] for check in checks if check["name"] == "review"] == ["5 to review"]
    assert not any("candidates" in check["detail"] for check in checks)
    nacre("store", "The ferry leaves at nine in the morning", "--subject", "Ferry")
    nacre("review", "feedback", "Ferry", "--bad")
    assert "6 items to review" in nacre("status").out
    checks = nacre("admin", "doctor", "--json", code=None).json["checks"]
    assert [check["detail"] for check in checks if check["name"] == "review"] == ["6 to review"]


def test_status_includes_unfolded_calls_in_todays_cost(terminal: Nacre, nacre: Nacre) -> None:
    nacre("store", "The keys hang in the hall")
    assert "nothing; no model writes memories" in terminal(environ=NARROW).out
    home = open_home(load_settings())
    now = home.clock()
    for day, cost in ((now.astimezone().date(), 40_000), (datetime(2026, 1, 5).date(), 900_000)):  # noqa: DTZ001 - a day
        note(
            home,
            Call(home.ids(), now, day, "deep", "fake:one", False, Tokens(), cost, outcome="done"),
        )
    home.close()
    assert nacre("status", "--json").json["cost"] == 40_000
    nacre("writer", "cost")
    assert nacre("status", "--json").json["cost"] == 40_000
    assert "$0.04" in terminal(environ=NARROW).out


@pytest.mark.usefixtures("worked")
def test_status_fits_eighty_columns_and_respects_no_color(terminal: Nacre, nacre: Nacre) -> None:
    nacre(
        "store",
        "A long memory: " + "the harbour master keeps the log of all ships that come and go. " * 4,
    )
    output = terminal(environ=NARROW).out
    assert max(map(len, output.splitlines())) <= 80
    assert "\x1b[" not in output
    assert "\x1b[" in terminal().out


@pytest.mark.usefixtures("worked")
def test_status_waits_for_no_lock_and_writes_nothing(process: Nacre, user_home: Path) -> None:
    home = user_home / ".nacre"
    before = listing(home)
    writer = apsw.Connection(str(home / "nacre.db"))
    writer.execute("BEGIN IMMEDIATE")
    try:
        answer = process("status", "--json", timeout=14).json  # other commands wait for 15 seconds
    finally:
        writer.execute("ROLLBACK")
        writer.close()
    assert answer["sessions"] == 2
    assert listing(home) == before


@pytest.mark.usefixtures("worked")
def test_status_of_a_home_with_memories_loads_neither_vectors_nor_models(nacre: Nacre) -> None:
    nacre("store", "The keys hang in the hall")
    nacre("store", "The ferry leaves at nine")
    ran = "*(name for name, one in sys.modules.items() if type(one) is type(sys))"
    text = f"{SHOWN}\nprint({ran}, file=sys.stderr)"
    result = subprocess.run(
        [sys.executable, "-c", text], env=environment(), capture_output=True, text=True, check=True
    )
    loaded = set(result.stderr.split())
    assert "nacre.care.health" in loaded
    assert not loaded & {"numpy", "nacre.recall.recall", "nacre.learn.learn", "nacre.memories.edit"}


def test_status_shows_writer_state_and_pending_sessions(
    terminal: Nacre, nacre: Nacre, user_home: Path
) -> None:
    nacre("writer", "set", "ollama:qwen3:8b")
    records = [said(role, text, number, day=TODAY) for number, (role, text) in enumerate(TALK)]
    write_transcript(
        user_home / ".claude" / "projects" / "-code-acme-billing" / f"{SESSION}.jsonl", records
    )
    nacre("writer", "pause")
    nacre("ingest", "--no-vectors")
    answer = nacre("status", "--json").json
    writer = answer["writer"]
    assert (writer["writer"], writer["state"]) == ("ollama:qwen3:8b", "paused")
    assert (writer["tokens_today"], writer["limit"]) == (0, None)
    assert answer["writer"]["waiting"] == nacre("writer", "--json").json["waiting"]
    output = terminal(environ=NARROW).out
    assert "ollama:qwen3:8b: paused" in output


def test_status_of_a_home_with_few_memories_tells_its_story(
    terminal: Nacre, nacre: Nacre, user_home: Path
) -> None:
    for number in range(4):
        session = f"{number}b2c3d4e-0000-4000-8000-000000000002"
        texts = (("user", f"Why does the mooring ledger fail on quay {number}?"), TALK[1])
        records = [
            said(role, text, at, session=session, day="2026-01-05")
            for at, (role, text) in enumerate(texts)
        ]
        write_transcript(user_home / ".claude/projects/-code-quay" / f"{session}.jsonl", records)
    nacre("ingest", "--no-vectors")
    answer = nacre("status", "--json").json
    assert answer["sources"] == {"claude-code": 4}
    assert len(answer["story"]["sessions"]) == 4
    output = terminal(environ=NARROW).out
    assert "claude-code (4)" in output
    assert "Why does the mooring ledger fail" in output.partition("Latest sessions")[2]
    ((question, confidence),) = answer["story"]["questions"].items()
    assert question == "What did we say about the mooring ledger?"
    assert f'nacre recall "{question}"' in output
    assert f"  {confidence} " in nacre("recall", question).out
    assert len(output.splitlines()) <= 40


@pytest.mark.usefixtures("worked")
def test_status_lists_faults_with_their_remedy(terminal: Nacre, user_home: Path) -> None:
    assert "Faults" not in terminal(environ=NARROW).out
    chore = chores.Chore("handoff", at=ids.utc_now().timestamp(), note="the disk is full")
    chores.put(user_home / ".nacre", chore)
    (waiting,) = (user_home / ".nacre" / "run" / "chores").glob("*.json")
    (waiting.parent / "given-up").mkdir()
    waiting.rename(waiting.parent / "given-up" / waiting.name)
    output = terminal(environ=NARROW).out.partition("Faults")[2]
    assert "1 abandoned; the last one, handoff: the disk is full" in " ".join(output.split())
    assert "given-up" in output
