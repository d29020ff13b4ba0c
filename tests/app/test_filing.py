"""Dreams of tier 3: what waits in the inbox is filed where evidence says it belongs, and nowhere else."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from nacre.review.consolidate import DreamAction, DreamPlan, DreamReport
from nacre.review.dream import DreamPlanRequest, DreamRequest
from nacre.review.run import carry_out, dream, plan
from nacre.values.memory import Confidence, Confirmation, Memory, Source
from nacre.values.session import Trust
from tests.app.conftest import World, says
from tests.app.test_dreams import kept, vault

SHOP = "---\nname: Hivelog Shop\nremotes: [git@github.com:lena-io/hivelog-shop.git]\nroots: [/code/hivelog-shop]\n---\n"
HONEY = "---\nname: honey\naliases: [apiarium]\n---\n# Honey\n"


@pytest.fixture
def known(world: World) -> World:
    """A home with two projects: ``hivelog-shop``, and ``honey``, which is a word."""
    world.write("projects/hivelog-shop/project.md", SHOP)
    world.write("projects/honey/project.md", HONEY)
    return world


def waiting(world: World, content: str, **more: Any) -> Memory:
    """A memory in the inbox, as it was read off a session."""
    read = {
        "project": None,
        "inbox": True,
        "confidence": Confidence.INFERRED,
        "source": Source("codex:1", ("t1",)),
    }
    return kept(world, content, **{**read, **more})


def planned(world: World, **more: Any) -> DreamPlan:
    return plan(world.context(), DreamPlanRequest(tier=3, **more))


def dreamt(world: World, **more: Any) -> DreamReport:
    world.clock.now += timedelta(seconds=1)
    return dream(world.context(), DreamRequest(tier=3, first=True, **more))


def filed(found: DreamPlan) -> dict[str, tuple[str, str]]:
    return {
        step.into or "": (step.project, step.why)
        for step in found.steps
        if step.action is DreamAction.FILE
    }


@pytest.mark.parametrize(
    ("content", "slug", "why"),
    [
        ("The cart of hivelog-shop is kept for a week.", "hivelog-shop", "names hivelog-shop"),
        ("The Hivelog Shop closes in January.", "hivelog-shop", "names Hivelog Shop"),
        (
            "Labels are made in /code/hivelog-shop/labels.",
            "hivelog-shop",
            "names one of its paths, below /code/hivelog-shop",
        ),
        (
            "See https://github.com/lena-io/hivelog-shop/issues/5 first.",
            "hivelog-shop",
            "names its repository",
        ),
        ("Apiarium is built with make.", "honey", "names apiarium"),
        ("The honey repo is built with make.", "honey", "names honey"),
        ("Releases of `honey` are tagged.", "honey", "names honey"),
    ],
)
def test_inbox_memory_naming_one_project_is_filed_there(
    known: World, content: str, slug: str, why: str
) -> None:
    one = waiting(known, content)
    ((memory_id, (project, told)),) = filed(planned(known)).items()
    assert (memory_id, project) == (one.id, slug)
    assert why in told


@pytest.mark.parametrize(
    "content",
    [
        "The printer needs blue toner.",
        "Honey is sold in jars.",
        "The cart of hivelog-shop-old is kept for a week.",
        "The cart lies in /srv/hivelog-shop/cart.",
        "See https://github.com/lena-io/hivelog-shop-old first.",
        "The hivelog-shop orders from apiarium.",
        "The hivelog-shop sells honey.",
    ],
)
def test_inbox_memory_with_unclear_project_stays(known: World, content: str) -> None:
    one = waiting(known, content)
    found = planned(known)
    assert (found.steps, found.unfiled) == ((), (one.id,))


def test_name_used_by_another_projects_memories_is_not_evidence(known: World) -> None:
    waiting(known, "We use apiarium for labels.")
    assert filed(planned(known))
    kept(known, "Labels are printed by apiarium.", project="hivelog-shop")
    assert not filed(planned(known))


def test_untrusted_and_proposed_memories_are_not_filed(known: World) -> None:
    waiting(known, "The cart of hivelog-shop is kept for a week.", trust=Trust.UNTRUSTED)
    waiting(known, "The cart of hivelog-shop is kept for a day.", proposed=True)
    assert planned(known).steps == ()


@pytest.fixture
def met(world: World) -> str:
    """A session in a folder that belongs to no project yet; returns its id."""
    world.transcript(
        "5e55-0001", says("user", "The scales are read hourly.", uuid="u1", cwd="/code")
    )
    with world.open() as memory:
        memory.ingest()
    return "claude-code:5e55-0001"


def test_inbox_memory_is_filed_once_its_session_has_a_project(world: World, met: str) -> None:
    one = waiting(world, "The scales are read hourly.", source=Source(met, ("u1",)))
    assert not filed(planned(world))
    world.write("projects/scales/project.md", "---\nname: scales\nroots: [/code]\n---\n")
    assert filed(planned(world)) == {
        one.id: ("scales", f"from session {met}, which belongs to the project")
    }
    world.write("projects/honey/project.md", HONEY)
    assert not filed(planned(world, project="honey"))
    dreamt(world, project="scales")
    with world.open() as memory:
        stored = memory.get(one.id)
    assert (stored.project, stored.inbox, stored.last_said) == ("scales", False, one.last_said)
    assert (world.vault / "projects/scales/fact").is_dir()


def test_conflicting_evidence_from_session_and_text_prevents_filing(known: World, met: str) -> None:
    known.write("projects/scales/project.md", "---\nname: scales\nroots: [/code]\n---\n")
    waiting(known, "The cart of hivelog-shop is kept for a week.", source=Source(met, ("u1",)))
    assert not filed(planned(known))


def test_memory_from_sessions_of_two_projects_stays_in_inbox(world: World, met: str) -> None:
    world.write("projects/scales/project.md", "---\nname: scales\nroots: [/code]\n---\n")
    world.transcript(
        "5e55-0002", says("user", "Hello.", uuid="u2", session="5e55-0002", cwd="/srv/acme-billing")
    )
    with world.open() as memory:
        memory.ingest()
    again = Confirmation(world.clock.now, "claude-code:5e55-0002", ("u2",))
    waiting(world, "The scales are read hourly.", source=Source(met, ("u1",)), confirmed=(again,))
    assert not filed(planned(world))


def test_undo_restores_a_filed_memory_exactly(known: World) -> None:
    waiting(known, "The cart of hivelog-shop is kept for a week.")
    before = vault(known)
    report = dreamt(known)
    assert report.diary
    assert "into hivelog-shop: names hivelog-shop" in (known.vault / report.diary).read_text()
    assert not list(known.vault.glob("inbox/*.md"))
    with known.open() as memory:
        memory.undo(report.operation)
    assert vault(known) == before


def test_memory_edited_after_planning_is_not_filed(known: World) -> None:
    one = waiting(known, "The cart of hivelog-shop is kept for a week.")
    home = known.context()
    found = plan(home, DreamPlanRequest(tier=3))
    path = known.memory_file(one.id)
    path.write_text(path.read_text().replace("a week", "a day"))
    assert [why for _, why in carry_out(home, found).left] == ["it has changed since"]
    assert path.exists()


def test_memory_without_remaining_evidence_is_not_filed(known: World) -> None:
    waiting(known, "Apiarium is built with make.")
    home = known.context()
    found = plan(home, DreamPlanRequest(tier=3))
    known.write("projects/honey/project.md", HONEY.replace("apiarium", "bees"))
    assert [why for _, why in carry_out(home, found).left] == [
        "there is no longer any evidence that it belongs there"
    ]


def test_unfiled_memory_stays_in_the_inbox(known: World) -> None:
    waiting(known, "The printer needs blue toner.")
    for _ in range(5):
        known.clock.pass_days(5)
        report = dreamt(known)
        assert report.operation is None
        assert len(report.plan.unfiled) == 1
