"""Dreams: what is over ends, what was said twice is one, and all of it can be taken back."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from nacre.errors import ConflictError
from nacre.review import run
from nacre.review.consolidate import DreamAction, DreamPlan, DreamReport
from nacre.review.dream import DreamPlanRequest, DreamRequest
from nacre.review.run import carry_out, dream, dream_if_due, plan
from nacre.values.memory import Expiry, Kind, Link, Memory, Scope, Source
from nacre.values.session import Speaker, Trust
from tests.app.conftest import World


def kept(
    world: World, content: str, *, days: float = 0, subject: str | None = None, **more: Any
) -> Memory:
    """A memory as it lies in a vault, last said so many days ago."""
    home = world.context()
    at = home.now() - timedelta(days=days)
    values: dict[str, Any] = {"kind": Kind.FACT, "importance": 5, "project": "hive", **more}
    memory = Memory(
        id=home.ids(),
        subject=subject or content[:40],
        content=content,
        created=at,
        updated=at,
        **values,
    )
    with home.change("store") as change, change.transaction():
        change.put([memory])
    return memory


def planned(world: World, **more: Any) -> DreamPlan:
    return plan(world.context(), DreamPlanRequest(**more))


def dreamt(world: World, **more: Any) -> DreamReport:
    world.clock.now += timedelta(seconds=1)
    return dream(world.context(), DreamRequest(**{"first": True, **more}))


def actions(found: DreamPlan) -> dict[str, tuple[DreamAction, str | None]]:
    return {one: (step.action, step.into) for step in found.steps for one in step.ends}


def vault(world: World) -> dict[str, bytes]:
    paths = [path for path in world.vault.rglob("*.md") if ".git" not in path.parts]
    return {str(path.relative_to(world.vault)): path.read_bytes() for path in paths}


def test_temporary_memory_ends_after_130_days_without_recall(world: World) -> None:
    over = kept(
        world, "The build machine is borrowed from Anna.", days=131, expiry=Expiry.TEMPORARY
    )
    kept(world, "The scale is read every ten minutes.", days=129, expiry=Expiry.TEMPORARY)
    recalled = kept(world, "The demo runs on the old server.", days=400, expiry=Expiry.TEMPORARY)
    with world.open() as memory:
        assert recalled.id in {
            hit.memory.id for hit in memory.recall("the demo on the old server").hits
        }
    assert actions(planned(world)) == {over.id: (DreamAction.EXPIRE, None)}


def test_memory_expires_on_its_expiry_date(world: World) -> None:
    today = world.clock().date()
    over = kept(world, "The freeze holds.", expires_on=today)
    kept(world, "The sale is on.", expires_on=today + timedelta(days=1))
    assert actions(planned(world)) == {over.id: (DreamAction.EXPIRE, None)}


def test_unused_memory_is_forgotten_unless_important(world: World) -> None:
    old = kept(world, "The intern liked the blue theme.", days=500)
    kept(world, "The intern liked the red theme.", days=300)
    kept(world, "Backups are encrypted with age.", days=900, importance=6)
    kept(world, "Mend the gate of the yard.", days=900, kind=Kind.TODO)
    kept(world, "We answer in English.", days=900, expiry=Expiry.CORE)
    kept(world, "The secret garden has a door.", days=900, evergreen=True)
    assert actions(planned(world)) == {old.id: (DreamAction.FORGET, None)}


def test_settings_control_automatic_forgetting(world: World) -> None:
    old = kept(world, "The intern liked the blue theme.", days=500)
    assert set(actions(planned(world))) == {old.id}
    world.environ["NACRE_FORGETTING_MAX_AGE_DAYS"] = "600"
    assert set(actions(planned(world))) == set()
    world.environ["NACRE_FORGETTING_ENABLED"] = "false"
    over = kept(world, "The freeze holds.", expires_on=world.clock().date())
    assert actions(planned(world)) == {over.id: (DreamAction.EXPIRE, None)}, (
        "what says itself when it ends, ends"
    )


def test_protected_subjects_are_neither_expired_nor_forgotten(world: World) -> None:
    world.environ["NACRE_FORGETTING_PROTECT"] = '["client *"]'
    kept(world, "The client pays in March.", subject="Client Meier", days=900)
    kept(world, "The client is on leave.", subject="client Kunz", days=900, expiry=Expiry.TEMPORARY)
    assert planned(world).steps == ()


def test_merge_of_duplicates_combines_evidence_tags_links_and_importance(world: World) -> None:
    first = kept(
        world,
        "Honey is sold in jars of 500 g.",
        subject="Jars",
        days=30,
        importance=7,
        tags=("sale",),
        source=Source("codex:1", ("t1",)),
    )
    other = kept(world, "The label is yellow.", subject="Label")
    later = kept(
        world,
        "Honey is sold in jars of 500 g!",
        subject="jars",
        tags=("jar",),
        links=(Link("related", other.id),),
    )
    report = dreamt(world)
    assert actions(report.plan) == {first.id: (DreamAction.MERGE, later.id)}
    with world.open() as memory:
        stays, gone = memory.get(later.id), memory.get(first.id)
    assert gone.retired
    assert gone.retired.reason == f"says the same as {later.id}"
    assert (stays.importance, stays.created, set(stays.tags)) == (7, first.created, {"sale", "jar"})
    assert [one.session for one in stays.confirmed] == ["codex:1"]
    assert [link.to for link in stays.links] == [other.id]


@pytest.mark.parametrize(
    ("one", "other", "more"),
    [
        ("Honey is sold in jars of 500 g.", "Honey is sold in jars of 250 g.", {}),
        ("Uploads are limited to 10 MB.", "Uploads are not limited to 10 MB.", {}),
        ("Uploads are limited to 10 MB.", "Uploads of admins are limited to 10 MB.", {}),
        ("The hive stands in Bern.", "The hive stands in Basel.", {}),
        ("Anna teaches Bert.", "Bert teaches Anna.", {}),
        ("Seal the jars before the fair.", "Seal the jars after the fair.", {}),
        ("We kept bees in the yard.", "We keep bees in the yard.", {}),
        ("Pass -q to the press.", "Pass -Q to the press.", {}),
        ("Is honey sold in jars?", "Is honey sold in jars.", {}),
        ("Honey is sold in jars.", "Honey is sold in jars.", {"project": "shop"}),
        ("Honey is sold in jars.", "Honey is sold in jars.", {"kind": Kind.LESSON}),
    ],
)
def test_different_word_sign_order_or_place_prevents_a_merge(
    world: World, one: str, other: str, more: dict[str, Any]
) -> None:
    kept(world, one, subject="It", days=3)
    kept(world, other, subject="It", **more)
    assert planned(world).steps == ()


def test_statement_without_an_author_never_replaces_the_owners(world: World) -> None:
    own = kept(world, "Honey is sold in jars of 500 g.", subject="Jars", days=30)
    agents = kept(
        world,
        "Honey is sold in jars of 500 g.",
        subject="Jars",
        speaker=Speaker.AGENT,
        importance=9,
    )
    kept(
        world,
        "Honey is sold in jars of 500 g.",
        subject="Jars",
        trust=Trust.UNTRUSTED,
        importance=9,
    )
    report = dreamt(world)
    assert actions(report.plan) == {agents.id: (DreamAction.MERGE, own.id)}
    with world.open() as memory:
        stays = memory.get(own.id)
    assert (stays.speaker, stays.trust, stays.importance) == (Speaker.OWNER, Trust.TRUSTED, 5)


@pytest.mark.parametrize(
    "other",
    [
        "honey is sold in jars of 500 g",
        "- Honey is sold  in **jars** of 500 g.",
        "Honey is sold in jars\nof 500 g!",
    ],
)
def test_memories_differing_only_in_layout_or_subject_are_merged(world: World, other: str) -> None:
    first = kept(world, "Honey is sold in jars of 500 g.", subject="Jars", days=3)
    later = kept(world, other, subject="Honey")
    assert actions(planned(world)) == {first.id: (DreamAction.MERGE, later.id)}


@pytest.mark.parametrize(
    "more",
    [
        {"scope": Scope.PUBLIC},
        {"expires_on": date(2099, 1, 1)},
        {"expiry": Expiry.TEMPORARY},
        {"canonical_key": "honey-jar-large"},
        {"suppressed_contexts": ("session-start",)},
        {"trust": Trust.UNTRUSTED},
    ],
)
def test_similar_memories_for_other_audiences_or_times_stay_apart(
    world: World, more: dict[str, Any]
) -> None:
    kept(world, "Honey is sold in jars of 500 g.", canonical_key="honey-jar-size")
    kept(world, "Honey is sold in jars of 500 g.", **{"canonical_key": "honey-jar-size", **more})
    assert planned(world).steps == ()


def test_merge_keeps_the_protected_memory(world: World) -> None:
    kept_for_good = kept(world, "Honey is sold in jars of 500 g.", days=30, evergreen=True)
    other = kept(world, "Honey is sold in jars of 500 g.")
    assert actions(planned(world)) == {other.id: (DreamAction.MERGE, kept_for_good.id)}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Versions stand in __init__.py", "Versions stand in init.py"),
        ("Skip what lies in src/**/made", "Skip what lies in src//made"),
        ("Leave the folder with cd ..", "Leave the folder with cd ."),
        ("Read **options and **more", "Read options and more"),
    ],
)
def test_symbols_in_file_names_and_patterns_prevent_a_merge(
    world: World, one: str, other: str
) -> None:
    kept(world, one)
    kept(world, other)
    assert planned(world).steps == ()


def test_dream_limits_endings_per_run_and_postpones_the_rest(world: World) -> None:
    for number in range(25):
        kept(
            world,
            f"Crate {number} stands in row {number + 100}.",
            days=200 + number,
            expiry=Expiry.TEMPORARY,
        )
    found = planned(world)
    assert (found.ending, len(found.put_off), found.most) == (20, 5, 20)
    assert planned(world, most=3).ending == 3
    assert dreamt(world).operation
    assert planned(world).ending == 5


def test_first_dream_only_plans(world: World) -> None:
    kept(world, "The build machine is borrowed.", days=200, expiry=Expiry.TEMPORARY)
    before = vault(world)
    report = dreamt(world, first=False)
    assert (report.is_first, report.operation, report.plan.ending) == (True, None, 1)
    assert vault(world) == before
    assert dreamt(world, first=False).operation


def test_dream_leaves_out_a_step_that_would_break_a_pinned_answer(world: World) -> None:
    borrowed = kept(world, "The build machine is borrowed.", days=200, expiry=Expiry.TEMPORARY)
    kept(world, "The lawn is cut on Fridays.", days=200, expiry=Expiry.TEMPORARY)
    with world.open() as memory:
        memory.call("pin", question="who owns the build machine?")
    report = dreamt(world)
    assert [(step.ends, why) for step, why in report.left] == [
        ((borrowed.id,), "it would break a pinned answer: who owns the build machine?")
    ]
    assert report.operation
    assert world.context().memories.find(borrowed.id).is_active


def test_merge_that_keeps_the_words_of_a_pinned_answer_is_applied(world: World) -> None:
    kept(world, "Honey is sold in jars of 500 g.", subject="Jars", days=30)
    kept(world, "Honey is sold in jars of 500 g!", subject="Jars")
    with world.open() as memory:
        memory.call("pin", question="in which jars is honey sold?", answer="500 g")
    report = dreamt(world)
    assert (report.operation is not None, report.left) == (True, ())


def test_dream_that_breaks_a_pinned_answer_indirectly_is_undone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept(world, "The build machine is borrowed.", days=200, expiry=Expiry.TEMPORARY)
    with world.open() as memory:
        memory.call("pin", question="who owns the build machine?")
    before = vault(world)
    monkeypatch.setattr(run, "_pin_objection", lambda *_: None)
    report = dreamt(world)
    assert report.operation is None
    assert [why for _, why in report.left] == [
        "it would break a pinned answer: who owns the build machine?"
    ]
    assert vault(world) == before


def test_dream_is_one_operation_with_diary_and_undone_exactly(world: World) -> None:
    kept(world, "Honey is sold in jars of 500 g.", subject="Jars", days=30, tags=("sale",))
    kept(world, "Honey is sold in jars of 500 g!", subject="Jars")
    kept(world, "The build machine is borrowed.", days=200, expiry=Expiry.TEMPORARY)
    before = vault(world)
    report = dreamt(world)
    assert report.diary
    told = (world.vault / report.diary).read_text()
    assert "The build machine is borrowed. (" in told
    assert "- kept: Honey is sold in jars of 500 g!" in told
    assert len([path for path in vault(world) if path.startswith("retired/")]) == 2
    with world.open() as memory:
        assert [one.operation.action for one in memory.log(limit=1)] == ["dream"]
        world.clock.now += timedelta(seconds=1)
        memory.undo()
    assert vault(world) == before


def test_undo_of_a_dream_keeps_a_later_edit(world: World) -> None:
    first = kept(world, "Honey is sold in jars of 500 g.", subject="Jars", days=30, tags=("sale",))
    later = kept(world, "Honey is sold in jars of 500 g!", subject="Jars")
    report = dreamt(world)
    path = next(path for path in world.vault.glob("projects/hive/fact/*.md"))
    path.write_text(path.read_text().replace("jars of 500 g!", "jars of 500 g, with a lid!"))
    world.clock.now += timedelta(seconds=1)
    with world.open() as memory:
        memory.undo(report.operation)
        assert memory.get(first.id).retired is None
        assert memory.get(later.id).content == "Honey is sold in jars of 500 g, with a lid!"


def test_memory_edited_after_planning_is_skipped_and_reported(world: World) -> None:
    kept(world, "Honey is sold in jars of 500 g.", subject="Jars", days=30)
    later = kept(world, "Honey is sold in jars of 500 g!", subject="Jars")
    over = kept(world, "The build machine is borrowed.", days=200, expiry=Expiry.TEMPORARY)
    home = world.context()
    found = plan(home, DreamPlanRequest())
    path = next(path for path in world.vault.rglob("*.md") if later.id in path.read_text())
    path.write_text(path.read_text().replace("500 g!", "250 g!"))
    report = carry_out(home, found)
    assert [why for _, why in report.left] == ["the kept memory no longer contains all of it"]
    with world.open() as memory:
        assert memory.get(over.id).retired
        assert {one.content[-6:] for one in memory.list()} == {"250 g!", "500 g."}


def test_ten_identical_memories_are_merged_into_one_memory(world: World) -> None:
    made = [
        kept(world, "Honey is sold in jars of 500 g.", subject="Jars", days=day)
        for day in range(10)
    ]
    report = dreamt(world)
    assert actions(report.plan) == {one.id: (DreamAction.MERGE, made[0].id) for one in made[1:]}
    assert Path(world.vault / (report.diary or "")).is_file()


def test_automatic_dream_runs_daily_if_enabled_and_plans_first(
    world: World,
) -> None:
    over = kept(world, "The build machine is borrowed.", days=200, expiry=Expiry.TEMPORARY)
    assert dream_if_due(world.context()) is None
    world.environ["NACRE_DREAM_AT_NIGHT"] = "true"
    first = dream_if_due(world.context())
    assert first
    assert first.is_first
    world.clock.now += timedelta(hours=19)
    assert dream_if_due(world.context()) is None
    world.clock.now += timedelta(hours=2)
    second = dream_if_due(world.context())
    assert second
    assert actions(second.plan) == {over.id: (DreamAction.EXPIRE, None)}
    assert second.operation


def gone(world: World, memory: Memory) -> None:
    """A person deletes a memory's file, and then the one in ``retired/``: nothing of it is left."""
    for _ in range(2):
        (path,) = [
            path for path in world.vault.rglob("*.md") if f"\nid: {memory.id}\n" in path.read_text()
        ]
        path.unlink()
        planned(world)


def test_link_to_deleted_memory_is_dropped_and_restored_by_undo(world: World) -> None:
    label = kept(world, "The label is yellow.")
    lid = kept(world, "The lid is green.")
    jar = kept(
        world,
        "Honey is sold in jars.",
        links=(Link("related_to", label.id), Link("builds_on", lid.id)),
        days=3,
    )
    gone(world, label)
    before = vault(world)
    found = planned(world)
    assert [(step.action, step.ends, step.into, step.links) for step in found.steps] == [
        (DreamAction.UNLINK, (), jar.id, (label.id,))
    ]
    report = dreamt(world)
    with world.open() as memory:
        now = memory.get(jar.id)
        assert now.links == (Link("builds_on", lid.id),)
        assert (now.updated, now.content) == (jar.updated, jar.content)
    assert (
        f"dangling link: related_to {label.id[-8:]}"
        in (world.vault / (report.diary or "")).read_text()
    )
    assert planned(world).steps == ()
    with world.open() as memory:
        world.clock.now += timedelta(seconds=1)
        memory.undo(report.operation)
    assert vault(world) == before


def test_link_to_a_forgotten_memory_is_dropped(world: World) -> None:
    label = kept(world, "The label is yellow.")
    jar = kept(world, "Honey is sold in jars.")
    with world.open() as memory:
        memory.forget(memory.plan_forgetting(memories=[label.id]))
    (path,) = [path for path in world.vault.rglob("*.md") if jar.id in path.read_text()]
    path.write_text(
        path.read_text().replace(
            "\n---\n", f"\nlinks:\n- rel: related_to\n  to: {label.id}\n---\n", 1
        )
    )
    assert [step.links for step in planned(world).steps] == [(label.id,)]


def test_links_to_retired_superseded_and_external_targets_are_kept(world: World) -> None:
    retired = kept(world, "The label is yellow.")
    newer = kept(world, "The lid is green.")
    superseded = kept(world, "The lid is red.", superseded_by=newer.id)
    ends = (
        retired.id,
        superseded.id,
        "https://example.org/jars",
        "src/jars.py",
        world.context().ids(),
    )
    kept(world, "Honey is sold in jars.", links=tuple(Link("related_to", end) for end in ends))
    with world.open() as memory:
        memory.retire(retired.id)
    assert planned(world).steps == ()


def test_unreadable_file_prevents_dropping_of_links(world: World) -> None:
    label = kept(world, "The label is yellow.")
    kept(world, "Honey is sold in jars.", links=(Link("related_to", label.id),))
    gone(world, label)
    home = world.context()
    found = plan(home, DreamPlanRequest())
    path = world.vault / "global/fact/label.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"---\nid: {label.id}\nkind: [\n---\nThe label is yellow.\n")
    assert planned(world).steps == ()
    assert [why for _, why in carry_out(home, found).left] == ["a link might have a target again"]
    path.write_text(f"---\nid: {label.id}\nkind: fact\nsubject: Label\n---\nThe label is yellow.\n")
    assert [why for _, why in carry_out(home, found).left] == ["a link has a target again"]


def test_dream_removes_orphan_links_of_kept_memories(world: World) -> None:
    label = kept(world, "The label is yellow.")
    kept(world, "Honey is sold in jars of 500 g.", days=30)
    later = kept(
        world,
        "Honey is sold in jars of 500 g!",
        links=(Link("related_to", label.id),),
        tags=("jar",),
    )
    gone(world, label)
    assert [step.action for step in dreamt(world).plan.steps] == [DreamAction.MERGE]
    assert [step.action for step in dreamt(world).plan.steps] == [DreamAction.UNLINK]
    with world.open() as memory:
        assert (memory.get(later.id).links, memory.get(later.id).tags) == ((), ("jar",))


def test_nightly_dream_without_steps_writes_nothing(world: World) -> None:
    kept(world, "Honey is sold in jars of 500 g.")
    world.environ["NACRE_DREAM_AT_NIGHT"] = "true"
    before = vault(world), (world.vault / "ledger.jsonl").exists()
    for _ in range(3):
        world.clock.now += timedelta(days=1)
        report = dream_if_due(world.context())
        assert report
        assert (report.plan.steps, report.operation, report.diary) == ((), None, None)
    assert (vault(world), (world.vault / "ledger.jsonl").exists()) == before
    with world.open() as memory:
        assert [one.operation.action for one in memory.log()] == ["store"]


def test_dream_ignores_a_link_removed_by_a_person(world: World) -> None:
    label = kept(world, "The label is yellow.")
    jar = kept(world, "Honey is sold in jars.", links=(Link("related_to", label.id),))
    gone(world, label)
    home = world.context()
    found = plan(home, DreamPlanRequest())
    (path,) = [
        path for path in world.vault.rglob("*.md") if f"\nid: {jar.id}\n" in path.read_text()
    ]
    edited = path.read_text().replace(f"to: {label.id}", "to: https://example.org/jars")
    path.write_text(edited)
    report = carry_out(home, found)
    assert (report.operation, [why for _, why in report.left]) == (None, ["its links have changed"])
    assert path.read_text() == edited


def undone(world: World, report: DreamReport | None = None) -> None:
    world.clock.now += timedelta(seconds=1)
    with world.open() as memory:
        memory.undo(report.operation if report else None)


def test_memory_with_ordered_tags_and_links_is_restored_exactly(
    world: World,
) -> None:
    lid = kept(world, "The lid is green.")
    label = kept(world, "The label is yellow.")
    links = (Link("related_to", label.id), Link("builds_on", lid.id, "it fits"))
    kept(world, "Honey is sold in jars of 500 g.", days=30, tags=("sale", "jar"), links=links)
    kept(
        world,
        "Honey is sold in jars of 500 g!",
        tags=("yard", "fair"),
        links=(Link("builds_on", lid.id),),
    )
    before = vault(world)
    undone(world, dreamt(world))
    assert vault(world) == before


def test_tag_edit_with_custom_order_is_undone_exactly(world: World) -> None:
    links = (Link("related_to", kept(world, "Wax.").id), Link("builds_on", kept(world, "Lids.").id))
    jars = kept(
        world, "Honey is sold in jars of 500 g.", days=30, tags=("sale", "jar", "fair"), links=links
    )
    before = vault(world)
    world.clock.now += timedelta(seconds=1)
    with world.open() as memory:
        memory.edit(jars.id, tags=["yard", "comb"])
    assert vault(world) != before
    undone(world)
    assert vault(world) == before


def test_undo_ignores_changes_in_tag_order_only(
    world: World,
) -> None:
    jars = kept(world, "Honey is sold in jars of 500 g.", tags=("jar", "sale"))
    world.clock.now += timedelta(seconds=1)
    with world.open() as memory:
        memory.edit(jars.id, importance=9)
        edit = memory.log(limit=1)[0].operation
    (path,) = world.vault.glob("projects/hive/fact/*.md")
    path.write_text(
        path.read_text()
        .replace("importance: 9", "importance: 5")
        .replace("[jar, sale]", "[sale, jar]")
    )
    written = path.read_text()
    assert "tags: [sale, jar]\n" in written
    world.clock.now += timedelta(seconds=1)
    with world.open() as memory, pytest.raises(ConflictError, match="already fully undone"):
        memory.undo(edit.id)
    assert path.read_text() == written


def test_undone_merge_is_not_repeated_in_either_direction(
    world: World,
) -> None:
    first = kept(world, "Honey is sold in jars of 500 g.", days=30)
    later = kept(world, "Honey is sold in jars of 500 g!")
    report = dreamt(world)
    assert actions(report.plan) == {first.id: (DreamAction.MERGE, later.id)}
    undone(world, report)
    assert planned(world).steps == ()
    with world.open() as memory:
        memory.edit(first.id, importance=6)  # it would be the one that stays
    assert planned(world).steps == ()
    third = kept(world, "Honey is sold in jars of 500 g")
    assert actions(planned(world)) == {later.id: (DreamAction.MERGE, third.id)}


@pytest.mark.parametrize("back", ["unretire", "undo", "by hand"])
def test_restored_memories_are_ignored_by_later_dreams(world: World, back: str) -> None:
    over = kept(world, "The build machine is borrowed.", days=200, expiry=Expiry.TEMPORARY)
    old = kept(world, "The intern liked the blue theme.", days=500)
    before = vault(world)
    report = dreamt(world)
    assert set(actions(report.plan)) == {over.id, old.id}
    with world.open() as memory:
        if back == "unretire":
            memory.unretire(over.id, old.id)
    if back == "undo":
        undone(world, report)
    if back == "by hand":
        for path in before:
            (world.vault / "retired" / path).rename(world.vault / path)
    kept(world, "The van is borrowed.", days=199, expiry=Expiry.TEMPORARY)
    assert [step.subject for step in planned(world).steps] == ["The van is borrowed."]
    world.rebuild()
    assert [step.subject for step in dreamt(world).plan.steps] == ["The van is borrowed."]
    assert dreamt(world).operation is None
    with world.open() as memory:
        assert {one.id for one in memory.list()} == {over.id, old.id}
        assert memory.retire(over.id)


def test_ending_a_memory_does_not_restore_its_predecessors(
    world: World,
) -> None:
    old = kept(world, "The build machine is borrowed from Anna.", days=400)
    newer = kept(
        world,
        "The build machine is borrowed from Bert.",
        days=200,
        expiry=Expiry.TEMPORARY,
        links=(Link("supersedes", old.id),),
    )
    with world.context().change("store") as change, change.transaction():
        change.put([replace(old, superseded_by=newer.id)])
    before = vault(world)
    report = dreamt(world)
    with world.open() as memory:
        assert memory.get(newer.id).retired
        assert memory.get(old.id).retired
        assert memory.list() == []
        memory.undo(report.operation)
    assert {path: text for path, text in vault(world).items() if "dreams/" not in path} == before


def test_dream_carries_out_only_selected_plan_steps(world: World) -> None:
    for content in ("The jars are in the cellar", "The lids are in the attic"):
        kept(world, content, days=9)
        kept(world, f"{content}.", days=2)
    found = planned(world)
    assert len(found.keys) == len(found.steps) == 2
    report = dreamt(world, steps=(found.keys[1],))
    assert report.plan.steps == (found.steps[1],)
    assert report.plan.keys == (found.keys[1],)
