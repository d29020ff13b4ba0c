"""``nacre log``, ``diff``, ``undo`` and ``commit``, as people use them."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Nacre
from tests.processes import wait

GREEN, BLUE = "The lamp in the hall is green", "The lamp in the hall is blue"


@pytest.fixture
def vault(user_home: Path) -> Path:
    return user_home / ".nacre" / "vault"


@pytest.fixture
def lamp(nacre: Nacre) -> str:
    """A memory that was stored and changed."""
    memory_id: str = nacre("store", GREEN, "--subject", "Lamp", "--json").json["memory_id"]
    nacre("edit", memory_id, "--content", BLUE, "--tag", "light")
    return memory_id


def operations(nacre: Nacre, *arguments: str) -> list[dict[str, Any]]:
    entries = nacre("log", *arguments, "--json").json["operations"]
    return [entry["operation"] for entry in entries]


def last(nacre: Nacre, action: str) -> str:
    return next(str(one["id"]) for one in operations(nacre) if one["action"] == action)


def test_log_shows_operations_and_uncommitted_changes(nacre: Nacre, lamp: str) -> None:
    nacre("store", "Tea is served at four", "--project", "kitchen")
    assert [one["action"] for one in operations(nacre)] == ["store", "update", "store"]
    assert [one["action"] for one in operations(nacre, "Lamp")] == ["update", "store"]
    assert [one["subject"] for one in operations(nacre, "--project", "kitchen")] == [
        "Tea is served at four"
    ]
    assert [one["subject"] for one in operations(nacre, "--action", "update")] == ["Lamp"]
    assert operations(nacre, "--action", "dream") == []
    assert operations(nacre)[1]["why"] == "content, tags"
    assert "not committed yet" in nacre("log").out
    nacre("admin", "commit")
    assert all(one["committed"] for one in operations(nacre))
    assert "waits" not in nacre("log").out


@pytest.mark.parametrize("is_committed", [False, True])
def test_diff_shows_fields_and_lines_from_journal_and_history(
    nacre: Nacre, lamp: str, is_committed: bool
) -> None:
    if is_committed:
        nacre("admin", "commit")
    told = nacre("log", "--diff", last(nacre, "update")[-8:], "--json").json
    (change,) = told["changes"]
    assert change["change"]["memory"] == lamp
    assert {"name": "tags", "before": None, "after": ["light"]} in change["fields"]
    assert change["lines"] == [f"-{GREEN}", f"+{BLUE}"]
    shown = nacre("log", "--diff", "Lamp").out
    assert f"-{GREEN}" in shown
    assert "tags: light" in shown
    assert nacre("log", "--diff").out == shown


@pytest.mark.parametrize("is_committed", [False, True])
def test_undo_restores_the_file_exactly_and_can_be_undone(
    nacre: Nacre, lamp: str, vault: Path, is_committed: bool
) -> None:
    file = vault / "global/fact/lamp.md"
    before = file.read_bytes()
    file.write_bytes(before.replace(b"tags: [light]", b"tags: [light]  # by hand\nmood: warm"))
    assert operations(nacre)[0]["action"] == "edit"
    if is_committed:
        nacre("admin", "commit")
    planned = nacre("undo", last(nacre, "edit"), "--dry-run", "--json").json
    assert [step["action"] for step in planned["steps"]] == ["bring back"]
    assert planned["op"] is None
    assert b"mood" in file.read_bytes()
    nacre("undo", last(nacre, "edit"))
    assert file.read_bytes() == before
    nacre("undo", last(nacre, "undo"))
    assert b"# by hand\nmood: warm" in file.read_bytes()


def test_undo_preserves_later_changes_of_other_fields(nacre: Nacre, lamp: str) -> None:
    update = last(nacre, "update")
    nacre("edit", lamp, "--importance", "9")
    assert [step["action"] for step in nacre("undo", update, "--json").json["steps"]] == [
        "change back"
    ]
    shown = nacre("show", lamp, "--json").json
    assert (shown["memory"]["content"], shown["memory"]["tags"], shown["memory"]["importance"]) == (
        GREEN,
        [],
        9,
    )


def test_undo_of_a_later_changed_field_is_refused_or_copied(nacre: Nacre, lamp: str) -> None:
    update = last(nacre, "update")
    nacre("edit", lamp, "--content", "The lamp in the hall is broken")
    refused = nacre("undo", update, "--json", code=4).error
    assert "Lamp (content)" in refused["message"]
    assert "--force" in refused["hint"]
    assert nacre("show", lamp, "--json").json["memory"]["content"].endswith("broken")
    nacre("undo", update, "--force")
    contents = {one["content"] for one in nacre("list", "--json").json["memories"]}
    assert contents == {"The lamp in the hall is broken", GREEN}
    assert "alternative_to" in nacre("show", lamp, "--json").out


@pytest.mark.parametrize("is_committed", [False, True])
def test_undo_of_retirement_and_supersession_restores_all_memories(
    nacre: Nacre, is_committed: bool
) -> None:
    old = nacre("store", "The ledger stores its rows in MongoDB", "--json").json["memory_id"]
    new = nacre("store", "We moved the ledger from MongoDB to PostgreSQL", "--json").json[
        "memory_id"
    ]
    assert operations(nacre)[0]["why"] == "replaces The ledger stores its rows in MongoDB"
    if is_committed:
        nacre("admin", "commit")
    nacre("undo", operations(nacre)[0]["id"], "--yes")
    assert [one["id"] for one in nacre("list", "--json").json["memories"]] == [old]
    assert nacre("show", new, "--json").json["memory"]["retired"]
    nacre("retire", old, "--yes")
    if is_committed:
        nacre("admin", "commit")
    nacre("undo", last(nacre, "retire"))
    assert [one["id"] for one in nacre("list", "--json").json["memories"]] == [old]
    assert nacre("undo", last(nacre, "retire"), code=4).err.startswith(
        "error: this operation is already fully undone"
    )


def test_deleted_file_is_restored_by_undo(nacre: Nacre, lamp: str, vault: Path) -> None:
    nacre("admin", "commit")
    file = vault / "global/fact/lamp.md"
    before = file.read_bytes()
    file.unlink()
    nacre("undo", operations(nacre)[0]["id"])
    assert file.read_bytes() == before
    assert not (vault / "retired/global/fact/lamp.md").exists()


def test_unknown_operation_is_an_error(nacre: Nacre, lamp: str) -> None:
    assert nacre("undo", "deadbeef", "--json", code=3).error["hint"].startswith("nacre log shows")
    assert nacre("log", "--diff", "no such thing", "--json", code=3).error["code"] == "not_found"


def test_an_undo_asks_first_on_a_terminal(terminal: Nacre, nacre: Nacre, lamp: str) -> None:
    update = last(nacre, "update")
    asked = terminal("undo", update, typed="n\n")
    assert "reverts Lamp" in asked.out or "restores Lamp" in asked.out
    assert nacre("show", lamp, "--json").json["memory"]["content"] == BLUE
    terminal("undo", update, typed="y\n")
    assert nacre("show", lamp, "--json").json["memory"]["content"] == GREEN


def test_doctor_names_a_secret_excluded_from_history(nacre: Nacre, lamp: str, vault: Path) -> None:
    file = vault / "global/fact/lamp.md"
    file.write_text(
        file.read_text().replace(BLUE, "The code of the lamp is AKIA" + "Q7R2T4W6Y8Z3B5D9")
    )
    nacre("admin", "commit")
    checks = [
        check
        for check in nacre("admin", "doctor", "--json").json["checks"]
        if check["name"] == "history"
    ]
    assert any(
        "global/fact/lamp.md seems to contain a secret" in check["detail"] for check in checks
    )
    assert all(check["hint"] for check in checks if check["state"] != "ok")


def test_first_write_creates_the_repository_and_commits_later(process: Nacre, vault: Path) -> None:
    environ = {
        "NACRE_GIT_BACKGROUND": "true",
        "NACRE_GIT_COMMIT_AFTER_SECONDS": "0",
        "NACRE_EMBEDDING_MODEL": "none",
    }
    process("store", GREEN, environ=environ)
    assert (vault / ".git").is_dir()
    process("store", "Tea is served at four", environ=environ)

    def commits() -> int:
        log = ["git", "log", "--format=%B"]
        done = subprocess.run(log, cwd=vault, capture_output=True, text=True, check=False)
        return done.stdout.count("Nacre-Operation:")

    wait(lambda: commits() == 2)


@pytest.mark.parametrize("undone", ["retire", "unretire", "store"])
def test_ledger_matches_retirements_after_undo(nacre: Nacre, lamp: str, undone: str) -> None:
    if undone != "store":
        nacre("retire", lamp, "--yes")
    if undone == "unretire":
        nacre("retire", "--restore", lamp)
    nacre("undo", last(nacre, undone))
    assert nacre("admin", "doctor", "--deep", "--json").json["findings"] == []
    nacre("undo", last(nacre, "undo"))
    assert nacre("admin", "doctor", "--deep", "--json").json["findings"] == []


def test_undo_without_ledger_records_is_not_reported(nacre: Nacre, lamp: str, vault: Path) -> None:
    nacre("retire", lamp, "--yes")
    nacre("undo", last(nacre, "retire"))
    ledger = vault / "ledger.jsonl"
    lines = ledger.read_text().splitlines(keepends=True)
    ledger.write_text("".join(line for line in lines if '"restore"' not in line))
    assert len(ledger.read_text().splitlines()) == len(lines) - 1
    assert nacre("admin", "doctor", "--deep", "--json").json["findings"] == []


def test_repeated_undo_reverts_earlier_operations(nacre: Nacre, lamp: str) -> None:
    assert nacre("undo", "--yes", "--json").json["operation"]["action"] == "update"
    assert GREEN in nacre("show", lamp).out
    assert nacre("undo", "--dry-run", "--json").json["operation"]["action"] == "store"
    first = nacre("undo", "--yes", "--json").json
    assert first["operation"]["action"] == "store"
    told = nacre("undo", "--yes", code=3)
    assert "there is nothing to undo" in told.err
    assert "to revert an undo, give its own id" in told.err
    nacre("undo", first["op"])
    assert nacre("undo", "--yes", "--json").json["operation"]["action"] == "store"


def test_undo_without_id_needs_consent_in_scripts(nacre: Nacre, lamp: str) -> None:
    told = nacre("undo", code=2)
    assert f"the last operation, update {last(nacre, 'update')[-8:]} (Lamp)" in told.err
    assert BLUE in nacre("show", lamp).out


def test_undo_lists_its_steps_once_before_asking(terminal: Nacre, nacre: Nacre, lamp: str) -> None:
    shown = terminal("undo", typed="y\n", environ={"NO_COLOR": "1"}).out
    assert shown.count("reverts Lamp") + shown.count("restores Lamp") == 1
    assert "restored Lamp" not in shown
    assert "Undone: " in shown
    assert GREEN in nacre("show", lamp).out


def test_forget_commit_has_its_own_message_without_file_names(
    nacre: Nacre, user_home: Path, lamp: str
) -> None:
    nacre("admin", "commit")
    nacre("forget", "--memory", lamp, "--yes")
    vault = user_home / ".nacre/vault"
    (vault / "note.txt").write_text("mine")
    nacre("admin", "commit")
    shown = subprocess.run(
        ["git", "log", "-2", "--format=%s%n%b", "--name-status"],
        cwd=vault,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert [
        line for line in shown.splitlines() if line.startswith(("- ", "  path", "D\t", "A\t"))
    ] == [
        "- adopt: note.txt",
        "  path: note.txt",
        "A\tnote.txt",
        "- forget:",
        "D\tglobal/fact/lamp.md",
    ]
    assert {
        (one["action"], one["subject"], bool(one["committed"])) for one in operations(nacre)
    } == {
        ("adopt", "note.txt", True),
        ("forget", None, True),
        ("update", None, True),
        ("store", None, True),
    }


def test_undo_after_forget_suggests_the_earlier_operation(nacre: Nacre, lamp: str) -> None:
    nacre("store", "Tea is served at four")
    nacre("admin", "commit")
    nacre("forget", "--memory", lamp, "--yes")
    nacre("admin", "commit")
    told = nacre("undo", "--yes", code=4)
    assert "this operation is already fully undone: forget " in told.err
    earlier = last(nacre, "store")
    assert (
        f"nacre undo {earlier[-8:]} reverts the previous operation, store (Tea is served at four)"
        in told.err
    )
    nacre("undo", earlier, "--yes")
