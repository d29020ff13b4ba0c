"""Damage is reported with a repair that works."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Nacre, findings

DEEP = b'{"op":' + b"[" * 100_000


@pytest.fixture
def home(nacre: Nacre, learned: dict[str, Any], user_home: Path) -> Path:
    nacre("store", "The orchard has forty trees", "--subject", "Orchard", "--tag", "garden")
    nacre("retire", "Orchard", "--yes")
    nacre("store", "The pond is two metres deep", "--subject", "Pond")
    nacre("recall", "how deep is the pond")
    return user_home / ".nacre"


def spoil(home: Path, *statements: str) -> None:
    with closing(sqlite3.connect(home / "nacre.db", isolation_level=None)) as database:
        for statement in statements:
            database.execute(statement.replace("BAD", BAD))


BAD = "CAST(x'fffe41' AS TEXT)"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE transcript_cursors SET path = BAD",
        "UPDATE memories SET content = BAD",
        "UPDATE sessions SET title = BAD",
        "UPDATE vault_files SET path = BAD WHERE path LIKE '%pond%'",
        "UPDATE operations SET subject = BAD",
        "UPDATE turns SET text = BAD",
        "UPDATE turns_fts_config SET v = NULL",
        "UPDATE transcript_cursors SET unknown = '[['",
        "UPDATE memories SET kind = 'rumour'",
        "UPDATE memories SET triggers = '{'",
        "DROP TABLE turns_parts_config",
        "INSERT INTO intents (action, path, document) VALUES ('write', 'global/fact/x.md', BAD)",
    ],
)
def test_unreadable_rows_are_reported_and_rebuilt(nacre: Nacre, home: Path, statement: str) -> None:
    before = nacre("list", "--all", "--json").json["memories"]
    spoil(home, statement)
    result = nacre("admin", "doctor", "--deep", "--json", code=1).json
    repairs = [finding["hint"] for finding in findings(result) if finding["state"] == "failure"]
    assert any("nacre admin db rebuild" in repair for repair in repairs)
    assert nacre("admin", "doctor", "--json", code=None).json["checks"]
    for command in (("list",), ("recall", "pond"), ("ingest",), ("log",)):
        answer = nacre(*command, "--json", code=None)
        assert answer.code == 0 or "nacre admin db rebuild" in answer.error["hint"]
    nacre("admin", "db", "rebuild", "--yes")
    assert nacre("admin", "doctor", "--deep", "--json").json["ok"] is True
    after = nacre("list", "--all", "--json").json["memories"]
    assert {(item["id"], item["content"]) for item in after} == {
        (item["id"], item["content"]) for item in before
    }


def test_rebuild_drops_unreadable_model_records(nacre: Nacre, home: Path) -> None:
    question = "INSERT INTO questions (id, at, outcome, body)"
    spoil(home, "INSERT INTO model_health (model, until, told) VALUES ('m:1', 0, BAD)")
    spoil(home, f"{question} VALUES ('q', unixepoch() * 1000, 'nothing found', '[3]')")
    answer = nacre("admin", "db", "rebuild", "--yes", "--json").json
    assert [
        problem
        for problem in answer["problems"]
        if "model failures could not be read" in problem["message"]
    ]
    assert [
        problem
        for problem in answer["problems"]
        if "questions could not be read" in problem["message"]
    ]
    assert nacre("writer", "traces", "--json").json
    assert nacre("admin", "doctor", "--deep", "--json").json["ok"] is True


def test_deeply_nested_ledger_line_blocks_nothing(nacre: Nacre, home: Path, tmp_path: Path) -> None:
    ledger = home / "vault" / "ledger.jsonl"
    ledger.write_bytes(ledger.read_bytes() + DEEP + b"\n")
    nacre("sync", "--remote", str(_remote(tmp_path)))
    nacre("sync")
    nacre("admin", "scrub", "--yes")
    nacre("store", "The gate squeaks", "--subject", "Gate")
    nacre("data", "export", str(tmp_path / "all.jsonl"))
    nacre("data", "backup", "create", str(tmp_path / "b.zip"))
    (problems,) = findings(nacre("admin", "doctor", "--deep", "--json").json)
    assert "of ledger.jsonl is not an entry" in problems["detail"]
    ledger.write_bytes(
        b"".join(line for line in ledger.read_bytes().splitlines(True) if not line.startswith(DEEP))
    )
    assert findings(nacre("admin", "doctor", "--deep", "--json").json) == []


def test_deeply_nested_lines_in_spools_and_exports_are_skipped(
    nacre: Nacre, home: Path, tmp_path: Path
) -> None:
    out = tmp_path / "all.jsonl"
    nacre("data", "export", str(out))
    out.write_bytes(out.read_bytes() + DEEP + b"\n")
    for spool in ("usage.jsonl", "notes.jsonl", "hosts/wiring.json"):
        (home / spool).parent.mkdir(exist_ok=True)
        (home / spool).write_bytes(DEEP + b"\n")
    nacre("data", "import", str(out), "--yes", code=None)
    assert nacre("admin", "doctor", "--json", code=None).json["checks"]
    assert nacre("recall", "pond", "--json").json["hits"]
    chores = home / "run" / "chores"
    chores.mkdir(parents=True, exist_ok=True)
    (chores / f"{1:020d}-1-0.json").write_bytes(
        json.dumps({"kind": "ended", "more": 1}).encode()[:-1] + b',"x":' + DEEP
    )
    nacre("chores")


def _remote(folder: Path) -> Path:
    remote = folder / "remote.git"
    subprocess.run(["git", "init", "--quiet", "--bare", str(remote)], check=True)
    return remote


def test_key_of_a_missing_project_affects_nothing(nacre: Nacre, home: Path) -> None:
    spoil(home, "UPDATE project_keys SET project = 'nothing'")
    answer = nacre("admin", "doctor", "--deep", "--json", code=1).json
    assert [finding["hint"] for finding in findings(answer)] == [
        "nacre admin doctor --deep --repair"
    ]
    assert findings(nacre("admin", "doctor", "--deep", "--repair", "--json").json) == []


def test_unreadable_index_notes_block_nothing(nacre: Nacre, home: Path, tmp_path: Path) -> None:
    nacre("sync", "--remote", str(_remote(tmp_path)))
    nacre("admin", "doctor")
    spoil(home, "UPDATE git_state SET value = '[' WHERE key = 'sync'", "DELETE FROM usage_values")
    for value in ("'[['", "'[3]'", "'{}'", "'[\"x\", [1]]'"):
        (home / "usage.0000.taken").write_text('{"at": 17, "ids": []}', encoding="utf-8")
        for key in ("folding usage.0000.taken", "sitting"):
            spoil(
                home,
                f"INSERT OR REPLACE INTO usage_values (key, value) VALUES ('{key}', {value})",  # noqa: S608
            )
        nacre("recall", "pond")
        assert nacre("admin", "doctor", "--json").json["ok"] is True
        assert not (home / "usage.0000.taken").exists()
    nacre("sync")
    assert nacre("admin", "doctor", "--deep", "--json").json["ok"] is True
