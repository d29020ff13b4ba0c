"""The command ``nacre sync``."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.conftest import Nacre

MILL = "The mill grinds on Mondays"


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    folder = tmp_path / "memories.git"
    subprocess.run(
        ["git", "init", "--quiet", "--bare", "--initial-branch=main", str(folder)], check=True
    )
    return folder


def log_of(remote: Path) -> str:
    result = subprocess.run(
        ["git", "-C", str(remote), "log", "--format=%B", "main"], capture_output=True, text=True
    )
    return result.stdout


def second_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NACRE_HOME", str(tmp_path / "second" / ".nacre"))
    (tmp_path / "second").mkdir(exist_ok=True)


def test_missing_remote_suggests_the_command(nacre: Nacre) -> None:
    nacre("store", MILL)
    outcome = nacre("sync")
    assert "No remote is set up" in outcome.out
    assert "nacre sync --remote URL" in outcome.out
    assert nacre("sync", "--json").json["state"] == "no_remote"


def test_two_homes_sync_through_a_remote(
    nacre: Nacre, remote: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nacre("store", MILL, "--subject", "Mill")
    assert (
        "would send 1 operation" in nacre("sync", "--dry-run", "--remote", str(remote)).out.lower()
    )
    assert log_of(remote) == ""
    assert "Sent 1 operation" in nacre("sync", "--remote", str(remote)).out
    nacre("edit", "Mill", "--content", "The mill grinds on Tuesdays")
    first = os.environ["NACRE_HOME"]
    second_home(tmp_path, monkeypatch)
    nacre("sync", "--remote", str(remote))
    assert MILL in nacre("list").out
    nacre("edit", "Mill", "--content", "The mill grinds on Fridays")
    nacre("sync")
    monkeypatch.setenv("NACRE_HOME", first)
    planned = nacre("sync", "--dry-run", "--json").json
    assert (planned["state"], planned["received"] > 0) == ("planned", True)
    answer = nacre("sync", "--json").json
    (note,) = answer["notes"]
    assert (answer["state"], answer["sent"], note["outcome"], note["fields"]) == (
        "synced",
        1,
        "kept_twice",
        ["body"],
    )
    assert {"The mill grinds on Tuesdays", "The mill grinds on Fridays"} == {
        memory["content"] for memory in nacre("list", "--json").json["memories"]
    }
    assert "Up to date" in nacre("sync").out


def test_memory_kept_twice_is_reported(
    nacre: Nacre, remote: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nacre("store", MILL, "--subject", "Mill")
    nacre("sync", "--remote", str(remote))
    first = os.environ["NACRE_HOME"]
    second_home(tmp_path, monkeypatch)
    nacre("sync", "--remote", str(remote))
    nacre("edit", "Mill", "--content", "The mill grinds on Fridays")
    nacre("sync")
    monkeypatch.setenv("NACRE_HOME", first)
    nacre("edit", "Mill", "--content", "The mill grinds on Tuesdays")
    output = nacre("sync").out
    assert "kept twice: Mill" in output
    assert "global/fact/mill-2.md" in output


def test_refusals_have_messages_codes_and_remedies(
    nacre: Nacre, remote: Path, tmp_path: Path
) -> None:
    nacre("store", MILL)
    error = nacre("sync", "--remote", "https://me:secret@example.org/x.git", "--json", code=2).error
    assert "password" in error["message"]
    assert "secret" not in error["message"]
    away = nacre(
        "sync", "--remote", "http://127.0.0.1:1/x.git", "--timeout", "5", "--json", code=5
    ).error
    assert away["code"] == "remote_unreachable"
    assert "cannot be reached" in nacre("admin", "doctor").out
    nacre("sync", "--remote", str(remote))
    assert "cannot be reached" not in nacre("admin", "doctor").out


def test_quiet_sync_reports_failures_only_in_doctor(nacre: Nacre, remote: Path) -> None:
    nacre("store", MILL)
    nacre("sync", "--remote", str(remote))
    remote.rename(remote.with_name("away.git"))
    nacre("store", "The bridge opens at eight")
    outcome = nacre("sync", "--quiet")
    assert (outcome.out, outcome.err) == ("", "")
    assert "no repository at the remote" in " ".join(nacre("admin", "doctor").out.split())


def test_automatic_sync_starts_after_commands_without_waiting(
    nacre: Nacre, process: Nacre, remote: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nacre("sync", "--remote", str(remote))
    lock = Path(os.environ["NACRE_HOME"]) / "sync.lock"
    os.utime(lock, (1, 1))
    for name in ("NACRE_SYNC_AUTO", "NACRE_GIT_BACKGROUND"):
        monkeypatch.setenv(name, "true")
    process("store", MILL)
    give_up = time.monotonic() + 60
    while MILL not in log_of(remote) and time.monotonic() < give_up:
        time.sleep(0.05)
    assert MILL in log_of(remote)
    before = lock.stat().st_mtime_ns
    process("list")
    assert lock.stat().st_mtime_ns == before


def test_persistent_sync_failures_are_reported_once(
    nacre: Nacre, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import json

    from nacre.home.home import open_home
    from nacre.settings import load_settings

    nacre("sync", "--remote", str(remote))
    context = open_home(load_settings())
    failed = {
        "at": "2026-01-03T00:00:00Z",
        "failing_since": "2026-01-01T00:00:00Z",
        "message": "away",
        "hint": "wait",
    }
    with context.database.transaction():
        context.journal.set_git_state("sync", json.dumps(failed))
    context.database.close()
    monkeypatch.setenv("NACRE_SYNC_AUTO", "true")
    assert "syncing has failed since 2026-01-01" in nacre("list").err
    assert "syncing" not in nacre("list").err
