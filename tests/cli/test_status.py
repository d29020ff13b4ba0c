"""The home page: what ``nacre`` alone shows on a terminal, and ``nacre status`` everywhere."""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import apsw
import pytest

from nacre.home.home import open_home
from nacre.home.spending import note_call
from nacre.settings import load_settings
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
    """A session of today that decided something, and one of long ago."""
    folder = user_home / ".claude" / "projects" / "-code-acme-billing"
    for session, day, texts in ((SESSION, TODAY, TALK), (OTHER, "2026-01-05", TALK[:2])):
        records = [
            said(role, text, number, session=session, day=day)
            for number, (role, text) in enumerate(texts)
        ]
        write_transcript(folder / f"{session}.jsonl", records)
    nacre("ingest", "--no-vectors")


def listing(home: Path) -> list[tuple[Path, int]]:
    """The files of a home but for those that SQLite reads with, and when they changed."""
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
    shown = terminal(environ=NARROW).out
    for name in ("nacre quickstart", "nacre init", "nacre store"):
        assert f"  {name}" in shown
    told = nacre("status", "--json").json
    assert (told["memories"], told["sessions"], told["today"], told["learned"]) == (0, 0, [], [])
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
    told = nacre("status", "--json").json
    assert (told["wired"], told["not_wired"]) == (["codex"], ["gemini-cli"])
    assert re.search(
        r"connected +codex\n +not connected +gemini-cli: nacre init --host gemini-cli\n",
        terminal(environ=NARROW).out,
    )


@pytest.mark.usefixtures("worked")
def test_status_shows_todays_sessions_and_latest_memories(terminal: Nacre, nacre: Nacre) -> None:
    told = nacre("status", "--json").json
    assert [line["session"]["session"]["native_id"] for line in told["today"]] == [SESSION]
    assert (told["sessions_today"], told["sessions"]) == (1, 2)
    decided, *_ = (one for one in told["learned"] if one["kind"] == "decision")
    shown = terminal(environ=NARROW).out
    assert f"  {SESSION[:8]}" in shown
    assert f"  {decided['id'][-8:]}  decision" in shown
    nacre("retire", decided["id"][-8:], "--yes")
    assert decided["id"] not in [one["id"] for one in nacre("status", "--json").json["learned"]]


def test_status_shows_pending_items_with_their_commands(
    terminal: Nacre, nacre: Nacre, monkeypatch: pytest.MonkeyPatch
) -> None:
    nacre("store", "The ferry to the island leaves at nine in the morning", "--subject", "Ferry")
    monkeypatch.setenv("CLAUDECODE", "1")
    nacre("store", "Gulls are white, and they steal bread")
    monkeypatch.delenv("CLAUDECODE")
    told = nacre("status", "--json").json
    waiting = (told["candidates"], told["doubts"], told["conflicts"], told["writer"]["waiting"])
    assert waiting == (0, 1, 0, 0)
    shown = terminal(environ=NARROW).out
    assert "1 item to review  nacre review" in shown
    assert "proposed: Gulls are white" in shown
    (proposed,) = [one for one in told["learned"] if one["proposed"]]
    nacre("review", "keep", proposed["id"][-8:])
    assert nacre("status", "--json").json["doubts"] == 0


@pytest.mark.usefixtures("worked")
def test_status_offers_five_candidates_a_week(nacre: Nacre, user_home: Path) -> None:
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
    assert nacre("status", "--json").json["candidates"] == 5
    items = nacre("review", "--json").json["items"]
    assert len(items) == 6
    nacre("review", "drop", items[0]["id"], items[1]["id"])
    assert nacre("status", "--json").json["candidates"] == 3
    assert nacre("review", "--json").json["candidates"] == 4


def test_status_includes_unfolded_calls_in_todays_cost(terminal: Nacre, nacre: Nacre) -> None:
    nacre("store", "The keys hang in the hall")
    assert "nothing; no model writes memories" in terminal(environ=NARROW).out
    home = open_home(load_settings())
    now = home.clock()
    for day, cost in ((now.astimezone().date(), 40_000), (datetime(2026, 1, 5).date(), 900_000)):  # noqa: DTZ001 - a day
        note_call(
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
    shown = terminal(environ=NARROW).out
    assert max(map(len, shown.splitlines())) <= 80
    assert "\x1b[" not in shown
    assert "\x1b[" in terminal().out


@pytest.mark.usefixtures("worked")
def test_status_waits_for_no_lock_and_writes_nothing(process: Nacre, user_home: Path) -> None:
    home = user_home / ".nacre"
    before = listing(home)
    writer = apsw.Connection(str(home / "nacre.db"))
    writer.execute("BEGIN IMMEDIATE")
    try:
        told = process("status", "--json", timeout=14).json  # others wait for 15 seconds
    finally:
        writer.execute("ROLLBACK")
        writer.close()
    assert told["sessions"] == 2
    assert listing(home) == before


@pytest.mark.usefixtures("worked")
def test_status_loads_neither_vectors_nor_models() -> None:
    ran = "*(name for name, one in sys.modules.items() if type(one) is type(sys))"
    shown = f"{SHOWN}\nprint({ran}, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", shown], env=environment(), capture_output=True, text=True, check=True
    )
    loaded = set(done.stderr.split())
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
    told = nacre("status", "--json").json
    writer = told["writer"]
    assert (writer["writer"], writer["state"]) == ("ollama:qwen3:8b", "paused")
    assert (writer["tokens_today"], writer["limit"]) == (0, None)
    assert told["writer"]["waiting"] == nacre("writer", "--json").json["waiting"]
    shown = terminal(environ=NARROW).out
    assert "ollama:qwen3:8b: paused" in shown
