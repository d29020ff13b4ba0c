"""The commands ``nacre admin redact`` and ``nacre admin scrub``."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import SESSION, Nacre, said, write_transcript

TOKEN = "gh" + "p_" + "a8Kd93jfQ2" * 4


def test_redact_shows_a_text_as_stored(nacre: Nacre, tmp_path: Path) -> None:
    file = tmp_path / "notes.md"
    file.write_text(f"use {TOKEN}\nand <private>nothing else</private>\n", encoding="utf-8")
    outcome = nacre("admin", "redact", str(file))
    assert outcome.out == "use [REDACTED:github-token]\nand [private]\n"
    assert "github-token" in outcome.err
    assert nacre("admin", "redact", str(file), "--json").json["found"] == {
        "github-token": 1,
        "private": 1,
    }


def test_redact_reads_stdin_and_reports_no_secrets(nacre: Nacre) -> None:
    outcome = nacre("admin", "redact", "-", stdin="all is well\n")
    assert outcome.out == "all is well\n"
    assert "No secrets" in outcome.err


def test_redact_accepts_text_as_an_argument(nacre: Nacre) -> None:
    token = f"ghp_{'a1B2c3D4e5F6' * 3}"
    outcome = nacre("admin", "redact", f"push with {token} please")
    assert token not in outcome.out
    assert "1 secret" in outcome.err
    assert nacre("admin", "redact", "push", "with", token).out.startswith("push with ")
    typed = nacre("admin", "redact", "notes-that-are-not-there.md")
    assert typed.out == "notes-that-are-not-there.md\n"
    assert "There is no file with this name" in typed.err
    assert "the text itself" in nacre("admin", "redact", code=2).err


def test_redact_lists_its_rules(nacre: Nacre) -> None:
    assert "github-token" in nacre("admin", "redact", "--rules", "--json").json["rules"]
    assert "private" in nacre("admin", "redact", "--rules").out


def test_redact_lists_optional_rules(nacre: Nacre) -> None:
    assert nacre("admin", "redact", "--rules", "--json").json["rules"][-3:] == [
        "email",
        "home-path",
        "payment-card",
    ]
    assert "redaction.emails" in nacre("admin", "redact", "--rules").out


def test_redact_requires_a_text(nacre: Nacre) -> None:
    nacre("admin", "redact", code=2)


def test_custom_patterns_and_exceptions_apply(nacre: Nacre) -> None:
    nacre("config", "set", "redaction.patterns", '["ACME-[0-9]{4}"]')
    nacre("config", "set", "redaction.allow", f'["{TOKEN}"]')
    assert (
        nacre("admin", "redact", "-", stdin=f"{TOKEN} ACME-1234\n").out
        == f"{TOKEN} [REDACTED:owner]\n"
    )


@pytest.mark.parametrize(
    ("setting", "text", "remaining"),
    [
        ("emails", "ask ana.li@mail.example.org, not @ana", "ask [REDACTED:email], not @ana"),
        ("emails", "clone git@example.org:a/b", "clone git@example.org:a/b"),
        ("home_paths", "see /home/ana/src and file:///Users/ana", "see ~/src and file://~"),
        ("home_paths", "in C:\\Users\\ana\\AppData", "in ~\\AppData"),
        ("home_paths", "/srv/home/ana and /home/$USER/x", "/srv/home/ana and /home/$USER/x"),
    ],
)
def test_addresses_and_home_folders_are_redacted_only_if_enabled(
    nacre: Nacre, setting: str, text: str, remaining: str
) -> None:
    assert nacre("admin", "redact", "-", stdin=text).out.strip() == text
    nacre("config", "set", f"redaction.{setting}", "true")
    assert nacre("admin", "redact", "-", stdin=text).out.strip() == remaining
    assert nacre("admin", "redact", "-", stdin=remaining).out.strip() == remaining


def test_scrub_removes_previously_stored_addresses_and_home_folders(
    nacre: Nacre, user_home: Path
) -> None:
    nacre("store", "Ask ana@example.org about /home/ana/pier", "--subject", "Pier")
    nacre("config", "set", "redaction.emails", "true")
    nacre("config", "set", "redaction.home_paths", "true")
    assert nacre("admin", "scrub", "--json").json["total"] > 0
    files = [
        path.read_text(encoding="utf-8") for path in (user_home / ".nacre/vault").rglob("*.md")
    ]
    assert any("Ask [REDACTED:email] about ~/pier" in text for text in files)
    assert not any("ana@example.org" in text for text in files)
    assert nacre("admin", "scrub", "--json").json["total"] == 0


def test_home_folders_are_redacted_in_ingested_transcripts(nacre: Nacre, user_home: Path) -> None:
    nacre("config", "set", "redaction.home_paths", "true")
    talk = [
        said(
            "user",
            "We keep the ledger in /home/ana/pier because the disk of the server is too small.",
            1,
        )
    ]
    write_transcript(user_home / ".claude/projects/-home-ana-pier" / f"{SESSION}.jsonl", talk)
    nacre("ingest")
    assert "We keep the ledger in ~/pier" in nacre("sessions", "show", SESSION).out
    assert not [
        path
        for path in (user_home / ".nacre").rglob("*")
        if path.is_file() and b"/home/ana/pier because" in path.read_bytes()
    ]


def test_scrub_of_a_clean_home_finds_nothing(nacre: Nacre) -> None:
    nacre("store", "We deploy on Fridays")
    assert "Nothing to remove" in nacre("admin", "scrub").out
    assert nacre("admin", "scrub", "--json").json["total"] == 0


def test_interrupted_history_rewrite_is_cleaned_by_the_next_scrub(
    nacre: Nacre, user_home: Path
) -> None:
    vault = user_home / ".nacre/vault"
    nacre("store", "The shed is pier-1234", "--subject", "Shed")
    nacre("admin", "commit")
    shutil.copytree(vault / ".git", user_home / "before")
    nacre("config", "set", "redaction.patterns", '["pier-[0-9]+"]')
    nacre("admin", "scrub", "--history", "--yes")
    shutil.copytree(user_home / "before/objects", vault / ".git/objects", dirs_exist_ok=True)
    shutil.copy(
        user_home / "before/index", vault / ".git/index"
    )  # the references had moved, but not the index
    (user_home / ".nacre/.rewrite-1234").mkdir()
    nacre("admin", "scrub", "--history", "--yes")
    nacre("admin", "commit")

    def git(*words: str) -> bytes:
        return subprocess.run(["git", "-C", vault, *words], check=True, capture_output=True).stdout

    assert b"pier-1234" not in git("cat-file", "--batch-all-objects", "--batch")
    assert git("status", "--porcelain") == b""
    assert not (user_home / ".nacre/.rewrite-1234").exists()


def test_scrub_rewrites_history_only_with_confirmation(nacre: Nacre) -> None:
    nacre("admin", "scrub", "--history", code=2)
    assert nacre("admin", "scrub", "--history", "--yes", "--json").json["commits"] == 0
