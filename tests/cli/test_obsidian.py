"""A vault with Obsidian's files, in Obsidian's format."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Nacre


@pytest.fixture
def vault(nacre: Nacre, user_home: Path) -> Path:
    """A vault that Obsidian has opened, with one memory of nacre."""
    nacre(
        "store",
        "We run billing on PostgreSQL, see [[invoice-numbers]].",
        "--subject",
        "Database of billing",
    )
    folder = user_home / ".nacre/vault"
    for path, text in {
        ".obsidian/app.json": '{"newFileLocation": "folder", "newFileFolderPath": "inbox"}',
        ".obsidian/workspace.json": '{"active": "7d"}',
        ".obsidian/plugins/dataview/README.md": "# Dataview\nA plugin.\n",
        ".trash/Old idea.md": "An idea that was thrown away.\n",
        "daily/2026-03-01.md": "Met Ada, and talked of invoices.\n",
        "templates/note.md": "# {{title}}\n",
        "board.canvas": '{"nodes": [], "edges": []}',
        "global/fact/Invoice numbers.md": INVOICES,
        "inbox/Untitled.md": "Ask Ada about credit notes.\n",
    }.items():
        put(folder, path, text)
    (folder / "attachments").mkdir()
    (folder / "attachments/Pasted image 20260301.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00")
    return folder


INVOICES = """---
aliases:
  - Bill numbers
tags:
  - billing
  - billing/invoices
cssclasses:
  - wide
created: 2026-03-01
---
> [!note] Numbers
> Invoice numbers are counted per year. ^counting

![[Pasted image 20260301.png]] See [[database-of-billing|the database]], [[Ada]]. #inline
"""


def put(folder: Path, path: str, text: str) -> Path:
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def subjects(nacre: Nacre) -> set[str]:
    return {memory["subject"] for memory in nacre("list", "--json").json["memories"]}


def linked(nacre: Nacre, reference: str) -> set[tuple[str, str]]:
    links = nacre("show", reference, "--no-update", "--json").json["links"]
    return {("out" if link["is_outgoing"] else "in", link["subject"]) for link in links}


def test_only_notes_in_memory_folders_become_memories(nacre: Nacre, vault: Path) -> None:
    candidates = [
        path
        for path in vault.rglob("*")
        if path.is_file() and path.parts[len(vault.parts)] in OTHERS
    ]
    before = {path: path.read_bytes() for path in candidates}
    assert len(before) == 8
    assert subjects(nacre) == {"Database of billing", "Invoice numbers", "Untitled"}
    assert nacre("recall", "an idea that was thrown away", "--json").json["hits"] == []
    assert {path: path.read_bytes() for path in candidates} == before
    assert nacre("admin", "doctor", "--deep", "--json").json["ok"] is True


OTHERS = {".obsidian", ".trash", "daily", "templates", "attachments", "board.canvas"}


def test_history_excludes_workspace_files_and_includes_attachments(
    nacre: Nacre, vault: Path
) -> None:
    nacre("admin", "commit")
    result = subprocess.run(
        ["git", "-C", str(vault), "ls-files", "-z"], capture_output=True, check=True, text=True
    )
    files = {name for name in result.stdout.split("\0") if name}
    assert not files & {".obsidian/workspace.json", ".trash/Old idea.md"}
    assert files >= {
        ".obsidian/app.json",
        "attachments/Pasted image 20260301.png",
        "daily/2026-03-01.md",
        "board.canvas",
    }


def test_note_properties_aliases_and_text_are_preserved(nacre: Nacre, vault: Path) -> None:
    note = nacre("show", "Invoice numbers", "--no-update", "--json").json
    assert note["memory"]["tags"] == ["billing", "billing/invoices"]
    assert note["memory"]["extra"] == {"aliases": ["Bill numbers"], "cssclasses": ["wide"]}
    text = (vault / "global/fact/Invoice numbers.md").read_text()
    assert text == INVOICES.replace("---\n", f"---\nid: {note['memory']['id']}\n", 1)


def test_links_between_notes_and_memories_work_in_both_directions(
    nacre: Nacre, vault: Path
) -> None:
    assert linked(nacre, "Invoice numbers") == {
        ("out", "Database of billing"),
        ("in", "Database of billing"),
    }
    put(vault, "inbox/Credit notes.md", "Credit notes have [[bill numbers]] of their own.\n")
    assert ("in", "Credit notes") in linked(nacre, "Invoice numbers")


def test_property_editor_rewrites_preserve_the_meaning(nacre: Nacre, vault: Path) -> None:
    note = nacre("show", "Invoice numbers", "--no-update", "--json").json
    (file,) = (vault / "global/fact").glob("database*.md")
    text = file.read_text().replace(
        "subject: Database of billing", 'subject: "Database of billing: which"'
    )
    to = note["memory"]["id"]
    block = f"tags:\n  - postgres\nlinks:\n  - rel: depends_on\n    to: {to}\nvalid:\n  from: 2026-02-01\n"
    file.write_text(text.replace("confidence: extracted\n", f"confidence: extracted\n{block}"))
    answer = nacre("show", "Database of billing: which", "--no-update", "--json").json
    assert (answer["memory"]["tags"], answer["memory"]["valid"]["since"]) == (
        ["postgres"],
        "2026-02-01",
    )
    out = [(link["rel"], link["origin"]) for link in answer["links"] if link["is_outgoing"]]
    assert out == [("depends_on", "manual")]


@pytest.mark.parametrize("links", ["changed with it", "left as they were"])
def test_renamed_note_keeps_its_memory_and_links(nacre: Nacre, vault: Path, links: str) -> None:
    before = nacre("show", "Invoice numbers", "--no-update", "--json").json
    (vault / "global/fact/Invoice numbers.md").rename(
        vault / "global/fact/How bills are numbered.md"
    )
    if links == "changed with it":
        (file,) = (vault / "global/fact").glob("database*.md")
        file.write_text(
            file.read_text().replace("[[invoice-numbers]]", "[[How bills are numbered]]")
        )
    after = nacre("show", before["memory"]["id"], "--no-update", "--json").json
    assert after["path"].endswith("How bills are numbered.md")
    assert not all(link["is_outgoing"] for link in after["links"])
    assert len(after["memory"]["extra"]["aliases"]) == (1 if links == "changed with it" else 2)


def test_note_moved_to_trash_is_retired_and_can_be_restored(nacre: Nacre, vault: Path) -> None:
    subjects(nacre)
    (vault / "global/fact/Invoice numbers.md").rename(vault / ".trash/Invoice numbers.md")
    assert "Invoice numbers" not in subjects(nacre)
    nacre("retire", "--restore", "Invoice numbers")
    assert "Invoice numbers" in subjects(nacre)
