"""Output of ``recall``, ``list``, ``show`` and ``sessions`` for people and programs."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import SESSION, Nacre, said, write_transcript

UTC_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z")
QUESTION = "which database do we use for billing?"


def test_recall_shows_the_memory_and_its_source(nacre: Nacre, learned: dict[str, Any]) -> None:
    answer = nacre("recall", QUESTION)
    assert "PostgreSQL" in answer.out
    assert "decision" in answer.out
    assert "acme-billing" in answer.out
    assert f"said by you in claude-code {SESSION[:8]}#2" in answer.out
    assert answer.err == ""


def test_question_needs_no_quotes(nacre: Nacre, learned: dict[str, Any]) -> None:
    assert "PostgreSQL" in nacre("recall", "which", "database", "for", "billing").out


def test_recall_as_json_has_the_promised_fields(nacre: Nacre, learned: dict[str, Any]) -> None:
    answer = nacre("recall", QUESTION, "--json").json
    assert set(answer) >= {"query", "hits", "turns", "lanes"}
    hit = answer["hits"][0]
    assert set(hit) >= {
        "memory",
        "score",
        "confidence",
        "candidate",
        "evidence",
        "components",
    }
    assert (hit["confidence"], hit["candidate"]) == ("likely", False)
    assert hit["memory"]["kind"] == "decision"
    assert hit["memory"]["project"] == "acme-billing"
    assert UTC_TIME.fullmatch(hit["memory"]["created"])
    evidence = hit["evidence"][0]
    assert set(evidence) == {"session_id", "turn_id", "seq", "speaker", "time", "excerpt"}
    assert evidence["session_id"] == f"claude-code:{SESSION}"
    assert evidence["turn_id"] == "7f3a1c2d-turn-2"
    assert evidence["speaker"] == "owner"
    assert UTC_TIME.fullmatch(evidence["time"])
    assert {lane["name"]: lane["state"] for lane in answer["lanes"]} == {
        "lexical": "ran",
        "vector": "skipped",
    }
    assert answer["query"] == QUESTION


def test_json_is_accepted_before_the_command_too(nacre: Nacre, learned: dict[str, Any]) -> None:
    assert nacre("--json", "recall", QUESTION).json["hits"]


def test_recall_shows_or_omits_turns(nacre: Nacre, learned: dict[str, Any]) -> None:
    words = "agent: Done: the billing service now runs on PostgreSQL"
    assert words in nacre("recall", QUESTION).out
    assert words not in nacre("recall", QUESTION, "--turns", "0").out
    assert len(nacre("recall", QUESTION, "--turns", "1", "--json").json["turns"]) == 1


def test_quotes_show_their_position_in_the_session(nacre: Nacre, user_home: Path) -> None:
    talk = (
        ("user", "the loaves at the north oven come out pale, have a look"),
        ("assistant", "Its thermostat reads twelve degrees too high."),
        ("user", "compare the loaves with those of the south oven"),
        ("assistant", "They are as dark as usual, and no thermostat was changed there."),
        ("user", "never bake pale loaves for the market"),
        ("assistant", "Noted."),
    )
    records = [said(role, text, at) for at, (role, text) in enumerate(talk)]
    write_transcript(user_home / ".claude" / "projects" / "-x" / f"{SESSION}.jsonl", records)
    nacre("ingest")
    output = nacre("recall", "why were the loaves of the north oven pale?").out
    quoted = dict(re.findall(r"^ +#(\d+) \w+: (\w+)", output, re.MULTILINE))
    assert quoted
    assert (
        quoted.items()
        <= {str(at): text.split()[0].strip(".") for at, (_, text) in enumerate(talk)}.items()
    )


@pytest.mark.parametrize("limit", [1, 2])
def test_limit_is_the_number_of_results(nacre: Nacre, learned: dict[str, Any], limit: int) -> None:
    everything = nacre("recall", QUESTION).out
    output = nacre("recall", QUESTION, "-n", str(limit)).out
    assert re.findall(r"^ *(\d+)  ", output, re.MULTILINE) == [str(at + 1) for at in range(limit)]
    assert everything.startswith(output.rstrip())
    answer = nacre("recall", QUESTION, "-n", str(limit), "--json").json
    assert len(answer["hits"]) + len(answer["turns"]) == limit


@pytest.mark.parametrize(
    "command", [("recall",), ("search",), ("search", "--regex", "Rotterdam")], ids=" ".join
)
def test_turns_can_be_opened_by_their_line_of_origin(
    nacre: Nacre, user_home: Path, command: tuple[str, ...]
) -> None:
    filler = "The harbour has many quays and we looked at each of them in turn. " * 9
    answer = f"""For the nightly ferry export we compared three hosts, first the depot server, then the
        mirror in Hamburg, then the old workstation under the desk, which all have too little room for the
        archives of two years, so in the end the only host that fits is Rotterdam, port 7420. {filler}"""
    records = [said("user", "hello", 1), said("assistant", filler + answer, 2)]
    write_transcript(user_home / ".claude" / "projects" / "-x" / f"{SESSION}.jsonl", records)
    nacre("ingest")
    question = () if len(command) > 1 else ("which host gets the nightly ferry export?",)
    output = " ".join(nacre(*command, *question).out.split())
    assert f"claude-code {SESSION[:8]}#1" in output
    assert "Rotterdam, port 7420." in output
    if question:
        assert "…For the nightly ferry export" in output
    assert (
        "hello" not in nacre("sessions", "show", f"{SESSION[:8]}#1").out.partition("assistant")[2]
    )


def test_explain_shows_the_score_components_and_lanes(
    nacre: Nacre, learned: dict[str, Any]
) -> None:
    answer = nacre("recall", QUESTION, "--explain").out
    assert re.search(r"^\s+lexical\s+\d\.\d{4}$", answer, re.MULTILINE)
    assert re.search(r"^\s+× recency\s+\d\.\d{4}$", answer, re.MULTILINE)
    assert "lanes: lexical ran; vector skipped (off in the settings)" in answer


def test_explained_components_multiply_to_the_score(nacre: Nacre) -> None:
    for content, more in (
        ("Billing uses PostgreSQL", ("--importance", "9")),
        ("Ferries are paid with tokens", ("--importance", "4", "--tag", "ferry")),
        ("Order new rope for the ferry of the harbour", ("--kind", "todo")),
    ):
        nacre("store", content, *more)
    for question in (
        "which database does billing use?",
        "how are ferries paid?",
        "rope for the harbour ferry",
    ):
        for hit in nacre("recall", question, "--json").json["hits"]:
            parts = hit["components"]
            assert 0.5 <= parts["worth"] <= 1.25
            factors = math.prod(value for name, value in parts.items() if name.startswith("x_"))
            assert hit["score"] == pytest.approx(parts["relevance"] * factors, abs=0.001)
    assert re.search(
        r"^\s+score\s+0\.\d{4} = relevance × .*strength",
        nacre("recall", "how are ferries paid?", "--explain").out,
        re.MULTILINE,
    )


def test_empty_result_is_not_an_error(nacre: Nacre, learned: dict[str, Any]) -> None:
    answer = nacre("recall", "zeppelin maintenance")
    assert "Nothing matches." in answer.out
    assert nacre("recall", "zeppelin maintenance", "--json").json["hits"] == []


@pytest.mark.parametrize(
    "arguments",
    [("recall", "anything"), ("list",), ("sessions", "list"), ("search", "anything")],
)
def test_empty_memory_explains_how_to_begin(nacre: Nacre, arguments: tuple[str, ...]) -> None:
    answer = nacre(*arguments)
    assert "There are no memories yet." in answer.out
    assert "nacre ingest" in answer.out


def test_browsing_needs_no_question(nacre: Nacre, learned: dict[str, Any]) -> None:
    assert nacre("recall", "--browse", "--json").json["hits"]
    assert nacre("recall", code=2).err.startswith("error: the question is empty")


def test_filters_narrow_the_answer(nacre: Nacre) -> None:
    nacre(
        "store",
        "Deploys happen on Fridays",
        "--kind",
        "decision",
        "--project",
        "acme",
        "--tag",
        "ops",
    )
    nacre(
        "store",
        "Deploys need two reviewers",
        "--kind",
        "fact",
        "--importance",
        "4",
        "--scope",
        "public",
    )
    ask = ("recall", "deploys", "--turns", "0", "--json")

    def contents(*filters: str) -> set[str]:
        return {hit["memory"]["content"].split()[1] for hit in nacre(*ask, *filters).json["hits"]}

    assert contents() == {"happen", "need"}
    assert contents("--kind", "decision") == {"happen"}
    assert contents("--kind", "decision", "--kind", "fact") == {"happen", "need"}
    assert contents("--tag", "ops") == {"happen"}
    assert contents("--project", "Acme") == {"happen", "need"}
    assert contents("--project", "acme", "--strict") == {"happen"}
    assert contents("--exclude-project", "acme") == {"need"}
    assert contents("--min-importance", "5") == {"happen"}
    assert contents("--scope", "public") == {"need"}
    assert contents("--since", "1d") == {"happen", "need"}
    assert contents("--until", "1d") == set()
    assert contents("--expiry", "temporary") == set()
    assert contents("--limit", "1") < {"happen", "need"}


def test_unknown_project_is_pointed_out(nacre: Nacre) -> None:
    nacre("store", "Deploys happen on Fridays", "--project", "acme")
    answer = nacre("recall", "deploys", "--project", "amce")
    assert "warning: there is no project 'amce'; known projects: acme" in answer.err


def test_dot_selects_the_project_of_the_current_folder(
    nacre: Nacre, user_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "lighthouse"
    (folder / "lamp").mkdir(parents=True)
    records = [
        said(
            "user",
            "We decided to paint the lighthouse red because it is easy to see.",
            1,
            cwd=str(folder),
        )
    ]
    write_transcript(user_home / ".claude" / "projects" / "-x" / f"{SESSION}.jsonl", records)
    nacre("ingest")
    monkeypatch.chdir(folder / "lamp")
    nacre("store", "The lamp is serviced in spring", "--project", ".")
    listed = nacre("list", "--project", ".", "--strict", "--json").json["memories"]
    assert {memory["project"] for memory in listed} == {"lighthouse"}
    monkeypatch.chdir(tmp_path)
    everywhere = nacre("list", "--project", ".", "--json").json
    assert len(everywhere["memories"]) == len(nacre("list", "--json").json["memories"])
    for words in (("recall", "lamp"), ("did", "lamp.py"), ("sessions", "list")):
        assert (
            "belongs to no known project, so all projects are shown" in nacre(*words, "-p", ".").err
        )
    nacre("context", "-p", ".")
    assert "belongs to no known project" in nacre("dream", "-p", ".", "--yes", code=3).err


def test_budget_truncates_the_answer_with_a_notice(nacre: Nacre) -> None:
    for day in ("Monday", "Tuesday", "Wednesday"):
        nacre(
            "store",
            f"On {day} the deploy window opens at noon and closes in the evening, {day} being {day}.",
        )
    assert "token budget" in nacre("recall", "deploy window", "--budget", "30").out


def test_recall_can_leave_usage_unchanged(nacre: Nacre, learned: dict[str, Any]) -> None:
    memory = nacre("recall", QUESTION, "--no-update", "--json").json["hits"][0]["memory"]["id"]
    nacre("store", "folds usage in")
    assert nacre("show", memory, "--json").json["usage"]["recall_count"] == 0
    nacre("recall", QUESTION)
    nacre("store", "folds usage in again")
    assert nacre("show", memory, "--json").json["usage"]["recall_count"] == 1


def test_list_as_json_has_the_promised_fields(nacre: Nacre, learned: dict[str, Any]) -> None:
    nacre("store", "Told by hand")
    answer = nacre("list", "--json").json
    assert set(answer) == {"memories", "outdated_by", "total"}
    by_hand, *imported = answer["memories"]
    assert set(by_hand) >= {
        "id",
        "kind",
        "subject",
        "content",
        "importance",
        "project",
        "tags",
        "created",
        "source",
    }
    assert by_hand["content"] == "Told by hand"
    assert by_hand["source"]["session"] is None
    assert {memory["source"]["session"] for memory in imported} == {f"claude-code:{SESSION}"}
    assert answer["total"] == len(answer["memories"]) == len(learned["memories"]) + 1


def test_a_list_has_pages(nacre: Nacre) -> None:
    for number in range(3):
        nacre("store", f"Memory number {number}")
    assert "2 of 3 memories; more: --offset 2" in nacre("list", "--limit", "2").out
    assert len(nacre("list", "--limit", "2", "--offset", "2", "--json").json["memories"]) == 1


def test_displayed_ids_are_accepted_as_references(nacre: Nacre, learned: dict[str, Any]) -> None:
    memory = nacre("list", "--kind", "decision", "--json").json["memories"][0]
    names, line = nacre("list", "--kind", "decision").out.splitlines()
    assert names.split() == ["id", "date", "kind", "imp.", "project", "memory"]
    displayed_id = line.split()[0]
    assert memory["id"].endswith(displayed_id)
    for reference in (displayed_id, memory["id"], memory["id"][:18], memory["subject"]):
        assert nacre("show", reference, "--json").json["memory"]["id"] == memory["id"]


def test_show_displays_content_evidence_and_path(nacre: Nacre, learned: dict[str, Any]) -> None:
    memory = nacre("list", "--kind", "decision", "--json").json["memories"][0]
    outcome = nacre("show", memory["id"])
    assert memory["content"].split()[0] in outcome.out
    assert "Evidence" in outcome.out
    path = nacre("show", memory["id"], "--json").json["path"]
    assert path in outcome.out
    assert memory["id"] in Path(path).read_text(encoding="utf-8")


def test_show_lists_links_from_both_ends(nacre: Nacre) -> None:
    first = nacre("store", "The barn holds hay", "--json").json["memory_id"]
    second = nacre("store", "We use PostgreSQL now", "--json").json["memory_id"]
    path = Path(nacre("show", second, "--json").json["path"])
    path.write_text(
        path.read_text(encoding="utf-8").replace(
            "---\n", f"---\nlinks: [{{rel: builds_on, to: {first}}}]\n", 1
        ),
        encoding="utf-8",
    )
    assert nacre("show", second, "--json").json["links"] == [
        {
            "rel": "builds_on",
            "other": first,
            "subject": "The barn holds hay",
            "is_outgoing": True,
            "origin": "manual",
            "reason": None,
            "strength": 0.5,
            "valid": {"since": None, "until": None},
        }
    ]
    assert "← builds_on" in nacre("show", first).out


def test_sessions_search_json_uses_native_session_and_turn_ids(
    nacre: Nacre, learned: dict[str, Any]
) -> None:
    answer = nacre("search", "ledger transactions", "--json").json
    assert set(answer) >= {"query", "turns", "lanes", "took_ms"}
    hit = answer["turns"][0]
    assert (hit["session"]["tool"], hit["session"]["native_id"]) == ("claude-code", SESSION)
    assert hit["turn"]["id"] in {"7f3a1c2d-turn-0", "msg_7f3a_1", "7f3a1c2d-turn-2"}
    assert hit["project"] == "acme-billing"
    assert UTC_TIME.fullmatch(hit["turn"]["time"])


def test_sessions_are_searched_by_speaker_and_tool(nacre: Nacre, learned: dict[str, Any]) -> None:
    own = nacre("search", "linter commit", "--mine", "--json").json["turns"]
    assert nacre("search", "linter commit", "--user-only", "--json").json["turns"] == own
    assert {hit["turn"]["speaker"] for hit in own} == {"owner"}
    assert nacre("search", "linter", "--tool", "codex", "--json").json["turns"] == []
    assert "Nothing matches." in nacre("search", "linter", "--tool", "codex").out


@pytest.mark.embedding
def test_uncertain_match_is_a_weak_hit(nacre: Nacre) -> None:
    answer = nacre("store", "Prefers pytest over unittest", "--kind", "preference", "--json").json
    command = ("recall", "test runner I prefer")
    assert re.search(r"Prefers pytest over unittest\n +weak", nacre(*command).out)
    (hit,) = nacre(*command, "--json").json["hits"]
    assert (hit["memory"]["id"], hit["confidence"]) == (answer["memory_id"], "weak")
    assert nacre("recall", "do we use kafka?", "--json").json["hits"] == []


@pytest.mark.embedding
def test_unknown_words_find_no_session(nacre: Nacre, transcript: Path) -> None:
    nacre("ingest")
    assert "Nothing matches." in nacre("search", "flurbl", "grommit", "xyzzy").out
    assert nacre("search", "which", "database", "engine", "--json").json["turns"]


def test_sessions_are_listed_and_shown_turn_by_turn(nacre: Nacre, learned: dict[str, Any]) -> None:
    listed = nacre("sessions", "list", "--json").json
    assert [line["session"]["session"]["native_id"] for line in listed["lines"]] == [SESSION]
    assert listed["lines"][0]["session"]["turns"] == 6
    assert "The billing ledger corrupts" in nacre("sessions", "list").out
    short = nacre("sessions", "list").out.splitlines()[1].split()[0]
    outcome = nacre("sessions", "show", short)
    assert "Always run the linter before you commit." in outcome.out
    assert "Learned from it" in outcome.out
    whole = nacre("sessions", "show", short, "--json").json
    assert [item["turn"]["speaker"] for item in whole["turns"]] == ["owner", "agent"] * 3
    assert len(whole["memories"]) == len(learned["memories"])
    part = nacre("sessions", "show", f"claude-code:{SESSION}", "--from", "1", "--limit", "2")
    assert "3 more turns: --from 3" in part.out


def test_unknown_session_is_not_found(nacre: Nacre) -> None:
    assert nacre("sessions", "show", "nope", "--json", code=3).error["code"] == "not_found"


def test_deep_recall_shows_project_deciders_and_context(nacre: Nacre) -> None:
    nacre("store", "The web shop is rolled back with make rollback.", "--project", "web-shop")
    output = nacre("recall", "--deep", "how is web-shop rolled back?").out
    assert "from project web-shop" in output
    assert "make rollback" in output
    assert "no language model is set, so rules decided everything" in output
    answer = nacre("recall", "--deep", "how is web-shop rolled back?", "--json").json
    assert (answer["route"], answer["project"], answer["model"]) == ("project", "web-shop", None)
    assert [step["by"] for step in answer["steps"]] == ["rules"] * 4
    assert answer["context"].startswith("<nacre-context>")


def test_deep_recall_asks_for_an_ambiguous_project(nacre: Nacre) -> None:
    for project in ("billing", "billing-api"):
        nacre("store", f"The limit of {project} is {len(project)} a second.", "--project", project)
    output = nacre("recall", "--deep", "what is the limit of the billing api?").out
    assert "Which project do you mean?" in output
    assert "--project billing-api" in output


def test_deep_recall_refuses_unsupported_options(nacre: Nacre) -> None:
    assert (
        "--browse cannot be combined with --deep"
        in nacre("recall", "--deep", "x", "--browse", code=2).err
    )


def test_misspelt_question_is_corrected_if_enabled_and_reported(
    nacre: Nacre,
) -> None:
    nacre("store", "The lighthouse lamp burns red")
    assert not nacre("recall", "colour of the lighthuose lapm", "--json").json["hits"]
    output = nacre("recall", "lighthuose burns", "--fuzzy").out
    assert "The lighthouse lamp burns red" in output
    assert "spelling: lighthuose read as lighthouse" in output


def test_misspelt_session_search_is_corrected_if_enabled(
    nacre: Nacre, learned: dict[str, Any]
) -> None:
    assert not nacre("search", "emulatde", "--json").json["turns"]
    assert nacre("search", "emulatde", "--fuzzy", "--json").json["turns"]


def test_options_set_hit_ranking(nacre: Nacre) -> None:
    for content in (
        "The harbour ferry takes lorries and cars at noon",
        "The harbour ferry takes lorries and cars at dusk",
        "Ferry tickets of the harbour are blue",
    ):
        nacre("store", content, "--force")

    def last_words(*options: str) -> list[str]:
        answer = nacre("recall", "harbour ferry lorries", *options, "--no-update", "--json").json
        return [hit["memory"]["content"].split()[-1] for hit in answer["hits"]]

    assert last_words()[1] == "blue"
    assert last_words("--no-mmr")[2] == "blue"
    assert last_words("--threshold", "1") == []
    assert "range" in nacre("recall", "ferry", "--threshold", "7", code=2).err
    assert (
        "--fuzzy cannot be combined with --deep"
        in nacre("recall", "--deep", "ferry", "--fuzzy", code=2).err
    )
