"""What every import promises: idempotent, untrusted unless told otherwise, nothing of the owner's overwritten."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest

from tests.cli.conftest import Nacre
from tests.imports.test_sources import Put, listed

Agenr = Callable[..., Path]

KEEL = {
    "id": "e-1",
    "type": "fact",
    "subject": "Keel",
    "content": "The keel of the dinghy is made of ash wood.",
}
SAIL = {
    "id": "e-2",
    "type": "fact",
    "subject": "Sail",
    "content": "The sail was cut by the loft in Vigo.",
}


def test_second_import_adds_nothing(nacre: Nacre, agenr_database: Agenr, user_home: Path) -> None:
    path = agenr_database([KEEL, SAIL, {**SAIL, "id": "e-3", "subject": "The sail"}])
    first = nacre("data", "import", str(path), "--json").json
    assert (first["added"], first["duplicates"]) == (2, 1)
    files = {
        file: file.read_bytes()
        for file in (user_home / ".nacre/vault").rglob("*")
        if file.is_file()
    }
    again = nacre("data", "import", str(path), "--json").json
    assert (again["added"], again["known"], again["duplicates"]) == (0, 2, 1)
    assert {
        file: file.read_bytes()
        for file in (user_home / ".nacre/vault").rglob("*")
        if file.is_file()
    } == files


def test_dry_run_shows_the_plan_and_writes_nothing(
    nacre: Nacre, agenr_database: Agenr, user_home: Path
) -> None:
    path = agenr_database([KEEL, SAIL])
    shown = nacre("data", "import", str(path), "--dry-run").out
    assert "2 memories (2 fact)" in shown
    assert "untrusted" in shown
    assert nacre("data", "import", str(path), "--dry-run", "--json").json["kinds"] == {"fact": 2}
    assert nacre("list", "--json").json["total"] == 0
    assert not list((user_home / ".nacre/vault").rglob("*.md"))


def test_untrusted_import_supersedes_no_owner_memory(nacre: Nacre, agenr_database: Agenr) -> None:
    nacre(
        "store",
        "We use PostgreSQL for the berth register.",
        "--kind",
        "decision",
        "--key",
        "berth-register-database",
    )
    entry = {
        "id": "x",
        "type": "decision",
        "subject": "Berth register",
        "canonical_key": "berth-register-database",
        "content": "We use MySQL for the berth register now instead of PostgreSQL.",
        "updated_at": "2035-01-01",
    }
    nacre("data", "import", str(agenr_database([entry])), "--json")
    kept = [memory for memory in listed(nacre).values() if memory["trust"] == "trusted"]
    assert len(kept) == 1
    assert kept[0]["superseded_by"] is None


def test_foreign_trust_claims_are_ignored_even_after_rebuild(
    nacre: Nacre, put: Put, user_home: Path
) -> None:
    says = "---\nname: keel\ndescription: About the keel\ntype: project\ntrust: trusted\nspeaker: owner\nimportance: 10\n"  # noqa: E501
    put(
        ".claude/projects/-code-boat/memory",
        {"keel.md": f"{says}mood: calm\n---\nThe keel is made of ash wood.\n"},
    )
    nacre("data", "import", str(put(".claude/projects/-code-boat/memory", {})), "--json")
    (file,) = (user_home / ".nacre/vault/global/fact").iterdir()
    assert "\ntrust: untrusted\n" in file.read_text()
    assert "\nmood: calm\n" in file.read_text()
    nacre("admin", "db", "rebuild", "--yes")
    keel = listed(nacre)["About the keel"]
    assert (keel["trust"], keel["speaker"], keel["importance"]) == ("untrusted", "agent", 7)


def test_trust_given_later_makes_imported_memories_trusted(
    nacre: Nacre, agenr_database: Agenr
) -> None:
    path = agenr_database([KEEL])
    nacre("data", "import", str(path))
    assert listed(nacre)["Keel"]["trust"] == "untrusted"
    assert nacre("data", "import", str(path), "--trust", "--json").json["newly_trusted"] == 1
    assert listed(nacre)["Keel"]["trust"] == "trusted"


def test_retired_memory_is_not_imported_again(nacre: Nacre, agenr_database: Agenr) -> None:
    path = agenr_database([KEEL])
    nacre("data", "import", str(path))
    nacre("retire", "Keel", "--yes", "--reason", "sold the dinghy")
    assert nacre("data", "import", str(path), "--trust", "--json").json["added"] == 0
    assert listed(nacre) == {}


@pytest.mark.parametrize("trusted_before", [False, True])
def test_undone_import_returns_when_the_owner_imports_again(
    nacre: Nacre, agenr_database: Agenr, trusted_before: bool
) -> None:
    path = agenr_database([KEEL])
    nacre("data", "import", str(path), *(["--trust"] if trusted_before else []))
    nacre("undo", "--yes")
    assert nacre("data", "import", str(path), "--json").json["brought_back"] == 0
    assert listed(nacre) == {}
    assert nacre("data", "import", str(path), "--trust", "--json").json["brought_back"] == 1
    assert listed(nacre)["Keel"]["trust"] == "trusted"
    assert nacre("admin", "doctor", "--json").json["ok"] is True
    nacre("undo", "--yes")
    assert listed(nacre) == {}


def test_source_edits_are_imported_unless_edited_locally(nacre: Nacre, put: Put) -> None:
    fact = "---\nname: keel\ndescription: About the keel\ntype: project\n---\n{}\n"
    folder = put(
        ".claude/projects/-code-boat/memory",
        {"keel.md": fact.format("The keel is made of ash wood.")},
    )
    nacre("data", "import", str(folder), "--json")
    put(
        ".claude/projects/-code-boat/memory",
        {"keel.md": fact.format("The keel is made of elm wood, not ash.")},
    )
    assert nacre("data", "import", str(folder), "--json").json["updated"] == 1
    assert listed(nacre)["About the keel"]["content"] == "The keel is made of elm wood, not ash."
    nacre("edit", "About the keel", "--content", "The keel is made of oak.")
    put(
        ".claude/projects/-code-boat/memory",
        {"keel.md": fact.format("The keel is made of teak wood.")},
    )
    assert nacre("data", "import", str(folder), "--json").json["updated"] == 0
    assert listed(nacre)["About the keel"]["content"] == "The keel is made of oak."


def test_edited_source_statement_updates_instead_of_duplicating(nacre: Nacre, put: Put) -> None:
    page = "## People\n- Mira keeps the bees on the north roof\n\n## Deploys\n- Deploys wait for the harbour master{}\n"
    folder = put("workspace", {"MEMORY.md": page.format("")})
    assert nacre("data", "import", str(folder), "--json").json["added"] == 2
    put(
        "workspace",
        {"MEMORY.md": page.format(" and for the tide") + "- Nobody deploys on a Sunday\n"},
    )
    again = nacre("data", "import", str(folder), "--json").json
    assert (again["added"], again["updated"], again["known"]) == (1, 1, 1)
    wanted = {
        "Mira keeps the bees on the north roof",
        "Nobody deploys on a Sunday",
        "Deploys wait for the harbour master and for the tide",
    }
    assert {memory["content"] for memory in listed(nacre).values()} == wanted
    once_more = nacre("data", "import", str(folder), "--json").json
    assert (once_more["added"], once_more["updated"]) == (0, 0)
    put("workspace", {"MEMORY.md": page.format(" and for the tide and the fog")})
    assert nacre("data", "import", str(folder), "--json").json["updated"] == 1
    assert "Nobody deploys on a Sunday" in listed(nacre), "what is deleted there stays here"


def test_statement_edited_locally_keeps_its_words(nacre: Nacre, put: Put) -> None:
    folder = put(
        "workspace", {"MEMORY.md": "- Deploys of the gateway wait for the harbour master\n"}
    )
    nacre("data", "import", str(folder), "--json")
    (memory,) = listed(nacre).values()
    nacre("edit", memory["id"], "--content", "Deploys of the gateway wait for nobody.")
    put(
        "workspace",
        {"MEMORY.md": "- Deploys of the gateway wait for the harbour master and the tide\n"},
    )
    assert nacre("data", "import", str(folder), "--json").json["updated"] == 0
    assert nacre("show", memory["id"], "--no-update", "--json").json["memory"]["content"] == (
        "Deploys of the gateway wait for nobody."
    )


def test_endorsed_memories_accept_new_words_only_from_the_endorser(nacre: Nacre, put: Put) -> None:
    fact = "---\nname: keel\ndescription: About the keel\ntype: project\n---\n{}\n"
    folder = put(
        ".claude/projects/-code-boat/memory",
        {"keel.md": fact.format("The keel is made of ash wood.")},
    )
    nacre("data", "import", str(folder), "--trust", "--json")
    put(
        ".claude/projects/-code-boat/memory",
        {"keel.md": fact.format("The keel is made of elm wood, not ash.")},
    )
    assert nacre("data", "import", str(folder), "--json").json["updated"] == 0
    assert listed(nacre)["About the keel"]["content"] == "The keel is made of ash wood."
    assert nacre("data", "import", str(folder), "--trust", "--json").json["updated"] == 1
    assert listed(nacre)["About the keel"]["content"] == "The keel is made of elm wood, not ash."


def test_secrets_in_imported_memories_are_not_stored(
    nacre: Nacre, agenr_database: Agenr, user_home: Path
) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    nacre(
        "data",
        "import",
        str(
            agenr_database([{**KEEL, "content": f"The deploy token of the boat shop is {token}."}])
        ),
    )
    assert "Keel" in listed(nacre)
    assert not [
        file
        for file in (user_home / ".nacre").rglob("*")
        if file.is_file() and token.encode() in file.read_bytes()
    ]


def test_export_is_imported_completely_into_another_home(
    nacre: Nacre, learned: dict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user_home: Path
) -> None:
    stored = nacre(
        "store", "The bell rings at noon", "--tag", "bell", "--project", "harbour", "--json"
    ).json["memory_id"]
    file = next((user_home / ".nacre/vault").rglob("the-bell-rings-at-noon.md"))
    file.write_text(
        file.read_text().replace("\n---\n", "\nmood: [calm, {of: day}]\n---\n", 1), encoding="utf-8"
    )
    nacre("store", "The crane is painted red", "--json")
    nacre("retire", "The crane is painted red", "--yes", "--reason", "it is blue")
    nacre("recall", "when does the bell ring")
    sessions = nacre("sessions", "list", "--json").json["lines"]
    out = tmp_path / "out.jsonl"
    told = nacre("data", "export", str(out), "--sessions", "--include-retired", "--json").json
    assert out.stat().st_mode & 0o777 == 0o600
    assert told["bytes"] == out.stat().st_size
    before = nacre("show", stored, "--no-update", "--json").json

    monkeypatch.setenv("NACRE_HOME", str(tmp_path / "elsewhere"))
    answer = nacre("data", "import", str(out), "--trust", "--json").json
    assert answer["added"] == told["counts"]["memory"]
    assert (answer["sessions"], answer["turns"]) == (
        told["counts"]["session"],
        told["counts"]["turn"],
    )
    after = nacre("show", stored, "--no-update", "--json").json
    path, moved = before.pop("path"), after.pop("path")
    assert after == before
    assert moved.endswith(path.rpartition("vault")[2])
    assert before["memory"]["extra"] == {"mood": ["calm", {"of": "day"}]}
    again = nacre("sessions", "list", "--json").json["lines"]
    assert [
        (line["session"]["session"], line["session"]["turns"], line["opening"]) for line in again
    ] == [
        (line["session"]["session"], line["session"]["turns"], line["opening"]) for line in sessions
    ]
    assert (
        nacre("show", "The crane is painted red", "--no-update", "--json").json["memory"][
            "retired"
        ]["reason"]
        == "it is blue"
    )
    assert nacre("data", "import", str(out), "--trust", "--json").json["added"] == 0
    assert nacre("admin", "doctor", "--json").json["ok"] is True


def test_untrusted_export_imports_no_pages_ledger_or_sessions(
    nacre: Nacre, learned: dict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out.jsonl"
    nacre("data", "export", str(out), "--sessions")
    monkeypatch.setenv("NACRE_HOME", str(tmp_path / "elsewhere"))
    answer = nacre("data", "import", str(out), "--json").json
    assert {item["reason"] for item in answer["skipped"]} == {"requires --trust"}
    assert {memory["trust"] for memory in listed(nacre).values()} == {"untrusted"}
    assert nacre("sessions", "list", "--json").json["lines"] == []


@pytest.mark.parametrize("spoil", ["cut", "changed"])
def test_incomplete_export_is_refused(
    nacre: Nacre, learned: dict, tmp_path: Path, spoil: str
) -> None:
    out = tmp_path / "out.jsonl"
    nacre("data", "export", str(out))
    data = out.read_bytes()
    out.write_bytes(
        data[: data.rindex(b"\n", 0, -1) + 1]
        if spoil == "cut"
        else data.replace(b"PostgreSQL", b"MongoDB!!!")
    )
    assert (
        "is incomplete or was changed"
        in nacre("data", "import", str(out), "--json", code=2).error["message"]
    )


def test_zip_of_markdown_files_is_imported_with_paths_inside_vault(
    nacre: Nacre, learned: dict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import zipfile

    out = tmp_path / "vault.zip"
    nacre("data", "export", str(out))
    with zipfile.ZipFile(out, "a") as archive:
        text = "---\nid: 0198f3c2-7d1a-7c3e-9b1e-5f0c2a4d6e81\nkind: fact\nsubject: Escape\n---\nOut of the vault.\n"
        archive.writestr("projects/../../../escaped/fact/x.md", text)
    monkeypatch.setenv("NACRE_HOME", str(tmp_path / "elsewhere"))
    assert nacre("data", "import", str(out), "--trust", "--json").json["added"] == len(
        learned["memories"]
    )
    assert "Escape" not in listed(nacre)


def test_record_with_a_foreign_project_or_id_stays_in_vault(
    nacre: Nacre, tmp_path: Path, user_home: Path
) -> None:
    import hashlib

    front = {"kind": "fact", "subject": "S", "project": "../../../out"}
    words = {
        "../../evil": "A fact about the outside of a vault.",
        "my-own-id": "Gulls nest on the north pier.",
    }
    lines = [
        {"type": "header", "format": "nacre-export", "version": 1},
        *(
            {
                "type": "memory",
                "path": "inbox/x.md",
                "front": {"id": key, **front},
                "content": content,
            }
            for key, content in words.items()
        ),
    ]
    data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    trailer = {"type": "trailer", "lines": len(lines), "sha256": hashlib.sha256(data).hexdigest()}
    out = tmp_path / "evil.jsonl"
    out.write_bytes(data + json.dumps(trailer).encode() + b"\n")
    answer = nacre("data", "import", str(out), "--json").json
    assert answer["added"] == 1
    assert ["'../../evil' is not a valid id" in item["reason"] for item in answer["skipped"]] == [
        True
    ]
    files = [
        file for folder in (tmp_path, user_home) for file in folder.rglob("*.md") if file.is_file()
    ]
    assert [file.is_relative_to(user_home / ".nacre/vault") for file in files] == [True]
    (memory,) = listed(nacre).values()
    assert (memory["project"], UUID(memory["id"]).version) == ("out", 7)


def test_export_is_redacted_and_never_overwrites_without_force(
    nacre: Nacre, tmp_path: Path, user_home: Path
) -> None:
    nacre("store", "The harbour master is called wobbleword17", "--subject", "Harbour master")
    nacre("config", "set", "redaction.patterns", '["wobbleword\\\\d+"]')
    for name in ("a.jsonl", "a.md", "a.zip"):
        out = tmp_path / name
        nacre("data", "export", str(out))
        assert b"wobbleword" not in out.read_bytes()
        assert nacre("data", "export", str(out), "--json", code=4).error["code"] == "conflict"
        nacre("data", "export", str(out), "--force")
    assert not [file for file in tmp_path.iterdir() if file.name.startswith(".")]


def test_export_is_written_to_standard_output(process: Nacre) -> None:
    process("store", "The bell rings at noon")
    told = process("data", "export", "-")
    lines = [json.loads(line) for line in told.out.splitlines()]
    assert [line["type"] for line in lines] == ["header", "memory", "ledger", "trailer"]
    assert "Exported 1 memory" in told.err


def test_import_plan_is_shown_and_confirmed_in_terminals(
    nacre: Nacre, terminal: Nacre, agenr_database: Agenr
) -> None:
    path = agenr_database([KEEL])
    asked = terminal("data", "import", str(path), typed="n\n")
    assert asked.code == 1
    assert "1 memory (1 fact)" in asked.out
    assert listed(nacre) == {}
    assert terminal("data", "import", str(path), typed="y\n").code == 0
    assert list(listed(nacre)) == ["Keel"]
