"""The commands ``store``, ``edit``, ``retire`` and ``todo``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import SESSION, Nacre, findings, said, write_transcript


def test_a_stored_memory_is_a_file_and_is_found(nacre: Nacre, user_home: Path) -> None:
    outcome = nacre(
        "store",
        "We run billing on PostgreSQL 18",
        "--subject",
        "Database",
        "--kind",
        "decision",
        "--importance",
        "9",
        "--project",
        "Acme Billing",
        "--tag",
        "postgres",
        "--tag",
        "billing",
        "--scope",
        "personal",
        "--expiry",
        "core",
    )
    assert outcome.out.startswith("Stored: decision Database")
    file = user_home / ".nacre" / "vault" / "projects" / "acme-billing" / "decision" / "database.md"
    assert "We run billing on PostgreSQL 18" in file.read_text(encoding="utf-8")
    memory = nacre("list", "--json").json["memories"][0]
    assert memory["tags"] == ["billing", "postgres"]
    assert (memory["importance"], memory["scope"], memory["expiry"]) == (9, "personal", "core")


def test_unknown_repository_becomes_a_project_with_its_first_memory(
    nacre: Nacre, tmp_path: Path, user_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "checkout" / "docs"
    folder.mkdir(parents=True)
    (folder.parent / ".git").mkdir()
    (folder.parent / ".git" / "config").write_text(
        '[remote "origin"]\n\turl = git@host.example:ada/hivelog.git\n'
    )
    monkeypatch.chdir(folder)
    command = ("store", "The hive is read at dawn", "--project", ".", "--json")
    assert nacre(*command, "--dry-run").json["memory"]["project"] == "hivelog"
    page = user_home / ".nacre" / "vault" / "projects" / "hivelog" / "project.md"
    assert not page.exists()
    assert nacre(*command).json["action"] == "stored"
    assert "host.example/ada/hivelog" in page.read_text()
    assert nacre("list", "--project", ".", "--json").json["total"] == 1
    other = nacre("store", "The scale is read at noon", "--json").json["memory_id"]
    assert nacre("edit", other, "--project", ".", "--json").json["project"] == "hivelog"
    monkeypatch.chdir(user_home)
    assert (
        "belongs to no known project"
        in nacre("store", "The owner likes tea", "--project", ".", code=3).err
    )


def test_store_json_reports_the_outcome(nacre: Nacre) -> None:
    answer = nacre("store", "Tabs, not spaces", "--json").json
    assert answer["action"] == "stored"
    assert (
        nacre("show", answer["memory_id"], "--json").json["memory"]["content"] == "Tabs, not spaces"
    )
    again = nacre("store", "Tabs, not spaces", "--json").json
    assert again["action"] == "known"
    assert again["memory_id"] == answer["memory_id"]
    assert nacre("store", "Tabs, not spaces").out.startswith("Already stored: ")
    assert nacre("store", "Tabs, not spaces", "--force", "--json").json["action"] == "stored"


def test_canonical_key_belongs_to_a_single_memory(nacre: Nacre) -> None:
    nacre("store", "Indent with tabs", "--key", "style/indent")
    second = nacre("store", "Indent with two spaces", "--key", "style/indent", "--json").json
    assert [item["memory"]["content"] for item in second["supersedes"]] == ["Indent with tabs"]


def test_dash_reads_content_from_standard_input(nacre: Nacre) -> None:
    nacre("store", "-", "--subject", "Checklist", stdin="one\ntwo\n")
    assert nacre("show", "Checklist", "--json").json["memory"]["content"] == "one\ntwo"


def test_non_utf8_content_is_stored_partially(process: Nacre) -> None:
    process("store", "-", "--subject", "Odd", input=b"caf\xe9 au lait", text=False)
    assert "caf" in process("show", "Odd").out


def test_secrets_do_not_reach_the_vault(nacre: Nacre, user_home: Path) -> None:
    secret = "ghp_" + "a1B2" * 9
    nacre("store", f"The token is {secret}")
    nacre(
        "retire", nacre("list", "--json").json["memories"][0]["id"], "--reason", f"{secret} leaked"
    )
    assert not [
        path
        for path in user_home.rglob("*")
        if path.is_file() and secret.encode() in path.read_bytes()
    ]


def test_edit_changes_only_named_fields(nacre: Nacre) -> None:
    memory = nacre(
        "store", "Deploy on Fridays", "--tag", "ops", "--project", "acme", "--json"
    ).json["memory_id"]
    assert nacre("edit", memory, "--importance", "9", "--kind", "decision").out.startswith(
        "Saved: decision "
    )
    now = nacre("show", memory, "--json").json
    assert (
        now["memory"]["importance"],
        now["memory"]["kind"],
        now["memory"]["tags"],
        now["memory"]["project"],
    ) == (
        9,
        "decision",
        ["ops"],
        "acme",
    )
    nacre(
        "edit",
        memory,
        "--project",
        "",
        "--tag",
        "release",
        "--content",
        "-",
        stdin="Deploy on Mondays",
    )
    now = nacre("show", memory, "--json").json
    assert (now["memory"]["content"], now["memory"]["tags"], now["memory"]["project"]) == (
        "Deploy on Mondays",
        ["release"],
        None,
    )
    assert "/global/decision/" in now["path"]


def test_generated_title_follows_the_content_and_given_titles_stay(
    nacre: Nacre,
) -> None:
    memory_id = nacre("store", "Staging is rebuilt every Sunday night", "--json").json["memory_id"]
    listed_memory_id = nacre(
        "store", "Releases leave on Mondays", "--subject", "Days of releases", "--json"
    ).json["memory_id"]
    nacre("edit", memory_id, "--content", "Staging is rebuilt every Monday night")
    nacre("edit", listed_memory_id, "--content", "Releases leave on Tuesdays")
    assert "Sunday" not in nacre("show", memory_id).out
    assert nacre("show", listed_memory_id, "--json").json["memory"]["subject"] == "Days of releases"


def test_edit_sets_the_event_date_and_permanent_expiry(
    nacre: Nacre,
) -> None:
    memory = nacre("store", "The office is in the old mill", "--json").json["memory_id"]
    nacre("edit", memory, "--valid", "2026-01-01..", "--evergreen", "--suppress", "session-start")
    now = nacre("show", memory, "--json").json
    assert (now["memory"]["valid"], now["memory"]["evergreen"]) == (
        {"since": "2026-01-01", "until": None},
        True,
    )
    assert "old mill" not in nacre("context").out
    output = nacre("show", memory).out
    assert "evergreen" in output
    assert "excluded from" in output
    assert "session-start" in output
    nacre("edit", memory, "--valid", "..2099-06-30", "--no-evergreen", "--suppress", "")
    assert "evergreen" not in nacre("show", memory).out
    now = nacre("show", memory, "--json").json
    assert (now["memory"]["valid"], now["memory"]["evergreen"]) == (
        {"since": None, "until": "2099-06-30"},
        False,
    )
    assert "old mill" in nacre("context").out
    nacre("edit", memory, "--valid", "")
    assert nacre("show", memory, "--json").json["memory"]["valid"] == {"since": None, "until": None}


@pytest.mark.parametrize("period", ["2026-01-01", "2026-05-01..2026-04-01", "soon.."])
def test_invalid_period_is_refused(nacre: Nacre, period: str) -> None:
    memory = nacre("store", "The office is in the old mill", "--json").json["memory_id"]
    assert nacre("edit", memory, "--valid", period, "--json", code=2).error["code"] == "usage"


def test_memories_with_the_same_key_supersede_each_other(nacre: Nacre) -> None:
    key = ("--kind", "preference", "--key", "deploy-day-rule")
    nacre("store", "Deploy on Fridays only after 15:00", *key)
    answer = nacre("store", "Deploy on Mondays", *key, "--json").json
    assert [item["memory"]["content"] for item in answer["supersedes"]] == [
        "Deploy on Fridays only after 15:00"
    ]
    assert [memory["content"] for memory in nacre("list", "--json").json["memories"]] == [
        "Deploy on Mondays"
    ]


def test_edit_without_options_needs_a_terminal(nacre: Nacre) -> None:
    nacre("store", "Deploy on Fridays")
    assert nacre("edit", "Deploy on Fridays", "--json", code=2).error["code"] == "usage"


def test_edit_opens_the_editor_and_rereads_the_file(nacre: Nacre, terminal: Nacre) -> None:
    nacre("store", "Deploy on Fridays", "--subject", "Deploys")
    outcome = terminal("edit", "Deploys", environ={"EDITOR": "sed -i s/Fridays/Mondays/"})
    assert outcome.code == 0, outcome.out
    assert nacre("show", "Deploys", "--json").json["memory"]["content"] == "Deploy on Mondays"


def test_broken_edit_is_reported_and_the_old_version_stays(nacre: Nacre, terminal: Nacre) -> None:
    nacre("store", "Deploy on Fridays", "--subject", "Deploys")
    outcome = terminal(
        "edit", "Deploys", environ={"EDITOR": "sed -i 's/^kind: .*/kind: [fact/'", "NO_COLOR": "1"}
    )
    assert outcome.code == 2
    assert "error: global/fact/deploys.md: broken YAML" in outcome.out
    assert "Deploy on Fridays" in nacre("recall", "deploy").out


def test_retired_memory_is_not_recalled_and_its_file_remains(nacre: Nacre, user_home: Path) -> None:
    memory = nacre("store", "Deploy on Fridays", "--json").json["memory_id"]
    answer = nacre("retire", memory[-8:], "--reason", "we moved to Mondays", "--json").json
    assert [item["id"] for item in answer["retired"]] == [memory]
    assert nacre("recall", "deploy", "--json").json["hits"] == []
    assert list((user_home / ".nacre" / "vault" / "retired").rglob("*.md"))
    assert "we moved to Mondays" in nacre("show", memory).out
    assert nacre("retire", memory, "--json", code=4).error["code"] == "conflict"


@pytest.mark.parametrize(("answer", "code", "is_retired"), [("y\n", 0, True), ("n\n", 1, False)])
def test_retire_asks_on_a_terminal(
    nacre: Nacre, terminal: Nacre, answer: str, code: int, is_retired: bool
) -> None:
    nacre("store", "Deploy on Fridays")
    outcome = terminal("retire", "Deploy on Fridays", typed=answer)
    assert outcome.code == code
    assert "Retire? [y/N]" in outcome.out
    assert (nacre("list", "--json").json["total"] == 0) is is_retired
    assert ("Nothing was changed." in outcome.out) is not is_retired


def test_todos_are_added_listed_and_done(nacre: Nacre) -> None:
    assert "Nothing to do." in nacre("todo").out
    todo = nacre("todo", "add", "Rotate", "the", "staging", "keys", "--json").json
    assert nacre("show", todo["memory_id"], "--json").json["memory"]["kind"] == "todo"
    nacre("todo", "add", "Upgrade PostgreSQL", "--project", "acme", "--importance", "8")
    assert "Rotate the staging keys" in nacre("todo").out
    assert nacre("todo", "--json").json["total"] == 2
    assert nacre("todo", "--project", "acme", "--json").json["total"] == 1
    assert nacre("todo", "done", todo["memory_id"][-8:]).out == "Done: Rotate the staging keys\n"
    assert nacre("todo", "--json").json["total"] == 1


def test_todo_is_completed_by_words_of_its_subject(nacre: Nacre) -> None:
    nacre("todo", "add", "Rotate the staging keys")
    nacre("todo", "add", "Rotate the logs")
    nacre("todo", "done", "rotate", code=4)
    nacre("todo", "done", "staging")
    assert [todo["content"] for todo in nacre("todo", "--json").json["memories"]] == [
        "Rotate the logs"
    ]
    nacre("todo", "done", "kubernetes", code=3)


def test_only_todos_can_be_completed(nacre: Nacre) -> None:
    nacre("store", "Deploy on Fridays")
    assert "is a fact, not a todo" in nacre("todo", "done", "Deploy on Fridays", code=2).err


def test_pending_move_is_not_mistaken_for_a_copy(nacre: Nacre, user_home: Path) -> None:
    vault = user_home / ".nacre/vault"
    for subject in ("Gate", "Lunch"):
        nacre("store", f"{subject} has words of its own", "--subject", subject)
    nacre("retire", "Gate", "Lunch")
    folder = vault / "global/fact"
    if folder.exists():
        folder.rmdir()
    folder.write_text("in the way")
    assert "not written yet" in nacre("retire", "--restore", "Gate").err
    nacre("retire", "--restore", "Lunch")
    folder.unlink()
    assert {memory["subject"] for memory in nacre("list", "--json").json["memories"]} == {
        "Gate",
        "Lunch",
    }
    assert '"copy"' not in (vault / "ledger.jsonl").read_text()
    assert sorted(path.name for path in vault.rglob("*.md")) == ["gate.md", "lunch.md"]
    assert findings(nacre("admin", "doctor", "--deep", "--json").json) == []


def test_list_and_show_mark_memories_without_a_project(nacre: Nacre, user_home: Path) -> None:
    text = "We decided to store all amounts in cents, because sums must not drift."
    record = said("user", text, 1, cwd=str(user_home))
    write_transcript(user_home / ".claude" / "projects" / "-home" / f"{SESSION}.jsonl", [record])
    nacre("ingest")

    (memory,) = nacre("list", "--json").json["memories"]
    assert (memory["project"], memory["inbox"]) == (None, True)
    assert " inbox " in nacre("list").out
    assert "unknown (inbox)" in nacre("show", memory["id"]).out

    nacre("edit", memory["id"], "--project", "")
    assert nacre("list", "--json").json["memories"][0]["inbox"] is False
    assert "inbox" not in nacre("list").out


@pytest.mark.embedding
def test_stored_memory_is_compared_by_meaning_without_a_daemon(nacre: Nacre) -> None:
    first = "The billing service runs on PostgreSQL because the ledger needs transactions."
    nacre("store", first, "--kind", "decision")
    again = "We chose PostgreSQL for the invoice service, since its ledger needs transactions."
    answer = nacre("store", again, "--kind", "decision", "--json").json
    links = nacre("show", answer["memory_id"], "--json").json["links"]
    assert [(link["origin"], link["subject"]) for link in links] == [
        ("auto", first.removesuffix("."))
    ]


@pytest.mark.embedding
def test_memory_doubted_by_words_is_not_doubted_by_meaning(nacre: Nacre, user_home: Path) -> None:
    nacre("store", "Uploads may be 10 MB", "--project", "acme")
    answer = nacre("store", "Uploads have changed to 25 MB", "--project", "acme", "--json").json
    assert answer["supersedes"] == []
    assert [item["content"] for item in answer["similar"]] == ["Uploads may be 10 MB"]
    (file,) = (user_home / ".nacre" / "vault").rglob("uploads-have-changed*.md")
    assert file.read_text(encoding="utf-8").count("contradicts") == 1


@pytest.mark.embedding
def test_store_works_lexically_without_the_embedding_model(
    nacre: Nacre, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NACRE_EMBEDDING_MODEL", f"onnx:{tmp_path / 'nowhere'}")
    first = nacre("store", "The ledger is kept for seven years.", "--json").json
    assert first["action"] == "stored"
    assert nacre("store", "The ledger is kept for seven years.", "--json").json["action"] == "known"
    assert (
        nacre("recall", "how long is the ledger kept?", "--json").json["hits"][0]["memory"]["id"]
        == first["memory_id"]
    )


def test_agent_memory_is_attributed_to_the_agent(
    nacre: Nacre, tmp_path: Path, user_home: Path
) -> None:
    record = said("user", "Remember: the gate code is changed every June.", 1)
    nacre("ingest", str(write_transcript(tmp_path / "talk.jsonl", [record])), "--no-vectors")
    assert "said by you" in nacre("recall", "gate code").out
    (file,) = (user_home / ".nacre" / "vault").rglob("*gate*.md")
    file.write_text(
        file.read_text(encoding="utf-8").replace("speaker: owner", "speaker: agent"),
        encoding="utf-8",
    )
    output = nacre("recall", "gate code").out
    assert "said by agent" in output
    assert "said by you" not in output


def test_agent_proposal_is_marked(nacre: Nacre, user_home: Path) -> None:
    nacre("store", "The gate code is changed every June.")
    assert "proposal" not in nacre("recall", "gate code").out
    (file,) = (user_home / ".nacre" / "vault").rglob("*gate*.md")
    proposed = file.read_text(encoding="utf-8").replace(
        "speaker: owner", "speaker: agent\nproposed: true"
    )
    file.write_text(proposed, encoding="utf-8")
    assert "an agent's proposal" in nacre("recall", "gate code").out


def test_owner_words_are_not_quoted_as_agent_words(
    nacre: Nacre, tmp_path: Path, user_home: Path
) -> None:
    record = said("user", "Remember: the gate code is changed every June.", 1)
    nacre("ingest", str(write_transcript(tmp_path / "talk.jsonl", [record])), "--no-vectors")
    (file,) = (user_home / ".nacre" / "vault").rglob("*gate*.md")
    front = file.read_text(encoding="utf-8").rpartition("---\n")[0]
    own = "The gate code rotates yearly; ask the harbour office for it."
    file.write_text(f"{front}---\n{own}\n", encoding="utf-8")
    assert (
        "said by you in claude-code 7f3a1c2d#0: “Remember: the gate code"
        in nacre("recall", "gate code").out
    )
    file.write_text(
        f"{front.replace('speaker: owner', 'speaker: agent')}---\n{own}\n", encoding="utf-8"
    )
    output = nacre("recall", "gate code").out
    assert "said by agent in claude-code 7f3a1c2d#0" in output
    assert "“Remember" not in output


def test_memory_expires_on_its_day_and_edit_restores_it(nacre: Nacre) -> None:
    answer = nacre(
        "store", "Staging runs on the spare cluster", "--expires-on", "2100-01-02", "--json"
    ).json
    assert "expires on  2100-01-02" in nacre("show", answer["memory_id"]).out
    assert nacre("recall", "spare cluster", "--json").json["hits"]
    nacre("edit", answer["memory_id"], "--expires-on", "2020-01-02")
    assert not nacre("recall", "spare cluster", "--json").json["hits"]
    assert "expired 2020-01-02: Staging runs" in nacre("list").out
    nacre("edit", answer["memory_id"], "--expires-on", "")
    assert nacre("recall", "spare cluster", "--json").json["hits"]
    assert nacre("list", "--json").json["memories"][0]["expires_on"] is None


def test_invalid_expiry_date_is_refused_with_an_example(nacre: Nacre) -> None:
    assert "write 2026-12-31" in nacre("store", "x", "--expires-on", "soon", code=2).err


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("Nadia trains Piet.", "Piet trains Nadia."),
        ("The pump is driven in C.", "The pump is driven in C++."),
        ("Is the pump driven in C?", "The pump is driven in C."),
    ],
)
def test_equal_words_with_another_meaning_are_stored_separately(
    nacre: Nacre, first: str, then: str
) -> None:
    nacre("store", first)
    nacre("store", then)
    assert {memory["content"] for memory in nacre("list", "--json").json["memories"]} == {
        first,
        then,
    }
