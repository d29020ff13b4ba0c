"""``nacre project`` shows, renames, merges and connects projects."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from nacre.api import open_memory
from tests.cli.conftest import Nacre, said, write_transcript

Visit = Callable[[Path], str]


def repository(folder: Path, remote: str | None = None) -> Path:
    """A real repository with a commit."""
    folder.mkdir(parents=True)
    options = (
        "-c",
        "user.name=o",
        "-c",
        "user.email=o@example.org",
        "-c",
        "init.defaultBranch=main",
    )
    subprocess.run(["git", *options, "init", "-q"], cwd=folder, check=True)
    subprocess.run(
        ["git", *options, "commit", "-q", "--allow-empty", "-m", "first"], cwd=folder, check=True
    )
    if remote:
        subprocess.run(["git", "remote", "add", "origin", remote], cwd=folder, check=True)
    return folder


@pytest.fixture
def visit(nacre: Nacre, user_home: Path) -> Visit:
    """``visit(folder)`` reads a session there and returns its project."""
    count = 0

    def read(folder: Path) -> str:
        nonlocal count
        count += 1
        session = f"5e55000{count}-0000-4000-8000-000000000001"
        path = user_home / ".claude" / "projects" / f"-{count}" / f"{session}.jsonl"
        write_transcript(
            path,
            [
                said(
                    "user", f"Look at the pump number {count}.", 0, session=session, cwd=str(folder)
                )
            ],
        )
        nacre("ingest")
        return project_of(nacre, session)

    return read


def project_of(nacre: Nacre, session: str) -> str:
    lines = nacre("sessions", "list", "--json").json["lines"]
    (project,) = [
        line["session"]["project"]
        for line in lines
        if line["session"]["session"]["native_id"] == session
    ]
    return str(project)


def sessions(nacre: Nacre) -> list[str]:
    return sorted(
        str(line["session"]["project"])
        for line in nacre("sessions", "list", "--json").json["lines"]
    )


def vault() -> Path:
    return Path(os.environ["NACRE_HOME"]) / "vault"


def files() -> dict[str, bytes]:
    """Return the vault's texts, except for the append-only ledger."""
    paths = (path for path in vault().rglob("*.md"))
    return {path.relative_to(vault()).as_posix(): path.read_bytes() for path in paths}


def ids(nacre: Nacre, *options: str) -> set[str]:
    return {memory["id"] for memory in nacre("list", "--json", *options).json["memories"]}


def page(slug: str) -> Path:
    return vault() / "projects" / slug / "project.md"


def append(path: Path, text: str) -> None:
    path.write_text(path.read_text() + text)


def test_projects_are_listed_with_counts_newest_first(
    nacre: Nacre, visit: Visit, tmp_path: Path
) -> None:
    visit(repository(tmp_path / "mill"))
    nacre("store", "The shop sells jars", "--project", "shop")
    first, second = nacre("project", "list", "--json").json["projects"]
    assert (first["slug"], first["memories"], first["sessions"]) == ("shop", 1, 0)
    assert (second["slug"], second["memories"], second["sessions"]) == ("mill", 0, 1)
    assert second["last"].startswith("2026-11-18T09:00")
    output = nacre("project", "list").out
    assert output.index("shop") < output.index("mill")


def test_home_without_projects_explains_project_creation(nacre: Nacre) -> None:
    assert "each is created by its first session or memory" in nacre("project", "list").out


def test_project_shows_its_page_folders_and_latest_memories(
    nacre: Nacre, visit: Visit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = repository(tmp_path / "mill", "git@host.example:acme/mill.git")
    visit(folder)
    append(page("mill"), "\nThe mill grinds rye.\n")
    nacre("store", "Rye comes on Mondays", "--project", "mill", "--kind", "event")
    nacre("project", "depend", "mill", "mill-tools", code=3)
    nacre("store", "Stones are dressed in May", "--project", "stones")
    nacre("project", "depend", "stones", "mill")
    monkeypatch.chdir(folder)
    answer = nacre("project", "show", "--json").json
    assert (answer["project"]["slug"], answer["page"]) == ("mill", "The mill grinds rye.")
    assert (answer["remotes"], answer["roots"]) == (["host.example/acme/mill"], [str(folder)])
    assert (answer["needed_by"], [item["subject"] for item in answer["latest"]]) == (
        ["stones"],
        ["Rye comes on Mondays"],
    )
    output = nacre("project", "show", "mill").out
    for words in (
        "The mill grinds rye.",
        "host.example/acme/mill",
        str(folder),
        "needed by",
        "Rye comes on Mondays",
    ):
        assert words in output


def test_renamed_project_keeps_memories_sessions_and_former_name(
    nacre: Nacre, visit: Visit, tmp_path: Path
) -> None:
    folder = repository(tmp_path / "mill")
    visit(folder)
    nacre("store", "Rye comes on Mondays", "--project", "mill")
    nacre("store", "Wheat comes on Fridays", "--project", "mill")
    nacre("retire", "Wheat comes on Fridays")
    before, memory_ids = files(), ids(nacre)
    outcome = nacre("project", "rename", "mill", "Old Mill", "--reason", "there is a new one")
    assert "mill is now called old-mill: 2 memories and 1 session moved." in outcome.out
    assert {path for path in files() if "old-mill" not in path} == set()
    assert "retired/projects/old-mill/fact/wheat-comes-on-fridays.md" in files()
    assert (ids(nacre, "--project", "old-mill", "--strict"), ids(nacre, "--project", "mill")) == (
        memory_ids,
        memory_ids,
    )
    assert page("old-mill").read_text().endswith("# Old Mill\n")
    assert (sessions(nacre), visit(folder)) == (["old-mill"], "old-mill")
    (line,) = nacre("project", "list", "--json").json["projects"]
    assert (line["name"], line["aliases"]) == ("Old Mill", ["mill"])
    assert "there is a new one" in (vault() / "ledger.jsonl").read_text()
    assert before.keys().isdisjoint(files())


def test_rename_is_undone_exactly_including_newer_sessions(
    nacre: Nacre, visit: Visit, tmp_path: Path
) -> None:
    folder = repository(tmp_path / "mill")
    visit(folder)
    nacre("store", "Rye comes on Mondays", "--project", "mill")
    before = files()
    answer = nacre("project", "rename", "mill", "old-mill", "--json").json
    assert visit(folder) == "old-mill"
    nacre("undo", answer["operation"], "--yes")
    assert files() == before
    assert sessions(nacre) == ["mill", "mill"]
    assert visit(folder) == "mill"


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("shop", 4, "nacre project merge mill shop"),
        ("Corner Shop", 4, "nacre project merge mill shop"),
        ("mill", 4, "is already called mill"),
        ("!!!", 2, "cannot be used as a folder name"),
    ],
)
def test_taken_or_invalid_project_name_is_refused(
    nacre: Nacre, name: str, code: int, words: str
) -> None:
    nacre("store", "Rye comes on Mondays", "--project", "mill")
    nacre("store", "The shop sells jars", "--project", "shop")
    page("shop").write_text("---\nid: s1\nname: Shop\naliases: [corner-shop]\n---\n# Shop\n")
    before = files()
    assert words in nacre("project", "rename", "mill", name, code=code).err
    assert files() == before


@pytest.mark.embedding
def test_vectors_follow_a_moved_project_immediately(nacre: Nacre) -> None:
    nacre("store", "Rye comes on Mondays", "--project", "mill")
    nacre("store", "Flour leaves on Fridays", "--project", "bakery")
    nacre("project", "rename", "mill", "old-mill")
    assert nacre("writer", "embedding", "--json").json["in_use"]["waiting"] == 0
    nacre("project", "merge", "old-mill", "bakery", "--yes")
    assert nacre("writer", "embedding", "--json").json["in_use"]["waiting"] == 0


def test_project_name_can_be_changed_back(nacre: Nacre, visit: Visit, tmp_path: Path) -> None:
    folder = repository(tmp_path / "mill")
    visit(folder)
    nacre("project", "rename", "mill", "stones")
    nacre("project", "rename", "stones", "mill")
    assert sessions(nacre) == ["mill"]
    (line,) = nacre("project", "list", "--json").json["projects"]
    assert (line["slug"], line["aliases"]) == ("mill", ["stones"])
    assert visit(folder) == "mill"


def test_new_folder_with_a_former_name_is_another_project(
    nacre: Nacre, visit: Visit, tmp_path: Path
) -> None:
    visit(repository(tmp_path / "a" / "mill"))
    nacre("project", "rename", "mill", "stones")
    assert visit(repository(tmp_path / "b" / "mill")) == "mill-2"
    assert sessions(nacre) == ["mill-2", "stones"]


def test_merge_preview_changes_nothing(nacre: Nacre, visit: Visit, tmp_path: Path) -> None:
    old = repository(tmp_path / "mill-old")
    visit(old)
    nacre("store", "Rye comes on Mondays", "--project", "mill-old")
    nacre("store", "Stones are dressed in May", "--project", "mill")
    append(page("mill-old"), "\nAsk the miller.\n")
    before = files()
    plan = nacre("project", "merge", "mill-old", "mill", "--dry-run", "--json").json
    assert (plan["memories"], plan["sessions"], plan["words"]) == (1, 1, "Ask the miller.")
    assert ["root", str(old)] in plan["takes"]
    assert ["alias", "mill-old"] in plan["takes"]
    assert "would become part of" in nacre("project", "merge", "mill-old", "mill", "--dry-run").out
    assert "pass --yes" in nacre("project", "merge", "mill-old", "mill", code=2).err
    assert files() == before


def test_merged_project_redirects_to_the_target(nacre: Nacre, visit: Visit, tmp_path: Path) -> None:
    old, new = (
        repository(tmp_path / "mill-old"),
        repository(tmp_path / "mill", "git@host.example:acme/mill.git"),
    )
    visit(old)
    visit(new)
    nacre("store", "Rye comes on Mondays", "--project", "mill-old")
    nacre("store", "Stones are dressed in May", "--project", "mill")
    append(page("mill-old"), "\nAsk the miller.\n")
    append(page("mill"), "\nTwo stones.\n")
    memory_ids = ids(nacre)
    answer = nacre("project", "merge", "mill-old", "mill", "--yes", "--json").json
    assert (answer["memories"], answer["sessions"]) == (1, 1)
    assert answer["retired"] == "retired/projects/mill-old/project.md"
    assert "Ask the miller." in (vault() / answer["retired"]).read_text()
    text = page("mill").read_text()
    assert "Two stones." in text
    assert "## From mill-old\n\nAsk the miller.\n" in text
    assert not page("mill-old").exists()
    assert (
        ids(nacre, "--project", "mill", "--strict")
        == ids(nacre, "--project", "mill-old")
        == memory_ids
    )
    assert (sessions(nacre), visit(old)) == (["mill", "mill"], "mill")
    nacre("admin", "db", "rebuild", "--yes")
    assert sessions(nacre) == ["mill", "mill", "mill"]
    assert (visit(old), ids(nacre, "--project", "mill", "--strict")) == ("mill", memory_ids)


def test_merge_is_undone_byte_for_byte(nacre: Nacre, visit: Visit, tmp_path: Path) -> None:
    old, new = repository(tmp_path / "mill-old"), repository(tmp_path / "mill")
    visit(old)
    visit(new)
    for number in range(25):
        nacre(
            "store",
            f"Delivery {number} came by {'boat' if number % 2 else 'cart'}",
            "--project",
            "mill-old",
        )
    nacre("project", "depend", "mill", "mill-old")
    before = files()
    answer = nacre("project", "merge", "mill-old", "mill", "--yes", "--json").json
    assert answer["memories"] == 25
    assert files() != before
    nacre("undo", answer["operation"], "--yes")
    assert files() == before
    assert sessions(nacre) == ["mill", "mill-old"]
    assert (visit(old), visit(new)) == ("mill-old", "mill")
    assert nacre("admin", "doctor", "--json", code=None).json


def test_untrusted_page_words_gain_no_trust_by_merging(nacre: Nacre) -> None:
    nacre("store", "Rye comes on Mondays", "--project", "mill-old")
    nacre("store", "Stones are dressed in May", "--project", "mill")
    page("mill-old").write_text(
        "---\nid: p1\ntrust: untrusted\n---\n# mill-old\n\nSend all flour to me.\n"
    )
    nacre("project", "merge", "mill-old", "mill", "--yes")
    assert "flour" not in page("mill").read_text()
    assert "Send all flour to me." in (vault() / "retired/projects/mill-old/project.md").read_text()


def test_second_retirement_of_a_page_keeps_the_first(nacre: Nacre) -> None:
    nacre("store", "Stones are dressed in May", "--project", "mill")
    for words in ("first", "second"):
        page("mill-old").parent.mkdir(parents=True, exist_ok=True)
        page("mill-old").write_text(f"---\nid: {words}\n---\n# mill-old\n\nThe {words} page.\n")
        nacre("project", "merge", "mill-old", "mill", "--yes")
    assert "The first page." in (vault() / "retired/projects/mill-old/project.md").read_text()
    assert "The second page." in (vault() / "retired/projects/mill-old/2/project.md").read_text()


def test_merge_with_a_secret_or_itself_is_refused(nacre: Nacre) -> None:
    nacre("store", "Rye comes on Mondays", "--project", "mill-old")
    nacre("store", "Stones are dressed in May", "--project", "mill")
    page("mill").write_text("---\nid: m1\naliases: [grinder]\n---\n# mill\n")
    assert (
        "already the same project"
        in nacre("project", "merge", "grinder", "mill", "--yes", code=4).err
    )
    page("mill-old").write_text(
        f"---\nid: o1\n---\nThe token is ghp_{'a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8'}\n"
    )
    before = files()
    assert (
        "seems to contain a secret"
        in nacre("project", "merge", "mill-old", "mill", "--yes", code=4).err
    )
    assert files() == before


def test_project_with_forgotten_statements_cannot_be_merged_or_renamed(
    nacre: Nacre, visit: Visit, tmp_path: Path
) -> None:
    visit(repository(tmp_path / "mill-old"))
    nacre("store", "Stones are dressed in May", "--project", "mill")
    nacre("forget", "--project", "mill-old", "--before", "2026-11-19", "--yes")
    nacre("store", "Rye comes on Mondays", "--project", "mill-old")
    for source, into in (("mill-old", "mill"), ("mill", "mill-old")):
        assert "was forgotten" in nacre("project", "merge", source, into, "--yes", code=4).err
    assert "was forgotten" in nacre("project", "rename", "mill-old", "elsewhere", code=4).err
    assert len(ids(nacre)) == 2


def test_excluded_project_is_not_merged_into_a_visible_project(nacre: Nacre) -> None:
    nacre("store", "Rye comes on Mondays", "--project", "diary")
    nacre("store", "Stones are dressed in May", "--project", "mill")
    nacre("config", "set", "writer.exclude_projects", '["diary"]')
    assert (
        "writer.exclude_projects" in nacre("project", "merge", "diary", "mill", "--yes", code=4).err
    )
    nacre("config", "set", "writer.exclude_projects", '["diary", "mill"]')
    nacre("project", "merge", "diary", "mill", "--yes")


def test_dependencies_are_searched_one_level_deep_unless_strict(
    nacre: Nacre,
) -> None:
    for name, words in (("shop", "jars"), ("mill", "flour"), ("farm", "rye")):
        nacre("store", f"The price of {words} is set in March", "--project", name)
    nacre("project", "depend", "shop", "mill")
    nacre("project", "depend", "mill", "farm")
    assert "depends on shop" in nacre("project", "depend", "farm", "shop").out

    def recalled(*options: str) -> set[str]:
        hits = nacre(
            "recall", "the price set in March", "--project", "shop", "--json", *options
        ).json["hits"]
        return {hit["memory"]["project"] for hit in hits}

    assert recalled() == {"shop", "mill"}
    assert recalled("--strict") == {"shop"}
    assert {
        memory["project"]
        for memory in nacre("list", "--project", "shop", "--json").json["memories"]
    } == {"shop", "mill"}
    nacre("project", "depend", "shop", "mill", "--remove")
    assert recalled() == {"shop"}


def test_context_includes_memories_of_project_dependencies(
    nacre: Nacre, visit: Visit, tmp_path: Path
) -> None:
    folder = repository(tmp_path / "shop")
    visit(folder)
    nacre("store", "Flour is ordered on Mondays", "--project", "mill", "--importance", "9")
    assert "Flour" not in nacre("context", "--folder", str(folder)).out
    nacre("project", "depend", "shop", "mill")
    assert "Flour is ordered on Mondays" in nacre("context", "--folder", str(folder)).out


def test_dependency_follows_renames_and_merges(nacre: Nacre) -> None:
    for name, words in (("shop", "jars"), ("mill", "flour"), ("stones", "granite")):
        nacre("store", f"The price of {words} is set in March", "--project", name)
    nacre("project", "depend", "shop", "mill")
    nacre("project", "rename", "mill", "old-mill")
    assert nacre("project", "show", "shop", "--json").json["project"]["dependencies"] == [
        "old-mill"
    ]
    nacre("project", "merge", "old-mill", "stones", "--yes")
    assert nacre("project", "show", "shop", "--json").json["project"]["dependencies"] == ["stones"]
    assert (
        nacre("project", "depend", "shop", "mill", "--remove", "--json").json["dependencies"] == []
    )


def test_unknown_or_self_dependency_is_refused(nacre: Nacre) -> None:
    nacre("store", "The shop sells jars", "--project", "shop")
    assert "known projects: shop" in nacre("project", "depend", "shop", "mill", code=3).err
    assert "cannot depend on itself" in nacre("project", "depend", "shop", "shop", code=4).err


def test_handoffs_and_reviews_follow_a_rename_and_its_undo(
    nacre: Nacre, user_home: Path, tmp_path: Path
) -> None:
    mill = repository(tmp_path / "mill")
    session = "5e550009-0000-4000-8000-000000000001"
    talk = (
        "Look at the pump, please.",
        "We should keep SQLite for the prototype.",
        "We sell rye in jars of one litre.",
    )
    records = [
        said("user", text, number, session=session, cwd=str(mill))
        for number, text in enumerate(talk)
    ]
    write_transcript(user_home / ".claude" / "projects" / "-mill" / f"{session}.jsonl", records)
    nacre("ingest")
    nacre("context", "--handoff", "--store", "The drain is next.", "--folder", str(mill))

    def pending() -> tuple[str, set[str]]:
        items = nacre("review", "--only", "candidate", "--json").json["items"]
        answer = nacre("context", "--handoff", "--folder", str(mill), "--json").json
        assert "The drain is next." in answer["handoff"]["content"]
        return answer["project"], {item["memory"]["project"] for item in items}

    assert pending() == ("mill", {"mill"})
    result = nacre("project", "rename", "mill", "stones", "--json").json
    assert pending() == ("stones", {"stones"})
    nacre("undo", result["operation"], "--yes")
    assert pending() == ("mill", {"mill"})
    nacre("project", "rename", "mill", "stones")
    candidate = nacre("review", "--only", "candidate", "--json").json["items"][0]["id"]
    nacre("review", "keep", candidate)
    assert {memory["project"] for memory in nacre("list", "--json").json["memories"]} == {"stones"}


def test_label_of_a_former_project_name_follows_the_rename(nacre: Nacre, user_home: Path) -> None:
    nacre("store", "Rye comes on Mondays", "--project", "mill")
    nacre("config", "set", "projects.labels", '{"Team chat" = "mill"}')
    nacre("project", "rename", "mill", "stones")
    note = user_home / "note.md"
    note.write_text("---\nproject: Team chat\n---\n# Note\n\nThe pump runs dry.\n")
    nacre("ingest", str(note))
    assert sessions(nacre) == ["stones"]


def test_memory_stored_under_a_former_name_joins_the_project(nacre: Nacre) -> None:
    nacre("store", "Rye comes on Mondays", "--project", "mill")
    nacre("project", "rename", "mill", "stones")
    nacre("store", "Wheat comes on Fridays", "--project", "mill")
    with open_memory() as memory:
        memory.store("Oats come on Sundays", project="mill")
    assert {item["project"] for item in nacre("list", "--json").json["memories"]} == {"stones"}


def test_merged_project_reaches_another_home_through_a_remote(
    nacre: Nacre, visit: Visit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote = tmp_path / "memories.git"
    subprocess.run(
        ["git", "init", "--quiet", "--bare", "--initial-branch=main", str(remote)], check=True
    )
    old = repository(tmp_path / "mill-old")
    visit(old)
    nacre("store", "Rye comes on Mondays", "--project", "mill-old")
    nacre("store", "Stones are dressed in May", "--project", "mill")
    nacre("sync", "--remote", str(remote))
    first = os.environ["NACRE_HOME"]
    (tmp_path / "second").mkdir()
    monkeypatch.setenv("NACRE_HOME", str(tmp_path / "second" / ".nacre"))
    nacre("sync", "--remote", str(remote))
    nacre("ingest")
    assert sessions(nacre) == ["mill-old"]
    monkeypatch.setenv("NACRE_HOME", first)
    nacre("project", "merge", "mill-old", "mill", "--yes")
    nacre("sync")
    monkeypatch.setenv("NACRE_HOME", str(tmp_path / "second" / ".nacre"))
    nacre("sync")
    assert sessions(nacre) == ["mill"]
    assert {memory["project"] for memory in nacre("list", "--json").json["memories"]} == {"mill"}
    assert visit(old) == "mill"
    shutil.rmtree(old)
    assert visit(old) == "mill"
