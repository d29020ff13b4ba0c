"""The commands of ``nacre graph``."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Nacre

WORDS = {
    "kiln": "The kiln is fired with beech wood.",
    "glaze": "The glaze needs eleven hundred degrees.",
    "bowl": "Bowls dry for nine days.",
    "clay": "Clay comes from the pit at Ried.",
}


@pytest.fixture
def ids(nacre: Nacre) -> dict[str, str]:
    """Memories by name."""
    return {
        name: str(
            nacre("store", words, "--subject", name.title(), "--project", "pottery", "--json").json[
                "memory_id"
            ]
        )
        for name, words in WORDS.items()
    }


@pytest.fixture
def drawn(nacre: Nacre, ids: dict[str, str]) -> dict[str, str]:
    """The same memories with three links."""
    nacre(
        "graph", "link", "Glaze", "depends_on", "Kiln", "--strength", "0.9", "--reason", "the heat"
    )
    nacre("graph", "link", "Bowl", "builds_on", "Glaze", "--from", "2026-01-01")
    nacre("graph", "link", "Clay", "part_of", "Bowl")
    return ids


def test_links_are_created_by_subjects_ids_or_endings(nacre: Nacre, ids: dict[str, str]) -> None:
    output = nacre(
        "graph", "link", "Glaze", "depends_on", ids["kiln"][-8:], "--strength", "0.9"
    ).out
    assert (
        output
        == f"Links: 1 new\n  Glaze {ids['glaze'][-8:]}  depends_on  Kiln {ids['kiln'][-8:]}  (0.9)\n"
    )
    assert (
        "Nothing to change"
        in nacre("graph", "link", "Glaze", "depends_on", "Kiln", "--strength", "0.9").out
    )
    (link,) = nacre("show", ids["kiln"], "--json").json["links"]
    assert (link["rel"], link["is_outgoing"], link["strength"]) == ("depends_on", False, 0.9)


def test_tree_shows_each_memory_once_with_unusual_link_properties(
    nacre: Nacre, drawn: dict[str, str]
) -> None:
    end = {name: item[-8:] for name, item in drawn.items()}
    assert nacre("graph", "show", "Kiln", "--depth", "3").out.splitlines() == [
        f"Kiln  {end['kiln']}",
        f"└─ ← depends_on Glaze  {end['glaze']}  (0.9, the heat)",
        f"   └─ ← builds_on Bowl  {end['bowl']}  (from 2026-01-01)",
        f"      └─ ← part_of Clay  {end['clay']}",
        "3 memories, 3 links",
    ]
    nacre("graph", "link", "Clay", "related_to", "Kiln")
    output = nacre("graph", "show", "Kiln", "--depth", "2").out.splitlines()
    assert output[1].startswith("├─ ← depends_on Glaze")
    assert output[3].startswith("└─ ← related_to Clay")
    assert output[4] == f"   └─ part_of → Bowl  {end['bowl']} ↑"


def test_long_title_does_not_break_the_tree(nacre: Nacre, ids: dict[str, str]) -> None:
    long = "The second firing is slow and takes all of the night " * 4
    nacre("store", long, "--subject", long, "--project", "pottery")
    nacre("graph", "link", "Bowl", "related_to", long.strip())
    output = nacre("graph", "show", "Bowl").out.splitlines()
    assert len(output) == 3
    assert len(output[1]) <= 100


def test_links_are_listed_with_a_total(nacre: Nacre, drawn: dict[str, str]) -> None:
    output = nacre("graph", "list").out
    assert "Glaze → Kiln" in output
    assert output.endswith("3 links\n")
    assert (
        nacre("graph", "list", "--of", "Glaze", "--rel", "builds_on", "--json").json["total"] == 1
    )
    assert nacre("graph", "list", "--limit", "2").out.endswith(
        "1 to 2 of 3 links; --offset 2 shows more\n"
    )
    assert "No such link" in nacre("graph", "list", "--origin", "import").out
    nacre("graph", "unlink", "Clay", "part_of", "Bowl", "--at", "2026-03-01")
    assert nacre("graph", "list", "--json").json["total"] == 2
    assert nacre("graph", "list", "--as-of", "2026-02-01", "--json").json["total"] == 3
    assert "ended 2026-03-01" in nacre("graph", "list", "--ended").out
    assert "ended 2026-03-01" in nacre("show", "Clay").out


def test_last_page_of_links_shows_no_next_offset(nacre: Nacre, drawn: dict[str, str]) -> None:
    assert nacre("graph", "list", "--limit", "2", "--offset", "2").out.endswith(
        "3 to 3 of 3 links\n"
    )


def test_links_are_found_by_former_project_name_with_warning(
    nacre: Nacre, drawn: dict[str, str]
) -> None:
    nacre("project", "rename", "pottery", "workshop")
    assert nacre("graph", "list", "--project", "pottery", "--json").json["total"] == 3
    assert "there is no project 'potery'" in nacre("graph", "list", "--project", "potery").err
    assert "there is no project 'potery'" in nacre("graph", "brief", "--project", "potery").err


def test_code_link_shows_the_short_name(nacre: Nacre, ids: dict[str, str]) -> None:
    nacre("graph", "link", "Kiln", "related_to", "code:src/kiln/fire.py")
    assert "└─ related_to → fire.py  code:src/kiln/fire.py" in nacre("graph", "show", "Kiln").out


def test_unlink_without_relation_affects_all_links_between_memories(
    nacre: Nacre, ids: dict[str, str]
) -> None:
    for relation in ("depends_on", "builds_on"):
        nacre("graph", "link", "Glaze", relation, "Kiln")
    nacre("graph", "link", "Bowl", "part_of", "Kiln")
    assert nacre("graph", "unlink", "Kiln", "Glaze", "--at", "today", "--json").json["changed"] == 2
    assert nacre("graph", "unlink", "Glaze", "Kiln", "--json").json["removed"] == 2
    assert nacre("graph", "unlink", "Bowl", "Kiln", "--json").json["removed"] == 1
    nacre("graph", "unlink", "Glaze", "Kiln", code=3)


def test_incomplete_link_is_refused(nacre: Nacre, ids: dict[str, str]) -> None:
    for arguments in (("Glaze",), ("Glaze", "part_of"), (), ("--strength", "0.4")):
        assert nacre("graph", "link", *arguments, code=2).err
    for arguments in (("Glaze", "part_of"), ()):
        assert nacre("graph", "unlink", *arguments, code=2).err


def test_agent_link_request_waits_for_review(
    nacre: Nacre, ids: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")
    assert "pending in nacre review" in nacre("graph", "link", "Glaze", "part_of", "Kiln").out


def test_gaps_and_brief_describe_the_links(nacre: Nacre, drawn: dict[str, str]) -> None:
    nacre("store", "The shop opens on Saturdays.", "--subject", "Shop", "--project", "pottery")
    gaps = nacre("graph", "gaps").out
    assert "Shop" in gaps.splitlines()[1]
    assert gaps.endswith("3 memories with at most one link, 1 without\n")
    brief = nacre("graph", "brief", "--project", "pottery").out
    assert brief.startswith("5 memories in pottery, 3 links between them")
    for name in ("gaps", "brief"):
        assert nacre("graph", name, "--json").json
