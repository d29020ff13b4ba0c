"""``MEMORY.md``: a listing for people, derived from the memories, beside which a person's own page stays."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from nacre.vault.files import MARKER, MOST_A_KIND
from tests.cli.conftest import Nacre


@pytest.fixture
def vault() -> Path:
    return Path(os.environ["NACRE_HOME"]) / "vault"


@pytest.fixture
def mill(nacre: Nacre) -> None:
    nacre(
        "store",
        "The wheel turns left [seen from the bank].",
        "--subject",
        "Wheel [left]",
        "--project",
        "mill",
    )
    nacre("store", "We decided to grind rye on Mondays.", "--kind", "decision", "--project", "mill")
    nacre("todo", "add", "Grease the axle", "--project", "mill")
    nacre("store", "Prefer short answers.", "--kind", "preference")
    nacre("admin", "commit")


def git(vault: Path, *arguments: str) -> str:
    own = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    return subprocess.run(
        ["git", "-C", vault, *own, *arguments], check=True, capture_output=True, text=True
    ).stdout


@pytest.mark.usefixtures("mill")
def test_commit_updates_the_listing_with_working_links(vault: Path) -> None:
    page = (vault / "projects/mill/MEMORY.md").read_text()
    assert page.startswith(MARKER)
    assert "3 memories." in page
    assert [line for line in page.splitlines() if line.startswith("## ")] == [
        "## Open todos (1)",
        "## Decisions (1)",
        "## Facts (1)",
    ]
    assert "- [Wheel \\[left\\]](fact/wheel-left.md) · " in page
    assert (vault / "projects/mill/fact/wheel-left.md").is_file()
    top = (vault / "MEMORY.md").read_text()
    assert "4 memories; 1 without a project." in top
    assert "- [mill](projects/mill/MEMORY.md): 3" in top
    assert "](global/preference/" in top


@pytest.mark.usefixtures("mill")
def test_listing_marks_an_agents_proposal(
    nacre: Nacre, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as shell:
        shell.setenv("CLAUDECODE", "1")
        nacre("store", "The sluice is opened at six.", "--project", "mill")
    nacre("admin", "commit")
    (line,) = [
        one
        for one in (vault / "projects/mill/MEMORY.md").read_text().splitlines()
        if "sluice" in one
    ]
    assert line.endswith(" · an agent's proposal")


@pytest.mark.usefixtures("mill")
def test_listing_is_ignored_by_memory_and_git(nacre: Nacre, vault: Path) -> None:
    assert nacre("list", "--json").json["total"] == 4
    assert git(vault, "status", "--porcelain") == ""
    assert "MEMORY.md" not in git(vault, "ls-files")
    assert "Nothing to commit" in nacre("admin", "commit").out


@pytest.mark.usefixtures("mill")
def test_retired_and_forgotten_memories_leave_the_listing(nacre: Nacre, vault: Path) -> None:
    page = vault / "projects/mill/MEMORY.md"
    nacre("forget", "--match", "grind rye", "--yes")
    assert "rye" not in page.read_text()
    nacre("todo", "done", "Grease the axle")
    nacre("admin", "commit")
    assert "axle" not in page.read_text()


@pytest.mark.usefixtures("mill")
def test_users_own_page_is_not_changed(nacre: Nacre, vault: Path) -> None:
    page = vault / "projects/mill/MEMORY.md"
    page.write_text("# My mill\n\nSee the plan.\n")
    nacre("store", "The mill has a loft.", "--project", "mill")
    nacre("admin", "commit")
    assert page.read_text() == "# My mill\n\nSee the plan.\n"
    assert "projects/mill/MEMORY.md" in git(vault, "ls-files")


@pytest.mark.usefixtures("mill")
def test_listing_added_to_git_by_the_owner_is_committed(nacre: Nacre, vault: Path) -> None:
    git(vault, "add", "--force", "MEMORY.md")
    git(vault, "commit", "--quiet", "--message", "The listing, for the forge")
    nacre("store", "The harbour is dredged in May.")
    nacre("admin", "commit")
    assert "harbour" in git(vault, "show", "HEAD:MEMORY.md")


def test_commit_without_git_only_writes_the_listing(nacre: Nacre, vault: Path) -> None:
    nacre("config", "set", "git.enabled", "false")
    nacre("store", "The harbour is dredged in May.")
    assert not (vault / "MEMORY.md").exists()
    nacre("admin", "commit")
    assert "harbour" in (vault / "MEMORY.md").read_text()


def test_listing_shows_newest_memories_and_counts_the_rest(nacre: Nacre, vault: Path) -> None:
    (vault / "global/fact").mkdir(parents=True)
    for number in range(MOST_A_KIND + 7):
        (vault / f"global/fact/buoy-{number}.md").write_text(
            f"# Buoy {number}\n\nBuoy {number} is red.\n"
        )
    nacre("admin", "commit")
    page = (vault / "MEMORY.md").read_text()
    assert page.count("](global/fact/buoy-") == MOST_A_KIND
    assert "- and 7 older ones in [fact/](global/fact/)" in page


def test_sync_converges_if_only_one_machine_tracks_the_listing(
    nacre: Nacre, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(
        ["git", "init", "--quiet", "--bare", "--initial-branch=main", tmp_path / "remote.git"],
        check=True,
    )
    one, other = tmp_path / "one", tmp_path / "other"

    def on(home: Path, *arguments: str) -> None:
        monkeypatch.setenv("NACRE_HOME", str(home))
        nacre(*arguments)

    on(one, "store", "The gate opens at nine.")
    on(one, "sync", "--remote", str(tmp_path / "remote.git"))
    on(other, "store", "The wheel turns left.")
    on(other, "sync", "--remote", str(tmp_path / "remote.git"))
    git(one / "vault", "add", "--force", "MEMORY.md")
    git(one / "vault", "commit", "--quiet", "--message", "The listing, for the forge")
    on(one, "store", "The bell rings at noon.")
    on(other, "store", "The ferry leaves at eight.")
    for home in (one, other, one, other):
        on(home, "sync")
    pages = [(home / "vault/MEMORY.md").read_text() for home in (one, other)]
    assert pages[0] == pages[1]
    assert pages[0].count("](global/fact/") == 4
    assert [path.name for path in (other / "vault").glob("*.md")] == ["MEMORY.md"]
