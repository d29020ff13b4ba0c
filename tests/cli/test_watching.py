"""A watcher at work: what is written is searchable, nothing is lost or doubled, and it ends when it is asked to."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from nacre.care.follow import FORGIVE_SECONDS, Pace, Territory, ask_to_end
from nacre.care.watcher import Watcher, WatchEvent, WatchOptions
from nacre.errors import UnusableStoreError
from nacre.home.home import open_home
from nacre.readers.adapter import Root, read_head
from nacre.readers.registry import find_adapter
from nacre.settings import load_settings
from tests.app.day import Day, differences, held, roots
from tests.cli.conftest import Nacre, command, environment, said
from tests.processes import Processes

PATIENCE_SECONDS = 60


class Following:
    """``nacre admin watch --json`` as a process; what it says is read event by event."""

    def __init__(self, processes: Processes, *options: str) -> None:
        self.process = processes.start(
            command("admin", "watch", "--json", *options),
            env=environment(),
            stdout=subprocess.PIPE,
            text=True,
        )

    def until(self, event: str) -> dict[str, Any]:
        """The next event of that kind; what is between is passed over."""
        assert self.process.stdout
        for line in self.process.stdout:
            found: dict[str, Any] = json.loads(line)
            if found["event"] == event:
                return found
        raise AssertionError(f"it ended before {event!r}")

    def end(self) -> int:
        """Ask it to end; returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=PATIENCE_SECONDS)
        return self.process.returncode


@pytest.fixture
def follow(processes: Processes) -> Iterator[Callable[..., Following]]:
    begun: list[Following] = []

    def start(*options: str) -> Following:
        begun.append(Following(processes, *options))
        begun[-1].until("started")
        return begun[-1]

    yield start
    for one in begun:
        one.end()


def say(
    home: Path, text: str, number: int, *, folder: str = "-code-mill", session: str = "0a"
) -> Path:
    path = home / ".claude" / "projects" / folder / f"{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(said("user", text, number, session=session)) + "\n")
    return path


def found(nacre: Nacre, words: str) -> int:
    return len(nacre("search", words, "--json").json["turns"])


def wait(is_so: Callable[[], bool]) -> None:
    """Until something is so, which is asked again and again."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < deadline, "it never came to that"


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


def test_watcher_reads_at_once_and_ends_its_round_when_it_is_stopped(
    user_home: Path, nacre: Nacre, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("QUIET_SECONDS", "PAUSE_SECONDS"):
        monkeypatch.setattr(f"nacre.care.follow.{name}", 0.0)
    monkeypatch.setattr("nacre.care.watcher.GRACE_SECONDS", 20.0)
    calls, hangs, program = tmp_path / "calls", tmp_path / "hangs", tmp_path / "python"
    program.write_text(
        STAND_IN.format(python=sys.executable, calls=str(calls), hangs=str(hangs)), "utf-8"
    )
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    told: Queue[WatchEvent] = Queue()
    stop = threading.Event()

    def until(kind: str) -> WatchEvent:
        while (event := told.get(timeout=PATIENCE_SECONDS)).kind != kind:
            assert event.kind != "problem", event
        return event

    def follow() -> None:
        context = tmp_path / "CONTEXT.md"
        options = WatchOptions(context=context)
        Watcher(lambda: open_home(load_settings()), options, told.put).run(stop)

    say(user_home, "The millstone is dressed in March", 1)
    watching = threading.Thread(target=follow)
    watching.start()
    try:
        until("started")
        assert until("read").turns == 1
        learned = until("learned")
        assert (learned.memories, learned.vectors_made, learned.vectors_left) == (2, 3, 0)
        (arguments,) = map(json.loads, calls.read_text(encoding="utf-8").splitlines())
        assert arguments[3:] == [
            *("admin", "watch", "--once", "--json", "--background", "--no-read"),
            *("--context", str(tmp_path / "CONTEXT.md"), "--seconds", "20", "--"),
        ]
        hangs.touch()
        say(user_home, "The sluice is closed in April", 2)
        assert until("read").turns == 1
        wait(lambda: calls.read_text(encoding="utf-8").count("\n") == 2)
        assert found(nacre, "sluice") == 1
        assert nacre("admin", "watcher", "status", "--json").json["state"] == "running"
        assert (
            nacre("admin", "watch", "--json", code=4).error["message"].startswith("another watcher")
        )
        assert nacre("admin", "watcher", "stop", "--json").json["state"] == "stopped"
    finally:
        stop.set()
        watching.join()
    stopped = until("stopped")
    assert (stopped.turns, stopped.memories) == (2, 2)
    assert json.loads(calls.read_text(encoding="utf-8").splitlines()[-1]) == ["ended"]
    assert told.empty()


def test_end_of_a_watcher_cannot_be_requested_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "disk").touch()
    with pytest.raises(UnusableStoreError, match="cannot write to") as raised:
        ask_to_end(tmp_path / "disk" / ".nacre")
    assert "nacre admin watcher status" in str(raised.value.hint)


@pytest.mark.parametrize("options", [(), ("--polling",)], ids=["told", "polling"])
def test_what_is_written_is_searchable_and_what_it_teaches_follows(
    user_home: Path,
    follow: Any,
    nacre: Nacre,
    options: tuple[str, ...],
) -> None:
    say(user_home, "The weir is opened at six", 1)
    following = follow(*options)
    wait(lambda: found(nacre, "weir") == 1)
    say(user_home, "We decided to use cast iron for the wheel instead of oak because oak rots.", 2)
    assert following.until("read")["turns"] == 1
    wait(lambda: found(nacre, "oak rots") >= 1)
    assert following.until("learned")["memories"] == 1
    assert nacre("list", "--json").json["total"] == 1
    assert following.end() == 0
    assert nacre("admin", "watcher", "status", "--json", code=1).json["state"] == "stopped"


def test_files_in_folders_that_are_made_just_now_are_found(
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
    wait(lambda: found(nacre, "hopper") == 1)
    assert following.end() == 0


def test_a_tool_that_is_used_for_the_first_time_is_followed(
    user_home: Path, follow: Any, nacre: Nacre
) -> None:
    follow()
    say(user_home, "The weir is opened at six", 1)
    wait(lambda: found(nacre, "weir") == 1)


def test_a_database_that_is_made_anew_is_noticed(
    user_home: Path, follow: Any, nacre: Nacre
) -> None:
    say(user_home, "The weir is opened at six", 1)
    follow()
    wait(lambda: found(nacre, "weir") == 1)
    nacre("admin", "db", "rebuild", "--yes")
    say(user_home, "The granary is locked at night", 2)
    wait(lambda: found(nacre, "granary") >= 1)
    assert nacre("admin", "db", "stats", "--json").json["tools"][0]["turns"] == 2


@pytest.mark.parametrize("once", [True, False], ids=["once", "followed"])
def test_watched_paths_survive_a_rebuild_from_the_vault(
    user_home: Path, tmp_path: Path, follow: Any, nacre: Nacre, once: bool
) -> None:
    written = say(user_home, "The weir is opened at six", 1)
    folder = tmp_path / "talks"
    folder.mkdir()
    written.rename(folder / "talk.jsonl")
    if once:
        nacre("admin", "watch", "--once", str(folder))
    else:
        following = follow(str(folder))
        wait(lambda: found(nacre, "weir") == 1)
        assert following.end() == 0
    for file in (user_home / ".nacre").glob("nacre.db*"):
        file.unlink()
    nacre("admin", "db", "rebuild", "--yes", "--no-vectors")
    assert found(nacre, "weir") == 1


def test_ingesting_beside_a_watcher_reads_nothing_twice(
    user_home: Path, follow: Any, nacre: Nacre
) -> None:
    follow()
    for number in range(5):
        say(user_home, f"Sack {number} stands in the granary", number)
        nacre("ingest")
    wait(lambda: nacre("admin", "db", "stats", "--json").json["tools"][0]["turns"] == 5)
    assert found(nacre, "granary") == 5


def test_what_cannot_be_read_is_told_once_and_stops_nothing(
    user_home: Path, follow: Any, nacre: Nacre
) -> None:
    path = say(user_home, "The weir is opened at six", 1, session="0b")
    path.with_name("odd.jsonl").symlink_to(user_home / "nowhere.jsonl")
    following = follow()
    problem = following.until("problem")
    assert problem["path"].endswith("odd.jsonl")
    wait(lambda: found(nacre, "weir") == 1)
    wait(
        lambda: any(
            "odd.jsonl" in check["detail"]
            for check in nacre("admin", "doctor", "--json").json["checks"]
        )
    )


def test_a_round_reads_learns_and_notes_once_what_was_named(
    user_home: Path, nacre: Nacre, tmp_path: Path
) -> None:
    elsewhere = say(
        tmp_path, "We decided to use cast iron for the wheel instead of oak because oak rots.", 1
    )
    report = nacre("admin", "watch", "--once", str(elsewhere.parent), "--json").json
    assert (report["turns"], len(report["memories"])) == (1, 1)
    assert nacre("admin", "watch", "--once", str(elsewhere.parent), "--json").json["turns"] == 0
    assert (user_home / ".nacre/vault/ledger.jsonl").read_text().count(
        f'"paths": ["{elsewhere.parent}"]'
    ) == 1


def test_a_file_for_agents_is_kept_up_to_date_after_each_round(
    user_home: Path, follow: Any, nacre: Nacre, tmp_path: Path
) -> None:
    named = tmp_path / "CONTEXT.md"
    nacre("store", "The mill runs on two shifts.", "--expiry", "core")
    following = follow("--context", str(named))
    say(user_home, "How many shifts are there?", 1)
    wait(lambda: named.exists() and "two shifts" in named.read_text(encoding="utf-8"))
    assert following.end() == 0


def test_a_dry_run_changes_nothing(user_home: Path, nacre: Nacre) -> None:
    path = say(user_home, "The weir is opened at six", 1)
    told = nacre("admin", "watch", "--dry-run", "--json").json
    assert (told["unread_files"], told["unread_bytes"]) == (1, path.stat().st_size)
    assert {"path": str(path.parents[1]), "tool": "Claude Code", "is_there": True} in told[
        "watched"
    ]
    assert "1 transcript there; 1 transcript" in nacre("admin", "watch", "--dry-run").out
    assert nacre("sessions", "list", "--json").json["lines"] == []


def test_a_path_that_is_not_there_is_named(nacre: Nacre) -> None:
    assert (
        nacre("admin", "watch", "/nowhere/at/all", "--json", code=3).error["message"]
        == "/nowhere/at/all does not exist"
    )


@pytest.mark.parametrize("seed", [4, 5])
def test_of_a_day_of_many_agents_nothing_is_missed_and_nothing_doubled(
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
    assert differences(held(user_home / ".nacre" / "nacre.db"), held(fresh / "nacre.db")) == []


def test_the_log_of_a_database_stands_for_the_database() -> None:
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


def test_a_torn_transcript_that_was_renamed_is_not_taken_for_plain_text(tmp_path: Path) -> None:
    path = tmp_path / "7d9c.jsonl.reset.2026-11-20T10-00-00.000Z"
    path.write_text('{"type": "session", "vers')
    assert find_adapter(read_head(path)) is None


def test_after_sleep_or_a_clock_that_was_set_everything_is_looked_at() -> None:
    for jump in (3_600.0, -3_600.0):
        pace = Pace(0.0, interval=120.0)
        pace.looked(0.0, 0.1, polling=False)
        pace.notice_jump(1_000.0, 1.0)
        assert not pace.is_time("look", 2.0)
        pace.notice_jump(1_000.0 + jump, 2.0)
        assert pace.is_time("look", 2.0)


def test_slow_scans_are_rare_and_hints_add_none() -> None:
    pace = Pace(0.0, interval=120.0)
    pace.looked(0.0, 3.0, polling=False)
    pace.look_soon(3.5)
    assert not pace.is_time("look", 60.0)
    assert pace.is_time("look", 64.0)
    pace.looked(64.0, 67.0, polling=False)
    assert not pace.is_time("look", 300.0)


def test_learning_waits_for_a_pause_but_not_for_ever() -> None:
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


def test_what_fails_is_tried_again_ever_more_seldom() -> None:
    pace, now, pauses = Pace(0.0), 0.0, []
    for _ in range(9):
        pace.failed(now)
        began = now
        while not pace.is_time("retry", now):
            now += 1.0
        pauses.append(now - began)
    assert pauses[:4] == [5.0, 10.0, 20.0, 40.0]
    assert pauses[-1] == 300.0 < FORGIVE_SECONDS
