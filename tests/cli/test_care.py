"""The commands ``doctor``, ``db``, ``config`` and ``completion``."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from nacre.errors import UnavailableError
from tests.cli.conftest import Nacre, said, write_transcript


def test_doctor_accepts_a_healthy_home(nacre: Nacre, learned: dict[str, Any]) -> None:
    assert nacre("admin", "doctor", "--json").json["ok"] is True
    checks = {check["name"]: check for check in nacre("admin", "doctor", "--json").json["checks"]}
    assert checks["memories"]["state"] == "ok"
    assert "1 claude-code" in checks["sessions"]["detail"]
    assert all(
        line.startswith(("ok", "warning", " "))
        for line in nacre("admin", "doctor").out.splitlines()
    )


def test_doctor_fails_on_a_broken_memory_file_with_remedy(nacre: Nacre, user_home: Path) -> None:
    nacre("store", "Deploy on Fridays", "--subject", "Deploys")
    _break(user_home)
    answer = nacre("admin", "doctor", code=1)
    assert "failure" in answer.out
    assert "global/fact/deploys.md: broken YAML" in answer.out
    assert "correct the file" in answer.out


def _damage_ledger(home: Path) -> None:
    with (home / "vault/ledger.jsonl").open("ab") as file:
        file.write(b'{"op": "cut\n')


def _commit_object(home: Path) -> Path:
    commit = (home / "vault/.git/refs/heads/main").read_text().strip()
    return home / "vault/.git/objects" / commit[:2] / commit[2:]


def _damage_object(home: Path) -> None:
    _commit_object(home).chmod(0o600)
    _commit_object(home).write_bytes(b"no object")


def _damage_pack(home: Path) -> None:
    pack = next((home / "archive").rglob("*.pack"))
    data = bytearray(pack.read_bytes())
    data[len(data) // 2] ^= 0xFF
    pack.write_bytes(data)


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("ledger", _damage_ledger),
        ("history", lambda home: _commit_object(home).unlink()),
        ("history", _damage_object),
        ("history", lambda home: (home / "vault/.git/refs/heads/main").write_text("")),
        ("archive", _damage_pack),
        (
            "archive",
            lambda home: [
                path.unlink() for path in (home / "archive").rglob("*") if path.is_file()
            ],
        ),
    ],
)
def test_doctor_reports_damaged_state_with_a_hint(
    nacre: Nacre,
    learned: dict[str, Any],
    user_home: Path,
    name: str,
    damage: Callable[[Path], object],
) -> None:
    nacre("admin", "commit")
    assert all(
        check["state"] != "failure" for check in nacre("admin", "doctor", "--json").json["checks"]
    )
    damage(user_home / ".nacre")
    checks = nacre("admin", "doctor", "--json", code=None).json["checks"]
    assert any(
        check["hint"] for check in checks if check["name"] == name and check["state"] != "ok"
    )


def test_store_failing_after_commit_reports_possible_success(
    nacre: Nacre, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise UnavailableError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr("nacre.home.operations.apply_intents", full)
        refused = nacre("store", "The ferry leaves at seven.", "--json", code=5)
    assert json.loads(refused.err or refused.out)["error"]["code"] == "may_be_stored"
    assert "ferry" in nacre("list").out


def test_home_readable_by_others_is_a_warning(nacre: Nacre, user_home: Path) -> None:
    nacre("store", "Deploy on Fridays")
    (user_home / ".nacre").chmod(0o755)
    checks = {check["name"]: check for check in nacre("admin", "doctor", "--json").json["checks"]}
    assert checks["permissions"]["state"] == "warning"
    assert checks["permissions"]["hint"] == "nacre admin doctor --repair"
    nacre("admin", "doctor", "--repair")
    assert (user_home / ".nacre").stat().st_mode & 0o777 == 0o700
    assert {check["state"] for check in nacre("admin", "doctor", "--json").json["checks"]} <= {
        "ok",
        "warning",
    }


def test_db_stats_counts_everything(nacre: Nacre, learned: dict[str, Any]) -> None:
    stats = nacre("admin", "db", "stats", "--json").json
    assert stats["tools"][0]["tool"] == "claude-code"
    assert stats["tools"][0]["turns"] == 6
    assert stats["database_bytes"] > 0
    assert stats["schema"] >= 1
    assert stats["sqlite"].startswith("3.")
    output = nacre("admin", "db", "stats").out
    assert f"{len(learned['memories'])} memor" in output
    assert f"schema {stats['schema']}" in output
    assert stats["database"] in output.replace("\n", "")


def test_rebuild_restores_the_same_memories(nacre: Nacre, learned: dict[str, Any]) -> None:
    nacre("store", "Deploy on Fridays", "--tag", "ops")
    before = nacre("list", "--json").json
    answer = nacre("recall", "which database for billing", "--no-update", "--json").json["hits"]
    nacre("admin", "db", "rebuild", "--yes", "--json")
    assert nacre("list", "--json").json == before
    again = nacre("recall", "which database for billing", "--no-update", "--json").json["hits"]
    assert [(hit["memory"]["id"], hit["evidence"]) for hit in again] == [
        (hit["memory"]["id"], hit["evidence"]) for hit in answer
    ]


def test_rebuild_leaves_unlearned_sessions_to_the_next_ingest(
    nacre: Nacre, user_home: Path
) -> None:
    folder = user_home / ".claude" / "projects" / "-code-harbour"
    texts = {
        "crane": "Remember that the crane of berth two is checked each May.",
        "dock": "Remember that the dock is closed on the first Monday of a month.",
        "old": "Remember that the old pier may carry two tons at most.",
        "new": "Remember that the new pier may carry nine tons at most.",
    }

    def write_session(name: str, *keys: str, day: str) -> None:
        records = [
            said("user", texts.get(key, key), at, session=name, day=day)
            for at, key in enumerate(keys)
        ]
        write_transcript(folder / f"{name}.jsonl", records)

    write_session("5e550001-read", "Hello there, how are you today?", day="2026-10-01")
    write_session("5e550002-unread", "crane", day="2026-10-02")
    nacre("ingest", str(folder / "5e550001-read.jsonl"))
    nacre("ingest", "--no-extract", str(folder / "5e550002-unread.jsonl"))
    write_session("5e550001-read", "Hello there, how are you today?", "dock", day="2026-10-01")
    write_session("5e550003-old", "old", day="2026-09-01")
    write_session("5e550004-new", "new", day="2026-10-03")
    nacre("admin", "db", "rebuild", "--yes")
    assert nacre("list", "--json").json["memories"] == []
    nacre("ingest")
    learned = " ".join(memory["content"] for memory in nacre("list", "--json").json["memories"])
    assert [("crane of" in learned), ("dock is" in learned), ("new pier" in learned)] == [
        True,
        True,
        True,
    ]
    assert "old pier" not in learned, "it existed but was omitted"


def test_rebuild_works_from_only_the_vault(nacre: Nacre, user_home: Path) -> None:
    memory = nacre("store", "Deploy on Fridays", "--json").json["memory_id"]
    (user_home / ".nacre" / "nacre.db").unlink()
    assert "1 memory" in nacre("admin", "db", "rebuild").out
    assert nacre("show", memory, "--json").json["memory"]["content"] == "Deploy on Fridays"


def test_rebuild_names_unreadable_files(nacre: Nacre, user_home: Path) -> None:
    nacre("store", "Deploy on Fridays", "--subject", "Deploys")
    nacre("store", "Ship on Mondays")
    _break(user_home)
    answer = nacre("admin", "db", "rebuild", "--yes", code=1)
    assert "1 memory" in answer.out
    assert "warning: global/fact/deploys.md: broken YAML" in answer.err


def test_a_rebuild_asks_on_a_terminal(nacre: Nacre, terminal: Nacre, user_home: Path) -> None:
    nacre("store", "Deploy on Fridays")
    declined = terminal("admin", "db", "rebuild", typed="n\n")
    assert declined.code == 1
    assert "Nothing was changed." in declined.out
    assert "error:" not in declined.out
    broken_off = terminal("admin", "db", "rebuild", typed="\x04", environ={"NO_COLOR": "1"})
    assert (broken_off.code, "\nerror: interrupted" in broken_off.out) == (130, True)
    assert not (user_home / ".nacre" / "nacre.db.old").exists()
    assert terminal("admin", "db", "rebuild", typed="y\n").code == 0
    assert (user_home / ".nacre" / "nacre.db.old").exists()


def test_a_reset_keeps_the_vault_and_a_copy(nacre: Nacre, user_home: Path) -> None:
    nacre("store", "Deploy on Fridays")
    assert "--yes" in nacre("admin", "db", "reset", code=2).err
    answer = nacre("admin", "db", "reset", "--yes", "--json").json
    assert Path(answer["copy"]).is_file()
    assert not (user_home / ".nacre" / "nacre.db").exists()
    assert nacre("recall", "deploy", "--json").json["hits"]  # the vault was read again
    nacre("admin", "db", "reset", "--yes")
    assert nacre("admin", "db", "reset", "--yes").out == "There is no database to remove.\n"


def test_config_shows_each_value_with_its_origin(
    nacre: Nacre, user_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nacre("config", "set", "recall.limit", "7")
    monkeypatch.setenv("NACRE_RECALL_TURNS", "1")
    config = str(user_home / ".nacre" / "config.toml")
    values = {
        item["key"]: (item["value"], item["origin"])
        for item in nacre("config", "show", "--json").json["settings"]
    }
    assert values["recall.limit"] == (7, config)
    assert values["recall.turns"] == (1, "$NACRE_RECALL_TURNS")
    assert values["mcp.tools"] == ("core", "default")
    differing = [item["key"] for item in nacre("config", "--json").json["settings"]]
    assert {"recall.limit", "recall.turns"} <= set(differing)
    assert "mcp.tools" not in differing
    assert "mcp.tools" not in nacre("config").out
    output = nacre("config", "show").out
    assert "$NACRE_RECALL_TURNS" in output
    assert config in output


def test_config_show_prints_only_the_value(nacre: Nacre) -> None:
    assert nacre("config", "show", "recall.limit").out == "10\n"
    assert nacre("config", "show", "ingest.roots").out == "[]\n"
    assert nacre("config", "show", "recall.limit", "--json").json == {
        "key": "recall.limit",
        "value": 10,
        "origin": "default",
        "default": 10,
        "form": "whole",
        "choices": [],
        "summary": "memories in an answer",
        "variable": "NACRE_RECALL_LIMIT",
    }


def test_config_set_accepts_lists_and_warns_about_environment_overrides(
    nacre: Nacre, monkeypatch: pytest.MonkeyPatch
) -> None:
    nacre("config", "set", "ingest.roots", '["/data/sessions"]')
    assert nacre("config", "show", "ingest.roots").out == '["/data/sessions"]\n'
    monkeypatch.setenv("NACRE_RECALL_LIMIT", "3")
    assert (
        "$NACRE_RECALL_LIMIT is set and overrides the file"
        in nacre("config", "set", "recall.limit", "5").err
    )


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("recall.limit", "many", "recall.limit cannot be 'many'"),
        ("recall.limit", "0", "recall.limit must be at least 1"),
        ("mcp.tools", "most", "mcp.tools cannot be 'most'"),
        ("recall.colour", "red", "no setting is called 'recall.colour'"),
        ("models.default", "qwen3", "models.default cannot be 'qwen3'"),
        ("models.extraction", "none of them", "models.extraction cannot be"),
        ("redaction.patterns", '["("]', "redaction.patterns: '(' is not a regular expression"),
        ("redaction.patterns", '["a*"]', "redaction.patterns: 'a*' matches the empty text"),
    ],
)
def test_a_wrong_setting_is_refused_and_the_file_stays(
    nacre: Nacre, user_home: Path, key: str, value: str, message: str
) -> None:
    answer = nacre("config", "set", key, value, code=2)
    assert message in answer.err
    assert "hint: " in answer.err
    assert not (user_home / ".nacre" / "config.toml").exists()


def test_invalid_setting_is_reported_with_its_place_and_fixed(
    nacre: Nacre, user_home: Path
) -> None:
    config = user_home / ".nacre" / "config.toml"
    config.parent.mkdir(mode=0o700)
    config.write_text('[recall]\nlimit = "many"\n', encoding="utf-8")
    assert "recall.limit cannot be 'many'" in (errors := nacre("list", code=2).err)
    assert str(config) in errors
    nacre("config", "set", "recall.limit", "5")
    assert nacre("config", "show", "recall.limit").out.startswith("5")


def test_config_show_json_contains_the_config_path(nacre: Nacre, user_home: Path) -> None:
    assert nacre("config", "show", "--json").json["config"] == f"{user_home}/.nacre/config.toml"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(nacre: Nacre, shell: str) -> None:
    script = nacre("admin", "completion", shell).out
    assert "_NACRE_COMPLETE" in script
    assert f"{shell}_complete" in script


def test_completion_completes_commands_and_kinds(process: Nacre) -> None:
    def complete(*words: str) -> set[str]:
        line = {
            "_NACRE_COMPLETE": "bash_complete",
            "COMP_WORDS": " ".join(words),
            "COMP_CWORD": str(len(words) - 1),
        }
        return {row.split(",")[-1] for row in process(environ=line, code=None).out.split()}

    assert complete("nacre", "rec") == {"recall"}
    assert complete("nacre", "store", "--kind", "dec") == {"decision"}


def test_completion_is_silent_for_an_unreadable_home(
    process: Nacre, nacre: Nacre, user_home: Path
) -> None:
    (user_home / ".nacre").mkdir()
    (user_home / ".nacre" / "config.toml").write_text("no toml", encoding="utf-8")
    line = {"_NACRE_COMPLETE": "fish_complete", "COMP_WORDS": "nacre show", "COMP_CWORD": ""}
    outcome = process(environ=line, code=None)
    assert (outcome.out.strip(), outcome.err) == ("", "")


def _break(user_home: Path) -> None:
    file = user_home / ".nacre" / "vault" / "global" / "fact" / "deploys.md"
    file.write_text(
        file.read_text(encoding="utf-8").replace("kind: fact", "kind: [fact"), encoding="utf-8"
    )


def test_setting_a_table_merges_and_empty_table_clears(nacre: Nacre) -> None:
    def labels() -> Any:
        return nacre("config", "show", "projects.labels", "--json").json["value"]

    nacre("config", "set", "projects.labels", '{billing = "acme-billing"}')
    nacre("config", "set", "projects.labels", '{boats = "harbour"}')
    assert labels() == {"billing": "acme-billing", "boats": "harbour"}
    nacre("config", "set", "projects.labels", "{}")
    assert labels() == {}


def test_database_check_finds_and_repairs_orphaned_text(
    nacre: Nacre, learned: dict[str, Any], user_home: Path
) -> None:
    assert nacre("admin", "doctor", "--deep", "--json").json["ok"]
    database = apsw.Connection(
        str(user_home / ".nacre" / "nacre.db")
    )  # the system's SQLite may be too old
    database.execute("INSERT INTO memories_parts (rowid, identifiers) VALUES (99999, 'lost_name')")
    database.close()
    broken = nacre("admin", "doctor", "--deep", "--json", code=1).json
    assert [check["name"] for check in broken["checks"] if check["state"] == "failure"] == [
        "full text"
    ]
    assert nacre("admin", "doctor", "--deep", "--repair", "--json").json["ok"]


def test_vacuum_releases_space_of_deleted_rows(nacre: Nacre, user_home: Path) -> None:
    nacre("list")
    with sqlite3.connect(user_home / ".nacre" / "nacre.db") as database:
        database.execute("CREATE TABLE filler (text TEXT)")
        database.execute("INSERT INTO filler SELECT hex(randomblob(500000))")
        database.execute("DROP TABLE filler")
    database.close()
    answer = nacre("admin", "db", "vacuum", "--json").json
    assert answer["is_clean"]
    assert answer["before"] - answer["after"] > 500_000
    assert answer["after"] == (user_home / ".nacre" / "nacre.db").stat().st_size
