"""The daemon follows sessions: new text is searchable without loss or duplicates, and learning runs in parallel."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from nacre.base.ids import utc_now
from nacre.care.autostart import installation
from nacre.care.follow import FORGIVE_SECONDS, Follower, Pace, Territory
from nacre.home.home import open_home
from nacre.readers.adapter import Root, read_head
from nacre.readers.registry import find_adapter
from nacre.settings import load_settings
from tests.app.day import Day, differences, roots, stored_turns
from tests.cli.conftest import Nacre, said
from tests.daemon.conftest import Serving, call_daemon, home
from tests.processes import wait

Serve = Callable[..., Serving]
PATIENCE_SECONDS = 60


@pytest.fixture
def follow(serving: Serve) -> Callable[..., Serving]:
    """``follow()`` starts a daemon that follows sessions."""

    def start(*options: str) -> Serving:
        daemon = serving(*options)
        daemon.until("following the sessions")
        return daemon

    return start


def say(
    home: Path, text: str, number: int, *, folder: str = "-code-mill", session: str = "0a"
) -> Path:
    path = home / ".claude" / "projects" / folder / f"{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(said("user", text, number, session=session)) + "\n")
    return path


def search_hits(nacre: Nacre, words: str) -> int:
    return len(nacre("search", words, "--json").json["turns"])


STAND_IN = """#!{python}
import json, os, signal, sys

def note(words):
    with open({calls!r}, "a") as calls:
        calls.write(json.dumps(words) + "\\n")

def end(*_):
    note(["ended"])
    sys.exit(1)

signal.signal(signal.SIGTERM, end)
note(sys.argv[1:])
if os.path.exists({hangs!r}):
    signal.pause()
counts = {{"files": 0, "sessions": 1, "turns": 0, "vectors_made": 3, "vectors_left": 0}}
print(json.dumps({{**counts, "memories": ["first", "second"]}}))
"""


def test_stopped_follower_reads_promptly_and_finishes_its_round(
    user_home: Path, nacre: Nacre, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("QUIET_SECONDS", "PAUSE_SECONDS"):
        monkeypatch.setattr(f"nacre.care.follow.{name}", 0.0)
    monkeypatch.setattr("nacre.care.follow.GRACE_SECONDS", 20.0)
    calls, hangs, program = tmp_path / "calls", tmp_path / "hangs", tmp_path / "python"
    program.write_text(
        STAND_IN.format(python=sys.executable, calls=str(calls), hangs=str(hangs)), "utf-8"
    )
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    lines: Queue[str] = Queue()
    stop = threading.Event()

    def until(words: str) -> str:
        while not (line := lines.get(timeout=PATIENCE_SECONDS)).startswith(words):
            assert not line.startswith("problem"), line
        return line

    say(user_home, "The millstone is dressed in March", 1)
    settings = load_settings()
    follower = Follower(settings, lambda: open_home(settings), lines.put, utc_now)
    following = threading.Thread(target=follower.run, args=(stop,))
    following.start()
    try:
        until("following the sessions")
        assert until("read") == "read 1 turn of claude-code"
        assert until("learned") == "learned 2 memories; made 3 vectors"
        (arguments,) = map(json.loads, calls.read_text(encoding="utf-8").splitlines())
        assert arguments[3:] == ["ingest", "--json", "--background", "--no-read"]
        hangs.touch()
        say(user_home, "The sluice is closed in April", 2)
        assert until("read") == "read 1 turn of claude-code"
        wait(lambda: calls.read_text(encoding="utf-8").count("\n") == 2)
        assert search_hits(nacre, "sluice") == 1
    finally:
        stop.set()
        following.join()
    assert until("following") == "following stopped after 2 turns and 2 memories"
    assert json.loads(calls.read_text(encoding="utf-8").splitlines()[-1]) == ["ended"]
    assert lines.empty()
    assert (follower.state.turns, follower.state.memories) == (2, 2)


@pytest.mark.parametrize("polls", [False, True], ids=["told", "polling"])
def test_polling_replaces_failing_notifications(
    user_home: Path, nacre: Nacre, monkeypatch: pytest.MonkeyPatch, polls: bool
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("inotify watch limit reached")

    if polls:
        monkeypatch.setattr("nacre.care.follow.watchfiles.watch", fail)
    say(user_home, "The weir is opened at six", 1)
    lines: Queue[str] = Queue()
    stop = threading.Event()
    settings = load_settings()
    settings = settings.having("extraction.enabled", False)
    follower = Follower(settings, lambda: open_home(settings), lines.put, utc_now)
    following = threading.Thread(target=follower.run, args=(stop,))
    following.start()
    try:
        wait(lambda: follower.state.turns == 1)
        wait(lambda: bool(follower.state.why_polling) == polls)
        say(user_home, "The bell rings when the hopper is empty", 2)
        wait(lambda: search_hits(nacre, "hopper") == 1)
    finally:
        stop.set()
        following.join()


def test_followed_turns_are_searchable_and_memories_are_reported(
    user_home: Path, serving: Serve, nacre: Nacre
) -> None:
    say(user_home, "The weir is opened at six", 1)
    daemon = serving()
    daemon.until("following the sessions")
    wait(lambda: search_hits(nacre, "weir") == 1)
    say(user_home, "We decided to use cast iron for the wheel instead of oak because oak rots.", 2)
    daemon.until("learned 1 memory")
    hits = call_daemon("recall", {"text": "what is the wheel made of?"})["hits"]
    assert "cast iron" in hits[0]["memory"]["content"]
    state = call_daemon("hello")["following"]
    assert (state["turns"], state["memories"], state["last_error"]) == (2, 1, None)
    assert "2 turns of 1 transcript read" in nacre("serve", "status").out
    checks = nacre("admin", "doctor", "--json", code=None).json["checks"]
    assert [check["state"] for check in checks if check["name"] == "following"] == ["ok"]
    assert daemon.end() == 0
    assert "following stopped after 2 turns" in daemon.lines[-1]


def test_disabled_following_reads_nothing(serving: Serve, nacre: Nacre) -> None:
    serving(environ={"NACRE_DAEMON_WATCH": "false"})
    wait(lambda: call_daemon("hello")["is_warm"])
    assert call_daemon("hello")["following"] is None
    assert "not followed" in nacre("serve", "status").out


@pytest.mark.skipif(sys.platform != "linux", reason="systemd")
def test_installed_service_unit_starts_a_serving_daemon(serving: Serve, user_home: Path) -> None:
    unit = installation(load_settings()).text()
    line = next(line for line in unit.splitlines() if line.startswith("ExecStart="))
    words = [word.strip('"') for word in line.removeprefix("ExecStart=").split(" ")]
    assert words[-2:] == ["nacre", "serve"]
    assert 'Environment="NACRE_HOME=' in unit
    assert home() == user_home / ".nacre"


def test_files_in_newly_created_folders_are_found(
    user_home: Path, follow: Any, nacre: Nacre
) -> None:
    say(user_home, "The weir is opened at six", 1)
    following = follow()
    say(
        user_home,
        "The bell rings when the hopper is empty",
        2,
        folder="-code-bell/deep/deeper",
        session="0b",
    )
    wait(lambda: search_hits(nacre, "hopper") == 1)
    assert following.end() == 0


def test_tool_used_for_the_first_time_is_followed(
    user_home: Path, follow: Any, nacre: Nacre
) -> None:
    follow()
    say(user_home, "The weir is opened at six", 1)
    wait(lambda: search_hits(nacre, "weir") == 1)


def test_rebuilt_database_is_noticed(user_home: Path, follow: Any, nacre: Nacre) -> None:
    say(user_home, "The weir is opened at six", 1)
    follow()
    wait(lambda: search_hits(nacre, "weir") == 1)
    nacre("admin", "db", "rebuild", "--yes")
    say(user_home, "The granary is locked at night", 2)
    wait(lambda: search_hits(nacre, "granary") >= 1)
    assert nacre("admin", "db", "stats", "--json").json["tools"][0]["turns"] == 2


def test_ingest_during_following_reads_nothing_twice(
    user_home: Path, follow: Any, nacre: Nacre
) -> None:
    follow()
    for number in range(5):
        say(user_home, f"Sack {number} stands in the granary", number)
        nacre("ingest")
    wait(lambda: nacre("admin", "db", "stats", "--json").json["tools"][0]["turns"] == 5)
    assert search_hits(nacre, "granary") == 5


def test_unreadable_file_is_reported_once_and_stops_nothing(
    user_home: Path, follow: Any, nacre: Nacre
) -> None:
    path = say(user_home, "The weir is opened at six", 1, session="0b")
    path.with_name("odd.jsonl").symlink_to(user_home / "nowhere.jsonl")
    daemon = follow()
    assert "odd.jsonl" in daemon.until("problem: ")
    wait(lambda: search_hits(nacre, "weir") == 1)
    checks = nacre("admin", "doctor", "--json", code=None).json["checks"]
    assert any(check["name"] == "following" and "odd.jsonl" in check["detail"] for check in checks)
    assert "odd.jsonl" in nacre("serve", "status").out


def test_following_failure_is_a_daemon_problem(serving: Any, nacre: Nacre) -> None:
    nacre("config", "set", "ingest.roots", '["~no-such-user/transcripts"]')
    daemon = serving()
    daemon.until("RuntimeError")
    wait(lambda: "following failed" in nacre("serve", "status").out)
    checks = nacre("admin", "doctor", "--json", code=None).json["checks"]
    assert any("following failed" in check["detail"] for check in checks)


@pytest.mark.parametrize("seed", [4, 5])
def test_many_agents_a_day_are_followed_without_loss_or_duplicates(
    user_home: Path,
    tmp_path: Path,
    follow: Any,
    process: Nacre,
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
) -> None:
    monkeypatch.setenv("NACRE_INGEST_ROOTS", roots(user_home))
    day = Day(user_home, tmp_path / "attic", seed, sessions=15)
    day.attic.mkdir()
    followings = [follow()]

    def crash() -> None:
        followings[-1].process.kill()
        followings.append(follow())

    day.live(0.0, {0.3: lambda: process("ingest"), 0.6: crash})
    assert followings[-1].end() == 0
    process("ingest")
    day.bring_back()
    fresh = tmp_path / "fresh"
    process("ingest", "--no-extract", environ={"NACRE_HOME": str(fresh)})
    assert (
        differences(
            stored_turns(user_home / ".nacre" / "nacre.db"), stored_turns(fresh / "nacre.db")
        )
        == []
    )


def test_database_log_file_maps_to_its_database() -> None:
    territory = Territory((Root(Path("/code"), ("*/state.db",)),))
    for name in ("state.db", "state.db-wal", "state.db-journal"):
        assert territory.transcript(Path("/code/mill") / name) == Path("/code/mill/state.db")
    assert territory.transcript(Path("/code/mill/other.db-wal")) is None
    assert not territory.is_hint(Path("/code/mill/state.db-shm"))


def test_only_folders_with_transcripts_are_watched(
    tmp_path: Path,
) -> None:
    (tmp_path / "sessions").mkdir()
    (tmp_path / "cache").mkdir()
    territory = Territory((Root(tmp_path, ("sessions/**/*.jsonl", "archive/*.jsonl", "*.json")),))
    assert territory.deep() == [tmp_path / "sessions"]
    assert territory.flat() == [tmp_path]
    assert territory.missing() == [tmp_path / "archive"]


def test_renamed_partial_transcript_is_not_recognised_as_plain_text(tmp_path: Path) -> None:
    path = tmp_path / "7d9c.jsonl.reset.2026-11-20T10-00-00.000Z"
    path.write_text('{"type": "session", "vers')
    assert find_adapter(read_head(path)) is None


def test_slow_scans_are_rare_and_unaffected_by_hints() -> None:
    pace = Pace(0.0, interval=120.0)
    pace.looked(0.0, 3.0, polling=False)
    pace.look_soon(3.5)
    assert not pace.is_time("look", 60.0)
    assert pace.is_time("look", 64.0)
    pace.looked(64.0, 67.0, polling=False)
    assert not pace.is_time("look", 300.0)


def test_learning_waits_for_a_pause_with_a_maximum_delay() -> None:
    pace = Pace(0.0)
    pace.begin_round(0.0)
    pace.learned(1.0, more=False)
    for second in range(20, 40):
        pace.has_read(float(second))
        if pace.is_time_to_learn(second + 0.5):
            break
    assert second == 35
    pace.begin_round(36.0)
    pace.learned(40.0, more=False)
    pace.has_read(40.0)
    assert not pace.is_time_to_learn(44.0)
    assert pace.is_time_to_learn(50.0)


def test_failures_are_retried_with_growing_pauses() -> None:
    pace, now, pauses = Pace(0.0), 0.0, []
    for _ in range(9):
        pace.failed(now)
        began = now
        while not pace.is_time("retry", now):
            now += 1.0
        pauses.append(now - began)
    assert pauses[:4] == [5.0, 10.0, 20.0, 40.0]
    assert pauses[-1] == 300.0 < FORGIVE_SECONDS
