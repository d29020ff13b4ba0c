"""An agent's report in a live session is learned late and retired if the owner objects."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from nacre.values.memory import Memory
from tests.app.conftest import World, says

TROUBLE = "the importer hangs after a few thousand rows, can you debug it?"
REPORT = (
    "Done. The root cause is that `drain()` waits for the reader, while the reader waits for a free slot in the "
    "queue. Fixed it by giving the reader a queue of its own, so that neither waits for the other."
)
RULE = "Never log card numbers, not even masked ones."
START = datetime(2026, 11, 18, 9, tzinfo=UTC)


def time_at(minutes: int) -> str:
    return (START + timedelta(minutes=minutes)).isoformat().replace("+00:00", "Z")


def call(minutes: int, name: str, arguments: dict[str, str], output: str) -> list[dict[str, Any]]:
    tool = f"tool{minutes}"
    request = says("assistant", "", uuid=f"a{minutes}", at=time_at(minutes))
    request["message"]["content"] = [
        {"type": "tool_use", "id": tool, "name": name, "input": arguments}
    ]
    answer = says("user", "", uuid=f"r{minutes}", at=time_at(minutes))
    answer["message"]["content"] = [{"type": "tool_result", "tool_use_id": tool, "content": output}]
    return [request, answer]


def session_records() -> list[dict[str, Any]]:
    """Return a problem of the owner, ten minutes of the agent's work, and its report."""
    return [
        says("user", TROUBLE, uuid="u1", at=time_at(0)),
        *call(1, "Read", {"file_path": "importer.py"}, "def load(): ..."),
        *call(2, "Read", {"file_path": "queue.py"}, "def drain(): ..."),
        *call(3, "Edit", {"file_path": "queue.py", "old_string": "a", "new_string": "b"}, "edited"),
        *call(4, "Bash", {"command": "pytest tests/importer"}, "12 passed"),
        says("assistant", REPORT, uuid="a10", at=time_at(10)),
    ]


def ingest_kinds(world: World) -> list[str]:
    with world.open() as memory:
        memory.ingest()
        return [item.kind.value for item in memory.list()]


def retired_memories(world: World) -> list[Memory]:
    texts = [path.read_text(encoding="utf-8") for path in (world.vault / "retired").rglob("*.md")]
    with world.open() as memory:
        return [memory.get(text.partition("id: ")[2].split()[0]) for text in texts]


@pytest.fixture
def working(world: World) -> World:
    world.transcript("s1", *session_records())
    world.clock.now = START + timedelta(minutes=12)
    return world


def test_agents_report_in_a_live_session_is_not_learned_yet(working: World) -> None:
    assert ingest_kinds(working) == []


def test_pending_report_is_dropped_if_the_owner_objects(working: World) -> None:
    ingest_kinds(working)
    working.transcript("s1", says("user", "no, it still hangs", uuid="u2", at=time_at(13)))
    working.clock.pass_days(1)

    assert ingest_kinds(working) == []


def test_owners_statement_in_a_live_session_is_learned_immediately(world: World) -> None:
    world.transcript(
        "s1",
        says("user", RULE, uuid="u1", at=time_at(0)),
        says("assistant", "Ok.", uuid="a1", at=time_at(1)),
    )
    world.clock.now = START + timedelta(minutes=2)

    assert ingest_kinds(world) == ["preference"]


def test_retired_report_is_not_learned_again(working: World) -> None:
    working.clock.pass_days(1)
    ingest_kinds(working)
    working.transcript(
        "s1", says("user", "it still hangs, same as before", uuid="u2", at=time_at(3000))
    )
    working.clock.pass_days(3)
    ingest_kinds(working)
    working.transcript("s1", says("user", "thanks", uuid="u3", at=time_at(3001)))

    assert ingest_kinds(working) == []
