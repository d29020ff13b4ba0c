"""Of more memories than a session is worth those that weigh most are kept, and the rest waits."""

from __future__ import annotations

from typing import Any

import pytest

from nacre.values.candidate import Why
from tests.app.conftest import World
from tests.app.test_extraction_by_model import found, home, no_waiting, talk, told
from tests.fakes.model import ScriptedModel

__all__ = ["no_waiting"]

SAID = "The hull is oak, the deck pine, the mast larch, the keel elm and the rudder ash."
NAMES = "ant bee cod dab eel fox gnu hen ibex jay kite lynx mole newt owl pike quail rook seal toad".split()
ALL = [f"The boat named {name} has its berth number {at} at the pier." for at, name in enumerate(NAMES, 1)]


def written(*importances: int) -> dict[str, Any]:
    """So many memories of the first message, of some importance."""
    return found(*(
        told(text, importance=weight, quote=SAID, subject=name, kind="fact")
        for text, name, weight in zip(ALL, NAMES, importances, strict=False)
    ))  # fmt: skip


def test_of_one_message_three_are_memories_and_the_rest_is_neither_lost_nor_compared(world: World) -> None:
    talk(world, ("user", SAID), ("assistant", "I wrote it into the plan."))
    model = ScriptedModel([written(6, 7, 5, 6, 6)])
    with home(world, model) as memory:
        memory.ingest()
        remembered = sorted(one.content for one in memory.list())
        waiting = [(one.memory.content, one.why) for one in memory.call("candidates").candidates]
    assert remembered == sorted([ALL[1], ALL[3], ALL[4]])
    assert sorted(waiting) == sorted([(ALL[0], Why.MINOR), (ALL[2], Why.MINOR)])
    assert ALL[0] not in model.compared[0].text


@pytest.mark.parametrize(("messages", "most"), [(1, 3), (4, 4), (16, 7), (64, 12)])
def test_a_session_is_worth_more_the_more_the_owner_said_though_not_in_proportion(
    world: World, messages: int, most: int
) -> None:
    talk(world, *(("user", f"{SAID} Berth {number} as well.") for number in range(messages)))
    with home(world, ScriptedModel([written(*[6] * 20)])) as memory:
        memory.ingest()
        assert sorted(one.content for one in memory.list(limit=50)) == sorted(ALL[20 - most :])
