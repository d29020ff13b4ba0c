"""Pinned answers: ``nacre recall --pin`` and ``nacre admin check``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Nacre

QUESTION = "which database does billing use?"


@pytest.fixture
def memory_id(nacre: Nacre) -> str:
    """Return the id of the memory that answers the question."""
    nacre("store", "The bakery oven is cleaned with vinegar on Mondays.")
    answer = nacre("store", "Billing uses PostgreSQL as its database.", "--json").json
    return str(answer["memory_id"])


def pinned_file(user_home: Path) -> Path:
    return user_home / ".nacre" / "vault" / "pinned.txt"


def test_pin_keeps_the_first_answer(nacre: Nacre, memory_id: str, user_home: Path) -> None:
    assert "Pinned: which database" in nacre("recall", QUESTION, "--pin").out
    pins = nacre("admin", "check", "--json").json["pins"]
    assert [(pin["holds"], pin["memories"]) for pin in pins] == [(True, [memory_id])]
    assert pinned_file(user_home).read_text().startswith(f"{QUESTION} => Billing uses PostgreSQL")


def test_pin_with_words_replaces_the_pin_of_a_question(
    nacre: Nacre, memory_id: str, user_home: Path
) -> None:
    nacre("recall", QUESTION, "--pin")
    nacre("recall", QUESTION, "--pin", "postgresql")
    assert pinned_file(user_home).read_text() == f"{QUESTION} => postgresql\n"
    nacre("recall", QUESTION, "--pin", "SQLite", code=3)
    nacre("recall", "--deep", QUESTION, "--pin", code=2)
    assert "before --pin" in nacre("recall", "--pin", QUESTION, code=2).err
    nacre("undo", "--yes")
    assert "Billing uses" in pinned_file(user_home).read_text()
    nacre("admin", "check", "--remove", QUESTION)
    assert not pinned_file(user_home).exists()
    nacre("admin", "check", "--remove", QUESTION, code=3)


def test_broken_pin_is_reported_after_an_ingest(nacre: Nacre, memory_id: str) -> None:
    nacre("recall", QUESTION, "--pin")
    nacre("retire", memory_id, "--yes")
    assert "broken" not in nacre("status").out
    nacre("ingest")
    assert f"broken pin: {QUESTION} Billing uses PostgreSQL" in " ".join(
        nacre("status").out.split()
    )
    checks = nacre("admin", "doctor", "--json", code=None).json["checks"]
    (pinned,) = [check for check in checks if check["name"] == "pinned"]
    assert "now: no answer" in pinned["detail"]
    output = nacre("admin", "check", code=1).out
    assert "broken" in output
    assert "now: no answer" in output
    nacre("retire", "--restore", memory_id)
    nacre("ingest")
    assert nacre("status", "--json").json["broken_pins"] == []


def test_owner_can_edit_the_file(nacre: Nacre, memory_id: str, user_home: Path) -> None:
    nacre("recall", QUESTION, "--pin")
    pinned_file(user_home).write_text(f"# mine\n{QUESTION} => SQLite\n\nno pin\n", encoding="utf-8")
    (pin,) = nacre("admin", "check", "--json", code=1).json["pins"]
    assert (pin["answer"], pin["holds"], pin["first"]) == (
        "SQLite",
        False,
        "Billing uses PostgreSQL as its database",
    )
    nacre("recall", QUESTION, "--pin")
    assert pinned_file(user_home).read_text().startswith("# mine\n\nno pin\nwhich database")


def test_check_does_not_count_as_use(nacre: Nacre, memory_id: str) -> None:
    nacre("recall", QUESTION, "--pin")
    nacre("admin", "check")
    nacre("ingest")
    assert nacre("show", memory_id, "--json").json["usage"]["recall_count"] == 0


def test_forgotten_memory_leaves_no_pin(nacre: Nacre, memory_id: str, user_home: Path) -> None:
    nacre("recall", QUESTION, "--pin", "PostgreSQL")
    nacre("forget", "--memory", memory_id, "--yes")
    assert not pinned_file(user_home).exists()


def test_pin_contains_no_secret(nacre: Nacre, memory_id: str, user_home: Path) -> None:
    token = "ghp_" + "a1B2c3D4e5" * 3 + "F6g7H8"
    nacre("recall", f"which database does billing use with {token}?", "--pin")
    assert token not in pinned_file(user_home).read_text()
