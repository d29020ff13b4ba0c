"""``nacre redact`` and ``nacre scrub`` as people use them."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Nacre

TOKEN = "gh" + "p_" + "a8Kd93jfQ2" * 4


def test_redact_shows_a_text_as_it_would_be_stored(nacre: Nacre, tmp_path: Path) -> None:
    file = tmp_path / "notes.md"
    file.write_text(f"use {TOKEN}\nand <private>nothing else</private>\n", encoding="utf-8")
    shown = nacre("redact", str(file))
    assert shown.out == "use [REDACTED:github-token]\nand [private]\n"
    assert "github-token" in shown.err
    assert nacre("redact", str(file), "--json").json["found"] == {"github-token": 1, "private": 1}


def test_redact_reads_standard_input_and_says_when_there_is_nothing(nacre: Nacre) -> None:
    shown = nacre("redact", "-", stdin="all is well\n")
    assert shown.out == "all is well\n"
    assert "No secrets" in shown.err


def test_redact_lists_its_rules(nacre: Nacre) -> None:
    assert "github-token" in nacre("redact", "--rules", "--json").json["rules"]
    assert "private" in nacre("redact", "--rules").out


def test_redact_wants_to_know_which_text(nacre: Nacre) -> None:
    nacre("redact", code=2)


def test_the_owners_patterns_and_exceptions_hold(nacre: Nacre) -> None:
    nacre("config", "set", "redaction.patterns", '["ACME-[0-9]{4}"]')
    nacre("config", "set", "redaction.allow", f'["{TOKEN}"]')
    assert nacre("redact", "-", stdin=f"{TOKEN} ACME-1234\n").out == f"{TOKEN} [REDACTED:owner]\n"


def test_scrub_of_a_clean_home_finds_nothing(nacre: Nacre) -> None:
    nacre("store", "We deploy on Fridays")
    assert "Nothing to take out" in nacre("scrub").out
    assert nacre("scrub", "--json").json["total"] == 0


def test_scrub_rewrites_history_only_when_told(nacre: Nacre) -> None:
    nacre("scrub", "--history", code=2)
    assert nacre("scrub", "--history", "--yes", "--json").json["commits"] == 0
