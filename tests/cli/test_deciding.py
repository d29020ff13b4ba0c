"""With a language model, storing shows the planned and actual outcome and who decided."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Nacre
from tests.fakes.provider import FakeProvider, Reply

pytestmark = pytest.mark.embedding

OLD = "The ferry timetable is printed by the office in Holm"
NEW = "Yellow paper is what Holm takes for timetables of ferries"
BOTH = "The ferry timetable is printed by the office in Holm, on yellow paper"

Ask = Callable[..., FakeProvider]


@pytest.fixture
def set_model(user_home: Path) -> Iterator[Ask]:
    """``set_model(answer, more)`` configures a provider with this answer as the model for everything."""
    running: list[FakeProvider] = []

    def start(answer: Any, more: str = "", rest: str = "") -> FakeProvider:
        running.append(FakeProvider([answer], repeats=True).__enter__())
        (user_home / ".nacre" / "config.toml").write_text(
            running[-1].config(more=more) + rest, encoding="utf-8"
        )
        return running[-1]

    yield start
    for provider in running:
        provider.__exit__(None, None, None)


def update(merged: str = BOTH) -> dict[str, Any]:
    return {"reason": "adds the paper", "action": "UPDATE", "target": 1, "merged": merged}


@pytest.fixture
def old(nacre: Nacre) -> str:
    """Return the id of a stored memory."""
    return str(nacre("store", OLD, "--json").json["memory_id"])


def test_dry_run_shows_the_outcome_and_reason(nacre: Nacre, old: str, set_model: Ask) -> None:
    set_model(update())
    result = nacre("store", NEW, "--online-dedup", "--dedup-threshold", "0.3", "--dry-run")
    assert "Would be merged into" in result.out
    assert BOTH in result.out
    assert "fake:m: adds the paper" in result.out
    assert nacre("list", "--json").json["total"] == 1
    assert nacre("show", old, "--json").json["memory"]["content"] == OLD
    record = nacre("store", "The kettle is blue", "--dry-run", "--json").json
    outcome = record["outcome"]
    assert (outcome["action"], outcome["decided_by"]) == ("stored", None)


def test_store_and_show_name_the_deciding_model_and_reason(
    nacre: Nacre, old: str, set_model: Ask
) -> None:
    provider = set_model(update(), rest='\n[models.capabilities."fake:m"]\nanswers = "json"\n')
    answer = nacre("store", NEW, "--online-dedup", "--dedup-threshold", "0.3", "--json").json
    assert (answer["action"], answer["memory_id"], answer["decided_by"], answer["reason"]) == (
        "updated",
        old,
        "fake:m",
        "adds the paper",
    )
    assert "by fake:m: adds the paper" in nacre("show", old).out
    assert (
        "(fake:m: adds the paper)"
        in nacre("log", "--json").json["operations"][0]["operation"]["why"]
    )
    (request,) = provider.calls
    assert request.body["response_format"] == {"type": "json_object"}


def test_store_and_show_report_the_shortened_memory(nacre: Nacre, old: str, set_model: Ask) -> None:
    shortened = OLD.rpartition(" ")[0]
    set_model({"reason": "it moved", "action": "AMEND", "target": 1, "merged": shortened})
    outcome = nacre("store", NEW, "--online-dedup", "--dedup-threshold", "0.3")
    assert f"shortened: {shortened}" in outcome.out
    result = nacre("show", old)
    assert "by fake:m: it moved" in result.out
    assert nacre("show", old, "--json").json["memory"]["content"] == shortened
    assert "ends a part of" in nacre("log", "--json").json["operations"][0]["operation"]["why"]


def test_trace_counts_a_call_once(nacre: Nacre, old: str, set_model: Ask) -> None:
    provider = set_model(update())
    nacre("store", NEW, "--online-dedup", "--dedup-threshold", "0.3")
    assert len(provider.calls) == 1
    (trace,) = nacre("writer", "traces", "--json").json["traces"]
    assert (trace["task"], trace["model"], trace["error"]) == ("dedup", "fake:m", "")
    output = nacre("writer", "traces", trace["id"]).out
    assert output.count("fake:m") == 1
    assert "adds the paper" in output


def test_missing_model_is_reported_on_online_dedup(nacre: Nacre, old: str) -> None:
    outcome = nacre("store", NEW, "--online-dedup")
    assert (
        "no language model is set (nacre config set models.default); the rules decided"
        in outcome.err
    )


def test_refused_key_is_reported_and_rules_decide(nacre: Nacre, old: str, set_model: Ask) -> None:
    set_model(Reply(status=401, message="that key is not known"))
    outcome = nacre("store", NEW, "--online-dedup", "--dedup-threshold", "0.3")
    assert "; the rules decided" in outcome.err
    assert "Stored" in outcome.out


def test_hanging_model_is_awaited_up_to_the_configured_time(
    nacre: Nacre, old: str, set_model: Ask
) -> None:
    set_model(Reply(fault="hang"), rest="\n[dedup]\nmodel_seconds = 0.2\n")
    outcome = nacre("store", NEW, "--online-dedup", "--dedup-threshold", "0.3")
    assert "; the rules decided" in outcome.err
    assert "Stored" in outcome.out


def test_git_keeps_old_words_and_undo_restores_the_file_exactly(
    nacre: Nacre, user_home: Path, old: str, set_model: Ask
) -> None:
    (file,) = (user_home / ".nacre" / "vault").rglob("the-ferry*.md")
    before = file.read_bytes()
    nacre("admin", "commit")
    set_model(update())
    nacre("store", NEW, "--online-dedup", "--dedup-threshold", "0.3")
    nacre("admin", "commit")
    name = file.relative_to(user_home / ".nacre" / "vault").as_posix()
    result = subprocess.run(
        ["git", "show", f"HEAD~1:{name}"],
        cwd=user_home / ".nacre" / "vault",
        capture_output=True,
        check=True,
    )
    assert result.stdout == before
    assert BOTH.encode() in file.read_bytes()
    nacre("undo", nacre("log", "--json").json["operations"][0]["operation"]["id"], "--yes")
    assert file.read_bytes() == before
