"""``doctor --deep`` finds damage, names the repair, and repairs safe cases."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from nacre.vault.files import Vault
from tests.cli.conftest import Nacre, findings, said, write_transcript

Break = Callable[[Path], object]


def execute(sql: str) -> Break:
    """Change the database behind nacre's back."""

    def run(home: Path) -> None:
        connection = apsw.Connection(str(home / "nacre.db"))
        connection.execute(sql).fetchall()
        connection.close()

    return run


def edit_without_a_trace(home: Path) -> None:
    """Edit a file without changing its indexed times and size, like a faulty file system."""
    path = next((home / "vault").rglob("deploys.md"))
    path.write_text(path.read_text().replace("Fridays", "Mondays"), encoding="utf-8")
    name = path.relative_to(home / "vault").as_posix()
    now = Vault(home / "vault").stat(name)
    connection = apsw.Connection(str(home / "nacre.db"))
    connection.execute("UPDATE vault_files SET mtime_ns = ? WHERE path = ?", (now.mtime_ns, name))
    connection.close()


def append_to_ledger(line: str) -> Break:
    def run(home: Path) -> None:
        with (home / "vault/ledger.jsonl").open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")

    return run


def say_it_was_retired(home: Path) -> None:
    memory = (
        apsw.Connection(str(home / "nacre.db"))
        .execute("SELECT id FROM active_memories LIMIT 1")
        .get
    )
    entry = {"op": "op-1", "at": "2026-11-20T12:00:00Z", "action": "retire", "memory": memory}
    append_to_ledger(json.dumps(entry))(home)


def forget_the_ledger(home: Path) -> None:
    ledger = home / "vault/ledger.jsonl"
    ledger.write_text(
        "".join(line for line in ledger.read_text().splitlines(True) if '"retire"' not in line),
        encoding="utf-8",
    )


BREAKS: dict[str, tuple[str, Break, str, bool]] = {
    "a row says something else": (
        "vault",
        execute("UPDATE memories SET content = 'On Sundays' WHERE subject = 'Deploys'"),
        "content",
        True,
    ),
    "a tag is lost": ("vault", execute("DELETE FROM tags"), "tags", True),
    "a row is lost": (
        "vault",
        execute("DELETE FROM memories WHERE subject = 'Deploys'"),
        "deploys.md",
        True,
    ),
    "a file changed without a new time": (
        "vault",
        edit_without_a_trace,
        "without a new modification time",
        True,
    ),
    "a row without a file": (
        "vault",
        lambda home: (
            execute("DELETE FROM vault_files WHERE path LIKE '%deploys.md'")(home),
            next((home / "vault").rglob("deploys.md")).unlink(),
        ),
        "has no file",
        True,
    ),
    "a link to nothing": (
        "links",
        lambda home: next((home / "vault").rglob("deploys.md")).write_text(
            next((home / "vault").rglob("deploys.md"))
            .read_text()
            .replace(
                "\n---\n",
                "\nlinks: [{rel: part_of, to: 0198f3c2-7d1a-7c3e-9b1e-5f0c2a4d6e81}]\n---\n",
                1,
            )
        ),
        "dangling link",
        False,
    ),
    "a half succession": (
        "links",
        execute("DELETE FROM links WHERE rel = 'supersedes'"),
        "does not confirm it",
        True,
    ),
    "text of a memory is lost": (
        "full text",
        execute("DELETE FROM memories_fts"),
        "are missing from the full text",
        True,
    ),
    "text of turns is lost": (
        "full text",
        execute("DELETE FROM turns_fts WHERE rowid < 3"),
        "2 turns",
        True,
    ),
    "text of nothing": (
        "full text",
        execute("INSERT INTO memories_fts (rowid, subject) VALUES (999, 'x')"),
        "are orphaned",
        True,
    ),
    "a project's key is lost": (
        "projects",
        execute("DELETE FROM project_keys WHERE key = 'root'"),
        "root /code/acme-billing",
        True,
    ),
    "a project has a key too many": (
        "projects",
        execute("INSERT INTO project_keys SELECT 'root', '/', id FROM projects"),
        "root /",
        True,
    ),
    "the ledger retires what holds": ("ledger", say_it_was_retired, "retired in the ledger", False),
    "the ledger forgot a retirement": ("ledger", forget_the_ledger, "not in the ledger", True),
    "a line of the ledger is torn": (
        "ledger",
        append_to_ledger('{"op": "01'),
        "is not an entry",
        False,
    ),
    "a turn is lost": (
        "transcripts",
        execute("DELETE FROM turns WHERE seq = 1"),
        "1 of 6 turns",
        True,
    ),
    "a session is lost": ("transcripts", execute("DELETE FROM sessions"), "6 of 6 turns", True),
    "a session is miscounted": (
        "transcripts",
        execute("UPDATE sessions SET turns = 99"),
        "wrong count of turns",
        True,
    ),
    "a write cannot be done": (
        "writes",
        execute(
            "INSERT INTO intents (action, path, document) VALUES ('write', 'global/fact', 'x')"
        ),
        "a write of global/fact is pending",
        False,
    ),
    "a row refers to nothing": (
        "database",
        execute("INSERT INTO confirmations (memory, ordinal, at) VALUES ('x', 0, 0)"),
        "orphaned",
        False,
    ),
}


@pytest.fixture
def filled_home(nacre: Nacre, learned: dict[str, Any], user_home: Path) -> Path:
    """A home with memories in all states and without problems."""
    nacre("store", "Deploy on Fridays", "--subject", "Deploys", "--tag", "ops")
    nacre("store", "The status page is hosted in Frankfurt", "--subject", "Status page")
    nacre("retire", "Status page", "--yes", "--reason", "closed")
    nacre("store", "The standup is at nine o'clock", "--key", "standup-meeting-time")
    nacre(
        "store",
        "The standup is at ten o'clock now instead of nine",
        "--key",
        "standup-meeting-time",
    )
    answer = nacre("admin", "doctor", "--deep", "--all", "--json").json
    assert findings(answer) == []
    return user_home / ".nacre"


@pytest.mark.parametrize("name", BREAKS)
def test_damage_is_found_with_its_repair(nacre: Nacre, filled_home: Path, name: str) -> None:
    area, break_it, words, mendable = BREAKS[name]
    break_it(filled_home)
    answer = nacre("admin", "doctor", "--deep", "--all", "--json", code=None).json
    problems = [finding for finding in findings(answer) if finding["name"] == area]
    assert any(words in item["detail"] for item in problems), findings(answer)
    assert all(item["hint"] for item in problems)
    assert answer["ok"] is not any(finding["state"] == "failure" for finding in findings(answer))
    if mendable:
        again = nacre("admin", "doctor", "--deep", "--all", "--repair", "--json", code=None).json
        assert "repair" in [check["name"] for check in again["checks"]]
        assert findings(again) == []
        assert nacre("recall", "when do we deploy", "--no-update", "--json").json["hits"]


def test_a_damaged_database_file_is_found(nacre: Nacre, filled_home: Path) -> None:
    connection = apsw.Connection(str(filled_home / "nacre.db"))
    page = connection.execute(
        "SELECT rootpage FROM sqlite_schema WHERE name = 'memories_project'"
    ).get
    size = connection.execute("PRAGMA page_size").get
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()
    with (filled_home / "nacre.db").open("r+b") as file:
        file.seek((page - 1) * size + size // 2)
        file.write(b"\xff" * (size // 2))
    answer = nacre("admin", "doctor", "--deep", "--json", code=1)
    assert "nacre admin db rebuild" in answer.out


def test_missing_git_object_is_found(nacre: Nacre, filled_home: Path) -> None:
    if not shutil.which("git"):
        pytest.skip("git is not installed")
    vault = filled_home / "vault"

    def git(*arguments: str) -> str:
        identity = ("-c", "user.name=T", "-c", "user.email=t@example.org")
        result = subprocess.run(
            ["git", *identity, *arguments], cwd=vault, check=True, capture_output=True, text=True
        )
        return result.stdout.strip()

    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "a state")
    blob = git("rev-parse", "HEAD:ledger.jsonl")
    (vault / ".git/objects" / blob[:2] / blob[2:]).unlink()
    problems = findings(nacre("admin", "doctor", "--deep", "--json", code=1).json)
    assert any(item["name"] == "git" and "missing blob" in item["detail"] for item in problems)


def test_sample_of_transcripts_is_checked_and_all_on_request(nacre: Nacre, user_home: Path) -> None:
    folder = user_home / ".claude" / "projects" / "-code-many"
    for number in range(30):
        session = f"{number:08d}-0000-4000-8000-000000000001"
        write_transcript(
            folder / f"{session}.jsonl",
            [said("user", f"Tell me of thing {number}", 0, session=session)],
        )
    nacre("ingest")
    execute("DELETE FROM turns")(user_home / ".nacre")
    few = findings(nacre("admin", "doctor", "--deep", "--json", code=1).json)
    every = findings(nacre("admin", "doctor", "--deep", "--all", "--json", code=1).json)
    lost = [
        sum("are missing from the index" in item["detail"] for item in found)
        for found in (few, every)
    ]
    assert 10 <= lost[0] <= 20
    assert lost[1] == 30


@pytest.mark.embedding
def test_missing_or_foreign_model_vectors_are_found(nacre: Nacre, user_home: Path) -> None:
    home = user_home / ".nacre"
    nacre("store", "Deploy on Fridays", "--subject", "Deploys")
    nacre("ingest")
    assert findings(nacre("admin", "doctor", "--deep", "--json").json) == []
    execute("UPDATE memory_vectors SET vector = x'0102'")(home)
    assert (
        "size" in findings(nacre("admin", "doctor", "--deep", "--json", code=1).json)[0]["detail"]
    )
    nacre("admin", "doctor", "--deep", "--repair", code=None)
    assert (
        "no vector yet" in findings(nacre("admin", "doctor", "--deep", "--json").json)[0]["detail"]
    )
    nacre("ingest")
    assert findings(nacre("admin", "doctor", "--deep", "--json").json) == []
    execute("UPDATE embedding SET value = 'another' WHERE key = 'model'")(home)
    assert (
        "made by another"
        in findings(nacre("admin", "doctor", "--deep", "--json", code=1).json)[0]["detail"]
    )


@pytest.mark.parametrize("mode", [0o644, 0o666])
def test_deep_check_reports_and_fixes_permissions(
    nacre: Nacre, filled_home: Path, mode: int
) -> None:
    ledger = filled_home / "vault/ledger.jsonl"
    ledger.chmod(mode)
    checks = {
        check["name"]: check
        for check in nacre("admin", "doctor", "--deep", "--json").json["checks"]
    }
    assert checks["permissions"]["state"] == "warning"
    assert "ledger.jsonl" in checks["permissions"]["detail"]
    nacre("admin", "doctor", "--deep", "--repair")
    assert ledger.stat().st_mode & 0o777 == 0o600


def test_files_without_a_creation_date_are_not_reported(nacre: Nacre, filled_home: Path) -> None:
    note = filled_home / "vault/global/fact/tides.md"
    note.write_text("Low water is at noon\n", encoding="utf-8")
    os.utime(note, (1_700_000_000, 1_700_000_000))
    assert (
        nacre("show", "Tides", "--no-update", "--json")
        .json["memory"]["created"]
        .startswith("2023-11-14")
    )
    assert findings(nacre("admin", "doctor", "--deep", "--json").json) == []


def test_deep_check_is_readable_and_all_requires_deep(nacre: Nacre, filled_home: Path) -> None:
    execute("DELETE FROM memories_fts")(filled_home)
    output = nacre("admin", "doctor", "--deep", code=1).out
    assert "missing from the full text index" in output
    assert "nacre admin doctor --deep --repair" in output
    assert nacre("admin", "doctor", "--all", "--json", code=2).error["code"] == "usage"
