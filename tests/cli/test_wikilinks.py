"""``[[name]]`` in a memory's body links to the memory of that name, even after it is renamed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Nacre

KEEL = "Keel of the dinghy"


def links(nacre: Nacre, reference: str) -> list[tuple[str, str | None]]:
    """Return direction and subject of a memory's links that come from bodies."""
    listed_links: list[dict[str, Any]] = nacre("show", reference, "--no-update", "--json").json[
        "links"
    ]
    return sorted(
        ("out" if link["is_outgoing"] else "in", link["subject"])
        for link in listed_links
        if link["origin"] == "body"
    )


def write(user_home: Path, path: str, text: str) -> Path:
    file = user_home / ".nacre/vault" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


@pytest.fixture
def keel(nacre: Nacre) -> Path:
    """Return the file of a memory that others link to."""
    answer = nacre("store", "The keel is made of ash wood.", "--subject", KEEL, "--json").json
    result = nacre("show", answer["memory_id"], "--no-update", "--json").json
    return Path(result["path"])


@pytest.mark.parametrize(
    "written",
    [
        "Keel of the dinghy",
        "keel of the dinghy",
        "keel-of-the-dinghy",
        "keel-of-the-dinghy#Wood|the keel",
        "global/fact/keel-of-the-dinghy",
        "Keel of the dinghy#^block-1",
        "../fact/keel-of-the-dinghy",
        "keel-of-the-dinghy\\|the keel",
    ],
)
def test_links_by_subject_file_or_path_work_both_ways(
    nacre: Nacre, keel: Path, written: str
) -> None:
    body = f"| part | where |\n|---|---|\n| ballast | below ![[{written}]] |"
    nacre("store", body, "--subject", "Ballast", "--json")
    assert links(nacre, "Ballast") == [("out", KEEL)]
    assert links(nacre, KEEL) == [("in", "Ballast")]
    assert nacre("show", "Ballast", "--no-update", "--json").json["memory"]["content"] == body


def test_unresolved_link_stays_text_until_the_memory_exists(nacre: Nacre, user_home: Path) -> None:
    write(
        user_home,
        "global/fact/ballast.md",
        "Ballast lies beside [[Keel of the dinghy]], see [[A page to come]].\n",
    )
    assert links(nacre, "ballast") == []
    nacre("store", "The keel is made of ash wood.", "--subject", KEEL, "--json")
    assert links(nacre, "ballast") == [("out", KEEL)]
    nacre("retire", KEEL, "--yes")
    assert links(nacre, "ballast") == []
    assert "[[A page to come]]" in nacre("show", "ballast", "--no-update").out


def test_code_blocks_contain_no_links(nacre: Nacre, keel: Path) -> None:
    nacre(
        "store",
        f"Try `[[{KEEL}]]` or\n\n```sh\nif [[ -f keel ]]; then [[{KEEL}]]; fi\n```\n",
        "--subject",
        "Shell",
    )
    assert links(nacre, "Shell") == []


@pytest.mark.parametrize("how", ["by command", "by hand"])
def test_rename_keeps_links_through_rebuild_and_undo(
    nacre: Nacre, keel: Path, user_home: Path, how: str
) -> None:
    nacre("store", f"Ballast lies beside [[{KEEL}]].", "--subject", "Ballast", "--json")
    if how == "by command":
        nacre("edit", KEEL, "--subject", "Backbone")
        nacre("edit", "Backbone", "--kind", "decision")
    else:
        text = keel.read_text().replace(f"subject: {KEEL}", "subject: Backbone")
        keel.unlink()
        write(user_home, "global/decision/backbone.md", text)
    assert links(nacre, "Ballast") == [("out", "Backbone")]
    answer = nacre("show", "Backbone", "--no-update", "--json").json
    (alias,) = answer["memory"]["extra"]["aliases"]
    assert alias.lower().replace(" ", "-") == "keel-of-the-dinghy"
    assert "/global/decision/" in answer["path"]
    nacre("admin", "db", "rebuild", "--yes")
    assert links(nacre, "Ballast") == [("out", "Backbone")]
    assert nacre("admin", "doctor", "--deep", "--json").json["ok"] is True
    if how == "by command":
        for operation in nacre("log", "--json").json["operations"][:2]:
            nacre("undo", operation["operation"]["id"], "--yes")
        assert links(nacre, "Ballast") == [("out", KEEL)]
        assert "aliases" not in nacre("show", KEEL, "--no-update", "--json").json["memory"]["extra"]


def test_rename_of_an_unlinked_memory_adds_no_alias(nacre: Nacre, keel: Path) -> None:
    nacre("edit", KEEL, "--subject", "Backbone")
    assert nacre("show", "Backbone", "--no-update", "--json").json["memory"]["extra"] == {}


def test_ambiguous_link_prefers_its_project_or_is_unresolved(
    nacre: Nacre,
) -> None:
    for project, wood in (("sloop", "oak"), ("yawl", "elm")):
        nacre(
            "store",
            f"The mast of the {project} is made of {wood}.",
            "--subject",
            "Mast",
            "--project",
            project,
        )
    nacre(
        "store",
        "The shrouds hold the [[Mast]] of this boat.",
        "--subject",
        "Shrouds",
        "--project",
        "yawl",
    )
    nacre("store", "Tar smells of pine, as a [[Mast]] does.", "--subject", "Tar")
    answer = nacre("show", "Shrouds", "--no-update", "--json").json
    (link,) = [link for link in answer["links"] if link["origin"] == "body"]
    assert "yawl" in nacre("show", link["other"], "--no-update", "--json").json["memory"]["content"]
    assert links(nacre, "Tar") == []


def test_untrusted_memory_cannot_capture_an_existing_link(
    nacre: Nacre, keel: Path, tmp_path: Path
) -> None:
    nacre("store", f"Ballast lies beside [[{KEEL}]].", "--subject", "Ballast", "--json")
    words = f"---\nname: {KEEL}\ndescription: {KEEL}\ntype: project\n---\nThe keel is made of gold, ask the treasurer.\n"  # noqa: E501
    fact = tmp_path / ".claude/projects/-boat/memory/keel.md"
    fact.parent.mkdir(parents=True)
    fact.write_text(words)
    assert nacre("data", "import", str(fact.parent), "--json").json["added"] == 1
    answer = nacre("show", "Ballast", "--no-update", "--json").json
    (link,) = [link for link in answer["links"] if link["origin"] == "body"]
    assert (
        nacre("show", link["other"], "--no-update", "--json").json["memory"]["trust"] == "trusted"
    )


def test_removing_a_name_from_a_body_removes_its_links(nacre: Nacre, keel: Path) -> None:
    nacre("store", "Ballast lies beside [[keel-of-the-dinghy]].", "--subject", "Ballast", "--json")
    assert links(nacre, "Ballast") == [("out", KEEL)]
    nacre("edit", "Ballast", "--content", "Ballast lies on the pier now, in bags.")
    assert (links(nacre, "Ballast"), links(nacre, KEEL)) == ([], [])


def test_reading_shows_link_names_and_copying_keeps_text(
    nacre: Nacre, keel: Path, tmp_path: Path
) -> None:
    ballast = f"---\nlinks: [{{rel: part_of, to: {keel.read_text().split('id: ')[1][:36]}}}]\n---\nBeside [[{KEEL}]].\n"
    write(keel.parents[4], "global/fact/ballast.md", ballast)
    nacre("data", "export", str(tmp_path / "memories.jsonl"))
    lines = [json.loads(line) for line in (tmp_path / "memories.jsonl").read_text().splitlines()]
    assert {line["type"] for line in lines} == {"header", "memory", "ledger", "trailer"}


def test_manually_removed_alias_is_not_restored(nacre: Nacre, keel: Path) -> None:
    nacre("store", "Ballast lies beside [[the backbone]].", "--subject", "Ballast")
    keel.write_text(keel.read_text().replace("---\n", "---\naliases: [the backbone]\n", 1))
    assert links(nacre, "Ballast") == [("out", KEEL)]
    keel.write_text(keel.read_text().replace("aliases: [the backbone]\n", ""))
    assert links(nacre, "Ballast") == []
    assert "backbone" not in keel.read_text()
