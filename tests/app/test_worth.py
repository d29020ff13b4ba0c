"""Only the most important memories of a long session are kept; the others wait for review."""

from __future__ import annotations

import math
from typing import Any

from nacre.values.memory import Why
from tests.app.conftest import World
from tests.app.test_extraction_by_model import (
    SMALL,
    home,
    librarian,
    long_session,
    no_waiting,
    proposed_memory,
    talk,
)
from tests.app.test_extraction_by_model import (
    answer_with as found,
)
from tests.fakes.model import ScriptedModel

__all__ = ["no_waiting"]

NAMES = "ant bee cod dab eel fox gnu hen ibex jay kite lynx mole newt owl pike quail rook seal toad".split()
STATEMENTS = [
    f"The boat named {name} has its berth number {number} at the pier."
    for number, name in enumerate(NAMES, 1)
]


MESSAGE = " ".join(STATEMENTS)


def answer_with(count: int) -> dict[str, Any]:
    """Return a writer's answer with the first ``count`` statements."""
    return found(
        *(
            proposed_memory(text, quote=text, subject=name, kind="fact")
            for text, name in zip(STATEMENTS[:count], NAMES, strict=False)
        )
    )


def test_surplus_memories_of_a_long_session_wait_for_review(world: World) -> None:
    rules = long_session(world)
    model = ScriptedModel(librarian, capabilities=SMALL)
    with home(world, model) as memory:
        memory.ingest()
        remembered = sorted(item.content for item in memory.list(limit=100))
        waiting = [
            item
            for item in memory.call("review", only="candidate", limit=0).items
            if item.why == Why.MINOR
        ]
    limit = math.ceil(1.3 * math.sqrt(len(rules))) + 1
    assert remembered == sorted(rules[-limit:])
    assert sorted([*remembered, *(item.memory.content for item in waiting)]) == sorted(rules)
    assert not any(
        item.memory.content in prompt.text for prompt in model.compared for item in waiting
    )


def test_session_read_in_one_part_keeps_all_memories(world: World) -> None:
    talk(world, ("user", MESSAGE), ("assistant", "I wrote it into the plan."))
    with home(world, ScriptedModel([answer_with(5)])) as memory:
        memory.ingest()
        assert len(memory.list()) == 5


def test_surplus_memories_of_one_part_wait_for_review(world: World) -> None:
    talk(world, ("user", MESSAGE), ("assistant", "I wrote it into the plan."))
    with home(world, ScriptedModel([answer_with(11)])) as memory:
        memory.ingest()
        remembered = [item.content for item in memory.list(limit=100)]
        waiting = [
            item
            for item in memory.call("review", only="candidate", limit=0).items
            if item.why == Why.MINOR
        ]
    assert len(remembered) == 8
    assert sorted([*remembered, *(item.memory.content for item in waiting)]) == sorted(
        STATEMENTS[:11]
    )
