"""What a writer says of memories it was shown as known: which of them a session shows to be over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from nacre.values.memory import Memory
from nacre.values.model_calls import Prompt
from tests.app.conftest import World, says
from tests.app.test_extraction_by_model import home
from tests.fakes.model import ScriptedModel

TROUBLE = "The export of a month fails above a thousand rows, because the driver runs out of memory."
CHOICE = "Invoices get their numbers from the database."
ASKED = "Please have another look at why the export of a month fails above a thousand rows."
MENDED = "The export of a month now passes with a million rows: the driver fetches them in pages."
DROPPED = "Invoices no longer get their numbers from the database, we number them by hand now."


def ended(
    world: World, stored: Mapping[str, Any], over: Mapping[str, Any], finding: str = "holds", days: int = -9
) -> Memory:
    """A memory that was stored some days ago, after a session in which a writer says that it is over."""
    world.transcript(
        "mending", says("user", ASKED, uuid="m-1"), says("assistant", MENDED, uuid="m-2"),
        says("user", DROPPED, uuid="m-3"), says("assistant", "Noted: no numbers from the database.", uuid="m-4"),
    )  # fmt: skip

    def answer(prompt: Prompt) -> Any:
        (line,) = [one for one in prompt.shared.splitlines() if stored["content"] in one]
        return {"memories": [], "over": [{**over, "known": int(line[2 : line.index("]")])}]}

    with home(world, ScriptedModel(answer, finding=finding)) as memory:
        world.clock.pass_days(days)
        one = memory.store(**stored).memory_id
        world.clock.pass_days(-days)
        memory.ingest()
        return memory.get(one)


def test_a_trouble_that_was_repaired_is_over_with_the_words_that_say_so(world: World) -> None:
    memory = ended(
        world, {"content": TROUBLE, "kind": "lesson"}, {"evidence": [2], "quote": "now passes with a million rows"}
    )
    assert memory.retired is not None
    assert "now passes with a million rows" in memory.retired.reason


def test_what_the_owner_chose_is_over_by_the_owners_word(world: World) -> None:
    over = {"evidence": [3], "quote": "Invoices no longer get their numbers from the database"}
    assert ended(world, {"content": CHOICE, "kind": "decision"}, over).retired


@pytest.mark.parametrize(
    ("over", "finding"),
    [
        ({"evidence": [4], "quote": "no numbers from the database"}, "holds"),
        ({"evidence": [3], "quote": "the database is gone for good"}, "holds"),
        ({"evidence": [9], "quote": "Invoices no longer get"}, "holds"),
        ({"evidence": [], "quote": ""}, "holds"),
        ({"evidence": [3], "quote": "Invoices no longer get"}, "unsettled"),
    ],
    ids=["by the agent's word", "in words nobody said", "by a turn there is not", "by nothing", "not borne out"],
)
def test_what_the_owner_chose_is_not_over(world: World, over: Mapping[str, Any], finding: str) -> None:
    assert not ended(world, {"content": CHOICE, "kind": "decision"}, over, finding).retired


def test_what_was_said_later_is_not_over(world: World) -> None:
    over = {"evidence": [3], "quote": "Invoices no longer get their numbers from the database"}
    assert not ended(world, {"content": CHOICE, "kind": "decision"}, over, days=0).retired


def test_what_is_over_can_be_undone(world: World) -> None:
    ended(world, {"content": TROUBLE, "kind": "lesson"}, {"evidence": [2], "quote": "now passes with a million rows"})
    with world.open() as memory:
        (operation,) = [one for one in memory.log() if one.operation.action == "ingest"]
        memory.undo(operation.operation.id)
        assert [one.content for one in memory.list()] == [TROUBLE]
