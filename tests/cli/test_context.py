"""The output of ``nacre context`` for people and hooks."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Nacre


def test_context_prints_the_block_or_nothing(nacre: Nacre, tmp_path: Path) -> None:
    nacre("store", "We run billing on PostgreSQL, for its transactions.", "--kind", "decision")
    outcome = nacre("context", "which database is billing on?", "--folder", str(tmp_path))
    assert outcome.out.startswith("<nacre-context>\n")
    assert "PostgreSQL" in outcome.out
    silent = nacre("context", "thanks!", "--folder", str(tmp_path))
    assert (silent.out, silent.err) == ("", "")


def test_project_option_selects_the_project_of_the_context(nacre: Nacre, tmp_path: Path) -> None:
    for project in ("cli", "shop"):
        nacre(
            "store", f"The {project} is written in Rust.", "--project", project, "--importance", "9"
        )
    folder_option = ("--folder", str(tmp_path))
    assert "cli" not in nacre("context", *folder_option).out
    for words in (("-p", "cli"), ("-p", "CLI", "in which language is it written?")):
        output = nacre("context", *words, *folder_option).out
        assert "The cli is written in Rust" in output, words
        assert "shop" not in output, words
    assert "there is no project 'clu'" in nacre("context", "-p", "clu", *folder_option).err
    assert "need --folder" in nacre("context", "--handoff", "-p", "cli", code=2).err


def test_explain_lists_included_and_excluded_memories(nacre: Nacre, tmp_path: Path) -> None:
    nacre("store", "We run billing on PostgreSQL, for its transactions.", "--kind", "decision")
    nacre("store", "Our billing ledger is append-only.", "--kind", "decision")
    explained = nacre("context", "--explain", "--budget", "90", "--folder", str(tmp_path)).out
    assert "a decision, importance 7" in explained
    assert "over the budget" in explained
    as_json = nacre("context", "--json", "--folder", str(tmp_path)).json
    assert [item["part"] for item in as_json["context"]["items"]] == ["rules", "rules"]


def test_explain_reports_an_empty_context(nacre: Nacre, tmp_path: Path) -> None:
    nacre(
        "store",
        "We run billing on PostgreSQL, for its transactions.",
        "--kind",
        "decision",
        "--subject",
        "Billing",
    )
    arguments = (
        "context",
        "draw a billing icon with rounded corners",
        "--explain",
        "--folder",
        str(tmp_path),
    )
    for option in ((), ("--lexical",)):
        output = " ".join(nacre(*arguments, *option).out.split())
        assert "No context." in output


def test_output_file_is_written_only_if_changed(nacre: Nacre, tmp_path: Path) -> None:
    nacre("store", "We run billing on PostgreSQL, for its transactions.", "--kind", "decision")
    target = tmp_path / "CONTEXT.md"
    arguments = ("context", "--output", str(target), "--folder", str(tmp_path), "--json")
    assert nacre(*arguments).json["changed"] is True
    assert "PostgreSQL" in target.read_text(encoding="utf-8")
    assert nacre(*arguments).json["changed"] is False


def test_prompt_is_read_from_a_pipe_or_first_argument(nacre: Nacre, tmp_path: Path) -> None:
    nacre("store", "We run billing on PostgreSQL, for its transactions.", "--kind", "decision")
    text = "which database is billing on?"
    piped = nacre("context", "-", "--folder", str(tmp_path), "--json", stdin=text).json
    assert [item["part"] for item in piped["context"]["items"]] == ["relevant"]
    first = nacre(
        "context",
        text,
        "--start",
        "--part",
        "rules",
        "--folder",
        str(tmp_path),
        "--json",
    ).json
    assert [item["part"] for item in first["context"]["items"]] == ["rules"]


def test_session_receives_each_memory_once(nacre: Nacre, tmp_path: Path) -> None:
    nacre("store", "We run billing on PostgreSQL, for its transactions.", "--kind", "decision")
    arguments = (
        "context",
        "which database is billing on?",
        "--session",
        "codex:1",
        "--folder",
        str(tmp_path),
    )
    assert "PostgreSQL" in nacre(*arguments).out
    again = nacre(
        "context",
        "is PostgreSQL what billing runs on?",
        "--session",
        "codex:1",
        "--folder",
        str(tmp_path),
        "--json",
    )
    assert again.json["context"]["text"] == ""
    assert [item["why"] for item in again.json["context"]["left_out"]] == ["given already"]


def test_omitted_memories_are_named(nacre: Nacre, tmp_path: Path) -> None:
    places = [f"harbour of {name}" for name in ("Aalst", "Brest", "Calais", "Dover", "Emden")]
    places += [f"mill of {name}" for name in ("Ghent", "Hull", "Izmir", "Jena", "Kiel")]
    places += [f"ferry of {name}" for name in ("Lund", "Mons", "Nice", "Oslo", "Porto", "Rome")]
    for place in places:
        nacre(
            "store",
            f"Letters to the {place} go out on Mondays",
            "--kind",
            "preference",
            "--subject",
            f"The {place}",
        )
    arguments = ("context", "--part", "rules", "--folder", str(tmp_path))
    omitted = nacre(*arguments, "--json").json["context"]["left_out"]
    assert {item["subject"] for item in omitted} < {f"The {place}" for place in places}
    output = "; ".join(item["subject"] for item in omitted[:3])
    assert f"{output} and 1 more" in nacre(*arguments, "--explain").out


def test_owner_pages_can_be_written_shown_restored_and_removed(
    nacre: Nacre, user_home: Path
) -> None:
    assert nacre("project", "page", "identity").out.startswith("There is no identity page yet.")
    assert (
        nacre("project", "page", "identity", "You work for Ada, who keeps bees.").out
        == "Saved: identity.md\n"
    )
    nacre(
        "project",
        "page",
        "profile",
        "-",
        stdin="Always answer briefly.\nThe key is " + "ghp_" + "a1B2" * 9 + "\n",
    )
    assert nacre("project", "page", "identity").out == "You work for Ada, who keeps bees.\n"
    output = nacre("context").out
    assert "> You work for Ada, who keeps bees." in output
    assert "> Always answer briefly." in output
    assert "a1B2" not in (user_home / ".nacre" / "vault" / "profile.md").read_text(encoding="utf-8")
    long = nacre("project", "page", "identity", "You work for Ada. " * 60)
    assert "sessions receive only about the first" in long.err
    operation = nacre("log", "--json").json["operations"][0]["operation"]
    assert (operation["action"], operation["subject"]) == ("page", "identity")
    nacre("undo", operation["id"], "--yes")
    assert nacre("project", "page", "identity").out == "You work for Ada, who keeps bees.\n"
    assert nacre("project", "page", "identity", "--remove").out == "Deleted: identity.md\n"
    assert "Ada" not in nacre("context").out
    nacre("project", "page", "identity", "", code=2)
    nacre("project", "page", "identity", "--edit", code=2)
