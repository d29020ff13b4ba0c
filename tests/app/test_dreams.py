"""A dream ends expired memories, merges duplicates and can be undone."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from nacre.errors import ConflictError
from nacre.review.consolidate import DreamAction, DreamPlan, DreamReport
from nacre.review.dream import DreamPlanRequest, DreamRequest, carry_out, dream, dream_if_due, plan
from nacre.values.memory import Expiry, Kind, Link, Memory, Scope, Source
from nacre.values.session import Speaker, Trust
from tests.app.conftest import World


def store_memory(
    world: World, content: str, *, days: float = 0, subject: str | None = None, **more: Any
) -> Memory:
    """Store a memory last stated ``days`` days ago."""
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


def make_plan(world: World, **more: Any) -> DreamPlan:
    return plan(world.context(), DreamPlanRequest(**more))


def run_dream(world: World, **more: Any) -> DreamReport:
    world.clock.now += timedelta(seconds=1)
    return dream(world.context(), DreamRequest(**{"first": True, **more}))


def actions(dream_plan: DreamPlan) -> dict[str, tuple[DreamAction, str | None]]:
    return {end: (step.action, step.into) for step in dream_plan.steps for end in step.ends}


def vault(world: World) -> dict[str, bytes]:
    paths = [path for path in world.vault.rglob("*.md") if ".git" not in path.parts]
    return {str(path.relative_to(world.vault)): path.read_bytes() for path in paths}


def test_temporary_memory_ends_after_130_days_without_recall(world: World) -> None:
    expired = store_memory(
        world, "The build machine is borrowed from Anna.", days=131, expiry=Expiry.TEMPORARY
    )
    store_memory(world, "The scale is read every ten minutes.", days=129, expiry=Expiry.TEMPORARY)
    used = store_memory(
        world, "The demo runs on the old server.", days=400, expiry=Expiry.TEMPORARY
    )
    with world.open() as memory:
        assert used.id in {
            hit.memory.id for hit in memory.recall("the demo on the old server").hits
        }
    assert actions(make_plan(world)) == {expired.id: (DreamAction.EXPIRE, None)}


def test_memory_expires_on_its_expiry_date(world: World) -> None:
    today = world.clock().date()
    expired = store_memory(world, "The freeze holds.", expires_on=today)
    store_memory(world, "The sale is on.", expires_on=today + timedelta(days=1))
    assert actions(make_plan(world)) == {expired.id: (DreamAction.EXPIRE, None)}


def test_unused_memory_is_forgotten_unless_important(world: World) -> None:
    old = store_memory(world, "The intern liked the blue theme.", days=500)
    store_memory(world, "The intern liked the red theme.", days=300)
    store_memory(world, "Backups are encrypted with age.", days=900, importance=6)
    store_memory(world, "Mend the gate of the yard.", days=900, kind=Kind.TODO)
    store_memory(world, "We answer in English.", days=900, expiry=Expiry.CORE)
    store_memory(world, "The secret garden has a door.", days=900, evergreen=True)
    assert actions(make_plan(world)) == {old.id: (DreamAction.FORGET, None)}


def test_settings_control_automatic_forgetting(world: World) -> None:
    old = store_memory(world, "The intern liked the blue theme.", days=500)
    assert set(actions(make_plan(world))) == {old.id}
    world.environ["NACRE_FORGETTING_MAX_AGE_DAYS"] = "600"
    assert set(actions(make_plan(world))) == set()
    world.environ["NACRE_FORGETTING_ENABLED"] = "false"
    expired = store_memory(world, "The freeze holds.", expires_on=world.clock().date())
    assert actions(make_plan(world)) == {expired.id: (DreamAction.EXPIRE, None)}, (
        "an expiry date still applies"
    )


def test_protected_subjects_are_neither_expired_nor_forgotten(world: World) -> None:
    world.environ["NACRE_FORGETTING_PROTECT"] = '["client *"]'
    store_memory(world, "The client pays in March.", subject="Client Meier", days=900)
    store_memory(
        world, "The client is on leave.", subject="client Kunz", days=900, expiry=Expiry.TEMPORARY
    )
    assert make_plan(world).steps == ()


def test_merge_of_duplicates_combines_evidence_tags_links_and_importance(world: World) -> None:
    first = store_memory(
        world,
        "Honey is sold in jars of 500 g.",
        subject="Jars",
        days=30,
        importance=7,
        tags=("sale",),
        source=Source("codex:1", ("t1",)),
    )
    other = store_memory(world, "The label is yellow.", subject="Label")
    later = store_memory(
        world,
        "Honey is sold in jars of 500 g!",
        subject="jars",
        tags=("jar",),
        links=(Link("related", other.id),),
    )
    report = run_dream(world)
    assert actions(report.plan) == {first.id: (DreamAction.MERGE, later.id)}
    with world.open() as memory:
        merged, ended = memory.get(later.id), memory.get(first.id)
    assert ended.retired
    assert ended.retired.reason == f"says the same as {later.id}"
    assert (merged.importance, merged.created, set(merged.tags)) == (
        7,
        first.created,
        {"sale", "jar"},
    )
    assert [item.session for item in merged.confirmed] == ["codex:1"]
    assert [link.to for link in merged.links] == [other.id]


@pytest.mark.parametrize(
    ("text", "other_text", "more"),
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
    world: World, text: str, other_text: str, more: dict[str, Any]
) -> None:
    store_memory(world, text, subject="It", days=3)
    store_memory(world, other_text, subject="It", **more)
    assert make_plan(world).steps == ()


def test_statement_without_an_author_never_replaces_the_owners(world: World) -> None:
    own = store_memory(world, "Honey is sold in jars of 500 g.", subject="Jars", days=30)
    agents = store_memory(
        world,
        "Honey is sold in jars of 500 g.",
        subject="Jars",
        speaker=Speaker.AGENT,
        importance=9,
    )
    store_memory(
        world,
        "Honey is sold in jars of 500 g.",
        subject="Jars",
        trust=Trust.UNTRUSTED,
        importance=9,
    )
    report = run_dream(world)
    assert actions(report.plan) == {agents.id: (DreamAction.MERGE, own.id)}
    with world.open() as memory:
        memory_after = memory.get(own.id)
    assert (memory_after.speaker, memory_after.trust, memory_after.importance) == (
        Speaker.OWNER,
        Trust.TRUSTED,
        5,
    )


@pytest.mark.parametrize(
    "other",
    [
        "honey is sold in jars of 500 g",
        "- Honey is sold  in **jars** of 500 g.",
        "Honey is sold in jars\nof 500 g!",
    ],
)
def test_memories_differing_only_in_layout_or_subject_are_merged(world: World, other: str) -> None:
    first = store_memory(world, "Honey is sold in jars of 500 g.", subject="Jars", days=3)
    later = store_memory(world, other, subject="Honey")
    assert actions(make_plan(world)) == {first.id: (DreamAction.MERGE, later.id)}


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
    store_memory(world, "Honey is sold in jars of 500 g.", canonical_key="honey-jar-size")
    store_memory(
        world, "Honey is sold in jars of 500 g.", **{"canonical_key": "honey-jar-size", **more}
    )
    assert make_plan(world).steps == ()


def test_merge_keeps_the_protected_memory(world: World) -> None:
    evergreen = store_memory(world, "Honey is sold in jars of 500 g.", days=30, evergreen=True)
    other = store_memory(world, "Honey is sold in jars of 500 g.")
    assert actions(make_plan(world)) == {other.id: (DreamAction.MERGE, evergreen.id)}


@pytest.mark.parametrize(
    ("text", "other_text"),
    [
        ("Versions stand in __init__.py", "Versions stand in init.py"),
        ("Skip what lies in src/**/made", "Skip what lies in src//made"),
        ("Leave the folder with cd ..", "Leave the folder with cd ."),
        ("Read **options and **more", "Read options and more"),
    ],
)
def test_symbols_in_file_names_and_patterns_prevent_a_merge(
    world: World, text: str, other_text: str
) -> None:
    store_memory(world, text)
    store_memory(world, other_text)
    assert make_plan(world).steps == ()


def test_dream_limits_endings_per_run_and_postpones_the_rest(world: World) -> None:
    for number in range(25):
        store_memory(
            world,
            f"Crate {number} stands in row {number + 100}.",
            days=200 + number,
            expiry=Expiry.TEMPORARY,
        )
    dream_plan = make_plan(world)
    assert (dream_plan.ending, len(dream_plan.put_off), dream_plan.most) == (20, 5, 20)
    assert make_plan(world, most=3).ending == 3
    assert run_dream(world).operation
    assert make_plan(world).ending == 5


def test_first_dream_only_plans(world: World) -> None:
    store_memory(world, "The build machine is borrowed.", days=200, expiry=Expiry.TEMPORARY)
    before = vault(world)
    report = run_dream(world, first=False)
    assert (report.is_first, report.operation, report.plan.ending) == (True, None, 1)
    assert vault(world) == before
    assert run_dream(world, first=False).operation


def test_dream_leaves_out_a_step_that_would_break_a_pinned_answer(world: World) -> None:
    machine = store_memory(
        world, "The build machine is borrowed.", days=200, expiry=Expiry.TEMPORARY
    )
    store_memory(world, "The lawn is cut on Fridays.", days=200, expiry=Expiry.TEMPORARY)
    with world.open() as memory:
        memory.call("pin", question="who owns the build machine?")
    report = run_dream(world)
    assert [(step.ends, why) for step, why in report.left] == [
        ((machine.id,), "it would break a pinned answer: who owns the build machine?")
    ]
    assert report.operation
    assert world.context().memories.find(machine.id).is_active


def test_merge_that_keeps_the_words_of_a_pinned_answer_is_applied(world: World) -> None:
    store_memory(world, "Honey is sold in jars of 500 g.", subject="Jars", days=30)
    store_memory(world, "Honey is sold in jars of 500 g!", subject="Jars")
    with world.open() as memory:
        memory.call("pin", question="in which jars is honey sold?", answer="500 g")
    report = run_dream(world)
    assert (report.operation is not None, report.left) == (True, ())


def test_dream_that_breaks_a_pinned_answer_indirectly_is_undone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_memory(world, "The build machine is borrowed.", days=200, expiry=Expiry.TEMPORARY)
    with world.open() as memory:
        memory.call("pin", question="who owns the build machine?")
    before = vault(world)
    monkeypatch.setattr("nacre.review.dream._pin_objection", lambda *_: None)
    report = run_dream(world)
    assert report.operation is None
    assert [why for _, why in report.left] == [
        "it would break a pinned answer: who owns the build machine?"
    ]
    assert vault(world) == before


def test_dream_is_one_operation_with_diary_and_undone_exactly(world: World) -> None:
    store_memory(world, "Honey is sold in jars of 500 g.", subject="Jars", days=30, tags=("sale",))
    store_memory(world, "Honey is sold in jars of 500 g!", subject="Jars")
    store_memory(world, "The build machine is borrowed.", days=200, expiry=Expiry.TEMPORARY)
    before = vault(world)
    report = run_dream(world)
    assert report.diary
    diary = (world.vault / report.diary).read_text()
    assert "The build machine is borrowed. (" in diary
    assert "- kept: Honey is sold in jars of 500 g!" in diary
    assert len([path for path in vault(world) if path.startswith("retired/")]) == 2
    with world.open() as memory:
        assert [item.operation.action for item in memory.log(limit=1)] == ["dream"]
        world.clock.now += timedelta(seconds=1)
        memory.undo()
    assert vault(world) == before


def test_undo_of_a_dream_keeps_a_later_edit(world: World) -> None:
    first = store_memory(
        world, "Honey is sold in jars of 500 g.", subject="Jars", days=30, tags=("sale",)
    )
    later = store_memory(world, "Honey is sold in jars of 500 g!", subject="Jars")
    report = run_dream(world)
    path = next(path for path in world.vault.glob("projects/hive/fact/*.md"))
    path.write_text(path.read_text().replace("jars of 500 g!", "jars of 500 g, with a lid!"))
    world.clock.now += timedelta(seconds=1)
    with world.open() as memory:
        memory.undo(report.operation)
        assert memory.get(first.id).retired is None
        assert memory.get(later.id).content == "Honey is sold in jars of 500 g, with a lid!"


def test_memory_edited_after_planning_is_skipped_and_reported(world: World) -> None:
    store_memory(world, "Honey is sold in jars of 500 g.", subject="Jars", days=30)
    later = store_memory(world, "Honey is sold in jars of 500 g!", subject="Jars")
    expired = store_memory(
        world, "The build machine is borrowed.", days=200, expiry=Expiry.TEMPORARY
    )
    home = world.context()
    dream_plan = plan(home, DreamPlanRequest())
    path = next(path for path in world.vault.rglob("*.md") if later.id in path.read_text())
    path.write_text(path.read_text().replace("500 g!", "250 g!"))
    report = carry_out(home, dream_plan)
    assert [why for _, why in report.left] == ["the kept memory no longer contains all of it"]
    with world.open() as memory:
        assert memory.get(expired.id).retired
        assert {item.content[-6:] for item in memory.list()} == {"250 g!", "500 g."}


def test_ten_identical_memories_are_merged_into_one_memory(world: World) -> None:
    memories = [
        store_memory(world, "Honey is sold in jars of 500 g.", subject="Jars", days=day)
        for day in range(10)
    ]
    report = run_dream(world)
    assert actions(report.plan) == {
        item.id: (DreamAction.MERGE, memories[0].id) for item in memories[1:]
    }
    assert Path(world.vault / (report.diary or "")).is_file()


def test_automatic_dream_runs_daily_if_enabled_and_plans_first(
    world: World,
) -> None:
    expired = store_memory(
        world, "The build machine is borrowed.", days=200, expiry=Expiry.TEMPORARY
    )
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
    assert actions(second.plan) == {expired.id: (DreamAction.EXPIRE, None)}
    assert second.operation


def delete_files(world: World, memory: Memory) -> None:
    """Delete a memory's file and then its file in ``retired/``, like a person."""
    for _ in range(2):
        (path,) = [
            path for path in world.vault.rglob("*.md") if f"\nid: {memory.id}\n" in path.read_text()
        ]
        path.unlink()
        make_plan(world)


def test_nightly_dream_without_steps_writes_nothing(world: World) -> None:
    store_memory(world, "Honey is sold in jars of 500 g.")
    world.environ["NACRE_DREAM_AT_NIGHT"] = "true"
    before = vault(world), (world.vault / "ledger.jsonl").exists()
    for _ in range(3):
        world.clock.now += timedelta(days=1)
        report = dream_if_due(world.context())
        assert report
        assert (report.plan.steps, report.operation, report.diary) == ((), None, None)
    assert (vault(world), (world.vault / "ledger.jsonl").exists()) == before
    with world.open() as memory:
        assert [item.operation.action for item in memory.log()] == ["store"]


def undo_last(world: World, report: DreamReport | None = None) -> None:
    world.clock.now += timedelta(seconds=1)
    with world.open() as memory:
        memory.undo(report.operation if report else None)


def test_memory_with_ordered_tags_and_links_is_restored_exactly(
    world: World,
) -> None:
    lid = store_memory(world, "The lid is green.")
    label = store_memory(world, "The label is yellow.")
    links = (Link("related_to", label.id), Link("builds_on", lid.id, "it fits"))
    store_memory(
        world, "Honey is sold in jars of 500 g.", days=30, tags=("sale", "jar"), links=links
    )
    store_memory(
        world,
        "Honey is sold in jars of 500 g!",
        tags=("yard", "fair"),
        links=(Link("builds_on", lid.id),),
    )
    before = vault(world)
    undo_last(world, run_dream(world))
    assert vault(world) == before


def test_tag_edit_with_custom_order_is_undone_exactly(world: World) -> None:
    links = (
        Link("related_to", store_memory(world, "Wax.").id),
        Link("builds_on", store_memory(world, "Lids.").id),
    )
    jars = store_memory(
        world, "Honey is sold in jars of 500 g.", days=30, tags=("sale", "jar", "fair"), links=links
    )
    before = vault(world)
    world.clock.now += timedelta(seconds=1)
    with world.open() as memory:
        memory.edit(jars.id, tags=["yard", "comb"])
    assert vault(world) != before
    undo_last(world)
    assert vault(world) == before


def test_undo_ignores_changes_in_tag_order_only(
    world: World,
) -> None:
    jars = store_memory(world, "Honey is sold in jars of 500 g.", tags=("jar", "sale"))
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
    text = path.read_text()
    assert "tags: [sale, jar]\n" in text
    world.clock.now += timedelta(seconds=1)
    with world.open() as memory, pytest.raises(ConflictError, match="already fully undone"):
        memory.undo(edit.id)
    assert path.read_text() == text


def test_undone_merge_is_not_repeated_in_either_direction(
    world: World,
) -> None:
    first = store_memory(world, "Honey is sold in jars of 500 g.", days=30)
    later = store_memory(world, "Honey is sold in jars of 500 g!")
    report = run_dream(world)
    assert actions(report.plan) == {first.id: (DreamAction.MERGE, later.id)}
    undo_last(world, report)
    assert make_plan(world).steps == ()
    with world.open() as memory:
        memory.edit(first.id, importance=6)  # a new merge would keep this memory
    assert make_plan(world).steps == ()
    third = store_memory(world, "Honey is sold in jars of 500 g")
    assert actions(make_plan(world)) == {later.id: (DreamAction.MERGE, third.id)}


@pytest.mark.parametrize("back", ["unretire", "undo", "by hand"])
def test_restored_memories_are_ignored_by_later_dreams(world: World, back: str) -> None:
    expired = store_memory(
        world, "The build machine is borrowed.", days=200, expiry=Expiry.TEMPORARY
    )
    old = store_memory(world, "The intern liked the blue theme.", days=500)
    before = vault(world)
    report = run_dream(world)
    assert set(actions(report.plan)) == {expired.id, old.id}
    with world.open() as memory:
        if back == "unretire":
            memory.unretire(expired.id, old.id)
    if back == "undo":
        undo_last(world, report)
    if back == "by hand":
        for path in before:
            (world.vault / "retired" / path).rename(world.vault / path)
    store_memory(world, "The van is borrowed.", days=199, expiry=Expiry.TEMPORARY)
    assert [step.subject for step in make_plan(world).steps] == ["The van is borrowed."]
    world.rebuild()
    assert [step.subject for step in run_dream(world).plan.steps] == ["The van is borrowed."]
    assert run_dream(world).operation is None
    with world.open() as memory:
        assert {item.id for item in memory.list()} == {expired.id, old.id}
        assert memory.retire(expired.id)


def test_ending_a_memory_does_not_restore_its_predecessors(
    world: World,
) -> None:
    old = store_memory(world, "The build machine is borrowed from Anna.", days=400)
    newer = store_memory(
        world,
        "The build machine is borrowed from Bert.",
        days=200,
        expiry=Expiry.TEMPORARY,
        links=(Link("supersedes", old.id),),
    )
    with world.context().change("store") as change, change.transaction():
        change.put([replace(old, superseded_by=newer.id)])
    before = vault(world)
    report = run_dream(world)
    with world.open() as memory:
        assert memory.get(newer.id).retired
        assert memory.get(old.id).retired
        assert memory.list() == []
        memory.undo(report.operation)
    assert {path: text for path, text in vault(world).items() if "dreams/" not in path} == before


def test_dream_carries_out_only_selected_plan_steps(world: World) -> None:
    for content in ("The jars are in the cellar", "The lids are in the attic"):
        store_memory(world, content, days=9)
        store_memory(world, f"{content}.", days=2)
    dream_plan = make_plan(world)
    assert len(dream_plan.keys) == len(dream_plan.steps) == 2
    report = run_dream(world, steps=(dream_plan.keys[1],))
    assert report.plan.steps == (dream_plan.steps[1],)
    assert report.plan.keys == (dream_plan.keys[1],)
