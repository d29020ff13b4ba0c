"""Of more memories than a long session is worth those that weigh most are kept, and the rest waits."""

from __future__ import annotations

import math
from typing import Any

from nacre.values.memory import Why
from tests.app.conftest import World
from tests.app.test_extraction_by_model import (
    SMALL,
    found,
    home,
    librarian,
    long_session,
    no_waiting,
    talk,
    told,
)
from tests.fakes.model import ScriptedModel

__all__ = ["no_waiting"]

NAMES = "ant bee cod dab eel fox gnu hen ibex jay kite lynx mole newt owl pike quail rook seal toad".split()
ALL = [
    f"The boat named {name} has its berth number {at} at the pier."
    for at, name in enumerate(NAMES, 1)
]


SAID = " ".join(ALL)


def written(count: int) -> dict[str, Any]:
    """Return so many memories of the first message."""
    return found(
        *(
            told(text, quote=text, subject=name, kind="fact")
            for text, name in zip(ALL[:count], NAMES, strict=False)
        )
    )


def test_surplus_memories_of_a_long_session_wait_for_review(world: World) -> None:
    rules = long_session(world)
    model = ScriptedModel(librarian, capabilities=SMALL)
    with home(world, model) as memory:
        memory.ingest()
        remembered = sorted(one.content for one in memory.list(limit=100))
        waiting = [
            one
            for one in memory.call("review", only="candidate", limit=0).items
            if one.why == Why.MINOR
        ]
    most = math.ceil(1.3 * math.sqrt(len(rules))) + 1
    assert remembered == sorted(rules[-most:])
    assert sorted([*remembered, *(one.memory.content for one in waiting)]) == sorted(rules)
    assert not any(
        one.memory.content in prompt.text for prompt in model.compared for one in waiting
    )


def test_session_read_in_one_part_keeps_all_memories(world: World) -> None:
    talk(world, ("user", SAID), ("assistant", "I wrote it into the plan."))
    with home(world, ScriptedModel([written(5)])) as memory:
        memory.ingest()
        assert len(memory.list()) == 5


def test_surplus_memories_of_one_part_wait_for_review(world: World) -> None:
    talk(world, ("user", SAID), ("assistant", "I wrote it into the plan."))
    with home(world, ScriptedModel([written(11)])) as memory:
        memory.ingest()
        remembered = [one.content for one in memory.list(limit=100)]
        waiting = [
            one
            for one in memory.call("review", only="candidate", limit=0).items
            if one.why == Why.MINOR
        ]
    assert len(remembered) == 8
    assert sorted([*remembered, *(one.memory.content for one in waiting)]) == sorted(ALL[:11])
