"""A backup contains the complete home, is verified and can be restored; damaged and hostile archives are refused."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nacre.api import open_memory
from tests.cli.conftest import Nacre, findings


@pytest.fixture
def filled_home(nacre: Nacre, learned: dict[str, Any], user_home: Path) -> Path:
    nacre("store", "Deploy on Fridays", "--subject", "Deploys", "--tag", "ops")
    nacre("store", "The status page is hosted in Frankfurt", "--subject", "Status page")
    nacre("retire", "Status page", "--yes", "--reason", "closed")
    nacre("recall", "when do we deploy")
    return user_home / ".nacre"


def failures(answer: Any) -> list[dict[str, Any]]:
    return [check for check in answer["checks"] if check["state"] == "failure"]


def test_restored_backup_equals_the_original(
    nacre: Nacre, filled_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, other = tmp_path / "b.zip", tmp_path / "other"
    answer = nacre("data", "backup", "create", str(out), "--json").json
    assert out.stat().st_mode & 0o777 == 0o600
    assert (answer["bytes"], answer["manifest"]["notes"]) == (out.stat().st_size, [])
    before = nacre("show", "Deploys", "--no-update", "--json").json
    listed = nacre("list", "--json").json
    assert (
        nacre("data", "backup", "restore", str(out), "--to", str(other), "--json").json["kept"]
        is None
    )
    monkeypatch.setenv("NACRE_HOME", str(other))
    after = nacre("show", "Deploys", "--no-update", "--json").json
    assert after.pop("path").removeprefix(str(other)) == before.pop("path").removeprefix(
        str(filled_home)
    )
    assert after == before
    assert before["usage"]["recall_count"] == 1
    assert nacre("list", "--json").json == listed
    assert findings(nacre("admin", "doctor", "--deep", "--all", "--json").json) == []


def test_verify_proves_a_backup_and_changes_nothing(
    nacre: Nacre, filled_home: Path, tmp_path: Path
) -> None:
    out = tmp_path / "b.zip"
    nacre("data", "backup", "create", str(out))
    before = {path: path.read_bytes() for path in filled_home.rglob("*") if path.is_file()}
    answer = nacre("data", "backup", "verify", str(out), "--json").json
    assert answer["ok"] is True
    names = {check["name"] for check in answer["checks"]}
    assert {"archive", "database", "vault", "ledger", "git"} <= names
    assert {path: path.read_bytes() for path in filled_home.rglob("*") if path.is_file()} == before
    assert "all hashes match" in nacre("data", "backup", "verify", str(out)).out


def test_restore_keeps_the_replaced_home(
    nacre: Nacre, terminal: Nacre, filled_home: Path, tmp_path: Path
) -> None:
    out = tmp_path / "b.zip"
    nacre("data", "backup", "create", str(out))
    nacre("store", "Something newer than the backup", "--subject", "Newer")
    assert (
        nacre("data", "backup", "restore", str(out), "--json", code=4).error["code"] == "conflict"
    )
    assert terminal("data", "backup", "restore", str(out), typed="n\n").code == 1
    assert nacre("show", "Newer", "--no-update").out
    answer = nacre("data", "backup", "restore", str(out), "--force", "--json").json
    nacre("show", "Newer", "--no-update", code=3)
    aside = Path(answer["kept"])
    assert list(aside.rglob("newer.md"))
    again = nacre("data", "backup", "restore", str(out), "--force", "--json").json
    assert again["kept"] != answer["kept"]
    assert not [path for path in filled_home.parent.iterdir() if path.name.endswith(".restoring")]


def test_interrupted_restore_is_finished_on_next_open(
    nacre: Nacre, filled_home: Path, tmp_path: Path
) -> None:
    nacre("config", "set", "redaction.patterns", '["pier-[0-9]+"]')
    out = tmp_path / "b.zip"
    nacre("data", "backup", "create", str(out))
    nacre(
        "data",
        "backup",
        "restore",
        str(out),
        "--to",
        str(filled_home.with_name("..nacre.restored")),
    )  # verified, but not yet in place
    nacre("store", "Only the old home knows this")
    filled_home.rename(filled_home.with_name(".nacre.before-restore"))
    nacre("store", "The key of the shed is pier-1234", "--subject", "Shed")
    assert (
        "[REDACTED" in nacre("show", "Shed", "--json").json["memory"]["content"]
    )  # the settings were restored in time
    subjects = {memory["subject"] for memory in nacre("list", "--json").json["memories"]}
    assert "Deploys" in subjects
    assert "Only the old home knows this" not in subjects
    assert not filled_home.with_name("..nacre.restored").exists()
    assert findings(nacre("admin", "doctor", "--deep", "--json").json) == []


def test_unfinished_restore_does_not_replace_a_home_in_use(
    nacre: Nacre, filled_home: Path, tmp_path: Path
) -> None:
    out = tmp_path / "b.zip"
    nacre("data", "backup", "create", str(out))
    waiting = filled_home.with_name("..nacre.restored")
    nacre("data", "backup", "restore", str(out), "--to", str(waiting))
    nacre("store", "The home in use knows this", "--subject", "In use")
    assert nacre("show", "In use", "--json").json["memory"]["subject"] == "In use"
    nacre(
        "data", "backup", "restore", str(out), "--force"
    )  # the leftovers of an interrupted restore are removed
    assert not waiting.exists()
    nacre("show", "In use", code=3)
    nacre("show", "Deploys")


def test_temporary_file_of_a_killed_process_is_removed_on_write(
    nacre: Nacre, filled_home: Path, tmp_path: Path
) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    names = ("config.toml", "memories.jsonl", "home.zip", "home.zip.nacre.db")
    folders = (filled_home, tmp_path, tmp_path, tmp_path)
    leftovers = [
        folder / f".{name}.{ended.pid}.tmp" for name, folder in zip(names, folders, strict=True)
    ]
    alive = tmp_path / f".home.zip.{os.getppid()}.tmp"
    for path in (*leftovers, alive):
        path.write_text("half of it")
    nacre("config", "set", "recall.limit", "5")
    nacre("data", "export", str(tmp_path / "memories.jsonl"))
    nacre("data", "backup", "create", str(tmp_path / "home.zip"))
    assert [path.name for path in leftovers if path.exists()] == []
    assert alive.exists()  # another process may be writing it now


def test_backup_includes_history_and_excludes_credentials(
    nacre: Nacre, filled_home: Path, tmp_path: Path
) -> None:
    if not shutil.which("git"):
        pytest.skip("git is not installed")
    password = "Tr0ub4dor" + "And3Horses"
    for arguments in (
        ["init", "-q"],
        ["add", "-A"],
        ["-c", "user.name=T", "-c", "user.email=t@example.org", "commit", "-qm", "one"],
        ["remote", "add", "origin", f"https://me:{password}@git.example/vault.git"],
    ):
        subprocess.run(["git", *arguments], cwd=filled_home / "vault", check=True)
    out, other = tmp_path / "b.zip", tmp_path / "other"
    answer = nacre("data", "backup", "create", str(out), "--json").json
    assert any("vault/.git/config" in note for note in answer["manifest"]["notes"])
    assert nacre("data", "backup", "verify", str(out), "--json").json["ok"] is True
    nacre("data", "backup", "restore", str(out), "--to", str(other))
    assert password not in (other / "vault/.git/config").read_text()
    log = subprocess.run(
        ["git", "log", "--oneline"], cwd=other / "vault", check=True, capture_output=True, text=True
    )
    assert log.stdout.count("\n") == 1


@pytest.mark.parametrize(
    "commands", [["init"], ["init", "add -A", "commit -qm one", "gc", "pack-refs --all"]]
)
def test_history_without_loose_files_is_restored(
    nacre: Nacre, filled_home: Path, tmp_path: Path, commands: list[str]
) -> None:
    if not shutil.which("git"):
        pytest.skip("git is not installed")
    identity = [
        "-c",
        "user.name=T",
        "-c",
        "user.email=t@example.org",
        "-c",
        "init.defaultBranch=main",
    ]
    for command in commands:
        subprocess.run(
            ["git", *identity, *command.split()],
            cwd=filled_home / "vault",
            check=True,
            capture_output=True,
        )
    out, other = tmp_path / "b.zip", tmp_path / "other"
    nacre("data", "backup", "create", str(out))
    assert nacre("data", "backup", "verify", str(out), "--json").json["ok"] is True
    nacre("data", "backup", "restore", str(out), "--to", str(other))
    log_command = ["git", "--git-dir", ".git", "log", "--all", "--format=%s"]
    result = subprocess.run(
        log_command, cwd=other / "vault", check=True, capture_output=True, text=True
    )
    assert result.stdout.split() == ["one"] * (len(commands) > 1)


def test_backup_is_consistent_during_writes(
    nacre: Nacre, filled_home: Path, tmp_path: Path
) -> None:
    stop, names = threading.Event(), []

    def write() -> None:
        with open_memory(filled_home) as home:
            number = 0
            while not stop.is_set():
                number += 1
                memory = home.store(
                    f"Berth number {number} belongs to boat {number * 7}", force=True
                ).memory_id
                if number % 3 == 0:
                    home.retire(memory)
                names.append(memory)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(4):
            before = len(names)
            out, other = tmp_path / f"{number}.zip", tmp_path / f"home{number}"
            nacre("data", "backup", "create", str(out))
            answer = nacre("data", "backup", "verify", str(out), "--json", code=None).json
            assert failures(answer) == []
            nacre("data", "backup", "restore", str(out), "--to", str(other))
            with open_memory(other) as home:
                for memory in names[:before]:
                    home.get(memory, update=False)
    finally:
        stop.set()
        writer.join()
    assert len(names) >= 4


def rewritten(path: Path, change: Callable[[dict[str, bytes], dict[str, Any]], None]) -> Path:
    """Rewrite a backup with other members and another manifest."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members.pop("manifest.json"))
    change(members, manifest)
    out = path.with_name("changed.zip")
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
        archive.writestr("manifest.json", json.dumps(manifest))
    return out


def flip(members: dict[str, bytes], _: dict[str, Any]) -> None:
    name = next(name for name in members if name.endswith("deploys.md"))
    members[name] = members[name].replace(b"Fridays", b"Mondays")


def lose(members: dict[str, bytes], _: dict[str, Any]) -> None:
    members.pop(next(name for name in members if name.endswith("deploys.md")))


def entry(path: str, size: int, data: bytes) -> dict[str, Any]:
    digest = hashlib.sha256(data).hexdigest()
    return {"path": path, "size": size, "sha256": digest, "mtime_ns": 0}


def add(name: str) -> Callable[[dict[str, bytes], dict[str, Any]], None]:
    def change(members: dict[str, bytes], manifest: dict[str, Any]) -> None:
        members[name] = b"x"
        manifest["files"].append(entry(name, 1, b"x"))

    return change


def swell(members: dict[str, bytes], manifest: dict[str, Any]) -> None:
    members["vault/big.md"] = b"0" * 5_000_000
    manifest["files"].append(entry("vault/big.md", 10, b"0" * 10))


HARM = {
    "a changed file": flip,
    "a lost file": lose,
    "a path upwards": add("../outside.txt"),
    "a rooted path": add("/srv/x"),
    "a hidden path upwards": add("vault/../../outside.txt"),
    "a drive": add("C:/outside.txt"),
    "a name in two cases": add("NACRE.DB"),
    "more than was said": swell,
    "no format": lambda _, manifest: manifest.pop("format"),
    "no files": lambda _, manifest: manifest.update(files=3),
    "a newer version": lambda _, manifest: manifest.update(version=99),
}


@pytest.mark.parametrize("harm", HARM)
def test_tampered_backup_is_refused_and_leaves_nothing(
    nacre: Nacre, filled_home: Path, tmp_path: Path, harm: str
) -> None:
    out, other = tmp_path / "b.zip", tmp_path / "below" / "other"
    nacre("data", "backup", "create", str(out))
    changed = rewritten(out, HARM[harm])
    for arguments in (["verify", str(changed)], ["restore", str(changed), "--to", str(other)]):
        assert (
            nacre("data", "backup", *arguments, "--json", code=2).error["code"] == "invalid_input"
        )
    assert not other.exists()
    assert not list(tmp_path.rglob("outside.txt"))
    assert not [path for path in tmp_path.rglob("*") if path.name.endswith(".restoring")]


def test_backup_with_corrupt_bytes_at_any_offset_is_refused(
    nacre: Nacre, filled_home: Path, tmp_path: Path
) -> None:
    out = tmp_path / "b.zip"
    nacre("data", "backup", "create", str(out))
    whole = out.read_bytes()
    with zipfile.ZipFile(out) as archive:
        start = archive.getinfo("vault/ledger.jsonl").header_offset + len("vault/ledger.jsonl") + 60
    for at in range(start, start + 24, 3):
        out.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        assert (
            nacre("data", "backup", "verify", str(out), "--json", code=2).error["code"]
            == "invalid_input"
        )


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04 torn", b"no zip at all"])
def test_file_that_is_not_a_backup_is_refused(nacre: Nacre, tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "b.zip"
    path.write_bytes(data)
    assert nacre(
        "data", "backup", "restore", str(path), "--to", str(tmp_path / "x"), "--json", code=2
    ).error["hint"]
    assert (
        nacre("data", "backup", "verify", str(tmp_path / "none.zip"), "--json", code=3).error[
            "code"
        ]
        == "not_found"
    )


def test_links_in_the_home_are_skipped_with_a_note(
    nacre: Nacre, filled_home: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("outside")
    (filled_home / "vault/outside.md").symlink_to(secret)
    answer = nacre("data", "backup", "create", str(tmp_path / "b.zip"), "--json").json
    assert answer["manifest"]["notes"] == [
        "vault/outside.md is a link or not a regular file; it was left out"
    ]


@pytest.mark.skipif(os.name != "posix", reason="names are bytes elsewhere")
def test_file_with_a_non_utf8_name_is_skipped_and_named(
    nacre: Nacre, filled_home: Path, tmp_path: Path
) -> None:
    odd = os.fsencode(filled_home / "vault" / "global" / "fact") + b"/caf\xe9.md"
    Path(os.fsdecode(odd)).write_text("# Cafe\n\nIt opens at nine.\n")
    Path(os.fsdecode(os.fsencode(filled_home) + b"/note-\xff")).write_text("mine")
    out = tmp_path / "b.zip"
    answer = nacre("data", "backup", "create", str(out), "--json").json
    assert [
        note
        for note in answer["manifest"]["notes"]
        if "rename it" in note and "caf\\xe9.md" in note
    ]
    assert [note for note in answer["manifest"]["notes"] if "note-\\xff" in note]
    assert "rename it" in nacre("data", "backup", "create", str(out), "--force").out
    assert failures(nacre("data", "backup", "verify", str(out), "--json", code=None).json) == []
    nacre("data", "export", str(tmp_path / "all.zip"))
    nacre("admin", "commit")
