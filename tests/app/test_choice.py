"""Of more memories than a session is worth those that matter are kept, and the rest waits."""

from __future__ import annotations

from typing import Any

import pytest

from nacre.errors import ModelUnavailable
from nacre.values.candidate import Why
from tests.app.conftest import World
from tests.app.test_extraction_by_model import found, home, no_waiting, talk, told
from tests.fakes.model import ScriptedModel

__all__ = ["no_waiting"]

SAID = "The hull is oak, the deck pine, the mast larch, the keel elm and the rudder ash."
PARTS = {"hull": "oak", "deck": "pine", "mast": "larch", "keel": "elm", "rudder": "ash"}
ALL = [f"The {part} of the boat is made of {wood} from the northern forest." for part, wood in PARTS.items()]
MOST = 3
"""Of one message."""


def written(*importances: int) -> dict[str, Any]:
    """All parts as memories, of some importance."""
    return found(*(
        told(text, importance=weight, quote=SAID, subject=part, kind="fact")
        for text, part, weight in zip(ALL, PARTS, importances or [6] * len(ALL), strict=True)
    ))  # fmt: skip


def kept(world: World, *answers: Any) -> tuple[list[str], list[tuple[str, Why]], ScriptedModel]:
    """The contents of what is remembered and of what waits, once a model has answered."""
    talk(world, ("user", SAID), ("assistant", "I wrote it into the plan."))
    model = ScriptedModel(answers)
    with home(world, model) as memory:
        memory.ingest()
        waiting = [(one.memory.content, one.why) for one in memory.call("candidates").candidates]
        return sorted(one.content for one in memory.list()), sorted(waiting), model


def test_what_the_model_chooses_is_remembered_and_the_rest_waits(world: World) -> None:
    remembered, waiting, model = kept(world, written(), {"keep": [5, 2]})
    assert remembered == sorted([ALL[4], ALL[1]])
    assert waiting == sorted((text, Why.MINOR) for text in (ALL[0], ALL[2], ALL[3]))
    assert f"Keep at most {MOST}." in model.prompts[1].text
    assert ALL[0] not in model.compared[0].text


@pytest.mark.parametrize("keep", [[1, 2, 3, 4, 5], [9, 0, -1, 1, 2, 3, 5]])
def test_it_can_choose_no_more_than_the_session_is_worth(world: World, keep: list[int]) -> None:
    remembered, _, _ = kept(world, written(), {"keep": keep})
    assert remembered == sorted(ALL[:3])


@pytest.mark.parametrize("answer", [ModelUnavailable("away"), {"keep": []}, {"keep": [77]}])
def test_where_it_chooses_nothing_what_weighs_most_is_kept_and_of_equals_the_last(world: World, answer: Any) -> None:
    remembered, _, _ = kept(world, written(6, 7, 5, 6, 6), *[answer] * 8)
    assert remembered == sorted([ALL[1], ALL[3], ALL[4]])


def test_of_as_many_as_it_is_worth_the_model_is_not_asked(world: World) -> None:
    some = found(*written()["memories"][:MOST])
    remembered, waiting, model = kept(world, some)
    assert (len(remembered), waiting, len(model.prompts)) == (MOST, [], 1)


def test_a_session_is_worth_more_the_more_the_owner_said_though_not_in_proportion(world: World) -> None:
    talk(world, *(("user", f"{SAID} Berth {number} as well.") for number in range(64)))
    model = ScriptedModel(lambda prompt: {"keep": []} if prompt.name == "choice" else many(prompt.text))
    with home(world, model) as memory:
        memory.ingest()
        assert len(memory.list()) == 12


def many(_: str) -> dict[str, Any]:
    """Twenty memories of the first message."""
    names = "ant bee cod dab eel fox gnu hen ibex jay kite lynx mole newt owl pike quail rook seal toad".split()
    return found(*(
        told(f"The boat named {name} has its berth number {at} at the pier.", evidence=[at], quote=SAID, subject=name)
        for at, name in enumerate(names, 1)
    ))  # fmt: skip
