"""Rules detect conflicts for a person to resolve, and a later event completes a todo."""

from __future__ import annotations

import pytest

from nacre.data.undo import undo
from nacre.home.views import Choice
from nacre.review import queue
from nacre.vault import files
from nacre.vault.files import LEDGER
from tests.app.conftest import World

CONFLICT = ("Uploads are cleaned on Mondays", "Uploads are cleaned on Fridays")
"""Statements whose words suggest a conflict without proving it."""


def resolutions(world: World) -> list[files.LedgerEntry]:
    """Return the ledger entries of resolved pairs, the latest last."""
    entries = files.read(world.context().vault.read(LEDGER))
    return [entry for entry in entries if entry.action == "resolve"]


def settle(world: World, choice: Choice) -> tuple[str, str]:
    with world.open() as memory:
        older = memory.store(CONFLICT[0], project="acme").memory_id
        world.clock.pass_days(1)
        newer = memory.store(CONFLICT[1], project="acme").memory_id
    context = world.context()
    (pair,) = queue.list_conflicts(context)
    queue.resolve(context, pair.id, choice, "I looked it up")
    assert queue.list_conflicts(context) == []
    assert context.reviews.pending() == []
    (entry,) = resolutions(world)
    assert (entry.details["choice"], entry.details["reason"]) == (choice, "I looked it up")
    return older, newer


@pytest.mark.parametrize("choice", Choice)
def test_review_choice_survives_a_rebuild(world: World, choice: Choice) -> None:
    older, newer = settle(world, choice)
    (world.home / "nacre.db").unlink()
    with world.open() as memory:
        active = {item.id for item in memory.list()}
    expected = {
        Choice.KEEP_NEW: {newer},
        Choice.KEEP_OLD: {older},
        Choice.KEEP_BOTH: {older, newer},
    }
    assert active == expected[choice]
    assert queue.list_conflicts(world.context()) == []
    assert [entry.details["choice"] for entry in resolutions(world)] == [choice]


@pytest.mark.parametrize("choice", Choice)
def test_review_choice_can_be_undone(world: World, choice: Choice) -> None:
    older, newer = settle(world, choice)
    (entry,) = resolutions(world)
    undo(world.context(), entry.op)
    (pair,) = queue.list_conflicts(world.context())
    assert (pair.older.id, pair.newer.id) == (older, newer)


def test_todo_is_completed_without_a_model_in_both_languages(world: World) -> None:
    with world.open() as memory:
        for text, event in (
            (
                "Rotate the staging certificates",
                "The staging certificates were rotated and it is done.",
            ),
            ("更新支付网关的证书", "支付网关的证书已更新完成"),
        ):
            todo = memory.store(text, kind="todo", project="acme").memory_id
            memory.store(event, kind="event", project="acme")
            assert memory._home.memories.find(todo).superseded_by  # type: ignore[union-attr]
