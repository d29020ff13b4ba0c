"""Triggers give a memory when they match; contexts exclude it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.conftest import Nacre

RULE = "Tell Mira before the gateways are touched."


def hook_output(nacre: Nacre, prompt: str, folder: Path, *options: str) -> str:
    return nacre("context", prompt, "--folder", str(folder), *options).out


def store_memory(nacre: Nacre, text: str, *options: str) -> str:
    return str(nacre("store", text, *options, "--json").json["memory_id"])


@pytest.mark.parametrize("lanes", [(), ("--lexical",)])
def test_prompt_containing_a_trigger_adds_the_memory(
    nacre: Nacre, tmp_path: Path, lanes: tuple[str, ...]
) -> None:
    store_memory(nacre, RULE, "--kind", "preference", "--trigger", "roll out", "--trigger", "固件")
    for prompt in (
        "please roll out the new dashboard tonight",
        "Rolling out dashboards?",
        "升级固件",
    ):
        assert RULE in hook_output(nacre, prompt, tmp_path, *lanes)
    for prompt in ("please roll the dashboard out tonight", "unroll outer loops of the dashboard"):
        assert RULE not in hook_output(nacre, prompt, tmp_path, *lanes)


@pytest.mark.parametrize(
    ("trigger", "fitting", "other"),
    [
        ("billing/", "rename src/billing/ledger.py", "send the bill for src/billings/ledger.py"),
        ("*.sql", "split the file db/Schema.SQL now.", "split the file db/schema.sqlite now"),
        ("src/**/*.py", "tidy src/app/one.py", "tidy lib/app/one.py"),
        ("Makefile.am", "tidy app/makefile.am.", "tidy the makefile of am"),
        ("$ git push", "then git push the branch", "push the branch"),
        ("`git push`", "then git push the branch", "push the branch"),
        ("CI/CD", "mend the CI/CD runner", "mend the runner"),
    ],
)
def test_prompt_that_names_a_path_or_command_adds_the_memory(
    nacre: Nacre, tmp_path: Path, trigger: str, fitting: str, other: str
) -> None:
    store_memory(nacre, RULE, "--trigger", trigger)
    assert RULE in hook_output(nacre, fitting, tmp_path)
    assert RULE not in hook_output(nacre, other, tmp_path)


def test_triggers_end_after_the_given_deliveries(nacre: Nacre, tmp_path: Path) -> None:
    memory = store_memory(nacre, RULE, "--trigger", "roll out", "--times", "2")

    def delivery_count(*names: str) -> int:
        return sum(
            RULE
            in hook_output(nacre, "roll out dashboards", tmp_path, "--session", f"codex:{name}")
            for name in names
        )

    assert delivery_count("1", "1") == 1
    assert "1 of 2 times" in nacre("show", memory).out
    assert delivery_count("2", "3", "4") == 1
    assert nacre("show", memory, "--json").json["deliveries"] == 2
    assert RULE.rstrip(".") in nacre("recall", "who is told before gateways are touched?").out
    nacre("edit", memory, "--times", "1")
    assert delivery_count("5", "6") == 1
    store_memory(nacre, RULE, "--trigger", "roll out", "--times", "3")
    assert delivery_count("7", "8") == 2
    nacre("edit", memory, "--times", "0")
    assert delivery_count("9", "10", "11", "12") == 4
    (path,) = (Path(os.environ["NACRE_HOME"]) / "vault/global").rglob("*.md")
    assert "trigger_times" not in path.read_text()


def test_undo_restores_the_former_triggers(nacre: Nacre, tmp_path: Path) -> None:
    memory = store_memory(nacre, RULE, "--trigger", "roll out", "--times", "5")
    nacre("edit", memory, "--trigger", "billing/", "--times", "2")
    nacre("undo", "--yes")
    listed_memory = nacre("show", memory, "--json").json["memory"]
    assert (listed_memory["triggers"], int(listed_memory["extra"]["trigger_times"])) == (
        ["roll out"],
        5,
    )
    assert RULE in hook_output(nacre, "roll out the new dashboard", tmp_path)


def test_repeated_statement_adds_its_triggers(nacre: Nacre, tmp_path: Path) -> None:
    memory = store_memory(nacre, RULE, "--trigger", "roll out")
    assert store_memory(nacre, RULE, "--trigger", "gateways/") == memory
    listed_memory = nacre("show", memory, "--json").json["memory"]
    assert listed_memory["triggers"] == ["roll out", "gateways/"]


def test_memory_is_not_shown_from_its_last_day(nacre: Nacre, tmp_path: Path) -> None:
    store_memory(nacre, RULE, "--trigger", "roll out", "--expires-on", "2020-01-01")
    assert hook_output(nacre, "roll out the new dashboard", tmp_path) == ""


def test_explain_and_show_name_the_trigger(nacre: Nacre, tmp_path: Path) -> None:
    memory = store_memory(nacre, RULE, "--trigger", "roll out")
    assert "its trigger is “roll out”" in hook_output(
        nacre, "roll out the new dashboard", tmp_path, "--explain"
    )
    assert "roll out" in nacre("show", memory).out
    assert nacre("show", memory, "--json").json["memory"]["triggers"] == ["roll out"]


def test_trigger_respects_prompt_gate_budget_and_project(nacre: Nacre, tmp_path: Path) -> None:
    store_memory(nacre, RULE, "--trigger", "go on")
    assert hook_output(nacre, "ok, go on", tmp_path) == ""
    assert (
        hook_output(nacre, "go on with painting the northern dashboard", tmp_path, "--budget", "60")
        == ""
    )
    assert RULE in hook_output(nacre, "go on with painting the northern dashboard", tmp_path)
    other = "Swans nest below the weir."
    store_memory(nacre, other, "--project", "mill", "--trigger", "dashboard")
    assert other not in hook_output(nacre, "go on with painting the northern dashboard", tmp_path)


def test_untrusted_memory_is_not_added_by_its_trigger(nacre: Nacre, tmp_path: Path) -> None:
    memory = store_memory(nacre, RULE, "--trigger", "roll out")
    (path,) = (Path(os.environ["NACRE_HOME"]) / "vault/global").rglob("*.md")
    assert memory in path.read_text()
    path.write_text(path.read_text().replace("trust: trusted", "trust: untrusted"))
    nacre("list")
    assert hook_output(nacre, "roll out the new dashboard", tmp_path) == ""


def test_at_most_three_triggers_are_shown_once_per_session(nacre: Nacre, tmp_path: Path) -> None:
    texts = [
        f"Lock {name} opens at {hour}."
        for hour, name in enumerate(("Alder", "Birch", "Cedar", "Elm"), 5)
    ]
    for importance, text in enumerate(texts, 5):
        store_memory(nacre, text, "--importance", str(importance), "--trigger", "dashboard")
    prompt = "paint the new dashboard in a darker tone"
    first = hook_output(nacre, prompt, tmp_path, "--session", "codex:1")
    assert [text for text in texts if text in first] == texts[1:]
    assert first.index(texts[3]) < first.index(texts[1])
    then = hook_output(nacre, "paint another dashboard in blue", tmp_path, "--session", "codex:1")
    assert [text for text in texts if text in then] == texts[:1]


def test_triggers_are_edited_removed_and_written_to_files(nacre: Nacre, tmp_path: Path) -> None:
    memory = store_memory(nacre, RULE)
    prompt = "roll out the new dashboard"
    assert hook_output(nacre, prompt, tmp_path) == ""
    nacre("edit", memory, "--trigger", "roll out")
    assert RULE in hook_output(nacre, prompt, tmp_path)
    nacre("edit", memory, "--trigger", "")
    assert hook_output(nacre, prompt, tmp_path) == ""
    (path,) = (Path(os.environ["NACRE_HOME"]) / "vault/global").rglob("*.md")
    path.write_text(path.read_text().replace("---\n", "---\ntriggers: [dashboard]\n", 1))
    nacre("list")
    assert RULE in hook_output(nacre, prompt, tmp_path)


@pytest.mark.parametrize(
    ("context", "at_start", "with_prompt"), [("session-start", 0, 1), ("prompt", 1, 0)]
)
def test_memory_withheld_in_a_context_is_available_in_others(
    nacre: Nacre, tmp_path: Path, context: str, at_start: int, with_prompt: int
) -> None:
    store_memory(nacre, RULE, "--kind", "preference", "--trigger", "gateway", "--importance", "9")
    (path,) = (Path(os.environ["NACRE_HOME"]) / "vault/global").rglob("*.md")
    path.write_text(
        path.read_text().replace("---\n", f"---\nsuppressed_contexts: [{context}]\n", 1)
    )
    nacre("list")
    assert nacre("context", "--folder", str(tmp_path)).out.count(RULE) == at_start
    assert (
        hook_output(nacre, "who is told before gateways are touched?", tmp_path).count(RULE)
        == with_prompt
    )
    assert RULE.rstrip(".") in nacre("recall", "who is told before gateways are touched?").out
