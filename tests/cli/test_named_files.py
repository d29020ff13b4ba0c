"""Output files are new or regular files outside the home; other targets remain unchanged."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Nacre

WRITERS = {
    "export": ("data", "export", "{}", "--force"),
    "backup": ("data", "backup", "create", "{}", "--force"),
    "context": ("context", "--output", "{}"),
}


@pytest.fixture
def home(nacre: Nacre, learned: dict[str, Any], user_home: Path) -> Path:
    nacre("store", "The tide tables are printed in March", "--subject", "Tide tables")
    nacre("retire", "Tide tables", "--yes")
    return user_home / ".nacre"


def write(nacre: Nacre, writer: str, path: Path) -> Any:
    return nacre(*(word.format(path) for word in WRITERS[writer]), "--json", code=4).error


@pytest.mark.parametrize("writer", WRITERS)
def test_pipes_links_and_home_files_are_not_overwritten(
    nacre: Nacre, home: Path, tmp_path: Path, writer: str
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(home / "nacre.db")
    (tmp_path / "nothing").symlink_to(tmp_path / "later")
    (tmp_path / "door").symlink_to(home / "vault", target_is_directory=True)
    (home / "sub").mkdir()
    ours = [
        home / "nacre.db",
        home / "nacre.db-wal",
        home / "new.zip",
        home / "vault" / "ledger.jsonl",
        tmp_path / "door" / "ledger.jsonl",
        tmp_path / "door" / "new.md",
        home / "sub" / ".." / "config.toml",
    ]
    before = (home / "vault" / "ledger.jsonl").read_bytes(), (home / "nacre.db").stat().st_ino
    for path in ours:
        outcome = write(nacre, writer, path)
        assert outcome["code"] == "conflict"
        assert "inside nacre's own home" in outcome["message"]
        assert "outside it" in outcome["hint"]
    assert "not a regular file" in write(nacre, writer, tmp_path / "pipe")["message"]
    for name in ("link", "nothing"):
        assert "is a link to" in write(nacre, writer, tmp_path / name)["message"]
        assert (tmp_path / name).is_symlink()
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert (
        (home / "vault" / "ledger.jsonl").read_bytes(),
        (home / "nacre.db").stat().st_ino,
    ) == before
    assert not (tmp_path / "later").exists()
    assert not (home / "new.zip").exists()


def test_a_database_elsewhere_is_not_replaced(
    nacre: Nacre, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NACRE_DB", str(tmp_path / "other" / "index.db"))
    nacre("list")
    for name in ("index.db", "index.db-wal", "index.db-shm"):
        assert "own home" in write(nacre, "export", tmp_path / "other" / name)["message"]
    assert nacre("list", "--json").json


def test_existing_regular_file_is_replaced_if_allowed(
    nacre: Nacre, home: Path, tmp_path: Path
) -> None:
    for name, writer in (
        ("a.zip", "backup"),
        ("b.jsonl", "export"),
        ("d.md", "context"),
    ):
        path = tmp_path / name
        path.write_text("before")
        nacre(*(word.format(path) for word in WRITERS[writer]))
        assert path.read_bytes() != b"before"
        assert path.stat().st_mode & 0o777 == 0o600


def test_backup_is_not_restored_into_the_home_or_over_files(
    nacre: Nacre, home: Path, tmp_path: Path
) -> None:
    out, pipe = tmp_path / "b.zip", tmp_path / "pipe"
    nacre("data", "backup", "create", str(out))
    os.mkfifo(pipe)
    for target in (home / "vault", home / "new", pipe):
        error = nacre(
            "data", "backup", "restore", str(out), "--to", str(target), "--force", "--json", code=4
        ).error
        assert error["hint"].startswith("give a")
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert nacre("list", "--json").json
