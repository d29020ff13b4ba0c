"""What docs/coming-from.md says of files that no memory wrote: instructions to agents, and notes of Obsidian."""

from __future__ import annotations

from tests.cli.conftest import Nacre
from tests.imports.test_sources import Put, listed

INSTRUCTIONS = """# harbour

## Conventions
- Prefer small commits with a reason in the message
- Never push to main on a Friday

The gauge at the north pier reports in centimetres.
"""
BERTHS = """---
tags: [harbour]
created: 2026-03-01
---
# Berths

Berths are numbered from the lighthouse. See [[Tides]].

- [decision] Number one is kept for the pilot #berths
"""


def test_agent_instructions_import_by_statement_if_the_owner_agrees(nacre: Nacre, put: Put) -> None:
    page = str(put("proj", {"CLAUDE.md": INSTRUCTIONS}) / "CLAUDE.md")
    nacre("data", "import", page, "--project", "harbour", "--trust")
    found = listed(nacre)
    assert {
        (item["content"], item["kind"], item["trust"], item["project"]) for item in found.values()
    } == {
        ("Prefer small commits with a reason in the message", "preference", "trusted", "harbour"),
        ("Never push to main on a Friday", "preference", "trusted", "harbour"),
        ("The gauge at the north pier reports in centimetres.", "preference", "trusted", "harbour"),
    }
    assert nacre("data", "import", page, "--json").json["added"] == 0
    assert (
        nacre(
            "data", "import", page, "--from", "claude-memory", "--project", "harbour", "--json"
        ).json["added"]
        == 0
    )


def test_short_instructions_are_imported(nacre: Nacre, put: Put) -> None:
    rules = put(
        "proj",
        {
            "AGENTS.md": "# Style\n\n- be brief\n- 中文回答\n\nNo emoji.\n",
            "house.md": "- pnpm\n- ...\n",
        },
    )
    nacre("data", "import", str(rules / "AGENTS.md"))
    nacre("data", "import", str(rules / "house.md"), "--from", "instructions")
    assert {item["content"] for item in listed(nacre).values()} == {
        "be brief",
        "中文回答",
        "No emoji.",
        "pnpm",
    }


def test_obsidian_notes_import_with_tags_dates_and_links(nacre: Nacre, put: Put) -> None:
    notes = put(
        "work",
        {"Berths.md": BERTHS, "Tides.md": "# Tides\n\nThe gauge has a time zone of its own.\n"},
    )
    nacre("data", "import", str(notes), "--from", "basic-memory", "--trust")
    found = listed(nacre)
    berths, tides = found["Berths"], found["Tides"]
    assert (berths["kind"], berths["tags"], berths["created"][:10]) == (
        "fact",
        ["harbour"],
        "2026-03-01",
    )
    links = nacre("show", berths["id"], "--no-update", "--json").json["links"]
    assert tides["id"] in str(links)
    (decision,) = [item for item in found.values() if item["kind"] == "decision"]
    assert "berths" in decision["tags"]
