"""Retirement matches subjects and patterns, can apply to later memories and can be undone."""

from __future__ import annotations

import json

import pytest

from nacre.api import MemoryHome
from nacre.care.database import rebuild
from nacre.errors import ConflictError, InvalidQueryError, NotFoundError
from nacre.memories.retire import list_retired, list_standing
from nacre.values.memory import Actor, Face, acting
from nacre.values.reports import StoreOutcome
from tests.app.conftest import World, says


def agent_stores(memory: MemoryHome, content: str, subject: str) -> StoreOutcome:
    with acting(Actor(Face.MCP, "claude-code")):
        return memory.store(content, subject=subject)


def contents(memory: MemoryHome) -> set[str]:
    return {item.content for item in memory.list()}


def test_retire_matches_subjects_regardless_of_case_and_spaces(world: World) -> None:
    with world.open() as memory:
        memory.store("The kettle is red and whistles", subject="Kitchen  Kettle")
        memory.store("The other kettle is silent", subject="kitchen kettle", force=True)
        assert len(memory.retire(" KITCHEN kettle ")) == 2
        assert not memory.list()


def test_retire_accepts_patterns_text_and_ids_together(world: World) -> None:
    with world.open() as memory:
        memory.store("Spoke about the roof", subject="Handoff Monday")
        memory.store("Spoke about the cellar", subject="Handoff Tuesday")
        memory.store("The roof needs slate", subject="The big roof repair")
        lamp = memory.store("The lamp is broken", subject="Lamp").memory_id
        memory.store("The chair has three legs", subject="Chair")
        retired = memory.retire(
            "handoff *", lamp[-6:], contains=["ROOF rep"], reason="spring cleaning"
        )
        assert len(retired) == 4
        assert contents(memory) == {"The chair has three legs"}
        for wrong in ("*", "  "):
            with pytest.raises(InvalidQueryError):
                memory.retire(wrong)
        with pytest.raises(NotFoundError):
            memory.retire("handoff *")
        with pytest.raises(ConflictError):
            memory.retire(lamp)


def test_standing_retirement_applies_to_later_sessions(world: World) -> None:
    lint = says("user", "Always run the linter before you commit.", uuid="a1", session="5e55-a")
    world.transcript("a", lint, says("assistant", "Understood.", uuid="a2", session="5e55-a"))
    with world.open() as memory:
        memory.ingest()
        (rule,) = memory.list()
        memory.retire(rule.id, reason="the hook does it", persist=True)
        world.transcript(
            "b",
            says(
                "user",
                "Always run the linter before you commit anything at all.",
                uuid="b1",
                session="5e55-b",
            ),
            says("assistant", "Understood.", uuid="b2", session="5e55-b"),
        )
        memory.ingest()
        first = {item.id for item in list_retired(memory._home)}
        world.environ["AI_AGENT"] = "1"
    with world.open() as memory:
        override = memory.store("Run the linter at night, too", subject=rule.subject)
        assert override.action == "retired"
        assert (
            memory.store("Run the linter at night, too", subject=rule.subject).memory_id
            == override.memory_id
        )
        retired_memory = memory.get(override.memory_id, update=False)
        assert retired_memory.retired
        assert (retired_memory.retired.reason, retired_memory.suppressed_contexts) == (
            "the hook does it",
            ("session-start",),
        )
        assert first
        assert not [item for item in memory.list() if item.subject == rule.subject]


def test_owners_store_overrides_a_standing_retirement_with_a_note(world: World) -> None:
    with world.open() as memory:
        memory.retire("*linter*", persist=True)
        outcome = memory.store("Run the linter on Sundays, too", subject="When the linter runs")
        assert outcome.action == "stored"
        assert "'*linter*'" in str(outcome.reason)
    with world.open() as memory:
        assert [item.id for item in memory.list()] == [outcome.memory_id]


def test_standing_retirement_survives_loss_of_database_and_transcripts(world: World) -> None:
    world.transcript(
        "a", says("user", "Always run the linter before you commit.", uuid="a1", session="5e55-a")
    )
    with world.open() as memory:
        memory.ingest()
        (rule,) = memory.list()
        memory.retire("*linter*", persist=True)
    rebuild(world.settings(), open_home=world.context)
    with world.open() as memory:
        assert not memory.list()
        memory.ingest()
        assert not memory.list()
        assert list_standing(memory._home)
    for path in world.home.glob("nacre.db*"):
        path.unlink()
    with world.open() as memory:
        memory.ingest()
        assert not memory.list()
        assert list_standing(memory._home)
        assert memory.get(rule.id, update=False).retired


def test_standing_retirement_can_precede_matching_memories(world: World) -> None:
    with world.open() as memory:
        assert memory.retire("session handoff *", persist=True) == []
        assert (
            agent_stores(memory, "We spoke of tiles", "Session handoff 2026-11-20").action
            == "retired"
        )
        (rule,) = list_standing(memory._home)
        back = memory.unretire(rule.id[-8:])
        assert [item.id for item in back.rules] == [rule.id]
        assert list_standing(memory._home) == []
        assert (
            agent_stores(memory, "We spoke of beams", "Session handoff 2026-11-21").action
            == "stored"
        )


def test_memory_restored_from_a_standing_retirement_is_active(world: World) -> None:
    with world.open() as memory:
        memory.retire("draft *", persist=True)
        draft = agent_stores(memory, "The draft names three towns", "Draft of the tour").memory_id
        memory.unretire(draft)
        restored = memory.get(draft, update=False)
        assert (restored.retired, restored.suppressed_contexts) == (None, ())
        assert [
            hit.memory.id for hit in memory.recall("which towns does the draft name?").hits
        ] == [draft]
    rebuild(world.settings(), open_home=world.context)
    with world.open() as memory:
        assert [item.id for item in memory.list()] == [draft]


def test_reasons_and_patterns_are_redacted(world: World) -> None:
    secret = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
    with world.open() as memory:
        memory.store("The robot account has a key", subject="Robot")
        memory.retire("robot", reason=f"it was {secret}", persist=True)
        memory.retire(f"* {secret} *", persist=True)
    for path in world.home.rglob("*"):
        assert not path.is_file() or secret.encode() not in path.read_bytes(), path


def test_repeated_standing_retirement_is_stored_once(world: World) -> None:
    with world.open() as memory:
        for _ in range(2):
            memory.retire("draft *", persist=True)
        assert len(list_standing(memory._home)) == 1
    lines = (world.vault / "ledger.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["action"] for line in lines] == ["retire_always"]
