"""Todos that later events, facts and decisions say are done, by rules alone: 40 cases of our own."""

from __future__ import annotations

import json
from pathlib import Path

from tests.app.conftest import World, world

__all__ = ["world"]

CASES = json.loads((Path(__file__).parent / "todos.json").read_text(encoding="utf-8"))


def test_most_todos_that_are_said_to_be_done_are_and_hardly_any_other(world: World) -> None:
    closed = []
    with world.open() as memory:
        for number, case in enumerate(CASES):
            todo = memory.store(case["todo"], kind="todo", project=f"p{number}").memory_id
            world.clock.pass_days(2)
            memory.store(case["later"], kind=case["kind"], project=f"p{number}")
            closed.append(memory.get(todo).superseded_by is not None)
    rightly = sum(is_closed and case["done"] for is_closed, case in zip(closed, CASES, strict=True))
    wrongly = sum(is_closed and not case["done"] for is_closed, case in zip(closed, CASES, strict=True))
    assert rightly >= 15
    assert wrongly <= 1
