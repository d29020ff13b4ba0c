"""Default arguments of commands, and messages without a default."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Nacre

BILLING = "acme-billing"


@pytest.fixture
def checkout(user_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a project's name, but without sessions."""
    folder = user_home / "checkouts" / BILLING
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


def test_last_session_of_any_folder_is_the_fallback(
    nacre: Nacre, learned: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for command in (("show",), ("summary",), ("export",)):
        outcome = nacre("sessions", *command)
        assert "PostgreSQL" in outcome.out
        assert "showing the last session of any folder" in outcome.err


def test_notice_about_another_folders_session_precedes_its_text(
    terminal: Nacre, learned: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    output = terminal("sessions", "show", "--tail").out
    assert output.index("showing the last session of any folder") < output.index("PostgreSQL")


def test_last_session_of_this_folder_is_shown_without_notice(
    nacre: Nacre, learned: dict[str, Any], checkout: Path
) -> None:
    nacre("project", "tie", BILLING)
    outcome = nacre("sessions", "show", "--tail")
    assert "PostgreSQL" in outcome.out
    assert not outcome.err


def test_missing_sessions_error_suggests_ingest(nacre: Nacre) -> None:
    assert "nacre ingest" in nacre("sessions", "show", "--tail", code=3).err


def test_empty_context_gives_the_reason(
    nacre: Nacre, learned: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = nacre("context")
    assert not outcome.out
    assert f"No context: {tmp_path} belongs to no known project" in " ".join(outcome.err.split())
    assert "hint: nacre project list shows" in outcome.err
    assert not nacre("context", "thanks").err
    assert nacre("context", "--json").err == ""


def test_empty_memory_is_reported_as_context_reason(nacre: Nacre) -> None:
    assert "there are no memories yet" in nacre("context").err


def test_folder_named_like_a_project_gets_a_hint(
    nacre: Nacre, learned: dict[str, Any], checkout: Path
) -> None:
    assert f"nacre project tie {BILLING}" in nacre("context").err
    assert f"nacre project tie {BILLING}" in nacre("list", "--project", ".").err
    here = nacre("project", "--json").json
    assert (here["project"], here["namesake"], here["known"]) == (None, BILLING, [BILLING])
    assert f"{checkout} now belongs to {BILLING}" in " ".join(
        nacre("project", "tie", BILLING).out.split()
    )
    assert f"This folder belongs to {BILLING}" in nacre("project").out
    assert nacre("list", "--project", ".", "--json").json["total"] == len(learned["memories"])
    assert "PostgreSQL" in nacre("context").out
    nacre("undo", "--yes")
    assert nacre("project", "--json").json["project"] is None


def test_ingest_can_be_undone_after_its_project_was_tied_to_a_folder(
    nacre: Nacre, learned: dict[str, Any], checkout: Path
) -> None:
    nacre("project", "tie", BILLING)
    operations = nacre("log", "--json").json["operations"]
    ingest = next(
        item["operation"]["id"] for item in operations if item["operation"]["action"] == "ingest"
    )
    nacre("undo", ingest, "--yes")
    assert f"This folder belongs to {BILLING}" in nacre("project").out
    assert nacre("list", "--json").json["total"] == 0


def test_refused_undo_of_a_rename_names_the_later_tie(
    nacre: Nacre, learned: dict[str, Any], checkout: Path
) -> None:
    nacre("project", "rename", BILLING, "Invoices")
    rename = nacre("log", "--json").json["operations"][0]["operation"]["id"]
    nacre("project", "tie", "invoices")
    tie = nacre("log", "--json").json["operations"][0]["operation"]["id"]
    error = " ".join(nacre("undo", rename, "--yes", code=4).err.split())
    assert f"nacre undo {tie[-8:]}" in error


def test_folder_with_many_projects_cannot_be_tied(
    nacre: Nacre, learned: dict[str, Any], user_home: Path, tmp_path: Path
) -> None:
    code = tmp_path / "code"
    code.mkdir()
    for folder in (code, user_home, user_home.parent):
        assert (
            "more than one project" in nacre("project", "tie", BILLING, str(folder), code=2).err
        ), folder


def test_tie_records_the_repository_remote(
    nacre: Nacre, learned: dict[str, Any], user_home: Path, checkout: Path
) -> None:
    remote = '[remote "origin"]\n\turl = git@code.example:acme/billing.git\n'
    (checkout / ".git").mkdir()
    (checkout / ".git" / "config").write_text(remote, encoding="utf-8")
    (checkout / "src").mkdir()
    nacre("project", "tie", BILLING, str(checkout / "src"))
    page = (user_home / ".nacre" / "vault" / "projects" / BILLING / "project.md").read_text(
        encoding="utf-8"
    )
    assert f", {checkout}]\n" in page
    assert "code.example/acme/billing" in page


def test_folder_is_tied_to_one_known_project(
    nacre: Nacre, learned: dict[str, Any], user_home: Path, checkout: Path
) -> None:
    nacre("store", "Tea is served at four", "--project", "kitchen")
    assert f"known: {BILLING}, kitchen" in nacre("project", "tie", "kitchn", code=3).err
    nacre("project", "tie", "kitchen")
    assert (
        "belongs to the project kitchen"
        in nacre("project", "tie", BILLING, str(checkout), code=4).err
    )
    assert (
        "belongs to the project kitchen"
        in nacre("project", "tie", BILLING, f"../{BILLING}", code=4).err
    )
    assert (
        "contains more than one project"
        in nacre("project", "tie", BILLING, str(user_home), code=2).err
    )


def test_forget_with_bare_words_suggests_options(nacre: Nacre) -> None:
    hint = "hint: --memory ID, --session ID or --match TEXT; with --dry-run, nothing is deleted"
    assert hint in nacre("forget", "tea", "at", "four", code=2).err


def test_check_explains_how_to_pin(nacre: Nacre, learned: dict[str, Any]) -> None:
    assert nacre("admin", "check").out.startswith("No answer is pinned: nacre recall")
