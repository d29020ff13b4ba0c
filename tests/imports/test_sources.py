"""Every source is recognised by its content and read as its own program means it."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Nacre

Put = Callable[..., Path]


def listed(nacre: Nacre) -> dict[str, Any]:
    """Active memories by subject."""
    return {
        memory["subject"]: memory
        for memory in nacre("list", "--limit", "1000", "--json").json["memories"]
    }


def test_codex_handbook_without_task_groups_is_read(nacre: Nacre, put: Put) -> None:
    handbook = "## User preferences\n\n- Prefer small commits with the reason in the body\n"
    folder = put(
        "memories",
        {"MEMORY.md": handbook, "memory_summary.md": "## What's in Memory\n\n- importer\n"},
    )
    assert nacre("data", "import", str(folder), "--json").json["added"] == 1


def test_claude_code_memory_is_read_by_fact_and_project(nacre: Nacre, put: Put) -> None:
    folder = put(
        ".claude/projects/-code-acme-billing",
        {
            "0b1e.jsonl": json.dumps(
                {"type": "user", "cwd": "/code/acme-billing", "sessionId": "0b1e"}
            )
            + "\n",
            "memory/MEMORY.md": "- [Tests](test-style.md) — how tests are named\n- [Ledger](ledger-lock.md) — a trap\n",
            "memory/test-style.md": "---\nname: test-style\ndescription: Tests are named as sentences\n"
            "metadata:\n  type: feedback\n---\nName every test as a sentence.\n\nSee [[ledger-lock]].\n",
            "memory/ledger-lock.md": "---\nname: ledger-lock\ndescription: The ledger needs its lock\ntype: project\n"
            "originSessionId: 0b1e\n---\nTake the ledger lock before the account lock, else both wait forever.\n",
        },
    )
    answer = nacre("data", "import", str(folder / "memory"), "--json").json
    assert (answer["source"], answer["added"]) == ("claude-memory", 2)
    found = listed(nacre)
    assert found["Tests are named as sentences"]["kind"] == "preference"
    assert {memory["project"] for memory in found.values()} == {"acme-billing"}
    shown = nacre("show", found["The ledger needs its lock"]["id"], "--no-update", "--json").json
    assert shown["memory"]["extra"]["originSessionId"] == "0b1e"
    assert [link["subject"] for link in shown["links"]] == ["Tests are named as sentences"]
    assert nacre("data", "import", str(folder.parent), "--json").json["known"] == 2


def test_openclaw_pages_are_permanent_and_diary_entries_temporary(nacre: Nacre, put: Put) -> None:
    folder = put(
        "workspace",
        {
            "AGENTS.md": "# Rules\nBe kind.\n",
            "MEMORY.md": "# Memory\n\n## Preferences\n- **Coffee:** black, never after four in the afternoon\n"
            "- Answers in German please, unless code is quoted\n\n## People\n- Mira keeps the bees on the north roof\n",
            "memory/2026-02-14.md": "# 2026-02-14\n\n- Moved the beehive sensors to the new gateway\n- ok\n",
            "memory/heartbeat-state.json": "{}",
        },
    )
    answer = nacre("data", "import", str(folder), "--json").json
    assert (answer["source"], answer["added"]) == ("openclaw", 4)
    found = listed(nacre)
    assert (found["Coffee"]["kind"], found["Coffee"]["expiry"]) == ("preference", "permanent")
    assert found["Mira keeps the bees on the north roof"]["kind"] == "relationship"
    diary = found["Moved the beehive sensors to the new gateway"]
    assert (diary["kind"], diary["expiry"], diary["created"]) == (
        "event",
        "temporary",
        "2026-02-14T00:00:00Z",
    )


def test_openclaw_user_page_yields_directives_without_its_template(nacre: Nacre, put: Put) -> None:
    page = (
        "# USER.md\n\nStore stable user preferences as directives.\n\n```md\n"
        "<!-- observed: YYYY-MM-DD | status: active -->\n\n- Prefer concise updates.\n```\n\n## Directives\n\n"
        "<!-- observed: 2026-02-14 | status: active -->\n\n- Prefer answers in German, also\n  in comments.\n\n"
        "<!-- observed: 2026-01-03 | status: superseded -->\n\n- Prefer answers in Portuguese.\n"
    )
    folder = put("workspace", {"USER.md": page})
    assert nacre("data", "import", str(folder / "USER.md"), "--json").json["source"] == "openclaw"
    (found,) = listed(nacre).values()
    assert (found["kind"], found["created"]) == ("preference", "2026-02-14T00:00:00Z")
    assert found["content"].startswith("Prefer answers in German, also")


def test_older_openclaw_user_page_is_read_as_free_notes(nacre: Nacre, put: Put) -> None:
    folder = put(
        "workspace", {"USER.md": "# About you\n\n- Works on tide tables, mostly at night\n"}
    )
    assert nacre("data", "import", str(folder), "--json").json["added"] == 1


@pytest.mark.parametrize("name", ["CLAUDE.md", ".claude/CLAUDE.md", "AGENTS.md", "GEMINI.md"])
def test_instruction_files_are_read_by_statement_without_nacre_blocks(
    nacre: Nacre, put: Put, name: str
) -> None:
    text = (
        "# House rules\n\n- Name every test as a sentence.\n\n## Decisions\n\n- The ledger runs on PostgreSQL.\n\n"
        "<!-- nacre:start -->\nCall memory_search before you decide anything.\n<!-- nacre:end -->\n"
    )
    folder = put(
        "tide-tables",
        {name: text, ".git/HEAD": "ref: refs/heads/main\n", "vendor/AGENTS.md": "- Not this.\n"},
    )
    answer = nacre("data", "import", str(folder), "--json").json
    assert (answer["source"], answer["added"]) == ("instructions", 2)
    found = {memory["content"]: memory for memory in listed(nacre).values()}
    assert found["Name every test as a sentence."]["kind"] == "preference"
    assert found["The ledger runs on PostgreSQL."]["kind"] == "decision"
    assert {(item["trust"], item["speaker"], item["project"]) for item in found.values()} == {
        ("untrusted", "agent", "tide-tables")
    }
    assert nacre("data", "import", str(folder / name), "--json").json["known"] == 2


def test_codex_memories_are_read_from_the_handbook_without_evidence(nacre: Nacre, put: Put) -> None:
    folder = put(
        ".codex/memories",
        {
            "MEMORY.md": "# Task Group: tide-tables / importer\nscope: the importer\n"
            "applies_to: cwd=/code/tide-tables; reuse_rule=this checkout\n\n## Task 1: Fix the leap second\n\n"
            "### rollout_summary_files\n\n- rollout_summaries/a.md (cwd=/code/tide-tables)\n\n### keywords\n\n"
            "- leap second, importer\n\n## User preferences\n\n- Prefer small commits with the reason in the body\n\n"
            "## Reusable knowledge\n\n- The importer must read times as UTC before it sorts them\n",
            "memory_summary.md": "## User Profile\n\nWrites tide software and reads every diff before a commit.\n\n"
            "## What's in Memory\n\n- importer: leap second\n",
            "rollout_summaries/a.md": "# A run\nNothing of this comes in.\n",
            "raw_memories.md": "# Raw\n",
        },
    )
    answer = nacre("data", "import", str(folder), "--json").json
    assert (answer["source"], answer["added"]) == ("codex-memories", 3)
    assert {item["reason"] for item in answer["skipped"]} == {"evidence for MEMORY.md"}
    found = listed(nacre)
    preference = found["Prefer small commits with the reason in the body"]
    assert (preference["kind"], preference["project"]) == ("preference", "tide-tables")
    assert set(preference["tags"]) == {"leap second", "importer"}
    assert found["The importer must read times as UTC before it sorts them"]["kind"] == "lesson"


def test_claude_ai_memories_are_imported_with_conversations(nacre: Nacre, tmp_path: Path) -> None:
    path = tmp_path / "data.zip"
    said = [{"type": "text", "text": "Which glue holds cork?"}]
    message = {
        "uuid": "m-1",
        "sender": "human",
        "text": "",
        "content": said,
        "created_at": "2026-05-01T10:00:00Z",
    }
    remembered = {
        "conversations_memory": "**Work context**\n\nBuilds boats of cork in Porto.",
        "project_memories": {"p-1": "The keel is made of ash wood."},
    }
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            "conversations.json",
            json.dumps([{"uuid": "c-1", "name": "Cork", "chat_messages": [message]}]),
        )
        archive.writestr("memories.json", json.dumps([remembered]))
        archive.writestr("projects.json", json.dumps([{"uuid": "p-1", "name": "Cork Boat"}]))
    answer = nacre("data", "import", str(path), "--json").json
    assert (answer["source"], answer["added"], answer["ingest"]["turns"]) == ("claude-ai", 2, 1)
    assert {memory["project"] for memory in listed(nacre).values()} == {None, "cork-boat"}
    again = nacre("data", "import", str(path), "--json").json
    assert (again["added"], again["known"]) == (0, 2)


def test_lone_surrogate_in_an_export_is_replaced(nacre: Nacre, tmp_path: Path) -> None:
    path = tmp_path / "data.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            "conversations.json", '[{"uuid": "c-1", "name": "Cork", "chat_messages": []}]'
        )
        archive.writestr(
            "memories.json", r'[{"conversations_memory": "Builds boats of cork \ud800 in Porto."}]'
        )
    assert nacre("data", "import", str(path), "--json").json["added"] == 1
    assert [memory["content"] for memory in listed(nacre).values()] == [
        "Builds boats of cork ? in Porto."
    ]
    assert nacre("admin", "doctor", "--deep", "--json", code=None).json["ok"]


def test_folder_without_a_known_memory_format_is_refused(nacre: Nacre, put: Put) -> None:
    error = nacre(
        "data", "import", str(put("notes", {"a.md": "# Just a note\n"})), "--json", code=2
    ).error
    assert "--from" in error["hint"]
