"""Dreams of tier 3: two projects that are one become one, where their pages say so, and never for their names alone."""

from __future__ import annotations

import subprocess
from datetime import timedelta
from pathlib import Path

import pytest

from nacre.data.undo import undo
from nacre.review.consolidate import DreamAction, DreamPlan, DreamReport, Step
from nacre.review.dream import DreamPlanRequest, DreamRequest
from nacre.review.run import carry_out, dream, plan
from tests.app.conftest import World
from tests.app.test_dreams import kept, vault

MILL = "git@host.example:acme/mill.git"


def page(world: World, slug: str, **lists: object) -> Path:
    told = "".join(f"{name}: {value}\n" for name, value in lists.items())
    return world.write(
        f"projects/{slug}/project.md", f"---\nid: p-{slug}\nname: {slug}\n{told}---\n# {slug}\n"
    )


def planned(world: World, project: str | None = None) -> DreamPlan:
    return plan(world.context(), DreamPlanRequest(tier=3, project=project))


def joins(found: DreamPlan) -> list[Step]:
    return [step for step in found.steps if step.action is DreamAction.JOIN]


def dreamt(world: World) -> DreamReport:
    world.clock.now += timedelta(seconds=1)
    return dream(world.context(), DreamRequest(tier=3, first=True))


def projects(world: World) -> set[str | None]:
    with world.open() as memory:
        return {one.project for one in memory.list()}


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=o", "-c", "user.email=o@example.org", "-c", "init.defaultBranch=main")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def two(world: World) -> World:
    """Two projects with a memory more in the first."""
    for words in ("Rye comes on Mondays.", "Stones are dressed in May."):
        kept(world, words, project="mill")
    kept(world, "Ask the miller for flour.", project="grinder")
    return world


@pytest.mark.parametrize(
    ("mill", "grinder", "why"),
    [
        (
            {"remotes": [MILL]},
            {"remotes": ["https://host.example/acme/mill"]},
            "the remote host.example/acme/mill",
        ),
        (
            {"roots": ["/code/mill"]},
            {"roots": ["/code/mill", "/code/x"]},
            "both list the folder /code/mill",
        ),
        ({"aliases": ["grinder"]}, {}, "the page of mill calls it grinder"),
        (
            {"remotes": [MILL], "aliases": ["grinder"]},
            {"roots": ["/code/g"]},
            "the page of mill calls it grinder",
        ),
    ],
)
def test_smaller_project_with_the_same_folders_joins_the_larger(
    two: World, mill: dict[str, object], grinder: dict[str, object], why: str
) -> None:
    page(two, "mill", **mill)
    page(two, "grinder", **grinder)
    (step,) = joins(planned(two))
    assert (step.subject, step.project, step.ends) == ("grinder", "mill", ())
    assert why in step.why


def test_worktree_project_joins_the_project_of_its_repository(two: World, tmp_path: Path) -> None:
    mill, tree = tmp_path / "mill", tmp_path / "trees" / "grinder"
    mill.mkdir()
    git(mill, "init", "-q")
    git(mill, "commit", "-q", "--allow-empty", "-m", "first")
    git(mill, "worktree", "add", "-q", str(tree))
    page(two, "mill", roots=[str(mill)])
    page(two, "grinder", roots=[str(tree)])
    (step,) = joins(planned(two))
    assert (step.subject, step.project, step.why) == (
        "grinder",
        "mill",
        f"{tree} is a worktree of {mill}",
    )


@pytest.mark.parametrize(
    ("mill", "grinder"),
    [
        ({"roots": ["/code/mill"]}, {"roots": ["/code/grinder"]}),
        (
            {"remotes": [MILL], "roots": ["/app"]},
            {"remotes": ["git@host.example:bob/mill.git"], "roots": ["/app"]},
        ),
        ({"remotes": [MILL]}, {"remotes": ["git@host.example:bob/mill.git"], "aliases": ["mill"]}),
        ({"aliases": ["stones"]}, {"aliases": ["stones"]}),
        ({"remotes": [MILL], "dreams": "false"}, {"remotes": [MILL]}),
        ({"remotes": [MILL]}, {"remotes": [MILL], "dreams": "no"}),
    ],
)
def test_projects_without_shared_evidence_stay_apart(
    two: World, mill: dict[str, object], grinder: dict[str, object]
) -> None:
    page(two, "mill", **mill)
    page(two, "grinder", **grinder)
    assert joins(planned(two)) == []


def test_similar_names_are_not_evidence(two: World) -> None:
    for slug in ("mill-old", "mills", "mill-2", "the-mill", "mil"):
        kept(two, f"A word about {slug}.", project=slug)
        page(two, slug, roots=[f"/code/{slug}"])
    page(two, "mill", roots=["/code/mill"])
    assert joins(planned(two)) == []


def test_dream_joins_projects_in_one_operation_with_diary(two: World) -> None:
    page(two, "mill", remotes=[MILL])
    page(two, "grinder", remotes=[MILL])
    before = vault(two)
    report = dreamt(two)
    assert projects(two) == {"mill"}
    assert (
        "### Merged projects\n\n- grinder into mill: both list the remote"
        in (two.vault / str(report.diary)).read_text()
    )
    assert not (two.vault / "projects/grinder/project.md").exists()
    assert "into: mill" in (two.vault / "retired/projects/grinder/project.md").read_text()
    assert joins(planned(two)) == []
    undo(two.context(), report.operation)
    assert {path: data for path, data in vault(two).items() if path in before} == before
    assert projects(two) == {"mill", "grinder"}


def test_undone_join_is_not_repeated(two: World) -> None:
    page(two, "mill", remotes=[MILL])
    page(two, "grinder", remotes=[MILL])
    undo(two.context(), dreamt(two).operation)
    assert joins(planned(two)) == []
    two.rebuild()
    assert joins(planned(two)) == []


def test_late_file_under_the_former_name_is_joined_again(two: World) -> None:
    page(two, "mill", remotes=[MILL])
    page(two, "grinder", remotes=[MILL])
    dreamt(two)
    two.write(
        "projects/grinder/fact/late.md", "---\nsubject: Late\n---\nThe late cart brought salt.\n"
    )
    assert projects(two) == {"mill", "grinder"}
    (step,) = joins(planned(two))
    assert (step.subject, step.project, step.why) == (
        "grinder",
        "mill",
        "the page of mill calls it grinder",
    )
    dreamt(two)
    assert projects(two) == {"mill"}


def test_join_is_skipped_if_a_page_changed_after_planning(two: World) -> None:
    page(two, "mill", remotes=[MILL])
    grinder = page(two, "grinder", remotes=[MILL])
    found = planned(two)
    grinder.write_text(grinder.read_text() + "\nMine.\n")
    report = carry_out(two.context(), found)
    assert [why for _, why in report.left] == ["one of their pages was edited since"]
    assert projects(two) == {"mill", "grinder"}
    page(two, "grinder", remotes=["git@host.example:bob/mill.git"])
    (left,) = carry_out(two.context(), found).left
    assert left[1] == "there is no longer any evidence that they are one project"


def test_dream_joins_one_project_per_run(two: World) -> None:
    kept(two, "The third wheel is spare.", project="wheel")
    for slug in ("mill", "grinder", "wheel"):
        page(two, slug, remotes=[MILL])
    dreamt(two)
    assert len(projects(two)) == 2
    dreamt(two)
    assert projects(two) == {"mill"}


def test_next_dream_merges_the_memories_of_a_joined_project(two: World) -> None:
    page(two, "mill", remotes=[MILL])
    page(two, "grinder", remotes=[MILL])
    for words in ("The wheel turns left.", "The weir is low."):
        kept(two, words, project="mill")
    for words in ("Sacks are mended on Tuesdays.", "Sacks are mended on Tuesdays"):
        kept(two, words, project="grinder")
    assert [step.action for step in planned(two).steps] == [DreamAction.JOIN]
    dreamt(two)
    assert [step.action for step in planned(two).steps] == [DreamAction.MERGE]


def test_dream_of_one_project_joins_no_other_projects(two: World) -> None:
    page(two, "mill", remotes=[MILL])
    page(two, "grinder", remotes=[MILL])
    kept(two, "The farm has a pond.", project="farm")
    assert joins(planned(two, "farm")) == []
    assert len(joins(planned(two, "mill"))) == 1


def test_excluded_project_is_not_joined_with_an_included_project(two: World) -> None:
    page(two, "mill", remotes=[MILL])
    page(two, "grinder", remotes=[MILL])
    two.environ["NACRE_WRITER_EXCLUDE_PROJECTS"] = '["grinder"]'
    assert joins(planned(two)) == []
