"""The commands ``nacre log``, ``diff``, ``undo`` and ``commit``."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Nacre, findings
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
    return next(
        str(operation["id"]) for operation in operations(nacre) if operation["action"] == action
    )


def test_log_shows_operations_and_uncommitted_changes(nacre: Nacre, lamp: str) -> None:
    nacre("store", "Tea is served at four", "--project", "kitchen")
    assert [operation["action"] for operation in operations(nacre)] == ["store", "update", "store"]
    assert [operation["action"] for operation in operations(nacre, "Lamp")] == ["update", "store"]
    assert [operation["subject"] for operation in operations(nacre, "--project", "kitchen")] == [
        "Tea is served at four"
    ]
    assert [operation["subject"] for operation in operations(nacre, "--action", "update")] == [
        "Lamp"
    ]
    assert operations(nacre, "--action", "dream") == []
    assert operations(nacre)[1]["why"] == "content, tags"
    assert "not committed yet" in nacre("log").out
    nacre("admin", "commit")
    assert all(operation["committed"] for operation in operations(nacre))
    assert "waits" not in nacre("log").out


@pytest.mark.parametrize("is_committed", [False, True])
def test_diff_shows_fields_and_lines_from_journal_and_history(
    nacre: Nacre, lamp: str, is_committed: bool
) -> None:
    if is_committed:
        nacre("admin", "commit")
    answer = nacre("log", "--diff", last(nacre, "update")[-8:], "--json").json
    (change,) = answer["changes"]
    assert change["change"]["memory"] == lamp
    assert {"name": "tags", "before": None, "after": ["light"]} in change["fields"]
    assert change["lines"] == [f"-{GREEN}", f"+{BLUE}"]
    output = nacre("log", "--diff", "Lamp").out
    assert f"-{GREEN}" in output
    assert "tags: light" in output
    assert nacre("log", "--diff").out == output


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
    answer = nacre("show", lamp, "--json").json
    assert (
        answer["memory"]["content"],
        answer["memory"]["tags"],
        answer["memory"]["importance"],
    ) == (
        GREEN,
        [],
        9,
    )


def test_undo_of_a_later_changed_field_names_the_later_operation(nacre: Nacre, lamp: str) -> None:
    update = last(nacre, "update")
    nacre("edit", lamp, "--content", "The lamp in the hall is broken")
    refused = nacre("undo", update, "--json", code=4).error
    assert "Lamp (content)" in refused["message"]
    later = last(nacre, "update")
    assert f"nacre undo {later[-8:]}" in refused["hint"]
    assert nacre("show", lamp, "--json").json["memory"]["content"].endswith("broken")
    nacre("undo", later, "--yes")
    nacre("undo", update, "--yes")
    assert nacre("show", lamp, "--json").json["memory"]["content"] == GREEN


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
    assert [memory["id"] for memory in nacre("list", "--json").json["memories"]] == [old]
    assert nacre("show", new, "--json").json["memory"]["retired"]
    nacre("retire", old, "--yes")
    if is_committed:
        nacre("admin", "commit")
    nacre("undo", last(nacre, "retire"))
    assert [memory["id"] for memory in nacre("list", "--json").json["memories"]] == [old]
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
    outcome = terminal("undo", update, typed="n\n")
    assert "reverts Lamp" in outcome.out or "restores Lamp" in outcome.out
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
        result = subprocess.run(log, cwd=vault, capture_output=True, text=True, check=False)
        return result.stdout.count("Nacre-Operation:")

    wait(lambda: commits() == 2)


@pytest.mark.parametrize("undone", ["retire", "unretire", "store"])
def test_ledger_matches_retirements_after_undo(nacre: Nacre, lamp: str, undone: str) -> None:
    if undone != "store":
        nacre("retire", lamp, "--yes")
    if undone == "unretire":
        nacre("retire", "--restore", lamp)
    nacre("undo", last(nacre, undone))
    assert findings(nacre("admin", "doctor", "--deep", "--json").json) == []
    nacre("undo", last(nacre, "undo"))
    assert findings(nacre("admin", "doctor", "--deep", "--json").json) == []


def test_undo_without_ledger_records_is_not_reported(nacre: Nacre, lamp: str, vault: Path) -> None:
    nacre("retire", lamp, "--yes")
    nacre("undo", last(nacre, "retire"))
    ledger = vault / "ledger.jsonl"
    lines = ledger.read_text().splitlines(keepends=True)
    ledger.write_text("".join(line for line in lines if '"restore"' not in line))
    assert len(ledger.read_text().splitlines()) == len(lines) - 1
    assert findings(nacre("admin", "doctor", "--deep", "--json").json) == []


def test_repeated_undo_reverts_earlier_operations(nacre: Nacre, lamp: str) -> None:
    assert nacre("undo", "--yes", "--json").json["operation"]["action"] == "update"
    assert GREEN in nacre("show", lamp).out
    assert nacre("undo", "--dry-run", "--json").json["operation"]["action"] == "store"
    first = nacre("undo", "--yes", "--json").json
    assert first["operation"]["action"] == "store"
    outcome = nacre("undo", "--yes", code=3)
    assert "there is nothing to undo" in outcome.err
    assert "to revert an undo, give its own id" in outcome.err
    nacre("undo", first["op"])
    assert nacre("undo", "--yes", "--json").json["operation"]["action"] == "store"


def test_undo_without_id_needs_consent_in_scripts(nacre: Nacre, lamp: str) -> None:
    outcome = nacre("undo", code=2)
    assert f"the last operation, update {last(nacre, 'update')[-8:]} (Lamp)" in outcome.err
    assert BLUE in nacre("show", lamp).out


def test_undo_lists_its_steps_once_before_asking(terminal: Nacre, nacre: Nacre, lamp: str) -> None:
    output = terminal("undo", typed="y\n", environ={"NO_COLOR": "1"}).out
    assert output.count("reverts Lamp") + output.count("restores Lamp") == 1
    assert "restored Lamp" not in output
    assert "Undone: " in output
    assert GREEN in nacre("show", lamp).out


def test_forget_commit_has_its_own_message_without_file_names(
    nacre: Nacre, user_home: Path, lamp: str
) -> None:
    nacre("admin", "commit")
    nacre("forget", lamp, "--yes")
    vault = user_home / ".nacre/vault"
    (vault / "note.txt").write_text("mine")
    nacre("admin", "commit")
    message = subprocess.run(
        ["git", "log", "-2", "--format=%s%n%b", "--name-status"],
        cwd=vault,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert [
        line for line in message.splitlines() if line.startswith(("- ", "  path", "D\t", "A\t"))
    ] == [
        "- adopt: note.txt",
        "  path: note.txt",
        "A\tnote.txt",
        "- forget:",
        "D\tglobal/fact/lamp.md",
    ]
    assert {
        (operation["action"], operation["subject"], bool(operation["committed"]))
        for operation in operations(nacre)
    } == {
        ("adopt", "note.txt", True),
        ("forget", None, True),
        ("update", None, True),
        ("store", None, True),
    }


@pytest.mark.parametrize("is_committed", [False, True])
def test_plain_undo_skips_a_forget_and_a_named_one_is_refused(
    nacre: Nacre, lamp: str, is_committed: bool
) -> None:
    nacre("store", "Tea is served at four")
    soup = nacre("store", "Soup is served at six", "--json").json["memory_id"]
    nacre("retire", soup, "--yes")
    nacre("retire", "--restore", soup)
    nacre("forget", "--memory", lamp, "--yes")
    if is_committed:
        nacre("admin", "commit")
    forget = last(nacre, "forget")
    for arguments in (("--yes",), ("--dry-run",)):
        refused = nacre("undo", forget, *arguments, code=4).err
        assert "a forget cannot be undone" in refused
        assert "nacre undo reverts the last operation that can be undone" in refused
    undone = [nacre("undo", "--yes", "--json").json["operation"]["action"] for _ in range(4)]
    assert undone == ["unretire", "retire", "store", "store"]
    assert "there is nothing to undo" in nacre("undo", "--yes", code=3).err
    assert nacre("list", "--json").json["memories"] == []
    if not is_committed:
        emptied = operations(nacre)[-1]["id"]
        assert "is left to undo" in nacre("undo", emptied, code=4).err


def test_undo_never_reverts_the_effects_of_a_forget(nacre: Nacre) -> None:
    nacre("store", "The ledger stores its rows in MongoDB")
    new = nacre("store", "We moved the ledger from MongoDB to PostgreSQL", "--json").json
    nacre("forget", "--memory", new["memory_id"], "--yes")
    assert "a forgetting cannot be undone" in nacre("undo", last(nacre, "forgetting"), code=4).err
    assert "there is nothing to undo" in nacre("undo", "--yes", code=3).err
