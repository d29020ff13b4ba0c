"""Files of claude-mem, mem0, basic-memory, mcp-memory-service and Letta are recognised and
imported."""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from extras import others
from tests.cli.conftest import Nacre
from tests.imports.test_sources import listed


def skipped(report: dict[str, Any]) -> dict[str, int]:
    """Return the number of skipped items by reason."""
    counts: Counter[str] = Counter()
    for item in report["skipped"]:
        counts[item["reason"]] += item["count"]
    return dict(counts)


@pytest.mark.parametrize("name", others.EVERYTHING)
def test_foreign_model_memories_are_untrusted_deduplicated_and_undone_together(
    nacre: Nacre, tmp_path: Path, name: str
) -> None:
    path = others.EVERYTHING[name](tmp_path)
    before = {file: file.read_bytes() for file in (path, *path.rglob("*")) if file.is_file()}
    planned = nacre("data", "import", str(path), "--dry-run", "--json").json
    assert listed(nacre) == {}
    report = nacre("data", "import", str(path), "--json").json
    assert report["source"] == name.split()[0]
    assert report["added"] == planned["added"] > 0
    memories = listed(nacre).values()
    assert {(memory["speaker"], memory["trust"]) for memory in memories} == {("agent", "untrusted")}
    again = nacre("data", "import", str(path), "--json").json
    assert (again["added"], again["known"]) == (0, report["added"])
    assert nacre("context").out.strip() == ""
    (operation,) = nacre("log", "--json").json["operations"]
    nacre("undo", operation["operation"]["id"], "--yes")
    assert listed(nacre) == {}
    assert {file: file.read_bytes() for file in before} == before
    assert nacre("admin", "doctor", "--json").json["ok"] is True


def test_claude_mem_separates_decisions_fixes_and_work_without_prompts(
    nacre: Nacre, tmp_path: Path
) -> None:
    report = nacre("data", "import", str(others.claude_mem(tmp_path).parent), "--json").json
    assert (report["source"], report["added"]) == ("claude-mem", 4)
    assert skipped(report) == {
        "prompts are in the sessions; nacre ingest reads them": 2,
        "an observation without text": 1,
    }
    memories = listed(nacre)
    decision = memories["Berths are numbered"]
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
    assert memories["The tide table was off by one"]["kind"] == "lesson"
    work, summary = memories["Pilots can book a berth"], memories["Mend the tide table"]
    assert {(item["kind"], item["expiry"], item["importance"]) for item in (work, summary)} == {
        ("event", "temporary", 5)
    }
    assert summary["content"].startswith("Learned: The gauge reports in its own zone.")


def test_claude_mem_export_equals_its_database(nacre: Nacre, tmp_path: Path) -> None:
    nacre("data", "import", str(others.claude_mem(tmp_path)), "--json")
    report = nacre("data", "import", str(others.claude_mem_export(tmp_path)), "--json").json
    assert (report["added"], report["known"]) == (0, 4)


def test_dry_run_counts_skipped_items_with_reasons(nacre: Nacre, tmp_path: Path) -> None:
    output = nacre("data", "import", str(others.claude_mem(tmp_path)), "--dry-run").out
    assert "2 prompts are in the sessions; nacre ingest reads them: prompts" in " ".join(
        output.split()
    )


def test_mcp_memory_service_keeps_types_and_relations_without_derivations(
    nacre: Nacre, tmp_path: Path
) -> None:
    report = nacre("data", "import", str(others.memory_service(tmp_path)), "--json").json
    assert report["added"] == 3
    assert skipped(report) == {
        "similarity links are computed again": 1,
        "deleted in mcp-memory-service": 1,
        "an association that the service computed": 1,
    }
    memories = listed(nacre)
    assert len(memories) == 2
    decision = memories["We keep the logbook in PostgreSQL"]
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
    nacre("data", "import", str(others.write_file(tmp_path / "mem0.json", others.MEM0)), "--json")
    memories = listed(nacre)
    tabs = memories["Prefers tabs over spaces in Makefiles"]
    assert (tabs["kind"], tabs["project"], tabs["tags"]) == (
        "preference",
        "harbour",
        ["user_preferences"],
    )
    assert (tabs["created"], tabs["updated"]) == ("2026-03-01T19:00:00Z", "2026-03-04T19:00:00Z")
    extra = nacre("show", tabs["id"], "--no-update", "--json").json["memory"]["extra"]
    assert (extra["user_id"], extra["branch"]) == ("lena", "main")
    assert memories["Is on leave in the first week of May"]["expires_on"] == "2035-05-08"


def test_mem0_lists_and_multi_page_folders_are_read(nacre: Nacre, tmp_path: Path) -> None:
    others.write_file(tmp_path / "pages/1.json", others.MEM0["results"][:1])
    others.write_file(tmp_path / "pages/2.json", {"results": others.MEM0["results"][1:]})
    report = nacre("data", "import", str(tmp_path / "pages"), "--json").json
    assert (report["source"], report["added"]) == ("mem0", 2)


def test_openmemory_backup_imports_archived_memories_as_retired(
    nacre: Nacre, tmp_path: Path
) -> None:
    with zipfile.ZipFile(tmp_path / "memories_export_lena.zip", "w") as archive:
        archive.writestr("memories.json", json.dumps(others.OPENMEMORY))
        archive.writestr("memories.jsonl.gz", b"\x1f\x8b")
    report = nacre("data", "import", str(tmp_path / "memories_export_lena.zip"), "--json").json
    assert (report["source"], report["added"], skipped(report)) == (
        "mem0",
        2,
        {"deleted in mem0": 1},
    )
    memories = listed(nacre)
    assert {subject: (item["kind"], item["tags"]) for subject, item in memories.items()} == {
        "Decided to ship the pilot app as one binary": ("decision", ["decisions"])
    }
    archived = nacre("show", "The pilot app used to be a web page", "--no-update", "--json").json
    assert archived["memory"]["retired"]["reason"] == "archived in mem0"


def test_agent_file_imports_blocks_without_persona_and_conversations(
    nacre: Nacre, tmp_path: Path
) -> None:
    report = nacre(
        "data",
        "import",
        str(
            others.write_file(
                tmp_path / "quartermaster.af",
                {**others.AGENT_FILE, "files": [{"id": "file-0", "file_name": "tides.pdf"}]},
            )
        ),
        "--json",
    ).json
    assert skipped(report) == {"no memories": 4, "a description of the agent": 1}
    assert {item["where"]: item["count"] for item in report["skipped"]} == {
        "quartermaster: persona": 1,
        "quartermaster.af: messages of conversations": 2,
        "quartermaster.af: tools": 1,
        "quartermaster.af: files": 1,
    }
    assert {subject: entry["kind"] for subject, entry in listed(nacre).items()} == {
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
    value = older if form == "older" else json.dumps(json.dumps(others.AGENT_FILE))
    report = nacre(
        "data", "import", str(others.write_file(tmp_path / "mate.af", value)), "--json"
    ).json
    assert (report["source"], report["added"]) == ("letta", 1 if form == "older" else 2)


def test_archival_memory_is_imported_without_file_chunks(nacre: Nacre, tmp_path: Path) -> None:
    report = nacre(
        "data",
        "import",
        str(others.write_file(tmp_path / "archival.json", others.PASSAGES)),
        "--json",
    ).json
    assert skipped(report) == {"a part of a file": 1}
    (rope,) = listed(nacre).values()
    assert (rope["created"], rope["tags"]) == ("2026-03-03T08:00:00Z", ["archival", "rope"])


def test_basic_memory_notes_become_statements_and_linked_text(nacre: Nacre, tmp_path: Path) -> None:
    report = nacre("data", "import", str(others.basic_memory(tmp_path)), "--json").json
    assert (report["source"], skipped(report)) == ("basic-memory", {"a schema for notes": 1})
    memories = listed(nacre)
    assert {subject: item["kind"] for subject, item in memories.items()} == {
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
    names = {item["id"]: subject.partition(":")[0] for subject, item in memories.items()}
    out = [link for link in note["links"] if link["is_outgoing"]]
    assert {(link["rel"], link["reason"], names[link["other"]]) for link in out} == {
        ("depends_on", None, "Harbour Network"),
        ("related_to", "reports to", "Pilot App"),
    }
    assert sum(link["rel"] == "part_of" and not link["is_outgoing"] for link in note["links"]) == 2
    decision = next(item for item in memories.values() if item["kind"] == "decision")
    assert decision["tags"] == ["decision", "gauge", "hardware", "units"]


def test_secret_in_an_export_is_not_imported(nacre: Nacre, tmp_path: Path, user_home: Path) -> None:
    token = "ghp_" + "9fKq2LmX7vRt4WzN8bYc1DsH6jPa3EuG5oTi"
    row = {**others.MEM0["results"][0], "memory": f"The deploy token of the gauge is {token}"}
    nacre(
        "data",
        "import",
        str(others.write_file(tmp_path / "mem0.json", {"results": [row]})),
        "--json",
    )
    (memory,) = listed(nacre).values()
    assert "[redacted" in memory["content"].lower()
    assert not any(
        token.encode() in file.read_bytes()
        for file in (user_home / ".nacre").rglob("*")
        if file.is_file()
    )
