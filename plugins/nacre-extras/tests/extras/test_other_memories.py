"""claude-mem, mem0, basic-memory, mcp-memory-service and Letta: recognised by content, read as they mean it."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from extras import others
from tests.cli.conftest import Nacre
from tests.imports.test_sources import listed


def left_out(told: dict[str, Any]) -> dict[str, int]:
    """How many things were left out, by reason."""
    return {one["reason"]: one["count"] for one in told["left_out"]}


@pytest.mark.parametrize("name", others.EVERYTHING)
def test_foreign_model_memories_are_untrusted_deduplicated_and_undone_together(
    nacre: Nacre, tmp_path: Path, name: str
) -> None:
    path = others.EVERYTHING[name](tmp_path)
    before = {file: file.read_bytes() for file in (path, *path.rglob("*")) if file.is_file()}
    planned = nacre("data", "import", str(path), "--dry-run", "--json").json
    assert listed(nacre) == {}
    told = nacre("data", "import", str(path), "--json").json
    assert told["source"] == name.split()[0]
    assert told["added"] == planned["added"] > 0
    assert sum(left_out(told).values()) == sum(item["count"] for item in told["skipped"])
    found = listed(nacre).values()
    assert {(memory["speaker"], memory["trust"]) for memory in found} == {("agent", "untrusted")}
    again = nacre("data", "import", str(path), "--json").json
    assert (again["added"], again["known"]) == (0, told["added"])
    assert nacre("context").out.strip() == ""
    (operation,) = nacre("log", "--json").json["operations"]
    nacre("undo", operation["operation"]["id"], "--yes")
    assert listed(nacre) == {}
    assert {file: file.read_bytes() for file in before} == before
    assert nacre("admin", "doctor", "--json").json["ok"] is True


def test_claude_mem_separates_decisions_fixes_and_work_without_prompts(
    nacre: Nacre, tmp_path: Path
) -> None:
    told = nacre("data", "import", str(others.claude_mem(tmp_path).parent), "--json").json
    assert (told["source"], told["added"]) == ("claude-mem", 4)
    assert left_out(told) == {
        "prompts are in the sessions; nacre ingest reads them": 2,
        "an observation without text": 1,
    }
    found = listed(nacre)
    decision = found["Berths are numbered"]
    assert (decision["kind"], decision["project"], decision["created"]) == (
        "decision",
        "harbour",
        "2026-03-01T10:00:00Z",
    )
    assert decision["content"].endswith(
        "pilots count them so.\n\n- Number one is nearest to the lighthouse."
    )
    assert decision["tags"] == ["decision", "why-it-exists"]
    assert nacre("show", decision["id"], "--no-update", "--json").json["memory"]["extra"][
        "files"
    ] == ["src/berths.py"]
    assert found["The tide table was off by one"]["kind"] == "lesson"
    work, summary = found["Pilots can book a berth"], found["Mend the tide table"]
    assert {(one["kind"], one["expiry"], one["importance"]) for one in (work, summary)} == {
        ("event", "temporary", 5)
    }
    assert summary["content"].startswith("Learned: The gauge reports in its own zone.")


def test_claude_mem_export_equals_its_database(nacre: Nacre, tmp_path: Path) -> None:
    nacre("data", "import", str(others.claude_mem(tmp_path)), "--json")
    told = nacre("data", "import", str(others.claude_mem_export(tmp_path)), "--json").json
    assert (told["added"], told["known"]) == (0, 4)


def test_dry_run_counts_skipped_items_with_reasons(nacre: Nacre, tmp_path: Path) -> None:
    shown = nacre("data", "import", str(others.claude_mem(tmp_path)), "--dry-run").out
    assert "2 prompts are in the sessions; nacre ingest reads them: prompts" in " ".join(
        shown.split()
    )


def test_mcp_memory_service_keeps_types_and_relations_without_derivations(
    nacre: Nacre, tmp_path: Path
) -> None:
    told = nacre("data", "import", str(others.memory_service(tmp_path)), "--json").json
    assert told["added"] == 3
    assert left_out(told) == {
        "similarity links are computed again": 1,
        "deleted in mcp-memory-service": 1,
        "an association computed by it": 1,
    }
    found = listed(nacre)
    assert len(found) == 2
    decision = found["We keep the logbook in PostgreSQL"]
    assert (decision["kind"], decision["project"]) == ("decision", "harbour")
    assert decision["tags"] == ["decision", "storage"]
    assert (decision["created"], decision["updated"]) == (
        "2026-03-01T10:00:00.500000Z",
        "2026-03-02T10:00:00Z",
    )
    history = nacre("show", decision["id"], "--history", "--json").json["history"]
    assert [step["memory"]["content"][:22] for step in history] == [
        "The logbook was kept i",
        "We keep the logbook in",
    ]
    bug = nacre(
        "show",
        "Exports of the logbook fail when a ship's name has a comma",
        "--no-update",
        "--json",
    ).json
    assert (bug["memory"]["kind"], bug["memory"]["project"]) == ("lesson", "harbour")
    assert [(link["rel"], link["reason"], link["other"]) for link in bug["links"]] == [
        ("related_to", "causes", decision["id"])
    ]


def test_mem0_categories_become_tags_kinds_and_dates_with_expiry(
    nacre: Nacre, tmp_path: Path
) -> None:
    nacre("data", "import", str(others.written(tmp_path / "mem0.json", others.MEM0)), "--json")
    found = listed(nacre)
    tabs = found["Prefers tabs over spaces in Makefiles"]
    assert (tabs["kind"], tabs["project"], tabs["tags"]) == (
        "preference",
        "harbour",
        ["user_preferences"],
    )
    assert (tabs["created"], tabs["updated"]) == ("2026-03-01T19:00:00Z", "2026-03-04T19:00:00Z")
    extra = nacre("show", tabs["id"], "--no-update", "--json").json["memory"]["extra"]
    assert (extra["user_id"], extra["branch"]) == ("lena", "main")
    assert found["Is on leave in the first week of May"]["expires_on"] == "2035-05-08"


def test_mem0_lists_and_multi_page_folders_are_read(nacre: Nacre, tmp_path: Path) -> None:
    others.written(tmp_path / "pages/1.json", others.MEM0["results"][:1])
    others.written(tmp_path / "pages/2.json", {"results": others.MEM0["results"][1:]})
    told = nacre("data", "import", str(tmp_path / "pages"), "--json").json
    assert (told["source"], told["added"]) == ("mem0", 2)


def test_openmemory_backup_imports_archived_memories_as_retired(
    nacre: Nacre, tmp_path: Path
) -> None:
    with zipfile.ZipFile(tmp_path / "memories_export_lena.zip", "w") as archive:
        archive.writestr("memories.json", json.dumps(others.OPENMEMORY))
        archive.writestr("memories.jsonl.gz", b"\x1f\x8b")
    told = nacre("data", "import", str(tmp_path / "memories_export_lena.zip"), "--json").json
    assert (told["source"], told["added"], left_out(told)) == ("mem0", 2, {"deleted in mem0": 1})
    found = listed(nacre)
    assert {subject: (one["kind"], one["tags"]) for subject, one in found.items()} == {
        "Decided to ship the pilot app as one binary": ("decision", ["decisions"])
    }
    archived = nacre("show", "The pilot app used to be a web page", "--no-update", "--json").json
    assert archived["memory"]["retired"]["reason"] == "archived in mem0"


def test_mem0_plugin_markdown_is_read_by_block(nacre: Nacre, tmp_path: Path) -> None:
    nacre(
        "data",
        "import",
        str(others.written(tmp_path / "mem0-export.md", others.MEM0_MARKDOWN)),
        "--json",
    )
    found = listed(nacre)
    assert found["The staging gauge is called Marta"]["kind"] == "fact"
    lesson = found["Run the gauge tests with a fixed clock, else they fail at midnight"]
    assert (lesson["kind"], lesson["tags"]) == ("lesson", ["coding_conventions"])
    extra = nacre("show", lesson["id"], "--no-update", "--json").json["memory"]["extra"]
    assert (extra["branch"], extra["files"]) == ("main", ["src/tides.py", "src/gauge.py"])


def test_agent_file_imports_blocks_without_persona_and_conversations(
    nacre: Nacre, tmp_path: Path
) -> None:
    told = nacre(
        "data",
        "import",
        str(
            others.written(
                tmp_path / "quartermaster.af",
                {**others.AGENT_FILE, "files": [{"id": "file-0", "file_name": "tides.pdf"}]},
            )
        ),
        "--json",
    ).json
    assert left_out(told) == {"no memories": 4, "a description of the agent": 1}
    assert {item["where"]: item["count"] for item in told["skipped"]} == {
        "quartermaster: persona": 1,
        "quartermaster.af: messages of conversations": 2,
        "quartermaster.af: tools": 1,
        "quartermaster.af: files": 1,
    }
    assert {subject: one["kind"] for subject, one in listed(nacre).items()} == {
        "Wants orders confirmed in writing before noon": "preference",
        "Marta runs the second store on the north pier": "relationship",
    }


@pytest.mark.parametrize("form", ["older", "as a text"])
def test_older_agent_file_formats_are_read(nacre: Nacre, tmp_path: Path, form: str) -> None:
    older = {
        "agent_type": "memgpt_agent",
        "name": "mate",
        "system": "You are the mate.",
        "messages": [],
        "tools": [],
        "core_memory": [
            {
                "label": "human",
                "value": "Sails only with the morning tide.",
                "created_at": "2026-01-05T00:00:00Z",
            }
        ],
    }
    held = older if form == "older" else json.dumps(json.dumps(others.AGENT_FILE))
    told = nacre("data", "import", str(others.written(tmp_path / "mate.af", held)), "--json").json
    assert (told["source"], told["added"]) == ("letta", 1 if form == "older" else 2)


def test_archival_memory_is_imported_without_file_chunks(nacre: Nacre, tmp_path: Path) -> None:
    told = nacre(
        "data", "import", str(others.written(tmp_path / "archival.json", others.PASSAGES)), "--json"
    ).json
    assert left_out(told) == {"a part of a file": 1}
    (rope,) = listed(nacre).values()
    assert (rope["created"], rope["tags"]) == ("2026-03-03T08:00:00Z", ["archival", "rope"])


def test_basic_memory_notes_become_statements_and_linked_text(nacre: Nacre, tmp_path: Path) -> None:
    told = nacre("data", "import", str(others.basic_memory(tmp_path)), "--json").json
    assert (told["source"], left_out(told)) == ("basic-memory", {"a schema for notes": 1})
    found = listed(nacre)
    assert {subject: one["kind"] for subject, one in found.items()} == {
        "Tide Gauge": "fact",
        "Tide Gauge: The gauge reports in centimetres, never in feet (agreed…": "decision",
        "Tide Gauge: Readings go out every five minutes": "preference",
        "Pilot App: The app must work without a network for a whole day": "preference",
        "Harbour Network": "fact",
    }
    note = nacre("show", "Tide Gauge", "--no-update", "--json").json
    assert (note["memory"]["created"], note["memory"]["updated"]) == (
        "2026-02-01T00:00:00Z",
        "2026-02-03T09:30:00Z",
    )
    assert (note["memory"]["trust"], note["memory"]["extra"]["status"]) == ("untrusted", "in use")
    assert "- [maker] Seba" in note["memory"]["content"]
    assert "- depends_on [[Harbour Network]]" in note["memory"]["content"]
    assert "centimetres" not in note["memory"]["content"]
    named = {one["id"]: subject.partition(":")[0] for subject, one in found.items()}
    out = [link for link in note["links"] if link["is_outgoing"]]
    assert {(link["rel"], link["reason"], named[link["other"]]) for link in out} == {
        ("depends_on", None, "Harbour Network"),
        ("related_to", "reports to", "Pilot App"),
    }
    assert sum(link["rel"] == "part_of" and not link["is_outgoing"] for link in note["links"]) == 2
    decision = next(one for one in found.values() if one["kind"] == "decision")
    assert decision["tags"] == ["decision", "gauge", "hardware", "units"]


def test_secret_in_an_export_is_not_imported(nacre: Nacre, tmp_path: Path, user_home: Path) -> None:
    token = "ghp_" + "9fKq2LmX7vRt4WzN8bYc1DsH6jPa3EuG5oTi"
    row = {**others.MEM0["results"][0], "memory": f"The deploy token of the gauge is {token}"}
    nacre(
        "data", "import", str(others.written(tmp_path / "mem0.json", {"results": [row]})), "--json"
    )
    (memory,) = listed(nacre).values()
    assert "[redacted" in memory["content"].lower()
    assert not any(
        token.encode() in file.read_bytes()
        for file in (user_home / ".nacre").rglob("*")
        if file.is_file()
    )
