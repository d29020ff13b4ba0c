"""Todos that later events, facts and decisions say are done, by rules alone: 40 cases of our own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.app.conftest import World, world

__all__ = ["world"]

CASES = json.loads((Path(__file__).parent / "todos.json").read_text(encoding="utf-8"))


def test_most_finished_todos_are_detected_with_few_false_positives(world: World) -> None:
    closed = []
    with world.open() as memory:
        for number, case in enumerate(CASES):
            todo = memory.store(case["todo"], kind="todo", project=f"p{number}").memory_id
            world.clock.pass_days(2)
            memory.store(case["later"], kind=case["kind"], project=f"p{number}")
            closed.append(memory.get(todo).superseded_by is not None)
    rightly = sum(is_closed and case["done"] for is_closed, case in zip(closed, CASES, strict=True))
    wrongly = sum(
        is_closed and not case["done"] for is_closed, case in zip(closed, CASES, strict=True)
    )
    assert rightly >= 15
    assert wrongly <= 1


@pytest.mark.parametrize(
    ("todo", "later", "is_done"),
    [
        ("Fix the flaky login test", "The flaky login test is fixed", True),
        ("Fix the leak in the export worker", "The leak in the export worker is fixed now", True),
        ("Document the flaky login test", "The flaky login test is fixed", False),
        ("Fix the flaky login test", "The flaky login test is still not fixed", False),
    ],
)
def test_todo_is_done_only_when_its_own_completion_is_stated(
    world: World, todo: str, later: str, *, is_done: bool
) -> None:
    with world.open() as memory:
        asked = memory.store(todo, kind="todo", project="harbour").memory_id
        world.clock.pass_days(2)
        memory.store(later, kind="event", project="harbour")
        assert (memory.get(asked).superseded_by is not None) is is_done
