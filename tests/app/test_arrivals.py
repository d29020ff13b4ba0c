"""Memories that nobody stored just now, but wrote, synced or imported: models judge them like any other."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nacre.care.database import rebuild
from nacre.data.export import ImportOptions
from nacre.data.imports import carry_out, plan_import
from nacre.data.sync import SyncRequest, sync
from nacre.home.home import Home
from nacre.memories.edit import catch_up
from nacre.memories.store import get
from nacre.review.contradictions import judge_waiting
from nacre.values.models import Prompt
from nacre.values.session import Task
from tests.app.conftest import World
from tests.app.test_contradictions import NEW, OLD, Judge, claim, home, put, state

NOTE = f"# Pictures\n\n{OLD}\n"
WRITTEN = "projects/acme/fact/pictures.md"

Arrive = Callable[[World, Path], None]


def by_hand(world: World, _: Path) -> None:
    world.write(WRITTEN, NOTE)


def by_import(world: World, tmp_path: Path) -> None:
    other = World(tmp_path / "other")
    other.user_home.mkdir()
    with home(other, NACRE_MODELS_BACKGROUND="false") as (context, _):
        put(context, OLD)
    with home(world) as (context, _):
        plan = plan_import(context, ImportOptions(path=other.vault, trust=True, vectors=False))
        assert carry_out(context, plan).added


def by_sync(world: World, tmp_path: Path) -> None:
    remote = tmp_path / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", str(remote)], check=True)
    machines = [world, World(tmp_path / "other")]
    machines[1].user_home.mkdir()
    for machine in machines:
        with home(machine, NACRE_MODELS_BACKGROUND="false") as (context, _):
            put(context, "The kettle is blue.")
            if machine is machines[1]:
                put(context, OLD)
    for machine in (*machines, world):
        with home(machine, NACRE_MODELS_BACKGROUND="true" if machine is world else "false") as (
            context,
            _,
        ):
            sync(context, SyncRequest(remote=str(remote), timeout_seconds=20.0))


ARRIVALS: dict[str, Arrive] = {"hand": by_hand, "import": by_import, "sync": by_sync}


@pytest.mark.parametrize("name", ARRIVALS)
def test_memory_from_any_source_is_compared_with_existing_memories(
    world: World, tmp_path: Path, name: str
) -> None:
    with home(world) as (context, _):
        newer = put(context, NEW)
        judge_waiting(context)
    world.clock.pass_days(-1)
    ARRIVALS[name](world, tmp_path)
    world.clock.pass_days(2)
    with home(world) as (context, model):
        catch_up(context)
        judge_waiting(context)
        older = context.memories.same_content(OLD, "acme") or ""
        assert get(context, older).claim
        asked = [prompt for prompt in model.prompts if prompt.task is Task.CONTRADICTION]
        assert len(asked) == 1
        assert OLD in asked[0].text
        assert NEW in asked[0].text
        assert "superseded" in (state(context, older, newer), state(context, newer, older))
        assert judge_waiting(context).waiting == 0


def test_without_background_models_new_memories_do_not_await_judgement(
    world: World, tmp_path: Path
) -> None:
    with home(world, NACRE_MODELS_BACKGROUND="false") as (context, model):
        put(context, NEW)
        by_hand(world, tmp_path)
        catch_up(context)
        assert context.claims.waiting().count == 0
        assert model.prompts == []


def test_manually_edited_memory_gets_a_new_claim(world: World) -> None:
    def told(prompt: Prompt) -> Any:
        return claim(said="a shelf" if "shelf" in prompt.text else "the tower")

    with home(world, Judge(claims=told)) as (context, _):
        memory = put(context, OLD)
        judge_waiting(context)
        rewrite(world, memory, "the tower in the cellar.", "a shelf.")
        judge_waiting(context)
        found = get(context, memory)
    assert found.content == "Pictures of the gallery lie on a shelf."
    assert found.claim
    assert found.claim.object == "a shelf"
    assert world.memory_file(memory).read_text().count("claim:") == 1


def test_claim_is_removed_after_an_edit_to_text_without_claims(world: World) -> None:
    nothing = {"entity": "", "attribute": "", "predicate": "", "object": "", "confidence": 0.0}
    judge = Judge(claims=lambda prompt: nothing if "shelf" in prompt.text else claim())
    with home(world, judge) as (context, _):
        memory = put(context, OLD)
        judge_waiting(context)
        rewrite(world, memory, "the tower in the cellar.", "a shelf.")
        judge_waiting(context)
        assert get(context, memory).claim is None
    assert "claim:" not in world.memory_file(memory).read_text()


def test_edit_of_metadata_alone_triggers_no_judgement(world: World) -> None:
    with home(world) as (context, _):
        memory = put(context, OLD)
        judge_waiting(context)
        rewrite(world, memory, "importance: 7", "importance: 8")
        catch_up(context)
        assert get(context, memory).importance == 8
        assert context.claims.waiting().count == 0


def test_rebuild_does_not_repeat_judgements(world: World, tmp_path: Path) -> None:
    with home(world) as (context, _):
        put(context, OLD)
        judge_waiting(context)
    with home(world) as (context, model):
        settings = context.settings
        context.database.close()

        def opened(settings: Any) -> Home:
            return replace(world.context(settings), load_model=lambda *_: model)

        rebuild(settings, opened, vectors=False)
    with home(world) as (context, model):
        catch_up(context)
        assert context.claims.waiting().count == 0
    (world.home / "nacre.db").unlink()
    with home(world) as (context, model):
        catch_up(context)
        assert len(context.memories.all_ids()) == 1
        assert context.claims.waiting().count == 0


def test_large_import_queues_only_existing_memories_for_judgement(
    world: World, tmp_path: Path
) -> None:
    other = World(tmp_path / "other")
    other.user_home.mkdir()
    remote = tmp_path / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", str(remote)], check=True)
    with home(other, NACRE_MODELS_BACKGROUND="false") as (context, _):
        for at in range(101):
            put(context, f"Remark {at} is that box {at} holds {at} apples.", force=True)
        sync(context, SyncRequest(remote=str(remote), timeout_seconds=20.0))
    with home(world) as (context, _):
        here = put(context, OLD)
        judge_waiting(context)
        sync(context, SyncRequest(remote=str(remote), timeout_seconds=20.0))
        assert len(context.memories.all_ids()) == 102
        assert [one.memory for one in context.claims.due(2**60, 1000)] == [here]


def rewrite(world: World, memory: str, before: str, after: str) -> None:
    file = world.memory_file(memory)
    text = file.read_text(encoding="utf-8")
    assert before in text
    file.write_text(text.replace(before, after), encoding="utf-8")
