"""The writer says what a memory that it wrote is to those that are known, where no other model is named for that."""

from __future__ import annotations

from typing import Any

import pytest

from nacre.values.model_calls import Prompt
from tests.app.conftest import World, says
from tests.fakes.model import ScriptedModel

OLD = "The nightly export of invoices runs on the machine in the cellar, and its log is kept for a month."
SAID = "Let the nightly export of invoices run on the machine in the attic from now on; the log stays as it is."
NEW = "The nightly export of invoices runs on the machine in the attic."
LEFT = "The log of the nightly export of invoices is kept for a month."


def answered(prompt: Prompt) -> dict[str, Any]:
    if prompt.name == "decide":
        return {"action": "AMEND", "target": 1, "merged": LEFT, "reason": "another machine"}
    written = {
        "kind": "decision", "subject": "Export of invoices", "content": NEW, "importance": 6, "expiry": "permanent",
        "tags": [], "canonical_key": None, "evidence": [1], "quote": SAID[:60],
    }  # fmt: skip
    return {"memories": [written]}


def remembered(world: World, model: ScriptedModel) -> set[str]:
    """All memories once a session was read, beside one that was there."""
    world.model = model
    with world.open() as memory:
        memory.store(OLD, project="acme-billing", kind="decision")
    world.environ |= {
        "NACRE_MODELS_EXTRACTION": "scripted:1", "NACRE_MODELS_BACKGROUND": "true", "NACRE_EMBEDDING_MODEL": "minilm",
    }  # fmt: skip
    world.transcript("one", says("user", SAID, uuid="u1", at="2026-11-20T12:10:00.000Z"))
    world.clock.now = world.clock.now.replace(hour=18)
    with world.open() as memory:
        memory.ingest()
        return {one.content for one in memory.list(limit=10)}


def questions(model: ScriptedModel) -> int:
    return sum(prompt.name == "decide" for prompt in model.prompts)


def test_the_writer_says_what_its_memory_leaves_of_one_that_is_known(world: World) -> None:
    model = ScriptedModel(answered)
    assert remembered(world, model) == {NEW, LEFT}
    assert questions(model) == 1


@pytest.mark.parametrize("name", ["MODELS_DEDUP", "WRITER_EXCLUDE_PROJECTS", "WRITER_EXCLUDE_TOOLS", "WRITER_PAUSED"])
def test_it_is_not_asked_where_the_owner_says_otherwise(world: World, name: str) -> None:
    model = ScriptedModel(answered)
    said = {
        "MODELS_DEDUP": "none", "WRITER_EXCLUDE_PROJECTS": '["acme-*"]', "WRITER_EXCLUDE_TOOLS": '["claude-code"]',
        "WRITER_PAUSED": "true",
    }  # fmt: skip
    world.environ[f"NACRE_{name}"] = said[name]
    assert OLD in remembered(world, model)
    assert questions(model) == 0


def test_nobody_who_stores_a_memory_waits_for_the_writer_unless_told_to_ask(world: World) -> None:
    model = ScriptedModel(answered)
    remembered(world, model)
    for online, asked in ((None, 1), (True, 2)):
        with world.open() as memory:
            memory.store(f"{NEW} {online}", project="acme-billing", online_dedup=online, dedup_threshold=0.1)
        assert questions(model) == asked
