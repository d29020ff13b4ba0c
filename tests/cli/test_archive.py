"""Interrupted archiving is completed by the same command."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Nacre, findings


@pytest.fixture
def pack(user_home: Path, learned: dict[str, Any]) -> Path:
    """The pack of the one session."""
    (file,) = (user_home / ".nacre/archive").rglob("*.pack")
    return file


def forget_pack(user_home: Path, statement: str) -> None:
    with closing(sqlite3.connect(user_home / ".nacre/nacre.db", isolation_level=None)) as database:
        database.execute(statement)


def of_archive(answer: dict[str, Any]) -> list[dict[str, Any]]:
    return [finding for finding in findings(answer) if finding["name"] == "archive"]


def test_damaged_pack_is_rebuilt_by_a_repair(nacre: Nacre, pack: Path) -> None:
    sound = pack.read_bytes()
    pack.write_bytes(sound[:-12] + bytes(8) + sound[-4:])
    assert len(of_archive(nacre("admin", "doctor", "--deep", "--json", code=1).json)) == 1
    checks = nacre("admin", "doctor", "--deep", "--repair", "--json", code=None).json["checks"]
    assert "1 finding repaired" in [check["detail"] for check in checks]
    assert pack.read_bytes() == sound


def test_interrupted_repair_is_finished_by_the_next_repair(
    nacre: Nacre, pack: Path, user_home: Path
) -> None:
    sound = pack.read_bytes()
    pack.rename(pack.with_name(pack.name + ".damaged"))
    forget_pack(
        user_home, "UPDATE archived SET pack = NULL, until = 0, size = 0, raw = 0, changed = 0"
    )
    assert nacre("data", "archive", "--json").json["waiting"] == 1
    nacre("admin", "doctor", "--deep", "--repair", code=None)
    assert pack.read_bytes() == sound
    assert nacre("data", "archive", "--json").json["waiting"] == 0


def test_pack_that_will_be_rewritten_is_not_reported_damaged(
    nacre: Nacre, pack: Path, user_home: Path
) -> None:
    forget_pack(user_home, "DELETE FROM archived")
    assert of_archive(nacre("admin", "doctor", "--deep", "--json", code=None).json) == []
    nacre("ingest")
    assert of_archive(nacre("admin", "doctor", "--deep", "--json", code=None).json) == []
    assert pack.exists()


def test_repair_archives_a_transcript_copied_to_another_disk(
    nacre: Nacre, pack: Path, user_home: Path
) -> None:
    sound = pack.read_bytes()
    (transcript,) = (user_home / ".claude/projects").rglob("*.jsonl")
    copy = shutil.copy2(transcript, transcript.with_name("copy"))
    os.replace(copy, transcript)
    nacre("ingest")
    pack.write_bytes(sound[:-12] + bytes(8) + sound[-4:])
    nacre("admin", "doctor", "--deep", "--repair", code=None)
    assert pack.read_bytes() == sound


def test_incomplete_pack_is_removed_by_the_next_ingest(nacre: Nacre, pack: Path) -> None:
    temporary = pack.with_name(f".{pack.name}.999999999.tmp")
    running = pack.with_name(f".{pack.name}.{os.getppid()}.tmp")
    for path in (temporary, running):
        path.write_bytes(b"half")
    nacre("ingest")
    assert not temporary.exists()
    assert running.exists()
