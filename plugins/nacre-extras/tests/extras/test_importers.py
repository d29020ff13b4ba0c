"""Databases and folders of agenr, agent-knowledge and ClawXMemory are imported with their meaning."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from tests.cli.conftest import Nacre
from tests.imports.test_sources import listed

Put = Callable[..., Path]


def test_agenr_database_keeps_kinds_dates_importance_tags_and_claims(
    nacre: Nacre, agenr_database: Callable[..., Path]
) -> None:
    path = agenr_database(
        [
            {
                "id": "e-1",
                "type": "decision",
                "subject": "Queue of the mailer",
                "content": "The mailer uses Redis streams as its queue, because jobs must survive a restart.",
                "importance": 9,
                "expiry": "core",
                "scope": "personal",
                "project": "mailer",
                "platform": "codex",
                "canonical_key": "mailer-queue-choice",
                "source_file": "/code/mailer/log.jsonl",
                "suppressed_contexts": '["session-start"]',
            },
            {
                "id": "e-2",
                "type": "todo",
                "subject": "Rotate the signing key",
                "content": "Rotate the signing key of the mailer before June.",
                "importance": 6,
            },
        ],
        tags=[("e-1", "redis"), ("e-1", "queue")],
        links=[("r-1", "e-2", "e-1", "related")],
    )
    answer = nacre("data", "import", str(path), "--json").json
    assert (answer["source"], answer["added"], answer["skipped"]) == ("agenr", 2, [])
    decision = listed(nacre)["Queue of the mailer"]
    assert decision["kind"] == "decision"
    assert (decision["importance"], decision["expiry"], decision["scope"]) == (
        9,
        "core",
        "personal",
    )
    assert (decision["created"], decision["updated"]) == (
        "2026-03-01T10:00:00Z",
        "2026-03-02T10:00:00Z",
    )
    assert decision["tags"] == ["queue", "redis"]
    assert decision["canonical_key"] == "mailer-queue-choice"
    assert (decision["project"], decision["trust"], decision["speaker"]) == (
        "mailer",
        "untrusted",
        "agent",
    )
    memory = nacre("show", decision["id"], "--no-update", "--json").json
    assert memory["memory"]["extra"]["imported"]["id"] == "e-1"
    assert [(link["rel"], link["is_outgoing"]) for link in memory["links"]] == [
        ("related_to", False)
    ]


def test_agenr_retired_expired_and_superseded_memories_stay_retired(
    nacre: Nacre, agenr_database: Callable[..., Path]
) -> None:
    path = agenr_database(
        [
            {
                "id": "new",
                "type": "fact",
                "subject": "Port",
                "content": "The gateway listens on port 9443 now.",
            },
            {
                "id": "old",
                "type": "fact",
                "subject": "Port before",
                "content": "The gateway listens on port 8080.",
                "superseded_by": "new",
                "created_at": "2026-02-01",
            },
            {
                "id": "gone",
                "type": "fact",
                "subject": "Gone",
                "content": "The intranet wiki runs on a Raspberry Pi.",
                "retired": 1,
                "retired_at": "2026-03-05T00:00:00Z",
                "retired_reason": "the wiki moved",
            },
            {
                "id": "late",
                "type": "fact",
                "subject": "Late",
                "content": "The lift is out of order until Friday.",
                "superseded_by": "EXPIRED",
                "updated_at": "2026-03-02T10:00:00.250Z",
            },
            {
                "id": "lost",
                "type": "fact",
                "subject": "Lost",
                "content": "The canteen closes at two o'clock.",
                "superseded_by": "nowhere",
            },
            {
                "id": "odd",
                "type": "riddle",
                "subject": "Odd",
                "content": "What walks on four legs in the morning?",
            },
        ],
        links=[("r-1", "new", "old", "supersedes")],
    )
    answer = nacre("data", "import", str(path), "--json").json
    assert answer["added"] == 5
    assert [item["where"] for item in answer["skipped"]] == ["odd"]
    assert list(listed(nacre)) == ["Port"]
    history = nacre("show", "Port", "--history", "--json").json["history"]
    assert [step["memory"]["subject"] for step in history] == ["Port before", "Port"]
    deleted_memory = nacre("show", "Gone", "--no-update", "--json").json
    retired = deleted_memory["memory"]["retired"]
    assert (retired["at"], retired["reason"]) == ("2026-03-05T00:00:00Z", "the wiki moved")
    assert (
        nacre("show", "Late", "--no-update", "--json").json["memory"]["retired"]["reason"]
        == "expired in agenr"
    )
    assert nacre("admin", "doctor", "--json").json["ok"] is True


def test_agenr_usage_is_imported_only_with_trust(
    nacre: Nacre, agenr_database: Callable[..., Path]
) -> None:
    used = {
        "recall_count": 4,
        "last_recalled_at": "2026-04-01T00:00:00Z",
        "recall_intervals": json.dumps([1775001600 + number for number in range(101)]),
    }
    entry = {
        "id": "e-1",
        "type": "fact",
        "subject": "Tide",
        "content": "The tide gauge reports in centimetres.",
        **used,
    }
    path = agenr_database([entry])
    nacre("data", "import", str(path), "--trust", "--json")
    lines = [json.loads(line) for line in nacre("data", "export", "-").out.splitlines()]
    (usage,) = [line["usage"] for line in lines if line.get("usage")]
    assert usage["intervals"] == [(1775001600 + number) * 1000 for number in range(1, 101)]
    memory = nacre("show", "Tide", "--no-update", "--json").json
    assert (
        memory["usage"]["recall_count"],
        memory["usage"]["last_recalled"],
        memory["memory"]["trust"],
    ) == (
        4,
        "2026-04-01T00:00:00Z",
        "trusted",
    )


def test_agenr_database_with_wal_is_read_without_changes(
    nacre: Nacre, agenr_database: Callable[..., Path]
) -> None:
    entry = {
        "id": "e-1",
        "type": "fact",
        "subject": "Ferry",
        "content": "The ferry leaves from pier four at nine.",
    }
    path = agenr_database([entry], journal="wal")
    assert path.with_name("knowledge.db-wal").stat().st_size > 0
    before = {
        file.name: file.read_bytes()
        for file in path.parent.iterdir()
        if not file.name.endswith("-shm")
    }
    assert nacre("data", "import", str(path.parent), "--json").json["added"] == 1
    assert {
        file.name: file.read_bytes() for file in path.parent.iterdir() if file.name in before
    } == before


def test_encrypted_or_foreign_database_is_a_clear_error(nacre: Nacre, tmp_path: Path) -> None:
    encrypted = tmp_path / "knowledge.db"
    encrypted.write_bytes(bytes(range(256)) * 64)
    error = nacre("data", "import", str(encrypted), "--from", "agenr", "--json", code=2).error
    assert "encrypted, damaged or something else" in error["message"]
    assert (
        nacre("data", "import", str(encrypted), "--json", code=2).error["code"] == "invalid_input"
    )


def test_database_with_invalid_text_is_a_clear_error(
    nacre: Nacre, agenr_database: Callable[..., Path], tmp_path: Path
) -> None:
    entry = {
        "id": "e-1",
        "type": "fact",
        "subject": "Ferry",
        "content": "The ferry leaves from pier four at nine.",
    }
    path = agenr_database([entry])
    path.write_bytes(path.read_bytes().replace(b"pier four", b"pier\xff\xfefou"))
    error = nacre("data", "import", str(path), "--json", code=2).error
    assert "damaged" in error["message"]


def test_agent_knowledge_vault_keeps_titles_confidence_and_edges(nacre: Nacre, put: Put) -> None:

    folder = put(
        "agent-knowledge",
        {
            "identity.md": "# Me\n\n- I maintain three small web shops on my own\n",
            "projects/webshop.md": "---\ntitle: Webshop\ntags: [shop, php]\nupdated: 2026-01-09\nconfidence: inferred\n"
            "confidence_score: 0.75\n---\n# Webshop\n\nThe webshop renders its pages on the server.\n",
            "decisions/tax-service.md": "---\ntitle: Tax service\ntags: [tax]\nupdated: 2026-01-08\nevergreen: true\n"
            "author: lena\n---\nTax rates come from the state's own service, never from a table of ours.\n",
            "decisions/broken.md": "---\ntitle: [oops\n---\nText that nobody can read.\n",
            ".dreams/2026-01-10.md": "# Diary\nNot for recall.\n",
        },
    )
    edges = apsw.Connection(str(folder / "edges.db"))
    edges.execute(
        "CREATE TABLE edges (source TEXT, target TEXT, rel_type TEXT, strength REAL, valid_from TEXT, valid_to TEXT)"
    )
    row = (
        "projects/webshop.md",
        "decisions/tax-service.md",
        "depends_on",
        0.7,
        "2026-01-01",
        "2026-06-01",
    )
    edges.execute("INSERT INTO edges VALUES (?, ?, ?, ?, ?, ?)", row)
    edges.close()
    answer = nacre("data", "import", str(folder), "--json").json
    assert (answer["source"], answer["added"]) == ("agent-knowledge", 3)
    assert [item["where"] for item in answer["skipped"]] == ["decisions/broken.md"]
    memories = listed(nacre)
    shop = nacre("show", memories["Webshop"]["id"], "--no-update", "--json").json
    assert (shop["memory"]["project"], shop["memory"]["confidence"], shop["memory"]["created"]) == (
        "webshop",
        "inferred",
        "2026-01-09T00:00:00Z",
    )
    assert shop["memory"]["content"] == "The webshop renders its pages on the server."
    (link,) = shop["links"]
    assert (link["rel"], link["subject"], link["strength"]) == ("depends_on", "Tax service", 0.7)
    assert link["valid"] == {"since": "2026-01-01", "until": "2026-06-01"}
    tax = nacre("show", memories["Tax service"]["id"], "--no-update", "--json").json
    assert (tax["memory"]["kind"], tax["memory"]["evergreen"], tax["memory"]["author"]) == (
        "decision",
        True,
        "lena",
    )


CLAWX = {
    "global/User/user-profile.md": "---\nname: user-profile\ntype: user\nscope: global\n---\n## Profile\n\n"
    "- Teaches physics at a school in Graz\n\n## Preferences\n\n- Wants formulas in plain text, not as pictures\n",
    "projects/project_0a1b2c3d4e/project.meta.md": "---\nproject_id: project_0a1b2c3d4e\nproject_name: Star Map\n"
    'description: A planisphere for the class\naliases: ["planisphere"]\nstatus: active\n---\n## Summary\n',
    "projects/project_0a1b2c3d4e/MEMORY.md": "# Manifest\n",
    "projects/project_0a1b2c3d4e/Feedback/short-labels.md": "---\nname: Short labels\ndescription: labels\n"
    "type: feedback\nscope: project\nproject_id: project_0a1b2c3d4e\ncaptured_at: 2026-02-01T08:00:00Z\n"
    "updated_at: 2026-02-03T08:00:00Z\ndeprecated: false\n---\n## Rule\n\nLabel stars with at most eight letters.\n",
    "projects/project_0a1b2c3d4e/Project/old.md": "---\nname: Old stage\ntype: project\nscope: project\n"
    "project_id: project_0a1b2c3d4e\ncaptured_at: 2026-01-01T08:00:00Z\nupdated_at: 2026-01-01T08:00:00Z\n"
    "deprecated: true\n---\n## Current Stage\n\nThe map is still a sketch on paper.\n",
    "projects/_tmp/Project/idea.md": "---\nname: An idea\ntype: project\nscope: project\nproject_id: _tmp\n"
    "captured_at: 2026-02-05T08:00:00Z\nupdated_at: 2026-02-05T08:00:00Z\n---\nPrint the horizon on clear film.\n",
}


@pytest.mark.parametrize("form", ["folder", "snapshot"])
def test_clawxmemory_import_keeps_projects_rules_and_deprecations(
    nacre: Nacre, put: Put, form: str
) -> None:
    if form == "folder":
        path = put("clawx", CLAWX)
    else:
        files = [{"relativePath": name, "content": text} for name, text in CLAWX.items()]
        bundle = {
            "formatVersion": "clawxmemory-memory-snapshot.v3",
            "exportedAt": "2026-02-06T00:00:00Z",
            "files": files,
        }
        path = put("bundle", {"snapshot.json": json.dumps(bundle)}) / "snapshot.json"
    answer = nacre("data", "import", str(path), "--trust", "--json").json
    assert (answer["source"], answer["added"], answer["pages"]) == ("clawxmemory", 5, 1)
    memories = listed(nacre)
    rule = memories["Short labels"]
    assert (rule["kind"], rule["project"], rule["updated"]) == (
        "preference",
        "star-map",
        "2026-02-03T08:00:00Z",
    )
    assert memories["Wants formulas in plain text, not as pictures"]["kind"] == "preference"
    assert (
        nacre("show", "Old stage", "--no-update", "--json").json["memory"]["retired"]["reason"]
        == "deprecated in ClawXMemory"
    )
    assert "/inbox/" in nacre("show", "An idea", "--no-update", "--json").json["path"]
    assert nacre("list", "--project", "planisphere", "--strict", "--json").json["total"] == 1


def test_clawxmemory_snapshot_round_trip_preserves_memories(
    nacre: Nacre, put: Put, tmp_path: Path, user_home: Path
) -> None:
    nacre("data", "import", str(put("clawx", CLAWX)), "--trust")
    before = listed(nacre)
    report = nacre(
        "data",
        "export",
        str(tmp_path / "claw.json"),
        "--format",
        "clawxmemory",
        "--include-retired",
        "--json",
    ).json
    assert (report["form"], report["counts"]["memory"]) == ("clawxmemory", 5)
    (user_home / ".nacre").rename(user_home / ".before")
    assert (
        nacre("data", "import", str(tmp_path / "claw.json"), "--trust", "--json").json["source"]
        == "clawxmemory"
    )
    after = listed(nacre)
    facts = ("content", "kind", "project", "created", "updated")
    of_projects = {name for name, item in before.items() if item["project"]}
    assert of_projects == {"Short labels"}
    assert all(
        after[name][fact] == before[name][fact]
        for name in of_projects
        for fact in facts
        if fact != "project"
    )
    assert {item["content"] for item in after.values()} == {
        item["content"] for item in before.values()
    }
    assert (
        nacre("show", "Old stage", "--no-update", "--json").json["memory"]["retired"]["reason"]
        == "deprecated in ClawXMemory"
    )


def test_clawxmemory_snapshot_excludes_untrusted_memories(
    nacre: Nacre, put: Put, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nacre("data", "import", str(put("clawx", CLAWX)))
    nacre("store", "The dome opens at dusk.")
    monkeypatch.setenv("CLAUDECODE", "1")
    nacre("store", "The dome motor runs on twelve volts.", "--project", "dome")
    report = nacre(
        "data", "export", str(tmp_path / "claw.json"), "--format", "clawxmemory", "--json"
    ).json
    assert (report["counts"]["memory"], report["withheld"]) == (1, 5)
    snapshot = (tmp_path / "claw.json").read_text(encoding="utf-8")
    assert "The dome opens" in snapshot
    assert not any(words in snapshot for words in ("twelve volts", "eight letters", "plain text"))


def test_clawxmemory_rules_keep_reason_and_application_for_agents(nacre: Nacre, put: Put) -> None:
    body = (
        "## Rule\n\nLabel stars with at most eight letters.\n\n## Why\n\nThe laser cuts no finer.\n\n"
        "## How to apply\n\nShorten by leaving out vowels.\n\n## Notes\n\nAgreed in class 7b.\n"
    )
    head = "---\nname: Short labels\ntype: feedback\nscope: global\ncaptured_at: 2026-02-01T08:00:00Z\n---\n"
    path = put(
        "clawx", {**CLAWX, "projects/project_0a1b2c3d4e/Feedback/short-labels.md": head + body}
    )
    nacre("data", "import", str(path), "--trust")
    memory = nacre("show", "Short labels", "--no-update", "--json").json
    assert (memory["memory"]["kind"], memory["memory"]["content"]) == ("preference", body.strip())
    nacre("edit", "Short labels", "--project", "")
    context = nacre("context", "--start", "--part", "rules").out
    for words in ("at most eight letters", "cuts no finer", "leaving out vowels", "class 7b"):
        assert words in context
